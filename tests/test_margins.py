"""A margin is two numbers: how far the bill may be above a count, which a budget keeps, and how far below."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

from trimtab import Budget, cli, fit
from trimtab.counting import EstimateCounter, UsageBaseline, counter_for, measure
from trimtab.models import Margin, ModelFacts, facts_for, model_names, register_model

QUESTION = [{"role": "user", "content": "What is a token?"}]
LOPSIDED = Margin(tokens=20, per_mille=100, over_tokens=5, over_per_mille=0)


@pytest.fixture
def acme() -> str:
    """Describe a model whose counts are rather too low than too high."""
    register_model(ModelFacts(name="acme-lopsided", near_encoding="o200k_base", margin=LOPSIDED))
    return "acme-lopsided"


def test_a_measurement_has_both_sides(acme: str) -> None:
    """And what the bill hardly is beyond (SPEC B0b)."""
    found = measure(QUESTION, model=acme)
    assert (found.tokens, found.margin_tokens, found.over_margin_tokens) == (12, 22, 5)
    assert (found.most_tokens, found.least_tokens) == (34, 7)


def test_no_bill_is_below_nothing(acme: str) -> None:
    """The lower side is at most the count."""
    wide = Margin(tokens=0, over_tokens=1_000)
    assert (wide.over_of(12), wide.of(12)) == (12, 0)
    assert measure([], model=acme, format="openai_chat").least_tokens == 0


@pytest.mark.parametrize(
    ("margin", "plain", "other"),
    [
        (Margin(tokens=90, per_mille=100), (100, 100), (100, 100)),
        (Margin(tokens=90, per_mille=100, plain_tokens=3), (13, 13), (100, 100)),
        (Margin(tokens=90, per_mille=100, over_tokens=7), (100, 17), (100, 17)),
        (
            Margin(tokens=90, per_mille=100, over_tokens=7, over_per_mille=0, plain_tokens=3),
            (13, 3),
            (100, 7),
        ),
    ],
)
def test_plain_text_has_the_constant_or_one_of_its_own(
    margin: Margin, plain: tuple[int, int], other: tuple[int, int]
) -> None:
    """Without `plain_tokens` it is as unsure as all else."""
    assert (margin.of(100, is_plain=True), margin.over_of(100, is_plain=True)) == plain
    assert (margin.of(100), margin.over_of(100)) == other


def test_a_budget_keeps_the_first_alone(acme: str) -> None:
    """A bill below the count passes none."""
    auto = fit(QUESTION, Budget(1_000, margin="auto"), model=acme).report
    above = [
        counter_for(acme).margin_tokens(tokens) or 0 for tokens in (auto.input_tokens, auto.input_tokens + 1)
    ]
    assert auto.input_tokens + above[0] <= 1_000 < auto.input_tokens + 1 + above[1]
    assert (auto.margin_tokens, auto.over_margin_tokens) == (1_000 - auto.input_tokens, 5)


def test_every_model_has_a_margin() -> None:
    """Also one whose vocabulary nobody has; else `margin="auto"` would be refused (SPEC B0b)."""
    assert [name for name in model_names() if facts_for(name).margin is None] == []


def test_a_report_shows_both_where_they_differ(acme: str) -> None:
    """As text, as a page and as data."""
    report = fit(QUESTION, Budget(1_000, margin="auto"), model=acme).report
    shown = f"margin -5 / +{report.margin_tokens}"
    assert shown in report.to_text()
    assert shown in report.to_html()
    assert report.to_dict()["over_margin_tokens"] == 5
    assert "margin -" not in fit(QUESTION, 1_000, model=acme).report.to_text()


def test_the_command_line_shows_both_where_they_differ(acme: str) -> None:
    """In a line of its own, and as numbers."""

    def count(*arguments: str) -> Any:
        return CliRunner().invoke(
            cli.command(), ["count", "--model", acme, *arguments], input=json.dumps(QUESTION)
        )

    assert "margin -5 / +22" in count("--output", "text").output
    counted = json.loads(count().output)
    assert (counted["margin_tokens"], counted["over_margin_tokens"]) == (22, 5)


class _OneSided:
    """Counts characters, and says of the bill how far it may be above."""

    def count(self, messages: Any) -> int:
        return sum(len(message["content"]) for message in messages)

    def margin_tokens(self, tokens: int) -> int:
        return tokens // 10


class _TwoSided(_OneSided):
    def over_margin_tokens(self, tokens: int) -> int:
        return 2


@pytest.mark.parametrize(("counter", "over"), [(_OneSided(), 1), (_TwoSided(), 2), (EstimateCounter(), None)])
def test_a_counter_of_ones_own_may_say_one_side_for_both(counter: Any, over: int | None) -> None:
    """Who says nothing of the other side is as unsure there."""
    assert measure(QUESTION, counter=counter).over_margin_tokens == over


def test_a_baseline_without_a_bill_says_what_its_counter_does(acme: str) -> None:
    """And after one, what it learned: the same on both sides."""
    baseline = UsageBaseline(counter_for(acme))
    assert (baseline.margin_tokens(100), baseline.over_margin_tokens(100)) == (30, 5)
    baseline.record(QUESTION, 12, model=acme)
    assert baseline.over_margin_tokens(12) is not None
