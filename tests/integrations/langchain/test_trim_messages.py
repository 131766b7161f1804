"""`trim_messages` by what langchain-core tests of its own, and what is meant by each of its arguments."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from tests.integrations.sdist import module_at, source_of
from trimtab import BudgetExceededError, ConfigurationError, Context
from trimtab.counting import EstimateCounter, FixedCounter
from trimtab.integrations.langchain import trim_messages

TEN = FixedCounter(per_message=10)

FORBIDDEN = {
    # The user's message that opened a turn stays with what is kept of it.
    "last_40_include_system_allow_partial",
    "last_30_include_system_allow_partial_end_on_human",
    # A system message never leaves, nor does the latest message of the user.
    "allow_partial_text_splitter",
    "invoke",
    # The latest message of the user is not cut, and a cut leaves a marker.
    "allow_partial_one_message",
    "last_allow_partial_one_message",
    "partial_text_splitting",
}
"""Tests of langchain-core's that ask for what a rule here forbids; the page of LangChain names each."""


def test_langchains_own_tests_pass_but_for_those_that_a_rule_forbids(tmp_path: Path) -> None:
    """The function takes the place of theirs: what its documentation recommends does the same."""
    theirs = module_at(source_of("langchain-core", tmp_path) / "tests/unit_tests/messages/test_utils.py")
    theirs.trim_messages = trim_messages  # type: ignore[attr-defined]
    start = "test_trim_messages_"
    tests = {name.removeprefix(start): one for name, one in vars(theirs).items() if name.startswith(start)}
    assert len(tests) == 21
    assert {name for name, test in tests.items() if not _passes(test)} == FORBIDDEN


def _passes(test: Callable[[], None]) -> bool:
    try:
        test()
    except (AssertionError, ConfigurationError, BudgetExceededError):
        return False
    return True


def _talk() -> list[BaseMessage]:
    call = {"name": "look", "args": {}, "id": "c"}
    return [
        SystemMessage("s", id="s"),
        AIMessage("Hello.", id="greeting"),
        HumanMessage("one", id="q1"),
        AIMessage("", tool_calls=[call], id="a1"),
        ToolMessage("sun", tool_call_id="c", id="r1"),
        AIMessage("done", id="e1"),
        HumanMessage("two", id="q2"),
        AIMessage("", tool_calls=[{**call, "id": "d"}], id="a2"),
        ToolMessage("rain", tool_call_id="d", id="r2"),
        AIMessage("done", id="e2"),
    ]


def _ids(budget: int, **options: Any) -> str:
    return " ".join(str(one.id) for one in trim_messages(_talk(), budget, counter=TEN, **options))


@pytest.mark.parametrize(
    ("tokens", "options", "kept"),
    [
        (1_000, {"start_on": "human"}, "s q1 a1 r1 e1 q2 a2 r2 e2"),
        (1_000, {"start_on": HumanMessage}, "s q1 a1 r1 e1 q2 a2 r2 e2"),
        (1_000, {"start_on": ("human", "ai")}, "s greeting q1 a1 r1 e1 q2 a2 r2 e2"),
        (70, {"start_on": "human", "steady": False}, "s q1 e1 q2 a2 r2 e2"),
        (70, {"start_on": "human"}, "s q2 e2"),
        (30, {"start_on": ["human"]}, "s q2 e2"),
        (1_000, {"end_on": ("human", "tool")}, "s greeting q1 a1 r1 e1 q2 a2 r2"),
        (1_000, {"end_on": "human"}, "s greeting q1 a1 r1 e1 q2"),
        (40, {"end_on": ("human", "tool"), "start_on": "human"}, "s q2 a2 r2"),
        (20, {"end_on": "human"}, "s q2"),
        (1_000, {"strategy": "first"}, "s greeting q1 a1 r1 e1 q2 a2 r2 e2"),
        (60, {"strategy": "first"}, "s greeting q1 a1 r1 e1"),
        (50, {"strategy": "first"}, "s greeting q1 a1 r1"),
        (40, {"strategy": "first"}, "s greeting q1"),
        (60, {"strategy": "first", "end_on": ("human", "tool")}, "s greeting q1 a1 r1"),
        (60, {"strategy": "first", "end_on": "human"}, "s greeting q1"),
        (20, {"strategy": "first", "end_on": "human"}, "s"),
        (10, {"strategy": "first"}, "s"),
    ],
)
def test_what_is_kept_begins_and_ends_as_asked(tokens: int, options: dict[str, Any], kept: str) -> None:
    """By hand: each message takes ten, and a call stays with its result."""
    assert _ids(tokens, **options) == kept


def test_texts_are_cut_before_whole_messages_leave_if_asked() -> None:
    """A text that does not fit stays in part, from the end that stands beside what is kept."""
    talk = [HumanMessage("left " * 40 + "right", id="old"), AIMessage("ok"), HumanMessage("and?")]
    plain = trim_messages(talk, 40, model="gpt-4o")
    assert "old" not in {one.id for one in plain}
    partly = trim_messages(talk, 40, model="gpt-4o", allow_partial=True)
    assert partly[0].id == "old"
    assert str(partly[0].content).endswith("left right")
    first = trim_messages(talk, 30, model="gpt-4o", strategy="first", allow_partial=True)
    assert [one.id for one in first] == ["old"]
    assert str(first[0].content).startswith("left left")
    assert len(str(first[0].content)) < 200
    assert str(talk[0].content) == "left " * 40 + "right"


def test_blocks_that_do_not_fit_leave_a_message_and_stay_in_the_callers() -> None:
    """They are neither counted nor sent; an empty block that was there is both."""
    blocks: list[Any] = [{"type": "text", "text": text} for text in ("one", "", "three", "four " * 90)]
    talk = [HumanMessage("q"), AIMessage(blocks, id="a"), HumanMessage("and?")]
    kept = trim_messages(talk, 30, model="gpt-4o", strategy="first", allow_partial=True)
    assert kept[-1].content == blocks[:3]
    assert talk[1].content == blocks
    assert trim_messages(talk, 30, model="gpt-4o", strategy="first") == talk[:1]


def test_an_approximate_count_is_named_so() -> None:
    """It is not the count of the model, which may be known."""
    seen: list[Any] = []
    trim_messages(_talk(), 4_000, token_counter="approximate", model="gpt-4o", on_fitted=seen.append)
    report = seen[0].report
    wires = [{"role": "user", "content": "two"}]
    assert (report.counter, report.exact) == ("approximate", False)
    assert EstimateCounter(name="approximate").count(wires) == EstimateCounter().count(wires)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"start_on": "human", "strategy": "first"}, "start_on is only valid with strategy='last'"),
        ({"start_on": "ai"}, "start_on lacks 'human'"),
        ({"start_on": "user"}, "'user' is not a kind of LangChain message: use one of 'human', 'ai'"),
        ({"end_on": 3}, "end_on=3 is no kind"),
        ({"end_on": dict}, "is no kind of LangChain's messages"),
        ({"end_on": "function"}, "end_on: there is no FunctionMessage"),
        ({"start_on": "human", "pin": [1]}, "start_on and pin"),
        ({"allow_partial": True, "strategy": "agent"}, "allow_partial is only valid with strategy='last'"),
        ({"allow_partial": 1}, "allow_partial"),
        ({"strategy": "first", "pin": [1]}, "pin: not with strategy='first'"),
        ({"text_splitter": list, "allow_partial": True}, "text_splitter is langchain-core's"),
        ({"include_system": False}, "a system message never leaves"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_the_line_to_write(options: dict[str, Any], line: str) -> None:
    """Each as soon as it can be known."""
    with pytest.raises(ConfigurationError, match=line):
        _ids(1_000, **options)


def test_a_kind_of_ones_own_is_no_end_of_the_beginning() -> None:
    """The wire does not know it."""

    class Mine(HumanMessage):
        pass

    assert _ids(1_000, end_on=(Mine, "tool")).endswith("a2 r2")
    with pytest.raises(ConfigurationError, match=r"end_on is one of 'human', .* with strategy='first'"):
        _ids(1_000, end_on=Mine, strategy="first")


def test_a_conversation_without_what_it_begins_with_is_refused_and_system_text_alone_is_not() -> None:
    """A request of no message is none."""
    with pytest.raises(ConfigurationError, match="start_on: there is no HumanMessage"):
        trim_messages([SystemMessage("s"), AIMessage("a")], 100, counter=TEN, start_on="human")
    system = SystemMessage("s")
    assert trim_messages([system], 100, counter=TEN, start_on="human") == [system]
    assert trim_messages([], 100, counter=TEN, start_on="human", end_on="human") == []


def test_the_beginning_of_a_context_is_that_of_its_blocks() -> None:
    """They say themselves what leaves."""
    context = Context(100).add("history", [])
    with pytest.raises(ConfigurationError, match="the blocks of a Context say these themselves"):
        trim_messages(_talk(), context, counter=TEN, strategy="first")
