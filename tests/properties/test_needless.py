"""SPEC A11 in every wire form: what left last would not fit with what it needs in front of it.

Said by `validate` and a recount alone: a message that left is put back, with the message that opens its turn,
or the nearest that the provider takes in front of it. That passes the limit, or the provider refuses it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.chat_in_forms import said_in
from tests.properties.cases import Case, run
from tests.properties.test_forms import assembled, counters, every_form, messages_of
from trimtab import Cascade, DropNewest, PriorityBased, SlidingWindow, TruncateText, validate
from trimtab.conversation import Unit, group
from trimtab.formats import Format, get_format, mapping_of
from trimtab.strategies import EvictionRequest, EvictionResult, Relevant, Strategy
from trimtab.testing import WordCounter


class NewestThatFit:
    """A user's own: keeps the newest units as long as the request says that they fit."""

    name = "newest_that_fit"

    def evict(self, request: EvictionRequest, /) -> EvictionResult:
        """Take unit by unit from the newest; the first that does not fit ends it."""
        staying = {id(unit) for unit in request.units if request.stays(unit)}
        for unit in reversed(request.units):
            tried = [one for one in request.units if id(one) in {*staying, id(unit)}]
            if not request.fits(tried):
                break
            staying.add(id(unit))
        kept = [one for one in request.units if id(one) in staying]
        return EvictionResult(kept=kept, fits=request.fits(kept))


def recency(message: Any, place: Any) -> float:
    """Score the newer higher."""
    return float(place.recency)


def newest(gone: list[Unit]) -> list[list[Unit]]:
    """What leaves oldest first took last; results of one message without their calls leave at one cut."""
    return [[unit for unit in gone if unit.first == gone[-1].first]]


def oldest(gone: list[Unit]) -> list[list[Unit]]:
    """What leaves newest first took last."""
    return [gone[:1]]


def every(gone: list[Unit]) -> list[list[Unit]]:
    """What is passed over by its size alone."""
    return [[unit] for unit in gone]


TAKEN: dict[str, tuple[Strategy, Callable[[list[Unit]], list[list[Unit]]]]] = {
    "window": (SlidingWindow(), newest),
    "first_user": (SlidingWindow(keep_first_user=True), newest),
    "protect_tool": (SlidingWindow(protect_roles=["tool"]), newest),
    "protect_user": (SlidingWindow(protect_roles=["user"]), newest),
    "default": (Cascade(SlidingWindow(), TruncateText()), newest),
    "protect_and_cut": (Cascade(SlidingWindow(protect_roles=["tool"]), TruncateText()), newest),
    "drop_newest": (DropNewest(), oldest),
    "priority": (PriorityBased(), every),
    "recency": (PriorityBased(score=recency), every),
    "relevant": (Relevant(), every),
    "truncate": (TruncateText(), newest),
    "own": (NewestThatFit(), newest),
}
every_strategy = pytest.mark.parametrize("strategy", TAKEN)


def nothing_left_needlessly(case: Case, name: str, last: Callable[[list[Unit]], list[list[Unit]]]) -> None:
    """A11."""
    report = case.attempt.report
    gone = {row.index for row in report.messages if row.fate == "evicted"}
    units = group(case.messages, format=name)
    left = [unit for unit in units if not gone.isdisjoint(unit.indices)]
    mended = any(row.reason in ("cannot_lead", "cannot_end") for row in report.messages)
    invalid = mended and validate(case.messages, format=name) != []
    if case.fitted is None or not left or invalid:  # the order of what is refused anyway is mended in the end
        return
    here = [unit for unit in units if gone.isdisjoint(unit.indices)]
    for taken in last(left):
        # In input that is refused anyway, an orphan that shares its message may leave with its neighbours.
        if any(unit.parts for unit in taken) and validate(case.messages, format=name) != []:
            continue
        back = next(standing(case, name, here, taken, units), None)
        assert back is None or case.count(back) > case.limit, f"{taken} would fit"


def standing(
    case: Case, name: str, here: Sequence[Unit], taken: list[Unit], units: Sequence[Unit]
) -> Iterator[list[Any]]:
    """Put units of one place back, with what makes them stand: nothing, their opener, or another before it.

    A window keeps the opener of the turn it cuts into wherever it is (C3).
    """
    form = get_format(name)
    kinds = (form.kind(mapping_of(message)) for message in case.messages)
    begin = next((at for at, kind in enumerate(kinds) if kind != "system"), 0)
    ahead = [one for one in units if one.first < taken[0].first and one not in here]
    users = [one for one in units if one.kind == "user" and one.first <= taken[0].first][-1:]
    alone = [] if isinstance(case.strategy, (SlidingWindow, Cascade)) and users else [None]
    for opener in (*alone, *users, *reversed(ahead)):
        chosen = {id(one) for one in (*here, *taken, opener) if one is not None}
        found = assembled(case, form, [one for one in units if id(one) in chosen])
        if in_order(form, found, begin):
            yield [message for _, message in found]


def in_order(form: Format, found: list[tuple[int, Any]], begin: int) -> bool:
    """Tell whether nothing stands where it is refused, but for what stood there in the input."""
    before: tuple[int, Any] = (begin - 1, None)
    for place, message in found:
        entry = mapping_of(message)
        if before[1] is None and form.kind(entry) == "system":
            continue
        if place != before[0] + 1 and form.order_fault(before[1], entry, parted=True) is not None:
            return False
        before = (place, entry)
    return True


@pytest.mark.few(15)
@every_strategy
@every_form
@given(data=st.data())
def test_nothing_leaves_needlessly(name: str, strategy: str, data: st.DataObject) -> None:
    """For random request bodies and any budget."""
    messages = messages_of(name, data.draw(st.integers(0, 99_999)), valid=data.draw(st.booleans()))
    counter = counters(name)[0]
    limit = max(1, counter.count(messages) * data.draw(st.integers(1, 100)) // 100)
    chosen, last = TAKEN[strategy]
    nothing_left_needlessly(run(messages, limit, chosen, counter, format=name), name, last)


REAL = {
    "tau_airline_gpt4o": 40,
    "swe_agent_trajectories": 8,
    "glaive_toolcall_zh": 60,
    "pydantic_ai_chats": 8,
}
"""File of ../shared/data, and which of its conversations: every n-th."""


def real_talks(data_dir: Path, form: str) -> Iterator[list[Any]]:
    """Read real conversations, written in a form; Chat's as they are."""
    for source, step in REAL.items():
        lines = (data_dir / f"{source}.jsonl").read_text(encoding="utf-8").splitlines()
        for line in lines[::step]:
            messages = json.loads(line)["messages"]
            yield messages if form == "openai_chat" else said_in(form, messages)


@pytest.mark.few(7)
@every_strategy
@pytest.mark.parametrize("form", ["openai_chat", "anthropic", "gemini", "bedrock"])
def test_nothing_of_a_real_talk_leaves_needlessly(data_dir: Path, form: str, strategy: str) -> None:
    """From a tenth of it to nearly all."""
    chosen, last = TAKEN[strategy]
    counter, tried = WordCounter(format=form), 0
    for at, messages in enumerate(real_talks(data_dir, form)):
        whole = counter.count(messages)
        for percent in (10, 35, 60, 85, 97)[at % 2 :: 2]:
            case = run(messages, max(1, whole * percent // 100), chosen, counter, format=form)
            nothing_left_needlessly(case, form, last)
            tried += case.fitted is not None and case.fitted.report.evicted_message_count > 0
    assert tried >= 3


@pytest.mark.parametrize("form", ["anthropic", "gemini", "bedrock"])
def test_a_real_talk_that_is_shortened_uses_its_budget_in_every_form(data_dir: Path, form: str) -> None:
    """Nine tenths of it on the whole, as Chat does (76 % with talks down to 6 %)."""
    counter, shares = WordCounter(format=form), list[float]()
    for messages in real_talks(data_dir, form):
        whole = counter.count(messages)
        for percent in (30, 60, 90):
            case = run(messages, max(1, whole * percent // 100), TruncateText(), counter, format=form)
            if case.fitted is not None:
                shares.append(counter.count(case.fitted.messages) / case.limit)
    assert len(shares) > 30
    assert sum(shares) / len(shares) > 0.9
