"""Results written otherwise, and again for what a request turns out to hold.

A result may refer to an earlier one of the same request, as long as that is in it, whole. What is evicted,
cut or cleared is known only once it is settled; then the rest is written again, and settled again. What may
be referred to only shrinks, so this ends.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from trimtab._fitting.portion import Decision, Portion
from trimtab._shared.steps import Steps
from trimtab.compact import Compact
from trimtab.compact.results import Place, Result
from trimtab.compact.windows import (
    ALL,
    Held,
    Window,
    Written,
    WrittenText,
    chat_key,
    held_before,
    write_results,
)
from trimtab.conversation import History
from trimtab.counting.awaited import CountsNeeded
from trimtab.errors import CountingError, FormatError
from trimtab.report import ReferenceRow, WrittenResults
from trimtab.strategies.runner import Settled

__all__ = ["ALL", "Windows", "dangles", "note_written", "rewrite", "settle_compact"]

Made = TypeVar("Made")

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
    unread = (portion.sizes.unread if portion.sizes.additive else None) or history.unread
    window = window._replace(fixed=portion.asked_pins, unread=unread)
    written = write_results(history.format, compact, messages, window, _key_of(portion, compact))
    for index, texts in written.edits().items():
        items[index] = history.format.with_texts(items[index], texts)
    return history.with_messages(items), written


def _key_of(portion: Portion, compact: Compact) -> Hashable:
    """Return the key of a conversation, by the caller's first object behind system text; None: it has none.

    System text is often made anew for each call, and so is the one message of a text.
    """
    history = portion.history
    start = max(portion.lead, history.head)
    if history.count - start < 2:
        return None
    first = history.original(start)
    if portion.owner_of is not None:
        first = portion.owner_of(first)
    return chat_key(history.format, compact, (start, first))


def settle_compact(
    settle: Callable[[Windows], Steps[Made]],
    decisions: Callable[[Made], Iterable[Decision[Any]]],
    portions: Iterable[tuple[Portion, Compact]],
    asked: Hashable,
) -> Steps[Made]:
    """Settle with results written otherwise, for what turns out to be there, and remember what that is.

    Args:
        settle: Settles with results written for what a request holds of each block.
        decisions: Lists what was settled for each block.
        portions: Each block whose results are written otherwise, with results as they came, and how.
        asked: What the request was asked for.
    """
    start = dict[str, Start]()
    for portion, compact in portions:
        found = held_before(_key_of(portion, compact), (portion.name, asked))
        if found is not None:
            start[portion.name] = found
    outcome, windows = yield from _settle_written(settle, decisions, start)
    for decision in decisions(outcome):
        portion = decision.portion
        if portion.written is not None:
            portion.written.held.note((portion.name, asked), windows.get(portion.name, ALL))
    return outcome


def _settle_written(
    settle: Callable[[Windows], Steps[Made]],
    decisions: Callable[[Made], Iterable[Decision[Any]]],
    start: Mapping[str, Start] = MappingProxyType({}),
) -> Steps[tuple[Made, Windows]]:
    """Settle with results written, and again until each reference leads to what is there, whole.

    Args:
        settle: Settles with results written for what a request holds of each block.
        decisions: Lists what was settled for each block.
        start: What the call before held of each block: this one mostly holds no more of what was there then,
            and is settled once. Where it holds something again, it is settled as if there had been none.

    Returns:
        What was settled, and what it was written for.
    """
    windows, rounds = {name: one[0] for name, one in start.items()}, 0
    while True:
        outcome, rounds = (yield from settle(windows)), rounds + 1
        made = [one for one in decisions(outcome) if one.portion.written is not None]
        if start and not all(_goes_on(one, start.get(one.portion.name)) for one in made):
            return (yield from _settle_written(settle, decisions))
        start = {}
        torn = {one.portion.name for one in made if dangles(one.portion.written, one.settled)}
        if not torn:
            return outcome, windows
        wider = dict[str, Window]()
        for one in made:
            name, before, now = one.portion.name, windows.get(one.portion.name, ALL), held_of(one)
            gone, parted = before.gone | now.gone, before.parted | now.parted
            is_stuck = name in torn and (gone, parted) == (before.gone, before.parted)
            if is_stuck or rounds >= _MOST_ROUNDS:
                parted = frozenset([result.place for result in one.portion.written.results])
            wider[name] = Window(gone, parted)
        windows = wider


Start = tuple[Window, Held]
"""What the call before held, and where that is remembered."""


def _goes_on(decision: Decision[Any], start: Start | None) -> bool:
    """Tell whether what was settled is of the same conversation, and holds nothing again that was gone."""
    if start is None:
        return True
    written, window = decision.portion.written, start[0]
    if written.held is not start[1]:
        return False
    now = held_of(decision)
    return window.gone <= now.gone and window.parted <= (now.parted | now.gone)


class _Output:
    """What is in an output, whole or in part, asked by places of results."""

    def __init__(self, settled: Settled) -> None:
        self._edits, self._partial, self._cut = settled.edits, settled.partial, settled.cut
        self._before = {*settled.before}

    def holds(self, place: Place) -> bool:
        """Tell whether a result is there."""
        index, part = place
        if index < self._cut and index not in self._before:
            return False
        return index not in self._partial or part in self._partial[index]

    def parts(self, result: Result) -> bool:
        """Tell whether a result that is there was cut or cleared."""
        own = self._edits.get(result.place[0])
        return own is not None and any(text.path in own for text in result.texts)


def held_of(decision: Decision[Any]) -> Window:
    """Tell what an output holds of the results of a block."""
    settled, gone, parted = decision.settled, set[Place](), set[Place]()
    if _holds_all(settled):
        return ALL
    output = _Output(settled)
    for result in decision.portion.written.results:
        if not output.holds(result.place):
            gone.add(result.place)
        elif output.parts(result):
            parted.add(result.place)
    return Window(frozenset(gone), frozenset(parted))


def _holds_all(settled: Settled) -> bool:
    return not (settled.cut or settled.edits or settled.partial)


def dangles(written: Written, settled: Settled) -> bool:
    """Tell whether a reference in an output may be torn, or leads to what is not there, or not whole.

    Args:
        written: The results as they were written.
        settled: What stays.
    """
    if _holds_all(settled) or not written.links:
        return False
    counts_back = any([link.back for link in written.links])
    results: dict[Place, Result] = {}
    if settled.edits or counts_back:
        results = {result.place: result for result in written.results}
    output = _Output(settled)
    there = filter(output.holds, results) if counts_back else ()
    ranks = {place: at for at, place in enumerate(there)}
    for holder, source, back in written.links:
        if not output.holds(holder):
            continue
        if not output.holds(source):
            return True
        if settled.edits and (output.parts(results[holder]) or output.parts(results[source])):
            return True
        if back and ranks[holder] - ranks[source] != back:
            return True
    return False


# What it saved.


def note_written(decisions: Iterable[Decision[Any]], *, ask: bool) -> None:
    """Note what was written otherwise of what stays, and what that saved; once, unless a counter is asked.

    Args:
        decisions: What was settled for each block.
        ask: Whether a counter is asked that has to be awaited.
    """
    for decision in decisions:
        written = decision.portion.written
        if written is not None and (ask or decision.written is None):
            decision.written = _written_of(decision, written, ask=ask)


def _written_of(decision: Decision[Any], written: Written, *, ask: bool) -> WrittenResults:
    portion, settled = decision.portion, decision.settled
    held = held_of(decision)
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
