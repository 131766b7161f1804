"""What a counter must be able to do: the public seam, and what an additive one adds to it."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol, Self, TypeAlias, runtime_checkable

from trimtab.counting.schemas import output_schema_text, system_texts, tools_text, with_functions
from trimtab.errors import ContextError, CountingError, FormatError
from trimtab.formats import Format, get_format
from trimtab.formats.values import mapping_of

__all__ = [
    "Additive",
    "AdditiveCounter",
    "Counter",
    "CounterLike",
    "RequestCounter",
    "TextFunction",
    "as_it_stands",
    "checked_count",
    "count_of",
    "counter_name",
    "failure_of",
    "placed",
]


TextFunction = Callable[[str], int]
"""Tells how many tokens a text has."""


@runtime_checkable
class Counter(Protocol):
    """Anything that says how many tokens a list of messages has; the public seam.

    A counter that has only this is a black box: it is asked about whole lists, and what it
    answers is never split into parts.
    """

    def count(self, messages: Sequence[Any], /) -> int:
        """Count the tokens of the messages together, framing included."""
        ...


@runtime_checkable
class RequestCounter(Protocol):
    """A counter that can count system text and tools in the provider's own way."""

    def count_request(self, messages: Sequence[Any], system: Any = None, tools: Any = None, /) -> int:
        """Count the tokens of a whole request."""
        ...


@runtime_checkable
class AdditiveCounter(Protocol):
    """A counter whose sizes of single messages, and a fixed part, add up to the whole.

    `count_request(m, s, t) == fixed_tokens(s, t, has_system=…) + sum(count_message(x) for x in m)`.
    """

    @property
    def name(self) -> str:
        """What the report calls it."""
        ...

    @property
    def exact(self) -> bool:
        """Whether texts are counted with the model's own tokenizer and framing.

        Of what else a request may hold, `measure` says whether it is known.
        """
        ...

    def count(self, messages: Sequence[Any], /) -> int:
        """Count a request that is these messages alone."""
        ...

    def count_request(
        self,
        messages: Sequence[Any],
        system: Any = None,
        tools: Any = None,
        extra: Mapping[str, Any] | None = None,
        /,
    ) -> int:
        """Count a whole request; `extra` holds other charged parts of its body by key."""
        ...

    def count_message(self, message: Any, /) -> int:
        """Count one message with its framing."""
        ...

    def count_text(self, text: str, /) -> int:
        """Count a bare text, without any framing."""
        ...

    def fixed_tokens(
        self, system: Any, tools: Any, /, *, has_system: bool, extra: Mapping[str, Any] | None = None
    ) -> int:
        """Count what a request is charged beside its messages.

        Args:
            system: System text that stands outside the messages; None if there is none.
            tools: Tool schemas in any provider's form; None or empty if there are none.
            has_system: Whether the first message is a system or developer message.
            extra: Other charged parts of the body, an output schema under "response_format".
        """
        ...

    def count_back(
        self, messages: list[Any], start: int, stop: int, room_tokens: int, sizes: list[int | None], /
    ) -> int:
        """Fill `sizes` from `stop - 1` back, until their sum passes `room_tokens`.

        Sizes that are known already are kept, and are part of the sum. `messages[start:stop]`
        must be plain dicts.

        Returns:
            The lowest index whose size is filled in; `stop` if there was nothing to do.
        """
        ...


class _CountsMessages(Protocol):
    """A counter as users write it: whatever it calls a message, and whether it is async."""

    def count(self, messages: Any, /) -> int | Awaitable[int]: ...


class _CountsEach(Protocol):
    """A counter of single messages, whose sizes add up."""

    def count_message(self, message: Any, /) -> int | Awaitable[int]: ...


CounterLike: TypeAlias = _CountsMessages | _CountsEach | Callable[[Any], int | Awaitable[int]] | str
"""What `counter=` takes: a counter, a function of a list of messages or of a text, or "estimate", "chars:4".

What is async is for `afit`."""


# What a counter answers or raises: a count is checked, a failure is named with its place.


def counter_name(counter: Any, /) -> str:
    """Name a counter for reports and errors."""
    name = getattr(counter, "name", None) or getattr(counter, "__name__", None)
    return str(name) if name else type(counter).__name__


def checked_count(call: Callable[[], Any], counter: Any, index: int | None) -> int:
    """Call a counter and insist on a count.

    Args:
        call: Asks the counter.
        counter: Whom the error names.
        index: Position of the message it is asked about; None for a whole request.

    Raises:
        CountingError: It raised, or answered a bool, a negative number or no integer.
    """
    of = "a request" if index is None else f"message {index}"
    try:
        answer = call()
    except BaseException as cause:
        raise failure_of(cause, counter=counter_name(counter), of=of, index=index) from cause
    return count_of(answer, counter=counter_name(counter), of=of, index=index)


def count_of(answer: Any, /, *, counter: str, of: str, index: int | None = None) -> int:
    """Check what a counter answered.

    Raises:
        CountingError: It is a bool, no integer, negative, or an answer still to come.
    """
    if type(answer) is int and answer >= 0:
        return answer
    if isinstance(answer, int) and not isinstance(answer, bool) and answer >= 0:
        return int(answer)
    if hasattr(answer, "__await__"):
        close = getattr(answer, "close", None)
        if close is not None:
            close()  # or Python warns that it was never awaited
        what = f"counter {counter} counts asynchronously and fit() is synchronous ({of}): await afit(...)"
    else:
        what = f"counter {counter} answered {answer!r:.80} for {of}; a count is an integer >= 0"
    raise CountingError(what, counter=counter, index=index, answer=answer)


def failure_of(cause: BaseException, /, *, counter: str, of: str, index: int | None = None) -> CountingError:
    """Make ours of what a counter raised; what is not its failure is raised again.

    KeyboardInterrupt and cancellation pass through. A Rust panic is a BaseException that
    cannot be imported, so it is known by its name.

    Raises:
        BaseException: The cause itself, if it is a signal to stop or ours already.
    """
    panicked = type(cause).__name__ == "PanicException"
    if isinstance(cause, ContextError) or not (panicked or isinstance(cause, Exception)):
        raise cause
    what = f"counter {counter} failed on {of}: {type(cause).__name__}: {cause!s:.200}"
    return CountingError(what, counter=counter, index=index)


def placed(error: CountingError | FormatError, index: int, /) -> CountingError | FormatError:
    """Return an error of counting that says which message it was about."""
    if isinstance(error, FormatError):
        where = f"messages[{index}]"
        return error if error.path else FormatError(f"{where}: {error}", path=where)
    if error.index is not None:
        return error
    return CountingError(f"message {index}: {error}", counter=error.counter, index=index, answer=error.answer)


def as_it_stands(counter: Any, /) -> Any:
    """Return what one fit asks, where a counter goes by what it was told so far; any other as it is."""
    view = getattr(counter, "_for_one_fit", None)
    return counter if view is None else view()


# What all of our counters share: whole requests and runs of messages from single sizes.


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
