"""What trimtab writes into a view itself is marked and escaped; text that imitates the mark is defused."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from trimtab.formats import Format, Path, mapping_of
from trimtab.summaries import marked_summary
from trimtab.summaries._base import SUMMARY_TAG

__all__ = ["RECALL_TAG", "RESULT_TAG", "defused", "marked_summary", "result_as_text"]

RESULT_TAG = "tool_result"
"""The element the result of a call stands in that was summarized before it came."""

RECALL_TAG = "recalled"
"""The element a message stands in that was found again."""

_IMITATION = re.compile(rf"<(?=\s*/?\s*(?:{SUMMARY_TAG}|{RESULT_TAG}|{RECALL_TAG})\b)", re.IGNORECASE)
"""The first sign of what could be an element of trimtab's.

What stands in it is not looked at: an attribute may hold `>`, go on for pages, or spell the name of trimtab
in character references.
"""


def imitates(texts: Sequence[str], /) -> bool:
    """Tell whether the texts of a message hold what looks like a mark of trimtab's.

    An element of one of its names, and its own name anywhere: `<summary>` alone is common in web pages.
    """
    if not any(_IMITATION.search(text) for text in texts):
        return False
    from html import unescape  # not above: it brings every named entity of HTML

    return "trimtab" in unescape("".join(texts)).casefold()


def defused(format: Format, message: dict[str, Any], /) -> dict[str, Any]:
    """Return the message, or a copy in which what looks like a mark of trimtab's is escaped.

    Only the sign that opens it changes, so that the text still reads as what it is: text.
    """
    slots = list(format.texts(message))
    if not imitates([slot.text for slot in slots]):
        return message
    texts: Mapping[Path, str] = {
        slot.path: _IMITATION.sub("&lt;", slot.text) for slot in slots if _IMITATION.search(slot.text)
    }
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
    rest = [part for at, part in enumerate(defused(format, message)[key]) if at not in results]
    role = "assistant" if format.kind(message) == "assistant" else "user"
    return format.message(role, [text, *rest])
