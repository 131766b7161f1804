"""`WordCounter`: a counter whose answers can be checked by eye."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from trimtab.counting.base import AdditiveCounter
from trimtab.formats import DEFAULT, Format, get_format, mapping_of


class WordCounter(AdditiveCounter):
    """One token per word, none for framing.

    Limits in tests are exact, because the tokens of a text can be counted by eye. Words of texts, of tool
    names and of call arguments count; an image, sound or file is one word. Everything else is written as
    compact JSON, and its words are counted. It adds up, so trimtab counts only as far back as necessary; pass
    `counter=words.count` to use it as a black box.

    Args:
        format: Name of the wire form of the messages; `fit` and `Context` set it themselves.

    Example:
        >>> from trimtab import fit
        >>> messages = [{"role": "user", "content": text} for text in ("one two", "three", "four five")]
        >>> [message["content"] for message in fit(messages, budget=3, counter=WordCounter()).messages]
        ['three', 'four five']
    """

    name = "words"
    exact = True

    def __init__(self, *, format: str | Format = DEFAULT) -> None:
        self._format = get_format(format)

    def count_message(self, message: Any, /) -> int:
        """Count the words of one message."""
        pieces = self._format.pieces(mapping_of(message))
        texts = [*pieces.texts, *pieces.beside, *(text for call in pieces.calls for text in call)]
        return sum(map(self.count_text, texts)) + len(pieces.media)

    def count_text(self, text: str, /) -> int:
        """Count the words of a text: the parts between white space."""
        return len(text.split())

    def fixed_tokens(
        self, system: Any, tools: Any, /, *, has_system: bool, extra: Mapping[str, Any] | None = None
    ) -> int:
        """Count the words of system text and tools, with other values as compact JSON."""
        return sum(self.count_text(_write(value)) for value in (system, tools, extra) if value)


def _write(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
