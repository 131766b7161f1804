"""The walk over Chat Completions that counts while it reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from trimtab.formats.base import Prices
from trimtab.formats.structure import Kind, Structure

__all__ = ["walk_back"]

Other = Callable[[int], tuple[int, Kind]]
"""Reads and counts a message of any shape, by position: its tokens, and whom it is from."""


# The hottest loop of the library, and one on purpose: a call a message would cost a fifth of the whole.
# A plain message is a role, a text or null, and what is free beside it or plain function calls, which may
# stand without a text. It costs a few lookups; they fail, with KeyError or TypeError, for exactly the other
# shapes. An object of an SDK is made a dict first: nearly all are plain then.
def walk_back(  # noqa: C901
    messages: list[Any],
    span: range,
    room_tokens: int,
    sizes: list[int | None],
    *,
    structure: Structure,
    prices: Prices,
    kinds: list[Kind],
    kinds_by_role: Mapping[str, Kind],
    other: Other,
) -> int:
    """Fill `sizes` over a descending span until the room is passed; see `Format.count_back`."""
    behind, unanswered = structure.behind, structure.unanswered
    callers = structure.callers
    bases, counts = prices.bases, prices.counts
    per_call, name_factor = prices.per_call_tokens, prices.name_factor
    index = span.start + 1
    for index in span:
        message = messages[index]
        if type(message) is not dict:
            message = structure.read_as_dict(messages, index)
        try:
            role, width = message["role"], len(message)
            if "tool_calls" in message:
                size = bases[role] + (counts[message["content"]] if width == 3 else 0)
                made = message["tool_calls"]
                if width > 3 or role != "assistant" or made.__class__ is not list:
                    raise KeyError
                if len(made) == 1:
                    call = made[0]
                    call_id, function = call["id"], call["function"]
                    if not call_id or call_id.__class__ is not str or len(call) != 3:
                        raise KeyError
                    call["type"]
                    size += per_call + counts[function["arguments"]] + name_factor * counts[function["name"]]
                    if not behind:
                        unanswered.add(index)
                    elif len(behind) == 1 and behind[0] == call_id:
                        behind.clear()
                    else:
                        structure.close((call_id,), index)
                else:
                    ids, tokens = _parallel_calls(made, prices)
                    size += tokens
                    structure.close(ids, index)
                callers.add(index)
                kind: Kind = "assistant"
            else:
                size = bases[role] + counts[message["content"]]
                kind = kinds_by_role[role]
                if role == "tool":
                    call_id = message["tool_call_id"]
                    if call_id.__class__ is not str or width > 4 or (width == 4 and "name" not in message):
                        raise KeyError
                    behind.append(call_id)
                elif width != 2:
                    raise KeyError
                elif behind:
                    structure.close((), index)
        except (KeyError, TypeError):
            size, kind = other(index)
        kinds.append(kind)
        sizes[index] = size
        room_tokens -= size
        if room_tokens < 0:
            break
    if behind and not index:
        structure.odd.add(0)
    return index


def _parallel_calls(made: list[Any], prices: Prices) -> tuple[tuple[str, ...], int]:
    """Read the ids of several plain function calls, and count them.

    Raises:
        KeyError: A call is not plain, or there are none.
        TypeError: The same.
    """
    ids, tokens = [], prices.parallel_tokens + prices.further_call_tokens * (len(made) - 1)
    for call in made:
        call_id, function = call["id"], call["function"]
        if not call_id or call_id.__class__ is not str or len(call) != 3:
            raise KeyError
        call["type"]
        ids.append(call_id)
        tokens += prices.per_call_tokens + prices.counts[function["arguments"]]
        tokens += prices.name_factor * prices.counts[function["name"]]
    if not ids:
        raise KeyError
    return tuple(ids), tokens
