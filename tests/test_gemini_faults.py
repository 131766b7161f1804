"""What Gemini refuses in the shape of contents has a name and a path."""

from __future__ import annotations

from typing import Any

import pytest

from tests.gemini_shapes import SIGNED, accepted_by_google, agent, call, model, response, snake, user, words
from trimtab.formats import Gemini

GEMINI = Gemini()


def rules(*contents: Any) -> list[tuple[int, str]]:
    """List where which rule is broken."""
    return [(fault.index, fault.rule) for fault in GEMINI.faults(list(contents))]


class TestShapes:
    """`faults` names what the API refuses in one content."""

    @pytest.mark.parametrize(
        "content",
        [
            user("hi"),
            {"parts": [words()]},
            user(""),  # billed by the Gemini API
            user("hi", {"inlineData": {"mimeType": "image/png", "data": "aGk="}}),
            user({"fileData": {"fileUri": "u", "mimeType": "video/mp4"}, "videoMetadata": {"fps": 1.0}}),
            model(words("hm", thought=True), "so", call("f", "a"), call("f")),
            model(words("", thoughtSignature=SIGNED)),
            model({"executableCode": {"code": "1", "language": "PYTHON"}}, {"codeExecutionResult": {}}),
            model({"toolCall": {"id": "1"}}, {"toolResponse": {"id": "1"}}),
            user(response("f", "a"), response("g"), "and"),
            {"role": "tool", "parts": [response()]},
            {"role": "function", "parts": [response()]},
        ],
    )
    def test_a_good_content_has_none(self, content: dict[str, Any]) -> None:
        """Every documented shape passes in both spellings, and the SDK's types agree."""
        assert GEMINI.faults([content]) == GEMINI.faults([snake(content)]) == []
        assert accepted_by_google(content)
        assert accepted_by_google(snake(content))

    @pytest.mark.parametrize(
        ("content", "rule", "path"),
        [
            ({"role": "assistant", "parts": [words()]}, "unknown_role", ("role",)),
            ({"role": "system", "parts": [words()]}, "unknown_role", ("role",)),
            ({"role": ["user"], "parts": [words()]}, "unknown_role", ("role",)),
            ({"role": "user"}, "empty_parts", ("parts",)),
            ({"role": "user", "parts": []}, "empty_parts", ("parts",)),
            ({"role": "user", "parts": "hi"}, "bad_parts", ("parts",)),
            ({"role": "user", "parts": ["hi"]}, "bad_part", ("parts", 0)),
            (user("a", {}), "empty_part", ("parts", 1)),
            (user({"thought": True}), "empty_part", ("parts", 0)),
            (user({"text": 3}), "bad_part", ("parts", 0, "text")),
            (user({"text": "a", "inlineData": {}}), "several_data", ("parts", 0)),
            (user({"inlineData": "aGk="}), "bad_part", ("parts", 0, "inlineData")),
            (model({"functionCall": "f"}), "bad_part", ("parts", 0, "functionCall")),
            (model({"functionCall": {"args": {}}}), "missing_name", ("parts", 0, "functionCall", "name")),
            (model({"function_call": {"name": "f", "args": "{}"}}), "bad_part",
             ("parts", 0, "function_call", "args")),
            (user({"functionResponse": {"response": {}}}), "missing_name",
             ("parts", 0, "functionResponse", "name")),
            (user({"functionResponse": {"name": "f", "response": "4"}}), "bad_part",
             ("parts", 0, "functionResponse", "response")),
            (user(call("f")), "misplaced_part", ("parts", 0, "functionCall")),
            (model(response("f")), "misplaced_part", ("parts", 0, "functionResponse")),
        ],
    )  # fmt: skip
    def test_a_broken_content_has_one(self, content: dict[str, Any], rule: str, path: Any) -> None:
        """The path leads to what is wrong."""
        found = [(fault.rule, fault.path) for fault in GEMINI.faults([content])]
        assert found == [(rule, path)]

    def test_a_call_and_a_response_are_not_mixed(self) -> None:
        """One of them is in the wrong role as well."""
        assert rules(model(call("f"), response("f"))) == [(0, "misplaced_part"), (0, "mixed_turn")]

    def test_a_missing_name_is_told_with_the_apis_own_path(self) -> None:
        """It names content and part by number."""
        faults = GEMINI.faults([user("hi"), user("a", {"functionResponse": {"response": {}}})])
        assert "contents[1].parts[1].function_response.name: Name cannot be empty." in faults[0].detail


STEP = (model(call("f", "a", signed=True), call("f", "b")), user(response("f", "a"), response("f", "b")))
BARE = (model(call("f", "a")), user(response("f", "a")))


class TestSignatures:
    """Gemini 3 wants a signature on the first call of every step of the current turn."""

    def test_a_step_without_one_among_steps_with_one_is_a_fault(self) -> None:
        """Only the first of parallel calls has one."""
        assert rules(user("hi"), *STEP, *STEP) == []
        assert rules(user("hi"), *STEP, *BARE) == [(3, "missing_thought_signature")]

    def test_earlier_turns_are_not_asked(self) -> None:
        """A text of the user's begins a turn; responses alone do not."""
        assert rules(user("hi"), *BARE, user("go on"), *STEP) == []
        assert rules(user("hi"), *BARE, *STEP) == [(1, "missing_thought_signature")]

    def test_a_turn_without_any_is_one_of_a_model_that_needs_none(self) -> None:
        """Older models give none, and nothing here says which model is asked."""
        assert rules(user("hi"), *BARE, *BARE) == []
        assert rules(*agent(2, ids=False)[:-1]) == []

    def test_a_signature_on_another_part_of_the_step_counts(self) -> None:
        """Gemini 2.5 signs the first part, whatever it is."""
        step = [model(words("so", thoughtSignature=SIGNED), call("f", "a")), user(response("f", "a"))]
        assert rules(user("hi"), *STEP, *step) == []

    def test_contents_behind_one_another_are_one_step(self) -> None:
        """Calls of one response, stored as it was streamed."""
        step = [model(call("f", "a", signed=True)), model(call("f", "b"))]
        assert rules(user("hi"), *step, user(response("f", "a"), response("f", "b"))) == []
