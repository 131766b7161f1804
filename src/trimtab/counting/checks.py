"""What a counter answers or raises: a count is checked, a failure is named with its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trimtab.errors import ContextError, CountingError, FormatError

__all__ = ["as_it_stands", "checked_count", "count_of", "counter_name", "failure_of", "placed"]


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
