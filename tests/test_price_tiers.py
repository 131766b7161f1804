"""Requests above so many tokens cost more: facts, a note, a budget that stays below, and replay."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from trimtab import Budget, ConfigurationError, Context, Session, cli, fit
from trimtab.counting import CharCounter, EstimateCounter
from trimtab.integrations.base import Trimmer
from trimtab.models import CachePricing, PriceTier, facts_for, pricing_for
from trimtab.policy import load_policy
from trimtab.replay import replay
from trimtab.strategies import Cheapest

COUNTER = CharCounter(1)
CHAT = [{"role": role, "content": "x" * 10_000} for _ in range(25) for role in ("user", "assistant")] + [
    {"role": "user", "content": "Go on."}
]
"""More than half a million tokens."""


@pytest.mark.parametrize(
    ("model", "tiers"),
    [
        ("gpt-5.5", ((272_000, 2.0, 1.5),)),
        ("openai/gpt-5.4-2026-03-05", ((272_000, 2.0, 1.5),)),
        ("gpt-6.1-sol", ((272_000, 2.0, 1.5),)),
        ("gpt-5", ()),
        ("gpt-5.4-mini", ()),
        ("gemini-2.5-pro", ((200_000, 2.0, 1.5),)),
        ("gemini-3.8-flash", ()),
        ("grok-4.7", ((200_000, 2.0, 2.0),)),
        ("claude-haiku-5-5", ((100_000, 5.0, 5.0),)),
        ("claude-opus-5-5", ()),
        ("qwen3-coder-plus", ((32_000, 1.8, 1.8), (128_000, 3.0, 3.0), (256_000, 6.0, 12.0))),
    ],
)
def test_models_have_the_tiers_of_the_price_lists(model: str, tiers: tuple[Any, ...]) -> None:
    """As both tables had them on 2026-11-27 (`make models` compares)."""
    assert pricing_for(model).tiers == tiers


def test_all_of_a_request_is_priced_by_the_tier_it_is_in() -> None:
    """Not what is above it; at the border it is below, and of several the last counts."""
    prices = CachePricing(
        read=0.5, write=1.0, min_prefix_tokens=0, tiers=((2_000, 2.0, 1.5), (4_000, 3.0, 2.0))
    )  # type: ignore[arg-type]
    assert prices.charge(2_000, reusable_tokens=1_000).price == 1_000 * 0.5 + 1_000
    assert prices.charge(2_001, reusable_tokens=2_001).price == 2_001 * 0.5 * 2
    assert prices.charge(5_000).price == 15_000
    assert prices.tier_of(4_000) == PriceTier(2_000, 2.0, 1.5)
    assert prices.tier_of(2_000) is None
    assert CachePricing.from_dict(json.loads(json.dumps(prices.to_dict()))) == prices


@pytest.mark.parametrize("tiers", ["2k", [5], [[1, 2]], [[0, 2, 2]], [[1, -2, 2]], [[1.5, 2, 2]], 7])
def test_tiers_that_are_none_are_refused(tiers: Any) -> None:
    """With what stands there."""
    with pytest.raises(ConfigurationError, match="tier"):
        CachePricing.from_dict({"tiers": tiers})


def test_a_report_says_when_a_fit_passes_a_tier() -> None:
    """In `fit`, `Context` and a session; not below, and not of a model without one."""
    said = (
        "The request passes 100,000 tokens: above, 'claude-haiku-5-5' costs 5 times as much for all input."
        " budget='tier' stays below."
    )
    session = Session(300_000, model="claude-haiku-5-5", counter=COUNTER)
    session.extend(CHAT)
    for notes in (
        fit(CHAT, model="claude-haiku-5-5", counter=COUNTER).report.notes,
        Context(300_000, model="claude-haiku-5-5", counter=COUNTER).add("h", CHAT).fit().report.notes,
        session.fit().report.notes,
    ):
        assert said in notes
    assert fit(CHAT, 90_000, model="claude-haiku-5-5", counter=COUNTER).report.notes == ()
    assert fit(CHAT, model="claude-opus-5-5", counter=COUNTER).report.notes == ()
    (note,) = fit(CHAT, model="gpt-5.5", counter=COUNTER).report.notes
    assert "'gpt-5.5' costs 2 times as much for all input and 1.5 times as much for output" in note


def test_a_budget_may_stay_below_the_next_tier(tmp_path: Path) -> None:
    """At every door: it is a word as others are."""
    seen: list[Any] = []
    trimmer = Trimmer[Any]("tier", format="openai_chat", on_fitted=seen.append, options={"counter": COUNTER})
    trimmer.fit(CHAT, model="gpt-5.5")
    session = Session("tier", model="gpt-5.5", counter=COUNTER)
    session.extend(CHAT)
    policy = load_policy({"budget": "tier", "model": "gpt-5.5", "blocks": [{"name": "history"}]})
    path = tmp_path / "chat.json"
    path.write_text(json.dumps(CHAT), encoding="utf-8")
    given = ["fit", str(path), "--budget", "tier", "--model", "gpt-5.5", "--counter", "chars:1", "--report"]
    told = json.loads(CliRunner().invoke(cli.command(), given).stdout)["report"]
    rooms = [
        fit(CHAT, "tier", model="gpt-5.5", counter=COUNTER).report.input_tokens,
        fit(CHAT, 9_000, model="gpt-5.5", counter=COUNTER).at("tier").report.input_tokens,
        policy.clone(counter=COUNTER).replace("history", CHAT).fit().report.input_tokens,
        seen[0].report.input_tokens,
        session.budget_tokens,
        told["input_tokens"],
    ]
    assert rooms == [272_000] * 6
    assert fit(CHAT, "Tier ", model="qwen3-coder-plus", counter=COUNTER).report.input_tokens == 32_000


def test_it_stays_below_by_what_counts_may_be_off() -> None:
    """Where the counter says how far that is; a price tier that is passed by one token doubles the bill."""
    chat = [{"role": "user", "content": "Which tea, and why? " * 20} for _ in range(9)]
    report = fit(chat, "tier", model="claude-haiku-5-5").report
    assert 0 < report.margin_tokens < 20_000
    assert report.input_tokens + report.margin_tokens == 100_000
    assert fit(chat, "tier", model="claude-haiku-5-5", counter=EstimateCounter()).report.margin_tokens == 0


def test_a_model_without_a_tier_has_no_such_budget() -> None:
    """Nor one whose tier is above what it takes, or nobody's."""
    for model in ("gpt-5", "claude-opus-5-5", "llama-3.3"):
        with pytest.raises(ConfigurationError, match=f"'{model}' has no known tier"):
            fit(CHAT, "tier", model=model, counter=COUNTER)
    with pytest.raises(ConfigurationError, match="no model is named"):
        fit(CHAT, "tier")
    with pytest.raises(ConfigurationError, match="no model is named"):
        Budget.of("tier")


def test_replay_prices_calls_by_their_tier() -> None:
    """A call that passes it costs twice as much."""
    flat = CachePricing(read=1.0, write=1.0, min_prefix_tokens=0)
    tiered = CachePricing(read=1.0, write=1.0, min_prefix_tokens=0, tiers=(PriceTier(100_000, 2.0, 2.0),))
    for prices, factor in ((flat, 1), (tiered, 2)):
        calls = replay(CHAT, "none", counter=COUNTER, pricing=prices).calls
        assert calls[-1].price == calls[-1].tokens * factor
        assert calls[0].price == calls[0].tokens


def test_the_cheapest_cut_is_deeper_where_a_full_room_is_dearer() -> None:
    """What is written again costs the tier's price there."""
    room = {"room_tokens": 300_000, "fixed_tokens": 0}
    plain, dear = Cheapest(pricing="openai"), Cheapest(pricing="gpt-5.5")
    assert dear.free_share(1_000, **room) == pytest.approx(plain.free_share(1_000, **room) * 2**0.5)
    below = {"room_tokens": 200_000, "fixed_tokens": 0}
    assert dear.free_share(1_000, **below) == plain.free_share(1_000, **below)
    for name in ("deepseek-chat", "grok-4.7", "kimi-k3", "mistral-large-latest", "o4-mini", "qwen3-max"):
        assert Cheapest(pricing=name).to_dict()["pricing"] == name


def test_the_command_line_lists_limits_and_tiers() -> None:
    """For programs and for people."""
    (row,) = json.loads(CliRunner().invoke(cli.command(), ["models", "gpt-5.5"]).stdout)
    assert (row["window_tokens"], row["input_tokens"]) == (1_050_000, 922_000)
    assert row["price_tiers"] == [{"above_tokens": 272_000, "input": 2.0, "output": 1.5}]
    assert (row["source"], row["checked"]) == (facts_for("gpt-5.5").source, facts_for("gpt-5.5").checked)
    text = CliRunner().invoke(cli.command(), ["models", "gpt-5.5", "gpt-4o", "--output", "text"]).stdout
    assert "1,050,000  922,000  128,000  272k x 2" in text
    assert "128,000        -   16,384  -" in text


def test_prices_of_a_model_nobody_knows_say_whose_they_are(tmp_path: Path) -> None:
    """What is known, and a row by its name, say nothing."""
    path = tmp_path / "chat.json"
    path.write_text(json.dumps(CHAT[:3]), encoding="utf-8")
    given = ["replay", str(path), "--budget", "90k", "--counter", "chars:1", "--pricing"]
    found = CliRunner().invoke(cli.command(), [*given, "gpt-7-nova"])
    assert found.exit_code == 0
    assert "model 'gpt-7-nova' is not known: by its name it is priced as openai-gpt-5.6" in found.stderr
    for known in ("gpt-5.5", "deepseek", "anthropic-1h"):
        assert CliRunner().invoke(cli.command(), [*given, known]).stderr == ""
