"""The cases of the reference systems pass, or differ by a rule that is shown to be broken (SPEC F)."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.conformance import run_file
from tests.conformance.__main__ import main
from tests.conformance.adapters import SYSTEMS
from tests.conformance.compositions import CUT
from tests.conformance.counters import approximate, looma_text, r1_text
from tests.conformance.judging import UNREADABLE, Rule, Trial, Verdict, judge, summary, weigh
from tests.conformance.predicates import (
    Kind,
    Selection,
    budget_rules,
    default_rule,
    same_objects_rule,
    score_rules,
    selection_guards,
    selection_rules,
)
from tests.conformance.vectors import Case, read_cases, vector_files, vectors_dir
from tests.pair_rules import SAYS, SYSTEM, USER, answers, calls

ROOT = Path(__file__).resolve().parents[1]

EXPLAINING = {
    *("A9", "A1", "A2", "A3", "A4", "A8", "A10"),
    *("B0", "C3", "C6", "C8", "C9", "C10"),
    *("D1", "D2", "D5", "D6"),
    *("E2", "E3", "E6", "E8", "E10"),
}
"""Rules some reference breaks; design/conformance.md has a line on each."""


@pytest.fixture(scope="module")
def verdicts() -> dict[str, list[Verdict]]:
    """Judge every vector, by system."""
    files = vector_files(vectors_dir())
    if not files:
        pytest.skip(f"no vectors in {vectors_dir()} (set TRIMTAB_SHARED)")
    found: dict[str, list[Verdict]] = {}
    for path in files:
        for verdict in run_file(path):
            found.setdefault(verdict.case.system, []).append(verdict)
    return found


def _trials(verdicts: Mapping[str, list[Verdict]]) -> Iterator[tuple[Verdict, Trial]]:
    return ((v, v.trial) for listed in verdicts.values() for v in listed if v.trial is not None)


@pytest.mark.data
@pytest.mark.parametrize("system", sorted(SYSTEMS))
def test_every_case_of_a_reference_passes_or_differs_by_a_rule(
    verdicts: dict[str, list[Verdict]], system: str
) -> None:
    """Nothing fails, and every op that has an adapter was put to the test."""
    listed = verdicts[system]
    assert [verdict.explanation for verdict in listed if verdict.fate == "failed"] == []
    judged = {verdict.case.op for verdict in listed if verdict.fate in ("passed", "by rule")}
    assert judged == set(SYSTEMS[system]), summary(system, listed)


@pytest.mark.data
def test_each_rule_explains_at_least_one_difference(verdicts: dict[str, list[Verdict]]) -> None:
    """A rule that explains nothing is a guard, and belongs there."""
    assert {verdict.by for verdict, _ in _trials(verdicts) if verdict.fate == "by rule"} == EXPLAINING


@pytest.mark.data
def test_no_difference_is_excused_when_ours_is_what_was_expected(
    verdicts: dict[str, list[Verdict]],
) -> None:
    """A rule is about the answer: given the reference's answer as ours, it says that ours is wrong."""
    ruled = [trial for verdict, trial in _trials(verdicts) if verdict.fate == "by rule"]
    assert len(ruled) > 40
    for trial in ruled:
        mutant = Trial(expected=trial.expected, ours=trial.expected, rules=trial.rules, guards=trial.guards)
        assert weigh(mutant)[0] == "failed"


@pytest.mark.data
def test_one_message_more_or_less_fails_every_case(verdicts: dict[str, list[Verdict]]) -> None:
    """No rule is so wide that a wrong answer of ours passes under it."""
    mutants = 0
    for verdict, trial in _trials(verdicts):
        for item in trial.items if "kept" in trial.ours else ():
            kept = [one for one in trial.items if (one in trial.ours["kept"]) != (one == item)]
            mutant = Trial(
                expected=_without_totals(trial.expected),
                ours={**_without_totals(trial.ours), "kept": kept},
                rules=trial.rules,
                guards=trial.guards,
            )
            assert weigh(mutant)[0] == "failed", (verdict.case.id, mutant.ours)
            mutants += 1
    assert mutants > 1000


@pytest.mark.data
def test_a_text_cut_shorter_than_it_must_be_fails(verdicts: dict[str, list[Verdict]]) -> None:
    """Where the reference's answer has no marker, ours still has to be the longest cut."""
    mutants = 0
    for verdict, trial in _trials(verdicts):
        for item, message in trial.ours.get("changed", {}).items():
            shorter = {**message, "content": CUT + message["content"].removeprefix(CUT)[1:]}
            ours = {**_without_totals(trial.ours), "changed": {**trial.ours["changed"], item: shorter}}
            expected = _without_totals(trial.expected)
            mutant = Trial(expected=expected, ours=ours, rules=trial.rules, guards=trial.guards)
            assert weigh(mutant)[0] == "failed", verdict.case.id
            mutants += 1
    assert mutants > 5


def _without_totals(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what would tell by itself that a message is missing."""
    told = ("kept", "changed", "summaries", "error")
    return {key: value for key, value in answer.items() if key in told}


@pytest.mark.data
def test_an_error_instead_of_an_answer_fails_every_case(verdicts: dict[str, list[Verdict]]) -> None:
    """`BudgetExceededError` is an answer only where what must stay does not fit."""
    for verdict, trial in _trials(verdicts):
        if "kept" in trial.ours:
            mutant = Trial(
                expected=trial.expected,
                ours={"error": "BudgetExceededError"},
                rules=trial.rules,
                guards=trial.guards,
            )
            assert weigh(mutant)[0] == "failed", verdict.case.id


def test_the_page_on_differences_names_every_rule_that_explains_one() -> None:
    """A reader finds each difference in design/conformance.md."""
    page = (ROOT / "design" / "conformance.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| ([A-Z]\d+) \|", page, re.MULTILINE)) == EXPLAINING


def _tens(messages: Any) -> int:
    return 10 * len(messages)


def _chosen(kind: Kind, messages: list[Any], limit: int, **more: Any) -> dict[str, Rule]:
    selection = Selection(messages=messages, limit=limit, size=_tens, kind=kind, **more)
    return {**selection_rules(selection), **selection_guards(selection)}


CALL = [USER, calls("a"), answers("a"), SAYS, USER]
TALK = [USER, SAYS, USER, SAYS, USER]
ERROR = {"error": "BudgetExceededError"}

RULES = [
    pytest.param("A1", _chosen("custom", TALK, 30), {"kept": [2, 3, 4]}, {"kept": [1, 2, 3, 4]}, id="limit"),
    pytest.param("A2", _chosen("custom", CALL, 30), {"kept": [1, 2, 4]}, {"kept": [2, 4]}, id="orphan"),
    pytest.param("A2", _chosen("custom", CALL, 30), {"kept": [4]}, {"kept": [1, 3, 4]}, id="dangling"),
    pytest.param("A3", _chosen("custom", TALK, 30), {"kept": [3, 4]}, {"kept": [4, 3]}, id="order"),
    pytest.param("A3", _chosen("custom", TALK, 30), {"kept": [3, 4]}, {"kept": [4, 4]}, id="twice"),
    pytest.param("A4", _chosen("custom", [SYSTEM, *TALK], 30), {"kept": [0, 5]}, {"kept": [5]}, id="system"),
    pytest.param("A4", _chosen("custom", [*TALK, SAYS], 30), {"kept": [4, 5]}, {"kept": [5]}, id="user"),
    pytest.param("A4", _chosen("custom", [*TALK, SAYS], 30), {"kept": [4, 5]}, {"kept": [4]}, id="newest"),
    pytest.param("A4", _chosen("custom", [*TALK, SAYS], 19), ERROR, {"kept": []}, id="empty"),
    pytest.param("A4", _chosen("custom", [*TALK, SAYS], 20), {"kept": [4, 5]}, ERROR, id="needless error"),
    pytest.param(
        "A4", _chosen("custom", [USER, calls("a")], 10, in_block=True), {"kept": [1]}, {"kept": []}, id="open"
    ),
    pytest.param(
        "A8",
        _chosen("custom", TALK, 30),
        {"kept": [4], "tokens": 10},
        {"kept": [4], "tokens": 20},
        id="sum",
    ),
    pytest.param(
        "A11", _chosen("sliding_window", TALK, 30), {"kept": [2, 3, 4]}, {"kept": [4]}, id="needless"
    ),
    pytest.param("C1", _chosen("strict", TALK, 30), ERROR, {"kept": [4]}, id="strict"),
    pytest.param("C2", _chosen("drop", TALK, 30), {"kept": [4]}, {"kept": [2, 3, 4]}, id="drop"),
    pytest.param(
        "C3", _chosen("sliding_window", TALK, 40), {"kept": [2, 3, 4]}, {"kept": [1, 2, 3, 4]}, id="opener"
    ),
    pytest.param(
        "C3", _chosen("sliding_window", TALK, 30), {"kept": [2, 3, 4]}, {"kept": [0, 1, 4]}, id="oldest"
    ),
    pytest.param(
        "C3",
        _chosen("sliding_window", TALK, 30, in_block=True, protect_roles=frozenset({"assistant"})),
        {"kept": [1, 3, 4]},
        {"kept": [2, 3, 4]},
        id="protected",
    ),
    pytest.param(
        "C3",
        _chosen("sliding_window", [*TALK, SAYS], 30, in_block=True, min_messages=3),
        {"kept": []},
        {"kept": [4, 5]},
        id="fewest",
    ),
    pytest.param(
        "C3",
        _chosen("sliding_window", [USER, SAYS, SAYS, USER], 30, keep_turns=True),
        {"kept": [0, 2, 3]},  # the first turn passes the limit beside the last message, so it is cut into
        {"kept": [2, 3]},
        id="turn too long",
    ),
    pytest.param(
        "C3",
        _chosen("sliding_window", [USER, SAYS, SAYS, USER, SAYS, USER], 40, keep_turns=True),
        {"kept": [3, 4, 5]},
        {"kept": [0, 2, 5]},
        id="turn whole",
    ),
    pytest.param(
        "C4",
        _chosen("drop_newest", TALK, 20, in_block=True),
        {"kept": [0, 1]},
        {"kept": [3, 4]},
        id="newest left",
    ),
    pytest.param(
        "C4",
        _chosen("drop_newest", TALK, 20, in_block=True),
        {"kept": [0, 1]},
        {"kept": [0]},
        id="needless newest",
    ),
    pytest.param(
        "C5", _chosen("priority_based", TALK, 30), {"kept": [0, 2, 4]}, {"kept": [2, 3, 4]}, id="score"
    ),
    pytest.param("C5", _chosen("priority_based", TALK, 20), {"kept": [2, 4]}, {"kept": [0, 4]}, id="newer"),
    pytest.param(
        "C9",
        default_rule(),
        {"strategy": ["clamp_results", "sliding_window", "truncate_text"]},
        {"strategy": ["sliding_window", "truncate_text"]},
        id="default",
    ),
    pytest.param(
        "D1", budget_rules(0, 0, window=0), {"error": "ConfigurationError"}, {"kept": []}, id="no window"
    ),
    pytest.param(
        "D1",
        budget_rules(-1, 0, window=9),
        {"error": "ConfigurationError"},
        {"available": [10]},
        id="negative",
    ),
    pytest.param(
        "D1", budget_rules(0, 0, window="9"), {"error": "ConfigurationError"}, {"available": [9]}, id="text"
    ),
    pytest.param(
        "D1",
        budget_rules(4, 6, window=11),
        {"effective_input_limit": 1},
        {"effective_input_limit": 0},
        id="room",
    ),
    pytest.param(
        "D1",
        budget_rules(4, 6, window=10),
        {"error": "ConfigurationError"},
        {"effective_input_limit": 0},
        id="no room",
    ),
    pytest.param(
        "A3",
        same_objects_rule([{"role": "tool", "content": "x"}], [{"role": "assistant", "content": "x"}]),
        {"result": [{"role": "tool", "content": "x"}]},
        {"result": [{"role": "assistant", "content": "x"}]},
        id="relabelled",
    ),
    pytest.param(
        "A4",
        score_rules([{"role": "developer"}, {"role": "user"}]),
        {"scores": [float("inf"), 150.0]},
        {"scores": [12.5, 150.0]},
        id="developer",
    ),
]


@pytest.mark.parametrize(("name", "rules", "keeping", "breaking"), RULES)
def test_a_rule_tells_an_answer_that_keeps_it_from_one_that_does_not(
    name: str, rules: dict[str, Rule], keeping: Mapping[str, Any], breaking: Mapping[str, Any]
) -> None:
    """The keeping answer keeps all rules of the case; the breaking one breaks this one."""
    rule = rules[name]
    assert rule(keeping)
    assert not rule(breaking)


def test_a_difference_is_excused_only_if_ours_keeps_every_rule() -> None:
    """One rule the reference breaks does not hide another that we break."""

    def no_fives(answer: Mapping[str, Any]) -> bool:
        return bool(answer["n"] != 5)

    def even(answer: Mapping[str, Any]) -> bool:
        return bool(answer["n"] % 2 == 0)

    def fate(ours: int, expected: int, **guards: Rule) -> tuple[str, str]:
        return weigh(Trial(expected={"n": expected}, ours={"n": ours}, rules={"X": no_fives}, guards=guards))

    assert fate(4, 4, Y=even) == ("passed", "")
    assert fate(4, 5, Y=even) == ("by rule", "X")
    assert fate(3, 5, Y=even) == ("failed", "ours breaks Y")
    assert fate(5, 5) == ("failed", "ours breaks X")
    assert fate(4, 7, Y=even) == ("failed", "no rule explains it")


def test_the_counters_of_the_references_count_as_their_documents_say() -> None:
    """The examples of SEMANTICS L14, R1 and S2."""
    assert [looma_text("x" * n) for n in (13, 14)] == [11, 13]
    assert [r1_text(text) for text in ("", "a", "é", "🔥", "abcde")] == [0, 1, 1, 2, 2]
    assert approximate("👨‍👩‍👧") == 2


def _line(op: str, input: Any, expected: Any, *, system: str = "sliding-context", **more: Any) -> str:
    entry = {"id": f"x-{op}", "system": system, "op": op, "input": input, "expected": expected, **more}
    return json.dumps(entry) + "\n"


@pytest.mark.parametrize(("tokens", "failed", "exit_code"), [(2, 0, 0), (3, 1, 1)])
def test_the_command_prints_a_line_a_system_and_exits_1_if_any_case_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], tokens: int, failed: int, exit_code: int
) -> None:
    """Failures are told on standard error with both answers."""
    path = tmp_path / "some.jsonl"
    path.write_text(
        _line("approx_count", {"text": "abcde"}, {"tokens": tokens}, tags=["conflict:unit"])
        + _line("no_such", {}, {})
        + _line("no_such", {}, {})
        + _line("token_budget", {"budget": {"context_window": 0}, "used": []}, {}, system="phronomy"),
        encoding="utf-8",
    )
    assert main([str(path)]) == exit_code
    printed = capsys.readouterr()
    assert printed.out.splitlines() == [
        f"sliding-context passed {1 - failed}, by rule 0, out of scope 2 (no_such: 2), failed {failed} of 3",
        "phronomy passed 0, by rule 1 (D1: 1), out of scope 0, failed 0 of 1",
    ]
    wanted = "x-approx_count (no rule explains it): expected {'tokens': 3}, ours {'tokens': 2}"
    assert printed.err.strip() == (wanted if failed else "")


def test_without_vectors_the_command_says_where_it_looked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing was run, which is not a success."""
    monkeypatch.setenv("TRIMTAB_SHARED", str(tmp_path))
    assert main([]) == 2
    assert str(tmp_path / "vectors") in capsys.readouterr().err


def test_the_vectors_lie_beside_the_conversations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """TRIMTAB_SHARED names their folder; else they are next to TRIMTAB_DATA, else beside the checkout."""
    monkeypatch.delenv("TRIMTAB_SHARED", raising=False)
    monkeypatch.setenv("TRIMTAB_DATA", str(tmp_path / "data"))
    assert vectors_dir() == (tmp_path / "vectors").resolve()
    monkeypatch.delenv("TRIMTAB_DATA")
    assert vectors_dir() == ROOT.parent / "shared" / "vectors"


def test_what_hangs_on_another_language_is_out_of_scope() -> None:
    """Such a case is tagged."""
    case = Case(id="x", system="phronomy", op="trim", input={}, expected={}, tags=("language_specific",))
    assert judge(case, SYSTEMS["phronomy"]).by == "trim language_specific"


USER_LINE = {"role": "user", "content": "aaaa bbbb"}
CHARS = {"kind": "chars", "chars_per_token": 4}
FIXED = {"kind": "fixed", "per_message": 10, "per_part": 0, "per_tool_call": 0}
OLDEST = {"kind": "truncate_oldest"}
SUMMARY_OF_NONE = {"evicted": [], "remaining": [0], "remaining_tokens": 3}


def _applied(counter: Any, kinds: list[str], *, strategy: Any = OLDEST, system: str = "contexty") -> Case:
    """Make a case that ends with an error, which has these names in contexty."""
    data = {"strategy": strategy, "counter": counter, "messages": [USER_LINE] * 3, "limit": 15}
    return Case(id="x", system=system, op="apply_strategy", input=data, expected={"error": {"kinds": kinds}})


def _compiled_with(kinds: list[str], *, strategy: Any = OLDEST, **more: Any) -> Case:
    block = {"id": "b", "tier": 1, "messages": [USER_LINE] * 3, "strategy": strategy}
    data = {"max_tokens": 15, "counter": FIXED, "blocks": [block], **more}
    return Case(id="x", system="contexty", op="compile", input=data, expected={"error": {"kinds": kinds}})


def _case_of(system: str, op: str, data: Any, expected: Any) -> Case:
    return Case(id="x", system=system, op=op, input=data, expected=expected)


def _rendered(budget: Any) -> Case:
    slots = [{"name": "input", "content": "abcd"}]
    shown = {"messages": [{"role": "user", "content": "abcd"}], "total_tokens": 1}
    return _case_of(
        "looma-slots", "render", {"slots": slots, "token_budget": budget, "counter": CHARS}, shown
    )


ESTIMATED = {"role": "assistant", "content": None, "tool_calls": [{"id": "a", "type": "function"}]}


@pytest.mark.parametrize(
    ("case", "fate", "by"),
    [
        pytest.param(_rendered("NaN"), "by rule", "D1", id="looma, a budget that is no number"),
        pytest.param(_rendered(float("nan")), "by rule", "D1", id="looma, NaN as Python writes it"),
        pytest.param(
            _compiled_with(["invalid_config"], max_tokens="NaN"), "passed", "", id="contexty, no number"
        ),
        pytest.param(
            _compiled_with(["invalid_config"], max_tokens=None), "passed", "", id="contexty, no budget"
        ),
        pytest.param(_rendered(None), "passed", "", id="looma, no budget"),
        pytest.param(
            _case_of(
                "llm_context_core",
                "estimate_message",
                {"message": ESTIMATED},
                {"tokens": 4 + 3 + 3},
            ),
            "passed",
            "",
            id="a call without a function",
        ),
        pytest.param(
            _case_of(
                "llm_context_core",
                "apply",
                {"strategy": "sliding_window", "messages": [USER_LINE], "budget": {"context_window": "NaN"}},
                {"kept": [0], "tokens_with_framing": 11, "available_for_history": 99},
            ),
            "by rule",
            "D1",
            id="a window that is no number",
        ),
        pytest.param(
            _case_of(
                "sliding-context",
                "count_message",
                {"message": USER_LINE, "counter": {"kind": "approx"}, "message_overhead": -2},
                {"tokens": 1},
            ),
            "by rule",
            "B4",
            id="a negative overhead",
        ),
        pytest.param(
            _case_of(
                "sliding-context",
                "evict",
                {
                    "messages": [USER_LINE],
                    "target_tokens": 9,
                    "counter": {"kind": "approx"},
                    "message_overhead": -1,
                },
                SUMMARY_OF_NONE,
            ),
            "by rule",
            "B4",
            id="evicting with a negative overhead",
        ),
        pytest.param(
            _case_of(
                "phronomy",
                "trim",
                {"messages": [USER_LINE], "steps": [], "budget": {"context_window": 99, "overhead": -5}},
                {"messages": [], "available": 104},
            ),
            "by rule",
            "D1",
            id="trimming with a negative overhead",
        ),
        pytest.param(
            _case_of(
                "sliding-context",
                "session",
                {"options": {}, "steps": []},
                {"error": {"type": "RangeError"}},
            ),
            "passed",
            "",
            id="a session without a budget",
        ),
        pytest.param(_applied({"kind": "error"}, ["other"]), "passed", "", id="a counter that fails"),
        pytest.param(_applied({"kind": "error"}, []), "passed", "", id="an error without a name"),
        pytest.param(_applied({"kind": "other"}, ["other"]), "passed", "", id="its other error"),
        pytest.param(_applied({"kind": "canceled"}, ["canceled"]), "passed", "", id="a cancelled counter"),
        pytest.param(
            _applied(FIXED, ["other"], strategy={"kind": "custom_error"}), "passed", "", id="custom_error"
        ),
        pytest.param(
            _compiled_with(["other"], strategy={"kind": "custom_error"}), "passed", "", id="in a compile"
        ),
        pytest.param(
            _compiled_with(["canceled"], context="canceled"), "passed", "", id="a cancelled compile"
        ),
        pytest.param(
            _applied({"kind": "by_message_count"}, ["other"]),
            "out of scope",
            "apply_strategy counter by_message_count",
            id="a counter nobody knows",
        ),
        pytest.param(
            _applied(FIXED, ["other"], strategy={"kind": "newest_of_all"}),
            "out of scope",
            "apply_strategy strategy newest_of_all",
            id="a strategy nobody knows",
        ),
        pytest.param(
            _case_of("sliding-context", "count_message", {"counter": {"kind": "approx"}}, {"tokens": 1}),
            "out of scope",
            f"count_message {UNREADABLE} KeyError 'message'",
            id="a key that is missing",
        ),
    ],
)
def test_what_the_public_vectors_do_not_hold_gets_the_answer_of_the_library(
    case: Case, fate: str, by: str
) -> None:
    """An error of trimtab is an answer; what cannot be put to it is out of scope, and by name."""
    verdict = judge(case, SYSTEMS[case.system])
    assert (verdict.fate, verdict.by) == (fate, by), verdict.explanation


PUT_IN: tuple[Any, ...] = (
    *(None, "NaN", float("nan"), "Infinity", -1, 0, 10**9, 1.5, True, "", "x", [], {}),
    *("other", "canceled", "custom_error", "error", {"kind": "other"}, {"kind": "error"}),
)


def _mutant(data: Any, chance: random.Random) -> Any:
    """Take one value out of an input, or put another in its place."""
    data = copy.deepcopy(data)
    at, key = chance.choice(list(_spots(data)))
    if chance.random() < 0.3:
        del at[key]
    else:
        at[key] = chance.choice(PUT_IN)
    return data


def _spots(value: Any) -> Iterator[tuple[Any, Any]]:
    """List every place of a value, the nested ones included."""
    for key, one in list(value.items() if isinstance(value, dict) else enumerate(value)):
        yield value, key
        if isinstance(one, (dict, list)):
            yield from _spots(one)


@pytest.mark.data
def test_no_input_of_the_shape_of_a_vector_crashes_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every vector with one value changed or missing, twice over: each gets a verdict."""
    files = vector_files(vectors_dir())
    if not files:
        pytest.skip(f"no vectors in {vectors_dir()} (set TRIMTAB_SHARED)")
    chance, made = random.Random(11), 0
    path = tmp_path / "mutants.jsonl"
    with path.open("w", encoding="utf-8") as out:
        for case in (case for file in files for case in read_cases(file) if case.input):
            for _ in range(2):
                data = _mutant(case.input, chance)
                more = {"system": case.system, "tags": list(case.tags)}
                out.write(_line(case.op, data, case.expected, **more))
                made += 1
    assert main([str(path)]) in (0, 1)
    judged = [int(line.rsplit(" of ", 1)[1]) for line in capsys.readouterr().out.splitlines()]
    assert sum(judged) == made > 1_000


@pytest.mark.data
def test_every_public_vector_has_the_shape_of_one(verdicts: dict[str, list[Verdict]]) -> None:
    """None of them is out of scope because an adapter fell over it."""
    listed = [verdict for listed in verdicts.values() for verdict in listed]
    assert [verdict.by for verdict in listed if UNREADABLE in verdict.by] == []


@pytest.mark.parametrize("line", ["no JSON\n", "[]\n", '{"id": "x"}\n'])
def test_a_line_that_is_no_vector_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str
) -> None:
    """With its file and number; so is a file that is not there."""
    path = tmp_path / "some.jsonl"
    path.write_text(f"\n{line}", encoding="utf-8")
    assert main([str(path)]) == 2
    assert "some.jsonl, line 2" in capsys.readouterr().err
    assert main([str(tmp_path / "none.jsonl")]) == 2
    assert "none.jsonl" in capsys.readouterr().err
