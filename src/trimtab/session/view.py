"""The view: what a session shows at a version, as messages that fit (SPEC E1, E3)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import takewhile
from operator import attrgetter, eq, itemgetter, lt
from typing import TYPE_CHECKING, Any, NamedTuple

from trimtab._fitting.fitted import Fitted, fitted_for
from trimtab._fitting.prepare import prepare
from trimtab._fitting.request import Ask, window_note
from trimtab._fitting.settle import settle_fit
from trimtab._shared import observers
from trimtab._shared.steps import drive
from trimtab.budget import Budget
from trimtab.conversation.order import newest_inside
from trimtab.conversation.repairs import Change, mend
from trimtab.conversation.validity import is_paired
from trimtab.counting.shorten import CUT_MARKER
from trimtab.errors import BudgetExceededError, ConfigurationError
from trimtab.formats import Dict, OriginName
from trimtab.formats.origin import Origins
from trimtab.report import RuleCounts, SummaryCheck
from trimtab.report.html import facts_fragment
from trimtab.report.text import number, plural, runs
from trimtab.session.calibration import Calibration
from trimtab.session.core import Core, ViewGiven, ViewShown
from trimtab.session.effects import FitContext, Steps
from trimtab.session.facts import read_facts, recount_facts
from trimtab.session.in_context import NO_ROOM, request_of, written_in_output
from trimtab.session.log import (
    event_at,
    events_at,
    read_working_set,
    recount,
    recount_waiting,
    state_of,
)
from trimtab.session.messages import MessageReader, SessionUnit
from trimtab.session.options import Options, session_budget
from trimtab.session.plain import copy_plain
from trimtab.session.recollection import Recalled
from trimtab.session.state import State
from trimtab.session.working_set import WorkingSet
from trimtab.stores import Event
from trimtab.strategies.must_keep import add_checks

if TYPE_CHECKING:
    from trimtab._fitting.observation import FitWatch


class Origin(NamedTuple):
    """What one message of a view shows.

    Args:
        kind: "message" of the log; "recalled", earlier messages as text; "system", "rules", "anchor", "facts"
            or "summary", which the session inserts; "shortened", which the fit itself inserts.
        versions: Versions of the messages it shows; for a summary, the version of its event.

    Example:
        >>> from trimtab import Session
        >>> session = Session(budget=500, system="Be brief.")
        >>> _ = session.add({"role": "user", "content": "Hello"})
        >>> [(one.kind, one.versions) for one in session.origins()]
        [('system', ()), ('message', (2,))]
    """

    kind: str
    versions: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Listed:
    """A view before it is fitted."""

    messages: list[Dict]
    origins: list[Origin]
    """The origin of each message in the log."""
    sizes: list[int | None]
    """Tokens of each, where they were counted when it came."""
    units: Collection[SessionUnit]
    leading: int
    """Messages at the front that stay: system text, rules, anchors, facts, summary."""
    stable: int
    """Of these, those that no cut changes: system text, the host's rules and anchors."""
    pins: list[int]
    latest_user: int | None
    newest: int | None = None
    """Of the messages the newest, where it does not stand last."""
    changes: tuple[Change, ...] = ()
    """What was done so that calls and results match; the log has them as they came."""


def fit_working_set(
    working_set: WorkingSet, notes: tuple[str, ...], stale: frozenset[int] | None = None
) -> Fitted[Any]:
    """Put the view together.

    What is in view was chosen to fit, so that mostly nothing remains to do; what must stay and is too large
    is shortened here, or refused (SPEC A4).

    Args:
        working_set: What is in view.
        notes: What the report should say.
        stale: Versions of messages whose thinking is bound to what no longer stands before them; None: all,
            if anything has changed since they came.
    """
    options = working_set.reader.options
    listed = listed_view(working_set)
    checked, rule_counts = _checks_of(working_set), working_set.rule_counts()
    if stale is None:
        stale = _all_stale(working_set)
    if working_set.summary is not None and not working_set.shows_summary:
        notes = (*notes, "The summary is left out: what must stay takes its room.")
    if working_set.facts is not None and not working_set.shows_facts:
        notes = (*notes, "The facts are left out: what must stay takes their room.")
    limit = working_set.view_limit_tokens
    if options.context is not None:  # which charges what stands beside the messages itself
        limit += working_set.reader.framing_tokens()
    given, limit = options.resolved, max(1, limit)
    # As it was given, for the report; the limit alone where another is in force, which is within the model's.
    if given is not None and given.input_tokens == limit:
        budget = given
    else:
        budget = Budget(limit, over_limit=True)
        notes = (*notes, *(() if given is None else window_note(options.model, given)))
    work = prepare(
        Ask(
            messages=listed.messages,
            budget=budget,
            model=options.model,
            counter=options.tokens_by,
            format=options.wire_format,
            system=working_set.reader.system_apart,
            tools=options.tools if options.context is None else None,
            strategy=None,
            pin=listed.pins,
            pending_calls=options.pending_calls,
            on_trim=options.on_trim,
            repair=False,
            leading=listed.leading,
            breakpoints=options.breakpoints,
            stable=listed.stable,
            sizes=_whole_sizes(working_set, listed),
            latest_user=listed.latest_user,
            newest=listed.newest,
            stale=[at for at, one in enumerate(listed.origins) if not stale.isdisjoint(one.versions)],
            notes=(
                *_notes(working_set, listed.units, checked, rule_counts),
                *_notes_of_calls(listed.changes),
                *notes,
            ),
            checked=checked,
            rule_counts=rule_counts,
            rules_tokens=working_set.host_rule_tokens,
            compact=options.writes,
            owner_of=lambda _: working_set.reader,  # the same in each call, by which results are known again
        )
    )
    try:
        return fitted_for(drive(settle_fit(work)))
    except BudgetExceededError as error:
        if working_set.host_rules:  # they are part of what has to stay
            error.args = (f"{error} What must stay includes {working_set.named_rules}.",)
        raise


def cut_by_fit(working_set: WorkingSet) -> dict[int, Dict]:
    """Map messages in view that only the fit cuts, by version, to what it shows of them.

    Most views fit as they are, and no fit is made.
    """
    writes = working_set.reader.options.writes
    drops = writes is not None and any(kind.lossy for kind in writes.kinds)
    fits = working_set.breakdown.total <= working_set.view_limit_tokens
    if fits and not drops and not working_set.said_last():
        return {}
    try:
        fitted = fit_working_set(working_set, ())
    except BudgetExceededError:
        return {}
    origins, positions = listed_view(working_set).origins, fitted.positions
    rows = () if writes is None else fitted.report.messages
    compacted = {row.index for row in rows if row.reason == "compacted"}
    found = dict[int, Dict]()
    for at in fitted.changed:
        place, message = positions[at], fitted.messages[at]
        if place is None or origins[place].kind != "message":
            continue
        # What is written shorter is all there, unless a kind dropped some of it.
        if place not in compacted or (drops and CUT_MARKER[:-1] in str(message)):
            found[origins[place].versions[0]] = message
    return found


def _checks_of(working_set: WorkingSet) -> tuple[SummaryCheck, ...]:
    """Return what became of the values of the summaries in view."""
    shown = (
        working_set.anchor_summary,
        working_set.summary if working_set.shows_summary else None,
    )
    return tuple(one.checked for one in shown if one is not None and one.checked is not None)


def listed_view(working_set: WorkingSet) -> Listed:
    """List the messages of a view, in order."""
    state, units = working_set.state, working_set.in_view()
    system, anchor_summary = working_set.reader.system_message(), working_set.anchor_summary
    front = [] if system is None else [system]
    origins = [Origin("system") for _ in front]
    if working_set.host_message is not None:
        front.append(copy_plain(working_set.host_message))
        origins.append(Origin("rules"))
    front.extend(copy_plain(working_set.anchors))
    origins += [Origin("anchor") for _ in working_set.anchors]
    if anchor_summary is not None:
        front.append(copy_plain(anchor_summary.message))
        origins.append(Origin("summary", (anchor_summary.version,)))
    stable = len(front)
    if working_set.rule_block is not None:
        front.append(copy_plain(working_set.rule_block.message))
        origins.append(
            Origin("rules", tuple(one.version for one in working_set.rule_block.known if one.version))
        )
    if working_set.facts is not None and working_set.shows_facts:
        front.append(copy_plain(working_set.facts.message))
        origins.append(Origin("facts"))
    shown = [working_set.summary] if working_set.summary and working_set.shows_summary else []
    summary = [copy_plain(one.message) for one in shown]
    summary_origins = [Origin("summary", (one.version,)) for one in shown]
    if working_set.reader.options.pending_first:
        waiting, recent = (
            _columns(unit for unit in units if (unit.first in working_set.shown) is waits)
            for waits in (True, False)
        )
        columns = waiting.plus(Columns([0] * len(summary), summary, [None] * len(summary))).plus(recent)
    else:
        front.extend(summary)
        origins += summary_origins
        columns = _columns(units)
    if working_set.recollection and working_set.recalled and working_set.shows_recalled:
        columns.insert(working_set.recalled, working_set.recollection.before)
    lead = len(front)
    index_of = dict(zip(columns.versions, range(lead, lead + len(columns.versions)), strict=True))
    special = {0: summary_origins, _RECALLED: _recalled_origin(working_set)}
    for version in columns.versions:
        origins += special.get(version) or [Origin("message", (version,))]
    for version, whole in working_set.said_last().items():
        at = columns.versions.index(version)
        columns.messages[at], columns.sizes[at] = copy_plain(whole), None
    kinds = [one.kind for one in origins[:lead]] if working_set.reader.options.writes else ()
    fixed = (at for at, kind in enumerate(kinds) if kind == "anchor")  # whose results are shown as they are
    listed = Listed(
        [*front, *columns.messages],
        origins=origins,
        sizes=[*([None] * lead), *columns.sizes],
        units=units,
        leading=lead,
        stable=stable,
        pins=[*fixed, *sorted(index_of[version] for version in (0, *state.pins) if version in index_of)],
        latest_user=index_of.get(state.user) if state.user else None,
    )
    return _mend_pairs(listed, working_set.reader.options)


def _whole_sizes(working_set: WorkingSet, listed: Listed) -> list[int | None]:
    """List the sizes that are known: not that of a message which was counted without its thinking."""
    reader = working_set.reader
    if not reader.options.binds_thinking:
        return listed.sizes
    bare = map(reader.format.without_thinking, listed.messages)
    together = zip(listed.sizes, listed.messages, bare, strict=True)
    return [size if without is message else None for size, message, without in together]


def _mend_pairs(listed: Listed, options: Options) -> Listed:
    """Omit calls that nobody will answer, and put late results after their call (SPEC E3b).

    Behind a call whose worker was killed, or before whose result somebody spoke, the provider takes nothing
    more. The log stays as it is, so that what comes later is read as what it is.
    """
    format = options.wire_format.for_model(options.model)
    if is_paired(format, listed.messages, options.pending_calls):
        return listed
    placed, changes = mend(format, listed.messages, pending_calls=options.pending_calls, shapes=False)
    places = [one.position for one in placed]
    return replace(
        listed,
        messages=[one.message for one in placed],
        origins=[listed.origins[at] for at in places],
        sizes=[
            listed.sizes[at] if one.message is listed.messages[at] else None
            for at, one in zip(places, placed, strict=True)
        ],
        leading=sum(at < listed.leading for at in places),
        stable=sum(at < listed.stable for at in places),
        pins=[index for index, at in enumerate(places) if at in listed.pins],
        latest_user=next((index for index, at in enumerate(places) if at == listed.latest_user), None),
        newest=newest_inside(places),
        changes=changes,
    )


def _recalled_origin(working_set: WorkingSet) -> list[Origin]:
    return [Origin("recalled", working_set.recalled.versions)] if working_set.recalled else []


def _notes_of_calls(changes: Collection[Change]) -> Iterable[str]:
    moved = {change.index for change in changes if change.action == "moved"}
    left = {change.index for change in changes if change.action != "moved"} - moved
    if moved:
        yield f"Moved behind their calls, which they came late for: {plural(len(moved), 'message')}."
    if left:
        yield (
            "Not in view, since nobody will answer a call any more, or it may not stand there:"
            f" all or a part of {plural(len(left), 'message')}. The log has it."
        )


_RECALLED = -1
"""Stands for the version of what was recalled, which is of several."""


class Columns(NamedTuple):
    """Messages of a view."""

    versions: list[int]
    messages: list[Dict]
    sizes: list[int | None]

    def plus(self, other: Columns) -> Columns:
        """Return these and the others behind them."""
        return Columns(
            self.versions + other.versions, self.messages + other.messages, self.sizes + other.sizes
        )

    def insert(self, recalled: Recalled, before: int) -> None:
        """Put recalled text before a message, or before the first that came after it."""
        at = len(self.versions)
        while at and self.versions[at - 1] >= before:
            at -= 1
        self.versions.insert(at, _RECALLED)
        self.messages.insert(at, copy_plain(recalled.message))
        self.sizes.insert(at, recalled.tokens)


def _columns(units: Iterable[SessionUnit]) -> Columns:
    """List the messages of units in the order of the log."""
    made = Columns([], [], [])
    for unit in units:
        made.versions.extend(unit.members)
        made.messages.extend(unit.copies())
        made.sizes.extend(unit.sizes)
    if all(map(lt, made.versions, made.versions[1:])):
        return made
    rows = sorted(zip(*made, strict=True), key=itemgetter(0))  # a result came when another unit had begun
    return Columns([row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows])


def _notes(
    working_set: WorkingSet,
    seen: Collection[SessionUnit],
    checked: Sequence[SummaryCheck],
    rule_counts: RuleCounts | None,
) -> tuple[str, ...]:
    state, notes = working_set.state, []
    if working_set.summary is not None:
        notes.append(f"A summary stands for {plural(working_set.summary.messages, 'message')}.")
    notes += _value_notes(checked)
    notes += _role_notes(working_set)
    notes += _rule_notes(rule_counts)
    notes += _fact_notes(working_set)
    units = (working_set.shown, working_set.recent)
    misplaced = sum(len(kept[one].members) for one in working_set.misplaced for kept in units if one in kept)
    notes.extend(_notes_of_recall(working_set))
    if hidden := working_set.hidden_messages(seen) - misplaced:
        notes.append(f"Without room in view, but in the log: {plural(hidden, 'message')}.")
        waiting = state.pending_messages - sum(len(unit.members) for unit in working_set.shown.values())
        if waiting and working_set.reader.options.summarizer is not None:
            notes.append(f"{plural(waiting, 'message')} of these wait for a summary: summarize() writes it.")
    if misplaced:
        notes.append(f"Not in view, since they may not stand first there: {plural(misplaced, 'message')}.")
    as_text, escaped, clamped = (
        sum(map(attrgetter(name), seen)) for name in ("as_text", "escaped", "clamped")
    )
    if clamped:
        notes.append(f"Cut to its share, and whole in the log: a result in {plural(clamped, 'message')}.")
    if as_text:
        notes.append(f"Shown as text, since its call is no longer there: {plural(as_text, 'result')}.")
    if escaped:
        notes.append(f"Escaped, since it looks like trimtab's mark: text in {plural(escaped, 'message')}.")
    if state.failures:
        notes.append(
            f"Summaries that failed one after the other: {state.failures:,}. The next is asked for when"
            f" {state.retry_tokens:,} tokens wait ({state.pending_tokens:,} do)."
        )
    if state.calibration.tokens:
        notes.append(
            f"Calibrated by reported usage: {state.calibration.counted_tokens:,} tokens as counted here were"
            f" {state.calibration.tokens:,} by the provider's count, so that the budget of"
            f" {state.budget_tokens:,} is {state.room_tokens:,} here."
        )
    return tuple(notes)


def _value_notes(checked: Sequence[SummaryCheck]) -> Iterable[str]:
    values = add_checks(checked)
    if values is not None and values.lost:
        yield f"Without room in a summary, but in the log: {plural(values.lost, 'exact value')}."


def _notes_of_recall(working_set: WorkingSet) -> Iterable[str]:
    recalled, recollection = working_set.recalled, working_set.recollection
    if recalled is not None:
        count = plural(len(recalled.versions), "message")
        where = runs(recalled.versions)
        if working_set.shows_recalled:
            yield f"Recalled from the log for the question, as earlier text: {count} (version {where})."
        else:
            yield f"Not shown, since what must stay takes the room: {count} recalled (version {where})."
    if recollection is not None and recollection.error is not None:
        yield f"Recalled by words, since the ranker failed: {recollection.error}."


def _role_notes(working_set: WorkingSet) -> tuple[str, ...]:
    """Say once that what was written from messages is not in the role asked for."""
    written = (working_set.summary, working_set.anchor_summary)
    origins = frozenset[OriginName]().union(*(one.origins for one in written if one is not None))
    known = () if working_set.facts is None else working_set.facts.known
    of_facts: Origins = frozenset(one.fact.origin for one in known if one.fact.origin is not None)
    return working_set.reader.role_notes(origins | of_facts)


def _rule_notes(counts: RuleCounts | None) -> Iterable[str]:
    if counts is not None and counts.hidden:
        yield f"Rules without room in view, but in the log: {counts.hidden:,}."


def _fact_notes(working_set: WorkingSet) -> list[str]:
    state, notes = working_set.state, []
    shown = shown_facts(working_set)
    if state.facts.known:
        out = state.facts.known - shown
        without = f"; without room in view, but in the log: {out:,}" if out else ""
        notes.append(f"Facts in view: {shown:,}{without}.")
    if state.facts.stale:
        notes.append(f"Facts taken out of view, since a source was redacted: {state.facts.stale:,}.")
    if state.facts.failures:
        notes.append(
            f"Times that no facts could be had, one after the other: {state.facts.failures:,}. The fact"
            f" extractor is asked again when {state.fact_wait_tokens:,} tokens more are no longer recent."
        )
    return notes


def shown_facts(working_set: WorkingSet) -> int:
    """Return how many facts are in view."""
    facts = working_set.facts
    return len(facts.known) if facts is not None and working_set.shows_facts else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStatus:
    """The state of a session in numbers.

    Args:
        version: Events in its log.
        budget_tokens: Tokens of the current budget.
        view_tokens: Counted tokens of the view, and of calls that are not in it.
        expected_tokens: The expected bill for the view; the same as `view_tokens` until usage was recorded.
        recent_messages: Messages that are recent.
        recent_tokens: Tokens of these.
        pending_messages: Messages that wait for a summary.
        pending_tokens: Tokens of these.
        hidden_messages: Messages that are neither in view nor summarized; `Session.summarize` summarizes
            those that wait.
        summarized_messages: Messages that the current summaries replace.
        failures: Failed summaries since the last successful one.
        retry_tokens: Waiting tokens at which the summarizer is called again. 0 if it did not fail and no
            shorter text was requested.
        last_failure: Why the last summary failed; None if this object saw no failure.
        stale_summaries: Summaries that this object dropped because the messages they covered had changed
            meanwhile.
        hook_errors: Hooks that failed.
        recalled_messages: Messages shown as earlier text, found for the newest question.
        facts: Facts in view.
        hidden_facts: Current facts for which there is no room.
        stale_facts: Facts removed from the view because a source was redacted.
        fact_failures: Failed fact extractions since the last successful one.
        fact_retry_tokens: Tokens that must stop being recent before the extractor is called again; 0 if it
            did not fail.
        last_fact_failure: Why the last fact extraction failed; None if this object saw no failure.
        values: Exact values that the current summaries must keep.
        restated_values: Those of them in the line behind the text of a summary.
        lost_values: Those of them for which the current summaries have no room.
        invented_values: Values in the current summaries that nothing they replace has.
        rules: Rules that hold: the host's, and those that were found.
        hidden_rules: Those of them for which there is no room in view, in a message or restated.
    """

    version: int
    """Events in its log."""
    budget_tokens: int
    view_tokens: int
    expected_tokens: int
    """The expected bill for the view; the same as `view_tokens` until usage was recorded."""
    recent_messages: int
    recent_tokens: int
    pending_messages: int
    """Messages that wait for a summary."""
    pending_tokens: int
    hidden_messages: int
    """Messages that are neither in view nor summarized; `Session.summarize` summarizes those that wait."""
    summarized_messages: int
    """Messages that the current summaries replace."""
    failures: int
    """Failed summaries since the last successful one."""
    retry_tokens: int
    """Waiting tokens at which the summarizer is called again. 0 if it did not fail and no shorter text was
    requested.
    """
    last_failure: str | None
    """Why the last summary failed; None if this object saw no failure."""
    stale_summaries: int
    """Summaries that this object dropped because the messages they covered had changed meanwhile."""
    hook_errors: int
    recalled_messages: int = 0
    """Messages shown as earlier text, found for the newest question."""
    facts: int = 0
    """Facts in view."""
    hidden_facts: int = 0
    """Current facts for which there is no room."""
    stale_facts: int = 0
    """Facts removed from the view because a source was redacted."""
    fact_failures: int = 0
    """Failed fact extractions since the last successful one."""
    fact_retry_tokens: int = 0
    """Tokens that must stop being recent before the extractor is called again; 0 if it did not fail."""
    last_fact_failure: str | None = None
    """Why the last fact extraction failed; None if this object saw no failure."""
    values: int = 0
    """Exact values that the current summaries must keep."""
    restated_values: int = 0
    """Those of them in the line behind the text of a summary."""
    lost_values: int = 0
    """Those of them for which the current summaries have no room."""
    invented_values: int = 0
    """Values in the current summaries that nothing they replace has."""
    rules: int = 0
    """Rules that hold: the host's, and those that were found."""
    hidden_rules: int = 0
    """Those of them for which there is no room in view, in a message or restated."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)


def status_fragment(title: str, about: str, core: Core) -> str:
    """Write where a session stands, as far as it was read, as a part of a page; what is 0 is not said."""
    known = core.working_set or core.last_working_set
    status = {} if known is None else status_of(known, core).to_dict()
    facts = [
        (name.replace("_", " "), number(value) if isinstance(value, int) else str(value))
        for name, value in status.items()
        if value
    ]
    return facts_fragment(title, about, facts)


def status_of(working_set: WorkingSet, core: Core) -> SessionStatus:
    """Collect the numbers of a session."""
    state = working_set.state
    covering = [one for one in (working_set.anchor_summary, working_set.summary) if one is not None]
    values = add_checks(one.checked for one in covering if one.checked is not None) or SummaryCheck()
    rules = working_set.rule_counts() or RuleCounts()
    return SessionStatus(
        version=working_set.version,
        budget_tokens=state.budget_tokens,
        view_tokens=working_set.breakdown.total,
        expected_tokens=state.calibration.expected_tokens(working_set.breakdown.total),
        recent_messages=state.recent_messages,
        recent_tokens=state.recent_tokens,
        pending_messages=state.pending_messages,
        pending_tokens=state.pending_tokens,
        hidden_messages=working_set.hidden_messages(working_set.in_view()),
        summarized_messages=sum(one.messages for one in covering),
        failures=state.failures,
        retry_tokens=state.retry_tokens,
        last_failure=core.last_failure,
        stale_summaries=core.stale_summaries,
        hook_errors=core.hook_errors,
        recalled_messages=len(_recalled_versions(working_set)),
        facts=shown_facts(working_set),
        hidden_facts=state.facts.known - shown_facts(working_set),
        stale_facts=state.facts.stale,
        fact_failures=state.facts.failures,
        fact_retry_tokens=state.fact_wait_tokens,
        last_fact_failure=core.last_fact_failure,
        values=values.values,
        restated_values=values.restated,
        lost_values=values.lost,
        invented_values=values.invented,
        rules=rules.in_force,
        hidden_rules=rules.hidden,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewDiff:
    """What came into a view and went out of it, between two versions.

    Args:
        came: Messages only in the second view.
        left: Messages only in the first view.
        summary_before: The summary of the first view; None if it has none.
        summary_after: The summary of the second view; None if it has none.
        recalled_before: Messages that the first view shows as earlier text.
        recalled_after: Messages that the second view shows as earlier text.
    """

    came: tuple[Event, ...]
    """Messages only in the second view."""
    left: tuple[Event, ...]
    """Messages only in the first view."""
    summary_before: str | None
    summary_after: str | None
    recalled_before: tuple[Event, ...] = ()
    """Messages that the first view shows as earlier text."""
    recalled_after: tuple[Event, ...] = ()


def fit_view(core: Core, at: int | None, budget: Any = None) -> Steps[Fitted[Dict]]:
    """Put the view together: of a version, or the view now, which usage may be reported for.

    With another budget it is what would be seen: nobody is sent it, and so nobody is told.
    """
    if budget is not None:
        return fit_working_set((yield from _working_set_within(core, at, budget)), ())
    if not observers.active:
        return (yield from _fit_view(core, at, None))
    from trimtab._fitting.observation import FitWatch  # not above: only who is looked at needs it

    with FitWatch("session", session=core.session) as watch:
        fitted = watch.fitted = yield from _fit_view(core, at, watch)
    return fitted


def _fit_view(core: Core, at: int | None, watch: FitWatch | None) -> Steps[Fitted[Dict]]:
    working_set = (yield from core.ready()) if at is None else (yield from working_set_at(core, at))
    if watch is not None:
        watch.hides = working_set.state.has_left
    if at is not None:
        return (yield from _fit_in_context(working_set, ()))
    failures = (("summary", core.last_failure), ("question for facts", core.last_fact_failure))
    notes = tuple(f"The last {what} failed: {why}." for what, why in failures if why is not None)
    fitted = yield from _fit_fresh(core, working_set, notes)
    first = next(iter(working_set.view()), 0)
    # not from the report, which is made when somebody reads it
    core.view_given = ViewGiven(working_set.version, fitted.settlement.tokens, first)
    return fitted


def _fit_fresh(core: Core, working_set: WorkingSet, notes: tuple[str, ...]) -> Steps[Fitted[Dict]]:
    """Fit the view; where the model binds its thinking, without what was made with another front.

    What came since the last view was made with that, so that its thinking is good as long as the views after
    go on from it. As soon as one differs, all behind the difference is stale.
    """
    if not working_set.reader.options.binds_thinking:
        return (yield from _fit_in_context(working_set, notes))
    shown = core.view_shown
    stale = _all_stale(working_set) if shown is None else _leaving_first(working_set, shown.stale)
    fitted = yield from _fit_in_context(working_set, notes, stale)
    keys = _keys_of(fitted)
    same = 0 if shown is None else sum(1 for _ in takewhile(bool, map(eq, shown.keys, keys)))
    if shown is not None and same < len(shown.keys):
        origins = listed_view(working_set).origins
        context = working_set.reader.options.context is not None  # whose other blocks are not listed here
        first = 0 if context else next((at for at in fitted.positions[same:] if at is not None), len(origins))
        stale = stale.union(*(one.versions for one in origins[first:]))
        fitted = yield from _fit_in_context(working_set, notes, stale)
        keys = _keys_of(fitted)
    core.view_shown = ViewShown(keys, stale & _versions_in(working_set))
    return fitted


def _all_stale(working_set: WorkingSet) -> frozenset[int]:
    """List all messages in view, if anything changed since they came: what stood before, nobody knows."""
    state = working_set.state
    if not working_set.reader.options.binds_thinking:
        return frozenset()
    put_in = working_set.facts or working_set.recalled or working_set.summary or working_set.rule_block
    pins = working_set.reader.options.writes is not None and state.pins  # which may be newer than thinking
    changed = put_in or state.has_left or state.epoch or state.popped or pins
    return frozenset(_versions_in(working_set)) if changed else _leaving_first(working_set, frozenset())


def _leaving_first(working_set: WorkingSet, stale: frozenset[int]) -> frozenset[int]:
    """List all messages in view, if what is not stale of their thinking has no room beside what was said.

    A session is cut by what stays of its messages: thinking that the next cut makes stale takes no room.
    """
    reader = working_set.reader
    passing = sum(
        reader.passing_tokens(message)
        for unit in working_set.in_view()
        for version, message in unit.members.items()
        if version not in stale
    )
    fits = working_set.breakdown.total + passing <= working_set.view_limit_tokens
    return stale if fits or not passing else frozenset(_versions_in(working_set))


def _keys_of(fitted: Fitted[Any]) -> list[int]:
    """Tell messages apart by what they say, whoever changes them later; marks for a cache say nothing."""
    return [hash(repr(message)) for message in fitted.settlement.outcome.messages()]


def _fit_in_context(
    working_set: WorkingSet, notes: tuple[str, ...], stale: frozenset[int] | None = None
) -> Steps[Fitted[Dict]]:
    """Fit the view; as one block among others if the session has a context."""
    options = working_set.reader.options
    if options.context is None:
        return fit_working_set(working_set, notes, stale)
    if options.room == NO_ROOM:
        yield FitContext(request_of(options, [], ()))  # says which of the other blocks does not fit
    fitted = fit_working_set(working_set, notes, stale)
    report = fitted.report
    checked = () if report.values is None else (report.values,)
    host = _host_place(working_set, fitted.positions)
    messages = [message for at, message in enumerate(fitted.messages) if at != host]
    asked = request_of(
        options,
        messages,
        report.notes,
        checked,
        report.rules,
        working_set.host_rules,
        written=written_in_output(fitted, host),
    )
    whole: Fitted[Dict] = yield FitContext(asked)
    return whole


def _host_place(working_set: WorkingSet, positions: Sequence[int | None]) -> int | None:
    """Find the host's rules in what a fit gave; None if there are none."""
    if working_set.host_message is None:
        return None
    return positions.index(int(working_set.reader.system_message() is not None))


def working_set_at(core: Core, version: int) -> Steps[WorkingSet]:
    """Read the state of the session at a version."""
    version = yield from core.known_version(version)
    working_set = yield from core.ready()
    if version == 0:
        state = State(budget_tokens=working_set.state.budget_tokens)
        return WorkingSet.begin(working_set.reader, state, version=0)
    whole = working_set.state.whole
    then = state_of((yield from event_at(core.session, version)), core.session)
    state = yield from recount_waiting(core.session, then, then.reaching_to(whole), reader=working_set.reader)
    known = yield from core.known_options(state.options)
    options = core.options_of(known)
    if options.context is not None:
        # The other blocks are those of now, and so is the room they leave.
        state = state.with_room(min(state.budget_tokens, options.budget_tokens))
    if options.counted_by != known["counted_by"]:
        reader = MessageReader(options)
        state = state.with_calibration(Calibration())
        state = yield from recount(core.session, state, version=version, reader=reader)
    state = yield from recount_facts(core.session, state)  # of those of then some may be stale by now
    return (yield from read_working_set(core.session, version, state, options))


def _working_set_within(core: Core, at: int | None, budget: Any) -> Steps[WorkingSet]:
    """Read where a session stood at a version, and change its budget there as `set_budget` does.

    Nothing is written, and no summary is asked for.
    """
    newest = (yield from core.ready()).version
    if core.in_force.context is not None:
        raise ConfigurationError(
            "the budget of this session is its Context's: fit() works only with that budget"
        )
    working_set = yield from working_set_at(core, newest if at is None else at)
    reader = working_set.reader
    options = reader.options
    tokens = session_budget(budget, options.tokens_by, options.tools, model=options.model).input_tokens
    working_set.state = working_set.state.with_budget(tokens)
    working_set.require_room()
    working_set.facts = yield from read_facts(core.session, working_set.state, reader)
    if working_set.over:
        working_set.cut()
    return (yield from read_working_set(core.session, working_set.version, working_set.state, reader.options))


def origins_of(core: Core, at: int | None, budget: Any = None) -> Steps[list[Origin]]:
    """List what the messages of a view are of, as they stand in the rows of its report."""
    if budget is not None:
        return listed_view((yield from _working_set_within(core, at, budget))).origins
    working_set = (yield from core.ready()) if at is None else (yield from working_set_at(core, at))
    origins = listed_view(working_set).origins
    if working_set.reader.options.context is None:
        return origins
    # the other blocks are put around what the session's own fit gives
    places = fit_working_set(working_set, ()).positions
    host = _host_place(working_set, places)
    shown = [place for at, place in enumerate(places) if at != host]
    return [Origin("shortened") if place is None else origins[place] for place in shown]


def diff_views(core: Core, a: int, b: int) -> Steps[ViewDiff]:
    """Compare two views."""
    before = yield from working_set_at(core, a)
    after = yield from working_set_at(core, b)
    old, new = _versions_in(before), _versions_in(after)
    came, left = sorted(new - old), sorted(old - new)
    recalled = [_recalled_versions(one) for one in (before, after)]
    events = yield from events_at(core.session, {*came, *left, *recalled[0], *recalled[1]})
    return ViewDiff(
        came=tuple(events[version] for version in came),
        left=tuple(events[version] for version in left),
        summary_before=None if before.summary is None else before.summary.text,
        summary_after=None if after.summary is None else after.summary.text,
        recalled_before=tuple(events[version] for version in recalled[0]),
        recalled_after=tuple(events[version] for version in recalled[1]),
    )


def _versions_in(working_set: WorkingSet) -> set[int]:
    return {version for unit in working_set.in_view() for version in unit.members}


def _recalled_versions(working_set: WorkingSet) -> tuple[int, ...]:
    recalled = working_set.recalled if working_set.shows_recalled else None
    return () if recalled is None else recalled.versions
