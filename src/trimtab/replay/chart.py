"""A page of charts: which policy is cheaper, what it loses, and each call; one file, without scripts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from html import escape
from itertools import accumulate, islice
from math import floor, log10
from operator import add
from typing import TYPE_CHECKING, NamedTuple

from trimtab._shared.design import SERIES
from trimtab.replay.table import (
    cells_of,
    lost_cells,
    notes_of,
    rooms_in,
    subject_of,
    use_cells,
    wrongs_of,
)
from trimtab.report.html import colour, document, part, safe, sign
from trimtab.report.text import in_dollars, plural, runs

if TYPE_CHECKING:
    from trimtab.replay.results import CallRow, Evidence, Replayed

_WIDTH, _HEIGHT = 1_000, 200
"""Of a chart, in its own units: it is as wide as its place."""
_MOST_POINTS = 600
"""Points of a line: more than that nobody sees apart."""
_MOST_PLACES = 8
"""Recordings of which the calls are named that were not sent as they should be."""

_STYLE = """
.trimtab .policies td:first-child { min-width: 11em; max-width: 16em; overflow-wrap: anywhere }
.trimtab .bar svg { height: var(--bar); min-width: 5em; margin: .35em 0 }
.trimtab .plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 18rem), 1fr)) }
.trimtab .plots { gap: var(--space-3) var(--space-5) }
.trimtab figure { margin: 0; min-width: 0; display: flex; flex-direction: column }
.trimtab figure { justify-content: space-between }
.trimtab figcaption { font-size: var(--text-small); font-weight: var(--strong) }
.trimtab figcaption { margin-bottom: var(--space-3) }
.trimtab .plot { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 0 var(--space-2) }
.trimtab .plot svg { height: 150px; overflow: hidden; border-bottom: 1px solid var(--soft) }
.trimtab .ticks { list-style: none; display: flex; flex-direction: column; justify-content: space-between }
.trimtab .ticks { margin: -.7em 0; padding: 0; text-align: right; font-size: var(--text-small) }
.trimtab .ticks, .trimtab .axis { color: var(--soft); font-variant-numeric: tabular-nums; line-height: 1.4 }
.trimtab .axis { grid-column: 2; display: flex; justify-content: space-between; font-size: var(--text-small) }
.trimtab .plot :is(line, polyline) { fill: none; vector-effect: non-scaling-stroke }
.trimtab line { stroke: var(--line) } .trimtab line.limit { stroke: var(--bad); stroke-dasharray: 5 4 }
.trimtab polyline { stroke-width: 2px } .trimtab .pale { fill-opacity: .5 }
.trimtab tr.unsound { background: var(--card) }
.trimtab td.flaw { color: var(--bad); font-weight: var(--strong) }
@media (max-width: 40rem) {
.trimtab .policies thead { display: none }
.trimtab .policies tr { display: grid; grid-template-columns: repeat(3, minmax(0, 1fr)) }
.trimtab .policies tr { gap: var(--space-1) var(--space-3) }
.trimtab .policies tr { padding: var(--space-2) 0; border-bottom: 1px solid var(--line) }
.trimtab .policies td { display: block; border: 0; padding: 0; text-align: left }
.trimtab .policies td:is(:first-child, .bar) { grid-column: 1 / -1 }
.trimtab .policies td:first-child { font-weight: var(--strong); max-width: none }
.trimtab .policies td.n { white-space: normal }
.trimtab .policies td[data-head]::before { content: attr(data-head); display: block; color: var(--soft) }
.trimtab .policies td[data-head]::before { font: 400 var(--text-small)/1.3 var(--sans) }
}
""" + "\n".join(f".trimtab polyline.b{at} {{ stroke: var(--series-{at + 1}) }}" for at in range(SERIES))


class _Line(NamedTuple):
    """What one policy does in a chart."""

    place: int
    name: str
    is_sound: bool
    values: list[float | None]
    """By call; None where nothing was sent."""


def chart_page(
    groups: Mapping[str, Sequence[Replayed]], /, *, title: str = "Replay", max_recordings: int = 20
) -> str:
    """Write a page: which policy is cheaper, the sums of each, and charts by call.

    A policy that refused calls, exceeded the room, or made calls invalid is listed below the others, with the
    number of these calls: a call that is not sent costs nothing, but does not make a policy cheaper.

    Args:
        groups: The results under each policy by the name of the recording; the policies and their order are
            the same for all recordings.
        title: Heading of the page.
        max_recordings: Number of recordings with charts: the first ones in which something had to be trimmed;
            the table covers all recordings.

    Example:
        >>> from trimtab.replay import replay
        >>> chat = [{"role": role, "content": "word " * 50} for role in ("user", "assistant")] * 20
        >>> page = chart_page({"chat": [replay(chat, policy, budget=900) for policy in ("default", "none")]})
        >>> page.count("<figure"), "<script" in page
        (3, False)
    """
    totals = [reduce(add, column) for column in zip(*groups.values(), strict=True)]
    if not totals:
        return document(title, "<p>Nothing was replayed.</p>")
    first = totals[0]
    played = f"{plural(first.recordings, 'recording')}, {plural(first.totals.calls, 'call')}"
    content = "\n".join(
        [
            _verdict(totals),
            _table(totals),
            *_list("", map(safe, notes_of(totals)[1:]), kind="note"),
            *_wrong_calls(groups),
            *_evidence_bars(totals),
            *_loss_table(
                lost_cells(totals),
                "lost",
                "Lost of what users say, word for word",
                "By round, a fifth of the calls each; by kind at the end.",
            ),
            *_loss_table(
                use_cells(totals),
                "uses lost",
                "Lost of what the model takes from results",
                "By the calls since the newest result that has it, and by its tool.",
            ),
            *_recordings(groups, max_recordings),
        ]
    )
    return document(title, content, about=(played, *subject_of(totals)), style=_STYLE)


def fragment(one: Replayed, /) -> str:
    """Write one policy as a part of a page, as a notebook, with charts where something had to be trimmed."""
    cells = {word: text for word, text in cells_of(one, one).items() if text not in ("", "-")}
    told = [(word, text) for word, text in cells.items() if word not in ("policy", "cost")]
    told += [("evicted per call", _evictions(one))]
    facts = "".join(f"<dt>{word}</dt><dd>{safe(text)}</dd>" for word, text in told)
    wrong = "; ".join(wrongs_of(one))
    tone, said = ("good", "every call was sent within its room") if one.is_sound else ("bad", wrong)
    content = [
        f'<p class="verdict {tone}">{safe(one.policy)}: {safe(said)}</p>',
        f"<dl>{facts}</dl>",
        *_list("", map(safe, notes_of([one])), kind="note"),
        *_wrong_calls({"": [one]}),
        *(["<h2>By call</h2>", _charts([one])] if _is_trimmed([one]) else []),
    ]
    return part("\n".join(content) + "\n", style=_STYLE)


# Which is cheaper, and what it loses.


def _verdict(totals: Sequence[Replayed]) -> str:
    """Name the cheapest of those that send every call; no other is one."""
    first, sound = totals[0], [one for one in totals if one.is_sound]
    if not sound:
        room = safe(rooms_in(totals) or "its room")
        return f'<p class="verdict bad">No policy sends every call within {room}.</p>'
    best = min(sound, key=lambda one: one.totals.price)
    alike = [one for one in sound if one.totals.price == best.totals.price]
    if len(alike) == len(totals):
        return '<p class="verdict">All policies cost the same.</p>'
    names = ", ".join(safe(one.policy) for one in alike)
    ratio = best.cost_ratio(first)
    dollars = [in_dollars(one.dollars) for one in (best, first)]
    told = f", {ratio:.2f} of {safe(first.policy)}" if ratio is not None and best is not first else ""
    told += f", {dollars[0]} instead of {dollars[1]}" if told and all(dollars) else ""
    share = best.totals.evidence_share
    lost = f"; {share:.0%} of the evidence is in view" if share is not None else ""
    evicts = f"It evicts {_evictions(best)} messages per call"
    total = best.survival.total
    lost += f"; {total.lost:,} of {plural(total.sought, 'text')} of users lost" if total.sought else ""
    used = best.uses.total
    lost += f"; {used.lost:,} of {plural(used.sought, 'use')} lost" if used.lost else ""
    evicts += f", {safe(first.policy)} {_evictions(first)}{lost}." if best is not first else f"{lost}."
    head = f"Cheapest of those that send every call: {names}{told}."
    flawed = [f"“{safe(one.policy)}” {' and '.join(wrongs_of(one))}" for one in totals if not one.is_sound]
    aside = f'<p class="outcome">Not compared: {"; ".join(flawed)}.</p>' if flawed else ""
    return f'<p class="verdict good">{head}</p><p class="outcome">{evicts}</p>{aside}'


def _evictions(one: Replayed) -> str:
    """Say how many messages of a call are not sent, in the mean."""
    return f"{one.totals.evicted / max(1, one.totals.calls):,.1f}"


_COLUMNS = ("cost", "dollars", "price", "tokens", "evicted per call", "reuse", "fill")
_FLAWS = ("refused", "over", "invalid")


def _table(totals: Sequence[Replayed]) -> str:
    """Write a row a policy, the cheapest first; below them those that do not send every call."""
    first = totals[0]
    most = _highest([(one.is_sound, one.totals.price) for one in totals]) or 1.0
    rows = []
    for place, one in enumerate(totals):
        cells = {**cells_of(one, first), "evicted per call": _evictions(one)}
        rows.append((not one.is_sound, one.totals.price, place, one, cells))
    rows.sort(key=lambda row: row[:3])
    heads = [
        word
        for word in (*_COLUMNS, "compacted", "summaries", "evidence", "lost", "uses", "needs", *_FLAWS)
        if any(cells[word] not in ("", "-") for *_, cells in rows)
    ]
    written = []
    for is_unsound, price, place, one, cells in rows:
        width = min(1.0, price / most) * _WIDTH
        bar = (
            f'<svg viewBox="0 0 {_WIDTH} 10" preserveAspectRatio="none" aria-hidden="true">'
            f'<rect class="{colour(place)}{" pale" if is_unsound else ""}"'
            f' width="{width:.1f}" height="10"/></svg>'
        )
        name = f"{sign(colour(place))}{safe(one.policy)}" + (
            " (baseline)" if one is first and len(rows) > 1 else ""
        )
        numbers = "".join(map(_number, heads, (cells[word] for word in heads)))
        row = '<tr class="unsound">' if is_unsound else "<tr>"
        written.append(f'{row}<td>{name}</td><td class="bar">{bar}</td>{numbers}</tr>')
    head = "".join(f'<th scope="col" class="n">{word}</th>' for word in heads)
    return (
        f'<table class="policies"><thead><tr><th scope="col">policy</th><th scope="col">price</th>{head}</tr>'
        f"</thead><tbody>{''.join(written)}</tbody></table>"
    )


def _number(head: str, text: str) -> str:
    flaw = " flaw" if head in _FLAWS and text != "-" else ""
    return f'<td class="n{flaw}" data-head="{head}">{"0" if text == "-" else text or "–"}</td>'


def _wrong_calls(groups: Mapping[str, Sequence[Replayed]]) -> Iterator[str]:
    """Name the calls that were refused, passed the room or are invalid, by policy and recording."""
    flaws: tuple[tuple[str, Callable[[CallRow], bool]], ...] = (
        ("refused", lambda row: row.refused is not None),
        ("over the room", lambda row: row.over_limit),
        ("invalid", lambda row: bool(row.faults)),
    )
    told = []
    shared = _shared_name(list(groups))
    for column in zip(*groups.values(), strict=True):
        for word, is_one in flaws:
            found = [
                (name, [row.index + 1 for row in one.calls if is_one(row)])
                for name, one in zip(groups, column, strict=True)
            ]
            places = [(name, calls) for name, calls in found if calls]
            if not places:
                continue
            shown = "; ".join(
                safe(f"{name.removeprefix(shared)}: " if len(groups) > 1 else "")
                + ("call " if len(calls) == 1 else "calls ")
                + runs(calls)
                for name, calls in places[:_MOST_PLACES]
            )
            more = len(places) - _MOST_PLACES
            shown += f"; and in {plural(more, 'more recording')}" if more > 0 else ""
            count = plural(sum(len(calls) for _, calls in places), "call")
            told.append(f"<strong>{safe(column[0].policy)}</strong>, {count} {word}: {shown}")
    where = f" of {safe(shared.removesuffix(', '))}" if shared else ""
    yield from _list(f"Calls{where} that were not sent, or not as they should be", told)


def _shared_name(names: Sequence[str]) -> str:
    """Return the file that all names begin with, and its comma: it is said once."""
    files = {name.partition(", ")[0] for name in names}
    return f"{files.pop()}, " if len(names) > 1 and len(files) == 1 else ""


def _list(title: str, items: Iterable[str], *, kind: str = "") -> Iterator[str]:
    found = [f"<li>{item}</li>" for item in items]
    if found:
        yield (f"<h2>{title}</h2>" if title else "") + f'<ul class="{kind}">{"".join(found)}</ul>'


def _evidence_bars(totals: Sequence[Replayed]) -> Iterator[str]:
    """Draw how much of the evidence is in view: a bar a policy, paler where it was shortened or retold."""
    if not any(one.totals.evidence.sought for one in totals):
        return
    rows = []
    for place, one in enumerate(totals):
        found, x, drawn = one.totals.evidence, 0.0, list[str]()
        for count, pale in ((found.whole, ""), (found.shortened + found.retold, " pale")):
            width = _WIDTH * count / (found.sought or 1)
            drawn.append(f'<rect class="{colour(place)}{pale}" x="{x:.1f}" width="{width:.1f}" height="10"/>')
            x += width
        share = "" if found.share is None else f"{found.share:.0%}"
        rows.append(
            f'<tr><td>{sign(colour(place))}{safe(one.policy)}</td><td class="bar">'
            f'<svg viewBox="0 0 {_WIDTH} 10" preserveAspectRatio="none" aria-hidden="true">'
            f"{''.join(drawn)}</svg>"
            f'</td><td class="n">{share}</td></tr>'
        )
    yield "<h2>Evidence in view when its question comes</h2>"
    yield '<p class="note">Of the messages that have the answer; paler: shortened or retold.</p>'
    yield f'<table class="policies"><tbody>{"".join(rows)}</tbody></table>'


def _loss_table(cells: Sequence[Mapping[str, str]], name: str, title: str, note: str) -> Iterator[str]:
    """Say how much is lost: a row for each policy, named in one of its cells; nothing without cells."""
    if not cells:
        return
    heads = list(dict.fromkeys(head for one in cells for head, text in one.items() if text and head != name))
    rows = [
        f"<tr><td>{sign(colour(place))}{safe(one[name])}</td>"
        f"{''.join(_number(safe(head), one.get(head, '')) for head in heads)}</tr>"
        for place, one in enumerate(cells)
    ]
    head = "".join(f'<th scope="col" class="n">{safe(word)}</th>' for word in heads)
    yield f"<h2>{title}</h2>"
    yield f'<p class="note">{note}</p>'
    yield (
        f'<table class="policies"><thead><tr><th scope="col">policy</th>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


# Each call.


def _is_trimmed(results: Sequence[Replayed]) -> bool:
    """Tell whether policies had anything to do: else all lines are one."""
    return any(
        row.over_before or row.evicted or row.refused is not None for one in results for row in one.calls
    )


def _recordings(groups: Mapping[str, Sequence[Replayed]], most: int) -> Iterator[str]:
    """Draw the recordings in which something had to be trimmed, with a word on the others."""
    trimmed = {name: results for name, results in groups.items() if _is_trimmed(results)}
    if len(groups) > 1 or not trimmed:
        rest = len(groups) - len(trimmed)
        yield "<h2>By call</h2>"
        if rest:
            count = plural(len(groups), "recording")
            yield f"<p>Nothing had to be trimmed in {rest:,} of {count}: no chart.</p>"
        if len(trimmed) > most:
            yield f"<p>Charts of the first {most:,} of {len(trimmed):,} others.</p>"
    for name, results in islice(trimmed.items(), most):
        yield f"<h2>{safe(name)}</h2>"
        yield _charts(results)


def _charts(results: Sequence[Replayed]) -> str:
    """Draw what happened in one recording."""
    dollars = all(one.dollars is not None and one.totals.price for one in results)
    charts: list[tuple[str, Callable[[Replayed], list[float | None]], Callable[[float, float], str]]] = [
        ("Tokens per call", lambda one: [_unless_refused(row, row.tokens) for row in one.calls], _plain),
        (
            "Reuse so far: of all tokens, those that began the call before",
            _reuse,
            _as_share,
        ),
        (
            "Price so far, in dollars" if dollars else "Price so far, in tokens of plain input",
            lambda one: _so_far(one, in_dollars=dollars),
            _money if dollars else _plain,
        ),
    ]
    if sum(row.evidence is not None for row in results[0].calls) > 1:
        charts.append(("Evidence in view, of all questions so far", _evidence, _as_share))
    rooms = {room for one in results for room in one.rooms}
    drawn = []
    for place, (heading, values, write) in enumerate(charts):
        lines = [_Line(at, one.policy, one.is_sound, values(one)) for at, one in enumerate(results)]
        limit = float(next(iter(rooms))) if place == 0 and len(rooms) == 1 else None
        drawn.append(_figure(heading, lines, write, limit))
    return f'<div class="plots">{"".join(drawn)}</div>{_key(results)}'


def _highest(values: Sequence[tuple[bool, float]]) -> float:
    """Return the largest number of those that send every call, if there are any: others would hide them."""
    return max(
        (value for is_sound, value in values if is_sound),
        default=max((value for _, value in values), default=0.0),
    )


def _reuse(one: Replayed) -> list[float | None]:
    """Share of all that was sent up to each call that was a prefix of the call before it."""
    sent = accumulate(row.tokens for row in one.calls)
    shared = accumulate(row.shared_tokens for row in one.calls)
    return [
        _unless_refused(row, part / (whole or 1))
        for row, part, whole in zip(one.calls, shared, sent, strict=True)
    ]


def _unless_refused(row: CallRow, value: float) -> float | None:
    return None if row.refused is not None else value


def _so_far(one: Replayed, *, in_dollars: bool) -> list[float | None]:
    each = (one.dollars or 0.0) / one.totals.price if in_dollars else 1.0
    return [price * each for price in accumulate(row.price for row in one.calls)]


def _evidence(one: Replayed) -> list[float | None]:
    """Share of the evidence in view, over the questions up to each call."""
    found: list[float | None] = []
    known: Evidence | None = None
    for row in one.calls:
        if row.evidence is not None:
            known = row.evidence if known is None else known + row.evidence
        found.append(None if known is None else known.share)
    return found


def _key(results: Sequence[Replayed]) -> str:
    """Name the lines; those that are one line all the way stand together."""
    alike: dict[tuple[tuple[object, ...], ...], list[tuple[int, str]]] = {}
    for place, one in enumerate(results):
        way = tuple((row.tokens, row.shared_tokens, row.price, row.refused) for row in one.calls)
        alike.setdefault(way, []).append((place, one.policy))
    items = []
    for few in alike.values():
        names = " = ".join(safe(name) for _, name in few)
        items.append(f"<li>{sign(colour(few[-1][0]))}{names}</li>")
    return f'<ul class="key">{"".join(items)}</ul>'


def _figure(
    heading: str, lines: Sequence[_Line], write: Callable[[float, float], str], limit: float | None
) -> str:
    """Draw a line for each policy; a gap is a call that was refused, with a mark at the foot."""
    calls = max((len(line.values) for line in lines), default=0)
    highest = _highest(
        [(line.is_sound, value) for line in lines for value in line.values if value is not None]
    )
    step, count = _step(max(highest, limit or 0.0), 1.0 if write is _as_share else None)
    top = step * count
    drawn = [
        *(
            f'<line x1="0" x2="{_WIDTH}" y1="{_HEIGHT * at / count:.1f}" y2="{_HEIGHT * at / count:.1f}"/>'
            for at in range(count)
        )
    ]
    if limit is not None:
        y = _HEIGHT * (1 - limit / top)
        drawn.append(
            f'<line class="limit" x1="0" x2="{_WIDTH}" y1="{y:.1f}" y2="{y:.1f}">'
            "<title>the room</title></line>"
        )
    across = _WIDTH / max(1, calls - 1)
    for line in lines:
        kind = colour(line.place)
        for few in _pieces(line.values):
            points = " ".join(f"{at * across:.1f},{_HEIGHT * (1 - value / top):.1f}" for at, value in few)
            if len(few) == 1:  # a line of one point would not be seen
                points += f" {few[0][0] * across + 4:.1f},{_HEIGHT * (1 - few[0][1] / top):.1f}"
            drawn.append(
                f'<polyline class="{kind}" points="{points}"><title>{safe(line.name)}</title></polyline>'
            )
        drawn += [
            f'<rect class="{kind}" x="{at * across - 3:.1f}" y="{_HEIGHT - 14}" width="6" height="14">'
            f"<title>{safe(line.name)}: call {at + 1} was refused</title></rect>"
            for at, value in enumerate(line.values)
            if value is None and write is not _as_share
        ]
    ticks = "".join(f"<li>{write(step * at, step)}</li>" for at in range(count, -1, -1))
    room = f", dashed: the room of {limit:,.0f}" if limit is not None else ""
    beyond = [line.name for line in lines if any((value or 0) > top for value in line.values)]
    room += "; above it: " + safe(", ".join(f"“{name}”" for name in beyond)) if beyond else ""
    return (
        f'<figure><figcaption>{heading}{room}</figcaption><div class="plot"><ul class="ticks">{ticks}</ul>'
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="none" role="img"'
        f' aria-label="{escape(heading)}">{"".join(drawn)}</svg>'
        f'<div class="axis"><span>call 1</span><span>call {calls:,}</span></div></div></figure>'
    )


def _pieces(values: Sequence[float | None]) -> Iterator[list[tuple[int, float]]]:
    """Cut a line where nothing was sent, and thin it out where it has more points than one sees."""
    step = max(1, len(values) // _MOST_POINTS)
    few = list[tuple[int, float]]()
    for at, value in enumerate(values):
        if value is None:
            if few:
                yield few
            few = []
        elif at % step == 0 or at == len(values) - 1:
            few.append((at, value))
    if few:
        yield few


def _step(highest: float, whole: float | None) -> tuple[float, int]:
    """Choose round numbers for an axis: how far apart, and how many of them."""
    if whole is not None or highest <= 0:
        return (whole or 1.0) / 4, 4
    rough = highest / 4
    size = 10.0 ** floor(log10(rough))
    step = next(size * by for by in (1.0, 2.0, 2.5, 5.0, 10.0) if size * by >= rough * 0.999999)
    return step, max(1, -int(-highest // step))


def _plain(value: float, step: float) -> str:
    return f"{value:,.{_digits(step)}f}"


def _as_share(value: float, step: float) -> str:
    return f"{value:.0%}"


def _money(value: float, step: float) -> str:
    return f"${value:,.{_digits(step)}f}" if value else "$0"


def _digits(step: float) -> int:
    """Return the fewest digits behind the point that say a step in full."""
    return next(digits for digits in range(12) if digits == 11 or abs(round(step, digits) / step - 1) < 1e-9)
