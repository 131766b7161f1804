"""The state of a session after an event: small, whatever the length of its log, and stored in each event.

Nothing else writes into a state: what an event makes of it is a method here, and what it needs to know of
messages (their units, their tokens) is given to it.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import takewhile
from typing import Any, Literal

from trimtab.session.calibration import NAMES as IN_CALIBRATION
from trimtab.session.calibration import Calibration
from trimtab.session.fact_record import NAMES as IN_FACTS
from trimtab.session.fact_record import FactRecord

Members = tuple[int, ...]
"""Versions of the messages of one unit, ascending."""

Place = Literal["recent", "pending"]
"""The place of a unit that is not summarized."""

MAX_WAITING = 64
"""Calls without a result that are remembered; the result of an older one is shown as text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Which messages are recent, which wait, and what replaces the others.

    Messages from `cut` on are recent and those from `live` up to it wait, apart from the units named in
    `beside` (recent, though older) and `left` (waiting, though a message of theirs is elsewhere).
    Older ones are covered by the summary or were cleared.
    """

    budget_tokens: int = 0
    """Current input tokens of the budget."""
    options: int = 0
    """Version of the event with the current options."""
    anchors: int = 0
    """Version of the event with the current anchors; 0: those of the options."""
    host_rules: int = 0
    """Version of the event with the host's current rules; 0: those of the options."""
    rules: int = 0
    """Version of the event with the register of the rules that were found; 0: none was."""
    summary: int = 0
    """Version of the current summary; 0: none."""
    anchor_summary: int = 0
    """Version of the summary that became the anchor (mode "anchored"); 0: none."""
    newest_summary: int = -1
    """Version of the newest summary of the log, in force or not; each says which was before it. 0: there is
    none; -1: an older trimtab, which did not say, began the log."""
    recollection: int = 0
    """Version of the event that says what was recalled, and for which question; 0: nothing was."""
    cleared: int = 0
    """Version of the event that cleared the session; 0: none. What was said before is recalled for no
    question."""
    live: int = 1
    cut: int = 1
    view: int = 0
    """Version from which on what waits may be in view: where the view was cut last; 0: it was not."""
    beside: tuple[Members, ...] = ()
    left: tuple[Members, ...] = ()
    waiting: tuple[tuple[Members, tuple[str, ...]], ...] = ()
    """Units with calls whose results are still to come, and the ids of these calls."""
    pins: tuple[int, ...] = ()
    """Versions of the messages that were pinned."""
    user: int = 0
    """Version of the latest message the user wrote, among those not covered; 0: none."""
    turn: int = 0
    """Version of the latest message of the user or the model, among those not covered; 0: none.

    Where it is bound to those before it, of the first of its unit.
    """
    last: int = 0
    """Version of the latest message, among those not covered; 0: none."""
    kept: int = 0
    """Version of the latest message that stands for all before it, as the provider wrote it; 0: none."""
    recent_tokens: int = 0
    recent_messages: int = 0
    pending_tokens: int = 0
    pending_messages: int = 0
    said_tokens: int = 0
    """Tokens of all messages since all began anew, in view or not, where the depth of cuts goes by them."""
    calls: int = 0
    """Calls of the model in the same time."""
    failures: int = 0
    """Failed summaries since the last successful one."""
    retry_tokens: int = 0
    """Waiting tokens at which the summarizer is called again after a failure."""
    facts: FactRecord = field(default_factory=FactRecord)
    """Which facts are current, and how far the log was read for them."""
    popped: int = 0
    """Version of the newest event that popped a message; 0: there is none."""
    switched: int = 0
    """Version of the newest event that switched the model; 0: there is none."""
    whole: int = 1
    """Version from which on the log is whole; of what is older, only what later states need is there."""
    oldest: int = 0
    """The oldest version whose view can be shown, and on which a decision can be undone; 0: all can."""
    pruned: int = 0
    """Version of the newest event that pruned the log; 0: none did, or it is not in this log."""
    aside_tokens: int = 0
    """Tokens of all units that ever stopped being recent: what the distance between failures goes by."""
    epoch: int = 0
    """Grows by what makes a summary that is being written stale: clear, undo, redact, anchors."""
    calibration: Calibration = field(default_factory=Calibration)
    """What the provider reported, and what was learned from it."""

    # Two borders say where nearly every message is, at any length of the log. What they do not say is
    # listed by unit, and that is bounded: a unit is beside a border if it is pinned, or waits for a result.

    def place(self, first: int, /) -> Place | None:
        """Return the place of the unit that begins with a message; None if it is covered or was cleared."""
        for members in self.beside:
            if members[0] == first:
                return "recent"
        for members in self.left:
            if members[0] == first:
                return "pending"
        return self.place_by_version(first)

    def place_by_version(self, version: int, /) -> Place | None:
        """Return the place of a unit that no other rule names."""
        if version < self.live:
            return None
        return "pending" if version < self.cut else "recent"

    @property
    def has_left(self) -> bool:
        """Tell whether messages stopped being recent since the last clear."""
        return self.cut > self.cleared + 1

    @property
    def room_tokens(self) -> int:
        """The budget as the counter counts: the most that is expected to be billed within the budget."""
        return self.calibration.room_tokens(self.budget_tokens)

    @property
    def fact_wait_tokens(self) -> int:
        """Tokens that have yet to leave the recent ones before the fact extractor is asked again."""
        return max(0, self.facts.retry_tokens - self.aside_tokens)

    @property
    def growth_tokens(self) -> float:
        """What came with each call of the model, on the mean; 0 where nobody counted."""
        return self.said_tokens / max(1, self.calls)

    # -- what each kind of event makes of it

    def with_said(self, tokens: int, *, is_call: bool) -> State:
        """Add up what was said; `is_call`: the model was called for it."""
        return replace(self, said_tokens=self.said_tokens + tokens, calls=self.calls + is_call)

    def plus(self, place: Place | None, *, tokens: int, messages: int) -> State:
        """Add to what is recent, or to what waits; None is neither."""
        if place == "recent":
            return replace(
                self,
                recent_tokens=self.recent_tokens + tokens,
                recent_messages=self.recent_messages + messages,
            )
        if place == "pending":
            return replace(
                self,
                pending_tokens=self.pending_tokens + tokens,
                pending_messages=self.pending_messages + messages,
            )
        return self

    def with_counts_of(self, units: Iterable[tuple[Members, int]], /) -> State:
        """Add up what is recent and what waits; `units` are all there are, with their tokens."""
        made = replace(self, recent_tokens=0, recent_messages=0, pending_tokens=0, pending_messages=0)
        for members, tokens in units:
            made = made.plus(self.place(members[0]), tokens=tokens, messages=len(members))
        return made

    def with_recent(self, units: Iterable[tuple[Members, int]], /) -> State:
        """Have these as all that is recent, with their tokens."""
        made = replace(self, recent_tokens=0, recent_messages=0)
        for members, tokens in units:
            made = made.plus("recent", tokens=tokens, messages=len(members))
        return made

    def with_options(self, version: int, /) -> State:
        """Go by the options of an event."""
        return replace(self, options=version)

    def with_switch(self, version: int, /) -> State:
        """Go by the options of an event that switched the model."""
        return replace(self, options=version, switched=version)

    def with_room(self, budget_tokens: int, /) -> State:
        """Go by what a context leaves, or by the budget of the options."""
        return replace(self, budget_tokens=budget_tokens)

    def with_budget(self, budget_tokens: int, /) -> State:
        """Go by a budget that was ordered; a larger one brings back what was cut out of view."""
        made = self.without_cut() if budget_tokens > self.budget_tokens else self
        return replace(made, budget_tokens=budget_tokens, epoch=self.epoch + 1)

    def with_view_from(self, version: int, /) -> State:
        """Let what waits be in view from a version on."""
        return replace(self, view=version)

    def grown_from(self, before: State, /, *, target_ratio: float) -> State:
        """Forget where the view was cut, if since an earlier state as much room came as a cut makes.

        A room that goes up and down a little, as other blocks or reports of usage change it, would else bring
        back at each call what was evicted at the call before.
        """
        return self.without_cut() if target_ratio * self.room_tokens >= before.room_tokens else self

    def without_cut(self) -> State:
        """Forget where the view was cut: what waits comes back as far as it fits."""
        return replace(self, view=0)

    def with_anchors(self, version: int, /) -> State:
        """Go by the anchors of an event; 0: by those of the options."""
        return replace(self, anchors=version, epoch=self.epoch + 1)

    def with_host_rules(self, version: int, /) -> State:
        """Go by the host's rules of an event; 0: by those of the options."""
        return replace(self, host_rules=version, epoch=self.epoch + 1)

    def with_rules(self, version: int, /) -> State:
        """Go by the register of rules in an event."""
        return replace(self, rules=version)

    def with_recollection(self, version: int, /) -> State:
        """Show what an event says was recalled."""
        return replace(self, recollection=version)

    def with_message(self, version: int, *, user: bool, turn: int | None, kept: bool) -> State:
        """Have a message as the latest; `turn` is where its turn begins, None if it is of none."""
        return replace(
            self,
            last=version,
            user=version if user else self.user,
            turn=self.turn if turn is None else turn,
            kept=version if kept else self.kept,
        )

    def with_member(self, before: Members, unit: Members, ids: tuple[str, ...]) -> State:
        """Have a message more in a recent unit, and note its calls (`ids`) that wait for results.

        `before` is the unit without that message; empty if it begins with it.
        """
        rows = list(self.waiting)
        at = next((at for at, (members, _) in enumerate(rows) if members == before), len(rows))
        rows[at : at + 1] = [(unit, ids)] if ids else []
        waiting = tuple(rows[-MAX_WAITING:])  # the oldest is given up, so that a state stays small
        beside = tuple(unit if members == before else members for members in self.beside)
        facts = self.facts.with_late(before[0]) if before else self.facts
        return replace(self, beside=beside, waiting=waiting, facts=facts)

    def without_message(
        self, version: int, unit: Members, *, ids: tuple[str, ...], tokens: int, before: State
    ) -> State:
        """Have the newest message no longer.

        Args:
            version: Of the message.
            unit: Versions of the messages of its unit, its own among them.
            ids: Calls of the others that have no result then.
            tokens: Of the message.
            before: The state before it came, which knows what was the newest then.
        """
        rest = tuple(one for one in unit if one != version)

        def without(units: tuple[Members, ...]) -> tuple[Members, ...]:
            return tuple(filter(None, (rest if members[0] == unit[0] else members for members in units)))

        rows = [row for row in self.waiting if row[0][0] != unit[0]]
        less = self.plus(self.place(unit[0]), tokens=-tokens, messages=-1)
        return replace(
            less.with_new_epoch().without_pin(version),
            beside=without(self.beside),
            left=without(self.left),
            waiting=tuple(sorted([*rows, (rest, ids)] if ids else rows)),
            facts=self.facts.without((version,)),
            user=before.user,
            turn=before.turn,
            last=before.last,
            kept=before.kept,
        )

    def with_pop(self, version: int, /) -> State:
        """Have an event say that a message was taken off."""
        return replace(self, popped=version)

    def without_members(self, gone: Container[int], /) -> State:
        """Have units without messages that were popped since."""

        def there(members: Members) -> Members:
            return tuple(one for one in members if one not in gone)

        return replace(
            self,
            beside=tuple(filter(None, map(there, self.beside))),
            left=tuple(filter(None, map(there, self.left))),
            waiting=tuple((there(members), ids) for members, ids in self.waiting if there(members)),
            facts=self.facts.without(gone),
        )

    def with_unit_back(self, unit: Members, tokens: int) -> State:
        """Have a unit that waited among the recent ones: it is beside the cut from now on."""
        back = replace(
            self,
            beside=tuple(sorted({*self.beside, unit})),
            left=tuple(members for members in self.left if members[0] != unit[0]),
        )
        less = back.plus("pending", tokens=-tokens, messages=-len(unit))
        return less.plus("recent", tokens=tokens, messages=len(unit))

    def with_units_aside(self, leaving: Sequence[Members], recent: Iterable[Members], tokens: int) -> State:
        """Let recent units wait, in order; `recent` are those that stay, and `tokens` of those that leave."""
        cut = max(self.cut, leaving[-1][0] + 1)
        left = {unit for unit in (*self.left, *leaving) if unit[0] < self.live or unit[-1] >= cut}
        beside = tuple(takewhile(lambda unit: unit[0] < cut, recent))
        aside = replace(self, cut=cut, beside=beside, left=tuple(sorted(left)))
        messages = sum(map(len, leaving))
        less = aside.plus("recent", tokens=-tokens, messages=-messages)
        made = less.plus("pending", tokens=tokens, messages=messages)
        return replace(made, aside_tokens=self.aside_tokens + tokens)

    def with_summary(
        self,
        version: int,
        units: Iterable[tuple[Members, int]],
        *,
        covers: Collection[int],
        becomes_anchor: bool,
        retry_tokens: int,
    ) -> State:
        """Have a summary stand for units.

        Args:
            version: Of the summary.
            units: Every unit that begins before the last of these ends, with its tokens.
            covers: First messages of those it stands for.
            becomes_anchor: Whether it is the anchor of mode "anchored".
            retry_tokens: How much has to wait before the next.
        """
        made, aside = self, self.aside_tokens
        beside = {members[0]: members for members in self.beside}
        left = {members[0]: members for members in self.left}
        for members, tokens in units:
            first, place = members[0], self.place(members[0])
            if first in covers:
                made = made.plus(place, tokens=-tokens, messages=-len(members))
                aside += tokens if place == "recent" else 0
                beside.pop(first, None)
                left.pop(first, None)
            else:
                (left if place == "pending" else beside)[first] = members
        # The borders pass all it stands for, and what lies between and is not covered is listed from now on.
        border = max(covers) + 1
        return replace(
            made,
            live=max(self.live, border),
            cut=max(self.cut, border),
            beside=tuple(sorted(beside.values())),
            left=tuple(sorted(left.values())),
            waiting=tuple(one for one in self.waiting if one[0][0] not in covers),
            anchor_summary=version if becomes_anchor else self.anchor_summary,
            summary=self.summary if becomes_anchor else version,
            newest_summary=version,
            failures=0,
            retry_tokens=retry_tokens,
            aside_tokens=aside,
        )

    def with_failure(self, retry_tokens: int, /) -> State:
        """Have one more summary that failed; the next is asked for when so much waits."""
        return replace(self, failures=self.failures + 1, retry_tokens=retry_tokens)

    def with_facts(self, facts: FactRecord, /) -> State:
        """Go by what is known of facts now."""
        return replace(self, facts=facts)

    def with_fact_failure(self, retry_tokens: int, /) -> State:
        """Have one more time that no facts could be had; the next is when so much more is gone."""
        return self.with_facts(self.facts.with_failure(self.aside_tokens + retry_tokens))

    def with_calibration(self, calibration: Calibration, /) -> State:
        """Go by what was reported for a view, and by what all reports have taught."""
        return replace(self, calibration=calibration)

    def with_pin(self, version: int, /) -> State:
        """Have a message pinned."""
        return replace(self, pins=tuple(sorted((*self.pins, version))))

    def without_pin(self, version: int, /) -> State:
        """Have it pinned no longer."""
        return replace(self, pins=tuple(one for one in self.pins if one != version))

    def without_messages(self, version: int, /) -> State:
        """Begin anew behind an event: options, budget and what was learned stay."""
        return State(
            budget_tokens=self.budget_tokens,
            options=self.options,
            newest_summary=self.newest_summary,
            cleared=version,
            facts=FactRecord(newest=self.facts.newest, read=version + 1),
            popped=self.popped,
            switched=self.switched,
            whole=self.whole,
            oldest=self.oldest,
            pruned=self.pruned,
            live=version + 1,
            cut=version + 1,
            epoch=self.epoch + 1,
            calibration=replace(self.calibration, first=0),
        )

    def without_decisions(
        self,
        before: State,
        *,
        back: Iterable[Members],
        waiting: Mapping[int, tuple[Members, tuple[str, ...]]],
    ) -> State:
        """Have the summaries and the borders of an earlier state; messages, pins and budget stay.

        Args:
            before: The state before the decisions; counts are not its own.
            back: Older units that are recent all the same.
            waiting: Units whose calls wait again, by their first message.
        """
        beside = {members[0]: members for members in before.beside}
        left = {members[0]: members for members in before.left}
        for members in back:
            if members[0] < before.cut:
                beside[members[0]] = members
                left.pop(members[0], None)
        rows = {members[0]: (members, ids) for members, ids in before.waiting if members[0] < self.live}
        rows.update(waiting)
        rows.update((members[0], (members, ids)) for members, ids in self.waiting)
        return replace(
            self.with_new_epoch(),
            summary=before.summary,
            anchor_summary=before.anchor_summary,
            live=before.live,
            cut=before.cut,
            view=before.view,
            beside=tuple(sorted(beside.values())),
            left=tuple(sorted(left.values())),
            waiting=tuple(one for _, one in sorted(rows.items())),
            failures=0,
            retry_tokens=0,
        )

    def with_places(self, other: State, /) -> State:
        """Have units where another state has them."""
        return replace(self, beside=other.beside, left=other.left)

    def with_new_epoch(self) -> State:
        """Make a summary that is being written stale."""
        return replace(self, epoch=self.epoch + 1)

    # -- in a log that was pruned

    def reaching_to(self, whole: int, /) -> State:
        """Have nothing that waits and is not named, from before a version: it was pruned."""
        if self.live >= whole:
            return self
        return replace(self, live=whole, cut=max(self.cut, whole))

    def with_pruning(self, *, whole: int, oldest: int, pruned: int) -> State:
        """Have a log that is whole from a version on, by the event of a version; 0: by none of this log."""
        return replace(self.reaching_to(whole), whole=whole, oldest=oldest, pruned=pruned)

    # -- in a log of its own that has only what is needed to go on

    def without_view(self, version: int, /) -> State:
        """Have nothing of the conversation in view that stands up to a version."""
        return replace(self, live=version + 1, cut=version + 1)

    def with_standing(
        self,
        name: Literal["anchors", "host_rules", "rules", "recollection", "anchor_summary", "summary"],
        version: int,
    ) -> State:
        """Have what stands in front of messages at a version; a summary is the newest then."""
        places: dict[str, Any] = {name: version}
        if name in ("anchor_summary", "summary"):
            places["newest_summary"] = version
        return replace(self, **places)

    def with_front_of(self, front: State, /) -> State:
        """Have what another state has in front of messages, from anchors and rules to what was recalled."""
        return replace(
            self,
            options=front.options,
            anchors=front.anchors,
            host_rules=front.host_rules,
            rules=front.rules,
            anchor_summary=front.anchor_summary,
            summary=front.summary,
            newest_summary=front.newest_summary,
            recollection=front.recollection,
            facts=replace(
                self.facts,
                batch=front.facts.batch,
                newest=front.facts.newest,
                known=front.facts.known,
                stale=0,
            ),
        )

    def with_newest_of(self, then: State, new: Mapping[int, int]) -> State:
        """Have as the newest messages those of another state, by their new versions: each can be popped."""
        return replace(
            self,
            last=new.get(then.last, 0),
            user=new.get(then.user, 0),
            turn=new.get(then.turn, 0),
            kept=new.get(then.kept, 0),
        )

    def with_versions(self, new: Mapping[int, int], *, last: int) -> State:
        """Say the same of messages under other versions; `last` is that of the event that says it."""

        def translate(members: Members) -> Members:
            return tuple(new[version] for version in members if version in new)

        def border(version: int) -> int:
            return min((here for there, here in new.items() if there >= version), default=last + 1)

        return replace(
            self.with_newest_of(self, new),
            live=border(self.live),
            # What it says is only whether something went, and nothing of what did is here.
            cleared=0 if self.has_left else border(self.cut) - 1,
            cut=border(self.cut),
            view=border(self.view) if self.view else 0,
            facts=replace(
                self.facts,
                read=border(self.facts.read) if self.facts.read else 0,
                unread=translate(self.facts.unread),
            ),
            beside=tuple(filter(None, map(translate, self.beside))),
            left=tuple(filter(None, map(translate, self.left))),
            waiting=tuple((translate(members), ids) for members, ids in self.waiting if translate(members)),
            pins=translate(self.pins),
            calibration=replace(self.calibration, first=new.get(self.calibration.first, 0)),
            popped=0,  # none of those is here
            switched=0,
            whole=1,
            oldest=0,
            pruned=0,
        )

    def with_pending(self, *, tokens: int, messages: int) -> State:
        """Have so much that waits."""
        return replace(self, pending_tokens=tokens, pending_messages=messages)

    def to_dict(self) -> dict[str, Any]:
        """Write what is not as it is at the start: a state is in every event, and most of it is."""
        own = {
            one.name: _plain(value)
            for one in fields(self)
            if one.name not in ("calibration", "facts") and (value := getattr(self, one.name)) != one.default
        }
        return own | self.facts.to_dict() | self.calibration.to_dict()

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], /) -> State:
        """Read what was written."""
        own = {name: value for name, value in data.items() if name not in _OF_PARTS}
        units = {name: _tuples(data[name]) for name in _UNITS if name in data}
        facts, calibration = FactRecord.from_dict(data), Calibration.from_dict(data)
        return cls(**own | units, facts=facts, calibration=calibration)


_UNITS = ("beside", "left", "waiting", "pins")
_OF_PARTS = IN_CALIBRATION | IN_FACTS


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, (list, tuple)) else value


def _plain(value: Any) -> Any:
    return [_plain(one) for one in value] if isinstance(value, tuple) else value
