"""The walk over items of the Responses API that counts while it reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from trimtab.formats.base import Prices
from trimtab.formats.openai_responses.read import (
    PART_CARRIED,
    TEXT_PARTS,
    answered_id_of,
    call_id_of,
    is_by_program,
    is_plain_message,
    is_reference,
    kind_of,
    type_of,
)
from trimtab.formats.structure import UNNAMED, Kind, Structure
from trimtab.formats.values import Dict, as_text

__all__ = ["Walk"]

_WHOSE: dict[Any, Kind] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "developer": "system",
}
_MESSAGE_KEYS = frozenset({"type", "role", "content", "id", "status", "phase"})
_CALL_KEYS = frozenset({"type", "call_id", "name", "arguments", "id", "status", "namespace"})
_OUTPUT_KEYS = frozenset({"type", "call_id", "output", "id", "status"})
_REASONING_KEYS = frozenset({"type", "id", "summary", "content", "encrypted_content", "status"})

_Read: TypeAlias = tuple[Kind, bool, str | None]
"""Whose an item is, whether it is a message of no response, and the id it calls by or answers."""


class Walk:
    """One way back over items; what has to be known further on is in the structure."""

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

    # One loop on purpose: a call an item would cost a fifth of the whole.
    def back(self, span: range, room_tokens: int, sizes: list[int | None]) -> int:  # noqa: C901
        """Fill `sizes` over a descending span until the room is passed; see `Format.count_back`.

        Items of the model behind one another are one run, at whose end the results of all its calls stand.
        """
        messages, structure, prices = self._messages, self._structure, self._prices
        bases, counts, behind, kinds = prices.bases, prices.counts, structure.behind, structure.kinds_back
        index = span.start + 1
        whose_next, is_next_free = self._after(index)
        for index in span:
            item = messages[index]
            if item.__class__ is not dict:
                item = structure.read_as_dict(messages, index)
            try:
                if len(item) == 2:
                    content, whose, is_free, call_id = item["content"], _WHOSE[item["role"]], True, None
                    tokens = counts[content] if content.__class__ is str else _tokens_of(content, counts)
                    base = bases[item["role"]]
                elif len(item) == 3 and item["type"] == "function_call_output":
                    content, call_id = item["output"], item["call_id"]
                    if not call_id or call_id.__class__ is not str:
                        raise KeyError
                    tokens = counts[content] if content.__class__ is str else _tokens_of(content, counts)
                    whose, is_free, base = "tool", False, bases["tool"]
                elif len(item) == 4 and item["type"] == "function_call":
                    name, asked, call_id = item["name"], item["arguments"], item["call_id"]
                    if not call_id or call_id.__class__ is not str or not name or asked is None:
                        raise KeyError
                    tokens = prices.per_call_tokens + counts[asked] + prices.name_factor * counts[name]
                    whose, is_free, base = "assistant", False, bases["assistant"]
                else:
                    (whose, is_free, call_id), base, tokens = self._plain_item(item, whose_next)
                # what is taken off may be more than all of a short item
                size = base + tokens if base + tokens > 0 else 0
            except (KeyError, TypeError):
                (whose, is_free, call_id), size = self._any_item(index, whose_next)
            if whose == "assistant":
                if whose_next == "assistant" and not (is_free and is_next_free):
                    structure.bound.add(index)
                elif behind and whose_next != "tool":
                    structure.close((), index)
                if call_id is not None:
                    structure.callers.add(index)
                    if call_id in behind:
                        behind.remove(call_id)
                    else:
                        structure.unanswered.add(index)
            else:
                if behind and (whose != "tool" or whose_next != "tool"):
                    structure.close((), index)
                if whose == "tool":
                    behind.append(call_id or "")
            whose_next, is_next_free = whose, is_free
            kinds.append(whose)
            sizes[index] = size
            room_tokens -= size
            if room_tokens < 0:
                break
        if behind and not index:
            structure.odd.add(0)
        return index

    def _after(self, index: int) -> tuple[Kind | None, bool]:
        """Tell whose the item at `index` is, which was read before, and whether it is of no response."""
        if index >= len(self._messages):
            return None, False
        item = self._structure.read_as_dict(self._messages, index)
        return kind_of(item), is_plain_message(item)

    # A few lookups, which fail, with KeyError or TypeError, for the shapes that are not plain.
    def _plain_item(self, item: Dict, whose_next: Kind | None) -> tuple[_Read, int, int]:
        """Read a call, its output, a message of texts or reasoning; with its framing and its tokens.

        Raises:
            KeyError: It is none of these, or not plain.
            TypeError: The same.
        """
        prices, kind = self._prices, item["type"]
        counts = prices.counts
        if kind == "function_call_output":
            content = item["output"]
            tokens = counts[content] if content.__class__ is str else _tokens_of(content, counts)
            return (("tool", False, _id_in(item, _OUTPUT_KEYS)), prices.bases["tool"], tokens)
        if kind == "function_call":
            name = item["name"]
            if not name or name.__class__ is not str or item["arguments"] is None:
                raise KeyError
            tokens = prices.per_call_tokens + counts[item["arguments"]] + prices.name_factor * counts[name]
            return (("assistant", False, _id_in(item, _CALL_KEYS)), prices.bases["assistant"], tokens)
        if kind == "message":
            content, role = item["content"], item["role"]
            tokens = counts[content] if content.__class__ is str else _tokens_of(content, counts)
            if not item.keys() <= _MESSAGE_KEYS:
                raise KeyError
            return (_WHOSE[role], item.get("id") is None, None), prices.bases[role], tokens
        # that of which nothing more is known to follow may not stand alone
        if kind != "reasoning" or whose_next != "assistant" or not item.keys() <= _REASONING_KEYS:
            raise KeyError
        return ("assistant", False, None), prices.bases["reasoning"], self._thought_tokens(item)

    def _thought_tokens(self, item: Dict) -> int:
        prices, sealed, summary = self._prices, item.get("encrypted_content"), item["summary"]
        if item.get("content") or summary.__class__ is not list or prices.thoughts_counted is None:
            raise KeyError
        tokens = prices.sealed_tokens(len(sealed)) if isinstance(sealed, str) else 0
        if not prices.thoughts_counted:
            return tokens
        if not all(part["text"] for part in summary):
            raise KeyError
        return tokens + _tokens_of(summary, prices.counts)

    def _any_item(self, index: int, whose_next: Kind | None) -> tuple[_Read, int]:
        """Read and count an item of any shape."""
        structure = self._structure
        item = structure.read_as_dict(self._messages, index)
        structure.foreign |= self._is_foreign(item)
        name, call_id = type_of(item), call_id_of(item)
        answered_id = answered_id_of(item)
        is_named = answered_id != "" and not (call_id or "").startswith(UNNAMED)
        leads = name != "reasoning" or as_text(item.get("id")) is None or whose_next == "assistant"
        if (
            not (is_named and leads)
            or name in ("compaction", "program_output")
            or is_reference(item)
            or is_by_program(item)
        ):
            structure.odd.add(index)
        known = call_id if answered_id is None else answered_id
        return (kind_of(item), is_plain_message(item), known), self._prices.in_full(item)


def _id_in(item: Dict, keys: frozenset[str]) -> str:
    """Return the id a call or an output has.

    Raises:
        KeyError: It has none that is a text, or has other keys than these.
    """
    call_id: Any = item["call_id"]
    if not call_id or call_id.__class__ is not str or not item.keys() <= keys:
        raise KeyError
    return call_id


def _tokens_of(parts: Any, counts: dict[Any, int]) -> int:
    """Count parts that are texts.

    Raises:
        KeyError: There is another part.
        TypeError: The same.
    """
    if parts.__class__ is not list:
        raise KeyError
    tokens = 0
    for part in parts:
        text = part["text"]
        if part["type"] not in TEXT_PARTS or text.__class__ is not str or not part.keys() <= PART_CARRIED:
            raise KeyError
        tokens += counts[text]
    return tokens
