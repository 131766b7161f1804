"""Anthropic's client with a budget: what it sends to Messages fits."""
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
    """Return the same client whose calls fit their budget.

    `messages.create`, `.stream` and `.parse`, those of `beta.messages`, and each step of its tool runner with
    `thread=False` are sent what fits, and so is what `with_options` and `copy` give. `count_tokens` counts
    what it is given. What a call was billed is taken into the count of its conversation. The client given is
    not changed; both share their connections.

    A call that goes on from what the server keeps (`thread`) is sent as it is, with a warning: nobody here
    sees how large it is.

    Args:
        client: An `Anthropic` or `AsyncAnthropic`, or the SDK's client of a cloud.
        budget: Tokens, a `Budget`, a share of the model's input limit as `"80%"`, a `Context`, the path of a
            policy, or None for the window less what the answer may take.
        retry_overflow: Send a call once more that the provider refuses as too long, fitted anew by what it
            says of its size; or, where it refuses old thinking, without that.
        on_fitted: Called with the `Fitted` of each call; may be async where the call is.
        options: `strategy`, `counter`, `breakpoints` and other keyword arguments of `trimtab.fit`.

    Raises:
        ConfigurationError: It is no such client, a method was replaced on one of its resources, or the budget
            or an option is not what it may be.
        BudgetExceededError: At a call: what must stay does not fit.
    """
    is_async = isinstance(client, AsyncAPIClient)
    if not isinstance(client, SyncAPIClient) and not is_async:
        raise ConfigurationError(
            f"client is an Anthropic or AsyncAnthropic, or the SDK's client of a cloud, not {client!r:.80}",
            argument="client",
        )
    bodies = Bodies(
        budget,
        format="anthropic",
        stored=("thread",),
        most_output=("max_tokens",),
        retry_overflow=retry_overflow,
        on_fitted=on_fitted,
        options=options,
    )
    return cast("C", fit_posts(client, {"/v1/messages": bodies}, errors=(APIError,), is_async=is_async))
