"""The door of counters: turns the argument `counter=` into what the engine asks.

A function is probed once with a list of one long message, and with that message's text where the answer
leaves open which of the two it counts.
"""

from __future__ import annotations

import inspect
import reprlib
from collections.abc import Callable, Sequence, Sized
from functools import lru_cache
from typing import Any

from trimtab._shared.checks import answers_later, number_of
from trimtab._shared.plugins import make_plugin, plugin_names
from trimtab._shared.steps import Steps, arun, run
from trimtab.counting.base import AdditiveCounter, RequestCounter, counter_name, failure_of
from trimtab.counting.estimate import EstimateCounter
from trimtab.counting.own import ASKED, OwnAdditiveCounter, methods_of, own_counter
from trimtab.counting.simple import CharCounter, counter_from_text
from trimtab.errors import ConfigurationError, ContextError

WORDS = ("estimate", "chars")
"""Names of counters; a number may follow "chars", as in "chars:4"."""

_TEXT = "The quick brown fox jumps over the lazy dog. " * 40
_MESSAGE = {"role": "user", "content": _TEXT}
_LEAST_TOKENS = len(_TEXT) // 20
"""Whoever reads the text counts more: a token of twenty characters on average is in no vocabulary."""

Function = Callable[[Any], Any]
"""Counts a list of messages, or a text; nobody knows yet."""

_REMEMBERED = 16
"""Functions whose answer to the probe is kept, and with it what was counted by text."""


def as_counter(counter: Any, /, *, later: bool = False) -> RequestCounter:
    """Return what counts for what was given: a counter, a function, or words such as "chars:4".

    A function that counts a text counts each text of a message, as `counter_from_text` makes it do.

    Args:
        counter: What a user gave.
        later: Whether answers may be awaited: an async counter comes back as one that breaks off where an
            answer is missing (`CountsNeeded`).

    Raises:
        ConfigurationError: It cannot count, or nobody can tell what it counts; with what to pass instead.
    """
    if isinstance(counter, str):
        return _in_words(counter)
    _check_one(counter)
    if later and any(answers_later(call) for name, call in methods_of(counter).items() if name in ASKED):
        from trimtab.counting.awaited import awaited_counter  # not above: only who awaits needs it

        return awaited_counter(counter)
    if isinstance(counter, RequestCounter):
        return counter
    call = getattr(counter, "count", None) or getattr(counter, "count_request", counter)
    if counter is len:
        raise ConfigurationError(
            "counter=len counts messages, not tokens; pass counter_from_text(fn) or a Counter",
            argument="counter",
        )
    if call is counter and callable(getattr(counter, "encode", None)):
        raise ConfigurationError(
            f"counter={counter_name(counter)} is a tokenizer: pass counter_from_tokenizer(tokenizer) (of"
            " trimtab.counting) if it has a chat template, counter_from_text(lambda text:"
            " len(tokenizer.encode(text))) if it has none, such as tiktoken's, or model= for the model's"
            " own",
            argument="counter",
        )
    if not callable(call):
        raise ConfigurationError(
            "counter must have count(messages) or be a function over a list of messages,"
            f" not {counter!r:.80}",
            argument="counter",
        )
    if answers_later(call):
        raise ConfigurationError(
            f"{counter_name(counter)} is async, but fit() is synchronous: await afit(...), or pass a"
            " synchronous counter",
            argument="counter",
        )
    if call is not counter:
        return own_counter(counter)
    return _of_function(counter) if _is_hashable(counter) else _of_function.__wrapped__(counter)


async def as_awaited(counter: Any, /) -> RequestCounter | None:
    """Return what counts where answers may be awaited; see `as_counter`.

    Raises:
        ConfigurationError: As there; or it is an async function that counts a text.
    """
    if counter is None:
        return None
    if inspect.isroutine(counter) and answers_later(counter) and not await _acounts_lists(counter):
        raise ConfigurationError(
            f"counter={counter_name(counter)} is an async function that counts a text, but an async counter"
            " must count lists of messages: write a function that does, or pass an object with async"
            " methods count_message(message) and fixed_tokens(system, tools, *, has_system, extra)",
            argument="counter",
        )
    return as_counter(counter, later=True)


def _check_one(counter: object) -> None:
    """Refuse a class, and a sequence: its `count` says how often something is in it, 0 for all messages."""
    if isinstance(counter, type):
        name = counter.__name__
        raise ConfigurationError(
            f"counter={name} is a class: pass an object, {name}(...)", argument="counter"
        )
    if isinstance(counter, Sequence):
        raise ConfigurationError(
            f"counter must be a single counter, not a {type(counter).__name__}: {reprlib.repr(counter)}",
            argument="counter",
        )


def as_additive(counter: Any, /) -> AdditiveCounter:
    """Return a counter of single messages and texts, for who calculates with their sizes.

    Raises:
        ConfigurationError: It counts whole lists only, or is a class.
    """
    _check_one(counter)
    if isinstance(counter, AdditiveCounter):
        return counter
    methods = methods_of(counter)
    lacks = [name for name in ("count_message", "count_text", "fixed_tokens") if name not in methods]
    if lacks:
        raise ConfigurationError(
            f"a usage baseline needs a counter that counts single messages; {counter_name(counter)} has"
            f" no {lacks[0]}(). Pass EstimateCounter(), counter_for(...) or counter_from_text(...)",
            argument="counter",
        )
    return OwnAdditiveCounter(counter, methods)


def counter_in_words(words: str, /) -> AdditiveCounter | None:
    """Make the counter that `estimate`, `chars` or `chars:N` stands for; None if it is none of these.

    Raises:
        ConfigurationError: N is no number above 0.
    """
    if words == "estimate":
        return EstimateCounter()
    kind, _, number = words.partition(":")
    if kind != "chars":
        return None
    try:
        return CharCounter(float(number)) if number else CharCounter()
    except ValueError as error:
        why = error if isinstance(error, ConfigurationError) else f"{number!r} is not a number"
        raise ConfigurationError(f"{words}: {why}") from error


def _in_words(words: str) -> RequestCounter:
    try:
        counter = counter_in_words(words)
    except ConfigurationError as error:
        raise ConfigurationError(f"counter={error}", argument="counter") from error
    if counter is not None:
        return counter
    if (made := make_plugin("counters", words)) is not None:
        return as_counter(made)
    published = "".join(f", {name!r}" for name in plugin_names("counters"))
    raise ConfigurationError(
        f"counter={words!r} is not one of 'estimate', 'chars:N' (such as 'chars:4'){published}; for the"
        f" counter of a model pass model={words!r}",
        argument="counter",
    )


def _is_hashable(function: object) -> bool:
    try:
        hash(function)
    except TypeError:
        return False
    return True


@lru_cache(maxsize=_REMEMBERED)
def _of_function(function: Function) -> RequestCounter:
    """Return a function that counts lists as it is, and one that counts a text as a counter of messages."""

    def answer(asked: object) -> _Answer:
        try:
            return _read(function(asked))
        except BaseException as cause:
            raise failure_of(cause, counter=counter_name(function), of="a probe") from cause

    if run(_counts_lists(function), answer):
        return own_counter(function)
    return counter_from_text(function, name=f"{counter_name(function)}, a function of a text")


async def _acounts_lists(function: Function) -> bool:
    async def answer(asked: object) -> _Answer:
        try:
            return _read(await function(asked))
        except BaseException as cause:
            raise failure_of(cause, counter=counter_name(function), of="a probe") from cause

    known = _known_of(function) if _is_hashable(function) else []
    if not known:
        known.append(await arun(_counts_lists(function), answer))
    return known[0]


@lru_cache(maxsize=_REMEMBERED)
def _known_of(function: Function) -> list[bool]:
    """Hold what the probe told of an async function, once it did: asking may cost a request each."""
    return []


_Answer = int | float | str | None
"""What a function answered to the probe: a number, or the kind of what holds several; None is no answer."""


def _read(answer: object) -> _Answer:
    if inspect.iscoroutine(answer):
        answer.close()  # or Python warns that it was never awaited
    told = number_of(answer)
    if told is None and isinstance(answer, Sized):
        return type(answer).__name__
    return None if told is None or told < 0 else told


def _counts_lists(function: Function) -> Steps[bool]:
    """Find out whether a function counts a list of messages; else it counts a text.

    One that fails on everything is taken at its word, as one over lists: what it is asked in earnest says
    why it fails.
    """
    of_list = yield from _try([_MESSAGE])
    if isinstance(of_list, int) and of_list >= _LEAST_TOKENS:
        return True
    of_text = yield from _try(_TEXT)
    if isinstance(of_text, int):
        if not isinstance(of_list, int) or of_text >= _LEAST_TOKENS:
            return False
        raise _unclear_error(
            function,
            f"it returns {of_list} for a list of one message and {of_text} for that message's text of"
            f" {len(_TEXT):,} characters, so it counts neither",
        )
    if isinstance(of_text, str) and of_list is None:
        raise _unclear_error(
            function,
            f"it returns a {of_text} for a text, as a tokenizer does: write counter=lambda text:"
            " len(tokenizer.encode(text)), or model= for the model's own",
        )
    if isinstance(of_text, float):
        raise _unclear_error(function, "it returns a fraction for a text, but a count must be a whole number")
    if of_list is None and isinstance((yield from _try(_MESSAGE)), int):
        raise _unclear_error(function, "it counts a single message")
    return True


def _try(what: object) -> Steps[_Answer]:
    try:
        told: _Answer = yield what
    except ContextError:
        return None
    return told


def _unclear_error(function: Function, why: str) -> ConfigurationError:
    name = counter_name(function)
    return ConfigurationError(
        f"counter={name} counts neither a text nor a list of messages: {why}. For a function of a text write"
        " counter=lambda text: math.ceil(len(text) / 4); for one of a list of messages"
        " counter=lambda messages: sum(count(message) for message in messages)",
        argument="counter",
    )
