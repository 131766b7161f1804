"""Rules, and exact values of users, in a view, and where each is shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from trimtab.formats.origin import OriginName
from trimtab.inspector.views import View
from trimtab.replay.canaries import canaries_in
from trimtab.replay.survival import Place, Sent, sought_of, texts_by_place
from trimtab.session import SessionRule

__all__ = ["LOST", "Quote", "quotes_in"]

OWN, LOST = "its own message", "nowhere: lost"
HOST = "the host"
_WORDS: Mapping[Place, str] = {
    "rules": "the block of rules",
    "facts": "the facts",
    "summary": "a summary",
    "values": "the line behind a summary",
    "recalled": "a recalled message",
    "message": "another message",
}
"""What a page calls a place, the first that has the text before the others."""


class Quote(NamedTuple):
    """A rule, or an exact value of a user."""

    kind: str
    text: str
    title: str
    """The message that says it first, or who gave the rule."""
    row: tuple[str, int] | None
    """Where the list has that message; None: it has none."""
    where: str
    """Where it is shown."""


def quotes_in(view: View, rules: Iterable[tuple[SessionRule, int | None]] = ()) -> Sequence[Quote]:
    """List what has to stay as it was said, what is lost first.

    Args:
        view: A view, with the messages it was made of.
        rules: Rules of the session, those of its host and its operators, too; each with the version of the
            message that says it.
    """
    form = view.format
    own = [
        at for at, entry in enumerate(view.entries) if entry.index is not None and entry.number is not None
    ]
    lowered: dict[int, OriginName | None] = {n: view.entries[at].origin for n, at in enumerate(own)}
    messages = [view.sources[view.entries[at].index or 0] for at in own]
    said = [(one.kind, one.text, own[one.at]) for one in canaries_in(form, messages, lowered)]
    known = {sought_of(text) for kind, text, _ in said if kind != "value"}
    places = {view.entries[at].number: at for at in own}
    more = [
        (rule.kind, rule.text, places.get(version), HOST if rule.by == "host" else "a message")
        for rule, version in rules
        if sought_of(rule.text) not in known
    ]
    shown: dict[Place, list[str]] = {}
    for place, text in texts_by_place(form, view.fitted.messages, view.fitted.system):
        shown.setdefault(place, []).append(text)
    sent = [(words, Sent(shown[place])) for place, words in _WORDS.items() if place in shown]
    found = list[Quote]()
    for kind, text, at, whose in [*((*one, "") for one in said), *more]:
        sought = sought_of(text)
        entry = None if at is None else view.entries[at]
        output = None if entry is None else view.output(entry)
        if output is not None and Sent(text for _, text in texts_by_place(form, [output])).says(sought):
            where = OWN
        else:
            where = next((words for words, texts in sent if texts.says(sought)), LOST)
        title = whose if entry is None else entry.title
        found.append(Quote(kind, text, title, None if at is None else view.row_of(at), where))
    return sorted(found, key=lambda one: one.where != LOST)
