"""Which parts of a message are its writer's own words, and where they end: paragraphs, items, headings.

What is quoted, pasted, code or a document is hidden sign by sign, so that places stay those of the message.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from trimtab.rules.words import CLOSED, HIDDEN

__all__ = ["Passage", "hide", "is_document", "manual_at", "passages"]

_TAG = re.compile(r"</?[A-Za-z][^<>\n]{0,300}>")
_FENCE = re.compile(r" {0,3}(?:```|~~~)")
_LISTING = re.compile(r"\s{0,12}\d{1,7}(?:[:|→\t](?!\d)|[-+]\s{2})")
_ITEM = re.compile(r"\s{0,12}(?:[-*•+–]|\(?(?:\d{1,3}|[a-zA-Z])[.)])[ \t]{1,4}(?=\S)")
_CHINESE_ITEM = re.compile(r"\s{0,12}(?:[（(]?[一二三四五六七八九十\d]{1,3}[、）)．]|[·●])[ \t]{0,4}(?=\S)")
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]{1,4}(?=\S)")
_HEADINGS = re.compile(r"^#{1,6} ", re.MULTILINE)
_HEADER = re.compile(
    r"(?:from|to|cc|subject|date|sent|von|an|betreff|gesendet|de|para|asunto|enviado|à|objet|envoyé"
    r"|发件人|收件人|主题|日期)[:：]",
    re.IGNORECASE,
)
_FORWARDED = re.compile(
    r"\s{0,8}(?:-{2,12} ?(?:original|forwarded|begin)|on .{4,90} wrote:|am .{4,90} schrieb)", re.I
)
_LOG = re.compile(
    r"\s{0,8}(?:\[?\d{4}-\d\d-\d\d[ T]\d\d:|\[?(?:INFO|WARN|WARNING|ERROR|DEBUG|TRACE)\b|traceback |file \""
    r"|[$%>]{1,3} |diff --git|@@ |\+\+\+ |--- |[{}\[\]|])",
    re.IGNORECASE,
)
_CODE = re.compile(r"\(\);|\)\{|[=!+]=|&&|\|\||[=-]>|::|</|/>| = |\\n")
_CODE_ENDS = (";", "{", "}", "};", "])", "({", "[", "\\", "],", "),", "',", '",', "'}", '"}')
_PAIRS = {
    "“": "”",
    "„": "“”",
    "«": "»",
    "「": "」",
    "『": "』",
    "‹": "›",
    '"': '"',
    "`": "`",
    "'": "'",
    "‘": "’",
}
_QUOTE = re.compile(r"[“”„«»「」『』‹›\"`'‘’]|\n[ \t]*\n")
_LABEL = re.compile(r"[A-Z][a-z]{2,20}(?: [a-z]{2,20})?: ")
_LONG_LINE = 48
"""From this length on a line without an end was wrapped: the next one goes on with its sentence."""


_MOST_MARKS = 1_000
"""A text with more lines, tags or quotation marks than this is a document."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A paragraph, an item of a list, or a heading, by its place in the message."""

    start: int
    end: int
    kind: Literal["text", "item", "heading"]


def is_document(text: str, /) -> bool:
    """Tell a text that nobody wrote as a message: it has more lines, tags or quotes than somebody writes."""
    return any(text.count(sign) > _MOST_MARKS for sign in "\n<\"'`“„«「")


_MANUAL_CHARS = 4_000
_MANUAL_HEADINGS = 5
"""A user's text of more characters with at least so many headings is a manual."""


def manual_at(text: str, /) -> int:
    """Give the place from which on a user's message is a manual, pasted: long, with many headings.

    The length of the text where it is none. Operators write theirs so, users do not.
    """
    if len(text) <= _MANUAL_CHARS:
        return len(text)
    headings = list(_HEADINGS.finditer(text))
    return headings[0].start() if len(headings) >= _MANUAL_HEADINGS else len(text)


def hide(text: str, /) -> str:
    """Hide what is quoted or marked up as a document; the text stays as long as it is."""
    return _without_quotes(_without_documents(text))


def _without_documents(text: str) -> str:
    """Hide everything from the first `<tag>` to the last `</tag>` of that name, and single tags."""
    if "<" not in text:
        return text
    tags = list(_TAG.finditer(text))
    closed = {_name(tag): tag.end() for tag in tags if tag[0][1] == "/"}
    parts, at = [], 0
    for tag in tags:
        if tag.start() < at:
            continue
        alone = tag[0][1] == "/" or tag[0].endswith("/>")
        end = tag.end() if alone else max(tag.end(), closed.get(_name(tag), 0))
        parts += [text[at : tag.start()], _blanks(text, tag.start(), end)]
        at = end
    return "".join([*parts, text[at:]])


def _name(tag: re.Match[str]) -> str:
    return tag[0].strip("</>").split(None, 1)[0].lower()


def _blanks(text: str, start: int, end: int) -> str:
    """Write as many signs as are hidden; line breaks stay, or two paragraphs would be one."""
    return "\n".join(HIDDEN * len(line) for line in text[start:end].split("\n"))


def _without_quotes(text: str) -> str:
    """Hide what is between quotation marks; one that is never closed hides the rest of its paragraph."""
    if not _QUOTE.search(text):
        return text
    parts, at, opened, closes = [], 0, -1, ""
    for match in (*_QUOTE.finditer(text), None):
        here, sign = (match.start(), match.group()) if match else (len(text), "\n")
        if opened < 0:
            if sign in _PAIRS and _opens(text, here, sign):
                opened, closes = here, _PAIRS[sign]
        elif sign in closes and _closes(text, here, sign):
            parts += [text[at:opened], _hidden_quote(text, opened, here + 1)]
            at, opened = here + 1, -1
        elif sign[0] == "\n":
            if closes not in ("'", "’", "`"):
                parts += [text[at:opened], _blanks(text, opened, here)]
                at = here
            opened = -1
    return "".join([*parts, text[at:]])


def _hidden_quote(text: str, start: int, end: int) -> str:
    """Hide a quote; its last sign says whether a sentence ended in it."""
    hidden = _blanks(text, start, end)
    return hidden[:-1] + CLOSED if text[end - 2] in ".!?。！？" else hidden


def _opens(text: str, at: int, sign: str) -> bool:
    """Tell a mark that opens from an apostrophe, and from inches."""
    before, after = text[at - 1 : at], text[at + 1 : at + 2]
    if sign in "'‘":
        return not before.isalnum() and before not in ".)" and after.isalnum()
    return sign != '"' or (not before.isdigit() and after != "" and not after.isspace())


def _closes(text: str, at: int, sign: str) -> bool:
    before, after = text[at - 1 : at], text[at + 1 : at + 2]
    return sign not in "'’" or (not before.isspace() and not after.isalnum())


def passages(text: str, hidden: str, /) -> list[Passage]:
    """List the paragraphs, items and headings that are the writer's own words.

    Args:
        text: The message.
        hidden: The same, after `hide`.

    Complexity: O(n) in characters.
    """
    walk = _Walk(_indent(text))
    for start, end in _lines(text):
        if walk.ended:
            break
        walk.take(text[start:end], hidden[start:end], start)
    walk.flush()
    return walk.found


def _indent(text: str) -> int:
    """Count the spaces before every line, if the text begins with a line break as long strings in code do."""
    if text[:1] != "\n":
        return 0
    return min((len(line) - len(line.lstrip(" ")) for line in text.split("\n") if line.strip()), default=0)


def _lines(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    while start <= len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        yield start, end
        start = end + 1


class _Walk:
    """Goes through a message line by line."""

    def __init__(self, indent: int) -> None:
        self._indent = indent
        self.found: list[Passage] = []
        self.ended = False
        self._open: Passage | None = None
        self._last = ""
        self._fence = False
        self._blank = True
        self._headers = 0

    def flush(self) -> None:
        """End the passage that is open."""
        if self._open is not None:
            self.found.append(self._open)
        self._open = None

    def take(self, line: str, hidden: str, start: int) -> None:
        """Look at the next line: it begins a passage, goes on with one, or is nobody's own words."""
        if _FENCE.match(line):
            self._fence = not self._fence
            self.flush()
        elif self._fence:
            return
        elif not line.strip():
            self.flush()
            self._headers, self._blank = 0, True
        elif self._mail(line):
            self.ended = True
            self.flush()
        elif self._foreign(line, hidden):
            self.flush()
            self._blank = False
        else:
            self._own(line, hidden, start)
            self._blank = False

    def _mail(self, line: str) -> bool:
        """Tell whether mail begins here: its text is somebody else's."""
        self._headers = self._headers + 1 if _HEADER.match(line) else 0
        return self._headers >= 2 or _FORWARDED.match(line) is not None

    def _foreign(self, line: str, hidden: str) -> bool:
        """Tell whether a line is a quote, code, a listing, or all hidden."""
        bare = hidden.strip()
        if bare[0] == ">" or not bare.strip(HIDDEN + CLOSED):
            return True
        if _LISTING.match(line) or _LOG.match(line):
            return True
        if line[self._indent :].startswith(("    ", "\t")):
            return self._open is None or self._open.kind != "item"
        return bare.endswith(_CODE_ENDS) or _CODE.search(bare) is not None

    def _own(self, line: str, hidden: str, start: int) -> None:
        mark = _HEADING.match(line) if "#" in line else None
        kind: Literal["text", "item", "heading"] = "heading" if mark else "text"
        if mark is None:
            mark = _ITEM.match(line) or _CHINESE_ITEM.match(line)
            kind = "item" if mark else "text"
        end = start + len(hidden.rstrip())
        if mark is None and self._open is not None and self._open.kind != "heading" and self._goes_on(hidden):
            self._open = Passage(self._open.start, end, self._open.kind)
        else:
            self.flush()
            begin = start + (mark.end() if mark else len(line) - len(line.lstrip()))
            self._open = Passage(begin, end, kind)
        self._last = hidden.strip()

    def _goes_on(self, hidden: str) -> bool:
        """Tell whether a line goes on with the sentence of the line before: it was wrapped."""
        if _LABEL.match(hidden) or self._last[-1:] in ".!?:。！？：;；" + CLOSED:
            return False
        first = hidden.strip()[0]
        return first.islower() or len(self._last) >= _LONG_LINE or self._last[-1:] in ",，、-–—("
