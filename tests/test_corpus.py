"""The corpus: every case holds for trimtab, and what a trimmer gets wrong is said."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import judge
from tests.fuzz.judging import newly_refused
from trimtab import BudgetExceededError, ConfigurationError, fit
from trimtab.errors import UnknownNameError
from trimtab.formats import formats
from trimtab.testing import WordCounter
from trimtab.testing.corpus import Case, cases, check, read_cases, run

EVERY = cases()


@pytest.mark.parametrize("case", EVERY, ids=lambda case: case.id)
def test_a_case_holds_for_trimtab(case: Case) -> None:
    """Within budget, in order, nothing newly wrong; by the judge as well."""
    assert run(case) == []
    before = case.messages
    words = WordCounter(format=case.form)
    try:
        request = fit(dict(case.request), case.budget_tokens, counter=words, format=case.form).request
    except BudgetExceededError as error:
        request = error.attempt.request if error.attempt is not None else {}
    assert (
        newly_refused(case.form, case.request, request, unsure_of=lambda: {"call_5"}) == []
    )  # which waits, in one
    assert case.messages == before


@pytest.mark.parametrize("form", formats())
def test_each_form_has_cases_of_its_own(form: str) -> None:
    """Fifteen or more; together less than 200 kB, which is what the wheel carries."""
    of_form = cases(form)
    assert len(of_form) >= 15
    assert {case.form for case in of_form} == {form}
    assert all(case.note for case in of_form)
    folder = Path(__file__).parents[1] / "src" / "trimtab" / "testing" / "corpus"
    assert sum(path.stat().st_size for path in folder.glob("*.jsonl")) < 200_000


def test_ids_are_unique_and_most_cases_do_not_fit_as_they_are() -> None:
    """A case that fits asks nothing of a trimmer, unless it is to be repaired."""
    assert len({case.id for case in EVERY}) == len(EVERY)
    easy = [c.id for c in EVERY if c.count_tokens(c.messages) <= c.budget_tokens and not c.repair]
    assert len(easy) < len(EVERY) / 10, easy


def test_the_judge_takes_most_requests_as_they_are() -> None:
    """But for open calls and what is to be repaired: what breaks is the trimmer's doing."""
    taken = [case for case in EVERY if judge.accepts(case.form, case.request)]
    assert len(taken) > len(EVERY) / 2


def last_that_fit(case: Case) -> list[Any]:
    """Keep the last messages that fit, as most trimmers do."""
    messages = case.messages
    while messages and case.count_tokens(messages) > case.budget_tokens:
        messages.pop(0)
    return messages


def unchanged(case: Case) -> list[Any]:
    """Do nothing."""
    return case.messages


@pytest.mark.parametrize("form", formats())
def test_a_trimmer_by_count_fails_on_many_cases(form: str) -> None:
    """It orphans results, or leaves nothing; one that does nothing passes the budget."""
    wrong = [said for case in cases(form) for said in check(case, last_that_fit(case))]
    assert any(said.startswith("orphan_result") for said in wrong)
    assert any(said.startswith("empty") for said in wrong)
    assert not any(said.startswith("over budget") for said in wrong)
    assert any(
        said.startswith("over budget") for case in cases(form) for said in check(case, unchanged(case))
    )


def test_messages_in_another_order_are_wrong() -> None:
    """What is equal to messages of the input stands in its order."""
    case = next(case for case in EVERY if case.id == "openai_chat/only-the-question-fits")
    assert any(said.startswith("out of order") for said in check(case, case.messages[::-1]))


def test_a_case_comes_back_from_json() -> None:
    """And says what is wrong with data that is none."""
    for case in EVERY:
        assert Case.from_dict(json.loads(json.dumps(case.to_dict()))) == case
    with pytest.raises(ConfigurationError, match="budget_tokens"):
        Case.from_dict({"id": "a", "form": "openai_chat", "request": {}})
    with pytest.raises(ConfigurationError, match="counter must be one of"):
        Case.from_dict(
            {"id": "a", "form": "openai_chat", "request": {}, "budget_tokens": 1, "counter": "bytes"}
        )
    with pytest.raises(UnknownNameError, match="openai_chat"):
        cases("morse")


def main(arguments: list[str]) -> object:
    """Run `python -m trimtab.testing.corpus` in this process; gives its exit code."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "argv", ["corpus", *arguments])
        with pytest.raises(SystemExit) as ended:
            runpy.run_module("trimtab.testing.corpus", run_name="__main__")
    return ended.value.code


def test_the_command_runs_the_cases(capsys: pytest.CaptureFixture[str]) -> None:
    """A line a form, exit 0."""
    assert main(["--form", "gemini"]) == 0
    assert capsys.readouterr().out == f"gemini: {len(cases('gemini'))} cases, 0 wrong\n"


def test_the_command_runs_another_trimmer_on_other_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 1 and a line a case that is wrong; what a trimmer raises is wrong, too."""
    path = tmp_path / "mine.jsonl"
    case = {"id": "mine", "form": "openai_chat", "budget_tokens": 1, "request": {"messages": [
        {"role": "user", "content": "one two"}]}}  # fmt: skip
    path.write_text(json.dumps(case) + "\n", encoding="utf-8")
    assert len(read_cases(path)) == 1
    assert main([str(path), "--trimmer", f"{__name__}:unchanged"]) == 1
    assert "mine: over budget: 2 of 1 tokens" in capsys.readouterr().out
    assert main([str(path), "--trimmer", f"{__name__}:read_cases"]) == 1
    assert "mine: raised TypeError" in capsys.readouterr().out
    assert main([str(path)]) == 0


def test_the_command_says_what_it_does_not_understand(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 2, and the file and line."""
    path = tmp_path / "mine.jsonl"
    path.write_text("{}\n", encoding="utf-8")
    assert main([str(path)]) == 2
    assert "line 1" in capsys.readouterr().err
    assert main([str(tmp_path / "none.jsonl")]) == 2
    assert main(["--form", "morse"]) == 2
