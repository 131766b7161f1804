"""What Anthropic refuses in the shape of messages has a name and a path."""

from __future__ import annotations

from typing import Any

import pytest

from tests.anthropic_shapes import (
    accepted_by_anthropic,
    compaction,
    document,
    found,
    image,
    model,
    redacted,
    result,
    sdk_message,
    server_use,
    system,
    text,
    thinking,
    use,
    user,
)
from trimtab.conversation import repair, validate
from trimtab.formats import Anthropic, mapping_of

FORM = Anthropic()
CACHE = {"type": "ephemeral"}


def rules(*messages: Any) -> list[str]:
    """List the rules of all violations."""
    return [violation.rule for violation in validate(list(messages), format=FORM) if violation.fault]


class TestShapes:
    """`faults` names what the API refuses in one message."""

    @pytest.mark.parametrize(
        "messages",
        [
            [user("hi")],
            [user(text("hi", cache_control=CACHE), image(), document(), document(type="url", url="u"))],
            [user({"type": "image", "source": {"type": "file", "file_id": "f"}})],
            [user(document(type="text", media_type="text/plain", data="d"))],
            [user({"type": "search_result", "source": "s", "title": "t", "content": [text()]})],
            [user({"type": "container_upload", "file_id": "f"})],
            [user("q"), model(thinking(), redacted(), text("x"), use("a")), user(result("a", is_error=True))],
            [user("q"), model(use("a"), use("b")), user(result("b"), result("a", [text(), image()]), text())],
            [user("q"), model(use("a")), user({"type": "tool_result", "tool_use_id": "a"})],
            [user("q"), model(use("a")), user(result("a", ""))],
            [user("q"), model(server_use(), found(), text("x"))],
            [user("q"), model("prefilled")],
            [user("q"), model("")],
            [user("q"), user("r"), model("a"), model("b")],
            [user("q"), system("be brief"), model("x"), user("r"), system(text("s"))],
        ],
    )
    def test_a_good_conversation_has_none(self, messages: list[Any]) -> None:
        """Every documented shape passes, and the anthropic package's types agree."""
        assert rules(*messages) == []
        assert accepted_by_anthropic(*messages)

    @pytest.mark.parametrize(
        ("message", "rule", "path"),
        [
            ({"content": "x"}, "missing_role", ("role",)),
            ({"role": "tool", "content": "x"}, "unknown_role", ("role",)),
            ({"role": ["user"], "content": "x"}, "unknown_role", ("role",)),
            ({"role": "user"}, "missing_content", ("content",)),
            ({"role": "user", "content": None}, "bad_content", ("content",)),
            ({"role": "user", "content": 7}, "bad_content", ("content",)),
            ({**user("hi"), "id": "msg_1"}, "unknown_key", ("id",)),
            ({**user("hi"), "tool_calls": []}, "unknown_key", ("tool_calls",)),
            (user(""), "empty_content", ("content",)),
            ({"role": "user", "content": []}, "empty_content", ("content",)),
            (system(""), "empty_content", ("content",)),
            ({"role": "system", "content": []}, "empty_content", ("content",)),
            (user(" \n"), "blank_text", ("content",)),
            (user(text("")), "empty_text", ("content", 0, "text")),
            (user(text("x"), text("\n")), "blank_text", ("content", 1, "text")),
            (user({"type": "text"}), "bad_block", ("content", 0, "text")),
            (user(text(), "bare"), "bad_block", ("content", 1)),
            (user({"type": "image_url", "image_url": {}}), "unknown_block", ("content", 0, "type")),
            (user({"text": "x"}), "unknown_block", ("content", 0, "type")),
            (user(use()), "misplaced_block", ("content", 0)),
            (user(thinking()), "misplaced_block", ("content", 0)),
            (system(image()), "misplaced_block", ("content", 0)),
            (user({"type": "image"}), "bad_source", ("content", 0, "source")),
            (user(document(type="pdf")), "bad_source", ("content", 0, "source", "type")),
            (user(document(type="url")), "bad_source", ("content", 0, "source", "url")),
            (user(result("")), "bad_result", ("content", 0, "tool_use_id")),
            (user(result("a", 7)), "bad_result", ("content", 0, "content")),
            (user(result("a", [use()])), "unknown_block", ("content", 0, "content", 0)),
            (user(compaction("")), "bad_block", ("content", 0, "content")),
        ],
    )
    def test_a_fault_has_a_rule_and_a_path(self, message: Any, rule: str, path: Any) -> None:
        """One fault, where it is; system text that comes first is another."""
        found = [(fault.rule, fault.path) for fault in FORM.faults([message])]
        assert found == [(rule, path)] + [("misplaced_system", ("role",))] * (message.get("role") == "system")

    @pytest.mark.parametrize(
        ("message", "rule", "path"),
        [
            (model(image()), "misplaced_block", ("content", 0)),
            (model(document()), "misplaced_block", ("content", 0)),
            (model(result()), "misplaced_block", ("content", 0)),
            (model(use(None)), "bad_call", ("content", 0, "id")),
            (model(use("a", "")), "bad_call", ("content", 0, "name")),
            (model({**use("a"), "input": "{}"}), "bad_call", ("content", 0, "input")),
            (model({**server_use(), "type": "mcp_tool_use"}), "bad_call", ("content", 0, "server_name")),
            (model({"type": "thinking", "thinking": "x"}, text()), "bad_block", ("content", 0, "signature")),
            (model({"type": "redacted_thinking"}, text()), "bad_block", ("content", 0, "data")),
            (
                model({**redacted(), "cache_control": CACHE}, text()),
                "cached_thinking",
                ("content", 0, "cache_control"),
            ),
            (model(use("a"), use("a")), "duplicate_call_id", ("content", 1, "id")),
        ],
    )
    def test_a_fault_of_the_models_message_too(self, message: Any, rule: str, path: Any) -> None:
        """Where more follows, so that it is not the last."""
        assert [(fault.rule, fault.path) for fault in FORM.faults([message, user("hi")])] == [(rule, path)]

    def test_the_last_message_is_looked_at_harder(self) -> None:
        """If it is the model's, the model is to go on with it."""
        for message, rule in (
            (model("so "), "trailing_whitespace"),
            (model(text("x"), text("so\n")), "trailing_whitespace"),
            (model(text("x"), thinking()), "final_thinking"),
            (model(redacted()), "final_thinking"),
        ):
            assert rules(user("q"), message) == [rule]
            assert rules(user("q"), message, user("r")) == []
        assert rules(user("q"), user("so ")) == []

    def test_a_whole_message_object_says_too_much(self) -> None:
        """The package sends all its fields, and the API takes two of them."""
        faults = FORM.faults([user("q"), mapping_of(sdk_message()), user(result("a"))])
        assert {fault.rule for fault in faults} == {"unknown_key"}
        assert {fault.path[0] for fault in faults} == {"id", "model", "stop_reason", "type", "usage"}

    def test_four_marks_for_the_cache_are_the_most(self) -> None:
        """The fifth is named."""
        marked = [user(text(str(n), cache_control=CACHE)) for n in range(5)]
        assert rules(*marked[:4]) == []
        (found,) = validate(marked, format=FORM)
        assert (found.index, found.rule) == (4, "too_many_cache_points")
        assert "Found 5" in found.message

    def test_a_signed_compaction_stands_first_and_once(self) -> None:
        """One without a signature stands behind what it stands for."""
        signed = compaction(signature="s")
        assert rules(model(signed), user("q")) == []
        assert rules(user("q"), model(signed), user("r")) == ["misplaced_compaction"]
        assert rules(model(signed), user(signed)) == ["misplaced_compaction", "repeated_compaction"]
        assert rules(user("q"), model(compaction(), text()), user("r"), model(compaction(), text())) == []


class TestPairs:
    """Calls, results, and halves of the provider's own."""

    @pytest.mark.parametrize(
        ("messages", "expected"),
        [
            ([user("q"), model(use("a")), user("r")], ["unanswered_call"]),
            ([user("q"), model(use("a"), use("b")), user(result("a"), text())], ["unanswered_call"]),
            ([user("q"), model(use("a"), use("b")), user(result("a"))], []),
            ([user("q"), user(result("a"))], ["orphan_result"]),
            ([user("q"), model(use("a")), user(result("a"), result("a"))], ["repeated_result"]),
            ([user("q"), model(use("a")), user("r"), user(result("a"))], ["late_result"]),
            ([user("q"), model(use("a")), user(text(), result("a"))], ["result_not_first"]),
            (
                [user("q"), model(use("a"), use("b")), user(result("a"), text()), user(result("b"))],
                ["result_not_first"],
            ),
            ([user("q"), model(use("a"), use("b")), user(result("a")), user(result("b"))], []),
            ([user("q"), model(use("a")), model(use("b")), user(result("a"), result("b"))], []),
            ([user("q"), model(use("a")), user(result("a")), model(use("a")), user(result("a"))], []),
            ([user("q"), model(server_use()), user("r")], ["unanswered_call"]),
            ([user("q"), model(found()), user("r")], ["orphan_result"]),
            (
                [user("q"), model(found("s"), server_use(), text()), user("r")],
                ["orphan_result", "unanswered_call"],
            ),
            ([user("q"), model(server_use())], []),
            ([user("q"), model(server_use()), model(found(), text())], []),
            ([user("q"), model(server_use(), use("a")), user(result("a")), model(found(), text())], []),
            (
                [user("q"), model(server_use()), user("r"), model(found())],
                ["late_result"],
            ),
            ([model("hi"), user("q")], ["wrong_order"]),
            ([user("q"), model("x"), system("s"), user("r")], ["wrong_order"]),
            ([user("q"), system("s"), user("r")], ["wrong_order"]),
            ([model(compaction(), text()), user("q")], []),
        ],
    )
    def test_what_the_api_refuses_is_listed(self, messages: list[Any], expected: list[str]) -> None:
        """And what it takes is not: one turn in several messages, of the model or of the user."""
        assert sorted(rules(*messages)) == sorted(expected)

    def test_the_words_are_the_providers(self) -> None:
        """As its status 400 has them."""
        (found,) = validate([user("q"), model(use("toolu_1")), user("r")], format=FORM)
        assert (
            "`tool_use` ids were found without `tool_result` blocks immediately after: toolu_1."
            in found.message
        )
        (found,) = validate([user("q"), user(result("toolu_1"))], format=FORM)
        assert "unexpected `tool_use_id` found in `tool_result` blocks: toolu_1." in found.message
        (found,) = validate([model("hi"), user("q")], format=FORM)
        assert 'first message must use the "user" role' in found.message

    @pytest.mark.parametrize(
        ("messages", "left"),
        [
            (
                [
                    user("q"),
                    model(use("a"), use("b")),
                    user(result("a"), text("go")),
                    model("x"),
                    user(result("b")),
                ],
                [
                    user("q"),
                    model(use("a"), use("b")),
                    user(result("a"), result("b"), text("go")),
                    model("x"),
                ],
            ),
            (
                [user("q"), model(use("a")), user("r"), user(result("a"), text("s"))],
                [user("q"), model(use("a")), user(result("a")), user("r"), user(text("s"))],
            ),
            (
                [
                    user("q"),
                    model(use("a")),
                    model(use("b")),
                    user(result("b")),
                    model("x"),
                    user(result("a")),
                ],
                [user("q"), model(use("a")), model(use("b")), user(result("b"), result("a")), model("x")],
            ),
            (
                [user("q"), model(server_use(), text("x")), user("r")],
                [user("q"), model(text("x")), user("r")],
            ),
            (
                [user("q"), model(found(), text("x")), user("r")],
                [user("q"), model(text("x")), user("r")],
            ),
            ([user("q"), model(thinking(), use("a")), user("r")], [user("q"), user("r")]),
            (
                [user("q"), model(found(), use("a")), user(result("a"))],
                [user("q"), model(use("a")), user(result("a"))],
            ),
            ([model("hi"), user("q")], [user("q")]),
        ],
    )
    def test_a_repair_leaves_nothing_to_list(self, messages: list[Any], left: list[Any]) -> None:
        """Late results come before the words of the user; halves of the provider's own leave alone."""
        mended = repair(messages, format=FORM)
        assert mended.messages == left
        assert rules(*left) == []
        assert repair(left, format=FORM).changes == ()

    def test_a_message_that_took_results_in_was_edited(self) -> None:
        """So that a report does not call it unchanged."""
        messages = [user("q"), model(use("a"), use("b")), user(result("a")), model("x"), user(result("b"))]
        changes = [(one.index, one.action, one.call_id) for one in repair(messages, format=FORM).changes]
        assert changes == [(2, "edited", "b"), (4, "moved", "b")]
