"""What of a Gemini content is charged for: every field of the SDK's parts is known by name."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from google.genai import types

from tests.gemini_shapes import SIGNED, call, model, response, snake, user, words
from trimtab.errors import FormatError
from trimtab.formats import Gemini, Media, Pieces, mapping_of

GEMINI = Gemini()

PNG = base64.b64encode(b"\x89PNG not really").decode("ascii")

CHARGED: dict[str, tuple[Any, Pieces]] = {
    "text": ("hi", Pieces(role="user", texts=("hi",), parts=1)),
    "function_call": (
        {"name": "f", "args": {"q": "é"}},
        Pieces(role="user", calls=(("f", '{"q":"é"}'),), parts=1),
    ),
    "function_response": (
        {"id": "a", "name": "f", "response": {"r": 1}},
        Pieces(role="user", other=('{"name":"f","response":{"r":1}}',), result_id="a", parts=1, results=1),
    ),
    "inline_data": (
        {"mime_type": "image/png", "data": PNG},
        Pieces(role="user", media=(Media("image", None, PNG, None),), parts=1),
    ),
    "file_data": (
        {"mime_type": "video/mp4", "file_uri": "gs://b/o.mp4"},
        Pieces(role="user", media=(Media("video", None, "gs://b/o.mp4", None),), parts=1),
    ),
    "executable_code": (
        {"language": "PYTHON", "code": "1"},
        Pieces(role="user", other=('{"executable_code":{"language":"PYTHON","code":"1"}}',), parts=1),
    ),
    "code_execution_result": (
        {"outcome": "OUTCOME_OK", "output": "1"},
        Pieces(
            role="user",
            other=('{"code_execution_result":{"outcome":"OUTCOME_OK","output":"1"}}',),
            parts=1,
        ),
    ),
    "tool_call": (
        {"id": "1", "args": {"q": "x"}},
        Pieces(role="user", other=('{"tool_call":{"id":"1","args":{"q":"x"}}}',), parts=1),
    ),
    "tool_response": (
        {"id": "1", "response": {"r": "x"}},
        Pieces(role="user", other=('{"tool_response":{"id":"1","response":{"r":"x"}}}',), parts=1),
    ),
}  # fmt: skip
"""What each thing a part can be is charged for."""

CARRIED = {
    "thought",
    "thought_signature",
    "media_resolution",
    "media_processing",
    "video_metadata",
    "part_metadata",
    "audio_transcription",
    "speech_metadata",
    "document_metadata",
    "spreadsheet_metadata",
    "audio_metadata",
}
"""What is not part of the prompt."""


def test_every_field_of_the_sdks_part_is_charged_or_carried() -> None:
    """A field a new version brings has to be put into one of the two tables above."""
    assert set(types.Part.model_fields) == CHARGED.keys() | CARRIED
    told = {
        name for name in types.Part.model_fields if GEMINI.matches({"role": "user", "parts": [{name: {}}]})
    }
    assert told == CHARGED.keys()


@pytest.mark.parametrize("name", CHARGED)
def test_each_part_is_charged_as_what_it_is(name: str) -> None:
    """Keys stand in the spelling they came in; the wire's is read alike."""
    held, expected = CHARGED[name]
    assert GEMINI.pieces({"role": "user", "parts": [{name: held}]}) == expected
    camel = types.Part.model_fields[name].alias or name
    on_wire = GEMINI.pieces({"role": "user", "parts": [{camel: held}]})
    assert len(on_wire.other) == len(expected.other)
    assert (on_wire.texts, on_wire.calls, on_wire.media) == (expected.texts, expected.calls, expected.media)


@pytest.mark.parametrize("name", sorted(CARRIED - {"thought"}))
def test_what_is_carried_beside_a_part_costs_nothing(name: str) -> None:
    """Signatures are base64, the rest are settings and marks."""
    value: Any = SIGNED if name == "thought_signature" else {"a": "long text"}
    for key in (name, types.Part.model_fields[name].alias or name):
        assert GEMINI.pieces(user(words("hi", **{key: value}))).other == ()


def test_a_content_of_the_sdk_is_charged_as_its_dict() -> None:
    """Bytes are base64 then, and nothing more is found."""
    content = model(
        "so", call("f", "a", signed=True, q="x"), {"inlineData": {"mimeType": "image/png", "data": PNG}}
    )
    sdk = types.Content.model_validate(content)
    assert GEMINI.pieces(mapping_of(sdk)) == GEMINI.pieces(content) == GEMINI.pieces(snake(content))


def test_a_thought_is_no_text() -> None:
    """It is charged apart, as reasoning is elsewhere; without a signature to stand for it, it is text."""
    signed = {"text": "so", "thoughtSignature": "c2ln"}
    pieces = GEMINI.pieces(model(words("hm", thought=True), signed))
    assert (pieces.texts, pieces.thoughts, pieces.other) == (("so",), ("hm",), ())
    assert GEMINI.pieces(model(words("hm", thought=True), "so")).texts == ("hm", "so")


def test_media_in_a_response_are_media() -> None:
    """Gemini 3 takes them in `functionResponse.parts`; base64 anywhere in JSON is no text either."""
    held = response(
        "f", "a", {"image": {"mimeType": "image/png", "data": PNG}, "url": f"data:audio/mp3;base64,{PNG}"}
    )
    held["functionResponse"]["parts"] = [{"inlineData": {"mimeType": "image/png", "data": PNG}}]
    pieces = GEMINI.pieces(user(held))
    assert [medium.kind for medium in pieces.media] == ["image", "audio", "image"]
    assert pieces.other == ('{"name":"f","response":{"image":{"mimeType":"image/png"},"url":""}}',)


@pytest.mark.parametrize("held", [{"data": "rows"}, {"data": None, "mimeType": "image/png"}])
def test_data_without_a_type_is_text_and_a_type_without_data_no_medium(held: dict[str, Any]) -> None:
    """What a function calls `data` is its own; nothing is sent as an image that is not there."""
    pieces = GEMINI.pieces(user(response("f", "a", held)))
    assert pieces.media == ()
    (charged,) = pieces.other
    assert json.loads(charged) == {"name": "f", "response": held}


def test_the_resolution_asked_for_is_the_detail() -> None:
    """In both spellings the API has for it."""
    for level in ("MEDIA_RESOLUTION_LOW", {"level": "MEDIA_RESOLUTION_LOW"}):
        part = {"inlineData": {"mimeType": "image/png", "data": PNG}, "mediaResolution": level}
        assert GEMINI.pieces(user(part)).media == (Media("image", "low", PNG, None),)


def test_what_has_no_name_here_is_charged_as_json() -> None:
    """A part of tomorrow, a key beside parts, parts that are no list."""
    assert GEMINI.pieces(user({"hologram": {"a": 1}})).other == ('{"hologram":{"a":1}}',)
    assert GEMINI.pieces({**user("hi"), "note": "x"}).other == ('{"note":"x"}',)
    assert GEMINI.pieces({"role": "user", "parts": {"text": "hi"}}).other == ('{"text":"hi"}',)
    assert GEMINI.pieces({"parts": None}) == Pieces(role="user")


def test_what_cannot_be_written_as_json_is_an_error() -> None:
    """A response that contains itself."""
    circle: dict[str, Any] = {}
    circle["self"] = circle
    with pytest.raises(FormatError):
        GEMINI.pieces(user(response("f", "a", circle)))
