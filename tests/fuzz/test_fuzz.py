"""Random requests in every form, every strategy, budget and door: nothing over budget, nothing newly refused.

`make test` runs some, `make test-long` 20,000; `make fuzz` runs others, and makes what fails small.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.fuzz.__main__ import told
from tests.fuzz.checking import problems
from tests.fuzz.plans import FORMS, Plan, plan
from tests.fuzz.running import BASE, run
from tests.fuzz.shrinking import shrink
from tests.sizes import sizes
from trimtab import BudgetExceededError, Fitted, validate
from trimtab.errors import InvalidHistoryError
from trimtab.formats import get_format

WELL_RUN = Plan.run


@sizes(1_000, 20_000)
def test_nothing_comes_out_that_should_not(size: int) -> None:
    """SPEC A1 to A5 and A7, and the judge; a failure prints its seed and a small case for the corpus."""
    failures = list(run(size, base=BASE))
    assert not failures, "\n".join([f"{len(failures)} of {size} (base {BASE})", *map(told, failures[:5])])


def test_a_turn_that_never_thought_is_mended_once() -> None:
    """The answer behind it stood there already, and was put back for ever: the fit did not end."""
    assert problems(plan("anthropic", "5/10356")) == []


@pytest.mark.parametrize("form", FORMS)
def test_the_cases_hold_everything(form: str) -> None:
    """Valid and broken ones, through every door; what fits as it is, what is trimmed and what cannot fit."""
    plans = [plan(form, f"{BASE}/{number}") for number in range(300)]
    assert {one.door for one in plans} == {"list", "body", "context"}
    assert len({str(one.strategy) for one in plans}) >= 20
    seen: dict[str, int] = {}
    rules: set[str] = set()
    for one in plans:
        violations = validate(one.request.messages, format=form)
        rules |= {violation.rule for violation in violations}
        outcome = "broken" if any(violation.fault for violation in violations) else "valid"
        seen[outcome] = seen.get(outcome, 0) + 1
        if one.door == "context":
            continue
        words: tuple[str, ...]
        try:
            words = ("fits", "evicts" if one.run().report.evicted_message_count else "keeps")
        except BudgetExceededError:
            words = ("exceeds",)
        except InvalidHistoryError:  # what stays has a fault that a repair cannot mend: see `problems`
            words = ("refused",)
        for word in words:
            seen[word] = seen.get(word, 0) + 1
    assert min(seen[word] for word in ("valid", "broken", "fits", "exceeds", "evicts", "keeps")) >= 25, seen
    assert {"orphan_result", "unanswered_call", "open_call"} <= rules
    assert not get_format(form).rules.ordered or "wrong_order" in rules


def test_a_case_is_made_of_its_seed_alone() -> None:
    """Whoever gets a seed gets the case."""
    for form in FORMS:
        one, other = plan(form, "5/17"), plan(form, "5/17")
        assert one == other
        assert one.budget_tokens == other.budget_tokens
        assert one.body != plan(form, "6/17").body


@pytest.mark.parametrize("form", FORMS)
def test_a_broken_trimmer_is_caught_and_its_case_made_small(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A window that forgets units: it drops every second message."""
    monkeypatch.setattr(Plan, "run", _forgetful)
    found = next(f for f in run(4_000, forms=[form], workers=1) if f.wrong[0].startswith("A3"))
    small, wrong = shrink(plan(form, found.seed))
    assert wrong == problems(small)
    assert wrong[0].startswith("A3")
    assert len(small.request.messages) <= 2


def _forgetful(plan: Plan) -> Fitted[Any]:
    fitted = WELL_RUN(plan)
    del fitted.messages[1::2]
    return fitted
