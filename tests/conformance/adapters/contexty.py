"""contexty 0.2 (SEMANTICS X).

`compile` is a `Context` of tiers. `apply_strategy` runs a strategy over one memory block with a limit,
which may be 0: that is a context of one block, where nothing is pinned or held.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from tests.conformance.adapters._composed import composed, in_block
from tests.conformance.adapters._measure import counted
from tests.conformance.blocks import SUMMARY, Composition, Slot
from tests.conformance.compositions import composition_guards, composition_rules
from tests.conformance.counters import (
    CountedBefore,
    Pausing,
    contexty_counter,
    contexty_list_counter,
    contexty_size,
    fails,
    fixed_size,
)
from tests.conformance.judging import Answer, Injected, Op, OutOfScope, Rule, Trial, attempt, kind_of
from tests.conformance.predicates import (
    Kind,
    Selection,
    default_counter_rule,
    is_number,
    selection_guards,
    selection_rules,
)
from tests.conformance.scripted import number
from tests.conformance.vectors import Case
from trimtab import Context, Drop, DropNewest, Fitted, SlidingWindow, Strict, Summarize, Tier
from trimtab.history import inject_into_system
from trimtab.strategies import EvictionRequest, EvictionResult, Strategy

ERRORS = {
    "budget_exceeded": "BudgetExceededError",
    "canceled": "CancelledError",
    "deadline_exceeded": "TimeoutError",
    "invalid_chars_per_token": "ConfigurationError",
    "invalid_config": "ConfigurationError",
    "nil_strategy": "ConfigurationError",
    "panic": "ConfigurationError",
    "strategy_exceeded_budget": "BudgetExceededError",
    "token_count_failed": "CountingError",
}
"""Our error for each of contexty's."""

KINDS: Mapping[str, Kind] = {
    "strict": "strict",
    "drop": "drop",
    "truncate_oldest": "sliding_window",
    "drop_head": "sliding_window",
    "drop_tail": "drop_newest",
    "summarize": "summarize",
    "custom_drop_all": "custom",
    "custom_error": "custom",
    "custom_keep_last": "custom",
    "custom_return_all": "custom",
}

LABELS = {"evicted": "truncated", "dropped": "dropped", "summarized": "summarized"}
"""contexty's label for what was done to a block; whatever a custom strategy does is "evicted"."""


class Fails:
    """A strategy of a user's that fails: what it raises comes through."""

    name = "custom_error"

    def evict(self, request: EvictionRequest, /) -> EvictionResult:
        """Fail."""
        raise Injected("strategy failed")


class Custom:
    """A strategy of a user's, which keeps so many of the newest units."""

    def __init__(self, name: str, count: int | None) -> None:
        self.name = name
        self._count = count

    def evict(self, request: EvictionRequest, /) -> EvictionResult:
        """Keep the newest units, or all."""
        units = list(request.units)
        return EvictionResult(kept=units if self._count is None else units[len(units) - self._count :])


CUSTOM = {"custom_drop_all": 0, "custom_keep_last": 1, "custom_return_all": None}


def strategy_of(spec: Mapping[str, Any] | None, *, limit: int) -> Strategy | None:
    """Make the strategy a vector names; None if it names none.

    Args:
        spec: The strategy.
        limit: What the block may have; a summary may take it all, as contexty's.
    """
    if spec is None:
        return None
    kind = _kind(spec)
    match KINDS[kind]:
        case "strict":
            return Strict()
        case "drop":
            return Drop()
        case "drop_newest":
            return DropNewest()
        case "summarize":
            return _summarize(spec.get("summarizer"), limit)
        case "custom":
            return Fails() if kind == "custom_error" else Custom(kind, CUSTOM[kind])
        case _:
            return SlidingWindow(
                keep_turns=spec.get("keep_user_assistant_pairs", False),
                min_messages=spec.get("min_messages", 0),
                protect_roles=[role for role in spec.get("protect_roles", ()) if role],
            )


def _kind(spec: Mapping[str, Any]) -> str:
    """Return the kind of a strategy a vector names.

    Raises:
        OutOfScope: Nobody here knows it.
    """
    kind = kind_of(spec, "strategy")
    if kind not in KINDS:
        raise OutOfScope(f"strategy {kind}")
    return kind


def _summarize(spec: Mapping[str, Any] | None, limit: int) -> Strategy:
    if spec is None:
        return Summarize(cast("Any", None))

    def summarizer(messages: Sequence[Any]) -> str:
        if kind_of(spec, "summarizer") != "const":
            raise OSError("summarizer failed")
        return str(spec["message"]["content"])

    role = spec.get("message", {}).get("role", "user")
    return Summarize(summarizer, max_summary_tokens=max(1, limit), role=role, fallback=Drop())


def apply_strategy(case: Case) -> Trial:
    """Run a strategy over a block."""
    data, spec = case.input, case.input["strategy"]
    counter = contexty_counter(data["counter"])
    if "original_tokens" in data:
        counter = CountedBefore(counter, data["messages"], data["original_tokens"])

    def ours() -> Answer:
        strategy = strategy_of(spec, limit=data["limit"])
        fitted = in_block(data["messages"], strategy, limit=data["limit"], counter=counter)
        return _items(fitted) if spec["kind"] == "summarize" else {"kept": _indices(fitted)}

    if spec is None:
        raise OutOfScope("without a strategy")
    expected, answer = _expected(case, spec), attempt(ours)
    if data["counter"]["kind"] != "fixed" or spec["kind"] == "custom_error":
        return Trial(expected=expected, ours=answer)  # counter or strategy fails: what matters is the error
    chosen = _selection(data, spec, data["limit"])
    if spec["kind"] == "summarize":
        slots = [Slot(chosen=chosen, summary=_summary_of(spec))]
        whole = Composition(
            slots=slots, room=data["limit"], size=chosen.size, faults=spec["summarizer"] is None
        )
        return _trial(expected, answer, whole, composition_rules(whole))
    return Trial(
        expected=expected,
        ours=answer,
        rules=selection_rules(chosen),
        guards=selection_guards(chosen),
        items=range(len(data["messages"])),
    )


def _indices(fitted: Fitted[Any]) -> list[int]:
    return [index for _, index in composed(fitted, ["block"])["kept"]]


def _items(fitted: Fitted[Any]) -> Answer:
    answer = composed(fitted, ["block"])
    return {"kept": answer["kept"], "summaries": answer["summaries"]}


def _expected(case: Case, spec: Mapping[str, Any]) -> Answer:
    if error := case.expected.get("error"):
        return {"error": _error(error, case.input["counter"])}
    if spec["kind"] != "summarize":
        return {"kept": case.expected["kept"]}
    kept = [(0, SUMMARY if index == "summary" else index) for index in case.expected["kept"]]
    return {"kept": kept, "summaries": _summaries(kept, case.expected["messages"])}


def _error(error: Mapping[str, Any], counter: Mapping[str, Any] | None) -> str:
    """Say which error of ours is meant.

    X5: what a user's function raised has no name in contexty; of a counter it is a CountingError here,
    of a strategy it comes through.
    """
    kind = (error["kinds"] or ["other"])[-1]  # the last is the most special of those that match
    if kind == "other":
        return "CountingError" if counter and fails(counter) else "Injected"
    if kind not in ERRORS:
        raise OutOfScope(f"error {kind}")
    return ERRORS[kind]


def _summaries(kept: Sequence[tuple[int, int]], messages: Sequence[Mapping[str, Any]]) -> dict[int, str]:
    return {at: message["content"] for (at, i), message in zip(kept, messages, strict=True) if i == SUMMARY}


def _summary_of(spec: Mapping[str, Any] | None) -> str:
    summarizer = (spec or {}).get("summarizer") or {}
    return str(summarizer.get("message", {}).get("content", ""))


def _selection(data: Mapping[str, Any], spec: Mapping[str, Any], limit: int) -> Selection:
    return Selection(
        messages=data["messages"],
        limit=limit,
        size=lambda messages: fixed_size(data["counter"], messages),
        kind=KINDS[_kind(spec)],
        in_block=True,
        protect_roles=frozenset(spec.get("protect_roles", ())),
        keep_turns=spec.get("keep_user_assistant_pairs", False),
        min_messages=spec.get("min_messages", 0),
    )


def _trial(expected: Answer, ours: Answer, whole: Composition, rules: Mapping[str, Rule]) -> Trial:
    return Trial(
        expected=expected, ours=ours, rules=rules, guards=composition_guards(whole), items=whole.items
    )


def _compile(case: Case) -> Trial:
    """Compile once."""
    data, blocks = case.input, case.input["blocks"]
    if data["counter"] is None:
        answer = attempt(lambda: _told(_context(data, blocks).fit(), blocks))
        expected = _compiled(case.expected, blocks, counter=None)
        return Trial(expected=expected, ours=answer, rules=default_counter_rule())
    fit = {"deadline": _late, "canceled": _canceled}.get(str(data.get("context")), _fit)
    whole = _composition(data, blocks)
    answer = attempt(lambda: fit(data, blocks))
    expected = _compiled(case.expected, blocks, counter=data["counter"])
    if _breaks(data, blocks):
        return Trial(expected=expected, ours=answer)  # what matters is the error
    return _trial(expected, answer, whole, _compile_rules(whole))


def _breaks(data: Mapping[str, Any], blocks: Sequence[Mapping[str, Any]]) -> bool:
    """Tell whether the counter or a strategy is made to fail, or the caller takes the call back."""
    kinds = [block["strategy"]["kind"] for block in blocks if block["strategy"]]
    return fails(data["counter"]) or data.get("context") == "canceled" or "custom_error" in kinds


def _compile_sequence(case: Case) -> Trial:
    """Add blocks to one context and compile it between."""
    data, blocks = case.input, []
    context = _context(data, [])
    answers = []
    for step in data["steps"]:
        if step["do"] == "add_block":
            blocks.append(step["block"])
            _add(context, step["block"], _room(data))
        else:
            answers.append(attempt(lambda: _told(context.fit(), blocks)))
    expected = [_compiled(one, blocks, counter=data["counter"]) for one in case.expected["compiles"]]
    return Trial(expected={"compiles": expected}, ours={"compiles": answers})


def _compile_rules(whole: Composition) -> dict[str, Rule]:
    return {**composition_rules(whole), "A8": composition_guards(whole)["A8"]}


def _context(data: Mapping[str, Any], blocks: Sequence[Mapping[str, Any]]) -> Context:
    counter = data["counter"] and contexty_list_counter(data["counter"])
    context = Context(number(data.get("max_tokens")), counter=counter, format="openai_chat")
    for block in blocks:
        _add(context, block, _room(data))
    return context


def _room(data: Mapping[str, Any]) -> int:
    """Return the budget of a case; 0 if it is no number of tokens, which is an error (D1)."""
    tokens = data.get("max_tokens")
    return int(tokens) if is_number(tokens, least=1) else 0


def _add(context: Context, block: Mapping[str, Any], room: int) -> None:
    cap = block.get("max_tokens") or None
    context.add(
        block["id"],
        block["messages"],
        tier=block["tier"],
        max_tokens=cap,
        strategy=strategy_of(block["strategy"], limit=cap or room),
    )


def _fit(data: Mapping[str, Any], blocks: Sequence[Mapping[str, Any]]) -> Answer:
    return _told(_context(data, blocks).fit(), blocks)


def _late(data: Mapping[str, Any], blocks: Sequence[Mapping[str, Any]]) -> Answer:
    """Fit after the deadline. Only what awaits can be stopped, so the counter is awaited."""

    async def late() -> Answer:
        async with asyncio.timeout(0):
            context = Context(data["max_tokens"], counter=Pausing(contexty_counter(data["counter"])))
            for block in blocks:
                _add(context, block, data["max_tokens"])
            return _told(await context.afit(), blocks)

    try:
        return asyncio.run(late())
    except TimeoutError:
        return {"error": "TimeoutError"}


def _canceled(data: Mapping[str, Any], blocks: Sequence[Mapping[str, Any]]) -> Answer:
    """Fit in a task that is cancelled before it began; again only what awaits can be stopped."""

    async def canceled() -> Answer:
        context = Context(data["max_tokens"], counter=Pausing(contexty_counter(data["counter"])))
        for block in blocks:
            _add(context, block, data["max_tokens"])
        task = asyncio.ensure_future(context.afit())
        task.cancel()
        return _told(await task, blocks)

    return asyncio.run(canceled())


def _told(fitted: Fitted[Any], blocks: Sequence[Mapping[str, Any]]) -> Answer:
    """Write the outcome and its report; blocks of a black box have shares only, so they are left out."""
    report = fitted.count_all()
    places = {block["id"]: at for at, block in enumerate(blocks)}
    told = {
        **composed(fitted, list(places)),
        "tokens_before": report.tokens_before,
        "remaining_tokens": report.remaining_tokens,
        "labels": {
            places[block.name]: LABELS.get(block.actions[0], "evicted")
            for block in report.blocks
            if block.actions != ("kept",)
        },
        "dropped": [places[name] for name in report.blocks_dropped],
    }
    if not report.shares:
        told["blocks_before"] = {places[block.name]: block.tokens_before for block in report.blocks}
        told["blocks"] = {places[b.name]: b.tokens_after for b in report.blocks if b.tokens_after}
    return told


def _compiled(
    expected: Mapping[str, Any], blocks: Sequence[Mapping[str, Any]], *, counter: Mapping[str, Any] | None
) -> Answer:
    """Write what is expected in the same shape."""
    if error := expected.get("error"):
        custom = any(str((block["strategy"] or {}).get("kind")).startswith("custom") for block in blocks)
        over = error["kinds"] == ["strategy_exceeded_budget"]
        return {"error": "StrategyContractError" if over and custom else _error(error, counter)}
    report = expected["report"]
    places = {block["id"]: at for at, block in enumerate(blocks)}
    labels = {places[name]: label for name, label in report["evictions"].items()}
    dropped = [places[name] for name in report["blocks_dropped"]]
    summarized = [at for at, label in labels.items() if label == "summarized" and at not in dropped]
    kept = [(summarized[0], SUMMARY) if one == "summary" else tuple(one) for one in expected["kept"]]
    told = {
        "kept": kept,
        "changed": {},
        "summaries": _summaries(kept, expected["messages"]),
        "tokens": report["total_tokens_used"],
        "tokens_before": report["original_tokens"],
        "remaining_tokens": report["remaining_tokens"],
        "labels": labels,
        "dropped": dropped,
    }
    if counter is None or counter["kind"] != "chars":
        before, after = report["original_tokens_per_block"], report["tokens_per_block"]
        told["blocks_before"] = {places[name]: tokens for name, tokens in before.items()}
        told["blocks"] = {places[name]: tokens for name, tokens in after.items()}
    return told


def _composition(data: Mapping[str, Any], blocks: Sequence[Mapping[str, Any]]) -> Composition:
    counter = data["counter"]

    def size(messages: Sequence[Mapping[str, Any]]) -> int:
        return contexty_size(counter, messages)

    slots = []
    for block in blocks:
        spec = block["strategy"] or {"kind": "strict" if block["tier"] == 0 else "truncate_oldest"}
        slots.append(
            Slot(
                chosen=replace(_selection(block, spec, 0), size=size),
                rank=-block["tier"],
                place=block["tier"],
                cap_tokens=block.get("max_tokens") or None,
                summary=_summary_of(spec),
            )
        )
    faults = not _room(data) or counter.get("chars_per_token", 1) <= 0
    faults = faults or not all(block["id"] for block in blocks)
    return Composition(slots=slots, room=_room(data), size=size, ties="first", faults=faults)


def _inject(case: Case) -> Trial:
    data = case.input
    message = inject_into_system(data["system_message"], *data["facts"])
    return Trial(expected=case.expected, ours={"message": message})


def _tier_name(case: Case) -> Trial:
    return Trial(expected=case.expected, ours={"name": Tier.label(case.input["tier"])})


def counting(call_tokens: int) -> Op:
    """Make the `count` op, a call costing so much beside its estimate."""

    def count(case: Case) -> Trial:
        error = case.expected.get("error")
        expected = {"error": _error(error, case.input["counter"])} if error else case.expected

        def ours() -> Answer:
            counter = contexty_counter(case.input["counter"], call_tokens=call_tokens)
            return {"tokens": counted(case.input["messages"], counter)}

        return Trial(expected=expected, ours=attempt(ours))

    return count


OPS = {
    "apply_strategy": apply_strategy,
    "compile": _compile,
    "compile_sequence": _compile_sequence,
    "count": counting(0),
    "inject_into_system": _inject,
    "tier_name": _tier_name,
}
