"""What units cost: `request.costs`, by which strategies add up, in each wire form and behind a step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.builders import assistant, call, result, system, user, words
from tests.test_parallel_results import FORMS, talk
from trimtab.conversation import History, Unit
from trimtab.formats import get_format
from trimtab.strategies import Edit, EvictionRequest, EvictionResult, Insertion
from trimtab.testing import WordCounter, eviction_request

WORDS = WordCounter()


def request_of(form: str, messages: list[Any]) -> EvictionRequest:
    """Ask about messages of a form, each word a token, with little room."""
    history = History(messages, format=get_format(form))
    return eviction_request(history, 20, counter=WordCounter(format=form))


def after_cuts(request: EvictionRequest, texts: Mapping[int, str]) -> EvictionRequest:
    """Return what is left once the first text of some messages was replaced."""
    edits = [Edit(index=index, texts={request.texts(index)[0].path: text}) for index, text in texts.items()]
    return request.after(EvictionResult(kept=request.units, edits=edits))


def counted(request: EvictionRequest, index: int) -> int:
    """Count a message as it is sent by now."""
    return int(request.sizes.counter.count_message(request.message(index)))


@pytest.mark.parametrize("form", FORMS)
def test_neighbors_cost_what_their_messages_do_as_they_are_now(form: str) -> None:
    """One by one, as a column, as a sum, and each with texts of an earlier step."""
    request = after_cuts(request_of(form, talk(form, rounds=2)), {0: words(7), 2: "cut"})
    count = request.history.count
    each = [counted(request, index) for index in range(count)]
    assert each != [request.sizes.of(index) for index in range(count)]
    costs = request.costs
    assert [costs.message(index) for index in range(count)] == each
    for start in range(count):
        for stop in range(start, count + 1):
            assert costs.each(start, stop) == each[start:stop]
            assert costs.between(start, stop) == sum(each[start:stop])


@pytest.mark.parametrize("form", FORMS)
def test_units_that_share_a_message_cost_it_once(form: str) -> None:
    """Call by call a running sum comes to what all of it is counted as; the first cut of it, too."""
    request = request_of(form, talk(form))
    request = after_cuts(request, {next(iter(request.history.results(0, request.history.count))): "cut"})
    there: dict[int, set[int]] = {}
    used = 0
    for number, unit in enumerate(request.units, 1):
        used += request.costs.unit(unit, there)
        assert used == request.costs.units(request.units[:number])
    assert used == sum(counted(request, index) for index in range(request.history.count))


@pytest.mark.parametrize("form", FORMS)
def test_of_a_message_alone_a_unit_costs_its_own_part_with_the_text_it_has_now(form: str) -> None:
    """A call of a tool and its result of one word, where two more results stand beside it."""
    request = request_of(form, talk(form))
    shared = next(iter(request.history.results(0, request.history.count)))
    request = after_cuts(request, {shared: "cut"})
    parts = sorted(part for _, part in request.history.answers_in(shared) if part is not None)
    format, texts = request.history.format, request.edits[shared]
    message = format.without_parts(format.with_texts(request.history.message(shared), texts), parts[1:])
    assert request.costs.rest(shared, texts, {parts[0]}) == WordCounter(format=form).count_message(message)


class Framed(WordCounter):
    """Charges 5 beside the messages where these begin with system text, and 3 otherwise."""

    def fixed_tokens(
        self, system: Any, tools: Any, /, *, has_system: bool, extra: Mapping[str, Any] | None = None
    ) -> int:
        """Say which of the two it is."""
        return 5 if has_system else 3


TALK = [system("a b"), user("c d e"), assistant("f"), user("g")]


def test_the_first_unit_decides_what_stands_beside_it() -> None:
    """What a request may cost at least and at most is known before it is decided how it begins."""
    request = eviction_request(TALK, 20, counter=Framed())
    assert [request.costs.fixed_tokens(span) for span in (*request.row[:2], None)] == [5, 3, 3]
    assert request.costs.fixed_range_tokens() == (3, 5)
    assert request.costs.total(request.units) == 5 + 2 + 3 + 1 + 1
    assert request.costs.total(request.units[1:]) == 3 + 3 + 1 + 1


@pytest.mark.parametrize(("at", "role", "beside"), [(0, "system", 5), (0, "user", 3), (2, "system", 5)])
def test_what_is_put_in_first_decides_it_too(at: int, role: str, beside: int) -> None:
    """At the place of the first unit it stands in front of that, and behind it, it does not."""
    made = Insertion(at=at, message={"role": role, "content": "s t"}, why="short", covers=frozenset({at}))
    request = eviction_request(TALK, 20, counter=Framed())
    kept = [unit for unit in request.units if unit.first != at]
    tokens = request.costs.units(kept)
    assert request.costs.total(kept, None, [made]) == beside + 2 + tokens
    left = request.after(EvictionResult(kept=kept, insertions=[made]))
    assert left.costs.insertion(made) == 2
    assert left.costs.total(left.units) == beside + 2 + tokens
    assert left.fixed_tokens == 2 + 5
    assert left.costs.fixed_range_tokens() == (5, 7)


def test_a_message_that_is_put_in_stands_before_what_begins_at_its_place() -> None:
    """Of system text with another in front the other leads, though a unit may begin where it is."""
    made = Insertion(at=0, message=user("s t"), why="short", covers=frozenset({0}))
    request = eviction_request(TALK, 20, counter=Framed())
    assert request.costs.fixed_tokens(request.row[0], [made]) == 3
    assert request.costs.fixed_tokens(request.row[0]) == 5


def test_a_unit_between_whose_messages_others_stand_costs_its_own() -> None:
    """Two calls, then their results: each result is of its call, and neither unit is a row."""
    line = [
        user("q"),
        call("a", text="b c"),
        call("d"),
        result("a", words(3)),
        result("d", words(5)),
        user("?"),
    ]
    request = eviction_request(line, 20, counter=WORDS)
    assert [unit.indices for unit in request.units] == [(0,), (1, 3), (2, 4), (5,)]
    expected = [sum(map(WORDS.count_message, request.messages(unit))) for unit in request.units]
    assert request.costs.row(request.row) == expected == [request.size(unit) for unit in request.units]


def test_what_is_saved_by_a_placeholder_is_none_where_it_has_to_be_counted() -> None:
    """A counter of words has no prices: who asks counts each message with the text."""
    request = eviction_request([user("q"), call("a"), result("a", words(9)), user("?")], 5, counter=WORDS)
    assert request.costs.saved_by([2], {("content",): "x y"}) == [None]
    assert request.costs.with_texts(2, {("content",): "x y"}) == 2


def test_the_same_request_within_another_limit() -> None:
    """What was found for one is known to the other, and neither changes the other's limit."""
    request = eviction_request([user("a b"), user("c")], 3, counter=WORDS)
    less = request.within(2)
    assert (request.limit_tokens, less.limit_tokens, less.constant_limit_tokens) == (3, 2, 3)
    assert request.fits(request.units)
    assert not less.fits(less.units)
    request.memory[Unit] = 1
    assert less.memory == {Unit: 1}
