"""What is given wrongly at the front door is said there, by name; errors and results can be copied."""

from __future__ import annotations

import asyncio
import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from tests.builders import assistant, call, result, system, user
from trimtab import (
    Budget,
    BudgetExceededError,
    Cascade,
    CharCounter,
    ConfigurationError,
    Context,
    PriorityBased,
    Session,
    Strict,
    afit,
    counter_from_text,
    fit,
    repair,
    validate,
)
from trimtab.conversation import group
from trimtab.counting import FixedCounter, measure
from trimtab.errors import (
    CountingError,
    FormatError,
    InvalidHistoryError,
    StrategyContractError,
    UnknownNameError,
)
from trimtab.history import message
from trimtab.strategies import EvictionRequest, EvictionResult

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


def add(a: int, b: int) -> int:
    """Add, as a tool of a program would."""
    return a + b


class Model:
    """A message of somebody's SDK."""

    role = "user"

    def model_dump(self) -> dict[str, str]:
        """Give it as data."""
        return {"role": self.role, "content": "hi"}


NOTHING: Any = None
FIVE: Any = 5
RAG: Any = "rag"
ONE: Any = {"role": "user", "content": "hi"}
SCHEMA = {"type": "function", "function": {"name": "add", "parameters": {}}}
FLOAT: Any = 5.0
FOUR: Any = "4"
LATER: Any = later
LATER_OBJECT: Any = Later()
"""Values no type checker would let pass."""

WRONG: list[tuple[str, Callable[[], object], str]] = [
    ("budget-list", lambda: fitted(budget=[1]), "budget"),
    ("budget-mapping", lambda: fitted(budget={}), "budget"),
    ("budget-text", lambda: fitted(budget="ten"), "budget must be a number of tokens"),
    ("at-list", lambda: fitted().at([1]), "budget"),
    ("at-none", lambda: fitted().at(None), "budget"),
    ("format-none", lambda: fitted(format=None), "format"),
    ("format-number", lambda: validate(TALK, format=FIVE), "format"),
    ("format-group", lambda: group(TALK, format=NOTHING), "format"),
    ("model-number", lambda: fit(TALK, 9, model=FIVE), "model"),
    (
        "model-not-needed",
        lambda: Context(model=FIVE, counter=TEN),
        "model must be the name of a model, not 5",
    ),
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
    ("text-function-async", lambda: counter_from_text(LATER), "is async"),
    ("text-object-async", lambda: counter_from_text(LATER_OBJECT), "is async"),
    ("width-text", lambda: fitted().report.to_text(width="80"), "width"),
    ("budget-negative", lambda: fitted(budget=-5), "budget must be at least 1 token, not -5"),
    ("budget-zero", lambda: Context(0), "budget must be at least 1 token, not 0"),
    ("budget-class", lambda: fitted(budget=Budget), "budget must be a number of tokens, such as 8_000"),
    ("one-message", lambda: fitted(user()), r"one message: write \[message\]"),
    ("one-message-object", lambda: fitted(Model()), r"one message: write \[message\]"),
    ("one-message-group", lambda: group(ONE), r"one message: write \[message\]"),
    ("one-message-validate", lambda: validate(user()), r"one message: write \[message\]"),
    ("one-message-repair", lambda: repair(user()), r"one message: write \[message\]"),
    ("one-message-measure", lambda: measure(user()), r"one message: write \[message\]"),
    ("messages-sentence", lambda: fitted("hello"), r"a text: write \[\{'role': 'user'"),
    ("messages-generator", lambda: fitted(iter(TALK)), r"write list\(messages\)"),
    ("message-text", lambda: fitted(["hello"]), "write {'role': 'user', 'content': text}"),
    ("message-pair", lambda: fitted([("user", "hello")]), "write {'role': 'user', 'content': text}"),
    ("messages-nested", lambda: fitted([TALK]), "give the messages it holds one by one"),
    ("tools-function", lambda: fitted(tools=[add]), r"tools\[0\] is the function add: pass its schema"),
    ("tools-builtin", lambda: Context(9, tools=[print]), r"tools\[0\] is the function print"),
    ("tools-class", lambda: measure(TALK, tools=[SCHEMA, Model]), r"tools\[1\] is the class Model"),
    ("tools-one", lambda: fitted(tools=SCHEMA), r"write \[tool\]"),
    ("tools-one-object", lambda: Session(999, tools=Model()), r"write \[tool\]"),
    ("tools-text", lambda: fitted(tools="add"), "tools must be a list of tool schemas, not str"),
    ("tools-nothing", lambda: fitted(tools=[None]), r"tools\[0\] is NoneType"),
    ("tools-clone", lambda: Context(9).clone(tools=[print]), r"tools\[0\] is the function print"),
    ("pin-one", lambda: fitted(pin=lambda m: True), r"pin is called with \(message, index\).*\(m\)"),
    ("pin-message", lambda: fitted(pin=[TALK[0]]), "pin must be positions of messages"),
    ("on_trim-two", lambda: fitted(on_trim=lambda a, b: None), r"on_trim is called with \(context\)"),
    ("on_trim-block", lambda: Context(9).add("a", "b", on_trim=lambda: 1), "on_trim is called with"),
    ("score-one", lambda: PriorityBased(score=str.upper), r"score is called with \(message, place\)"),
    ("hook-one", lambda: Session(999, hooks={"on_evict": str.upper}), r"\(messages, reason\)"),
    ("repair-word", lambda: fitted(repair="yes"), "repair must be True or False"),
    ("strict-word", lambda: fitted(strict=1), "strict must be True or False"),
    ("strict-context", lambda: Context(9, strict=FIVE), "strict must be True or False"),
    ("system-message", lambda: fitted(system=system("k")), "pass the message's content"),
    ("tier-word", lambda: Context(9).add("a", "b", tier=RAG), r"write Tier\.RAG"),
    ("cascade-list", lambda: Cascade([Strict()]), r"a list: write Cascade\(first, second"),  # type: ignore[arg-type]  # wrong on purpose
    ("cascade-class", lambda: Cascade(Strict), r"the class Strict: write Strict\("),  # type: ignore[arg-type]  # wrong on purpose
    ("strategy-name", lambda: fitted(strategy="dorp"), r"no strategy is called 'dorp'.*mean drop"),
    ("strategy-needs-more", lambda: fitted(strategy="cascade"), "steps must be a list of strategies"),
    ("cascade-name", lambda: Cascade("drop"), r"its name: write create_strategy\('drop'\)"),  # type: ignore[arg-type]  # wrong on purpose
    ("strategy-data", lambda: fitted(strategy={"kind": "drop"}), r"write create_strategy\(\{"),
    ("message-part", lambda: message("user", 5), "a part of a message must be a text or a mapping"),
    ("message-role", lambda: message(NOTHING, "hi"), "a message needs a role"),
    ("remove-element", lambda: fitted(on_trim=lambda c: c.remove(c.message_elements[0])), "seq"),
]


@pytest.mark.parametrize(("wrong", "said"), [pytest.param(w, s, id=name) for name, w, s in WRONG])
def test_an_argument_of_the_wrong_kind_is_a_configuration_error(
    wrong: Callable[[], object], said: str
) -> None:
    """It names the argument, says what to write, and is never a TypeError from inside."""
    with pytest.raises((ConfigurationError, FormatError), match=said):
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


class Breaking:
    """A strategy that answers what is no result."""

    name = "mine"

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def evict(self, request: EvictionRequest, /) -> EvictionResult:
        """Give the answer, or raise it."""
        if isinstance(self.answer, Exception):
            raise self.answer
        answer: EvictionResult = self.answer
        return answer


def test_a_breach_of_contract_says_which_block_it_was_asked_about() -> None:
    """A context may have many blocks with one strategy; in `fit` the block is the history."""
    breaking = Breaking(None)
    context = Context(25, counter=TEN).add("documents", TALK, strategy=breaking).add("question", "Why?")
    with pytest.raises(StrategyContractError, match="block 'documents': strategy mine returned") as caught:
        context.fit()
    assert (caught.value.block, caught.value.strategy) == ("documents", "mine")
    with pytest.raises(StrategyContractError, match="block 'history'") as caught:
        fitted(budget=15, strategy=breaking)
    assert caught.value.block == "history"


def test_what_a_strategy_raises_goes_on_with_a_note_that_says_where() -> None:
    """The error is the strategy's own; which of several blocks it was asked about nobody else knows."""
    with pytest.raises(KeyError) as caught:
        fitted(budget=15, strategy=Breaking(KeyError("score")))
    assert caught.value.__notes__ == ["raised by strategy mine for block 'history'"]


class Answer:
    """What an SDK returns: the message is in it, and it is none."""

    def __init__(self, **held: object) -> None:
        self.held = held

    def model_dump(self) -> dict[str, object]:
        """Give it as data."""
        return self.held


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Answer(id="c", choices=[]), r"a whole Answer, not a message: append answer\.choices\[0\]\.message"),
        (Answer(id="r", output=[]), r"extend the list by answer\.output"),
        (Answer(candidates=[]), r"append answer\.candidates\[0\]\.content"),
        (Answer(finish_reason="stop", message={"role": "assistant"}), r"append choice\.message"),
    ],
    ids=["chat", "responses", "gemini", "choice"],
)
def test_a_whole_answer_in_place_of_a_message_says_where_the_message_is(answer: Any, said: str) -> None:
    """In `fit`, `Context`, `repair` and a session; it was counted as JSON and sent on."""
    for take in (
        lambda: fitted([*TALK, answer]),
        lambda: Context(99, counter=TEN).add("history", [*TALK, answer]).fit(),
        lambda: repair([*TALK, answer]),
        lambda: Session(999, counter=TEN).add(answer),
    ):
        with pytest.raises(FormatError, match=said):
            take()
    with pytest.raises(FormatError) as caught:
        fitted([*TALK, answer])
    assert caught.value.path == "messages[3]"


# -- strict


ORPHAN = [user("one"), result("lost"), user("three")]


@pytest.mark.parametrize(
    "ask",
    [
        lambda **options: fit(ORPHAN, 99, counter=TEN, **options),
        lambda **options: fit({"messages": ORPHAN}, 99, counter=TEN, **options),
        lambda **options: asyncio.run(afit(ORPHAN, 99, counter=TEN, **options)),
        lambda **options: Context(99, counter=TEN, **options).add("history", ORPHAN).fit(),
        lambda **options: Context(99, counter=TEN).clone(**options).add("history", ORPHAN).fit(),
    ],
    ids=["fit", "body", "afit", "context", "clone"],
)
def test_a_strict_fit_refuses_what_the_provider_would(ask: Callable[..., Any]) -> None:
    """Without it the same input is fitted, and the report lists the fault."""
    with pytest.raises(InvalidHistoryError, match="lost") as caught:
        ask(strict=True)
    assert (caught.value.index, caught.value.call_id) == (1, "lost")
    assert [one.rule for one in caught.value.violations] == ["orphan_result"]
    assert [one.rule for one in ask().report.violations] == ["orphan_result"]
    twin = pickle.loads(pickle.dumps(caught.value))
    assert (str(twin), twin.violations) == (str(caught.value), caught.value.violations)


def test_a_strict_fit_takes_what_is_no_fault() -> None:
    """A valid conversation, an open call, and what a repair has mended."""
    assert fitted(strict=True).messages == TALK
    waiting = [user("one"), call("c1")]
    assert fitted(waiting, strict=True).messages == waiting
    assert fitted(ORPHAN, strict=True, repair=True).messages == [ORPHAN[0], ORPHAN[2]]


def test_a_strict_fit_names_the_first_three_faults_and_counts_the_rest() -> None:
    """The text stays short; `.violations` has all of them."""
    orphans = [result(name) for name in "abcde"]
    with pytest.raises(InvalidHistoryError, match=r"5 faults.*; and 2 more") as caught:
        fitted([user(), *orphans], strict=True)
    assert [one.call_id for one in caught.value.violations] == list("abcde")
    assert "'c'" in str(caught.value)
    assert "'d'" not in str(caught.value)
    with pytest.raises(InvalidHistoryError) as caught:
        fitted([user(), *orphans[:3]], strict=True)
    assert "more" not in str(caught.value)


def test_a_strict_fit_says_once_what_is_wrong_in_many_places() -> None:
    """The same sentence about other messages tells nothing new; they are counted."""
    twice = [{"type": "reasoning", "id": "rs_1", "summary": []}, {"role": "user", "content": "so"}]
    with pytest.raises(InvalidHistoryError, match=r"9 faults.*; and 7 more") as caught:
        fitted([user(), *twice * 5], format="openai_responses", strict=True)
    assert str(caught.value).count("rs_1") == 2  # twice there, and without what has to follow it


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
