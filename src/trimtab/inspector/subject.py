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
        model: The model it is fitted for; None where none is known.
        models: Names of models that a page offers.
        for_model: Makes the subject of the same conversation for another model. None: a page offers none.
        note: What a reader has to know of the budget or the like, above everything else.

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
    model: str | None = None
    models: Sequence[str] = ()
    for_model: Callable[[str], Subject] | None = None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One line of a list of conversations: what is known of it before it is opened.

    Args:
        name: Which one it is, as `Collection.open` takes it.
        said: What it begins with, in words.
        messages: How many messages, or events of a log, it has; None: not known.
        tokens: About how many tokens; None: not known.
        time: When something was added last, in UTC; empty where that is not known.
        error: Why it cannot be opened; empty where it can.
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
        name: Stands over the list.
        items: Lists them; of a store that grows it is asked again for each page.
        open: Makes the subject of the one with a name.
        describe: Says more of one when it is shown. None: all is said.
        noun: What each is called.
        note: What a reader has to know of the list, as that it is not all of it.

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
    note: str = ""
