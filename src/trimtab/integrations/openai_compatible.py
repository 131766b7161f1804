"""Clients of hosts that speak Chat Completions, with a budget: Groq, Together, Cerebras and others.

They come from the generator of OpenAI's own client, and need no other code of trimtab.
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
    """Return the same client with fitted calls.

    These calls are fitted: `chat.completions.create`, raw and streamed calls, and the calls of clients from
    `with_options` and `copy`. The bill of a call improves the count of its conversation. Until the first
    bill, the tokens of a model that trimtab does not know are estimated. The original client is not changed;
    both share their connections.

    Args:
        client: A client from the same generator as OpenAI's: `Groq`, `Together`, `Cerebras` and their async
            ones, or another one with the same `post` and `copy`.
        budget: Tokens, a `Budget`, a share of the model's input limit such as `"80%"`, a `Context`, the path
            of a policy, or None for the window less the room for the answer.
        retry_overflow: Whether to send a call again, fitted to the size that the provider names, if the
            provider refuses it as too long; or without old thinking, if the provider refuses that.
        on_fitted: Called with the `Fitted` of each call; may be async if the call is.
        options: `strategy`, `counter`, `pin` and other keyword arguments of `trimtab.fit`.

    Raises:
        ConfigurationError: The argument is not such a client, a method of one of its resources was replaced,
            or the budget or an option is invalid.
        BudgetExceededError: For a call: what must be kept does not fit.
    """
    given: Any = client
    post, error = getattr(given, "post", None), _error_of(type(client))
    asks = callable(post) and {"cast_to", "body"} <= signature(post).parameters.keys()
    if not asks or error is None or not hasattr(given, "copy"):
        raise ConfigurationError(
            "client must be a Groq, Together or Cerebras client (or one with the same post() and copy()),"
            f" not {client!r:.80}; for OpenAI(base_url=…) use trimtab.integrations.openai",
            argument="client",
        )
    bodies = Bodies(
        budget,
        format="openai_chat",
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
