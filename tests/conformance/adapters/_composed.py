"""What came out of a `Context`, in the shape the predicates read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.conformance.blocks import SUMMARY
from trimtab import Budget, Context, Fitted
from trimtab.strategies import Strategy


def room_of(tokens: int) -> Budget:
    """Make a budget of what is left for the input, which may be nothing: a margin may take a window of 1."""
    return Budget(max(1, tokens), margin=max(0, 1 - tokens))


def in_block(messages: Sequence[Any], strategy: Strategy | None, *, limit: int, counter: Any) -> Fitted[Any]:
    """Run a strategy over a block that is all there is; in it nothing but open calls must stay."""
    context = Context(room_of(limit), counter=counter, format="openai_chat")
    return context.add("block", list(messages), strategy=strategy).fit()


def composed(fitted: Fitted[Any], names: Sequence[str]) -> dict[str, Any]:
    """Write an output as items: which message of which block, what changed, what was summarized.

    Args:
        fitted: What came out.
        names: Names of the blocks, in the order they were added.
    """
    report, output = fitted.report, fitted.messages
    block_of = {name: at for at, name in enumerate(names)}
    inserted = {row.position for row in report.inserted if row.why.startswith("summary of")}
    lead = len(report.inserted) - len(inserted)
    seen: dict[int, int] = {}
    rows = []
    for row in report.messages:
        at = block_of[row.block]
        rows.append(((at, seen.get(at, 0)), row))
        seen[at] = seen.get(at, 0) + 1
    left = iter([(item, row.fate) for item, row in rows if row.fate != "evicted"])
    summaries_of = iter([block_of[block.name] for block in report.blocks if "summarized" in block.actions])
    kept, changed, summaries = [], {}, {}
    for position, message in enumerate(output[lead:], lead):
        if position in inserted:
            at = next(summaries_of)
            kept.append((at, SUMMARY))
            summaries[at] = message["content"]
            continue
        item, fate = next(left)
        kept.append(item)
        if fate == "changed":
            changed[item] = message
    return {"kept": kept, "changed": changed, "summaries": summaries, "tokens": report.tokens_after}
