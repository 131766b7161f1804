"""From blocks to portions: what a `Context` does once for a request, whatever the budget.

The blocks' messages are laid in order, calls are matched with results across blocks, callbacks run, and
each block becomes a `Portion` of its own that strategies can be asked about. `settle.py` decides.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate, chain, islice, takewhile
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from trimtab._fitting.allocation import Ties, check_ties
from trimtab._fitting.blocks import Block, Messages, is_text, is_text_with_attachments
from trimtab._fitting.bonds import Bonds, bonds_of, by_block, starts_of
from trimtab._fitting.callbacks import OnTrim, TrimContext, let_trim, view_of_block
from trimtab._fitting.joint import Joint, joint_of, sizes_of
from trimtab._fitting.portion import MOST_WRITTEN, Decision, Portion, StoredRules, name_block
from trimtab._fitting.request import (
    budget_of,
    check_breakpoints,
    compact_of,
    counter_of,
    no_budget_note,
    refuse_faults,
)
from trimtab._fitting.shown_rules import ShownRules
from trimtab._shared.checks import (
    check_flag,
    check_model,
    check_origin_of,
    check_pending_calls,
    check_tools,
    check_trim,
    system_of,
)
from trimtab._shared.memory import with_latest
from trimtab.budget import MOST_TOKENS, Budget, BudgetLike, known_budget, needs_model, within
from trimtab.conversation import History
from trimtab.conversation.assemble import assemble
from trimtab.conversation.order import cannot_end
from trimtab.conversation.turns import LastTurn
from trimtab.counting.base import AdditiveCounter
from trimtab.counting.door import as_counter
from trimtab.counting.measurement import model_notes
from trimtab.counting.sizes import Base, Fixed, Shares, Sizes, sizes_for
from trimtab.errors import ConfigurationError, FormatError
from trimtab.formats import (
    Format,
    Request,
    format_of,
    get_format,
    leading_system,
    mapping_of,
    refuse_foreign,
    wire_form,
)
from trimtab.formats.origin import OriginOf
from trimtab.models import facts_for
from trimtab.strategies.base import asks_model
from trimtab.strategies.openers import without_refused
from trimtab.strategies.rules_message import check_rules

if TYPE_CHECKING:
    from trimtab._fitting.compaction import Windows
    from trimtab.compact import Compact
    from trimtab.report import Reason, RuleCounts, SummaryCheck, Violation, WrittenResults

__all__ = [
    "Composition",
    "Decision",
    "Part",
    "Policy",
    "Portion",
    "blocks_in_order",
    "check_policy",
    "compose",
    "faults_of",
    "items_of",
    "ties_of",
]


def opener_of(history: History) -> list[int]:
    """Find what may open a turn that goes on in a later block: the newest user message, or what may lead."""
    user = history.user_at_or_before(history.count - 1)
    if user is not None:
        return [user]
    return [at for at in range(history.count - 1, -1, -1) if not history.cannot_lead(at)][:1]


def is_leaderless(history: History, before: bool, going: Sequence[tuple[int, int]]) -> bool:
    """Tell whether the first message that must stay, here or in a later block, may not come first.

    What belongs to another block (`going`) leaves with it, whatever it is here.
    """
    if not history.ordered:
        return False
    apart = {index for index, _ in going}
    staying = (unit for unit in history.units if unit.state != "free" and unit.kind != "system")
    first = next((unit.first for unit in staying if apart.isdisjoint(unit.indices)), None)
    return before if first is None else history.cannot_lead(first)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What a `Context` was made with, and its blocks in the order they were added."""

    budget: BudgetLike | None
    """As it was asked for: what the model takes holds it where it is used, for a copy may have another."""
    model: str | None
    counter: Any
    format: str | Format
    system: Any
    tools: Any
    ties: Ties | None
    pending_calls: Collection[str]
    on_trim: OnTrim | None
    strict: bool
    blocks: tuple[Block, ...]
    charge_as: str | Format | None = None
    """The wire form that messages are sent in, where it is not the one they are read in."""
    breakpoints: Any = None
    """The mark to set for the provider's prompt cache; see `breakpoints`."""
    notes: tuple[str, ...] = ()
    """What the report should say of what was done before."""
    checked: tuple[SummaryCheck, ...] = ()
    """What became of the values of summaries in its blocks."""
    rule_counts: RuleCounts | None = None
    """Rules of a session in its blocks."""
    pins: Mapping[str, Collection[int]] = field(default_factory=dict)
    """Messages that stay in blocks that may give way, by the name of the block and their places in it."""
    results: Mapping[str, WrittenResults] = field(default_factory=dict)
    """What was done to results before they came, by the name of the block; indices are of its messages."""
    origin: OriginOf | None = None
    """Says of a message that it has less say than its role."""
    rules: Any = None
    """Rules of the host, which are shown always."""
    compact: Any = None
    """How results are written; None: as they are."""
    owner_of: Callable[[Any], Any] | None = None
    """Finds the caller's object that a message was read from; None: messages are the caller's own."""
    read: Any = None
    write: Any = None
    """Functions for entries of the blocks that are objects of a framework; None: they are wire messages."""

    @property
    def trims(self) -> bool:
        """True if there is a callback to run."""
        return self.on_trim is not None or any([block.on_trim is not None for block in self.blocks])

    def without_callbacks(self) -> Policy:
        """Return the same without callbacks."""
        blocks = tuple(
            block if block.on_trim is None else replace(block, on_trim=None) for block in self.blocks
        )
        return replace(self, on_trim=None, blocks=blocks)


def check_policy(policy: Policy, /) -> Policy:
    """Refuse what no fit could use, and bring the rest into one form.

    Raises:
        ConfigurationError: With what to write instead.
    """
    check_model(policy.model)
    if policy.on_trim is not None:
        check_trim(policy.on_trim)
    if policy.origin is not None:
        check_origin_of(policy.origin)
    counter = policy.counter
    if counter is not None:
        counter = _checked_counter(counter)
    elif policy.model is not None:
        facts_for(policy.model)
    format_of([], policy.format)
    if policy.charge_as is not None:
        get_format(policy.charge_as)
    check_tools(policy.tools)
    check_flag("strict", policy.strict)
    return replace(
        policy,
        breakpoints=check_breakpoints(policy.breakpoints),
        rules=() if policy.rules is None else check_rules(policy.rules),
        compact=None if policy.compact is None else compact_of(policy.compact),
        counter=counter,
        budget=None if policy.budget is None else _checked_budget(policy.budget, policy.model),
        system=system_of(policy.system),
        ties=None if policy.ties is None else check_ties(policy.ties),
        pending_calls=check_pending_calls(policy.pending_calls),
    )


def _checked_budget(budget: BudgetLike, model: str | None) -> BudgetLike:
    """Refuse what no fit could use; a share of what a model takes may come before the model."""
    if needs_model(budget):
        if model is not None:
            Budget.of(budget, model=model)
        return budget
    Budget.of(budget, model=model)
    return Budget.of(budget)


def _checked_counter(counter: Any) -> Any:
    """Refuse what cannot count; an async one is for `afit`, and a function keeps its name in data."""
    made = as_counter(counter, later=True)
    return made if isinstance(counter, str) else counter


def ties_of(policy: Policy, /) -> Ties:
    """Return the rule for equal ranks: as given, or by whether tiers are used."""
    if policy.ties is not None:
        return policy.ties
    return "first" if any([block.tier is not None for block in policy.blocks]) else "newest"


@dataclass(slots=True, kw_only=True)
class Part(Portion):
    """One block of a request at work."""

    block: Block
    compact: Compact | None = None
    """How its results are written; None: as they are."""

    @property
    def given(self) -> list[Any]:
        """The block's own messages, also where they got another role; what was written from text is ours."""
        return [
            made if is_text(item) else item
            for item, made in zip(items_of(self.block), self.source, strict=True)
        ]


@dataclass(slots=True, kw_only=True)
class Composition:
    """Everything that does not depend on the budget; sizes are remembered in its parts."""

    policy: Policy
    asked: Budget | None
    """The budget as asked for: its margin may be "auto" still. None: there is none, and callbacks decide."""
    budget: Budget
    """The same with a margin for tools and system text alone; without one, more than any request takes."""
    format: Format
    counter: Any
    parts: list[Part]
    """In the order they stand in the request; only blocks that have messages."""
    adding: list[int]
    """Places in `parts`, in the order the blocks were added."""
    bonds: Bonds
    """Units that span blocks, by position in the request that remains after callbacks."""
    starts: list[int]
    """Position of each part's first message in that request."""
    lead: list[Any]
    """System text as a message before all blocks, where the wire form keeps it among them."""
    fixed: Fixed
    rules: ShownRules | None
    """Rules of the host, which are shown always; None: there are none."""
    notes: tuple[str, ...]
    """What the report should say whatever is decided."""
    whole_tokens: int | None = None
    """What a black box said of everything that was given; None until somebody asked for it."""
    bind: Callable[[], tuple[list[Part], Bonds]]
    """Makes the parts again, with what spans them."""
    is_bound: bool
    """False while nothing was looked for that spans blocks."""
    compacts: bool = False
    """Whether results of a block are written otherwise."""
    _request_sizes: Sizes | None = None
    _written: dict[Hashable, Composition] = field(default_factory=dict)
    """The same with results written for what a request holds, by that; the latest."""

    def written_for(self, windows: Windows) -> Composition:
        """Return the same with results written for what a request holds of each block.

        Args:
            windows: What the request holds.
        """
        key = tuple(sorted(windows.items(), key=itemgetter(0)))
        made = self._written.get(key)
        if made is None:
            from trimtab._fitting.compaction import ALL, rewrite  # not above: loaded by who asks for it

            def write(part: Part) -> Part:
                if part.compact is None:
                    return part
                history, written = rewrite(part, part.compact, windows.get(part.name, ALL))
                sizes = sizes_for(self.counter, history.messages, None, unread=range(0))
                if isinstance(sizes, Shares):
                    sizes.base = cast("Shares", part.sizes).base
                elif part.sizes.unread:
                    sizes.leave_unread(part.sizes.unread)
                origin = [*range(len(part.source))] if part.origin is None else part.origin
                return replace(part, history=history, sizes=sizes, origin=origin, written=written)

            def bind() -> tuple[list[Part], Bonds]:
                parts, bonds = self.bind()
                return [*map(write, parts)], bonds

            made = replace(self, parts=[*map(write, self.parts)], bind=bind, _written={})
        self._written = with_latest(self._written, key, made, most=MOST_WRITTEN)
        return made

    def look_for_bonds(self) -> bool:
        """Find what spans blocks, if one of them has loose ends; True if something does."""
        return not self.is_bound and any(map(_has_loose_ends, self.parts)) and self.bind_blocks()

    def bind_blocks(self) -> bool:
        """Find what spans blocks; True if something does, and then the parts are made again with it."""
        self.is_bound = True
        parts, bonds = self.bind()
        if bonds.units:
            for part, old in zip(parts, self.parts, strict=True):
                part.sizes.known[:] = old.sizes.known
            self.parts, self.bonds = parts, bonds
        return bool(bonds.units)

    def units_across(self) -> list[frozenset[int]]:
        """List the units that span blocks, also where nothing that stays was one of them."""
        if self.is_bound:
            return self.bonds.units
        try:
            return bonds_of([part.history for part in self.parts], [part.name for part in self.parts]).units
        except (ConfigurationError, FormatError):
            return []  # of what was evicted unread, nothing is refused

    @property
    def source(self) -> list[Any]:
        """All messages of all blocks as given, in the order of the request."""
        return list(chain.from_iterable([part.source for part in self.parts]))

    @property
    def everything(self) -> list[Any]:
        """All messages before anything is decided."""
        return [*self.lead, *self.source]

    @property
    def mark(self) -> Any:
        """The mark to set for the provider's prompt cache; None: none was asked for."""
        return self.policy.breakpoints

    @property
    def tools(self) -> Any:
        """Tool schemas."""
        return self.policy.tools

    @property
    def body(self) -> Request:
        """What was asked for, as a request."""
        policy = self.policy
        return Request(messages=self.source, system=None if self.lead else policy.system, tools=policy.tools)

    @property
    def ties(self) -> Ties:
        """The rule for equal ranks: as given, or by whether tiers are used."""
        return ties_of(self.policy)

    @property
    def request_sizes(self) -> Sizes:
        """The table for what stands beside the blocks; it is counted once."""
        if self._request_sizes is None:
            self._request_sizes = sizes_for(self.counter, self.lead, self.fixed)
        return self._request_sizes

    def whole(self) -> int:
        """Ask a black box for the size of everything that was given, once."""
        if self.whole_tokens is None:
            sizes = cast("Shares", self.request_sizes)
            self.whole_tokens = sizes.request_tokens([*self.lead, *self.source])
        return self.whole_tokens

    def remainder(self) -> int:
        """Ask a black box for the size of what callbacks kept."""
        if not any(part.gone or part.written for part in self.parts):
            return self.whole()
        left = (message for part in self.parts for message in part.history.originals)
        return cast("Shares", self.request_sizes).request_tokens([*self.lead, *left])

    @property
    def is_black_box(self) -> bool:
        """True if the counter tells the size of whole lists only."""
        return not isinstance(self.counter, AdditiveCounter)


def blocks_in_order(policy: Policy) -> list[Block]:
    """List the blocks that hold something, as they stand in the request."""
    return sorted([block for block in policy.blocks if not block.is_empty], key=attrgetter("place"))


def compose(policy: Policy) -> Composition:
    """Lay the blocks out, match what spans them, and let the callbacks run.

    Raises:
        ConfigurationError: No budget and no known window, or a result stands before its call.
        FormatError: An entry is no message.
    """
    blocks = blocks_in_order(policy)
    items: list[Any] = []
    for block in blocks if policy.format == "auto" else ():
        own = items_of(block)
        items += own if isinstance(own, Messages) else [item for item in own if not isinstance(item, str)]
    format = format_of(items, policy.format, policy.model)
    format = wire_form(format, policy.charge_as)
    counter = counter_of(policy.counter, policy.model, format, charge_as=policy.charge_as)
    trims = policy.trims
    asked = (known_budget if trims else budget_of)(policy.budget, policy.model)
    budget = Budget(MOST_TOKENS) if asked is None else within(asked, counter, policy.tools)
    lead = leading_system(policy.system, format)
    leads = format.thinking_rules(policy.model, None).leads
    whole = policy.strict or trims or format.rules.ordered or bool(leads)
    whole = whole or not isinstance(counter, AdditiveCounter)
    sources: list[Sequence[Any]] = []
    for block in blocks:
        try:
            sources.append(messages_of(block, format))
            if whole:
                refuse_foreign(sources[-1], format.name)
        except FormatError as error:
            name_block(error, block.name)
            raise
    if policy.strict:
        source = [message for messages in sources for message in messages]
        refuse_faults(faults_of(policy, format, source))
    known = None if asked is None else budget
    rules, stored = _rules_of(policy.rules, format, lead, sources) if policy.rules else (None, None)
    removals = _Removals(policy, blocks, sources, stored, format=format, counter=counter, budget=known)
    if trims:
        removals.run()
    make = partial(
        _parts, policy, blocks, sources, removals, format=format, counter=counter, looked_over=whole
    )
    # no summarizer is to be asked again because a bond was found late
    is_bound = (
        whole or bool(policy.pending_calls) or any([asks_model(block.gives_way_by) for block in blocks])
    )
    parts, bonds = make(look=is_bound)
    order = {block.name: at for at, block in enumerate(blocks)}
    return Composition(
        policy=policy,
        asked=asked,
        budget=budget,
        format=format,
        counter=counter,
        parts=parts,
        adding=[order[block.name] for block in policy.blocks if block.name in order],
        bonds=bonds,
        starts=starts_of([part.history for part in parts]),
        bind=partial(make, look=True),
        is_bound=is_bound,
        lead=lead,
        fixed=Fixed(system=None if lead else policy.system, tools=policy.tools, shown=rules),
        rules=rules,
        compacts=any(map(attrgetter("compact"), parts)),
        notes=(*policy.notes, *_notes_of(policy.model, counter, asked, blocks)),
    )


class _Stored(NamedTuple):
    """Where rules are in the blocks that an earlier fit wrote."""

    part: int
    at: int
    message: Any
    """What is shown in their place."""


def _rules_of(
    texts: tuple[str, ...], format: Format, lead: list[Any], sources: Sequence[Sequence[Any]]
) -> tuple[ShownRules, _Stored | None]:
    """Write the rules of the host, and find where an earlier fit wrote them."""
    whole = [*lead, *chain.from_iterable(sources)]
    starts = [*accumulate(map(len, sources), initial=len(lead))]
    rules, at = ShownRules.of(texts, format, whole, starts[1:-1])
    if at is None:
        return rules, None
    part = max(place for place, start in enumerate(starts[:-1]) if start <= at and sources[place])
    return rules, _Stored(part, at - starts[part], rules.message)


def _notes_of(
    model: str | None, counter: Any, asked: Budget | None, blocks: Sequence[Block]
) -> tuple[str, ...]:
    of_model = () if model is None else model_notes(model, counter)
    if asked is not None:
        return of_model
    return (*of_model, no_budget_note(capped=any(block.max_tokens is not None for block in blocks)))


def faults_of(policy: Policy, format: Format, source: list[Any]) -> list[Violation]:
    """List what the provider would refuse; of messages that are lifted out of the list, nothing."""
    # not above: loaded by who reads a report, or is strict
    from trimtab.conversation.validity import violations_in

    request = Request(messages=source, tools=policy.tools)
    found = violations_in(format.for_model(policy.model), request, policy.pending_calls)
    if not found or not format.rules.lifts_system:
        return found
    front = takewhile(lambda message: format.kind(mapping_of(message)) == "system", source)
    lifted = sum(1 for _ in front)
    return [one for one in found if one.index is None or one.index >= lifted]


def messages_of(block: Block, format: Format) -> Sequence[Any]:
    """Write a block's content as messages: the caller's own objects where they are messages."""
    role, items = block.role, items_of(block)
    if role is None and isinstance(items, Messages):
        return items
    text_role = _text_role(block)
    if block.separator is not None:
        return joint_of(block, format, text_role).documents(items, block.labels or ())
    return [_message_of(item, role, text_role, format) for item in items]


def _text_role(block: Block) -> str:
    return block.role or ("system" if block.name == "system" else "user")


def items_of(block: Block) -> Sequence[Any]:
    """List the texts and messages a block was given."""
    return block.content if isinstance(block.content, tuple) else (block.content,)


def _message_of(item: Any, role: str | None, text_role: str, format: Format) -> Any:
    if isinstance(item, str):
        return format.message(text_role, [item])
    if is_text_with_attachments(item):
        text = item.get("text")
        return format.message(text_role, [*([text] if text else []), *(item.get("attachments") or ())])
    if role is not None:
        mapping_of(item)  # which refuses what is no message
    return item if role is None else format.with_role(item, role)


class _Removals:
    """What callbacks take out, before anything is decided."""

    def __init__(
        self,
        policy: Policy,
        blocks: Sequence[Block],
        sources: Sequence[Sequence[Any]],
        stored: _Stored | None,
        *,
        format: Format,
        counter: Any,
        budget: Budget | None,
    ) -> None:
        self._policy = policy
        self._blocks = blocks
        self._sources = sources
        self._stored = stored
        self._format = format
        self._counter = counter
        self._budget = budget
        self._starts = list(accumulate(map(len, sources), initial=0))
        self._gone: dict[int, dict[int, Reason]] = {}
        self.keeps_all = stored is None
        """False once something is taken out before anything is decided."""
        self.left: dict[int, Any] | None = None
        self._known: list[int | None] = []

    def run(self) -> None:
        """Call the callbacks: the context's own, then those of blocks in order of adding."""
        whole = [message for source in self._sources for message in source]
        there: Sequence[int] = range(len(whole))
        if self._stored is not None:  # the host's rules are none of theirs
            hidden = self._starts[self._stored.part] + self._stored.at
            there = [at for at in there if at != hidden]
            whole = [whole[at] for at in there]
        origin = there if self._stored is not None else None
        history = History(
            whole,
            format=self._format,
            pending_calls=self._policy.pending_calls,
            protect=False,
            thinking=self._format.thinking_rules(self._policy.model, None),
            looked_over=True,
        )
        sizes = sizes_for(self._counter, history.messages, None, unread=history.unread)
        budget = self._budget
        room = sys.maxsize if budget is None else budget.input_tokens
        context = TrimContext(history, sizes, budget=budget, limit_tokens=room, origin=origin)
        if self._policy.on_trim is not None:
            let_trim(self._policy.on_trim, context, block=None)
        places = {block.name: at for at, block in enumerate(self._blocks)}
        for block in self._policy.blocks:
            if block.on_trim is not None and block.name in places:
                at = places[block.name]
                start, stop = (bisect_left(there, one) for one in self._starts[at : at + 2])
                own = None if origin is None else [one - self._starts[at] for one in there[start:stop]]
                cap = block.max_tokens if budget is None else block.cap_tokens(room)
                limit = room if cap is None else cap
                view = view_of_block(context, start=start, stop=stop, limit_tokens=limit, origin=own)
                let_trim(block.on_trim, view, block=block.name)
        read = dict(zip(there, sizes.known_read, strict=True))
        self._known = [read.get(at) for at in range(self._starts[-1])]
        if context.removed:
            asked = self._format.for_model(self._policy.model)
            refused_last = partial(cannot_end, asked, Request(messages=()))
            units, refused = without_refused(history, context.remaining, cannot_end=refused_last)
            reasons: dict[int, Reason] = {**context.removed, **refused}
            removed: dict[int, Reason] = {there[at]: reason for at, reason in reasons.items()}
            gone = by_block(self._starts[:-1], removed.items())
            self._gone = {at: dict(places) for at, places in gone.items()}
            indices = sorted({index for unit in units for index in unit.indices})
            self.keeps_all = False
            remaining = assemble(history, units, {})
            self.left = dict(zip([there[at] for at in indices], remaining, strict=True))

    def part(self, at: int) -> tuple[Sequence[Any], dict[str, Any]]:
        """Return what remains of a block's messages, and what its portion should know of the rest."""
        if self.keeps_all:
            return self._sources[at], {}
        messages, rest = self._rest_of(at)
        if self._stored is None or self._stored.part != at:
            return messages, rest
        stored = self._stored.at
        origin: Sequence[int] = rest.get("origin", range(len(messages)))
        there = [place for place, index in enumerate(origin) if index != stored]
        gone = {index: why for index, why in rest.get("gone", {}).items() if index != stored}
        rest = {**rest, "origin": [origin[place] for place in there], "gone": gone}
        return [messages[place] for place in there], rest

    def _rest_of(self, at: int) -> tuple[Sequence[Any], dict[str, Any]]:
        source, start = self._sources[at], self._starts[at]
        if self.left is None:
            return source, {}
        stop = self._starts[at + 1]
        origin = [index - start for index in range(start, stop) if index in self.left]
        messages = [self.left[start + index] for index in origin]
        parted = (i for i, message in zip(origin, messages, strict=True) if message is not source[i])
        return messages, {"origin": origin, "gone": self._gone.get(at, {}), "mended": frozenset(parted)}

    def fill(self, part: Part, at: int) -> None:
        """Give a part the sizes its callbacks asked for, and what is shown in place of stored rules."""
        if self._stored is not None and self._stored.part == at:
            _, place, message = self._stored
            part.stored = StoredRules(place, part.source[place] is not message)
            if part.sizes.additive:
                part.source_sizes.of(place)  # of rules that other rules replace nobody else asks
        if not self._known or not part.sizes.additive:
            return
        known = self._known[self._starts[at] : self._starts[at + 1]]
        part.source_sizes.take(known)
        if part.origin is not None:
            part.sizes.take([None if index in part.mended else known[index] for index in part.origin])


def _parts(
    policy: Policy,
    blocks: Sequence[Block],
    sources: Sequence[Sequence[Any]],
    removals: _Removals,
    *,
    format: Format,
    counter: Any,
    looked_over: bool,
    look: bool,
) -> tuple[list[Part], Bonds]:
    """Make a portion of each block, and find what spans them, if it is to be looked for."""
    taken = [removals.part(at) for at in range(len(blocks))]
    lists = [messages for messages, _ in taken]
    thinking = format.thinking_rules(policy.model, None)
    read = partial(History, format=format, protect=False, looked_over=looked_over, thinking=thinking)
    bonds = Bonds()
    if look:
        names = [block.name for block in blocks]
        bonds = bonds_of([*map(read, map(list, lists))], names, pending_calls=policy.pending_calls)
    starts, source_starts = starts_of(lists), starts_of(sources)
    ranked = any([block.tier is not None or block.priority != 0 for block in policy.blocks])
    pinned = _pins(policy, blocks, taken, bonds)
    pins = by_block(starts, ((index, index) for index in pinned))
    answered, apart = by_block(starts, bonds.answered), by_block(starts, bonds.answers)
    opening = _thinking_ahead(format, lists, starts, bonds) if thinking.leads else set[int]()
    ending = _end_behind(policy, format, lists, pinned)
    holds = by_block(starts, ((index, index) for index in sorted(bonds.held | opening | ending)))
    sure = pinned | bonds.held
    going = by_block(starts, ((index, index) for one in bonds.units if not one & sure for index in one))
    unread = _unread(format, lists)
    source_unread = unread if removals.keeps_all else _unread(format, sources)
    parts: list[Part] = []
    followed, leaderless, sized = False, False, partial(_sizes_of_part, counter, Base(), policy.tools)
    for at in range(len(blocks) - 1, -1, -1):
        block, rest, source = blocks[at], taken[at][1], sources[at]
        opener = opener_of(read(list(lists[at]))) if leaderless else []
        history = read(
            list(lists[at]),
            pins=[index for index, _ in pins.get(at, ())],
            pending_calls=policy.pending_calls,
            origin_of=policy.origin,
            followed=followed,
            answered=answered.get(at, ()),
            apart=apart.get(at, ()),
            holds=[*(index for index, _ in holds.get(at, ())), *opener],
        )
        leaderless, has_turn, is_system = _look_at(history, block, leaderless, going.get(at, ()))
        followed, whole = followed or has_turn, block.pinned or (not ranked and is_system)
        joint = None if block.separator is None else joint_of(block, format, _text_role(block))
        sizes = sized(history.messages, joint, unread[at])
        source_sizes = sized([*source], joint, source_unread[at]) if "origin" in rest else sizes
        part = Part(
            name=block.name,
            block=block,
            strategy=block.gives_way_by,
            joint=joint,
            labels=block.labels or (),
            whole=whole,
            history=history,
            sizes=sizes,
            source=source,
            source_sizes=source_sizes,
            start=source_starts[at],
            asked_pins=history.pins,
            compact=compact_for(policy, block) if policy.compact or block.compact else None,
            owner_of=policy.owner_of,
            **rest,
        )
        removals.fill(part, at)
        parts.append(part)
    return parts[::-1], bonds


def compact_for(policy: Policy, block: Block, /) -> Compact | None:
    """Return how results of a block are written; what is pinned or joined is sent as it is."""
    compact: Any = policy.compact if block.compact is None else block.compact
    return None if not compact or block.pinned or block.separator is not None else compact


def _sizes_of_part(
    counter: Any, base: Base, tools: Any, messages: list[Any], joint: Joint | None, unread: range
) -> Sizes:
    """Make the sizes of one block; the shares of all blocks have one base."""
    if joint is None:
        sizes = sizes_for(counter, messages, None, unread=unread)
    else:
        sizes = sizes_of(counter, messages, joint, unread=unread)
    sizes.offered = tools
    if isinstance(sizes, Shares):
        sizes.base = base
    return sizes


def _unread(format: Format, lists: Sequence[Sequence[Any]]) -> list[range]:
    """Tell of each block which of its messages a compaction stands for, its own or one further on."""
    if not format.rules.keeps_messages:
        return [range(0)] * len(lists)
    found = format.unread(list(chain.from_iterable(lists)))
    starts = starts_of(lists)
    return [
        range(max(0, found.start - start), max(0, min(found.stop - start, len(messages))))
        for start, messages in zip(starts, lists, strict=True)
    ]


def _thinking_ahead(
    format: Format, lists: Sequence[Sequence[Any]], starts: Sequence[int], bonds: Bonds
) -> set[int]:
    """List the thinking that has to open the last turn where a block begins in the middle of it, whole."""
    turn = LastTurn([message for messages in lists for message in messages], format.turn_step)
    found = {index for start in starts[1:] if (index := turn.thinking_for(start)) is not None}
    return found.union(*(one for one in bonds.units if not one.isdisjoint(found)))


def _end_behind(
    policy: Policy, format: Format, lists: Sequence[Sequence[Any]], pinned: Collection[int]
) -> set[int]:
    """List what has to stay as the end of the request, where what is pinned may not be its last."""
    count = sum(map(len, lists))
    last = max(pinned, default=count - 1)
    if last == count - 1:
        return set()
    message = next(islice(chain.from_iterable(lists), last, None))
    asked = format.for_model(policy.model)
    return {count - 1} if cannot_end(asked, Request(messages=()), message) else set()


def _has_loose_ends(part: Part) -> bool:
    """Tell whether what was read of a block shows that something may belong to another one."""
    history = part.history
    walked, count = history.walked, history.count
    if not count:
        return False
    if history.walked_from == count or walked.odd or walked.unanswered:
        return True
    return history.format.rules.binds_messages


def _pins(
    policy: Policy,
    blocks: Sequence[Block],
    taken: Sequence[tuple[Sequence[Any], dict[str, Any]]],
    bonds: Bonds,
) -> set[int]:
    """List the messages of pinned blocks, those pinned in others, and what belongs to them."""
    pinned: set[int] = set()
    starts = starts_of([messages for messages, _ in taken])
    for block, (messages, rest), start in zip(blocks, taken, starts, strict=True):
        own = range(len(messages)) if block.pinned else policy.pins.get(block.name, ())
        if not block.pinned and "origin" in rest:
            own = [at for at, index in enumerate(rest["origin"]) if index in own]
        pinned.update(start + at for at in own)
    return pinned.union(*(unit for unit in bonds.units if not unit.isdisjoint(pinned)))


def _look_at(
    history: History, block: Block, leaderless: bool, going: Sequence[tuple[int, int]]
) -> tuple[bool, bool, bool]:
    """Tell of a block whether it is leaderless, whether it has a turn, and whether it is all system text."""
    try:
        return is_leaderless(history, leaderless, going), _has_turn(history), _is_system(history)
    except FormatError as error:
        name_block(error, block.name)
        raise


def _has_turn(history: History) -> bool:
    return any(map(("user", "assistant").__contains__, map(history.kind, range(history.count - 1, -1, -1))))


def _is_system(history: History) -> bool:
    return all(map("system".__eq__, map(history.kind, range(history.count))))
