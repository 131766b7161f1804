"""Gemini request bodies, as on the wire and as keyword arguments of google-genai, come back as they were."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from google.genai import types
from pydantic import BaseModel

from tests.gemini_shapes import user, words
from trimtab import Context, fit
from trimtab.counting import FixedCounter
from trimtab.errors import FormatError
from trimtab.formats import Gemini, Request, detect

GEMINI = Gemini()

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
DECLARED = {"functionDeclarations": [{"name": "add", "parametersJsonSchema": SCHEMA}]}


def rewritten(body: Any, **changes: Any) -> Any:
    """Read a body and write it with other system text or tools, and contents of its own."""
    request = GEMINI.read_request(body)
    made = Request(
        messages=request.messages,
        system=changes.get("system", request.system),
        tools=changes.get("tools", request.tools),
        body=body,
        key=request.key,
    )
    return GEMINI.write_request(made, list(request.messages))


BODY: Any = {
    "contents": [user("hi")],
    "systemInstruction": {"parts": [words("be kind")], "role": "user"},
    "tools": [DECLARED, {"googleSearch": {}}, {"codeExecution": {}}, {"urlContext": {}}],
    "generationConfig": {"responseMimeType": "application/json", "responseSchema": SCHEMA},
    "cachedContent": "cachedContents/1",
}


class TestWire:
    """Bodies of generateContent as JSON, in either spelling."""

    def test_a_body_is_taken_apart(self) -> None:
        """System text is a list of parts, tools are as they stand, the schema is in Chat's shape."""
        request = GEMINI.read_request(BODY)
        assert request.messages is BODY["contents"]
        assert request.system == [words("be kind")]
        assert request.tools is BODY["tools"]
        assert request.key == "contents"
        assert request.extra == {
            "response_format": {"type": "json_schema", "json_schema": {"schema": SCHEMA}}
        }
        assert detect(BODY).name == detect({"contents": []}).name == "gemini"

    @pytest.mark.parametrize(
        ("settings", "schema"),
        [
            ({"generationConfig": {"responseJsonSchema": SCHEMA}}, {"schema": SCHEMA}),
            ({"generation_config": {"response_schema": {**SCHEMA, "title": "A"}}},
             {"name": "A", "schema": {**SCHEMA, "title": "A"}}),
            ({"generationConfig": {"_responseJsonSchema": SCHEMA}}, {"schema": SCHEMA}),
            ({"generationConfig": {"temperature": 1}}, None),
            ({"generationConfig": None}, None),
            ({}, None),
        ],
    )  # fmt: skip
    def test_an_output_schema_is_found_under_each_of_its_names(self, settings: Any, schema: Any) -> None:
        """None is no extra."""
        extra = GEMINI.read_request({"contents": [], **settings}).extra
        assert extra == (
            {} if schema is None else {"response_format": {"type": "json_schema", "json_schema": schema}}
        )

    def test_what_did_not_change_comes_back_as_it_was(self) -> None:
        """Equal and with the caller's own objects; the body itself is not touched."""
        before = copy.deepcopy(BODY)
        written = rewritten(BODY)
        assert written == BODY == before
        assert written is not BODY
        assert written["systemInstruction"] is BODY["systemInstruction"]
        assert GEMINI.write_request(Request(messages=[user("a")]), [user("b")]) == [user("b")]

    @pytest.mark.parametrize(
        ("held", "system", "written"),
        [
            ({"systemInstruction": {"parts": [words("a")], "role": "user"}}, [words("b")],
             {"systemInstruction": {"parts": [words("b")], "role": "user"}}),
            ({"system_instruction": {"parts": [words("a")]}}, "b",
             {"system_instruction": {"parts": [words("b")]}}),
            ({"systemInstruction": "a"}, "b", {"systemInstruction": "b"}),
            ({"systemInstruction": "a"}, ["a", "b"], {"systemInstruction": "a\nb"}),
            ({"systemInstruction": "a"}, [words("b")], {"systemInstruction": {"parts": [words("b")]}}),
            ({"systemInstruction": [words("a")]}, ["b"], {"systemInstruction": [words("b")]}),
            ({}, "b", {"systemInstruction": {"parts": [words("b")]}}),
            ({"generation_config": {}}, "b",
             {"generation_config": {}, "system_instruction": {"parts": [words("b")]}}),
            ({"systemInstruction": "a"}, None, {"systemInstruction": "a"}),
        ],
    )  # fmt: skip
    def test_changed_system_text_is_written_in_the_bodys_shape(
        self, held: Any, system: Any, written: Any
    ) -> None:
        """None leaves it as it was."""
        assert rewritten({**held, "contents": []}, system=system) == {**written, "contents": []}

    def test_tools_given_beside_a_body_are_written_into_it(self) -> None:
        """None given leaves the body's."""
        assert rewritten({"contents": []}, tools=[DECLARED]) == {"contents": [], "tools": [DECLARED]}
        assert rewritten({"contents": [], "tools": [DECLARED]}, tools=None)["tools"] == [DECLARED]

    @pytest.mark.parametrize(
        ("contents", "path"),
        [
            (None, "contents"),
            (3, "contents"),
            ({"text": "a part"}, "contents"),
            (["hi"], "contents[0]"),
            ([user("hi"), {"text": "a part"}], "contents[1]"),
            ([types.Part(text="hi")], "contents[0]"),
            ([3], "contents[0]"),
        ],
    )
    def test_what_is_no_list_of_contents_is_refused(self, contents: Any, path: str) -> None:
        """The SDK groups bare texts and parts into contents; that is done before trimming."""
        with pytest.raises(FormatError) as caught:
            GEMINI.read_request({"contents": contents})
        assert caught.value.path == path

    def test_one_text_or_one_content_is_a_list_of_one(self) -> None:
        """It comes back as it was, where nothing of it left."""
        for contents in ("hi", user("hi"), types.UserContent("hi")):
            body = {"contents": contents}
            assert len(GEMINI.read_request(body).messages) == 1
            assert rewritten(body) == body
            assert fit(body, 99, counter=FixedCounter(1, format="gemini"), format="gemini").request == body


class Answer(BaseModel):
    """An output schema as a class."""

    a: str


class TestKeywords:
    """`generate_content(model=, contents=, config=)`, with dicts and with the SDK's objects."""

    @pytest.mark.parametrize("as_config", [dict, types.GenerateContentConfig.model_validate])
    def test_config_holds_what_the_wire_has_beside_the_contents(self, as_config: Any) -> None:
        """The caller's own objects are read, and stay."""
        tool = types.Tool(google_search=types.GoogleSearch())
        config = as_config({"system_instruction": "be", "tools": [tool], "response_schema": Answer})
        body = {"model": "gemini-2.5-flash", "contents": [types.UserContent("hi")], "config": config}
        request = GEMINI.read_request(body)
        assert request.system == "be"
        assert request.tools[0] is tool
        assert request.extra["response_format"]["json_schema"]["name"] == "Answer"
        assert rewritten(body)["config"] is config
        changed = rewritten(body, system=["be", "kind"], tools=[DECLARED])["config"]
        assert type(changed) is type(config)
        assert changed is not config
        read = GEMINI.read_request({**body, "config": changed})
        assert (read.system, read.tools) == ("be\nkind", [DECLARED])
        assert GEMINI.read_request(body).system == "be"

    @pytest.mark.parametrize("config", [{}, None])
    def test_system_text_goes_into_an_empty_config(self, config: Any) -> None:
        """There it has the SDK's spelling."""
        written = rewritten({"model": "m", "contents": [], "config": config}, system="be")
        assert written["config"] == {"system_instruction": {"parts": [words("be")]}}
        unchanged = rewritten({"model": "m", "contents": [], "config": config})
        assert unchanged == {"model": "m", "contents": [], "config": config}

    def test_a_content_as_instruction_stays_one(self) -> None:
        """Of the SDK's own class."""
        config = types.GenerateContentConfig(system_instruction=types.Content(parts=[types.Part(text="a")]))
        written = rewritten({"contents": [], "config": config}, system=[words("b")])
        assert isinstance(written["config"].system_instruction, types.Content)
        again = GEMINI.read_request(written)
        assert again.system == [words("b")]


SAID = [{"role": "user", "parts": [{"text": "hi"}]}]
ABC = {"text": "abc"}


@pytest.mark.parametrize("given", [{"parts": [ABC]}, {"role": "system", "parts": [ABC]}, [ABC], ABC, ["abc"]])
def test_system_text_in_any_shape_comes_out_as_parts_of_the_wire(given: Any) -> None:
    """As a content, a part or texts, alone and with a block of system text behind it."""
    assert fit(SAID, 1_000, format="gemini", system=given).system == [ABC]
    context = Context(1_000, format="gemini", system=given)
    assert context.add("h", SAID).fit().system == [ABC]
    assert context.add("system", "Sys", position=-1).fit().system == [ABC, {"text": "Sys"}]
    plain = Context(1_000, format="gemini", system="abc").add("system", "Sys").add("h", SAID)
    assert plain.fit().system == [ABC, {"text": "Sys"}]


def test_the_package_s_own_objects_are_system_text() -> None:
    """A content of it, or a part."""
    part = types.Part(text="abc")
    for given in (types.Content(parts=[part]), part, [part]):
        (found,) = fit(SAID, 1_000, format="gemini", system=given).system
        assert found is part


@pytest.mark.parametrize("parts", ["abc", ABC, [ABC], ["abc"]])
def test_a_system_message_s_parts_may_be_spelled_short(parts: Any) -> None:
    """As the package takes them."""
    context = Context(1_000, format="gemini").add("s", [{"role": "system", "parts": parts}]).add("h", SAID)
    assert context.fit().system == [ABC]


@pytest.mark.parametrize("form", ["gemini", "anthropic"])
def test_a_system_message_that_says_nothing_adds_nothing(form: str) -> None:
    """It has no content at all."""
    context = Context(1_000, format=form).add("s", [{"role": "system"}]).add("h", "x")
    assert not context.fit().system


def test_what_is_no_system_text_is_a_typed_error() -> None:
    """Parts that are a number."""
    context = Context(1_000, format="gemini").add("s", [{"role": "system", "parts": 5}]).add("h", SAID)
    with pytest.raises(FormatError, match="not int"):
        _ = context.fit().system


def test_a_transcript_of_a_circle_is_a_typed_error() -> None:
    """Arguments that hold themselves."""
    arguments: dict[str, Any] = {}
    arguments["a"] = arguments
    with pytest.raises(FormatError):
        Gemini().transcript({"role": "model", "parts": [{"functionCall": {"name": "f", "args": arguments}}]})
