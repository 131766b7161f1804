"""What is looked at: a conversation, how it is fitted and billed, the session it is of; or a list of such."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from trimtab.context import Fitted
from trimtab.replay import Replayed
from trimtab.session import Session

__all__ = ["Collection", "Item", "Subject"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What an inspector shows.

    Args:
        name: Heading of every page: a file, or a session.
        policies: Names of the available policies; the one shown first comes first.
        fit: Fits the conversation under a policy by name, or under a strategy as JSON; for a session,
            everything up to a version of its log, which is None for a file. It may raise `ContextError`; the
            attempt of a `BudgetExceededError` is shown.
        play: Replays the conversation under a policy, a pricing and a room in tokens (None: its own), up to a
            version. None: there is no bill by call.
        replayed: Names of further policies for `play`, such as "none" and "default".
        pricings: Names of pricings; the one used first comes first.
        session: The session with the log; None for a file.
        read_only: Whether decisions in the log cannot be taken back.
        is_margin_auto: Whether the margin of another budget is computed anew, as for `margin="auto"`;
            otherwise it is the number that `fit` had.
        model: The model it is fitted for; None if unknown.
        fixed: Policies that stand for what was done: they are shown at no other budget.
        models: Names of models to choose from.
        for_model: Makes the subject of the same conversation for another model. None: there is no choice of
            models.
        note: A note shown at the top, such as one about the budget.

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
    fixed: Sequence[str] = ()
    model: str | None = None
    models: Sequence[str] = ()
    for_model: Callable[[str], Subject] | None = None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One line of a list of conversations: what is known before one is opened.

    Args:
        name: Its name, as `Collection.open` takes it.
        said: Its first words.
        messages: Number of messages, or events of a log; None: unknown.
        tokens: Approximate tokens; None: unknown.
        time: Time of the last message, in UTC; empty if unknown.
        error: Why it cannot be opened; empty if it can.
    """

    name: str
    said: str = ""
    messages: int | None = None
    tokens: int | None = None
    time: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """Conversations to choose from: of a file, a folder or a store.

    Args:
        name: Heading of the list.
        items: Lists them; for a store that grows, it is called for each page.
        open: Makes the subject of the conversation with a name.
        describe: Adds details of a conversation when it is shown. None: there are no more.
        noun: The word for one of them.
        order: In which order they are listed.
        note: Notes on the list, for example that it is incomplete.

    Example:
        >>> from trimtab import fit
        >>> def open(name: str) -> Subject:
        ...     chat = [{"role": "user", "content": name}]
        ...     return Subject(name=name, policies=("default",), fit=lambda policy, version: fit(chat, 40))
        >>> chats = Collection(name="chats", items=lambda: [Item(name="monday", messages=1)], open=open)
        >>> chats.open("monday").fit("default", None).messages
        [{'role': 'user', 'content': 'monday'}]
    """

    name: str
    items: Callable[[], Sequence[Item]]
    open: Callable[[str], Subject]
    describe: Callable[[Item], Item] | None = None
    noun: str = "conversation"
    order: str = "as in the file"
    note: str = ""
