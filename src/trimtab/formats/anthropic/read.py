"""The content blocks of Anthropic Messages: which is what, and whose halves belong together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trimtab.formats.base import Kind, Structure
from trimtab.formats.structure import numbered
from trimtab.formats.values import as_list, as_text, item_of

THINKING = frozenset({"thinking", "redacted_thinking"})
"""Signed by the provider; sent back as they came, or not at all."""

SERVER_CALLS = frozenset({"server_tool_use", "mcp_tool_use"})
"""Calls the provider runs itself; their results stand in the same turn of the model."""

CALLS = SERVER_CALLS | {"tool_use"}


def is_server_result(kind: Any) -> bool:
    """Tell by its type whether a block is the result of a tool the provider ran."""
    return isinstance(kind, str) and kind.endswith("_tool_result") and kind != "tool_result"


def blocks_of(message: Any) -> Sequence[Any]:
    """List the blocks of a message; none where its content is a string."""
    return as_list(item_of(message, "content")) or ()


def type_of(block: Any) -> str | None:
    """Return the type of a block, of whatever class it is; None if it has none that is a text."""
    found = block.get("type") if type(block) is dict else item_of(block, "type")
    return found if isinstance(found, str) else None


def call_id_of(block: Any) -> str | None:
    """Return the id of a call."""
    return as_text(item_of(block, "id"))


def result_id_of(block: Any) -> str:
    """Return the id of the call a result answers; "" if it names none."""
    return as_text(item_of(block, "tool_use_id")) or ""


def calls_in(message: Any) -> Iterator[tuple[int, str]]:
    """Yield (block, id) of the calls in a message, those the provider runs too: of these, with an id."""
    calls = [
        (at, call_id_of(block))
        for at, block in enumerate(blocks_of(message))
        if type_of(block) == "tool_use" or (type_of(block) in SERVER_CALLS and call_id_of(block) is not None)
    ]
    yield from zip((at for at, _ in calls), numbered(call_id for _, call_id in calls), strict=True)


def kind_of(message: Any) -> Kind:
    """Tell whom a message is from; a user message of nothing but results is the tools'."""
    role = item_of(message, "role")
    if role == "user":
        blocks = as_list(item_of(message, "content"))
        if not blocks:
            return "user"
        return "tool" if all(type_of(block) == "tool_result" for block in blocks) else "user"
    if role == "assistant":
        return "assistant"
    return "system" if role == "system" else "other"


def is_directive(message: Mapping[str, Any]) -> bool:
    """Tell whether a system message says nothing and only sets how the model goes on."""
    return message.get("role") == "system" and not message.get("content") and "output_config" in message


def ends_in_server_result(message: Mapping[str, Any]) -> bool:
    """Tell whether the model's last block is the result of a tool the provider ran."""
    blocks = blocks_of(message)
    return bool(blocks) and message.get("role") == "assistant" and is_server_result(type_of(blocks[-1]))


def compacts(block: Any) -> bool:
    """Tell whether a block stands for what was before it; one without content stands for nothing."""
    return type_of(block) == "compaction" and bool(item_of(block, "content"))


def _opens_turn(messages: list[Any], index: int) -> bool:
    """Tell whether a message begins a turn: words beside results of the call before go on with that one."""
    if kind_of(messages[index]) != "user":
        return False
    calls = {call_id_of(block) or "" for block in blocks_of(messages[index - 1])} if index else set[str]()
    results = (block for block in blocks_of(messages[index]) if type_of(block) == "tool_result")
    return not any(result_id_of(block) in calls for block in results)


class Scan:
    """One pass over neighbouring messages that fills the columns of a structure.

    A call of the provider's own (`server_tool_use`, `mcp_tool_use`) and its result stand in one message,
    or in one turn that paused: all messages between them are bound together. A half without the other is
    a call or a result like any, so that it is found and can be repaired.
    """

    __slots__ = ("_messages", "_pending", "_structure")

    def __init__(self, messages: list[Any], structure: Structure) -> None:
        self._messages = messages
        self._structure = structure
        self._pending: dict[str, int] = {}
        """Calls of the provider's own that wait for their result in this turn, by id: their message."""

    def read(self, start: int, stop: int) -> None:
        """Read `messages[start:stop]`, and look behind for the other half of what waits at the end."""
        structure = self._structure
        compaction = -1
        for index in range(start, stop):
            message = structure.read_as_dict(self._messages, index)
            kind = structure.kinds[index] = kind_of(message)
            if kind == "assistant":
                if self._read_assistant(index, message, whole=start == 0):
                    compaction = index
            elif kind == "system":
                if self._next_role(index) in ("assistant", "system"):
                    structure.bound.add(index)
            else:
                self._read_user(index, message)
                if kind != "tool":
                    self._give_up()
                    if any(map(compacts, blocks_of(message))):
                        compaction = index
        self._look_behind(stop)
        self._bind_last_turn(start)
        if compaction > max(structure.kept, default=-1):
            structure.kept.clear()
            structure.kept.add(compaction)

    def _read_user(self, index: int, message: Any) -> None:
        if item_of(message, "role") != "user":
            return
        results: list[tuple[str, int | None]] = []
        rest: list[int] = []
        for at, block in enumerate(blocks_of(message)):
            if type_of(block) == "tool_result":
                results.append((result_id_of(block), at))
            else:
                rest.append(at)
        if results:
            self._structure.answers[index] = tuple(results)
            if rest:
                self._structure.loose[index] = tuple(rest)

    def _read_assistant(self, index: int, message: Any, *, whole: bool) -> bool:
        """Read a message of the model; tell whether it stands for what was before it."""
        structure, blocks = self._structure, blocks_of(message)
        calls: list[str | None] = []
        strays: list[tuple[str, int | None]] = []
        for at, block in enumerate(blocks):
            kind = type_of(block)
            if kind == "tool_use":
                calls.append(call_id_of(block))
            elif kind in SERVER_CALLS:
                self._pending[call_id_of(block) or ""] = index
            elif is_server_result(kind) and not self._close(result_id_of(block), index):
                strays.append((result_id_of(block), at))
        if calls:
            structure.calls[index] = tuple(numbered(calls))
        if strays:
            self._put_apart(index, len(blocks), strays, whole=whole)
        if calls or (blocks and type_of(blocks[-1]) in THINKING):
            self._bind_row(index)
        return any(map(compacts, blocks))

    def _put_apart(
        self, index: int, count: int, strays: list[tuple[str, int | None]], *, whole: bool
    ) -> None:
        """Note results whose call is not in this turn, or further back than was read."""
        structure = self._structure
        if whole:
            structure.answers[index] = tuple(strays)
            apart = {at for _, at in strays}
            if rest := tuple(at for at in range(count) if at not in apart):
                structure.loose[index] = rest
        elif index:
            structure.bound.add(index - 1)

    def _bind_row(self, index: int) -> None:
        """Bind messages of the model in a row from one on: the API joins them to one turn."""
        bound = self._structure.bound
        while index not in bound and self._next_role(index) == "assistant":
            bound.add(index)
            index += 1

    def _next_role(self, index: int) -> Any:
        if index + 1 == len(self._messages):
            return None
        return self._structure.read_as_dict(self._messages, index + 1).get("role")

    def _close(self, call_id: str, index: int) -> bool:
        """Match a result with the call that waits for it; bind the messages from there to here."""
        first = self._pending.pop(call_id, None)
        if first is None:
            return False
        self._structure.bound.update(range(first, index))
        return True

    def _bind_last_turn(self, start: int) -> None:
        """Bind what the model did without thinking, in the last turn, to the thinking before it.

        "When `thinking` is enabled, a final `assistant` message must start with a thinking block": where
        thinking opened the turn, nothing that does not may come to open it.
        """
        messages, first = self._messages, len(self._messages)
        while first > start and not _opens_turn(messages, first - 1):
            first -= 1
        bound_to = -1
        for index in range(first, len(messages)):
            if item_of(messages[index], "role") != "assistant":
                continue
            blocks = blocks_of(messages[index])
            if blocks and type_of(blocks[0]) in THINKING:
                bound_to = index
            elif bound_to >= 0:
                self._structure.bound.update(range(bound_to, index))
                bound_to = index

    def _look_behind(self, stop: int) -> None:
        """Match what still waits with results in messages that were read before, in the same turn."""
        for index in range(stop, len(self._messages)):
            if not self._pending:
                return
            message = self._messages[index]
            if kind_of(message) not in ("assistant", "tool"):
                break
            for block in blocks_of(message):
                if is_server_result(type_of(block)):
                    self._close(result_id_of(block), index)
        self._give_up()

    def _give_up(self) -> None:
        """The turn is over: what waits is a call without a result."""
        calls = self._structure.calls
        for call_id, index in self._pending.items():
            if call_id and call_id not in calls.get(index, ()):
                calls[index] = (*calls.get(index, ()), call_id)
        self._pending.clear()
