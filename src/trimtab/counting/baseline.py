"""Counts that start from what the provider billed for the last request: the usage baseline.

Of a request only messages that are new since the last bill are read. The bill (`usage`) is shared out among
the messages that were billed (`Bill`, `Bills`), and what it says of those that are new teaches a factor for
what is not billed yet, and how far that may be off (`Learned`).
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from math import isqrt
from typing import Any, NamedTuple, Self

from trimtab.counting.base import SYSTEM_ROLES, AdditiveCounter, counter_name
from trimtab.counting.door import as_additive
from trimtab.counting.measurement import read_given
from trimtab.counting.usage import usage_of
from trimtab.errors import ConfigurationError
from trimtab.formats import Format, get_format, mapping_of
from trimtab.formats.values import Dict

_DEEPEST = 64
"""Messages that are nested deeper are read each time."""

_FINAL = frozenset((str, int, float, bool, bytes, type(None)))


class Read(NamedTuple):
    """A message of a bill, as it was when it was read."""

    id: int
    form: Format
    held: object
    """Its content; shares the texts."""
    key: str
    """By content."""
    tokens: int
    """As the counter inside counts it."""


def read_billed(
    messages: Sequence[Dict], form: Format, counter: AdditiveCounter, before: Sequence[Read]
) -> list[Read]:
    """Read the messages of a bill; those of the bill before only if they have changed.

    A conversation is recorded again and again, each time with little that is new. Callers edit messages in
    place, so being the same object says nothing: one counts as read if it is equal to what it was, which
    for texts that are the same objects costs next to nothing. (1 and True are equal, and cost the same.)
    """
    by_id = {read.id: read for read in before}
    found = []
    for at, message in enumerate(messages):
        read = by_id.get(id(message)) or (before[at] if at < len(before) else None)
        if read is None or read.form is not form or read.held != message:
            key = key_of_message(message, form)
            read = Read(id(message), form, _plain_copy(message), key, counter.count_message(message))
        elif read.id != id(message):
            read = read._replace(id=id(message))
        found.append(read)
    return found


def key_of_message(entry: Dict, form: Format) -> str:
    """Key a message by what of it is charged: marks for a cache move, and objects come as dicts."""
    from hashlib import blake2b  # not above: most programs feed back no usage

    pieces = repr(form.pieces(entry)).encode("utf-8", "surrogatepass")
    return blake2b(pieces, digest_size=16).hexdigest()


def _plain_copy(value: object, depth: int = 0) -> object:
    """Copy plain data; what holds other things, or is too deep, is equal to nothing."""
    if type(value) in _FINAL:
        return value
    if depth < _DEEPEST and type(value) is dict:
        return {key: _plain_copy(item, depth + 1) for key, item in value.items()}
    if depth < _DEEPEST and type(value) is list:
        return [_plain_copy(item, depth + 1) for item in value]
    return object()


# All of these were chosen on half of the recorded calls (by hash), 2026-11-22: pi_coding_sessions and the
# conversations of golden_usage that go on. Between half and twice of each the median error moves by less
# than 0.5 % of the new part; the table of `make accuracy` is of the other half.
_PRIOR_TOKENS = 200
"""The weight of the counter itself: as if it had been right about this many tokens."""
_MOST_TOKENS = 1_024
"""Maximum weight of one report, so one long file does not decide alone."""
_FADES = (31, 32)
"""Share of the weight of older reports that remains after each new one: the kind of text changes."""
_WIDEST = 4
"""What is more than so many times off is no matter of a factor: something else came in or went."""
_UNITS = 1_000
"""Deviations are stored in thousandths."""
_KEPT = 16
"""Number of deviations that are remembered."""
LEAST_TOKENS, _PARTS = 16, 10
"""What a new part is off by if all is well: framing that nobody tells of, and a tenth."""
_COLD, _SAFETY = 2_000, (5, 4)
"""How many times that is allowed for before anything is known, and above the worst seen since."""
_MOST = 9_000
"""Allowed for at most: a margin grows slower than what it is of, or a budget had no largest count."""

_FEW, _SURPRISE = 4, 2
"""Of more deviations than so few the worst counts as so many times the next at most: once is no rule."""
_LARGEST_PART = 4
"""A margin is at most such a part of the whole count: what was billed once is known better than that."""


class Factor(NamedTuple):
    """How many tokens a provider bills for those that were counted."""

    reported_tokens: int
    counted_tokens: int

    def of(self, tokens: int, /) -> int:
        """Multiply, rounded up.

        Example:
            >>> Factor(11, 9).of(10)
            13
        """
        return -(-tokens * self.reported_tokens // self.counted_tokens)


class FactorCounter(AdditiveCounter):
    """A counter that multiplies the counts of another counter by a factor, to the nearest token.

    Subclasses define the public methods, because Python's errors name the class in which a method is defined.

    Args:
        counter: Whose counts are corrected.
        factor: Billed tokens a counted one.
    """

    def __init__(self, counter: AdditiveCounter, factor: Factor, /) -> None:
        self._counter, self._format = counter, counter.format
        self._factor = factor

    def _with_counter(self, counter: AdditiveCounter) -> Self:
        if counter is self._counter:
            return self
        twin = copy(self)
        twin._counter, twin._format = counter, counter.format
        return twin

    def _correct(self, tokens: int) -> int:
        billed, counted = self._factor
        return tokens if billed == counted else nearest(tokens * billed, counted)


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """What was learned from the reports of one model in one conversation."""

    counted_tokens: int = 0
    """Tokens the counter gave for what was new, older reports faded."""
    reported_tokens: int = 0
    """The provider's count of the same."""
    deviations: tuple[int, ...] = ()
    """How far off the latest predictions were, in thousandths of what is usual."""

    @property
    def factor(self) -> Factor:
        """The factor for an estimate."""
        return Factor(_PRIOR_TOKENS + self.reported_tokens, _PRIOR_TOKENS + self.counted_tokens)

    def believable(self, counted_tokens: int, reported_tokens: int, /) -> bool:
        """Tell whether a factor can be behind two numbers."""
        return counted_tokens <= _WIDEST * reported_tokens and reported_tokens <= _WIDEST * counted_tokens

    def with_report(self, counted_tokens: int, reported_tokens: int, /) -> Learned:
        """Record a provider's count of something that the counter had counted."""
        if counted_tokens <= 0 or not self.believable(counted_tokens, reported_tokens):
            return self
        weight = min(counted_tokens, _MOST_TOKENS)
        return replace(
            self,
            counted_tokens=_part(self.counted_tokens, _FADES) + weight,
            reported_tokens=_part(self.reported_tokens, _FADES) + weight * reported_tokens // counted_tokens,
        )

    def with_first_report(
        self, counted_tokens: int, reported_tokens: int, *, messages_tokens: int
    ) -> Learned:
        """Take in the first bill of a conversation, which may hold what nobody counted.

        It weighs as much as its messages do: tools and system text say little of other texts.

        Of one that is higher a factor is believed by half (its root), the rest may be an unseen prompt: were
        that taken for a factor, messages that leave would seem to free more than they do; were a factor
        taken for a prompt, nothing that leaves would seem to free enough.
        """
        if not self.believable(counted_tokens, reported_tokens):
            return self
        believed = min(reported_tokens, isqrt(counted_tokens * reported_tokens))
        return self.with_report(messages_tokens, messages_tokens * believed // max(1, counted_tokens))

    def with_deviation(self, part_tokens: int, off_tokens: int, /) -> Learned:
        """Record how far off a prediction of a new part was."""
        seen = (*self.deviations, _UNITS * off_tokens // _usual(part_tokens))
        return replace(self, deviations=seen[-_KEPT:])

    def margin_tokens(self, part_tokens: int, /) -> int:
        """Return how far off the next prediction of a part may be."""
        worst = max(_UNITS, _part(self._worst, _SAFETY)) if self.deviations else _COLD
        return -(-_usual(part_tokens) * min(worst, _MOST) // _UNITS)

    @property
    def _worst(self) -> int:
        """The worst deviation; one that stands alone, as that of a picture does, is no rule for texts."""
        *others, worst = sorted(self.deviations)
        return worst if len(others) < _FEW else min(worst, _SURPRISE * max(_UNITS, others[-1]))

    def margin_of_request(self, tokens: int, billed_tokens: int, inside: int | None, /) -> int | None:
        """Say how far off the count of a whole request may be.

        Args:
            tokens: The count.
            billed_tokens: The latest bill, which the request goes on from; 0: there is none.
            inside: What the counter that estimates says; None if it does not.
        """
        if not billed_tokens:
            return inside
        margin = self.margin_tokens(abs(tokens - billed_tokens))
        margin = min(margin, LEAST_TOKENS + tokens // _LARGEST_PART)
        # before a second bill nothing was seen to go wrong: no less is known than without a bill
        return margin if inside is None or self.deviations else min(inside, margin)

    def to_dict(self) -> dict[str, Any]:
        """Write it as plain data."""
        return {
            "counted_tokens": self.counted_tokens,
            "reported_tokens": self.reported_tokens,
            "deviations": list(self.deviations),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], /) -> Learned:
        """Read plain data.

        Raises:
            ConfigurationError: It is none that `to_dict` wrote.
        """
        try:
            numbers = {key: data[key] for key in ("counted_tokens", "reported_tokens")}
            found = cls(**numbers, deviations=tuple(data["deviations"]))
            values = (found.counted_tokens, found.reported_tokens, *found.deviations)
        except (KeyError, TypeError) as error:
            raise ConfigurationError(f"data learned from usage cannot be read: {error}") from error
        if any(type(value) is not int or value < 0 for value in values):
            raise ConfigurationError(f"data learned from usage must be whole numbers, not {data!r:.80}")
        return found


NOTHING_LEARNED = Learned()


def _part(tokens: int, part: tuple[int, int]) -> int:
    return tokens * part[0] // part[1]


def _usual(part_tokens: int) -> int:
    return LEAST_TOKENS + part_tokens // _PARTS


_MOST_SIZES = 65_536
"""Messages whose share of a bill is remembered; about 150 bytes each."""

_NARROW = (4, 5)
"""How far shares of earlier bills are moved at most, when a later bill of other messages demands it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bills:
    """What the bills so far say; replaced as a whole, so that no thread sees half of one."""

    model: str | None = None
    total_tokens: int = 0
    """Input of the latest bill and, if known, the answer to it; 0: there is no bill."""
    fixed_tokens: int = 0
    """The part of the latest bill that is not for the messages."""
    fixed_counted: int = 0
    """The counter's count of the same."""
    sizes: dict[str, int] = field(default_factory=dict)
    """Tokens of messages by content; never changed once it is here."""
    latest: frozenset[str] = frozenset()
    """The messages of the latest bill."""
    learned: Mapping[str, Learned] = field(default_factory=dict)
    """By model; "" if none was named."""

    @property
    def of_model(self) -> Learned:
        """What was learned of the current model."""
        return self.learned.get(self.model or "", NOTHING_LEARNED)

    def with_answer(self, key: str, tokens: int) -> Bills:
        """Record the provider's count of its answer."""
        sizes, latest = newest({**self.sizes, key: tokens}), self.latest | {key}
        return replace(self, total_tokens=self.total_tokens + tokens, sizes=sizes, latest=latest)


@dataclass(slots=True, kw_only=True)
class Bill:
    """One bill, to be divided among what was billed."""

    tokens: int
    counted: dict[str, int]
    """Tokens the counter gives for each message, by content."""
    times: dict[str, int]
    """How often each content is in the request."""
    fixed_counted: int

    def added_to(self, bills: Bills, model: str | None) -> Bills:
        """Divide it: new messages get what earlier bills do not explain, and the fixed part gets the rest."""
        if model != bills.model:
            bills = Bills(model=model, learned=bills.learned)
        learned = bills.of_model
        if bills.total_tokens:
            learned, sizes = self._after(bills, learned)
        else:
            part = self._sum(self.counted)
            learned = learned.with_first_report(self.fixed_counted + part, self.tokens, messages_tokens=part)
            sizes = {key: learned.factor.of(size) for key, size in self.counted.items()}
        whole = self._sum(sizes)
        if whole > self.tokens:
            # rounded down: no more than it
            sizes = {key: size * self.tokens // whole for key, size in sizes.items()}
        return Bills(
            model=model,
            total_tokens=self.tokens,
            fixed_tokens=self.tokens - self._sum(sizes),
            fixed_counted=self.fixed_counted,
            sizes=newest({**bills.sizes, **sizes}),
            latest=frozenset(sizes),
            learned={**bills.learned, model or "": learned},
        )

    def _after(self, bills: Bills, learned: Learned) -> tuple[Learned, dict[str, int]]:
        """Divide it if there are earlier bills; learn from it if it continues the latest."""
        factor = learned.factor
        known = {key: bills.sizes[key] for key in self.counted if key in bills.sizes}
        new = {key: size for key, size in self.counted.items() if key not in known}
        estimated = {key: factor.of(size) for key, size in new.items()}
        fixed = max(0, bills.fixed_tokens + factor.of(self.fixed_counted - bills.fixed_counted))
        left, counted = self.tokens - fixed - self._sum(known), self._sum(new)
        part = self._sum(estimated)
        goes_on = bills.latest <= self.counted.keys()
        if goes_on:
            learned = learned.with_deviation(part, abs(left - part))
        if goes_on and counted and learned.believable(counted, left):
            shares = {key: nearest(size * left, counted) for key, size in new.items()}
            return learned.with_report(counted, left), {**known, **shares}
        sizes = {**known, **estimated}
        whole = self._sum(sizes)
        if goes_on or not whole:
            return learned, sizes  # something else came in or went: the fixed part takes it
        # Shares move towards the bill, not far: what went with other messages may be behind the difference.
        low, high = _NARROW
        to = min(max(self.tokens - fixed, whole * low // high), whole * high // low)
        return learned, {key: nearest(size * to, whole) for key, size in sizes.items()}

    def _sum(self, sizes: Mapping[str, int]) -> int:
        return sum(size * self.times[key] for key, size in sizes.items())


def nearest(tokens: int, by: int) -> int:
    """Divide to the nearest: rounded down, each bill would move tokens to the fixed part for good."""
    return (2 * tokens + by) // (2 * by)


def newest(sizes: dict[str, int]) -> dict[str, int]:
    """Forget the oldest records if there are too many."""
    too_many = len(sizes) - _MOST_SIZES
    return dict(list(sizes.items())[too_many:]) if too_many > 0 else sizes


_VERSION = 1
"""Version of the form of the plain data."""


class UsageBaseline(AdditiveCounter):
    """A counter that uses the provider's own counts as far as there are any.

    Each baseline is for one conversation. After each answer, `record` the usage of the request. From then on,
    the messages of that request have their share of the bill, and only newer messages are estimated, times a
    factor learned from this conversation's reports. Without a report it counts as the counter inside does.

    Raises:
        ConfigurationError: The counter counts whole lists only, or is a class.

    Example:
        >>> from trimtab import EstimateCounter, fit
        >>> baseline = UsageBaseline(EstimateCounter())
        >>> messages = [{"role": "user", "content": "What is a token?"}]
        >>> baseline.count(messages)
        14
        >>> baseline.record(messages, {"input_tokens": 12, "output_tokens": 30})
        >>> baseline.count(messages)
        12
    """

    def __init__(self, counter: Any, /, *, format: str | Format | None = None) -> None:
        """Calibrate a counter.

        Args:
            counter: The counter that estimates; it must count single messages (`count_message`,
                `fixed_tokens`).
            format: The wire form of the messages. None: decided by the latest recorded request, as `fit`
                decides; until then the counter's own.
        """
        inside = as_additive(counter)
        self._given = None if format is None else get_format(format)
        self._format = self._given or inside.format
        self._counter = inside.with_format(self._format)
        self._bills = Bills()
        self._billed: list[Read] = []
        self._lock = threading.Lock()
        self.name = counter_name(inside)

    def with_format(self, format: str | Format, /) -> Self:
        """Return the same counter, with everything recorded, for another wire form."""
        twin = copy(self)
        twin._given = twin._format = get_format(format)
        twin._counter = self._counter.with_format(twin._format)
        return twin

    def charge_as(self, format: str | Format, /) -> Self:
        """Return the same counter for messages sent in another wire form."""
        twin = copy(self)
        twin._counter = self._counter.charge_as(format)
        return twin

    def snapshot(self) -> Self:
        """Return the counter in its present state, which later reports do not change."""
        with self._lock:
            return copy(self)

    def __getstate__(self) -> dict[str, Any]:
        """Leave behind the lock, and what was read of the messages that were billed."""
        return {**self.__dict__, "_lock": None, "_billed": []}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Create its own lock."""
        self.__dict__.update(state, _lock=threading.Lock())

    # -- counting

    def count_text(self, text: str, /) -> int:
        """Count a bare text with the learned factor."""
        return self._estimate(self._counter.count_text(text))

    def count_message(self, message: Any, /) -> int:
        """Return the share of a message in the bill; for a new message, the estimate."""
        entry = mapping_of(message)
        bills = self._bills
        if bills.sizes:
            size = bills.sizes.get(key_of_message(entry, self._format))
            if size is not None:
                return size
        return self._estimate(self._counter.count_message(entry), bills)

    def fixed_tokens(
        self, system: Any, tools: Any, /, *, has_system: bool, extra: Mapping[str, Any] | None = None
    ) -> int:
        """Return the fixed part of the bill; what changed since then is estimated."""
        counted = self._counter.fixed_tokens(system, tools, has_system=has_system, extra=extra)
        bills = self._bills
        return max(0, bills.fixed_tokens + self._estimate(counted - bills.fixed_counted, bills))

    def margin_tokens(self, tokens: int, /) -> int | None:
        """Say how far the bill may be above a count.

        Only the part that was not billed yet may be off.

        Args:
            tokens: The count of a whole request.

        Returns:
            Tokens, enough for about 95 of 100 requests that continue from the latest bill. Before the first
            bill, it is the margin of the counter inside; None if that gives none.
        """
        bills = self._bills
        return bills.of_model.margin_of_request(
            tokens, bills.total_tokens, self._counter.margin_tokens(tokens)
        )

    def over_margin_tokens(self, tokens: int, /) -> int | None:
        """Say how far the bill may be below a count; after a bill, as far as above.

        Args:
            tokens: The count of a whole request.
        """
        bills = self._bills
        return bills.of_model.margin_of_request(
            tokens, bills.total_tokens, self._counter.over_margin_tokens(tokens)
        )

    def _estimate(self, tokens: int, bills: Bills | None = None) -> int:
        bills = self._bills if bills is None else bills
        return bills.of_model.factor.of(tokens) if bills.total_tokens else tokens

    # -- what the provider said

    def record(
        self,
        request: Any,
        usage: Any,
        /,
        *,
        answer: Any = None,
        system: Any = None,
        tools: Any = None,
        model: str | None = None,
    ) -> None:
        """Record the usage that the provider reported for a request.

        Args:
            request: The messages, or the whole body, exactly as sent.
            usage: What came back: the usage, in the shape of Chat Completions, Responses, Anthropic, Gemini,
                Converse, Ollama or Cohere; the response that contains it; or the input tokens as a number.
            answer: The returned message, if it becomes part of the conversation: its size was reported, too.
            system: System text, if the request is a list and system text was sent separately.
            tools: Tool schemas, if the request is a list.
            model: The model that answered; factors are learned per model, and another model's bills are not
                used.

        Complexity: O(n) to compare with earlier requests; only new messages are read and counted.

        Raises:
            UsageError: The usage is not for the messages that were sent: the server compacted them first.
            ConfigurationError: The usage or the request has another shape.
            FormatError: A message cannot be read.
        """
        reported = usage_of(usage)
        if model is not None and not isinstance(model, str):
            raise ConfigurationError(
                f"model must be the name of a model, not {model!r:.80}", argument="model"
            )
        form, messages, beside, body = read_given(
            request, format=self._given or "auto", model=model, system=system, tools=tools
        )
        if body is not None and ((system is not None and body.system is not None) or (tools and body.tools)):
            raise ConfigurationError(
                "system or tools are passed twice: next to the request body and in it", argument="system"
            )
        counter = self._counter.with_format(form)
        has_system = bool(beside.system or (messages and messages[0].get("role") in SYSTEM_ROLES))
        fixed = counter.fixed_tokens(beside.system, beside.tools, has_system=has_system, extra=beside.extra)
        unread = form.unread(messages)
        charged = [message for at, message in enumerate(messages) if at not in unread]
        billed = read_billed(charged, form, counter, self._billed)
        bill = Bill(
            tokens=reported.input_tokens,
            counted={read.key: read.tokens for read in billed},
            times=Counter(read.key for read in billed),
            fixed_counted=fixed,
        )
        back = None if answer is None else key_of_message(mapping_of(answer), form)
        with self._lock:
            self._billed = billed
            self._format, self._counter = form, counter  # as the messages are, for who asks without a fit
            self._bills = bill.added_to(self._bills, model)
            # a tokenizer that is right needs no report, which counts without the framing of the next request
            if back is not None and reported.answer_tokens and not counter.exact:
                self._bills = self._bills.with_answer(back, reported.answer_tokens)
            self.name = f"{counter_name(counter)}, calibrated"

    # -- plain data

    def to_dict(self) -> dict[str, Any]:
        """Return everything recorded as plain data, without any text of a message.

        Use it to store a baseline; a baseline can also be pickled.
        """
        bills = self._bills
        return {
            "version": _VERSION,
            "counter": counter_name(self._counter),
            "format": self._format.name,
            "model": bills.model,
            "total_tokens": bills.total_tokens,
            "fixed_tokens": bills.fixed_tokens,
            "fixed_counted": bills.fixed_counted,
            "sizes": dict(bills.sizes),
            "latest": sorted(bills.latest),
            "learned": {name: one.to_dict() for name, one in bills.learned.items()},
        }

    @classmethod
    def from_dict(
        cls, data: Mapping[str, Any], /, *, counter: Any, format: str | Format | None = None
    ) -> Self:
        """Continue from stored data.

        Args:
            data: What `to_dict` returned.
            counter: The counter the baseline was made with; data cannot store one.
            format: The wire form, or its name; None: the one in the data.

        Raises:
            ConfigurationError: The data is not a baseline, or is of another version or counter.
        """
        made = cls(counter, format=format)
        try:
            if format is None:
                made = made.with_format(data["format"])
                made._given = None  # what is recorded next may be in another
            written = (data["version"], data["counter"])
            bills = Bills(
                model=data["model"],
                total_tokens=data["total_tokens"],
                fixed_tokens=data["fixed_tokens"],
                fixed_counted=data["fixed_counted"],
                sizes=dict(data["sizes"]),
                latest=frozenset(data["latest"]),
                learned={name: Learned.from_dict(one) for name, one in data["learned"].items()},
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ConfigurationError(f"a usage baseline cannot be read from {data!r:.80}: {error}") from error
        if written != (_VERSION, made.name):
            raise ConfigurationError(
                f"the data has version {written[0]!r:.20} and counter {written[1]!r:.80}, not version"
                f" {_VERSION} and counter {made.name!r}: pass the counter it was made with, or start over"
            )
        numbers = (bills.total_tokens, bills.fixed_tokens, bills.fixed_counted, *bills.sizes.values())
        if any(type(one) is not int or one < 0 for one in numbers):
            raise ConfigurationError("a usage baseline has whole numbers of tokens; this data does not")
        made._bills = bills
        if bills.total_tokens:
            made.name = f"{made.name}, calibrated"
        return made
