"""phronomy (SEMANTICS P): estimate, budget, the on_trim callback, and the budget pass.

`prepare`, `assemble` and `build` are a context of system text and one block, in which nothing is pinned or
held. How phronomy writes instruction and knowledge into its system text is not compared: the text is taken
as it came out.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from typing import Any

from tests.conformance.adapters._composed import composed
from tests.conformance.adapters._measure import ROOMY, counted, places
from tests.conformance.counters import text_function
from tests.conformance.judging import Answer, OutOfScope, Rule, Trial, attempt
from tests.conformance.predicates import Selection, budget_rules, selection_guards, selection_rules
from tests.conformance.scripted import number
from tests.conformance.vectors import Case
from trimtab import Budget, CharCounter, Context, TrimContext, counter_from_text, fit
from trimtab.models import ModelFacts, facts_for

REGISTRY = {
    "claude-3-5-sonnet": ModelFacts(name="claude-3-5-sonnet", window_tokens=128_000, output_tokens=16_000)
}
"""What the reference's driver put in the place of its registry; the model itself has other limits."""


def _estimate(case: Case) -> Trial:
    given = case.input["input"]
    tokenizer = case.input.get("tokenizer")
    counter: Any = (
        CharCounter(4)
        if tokenizer is None
        else counter_from_text(text_function(tokenizer), message_overhead=0)
    )
    messages = [{"role": "user", "content": given}] if isinstance(given, str) else given
    messages = [messages] if isinstance(messages, Mapping) else messages
    return Trial(expected=case.expected, ours={"tokens": counted(messages, counter)})


def _budget(spec: Mapping[str, Any] | None) -> Budget | None:
    """Make the budget a vector names; None if it names none."""
    return None if spec is None else _some_budget(spec)


def _some_budget(spec: Mapping[str, Any]) -> Budget:
    window, output = spec.get("context_window"), spec.get("max_output_tokens")
    window, output = number(window), number(output)
    if window is None and "model" not in spec:
        raise OutOfScope("budget without a window or a model")
    if window is None:
        facts = REGISTRY.get(spec["model"]) or facts_for(spec["model"])
        output = facts.output_tokens if output is None else output
        window = facts.window_tokens or 0
    return Budget(window, output_reserve=output or 0, overhead_tokens=number(spec.get("overhead") or 0))


def _token_budget(case: Case) -> Trial:
    spec = case.input["budget"]

    def ours() -> Answer:
        budget = _some_budget(spec)
        return {
            "context_window": budget.window,
            "max_output_tokens": budget.output_reserve,
            "overhead": budget.overhead_tokens,
            "effective_input_limit": budget.input_tokens,
            "available": [budget.available(used) for used in case.input["used"]],
        }

    expected = {"error": "UnknownNameError"} if "error" in case.expected else case.expected
    rules = {}
    if spec.get("context_window") is not None:
        rules = _rules_of(spec)
    return Trial(expected=expected, ours=attempt(ours), rules=rules)


def _rules_of(spec: Mapping[str, Any]) -> dict[str, Rule]:
    """D1 for a budget of which the window is given."""
    numbers = spec.get("max_output_tokens") or 0, spec.get("overhead") or 0
    return budget_rules(*numbers, window=spec["context_window"])


def _refused(case: Case, spec: Mapping[str, Any] | None) -> Trial | None:
    """Give the trial of a budget that trimtab refuses; None if it takes it."""
    refusal = attempt(lambda: {"budget": _budget(spec)})
    if "error" not in refusal:
        return None
    return Trial(expected=case.expected, ours=refusal, rules=_rules_of(spec) if spec else {})


def _trim(case: Case) -> Trial:
    """Remove in a callback. A vector's seqs may have gaps: ours are the places they stand at."""
    messages = case.input["messages"]
    seqs = case.input.get("seqs") or list(range(len(messages)))
    before = copy.deepcopy(messages)
    seen: dict[str, Any] = {"initial_total_tokens": 0, "steps": []}

    def on_trim(context: TrimContext) -> None:
        seen["initial_total_tokens"] = context.total_tokens
        for step in case.input["steps"]:
            assert context.remove(_placed(step["remove"], seqs)) is context
            seen["steps"].append(
                {
                    "seqs": [seqs[element.seq] for element in context.message_elements],
                    "total_tokens": context.total_tokens,
                }
            )
        seen["available"] = context.budget.available() if context.budget else None

    spec = case.input.get("budget")
    if refused := _refused(case, spec):
        return refused

    def ours() -> Answer:
        fitted = fit(messages, _budget(spec), counter=CharCounter(4), format="openai_chat", on_trim=on_trim)
        kept = places(fitted.messages, messages)
        return {
            **seen,
            "messages": [{**messages[index], "src": index} for index in kept],
            "input_unchanged": messages == before,
        }

    return Trial(expected=case.expected, ours=attempt(ours))


def _placed(removed: Any, seqs: list[int]) -> Any:
    if removed is None:
        return None
    if isinstance(removed, int):
        return seqs.index(removed)
    return [seqs.index(seq) if seq in seqs else seq for seq in removed]


def _size(messages: Sequence[Mapping[str, Any]]) -> int:
    """P1: four characters a token, a message at a time."""
    return sum(math.ceil(len(message["content"] or "") / 4) for message in messages)


def _prepare(case: Case) -> Trial:
    """Trim by callback, then fit into the budget; without a budget all stays."""
    data = case.input
    if "on_compaction_trigger" in data:
        raise OutOfScope("compaction")
    messages, system, hook = data.get("messages", []), case.expected["system"], data.get("on_trim")
    if not messages:
        raise OutOfScope("system text")
    if refused := _refused(case, data.get("budget")):
        return refused
    budget = _budget(data.get("budget")) or ROOMY
    gone = _unwanted(hook, _size(messages), budget, range(len(messages)))
    left = [index for index in range(len(messages)) if index not in gone]
    beside = _size([{"content": system}])

    def ours() -> Answer:
        hooks: list[Answer] = []

        def on_trim(context: TrimContext) -> None:
            seqs, total = [element.seq for element in context.message_elements], context.total_tokens
            hooks.append({"hook": "on_trim", "total_tokens": total, "seqs": seqs})
            context.remove(_unwanted(hook, total, context.budget or ROOMY, seqs))

        context = Context(budget, counter=CharCounter(4), format="openai_chat", system=system)
        fitted = context.add("history", messages, on_trim=on_trim if hook else None).fit()
        answer = composed(fitted, ["history"])
        kept = [left.index(index) for _, index in answer["kept"]]
        return {"kept": kept, "tokens": answer["tokens"] - beside, "hooks": hooks}

    chosen = Selection(
        messages=[messages[index] for index in left],
        limit=budget.input_tokens - beside,
        size=_size,
        kind="sliding_window",
        in_block=True,
    )
    kept = [left.index(message["src"]) for message in case.expected["messages"]]
    expected = {"kept": kept, "tokens": chosen.tokens(set(kept)), "hooks": case.expected.get("hooks", [])}
    return Trial(
        expected=expected,
        ours=attempt(ours),
        rules=selection_rules(chosen),
        guards=selection_guards(chosen),
        items=range(len(left)),
    )


def _unwanted(
    hook: Mapping[str, Any] | None, total_tokens: int, budget: Budget, seqs: Sequence[int]
) -> Sequence[int]:
    """List what a callback removes."""
    if hook is None:
        return ()
    if hook["kind"] == "remove":
        return list(hook["seqs"])
    return seqs[: hook["n"]] if total_tokens > hook["ratio"] * budget.available() else ()


OPS = {
    "estimate": _estimate,
    "token_budget": _token_budget,
    "trim": _trim,
    "prepare": _prepare,
    "assemble": _prepare,
    "build": _prepare,
}
