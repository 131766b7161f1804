"""The operations of a session, each a generator: what it decides, what it writes down, whom it tells."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from trimtab.errors import (
    ConfigurationError,
    CorruptSessionError,
    StoreUnavailableError,
    SummaryError,
    UnknownNameError,
    VersionConflictError,
)
from trimtab.session._effects import Delete, Steps
from trimtab.session._options import Options, budget_tokens, missing_functions, options_from
from trimtab.session._plain import copied, plain_message, redacted
from trimtab.session._reading import (
    Pages,
    counted_again,
    event_at,
    live_units,
    read_scene,
    read_unit,
    state_of,
)
from trimtab.session._scene import LiveUnit, Scene, Sizer
from trimtab.session._state import Members, State
from trimtab.session._summarizing import Job, Written, write_summary
from trimtab.session._zones import limits_of
from trimtab.stores import Appended, AppendRequest, Event, LoadRequest

__all__ = ["Core", "new_event_id"]

_log = logging.getLogger("trimtab.session")

DECISIONS = frozenset({"summary", "evicted"})
"""Kinds of events that `undo` takes back."""


def new_event_id() -> str:
    """Make an id that sorts by time, so that an index grows at its end."""
    return f"{time.time_ns() // 1_000_000:012x}{secrets.token_hex(8)}"


class Core:
    """A session as its operations see it. What may be called from outside is `Session`."""

    def __init__(
        self, session: str, options: Options | None, functions: Mapping[str, Any], *, allow_missing: bool
    ) -> None:
        self.session = session
        self.given = options
        """What the session was made with here; None: what the log remembers."""
        self.functions = functions
        self.allow_missing = allow_missing
        self.options: Options | None = options
        self.scene: Scene | None = None
        """None: to be read from the log before anything else."""
        self.opened: dict[str, Any] | None = None
        """Options that the log does not know yet; they are written with the next event."""
        self.job: Job | None = None
        """The summary that is being written in the background."""
        self.hook_errors = 0
        self.stale_summaries = 0
        self.last_failure: str | None = None

    # -- opening

    def ready(self) -> Steps[Scene]:
        """Read where the session stands, unless it is known."""
        if self.scene is None:
            newest = yield LoadRequest(session=self.session, limit=1, newest_first=True)
            self.scene = (yield from self._open(newest[0])) if newest else self._begin()
        return self.scene

    def _begin(self) -> Scene:
        options = self.given
        if options is None:
            raise UnknownNameError(
                f"there is no session {self.session!r} in this store", name=self.session, near=()
            )
        if not options.budget_tokens:
            raise ConfigurationError(
                f"session {self.session!r} is new and has no budget: pass budget= (tokens, or a Budget)"
            )
        self.options = options
        self.opened = options.to_data()
        scene = Scene(
            sizer=Sizer(options),
            state=State(budget_tokens=options.budget_tokens),
            version=0,
            anchors=list(options.anchors),
        )
        scene.measure()
        scene.require_room()
        scene.require_anchor_room()
        return scene

    def _open(self, head: Event) -> Steps[Scene]:
        state = state_of(head, self.session)
        known = yield from self._known_options(state.options)
        options = options_from(known, self.functions) if self.given is None else self.given
        missing = missing_functions(known, options)
        if missing is not None and not self.allow_missing:
            raise ConfigurationError(
                f"session {self.session!r} was made with a {missing} and is opened without one: pass it again, or"
                " allow_missing=True to go on without"
            )
        self.options, data = options, options.to_data()
        if options.context is None and not options.budget_tokens:
            data["budget_tokens"] = options.budget_tokens = known["budget_tokens"]
        changed = {name for name in data if name != "given" and data[name] != known.get(name)}
        self.opened = data if changed else None
        if "budget_tokens" in changed:
            state = replace(state, budget_tokens=options.budget_tokens)
        if "counted_by" in changed:
            state = yield from counted_again(self.session, state, version=head.version, sizer=Sizer(options))
        scene = yield from read_scene(self.session, head.version, state, options)
        scene.require_room()
        return scene

    def _known_options(self, version: int) -> Steps[dict[str, Any]]:
        event = yield from event_at(self.session, version)
        try:
            return dict(event.data["options"])
        except (KeyError, TypeError) as error:
            raise CorruptSessionError(
                f"session {self.session!r}: event {version} holds no options",
                session=self.session,
                version=version,
            ) from error

    def again(self) -> Steps[Scene]:
        """Read the session again: another writer may have been there."""
        self.scene = None
        return (yield from self.ready())

    # -- writing

    def write(
        self, scene: Scene, kind: str, data: Mapping[str, Any], *, rewrites: Sequence[Event] = ()
    ) -> Steps[Event]:
        """Append one event, with the state the scene has by now."""
        made = self._first_events(scene)
        made.append(self.event(scene, kind, data))
        yield from self.append(scene, made, rewrites=rewrites)
        return replace(made[-1], version=scene.version)

    def _first_events(self, scene: Scene) -> list[Event]:
        """Make the event with the options, if the log does not know them."""
        if self.opened is None:
            return []
        scene.state = replace(scene.state, options=scene.version + 1)
        return [self.event(scene, "options", {"options": self.opened})]

    def event(self, scene: Scene, kind: str, data: Mapping[str, Any], *, id: str | None = None) -> Event:
        """Make an event with the state the scene has by now."""
        return Event(
            id=new_event_id() if id is None else id,
            kind=kind,
            time=time.time(),
            data=data,
            state=scene.state.to_dict(),
        )

    def append(
        self, scene: Scene, events: Sequence[Event], *, rewrites: Sequence[Event] = ()
    ) -> Steps[Appended]:
        """Write events down; if that fails, what was decided on the way is forgotten."""
        self.scene = None
        done: Appended = yield AppendRequest(
            session=self.session, expected_version=scene.version, events=events, rewrites=rewrites
        )
        if not done.duplicate:
            scene.version, self.scene, self.opened = done.version, scene, None
        return done

    def tell(self, hook: str, *arguments: Any) -> None:
        """Call a hook; what it raises is logged and counted, and stops nothing (SPEC E8)."""
        function = getattr(self._options.hooks, hook)
        if function is None:
            return
        try:
            function(*arguments)
        except Exception:
            self.hook_errors += 1
            _log.exception("hook %s of session %r failed", hook, self.session)

    @property
    def _options(self) -> Options:
        if self.options is None:
            raise RuntimeError("the session was not opened")
        return self.options

    # -- adding

    def adding(self, messages: Sequence[Any], ids: Sequence[str | None]) -> Steps[list[Event]]:
        """Take messages: into the log first, then make room (SPEC E3)."""
        plain = [plain_message(message) for message in messages]
        scene = yield from self.ready()
        for message in plain:
            scene.sizer.read(message)  # what cannot be read is refused before anything is written
        events = self._first_events(scene)
        exceeded: list[tuple[int, int]] = []
        evicted: list[LiveUnit] = []
        added: list[int] = []
        self.scene = None  # until everything is written
        for message, event_id in zip(plain, ids, strict=True):
            data = yield from self._take(scene, message, scene.version + len(events) + 1)
            added.append(len(events))
            events.append(self.event(scene, "message", data, id=event_id))
            if scene.over:
                exceeded.append((scene.total_tokens, scene.state.budget_tokens))
                leaving = scene.cut()
                if leaving:
                    evicted.extend(leaving)
                    events.append(self._evicted(scene, leaving))
        done = yield from self.append(scene, events)
        if done.duplicate:
            return (yield from self._stored(ids))
        first = done.version - len(events) + 1
        for total, limit in exceeded:
            self.tell("on_budget_exceeded", total, limit)
        yield from self._make_room(scene, evicted, exceeded=bool(exceeded))
        return [replace(events[at], version=first + at) for at in added]

    def _evicted(self, scene: Scene, units: Sequence[LiveUnit]) -> Event:
        data = {"units": [list(unit.versions) for unit in units], "reason": "budget"}
        return self.event(scene, "evicted", data)

    def _stored(self, ids: Sequence[str | None]) -> Steps[list[Event]]:
        wanted = tuple(one for one in ids if one is not None)
        events: list[Event] = yield LoadRequest(session=self.session, ids=wanted)
        return sorted(events, key=lambda event: event.version)

    def _take(self, scene: Scene, message: dict[str, Any], version: int) -> Steps[dict[str, Any]]:
        """Put a message where it belongs, and say what the log has to know of it."""
        read = scene.sizer.read(message)
        data: dict[str, Any] = {"message": message}
        kind = read.kind
        found = scene.unit_of(read.answers) if read.answers else None
        if found is not None:
            unit = yield from self._recent_unit(scene, found[0])
            data["joins"] = unit.first
            scene.join(unit, version, scene.sizer.shown(data), read.answers)
        else:
            if read.answers:
                data["alone"] = True
                kind = "tool"
            scene.add_unit(version, scene.sizer.shown(data), read.calls)
        scene.note(version, kind)
        return data

    def _recent_unit(self, scene: Scene, members: Members) -> Steps[LiveUnit]:
        """Find a unit that is not summarized, and make it recent if it was waiting."""
        first = members[0]
        if first in scene.recent:
            return scene.recent[first]
        unit = scene.shown.get(first)
        if unit is None:
            unit = yield from read_unit(self.session, members, scene.sizer)
        scene.bring_back(unit)
        return unit

    def _make_room(self, scene: Scene, evicted: Sequence[LiveUnit], *, exceeded: bool) -> Steps[None]:
        """Tell what was evicted, summarize if it is time, and take out of view what has no room."""
        if evicted:
            self.tell("on_evict", _messages_of(evicted), "budget")
        if exceeded and not self._options.background:
            yield from self._summarize_if_due()
        if self.scene is not None:
            gone = self.scene.truncate()
            if gone:
                self.tell("on_evict", _messages_of(gone), "truncation")
            yield from self._reread_if_room()

    def _reread_if_room(self) -> Steps[None]:
        scene = self.scene
        if scene is not None and scene.has_room:
            self.scene = yield from read_scene(self.session, scene.version, scene.state, self._options)

    # -- summaries

    def _summarize_if_due(self) -> Steps[None]:
        scene = self.scene
        if scene is None or not self.is_due(scene.state):
            return
        job = yield from self.waiting_job(scene)
        if job is not None:
            yield from self.summarize(job)

    def is_due(self, state: State) -> bool:
        """Tell whether so much waits that a summary is to be written (SPEC E6, E7)."""
        options = self._options
        if options.summarizer is None or state.pending_tokens < max(1, state.retry_tokens):
            return False
        limits = limits_of(options, state.budget_tokens)
        if state.pending_tokens >= limits.threshold_tokens:
            return True
        return (
            state.pending_messages >= limits.threshold_messages
            and 2 * state.pending_tokens >= limits.threshold_tokens
        )

    def waiting_job(self, scene: Scene) -> Steps[Job | None]:
        """Make the job of summarizing what waits: the oldest of it, one budget's worth at most."""
        state = scene.state
        beside = {members[0] for members in state.beside}
        units: list[LiveUnit] = []
        tokens = 0
        if scene.hidden:
            waiting = yield from live_units(self.session, state, stop=state.cut, sizer=scene.sizer)
            waiting = [unit for unit in waiting if unit.first not in beside]
        else:
            waiting = list(scene.shown.values())
        for unit in waiting:
            if units and tokens + unit.tokens > state.budget_tokens:
                break
            units.append(unit)
            tokens += unit.tokens
        return self.job_of(scene, units) if units else None

    def early_job(self, scene: Scene) -> Steps[Job | None]:
        """Make the job of a background summary: what waits, or what will have to leave next."""
        options, state = self._options, scene.state
        if options.summarizer is None:
            return None
        if self.is_due(state):
            return (yield from self.waiting_job(scene))
        limits = limits_of(options, state.budget_tokens)
        if state.pending_messages or state.failures:
            return None  # it waits for more
        if scene.total_tokens + limits.threshold_tokens <= state.budget_tokens:
            return None
        units: list[LiveUnit] = []
        tokens = 0
        for unit in scene.recent.values():
            if tokens >= limits.threshold_tokens:
                return self.job_of(scene, units)
            if not scene.exempt(unit):
                units.append(unit)
                tokens += unit.tokens
        return None

    def job_of(self, scene: Scene, units: Sequence[LiveUnit]) -> Job:
        """Write down what is to be summarized, and in place of what."""
        options, state, limits = (
            self._options,
            scene.state,
            limits_of(self._options, scene.state.budget_tokens),
        )
        messages = sorted((version, message) for unit in units for version, message in unit.members.items())
        cap = limits.max_summary_tokens
        anchored = options.summary_mode == "anchored" and not scene.anchors
        becomes_anchor = anchored and scene.anchor_summary is None
        if becomes_anchor:
            cap = min(cap, limits.max_anchor_tokens)
        elif scene.anchor_summary is not None:
            cap -= scene.anchor_summary.tokens
        elif options.summary_mode == "anchored":
            cap -= scene.anchor_tokens
        summary = scene.summary
        return Job(
            units=tuple(unit.versions for unit in units),
            messages=[copied(message) for _, message in messages],
            unit_tokens=tuple(unit.tokens for unit in units),
            existing=None if summary is None else summary.text,
            existing_tokens=scene.summary_tokens,
            covered_before=0 if summary is None else summary.messages,
            becomes_anchor=becomes_anchor,
            cap_tokens=cap,
            base=state.summary,
            epoch=state.epoch,
        )

    def summarize(self, job: Job) -> Steps[bool]:
        """Have a summary written and put it in force; a failure loses nothing (SPEC E7)."""
        sizer = Sizer(self._options)
        try:
            written = yield from write_summary(job, sizer)
        except SummaryError as error:
            yield from self._settled(self._fail(job, str(error)))
            return False
        return (yield from self._settled(self.put_in_force(job, written)))

    def _settled(self, steps: Steps[bool]) -> Steps[bool]:
        """Carry out a decision that follows a message already stored: it may be lost, the message not."""
        try:
            return (yield from steps)
        except StoreUnavailableError:
            self.scene = None
            _log.warning("session %r: a summary could not be stored; it will be tried again", self.session)
            return False

    def _fail(self, job: Job, why: str) -> Steps[bool]:
        """Remember that a summary failed, so that the next attempt waits until there is more."""
        self.last_failure = why
        _log.warning("session %r: no summary: %s", self.session, why)
        while True:
            scene = yield from self.ready()
            state = scene.state
            if state.summary != job.base or state.epoch != job.epoch:
                return False
            failures = state.failures + 1
            threshold = limits_of(self._options, state.budget_tokens).threshold_tokens
            waiting = state.pending_tokens
            grown = max(waiting + threshold * 2 ** min(failures - 1, 40), 2 * waiting)
            scene.state = replace(state, failures=failures, retry_tokens=grown)
            try:
                yield from self.write(scene, "failed", {"why": why, "messages": len(job.messages)})
            except VersionConflictError:
                continue
            return True

    def put_in_force(self, job: Job, written: Written) -> Steps[bool]:
        """Let a summary stand for what it covers, if that is still as it was; else drop it."""
        for attempt in range(20):
            scene = (yield from self.again()) if attempt else (yield from self.ready())
            state = yield from self._covered(scene, job, written)
            if state is None:
                self.stale_summaries += 1
                return False
            version = scene.version + (1 if self.opened is None else 2)
            place = {"anchor_summary": version} if job.becomes_anchor else {"summary": version}
            scene.state = replace(state, **place)
            data = {
                "text": written.text,
                "messages": job.stands_for,
                "covers": [list(members) for members in job.units],
                "previous": job.base,
                "mode": self._options.summary_mode,
            }
            try:
                yield from self.write(scene, "summary", data)
            except VersionConflictError:
                continue
            break
        else:
            self.stale_summaries += 1
            return False
        self.last_failure = None
        for old, new in written.compressions:
            self.tell("on_summary_compressed", old, new)
        self.tell("on_summarize", copied(job.messages), job.existing, written.text, written.seconds)
        self.scene = yield from read_scene(self.session, scene.version, scene.state, self._options)
        return True

    def _covered(self, scene: Scene, job: Job, written: Written) -> Steps[State | None]:
        """Return the state in which a summary stands for its units; None if it is stale."""
        state = scene.state
        if (state.summary, state.epoch) != (job.base, job.epoch):
            return None
        if job.becomes_anchor and state.anchor_summary:
            return None
        covered = {members[0]: tokens for members, tokens in zip(job.units, job.unit_tokens, strict=True)}
        whole = {members[0]: members for members in job.units}
        border = max(covered) + 1
        beside = {members[0]: members for members in state.beside}
        left = {members[0]: members for members in state.left}
        older = yield from live_units(self.session, state, stop=border, sizer=scene.sizer)
        here = {unit.first: unit for unit in older}
        here.update((first, unit) for first, unit in scene.recent.items() if first < border)
        for first in covered:
            unit = here.get(first)
            if unit is None or unit.versions != whole[first] or scene.exempt(unit):
                return None
        tokens = {"recent": 0, "pending": 0}
        count = {"recent": 0, "pending": 0}
        for first, unit in here.items():
            waits = first in left or (first < state.cut and first not in beside)
            if first in covered:
                tokens["pending" if waits else "recent"] += unit.tokens
                count["pending" if waits else "recent"] += len(unit.members)
                beside.pop(first, None)
                left.pop(first, None)
            elif waits:
                left[first] = unit.versions
            else:
                beside[first] = unit.versions
        return replace(
            state,
            live=max(state.live, border),
            cut=max(state.cut, border),
            beside=tuple(sorted(beside.values())),
            left=tuple(sorted(left.values())),
            waiting=tuple(one for one in state.waiting if one[0][0] not in covered),
            recent_tokens=state.recent_tokens - tokens["recent"],
            recent_messages=state.recent_messages - count["recent"],
            pending_tokens=state.pending_tokens - tokens["pending"],
            pending_messages=state.pending_messages - count["pending"],
            failures=0,
            retry_tokens=0,
        )

    # -- orders of the user

    def setting_budget(self, budget: Any) -> Steps[None]:
        """Change the budget; a smaller one evicts at once, a larger one shows again what was out of view."""
        tokens = budget_tokens(budget)
        scene = yield from self.ready()
        old = scene.state
        scene.state = replace(old, budget_tokens=tokens)
        try:
            scene.require_room()
        except Exception:
            scene.state = old
            raise
        events = self._first_events(scene)
        events.append(self.event(scene, "budget", {"budget_tokens": tokens}))
        total, exceeded = scene.total_tokens, scene.over
        evicted = scene.cut() if exceeded else []
        if evicted:
            events.append(self._evicted(scene, evicted))
        yield from self.append(scene, events)
        if exceeded:
            self.tell("on_budget_exceeded", total, tokens)
        yield from self._make_room(scene, evicted, exceeded=exceeded)

    def setting_anchors(self, messages: Sequence[Any]) -> Steps[None]:
        """Replace the anchors."""
        if isinstance(messages, (str, Mapping)) or not isinstance(messages, Sequence):
            raise ConfigurationError(f"anchors is a list of messages, not {messages!r:.80}")
        plain = [plain_message(message) for message in messages]
        scene = yield from self.ready()
        for message in plain:
            scene.sizer.read(message)
        version = scene.version + (1 if self.opened is None else 2)
        old = scene.state, scene.anchors, scene.anchor_summary
        summary = scene.anchor_summary if scene.summary is None else scene.summary
        scene.anchors = plain
        scene.state = replace(scene.state, anchors=version, epoch=scene.state.epoch + 1, anchor_summary=0)
        if scene.anchor_summary is not None and plain and scene.summary is None:
            # given anchors take its place; what it stands for must not be lost
            scene.summary = summary
            scene.state = replace(scene.state, summary=scene.anchor_summary.version)
        scene.anchor_summary = None
        scene.measure()
        try:
            scene.require_anchor_room()
            scene.require_room()
        except Exception:
            scene.state, scene.anchors, scene.anchor_summary = old
            self.scene = None
            raise
        events = self._first_events(scene)
        total, exceeded = scene.total_tokens, scene.over
        events.append(self.event(scene, "anchors", {"anchors": plain}))
        evicted = scene.cut() if exceeded else []
        if evicted:
            events.append(self._evicted(scene, evicted))
        yield from self.append(scene, events)
        if exceeded:
            self.tell("on_budget_exceeded", total, scene.state.budget_tokens)
        yield from self._make_room(scene, evicted, exceeded=exceeded)

    def clearing(self) -> Steps[None]:
        """Begin anew: nothing said so far is in view; anchors return to those given."""
        scene = yield from self.ready()
        version = scene.version + (1 if self.opened is None else 2)
        state = scene.state
        scene.state = State(
            budget_tokens=state.budget_tokens,
            options=state.options,
            live=version + 1,
            cut=version + 1,
            epoch=state.epoch + 1,
        )
        yield from self.write(scene, "cleared", {})
        self.scene = yield from read_scene(self.session, scene.version, scene.state, self._options)

    def pinning(self, event_id: str, *, pinned: bool) -> Steps[None]:
        """Keep a message in every view, or no longer."""
        scene = yield from self.ready()
        event = yield from self.message_event(event_id)
        state, version = scene.state, event.version
        if not pinned:
            if version not in state.pins:
                return
            scene.state = replace(state, pins=tuple(one for one in state.pins if one != version))
            yield from self.write(scene, "unpinned", {"event": event_id})
            return
        if version in state.pins:
            return
        first = event.data.get("joins", version)
        unit = scene.recent.get(first) or (yield from self._waiting_unit(scene, first))
        if unit is None:
            raise ConfigurationError(
                f"event {event_id!r} is not in reach any more: a summary stands for it, or the session was cleared."
                " undo() the summary first"
            )
        if first not in scene.recent:
            scene.bring_back(unit)
        scene.state = replace(scene.state, pins=tuple(sorted((*state.pins, version))))
        yield from self.write(scene, "pinned", {"event": event_id})
        yield from self._make_room(scene, (), exceeded=False)

    def _waiting_unit(self, scene: Scene, first: int) -> Steps[LiveUnit | None]:
        if first in scene.shown:
            return scene.shown[first]
        units = yield from live_units(self.session, scene.state, stop=scene.state.cut, sizer=scene.sizer)
        return next((unit for unit in units if unit.first == first), None)

    def message_event(self, event_id: str) -> Steps[Event]:
        """Read the event of a message.

        Raises:
            UnknownNameError: There is no such event, or it is none of a message.
        """
        events: list[Event] = yield LoadRequest(session=self.session, ids=(event_id,))
        if not events or events[0].kind != "message":
            what = f"event {event_id!r} is no message" if events else f"there is no event {event_id!r}"
            raise UnknownNameError(f"session {self.session!r}: {what}", name=str(event_id))
        return events[0]

    def undoing(self, event_id: str | None) -> Steps[Event]:
        """Take back a summary or an eviction, and those after it."""
        scene = yield from self.ready()
        target = yield from self._decision(scene, event_id)
        scene.state = yield from self._taken_back(scene, target.version)
        yield from self.write(scene, "undone", {"event": target.id, "version": target.version})
        self.scene = yield from read_scene(self.session, scene.version, scene.state, self._options)
        return target

    def _taken_back(
        self, scene: Scene, version: int, rewritten: Mapping[int, Event] | None = None
    ) -> Steps[State]:
        """Return the state without the decisions from a version on; messages, pins and budget stay."""
        instead = {} if rewritten is None else rewritten
        before = state_of((yield from event_at(self.session, version - 1)), self.session)
        while before.summary:
            summary = yield from event_at(self.session, before.summary)
            if not instead.get(before.summary, summary).data.get("stale"):
                break
            before = state_of((yield from event_at(self.session, before.summary - 1)), self.session)
        state = scene.state
        beside = {members[0]: members for members in before.beside}
        left = {members[0]: members for members in before.left}
        for members in state.beside:
            first, late = members[0], members[-1] >= before.cut
            if first < before.cut and (first in beside or late or not set(members).isdisjoint(state.pins)):
                beside[first] = members
                left.pop(first, None)
        for members in state.left:
            if members[0] < before.cut <= members[-1]:
                left[members[0]] = members
                beside.pop(members[0], None)
        waiting = {members[0]: (members, ids) for members, ids in before.waiting if members[0] < state.live}
        waiting.update((members[0], (members, ids)) for members, ids in state.waiting)
        made = replace(
            state,
            summary=before.summary,
            anchor_summary=before.anchor_summary,
            live=before.live,
            cut=before.cut,
            beside=tuple(sorted(beside.values())),
            left=tuple(sorted(left.values())),
            waiting=tuple(one for _, one in sorted(waiting.items())),
            failures=0,
            retry_tokens=0,
            epoch=state.epoch + 1,
        )
        return (
            yield from counted_again(
                self.session, made, version=scene.version, sizer=scene.sizer, instead=instead
            )
        )

    def _decision(self, scene: Scene, event_id: str | None) -> Steps[Event]:
        """Find the decision to take back: the one named, or the newest in force."""
        undone = scene.version + 1
        pages = Pages(self.session, after=0, before=scene.version + 1, newest_first=True)
        while events := (yield from pages.next()):
            for event in events:
                if event.kind == "cleared":
                    break
                if event.kind in ("undone", "redacted"):
                    undone = min(undone, event.data["version"])
                elif event.kind in DECISIONS and event.version < undone and event_id in (None, event.id):
                    return event
            else:
                continue
            break
        what = "no summary and no eviction in force" if event_id is None else f"no such decision {event_id!r}"
        raise UnknownNameError(
            f"session {self.session!r} has {what} that could be undone", name=str(event_id or "")
        )

    # -- redaction

    def redacting(self, ids: Sequence[str]) -> Steps[list[Event]]:
        """Overwrite what messages say, and drop the summaries that may repeat it."""
        if isinstance(ids, str):
            ids = [ids]
        scene = yield from self.ready()
        targets = []
        for event_id in dict.fromkeys(ids):
            targets.append((yield from self.message_event(event_id)))
        if not targets:
            raise ConfigurationError("redact() needs at least one event id")
        stale = yield from self._summaries_over({event.version for event in targets}, scene.version)
        rewrites = [replace(event, data=_redacted_data(event.data)) for event in targets]
        rewrites += [
            replace(event, data={**event.data, "text": "", "stale": True}) for event in stale.values()
        ]
        instead = {event.version: event for event in rewrites}
        first = yield from self._first_stale(scene, set(stale))
        if first is not None:
            scene.state = yield from self._taken_back(scene, first, instead)
        else:
            state = replace(scene.state, epoch=scene.state.epoch + 1)
            scene.state = yield from counted_again(
                self.session, state, version=scene.version, sizer=scene.sizer, instead=instead
            )
        data = {
            "events": [event.id for event in targets],
            "stale": [event.id for event in stale.values()],
            "version": scene.version + 1 if first is None else first,
        }
        yield from self.write(scene, "redacted", data, rewrites=rewrites)
        self.scene = yield from read_scene(self.session, scene.version, scene.state, self._options)
        return targets

    def _summaries_over(self, versions: set[int], newest: int) -> Steps[dict[int, Event]]:
        """Find every summary that covers one of these messages, or builds on one that does."""
        found: dict[int, Event] = {}
        pages = Pages(self.session, after=min(versions), before=newest + 1, newest_first=False)
        while events := (yield from pages.next()):
            for event in events:
                if event.kind != "summary":
                    continue
                covers = {version for members in event.data["covers"] for version in members}
                if event.data["previous"] in found or not covers.isdisjoint(versions):
                    found[event.version] = event
        return found

    def _first_stale(self, scene: Scene, stale: set[int]) -> Steps[int | None]:
        """Return the oldest stale summary among those in force stand on; None if none does."""
        state, first = scene.state, None
        if state.anchor_summary in stale:
            return state.anchor_summary
        version = state.summary
        while version in stale:
            first = version
            version = (yield from event_at(self.session, version)).data["previous"]
        return first

    def deleting(self) -> Steps[None]:
        """Remove the session from its store."""
        yield Delete(self.session)
        self.scene, self.job = None, None
        if self.given is None:
            self.options = None


def _messages_of(units: Sequence[LiveUnit]) -> list[dict[str, Any]]:
    messages = sorted((version, message) for unit in units for version, message in unit.members.items())
    return [copied(message) for _, message in messages]


def _redacted_data(data: Mapping[str, Any]) -> dict[str, Any]:
    return {**data, "message": redacted(data["message"]), "redacted": True}
