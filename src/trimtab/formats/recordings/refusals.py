"""Recordings of programs that are told and refused, with the line that converts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trimtab.errors import FormatError
from trimtab.formats.programs import (
    ADK,
    GEMINI_CLI,
    INSPECT,
    INSTEAD,
    LETTA,
    SHAREGPT,
    program_of,
)
from trimtab.formats.recordings.base import ForeignConversation, Reader, Source, mappings

_LISTS = ("messages", "input", "contents")
"""Where a request body has its messages."""
_ANSWERS = "gemini-cli's responses"
_ANSWERS_SAID = "it has what the model answered, and nothing of what was sent: pass the requests"


def said_of_bytes(head: bytes, /) -> str | None:
    """Say what a file is that is no text, by its first bytes; None for one that nobody knows."""
    if not head.startswith(b"PK\x03\x04"):
        return None
    return f"it is a zip archive, as the .eval logs of inspect_ai are: {INSTEAD[INSPECT]}"


def _program(source: Source) -> str | None:
    """Name the program of a recording that is refused; None for others."""
    if isinstance(source, Mapping):
        return _of_document(source)
    found = map(_of_document, mappings(source))
    return next((program for program in found if program is not None), None)


def _of_document(source: Mapping[str, Any]) -> str | None:
    if "role" in source:
        program = program_of(source)
        return program if program in INSTEAD else None
    if "sessionId" in source and "projectHash" in source:
        return GEMINI_CLI
    if _is_letta(source):
        return LETTA
    listed = next((source[key] for key in _LISTS if isinstance(source.get(key), list)), None)
    if listed is not None:  # a request, whatever a proxy wrote beside it
        told = map(program_of, mappings(listed))
        return next((program for program in told if program in INSTEAD), None)
    if "method" in source and "response" in source:
        return _ANSWERS
    if _has(source, "agents", "agent_type", "llm_config", "tool_rules"):
        return LETTA
    if isinstance(source.get("eval"), Mapping) and "status" in source:
        return INSPECT
    if _has(source, "events", "author"):
        return ADK
    if _has(source, "conversations", "from"):
        return SHAREGPT
    program = program_of(source)
    return program if program in INSTEAD else None


def _has(source: Mapping[str, Any], key: str, *signs: str) -> bool:
    """Tell whether a list stands under a key, and its first entry has one of some keys."""
    listed = source.get(key)
    first = listed[0] if isinstance(listed, list) and listed else None
    return isinstance(first, Mapping) and any(sign in first for sign in signs)


def _is_letta(source: Mapping[str, Any]) -> bool:
    """Tell a file of Letta's before 2025-09, which is one agent."""
    return "agent_type" in source and "llm_config" in source and "messages" in source


def _owns(source: Source) -> bool:
    return _program(source) is not None


def _refuse(source: Source) -> list[ForeignConversation]:
    program = _program(source)
    said = _ANSWERS_SAID if program == _ANSWERS else INSTEAD.get(str(program))
    raise FormatError(f"it is a recording of {program}: {said}")


READER = Reader(owns=_owns, read=_refuse)
"""It tells them all, and reads none."""
