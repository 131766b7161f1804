"""The errors of trimtab have one root; each is also the built-in error a caller would expect.

ContextError(Exception)
├── ConfigurationError(ValueError)
│   ├── UnknownNameError(LookupError)
│   │   └── PrunedError
│   └── UsageError
├── BudgetExceededError
├── InvalidHistoryError(ValueError)
├── NoTargetError(ValueError)
├── CountingError
├── StrategyContractError
├── SummaryError
├── RankerError
├── FormatError(ValueError)
├── MissingExtraError(ImportError)
├── BatchError
├── CopyError(TypeError)
└── StoreError
    ├── StoreUnavailableError(ConnectionError)
    ├── VersionConflictError
    ├── SessionDeletedError
    ├── SessionExpiredError
    ├── EncryptionKeyError
    │   └── KeyDroppedError
    └── CorruptSessionError(ValueError)
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

__all__ = [
    "BatchError",
    "BudgetExceededError",
    "ConfigurationError",
    "ContextError",
    "CopyError",
    "CorruptSessionError",
    "CountingError",
    "EncryptionKeyError",
    "FormatError",
    "InvalidHistoryError",
    "KeyDroppedError",
    "MissingExtraError",
    "NoTargetError",
    "PrunedError",
    "RankerError",
    "SessionDeletedError",
    "SessionExpiredError",
    "StoreError",
    "StoreUnavailableError",
    "StrategyContractError",
    "SummaryError",
    "UnknownNameError",
    "UsageError",
    "VersionConflictError",
]


class Hint(NamedTuple):
    """What an error names for its reader to use; who shows it may write it in words of their own."""

    name: str
    """What is meant: a parameter, or a word of its own."""
    text: str
    """How Python writes it."""
    value: str = ""
    """What was or is to be given for it; empty where that is not said, or True."""


ROOM = Hint("room", "budget= (tokens, or a Budget)")
EVENT = Hint("event", "pass an event of history(), or its id")
IN_NAMES = Hint("in names", " in names=")
NAMES_HAS = Hint("names", "names= has")


def option(name: str, value: object = None, /) -> Hint:
    """Name a parameter, as `budget=`, or with a value, as `budget=8,000`."""
    if value is None or value is True:
        return Hint(name, f"{name}={value or ''}")
    if isinstance(value, int):
        return Hint(name, f"{name}={value:,}", f"{value:,}")
    return Hint(name, f"{name}={value!r}", str(value))


class Phrase(str):
    """The text of an error, which remembers the hints in it; `phrase` makes it."""

    parts: tuple[str | Hint, ...]


def phrase(*parts: str | Hint | BaseException) -> Phrase:
    """Put the text of an error together from words, hints, and the texts of other errors."""
    found: list[str | Hint] = []
    for part in parts:
        text = part.args[0] if isinstance(part, ContextError) and part.args else part
        found += text.parts if isinstance(text, Phrase) else [text if isinstance(text, Hint) else str(text)]
    made = Phrase("".join(part.text if isinstance(part, Hint) else part for part in found))
    made.parts = tuple(found)
    return made


class ContextError(Exception):
    """Any error raised by trimtab.

    `except ContextError` catches all of them and nothing else.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        """Survive pickling with every attribute, although constructors take keywords."""
        return (_rebuild, (type(self), self.args, dict(self.__dict__)))


def _rebuild(kind: type[ContextError], args: tuple[object, ...], state: dict[str, object]) -> ContextError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class _AboutMessage(Exception):
    """The place of an error about a message, as data from which its text is written."""

    _words: ClassVar[str]
    """How the text names a message."""
    block: str | None = None
    """Name of the message's block; None outside a `Context`."""

    def _learn(self, message: str, index: int | None) -> None:
        """Remember what the text says on both sides of the message it names."""
        self.index = index
        here = None if index is None else self._words.format(index)
        parts = [message] if here is None else message.split(here, 1)
        self._sides = parts[0], parts[1] if len(parts) == 2 else None

    def _write(self) -> None:
        before, after = self._sides
        text = before if after is None else f"{before}{self._words.format(self.index)}{after}"
        self.args = (text if self.block is None else f"block {self.block!r}: {text}",)


class ConfigurationError(ContextError, ValueError):
    """Arguments contradict each other or are out of range.

    Raised where they are given.

    Args:
        message: The text of the error.
        argument: Name of the wrong parameter, such as "budget"; None if it is not a single one.
        place: Place in the data, such as `blocks[2].strategy.keep_results`; None if the error is not about
            data.
    """

    def __init__(self, message: str = "", *, argument: str | None = None, place: str | None = None) -> None:
        super().__init__(message)
        self.argument = argument
        """Name of the wrong parameter, such as "budget"; None if it is not a single one."""
        self.place = place
        """Place in the data, such as `blocks[2].strategy.keep_results`; None if the error is not about data.
        """


class UnknownNameError(ConfigurationError, LookupError):
    """A model, encoding, format, strategy or scorer of this name is not registered.

    The text lists names with a similar spelling.

    Args:
        message: The text of the error.
        name: The name that was asked for.
        near: Known names with a similar spelling, best first.
        argument: Name of the parameter, such as "format"; None if it is not a single one.
        place: Place in the data, such as `blocks[2].strategy.keep_results`; None if the error is not about
            data.
    """

    def __init__(
        self,
        message: str,
        *,
        name: str = "",
        near: tuple[str, ...] = (),
        argument: str | None = None,
        place: str | None = None,
    ) -> None:
        super().__init__(message, argument=argument, place=place)
        self.name = name
        """The name that was asked for."""
        self.near = near
        """Known names with a similar spelling, best first."""

    def __str__(self) -> str:
        """Give the message as written; `LookupError` alone would not quote it."""
        return str(self.args[0]) if self.args else ""


class PrunedError(UnknownNameError):
    """An event is asked for, or needed, that `session.prune` removed.

    Nothing was changed. The text says when it was pruned, if that is known, and what is the oldest version
    that can still be shown.

    Args:
        message: The text of the error.
        name: The id or the version that was asked for.
        session: Name of the session.
        oldest: The oldest version that can be shown; None if it is not known.
    """

    def __init__(self, message: str, *, name: str = "", session: str = "", oldest: int | None = None) -> None:
        super().__init__(message, name=name)
        self.session = session
        """Name of the session."""
        self.oldest = oldest
        """The oldest version that can be shown; None if it is not known."""


class UsageError(ConfigurationError):
    """A bill is not for the messages that were sent.

    The server replaced messages before it answered, so the bill does not show the size of any message. Record
    nothing for this request, and continue with the next.

    Args:
        message: The text of the error.
        argument: Name of the wrong parameter, such as "usage"; None if it is not a single one.
        place: As for `ConfigurationError`.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaviestMessage:
    """The heaviest of the messages that had to be kept; public in `trimtab.report`.

    Args:
        index: Position in the list that was passed; in a `Context`, in the list of its block.
        role: Its kind: "system", "user", "assistant" or "tool".
        tools: Names of the tools whose results it has.
        tokens: Its size when sent.
    """

    index: int
    """Position in the list that was passed; in a `Context`, in the list of its block."""
    role: str
    """Its kind: "system", "user", "assistant" or "tool"."""
    tools: tuple[str, ...]
    """Names of the tools whose results it has."""
    tokens: int
    """Its size when sent."""

    def __str__(self) -> str:
        """Name it, as in "message 5, the result of search, 300 tokens"."""
        what = f"the result of {' and '.join(self.tools)}" if self.tools else f"role {self.role}"
        return f"message {self.index}, {what}, {self.tokens:,} tokens"


class BudgetExceededError(ContextError):
    """What must be kept does not fit; has the numbers and the best attempt.

    Args:
        message: The text of the error.
        needed_tokens: Size of the request in tokens when as much as possible is evicted and shortened.
        limit_tokens: The input room in tokens.
        block: Name of the block that does not fit; "history" in `fit`.
        attempt: The closest `Fitted`, over budget, if `fit` or a `Context` raised the error. None if
            there were only numbers: in `allocate`, or for what a session always shows. After the error is
            pickled or copied, the attempt can be read but not fitted to another budget.
        heaviest: The heaviest of the caller's messages that had to be kept. None if no message is in the way,
            or if only the whole request was counted.
    """

    def __init__(
        self,
        message: str,
        *,
        needed_tokens: int | None = None,
        limit_tokens: int | None = None,
        block: str | None = None,
        attempt: Any = None,
        heaviest: HeaviestMessage | None = None,
    ) -> None:
        super().__init__(message)
        self.needed_tokens = needed_tokens
        """Size of the request in tokens when as much as possible is evicted and shortened."""
        self.limit_tokens = limit_tokens
        """The input room in tokens."""
        self.block = block
        """Name of the block that does not fit; "history" in `fit`."""
        self.attempt: Any = attempt
        """The closest `Fitted`, over budget, if `fit` or a `Context` raised the error.

        None if there were only numbers: in `allocate`, or for what a session always shows.

        After the error is pickled or copied, the attempt can be read but not fitted to another budget."""
        self.heaviest = heaviest
        """The heaviest of the caller's messages that had to be kept.

        None if no message is in the way, or if only the whole request was counted."""

    def with_attempt(self, attempt: Any) -> Self:
        """Return the same error with its best attempt.

        Args:
            attempt: The closest `Fitted`.
        """
        self.attempt = attempt
        return self

    @property
    def report(self) -> Any:
        """The report of the best attempt, or None."""
        return getattr(self.attempt, "report", None)


class InvalidHistoryError(ContextError, ValueError):
    """No provider would accept the input.

    Raised if `strict=True` asks for it, and if `repair=True` cannot repair what must be kept.

    Args:
        message: The text of the error.
        violations: What is wrong, as `validate` lists it; open calls are not faults and not listed.
    """

    def __init__(self, message: str, *, violations: tuple[Any, ...] = ()) -> None:
        super().__init__(message)
        self.violations = violations
        """What is wrong, as `validate` lists it; open calls are not faults and not listed."""

    @property
    def index(self) -> int | None:
        """Position of the first message with a fault.

        None if the fault concerns the whole request.
        """
        return self.violations[0].index if self.violations else None

    @property
    def call_id(self) -> str | None:
        """Id of the call that the first fault concerns, if any."""
        return self.violations[0].call_id if self.violations else None


class NoTargetError(ContextError, ValueError):
    """Nothing in a row of training data is trained on.

    It has no assistant message, or each of them has weight 0.
    """


class CountingError(_AboutMessage, ContextError):
    """A counter failed or returned something that is not a count.

    Args:
        message: The text of the error.
        counter: Name of the counter.
        index: Position of the message it was asked about; None for a range or a whole request.
        answer: What it returned, if anything; in a copy of the error it is the `repr`, unless it is plain
            data.
    """

    _words = "message {}"

    def __init__(
        self, message: str, *, counter: str = "", index: int | None = None, answer: object = None
    ) -> None:
        super().__init__(message)
        self.index: int | None
        """Position of the message it was asked about; None for a range or a whole request."""
        self._learn(message, index)
        self.counter = counter
        """Name of the counter."""
        self.answer = answer
        """What it returned, if anything; in a copy of the error it is the `repr`, unless it is plain data."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave behind an answer that cannot be pickled, as a coroutine."""
        rebuild, (kind, args, state) = super().__reduce__()
        if not isinstance(self.answer, (str, int, float, type(None))):
            state["answer"] = repr(self.answer)
        return rebuild, (kind, args, state)


class StrategyContractError(ContextError):
    """A strategy broke its contract: a bug in the strategy, not in the input.

    Args:
        message: The text of the error.
        strategy: Name of the strategy.
        block: Name of the block it was asked about; "history" in `fit`.
    """

    def __init__(self, message: str, *, strategy: str = "", block: str | None = None) -> None:
        super().__init__(message)
        self.strategy = strategy
        """Name of the strategy."""
        self.block = block
        """Name of the block it was asked about; "history" in `fit`."""


class SummaryError(ContextError):
    """A summarizer failed, or returned something other than text.

    A fit catches it, evicts in another way and says so in the report.
    """


class RankerError(ContextError):
    """A ranker failed, was too slow, or did not return a number for each message.

    `Session.recall` raises it. `add` catches it and recalls by words, and the report of the view says so. The
    text has the class of the original error but not its words, which may be a message's; `__cause__` is the
    original.
    """


class FormatError(_AboutMessage, ContextError, ValueError):
    """A shape that this wire form cannot read; `.path` leads to it.

    Args:
        message: The text of the error.
        path: Place in the input, such as `messages[3].content[0]`.
    """

    _words = "messages[{}]"

    def __init__(self, message: str, *, path: str = "") -> None:
        super().__init__(message)
        found = re.match(r"messages\[(\d+)\]", path)
        self.index: int | None
        """Position of the message it is about, if the path leads to one."""
        self._learn(message, None if found is None else int(found[1]))
        self.path = path
        """Place in the input, such as `messages[3].content[0]`."""
        self._below = path[found.end() :] if found else ""

    def _write(self) -> None:
        super()._write()
        if self.index is not None:
            self.path = f"{self._words.format(self.index)}{self._below}"


class MissingExtraError(ContextError, ImportError):
    """The package of an extra is not installed; the text has the install command.

    Args:
        message: The text of the error.
        extra: The extra to install, as in `pip install 'trimtab[extra]'`.
        package: The missing distribution.
    """

    def __init__(self, message: str, *, extra: str = "", package: str = "") -> None:
        super().__init__(message)
        self.extra = extra
        """The extra to install, as in `pip install 'trimtab[extra]'`."""
        self.package = package
        """The missing distribution."""


class BatchError(ContextError):
    """A batch cannot continue.

    Its workers die repeatedly, or its results cannot be written. Finished work is kept, and the same run
    continues from there.
    """


class CopyError(ContextError, TypeError):
    """A session, a store, or an object with a client was copied or pickled.

    It holds locks and connections, which do not work in a copy. The text says what to write instead.
    """


class StoreError(ContextError):
    """A store could not do an operation; each was done fully or not at all."""


class StoreUnavailableError(StoreError, ConnectionError):
    """The store cannot be reached or is busy, full or shutting down.

    It is safe to retry: an append that did reach the store is not stored twice.
    """


class VersionConflictError(StoreError):
    """Another writer was faster: the session has another version.

    Nothing was changed. Read the session again and repeat, or use `trimtab.stores.Retry`.

    Args:
        message: The text of the error.
        session: Name of the session.
        expected_version: The version on which the write was based.
        actual_version: The current version of the session.
    """

    def __init__(
        self, message: str, *, session: str = "", expected_version: int = 0, actual_version: int = 0
    ) -> None:
        super().__init__(message)
        self.session = session
        """Name of the session."""
        self.expected_version = expected_version
        """The version on which the write was based."""
        self.actual_version = actual_version
        """The current version of the session."""


class SessionDeletedError(StoreError):
    """The session this was decided on was deleted; another may have its name now.

    Nothing was changed. `Retry` does not repeat it: a decision on the deleted session, such as an answer to
    it, does not belong in the new one.

    Args:
        message: The text of the error.
        session: Name of the session.
    """

    def __init__(self, message: str, *, session: str = "") -> None:
        super().__init__(message)
        self.session = session
        """Name of the session."""


class SessionExpiredError(StoreError):
    """The time to live of the session is over; it is not removed yet.

    Nothing was changed. `store.expire()` removes such sessions; until then `Session(…, ttl=None)` opens it.

    Args:
        message: The text of the error.
        session: Name of the session.
        expired: When it ended, in seconds since 1970.
    """

    def __init__(self, message: str, *, session: str = "", expired: float = 0.0) -> None:
        super().__init__(message)
        self.session = session
        """Name of the session."""
        self.expired = expired
        """When it ended, in seconds since 1970."""


class EncryptionKeyError(StoreError):
    """The key that a session needs is not there, or another has its id.

    Nothing was changed. The text says which key is needed; no error shows a key.

    Args:
        message: The text of the error.
        session: Name of the session.
        key: Id of the key in the key ring; empty if it is not known.
    """

    def __init__(self, message: str, *, session: str = "", key: str = "") -> None:
        super().__init__(message)
        self.session = session
        """Name of the session."""
        self.key = key
        """Id of the key in the key ring; empty if it is not known."""


class KeyDroppedError(EncryptionKeyError):
    """The session's own key was dropped, so nobody can read its text again.

    Its rows can be deleted.

    Args:
        message: The text of the error.
        session: Name of the session.
        key: As for `EncryptionKeyError`.
    """


class CorruptSessionError(StoreError, ValueError):
    """A stored session or a snapshot cannot be read.

    A row is missing or was edited, or the file is damaged.

    Args:
        message: The text of the error.
        session: Name of the session; empty if it is not known.
        version: Version of the event that cannot be read, or None.
    """

    def __init__(self, message: str, *, session: str = "", version: int | None = None) -> None:
        super().__init__(message)
        self.session = session
        """Name of the session; empty if it is not known."""
        self.version = version
        """Version of the event that cannot be read, or None."""


def move_error(
    error: CountingError | FormatError, /, *, index: int | None = None, block: str | None = None
) -> None:
    """Make an error be about a message at another place or in a block, in its text too; None: as it is."""
    error.index = error.index if index is None else index
    error.block = error.block if block is None else block
    error._write()
