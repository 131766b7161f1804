"""What reads a conversation for facts: `FactExtractor`, its request, and how facts are marked."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias, runtime_checkable

from trimtab._shared.checks import answers_later, check_parameters, is_later, name_of, number_of
from trimtab.errors import ConfigurationError, SummaryError
from trimtab.formats import Format, OriginName
from trimtab.formats.origin import ORIGINS, Origins
from trimtab.strategies.summarizer import cause_of, failure_of, role_for

__all__ = [
    "FACTS_TAG",
    "Fact",
    "FactExtractor",
    "FactExtractorLike",
    "FactRequest",
    "afacts_by",
    "extractor_word",
    "fact_extractor_from",
    "facts_by",
    "facts_message",
    "require_fact_extractor",
]

FACTS_TAG = "facts"
"""The element facts stand in."""

MAX_FACTS = 32
"""Most facts a session takes from one answer."""

MAX_WEIGHT = 1e9
"""The largest weight of a fact: any store keeps it, and every number below it, to the last digit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """Something worth keeping that a conversation says.

    Args:
        text: The fact, in one line.
        sources: Ids of its source messages, among those of the request; empty: all of them.
        supersedes: The text of a known fact that is no longer true because of this one.
        weight: What it is worth, above 0 and up to 1,000,000,000. Where not all facts have room, those of the
            largest weight are shown; of these the most confirmed, and of these the oldest
            and the newest.
        kind: What it is about, in a word or two such as "name" or "limit". For programs: no view shows it.
            Cut after 40 characters.
        origin: Its author: of its sources, the one with the lowest authority. The session sets it; a value
            from an extractor is ignored.
        confirmations: How often it was found again. The session sets it, too.
    """

    text: str
    sources: Sequence[str] = ()
    supersedes: str | None = None
    weight: float = 1.0
    kind: str | None = None
    origin: OriginName | None = None
    confirmations: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FactRequest:
    """The request to a fact extractor.

    New fields come with defaults, so old extractors keep working.

    Args:
        messages: The messages to read, oldest first; not to be changed.
        ids: Their ids, in the same order, for `Fact.sources`.
        known: Known facts in view, oldest first; they need no new fact. Return one again, with its text, if
            the messages say it again: then it is confirmed.
        max_facts: Maximum number of facts that are used; further ones are ignored.
    """

    messages: Sequence[Any]
    ids: Sequence[str]
    known: Sequence[Fact] = ()
    max_facts: int = MAX_FACTS


@runtime_checkable
class FactExtractor(Protocol):
    """Reads messages that go out of a session's view for facts worth keeping.

    May be async. Its exceptions are not errors of the session: nothing is lost, and the messages are read
    again later. Cancellation passes through.
    """

    def extract(self, request: FactRequest, /) -> Sequence[Fact] | Awaitable[Sequence[Fact]]:
        """Return the new facts; an empty list if there are none.

        Args:
            request: Messages, and the known facts.
        """
        ...


class _Extracts(Protocol):
    """A fact extractor as users write it, async or not."""

    def extract(self, request: Any, /) -> Sequence[Fact] | Awaitable[Sequence[Fact]]: ...


FactExtractorLike: TypeAlias = _Extracts | Callable[[Any], Sequence[Fact] | Awaitable[Sequence[Fact]]]
"""What a fact extractor may be: a `FactExtractor`, or a function of a `FactRequest`; may be async."""


class FunctionFactExtractor:
    """A function as a fact extractor; made by `fact_extractor_from`."""

    __slots__ = ("_function", "name")

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function
        self.name = name_of(function)
        """The function's own name, for reports."""

    def __repr__(self) -> str:
        """Name the function."""
        return f"fact_extractor_from({self.name})"

    @property
    def is_async(self) -> bool:
        """True if its answer has to be awaited."""
        return answers_later(self._function)

    def extract(self, request: FactRequest, /) -> Any:
        """Call the function with the request."""
        return self._function(request)


def fact_extractor_from(function: Callable[[Any], Any], /) -> FactExtractor:
    """Make a fact extractor from a function of a `FactRequest`; it may be async.

    Args:
        function: Takes the request; returns a list of `Fact`.

    Raises:
        ConfigurationError: It cannot be called with one argument.

    Example:
        >>> extractor = fact_extractor_from(lambda request: [Fact(text="Nora lives in Bergen")])
        >>> extractor.extract(FactRequest(messages=[], ids=[]))[0].text
        'Nora lives in Bergen'
    """
    if isinstance(function, type) or not callable(function):
        raise ConfigurationError(
            "a fact extractor must be a function of a request, or have extract(request), not"
            f" {function!r:.80}",
            argument="fact_extractor",
        )
    check_parameters("a fact extractor", function, "request")
    return FunctionFactExtractor(function)


def require_fact_extractor(value: Any, /) -> FactExtractor:
    """Return a fact extractor as it is, and a function as one.

    Raises:
        ConfigurationError: It is neither.
    """
    if not isinstance(value, type) and callable(getattr(value, "extract", None)):
        extractor: FactExtractor = value
        return extractor
    return fact_extractor_from(value)


def facts_by(extractor: FactExtractor, request: FactRequest, /) -> list[Fact]:
    """Return what a fact extractor answers at once.

    Raises:
        SummaryError: It failed, or answered no facts.
        ConfigurationError: It is async.
    """
    word = extractor_word(extractor)
    try:
        answer = extractor.extract(request)
    except BaseException as error:
        raise failure_of(word, error) from cause_of(error)
    if is_later(answer):
        raise ConfigurationError(f"{word} is async")
    return _facts_of(word, answer)


async def afacts_by(extractor: FactExtractor, request: FactRequest, /) -> list[Fact]:
    """Return what a fact extractor answers, awaited if it has to be.

    Raises:
        SummaryError: It failed, or answered no facts. Cancellation passes through.
    """
    word = extractor_word(extractor)
    try:
        answer = extractor.extract(request)
        if inspect.isawaitable(answer):
            answer = await answer
    except BaseException as error:
        raise failure_of(word, error) from cause_of(error)
    return _facts_of(word, answer)


def _facts_of(word: str, answer: object) -> list[Fact]:
    if not isinstance(answer, Sequence) or isinstance(answer, (str, bytes)):
        raise SummaryError(f"{word} returned {type(answer).__name__}, not a list of facts")
    for fact in answer:
        if not isinstance(fact, Fact) or not isinstance(fact.text, str):
            raise SummaryError(f"{word} returned a {type(fact).__name__} among its facts, not a Fact")
        sources = fact.sources
        is_list = isinstance(sources, Sequence) and not isinstance(sources, str)
        if not is_list or not all(isinstance(one, str) for one in sources):
            raise SummaryError(f"{word} returned a Fact whose sources are not a list of ids")
        if not isinstance(fact.supersedes, str | None):
            raise SummaryError(
                f"{word} returned a Fact whose supersedes is not a text: {type(fact.supersedes).__name__}"
            )
        if not isinstance(fact.kind, str | None):
            raise SummaryError(f"{word} returned a Fact whose kind is not a text: {type(fact.kind).__name__}")
    return [replace(fact, weight=_weight_of(word, fact)) for fact in answer]


def _weight_of(word: str, fact: Fact) -> float:
    weight = number_of(fact.weight)
    if weight is None or not 0 < weight <= MAX_WEIGHT:
        raise SummaryError(
            f"{word} returned a Fact whose weight is not a number above 0 and up to {MAX_WEIGHT:,.0f}:"
            f" {fact.weight!r:.80}"
        )
    return weight


def extractor_word(extractor: Any, /) -> str:
    """Return the word for a fact extractor in reports and errors."""
    return f"fact extractor {name_of(extractor)}"


def facts_message(
    format: Format, role: str, facts: Sequence[Fact], /, *, trusted: bool = False
) -> dict[str, Any]:
    """Write facts as one message, marked and escaped, a line each; in front whose it is, if not the user's.

    No number stands in front: what is there stays as it is where more facts come behind it.
    """
    from html import escape  # not above: it brings every named entity of HTML

    lines = "\n".join(f"- {_whose(fact)}{escape(fact.text, quote=False)}" for fact in facts)
    text = f'<{FACTS_TAG} by="trimtab">\n{lines}\n</{FACTS_TAG}>'
    origins: Origins = frozenset(fact.origin for fact in facts if fact.origin is not None)
    return format.message(role_for(format, role, origins, trusted=trusted), [text])


def _whose(fact: Fact) -> str:
    """Name who said a fact; of the user's own nothing is said, unless it begins with such a name itself."""
    looks_named = fact.text.startswith(tuple(f"[{origin}]" for origin in ORIGINS))
    return "" if fact.origin in (None, "user") and not looks_named else f"[{fact.origin or 'user'}] "
