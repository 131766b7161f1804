"""The common part of OpenAI's and Anthropic's clients, made by one generator: a copy whose posts are fitted.

All their calls go through `post`, which is public (for endpoints without a method) and is looked up when a
resource is made.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from functools import cached_property
from inspect import getattr_static
from typing import Any

from trimtab.errors import ConfigurationError
from trimtab.formats.values import item_of
from trimtab.integrations.bodies import Bodies
from trimtab.integrations.chats import Again, Sent
from trimtab.integrations.recovery import last_try
from trimtab.integrations.usages import usage_in
from trimtab.models import model_in

_RAW = "X-Stainless-Raw-Response"


def fit_posts(
    client: Any, bodies: Mapping[str, Bodies], *, errors: tuple[type[Exception], ...], is_async: bool
) -> Any:
    """Return a copy of a client whose posts are fitted; it shares the connections of the other.

    What was set on the client itself is set on the copy, too.

    Args:
        client: The client.
        bodies: What fits the bodies that are sent to a path, by its end.
        errors: What the client raises where its provider refuses a call.
        is_async: Whether its calls are awaited.

    Raises:
        ConfigurationError: A method of one of its resources was replaced: the copy would ask past that. Or
            what fits the bodies has to be awaited, and its calls are not.
    """
    for fits in () if is_async else bodies.values():
        fits.check_sync()
    package = _package([kind for kind in type(client).__mro__ if "post" in vars(kind)][-1])
    made = client.copy()
    resources = _resources(client, package) | _resources(made, package)
    for name in resources & vars(client).keys():
        refuse_replaced(vars(client)[name], f"client.{name}", package)
    copy_of, known = made.copy, vars(made)
    by_hand = vars(client).keys() - known.keys() - resources - {"copy", "with_options"}
    known.update({name: vars(client)[name] for name in by_hand})
    fit_post = (_afit_post if is_async else _fit_post)(made.post, bodies, errors)

    def with_options(**options: Any) -> Any:
        return fit_posts(copy_of(**options), bodies, errors=errors, is_async=is_async)

    known.update(post=fit_post, copy=with_options, with_options=with_options)
    # Clients of Bedrock and Vertex make theirs before that, with the post they had.
    known.update({name: type(known[name])(made) for name in _resources(made, package)})
    return made


def _fit_post(post: Any, bodies: Mapping[str, Bodies], errors: tuple[type[Exception], ...]) -> Any:
    """Return the post of a client whose bodies are fitted."""

    def fit_post(path: str, *, body: Any = None, **given: Any) -> Any:
        fits = _fits(bodies, path, body)
        if fits is None:
            return post(path, body=body, **given)

        def ask_again(refused: Sent, error: Exception) -> tuple[Sent, Any]:
            sent = fits.recover(refused, error)
            with last_try(error, errors):
                return sent, post(path, body=sent.body, **given)

        def stream_again(refused: Sent, error: Exception) -> tuple[Sent, Any]:
            sent, answer = ask_again(refused, error)
            return sent, answer._iterator

        again = Again(errors, now=stream_again) if fits.retries else None
        sent = fits.fit_body(body, model=model_in(body))
        try:
            answer = post(path, body=sent.body, **given)
        except errors as error:
            (sent, answer), again = ask_again(sent, error), None
        return _watch(sent, answer, given, again)

    return fit_post


def _afit_post(post: Any, bodies: Mapping[str, Bodies], errors: tuple[type[Exception], ...]) -> Any:
    """Return the post of an async client whose bodies are fitted."""

    async def fit_post(path: str, *, body: Any = None, **given: Any) -> Any:
        fits = _fits(bodies, path, body)
        if fits is None:
            return await post(path, body=body, **given)

        async def ask_again(refused: Sent, error: Exception) -> tuple[Sent, Any]:
            sent = await fits.arecover(refused, error)
            with last_try(error, errors):
                return sent, await post(path, body=sent.body, **given)

        async def stream_again(refused: Sent, error: Exception) -> tuple[Sent, Any]:
            sent, answer = await ask_again(refused, error)
            return sent, answer._iterator

        again = Again(errors, later=stream_again) if fits.retries else None
        sent = await fits.afit_body(body, model=model_in(body))
        try:
            answer = await post(path, body=sent.body, **given)
        except errors as error:
            (sent, answer), again = await ask_again(sent, error), None
        return _watch(sent, answer, given, again)

    return fit_post


def refuse_replaced(resource: Any, path: str, package: str) -> None:
    """Refuse what stands for a resource of a client, or has a method that was replaced on it.

    Args:
        resource: What a client's attribute holds.
        path: How a program reaches it.
        package: The client's.

    Raises:
        ConfigurationError: What was put there asks by the client it was made for, so no call would be fitted.
    """
    for name in _stand_ins(resource, path, package):
        raise ConfigurationError(
            f"{name} was replaced on this client, and the replacement calls this client: a client with a"
            " budget would lose it, or would bypass its budget. Pass the original client to with_budget,"
            " and replace the method on the result: wrap(with_budget(client, budget))"
        )


def _stand_ins(resource: Any, path: str, package: str) -> Iterator[str]:
    """List what is not the client's own, of a resource and of those it has made."""
    if _package(type(resource)) != package:
        yield path
        return
    for name, value in vars(resource).items():
        if isinstance(getattr_static(type(resource), name, None), cached_property):
            yield from _stand_ins(value, f"{path}.{name}", package)
        elif callable(getattr_static(type(resource), name, None)):
            yield f"{path}.{name}"


def _resources(client: Any, package: str) -> set[str]:
    """List the attributes that are resources, or stand for one that is made when it is first asked for."""
    return {
        name
        for name, value in vars(client).items()
        if not name.startswith("_")
        and (
            (_package(type(value)) == package and getattr(value, "_client", None) is client)
            or _stands_in(client, name, package)
        )
    }


def _stands_in(client: Any, name: str, package: str) -> bool:
    """Tell whether something else stands where the client makes a resource; some make texts there."""
    value, is_made = vars(client)[name], getattr_static(type(client), name, None)
    is_own = _package(type(value)) in (package, "builtins") and not callable(value)
    return isinstance(is_made, cached_property) and not is_own


def _package(kind: type) -> str:
    return kind.__module__.partition(".")[0]


def _fits(bodies: Mapping[str, Bodies], path: str, body: Any) -> Bodies | None:
    """Find what fits a body: hosts put a version, or all of an address, before the path."""
    asked = path.partition("?")[0]
    found = (fits for end, fits in bodies.items() if asked.endswith(end))
    return next(found, None) if isinstance(body, Mapping) else None


def _watch(sent: Sent, answer: Any, given: Mapping[str, Any], again: Again | None) -> Any:
    """Take in what was billed: now, or when a stream ends; a body that the caller reads is left alone."""
    raw = (item_of(given.get("options"), "headers") or {}).get(_RAW)
    if raw is not None:
        if raw == "true" and not given.get("stream"):
            sent.record(json_answer(answer.http_response.content))
    elif given.get("stream"):
        watch: Any = sent.awatch if isinstance(answer._iterator, AsyncIterator) else sent.watch
        answer._iterator = watch(answer._iterator, usage_in, again)
    else:
        sent.record(answer)
    return answer


def json_answer(text: str | bytes | None) -> dict[str, Any]:
    """Read the JSON object of an answer; where it is none it says nothing of what was billed."""
    try:
        said = json.loads(text or "")
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}
