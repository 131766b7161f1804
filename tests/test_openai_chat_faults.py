"""What OpenAI refuses in the shape of one message has a name and a path."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.chat_shapes import accepted_by_openai, calling, custom_call, function_call, result
from trimtab.formats import OpenAIChat

CHAT = OpenAIChat()


class TestFaults:
    """`faults` names what the API refuses in one message."""

    @pytest.mark.parametrize(
        "message",
        [
            {"role": "system", "content": "s"},
            {"role": "developer", "content": [{"type": "text", "text": "s"}]},
            {"role": "user", "content": "", "name": "Ann"},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "a"},
                    {"type": "image_url", "image_url": {"url": "u"}},
                    {"type": "input_audio", "input_audio": {"data": "", "format": "wav"}},
                    {"type": "file", "file": {"file_id": "f"}},
                ],
            },
            {"role": "assistant", "content": "a"},
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
            {"role": "assistant", "content": None, "refusal": "no"},
            {"role": "assistant", "audio": {"id": "audio_1"}},
            {"role": "assistant", "content": None, "function_call": {"name": "add", "arguments": "{}"}},
            calling(function_call("a"), custom_call("c")),
            result("a"),
            result("a", [{"type": "text", "text": "4"}]),
            {"role": "function", "name": "add", "content": None},
        ],
    )
    def test_a_good_message_has_none(self, message: dict[str, Any]) -> None:
        """Every documented shape passes, and the openai package's types agree."""
        assert CHAT.faults([message]) == []
        assert accepted_by_openai(message)

    @pytest.mark.parametrize(
        ("message", "rule", "path"),
        [
            ({"content": "x"}, "missing_role", ("role",)),
            ({"role": None, "content": "x"}, "missing_role", ("role",)),
            ({"role": "critic", "content": "x"}, "unknown_role", ("role",)),
            ({"role": ["user"], "content": "x"}, "unknown_role", ("role",)),
            ({"role": "user"}, "missing_content", ("content",)),
            ({"role": "user", "content": None}, "missing_content", ("content",)),
            (result("a", None), "missing_content", ("content",)),
            ({"role": "function", "name": "f"}, "missing_content", ("content",)),
            ({"role": "user", "content": 3}, "bad_content", ("content",)),
            ({"role": "user", "content": {"type": "text"}}, "bad_content", ("content",)),
            ({"role": "user", "content": []}, "empty_content", ("content",)),
            ({"role": "user", "content": ["x"]}, "bad_part", ("content", 0)),
            ({"role": "user", "content": [None]}, "bad_part", ("content", 0)),
            ({"role": "user", "content": [{"type": "text"}]}, "bad_part", ("content", 0, "text")),
            (
                {"role": "user", "content": [{"type": "image_url", "image_url": "u"}]},
                "bad_part",
                ("content", 0, "image_url"),
            ),
            ({"role": "user", "content": [{"text": "x"}]}, "unknown_part", ("content", 0, "type")),
            ({"role": "user", "content": [{"type": "tool_use"}]}, "unknown_part", ("content", 0, "type")),
            (
                {"role": "system", "content": [{"type": "image_url", "image_url": {"url": "u"}}]},
                "misplaced_part",
                ("content", 0, "type"),
            ),
            ({"role": "user", "content": "x", "name": 3}, "bad_name", ("name",)),
            ({"role": "tool", "content": "4"}, "missing_tool_call_id", ("tool_call_id",)),
            (result(3), "missing_tool_call_id", ("tool_call_id",)),
            ({"role": "function", "content": "4"}, "missing_name", ("name",)),
            ({"role": "assistant"}, "empty_assistant", ("content",)),
            ({"role": "assistant", "content": None, "refusal": None}, "empty_assistant", ("content",)),
            ({"role": "assistant", "content": "x", "tool_calls": []}, "empty_tool_calls", ("tool_calls",)),
            ({"role": "assistant", "content": "x", "tool_calls": "a"}, "bad_tool_calls", ("tool_calls",)),
            (calling(None), "bad_tool_call", ("tool_calls", 0)),
            (calling(function_call(None)), "bad_tool_call", ("tool_calls", 0, "id")),
            (calling(function_call("")), "bad_tool_call", ("tool_calls", 0, "id")),
            (calling(function_call("a", "")), "bad_tool_call", ("tool_calls", 0, "function", "name")),
            (
                calling(function_call("a", "f", {})),
                "bad_tool_call",
                ("tool_calls", 0, "function", "arguments"),
            ),
            (calling({"id": "a", "type": "function"}), "bad_tool_call", ("tool_calls", 0, "function")),
            (calling({**function_call("a"), "type": "odd"}), "bad_tool_call", ("tool_calls", 0, "type")),
            (calling(function_call("a"), function_call("a")), "duplicate_call_id", ("tool_calls", 1, "id")),
            (
                {"role": "assistant", "function_call": {"name": "f"}},
                "bad_tool_call",
                ("function_call", "arguments"),
            ),
        ],
    )
    def test_a_bad_message_has_one_named_fault(
        self, message: dict[str, Any], rule: str, path: tuple[str | int, ...]
    ) -> None:
        """Rule, position and path say what and where."""
        found = CHAT.faults([{"role": "user", "content": "hi"}, message])
        assert [(fault.index, fault.rule, fault.path) for fault in found] == [(1, rule, path)]

    @given(
        st.fixed_dictionaries(
            {"role": st.sampled_from(["system", "user", "assistant", "tool", "function", "developer", "x"])},
            optional={
                "content": st.sampled_from(
                    [None, "x", [], 3, [{"type": "text", "text": "x"}], [{"type": "text"}], [{}], ["x"]]
                )
                | st.just([{"type": "refusal", "refusal": "no"}])
                | st.just([{"type": "image_url", "image_url": {"url": "u"}}]),
                "name": st.sampled_from(["n", 3]),
                "tool_call_id": st.sampled_from(["a", 3, None]),
                "tool_calls": st.sampled_from(
                    [[function_call()], [custom_call()], [{}], [None], [function_call(3)], "a"]
                )
                | st.just([function_call("a", "f", {})]),
                "function_call": st.sampled_from([{"name": "f", "arguments": ""}, {"name": "f"}, 3]),
                "refusal": st.just("no"),
                "audio": st.just({"id": "a"}),
            },
        )
    )
    def test_a_message_without_faults_is_accepted_by_the_openai_package(self, message: Any) -> None:
        """Its request types, read by pydantic down to the last part, refuse nothing we pass."""
        if message["role"] != "assistant":
            message.pop("tool_calls", None)
            message.pop("function_call", None)
        if not CHAT.faults([message]):
            assert accepted_by_openai(message)
