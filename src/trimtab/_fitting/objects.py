"""Messages of a framework: read into wire messages where the engine looks, and written back where it changed.

An object that reads as one message is read when its message is looked at, and no other is. Where objects
read as lists, all are read: how many messages stand before one is told by no part of them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, repeat
from operator import is_
from typing import Any, Generic, TypeVar

from trimtab._fitting.request import Ask
from trimtab._fitting.settlement import Settlement
from trimtab._shared.checks import check_messages, check_parameters, check_whole
from trimtab.conversation.units import resolve_pins
from trimtab.errors import ConfigurationError, FormatError
from trimtab.formats import Dict, mapping_of
from trimtab.formats.values import LateDict

__all__ = ["ListedObjects", "Objects", "ReadCache", "ReadsSeveral", "check_read_write"]

M = TypeVar("M")
R = TypeVar("R")

Read = Callable[[Any], object]
Write = Callable[[Any, list[Dict]], object]


class ReadCache(Generic[M, R]):
    """A `read` that remembers what each object reads as, from one fit to the next.

    Use it for objects that are never changed in place, because their first reading is sent.
    Without it, every fit reads its objects anew.

    Args:
        read: The function that reads an object.
        most_objects: How many readings are kept, those used last; each keeps its object alive.
            A number smaller than a conversation is useless if the whole conversation is read.

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
        self._last: tuple[list[M], list[R | None]] = [], []
        """The list that was asked for last and its readings: a conversation mostly begins as it did."""
        self.kinds: set[type] = set()
        """Kinds of all readings so far: with these known, nobody looks at each again."""
        self.holds_dicts = True
        """Whether all readings that are lists hold dicts alone."""

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
        self._note(reading)
        readings[key], kept[key] = reading, object
        if len(kept) > self._most:
            # the object lives until its reading is gone: its identity would be free for another one's
            gone, _alive = kept.popitem(last=False)
            readings.pop(gone, None)
        return reading

    def _note(self, reading: R) -> None:
        self.kinds.add(type(reading))
        if isinstance(reading, list) and not {dict}.issuperset(map(type, reading)):
            self.holds_dicts = False

    def readings(self, objects: Sequence[M], /) -> list[R | None]:
        """List what these objects read as, None for those not remembered.

        Args:
            objects: Messages of the framework.
        """
        before, known = self._last
        if before and len(before) <= len(objects) and all(map(is_, before, objects)):
            found = [*known, *map(self._read_as.get, map(id, objects[len(before) :]))]
        else:
            found = list(map(self._read_as.get, map(id, objects)))
        if 2 * len(self._kept) > self._most:  # before, nothing has to go soon
            for key in filter(self._kept.__contains__, map(id, objects)):
                with suppress(KeyError):
                    self._kept.move_to_end(key)
        elif None not in found:
            self._last = list(objects), found
            return [*found]
        return found


class ReadsSeveral(
    BaseException
):  # no Exception: it passes what catches the errors of counters and strategies
    """Breaks off a fit that took objects for one message each: it begins again, with all of them read."""


def check_read_write(read: Any, write: Any) -> None:
    """Refuse what cannot read an object and write it again.

    Raises:
        ConfigurationError: With what each takes.
    """
    for name, value, words in (("read", read, ("object",)), ("write", write, ("object", "messages"))):
        if not callable(value):
            raise ConfigurationError(
                "read= and write= must be passed together: functions read(object) -> message, or a list of"
                f" messages, and write(object, messages) -> object; {name} is {value!r:.60}",
                argument="read",
            )
        if not isinstance(value, ReadCache):  # which was looked at when it was made
            check_parameters(name, value, *words)


class Objects:
    """The objects of one fit, and what was read of them."""

    def __init__(self, given: Sequence[object], read: Read, write: Write) -> None:
        self.given: list[object] = list(given)
        self.write = write
        self._read = read
        self._readings: list[Any] = self._from_cache()
        """What each object reads as, a message or a list of them; None where nobody looked."""
        self._several: list[list[Dict]] | None = None
        """What every object reads as, where they read as lists."""
        self._flat: list[Dict] = []
        """The same in one list."""
        self.owners: Sequence[int] = range(len(self.given))
        """The object of each wire message."""
        self.texts: Collection[int] = ()
        """Which of those given are no objects, but texts that trimtab makes messages of."""
        self._has_blanks = False
        """Whether there are objects that read as nothing."""
        self._spans: dict[str, range] = {}
        """Where the objects of each block are; none where there is one list."""
        self._decided = False

    def spans(self, plain: Mapping[str, range]) -> Mapping[str, range]:
        """Say where the objects of each block are among those given."""
        return self._spans or dict.fromkeys(plain, range(len(self.given)))

    def _from_cache(self) -> list[Any]:
        """List what the caller's cache remembers: nothing stands between these and the engine."""
        if not isinstance(self._read, ReadCache):
            return [None] * len(self.given)
        known = self._read.readings(self.given)
        if self._read.holds_dicts and {dict, list}.issuperset(self._read.kinds):
            return known
        return [None if one is None else self.as_messages(one, at) for at, one in enumerate(known)]

    def _kinds(self) -> set[type]:
        """List the kinds of all readings that a cache ever gave; without one there are none yet."""
        return self._read.kinds if isinstance(self._read, ReadCache) else set()

    def one(self, at: int) -> Dict:
        """Return the one message an object reads as, read once."""
        reading = self._take(at)
        if type(reading) is not list:
            message: Dict = reading
            return message
        if self._decided:
            raise FormatError(
                f"objects[{at}] reads as a list, but newer objects read as one message: a read= that may"
                " return several messages must return a list for every object"
            )
        raise ReadsSeveral

    def read_all(self) -> None:
        """Read every object that was not read."""
        if self._kinds() != {list} or not all(self._readings):  # else the cache knows them all
            found = map(self._take, range(len(self.given)))
            self._readings = [one if type(one) is list else [one] for one in found]
        self._several = self._readings
        self.lay_out()

    def lay_out(self) -> None:
        """List the messages of all objects, and whose each is."""
        several = self._several or []
        self._flat = list(chain.from_iterable(several))
        self._has_blanks = not all(several)
        if self._has_blanks or len(self._flat) > len(self.given):
            counts = map(len, several)
            self.owners = list(chain.from_iterable(map(repeat, range(len(self.given)), counts)))

    def _take(self, at: int) -> Any:
        reading = self._readings[at]
        if reading is None:
            reading = self._readings[at] = self.as_messages(self.answer(self.given[at], at), at)
        return reading

    def as_messages(self, answer: object, at: int) -> Any:
        """Return a message, or a list of them."""
        if isinstance(answer, (list, tuple)):
            return [self._message(one, at) for one in answer]
        return self._message(answer, at)

    def answer(self, item: object, at: int) -> object:
        try:
            return self._read(item)
        except Exception as error:
            error.add_note(f"raised by read= for objects[{at}]")
            raise

    def _message(self, answer: object, at: int) -> Dict:
        try:
            return mapping_of(answer)
        except FormatError as error:
            raise FormatError(f"objects[{at}]: what read= returned is not a message: {error}") from None

    def show(self, settlement: Settlement) -> Settlement:
        """Show the output as objects, for another budget, too."""
        self._decided = True
        written = Written(self, settlement)
        return replace(settlement, messages=written.messages, written=written, write=self.show)

    def owner_of(self, message: Any) -> Any:
        """Return the object that a message was read from: it is the same in the next call, if one is."""
        if isinstance(message, Unread):
            return message.owner
        messages = self._readings if self._several is None else self._flat
        found = next((at for at, one in enumerate(messages) if one is message), None)
        return message if found is None else self.given[self.owners[found]]

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
                f"write= returned None for objects[{at}], of which {len(messages)} of {self.count(at)}"
                " messages are kept: return a copy with these messages. Without it, a call could lack its"
                " result",
                argument="write",
            )
        return made


class ListedObjects(Objects):
    """The objects of a list that `fit` was given."""

    def __init__(self, ask: Ask, read: Any, write: Any) -> None:
        check_read_write(read, write)
        if isinstance(ask.messages, Mapping):
            raise ConfigurationError(
                "read= takes a list of objects, not a mapping: pass the objects in it, and system= and"
                " tools= separately",
                argument="read",
            )
        check_messages(ask.messages)
        super().__init__(ask.messages, read, write)
        self._ask = ask
        if not {dict}.issuperset(self._kinds()) and list in map(type, self._readings):
            self.read_all()
        self._pins = frozenset() if ask.pin is None else resolve_pins(ask.pin, self.given)

    def ask(self) -> Ask:
        """Return what is asked of the engine: the same with wire messages, read and unread."""
        messages: list[object]
        if self._several is None:
            messages = [Unread(self, at) if one is None else one for at, one in enumerate(self._readings)]
        else:
            messages = [*self._flat]
        pins = [index for index, owner in enumerate(self.owners) if owner in self._pins] if self._pins else ()
        return replace(self._ask, messages=messages, pin=pins, owner_of=self.owner_of)


class Unread(LateDict):
    """The one message of an object, which is read when it is looked at."""

    __slots__ = ("_at", "_objects")

    def __init__(self, objects: Objects, at: int) -> None:
        self._objects = objects
        self._at = at

    def read(self) -> Dict:
        """Return the message."""
        return self._objects.one(self._at)

    @property
    def owner(self) -> object:
        """The object."""
        return self._objects.given[self._at]


class Written:
    """The output of a settlement as objects."""

    def __init__(self, objects: Objects, settlement: Settlement) -> None:
        self._objects = objects
        self._plain = settlement.outcome.given
        """The wire messages of all objects."""
        self.given: list[object] = [*objects.given]
        """The caller's objects; of a text what was made of it, where it stays whole."""
        self.messages: list[object] = []
        """The output."""
        self.places: list[int | None] = []
        """Where each object of it was."""
        self._write(settlement.messages, settlement.outcome.positions)

    def _write(self, messages: list[Any], positions: Callable[[], list[int | None]]) -> None:
        """Write the output; what nothing changed is the very object."""
        objects, given = self._objects, self._plain
        whole = len(messages) == len(given) and all(map(is_, messages, given))
        if whole and not objects.texts:
            self.messages, self.places = [*objects.given], [*range(len(objects.given))]
            return
        places = positions()
        owners, at = objects.owners, 0
        first = self._same_from(messages, places)
        end = len(messages) - (len(given) - first)
        self._add_blanks(-1)
        while at < end:
            was, start = places[at], at
            at += 1
            if was is None or owners[was] in objects.texts:
                self._add_new(messages[start], was)
                continue
            at = self._end_of(owners[was], places, at, end)
            self._add_own(was, messages[start:at], places[start:at])
        if first < len(given):
            self.messages += objects.given[owners[first] :]
            self.places += range(owners[first], len(objects.given))

    def _end_of(self, owner: int, places: Sequence[int | None], at: int, end: int) -> int:
        """Find where in the output the messages of an object end that stand together."""
        owners = self._objects.owners
        while self._objects.count(owner) > 1 and at < end:
            place = places[at]
            if place is None or owners[place] != owner:
                break
            at += 1
        return at

    def _add_new(self, message: object, was: int | None) -> None:
        """Add an object for what trimtab put in, or made of a text."""
        owner = None if was is None else self._objects.owners[was]
        made = self._objects.write(None, [mapping_of(message)])
        if made is not None:
            self._add(owner, made)
        if was is not None and owner is not None:
            if message is self._plain[was]:
                self.given[owner] = made
            self._add_blanks(owner)

    def _add_own(self, was: int, found: list[object], places: list[int | None]) -> None:
        """Add the object these messages are of; it is written if not all are there as they were."""
        objects, owner = self._objects, self._objects.owners[was]
        whole = range(was, was + objects.count(owner))
        same = places == [*whole] and all(map(is_, found, self._plain[was : whole.stop]))
        made = objects.given[owner] if same else objects.rewrite(owner, [*map(mapping_of, found)])
        self._add(owner, made)
        self._add_blanks(owner)

    def _add(self, place: int | None, made: object) -> None:
        self.messages.append(made)
        self.places.append(place)

    def _add_blanks(self, at: int) -> None:
        for blank, made in self._objects.blanks(at):
            self._add(blank, made)

    def _same_from(self, messages: Sequence[object], places: Sequence[int | None]) -> int:
        """Tell from which wire message on all is in the output as it was; an object begins there."""
        given, owners = self._plain, self._objects.owners
        count = [*map(is_, reversed(messages), reversed(given)), False].index(False)
        first = len(given) - count
        texts = self._objects.texts
        first = (
            max([first, *(at + 1 for at, owner in enumerate(owners) if owner in texts)]) if texts else first
        )
        count = len(given) - first
        if list(places[len(places) - count :]) != [*range(first, len(given))]:
            return len(given)
        while 0 < first < len(given) and owners[first] == owners[first - 1]:
            first += 1
        return first

    def spans(self, plain: Mapping[str, range]) -> Mapping[str, range]:
        """Say where the objects of each block are."""
        return self._objects.spans(plain)

    def stays(self, plain: set[int]) -> set[int]:
        """List the objects of which something is in the output, by what of the wire messages is."""
        owners = self._objects.owners
        stay = {owners[at] for at in plain}  # also what was joined with others
        return stay.union(at for at in self.places if at is not None)
