"""`breakpoints`: what comes out is marked for a prompt cache, where it reads, and never too often."""

from __future__ import annotations

import asyncio
import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import assistant, system, user, words
from tests.test_prompt_cache import airline, coding
from trimtab import (
    Budget,
    BudgetExceededError,
    CharCounter,
    ConfigurationError,
    Context,
    Session,
    SlidingWindow,
    Strict,
    afit,
    fit,
    validate,
)
from trimtab.formats import formats, get_format
from trimtab.policy import load_policy, save_policy
from trimtab.replay import replay
from trimtab.testing import WordCounter, request_bodies

MARK = {"type": "ephemeral"}
KEYS = ("cache_control", "prompt_cache_breakpoint", "cachePoint")
MARKED = [name for name in formats() if get_format(name).rules.mark_keys]


def marks_of(value: Any) -> list[Any]:
    """List marks anywhere in plain data, in order."""
    if isinstance(value, list):
        return [mark for one in value for mark in marks_of(one)]
    if isinstance(value, dict):
        inner = [mark for key, one in value.items() if key not in KEYS for mark in marks_of(one)]
        return inner + [value[key] for key in KEYS if key in value]
    return []


def bare(value: Any) -> Any:
    """Copy plain data without marks, a list of one plain text as the text."""
    if isinstance(value, list):
        found = [bare(one) for one in value if not (isinstance(one, dict) and set(one) == {"cachePoint"})]
        texts = [one for one in found if isinstance(one, dict) and set(one) == {"type", "text"}]
        return texts[0]["text"] if len(found) == len(texts) == 1 else found
    if isinstance(value, dict):
        return {key: bare(one) for key, one in value.items() if key not in KEYS}
    return value


def chat(turns: int, size: int = 8) -> list[Any]:
    """Make a chat that the user's words end."""
    said = [one for _ in range(turns) for one in (user(words(size)), assistant(words(size)))]
    return [*said, user(words(size))]


def places(messages: list[Any]) -> list[int]:
    """List the positions of messages with marks."""
    return [at for at, message in enumerate(messages) if marks_of(message)]


@st.composite
def bodies(draw: st.DrawFn, name: str) -> tuple[dict[str, Any], int]:
    """Make a valid body, and a budget for it."""
    seed = draw(st.integers(0, 99_999))
    body = request_bodies(1, format=name, seed=seed, valid=True)[0]
    body.pop("model", None)
    whole = WordCounter(format=name).count(body[get_format(name).rules.body_key])
    return body, max(40, whole * draw(st.integers(20, 120)) // 100)


@pytest.mark.parametrize("name", MARKED)
@given(data=st.data())
def test_a_marked_request_is_valid_and_says_the_same(name: str, data: st.DataObject) -> None:
    """At most four marks with those that were there; the caller's body is as it was; the budget holds."""
    body, limit = data.draw(bodies(name))
    given_body = copy.deepcopy(body)
    mark = data.draw(st.sampled_from((True, {"type": "ephemeral", "ttl": "1h"})))
    try:
        plain = fit(body, limit, counter=WordCounter(format=name), format=name)
    except BudgetExceededError:
        return
    marked = fit(body, limit, counter=WordCounter(format=name), format=name, breakpoints=mark)
    assert body == given_body
    there, now = len(marks_of(plain.request)), len(marks_of(marked.request))
    assert there <= now <= max(4, there)
    assert bare(marked.request) == bare(plain.request)
    assert marked.report.tokens_after <= limit
    faults = [(one.rule, one.index) for one in validate(plain.request, format=name) if one.fault]
    assert [(one.rule, one.index) for one in validate(marked.request, format=name) if one.fault] == faults
    check_fates(marked, body[get_format(name).rules.body_key])
    assert marked.report.compacted == plain.report.compacted


def check_fates(fitted: Any, given_messages: list[Any]) -> None:
    """A row says kept of the very object that was given, changed of a copy, and why."""
    report, there = fitted.report, dict(zip(fitted.positions, fitted.messages, strict=True))
    rows = report.messages
    for row in rows:
        if row.fate != "evicted":
            assert (row.fate == "kept") == (there[row.index] is given_messages[row.index])
        same = row.fate != "evicted" and bare(there[row.index]) == bare(given_messages[row.index])
        assert (row.reason == "cache_mark") == (row.fate == "changed" and same)
    fates = [row.fate for row in rows]
    assert [fitted.positions[at] for at in fitted.changed] == [
        row.index for row in rows if row.fate == "changed"
    ]
    for counted in (report, *([report.blocks[0]] if len(report.blocks) == 1 else [])):
        assert counted.kept_message_count == fates.count("kept")
        assert counted.changed_message_count == fates.count("changed")


@pytest.mark.parametrize("name", MARKED)
def test_a_marked_copy_is_a_changed_message(name: str) -> None:
    """In every form that has marks; one that was shortened as well has the reason for that."""
    form, counter = get_format(name), WordCounter(format=name)
    talk = [form.message(who, [words(9)]) for who in ("user", "assistant", "user", "assistant", "user")]
    for limit in (500, counter.count(talk) - 5):
        fitted = fit(talk, limit, counter=counter, format=name, breakpoints=True)
        check_fates(fitted, talk)
        row = fitted.report.messages[-1]
        assert (row.fate, row.reason, row.state) == ("changed", "cache_mark", "pinned")
        assert not [
            one for one in fitted.at(499).report.messages if one.reason != "cache_mark" and one.reason
        ]
        assert fitted.report.compacted == (limit < 500)
    asked = [talk[0], form.message("assistant", [words(90)])]
    cut = fit(asked, 60, counter=counter, format=name, breakpoints=True)
    check_fates(cut, asked)
    assert cut.report.messages[1].reason == "over_limit"
    assert marks_of(cut.messages[1]) or name == "openai_responses"  # there an answer carries none


def test_a_report_that_is_counted_when_it_is_read_has_the_marks() -> None:
    """Their notes, too, of which the text of a report lost those."""
    long = {"type": "ephemeral", "ttl": "1h"}
    form = get_format("openai_responses")
    talk = [form.message("user", [words(9)]) for _ in range(20)]
    counter = CharCounter(4)
    fitted = fit(talk, counter.count(talk[-3:]), counter=counter, format=form, breakpoints=long)
    assert fitted.report.tokens_before is None
    assert "cache_mark" in str(fitted.report)
    assert "Breakpoints were set without ttl" in str(fitted.report)


def test_the_mark_of_a_block_is_a_change_of_its_message() -> None:
    """As those are that `breakpoints` sets, in a Context and in a session."""
    talk = chat(3)
    made = Context(500, counter=CharCounter(4), format="anthropic", breakpoints=True)
    made.add("history", talk, cache_control="ephemeral").add("question", [user("Why?"), user("How?")])
    fitted = made.fit()
    check_fates(fitted, [*talk, *fitted.messages[len(talk) : -1], user("How?")])
    found = [(row.index, row.fate, row.reason) for row in fitted.report.messages if row.fate != "kept"]
    assert found == [(at, "changed", "cache_mark") for at in places(fitted.messages)]
    assert {6, 8} <= set(places(fitted.messages))
    assert [block.changed_message_count for block in fitted.report.blocks] == [len(found) - 1, 1]
    assert not fitted.report.compacted
    session = Session(500, counter=CharCounter(4), format="anthropic", breakpoints=True)
    session.extend(talk)
    view = session.fit()
    reasons = [row.reason for row in view.report.messages]
    assert [view.positions[at] for at in view.changed] == [at for at, why in enumerate(reasons) if why]
    assert set(reasons) == {None, "cache_mark"}


def test_the_newest_system_text_the_call_before_and_what_stands_before_each_cut() -> None:
    """The four places, in a request of Anthropic's whose first message stays."""
    counter = WordCounter(format="anthropic")
    fitted = fit(
        chat(20),
        100,
        counter=counter,
        format="anthropic",
        system="Be brief.",
        strategy=SlidingWindow(keep_first_user=True),
        breakpoints=True,
    )
    last = len(fitted.messages) - 1
    assert fitted.report.evicted_message_count > 0
    assert places(fitted.messages) == [0, last - 2, last]
    assert fitted.system == [{"type": "text", "text": "Be brief.", "cache_control": MARK}]


@pytest.mark.parametrize("thinks", [False, True])
def test_what_opens_the_turn_that_is_cut_into_is_marked_where_it_is_pinned(thinks: bool) -> None:
    """The next cut may let it go, or keep other thinking beside it; a pin holds it in front of every cut."""
    counter = WordCounter(format="anthropic")
    messages: list[Any] = [user(words(3))]
    for at in range(12):
        thought = (
            [{"type": "thinking", "thinking": "Look.", "signature": "EqQB"}] if thinks and not at else []
        )
        call = {"type": "tool_use", "id": f"c{at}", "name": "look", "input": {}}
        found = {"type": "tool_result", "tool_use_id": f"c{at}", "content": words(6)}
        messages += [{"role": "assistant", "content": [*thought, call]}, user([found])]
    body: dict[str, Any] = {"model": "claude-sonnet-4-5", "max_tokens": 2000, "messages": messages}
    if thinks:
        body["thinking"] = {"type": "enabled", "budget_tokens": 1024}
    free = fit(body, 60, counter=counter, strategy=SlidingWindow(), breakpoints=True)
    pinned = fit(body, 60, counter=counter, strategy=SlidingWindow(), breakpoints=True, pin=[0])
    last = len(free.messages) - 1
    assert free.positions == pinned.positions
    assert free.positions[0] == 0
    assert 0 < free.report.evicted_message_count < 22
    assert places(free.messages) == [last - 2, last]
    assert places(pinned.messages) == [0, last - 2, last]


def test_tools_are_marked_where_there_is_no_system_text() -> None:
    """The last that is not loaded later, since that cannot carry one; given tools are not changed."""
    tools = [{"name": "a", "input_schema": {}}, {"name": "b", "input_schema": {}, "defer_loading": True}]
    given_tools = copy.deepcopy(tools)
    fitted = fit(chat(2), 500, counter=CharCounter(4), format="anthropic", tools=tools, breakpoints=True)
    assert [bool(marks_of(tool)) for tool in fitted.tools] == [True, False]
    assert tools == given_tools


def test_marks_that_are_there_count() -> None:
    """In system text, tools, messages, and the one that has the provider mark the end by itself."""
    marked = {"type": "text", "text": "hi", "cache_control": MARK}
    talk = [{"role": "user", "content": [marked, marked]}, assistant("a"), user("b")]
    body = {"model": "claude-opus-4-5", "system": [marked], "messages": talk}
    fitted = fit(body, 500, counter=CharCounter(4), breakpoints=True)
    assert len(marks_of(fitted.request)) == 4
    assert places(fitted.messages) == [0, 2]
    body = {"model": "claude-opus-4-5", "cache_control": MARK, "system": [marked], "messages": talk}
    fitted = fit(body, 500, counter=CharCounter(4), breakpoints=True)
    assert places(fitted.messages) == [0]


@pytest.mark.parametrize(("ttl", "least"), [("1h", 1), (None, 3)])
def test_long_lived_marks_stand_before_the_others(ttl: str | None, least: int) -> None:
    """The provider refuses them the other way round; what cannot be placed is left out."""
    short = {"type": "text", "text": "hi", "cache_control": MARK}
    long = {"type": "text", "text": "hi", "cache_control": {"type": "ephemeral", "ttl": "1h"}}
    for one in (short, long):
        talk = [user("a"), assistant("b"), {"role": "user", "content": [one]}, assistant("c"), user("d")]
        body = {"system": "Be brief.", "messages": talk}
        mark = True if ttl is None else {"type": "ephemeral", "ttl": ttl}
        fitted = fit(body, 500, counter=CharCounter(4), format="anthropic", breakpoints=mark)
        assert not [fault for fault in validate(fitted.request, format="anthropic") if fault.fault]
        assert len(marks_of(fitted.request)) >= 2


def test_nothing_is_marked_that_cannot_carry_a_mark() -> None:
    """Thinking and empty text: the nearest message before it is."""
    thinking = {"type": "thinking", "thinking": "hm", "signature": "s"}
    talk = [user("a"), assistant("b"), user("c"), {"role": "assistant", "content": [thinking]}]
    fitted = fit(talk, 500, counter=CharCounter(4), format="anthropic", breakpoints=True)
    assert places(fitted.messages) == [2]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"format": "gemini"}, "gemini has no marks"),
        ({"model": "gpt-4o"}, "'gpt-4o' takes no marks"),
        ({"model": "gpt-4o", "format": "openai_responses"}, "'gpt-4o' takes no marks"),
    ],
)
def test_a_cache_that_needs_no_marks_gets_none_and_the_report_says_so(
    options: dict[str, Any], why: str
) -> None:
    """The same call serves every provider."""
    form = get_format(options.get("format", "openai_chat"))
    talk = [form.message("user", ["a"]), form.message("assistant", ["b"]), form.message("user", ["c"])]
    fitted = fit(talk, 500, counter=CharCounter(4), breakpoints=True, **options)
    assert fitted.messages == talk
    assert any(why in note for note in fitted.report.notes)


def test_what_a_mark_cannot_say_is_in_the_report() -> None:
    """OpenAI's breakpoints have no lifetime: marks are set, beside those that are there, with a note."""
    form, long = get_format("openai_responses"), {"type": "ephemeral", "ttl": "1h"}
    talk = [form.message("user", ["a"]), form.message("assistant", ["b"]), form.message("user", ["c"])]
    talk[0] = form.with_cache_control(talk[0], True)
    for mark, notes in ((long, ["Breakpoints were set without ttl: a mark of openai_responses"]), (True, [])):
        fitted = fit(talk, 500, counter=CharCounter(4), format=form, breakpoints=mark)
        assert marks_of(fitted.messages) == [{"mode": "explicit"}] * 2
        for one in (fitted, fitted.at(400)):
            assert [note.partition(" cannot")[0] for note in one.report.notes if "Breakp" in note] == notes
    for name in ("anthropic", "openai_chat"):
        fitted = fit([user("c")], 500, counter=CharCounter(4), format=name, breakpoints=long)
        assert not any("Breakpoints" in note for note in fitted.report.notes)


def test_a_chat_for_a_gateway_is_marked_in_its_system_message() -> None:
    """Where OpenRouter and LiteLLM read marks; a message of empty text is not marked."""
    talk = [system("Be brief."), *chat(3), assistant("x"), user("")]
    fitted = fit(
        talk, 500, counter=CharCounter(4), breakpoints=True, model="claude-sonnet-4-5", format="openai_chat"
    )
    assert places(fitted.messages) == [0, 7, 8] or places(fitted.messages) == [0, 7]
    assert talk[0] == system("Be brief.")


def test_with_room_for_two_marks_the_newest_and_system_text_have_them() -> None:
    """They are worth more than where the call before ended."""
    marked = {"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": MARK}]}
    talk = [
        system("Be brief."),
        marked,
        assistant("a"),
        marked,
        assistant("b"),
        user("c"),
        assistant("d"),
        user("e"),
    ]
    fitted = fit(talk, 500, counter=CharCounter(4), breakpoints=True, format="openai_chat")
    assert places(fitted.messages) == [0, 1, 3, 7]


def letters(messages: list[Any]) -> int:
    """Count as a black box that charges for every letter of JSON, marks too."""
    return len(json.dumps(messages))


@pytest.mark.parametrize("counter", [letters, None])
def test_marks_are_within_the_budget_or_left_out(counter: Any) -> None:
    """The newest is the last to be left out, and the report says how many were."""
    talk = chat(6)
    counts = counter or letters
    seen = set()
    for limit in range(counts(talk), counts(talk) + 400, 10):
        fitted = fit(talk, limit, counter=counts, format="anthropic", breakpoints=True)
        number = len(marks_of(fitted.messages))
        seen.add(number)
        assert counts(fitted.messages) == fitted.tokens_after <= limit
        assert fitted.report.tokens_after == fitted.tokens_after
        assert not number or places(fitted.messages)[-1] == len(talk) - 1
        assert any("no room" in note for note in fitted.report.notes) == (number < 2)
    assert seen == {0, 1, 2}


def test_without_its_marks_a_fit_gives_the_objects_it_was_given() -> None:
    """What an adapter stores has no marks, and is what the framework made."""
    said = [(one["role"], one["content"]) for one in chat(3)]
    fitted = fit(
        said,
        9_000,
        counter=CharCounter(4),
        format="anthropic",
        breakpoints=True,
        read=lambda one: {"role": one[0], "content": one[1]},
        write=lambda one, messages: [(each["role"], each["content"]) for each in messages],
    )
    stored = fitted.settlement.without_marks().messages
    assert len(stored) == len(said)
    assert all(one is other for one, other in zip(stored, said, strict=True))


def test_fitting_what_came_out_again_changes_nothing() -> None:
    """A7: marks that are there are not set again."""
    once = fit(chat(9), 90, counter=WordCounter(), format="anthropic", breakpoints=True)
    again = fit(once.messages, 90, counter=WordCounter(), format="anthropic", breakpoints=True)
    assert again.messages == once.messages


def test_every_door_sets_the_same_marks(tmp_path: Path) -> None:
    """`afit`, another budget, a Context, a policy from a file, and a session."""
    talk, counter = chat(9), WordCounter(format="anthropic")
    options: dict[str, Any] = {"counter": counter, "format": "anthropic", "system": "Be brief."}
    fitted = fit(talk, 90, breakpoints=True, **options)
    assert marks_of(fitted.request if isinstance(fitted.request, dict) else fitted.messages)
    assert asyncio.run(afit(talk, 90, breakpoints=True, **options)).messages == fitted.messages
    assert fit(talk, 60, breakpoints=True, **options).at(90).messages == fitted.messages
    context = Context(90, breakpoints=True, **options).add("history", talk)
    assert context.fit().messages == fitted.messages
    assert context.fit().system == fitted.system
    assert asyncio.run(context.afit()).messages == fitted.messages
    long = {"type": "ephemeral", "ttl": "1h"}
    blocks = Context(90, counter="chars:4", format="anthropic", breakpoints=long)
    save_policy(blocks.add("history", None), tmp_path / "policy.json")
    again = load_policy(tmp_path / "policy.json").replace("history", talk)
    assert marks_of(again.fit().messages)[-1] == long
    session = Session(500, breakpoints=True, **options)
    session.extend(talk)
    view = session.fit()
    assert places(view.messages) == [len(talk) - 3, len(talk) - 1]
    assert marks_of(view.system) == [MARK]


def test_a_session_goes_on_with_its_breakpoints() -> None:
    """As with any option: the log has it."""
    session = Session(500, counter=WordCounter(), format="anthropic", breakpoints=True)
    session.extend(chat(3))
    again = Session.open(session.store, session.id, counter=WordCounter())
    assert places(again.messages()) == [4, 6]
    off = Session(store=session.store, id=session.id, counter=WordCounter(), breakpoints=False)
    assert places(off.messages()) == []


def test_blocks_that_do_not_give_way_are_marked_behind_the_last() -> None:
    """The stable front of a Context; a mark of a block's own counts."""
    context = Context(500, counter=WordCounter(), format="anthropic", breakpoints=True)
    context.add("task", [user("a"), assistant("b")], strategy=Strict())
    context.add("history", chat(3))
    assert places(context.fit().messages) == [1, 6, 8]
    context.add("more", [assistant("x"), user("y")], cache_control="ephemeral")
    assert places(context.fit().messages) == [1, 8, 10]


def test_a_block_does_not_make_a_fifth_mark() -> None:
    """Four blocks with marks leave room for none."""
    context = Context(500, counter=WordCounter(), format="anthropic", breakpoints=True)
    for at in range(4):
        context.add(f"block {at}", [user("a"), assistant("b")], cache_control="ephemeral")
    context.add("question", "c")
    assert len(marks_of(context.fit().messages)) == 4


@pytest.mark.parametrize("value", ["yes", 1, {}, [MARK]])
def test_what_is_no_mark_is_refused(value: Any) -> None:
    """With what to write instead."""
    with pytest.raises(ConfigurationError, match="breakpoints must be True, False, or the mark"):
        fit(chat(1), 500, counter=WordCounter(), breakpoints=value)
    with pytest.raises(ConfigurationError, match="breakpoints must be True, False, or the mark"):
        Context(500, breakpoints=value)


def test_with_a_context_the_whole_request_is_marked_and_not_the_history() -> None:
    """The option is the Context's, and given to the session it is refused."""
    context = Context(Budget(500), counter=WordCounter(), format="anthropic").add("history", None)
    with pytest.raises(ConfigurationError, match="Context\\(breakpoints=True\\)"):
        Session(context=context, breakpoints=True)


def price(talk: list[Any], *, breakpoints: bool) -> float:
    """Price a recorded conversation in a session by Anthropic's rules."""
    counter = CharCounter(4)
    found = replay(
        talk,
        lambda: Session(8_000, counter=counter, breakpoints=breakpoints),
        counter=counter,
        pricing="anthropic",
    )
    assert found.totals.invalid == found.totals.over_limit == 0
    return found.steady.price


@pytest.mark.few(1)
@pytest.mark.parametrize("conversation", [airline, coding])
def test_the_marks_are_where_reads_come_from(data_dir: Path, conversation: Any) -> None:
    """Within a thousandth of what marks would give at every place that an earlier request had one."""
    talk = conversation(data_dir)[:260]
    assert price(talk, breakpoints=True) == pytest.approx(price(talk, breakpoints=False), rel=1e-3)
