"""Rows of messages told in few lines: neighbours that fared alike become one run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from trimtab.report.lines import clip, counted, known, plain
from trimtab.report.rows import MessageRow

_NAMED_TOOLS = 3
_NAMED_ROLES = 2
_NAMED_LABELS = 3
_WORD_COLUMNS = 32
"""More of a role or a tool's name is not shown; providers allow 64 characters, input may hold any."""
_ANSWERING_ROLES = frozenset({"tool", "user", "function"})


class Run(NamedTuple):
    """Neighbouring messages with the same fate, reason and block; a changed one stands alone."""

    rows: tuple[MessageRow, ...]

    @property
    def first(self) -> MessageRow:
        """The oldest of them, which speaks for all in fate, reason and block."""
        return self.rows[0]

    @property
    def span(self) -> str:
        """Their indices, as in "12–398"."""
        first, last = self.rows[0].index, self.rows[-1].index
        return str(first) if first == last else f"{first}–{last}"

    @property
    def why(self) -> str:
        """Their reason; that they are pinned or held, if they have none; else nothing."""
        return self.first.reason or ("" if self.first.state == "free" else self.first.state)

    @property
    def tokens(self) -> str:
        """Their size; "?" if it was not counted for every one of them."""
        if self.first.fate == "changed":
            return f"{known(self.first.tokens_before)} → {known(self.first.tokens_after)}"
        kept = self.first.fate == "kept"
        sizes = [row.tokens_after if kept else row.tokens_before for row in self.rows]
        counts = [size for size in sizes if size is not None]
        return known(sum(counts) if len(counts) == len(sizes) else None)

    @property
    def what(self) -> str:
        """Roles or number of messages, the tools they call, and the labels they have."""
        roles = " + ".join(_short(row.role) for row in self.rows[:_NAMED_ROLES])
        who = roles if len(self.rows) <= _NAMED_ROLES else counted(len(self.rows), "message")
        also = [said for said in (_tools(self.rows), _labels(self.rows)) if said]
        return ", ".join([who, *also])


def runs(rows: Iterable[MessageRow]) -> list[Run]:
    """Join neighbours that fared alike; each changed message is a run of its own."""
    found: list[list[MessageRow]] = []
    for row in rows:
        if found and row.fate != "changed" and _fared(found[-1][0]) == _fared(row):
            found[-1].append(row)
        else:
            found.append([row])
    return [Run(tuple(group)) for group in found]


def _fared(row: MessageRow) -> tuple[str, str | None, str, bool]:
    return row.fate, row.reason, row.block, row.state == "pinned"


def _tools(rows: Sequence[MessageRow]) -> str:
    """Say which tools are called; "result of" if only the answers are here."""
    # A call and its result name the same call; ids are used again in later units.
    named = {
        (row.unit, call_id): name
        for row in rows
        for call_id, name in zip(row.call_ids, row.tool_names, strict=False)
    }
    if not named:
        return ""
    tools = Counter(named.values()).most_common()
    shown = [_short(name) + (f"×{count}" if count > 1 else "") for name, count in tools[:_NAMED_TOOLS]]
    if len(tools) > _NAMED_TOOLS:
        shown.append(f"{len(tools) - _NAMED_TOOLS} more")
    return ("result of " if all(map(_answers, rows)) else "calls ") + ", ".join(shown)


def _labels(rows: Sequence[MessageRow]) -> str:
    """List the words their block has for them."""
    labels = [_short(row.label) for row in rows if row.label]
    shown = labels[:_NAMED_LABELS]
    if len(labels) > _NAMED_LABELS:
        shown.append(f"{len(labels) - _NAMED_LABELS} more")
    return ", ".join(shown)


def _short(word: str) -> str:
    # Cut first: the name may be a megabyte.
    return clip(plain(word[: _WORD_COLUMNS + 1]), _WORD_COLUMNS)


def _answers(row: MessageRow) -> bool:
    return row.role in _ANSWERING_ROLES or row.role.endswith("_output")
