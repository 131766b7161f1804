"""Views: a conversation as a policy sends it within a budget, a place for what left, too."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from trimtab.budget import Budget
from trimtab.context import Fitted
from trimtab.errors import BudgetExceededError, ConfigurationError, ContextError, CountingError
from trimtab.formats import Format, get_format, mapping_of
from trimtab.inspector.subject import Subject
from trimtab.report import InsertedRow, MessageRow, Report
from trimtab.report.html import kind_of
from trimtab.report.text import clip, number, plain, plural, runs

__all__ = ["Entry", "View", "Views", "in_lines"]

PREVIEW_CHARS = 400
"""Of a message in the list; two lines of it are seen."""
MORE_TOKENS = 2_000
"""How many more tokens the page tries out."""
_KEPT_VIEWS = 24
"""Views at hand: a slider goes back and forth."""

_WHY: Mapping[str, str] = {
    "over_limit": "the budget has no room for it",
    "over_cap": "its block has no room for it",
    "unit_of_removed": "it goes with a call or a result that left",
    "min_messages": "too few would have remained",
    "block_dropped": "its whole block left",
    "callback": "a callback took it out",
    "truncation": "cut to what there is room for",
    "superseded_by_summary": "a summary tells it",
    "repair": "a provider would refuse it",
    "cannot_lead": "it may not stand first",
}
"""Reasons of a report in words."""
_WHY_CHANGED: Mapping[str, str] = {
    "over_limit": "so that the budget has room for the rest",
    "over_cap": "so that its block has room for the rest",
}
"""Where they are of a message of which something is sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One place of the list: a message of the input, or one that was put in."""

    kind: str
    """What the strip of a report calls it."""
    fate: str
    """The same for people."""
    why: str
    tokens: str
    role: str
    title: str
    """Which message it is: its index, a version of a log, or that it was put in."""
    note: str
    """Its block, its label, the tools it calls."""
    index: int | None
    """In the input; None: trimtab put it in."""
    place: int | None
    """In the output; None: it left."""


@dataclass(slots=True)
class View:
    """What is sent under one policy and one budget, and what is not."""

    fitted: Fitted[Any]
    error: str = ""
    """Why it does not fit; the rest is of the nearest attempt then."""
    sources: Sequence[Any] = ()
    """The messages of the input, by index."""
    _entries: list[Entry] | None = field(default=None)

    @property
    def report(self) -> Report:
        """The report of the fit."""
        return self.fitted.report

    @property
    def format(self) -> Format:
        """The wire form."""
        return get_format(self.report.format)

    @property
    def entries(self) -> list[Entry]:
        """Every message of the input in its order, and what was put in where it stands."""
        if self._entries is None:
            self._entries = list(_entries(self))
        return self._entries

    def source_text(self, entry: Entry) -> str:
        """Return what a message says as it came; that of one that was put in as it is sent."""
        return (
            self.sent_text(entry) if entry.index is None else text_in(self.format, self.sources[entry.index])
        )

    def sent_text(self, entry: Entry) -> str:
        """Return what of it is sent; empty if it left."""
        return "" if entry.place is None else text_in(self.format, self.fitted.messages[entry.place])

    def text(self, entry: Entry) -> str:
        """Return what is sent of it; of what left, what it said."""
        return self.source_text(entry) if entry.place is None else self.sent_text(entry)

    def stays(self) -> set[int]:
        """List by index the messages of which something is sent."""
        return {row.index for row in self.report.messages if row.fate != "evicted"}


def text_in(form: Format, message: Any) -> str:
    """Return all that a message says: texts, calls with their arguments, results, reasoning."""
    content = mapping_of(message)
    return form.full_text(content) or form.transcript(content)


def in_lines(text: str) -> str:
    """Make the text of others harmless to read: its lines stay, controls and marks of direction are shown."""
    return "\n".join(map(plain, text.splitlines()))


def preview_in(text: str) -> str:
    """Return the beginning of a text on one line."""
    head = " ".join(text[: PREVIEW_CHARS + 1].split())
    return clip(plain(head), PREVIEW_CHARS)


def _entries(view: View) -> Iterator[Entry]:
    report = view.report
    places = {index: at for at, index in reversed([*enumerate(view.fitted.positions)]) if index is not None}
    actions = {block.name: block.actions for block in report.blocks}
    named = len(report.blocks) > 1
    waiting, at = list(report.inserted), 0
    for row in report.messages:
        while row.fate != "evicted" and waiting and waiting[0].position <= at:
            yield _put_in(waiting.pop(0))
            at += 1
        yield _entry(row, places.get(row.index), actions.get(row.block, ()), named=named)
        at += row.fate != "evicted"
    yield from map(_put_in, waiting)


def _put_in(row: InsertedRow) -> Entry:
    return Entry(
        kind="inserted",
        fate="put in",
        why=row.why,
        tokens=plural(row.tokens, "token"),
        role=row.role,
        title="trimtab",
        note="",
        index=None,
        place=row.position,
    )


def _entry(row: MessageRow, place: int | None, actions: Sequence[str], *, named: bool) -> Entry:
    notes = [row.block] if named else []
    notes += [row.label] if row.label else []
    notes += [", ".join(dict.fromkeys(row.tool_names))] if row.tool_names else []
    return Entry(
        kind=kind_of(row),
        fate=_fate(row, actions),
        why=_why(row),
        tokens=_tokens(row),
        role=row.role,
        title=f"#{row.index}",
        note=" · ".join(clip(plain(one), 40) for one in notes),
        index=row.index,
        place=place,
    )


def _why(row: MessageRow) -> str:
    if row.reason is None:
        return ""
    return _WHY_CHANGED.get(row.reason, _WHY[row.reason]) if row.fate == "changed" else _WHY[row.reason]


def _fate(row: MessageRow, actions: Sequence[str]) -> str:
    if row.fate == "changed":
        made = [action for action in ("shortened", "cleared") if action in actions]
        return made[0] if len(made) == 1 else "changed"
    words = {"summarized": "summarized", "pinned": "kept, pinned"}
    return words.get(kind_of(row), row.fate)


def _tokens(row: MessageRow) -> str:
    if row.fate == "changed":
        return f"{number(row.tokens_before)} → {number(row.tokens_after)} tokens"
    size = row.tokens_before if row.fate == "evicted" else row.tokens_after
    return f"{number(size)} tokens"


class More(NamedTuple):
    """What more room would change."""

    tokens: int
    said: str


class Views:
    """The views of a subject, made when asked for; a budget is tried with the sizes already known."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._bases: OrderedDict[object, View] = OrderedDict()
        self._views: OrderedDict[object, View] = OrderedDict()

    def view(self, policy: str, window: int | None = None) -> View:
        """Give the view under a policy; at its own budget, or at one in tokens.

        Raises:
            ContextError: There is no such policy, or it cannot be applied.
        """
        key = (policy, self._stamp(policy))
        base = _keep(self._bases, key, lambda: self._base(policy))
        if window is None or window == base.report.window_tokens:
            return base
        return _keep(self._views, (key, window), lambda: self._at(base, window))

    def more(self, view: View, policy: str) -> More | None:
        """Say what a budget with more tokens would bring back; None where that cannot be worked out."""
        report = view.report
        try:
            wider = self.view(policy, report.window_tokens + MORE_TOKENS)
        except ContextError:  # what is shown needs no answer to what might be
            return None
        back = sorted(wider.stays() - view.stays())
        whole = [row.index for row in view.report.messages if row.fate == "changed"]
        again = [row.index for row in wider.report.messages if row.fate == "kept" and row.index in set(whole)]
        said = []
        if back:
            said.append(f"bring back {plural(len(back), 'message')} ({clip(runs(back), 60)})")
        if again:
            said.append(f"leave {plural(len(again), 'message')} whole ({clip(runs(again), 60)})")
        if not said:
            said.append("change nothing" if report.evicted_message_count else "change nothing: all is sent")
        return More(MORE_TOKENS, " and ".join(said))

    def _stamp(self, policy: str) -> object:
        """Tell one state of what is fitted from the next: a file that was edited, a log that grew."""
        session = self._subject.session
        edited = None
        if not policy.startswith("{") and policy in self._subject.policies:
            path = Path(policy)
            edited = path.stat().st_mtime_ns if path.is_file() else None
        return edited, None if session is None else session.version

    def _at(self, base: View, window: int) -> View:
        report = base.report
        if window <= report.output_reserve_tokens:
            raise ConfigurationError(
                f"a budget of {window:,} tokens has no room beside the {report.output_reserve_tokens:,} kept"
                " for the answer: choose more"
            )
        budget = Budget(
            window,
            output_reserve=report.output_reserve_tokens,
            overhead_tokens=report.overhead_tokens,
            margin="auto" if self._subject.is_margin_auto else report.margin_tokens,
        )
        return _view(lambda: base.fitted.at(budget))

    def _base(self, policy: str) -> View:
        return _view(lambda: self._subject.fit(policy))


def _view(make: Callable[[], Fitted[Any]]) -> View:
    try:
        fitted, error = make(), ""
    except BudgetExceededError as refusal:
        if refusal.attempt is None:
            raise
        fitted, error = refusal.attempt, str(refusal)
    with suppress(CountingError):  # what the fit did not need has no size then, and the page says ?
        fitted.count_all()
    # What a report's rows are of, in their order; no door offers it for a message that was changed.
    return View(fitted, error, sources=fitted._plan.given)


def _keep(kept: OrderedDict[object, View], key: object, make: Callable[[], View]) -> View:
    """Return what is at hand, or make it; the one that nobody asked for longest goes."""
    if key not in kept:
        kept[key] = make()
        if len(kept) > _KEPT_VIEWS:
            kept.popitem(last=False)
    kept.move_to_end(key)
    return kept[key]
