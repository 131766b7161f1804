"""A client's memory of its conversations: how to recognize them, their bills and their cuts.

A client serves many conversations, but a baseline is made for one. So each conversation has its own, found
by its first message and by the end of its latest calls. The factor learned from each bill changes the sizes
of messages a little, so a cut computed anew each time would move back and forth. So the cut of a
conversation does not move while the messages behind it fit, and a shortened result keeps its text.
"""

from __future__ import annotations

import threading
import warnings
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from operator import is_
from typing import Any, NamedTuple, TypeVar

from trimtab._fit import Fitted
from trimtab._shared.steps import Steps
from trimtab.counting.base import SYSTEM_ROLES
from trimtab.counting.baseline import UsageBaseline, key_of_message
from trimtab.counting.shorten import Ends, ends_of
from trimtab.counting.totals import TotalBaseline
from trimtab.counting.usage import usage_of
from trimtab.errors import BudgetExceededError, ConfigurationError, UsageError
from trimtab.formats import Format, Path, Request, mapping_of
from trimtab.formats.values import item_of
from trimtab.integrations.usages import usage_with

T = TypeVar("T")

MOST_CHATS = 1_024
"""Maximum number of remembered conversations, the last used ones: one entry for each, and often one for its
fork and one for its beginning."""

MOST_CUTS = 256
"""Maximum number of results per conversation that are cut where they were cut before: the last ones."""

MOST_HELD = 256
"""Maximum number of contents on the server whose size a client remembers."""

_LEAST_BILLED = 4
"""A bill below this fraction of the count is wrong: some servers always report one token."""

_MOST_BILLED = 4
"""A bill of more than this many times the count, with an excess above half of the budget, is believed only if
the next bill is that high, too (design/029)."""


def refuse_baseline(counter: object) -> None:
    """Refuse what counts one conversation, for who is asked about many.

    Raises:
        ConfigurationError: The counter is a `UsageBaseline`.
    """
    if isinstance(counter, UsageBaseline):
        raise ConfigurationError(
            "counter is a UsageBaseline, which is for one conversation: this client keeps one for each"
            " conversation, and records its bills. Pass a counter that estimates, such as"
            " counter=EstimateCounter(), or none",
            argument="counter",
        )


def beside_counted(counter: TotalBaseline, request: Request) -> int:
    """Return what a counter gives, before it learned anything, for what stands beside messages."""
    first = mapping_of(request.messages[0]) if request.messages else {}
    return counter.fixed_counted(
        request.system,
        request.tools,
        has_system=bool(request.system) or first.get("role") in SYSTEM_ROLES,
        extra=request.extra,
    )


def is_learned(counter: TotalBaseline | None) -> bool:
    """Tell whether counts are estimates that a bill has corrected."""
    return counter is not None and counter.bills > 0 and counter.estimates


class Kept(NamedTuple):
    """Which messages of a call were sent."""

    cut: int
    """All from this one on."""
    before: int
    """How many before it."""
    total: int
    """How many there were."""

    def goes_on(self, latest: Kept) -> bool:
        """Tell whether what was sent holds what another call sent, and what is newer."""
        return self[:2] == latest[:2] and self.total >= latest.total

    @classmethod
    def of(cls, fitted: Fitted[Any], places: Sequence[int | None], messages: Sequence[Any]) -> Kept:
        """Tell which messages of a call are sent.

        Args:
            fitted: What is sent.
            places: The index of each message that is sent among those of the call; None: it is of no call.
            messages: Those of the call.
        """
        count = len(messages)
        if len(fitted.messages) == count and all(map(is_, fitted.messages, messages)):
            return cls(0, 0, count)
        newest = count - 1
        """The newest that was evicted."""
        behind = 0
        for place in reversed(places):
            if place is not None and place != newest:
                break
            behind += 1
            newest -= place is not None
        return cls(newest + 1, len(places) - behind, count)


Digest = Callable[[Any], str]
"""Names a text, or a list of pairs of them, by a hash."""


def hash_here(value: Any, /) -> str:
    """Hash for this process alone: in another one the same text has another name."""
    return str(hash(value))


Opening = tuple[str, str, str]
"""Who asks, its model, and its first message that is no system text."""

_NOTHING = Kept(0, 0, 0)
_ANOTHER = Kept(-1, 0, 0)
"""What no call goes on from."""


class Mark(NamedTuple):
    """A message of a call by which its conversation is known."""

    place: int
    key: str
    """By content."""


@dataclass(slots=True, eq=False)
class Chat:
    """What is known of one conversation, or of all that begin alike."""

    opening: Opening
    """By which those are found that begin alike."""
    baseline: TotalBaseline | None
    """Its counter; None: the caller's own counter, which records no bill."""
    form: Format
    """The wire form of its messages."""
    digest: Digest = hash_here
    """Names its messages and results."""
    id: str = ""
    """By which processes that share it know it; "": it is of this one alone."""
    before: TotalBaseline | None = None
    """Its counter before the latest bill, while no other bill confirms that one."""
    doubts: bool = False
    """Whether the latest bill was too high to be believed."""
    root: Chat | None = None
    """What it started from, until it has a bill of its own; None: it is one that others start from."""
    marks: tuple[Mark, ...] = ()
    """What its latest call ended with, the last message first; none: it is one that others start from."""
    is_fork: bool = False
    """Whether it was made for a call whose last message was another, and has not gone on since."""
    billed: Kept = _NOTHING
    """What the latest bill was for."""
    cut: int = 0
    """Where the last call was cut; 0: nowhere."""
    at_cut: str = ""
    """The key of the first message after the cut: with it, the conversation is recognized later."""
    cuts: dict[tuple[int, Path, str], tuple[int, int]] = field(default_factory=dict)
    """How many characters stay in front of a cut and behind, by message, place in it, and the whole text."""

    def counters(self) -> Iterator[TotalBaseline | None]:
        """List the counters for a call: the next is used if the call does not fit by the one before.

        A single bill does not end a conversation: it may have been a price throughout, or the server's
        mistake.
        """
        yield self.baseline
        priced = self.baseline.as_factor() if self.baseline is not None else None
        yield from (one for one in (priced, self.before) if one is not None)

    def fit_by_one(
        self, fit: Callable[[TotalBaseline | None], Steps[T]], /
    ) -> Steps[tuple[TotalBaseline | None, T]]:
        """Fit a call with one counter after another; if none makes it fit, raise the first one's error."""
        refused: BudgetExceededError | None = None
        for counter in self.counters():
            try:
                return counter, (yield from fit(counter))
            except BudgetExceededError as error:
                refused = refused or error
        assert refused is not None
        raise refused

    def as_before(self, place: tuple[int, Path], whole: str, text: str) -> str:
        """Cut a result where it was first cut, or as it is now, which later calls reuse."""
        ends = ends_of(whole, text)
        if ends is None:
            return text
        key = (*place, self.digest(whole))
        head_chars, tail_chars = self.cuts.setdefault(key, ends[:2])
        if len(self.cuts) > MOST_CUTS:
            self.cuts.pop(next(iter(tuple(self.cuts)), key), None)  # another thread may add to them
        return Ends(head_chars, tail_chars, ends.marker).of(whole)

    def plan(self, messages: Sequence[Any]) -> int:
        """Return the earliest place to cut a call; 0: wherever it fits."""
        if not self.cut:
            return 0
        goes_on = len(messages) > self.cut and self._key(messages[self.cut]) == self.at_cut
        return self.cut if goes_on else 0

    def learn(self, messages: Sequence[Any], fitted: Fitted[Any], kept: Kept) -> None:
        """Remember where a call was cut: after the newest message that was evicted for room."""
        if kept.cut in (0, self.cut):
            return
        stay = {*fitted.positions}
        left = [place for place in range(kept.cut - 1, -1, -1) if place not in stay]
        whys = zip(left, fitted.settlement.reasons(left), strict=True)
        cut = next((place + 1 for place, why in whys if why == "over_limit"), 0)
        if 0 < cut < len(messages):
            self.cut, self.at_cut = cut, self._key(messages[cut])
            self.cuts = {place: ends for place, ends in tuple(self.cuts.items()) if place[0] >= cut}

    def _key(self, message: Any) -> str:
        return _key_of(mapping_of(message), self.form, self.digest)

    def take_bill(self, tokens: int, sent: Sent) -> None:
        """Record the bill of a call, less the content on the server."""
        counter = sent.counter
        assert counter is not None
        counted = counter.plain_count(sent.tokens, fixed_counted=sent.fixed_counted)
        if tokens * _LEAST_BILLED < counted:
            return
        excess_tokens, doubted = tokens - sent.tokens, self.doubts
        self.doubts = tokens > _MOST_BILLED * sent.tokens and 2 * excess_tokens > sent.limit_tokens
        if self.root is not None:
            self.root.doubts = self.doubts
        if self.doubts and not doubted:
            return
        goes_on = sent.kept.goes_on(self.billed)
        alone = counter is not self.before and not self.doubts
        self.before = counter if alone else None
        self.baseline = counter.with_bill(
            tokens, of=sent.tokens, fixed_counted=sent.fixed_counted, goes_on=goes_on
        )
        self.billed = sent.kept
        if self.root is not None:
            root, self.root = self.root, None
            if (
                not self.doubts
            ):  # what takes most of the budget may be this conversation's own: a file, an image
                root.baseline, root.before, root.billed = self.baseline, self.before, _ANOTHER


class Chats:
    """Finds the conversation of a call.

    It is the one of those with the same first message whose latest call ended with messages that this one
    has at the same place. Where that is so but for the last of them, since a question is put again in other
    words or a program sends a reminder behind each, it goes on as a fork, and the other as it was. One that
    is new starts from what is known of all that begin like it: the bills of their first calls.

    Args:
        format: The wire form of the messages.
        new_baseline: Makes what counts a conversation of a model.
        digest: Names messages.
    """

    def __init__(
        self,
        format: Format,
        new_baseline: Callable[[str | None], TotalBaseline | None],
        digest: Digest = hash_here,
    ) -> None:
        self.format, self.new_baseline, self.digest = format, new_baseline, digest
        self._latest: OrderedDict[int, Chat] = OrderedDict()
        """By identity, those asked for last at the end."""
        self._by_opening: dict[Opening, list[Chat]] = {}
        self._lock = threading.Lock()

    def opening_of(self, messages: Sequence[Any], model: str | None, asker: str | None) -> Opening:
        """Return by what conversations are found that begin as a call does; see `find`."""
        first = _first_of(messages)
        key = "" if first < 0 else _key_of(mapping_of(messages[first]), self.format, self.digest)
        return asker or "", model or "", key

    def alike(self, opening: Opening, /) -> list[Chat]:
        """List the conversations that begin alike, those asked for last at the end."""
        with self._lock:
            return [chat for chat in self._latest.values() if chat.opening == opening]

    def add(self, chat: Chat, /) -> None:
        """Add a conversation, as the one that was asked for last."""
        with self._lock:
            self._touch(chat)

    def find(self, messages: Sequence[Any], model: str | None, asker: str | None = "") -> Chat:
        """Return what is known of the conversation of a call.

        Args:
            messages: Those of the call.
            model: Who is asked.
            asker: Who asks, where one client serves several: nobody is counted by the bills of another. None:
                nothing is known of it, or remembered.
        """
        keys: dict[int, str] = {}

        def key(place: int) -> str:
            if place not in keys:
                keys[place] = _key_of(mapping_of(messages[place]), self.format, self.digest)
            return keys[place]

        first = _first_of(messages)
        last = len(messages) - 1
        opening = self.opening_of(messages, model, asker)
        if asker is None:
            return Chat(opening, self.new_baseline(model), self.format, self.digest)
        with self._lock:
            known = [*self._by_opening.get(opening, ())]
        root = next((chat for chat in known if not chat.marks), None)
        # Outside the lock: a tokenizer may have to be read from its files.
        root = root or Chat(opening, self.new_baseline(model), self.format, self.digest)
        marks = tuple(Mark(place, key(place)) for place in range(last, max(first, last - 2), -1))
        found, is_whole = _known_by(known, key, last)
        with self._lock:
            self._touch(root)
            if not marks:
                return root
            chat = found or replace(root, root=root, cuts={}, id="")
            if found is not None and not is_whole and not found.is_fork:
                chat = replace(found, cuts=dict(found.cuts), id="")
            chat.marks, chat.is_fork = marks, found is not None and not is_whole
            self._touch(chat)
        return chat

    def _touch(self, chat: Chat) -> None:
        known = self._latest
        if id(chat) not in known:
            known[id(chat)] = chat
            self._by_opening.setdefault(chat.opening, []).append(chat)
        known.move_to_end(id(chat))
        while len(known) > MOST_CHATS:
            _, gone = known.popitem(last=False)
            alike = self._by_opening[gone.opening]
            alike.remove(gone)
            if not alike:
                del self._by_opening[gone.opening]


def _first_of(messages: Sequence[Any]) -> int:
    """Return the place of the first message that is no system text; -1: there is none."""
    roles = (mapping_of(one).get("role") for one in messages)
    return next((at for at, role in enumerate(roles) if role not in SYSTEM_ROLES), -1)


def _key_of(entry: Mapping[str, Any], form: Format, digest: Digest) -> str:
    """Key a message by content: one of texts and calls, as most are, without reading it (2 µs for 30)."""
    said = [(name, _text_of(name, value)) for name, value in entry.items() if value is not None]
    if all(type(value) is str for _, value in said):
        return digest(tuple(sorted(said)))
    return digest(key_of_message(dict(entry), form))


def _text_of(name: str, value: Any) -> Any:
    """Return calls as a text, and the text of a list that holds nothing else, marked for a cache or not."""
    if name == "tool_calls":
        return repr(value)
    if type(value) is list and len(value) == 1 and type(part := value[0]) is dict:
        return part["text"] if {"text"} <= part.keys() <= {"type", "text", "cache_control"} else value
    return value


def _known_by(chats: Sequence[Chat], key: Callable[[int], str], last: int) -> tuple[Chat | None, bool]:
    """Find the conversation that has most in common with a call, and tell whether it ended with that."""
    best, most, is_whole = None, -1, False
    for chat in chats:
        same = [mark.place <= last and key(mark.place) == mark.key for mark in chat.marks]
        place = chat.marks[0].place if same and all(same) else chat.marks[-1].place if any(same[1:]) else -1
        if place > most:
            best, most, is_whole = chat, place, all(same)
    return best, is_whole


class Held:
    """How many tokens have what a server holds, by name."""

    def __init__(self) -> None:
        self._tokens: OrderedDict[str, int | None] = OrderedDict()

    def to_dict(self) -> dict[str, int | None]:
        """Return all of it."""
        return dict(self._tokens)

    def learn(self, name: str, tokens: int | None) -> None:
        """Take in what a server said of it; None: that it was asked for."""
        self._tokens[name] = tokens
        if len(self._tokens) > MOST_HELD:
            self._tokens.popitem(last=False)

    def asks(self, name: str) -> bool:
        """Tell whether a name is heard of for the first time."""
        is_new = name not in self._tokens
        if is_new:
            self.learn(name, None)
        return is_new

    def tokens(self, name: str | None) -> int | None:
        """Return how many there are; None: no server said so yet."""
        return None if name is None else self._tokens.get(name)


@dataclass(frozen=True, slots=True)
class Sent:
    """A call as it is sent."""

    body: Mapping[str, Any]
    chat: Chat | None = None
    """The conversation its bill is for; None: the server adds what nobody here sees."""
    counter: TotalBaseline | None = None
    """Its counter; None: it records no bill."""
    tokens: int = 0
    """What was counted for it, less what the server holds."""
    fixed_counted: int = 0
    """Of these, beside its messages, as the counter inside counts."""
    limit_tokens: int = 0
    """What it had to fit."""
    fitted: Fitted[Any] | None = None
    """What is sent, with its report."""
    call: Any = None
    """What was asked for, to ask again."""
    kept: Kept = _NOTHING
    held: tuple[str, Held] | None = None
    """The name of what the server puts before the messages, and who knows its size."""

    @property
    def holds_unknown(self) -> bool:
        """Whether the server puts before the messages what nobody has told the size of."""
        return self.held is not None and self.held[1].tokens(self.held[0]) is None

    def take_refusal(self, tokens: int | None) -> bool:
        """Take in what a refusal says the call has, as a bill; tells whether anything was learned from it."""
        if tokens is None or self.chat is None or self.counter is None:
            return False
        self.chat.take_bill(tokens, self)
        return self.chat.baseline is not self.counter

    def record(self, usage: Any) -> None:
        """Take in what an answer says it was billed; nothing where it does not say."""
        if usage is None:
            return
        held_tokens = 0
        if self.held is not None:
            name, known = self.held
            said = item_of(item_of(usage, "usageMetadata") or usage, "cachedContentTokenCount")
            if isinstance(said, int) and said > 0:
                known.learn(name, said)
            held_tokens = known.tokens(name) or 0
        if self.chat is None or self.counter is None:
            return
        try:
            billed = usage_of(usage).input_tokens - held_tokens
        except UsageError as error:
            warnings.warn(f"the bill of a call was passed over: {error}", stacklevel=2)
            return
        except ConfigurationError:  # servers that report none, or nothing
            return
        known_exactly = not self.counter.estimates and not self.counter.bills and billed == self.tokens
        if billed > 0 and not known_exactly:
            self.chat.take_bill(billed, self)

    def watch(
        self, events: Iterator[Any], usage_in: Callable[[Any], Any], again: Again | None = None
    ) -> Iterator[Any]:
        """Pass on the events of a stream, and take in what they say was billed.

        Args:
            events: Those of the stream.
            usage_in: Reads what an event says was billed.
            again: Asks once more, where the first event is an error; None: nobody does.
        """
        billed: Mapping[str, Any] | None = None
        sent = self
        try:
            if again is not None and again.now is not None:
                try:
                    first = next(events)
                except again.kinds as error:
                    sent, events = again.now(sent, error)
                except StopIteration:
                    return
                else:
                    events = chain((first,), events)
            for event in events:
                billed = usage_with(billed, usage_in(event))
                yield event
        finally:
            sent.record(billed)

    async def awatch(
        self, events: AsyncIterator[Any], usage_in: Callable[[Any], Any], again: Again | None = None
    ) -> AsyncIterator[Any]:
        """Do what `watch` does."""
        billed: Mapping[str, Any] | None = None
        sent, begun = self, ()
        try:
            if again is not None and again.later is not None:
                try:
                    begun = (await anext(events),)
                except again.kinds as error:
                    sent, events = await again.later(sent, error)
                except StopAsyncIteration:
                    return
            for event in begun:
                billed = usage_with(billed, usage_in(event))
                yield event
            async for event in events:
                billed = usage_with(billed, usage_in(event))
                yield event
        finally:
            sent.record(billed)


class Again(NamedTuple):
    """How to request a stream again if its first event is an error."""

    kinds: tuple[type[Exception], ...]
    """The errors of the client."""
    now: Callable[[Sent, Exception], tuple[Sent, Iterator[Any]]] | None = None
    """Gives what is sent in place of what was, and its events; raises the error where nothing is."""
    later: Callable[[Sent, Exception], Awaitable[tuple[Sent, AsyncIterator[Any]]]] | None = None
    """The same, awaited."""
