"""Which result of a conversation answers a call, and what its text is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from trimtab._shared.checks import in_words, near_names
from trimtab.errors import ConfigurationError, UnknownNameError
from trimtab.formats import Dict, Format, Path, Structure
from trimtab.formats.handles import is_safe_id
from trimtab.formats.values import item_of

MOST_IDS = 500
"""So many ids are compared with one that is not there, the newest first."""

_MOST_CHARS = 100
"""The longest id that is compared with others."""


def check_call_id(call_id: object, /) -> str:
    """Return the id of a call.

    Raises:
        ConfigurationError: It is not text, or is empty.
    """
    if not isinstance(call_id, str) or not call_id:
        raise ConfigurationError(
            f"call_id must be the id of the call that the result answers, not {call_id!r:.80}",
            argument="call_id",
        )
    return call_id


def id_label(call_id: str, /) -> str:
    """Write an id into a line: as it is if it brings in no words, else quoted and cut."""
    return call_id if is_safe_id(call_id) else ascii(call_id[:64])


def unknown_id(call_id: str, ids: Iterable[str], /) -> UnknownNameError:
    """Make the error for an id that no result has.

    Args:
        call_id: What was asked for.
        ids: Those there are, the newest first.
    """
    known = [one for one, _ in zip(ids, range(MOST_IDS), strict=False) if is_safe_id(one)]
    near = near_names(call_id[:_MOST_CHARS], known)
    return UnknownNameError(
        f"no result in this conversation answers a call {id_label(call_id)}{in_words(near)}",
        name=call_id,
        near=near,
        argument="call_id",
    )


def find_result(format: Format, messages: Sequence[Any], call_id: str, /) -> tuple[str, int]:
    """Return the text of the newest result that answers a call of an id, and how many there are.

    Args:
        format: Its wire form.
        messages: All messages; the list itself is not changed.
        call_id: The id.

    Raises:
        FormatError: An entry is not a message; `.path` names it.
        UnknownNameError: No result has that id; the error lists similar ones.
    """
    read = list(messages)
    structure = Structure(len(read))
    format.scan(read, 0, len(read), structure)
    places = [
        (index, part)
        for index in sorted(structure.answers)
        for one, part in structure.answers[index]
        if one == call_id
    ]
    if not places:
        newest = sorted(structure.answers, reverse=True)
        raise unknown_id(call_id, (one for index in newest for one, _ in structure.answers[index]))
    index, part = places[-1]
    return result_text(format, read[index], part), len(places)


def result_text(format: Format, message: Dict, part: int | None, /) -> str:
    """Return the text of a result as the model was sent it; data as JSON, unless one text is all of it.

    Args:
        format: Its wire form.
        message: The message with the result.
        part: Which part of it the result is; None: all of it.
    """
    if part is not None:
        count = len(message[format.rules.parts_key])
        message = format.without_parts(message, [at for at in range(count) if at != part])
    whole, slots = format.full_text(message), format.texts(message)
    joined = "\n".join(slot.text for slot in slots)
    if joined == whole or (len(slots) == 1 and _is_alone(message, slots[0].path)):
        return joined
    return whole


def _is_alone(message: Any, path: Path) -> bool:
    """Tell whether the data that a text stands in has nothing beside it, as `{"output": text}`."""
    value: Any = message
    for key in path[:-1]:
        value = item_of(value, key)
    return isinstance(value, Mapping) and len(value) == 1
