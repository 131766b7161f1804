"""What a rule of the judge is, and how a table of them reads a request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, NamedTuple, TypeVar

Body = Mapping[str, Any]
T = TypeVar("T")


class Refusal(NamedTuple):
    """One reason why a provider answers a request with status 400."""

    rule: str
    where: str
    """The place as the provider writes it: `messages.[3].role`, `messages.0.content.1`."""
    words: str
    """The provider's own error text, filled in."""
    source: str
    """Where somebody reported this text, or the provider's page that says so."""
    about: str = ""
    """What it is about, whatever its place: an id, a role, a type. Evictions move places."""
    kin: str = ""
    """The rule it counts as: its own, or the one that says the same of the thing at another place."""


class Found(NamedTuple):
    """What a rule found: the place, what it is about, and the values of the words."""

    where: str
    about: str
    values: dict[str, Any]


def found(where: str, about: object = "", **values: Any) -> Found:
    """Say that a rule is broken somewhere."""
    return Found(where, str(about), {"where": where, "about": about, **values})


Check = Callable[[Body], Iterable[Found]]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of a provider."""

    name: str
    words: str
    source: str
    check: Check
    elsewhere: str = ""
    """Where this holds, if the provider's first endpoint takes such a request today."""
    kin: str = ""
    """The rule that says the same of the thing at another place."""

    def read(self, request: Body) -> Iterator[Refusal]:
        """Yield what it refuses in a request."""
        for place in self.check(request):
            words = self.words.format(**place.values)
            yield Refusal(self.name, place.where, words, self.source, place.about, self.kin or self.name)


class Table(dict[str, Rule]):
    """The rules of one form by name, in the order a provider is believed to read them."""

    def rule(
        self, words: str, source: str, *, elsewhere: str = "", kin: str = ""
    ) -> Callable[[Check], Check]:
        """Enter a function as the rule of its name."""

        def enter(check: Check) -> Check:
            name = check.__name__
            self[name] = Rule(name, words, source, check, elsewhere, kin)
            return check

        return enter

    def read(self, request: Any) -> list[Refusal]:
        """Say everything that is wrong with a request."""
        reading = Reading(as_body(request))
        return [refusal for rule in self.values() for refusal in rule.read(reading)]


class Reading(dict[str, Any]):
    """A request while a table reads it, with what its rules look at."""

    def __init__(self, request: Body) -> None:
        super().__init__(request)
        self.seen: dict[str, list[Any]] = {}


def once(make: Callable[[Body], Iterable[T]]) -> Callable[[Body], list[T]]:
    """Have what rules look at (blocks, turns) made once for a reading, not once for each of thirty rules."""

    @wraps(make)
    def made(request: Body) -> list[T]:
        if not isinstance(request, Reading):
            return list(make(request))
        if make.__name__ not in request.seen:
            request.seen[make.__name__] = list(make(request))
        return request.seen[make.__name__]

    return made


def as_body(request: Any) -> Body:
    """Return a request if it is an object; anything else says nothing."""
    return request if isinstance(request, Mapping) else {}


def more(before: Iterable[Refusal], after: Iterable[Refusal]) -> list[Refusal]:
    """Return what is refused after and was not before, by rule (or its kin) and what it is about."""
    known = Counter((refusal.kin, refusal.about) for refusal in before)
    new = []
    for refusal in after:
        if known[refusal.kin, refusal.about]:
            known[refusal.kin, refusal.about] -= 1
        else:
            new.append(refusal)
    return new


def items(value: Any) -> list[Any]:
    """Return the entries of a list; of anything else none."""
    return list(value) if isinstance(value, list | tuple) else []


def objects(value: Any) -> list[tuple[int, dict[str, Any]]]:
    """Return the objects of a list with their places."""
    return [(at, entry) for at, entry in enumerate(items(value)) if isinstance(entry, dict)]


def text(value: Any) -> str:
    """Return a string; of anything else the empty one."""
    return value if isinstance(value, str) else ""


def entry(value: Any) -> dict[str, Any]:
    """Return an object; of anything else the empty one."""
    return value if isinstance(value, dict) else {}


def mistyped(path: str, value: Any, types: Any, expected: str, *, null: bool = False) -> Iterator[Found]:
    """Yield it if a value is of none of the types; null passes unless told."""
    if not isinstance(value, types) and (null or value is not None):
        yield found(path, kind(value), expected=expected, got=kind(value))


def kind(value: Any) -> str:
    """Name a JSON type with its article, as OpenAI does."""
    if value is None:
        return "null"
    names = (
        (bool, "a boolean"),
        (str, "a string"),
        (int, "an integer"),
        (float, "a decimal"),
        (dict, "an object"),
        (list | tuple, "an array"),
    )
    return next((name for types, name in names if isinstance(value, types)), "an object")
