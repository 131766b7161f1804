"""Results written otherwise before anything is counted, and again for what a request turns out to hold.

A result may refer to an earlier one of the same request, as long as that is in it, whole. What is evicted,
cut or cleared is known only once it is settled; then the rest is written again, and settled again. What may be
referred to only shrinks, so this ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from trimtab._fitting.portion import Portion
from trimtab._shared.steps import Steps
from trimtab.compact import Compact
from trimtab.compact.markers import marker_in
from trimtab.compact.results import Place, Result
from trimtab.compact.writing import ALL, Link, Window, Written, write_results
from trimtab.conversation import History
from trimtab.strategies.runner import Settled

__all__ = ["Windows", "dangles", "rewrite", "settle_written"]

O = TypeVar("O")  # noqa: E741 - an outcome

Windows = Mapping[str, Window]
"""What a request holds of the results of each block."""

_MOST_ROUNDS = 8
"""How often results are written again before none refers to another; three are enough in nearly all fits."""


def rewrite(portion: Portion, compact: Compact, window: Window) -> tuple[History, Written]:
    """Write the results of a portion for what a request holds of them.

    Args:
        portion: The portion, with results as they came.
        compact: How results are written.
        window: What the request holds.
    """
    history = portion.history
    messages, items = history.messages_between(0, history.count), [*history.originals]
    window = window._replace(fixed=portion.asked_pins, unread=history.unread)
    written = write_results(history.format, compact, messages, window)
    for index, texts in written.edits().items():
        items[index] = history.format.with_texts(items[index], texts)
    return history.written(items), written


def settle_written(
    settle: Callable[[Windows], Steps[O]], decisions: Callable[[O], Iterable[tuple[str, Written, Settled]]]
) -> Steps[O]:
    """Settle with results written, and again until each reference leads to what is there, whole.

    Args:
        settle: Settles with results written for what a request holds of each block.
        decisions: Lists for each block what was written, and what stays.
    """
    windows: dict[str, Window] = {}
    for left in range(_MOST_ROUNDS, -1, -1):
        outcome = yield from settle(windows)
        found = {name: _held(written, settled) for name, written, settled in decisions(outcome)}
        torn = [
            name
            for name, written, settled in decisions(outcome)
            if dangles(written, settled, found[name])
        ]
        if not torn:
            break
        for name, written, _ in decisions(outcome):
            before, now = windows.get(name, ALL), found[name]
            gone, parted = before.gone | now.gone, before.parted | now.parted
            if name in torn and (left <= 1 or (gone, parted) == (before.gone, before.parted)):
                parted = frozenset([one.place for one in written.results])
            windows[name] = Window(gone, parted)
    return outcome


def _held(written: Written, settled: Settled) -> Window:
    """Tell what an output holds of results."""
    gone, parted = set[Place](), set[Place]()
    for result in written.results:
        index, part = place = result.place
        if not settled.keeps(index) or part not in settled.partial.get(index, (part,)):
            gone.add(place)
        elif any(text.path in settled.edits.get(index, ()) for text in result.texts):
            parted.add(place)
    return Window(frozenset(gone), frozenset(parted))


def dangles(written: Written, settled: Settled, held: Window) -> bool:
    """Tell whether a reference in an output leads to what is not there, or not whole.

    Args:
        written: The results as they were written.
        settled: What stays.
        held: What an output holds of them.
    """
    results = {result.place: result for result in written.results}
    there = (place for place in results if place not in held.gone)
    ranks = {place: at for at, place in enumerate(there)}

    def is_torn(link: Link) -> bool:
        if link.holder in held.gone or not _still_refers(results[link.holder], settled):
            return False
        if link.source in held.gone or link.source in held.parted:
            return True
        return link.back > 0 and ranks[link.holder] - ranks[link.source] != link.back

    return any(map(is_torn, written.links))


def _still_refers(holder: Result, settled: Settled) -> bool:
    """Tell whether a reference may stand in what was cut or cleared of a result."""
    edits = settled.edits.get(holder.place[0], {})
    texts = [edits.get(text.path) for text in holder.texts]
    return any(text is None or any(map(marker_in, text.split("\n"))) for text in texts)
