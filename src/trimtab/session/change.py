"""Changes by the user (budget, anchors, pins, a new start) and by the provider's reports (SPEC A1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trimtab.counting.usage import Usage, usage_of
from trimtab.errors import ConfigurationError
from trimtab.session.add import cut_down, eviction, make_room
from trimtab.session.calibration import Calibration
from trimtab.session.core import Core, ViewGiven, id_of
from trimtab.session.effects import Delete, Steps
from trimtab.session.facts import read_facts
from trimtab.session.log import event_at, living_unit, opener_of
from trimtab.session.messages import SessionUnit
from trimtab.session.options import check_anchor, session_budget
from trimtab.session.plain import plain_message
from trimtab.session.summarize import CATCH_UP
from trimtab.session.working_set import WorkingSet
from trimtab.stores import Event


def change_budget(core: Core, budget: Any) -> Steps[None]:
    """Change the budget; a smaller one evicts at once, a larger one shows again what was out of view."""
    working_set = yield from core.ready()
    options = core.in_force
    resolved = session_budget(budget, options.tokens_by, options.tools, model=options.model)
    tokens = resolved.input_tokens
    if options.context is not None:
        raise ConfigurationError(
            "the budget of this session is its Context's: open the session with another Context, or change"
            " the other blocks of session.context"
        )
    core.working_set = None  # until everything is written
    seen, before = working_set.view(), working_set.state
    working_set.state = before.with_budget(tokens)
    working_set.require_room()
    working_set.facts = yield from read_facts(core.session, working_set.state, working_set.reader)
    if options.resolved is None or options.resolved.over_limit != resolved.over_limit:
        options.resolved = resolved  # whether it may pass what the model takes is remembered with the options
        core.opened, core.opened_state = core.options_data(), before
    yield from write_change(core, working_set, "budget", {"budget_tokens": tokens}, seen=seen)
    options.resolved = resolved


def replace_anchors(core: Core, messages: Sequence[Any]) -> Steps[None]:
    """Replace the anchors."""
    if isinstance(messages, (str, Mapping)) or not isinstance(messages, Sequence):
        raise ConfigurationError(
            f"anchors must be a list of messages, not {messages!r:.80}", argument="anchors"
        )
    plain = [plain_message(message) for message in messages]
    working_set = yield from core.ready()
    for at, message in enumerate(plain):
        working_set.reader.read(message)
        check_anchor(working_set.reader.format, message, at)
    version = core.next_version(working_set)
    core.working_set = None  # until everything is written
    seen = working_set.view()
    working_set.anchors = plain
    working_set.state = working_set.state.with_anchors(version)
    working_set.measure()
    working_set.require_anchor_room()
    working_set.require_room()
    yield from write_change(core, working_set, "anchors", {"anchors": plain}, seen=seen)


def write_change(
    core: Core,
    working_set: WorkingSet,
    kind: str,
    data: Mapping[str, Any],
    *,
    seen: Mapping[int, SessionUnit],
    id: str | None = None,
) -> Steps[None]:
    """Write an order to the log, and make the room it needs."""
    events = core.first_events(working_set)
    events.append(core.event(working_set, kind, data, id=id))
    total = working_set.state.calibration.expected_tokens(working_set.total_tokens)
    exceeded = working_set.over
    evicted = cut_down(core, working_set, events) if exceeded else []
    yield from core.append(working_set, events)
    if exceeded:
        core.announce("exceeded", tokens=total)
        core.tell("on_budget_exceeded", total, working_set.state.budget_tokens)
    yield from make_room(core, working_set, evicted, summarizes=exceeded, summaries=CATCH_UP, seen=seen)


def cut_view(core: Core) -> Steps[int]:
    """Cut the view as if over budget; return how many messages were evicted."""
    working_set = yield from core.ready()
    seen = working_set.view()
    core.working_set = None  # until everything is written; where nothing leaves it is read again
    events = core.first_events(working_set)
    state = working_set.state
    leaving = working_set.cut()
    if working_set.state == state:
        return 0
    events.append(eviction(core, working_set, leaving))
    yield from core.append(working_set, events)
    yield from make_room(core, working_set, leaving, summarizes=True, seen=seen)
    after = (yield from core.ready()).view()
    return sum(len(unit.members) for first, unit in seen.items() if first not in after)


def begin_anew(core: Core) -> Steps[None]:
    """Start over with an empty view; anchors return to the initial ones."""
    working_set = yield from core.ready()
    version = core.next_version(working_set)
    state = working_set.state.without_messages(version)
    begun = WorkingSet.begin(working_set.reader, state, version=version)
    begun.require_room()
    if begun.anchors != working_set.anchors:
        begun.require_anchor_room()
    working_set.state = state
    yield from core.write(working_set, "cleared", {})
    yield from core.reread(working_set)


def set_pin(core: Core, given: Event | str, *, pinned: bool) -> Steps[None]:
    """Keep a message in every view, or no longer."""
    event_id = id_of(given)
    event = yield from core.message_event(event_id)
    working_set = yield from core.ready()
    state, version, seen = working_set.state, event.version, working_set.view()
    if not pinned:
        if version not in state.pins:
            return
        working_set.state = state.without_pin(version)
        yield from core.write(working_set, "unpinned", {"event": event_id})
        yield from make_room(core, working_set, seen=seen)
        return
    if version in state.pins:
        return
    first = event.data.get("joins", version)
    unit = yield from living_unit(core.session, working_set, first)
    if unit is None or version not in unit.members:
        raise ConfigurationError(
            f"event {event_id!r} is out of reach: a summary replaced it, it was popped, or the session was"
            " cleared or pruned. undo() the summary first"
        )
    yield from call_back(core, working_set, unit)
    working_set.state = working_set.state.with_pin(version)
    yield from core.write(working_set, "pinned", {"event": event_id})
    yield from make_room(core, working_set, seen=seen)


def call_back(core: Core, working_set: WorkingSet, unit: SessionUnit) -> Steps[None]:
    """Make a unit recent, with the opener of its turn if it may not come first.

    The state says where they are: where decisions were taken back, what is held is not read anew yet.
    """
    if working_set.state.place(unit.first) == "pending":
        working_set.bring_back(unit)
    if core.in_force.wire_format.rules.ordered and not working_set.reader.leads(unit):
        opener = yield from opener_of(core.session, working_set, unit.first)
        if opener is not None and working_set.state.place(opener.first) == "pending":
            working_set.bring_back(opener)


def call_back_newest(core: Core, working_set: WorkingSet) -> Steps[None]:
    """Make the newest message and the user's latest recent, if they wait: they must be kept now."""
    state = working_set.state
    for version in sorted({state.last, state.user, state.kept} - {0}):
        first = (yield from event_at(core.session, version, "message")).data.get("joins", version)
        if working_set.state.place(first) == "pending":
            unit = yield from living_unit(core.session, working_set, first)
            if unit is not None:
                yield from call_back(core, working_set, unit)


def delete_session(core: Core) -> Steps[None]:
    """Remove the session from its store."""
    yield Delete(core.session, core.incarnation())
    core.announce("deleted")
    core.release()
    core.working_set, core.job = None, None
    if not core.begins:
        core.options = None


def calibrate(core: Core, usage: Any) -> Steps[None]:
    """Record the report for the last view; from now on the budget is kept with it."""
    reported = usage_of(usage)
    working_set = yield from core.ready()
    given = core.view_given
    if core.in_force.context is not None:
        raise ConfigurationError(
            "the budget of this session is its Context's, which other blocks share, and usage does not show"
            " which block was larger than counted: set a margin in the Context's Budget instead"
        )
    if given is None:
        raise ConfigurationError(
            f"session {core.session!r} has returned no view that usage could be for: call messages() or"
            " fit() on this object before the model call, and record_usage() after it"
        )
    core.working_set = None  # until everything is written
    seen = working_set.view()
    data = {
        "input_tokens": reported.input_tokens,
        "answer_tokens": reported.answer_tokens,
        "counted_tokens": given.counted_tokens,
        "view": given.version,
    }
    _learn(working_set, given, reported)
    yield from write_change(core, working_set, "usage", data, seen=seen)
    core.view_given = None  # it is reported once


def _learn(working_set: WorkingSet, given: ViewGiven, reported: Usage) -> None:
    """Start from the report, and learn from it if its view continues the previous report's view."""
    state = working_set.state
    before, learned = state.calibration, state.calibration.learned
    if not before.tokens:
        learned = learned.with_first_report(
            given.counted_tokens,
            reported.input_tokens,
            messages_tokens=max(0, given.counted_tokens - working_set.permanent_tokens),
        )
    elif before.first == given.first:
        learned = learned.with_report(
            given.counted_tokens - before.counted_tokens, reported.input_tokens - before.tokens
        )
    answer = _answer_counted(working_set, given)
    known = bool(answer and reported.answer_tokens)
    calibration = Calibration(
        tokens=reported.input_tokens + ((reported.answer_tokens or 0) if known else 0),
        counted_tokens=given.counted_tokens + (answer if known else 0),
        first=given.first,
        learned=learned,
    )
    working_set.state = state.with_calibration(calibration).grown_from(
        state, target_ratio=working_set.target_ratio
    )


def _answer_counted(working_set: WorkingSet, given: ViewGiven) -> int:
    """Return the counted size of the answer, if it was added already; 0 if not, or if counts are exact."""
    if working_set.reader.options.tokens_by.exact:
        return 0  # a tokenizer that is right needs no report, which counts without framing
    since = {
        version: message
        for unit in working_set.in_view()
        for version, message in unit.members.items()
        if version > given.version
    }
    message = since[min(since)] if since else None
    if message is None or working_set.reader.read(message).kind != "assistant":
        return 0
    return working_set.reader.tokens(message)
