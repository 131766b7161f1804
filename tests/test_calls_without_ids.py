"""Calls and results that no id tells apart, as some servers write them: they pair by place (SPEC G)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import result, user, words
from trimtab import BudgetExceededError, Context, Session, fit, repair, validate
from trimtab.conversation import group
from trimtab.stores import MemoryStore
from trimtab.testing import WordCounter

MISSING: Any = object()
IDS = [MISSING, None, "", 3]
PAIR_RULES = {"orphan_result", "repeated_result", "unanswered_call", "late_result"}


def with_id(entry: dict[str, Any], key: str, call_id: Any) -> dict[str, Any]:
    """Give an entry an id, or none."""
    return entry if call_id is MISSING else {**entry, key: call_id}


def chat(call_id: Any, texts: list[str], calls: int = 2) -> list[dict[str, Any]]:
    """Write a turn with calls and so many results, in Chat."""
    function = {"type": "function", "function": {"name": "look", "arguments": "{}"}}
    made = [with_id(function, "id", call_id) for _ in range(calls)]
    results = [with_id({"role": "tool", "content": text}, "tool_call_id", call_id) for text in texts]
    return [{"role": "assistant", "content": None, "tool_calls": made}, *results]


def anthropic(call_id: Any, texts: list[str], calls: int = 2) -> list[dict[str, Any]]:
    """Write the same for Anthropic."""
    use = {"type": "tool_use", "name": "look", "input": {}}
    made = [with_id(use, "id", call_id) for _ in range(calls)]
    results = [with_id({"type": "tool_result", "content": t}, "tool_use_id", call_id) for t in texts]
    return [{"role": "assistant", "content": made}, {"role": "user", "content": results}]


def responses(call_id: Any, texts: list[str], calls: int = 2) -> list[dict[str, Any]]:
    """Write the same as items of Responses."""
    call = {"type": "function_call", "name": "look", "arguments": "{}"}
    output = {"type": "function_call_output"}
    made = [with_id(call, "call_id", call_id) for _ in range(calls)]
    return [*made, *[with_id({**output, "output": text}, "call_id", call_id) for text in texts]]


def gemini(call_id: Any, texts: list[str], calls: int = 2) -> list[dict[str, Any]]:
    """Write the same as contents of Gemini."""
    made = [{"functionCall": with_id({"name": "look", "args": {}}, "id", call_id)} for _ in range(calls)]
    results = [
        {"functionResponse": with_id({"name": "look", "response": {"result": text}}, "id", call_id)}
        for text in texts
    ]
    return [{"role": "model", "parts": made}, {"role": "user", "parts": results}]


def said(form: str, role: str, text: str) -> dict[str, Any]:
    """Write a plain message."""
    if form == "gemini":
        return {"role": "model" if role == "assistant" else role, "parts": [{"text": text}]}
    return {"role": role, "content": [{"text": text}] if form == "bedrock" else text}


def converse(call_id: Any, texts: list[str], calls: int = 2) -> list[dict[str, Any]]:
    """Write the same for Bedrock."""
    made = [{"toolUse": with_id({"name": "look", "input": {}}, "toolUseId", call_id)} for _ in range(calls)]
    results = [{"toolResult": with_id({"content": [{"text": t}]}, "toolUseId", call_id)} for t in texts]
    return [{"role": "assistant", "content": made}, {"role": "user", "content": results}]


FORMS = {
    "openai_chat": chat,
    "anthropic": anthropic,
    "openai_responses": responses,
    "gemini": gemini,
    "bedrock": converse,
}
every_form = pytest.mark.parametrize("form", FORMS)
every_id = pytest.mark.parametrize("call_id", IDS, ids=["missing", "none", "empty", "number"])


def broken_pairs(form: str, messages: list[Any]) -> list[str]:
    """List the pair rules that messages break."""
    return [one.rule for one in validate(messages, format=form) if one.rule in PAIR_RULES]


@every_form
@pytest.mark.parametrize("call_id", [*IDS, "A"], ids=["missing", "none", "empty", "number", "same"])
def test_parallel_calls_that_no_id_tells_apart_stay_with_all_their_results(form: str, call_id: Any) -> None:
    """Or leave with them: at every budget no half of a call is there, and nothing of it was lost before."""
    turn = FORMS[form](call_id, [words(9), words(4)])
    messages = [said(form, "user", "hi"), *turn, said(form, "assistant", "done"), said(form, "user", "go on")]
    assert broken_pairs(form, messages) == []
    counter = WordCounter(format=form)
    kept = set[int]()
    for budget in range(1, counter.count(messages) + 1):
        try:
            fitted = fit(messages, budget, counter=counter, format=form, repair=budget % 2 == 0)
        except BudgetExceededError:
            continue
        there = [message for message in fitted.messages if any(message is one for one in turn)]
        assert broken_pairs(form, fitted.messages) == []
        kept.add(len(there))
    assert kept == {0, len(turn)}


@every_form
@every_id
def test_the_first_result_answers_the_first_call(form: str, call_id: Any) -> None:
    """So of two calls with one result the second waits, and is what a repair takes out."""
    turn = FORMS[form](call_id, ["one"])
    messages = [said(form, "user", "hi"), *turn, said(form, "user", "go on")]
    assert broken_pairs(form, messages) == ["unanswered_call"]
    mended = repair(messages, format=form)
    assert mended.messages == [messages[0], *FORMS[form](call_id, ["one"], calls=1), messages[-1]]
    assert [change.rule for change in mended.changes] == ["unanswered_call"]


@pytest.mark.parametrize("form", ["openai_chat", "anthropic", "openai_responses"])
@every_id
def test_a_result_too_many_answers_nothing(form: str, call_id: Any) -> None:
    """It is an orphan, as is one that does not stand directly behind the calls."""
    messages = [
        said(form, "user", "hi"),
        *FORMS[form](call_id, ["one", "two", "three"]),
        said(form, "user", "x"),
    ]
    assert broken_pairs(form, messages) == ["orphan_result"]
    call, *results = FORMS[form](call_id, ["one"], calls=1)
    apart = [said(form, "user", "hi"), call, said(form, "user", "well?"), *results, said(form, "user", "x")]
    assert sorted(broken_pairs(form, apart)) == ["orphan_result", "unanswered_call"]


@every_id
def test_calls_of_one_turn_are_not_answered_by_the_results_of_the_next(call_id: Any) -> None:
    """A call without a result stays without, however many turns without ids follow."""
    messages = [user(), *chat(call_id, ["one"]), *chat(call_id, ["two", "three"]), user()]
    assert [unit.indices for unit in group(messages)] == [(0,), (1, 2), (3, 4, 5), (6,)]
    assert broken_pairs("openai_chat", messages) == ["unanswered_call"]


@every_id
def test_the_report_names_the_tools_of_calls_without_ids(call_id: Any) -> None:
    """Of the calls and of their results, by the number each call has in its message."""
    rows = fit([user(), *chat(call_id, ["one", "two"]), user()], 99, counter=WordCounter()).report.messages
    assert [row.tool_names for row in rows] == [(), ("look", "look"), ("look",), ("look",), ()]
    assert [row.call_ids for row in rows] == [(), ("call #1", "call #2"), ("call #1",), ("call #2",), ()]


@every_id
def test_a_block_that_ends_in_a_call_without_an_id_is_bound_to_the_result_in_the_next(call_id: Any) -> None:
    """They stay or leave together."""
    call, found = chat(call_id, [words(30)], calls=1)
    made = Context(20, counter=WordCounter())
    made.add("before", [user(), call]).add("results", [found]).add("question", [user("what now")], priority=9)
    assert [message["role"] for message in made.fit().messages] == ["user", "user"]


@every_id
def test_a_session_puts_results_without_ids_to_their_call(call_id: Any) -> None:
    """Shown as they are, not as text of a result whose call is gone."""
    store = MemoryStore()
    session = Session(budget=200, counter=WordCounter(), store=store, id="chat")
    turn = chat(call_id, ["one", "two"])
    session.add(user())
    for message in turn:
        session.add(message)
    session.add(user("go on"))
    assert session.messages() == [user(), *turn, user("go on")]
    again = Session(budget=200, counter=WordCounter(), store=store, id="chat")
    assert again.messages() == session.messages()


def test_a_result_that_names_its_call_does_not_answer_one_without_an_id() -> None:
    """And one without an id does not answer a call that has one."""
    named, unnamed = chat("A", [], calls=1), chat("", ["one"], calls=1)
    messages = [user(), *named, unnamed[1], unnamed[0], result("B"), user()]
    assert sorted(broken_pairs("openai_chat", messages)) == ["orphan_result"] * 2 + ["unanswered_call"] * 2
