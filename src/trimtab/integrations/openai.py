"""OpenAI's client with a budget: Chat Completions and Responses are sent what fits."""
# What is missing is said before it is imported.
# ruff: noqa: E402

from __future__ import annotations

from typing import TypeVar, Unpack, cast

from trimtab._shared.lazy import package_of
from trimtab.errors import ConfigurationError
from trimtab.integrations.base import AdapterBudget, FitOptions, OnFitted
from trimtab.integrations.bodies import Bodies
from trimtab.integrations.posts import fit_posts

package_of("openai", package="openai", needed_by="trimtab.integrations.openai")

from openai import APIError, AsyncOpenAI, OpenAI

__all__ = ["with_budget"]

C = TypeVar("C", bound=OpenAI | AsyncOpenAI)


def with_budget(
    client: C,
    budget: AdapterBudget = None,
    *,
    retry_overflow: bool = False,
    on_fitted: OnFitted | None = None,
    **options: Unpack[FitOptions],
) -> C:
    """Return the same client whose calls fit their budget.

    `chat.completions.create`, `.stream` and `.parse`, and those of `responses`, are sent what fits, raw and
    streamed calls too, and so is what `with_options` and `copy` give. What a call was billed is taken into
    the count of its conversation. The client given is not changed; both share their connections.

    A call that goes on from what the server keeps (`previous_response_id`, `conversation`) is sent as it is,
    with a warning: nobody here sees how large it is.

    Args:
        client: An `OpenAI` or `AsyncOpenAI`, or one derived from these, as Azure's.
        budget: Tokens, a `Budget`, a share of the model's input limit as `"80%"`, a `Context`, the path of a
            policy, or None for the window less what the answer may take.
        retry_overflow: Send a call once more that the provider refuses as too long, fitted anew by what it
            says of its size; or, where it refuses old thinking, without that.
        on_fitted: Called with the `Fitted` of each call; may be async where the call is.
        options: `strategy`, `counter`, `pin` and other keyword arguments of `trimtab.fit`.

    Raises:
        ConfigurationError: It is no such client, a method was replaced on one of its resources, or the budget
            or an option is not what it may be.
        BudgetExceededError: At a call: what must stay does not fit.
    """
    if not isinstance(client, OpenAI | AsyncOpenAI):
        raise ConfigurationError(
            f"client is an openai.OpenAI or AsyncOpenAI, not {client!r:.80}", argument="client"
        )
    bodies = {
        "/chat/completions": Bodies(
            budget,
            format="openai_chat",
            most_output=("max_completion_tokens", "max_tokens"),
            retry_overflow=retry_overflow,
            on_fitted=on_fitted,
            options=options,
        ),
        "/responses": Bodies(
            budget,
            format="openai_responses",
            stored=("previous_response_id", "conversation"),
            most_output=("max_output_tokens",),
            retry_overflow=retry_overflow,
            on_fitted=on_fitted,
            options=options,
        ),
    }
    return cast("C", fit_posts(client, bodies, errors=(APIError,), is_async=isinstance(client, AsyncOpenAI)))
