"""Messages as chat templates read them, and small requests to try a template with."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from trimtab.counting.schemas import function_tool
from trimtab.errors import CountingError
from trimtab.formats import Format, Media
from trimtab.formats.base import mapping_of
from trimtab.formats.values import as_dict, compact_json

__all__ = [
    "ANSWER",
    "CALL_ID",
    "PROBES",
    "SYSTEM",
    "TOOLS",
    "USER",
    "Entries",
    "Entry",
    "Shape",
    "call",
    "read",
    "result",
    "shape_for",
]

Entry = dict[str, Any]
"""A message of Chat Completions with string content; arguments of calls are text."""

Entries = list[Entry]

CALL_ID = "call00000"
"""An id for calls of ours: nine letters and digits, which is all that some templates take."""

_ARGUMENT = "probe"
"""An argument of calls of ours, to see whether a template writes arguments."""

_REASONING_KEYS = ("reasoning_content", "reasoning", "thinking")
"""Where messages of open models hold what was thought; templates read one of them."""


class Read(NamedTuple):
    """A message as a template reads it, and what of it no template has a place for."""

    entry: Entry
    other: tuple[str, ...]
    media: tuple[Media, ...]
    more_results: int
    """Results in the message beside the one it is read as."""


def read(message: Any, format: Format, /) -> Read:
    """Read a message of any wire form.

    Text parts are joined by line ends, as vLLM does for templates that take strings
    (vllm/entrypoints/chat_utils.py, 2026-11).
    """
    message = mapping_of(message)
    reasoning = {key: message[key] for key in _REASONING_KEYS if isinstance(message.get(key), str)}
    if reasoning:
        message = {key: value for key, value in message.items() if key not in reasoning}
    pieces = format.pieces(message)
    kind = format.kind(message)
    entry: Entry = {"role": pieces.role if kind == "other" else kind, "content": "\n".join(pieces.texts)}
    if pieces.name:
        entry["name"] = pieces.name
    if pieces.thoughts and not reasoning:
        reasoning = {"reasoning_content": "\n".join(pieces.thoughts)}
    if reasoning:
        # servers give a template both names, whichever the client wrote
        entry.update({"reasoning_content": next(iter(reasoning.values())), **reasoning})
    if pieces.calls:
        entry["tool_calls"] = _calls(pieces.calls, list(format.tool_names(message)))
    if kind == "tool":
        entry["tool_call_id"] = pieces.result_id or CALL_ID
    more_results = max(0, pieces.results - (kind == "tool"))
    return Read(entry, (*pieces.other, *map(compact_json, pieces.tools)), pieces.media, more_results)


def _calls(calls: Sequence[tuple[str, str]], ids: Sequence[str]) -> list[Entry]:
    named = ids if len(ids) == len(calls) else [f"call{at:05}" for at in range(len(calls))]
    return [
        {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
        for id, (name, arguments) in zip(named, calls, strict=True)
    ]


class Shape(NamedTuple):
    """What a template takes messages to look like, where templates differ."""

    parts: bool = False
    """Content is a list of parts; else a text."""
    text_arguments: bool = False
    """Arguments of calls are JSON as text; else mappings."""
    null_content: bool = False
    """A message that only calls has null for content; else an empty text."""

    def shaped(self, entries: Sequence[Entry], /) -> Entries:
        """Return entries as the template takes them."""
        return [self._shaped(entry) for entry in entries]

    def _shaped(self, entry: Entry) -> Entry:
        if self.parts:
            part = {"type": "text", "text": entry["content"]}
            if entry["role"] == "tool":
                part["name"] = entry.get("name", "")
            entry = {**entry, "content": [part]}
        if "tool_calls" not in entry:
            return entry
        entry = dict(entry)
        if self.null_content and entry["content"] == "":
            entry["content"] = None
        if not self.text_arguments:
            entry["tool_calls"] = [_with_mapping(one) for one in entry["tool_calls"]]
        return entry


def shape_for(render: Callable[[Entries], str], /) -> Shape:
    """Find out by trial what a template takes; `render` raises CountingError where it refuses.

    Text is tried before parts, mappings before text for arguments, and empty before null content.
    Taken is what it writes the arguments of a call with, and not as Python does.
    """
    shape = Shape()
    for parts in (False, True):
        if _rendered(render, [USER], Shape(parts=parts)):
            shape = Shape(parts=parts)
            break
    turn = [USER, call(CALL_ID), result()]
    for text_arguments, null_content in ((False, False), (False, True), (True, False), (True, True)):
        tried = Shape(shape.parts, text_arguments, null_content)
        written = _rendered(render, turn, tried)
        if _ARGUMENT in written and "{'" not in written:
            return tried
    return shape


def _rendered(render: Callable[[Entries], str], entries: Entries, shape: Shape) -> str:
    try:
        return render(shape.shaped(entries))
    except CountingError:
        return ""


def _with_mapping(one: Entry) -> Entry:
    function = dict(one["function"])
    with suppress(ValueError, RecursionError):  # no JSON: the template gets the text as the model wrote it
        function["arguments"] = json.loads(function["arguments"] or "{}")
    return {**one, "function": function}


def template_tools(tools: Any, /) -> list[Any]:
    """List tools as templates are given them; what is no function stays as it is."""
    listed = tools if isinstance(tools, list | tuple) else [tools] if tools else []
    return [function_tool(tool) or as_dict(tool) or tool for tool in listed]


def texts_in(value: Any, /) -> Iterator[str]:
    """List the texts a message or a schema holds."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from texts_in(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from texts_in(inner)


def call(*ids: str) -> Entry:
    """Make a message with calls."""
    return {
        "role": "assistant",
        "content": "",
        "tool_calls": _calls([("f", f'{{"a": "{_ARGUMENT}"}}')] * len(ids), ids),
    }


def result(id: str = CALL_ID, name: str = "f") -> Entry:
    """Make the result of a call."""
    return {"role": "tool", "content": "x", "tool_call_id": id, "name": name}


SYSTEM: Entry = {"role": "system", "content": "x"}
USER: Entry = {"role": "user", "content": "x"}
ANSWER: Entry = {"role": "assistant", "content": "x"}
_FUNCTION = {"name": "f", "description": "x", "parameters": {"type": "object", "properties": {}}}
TOOLS = [{"type": "function", "function": _FUNCTION}]

_IDS = (CALL_ID, "call00001")
_TURN = [USER, call(CALL_ID), result()]
PROBES: tuple[Entries, ...] = (
    [USER],
    [SYSTEM, USER],
    [USER, ANSWER, USER],
    [SYSTEM, USER, ANSWER, USER, ANSWER, USER],
    _TURN,
    [SYSTEM, *_TURN, call(CALL_ID), result(), ANSWER, USER],
    [SYSTEM, *_TURN, ANSWER, *_TURN, call(CALL_ID), result()],
    [SYSTEM, USER, call(*_IDS), *map(result, _IDS), ANSWER, USER],
)
"""Requests of every shape, with which sums are compared when a counter is made."""
