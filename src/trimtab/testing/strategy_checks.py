"""What one answer of a strategy must keep to, looked over without the runner's help."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from trimtab.conversation import Unit
from trimtab.conversation.assemble import assembled, owns_text
from trimtab.formats import Path
from trimtab.report import REASONS
from trimtab.strategies import Edit, EvictionRequest, EvictionResult
from trimtab.testing.errors import broken


class Answer:
    """A request, what a strategy answered, and what that keeps."""

    def __init__(self, request: EvictionRequest, result: EvictionResult, counter: Any, where: str) -> None:
        self.request = request
        self.result = result
        self.counter = counter
        self.where = where
        self.units = list(request.units)

    @property
    def kept(self) -> list[Unit]:
        """Units that stay by this answer: those named, and with a cut those from there on."""
        result, request = self.result, self.request
        if result.cut is None:
            return list(result.kept)
        named = set(map(_key, result.kept))
        return [
            unit
            for unit in self.units
            if unit.first >= result.cut or _key(unit) in named or request.stays(unit)
        ]

    @property
    def edits(self) -> dict[int, Mapping[Path, str]]:
        """New texts by message."""
        edits: dict[int, Mapping[Path, str]] = {}
        for edit in self.result.edits:
            edits[edit.index] = {**edits.get(edit.index, {}), **edit.texts}
        return edits

    def tokens(self, units: list[Unit]) -> int:
        """Recount a request of these units, edited as answered."""
        present = {index for unit in units for index in unit.indices}
        edits = {index: texts for index, texts in self.edits.items() if index in present}
        count = getattr(self.counter, "count", self.counter)
        put_in = sorted(self.result.insertions, key=lambda insertion: insertion.at)
        return int(count(assembled(self.request.history, units, edits, put_in)))


def _key(unit: Unit) -> Hashable:
    return (unit.indices, tuple(sorted(unit.parts.items())))


def decision_of(answer: Answer) -> Hashable:
    """Write what was decided as a value, to compare two answers."""
    edits = tuple(
        (index, tuple(sorted(texts.items(), key=str))) for index, texts in sorted(answer.edits.items())
    )
    put_in = tuple((insertion.at, repr(insertion.message)) for insertion in answer.result.insertions)
    return (tuple(map(_key, answer.kept)), edits, put_in, answer.result.fits)


def check_answer(answer: Answer) -> None:
    """Check one answer.

    Raises:
        ContractBroken: With the rule that is broken.
    """
    _check_values(answer)
    _check_kept(answer)
    _check_edits(answer)
    _check_insertions(answer)
    _check_size(answer)


def _check_values(answer: Answer) -> None:
    """Check the kinds of the values of a result."""
    result, where = answer.result, answer.where
    if not isinstance(result.fits, bool):
        broken("answers", f"{where}: fits is {result.fits!r}; it is True or False")
    if result.reason not in REASONS:
        broken("answers", f"{where}: reason {result.reason!r} is none of {', '.join(REASONS)}")
    actions = result.actions
    if actions is not None and not (isinstance(actions, tuple) and all(isinstance(a, str) for a in actions)):
        broken("answers", f"{where}: actions is {actions!r}; it is a tuple of words, or None")
    for word, entries in (("kept", result.kept), ("edits", result.edits)):
        if not isinstance(entries, Sequence) or isinstance(entries, str):
            broken("answers", f"{where}: {word} is {entries!r}; it is a sequence")
    if not all(isinstance(edit, Edit) and isinstance(edit.texts, Mapping) for edit in result.edits):
        broken("answers", f"{where}: edits has {result.edits!r}; each is an Edit with texts by path")
    cut, count = result.cut, len(answer.request.history)
    if cut is not None and (type(cut) is not int or not 0 <= cut <= count):
        broken("answers", f"{where}: cut is {cut!r}; it is a position from 0 to {count}, or None")


def _check_kept(answer: Answer) -> None:
    """Check that units are kept whole, once, in order, and that what must stay does."""
    where = answer.where
    places = {_key(unit): at for at, unit in enumerate(answer.units)}
    for unit in answer.result.kept:
        if not isinstance(unit, Unit) or _key(unit) not in places:
            broken("whole_units", f"{where}: keeps {unit!r}, which is no unit of the request")
    cut = answer.result.cut
    if cut is not None and cut != len(answer.request.history):
        owner = next((unit for unit in answer.units if cut in unit.indices), None)
        if owner is not None and cut != owner.first and not owner.parts:
            broken("whole_units", f"{where}: cuts at message {cut}, inside {owner!r}")
    order = [places[_key(unit)] for unit in answer.kept]
    if any(first >= second for first, second in itertools.pairwise(order)):
        broken("once_in_order", f"{where}: keeps units at {order}; each once, in the order of the request")
    for at in sorted(set(range(len(answer.units))) - set(order)):
        if answer.units[at].state != "free":
            broken("stays", f"{where}: evicts {answer.units[at]!r}, which must not leave")


def _check_edits(answer: Answer) -> None:
    """Check that only texts of messages that stay and are not pinned are edited."""
    kept = answer.kept
    for edit in answer.result.edits:
        where = f"{answer.where}: edits message {edit.index}"
        units = [unit for unit in kept if edit.index in unit.indices]
        if not units:
            broken("edits", f"{where}, which does not stay")
        if any(u.state == "pinned" and owns_text(u, edit.index, path) for u in units for path in edit.texts):
            broken("edits", f"{where}, which is pinned")
        known = {slot.path for slot in answer.request.texts(edit.index)}
        for path, text in edit.texts.items():
            if path not in known:
                broken("edits", f"{where} at {path!r}, where no text is that may be cut")
            if not isinstance(text, str):
                broken("edits", f"{where} at {path!r} with {type(text).__name__}, not text")


def _check_insertions(answer: Answer) -> None:
    """Check that what is put in stands where what it is there for left."""
    kept = {index for unit in answer.kept for index in unit.indices}
    for insertion in answer.result.insertions:
        where = f"{answer.where}: puts in {insertion.why!r}"
        if not insertion.covers.isdisjoint(kept):
            broken("insertions", f"{where}, which stands for messages that stay")
        if insertion.at not in insertion.covers:
            broken("insertions", f"{where} at message {insertion.at}, in place of none")


def _check_size(answer: Answer) -> None:
    """Recount what stays, and compare with the claim."""
    tokens, limit = answer.tokens(answer.kept), answer.request.limit_tokens
    if answer.result.fits and tokens > limit:
        broken("within_limit", f"{answer.where}: says it fits, but {tokens} tokens are over {limit}")
    if answer.result.fits:
        return
    if tokens <= limit:
        broken("honest", f"{answer.where}: says it does not fit, but its {tokens} tokens do")
    needed = answer.result.needed_tokens
    if needed is not None and (type(needed) is not int or needed <= limit):
        broken("honest", f"{answer.where}: says it does not fit, but needs {needed!r} tokens, limit {limit}")


def check_thrift(answer: Answer) -> None:
    """Check that something of what was evicted would not have fitted.

    Raises:
        ContractBroken: Each evicted unit alone, with the message that opened its turn, could have stayed.
    """
    if not answer.result.fits or answer.result.edits:
        return
    kept = answer.kept
    keys = set(map(_key, kept))
    evicted = [unit for unit in answer.units if _key(unit) not in keys]
    if evicted and all(_could_stay(answer, unit, keys) for unit in evicted):
        tokens, limit = answer.tokens(kept), answer.request.limit_tokens
        broken(
            "thrifty",
            f"{answer.where}: keeps {tokens} of {limit} tokens, and each of the {len(evicted)} evicted units"
            " would have fitted",
        )


def _could_stay(answer: Answer, unit: Unit, keys: set[Hashable]) -> bool:
    opener = next((u for u in reversed(answer.units) if u.kind == "user" and u.first <= unit.first), unit)
    back = {_key(unit), _key(opener)}
    units = [u for u in answer.units if _key(u) in keys or _key(u) in back]
    return answer.tokens(units) <= answer.request.limit_tokens
