"""How much of the messages that hold an answer is in view when its question comes?"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from html import unescape
from math import log
from typing import Any

from trimtab.counting.schemas import system_texts
from trimtab.errors import BudgetExceededError
from trimtab.formats import mapping_of
from trimtab.formats.values import compact_json
from trimtab.relevance import question_terms, text_terms
from trimtab.replay.players import Keys, Player, View
from trimtab.replay.record import Messages, ModelCall, Question, Recording
from trimtab.replay.results import Evidence
from trimtab.session.recollect import telling_terms

_QUOTE = 0.9
"""What share of its words, each by how rare it is, a line has to have to be a sentence that was said.

With less it is a sentence of the same kind about somebody else.
"""

_HALF = 0.5
"""What share of a message has to be told, or of a question's words to stand beside the answer."""

_EDGE_CHARS = 20
"""A message in view that begins or ends with as many characters of another is that one, shortened."""

_LINE = re.compile(r"\n+|(?<=[.!?])\s+|(?<=[。！？])")


class Witness:
    """Looks for the evidence of each question in what a policy sends."""

    def __init__(self, recording: Recording, player: Player) -> None:
        self._format, self._lead = recording.format, recording.lead
        self._player = player
        self._questions = _by_call(recording)
        self._keys = Keys()
        self._rarity = self._weigh(recording.messages) if recording.questions else {}

    def look(self, index: int, call: ModelCall, view: View | None, /) -> Evidence | None:
        """Count what of the evidence is in view at a call, where questions belong to it.

        Args:
            index: The call's place.
            call: The call.
            view: What is sent for it; None: nothing could be.
        """
        questions = self._questions.get(index)
        if not questions:
            return None
        found = Evidence()
        for question in questions:
            given, seen = call, view
            if question.text is not None:
                asked = self._format.message("user", [question.text])
                given = replace(call, messages=[*call.messages, asked])
                try:
                    seen = self._player.ask(given)
                except BudgetExceededError:
                    seen = None
            places = [place + self._lead for place in question.evidence]
            found += (
                Evidence(sought=len(places)) if seen is None else self._count(places, given, seen, question)
            )
        return found

    def _count(self, places: Sequence[int], given: ModelCall, view: View, question: Question) -> Evidence:
        whole, others = self._places(given.messages, view.messages)
        written = [line for one in others for text in self._texts(one) for line in _lines(text)]
        if view.system != given.system:
            written += [line for text in system_texts(view.system) for line in _lines(text)]
        is_answered = self._answers(written, question)
        counts = {"whole": 0, "shortened": 0, "retold": 0}
        for place in places:
            message = given.messages[place]
            if place in whole:
                counts["whole"] += 1
            elif is_answered or self._holds(written, message):
                cut = any(self._is_cut_from(one, message) for one in others)
                counts["shortened" if cut else "retold"] += 1
        return Evidence(**counts, sought=len(places))

    def _places(self, given: Messages, sent: Messages) -> tuple[set[int], list[Any]]:
        """Say which places of what was given were sent as they were, and what of what was sent is none.

        Of messages that say the same, it is the very object; a copy is taken for the newest that remains.
        """
        places: dict[int | str, list[int]] = {}
        for place, message in enumerate(given):
            places.setdefault(id(message), []).append(place)
            places.setdefault(self._keys.of(message), []).append(place)
        found, others = set[int](), list[Any]()
        for message in reversed(sent):
            same = places.get(id(message)) or places.get(compact_json(mapping_of(message)), [])
            newest = next((one for one in reversed(same) if one not in found), None)
            if newest is not None:
                found.add(newest)
            else:
                others.append(message)
        return found, others

    def _holds(self, lines: Iterable[str], message: object) -> bool:
        """Tell whether lines quote half of a message, sentence by sentence."""
        said = list(map(_terms, lines))
        held = whole = 0.0
        for text in self._texts(message):
            for sentence in _lines(text):
                terms = _terms(sentence)
                weight = self._weight(terms)
                whole += weight
                if any(self._weight(terms & other) >= _QUOTE * weight for other in said):
                    held += weight
        return whole > 0 and held >= _HALF * whole

    def _answers(self, lines: Iterable[str], question: Question) -> bool:
        """Tell whether a line has the answer, and half of what the question is about.

        Any line may have a "yes" beside those words: an answer without a telling word counts by quote alone.
        """
        answer, asked = _terms(question.answer or ""), frozenset(question_terms(question.text or ""))
        least = _HALF * self._weight(asked)
        if not telling_terms(question.answer or "") or not least:
            return False
        return any(answer <= said and self._weight(asked & said) >= least for said in map(_terms, lines))

    def _is_cut_from(self, one: object, message: object) -> bool:
        """Tell whether a message that was sent is another one that was shortened."""
        if self._format.kind(mapping_of(one)) != self._format.kind(mapping_of(message)):
            return False
        short, long = " ".join(self._texts(one)), " ".join(self._texts(message))
        is_edge = long.startswith(short[:_EDGE_CHARS]) or long.endswith(short[-_EDGE_CHARS:])
        return is_edge and 0 < len(short) < len(long)

    def _weigh(self, messages: Messages) -> Mapping[str, float]:
        """Say how rare each term is among the messages: one that all have tells nothing."""
        counts = Counter(
            term
            for message in messages
            for term in frozenset[str]().union(*map(_terms, self._texts(message)))
        )
        return {term: log((len(messages) + 1) / count) for term, count in counts.items()}

    def _weight(self, terms: Iterable[str]) -> float:
        return sum(self._rarity.get(term, 0.0) for term in terms)

    def _texts(self, message: object) -> tuple[str, ...]:
        return self._format.pieces(mapping_of(message)).texts


def _by_call(recording: Recording) -> dict[int, list[Question]]:
    """Say at which call each question is asked: the first that has its place, or the last."""
    found: dict[int, list[Question]] = {}
    last = len(recording.calls) - 1
    for question in recording.questions:
        at = len(recording.messages) if question.at is None else question.at + recording.lead
        need = at + (question.text is None)
        places = (place for place, call in enumerate(recording.calls) if len(call.messages) >= need)
        found.setdefault(next(places, last), []).append(question)
    return found


def _lines(text: str) -> Iterator[str]:
    """Cut a text into lines and sentences, those that were escaped as they were before."""
    return (line for line in _LINE.split(unescape(text) if "&" in text else text) if line.strip())


@lru_cache(maxsize=1 << 16)
def _terms(text: str) -> frozenset[str]:
    return frozenset(text_terms(text))
