"""What of a message of Anthropic's API is charged for."""

from __future__ import annotations

from typing import Any

import pytest

from tests.anthropic_shapes import (
    SIGNATURE,
    block_types,
    compaction,
    document,
    found,
    image,
    model,
    redacted,
    result,
    sdk_message,
    server_use,
    text,
    thinking,
    use,
    user,
)
from trimtab.errors import FormatError
from trimtab.formats import Anthropic, Media, mapping_of

FORM = Anthropic()


class TestPieces:
    """`pieces` lists what is charged for, once each."""

    @pytest.mark.parametrize(
        ("message", "texts", "parts"),
        [
            (user("hi"), ("hi",), 1),
            (user(""), ("",), 1),
            ({"role": "user", "content": []}, (), 0),
            ({"role": "user"}, (), 0),
            (user(text("a"), text("b")), ("a", "b"), 2),
            (user(result("a", "x"), result("b", [text("y"), text("z")]), text("w")), ("x", "y", "z", "w"), 3),
            (user(result("a", None)), (), 1),
            (model(compaction("so far")), ("so far",), 1),
        ],
    )
    def test_texts_and_parts_are_listed(self, message: Any, texts: tuple[str, ...], parts: int) -> None:
        """Texts of results too; a string is one part."""
        found = FORM.pieces(message)
        assert (found.texts, found.parts, found.other) == (texts, parts, ())

    def test_calls_are_names_and_input_as_text(self) -> None:
        """Those the provider runs, too."""
        found = FORM.pieces(model(use("a", "add", x=1, y=["é"]), server_use(), {**use("b"), "input": None}))
        assert found.calls == (("add", '{"x":1,"y":["é"]}'), ("web_search", '{"query":"tea"}'), ("look", ""))

    def test_a_tool_defined_in_a_message_is_charged_as_one_of_the_request(self) -> None:
        """A reference to one has its name alone."""
        schema = {"type": "object", "properties": {"place": {"type": "string"}}}
        look = {"name": "look", "description": "Looks.", "input_schema": schema}
        added = [
            {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": look}},
            {"type": "tool_addition", "tool": {"type": "tool_reference", "name": "look"}},
        ]
        pieces = FORM.pieces({"role": "system", "content": added})
        assert pieces.tools == (look, {"name": "look", "input_schema": {}})
        assert pieces.other == ()

    def test_one_result_names_its_call(self) -> None:
        """Several cannot be said in one field."""
        assert FORM.pieces(user(result("a"))).result_id == "a"
        assert FORM.pieces(user(result("a"), result("b"))).result_id is None

    @pytest.mark.parametrize(
        ("block", "media"),
        [
            (image("QUJD"), Media("image", None, "QUJD", None)),
            (
                {"type": "image", "source": {"type": "url", "url": "https://e"}},
                Media("image", None, "https://e", None),
            ),
            ({"type": "image", "source": {"type": "file", "file_id": "f"}}, Media("image", None, None, "f")),
            (document(type="file", file_id="f"), Media("file", None, None, "f")),
            (document(), Media("file", None, "JVBERi0xLjQK", None)),
            ({"type": "container_upload", "file_id": "f"}, Media("file", None, None, "f")),
            (result("a", [image("QUJD")]), Media("image", None, "QUJD", None)),
        ],
    )
    def test_what_is_no_text_is_a_medium(self, block: Any, media: Media) -> None:
        """Base64 is never counted as text, and neither is what only the provider can read."""
        assert FORM.pieces(user(block)).media == (media,)

    def test_documents_are_read_by_their_source(self) -> None:
        """Title and context beside it."""
        plain = {**document(type="text", media_type="text/plain", data="words"), "context": "from work"}
        inner = document(type="content", content=[text("a"), image("QUJD")])
        assert FORM.pieces(user(plain)).texts == ("A page", "from work", "words")
        found = FORM.pieces(user(inner))
        assert (found.texts, len(found.media)) == (("A page", "a"), 1)

    def test_thinking_that_can_be_read_is_charged_as_it_is(self) -> None:
        """Its signature is not."""
        found = FORM.pieces(model(thinking("let me see"), text("x")))
        assert (found.thoughts, found.texts, found.sealed_chars) == (("let me see",), ("x",), 0)
        assert (found.media, found.other) == ((), ())

    def test_of_thinking_that_cannot_be_read_the_size_is_known(self) -> None:
        """Redacted, or given without its words: it is no text, and no medium."""
        found = FORM.pieces(model(redacted(), thinking("", "sealed"), text("x")))
        assert (found.sealed_chars, found.thoughts) == (len(SIGNATURE) + len("sealed"), ())
        assert (found.texts, found.media, found.other) == (("x",), (), ())

    def test_what_the_providers_tools_found_is_json_without_what_is_sealed(self) -> None:
        """The sealed part is a medium."""
        pieces = FORM.pieces(model(found()))
        assert pieces.other == ('{"type":"web_search_result","url":"https://e.org","title":"Tea"}',)
        assert [media.data for media in pieces.media] == ["c2VhbA=="]
        ran = {
            "type": "bash_code_execution_result",
            "stdout": "4",
            "stderr": "",
            "return_code": 0,
            "content": [],
        }
        code = {"type": "bash_code_execution_tool_result", "tool_use_id": "s", "content": ran}
        assert '"stdout":"4"' in FORM.pieces(model(code)).other[0]
        told = {"type": "mcp_tool_result", "tool_use_id": "m", "content": [text("x")], "is_error": False}
        assert FORM.pieces(model(told)).texts == ("x",)

    def test_search_results_are_titles_and_texts(self) -> None:
        """And where they are from."""
        block = {"type": "search_result", "title": "t", "source": "s", "content": [text("x")]}
        assert FORM.pieces(user(block)).texts == ("t", "s", "x")

    def test_unknown_fields_are_charged_as_json_and_known_ones_carried(self) -> None:
        """Marks for the cache, callers and citations are not part of the prompt."""
        block = text("x", cache_control={"type": "ephemeral"}, citations=[{"url": "u"}], mood="calm")
        assert FORM.pieces(user(block)).other == ('{"mood":"calm"}',)
        call = {**use("a"), "caller": {"type": "direct"}, "cache_control": None}
        assert FORM.pieces(model(call)).other == ()
        assert FORM.pieces(user({"type": "hologram", "data": "x"})).other == (
            '{"type":"hologram","data":"x"}',
        )

    def test_what_a_response_says_of_itself_is_not_charged(self) -> None:
        """A whole message object costs what its blocks cost."""
        message = sdk_message()
        found = FORM.pieces(mapping_of(message))
        assert found == FORM.pieces({"role": "assistant", "content": message.content})
        assert (found.texts, found.calls) == (("let me look",), (("look", '{"at":"x"}'),))

    @pytest.mark.parametrize("kind", sorted(block_types()))
    def test_a_block_of_every_type_is_read_by_name(self, kind: str) -> None:
        """No type of the installed package is charged with its type and ids as JSON of the whole block."""
        pieces = FORM.pieces(model({"type": kind, "tool_use_id": "a", "id": "b"}))
        named = {"tool_removal", "mcp_tool_listing"}  # told as JSON: what they hold is a schema
        assert bool([one for one in pieces.other if f'"type":"{kind}"' in one]) == (kind in named)

    def test_nesting_without_end_is_refused(self) -> None:
        """With our own error."""
        deep: Any = "x"
        for _ in range(100_000):
            deep = [deep]
        with pytest.raises(FormatError):
            FORM.pieces(user({"type": "hologram", "data": deep}))
        circle: dict[str, Any] = {"type": "hologram"}
        circle["self"] = circle
        with pytest.raises(FormatError):
            FORM.pieces(user(circle))
