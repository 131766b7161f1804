"""Counts that start from what the provider billed for the last request: the usage baseline."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Self, cast

from trimtab.counting.additive import Additive
from trimtab.counting.billed import Billed, key_of_message
from trimtab.counting.bills import Bill, Bills, bounded
from trimtab.counting.checks import counter_name
from trimtab.counting.learned import Learned
from trimtab.counting.sizes import reading
from trimtab.counting.usage import Usage, usage_of
from trimtab.errors import ConfigurationError
from trimtab.formats import Format, detect, get_format, mapping_of

__all__ = ["UsageBaseline"]

_VERSION = 1
"""Of the form of the plain data."""

_SYSTEM_ROLES = ("system", "developer")


class UsageBaseline(Additive):
    """A counter that goes by the provider's own count as far as there is one.

    Made for one conversation. After each answer `record` what was reported for the request: from then on
    the messages of that request have their share of what was billed, and only what is newer is estimated,
    times a factor learned from this conversation's own reports. Without a report it counts as the counter
    inside does.

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

    __slots__ = ("_billed", "_bills", "_counter", "_given", "_lock")

    def __init__(self, counter: Any, /, *, format: str | Format | None = None) -> None:
        """Calibrate a counter.

        Args:
            counter: What estimates; it must count single messages (`count_message`, `fixed_tokens`).
            format: The wire form of the messages. None: told by what is recorded last, as `fit` tells it;
                until then the counter's own.
        """
        if isinstance(counter, type):
            raise ConfigurationError(f"counter={counter.__name__} is a class: pass a counter")
        lacks = [
            name
            for name in ("count_message", "count_text", "fixed_tokens")
            if not callable(getattr(counter, name, None))
        ]
        if lacks:
            raise ConfigurationError(
                f"a usage baseline needs a counter that counts single messages; {counter_name(counter)} has"
                f" no {lacks[0]}(). Pass EstimateCounter(), counter_for(...) or counter_from_text(...)"
            )
        self._given = None if format is None else get_format(format)
        self._format = self._given or get_format(getattr(counter, "format", "openai_chat"))
        self._counter = reading(counter, self._format)
        self._bills = Bills()
        self._billed = Billed()
        self._lock = threading.Lock()
        self.name = counter_name(counter)
        self.exact = False

    def with_format(self, format: str | Format, /) -> Self:
        """Return the same counter, with what was recorded so far, for another wire form."""
        twin = super().with_format(format)
        twin._counter = reading(self._counter, twin._format)
        twin._given = twin._format
        twin._billed = self._billed
        return twin

    def _told(self, form: Format) -> Self:
        twin = self.with_format(form)
        twin._given = None
        return twin

    def _for_one_fit(self) -> Self:
        """Return the counter as it stands, which no later report changes: a fit goes by one set of bills."""
        with self._lock:
            return copy(self)

    def __getstate__(self) -> object:
        """Leave behind the lock, and what was read of the messages that were billed."""
        own, slots = cast("tuple[Any, dict[str, Any]]", super().__getstate__())
        return own, {**slots, "_lock": None, "_billed": Billed()}

    def __setstate__(self, state: tuple[Any, dict[str, Any]]) -> None:
        """Take a lock of its own."""
        own, slots = state
        for name, value in {**(own or {}), **slots, "_lock": threading.Lock()}.items():
            setattr(self, name, value)

    # -- counting

    def count_text(self, text: str, /) -> int:
        """Count a bare text, by what was learned."""
        return self._estimated(self._counter.count_text(text))

    def count_message(self, message: Any, /) -> int:
        """Return the share of a message in what was billed; the estimate of a new one."""
        entry = mapping_of(message)
        bills = self._bills
        if bills.sizes:
            size = bills.sizes.get(key_of_message(entry, self._format))
            if size is not None:
                return size
        return self._estimated(self._counter.count_message(entry), bills)

    def fixed_tokens(
        self, system: Any, tools: Any, /, *, has_system: bool, extra: Mapping[str, Any] | None = None
    ) -> int:
        """Return what the bill leaves for it; what changed since is estimated."""
        counted: int = self._counter.fixed_tokens(system, tools, has_system=has_system, extra=extra)
        bills = self._bills
        return max(0, bills.fixed_tokens + self._estimated(counted - bills.fixed_counted, bills))

    def margin_tokens(self, tokens: int, /) -> int | None:
        """Say how far off a count may be, either way.

        Only the part that was not billed yet may be.

        Args:
            tokens: The count of a whole request.

        Returns:
            Tokens; meant to hold for 95 of 100 requests that go on from the latest bill. Before there is
            a bill, the margin of the counter inside; None if it does not say.
        """
        bills = self._bills
        inside: int | None = getattr(self._counter, "margin_tokens", _unknown)(tokens)
        if not bills.total_tokens:
            return inside
        margin = bills.of_model.margin_tokens(abs(tokens - bills.total_tokens))
        # before a second bill nothing was seen to go wrong: no less is known than without a bill
        return margin if inside is None or bills.of_model.deviations else min(inside, margin)

    def _estimated(self, tokens: int, bills: Bills | None = None) -> int:
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
        """Take in what the provider reported for a request.

        Args:
            request: The messages, or the whole body, exactly as sent.
            usage: What came back: the usage, in the shape of Chat Completions, Responses, Anthropic or
                Gemini; the response that holds it; or the input tokens as a number.
            answer: The message that came back, if it goes into the conversation: its size is reported, too.
            system: System text, where the request is a list and it was sent apart.
            tools: Tool schemas, where the request is a list.
            model: Who answered; what is learned is kept by model, and another model's bills are not used.

        Complexity: O(n) to compare with what was recorded before; only new messages are read and counted.

        Raises:
            ConfigurationError: The usage is none, or the request is no request.
            FormatError: A message cannot be read.
        """
        reported = usage_of(usage)
        if model is not None and not isinstance(model, str):
            raise ConfigurationError(f"model is the name of a model, not {model!r:.80}")
        form = detect(request, model=model) if self._given is None else self._given
        counter = reading(self._counter, form)
        messages, system, tools, extra = _taken_apart(form, request, system, tools)
        first = messages[0].get("role") if messages else None
        fixed: int = counter.fixed_tokens(
            system, tools, has_system=bool(system) or first in _SYSTEM_ROLES, extra=extra
        )
        billed = self._billed.then(messages, form, counter)
        times = Counter(billed.keys)
        back = None if answer is None else key_of_message(mapping_of(answer), form)
        with self._lock:
            self._billed = billed
            self._format, self._counter = form, counter  # as the messages are, for who asks without a fit
            bill = Bill(
                tokens=reported.input_tokens,
                counted=billed.counted,
                times=times,
                fixed_counted=fixed,
            )
            bills = bill.added_to(self._bills, model)
            self._bills = self._with_answer(bills, back, reported)
            self.name = f"{counter_name(self._counter)}, calibrated"

    def _with_answer(self, bills: Bills, key: str | None, reported: Usage) -> Bills:
        # a tokenizer that is right needs no report, which counts without the framing of the next request
        if key is None or getattr(self._counter, "exact", False) or not reported.answer_tokens:
            return bills
        tokens = reported.answer_tokens
        return replace(
            bills,
            total_tokens=bills.total_tokens + tokens,
            sizes=bounded({**bills.sizes, key: tokens}),
            latest=bills.latest | {key},
        )

    # -- plain data

    def to_dict(self) -> dict[str, Any]:
        """Write what was recorded as plain data; no text of a message is in it.

        This is how a baseline is kept; between processes it travels by pickling, too.
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
        """Go on from what was written.

        Args:
            counter: The counter it was made with; no data can keep one.

        Raises:
            ConfigurationError: It is no such data, of another version, or of another counter.
        """
        made = cls(counter, format=format)
        try:
            if format is None:
                made = made._told(get_format(data["format"]))
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
                f"the data is of version {written[0]!r:.20} and counter {written[1]!r:.80}, not of version"
                f" {_VERSION} and {made.name!r}: pass the counter it was made with, or begin anew"
            )
        numbers = (bills.total_tokens, bills.fixed_tokens, bills.fixed_counted, *bills.sizes.values())
        if any(type(one) is not int or one < 0 for one in numbers):
            raise ConfigurationError("a usage baseline holds whole numbers of tokens; this data does not")
        made._bills = bills
        if bills.total_tokens:
            made.name = f"{made.name}, calibrated"
        return made


def _taken_apart(
    form: Format, request: Any, system: Any, tools: Any
) -> tuple[list[dict[str, Any]], Any, Any, Mapping[str, Any] | None]:
    extra = None
    if isinstance(request, Mapping):
        body = form.read_request(request)
        if (system is not None and body.system is not None) or (tools and body.tools):
            raise ConfigurationError("system or tools are given twice: beside the request body and in it")
        system = body.system if system is None else system
        tools, extra = body.tools or tools, body.extra or None
        request = body.messages
    elif isinstance(request, (str, bytes)) or not isinstance(request, Sequence):
        raise ConfigurationError(f"request is a list of messages or a body, not {request!r:.80}")
    messages = [mapping_of(message) for message in request]
    if system is not None and form.rules.system_in_messages:
        parts = [system] if isinstance(system, str) else list(system)
        messages.insert(0, form.message("system", parts))
        system = None
    return messages, system, tools, extra


def _unknown(tokens: int, /) -> None:
    """Say that nobody knows how far off a count may be."""
