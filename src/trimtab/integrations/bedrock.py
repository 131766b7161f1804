"""Amazon Bedrock's boto3 client with a budget: its requests to Converse fit."""
# What is missing is said before it is imported.
# ruff: noqa: E402

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, TypeVar, Unpack

from trimtab._shared.lazy import package_of
from trimtab.errors import ConfigurationError
from trimtab.integrations.base import AdapterBudget, FitOptions, OnFitted
from trimtab.integrations.bodies import Bodies
from trimtab.integrations.chats import Again, Sent
from trimtab.integrations.recovery import last_try

package_of("bedrock", package="boto3", needed_by="trimtab.integrations.bedrock")

from botocore.client import BaseClient
from botocore.exceptions import BotoCoreError, ClientError

__all__ = ["with_budget"]

C = TypeVar("C")


def with_budget(
    client: C,
    budget: AdapterBudget = None,
    *,
    retry_overflow: bool = False,
    on_fitted: OnFitted | None = None,
    **options: Unpack[FitOptions],
) -> C:
    """Return the same client with fitted `converse` and `converse_stream`.

    The bill of a call improves the count of its conversation. The original client is not changed; both share
    their connections. Other operations, including `invoke_model`, are those of the original client.

    Args:
        client: A client of `bedrock-runtime`, from `boto3.client("bedrock-runtime")`.
        budget: Tokens, a `Budget`, a share of the model's input limit such as `"80%"`, a `Context`, the path
            of a policy, or None for the window less the room for the answer.
        retry_overflow: Whether to send a call again, fitted to the size that the provider names, if the
            provider refuses it as too long; or without old thinking, if the provider refuses that.
        on_fitted: Called with the `Fitted` of each call.
        options: `strategy`, `counter`, `pin` and other keyword arguments of `trimtab.fit`.

    Raises:
        ConfigurationError: The argument is not such a client, or the budget or an option is invalid.
        BudgetExceededError: For a call: what must be kept does not fit.
    """
    given: Any = client
    service = given.meta.service_model.service_name if isinstance(client, BaseClient) else ""
    if service != "bedrock-runtime":
        raise ConfigurationError(
            f"client must be from boto3.client('bedrock-runtime'), not {service or repr(client):.80}",
            argument="client",
        )
    bodies = Bodies(
        budget,
        format="bedrock",
        retry_overflow=retry_overflow,
        on_fitted=on_fitted,
        options=options,
    )
    bodies.check_sync()
    made: Any = type(client).__new__(
        type(client)
    )  # not copy(): a client looks its attributes up in AWS's API
    vars(made).update(vars(given))
    made.converse = partial(_converse, bodies, given.converse)
    made.converse_stream = partial(_converse_stream, bodies, given.converse_stream)
    fitted: C = made
    return fitted


def _converse(bodies: Bodies, ask: Any, **body: Any) -> Any:
    """Ask for an answer to what fits."""
    sent, answer = _ask(bodies, ask, body)
    sent.record(answer)
    return answer


def _converse_stream(bodies: Bodies, ask: Any, **body: Any) -> Any:
    """Ask for an answer to what fits, and watch its events for what is billed."""

    def stream_again(refused: Sent, error: Exception) -> tuple[Sent, Iterator[Any]]:
        sent = bodies.recover(refused, error)
        with last_try(error, _ERRORS):
            stream._events = ask(**sent.body)["stream"]
        return sent, iter(stream._events)

    sent, answer = _ask(bodies, ask, body)
    again = Again(_ERRORS, now=stream_again) if bodies.retries else None
    stream = _Stream(answer["stream"])
    stream._watched = sent.watch(iter(answer["stream"]), _usage_in, again)
    return {**answer, "stream": stream}


def _ask(bodies: Bodies, ask: Any, body: dict[str, Any]) -> tuple[Sent, Any]:
    sent = bodies.fit_body(body, model=body.get("modelId"))
    try:
        return sent, ask(**sent.body)
    except _ERRORS as error:
        sent = bodies.recover(sent, error)
        with last_try(error, _ERRORS):
            return sent, ask(**sent.body)


_ERRORS = (ClientError, BotoCoreError)
"""What boto3 raises where a call is refused, as its answer or among the events of a stream."""


def _usage_in(event: Any) -> Any:
    """Return what an event of a stream says was billed; None if it does not."""
    return (event.get("metadata") or {}).get("usage")


class _Stream:
    """The events of an answer, with all else that boto3's stream has."""

    def __init__(self, events: Any) -> None:
        self._events = events
        self._watched: Iterator[Any] = iter(())

    def __iter__(self) -> Iterator[Any]:
        return self._watched

    def __getattr__(self, name: str) -> Any:
        return getattr(self._events, name)
