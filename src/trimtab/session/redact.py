"""Redaction: removing words from messages and from everything that repeats them (SPEC E11).

It costs what it touches. Each summary that may repeat a message is looked through once, and stays as it is
where it does not. One that does has the repeated words overwritten, so that those that go on from it go on;
where few were written since, they are taken back, and made again from what they cover.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from itertools import compress, takewhile
from typing import Any, TypeAlias

from trimtab._shared.steps import Pause, in_turns
from trimtab.errors import ConfigurationError, UnknownNameError
from trimtab.session.change import call_back_newest
from trimtab.session.core import Core, id_of
from trimtab.session.effects import Steps
from trimtab.session.facts import facts_in_force, recount_facts
from trimtab.session.history import is_unfinished, log_pages
from trimtab.session.log import all_there, recount_rewritten, state_of
from trimtab.session.pops import gone_since
from trimtab.session.state import State
from trimtab.session.traces import Traces, said_elsewhere, says_nothing, without
from trimtab.session.undo import facts_since, state_without, summaries_since
from trimtab.session.working_set import WorkingSet
from trimtab.stores import Event, LoadRequest
from trimtab.stores.search import searchable_text

WhereLike: TypeAlias = str | re.Pattern[str] | Callable[[Event], object]
"""Which messages: a regular expression to search for in each of them, or a function of its event."""

TURN = 16
"""Number of texts to search before other tasks run."""

MOST_AGAIN = 4
"""Most summaries that are written again after a redaction, with a call each; if more repeat it, they are
mended."""


class Redaction(list[Event]):
    r"""The overwritten messages in their new form, and a receipt.

    Args:
        events: The overwritten messages.
        version: Version of the event that records it.
        mended: Summaries that repeated them: the repeated words were overwritten, and the summaries are kept.
        stale: Summaries that repeated them and lost their text: their messages wait, and are summarized
            again.
        facts: Facts that lost their text.
        misattributed: Those of the facts that named other messages as their
            source: they were found by the overwritten words.
        rules: Rules that lost their text, of messages that are not in this log,
            as after a snapshot without history.
        left: Current summaries and facts that still have a number or a run of overwritten words, because
            another message says it, too.

    Example:
        >>> from trimtab import Session
        >>> session = Session(1_000)
        >>> secret = session.add({"role": "user", "content": "My card is 4111 1111 1111 1111."})
        >>> done = session.redact(where=r"\b(\d{4} ?){4}\b")
        >>> [event.message["content"] for event in done]
        ['[redacted]']
        >>> done.to_dict()["messages"] == [{"id": secret.id, "version": secret.version}]
        True
    """

    def __init__(
        self,
        events: Iterable[Event] = (),
        /,
        *,
        version: int,
        mended: Sequence[Event] = (),
        stale: Sequence[Event] = (),
        facts: Sequence[Event] = (),
        misattributed: Sequence[Event] = (),
        rules: Sequence[Event] = (),
        left: Sequence[Event] = (),
    ) -> None:
        super().__init__(events)
        self.version = version
        self.mended = tuple(mended)
        self.stale = tuple(stale)
        self.facts = tuple(facts)
        self.misattributed = tuple(misattributed)
        self.rules = tuple(rules)
        self.left = tuple(left)

    def to_dict(self) -> dict[str, Any]:
        """Return what was overwritten, as ids and versions; no content."""
        return {
            "version": self.version,
            "messages": [_place(event) for event in self],
            "summaries": [
                *({**_place(event), "done": "mended"} for event in self.mended),
                *({**_place(event), "done": "again"} for event in self.stale),
            ],
            "facts": [
                {**_place(event), "found_by": "words" if event in self.misattributed else "source"}
                for event in self.facts
            ],
            "rules": [_place(event) for event in self.rules],
            "left": [{**_place(event), "kind": event.kind} for event in self.left],
        }


def _place(event: Event) -> dict[str, Any]:
    return {"id": event.id, "version": event.version}


def redact_messages(
    core: Core,
    given: Sequence[Event | str] | Event | str | None,
    where: WhereLike | None,
    *,
    made: str,
) -> Steps[Redaction]:
    """Overwrite the text of messages, and its repetitions in summaries and facts.

    `made` is the id of the event that says so: asked again after a lost answer, or where the store could not
    clean its files, it adds nothing more.
    """
    chosen = None if where is None else Where.of(where)
    if (given is None) == (chosen is None):
        raise ConfigurationError("pass redact() either events (or their ids) or where=", argument="where")
    listed = [given] if isinstance(given, (Event, str)) or not isinstance(given, Sequence) else given
    ids = [] if given is None else [id_of(event) for event in listed]
    done = yield from core.known_event(made)
    if done is not None:
        return (yield from _redacted_again(core, done))
    if chosen is None:
        targets = []
        for event_id in dict.fromkeys(ids):
            targets.append((yield from core.message_event(event_id, unfinished=True)))
        if not targets:
            raise ConfigurationError("redact() needs at least one event id")
    else:
        targets = yield from _find(core, chosen)
    working_set = yield from core.ready()
    work = yield from _look_through(core, working_set, targets, () if chosen is None else chosen.patterns)
    return (yield from _carry_out(core, working_set, work, made=made))


@dataclass(frozen=True, slots=True)
class Where:
    """Tells which messages are meant."""

    test: Callable[[Event], object]
    name: str
    patterns: tuple[re.Pattern[str], ...] = ()

    @classmethod
    def of(cls, given: object) -> Where:
        """Check the arguments."""
        if isinstance(given, str):
            try:
                given = re.compile(given)
            except (re.error, OverflowError, RecursionError) as error:
                raise ConfigurationError(
                    f"where={given!r:.80} is not a regular expression: {error}", argument="where"
                ) from error
        if isinstance(given, re.Pattern):
            pattern: re.Pattern[Any] = given
            if not isinstance(pattern.pattern, str):
                raise ConfigurationError(
                    f"where must be a pattern over text, not bytes: {pattern.pattern!r:.80}", argument="where"
                )
            if pattern.search("") is not None:
                raise ConfigurationError(
                    f"where={pattern.pattern!r:.80} matches an empty text, and so every message: write a"
                    " narrower pattern, or where=lambda event: True for all messages",
                    argument="where",
                )
            name = f"where={pattern.pattern!r:.80}"
            return cls(lambda event: pattern.search(searchable_text(event)), name, (pattern,))
        if not callable(given):
            raise ConfigurationError(
                "where must be a regular expression, or a function of an event that returns whether to"
                f" redact its message, not {given!r:.80}",
                argument="where",
            )
        return cls(given, f"where={given!r:.80}")

    def meets(self, event: Event) -> bool:
        """Tell whether a message is meant."""
        answer = self.test(event)
        if inspect.isawaitable(answer):
            if inspect.iscoroutine(answer):
                answer.close()
            raise ConfigurationError(f"{self.name} is async: pass a synchronous function")
        return bool(answer)


def _find(core: Core, where: Where) -> Steps[list[Event]]:
    """Find the messages of the log that are meant, and were not overwritten before."""
    found = list[Event]()
    pages = yield from log_pages(core, 0, None, unfinished=True)
    while events := (yield from pages.next()):
        told = [event for event in events if event.kind == "message" and not event.data.get("redacted")]
        found += compress(told, (yield from in_turns(where.meets, told, each=TURN)))
    if not found:
        is_left = yield from is_unfinished(core, (yield from core.ready()).state)
        rest = ". What repeats one that was pruned may still be there: prune() again" if is_left else ""
        raise UnknownNameError(
            f"session {core.session!r} has no unredacted message with {where.name}; nothing was changed"
            f"{rest}",
            name=where.name,
        )
    return found


@dataclass(slots=True, kw_only=True)
class Work:
    """What to overwrite."""

    targets: list[Event]
    traces: Traces
    summaries: dict[int, Event]
    """Those younger than the oldest message, in force or not, oldest first."""
    facts: list[Event]
    """The same of facts."""
    rules: list[Event]
    """Rules of messages that are not in this log; a message of it has its own."""
    mended: list[Event] = field(default_factory=list)
    """Summaries in their new form."""
    stale: AbstractSet[int] = frozenset()
    """Summaries that are taken back."""
    forgotten: list[Event] = field(default_factory=list)
    """Facts that come from the messages, or repeat them."""


def _look_through(
    core: Core, working_set: WorkingSet, targets: list[Event], patterns: Sequence[re.Pattern[str]]
) -> Steps[Work]:
    """Find what summaries and facts repeat of messages: each text is looked through once, or twice."""
    oldest = min(event.version for event in targets)
    summaries = yield from summaries_since(core, working_set, oldest)
    facts = yield from facts_since(core, working_set, oldest)
    left = yield from _yet_to_remove(core, working_set.state, oldest)
    there = {event.version: event for event in (*left, *summaries, *facts)}
    work = Work(
        targets=targets,
        traces=Traces(patterns),
        summaries={version: there[version] for version in sorted(there) if there[version].kind == "summary"},
        facts=[event for event in there.values() if event.kind == "fact"],
        rules=(yield from _rules_apart(core)),
    )
    traces, listed = work.traces, (*work.summaries.values(), *work.facts, *work.rules)
    if listed:
        yield from in_turns(traces.take, map(searchable_text, targets), each=TURN)
    texts = {event.version: _words_of(event) for event in listed}
    shared = dict(zip(texts, (yield from in_turns(traces.shared, texts.values(), each=TURN)), strict=True))
    traces.allow((yield from said_elsewhere(core.session, set().union(*shared.values()), targets)))
    looked_at = [version for version in texts if shared[version] or patterns]
    places = yield from in_turns(traces.places, map(texts.__getitem__, looked_at), each=TURN)
    repeating = {
        version: without(texts[version], found)
        for version, found in zip(looked_at, places, strict=True)
        if found
    }
    work.stale = _to_be_made_again(working_set.state, work.summaries, repeating)
    work.mended = [
        replace(work.summaries[version], data={**work.summaries[version].data, "text": text})
        for version, text in repeating.items()
        if version in work.summaries and version not in work.stale
    ]
    ids = {event.id for event in targets}
    work.forgotten = [
        event
        for event in work.facts
        if event.version in repeating or not ids.isdisjoint(event.data["sources"])
    ]
    work.rules = [event for event in work.rules if event.version in repeating]
    return work


def _yet_to_remove(core: Core, state: State, after: int) -> Steps[list[Event]]:
    """Read the summaries and facts newer than a version that an interrupted order has yet to remove."""
    found = list[Event]()
    if after < state.whole - 1 and (yield from is_unfinished(core, state)):
        pages = all_there(core.session, state).pages(after=after, before=state.whole)
        while events := (yield from pages.next()):
            found += [event for event in events if event.kind in ("summary", "fact")]
    return found


def _rules_apart(core: Core) -> Steps[list[Event]]:
    """Read the events of rules whose messages are not in this log, in force or not.

    Only a log that was made without its history has any: in front of all that was said since, and behind
    messages that no view had then.
    """
    found = list[Event]()
    pages = yield from log_pages(core, 0, None, unfinished=True)
    while events := (yield from pages.next()):
        for event in events:
            is_said_here = event.kind == "message" and state_of(event, core.session).cut <= event.version
            if is_said_here or event.kind == "abridged":
                return found
            if event.kind == "rules" and event.data.get("rules"):
                found.append(event)
    return found


def _to_be_made_again(
    state: State, summaries: Mapping[int, Event], repeating: Mapping[int, str]
) -> AbstractSet[int]:
    """Say which summaries are taken back: those in force that repeat a message, up to the newest.

    Not where they are many, or where what they cover was pruned: then they are mended. Where nothing remains
    of the newest, it is made again with a few before it.
    """
    chain, version = list[int](), state.summary
    while version in summaries:
        chain.append(version)
        version = summaries[version].data["previous"]
    chain.append(state.anchor_summary)  # all others were written beside it
    if any(version <= state.oldest for version in chain if version in repeating):
        chain = list(takewhile(lambda version: version > state.oldest, chain))
        again = list(takewhile(repeating.__contains__, chain))
    else:
        again = chain if chain[-1] in repeating else list(takewhile(repeating.__contains__, chain))
    if len(again) > MOST_AGAIN:
        again = chain[:MOST_AGAIN] if says_nothing(repeating.get(chain[0], "kept")) else []
    return frozenset(again)


def _carry_out(core: Core, working_set: WorkingSet, work: Work, *, made: str) -> Steps[Redaction]:
    """Write what was overwritten to the log, and continue from there."""
    state, redact = working_set.state, working_set.reader.format.redact

    def overwrite(event: Event) -> Event:
        data = {name: value for name, value in event.data.items() if name != "rules"}
        return replace(event, data={**data, "message": redact(event.message), "redacted": True})

    messages = yield from in_turns(overwrite, work.targets, each=TURN)
    gone = yield from gone_since(core.session, state, min(event.version for event in work.targets))
    for at in range(0, len(messages), TURN):
        old, new = work.targets[at : at + TURN], messages[at : at + TURN]
        working_set.state = recount_rewritten(working_set.state, old, new, working_set.reader, gone=gone)
        yield Pause(0)
    stale = [without_text(work.summaries[version]) for version in sorted(work.stale)]
    facts = list(map(without_text, work.forgotten))
    rules = [replace(event, data={**event.data, "rules": []}) for event in work.rules]
    rewrites = [*messages, *work.mended, *stale, *facts, *rules]
    instead = {event.version: event for event in rewrites}
    if stale:
        working_set.state = yield from state_without(core, working_set, stale[0].version, instead)
        yield from call_back_newest(core, working_set)
    else:
        working_set.state = working_set.state.with_new_epoch()
    if facts:
        working_set.state = yield from recount_facts(core.session, working_set.state, instead)
    left = yield from _rest_in_force(core, working_set, work, instead)
    ids = {event.id for event in work.targets}
    parts: dict[str, Sequence[Event]] = {
        "facts": facts,
        "stale": stale,
        "mended": work.mended,
        "misattributed": [event for event in facts if ids.isdisjoint(event.data["sources"])],
        "rules": rules,
        "left": left,
    }
    data = {
        "events": [event.id for event in messages],
        "version": stale[0].version if stale else working_set.version + 1,
        **{name: [event.id for event in events] for name, events in parts.items()},
    }
    done = yield from core.write(working_set, "redacted", data, rewrites=rewrites, id=made)
    yield from core.reread(working_set)
    return Redaction(messages, version=done.version, **parts)


_PARTS = ("facts", "stale", "mended", "misattributed", "rules", "left")
"""The data of a redaction's event other than the messages."""


def _words_of(event: Event) -> str:
    """Return all that an extractor or a summarizer wrote of an event: a fact's kind, too."""
    if event.kind == "rules":
        return "\n".join(one["text"] for one in event.data["rules"])
    text: str = event.data["text"]
    return f"{text}\n{event.data['kind']}" if event.data.get("kind") else text


def without_text(event: Event) -> Event:
    """Take the text out of a summary or a fact."""
    data = {**event.data, "text": "", "stale": True}
    data.pop("kind", None)
    return replace(event, data=data)


def _rest_in_force(
    core: Core, working_set: WorkingSet, work: Work, instead: Mapping[int, Event]
) -> Steps[list[Event]]:
    """List the summaries and facts in force that have words which were overwritten and others say, too."""
    state, tells = working_set.state, work.traces.tells
    standing = [
        instead.get(version, work.summaries[version])
        for version in (state.anchor_summary, state.summary)
        if version in work.summaries
    ]
    found = [event for event in standing if tells(event.data["text"])]
    facts = [event for event in work.facts if event.version not in instead and tells(_words_of(event))]
    force = yield from facts_in_force(core.session, state, facts)
    return [*found, *(event for event in facts if event.version in force)]


def _redacted_again(core: Core, done: Event) -> Steps[Redaction]:
    """Let the store continue a redaction that it already has: it knows the append by its id."""
    names = {name: done.data.get(name, ()) for name in ("events", *_PARTS)}
    asked = tuple(dict.fromkeys(one for ids in names.values() for one in ids))
    stored: list[Event] = yield LoadRequest(session=core.session, ids=asked)
    known = {event.id: event for event in stored}
    working_set = yield from core.ready()
    unchanged = {*names["left"]}
    yield from core.append(
        working_set, [done], rewrites=[event for event in stored if event.id not in unchanged]
    )
    events = {name: [known[one] for one in ids if one in known] for name, ids in names.items()}
    return Redaction(events.pop("events"), version=done.version, **events)
