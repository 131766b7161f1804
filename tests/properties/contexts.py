"""One fit of a Context cut from a conversation, and SPEC D5 said again with strategies."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import assume
from hypothesis import strategies as st

from tests.builders import conversations, valid_conversations
from tests.properties import oracle
from tests.properties.answers import Answer, answer_of
from tests.properties.cases import SEEDED, STRATEGIES, total
from trimtab import BudgetExceededError, ConfigurationError, Context, Fitted, SlidingWindow
from trimtab.conversation import History
from trimtab.formats import get_format
from trimtab.strategies import CUT_MARKER, EvictionRequest, EvictionResult, Strategy
from trimtab.testing import eviction_request


class Asked:
    """A strategy that remembers the limits it was asked for."""

    def __init__(self, strategy: Strategy) -> None:
        self.strategy = strategy
        self.limits: list[int] = []

    @property
    def name(self) -> str:
        """Give its own name."""
        return self.strategy.name

    def evict(self, request: EvictionRequest, /) -> EvictionResult:
        """Ask it, and note the limit."""
        self.limits.append(request.limit_tokens)
        return self.strategy.evict(request)


@dataclass(frozen=True, kw_only=True)
class Piece:
    """One block as it is added; `place` is where it stands in the conversation."""

    place: int
    start: int
    messages: list[Any]
    options: dict[str, Any]
    strategy: Asked

    @property
    def name(self) -> str:
        """Its name tells its place."""
        return f"b{self.place}"


class Case:
    """One call of `Context.fit` and its outcome."""

    def __init__(self, pieces: list[Piece], budget: int, counter: Any, **policy: Any) -> None:
        self.pieces = pieces
        """In the order of adding."""
        self.budget, self.counter, self.policy = budget, counter, policy
        self.in_order = sorted(pieces, key=lambda piece: piece.place)
        self.messages = [message for piece in self.in_order for message in piece.messages]
        self.before = copy.deepcopy(self.messages)
        self.fitted: Fitted[Any] | None = None
        self.error: BudgetExceededError | None = None
        try:
            self.fitted = self.context().fit()
        except BudgetExceededError as error:
            self.error = error

    def context(self) -> Context:
        """Make the context anew."""
        made = Context(self.budget, counter=self.counter, **self.policy)
        for piece in self.pieces:
            made.add(piece.name, piece.messages, strategy=piece.strategy, **piece.options)
        return made

    @property
    def attempt(self) -> Fitted[Any]:
        """What came out, or what came nearest."""
        found = self.fitted if self.error is None else self.error.attempt
        assert found is not None
        return found

    @property
    def lead(self) -> list[Any]:
        """System text that stands before all blocks."""
        system = self.policy.get("system")
        return [{"role": "system", "content": system}] if system else []

    @property
    def pending(self) -> Any:
        """Ids of calls whose results are still to come."""
        return self.policy.get("pending_calls", ())

    @property
    def additive(self) -> bool:
        """True if the counter counts single messages."""
        return hasattr(self.counter, "count_message")

    def count(self, messages: list[Any]) -> int:
        """Recount a request from nothing."""
        return total(messages, self.counter)

    def size(self, messages: list[Any]) -> int:
        """Count messages of a block: nothing is charged beside them."""
        if self.additive:
            return sum(map(self.counter.count_message, messages))
        return self.count(messages) - self.count([]) if messages else 0

    @cached_property
    def beside(self) -> int:
        """Tokens beside the blocks."""
        return self.count(self.lead)

    @cached_property
    def groups(self) -> list[oracle.Group]:
        """Units of the whole, with the states of a Context: only blocks pin, only open calls are held."""
        waiting = {at for at, _ in oracle.open_calls(self.messages, self.pending)}
        pinned = {at for piece in self.pieces if piece.options.get("pinned") for at in self.span(piece)}
        return [
            oracle.Group(
                group.indices,
                "pinned" if pinned & {*group.indices} else "held" if waiting & {*group.indices} else "free",
            )
            for group in oracle.groups(self.messages)
        ]

    def span(self, piece: Piece) -> range:
        """Positions of a block's messages."""
        return range(piece.start, piece.start + len(piece.messages))

    def __repr__(self) -> str:
        name = getattr(self.counter, "name", None) or self.counter.__qualname__
        blocks = "; ".join(f"{p.name} {p.options} {p.strategy.strategy} {p.messages}" for p in self.pieces)
        return f"Case({self.budget}, {name}, {self.policy}, {blocks})"


# -- SPEC D5, plainly


class Plain:
    """What D5 to D7 and D12 say of a case, settled one block after the other by the strategies themselves."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.offers: dict[str, list[int]] = {piece.name: [] for piece in case.pieces}
        self.settled: dict[str, Answer] = {}
        self.floors_ignored = False
        self.fits = self._settle()

    def kept(self) -> set[int]:
        """Positions of the whole that stay: D12 last."""
        there = {
            at
            for piece in self.case.pieces
            for at in self.case.span(piece)
            if self.settled[piece.name].keeps(at - piece.start)
        }
        for group in self.case.groups:
            if not there.issuperset(group.indices):
                there.difference_update(group.indices)
        return there

    def must(self, piece: Piece) -> int:
        """D5: what is set aside first."""
        need, cap = self.need(piece), self.cap(piece)
        if self._is_system_that_stays(piece):
            return need if cap is None else min(need, cap)
        least = []
        for group in self.case.groups:
            for at in group.indices if group.state != "free" else ():
                if at in self.case.span(piece):
                    message = copy.deepcopy(self.case.messages[at])
                    if group.state == "held":
                        oracle.shorten(message, self.case.size, CUT_MARKER)
                    least.append(message)
        return self.case.size(least) if least else 0

    def need(self, piece: Piece) -> int:
        """A block's size if nothing leaves."""
        return self.case.size(piece.messages)

    def cap(self, piece: Piece) -> int | None:
        """The smaller of two caps; None where it is no less than the room, or the block is pinned."""
        cap = self._own_cap(piece)
        return cap if cap < self.case.budget and not piece.options.get("pinned") else None

    def _own_cap(self, piece: Piece) -> int:
        options, room = piece.options, self.case.budget
        return min(int(options.get("max_ratio", 1) * room), options.get("max_tokens", room))

    def floor(self, piece: Piece) -> int:
        """The larger of two floors, no more than the need, and than a cap below the room."""
        options, room = piece.options, self.case.budget
        floor = max(int(options.get("min_ratio", 0) * room), options.get("min_tokens", 0))
        cap = self._own_cap(piece)
        return min(floor, self.need(piece), cap if cap < room else floor)

    def _is_system_that_stays(self, piece: Piece) -> bool:
        ranked = any(p.options.get("priority") or p.options.get("tier") is not None for p in self.case.pieces)
        only_system = all(message["role"] in oracle.SYSTEM for message in piece.messages)
        return bool(piece.options.get("pinned")) or (only_system and not ranked)

    def _settle(self) -> bool:
        case, pieces = self.case, self.case.pieces
        if not case.additive and case.count([*case.lead, *case.messages]) <= case.budget and self._no_cap():
            for piece in pieces:
                self.settled[piece.name] = self._all_of(piece)
            return True
        room = case.budget - case.beside
        must = {piece.name: self.must(piece) for piece in pieces}
        caps = {piece.name: self.cap(piece) for piece in pieces}
        passed = [name for name, cap in caps.items() if cap is not None and must[name] > cap]
        if sum(must.values()) > room or passed:
            return False
        held = {piece.name: max(must[piece.name], self.floor(piece)) for piece in pieces}
        if sum(held.values()) > room:
            held, self.floors_ignored = must, True
        left, used = room - sum(held.values()), dict.fromkeys(held, 0)
        order = self.order()
        for piece in order:
            name = piece.name
            limit = min(self._most(piece), left + held[name])
            self.offers[name].append(limit)
            used[name] = self._ask(piece, limit)
            if not self.settled[name].fits:
                return False
            left += held[name] - used[name]
        for piece in order:
            name = piece.name
            limit = min(self._most(piece), used[name] + left)
            if limit > self.offers[name][-1]:
                self.offers[name].append(limit)
                left += used[name]
                used[name] = self._ask(piece, limit)
                left -= used[name]
        return all(settled.fits for settled in self.settled.values())

    def _no_cap(self) -> bool:
        return all(
            self.need(p) <= (self.need(p) if (c := self.cap(p)) is None else c) for p in self.case.pieces
        )

    def _most(self, piece: Piece) -> int:
        cap = self.cap(piece)
        return max(self.need(piece) if cap is None else min(self.need(piece), cap), self.must(piece))

    def order(self) -> list[Piece]:
        """Highest rank first; of equals the one added last, or with ties="first" the one added first."""
        options = [piece.options for piece in self.case.pieces]
        tiered = any(one.get("tier") is not None for one in options)
        first = self.case.policy.get("ties", "first" if tiered else "newest") == "first"
        served = list(self.case.pieces) if first else list(reversed(self.case.pieces))
        return sorted(served, key=lambda p: p.options.get("tier") or -p.options.get("priority", 0))

    def _ask(self, piece: Piece, limit: int) -> int:
        """Ask the block's strategy alone, with all units grouped."""
        if self.need(piece) <= limit:
            self.settled[piece.name] = self._all_of(piece)
            return self.need(piece)
        settled = self.settled[piece.name] = answer_of(piece.strategy.strategy, self._request(piece, limit))
        return settled.tokens

    def _all_of(self, piece: Piece) -> Answer:
        return Answer(kept=range(len(piece.messages)), tokens=self.need(piece))

    def _request(self, piece: Piece, limit: int) -> EvictionRequest:
        case, span, form = self.case, self.case.span(piece), get_format("openai_chat")
        asked = [form.full_text(message) for message in case.messages if message["role"] == "user"]
        states = {at: group.state for group in case.groups for at in group.indices}
        owner = oracle.owners(case.messages)
        history = History(
            list(piece.messages),
            format=form,
            protect=False,
            pins=[at - piece.start for at in span if states[at] == "pinned"],
            holds=[at - piece.start for at in span if states[at] == "held"],
            pending_calls=case.pending,
            followed=any(m["role"] in ("user", "assistant") for m in case.messages[span.stop :]),
            answered=[
                (call - piece.start, oracle.answered_id(case.messages[at]))
                for at, call in owner.items()
                if call is not None and call in span and at not in span
            ],
            apart=[
                (at - piece.start, oracle.answered_id(case.messages[at]))
                for at, call in owner.items()
                if call is not None and at in span and call not in span
            ],
        )
        return eviction_request(
            history,
            limit,
            counter=case.counter,
            lazy=False,
            block=True,
            constant_limit_tokens=self._own_cap(piece),
            question=asked[-1] if asked else "",
        )


# -- making them

NUMBERS = st.one_of(st.just(0), st.integers(0, 80))
CAPS = st.fixed_dictionaries(
    {}, optional={"max_tokens": st.integers(0, 90), "max_ratio": st.sampled_from((0.0, 0.2, 0.5, 0.9))}
)
FLOORS = st.fixed_dictionaries(
    {}, optional={"min_tokens": NUMBERS, "min_ratio": st.sampled_from((0.1, 0.3, 0.6))}
)
NOTHING: st.SearchStrategy[dict[str, Any]] = st.just({})
TALKS = st.one_of(conversations(), conversations(), valid_conversations(), SEEDED)


@st.composite
def pieces_of(
    draw: st.DrawFn,
    messages: list[Any],
    *,
    strategies: tuple[Strategy, ...] = STRATEGIES,
    pinned: bool = True,
) -> list[Piece]:
    """Cut a conversation into one to four blocks, which may be added in any order."""
    borders = draw(st.lists(st.integers(1, max(1, len(messages) - 1)), max_size=3, unique=True))
    edges = [0, *sorted(b for b in borders if b < len(messages)), len(messages)]
    ranked = draw(st.sampled_from(("none", "priority", "tier")))
    placed = draw(st.booleans())
    pieces = []
    for place, (start, stop) in enumerate(pairwise(edges)):
        options = {**draw(st.one_of(NOTHING, CAPS)), **draw(st.one_of(NOTHING, FLOORS))}
        if ranked == "tier":
            options["tier"] = place
        elif ranked == "priority":
            options["priority"] = draw(st.integers(0, 3))
        if placed and ranked != "tier":
            options["position"] = place
        if pinned and draw(st.integers(0, 7)) == 0:
            options["pinned"] = True
        strategy = Asked(draw(st.one_of(st.just(SlidingWindow()), st.sampled_from(strategies))))
        pieces.append(
            Piece(place=place, start=start, messages=messages[start:stop], options=options, strategy=strategy)
        )
    return draw(st.permutations(pieces)) if placed or ranked == "tier" else pieces


@st.composite
def context_cases(
    draw: st.DrawFn,
    *,
    counters: tuple[Any, ...],
    strategies: tuple[Strategy, ...] = STRATEGIES,
    pinned: bool = True,
    percents: tuple[int, int] = (5, 115),
) -> Case:
    """Fit random blocks, mostly into less than they have."""
    messages, counter = draw(TALKS), draw(st.sampled_from(counters))
    pieces = draw(pieces_of(messages, strategies=strategies, pinned=pinned))
    policy: dict[str, Any] = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "ties": st.sampled_from(("first", "newest")),
                "system": st.just("be kind"),
                "pending_calls": st.sets(st.sampled_from("ABCD"), min_size=1, max_size=2),
            },
        )
    )
    whole = total([{"role": "system", "content": policy.get("system", "")}, *messages], counter)
    budget = max(1, -(-whole * draw(st.integers(*percents)) // 100))
    if misplaced(messages, pieces):
        with pytest.raises(ConfigurationError, match="holds the result of call"):
            Case(pieces, budget, counter, **policy)
        assume(False)
    return Case(pieces, budget, counter, **policy)


def misplaced(messages: list[Any], pieces: list[Piece]) -> bool:
    """D4: an orphan stands in a block before that of a call with its id, which nothing answers."""
    block = {at: p.place for p in pieces for at in range(p.start, p.start + len(p.messages))}
    orphans = [
        (at, oracle.answered_id(messages[at])) for at, c in oracle.owners(messages).items() if c is None
    ]
    waiting = oracle.unanswered(messages)
    return any(block[call] > block[at] for at, i in orphans for call, call_id in waiting if call_id == i)
