"""What redaction leaves of an Anthropic message, and which thinking a changed request may still hold."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from trimtab.formats.anthropic.read import (
    SERVER_CALLS,
    THINKING,
    blocks_of,
    is_directive,
    is_server_result,
    kind_of,
    type_of,
)
from trimtab.formats.structure import Thinking
from trimtab.formats.values import (
    REDACTED,
    REDACTED_NAME,
    Dict,
    as_list,
    item_of,
    texts_of_ids,
    with_values,
    without_indices,
)

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
        blocks = as_list(message["content"]) or ()
        stay = [one for one in blocks if type_of(one) not in THINKING]
        made["content"] = [_block(block) for block in stay] or REDACTED
    return made


def _block(block: Any) -> Dict:
    """Blank a block; text stands in the place of all that need not stay what it is."""
    kind = type_of(block)
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


_CHECKS_PREFIX = re.compile(r"claude-(?:(?:fable|mythos)-5-[12]|(?:opus|sonnet|haiku)-5-5)(?!\d)")
"""Models that refuse a thinking block once anything before it has changed.

From the list on platform.claude.com, "Fix a thinking block bound to a different conversation" (2026-10). They
do so for accounts made since 2026-08-31, and for others where the request asks for it. Errs: a model that is
not listed keeps its thinking, and an older account loses thinking the API would have taken.
"""


TAKES_NO_BUDGET = re.compile(r"claude-(?:opus-4[-.][78]|(?:opus|sonnet|haiku|fable|mythos)-5)(?!\d)")
"""Models that think as much as they choose and refuse "enabled".

Measured by lidge-jun/opencodex#65 (2026-07) and handochan/aelix-ai#258 (2026-09); those that check the prefix
are among them.
"""


def with_allowed_thinking(thinking: Any, messages: list[Any]) -> list[Any]:
    """Return messages without the thinking that the settings of a request forbid.

    "When thinking is disabled, an `assistant` message in the final position cannot contain `thinking`": the
    last turn of the model loses it, and a message of nothing else leaves.
    """
    if item_of(thinking, "type") != "disabled":
        return messages
    start = _last_turn(messages)
    stripped = [without_thinking(message) for message in messages[start:]]
    return [*messages[:start], *(message for message in stripped if message is not None)]


def without_thinking(message: Any) -> Any | None:
    """Return a message without its thinking; None if nothing remains."""
    blocks = blocks_of(message)
    gone = frozenset(at for at, block in enumerate(blocks) if type_of(block) in THINKING)
    if not gone:
        return message
    return (
        with_values(message, {("content",): without_indices(blocks, gone)})
        if len(gone) < len(blocks)
        else None
    )


def thinking_of(model: str | None, settings: Any) -> Thinking:
    """Say what a model asks of thinking.

    Thinking with a budget alone has to open a turn: what newer models choose to think may begin anywhere.

    Args:
        model: Its name, if it is known.
        settings: What a request says of thinking; None where that is not known.
    """
    chooses = TAKES_NO_BUDGET.search(model or "")
    if settings is not None and item_of(settings, "type") == "enabled" and not chooses:
        return Thinking("surely")  # a model that takes a budget binds nothing
    bound = checks_prefix({"model": model}, settings)
    return Thinking("maybe" if settings is None and not chooses else "", bound)


def checks_prefix(body: Mapping[str, Any], thinking: Any) -> bool:
    """Tell whether the model of a body refuses thinking once anything before it has changed."""
    behavior = item_of(item_of(thinking, "block_binding"), "prefix_mismatch_behavior")
    if behavior is not None:
        return bool(behavior != "drop_block")  # else the API drops them itself
    model = body.get("model")
    return isinstance(model, str) and _CHECKS_PREFIX.search(model) is not None


def _last_turn(messages: Sequence[Any]) -> int:
    """Return where the last turn begins, behind what the user wrote last."""
    for at in range(len(messages) - 1, -1, -1):
        if kind_of(messages[at]) == "user":
            return at + 1
    return 0
