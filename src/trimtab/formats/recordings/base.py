"""What a reader makes of the recording of another program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, TypeGuard

from trimtab.formats.values import Dict

Source: TypeAlias = Sequence[Any] | Mapping[str, Any]
"""A recording as parsed from JSON: the values of its lines, or the one value of a document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """What a provider charged for one call of a recording.

    Args:
        at: How many messages of the conversation the call had; the answer is the next.
        usage: The usage as the provider wrote it.
        model: The model that answered, if the recording names it.
    """

    at: int
    usage: Mapping[str, Any]
    model: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignCall:
    """One call of a model, as it was made.

    Args:
        messages: What was sent.
        tools: Tool schemas, if any were recorded.
        time: When it was made, in seconds since 1970, if that is known.
        cold: Whether the provider's cache held nothing then; None if no bill says so.
    """

    messages: Sequence[Dict]
    tools: Sequence[Dict] | None = None
    time: float | None = None
    cold: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignConversation:
    """One conversation of a recording of another program, in a wire form of trimtab.

    Args:
        program: The program that wrote it, as its makers call it.
        name: What tells it from the other conversations of the recording: the session, and which branch,
            sidechain or part of it; "" where there is no other.
        format: Name of the wire form of `body`.
        body: A request body with all messages, and the model, system text and tools of the recording. `fit`,
            `measure`, `validate` and `replay` take it as it is.
        times: When each message was written, in seconds since 1970; None for one without a time. Empty if the
            recording has no times.
        bills: The usage of each call, in order, where the recording has it.
        calls: What was sent in each call, in order, where the recording says it call by call. Empty if it has
            only the conversation: a call is made before each answer.
        complete: Whether `body` has the system text and tools of its calls. False where the program does not
            record them: each bill is above the count of what is recorded by what they cost.
        notes: What of the recording is not in `body`, and why.
    """

    program: str
    name: str = ""
    format: str
    body: Dict
    times: tuple[float | None, ...] = ()
    bills: tuple[Bill, ...] = ()
    calls: tuple[ForeignCall, ...] = ()
    complete: bool = True
    notes: tuple[str, ...] = ()


def is_list(value: Any, /) -> TypeGuard[Sequence[Any]]:
    """Tell a list of any class from a text, which is a sequence, too."""
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def mappings(value: Any, /) -> Iterator[Mapping[str, Any]]:
    """List the mappings in a list; nothing where it is none."""
    if is_list(value):
        yield from (one for one in value if one.__class__ is dict or isinstance(one, Mapping))


class Reader(NamedTuple):
    """How the recordings of one program are told and read."""

    owns: Callable[[Source], bool]
    """Whether a recording is of this program; of a file of lines it may be shown the first few alone."""
    read: Callable[[Source], list[ForeignConversation]]
    """Read its conversations; raises FormatError, with the place, for what the program never writes."""
    by_line: bool = False
    """The lines of a file are one recording; else each line is one."""
