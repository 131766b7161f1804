"""What all of our counters share: whole requests and runs of messages from single sizes."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Self

from trimtab.counting.checks import count_of, counter_name, failure_of, placed
from trimtab.counting.schemas import output_schema_text, system_texts, tools_text, with_functions
from trimtab.errors import CountingError, FormatError
from trimtab.formats import Format, get_format
from trimtab.formats.base import mapping_of

UNLIMITED_TOKENS = 1 << 62
"""More room than any conversation takes."""

_SYSTEM_ROLES = ("system", "developer")


class Additive:
    """Counts lists and requests as the sum of their messages and a fixed part.

    A subclass has `name` and `exact`, a `_format`, and gives `count_message` and `count_text`.
    """

    __slots__ = ("_format", "exact", "name")

    name: str
    exact: bool
    _format: Format

    def __repr__(self) -> str:
        """Show the name, and whether counts are exact."""
        return f"<{type(self).__name__} {self.name!r} exact={self.exact}>"

    @property
    def format(self) -> Format:
        """The wire form it reads."""
        return self._format

    def with_format(self, format: str | Format, /) -> Self:
        """Return the same counter, and what it remembers, for another wire form."""
        twin = copy.copy(self)
        twin._format = get_format(format)
        return twin

    def count(self, messages: Sequence[Any], /) -> int:
        """Count a request that is these messages alone."""
        return self.count_request(messages)

    def count_request(
        self,
        messages: Sequence[Any],
        system: Any = None,
        tools: Any = None,
        extra: Mapping[str, Any] | None = None,
        /,
    ) -> int:
        """Count a whole request: its fixed part, and each message with its framing."""
        dicts = [mapping_of(message) for message in messages]
        sizes: list[int | None] = [None] * len(dicts)
        self.count_back(dicts, 0, len(dicts), UNLIMITED_TOKENS, sizes)
        has_system = bool(system) or bool(dicts and dicts[0].get("role") in _SYSTEM_ROLES)
        fixed_tokens = self.fixed_tokens(system, tools, has_system=has_system, extra=extra)
        return fixed_tokens + sum(size or 0 for size in sizes)

    def count_message(self, message: Any, /) -> int:
        """Count one message with its framing."""
        raise NotImplementedError

    def count_text(self, text: str, /) -> int:
        """Count a bare text, without any framing."""
        raise NotImplementedError

    def fixed_tokens(
        self, system: Any, tools: Any, /, *, has_system: bool, extra: Mapping[str, Any] | None = None
    ) -> int:
        """Count system text and tools (compact JSON) as one leading system message."""
        texts = system_texts(system)
        tools, extra = with_functions(tools, extra)
        if tools:
            texts.append(tools_text(tools, style="json"))
        if extra:
            texts.append(output_schema_text(extra))
        content = "\n".join(filter(None, texts))
        return self.count_message(self._format.message("system", [content])) if content else 0

    def count_back(
        self, messages: list[Any], start: int, stop: int, room_tokens: int, sizes: list[int | None], /
    ) -> int:
        """Fill `sizes` from `stop - 1` back, until their sum passes `room_tokens`."""
        left_tokens = room_tokens
        index = stop
        for index in range(stop - 1, start - 1, -1):
            size = sizes[index]
            if size is None:
                size = sizes[index] = _at(index, self, messages[index])
            left_tokens -= size
            if left_tokens < 0:
                break
        return index


def _at(index: int, counter: Additive, message: Any) -> int:
    try:
        size = counter.count_message(message)
    except (CountingError, FormatError) as error:
        raise placed(error, index) from error.__cause__
    except BaseException as cause:
        raise failure_of(cause, counter=counter_name(counter), of=f"message {index}", index=index) from cause
    if size.__class__ is int and size >= 0:
        return size
    return count_of(size, counter=counter_name(counter), of=f"message {index}", index=index)
