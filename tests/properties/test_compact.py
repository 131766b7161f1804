"""Random chats in five wire forms, with results compacted: no reference leads to what is not sent."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

import pytest

from tests.result_chats import FORMS, chat, results, unresolved
from trimtab import BudgetExceededError, Context, Fitted, fit
from trimtab.compact import Compact, expand
from trimtab.counting import CharCounter
from trimtab.strategies import Cascade, ClampResults, ClearToolResults, SlidingWindow

CUT = "[text cut by trimtab"

STRATEGIES: tuple[Any, ...] = (
    None,
    "agent",
    ClampResults(max_tokens=40),
    SlidingWindow(target_ratio=0.5),
    Cascade(ClampResults(max_ratio=0.2), SlidingWindow()),
    Cascade(ClampResults(max_tokens=9), SlidingWindow()),
    ClampResults(max_tokens=25),
    Cascade(ClearToolResults(keep_results=1), SlidingWindow(target_ratio=0.5)),
)


def _check(form: str, messages: list[Any], fitted: Fitted[Any], room: int, pins: set[int]) -> int:
    """Look at an output, and return how many references it has."""
    assert fitted.tokens_after <= room
    output = results(form, fitted.messages)
    assert unresolved(output) == []
    given, expanded = results(form, messages), results(form, expand(fitted.messages, format=form))
    assert [one[:2] for one in expanded] == [one[:2] for one in output]
    for message, own in _by_message(expanded).items():
        place = fitted.positions[message]
        assert place is not None
        wanted = [text for at, _, text in given if at == place]
        if place in pins:
            assert [text for at, _, text in output if at == message] == wanted
        whole = [text for text in own if "trimtab" not in text]
        assert all(text in wanted for text in whole)
        assert all(_is_piece(text, wanted) for at, _, text in output if at == message and CUT in text)
    return 0 if fitted.report.written is None else len(fitted.report.written.references)


def _is_piece(cut: str, wanted: list[str]) -> bool:
    """Tell whether a text that was cut is the tool's own begin and end, and no part of a reference."""
    head, tail = cut.replace("\\", "").partition(CUT)[::2]  # lines that look like references have one more
    tail = tail.partition("]")[2]
    return any(own.startswith(head) and own.endswith(tail) for own in _bare(wanted))


def _bare(texts: list[str]) -> list[str]:
    return [text.replace("\\", "") for text in texts]


def _by_message(found: list[tuple[int, str, str]]) -> dict[int, list[str]]:
    made: dict[int, list[str]] = {}
    for at, _, text in found:
        made.setdefault(at, []).append(text)
    return made


def _try(form: str, seed: int) -> int:
    """Fit a growing chat at random, and return how many references were seen."""
    random = Random(f"{form} {seed}")
    pinned = random.random() < 0.3
    messages = chat(form, random, turns=random.randint(2, 14), lookalikes=not pinned)
    pins = set(random.sample(range(len(messages)), 2)) if pinned else set[int]()
    before, counter = copy.deepcopy(messages), CharCounter()
    whole = fit(messages, 10**9, counter=counter, format=form).tokens_after
    strategy, room = random.choice(STRATEGIES), int(whole * random.uniform(0.1, 1.1))
    compact = Compact(json=None, min_lines=random.choice([1, 2, 3]), min_tokens=random.choice([0, 5, 20]))
    seen = 0
    for stop in {max(1, len(messages) - 4), len(messages)} if not pins else {len(messages)}:
        asked = {"counter": counter, "format": form, "strategy": strategy, "pin": pins}
        try:
            fitted = fit(messages[:stop], room, compact=compact, **asked)
        except BudgetExceededError:
            continue
        seen += _check(form, messages[:stop], fitted, room, pins)
        again = fit(messages[:stop], room, compact=compact, **asked)
        assert again.messages == fitted.messages
        try:
            other = fitted.at(int(room * 0.7))
        except BudgetExceededError:
            continue
        seen += _check(form, messages[:stop], other, int(room * 0.7), pins)
    assert messages == before
    return seen


@pytest.mark.parametrize("form", FORMS)
def test_every_reference_of_a_fit_leads_to_lines_that_are_sent(form: str) -> None:
    """Clamps, clears, pins, cuts and other budgets: references resolve, and originals come back."""
    assert sum(_try(form, seed) for seed in range(30)) > 15


@pytest.mark.long
@pytest.mark.parametrize("form", FORMS)
def test_every_reference_of_thousands_of_fits_leads_to_lines_that_are_sent(form: str) -> None:
    """The same, of more chats."""
    assert sum(_try(form, seed) for seed in range(30, 3_000)) > 2_000


def _try_blocks(form: str, seed: int) -> int:
    """Fit two chats as blocks of one request, and return how many references were seen."""
    random = Random(f"blocks {form} {seed}")
    one, other = (chat(form, random, turns=random.randint(1, 8)) for _ in range(2))
    room = random.randint(400, 6_000)
    context = Context(room, counter=CharCounter(), format=form, compact=Compact(json=None, min_tokens=5))
    context.add("old", one, strategy=random.choice(STRATEGIES), max_tokens=random.choice([None, 1_500]))
    context.add("new", other, priority=1, strategy=random.choice(STRATEGIES))
    seen = 0
    try:
        fitted = context.fit()
        seen += _check(form, [*one, *other], fitted, room, set())
        seen += _check(form, [*one, *other], fitted.at(room // 2), room // 2, set())
    except BudgetExceededError:
        pass
    return seen


@pytest.mark.parametrize("form", FORMS)
def test_every_reference_in_blocks_leads_to_lines_that_are_sent(form: str) -> None:
    """A result refers to results of its own block, whatever the blocks let go of."""
    assert sum(_try_blocks(form, seed) for seed in range(20)) > 8
