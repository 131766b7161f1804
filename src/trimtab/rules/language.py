"""One language as data: words and cues in a table, made into an index once, and found in one walk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Literal, NamedTuple

__all__ = ["Cue", "Finds", "Language"]

Cue = Literal[
    "void", "report", "fiction", "handover", "claim", "permit", "ask", "once", "label", "heading",
    "ban", "duration", "always", "general", "gate", "case", "duty", "deny", "act", "cap", "limit", "prefer",
]  # fmt: skip
"""What a phrase says.

`void`: none of its words say anything. `report`: somebody else says it. `fiction`: it holds in a story.
`handover`: what follows is a text to work on. `claim`: it claims an operator's say, which a user does not
have. `permit`: something is allowed, or taken back. `ask`: a polite question. `once`: it is about this time.
`label`: it is called a rule. `heading`: what is listed below are rules. `ban`: must not. `duration`: from
now on. `always`: always and never, said of a doing. `general`: every, all. `gate`: until, without asking.
`case`: whenever something happens. `duty`: must. `deny`: do not. `act`: a verb that orders. `cap`: a bound
that is set. `limit`: a number that bounds.
`prefer`: somebody likes it so.
"""

_GAP = 4
"""Most words that `..` stands for."""

_BREAKS = frozenset(".,;:!?()—–。，；：！？、…\n")
"""Signs that end a clause; `..` passes none."""

_SIGNS = frozenset("$€£¥~<≤≥>")
"""Signs that stand before a number."""

Finds = dict[Cue, int]
"""For each cue that was found the position of the first word it was found at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """The words of one language.

    A cue is written as words with a space between them. `a|b_c` is "a" or "b c", and `a?` may be absent. `..`
    stands for at most four words of the same clause, `_` for one, and `+` for one of letters. `*ed` is a word
    that ends so and is in neither `verbs` nor `bases`, `@` one of `verbs`, `n'@` one with that before it, and
    `#` a number. `^` in front: only where a clause begins; `^^`: only where the sentence does; `^^^`: only
    behind a duration that opens the sentence, where `^^` holds, too.
    """

    code: str
    common: str
    """Words by which the language is told."""
    verbs: str
    """Verbs as they order, for `@`."""
    bases: str = ""
    """Other verbs as they order, which end as a `*` of the table does: "embed", "dismiss"."""
    numbers: str
    """Numbers as words."""
    joints: str
    """Words after which a clause begins anew: "please", "but"."""
    links: str
    """Words after which a clause begins anew if an order was there before: "and"."""
    idle: str
    """Words that say nothing of what a rule is about."""
    classes: tuple[str, ...]
    """Words of which one takes the place of another: units, languages, formats."""
    slots: str
    """Words before a name that another name may take the place of: "in German"."""
    additions: str
    """Words by which something is added and nothing replaced: "also"."""
    negations: str
    """Words that forbid or deny."""
    tags: str
    """Words before a last question mark that ask nothing: "ok?"."""
    cues: Mapping[Cue, str]
    """One phrase a line."""


@dataclass(slots=True)
class _Node:
    """A place in the tree of phrases: what has been read so far, and what may follow."""

    ends: list[tuple[int, Cue]] = field(default_factory=list)
    """Phrases that end here: where one may begin (how many `^`), and what it says."""
    words: dict[str, _Node] = field(default_factory=dict)
    open: bool = False
    """Something other than a certain word may follow."""
    verb: _Node | None = None
    number: _Node | None = None
    anything: _Node | None = None
    gap: _Node | None = None
    tails: dict[str, _Node] = field(default_factory=dict)
    """By how the word ends: of `*ed`, and of `+` by nothing."""


@dataclass(slots=True)
class Index:
    """The table of a language, made ready."""

    language: Language
    root: _Node = field(default_factory=_Node)
    verbs: frozenset[str] = frozenset()
    bases: frozenset[str] = frozenset()
    """All words that no `*` stands for: the verbs, too."""
    numbers: frozenset[str] = frozenset()
    joints: frozenset[str] = frozenset()
    links: frozenset[str] = frozenset()
    idle: frozenset[str] = frozenset()
    slots: frozenset[str] = frozenset()
    additions: frozenset[str] = frozenset()
    negations: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()
    classes: dict[str, int] = field(default_factory=dict)
    marks: dict[str, int] = field(default_factory=dict)
    """What a word does to those who walk: one of the three below; other words do nothing."""
    midst: _Seconds = field(default_factory=dict)
    """By the first word of phrases that may begin anywhere the words that may come second."""
    fronts: _Seconds = field(default_factory=dict)
    """The same of all phrases, for where a clause begins."""
    seconds: frozenset[str] = frozenset()
    """The words that may come second where a clause begins with any word (`+`, `*`)."""
    telling: frozenset[str] = frozenset()
    """The words that a phrase may begin with anywhere, or that do something to those who walk."""

    @property
    def firsts(self) -> frozenset[str]:
        """The words that phrases begin with, and the verbs."""
        return self.verbs.union(self.root.words)


_Seconds = dict[str, set[str] | None]
"""None: any word may come second, or none has to."""
_BREAK, _JOINT, _LINK = 1, 2, 3
"""A word ends a clause; a clause begins behind it; so does one if an order came before."""


def _is_han(sign: str) -> bool:
    return "\u3400" <= sign <= "\u9fff"


def split(phrase: str, /) -> list[str]:
    """Split a phrase of a table as texts are split: Han characters and hyphens stand alone."""
    parts: list[str] = []
    for part in phrase.split():
        if any(map(_is_han, part)) and "|" not in part and "?" not in part:
            parts.extend(part)
        else:
            parts.append(part)
    return parts


def _spellings(phrase: str) -> Iterator[list[str]]:
    """Write out what a phrase with `a|b` and `a?` stands for."""
    ways = []
    for part in phrase.split():
        rest = part.removesuffix("?") if len(part) > 1 else part
        ways.append([*(_with_spaces(way) for way in rest.split("|")), *([""] if rest != part else [])])
    for way in product(*ways):
        yield split(" ".join(filter(None, way)).replace("-", " - "))


def _with_spaces(word: str) -> str:
    return word if word == "_" else word.replace("_", " ")


def index_of(language: Language, /) -> Index:
    """Make the table of a language ready."""
    index = Index(
        language,
        verbs=frozenset(language.verbs.split()),
        bases=frozenset(f"{language.verbs} {language.bases}".split()),
        numbers=frozenset(language.numbers.split()),
        joints=frozenset(language.joints.split()),
        links=frozenset(language.links.split()),
        idle=frozenset(language.idle.split()),
        slots=frozenset(language.slots.split()),
        additions=frozenset(language.additions.split()),
        negations=frozenset(language.negations.split()),
        tags=frozenset(language.tags.split()),
    )
    for number, group in enumerate(language.classes):
        index.classes.update(dict.fromkeys(group.split(), number))
    for cue, phrases in language.cues.items():
        for line in filter(None, map(str.strip, phrases.splitlines())):
            phrase = line.lstrip("^")
            where = len(line) - len(phrase)
            for words in _spellings(phrase):
                _put(index, words, where, cue)
    for seconds in (index.midst, index.fronts):
        if "@" in seconds:
            seconds.update(dict.fromkeys(index.verbs))
    index.seconds = frozenset(
        second for first in [*index.fronts] if _is_any(first) for second in index.fronts.pop(first) or ()
    )
    for known in filter(None, index.fronts.values()):
        known.update(index.seconds)
    index.marks = (
        dict.fromkeys(index.links, _LINK)
        | dict.fromkeys(_BREAKS, _BREAK)
        | dict.fromkeys(index.joints.union("*_"), _JOINT)  # bold and slanted print
    )
    index.telling = frozenset((*index.midst, *index.marks))
    return index


def _put(index: Index, words: Sequence[str], where: int, cue: Cue) -> None:
    """Put a phrase into the tree; one with `n'@` once for each verb."""
    for at, word in enumerate(words):
        if word.endswith("@") and word != "@":
            for verb in index.verbs:
                _put(index, [*words[:at], word[:-1] + verb, *words[at + 1 :]], where, cue)
            return
    for seconds in (index.fronts,) if where else (index.midst, index.fronts):
        _note_second(seconds, words)
    node = index.root
    for word in words:
        node = _child(node, word)
    node.ends.append((where, cue))


def _note_second(seconds: _Seconds, words: Sequence[str]) -> None:
    """Note which word of a phrase comes second, if it is a certain one."""
    if len(words) == 1 or words[1] in _OPEN or words[1][0] == "*":
        seconds[words[0]] = None
    else:
        known = seconds.setdefault(words[0], set())
        if known is not None:
            known.add(words[1])


def _is_any(word: str) -> bool:
    return word == "+" or (word[0] == "*" and len(word) > 1)


_OPEN = ("@", "#", "+", "_", "..")
"""In a phrase: not a certain word."""


def _child(node: _Node, word: str) -> _Node:
    """Give the place behind a word of a phrase, and make it where there is none."""
    tail = word[1:] if word[0] == "*" and len(word) > 1 else ""
    node.open = node.open or word in _OPEN or bool(tail)
    if word == "@":
        node.verb = node.verb or _Node()
        return node.verb
    if word == "#":
        node.number = node.number or _Node()
        return node.number
    if word == "+":
        return node.tails.setdefault("", _Node())
    if word == "_":
        node.anything = node.anything or _Node()
        return node.anything
    if word == "..":
        node.gap = node.gap or _Node()
        return node.gap
    return node.tails.setdefault(tail, _Node()) if tail else node.words.setdefault(word, _Node())


def find_cues(index: Index, words: Sequence[str]) -> Finds:
    """Find what the words of a sentence say; each phrase once, at its first place.

    The words of a `void` phrase say nothing else.

    Complexity: O(n) in words, for a phrase is of bounded length.
    """
    found: Finds = {}
    start, joined, free, fresh, opened = 2, False, 0, -1, 1
    marks, midst, fronts, any_front = index.marks, index.midst, index.fronts, index.seconds
    telling = index.telling
    for at, word in enumerate(words):
        if at == fresh:
            start = max(start, opened)
        elif not start and word not in telling:
            continue
        seconds = fronts.get(word, any_front) if start else midst.get(word, _NOTHING)
        if at >= free and (
            seconds is None or (seconds and words[at + 1 : at + 2] and words[at + 1] in seconds)
        ):
            hits: list[tuple[int, Cue, int]] = []
            _step(index, index.root, words, at, hits)
            if hits:
                free, scope = _note(hits, at, start, found)
                if scope > fresh:
                    fresh, opened = scope, 3 if start >= 2 else 1
                joined = joined or not found.keys().isdisjoint(_JOINS)
        mark = marks.get(word)
        ends = mark is None or (mark == _LINK and not joined and start < 2)
        start = 0 if ends else start or 1
    return found


_NOTHING: frozenset[str] = frozenset()
_JOINS = frozenset(("act", "deny", "ban", "always"))
"""Behind these "and" begins another order."""


class _Ends(NamedTuple):
    """Where phrases end."""

    void: int
    scope: int
    """Of one that says how long something holds: a clause begins behind it."""


def _note(hits: Sequence[tuple[int, Cue, int]], at: int, start: int, found: Finds) -> _Ends:
    """Note the cues of the phrases that begin at a word and may begin there; a void one stands alone.

    Args:
        hits: Of each where it may begin, what it says, and where it ends.
        at: Where they begin.
        start: What begins there: 0 nothing, 1 a clause, 2 the sentence, 3 what a duration is said of.
        found: Gets the cues.
    """
    void = scope = 0
    for where, cue, end in hits:
        if where <= start and cue == "void":
            void = max(void, end)
    if void:
        return _Ends(void, 0)
    for where, cue, end in hits:
        if where <= start:
            found.setdefault(cue, at)
            if cue == "duration":
                scope = max(scope, end)
    return _Ends(0, scope)


def _step(index: Index, node: _Node, words: Sequence[str], at: int, hits: list[tuple[int, Cue, int]]) -> None:
    """Go on from a place in the tree by the word at hand, on every way there is."""
    if at >= len(words):
        return
    word = words[at]
    child = node.words.get(word)
    if child is not None:
        _reach(index, child, words, at + 1, hits)
    if not node.open:
        return
    if node.verb is not None and word in index.verbs:
        _reach(index, node.verb, words, at + 1, hits)
    if node.number is not None:
        size = _number(index, words, at)
        if size:
            _reach(index, node.number, words, at + size, hits)
    if node.anything is not None and word not in _BREAKS:
        _reach(index, node.anything, words, at + 1, hits)
    for tail, child in node.tails.items():
        if word.endswith(tail) and (word not in index.bases if tail else word[0].isalpha()):
            _reach(index, child, words, at + 1, hits)


def _reach(
    index: Index, node: _Node, words: Sequence[str], at: int, hits: list[tuple[int, Cue, int]]
) -> None:
    """Arrive at a place in the tree: phrases may end here, and others go on, behind a gap or at once."""
    for where, cue in node.ends:
        hits.append((where, cue, at))
    _step(index, node, words, at, hits)
    if node.gap is not None:
        for place in range(at, min(at + _GAP + 1, len(words))):
            _step(index, node.gap, words, place, hits)
            if words[place] in _BREAKS:
                break


def _number(index: Index, words: Sequence[str], at: int) -> int:
    """Tell how many words a number takes, with the sign before it; 0: there is none."""
    if is_number(index, words[at]):
        return 1
    return 2 if words[at] in _SIGNS and at + 1 < len(words) and is_number(index, words[at + 1]) else 0


def is_number(index: Index, word: str, /) -> bool:
    """Tell whether a word is a number, in digits or in words."""
    return word[0].isdigit() or word in index.numbers
