"""What stays of several blocks: room is offered to each in turn, and strategies answer.

The order and the numbers are those of `allocation.py`. What leaves of one block may take something of another
along.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from itertools import chain, takewhile
from typing import TYPE_CHECKING, cast

from trimtab._fitting.allocation import Claim, offers
from trimtab._fitting.bonds import by_block
from trimtab._fitting.layout import Composition, Part
from trimtab._fitting.outcome import BlockDecision, Outcome, mark_tokens_of
from trimtab._fitting.portion import name_block, said_of
from trimtab._fitting.settle import ask_portion, counted_back, fresh_of, give_way, need_tokens, settle
from trimtab._fitting.settlement import Settlement
from trimtab._fitting.stale import first_change, stale_note, without_stale
from trimtab._shared.steps import Steps
from trimtab.budget import Budget
from trimtab.conversation import History
from trimtab.conversation.order import Row, cannot_end, find_misplaced, row_or_before, stands_apart
from trimtab.conversation.turns import turn_of
from trimtab.conversation.units import span_of, unit_of
from trimtab.counting.sizes import Shares, shared_out
from trimtab.errors import BudgetExceededError, CountingError, FormatError
from trimtab.formats import Request, mapping_of
from trimtab.strategies.base import EvictionRequest, asks_model, latest_words
from trimtab.strategies.door import DEFAULT_STRATEGY
from trimtab.strategies.drop import Strict
from trimtab.strategies.openers import begin_of
from trimtab.strategies.runner import Settled, run
from trimtab.strategies.truncate_text import TruncateText

if TYPE_CHECKING:
    from trimtab.report import Reason

__all__ = ["claims_of", "settle_blocks"]


def settle_blocks(composition: Composition, /) -> Steps[Settlement]:
    """Settle what stays of the blocks of a `Context`; see `settle`."""
    return settle(composition, _settle_compact if composition.compacts else _settle_blocks)


def _settle_compact(composition: Composition, budget: Budget | None) -> Steps[Outcome]:
    """Settle with results written otherwise, for what turns out to be there."""
    # not above: loaded by who asks for it
    from trimtab._fitting.compaction import settle_compact

    return (
        yield from settle_compact(
            lambda windows: _settle_blocks(composition.written_for(windows), budget),
            lambda made: made.decisions,
            [(part, part.compact) for part in composition.parts if part.compact is not None],
            (tuple([(part.name, type(part.strategy)) for part in composition.parts]), budget),
        )
    )


def _settle_blocks(composition: Composition, budget: Budget | None) -> Steps[Outcome]:
    """Settle what stays of each block of a `Context`."""
    if budget is None:
        return (yield from _settle_without_end(composition))
    outcome = yield from _Fold(composition, budget).run()
    if _may_be_torn(outcome) and composition.bind_blocks():
        outcome = yield from _Fold(composition, budget).run()
    if outcome.error is not None or outcome.tokens <= budget.input_tokens:
        return outcome
    return (yield from _given_less(outcome))


def _may_be_torn(outcome: Outcome) -> bool:
    """Tell whether something that stays may belong to another block, and nobody has looked for that.

    Blocks are read from the newest message back, and no further than they have room: a call that was not
    read may have its result in the next block.
    """
    if outcome.composition.is_bound:
        return False
    for decision in outcome.decisions:
        history, settled = decision.portion.history, decision.settled
        # what an open call waits for may stand in another block
        if history.walked.unanswered or not history.is_sound(settled.cut, settled.before):
            return True
    return False


def _settle_without_end(composition: Composition) -> Steps[Outcome]:
    """Settle in more room than any request takes, and go by what came of it."""
    outcome = yield from _settle_blocks(composition, composition.budget)
    outcome.budget = Budget(max(1, outcome.tokens))
    for decision in outcome.decisions:
        decision.room_tokens = None
        if decision.cap_tokens is not None:  # a share of no budget is no cap
            decision.cap_tokens = decision.portion.block.max_tokens
    return outcome


def _given_less(outcome: Outcome) -> Steps[Outcome]:
    """Settle again with less room for the blocks: a black box counts the whole higher than them.

    They get as much less as it is over, then twice that; and between what is not enough and what is more
    than enough, half of it, to within a part of the room. No summarizer is asked to make it closer.
    """
    composition, room = outcome.composition, outcome.budget.input_tokens
    asks = any(asks_model(part.strategy) for part in composition.parts)
    low, less, high = 0, min(room, outcome.tokens - room), room + 1
    found: Outcome | None = None
    while low < less < high:
        tried = yield from _Fold(composition, outcome.budget, less_tokens=less).run()
        if tried.error is not None:
            high = less
        elif tried.tokens <= room:
            found, high = tried, less
        else:
            low, outcome = less, tried
        if found is not None and (asks or high - low <= room // _CLOSE):
            return found
        less = (low + high) // 2 if high <= room else min(room, max(low + outcome.tokens - room, 2 * low))
    if found is not None:
        return found
    outcome.error = _exceeded_by_whole(outcome)
    return outcome


_CLOSE = 64
"""Part of the room within which the search for what a black box lets pass ends."""


def claims_of(composition: Composition) -> tuple[list[Claim], int]:
    """Return what the blocks ask for, in the order they were added, and the room there is for them."""
    fold = _Fold(composition, composition.budget)
    return fold.claims(), fold.room


class _Fold:
    """One run of the fold."""

    def __init__(self, composition: Composition, budget: Budget, *, less_tokens: int = 0) -> None:
        self._composition = composition
        self._budget = budget
        self._parts = [composition.parts[at] for at in composition.adding]
        input_tokens = budget.input_tokens
        self._caps = {part.name: part.block.cap_tokens(input_tokens) for part in self._parts}
        """The most each block may take, by name."""
        self._decided: dict[int, BlockDecision] = {}
        self._marks: dict[str, int] = {}
        """What the mark of each block costs, by name, if all of the block stays."""
        self._beside_tokens = _beside_tokens(composition, leads_system=_begins_with_system(composition))
        self.room = input_tokens - self._beside_tokens - less_tokens
        most = max(0, self.room)
        self._reach = {
            part.name: most if part.block.pinned else min(most, self._caps[part.name]) for part in self._parts
        }
        """How far each block is counted before it is offered anything: its cap, or all there is."""

    def run(self) -> Steps[Outcome]:
        """Offer the room block by block, and put together what came of it."""
        floors_ignored, error = False, None
        claims = self.claims()
        if self._all_fits(claims):
            return self._outcome(claims, floors_ignored=False, error=None)
        if self.room < 0:
            return self._outcome(claims, floors_ignored=False, error=self._no_room(claims))
        try:
            fold = offers(claims, self.room, ties=self._composition.ties)
            used: int | None = None
            while True:
                offer = next(fold) if used is None else fold.send(used)
                part = self._parts[offer.at]
                try:
                    decision = yield from self._settle(part, claims[offer.at], offer.limit_tokens)
                except (CountingError, FormatError) as error_in_block:
                    name_block(error_in_block, part.name)
                    raise
                decision.room_tokens = offer.room_tokens
                self._decided[offer.at] = decision
                if not decision.settled.fits:
                    error = self._budget_error(decision, claims[offer.at])
                    break
                used = decision.tokens
        except StopIteration as done:
            floors_ignored = done.value.floors_ignored
        except BudgetExceededError as raised:
            error = self._in_request(raised)
        return self._outcome(claims, floors_ignored=floors_ignored, error=error)

    def claims(self) -> list[Claim]:
        """List what each block asks for."""
        if not self._composition.is_bound:
            for part in self._parts:
                try:
                    counted_back(part.history, part.sizes, self._reach[part.name])
                except (CountingError, FormatError) as error:
                    name_block(error, part.name)
                    raise
            if self._composition.look_for_bonds():
                self._parts = [self._composition.parts[at] for at in self._composition.adding]
        claims = []
        for part in self._parts:
            try:
                claims.append(self._claim(part))
            except (CountingError, FormatError) as error:
                name_block(error, part.name)
                raise
        return claims

    def _all_fits(self, claims: list[Claim]) -> bool:
        """Tell whether a black box says that everything fits, though it counts the blocks higher."""
        if not self._composition.is_black_box or self._composition.remainder() > self._budget.input_tokens:
            return False
        if any(claim.most_tokens < claim.need_tokens for claim in claims):
            return False
        for at, (part, claim) in enumerate(zip(self._parts, claims, strict=True)):
            request = self._request(part, claim.need_tokens)
            self._decided[at] = _all_of(part, request, tokens=claim.need_tokens - self._marks[part.name])
            self._decided[at].room_tokens = self.room
        return True

    def _claim(self, part: Part) -> Claim:
        block, room = part.block, self._budget.input_tokens
        need, cap = need_tokens(part, self._reach[part.name]), self._caps[part.name]
        caps = cap < room and not block.pinned  # at the whole room it is the room that ends it
        if part.whole:
            must = min(need, cap) if caps else need
        else:
            must = _least_tokens(part) if part.history.may_hold() else 0
        self._marks[part.name] = mark = 0 if block.cache_control is None else mark_tokens_of(part)
        return Claim(
            name=block.name,
            need_tokens=need + mark,
            rank=block.rank,
            must_tokens=must,
            floor_tokens=block.floor_tokens(room),
            cap_tokens=cap if caps else None,
            share=block.share,
            once=asks_model(part.strategy),
        )

    def _settle(self, part: Part, claim: Claim, limit_tokens: int) -> Steps[BlockDecision]:
        """Ask the block's strategy, if it does not fit as it is."""
        need = claim.need_tokens - self._marks[part.name]
        if need <= limit_tokens:
            decision = _all_of(part, self._request(part, limit_tokens), tokens=need)
        else:
            led, cap = self._is_led(part), self._caps[part.name]
            ask = partial(ask_portion, part, always=cap, led=led, question=self._question)
            request, settled = yield from give_way(part, limit_tokens, ask, partial(fresh_of, part))
            if settled.reason == "over_limit" and limit_tokens == claim.cap_tokens:
                settled.reason = "over_cap"
            decision = BlockDecision(
                portion=part, settled=settled, request=request, offered_tokens=limit_tokens
            )
        if part.block.cache_control is not None:
            decision.charge_mark(limit_tokens)
        return decision

    def _request(self, part: Part, limit_tokens: int) -> EvictionRequest:
        return EvictionRequest(
            part.history,
            part.sizes,
            limit_tokens=limit_tokens,
            constant_limit_tokens=self._caps[part.name],
            block=part.name,
            led=self._is_led(part),
        )

    def _question(self) -> str:
        """Return what the user wrote last: in the last block that has a message of the user's."""
        told = (part for part in reversed(self._composition.parts) if part.history.latest_user is not None)
        return next(map(latest_words, (part.history for part in told)), "")

    def _is_led(self, part: Part) -> bool:
        """Tell whether a block in front surely has something that may come first, where that matters."""
        if not part.history.ordered:
            return False
        decided = {id(decision.portion): decision for decision in self._decided.values()}
        for ahead in self._composition.parts:
            if ahead is part:
                return False
            decision = decided.get(id(ahead))
            if any(map(partial(_may_lead, ahead.history), _sure(ahead, decision))):
                return True
        return False

    def _outcome(
        self, claims: list[Claim], *, floors_ignored: bool, error: BudgetExceededError | None
    ) -> Outcome:
        """Put decisions in the order of the request; blocks not reached keep what must stay."""
        composition = self._composition
        for at, part in enumerate(self._parts):
            if at not in self._decided:
                self._decided[at] = self._least(part, claims[at])
            self._decided[at].cap_tokens = claims[at].cap_tokens
            self._decided[at].floor_tokens = claims[at].floor_tokens
        places = {composition.adding[at]: decision for at, decision in self._decided.items()}
        outcome = Outcome(
            composition=composition,
            budget=self._budget,
            decisions=[places[at] for at in range(len(composition.parts))],
            floors_ignored=floors_ignored,
            error=error,
        )
        _let_go_together(outcome)
        _let_go_misplaced(outcome)
        _let_go_of_last_turn(outcome)
        _let_go_stale(outcome)
        for decision in outcome.decisions:
            try:
                decision.portion.history.look_over(decision.settled.cut, also=decision.settled.before)
            except FormatError as unknown:
                name_block(unknown, decision.portion.name)
                raise
        for decision in outcome.decisions:
            if decision.portion.block.cache_control is not None:  # another message may carry the mark now
                decision.charge_mark(decision.cap_tokens)
        if not floors_ignored:
            for at, claim in enumerate(claims):
                self._decided[at].miss(min(claim.floor_tokens, claim.most_tokens))
        _add_up(outcome)
        return outcome

    def _least(self, part: Part, claim: Claim) -> BlockDecision:
        """Decide about a block that no room remained for: what must stay of it, at its shortest."""
        request = self._request(part, claim.must_tokens)
        need = need_tokens(part, claim.must_tokens)
        if need <= claim.must_tokens:
            return _all_of(part, request, tokens=need)
        settled = run(DEFAULT_STRATEGY, request)
        return BlockDecision(portion=part, settled=settled, request=request, offered_tokens=claim.must_tokens)

    def _budget_error(self, decision: BlockDecision, claim: Claim) -> BudgetExceededError:
        """Make the error for a block whose strategy could not keep to its limit."""
        settled, limit, name = decision.settled, decision.offered_tokens, decision.portion.name
        room = self._budget.input_tokens
        needed = settled.tokens if settled.needed_tokens is None else settled.needed_tokens
        at_cap = limit == claim.cap_tokens
        heaviest = decision.heaviest()
        change = "Raise its cap" if at_cap else "Raise the budget or its rank, or set caps for other blocks"
        error = BudgetExceededError(
            f"block {name!r} does not fit: it needs at least {needed:,} tokens and {limit:,} remain for it,"
            f" {needed - limit:,} too few (strategy {decision.portion.strategy.name})."
            f"{said_of(heaviest)}{_said_of_rules(self._composition)} {change}.",
            needed_tokens=needed if at_cap else room + needed - limit,
            limit_tokens=limit if at_cap else room,
            block=name,
            heaviest=heaviest,
        )
        return settled.explain(error)

    def _in_request(self, error: BudgetExceededError) -> BudgetExceededError:
        """Say of the whole request what the fold says of its blocks; a block's cap stays as it is."""
        if error.needed_tokens is None or error.limit_tokens != self.room:
            return error
        room, beside = self._budget.input_tokens, self._beside_tokens
        more = (
            f" In addition to the blocks, the request takes {beside:,} of {room:,} tokens." if beside else ""
        )
        whole = BudgetExceededError(
            f"{error}{more}{_said_of_rules(self._composition)}",
            needed_tokens=beside + error.needed_tokens,
            limit_tokens=room,
            block=error.block,
            heaviest=error.heaviest,
        )
        whole.__cause__ = error.__cause__
        return whole

    def _no_room(self, claims: list[Claim]) -> BudgetExceededError:
        needed, room = self._beside_tokens, self._budget.input_tokens
        return BudgetExceededError(
            f"the request does not fit: system text, tools and framing take {needed:,} tokens and {room:,}"
            f" are available, {needed - room:,} too few.{_said_of_rules(self._composition)} Raise the budget,"
            " or shorten them.",
            needed_tokens=needed + sum(claim.must_tokens for claim in claims),
            limit_tokens=room,
        )


def _all_of(part: Part, request: EvictionRequest, *, tokens: int) -> BlockDecision:
    """Keep a block as it is."""
    settled = Settled(cut=0, tokens=tokens, actions=("kept",))
    return BlockDecision(portion=part, settled=settled, request=request, offered_tokens=request.limit_tokens)


def _least_tokens(part: Part) -> int:
    """Return the size of what may not leave, held texts at their shortest."""
    history = part.history
    among = history.near(history.count) if history.walked_from < history.count else None
    spans = map(span_of, history.units) if among is None else among
    units = [unit_of(span) for span in spans if span[2] != "free"]
    request = EvictionRequest(part.history, part.sizes, limit_tokens=0, block=part.name, alive=units)
    if not units or request.fits(units):  # the least there is, which no strategy may be asked for
        return 0
    answer = TruncateText().evict(request)
    return request.total(answer.kept) if answer.needed_tokens is None else answer.needed_tokens


def _sure(part: Part, decision: BlockDecision | None) -> Iterator[int]:
    """List the messages of a block that stay: by what was settled, or else those that must."""
    if decision is not None:
        yield from (index for index, _ in decision.rows() if index >= 0)
    elif part.whole:
        yield from range(part.history.count)
    else:
        yield from (unit.first for unit in part.history.units if unit.state != "free")


def _may_lead(history: History, index: int) -> bool:
    return history.kind(index) != "system" and not history.cannot_lead(index)


def _begins_with_system(composition: Composition) -> bool:
    """Tell whether the request will begin with a system message, whatever leaves."""
    if composition.lead:
        return True
    first = composition.parts[0] if composition.parts else None
    if first is None or not first.history.count:
        return False
    stays = first.whole or isinstance(first.strategy, Strict) or 0 in first.history.pins
    return stays and first.history.kind(0) == "system"


def _said_of_rules(composition: Composition) -> str:
    """Say in an error what the rules of the host take; empty where there are none."""
    rules = composition.rules
    return "" if rules is None else rules.sentence(composition.request_sizes.shown_tokens)


def _beside_tokens(composition: Composition, *, leads_system: bool) -> int:
    """Return what the request costs beside its blocks."""
    sizes, lead = composition.request_sizes, composition.lead
    if isinstance(sizes, Shares):
        return sizes.request_tokens(lead) if lead else sizes.base_tokens()
    return sizes.fixed_tokens(leads_system) + sum(map(sizes.of, range(len(lead))))


def _add_up(outcome: Outcome) -> None:
    """Count the whole; leave out marks for the cache that it has no room for."""
    outcome.tokens = _total(outcome)
    carry = [one for one in outcome.decisions if one.portion.block.cache_control is not None]
    if carry and outcome.error is None and outcome.tokens > outcome.budget.input_tokens:
        for decision in carry:
            decision.leave_mark()
        outcome.forget_output()
        outcome.tokens = _total(outcome)
    outcome.notes.extend(
        f"cache_control of block {one.portion.name!r} was left out: "
        + ("its last message can carry no mark." if one.marked else "there was no room for its mark.")
        for one in carry
        if not (one.marked and one.can_carry)
    )


def _total(outcome: Outcome) -> int:
    composition, decisions = outcome.composition, outcome.decisions
    put_in = chain.from_iterable([decision.settled.insertions for decision in decisions])
    if composition.is_black_box and all([one.planned_tokens is None for one in put_in]):
        sizes = cast("Shares", composition.request_sizes)
        messages, beside = outcome.output(), _beside_tokens(composition, leads_system=False)
        total = sizes.request_tokens(messages) if messages else sizes.base_tokens()
        outcome.fixed_tokens = min(total, sizes.base_tokens())
        outcome.lead_tokens = max(0, min(total, beside) - outcome.fixed_tokens)
        blocks_tokens = total - outcome.fixed_tokens - outcome.lead_tokens
        parts = shared_out(blocks_tokens, [decision.tokens for decision in decisions])
        for decision, tokens in zip(decisions, parts, strict=True):
            decision.settled.tokens, decision.mark_tokens = tokens, 0  # the total has the marks in it
        return total
    outcome.given_fixed_tokens = composition.request_sizes.fixed_tokens(outcome.led_system)
    beside = _beside_tokens(composition, leads_system=outcome.leads_system)
    return beside + sum([decision.tokens for decision in decisions])


def _exceeded_by_whole(outcome: Outcome) -> BudgetExceededError:
    needed, limit = outcome.tokens, outcome.budget.input_tokens
    return BudgetExceededError(
        f"the request does not fit: the counter returns {needed:,} tokens for the whole request and"
        f" {limit:,} are available, {needed - limit:,} too few, although the blocks alone fit."
        f"{_said_of_rules(outcome.composition)} Raise the budget, or add a margin.",
        needed_tokens=needed,
        limit_tokens=limit,
    )


# Where the blocks of a request meet: what has to leave since something in another block is gone.
#
# Each block is settled by itself. What belongs together may stand in two of them, and what a provider takes
# inside a block it may refuse behind the one in front.


def _let_go_together(outcome: Outcome) -> None:
    """Take out what belongs to something another block let go."""
    composition = outcome.composition
    starts, gone = composition.starts, set[int]()
    for unit in composition.bonds.units:
        there = {index for index in unit if _stays(outcome.decisions, starts, index)}
        if len(there) < len(unit):
            gone |= there
    for at, places in by_block(starts, ((index, index) for index in gone)).items():
        outcome.decisions[at].take_out({place for place, _ in places}, reason="unit_of_removed")


def _let_go_misplaced(outcome: Outcome) -> None:
    """Take out what the provider would refuse where the blocks of the request now meet."""
    format, decisions, composition = outcome.format, outcome.decisions, outcome.composition
    if not format.rules.ordered or not _gives_way(outcome):
        return
    together = _Together(composition)
    rows, starts, begin = _rows(outcome, together), composition.starts, 0
    for at, (decision, start) in enumerate(zip(decisions, starts, strict=True)):
        history = decision.portion.history
        if begin == start:  # nothing but system text so far
            stop = begin_of(history)
            begin = starts[at + 1] if stop == history.count and at + 1 < len(starts) else start + stop
    let_go = row_or_before(together.may_leave)
    leave = find_misplaced(format, rows, first=begin, stands=stands_apart(format, begin), let_go=let_go)
    _take_out(outcome, together, rows, set(leave), reason="cannot_lead")


def _gives_way(outcome: Outcome) -> bool:
    """Tell whether the blocks fit, and any of them has let go of something."""
    return outcome.error is None and any([one.settled.before or one.settled.cut for one in outcome.decisions])


def _take_out(
    outcome: Outcome, together: _Together, rows: Sequence[Row], left: Collection[int], *, reason: Reason
) -> None:
    """Take out units; of a message that others are a part of, too, their parts stay."""
    starts = outcome.composition.starts
    gone = [(row.place, row.place) for row in rows if row.owners and set(row.owners).issubset(left)]
    parted = [(row.place, row.place) for row in rows if not set(row.owners).isdisjoint(left)]
    leaving_of = by_block(starts, gone)
    for at, places in by_block(starts, parted).items():
        out = {place for place, _ in leaving_of.get(at, ())}
        there = outcome.decisions[at].settled.partial
        staying = {
            place: together.parts(index, left) & there.get(place, together.parts(index, ()))
            for place, index in places
            if place not in out
        }
        outcome.decisions[at].take_out(out, parted=staying, reason=reason)


def _rows(outcome: Outcome, together: _Together | None = None) -> list[Row]:
    """List what stays of all blocks and what was put in, in order; without units nobody owns it."""
    rows: list[Row] = []
    for decision, start in zip(outcome.decisions, outcome.composition.starts, strict=True):
        partial = decision.settled.partial
        for index, message in decision.rows():
            owners = together.of(start + index, partial.get(index)) if together and index >= 0 else []
            rows.append(Row(start + index if index >= 0 else -2, message, owners))
    return rows


def _let_go_of_last_turn(outcome: Outcome) -> None:
    """Take out what the provider refuses of the model's last turn, now that others are gone, in any block.

    That is what opens it without thinking, and the model's words at the end where it goes on with none.
    """
    if not _gives_way(outcome):
        return
    last = outcome.decisions[-1]
    history = last.portion.history
    if last.settled.keeps(history.count - 1) and not history.thinking.leads:
        return
    if _refused_in_turn(outcome, _rows(outcome)) is None:
        return
    together = _Together(outcome.composition)
    rows = _rows(outcome, together)
    while (found := _refused_in_turn(outcome, rows)) is not None:
        reason, places = found
        left = {owner for at in places for owner in rows[at].owners if together.may_leave(owner)}
        if not left:
            break
        _take_out(outcome, together, rows, left, reason=reason)
        rows = _rows(outcome, together)


def _refused_in_turn(outcome: Outcome, rows: Sequence[Row]) -> tuple[Reason, list[int]] | None:
    """Say which rows are refused in the last turn that were not before, and why; None if none is."""
    last, composition, format = outcome.decisions[-1], outcome.composition, outcome.format
    history = last.portion.history
    if rows and not last.settled.keeps(history.count - 1):
        asked = format.for_model(composition.policy.model)
        if cannot_end(asked, Request(messages=()), rows[-1].message):
            return "cannot_end", [len(rows) - 1]
    if not history.thinking.leads:
        return None
    said = turn_of([row.message for row in rows], format.turn_step)
    ahead = [one.at for one in takewhile(lambda one: not one.thinks, reversed(said))]
    if not ahead:
        return None
    given = [message for part in composition.parts for message in part.history.messages]
    if all(format.turn_step(mapping_of(message)) != "thinks" for message in given):
        return None
    as_given = turn_of(given, format.turn_step)
    return None if as_given and as_given[-1].at == rows[ahead[0]].place else ("cannot_lead", ahead)


def _let_go_stale(outcome: Outcome) -> None:
    """Take out thinking that a model refuses behind the first change to the request, in whatever block."""
    changed, count = False, 0
    for decision in outcome.decisions:
        portion, settled = decision.portion, decision.settled
        if not portion.history.thinking.bound:
            return
        start = 0 if changed else first_change(portion, settled)
        decision.settled = without_stale(portion, decision.request, settled, start=start)
        decision.freed_tokens += settled.tokens - decision.settled.tokens
        count += sum(why == "bound_thinking" for why in decision.settled.reasons.values())
        changed = start is not None or _lost_its_end(portion, settled)
    if count:
        outcome.notes.append(stale_note(count))


def _lost_its_end(part: Part, settled: Settled) -> bool:
    """Tell whether fewer messages of a block stay than it was given, though none that stays has moved."""
    return len(settled.before) + part.history.count - settled.cut < len(part.source)


class _Together:
    """Units of a request that leave together, whatever block they are in."""

    def __init__(self, composition: Composition) -> None:
        self._of: dict[int, list[int]] = {}
        """Numbers of the units of each message."""
        self._parts: dict[tuple[int, int], tuple[int, ...]] = {}
        self._joined: list[int] = []
        staying = set[int]()
        for part, start in zip(composition.parts, composition.starts, strict=True):
            for unit in part.history.units:
                number = len(self._joined)
                self._joined.append(number)
                for index in unit.indices:
                    self._of.setdefault(start + index, []).append(number)
                    self._parts[start + index, number] = unit.parts.get(index, ())
                if unit.state != "free":
                    staying.add(number)
        for members in composition.bonds.units:
            numbers = [number for index in sorted(members) for number in self._of[index]]
            for number in numbers[1:]:
                one, other = sorted((self._first(numbers[0]), self._first(number)))
                self._joined[other] = one
        self._staying = {self._first(number) for number in staying}

    def of(self, index: int, parts: Collection[int] | None) -> list[int]:
        """Return the units of a message, each as the one that stands for all that leaves with it.

        Args:
            index: The message.
            parts: Those of it that are there, of which the units are asked for; None: all.
        """
        units = self._of[index]
        if parts is not None:
            units = [number for number in units if not set(parts).isdisjoint(self._parts[index, number])]
        return list(dict.fromkeys(map(self._first, units)))

    def parts(self, index: int, gone: Collection[int]) -> frozenset[int]:
        """Return the parts of a message that stay where some of its units were evicted."""
        staying = (number for number in self._of[index] if self._first(number) not in gone)
        return frozenset(part for number in staying for part in self._parts[index, number])

    def may_leave(self, number: int) -> bool:
        """Tell whether nothing that leaves with a unit must stay."""
        return number not in self._staying

    def _first(self, number: int) -> int:
        while (one := self._joined[number]) != number:
            number = one
        return number


def _stays(decisions: list[BlockDecision], starts: list[int], index: int) -> bool:
    at = bisect_right(starts, index) - 1
    return decisions[at].settled.keeps(index - starts[at])
