"""Model calls out of OpenTelemetry's GenAI spans, exported as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from trimtab.errors import FormatError
from trimtab.formats.telemetry import messages_from_telemetry, plain_value, system_from_telemetry

_INPUT = "gen_ai.input.messages"
_SYSTEM = "gen_ai.system_instructions"
_TOOLS = "gen_ai.tool.definitions"
_READ = ("gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens")


def is_spans(source: Any, /) -> bool:
    """Tell whether it is an export of spans: OTLP, or a list of spans with attributes."""
    if isinstance(source, Mapping):
        return "resourceSpans" in source or "resource_spans" in source
    listed = isinstance(source, Sequence) and not isinstance(source, str | bytes) and len(source) > 0
    return listed and all(
        isinstance(one, Mapping) and ("attributes" in one or is_spans(one)) for one in source
    )


def calls_in_spans(source: Any, /) -> list[dict[str, Any]]:
    """List what is known of each model call, in the order of time.

    Spans without recorded messages are passed over: content is recorded only where it was asked for.

    Raises:
        FormatError: No span has recorded messages, or one cannot be read.
    """
    found = []
    for span in _spans(source):
        attributes = _attributes(span)
        if _INPUT not in attributes:
            continue
        messages = messages_from_telemetry(attributes[_INPUT])
        system = system_from_telemetry(attributes.get(_SYSTEM))
        tools = attributes.get(_TOOLS)
        read = next((attributes[key] for key in _READ if key in attributes), None)
        found.append(
            {
                "messages": messages if system is None else [system, *messages],
                "tools": None if tools is None else plain_value(tools),
                "time": _seconds(span),
                "cold": None if read is None else int(read) == 0,
            }
        )
    if not found:
        raise FormatError(f"no span has {_INPUT!r}: instrumentation records requests only if configured to")
    return sorted(found, key=lambda one: one["time"] or 0.0)


def _spans(source: Any) -> Iterator[Mapping[str, Any]]:
    """List the spans of an export, or of several."""
    if not isinstance(source, Mapping):
        for one in source:
            yield from _spans(one)
    elif "attributes" in source and not any(key in source for key in _NESTED):
        yield source
    else:
        for key in _NESTED:
            yield from _spans(source.get(key) or ())


_NESTED = ("resourceSpans", "resource_spans", "scopeSpans", "scope_spans", "spans")


def _attributes(span: Mapping[str, Any]) -> dict[str, Any]:
    """Read attributes: a mapping, or OTLP's list of keys and values; those of events, too."""
    found: dict[str, Any] = {}
    for owner in (span, *(span.get("events") or ())):
        given = owner.get("attributes") or {}
        if isinstance(given, Mapping):
            found.update(given)
        else:
            found.update({one["key"]: _value(one.get("value")) for one in given})
    return found


def _value(value: Any) -> Any:
    """Take a value out of OTLP's wrapping."""
    if not isinstance(value, Mapping):
        return value
    if "arrayValue" in value:
        return [_value(one) for one in value["arrayValue"].get("values") or ()]
    if "kvlistValue" in value:
        return {one["key"]: _value(one.get("value")) for one in value["kvlistValue"].get("values") or ()}
    if "intValue" in value:
        return int(value["intValue"])
    return next(iter(value.values()), None)


def _seconds(span: Mapping[str, Any]) -> float | None:
    """Read when a span began: nanoseconds since 1970, or a date."""
    for key in ("startTimeUnixNano", "start_time_unix_nano", "start_time", "startTime"):
        value = span.get(key)
        if isinstance(value, str) and not value.isdigit():
            try:
                return datetime.fromisoformat(value).timestamp()
            except ValueError as error:
                raise FormatError(f"{key} of a span is not a time: {value!r:.40}") from error
        if value:
            return int(value) / 1e9
    return None
