"""Tools of a request, in whichever of the usual shapes they are written.

The shapes are those of the wire forms and of what frameworks hand on: Chat Completions and Responses,
Anthropic (`input_schema`), Gemini (`functionDeclarations`, in both spellings), MCP (`inputSchema`), Bedrock
and Strands (`toolSpec`, `inputSchema.json`), and a JSON schema that has the name as its title.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

from trimtab._shared.checks import kind_of_tool
from trimtab.errors import FormatError
from trimtab.formats.bedrock.read import is_cache_point
from trimtab.formats.values import as_dict, as_list, as_text, short_repr, without_keys

_DECLARED_KEYS = ("functionDeclarations", "function_declarations", "tools")
"""Where one entry of a list holds several tools; "tools" is of a whole `toolConfig`, or of an MCP answer."""

_HELD_KEYS = ("function", "toolSpec")
"""Where a tool holds the mapping with its name, where it is not that mapping itself."""

_SCHEMA_KEYS = ("parameters", "input_schema", "inputSchema", "parametersJsonSchema", "parameters_json_schema")
"""Where a function tool holds the schema of its arguments."""

_BY_PROVIDER = frozenset(
    {
        *(
            "googlesearch",
            "googlesearchretrieval",
            "codeexecution",
            "urlcontext",
            "computeruse",
            "googlemaps",
        ),
        *("enterprisewebsearch", "filesearch", "retrieval", "parallelaisearch", "exaaisearch", "mcpservers"),
        "systemtool",
    }
)
"""Keys that name a tool which the provider runs, without case and underscores.

They are those of `Tool` in google-genai (2026-11) and Bedrock's.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """What a model knows of a tool.

    Args:
        name: The name of the tool.
        description: Its description; None if there is none.
        schema: The JSON schema of its arguments, as it was given; `{}` if it takes none. None: there is no
            schema, because the provider runs the tool or it takes plain text.
    """

    name: str
    description: str | None = None
    schema: Mapping[str, Any] | None


def read_tools(tools: object, /) -> list[Tool]:
    """Read tools in any of the usual shapes: name, description and schema of each.

    Args:
        tools: One tool, a list of them, a whole `toolConfig`, or None; dicts or objects of an SDK. Cache
            marks are skipped.

    Raises:
        FormatError: A tool is of an unknown shape; the error shows the tool and its place.

    Example:
        >>> for tool in read_tools([
        ...     {"name": "add", "description": "Adds.", "inputSchema": {"type": "object"}},
        ...     {"functionDeclarations": [{"name": "now"}]},
        ...     {"type": "web_search"},
        ... ]):
        ...     print(tool.name, tool.description, tool.schema)
        add Adds. {'type': 'object'}
        now None {}
        web_search None None
    """
    return [_tool_at(path, tool) for path, tool in tools_in(tools)]


def tools_in(tools: object, /) -> Iterator[tuple[str, object]]:
    """Yield each tool with where it is, also those that stand in one entry.

    Cache marks are skipped.
    """
    if (listed := as_list(tools)) is not None:
        for at, tool in enumerate(listed):
            yield from _entries(f"tools[{at}]", tool)
    elif tools is not None:
        yield from _entries("tools", tools)


def _entries(path: str, tool: object) -> Iterator[tuple[str, object]]:
    entry = as_dict(tool) or {}
    key = next((key for key in _DECLARED_KEYS if entry.get(key) is not None), None)
    rest = entry if key is None else without_keys(entry, (key,))
    given = [name for name in rest if _is_by_provider(name) and rest[name] is not None]
    if "type" in rest or (key is None and len(given) < 2):
        # one tool, or a namespace of Responses, which has a name and a description of its own
        if key is not None or not is_cache_point(entry):
            yield path, tool if key is None else rest
    else:
        yield from ((path, {name: rest[name]}) for name in given)
    if key is None:
        return
    listed = as_list(entry[key])
    for at, one in enumerate((entry[key],) if listed is None else listed):
        yield from _entries(f"{path}.{key}[{at}]", one)


def function_in(tool: object, /) -> Tool | None:
    """Read a function tool; None for one that is none, or of no known shape."""
    entry = as_dict(tool) or {}
    kind = entry.get("type", "function")
    described = as_text(entry.get("description"))
    if kind == "object" and (title := as_text(entry.get("title"))):
        return Tool(name=title, description=described, schema=without_keys(entry, ("title", "description")))
    held = _inner(entry)
    name = held.get("name")
    if not isinstance(name, str) or (kind != "function" and "input_schema" not in entry):
        return None
    given: object = next((held[key] for key in _SCHEMA_KEYS if held.get(key)), {})
    schema = as_dict(given)
    if schema is None:  # as JSON that was not read: nobody would see it
        return None
    if "inputSchema" in held and (inner := as_dict(schema.get("json"))) is not None:
        schema = inner
    return Tool(name=name, description=as_text(held.get("description")), schema=schema)


def _inner(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the mapping that has the name of a function."""
    return next((as_dict(entry[key]) or {} for key in _HELD_KEYS if key in entry), entry)


def _tool_at(path: str, tool: object) -> Tool:
    found = function_in(tool)
    if found is None:
        found = _tool_without_schema(tool)
    elif not found.schema and any(map(_is_lost, *zip(*_inner(as_dict(tool) or {}).items(), strict=True))):
        found = None
    if found is None or not found.name:
        raise FormatError(f"{path} {_wrong_with(tool)}", path=path)
    return found


def _is_lost(key: object, value: object) -> bool:
    """Tell whether a schema of arguments stands under a key nobody knows; one of results is none."""
    said = str(key).lower()
    if key in _SCHEMA_KEYS or "output" in said or "response" in said:
        return False
    schema = as_dict(value) or {}
    return "properties" in schema or schema.get("type") == "object"


def _tool_without_schema(tool: object) -> Tool | None:
    """Read a tool that the provider runs, or that takes plain text."""
    entry = as_dict(tool) or {}
    kind = as_text(entry.get("type"))
    key = next(iter(entry), None)
    if kind is None and _is_by_provider(key):
        return Tool(name=as_text((as_dict(entry[key]) or {}).get("name")) or key, schema=None)
    if kind in (None, "function", "object"):
        return None
    held = as_dict(entry.get(str(kind))) or entry
    described = as_text(held.get("description"))
    return Tool(name=as_text(held.get("name")) or str(kind), description=described, schema=None)


def _is_by_provider(key: object) -> TypeGuard[str]:
    return isinstance(key, str) and key.replace("_", "").lower() in _BY_PROVIDER


def _wrong_with(tool: object) -> str:
    if as_dict(tool) is None:
        return f"is {kind_of_tool(tool)}: pass its schema, the mapping that is sent to the provider"
    return (
        f"is no tool of a known shape: {short_repr(tool)}. A function has a name, by itself or under"
        f" 'function' or 'toolSpec', and its schema under one of {', '.join(_SCHEMA_KEYS)}"
    )
