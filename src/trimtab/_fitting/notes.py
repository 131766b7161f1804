"""Notes of a report about what was settled, which need the report's reader to be looked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trimtab._fitting.blocks import asked_floor_tokens
from trimtab.report.text import plural

if TYPE_CHECKING:
    from trimtab._fitting.outcome import BlockDecision, Outcome
    from trimtab._fitting.prepare import Work

__all__ = ["notes_of_context", "notes_of_fit"]


def notes_of_context(outcome: Outcome) -> list[str]:
    """List what a reader should know of what was settled for blocks."""
    output = outcome.output()[outcome.lead_count :]
    missing = _notes_of_missing(outcome.decisions, output) if outcome.fits else []
    return [*_notes_of_floors(outcome), *_notes_of_joined(outcome.decisions), *missing]


def notes_of_fit(work: Work, output: list[Any]) -> list[str]:
    """Say what the request body leaves out of messages that stay: what the provider takes no longer."""
    body = work.body_of_request
    if body.body is None:
        return []
    sent = work.format.write_request(body, list(output)).get(body.key)
    if not isinstance(sent, list):
        return []
    kept = set(map(id, output))
    less = len(output) - sum(id(message) in kept for message in sent)
    if not less:
        return []
    return [
        f"`request` leaves out parts of {plural(less, 'message')} that the provider takes no longer beside"
        " what it now holds; `messages` has them."
    ]


def _notes_of_floors(outcome: Outcome) -> list[str]:
    """Say which floors are above the caps of their blocks, which hold."""
    room = 0 if outcome.composition.asked is None else outcome.budget.input_tokens  # a share of nothing
    floors = ((one, asked_floor_tokens(one.portion.block, room)) for one in outcome.decisions)
    return [
        f"Block {one.portion.name!r} has a floor of {floor:,} tokens and a cap of {one.cap_tokens:,}:"
        " the floor is lowered to the cap."
        for one, floor in floors
        if one.cap_tokens is not None and floor > one.cap_tokens
    ]


def _notes_of_missing(decisions: list[BlockDecision], output: list[Any]) -> list[str]:
    """Say that no message is in the request, or not the latest one that the user wrote."""
    if not output and any(one.portion.source for one in decisions):
        return ["The request has no message: there was no room for any, or all were taken out."]
    asked = (one for one in reversed(decisions) if one.portion.history.latest_user is not None)
    for decision in asked:
        portion, at = decision.portion, decision.portion.history.latest_user
        if at is None or at < portion.lead or decision.settled.keeps(at):
            break
        place = portion.source_index(at)
        return [
            f"The latest message of the user is not in the request: message {place} of block"
            f" {portion.name!r}. Pin it, or give it a block of a higher rank."
        ]
    return []


def _notes_of_joined(decisions: list[BlockDecision]) -> list[str]:
    return [
        f"The documents of block {one.portion.name!r} are one message: their sizes are shares of it."
        for one in decisions
        if one.portion.joint is not None
    ]
