"""What can be mended in a Converse message that is refused for its shape."""

from __future__ import annotations

import re
from typing import Any

from trimtab.formats.anthropic.mend import NO_WORDS
from trimtab.formats.bedrock.edit import with_tidy_points
from trimtab.formats.bedrock.read import CALL, RESULT, key_of
from trimtab.formats.values import Dict, arguments_of, as_dict, as_list, says_elsewhere

_NOT_IN_IDS = re.compile(r"[^a-zA-Z0-9_.:-]")


def mended_of(message: Dict) -> Dict | None:
    """Return the message as the API takes it, as far as nothing has to be made up; see `Format.mend`."""
    if message.get("role") not in ("user", "assistant") or says_elsewhere(message, "content"):
        return message
    made = {key: value for key, value in message.items() if key in ("role", "content")}
    content = made.get("content")
    blocks = as_list(content)
    if content is None or isinstance(content, str):
        blocks = [{"text": content or ""}]
    if blocks is None:
        return message if made == message else made
    kept = [block for block in map(_block, blocks) if block is not None]
    keys = [*map(key_of, kept)]
    if "document" in keys and "text" not in keys:
        return message  # a document needs words beside it: none can be made up
    if made.get("role") == "assistant" and kept and key_of(kept[-1]) == "text":
        kept[-1] = {**kept[-1], "text": str(kept[-1]["text"]).rstrip()}
    made["content"] = with_tidy_points(kept)
    if not made["content"]:
        return None
    return message if made == message else made


def _block(value: Any) -> Any:
    """Mend a block; None if it says nothing."""
    block: Any = {"text": value} if isinstance(value, str) else as_dict(value)
    if block is None:
        return value
    key = key_of(block)
    if key == "text" and isinstance(block["text"], str):
        return block if block["text"].strip() else None
    held = as_dict(block.get(key)) if key in (CALL, RESULT) else None
    if held is None:
        return block
    call_id = held.get("toolUseId")
    if isinstance(call_id, str):
        held = {**held, "toolUseId": _NOT_IN_IDS.sub("_", call_id)}
    if key == CALL:
        return {**block, key: {**held, "input": arguments_of(held.get("input"))}}
    return {**block, key: _result(held)}


def _result(held: Dict) -> Dict:
    content = held.get("content")
    blocks = [{"text": content}] if isinstance(content, str) else as_list(content)
    if content is not None and blocks is None:
        return held
    kept = [block for block in map(_block, blocks or ()) if block is not None]
    if not kept and held.get("status") == "error":
        kept = [{"text": NO_WORDS}]
    return {**held, "content": kept}
