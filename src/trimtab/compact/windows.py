"""How results are written for what a request holds, remembered from call to call."""

from __future__ import annotations

import threading
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from trimtab._shared.memory import WEIGHTS, with_latest
from trimtab.compact.options import Compact
from trimtab.compact.repeats import Lines, Repeats, escape_lines, lines_of
from trimtab.compact.results import Place, Reading, Result
from trimtab.formats import Format, Path

__all__ = ["ALL", "Held", "Link", "Window", "Written", "WrittenText", "held_before", "write_results"]


class Window(NamedTuple):
    """What a request holds of the results of a conversation."""

    gone: frozenset[Place] = frozenset()
    """Results that it does not hold."""
    parted: frozenset[Place] = frozenset()
    """Results that it holds, and not whole: no references stand in these, and none leads to them."""
    fixed: frozenset[int] = frozenset()
    """Messages that are sent as they are."""
    unread: range = range(0)
    """Messages that the provider does not read: nothing refers to these, and they are sent as they are."""


ALL = Window()
"""All of it."""


class Held:
    """What requests held of a conversation when they were settled last; threads share it."""

    def __init__(self) -> None:
        self._windows: dict[Hashable, Window] = {}
        """By what was asked; never changed, but put in place of one another."""

    def window(self, asked: Hashable) -> Window | None:
        """Return what was held when this was asked last; None if all was, or nobody knows."""
        return self._windows.get(asked)

    def note(self, asked: Hashable, window: Window) -> None:
        """Note what is held where this is asked."""
        if window != ALL:
            self._windows = with_latest(self._windows, asked, window, most=_MOST_ASKED)
        elif asked in self._windows:
            self._windows = {key: one for key, one in self._windows.items() if key != asked}


_MOST_ASKED = 8
"""Different questions about a conversation of which is remembered what the answer held."""


class Link(NamedTuple):
    """A result that refers to another."""

    holder: Place
    source: Place
    back: int
    """How many results back that is, if the reference says so; 0 if it names the id of the call."""


@dataclass(slots=True, frozen=True)
class WrittenText:
    """A text of a result that is written otherwise."""

    place: Place
    path: Path
    text: str
    """As the tool wrote it."""
    base: str
    """As it would be written if nothing repeated."""
    sent: str
    step: str
    """What made `base`: "json", the name of a kind, or "": nothing did."""


@dataclass(slots=True, frozen=True)
class Written:
    """The results of a conversation as they are written."""

    results: Sequence[Result]
    texts: Sequence[WrittenText]
    """Those that are written otherwise."""
    links: Sequence[Link]
    held: Held
    """What requests held of this conversation when they were settled last."""

    def edits(self) -> dict[int, dict[Path, str]]:
        """Map messages to the new texts in them."""
        found: dict[int, dict[Path, str]] = {}
        for one in self.texts:
            found.setdefault(one.place[0], {})[one.path] = one.sent
        return found


class _Writing:
    """The results of a conversation as they are written for one window; more is added at the end."""

    def __init__(self, compact: Compact, window: Window) -> None:
        self._compact = compact
        self._window = window
        self._repeats = Repeats(compact.min_lines, compact.min_tokens)
        self._sources: list[Result] = []
        self._latest: dict[str, Place] = {}
        """The latest result of each id, of those that are there."""
        self._ranks: dict[Place, int] = {}
        """Results that are there, by their number among these."""
        self.count = 0
        self.texts: list[WrittenText] = []
        self.links: list[Link] = []

    def add(self, results: Sequence[Result]) -> None:
        """Write results that follow."""
        for result in results:
            self._write(result)
            self.count += 1

    def _write(self, result: Result) -> None:
        place, window = result.place, self._window
        is_there, unread = place not in window.gone, place[0] in window.unread
        fixed = unread or place[0] in window.fixed
        if is_there:
            self._ranks[place] = len(self._ranks)
        whole = is_there and not unread and place not in window.parted and not result.is_cut
        source = Lines() if whole and result.is_one_text else None
        for text in result.texts:
            if fixed or not text.takes_references:
                sent, plain = (text.text if fixed else text.base), None
            elif not whole or not self._compact.repeats:  # what is cut may be cut within a line
                sent, plain = escape_lines(text.base), None
            else:
                lines, plain, used = self._repeats.write(text.base.split("\n"), self._handle_of)
                sent = "\n".join(lines)
                self._link(place, used)
            if sent != text.text:
                self.texts.append(WrittenText(place, text.path, text.text, text.base, sent, text.step))
            if source is not None and self._compact.repeats:
                source = lines_of(sent) if plain is None else plain
        if source and self._compact.repeats:
            self._repeats.add(source)
            self._sources.append(result)
        if is_there and result.call_id:
            self._latest[result.call_id] = place

    def _link(self, place: Place, used: Collection[int]) -> None:
        for number in sorted(used):
            back = self._handle_of(number)
            self.links.append(Link(place, self._sources[number].place, back if isinstance(back, int) else 0))

    def _handle_of(self, number: int) -> str | int:
        source = self._sources[number]
        if source.call_id and self._latest.get(source.call_id) == source.place:
            return source.call_id
        return len(self._ranks) - 1 - self._ranks[source.place]


_MOST_WINDOWS = 4
"""Windows that are remembered of a chat: the whole of it, and those before a cut settles."""


@dataclass(slots=True)
class _Chat:
    """What is known of a conversation; one call at a time uses it."""

    reading: Reading
    windows: dict[Window, _Writing] = field(default_factory=dict)
    held: Held = field(default_factory=Held)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def write(self, compact: Compact, messages: Sequence[Any], window: Window) -> Written | None:
        """Write a conversation that goes on from what is known; None if it does not."""
        reading = self.reading
        if not reading.is_of(messages):
            return None
        reading.add([*messages[len(reading.copies) :]])
        writing = self.windows.pop(window, None) or _Writing(compact, window)
        writing.add(reading.results[writing.count :])
        self.windows = with_latest(self.windows, window, writing, most=_MOST_WINDOWS)
        return Written([*reading.results], [*writing.texts], [*writing.links], self.held)


class _Known(NamedTuple):
    """What is remembered of a conversation."""

    chat: _Chat
    held: tuple[int, int] = (0, 0)
    """How many messages it holds, and their characters; lines that are looked for take as much again."""

    @classmethod
    def of(cls, chat: _Chat) -> _Known:
        copies = chat.reading.copies
        return cls(chat, (len(copies), (1 + 2 * len(chat.windows)) * copies.chars))


def chat_key(format: Format, compact: Compact, start: tuple[int, Any], /) -> Hashable:
    """Return the key by which a conversation is remembered: a hint, since messages are compared.

    Args:
        format: The wire form.
        compact: How results are written.
        start: The first object of the caller's that is the same in each call, and where it stands.
    """
    place, first = start
    return "compact", id(format), compact, place, id(first)


def held_before(key: Hashable, asked: Hashable, /) -> tuple[Window, Held] | None:
    """Return what a request held of a conversation when it was settled last; and where that is remembered.

    Whether it is the same conversation is told by what is written for it: that remembers in the same place.

    Args:
        key: That of the conversation, of `chat_key`; None: it is not remembered.
        asked: What was asked.
    """
    found = None if key is None else WEIGHTS.peek(key)
    held = None if found is None else cast("_Known", found).chat.held
    window = None if held is None else held.window(asked)
    return None if held is None or window is None else (window, held)


def write_results(
    format: Format, compact: Compact, messages: Sequence[Any], window: Window, key: Hashable, /
) -> Written:
    """Write the results of a conversation for what a request holds of it.

    What was written for the same window in an earlier call is not looked for again.

    Args:
        format: The wire form.
        compact: How results are written.
        messages: The conversation, as dicts.
        window: What the request holds of its results.
        key: That of the conversation, of `chat_key`; None: it is not to be remembered.
    """

    def begin() -> _Chat:
        return _Chat(Reading(format, compact))

    found = None if key is None else WEIGHTS.find(key, _Known(begin()))
    chat, written = begin() if found is None else found.chat, None
    if chat.lock.acquire(blocking=False):  # a fork may hold it forever
        try:
            written = chat.write(compact, messages, window)
        finally:
            chat.lock.release()
    if written is None:
        chat = begin()
        written = chat.write(compact, messages, window)
    assert written is not None  # what is made anew goes on from nothing
    if found is not None:
        WEIGHTS.keep(key, _Known.of(chat))
    return written
