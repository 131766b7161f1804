"""Rollouts of Codex: items as they were sent, bills of their calls, and what was rolled back or compacted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.complexity.counting_machine import assert_linear
from tests.judge.recorded import accepted
from tests.recorded_logs import Rollout, codex_lines, items_of
from trimtab.conversation import group, validate
from trimtab.counting import UsageBaseline, measure
from trimtab.errors import FormatError
from trimtab.formats import ForeignConversation, read_foreign
from trimtab.testing import WordCounter


def read(rollout: Rollout) -> list[ForeignConversation]:
    """Read a rollout; all its conversations are requests of the Responses form."""
    found = read_foreign(rollout.lines)
    assert found
    assert {(one.program, one.format) for one in found} == {("Codex", "openai_responses")}
    for one in found:
        assert len(one.times) in (0, len(one.body["input"]))
        assert all(bill.at < len(one.body["input"]) for bill in one.bills)
    return found


def said(conversation: ForeignConversation) -> list[str]:
    """Write items as "user: hello", calls as "+a" and results as "-a"."""
    return [_said(item) for item in conversation.body["input"]]


def _said(item: Any) -> str:
    kind = item["type"]
    if kind == "message":
        return f"{item['role']}: {item['content'][0]['text']}"
    if "call_id" not in item:
        return str(kind)
    return f"-{item['call_id']}" if kind.endswith("_output") else f"+{item['call_id']}"


def turn(rollout: Rollout, number: int) -> None:
    """Add a question, a call and an answer, as newer versions bill them: behind what was answered."""
    rollout.user(f"question {number}")
    rollout.item("reasoning", summary=[], encrypted_content="x", content=None)
    rollout.call(f"c{number}")
    rollout.bill(100 * number)
    rollout.result(f"c{number}")
    rollout.answer(f"answer {number}")
    rollout.bill(100 * number + 50)


class TestItems:
    """What was sent and answered."""

    def test_a_rollout_is_a_request_with_its_model_and_instructions(self) -> None:
        """Events say the same again and are gone by."""
        rollout = Rollout(base_instructions={"text": "You are Codex."})
        turn(rollout, 1)
        (found,) = read(rollout)
        assert found.name == ""
        assert {key: found.body[key] for key in ("model", "instructions")} == {
            "model": "gpt-5-codex",
            "instructions": "You are Codex.",
        }
        assert said(found) == ["user: question 1", "reasoning", "+c1", "-c1", "assistant: answer 1"]
        assert found.times[0] == 1_772_359_202
        assert validate(found.body) == []
        assert "tools are not in the log" in found.notes[0]

    def test_instructions_that_a_message_has_are_not_sent_twice(self) -> None:
        """Versions between wrote down there what stands in AGENTS.md, and sent it as a message."""
        rollout = Rollout(instructions="be brief")
        rollout.user("<user_instructions>\n\nbe brief\n\n</user_instructions>")
        turn(rollout, 1)
        assert "instructions" not in read(rollout)[0].body

    def test_instructions_of_older_versions_are_read(self) -> None:
        """And null, which says nothing, is told."""
        rollout = Rollout(instructions="be brief")
        turn(rollout, 1)
        assert read(rollout)[0].body["instructions"] == "be brief"
        rollout = Rollout(instructions=None)
        turn(rollout, 1)
        (found,) = read(rollout)
        assert "instructions" not in found.body
        assert "Instructions and tools are not in the log" in found.notes[0]

    def test_all_kinds_of_calls_stay_with_their_results(self) -> None:
        """Those of the provider's own tools have none."""
        rollout = Rollout()
        rollout.user("look")
        rollout.item(
            "custom_tool_call", name="apply_patch", input="*** Begin Patch", call_id="a", status="completed"
        )
        rollout.item("custom_tool_call_output", call_id="a", output="Done!")
        action = {"type": "exec", "command": ["ls"]}
        rollout.item("local_shell_call", call_id="b", status="completed", action=action)
        rollout.item("function_call_output", call_id="b", output="x")
        rollout.item("web_search_call", status="completed", action={"type": "search", "query": "w"})
        rollout.answer("seen")
        (found,) = read(rollout)
        assert said(found)[1:-1] == ["+a", "-a", "+b", "-b", "web_search_call"]
        assert [unit.indices for unit in group(found.body["input"], format="openai_responses")][1] == (1, 2)

    def test_what_codex_writes_for_itself_is_not_sent(self) -> None:
        """Snapshots for an undo, and lines of kinds that are not known; they are told."""
        rollout = Rollout()
        turn(rollout, 1)
        rollout.item("ghost_snapshot", ghost_commit={})
        rollout.line("world_state", {"anything": 1})
        (found,) = read(rollout)
        assert len(said(found)) == 5
        assert (
            "Not read as they are: items of type ghost_snapshot (1); lines of type world_state (1)."
            in found.notes
        )

    def test_an_output_that_was_held_as_an_object_is_its_text(self) -> None:
        """The API takes a text."""
        rollout = Rollout()
        rollout.user("look")
        rollout.call("a")
        rollout.item("function_call_output", call_id="a", output={"content": "ok", "success": True})
        assert read(rollout)[0].body["input"][-1]["output"] == "ok"

    def test_the_first_session_is_the_one_that_is_told(self) -> None:
        """A fork has that of its parent behind its own."""
        rollout = Rollout()
        rollout.line("session_meta", {"id": "parent", "base_instructions": {"text": "You are Codex."}})
        turn(rollout, 1)
        rollout.line("compacted", {"message": "short"})
        assert [one.name for one in read(rollout)] == ["r1", "r1 before compaction 1"]
        assert read(rollout)[0].body["instructions"] == "You are Codex."

    def test_an_interrupted_call_stays_as_it_is(self) -> None:
        """`validate` says so."""
        rollout = Rollout()
        rollout.user("look")
        rollout.call("a")
        rollout.user("<turn_aborted>interrupted</turn_aborted>")
        rollout.user("go on")
        rollout.answer("yes")
        (found,) = read(rollout)
        assert {one.rule for one in validate(found.body)} == {"unanswered_call"}

    def test_older_rollouts_have_bare_items(self) -> None:
        """No times, no model, no bills; the first line says which session it is."""
        head = {"id": "old", "timestamp": "2025-06-01T00:00:00.000Z", "instructions": "be brief", "git": {}}
        rollout = Rollout()
        turn(rollout, 1)
        items = [line["payload"] for line in rollout.lines if line["type"] == "response_item"]
        state = {"record_type": "state"}
        for lines in ([head, *items, state], [{**head, "instructions": None}, state, *items], [head]):
            if len(lines) == 1:
                with pytest.raises(FormatError, match="no item of a user or a model"):
                    read_foreign(lines)
                continue
            (found,) = read_foreign(lines) or ()
            assert found.body["input"] == items
            assert found.times == ()
            assert found.bills == ()
            assert "model" not in found.body
        document = {"session": head, "items": items}
        (found,) = read_foreign(document) or ()
        assert found.body == {"instructions": "be brief", "input": items}


class TestBills:
    """Bills belong to answers."""

    def test_a_bill_behind_an_answer_is_of_what_was_before_it(self) -> None:
        """As newer versions write it. What is told again is no second one."""
        rollout = Rollout()
        turn(rollout, 1)
        rollout.bill(150, again=True)
        turn(rollout, 2)
        (found,) = read(rollout)
        assert [(bill.at, bill.usage["input_tokens"], bill.model) for bill in found.bills] == [
            (1, 100, "gpt-5-codex"),
            (4, 150, "gpt-5-codex"),
            (6, 200, "gpt-5-codex"),
            (9, 250, "gpt-5-codex"),
        ]

    def test_a_bill_before_an_answer_is_of_what_is_before_itself(self) -> None:
        """As older versions write it: first the bill, then the items of the answer with their results."""
        rollout = Rollout()
        rollout.line("event_msg", {"type": "token_count", "info": None, "rate_limits": {}})
        rollout.user("look")
        rollout.bill(100)
        rollout.item("reasoning", summary=[])
        rollout.call("a")
        rollout.result("a")
        rollout.call("b")
        rollout.result("b")
        rollout.bill(100, again=True)
        rollout.bill(200)
        rollout.answer("seen")
        rollout.user("more")
        rollout.bill(300)
        rollout.answer("well")
        rollout.bill(400)
        (found,) = read(rollout)
        assert [(bill.at, bill.usage["input_tokens"]) for bill in found.bills] == [
            (1, 100),
            (6, 200),
            (8, 300),
        ]

    def test_a_session_that_a_newer_version_continued_has_bills_of_both_kinds(self) -> None:
        """A bill right behind an answer that had none is of that answer."""
        rollout = Rollout()
        rollout.user("look")
        rollout.bill(100)
        rollout.call("a")
        rollout.result("a")
        rollout.bill(150)
        rollout.answer("seen")
        turn(rollout, 2)
        (found,) = read(rollout)
        assert [(bill.at, bill.usage["input_tokens"]) for bill in found.bills] == [
            *((1, 100), (3, 150)),
            *((5, 200), (8, 250)),
        ]

    def test_the_bill_of_an_answer_that_never_came_is_in_no_conversation(self) -> None:
        """As that of a compaction in the middle of a turn, in older versions."""
        rollout = Rollout()
        rollout.user("look")
        rollout.bill(100)
        rollout.call("a")
        rollout.result("a")
        rollout.bill(200)
        rollout.line("compacted", {"message": "short"})
        assert [[bill.at for bill in one.bills] for one in read(rollout)] == [[], [1]]

    def test_a_bill_without_an_answer_is_told(self) -> None:
        """As that of a compaction: what was sent for it is not in the log."""
        rollout = Rollout()
        turn(rollout, 1)
        rollout.bill(999)
        (found,) = read(rollout)
        assert [bill.usage["input_tokens"] for bill in found.bills] == [100, 150]
        assert any("bills of calls whose answers are not in the log (1)" in note for note in found.notes)

    def test_the_usage_is_as_the_api_wrote_it(self) -> None:
        """Codex puts its details beside it. So it teaches a counter, cached tokens once."""
        rollout = Rollout()
        rollout.user("look")
        rollout.answer("seen")
        rollout.bill(100)
        ((bill,),) = (one.bills for one in read(rollout))
        assert bill.usage == {
            "input_tokens": 100,
            "output_tokens": 2,
            "input_tokens_details": {"cached_tokens": 5},
            "output_tokens_details": {"reasoning_tokens": 1},
        }
        counter = UsageBaseline(WordCounter(), format="openai_responses")
        messages = read(rollout)[0].body["input"]
        counter.record(messages[: bill.at], bill.usage)
        assert counter.count(messages[: bill.at]) == 100

    @pytest.mark.parametrize("usage", [None, {}, {"total_tokens": 5}, {"input_tokens": 0}])
    def test_what_was_only_estimated_is_no_bill(self, usage: Any) -> None:
        """Codex does so after a compaction."""
        rollout = Rollout()
        rollout.user("look")
        rollout.answer("seen")
        rollout.line("event_msg", {"type": "token_count", "info": {"last_token_usage": usage}})
        assert read(rollout)[0].bills == ()

    def test_each_bill_has_the_model_of_its_turn(self) -> None:
        """The body has the last one."""
        rollout = Rollout()
        turn(rollout, 1)
        rollout.line("turn_context", {"model": "gpt-5.2-codex"})
        turn(rollout, 2)
        (found,) = read(rollout)
        assert [bill.model for bill in found.bills] == ["gpt-5-codex"] * 2 + ["gpt-5.2-codex"] * 2
        assert found.body["model"] == "gpt-5.2-codex"


class TestChanges:
    """A compaction begins a conversation; what is rolled back is another."""

    def test_what_a_compaction_put_in_the_place_of_all_begins_a_conversation(self) -> None:
        """What was before is one of its own, with its bills."""
        rollout = Rollout()
        turn(rollout, 1)
        kept = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "question 1"}]}
        sealed = {"type": "compaction_summary", "encrypted_content": "x"}
        rollout.line("compacted", {"message": "", "replacement_history": [{"item": kept}, sealed]})
        turn(rollout, 2)
        new, old = read(rollout)
        assert (new.name, old.name) == ("r1", "r1 before compaction 1")
        assert said(new)[:3] == ["user: question 1", "compaction", "user: question 2"]
        assert said(old)[-1] == "assistant: answer 1"
        assert [[bill.at for bill in one.bills] for one in (new, old)] == [[3, 6], [1, 4]]
        assert validate(new.body) == []

    def test_an_older_compaction_keeps_what_users_wrote_and_its_summary(self) -> None:
        """Without what the program wrote for them. That it may have been less is told."""
        rollout = Rollout()
        rollout.user("<environment_context>w</environment_context>")
        turn(rollout, 1)
        rollout.line("compacted", {"message": "what was said"})
        turn(rollout, 2)
        rollout.line("compacted", {"message": "all of it"})
        found = read(rollout)
        assert said(found[0]) == [
            "user: question 1",
            "user: what was said",
            "user: question 2",
            "user: all of it",
        ]
        assert [one.name for one in found] == ["r1", "r1 before compaction 1", "r1 before compaction 2"]
        assert any("What the compaction kept is not in the log" in note for note in found[0].notes)

    def test_turns_that_were_rolled_back_are_a_conversation_of_their_own(self) -> None:
        """What both have was billed once. A turn does not begin with what the program wrote."""
        rollout = Rollout()
        for number in (1, 2, 3):
            turn(rollout, number)
            rollout.user("<user_shell_command>ls</user_shell_command>")
        rollout.line("event_msg", {"type": "thread_rolled_back", "num_turns": 2})
        turn(rollout, 4)
        new, old = read(rollout)
        assert (new.name, old.name) == ("r1", "r1 branch 1")
        questions = [[text[-1] for text in said(one) if text.startswith("user: q")] for one in (new, old)]
        assert questions == [["1", "4"], ["1", "2", "3"]]
        assert [[bill.usage["input_tokens"] for bill in one.bills] for one in (new, old)] == [
            [100, 150, 400, 450],
            [200, 250, 300, 350],
        ]
        assert any("2 calls it shares" in note for note in old.notes)

    @pytest.mark.parametrize("turns", [0, 1, 9])
    def test_a_turn_without_an_answer_is_no_branch(self, turns: int) -> None:
        """Nor is one where nothing is rolled back."""
        rollout = Rollout()
        rollout.line("event_msg", {"type": "thread_rolled_back", "num_turns": turns})
        rollout.user("wrong")
        rollout.line("event_msg", {"type": "thread_rolled_back", "num_turns": turns})
        turn(rollout, 2)
        (found,) = read(rollout)
        assert ("user: wrong" in said(found)) == (turns == 0)


def line(kind: str, **payload: Any) -> dict[str, Any]:
    """Make a line with a payload."""
    return {"type": kind, "timestamp": "2026-03-01T10:00:00Z", "payload": payload}


BROKEN: list[tuple[Any, str, str]] = [
    (3, "entry 3: it must be an object, not int", "[2]"),
    ({"payload": {}}, "entry 3: it has no 'type'", "[2].type"),
    ({"type": "response_item"}, "entry 3: a line of type response_item has no 'payload'", "[2].payload"),
    (line("response_item"), "entry 3: its item has no 'type'", "[2].payload.type"),
    (
        line("response_item", type="message", role="user"),
        "entry 3: its message has no 'content'",
        "[2].payload.content",
    ),
    (
        line("response_item", type="function_call", name="f"),
        "entry 3: its function_call has no 'call_id'",
        "[2].payload.call_id",
    ),
    (
        line("response_item", type="function_call_output", output="x"),
        "entry 3: its function_call_output has no 'call_id'",
        "[2].payload.call_id",
    ),
    (line("compacted"), "entry 3: it has neither 'replacement_history' nor 'message'", "[2].payload"),
    (
        line("compacted", replacement_history=3),
        "entry 3: 'replacement_history' must be a list",
        "[2].payload.replacement_history",
    ),
    (
        line("compacted", replacement_history=[3]),
        "entry 3: each item of it must be an object",
        "[2].payload.replacement_history[0]",
    ),
    (line("event_msg", type="token_count", info=3), "entry 3: 'info' must be an object", "[2].payload.info"),
    (
        line("event_msg", type="thread_rolled_back"),
        "entry 3: 'num_turns' must be a number of turns",
        "[2].payload.num_turns",
    ),
    (
        {**line("turn_context"), "timestamp": "noon"},
        "entry 3: its 'timestamp' must be a time, not 'noon'",
        "[2].timestamp",
    ),
]


@pytest.mark.parametrize(("broken", "words", "path"), BROKEN)
def test_a_broken_line_is_refused_with_its_number_and_what_is_missing(
    broken: Any, words: str, path: str
) -> None:
    """`.path` leads to it."""
    with pytest.raises(FormatError) as caught:
        read_foreign([*Rollout().lines, broken])
    assert str(caught.value) == words
    assert caught.value.path == path


def test_a_rollout_is_told_by_its_first_two_lines() -> None:
    """What comes after may be anything, and is refused for itself."""
    head = {"id": "old", "timestamp": "2025-06-01T00:00:00.000Z"}
    openings = [
        Rollout().lines,
        [line("response_item", type="reasoning", summary=[])] * 2,
        [{**head, "instructions": None}, {"anything": 1}],
        [head, {"type": "message", "role": "user", "content": []}],
        [head, {"type": "reasoning", "summary": []}],
        [head, {"record_type": "state"}],
    ]
    for lines in ([{**head, "instructions": None}], Rollout().lines[:1]):
        with pytest.raises(FormatError, match="no item of a user or a model"):
            read_foreign(lines)
    for lines in openings:
        with pytest.raises(FormatError, match=r"entry [23]: it has no 'type'"):
            read_foreign([*lines, {"payload": {}}])
    for lines in (
        [head],
        [head, head],
        [{**head, "model": "x"}, {"record_type": "state"}],
        [{"id": 3, "timestamp": 4}, {"record_type": "state"}],
        [Rollout().lines[0], {"type": "new"}],
        [Rollout().lines[0], 3],
    ):
        assert read_foreign(lines) is None


def test_a_long_rollout_is_read_in_time_that_grows_with_its_lines() -> None:
    """Also where each turn is written twice, as the first was rolled back."""

    def case(turns: int) -> Callable[[Any], Any]:
        rollout = Rollout()
        for number in range(turns):
            turn(rollout, number)
            rollout.user("wrong")
            rollout.line("event_msg", {"type": "thread_rolled_back", "num_turns": 1})
        return lambda counter: read_foreign(rollout.lines)

    assert_linear(case, (250, 500, 1000))


def test_a_recorded_request_counts_the_same_when_it_comes_from_a_rollout(data_dir: Path) -> None:
    """Every one of the Responses form: pairs and order are those of the request."""
    count = 0
    for name, form, model, recorded in accepted(data_dir):
        if form != "openai_responses" or "input" not in recorded:
            continue
        body = {**recorded, "model": model}
        (found,) = read_foreign(codex_lines(body)) or ()
        assert found.body.get("instructions") == (body.get("instructions") or None), name
        back = {**body, **found.body}
        items = list(items_of(body["input"]))
        assert back["input"] == items, name
        assert measure(back, format=form).tokens == measure(body, format=form).tokens, name
        assert [unit.indices for unit in group(back["input"], format=form)] == [
            unit.indices for unit in group(items, format=form)
        ], name
        count += 1
    assert count > 500
