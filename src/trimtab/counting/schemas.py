"""Tool and output schemas as text: TypeScript, as OpenAI's models are shown them, or JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeGuard

from trimtab.errors import FormatError
from trimtab.formats.bedrock.read import is_cache_point
from trimtab.formats.tools import Tool, function_in, tools_in
from trimtab.formats.values import compact_json, mapping_of, to_ascii
from trimtab.models import SchemaStyle, ToolsStyle

_MAX_DEPTH = 32
"""Nesting after which a type is written as `any`; nobody writes schemas so deep."""

_MAX_TYPES = 20_000
"""Types written before the rest of a tool's schema is `any`: references can multiply."""

_SIMPLE = {"string": "string", "number": "number", "integer": "number", "boolean": "boolean", "null": "null"}

SETTINGS = ("tool_choice", "parallel_tool_calls", "thinking", "task_budget")
"""Charged parts of a body that are no text: they set how much of a prompt the provider adds."""

_PARTS = frozenset(("response_format", *SETTINGS))
"""What `Request.extra` holds by key, beside legacy functions."""


_INDENTS: dict[ToolsStyle, int | None] = {"spaced": None, "indented": 4}


class ToolShape(NamedTuple):
    """What of one tool is charged: its texts, and how many properties its schema has."""

    texts: tuple[str, ...]
    properties: int
    nested: tuple[str, ...] = ()
    """Those of the texts that stand in schemas inside its schema."""


_NOT_SHOWN = frozenset(
    {"additionalProperties", "required", "default", "minimum", "maximum", "minItems", "maxItems"}
)
"""Keys of an output schema that are not charged, by the bills for ten of them (2026-11)."""

_NAMED_SCHEMAS = frozenset({"properties", "patternProperties", "$defs", "definitions"})
"""Keys of a schema under which names of the author's stand for schemas."""


def tools_text(tools: object, /, *, style: ToolsStyle) -> str:
    """Write tool schemas as the text that is counted for them.

    Takes function tools of any provider's form; what is none of these is written as JSON.

    Example:
        >>> print(tools_text([{"type": "function", "function": {"name": "add", "parameters": {
        ...     "type": "object", "properties": {"a": {"type": "integer"}}}}}], style="typescript"))
        namespace functions {
        <BLANKLINE>
        type add = (_: { a?: number }) => any;
        <BLANKLINE>
        } // namespace functions
    """
    if style == "json" or not isinstance(tools, Sequence) or isinstance(tools, str):
        return tools if isinstance(tools, str) else compact_json(tools)
    if style in _INDENTS:
        import json  # not above: it takes long, and models of few makers are shown JSON

        shown = [json.loads(compact_json(function_tool(tool) or tool)) for tool in _shown_tools(tools)]
        return "\n".join(json.dumps(tool, ensure_ascii=False, indent=_INDENTS[style]) for tool in shown)
    functions: list[str] = []
    rest: list[str] = []
    for tool in _shown_tools(tools):
        function = function_in(tool)
        if function is None:
            rest.append(compact_json(tool))
        else:
            functions.append(_declaration(function))
    if functions:
        rest.insert(0, "\n\n".join(("namespace functions {", *functions, "} // namespace functions")))
    return "\n".join(rest)


def tool_shapes(tools: object, /, *, style: ToolsStyle) -> list[ToolShape]:
    """List what is charged for each tool: its schema as JSON, or only its words.

    Example:
        >>> tool_shapes(
        ...     [{"name": "add", "input_schema": {"properties": {"a": {"type": "integer"}}}}], style="words"
        ... )
        [ToolShape(texts=('add', 'a', 'integer'), properties=1, nested=())]
    """
    shown = _shown_tools(tools)
    if style == "words":  # what the provider runs has no words, and is free until it runs (13 of 13 bills)
        return [_shape(tool, style) for tool in shown if _provider_tool(_as_mapping(tool)) is None]
    return [_shape(tool, style) for tool in shown]


def _shape(tool: object, style: ToolsStyle) -> ToolShape:
    function = function_in(tool)
    if function is None:
        return ToolShape((compact_json(tool),), 0)
    if style == "words":
        words = _Words()
        words.read(function.schema, 0)
        told = [text for text in (function.name, function.description) if text]
        return ToolShape((*told, *words.texts), words.properties, tuple(words.nested))
    return ToolShape((compact_json({**_words_of(function), "input_schema": function.schema}),), 0)


def _words_of(function: Tool) -> dict[str, str]:
    words = {"name": function.name, "description": function.description}
    return {key: text for key, text in words.items() if text}


class _Words:
    """Collects what the author of a schema wrote in it: names, types, descriptions, values."""

    __slots__ = ("nested", "properties", "texts")

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.nested: list[str] = []
        self.properties = 0

    def read(self, schema: object, depth: int) -> None:
        """Read one schema and those inside it."""
        if depth > _MAX_DEPTH or not isinstance(schema, Mapping) or len(self.texts) > _MAX_TYPES:
            return
        kind = schema.get("type")
        # an object says so by its properties
        self._take(() if str(kind).lower() == "object" else kind, depth)
        self._take(schema.get("description"), depth)
        self._take(schema.get("enum"), depth)
        properties = _as_mapping(schema.get("properties"))
        for name, value in properties.items():
            self.properties += 1
            self._take(str(name), depth if depth == 0 else depth + 1)
            self.read(value, depth + 1)
        inside = [schema.get("items"), schema.get("additionalProperties")]
        inside += [value for key in ("anyOf", "oneOf", "allOf") for value in _as_list(schema.get(key))]
        inside += _as_mapping(schema.get("$defs")).values()
        for value in inside:
            self.read(value, depth + 2)

    def _take(self, value: object, depth: int) -> None:
        found = [str(item) for item in _as_list(value)]
        self.texts.extend(found)
        if depth > 1:
            self.nested.extend(found)


def provider_tools(tools: object, /) -> list[str]:
    """Name the tools that the provider runs or describes itself: their schemas are not in the request."""
    return [name for tool in _shown_tools(tools) if (name := _provider_tool(_as_mapping(tool))) is not None]


def _provider_tool(tool: Mapping[str, Any]) -> str | None:
    if not tool or tool.get("type") == "custom" or function_in(tool) is not None:
        return None
    kind = tool.get("type", "function")
    if kind != "function":
        return str(kind)
    # Gemini's have no type: the one key names the tool
    return None if "function" in tool or "name" in tool else str(next(iter(tool)))


_NAMING = ("tool", "function", "custom")
"""Types of a choice that names the tool to call: Anthropic's, and OpenAI's."""


def is_forced(extra: Mapping[str, Any] | None, /) -> bool:
    """Tell whether a request makes the model call a tool, by the choice under `tool_choice`.

    It is Anthropic's, or Chat's: "required", or a tool by name.
    """
    choice = (extra or {}).get("tool_choice")
    if isinstance(choice, str):
        return choice == "required"
    return _as_mapping(choice).get("type") in ("any", *_NAMING)


def chosen_tool(extra: Mapping[str, Any] | None, /) -> str:
    """Return the name of the tool that a request makes the model call, under `tool_choice`; "" for none."""
    choice = _as_mapping((extra or {}).get("tool_choice"))
    kind = str(choice.get("type"))
    if kind not in _NAMING:
        return ""
    return str((_as_mapping(choice.get(kind)) or choice).get("name") or "")


def is_refused(extra: Mapping[str, Any] | None, /) -> bool:
    """Tell whether a request lets the model call no tool, by the choice under `tool_choice`."""
    choice = (extra or {}).get("tool_choice")
    return choice == "none" or _as_mapping(choice).get("type") == "none"


def is_thinking(extra: Mapping[str, Any] | None, /) -> bool:
    """Tell whether a request gives the model a budget for thinking, under `thinking`."""
    return _as_mapping((extra or {}).get("thinking")).get("type") == "enabled"


def split_beside(tools: Any, extra: Mapping[str, Any] | None, /) -> tuple[Any, Mapping[str, Any] | None]:
    """Tell tools from what else is charged beside the messages.

    Legacy `functions` in `extra` are charged as tools. Who has a list of messages and no body puts other
    parts of one among the tools, each by its key: an output schema as `{"response_format": ...}`.

    Returns:
        All tool schemas and the rest of `extra`, which is None if nothing remains.

    Example:
        >>> split_beside([{"name": "add"}], {"functions": [{"name": "old"}]})
        ([{'name': 'add'}, {'name': 'old'}], None)
        >>> split_beside([{"tool_choice": {"type": "any"}}, {"name": "add"}], None)
        ([{'name': 'add'}], {'tool_choice': {'type': 'any'}})
    """
    functions = extra.get("functions") if extra else None
    parts = [one for one in _as_list(tools) if _is_part(one)]
    if not functions and not parts:
        return tools, extra or None
    rest = {key: one[key] for one in (*parts, extra or {}) for key in one if key != "functions"}
    return [*(one for one in _as_list(tools) if not _is_part(one)), *_as_list(functions)], rest or None


def _is_part(one: object) -> TypeGuard[Mapping[str, Any]]:
    """Tell whether this is no tool, but parts of a body by their keys."""
    return isinstance(one, Mapping) and bool(one) and one.keys() <= _PARTS


def _as_list(value: object) -> Sequence[object]:
    if isinstance(value, list | tuple):
        return value
    return (value,) if value else ()


def output_schema_text(extra: Mapping[str, Any] | None, /, *, style: SchemaStyle = "compact") -> str:
    """Write the schema an answer has to follow as the text that is counted for it; "" for none."""
    form = _as_mapping((extra or {}).get("response_format"))
    schema = _as_mapping(form.get("json_schema"))
    if not schema:
        return ""
    if style == "indented":
        import json  # not above: few requests have a schema

        return json.dumps(json.loads(compact_json(schema.get("schema"))), indent=2, ensure_ascii=False)
    # As https://github.com/openai/harmony, docs/format.md, "Structured output" shows it (2026-11); that it is
    # written in ASCII is by the bills.
    about = f"// {schema['description']}\n" if schema.get("description") else ""
    shown = to_ascii(compact_json(_visible(schema.get("schema"), 0)))
    return f"# Response Formats\n\n## {schema.get('name') or ''}\n\n{about}{shown}"


def system_texts(system: object, /) -> list[str]:
    """List the texts of a system prompt that stands outside the messages."""
    if system is None or system == "":
        return []
    if isinstance(system, str):
        return [system]
    if isinstance(system, Sequence):
        return [text for part in system for text in system_texts(part)]
    part = _as_mapping(system)
    if is_cache_point(part):
        return []
    text = part.get("text")
    return [text] if isinstance(text, str) else [compact_json(system)]


def _as_mapping(value: object) -> Mapping[str, Any]:
    try:
        return mapping_of(value)
    except FormatError:
        return {}


def _visible(schema: object, depth: int, *, named: bool = False) -> object:
    if depth > _MAX_DEPTH:
        return None
    if isinstance(schema, Mapping):
        return {
            key: _visible(value, depth + 1, named=not named and key in _NAMED_SCHEMAS)
            for key, value in schema.items()
            if named or key not in _NOT_SHOWN
        }
    if isinstance(schema, list):
        return [_visible(value, depth + 1) for value in schema]
    return schema


def _shown_tools(tools: object) -> Iterator[object]:
    """Yield the tools a model is shown from the start, each function by itself."""
    return (
        tool
        for _, tool in tools_in(tools)
        if _as_mapping(tool).get("defer_loading") is not True and not _is_part(tool)
    )


def function_tool(tool: object, /) -> dict[str, Any] | None:
    """Write a function tool of any shape as Chat Completions do; None for other tools."""
    function = function_in(tool)
    if function is None:
        return None
    if isinstance(tool, Mapping) and "function" in tool:
        return dict(tool)
    return {"type": "function", "function": {**_words_of(function), "parameters": function.schema}}


def _declaration(function: Tool) -> str:
    schema = function.schema or {}
    properties = _Writer(schema).properties(schema, 0)
    about = _comments(schema)
    signature = f"(_: {about and chr(10)}{about}{properties})" if properties else "()"
    return f"{_comment(function.description)}type {function.name} = {signature} => any;"


def _comments(schema: Mapping[str, Any]) -> str:
    """Write title and description before what they describe, an empty line of comment between them."""
    title, about = _comment(schema.get("title")), _comment(schema.get("description"))
    return f"{title}//\n{about}" if title and about else title or about


def _comment(text: object) -> str:
    """Write a text before what it describes: its lines are charged stripped, empty ones not at all."""
    lines = text.splitlines() if isinstance(text, str) else ()
    return "".join(f"// {line.strip()}\n" for line in lines if line.strip())


class _Writer:
    """Writes one JSON schema as a TypeScript type."""

    __slots__ = ("_inside", "_root", "_types")

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._inside: list[str] = []
        self._types = 0

    def properties(self, schema: Mapping[str, Any], depth: int) -> str:
        """Write the properties of an object, one a line where something is said of any; "" for none."""
        required = schema.get("required")
        required = required if isinstance(required, list | tuple) else ()
        lines = [
            self._property(str(name), _as_mapping(value), depth, optional=name not in required)
            for name, value in _as_mapping(schema.get("properties")).items()
        ]
        if not any("//" in line for line in lines):
            return f"{{ {', '.join(line.rstrip(',') for line in lines)} }}" if lines else ""
        return "\n".join(("{", *lines, "}"))

    def _property(self, name: str, schema: Mapping[str, Any], depth: int, *, optional: bool) -> str:
        mark = "?" if optional else ""
        default = f" // default: {compact_json(schema['default'])}" if "default" in schema else ""
        about = _comments({**self._at(str(schema["$ref"])), **schema} if "$ref" in schema else schema)
        return f"{about}{name}{mark}: {self.type(schema, depth + 1)},{default}"

    def type(self, schema: object, depth: int) -> str:
        """Write one schema as a type; `any` for what has none."""
        self._types += 1
        if not isinstance(schema, Mapping) or depth > _MAX_DEPTH or self._types > _MAX_TYPES:
            return "any"
        if "$ref" in schema:
            return self._type_at(str(schema["$ref"]), depth + 1)
        if isinstance(schema.get("enum"), list | tuple):
            return " | ".join(map(compact_json, schema["enum"]))
        if "const" in schema:
            return compact_json(schema["const"])
        options = schema.get("anyOf") or schema.get("oneOf") or schema.get("type")
        if isinstance(options, list | tuple):
            kinds = [{**schema, "type": one} if isinstance(one, str) else one for one in options]
            if not any(_as_mapping(kind).get("type") == "null" for kind in kinds):
                return " | ".join(self.type(kind, depth + 1) for kind in kinds)
            # what may be null has a line a kind, with what is said of it (two schemas, 7 bills, 2026-11)
            written = (f"\n | {_comments(_as_mapping(kind))}{self.type(kind, depth + 1)}" for kind in kinds)
            return "".join(written) + "\n"
        if options == "array":
            return self.type(schema.get("items"), depth + 1) + "[]"
        if options == "object" or "properties" in schema:
            return self.properties(schema, depth) or "object"
        return _SIMPLE.get(str(options), "any")

    def _type_at(self, reference: str, depth: int) -> str:
        """Write the type a reference leads to; `any` where it leads back into itself."""
        if reference in self._inside:
            return "any"
        self._inside.append(reference)
        written = self.type(self._at(reference), depth)
        self._inside.pop()
        return written

    def _at(self, reference: str) -> Mapping[str, Any]:
        """Find the schema a reference leads to; an empty one if there is none."""
        found: object = self._root
        for key in reference.removeprefix("#/").split("/"):
            found = found.get(key) if isinstance(found, Mapping) else None
        return _as_mapping(found)
