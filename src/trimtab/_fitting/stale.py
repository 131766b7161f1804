"""Thinking that has gone stale: of models that bind it to all that was before, what stands behind a change.

"Each thinking block is bound to what stood before it: `system`, `tools` and every earlier message" (prefix
checks, platform.claude.com, 2026-10). One that is left out between others makes those behind it invalid,
too, so that all of it leaves from the first change on. System text and tools are the caller's, who may
have sent them so before.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from trimtab._fitting.portion import Portion
from trimtab._shared.steps import Steps
from trimtab.counting.sizes import Shares
from trimtab.strategies.base import EvictionRequest, asks_model
from trimtab.strategies.runner import Settled

if TYPE_CHECKING:
    from trimtab.report import Reason

__all__ = ["fill_room", "first_change", "stale_note", "without_stale"]


def first_change(portion: Portion, settled: Settled) -> int | None:
    """Return the first message that stays behind a change, or has one; None if all is as it was given."""
    changed, count = settled.changed, portion.history.count
    if portion.origin is None and not settled.before and not settled.insertions and not changed:
        return None if settled.cut <= portion.lead else settled.cut
    at = min((one.at for one in settled.insertions), default=count)
    there = chain(settled.before, range(settled.cut, count))
    for place, index in enumerate(index for index in there if index >= portion.lead):
        own = portion.source_index(index)
        if index >= at or own != place or index in changed or own in portion.mended:
            return index
    return at if at < count else None


def without_stale(
    portion: Portion,
    request: EvictionRequest,
    settled: Settled,
    *,
    start: int | None,
    known: Collection[int] = (),
) -> Settled:
    """Return what stays of a portion without the thinking that went stale.

    Args:
        portion: The block it is of.
        request: What the strategy was asked.
        settled: What stays.
        start: The first message whose thinking is stale; None if none is.
        known: Messages of the caller's list whose thinking was stale before.
    """
    format, sizes, history = portion.history.format, portion.sizes, portion.history
    if start is None and not known:
        return settled
    start = history.count if start is None else start
    behind = _there(portion, settled, 0 if known else start)
    stale = [
        index
        for index in behind
        if (index >= start or portion.source_index(index) in known) and _thinks(portion, index)
    ]
    if not stale:
        return settled
    whole = {index: format.without_thinking(history.original(index)) for index in stale}
    gone = {index for index, message in whole.items() if message is None}
    bare = settled.bare.union(stale).difference(gone)
    reasons: dict[int, Reason] = {**settled.reasons, **dict.fromkeys(bare, "bound_thinking")}
    made = replace(settled, bare=bare, reasons=reasons, edited_tokens=dict(settled.edited_tokens))
    if gone:
        made = made.without(gone, count=history.count, tokens=made.tokens, reason="bound_thinking")
    if isinstance(sizes, Shares):
        made.tokens = sizes.request_tokens(made.assemble(request))
        return _needing_less(made, settled)
    before = {index: settled.edited_tokens.get(index, sizes.of(index)) for index in stale}
    now = {index: sizes.message(message, index) for index, message in whole.items() if message is not None}
    made.edited_tokens = {**settled.edited_tokens, **now}
    made.tokens += sum(now.values()) - sum(before.values())
    return _needing_less(made, settled)


def _needing_less(made: Settled, whole: Settled) -> Settled:
    """Take off what must have room what went stale."""
    if made.needed_tokens is not None:
        made.needed_tokens -= whole.tokens - made.tokens
    return made


def fill_room(
    portion: Portion,
    within: Callable[[int], Steps[tuple[EvictionRequest, Settled]]],
    fresh: Callable[[EvictionRequest, Settled], Settled],
    *,
    limit_tokens: int,
) -> Steps[tuple[EvictionRequest, Settled]]:
    """Ask a strategy of a portion whose thinking is bound: what goes stale makes room for more.

    It is asked again with as much more room as that, by the share it has of what stays, then by halves. A
    strategy that asks a model is asked again only where its answer does not fit.

    Args:
        portion: What it is asked about.
        within: Asks for what fits so many tokens.
        fresh: Takes out of an answer what goes stale.
        limit_tokens: What may stay without that.
    """
    request, settled = yield from within(limit_tokens)
    whole, made = settled, fresh(request, settled)
    low, high = limit_tokens, 0
    for _ in range(_ROUNDS):
        if made.fits and asks_model(portion.strategy):
            break
        if made.tokens == whole.tokens and not _thinks_ahead(portion, whole):
            break
        room = (low + high) // 2 if high else _room_for(whole, made, low, limit_tokens)
        if room <= low:
            break
        asked, settled = yield from within(room)
        tried = fresh(asked, settled)
        if settled.fits and tried.tokens <= limit_tokens:
            request, whole, made, low = asked, settled, tried, room
        elif made.fits or room > (whole.needed_tokens or 0):
            high = room
        else:  # not even what must stay has room
            break
    return request, made


def _thinks_ahead(portion: Portion, settled: Settled) -> bool:
    """Tell whether one of the newest messages that leave has thinking, which would make it smaller."""
    stay = {*settled.before}
    newest = range(settled.cut - 1, max(-1, settled.cut - 1 - _LOOKED_AT), -1)
    return any(index not in stay and _thinks(portion, index) for index in newest)


def _room_for(whole: Settled, made: Settled, asked_tokens: int, limit_tokens: int) -> int:
    """Say what to ask for next: what must stay, or as much more as the rest has of what went stale."""
    if not whole.fits and whole.needed_tokens is not None:
        return whole.needed_tokens
    if not whole.fits or made.tokens == whole.tokens:
        return 2 * asked_tokens
    more = (limit_tokens - made.tokens) * whole.tokens // max(1, made.tokens)
    return asked_tokens + min(more, _MOST_TIMES * asked_tokens)


_ROUNDS = 12
"""Times that what goes stale may make room."""

_LOOKED_AT = 20
"""Messages in front of a cut: a model that thinks does so once in a few."""

_MOST_TIMES = 2
"""The least that stays may be thinking for the most part, and says nothing of what comes before it."""


def _there(portion: Portion, settled: Settled, start: int) -> Iterator[int]:
    """Yield what stays from a message on."""
    before = settled.before
    yield from before[bisect_left(before, start) :]
    yield from range(max(start, settled.cut), portion.history.count)


def _thinks(portion: Portion, index: int) -> bool:
    history = portion.history
    if history.kind(index) != "assistant":
        return False
    message = history.messages[index]
    return history.format.without_thinking(message) is not message


def stale_note(count: int) -> str:
    """Say of how many messages the thinking was taken out."""
    from trimtab.report.text import plural  # not above: a report is loaded by who reads one

    return (
        f"Without the thinking of {plural(count, 'message')}: this model takes none behind a change to what"
        " was before it."
    )
