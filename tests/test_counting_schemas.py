"""Schemas as the text that is counted for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.counting import TextCounter
from trimtab.models import Framing, ToolsStyle


def charged(
    style: ToolsStyle = "typescript", *, system: Any = None, tools: Any = None, extra: Any = None
) -> list[str]:
    """List the texts that are counted beside the messages, where tools are shown in this style."""
    asked: list[str] = []

    def count(text: str) -> int:
        asked.append(text)
        return len(text)

    framing = Framing(tools_style=style, roles_counted=False)
    counter = TextCounter(count, name="characters", framing=framing)
    counter.fixed_tokens(system, tools, has_system=False, extra=extra)
    return asked


def tools_text(tools: Any, *, style: ToolsStyle) -> str:
    """Return the one text that is counted for tools."""
    [text] = charged(style, tools=tools)
    return text


def typed(schema: dict[str, Any]) -> str:
    """Write a tool with one property of this schema, and return that line's type."""
    parameters = {
        "type": "object",
        "properties": {"x": schema},
        "required": ["x"],
        "$defs": schema.get("$defs", {}),
    }
    text = tools_text([{"name": "f", "parameters": parameters}], style="typescript")
    return text.split("x: ", 1)[1].rsplit("}) => any;", 1)[0][:-1].removesuffix(",")


@pytest.mark.parametrize(
    ("schema", "written"),
    [
        pytest.param({"type": "string"}, "string", id="string"),
        pytest.param({"type": "integer"}, "number", id="integer"),
        pytest.param({"enum": ["a", "b"], "type": "string"}, '"a" | "b"', id="enum"),
        pytest.param({"const": "a"}, '"a"', id="const"),
        pytest.param({"type": ["string", "null"]}, "\n | string\n | null\n", id="nullable"),
        pytest.param({"anyOf": [{"type": "string"}, {"type": "number"}]}, "string | number", id="any-of"),
        pytest.param(
            {"anyOf": [{"type": "string", "title": "A"}, {"type": "null"}]},
            "\n | // A\nstring\n | null\n",
            id="any-of-or-null",
        ),
        pytest.param({"type": "array", "items": {"type": "string"}}, "string[]", id="array"),
        pytest.param({"type": "array"}, "any[]", id="array-of-anything"),
        pytest.param({"type": "object"}, "object", id="object"),
        pytest.param(
            {"type": "object", "properties": {"a": {"type": "string"}, "b": {}}, "required": ["a"]},
            "{ a: string, b?: any }",
            id="nested",
        ),
        pytest.param({}, "any", id="nothing-said"),
        pytest.param({"type": 7}, "any", id="nonsense"),
        pytest.param({"$ref": "#/$defs/A", "$defs": {"A": {"type": "string"}}}, "string", id="reference"),
        pytest.param({"$ref": "#/$defs/B"}, "any", id="reference-to-nothing"),
        pytest.param(
            {"$ref": "#/$defs/A", "$defs": {"A": {"type": "array", "items": {"$ref": "#/$defs/A"}}}},
            "any[]",
            id="reference-in-a-circle",
        ),
    ],
)
def test_a_schema_is_written_as_a_type(schema: dict[str, Any], written: str) -> None:
    """As OpenAI's models are shown them."""
    assert typed(schema) == written


def test_a_tool_is_written_as_a_function_with_its_descriptions() -> None:
    """Each line of a description that says something is a comment, without its indentation."""
    tool = {
        "type": "function",
        "function": {
            "name": "add",
            "description": "\n  Adds up.\n\n      Args: two numbers\n",
            "parameters": {
                "type": "object",
                "properties": {
                    "a": {"type": "number", "description": "the first"},
                    "b": {"type": "number", "default": 1},
                },
                "required": ["a"],
            },
        },
    }
    assert tools_text([tool, {"name": "now", "input_schema": {}}], style="typescript") == (
        "namespace functions {\n\n"
        "// Adds up.\n// Args: two numbers\n"
        "type add = (_: {\n// the first\na: number,\nb?: number, // default: 1\n}) => any;\n\n"
        "type now = () => any;\n\n"
        "} // namespace functions"
    )


@pytest.mark.parametrize(
    ("tools", "written"),
    [
        pytest.param([{"type": "web_search"}], '{"type":"web_search"}', id="no-function"),
        pytest.param(
            [{"type": "custom", "custom": {"name": "a"}}],
            '{"type":"custom","custom":{"name":"a"}}',
            id="custom",
        ),
        pytest.param({"a": 1}, '{"a":1}', id="no-list"),
        pytest.param("as text", "as text", id="text"),
        pytest.param([None], "null", id="null"),
    ],
)
def test_what_is_no_function_is_written_as_json(tools: Any, written: str) -> None:
    """Nothing that is sent is free."""
    assert tools_text(tools, style="typescript") == written


def test_tools_are_json_where_nobody_says_how_they_are_shown() -> None:
    """Compact, characters as they are."""
    assert tools_text([{"name": "é"}], style="json") == '[{"name":"é"}]'


def test_references_that_multiply_stop() -> None:
    """Forty levels of nine references each would never end."""
    pair = {f"L{i}": {"anyOf": [{"$ref": f"#/$defs/L{i + 1}"}] * 9} for i in range(40)}
    wide = {
        f"W{i}": {"type": "object", "properties": {k: {"$ref": f"#/$defs/W{i + 1}"} for k in "ab"}}
        for i in range(40)
    }
    for start, defs in (("L0", pair), ("W0", wide)):
        parameters = {"type": "object", "properties": {"x": {"$ref": f"#/$defs/{start}"}}, "$defs": defs}
        assert len(tools_text([{"name": "f", "parameters": parameters}], style="typescript")) < 1_000_000


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "properties",
                    "required",
                    "enum",
                    "const",
                    "anyOf",
                    "items",
                    "$ref",
                    "default",
                    "description",
                    "a",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(json_values, json_values)
def test_any_schema_is_written(parameters: Any, description: Any) -> None:
    """Also one that no provider would take."""
    tool = {
        "type": "function",
        "function": {"name": "f", "description": description, "parameters": parameters},
    }
    assert isinstance(tools_text([tool], style="typescript"), str)
    response_format = {"response_format": {"json_schema": {"name": "f", "schema": parameters}}}
    assert len(charged(extra=response_format)) == 1


def test_titles_are_comments_above_what_they_name() -> None:
    """An empty line of comment stands before a description; a reference has what it leads to."""
    parameters = {
        "title": "Rent",
        "type": "object",
        "properties": {
            "size": {"title": "Frame Size", "type": "integer"},
            "to": {"$ref": "#/$defs/Place"},
            "from": {"$ref": "#/$defs/Place", "description": "pick-up"},
        },
        "required": ["size", "to", "from"],
        "$defs": {
            "Place": {
                "title": "Place",
                "description": "a place",
                "type": "object",
                "properties": {"city": {"title": "City", "type": "string"}, "zip": {"type": "string"}},
                "required": ["city"],
            }
        },
    }
    place = "{\n// City\ncity: string,\nzip?: string,\n}"
    assert tools_text([{"name": "rent", "parameters": parameters}], style="typescript") == (
        "namespace functions {\n\n"
        "type rent = (_: \n// Rent\n{\n"
        "// Frame Size\nsize: number,\n"
        f"// Place\n//\n// a place\nto: {place},\n"
        f"// Place\n//\n// pick-up\nfrom: {place},\n"
        "}) => any;\n\n"
        "} // namespace functions"
    )


def test_an_output_schema_is_shown_under_a_heading() -> None:
    """Without the keys that are not charged; a property that is called like one is. In ASCII."""
    schema = {
        "type": "object",
        "properties": {"required": {"type": "string", "default": "é", "title": "é"}},
        "required": ["required"],
        "additionalProperties": False,
    }
    form = {"type": "json_schema", "json_schema": {"name": "answer", "description": "d", "schema": schema}}
    written = (
        "# Response Formats\n\n## answer\n\n// d\n"
        '{"type":"object","properties":{"required":{"type":"string","title":"\\u00e9"}}}'
    )
    assert charged(extra={"response_format": form}) == [written]
    assert charged(extra={"response_format": {"type": "json_object"}}) == charged(extra=None) == []


@pytest.mark.parametrize(
    ("system", "texts"),
    [
        (None, []),
        ("", []),
        ("be brief", ["be brief"]),
        ([{"type": "text", "text": "a"}, "b", {"text": "c"}], ["a", "b", "c"]),
        ({"parts": [1]}, ['{"parts":[1]}']),
    ],
)
def test_a_system_prompt_is_read_in_every_form(system: Any, texts: list[str]) -> None:
    """Text, or parts of text; what is neither, as JSON."""
    assert charged(system=system) == texts


ADD = {"type": "object", "properties": {"a": {"type": "integer", "description": "first"}}}


@pytest.mark.parametrize(
    "tools",
    [
        pytest.param([{"type": "function", "function": {"name": "add", "parameters": ADD}}], id="chat"),
        pytest.param([{"type": "function", "name": "add", "parameters": ADD}], id="responses"),
        pytest.param([{"name": "add", "input_schema": ADD}], id="anthropic"),
        pytest.param([{"functionDeclarations": [{"name": "add", "parameters": ADD}]}], id="gemini"),
        pytest.param(
            [{"function_declarations": [{"name": "add", "parameters_json_schema": ADD}]}], id="gemini-sdk"
        ),
    ],
)
def test_a_tool_is_the_same_in_every_form(tools: Any) -> None:
    """Whichever provider's shape it has, it is counted by the rule of the model that is shown it."""
    assert charged("words", tools=tools) == ["add", "a", "integer", "first"]
    assert charged("schemas", tools=tools) == [
        '{"name":"add","input_schema":{"type":"object","properties":{"a":{"type":"integer","description":"first"}}}}',
    ]
    assert "type add = (_: {" in tools_text(tools, style="typescript")


def test_a_tool_that_is_loaded_later_is_not_shown_yet() -> None:
    """It is charged where a search loads it."""
    tools = [
        {"name": "now", "input_schema": ADD},
        {"name": "later", "input_schema": ADD, "defer_loading": True},
    ]
    assert len(charged("schemas", tools=tools)) == 1
    assert "later" not in tools_text(tools, style="typescript")


def test_words_inside_inner_schemas_are_told_apart() -> None:
    """What they cost is known less well."""
    inner = {"type": "array", "items": {"type": "object", "properties": {"deep": {"type": "string"}}}}
    tools = [{"name": "f", "input_schema": {"properties": {"list": inner}}}]
    assert charged("words", tools=tools) == ["f", "list", "array", "deep", "string"]
    framing = Framing(tools_style="words", nested_schemas_factor=3)
    assert TextCounter(len, name="characters", framing=framing).unsure_tokens(tools) == 3 * len("deepstring")


def test_each_property_may_be_charged() -> None:
    """Beside its words, at every depth."""
    tools = [{"name": "f", "input_schema": {"properties": {"a": ADD, "b": {}}}}]
    framing = Framing(per_request_tokens=0, tools_tokens=0, tools_style="words", per_property_tokens=7)
    counter = TextCounter(lambda text: 0, name="nothing", framing=framing)
    assert counter.fixed_tokens(None, tools, has_system=False) == 3 * 7


def nested(levels: int, *, key: str) -> dict[str, Any]:
    """Make a schema with so many others inside, each in the one before, of types that tell their depth."""
    schema: dict[str, Any] = {"type": f"t{levels}"}
    for level in range(levels - 1, -1, -1):
        schema = {"type": f"t{level}", key: {"p": schema} if key == "properties" else schema}
    return schema


@pytest.mark.parametrize(("key", "last"), [("properties", 32), ("items", 16)])
def test_words_are_read_32_levels_deep(key: str, last: int) -> None:
    """An inner schema is one level below in properties, two elsewhere: it is that much less well known."""
    texts = charged("words", tools=[{"name": "f", "input_schema": nested(40, key=key)}])
    assert f"t{last}" in texts
    assert f"t{last + 1}" not in texts


@pytest.mark.parametrize("inside", [lambda value: {"a": value}, lambda value: [value]])
def test_an_output_schema_is_shown_32_levels_deep(inside: Callable[[Any], Any]) -> None:
    """What is deeper is null."""
    shown: list[str] = []
    for levels in (32, 33):
        schema: Any = "end"
        for _ in range(levels):
            schema = inside(schema)
        form = {"json_schema": {"name": "answer", "schema": schema}}
        shown += charged(extra={"response_format": form})
    assert "end" in shown[0]
    assert "end" not in shown[1]
    assert "null" in shown[1]


def test_a_schema_that_holds_itself_ends() -> None:
    """Python objects can."""
    schema: dict[str, Any] = {"properties": {}}
    schema["properties"]["self"] = schema
    assert len(charged("words", tools=[{"name": "f", "input_schema": schema}])) < 100


def test_the_description_of_arguments_stands_before_them() -> None:
    """Billed for two tools of four models (2026-11)."""
    schema = {**ADD, "description": "Typed arguments."}
    assert "(_: \n// Typed arguments.\n{" in tools_text(
        [{"name": "f", "input_schema": schema}], style="typescript"
    )


@pytest.mark.parametrize(
    ("extra", "forced"),
    [
        (None, False),
        ({"tool_choice": {"type": "any"}}, True),
        ({"tool_choice": {"type": "tool", "name": "f"}}, True),
        ({"tool_choice": {"type": "auto"}}, False),
        ({"tool_choice": "any"}, False),
    ],
)
def test_a_choice_of_tools_is_read(extra: Any, forced: bool) -> None:
    """Anthropic's prompt for tools is longer where one must be called."""
    framing = Framing(per_request_tokens=0, tools_tokens=1, forced_tools_tokens=2, tools_style="words")
    counter = TextCounter(lambda text: 0, name="nothing", framing=framing)
    tokens = counter.fixed_tokens(None, [{"name": "f"}], has_system=False, extra=extra)
    assert tokens == (2 if forced else 1)
