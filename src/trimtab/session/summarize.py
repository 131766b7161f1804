"""When a summary is due and of what, asking for it, and putting it in force (SPEC E6, E7)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from trimtab.errors import ConfigurationError, SummaryError, VersionConflictError
from trimtab.formats import Dict
from trimtab.formats.origin import UNKNOWN, Origins, sort_origins
from trimtab.session.core import Core, warn
from trimtab.session.effects import Steps
from trimtab.session.extract import FactJob, conclude_facts, extract_waiting, try_extract
from trimtab.session.log import live_units, oldest_waiting, summarized_messages
from trimtab.session.messages import MessageReader, SessionUnit
from trimtab.session.plain import copy_plain
from trimtab.session.state import Members, State
from trimtab.session.summary import Job, Written, write_summary
from trimtab.session.working_set import WorkingSet
from trimtab.session.zones import limits_of
from trimtab.strategies.summarizer import reads_all

REREAD_BUDGETS = 16
"""How much of what is summarized already a summarizer that `reads_all` is given again, in budgets.

A bound, so that all summaries of a session together read a multiple of it, however long it grows; what is
older is in the summary so far.
"""


def is_due(core: Core, state: State) -> bool:
    """Tell whether so much waits that a summary is to be written (SPEC E6, E7)."""
    options = core.in_force
    if options.summarizer is None or state.pending_tokens < max(1, state.retry_tokens):
        return False
    limits = limits_of(options, state.room_tokens)
    if state.pending_tokens >= limits.threshold_tokens:
        return True
    return (
        state.pending_messages >= limits.threshold_messages
        and 2 * state.pending_tokens >= limits.threshold_tokens
    )


def waiting_job(core: Core, working_set: WorkingSet) -> Steps[Job | None]:
    """Make the job of summarizing what waits: the oldest of it, one budget's worth at most."""
    state = working_set.state
    if working_set.hidden:
        units = yield from units_of_job(core.session, state, working_set.reader)
    else:
        units = _first_budget(working_set.shown.values(), state.room_tokens)
    return (yield from job_of(core, working_set, units)) if units else None


def units_of_job(session: str, state: State, reader: MessageReader) -> Steps[list[SessionUnit]]:
    """Read the oldest units that wait, as many as one call of the summarizer is given."""
    waiting = yield from oldest_waiting(session, state, reader=reader, limit_tokens=state.room_tokens)
    return _first_budget(waiting, state.room_tokens)


def _first_budget(waiting: Iterable[SessionUnit], room_tokens: int) -> list[SessionUnit]:
    """Take the first units up to one budget's worth; one at the least."""
    units: list[SessionUnit] = []
    tokens = 0
    for unit in waiting:
        if units and tokens + unit.tokens > room_tokens:
            break
        units.append(unit)
        tokens += unit.tokens
    return units


def early_job(core: Core, working_set: WorkingSet) -> Steps[Job | None]:
    """Make the job of a background summary: what waits, or what will have to leave next."""
    options, state = core.in_force, working_set.state
    if options.summarizer is None:
        return None
    if is_due(core, state):
        return (yield from waiting_job(core, working_set))
    limits = limits_of(options, state.room_tokens)
    if state.pending_messages or state.failures:
        return None  # it waits for more
    # A threshold before the budget is passed: the summary is there when the messages have to leave.
    if working_set.total_tokens + limits.threshold_tokens <= state.room_tokens:
        return None
    units: list[SessionUnit] = []
    tokens, leaving = 0, state.recent_tokens - working_set.tokens_after_cut(1.0 - working_set.target_ratio)
    for unit in working_set.recent.values():
        if tokens >= max(limits.threshold_tokens, leaving):
            return (yield from job_of(core, working_set, units))
        if not working_set.exempt(unit):
            units.append(unit)
            tokens += unit.tokens
    return None


def job_of(core: Core, working_set: WorkingSet, units: Sequence[SessionUnit]) -> Steps[Job]:
    """Write down what is to be summarized, and in place of what."""
    options, state = core.in_force, working_set.state
    limits = limits_of(options, state.room_tokens)
    cap = limits.max_summary_tokens
    anchored = options.summary_mode == "anchored" and not working_set.anchors
    becomes_anchor = anchored and working_set.anchor_summary is None
    if becomes_anchor:
        cap = min(cap, limits.max_anchor_tokens)
    elif options.summary_mode == "anchored":
        cap -= working_set.anchor_tokens
    summary = working_set.summary
    before: Origins = frozenset() if summary is None else summary.origins or UNKNOWN
    earlier: dict[int, tuple[Dict, Origins]] = {}
    if summary is not None and reads_all(options.summarizer):
        limit = REREAD_BUDGETS * state.room_tokens
        earlier = yield from summarized_messages(
            core.session, summary.version, reader=working_set.reader, limit_tokens=limit
        )
    given = earlier | _members(units)
    return Job(
        units=tuple(unit.versions for unit in units),
        messages=messages_of(units),
        given=_in_order(given),
        given_origins=[given[version][1] for version in sorted(given)],
        gives_all=summary is not None and len(earlier) == summary.messages,
        unit_tokens=tuple(unit.tokens for unit in units),
        existing=None if summary is None else summary.text,
        existing_tokens=working_set.summary_tokens,
        covered_before=0 if summary is None else summary.messages,
        origins_before=before,
        origins=before.union(*(origins for unit in units for origins in unit.origins)),
        rules=working_set.restated_rules(),
        becomes_anchor=becomes_anchor,
        cap_tokens=cap,
        base=state.summary,
        epoch=state.epoch,
    )


def messages_of(units: Sequence[SessionUnit]) -> list[Dict]:
    """Copy the messages of units, in the order of the log."""
    return _in_order(_members(units))


def _members(units: Sequence[SessionUnit]) -> dict[int, tuple[Dict, Origins]]:
    return {
        version: (message, origins)
        for unit in units
        for (version, message), origins in zip(unit.members.items(), unit.origins, strict=True)
    }


def _in_order(messages: Mapping[int, tuple[Dict, Origins]]) -> list[Dict]:
    return [copy_plain(messages[version][0]) for version in sorted(messages)]


CATCH_UP = 64
"""Summaries one order may ask for: after a budget cut far down, or with many messages at once, more than one
call's worth waits. Together they read what is gone once; what is beyond them `status()` and a note tell."""


def most_for(messages: Sequence[object]) -> int:
    """Say how many summaries the messages of one call may ask for: one message, one summary."""
    return 1 if len(messages) <= 1 else CATCH_UP


def most_summaries(core: Core, summaries: int) -> int:
    """Say how many may be written now: options given at opening are an order, carried out with the first."""
    most = max(summaries, CATCH_UP) if core.behind else summaries
    core.behind = False
    return most


def summarize_if_due(core: Core, *, summaries: int) -> Steps[None]:
    """Have what waits summarized while enough of it does, in so many summaries at most."""
    for _ in range(summaries):
        working_set = core.working_set
        if working_set is None or not is_due(core, working_set.state):
            return
        job = yield from waiting_job(core, working_set)
        if job is None or not (yield from conclude(core, job, (yield from try_summary(core, job)))):
            return


def summarize_waiting(core: Core) -> Steps[int]:
    """Have everything that waits summarized, due or not; return how many messages that were."""
    working_set = yield from core.ready()
    if core.in_force.summarizer is None:
        if core.in_force.fact_extractor is not None:
            yield from extract_waiting(core)
            return 0
        raise ConfigurationError(
            f"session {core.session!r} has no summarizer: pass summarizer=, a function of messages, when it"
            " is made or opened"
        )
    seen, messages = working_set.view(), 0
    try:
        while (job := (yield from waiting_job(core, (yield from core.ready())))) is not None:
            if not (yield from require_summary(core, job)):
                break  # another writer was there: what waits now is another matter
            messages += len(job.messages)
        yield from extract_waiting(core)
    finally:
        tell_gone(core, seen)
    return messages


def require_summary(core: Core, job: Job) -> Steps[bool]:
    """Have a summary written and put in force; False if it came too late.

    Raises:
        SummaryError: There is none; the messages wait.
    """
    written = yield from try_summary(core, job)
    if (yield from conclude(core, job, written)):
        return True
    if isinstance(written, SummaryError):
        raise written
    return False


def try_summary(core: Core, job: Job) -> Steps[Written | SummaryError]:
    """Have a summary written, or say why there is none."""
    core.announce("asked", of="summary", messages=len(job.messages))
    try:
        return (yield from write_summary(job, MessageReader(core.in_force)))
    except SummaryError as error:
        return error


def fail(core: Core, job: Job, error: SummaryError) -> Steps[None]:
    """Let the next attempt wait until there is more, and tell why there is no summary."""
    core.last_failure = why = str(error)
    core.announce("failed", of="summary", messages=len(job.messages), error=why)
    warn(core.session, "no summary", why)
    try:
        yield from remember_failure(core, job, why)
    finally:
        core.tell("on_error", error)


def remember_failure(core: Core, job: Job, why: str) -> Steps[None]:
    """Write down that a summary failed, unless what it was of has changed."""
    while True:
        working_set = yield from core.ready()
        state = working_set.state
        if state.summary != job.base or state.epoch != job.epoch:
            return
        failures = state.failures + 1
        threshold = limits_of(core.in_force, state.room_tokens).threshold_tokens
        waiting = state.pending_tokens
        # As SPEC E7 says, and never less than twice what waits: an outage brings no storm of calls.
        grown = max(waiting + threshold * 2 ** min(failures - 1, 40), 2 * waiting)
        working_set.state = state.with_failure(grown)
        try:
            yield from core.write(working_set, "failed", {"why": why, "messages": len(job.messages)})
        except VersionConflictError:
            continue
        return


Conclusion = Callable[[], Steps[bool]]
"""Carries out what came of a job; true if it is in force."""


def try_job(core: Core, job: Job | FactJob) -> Steps[Conclusion]:
    """Ask for what a job in the background is of, a summary or facts."""
    if isinstance(job, FactJob):
        return partial(conclude_facts, core, job, (yield from try_extract(core, job)))
    return partial(conclude, core, job, (yield from try_summary(core, job)))


def finish_job(core: Core, conclusion: Conclusion) -> Steps[bool]:
    """Carry out what came of a job in the background, and tell what found no room beside it."""
    seen = {} if core.working_set is None else core.working_set.view()
    done = yield from conclusion()
    tell_gone(core, seen)
    return done


def tell_gone(core: Core, seen: Mapping[int, SessionUnit]) -> None:
    """Tell which units were in view and are not any more, though nothing stands for them (SPEC E8)."""
    gone = [] if core.working_set is None else core.working_set.departures(seen)
    if gone:
        core.announce("hidden", messages=sum(len(unit.members) for unit in gone))
        core.tell("on_evict", messages_of(gone), "truncation")


def conclude(core: Core, job: Job, written: Written | SummaryError) -> Steps[bool]:
    """Carry out what came of a summary; True if one is in force. A failure loses nothing (SPEC E7)."""
    if isinstance(written, SummaryError):
        yield from fail(core, job, written)
        return False
    return (yield from put_in_force(core, job, written))


def put_in_force(core: Core, job: Job, written: Written) -> Steps[bool]:
    """Let a summary stand for what it covers, if that is still as it was; else drop it."""
    for attempt in range(20):
        working_set = (yield from core.again()) if attempt else (yield from core.ready())
        units = yield from units_up_to(core, working_set, job)
        if units is None:
            core.drop_answer("summary", messages=len(job.messages))
            return False
        before = working_set.state
        working_set.state = before.with_summary(
            core.next_version(working_set),
            units,
            covers={members[0] for members in job.units},
            becomes_anchor=job.becomes_anchor,
            retry_tokens=tokens_before_retry(core, before, written),
        )
        data: dict[str, Any] = {
            "text": written.text,
            "messages": job.stands_for,
            "covers": [list(members) for members in job.units],
            "origins": sort_origins(job.origins),
            "previous": job.base,
            "mode": core.in_force.summary_mode,
            "older": before.newest_summary,
        }
        if written.checked is not None:
            data["checked"] = written.checked.to_dict()
        try:
            yield from core.write(working_set, "summary", data)
        except VersionConflictError:
            continue
        break
    else:
        core.drop_answer("summary", messages=len(job.messages))
        return False
    core.announce(
        "summary",
        version=working_set.version,
        messages=len(job.messages),
        tokens=written.tokens,
        seconds=written.seconds,
    )
    core.last_failure = None
    try:
        yield from core.reread(working_set)
    finally:  # it is in force by now, whether or not the store can still be read
        for old, new in written.compressions:
            core.tell("on_summary_compressed", old, new)
        core.tell("on_summarize", copy_plain(job.messages), job.existing, written.text, written.seconds)
        if written.checked is not None:
            core.tell("on_summary_checked", written.text, written.checked, list(written.lost))
    return True


def tokens_before_retry(core: Core, state: State, written: Written) -> int:
    """Return how much has to wait before the next summary, where this one was asked for several times.

    Each call pays for half a threshold of new tokens, so that a summarizer whose answers are too long is not
    called more often than one whose answers fit. One budget is enough: a call is given no more.
    """
    if written.calls == 1:
        return 0
    threshold = limits_of(core.in_force, state.room_tokens).threshold_tokens
    return min(state.room_tokens, written.calls * -(-threshold // 2))


def units_up_to(core: Core, working_set: WorkingSet, job: Job) -> Steps[list[tuple[Members, int]] | None]:
    """List the units up to the newest a summary covers, with their tokens; None if the summary is stale."""
    state = working_set.state
    if (state.summary, state.epoch) != (job.base, job.epoch):
        return None
    if job.becomes_anchor and state.anchor_summary:
        return None
    covered = {members[0]: members for members in job.units}
    border = max(covered) + 1
    older = yield from live_units(core.session, state, stop=border, reader=working_set.reader)
    here = {unit.first: unit for unit in older}
    here.update((first, unit) for first, unit in working_set.recent.items() if first < border)
    for first, members in covered.items():
        unit = here.get(first)
        if unit is None or unit.versions != members:
            return None
        # What waits may be covered whatever it has become: after a pop it may hold the user's latest words.
        if first in working_set.recent and working_set.exempt(unit):
            return None
    return [(unit.versions, unit.tokens) for unit in here.values()]
