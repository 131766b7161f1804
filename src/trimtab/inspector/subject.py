"""What is looked at: a conversation, how it is fitted and billed, and the session it is of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from trimtab.context import Fitted
from trimtab.replay import Replayed
from trimtab.session import Session

__all__ = ["Subject"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What an inspector shows.

    Args:
        name: Stands over every page: of a file, or a session.
        policies: Words for the policies that are offered, the one that is shown first before the others.
        fit: Fits the conversation under the policy of a word, or under a strategy as JSON; of a session all
            that was said up to a version of its log, which is None for a file. It may raise `ContextError`; a
            `BudgetExceededError` is shown with its attempt.
        play: Replays the conversation under a policy, at a price list, in a room of so many tokens (None: its
            own), up to such a version. None: there is no bill by call.
        replayed: Words for what `play` knows beside `policies`, as "none" and "default".
        pricings: Names of price lists, the one that is used first before the others.
        session: The session whose log this is; None for a file.
        read_only: Whether nothing may be taken back in the log.
        is_margin_auto: Whether the margin of another budget is worked out anew, as `margin="auto"` says;
            otherwise it is the number that `fit` had.

    Example:
        >>> from trimtab import fit
        >>> chat = [{"role": "user", "content": f"question {n}"} for n in range(9)]
        >>> subject = Subject(name="chat", policies=("sliding_window", "drop_newest"),
        ...     fit=lambda policy, version: fit(chat, 40, strategy=policy))
        >>> subject.fit("drop_newest", None).report.total_message_count
        9
    """

    name: str
    policies: Sequence[str]
    fit: Callable[[str, int | None], Fitted[Any]]
    play: Callable[[str, str, int | None, int | None], Replayed] | None = None
    replayed: Sequence[str] = ()
    pricings: Sequence[str] = ()
    session: Session | None = None
    read_only: bool = False
    is_margin_auto: bool = False
