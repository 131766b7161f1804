"""Checks of the values a strategy answers with: their kinds, and words of closed lists.

Whether the answer keeps to the conversation and the limit is the runner's to check.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Mapping, Sequence
from typing import NoReturn

from trimtab.conversation import Unit
from trimtab.conversation.assemble import Insertion
from trimtab.errors import FormatError, StrategyContractError
from trimtab.formats import Structure
from trimtab.strategies.base import Edit, EvictionRequest, EvictionResult

__all__ = ["breach", "checked_answer", "is_ours"]


def is_ours(strategy: object, /) -> bool:
    """Tell whether a strategy is one of this package, whose answers its own tests check.

    Looking over the kinds of values in each answer costs a tenth of a fit; subclasses are not ours.
    """
    return type(strategy).__module__.startswith("trimtab.strategies.")


def breach(name: str, what: str) -> NoReturn:
    """Say which strategy broke its contract, and how."""
    raise StrategyContractError(f"strategy {name} {what}", strategy=name)


def checked_answer(result: object, request: EvictionRequest, name: str) -> EvictionResult:
    """Return what a strategy answered, every value of it of the right kind.

    Raises:
        StrategyContractError: It is no EvictionResult, or holds what no result may hold.
    """
    if not isinstance(result, EvictionResult):
        breach(name, f"returned {type(result).__name__}, not EvictionResult")
    cut = result.cut
    if cut is not None and type(cut) is not int:
        breach(name, f"cuts at {cut!r}, which is no position of a message")
    if cut is not None and not 0 <= cut <= request.history.count:
        breach(name, f"cuts at message {cut}, where no unit begins")
    _check_sequence(result.kept, "kept", name)
    for unit in result.kept:
        if not _is_unit(unit):
            breach(name, f"keeps {_shown(unit)}, which is not a unit of the request")
    if result.edits != ():
        _check_sequence(result.edits, "edits", name)
        for edit in result.edits:
            _check_edit(edit, name)
    if result.insertions != ():
        _check_sequence(result.insertions, "insertions", name)
        for insertion in result.insertions:
            _check_insertion(insertion, request, name)
    _check_words(result, name)
    return result


def _is_unit(unit: object) -> bool:
    """Tell whether a value may be a unit: one that was made by hand may hold anything."""
    if not isinstance(unit, Unit) or type(unit.indices) is not tuple or not isinstance(unit.parts, Mapping):
        return False
    return bool(unit.indices) and _are_places(unit.indices)


def _are_places(values: Iterable[object]) -> bool:
    return all(type(value) is int for value in values)


def _shown(value: object) -> str:
    """Show what a strategy answered, whatever it is."""
    return f"a unit of {reprlib.repr(value.indices)}" if isinstance(value, Unit) else reprlib.repr(value)


def _check_sequence(value: object, field: str, name: str) -> None:
    if type(value) is not list and (not isinstance(value, Sequence) or isinstance(value, (str, bytes))):
        breach(name, f"answers {value!r} as {field}; it is a sequence")


def _check_edit(edit: object, name: str) -> None:
    """Check that an edit gives text by the places of one message."""
    if not isinstance(edit, Edit):
        breach(name, f"answers {edit!r} among its edits, which is no Edit")
    if type(edit.index) is not int:
        breach(name, f"edits message {edit.index!r}, which is no position of a message")
    if not isinstance(edit.texts, Mapping):
        breach(name, f"edits message {edit.index} with {edit.texts!r}; texts is a mapping of path to text")
    for path, text in edit.texts.items():
        if not isinstance(text, str):
            breach(name, f"edits message {edit.index} at {path!r} with {type(text).__name__}, not text")


def _check_insertion(insertion: object, request: EvictionRequest, name: str) -> None:
    """Check that what is put in is a message with a place, and would be taken by the provider."""
    if not isinstance(insertion, Insertion):
        breach(name, f"answers {insertion!r} among its insertions, which is no Insertion")
    if type(insertion.at) is not int or not 0 <= insertion.at < request.history.count:
        breach(name, f"puts a message in at {insertion.at!r}, which is no position of a message")
    if type(insertion.message) is not dict:
        breach(name, f"puts in {type(insertion.message).__name__}; a message it makes is a dict")
    if not isinstance(insertion.why, str):
        breach(name, f"puts in a message with {insertion.why!r} as why; it is a few words")
    covers, count = insertion.covers, request.history.count
    if not isinstance(covers, (frozenset, set)) or not _are_places(covers):
        breach(
            name, f"puts in {insertion.why!r} with {covers!r} as covers; it is a set of positions of messages"
        )
    if any(not 0 <= index < count for index in covers):
        breach(name, f"puts in {insertion.why!r}, which stands for messages that there are not")
    _check_written(insertion, request, name)
    planned = insertion.planned_tokens
    if planned is None:
        return
    if type(planned) is not int or planned < 0:
        breach(name, f"puts in a message of {planned!r} tokens; planned_tokens is a whole number, or None")
    if (counted := request.sizes.alone(insertion.message)) > planned:
        breach(name, f"puts in a message of {counted:,} tokens and plans {planned:,} for it")


def _check_written(insertion: Insertion, request: EvictionRequest, name: str) -> None:
    """Check that a message is one of its wire form, and neither makes calls nor answers any."""
    format, message = request.history.format, insertion.message
    columns = Structure(1)
    try:
        faults = [fault.detail for fault in format.faults([message])]
        format.scan([message], 0, 1, columns)
        kind = format.kind(message)
    except FormatError as error:
        faults, kind = [str(error)], "other"
    if faults or kind == "other":
        said = faults[0] if faults else f"it is none of {format.name}"
        breach(name, f"puts in {insertion.why!r}, which the provider refuses: {said}")
    if columns.calls or columns.answers or columns.dangling or columns.references:
        breach(name, f"puts in {insertion.why!r}, which makes or answers a call: it stands alone")


def _check_words(result: EvictionResult, name: str) -> None:
    """Check the values that go into the report as they are."""
    fits, actions, needed = result.fits, result.actions, result.needed_tokens
    if type(fits) is not bool:
        breach(name, f"answers {fits!r} as fits; it is True or False")
    if needed is not None and type(needed) is not int:
        breach(name, f"answers {needed!r} as needed_tokens; it is a whole number, or None")
    if actions is not None and not (type(actions) is tuple and all(isinstance(a, str) for a in actions)):
        breach(name, f"answers {actions!r} as actions; it is a tuple of words, or None")
    if not isinstance(result.protected, (frozenset, set)):
        breach(name, f"answers {result.protected!r} as protected; it is a set of positions of messages")
    if type(result.notes) is not tuple or not all(isinstance(note, str) for note in result.notes):
        breach(name, f"answers {result.notes!r} as notes; it is a tuple of sentences")
    if result.reason != "over_limit":
        from trimtab.report import REASONS  # not above: a report is loaded by who reads one

        if result.reason not in REASONS:
            breach(name, f"answers {result.reason!r} as reason; it is one of {', '.join(REASONS)}")
