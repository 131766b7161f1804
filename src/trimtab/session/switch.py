"""Going on with another model: what that would mean, and doing it (design/044-model-switch.md)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, NamedTuple, get_args

from trimtab._fitting.fitted import Fitted
from trimtab._fitting.request import budget_of
from trimtab._shared.options import UNSET
from trimtab.budget import Budget, known_budget
from trimtab.errors import BudgetExceededError, ConfigurationError, option, phrase
from trimtab.formats.origin import Origins
from trimtab.report.text import plural
from trimtab.session.add import eviction
from trimtab.session.calibration import Calibration
from trimtab.session.core import Core
from trimtab.session.effects import Steps
from trimtab.session.extract import extract_waiting
from trimtab.session.log import live_units, read_working_set, recount
from trimtab.session.messages import MessageReader, SessionUnit
from trimtab.session.options import Options, as_given, functions_of
from trimtab.session.rules import RuleView
from trimtab.session.state import State
from trimtab.session.summarize import (
    messages_of,
    require_summary,
    tell_gone,
    units_of_job,
    waiting_job,
)
from trimtab.session.view import fit_working_set, listed_view, shown_facts
from trimtab.session.working_set import WorkingSet
from trimtab.session.zones import limits_of
from trimtab.stores import Event
from trimtab.strategies.must_keep import Source, finder_of, sources_of, values_only_in

Verdict = Literal["fits", "summarize", "evict", "impossible"]
"""What a switch comes to; a closed list, explained at `SwitchPlan`."""

VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
"""All verdicts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchPlan:
    """What a switch to another model or budget means, in numbers.

    Args:
        verdict: "fits": nothing has to leave the view. "summarize": the view fits after `summaries`
            summaries. "evict": the view fits, and messages leave it without a summary; the log keeps them.
            "impossible": what must stay does not fit, even at its shortest.
        model: The model after the switch.
        budget_tokens: The budget after the switch.
        tokens_before: Tokens of the current view, as counted for that model.
        tokens_after: Tokens of the view after the switch. For "summarize", the most it can have; for
            "impossible", the least.
        summary_tokens: The part of `tokens_after` that is the cap of new summaries.
        summaries: Calls for a summary. A text that is too long is requested again, which is not counted.
        leaving_messages: Messages that the summaries replace, or that leave without one.
        leaving_tokens: Tokens of these messages.
        shortened_messages: Messages that stay, but are shown shortened: results above their share, and what
            must stay if it is too large.
        hidden_facts: Current facts without room in view.
        hidden_rules: Rules in force without room in view, in a message or restated.
        values_at_risk: Exact values in the messages that leave, and in no message that stays: only a summary
            would have them. None if `must_keep` is None, or for "impossible".

    Example:
        >>> from trimtab import Session
        >>> session = Session(500, model="gpt-4o")
        >>> _ = session.add({"role": "user", "content": "Hello"})
        >>> print(session.plan("gpt-4o-mini", budget=200))
        gpt-4o-mini, 200 tokens: fits now, with 8 tokens.
    """

    verdict: Verdict
    model: str | None
    """The model after the switch."""
    budget_tokens: int
    """The budget after the switch."""
    tokens_before: int
    """Tokens of the current view, as counted for that model."""
    tokens_after: int
    """Tokens of the view after the switch.

    For "summarize", the most it can have; for "impossible", the least.
    """
    summary_tokens: int = 0
    """The part of `tokens_after` that is the cap of new summaries."""
    summaries: int = 0
    """Calls for a summary."""
    leaving_messages: int = 0
    """Messages that the summaries replace, or that leave without one."""
    leaving_tokens: int = 0
    """Tokens of these messages."""
    shortened_messages: int = 0
    """Messages that stay, but are shown shortened: results above their share, and what must stay if it is too
    large.
    """
    hidden_facts: int = 0
    """Current facts without room in view."""
    hidden_rules: int = 0
    """Rules in force without room in view, in a message or restated."""
    values_at_risk: int | None = None
    """Exact values in the messages that leave, and in no message that stays: only a summary would have them.

    None if `must_keep` is None, or for "impossible".
    """

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)

    def __str__(self) -> str:
        """Say it in sentences."""
        said = [f"{self.model or 'no model'}, {self.budget_tokens:,} tokens: {self._verdict_text()}"]
        if self.leaving_messages:
            how = "Replaced by a summary" if self.summaries else "Out of view, but in the log"
            what = f"{plural(self.leaving_messages, 'message')} ({self.leaving_tokens:,} tokens)"
            said.append(f"{how}: {what}.")
        if self.values_at_risk:
            said.append(f"In no message that stays: {plural(self.values_at_risk, 'exact value')}.")
        if self.shortened_messages:
            said.append(f"Shown shortened: {plural(self.shortened_messages, 'message')}.")
        hidden = {"fact": self.hidden_facts, "rule": self.hidden_rules}
        if any(hidden.values()):
            listed = ", ".join(plural(count, what) for what, count in hidden.items() if count)
            said.append(f"Without room in view: {listed}.")
        return " ".join(said)

    def _verdict_text(self) -> str:
        match self.verdict:
            case "fits":
                return f"fits now, with {self.tokens_after:,} tokens."
            case "summarize":
                n = "1 summary" if self.summaries == 1 else f"{self.summaries:,} summaries"
                return f"fits after {n}, with at most {self.tokens_after:,} of {self.tokens_before:,} tokens."
            case "evict":
                return f"fits, with {self.tokens_after:,} of {self.tokens_before:,} tokens."
            case "impossible":
                over = self.tokens_after - self.budget_tokens
                return f"impossible: what must stay takes {self.tokens_after:,} tokens, {over:,} too many."


class Asked(NamedTuple):
    """What a caller asks to switch to."""

    model: Any
    """None: the same model."""
    budget: Any
    """None: found from the model."""
    counter: Any
    """`UNSET`: the same, or that of the model."""


class _Outcome(NamedTuple):
    """What a switch comes to, and what leaves."""

    verdict: Verdict
    units: Sequence[SessionUnit]
    summaries: int = 0


@dataclass(slots=True, kw_only=True)
class _Prepared:
    """A switch that is not written yet."""

    plan: SwitchPlan
    made: WorkingSet
    """The session as it would be, cut."""
    uncut: State
    """Its state before the cut."""
    leaving: list[SessionUnit]
    """Units that are no longer recent."""
    changes: bool
    """Whether the options become others; without, only what waits is summarized."""
    exceeded_tokens: int
    """Tokens of the view before the cut, if it has to be cut; else 0."""
    error: BudgetExceededError | None
    """Why it is impossible."""


def plan_switch(core: Core, asked: Asked) -> Steps[SwitchPlan]:
    """Say what a switch means; nothing is written, and no model is called."""
    return (yield from _prepare(core, asked)).plan


def switch_model(core: Core, asked: Asked) -> Steps[SwitchPlan]:
    """Switch, and have the summaries written without which messages would be missing.

    The switch is one append, and each summary is another: a session that is interrupted in between is as
    after `set_budget`, and the same call again writes what is missing.
    """
    prepared = yield from _prepare(core, asked)
    if prepared.error is not None:
        raise prepared.error
    seen, done = (yield from core.ready()).view(), 0
    yield from _write(core, prepared, asked)
    try:
        done = yield from _summarize_all(core, prepared.plan.summaries)
        if prepared.plan.leaving_messages:
            yield from extract_waiting(core)
    finally:
        tell_gone(core, seen)
    return replace(prepared.plan, summaries=done)


# -- what it would be


def _prepare(core: Core, asked: Asked) -> Steps[_Prepared]:
    """Read the session as it would be after a switch, and say what that means."""
    now = yield from core.ready()
    options = core.in_force
    target = _options_after(core, now.state, asked)
    changes = (
        target.model != options.model
        or target.counted_by != options.counted_by
        or target.budget_tokens != now.state.budget_tokens
    )
    state = (yield from _state_after(core, now, target)) if changes else now.state
    made = yield from read_working_set(core.session, now.version, state, target)
    before = yield from _view_of(core, now, made)
    shown = listed_view(now).messages
    whole_tokens = made.reader.fixed_tokens() + sum(map(made.reader.lasting_tokens, shown))
    tokens_before = whole_tokens - now.saved_tokens(now.in_view(), reader=made.reader)
    exceeded, leaving = (made.total_tokens, made.cut()) if made.over else (0, [])
    made = yield from read_working_set(core.session, now.version, made.state, target)
    error: BudgetExceededError | None = None
    try:
        made.require_room()
        fitted = fit_working_set(made, ())
        outcome = yield from _find_leaving(core, made, before)
        plan = _plan_of(made, fitted, outcome, tokens_before)
    except BudgetExceededError as raised:
        error = raised
        plan = SwitchPlan(
            verdict="impossible",
            model=target.model,
            budget_tokens=made.state.budget_tokens,
            tokens_before=tokens_before,
            tokens_after=error.needed_tokens or made.permanent_tokens,
        )
    return _Prepared(
        plan=plan,
        made=made,
        uncut=state,
        leaving=leaving,
        changes=changes,
        exceeded_tokens=exceeded,
        error=error,
    )


def _options_after(core: Core, state: State, asked: Asked) -> Options:
    """Make the options that a switch leads to."""
    options = core.in_force
    if options.context is not None:
        raise ConfigurationError(
            "the budget and the model of this session are its Context's: open the session with a Context for"
            " the other model"
        )
    if asked.model is None and asked.budget is None:
        raise ConfigurationError(
            phrase("pass the model to go on with, or ", option("budget"), ", or both"), argument="model"
        )
    given = functions_of(options)
    given["model"] = options.model if asked.model is None else asked.model
    if asked.counter is not UNSET:
        given["counter"] = asked.counter
    given["budget"] = _budget_after(options, state, given["model"]) if asked.budget is None else asked.budget
    return Options(**as_given(core.options_data(), given))


def _budget_after(options: Options, state: State, model: Any) -> Budget:
    """Keep the budget, as far as the model takes it; what was the whole window becomes the whole window."""
    most, whole = budget_of(None, model), known_budget(None, options.model)
    was_whole = whole is not None and state.budget_tokens >= whole.input_tokens
    kept = state.budget_tokens <= most.input_tokens and not was_whole
    return Budget(state.budget_tokens) if kept else most


def _state_after(core: Core, now: WorkingSet, target: Options) -> Steps[State]:
    """Say where the session stands under other options, before anything is cut."""
    options, state = core.in_force, now.state.with_budget(target.budget_tokens)
    counts_otherwise = target.counted_by != options.counted_by
    if counts_otherwise or target.model != options.model:
        state = state.with_calibration(Calibration())
    if counts_otherwise or target.clamp != options.clamp:
        state = yield from recount(core.session, state, version=now.version, reader=MessageReader(target))
    return state


def _view_of(core: Core, now: WorkingSet, made: WorkingSet) -> Steps[list[SessionUnit]]:
    """Read the units of the current view, with the sizes they would have."""
    firsts = now.view().keys()
    if not firsts:
        return []
    units = yield from live_units(
        core.session, made.state, start=min(firsts), stop=max(firsts) + 1, reader=made.reader
    )
    return [unit for unit in units if unit.first in firsts]


def _find_leaving(core: Core, made: WorkingSet, before: Iterable[SessionUnit]) -> Steps[_Outcome]:
    """Find what is summarized so that no message is missing; without a summarizer, what leaves the view."""
    shown = made.view()
    if made.reader.options.summarizer is not None and _is_missing_some(made):
        parts = yield from _parts_to_summarize(core, made)
        if parts:
            return _Outcome("summarize", [unit for part in parts for unit in part], len(parts))
    leaving = [unit for unit in before if unit.first not in shown]
    return _Outcome("evict" if leaving else "fits", leaving)


def _is_missing_some(working_set: WorkingSet) -> bool:
    """Tell whether some of what waits for a summary is not in view."""
    shown = sum(len(unit.members) for unit in working_set.shown.values())
    return working_set.state.pending_messages > shown


def _parts_to_summarize(core: Core, made: WorkingSet) -> Steps[list[list[SessionUnit]]]:
    """Part all that waits into what each call of the summarizer is given.

    Only as long as each summary has room: for text in its cap, and below what it replaces.
    """
    parts, state, reader = list[list[SessionUnit]](), made.state, made.reader
    summary, caps = made.summary, _caps(made)
    count = 0 if summary is None else summary.messages
    origins: Origins = frozenset() if summary is None else summary.origins
    goes_on, is_anchor = summary is not None, len(caps) > 1
    while units := (yield from units_of_job(core.session, state, reader)):
        count += sum(len(unit.members) for unit in units)
        origins = origins.union(*(one for unit in units for one in unit.origins))
        mark = reader.tokens(reader.summary_message("", count, origins))
        replaced = sum(unit.tokens for unit in units) - 1
        if mark >= caps[min(len(parts), len(caps) - 1)] or (not goes_on and mark >= replaced):
            break
        parts.append(units)
        goes_on, is_anchor = goes_on or not is_anchor, False
        covers = {unit.first for unit in units}
        older = yield from live_units(core.session, state, stop=max(covers) + 1, reader=reader)
        state = state.with_summary(
            made.version + len(parts),
            [(unit.versions, unit.tokens) for unit in older],
            covers=covers,
            becomes_anchor=False,
            retry_tokens=0,
        )
    return parts


def _caps(made: WorkingSet) -> list[int]:
    """List the caps of the summaries to come; the last holds for all others.

    Where the first becomes the anchor, those after it have at least what its own cap leaves.
    """
    options, limits = made.reader.options, limits_of(made.reader.options, made.state.room_tokens)
    most = limits.max_summary_tokens
    if options.summary_mode != "anchored" or made.anchors:
        return [_cap(made, most)]
    if made.anchor_summary is not None:
        return [_cap(made, most - made.anchor_tokens)]
    anchor = min(most, limits.max_anchor_tokens)
    return [_cap(made, anchor), _cap(made, most) - anchor]


def _plan_of(made: WorkingSet, fitted: Fitted[Any], outcome: _Outcome, tokens_before: int) -> SwitchPlan:
    """Put the numbers of a switch that is possible together."""
    gone = {unit.first for unit in outcome.units}
    stays = {first: unit for first, unit in made.view().items() if first not in gone}
    rules = made.rules_with(stays)
    tokens, cap = fitted.settlement.tokens, 0
    if outcome.summaries:
        view = made.in_view()
        shown = sum(unit.tokens for unit in view if unit.first in gone)
        shown += made.saved_tokens(stays.values()) - made.saved_tokens(view)
        replaced = made.summary_tokens if made.shows_summary else 0
        cap = max(_caps(made)[0], sum(_caps(made)))
        restated = (0 if rules.block is None else rules.block.tokens) - made.rule_tokens
        tokens = min(tokens - shown - replaced + cap + restated, made.state.budget_tokens)
    return SwitchPlan(
        verdict=outcome.verdict,
        model=made.reader.options.model,
        budget_tokens=made.state.budget_tokens,
        tokens_before=tokens_before,
        tokens_after=tokens,
        summary_tokens=cap,
        summaries=outcome.summaries,
        leaving_messages=sum(len(unit.members) for unit in outcome.units),
        leaving_tokens=sum(unit.tokens for unit in outcome.units),
        shortened_messages=_count_shortened(made, fitted, stays.values()),
        hidden_facts=made.state.facts.known - shown_facts(made),
        hidden_rules=_count_hidden(made, rules, stays.values()),
        values_at_risk=_values_at_risk(made, outcome.units, [*stays.values()], rules),
    )


def _count_shortened(made: WorkingSet, fitted: Fitted[Any], stays: Iterable[SessionUnit]) -> int:
    """Count the messages that are shown shortened: as the session shows them, or by the fit."""
    origins, whole = listed_view(made).origins, made.said_last().keys()
    cut = {
        version
        for row in fitted.report.messages
        if row.fate == "changed" and row.reason in ("over_limit", "over_cap")
        for version in origins[row.index].versions
    }
    clamped = sum(unit.clamped - len(whole & unit.members.keys()) for unit in stays)
    return clamped + sum(
        len(cut & (whole if unit.clamped else unit.members.keys()) & unit.members.keys()) for unit in stays
    )


def _count_hidden(made: WorkingSet, rules: RuleView, stays: Iterable[SessionUnit]) -> int:
    """Count the rules in force that the view does not say: where it is shortened, no message says one."""
    listed = list(stays)
    tokens = sum(unit.tokens for unit in listed) - made.saved_tokens(listed)
    is_whole = made.permanent_tokens + tokens <= made.view_limit_tokens
    places = [rules.place(one, is_whole=is_whole) for one in made.found_rules.known]
    return made.rules.unlisted + places.count("hidden")


def _values_at_risk(
    made: WorkingSet, leaving: Sequence[SessionUnit], stays: Sequence[SessionUnit], rules: RuleView
) -> int | None:
    """Count the exact values of messages that leave which nothing in view says then, but for a summary."""
    reader = made.reader
    options, format = reader.options, reader.format
    if options.must_keep is None:
        return None
    if not leaving:
        return 0
    others = [*made.anchors, *messages_of(stays)]
    if options.system is not None:
        others.append(format.message("user", [str(options.system)]))
    if made.facts is not None and made.shows_facts:
        others.append(made.facts.message)
    if made.host_message is not None:
        others.append(made.host_message)
    if rules.block is not None:
        others.append(rules.block.message)
    origins: Origins = frozenset(("user",))
    said = sources_of(format, ((one, origins) for one in others))
    return len(values_only_in(finder_of(options.must_keep), _sources(reader, leaving), said))


def _sources(reader: MessageReader, units: Iterable[SessionUnit]) -> list[Source]:
    rows = (row for unit in units for row in zip(unit.members.values(), unit.origins, strict=True))
    return sources_of(reader.format, rows)


# -- doing it


def _write(core: Core, prepared: _Prepared, asked: Asked) -> Steps[None]:
    """Write the switch and what it cuts, in one append, and go by it."""
    made, before = prepared.made, (yield from core.ready())
    events, version = list[Event](), made.version + 1
    if prepared.changes:
        cut = made.state
        made.state = prepared.uncut.with_switch(version)
        events.append(core.event(made, "options", _switch_data(core, made.reader.options, before, asked)))
        made.state = cut.with_switch(version)
    elif prepared.leaving:
        events += core.first_events(made)
    if prepared.leaving:
        events.append(eviction(core, made, prepared.leaving))
    elif events:  # the view may be cut all the same
        events[-1] = replace(events[-1], state=made.state.to_dict())
    if not events:
        return
    core.working_set = None  # until everything is written
    yield from core.append(made, events)
    if prepared.changes:
        core.go_on_with(made.reader.options, {} if asked.counter is UNSET else {"counter": asked.counter})
        core.announce("switched", version=version, tokens=made.state.budget_tokens)
    if prepared.exceeded_tokens:
        core.announce("exceeded", tokens=prepared.exceeded_tokens)
        core.tell("on_budget_exceeded", prepared.exceeded_tokens, made.state.budget_tokens)
    if prepared.leaving:
        core.tell("on_evict", messages_of(prepared.leaving), "budget")
    yield from core.reread(made)


def _switch_data(core: Core, target: Options, before: WorkingSet, asked: Asked) -> dict[str, Any]:
    """Say what the session goes by from here, and what it went by before."""
    data = target.to_data()
    missing = {name: one for name, one in core.missing.items() if name != "counter" or asked.counter is UNSET}
    data["given"].update(missing)
    was = {"model": core.in_force.model, "budget_tokens": before.state.budget_tokens}
    return {"options": data, "switch": was}


def _summarize_all(core: Core, summaries: int) -> Steps[int]:
    """Have what waits summarized, with room for each summary beside what stays; count the summaries."""
    done = 0
    while done < summaries and (job := (yield from waiting_job(core, (yield from core.ready())))) is not None:
        working_set = yield from core.ready()
        capped = replace(job, cap_tokens=_cap(working_set, job.cap_tokens))
        if not (yield from require_summary(core, capped)):
            break  # another writer was there: what waits now is another matter
        done += 1
    return done


def _cap(working_set: WorkingSet, cap_tokens: int) -> int:
    """Hold the cap of a summary to what is free beside what stays.

    Where hardly anything is free, as beside a very large message of the user, the cap stays: the summary is
    out of view until that message leaves.
    """
    state = working_set.state
    stays = working_set.reserved_tokens + working_set.recall_share * state.has_left + state.recent_tokens
    free = state.room_tokens - stays
    least = limits_of(working_set.reader.options, state.room_tokens).threshold_tokens
    return min(cap_tokens, free) if free >= least else cap_tokens
