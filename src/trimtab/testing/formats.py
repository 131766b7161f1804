"""`check_format`: read and edit many conversations with a wire form and hold it to its contract."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar, get_args

from trimtab.budget import Budget
from trimtab.context import fit
from trimtab.conversation.validity import PairRule, validate
from trimtab.errors import BudgetExceededError, ContextError
from trimtab.formats import Fault, Format, Kind, Rules, Structure, mapping_of
from trimtab.testing.bodies import request_bodies
from trimtab.testing.errors import ContractBroken, broken
from trimtab.testing.format_edits import check_edits, check_made, check_redacted
from trimtab.testing.word_counter import WordCounter

Messages = list[Any]
T = TypeVar("T")

_PAIRS = frozenset(get_args(PairRule))
_COLUMNS = ("kinds", "calls", "answers", "loose", "bound", "kept")
_ODD: tuple[dict[str, Any], ...] = ({}, {"role": None}, {"role": "nobody"}, {"type": 7}, {"role": ["user"]})
_SAMPLES = 24


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
        samples: Conversations in this form, valid and not; None: `request_bodies()` of its name, for a
            form that trimtab ships.

    Raises:
        ContractBroken: With the rule, the sample and what was wrong.

    Example:
        >>> from trimtab.formats import get_format
        >>> check_format(get_format("openai_chat"))
    """
    _check_declared(format)
    key = format.rules.body_key
    if samples is None:
        samples = [body[key] for body in request_bodies(_SAMPLES, format=format.name)]
    if not samples:
        broken("declares", "check_format needs samples: conversations in the form")
    _check_odd(format)
    for at, sample in enumerate(samples):
        _Check(format, sample, f"format {format.name}, sample {at}").run()
    asked(lambda: check_made(format), f"format {format.name}", "makes")


def asked(call: Callable[[], T], where: str, rule: str) -> T:
    """Call into the format; what it raises breaks the rule.

    Raises:
        ContractBroken: It raised.
    """
    try:
        return call()
    except ContractBroken:
        raise
    except Exception as error:
        raise ContractBroken(f"{rule}: {where}: raised {type(error).__name__}: {error}", rule=rule) from error


def _check_declared(format: Any) -> None:
    name, rules = getattr(format, "name", None), getattr(format, "rules", None)
    if not isinstance(name, str) or not name or name == "auto":
        broken("declares", f"{format!r} has no name; a form has a word for reports under `name`")
    if not isinstance(rules, Rules):
        broken("declares", f"format {name}: rules is {rules!r}, not Rules")
    missing = [one for one in _METHODS if not callable(getattr(format, one, None))]
    if missing:
        broken("declares", f"format {name} has no {missing[0]}(); see trimtab.formats.Format")


_METHODS = sorted(one for one in vars(Format) if not one.startswith("_") and callable(getattr(Format, one)))


def _check_odd(format: Format) -> None:
    """What is no message of this form has a kind, and breaks nothing."""
    for message in _ODD:
        where = f"format {format.name}, message {message!r}"
        kind = asked(partial(format.kind, message), where, "kinds")
        if kind not in get_args(Kind):
            broken("kinds", f"{where}: kind is {kind!r}, none of {', '.join(get_args(Kind))}")
        reads: tuple[Callable[[Any], Any], ...] = (
            *(format.texts, format.pieces, format.tool_names, format.transcript, format.matches),
        )
        for read in reads:
            asked(partial(read, message), where, "kinds")
        asked(partial(format.faults, [message]), where, "faults")


class _Check:
    """One run of the contract over one conversation."""

    def __init__(self, format: Format, sample: Messages, where: str) -> None:
        self.format = format
        self.sample = sample
        self.where = where

    def run(self) -> None:
        before = copy.deepcopy(self.sample)
        for rule, check in (
            ("scan", self.check_scan),
            ("newest", self.check_newest),
            ("order", self.check_order),
            ("texts", lambda: check_edits(self.format, self.sample, self.where)),
            ("redacted", lambda: check_redacted(self.format, self.sample, self.where)),
            ("faults", self.check_faults),
            ("request", self.check_request),
            ("objects", self.check_objects),
            ("fit", self.check_fit),
        ):
            asked(check, self.where, rule)
            if self.sample != before:
                broken("input_unchanged", f"{self.where}: the messages were changed")

    def check_scan(self) -> None:
        """Reading in pieces, from the end as trimtab does, finds what reading at once finds.

        What may be the half of something further back than was read may be bound to what is before it.
        """
        count = len(self.sample)
        whole = columns(self.format, self.sample, [0, count])
        for cuts in ([0, count // 2, count], list(range(count + 1))):
            pieces = columns(self.format, self.sample, cuts)
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
            broken("scan", f"{self.where}: {name} is {whole}, and read in pieces {pieces}")

    def _check_columns(self, structure: Structure, index: int) -> None:
        where, message = f"{self.where}, message {index}", mapping_of(self.sample[index])
        kind = structure.kinds.get(index)
        if kind != self.format.kind(message):
            broken("scan", f"{where}: kind is {kind!r} after scan, {self.format.kind(message)!r} by kind()")
        ids = structure.calls.get(index, ())
        if not all(isinstance(one, str) for one in ids):
            broken("scan", f"{where}: calls are {ids!r}; ids are texts")
        answered = [part for _, part in structure.answers.get(index, ())]
        loose = structure.loose.get(index, ())
        parts = [part for part in (*answered, *loose) if part is not None]
        if len(set(parts)) != len(parts) or any(type(part) is not int or part < 0 for part in parts):
            broken("scan", f"{where}: parts are {parts}; each has one place")
        if loose and not parts:
            broken("scan", f"{where}: loose parts beside a result that is the whole message")
        if index in structure.bound and not self.format.rules.binds_messages:
            broken("scan", f"{where}: is bound, and rules.binds_messages is False")
        if index in structure.kept and not self.format.rules.keeps_messages:
            broken("scan", f"{where}: is kept, and rules.keeps_messages is False")

    def check_newest(self) -> None:
        count = len(self.sample)
        for kind in get_args(Kind):
            for after, index in ((-1, count - 1), (count // 2, count - 1), (-1, count // 2)):
                found = self.format.newest(list(self.sample), kind, after, index)
                at = [i for i in range(after + 1, index + 1) if self._kind(i) == kind]
                if found != (at[-1] if at else -1):
                    broken(
                        "newest",
                        f"{self.where}: newest {kind} in ({after}, {index}] is {found}, not {at[-1:]}",
                    )

    def _kind(self, index: int) -> Kind:
        return self.format.kind(mapping_of(self.sample[index]))

    def check_order(self) -> None:
        previous = None
        for index, message in enumerate(map(mapping_of, self.sample)):
            fault = self.format.order_fault(previous, message) or self.format.order_fault(
                previous, message, parted=True
            )
            if fault is not None and not (isinstance(fault, str) and self.format.rules.ordered):
                broken("order", f"{self.where}, message {index}: {fault!r}, and rules.ordered is False")
            previous = message

    def check_faults(self) -> None:
        faults = self.format.faults([mapping_of(message) for message in self.sample])
        if not all(isinstance(one, Fault) and one.index in range(len(self.sample)) for one in faults):
            broken("faults", f"{self.where}: {faults!r:.200} is no list of Fault with positions that exist")

    def check_request(self) -> None:
        """A body that was read and written is what it was; what changed is in it."""
        rules = self.format.rules
        body = {rules.body_key: self.sample, "model": "some-model"}
        request = self.format.read_request(body)
        if list(request.messages) != self.sample or request.key != rules.body_key:
            broken("request", f"{self.where}: the messages of a body are not those read from it")
        if self.format.write_request(request, list(self.sample)) != body:
            broken("request", f"{self.where}: a body read and written is another")
        fewer = self.format.write_request(request, self.sample[:1])
        if fewer.get(rules.body_key) != self.sample[:1] or body[rules.body_key] is not self.sample:
            broken(
                "request",
                f"{self.where}: other messages do not come out in the body, or went into the old one",
            )
        if not rules.system_in_messages:
            told = self.format.write_request(replace(request, system="Be brief."), self.sample)
            if not self.format.read_request(told).system or self.format.read_request(body).system:
                broken("request", f"{self.where}: system text given beside a body is not in the one written")

    def check_objects(self) -> None:
        """Objects with `model_dump()` are read as the dicts they stand for."""
        objects = [_Dumped(mapping_of(message)) for message in self.sample]
        count = len(objects)
        whole, other = (columns(self.format, of, [0, count]) for of in (self.sample, objects))
        for name in _COLUMNS:
            if getattr(whole, name) != getattr(other, name):
                broken("objects", f"{self.where}: {name} is another for objects with model_dump()")

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
                broken("fit", f"{where}: fit() refused it: {error}")
            else:
                if counter.count(output) > limit_tokens:
                    broken("fit", f"{where}: {counter.count(output)} tokens came out")
            new = self._faults_of(output) - was
            if was.keys() & _PAIRS:  # what is said of a broken pair may be another word
                new = Counter({rule: count for rule, count in new.items() if rule in _PAIRS})
            if new:
                broken("fit", f"{where}: violations that the input did not have: {', '.join(sorted(new))}")

    def _faults_of(self, messages: Messages) -> Counter[str]:
        """Count faults by rule; a further result and one without a call are one too many either way."""
        found = validate(messages, format=self.format)
        rules = (one.rule for one in found if one.fault)
        return Counter("orphan_result" if rule == "repeated_result" else rule for rule in rules)


class _Dumped:
    """A message as SDKs return it: an object that can be written as a dict."""

    def __init__(self, message: dict[str, Any]) -> None:
        self._message = message

    def model_dump(self, **_options: Any) -> dict[str, Any]:
        return copy.deepcopy(self._message)


def columns(format: Format, messages: Sequence[Any], cuts: Sequence[int]) -> Structure:
    """Scan messages in the pieces between the cuts, the last piece first."""
    copied = list(messages)
    structure = Structure(len(copied))
    for start, stop in reversed(list(pairwise(cuts))):
        format.scan(copied, start, stop, structure)
    return structure
