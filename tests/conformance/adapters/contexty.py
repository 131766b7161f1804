"""contexty 0.2 (SEMANTICS X).

`apply_strategy` runs a strategy over one memory block with a limit, which may be 0. That is a
block of a Context, where nothing is pinned or held; through `fit`, which keeps the latest user
message and the newest unit, ten cases more would differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.conformance.adapters._measure import counted, in_block
from tests.conformance.counters import contexty_counter, fixed_size
from tests.conformance.judging import Answer, Op, OutOfScope, Trial, attempt
from tests.conformance.predicates import Kind, Selection, selection_guards, selection_rules
from tests.conformance.vectors import Case
from trimtab import Drop, DropNewest, SlidingWindow, Strict
from trimtab.strategies import EvictionRequest, EvictionResult, Strategy

ERRORS = {
    "budget_exceeded": "BudgetExceededError",
    "token_count_failed": "CountingError",
    "invalid_chars_per_token": "ConfigurationError",
}
"""Our error for each of contexty's."""

KINDS: Mapping[str, Kind] = {
    "strict": "strict",
    "drop": "drop",
    "truncate_oldest": "sliding_window",
    "drop_head": "sliding_window",
    "drop_tail": "drop_newest",
    "custom_keep_last": "custom",
}


class KeepLast:
    """A strategy of a user's: the newest unit stays."""

    name = "keep_last"

    def evict(self, request: EvictionRequest, /) -> EvictionResult:
        """Keep the newest unit."""
        return EvictionResult(kept=[next(request.newest_first())])


def strategy_of(spec: Mapping[str, Any]) -> Strategy:
    """Make the strategy a vector names."""
    match KINDS[spec["kind"]]:
        case "strict":
            return Strict()
        case "drop":
            return Drop()
        case "drop_newest":
            return DropNewest()
        case "custom":
            return KeepLast()
        case _:
            return SlidingWindow(
                keep_turns=spec.get("keep_user_assistant_pairs", False),
                min_messages=spec.get("min_messages", 0),
                protect_roles=[role for role in spec.get("protect_roles", ()) if role],
            )


def apply_strategy(case: Case) -> Trial:
    """Run a strategy over a block."""
    data, spec = case.input, case.input["strategy"]
    if spec["kind"] == "summarize":
        raise OutOfScope("summarize")

    def ours() -> Answer:
        kept = in_block(
            data["messages"],
            strategy_of(spec),
            limit=data["limit"],
            counter=contexty_counter(data["counter"]),
            total=data.get("original_tokens"),
        )
        return {"kept": kept}

    expected, answer = _expected(case), attempt(ours)
    if data["counter"]["kind"] != "fixed":
        return Trial(expected=expected, ours=answer)  # its counter fails: what matters is the error
    chosen = _selection(data, spec)
    return Trial(
        expected=expected, ours=answer, rules=selection_rules(chosen), guards=selection_guards(chosen)
    )


def _expected(case: Case) -> Answer:
    if error := case.expected.get("error"):
        return {"error": ERRORS[error["kinds"][0]]}
    return {"kept": case.expected["kept"]}


def _selection(data: Mapping[str, Any], spec: Mapping[str, Any]) -> Selection:
    return Selection(
        messages=data["messages"],
        limit=data["limit"],
        size=lambda messages: fixed_size(data["counter"], messages),
        kind=KINDS[spec["kind"]],
        in_block=True,
        protect_roles=frozenset(spec.get("protect_roles", ())),
        keep_turns=spec.get("keep_user_assistant_pairs", False),
        min_messages=spec.get("min_messages", 0),
    )


def counting(call_tokens: int) -> Op:
    """Make the `count` op, a call costing so much beside its estimate."""

    def count(case: Case) -> Trial:
        expected = case.expected if "error" not in case.expected else _expected(case)

        def ours() -> Answer:
            counter = contexty_counter(case.input["counter"], call_tokens=call_tokens)
            return {"tokens": counted(case.input["messages"], counter)}

        return Trial(expected=expected, ours=attempt(ours))

    return count


OPS = {"apply_strategy": apply_strategy, "count": counting(0)}
