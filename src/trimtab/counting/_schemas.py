"""Tool and output schemas as text: TypeScript, as OpenAI's models are shown them, or JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trimtab.errors import FormatError
from trimtab.formats._access import compact_json
from trimtab.formats._base import mapping_of
from trimtab.models import ToolsStyle

_MAX_DEPTH = 32
"""Nesting after which a type is written as `any`; nobody writes schemas so deep."""

_MAX_TYPES = 20_000
"""Types written before the rest of a tool's schema is `any`: references can multiply."""

_SIMPLE = {"string": "string", "number": "number", "integer": "number", "boolean": "boolean", "null": "null"}

_NOT_SHOWN = ("additionalProperties", "required")
"""Keys of an output schema that are not charged, by the bills for two of them (2026-11)."""


def tools_text(tools: Any, /, *, style: ToolsStyle) -> str:
    """Write tool schemas as the text that is counted for them.

    Takes function tools of any provider's form; what is none of these is written as JSON.

    Example:
        >>> print(tools_text([{"type": "function", "function": {"name": "add", "parameters": {
        ...     "type": "object", "properties": {"a": {"type": "integer"}}}}}], style="typescript"))
        namespace functions {
        <BLANKLINE>
        type add = (_: {
        a?: number,
        }) => any;
        <BLANKLINE>
        } // namespace functions
    """
    if style == "json" or not isinstance(tools, Sequence) or isinstance(tools, str):
        return tools if isinstance(tools, str) else compact_json(tools)
    functions: list[str] = []
    rest: list[str] = []
    for tool in tools:
        function = _function_of(tool)
        if function is None:
            rest.append(compact_json(tool))
        else:
            functions.append(_declaration(function))
    if functions:
        rest.insert(0, "\n\n".join(("namespace functions {", *functions, "} // namespace functions")))
    return "\n".join(rest)


def with_functions(tools: Any, extra: Mapping[str, Any] | None, /) -> tuple[Any, Mapping[str, Any] | None]:
    """Take legacy `functions` out of `extra` and put them behind the tools.

    They are charged alike.

    Returns:
        All tool schemas and the rest of `extra`, which is None if nothing is left.

    Example:
        >>> with_functions([{"name": "add"}], {"functions": [{"name": "old"}]})
        ([{'name': 'add'}, {'name': 'old'}], None)
    """
    functions = extra.get("functions") if extra else None
    if extra is None or not functions:
        return tools, extra or None
    rest = {key: value for key, value in extra.items() if key != "functions"}
    return [*_listed(tools), *_listed(functions)], rest or None


def _listed(value: Any) -> Sequence[Any]:
    if isinstance(value, list | tuple):
        return value
    return (value,) if value else ()


def output_schema_text(extra: Mapping[str, Any] | None, /) -> str:
    """Write the schema an answer has to follow as the text that is counted for it; "" for none."""
    form = _as_mapping((extra or {}).get("response_format"))
    schema = _as_mapping(form.get("json_schema"))
    if not schema:
        return ""
    named = [str(schema[key]) for key in ("name", "description") if schema.get(key)]
    return "\n".join((*named, compact_json(_shown(schema.get("schema"), 0))))


def system_texts(system: Any, /) -> list[str]:
    """List the texts of a system prompt that stands outside the messages."""
    if system is None or system == "":
        return []
    if isinstance(system, str):
        return [system]
    if isinstance(system, Sequence):
        return [text for part in system for text in system_texts(part)]
    text = _as_mapping(system).get("text")
    return [text] if isinstance(text, str) else [compact_json(system)]


def _as_mapping(value: Any) -> Mapping[str, Any]:
    try:
        return mapping_of(value)
    except FormatError:
        return {}


def _shown(schema: Any, depth: int) -> Any:
    if depth > _MAX_DEPTH:
        return None
    if isinstance(schema, Mapping):
        return {
            key: _shown(value, depth + 1)
            for key, value in schema.items()
            # a property may have such a name; then its value is a schema
            if key not in _NOT_SHOWN or isinstance(value, Mapping)
        }
    if isinstance(schema, list):
        return [_shown(value, depth + 1) for value in schema]
    return schema


def _function_of(tool: Any) -> Mapping[str, Any] | None:
    """Return the mapping that holds name and schema, in whichever provider's form it is."""
    entry = _as_mapping(tool)
    found = _as_mapping(entry["function"]) if "function" in entry else entry
    known = entry.get("type", "function") == "function" or "input_schema" in entry
    return found if known and isinstance(found.get("name"), str) else None


def _declaration(function: Mapping[str, Any]) -> str:
    schema = _as_mapping(function.get("parameters") or function.get("input_schema") or {})
    properties = _Writer(schema).properties(schema, 0)
    signature = f"(_: {{\n{properties}\n}})" if properties else "()"
    described = _comment(function.get("description"))
    return f"{described}type {function['name']} = {signature} => any;"


def _comment(text: Any) -> str:
    """Write a description before what it describes; its lines are charged stripped."""
    if not isinstance(text, str) or not text.strip():
        return ""
    return "// " + "\n".join(line.strip() for line in text.strip().splitlines()) + "\n"


class _Writer:
    """Writes one JSON schema as a TypeScript type."""

    __slots__ = ("_inside", "_root", "_types")

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._inside: list[str] = []
        self._types = 0

    def properties(self, schema: Mapping[str, Any], depth: int) -> str:
        """Write the properties of an object, one a line."""
        required = schema.get("required")
        required = required if isinstance(required, list | tuple) else ()
        lines = [
            self._property(str(name), _as_mapping(value), depth, optional=name not in required)
            for name, value in _as_mapping(schema.get("properties")).items()
        ]
        return "\n".join(lines)

    def _property(self, name: str, schema: Mapping[str, Any], depth: int, *, optional: bool) -> str:
        mark = "?" if optional else ""
        default = f" // default: {compact_json(schema['default'])}" if "default" in schema else ""
        return f"{_comment(schema.get('description'))}{name}{mark}: {self.type(schema, depth + 1)},{default}"

    def type(self, schema: Any, depth: int) -> str:
        """Write one schema as a type; `any` for what has none."""
        self._types += 1
        if not isinstance(schema, Mapping) or depth > _MAX_DEPTH or self._types > _MAX_TYPES:
            return "any"
        if "$ref" in schema:
            return self._referred(str(schema["$ref"]), depth + 1)
        if isinstance(schema.get("enum"), list | tuple):
            return " | ".join(map(compact_json, schema["enum"]))
        if "const" in schema:
            return compact_json(schema["const"])
        options = schema.get("anyOf") or schema.get("oneOf") or schema.get("type")
        if isinstance(options, list | tuple):
            return " | ".join(self._option(schema, option, depth + 1) for option in options)
        if options == "array":
            return self.type(schema.get("items"), depth + 1) + "[]"
        inner = self.properties(schema, depth) if options == "object" or "properties" in schema else None
        if inner is not None:
            return f"{{\n{inner}\n}}" if inner else "object"
        return _SIMPLE.get(str(options), "any")

    def _option(self, schema: Mapping[str, Any], option: Any, depth: int) -> str:
        return self.type({**schema, "type": option} if isinstance(option, str) else option, depth)

    def _referred(self, reference: str, depth: int) -> str:
        """Write the type a reference leads to; `any` where it leads back into itself."""
        if reference in self._inside:
            return "any"
        found: Any = self._root
        for key in reference.removeprefix("#/").split("/"):
            found = found.get(key) if isinstance(found, Mapping) else None
        self._inside.append(reference)
        written = self.type(found, depth)
        self._inside.pop()
        return written
