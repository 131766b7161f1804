"""What a summary must keep word for word, whose values these are, and restating what it lost (SPEC E16).

No model is asked a second time. A value that the summarizer omitted stands in one line behind its text, so
that the next summary, for which this one is a source, has it again.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, cast

from trimtab._shared.checks import answers_later, check_parameters, is_later, name_of
from trimtab.counting.shorten import cut_at_sentence
from trimtab.errors import ConfigurationError, SummaryError
from trimtab.formats import Dict, Format
from trimtab.formats.origin import Origins, is_passed_on
from trimtab.formats.values import REDACTED
from trimtab.strategies.exact_values import LONGEST_VALUE, Finder, Places, fold, says, values_in

if TYPE_CHECKING:
    from trimtab.report import SummaryCheck

__all__ = [
    "DEFAULT_KEPT_RATIO",
    "VALUES_LABEL",
    "Kept",
    "MustKeep",
    "MustKeepLike",
    "Source",
    "add_checks",
    "check_must_keep",
    "finder_of",
    "keep_values",
    "must_keep_data",
    "sources_of",
    "summary_source",
]

DEFAULT_KEPT_RATIO = 0.3
"""Share of a summary's room for the line of values. Measured (design/042-exact-values.md): .5 keeps .91 of
users' values in view where .3 keeps .86, and takes it from the text."""

VALUES_LABEL = "Exact values:"
"""How the line begins that restates what a summary lost."""

_BETWEEN, _OTHERS = "; ", " | "
"""Between two values; between those of the user and all others."""

MustKeep: TypeAlias = Literal["values"] | re.Pattern[str] | Callable[[str], Iterable[str]] | None
"""What must be kept, as it is held."""

MustKeepLike: TypeAlias = MustKeep | Mapping[str, str]
"""What `must_keep=` takes: "values", a pattern, a function of a text that lists values, or None.

As data, a pattern is `{"pattern": …}`, with letters under `flags` if it has any.
"""

_FLAGS = {"a": re.ASCII, "i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL, "x": re.VERBOSE}


def check_must_keep(name: str, value: Any, /) -> MustKeep:
    """Return what is held for `must_keep=`.

    Raises:
        ConfigurationError: It is none of what may be given.
    """
    if value is None or value == "values":
        return cast("MustKeep", value)
    if isinstance(value, Mapping):
        value = _pattern_of(name, value)
    if isinstance(value, re.Pattern):
        if not isinstance(value.pattern, str):
            raise ConfigurationError(
                f"{name} must be a pattern over text, not bytes: {value.pattern!r:.80}", argument=name
            )
        if value.search("") is not None:
            raise ConfigurationError(
                f"{name}={value.pattern!r:.80} matches an empty text: write one that matches only values",
                argument=name,
            )
        return cast("MustKeep", value)
    if callable(value) and not isinstance(value, type) and not answers_later(value):
        check_parameters(name, value, "text")
        return cast("MustKeep", value)
    raise ConfigurationError(
        f"{name} must be 'values', a compiled pattern, a synchronous function of a text that returns"
        f" its values, or None, not {reprlib.repr(value)}",
        argument=name,
    )


def _pattern_of(name: str, data: Mapping[str, Any]) -> re.Pattern[str]:
    """Read a pattern as data."""
    text, letters = data.get("pattern"), data.get("flags", "")
    if not isinstance(text, str) or not isinstance(letters, str) or not data.keys() <= {"pattern", "flags"}:
        raise ConfigurationError(
            f"{name} as data must be {{'pattern': a regular expression}}, with letters under 'flags' if it"
            f" needs any, not {reprlib.repr(dict(data))}",
            argument=name,
        )
    try:
        flags = re.RegexFlag(0)
        for letter in letters:
            flags |= _FLAGS[letter]
        return re.compile(text, flags)
    except (KeyError, re.error, OverflowError, RecursionError, ValueError) as error:
        why = f"there is no flag {error}" if isinstance(error, KeyError) else error
        raise ConfigurationError(
            f"{name}: {text!r:.80} is not a regular expression: {why}", argument=name
        ) from error


def must_keep_data(value: MustKeep, name: str | None = None, /) -> Any:
    """Write `must_keep=` as data; a function by its name.

    Raises:
        ConfigurationError: It is a function without a name.
    """
    if isinstance(value, re.Pattern):
        letters = "".join(letter for letter, flag in _FLAGS.items() if value.flags & flag)
        return {"pattern": value.pattern} | ({"flags": letters} if letters else {})
    if value is None or isinstance(value, str):
        return value
    if name is None:
        raise ConfigurationError(
            f"must_keep={name_of(value)} has no name for data; make the strategy with create_strategy("
            "{'kind': 'summarize', 'must_keep': 'mine', ...}, names={'mine': ...})",
            argument="must_keep",
        )
    return name


def finder_of(value: MustKeep, /) -> Finder:
    """Return what finds the values of a text.

    Raises:
        SummaryError: From the function that is returned: the caller's own failed, or returned no texts.
    """
    if value == "values":
        return values_in
    if isinstance(value, re.Pattern):
        pattern = value
        return lambda text: [match[0] for match in pattern.finditer(text)]
    function = cast("Callable[[str], Iterable[str]]", value)

    def find(text: str) -> list[str]:
        try:
            found = function(text)
            listed = None if is_later(found) or isinstance(found, str) else list(found)
        except Exception as error:
            raise SummaryError(f"must_keep {name_of(function)} failed with {type(error).__name__}") from error
        if listed is None or not all(isinstance(one, str) for one in listed):
            raise SummaryError(f"must_keep {name_of(function)} must return a list of texts")
        return listed

    return find


# Sources: what was said, and by whom.

Whose = Literal["user", "summary", "assistant", "call", "tool"]
"""Who said a text. What stands in the arguments of a call is no value by itself: it says that one is used."""

_RANKS: Mapping[Whose, int] = {"user": 0, "summary": 1, "assistant": 2, "tool": 3}

_TRUSTED = frozenset(("system", "user", "assistant"))


class Source(NamedTuple):
    """A text that a summary replaces, and who said it."""

    text: str
    whose: Whose


def sources_of(format: Format, messages: Iterable[tuple[Dict, Origins]], /) -> list[Source]:
    """List the texts of messages, and who said each.

    Args:
        format: Their wire form.
        messages: Each with its origins: by its form, and lowered by the host.
    """
    found = list[Source]()
    for message, origins in messages:
        kind = format.kind(message)
        said = "tool" if origins.isdisjoint(_TRUSTED) else "assistant" if kind == "assistant" else "user"
        if said == "user" and origins.isdisjoint(("system", "user")):
            said = "assistant"  # the host lowered it
        for slot in format.texts(message):
            whose = cast("Whose", "tool" if is_passed_on(slot, origins) else said)
            found.append(_source(slot.text, whose))
        if kind == "assistant":
            found += (Source(arguments, "call") for _, arguments in format.pieces(message).calls)
    return found


def _source(text: str, whose: Whose) -> Source:
    """Take a summary that stands in a message for what it is."""
    head, closing, _ = text[:_HEAD_CHARS].partition(' by="trimtab">')
    if whose == "tool" or not closing or not head.startswith("<summary of="):
        return Source(text, whose)
    return summary_source(unescape(text[len(head) + len(closing) :].removesuffix("</summary>")))


_HEAD_CHARS = 200
"""No mark of a summary is longer."""


def summary_source(text: str, /) -> Source:
    """Return the summary before, as a source of the one that replaces it."""
    return Source(text.strip(), "summary")


def unescape(text: str) -> str:
    """Take back what is escaped where a conversation or a summary stands in a mark."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", '"').replace("&amp;", "&")


# The check.


class _Values(NamedTuple):
    """The values of sources."""

    wanted: list[tuple[str, int]]
    """Those to be kept, the most important first, each with its rank."""
    known: frozenset[str]
    """All that were found in any of them."""


def _values_of(find: Finder, sources: Sequence[Source], shown: Iterable[str] = ()) -> _Values:
    """Find the values of sources: the user's first, then those said most often, then the oldest.

    Those of texts that are shown anyway come last: the room for values is for what nothing else says.
    """
    ranks: dict[str, int] = {}
    counts: dict[str, int] = {}
    used, returned = set[str](), list[str]()
    for source in sources:
        for value, rank in _find_in(find, source):
            counts[value] = counts.get(value, 0) + 1
            if source.whose == "call":
                used.add(value)
            elif source.whose == "tool":
                returned.append(value)
            else:
                ranks[value] = min(rank, ranks.get(value, rank))
    for value in returned:
        if value in used:
            ranks.setdefault(value, _RANKS["tool"])
    again = {fold(value) for text in shown for value in find(text)}
    # Stable: the oldest first.
    order = sorted(ranks, key=lambda value: (value in again, ranks[value], -counts[value]))
    return _Values([(value, ranks[value]) for value in order], frozenset(counts))


def _find_in(find: Finder, source: Source) -> Iterator[tuple[str, int]]:
    """Yield what a source says, with its rank; the line of an earlier summary says whose it was."""
    text, rank = source.text, _RANKS.get(source.whose, 0)
    if source.whose == "summary":
        text, line = _without_line(text)
        yield from line
    for value in find(text):
        folded = fold(value)
        if 0 < len(folded) <= LONGEST_VALUE:
            yield folded, rank


def _without_line(text: str) -> tuple[str, list[tuple[str, int]]]:
    """Return a summary without its line of values, and these with their ranks."""
    body, _, last = text.rpartition("\n")
    if not last.startswith(VALUES_LABEL):
        return text, []
    users, _, others = last[len(VALUES_LABEL) :].partition(_OTHERS)
    found = [
        (value.strip(), rank)
        for part, rank in ((users, _RANKS["user"]), (others, _RANKS["summary"]))
        for value in part.split(_BETWEEN)
    ]
    return body, [
        (value, rank) for value, rank in found if 0 < len(value) <= LONGEST_VALUE and REDACTED not in value
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A summary with what it must keep."""

    text: str
    """The summarizer's text, and behind it the line of values if one is needed."""
    checked: SummaryCheck
    lost: tuple[str, ...]
    """Values that are not in it."""


def keep_values(
    find: Finder,
    text: str,
    sources: Sequence[Source],
    *,
    limit_tokens: int,
    ratio: float,
    size: Callable[[str], int],
    shown: Iterable[str] = (),
) -> Kept:
    """Look for the values of the sources in a summary, and restate those that are missing.

    The line takes at most `ratio` of the summary's room. Where the text has no room beside it, the text ends
    earlier, at a sentence; what goes with its end is missing as well.

    Args:
        find: Finds the values of a text.
        text: What the summarizer wrote; it fits.
        sources: What the summary replaces, the summary before among it, oldest first.
        limit_tokens: Most tokens of the message that holds the summary.
        ratio: The share of the line.
        size: Tokens of the message with a text.
        shown: Texts that stand beside the summary word for word: rules.

    Complexity: O(n) in the characters of the sources and the text, and O(log n) calls of `size`.

    Raises:
        SummaryError: The caller's function failed.
    """
    from trimtab.report import SummaryCheck  # not above: it is loaded by who reads one

    values = _values_of(find, sources, shown)
    text = _without_copies(text, sources)
    invented = _count_invented(find, text, values, sources)
    missing = _find_missing(text, values)
    told = _told_once(missing)
    line = _line(told)
    most = int((limit_tokens - size("")) * ratio)
    if missing and most > 0:
        reserve = min(most, max(1, size(f"{text}\n{line}") - size(text)))
        if size(text) + reserve > limit_tokens:
            text = cut_at_sentence(text, limit_tokens - reserve, size) or text
            missing = _find_missing(text, values)
            told = _told_once(missing)
        room = min(limit_tokens, size(text) + most)
        line = _line_within(missing, told, lambda one: size(f"{text}\n{one}") <= room)
    else:
        line = ""
    places = Places(line)
    lost = tuple(value for value, _ in missing if not places.says(line, value))
    checked = SummaryCheck(
        values=len(values.wanted),
        missing=len(missing),
        restated=len(missing) - len(lost),
        lost=len(lost),
        invented=invented,
    )
    return Kept(text=f"{text}\n{line}" if line else text, checked=checked, lost=lost)


def values_only_in(find: Finder, sources: Sequence[Source], others: Iterable[Source], /) -> list[str]:
    """List the values of sources that no other source says word for word, the most important first.

    Args:
        find: Finds the values of a text.
        sources: Where the values are looked for.
        others: What may say them, too.

    Raises:
        SummaryError: The caller's function failed.
    """
    said = "\n".join(source.text for source in others)
    return [value for value, _ in _find_missing(said, _values_of(find, sources))]


def _without_copies(text: str, sources: Sequence[Source]) -> str:
    """Take out lines that only copy the line of values of the summary before, and the label of all others.

    Without it, nothing that the summarizer writes or copies from a tool can stand for values of the user.
    """
    if VALUES_LABEL not in text:
        return text
    known = {value for one in sources if one.whose == "summary" for value, _ in _without_line(one.text)[1]}
    lines = text.split("\n")
    rest = [line for line in lines if not line.startswith(VALUES_LABEL) or not _copies(line, known)]
    return _without_labels(rest) or _without_labels(lines) or text


def _without_labels(lines: Sequence[str]) -> str:
    return "\n".join(_LABELS.sub("", line) for line in lines).strip()


_LABELS = re.compile(rf"^(?:\s*{VALUES_LABEL})+\s*")
"""The label where a line begins, as often as it is there."""


def _copies(line: str, known: set[str]) -> bool:
    return {value for value, _ in _without_line(f"\n{line.strip()}")[1]} <= known


def _find_missing(text: str, values: _Values) -> list[tuple[str, int]]:
    """List the values that a text does not say word for word, escaped or not."""
    folded = fold(text)
    places = Places(folded)
    plain = unescape(folded)
    plain_places = places if plain == folded else Places(plain)

    def is_said(value: str) -> bool:
        if places.says(folded, value):
            return True
        is_same = plain_places is places and "&" not in value
        return not is_same and plain_places.says(plain, unescape(value))

    return [(value, rank) for value, rank in values.wanted if not is_said(value)]


def _count_invented(find: Finder, text: str, values: _Values, sources: Sequence[Source]) -> int:
    """Count the values of a text that no source has, whoever said it and however it is written."""
    found = {fold(value) for value in find(text)} - values.known - {""}
    if not found:
        return 0
    said = fold(unescape(" ".join(source.text for source in sources))).casefold()
    places = Places(said)
    return sum(1 for value in found if not _is_said(places, said, unescape(value).casefold()))


def _is_said(places: Places, said: str, value: str) -> bool:
    """Tell whether sources have a value; of words without a digit it is enough that each is somewhere."""
    if places.says(said, value):
        return True
    return not any(map(str.isdigit, value)) and all(places.says(said, word) for word in value.split())


def _told_once(values: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    """List values without those that the ones before them say when they stand in the line."""
    told, made, places = list[tuple[str, int]](), "", Places()
    for value, rank in values:
        if not places.says(made, value):
            told.append((value, rank))
            more = f"{_BETWEEN}{value}"
            places.add(more, len(made))
            made += more
    return told


def _line(values: Sequence[tuple[str, int]]) -> str:
    """Write the line, the user's values first."""
    if not values:
        return ""
    users = _BETWEEN.join(value for value, rank in values if not rank)
    others = _BETWEEN.join(value for value, rank in values if rank)
    return f"{VALUES_LABEL} {users}{_OTHERS if others else ''}{others}"


def _line_within(
    values: Sequence[tuple[str, int]], told: Sequence[tuple[str, int]], fits: Callable[[str], bool]
) -> str:
    """Write the longest line of the first values told that fits, and of a few shorter ones behind them."""
    whole = _line(told)
    if not told or fits(whole):
        return whole
    low, high = 0, len(told)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(_line(told[:middle])) else (low, middle)
    taken = list(told[:low])
    # A value that only the one without room says has not been told.
    behind = values[values.index(told[low]) + 1 :]
    for value in behind[:_TRIED]:
        is_told = says(_BETWEEN.join(["", *(said for said, _ in taken)]), value[0])
        if not is_told and fits(_line([*taken, value])):
            taken.append(value)
    return _line(taken)


_TRIED = 8
"""Values that are tried behind the first that has no room."""


def add_checks(checks: Iterable[SummaryCheck], /) -> SummaryCheck | None:
    """Add up the checks of several summaries; None of none."""
    from trimtab.report import SummaryCheck  # not above: it is loaded by who reads one

    rows = [one.to_dict() for one in checks]
    if not rows:
        return None
    return SummaryCheck(**{name: sum(row[name] for row in rows) for name in rows[0]})
