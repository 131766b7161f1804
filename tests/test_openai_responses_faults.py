"""What the Responses API refuses in items has a name, a path and the API's words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.response_items import EVERY, accepted_by_openai, billed, call, output, said, thought, user
from trimtab import validate
from trimtab.formats import OpenAIResponses

FORM = OpenAIResponses()

STRING_WANTED = "Expected a string with minimum length 1, but got an empty string instead."


def without(item: dict[str, Any], key: str) -> dict[str, Any]:
    """Copy without a key."""
    return {name: value for name, value in item.items() if name != key}


class TestFaults:
    """`faults` names what the API refuses."""

    @pytest.mark.parametrize("name", sorted(set(EVERY) - {"reasoning"}))
    def test_a_good_item_has_none(self, name: str) -> None:
        """One of every type."""
        assert FORM.faults([EVERY[name]]) == []

    @pytest.mark.parametrize(
        "item",
        [
            user(""),
            user([]),
            {"type": "message", "role": "developer", "content": "x", "status": "completed", "id": "msg_1"},
            said("x", "msg_1"),
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
            output("c", []),
            output("c", [{"type": "input_image", "file_id": "f"}]),
            {"type": "function_call_output", "name": "note", "output": "x"},
            {"type": "local_shell_call_output", "call_id": "c1", "output": "{}"},
            {"type": "image_generation_call", "id": "ig_1"},
            {"type": "reasoning", "summary": []},
            {"id": "msg_1"},
        ],
    )
    def test_less_usual_shapes_pass(self, item: dict[str, Any]) -> None:
        """What the API is known to take, also where the package's types ask for more."""
        assert FORM.faults([item]) == []

    @pytest.mark.parametrize(
        ("item", "rule", "path", "words"),
        [
            (
                {"type": "novelty"},
                "unknown_item",
                ("type",),
                "Invalid value: 'novelty'. Supported values are: 'additional_tools', ",
            ),
            ({"type": 3}, "unknown_item", ("type",), "Invalid value: '3'."),
            ({}, "missing_role", ("role",), "Invalid value: ''. Supported values are: 'assistant', "),
            ({"content": "x"}, "missing_role", ("role",), "Invalid value: ''. "),
            (
                {"role": "tool", "content": "x"},
                "unknown_role",
                ("role",),
                "'tool'. Supported values are: 'assistant', 'system', 'developer', and 'user'.",
            ),
            (
                {"role": "user"},
                "missing_value",
                ("content",),
                "Missing required parameter: 'input[0].content'.",
            ),
            (
                user(None),
                "bad_value",
                ("content",),
                "Invalid type for 'input[0].content': expected one of an array of objects or string, but got "
                "null instead.",
            ),
            (user(3), "bad_value", ("content",), "but got an integer instead."),
            (user(["x"]), "bad_part", ("content", 0), "'input[0].content[0]': expected an object"),
            (user([3]), "bad_part", ("content", 0), "but got an integer instead."),
            (
                {"role": "assistant", "content": [{"type": "input_text", "text": "x"}]},
                "misplaced_part",
                ("content", 0, "type"),
                "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'.",
            ),
            (
                user([{"type": "output_text", "text": "x"}]),
                "misplaced_part",
                ("content", 0, "type"),
                "Invalid value: 'output_text'. Supported values are: 'input_text', 'input_image', ",
            ),
            (user([{"type": "text", "text": "x"}]), "misplaced_part", ("content", 0, "type"), "'text'"),
            (
                user([{"type": "input_text"}]),
                "missing_value",
                ("content", 0, "text"),
                "Missing required parameter: 'input[0].content[0].text'.",
            ),
            (
                user([{"type": "input_text", "text": None}]),
                "bad_part",
                ("content", 0, "text"),
                "expected a string, but got null instead.",
            ),
            (
                without(call("c"), "call_id"),
                "missing_value",
                ("call_id",),
                "Missing required parameter: 'input[0].call_id'.",
            ),
            (
                call(""),
                "empty_value",
                ("call_id",),
                f"Invalid 'input[0].call_id': empty string. {STRING_WANTED}",
            ),
            (call("c", name=""), "empty_value", ("name",), f"empty string. {STRING_WANTED}"),
            (
                {**call("c"), "arguments": {"x": 1}},
                "bad_value",
                ("arguments",),
                "Invalid type for 'input[0].arguments': expected a string, but got an object instead.",
            ),
            (
                call("c" * 65),
                "long_value",
                ("call_id",),
                "Invalid 'input[0].call_id': string too long. Expected a string with maximum length 64, but "
                "got a string with length 65 instead.",
            ),
            (
                {**said(), "tool_calls": []},
                "unknown_key",
                ("tool_calls",),
                "Unknown parameter: 'input[0].tool_calls'.",
            ),
            (without(output("c"), "output"), "missing_value", ("output",), "'input[0].output'."),
            (
                output("c", {"x": 1}),
                "bad_value",
                ("output",),
                "Invalid type for 'input[0].output': expected one of a string or array of objects, but got "
                "an object instead.",
            ),
            (
                output("c", [{"type": "output_text", "text": "x"}]),
                "misplaced_part",
                ("output", 0, "type"),
                "Invalid value: 'output_text'.",
            ),
            (without(output("c"), "call_id"), "missing_value", ("call_id",), "'input[0].call_id'."),
            (
                {"type": "local_shell_call_output", "output": "{}"},
                "missing_value",
                ("call_id",),
                "'input[0].call_id'.",
            ),
            (without(thought(), "summary"), "missing_value", ("summary",), "'input[0].summary'."),
            (
                without(EVERY["compaction"], "encrypted_content"),
                "missing_value",
                ("encrypted_content",),
                "Missing required parameter: 'input[0].encrypted_content'.",
            ),
            (
                {**EVERY["mcp_approval_response"], "approve": "yes"},
                "bad_value",
                ("approve",),
                "a boolean",
            ),
            (
                {**call("c"), "id": "call_1"},
                "bad_id",
                ("id",),
                "Invalid 'input[0].id': 'call_1'. Expected an ID that begins with 'fc'.",
            ),
            (
                {**EVERY["custom_tool_call"], "id": "fc_1"},
                "bad_id",
                ("id",),
                "Expected an ID that begins with 'ctc'.",
            ),
        ],
    )
    def test_a_bad_item_is_named_with_the_words_of_the_api(
        self, item: dict[str, Any], rule: str, path: tuple[Any, ...], words: str
    ) -> None:
        """As users of the API report them."""
        found = [fault for fault in FORM.faults([item]) if fault.rule != "dangling_reasoning"]
        assert [(fault.rule, fault.path) for fault in found] == [(rule, path)]
        assert words in found[0].detail

    @pytest.mark.parametrize(
        "item",
        [
            user(3),
            without(call("c"), "call_id"),
            {**call("c"), "arguments": {}},
            without(output("c"), "output"),
            without(thought(), "summary"),
            {"role": "tool", "content": "x"},
            {"type": "novelty"},
        ],
    )
    def test_the_types_of_the_package_agree(self, item: dict[str, Any]) -> None:
        """Where they are as strict as the API."""
        assert FORM.faults([item])
        assert not accepted_by_openai(item)


class TestAmongOthers:
    """Some faults are of an item's place among the others."""

    def test_reasoning_needs_what_it_led_to(self) -> None:
        """A user's words, a result or nothing is not that."""
        said_by_api = "Item 'rs_1' of type 'reasoning' was provided without its required following item."
        for items in ([thought()], [thought(), user()], [thought(), call("c"), output("c"), thought("rs_2")]):
            found = FORM.faults(items)
            assert [fault.rule for fault in found] == ["dangling_reasoning"]
        assert FORM.faults([thought(), user()])[0].detail == said_by_api
        assert FORM.faults([thought(), call("c")]) == []

    def test_an_id_occurs_once(self) -> None:
        """Also as a reference; a call id occurs twice, of course."""
        found = FORM.faults([said("a", "msg_1"), user(), {"type": "item_reference", "id": "msg_1"}])
        assert [(fault.index, fault.rule) for fault in found] == [(2, "duplicate_id")]
        assert found[0].detail == (
            "Duplicate item found with id msg_1. Remove duplicate items from your input and try again."
        )
        assert FORM.faults([EVERY["local_shell_call"], EVERY["local_shell_call_output"]]) == []

    def test_a_call_is_answered_by_an_output_of_its_type(self) -> None:
        """A function's output is none of a shell's."""
        items = [EVERY["shell_call"], EVERY["function_call_output"]]
        assert [(fault.index, fault.rule) for fault in FORM.faults(items)] == [(1, "mismatched_output")]
        assert FORM.faults([EVERY["shell_call"], EVERY["shell_call_output"]]) == []

    def test_a_compaction_is_asked_for_at_the_end(self) -> None:
        """Nowhere else."""
        trigger = EVERY["compaction_trigger"]
        assert FORM.faults([user(), trigger]) == []
        assert [fault.rule for fault in FORM.faults([trigger, user()])] == ["misplaced_trigger"]


class TestBilled:
    """Requests the API took and billed."""

    def test_none_of_them_has_a_fault(self, data_dir: Path) -> None:
        """But one result without its call: the recording left the body's `conversation` out."""
        found = {
            name: [violation.rule for violation in validate(body, format=FORM) if violation.fault]
            for name, body in billed(data_dir / "golden_usage.jsonl")
        }
        assert len(found) == 146
        assert {name: rules for name, rules in found.items() if rules} == {
            "test_openai_conversation_id_tool_call_continuation#2": ["orphan_result"]
        }
