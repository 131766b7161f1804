"""Random and real conversations: `validate` agrees with the rules restated, `repair` obeys them."""

from __future__ import annotations

import copy
import json
import pathlib
from collections import Counter
from typing import Any

import pytest
from hypothesis import given

from tests.chat_shapes import accepted_by_openai
from tests.pair_rules import CONVERSATION, PENDING, brute_ids, brute_pairs, brute_rules, rules_of
from trimtab.conversation import repair, validate


class TestProperties:
    """Random conversations: parallel, late, repeated, orphaned, open, ids used again."""

    @given(CONVERSATION, PENDING)
    def test_validate_agrees_with_the_rules_restated(self, messages: Any, pending: Any) -> None:
        """Linear and quadratic matching find the same."""
        found = rules_of(validate(messages, pending_calls=pending))
        assert sorted(found) == brute_rules(messages, pending)
        assert [index for index, _, _ in found] == sorted(index for index, _, _ in found)

    @given(CONVERSATION, PENDING)
    def test_repair_leaves_open_calls_and_nothing_at_fault(self, messages: Any, pending: Any) -> None:
        """By the brute restatement, not by `validate`."""
        result = repair(messages, pending_calls=pending).messages
        assert {rule for _, rule, _ in brute_rules(result, pending)} <= {"open_call"}

    @given(CONVERSATION, PENDING)
    def test_repair_is_idempotent(self, messages: Any, pending: Any) -> None:
        """A second repair finds nothing to do and returns the same objects."""
        once = repair(messages, pending_calls=pending).messages
        twice = repair(once, pending_calls=pending)
        assert twice.changes == ()
        assert all(a is b for a, b in zip(once, twice.messages, strict=True))

    @given(CONVERSATION, PENDING)
    def test_repair_takes_nothing_it_need_not(self, messages: Any, pending: Any) -> None:
        """Text messages and paired results all stay, as the same objects; calls lose only dead ids."""
        before = copy.deepcopy(messages)
        result = repair(messages, pending_calls=pending).messages
        assert messages == before
        owner, _ = brute_pairs(messages)
        unanswered = {(i, c) for i, rule, c in brute_rules(messages, pending) if rule == "unanswered_call"}
        kept = {id(message) for message in result}
        for at, message in enumerate(messages):
            if message["role"] == "tool":
                call, repeated = owner[at]
                assert (id(message) in kept) == (call is not None and not repeated)
            elif not any((at, call_id) in unanswered for call_id in brute_ids(message)):
                assert id(message) in kept
        made = Counter(call_id for message in result for call_id in brute_ids(message))
        alive = Counter(c for i, m in enumerate(messages) for c in brute_ids(m) if (i, c) not in unanswered)
        assert made == alive

    @given(CONVERSATION)
    def test_what_does_not_move_keeps_its_order(self, messages: Any) -> None:
        """Only messages listed as moved stand elsewhere."""
        done = repair(messages)
        moved = {id(messages[c.index]) for c in done.changes if c.action == "moved"}
        place = {id(message): i for i, message in enumerate(messages)}
        stayed = [place[id(m)] for m in done.messages if id(m) in place and id(m) not in moved]
        assert stayed == sorted(stayed)

    @given(CONVERSATION)
    def test_valid_input_comes_back_as_a_new_list_of_the_same_objects(self, messages: Any) -> None:
        """Also when calls are open."""
        if {rule for _, rule, _ in brute_rules(messages, [])} <= {"open_call"}:
            done = repair(messages)
            assert done.messages is not messages
            assert [id(m) for m in done.messages] == [id(m) for m in messages]
            assert done.changes == ()

    @given(CONVERSATION)
    def test_what_is_repaired_has_the_types_openai_asks_for(self, messages: Any) -> None:
        """The package's own request types accept every message."""
        assert accepted_by_openai(*repair(messages).messages)


def lines_of(path: pathlib.Path) -> list[dict[str, Any]]:
    """Read a file of one JSON value a line."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


class TestRealConversations:
    """The conversations of ../shared/data, none of which is in this repository."""

    @pytest.mark.parametrize(
        "name",
        [
            "glaive_toolcall_en.jsonl",
            "glaive_toolcall_zh.jsonl",
            "pydantic_ai_chats.jsonl",
            "swe_agent_trajectories.jsonl",
            "tau_airline_gpt4o.jsonl",
        ],
    )
    def test_these_are_valid_and_come_back_as_they_are(self, name: str, data_dir: pathlib.Path) -> None:
        """As the restated rules say as well."""
        for line in lines_of(data_dir / name):
            messages = line["messages"]
            assert brute_rules([_with_id(message) for message in messages], []) == []
            assert validate(messages) == []
            assert all(a is b for a, b in zip(messages, repair(messages).messages, strict=True))

    def test_the_coding_session_has_calls_that_were_never_answered(self, data_dir: pathlib.Path) -> None:
        """Six, of four turns that were cut off: their ids are nowhere a `tool_call_id`."""
        [line] = lines_of(data_dir / "pi_coding_sessions.jsonl")
        messages = line["messages"]
        answered = {message.get("tool_call_id") for message in messages}
        dead = [
            (i, call["id"])
            for i, message in enumerate(messages)
            for call in message.get("tool_calls") or ()
            if call["id"] not in answered
        ]
        assert (len(dead), len({i for i, _ in dead})) == (6, 4)
        assert rules_of(validate(messages)) == [(i, "unanswered_call", c) for i, c in dead]
        done = repair(messages)
        assert validate(done.messages) == []
        assert {change.index for change in done.changes} == {i for i, _ in dead}

    def test_no_request_openai_billed_is_called_invalid(self, data_dir: pathlib.Path) -> None:
        """Recorded requests to api.openai.com were accepted: they have no fault."""
        bodies = [
            line["request"]
            for line in lines_of(data_dir / "golden_usage.jsonl")
            if line["provider"] == "api.openai.com" and line["api"] == "chat"
        ]
        assert len(bodies) > 50
        assert [v for body in bodies for v in validate(body) if v.fault] == []


def _with_id(message: dict[str, Any]) -> dict[str, Any]:
    return {"tool_call_id": "", **message}
