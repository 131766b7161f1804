"""What callers pass, checked once at the door; each error names the argument and says what to write instead.

What is refused is a `ConfigurationError`. First single values (a whole number, a flag, a choice), then
functions, then what a request holds, then names spelled like one that is known, and last the place of a
message in an error.
"""

from __future__ import annotations

import inspect
import math
import operator
import reprlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from os import PathLike
from types import FunctionType, MethodType
from typing import Any, TypeGuard

from trimtab.errors import (
    ConfigurationError,
    ContextError,
    CountingError,
    FormatError,
    UnknownNameError,
    move_error,
    phrase,
)

# Single values.


def whole_of(value: Any, /) -> int | None:
    """Return a whole number of any make, as numpy's, as a plain one; None for flags and anything else."""
    if type(value) is int:
        return value
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def number_of(value: Any, /) -> float | None:
    """Return a finite number of any make, as numpy's, as a plain one; None for flags and anything else."""
    if type(value) is int:
        return value
    if not isinstance(value, (int, float)):
        whole = whole_of(value)
        value = _real_of(value) if whole is None else whole
    return value if is_number(value) else None


def _real_of(value: Any) -> float | None:
    from numbers import Real  # not above: only what is no number of Python's needs it

    return float(value) if isinstance(value, Real) else None


def is_whole(value: object, /, *, least: float = -math.inf) -> TypeGuard[int]:
    """Tell a whole number of at least so much from anything else; True and False are flags."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def is_number(value: object, /) -> TypeGuard[float]:
    """Tell a finite number, whole or not, from anything else; True and False are flags."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return -math.inf < value < math.inf


def check_whole(name: str, value: object, /, *, least: int | None = None) -> int:
    """Return a whole number, of at least `least` if that is given."""
    whole = whole_of(value)
    if whole is not None and (least is None or whole >= least):
        return whole
    bound = "" if least is None else f" of at least {least}"
    raise ConfigurationError(
        f"{name} must be a whole number{bound}, not {reprlib.repr(value)}", argument=name
    )


def check_flag(name: str, value: Any, /) -> bool:
    """Return True or False; what merely reads as one is refused."""
    if not isinstance(value, bool):
        raise ConfigurationError(f"{name} must be True or False, not {reprlib.repr(value)}", argument=name)
    return value


def check_fraction(name: str, value: object) -> float:
    """Return a number above 0 and at most 1."""
    number = number_of(value)
    if number is None or not 0 < number <= 1:
        raise ConfigurationError(
            f"{name} must be a number above 0 and at most 1, not {reprlib.repr(value)}", argument=name
        )
    return float(number)


def check_choice(name: str, value: object, choices: Sequence[str], /) -> str:
    """Return one of a few words."""
    if isinstance(value, str) and value in choices:
        return value
    near = in_words(near_names(value, choices)) if isinstance(value, str) else ""
    words = ", ".join(map(repr, choices))
    raise ConfigurationError(f"{name} must be one of {words}, not {reprlib.repr(value)}{near}", argument=name)


def check_roles(value: Iterable[str], *, name: str = "protect_roles") -> tuple[str, ...]:
    """Return names as a tuple, without empty ones and repetitions; a bare string is refused."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise ConfigurationError(f"{name} must be a sequence of names, such as [{value!r}]", argument=name)
    names = list(value)
    for item in names:
        if not isinstance(item, str):
            raise ConfigurationError(f"{name} must contain names, not {reprlib.repr(item)}", argument=name)
    return tuple(dict.fromkeys(item for item in names if item))


# Functions.


def check_names(value: Any, /) -> Mapping[str, Any]:
    """Return functions by their names; none are an empty mapping.

    Raises:
        ConfigurationError: It is no mapping, or one of something else than names.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise ConfigurationError(
            f"names must map names to objects, as in names={{'mine': mine}}, not {reprlib.repr(value)}",
            argument="names",
        )
    return value


def check_parameters(name: str, function: Callable[..., Any], /, *parameters: str) -> None:
    """Refuse a function that cannot be called with these arguments by position, a word for each.

    Of some built-ins the parameters are not known, and they pass.
    """
    if isinstance(function, FunctionType):
        code = function.__code__
        if code.co_argcount == len(parameters) and not code.co_kwonlyargcount:
            return
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*parameters)
    except TypeError:
        raise ConfigurationError(
            f"{name} is called with ({', '.join(parameters)}), but the function takes {signature}",
            argument=name,
        ) from None


def answers_later(function: Callable[..., Any], /) -> bool:
    """Tell whether a callable is async: a function, or an object whose `__call__` is."""
    is_async, plain = inspect.iscoroutinefunction, isinstance(function, FunctionType | MethodType)
    return is_async(function) or (not plain and is_async(type(function).__call__))


def is_later(answer: object, /) -> bool:
    """Tell whether an answer has to be awaited; nobody will await it then: it is closed, or Python warns."""
    if not inspect.isawaitable(answer):
        return False
    if inspect.iscoroutine(answer):
        answer.close()
    return True


def name_of(value: object, /) -> str:
    """Return the name a function or an object calls itself by, or that of its class."""
    own = getattr(value, "name", None) or getattr(value, "__name__", None)
    return str(own or type(value).__name__)


def check_trim(value: Any, /) -> None:
    """Refuse what cannot be called back at once."""
    if not callable(value):
        raise ConfigurationError(
            f"on_trim must be a function that takes a TrimContext, not {reprlib.repr(value)}",
            argument="on_trim",
        )
    if answers_later(value):
        raise ConfigurationError(
            "on_trim must be synchronous: pass a function that is not async", argument="on_trim"
        )
    check_parameters("on_trim", value, "context")


def check_origin_of(value: Any, /) -> None:
    """Refuse what cannot say whose words a message holds."""
    if not callable(value) or answers_later(value):
        raise ConfigurationError(
            "origin must be a function that takes a message and returns an origin, not"
            f" {reprlib.repr(value)}",
            argument="origin",
        )
    check_parameters("origin", value, "message")


# What a request holds.


def check_messages(value: Any, /) -> None:
    """Refuse what is neither a list of messages nor a request body."""
    if isinstance(value, (str, bytes)) or not isinstance(value, (Sequence, Mapping)) or _is_message(value):
        raise ConfigurationError(
            f"messages must be a list of messages or a request body, not {_said_of_messages(value)}",
            argument="messages",
        )


def list_messages(messages: Any, /) -> list[Any]:
    """Return messages as a list of its own, taken from anything that holds them one by one."""
    wrong = isinstance(messages, (str, bytes, Mapping)) or not isinstance(messages, Iterable)
    if wrong or _is_message(messages):
        raise ConfigurationError(
            f"messages must be a list of messages, not {_said_of_messages(messages)}", argument="messages"
        )
    return list(messages)


def _can_dump(value: Any) -> bool:
    """Tell whether it is an object of an SDK, which are pydantic's."""
    return callable(getattr(value, "model_dump", None))


def _is_message(value: Any) -> bool:
    """Tell a message from a request body and from a list; a body has no role."""
    if isinstance(value, Mapping):
        return "role" in value and not any(key in value for key in BODY_KEYS)
    return _can_dump(value) and hasattr(value, "role")


BODY_KEYS = ("messages", "input", "contents")
"""Where the forms that come with trimtab keep the messages of a body."""


def _said_of_messages(value: Any) -> str:
    """Say what was given for messages, and what to write."""
    kind = type(value).__name__
    if isinstance(value, (str, bytes)):
        if value[:1].strip() and value[:1] in ("[", "{", b"[", b"{"):
            return "JSON as text: write json.loads(text)"
        if isinstance(value, str) and value.endswith((".json", ".jsonl")):
            return "the name of a file: write json.loads(Path(name).read_text())"
        return "a text: write [{'role': 'user', 'content': text}]" if isinstance(value, str) else kind
    if isinstance(value, PathLike):
        return "a path: write json.loads(path.read_text())"
    if isinstance(value, Mapping) and isinstance(value.get("role"), list):
        return "columns: write a list of messages, as [{'role': role, 'content': content}, ...]"
    if _is_message(value):
        return "one message: write [message]"
    own: Any = getattr(value, "messages", None)
    if own is not None:
        is_method = callable(own)
        return f"{kind}: write its messages, as {kind.lower()}.messages{'()' if is_method else ''}"
    if isinstance(value, Iterable) and not _can_dump(value):
        return f"{kind}: write list(messages)"
    return kind


def check_model(model: object, /) -> None:
    """Refuse what is no name of a model."""
    if model is not None and not isinstance(model, str):
        raise ConfigurationError(
            f"model must be the name of a model, not {reprlib.repr(model)}", argument="model"
        )


def check_tools(value: Any, /) -> None:
    """Refuse what is no list of tool schemas."""
    if value is None:
        return
    if _is_schema(value):
        raise ConfigurationError(
            "tools must be a list of tool schemas: write [tool], not the tool itself", argument="tools"
        )
    if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
        raise ConfigurationError(
            f"tools must be a list of tool schemas, not {kind_of_tool(value)}", argument="tools"
        )
    for at, tool in enumerate(value):
        if not _is_schema(tool):
            raise ConfigurationError(
                f"tools[{at}] is {kind_of_tool(tool)}: pass its schema, the mapping that is sent to the"
                " provider",
                argument="tools",
            )


def _is_schema(value: Any) -> bool:
    if isinstance(value, type):
        return False
    return isinstance(value, Mapping) or _can_dump(value)


def kind_of_tool(value: Any, /) -> str:
    """Say what stands where the schema of a tool should."""
    if inspect.isroutine(value):
        return f"the function {value.__name__}"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return f"{type(value).__name__}, {reprlib.repr(value)}"


def system_of(value: Any, /) -> str | list[Any] | None:
    """Return system text as it is sent: a text, or a list of parts; None if there is none."""
    if value is None or isinstance(value, str):
        return value or None
    if isinstance(value, Mapping) and "role" in value and "content" in value:
        raise ConfigurationError(
            "system must be a text or parts, not a message: pass the message's content", argument="system"
        )
    if _is_part(value):
        return [value]
    if not isinstance(value, (list, tuple)) or not all(map(_is_part, value)):
        raise ConfigurationError(
            "system must be a text, a part such as {'type': 'text', 'text': ...}, or a list of parts, not"
            f" {reprlib.repr(value)}",
            argument="system",
        )
    return list(value) or None


def _is_part(value: Any) -> bool:
    return isinstance(value, (str, Mapping)) or _can_dump(value)


def check_pending_calls(value: Any, /) -> Collection[str]:
    """Return ids of calls as a collection that can be read again."""
    if type(value) is tuple and not value:
        return ()
    if isinstance(value, (str, bytes)):
        raise ConfigurationError(
            f"pending_calls must be a list of call ids: write [{value!r}], not {value!r}",
            argument="pending_calls",
        )
    if not isinstance(value, Iterable):
        raise ConfigurationError(
            f"pending_calls must be a list of call ids, or () for none, not {value!r}",
            argument="pending_calls",
        )
    ids = tuple(value)
    for call_id in ids:
        if not isinstance(call_id, str):
            raise ConfigurationError(
                f"pending_calls must contain ids of calls, which are texts, not {call_id!r}",
                argument="pending_calls",
            )
    return frozenset(ids)


# Names spelled like one that nobody knows, for errors that say what was probably meant.


_MOST = 3
"""Names an error lists: more is a list to search, not a hint."""
_LIKE = 0.6
"""How alike two names are, 0 to 1, from which on one may be meant by the other; difflib's own default."""


def near_names(
    name: str, known: Iterable[str], /, *, meaning: Callable[[str], str] | None = None
) -> tuple[str, ...]:
    """List known names spelled like one that is not known, best first; each once.

    Args:
        name: What was written; upper and lower case are one.
        known: The names there are.
        meaning: Tells what a name stands for: of several names for one thing the nearest is listed.

    Example:
        >>> near_names("Sliding_Windw", ["drop", "sliding_window", "sliding_window"])
        ('sliding_window',)
    """
    from difflib import get_close_matches  # not above: only a wrong name needs it

    spelled: dict[str, str] = {}
    for one in known:
        spelled.setdefault(one.lower(), str(one))
    written = name.lower()
    alike = get_close_matches(written, spelled, n=4 * _MOST, cutoff=_LIKE)
    longer = [word for word in spelled if written and word.startswith(written)]  # "openai" for openai_chat
    found: dict[str, str] = {}
    for one in (spelled[word] for word in (*alike, *longer)):
        found.setdefault(one if meaning is None else meaning(one), one)
    return tuple(found.values())[:_MOST]


def in_words(near: Iterable[str], /) -> str:
    """Write near names as the end of a message; nothing where there are none.

    Example:
        >>> in_words(("drop", "strict"))
        '; did you mean drop or strict?'
    """
    names = " or ".join(near)
    return f"; did you mean {names}?" if names else ""


def unknown_name(
    said: str, name: object, known: Iterable[str], /, *, argument: str | None = None, place: str | None = None
) -> UnknownNameError:
    """Make the error for a name that is not among those known; the near ones end what is said."""
    near = near_names(str(name), known)
    return UnknownNameError(
        phrase(said, in_words(near)), name=str(name), near=near, argument=argument, place=place
    )


def error_name(error: ContextError, /) -> str:
    """Name the public class of an error: what is derived from it elsewhere goes by its name.

    Example:
        >>> error_name(FormatError("a message has no role"))
        'FormatError'
    """
    return next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == ContextError.__module__)


# Errors that name a message's place, moved to where the caller has it.


def move(error: FormatError, by: int, /) -> None:
    """Make an error be about a message so many places further on."""
    if error.index is not None:
        move_error(error, index=error.index + by)


def move_to_source(error: CountingError | FormatError, /, *, lead: int, origin: Sequence[int] | None) -> None:
    """Make an error about a message of a history be about the caller's message.

    The first `lead` messages are trimtab's: errors about these stay as they are. `origin` has the place in
    the caller's list of each of the others; None where they are the same.
    """
    if error.index is not None and error.index >= lead:
        at = error.index - lead
        move_error(error, index=at if origin is None else origin[at])
