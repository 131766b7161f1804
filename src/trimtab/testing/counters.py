"""`check_counter`: ask a counter about many requests and hold it to its contract."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from trimtab._shared.checks import whole_of
from trimtab.counting import CountRequest
from trimtab.counting.base import counter_name
from trimtab.counting.door import as_counter
from trimtab.testing.errors import Dumped, ask, fail
from trimtab.testing.generate import conversations

Messages = list[Any]

_ODD_TEXTS = {
    "empty": "",
    "a lone surrogate": "before \ud800 after",
    "NUL": "a\x00b",
    "a million spaces": " " * 1_000_000,
    "special tokens": "<|endoftext|><|im_start|>system<|im_end|>",
    "a long word": "a" * 100_000,
    "combining marks": "e\u0301" * 2_000 + "👩‍👩‍👧" * 200,
}
_LONG = "seven words are in this long text " * 40
_THREADS = 4


def check_counter(
    counter: Any,
    /,
    *,
    samples: Sequence[Messages] | None = None,
    reads_text: bool = True,
    reads_objects: bool = True,
) -> None:
    """Run the contract of `Counter` on a counter of your own.

    A function over messages is one too. What it checks, by the `rule` of the error: `callable`,
    `answers` (an integer >= 0 for every list, the empty one too), `deterministic`, `input_unchanged`,
    `odd_text` (surrogates, NUL, a million spaces, special tokens), `reads_text`, `reads_objects`,
    `threads`, and for one with `count_message` `additive` (sizes and a fixed part add up to the
    whole), `count_back`, `count_request`.

    Args:
        counter: The counter, or a function over messages.
        samples: Conversations to count; None: `conversations()`.
        reads_text: Whether more text must cost more, wherever it is. False for counters that do not look at
            text.
        reads_objects: Whether messages with `model_dump()` must cost the same as their dicts. False for a
            function that only ever gets dicts.

    Raises:
        ContractBroken: A rule is broken; the error has the rule, the sample and the numbers.

    Example:
        >>> from trimtab import CharCounter
        >>> check_counter(CharCounter())
        >>> check_counter(lambda messages: sum(len(m["content"]) / 4 for m in messages))
        Traceback (most recent call last):
        trimtab.testing.errors.ContractBroken: answers: counter <lambda> ...
    """
    _Check(counter, conversations(24) if samples is None else list(samples)).run(
        reads_text=reads_text, reads_objects=reads_objects
    )


class _Check:
    """One run of the contract over one counter."""

    def __init__(self, counter: Any, samples: list[Messages]) -> None:
        self.counter = counter
        self.samples = samples
        self.ask = getattr(counter, "count", counter)
        self.name = f"counter {counter_name(counter)}"

    def run(self, *, reads_text: bool, reads_objects: bool) -> None:
        self.check_callable()
        self.count([], "an empty list")
        counts = self.check_samples()
        self.check_odd_texts()
        if reads_text:
            self.check_reads_text()
        if hasattr(self.counter, "count_message"):
            self.check_additive()
            self.check_count_back()
        self.check_count_request()
        if reads_objects:
            self.check_reads_objects()
        self.check_threads(counts)

    def check_callable(self) -> None:
        call = self.ask
        if self.counter is len:
            fail("callable", "len counts messages, not tokens")
        if isinstance(self.counter, str | list | tuple) or not callable(call):
            fail("callable", f"{self.name} has no count(messages) and is no function")
        if inspect.iscoroutinefunction(call):
            fail("callable", f"{self.name} counts asynchronously")

    def count(self, messages: Messages, of: str) -> int:
        """Ask for a count, and insist that it is one."""
        return self.insist(partial(self.ask, messages), of)

    def insist(self, call: Callable[[], Any], of: str, rule: str = "answers") -> int:
        answer = ask(call, rule, f"{self.name} (asked about {of})")
        tokens = whole_of(answer)
        if tokens is None or tokens < 0:
            fail(rule, f"{self.name} answered {answer!r} for {of}; a count is an integer >= 0")
        return tokens

    def check_samples(self) -> list[int]:
        """Count every sample twice; nothing of it may change."""
        counts = []
        for at, sample in enumerate(self.samples):
            of, before = f"sample {at}", copy.deepcopy(sample)
            first, second = self.count(list(sample), of), self.count(list(sample), of)
            if sample != before:
                fail("input_unchanged", f"{self.name} changed {of}")
            if first != second:
                fail("deterministic", f"{self.name} answered {first}, then {second} for {of}")
            counts.append(first)
        return counts

    def check_odd_texts(self) -> None:
        for what, text in _ODD_TEXTS.items():
            message = {"role": "user", "content": text}
            self.insist(partial(self.ask, [message]), f"a text, {what}", "odd_text")
            parts = {"role": "user", "content": [{"type": "text", "text": text[:1_000]}]}
            self.insist(partial(self.ask, [parts]), f"a text part, {what}", "odd_text")

    def check_reads_text(self) -> None:
        """More text costs more: in a string, in a part, in a result, in call arguments."""
        for where, write in _PLACES.items():
            short, long = self.count(write("a"), where), self.count(write(_LONG), where)
            if long <= short:
                counts = f"{short} for a letter and {long} for 280 words"
                fail("reads_text", f"{self.name} answered {counts} in {where}")

    def check_additive(self) -> None:
        """The whole is a fixed part and the sizes of its messages."""
        for at, sample in enumerate(self.samples):
            of = f"sample {at}"
            one = self.counter.count_message
            sizes = [self.insist(partial(one, message), f"a message of {of}") for message in sample]
            whole, fixed = self.count(list(sample), of), self.fixed_tokens(sample)
            if whole != fixed + sum(sizes):
                parts = f"its fixed part is {fixed} and its messages are {sum(sizes)}"
                fail("additive", f"{self.name} answered {whole} for {of}, but {parts}")

    def fixed_tokens(self, sample: Messages) -> int:
        """What a request of messages alone costs beside them."""
        of_request = getattr(self.counter, "fixed_tokens", None)
        if of_request is None:
            return self.count([], "an empty list")
        has_system = bool(sample) and sample[0].get("role") in ("system", "developer")
        return self.insist(partial(of_request, None, None, has_system=has_system), "a request's fixed part")

    def check_count_back(self) -> None:
        """Counting back fills in the same sizes, and stops where the room is passed."""
        count_back = getattr(self.counter, "count_back", None)
        if count_back is None:
            return
        for at, sample in enumerate(self.samples):
            sizes = [self.counter.count_message(message) for message in sample]
            for room in (0, sum(sizes) // 2, sum(sizes)):
                found: list[int | None] = [None] * len(sample)
                low = count_back(list(sample), 0, len(sample), room, found)
                if found != [None] * low + sizes[low:]:
                    wanted = f"{sizes} from {low}, of sample {at}"
                    fail("count_back", f"{self.name} filled in {found}, not {wanted}")
                if (low and sum(sizes[low:]) <= room) or sum(sizes[low + 1 :]) > room:
                    fail("count_back", f"{self.name} stopped at {low} of sample {at} with room for {room}")

    def check_count_request(self) -> None:
        """System text and tools come on top, and cost something."""
        if not hasattr(self.counter, "count_request"):
            return
        count_request = as_counter(self.counter).count_request
        tools = [{"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}]
        for at, sample in enumerate(self.samples):
            of = f"sample {at} as a request"
            bare = self.insist(partial(count_request, CountRequest(list(sample))), of, "count_request")
            if bare != (alone := self.count(list(sample), of)):
                fail("count_request", f"{self.name} answered {bare} for {of}, and {alone} for its messages")
            request = CountRequest(list(sample), system="Be brief.", tools=tools)
            full = self.insist(partial(count_request, request), of, "count_request")
            if full < bare:
                counts = f"{full} for {of} with system and tools, {bare} without"
                fail("count_request", f"{self.name} answered {counts}")

    def check_reads_objects(self) -> None:
        for at, sample in enumerate(self.samples):
            of = f"sample {at} as objects"
            plain = self.count(list(sample), of)
            dumped = [Dumped(message) for message in sample]
            objects = self.insist(partial(self.ask, dumped), of, "reads_objects")
            if objects != plain:
                fail("reads_objects", f"{self.name} answered {objects} for {of}, and {plain} for its dicts")

    def check_threads(self, counts: list[int]) -> None:
        """Several threads get the answers that one got."""
        with ThreadPoolExecutor(_THREADS) as threads:
            found = list(
                threads.map(lambda one: self.count(list(one), "a sample in a thread"), self.samples * 4)
            )
        if found != counts * 4:
            at = next(i for i, (new, old) in enumerate(zip(found, counts * 4, strict=True)) if new != old)
            fail("threads", f"{self.name} answered {found[at]} in a thread, {(counts * 4)[at]} before")


def _call(arguments: str) -> Messages:
    function = {"name": "search", "arguments": arguments}
    calls = [{"id": "a", "type": "function", "function": function}]
    return [{"role": "assistant", "content": None, "tool_calls": calls}]


_PLACES: dict[str, Callable[[str], Messages]] = {
    "string content": lambda text: [{"role": "user", "content": text}],
    "a text part": lambda text: [{"role": "user", "content": [{"type": "text", "text": text}]}],
    "a tool result": lambda text: [{"role": "tool", "tool_call_id": "a", "content": text}],
    "system content": lambda text: [{"role": "system", "content": text}],
    "call arguments": _call,
}
