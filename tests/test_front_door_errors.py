"""What is given wrongly at the front door is said there, by name; errors and results can be copied."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from tests.builders import assistant, call, result, system, user
from trimtab import (
    Budget,
    BudgetExceededError,
    CharCounter,
    ConfigurationError,
    CountingError,
    FixedCounter,
    counter_from_text,
    fit,
    group,
    repair,
    validate,
)
from trimtab.errors import FormatError, UnknownNameError

TEN = FixedCounter(10)
TALK = [user("one"), assistant("two"), user("three")]


def fitted(messages: Any = TALK, budget: Any = 99, **options: Any) -> Any:
    """Fit at ten tokens a message."""
    return fit(messages, budget, **{"counter": TEN, **options})


async def later(*_: object) -> int:
    """Answer when it is awaited."""
    return 1


class Later:
    """An object that answers when it is awaited."""

    async def __call__(self, *_: object) -> int:
        """Answer when it is awaited."""
        return 1


NOTHING: Any = None
FIVE: Any = 5
FLOAT: Any = 5.0
FOUR: Any = "4"
LATER: Any = later
LATER_OBJECT: Any = Later()
"""Values no type checker would let pass."""

WRONG: list[tuple[str, Callable[[], object], str]] = [
    ("budget-list", lambda: fitted(budget=[1]), "budget"),
    ("budget-mapping", lambda: fitted(budget={}), "budget"),
    ("budget-text", lambda: fitted(budget="10"), "budget"),
    ("at-list", lambda: fitted().at([1]), "budget"),
    ("at-none", lambda: fitted().at(None), "budget"),
    ("format-none", lambda: fitted(format=None), "format"),
    ("format-number", lambda: validate(TALK, format=FIVE), "format"),
    ("format-group", lambda: group(TALK, format=NOTHING), "format"),
    ("model-number", lambda: fit(TALK, 9, model=FIVE), "model"),
    ("counter-class", lambda: fit(TALK, 9, counter=CharCounter), r"CharCounter\(\.\.\.\)"),
    ("on_trim-number", lambda: fitted(on_trim=5), "on_trim"),
    ("on_trim-async", lambda: fitted(on_trim=later), "on_trim"),
    ("pending-text", lambda: fitted(pending_calls="c1"), r"pending_calls.*\['c1'\]"),
    ("pending-none", lambda: fitted(pending_calls=None), "pending_calls"),
    ("pending-number", lambda: fitted(pending_calls=[1]), "pending_calls"),
    ("pending-group", lambda: group(TALK, pending_calls="c1"), "pending_calls"),
    ("pending-validate", lambda: validate(TALK, pending_calls="c1"), "pending_calls"),
    ("pending-repair", lambda: repair(TALK, pending_calls="c1"), "pending_calls"),
    ("messages-none", lambda: validate(NOTHING), "messages"),
    ("messages-text", lambda: validate("hello"), "messages"),
    ("messages-repair", lambda: repair("hello"), "messages"),
    ("messages-group", lambda: group("hello"), "messages"),
    ("messages-group-body", lambda: group({"messages": TALK}), "messages"),
    ("messages-fit", lambda: fitted(messages=iter(TALK)), "messages"),
    ("system-number", lambda: fitted(system=5), "system"),
    ("system-list", lambda: fitted(system=["k", 5]), "system"),
    ("ratio-text", lambda: CharCounter(FOUR), "chars_per_token"),
    ("ratio-nan", lambda: CharCounter(float("nan")), "chars_per_token"),
    ("ratio-huge", lambda: CharCounter(10**400), "chars_per_token"),
    ("call-tokens-number", lambda: CharCounter(tool_call_tokens=FIVE), "tool_call_tokens"),
    ("call-tokens-async", lambda: CharCounter(tool_call_tokens=LATER), "tool_call_tokens"),
    ("text-function-async", lambda: counter_from_text(LATER), "asynchronously"),
    ("text-object-async", lambda: counter_from_text(LATER_OBJECT), "asynchronously"),
    ("width-text", lambda: fitted().report.to_text(width="80"), "width"),
    ("remove-element", lambda: fitted(on_trim=lambda c: c.remove(c.message_elements[0])), "seq"),
]


@pytest.mark.parametrize(("wrong", "said"), [pytest.param(w, s, id=name) for name, w, s in WRONG])
def test_an_argument_of_the_wrong_kind_is_a_configuration_error(
    wrong: Callable[[], object], said: str
) -> None:
    """It names the argument, and is never a TypeError from inside."""
    with pytest.raises(ConfigurationError, match=said):
        wrong()


def test_an_unknown_format_is_still_an_unknown_name() -> None:
    """A text is a name, right or not."""
    with pytest.raises(UnknownNameError):
        fitted(format="openai_chatt")


@pytest.mark.parametrize("pending", [["c1"], ("c1",), {"c1"}, {"c1": 1}, frozenset({"c1"}), iter(["c1"])])
def test_any_collection_of_ids_is_taken(pending: Any) -> None:
    """A generator is read once, and used for report and units alike."""
    mine = fitted([user(), call("c1"), user()], pending_calls=pending)
    assert [row.state for row in mine.report.messages] == ["free", "held", "pinned"]
    assert [violation.rule for violation in mine.report.violations] == ["open_call"]


@pytest.mark.parametrize("seqs", ["3", ["1"], b"x", 1.0, [1.5, None], [True]])
def test_what_is_no_number_of_a_message_is_ignored(seqs: Any) -> None:
    """SPEC D9: unknown seqs are ignored, of whatever kind."""
    assert fitted(on_trim=lambda context: context.remove(seqs)).messages == TALK


# -- nothing to fit, and too little room


@pytest.mark.parametrize(
    ("messages", "options"),
    [
        ([], {"system": "k"}),
        ([], {"tools": [{"type": "function", "function": {"name": "f"}}]}),
        (TALK, {"tools": [{}], "on_trim": lambda context: context.remove(range(3))}),
        ([result("a")], {"system": "k", "repair": True}),
    ],
    ids=["system", "tools", "callback", "repair"],
)
def test_no_messages_and_no_room_is_a_budget_error(messages: list[Any], options: Any) -> None:
    """What is beside the messages takes ten tokens, and one is there."""
    with pytest.raises(BudgetExceededError) as caught:
        fitted(messages, 1, **options)
    assert caught.value.needed_tokens == 10
    assert caught.value.limit_tokens == 1
    assert caught.value.report.tokens_after == 10


def test_no_messages_and_a_framing_over_the_budget_is_a_budget_error() -> None:
    """A request of no messages costs its framing with a model's own counter."""
    pytest.importorskip("tiktoken")
    with pytest.raises(BudgetExceededError):
        fit([], 1, model="gpt-4o")


# -- system text


@pytest.mark.parametrize("nothing", [None, "", [], ()])
def test_no_system_text_is_no_message(nothing: Any) -> None:
    """An empty system message would be sent and paid for."""
    mine = fitted(system=nothing)
    assert mine.messages == TALK
    assert mine.system is None
    assert mine.report.inserted == ()


PART = {"type": "text", "text": "k"}


@pytest.mark.parametrize(
    ("given", "content"),
    [
        ("k", "k"),
        (PART, [PART]),
        ([PART], [PART]),
        (["k"], "k"),
        ((PART, "l"), [PART, {**PART, "text": "l"}]),
    ],
)
def test_system_text_becomes_the_first_message_and_is_given_out_once(given: Any, content: Any) -> None:
    """Who sends `messages` and `system` does not send it twice."""
    mine = fitted(system=given)
    assert mine.messages == [{"role": "system", "content": content}, *TALK]
    assert mine.system is None
    body = fitted({"model": "m", "messages": TALK}, system=given)
    assert body.system is None
    assert body.request == {"model": "m", "messages": mine.messages}


# -- where an entry is no message


@pytest.mark.parametrize("options", [{}, {"system": "k"}, {"repair": True}, {"pin": [0]}])
@pytest.mark.parametrize("at", range(5))
def test_a_format_error_points_at_the_callers_message(at: int, options: Any) -> None:
    """The first, the last, and one behind leading system messages alike."""
    messages: list[Any] = [system(), system(), system(), user(), user()]
    messages[at] = 5
    with pytest.raises(FormatError, match=rf"messages\[{at}\]") as caught:
        fitted(messages, **options)
    assert caught.value.path == f"messages[{at}]"


@pytest.mark.parametrize("options", [{}, {"system": "k"}])
def test_a_message_that_contains_itself_is_named(options: Any) -> None:
    """A counter cannot write it as JSON, and the error says which one it is."""
    circle: dict[str, Any] = {"role": "assistant", "content": "x"}
    circle["more"] = circle
    with pytest.raises(FormatError, match=r"messages\[1\]") as caught:
        fit([user(), circle, assistant()], 999, counter=counter_from_text(lambda text: 1), **options)
    assert caught.value.path == "messages[1]"


@pytest.mark.parametrize("options", [{}, {"system": "k"}, {"repair": True}])
@pytest.mark.parametrize("ask", [None, lambda context: context.total_tokens])
def test_a_counting_error_points_at_the_callers_message(ask: Any, options: Any) -> None:
    """Whatever was put before it or taken out before it, and whoever asked."""

    class Picky:
        name = "picky"
        exact = False

        def count(self, messages: list[Any]) -> int:
            return sum(map(self.count_message, messages))

        def count_message(self, message: Any) -> int:
            return -1 if message["content"] == "bad" else 1

    messages = [user("one"), result("lost"), user("bad"), user("four")]
    messages = messages if "repair" in options else [messages[0], user("two"), *messages[2:]]
    with pytest.raises(CountingError, match="message 2") as caught:
        fit(messages, 9, counter=Picky(), on_trim=ask, **options)
    assert caught.value.index == 2


# -- copies


def ten_each(messages: list[Any]) -> int:
    """Count ten tokens a message."""
    return sum(10 for one in messages if one["role"])


def over_budget(counter: Any = None, **options: Any) -> BudgetExceededError:
    """Raise and catch the error of a request that is too large."""
    with pytest.raises(BudgetExceededError) as caught:
        fit([system("w " * 50), user("hello")], 1, counter=counter or TEN, **options)
    return caught.value


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
@pytest.mark.parametrize("counter", [TEN, ten_each, CharCounter()])
def test_a_budget_error_survives_copying(copied: Callable[[Any], Any], counter: Any) -> None:
    """With its numbers and its attempt, whatever the counter holds."""
    error = over_budget(counter)
    twin = copied(error)
    assert str(twin) == str(error)
    assert (twin.needed_tokens, twin.limit_tokens, twin.block) == (error.needed_tokens, 1, "history")
    assert twin.attempt.messages == error.attempt.messages
    assert twin.report == error.report


def test_a_budget_error_of_a_models_tokenizer_survives_pickling() -> None:
    """Its counter holds a lock; worker processes hand errors back by pickling."""
    pytest.importorskip("tiktoken")
    with pytest.raises(BudgetExceededError) as caught:
        fit([system("w " * 50), user("hello")], 1, model="gpt-4o")
    twin = pickle.loads(pickle.dumps(caught.value))
    assert twin.needed_tokens == caught.value.needed_tokens
    assert twin.report == caught.value.report


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_fitted_survives_copying_as_what_can_be_read(copied: Callable[[Any], Any]) -> None:
    """Messages, report, request; to count again it needs the counter, and says so."""
    mine = fitted({"messages": TALK, "tools": []}, 25, counter=ten_each)
    twin = copied(mine)
    assert twin.messages == mine.messages == TALK[2:]
    assert twin.request == mine.request
    assert (twin.system, twin.tools, repr(twin)) == (mine.system, mine.tools, repr(mine))
    assert twin.report == mine.report
    assert copied(twin).report == mine.report
    for ask in (lambda: twin.at(50), twin.count_all):
        with pytest.raises(ConfigurationError, match="cop"):
            ask()


def test_a_report_survives_pickling_without_text() -> None:
    """Its rows are made, as plain tuples; no text of a message goes along."""
    mine = fitted([user("secret"), call("a"), result("b"), user("last")], 20)
    data = pickle.dumps(mine.report)
    assert b"secret" not in data
    twin = pickle.loads(data)
    assert type(twin.messages) is tuple
    assert type(twin.violations) is tuple
    assert twin == mine.report
    assert copy.deepcopy(mine.report) == mine.report


def test_a_counting_error_with_an_odd_answer_survives_pickling() -> None:
    """What cannot be pickled is there as it reads."""
    with pytest.raises(CountingError) as caught:
        fit(TALK, 10, counter=lambda messages: lambda: None)
    twin = pickle.loads(pickle.dumps(caught.value))
    assert "lambda" in twin.answer
    assert str(twin) == str(caught.value)


# -- smaller things


def test_after_a_repair_seq_is_the_position_in_the_input() -> None:
    """An orphan in front shifts nothing."""
    messages = [result("x"), user("a"), assistant("b"), user("c")]
    seen: list[Any] = []

    def trim(context: Any) -> None:
        seen.extend((element.seq, element.message) for element in context.message_elements)
        context.remove([0, 2])

    mine = fitted(messages, repair=True, on_trim=trim)
    assert seen == [(1, messages[1]), (2, messages[2]), (3, messages[3])]
    assert mine.messages == [messages[1], messages[3]]
    assert [row.reason for row in mine.report.messages] == ["repair", None, "callback", None]


def test_nothing_but_orphans_repaired_is_nothing_and_the_report_says_so() -> None:
    """A repair comes first; what it takes out was never part of a conversation (design/002)."""
    mine = fitted([result("x"), result("y")], repair=True)
    assert mine.messages == []
    assert [(row.fate, row.reason) for row in mine.report.messages] == [("evicted", "repair")] * 2
    assert any("repair" in note for note in mine.report.notes)
    assert fitted([], repair=True).report.notes == ()


def test_a_fixed_counter_takes_its_three_charges_by_position() -> None:
    """SPEC B2: `FixedCounter(per_message, per_part, per_tool_call)`."""
    assert FixedCounter(10, 2, 3).count([call("a", text="x")]) == 15


def test_a_budget_itself_is_taken_as_it_is() -> None:
    """And a whole float as the number it is."""
    assert Budget.of(Budget(5)) == Budget.of(5) == Budget.of(FLOAT)
