"""Anthropic's client with a budget: its requests to Messages fit."""
# What is missing is said before it is imported.
# ruff: noqa: E402

from __future__ import annotations

from typing import TypeVar, Unpack, cast

from trimtab._shared.lazy import package_of
from trimtab.errors import ConfigurationError
from trimtab.integrations.base import AdapterBudget, FitOptions, OnFitted
from trimtab.integrations.bodies import Bodies
from trimtab.integrations.posts import fit_posts

package_of("anthropic", package="anthropic", needed_by="trimtab.integrations.anthropic")

from anthropic import APIError
from anthropic._base_client import AsyncAPIClient, SyncAPIClient

__all__ = ["with_budget"]

C = TypeVar("C", bound=SyncAPIClient | AsyncAPIClient)
"""Each client of the SDK is one of them, whichever cloud it asks; older versions have fewer."""


def with_budget(
    client: C,
    budget: AdapterBudget = None,
    *,
    retry_overflow: bool = False,
    on_fitted: OnFitted | None = None,
    **options: Unpack[FitOptions],
) -> C:
    """Return the same client with fitted calls.

    These calls are fitted: `messages.create`, `.stream` and `.parse`, those of `beta.messages`, each step of
    its tool runner with `thread=False`, and the calls of clients from `with_options` and `copy`.
    `count_tokens` counts its arguments unchanged. The bill of a call improves the count of its conversation.
    The original client is not changed; both share their connections.

    A call that continues a conversation on the server (`thread`) is sent unchanged, with a warning: its size
    is unknown here.

    Args:
        client: An `Anthropic` or `AsyncAnthropic`, or the SDK's client of a cloud.
        budget: Tokens, a `Budget`, a share of the model's input limit such as `"80%"`, a `Context`, the path
            of a policy, or None for the window less the room for the answer.
        retry_overflow: Whether to send a call again, fitted to the size that the provider names, if the
            provider refuses it as too long; or without old thinking, if the provider refuses that.
        on_fitted: Called with the `Fitted` of each call; may be async if the call is.
        options: `strategy`, `counter`, `breakpoints` and other keyword arguments of `trimtab.fit`.

    Raises:
        ConfigurationError: The argument is not such a client, a method of one of its resources was replaced,
            or the budget or an option is invalid.
        BudgetExceededError: For a call: what must be kept does not fit.
    """
    is_async = isinstance(client, AsyncAPIClient)
    if not isinstance(client, SyncAPIClient) and not is_async:
        raise ConfigurationError(
            "client must be an Anthropic or AsyncAnthropic, or the SDK's client of a cloud, not"
            f" {client!r:.80}",
            argument="client",
        )
    bodies = Bodies(
        budget,
        format="anthropic",
        retry_overflow=retry_overflow,
        on_fitted=on_fitted,
        options=options,
    )
    return cast("C", fit_posts(client, {"/v1/messages": bodies}, errors=(APIError,), is_async=is_async))
