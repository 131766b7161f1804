"""A session shows what the provider takes, in every wire form, however it was played (SPEC A2, E1, E4)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.builders import words
from tests.judge import FORMS, judge, newly_refused
from tests.judge.talks import talk
from tests.judge.types import check_types
from trimtab import Session
from trimtab.errors import BudgetExceededError, ConfigurationError
from trimtab.formats import Request, get_format
from trimtab.stores import MemoryStore
from trimtab.testing import WordCounter, request_bodies

Message = dict[str, Any]
Body = dict[str, Any]

KEYS = {
    **dict.fromkeys(("openai_chat", "anthropic", "bedrock"), "messages"),
    "openai_responses": "input",
    "gemini": "contents",
}
BUDGETS = (130, pytest.param(260, marks=pytest.mark.long))
every_form = pytest.mark.parametrize("form", FORMS)


def said_in(form: str, body: Body) -> list[Message]:
    """List what is said in a body, without the system messages at its front."""
    messages = list(body[KEYS[form]])
    while messages and messages[0].get("role") in ("system", "developer"):
        messages.pop(0)
    return messages


def conversations(form: str) -> Iterator[tuple[Body, list[Message]]]:
    """Make conversations a provider takes, each with the body they were in."""
    bodies = request_bodies(25, format=form, seed=11, valid=True, max_messages=30)
    for body in (talk(form), talk(form, 15), *bodies):
        if isinstance(body[KEYS[form]], list) and not judge(form, body):
            yield body, said_in(form, body)


def session_of(form: str, budget: int, **options: Any) -> Session:
    """Make a session of words."""
    return Session(budget, system="Be brief.", counter=WordCounter(format=form), format=form, **options)


def summary(messages: list[Any], existing: str | None) -> str:
    """Write a short one."""
    return f"{len(messages)} things were said."


def sent(form: str, body: Body, system: Any, messages: list[Message]) -> Body:
    """Write messages as the body of a request would hold them."""
    head = {key: value for key, value in body.items() if key != KEYS[form]}
    format = get_format(form)
    request = Request(messages=[], system=system, body={**head, KEYS[form]: []}, key=KEYS[form])
    written: Body = format.write_request(request, messages)
    return written


def shown(session: Session, form: str, body: Body) -> Body | None:
    """Write the view as it would be sent; None where what must stay does not fit."""
    try:
        view = session.fit()
    except BudgetExceededError:
        return None
    report = view.report
    assert report.tokens_after is not None
    assert report.tokens_after <= session.budget_tokens
    if report.tokens_before == report.tokens_after:  # nothing was shortened
        assert session.token_count >= report.tokens_after  # what is left out is counted
        left_out = any(note.startswith("Not in view") for note in report.notes)
        assert left_out or session.token_count == report.tokens_after
    assert session.total_message_count >= len(view.messages)
    return sent(form, body, view.system, view.messages)


def begins_with_compaction(messages: list[Message]) -> bool:
    """Tell whether a view begins with what stands for all before it, which may be the model's."""
    content = messages[0].get("content")
    return isinstance(content, list) and content[:1] != [] and content[0].get("type") == "compaction"


def played(session: Session, form: str, body: Body, messages: list[Message]) -> int:
    """Add messages one by one; what is shown after each is taken as far as what was said so far was."""
    views = 0
    for at, message in enumerate(messages, 1):
        session.add(message)
        view = shown(session, form, body)
        if view is None:
            continue
        views += 1
        refused = newly_refused(form, sent(form, body, "Be brief.", messages[:at]), view)
        if begins_with_compaction(view[KEYS[form]]):
            refused = [one for one in refused if one.rule != "first_role"]
        assert not refused, (refused, [event.data for event in session.history()], view[KEYS[form]])
        again = Session.open(session.store, session.id, **functions(session))
        assert again.token_breakdown == session.token_breakdown
        assert again.messages() == session.messages()
    return views


def functions(session: Session) -> dict[str, Any]:
    """Return what no log keeps."""
    options = session._runner.core.in_force
    return {"counter": options.counter, "summarizer": options.summarizer}


@pytest.mark.few(1)
@every_form
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("summarizes", [False, True])
def test_every_view_of_an_agent_is_one_the_provider_takes(form: str, budget: int, summarizes: bool) -> None:
    """Call by call, cut or summarized, and the same for who opens the session again."""
    views, left = 0, 0
    for body, messages in conversations(form):
        session = session_of(form, budget, summarizer=summary if summarizes else None)
        views += played(session, form, body, messages)
        left += session.recent_message_count < len(messages) or session.status().pending_messages > 0
    assert views > 150
    assert left > 3


@every_form
def test_a_session_restored_forked_and_undone_shows_what_the_provider_takes(form: str) -> None:
    """Whichever way it was come by."""
    body = talk(form)
    messages = said_in(form, body)
    session = session_of(form, 300, summarizer=summary, store=MemoryStore())
    session.extend(messages)
    again = Session.restore(session.snapshot(), **functions(session))
    assert again.messages() == session.messages()
    assert again.format.name == form
    for version in range(len(messages) // 2, session.version + 1):
        view = session.fit(at=version)
        before = sent(form, body, "Be brief.", [e.message for e in session.history(before=version + 1)])
        assert not newly_refused(form, before, sent(form, body, view.system, view.messages))
    fork = session.fork(session.version // 2)
    fork.extend(said_in(form, talk(form, 9))[-1:])
    fork.messages()
    session.undo()
    undone = shown(session, form, body)
    assert undone is not None
    assert not judge(form, undone)


@pytest.mark.few(3)
@every_form
@pytest.mark.parametrize("summarizes", [False, True])
def test_a_conversation_taken_off_message_by_message_is_taken_each_time(form: str, summarizes: bool) -> None:
    """Half a call waits, and what is shown was said; the answers that come then are those of its calls."""
    body = talk(form)
    messages = said_in(form, body)
    session = session_of(form, 260, summarizer=summary if summarizes else None, store=MemoryStore())
    session.extend(messages)
    for left in range(len(messages) - 1, -1, -1):
        event = session.pop()
        assert event is not None
        assert event.message == messages[left]
        view = shown(session, form, body)
        whole = sent(form, body, "Be brief.", messages[:left])
        assert view is not None
        if left:
            assert not newly_refused(form, whole, view), (left, view[KEYS[form]])
        again = Session.open(session.store, session.id, **functions(session))
        assert again.messages() == session.messages()
        assert again.token_breakdown == session.token_breakdown
    status = session.status()
    assert (status.recent_messages, status.pending_messages, status.summarized_messages) == (0, 0, 0)


@pytest.mark.few(1)
@every_form
def test_a_redacted_conversation_says_nothing_and_is_taken(form: str) -> None:
    """Word for word gone, in the types of the provider's package; one message of it, and all of it."""
    tried, format = 0, get_format(form)
    for body, messages in conversations(form):
        whole = {**body, KEYS[form]: messages}
        if judge(form, whole) or check_types(form, whole):
            continue
        halves = [list(range(first, len(messages), 2)) for first in (0, 1)]
        for ids in [*([at] for at in range(len(messages))), *filter(None, halves)]:
            some = [format.redact(one) if at in ids else one for at, one in enumerate(messages)]
            made = {**body, KEYS[form]: some}
            assert not check_types(form, made), made
            assert refusals(form, made) == [], made
        everything = redacted(form, messages)
        assert refusals(form, {**body, KEYS[form]: everything}) == [], everything
        assert not words_of(messages) & words_of(everything), words_of(messages) & words_of(everything)
        tried += 1
    assert tried > 8


def refusals(form: str, body: Body) -> list[str]:
    """List the rules a body breaks, but for one.

    Signed thinking can only leave, and a turn that goes on with thinking enabled begins with it.
    """
    return [one.rule for one in judge(form, body) if one.rule != "thinking_must_lead"]


def redacted(form: str, messages: list[Message]) -> list[Message]:
    """Redact all messages of a session, and read them back from its log."""
    session = session_of(form, 100_000)
    session.redact(session.extend(messages))
    return [event.message for event in session.history()]


def words_of(value: Any) -> set[str]:
    """List the longer words anywhere in a message, but for what stays: types, ids, names, one pixel."""
    stays = {
        "type",
        "role",
        "id",
        "call_id",
        "tool_use_id",
        "tool_call_id",
        "name",
        "status",
        "phase",
        "toolUseId",
    }
    stays |= {"outcome", "language", "container_id", "image_url"}
    if isinstance(value, dict):
        return set().union(*(words_of(one) for key, one in value.items() if key not in stays))
    if isinstance(value, list):
        return set().union(*map(words_of, value))
    return {word for word in value.split() if len(word) > 4} if isinstance(value, str) else set()


@every_form
def test_what_left_the_view_is_recalled_by_a_tool_of_the_form(form: str) -> None:
    """The tool stands among the tools of a request, and finds what is not in view."""
    body = talk(form)
    session = session_of(form, 200)
    session.extend(said_in(form, body))
    tool = session.recall_tool()
    assert not judge(form, {**body, "tools": [tool.schema]})
    assert "Question 1" in tool("question 1")


def test_system_text_beside_the_messages_is_counted_and_shown_there() -> None:
    """It is no message, and the breakdown has it among the system's tokens."""
    for form in ("anthropic", "gemini", "openai_responses", "bedrock"):
        session = session_of(form, 100)
        session.add(get_format(form).message("user", ["Hello"]))
        view = session.fit()
        assert (view.system, session.system, len(view.messages)) == ("Be brief.", "Be brief.", 1)
        assert session.token_breakdown.total == view.report.tokens_after
        bare = Session(100, counter=WordCounter(format=form), format=form)
        assert session.token_breakdown.system > bare.token_breakdown.system


def test_a_reasoning_item_leaves_with_the_run_behind_it() -> None:
    """Items are added one by one, and what one response said stays one unit."""
    session = session_of("openai_responses", 100_000)
    items = said_in("openai_responses", talk("openai_responses"))
    events = session.extend(items)
    thoughts = [e for e in events if e.message.get("type") == "reasoning"]
    behind = [events[event.version - events[0].version + 1] for event in thoughts]
    assert [event.data.get("joins") for event in behind] == [event.version for event in thoughts]


def test_a_users_words_beside_results_stay_with_the_call() -> None:
    """One message is the result of a call and the latest thing the user wrote: both stay."""
    session = session_of("anthropic", 120)
    call = {"type": "tool_use", "id": "t1", "name": "look", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "a dog"}
    session.add({"role": "user", "content": "What is there?"})
    session.add({"role": "assistant", "content": [call]})
    session.add({"role": "user", "content": [result, {"type": "text", "text": "and be quick"}]})
    for number in range(40):
        session.add({"role": "assistant", "content": f"still looking, {number} times and more"})
    said = session.messages()
    assert said[0] == {"role": "user", "content": "What is there?"}
    assert said[1]["content"] == [call]
    assert said[2]["content"][0] == result
    assert not judge("anthropic", sent("anthropic", {"model": "claude-haiku-4-5"}, None, said[:3]))


@pytest.mark.parametrize("form", ["anthropic", "gemini", "bedrock"])
def test_an_answer_in_view_has_its_question_in_front(form: str) -> None:
    """The first message of a view is one the provider takes as the first; the question of a turn that is cut
    stays with it.
    """
    format = get_format(form)
    session = session_of(form, 100)
    for number in range(30):
        session.add(format.message("user", [f"question {number} of some words"]))
        session.add(format.message("assistant", [f"answer {number}"]))
        view = session.fit()
        assert format.kind(view.messages[0]) == "user"
        assert session.token_breakdown.total == view.report.tokens_after


@pytest.mark.parametrize("form", ["anthropic", "gemini", "bedrock"])
def test_a_pinned_answer_keeps_its_question(form: str) -> None:
    """Also where both left the view before; and neither is kept once it is unpinned."""
    format = get_format(form)
    session = session_of(form, 100)
    events = session.extend(
        format.message(role, [f"{role} {number} of some words"])
        for number in range(30)
        for role in ("user", "assistant")
    )
    session.pin(events[5])
    said = session.messages()
    assert said[:2] == [events[4].message, events[5].message]
    session.extend([format.message("user", [f"more {n} of some words"]) for n in range(30)])
    assert session.messages()[:2] == said[:2]
    again = Session.open(session.store, session.id, **functions(session))
    assert again.messages() == session.messages()
    session.unpin(events[5])
    session.extend([format.message("user", [f"more {n} of some words"]) for n in range(30)])
    assert events[4].message not in session.messages()


def test_a_compaction_item_stays() -> None:
    """The conversation means nothing without the latest; an older one leaves."""
    session = session_of("openai_responses", 100)
    old, new = ({"type": "compaction", "id": f"cmp_{n}", "encrypted_content": "gAAA"} for n in "ab")
    session.extend([old, new])
    for number in range(40):
        session.add({"role": "user", "content": f"question {number} of some words"})
    said = session.messages()
    assert new in said
    assert old not in said
    again = Session.open(session.store, session.id, **functions(session))
    assert again.messages() == said


def test_a_log_keeps_its_form() -> None:
    """Opened with another form it is an error; with none, or its own, it goes on."""
    store = MemoryStore()
    first = session_of("gemini", 100, store=store, id="s")
    first.add(get_format("gemini").message("user", ["Hello"]))
    with pytest.raises(ConfigurationError, match=r"'gemini'.*format='anthropic'"):
        session_of("anthropic", 100, store=store, id="s").messages()
    kept = Session(200, counter=WordCounter(format="gemini"), store=store, id="s")
    assert kept.format.name == "gemini" or kept.messages()
    assert kept.messages() == first.messages()
    assert (kept.format.name, kept.budget_tokens) == ("gemini", 200)


@pytest.mark.parametrize("form", ["anthropic", "gemini", "bedrock"])
def test_an_anchor_of_the_systems_is_refused_where_there_are_none(form: str) -> None:
    """It would be refused by the provider, in every view."""
    with pytest.raises(ConfigurationError, match=r"anchors\[0\]"):
        session_of(form, 100, anchors=[{"role": "system", "content": "x", "parts": [{"text": "x"}]}])


def test_a_late_result_beside_words_is_shown_as_text_and_the_words_as_they_are() -> None:
    """Its call is gone; an image beside it is still there."""
    session = session_of("anthropic", 1000)
    image = {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}
    result = {"type": "tool_result", "tool_use_id": "gone", "content": "<b>a dog</b>"}
    session.add({"role": "user", "content": [result, {"type": "text", "text": "See?"}, image]})
    (shown,) = session.messages()
    assert shown["content"][0]["text"].startswith('<tool_result of="gone" by="trimtab">\n&lt;b&gt;a dog')
    assert shown["content"][1:] == [{"type": "text", "text": "See?"}, image]
    assert not judge("anthropic", sent("anthropic", {"model": "claude-haiku-4-5"}, None, [shown]))


def test_a_call_behind_its_reasoning_is_open_while_the_system_speaks() -> None:
    """The turn begins with the reasoning it is bound to: neither leaves, though messages follow (A4b)."""
    form = "openai_responses"
    session = Session(100, counter=WordCounter(format=form), format=form)
    reasoning = {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": words(20)}]}
    call = {"type": "function_call", "call_id": "A", "name": "f", "arguments": "{}"}
    session.add({"role": "user", "content": words(30)})
    session.extend([reasoning, call])
    session.add({"role": "developer", "content": words(10)})
    session.add({"role": "developer", "content": words(45)})
    assert [message.get("type", message.get("role")) for message in session.messages()] == [
        "user",
        "reasoning",
        "function_call",
        "developer",
    ]
