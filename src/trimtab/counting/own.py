"""Counters of users, as the engine asks them: what they lack is worked out from what they have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

from trimtab.counting.base import AdditiveCounter, CountRequest, RequestCounter, checked_count, counter_name
from trimtab.counting.schemas import SETTINGS
from trimtab.errors import FormatError
from trimtab.formats import Format
from trimtab.formats.values import Dict, compact_json, mapping_of

Methods = Mapping[str, Callable[..., Any]]
"""What a counter can do, by name."""

ASKED = ("count", "count_message", "count_request", "count_text", "fixed_tokens")
"""Methods that count; those of an async counter may be async."""

_TOLD = (
    "margin_tokens",
    "over_margin_tokens",
    "unsure_tokens",
    "sees",
    "knows",
    "guesses",
    "media_tokens",
    "weight",
)
"""Methods that say something of a count; they take the place of the defaults."""


def methods_of(counter: object, /) -> dict[str, Callable[..., Any]]:
    """List what a counter can do; a function counts lists of messages."""
    names = (*ASKED, *_TOLD, "count_back", "with_format")
    found = {name: method for name in names if callable(method := getattr(counter, name, None))}
    if callable(counter) and not found.keys() & {"count", "count_message"}:
        found["count"] = counter
    return found


def own_counter(counter: object, /) -> RequestCounter:
    """Make of a user's counter what the engine asks: additive if it counts single messages."""
    methods = methods_of(counter)
    if "count_message" not in methods:
        return OwnRequestCounter(counter, methods)
    return (_OwnWalker if "count_back" in methods else OwnAdditiveCounter)(counter, methods)


class OwnRequestCounter(RequestCounter):
    """A user's counter of lists of messages, or of `count_request(messages, system, tools)`."""

    def __init__(self, counter: object, methods: Methods) -> None:
        self._counter = counter
        self._methods = methods
        self.__dict__.update({name: methods[name] for name in _TOLD if name in methods})

    @property
    def name(self) -> str:
        return counter_name(self._counter)  # each time: it may change with what was answered

    @property
    def exact(self) -> bool:
        return getattr(self._counter, "exact", False) is True

    def count_request(self, request: CountRequest, /) -> int:
        return _count_whole(self._methods, request)


class OwnAdditiveCounter(AdditiveCounter):
    """A user's counter of single messages."""

    def __init__(self, counter: object, methods: Methods) -> None:
        self._counter = counter
        self._methods = methods
        self.name = counter_name(counter)
        self.exact = getattr(counter, "exact", False) is True
        told = ("count", "count_message", "count_text", *_TOLD)
        self.__dict__.update({name: methods[name] for name in told if name in methods})

    def with_format(self, format: str | Format, /) -> Self:
        read = self._methods.get("with_format")
        if read is None or getattr(self._counter, "format", None) is format:
            return super().with_format(format)
        counter = read(format)
        return type(self)(counter, methods_of(counter))

    def fixed_tokens(
        self, system: Any, tools: Any, /, *, has_system: bool, extra: Mapping[str, Any] | None = None
    ) -> int:
        methods = self._methods
        if (ask := methods.get("fixed_tokens")) is not None:
            fixed: int = ask(system, tools, has_system=has_system, extra=extra)
            return fixed
        if "count_request" in methods:
            return _count_whole(methods, CountRequest([], system=system, tools=tools, extra=extra))
        count = methods.get("count")
        base = 0 if count is None else checked_count(lambda: count([]), self, None)
        leading = _system_message(system, tools, extra)
        return base + (checked_count(lambda: self.count_message(leading[0]), self, None) if leading else 0)


class _OwnWalker(OwnAdditiveCounter):
    """One that counts many messages at once, in its own way."""

    def count_back(
        self, messages: list[Any], start: int, stop: int, room_tokens: int, sizes: list[int | None], /
    ) -> int:
        if any(type(message) is not dict for message in messages[start:stop]):
            messages = [*messages[:start], *map(mapping_of, messages[start:stop]), *messages[stop:]]
        low: int = self._methods["count_back"](messages, start, stop, room_tokens, sizes)
        return low


def _count_whole(methods: Methods, request: CountRequest) -> int:
    """Ask about a whole request; what it does not take stands before the messages as one system message.

    Messages are plain dicts, whatever the caller's are: a counter may write one as JSON, or as text.
    """
    messages = map(mapping_of, request.messages)
    if (ask := methods.get("count_request")) is not None:
        before = _system_message(None, None, request.extra)
        tokens: int = ask([*before, *messages], request.system, request.tools)
    else:
        before = _system_message(request.system, request.tools, request.extra)
        tokens = methods["count"]([*before, *messages])
    return tokens


def _system_message(system: object, tools: object, extra: Mapping[str, object] | None) -> list[Dict]:
    """Write what is not among the messages as one of them, if there is any."""
    charged = {key: value for key, value in (extra or {}).items() if key not in SETTINGS}
    parts = [_text_of(value) for value in (system, tools, charged) if value]
    return [{"role": "system", "content": "\n".join(parts)}] if parts else []


def _text_of(value: object) -> str:
    if isinstance(value, str):
        return value
    try:
        return compact_json(value)
    except FormatError as error:
        raise FormatError(f"system text, tools or an output schema: {error}") from error
