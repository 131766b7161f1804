"""The basis of all operations of a session: its state, how it is stored, and who is notified."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from trimtab._fitting.request import budget_of
from trimtab._shared import observers
from trimtab._shared.checks import is_whole, whole_of
from trimtab.budget import Budget
from trimtab.errors import (
    EVENT,
    ROOM,
    ConfigurationError,
    PrunedError,
    SessionDeletedError,
    SessionExpiredError,
    UnknownNameError,
    VersionConflictError,
    option,
    phrase,
)
from trimtab.report.text import one_line
from trimtab.session.calibration import Calibration
from trimtab.session.effects import AskLabels, Steps
from trimtab.session.hooks import HookName, hooks_by_name
from trimtab.session.log import all_there, event_at, kept_of, read_working_set, recount, state_of
from trimtab.session.messages import MessageReader
from trimtab.session.options import (
    FUNCTIONS,
    Clamp,
    Options,
    as_given,
    clamp_for,
    functions_of,
    known_options,
    missing_functions,
    omitted_functions,
    other_form,
)
from trimtab.session.recollection import RankerFailures
from trimtab.session.rule_record import SessionRule
from trimtab.session.schema import check_options
from trimtab.session.state import State
from trimtab.session.working_set import WorkingSet
from trimtab.stores import Appended, AppendRequest, Event, LoadRequest
from trimtab.stores.labels import LABELS, differ

if TYPE_CHECKING:
    from trimtab._fitting.observation import SessionEventKind

_log = logging.getLogger("trimtab.session")

_REFRESHES = 20
"""How often a session is read again if it is deleted while it is read."""


def warn(session: str, what: str, why: object) -> None:
    """Log a failure that stops nothing. `why` may be others' words: they cannot steer a terminal."""
    _log.warning("session %r: %s: %s", session, what, one_line(why))


def new_event_id() -> str:
    """Make an id that sorts by time, so that an index grows at its end."""
    return f"{time.time_ns() // 1_000_000:012x}{secrets.token_hex(8)}"


def id_of(event: object, /) -> str:
    """Return the id of an event, which may be given itself."""
    given = event.id if isinstance(event, Event) else event
    if not isinstance(given, str):
        raise ConfigurationError(
            f"pass an event, from add() or history(), or its id, not {event!r:.80} ({type(event).__name__})"
        )
    return given


class ViewGiven(NamedTuple):
    """A view that was returned to be sent."""

    version: int
    """Of the session."""
    counted_tokens: int
    first: int
    """Version of its oldest message; 0 if it has none."""


class ViewShown(NamedTuple):
    """What a returned view looked like, if the model binds its thinking to it."""

    keys: list[int]
    """One for each message, the same for the same message."""
    stale: frozenset[int]
    """Versions of the messages whose thinking is bound to something else."""


class Core:
    """A session as its operations see it; `Session` is the public class."""

    def __init__(self, session: str, given: Mapping[str, Any], *, begins: bool, allow_missing: bool) -> None:
        self.session = session
        self.given: Mapping[str, Any] = given
        """Options that were passed here; omitted ones are as in the log."""
        self.begins = begins
        """Whether to begin a session that is not in the store."""
        self.allow_missing = allow_missing
        self.options: Options | None = Options(**given) if begins else None
        """The current options; until the log was read, those that were passed."""
        self.working_set: WorkingSet | None = None
        """None: to be read from the log before anything else."""
        self.last_working_set: WorkingSet | None = None
        """What a property shows while no operation runs."""
        self._incarnation: str | None = None
        """Which session of its name this object knows; None: it knows of none."""
        self._bound = False
        """Whether every request means that one; otherwise the next request takes the existing one."""
        self._labelled = False
        """Whether the labels that were passed are in its log: from then on those there hold."""
        self.opened: dict[str, Any] | None = None
        """Options that the log does not know yet; they are written with the next event."""
        self.opened_state = State()
        """The version of the session when they were passed: decisions of the next event are later."""
        self.behind = False
        """Whether options given at opening put messages out of view, and none was summarized since."""
        self.job: object = None
        """What is being written in the background, a summary or facts."""
        self.weighed: Any = None
        """What is out of view and was not yet read for facts, as far as it was counted."""
        self.missing: dict[str, Any] = {}
        """Functions the session was made with and goes on without, as the log remembers them."""
        self.view_given: ViewGiven | None = None
        self.view_shown: ViewShown | None = None
        """The last view that this object returned: reported usage is for it."""
        self.clock: Callable[[], float] = time.time
        """Returns the time of an event."""
        self.rules_found: list[str] = []
        """Ids of the rules found in messages that are being added."""
        self.rule_dropped: SessionRule | None = None
        """The rule that was dropped last, for an answer that was lost."""
        self.hook_errors = 0
        self.stale_summaries = 0
        self.last_failure: str | None = None
        self.last_fact_failure: str | None = None
        self.ranker_failures = RankerFailures()

    def ready(self) -> Steps[WorkingSet]:
        """Read the state of the session, unless it is known."""
        if self.working_set is None:
            newest = yield LoadRequest(session=self.session, limit=1, newest_first=True)
            self._meet(newest[0].incarnation if newest else None)
            self.working_set = (yield from self._open(newest[0])) if newest else self.begin()
        if self.in_force.context_changed:
            self.in_force.measure_context()
            options, state = self.in_force, self.working_set.state
            grown = state.with_room(options.budget_tokens).grown_from(
                state, target_ratio=self.working_set.target_ratio
            )
            self.working_set.state = grown
            if self.working_set.version:
                yield from self.reread(self.working_set)
        return self.working_set

    def incarnation(self) -> str | None:
        """Say which session of its name is meant; None: whichever is there."""
        return self._incarnation if self._bound else None

    def _meet(self, incarnation: str | None) -> None:
        """Note which session is there; what was begun on another one of its name has no place in it."""
        if self._incarnation not in (None, incarnation):
            self.job = self.weighed = self.view_given = None
            self.last_failure = self.last_fact_failure = None
            self._labelled = False
        self._incarnation = incarnation
        self._bound = bool(incarnation)

    def release(self) -> None:
        """From now on use the session that has the name: this one was removed, or must be read again."""
        self._bound = False

    def options_of(self, known: Mapping[str, Any]) -> Options:
        """Make the options in the log, with the functions that were passed again and the current context."""
        return self._with_context(Options(**as_given(known, functions_of(self.in_force))))

    def _with_context(self, options: Options) -> Options:
        if self.options is not None and self.options.context is not None:
            options.context = self.options.context  # the very one that was handed out to be changed
        return options

    def begin(self) -> WorkingSet:
        """Begin a session that is not in the store."""
        if not self.begins:
            raise UnknownNameError(
                f"there is no session {self.session!r} in this store", name=self.session, near=()
            )
        options = self._with_context(Options(**self.given))
        if not options.budget_tokens and options.context is None and options.model is not None:
            options = copy(options)  # those given name no budget, also where another was faster to begin
            options.resolved = budget_of(None, options.model)
            options.budget_tokens = options.resolved.input_tokens
        if not options.budget_tokens and options.context is None:
            raise ConfigurationError(
                phrase(
                    f"session {self.session!r} is new and has no budget: pass ",
                    ROOM,
                    ", or ",
                    option("model"),
                    " (its window)",
                ),
                argument="budget",
            )
        self.options, self.behind = options, False
        self.opened = options.to_data()
        state = State(budget_tokens=options.budget_tokens, newest_summary=0)
        working_set = WorkingSet.begin(MessageReader(options), state, version=0)
        if options.context is None:  # whose other blocks may change until a view is asked for
            working_set.require_room()
        working_set.require_anchor_room()
        self.opened_state = working_set.state
        return working_set

    def _open(self, head: Event) -> Steps[WorkingSet]:
        state = state_of(head, self.session)
        known = yield from self.known_options(state.options, now=True)
        yield from self._heed_switch(state, known)
        given = {name: one for name, one in self.given.items() if not (self._labelled and name in LABELS)}
        options = self._with_context(Options(**as_given(known, given)))
        if options.wire_format.name != known["format"]:
            raise other_form(self.session, known["format"], options.wire_format.name)
        missing = missing_functions(known, self.given)
        if missing is not None and not self.allow_missing:
            raise ConfigurationError(
                f"session {self.session!r} was made with {missing} and is opened without it: pass it again,"
                " or allow_missing=True to go on without it"
            )
        if options.context is None and "context" in self.given and not options.budget_tokens:
            raise ConfigurationError(
                f"session {self.session!r} had the budget of its Context, and is opened with context=None:"
                f" pass {ROOM.text}",
                argument="budget",
            )
        self._require_life(head, known["ttl"], options.ttl)
        self.options, self.missing = options, omitted_functions(known, self.given)
        data = self.options_data()
        changed = {name for name in data if name != "given" and data[name] != known.get(name)}
        relabelled = differ(data, known)
        functions = any(bool(data["given"][name]) != bool(known["given"].get(name)) for name in FUNCTIONS)
        self.opened = data if changed or functions or relabelled else None
        self._labelled = self._labelled or not relabelled
        state = _with_room_of(options, state, changed)
        if "anchors" in changed:
            state = state.with_anchors(0)
        if "rules" in changed:
            state = state.with_host_rules(0)
        if not changed.isdisjoint(("counted_by", "model")):
            state = state.with_calibration(Calibration())
        if "counted_by" in changed or options.clamp != self._clamp_known(known):
            state = yield from recount(
                self.session, state, version=head.version, reader=MessageReader(options)
            )
        working_set = yield from read_working_set(self.session, head.version, state, options)
        if self.begins and options.context is None:
            # Without, the options held once: what counts higher now must not keep the log from being read.
            working_set.require_room()
        if "anchors" in changed:
            working_set.require_anchor_room()
        self.opened_state = working_set.state
        self.behind = (self.behind or self.opened is not None) and working_set.hidden_messages(
            working_set.in_view()
        ) > 0
        return working_set

    def _require_life(self, newest: Event, known: float | None, given: float | None) -> None:
        """Refuse to open a session whose time to live is over: to go on with it would seem to revive it.

        That time is the one in the log: a shorter one that is passed now begins with the next event.
        """
        now = self.clock()
        if known is None or given is None:
            return
        ttl = max(known, given)
        if newest.time + ttl > now:
            return
        raise SessionExpiredError(
            f"session {self.session!r} has expired: its newest event is {now - newest.time:,.0f} seconds old,"
            f" and its ttl is {ttl:,.0f} seconds. To begin anew, delete it first: store.delete"
            f"({self.session!r}) or store.expire(); to keep it, pass ttl=None or a longer ttl to Session(…)",
            session=self.session,
            expired=newest.time + ttl,
        )

    def go_on_with(self, options: Options, given: Mapping[str, Any]) -> None:
        """Go by the options of a switch, whatever was passed before it."""
        self.options = options
        self._forget_before_switch(options.model, options.budget_tokens, over_limit=options.over_limit)
        self.given = {**self.given, **given}
        self.missing = {name: one for name, one in self.missing.items() if name not in given}
        self.view_given = self.view_shown = self.weighed = None

    def _forget_before_switch(self, model: str | None, budget_tokens: int, *, over_limit: bool) -> None:
        """Have a model and a budget in the place of those that were passed before a switch."""
        instead = {"model": model, "budget": Budget(budget_tokens, over_limit=over_limit)}
        given = {name: one for name, one in self.given.items() if name != "message_overhead"}
        self.given = {**given, **{name: one for name, one in instead.items() if name in given}}

    def _heed_switch(self, state: State, known: Mapping[str, Any]) -> Steps[None]:
        """Follow a switch that another worker made; refuse to open a session with the model before it."""
        if not state.switched:
            return
        seen = self.last_working_set
        if seen is not None and seen.version < state.switched:
            self._forget_before_switch(known["model"], known["budget_tokens"], over_limit=known["over_limit"])
            self.view_given = self.view_shown = self.weighed = None
            return
        model = self.given.get("model")
        if model is None or model == known["model"]:
            return
        event = yield from event_at(self.session, state.switched, "options")
        if event.data.get("switch", {}).get("model") == model:
            raise ConfigurationError(
                phrase(
                    f"session {self.session!r} was switched from {model!r} to {known['model']!r} at version"
                    f" {state.switched}, and is opened with ",
                    option("model", model),
                    ": leave ",
                    option("model"),
                    f" out to go on with {known['model']!r}, and call switch({model!r}) to go back",
                ),
                argument="model",
            )

    def _clamp_known(self, known: Mapping[str, Any]) -> Clamp | None:
        """Say which results were cut when the sizes in the log were counted."""
        ratio, budget_tokens = known["max_result_ratio"], known.get("budget_tokens")
        if ratio is None:
            return None
        if is_whole(budget_tokens, least=1):
            return clamp_for(ratio, budget_tokens, known.get("tools"))
        return self.options_of(known).clamp  # the budget is a context's

    def options_data(self) -> dict[str, Any]:
        """Write the current options; others with the missing functions may open the session later."""
        data = self.in_force.to_data()
        data["given"].update(self.missing)
        return data

    def known_options(self, version: int, *, now: bool = False) -> Steps[dict[str, Any]]:
        """Read the options at a version; `now`: where an older trimtab wrote no labels, ask for them."""
        event = yield from event_at(self.session, version, "options")
        data = event.data["options"]
        check_options(data, f"session {self.session!r}: event {version} (options)")
        labels = (yield AskLabels(self.session)) if now and "owner" not in data else {}
        return known_options({**data, **labels})

    def refresh(self) -> Steps[WorkingSet]:
        """Read the session that has the name now, even if it is a different one."""
        for _ in range(_REFRESHES):
            self.release()
            try:
                return (yield from self.again())
            except SessionDeletedError:
                continue  # while it was read another worker deleted it: there is another now, or none
        self.release()
        return (yield from self.again())

    def again(self) -> Steps[WorkingSet]:
        """Read the session again: another writer may have added events."""
        self.working_set, self.last_working_set = None, self.working_set or self.last_working_set
        return (yield from self.ready())

    def reread(self, working_set: WorkingSet) -> Steps[None]:
        """Read what is in view from the state of a working set."""
        self.working_set = yield from read_working_set(
            self.session, working_set.version, working_set.state, self.in_force
        )

    def write(
        self,
        working_set: WorkingSet,
        kind: str,
        data: Mapping[str, Any],
        *,
        rewrites: Sequence[Event] = (),
        id: str | None = None,
        erase: bool = True,
    ) -> Steps[Event]:
        """Append one event, with the current state of the working set."""
        made = self.first_events(working_set)
        made.append(self.event(working_set, kind, data, id=id))
        yield from self.append(working_set, made, rewrites=rewrites, erase=erase)
        return replace(made[-1], version=working_set.version)

    def next_version(self, working_set: WorkingSet) -> int:
        """Return the version of the next event; options that the log lacks come before it."""
        return working_set.version + (1 if self.opened is None else 2)

    def first_events(self, working_set: WorkingSet) -> list[Event]:
        """Make the event with the options, if the log does not know them."""
        if self.opened is None:
            return []
        version = working_set.version + 1
        working_set.state = working_set.state.with_options(version)
        made = self.event(working_set, "options", {"options": self.opened})
        return [replace(made, state=self.opened_state.with_options(version).to_dict())]

    def event(
        self, working_set: WorkingSet, kind: str, data: Mapping[str, Any], *, id: str | None = None
    ) -> Event:
        """Make an event with the current state of the working set."""
        return Event(
            id=new_event_id() if id is None else id,
            kind=kind,
            time=self.clock(),
            data=data,
            state=working_set.state.to_dict(),
        )

    def append(
        self,
        working_set: WorkingSet,
        events: Sequence[Event],
        *,
        rewrites: Sequence[Event] = (),
        erase: bool = True,
    ) -> Steps[Appended]:
        """Write events; if that fails, the decisions made on the way are forgotten."""
        self.working_set, self.last_working_set = None, working_set
        done: Appended = yield AppendRequest(
            session=self.session,
            expected_version=working_set.version,
            events=events,
            rewrites=rewrites,
            erase=erase,
        )
        if done.duplicate:
            # The answer to this very append may have been lost on the way.
            stored: list[Event] = yield LoadRequest(session=self.session, ids=(events[0].id,))
            if [(one.version, one.state) for one in stored] != [(working_set.version + 1, events[0].state)]:
                return done
        if not self._bound:
            self._meet(done.incarnation)
        if observers.active:
            self._announce_orders(events, after=working_set.version)
        version = working_set.version + len(events)
        working_set.version, self.working_set, self.opened = version, working_set, None
        self._labelled = True
        return Appended(version, incarnation=done.incarnation)

    def drop_answer(self, of: Literal["summary", "facts"], *, messages: int) -> None:
        """Note an answer that came after its messages had changed."""
        self.stale_summaries += 1
        self.announce("stale", of=of, messages=messages)

    def announce(self, kind: SessionEventKind, **facts: Any) -> None:
        """Notify the observers of the process; `tell` notifies hooks."""
        if observers.active:
            from trimtab._fitting.observation import SessionEvent  # not above: only who is looked at needs it

            if facts.get("error") is not None:
                facts["error"] = one_line(facts["error"])
            observers.tell(SessionEvent(session=self.session, kind=kind, **facts))

    def _announce_orders(self, events: Sequence[Event], *, after: int) -> None:
        """Announce what the log says by itself; of answers of models whoever asked for them says more."""
        for version, event in enumerate(events, after + 1):
            facts = _facts_of(event)
            if facts is not None:
                self.announce(cast("SessionEventKind", event.kind), version=version, **facts)

    def tell(self, hook: HookName, *arguments: Any) -> None:
        """Call a hook; its exceptions are logged and counted, and stop nothing (SPEC E8)."""
        function = hooks_by_name(self.in_force.hooks)[hook]
        if function is None:
            return
        try:
            function(*arguments)
        # SPEC E8: the one place where what is raised goes no further.
        except Exception:
            self.hook_errors += 1
            _log.exception("hook %s of session %r failed", hook, self.session)

    @property
    def in_force(self) -> Options:
        """The current options of the session."""
        if self.options is None:
            raise RuntimeError("the session was not opened")
        return self.options

    def known_event(self, event_id: str) -> Steps[Event | None]:
        """Read an event by its id, None if there is none.

        Another writer may have added it: then the session is read again, and what was read of it before is
        stale.
        """
        yield from self.ready()
        events: list[Event] = yield LoadRequest(session=self.session, ids=(event_id,))
        if events and self.working_set is not None and events[0].version > self.working_set.version:
            yield from self.again()
        return events[0] if events else None

    def message_event(self, event_id: str, *, unfinished: bool = False) -> Steps[Event]:
        """Read the event of a message, as `known_event` does.

        `unfinished`: also one that an interrupted order has yet to remove.
        """
        event = yield from self.known_event(event_id)
        state = (yield from self.ready()).state
        kept = all_there(self.session, state) if unfinished else (yield from kept_of(self.session, state))
        if event is not None and not kept.has(event):
            raise (yield from self.prune_error(f"event {event_id!r}", name=event_id))
        if event is None or event.kind != "message":
            what = f"event {event_id!r} is not a message" if event else f"there is no event {event_id!r}"
            raise UnknownNameError(phrase(f"session {self.session!r}: {what}; ", EVENT), name=str(event_id))
        return event

    def known_version(self, version: int | None) -> Steps[int]:
        """Return a version of the log; the newest for None."""
        working_set = yield from self.ready()
        if version is None:
            return working_set.version
        asked = whole_of(version)
        if asked is not None and asked > working_set.version:
            working_set = yield from self.again()  # another writer may have added it
        if asked is None or not 0 <= asked <= working_set.version:
            raise ConfigurationError(
                f"session {self.session!r} has the versions 0 to {working_set.version}, not {version!r:.80}"
            )
        if 0 < asked < working_set.state.oldest:
            raise (yield from self.prune_error(f"version {asked:,}", name=str(asked)))
        return asked

    def prune_error(self, what: str, *, name: str, hint: str = "") -> Steps[PrunedError]:
        """Make the error of what was pruned, or stands on that; say when, if this log knows."""
        state = (yield from self.ready()).state
        shown = f"; the oldest version that can be shown is {state.oldest:,}" if state.oldest else ""
        when = ""
        if state.pruned:
            event = yield from event_at(self.session, state.pruned, "pruning")
            when = f" on {time.strftime('%Y-%m-%d', time.gmtime(event.time))}"
        return PrunedError(
            f"session {self.session!r}: {what} was pruned{when}{shown}{hint}",
            name=name,
            session=self.session,
            oldest=state.oldest or None,
        )

    def require_newest(self, known: int) -> Steps[None]:
        """Have an operation repeated that met what another writer pruned after a version that was known."""
        newest = yield LoadRequest(session=self.session, limit=1, newest_first=True)
        if newest and newest[0].version != known:
            self.working_set = None
            raise VersionConflictError(
                f"session {self.session!r} was pruned since this object read it at version {known}, and"
                f" is at version {newest[0].version} now: nothing was changed. Repeat the call",
                session=self.session,
                expected_version=known,
                actual_version=newest[0].version,
            )


def _facts_of(event: Event) -> dict[str, Any] | None:
    """Describe an event in numbers; None if it is announced elsewhere, or not at all."""
    data = event.data
    match event.kind:
        case "evicted":
            return {"messages": sum(map(len, data["units"]))}
        case "recalled":
            return {"messages": sum(map(len, data["units"])), "error": data.get("error")}
        case "redacted":
            return {"messages": len(data["events"])}
        case "anchors":
            return {"messages": len(data["anchors"])}
        case "popped" | "pinned" | "unpinned":
            return {"messages": 1}
        case "budget":
            return {"tokens": data["budget_tokens"]}
        case "usage":
            return {"tokens": data["input_tokens"]}
        case "undone" | "cleared":
            return {}
        case _:
            return None


def _with_room_of(options: Options, state: State, changed: AbstractSet[str]) -> State:
    """Go by the budget of options that are opened; `changed` are those that are not as they were."""
    if "budget_tokens" in changed or options.context is not None:
        before, state = state, state.with_room(options.budget_tokens)
        larger = "budget_tokens" in changed and state.budget_tokens > before.budget_tokens
        state = state.grown_from(before, target_ratio=1.0 if larger else options.target_ratio)
    if (
        state.budget_tokens and options.resolved is not None and not options.resolved.over_limit
    ):  # a budget that was set, as well
        most_tokens = Budget.of(Budget(state.budget_tokens), model=options.model).input_tokens
        state = state if state.budget_tokens <= most_tokens else state.with_room(most_tokens)
    return state if changed.isdisjoint(("target_ratio", "strategy", "recall_ratio")) else state.without_cut()
