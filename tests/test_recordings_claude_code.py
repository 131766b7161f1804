"""Session logs of Claude Code: which of their lines are one message, which are one conversation."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.complexity.counting_machine import assert_linear, operations_of
from tests.judge.recorded import accepted
from tests.recorded_logs import SESSION, ClaudeLog, claude_lines, use
from tests.test_foreign_messages import DICTS
from trimtab.conversation import group, validate
from trimtab.counting import measure
from trimtab.errors import FormatError
from trimtab.formats import ForeignConversation, read_foreign


def read(log: ClaudeLog) -> list[ForeignConversation]:
    """Read a log; all its conversations are requests of the Anthropic form."""
    found = read_foreign(log.lines)
    assert found
    assert {one.program for one in found} == {"Claude Code"}
    assert {one.format for one in found} == {"anthropic"}
    for one in found:
        assert len(one.times) == len(one.body["messages"])
        assert all(one.body["messages"][bill.at]["role"] == "assistant" for bill in one.bills)
    return found


def said(conversation: ForeignConversation) -> list[str]:
    """Write messages as "user: question 1", calls as "+a" and results as "-a"."""
    return [f"{one['role']}: {_words(one['content'])}" for one in conversation.body["messages"]]


def _words(content: Any) -> str:
    if isinstance(content, str):
        return content
    shown = {"tool_use": lambda one: f"+{one['id']}", "tool_result": lambda one: f"-{one['tool_use_id']}"}
    return " ".join(shown.get(one["type"], lambda one: one.get("text", one["type"]))(one) for one in content)


def names(log: ClaudeLog) -> list[str]:
    """Read the names of conversations, without the session."""
    return [one.name.removeprefix(SESSION).strip() for one in read(log)]


def calls(log: ClaudeLog) -> None:
    """Add two calls at once, each with its result behind its own line, and what the model said to both."""
    log.user("look")
    first = log.answer("m1", "let me see", use("a"))
    second = log.answer("m1", use("b"))
    log.result("a", parent=first)
    log.result("b", parent=second)
    log.answer("m2", "seen")


class TestMessages:
    """Lines become messages."""

    def test_lines_of_one_answer_are_one_message_and_results_of_one_answer_are_one(self) -> None:
        """The result of the first call is on no way from the newest line to the root."""
        log = ClaudeLog()
        calls(log)
        (found,) = read(log)
        assert found.name == ""
        assert said(found) == ["user: look", "assistant: let me see +a +b", "user: -a -b", "assistant: seen"]
        assert validate(found.body) == []
        assert [unit.indices for unit in group(found.body["messages"])] == [(0,), (1, 2), (3,)]

    def test_a_result_that_came_before_the_next_call_of_an_answer_is_behind_it(self) -> None:
        """A newer version runs a tool while the model still writes."""
        log = ClaudeLog()
        log.user("look")
        log.answer("m1", use("a"))
        log.result("a")
        log.answer("m1", use("b"))
        log.result("b")
        (found,) = read(log)
        assert said(found) == ["user: look", "assistant: +a +b", "user: -a -b"]

    def test_answers_without_a_result_between_them_have_their_results_behind_the_last(self) -> None:
        """The API joins them into one."""
        log = ClaudeLog()
        log.user("look")
        first = log.answer("m1", use("a"))
        log.answer("m2", use("b"))
        log.result("a", parent=first)
        log.result("b")
        (found,) = read(log)
        assert said(found) == ["user: look", "assistant: +a", "assistant: +b", "user: -a -b"]

    def test_what_is_said_beside_results_comes_behind_all_of_them(self) -> None:
        """The API takes no text before a result."""
        log = ClaudeLog()
        log.user("look")
        first = log.answer("m1", use("a"))
        log.answer("m1", use("b"))
        mixed = {"type": "tool_result", "tool_use_id": "a", "content": "ok"}
        log.user([mixed, {"type": "text", "text": "and be brief"}], parent=first)
        log.result("b")
        (found,) = read(log)
        assert said(found)[-1] == "user: -a -b and be brief"

    def test_a_result_that_is_written_again_counts_once(self) -> None:
        """The API refuses two; the last one is taken."""
        log = ClaudeLog()
        log.user("look")
        log.answer("m1", use("a"))
        log.result("a", "old")
        log.result("a", "new")
        (found,) = read(log)
        assert [block["content"] for block in found.body["messages"][-1]["content"]] == ["new"]
        assert any("written again" in note for note in found.notes)

    def test_the_bill_of_an_answer_is_that_of_its_last_line(self) -> None:
        """Earlier lines were written while it still grew."""
        log = ClaudeLog()
        calls(log)
        (found,) = read(log)
        assert [(bill.at, bill.usage["output_tokens"], bill.model) for bill in found.bills] == [
            (1, 1, "claude-sonnet-4-5"),
            (3, 1, "claude-sonnet-4-5"),
        ]
        log.answer("m2", "a", "b", "c")
        assert read(log)[0].bills[-1].usage["output_tokens"] == 3

    def test_an_answer_that_other_programs_wrote_as_text_is_read_too(self) -> None:
        """A content may be a text, and a second line still adds to it."""
        log = ClaudeLog()
        log.user("hi")
        for text in ("one", "two"):
            log.line("assistant", message={"id": "m", "role": "assistant", "content": text})
        (found,) = read(log)
        assert said(found) == ["user: hi", "assistant: one two"]
        assert "model" not in found.body
        assert found.bills == ()

    def test_times_are_when_the_last_line_of_a_message_was_written(self) -> None:
        """So the next call did not go out before."""
        log = ClaudeLog()
        calls(log)
        (found,) = read(log)
        start = found.times[0]
        assert start == 1_772_359_200
        assert [time - start for time in found.times if time is not None] == [0, 3, 5, 6]

    def test_lines_without_times_make_a_recording_without(self) -> None:
        """Nothing is made up."""
        log = ClaudeLog()
        log.turn(1)
        for line in log.lines:
            del line["timestamp"]
        found = read_foreign(log.lines)
        assert found
        assert found[0].times == ()

    def test_lines_that_name_no_line_before_them_are_read_in_their_order(self) -> None:
        """As people cut logs down."""
        log = ClaudeLog()
        log.turn(1)
        log.turn(2)
        for line in log.lines:
            del line["parentUuid"]
        (found,) = read(log)
        assert said(found) == [
            f"{role} {n}" for n in (1, 2) for role in ("user: question", "assistant: answer")
        ]

    def test_a_call_that_was_interrupted_stays_as_it_is(self) -> None:
        """`validate` says so."""
        log = ClaudeLog()
        log.user("look")
        log.answer("m1", use("a"))
        log.user("[Request interrupted by user]")
        log.answer("m2", "well")
        (found,) = read(log)
        assert {one.rule for one in validate(found.body)} == {"unanswered_call"}

    def test_a_result_of_no_call_stays_as_it_is(self) -> None:
        """`validate` says so."""
        log = ClaudeLog()
        log.user("look")
        log.result("lost")
        log.answer("m2", "well")
        (found,) = read(log)
        assert {one.rule for one in validate(found.body)} == {"orphan_result"}

    def test_the_model_is_that_of_the_last_answer(self) -> None:
        """Others are told; bills have their own."""
        log = ClaudeLog()
        log.turn(1)
        log.user("more")
        log.answer("m9", "well", model="claude-haiku-4-5")
        (found,) = read(log)
        assert found.body["model"] == "claude-haiku-4-5"
        assert [bill.model for bill in found.bills] == ["claude-sonnet-4-5", "claude-haiku-4-5"]
        assert any("claude-sonnet-4-5, claude-haiku-4-5" in note for note in found.notes)


class TestSent:
    """Of all lines, those count that were sent."""

    def test_errors_of_the_api_were_shown_and_not_sent(self) -> None:
        """Nor what is only seen in the transcript. What was asked stays, as the next request had it."""
        log = ClaudeLog()
        log.user("one")
        log.answer("e1", "API Error: 529", model="<synthetic>", isApiErrorMessage=True)
        log.user("two")
        log.answer("e2", "API Error: 500", model="<synthetic>")
        log.user("shown", isVisibleInTranscriptOnly=True)
        log.answer("m1", "well")
        (found,) = read(log)
        assert said(found) == ["user: one", "user: two", "assistant: well"]
        assert [bill.at for bill in found.bills] == [2]
        assert any("errors and other lines that were shown and not sent (3)" in note for note in found.notes)

    def test_what_the_program_said_in_the_place_of_a_model_was_sent_and_not_billed(self) -> None:
        """As when a session goes on: "No response requested."."""
        log = ClaudeLog()
        log.turn(1)
        log.user("go on", isMeta=True)
        log.answer("s1", "No response requested.", model="<synthetic>")
        log.turn(2)
        (found,) = read(log)
        assert said(found)[2:4] == ["user: go on", "assistant: No response requested."]
        assert found.body["model"] == "claude-sonnet-4-5"
        assert [bill.at for bill in found.bills] == [1, 5]
        assert any("wrote itself" in note for note in found.notes)

    def test_local_commands_are_told_to_the_model_with_the_next_request(self) -> None:
        """Those behind the last answer were in none. Newer versions write output as lines of the system."""
        log = ClaudeLog()
        log.user("<local-command-caveat>Caveat</local-command-caveat>", isMeta=True)
        log.user("<command-name>/model</command-name>")
        log.line(
            "system", subtype="local_command", content="<local-command-stdout>set</local-command-stdout>"
        )
        log.turn(1)
        log.user("<command-name>/exit</command-name>")
        log.user("<local-command-stdout>Bye!</local-command-stdout>")
        (found,) = read(log)
        assert [text.partition("<")[2][:13] for text in said(found)[:3]] == [
            "local-command",
            "command-name>",
            "local-command",
        ]
        assert said(found)[3:] == ["user: question 1", "assistant: answer 1"]
        assert any("2 lines of local commands" in note for note in found.notes)

    def test_a_message_that_waited_in_the_queue_was_sent(self) -> None:
        """No other line has it. Of other attachments the log does not say what they became."""
        log = ClaudeLog()
        calls(log)
        log.line("attachment", attachment={"type": "todo_reminder", "content": []})
        log.line("attachment", attachment={"type": "queued_command", "prompt": "and the tests"})
        log.answer("m9", "those, too")
        (found,) = read(log)
        assert said(found)[-2:] == ["user: and the tests", "assistant: those, too"]
        assert any("attachments of type todo_reminder (1)" in note for note in found.notes)

    def test_lines_that_are_no_messages_are_gone_by(self) -> None:
        """Those with an id are links of the chain all the same."""
        log = ClaudeLog()
        log.lines.append({"type": "file-history-snapshot", "messageId": "x", "snapshot": {}})
        log.user("look")
        log.answer("m1", use("a"))
        log.line("progress", data={"type": "hook_progress"})
        log.line("system", subtype="stop_hook_summary")
        log.line("something-new")
        log.result("a")
        log.lines.append({"type": "queue-operation", "operation": "enqueue", "sessionId": SESSION})
        log.line("system", subtype="microcompact_boundary")
        log.answer("m2", "seen")
        (found,) = read(log)
        assert said(found) == ["user: look", "assistant: +a", "user: -a", "assistant: seen"]
        assert any("cleared results" in note for note in found.notes)

    def test_it_is_said_that_system_text_and_tools_are_not_in_a_log(self) -> None:
        """Bills have them."""
        log = ClaudeLog()
        log.turn(1)
        assert "system text and the tools" in read(log)[0].notes[0]

    def test_a_log_of_which_nothing_was_sent_is_refused(self) -> None:
        """As that of a session in which only a command was run, or of titles."""
        log = ClaudeLog()
        log.user("<command-name>/exit</command-name>")
        for lines in (log.lines, [{"type": "summary", "summary": "a title", "leafUuid": "x"}]):
            with pytest.raises(FormatError, match="no message of a user or a model that was sent"):
                read_foreign(lines)


class TestBranches:
    """Another continuation of an earlier message."""

    def test_an_edited_message_begins_a_branch_and_the_newest_comes_first(self) -> None:
        """What both have was billed once."""
        log = ClaudeLog()
        first = log.turn(1)
        log.turn(2)
        log.last = first
        log.turn(3)
        log.turn(4)
        found = read(log)
        assert names(log) == ["", "branch 1"]
        assert [text.split()[-1] for text in said(found[0])] == ["1", "1", "3", "3", "4", "4"]
        assert [text.split()[-1] for text in said(found[1])] == ["1", "1", "2", "2"]
        assert [[bill.at for bill in one.bills] for one in found] == [[1, 3, 5], [3]]
        assert any("1 call it shares" in note for note in found[1].notes)

    def test_an_edited_first_message_is_another_root(self) -> None:
        """Both are of the session."""
        log = ClaudeLog()
        log.turn(1)
        log.last = None
        log.turn(2)
        assert names(log) == ["", "branch 1"]
        assert [len(one.body["messages"]) for one in read(log)] == [2, 2]

    def test_a_second_answer_to_one_message_is_a_branch(self) -> None:
        """Both were billed."""
        log = ClaudeLog()
        question = log.user("look")
        log.answer("m1", "one")
        log.answer("m2", "two", parent=question)
        assert [said(one)[-1] for one in read(log)] == ["assistant: two", "assistant: one"]

    def test_branches_of_branches_are_numbered_as_they_were_begun(self) -> None:
        """Each has all that was before it."""
        log = ClaudeLog()
        first = log.turn(1)
        second = log.turn(2)
        log.turn(3)
        log.last = second
        log.turn(4)
        log.last = first
        log.turn(5)
        assert names(log) == ["", "branch 1", "branch 2"]
        texts = [[text.split()[-1] for text in said(one)[::2]] for one in read(log)]
        assert texts == [["1", "5"], ["1", "2", "4"], ["1", "2", "3"]]

    def test_a_message_that_was_replaced_before_an_answer_is_no_branch(self) -> None:
        """It is told that it was there."""
        log = ClaudeLog()
        first = log.turn(1)
        log.user("wrong")
        log.last = first
        log.turn(2)
        (found,) = read(log)
        assert not any("wrong" in text for text in said(found))
        assert any("1 message of users" in note for note in found.notes)

    def test_stray_lines_are_no_branches(self) -> None:
        """What a skill said beside a result is part of what was sent; a hook's line is nothing."""
        log = ClaudeLog()
        log.user("look")
        first = log.answer("m1", use("a"))
        second = log.answer("m1", use("b"))
        log.result("a", parent=first)
        log.user("the skill says", isMeta=True)
        log.line("progress", parent=first)
        log.line("system", subtype="informational")
        log.result("b", parent=second)
        log.answer("m2", "seen")
        (found,) = read(log)
        assert said(found)[2:] == ["user: -a -b", "user: the skill says", "assistant: seen"]

    def test_an_answer_that_goes_on_from_its_call_is_behind_the_results(self) -> None:
        """It names the line of the call, as does the result."""
        log = ClaudeLog()
        log.user("look")
        first = log.answer("m1", use("a"))
        log.result("a")
        log.answer("m2", "seen", parent=first)
        (found,) = read(log)
        assert said(found)[1:] == ["assistant: +a", "user: -a", "assistant: seen"]

    def test_an_answer_into_which_the_user_wrote_is_before_what_they_wrote(self) -> None:
        """Both name the line before."""
        log = ClaudeLog()
        question = log.user("look")
        log.answer("m1", "I will")
        log.user("wait", parent=question)
        log.answer("m2", "yes")
        (found,) = read(log)
        assert said(found) == ["user: look", "assistant: I will", "user: wait", "assistant: yes"]

    def test_a_branch_from_a_stray_line_has_that_line_once(self) -> None:
        """Who reads what is beside a message must not read it again."""
        log = ClaudeLog()
        first = log.turn(1)
        stray = log.user("the skill says", isMeta=True)
        log.turn(2)
        log.user("and says", isMeta=True, parent=stray)
        log.last = first
        log.turn(3)
        newest, branch = read(log)
        skill = "user: the skill says"
        assert said(newest)[2:] == [skill, "user: and says", "user: question 3", "assistant: answer 3"]
        assert said(branch)[2:] == [skill, "user: question 2", "assistant: answer 2"]

    def test_a_line_behind_one_that_is_not_there_is_behind_the_line_before(self) -> None:
        """It is told; nothing is lost."""
        log = ClaudeLog()
        log.turn(1)
        log.last = "gone"
        log.turn(2)
        (found,) = read(log)
        assert len(said(found)) == 4
        assert any("links to lines that are not in the log" in note for note in found.notes)

    def test_lines_that_are_written_twice_are_read_once(self) -> None:
        """As when an older version continued a session in the same file."""
        log = ClaudeLog()
        log.turn(1)
        log.lines += [dict(line) for line in log.lines]
        log.turn(2)
        (found,) = read(log)
        assert len(said(found)) == 4
        assert any("lines that are written twice (2)" in note for note in found.notes)


class TestCompactions:
    """A compaction begins a conversation."""

    def test_what_was_before_a_compaction_is_a_conversation_of_its_own(self) -> None:
        """Each is named by the one it was before."""
        log = ClaudeLog()
        log.turn(1)
        log.compact("first summary")
        log.turn(2)
        log.compact("second summary")
        log.turn(3)
        found = read(log)
        assert names(log) == ["", "before compaction 1", "before compaction 2"]
        assert said(found[0]) == ["user: second summary", "user: question 3", "assistant: answer 3"]
        assert said(found[2]) == ["user: first summary", "user: question 2", "assistant: answer 2"]
        assert [len(one.bills) for one in found] == [1, 1, 1]

    def test_older_versions_write_the_summary_alone(self) -> None:
        """It has no line before it."""
        log = ClaudeLog()
        log.turn(1)
        log.last = None
        log.user("summary", isCompactSummary=True)
        log.turn(2)
        assert names(log) == ["", "before compaction 1"]

    def test_a_branch_before_a_compaction_says_so(self) -> None:
        """The way to the compaction is the newest there."""
        log = ClaudeLog()
        first = log.turn(1)
        log.turn(2)
        log.last = first
        log.turn(3)
        log.compact()
        log.turn(4)
        assert names(log) == ["", "before compaction 1", "before compaction 1, branch 1"]

    def test_who_goes_back_behind_a_compaction_leaves_what_came_after(self) -> None:
        """The newest line is before it."""
        log = ClaudeLog()
        first = log.turn(1)
        log.compact()
        log.turn(2)
        log.last = first
        log.turn(3)
        assert names(log) == ["", "after compaction 1"]

    @pytest.mark.parametrize("told", ["each", "ends"])
    @pytest.mark.parametrize("again", ["no", "same ids", "new ids"])
    def test_messages_that_a_compaction_kept_come_behind_its_summary(self, told: str, again: str) -> None:
        """Whether the log names each line or both ends, and writes them again or not. Each is billed once."""
        log = ClaudeLog()
        log.turn(1)
        start = len(log.lines)
        calls(log)
        kept = log.lines[start:]
        ids = [str(line["uuid"]) for line in kept]
        ends = {"headUuid": ids[0], "tailUuid": ids[-1], "anchorUuid": f"u{len(log.lines) + 1}"}
        listed = {"preservedMessages": {"uuids": ids, "anchorUuid": ends["anchorUuid"]}}
        log.compact(**(listed if told == "each" else {}), preservedSegment=ends)
        log.last = ids[-1]
        if again != "no":
            new = {one: one if again == "same ids" else f"new {one}" for one in ids}
            top = {"parentUuid": ends["anchorUuid"]}
            for at, line in enumerate(kept):
                parent = top if at == 0 else {"parentUuid": new[line["parentUuid"]]}
                log.lines.append({**line, "uuid": new[line["uuid"]], **parent})
            log.last = new[ids[-1]]
        log.turn(2)
        found = read(log)
        assert names(log) == ["", "before compaction 1"]
        assert said(found[0]) == [
            "user: what was said",
            "user: look",
            "assistant: let me see +a +b",
            "user: -a -b",
            "assistant: seen",
            "user: question 2",
            "assistant: answer 2",
        ]
        assert validate(found[0].body) == []
        assert [len(one.bills) for one in found] == [1, 3]

    def test_kept_messages_without_times_are_known_by_their_ids(self) -> None:
        """Written again, they are no second ones."""
        log = ClaudeLog()
        first = log.turn(1)
        kept = [dict(line) for line in log.lines]
        log.compact(preservedMessages={"uuids": ["u0", first]})
        log.lines += [{**kept[0], "parentUuid": log.last}, kept[1]]
        log.last = first
        log.turn(2)
        for line in log.lines:
            del line["timestamp"]
        found = read_foreign(log.lines) or []
        assert [len(one.body["messages"]) for one in found] == [5, 2]
        assert not any("got no answer" in note for note in found[0].notes)

    def test_what_a_user_says_in_the_moment_of_a_kept_message_is_another(self) -> None:
        """Times are of milliseconds, and programs are quick."""
        log = ClaudeLog()
        first = log.turn(1)
        log.compact(preservedMessages={"uuids": ["u0", first]})
        log.turn(2)
        log.lines[-2]["timestamp"] = log.lines[0]["timestamp"]
        assert said(read(log)[0])[-2] == "user: question 2"

    def test_a_kept_line_that_is_no_message_keeps_none(self) -> None:
        """What is before it was not kept."""
        log = ClaudeLog()
        log.turn(1)
        line = log.line("attachment", attachment={"type": "todo_reminder"})
        kept = log.turn(2)
        log.compact(preservedMessages={"uuids": [line, kept]})
        log.turn(3)
        assert said(read(log)[0])[1] == "assistant: answer 2"

    def test_a_result_that_comes_after_the_compaction_finds_its_call(self) -> None:
        """The call was kept."""
        log = ClaudeLog()
        log.user("look")
        call = log.answer("m1", use("a"))
        log.compact(preservedMessages={"uuids": ["u0", call]})
        log.last = call
        log.result("a")
        log.answer("m2", "seen")
        found = read(log)
        assert said(found[0])[1:] == ["user: look", "assistant: +a", "user: -a", "assistant: seen"]

    @pytest.mark.parametrize(
        "told", [{"preservedMessages": {"uuids": ["gone", 3]}}, {"preservedSegment": {}}]
    )
    def test_lines_that_were_kept_and_are_not_there_are_gone_by(self, told: Any) -> None:
        """As in a log that was cut."""
        log = ClaudeLog()
        log.turn(1)
        log.compact(**told)
        log.turn(2)
        assert len(said(read(log)[0])) == 3


class TestSidechains:
    """Agents of a session have conversations of their own."""

    def test_each_agent_of_a_session_is_a_conversation(self) -> None:
        """With ids or without, also where their lines are mixed with those of others."""
        log = ClaudeLog()
        log.user("look")
        main = log.answer("m1", use("a"))
        side = {"isSidechain": True}
        first = log.user("search", parent=None, **side)
        second = log.user("search more", parent=None, **side)
        first = log.answer("s1", "one", parent=first, **side)
        log.answer("s2", "two", parent=second, **side)
        log.user("named", parent=None, agentId="f00", **side)
        log.answer("s3", "three", agentId="f00", **side)
        log.result("a", parent=main)
        log.answer("m2", "seen")
        found = read(log)
        assert names(log) == ["", "sidechain 1", "sidechain 2", "agent f00"]
        assert [said(one)[-1][11:] for one in found] == ["seen", "one", "two", "three"]
        assert said(found[0]) == ["user: look", "assistant: +a", "user: -a", "assistant: seen"]

    def test_a_file_of_an_agent_is_read_alone(self) -> None:
        """It has no line of the session."""
        log = ClaudeLog()
        log.user("search", isSidechain=True, agentId="f00")
        log.answer("s1", "one", isSidechain=True, agentId="f00")
        (found,) = read(log)
        assert said(found) == ["user: search", "assistant: one"]

    def test_a_line_of_an_agent_whose_line_before_is_lost_stays_with_it(self) -> None:
        """Never with the session."""
        log = ClaudeLog()
        log.turn(1)
        log.user("search", parent=None, isSidechain=True)
        log.answer("s1", "one", isSidechain=True, parent="gone")
        log.last = "u1"
        log.turn(2)
        assert [len(said(one)) for one in read(log)] == [4, 2]


BROKEN: list[tuple[Any, str]] = [
    ([], "entry 3: it must be an object, not list"),
    (None, "entry 3: it must be an object, not null"),
    ({"uuid": "x"}, "entry 3: it has no 'type'"),
    ({"type": "user", "uuid": "x", "parentUuid": None}, "entry 3: a user line has no 'message'"),
    ({"type": "user", "uuid": "x", "parentUuid": 4}, "entry 3: its 'parentUuid' is neither an id nor null"),
    ({"type": "assistant", "uuid": "x", "message": "hi"}, "entry 3: 'message' must be an object, not str"),
    ({"type": "user", "uuid": "x", "message": {"role": "user"}}, "entry 3: its message has no 'content'"),
    (
        {"type": "user", "uuid": "x", "message": {"content": 3}},
        "entry 3: its message has int as its 'content'",
    ),
    (
        {"type": "user", "uuid": "x", "message": {"content": [{}]}},
        "entry 3: block 0 of its message has no 'type'",
    ),
    (
        {"type": "user", "uuid": "x", "timestamp": "noon", "message": {"content": "w"}},
        "entry 3: its 'timestamp' must be a time, not 'noon'",
    ),
    (
        {"type": "attachment", "uuid": "x", "attachment": {"type": "queued_command", "prompt": {"a": 1}}},
        "entry 3: its attachment has dict as its 'prompt'",
    ),
    (
        {"type": "system", "uuid": "x", "subtype": "local_command", "content": [[]]},
        "entry 3: block 0 of it has no 'type'",
    ),
    (
        {"type": "user", "uuid": "x", "timestamp": 10**400, "message": {"content": "w"}},
        "entry 3: its 'timestamp' must be a time, not 100000000000000000...0000000000000000000",
    ),
    (
        {"type": "assistant", "uuid": "x", "message": {"content": [], "usage": 3}},
        "entry 3: 'usage' must be an object, not int",
    ),
]


@pytest.mark.parametrize(("line", "words"), BROKEN)
def test_a_broken_line_is_refused_with_its_number_and_what_is_missing(line: Any, words: str) -> None:
    """`.path` leads to it."""
    log = ClaudeLog()
    log.turn(1)
    with pytest.raises(FormatError) as caught:
        read_foreign([*log.lines, line])
    assert str(caught.value) == words
    assert caught.value.path.startswith("[2]")


@pytest.mark.parametrize("last", [-1, 0, 1])
def test_a_log_is_told_by_its_first_two_lines(last: int) -> None:
    """Whichever of them says so: what comes after may be anything, and is refused for itself."""
    log = ClaudeLog()
    log.turn(1)
    openings = [
        log.lines,
        [{"type": "summary", "summary": "a title", "leafUuid": "x"}, log.lines[last]],
        [
            {"type": "file-history-snapshot", "messageId": "x", "snapshot": {}},
            {"type": "new", "sessionId": "x"},
        ],
        [{"type": "system", "uuid": "x", "parentUuid": None, "subtype": "informational"}],
    ]
    for lines in openings:
        with pytest.raises(FormatError, match=f"entry {len(lines) + 1}: it has no 'type'"):
            read_foreign([*lines, {"broken": True}])


TEXT = [{"type": "text", "text": "hi"}]
OTHERS: list[Any] = [
    [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}],
    [{"role": "user", "content": TEXT}, {"role": "assistant", "content": TEXT}],
    [
        {"type": "message", "role": "user", "content": "hi"},
        {"type": "function_call", "name": "f", "call_id": "c"},
    ],
    [{"role": "user", "parts": [{"text": "hi"}]}, {"role": "model", "parts": [{"text": "ho"}]}],
    [{"role": "user", "content": [{"text": "hi"}]}, {"role": "assistant", "content": [{"toolUse": {}}]}],
    [{"type": "human", "data": {"content": "hi"}}, {"type": "ai", "data": {"content": "ho"}}],
    [{"conversations": [{"from": "human", "value": "hi"}]}],
    [{"from": "human", "value": "hi"}, {"from": "gpt", "value": "ho"}],
    [{"role": "user", "parts": [{"type": "text", "text": "hi"}], "id": "a"}],
    [
        {
            "role": "assistant",
            "content": [{"type": "tool-call", "toolCallId": "c", "toolName": "f", "input": {}}],
        }
    ],
    [{"role": "user", "parts": [{"type": "text", "content": "hi"}]}],
    [{"name": "chat", "trace_id": "a", "span_id": "b", "attributes": {"gen_ai.input.messages": "[]"}}],
    [{"messages": [{"role": "user", "content": "hi"}]}, {"messages": []}],
    [
        {
            "type": "user",
            "sessionId": "s",
            "messageId": 0,
            "message": "hi",
            "timestamp": "2026-01-01T00:00:00Z",
        }
    ],
    [
        {
            "type": "user",
            "uuid": "a",
            "parentUuid": None,
            "sessionId": "s",
            "message": {"parts": [{"text": "hi"}]},
        }
    ],
    [{"type": "session", "id": "a", "timestamp": "2026-01-01T00:00:00Z"}, {"type": "message", "id": "b"}],
    {"messages": [{"role": "user", "content": "hi"}]},
    {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
    {"resourceSpans": []},
    *([message, message] for message, _ in DICTS),
]


@pytest.mark.parametrize("other", OTHERS)
def test_what_other_programs_write_is_none_of_a_coding_agents_logs(other: Any) -> None:
    """Requests of five forms; LangChain, ShareGPT, the AI SDK, OpenTelemetry; Gemini CLI, Qwen Code, pi."""
    mine = ("Claude Code", "Codex", "line ", "the log", "the rollout", "a log")
    assert not _answer(other).startswith(mine)


def _answer(source: Any) -> str:
    """Name the program that is told, or say why it is refused."""
    try:
        found = read_foreign(source)
    except FormatError as error:
        return str(error)
    return found[0].program if found else ""


@pytest.mark.parametrize("seed", range(200))
def test_any_tree_of_lines_is_read_and_no_answer_is_lost(seed: int) -> None:
    """Lines name any line before them, none, or one that is not there; ids of calls and answers repeat."""
    random, log = Random(seed), ClaudeLog()
    for at in range(random.randrange(2, 40)):
        fields: dict[str, Any] = {}
        if random.random() < 0.5:
            fields["parent"] = random.choice([None, "gone", *(line["uuid"] for line in log.lines)])
        if random.random() < 0.15:
            fields |= {"isSidechain": True, **random.choice([{}, {"agentId": "f00"}])}
        kind = random.choice(["user", "meta", "result", "answer", "answer", "other", "compaction"])
        if kind == "answer":
            block = random.choice([{"type": "text", "text": "w"}, use(random.choice("abc"))])
            log.answer(f"m{random.randrange(8)}", {**block, "mark": at}, **fields)
        elif kind == "result":
            log.result(random.choice("abc"), **fields)
        elif kind == "compaction":
            log.line("system", subtype="compact_boundary", **{**fields, "parent": None})
        elif kind == "other":
            log.line("progress", **fields)
        else:
            log.user("w", isMeta=kind == "meta", **fields)
    answered = {mark for line in log.lines for mark in _marks(line.get("message", {}))}
    log.user("at last", parent=None)
    found = read(log)
    assert len({one.name for one in found}) == len(found)
    assert {mark for one in found for message in one.body["messages"] for mark in _marks(message)} == answered


def _marks(message: Any) -> list[int]:
    content = message.get("content")
    return [block["mark"] for block in content if "mark" in block] if isinstance(content, list) else []


def test_a_long_log_is_read_in_time_that_grows_with_its_lines() -> None:
    """Each line is looked at once, and its place is found by ids; also with compactions and stray lines."""

    def case(turns: int) -> Callable[[Any], Any]:
        log = ClaudeLog()
        for number in range(turns):
            log.user(f"look {number}")
            first = log.answer(f"m{number}", use(f"a{number}"))
            second = log.answer(f"m{number}", use(f"b{number}"))
            log.result(f"a{number}", parent=first)
            log.line("progress", parent=first)
            log.user("stray", isMeta=True, parent=first)
            log.result(f"b{number}", parent=second)
            log.answer(f"n{number}", *["word"] * 5)
            if number % 100 == 99:
                log.compact(preservedMessages={"uuids": [first, second, log.last]})
        return lambda counter: read_foreign(log.lines)

    assert_linear(case, (250, 500, 1000))


def test_ten_thousand_lines_are_read_in_a_few_steps_each() -> None:
    """Below a second, where it was tried: 0.25 s."""
    log = ClaudeLog()
    for number in range(2_500):
        log.user(f"look {number}")
        log.answer(f"m{number}", use(f"a{number}"))
        log.result(f"a{number}")
        log.answer(f"n{number}", "seen")
    (found,) = read_foreign(log.lines) or ()
    assert (len(found.body["messages"]), len(found.bills)) == (10_000, 5_000)
    assert operations_of(lambda counter: read_foreign(log.lines)).lines < 200 * len(log.lines)


def test_a_recorded_request_counts_the_same_when_it_comes_from_a_log(data_dir: Path) -> None:
    """Every one of the Anthropic form: pairs and order are those of the request."""
    count = 0
    for name, form, model, recorded in accepted(data_dir):
        if form != "anthropic":
            continue
        body = {**recorded, "model": model}
        (found,) = read_foreign(claude_lines(body)) or ()
        back = {**body, **found.body}
        assert len(back["messages"]) == len(body["messages"]), name
        assert measure(back, format=form).tokens == measure(body, format=form).tokens, name
        assert [unit.indices for unit in group(back["messages"], format=form)] == [
            unit.indices for unit in group(body["messages"], format=form)
        ], name
        count += 1
    assert count > 450


def test_logs_that_counted_wrong_are_read(data_dir: Path) -> None:
    """Cases 04 and 13: lines of a log were counted and fitted as if they were messages."""
    for path in sorted((data_dir.parent / "cases").glob("*.json")):
        case = json.loads(path.read_text("utf-8"))
        if case["id"] in ("04-coding-agent-log", "13-hint"):
            (found,) = read_foreign(case["input"]) or ()
            assert [message["role"] for message in found.body["messages"]] == [
                *("user", "assistant"),
                *("user", "user"),
            ]
            assert validate(found.body) == []
