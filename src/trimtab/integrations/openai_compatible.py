"""Clients of hosts that speak Chat Completions with a budget: Groq's, Together's, Cerebras's and their like.

They are made by the generator of OpenAI's own client, and need nothing of trimtab's beside it.
"""

from __future__ import annotations

import sys
from inspect import iscoroutinefunction, signature
from typing import Any, TypeVar, Unpack

from trimtab.errors import ConfigurationError
from trimtab.integrations.base import AdapterBudget, FitOptions, OnFitted
from trimtab.integrations.bodies import Bodies
from trimtab.integrations.posts import fit_posts

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
    """Return the same client whose calls fit their budget.

    `chat.completions.create` is sent what fits, raw and streamed calls too, and so is what `with_options` and
    `copy` give. What a call was billed is taken into the count of its conversation: a model that trimtab does
    not know is estimated until then. The client given is not changed; both share their connections.

    Args:
        client: A client that was made as OpenAI's: `Groq`, `Together`, `Cerebras` and their async ones, or
            another that has their `post` and `copy`.
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
    given: Any = client
    post, error = getattr(given, "post", None), _error_of(type(client))
    asks = callable(post) and {"cast_to", "body"} <= signature(post).parameters.keys()
    if not asks or error is None or not hasattr(given, "copy"):
        raise ConfigurationError(
            "client is one that was made as OpenAI's, with its post and copy (Groq, Together, Cerebras), not"
            f" {client!r:.80}; for OpenAI(base_url=…) take trimtab.integrations.openai",
            argument="client",
        )
    bodies = Bodies(
        budget,
        format="openai_chat",
        most_output=("max_completion_tokens", "max_tokens"),
        retry_overflow=retry_overflow,
        on_fitted=on_fitted,
        options=options,
    )
    is_async = iscoroutinefunction(post)
    made: C = fit_posts(given, {"/chat/completions": bodies}, errors=(error,), is_async=is_async)
    return made


def _error_of(kind: type) -> type[Exception] | None:
    """Return what a client raises where a call is refused: its package's `APIError`."""
    module = sys.modules.get(kind.__module__.partition("._")[0])
    found = getattr(module, "APIError", None)
    return found if isinstance(found, type) and issubclass(found, Exception) else None
