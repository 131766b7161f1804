"""Requests whose texts are kept, the last ones and in memory, for who runs a gateway: an inspector over them.

Nobody else sees them: whoever may ask the gateway is no reader of what others asked. The inspector has a
secret of its own, which is in the address that is told to who starts the gateway.
"""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from sys import getsizeof
from typing import Any

from trimtab._fit import Fitted, fit
from trimtab.errors import BudgetExceededError, UnknownNameError
from trimtab.gateway.fits import FittedCall
from trimtab.gateway.record import Record
from trimtab.gateway.settings import Limits
from trimtab.inspector import Collection as Listed
from trimtab.inspector import Item, Subject, make_app
from trimtab.inspector.views import budget_like
from trimtab.integrations.base import FitOptions
from trimtab.replay.policies import BY_DEFAULT, STEADY, read_policy
from trimtab.report.text import in_dollars
from trimtab.strategies.data import KINDS_ALONE

SENT = "what was sent"
"""The policy of the page that is what was done; the others are tried out when they are chosen."""


ROW_BYTES = 600
"""What a report has of an object of JSON, and what was found for it: with the object itself 740 to 780 were
measured (2026-11-29, bodies of 400 messages with 1 to 200 words)."""


def _size_of(bodies: Sequence[object], most: int) -> int:
    """Return about how much memory bodies take that were read from JSON; no further than above `most`.

    Values are measured, not their text: a list of two bytes takes 56 and more, a letter up to four.
    """
    size, met, waiting = 0, set[int](), [*bodies]
    while waiting and size <= most:
        one = waiting.pop()
        size += getsizeof(one)
        if isinstance(one, dict) and id(one) not in met:  # what was sent has messages of what came
            met.add(id(one))
            size += ROW_BYTES
            waiting += one.keys()
            waiting += one.values()
        elif isinstance(one, list) and size <= most:
            waiting += one
    return size


@dataclass(frozen=True, slots=True, kw_only=True)
class _KeptCall:
    """A request, its texts included."""

    asked: FittedCall
    refusal: BudgetExceededError | None
    """Why it was not sent; None: it was."""
    size_bytes: int
    """About how much memory it takes."""
    said: str
    """What a list says of it."""
    note: str
    """What its page says besides."""
    tokens: int | None
    time: datetime

    @property
    def fitted(self) -> Fitted[Any] | None:
        """What was sent, or came nearest to what could be."""
        if self.refusal is not None:
            nearest: Fitted[Any] | None = self.refusal.attempt
            return nearest
        return None if self.asked.sent is None else self.asked.sent.fitted

    def fit(self, policy: str, options: FitOptions) -> Fitted[Any]:
        """Give what was sent; or fit what came under another policy, in the room that it had.

        Raises:
            ContextError: It does not fit, or the policy cannot be used.
        """
        done = self.fitted
        assert done is not None
        if policy == SENT:
            if self.refusal is not None:
                raise self.refusal.with_traceback(None)
            return done
        report = done.report
        given: dict[str, Any] = {key: one for key, one in options.items() if key in ("rules", "compact")}
        if policy not in (BY_DEFAULT, STEADY):
            given["strategy"] = read_policy(policy)
        elif policy == STEADY:
            given["steady"] = True
        counter = None if self.asked.sent is None else self.asked.sent.counter
        room = budget_like(report, report.window_tokens)
        body, form = self.asked.request, self.asked.call.form or "auto"
        return fit(body, room, format=form, model=report.model, counter=counter, **given)


class Texts:
    """Keeps the last requests with their texts, by number and size, and shows them to who has the secret.

    Args:
        path: Where the inspector is.
        limits: How many, and how much memory they may take.
        hosts: Names by which the inspector may be asked.
        options: Keyword arguments of `trimtab.fit`, by which other policies are tried.
    """

    def __init__(self, path: str, limits: Limits, hosts: Collection[str], options: FitOptions) -> None:
        self._limits, self._options = limits, options
        self._calls: OrderedDict[str, _KeptCall] = OrderedDict()
        self._size_bytes = 0
        self._lock = threading.Lock()  # pages are made in threads
        secret = secrets.token_urlsafe(24)
        self.address = f"{path}/?token={secret}"
        """Where a browser opens it, behind the gateway's own address."""
        listed = Listed(
            name="the last requests",
            items=self._items,
            open=self._subject,
            noun="request",
            order="the last one first",
        )
        self.app = make_app(token=secret, hosts=[*hosts], collection=listed)
        """The inspector, as an ASGI application."""

    def add(self, record: Record, /) -> None:
        """Take in a request that is at its end; one without messages to be seen here is not kept."""
        asked = record.asked
        if asked is None or asked.call.counts:
            return
        conversation = record.conversation and f"conversation {record.conversation}"
        said = ", ".join(filter(None, (asked.model, conversation, record.end.replace("_", " "))))
        billed = "" if record.billed is None else f"{record.billed:,} tokens of input billed"
        told = (said, f"status {record.status}", billed, in_dollars(record.dollars))
        tokens = record.told.get("before", record.told.get("needed"))
        sent = [] if asked.sent is None else [asked.sent.body]
        if record.refusal is not None:
            record.refusal.with_traceback(None)  # its frames hold the body's bytes
        one = _KeptCall(
            asked=replace(asked, content=b""),  # what it says is in its body
            refusal=record.refusal,
            size_bytes=_size_of([asked.body, *sent], self._limits.max_kept_bytes),
            said=said,
            note=", ".join(filter(None, told)),
            tokens=tokens if isinstance(tokens, int) else None,
            time=datetime.now(UTC),
        )
        if one.fitted is None or one.size_bytes > self._limits.max_kept_bytes:
            return
        with self._lock:
            self._calls[record.id] = one
            self._size_bytes += one.size_bytes
            while (
                len(self._calls) > self._limits.max_kept_calls
                or self._size_bytes > self._limits.max_kept_bytes
            ):
                _, gone = self._calls.popitem(last=False)
                self._size_bytes -= gone.size_bytes

    def __contains__(self, id: object) -> bool:
        """Tell whether the texts of a request are kept."""
        return id in self._calls

    def _items(self) -> Sequence[Item]:
        with self._lock:
            found = [*self._calls.items()]
        return [
            Item(
                name=name,
                said=one.said,
                messages=None if one.fitted is None else one.fitted.settlement.total_message_count,
                tokens=one.tokens,
                time=f"{one.time:%Y-%m-%d %H:%M:%S}",
            )
            for name, one in reversed(found)
        ]

    def _subject(self, name: str) -> Subject:
        with self._lock:
            one = self._calls.get(name)
        if one is None:
            raise UnknownNameError(f"the texts of request {name} are not kept any more", name=name)
        return Subject(
            name=f"request {name}",
            policies=(SENT, BY_DEFAULT, STEADY, *KINDS_ALONE),
            fit=lambda policy, version: one.fit(policy, self._options),
            fixed=(SENT,),
            model=one.asked.model,
            note=one.note,
        )
