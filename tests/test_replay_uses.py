"""Replay: what the model's messages take from results and from anything earlier, and what is in view."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests import response_items
from tests.builders import assistant, result, system, user, words
from tests.chat_in_forms import said_in
from tests.recorded_logs import ClaudeLog, Rollout
from tests.result_chats import FORMS
from trimtab import Session
from trimtab.replay import (
    ModelCall,
    Recording,
    Replayed,
    Tally,
    Use,
    Uses,
    chart_page,
    find_canaries,
    plant_canaries,
    read_recording,
    replay,
    replay_table,
)
from trimtab.strategies import ClampResults, ClearToolResults, Summarize
from trimtab.testing import WordCounter

FOUND = '{"order": "ORD-7731", "total": 1234, "file": "/srv/out/report.csv"}'


def called(tool: str, call_id: str, arguments: str = "{}") -> dict[str, Any]:
    """Make a message that calls a tool by name."""
    function = {"name": tool, "arguments": arguments}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": call_id, "type": "function", "function": function}],
    }


def orders() -> list[dict[str, Any]]:
    """Make a conversation with three uses: two by the next answer, a path by the one two calls later."""
    return [
        user("Where is my order?"),
        called("lookup", "c1"),
        result("c1", FOUND),
        assistant("It is ORD-7731, for 1,234."),
        user("And the other?"),
        called("search", "c2", '{"for": "order ORD-7731"}'),
        result("c2", "nothing"),
        assistant("See out/report.csv."),
    ]


def in_form(form: str) -> list[Any]:
    """Write it in a wire form."""
    if form == "openai_chat":
        return orders()
    if form != "openai_responses":
        return said_in(form, orders())
    return [
        response_items.user([{"type": "input_text", "text": "Where is my order?"}]),
        response_items.call("c1", name="lookup"),
        response_items.output("c1", FOUND),
        response_items.said("It is ORD-7731, for 1,234."),
        response_items.user([{"type": "input_text", "text": "And the other?"}]),
        response_items.call("c2", name="search", arguments='{"for": "order ORD-7731"}'),
        response_items.output("c2", "nothing"),
        response_items.said("See out/report.csv."),
    ]


def played(source: Any, policy: Any = None, budget: int = 10_000, **options: Any) -> Uses:
    """Replay with a token a word."""
    return replay(source, policy, budget=budget, counter=WordCounter(), **options).uses


def newest(count: int) -> Callable[[list[Any]], list[Any]]:
    """Make a policy that shows the newest messages alone."""
    return lambda messages: messages[-count:]


def taken(found: str, said: str, *, before: str = "Hello.") -> list[tuple[str, str]]:
    """List the kinds and texts of what an answer takes from a result: all that is lost without it."""
    chat = [user(before), called("f", "c1"), result("c1", found), user("So?"), assistant(said)]
    return sorted((one.kind, one.text) for one in played(chat, newest(1)).lost)


# What is counted.


@pytest.mark.parametrize("form", FORMS)
def test_uses_are_counted_in_every_wire_form(form: str) -> None:
    """Three details are from results alone; `ORD-7731` in the second call was said by the model."""
    messages = in_form(form)
    kept = played(messages, format=form)
    assert kept.total == Tally(sought=3, lost=0)
    assert kept.by_tool == {"lookup": Tally(sought=3)}
    assert kept.by_age == {"next call": Tally(sought=2), "2–5 calls": Tally(sought=1)}
    assert kept.by_kind == {"identifier": Tally(sought=1), "number": Tally(sought=1), "path": Tally(sought=1)}
    assert kept.needs == Tally(sought=4, lost=0)  # these, and the id that the second call says again
    lost = played(messages, newest(2), format=form)
    assert lost.lost == (Use(text="out/report.csv", kind="path", call=3, age=3, tool="lookup", result="c1"),)
    assert lost.needs == Tally(sought=4, lost=1)
    assert lost.share == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("found", "said", "uses"),
    [
        ("user_id 4WQ150 getUser", "4WQ150 is user_id; getUser", ["4WQ150", "getUser", "user_id"]),
        ("on 2024-05-20", "It is 2024-05-20.", ["2024-05-20"]),
        ("the well-known return on the 20th of May", "The well-known return on the 20th of May", []),
        ("ab1 x_y", "ab1 and x_y", []),
        ("a b-c", "b-c", []),
    ],
)
def test_an_identifier_is_no_word_of_a_language(found: str, said: str, uses: list[str]) -> None:
    """It is joined, has digits or a capital inside, and four signs; two texts share others by chance."""
    assert taken(found, said) == [("identifier", one) for one in uses]


@pytest.mark.parametrize(
    ("found", "said", "uses"),
    [
        ("12 and 123", "12 and 123", ["123"]),
        ("1234", "about 1,234", ["1234"]),
        ("1,234.50 EUR", "1234.5 EUR", ["1234.5"]),
        ('{"rows": [100,200, 300]}', "200", ["200"]),
        ("[100,200,300]", "it was 200, in the middle", ["200"]),
        ("50.00 and 3.141", "50 and 3.141", ["3.141"]),
        ("1234", "12345", []),
        (",".join(f"{number}9" for number in range(10, 400)), "it was 2579, the other", ["2579"]),
    ],
)
def test_a_number_has_three_digits_however_it_is_written(found: str, said: str, uses: list[str]) -> None:
    """Commas of thousands and zeros at the end are no other number."""
    assert taken(found, said) == [("number", one) for one in uses]


@pytest.mark.parametrize(
    ("found", "said", "uses"),
    [
        ("/repo/src/a.py:12: x", "Open src/a.py.", ["src/a.py"]),
        ("src/a.py", "Open ./src/a.py", ["src/a.py"]),
        ("./lib/deep/b_1.rs\n./lib/deep/c.rs", "in lib/deep/b_1.rs", ["lib/deep/b_1.rs"]),
        ("lib/deep/b.rs", "look at /lib/deep", ["lib/deep"]),
        ("yes and/or no", "yes and/or no", []),
        ("2024/05/2", "2024/05/2", [("number", "2024")]),
        ("src/a.py", "src/b.py", []),
        ("data:image/png;base64," + "abc/d0" * 90, "abc/d0" * 90, []),
    ],
)
def test_a_path_counts_as_a_path_and_by_its_end(found: str, said: str, uses: list[Any]) -> None:
    """A listing of paths has no lines; who knows the folder writes the end."""
    assert taken(found, said) == [one if isinstance(one, tuple) else ("path", one) for one in uses]


@pytest.mark.parametrize(
    ("found", "said", "uses"),
    [
        ("a\n    def add(self, rows):\nb", "def add(self, rows):", ["def add(self, rows):"]),
        ("  12\tdef add(self, rows):", "def add(self, rows):", ["def add(self, rows):"]),
        ("a.py:12:    def add(self, rows):", "  def add(self, rows):", ["def add(self, rows):"]),
        ("12| def add(self, rows):", "def add(self, rows):", ["def add(self, rows):"]),
        ('{"text": "one\\nthe quick  brown fox jumps\\nx"}', "the quick brown fox jumps", None),
        ('…"one\\nthe quick brown fox jumps\\nx"', "the quick brown fox jumps", None),
        ("return None", "return None", []),
        ("the quick brown fox jumps over", "the quick brown fox jumps", []),
    ],
)
def test_a_line_is_seen_through_numbers_and_escapes(found: str, said: str, uses: list[str] | None) -> None:
    """It has twenty signs; blanks are folded, and JSON is read, also if it was cut."""
    expected = ["the quick brown fox jumps"] if uses is None else uses
    assert taken(found, said) == [("line", one) for one in expected]


def test_json_may_be_laid_out_in_another_way() -> None:
    """Keys and values are looked for, not lines of it."""
    loose = json.dumps({"name": "the quick brown foxes", "order_id": [{"n": 4711}]}, indent=2)

    def tight(messages: list[Any]) -> list[Any]:
        written = json.dumps(json.loads(loose), separators=(",", ":"))
        return [{**one, "content": written} if one["role"] == "tool" else one for one in messages]

    said = '"name": "the quick brown foxes", order_id 4711\nthe quick brown foxes'
    chat = [user(), called("f", "c1"), result("c1", loose), assistant(said)]
    one = Tally(sought=1)
    assert played(chat, tight).by_kind == {"identifier": one, "number": one, "line": one}
    assert played(chat, newest(1)).total == Tally(sought=3)


@pytest.mark.parametrize("before", ["Is it ORD-7731?", "ORD-7731 it is"])
def test_what_somebody_said_before_is_no_use(before: str) -> None:
    """Then it is in the result as well, and a need."""
    assert taken("ORD-7731", "ORD-7731", before=before) == []
    chat = [user(before), called("f", "c1"), result("c1", "ORD-7731"), assistant("ORD-7731")]
    assert played(chat).needs == Tally(sought=1)
    assert played(chat, newest(1)).needs == Tally(sought=1)  # the result has it still
    assert played([*chat[:3], user("So?"), chat[3]], newest(1)).needs == Tally(sought=1, lost=1)


def test_system_text_and_tools_count_as_said_and_are_in_view() -> None:
    """They stand beside what is evicted."""
    chat = [user(), called("f", "c1"), result("c1", "ORD-7731 and max_rows"), user("So?")]
    chat += [assistant("max_rows of ORD-7731")]
    schema = {"type": "function", "function": {"name": "f", "parameters": {"max_rows": {"type": "integer"}}}}
    found = played(chat, newest(1), system="Orders look like ORD-7731.", tools=[schema])
    assert found.total == Tally()
    # The system text of Chat is a message, which this policy hides; the schema is always sent.
    assert found.needs == Tally(sought=2, lost=1)


def test_keys_of_arguments_are_not_taken_and_their_values_are() -> None:
    """The schema of the tool gives the keys."""
    chat = [user(), called("f", "c1"), result("c1", "order_id is ORD-7731")]
    chat += [called("g", "c2", '{"order_id": "ORD-7731"}')]
    assert played(chat).by_kind == {"identifier": Tally(sought=1)}


def test_what_the_model_thinks_is_not_written() -> None:
    """Only texts and arguments are; what it thought is said before the next message."""
    chat = [user(), called("f", "c1"), result("c1", "ORD-7731")]
    chat += [{**assistant("Hm."), "reasoning_content": "ORD-7731"}, user("So?"), assistant("ORD-7731")]
    assert played(chat).total == Tally()
    assert played(chat).needs == Tally(sought=1)


def test_each_detail_is_a_use_once_of_its_newest_result() -> None:
    """A result that was read again is the one it is from."""
    chat = [user(), called("old", "c1"), result("c1", "ORD-7731"), assistant("Hm."), user("Again.")]
    chat += [called("new", "c2"), result("c2", "ORD-7731"), assistant("ORD-7731 ORD-7731"), user("Sure?")]
    chat += [assistant("ORD-7731")]
    found = played(chat)
    assert found.by_tool == {"new": Tally(sought=1)}
    assert found.by_age == {"next call": Tally(sought=1)}
    assert found.needs == Tally(sought=2)


@pytest.mark.parametrize(
    ("turns", "age"),
    [
        (0, "next call"),
        (1, "2–5 calls"),
        (4, "2–5 calls"),
        (5, "6–20 calls"),
        (19, "6–20 calls"),
        (20, "over 20 calls"),
    ],
)
def test_age_is_the_calls_that_had_the_result(turns: int, age: str) -> None:
    """The next call is the first."""
    chat = [user(), called("f", "c1"), result("c1", "ORD-7731")]
    for _ in range(turns):
        chat += [assistant("Wait."), user("And?")]
    assert played([*chat, assistant("ORD-7731")]).by_age == {age: Tally(sought=1)}


@pytest.mark.parametrize("form", ["anthropic", "gemini", "bedrock"])
def test_results_in_one_message_are_told_apart(form: str) -> None:
    """Each detail is of the tool whose part has it."""
    both = {**called("first", "c1"), "tool_calls": []}
    both["tool_calls"] = [*called("first", "c1")["tool_calls"], *called("second", "c2")["tool_calls"]]
    chat = [
        user(),
        both,
        result("c1", "ORD-7731"),
        result("c2", "REF-8842 4711"),
        assistant("ORD-7731, REF-8842"),
    ]
    found = played(said_in(form, chat), format=form)
    assert found.by_tool == {"first": Tally(sought=1), "second": Tally(sought=1)}


def test_numbers_beside_the_texts_of_a_result_are_its_own() -> None:
    """Gemini's responses are objects, of which only texts may be shortened."""
    part = {"functionResponse": {"id": "c1", "name": "f", "response": {"total": 4711, "at": ["ORD-7731"]}}}
    chat = [
        {"role": "user", "parts": [{"text": "hi"}]},
        {"role": "model", "parts": [{"functionCall": {"id": "c1", "name": "f", "args": {}}}]},
        {"role": "user", "parts": [part]},
        {"role": "model", "parts": [{"text": "4711 for ORD-7731"}]},
    ]
    assert played(chat, format="gemini").by_tool == {"f": Tally(sought=2)}


def test_results_without_ids_are_of_the_calls_in_their_order() -> None:
    """Gemini needs no ids."""
    names = ("first", "second")
    answers = zip(names, ("ORD-7731", "REF-8842"), strict=True)
    chat = [
        {"role": "user", "parts": [{"text": "hi"}]},
        {"role": "model", "parts": [{"functionCall": {"name": name, "args": {}}} for name in names]},
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": name, "response": {"result": text}}} for name, text in answers
            ],
        },
        {"role": "model", "parts": [{"text": "REF-8842"}]},
    ]
    assert played(chat, format="gemini").by_tool == {"second": Tally(sought=1)}


# What is in view.


def long_chat() -> list[dict[str, Any]]:
    """Make one with a use at the start of a long result, and one in its middle, five calls later."""
    text = f"ORD-7731 {words(100)} REF-8842 {words(100)} END-9953"
    chat = [user("Read it."), called("read", "c1"), result("c1", text)]
    for _ in range(4):
        chat += [assistant("Wait."), user("And?")]
    return [*chat, assistant("ORD-7731, REF-8842 and END-9953")]


def test_what_is_clamped_is_lost_in_the_middle() -> None:
    """Both ends are kept."""
    found = played(long_chat(), ClampResults(max_tokens=60), budget=150)
    assert [one.text for one in found.lost] == ["REF-8842"]
    assert found.total == Tally(sought=3, lost=1)


def test_what_is_cleared_is_lost() -> None:
    """In place of the result stands a text that has none of it."""
    chat = long_chat()
    chat[3:3] = [called("read", "c2"), result("c2", words(100))]
    found = played(chat, ClearToolResults(keep_results=1), budget=200)
    assert found.total == Tally(sought=3, lost=3)
    assert {one.result for one in found.lost} == {"c1"}


def test_what_a_summary_says_is_in_view() -> None:
    """It is not in the result any more, and the model can read it; what it omits is lost."""
    chat = [user(), called("f", "c1"), result("c1", f"ORD-7731 REF-8842 {words(100)}"), assistant(), user()]
    chat += [assistant(), user(), assistant("ORD-7731 REF-8842")]
    summarize = Summarize(lambda request: "It was <ORD-7731>.", must_keep=None)
    found = played(chat, summarize, budget=60)
    assert [one.text for one in found.lost] == ["REF-8842"]
    assert found.needs == Tally(sought=2, lost=1)


@pytest.mark.parametrize("said", ["<b>ORD-7731</b> is the newest one", "&lt;b&gt; is <b> in &amp; of HTML"])
def test_escapes_in_marks_and_in_results_are_told_apart(said: str) -> None:
    """A summary is escaped in its mark; what a result says as it is stays so, where it was cut."""
    chat = [user(), called("f", "c1"), result("c1", f"{said}\n{words(100)}"), assistant(), user()]
    chat += [assistant(), user(), assistant(said)]
    summarize = Summarize(lambda request: said, must_keep=None)
    assert played(chat, summarize, budget=60).total.lost == 0
    assert played(chat, ClampResults(max_tokens=60), budget=90).total.lost == 0
    assert played(chat, newest(1)).total.lost > 0


def test_all_is_lost_where_nothing_can_be_sent() -> None:
    """As for evidence and canaries."""
    chat = [system(words(60)), user(), called("f", "c1"), result("c1", "ORD-7731"), assistant("ORD-7731")]
    found = replay(chat, "default", budget=50, counter=WordCounter())
    assert found.totals.refused == found.totals.calls == 2
    assert found.uses.total == Tally(sought=1, lost=1)


def test_a_copy_of_a_message_is_that_message() -> None:
    """Other libraries return copies, and another call may bring the message back."""
    calls = list[int]()

    def in_turns(messages: list[Any]) -> list[Any]:
        calls.append(len(messages))
        shown = messages if len(calls) % 2 else messages[-1:]
        return [json.loads(json.dumps(one)) for one in shown]

    chat = [
        user(),
        called("f", "c1"),
        result("c1", "ORD-7731 REF-8842 TEL-9953"),
        assistant("Hm."),
        user("And?"),
    ]
    chat += [assistant("ORD-7731"), user("And?"), assistant("REF-8842"), user("And?"), assistant("TEL-9953")]
    found = played(chat, in_turns)  # shows all at calls 0, 2 and 4
    assert [one.text for one in found.lost] == ["REF-8842"]


def test_a_session_is_looked_into_as_well() -> None:
    """Its view has other objects than the recording."""
    chat = long_chat()
    kept = played(chat, lambda: Session(10_000, counter=WordCounter()))
    assert kept.total == Tally(sought=3)
    few = played([*chat[:-1], user(words(40)), chat[-1]], lambda: Session(120, counter=WordCounter()))
    assert few.total.lost


# Calls.


def test_calls_that_do_not_go_on_begin_anew() -> None:
    """What the recorded program had dropped by itself is not taken from a request that did not have it."""
    first = [user(), called("f", "c1"), result("c1", "ORD-7731")]
    second = [user("Another one"), called("g", "c2"), result("c2", "REF-8842")]
    calls = (
        ModelCall(messages=first, answer=[assistant("Hm.")]),
        ModelCall(messages=second, answer=[assistant("REF-8842, not ORD-7731")]),
        ModelCall(messages=[*first, assistant("Hm.")], answer=[assistant("ORD-7731")]),
    )
    recording = Recording(calls=calls, format=read_recording(first).format)
    found = played(recording)
    assert found.by_tool == {"g": Tally(sought=1), "f": Tally(sought=1)}


def test_an_answer_is_what_the_next_call_goes_on_with() -> None:
    """Bodies say it one call later; what the model answered to the last is not known."""
    chat = orders()
    bodies = [{"messages": json.loads(json.dumps(chat[:end]))} for end in (1, 3, 5, 7)]
    found = played(bodies)
    assert found.by_kind == {"identifier": Tally(sought=1), "number": Tally(sought=1)}
    assert played([*bodies, {"messages": [*chat, user("Thanks")]}]).total == Tally(sought=3)


def test_bodies_whose_front_changes_have_uses_of_the_same_age() -> None:
    """A system text with the time, and a program that drops its oldest messages by itself."""
    chat = [*orders(), user("Thanks")]
    bodies = [{"messages": [system(f"It is {end} o'clock"), *chat[:end]]} for end in (1, 3, 5, 7, 9)]
    found = played(bodies)
    assert found.by_age == {"next call": Tally(sought=2), "2–5 calls": Tally(sought=1)}
    assert found.needs == Tally(sought=4)
    window = [{"messages": chat[:3]}, {"messages": chat[:5]}, {"messages": chat[3:7]}, {"messages": chat[5:]}]
    assert played(window).by_kind == {"identifier": Tally(sought=1), "number": Tally(sought=1)}


def test_the_last_answer_of_a_list_is_known() -> None:
    """It stands behind the last call."""
    recording = read_recording(orders())
    assert recording.calls[-1].answer == [orders()[-1]]
    assert [len(one.answer) for one in recording.calls] == [1, 1, 1, 1]


def test_logs_of_coding_agents_have_uses() -> None:
    """Claude Code's and Codex's, as they are read."""
    log = ClaudeLog()
    log.user("Read it.")
    log.answer("m1", {"type": "tool_use", "id": "t1", "name": "Read", "input": {}})
    log.result("t1", "ORD-7731")
    log.answer("m2", "It is ORD-7731.")
    log.user("And?")
    log.answer("m3", "No more.")
    assert played(log.lines).by_tool == {"Read": Tally(sought=1)}
    rollout = Rollout()
    rollout.user("Read it.")
    rollout.call("t1")
    rollout.item("function_call_output", call_id="t1", output="ORD-7731")
    rollout.answer("It is ORD-7731.")
    rollout.user("And?")
    rollout.answer("No more.")
    assert played(rollout.lines).by_tool == {"shell": Tally(sought=1)}


def test_canaries_change_no_use() -> None:
    """They are planted in what users say."""
    recording = read_recording(orders())
    assert played(plant_canaries(recording, 5)).total == Tally(sought=3)
    assert played(find_canaries(recording)).total == Tally(sought=3)


# What is told.


def results_of(*policies: Any) -> list[Replayed]:
    """Replay under some policies."""
    return [replay(orders(), one, budget=10_000, counter=WordCounter()) for one in policies]


def test_sums_over_recordings_add_up_and_list_nothing() -> None:
    """Shares are of all uses, not means of shares."""
    [whole, few] = results_of(None, newest(2))
    both = (whole + few).uses
    assert both.total == Tally(sought=6, lost=1)
    assert both.share == pytest.approx(5 / 6)
    assert both.needs_share == pytest.approx(7 / 8)
    assert both.by_tool == {"lookup": Tally(sought=6, lost=1)}
    assert both.by_age == {"next call": Tally(sought=4), "2–5 calls": Tally(sought=2, lost=1)}
    assert both.lost == ()
    assert Uses().share is None


def test_uses_as_data_have_all_of_it() -> None:
    """What is lost as well, with where it is from."""
    [few] = results_of(newest(2))
    data = json.loads(json.dumps(few.to_dict()))["uses"]
    assert (data["share"], data["sought"], data["lost"]) == (pytest.approx(2 / 3), 3, 1)
    assert data["needs"] == {"share": 0.75, "sought": 4, "lost": 1}
    assert data["by_tool"] == {"lookup": {"sought": 3, "lost": 1}}
    assert data["uses_lost"] == [
        {"text": "out/report.csv", "kind": "path", "call": 3, "age": 3, "tool": "lookup", "result": "c1"}
    ]


def test_the_table_has_uses_where_there_are_any() -> None:
    """By age and tool only where one is lost."""
    text = replay_table(results_of(None, newest(2)))
    rows = [line.split() for line in text.splitlines() if "100.0%" in line or "66.7%" in line]
    assert [row[-2:] for row in rows] == [["100.0%", "100.0%"], ["66.7%", "75.0%"]]
    [head] = [line for line in text.splitlines() if line.startswith("  uses lost")]
    assert head.split("  ")[-3:] == ["next call", "2–5 calls", "of lookup"]
    assert text.splitlines()[-1].startswith("  uses, needs: details")
    assert "uses lost" not in replay_table(results_of(None))
    plain = replay([user(), assistant()], None, budget=100, counter=WordCounter())
    assert "uses" not in replay_table([plain])


def test_few_tools_have_a_column() -> None:
    """Those that are used most; all others share one."""
    chat = [user()]
    for number in range(7):
        details = [f"ID-{number}{at}55" for at in range(number + 1)]
        chat += [called(f"tool{number}", f"c{number}"), result(f"c{number}", " ".join(details)), user("So?")]
        chat += [assistant("\n".join(details)), user("And?")]
    text = replay_table([replay(chat, newest(1), budget=1_000, counter=WordCounter())])
    [head] = [line for line in text.splitlines() if line.startswith("  uses lost")]
    named = [word.strip() for word in head.split("  ") if word.strip().startswith("of ")]
    assert named == ["of tool6", "of tool5", "of tool4", "of tool3", "of other tools"]
    [row] = [line.split() for line in text.splitlines() if "28/28" in line]
    assert row[-5:] == ["7/7", "6/6", "5/5", "4/4", "6/6"]


def test_the_page_has_uses() -> None:
    """A row a policy, and the columns of the table."""
    [whole, few] = results_of(None, newest(2))
    page = chart_page({"orders": [whole, few]})
    assert "<h2>Lost of what the model takes from results</h2>" in page
    assert 'data-head="of lookup">1/3</td>' in page
    assert 'data-head="uses">66.7%</td>' in page
    assert "other tools" not in page
    assert "Lost of what the model takes" not in chart_page({"orders": [whole]})


def test_names_of_tools_are_written_safely() -> None:
    """They are the recording's words."""
    chat = [user(), called("<b>", "c1"), result("c1", "ORD-7731"), user("So?"), assistant("ORD-7731")]
    one = replay(chat, newest(1), budget=1_000, counter=WordCounter())
    assert "<b>" not in chart_page({"orders": [one]})
    assert "of <b>" in replay_table([one])


def test_a_recording_is_asked_about_its_own_answers() -> None:
    """An answer of another text takes other details."""
    recording = read_recording(orders())
    silent = tuple(replace(one, answer=[assistant("Hm.")]) for one in recording.calls)
    assert played(replace(recording, calls=silent)).needs == Tally()


def test_leading_system_text_is_no_result() -> None:
    """Nor is anything else that is no answer of a tool."""
    chat = [system("Use ORD-7731"), user(), assistant("ORD-7731")]
    assert played(chat).total == Tally()
    assert played(chat).needs == Tally(sought=1)
