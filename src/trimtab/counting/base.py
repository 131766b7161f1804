"""What a counter can do: the public seam, and what the engine asks of whatever was given.

`trimtab.counting.door` makes a `RequestCounter` of all that `counter=` takes. From there on a counter is one
of two kinds: an `AdditiveCounter`, whose sizes of single messages add up, or a black box over whole requests.
"""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Protocol, Self, TypeAlias, runtime_checkable

from trimtab._shared.checks import name_of, whole_of
from trimtab.counting.schemas import output_schema_text, split_beside, system_texts, tools_text
from trimtab.errors import ConfigurationError, ContextError, CountingError, FormatError
from trimtab.formats import DEFAULT, Format, Media, Pieces, Prices, get_format
from trimtab.formats.values import mapping_of

TextFunction = Callable[[str], int]
"""Returns how many tokens a text has."""


@runtime_checkable
class Counter(Protocol):
    """Anything that returns the tokens of a list of messages; the public interface.

    A counter with only this method is a black box: it is asked about whole lists, and its answers are never
    split into parts.
    """

    def count(self, messages: Sequence[Any], /) -> int:
        """Count the tokens of the messages together, including framing.

        Args:
            messages: The messages, in the counter's wire form.
        """
        ...


class _CountsMessages(Protocol):
    """A counter as users write it, sync or async, with messages of any type."""

    def count(self, messages: Any, /) -> int | Awaitable[int]: ...


class _CountsEach(Protocol):
    """A counter of single messages, whose sizes add up."""

    def count_message(self, message: Any, /) -> int | Awaitable[int]: ...


CounterLike: TypeAlias = _CountsMessages | _CountsEach | Callable[[Any], int | Awaitable[int]] | str
"""What `counter=` may be: a counter, a function of a list of messages or of a text, or "estimate", "chars:4".

An async counter needs `afit`."""


@dataclass(frozen=True, slots=True)
class CountRequest:
    """The request to count: messages, and what is sent with them.

    Args:
        messages: The messages.
        system: System text outside the messages; None if there is none.
        tools: Tool schemas in any provider's form; None or empty if there are none.
        extra: Other charged parts of the body by key, such as an output schema under "response_format".
    """

    messages: Sequence[Any]
    _: KW_ONLY
    system: Any = None
    """System text outside the messages; None if there is none."""
    tools: Any = None
    """Tool schemas in any provider's form; None or empty if there are none."""
    extra: Mapping[str, Any] | None = None
    """Other charged parts of the body by key, such as an output schema under "response_format"."""


class RequestCounter:
    """A counter that is asked about whole requests.

    By itself it is a black box: its answers are never split into parts. Derive from it to count system text
    and tools in your own way. Everything except `count_request` has a default, which says that nothing more
    is known.
    """

    is_awaited: bool = False
    """Whether it gives answers that were awaited before, and stops when one is missing."""

    @property
    def name(self) -> str:
        """Its name in reports."""
        return type(self).__name__

    @property
    def exact(self) -> bool:
        """Whether texts are counted with the model's own tokenizer and framing.

        `measure` says whether the other parts of a request are known.
        """
        return False

    def __repr__(self) -> str:
        """Show the name, and whether counts are exact."""
        return f"<{type(self).__name__} {self.name!r} exact={self.exact}>"

    def count(self, messages: Sequence[Any], /) -> int:
        """Count a request that consists of these messages alone.

        Args:
            messages: The messages, in the counter's wire form.
        """
        return self.count_request(CountRequest(messages))

    def count_request(self, request: CountRequest, /) -> int:
        """Count a whole request.

        Args:
            request: Messages, system text, tools and further keys.
        """
        raise NotImplementedError

    def with_format(self, format: str | Format, /) -> Self:
        """Return the same counter for another wire form; remembered counts are shared.

        Args:
            format: The wire form, or its name.
        """
        return self

    def charge_as(self, format: str | Format, /) -> Self:
        """Return the same counter for messages sent in another wire form.

        Args:
            format: The wire form they are sent in, or its name.

        Raises:
            ConfigurationError: By default it counts messages as they are given, in whatever form they are
                sent.
        """
        raise ConfigurationError(
            f"charge_as={get_format(format).name!r}: the counter {self.name!r} counts messages as they are"
            " passed: leave out charge_as, or count with model=",
            argument="charge_as",
        )

    def without_tools(self) -> Self:
        """Return the same counter for a whole request without tools."""
        return self

    def snapshot(self) -> Self:
        """Return the counter for one fit, fixed to what it has been told so far."""
        return self

    def margin_tokens(self, tokens: int, /) -> int | None:
        """Say how far the bill may be above a count; None if unknown.

        Args:
            tokens: The count.
        """
        return None

    def over_margin_tokens(self, tokens: int, /) -> int | None:
        """Say how far the bill may be below a count; by default, as far as above.

        Args:
            tokens: The count.
        """
        return self.margin_tokens(tokens)

    @property
    def exact_features(self) -> frozenset[str] | None:
        """Features of requests that were billed as counted; None: `exact` decides."""
        return None

    def unsure_tokens(self, tools: Any, media: Iterable[Media] = (), /) -> int | None:
        """Say how far tools and media may be off beyond the margin; None if unknown.

        Args:
            tools: Tool schemas of the request.
            media: Images, sounds, videos and files of the request.
        """
        return None

    def unsure_thoughts(self, pieces: Sequence[Pieces], /) -> int:
        """Say how far the count of encrypted reasoning may be off beyond the margin.

        Args:
            pieces: The messages of the request.
        """
        return 0

    @property
    def adds_prompt(self) -> bool:
        """Whether the provider adds a prompt of its own to requests that have none."""
        return False

    def sees(self, medium: Media, /) -> bool:
        """Tell whether a message shows enough of a medium to know its charge.

        Args:
            medium: The known facts about the medium.
        """
        return True

    def knows(self, pieces: Pieces, /) -> bool:
        """Tell whether a message is counted by rules that are known to the token.

        Args:
            pieces: The content of the message.
        """
        return True

    def guesses(self, pieces: Pieces, /) -> list[str]:
        """List the parts of a message whose counting rules no bill confirms.

        Args:
            pieces: The content of the message.
        """
        return []

    def weight(self, message: Any, /) -> float | None:
        """Say how much of a stride a message takes; None: the bytes of its texts.

        Args:
            message: A message as the caller passed it.
        """
        return None

    @property
    def prices(self) -> Prices | None:
        """The cost of plain messages; None if no message is plain.

        Used by a format that counts while it reads.
        """
        return None


class AdditiveCounter(RequestCounter):
    """A counter whose message sizes and fixed part add up to the whole request.

    `count_request(r) == fixed_tokens(r.system, r.tools, …) + sum(count_message(m) for m in r.messages)`,
    except that messages the provider does not read (`Format.unread`) cost nothing. A subclass defines
    `count_message`, and overrides the defaults it can improve.
    """

    # read-only above, where what it says may change with each answer; here users set them
    name: str = ""  # pyright: ignore[reportIncompatibleMethodOverride]
    """Its name in reports; the name of its class if empty."""
    # and so is this
    exact: bool = False  # pyright: ignore[reportIncompatibleMethodOverride]
    """Whether texts are counted with the model's own tokenizer and framing."""
    _format: Format = get_format(DEFAULT)

    @property
    def format(self) -> Format:
        """The wire form it reads."""
        return self._format

    def with_format(self, format: str | Format, /) -> Self:
        """Return the same counter for another wire form; remembered counts are shared.

        Args:
            format: The wire form, or its name.
        """
        form = get_format(format)
        if form is self._format:
            return self
        twin = copy.copy(self)
        twin._format = form
        return twin

    def count_request(self, request: CountRequest, /) -> int:
        """Count a whole request: its fixed part, and each message with its framing.

        Args:
            request: Messages, system text, tools and further keys.
        """
        dicts = [mapping_of(message) for message in request.messages]
        sizes: list[int | None] = [None] * len(dicts)
        for index in self.format.unread(dicts):
            sizes[index] = 0
        self.count_back(dicts, 0, len(dicts), UNLIMITED_TOKENS, sizes)
        has_system = bool(request.system) or bool(dicts and dicts[0].get("role") in SYSTEM_ROLES)
        fixed_tokens = self.fixed_tokens(
            request.system, request.tools, has_system=has_system, extra=request.extra
        )
        return fixed_tokens + sum(size or 0 for size in sizes)

    def count_message(self, message: Any, /) -> int:
        """Count one message with its framing.

        Args:
            message: A plain dict in the counter's wire form.
        """
        raise NotImplementedError

    def count_text(self, text: str, /) -> int:
        """Count a bare text without framing: the tokens it adds to an empty message.

        Args:
            text: Any text; special tokens in it count as text.
        """
        empty, filled = (self._format.message("user", [one]) for one in ("", text))
        tokens = checked_count(lambda: self.count_message(filled), self, None)
        return max(0, tokens - checked_count(lambda: self.count_message(empty), self, None))

    def fixed_tokens(
        self, system: Any, tools: Any, /, *, has_system: bool, extra: Mapping[str, Any] | None = None
    ) -> int:
        """Count what a request is charged in addition to its messages.

        By default, system text and tools (as compact JSON) count as one leading system message.

        Args:
            system: System text outside the messages; None if there is none.
            tools: Tool schemas in any provider's form; None or empty if there are none.
            has_system: Whether the first message is a system or developer message.
            extra: Other charged parts of the body, such as an output schema under "response_format".
        """
        texts = system_texts(system)
        tools, extra = split_beside(tools, extra)
        if tools:
            texts.append(tools_text(tools, style="json"))
        if extra:
            texts.append(output_schema_text(extra))
        content = "\n".join(filter(None, texts))
        return self.count_message(self._format.message("system", [content])) if content else 0

    def count_back(
        self, messages: list[Any], start: int, stop: int, room_tokens: int, sizes: list[int | None], /
    ) -> int:
        """Fill `sizes` from `stop - 1` backwards until their sum exceeds `room_tokens`.

        Sizes that are already known are kept and included in the sum. `messages[start:stop]` must be plain
        dicts.

        Args:
            messages: The conversation.
            start: Index of the oldest message it may count.
            stop: One past the index of the newest message.
            room_tokens: Counting stops once the sum exceeds this many tokens.
            sizes: Tokens of each message, None where not yet counted; filled in.

        Returns:
            The lowest index whose size is filled in; `stop` if there was nothing to do.
        """
        index = stop
        while index > start and room_tokens >= 0:
            index -= 1
            size = sizes[index]
            if size is None:
                size = sizes[index] = self._size_at(index, messages[index])
            room_tokens -= size
        return index

    def _size_at(self, index: int, message: Any) -> int:
        try:
            size = self.count_message(message)
        except (CountingError, FormatError) as error:
            raise with_index(error, index) from error.__cause__
        except BaseException as cause:
            name = counter_name(self)
            raise failure_of(cause, counter=name, of=f"message {index}", index=index) from cause
        if size.__class__ is int and size >= 0:
            return size
        return count_of(size, counter=counter_name(self), of=f"message {index}", index=index)

    def media_tokens(self, media: Media, /) -> int | None:
        """Count one image, sound, video or file; None if it cannot be counted separately.

        Args:
            media: The known facts about the medium.
        """
        return None

    def dropped_tokens(self, pieces: Pieces, /) -> int:
        """Count what is no longer charged once the turn of a message is over.

        Args:
            pieces: The content of the message.
        """
        return 0


UNLIMITED_TOKENS = 1 << 62
"""More room than any conversation takes."""

SYSTEM_ROLES = ("system", "developer")


def counter_name(counter: object, /) -> str:
    """Name a counter for reports and errors."""
    return name_of(counter)


def checked_count(
    call: Callable[[], object], counter: object, index: int | None, *, of: str = "a request"
) -> int:
    """Call a counter and check that it returns a count.

    Args:
        call: Asks the counter.
        counter: The counter that the error names.
        index: Position of the message it is asked about; None for anything else.
        of: What it is asked about then.

    Raises:
        CountingError: It raised, or answered a bool, a negative number or no integer.
    """
    of = of if index is None else f"message {index}"
    try:
        answer = call()
    except BaseException as cause:
        raise failure_of(cause, counter=counter_name(counter), of=of, index=index) from cause
    return count_of(answer, counter=counter_name(counter), of=of, index=index)


def count_of(answer: object, /, *, counter: str, of: str, index: int | None = None) -> int:
    """Check the answer of a counter.

    Raises:
        CountingError: It is a bool, not an integer, negative, or awaitable.
    """
    tokens = whole_of(answer)
    if tokens is not None and tokens >= 0:
        return tokens
    if isinstance(answer, Awaitable):
        if isinstance(answer, Coroutine):
            answer.close()  # or Python warns that it was never awaited
        what = f"counter {counter} is async, but fit() is synchronous ({of}): await afit(...)"
    else:
        what = f"counter {counter} returned {answer!r:.80} for {of}; a count must be an integer >= 0"
    raise CountingError(what, counter=counter, index=index, answer=answer)


def failure_of(cause: BaseException, /, *, counter: str, of: str, index: int | None = None) -> CountingError:
    """Turn an exception of a counter into ours; anything that is not its failure is raised again.

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


def with_index(error: CountingError | FormatError, index: int, /) -> CountingError | FormatError:
    """Return an error of counting that says which message it was about."""
    if isinstance(error, FormatError):
        where = f"messages[{index}]"
        return error if error.path else FormatError(f"{where}: {error}", path=where)
    if error.index is not None:
        return error
    return CountingError(f"message {index}: {error}", counter=error.counter, index=index, answer=error.answer)
