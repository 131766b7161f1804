"""`strategy`, the crate llm_context_core (SEMANTICS R).

`apply` keeps a leading system message and speaks of a whole request, so it is `fit`. Its budget
reserves system text and tools apart from the messages: that is overhead here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from tests.conformance.adapters._composed import in_block
from tests.conformance.adapters._measure import ROOMY, counted, places
from tests.conformance.counters import R1_REQUEST_TOKENS, R1Counter, r1_size, r1_system, r1_tools
from tests.conformance.judging import Answer, Trial, attempt
from tests.conformance.predicates import (
    Kind,
    Selection,
    budget_rules,
    default_rule,
    read_rule,
    score_rules,
    selection_guards,
    selection_rules,
    summarizer_rule,
)
from tests.conformance.scripted import number
from tests.conformance.vectors import Case
from tests.properties.cases import DEFAULT
from trimtab import Budget, create_strategy, fit
from trimtab.strategies import Place, PriorityBased, default_score


def _tools_tokens(tools: Any) -> int:
    if not tools:
        return 0
    with_tools = fit([], ROOMY, counter=R1Counter(), tools=tools).report.fixed_tokens
    return with_tools - fit([], ROOMY, counter=R1Counter()).report.fixed_tokens


def _budget(spec: Mapping[str, Any]) -> Budget:
    overhead = r1_system(spec.get("system_message")) + _tools_tokens(spec.get("tools"))
    window, reserve = number(spec.get("context_window")), number(spec.get("max_output_tokens") or 0)
    return Budget(window, output_reserve=reserve, overhead_tokens=overhead)


def _reserved(spec: Mapping[str, Any]) -> tuple[int, int]:
    return spec.get("max_output_tokens") or 0, r1_system(spec.get("system_message")) + r1_tools(
        spec.get("tools")
    )


def _apply(case: Case) -> Trial:
    kind: Kind = case.input["strategy"]
    messages, spec = case.input["messages"], case.input["budget"]

    def ours() -> Answer:
        fitted = fit(
            messages,
            _budget(spec),
            counter=R1Counter(),
            format="openai_chat",
            strategy=create_strategy(case.input["strategy"]),
            cut_newest=False,  # the reference cuts no text
        )
        return {
            "kept": places(fitted.messages, messages),
            "tokens": fitted.report.tokens_after,
            "available_for_history": fitted.report.input_tokens,
        }

    expected = {
        "kept": case.expected["kept"],
        "tokens": case.expected["tokens_with_framing"],
        "available_for_history": case.expected["available_for_history"],
    }
    rules = budget_rules(*_reserved(spec), window=spec.get("context_window"))
    if kind == "sliding_window_with_summary":
        return Trial(expected=expected, ours=attempt(ours), rules=summarizer_rule())
    if kind not in get_args(Kind) or not rules["D1"]({}):  # no answer but an error
        return Trial(expected=expected, ours=attempt(ours), rules=rules)
    chosen = Selection(messages=messages, limit=expected["available_for_history"], size=r1_size, kind=kind)
    rules |= selection_rules(chosen)
    return Trial(
        expected=expected,
        ours=attempt(ours),
        rules=rules,
        guards=selection_guards(chosen),
        items=range(len(messages)),
    )


def _budget_op(case: Case) -> Trial:
    spec, messages = case.input["budget"], case.input["messages"]
    expected = case.expected
    used = counted(messages, R1Counter())

    def ours() -> Answer:
        budget = _budget(spec)
        taken = budget.output_reserve + budget.overhead_tokens + used
        return {
            "total": budget.window,
            "reserved_output": budget.output_reserve,
            "reserved_system": r1_system(spec.get("system_message")),
            "reserved_tools": _tools_tokens(spec.get("tools")),
            "available_for_history": budget.input_tokens,
            "history_usage": used,
            "remaining": budget.available(used),
            "utilization": round(Budget(budget.window).utilization(taken), 6),
            "would_exceed": budget.would_exceed(used),
        }

    rules = budget_rules(*_reserved(spec), window=spec.get("context_window"))
    return Trial(expected=expected, ours=attempt(ours), rules=rules)


def _score(case: Case) -> Trial:
    """Let the default score be asked about every message: in a block none is pinned or held."""
    messages = case.input["messages"]
    scores: dict[int, float] = {}

    def score(message: Mapping[str, Any], place: Place) -> float:
        scores[place.index] = default_score(message, place)
        return scores[place.index]

    in_block(messages, PriorityBased(score=score), limit=r1_size(messages) - 1, counter=R1Counter())
    ours = {
        "scores": [scores[index] for index in range(len(messages))],
        "tokens": [counted([message], R1Counter()) - R1_REQUEST_TOKENS for message in messages],
    }
    infinite = [float("inf") if score == "max" else score for score in case.expected["scores"]]
    rules = score_rules(messages)
    return Trial(expected={**case.expected, "scores": infinite}, ours=ours, rules=rules)


def _estimate_text(case: Case) -> Trial:
    return _sized(R1Counter().count_text(case.input["text"]), case)


def _estimate_message(case: Case) -> Trial:
    messages = [case.input["message"]]

    def ours() -> Answer:
        row = fit(messages, ROOMY, counter=R1Counter(), format="openai_chat").count_all().messages[0]
        return {"tokens": row.tokens_after}

    return Trial(expected=case.expected, ours=attempt(ours), rules=read_rule(messages))


def _estimate_messages(case: Case) -> Trial:
    return _sized(counted(case.input["messages"], R1Counter()), case)


def _estimate_tools(case: Case) -> Trial:
    return _sized(_tools_tokens(case.input["tools"]), case)


def _sized(tokens: int | None, case: Case) -> Trial:
    return Trial(expected=case.expected, ours={"tokens": tokens})


def _config(case: Case) -> Trial:
    """Of a configuration the name of the strategy only (SPEC F)."""
    named = case.input["config"].get("strategy")
    if named is None:
        ours: Answer = {"strategy": [step.name for step in DEFAULT.steps]}
        return Trial(expected={"strategy": [case.expected["strategy"]]}, ours=ours, rules=default_rule())
    errors = (
        {"error": "UnknownNameError"} if "error" in case.expected else {"strategy": case.expected["strategy"]}
    )
    return Trial(expected=errors, ours=attempt(lambda: {"strategy": create_strategy(named).name}))


OPS = {
    "apply": _apply,
    "score": _score,
    "budget": _budget_op,
    "config": _config,
    "estimate_tokens": _estimate_text,
    "estimate_message": _estimate_message,
    "estimate_messages": _estimate_messages,
    "estimate_tools": _estimate_tools,
}
