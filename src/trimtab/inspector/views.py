"""Views: a conversation as a policy sends it within a budget, a place for what was evicted, too."""

from __future__ import annotations

import functools
import hashlib
import json
from bisect import bisect_left
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from trimtab._fitting.prepare import BLOCK
from trimtab.budget import Budget
from trimtab.context import Fitted
from trimtab.errors import BudgetExceededError, ConfigurationError, CountingError, UnknownNameError
from trimtab.formats import Format, get_format, mapping_of
from trimtab.formats.origin import OriginName
from trimtab.inspector.subject import Subject
from trimtab.report import InsertedRow, MessageRow, Report
from trimtab.report.html import kind_of
from trimtab.report.text import clip, number, plain, plural, reason_words, runs
from trimtab.strategies import CUT_MARKER
from trimtab.strategies.clear_tool_results import DEFAULT_PLACEHOLDER

__all__ = ["Asked", "Entry", "View", "Views", "in_lines", "more_room", "write_time"]

PREVIEW_CHARS = 400
"""Of a message in the list; two lines of it are seen."""
MORE_TOKENS = 2_000
"""How many more tokens the page tries out."""
KEPT_VIEWS = 24
"""Views at hand: a slider goes back and forth."""
_MOST_LARGEST = 3
_CUT = CUT_MARKER.rstrip("]")
"""The beginning of what stands where a text was cut; where all of it is may follow."""
GONE = ("evicted", "summarized")
"""Kinds of entries of which nothing is sent."""
CHANGED = ("changed",)
FILTERS: Mapping[str, str] = {
    "sent": "What the model sees",
    "evicted": "Evicted",
    "changed": "Changed",
    "all": "All messages",
}
"""Which entries a list shows, and what that is called."""
_ORDER = ("evicted", "summarized", "changed", "inserted", "pinned", "kept")
"""Kinds of entries, what a reader asks for first before the others."""

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One place of the list: a message of the input, or one that was inserted."""

    kind: str
    """What the strip of a report calls it."""
    fate: str
    """The same for people."""
    why: str = ""
    before: int | None = None
    """Its size in tokens as it came; None where nobody counted."""
    after: int | None = None
    """What of it is sent."""
    role: str
    title: str
    """Which message it is: its index, a version of a log, or what was inserted."""
    names: tuple[str, ...] = ()
    """Its block, its label, the tools it calls."""
    index: int | None = None
    """In what came; None: trimtab inserted it."""
    place: int | None = None
    """In the output; None: nothing of it is sent."""
    key: Hashable
    """What it is the same by in another view."""
    reason: str | None = None
    """The reason as it is of others, too; None: as it is."""
    is_sized: bool = True
    """Whether anybody was to count it: a session does not know the size of what was evicted."""
    number: int | None = None
    """By which people name it: an index, or a version of a log; None: it was inserted."""
    origin: OriginName | None = None
    """What the host of a session said of its words, if that lowers them."""

    @property
    def tokens(self) -> str:
        """Its size in words: what was evicted as it came, what was changed both ways."""
        if self.kind == "changed" and self.after is not None:
            return f"{number(self.before)} → {number(self.after)} tokens"
        size = self.before if self.kind in GONE else self.after
        return f"{number(size)} tokens" if self.is_sized else ""

    @property
    def note(self) -> str:
        """Its names on one line."""
        return " · ".join(clip(plain(one), 40) for one in self.names)


@dataclass(slots=True)
class View:
    """What is sent under one policy and one budget, and what is not."""

    fitted: Fitted[Any]
    error: str = ""
    """Why it does not fit; the rest is of the nearest attempt then."""
    sources: Mapping[int, Any] = field(default_factory=dict)
    """The messages of the input, by index; those of a log by version."""
    window: int = 0
    """The budget that was asked for, in tokens."""
    what: str = "message"
    """What the numbers of its entries count."""
    listed: list[Entry] | None = None
    """Its entries, where they are made; None: by the rows of its report."""
    keys: Sequence[Hashable] | None = None
    """Of its messages, where they are known."""
    name: Callable[[Iterable[Entry]], list[Entry]] = list
    """What names entries as people do."""
    filters: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    """The places of entries by filter, where somebody asked for them."""
    counted: list[int] = field(default_factory=list[int])

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
        """Every message of the input in its order, and what was inserted where it stands."""
        if self.listed is None:
            if self.keys is None:
                self.keys = keys_of([*self.sources.values()])
            self.listed = self.name(_entries(self, self.keys))
        return self.listed

    @property
    def places(self) -> Mapping[int, int]:
        """Where what is sent stands, by index in what came."""
        if self.listed is None:
            return places_of(self.fitted)
        return {
            entry.index: entry.place
            for entry in self.listed
            if entry.index is not None and entry.place is not None
        }

    def name_of(self, only: str) -> str:
        """Return what a filter is called here: where something was summarized, it is not sent either."""
        has_both = only == "evicted" and any(entry.kind == "summarized" for entry in self.entries)
        return "Evicted, summarized" if has_both else FILTERS[only]

    def most_in(self, only: str) -> int:
        """Return the size of the largest entry that a filter shows, as it came where it was changed."""
        shown = self.listed_in(only)
        return max((max(self.sizes[at], self.entries[at].before or 0) for at in shown), default=0) or 1

    def listed_in(self, only: str) -> Sequence[int]:
        """List the places of the entries that a filter shows.

        Raises:
            UnknownNameError: There is no such filter.
        """
        if only not in FILTERS:
            raise UnknownNameError(f"a list can show one of: {', '.join(FILTERS)}", name=only)
        if only not in self.filters:
            entries = self.entries
            self.filters[only] = [
                at
                for at, entry in enumerate(entries)
                if only == "all"
                or (only == "sent" and entry.kind not in GONE)
                or (only == "evicted" and entry.kind in GONE)
                or (only == "changed" and entry.kind in CHANGED)
            ]
        return self.filters[only]

    def place_of(self, at: int, only: str) -> int:
        """Return which row of a filtered list an entry is, or the next that is shown."""
        return bisect_left(self.listed_in(only), at)

    @property
    def shares(self) -> tuple[int, int]:
        """How many messages are sent, and of how many: those that trimtab inserted are none of either."""
        own = [entry.kind not in GONE for entry in self.entries if entry.number is not None]
        return sum(own), len(own)

    def row_of(self, at: int) -> tuple[str, int]:
        """Return a filter that shows an entry, and its row there."""
        only = "all" if self.entries[at].kind in GONE else "sent"
        return only, self.place_of(at, only)

    @property
    def sizes(self) -> Sequence[int]:
        """How many tokens each entry takes, or took as it came; about so many where nobody counted."""
        if not self.counted:
            self.counted = [self._size(entry) for entry in self.entries]
        return self.counted

    def _size(self, entry: Entry) -> int:
        size = entry.before if entry.kind in GONE else entry.after
        return len(self.source_text(entry)) // 4 if size is None else size

    def source_text(self, entry: Entry) -> str:
        """Return what a message says as it came; that of one that was inserted as it is sent."""
        return (
            self.sent_text(entry) if entry.index is None else text_in(self.format, self.sources[entry.index])
        )

    def sent_text(self, entry: Entry) -> str:
        """Return what of it is sent; empty if it was evicted."""
        return "" if entry.place is None else text_in(self.format, self.fitted.messages[entry.place])

    def text(self, entry: Entry) -> str:
        """Return what is sent of it; of what was evicted, what it said."""
        return self.source_text(entry) if entry.place is None else self.sent_text(entry)

    def output(self, entry: Entry) -> object:
        """Return the message that is sent of it; None if it was evicted."""
        return None if entry.place is None else self.fitted.messages[entry.place]

    def largest(self) -> list[tuple[int, Entry]]:
        """List what is largest of all that is sent, with its place: that took the room."""
        sent = [(at, one) for at, one in enumerate(self.entries) if one.place is not None and one.after]
        return sorted(sent, key=lambda found: -(found[1].after or 0))[:_MOST_LARGEST]

    def fates(self) -> list[Fate]:
        """Say in a few lines what became of all: each fate and reason with its messages, gone before kept."""
        found: dict[tuple[str, str, str], list[tuple[int, Entry]]] = {}
        for at, entry in enumerate(self.entries):
            why = entry.why if entry.reason is None else entry.reason
            found.setdefault((entry.kind, entry.fate, why), []).append((at, entry))
        order = sorted(found, key=lambda one: (_ORDER.index(one[0]), -len(found[one])))
        return [_fate_line(one, found[one]) for one in order]


class Fate(NamedTuple):
    """A line about messages with one fate, for one reason."""

    kind: str
    fate: str
    why: str
    messages: int
    tokens: str
    """Their sizes in sum; empty where nobody knows."""
    which: str
    names: str
    first: int
    """The place of the first of them in the list."""


def _fate_line(key: tuple[str, str, str], found: Sequence[tuple[int, Entry]]) -> Fate:
    entries = [entry for _, entry in found]
    numbers = [entry.number for entry in entries if entry.number is not None]
    which = runs(sorted(numbers)) or ", ".join(dict.fromkeys(entry.title for entry in entries))
    names = dict.fromkeys(name for entry in entries for name in entry.names)
    size = _sum(entry.before if key[0] in GONE else entry.after for entry in entries)
    if key[0] == "changed" and size:
        size = f"{_sum(entry.before for entry in entries) or '?'} → {size}"
    return Fate(
        *key, len(entries), size, clip(plain(which), 60), clip(plain(", ".join(names)), 80), found[0][0]
    )


def _sum(sizes: Iterable[int | None]) -> str:
    known = list(sizes)
    return "" if None in known else f"{sum(size or 0 for size in known):,}"


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


def _entries(view: View, keys: Sequence[Hashable]) -> Iterator[Entry]:
    report = view.report
    places = places_of(view.fitted)
    actions = {block.name: block.actions for block in report.blocks}
    named = len(report.blocks) > 1
    waiting, at = list(report.inserted), 0
    for row in report.messages:
        while row.fate != "evicted" and waiting and waiting[0].position <= at:
            yield inserted_entry(waiting.pop(0))
            at += 1
        yield Entry(
            kind=kind_of(row),
            fate=_fate(row, actions.get(row.block, ()), view, places.get(row.index)),
            why=reason_words(row),
            before=row.tokens_before,
            after=row.tokens_after,
            role=row.role,
            title=f"#{row.index:,}",
            names=names_of(row, named=named),
            index=row.index,
            place=places.get(row.index),
            key=keys[row.index],
            number=row.index,
        )
        at += row.fate != "evicted"
    yield from map(inserted_entry, waiting)


def keys_of(messages: Sequence[Any]) -> list[Hashable]:
    """Name each message by what it says, and how many of those that say the same come after it.

    So that the same message is known again where a policy puts the parts of a request into another order.
    """
    seen, keys = Counter[str](), list[Hashable]()
    for message in reversed(messages):
        said = json.dumps(mapping_of(message), sort_keys=True, default=str)
        digest = hashlib.blake2b(said.encode("utf-8", "replace"), digest_size=16).hexdigest()
        seen[digest] += 1
        keys.append((digest, seen[digest]))
    return keys[::-1]


def places_of(fitted: Fitted[Any]) -> dict[int, int]:
    """Return by index in the input where each message stands in the output."""
    return {index: at for at, index in reversed([*enumerate(fitted.positions)]) if index is not None}


def row_sources(fitted: Fitted[Any]) -> Sequence[Any]:
    """Return what the rows of a report are of, in their order."""
    return fitted.settlement.given  # no door offers it for a message that was changed


def inserted_entry(row: InsertedRow) -> Entry:
    """Make the entry of what trimtab inserted."""
    return Entry(
        kind="inserted",
        fate="inserted",
        why=row.why,
        after=row.tokens,
        role=row.role,
        title="by trimtab",
        place=row.position,
        key=None,
    )


def names_of(row: MessageRow, *, named: bool) -> tuple[str, ...]:
    """List what people call a message by: its block if there are several, its label, its tools."""
    words = (row.block if named else "", row.label or "", *row.tool_names)
    return tuple(dict.fromkeys(filter(None, words)))


def _fate(row: MessageRow, actions: Sequence[str], view: View, place: int | None) -> str:
    if row.reason == "cache_mark":
        return "marked"
    if row.fate == "changed":
        made = [action for action in ("shortened", "cleared") if action in actions]
        if len(made) < 2 or place is None:
            return made[0] if made else "changed"
        text = text_in(view.format, view.fitted.messages[place])
        return "cleared" if DEFAULT_PLACEHOLDER[:-1] in text else "shortened" if _CUT in text else "changed"
    words = {"summarized": "summarized", "pinned": "kept, pinned"}
    return words.get(kind_of(row), row.fate)


class More(NamedTuple):
    """What more room would change."""

    tokens: int
    said: str


def more_room(view: View, wider: View) -> More:
    """Say what a view with more room has that another has not."""
    now, then = view.places, wider.places
    numbers = {
        entry.index: entry.number
        for entry in view.entries
        if entry.index is not None and entry.number is not None
    }
    changed = {entry.index for entry in view.entries if entry.kind == "changed" and entry.fate != "marked"}
    back = [number for at, number in numbers.items() if at in then and at not in now]
    whole = [
        number
        for at, number in numbers.items()
        if at in changed and at in then and wider.fitted.messages[then[at]] == view.sources[at]
    ]
    said = []
    for what, which in (("bring back", back), ("leave whole", whole)):
        if which:
            of = "" if view.what == "message" else f"{view.what} "
            said.append(f"{what} {plural(len(which), 'message')} ({of}{clip(runs(sorted(which)), 60)})")
    if not said:
        gone = bool(view.listed_in("evicted"))
        said.append("change nothing" if gone else "change nothing: all is sent")
    return More(MORE_TOKENS, " and ".join(said))


@dataclass(frozen=True, slots=True)
class Asked:
    """What a policy is applied to: of a log, up to a version."""

    policy: str
    version: int | None = None
    edited: int | None = None
    """When the file of the policy was written, as a page knew it."""


class Views:
    """The views of a subject, made when asked for; a budget is tried with the sizes already known."""

    def __init__(
        self, subject: Subject, *, name: Callable[[int, Iterable[Entry]], list[Entry]] | None = None
    ) -> None:
        """Make none yet; `name` names the messages of a log by their versions."""
        self._subject = subject
        self._name = name
        self._bases: OrderedDict[Asked, View] = OrderedDict()
        self._views: OrderedDict[tuple[Asked, int], View] = OrderedDict()

    def view(self, asked: Asked, window: int | None = None) -> View:
        """Give the view under a policy; at its own budget, or at one in tokens.

        Raises:
            ContextError: There is no such policy, or it cannot be applied.
        """
        if asked not in self._bases:  # a page of before the file was edited is told from what is at hand
            asked = replace(asked, edited=write_time(asked.policy, self._subject.policies))
        base = keep(self._bases, asked, lambda: self._base(asked))
        if window is None or window == base.report.window_tokens:
            return base
        if asked.policy in self._subject.fixed:
            raise ConfigurationError(
                f"this is what was done, with {base.report.window_tokens:,} tokens: choose another policy to"
                " try another budget"
            )
        return keep(self._views, (asked, window), lambda: self._at(base, window, asked.version))

    def _at(self, base: View, window: int, version: int | None) -> View:
        budget = budget_like(base.report, window, is_margin_auto=self._subject.is_margin_auto)
        view = self._view(lambda: base.fitted.at(budget), version)
        view.keys = base.keys
        return view

    def _base(self, asked: Asked) -> View:
        return self._view(lambda: self._subject.fit(asked.policy, asked.version), asked.version)

    def _view(self, make: Callable[[], Fitted[Any]], version: int | None) -> View:
        fitted, error = attempt(make)
        sources = dict(enumerate(row_sources(fitted)))
        view = View(fitted, error, sources=sources, window=fitted.report.window_tokens)
        if self._name is not None and version is not None:
            view.what, view.name = "version", functools.partial(self._name, version)
        return view


def write_time(policy: str, offered: Sequence[str]) -> int | None:
    """Say when the file of a policy was written; None where it is no file."""
    if policy.startswith("{") or policy not in offered:
        return None
    path = Path(policy)
    return path.stat().st_mtime_ns if path.is_file() else None


def budget_like(report: Report, window: int, *, is_margin_auto: bool = False) -> Budget:
    """Make another budget with what is kept free in that of a report.

    Raises:
        ConfigurationError: Nothing remains beside that.
    """
    if window <= report.output_reserve_tokens:
        raise ConfigurationError(
            f"a budget of {window:,} tokens has no room beside the {report.output_reserve_tokens:,} reserved"
            " for the answer: choose a larger one"
        )
    return Budget(
        window,
        output_reserve=report.output_reserve_tokens,
        overhead_tokens=report.overhead_tokens,
        margin="auto" if is_margin_auto else report.margin_tokens,
    )


def attempt(make: Callable[[], Fitted[Any]]) -> tuple[Fitted[Any], str]:
    """Fit, and count what the fit did not need; what does not fit comes with the error that says so.

    Raises:
        BudgetExceededError: It does not fit, and there was no attempt.
    """
    try:
        fitted, error = make(), ""
    except BudgetExceededError as refusal:
        if refusal.attempt is None:
            raise
        fitted, error = refusal.attempt, _refusal(refusal)
    with suppress(CountingError):  # what the fit did not need has no size then, and the page says ?
        fitted.count_all()
    return fitted, error


def _refusal(error: BudgetExceededError) -> str:
    """Say what does not fit to somebody who can move a slider."""
    needed, room = error.needed_tokens, error.limit_tokens
    if needed is None or room is None:
        return str(error)
    of = "" if error.block in (None, BLOCK) else f" of block {plain(str(error.block))}"
    told = f"What has to stay{of} needs {needed:,} tokens, and there is room for {max(0, room):,}."
    if error.heaviest is not None:
        one = error.heaviest
        told += f" The largest of it is #{one.index:,} ({plain(one.role)}, {plural(one.tokens, 'token')})."
    return f"{told} Choose a larger budget, or a policy that shortens messages."


def keep(kept: OrderedDict[K, V], key: K, make: Callable[[], V], *, most: int = KEPT_VIEWS) -> V:
    """Return what is at hand, or make it; the one that nobody asked for longest goes."""
    if key not in kept:
        kept[key] = make()
        if len(kept) > most:
            kept.popitem(last=False)
    kept.move_to_end(key)
    return kept[key]
