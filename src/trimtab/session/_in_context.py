"""A session's history as one block among those of a `Context` (SPEC D5 says what room that leaves)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from trimtab._asking import budget_of
from trimtab._composing import ties_of
from trimtab._fitted import Fitted
from trimtab.allocation import Claim, allocate
from trimtab.blocks import Block
from trimtab.context import Context
from trimtab.errors import ConfigurationError
from trimtab.strategies import Strict

__all__ = ["HISTORY", "fit_among", "require_context", "room_for_history"]

HISTORY = "history"
"""Name of the block a session fills."""

_ENOUGH = 1 << 53
"""A budget nothing is evicted from."""


def require_context(context: Any, /, *, has_system: bool) -> Context:
    """Return a context a session can be part of; a copy, so that later changes are the session's.

    Raises:
        ConfigurationError: It is none, its history block is filled, or system text is given twice.
    """
    if not isinstance(context, Context):
        raise ConfigurationError(f"context is a Context, not {context!r:.80}")
    for block in context.blocks:
        if block.name == HISTORY and not block.is_empty:
            raise ConfigurationError(
                "the block 'history' has content: a session fills it. Declare it with None, for its place and"
                " limits"
            )
        if has_system and not block.is_empty and "system" in (block.name, block.role):
            raise _two_systems(f"block {block.name!r}")
    if has_system and context._policy.system is not None:
        raise _two_systems("its system=")
    return context.clone()


def _two_systems(where: str) -> ConfigurationError:
    return ConfigurationError(
        f"system text is given twice: by system= and by the Context ({where}). Keep one of them: a request"
        " has one system block"
    )


def history_block(context: Context) -> Block:
    """Return the block of the history, with its limits and no content."""
    return next((block for block in context.blocks if block.name == HISTORY), Block(name=HISTORY))


def room_for_history(context: Context) -> int:
    """Return the tokens the history may have: what the fold of SPEC D5 would offer it if it asked for all."""
    policy = context._policy
    whole = budget_of(policy.budget, policy.model).input_tokens
    others = [block for block in context.blocks if block.name != HISTORY and not block.is_empty]
    alone = _context_of(context, [replace(block, max_tokens=None, max_ratio=1.0) for block in others])
    report = alone.fit(_ENOUGH).report
    needs = {row.name: row.tokens_after for row in report.blocks}
    room = max(0, whole - (report.tokens_after - sum(needs.values())))
    claims = [_claim(block, needs.get(block.name, 0), whole) for block in others]
    claims.append(_claim(history_block(context), room, whole))
    return allocate(claims, room, ties=ties_of(replace(policy, blocks=context.blocks))).limits[HISTORY]


def _claim(block: Block, need_tokens: int, room_tokens: int) -> Claim:
    stays = block.name != HISTORY and (block.pinned or isinstance(block.gives_way_by, Strict))
    return Claim(
        name=block.name,
        need_tokens=need_tokens,
        rank=block.rank,
        must_tokens=need_tokens if stays else 0,
        floor_tokens=min(need_tokens, block.floor_tokens(room_tokens)),
        cap_tokens=None if block.pinned else block.cap_tokens(room_tokens),
        share=block.share,
    )


def _context_of(context: Context, blocks: Sequence[Block]) -> Context:
    made = context.clone()
    for block in context.blocks:
        made.remove(block.name)
    for block in blocks:
        made.add_block(replace(block, on_trim=None))
    made._policy = replace(made._policy, on_trim=None)
    return made


def fit_among(context: Context, messages: Sequence[Any], notes: tuple[str, ...]) -> Fitted[Any]:
    """Fit the whole request: the other blocks, and the history as the session shows it."""
    made = context.clone()
    made.add_block(replace(history_block(context), content=list(messages)), replace=True)
    made._policy = replace(made._policy, notes=notes)
    return made.fit()
