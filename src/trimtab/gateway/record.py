"""What the log tells of a request."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trimtab.errors import BudgetExceededError
    from trimtab.gateway.fits import FittedCall
    from trimtab.models.dollars import BilledParts

MOST_CHARS = 200
"""Of what a client chooses, as a path and the name of a model."""


@dataclass(slots=True, kw_only=True)
class Record:
    """What the log tells of a request: numbers and words, never a text or a key."""

    id: str = field(default_factory=lambda: secrets.token_hex(8))
    method: str
    path: str
    api: str = ""
    form: str = ""
    """The wire form; "": the path is not for conversations."""
    upstream: str = ""
    """Who was asked: its API, and the pattern of its models; "": nobody."""
    budget: str = ""
    """What its budget is for, as the operator wrote it; "": it needed none."""
    conversation: str = ""
    """Which one it is of: a number that says nothing of its text; "": nobody knows."""
    blocks: Sequence[int] = ()
    """Numbers of what was sent, by which two requests are compared."""
    counts: bool = False
    """Whether the answer is the size of the body, not words of a model."""
    model: str | None = None
    status: int = 0
    end: str = "failed"
    """How it ended; "done": the answer was passed on whole; "failed": by a fault of the gateway's own."""
    asked: FittedCall | None = None
    """The request itself, texts and all, which no line of the log has."""
    refusal: BudgetExceededError | None = None
    """Why it was not sent; None: it was, or for another reason."""
    told: Mapping[str, Any] = field(default_factory=dict)
    reasons: Mapping[str, int] = field(default_factory=dict)
    """How many messages were evicted or changed for which reason."""
    billed: int | None = None
    """Input tokens that the answer says were billed."""
    parts: BilledParts | None = None
    """What the answer says was billed, by price."""
    dollars: float | None = None
    """What that is by the list of the model's maker; None: nobody knows."""
    body_bytes: int = 0
    sent_bytes: int = 0
    answer_bytes: int = 0
    began: float = field(default_factory=perf_counter)
    first_ms: float | None = None
    """Until the head of the answer was there."""
    fit_ms: float | None = None
    """Of these, reading and fitting."""

    def to_dict(self) -> dict[str, Any]:
        """Write it for a line of the log."""
        took = round((perf_counter() - self.began) * 1000, 1)
        told = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "id": self.id,
            "method": self.method,
            "path": self.path[:MOST_CHARS],
            "api": self.api,
            "form": self.form,
            "upstream": self.upstream,
            "budget": self.budget,
            "conversation": self.conversation,
            "counts": self.counts or None,
            "model": None if self.model is None else self.model[:MOST_CHARS],
            "status": self.status,
            "end": self.end,
            **self.told,
            "reasons": self.reasons or None,
            "billed": self.billed,
            "cache_read": None if self.parts is None else self.parts.read_tokens,
            "output": None if self.parts is None else self.parts.output_tokens,
            "dollars": None if self.dollars is None else round(self.dollars, 9),
            "unpriced": self.is_unpriced or None,
            "body_bytes": self.body_bytes,
            "sent_bytes": self.sent_bytes,
            "answer_bytes": self.answer_bytes,
            "fit_ms": self.fit_ms,
            "first_ms": self.first_ms,
            "ms": took,
        }
        return {key: value for key, value in told.items() if value not in (None, "")}

    @property
    def end_word(self) -> str:
        """How it ended, without the class of an error."""
        return self.end.partition(":")[0]

    @property
    def is_unpriced(self) -> bool:
        """Whether a model answered, and nobody knows what that cost."""
        is_answered = self.end == "done" and self.status < 300 and self.asked is not None
        return is_answered and not self.counts and self.dollars is None

    def since(self) -> float:
        """Return the milliseconds since the request came."""
        return round((perf_counter() - self.began) * 1000, 1)
