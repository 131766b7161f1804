"""The referee of sessions: it holds ours to SPEC E, names what others break, and lets nothing wrong pass."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import pytest

from tests.conformance import run_file
from tests.conformance.adapters._sitting import run_session
from tests.conformance.judging import attempt
from tests.conformance.sessions import UNEXPLAINED, first_breach
from tests.conformance.vectors import vectors_dir

Answer = dict[str, Any]
SIZES = {"counter": {"kind": "utf16_length"}, "message_overhead": 0}


def says(role: str, text: str, **more: Any) -> dict[str, Any]:
    """Make a step that adds a message."""
    return {"do": "add", "message": {"role": role, "content": text, **more}}


def calls(*ids: str) -> dict[str, Any]:
    """Make a step that adds calls."""
    function = {"name": "fn", "arguments": "{}"}
    return says(
        "assistant", "", tool_calls=[{"id": one, "type": "function", "function": function} for one in ids]
    )


def case(*steps: dict[str, Any], budget: Any = 100, **options: Any) -> dict[str, Any]:
    """Make a case whose hooks are told."""
    return {"options": {"token_budget": budget, "hooks": {}, **SIZES, **options}, "steps": list(steps)}


TALK = [says("user" if n % 2 else "assistant", f"{n}" + "m" * 29) for n in range(8)]
NUMBERED = {"summarizer": {"kind": "numbered"}, "summarize_threshold_tokens": 20}
SUMMED = case(*TALK, budget=200, **NUMBERED)
ROLLING = case(*TALK, *TALK, budget=200, strategy="rolling", **NUMBERED)


def _hook(answer: Answer, name: str) -> Answer:
    hooks = (hook for step in answer["steps"] for hook in step.get("hooks", ()))
    found: Answer = next(hook for hook in hooks if hook["hook"] == name)
    return found


def _evicts_too_much(answer: Answer) -> None:
    _hook(answer, "on_evict")["messages"].append("1" + "m" * 29)


def _forgets_the_truncation(answer: Answer) -> None:
    for step in answer["steps"]:
        step["hooks"] = [one for one in step.get("hooks", ()) if one.get("reason") != "truncation"]


def _rolls_without(answer: Answer) -> None:
    call = next(
        c for s in answer["steps"] for c in s.get("summarizer_calls", ()) if "<summary" in c["messages"][0]
    )
    call["messages"], call["roles"], call["existing"] = call["messages"][1:], call["roles"][1:], "S1(3)"


def _takes_an_open_call(answer: Answer) -> None:
    answer["steps"][1]["hooks"] = [
        {"hook": "on_budget_exceeded", "total": 105, "budget": 100},
        {"hook": "on_evict", "messages": ["", "r" * 30], "reason": "budget"},
    ]


def _splits_a_unit(answer: Answer) -> None:
    _hook(answer, "on_evict")["messages"] = ["r"]


BROKEN = [
    pytest.param("A1", case(says("user", "x" * 90)), lambda a: a["final"].update(token_count=101), id="over"),
    pytest.param("E2", case(budget=99), lambda a: a.clear() or a.update(run_session(case())), id="too small"),
    pytest.param("E3", case(*TALK), _evicts_too_much, id="needless"),
    pytest.param("E3", case(*TALK), _forgets_the_truncation, id="not told"),
    pytest.param("E5", ROLLING, _rolls_without, id="rolling"),
    pytest.param("E6", SUMMED, lambda a: _hook(a, "on_summarize").update(summary=" "), id="empty"),
    pytest.param("E6", SUMMED, lambda a: _hook(a, "on_summarize").update(summary="z" * 99), id="too large"),
    pytest.param(
        "E8",
        case(*TALK[:4]),
        lambda a: a["steps"][0].update(hooks=[{"hook": "on_budget_exceeded", "total": 130, "budget": 100}]),
        id="told, not exceeded",
    ),
    pytest.param(
        "A4",
        case(calls("c1"), says("tool", "r" * 30, tool_call_id="c1")),
        _takes_an_open_call,
        id="open call leaves",
    ),
    pytest.param(
        "E4", case(calls("c1"), says("tool", "r", tool_call_id="c1"), *TALK[:2]), _splits_a_unit, id="split"
    ),
]
"""A rule, a case, and how to change our answer so that it breaks the rule."""


@pytest.mark.parametrize(("rule", "data", "change"), BROKEN)
def test_a_breach_is_named_by_its_rule(rule: str, data: dict[str, Any], change: Any) -> None:
    """Our own answer has no breach; with one value changed it breaks that rule."""
    ours = attempt(lambda: run_session(data))
    assert first_breach(data, ours) is None
    broken = copy.deepcopy(dict(ours))
    change(broken)
    breach = first_breach(data, broken)
    assert breach is not None
    assert breach.rule == rule, breach


def _mutants(answer: Answer) -> Iterator[Answer]:
    """Make answers that are wrong in one value each: a number, a text, a message or hook too few."""
    parts: list[tuple[Any, ...]] = [()]
    while parts:
        path = parts.pop()
        at = _at(answer, path)
        keys = list(at) if isinstance(at, Mapping) else list(range(len(at))) if isinstance(at, list) else []
        parts.extend((*path, key) for key in keys)
        if isinstance(at, list) and at:
            yield _with(answer, path, at[:-1])
        elif isinstance(at, (int, str)) and path[-1] not in ("do", "role", "name"):
            yield _with(answer, path, at + 1 if isinstance(at, int) else f"{at}!")


def _at(answer: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        answer = answer[key]
    return answer


def _with(answer: Answer, path: tuple[Any, ...], value: Any) -> Answer:
    mutant = copy.deepcopy(answer)
    _at(mutant, path[:-1])[path[-1]] = value
    return mutant


@pytest.mark.few(1)
@pytest.mark.parametrize("data", [case(*TALK), SUMMED, ROLLING])
def test_no_wrong_answer_of_ours_passes(data: dict[str, Any]) -> None:
    """Every value of an answer is held to a rule."""
    answer = run_session(data | {"snapshot_each": True})
    mutants = 0
    for mutant in _mutants(dict(answer)):
        assert first_breach(data | {"snapshot_each": True}, mutant) is not None, mutant
        mutants += 1
    assert mutants > 100


@pytest.mark.long
@pytest.mark.data
def test_the_reference_breaks_a_rule_where_it_differs() -> None:
    """A vector's own answer, as ours, never passes under another rule's name."""
    path = vectors_dir() / "sliding-context.jsonl"
    if not path.exists():
        pytest.skip(f"no vectors in {vectors_dir()} (set TRIMTAB_SHARED)")
    judged = [verdict for verdict in run_file(path) if verdict.case.op == "session"]
    assert len(judged) > 50
    for verdict in judged:
        assert verdict.trial is not None
        breach = first_breach(verdict.case.input, verdict.trial.expected)
        assert (breach is None) == (verdict.fate == "passed")
        assert breach is None or breach.rule not in (UNEXPLAINED, "")


def _random_case(seed: int) -> dict[str, Any]:
    """Make a session of all that can happen; a late result comes only where no other call is open."""
    choose = random.Random(seed)
    options: dict[str, Any] = {**SIZES, "token_budget": choose.choice([100, 120, 200, 300, 400]), "hooks": {}}
    options["message_overhead"] = choose.choice([0, 4])
    if choose.random() < 0.75:
        options["summarizer"] = choose.choice(SUMMARIZERS)
    for name, values in RANGES.items():
        if choose.random() < 0.3:
            options[name] = choose.choice(values)
    steps, late, open_ids = list[dict[str, Any]](), list[str](), list[str]()
    for n in range(choose.randint(5, 40)):
        kind = choose.choice(["text"] * 4 + ["calls", "calls", "result", "result", "result", "other"])
        if kind == "calls":
            late, open_ids = [*late, *open_ids], [f"c{n}{at}" for at in range(choose.choice([1, 1, 2]))]
            steps.append(calls(*open_ids))
        elif kind == "result" and (open_ids or late):
            found = (open_ids or late).pop(choose.choice([0, -1]))
            steps.append(says("tool", f"{n}" + "r" * choose.randint(0, 30), tool_call_id=found))
        elif kind == "other":
            steps.append(choose.choice(OTHERS) | {"options": options})
        else:
            role = choose.choice(["user", "assistant", "assistant", "system"])
            if role != "system":
                late, open_ids = [*late, *open_ids], []
            steps.append(says(role, f"{n}" + "m" * choose.randint(0, 70)))
    return {"options": options, "steps": steps, "snapshot_each": True}


SUMMARIZERS = [
    {"kind": "numbered"},
    {"kind": "concat"},
    {"kind": "fail_calls", "calls": [1, 2, 4]},
    {"kind": "sized", "chars": 300},
    {"kind": "const", "text": "One. Two two. Three three three three."},
    {"kind": "empty"},
]
RANGES: dict[str, list[Any]] = {
    "system_prompt": ["s", "s" * 30],
    "summarize_threshold_messages": [1, 2, 5],
    "summarize_threshold_tokens": [1, 50, 200],
    "max_summary_tokens": [1, 60, 150],
    "min_recent_tokens": [0, 50, 150],
    "max_summary_rounds": [0, 1, 3],
    "strategy": ["rolling", "anchored"],
    "summary_role": ["user"],
}
OTHERS: list[dict[str, Any]] = [
    *({"do": "set_budget", "value": value} for value in (50, 100, 150, 200, 500)),
    {"do": "set_anchor", "messages": [{"role": "system", "content": "B" * 8}]},
    {"do": "clear"},
    {"do": "round_trip"},
    {"do": "serialize"},
]


@pytest.mark.long
@pytest.mark.parametrize("seeds", [range(at, at + 25) for at in range(0, 150, 25)], ids=str)
def test_random_sessions_keep_every_rule(seeds: range) -> None:
    """Summaries that fail, calls that are answered late, budgets that shrink, restored in between."""
    for seed in seeds:
        data = _random_case(seed)
        assert first_breach(data, attempt(partial(run_session, data))) is None, json.dumps(data)
