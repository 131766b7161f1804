"""`check_format`: read and edit many conversations with a wire form and hold it to its contract."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, get_args

from trimtab._fit import fit
from trimtab.budget import Budget
from trimtab.conversation.validity import PairRule, validate
from trimtab.errors import BudgetExceededError, ContextError
from trimtab.formats import Fault, Format, Kind, Pieces, Rules, Structure, get_format, mapping_of
from trimtab.formats.base import TextSlot
from trimtab.testing.bodies import FORMS, request_bodies
from trimtab.testing.errors import Dumped, ask, fail
from trimtab.testing.word_counter import WordCounter

Messages = list[Any]

_PAIRS = frozenset(get_args(PairRule))
_COLUMNS = ("kinds", "calls", "answers", "loose", "bound", "kept")
_ODD: tuple[dict[str, Any], ...] = ({}, {"role": None}, {"role": "nobody"}, {"type": 7}, {"role": ["user"]})
_SAMPLES = 24
_LONG = "a text of some words, longer than most of what it replaces, and told apart by the word xylophone"

_SHORT = 12
"""Characters of a text that may stand in what redaction writes by chance."""


def check_format(format: Format, /, *, samples: Sequence[Messages] | None = None) -> None:
    """Run the contract of `Format` on a wire form of your own.

    What it checks, by the `rule` of the error: `declares` (a name and `Rules`), `kinds` (every message
    has one), `scan` (ids and parts that are there; the same whatever the pieces it is read in), `newest`,
    `order` (faults only where the rules say so), `texts` (what is listed can be replaced, and is
    counted), `edits` (shallow, of what was asked and nothing else), `input_unchanged`, `pieces`,
    `redacted` (says nothing, with the same calls and results), `faults`, `request` (a body read and
    written is the body), `makes` (messages of its own), `objects` (objects with `model_dump()` read as
    their dicts), `fit` (within the budget, without a new violation).

    Args:
        format: The wire form.
        samples: Conversations in this form, valid and not; None: `request_bodies()` of the built-in form that
            it is or derives from.

    Raises:
        ContractBroken: A rule is broken; the error has the rule, the sample and the fault.

    Example:
        >>> from trimtab.formats import get_format
        >>> check_format(get_format("openai_chat"))
    """
    _check_declared(format)
    format = get_format(format)
    if samples is None:
        named = (vars(kind).get("name") for kind in type(format).__mro__)
        shipped = next((name for name in named if name in FORMS), format.name)
        bodies = request_bodies(_SAMPLES, format=shipped)
        samples = [body[get_format(shipped).rules.body_key] for body in bodies]
    if not samples:
        fail("declares", "check_format needs samples: conversations in the form")
    _check_odd(format)
    for at, sample in enumerate(samples):
        _Check(format, sample, f"format {format.name}, sample {at}").run()
    ask(lambda: _check_made(format), "makes", f"format {format.name}")


def _check_declared(format: Any) -> None:
    name, rules = getattr(format, "name", None), getattr(format, "rules", None)
    if not isinstance(name, str) or not name or name == "auto":
        fail("declares", f"{format!r} has no name; a form has a word for reports under `name`")
    if not isinstance(rules, Rules):
        fail("declares", f"format {name}: rules is {rules!r}, not Rules")
    missing = [one for one in _METHODS if not callable(getattr(format, one, None))]
    if missing:
        fail("declares", f"format {name} has no {missing[0]}(); see trimtab.formats.Format")


_METHODS = sorted(Format.__abstractmethods__)


def _check_odd(format: Format) -> None:
    """What is no message of this form has a kind, and breaks nothing."""
    for message in _ODD:
        where = f"format {format.name}, message {message!r}"
        kind = ask(partial(format.kind, message), "kinds", where)
        if kind not in get_args(Kind):
            fail("kinds", f"{where}: kind is {kind!r}, none of {', '.join(get_args(Kind))}")
        for read in ("texts", "pieces", "tool_names", "transcript", "matches"):
            ask(partial(getattr(format, read), message), "kinds", where)
        ask(partial(format.faults, [message]), "faults", where)


@dataclass(frozen=True, slots=True)
class _Check:
    """One run of the contract over one conversation."""

    format: Format
    sample: Messages
    where: str

    def run(self) -> None:
        before = copy.deepcopy(self.sample)
        for rule, check in (
            ("scan", self.check_scan),
            ("newest", self.check_newest),
            ("order", self.check_order),
            ("texts", lambda: _check_edits(self.format, self.sample, self.where)),
            ("redacted", lambda: _check_redacted(self.format, self.sample, self.where)),
            ("faults", self.check_faults),
            ("request", self.check_request),
            ("objects", self.check_objects),
            ("fit", self.check_fit),
        ):
            ask(check, rule, self.where)
            if self.sample != before:
                fail("input_unchanged", f"{self.where}: the messages were changed")

    def check_scan(self) -> None:
        """Reading in pieces, from the end as trimtab does, finds what reading at once finds.

        What may be the half of something further back than was read may be bound to what is before it.
        """
        count = len(self.sample)
        whole = _columns(self.format, self.sample)
        for cuts in ([0, count // 2, count], list(range(count + 1))):
            pieces = _columns(self.format, self.sample, cuts)
            for name in ("kinds", "calls", "kept"):
                self._compare(name, getattr(whole, name), getattr(pieces, name))
            self._compare("bound", whole.bound, pieces.bound & whole.bound)
            tied = {index for index in range(count) if index - 1 in pieces.bound}
            for name in ("answers", "loose"):
                one, other = getattr(whole, name), getattr(pieces, name)
                at = [i for i in sorted({*one, *other} - tied) if one.get(i) != other.get(i)]
                self._compare(name, {i: one.get(i) for i in at}, {i: other.get(i) for i in at})
        for index in range(count):
            self._check_columns(whole, index)

    def _compare(self, name: str, whole: Any, pieces: Any) -> None:
        if whole != pieces:
            fail("scan", f"{self.where}: {name} is {whole}, and read in pieces {pieces}")

    def _check_columns(self, structure: Structure, index: int) -> None:
        where, message = f"{self.where}, message {index}", mapping_of(self.sample[index])
        kind = structure.kinds.get(index)
        if kind != self.format.kind(message):
            fail("scan", f"{where}: kind is {kind!r} after scan, {self.format.kind(message)!r} by kind()")
        ids = structure.calls.get(index, ())
        if not all(isinstance(one, str) for one in ids):
            fail("scan", f"{where}: calls are {ids!r}; ids are texts")
        answered = [part for _, part in structure.answers.get(index, ())]
        loose = structure.loose.get(index, ())
        parts = [part for part in (*answered, *loose) if part is not None]
        if len(set(parts)) != len(parts) or any(type(part) is not int or part < 0 for part in parts):
            fail("scan", f"{where}: parts are {parts}; each has one place")
        if loose and not parts:
            fail("scan", f"{where}: loose parts beside a result that is the whole message")
        if index in structure.bound and not self.format.rules.binds_messages:
            fail("scan", f"{where}: is bound, and rules.binds_messages is False")
        if index in structure.kept and not self.format.rules.keeps_messages:
            fail("scan", f"{where}: is kept, and rules.keeps_messages is False")

    def check_newest(self) -> None:
        count = len(self.sample)
        for kind in get_args(Kind):
            for after, index in ((-1, count - 1), (count // 2, count - 1), (-1, count // 2)):
                found = self.format.newest(list(self.sample), kind, after, index)
                at = [i for i in range(after + 1, index + 1) if self._kind(i) == kind]
                if found != (at[-1] if at else -1):
                    span = f"({after}, {index}]"
                    fail("newest", f"{self.where}: newest {kind} in {span} is {found}, not {at[-1:]}")

    def _kind(self, index: int) -> Kind:
        return self.format.kind(mapping_of(self.sample[index]))

    def check_order(self) -> None:
        previous = None
        for index, message in enumerate(map(mapping_of, self.sample)):
            fault = self.format.order_fault(previous, message) or self.format.order_fault(
                previous, message, parted=True
            )
            if fault is not None and not (isinstance(fault, str) and self.format.rules.ordered):
                fail("order", f"{self.where}, message {index}: {fault!r}, and rules.ordered is False")
            previous = message

    def check_faults(self) -> None:
        faults = self.format.faults([mapping_of(message) for message in self.sample])
        if not all(isinstance(one, Fault) and one.index in range(len(self.sample)) for one in faults):
            fail("faults", f"{self.where}: {faults!r:.200} is no list of Fault with positions that exist")

    def check_request(self) -> None:
        """A body that was read and written is what it was; what changed is in it."""
        rules = self.format.rules
        body = {rules.body_key: self.sample, "model": "some-model"}
        request = self.format.read_request(body)
        if list(request.messages) != self.sample or request.key != rules.body_key:
            fail("request", f"{self.where}: the messages of a body are not those read from it")
        if self.format.write_request(request, list(self.sample)) != body:
            fail("request", f"{self.where}: a body read and written is another")
        fewer = self.format.write_request(request, self.sample[:1])
        if fewer.get(rules.body_key) != self.sample[:1] or body[rules.body_key] is not self.sample:
            what = "other messages do not come out in the body, or went into the old one"
            fail("request", f"{self.where}: {what}")
        if not rules.system_in_messages:
            told = self.format.write_request(replace(request, system="Be brief."), self.sample)
            if not self.format.read_request(told).system or self.format.read_request(body).system:
                fail("request", f"{self.where}: system text given beside a body is not in the one written")

    def check_objects(self) -> None:
        """Objects with `model_dump()` are read as the dicts they stand for."""
        objects = [Dumped(mapping_of(message)) for message in self.sample]
        whole, other = (_columns(self.format, of) for of in (self.sample, objects))
        for name in _COLUMNS:
            if getattr(whole, name) != getattr(other, name):
                fail("objects", f"{self.where}: {name} is another for objects with model_dump()")

    def check_fit(self) -> None:
        counter = WordCounter(format=self.format)
        total, was = counter.count(self.sample), self._faults_of(self.sample)
        for limit_tokens in sorted({total, total * 2 // 3, total // 3, 1}):
            if limit_tokens < 1:
                continue
            where = f"{self.where}, limit {limit_tokens}"
            try:
                output = fit(self.sample, Budget(limit_tokens), counter=counter, format=self.format).messages
            except BudgetExceededError as error:
                output = [] if error.attempt is None else error.attempt.messages
            except ContextError as error:
                fail("fit", f"{where}: fit() refused it: {error}")
            else:
                if counter.count(output) > limit_tokens:
                    fail("fit", f"{where}: {counter.count(output)} tokens came out")
            new = self._faults_of(output) - was
            if was.keys() & _PAIRS:  # what is said of a broken pair may be another word
                new = Counter({rule: count for rule, count in new.items() if rule in _PAIRS})
            if new:
                fail("fit", f"{where}: violations that the input did not have: {', '.join(sorted(new))}")

    def _faults_of(self, messages: Messages) -> Counter[str]:
        """Count faults by rule; a further result and one without a call are one too many either way."""
        found = validate(messages, format=self.format)
        rules = (one.rule for one in found if one.fault)
        return Counter("orphan_result" if rule == "repeated_result" else rule for rule in rules)


def _columns(format: Format, messages: Sequence[Any], cuts: Sequence[int] | None = None) -> Structure:
    """Scan messages in the pieces between the cuts, the last piece first; without cuts all at once."""
    copied = list(messages)
    structure = Structure(len(copied))
    for start, stop in reversed(list(pairwise((0, len(copied)) if cuts is None else cuts))):
        format.scan(copied, start, stop, structure)
    return structure


# Edits: of each message, and of a conversation as a whole.


def _check_edits(format: Format, sample: list[Any], where: str) -> None:
    structure = _columns(format, sample)
    for index, message in enumerate(sample):
        at, before = f"{where}, message {index}", copy.deepcopy(message)
        _check_pieces(format.pieces(mapping_of(message)), at)
        _check_texts(format, message, at)
        _check_parts(format, message, structure.parts_of(index), at)
        _check_calls(format, sample, index, structure.calls.get(index, ()), at)
        if not isinstance(format.transcript(mapping_of(message)), str):
            fail("makes", f"{at}: transcript() gave no text")
        if type(format.matches(mapping_of(message))) is not bool:
            fail("makes", f"{at}: matches() gave no bool")
        if message != before:
            fail("input_unchanged", f"{at}: was changed by an edit")


def _check_pieces(pieces: Any, where: str) -> None:
    """Check that what is charged for is text, and media apart."""
    if not isinstance(pieces, Pieces):
        fail("pieces", f"{where}: pieces() gave {type(pieces).__name__}, not Pieces")
    texts = [*pieces.texts, *pieces.other, *(text for call in pieces.calls for text in call)]
    wrong = [text for text in texts if not isinstance(text, str)]
    if wrong:
        fail("pieces", f"{where}: {wrong[0]!r:.80} is no text")
    data = [one.data for one in pieces.media if one.data and len(one.data) > 60]
    if any(one in text for one in data for text in texts):
        fail("pieces", f"{where}: the data of a medium is among the texts, and would be counted as text")


def _check_texts(format: Format, message: Any, where: str) -> None:
    """Check that each text that may be shortened can be, alone, and that it is charged for."""
    slots, before = format.texts(mapping_of(message)), copy.deepcopy(message)
    for slot in slots:
        if not isinstance(slot, TextSlot) or not isinstance(slot.text, str):
            fail("texts", f"{where}: {slot!r:.80} is no TextSlot")
        changed = format.with_texts(message, {slot.path: _LONG})
        if message != before:
            fail("input_unchanged", f"{where}: with_texts() changed the message it was given")
        new = {one.path: one.text for one in format.texts(mapping_of(changed))}
        old = {one.path: one.text for one in slots}
        if new != {**old, slot.path: _LONG}:
            fail("texts", f"{where}: replacing the text at {slot.path} gave {new!r:.200}")
        pieces = format.pieces(mapping_of(changed))
        if not any("xylophone" in text for text in (*pieces.texts, *pieces.other)):
            fail("texts", f"{where}: the text at {slot.path} may be shortened, and is not charged for")
        if type(changed) is not type(message):
            fail("edits", f"{where}: with_texts() gave a {type(changed).__name__}")
        if format.with_texts(message, {slot.path: slot.text}) != message:
            fail("edits", f"{where}: replacing the text at {slot.path} by itself gave another message")
    if len({slot.path for slot in slots}) != len(slots):
        fail("texts", f"{where}: two texts at one path")


def _check_parts(format: Format, message: Any, parts: set[int], where: str) -> None:
    """Check that parts which may leave one by one do, and the others stay."""
    if format.without_parts(message, ()) != message:
        fail("edits", f"{where}: without_parts() of none gave another message")
    before = _columns(format, [message])
    for part in parts if len(parts) > 1 else ():
        left = _columns(format, [format.without_parts(message, [part])])
        results = [at for _, at in before.answers.get(0, ()) if at != part]
        there = left.answers.get(0, ())
        if len(there) != len(results):  # their ids may go by their place
            stay = f"{len(results)} should stay"
            fail("edits", f"{where}: without part {part} its results are {there!r}; {stay}")
        loose = [at for at in before.loose.get(0, ()) if at != part]
        if results and len(left.loose.get(0, ())) != len(loose):
            fail("edits", f"{where}: without part {part} it has {left.loose.get(0)!r} beside results")


def _check_calls(format: Format, sample: list[Any], index: int, ids: tuple[str, ...], where: str) -> None:
    """Check that calls can be taken out one by one, and all of them."""
    for gone in (*({one} for one in ids), set(ids)) if ids else ():
        changed = list(sample)
        changed[index] = format.without_calls(sample[index], frozenset(gone))
        stay = [one for one in ids if one not in gone]  # calls of one id go together
        if changed[index] is None:
            if stay:
                fail("edits", f"{where}: without {sorted(gone)} nothing remains, but other calls are")
            continue
        there = _columns(format, changed).calls.get(index, ())
        if len(there) != len(stay):
            fail("edits", f"{where}: without {sorted(gone)} it calls {there!r}, before {ids!r}")
    if format.without_calls(sample[index], frozenset({"an id nobody has"})) != sample[index]:
        fail("edits", f"{where}: without_calls() of an id it does not have gave another message")


def _check_redacted(format: Format, sample: list[Any], where: str) -> None:
    plain = [copy.deepcopy(mapping_of(message)) for message in sample]
    made = [format.redact(message) for message in plain]
    for index, message in enumerate(plain):
        at = f"{where}, message {index}"
        if message != mapping_of(sample[index]):
            fail("input_unchanged", f"{at}: was changed by redact()")
        said = {text for text in _texts(format, message) if len(text) > _SHORT}
        left = next((text for text in said if text in str(made[index])), None)
        if left is not None:
            fail("redacted", f"{at}: {left!r:.80} is still said by {made[index]!r:.200}")
    before, after = _ties(format, plain), _ties(format, made)
    if before != after:
        fail("redacted", f"{where}: calls and results are {after!r:.200}, and were {before!r:.200}")


def _ties(format: Format, messages: list[Any]) -> list[tuple[tuple[str, ...], list[str]]]:
    """List what each message calls and answers."""
    found = _columns(format, messages)
    return [
        (found.calls.get(at, ()), [call_id for call_id, _ in found.answers.get(at, ())])
        for at in range(len(messages))
    ]


def _check_made(format: Format) -> None:
    where = f"format {format.name}"
    for role in ("user", "assistant"):
        made = format.message(role, ["one two"])
        if format.kind(made) != role or _texts(format, made) != ["one two"]:
            fail("makes", f"{where}: message({role!r}, ['one two']) is {made!r:.120}")
        if format.kind(mapping_of(format.with_role(format.message("user", ["a"]), role))) != role:
            fail("makes", f"{where}: with_role(…, {role!r}) has another kind")
        other = format.with_text(made, "three")
        if _texts(format, other) != ["three"] or _texts(format, made) != ["one two"]:
            fail("makes", f"{where}: with_text(…, 'three') is {other!r:.120}")
        cached = format.with_cache_control(made, {"type": "ephemeral"})
        if _texts(format, cached) != ["one two"]:
            fail("makes", f"{where}: with_cache_control() is {cached!r:.120}")


def _texts(format: Format, message: Any) -> list[str]:
    entry: Mapping[str, Any] = mapping_of(message)
    return [slot.text for slot in format.texts(dict(entry))]
