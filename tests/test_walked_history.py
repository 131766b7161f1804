"""A history that is counted while it is looked over: the same sizes and the same answers as one that is read.

The loop for plain messages must tell every other shape from them, and what is fitted after it must be what
is fitted where all is grouped.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.builders import assistant, call, places, result, system, talk, user
from tests.outcomes import agree
from tests.properties.toy_format import ToyFormat, answers, asks, said, words
from trimtab import EstimateCounter, fit
from trimtab.conversation import History
from trimtab.counting import TextCounter
from trimtab.errors import FormatError
from trimtab.formats import Structure, get_format
from trimtab.models import Framing

OPENAI = get_format("openai_chat")
COUNTER = TextCounter(
    lambda text: len(text.split()),
    name="words",
    framing=Framing(
        per_request_tokens=0,
        per_message_tokens=3,
        roles_counted=False,
        per_name_tokens=1,
        per_call_tokens=5,
        call_name_factor=2,
        parallel_calls_tokens=11,
    ),
)
FUNCTION = {"name": "f", "arguments": "{} {}"}
PLAIN = {"id": "A", "type": "function", "function": FUNCTION}


def walked(messages: list[Any], start: int, room_tokens: int = 10_000) -> tuple[History, list[int | None]]:
    """Make a history, and count it back to a message."""
    made = History(list(messages), format=OPENAI)
    sizes: list[int | None] = [None] * len(messages)
    assert COUNTER.prices is not None
    assert made.walk(start, room_tokens, sizes, COUNTER.prices) == made.walked_from
    return made, sizes


def read(messages: list[Any]) -> History:
    """Make a history of its own."""
    return History(list(messages), format=OPENAI)


LINES = (
    "u cA rA u",
    "u cA,B rB rA a",
    "u cA,B rB a rA",
    "u cA,B,C rC rA a",
    "cA a rA u",
    "cA s rA a cB rB u",
    "u rA u",
    "u rA rA",
    "rA rB cB rB u",
    "u cA rA rA u",
    "u cA rB u",
    "u cA rB rC cB rB u",
    "u cA,B rA rA rB u",
    "u cA,B rA rA u",
    "u cA,B rC u cA,B rA rB a",
    "cA cB rA rB u",
    "u cA u cA rA",
    "cA rA cB rB cC,D rD rC",
)


def fits_as_grouped(messages: list[Any]) -> None:
    """Fit into many budgets, with and without all grouped, also behind older messages and before newer."""
    for talked in (messages, [*talk("s1 u1 a2"), *messages], [*messages, *talk("a1 u1")]):
        for budget in range(1, COUNTER.count(talked) + 1, 11):
            agree(talked, budget, counter=COUNTER, format="openai_chat")


@pytest.mark.parametrize("line", LINES)
def test_what_was_walked_over_is_fitted_as_what_was_read(line: str) -> None:
    """Whatever is out of its place, at the cut, before it and behind it."""
    messages = talk(line)
    for start in range(len(messages)):
        made, sizes = walked(messages, start)
        assert made.walked_from == start
        assert sizes[start:] == [COUNTER.count_message(message) for message in messages[start:]]
        assert sizes[:start] == [None] * start
    fits_as_grouped(messages)


@pytest.mark.parametrize("line", LINES)
def test_a_history_may_be_walked_in_two_steps(line: str) -> None:
    """What the first noted is not forgotten."""
    messages = talk(line)
    for low in range(1, len(messages)):
        made, sizes = walked(messages, low)
        assert COUNTER.prices is not None
        assert made.walk(0, 10_000, sizes, COUNTER.prices) == 0
        assert made.walk(0, 10_000, sizes, COUNTER.prices) == 0
        assert sizes == [COUNTER.count_message(message) for message in messages]


@pytest.mark.parametrize(("room", "low"), [(-1, 3), (0, 3), (3, 3), (4, 2), (8, 2), (9, 1), (14, 1), (15, 0)])
def test_a_walk_ends_where_the_room_is_passed(room: int, low: int) -> None:
    """Sizes are 4, 6, 5 and 4 from the oldest; the one that passes it is counted, and none older."""
    made, sizes = walked(talk("u1 a3 u2 a1"), 0, room)
    assert made.walked_from == low
    assert sizes[:low] == [None] * low
    assert None not in sizes[low:]


SHAPES: tuple[dict[str, Any], ...] = (
    {"role": "user", "content": "x y", "name": "me you"},
    {"role": "user", "content": [{"type": "text", "text": "x y z"}]},
    {"role": "user", "content": None},
    {"role": "tool", "content": "x"},
    {"role": "user", "content": "x", "tool_calls": [PLAIN]},
    {"role": "user", "content": "x", "tool_calls": []},
    {"role": "critic", "content": "x y"},
    {"role": "assistant", "tool_calls": [PLAIN]},
    {"role": "assistant", "content": None, "tool_calls": None},
    {"role": "assistant", "content": "x", "tool_calls": []},
    {"role": "assistant", "content": "x", "tool_calls": ({**PLAIN},)},
    {"role": "assistant", "content": "x", "tool_calls": [PLAIN], "refusal": "no no"},
    {"role": "assistant", "content": "x", "tool_calls": [PLAIN], "function_call": FUNCTION},
    {"role": "assistant", "content": "x", "tool_calls": [{**PLAIN, "more": "y z"}]},
    {"role": "assistant", "content": "x", "tool_calls": [{**PLAIN, "function": {**FUNCTION, "more": "y z"}}]},
    {"role": "assistant", "content": "x", "tool_calls": [{**PLAIN, "id": ""}]},
    {"role": "assistant", "content": "x", "tool_calls": [{**PLAIN, "id": 5}]},
    {"role": "assistant", "content": "x", "tool_calls": [{"id": "A", "function": FUNCTION, "more": "y"}]},
    {"role": "assistant", "content": "x", "tool_calls": [{"id": "A", "type": "function"}]},
    {"role": "assistant", "content": "x", "tool_calls": [PLAIN, {**PLAIN, "id": "B"}]},
    {"role": "assistant", "content": "x", "tool_calls": [PLAIN, PLAIN]},
    {"role": "assistant", "content": "x", "tool_calls": [PLAIN, {**PLAIN, "id": "B", "more": "y z"}]},
    {"role": "assistant", "content": "x", "tool_calls": [PLAIN, {**PLAIN, "id": ""}]},
    {
        "role": "assistant",
        "content": "x",
        "tool_calls": [PLAIN, {**PLAIN, "id": "B", "function": {**FUNCTION, "more": "y z"}}],
    },
    {"role": "assistant", "content": "x", "function_call": FUNCTION},
    {"role": "tool", "content": "x", "tool_call_id": "A", "name": "f g"},
    {"role": "tool", "content": "x", "tool_call_id": "A", "more": "y z"},
    {"role": "tool", "content": "x", "tool_call_id": "A", "name": "f", "more": "y z"},
    {"role": "tool", "content": "x", "tool_call_id": 5},
    {"role": "tool", "content": "x", "tool_call_id": ["A"]},
    {"role": "tool", "content": [{"type": "text", "text": "x y z"}], "tool_call_id": "A"},
    {"role": "function", "content": "x", "name": "f"},
)


@pytest.mark.parametrize("shape", SHAPES, ids=repr)
def test_every_shape_is_walked_over_as_it_is_read(shape: dict[str, Any]) -> None:
    """Between all that may stand around it: its size, and what is fitted."""
    around = (
        [user(), shape, user()],
        [call("A"), shape, user()],
        [call("A", "B"), shape, result("B"), user()],
        [call("A"), result("A"), shape, user()],
        [shape, result("A"), user()],
        [shape, result("A"), result("B"), user()],
        [shape, result("A"), user(), result("Z"), user()],
        [shape, result("5"), user()],
        [shape, result(""), user()],
        [shape, {"role": "function", "name": "f", "content": "done"}, user()],
        [{"role": "assistant", "content": None, "function_call": FUNCTION}, shape, user()],
        [shape],
    )
    for messages in around:
        for start in range(len(messages)):
            _, sizes = walked(messages, start)
            assert sizes[start:] == [COUNTER.count_message(message) for message in messages[start:]]
        if not isinstance(shape.get("tool_call_id"), list):
            for budget in range(1, COUNTER.count(messages) + 1, 19):
                agree(messages, budget, counter=COUNTER, format="openai_chat")


class Model:
    """A message of an SDK: no mapping."""

    def __init__(self, **fields: Any) -> None:
        self.fields = fields

    def model_dump(self, *, exclude_none: bool = False) -> dict[str, Any]:
        """Write it as a dict."""
        return {key: value for key, value in self.fields.items() if value is not None or not exclude_none}


@pytest.mark.parametrize("budget", [1, 5, 9, 14, 20, 30, 999])
def test_objects_are_walked_over_and_come_out_as_they_are(budget: int) -> None:
    """The caller's own, at their places, wherever the limit is."""
    dicts = talk("s1 u4 a4 cA rA3 a2 u2")
    objects = [Model(**message, name=None) for message in dicts]
    expected = fit(dicts, budget + 4, counter=EstimateCounter()) if budget > 20 else None
    for kind in (COUNTER, EstimateCounter()):
        history = History(list(objects), format=OPENAI)
        sizes: list[int | None] = [None] * len(objects)
        prices = kind.prices
        assert prices is not None
        low = history.walk(0, budget, sizes, prices)
        assert low is not None
        assert [history.kind(at) for at in range(7)] == [read(dicts).kind(at) for at in range(7)]
        assert history.latest_user == 6
        assert "name" not in history.messages[6]
        assert all(one is other for one, other in zip(history.originals, objects, strict=True))
        assert [history.original(at) for at in range(7)] == objects
    if expected is not None:
        given = fit(objects, budget + 4, counter=EstimateCounter())
        assert places(given.messages, objects) == places(expected.messages, dicts)


def test_what_was_read_or_walked_over_is_known() -> None:
    """Whichever reaches further back."""
    made, _ = walked(talk("u a u a u"), 3)
    assert (made.read_from, made.walked_from) == (3, 3)
    made.read(1)
    assert (made.read_from, made.walked_from) == (1, 3)


# -- which messages stand alone, and what is told by who asks


TOY = ToyFormat()


@pytest.mark.parametrize("read_before", [False, True])
def test_a_message_that_calls_answers_or_is_bound_does_not_stand_alone(read_before: bool) -> None:
    """Also where it is the user's, if the wire form binds or carries results in them."""
    messages = [
        said("user", words("a")),
        said("thought", words("b")),
        said("user", words("c")),
        said("assistant", asks("A")),
        said("user", answers("A", "d"), words("e")),
        said("assistant", asks("B")),
        said("user", answers("B", "d")),
        said("assistant", words("f")),
    ]
    for at, alone in enumerate([True, False, False, False, False, False, False, True]):
        made = History(list(messages), format=TOY)
        made.read(0 if read_before else at)
        assert made.stands_alone(at) is alone


@pytest.mark.parametrize(
    ("options", "states"),
    [
        ({}, ["free", "held"]),
        ({"followed": True}, ["free", "free"]),
        ({"answered": [(1, "A")]}, ["free", "free"]),
        ({"answered": [(1, "B")]}, ["free", "held"]),
        ({"holds": [0]}, ["held", "held"]),
        ({"followed": True, "pending_calls": ["A"]}, ["free", "held"]),
    ],
)
def test_other_blocks_close_calls_and_hold_messages(options: Any, states: list[str]) -> None:
    """A call is open unless messages follow elsewhere, or answer it there."""
    made = History([user(), call("A")], format=OPENAI, protect=False, **options)
    assert [unit.state for unit in made.units] == states
    assert made.may_hold() or "held" not in states


def test_a_call_in_a_message_of_the_users_is_open_too() -> None:
    """Gemini's contents can be broken so; what must stay is not missed."""
    parts = [{"text": "a"}, {"functionCall": {"name": "f", "args": {}}}]
    made = History([{"role": "user", "parts": parts}], format=get_format("gemini"), protect=False)
    assert [unit.state for unit in made.units] == ["held"]
    assert made.may_hold()


def test_results_of_calls_elsewhere_are_nobodys_here() -> None:
    """Though a call here has their id."""
    made = History(talk("cA rA u"), format=OPENAI, protect=False, apart=[(1, "A")])
    assert [unit.indices for unit in made.units] == [(0,), (1,), (2,)]


def test_what_is_pinned_or_unprotected_is_told_after_a_walk_too() -> None:
    """Pins ask for everything; nothing leads where nothing is protected."""
    messages = talk("s u a u")
    assert COUNTER.prices is not None
    pinned = History(messages, format=OPENAI, pins=[1], protect=False)
    assert pinned.may_hold()
    assert pinned.walk(0, 99, [None] * 4, COUNTER.prices) == 0
    assert [unit.state for unit in pinned.units] == ["free", "pinned", "free", "free"]
    assert (pinned.head, read(messages).head) == (0, 1)


def test_an_entry_that_is_no_message_is_named_by_its_place() -> None:
    """Wherever it is looked at."""
    with pytest.raises(FormatError, match=r"messages\[2\]"):
        read([user(), user(), 5, user()]).kind(2)
    with pytest.raises(FormatError, match=r"messages\[1\]: a message must be"):
        read([user(), SimpleNamespace(model_dump=lambda **_: "text"), user()]).kind(1)


def test_words_beside_results_are_the_latest_user_message() -> None:
    """The results in the same message leave with their calls."""
    messages = [
        said("assistant", asks("A")),
        said("user", answers("A", "b"), words("c")),
        said("assistant", words("d")),
    ]
    made = History(messages, format=TOY)
    units = made.units
    assert made.structure.parts_of(1) == {0, 1}
    assert [(unit.indices, unit.parts.get(1), unit.state) for unit in units] == [
        ((0, 1), (0,), "free"),
        ((1,), (1,), "pinned"),
        ((2,), None, "held"),
    ]


def test_an_open_call_at_the_very_beginning_stays() -> None:
    """Where nothing else does; and where it is nothing but a call."""
    for line, stays in (("cA", [0]), ("cA s", [0]), ("cA u", []), ("cA rA", []), ("a", []), ("", [])):
        made = History(talk(line), format=OPENAI, protect=False)
        assert made.may_hold() is bool(stays)
        assert [unit.first for unit in made.units if unit.state != "free"] == stays
    assert History([system(), user()], format=OPENAI).may_hold()
    assert not History([assistant()], format=OPENAI, protect=False).may_hold()


def test_results_before_any_call_have_no_border_before_them() -> None:
    """Then it is the beginning."""
    assert read(talk("rA rB u")).border_at_or_before(1) == 0
    assert read(talk("u rB u")).border_at_or_before(1) == 0
    assert read(talk("rA u rB")).border_at_or_before(2) == 1


@pytest.mark.parametrize(
    ("behind", "ids", "odd", "unanswered"),
    [
        (["A"], ("A",), False, False),
        (["B", "A"], ("A", "B"), False, False),
        (["A", "A"], ("A",), True, False),
        (["A"], ("A", "A"), False, True),
        (["A"], ("A", "B"), False, True),
        (["Z"], ("A",), True, True),
        (["Z"], (), True, False),
    ],
)
def test_results_are_held_to_the_calls_before_them(
    behind: list[str], ids: tuple[str, ...], odd: bool, unanswered: bool
) -> None:
    """One too many, or of no call of the message, is odd; a call too few of them answer is unanswered."""
    structure = Structure(9)
    structure.behind += behind
    structure.close(ids, 4)
    assert (structure.odd == {4}, structure.unanswered == {4}, structure.behind) == (odd, unanswered, [])


def calling(*ids: str, role: str = "assistant") -> dict[str, Any]:
    """Make a message that calls by these ids."""
    return {"role": role, "content": "x", "tool_calls": [{**PLAIN, "id": call_id} for call_id in ids]}


def test_only_the_model_calls() -> None:
    """What a message of the user's holds as calls is none that could be answered."""
    for extra in ({}, {"name": "n"}):
        made, _ = walked([calling("A", role="user") | extra, user()], 0)
        assert made.walked.unanswered == set()


@pytest.mark.parametrize(
    "messages",
    [
        [calling(""), result("")],
        [calling("", "B"), result(""), result("B")],
        [calling("A"), result("Z"), result("A")],
    ],
)
def test_a_result_that_names_no_call_before_it_is_odd(messages: list[Any]) -> None:
    """A call without an id has a number in its place; a result of another call is not passed over."""
    made, _ = walked(messages, 0)
    assert made.walked.odd == {0}
