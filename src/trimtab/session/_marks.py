"""What trimtab writes into a view itself is marked and escaped; text that imitates the mark is defused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from trimtab.formats import Format, Path, mapping_of
from trimtab.summaries import marked_summary
from trimtab.summaries._base import SUMMARY_TAG

__all__ = ["RECALL_TAG", "RESULT_TAG", "defused", "marked_summary", "result_as_text"]

RESULT_TAG = "tool_result"
"""The element the result of a call stands in that was summarized before it came."""

RECALL_TAG = "recalled"
"""The element a message stands in that was found again."""

_IMITATION = re.compile(
    rf"<(?=\s*/?\s*(?:{SUMMARY_TAG}|{RESULT_TAG}|{RECALL_TAG})\b[^<>]{{0,400}}trimtab)", re.IGNORECASE
)
"""The first sign of what looks like a mark of trimtab's; closing marks alone open nothing."""


def imitates(text: str, /) -> bool:
    """Tell whether a text holds what looks like a mark of trimtab's."""
    return "trimtab" in text.casefold() and _IMITATION.search(text) is not None


def defused(format: Format, message: dict[str, Any], /) -> dict[str, Any]:
    """Return the message, or a copy in which what looks like a mark of trimtab's is escaped.

    Only the sign that opens it changes, so that the text still reads as what it is: text.
    """
    texts: Mapping[Path, str] = {
        slot.path: _IMITATION.sub("&lt;", slot.text) for slot in format.texts(message) if imitates(slot.text)
    }
    return mapping_of(format.with_texts(message, texts)) if texts else message


def result_as_text(format: Format, message: dict[str, Any], call_ids: tuple[str, ...], /) -> dict[str, Any]:
    """Write the result of a call that is no longer in view as marked, escaped text.

    It stands there as something the user passes on: no role with more say than that.
    """
    from html import escape  # not above: it brings every named entity of HTML

    body = escape("\n".join(slot.text for slot in format.texts(message)), quote=False)
    of = escape(", ".join(call_ids), quote=True)
    text = f'<{RESULT_TAG} of="{of}" by="trimtab">\n{body}\n</{RESULT_TAG}>'
    return format.message("user", [text])
