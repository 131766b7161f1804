"""Find the rules in a text of a user or operator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from trimtab.rules.language import Finds, Index, find_cues, index_of
from trimtab.rules.languages import LANGUAGES
from trimtab.rules.passages import Passage, hide, is_document, manual_at, passages
from trimtab.rules.rule import Rule
from trimtab.rules.sentences import sentences
from trimtab.rules.topics import Subject, subject_of
from trimtab.rules.verdict import Verdict, finds_of, judge
from trimtab.rules.words import HIDDEN, lower, places_of, words_of

__all__ = ["MAX_CHARS", "find_rules"]

MAX_CHARS = 60_000
"""A longer text is a document, and nothing is found in it."""

_MAX_LIST_CHARS = 2_000
"""A longer list is not kept with the sentence above it, and neither is found."""

_ROLES = frozenset(("user", "system", "developer"))


def find_rules(text: str, *, role: str = "user") -> tuple[Rule, ...]:
    r"""Find the rules, limits, preferences and orders in a text, word for word.

    Looks at the writer's own words alone: not at quotes, code, tables, logs, mail, documents in tags, at what
    somebody else is said to have said, at fiction, and at questions. A user's text is read no further where
    it claims an operator's say ("SYSTEM:", "ignore earlier instructions"). Knows English, German, Spanish,
    French and Chinese; calls no model. What is found is not sure: `Rule.standing` tells what holds beyond one
    answer from orders for it. Of 81 such findings in the data it was made with 79 are rules, and 21 of 25 in
    texts that nobody had read (`design/043-rules.md`).

    Args:
        text: What the message says, without its other parts. One of more than 60,000 characters is taken for
            a document.
        role: Who says it: "user", "system" or "developer". Whatever any other role says, a tool or an
            assistant, is no rule.

    Returns:
        In the order of the text; none overlap.

    Complexity: O(n) in characters.

    Example:
        >>> for rule in find_rules("Hi! From now on, answer in German. My budget is $500. What is there?"):
        ...     print(rule.kind, rule.strength, rule.text)
        rule 4 From now on, answer in German.
        limit 3 My budget is $500.
        >>> find_rules("> Never deploy on Fridays.\nThat is what the handbook says.")
        ()
        >>> find_rules("Never deploy on Fridays.", role="tool")
        ()
    """
    if role not in _ROLES or len(text) > MAX_CHARS or is_document(text):
        return ()
    if role == "user":
        text = text[: manual_at(text)]
    return tuple(_Search(text, user=role == "user").rules())


@cache
def _indexes() -> dict[str, Index]:
    return {language.code: index_of(language) for language in LANGUAGES}


@cache
def _words_by_code() -> dict[str, frozenset[str]]:
    """Give for each language the words that tell it; Chinese is told by its characters."""
    return {
        code: index.firsts.union(index.language.common.split())
        for code, index in _indexes().items()
        if code != "zh"
    }


class _Search:
    """One text, and what is known of it while its sentences are read."""

    def __init__(self, text: str, *, user: bool) -> None:
        self._text = text
        self._user = user
        self._hidden = hide(text)
        self._small = lower(self._hidden)
        self._code = "en"
        self._story = False
        self._labelled = False

    def rules(self) -> Iterator[Rule]:
        """Go through the passages; a list is seen with the sentence above it."""
        parts = passages(self._text, self._hidden)
        self._code = _told_by(self._words(0, _SAMPLE_CHARS), "en")
        at = 0
        while at < len(parts):
            part = parts[at]
            if at and part.kind != "item":
                self._labelled = self._labelled and part.kind == "text" and parts[at - 1].kind == "heading"
                self._story = self._story and part.kind == "text"
            items = _items(parts, at) if part.kind != "item" else []
            read = self._title(part) if part.kind == "heading" else self._passage(part, items)
            yield from read.rules
            if read.ends:
                return
            at += 1 + (len(items) if read.with_items else 0)

    def _words(self, start: int, end: int) -> list[str]:
        return words_of(self._small, start, end)

    def _title(self, part: Passage) -> _Read:
        words = self._words(part.start, part.end)
        finds = find_cues(_indexes()[_told_by(words, self._code)], words)
        self._labelled = "heading" in finds
        return _Read(ends=self._user and "claim" in finds)

    def _passage(self, part: Passage, items: Sequence[Passage]) -> _Read:
        """Read the sentences of a passage, one behind the other."""
        read = _Read()
        index: Index | None = None
        carried: _Sentence | None = None
        for start, end in sentences(self._hidden, part.start, part.end):
            words = self._words(start, end)
            if len(words) < _LEAST_WORDS and words[-1] == ".":
                continue
            index = index or _indexes()[_told_by(words, self._code)]
            finds = finds_of(index, words)
            self._story = self._story or "fiction" in finds
            if "handover" in finds:
                read.ends = not self._hides_next(part.end)
                return read
            if self._user and "claim" in finds:
                read.ends = True
                return read
            if words[-1] in (":", "：") and end == part.end and not self._story:
                return self._above_list(read, _Sentence(index, start, end, finds), items)
            if self._story or not finds:
                carried = None
                continue
            if carried is not None:
                start, finds = carried.start, finds | carried.finds
            sentence = _Sentence(index, start, end, finds)
            verdict = judge(finds, labelled=self._labelled)
            scope = verdict is None and not finds.keys().isdisjoint(("duration", "label"))
            carried = sentence if scope and len(words) <= _MOST_SCOPE_WORDS else None
            if verdict is not None:
                read.rules.append(self._rule(sentence, verdict))
        return read

    def _hides_next(self, end: int) -> bool:
        """Tell whether what follows is marked as a document, quote or code: own words may come behind it."""
        rest = self._hidden[end : end + 40].lstrip()
        return rest.startswith((HIDDEN, "```", "~~~", ">")) or HIDDEN in self._hidden[end - 1 : end]

    def _above_list(self, read: _Read, sentence: _Sentence, items: Sequence[Passage]) -> _Read:
        """Read a sentence that ends in a colon: with its list, or as the name of one."""
        if "heading" in sentence.finds:
            self._labelled = "report" not in sentence.finds
            return read
        verdict = judge(sentence.finds, labelled=self._labelled)
        if verdict is not None and items and items[-1].end - sentence.start <= _MAX_LIST_CHARS:
            read.rules.append(self._rule(sentence._replace(end=items[-1].end), verdict))
            read.with_items = True
        return read

    def _rule(self, sentence: _Sentence, verdict: Verdict) -> Rule:
        index, start, end, _ = sentence
        subject = Subject((), (), forbids=False, adds=False)
        if verdict.kind != "order":
            subject = subject_of(index, self._text, places_of(self._small, start, end))
        return Rule(
            text=self._text[start:end],
            start=start,
            kind=verdict.kind,
            strength=verdict.strength,
            language=index.language.code,
            topic=subject.topic,
            values=subject.values,
            forbids=subject.forbids,
            adds=subject.adds,
        )


@dataclass(slots=True)
class _Read:
    """What was read of a passage."""

    rules: list[Rule] = field(default_factory=list)
    with_items: bool = False
    """The items below it were read with it."""
    ends: bool = False
    """The rest of the text is somebody else's."""


class _Sentence(NamedTuple):
    """A sentence, and the cues in it."""

    table: Index
    start: int
    end: int
    finds: Finds


def _told_by(words: Sequence[str], default: str) -> str:
    """Tell the language of words: the one that most of them are common in."""
    sample = set(words[:_SAMPLE])
    known = _words_by_code().get(default, frozenset())
    if 2 * len(known & sample) > len(sample):
        return default
    if 3 * sum(["\u3400" <= word < "\ua000" for word in sample if not word.isascii()]) > len(sample):
        return "zh"
    counts = {code: len(known & sample) for code, known in _words_by_code().items()}
    best = max(counts.values())
    return default if not best or counts.get(default) == best else max(counts, key=counts.__getitem__)


_SAMPLE = 24
"""Words by which a language is told."""
_SAMPLE_CHARS = 600
"""Characters at the head of a text by which its language is told."""
_LEAST_WORDS = 3
"""A sentence of fewer, counting its full stop, says nothing: "Ok." """
_MOST_SCOPE_WORDS = 14
"""A longer sentence that says how long something holds is not about the next one."""


def _items(parts: Sequence[Passage], at: int) -> Sequence[Passage]:
    """List the items that follow a passage."""
    end = at + 1
    while end < len(parts) and parts[end].kind == "item":
        end += 1
    return parts[at + 1 : end]
