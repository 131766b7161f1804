"""What redaction leaves of a message of Anthropic's Messages API."""

from __future__ import annotations

from typing import Any

from trimtab.formats.anthropic.read import SERVER_CALLS, THINKING, is_directive, is_server_result
from trimtab.formats.base import Dict
from trimtab.formats.redaction import REDACTED, REDACTED_NAME, texts_of_ids
from trimtab.formats.values import as_list

_TEXT = {"type": "text", "text": REDACTED}
_CALLER_KEYS = ("type", "tool_id")


def redacted_of(message: Dict) -> Dict:
    """Return a message that says nothing any more.

    What stays is its role, and of calls and results which they are. Thinking is signed, so that it leaves:
    in a turn that goes on with thinking enabled the API then asks for it.
    """
    made: Dict = texts_of_ids(message, "role")
    if is_directive(message):
        return message  # how the model goes on, and nothing that was said
    if "content" in message:
        made["content"] = _content(message)
    return made


def _content(message: Dict) -> Any:
    blocks = as_list(message["content"])
    left = [_block(block) for block in blocks or () if not _leaves(block)]
    return left or REDACTED


def _leaves(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") in THINKING


def _block(block: Any) -> Dict:
    """Blank a block; text stands in the place of all that need not stay what it is."""
    kind = block.get("type") if isinstance(block, dict) else None
    if kind == "tool_use":
        return {**_ids(block), "name": REDACTED_NAME, "input": {}}
    if kind == "mcp_tool_use":
        return {**_ids(block), "name": REDACTED_NAME, "server_name": REDACTED_NAME, "input": {}}
    if kind in SERVER_CALLS:  # whose name is one of the API's
        return {**_ids(block), **texts_of_ids(block, "name"), "input": {}}
    if kind in ("tool_result", "mcp_tool_result"):
        return {**_ids(block), "content": REDACTED}
    if is_server_result(kind):
        # Half of the call may be in another message, so that it has to stay a result: one that failed.
        return {**_ids(block), "content": {"type": f"{kind}_error", "error_code": "unavailable"}}
    if kind == "compaction" and block.get("content"):
        return {"type": kind, "content": REDACTED}
    return dict(_TEXT)


def _ids(block: Dict) -> Dict:
    made = texts_of_ids(block, "type", "id", "tool_use_id")
    caller: Any = block.get("caller")
    if isinstance(caller, dict):
        made["caller"] = texts_of_ids(caller, *_CALLER_KEYS)
    return made
