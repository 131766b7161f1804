"""What can be mended in an Anthropic message that is refused for its shape."""

from __future__ import annotations

import re
from typing import Any

from trimtab.formats.anthropic.faults import MESSAGE_KEYS
from trimtab.formats.anthropic.read import CALLS, THINKING, is_server_result, type_of
from trimtab.formats.values import (
    Dict,
    arguments_of,
    as_list,
    as_typed_part,
    item_of,
    says_elsewhere,
    without_keys,
)

NO_WORDS = "error"
"""What a result says that is marked as an error and says nothing: no more than the mark."""

_NOT_IN_IDS = re.compile(r"[^a-zA-Z0-9_-]")


def mended_of(message: Dict) -> Dict | None:
    """Return the message as the API takes it, as far as nothing has to be made up; see `Format.mend`."""
    if message.get("role") not in ("user", "assistant") or says_elsewhere(message, "content"):
        return message
    made = {key: value for key, value in message.items() if key in MESSAGE_KEYS}
    content = made.get("content")
    is_models = made.get("role") == "assistant"
    if content is None or isinstance(content, str):
        text = content or ""
        if not text.strip():
            return None
        made["content"] = text.rstrip() if is_models else text
    elif (blocks := as_list(content)) is not None:
        kept = [block for block in map(_block, blocks) if block is not None]
        if not kept:
            return None
        if (
            is_models
            and type_of(kept[-1]) in THINKING
            and not (_is_signed(kept[-1]) and isinstance(item_of(blocks[-1], "text"), str))
        ):
            return message  # thinking would come to stand last, and not because the answer is blank
        if is_models and type_of(kept[-1]) == "text":
            kept[-1] = {**kept[-1], "text": str(kept[-1]["text"]).rstrip()}
        made["content"] = kept
    return message if made == message else made


def _is_signed(block: Any) -> bool:
    return bool(item_of(block, "signature"))


def _block(value: Any) -> Any:
    """Mend a block; None if it says nothing."""
    block = as_typed_part(value)
    if block is None:
        return value
    kind = type_of(block)
    if kind == "text" and (block.get("text") is None or not str(block["text"]).strip()):
        return None
    if kind in THINKING:
        return without_keys(block, [key for key in ("cache_control",) if key in block])
    if kind in CALLS:
        return _call(block)
    if kind == "tool_result" and not is_server_result(kind):
        return _result(block)
    return block


def _call(block: Dict) -> Dict:
    return {**block, "input": arguments_of(block.get("input")), **_id(block, "id")}


def _result(block: Dict) -> Dict:
    made = {**block, **_id(block, "tool_use_id")}
    parts = as_list(made.get("content"))
    if parts is not None:
        made["content"] = [part for part in map(_block, parts) if part is not None]
    if made.get("is_error") is True and not made.get("content"):
        made["content"] = NO_WORDS
    return made


def _id(block: Dict, key: str) -> Dict:
    """Write an id of another provider's call as this one takes them; of a call and its result alike."""
    call_id = block.get(key)
    return {key: _NOT_IN_IDS.sub("_", call_id)} if isinstance(call_id, str) and call_id else {}
