"""Messages of a framework: read into wire messages where the engine looks, and written back where it changed.

An object that reads as one message is read when its message is looked at, and no other is. Where objects
read as lists, all are read: how many messages stand before one is told by no part of them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from operator import is_
from types import NoneType
from typing import Any, Generic, TypeVar

from trimtab._fitting.fitted import Plan, PlanAround
from trimtab._fitting.request import Ask
from trimtab._shared.checks import check_messages, check_parameters, check_whole
from trimtab.budget import Budget
from trimtab.conversation.units import resolve_pins
from trimtab.errors import ConfigurationError, FormatError
from trimtab.formats import Dict, mapping_of
from trimtab.formats.values import LateDict

__all__ = ["Objects", "ReadCache", "ReadsSeveral"]

M = TypeVar("M")
R = TypeVar("R")

Read = Callable[[Any], object]
Write = Callable[[Any, list[Dict]], object]


class ReadCache(Generic[M, R]):
    """A `read` that remembers what each object reads as, from one fit to the next.

    For objects that nobody changes in place: of one that is changed the old reading would be sent. Without it
    every fit reads anew what it looks at.

    Args:
        read: What reads an object.
        most_objects: How many readings are kept, those used last, each with its object, which so lives on.
            Fewer than a conversation has are of no use where all of it is read.

    Example:
        >>> from trimtab.history import ReadCache
        >>> read = ReadCache(lambda line: {"role": "user", "content": line})
        >>> read("hi") is read("hi")
        True
    """

    def __init__(self, read: Callable[[M], R], *, most_objects: int = 100_000) -> None:
        check_parameters("read", read, "object")
        self._read = read
        self._most = check_whole("most_objects", most_objects, least=1)
        self._kept: OrderedDict[int, M] = OrderedDict()
        """Objects by their identity, which no other gets meanwhile; those used last stand at the end."""
        self._read_as: dict[int, R] = {}

    def __call__(self, object: M, /) -> R:
        """Return what an object reads as.

        Args:
            object: A message of the framework.
        """
        key, kept, readings = id(object), self._kept, self._read_as
        with suppress(KeyError):
            kept.move_to_end(key)
            return readings[key]
        reading = self._read(object)
        kept[key], readings[key] = object, reading
        if len(kept) > self._most:
            # the reading first: another thread may not find it when the object's identity is free again
            gone = next(iter(kept))
            readings.pop(gone, None)
            kept.pop(gone, None)
        return reading

    def readings(self, objects: Sequence[M], /) -> list[R | None]:
        """List what these objects read as, None where nothing is remembered.

        Args:
            objects: Messages of the framework.
        """
        kept, keys = self._kept, list(map(id, objects))
        if 2 * len(kept) > self._most:  # before, nothing has to go soon
            for key in filter(kept.__contains__, keys):
                with suppress(KeyError):
                    kept.move_to_end(key)
        return list(map(self._read_as.get, keys))


class ReadsSeveral(
    BaseException
):  # no Exception: it passes what catches the errors of counters and strategies
    """Breaks off a fit that took objects for one message each: it begins again, with all of them read."""


_PLAIN = {NoneType, dict, list}
"""Kinds of readings that nothing has to be made of, as long as the lists hold dicts."""


class Objects:
    """The objects of one fit, and what was read of them."""

    def __init__(self, ask: Ask, read: Any, write: Any) -> None:
        for name, value, words in (("read", read, ("object",)), ("write", write, ("object", "messages"))):
            if not callable(value):
                raise ConfigurationError(
                    "read= and write= are given together: functions read(object) -> message, or a list of"
                    f" messages, and write(object, messages) -> object; {name} is {value!r:.60}"
                )
            if not isinstance(value, ReadCache):  # which was looked at when it was made
                check_parameters(name, value, *words)
        if isinstance(ask.messages, Mapping):
            raise ConfigurationError(
                "read= takes a list of objects, and a mapping is given: pass the objects it holds, and"
                " system= and tools= beside them"
            )
        check_messages(ask.messages)
        self._ask = ask
        self.given: list[object] = list(ask.messages)
        self.write: Write = write
        self._read: Read = read
        self._readings: list[Any] = self._from_cache()
        """What each object reads as, a message or a list of them; None where nobody looked."""
        self._several: list[list[Dict]] | None = None
        """What every object reads as, where they read as lists."""
        self.owners: Sequence[int] = range(len(self.given))
        """The object of each wire message."""
        self._has_blanks = False
        """Whether there are objects that read as nothing."""
        self._decided = False
        if list in set(map(type, self._readings)):
            self.read_all()
        self._pins = (
            resolve_pins(ask.pin, self.given) if ask.pin != () and ask.pin is not None else frozenset()
        )

    def _from_cache(self) -> list[Any]:
        """List what the caller's cache remembers: nothing stands between these and the engine."""
        if not isinstance(self._read, ReadCache):
            return [None] * len(self.given)
        known = self._read.readings(self.given)
        lists = [one for one in known if type(one) is list]
        if _PLAIN.issuperset(map(type, known)) and {dict}.issuperset(map(type, chain.from_iterable(lists))):
            return known
        return [None if one is None else self._as_messages(one, at) for at, one in enumerate(known)]

    def one(self, at: int) -> Dict:
        """Return the one message an object reads as, read once."""
        reading = self._take(at)
        if type(reading) is not list:
            message: Dict = reading
            return message
        if self._decided:
            raise FormatError(
                f"objects[{at}] reads as a list, and newer objects read as one message: a read= that may"
                " give several messages gives a list for every object"
            )
        raise ReadsSeveral

    def read_all(self) -> None:
        """Read every object that was not read."""
        found = map(self._take, range(len(self.given)))
        self._several = [one if type(one) is list else [one] for one in found]
        self._has_blanks = not all(self._several)
        self.owners = [at for at, messages in enumerate(self._several) for _ in messages]

    def _take(self, at: int) -> Any:
        reading = self._readings[at]
        if reading is None:
            reading = self._readings[at] = self._as_messages(self._answer(at), at)
        return reading

    def _as_messages(self, answer: object, at: int) -> Any:
        """Return a message, or a list of them."""
        if isinstance(answer, (list, tuple)):
            return [self._message(one, at) for one in answer]
        return self._message(answer, at)

    def _answer(self, at: int) -> object:
        try:
            return self._read(self.given[at])
        except Exception as error:
            error.add_note(f"raised by read= for objects[{at}]")
            raise

    def _message(self, answer: object, at: int) -> Dict:
        try:
            return mapping_of(answer)
        except FormatError as error:
            raise FormatError(f"objects[{at}]: what read= gave is no message: {error}") from None

    def ask(self) -> Ask:
        """Return what is asked of the engine: the same with wire messages, read and unread."""
        messages: list[object]
        if self._several is None:
            messages = [Unread(self, at) if one is None else one for at, one in enumerate(self._readings)]
        else:
            messages = [message for one in self._several for message in one]
        pins = [index for index, owner in enumerate(self.owners) if owner in self._pins] if self._pins else ()
        return replace(self._ask, messages=messages, pin=pins)

    def show(self, plan: Plan) -> ObjectsPlan:
        """Show the output of a plan as objects."""
        self._decided = True
        return ObjectsPlan(plan, self)

    def count(self, at: int) -> int:
        """Return how many messages an object reads as."""
        return 1 if self._several is None else len(self._several[at])

    def blanks(self, at: int) -> Iterator[tuple[int, object]]:
        """List the objects behind one that read as no message: they stay with it."""
        if not self._has_blanks or self._several is None:
            return
        while at + 1 < len(self._several) and not self._several[at + 1]:
            at += 1
            yield at, self.given[at]

    def rewrite(self, at: int, messages: list[Dict]) -> object:
        """Have an object written that is to say something else."""
        made = self.write(self.given[at], messages)
        if made is None:
            raise ConfigurationError(
                f"write= gave None for objects[{at}], of which {len(messages)} of {self.count(at)} messages"
                " stay: return a copy that says what these say. Left out, a call could lack its result"
            )
        return made


class Unread(LateDict):
    """The one message of an object, which is read when it is looked at."""

    __slots__ = ("_at", "_objects")

    def __init__(self, objects: Objects, at: int) -> None:
        self._objects = objects
        self._at = at

    def read(self) -> Dict:
        """Return the message."""
        return self._objects.one(self._at)


class ObjectsPlan(PlanAround):
    """A plan over wire messages, and its output as objects."""

    def __init__(self, plain: Plan, objects: Objects) -> None:
        super().__init__(plain)
        self._objects = objects
        self._rows = list(self._write())

    def _write(self) -> Iterator[tuple[int | None, object]]:
        """Give each object of the output with its position; what nothing changed is the very object."""
        objects, given = self._objects, self.plain.given
        messages, places = self.plain.messages(), self.plain.positions()
        owners, at = objects.owners, 0
        first = self._same_from(messages, places)
        end = len(messages) - (len(given) - first)
        yield from objects.blanks(-1)
        while at < end:
            was, start = places[at], at
            at += 1
            if was is None:
                made = objects.write(None, [mapping_of(messages[start])])
                if made is not None:
                    yield None, made
                continue
            owner = owners[was]
            count = objects.count(owner)
            if count == 1 and messages[start] is given[was]:
                yield owner, objects.given[owner]
            else:
                while count > 1 and at < end and (place := places[at]) is not None:
                    if owners[place] != owner:
                        break
                    at += 1
                found, whole = messages[start:at], range(was, was + count)
                if places[start:at] == [*whole] and all(map(is_, found, given[was : was + count])):
                    yield owner, objects.given[owner]
                else:
                    yield owner, objects.rewrite(owner, [mapping_of(message) for message in found])
            yield from objects.blanks(owner)
        if first < len(given):
            yield from enumerate(objects.given[owners[first] :], owners[first])

    def _same_from(self, messages: Sequence[object], places: Sequence[int | None]) -> int:
        """Tell from which wire message on all is in the output as it was; an object begins there."""
        given, owners = self.plain.given, self._objects.owners
        count = [*map(is_, reversed(messages), reversed(given)), False].index(False)
        first = len(given) - count
        if list(places[len(places) - count :]) != [*range(first, len(given))]:
            return len(given)
        while 0 < first < len(given) and owners[first] == owners[first - 1]:
            first += 1
        return first

    @property
    def source(self) -> Sequence[object]:
        """The caller's objects."""
        return self._objects.given

    @property
    def given(self) -> Sequence[object]:
        """The same."""
        return self._objects.given

    @property
    def spans(self) -> Mapping[str, range]:
        """The one block."""
        return dict.fromkeys(self.plain.spans, range(len(self._objects.given)))

    def messages(self) -> list[object]:
        """List the objects of the output."""
        return [made for _, made in self._rows]

    def positions(self) -> list[int | None]:
        """List where each object of the output was."""
        return [at for at, _ in self._rows]

    def stays(self) -> set[int]:
        """List the objects of which something is in the output."""
        return {at for at, _ in self._rows if at is not None}

    def at(self, budget: Budget, /) -> Plan:
        """Decide for another budget."""
        return ObjectsPlan(self.plain.at(budget), self._objects)
