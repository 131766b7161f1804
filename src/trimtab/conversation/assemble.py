"""Putting together what stays: the caller's own messages, edited and joined only where they must be."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trimtab.conversation import History, Unit
from trimtab.formats import Path

if TYPE_CHECKING:
    from trimtab.report import Reason, SummaryCheck

__all__ = [
    "Document",
    "Insertion",
    "assemble",
    "assemble_one",
    "keep_parts",
    "merge_edits",
    "owns_text",
    "part_of",
    "put_in",
    "tools_answered",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Insertion:
    """A message that trimtab writes into a conversation in place of others.

    Args:
        at: It comes before the kept messages from this one on.
        message: The message in the conversation's wire form.
        why: Its purpose in a few words, for the report.
        covers: Messages that it replaces; none of them is kept.
        planned_tokens: Its size, if the message itself is still to be written; None: it is counted.
        reason: Why the messages that it replaces were evicted, for the report.
        checked: What became of the exact values that it must keep; None: it is no summary that was checked.
    """

    at: int
    message: Any
    why: str
    covers: frozenset[int] = frozenset()
    planned_tokens: int | None = None
    reason: Reason = "superseded_by_summary"
    checked: SummaryCheck | None = None


class Document(dict[str, Any]):
    """A message that will be joined with others, and knows how it is labelled; edited copies know it, too."""

    def __init__(self, message: Mapping[str, Any], *, label: str | None) -> None:
        super().__init__(message)
        self.label = label


def part_of(path: Path) -> int | None:
    """Return the part of its message that a text is in; None where it is no part's."""
    return next((key for key in path if isinstance(key, int)), None)


def tools_answered(history: History, units: Iterable[Unit]) -> dict[tuple[int, int | None], str]:
    """Map results, by message and part, to the names of the tools that gave them."""
    names: dict[tuple[int, int | None], str] = {}
    for unit in units:
        called: dict[str, str] = {}
        for index in unit.indices:
            called.update(history.format.tool_names(history.message(index)))
            for call_id, part in history.structure.answers.get(index, ()):
                if call_id in called:
                    names[index, part] = called[call_id]
    return names


def owns_text(unit: Unit, index: int, path: Path) -> bool:
    """Tell whether a text of a message is the unit's, where units share the message by its parts."""
    own = unit.parts.get(index)
    return own is None or part_of(path) in own


def merge_edits(
    old: Mapping[int, Mapping[Path, str]], new: Iterable[tuple[int, Mapping[Path, str]]]
) -> dict[int, Mapping[Path, str]]:
    """Lay new texts over old ones, message by message."""
    merged = dict(old)
    for index, texts in new:
        merged[index] = {**merged[index], **texts} if index in merged else texts
    return merged


def keep_parts(history: History, index: int, message: Any, parts: Collection[int]) -> Any:
    """Return a message with only these of its parts."""
    gone = sorted(history.structure.parts_of(index).difference(parts))
    return history.format.without_parts(message, gone) if gone else message


def assemble(
    history: History,
    units: Iterable[Unit],
    edits: Mapping[int, Mapping[Path, str]],
    insertions: Sequence[Insertion] = (),
) -> list[Any]:
    """Put kept units back into the caller's messages, in order, edited where they must be."""
    kept: dict[int, set[int] | None] = {}
    for unit in units:
        for index in unit.indices:
            part = unit.parts.get(index)
            if part is None:
                kept[index] = None
            else:
                kept[index] = {*(kept.get(index) or ()), *part}
    indices = sorted(kept)
    messages = [assemble_one(history, index, kept[index], edits.get(index)) for index in indices]
    return put_in(messages, indices, insertions) if insertions else messages


def put_in(messages: list[Any], indices: Sequence[int], insertions: Sequence[Insertion]) -> list[Any]:
    """Put messages in among those that stay, whose places in the conversation are `indices`."""
    for shift, insertion in enumerate(insertions):
        messages.insert(bisect_left(indices, insertion.at) + shift, insertion.message)
    return messages


def assemble_one(
    history: History, index: int, parts: Collection[int] | None, texts: Mapping[Path, str] | None
) -> Any:
    """Return the caller's message, edited only where a text or part of it goes."""
    message = history.original(index)
    if texts:
        edited = history.format.with_texts(message, texts)
        message = Document(edited, label=message.label) if isinstance(message, Document) else edited
    return message if parts is None else keep_parts(history, index, message, parts)
