"""What of a Chat Completions message is charged for."""

from __future__ import annotations

from typing import Any

import pytest

from tests.chat_shapes import calling, custom_call, function_call, result, sdk_message
from trimtab.errors import FormatError
from trimtab.formats import Media, OpenAIChat

CHAT = OpenAIChat()
PNG = "iVBORw0KGgo" * 30


class TestPieces:
    """`pieces` lists what is charged for, once each."""

    def test_a_plain_message_is_its_role_and_text(self) -> None:
        """One text, one part."""
        found = CHAT.pieces({"role": "user", "content": "hi"})
        assert (found.role, found.texts, found.parts, found.other) == ("user", ("hi",), 1, ())

    @pytest.mark.parametrize(
        ("content", "texts", "parts"),
        [
            ("", ("",), 1),
            (None, (), 0),
            ([], (), 0),
            ([{"type": "text", "text": "a"}, {"type": "refusal", "refusal": "b"}], ("a", "b"), 2),
            (["bare", {"type": "text", "text": "a"}], ("bare", "a"), 2),
        ],
    )
    def test_parts_are_counted(self, content: Any, texts: tuple[str, ...], parts: int) -> None:
        """A string is one part, no content none."""
        found = CHAT.pieces({"role": "assistant", "content": content})
        assert (found.texts, found.parts) == (texts, parts)

    def test_calls_are_names_and_arguments_as_text(self) -> None:
        """Arguments left as a dict are written as `json.dumps` writes them; nothing of a call is lost."""
        message = calling(
            function_call("a", "add", '{"x": 1}'),
            custom_call(),
            function_call("b", "sub", {"y": [1, "é"]}),
            function_call("d", None, None),
            function_call={"name": "old", "arguments": "{}"},
        )
        assert CHAT.pieces(message).calls == (
            ("add", '{"x": 1}'),
            ("shell", "ls -l"),
            ("sub", '{"y": [1, "é"]}'),
            ("", ""),
            ("old", "{}"),
        )
        assert CHAT.pieces(message).other == ()

    def test_a_result_has_its_id_and_a_speaker_a_name(self) -> None:
        """A legacy function message answers by name."""
        assert CHAT.pieces(result("a")).result_id == "a"
        legacy = CHAT.pieces({"role": "function", "name": "add", "content": "4"})
        assert (legacy.result_id, legacy.name) == ("function:add", "add")
        assert CHAT.pieces({"role": "user", "name": "Ann", "content": "hi"}).name == "Ann"
        assert CHAT.pieces({"role": "user", "content": "hi"}).result_id is None

    def test_refusals_are_texts(self) -> None:
        """The field is charged like content."""
        assert CHAT.pieces({"role": "assistant", "content": None, "refusal": "no"}).texts == ("no",)

    def test_images_sounds_and_files_are_media(self) -> None:
        """Their payload is never a text and never JSON."""
        found = CHAT.pieces(
            {
                "role": "user",
                "content": [
                    {
                        "type": "image_url",
                        "image_url": {"url": f"data:image/png;base64,{PNG}", "detail": "low"},
                    },
                    {"type": "image_url", "image_url": "https://example.org/a.png"},
                    {"type": "input_audio", "input_audio": {"data": PNG, "format": "wav"}},
                    {"type": "file", "file": {"file_data": PNG, "filename": "a.pdf"}},
                    {"type": "file", "file": {"file_id": "file-1"}},
                ],
            }
        )
        assert found.media == (
            Media("image", "low", f"data:image/png;base64,{PNG}", None),
            Media("image", None, "https://example.org/a.png", None),
            Media("audio", None, PNG, None),
            Media("file", None, PNG, "a.pdf"),
            Media("file", None, None, "file-1"),
        )
        assert (found.texts, found.other, found.parts) == ((), (), 5)

    def test_the_audio_of_an_earlier_answer_is_a_medium(self) -> None:
        """The request names it by id only."""
        found = CHAT.pieces({"role": "assistant", "audio": {"id": "audio_1"}})
        assert found.media == (Media("audio", None, None, "audio_1"),)

    def test_unknown_keys_are_json_and_metadata_is_carried(self) -> None:
        """Odd keys count, `metadata`, cache marks and empty values do not; reasoning is what was thought."""
        found = CHAT.pieces(
            {
                "role": "assistant",
                "content": "x",
                "reasoning_content": "because é",
                "metadata": {"k": "v"},
                "annotations": [],
                "refusal": None,
                "odd": {"a": [1, 2]},
            }
        )
        assert found.other == ('{"odd":{"a":[1,2]}}',)
        assert found.thoughts == ("because é",)

    def test_unknown_parts_are_json_without_their_base64(self) -> None:
        """A part of another provider is charged for, its payload as a medium."""
        found = CHAT.pieces(
            {
                "role": "user",
                "content": [
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
                    {"type": "blob", "url": f"data:audio/wav;base64,{PNG}"},
                    {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}, "lang": "en"},
                ],
            }
        )
        assert PNG not in "".join(found.other)
        assert [medium.kind for medium in found.media] == ["image", "audio"]
        assert [medium.data for medium in found.media] == [PNG, f"data:audio/wav;base64,{PNG}"]
        assert found.other[-1] == '{"lang":"en"}'

    @pytest.mark.parametrize(
        ("image", "data"),
        [
            (PNG, PNG),
            (b"\x89PNG", "iVBORw=="),
            (bytearray(b"\x89PNG"), "iVBORw=="),
            ({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}, None),
        ],
        ids=["ollama", "bytes", "bytearray", "openrouter"],
    )
    def test_pictures_beside_the_content_are_pictures(self, image: Any, data: str | None) -> None:
        """Ollama's native form has them in base64, which counted as text: 12,543 tokens."""
        found = CHAT.pieces({"role": "user", "content": "What is this?", "images": [image, image]})
        assert (found.texts, found.other) == (("What is this?",), ())
        assert [medium.kind for medium in found.media] == ["image", "image"]
        assert found.media[0].data == (data or f"data:image/png;base64,{PNG}")

    @pytest.mark.parametrize("kind", ["image", "audio", "video"])
    @pytest.mark.parametrize("key", ["", "base64"])
    def test_data_in_parts_of_open_models_is_no_text(self, kind: str, key: str) -> None:
        """Chat templates take it under the name of its kind, or under "base64"."""
        found = CHAT.pieces({"role": "user", "content": [{"type": kind, key or kind: PNG}]})
        assert PNG not in "".join(found.other)
        assert [(medium.kind, medium.data) for medium in found.media] == [(kind, PNG)]

    def test_an_sdk_object_reads_like_its_dict(self) -> None:
        """Nested objects in a plain dict are read as well."""
        message = sdk_message()
        nested = {"role": "assistant", "content": "hm", "tool_calls": message.tool_calls}
        expected = (("add", "{}"), ("shell", "ls"))
        assert CHAT.pieces(nested).calls == expected
        assert CHAT.pieces(message.model_dump(exclude_none=True)).calls == expected

    def test_what_cannot_be_json_is_a_typed_error(self) -> None:
        """A circle and nesting without end are a FormatError, not a RecursionError."""
        deep: Any = []
        for _ in range(100_000):
            deep = [deep]
        circle: dict[str, Any] = {}
        circle["self"] = circle
        for value in (deep, circle):
            with pytest.raises(FormatError):
                CHAT.pieces({"role": "user", "content": "x", "odd": value})
        with pytest.raises(FormatError):
            CHAT.pieces(calling(function_call("a", "f", circle)))

    def test_lone_surrogates_and_nul_pass_through(self) -> None:
        """Text is handed on as it is."""
        assert CHAT.pieces({"role": "user", "content": "\ud800\x00"}).texts == ("\ud800\x00",)
