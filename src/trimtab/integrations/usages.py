"""What an answer, or an event of one that is streamed, says was billed for its request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trimtab.formats.values import item_of, mapping_of

_INPUT = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_CACHED = _INPUT[1:]
"""Parts of Anthropic's input that are not in `input_tokens`."""


def usage_in(event: Any) -> Mapping[str, Any] | None:
    """Return what of an answer, or of an event of a stream, holds what was billed; None if nothing does.

    Args:
        event: Of Chat Completions, Responses or Messages, as the SDK's object or as JSON.
    """
    for holder in (event, item_of(event, "response"), item_of(event, "message")):
        usage = None if holder is None else item_of(holder, "usage")
        if usage is not None and any(item_of(usage, key) for key in ("prompt_tokens", *_INPUT)):
            told = {key: item_of(holder, key) for key in ("output", "context_management")}
            return {**mapping_of(usage), **{key: one for key, one in told.items() if one}}
    return None


def metadata_in(answer: Mapping[str, Any]) -> Any:
    """Return what of an answer of Gemini's, or of a part of one, says what was billed; None if nothing does.

    Args:
        answer: As JSON.
    """
    usage = item_of(answer, "usageMetadata")
    return usage if item_of(usage, "promptTokenCount") else None


def usage_with(before: Mapping[str, Any] | None, usage: Any) -> Mapping[str, Any] | None:
    """Put what an event of a stream says of usage over what earlier ones said.

    Numbers are those of the whole answer so far, and one may leave out what another has said: Anthropic's
    first event has the parts of the input, and the last repeats them or some of them. A server that repeats
    all of it as one number has not said it twice.

    Args:
        before: What earlier events said; None: nothing.
        usage: What this one says; None: nothing.
    """
    if usage is None:
        return before
    before = before or {}
    said = {key: one for key, one in mapping_of(usage).items() if one or (one == 0 and key not in before)}
    whole = said.get("input_tokens")
    parts = [one for key in _INPUT if isinstance(one := before.get(key), int)]
    if isinstance(whole, int) and whole >= sum(parts) and not any(key in said for key in _CACHED):
        return {**{key: before[key] for key in before if key not in _CACHED}, **said}
    return {**before, **said}
