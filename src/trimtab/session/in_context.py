"""A session's history as one block of a `Context` (SPEC D5 defines its room)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from trimtab._fitting.allocation import Claim, allocate
from trimtab._fitting.blocks import Block, Tier
from trimtab._fitting.fold import claims_of
from trimtab._fitting.layout import Policy, compact_for, compose, ties_of
from trimtab.budget import Budget
from trimtab.context import Context
from trimtab.errors import (
    BudgetExceededError,
    ConfigurationError,
    option,
    phrase,
)
from trimtab.strategies.rules_message import check_rules

if TYPE_CHECKING:
    from trimtab._fitting.fitted import Fitted
    from trimtab.compact import Compact
    from trimtab.report import RuleCounts, SummaryCheck, WrittenResults
    from trimtab.session.options import Options

HISTORY = "history"
"""Name of the block that a session fills."""


class Room(NamedTuple):
    """What a context leaves for the history, in tokens."""

    usual: int
    """What the fold offers it if it asks for all there is."""
    most: int
    """What it may take of other blocks for what must stay."""


NO_ROOM = Room(0, 0)


def require_context(context: Any, options: Options, /) -> Context:
    """Return a context a session can be part of."""
    if not isinstance(context, Context):
        raise ConfigurationError(f"context must be a Context, not {context!r:.80}", argument="context")
    policy, has_system = context.policy, options.system is not None
    given = {
        "model": (options.model, policy.model),
        "counter": (options.counter, policy.counter),
        "tools": (options.tools, policy.tools),
    }
    for name, values in given.items():
        if all(value is not None for value in values):
            raise ConfigurationError(
                phrase(f"{name} is given twice: by ", option(name), " and by the Context"), argument=name
            )
    if has_system and policy.system is not None:
        raise _two_systems("its system=")
    for block in context.blocks:
        if block.name == HISTORY and not block.is_empty:
            raise ConfigurationError(
                "the block 'history' has content, but a session fills it. Declare it with the content None,"
                " only for its place and limits"
            )
        if has_system and not block.is_empty and "system" in (block.name, block.role):
            raise _two_systems(f"block {block.name!r}")
    return context


def _two_systems(where: str) -> ConfigurationError:
    return ConfigurationError(
        phrase(
            "system text is given twice: by ",
            option("system"),
            f" and by the Context ({where}). Keep one of them: a request has one system block",
        ),
        argument="system",
    )


def room_for_history(options: Options) -> Room:
    """Return the tokens the history may have; none if the other blocks alone do not fit."""
    context = _whole(options)
    policy = replace(context.policy, blocks=context.blocks).without_callbacks()
    composition = compose(policy)
    claims, room = claims_of(composition)
    place = next(at for at, block in enumerate(policy.blocks) if block.name == HISTORY)
    at = sum(not one.is_empty for one in policy.blocks[:place])
    claims.insert(at, _claim(policy.blocks[place], composition.budget, room))
    try:
        limits = allocate(claims, max(0, room), ties=ties_of(policy)).limits
    except BudgetExceededError:
        return NO_ROOM
    others = sum(claim.must_tokens for claim in claims)
    return Room(limits[HISTORY], max(limits[HISTORY], room - others))


def compact_in(context: Context, /) -> Compact | None:
    """Return how views write tool results, as the context says; None: as they are."""
    block = next((one for one in context.blocks if one.name == HISTORY), Block(name=HISTORY))
    return compact_for(context.policy, block)


def constant_room(options: Options) -> int:
    """Return what the history may have at most, whatever the other blocks hold: its cap, or all there is."""
    context = _whole(options)
    policy = replace(context.policy, blocks=context.blocks).without_callbacks()
    block = next(block for block in policy.blocks if block.name == HISTORY)
    whole = compose(policy).budget.input_tokens
    return min(whole, block.cap_tokens(whole))


def _claim(block: Block, budget: Budget, room_tokens: int) -> Claim:
    """Ask for all there is."""
    whole = budget.input_tokens
    cap = block.cap_tokens(whole)
    return Claim(
        name=HISTORY,
        need_tokens=max(0, room_tokens),
        rank=block.rank,
        floor_tokens=block.floor_tokens(whole),
        cap_tokens=cap if cap < whole else None,
        share=block.share,
    )


def _whole(options: Options) -> Context:
    """Return the context with what the session adds to it, the block of the history among the others."""
    context = options.context
    if context is None:
        raise TypeError("this session has no context")
    made = context.clone(
        model=options.model, counter=options.counter, system=options.system, tools=options.tools
    )
    if HISTORY not in made:
        tiered = any(block.tier is not None for block in made.blocks)
        made.add_block(Block(name=HISTORY, tier=Tier.HISTORY if tiered else None))
    return made


def request_of(
    options: Options,
    messages: Sequence[Any],
    notes: tuple[str, ...],
    checked: tuple[SummaryCheck, ...] = (),
    rule_counts: RuleCounts | None = None,
    rules: Sequence[str] = (),
    written: WrittenResults | None = None,
) -> Policy:
    """Return the whole request: the other blocks, and the history as the session shows it.

    The session chose its view to fit the room, so nothing more of it may be evicted. Its rules stand behind
    those of the context, in one message.
    """
    made = _whole(options)
    block = next(block for block in made.blocks if block.name == HISTORY)
    made.add_block(replace(block, content=list(messages), pinned=bool(messages)), replace=True)
    return replace(
        made.policy,
        blocks=made.blocks,
        notes=notes,
        checked=checked,
        rule_counts=rule_counts,
        results={} if written is None else {HISTORY: written},
        rules=check_rules([*made.policy.rules, *rules]),
    )


def written_in_output(fitted: Fitted[Any], host: int | None, /) -> WrittenResults | None:
    """Return what a fit did to results; indices are of what it gives, without the host's rules."""
    from trimtab.report import ReferenceRow  # not above: sessions without a context need none

    written = fitted.report.written
    if written is None:
        return None
    given = [place for at, place in enumerate(fitted.positions) if at != host]
    at_of = {place: at for at, place in enumerate(given) if place is not None}
    rows = [
        ReferenceRow(index=at_of[one.index], source=at_of[one.source])
        for one in written.references
        if one.index in at_of and one.source in at_of
    ]
    return replace(written, references=tuple(rows))
