"""SPEC A for every wire form, over request bodies with all that the form has.

What is independent of any form is claimed as for Chat Completions (`claims`); what looks into messages is
claimed here, through the form's own list of texts.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.properties import claims
from tests.properties.cases import DEFAULT, MINIMUMS, OTHERS, STRIDES, WINDOWS, Case, run
from trimtab import CharCounter, EstimateCounter
from trimtab.conversation import History, Unit, group
from trimtab.counting import FixedCounter
from trimtab.formats import Format, Structure, formats, get_format, mapping_of
from trimtab.strategies import CUT_MARKER, Strategy
from trimtab.testing import WordCounter, request_bodies

every_form = pytest.mark.parametrize("name", formats())
STRATEGIES: tuple[Strategy, ...] = (DEFAULT, DEFAULT, *WINDOWS, *STRIDES, *MINIMUMS, *OTHERS)


def counters(name: str) -> tuple[Any, ...]:
    """Counters that add up, and black boxes."""
    words = WordCounter(format=name)
    chars, fixed = CharCounter(format=name), FixedCounter(3, 2, 5, format=name)
    return words, chars, fixed, EstimateCounter(format=name), words.count


def messages_of(name: str, seed: int, *, valid: bool = False) -> list[Any]:
    """Make the messages of a request body."""
    body = request_bodies(1, format=name, seed=seed, valid=valid)[0]
    messages: list[Any] = body[get_format(name).rules.body_key]
    return messages


@st.composite
def fits(draw: st.DrawFn, name: str, strategies: tuple[Strategy, ...] = STRATEGIES) -> Case:
    """Fit random messages of a form into 0 % to 110 % of their size, mostly above what must stay."""
    messages = messages_of(name, draw(st.integers(0, 99_999)), valid=draw(st.booleans()))
    counter, strategy = draw(st.sampled_from(counters(name))), draw(st.sampled_from(strategies))
    whole = int(getattr(counter, "count", counter)(messages))
    least = 0
    if draw(st.integers(0, 3)):
        error = run(messages, 1, DEFAULT, counter, format=name).error
        least = min(whole, (error.needed_tokens or 0) if error is not None else 0)
    limit = max(1, least + (whole - least) * draw(st.integers(0, 110)) // 100)
    return run(messages, limit, strategy, counter, format=name)


@every_form
@given(data=st.data())
def test_what_is_free_of_the_form_holds_for_each(name: str, data: st.DataObject) -> None:
    """A1, A4, A5, A6, A8."""
    case = data.draw(fits(name))
    for claim in claims.FREE_OF_FORM:
        claim(case)


@every_form
@given(data=st.data())
def test_what_comes_out_is_the_input_in_part(name: str, data: st.DataObject) -> None:
    """A3: once each, in order; a changed message is the same but for texts and parts that left."""
    case = data.draw(fits(name))
    form = get_format(name)
    rows = case.attempt.report.messages
    assert [row.index for row in rows] == list(range(len(case.messages)))
    stays = [row for row in rows if row.fate != "evicted"]
    assert len(stays) == len(case.attempt.messages)
    for row, message in zip(stays, case.attempt.messages, strict=True):
        original = case.messages[row.index]
        assert (message is original) == (row.fate == "kept")
        if row.fate == "changed" and not parts_of(form, case.messages, row.index):
            assert bare(form, message) == bare(form, original)


def bare(form: Format, message: Any) -> Any:
    """Blank the texts of a message; of those behind one another in one result some may leave."""
    paths = [slot.path for slot in form.texts(mapping_of(message))]
    return _without_repeats(form.with_texts(message, dict.fromkeys(paths, "-"))) if paths else message


def _without_repeats(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_repeats(one) for key, one in value.items()}
    if not isinstance(value, list):
        return value
    return [one for at, one in enumerate(map(_without_repeats, value)) if not at or one != value[at - 1]]


def parts_of(form: Format, messages: list[Any], index: int) -> set[int]:
    """List the parts of a message that leave one by one."""
    structure = Structure(len(messages))
    form.scan(list(messages), 0, len(messages), structure)
    return structure.parts_of(index)


@every_form
@given(data=st.data())
def test_what_is_pinned_comes_out_itself_and_what_is_held_comes_out(name: str, data: st.DataObject) -> None:
    """A4: leading system messages and the latest user message; the newest unit, open calls, compaction."""
    case = data.draw(fits(name))
    there = {
        row.index: message
        for row, message in zip(
            (row for row in case.attempt.report.messages if row.fate != "evicted"),
            case.attempt.messages,
            strict=True,
        )
    }
    for unit in group(case.messages, format=name):
        for index in unit.indices if unit.state != "free" else ():
            assert index in there
            assert unit.state == "held" or unit.parts or there[index] is case.messages[index]
    assert case.attempt.messages


@every_form
@given(data=st.data())
def test_the_default_raises_exactly_when_what_must_stay_is_too_large(name: str, data: st.DataObject) -> None:
    """A4: pinned plus held, each text of the held at its marker where that is smaller; the error says it."""
    case = data.draw(fits(name, (DEFAULT,)))
    if case.count(case.messages) <= case.limit:
        return
    least = least_tokens(case, get_format(name))
    assert (case.error is not None) == (least > case.limit)
    if case.error is not None:
        assert case.error.needed_tokens == least


def least_tokens(case: Case, form: Format) -> int:
    """Count what must stay at its least."""
    staying = [unit for unit in group(case.messages, format=form) if unit.state != "free"]
    return case.count([shortest for _, shortest in assembled(case, form, staying, shorten=True)])


def assembled(case: Case, form: Format, units: list[Unit], *, shorten: bool = False) -> list[tuple[int, Any]]:
    """Lay the messages of units behind one another, each with the parts that belong to these."""
    parts: dict[int, set[int]] = {}
    whole: set[int] = set()
    for unit in units:
        for index in unit.indices:
            if index in unit.parts:
                parts.setdefault(index, set()).update(unit.parts[index])
            else:
                whole.add(index)
    history = History(list(case.messages), format=form)
    history.read(0)
    found = []
    for index in sorted({*whole, *parts}):
        message = case.messages[index]
        for unit in units if shorten else ():
            if unit.state == "held" and index in unit.indices:
                message = at_shortest(case, form, message, unit.parts.get(index))
        if index not in whole and not history.structure.parts_of(index).issubset(parts[index]):
            gone = history.structure.parts_of(index) - parts[index]
            message = form.without_parts(message, sorted(gone))
        found.append((index, message))
    return found


def at_shortest(case: Case, form: Format, message: Any, parts: tuple[int, ...] | None) -> Any:
    """Put the marker in place of each text of a message, or of those parts, where that makes it smaller."""
    for slot in form.texts(mapping_of(message)):
        if parts is None or any(key in parts for key in slot.path if isinstance(key, int)):
            changed = form.with_texts(message, {slot.path: CUT_MARKER})
            if case.count([changed]) < case.count([message]):
                message = changed
    return message


@every_form
@given(data=st.data())
def test_a_cut_text_is_its_own_ends_around_a_marker(name: str, data: st.DataObject) -> None:
    """A10: nothing but texts is cut, and each cut shows."""
    case = data.draw(fits(name, (DEFAULT, *(s for s in OTHERS if s.name == "truncate_text"))))
    form = get_format(name)
    for row, message in zip(
        (row for row in case.attempt.report.messages if row.fate != "evicted"),
        case.attempt.messages,
        strict=True,
    ):
        if row.fate == "changed" and not parts_of(form, case.messages, row.index):
            old = [slot.text for slot in form.texts(mapping_of(case.messages[row.index]))]
            new = [slot.text for slot in form.texts(mapping_of(message))]
            assert all(map(claims._is_cut_of, old, new))
            assert old != new
