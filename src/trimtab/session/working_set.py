"""A session in memory: its state, and the messages that are recent or in view.

Nothing here reads a store or asks a summarizer. Whatever is out of view stays in the log, so that what is
held does not grow with the conversation.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from math import inf
from operator import attrgetter
from typing import Any, Self

from trimtab.conversation.order import Row, find_misplaced, row_or_before, stands_apart
from trimtab.errors import BudgetExceededError
from trimtab.formats import Dict
from trimtab.report import RuleCounts
from trimtab.session.facts import Facts
from trimtab.session.messages import MessageReader, Read, SessionUnit, Summary
from trimtab.session.recollection import Recalled, RecalledUnit, Recollection
from trimtab.session.rule_record import SessionRule, count_rules, host_rule
from trimtab.session.rules import RuleBlock, RuleBook, RuleSizes, RuleView, look_at
from trimtab.session.savings import Savings
from trimtab.session.state import Members, State
from trimtab.session.zones import TokenBreakdown, Zones, limits_of, recent_target, shares

_LEAST_PART = 4
"""What a stride leaves is too little below this part of its share (a quarter), what must stay not counted.

A single result at the end of a stride may be as large as all of it (design/023-session-strides.md)."""


def _cost(tokens: int, room: int, ratio: float) -> float:
    """Return what a cut down to so many tokens of the room costs; least at the ratio.

    At each cut all that remains is written anew, and the next comes when the rest of the room is full: s
    tokens for each 1 - s that are new, of a room of 1. What remains is worth what makes the ratio best.
    """
    # Tokens written anew for each that is new: s / (1 - s). Its slope at the ratio is 1 / (1 - r)².
    share = tokens / room
    return inf if share >= 1.0 else share / (1.0 - share) - share / (1.0 - ratio) ** 2


def _of_rules(rules: Sequence[str], tokens: int) -> str:
    """Name the host's rules, and what they take, for an error."""
    named = ", ".join(f"{rule!r:.60}" for rule in rules[:_MOST_NAMED])
    more = f" and {len(rules) - _MOST_NAMED:,} more" if len(rules) > _MOST_NAMED else ""
    return f"{tokens:,} tokens for the rules {named}{more}"


_MOST_NAMED = 3


@dataclass(slots=True, kw_only=True)
class WorkingSet:
    """A session at one version."""

    reader: MessageReader
    state: State
    version: int
    host_rules: list[str] = field(default_factory=list)
    """Rules of the host, which are always shown."""
    host_message: Dict | None = None
    """The message they stand in."""
    anchors: list[Dict] = field(default_factory=list)
    rules: RuleBook = field(default_factory=RuleBook)
    """Rules that were found in messages."""
    summary: Summary | None = None
    anchor_summary: Summary | None = None
    facts: Facts | None = None
    """Those that fit their cap; None: there are none."""
    recent: dict[int, SessionUnit] = field(default_factory=dict)
    """Recent units by their first message, in order."""
    shown: dict[int, SessionUnit] = field(default_factory=dict)
    """Waiting units in view, in order: the newest of all that wait."""
    shown_tokens: int = 0
    hidden: int = 0
    """First message of the newest waiting unit that is not in view; 0 if all are."""
    hidden_tokens: int = 0
    out: set[int] = field(default_factory=set)
    """Units that have no room in the view, or are misplaced."""
    misplaced: set[int] = field(default_factory=set)
    """Units the provider would refuse where they would stand in the view."""
    recollection: Recollection | None = None
    """What was found for the newest question."""
    recalled: Recalled | None = None
    """The part of it that has room in its share and is not otherwise in view."""
    said_at: float | None = None
    """The time of the latest message; None: not read yet."""
    system_tokens: int = 0
    host_rule_tokens: int = 0
    anchor_tokens: int = 0
    _savings: Savings | None = None
    """Tells what results take less as a view writes them; None: not asked yet, or they are as they came."""
    _rule_sizes: RuleSizes | None = None
    _found_rules: tuple[tuple[Any, ...], RuleBook] = ((), RuleBook())
    """Those beside the host's when they were asked for last, and of which."""
    _rule_room: tuple[tuple[Any, ...], int] = ((), 0)
    """The room of all rules when it was asked last, and for which."""
    _rule_view: tuple[tuple[Any, ...], RuleView] = ((), RuleView())
    """Where the rules were when it was asked last, and what was in view then."""
    _openers: tuple[State | None, frozenset[int]] = (None, frozenset())
    """What was found last, and the state at that time."""

    @classmethod
    def begin(cls, reader: MessageReader, state: State, *, version: int) -> Self:
        """Make a working set with only the permanent parts."""
        options = reader.options
        begun = cls(
            reader=reader,
            state=state,
            version=version,
            host_rules=list(options.rules),
            anchors=list(options.anchors),
        )
        begun.measure()
        return begun

    # -- sizes

    def measure(self) -> None:
        """Count the permanent parts."""
        reader = self.reader
        system = reader.system_message()
        self.system_tokens = reader.fixed_tokens() + (0 if system is None else reader.tokens(system))
        self.host_message = reader.rules_message(self.host_rules) if self.host_rules else None
        self.host_rule_tokens = 0 if self.host_message is None else reader.tokens(self.host_message)
        self.anchor_tokens = sum(map(reader.tokens, self.anchors))
        if self.anchor_summary is not None:
            self.anchor_tokens += self.anchor_summary.tokens

    @property
    def permanent_tokens(self) -> int:
        """Tokens of system text, tools, framing, the host's rules and anchors."""
        return self.system_tokens + self.host_rule_tokens + self.anchor_tokens

    @property
    def summary_tokens(self) -> int:
        """Tokens of the summary's message."""
        return 0 if self.summary is None else self.summary.tokens

    @property
    def fact_tokens(self) -> int:
        """Tokens of the message with the facts."""
        return 0 if self.facts is None else self.facts.tokens

    @property
    def reserved_tokens(self) -> int:
        """What is always there, and the room of facts where they are asked for."""
        options, cap = self.reader.options, 0
        if options.fact_extractor is not None:
            cap = limits_of(options, self.state.budget_tokens).max_fact_tokens
        return self.permanent_tokens + max(cap, self.fact_tokens) + self.rule_room

    @property
    def total_tokens(self) -> int:
        """Tokens of everything that is in view or would be, if there was room for it.

        Recent results are written as `compact` says, and whatever waits as it is: which of that has room is
        the same then, however it came to wait.
        """
        whole = self.front_tokens + self.shown_tokens + self.state.recent_tokens
        return whole - self.saved_tokens(self.recent.values())

    @property
    def front_tokens(self) -> int:
        """Tokens that messages as they are do not have."""
        kept = self.recall_share * self.state.has_left
        return self.permanent_tokens + self.rule_room + self.fact_tokens + self.summary_tokens + kept

    @property
    def recall_share(self) -> int:
        """The most that what is recalled may take, kept free for it once something is gone."""
        ratio = self.reader.options.recall_ratio
        return int(ratio * max(0, self.state.room_tokens - self.permanent_tokens)) if ratio else 0

    @property
    def over(self) -> bool:
        """True if that exceeds the budget."""
        return self.total_tokens > self.state.room_tokens

    def saved_tokens(self, units: Collection[SessionUnit], /, *, reader: MessageReader | None = None) -> int:
        """Return by how much these units are shorter as a view writes their results.

        Args:
            units: What is in view.
            reader: Measures them; None: the session's own.
        """
        compact = (reader or self.reader).options.writes
        if compact is None:
            return 0
        if reader is not None:
            savings = Savings(reader, compact)
        else:
            savings = self._savings = self._savings or Savings(self.reader, compact)
        return savings.tokens(units, front=self.anchors, pins=self.state.pins)

    @property
    def has_room(self) -> bool:
        """True if a waiting unit that is out of view would fit: it must be read again.

        What stands before the cut of the view stays out of it, however much room there is.
        """
        if not self.hidden or self.hidden < self.state.view:
            return False
        return self.total_tokens + self.hidden_tokens <= self.state.room_tokens

    @property
    def messages_tokens(self) -> int:
        """Tokens of the messages in view, with results as the view writes them."""
        whole = self.waiting_tokens + self.state.recent_tokens - self._out_of(self.recent)
        return whole - self.saved_tokens(self.in_view())

    @property
    def waiting_tokens(self) -> int:
        """Tokens of the waiting messages in view."""
        return self.shown_tokens - self._out_of(self.shown)

    def _out_of(self, units: Mapping[int, SessionUnit]) -> int:
        return sum(unit.tokens for first in self.out if (unit := units.get(first)) is not None)

    @property
    def shows_summary(self) -> bool:
        """True if the summary is in view.

        It is no permanent part, and what must stay may take its room, unless that may not stand first.
        """
        if self.summary is None:
            return False
        tokens = self.permanent_tokens + self.rule_tokens + self.summary_tokens + self.messages_tokens
        if tokens <= self.state.room_tokens or not self.reader.format.rules.ordered:
            return tokens <= self.state.room_tokens
        first = next(iter(self.in_view()), None)
        return first is not None and not self.reader.leads(first)

    @property
    def shows_facts(self) -> bool:
        """True if facts are in view: what must stay may take their room, and the summary goes before them."""
        if self.facts is None:
            return False
        summary = self.summary_tokens if self.shows_summary else 0
        tokens = self.permanent_tokens + self.rule_tokens + summary + self.facts.tokens + self.messages_tokens
        return tokens <= self.state.room_tokens

    @property
    def shows_recalled(self) -> bool:
        """True if what was recalled is in view: what must stay, the summary and facts may take its room."""
        if self.recalled is None:
            return False
        front = self.permanent_tokens + self.rule_tokens
        front += self.summary_tokens if self.shows_summary else 0
        front += self.fact_tokens if self.shows_facts else 0
        return front + self.messages_tokens + self.recalled.tokens <= self.state.room_tokens

    @property
    def zones(self) -> Zones:
        """How the budget is shared now; what is kept free for facts and what is recalled is in no zone."""
        kept = self.reserved_tokens + self.recall_share * self.state.has_left
        zones = shares(self.reader.options, self.state.room_tokens, kept)
        return zones._replace(system_tokens=self.permanent_tokens)

    @property
    def breakdown(self) -> TokenBreakdown:
        """Tokens of what is in view, by zone."""
        return TokenBreakdown(
            system=self.system_tokens,
            anchors=self.anchor_tokens,
            rules=self.host_rule_tokens + self.rule_tokens,
            facts=self.fact_tokens if self.shows_facts else 0,
            summary=self.summary_tokens if self.shows_summary else 0,
            recent=self.messages_tokens,
            pending=self.waiting_tokens,
            recalled=self.recalled.tokens if self.recalled and self.shows_recalled else 0,
        )

    @property
    def most_tokens(self) -> int:
        """The budget; in a context, what other blocks may give way to what must stay is part of it."""
        return max(self.state.budget_tokens, self.reader.options.room.most)

    @property
    def view_limit_tokens(self) -> int:
        """What the view may have: the budget, or as much more as what must stay needs and may take."""
        return max(self.state.room_tokens, min(self.reader.options.room.most, self.breakdown.total))

    def require_room(self) -> None:
        """Refuse a permanent part that leaves no room."""
        needed, limit = self.permanent_tokens, self.most_tokens
        if needed > limit:
            anchors = ", anchors and rules" if self.host_rules else " and anchors"
            rules = f" ({self.named_rules})" if self.host_rules else ""
            raise BudgetExceededError(
                f"what a session always shows (system text, tools{anchors}) takes {needed:,} tokens, but"
                f" its budget is {limit:,}: {needed - limit:,} too many{rules}. Raise the budget or shorten"
                " them",
                needed_tokens=needed,
                limit_tokens=limit,
                block="system",
            )

    def require_anchor_room(self) -> None:
        """Refuse anchors above their cap."""
        tokens = sum(map(self.reader.tokens, self.anchors))
        cap = limits_of(self.reader.options, self.most_tokens).max_anchor_tokens
        if tokens > cap:
            raise BudgetExceededError(
                f"the anchors take {tokens:,} tokens, but may take {cap:,} (max_anchor_tokens):"
                f" {tokens - cap:,} too many. Shorten them or raise max_anchor_tokens",
                needed_tokens=tokens,
                limit_tokens=cap,
                block="anchors",
            )

    @property
    def named_rules(self) -> str:
        """The host's rules and what they take, for an error; empty if there are none."""
        return _of_rules(self.host_rules, self.host_rule_tokens) if self.host_rules else ""

    # -- rules that were found

    @property
    def found_rules(self) -> RuleBook:
        """Those that are no rules of the host, too."""
        key = (self.rules, self.host_rules)
        if self._found_rules[0] != key:
            self._found_rules = key, self.rules.beside(self.host_rules)
        return self._found_rules[1]

    @property
    def rule_room(self) -> int:
        """Tokens kept free for rules that a view may have to restate: of all that hold, up to their cap."""
        if not self.found_rules.known:
            return 0
        cap = limits_of(self.reader.options, self.state.budget_tokens).max_rule_tokens
        key = (self.found_rules, cap)
        if self._rule_room[0] != key:
            room = self._sizes_of_rules.most(self.found_rules, cap, orders=self.restates_orders)
            self._rule_room = key, room
        return self._rule_room[1]

    @property
    def rule_tokens(self) -> int:
        """Tokens of the message that restates rules."""
        return 0 if self.rule_block is None else self.rule_block.tokens

    @property
    def rule_block(self) -> RuleBlock | None:
        """The rules that the view restates: those that hold and whose own message is not in it."""
        return self.rule_view.block

    @property
    def rule_view(self) -> RuleView:
        """Where the rules are; found anew once something came into view or went out of it."""
        if not self.found_rules.known:
            return RuleView()
        units = self.view()
        key = (self.found_rules, self.state, self.anchor_tokens, self.host_rule_tokens, tuple(units))
        if self._rule_view[0] != key:
            self._rule_view = key, self.rules_with(units)
        return self._rule_view[1]

    def rules_with(self, units: Mapping[int, SessionUnit], /) -> RuleView:
        """Find out where the rules are if these units are in view."""
        taken = sum(unit.tokens for unit in units.values()) - self.saved_tokens(units.values())
        return look_at(
            self.found_rules,
            self._sizes_of_rules,
            self._says(units),
            orders=self.restates_orders,
            room=min(self.rule_room, self.state.room_tokens - self.permanent_tokens - taken),
        )

    def restated_rules(self) -> tuple[str, ...]:
        """List the rules that a view restates once no message says them: the host's, and those with room."""
        block = self.rules_with({}).block if self.found_rules.known else None
        return (*self.host_rules, *(one.rule.text for one in (block.known if block else ())))

    def _rules_alone(self, units: Iterable[RecalledUnit]) -> Iterator[int]:
        """Name the recalled messages that say nothing but rules that the view shows anyway."""
        shown = dict[int, list[str]]()
        for one in self.rule_block.known if self.rule_block else ():
            for version in (one.version, *one.others):
                shown.setdefault(version, []).append(one.rule.text)
        for unit in units:
            rest = unit.text
            for text in (*shown.get(unit.members[0], ()), *self.host_rules):
                rest = rest.replace(escape(text, quote=False), "", 1)
            if rest != unit.text and len(rest.split()) == len(unit.members) == 1:  # who said it
                yield unit.members[0]

    def _says(self, units: Mapping[int, SessionUnit]) -> Callable[[int, str], bool]:
        """Tell of a message whether it is in view and has a text, word for word."""
        held = {version: unit for unit in units.values() for version in unit.members}

        def says(version: int, text: str) -> bool:
            unit = held.get(version)
            if unit is None or not (unit.clamped or unit.escaped):
                return unit is not None
            newest = unit.whole if version in (self.state.user, self.state.last) else {}
            slots = self.reader.format.texts(newest.get(version) or unit.members[version])
            return any(text.replace("<", "&lt;") in slot.text.replace("<", "&lt;") for slot in slots)

        return says

    @property
    def _sizes_of_rules(self) -> RuleSizes:
        if self._rule_sizes is None:
            self._rule_sizes = RuleSizes(self.reader)
        return self._rule_sizes

    @property
    def restates_orders(self) -> bool:
        """Whether views restate orders, too."""
        return self.reader.options.find_rules == "all"

    def listed_rules(self) -> list[SessionRule]:
        """List the host's rules, and behind them those that were found, in the order said."""
        view, is_whole = self.rule_view, self.breakdown.total <= self.view_limit_tokens
        found = (
            SessionRule(
                id=one.id,
                text=one.rule.text,
                kind=one.rule.kind,
                strength=one.rule.strength,
                by="found",
                source=one.source,
                times=one.times,
                place=view.place(one, is_whole=is_whole),
            )
            for one in self.found_rules.known
        )
        return [*map(host_rule, self.host_rules), *found]

    def rule_counts(self) -> RuleCounts | None:
        """Count the rules by where they are; None if there are none."""
        if not (self.host_rules or self.rules.known or self.rules.unlisted):
            return None
        return count_rules(self.listed_rules(), unlisted=self.rules.unlisted)

    # -- what stays

    def exempt(self, unit: SessionUnit, /) -> bool:
        """Tell whether a unit does not leave (SPEC A4): pinned, the latest user message, newest or open."""
        state, members = self.state, unit.members
        if not members.keys().isdisjoint((state.user, state.last, state.kept, *state.pins)):
            return True
        return self.is_open(unit) or unit.first in self.openers

    @property
    def openers(self) -> frozenset[int]:
        """First messages of units that open the turn of what must stay and may not stand first."""
        if not self.reader.format.rules.ordered:
            return frozenset()
        # A state is never changed: the same object means the same answer, and a cut asks for each unit.
        if self._openers[0] is not self.state:
            found, opener = set[int](), 0
            self._openers = (self.state, frozenset())  # what `exempt` is to see while this looks for them
            for unit in self.recent.values():
                if self.reader.leads(unit):
                    opener = unit.first
                elif opener and self.exempt(unit):
                    found.add(opener)
            self._openers = (self.state, frozenset(found))
        return self._openers[1]

    def is_open(self, unit: SessionUnit, /) -> bool:
        """Tell whether a result of the unit can still come."""
        first, pending = unit.first, self.reader.options.pending_calls
        for members, ids in self.state.waiting:
            if members[0] == first:
                return first == self.state.turn or not pending.isdisjoint(ids)
        return False

    # -- messages that come

    @property
    def last_unit(self) -> SessionUnit | None:
        """The unit of the latest message; None if there is none."""
        last = self.state.last
        return next((unit for unit in reversed(self.recent.values()) if last in unit.members), None)

    def unit_of(self, call_ids: tuple[str, ...], /) -> tuple[Members, tuple[str, ...]] | None:
        """Find the unit whose calls a result answers: the newest that waits for them."""
        for members, waiting in reversed(self.state.waiting):
            if not set(waiting).isdisjoint(call_ids):
                return members, waiting
        return None

    def add_unit(self, version: int, data: Mapping[str, Any], /, id: str) -> SessionUnit:
        """Take a message that begins a unit."""
        unit = SessionUnit(version)
        self.join(unit, version, data, id)
        self.recent[version] = unit
        return unit

    def join(self, unit: SessionUnit, version: int, data: Mapping[str, Any], /, id: str) -> None:
        """Take a message that belongs to a recent unit: a result, or one that is bound to it."""
        shown = self.reader.show(data, id)
        tokens = self.reader.lasting_tokens(shown.message)
        if self.reader.options.strategy is not None:
            self._add_up(shown.message, tokens)
        before = unit.versions
        unit.take(version, shown, tokens)
        ids = self.reader.open_calls(unit.members.values())
        state = self.state.with_member(before, unit.versions, ids)
        self.state = state.plus("recent", tokens=tokens, messages=1)

    def _add_up(self, message: Dict, tokens: int) -> None:
        """Add up how fast the conversation grows; items of one answer of the model are one call's."""
        kind, last = self.reader.format.kind, self.last_unit
        answers = kind(message) == "assistant"
        goes_on = last is not None and kind(last.members[self.state.last]) == "assistant"
        self.state = self.state.with_said(tokens, is_call=answers and not goes_on)

    def bring_back(self, unit: SessionUnit, /) -> None:
        """Make a waiting unit recent again: it is beside the cut from now on."""
        if self.shown.pop(unit.first, None) is not None:
            self.shown_tokens -= unit.tokens
        if unit.first == self.hidden:
            self.hidden_tokens = 0  # another is the newest out of view: which, is read when there is room
        self.recent = dict(sorted([*self.recent.items(), (unit.first, unit)]))
        self.state = self.state.with_unit_back(unit.versions, unit.tokens)

    def note(self, version: int, read: Read, /, *, turn: int) -> None:
        """Remember what the newest messages are; `turn` is where that of this message begins."""
        self.state = self.state.with_message(
            version,
            user=read.kind == "user",
            turn=turn if read.kind in ("user", "assistant") else None,
            kept=read.kept,
        )

    # -- messages that leave

    def cut(self) -> list[SessionUnit]:
        """Let the oldest recent units wait, and what waits leave the view, down to their target (SPEC E3)."""
        leaving = self._put_oldest_aside()
        if leaving and self.over:  # what stays may take more, where what it referred to has gone
            leaving += self._put_oldest_aside()
        if self.reader.options.target_ratio < 1.0:
            self._cut_view()
        return leaving

    def _put_oldest_aside(self) -> list[SessionUnit]:
        strides = self.reader.options.target_ratio < 1.0
        leaving = self._stride() if strides else self._find_leavers(self.tokens_after_cut(0.0))
        if leaving:
            self.put_aside(leaving)
        return leaving

    def _stride(self) -> list[SessionUnit]:
        """List the units of a stride (SPEC C3), oldest first.

        Where a large unit stands at its end, or must stay, so that too little remains beside what must stay,
        the stride is of the room beside that, and a unit at its end stays if that costs less.
        """
        ratio, target = self.target_ratio, self.tokens_after_cut(1.0 - self.target_ratio)
        held = sum(unit.tokens for unit in self.recent.values() if self.exempt(unit))
        free, room = self.state.recent_tokens - held, self.tokens_after_cut(0.0) - held

        def remain(leaving: list[SessionUnit]) -> int:
            return free - sum(unit.tokens for unit in leaving)

        leaving = self._find_leavers(target)
        if remain(leaving) >= ratio * room / _LEAST_PART:
            return leaving
        leaving = self._find_leavers(max(target, held + int(ratio * room)))
        if not leaving:
            return leaving
        fewer = self._find_leavers(held + remain(leaving) + leaving[-1].tokens)
        return min(leaving, fewer, key=lambda units: _cost(remain(units), room, ratio))

    @property
    def target_ratio(self) -> float:
        """What a cut leaves of the room: as the options say, or what is cheapest."""
        options = self.reader.options
        if options.strategy is None:
            return options.target_ratio
        room, state = self.tokens_after_cut(0.0), self.state
        free = options.strategy.free_share(
            state.growth_tokens, room_tokens=room, fixed_tokens=self.permanent_tokens, calls=state.calls
        )
        return 1.0 - float(free)

    @property
    def steady_tokens(self) -> int:
        """What a view has after a cut, if nothing else keeps what is in it."""
        fixed = self.front_tokens
        return fixed + int(self.target_ratio * max(0, self.state.room_tokens - fixed))

    def tokens_after_cut(self, stride: float, /) -> int:
        """Return what recent messages come down to in a cut that frees a share of their room.

        It is of messages as they are, so many as take their share of the room as a view writes them now.
        """
        tokens = recent_target(
            self.reader.options,
            self.state.room_tokens,
            permanent_tokens=self.reserved_tokens + self.recall_share,
            summary_tokens=self.summary_tokens,
            stride=stride,
        )
        whole, saved = self.state.recent_tokens, self.saved_tokens(self.recent.values())
        return tokens * whole // (whole - saved) if 0 < saved < whole else tokens

    def _find_leavers(self, target: int) -> list[SessionUnit]:
        """List the units that leave, oldest first, until the recent ones are down to a target."""
        leaving: list[SessionUnit] = []
        tokens, opener, led = self.state.recent_tokens, None, self._is_led
        for unit in self.recent.values():
            if tokens <= target:
                break
            leads = not led and self.reader.leads(unit)
            if opener is not None and leads:  # nothing remains that needs it in front
                leaving.append(opener)
                tokens, opener = tokens - opener.tokens, None
                if tokens <= target:
                    break
            if self.exempt(unit):
                led = led or leads
            elif leads:
                opener = unit
            else:
                leaving.append(unit)
                tokens -= unit.tokens
        if opener is not None and tokens > target:
            leaving.append(opener)
        return sorted(leaving, key=attrgetter("first"))

    def _cut_view(self) -> None:
        """Let what waits leave the view down to its share of the room, and remember where that was (C3)."""
        self._hide_down_to(self.steady_tokens)
        first = next(iter(self.shown), self.state.cut)
        self.state = self.state.with_view_from(max(self.state.view, first))

    def _hide_down_to(self, most_tokens: int) -> None:
        """Take waiting units out of view, oldest first, until all in view takes no more than this."""
        while self.shown and self.total_tokens > most_tokens:
            first = next(iter(self.shown))
            unit = self.shown.pop(first)
            self.shown_tokens -= unit.tokens
            self.hidden, self.hidden_tokens = first, unit.tokens

    @property
    def _is_led(self) -> bool:
        """True if something in front of all messages may come first, or any of them may."""
        options, format = self.reader.options, self.reader.format
        front = [*self._host_front, *self.anchors]
        anchored = any(format.kind(message) != "system" for message in front)
        return not format.rules.ordered or anchored or options.summarizer is not None

    @property
    def _host_front(self) -> list[Dict]:
        """The host's rules in front of the messages; empty in a context, which shows them with its own."""
        if self.host_message is None or self.reader.options.context is not None:
            return []
        return [self.host_message]

    def put_aside(self, leaving: list[SessionUnit], /) -> None:
        """Make recent units wait."""
        firsts = {unit.first for unit in leaving}
        for first in firsts:
            del self.recent[first]
        self.state = self.state.with_units_aside(
            [unit.versions for unit in leaving],
            (unit.versions for unit in self.recent.values()),
            sum(unit.tokens for unit in leaving),
        )
        self.out = self.out - firsts  # a new set each time: another thread may be reading the old one
        # Only what is newer than all that is out of view comes into `shown`, which has no gap.
        before = max(self.hidden, self.state.view - 1)
        fresh = [unit for unit in leaving if unit.first > before]
        if len(fresh) < len(leaving):
            self.hidden = max(self.hidden, leaving[len(leaving) - len(fresh) - 1].first)
        self.shown_tokens += sum(unit.tokens for unit in fresh)
        older = next(reversed(self.shown), 0)
        self.shown.update((unit.first, unit) for unit in fresh)
        if fresh and fresh[0].first < older:
            self.shown = dict(sorted(self.shown.items()))

    def truncate(self) -> None:
        """Take out of view what finds no room, oldest first."""
        self._hide_down_to(self.state.room_tokens)
        # In this order: what finds no room changes what is misplaced, and both change what is recalled.
        self.out = {unit.first for unit in self._without_room()} if self.over else set()
        self.misplaced = self._find_misplaced() if self.reader.format.rules.ordered else set()
        self.out = self.out | self.misplaced
        found, share = self.recollection, self.recall_share * self.state.has_left
        self.recalled = None
        if found is not None:
            seen = {*self.view(), *self._rules_alone(found.units)}
            self.recalled = found.choose(self.reader, share, seen)

    def _find_misplaced(self) -> set[int]:
        """Return the first messages of the units in view that may not stand where they came to stand.

        What stays is not among them: then what stands before it is, if that may leave. Nothing is as long as
        all that was said is in view: it is as it was said.
        """
        inserted = (self.summary, self.anchor_summary, self.facts, self.rule_block)
        summarized = any(one is not None for one in inserted)
        pruned = self.state.whole > self.state.cleared + 1
        moved = self.hidden or self.out or summarized or pruned or self.reader.options.pending_first
        if not moved:
            return set()
        units, format = self.view(), self.reader.format
        let_go = row_or_before(lambda first: not self.exempt(units[first]))
        rule = stands_apart(format, 0)
        return set(find_misplaced(format, self._rows(units), first=0, stands=rule, let_go=let_go))

    def _rows(self, units: Mapping[int, SessionUnit]) -> list[Row]:
        """List the messages of a view in order; what stands in front of all leaves with nothing."""
        front = [*self._host_front, *self.anchors]
        if self.anchor_summary is not None:
            front.append(self.anchor_summary.message)
        if self.rule_block is not None:
            front.append(self.rule_block.message)
        if self.facts is not None and self.shows_facts:
            front.append(self.facts.message)
        ahead = [Row(-2, message) for message in front]
        summary = [Row(-2, self.summary.message)] if self.summary and self.shows_summary else []
        waiting, recent = list[Row](), list[Row]()
        for first, unit in units.items():
            rows = (Row(version, message, (first,)) for version, message in unit.members.items())
            (waiting if first in self.shown else recent).extend(rows)
        if self.reader.options.pending_first:
            return [
                *ahead,
                *sorted(waiting, key=attrgetter("place")),
                *summary,
                *sorted(recent, key=attrgetter("place")),
            ]
        return [*ahead, *summary, *sorted(waiting + recent, key=attrgetter("place"))]

    def _without_room(self) -> Iterator[SessionUnit]:
        """List the recent units that find no room: free ones, from the first that does not fit on back."""
        room = self.state.room_tokens - self.front_tokens
        free = [unit for unit in self.recent.values() if not self.exempt(unit)]
        room -= self.state.recent_tokens - sum(unit.tokens for unit in free)
        full = False  # then none is taken: a small one behind a large gap would read as if it came next
        for unit in reversed(free):
            full = full or unit.tokens > room
            if full:
                yield unit
            room -= unit.tokens

    # -- the view

    def view(self) -> dict[int, SessionUnit]:
        """Return the units in view by their first message, in order.

        A property may ask from another thread while a change goes on: copied in one step, no dict changes
        under it, and what `out` names is replaced, never changed.
        """
        shown, recent, out = self.shown.copy(), self.recent.copy(), self.out
        apart = next(reversed(shown), 0) < next(iter(recent), 0)
        units = shown | recent
        if shown and recent and not apart:  # something recent was called back from before what waits
            units = dict(sorted(units.items()))
        return {first: unit for first, unit in units.items() if first not in out} if out else units

    def departures(self, seen: Mapping[int, SessionUnit], /) -> list[SessionUnit]:
        """List the units seen before that are out of view now, oldest first; no summary stands for them."""
        if not seen:
            return []
        state = self.state
        older = {members[0] for members in (*state.beside, *state.left)}
        away = seen.keys() - self.view().keys()
        return [seen[first] for first in sorted(away) if first >= state.live or first in older]

    def said_last(self) -> dict[int, Dict]:
        """Return by version what is large and was said last, whole: the newest, and what the user asks.

        It was just asked for: in this view the fit lets older messages leave for it, before it is cut.
        """
        state, found = self.state, dict[int, Dict]()
        for unit in self.in_view():
            if unit.whole and not unit.members.keys().isdisjoint((state.user, state.last)):
                found.update(unit.whole)
        return found

    def in_view(self) -> Collection[SessionUnit]:
        """List the units in view, in order."""
        return self.view().values()

    @property
    def messages(self) -> int:
        """How many messages are in view as they were said."""
        return sum(map(len, map(attrgetter("members"), self.in_view())))

    @property
    def total_messages(self) -> int:
        """How many messages a view has, with system text, anchors and the summary."""
        put_there = (self.reader.system_message(), self.host_message, self.anchor_summary, self.rule_block)
        others = (
            len(self.anchors)
            + self.shows_facts
            + self.shows_summary
            + self.shows_recalled
            + sum(one is not None for one in put_there)
        )
        return self.messages + others

    def hidden_messages(self, seen: Collection[SessionUnit], /) -> int:
        """How many messages that are not summarized are not in view; `seen` are the units that are."""
        live = self.state.recent_messages + self.state.pending_messages
        return live - sum(len(unit.members) for unit in seen)
