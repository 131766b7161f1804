"""Writing for Gemini: request bodies and system text, and what redaction leaves of a content.

Bodies are as on the wire, or the keyword arguments of google-genai. On the wire
system text, tools and the output schema stand beside `contents`; the SDK's
`generate_content(model=, contents=, config=)` holds them in `config`.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from operator import is_
from typing import Any

from trimtab.errors import FormatError
from trimtab.formats.base import Request, output_schema
from trimtab.formats.gemini.read import DATA_KEYS, SIGNATURE, key_in, parts_for, unchecked_signature, value_in
from trimtab.formats.values import (
    REDACTED,
    Dict,
    Path,
    as_dict,
    as_list,
    item_of,
    short_repr,
    texts_of_ids,
    with_values,
)

_SCHEMA_KEYS = ("response_json_schema", "_responseJsonSchema", "response_schema")


def read_body(body: Mapping[str, Any]) -> Request:
    """Take a body apart; see `Format.read_request`."""
    held = dict(body)
    contents = held.get("contents")
    if isinstance(contents, str):
        contents = [{"role": "user", "parts": [{"text": contents}]}]
    elif as_list(contents) is None:
        contents = [contents] if (as_dict(contents) or {}).get("parts") is not None else contents
    if as_list(contents) is None:
        kind = type(contents).__name__
        raise FormatError(
            f"a Gemini body needs a list of contents under 'contents', not {kind}", path="contents"
        )
    for index, entry in enumerate(contents or ()):
        _check_entry(index, entry)
    beside, settings = _places(held)
    return Request(
        messages=contents or [],
        system=_system(_under(beside, "system_instruction")),
        tools=_under(beside, "tools"),
        body=body,
        key="contents",
        extra=_extra(settings),
        unseen=() if _under(beside, "cached_content") is None else ("the cached content (cachedContent)",),
    )


def write_body(request: Request, messages: list[Any]) -> Any:
    """Put contents, and system text and tools that changed, into a copy of the body."""
    body = request.body
    if body is None:
        return messages
    held = dict(body)
    beside, _ = _places(held)
    changes: dict[Path, Any] = {}
    was = _under(beside, "system_instruction")
    if request.system is not None and request.system != _system(was):
        changes[(_key(beside, "system_instruction", held),)] = _as_instruction(request.system, was)
    if request.tools and request.tools is not _under(beside, "tools"):
        changes[("tools",)] = request.tools
    if "config" in held:
        # The caller's own config, where nothing of it changed.
        changes = {("config",): with_values(beside, changes)} if changes else {}
    same = not isinstance(held.get("contents"), list | tuple) and messages == list(request.messages)
    return with_values(held, changes if same else {**changes, ("contents",): messages})


def _places(body: Dict) -> tuple[Any, Any]:
    """Return what holds system text and tools, and what holds the output schema."""
    if "config" in body:
        config: Any = {} if body["config"] is None else body["config"]
        return config, config
    return body, _under(body, "generation_config") or {}


def _under(owner: Any, name: str) -> Any:
    """Return the caller's own value under a key or attribute, in either spelling."""
    return value_in(dict(owner), name) if isinstance(owner, Mapping) else item_of(owner, name)


def _key(owner: Any, name: str, body: Dict) -> str:
    """Return the spelling a key has, or that of the other keys if it is new."""
    if not isinstance(owner, Mapping):
        return name
    found = key_in(dict(owner), name)
    snake = "config" in body or any("_" in key for key in body if isinstance(key, str))
    return found or (name if snake else "systemInstruction")


def _check_entry(index: int, entry: Any) -> None:
    """Refuse what the SDK would make a content of first: grouping it is not ours."""
    found = as_dict(entry)
    if found is not None and ("parts" in found or "role" in found):
        return
    if found is None or any(key_in(found, key) is not None for key in DATA_KEYS):
        path = f"contents[{index}]"
        raise FormatError(
            f"{path} is not a content but {type(entry).__name__} {short_repr(entry)}: "
            'write it as {"role": "user", "parts": [...]}',
            path=path,
        )


def _system(instruction: Any) -> Any:
    if instruction is None or isinstance(instruction, str):
        return instruction or None
    listed = as_list(instruction)
    if listed is not None:
        return list(listed)
    entry = as_dict(instruction)
    if entry is None:
        return instruction
    parts = as_list(entry.get("parts"))
    return [entry] if parts is None else list(parts)


def parts_of_system(system: Any) -> list[Any]:
    """List system text, a content or several of them as parts of the wire; a text becomes one.

    Raises:
        FormatError: It is no text, no part and no list of these.
    """
    if isinstance(system, str):
        return [{"text": system}] if system else []
    listed = as_list(system)
    if listed is not None:
        return [part for one in listed for part in parts_of_system(one)]
    entry = as_dict(system)
    if entry is None:
        raise FormatError(
            f"system text must be texts and parts, not {type(system).__name__}: {short_repr(system)}"
        )
    if "parts" not in entry and "role" not in entry:
        return [system]
    held = item_of(system, "parts")
    return [] if held is None else parts_of_system(held)


def _as_instruction(system: Any, was: Any) -> Any:
    """Write system text in the shape the body had; without one, as a content."""
    listed = as_list(system)
    if listed is None:
        listed = [system]
    if isinstance(was, str) and all(isinstance(part, str) for part in listed):
        return "\n".join(listed)
    parts = [{"text": part} if isinstance(part, str) else part for part in listed]
    if as_list(was) is not None:
        return parts
    if item_of(was, "parts") is not None:
        return with_values(was, {("parts",): parts_for(was, parts)})
    return {"parts": parts}


def _extra(settings: Any) -> dict[str, Any]:
    """Write an output schema as Chat Completions does."""
    schema = next((found for key in _SCHEMA_KEYS if (found := _under(settings, key)) is not None), None)
    if schema is None:
        return {}
    maker = item_of(schema, "model_json_schema")
    if isinstance(schema, type):
        schema = maker() if callable(maker) else {"title": schema.__name__}
    name = item_of(schema, "title")
    named = {"name": name} if isinstance(name, str) else {}
    return output_schema({**named, "schema": as_dict(schema) or schema})


def redacted_of(message: Dict) -> Dict:
    """Return a content that says nothing any more.

    What stays is its role, and of calls and responses which they are: names too, since they pair. A call
    that was signed gets the value Google names for one without its signature.
    """
    made: Dict = texts_of_ids(message, "role")
    parts = as_list(message.get("parts"))
    if parts is not None:
        left = [_part(part) for part in parts if not _is_thought(part)]
        made["parts"] = left or [{"text": REDACTED}]
    return made


def _is_thought(part: Any) -> bool:
    """Tell whether a part is a thought, or nothing but the signature of one."""
    if not isinstance(part, dict):
        return False
    return part.get("thought") is True or not any(
        value is not None and key not in ("thought", "thoughtSignature", SIGNATURE)
        for key, value in part.items()
    )


def _part(part: Any) -> Dict:
    for name, (keys, rest) in _STAYS.items():
        key = key_in(part, name) if isinstance(part, dict) else None
        if key is not None:
            made: Dict = {key: {**texts_of_ids(as_dict(part[key]) or {}, *keys), **deepcopy(rest)}}
            signed = key_in(part, SIGNATURE)
            if signed is not None and name == "function_call":
                made[signed] = unchecked_signature()
            return made
    return {"text": REDACTED}


_STAYS: dict[str, tuple[tuple[str, ...], Dict]] = {
    "function_call": (("id", "name"), {"args": {}}),
    "function_response": (("id", "name"), {"response": {"result": REDACTED}}),
    "executable_code": (("id", "language"), {"code": f"# {REDACTED}"}),
    "code_execution_result": (("id", "outcome"), {"output": REDACTED}),
    "tool_call": (("id", "toolType", "tool_type"), {}),
    "tool_response": (("id", "toolType", "tool_type"), {}),
}
"""Parts that belong to another one, and so stay what they are: keys that stay, and what stands for others."""


def without_thoughts(content: Any) -> Any | None:
    """Return a content without its thoughts; None if nothing remains.

    A call keeps the value that nobody checks in place of its signature: without one it is refused.
    """
    parts = as_list(item_of(content, "parts")) or ()
    rest = [_without_signature(part) for part in parts if not _is_thought(as_dict(part))]
    if len(rest) == len(parts) and all(map(is_, rest, parts)):
        return content
    return with_values(content, {("parts",): parts_for(content, rest)}) if rest else None


def _without_signature(part: Any) -> Any:
    """Return a part without the signature of a thought."""
    entry = as_dict(part) or {}
    signed = key_in(entry, SIGNATURE)
    if signed is None or entry[signed] == unchecked_signature():
        return part
    is_call = key_in(entry, "function_call") is not None
    return (
        {**entry, signed: unchecked_signature()}
        if is_call
        else {k: v for k, v in entry.items() if k != signed}
    )
