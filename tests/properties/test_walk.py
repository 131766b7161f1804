"""Walking back over messages while they are counted says what reading and counting all of them says.

Sizes are those of `count_message`. What belongs together is what the whole conversation says, in every turn
in which the walk found nothing odd.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.chat_in_forms import said_in
from tests.complexity.real_conversations import concatenated
from tests.gemini_shapes import agent, as_objects
from tests.test_near_cut import TALKS, written
from trimtab.conversation import group
from trimtab.counting import EstimateCounter, TextCounter, counter_for
from trimtab.errors import FormatError
from trimtab.formats import Format, Structure, formats, get_format, mapping_of
from trimtab.models import Framing
from trimtab.testing import request_bodies

UNLIMITED = 1 << 40
every_form = pytest.mark.parametrize("name", formats())

FRAMINGS = (
    Framing(),
    Framing(per_result_tokens=-3, per_message_tokens=0, roles_counted=False),
    Framing(thoughts_counted=False, sealed_chars_per_token=7, parallel_calls_tokens=11, per_result_tokens=5),
    Framing(per_name_tokens=None, per_call_tokens=0, per_message_tokens=-1),
)


@cache
def counters(name: str) -> tuple[TextCounter, ...]:
    """Make counters that charge differently, all of them by text."""
    words = [
        TextCounter(lambda text: len(text.split()), name="words", framing=framing, format=name)
        for framing in FRAMINGS
    ]
    known = [counter_for(model) for model in ("gpt-4o", "claude-sonnet-4-5", "gemini-2.5-pro", "gpt-5")]
    own = [one.with_format(name) for one in known if isinstance(one, TextCounter)]
    return EstimateCounter(format=name), *words, *own


def walk(
    form: Format,
    messages: list[Any],
    counter: TextCounter,
    start: int,
    *,
    step: int = 0,
    room: int = UNLIMITED,
) -> tuple[int, list[int | None], Structure]:
    """Walk back over messages in spans of `step`, all at once if that is 0."""
    count = low = len(messages)
    sizes: list[int | None] = [None] * count
    structure = Structure(count)
    assert counter.prices is not None
    while low > start:
        stop = max(start, low - step) if step else start
        span = range(low - 1, stop - 1, -1)
        found = form.count_back(messages, span, room, sizes, structure, counter.prices)
        assert found is not None
        room -= sum(size or 0 for size in sizes[found:low])
        low = found
        if room < 0:
            break
    return low, sizes, structure


def turns_of(form: Format, messages: list[Any], whole: Structure) -> list[range]:
    """List the turns: from one user message that stands alone to the next."""
    borders = [
        index
        for index, message in enumerate(messages)
        if form.kind(message) == "user"
        and index not in whole.calls
        and index not in whole.answers
        and whole.bound.isdisjoint((index - 1, index))
    ]
    firsts = [0, *(index for index in borders if index)]
    return [range(first, stop) for first, stop in zip(firsts, [*firsts[1:], len(messages)], strict=True)]


def plain_units(form: Format, messages: list[Any], turn: range, bound: set[int]) -> list[list[int]]:
    """Group a turn in which nothing is odd: results with what is before them, and what is bound."""
    units: list[list[int]] = []
    for index in turn:
        if units and (form.kind(messages[index]) == "tool" or index - 1 in bound):
            units[-1].append(index)
        else:
            units.append([index])
    return units


def holds(form: Format, given: list[Any], counter: TextCounter, start: int, step: int, room: int) -> int:
    """Hold a walk to what scanning, grouping and counting all say; count the turns with nothing odd."""
    low, sizes, structure = walk(form, list(given), counter, start, step=step, room=room)
    messages = [mapping_of(message) for message in given]
    assert sizes[:low] == [None] * low
    assert sizes[low:] == [counter.count_message(message) for message in messages[low:]]
    kinds = [form.kind(message) for message in messages[low:]]
    assert structure.kinds_back in ([], kinds[::-1])
    counted = [size or 0 for size in sizes]
    assert low == start or sum(counted[low:]) > room
    assert low == len(given) or sum(counted[low + 1 :]) <= room

    whole = Structure(len(messages))
    form.scan(messages, 0, len(messages), whole)
    assert {index for index in structure.odd if not low <= index < len(messages)} == set()
    turns = turns_of(form, messages, whole)
    plain = [turn for turn in turns if turn.start >= low and structure.odd.isdisjoint(turn)]
    odd = {index for turn in turns if turn not in plain for index in turn}
    units = {index: set(unit.indices) for unit in group(messages, format=form) for index in unit.indices}
    for turn in plain:
        if structure.kinds_back:
            assert structure.callers.intersection(turn) == whole.calls.keys() & set(turn)
        assert structure.bound.intersection(turn) == whole.bound.intersection(turn)
        assert not any(whole.loose.get(index) for index in turn)
        for unit in plain_units(form, messages, turn, structure.bound):
            waiting = structure.unanswered.intersection(unit)
            assert units[unit[0]] >= set(unit)
            assert units[unit[0]] - set(unit) <= odd
            calls = Counter(call_id for index in unit for call_id in whole.calls.get(index, ()))
            results = Counter(id for index in unit for id, _ in whole.answers.get(index, ()))
            assert not results - calls
            missing = calls - results
            assert bool(missing) == bool(waiting)
            assert all(not missing.keys().isdisjoint(whole.calls[index]) for index in waiting)
    return len(plain)


@st.composite
def asked(draw: st.DrawFn, count: int) -> tuple[int, int, int]:
    """Draw how far to walk, in which steps, and with how much room."""
    start = draw(st.sampled_from((0, 0, draw(st.integers(0, count)))))
    return start, draw(st.sampled_from((0, 0, 1, 3))), draw(st.sampled_from((UNLIMITED, 0, 60, 400)))


@every_form
@given(data=st.data())
def test_a_walk_says_of_a_body_what_reading_all_of_it_says(name: str, data: st.DataObject) -> None:
    """Of bodies a provider takes, and of broken ones."""
    form = get_format(name)
    seed, valid = data.draw(st.integers(0, 99_999)), data.draw(st.booleans())
    longest = data.draw(st.sampled_from((5, 20, 60)))
    body = request_bodies(1, format=name, seed=seed, valid=valid, max_messages=longest)[0]
    messages = body[form.rules.body_key]
    counter = data.draw(st.sampled_from(counters(name)))
    start, step, room = data.draw(asked(len(messages)))
    try:
        [mapping_of(message) for message in messages]
        [counter.count_message(message) for message in messages]
    except FormatError:
        if room == UNLIMITED:
            with pytest.raises(FormatError):
                walk(form, list(messages), counter, 0, step=step)
        return
    holds(form, messages, counter, start, step, room)


BROKEN = (
    *TALKS,
    "u cA a u",
    "u cA a cB a u",
    "cA u rA a",
    "u a cA u2 rA u",
    "rA a u",
    "rA rB u a",
    "u cA,B rA a rB",
)


@every_form
def test_a_walk_says_of_small_talks_what_reading_all_of_them_says(name: str) -> None:
    """Calls nobody answers, results of no call and what stands between them, from every message on."""
    form, counter = get_format(name), counters(name)[0]
    for line in BROKEN:
        messages = written(line, name)
        for start in range(len(messages)):
            holds(form, list(messages), counter, start, start % 3, UNLIMITED)


FORMS = {
    "openai_chat": None,
    "anthropic": "anthropic",
    "gemini": "gemini",
    "bedrock": "bedrock",
}


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("file", ["tau_airline_gpt4o", "glaive_toolcall_zh"])
def test_a_real_conversation_has_nothing_odd(data_dir: Path, name: str, file: str) -> None:
    """Every turn of plain calls and results is told by the walk alone."""
    form, chat = get_format(name), concatenated(data_dir / f"{file}.jsonl", 300)
    messages = chat if name == "openai_chat" else said_in(name, chat)
    counter = counters(name)[0]
    whole = Structure(len(messages))
    form.scan(list(messages), 0, len(messages), whole)
    turns = turns_of(form, messages, whole)
    assert holds(form, messages, counter, 0, 0, UNLIMITED) == len(turns) > 20
    assert holds(form, messages, counter, 0, 7, 3_000) > 0


@pytest.mark.parametrize("ids", [True, False], ids=["ids", "no ids"])
@pytest.mark.parametrize("made", [list, as_objects], ids=["dicts", "objects"])
def test_responses_are_matched_by_name_and_order_while_walking(ids: bool, made: Any) -> None:
    """Most of Gemini's calls have no id: where one content makes them all, nothing is odd."""
    contents = made(agent(6, ids=ids))
    assert holds(get_format("gemini"), contents, counters("gemini")[0], 0, 0, UNLIMITED) == 6
