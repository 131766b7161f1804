"""The walk over Anthropic's messages that counts while it reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from trimtab.formats.anthropic.read import (
    SERVER_CALLS,
    THINKING,
    blocks_of,
    call_id_of,
    is_server_result,
    opens_turn,
    result_id_of,
    type_of,
)
from trimtab.formats.base import Prices, Structure, complete_ids
from trimtab.formats.values import Dict, compact_json

__all__ = ["Walk"]

_PLAIN_KEYS = frozenset({"role", "content"})
# A message as the API answered it: what it says about itself is not charged.
_ANSWER_KEYS = _PLAIN_KEYS | {"id", "model", "type", "usage", "stop_reason", "stop_sequence", "container"}
_TEXT_KEYS = frozenset({"type", "text", "cache_control", "citations"})
_CALL_KEYS = frozenset({"type", "id", "name", "input", "cache_control", "caller"})
_RESULT_KEYS = frozenset({"type", "tool_use_id", "content", "is_error", "cache_control"})
_THINKING_KEYS = frozenset({"type", "thinking", "signature"})


class _Read(NamedTuple):
    """What one message says of others."""

    calls: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    opens: bool = False
    """It begins with thinking."""
    thinks: bool = False
    """It ends with thinking."""


_NOTHING = _Read()


class Walk:
    """One way back over messages; what has to be known further on is in the structure."""

    __slots__ = ("_is_foreign", "_messages", "_prices", "_structure")

    def __init__(
        self,
        messages: list[Any],
        structure: Structure,
        prices: Prices,
        is_foreign: Callable[[Dict], bool],
    ) -> None:
        self._messages = messages
        self._structure = structure
        self._prices = prices
        self._is_foreign = is_foreign

    # A plain message is a role and a text, or blocks that are plain as well: a few lookups, which fail, with
    # KeyError or TypeError, for the other shapes.
    def back(self, span: range, room_tokens: int, sizes: list[int | None]) -> int:  # noqa: C901
        """Fill `sizes` over a descending span until the room is passed; see `Format.count_back`."""
        messages, structure, prices = self._messages, self._structure, self._prices
        bases, counts, behind = prices.bases, prices.counts, structure.behind
        index = span.start + 1
        for index in span:
            message = messages[index]
            if message.__class__ is not dict:
                message = structure.read_as_dict(messages, index)
            try:
                role, content = message["role"], message["content"]
                base = bases[role]
                if len(message) != 2 and not message.keys() <= _ANSWER_KEYS:
                    raise KeyError
                if content.__class__ is str:
                    read, tokens = _NOTHING, counts[content]
                else:
                    read, tokens = self._plain_blocks(role, content)
                # what is taken off may be more than all of a short message
                size = base + tokens if tokens > 0 else prices.in_full(message)
                if role == "user":
                    if read.results:
                        behind += read.results
                    else:
                        structure.opened = True
                        if behind:
                            structure.close((), index)
                elif role == "assistant":
                    self._note_answer(index, read)
                elif role == "system":
                    self._note_system(index)
                else:
                    raise KeyError
            except (KeyError, TypeError):
                size = self._any_message(index)
            sizes[index] = size
            room_tokens -= size
            if room_tokens < 0:
                break
        if behind and not index:
            structure.odd.add(0)
        return index

    # One branch a type of block, in one loop: a call a block would cost a third of it.
    def _plain_blocks(self, role: str, blocks: Any) -> tuple[_Read, int]:  # noqa: C901
        """Read and count blocks that are plain.

        Raises:
            KeyError: They are not, or are not the role's.
            TypeError: The same.
        """
        if blocks.__class__ is not list:
            raise KeyError
        prices = self._prices
        counts = prices.counts
        tokens = 0
        calls: list[str] = []
        results: list[str] = []
        kind = None
        for block in blocks:
            kind = block["type"]
            if kind == "text":
                tokens += counts[block["text"]]
                width, known = 2, _TEXT_KEYS
            elif kind == "tool_use":
                name, given = block["name"], block["input"]
                if name.__class__ is not str:
                    raise KeyError
                if given.__class__ is not str:
                    if given.__class__ is not dict:
                        raise KeyError
                    given = compact_json(given)
                tokens += prices.per_call_tokens + counts[given] + prices.name_factor * counts[name]
                calls.append(block["id"])
                width, known = 4, _CALL_KEYS
            elif kind == "tool_result":
                tokens += prices.per_result_tokens + _result_tokens(block["content"], counts)
                results.append(block["tool_use_id"])
                width, known = 3, _RESULT_KEYS
            elif kind == "thinking" and _is_said(block["thinking"]) and prices.thoughts_counted is not None:
                if prices.thoughts_counted:
                    tokens += counts[block["thinking"]]
                width, known = 2, _THINKING_KEYS
            else:
                raise KeyError
            if len(block) != width and not block.keys() <= known:
                raise KeyError
        if results:
            if role != "user" or len(results) != len(blocks) or not all(map(_is_said, results)):
                raise KeyError
            return _Read(results=tuple(results)), tokens
        if role != "assistant":
            if calls or kind == "thinking":
                raise KeyError
            return _NOTHING, tokens
        if not all(map(_is_said, calls)):
            raise KeyError
        if len(calls) > 1:
            tokens += prices.parallel_tokens
        opens = bool(blocks) and blocks[0]["type"] == "thinking"
        return _Read(calls=tuple(calls), opens=opens, thinks=kind == "thinking"), tokens

    def _any_message(self, index: int) -> int:
        """Read and count a message of any shape."""
        messages, structure = self._messages, self._structure
        message = structure.read_as_dict(messages, index)
        structure.foreign |= self._is_foreign(message)
        size = self._prices.in_full(message)
        role, blocks = message.get("role"), blocks_of(message)
        kinds = [type_of(block) for block in blocks]
        if "compaction" in kinds:
            structure.odd.add(index)
        if role == "assistant":
            calls = [call_id_of(block) for block in blocks if type_of(block) == "tool_use"]
            if None in calls or any(kind in SERVER_CALLS or is_server_result(kind) for kind in kinds):
                structure.odd.add(index)
            thoughts = [kind in THINKING for kind in kinds] or [False]
            self._note_answer(index, _Read(tuple(complete_ids(calls)), (), thoughts[0], thoughts[-1]))
        elif role == "system":
            self._note_system(index)
        elif role == "user" and "tool_result" in kinds:
            results = [result_id_of(block) for block in blocks if type_of(block) == "tool_result"]
            if len(results) != len(blocks) or "" in results:
                structure.odd.add(index)
            structure.behind += results
            structure.opened |= opens_turn(messages, index)
        else:
            structure.opened |= role == "user"
            structure.close((), index)
        return size

    def _note_answer(self, index: int, read: _Read) -> None:
        """Note what a message of the model is bound to, and match its calls."""
        structure, calls = self._structure, read.calls
        if calls or structure.behind:
            structure.close(calls, index)
        if calls or read.thinks:
            self._bind_row(index)
        if structure.opened:
            return
        if not read.opens:
            structure.waits = max(structure.waits, index)
        elif structure.waits >= 0:
            structure.bound.update(range(index, structure.waits))
            structure.waits = -1

    def _bind_row(self, index: int) -> None:
        """Bind the model's messages in a row from one on, up to where that was done before."""
        structure = self._structure
        at = index
        while at != structure.tied and self._next_role(at) == "assistant":
            structure.bound.add(at)
            at += 1
        structure.tied = index

    def _note_system(self, index: int) -> None:
        structure = self._structure
        if structure.behind:
            structure.close((), index)
        if self._next_role(index) in ("assistant", "system"):
            structure.bound.add(index)

    def _next_role(self, index: int) -> Any:
        if index + 1 == len(self._messages):
            return None
        return self._structure.read_as_dict(self._messages, index + 1).get("role")


def _is_said(value: Any) -> bool:
    return value.__class__ is str and value != ""


def _result_tokens(content: Any, counts: dict[Any, int]) -> int:
    """Count what a result holds: a text, or plain blocks of text.

    Raises:
        KeyError: It holds something else.
        TypeError: The same.
    """
    if content.__class__ is str:
        return counts[content]
    if content.__class__ is not list:
        raise KeyError
    tokens = 0
    for block in content:
        if block["type"] != "text" or not block.keys() <= _TEXT_KEYS:
            raise KeyError
        tokens += counts[block["text"]]
    return tokens
