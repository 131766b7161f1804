"""What the model's messages take from what is before them, and how much of that a policy has in view."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import filterfalse, islice, takewhile
from operator import eq
from typing import Any, NamedTuple

from trimtab.conversation.assemble import part_of
from trimtab.counting.schemas import system_texts
from trimtab.formats import Dict, Format, Structure, mapping_of
from trimtab.formats.handles import is_made_up
from trimtab.formats.values import compact_json
from trimtab.replay.details import DetailKind, details_in, held_by
from trimtab.replay.players import View
from trimtab.replay.record import Messages, ModelCall, Recording
from trimtab.replay.results import AGE_WORDS, Tally, Use, Uses, age_word
from trimtab.strategies.must_keep import unescape

__all__ = ["UseWatch"]


class _Source(NamedTuple):
    """The result that a detail is from."""

    tool: str
    result: str
    call: int
    """Index of the first call that has it."""


class _Text(NamedTuple):
    """A text of a message, and the result it is from, if it is from one."""

    text: str
    result: tuple[str, str] | None = None
    """The tool and the id of its call."""


_NOBODY = ("", "")


class _Tools:
    """Names the tool of each result, message by message."""

    def __init__(self, form: Format) -> None:
        self._form = form
        self._called = dict[str, str]()
        self._unnamed = deque[str]()
        """Tools of calls without an id, which their results follow in this order."""

    def results_in(self, message: Dict) -> dict[int | None, tuple[str, str]]:
        """Map the results in a message, by their parts, to their tools and the ids of their calls."""
        form = self._form
        if form.kind(message) == "assistant":
            names = form.tool_names(message)
            self._called.update(names)
            self._unnamed.extend(name for call_id, name in names.items() if is_made_up(call_id, form.rules))
            return {}
        columns = Structure(1)
        form.scan([message], 0, 1, columns)
        found: dict[int | None, tuple[str, str]] = {}
        for call_id, part in columns.answers.get(0, ()):
            if call_id and not is_made_up(call_id, form.rules):
                found[part] = (self._called.get(call_id, ""), call_id)
            else:
                found[part] = (self._unnamed.popleft() if self._unnamed else "", "")
        return found


def _texts(form: Format, message: Dict, results: Mapping[int | None, tuple[str, str]]) -> Iterator[_Text]:
    """Yield all texts of a message, some twice: of results once more, as of that result.

    What else is in a message with results, such as numbers beside a text, is the first one's.
    """
    pieces = form.pieces(message)
    is_tool = form.kind(message) == "tool"
    first = next(iter(results.values()), _NOBODY if is_tool else None)
    for text in pieces.texts:
        yield _Text(text, first if is_tool else None)
    for text in pieces.beside:
        yield _Text(text, first)
    for _, arguments in pieces.calls:
        yield _Text(arguments)
    if results and not (is_tool and len(results) == 1):
        for slot in form.texts(message):
            if slot.is_result:
                yield _Text(slot.text, results.get(part_of(slot.path), first))


class _Taking(NamedTuple):
    """A detail that the answer to a call takes from the request."""

    text: str
    kind: DetailKind
    source: _Source | None
    """The newest result that has it, if nothing else does; None: it is a need alone."""


class _Ledger:
    """What stands before each answer, in a row of calls that go on from each other."""

    def __init__(self, form: Format, held: dict[str, frozenset[str]], entered: dict[str, int]) -> None:
        self._form, self._held, self._entered = form, held, entered
        self._tools = _Tools(form)
        self._results = dict[str, _Source]()
        self._others = set[str]()
        self._beside: tuple[Any, Any] = (None, None)

    def add(self, messages: Iterable[Any], index: int, *, anew: bool) -> None:
        """Take in messages of a call.

        Args:
            messages: Those that the call before did not have, or all.
            index: The call's place.
            anew: Whether they are all, so that calls before may have had them.
        """
        for one in messages:
            message = mapping_of(one)
            results = self._tools.results_in(message)
            texts = [*_texts(self._form, message, results)]
            said = {one.text for one in texts if one.result is not None}
            for text, result in texts:
                if result is not None:
                    first = self._entered.get(text, index) if anew else index
                    self._entered[text] = first
                    self._results.update(dict.fromkeys(self._held_by(text), _Source(*result, first)))
                elif text not in said:
                    self._others.update(self._held_by(text))

    def put_beside(self, system: Any, tools: Any) -> None:
        """Take in what stands beside the messages."""
        if (system, tools) != self._beside:
            self._beside = (system, tools)
            for text in _beside_texts(system, tools):
                self._others.update(self._held_by(text))

    def takings(self, answer: Iterable[Any]) -> list[_Taking]:
        """List what an answer takes from all that was taken in."""
        written: dict[str, DetailKind] = {}
        for one in answer:
            pieces = self._form.pieces(mapping_of(one))
            for text in (*pieces.texts, *(arguments for _, arguments in pieces.calls)):
                written.update(details_in(text))
        found = list[_Taking]()
        for text, kind in written.items():
            source = None if text in self._others else self._results.get(text)
            if source is not None or text in self._others:
                found.append(_Taking(text, kind, source))
        return found

    def _held_by(self, text: str) -> frozenset[str]:
        held = self._held.get(text)
        if held is None:
            held = self._held[text] = frozenset(held_by(text))
        return held


def _beside_texts(system: Any, tools: Any) -> Iterator[str]:
    yield from system_texts(system)
    if tools is not None:
        yield compact_json(tools)


@dataclass(frozen=True, slots=True)
class _Takings:
    """What all answers of a recording take, and what of it each text has; no policy changes that."""

    by_call: Mapping[int, Sequence[_Taking]] = field(default_factory=dict[int, list[_Taking]])
    sought: frozenset[str] = frozenset()
    held: dict[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])

    def held_by(self, text: str) -> frozenset[str]:
        """Return what of all that is taken a text has."""
        held = self.held.get(text)
        if held is None:
            found = held_by(text)
            if "&" in text and "trimtab" in text:  # what stands in a mark is escaped
                found |= held_by(unescape(text))
            held = self.held[text] = self.sought.intersection(found)
        return held


def _find_takings(recording: Recording) -> _Takings:
    """Read a recording once from its beginning; calls that do not go on from each other begin anew."""
    form, calls = recording.format, recording.calls
    held: dict[str, frozenset[str]] = {}
    entered: dict[str, int] = {}
    found: dict[int, list[_Taking]] = {}
    ledger = _Ledger(form, held, entered)
    count = 0
    for index, call in enumerate(calls):
        anew = not index or not _begins_with(call.messages, calls[index - 1].messages)
        if anew:
            ledger, count = _Ledger(form, held, entered), 0
        ledger.add(call.messages[count:], index, anew=anew)
        ledger.put_beside(call.system, call.tools)
        count = len(call.messages)
        following = calls[index + 1] if index + 1 < len(calls) else None
        taken = ledger.takings(_answer_of(form, call, following))
        if taken:
            found[index] = taken
    sought = frozenset(one.text for few in found.values() for one in few)
    return _Takings(found, sought, {text: sought & few for text, few in held.items()})


def _begins_with(messages: Messages, before: Messages) -> bool:
    """Tell whether a call has the messages of the one before it at its front."""
    return len(messages) >= len(before) and [*messages[: len(before)]] == [*before]


def _answer_of(form: Format, call: ModelCall, following: ModelCall | None) -> list[Any]:
    """Return what the model answered, as far as it is known: what the next call has behind this one's end."""
    if call.answer or following is None or not call.messages:
        return [*call.answer]
    messages, end = [*following.messages], call.messages[-1]
    at = len(call.messages) - 1
    if at >= len(messages) or messages[at] != end:  # some were dropped in front of it, or text was added
        if end not in messages:
            return []
        at = len(messages) - 1 - messages[::-1].index(end)
    said = takewhile(lambda one: form.kind(mapping_of(one)) == "assistant", islice(messages, at + 1, None))
    return [*said]


class _Shown:
    """What of all that is taken stands in what a policy sends, kept by what comes and goes between calls."""

    def __init__(self, form: Format, takings: _Takings) -> None:
        self._form, self._takings = form, takings
        self._messages = dict[int, Any]()
        """By identity, in the order of the view."""
        self._held = dict[int, list[frozenset[str]]]()
        """What each text of a message has."""
        self._counts = Counter[str]()
        self._beside: tuple[Any, Any] = (None, None)
        self._held_beside = frozenset[str]()

    def see(self, messages: Messages, system: Any, tools: Any) -> None:
        """Go over to what is sent for the next call.

        Lines that `compact` wrote as a reference are in view where it leads: it never leads out of a request.
        """
        now, before, held = dict(zip(map(id, messages), messages, strict=True)), self._messages, self._held
        gone = [*filterfalse(now.__contains__, before)]
        new = [*filterfalse(before.__contains__, now)]
        # Whoever edits messages makes the same copies anew in each call: these are not read again.
        alike = [*map(eq, map(before.get, gone), map(now.get, new)), False].index(False)
        held.update(zip(new[:alike], [*map(held.pop, gone[:alike])], strict=True))
        for one in gone[alike:]:
            for few in held.pop(one):
                self._counts.subtract(few)
        for one in new[alike:]:
            texts = _texts(self._form, mapping_of(now[one]), {})
            held[one] = [few for few in (self._takings.held_by(text.text) for text in texts) if few]
            for few in held[one]:
                self._counts.update(few)
        self._messages = now
        if (system, tools) != self._beside:
            self._beside = (system, tools)
            each = map(self._takings.held_by, _beside_texts(system, tools))
            self._held_beside = frozenset[str]().union(*each)

    def has(self, text: str) -> bool:
        """Tell whether a detail is in view."""
        return self._counts[text] > 0 or text in self._held_beside


class UseWatch:
    """Looks for what each answer of a recording takes in what a policy sends for its call."""

    def __init__(self, recording: Recording) -> None:
        self._takings = _find_takings(recording)
        self._shown = _Shown(recording.format, self._takings)
        self._needs = Tally()
        self._uses: tuple[dict[str, Tally], dict[str, Tally], dict[str, Tally]] = ({}, {}, {})
        self._lost = list[Use]()

    def look(self, index: int, call: ModelCall, view: View | None, /) -> None:
        """Look for what the answer to a call takes.

        Args:
            index: The call's place.
            call: The call.
            view: What is sent for it; None: nothing could be, so that all is lost.
        """
        taken = self._takings.by_call.get(index, ())
        if not taken:
            return
        if view is not None:
            self._shown.see(view.messages, view.system, call.tools)
        for one in taken:
            is_lost = view is None or not self._shown.has(one.text)
            self._needs += Tally(sought=1, lost=is_lost)
            if one.source is not None:
                self._note(one, one.source, index, is_lost=is_lost)

    def _note(self, one: _Taking, source: _Source, index: int, *, is_lost: bool) -> None:
        age = index - source.call + 1
        keys = (source.tool, age_word(age), one.kind)
        for tallies, key in zip(self._uses, keys, strict=True):
            tallies[key] = tallies.get(key, Tally()) + Tally(sought=1, lost=is_lost)
        if is_lost:
            use = Use(
                text=one.text, kind=one.kind, call=index, age=age, tool=source.tool, result=source.result
            )
            self._lost.append(use)

    def uses(self) -> Uses:
        """Return what was found so far."""
        by_tool, by_age, by_kind = self._uses
        return Uses(
            by_tool=by_tool,
            by_age={word: by_age[word] for word in AGE_WORDS if word in by_age},
            by_kind=by_kind,
            needs=self._needs,
            lost=tuple(self._lost),
        )
