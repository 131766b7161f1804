"""Results written otherwise before anything is counted, and again for what a request turns out to hold.

A result may refer to an earlier one of the same request, as long as that is in it, whole. What is evicted,
cut or cleared is known only once it is settled; then the rest is written again, and settled again. What may be
referred to only shrinks, so this ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from trimtab._fitting.portion import Decision, Portion
from trimtab._shared.steps import Steps
from trimtab.compact import Compact
from trimtab.compact.markers import marker_in
from trimtab.compact.results import Place, Result
from trimtab.compact.writing import ALL, Link, Window, Written, WrittenText, write_results
from trimtab.conversation import History
from trimtab.counting.awaited import CountsNeeded
from trimtab.errors import CountingError, FormatError
from trimtab.report import ReferenceRow, WrittenResults
from trimtab.strategies.runner import Settled

__all__ = ["ALL", "Windows", "dangles", "note_written", "rewrite", "settle_written"]

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
    settle: Callable[[Windows], Steps[O]], decisions: Callable[[O], Iterable[Decision[Any]]]
) -> Steps[O]:
    """Settle with results written, and again until each reference leads to what is there, whole.

    Args:
        settle: Settles with results written for what a request holds of each block.
        decisions: Lists what was settled for each block.
    """
    windows: dict[str, Window] = {}
    for left in range(_MOST_ROUNDS, -1, -1):
        outcome = yield from settle(windows)
        torn, wider = False, dict[str, Window]()
        for decision in decisions(outcome):
            name, written = decision.portion.name, decision.portion.written
            if written is None:
                continue
            before, now = windows.get(name, ALL), _held(written, decision.settled)
            gone, parted = before.gone | now.gone, before.parted | now.parted
            if dangles(written, decision.settled, now):
                torn = True
                if left <= 1 or (gone, parted) == (before.gone, before.parted):
                    parted = frozenset([one.place for one in written.results])
            wider[name] = Window(gone, parted)
        if not torn:
            break
        windows = wider
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


# What it saved.


def note_written(decisions: Iterable[Decision[Any]], *, ask: bool = False) -> None:
    """Note what was written otherwise of what stays, and count what that saved.

    Args:
        decisions: What was settled for each block.
        ask: Whether a counter is asked that has to be awaited.
    """
    for decision in decisions:
        written = decision.portion.written
        if written is not None:
            decision.written = _written_of(decision, written, ask=ask)


def _written_of(decision: Decision[Any], written: Written, *, ask: bool) -> WrittenResults:
    portion, settled = decision.portion, decision.settled
    held = _held(written, settled)
    texts = [
        one
        for one in written.texts
        if one.place not in held.gone and one.path not in settled.edits.get(one.place[0], ())
    ]
    sizes = portion.sizes
    saved = None
    if sizes.additive and (ask or not sizes.counter.is_awaited):
        try:
            saved = _saved_by(portion, texts)
        except CountsNeeded:
            raise
        except (CountingError, FormatError):  # of a text that is not sent: the fit did not need it
            saved = None
    there = {one.place for one in texts}
    links = [one for one in written.links if one.holder in there]
    start = portion.start
    pairs = [
        (start + portion.source_index(one.holder[0]), start + portion.source_index(one.source[0]))
        for one in links
    ]
    rows = [ReferenceRow(index=holder, source=source) for holder, source in dict.fromkeys(pairs)]
    return WrittenResults(texts=len(texts), references=tuple(rows), saved_tokens=saved)


def _saved_by(portion: Portion, texts: Iterable[WrittenText]) -> dict[str, int]:
    """Count what each step saved: whole messages, before and after it."""
    by_message: dict[int, list[WrittenText]] = {}
    for one in texts:
        by_message.setdefault(one.place[0], []).append(one)
    saved: dict[str, int] = {}
    for index, own in by_message.items():
        place = portion.source_index(index)
        before = portion.source_sizes.of(place + portion.source_offset)
        steps = dict.fromkeys(one.step for one in own if one.base != one.text)
        repeats = any(one.sent != one.base for one in own)
        message = portion.history.unwritten.original(index)
        for step in steps:
            texts_of = {one.path: one.base for one in own if one.step == step and one.base != one.text}
            message = portion.history.format.with_texts(message, texts_of)
            after = portion.sizes.message(message, index)
            saved[step] = saved.get(step, 0) + before - after
            before = after
        if repeats:
            message = portion.history.format.with_texts(message, {one.path: one.sent for one in own})
            saved["repeats"] = saved.get("repeats", 0) + before - portion.sizes.message(message, index)
    return saved
