"""Writing for Bedrock's Converse API: marks for the cache, bodies, and what redaction leaves of a message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trimtab.formats.anthropic.read import unsure_in
from trimtab.formats.base import Request, output_schema
from trimtab.formats.bedrock.read import (
    CACHE_POINT,
    CALL,
    RESULT,
    THOUGHT,
    blocks_of,
    is_blank,
    is_cache_point,
    key_of,
    kind_of,
)
from trimtab.formats.values import (
    REDACTED,
    REDACTED_NAME,
    Dict,
    as_dict,
    as_list,
    as_text,
    item_of,
    mapping_of,
    texts_of_ids,
    with_values,
    without_indices,
)


def cache_point(value: object) -> Dict:
    """Write a mark as a block; it may be Anthropic's mark or what is in a block of Bedrock's."""
    ttl = as_text(item_of(value, "ttl"))
    return {CACHE_POINT: {"type": "default", **({"ttl": ttl} if ttl else {})}}


def may_be_marked(block: object) -> bool:
    """Tell whether a cache point may stand behind a block.

    "Cache point cannot be inserted after reasoning block" (anomalyco/opencode#36517), nor behind a document
    that is no PDF: the service makes of it what the model refuses (strands-agents/harness-sdk#1966).
    """
    key = key_of(block)
    if key == "document":
        return item_of(item_of(block, key), "format") in (None, "pdf")
    if key == "text":
        return bool(str(item_of(block, key)).strip())
    return key not in ("", THOUGHT, CACHE_POINT)


def with_tidy_points(blocks: Sequence[object]) -> list[object]:
    """Return blocks without the cache points that have nothing in front of them to mark."""
    kept: list[object] = []
    for block in blocks:
        if not is_cache_point(block) or (kept and may_be_marked(kept[-1])):
            kept.append(block)
    return kept


def with_point(blocks: Sequence[object], value: object) -> list[object] | None:
    """Return blocks with a cache point behind the last that may have one; None if none may."""
    for at in range(len(blocks) - 1, -1, -1):
        if may_be_marked(blocks[at]):
            return [*blocks[: at + 1], cache_point(value), *blocks[at + 1 :]]
    return None


def blocks_of_system(system: object) -> list[object]:
    """List system text as blocks; a text becomes one."""
    if isinstance(system, str):
        return [{"text": system}] if system else []
    listed = as_list(system)
    if listed is not None:
        return [block for one in listed for block in blocks_of_system(one)]
    entry = as_dict(system)
    if entry is not None and "role" in entry:
        return blocks_of_system(entry.get("content"))
    return [] if system is None else [system]


def read_body(body: Mapping[str, object], request: Request) -> Request:
    """Complete a request that was taken apart with what Converse has under other keys."""
    held = item_of(body.get("toolConfig"), "tools")
    return Request(
        messages=request.messages,
        system=request.system,
        tools=held,
        body=body,
        extra={**_output_schema(body), **settings_of(body)},
        unseen=("the managed prompt (promptVariables)",) if body.get("promptVariables") else (),
        unsure=_unsure(as_dict(body.get("additionalModelRequestFields")) or {}),
    )


def _unsure(fields: Mapping[str, object]) -> tuple[str, ...]:
    """Name what the model's own fields add: as for Claude, and reasoning of Nova 2.

    That was billed 88 tokens more, once (2026-11).
    """
    reasons = item_of(fields.get("reasoningConfig"), "type") == "enabled"
    return (*unsure_in(fields), *(("what reasoning adds (reasoningConfig)",) if reasons else ()))


def write_body(request: Request, messages: list[object]) -> object:
    """Put messages, and system text and tools that changed, into a copy of the body."""
    body = request.body
    if body is None:
        return messages
    thinking = item_of(body.get("additionalModelRequestFields"), "thinking")
    written: Dict = {**body, "messages": with_allowed_thoughts(thinking, messages)}
    if request.system is not None and request.system is not body.get("system"):
        written["system"] = blocks_of_system(request.system)
    config = as_dict(body.get("toolConfig")) or {}
    if request.tools and request.tools is not config.get("tools"):
        given = as_dict(request.tools)
        whole = given is not None and "tools" in given
        written["toolConfig"] = given if whole else {**config, "tools": request.tools}
    return written


def settings_of(body: Mapping[str, object]) -> Dict:
    """Return what sets how much of a prompt the provider adds, as Anthropic writes it."""
    thinking = item_of(body.get("additionalModelRequestFields"), "thinking")
    choice = as_dict(item_of(body.get("toolConfig"), "toolChoice")) or {}
    kind = next((key for key in ("auto", "any", "tool") if choice.get(key) is not None), None)
    return {
        **({"thinking": thinking} if thinking else {}),
        **({"tool_choice": {"type": kind}} if kind else {}),
    }


def _output_schema(body: Mapping[str, object]) -> dict[str, object]:
    held = item_of(item_of(body.get("outputConfig"), "textFormat"), "structure")
    form = as_dict(item_of(held, "jsonSchema")) or {}
    written = form.get("schema")
    import json  # not above: few requests have a schema

    try:
        schema = json.loads(written) if isinstance(written, str) else written
    except ValueError:
        schema = {"text": written}
    if not isinstance(schema, Mapping):
        return {}
    return output_schema({**texts_of_ids(form, "name", "description"), "schema": schema})


def with_allowed_thoughts(thinking: object, messages: list[object]) -> list[object]:
    """Return messages without the reasoning of the last turn, where the settings of a request turn it off."""
    if item_of(thinking, "type") != "disabled":
        return messages
    start = next((at + 1 for at in range(len(messages) - 1, -1, -1) if kind_of(messages[at]) == "user"), 0)
    stripped = [without_thoughts(message) for message in messages[start:]]
    return [*messages[:start], *(message for message in stripped if message is not None)]


def without_thoughts(message: object) -> object | None:
    """Return a message without its reasoning, and the cache points behind that; None if nothing remains.

    Blank text is nothing: the API takes it beside other blocks, and refuses it alone.
    """
    blocks = blocks_of(message)
    gone = frozenset(at for at, block in enumerate(blocks) if key_of(block) == THOUGHT)
    if not gone:
        return message
    left = with_tidy_points(without_indices(blocks, gone))
    return None if all(map(is_blank, left)) else with_values(message, {("content",): left})


def redacted_of(message: Dict) -> Dict:
    """Return a message that says nothing any more.

    What stays is its role, and of calls and results which they are. Reasoning is signed, so that it leaves.
    """
    made: Dict = texts_of_ids(message, "role")
    if "content" in message:
        blocks = blocks_of(message)
        left = [_blank(block) for block in blocks if key_of(block) != THOUGHT]
        made["content"] = with_tidy_points(left) or [{"text": REDACTED}]
    return made


def _blank(block: object) -> Dict:
    key = key_of(block)
    held = as_dict(item_of(block, key)) if key else None
    if key == CACHE_POINT:
        return {key: dict(mapping_of(held or {"type": "default"}))}
    if key == CALL and held is not None:
        return {key: {**texts_of_ids(held, "toolUseId", "type"), "name": REDACTED_NAME, "input": {}}}
    if key == RESULT and held is not None:
        kept = texts_of_ids(held, "toolUseId", "status", "type")
        return {key: {**kept, "content": [{"text": REDACTED}]}}
    return {"text": REDACTED}
