"""The rules and exact values of users in a view, and where each is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from trimtab.inspector.views import View
from trimtab.replay.canaries import canaries_in
from trimtab.replay.survival import Place, Sent, sought_of, texts_by_place

__all__ = ["LOST", "Quote", "quotes_in"]

OWN, LOST = "its own message", "nowhere: lost"
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
    """A rule or an exact value of a user."""

    kind: str
    text: str
    title: str
    """The message that says it first."""
    row: tuple[str, int]
    """Where the list has that message."""
    where: str
    """Where it is shown."""


def quotes_in(view: View) -> Sequence[Quote]:
    """List what users said that has to stay as it was said, what is lost first.

    Args:
        view: A view, with the messages it was made of.
    """
    form = view.format
    own = [
        at for at, entry in enumerate(view.entries) if entry.index is not None and entry.number is not None
    ]
    messages = [view.sources[view.entries[at].index or 0] for at in own]
    shown: dict[Place, list[str]] = {}
    for place, text in texts_by_place(form, view.fitted.messages, view.fitted.system):
        shown.setdefault(place, []).append(text)
    sent = [(words, Sent(shown[place])) for place, words in _WORDS.items() if place in shown]
    found = list[Quote]()
    for canary in canaries_in(form, messages):
        at = own[canary.at]
        entry, sought = view.entries[at], sought_of(canary.text)
        output = view.output(entry)
        if output is not None and Sent(text for _, text in texts_by_place(form, [output])).says(sought):
            where = OWN
        else:
            where = next((words for words, texts in sent if texts.says(sought)), LOST)
        found.append(Quote(canary.kind, canary.text, entry.title, view.row_of(at), where))
    return sorted(found, key=lambda one: one.where != LOST)
