"""What trimtab writes into a view itself is marked and escaped; text that imitates the mark is defused."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from trimtab.formats import Format, Path, mapping_of
from trimtab.strategies.summarizer import SUMMARY_TAG
from trimtab.summaries import marked_summary

__all__ = ["RECALL_TAG", "RESULT_TAG", "defused", "marked_summary", "result_as_text"]

RESULT_TAG = "tool_result"
"""The element the result of a call stands in that was summarized before it came."""

RECALL_TAG = "recalled"
"""The element a message stands in that was found again."""

# Signs that leave no trace on a screen, and that a model may read over: Default_Ignorable_Code_Point and
# category Cf of Unicode 16, controls that are no blanks, lone surrogates.
_UNSEEN = (
    "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2"
    "\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)


def _spelled(name: str) -> str:
    """Match a name, whatever stands unseen between its letters."""
    return f"[{_UNSEEN}]*".join(name)


# No two repeats in a row that may match the same, and none may match `<`: each sign is looked at once.
_IMITATION = re.compile(
    rf"<[\s/{_UNSEEN}]*(?:{'|'.join(map(_spelled, (SUMMARY_TAG, RESULT_TAG, RECALL_TAG)))})", re.IGNORECASE
)
"""The beginning of what could be an element of trimtab's.

What stands in it is not looked at: an attribute may hold `>`, go on for pages, or spell the name of trimtab
in character references.
"""

_OWN_NAME = re.compile(_spelled("trimtab"), re.IGNORECASE)

_REFERENCE = re.compile(r"(&#x?)([0-9a-f]+)", re.IGNORECASE)
"""A character by its number. HTML takes any number of zeros before it; no character has eight digits."""


def imitations(text: str, /) -> list[int]:
    """Return where in the text of a message an element begins that looks like a mark of trimtab's.

    An element of one of its names, and its own name anywhere: `<summary>` alone is common in web pages.
    """
    places = [found.start() for found in _IMITATION.finditer(text)]
    return places if places and _OWN_NAME.search(_unescaped(text)) else []


def _unescaped(text: str) -> str:
    """Return the text with its character references written out."""
    from html import unescape  # not above: it brings every named entity of HTML

    # Python refuses to read numbers of thousands of digits.
    return unescape(_REFERENCE.sub(lambda found: found[1] + found[2].lstrip("0")[:8], text))


def defused(format: Format, message: dict[str, Any], /) -> dict[str, Any]:
    """Return the message, or a copy in which what looks like a mark of trimtab's is escaped.

    Only the sign that opens it changes, so that the text still reads as what it is: text. The texts of a
    message are looked at as one: providers put them one behind the other.
    """
    slots = list(format.texts(message))
    places = imitations("".join(slot.text for slot in slots))
    if not places:
        return message
    texts: dict[Path, str] = {}
    start = 0
    for slot in slots:
        end = start + len(slot.text)
        here = places[bisect_left(places, start) : bisect_left(places, end)]
        if here:
            borders = [place - start for place in here]
            pieces = [slot.text[one:after] for one, after in pairwise((0, *borders, len(slot.text)))]
            texts[slot.path] = "".join((pieces[0], *("&lt;" + piece[1:] for piece in pieces[1:])))
        start = end
    return mapping_of(format.with_texts(message, texts))


def result_as_text(
    format: Format, message: dict[str, Any], answers: Sequence[tuple[str, int | None]], /
) -> dict[str, Any]:
    """Write the results of calls that are no longer in view as marked, escaped text.

    It stands there as something the user passes on: no role with more say than that. Where the message
    holds more than results, that stays beside them, and is said by who said it.

    Args:
        answers: (call id, part index) of the results, as the format read them; part None: the whole message.
    """
    from html import escape  # not above: it brings every named entity of HTML

    key = format.rules.parts_key
    results = {part for _, part in answers if part is not None}
    said = [
        slot.text
        for slot in format.texts(message)
        if not results or (slot.path[0] == key and slot.path[1] in results)
    ]
    body = escape("\n".join(said), quote=False)
    of = escape(", ".join(call_id for call_id, _ in answers), quote=True)
    text = f'<{RESULT_TAG} of="{of}" by="trimtab">\n{body}\n</{RESULT_TAG}>'
    if not results:
        return format.message("user", [text])
    # Without the results first: what stood apart is neighbours then.
    rest = [part for at, part in enumerate(message[key]) if at not in results]
    rest = defused(format, {**message, key: rest})[key]
    role = "assistant" if format.kind(message) == "assistant" else "user"
    return format.message(role, [text, *rest])
