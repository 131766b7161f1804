"""What a request has that may be charged in a way of its own, each as a phrase.

A count is exact only where each of its features stood in a bill of the model's family that came out exact
(SPEC B0b). Which these are is data, `trimtab.models.features`; nothing here knows a model or decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from trimtab.counting.schemas import SETTINGS, system_texts
from trimtab.counting.sizes import Fixed
from trimtab.formats import Format, Pieces, Request
from trimtab.formats.tools import function_in, tools_in
from trimtab.formats.values import as_dict, as_list, mapping_of
from trimtab.models import is_hosted

UNDATED = "name without a date"

_DATE = re.compile(r"[-@]\d{4}(-?\d{2}-?\d{2})?(?![\d.])")
"""A name with one leads to the same model tomorrow; a year and month, or all of a date."""

_SCHEMAS_BY_NAME = ("properties", "$defs", "definitions", "patternProperties")
"""Keys of a schema under which each key is a name, and each value a schema."""

_MAX_DEPTH = 20

_EMPTY: tuple[object, ...] = (None, "", [], {}, ())
"""Settings that are as good as not given."""


def features_of(
    messages: Sequence[Any], form: Format, fixed: Fixed, *, model: str, request: Request | None = None
) -> frozenset[str]:
    """List the features of a request.

    Args:
        messages: Its messages, system text among them where the wire form keeps it there.
        form: Their wire form.
        fixed: What stands beside them.
        model: The name the model was asked for by.
        request: The body, if it is one; its settings are features, too.
    """
    found = set(_of_name(model))
    found |= _of_messages(messages, form)
    if fixed.system:
        found.add("system beside")
        found.add("system beside in parts" if as_list(fixed.system) else "system beside")
    shown = [tool for _, tool in tools_in(fixed.tools)]
    found |= {feature for tool in shown for feature in _of_tool(tool)}
    if len(shown) > 1:
        found.add("several tools")
    if shown or (fixed.extra or {}).get("response_format"):
        found.update(_where_system_ends(messages, form, fixed))
    beside = {form.rules.body_key, form.rules.system_key, "model", "modelId", "tools"}
    settings = {**({} if request is None else request.body or {}), **(fixed.extra or {})}
    for key, value in settings.items():
        if key not in beside and value not in _EMPTY:
            found.update(_of_setting(str(key), value))
    return frozenset(found)


def _of_name(model: str) -> Iterator[str]:
    yield "dated name" if _DATE.search(model) else UNDATED
    if is_hosted(model):
        yield f"host {re.split('[/:]', model)[0]}"
    if model.startswith("ft:"):
        yield "fine-tuned"


def _of_messages(messages: Sequence[Any], form: Format) -> set[str]:
    """List features of messages; those of a role and a text alone, which are most, are told by the role."""
    found: set[str] = set()
    roles: set[tuple[str, str]] = set()
    before = "nothing"
    for message in messages:
        if (
            message.__class__ is dict
            and len(message) == 2
            and (text := message.get("content")).__class__ is str
            and (role := message.get("role")).__class__ is str
        ):
            kind = role
            if not text:
                found.add("empty text")
        else:
            entry = mapping_of(message)
            kind = form.kind(entry)
            found.update(f"{kind}: {feature}" for feature in _of_pieces(form.pieces(entry)))
        roles.add((before, kind))
        before = kind
    # in which order is seldom charged: what it begins and ends with, and who speaks twice or late
    found |= {kind for _, kind in roles}
    found |= {
        f"{kind} after {last}" for last, kind in roles if last == kind or kind in ("system", "developer")
    }
    found.add(f"ends with {before}")
    return found


def _where_system_ends(messages: Sequence[Any], form: Format, fixed: Fixed) -> Iterator[str]:
    """Yield how the system text ends that tools or a schema stand behind.

    OpenAI makes one text of them, and a mark takes the end of the line into its token.
    """
    told = system_texts(fixed.system)
    if not told and messages and form.kind(entry := mapping_of(messages[0])) == "system":
        told = [*form.pieces(entry).texts]
    if told:
        yield f"tools or schema behind {'a word' if told[-1][-1:].isalnum() else 'a mark'} of system text"


def _of_pieces(pieces: Pieces) -> Iterator[str]:
    counts: dict[str, Callable[[], object]] = {
        "several texts": lambda: len(pieces.texts) > 1,
        "no text": lambda: not any(pieces.texts),
        "call": lambda: pieces.calls,
        "several calls": lambda: len(pieces.calls) > 1,
        "text beside a call": lambda: pieces.calls and any(pieces.texts),
        "result": lambda: pieces.result_id is not None or pieces.results,
        "several results": lambda: pieces.results > 1,
        "thoughts": lambda: pieces.thoughts,
        "sealed thoughts": lambda: pieces.sealed_chars,
        "tools": lambda: pieces.tools,
        "stored elsewhere": lambda: pieces.is_elsewhere,
        "parts without a rule": lambda: pieces.other,
        "text as a part": lambda: pieces.parts and len(pieces.texts) == 1 and not pieces.result_id,
    }
    yield from (name for name, holds in counts.items() if holds())
    if pieces.name:
        yield "name that is its role" if pieces.name == pieces.role else "name"
    for medium in pieces.media:
        yield f"{medium.kind}, detail {medium.detail or 'not given'}"


def _of_tool(tool: object) -> Iterator[str]:
    entry = as_dict(tool) or {}
    yield "tool"
    yield from (f"tool, its {key}" for key in _keys_of(entry, as_dict(entry.get("function")) or {}))
    function = function_in(entry)
    if function is None:
        yield "tool that is no function"
        return
    yield from (f"tool, {feature}" for feature in _of_schema(function.schema, 0))


def _keys_of(*entries: Mapping[str, Any]) -> set[str]:
    """List the keys whose values say nothing of their own, or what they say: all but names and schemas."""
    return {
        str(key)
        for entry in entries
        for key, value in entry.items()
        if value not in (None, "") or key == "type"
    }


def _of_schema(schema: object, depth: int) -> Iterator[str]:
    """Yield the keywords of a schema and those inside it, with how deep they stand."""
    where = ("schema", "property")[min(depth, 1)] if depth < 2 else "inner"
    if depth > _MAX_DEPTH or not isinstance(schema, Mapping):
        return
    for key, value in schema.items():
        if key in _SCHEMAS_BY_NAME:
            yield f"{where} {key}"
            for one in (as_dict(value) or {}).values():
                yield from _of_schema(one, depth + 1)
            continue
        said = f" {value}" if key == "type" and isinstance(value, str) else ""
        yield f"{where} {key}{said}"
        for one in as_list(value) or (value,):
            if isinstance(one, Mapping):
                yield from _of_schema(one, max(2, depth + 1))


def _of_setting(key: str, value: object) -> Iterator[str]:
    """Yield a setting; of one that adds a prompt, or says how an answer is shaped, also what it says."""
    held = as_dict(value)
    if held is None:
        yield f"{key} {value}" if key in SETTINGS else key
        return
    yield f"{key} {held.get('type', 'of no type')}"
    for name, inner in held.items():
        yield f"{key}.{name}"
        schema = as_dict((as_dict(inner) or {}).get("schema")) or (
            as_dict(inner) if name == "schema" else None
        )
        if schema is not None:
            yield from (f"{key}, {feature}" for feature in _of_schema(schema, 0))
