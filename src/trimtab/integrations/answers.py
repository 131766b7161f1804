"""The output schema, written as a part of a body: adapters put it among the tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trimtab.formats.base import output_schema

FORCED = {"tool_choice": {"type": "any"}}
"""The entry among tools which says that the model must call one of them."""


def answer_part(asked: Mapping[str, Any], /, *, name: str = "answer") -> dict[str, Any] | None:
    """Write an output schema as in a body, to put it among tools; None if there is none.

    Args:
        asked: What says the form of an answer, as Chat Completions, Responses or Anthropic are told it; or a
            bare JSON schema.
        name: Its name where none is said.
    """
    held = asked
    for key in ("format", "json_schema"):
        held = _mapping_in(held, key) or held
    schema = _mapping_in(held, "schema") or _mapping_in(held, "response_schema")
    if schema is None and held.get("type") not in ("json_object", "json_schema", "text"):
        held, schema = {}, held
    if not schema:
        return None
    named = {"name": held.get("name") or name, "description": held.get("description")}
    return output_schema({**{key: text for key, text in named.items() if text}, "schema": schema})


def _mapping_in(held: Mapping[str, Any], key: str) -> Mapping[str, Any] | None:
    """Return the value of a key; None if it is missing, or a JSON Schema word (a text under `format`)."""
    found = held.get(key)
    return found if isinstance(found, Mapping) else None


def answer_ways(part: dict[str, Any] | None, /) -> list[list[Any]]:
    """List the two ways of which LiteLLM uses one to request an answer: by its schema, or by a forced call.

    Args:
        part: The schema as `answer_part` writes it; None: none is asked for.
    """
    if part is None:
        return [[]]
    asked = part["response_format"]["json_schema"]
    function = {"name": "json_tool_call", "parameters": asked["schema"]}
    return [[part], [FORCED, {"type": "function", "function": function}]]
