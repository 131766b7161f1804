"""What can be seen of a fit, to hold two ways of coming to it to each other."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from trimtab import BudgetExceededError, ContextError, Fitted, fit
from trimtab.counting import TextCounter
from trimtab.models import Framing
from trimtab.testing import group_all

FRAMING = Framing(
    per_request_tokens=3,
    per_message_tokens=0,
    roles_counted=False,
    per_name_tokens=None,
    per_call_tokens=0,
    call_name_factor=1,
    parallel_calls_tokens=0,
)


def words_counter(framing: Framing = FRAMING) -> TextCounter:
    """Make a counter of words, 3 for the request; a call without text has 2."""
    return TextCounter(lambda text: len(text.split()), name="words", framing=framing)


def agree(messages: Any, budget: Any, *, others: tuple[int, ...] = (), **asked: Any) -> Any:
    """Hold a fit to the same one with all grouped, and to other budgets after it; give what is seen of it."""

    def seen() -> list[Any]:
        first = outcome(lambda: fit(messages, budget, **asked), messages)
        if not isinstance(first[0], Fitted):
            return [first[1:]]
        return [first[1:], *(outcome(partial(first[0].at, other), messages)[1:] for other in others)]

    lazy = seen()
    with group_all():
        whole = seen()
    assert lazy == whole
    return lazy[0]


def outcome(fitting: Callable[[], Fitted[Any]], messages: Any) -> tuple[Any, ...]:
    """Give a fit, or None, and what can be seen of it, or of the error in place of one."""
    try:
        fitted = fitting()
    except BudgetExceededError as error:
        numbers = error.needed_tokens, error.limit_tokens, error.block
        return None, str(error), numbers, error.attempt and _seen(error.attempt, messages)
    except ContextError as error:
        return None, type(error), str(error)
    return fitted, _seen(fitted, messages)


def _seen(fitted: Fitted[Any], messages: Any) -> Any:
    """Give the report and the output: the caller's own objects, and in full what was edited."""
    given = messages.values() if isinstance(messages, dict) else (messages,)
    own = {id(message) for some in given if isinstance(some, list | tuple) for message in some}
    output = [id(message) if id(message) in own else message for message in fitted.messages]
    keys = list(fitted.request) if isinstance(fitted.request, dict) else None
    return output, keys, fitted.report.to_dict(), str(fitted.report), fitted.system, fitted.tools
