"""Google's client with a budget: its requests to generate content with Gemini fit."""
# What is missing is said before it is imported.
# ruff: noqa: E402

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from copy import copy
from functools import partial
from itertools import chain, islice
from typing import Any, TypeVar, Unpack, cast

from trimtab._shared.lazy import package_of
from trimtab.errors import ConfigurationError
from trimtab.integrations.base import AdapterBudget, FitOptions, OnFitted
from trimtab.integrations.bodies import Bodies
from trimtab.integrations.chats import Again, Sent
from trimtab.integrations.posts import json_answer, refuse_replaced
from trimtab.integrations.recovery import last_try
from trimtab.integrations.usages import metadata_in

package_of("google-genai", package="google.genai", needed_by="trimtab.integrations.google_genai")

from google.genai import Client
from google.genai.client import AsyncClient
from google.genai.errors import APIError

__all__ = ["with_budget"]

C = TypeVar("C", Client, AsyncClient)

_VERBS = ("generateContent", "streamGenerateContent")
"""What is asked where content is generated."""

_HELD = "cachedContents"
"""What content is called that the server holds: in a path, in its name, and in a list."""


def with_budget(
    client: C,
    budget: AdapterBudget = None,
    *,
    retry_overflow: bool = False,
    on_fitted: OnFitted | None = None,
    **options: Unpack[FitOptions],
) -> C:
    """Return the same client with fitted calls.

    These calls are fitted: `models.generate_content` and `generate_content_stream`, those of `aio` and
    `chats`, and each step in which the SDK itself calls functions. The bill of a call improves the count of
    its conversation. The original client is not changed; both share their connections.

    Content on the server (`cached_content`) is counted once the server has reported its size: in the answer
    to `caches.create` or `caches.get` of this client, or in a bill. Until then there is a warning.

    Args:
        client: A `google.genai.Client`, or its `aio`.
        budget: Tokens, a `Budget`, a share of the model's input limit such as `"80%"`, a `Context`, the path
            of a policy, or None for the window less the room for the answer.
        retry_overflow: Whether to send a call again, fitted to the size that the provider names, if the
            provider refuses it as too long; or without old thinking, if the provider refuses that.
        on_fitted: Called with the `Fitted` of each call; may be async if the call is.
        options: `strategy`, `counter`, `pin` and other keyword arguments of `trimtab.fit`.

    Raises:
        ConfigurationError: The argument is not such a client, a method of its `models` was replaced, or the
            budget or an option is invalid.
        BudgetExceededError: For a call: what must be kept does not fit.
    """
    if not isinstance(client, Client | AsyncClient):
        raise ConfigurationError(
            f"client must be a google.genai.Client or its aio, not {client!r:.80}", argument="client"
        )
    bodies = Bodies(
        budget,
        format="gemini",
        retry_overflow=retry_overflow,
        on_fitted=on_fitted,
        options=options,
    )
    given: Any = client
    refuse_replaced(given.models, "client.models", "google")
    if isinstance(client, Client):
        refuse_replaced(given.aio.models, "client.aio.models", "google")
    api = _Api(given, bodies)
    if isinstance(client, AsyncClient):
        return cast("C", _client_of(client, api))
    made = _client_of(client, api)
    made._aio = _client_of(given.aio, api)
    # A client that is forgotten closes its connections, which are those of the one given: that one does so.
    made.__class__ = type(type(client).__name__, (type(client),), {"__del__": lambda self: None})
    return cast("C", made)


def _client_of(owner: Any, api: _Api) -> Any:
    """Return a copy of a client whose models and caches ask by another way."""
    made, models, caches = copy(owner), copy(owner.models), copy(owner.caches)
    made._models, made._caches = models, caches
    models._api_client = caches._api_client = api
    return made


class _Api:
    """What the models of a client ask by: the client's own, with bodies that fit."""

    def __init__(self, client: Any, bodies: Bodies) -> None:
        self._client = client
        """Kept, since it closes its connections when it is forgotten."""
        self._api = client._api_client
        self._bodies = bodies

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api, name)

    def request(self, method: str, path: str, body: dict[str, Any], *options: Any) -> Any:
        """Send what fits."""
        sent = self._fit(path, body)
        ask = partial(self._api.request, method, path)
        try:
            answer = ask(sent.body, *options)
        except APIError as error:
            sent = self._bodies.recover(sent, error)
            with last_try(error, APIError):
                answer = ask(sent.body, *options)
        self._learn(sent, path, answer)
        return answer

    def request_streamed(self, method: str, path: str, body: dict[str, Any], *options: Any) -> Iterator[Any]:
        """Send what fits."""
        sent = self._fit(path, body)
        ask = partial(self._api.request_streamed, method, path)

        def stream_again(refused: Sent, error: Exception) -> tuple[Sent, Iterator[Any]]:
            sent = self._bodies.recover(refused, error)
            with last_try(error, APIError):
                return sent, _with_first(ask(sent.body, *options))

        again = Again((APIError,), now=stream_again) if self._bodies.retries else None
        return sent.watch(ask(sent.body, *options), _usage_in, again)

    async def async_request(self, method: str, path: str, body: dict[str, Any], *options: Any) -> Any:
        """Send what fits."""
        sent = await self._afit(path, body)
        ask = partial(self._api.async_request, method, path)
        try:
            answer = await ask(sent.body, *options)
        except APIError as error:
            sent = await self._bodies.arecover(sent, error)
            with last_try(error, APIError):
                answer = await ask(sent.body, *options)
        self._learn(sent, path, answer)
        return answer

    async def async_request_streamed(
        self, method: str, path: str, body: dict[str, Any], *options: Any
    ) -> AsyncIterator[Any]:
        """Send what fits."""
        sent = await self._afit(path, body)
        ask = partial(self._api.async_request_streamed, method, path)
        try:
            answers = await ask(sent.body, *options)
        except APIError as error:
            sent = await self._bodies.arecover(sent, error)
            with last_try(error, APIError):
                answers = await ask(sent.body, *options)
        return sent.awatch(answers, _usage_in)

    def _learn(self, sent: Sent, path: str, answer: Any) -> None:
        """Take in what a call was billed, and what the server says of content that it holds."""
        said = json_answer(answer.body)
        sent.record(metadata_in(said))
        if _HELD in path:
            for one in (said, *(said.get(_HELD) or ())):
                tokens = (one.get("usageMetadata") or {}).get("totalTokenCount")
                if tokens and one.get("name"):
                    self._bodies.held.learn(one["name"], tokens)

    def _fit(self, path: str, body: dict[str, Any]) -> Sent:
        model = _model_in(path)
        return Sent(body) if model is None else self._bodies.fit_body(body, model=model)

    async def _afit(self, path: str, body: dict[str, Any]) -> Sent:
        model = _model_in(path)
        return Sent(body) if model is None else await self._bodies.afit_body(body, model=model)


def _with_first(answers: Iterator[Any]) -> Iterator[Any]:
    """Ask for the first answer at once: it is then that Google's client asks the server."""
    first = [*islice(answers, 1)]
    return chain(first, answers)


def _model_in(path: str) -> str | None:
    """Name the model that a path has generate content; None if it is another path."""
    place, _, verb = path.partition("?")[0].rpartition(":")
    return place.rpartition("/")[2] if verb in _VERBS else None


def _usage_in(answer: Any) -> Any:
    """Return what an answer, or a part of one that is streamed, says was billed; None if it does not."""
    return metadata_in(json_answer(answer.body))
