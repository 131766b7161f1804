"""Tools in whichever shape they are written: name, description, schema."""

from __future__ import annotations

from typing import Any

import pytest
from google.genai import types

from trimtab.counting import measure
from trimtab.errors import FormatError
from trimtab.formats import Tool, formats, get_format, read_tools

SCHEMA = {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}
SAID = {"name": "weather", "description": "Tells the weather."}
DECLARED: Any = {**SAID, "parameters_json_schema": SCHEMA}
WEATHER = Tool(**SAID, schema=SCHEMA)


@pytest.mark.parametrize(
    "tool",
    [
        pytest.param({"type": "function", "function": {**SAID, "parameters": SCHEMA}}, id="chat"),
        pytest.param({"type": "function", **SAID, "parameters": SCHEMA, "strict": True}, id="responses"),
        pytest.param({**SAID, "input_schema": SCHEMA}, id="anthropic"),
        pytest.param(
            {"type": "custom", **SAID, "input_schema": SCHEMA, "cache_control": {}}, id="anthropic-custom"
        ),
        pytest.param({"functionDeclarations": [{**SAID, "parameters": SCHEMA}]}, id="gemini"),
        pytest.param(
            {"function_declarations": [{**SAID, "parameters_json_schema": SCHEMA}]}, id="gemini-snake"
        ),
        pytest.param(
            types.Tool(function_declarations=[types.FunctionDeclaration(**DECLARED)]),
            id="gemini-object",
        ),
        pytest.param({**SAID, "inputSchema": SCHEMA, "outputSchema": {"type": "object"}}, id="mcp"),
        pytest.param({"tools": [{**SAID, "inputSchema": SCHEMA}]}, id="mcp-answer"),
        pytest.param({"toolSpec": {**SAID, "inputSchema": {"json": SCHEMA}}}, id="bedrock"),
        pytest.param(
            {
                "tools": [
                    {"toolSpec": {**SAID, "inputSchema": {"json": SCHEMA}}},
                    {"cachePoint": {"type": "default"}},
                ]
            },
            id="bedrock-config",
        ),
        pytest.param({**SAID, "inputSchema": {"json": SCHEMA}}, id="strands"),
        pytest.param({**SAID, "parameters": SCHEMA}, id="functions-of-2023"),
        pytest.param({**SAID, "parameters_json_schema": SCHEMA, "kind": "function"}, id="pydantic-ai"),
        pytest.param({"title": "weather", "description": SAID["description"], **SCHEMA}, id="json-schema"),
    ],
)
def test_a_tool_reads_the_same_in_every_shape(tool: Any) -> None:
    """By itself and in a list; and it is counted the same, so that none of its schema is overlooked."""
    assert read_tools(tool) == read_tools([tool]) == [WEATHER]
    counted = [
        measure([{"role": "user", "content": "hi"}], model=model, tools=given).tools_tokens
        for model in ("gpt-4o", "claude-sonnet-4-5")
        for given in ([tool], [{**SAID, "input_schema": SCHEMA}])
    ]
    assert counted[0] == counted[1]
    assert counted[2] == counted[3]


def test_a_schema_with_a_key_of_its_own_called_json_stays_whole() -> None:
    """Only under `inputSchema` does Bedrock wrap the schema in one."""
    schema = {**SCHEMA, "json": {"type": "object", "properties": {}}}
    assert read_tools([{**SAID, "parameters": schema}]) == [Tool(**SAID, schema=schema)]


@pytest.mark.parametrize("key", ["outputSchema", "output_schema", "responseJsonSchema"])
def test_a_schema_of_results_is_none_of_arguments(key: str) -> None:
    """A function without arguments that says what it returns is no function whose schema got lost."""
    assert read_tools([{**SAID, key: {"type": "object"}}]) == [Tool(**SAID, schema={})]


@pytest.mark.parametrize("form", formats())
def test_what_a_form_writes_is_read_again(form: str) -> None:
    """`Format.tool_schema` and this are each other's other way."""
    written = get_format(form).tool_schema("weather", description=SAID["description"], parameters=SCHEMA)
    assert read_tools([written]) == [WEATHER]


@pytest.mark.parametrize(
    ("tool", "name"),
    [
        ({"type": "web_search"}, "web_search"),
        ({"type": "web_search_20250305", "name": "web_search", "max_uses": 5}, "web_search"),
        ({"type": "custom", "custom": {"name": "sql", "format": {"type": "text"}}}, "sql"),
        ({"type": "custom", "name": "sql"}, "sql"),
        ({"type": "mcp", "server_label": "dice"}, "mcp"),
        ({"googleSearch": {}}, "googleSearch"),
        (types.Tool(code_execution=types.ToolCodeExecution()), "code_execution"),
        ({"systemTool": {"name": "nova_grounding"}}, "nova_grounding"),
    ],
)
def test_a_tool_without_a_schema_has_none(tool: Any, name: str) -> None:
    """The provider runs it, or it takes plain text."""
    assert read_tools([tool]) == [Tool(name=name, schema=None)]


def test_a_function_without_arguments_has_an_empty_schema() -> None:
    """And no description is none. No tools are none."""
    assert read_tools([{"name": "now"}, {"type": "function", "function": {"name": "now"}}]) == [
        Tool(name="now", schema={}),
        Tool(name="now", schema={}),
    ]
    assert read_tools({"tools": []}) == read_tools([{"functionDeclarations": []}]) == []
    assert read_tools(None) == read_tools([]) == read_tools([{"cachePoint": {"type": "default"}}]) == []


@pytest.mark.parametrize(
    ("tool", "others"),
    [
        (
            {"type": "namespace", "name": "crm", "description": "Customers. " * 20, "tools": [SAID]},
            [Tool(name="crm", description="Customers. " * 20, schema=None)],
        ),
        (
            {"functionDeclarations": [SAID], "googleSearch": {}, "urlContext": {}},
            [Tool(name="googleSearch", schema=None), Tool(name="urlContext", schema=None)],
        ),
    ],
)
def test_what_stands_beside_tools_in_one_entry_is_read_and_counted(tool: Any, others: list[Tool]) -> None:
    """A namespace has a description of its own; Gemini's tools of a kind each may share an entry."""
    assert read_tools([tool]) == [*others, Tool(**SAID, schema={})]
    for model in ("gpt-4o", "claude-sonnet-4-5"):
        whole, bare = (
            measure([{"role": "user", "content": "hi"}], model=model, tools=tools)
            for tools in ([tool], [SAID])
        )
        assert whole.tools_tokens > bare.tools_tokens + sum(len(one.description or "") for one in others) // 8


@pytest.mark.parametrize(
    "tool",
    [
        {"googleSearch": {}, "codeExecution": {}},
        types.Tool(google_search=types.GoogleSearch(), code_execution=types.ToolCodeExecution()),
    ],
)
def test_two_tools_of_the_provider_in_one_entry_are_two(tool: Any) -> None:
    """They cost what they cost in an entry each, and functions beside them change nothing."""
    apart = [{"googleSearch": {}}, {"codeExecution": {}}]
    assert [one.name.replace("_", "").lower() for one in read_tools([tool])] == [
        "googlesearch",
        "codeexecution",
    ]
    said = [{"role": "user", "parts": [{"text": "hi"}]}]
    one, two, search = (
        measure(said, model="gemini-2.5-flash", tools=tools).tools_tokens
        for tools in ([tool], apart, apart[:1])
    )
    assert one == two >= search


def weather(place: str) -> str:
    """Tells the weather."""
    return place


@pytest.mark.parametrize(
    ("tools", "path", "said"),
    [
        (
            [{"name": "now"}, {"weather": {"description": "x"}}],
            "tools[1]",
            "{'weather': {'description': 'x'}}",
        ),
        ([{"type": "function"}], "tools[0]", "{'type': 'function'}"),
        ([{"name": ""}], "tools[0]", "{'name': ''}"),
        ([{"name": "f", "args_schema": SCHEMA}], "tools[0]", "'args_schema'"),
        ([{"name": "f", "parameters": '{"type": "object"}'}], "tools[0]", "'parameters'"),
        ([{}], "tools[0]", "{}"),
        ([{"functionDeclarations": [SAID, {"nam": 1}]}], "tools[0].functionDeclarations[1]", "{'nam': 1}"),
        ([weather], "tools[0]", "the function weather: pass its schema"),
        ([3], "tools[0]", "int, 3"),
        ("weather", "tools", "str, 'weather'"),
        ([SCHEMA], "tools[0]", "'properties'"),
    ],
)
def test_an_unknown_shape_is_shown(tools: Any, path: str, said: str) -> None:
    """What was given, and where; nothing is guessed, and no schema is lost."""
    with pytest.raises(FormatError) as caught:
        read_tools(tools)
    assert caught.value.path == path
    assert said in str(caught.value)
    assert str(caught.value).startswith(path)
