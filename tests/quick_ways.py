"""The quick way of `fit` beside the full way, and everything in which the two must agree."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

from trimtab import BudgetExceededError, ContextError, Fitted
from trimtab._fitting.fit_plan import FitPlan, deciding
from trimtab._fitting.fitted import fitted_for
from trimtab._fitting.prepare import prepare
from trimtab._fitting.request import Ask
from trimtab._quick import QuickPlan, quick_plan
from trimtab.counting.texts import TextCounter
from trimtab.models import Framing
from trimtab.strategies.summarizer import drive

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


def full_way(messages: Any, budget: Any, **asked: Any) -> Fitted[Any]:
    """Fit without trying the quick way."""
    defaults: dict[str, Any] = {
        "model": None,
        "counter": None,
        "format": "auto",
        "system": None,
        "tools": None,
        "strategy": None,
        "pin": (),
        "pending_calls": (),
        "on_trim": None,
        "repair": False,
    }
    work = prepare(Ask(messages=messages, budget=budget, **{**defaults, **asked}))
    return fitted_for(drive(deciding(work, work.budget)))


def quick_way(messages: Any, budget: Any, **asked: Any) -> Fitted[Any] | None:
    """Fit by the quick way; None where it leaves the decision to the full way."""
    plan = quick_plan(messages, budget, **{"model": None, "counter": None, "format": "auto", **asked})
    return None if plan is None else fitted_for(plan)


def agree(messages: list[Any], budget: Any, *, others: tuple[int, ...] = (), **asked: Any) -> bool:
    """Hold the quick way to the full one in all that can be seen; tell whether it was taken."""
    given = list(messages)
    quick = quick_way(given, budget, **asked)
    if quick is None:
        return False
    full = full_way(messages, budget, **asked)
    assert list(map(id, quick.messages)) == list(map(id, full.messages))
    assert given == messages
    assert quick.messages is not given
    for name in ("system", "tools", "request"):
        assert getattr(quick, name) == getattr(full, name)
    assert repr(quick) == repr(full)
    for name in ("fits", "tokens", "source", "budget", "body", "format"):
        assert getattr(quick._plan, name) == getattr(_plan(quick), name) == getattr(full._plan, name)
    assert str(quick._plan.exceeded()) == str(full._plan.exceeded())  # nobody asks what fits
    assert _plan(quick) is _plan(quick)
    assert _plan(quick).messages() == quick.messages
    _agree_on_what_was_counted(quick, full)
    _agree_on_the_report(quick, full)
    for other in others:
        assert outcome(partial(quick.at, other), messages) == outcome(partial(full.at, other), messages)
    assert quick.count_all().to_dict() == full.count_all().to_dict()
    return True


def _plan(fitted: Fitted[Any]) -> FitPlan:
    plan = fitted._plan
    return plan.full if isinstance(plan, QuickPlan) else cast("FitPlan", plan)


def _agree_on_what_was_counted(quick: Fitted[Any], full: Fitted[Any]) -> None:
    a, b = _plan(quick).portion, _plan(full).portion
    assert a.sizes.known == b.sizes.known
    assert a.source_sizes is a.sizes
    assert a.sizes.fixed_tokens(False) == b.sizes.fixed_tokens(False)
    assert a.history.walked_from == b.history.walked_from
    for name in ("behind", "late", "replaced"):
        assert getattr(a.history.structure, name) == getattr(b.history.structure, name)


def _agree_on_the_report(quick: Fitted[Any], full: Fitted[Any]) -> None:
    assert quick.report.to_dict() == full.report.to_dict()
    assert quick.report.to_dict(include_text=True) == full.report.to_dict(include_text=True)
    assert str(quick.report) == str(full.report)


def outcome(fitting: Callable[[], Fitted[Any]], messages: Any) -> Any:
    """Give what can be seen of a fit, or of the error in place of one."""
    try:
        return _seen(fitting(), messages)
    except BudgetExceededError as error:
        numbers = error.needed_tokens, error.limit_tokens, error.block
        return str(error), numbers, _seen(cast("Fitted[Any]", error.attempt), messages)
    except ContextError as error:
        return type(error), str(error), vars(error)


def _seen(fitted: Fitted[Any], messages: Any) -> Any:
    """Give the report and the output: the caller's own objects, and in full what was edited."""
    own = set(map(id, messages["messages"] if isinstance(messages, dict) else messages))
    output = [id(message) if id(message) in own else message for message in fitted.messages]
    return output, fitted.report.to_dict()
