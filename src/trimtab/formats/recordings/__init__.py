"""Recordings of other programs: which program wrote one, and its conversations in a wire form of trimtab."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trimtab.formats.recordings import claude_code, codex, refusals, swe_agent, telemetry, vercel
from trimtab.formats.recordings.base import Bill, ForeignCall, ForeignConversation, Reader, Source, is_list

__all__ = ["Bill", "ForeignCall", "ForeignConversation", "Reader", "read_foreign", "reader_of"]

READERS: tuple[Reader, ...] = (
    claude_code.READER,
    codex.READER,
    swe_agent.READER,
    vercel.READER,
    refusals.READER,
    telemetry.READER,  # after those whose texts look like its own
)
"""Those that are known, asked in this order."""


def reader_of(source: Any, /) -> Reader | None:
    """Return the reader of the program that wrote a recording; None if none is known."""
    if not source or not (isinstance(source, Mapping) or is_list(source)):
        return None
    return next((reader for reader in READERS if reader.owns(source)), None)


def read_foreign(source: Source, /) -> list[ForeignConversation] | None:
    """Read the conversations of a recording of another program.

    Args:
        source: The recording as parsed from JSON: a list of the values of its lines, or a document.

    Returns:
        Its conversations, the one with the newest line first; None if the program is unknown.

    Raises:
        FormatError: It is of a known program but in another shape, or of one that is recognized but not read;
            the message says how to convert it.
    """
    reader = reader_of(source)
    return None if reader is None else reader.read(source)
