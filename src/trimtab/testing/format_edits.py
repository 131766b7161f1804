"""What `check_format` asks of a wire form that edits and makes messages."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from trimtab.formats import Format, Pieces, Structure, mapping_of
from trimtab.formats.base import TextSlot
from trimtab.testing.errors import broken

_LONG = "a text of some words, longer than most of what it replaces, and told apart by the word xylophone"

_SHORT = 12
"""Characters of a text that may stand in what redaction writes by chance."""


def check_edits(format: Format, sample: list[Any], where: str) -> None:
    """Check each message of a conversation: its texts, pieces, parts and calls.

    Raises:
        ContractBroken: An edit did something else, or changed the message it was given.
    """
    structure = Structure(len(sample))
    format.scan(list(sample), 0, len(sample), structure)
    for index, message in enumerate(sample):
        at, before = f"{where}, message {index}", copy.deepcopy(message)
        _check_pieces(format.pieces(mapping_of(message)), at)
        _check_texts(format, message, at)
        _check_parts(format, message, structure.parts_of(index), at)
        _check_calls(format, sample, index, structure.calls.get(index, ()), at)
        _check_written(format, message, at)
        if message != before:
            broken("input_unchanged", f"{at}: was changed by an edit")


def _check_pieces(pieces: Any, where: str) -> None:
    """Check that what is charged for is text, and media apart."""
    if not isinstance(pieces, Pieces):
        broken("pieces", f"{where}: pieces() gave {type(pieces).__name__}, not Pieces")
    texts = [*pieces.texts, *pieces.other, *(text for call in pieces.calls for text in call)]
    wrong = [text for text in texts if not isinstance(text, str)]
    if wrong:
        broken("pieces", f"{where}: {wrong[0]!r:.80} is no text")
    data = [one.data for one in pieces.media if one.data and len(one.data) > 60]
    if any(one in text for one in data for text in texts):
        broken("pieces", f"{where}: the data of a medium is among the texts, and would be counted as text")


def _check_texts(format: Format, message: Any, where: str) -> None:
    """Check that each text that may be shortened can be, alone, and that it is charged for."""
    slots, before = format.texts(mapping_of(message)), copy.deepcopy(message)
    for slot in slots:
        if not isinstance(slot, TextSlot) or not isinstance(slot.text, str):
            broken("texts", f"{where}: {slot!r:.80} is no TextSlot")
        changed = format.with_texts(message, {slot.path: _LONG})
        if message != before:
            broken("input_unchanged", f"{where}: with_texts() changed the message it was given")
        new = {one.path: one.text for one in format.texts(mapping_of(changed))}
        old = {one.path: one.text for one in slots}
        if new != {**old, slot.path: _LONG}:
            broken("texts", f"{where}: replacing the text at {slot.path} gave {new!r:.200}")
        if "xylophone" not in _charged(format.pieces(mapping_of(changed))):
            broken("texts", f"{where}: the text at {slot.path} may be shortened, and is not charged for")
        if type(changed) is not type(message):
            broken("edits", f"{where}: with_texts() gave a {type(changed).__name__}")
        if format.with_texts(message, {slot.path: slot.text}) != message:
            broken("edits", f"{where}: replacing the text at {slot.path} by itself gave another message")
    if len({slot.path for slot in slots}) != len(slots):
        broken("texts", f"{where}: two texts at one path")


def _charged(pieces: Pieces) -> str:
    return " ".join((*pieces.texts, *pieces.other))


def _check_parts(format: Format, message: Any, parts: set[int], where: str) -> None:
    """Check that parts which may leave one by one do, and the others stay."""
    if format.without_parts(message, ()) != message:
        broken("edits", f"{where}: without_parts() of none gave another message")
    before = _read(format, message)
    for part in parts if len(parts) > 1 else ():
        left = _read(format, format.without_parts(message, [part]))
        results = [at for _, at in before.answers.get(0, ()) if at != part]
        there = left.answers.get(0, ())
        if len(there) != len(results):  # their ids may go by their place
            broken(
                "edits", f"{where}: without part {part} its results are {there!r}; {len(results)} should stay"
            )
        loose = [at for at in before.loose.get(0, ()) if at != part]
        if results and len(left.loose.get(0, ())) != len(loose):
            broken("edits", f"{where}: without part {part} it has {left.loose.get(0)!r} beside results")


def _check_calls(format: Format, sample: list[Any], index: int, ids: tuple[str, ...], where: str) -> None:
    """Check that calls can be taken out one by one, and all of them."""
    for gone in (*({one} for one in ids), set(ids)) if ids else ():
        changed = list(sample)
        changed[index] = format.without_calls(sample[index], frozenset(gone))
        stay = [one for one in ids if one not in gone]  # calls of one id go together
        if changed[index] is None:
            if stay:
                broken("edits", f"{where}: without {sorted(gone)} nothing is left, but other calls are")
            continue
        left = Structure(len(changed))
        format.scan(changed, 0, len(changed), left)
        there = left.calls.get(index, ())
        if len(there) != len(stay):
            broken("edits", f"{where}: without {sorted(gone)} it calls {there!r}, before {ids!r}")
    if format.without_calls(sample[index], frozenset({"an id nobody has"})) != sample[index]:
        broken("edits", f"{where}: without_calls() of an id it does not have gave another message")


def _check_written(format: Format, message: Any, where: str) -> None:
    if not isinstance(format.transcript(mapping_of(message)), str):
        broken("makes", f"{where}: transcript() gave no text")
    if type(format.matches(mapping_of(message))) is not bool:
        broken("makes", f"{where}: matches() gave no bool")


def check_redacted(format: Format, sample: list[Any], where: str) -> None:
    """Check that redaction leaves no text, and every call and result.

    Raises:
        ContractBroken: A text is still there, or something else calls or answers than before.
    """
    plain = [copy.deepcopy(mapping_of(message)) for message in sample]
    made = [format.redacted(message) for message in plain]
    for index, message in enumerate(plain):
        at = f"{where}, message {index}"
        if message != mapping_of(sample[index]):
            broken("input_unchanged", f"{at}: was changed by redacted()")
        said = {text for text in _texts(format, message) if len(text) > _SHORT}
        left = next((text for text in said if text in str(made[index])), None)
        if left is not None:
            broken("redacted", f"{at}: {left!r:.80} is still said by {made[index]!r:.200}")
    before, after = _ties(format, plain), _ties(format, made)
    if before != after:
        broken("redacted", f"{where}: calls and results are {after!r:.200}, and were {before!r:.200}")


def _ties(format: Format, messages: list[Any]) -> list[tuple[tuple[str, ...], list[str]]]:
    """List what each message calls and answers."""
    found = Structure(len(messages))
    format.scan(list(messages), 0, len(messages), found)
    return [
        (found.calls.get(at, ()), [call_id for call_id, _ in found.answers.get(at, ())])
        for at in range(len(messages))
    ]


def _read(format: Format, message: Any) -> Structure:
    structure = Structure(1)
    format.scan([message], 0, 1, structure)
    return structure


def check_made(format: Format) -> None:
    """Check the messages a form makes of its own.

    Raises:
        ContractBroken: One does not hold what it was made of.
    """
    where = f"format {format.name}"
    for role in ("user", "assistant"):
        made = format.message(role, ["one two"])
        if format.kind(made) != role or _texts(format, made) != ["one two"]:
            broken("makes", f"{where}: message({role!r}, ['one two']) is {made!r:.120}")
        if format.kind(mapping_of(format.with_role(format.message("user", ["a"]), role))) != role:
            broken("makes", f"{where}: with_role(…, {role!r}) has another kind")
        other = format.with_text(made, "three")
        if _texts(format, other) != ["three"] or _texts(format, made) != ["one two"]:
            broken("makes", f"{where}: with_text(…, 'three') is {other!r:.120}")
        cached = format.with_cache_control(made, {"type": "ephemeral"})
        if _texts(format, cached) != ["one two"]:
            broken("makes", f"{where}: with_cache_control() is {cached!r:.120}")


def _texts(format: Format, message: Any) -> list[str]:
    entry: Mapping[str, Any] = mapping_of(message)
    return [slot.text for slot in format.texts(dict(entry))]
