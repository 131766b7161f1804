"""A call that its provider refused is sent once more, otherwise: shorter, or without old thinking."""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from trimtab._fit import Fitted
from trimtab.formats.api_errors import Refusal, read_refusal

_log = logging.getLogger("trimtab.integrations")


def refusal_in(error: BaseException) -> Refusal | None:
    """Read in a client's error why its provider refused a call; None where it cannot be sent otherwise.

    Args:
        error: As the client raised it; its text has what the provider said.
    """
    return read_refusal(str(error))


def room_after(refusal: Refusal, counted_tokens: int, *, is_taught: bool) -> int:
    """Return the room of a request that is to take the place of one that was too long, as it is counted.

    Where the provider does not say by how much, it is half of what was sent.

    Args:
        refusal: What the provider said.
        counted_tokens: What was counted for that request.
        is_taught: Whether what counts the next has learned what the provider counts for the one before.
    """
    known, limit = refusal.sent_tokens, refusal.limit_tokens
    if refusal.excess_tokens is not None:
        return counted_tokens - refusal.excess_tokens
    if limit is None or (known is None and limit >= counted_tokens):
        return (known if is_taught and known else counted_tokens) // 2
    if known is None or is_taught:
        return limit
    # what was not counted may be of what stays
    room = limit - max(0, known - counted_tokens)
    return room if room > 0 else counted_tokens * limit // known


def note_in(fitted: Fitted[Any], refusal: Refusal) -> None:
    """Tell in a report, and in the log, what happened to a call.

    Args:
        fitted: What is sent in its place.
        refusal: Why the provider refused what was sent first.
    """
    said = _say(refusal)
    _log.warning("%s", said)
    fitted._report = replace(fitted.report, notes=(*fitted.report.notes, said))


@contextmanager
def last_try(refused: BaseException, kinds: type[Exception] | tuple[type[Exception], ...]) -> Generator[None]:
    """Have an error of the second request say that it is the second.

    Args:
        refused: What was raised for the first.
        kinds: The errors of the client.
    """
    try:
        yield
    except kinds as error:
        first = " ".join(str(refused).split())
        error.add_note(f"trimtab sent this call twice; the first was refused: {first:.400}")
        raise


def _say(refusal: Refusal) -> str:
    if refusal.kind == "thinking":
        return (
            "Sent once more, without the thinking of earlier turns: the provider refused that as made for"
            " another conversation."
        )
    size = "" if refusal.sent_tokens is None else f" for {refusal.sent_tokens:,} tokens"
    most = "" if refusal.limit_tokens is None else f", of {refusal.limit_tokens:,} at most"
    return f"Sent once more, shorter: the provider took the first{size}{most}, and refused it as too long."
