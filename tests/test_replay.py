"""Replay: each call of a recording under a policy, what it costs, and what it lacks."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.builders import assistant, call, result, system, talk, user, words
from tests.chat_in_forms import said_in
from tests.response_items import call as item_call
from tests.response_items import output, said, thought
from trimtab import Cascade, ClearToolResults, Context, Session, SlidingWindow, Summarize, TruncateText, fit
from trimtab.errors import BudgetExceededError, ConfigurationError, FormatError
from trimtab.formats import get_format
from trimtab.replay import (
    CachePricing,
    CallRow,
    Evidence,
    ModelCall,
    Question,
    Recording,
    Replayed,
    Totals,
    chart_page,
    pricing_for,
    read_recording,
    replay,
    replay_table,
)
from trimtab.stores import MemoryStore, open_store
from trimtab.summaries import ExtractiveSummarizer, Fact
from trimtab.testing import WordCounter

ANY_PREFIX = CachePricing(read=0.1, write=1.25, min_prefix_tokens=1, lifetime_seconds=300)
"""Serves whatever two calls begin with alike."""


def chat(turns: int, size: int = 10) -> list[dict[str, Any]]:
    """Make a conversation of turns that cannot be mistaken for each other."""
    said_so_far: list[dict[str, Any]] = [system("one two")]
    for turn in range(turns):
        said_so_far += [user(f"q{turn} {words(size - 1)}"), assistant(f"a{turn} {words(size - 1)}")]
    return said_so_far


def played(source: Any, policy: Any = None, **more: Any) -> Replayed:
    """Replay with a token a word."""
    given = {"counter": WordCounter(), "pricing": ANY_PREFIX, **more}
    return replay(source, policy, **given)


# What a model call is.


def test_a_model_is_called_before_each_of_its_messages() -> None:
    """And once more where the conversation waits for it."""
    messages = talk("s2 u5 cA,B rA9 rB4 a3 u1 a2 u7")
    assert [len(one.messages) for one in read_recording(messages).calls] == [2, 5, 7, 9]
    assert [len(one.messages) for one in read_recording(messages[:-1]).calls] == [2, 5, 7]
    twice = talk("u5 a3 a4 u1")  # an answer that went on: each message of Chat is an answer
    assert [len(one.messages) for one in read_recording(twice).calls] == [1, 2, 4]


@pytest.mark.parametrize("form", ["anthropic", "gemini", "bedrock"])
def test_other_forms_have_the_same_calls(form: str) -> None:
    """Results that stand in one message are one step, whatever the form calls roles."""
    messages = said_in(form, talk("u5 cA,B rA9 rB4 a3 u1 a2 u7"))
    found = read_recording(messages)
    assert (found.format.name, [len(one.messages) for one in found.calls]) == (form, [1, 3, 5, 7])


def test_items_of_one_answer_are_one_call() -> None:
    """In Responses a model answers with several items: it was called once for them."""
    messages = [
        {"role": "user", "content": "hi"},
        thought(),
        item_call("a", "fc_1"),
        item_call("b", "fc_2"),
        output("a"),
        output("b"),
        said("done"),
        {"role": "user", "content": "thanks"},
    ]
    assert [len(one.messages) for one in read_recording(messages).calls] == [1, 6, 8]


def test_bodies_are_a_call_each() -> None:
    """What was sent is taken as it is, with its system text and tools."""
    tools = [{"name": "f", "input_schema": {"type": "object"}}]
    bodies = [
        {
            "model": "claude-sonnet-4-5",
            "system": "brief",
            "tools": tools,
            "messages": said_in("anthropic", said_so),
        }
        for said_so in (talk("u5"), talk("u5 a3 u2"))
    ]
    found = read_recording(bodies)
    assert found.format.name == "anthropic"
    assert [(len(one.messages), one.system, one.tools) for one in found.calls] == [
        (1, "brief", tools),
        (3, "brief", tools),
    ]


def test_one_body_is_played_from_its_beginning() -> None:
    """Its system text and tools stand beside each call; times and questions may stand beside its messages."""
    body = {
        "messages": chat(3),
        "times": [0, 1, 2, 3, 4, 5, 6],
        "questions": [{"at": 5, "evidence": [1]}],
        "tools": [],
    }
    found = read_recording(body)
    assert [one.time for one in found.calls] == [1, 3, 5]
    assert found.questions == (Question(at=5, evidence=(1,)),)


def test_a_session_log_is_a_recording(tmp_path: Path) -> None:
    """Its events have the times; a snapshot says the same as the store."""
    store = open_store(f"sqlite:///{tmp_path}/chats.db")
    session = Session(10_000, counter=WordCounter(), system="be brief", store=store, id="ada")
    session.extend(chat(4)[1:])
    by_store = read_recording(list(session.history(kinds=None)))
    by_snapshot = read_recording(json.loads(json.dumps(session.snapshot())))
    assert by_store.calls == by_snapshot.calls
    assert [len(one.messages) for one in by_store.calls] == [2, 4, 6, 8]
    assert [one.calls[0].messages[0]["content"] for one in (by_store, by_snapshot)] == ["be brief"] * 2
    assert [len(one.messages) for one in read_recording(list(session.history())).calls] == [1, 3, 5, 7]
    assert all(one.time is not None for one in by_store.calls)
    store.close()


def spans(*calls: list[dict[str, Any]], reads: tuple[int, ...] = ()) -> dict[str, Any]:
    """Write calls as an export of OpenTelemetry's spans."""

    def attribute(key: str, value: Any) -> dict[str, Any]:
        kind = "intValue" if isinstance(value, int) else "stringValue"
        return {"key": key, "value": {kind: str(value)}}

    made = []
    for number, messages in enumerate(calls):
        attributes = [
            attribute("gen_ai.operation.name", "chat"),
            attribute("gen_ai.input.messages", json.dumps(messages)),
            attribute("gen_ai.system_instructions", json.dumps([{"type": "text", "content": "be brief"}])),
        ]
        if reads:
            attributes.append(attribute("gen_ai.usage.cache_read.input_tokens", reads[number]))
        made.append({"startTimeUnixNano": str((1_000 - number) * 10**9), "attributes": attributes})
    made.append(
        {"startTimeUnixNano": "1", "attributes": [attribute("gen_ai.operation.name", "execute_tool")]}
    )
    return {"resourceSpans": [{"scopeSpans": [{"spans": made}]}]}


QUESTION = {"role": "user", "parts": [{"type": "text", "content": "Weather?"}]}
CALLED = {
    "role": "assistant",
    "parts": [
        {"type": "reasoning", "content": "hm"},
        {"type": "tool_call", "id": "a", "name": "look", "arguments": {"place": "Paris"}},
        {"type": "tool_call", "id": "b", "name": "look", "arguments": {"place": "Rome"}},
    ],
}
ANSWERED = {
    "role": "tool",
    "parts": [
        {"type": "tool_call_response", "id": "a", "response": "rain"},
        {"type": "tool_call_response", "id": "b", "result": {"sky": "blue"}},
    ],
}


def test_spans_are_calls_in_the_order_of_time() -> None:
    """Parallel calls and their results become messages of Chat that a provider would take."""
    found = read_recording(spans([QUESTION, CALLED, ANSWERED], [QUESTION], reads=(512, 0)))
    assert [one.time for one in found.calls] == [999, 1_000]
    assert [one.cold for one in found.calls] == [True, False]
    assert found.calls[1].messages == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "Weather?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "a",
                    "type": "function",
                    "function": {"name": "look", "arguments": '{"place":"Paris"}'},
                },
                {
                    "id": "b",
                    "type": "function",
                    "function": {"name": "look", "arguments": '{"place":"Rome"}'},
                },
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": "rain"},
        {"role": "tool", "tool_call_id": "b", "content": '{"sky":"blue"}'},
    ]


def test_a_list_of_spans_with_plain_attributes_is_read_too() -> None:
    """As exporters to the console and to files write them."""
    one = {"start_time": "2026-11-23T06:00:00+00:00", "attributes": {"gen_ai.input.messages": [QUESTION]}}
    assert read_recording([one]).calls[0].messages == [{"role": "user", "content": "Weather?"}]


@pytest.mark.parametrize(
    "nothing",
    [
        [],
        {"messages": []},
        {"resourceSpans": []},
        [{"attributes": {"gen_ai.operation.name": "chat"}}],
        [{"attributes": {"gen_ai.input.messages": "not json"}}],
        [{"attributes": {"gen_ai.input.messages": '[{"role": "user"}]'}}],
        [assistant("I begin, and nobody asked.")],
        {"messages": chat(1), "questions": [{"at": 1}]},
        "a text",
    ],
)
def test_what_holds_no_call_is_refused(nothing: Any) -> None:
    """An empty table would look like a policy that costs nothing."""
    with pytest.raises((FormatError, ConfigurationError)):
        read_recording(nothing)


def test_times_and_questions_must_go_with_the_messages() -> None:
    """A position beyond the end is a slip in the file."""
    for wrong in ({"times": [1.0]}, {"questions": [Question(at=99, evidence=(1,))]}):
        with pytest.raises(ConfigurationError):
            read_recording(chat(2), **wrong)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="position 4 of 4"):
        read_recording(chat(2), system="be brief", questions=[Question(at=4, evidence=(1,))])
    with pytest.raises(ConfigurationError, match="no evidence"):
        read_recording(chat(2), questions=[Question(at=1, evidence=())])


# What a call costs.


def test_without_trimming_each_call_reads_the_one_before() -> None:
    """Sizes 12, 32, 52: what came is written, all else is read."""
    found = played(chat(3))
    assert [(row.tokens, row.read_tokens, row.write_tokens) for row in found.calls] == [
        (12, 0, 12),
        (32, 12, 20),
        (52, 32, 20),
    ]
    assert found.totals.price == pytest.approx(52 * 1.25 + 44 * 0.1)
    assert (found.totals.evicted, found.totals.cut_moves, found.totals.fill) == (0, 0, None)


def test_dropping_the_oldest_reads_only_what_leads() -> None:
    """Each call over the budget begins anew behind the system message; strides read most of it."""
    each, stride = (
        played(chat(60), policy, budget=202) for policy in (SlidingWindow(), SlidingWindow(target_ratio=0.5))
    )
    assert {row.shared_messages for row in each.calls if row.evicted} == {1}
    assert (each.steady.reuse or 1) < 0.02
    assert (stride.steady.reuse or 0) > 0.75
    assert stride.cost_ratio(each) == pytest.approx(stride.totals.price / each.totals.price)
    assert stride.totals.price < each.totals.price / 2
    assert stride.totals.cut_moves < each.totals.cut_moves / 3


def test_what_is_sent_is_what_fit_sends() -> None:
    """Replay decides nothing by itself."""
    messages = chat(30)
    found = played(messages, SlidingWindow(target_ratio=0.7), budget=150)
    for row in found.calls:
        alone = fit(
            messages[: row.given_messages],
            150,
            counter=WordCounter(),
            strategy=SlidingWindow(target_ratio=0.7),
        )
        assert (row.tokens, row.sent_messages) == (alone.report.tokens_after, len(alone.messages))
        assert row.evicted == len(alone.evicted)


def test_the_cache_forgets_behind_its_lifetime() -> None:
    """Of calls at 0, 300 and 601 seconds the third finds nothing."""
    calls = [ModelCall(messages=chat(3)[:at], time=time) for at, time in ((2, 0.0), (4, 300.0), (6, 601.0))]
    found = played(Recording(calls=tuple(calls), format=get_format("openai_chat")))
    assert [(row.cold, row.read_tokens) for row in found.calls] == [(False, 0), (False, 12), (True, 0)]
    assert found.totals.cold_calls == 1


def test_a_bill_that_says_cold_is_believed() -> None:
    """It knows more than the clock, either way."""
    calls = [
        ModelCall(messages=chat(3)[:at], time=at * 1e6, cold=cold) for at, cold in ((2, None), (4, False))
    ]
    warm = played(Recording(calls=tuple(calls), format=get_format("openai_chat")))
    assert [row.read_tokens for row in warm.calls] == [0, 12]


def test_where_only_marked_places_are_stored_a_prefix_between_them_is_not_served() -> None:
    """Two calls share three messages, but the first was stored whole, and behind its system message."""
    one, other = talk("s9 u5 a6 u7 a8 u9"), talk("s9 u5 a6 u1 a1 u1")
    bodies = [{"messages": one}, {"messages": other}]
    read = {
        marks: played(bodies, pricing=CachePricing(min_prefix_tokens=1, max_breakpoints=marks))
        .calls[1]
        .read_tokens
        for marks in (None, 1, 2, 4)
    }
    assert read == {None: 20, 1: 0, 2: 9, 4: 9}


def test_places_where_earlier_calls_ended_are_found_again() -> None:
    """With three marks a request can point at one of them; with two it cannot."""
    first, second = talk("s9 u5"), talk("s9 u5 a6 u7")
    third = talk("s9 u5 a6 u2")
    bodies = [{"messages": one} for one in (first, second, third)]
    read = {
        marks: played(bodies, pricing=CachePricing(min_prefix_tokens=1, max_breakpoints=marks))
        .calls[2]
        .read_tokens
        for marks in (2, 3)
    }
    assert read == {2: 9, 3: 14}


def test_other_tools_share_nothing() -> None:
    """They stand before all messages."""
    tools = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
    messages = talk("s9 u5 a6 u7")
    found = played([{"messages": messages[:2]}, {"messages": messages, "tools": tools}])
    assert (found.calls[1].shared_messages, found.calls[1].read_tokens) == (0, 0)


def test_summaries_cost_what_their_model_reads_and_writes() -> None:
    """One that needs no model is free; each call of a model is counted."""
    asked: list[int] = []

    def summarize(messages: list[Any]) -> str:
        asked.append(len(messages))
        return "short summary"

    prices = CachePricing(min_prefix_tokens=1, output=5.0)
    strategy = Cascade(Summarize(summarize, max_summary_tokens=30), TruncateText())
    found = played(chat(30), strategy, budget=150, pricing=prices)
    plain = played(
        chat(30), Summarize(ExtractiveSummarizer(), max_summary_tokens=30), budget=150, pricing=prices
    )
    assert found.totals.summarizer_calls == len(asked) > 0
    assert plain.totals.summarizer_calls == plain.totals.summarizer_tokens == 0
    with_summary = [row for row in found.calls if row.summarizer_calls]
    for row in with_summary:
        of_cache = prices.charge(row.tokens, reusable_tokens=row.read_tokens).price
        assert row.price > of_cache + row.summarizer_tokens


# What a policy may be.


def test_a_policy_of_blocks_is_played(tmp_path: Path) -> None:
    """Leading system text goes into the block for it; the budget may be the policy's own."""
    path = tmp_path / "steady.toml"
    path.write_text(
        'budget = 202\n[[blocks]]\nname = "system"\n[[blocks]]\nname = "history"\n'
        'strategy = {kind = "sliding_window", target_ratio = 0.5}\n',
        encoding="utf-8",
    )
    found = played(chat(60), path)
    assert found.policy == "steady"
    assert {row.limit_tokens for row in found.calls} == {202}
    assert found.totals.over_limit == found.totals.invalid == 0
    assert found.steady.calls == sum(row.over_before for row in found.calls) < found.totals.calls
    loaded = played(chat(60), Context(202).add("system", None).add("history", None), name="by hand")
    assert loaded.policy == "by hand"
    assert loaded.totals.evicted > 0


def test_leading_system_text_stays_in_a_policy_without_a_block_for_it() -> None:
    """Each call is sent what a policy that has one sends."""
    alone, beside = Context(202).add("history", None), Context(202).add("system", None).add("history", None)
    found, other = played(chat(60), alone, name="alone"), played(chat(60), beside, name="alone")
    assert found.totals == other.totals
    assert found.totals.evicted > 0


def test_a_file_may_hold_a_strategy(tmp_path: Path) -> None:
    """The same file as for `trimtab fit --strategy`."""
    path = tmp_path / "half.json"
    path.write_text(json.dumps({"kind": "sliding_window", "target_ratio": 0.5}), encoding="utf-8")
    by_file, by_hand = (
        played(chat(40), path, budget=150),
        played(chat(40), SlidingWindow(target_ratio=0.5), budget=150),
    )
    assert by_file.totals == by_hand.totals


def test_a_session_is_played_as_it_would_have_been() -> None:
    """Each call gets the view the session has then."""
    messages = chat(30)

    def make() -> Session:
        return Session(150, counter=WordCounter(), system="one two", store=MemoryStore(), id="x")

    found = played(messages[1:], make)
    session = make()
    seen = iter(found.calls)
    for message in messages[1:]:
        if message["role"] == "assistant":
            row = next(seen)
            view = session.fit()
            assert (row.tokens, row.sent_messages) == (view.report.tokens_after, len(view.messages))
        session.add(message)
    assert found.totals.evicted > 0
    assert found.totals.over_limit == 0


@pytest.mark.few(8)
@pytest.mark.parametrize(
    "policy", ["none", "default", "steady", "session", "session-extractive", "sliding_window"]
)
@pytest.mark.parametrize("form", ["openai_chat", "anthropic", "gemini", "openai_responses", "bedrock"])
def test_words_are_policies_in_every_form(policy: str, form: str) -> None:
    """Nothing invalid leaves any of them, and all but no trimming keep the budget."""
    line = "u5 " + "cA,B rA9 rB4 a30 u4 a30 u3 " * 12
    messages = talk(line)
    if form == "openai_responses":
        messages = [{"role": one["role"], "content": one["content"]} for one in chat(60)[1:]]
    elif form != "openai_chat":
        messages = said_in(form, messages)
    found = played(messages, policy, budget=200, format=form, system="be brief")
    assert found.policy == policy
    assert found.totals.invalid == 0
    assert (found.totals.over_limit > 0) == (policy == "none")
    assert (found.totals.evicted > 0) == (policy != "none")


SESSIONS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({"recall_ratio": 0.3, "target_ratio": 1}, {"recall_ratio": 0.3, "target_ratio": 1}),
    (
        {"summarizer": "extractive", "max_summary_tokens": 40, "summary_role": "user", "pending_first": True},
        {
            "summarizer": ExtractiveSummarizer(),
            "max_summary_tokens": 40,
            "summary_role": "user",
            "pending_first": True,
        },
    ),
    (
        {"summarizer": "extractive", "summary_mode": "anchored", "summarize_threshold_messages": 2},
        {
            "summarizer": ExtractiveSummarizer(),
            "summary_mode": "anchored",
            "summarize_threshold_messages": 2,
        },
    ),
    ({"max_result_ratio": 0.2, "min_recent_tokens": 0}, {"max_result_ratio": 0.2, "min_recent_tokens": 0}),
    ({"max_result_ratio": "auto"}, {}),
    ({"max_result_ratio": "none"}, {"max_result_ratio": None}),
]
"""Sessions as data, and the options that code gives."""


@pytest.mark.few(3)
@pytest.mark.parametrize(("data", "options"), SESSIONS, ids=[str(data) for data, _ in SESSIONS])
def test_a_session_as_data_is_the_one_that_code_makes(
    data: dict[str, Any], options: dict[str, Any], tmp_path: Path
) -> None:
    """As a mapping, as JSON, and in a file of either kind; its schema takes it, too."""
    messages = talk("u5 " + "cA,B rA9 rB4 a30 u4 a30 u3 " * 12)
    made = played(messages, lambda: Session(200, counter=WordCounter(), **options), budget=200)
    given = {"kind": "session", **data}
    file, toml = tmp_path / "s.json", tmp_path / "s.toml"
    file.write_text(json.dumps({"$schema": "./session.schema.json", **given}), encoding="utf-8")
    toml.write_text(
        "".join(f"{key} = {json.dumps(value)}\n" for key, value in given.items()), encoding="utf-8"
    )
    for policy in (given, json.dumps(given), file, str(toml)):
        found = played(messages, policy, budget=200)
        assert [replace(row, summarizer_calls=0) for row in found.calls] == [
            replace(row, summarizer_calls=0) for row in made.calls
        ]  # an extractive summarizer asks no model; of a function nobody knows
    assert found.policy == "s"
    assert played(messages, given, budget=200).policy == " ".join(
        ("session", *(f"{key}={value}" for key, value in data.items()))
    )


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"kind": "session", "recall_ratio": 1}, "recall_ratio is a number from 0 to below 1, not 1"),
        ({"kind": "session", "recall_ratio": float("nan")}, "recall_ratio is a number from 0 to below 1"),
        ({"kind": "session", "max_result_ratio": "all"}, "max_result_ratio is 'auto' or 'none', not 'all'"),
        ({"kind": "session", "max_result_ratio": 0}, "max_result_ratio is a number above 0 and at most 1"),
        ({"kind": "session", "recal_ratio": 0.1}, "did you mean recall_ratio"),
        ({"kind": "session", "summarizer": "mine"}, "summarizer is 'extractive', not 'mine'"),
        (
            {"kind": "session", "max_summary_tokens": 0},
            "max_summary_tokens is a whole number of at least 1",
        ),
        ({"kind": "session", "fact_extractor": "x"}, "no key is called 'fact_extractor'"),
        ({"kind": "session", "budget": 8}, "no key is called 'budget'"),
        ({"session": {"recall_ratio": 0.1}}, "kind = 'session' with its options"),
        ({"kind": "sesion"}, "no strategy is called 'sesion'"),
    ],
)
def test_what_is_no_session_is_refused_with_its_key_and_its_file(
    data: dict[str, Any], said: str, tmp_path: Path
) -> None:
    """Before a call is played; the file is named where there is one."""
    file = tmp_path / "s.json"
    file.write_text(json.dumps(data), encoding="utf-8")
    for policy in (data, file):
        with pytest.raises(ConfigurationError) as caught:
            played(chat(2), policy, budget=100)
        assert said in str(caught.value)
        assert str(caught.value).startswith(str(file)) == (policy is file)


def test_a_session_word_cuts_what_would_take_more_than_half_of_a_view() -> None:
    """Behind it. The word "session" has the options of a `Session`; "none" stands for None in data."""
    messages = talk("u5 cA rA300 a30 u4 a70 u3 a3")
    sizes = [
        [row.tokens for row in played(messages, policy, budget=400).calls]
        for policy in ("session", {"kind": "session", "max_result_ratio": "none"})
    ]
    assert [size <= 400 for size in sizes[0] + sizes[1]] == [True] * 8
    assert sizes[0][1] == sizes[1][1] > 300
    assert sizes[0][2] <= 5 + 2 + 100 + 30 + 4 < 300 < sizes[1][2]


@pytest.mark.parametrize("wrong", [7, object(), lambda: "no session", "slidng_window", "missing.toml"])
def test_what_is_no_policy_is_refused(wrong: Any) -> None:
    """Before a call is played."""
    with pytest.raises(ConfigurationError):
        played(chat(2), wrong, budget=100)


def test_other_libraries_are_functions_of_messages() -> None:
    """What they do wrong is seen: calls without results, and no budget kept."""

    def last_three(messages: list[Any]) -> list[Any]:
        return messages[-3:]

    found = played(talk("s2 u5 cA,B rA9 rB4 a3 u90 a2 u7"), last_three, budget=20)
    assert found.policy == "last_three"
    assert [row.evicted for row in found.calls] == [0, 2, 4, 6]
    assert found.totals.invalid == 1
    assert found.totals.over_limit == 2


def test_sessions_need_calls_that_go_on_from_each_other() -> None:
    """Bodies that were trimmed already are no conversation."""
    for later in ("u1", "u5"):
        bodies = [{"messages": talk("u5 a3 u1")}, {"messages": talk(later)}]
        with pytest.raises(ConfigurationError, match="do not continue each other"):
            played(bodies, "session", budget=200)


def test_a_counter_that_is_a_black_box_will_do() -> None:
    """Prefixes are asked of it whole."""

    def count(messages: list[Any]) -> int:
        return sum(len(str(message["content"]).split()) for message in messages)

    boxed, known = (
        played(chat(20), "default", budget=100, counter=counter) for counter in (count, WordCounter())
    )
    assert boxed.totals.read_tokens == known.totals.read_tokens
    assert boxed.totals.price == pytest.approx(known.totals.price)


# What it lacks.


def test_a_call_that_cannot_be_fitted_is_refused_and_counted() -> None:
    """It costs nothing, and the calls after it go on."""
    messages = [user(words(5)), assistant(words(5)), user(words(500)), assistant("ok"), user("and now")]
    found = played(messages, SlidingWindow(), budget=100)
    assert [row.refused is not None for row in found.calls] == [False, True, False]
    assert found.totals.refused == 1
    with pytest.raises(BudgetExceededError):
        fit(messages[:3], 100, counter=WordCounter(), strategy=SlidingWindow())


def test_faults_of_the_recording_are_not_the_policys() -> None:
    """A call that was never answered is as invalid before as behind."""
    messages = [user("hi"), call("a"), user("never mind"), assistant("ok"), user(words(30)), assistant("so")]
    assert played(messages).totals.invalid == 0
    found = played([{"messages": messages[:1]}, {"messages": [*messages[:1], result("b")]}])
    assert found.totals.invalid == 0


def test_a_cut_that_moves_back_is_seen() -> None:
    """A window that grows shows older messages again, and what stands before them is written anew."""

    class Flips:
        """Keeps little on every other call."""

        name = "flips"
        calls = 0

        def evict(self, request: Any, /) -> Any:
            self.calls += 1
            return SlidingWindow(target_ratio=0.9 if self.calls % 2 else 0.3).evict(request)

    found = played(chat(60), Flips(), budget=202)
    steady = played(chat(60), SlidingWindow(target_ratio=0.5), budget=202)
    assert found.totals.moved_back > 0
    assert steady.totals.moved_back == 0


def zebras(turns: int) -> list[dict[str, Any]]:
    """Make a talk in which each question asks again for what was said long before."""
    said_so_far: list[dict[str, Any]] = []
    for turn in range(turns):
        asked = user(f"q{turn} which stripes has zebra{turn % 5}? {words(9)}")
        said_so_far += [asked, call(f"c{turn}"), result(f"c{turn}", f"r{turn} zebra{turn} {words(20)}")]
        said_so_far.append(assistant(f"a{turn} {words(9)}"))
    return said_so_far


FRONTS: dict[str, dict[str, Any]] = {
    "recalled": {"recall_ratio": 0.3},
    "summary": {"summarizer": ExtractiveSummarizer(), "summary_role": "user"},
    "summary behind what waits": {"summarizer": ExtractiveSummarizer(), "pending_first": True},
    "facts": {"fact_extractor": lambda request: [Fact(text="zebras have stripes", sources=request.ids[:1])]},
    "results cut to their share": {"max_result_ratio": 0.05},
}
"""What a view of a session has that nobody said, or not so."""


@pytest.mark.few(5)
@pytest.mark.parametrize("form", ["openai_chat", "openai_responses", "anthropic", "gemini"])
@pytest.mark.parametrize("options", FRONTS.values(), ids=FRONTS)
def test_the_cut_is_where_the_conversation_begins_in_view(options: dict[str, Any], form: str) -> None:
    """Not what was recalled for a question, a summary or facts; and a result that was cut is in view."""
    messages = zebras(30) if form == "openai_chat" else said_in(form, zebras(30))

    def begin() -> Session:
        return Session(300, counter=WordCounter(), format=form, **options)

    found, session, known, cuts = played(messages, begin, budget=300), begin(), 0, list[int]()
    for one in read_recording(messages).calls:
        session.extend(list(one.messages[known:]))
        known = len(one.messages)
        names = re.findall(
            r"\b([qar]\d+|c\d+)\b", re.sub(r"<(\w+) [^>]*by=.*?</\1>", "", json.dumps(session.messages()))
        )
        given = [set(re.findall(r"\b(?:[qar]\d+|c\d+)\b", json.dumps(one))) for one in one.messages]
        cuts.append(next(at for at in range(known) if all(names_of & set(names) for names_of in given[at:])))
    assert [row.cut for row in found.calls] == cuts
    assert found.totals.cut_moves == sum(a != b for a, b in pairwise(cuts)) < len(found.calls) / 3
    assert found.totals.moved_back == 0


def test_a_mark_that_somebody_said_is_a_message_of_the_conversation() -> None:
    """Recorded elsewhere, or made up: what was sent as it was given counts, whatever it says."""
    mark = '<recalled of="1 earlier message" by="trimtab">\nhi\n</recalled>'
    messages = [message for turn in range(8) for message in (user(f"{turn} {mark}"), assistant(mark))]
    messages += [user(mark), assistant("so"), user("and?")]
    assert {row.cut for row in played(messages, "default", budget=500).calls} == {0}


def test_cleared_results_count_as_sent() -> None:
    """A message in another shape is in view; the cut is where messages are missing."""
    messages = talk("u5 " + "cA rA90 a3 u2 " * 6)
    found = played(messages, ClearToolResults(keep_results=1), budget=300)
    assert {row.cut for row in found.calls} == {0}
    assert found.calls[-1].tokens < sum(90 for _ in range(6))


def test_evidence_is_looked_for_where_its_question_is_asked() -> None:
    """In view is the message itself, or its words inside of another."""
    messages = chat(30)
    questions = [Question(at=59, evidence=(1, 57)), Question(at=3, evidence=(1,))]
    found = replay(
        read_recording(messages, questions=questions),
        "default",
        budget=100,
        counter=WordCounter(),
        pricing=ANY_PREFIX,
    )
    assert [row.evidence for row in found.calls if row.evidence] == [
        Evidence(whole=1, sought=1),
        Evidence(whole=1, sought=2),
    ]
    assert (found.totals.evidence.seen, found.totals.evidence.sought) == (2, 3)
    assert found.totals.evidence_share == pytest.approx(2 / 3)
    assert played(messages).totals.evidence_share is None

    def quotes(gone: list[Any], existing: str | None) -> str:
        return existing or f"{gone[0]['content']} was said"

    quoted = replay(
        read_recording(messages, questions=questions[:1]),
        Summarize(quotes, max_summary_tokens=40),
        budget=100,
        counter=WordCounter(),
    )
    assert quoted.totals.evidence == Evidence(whole=1, retold=1, sought=2)


def test_system_text_of_the_caller_does_not_move_positions() -> None:
    """Evidence is numbered as in the messages that were given."""
    messages = chat(10)[1:]
    recording = read_recording(messages, system="be brief", questions=[Question(at=18, evidence=(0, 16))])
    assert recording.calls[0].messages[0]["role"] == "system"
    found = replay(recording, "default", budget=60, counter=WordCounter())
    assert [row.evidence for row in found.calls if row.evidence] == [Evidence(whole=1, sought=2)]


# What is said of it.


def test_results_are_plain_data_that_add_up() -> None:
    """Sums are those of the rows; several recordings of one policy add up."""
    one, other = played(chat(20), "default", budget=100), played(chat(9), "default", budget=100)
    data = json.loads(json.dumps(one.to_dict()))
    assert data["totals"]["calls"] == len(data["calls"]) == 20
    assert data["totals"]["price"] == pytest.approx(sum(row["price"] for row in data["calls"]))
    assert data["steady"]["calls"] < data["totals"]["calls"]
    both = one + other
    assert (both.recordings, both.totals.calls, both.totals.tokens) == (
        2,
        29,
        one.totals.tokens + other.totals.tokens,
    )
    rows: list[CallRow] = []
    played(chat(3), on_call=rows.append)
    assert [row.index for row in rows] == [0, 1, 2]


def test_the_table_has_a_line_a_policy_and_no_empty_column() -> None:
    """Without questions there is no evidence, and a name cannot steer a terminal."""
    found = [played(chat(30), "default", budget=100), played(chat(30), None, budget=100, name="a\x1b[31mb")]
    table, _, notes = replay_table(found).partition("\n\n")
    head, *lines = table.splitlines()
    assert "evidence" not in head
    assert "cost" in head
    assert len(lines) == 2
    assert len(notes.splitlines()) == 3
    assert "\x1b" not in replay_table(found)
    assert " 1.00" in lines[0]


def test_a_page_of_charts_is_one_file_without_scripts() -> None:
    """It asks no other machine for anything, and names of policies are text, not elements."""
    policies = {"a <script>alert(1)</script>": "default", 'b "& c': None}
    found = [played(chat(30), policy, budget=100, name=name) for name, policy in policies.items()]
    page = chart_page({"<b>one</b>": found, "two": found}, title="A & B")
    root = ElementTree.fromstring(page.removeprefix("<!doctype html>"))
    assert {one.tag for one in root.iter()}.isdisjoint({"script", "link", "img", "b", "iframe"})
    assert not [one for one in root.iter() for key in one.attrib if key in ("src", "href") or key[:2] == "on"]
    drawn = [one for one in root.iter("polyline")]
    assert len(drawn) == 2 * 3 * 2
    assert all(len(str(one.get("points")).split()) == 30 for one in drawn)
    assert [one.text for one in root.iter("h2")][-2:] == ["<b>one</b>", "two"]
    assert "2 recordings, 60 calls · room 100 tokens" in "".join(root.itertext())
    assert "<b>" not in page


def flawed() -> list[Replayed]:
    """Replay a talk under the default, under a strategy that finds nothing to cut, and as it is."""
    names = {"careful": "default", "careless": '{"kind": "clear_tool_results"}', "heedless": None}
    return [played(chat(20), policy, budget=100, name=name) for name, policy in names.items()]


def test_a_policy_that_refuses_or_goes_over_is_not_the_cheapest() -> None:
    """Its cost stands in parentheses, its row below the others, and its calls are named."""
    found = flawed()
    careful, careless, heedless = found
    assert (careful.is_sound, careless.is_sound, heedless.is_sound) == (True, False, False)
    assert careless.totals.refused > 0
    assert heedless.totals.over_limit > 0
    assert careless.totals.price < careful.totals.price
    lines = replay_table(found).splitlines()
    assert f" {careful.cost_ratio(careful):.2f} " in lines[1]
    assert f"({careless.cost_ratio(careful):.2f})" in lines[2]
    assert f"({heedless.cost_ratio(careful):.2f})" in lines[3]
    page = chart_page({"talk": found})
    text = "".join(ElementTree.fromstring(page.removeprefix("<!doctype html>")).itertext())
    assert "Cheapest of those that send every call: careful" in text
    told = f"“careless” refused {careless.totals.refused} calls; “heedless” passed the room at"
    assert f"Not compared: {told} {heedless.totals.over_limit} calls." in text
    refused = [row.index + 1 for row in careless.calls if row.refused is not None]
    assert refused == list(range(refused[0], 21))  # once it has no room it never has
    assert f"careless, {len(refused)} calls refused: calls {refused[0]}–20" in text
    rows = ["".join(row.itertext()) for row in ElementTree.fromstring(page[15:]).iter("tr")][1:]
    assert [next(name for name in ("careful", "careless", "heedless") if name in row) for row in rows] == [
        "careful",
        "careless",
        "heedless",
    ]


def test_nothing_is_said_to_be_cheapest_where_no_policy_sends_every_call() -> None:
    """Then the page says that."""
    _, careless, heedless = flawed()
    assert "No policy sends every call within 100 tokens." in chart_page({"talk": [careless, heedless]})


def test_what_was_not_trimmed_has_no_chart() -> None:
    """All lines would be one; the page says how many there are."""
    short, long = (
        [played(chat(count), policy, budget=100) for policy in ("default", None)] for count in (2, 30)
    )
    page = chart_page({"short": short, "long": long})
    assert page.count("<figure") == 3
    assert "Nothing had to be trimmed in 1 of 2 recordings" in page
    assert ">short<" not in page
    assert chart_page({"short": short}).count("<figure") == 0


def test_a_replay_knows_its_room_model_and_dollars() -> None:
    """Of the model that is named, by its own prices; of several recordings what they have in common."""
    one = replay(chat(6), "default", budget=1_000, model="gpt-4o")
    assert (one.models, one.rooms, one.pricing) == (("gpt-4o",), (1_000,), "gpt-4o")
    assert one.dollars == pytest.approx(one.totals.price * 2.5 / 1e6)  # $2.50 for a million tokens
    other = replay(chat(6), "default", budget=2_000)
    assert (other.models, other.pricing, other.dollars) == ((), "anthropic", None)
    both = one + other
    assert (both.models, both.rooms, both.dollars) == (("gpt-4o",), (1_000, 2_000), None)
    assert (one + one).dollars == pytest.approx(2 * one.totals.price * 2.5 / 1e6)
    mine = CachePricing(name="mine", base=3.0, read=0.3, write=3.75, min_prefix_tokens=0)
    paid = replay(chat(6), "default", budget=1_000, pricing=mine)
    assert paid.dollars == pytest.approx(paid.totals.price / 1e6)


def test_a_replay_draws_itself_and_is_short_as_text() -> None:
    """In a notebook the sums and the charts; as text a line, whatever it holds."""
    careful, careless, _ = flawed()
    assert len(repr(careful)) < 120
    assert str(careful) == repr(careful)
    assert "refused" in repr(careless)
    shown = careless._repr_html_()
    root = ElementTree.fromstring(shown)
    assert len(list(root.iter("figure"))) == 3
    assert "refused" in "".join(root.itertext())
    assert "word word" not in shown


@pytest.mark.parametrize(
    ("tokens", "ticks"),
    [
        (3_000, ["3,000", "2,000", "1,000", "0"]),
        (7, ["8", "6", "4", "2", "0"]),
        (1_001, ["1,500", "1,000", "500", "0"]),
    ],
)
def test_ticks_are_round_numbers(tokens: int, ticks: list[str]) -> None:
    """At most five, none with digits that nobody reads."""
    rows = tuple(CallRow(index=at, given_messages=1, tokens=tokens, evicted=1) for at in range(3))
    sums = Totals(calls=3, tokens=3 * tokens, evicted=3)
    page = chart_page({"one": [Replayed(policy="a", pricing="none", calls=rows, totals=sums, steady=sums)]})
    root = ElementTree.fromstring(page.removeprefix("<!doctype html>"))
    first = next(one for one in root.iter("ul") if one.get("class") == "ticks")
    assert [one.text for one in first] == ticks


# The real bill of a coding session.


def _billed(data_dir: Path) -> tuple[list[ModelCall], int]:
    """Write the recorded usage of a session as calls of the same sizes, and sum its reads.

    Each message is as large as what came with that call; a compaction begins a new conversation. Cold is what
    the bill says of a call that went on from the one before and read nothing.
    """
    row = json.loads((data_dir / "pi_coding_sessions.usage.jsonl").read_text(encoding="utf-8"))
    calls: list[ModelCall] = []
    messages: list[dict[str, Any]] = []
    total = before = 0
    for usage in row["usage"]:
        if usage.get("event") == "compaction":
            messages, before = [], 0
        if "event" in usage:
            continue
        tokens = usage["input"] + usage["cacheRead"] + usage["cacheWrite"]
        messages = [*messages, user(f"{len(calls)} {tokens - before}")]
        calls.append(ModelCall(messages=messages, cold=usage["cacheRead"] == 0))
        total, before = total + usage["cacheRead"], tokens
    return calls, total


def _predicted(calls: list[ModelCall], pricing: CachePricing) -> Replayed:
    def count(messages: list[dict[str, Any]]) -> int:
        return sum(int(message["content"].split()[1]) for message in messages)

    return replay(
        Recording(calls=tuple(calls), format=get_format("openai_chat")), counter=count, pricing=pricing
    )


def test_predicted_reads_are_those_of_a_real_bill(data_dir: Path) -> None:
    """Within 1 % in total where cold starts are known; without lifetimes 2 % more than was read.

    The null model, by which everything that is sent is read, is off by 3 %.
    """
    calls, real = _billed(data_dir)
    pricing = pricing_for("claude-opus-4-5")
    known = _predicted(calls, pricing)
    warm = [ModelCall(messages=one.messages) for one in calls]
    endless = _predicted(warm, pricing)
    assert len(calls) == 469
    assert known.totals.read_tokens / real == pytest.approx(1, abs=0.001)
    assert endless.totals.read_tokens / real == pytest.approx(1.0212, abs=0.001)
    assert known.totals.tokens / real == pytest.approx(1.031, abs=0.001)


def test_predicted_reads_are_right_call_by_call(data_dir: Path) -> None:
    """Of nine calls in ten the prediction is within 20 tokens of what was read: what is sent is stored."""
    calls, _ = _billed(data_dir)
    row = json.loads((data_dir / "pi_coding_sessions.usage.jsonl").read_text(encoding="utf-8"))
    reads = [usage["cacheRead"] for usage in row["usage"] if "event" not in usage]
    found = _predicted(calls, pricing_for("claude-opus-4-5"))
    near = sum(abs(one.read_tokens - real) <= 20 for one, real in zip(found.calls, reads, strict=True))
    assert near / len(reads) > 0.9
