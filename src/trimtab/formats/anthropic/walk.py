"""The walk over Anthropic's messages that counts while it reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from trimtab.formats.anthropic.read import (
    SERVER_CALLS,
    THINKING,
    blocks_of,
    call_id_of,
    is_server_result,
    kind_of,
    result_id_of,
    type_of,
)
from trimtab.formats.base import Prices
from trimtab.formats.structure import Kind, Structure, complete_ids
from trimtab.formats.values import Dict

__all__ = ["NOTHING", "Read", "Walk", "said_text"]

_TEXT_KEYS = frozenset({"type", "text", "cache_control", "citations"})
_CALL_KEYS = frozenset({"type", "id", "name", "input", "cache_control", "caller"})
_RESULT_KEYS = frozenset({"type", "tool_use_id", "content", "is_error", "cache_control"})
_THINKING_KEYS = frozenset({"type", "thinking", "signature"})


Read: TypeAlias = tuple[list[str], list[str], bool]
"""What one message says of others: calls, results, and whether it ends with thinking."""

NOTHING: Read = [], [], False
"""A message that calls, answers and thinks nothing."""


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
        bases, counts, behind, kinds = prices.bases, prices.counts, structure.behind, structure.kinds_back
        index = span.start + 1
        for index in span:
            message = messages[index]
            if message.__class__ is not dict:
                message = structure.read_as_dict(messages, index)
            try:
                role, content = message["role"], message["content"]
                base = bases[role]
                if len(message) != 2:
                    raise KeyError
                if content.__class__ is str:
                    read, tokens = NOTHING, counts[content]
                else:
                    read, tokens = self._plain_blocks(role, content)
                # what is taken off may be more than all of a short message
                size = base + tokens if base + tokens > 0 else 0
                if role == "user":
                    if read[1]:
                        behind += read[1]
                        role = "tool"
                    elif behind:
                        structure.close((), index)
                elif role == "assistant":
                    self._note_answer(index, read)
                elif role == "system":
                    self._note_system(index)
                else:
                    raise KeyError
            except (KeyError, TypeError):
                size, role = self._any_message(index), self._kind(messages[index])
            kinds.append(role)
            sizes[index] = size
            room_tokens -= size
            if room_tokens < 0:
                break
        if behind and not index:
            structure.odd.add(0)
        return index

    # One branch a type of block, in one loop: a call a block would cost a third of it.
    def _plain_blocks(self, role: str, blocks: Any) -> tuple[Read, int]:  # noqa: C901
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
                    given = prices.write_json(given)
                tokens += prices.per_call_tokens + counts[given] + prices.name_factor * counts[name]
                calls.append(said_text(block["id"]))
                width, known = 4, _CALL_KEYS
            elif kind == "tool_result":
                said = block["content"]
                tokens += prices.per_result_tokens
                tokens += counts[said] if said.__class__ is str else _result_tokens(said, counts)
                results.append(said_text(block["tool_use_id"]))
                width, known = 3, _RESULT_KEYS
            elif kind == "thinking" and prices.thoughts_counted is not None:
                thought = said_text(block["thinking"])
                tokens += counts[thought] if prices.thoughts_counted else 0
                width, known = 2, _THINKING_KEYS
            else:
                raise KeyError
            if len(block) != width and not block.keys() <= known:
                raise KeyError
        if results:
            if role != "user" or len(results) != len(blocks):
                raise KeyError
            return (calls, results, False), tokens
        if role != "assistant":
            if calls or kind == "thinking":
                raise KeyError
            return NOTHING, tokens
        if len(calls) > 1:
            tokens += prices.parallel_tokens + prices.further_call_tokens * (len(calls) - 1)
        return (calls, results, kind == "thinking"), tokens

    def _any_message(self, index: int) -> int:
        """Read and count a message of any shape."""
        messages, structure = self._messages, self._structure
        message = structure.read_as_dict(messages, index)
        structure.foreign |= self._is_foreign(message)
        size = self._prices.in_full(message)
        role, blocks = message.get("role"), self._blocks(message)
        kinds = [type_of(block) for block in blocks]
        if "compaction" in kinds:
            structure.odd.add(index)
        if role == "assistant":
            calls = [call_id_of(block) for block in blocks if type_of(block) == "tool_use"]
            if None in calls or any(kind in SERVER_CALLS or is_server_result(kind) for kind in kinds):
                structure.odd.add(index)
            self._note_answer(index, ([*complete_ids(calls)], [], bool(kinds) and kinds[-1] in THINKING))
        elif role == "system":
            self._note_system(index)
        elif role == "user" and "tool_result" in kinds:
            results = [result_id_of(block) for block in blocks if type_of(block) == "tool_result"]
            if len(results) != len(blocks) or "" in results:
                structure.odd.add(index)
            structure.behind += results
        else:
            structure.close((), index)
        return size

    def _blocks(self, message: Dict) -> Sequence[Any]:
        """List the blocks of a message, each with its type."""
        return blocks_of(message)

    def _kind(self, message: Dict) -> Kind:
        return kind_of(message)

    def _note_answer(self, index: int, read: Read) -> None:
        """Note what a message of the model is bound to, and match its calls."""
        structure, behind = self._structure, self._structure.behind
        calls, _, thinks = read
        if len(behind) == 1 and calls == behind:
            behind.clear()
        elif calls or behind:
            structure.close(calls, index)
        if calls:
            structure.callers.add(index)
        if calls or thinks:
            self._bind_row(index)

    def _bind_row(self, index: int) -> None:
        """Bind the model's messages in a row from one on, up to where that was done before."""
        structure = self._structure
        at, kinds = index, structure.kinds_back
        if kinds and kinds[-1] != "assistant":  # of the message behind this one, as for nearly all
            structure.tied = index
            return
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


def said_text(value: Any) -> str:
    """Return a text that is not empty.

    Raises:
        KeyError: It is something else.
    """
    if value.__class__ is not str or not value:
        raise KeyError
    text: str = value
    return text


def _result_tokens(content: Any, counts: dict[Any, int]) -> int:
    """Count plain blocks of text in a result.

    Raises:
        KeyError: It holds something else.
        TypeError: The same.
    """
    if content.__class__ is not list:
        raise KeyError
    tokens = 0
    for block in content:
        if block["type"] != "text" or not block.keys() <= _TEXT_KEYS:
            raise KeyError
        tokens += counts[block["text"]]
    return tokens
