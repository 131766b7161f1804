"""What earlier calls taught, in one piece, and as records that processes share (`stores.records`).

A record has numbers and hashes, and no text: of a result that was cut it has how many characters stay.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from secrets import token_hex
from typing import Any, Protocol

from trimtab._shared.strict_json import parse
from trimtab.counting.totals import TotalBaseline
from trimtab.errors import ContextError
from trimtab.integrations.chats import Chat, Chats, Held, Kept, Mark, Opening
from trimtab.integrations.recovery import Refused

MOST_ALIKE = 8
"""Conversations in a record, of those that begin alike: the last used ones, and what they started from."""

MOST_CUTS_KEPT = 64
"""Cut results of a conversation in a record."""

MOST_BYTES = 64 * 2**10
"""Of a record."""

MOST_NUMBER = 2**53
"""No number of a record is above; a count of tokens or characters is far below."""

_UNREADABLE = (ContextError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What reading a record raises that nobody of us wrote, or that was damaged."""

_VERSION = 1
_ROOT = "root"
"""The id of what those that begin alike started from."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """What a client, or one who asks a gateway, is known by."""

    chats: Chats
    """Conversations: their bills and their cuts."""
    refused: Refused
    """What providers refused."""
    held: Held
    """The size of what servers put before messages."""

    # -- conversations that begin alike

    def write_chats(self, opening: Opening, /) -> bytes:
        """Write those that begin alike as a record."""
        chats = self.chats.alike(opening)
        for chat in chats:
            chat.id = chat.id or (token_hex(6) if chat.marks else _ROOT)
        roots, others = [one for one in chats if not one.marks], [one for one in chats if one.marks]
        rows = [_row_of(one, self.chats) for one in (*roots, *others[-MOST_ALIKE + 1 :])]
        while True:
            raw = _dump(rows)
            if len(raw) <= MOST_BYTES or len(rows) < 2:
                return raw
            del rows[1]

    def take_chats(self, opening: Opening, raw: bytes | None, /) -> None:
        """Take in a record; of a conversation that is known here, what it knows more.

        A record that cannot be read, as one of another version or counter, is as good as none.
        """
        if raw is None:
            return
        known = {chat.id: chat for chat in self.chats.alike(opening) if chat.id}
        new = self.chats.new_baseline(opening[1] or None)
        try:
            read = [(_chat_of(row, opening, self.chats, new), row["is_new"]) for row in _parse(raw)]
        except _UNREADABLE:
            return
        found = [known.get(chat.id, chat) for chat, _ in read]
        root = next((chat for chat in found if not chat.marks), None)
        for chat, (new, is_new) in zip(found, read, strict=True):
            if chat is new:
                chat.root = root if is_new else None
                self.chats.add(chat)
            else:
                _add_to(chat, new, is_new=is_new)

    # -- who asks

    def write_asker(self, opening: Opening, /) -> bytes:
        """Write what one who asks was refused, and what servers hold for them, as a record; b"": nothing."""
        asker, model, _ = opening
        refused, held = self.refused.to_dict(model, asker=asker), self.held.to_dict()
        return _dump([{"refused": refused, "held": held}]) if any(refused.values()) or held else b""

    def take_asker(self, opening: Opening, raw: bytes | None, /) -> None:
        """Take in a record, where nothing is known here."""
        asker, model, _ = opening
        try:
            for row in [] if raw is None else _parse(raw):
                self.refused.take(row["refused"], model, asker=asker)
                for name, tokens in row["held"].items():
                    if self.held.tokens(name) is None:
                        self.held.learn(str(name), None if tokens is None else int(tokens))
        except _UNREADABLE:
            return


class Recall(Protocol):
    """Where what earlier calls taught is kept, for one call of a client that shares it."""

    def digest(self, value: Any, /) -> str:
        """Name a message or a text as every process does."""
        ...

    def fill(self, ledger: Ledger, opening: Opening, /) -> None:
        """Have an empty ledger know what is known of those that begin as a call does."""
        ...


def _dump(rows: list[dict[str, Any]]) -> bytes:
    return json.dumps([_VERSION, rows], separators=(",", ":")).encode()


def _parse(raw: bytes) -> list[dict[str, Any]]:
    if len(raw) > MOST_BYTES:
        raise ValueError("none of ours is so long")
    version, rows = parse(raw)
    if version != _VERSION:
        raise ValueError("another version")
    _check_numbers(rows)
    return list(rows)


def _check_numbers(value: Any) -> None:
    """Refuse numbers that no conversation has, before anything is reckoned with them.

    Raises:
        ValueError: There is one.
    """
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            waiting.extend(one.values())
        elif isinstance(one, list):
            waiting.extend(one)
        elif isinstance(one, int | float) and abs(one) > MOST_NUMBER:
            raise ValueError("no record of ours has such a number")


def _learned_in(counter: TotalBaseline | None, chats: Chats) -> dict[str, Any] | None:
    """Write what a counter learned; its name, in which that of a model is, as a hash."""
    data = None if counter is None else counter.to_dict()
    return None if data is None else {**data, "counter": chats.digest(data["counter"])}


def _row_of(chat: Chat, chats: Chats) -> dict[str, Any]:
    newest = islice(chat.cuts.items(), max(0, len(chat.cuts) - MOST_CUTS_KEPT), None)
    return {
        "id": chat.id,
        "is_new": chat.root is not None,
        "marks": chat.marks,
        "is_fork": chat.is_fork,
        "billed": chat.billed,
        "doubts": chat.doubts,
        "cut": chat.cut,
        "at_cut": chat.at_cut,
        "cuts": [[*place, *ends] for place, ends in newest],
        "baseline": _learned_in(chat.baseline, chats),
        "before": _learned_in(chat.before, chats),
    }


def _chat_of(row: Mapping[str, Any], opening: Opening, chats: Chats, new: TotalBaseline | None) -> Chat:
    """Read a conversation; what it is counted by begins as `new`.

    Raises:
        ValueError: It was learned for another counter.
        ContextError: What was learned cannot be read.
    """

    def baseline(data: Mapping[str, Any] | None) -> TotalBaseline | None:
        if data is None or new is None:
            return None
        name = new.name
        if data["counter"] != chats.digest(name):
            raise ValueError("another counter")
        return new.with_data({**data, "counter": name})

    return Chat(
        opening,
        baseline(row["baseline"]) or new,
        chats.format,
        chats.digest,
        id=str(row["id"]),
        before=baseline(row["before"]),
        doubts=bool(row["doubts"]),
        marks=tuple(Mark(int(place), str(key)) for place, key in row["marks"]),
        is_fork=bool(row["is_fork"]),
        billed=Kept(*map(int, row["billed"])),
        cut=int(row["cut"]),
        at_cut=str(row["at_cut"]),
        cuts={
            (int(index), tuple(path), str(key)): (int(head), int(tail))
            for index, path, key, head, tail in row["cuts"]
        },
    )


def _add_to(chat: Chat, other: Chat, *, is_new: bool) -> None:
    """Add what another process learned of a conversation while this one asked."""
    bills = [0 if one.baseline is None else one.baseline.bills for one in (chat, other)]
    if bills[1] > bills[0] or (bills[1] == bills[0] and not is_new):
        chat.baseline, chat.before = other.baseline, other.before
        chat.doubts, chat.billed = other.doubts, other.billed
        chat.root = chat.root if is_new else None
    if other.marks and other.marks[0].place > chat.marks[0].place:
        chat.marks, chat.is_fork = other.marks, other.is_fork
    if other.cut > chat.cut:
        chat.cut, chat.at_cut = other.cut, other.at_cut
    chat.cuts = {**chat.cuts, **other.cuts}
