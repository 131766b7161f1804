"""A second attempt at a call that the provider refused: shorter, or without old thinking."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeGuard, TypeVar

from trimtab._fit import Fitted
from trimtab._shared.steps import Steps
from trimtab.budget import Budget
from trimtab.errors import BudgetExceededError
from trimtab.formats.api_errors import Refusal, read_refusal
from trimtab.report.text import plural

_log = logging.getLogger("trimtab.integrations")

K = TypeVar("K")
R = TypeVar("R")
V = TypeVar("V")

MOST_ROOMS = 1_024
"""Conversations of which a room is remembered, those that were refused last."""

MOST_WINDOWS = 1_024
"""Models of which a window is remembered, by who asked; clients of a gateway choose their names."""

MOST_THINKING = 10_000
"""Messages whose thinking was refused that are remembered, those of the latest refusals."""


MOST_THINKING_TOLD = 256
"""Of these in plain data, the latest."""


def refusal_in(error: BaseException) -> Refusal | None:
    """Read in a client's error why its provider refused a call; None where it cannot be sent otherwise.

    Args:
        error: As the client raised it; its text has what the provider said.
    """
    return read_refusal(str(error))


class Refused:
    """What the provider of an adapter refused, so that no later call is refused for it once more."""

    def __init__(self) -> None:
        self._windows: OrderedDict[tuple[str, str | None], tuple[int, bool]] = OrderedDict()
        self._rooms: OrderedDict[tuple[str | None, str], int] = OrderedDict()
        self._thinking: OrderedDict[tuple[str, str], None] = OrderedDict()

    def thinking_of(self, asker: str = "") -> Collection[str]:
        """List the thinking that was refused, by `Format.thinking_key`.

        Args:
            asker: Who asks, where one adapter serves several.
        """
        return {key for who, key in tuple(self._thinking) if who == asker} if self._thinking else ()

    def learn_window(self, model: str | None, refusal: Refusal, *, asker: str = "") -> None:
        """Take in how much a model takes, if its provider said so.

        Args:
            model: Its name.
            refusal: What its provider said.
            asker: Who was refused: a model's window may differ by account, host and what is asked for.
        """
        if refusal.limit_tokens is not None:
            window = refusal.limit_tokens + refusal.answer_tokens, refusal.answer_tokens > 0
            _remember(self._windows, (asker, model), window, most=MOST_WINDOWS)

    def learn_room(self, model: str | None, conversation: str, room: int) -> None:
        """Take in what a conversation may have, as it is counted here."""
        _remember(self._rooms, (model, conversation), room, most=MOST_ROOMS)

    def learn_thinking(self, keys: Iterable[str | None], *, asker: str = "") -> None:
        """Take in whose thinking was refused, by `Format.thinking_key`."""
        for key in keys:
            if key is not None:
                _remember(self._thinking, (asker, key), None, most=MOST_THINKING)

    def to_dict(self, model: str | None, *, asker: str) -> dict[str, Any]:
        """Return what one who asks was refused, as plain data."""
        keys = [key for who, key in tuple(self._thinking) if who == asker]
        return {"window": self._windows.get((asker, model)), "thinking": keys[-MOST_THINKING_TOLD:]}

    def take(self, data: Mapping[str, Any], model: str | None, *, asker: str) -> None:
        """Take in what `to_dict` returned, where nothing is known here.

        Raises:
            ValueError: It is no such data.
        """
        window, keys = data["window"], data["thinking"]
        if window is not None:
            tokens, has_answers = window
            self._windows.setdefault((asker, model), (int(tokens), bool(has_answers)))
        self.learn_thinking(map(str, keys), asker=asker)

    def room(
        self,
        model: str | None,
        *,
        output_tokens: int | None = None,
        conversation: Callable[[], str] | None = None,
        asker: str = "",
    ) -> int | None:
        """Return the room that a call has by what was refused before; None where nothing was.

        Args:
            model: Its model.
            output_tokens: The most its answer may have; None: as much as that of the call that was refused.
            conversation: Names its conversation, which is asked where one of the model has a room.
            asker: Who asks, as for `learn_window`.
        """
        rooms = list[int]()
        if (heard := self._windows.get((asker, model))) is not None:
            window, has_answers = heard
            rooms.append(max(1, window - (output_tokens or 0 if has_answers else 0)))
        if conversation is not None and any(name == model for name, _ in tuple(self._rooms)):
            room = self._rooms.get((model, conversation()))
            if room is not None:
                rooms.append(room)
        return min(rooms, default=None)


def _remember(known: OrderedDict[K, V], key: K, value: V, *, most: int) -> None:
    """Take in what is the newest; of so many the oldest is forgotten."""
    known[key] = value
    known.move_to_end(key)
    if len(known) > most:
        known.popitem(last=False)


def ask_again(
    error: Exception,
    refusal: Refusal | None,
    make: Callable[[Refusal], Steps[R | None]],
    is_same: Callable[[R], bool],
) -> Steps[R]:
    """Give what is sent in place of what was refused.

    Args:
        error: What was raised for that.
        refusal: Why it was refused, where that is known.
        make: Fits the call otherwise; None: it cannot be.
        is_same: Tells whether that would be what was sent before.

    Raises:
        Exception: The very error, where there is nothing to send: it says why, if it is one of these.
    """
    again: R | None = None
    if refusal is not None:
        try:
            again = yield from make(refusal)
        except BudgetExceededError as why:
            error.add_note(f"trimtab did not send this call again, since it would not fit: {why}")
    if again is not None and is_same(again):
        error.add_note(
            "trimtab did not send this call again: what it sees of it fits already, and would be the same"
        )
        again = None
    if again is None:
        raise error
    return again


def is_below(room: int | None, budget: Budget | None) -> TypeGuard[int]:
    """Tell whether there is a room, and it is smaller than a budget's."""
    if room is None or budget is None:
        return room is not None
    return room < budget.window - budget.output_reserve - budget.overhead_tokens


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


def note_in(fitted: Fitted[Any], refusal: Refusal, *, logs: bool = True) -> None:
    """Tell in a report, and in the log, what happened to a call.

    Args:
        fitted: What is sent in its place.
        refusal: Why the provider refused what was sent first.
        logs: Whether the log is told.
    """
    said = _say(refusal)
    if logs:
        _log.warning("%s", said)
    add_note(fitted, said)


def note_left_out(fitted: Fitted[Any], count: int) -> None:
    """Tell in a report whose thinking was left out at once, since it was refused before.

    Args:
        fitted: What is sent.
        count: Of how many messages; 0: nothing is told.
    """
    if count:
        add_note(
            fitted,
            f"Without the thinking of {plural(count, 'message')}, which the provider refused in a call before"
            " as made for another conversation.",
        )


def add_note(fitted: Fitted[Any], said: str) -> None:
    """Tell something in a report.

    Args:
        fitted: Whose report.
        said: A sentence.
    """
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
