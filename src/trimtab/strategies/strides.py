"""Cuts in strides: the same prefix from call to call, without memory between calls.

A cut is a pure function of the conversation so far. Candidates are marked from fixed places
(multiples of M messages) by weights that need no tokenizer, so that a call that adds a few
messages finds the marks of the call before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from trimtab.counting.checks import counter_name
from trimtab.errors import CountingError
from trimtab.strategies.base import EvictionRequest

__all__ = ["stride_cut"]

_BYTES_PER_TOKEN = 3.5
_MESSAGE_WEIGHT = 4.0
_CALL_WEIGHT = 9.0
"""Weights of research/CUTS.md: only ratios between messages matter, not the unit."""
_HALVINGS = 4
"""How often the stride is halved when no mark leaves enough."""
_LEAST_GRID_MESSAGES = 64


def stride_cut(
    request: EvictionRequest,
    oldest: int,
    *,
    ratio: float,
    also: Callable[[int], tuple[int, ...]],
) -> int:
    """Return the cut to use: a mark that leaves about `ratio` of the limit, else `oldest`.

    Args:
        request: The request; its constant limit gives the stride.
        oldest: The oldest cut that fits.
        ratio: Share of the limit to keep at least about, 0 < ratio < 1.
        also: Units that stay beside a cut.
    """
    limit = request.constant_limit_tokens
    stride = (1.0 - ratio) * limit
    least = ratio * limit / 2
    weights = _Weights(request)
    for _ in range(_HALVINGS + 1):
        mark = next((m for m in _marks(request, oldest, stride, weights) if m >= oldest), None)
        leaves = mark is not None and _tokens_left(request, mark, also) >= least
        if mark is not None and leaves and request.cuts.stands(mark, also(mark)):
            return mark
        stride /= 2
    return oldest


def _tokens_left(request: EvictionRequest, cut: int, also: Callable[[int], tuple[int, ...]]) -> int:
    return request.cuts.tokens(cut, also(cut))


def _marks(request: EvictionRequest, oldest: int, stride: float, weights: _Weights) -> Iterator[int]:
    """Walk the marks from the last fixed place at or before the oldest cut."""
    history = request.history
    grid = max(_LEAST_GRID_MESSAGES, request.constant_limit_tokens // 16)
    start = history.head + (oldest - history.head) // grid * grid
    history.read(start)
    passed, next_grid = 0.0, start
    for index in range(start, len(history)):
        if history.is_border(index) and (index >= next_grid or passed >= stride):
            yield index
            passed = 0.0
            next_grid = history.head + ((index - history.head) // grid + 1) * grid
        passed += weights[index]


class _Weights:
    """Weight of each message, computed once: bytes of its texts and call arguments."""

    def __init__(self, request: EvictionRequest) -> None:
        self._request = request
        self._own = getattr(request.sizes.counter, "weight", None)
        self._known: dict[int, float] = {}

    def __getitem__(self, index: int) -> float:
        weight = self._known.get(index)
        if weight is None:
            weight = self._known[index] = self._weigh(index)
        return weight

    def _weigh(self, index: int) -> float:
        message: dict[str, Any] = self._request.history.messages[index]
        if self._own is not None:
            weight = self._own(message)
            if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not 0 <= weight < math.inf:
                name = counter_name(self._request.sizes.counter)
                raise CountingError(
                    f"counter {name} answered {weight!r} as the weight of message {index}; it is a finite"
                    " number, 0 or more",
                    counter=name,
                    index=index,
                    answer=weight,
                )
            return float(weight)
        history = self._request.history
        # Reading texts alone is quicker; a message that also makes calls, or has none, is read in full.
        if index not in history.structure.calls and (slots := history.format.texts(message)):
            return sum([_bytes(slot.text) for slot in slots]) / _BYTES_PER_TOKEN + _MESSAGE_WEIGHT
        pieces = history.format.pieces(message)
        size = sum(map(_bytes, pieces.texts)) + sum(_bytes(arguments) for _, arguments in pieces.calls)
        return size / _BYTES_PER_TOKEN + _MESSAGE_WEIGHT + _CALL_WEIGHT * len(pieces.calls)


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
