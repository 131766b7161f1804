"""Where a text of a user is in what is sent, word for word, and which canaries are in view by round."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from trimtab.counting.schemas import system_texts
from trimtab.formats import Format, mapping_of
from trimtab.replay.canaries import is_same
from trimtab.replay.players import View
from trimtab.replay.record import Canary, Messages, ModelCall, Recording
from trimtab.replay.results import Survival, Tally
from trimtab.session.messages import RECALL_TAG
from trimtab.strategies.exact_values import fold, says
from trimtab.strategies.fact_extractor import FACTS_TAG
from trimtab.strategies.must_keep import VALUES_LABEL, unescape
from trimtab.strategies.rules_message import RULES_TAG
from trimtab.strategies.summarizer import SUMMARY_TAG

__all__ = ["ROUNDS", "Place", "Sent", "Watch", "sought_of", "texts_by_place"]

ROUNDS = 5

Place = Literal["message", "rules", "facts", "summary", "values", "recalled"]
"""Where a text is: in a message or the system text, or in what trimtab wrote. `values` is the line behind a
summary that restates what it lost."""

_PLACES: Mapping[str, Place] = {
    RULES_TAG: "rules",
    FACTS_TAG: "facts",
    SUMMARY_TAG: "summary",
    RECALL_TAG: "recalled",
}
_MARKED = re.compile(rf'<({"|".join(_PLACES)})(?: [^<>\n]*)? by="trimtab">\n([^<]*)\n</')
"""What stands in a mark is escaped: the first `<` ends it."""


def sought_of(text: str, /) -> str:
    """Return a text as it is looked for: white space folded, and without the stop at its end."""
    folded = fold(text)
    return folded.rstrip(" .!?。！？") or folded


class Sent:
    """Texts that are sent, to look into: as they are, and without the escapes of trimtab's marks."""

    __slots__ = ("_texts",)

    def __init__(self, texts: Iterable[str]) -> None:
        """Join folded texts; nothing that is looked for goes over the border of two."""
        joined = "\n".join(texts)
        self._texts = (joined, unescape(joined)) if "&" in joined else (joined,)

    def says(self, sought: str) -> bool:
        """Tell whether they say a text word for word, as `sought_of` returns it."""
        return any(says(text, sought) for text in self._texts)


def texts_by_place(form: Format, messages: Messages, system: Any = None) -> Iterator[tuple[Place, str]]:
    """Yield the folded texts that are sent by where they are; what is in a mark is still escaped.

    Args:
        form: The wire form of the messages.
        messages: What is sent.
        system: System text beside them.
    """
    for message in messages:
        yield from _split(form.full_text(mapping_of(message)))
    for text in system_texts(system):
        yield from _split(text)


def _split(text: str) -> list[tuple[Place, str]]:
    """Cut a text into what trimtab marked and what is around it."""
    found: list[tuple[Place, str]] = []
    end = 0
    for mark in _MARKED.finditer(text) if "trimtab" in text else ():
        found.append(("message", text[end : mark.start()]))
        place, body = _PLACES[mark[1]], mark[2]
        before, label, line = body.rpartition(f"\n{VALUES_LABEL}")
        if place == "summary" and label and "\n" not in line:
            found.append(("values", line))
            body = before
        found.append((place, body))
        end = mark.end()
    found.append(("message", text[end:]))
    return [(place, fold(one)) for place, one in found if one.strip()]


class Watch:
    """Looks for the canaries of a recording in what a policy sends, at the end of each round.

    A round is a fifth of the calls, rounded up; a recording of fewer calls ends several rounds with one call.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        count = len(recording.calls)
        self._ends = [max(0, -(-count * number // ROUNDS) - 1) for number in range(1, ROUNDS + 1)]
        self._sought = [(canary, sought_of(canary.text)) for canary in recording.canaries]
        self._rounds = list[Mapping[str, Tally]]()
        self._lost = tuple[Canary, ...]()

    def look(self, index: int, call: ModelCall, view: View | None, /) -> None:
        """Look for them where a round ends.

        Args:
            index: The call's place.
            call: The call.
            view: What is sent for it; None: nothing could be, so that all are lost.
        """
        ends = self._ends.count(index)
        if not self._sought or not ends:
            return
        form = self._recording.format
        shown = () if view is None else texts_by_place(form, view.messages, view.system)
        sent = Sent(text for _, text in shown)
        tallies, lost = dict[str, Tally](), list[Canary]()
        for canary, sought in self._sought:
            if not self._is_said(canary, call):
                continue
            is_lost = not sent.says(sought)
            tallies[canary.kind] = tallies.get(canary.kind, Tally()) + Tally(sought=1, lost=is_lost)
            lost += [canary] if is_lost else []
        self._rounds += [tallies] * ends
        self._lost = tuple(lost)

    def survival(self) -> Survival:
        """Return what was found so far."""
        return Survival(rounds=tuple(self._rounds), lost=self._lost)

    def _is_said(self, canary: Canary, call: ModelCall) -> bool:
        """Tell whether a call has the message that says it."""
        at = canary.at + self._recording.lead
        last = self._recording.messages
        return at < len(call.messages) and is_same(call.messages[at], last[at])
