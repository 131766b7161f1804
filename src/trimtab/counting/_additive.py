"""What all of our counters share: whole requests and runs of messages from single sizes."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from trimtab.counting._schemas import output_schema_text, system_texts, tools_text
from trimtab.errors import ContextError, CountingError
from trimtab.formats import Format, get_format
from trimtab.formats._base import mapping_of

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
        if tools:
            texts.append(tools_text(tools, style="json"))
        if extra:
            texts.append(output_schema_text(extra))
        content = "\n".join(filter(None, texts))
        return self.count_message({"role": "system", "content": content}) if content else 0

    def count_back(
        self, messages: list[Any], start: int, stop: int, room_tokens: int, sizes: list[int | None], /
    ) -> int:
        """Fill `sizes` from `stop - 1` back, until their sum passes `room_tokens`."""
        count_message = self.count_message
        left_tokens = room_tokens
        index = stop
        for index in range(stop - 1, start - 1, -1):
            size = sizes[index]
            if size is None:
                size = sizes[index] = _at(index, count_message, messages[index])
            left_tokens -= size
            if left_tokens < 0:
                break
        return index


def _at(index: int, count_message: Callable[[Any], int], message: Any) -> int:
    try:
        return count_message(message)
    except CountingError as error:
        raise placed(error, index) from error.__cause__


def placed(error: CountingError, index: int) -> CountingError:
    """Return a counting error that says which message it was about."""
    if error.index is not None:
        return error
    return CountingError(f"message {index}: {error}", counter=error.counter, index=index, answer=error.answer)


def count_of(answer: object, /, *, counter: str, of: str) -> int:
    """Check what a counter answered.

    Raises:
        CountingError: It is a bool, no integer, or negative.
    """
    if type(answer) is int and answer >= 0:
        return answer
    if isinstance(answer, int) and not isinstance(answer, bool) and answer >= 0:
        return int(answer)
    raise CountingError(
        f"counter {counter!r} answered {answer!r:.80} ({type(answer).__name__}) for {of}:"
        " a count is an integer from 0 up",
        counter=counter,
        answer=answer,
    )


def failure_of(cause: BaseException, /, *, counter: str, of: str) -> CountingError:
    """Make ours of what a counter raised; what is not its failure is raised again.

    KeyboardInterrupt and cancellation pass through. A Rust panic is a BaseException that
    cannot be imported, so it is known by its name.

    Raises:
        BaseException: The cause itself, if it is a signal to stop or ours already.
    """
    panicked = type(cause).__name__ == "PanicException"
    if isinstance(cause, ContextError) or not (panicked or isinstance(cause, Exception)):
        raise cause
    return CountingError(
        f"counter {counter!r} raised {type(cause).__name__} for {of}: {cause!s:.200}", counter=counter
    )
