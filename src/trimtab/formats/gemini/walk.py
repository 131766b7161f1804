"""The walk over Gemini's contents that counts while it reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trimtab.formats.base import Prices
from trimtab.formats.gemini.read import (
    CALL_PREFIX,
    PLACEHOLDER_CHARS,
    Result,
    calls_of,
    goes_on,
    json_without_data,
    kind_of,
    parts_in,
    results_of,
    speaker,
)
from trimtab.formats.structure import Kind, Structure
from trimtab.formats.values import Dict, as_dict

__all__ = ["Walk"]

_SIGNATURES = frozenset({"thought_signature", "thoughtSignature"})
_CALLS = frozenset({"function_call", "functionCall"})
_RESPONSES = frozenset({"function_response", "functionResponse"})


class Walk:
    """One way back over contents; what has to be known further on is in the structure."""

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

    # One loop on purpose, as those of the other forms.
    def back(self, span: range, room_tokens: int, sizes: list[int | None]) -> int:  # noqa: C901
        """Fill `sizes` over a descending span until the room is passed; see `Format.count_back`."""
        messages, structure, prices = self._messages, self._structure, self._prices
        bases, behind, kinds = prices.bases, structure.behind, structure.kinds_back
        index = span.start + 1
        for index in span:
            content = messages[index]
            if content.__class__ is not dict:
                content = structure.read_as_dict(messages, index)
            try:
                role, parts = content["role"], content["parts"]
                base = bases[role]
                if len(content) != 2 or parts.__class__ is not list:
                    raise KeyError
                tokens, calls, results = self._plain_parts(parts)
                by_model = role == "model"
                if (calls and not by_model) or (results and (by_model or len(results) != len(parts))):
                    raise KeyError
                if not by_model and role != "user":
                    raise KeyError
                # what is taken off may be more than all of a short content
                size = base + tokens if base + tokens > 0 else 0
                if results:
                    kind: Kind = "tool"
                    self._note_results(index, results)
                else:
                    kind = "assistant" if by_model else "user"
                    if calls or behind or by_model:
                        self._note_calls(index, calls, by_model=by_model)
            except (KeyError, TypeError):
                size, kind = self._any_content(index), kind_of(messages[index])
            kinds.append(kind)
            sizes[index] = size
            room_tokens -= size
            if room_tokens < 0:
                break
        if behind and not index:
            structure.odd.add(0)
        return index

    # A few lookups, which fail, with KeyError or TypeError, for the parts that are not plain.
    def _plain_parts(self, parts: list[Any]) -> tuple[int, list[str], list[str]]:  # noqa: C901
        """Count texts, calls and responses, and list the ids of calls and of those that are answered.

        Raises:
            KeyError: A part is something else, or more than that.
            TypeError: The same.
        """
        prices = self._prices
        counts, tokens, sealed_chars = prices.counts, 0, 0
        if len(parts) == 1:  # as nearly all are, and most of them are text
            (part,) = parts
            if part.__class__ is dict and len(part) == 1 and "text" in part:
                text = part["text"]
                if text.__class__ is not str:
                    raise KeyError
                return counts[text], [], []
        calls: list[str] = []
        results: list[str] = []
        numbers: dict[str, int] = {}
        for part in parts:
            if part.__class__ is not dict:
                raise KeyError
            signature = None
            if len(part) == 1:
                (key,) = part
            elif len(part) != 2:
                raise KeyError
            else:
                key, other = part
                if key in _SIGNATURES:
                    key, other = other, key
                signature = part[other]
                if other not in _SIGNATURES or signature.__class__ is not str:
                    raise KeyError
            data = part[key]
            if key == "text":
                if data.__class__ is not str:
                    raise KeyError
                tokens += counts[data]
                continue
            name, call_id = data["name"], data.get("id")
            if name.__class__ is not str or (call_id.__class__ is not str and call_id is not None):
                raise KeyError
            if not call_id:
                number = numbers[name] = numbers.get(name, -1) + 1
                call_id = f"{CALL_PREFIX}{name}:{number}"
            if key in _CALLS:
                asked = data.get("args")
                arguments = "" if asked is None else json_without_data(asked, prices.write_json)
                tokens += prices.per_call_tokens + counts[arguments] + prices.name_factor * counts[name]
                if signature is not None and len(signature) > PLACEHOLDER_CHARS:
                    sealed_chars += len(signature)
                calls.append(call_id)
            elif key in _RESPONSES:
                answer = data["response"]
                if answer is None or "parts" in data:
                    raise KeyError
                said = json_without_data({"name": name, "response": answer}, prices.write_json)
                tokens += prices.per_result_tokens + counts[said]
                results.append(call_id)
            else:
                raise KeyError
        if len(calls) > 1:
            tokens += prices.parallel_tokens + prices.further_call_tokens * (len(calls) - 1)
        return tokens + (prices.sealed_tokens(sealed_chars) if sealed_chars else 0), calls, results

    def _any_content(self, index: int) -> int:
        """Read and count a content of any shape."""
        structure = self._structure
        message = structure.read_as_dict(self._messages, index)
        structure.foreign |= self._is_foreign(message)
        size = self._prices.in_full(message)
        whose, parts = speaker(message), parts_in(message)
        calls, results = calls_of(parts), results_of(parts)
        if results:
            if calls or len(results) != len(parts) or whose not in ("user", "tool"):
                structure.odd.add(index)
            self._note_results(index, _ids_of(results))
        else:
            if whose == "tool":
                structure.odd.add(index)
            self._note_calls(index, [call.id for call in calls], by_model=whose == "model")
        return size

    def _note_results(self, index: int, ids: list[str]) -> None:
        """Take in responses; those without ids are numbered within one content, and so by one alone."""
        structure = self._structure
        if structure.behind and any(map(_is_numbered, (*ids, *structure.behind))):
            structure.odd.add(index)
        structure.behind += ids

    def _note_calls(self, index: int, ids: list[str], *, by_model: bool) -> None:
        """Match calls with the responses behind them, and tell whether the turn goes on."""
        structure, messages, behind = self._structure, self._messages, self._structure.behind
        if ids:
            structure.callers.add(index)
        if ids or behind:
            is_answered = bool(behind)
            structure.close(ids, index)
            if is_answered and any(map(_is_numbered, ids)):
                # the calls of one turn are numbered together, where several contents make them
                before = (as_dict(messages[index - 1]) if index else None) or {}
                goes_on_before = bool(before) and (
                    speaker(before) == "model" or bool(calls_of(parts_in(before)))
                )
                if goes_on_before or not all(map(_is_numbered, ids)):
                    structure.odd.add(index)
        kinds = structure.kinds_back
        if by_model and (not kinds or kinds[-1] == "assistant") and goes_on(messages, index):
            structure.bound.add(index)


def _ids_of(results: list[Result]) -> list[str]:
    """List the ids that are answered; those without are numbered by name, as calls are."""
    seen: dict[str, int] = {}
    found: list[str] = []
    for result in results:
        if result.id is None:
            number = seen[result.name] = seen.get(result.name, -1) + 1
            found.append(f"{CALL_PREFIX}{result.name}:{number}")
        else:
            found.append(result.id)
    return found


def _is_numbered(call_id: str) -> bool:
    return call_id.startswith(CALL_PREFIX)
