"""Where text may be cut: never inside what a reader sees as one character.

Unicode calls it an extended grapheme cluster (UAX #29): a letter with its accents, a flag, a family of
emoji, a Devanagari conjunct, a Hangul syllable, CRLF. With the extra `text` installed `regex` draws the
borders; without it a rule on `unicodedata`, which knows fewer properties and so glues where it is not sure:
it finds fewer places to cut, and none inside a cluster. Every question reads a window of 67 code points, not
the text; a run of flags alone is read back to its start, since only its length tells which two are a pair.

Borders (`border_before`, `border_after`) are where every tokenizer splits, so that sizes of parts add up.
"""

from __future__ import annotations

import importlib
import re
import unicodedata
from collections.abc import Callable
from functools import cache

Rule = Callable[[str], bool]
"""Says if a window of text may be cut just before its last code point."""

LONGEST_CLUSTER_CHARS = 64
"""A cluster of more code points may be cut between them (SPEC A10): no language needs as many."""

# One more than the limit on each side: a window that begins in the middle of a flag, of a conjunct or of an
# emoji sequence misreads one border, and must still prove that more than 64 code points hang together.
_WINDOW_CHARS = LONGEST_CLUSTER_CHARS + 2


def is_boundary(text: str, index: int, *, rule: Rule | None = None) -> bool:
    r"""Say whether `text` may be cut between `index - 1` and `index`.

    Args:
        index: In code points; both ends of the text, and whatever lies beyond them, are boundaries.
        rule: Draws the borders; None takes `regex` if it is installed, else `unicodedata`.

    Example:
        >>> [is_boundary("e\u0301\r\nx", index) for index in range(6)]
        [True, False, True, False, True, True]
    """
    if not 0 < index < len(text):
        return True
    before, after = text[index - 1], text[index]
    if before < _FIRST_SPECIAL and after < _FIRST_SPECIAL:
        return before != "\r" or after != "\n"
    if before in _FLAGS and after in _FLAGS:
        return _flags_before(text, index) % 2 == 0
    if "\ud800" <= before < "\udc00" <= after < "\ue000":
        return False  # a character as UTF-16 writes it: a counter that repairs such text sees one
    window = text[max(0, index - _WINDOW_CHARS) : index + 1]
    return (rule or best_rule())(window)


def boundary_at_or_before(text: str, index: int, *, rule: Rule | None = None) -> int:
    """Give the last place at or before `index` where `text` may be cut."""
    index = min(max(index, 0), len(text))
    while not is_boundary(text, index, rule=rule):
        index -= 1
    return index


def boundary_at_or_after(text: str, index: int, *, rule: Rule | None = None) -> int:
    """Give the first place at or after `index` where `text` may be cut."""
    index = min(max(index, 0), len(text))
    while not is_boundary(text, index, rule=rule):
        index += 1
    return index


@cache
def best_rule() -> Rule:
    r"""Make the rule that asks `\X` of the package `regex`; without it take that of `unicodedata`."""
    try:
        clusters = importlib.import_module("regex").compile(r"\X")
    except ImportError:
        return unicodedata_rule

    def may_cut(window: str) -> bool:
        start, last = 0, len(window) - 1
        for cluster in clusters.finditer(window):
            start = cluster.start()
        return start == last or last - start > LONGEST_CLUSTER_CHARS

    return may_cut


def unicodedata_rule(window: str) -> bool:
    """Say by the standard library if `window` may be cut before its last code point."""
    last = len(window) - 1
    strength = _joint(window, last)
    if strength == _APART:
        return True
    # Within an over-long run the cut falls on a joint as weak as can be had: where the glue is only a
    # guess, the run may be many short clusters.
    first = last - LONGEST_CLUSTER_CHARS
    return first > 0 and all(_joint(window, index) >= strength for index in range(first, last))


_APART, _PERHAPS, _TOGETHER = 0, 1, 2


def _joint(window: str, index: int) -> int:
    """Say how surely the code points on both sides of `index` belong to one cluster."""
    before, after = window[index - 1], window[index]
    if before < _FIRST_SPECIAL and after < _FIRST_SPECIAL:
        return _TOGETHER if before == "\r" and after == "\n" else _APART
    if _is_control(before) or _is_control(after):
        return _APART
    if _extends(after):
        # some Mc are letters to UAX #29
        return _PERHAPS if unicodedata.category(after) == "Mc" else _TOGETHER
    if before in _PREPENDED or _jamo(after) in _JAMO_AFTER[_jamo(before)]:
        return _TOGETHER
    if _may_become_mark(before) or _may_become_mark(after) or _may_be_sequence(window, index):
        return _PERHAPS
    return _APART


def _is_control(char: str) -> bool:
    kind = unicodedata.category(char)
    return kind in ("Cc", "Zl", "Zp") or (kind == "Cf" and char not in _EXTENDERS and char not in _PREPENDED)


def _extends(char: str) -> bool:
    return char in _EXTENDERS or unicodedata.category(char)[0] == "M"


def _may_become_mark(char: str) -> bool:
    """Say whether a later Unicode may make `char` a mark, or a letter that joins."""
    is_there = char < "\U0001f000" or "\U000e0000" <= char < "\U000e1000"
    return is_there and unicodedata.category(char) == "Cn"


def _may_be_pictograph(char: str) -> bool:
    return char in "\u00a9\u00ae\u2139" or (char >= "\u2000" and unicodedata.category(char)[0] in "CPS")


def _may_be_sequence(window: str, index: int) -> bool:
    """Say whether what stands before `index` reaches over its marks to what follows.

    That is, a pictograph (or what the window cuts off) over a ZWJ to the next one, and a letter over a
    virama, or a letter that acts as one, to the next.
    """
    after = window[index]
    is_joined = window[index - 1] == _ZWJ and _may_be_pictograph(after)
    if not is_joined and unicodedata.category(after) != "Lo":
        return False
    base = index - 1
    while base >= 0 and _extends(window[base]):
        base -= 1
    if is_joined:
        return base < 0 or _may_be_pictograph(window[base])
    between = window[max(0, base) : index]
    return any(char in _LINKERS or unicodedata.combining(char) == _VIRAMA for char in between)


def _flags_before(text: str, index: int) -> int:
    """Count the regional indicators that end at `index`, in ever larger pieces."""
    count, piece_chars = 0, LONGEST_CLUSTER_CHARS
    while index > 0:
        piece = text[max(0, index - piece_chars) : index]
        run_chars = len(piece) - len(piece.rstrip(_FLAGS))
        count += run_chars
        if run_chars < len(piece):
            break
        index, piece_chars = index - run_chars, piece_chars * 2
    return count


def _jamo(char: str) -> str:
    """Name the part of a Hangul syllable `char` is: L, V, T, LV, LVT, or "" for none."""
    if "\uac00" <= char <= "\ud7a3":
        return "LVT" if (ord(char) - 0xAC00) % 28 else "LV"
    return next((name for name, chars in _JAMO.items() if char in chars), "")


def _chars(ranges: str) -> frozenset[str]:
    """Read code points as Unicode's tables write them: "0600-0605 06DD"."""
    pairs = [item.partition("-")[::2] for item in ranges.split()]
    spans = [range(int(low, 16), int(high or low, 16) + 1) for low, high in pairs]
    return frozenset(chr(code) for span in spans for code in span)


_FIRST_SPECIAL = "\u0300"
"""Below it no code point joins its neighbour, CR before LF excepted."""
_ZWJ = "\u200d"
_VIRAMA = 9
"""Canonical combining class of the signs that take a consonant's vowel away."""
_FLAGS = "".join(chr(0x1F1E6 + letter) for letter in range(26))
"""The regional indicators, A to Z."""

# What no general category tells, from GraphemeBreakProperty.txt and IndicSyllabicCategory.txt, Unicode 18.0.
_EXTENDERS = _chars("200C-200D 0E33 0EB3 FF9E-FF9F 1F3FB-1F3FF E0020-E007F")
_PREPENDED = _chars(
    "0600-0605 06DD 070F 0890-0891 08E2 0D4E 110BD 110CD 111C2-111C3 113D1 1193F 11941 11A3A 11A84-11A89 "
    "11D46 11F02"
)
_LINKERS = _chars("1CF5-1CF6 11A3A")
_JAMO = {
    "L": _chars("1100-115F A960-A97C"),
    "V": _chars("1160-11A7 D7B0-D7C6 16D63 16D67-16D6A"),
    "T": _chars("11A8-11FF D7CB-D7FB"),
}
_JAMO_AFTER = {
    "": (),
    "L": ("L", "V", "LV", "LVT"),
    "V": ("V", "T"),
    "LV": ("V", "T"),
    "T": ("T",),
    "LVT": ("T",),
}


# A word or number ends before a blank or a mark, whatever follows; a letter before a digit; a line
# end before a word. All patterns of our encodings split there, and none of them looks further
# ahead, so counts of the pieces add up exactly.
_BORDER = r"(?:(?<=[^\W_])(?=[ \t.,;:()\"，。、；：！？])|(?<=[a-zA-Z])(?=[0-9])|(?<=\n)(?=[^\W_]))"
_NEXT = re.compile(_BORDER)
_LAST = re.compile(f"(?s:.*){_BORDER}")

_SEARCHED_CHARS = 1_024
"""How far a border is looked for."""


def border_before(text: str, index: int, /) -> int:
    """Return the last border before `index`, at least a character away; 0 if none is near."""
    found = _LAST.match(text, max(0, index - _SEARCHED_CHARS), index)
    return 0 if found is None else found.end()


def border_after(text: str, index: int, /) -> int:
    """Return the first border after `index`, at least a character away; the end if none is near."""
    found = _NEXT.search(text, index + 1, index + _SEARCHED_CHARS)
    return len(text) if found is None else found.end()
