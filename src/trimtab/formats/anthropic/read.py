"""Reading Anthropic Messages: what a block is, its other half, what is charged and what may be cut."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from trimtab.formats.base import Media, Pieces, TextSlot
from trimtab.formats.content import Found
from trimtab.formats.origin import ORIGIN_OF, Origins
from trimtab.formats.structure import Kind, Step, Structure, complete_ids
from trimtab.formats.values import (
    Dict,
    Path,
    as_dict,
    as_list,
    as_text,
    compact_json,
    item_of,
    to_text,
)

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
    yield from zip((at for at, _ in calls), complete_ids(call_id for _, call_id in calls), strict=True)


def kind_of(message: Any) -> Kind:
    """Tell whom a message is from; a user message of nothing but results is the tools'."""
    role = message.get("role") if message.__class__ is dict else item_of(message, "role")
    if role == "user":
        content = message.get("content") if message.__class__ is dict else item_of(message, "content")
        blocks = None if content.__class__ is str else as_list(content)
        if not blocks:
            return "user"
        return "tool" if all(type_of(block) == "tool_result" for block in blocks) else "user"
    if role == "assistant":
        return "assistant"
    return "system" if role == "system" else "other"


def step_of(message: Any) -> Step:
    """Say what a message is to its turn; see `Format.turn_step`."""
    role, content = item_of(message, "role"), item_of(message, "content")
    blocks = () if content.__class__ is str else as_list(content) or ()
    if role == "assistant":
        return "thinks" if blocks and type_of(blocks[0]) in THINKING else "speaks"
    if role == "user" and any(type_of(block) == "tool_result" for block in blocks):
        return "answers"
    return ""


_PASSED_ON = frozenset({"document", "search_result", "container_upload"})
"""Blocks of a user message that hold what somebody else wrote."""


def origins_of(message: Any) -> Origins:
    """Tell who said what a message holds: a user message may have results of tools and documents in it."""
    whose = ORIGIN_OF[kind_of(message)]
    kinds = [*map(type_of, blocks_of(message))]
    if whose == "assistant":
        # What the provider's tools found stands among the model's words; a compaction is of all before it.
        found = any(is_server_result(kind) or kind == "compaction" for kind in kinds)
        return frozenset((whose, "tool") if found else (whose,))
    if whose != "user" or not kinds:
        return frozenset((whose,))
    return frozenset(
        "tool" if kind == "tool_result" else "document" if kind in _PASSED_ON else whose for kind in kinds
    )


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


def opens_turn(messages: list[Any], index: int) -> bool:
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

    __slots__ = ("_answered", "_messages", "_pending", "_structure")

    def __init__(self, messages: list[Any], structure: Structure) -> None:
        self._messages = messages
        self._structure = structure
        self._answered: set[tuple[str, int]] = set()
        """(id, message) of calls that have their result; another with that id there is the same call."""
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
        self._note_last_turn(start)
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
            structure.calls[index] = tuple(complete_ids(calls))
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
        self._answered.add((call_id, first))
        self._structure.bound.update(range(first, index))
        return True

    def _note_last_turn(self, start: int) -> None:
        """Note what the model did without thinking, in the last turn, behind the thinking before it.

        "When `thinking` is enabled, a final `assistant` message must start with a thinking block": where
        thinking opened the turn, nothing that does not may come to open it.
        """
        messages, first = self._messages, len(self._messages)
        while first > start and not opens_turn(messages, first - 1):
            first -= 1
        bound_to = -1
        for index in range(first, len(messages)):
            if item_of(messages[index], "role") != "assistant":
                continue
            blocks = blocks_of(messages[index])
            if blocks and type_of(blocks[0]) in THINKING:
                bound_to = index
            elif bound_to >= 0:
                self._structure.thought.update(range(bound_to, index))
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
            if not call_id or (call_id, index) in self._answered:
                continue
            if call_id not in calls.get(index, ()):
                calls[index] = (*calls.get(index, ()), call_id)
        self._pending.clear()


_MESSAGE_KEYS = frozenset({"role", "content"})

# Not part of the prompt: marks for the cache and for citations, who called, what a response says about itself
# (a whole `Message` object may stand in the list), and what the API is told about a block.
_CARRIED = frozenset(
    {
        "cache_control",
        "caller",
        "citations",
        "clear_at",
        "container",
        "context_management",
        "diagnostics",
        "id",
        "metadata",
        "model",
        "output_config",
        "parsed_output",
        "signature",
        "stop_details",
        "stop_reason",
        "stop_sequence",
        "toolset_name",
        "transformations",
        "type",
        "usage",
    }
)
_SEALED = frozenset({"encrypted_content", "encrypted_stdout", "encrypted_index"})
"""Fields the provider alone can read: only their size is known."""


def pieces_of(message: Dict, write_json: Callable[[Any], str] = compact_json) -> Pieces:
    """List what of a message is charged for; see `Format.pieces`."""
    content = message.get("content")
    role = message.get("role")
    if isinstance(content, str) and message.keys() == _MESSAGE_KEYS and isinstance(role, str):
        return Pieces(role=role, texts=(content,), parts=1)
    found = _Found(write_json)
    blocks = as_list(content)
    if blocks is None:
        found.read_text(content)
    for block in blocks or ():
        found.read_block(block)
    found.read_rest(message, _MESSAGE_KEYS)
    results = [result_id_of(block) for block in blocks or () if type_of(block) == "tool_result"]
    found.parts = len(blocks) if blocks is not None else int(content is not None)
    return found.pieces(
        role, result_id=results[0] or None if len(results) == 1 else None, results=len(results)
    )


def plain_words(message: Dict) -> str:
    """Return what a plain message says; see `Format.full_text`. It takes a few lookups.

    Raises:
        KeyError: It is not plain.
        TypeError: The same.
    """
    content = message["content"]
    if len(message) != 2 or "role" not in message:
        raise KeyError
    if content.__class__ is str:
        words: str = content
        return words
    if content.__class__ is not list:
        raise KeyError
    texts, calls = [], []
    for block in content:
        kind, width = block["type"], len(block)
        if kind == "text" and width == 2:
            texts.append(block["text"])
        elif kind == "tool_result" and width == 3 and "tool_use_id" in block:
            texts.append(block["content"])
        elif kind == "tool_use" and width == 4 and "id" in block and block["name"].__class__ is str:
            calls.append(f"{block['name']} {to_text(block['input'])}")
        else:
            raise KeyError
    return "\n".join(texts + calls)


class _Found(Found):
    __slots__ = ()

    carried = _CARRIED
    kinds = ("image",)

    def without_url(self, value: Any) -> Any:
        return value  # an address of data is charged as text

    def takes(self, entry: Mapping[Any, Any], key: Any, item: Any) -> bool:
        mime = as_text(entry.get("media_type")) if key == "data" else None
        if isinstance(item, str) and key in _SEALED:
            self.media.append(Media("file", None, item, str(key), is_sealed=True))
        elif isinstance(item, str) and mime not in (None, "text/plain"):
            self.media.append(Media(self.media_kind(mime), None, item, None))
        else:
            return bool(key == "cache_control")
        return True

    def read_block(self, value: Any) -> None:
        """Take one block: by the keys of its type, or as JSON where that is not known."""
        block = None if isinstance(value, str) else as_dict(value)
        if block is None:
            self.read_text(value)
            return
        kind = type_of(block) or ""
        if kind == "fallback":  # the API takes it, and does not show it to the model
            return
        keys = _KEYS.get(kind) or (_KEYS_OF_SERVER_RESULTS if is_server_result(kind) else None)
        if keys is None:
            self.read_unknown(block)
            return
        for key, read in keys.items():
            if read is not None:
                read(self, block.get(key))
        self.read_rest(block, keys)
        self.is_cited |= kind in _CITED and item_of(block.get("citations"), "enabled") is True
        if kind in CALLS:
            self.calls.append(
                (as_text(block.get("name")) or "", to_text(block.get("input"), self.write_json))
            )
        elif kind == "thinking" and as_text(block.get("thinking")) is None:
            self.read_sealed_thought(block.get("signature"))

    def read_blocks(self, value: Any) -> None:
        """Take content inside a block: a string, or blocks."""
        listed = as_list(value)
        if listed is None:
            self.read_text(value)
        for block in listed or ():
            self.read_block(block)

    def read_server_content(self, value: Any) -> None:
        """Take what a tool found that the provider ran: blocks, or values by their names."""
        for one in as_list(value) or (value,):
            self.read_block(one) if type_of(one) in _KEYS else self.read_unknown(one)

    def read_thought(self, value: Any) -> None:
        """Take thinking that can be read."""
        if thought := as_text(value):
            self.thoughts.append(thought)

    def read_sealed_thought(self, value: Any) -> None:
        """Take thinking of which only the size is known."""
        self.sealed_chars += len(as_text(value) or "")

    def read_compaction(self, value: Any) -> None:
        """Take what stands for all that was before, where only the provider can read it."""
        if sealed := as_text(value):
            self.media.append(Media("file", None, sealed, "compaction", is_sealed=True))

    def read_image(self, source: Any) -> None:
        """Take where an image comes from."""
        self.read_source(source, "image")

    def read_source(self, value: Any, kind: Literal["image", "file"] = "file") -> None:
        """Take where an image or document comes from: data, an address, the id of a file, text or blocks."""
        source = as_dict(value) or {}
        way = source.get("type")
        if way in ("text", "content"):
            self.documents += 1
            self.read_text(source.get("data")) if way == "text" else self.read_blocks(source.get("content"))
        elif way == "file":
            self.media.append(Media(kind, None, None, as_text(source.get("file_id"))))
        else:
            data = as_text(source.get("data")) or as_text(source.get("url"))
            self.media.append(Media(kind, None, data, None))

    def read_tool(self, name: Any) -> None:
        """Take a tool that is loaded from here on; what of its schema is here is the name."""
        self.tools.append({"name": as_text(name) or "", "input_schema": {}})

    def read_addition(self, tool: Any) -> None:
        """Take a tool that a system message brings along: by its name, or as it is defined there."""
        definition = item_of(tool, "definition")
        if definition is None:
            self.read_tool(item_of(tool, "name"))
        else:
            self.tools.append(definition)

    def read_upload(self, file_id: Any) -> None:
        """Take a file that is put into the container."""
        self.media.append(Media("file", None, None, as_text(file_id)))


_Keys: TypeAlias = dict[str, Callable[[_Found, Any], None] | None]

_CITED = ("document", "search_result")
_RESULT: _Keys = {"tool_use_id": None, "is_error": None}
_KEYS_OF_SERVER_RESULTS: _Keys = {**_RESULT, "content": _Found.read_server_content}
_KEYS: dict[str, _Keys] = {
    "text": {"text": _Found.read_text},
    "image": {"source": _Found.read_image},
    "document": {"title": _Found.read_text, "context": _Found.read_text, "source": _Found.read_source},
    "search_result": {"title": _Found.read_text, "source": _Found.read_text, "content": _Found.read_blocks},
    "tool_reference": {"tool_name": _Found.read_tool},
    "tool_addition": {"tool": _Found.read_addition},
    "thinking": {"thinking": _Found.read_thought},
    "redacted_thinking": {"data": _Found.read_sealed_thought},
    **{kind: {"name": None, "input": None} for kind in CALLS},
    "tool_result": {**_RESULT, "content": _Found.read_blocks},
    "container_upload": {"file_id": _Found.read_upload},
    "compaction": {"content": _Found.read_text, "encrypted_content": _Found.read_compaction},
}
"""What of a block is charged, by its type: how each key is read that has a name here; None: it is free."""


def texts_of(message: Dict, *, whole: bool = False) -> Iterator[TextSlot]:
    """Yield the texts of a message that may be cut; see `Format.texts`.

    Of the model's none where it thinks, which the API checks, and none with citations, which hold an index
    into it. What the provider's own tools returned stays as it came.

    Args:
        message: Any message.
        whole: Whether texts that may not be cut are listed, too: for reading.
    """
    content = message.get("content")
    if isinstance(content, str):
        yield TextSlot(("content",), content, is_result=False)
        return
    blocks = blocks_of(message)
    by_model = message.get("role") == "assistant" and not whole
    if by_model and any(type_of(block) in THINKING for block in blocks):
        return
    for at, block in enumerate(blocks):
        path: Path = ("content", at)
        if type_of(block) == "tool_result":
            yield from _texts_in(item_of(block, "content"), (*path, "content"), is_result=True)
        elif not (by_model and item_of(block, "citations")):
            yield from _block_texts(block, path, is_result=False)


def _texts_in(content: Any, path: Path, *, is_result: bool) -> Iterator[TextSlot]:
    if isinstance(content, str):
        yield TextSlot(path, content, is_result)
        return
    for at, block in enumerate(as_list(content) or ()):
        yield from _block_texts(block, (*path, at), is_result=is_result)


def _block_texts(block: Any, path: Path, *, is_result: bool) -> Iterator[TextSlot]:
    kind = type_of(block)
    if kind == "text":
        text = item_of(block, "text")
        if isinstance(text, str):
            yield TextSlot((*path, "text"), text, is_result)
    elif kind == "search_result":
        yield from _texts_in(item_of(block, "content"), (*path, "content"), is_result=is_result)
    elif kind == "document":
        source = item_of(block, "source")
        way, data = type_of(source), item_of(source, "data")
        if way == "text" and isinstance(data, str):
            yield TextSlot((*path, "source", "data"), data, is_result)
        elif way == "content":
            path = (*path, "source", "content")
            yield from _texts_in(item_of(source, "content"), path, is_result=is_result)


def unsure_in(body: Mapping[str, Any]) -> tuple[str, ...]:
    """Name thinking that has no budget, and what lets the server change the messages.

    How much of a prompt it brings along is documented nowhere: 3 bills of adaptive thinking were 2 or 3
    tokens above counts without it (2026-11), and of "between_tools" there was none. With a budget it is
    charged.
    """
    found = []
    kind = item_of(body.get("thinking"), "type")
    if isinstance(kind, str) and kind not in ("enabled", "disabled"):
        found.append(f"what {kind} thinking adds (thinking)")
    found += [f"what the server takes out or sums up ({key})" for key in _EDITED if body.get(key)]
    return tuple(found)


_EDITED = ("context_management", "compaction")
"""What asks the server to clear results and thinking, or to put a summary in place of what was before: 162
tokens were billed for 99,926 that were sent (2026-11). Source: platform.claude.com/docs, "Context editing"
and "Compaction"."""
