"""Two views side by side: the same message in one row, whatever stands around it in each of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

from trimtab.inspector.views import Entry, View
from trimtab.report.text import clip, plain, runs

__all__ = ["Change", "Pair", "align", "changes"]


_NOT_THERE = ("not there", "")


class Pair(NamedTuple):
    """A message on both sides of a comparison."""

    entry: Entry
    view: View
    left: Entry | None
    right: Entry | None
    differs: bool
    """Whether something else becomes of it: a pin or a reason alone changes nothing of what is sent."""


class Change(NamedTuple):
    """A line about messages of which the same becomes in one view and the same in the other."""

    left: tuple[str, str]
    """What becomes of them, and its kind."""
    right: tuple[str, str]
    messages: int
    which: str
    first: int
    """The place of the first of them in the list."""


def changes(pairs: Sequence[Pair]) -> list[Change]:
    """Say in a few lines what differs, most messages first."""
    found: dict[tuple[tuple[str, str], tuple[str, str]], list[int]] = {}
    for at, pair in enumerate(pairs):
        if pair.differs:
            sides = [(one.fate, one.kind) if one else _NOT_THERE for one in (pair.left, pair.right)]
            found.setdefault((sides[0], sides[1]), []).append(at)
    return [
        Change(*sides, len(places), _which([pairs[at].entry for at in places]), places[0])
        for sides, places in sorted(found.items(), key=lambda one: -len(one[1]))
    ]


def _which(entries: Sequence[Entry]) -> str:
    numbers = sorted(entry.number for entry in entries if entry.number is not None)
    others = dict.fromkeys(entry.title for entry in entries if entry.number is None)
    return clip(plain(", ".join([*others, *([runs(numbers)] if numbers else [])])), 80)


def align(left: View, right: View) -> list[Pair]:
    """Put two views side by side in the order of the first; what only the second has stands as it does there.

    What was inserted is the same where it stands before the same message.
    """
    right_entries = dict(_with_keys(right))
    waiting, pairs = dict(right_entries), list[Pair]()
    order, at = list(right_entries), 0
    place_of = {key: place for place, key in enumerate(order)}
    keys = dict(_with_keys(left))
    for key, entry in keys.items():
        if key not in right_entries:
            pairs.append(Pair(entry, left, entry, None, differs=True))
            continue
        for other in order[at : place_of[key]]:
            if other not in keys and other in waiting:
                pairs.append(Pair(waiting[other], right, None, waiting.pop(other), differs=True))
        at = max(at, place_of[key] + 1)
        twin = waiting.pop(key)
        pairs.append(Pair(entry, left, entry, twin, differs=_differ(left, entry, right, twin)))
    return pairs + [Pair(one, right, None, one, differs=True) for one in waiting.values()]


def _with_keys(view: View) -> Iterator[tuple[Hashable, Entry]]:
    """Name what was inserted by the message that it stands before."""
    waiting = list[Entry]()
    for entry in view.entries:
        if entry.key is None:
            waiting.append(entry)
            continue
        yield from ((("inserted", entry.key, at), one) for at, one in enumerate(waiting))
        waiting.clear()
        yield entry.key, entry
    yield from ((("inserted", None, at), one) for at, one in enumerate(waiting))


def _differ(left: View, one: Entry, right: View, other: Entry) -> bool:
    if one.place is None and other.place is None:
        return one.kind != other.kind  # in one of them it is summarized
    return left.output(one) != right.output(other)
