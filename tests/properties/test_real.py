"""SPEC A over real conversations, from 200 tokens to everything, under every strategy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.properties import claims, oracle
from tests.properties.cases import DEFAULT, STRATEGIES, WORDS, run, total
from tests.properties.contexts import Asked, Case, Piece
from tests.properties.test_context import EVERY, it_is_what_is_said_plainly
from tests.properties.test_tail import BY_CUTS, assert_same
from trimtab import SlidingWindow, counter_for
from trimtab.strategies import CUT_MARKER
from trimtab.testing import check_strategy

SOURCES = {
    "tau_airline_gpt4o": 40,
    "swe_agent_trajectories": 2,
    "glaive_toolcall_en": 30,
    "glaive_toolcall_zh": 30,
    "pydantic_ai_chats": 8,
}
"""File of ../shared/data, and which of its conversations: every n-th."""

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "agent_session.json"

LIMITS = (200, 1_000, 3_000, 8_000)


def conversations_of(data_dir: Path, name: str) -> list[list[Any]]:
    """Read every n-th conversation of a file."""
    lines = (data_dir / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["messages"] for line in lines[:: SOURCES[name]]]


def coding_session(data_dir: Path) -> list[Any]:
    """Read the long coding session, as far as its 240th message."""
    line = (data_dir / "pi_coding_sessions.jsonl").read_text(encoding="utf-8").splitlines()[0]
    messages: list[Any] = json.loads(line)["messages"]
    return messages[:240]


def check_all(messages: list[Any], counter: Any, *, step: int) -> int:
    """Check every claim for every limit; strategies take turns, the default is always tried."""
    whole = total(messages, counter)
    chosen = [limit for limit in LIMITS if limit < whole] + [whole // 2, whole - 1, whole]
    tried = 0
    for at, limit in enumerate(chosen):
        for strategy in (DEFAULT, *STRATEGIES[at % step :: step]):
            case = run(messages, max(1, limit), strategy, counter)
            for claim in claims.EVERY:
                claim(case)
            tried += 1
    return tried


@pytest.mark.few(1)
@pytest.mark.parametrize("name", SOURCES)
def test_every_claim_holds_for_real_conversations(data_dir: Path, name: str) -> None:
    """A1 to A11 by o200k counts, and by words as a black box."""
    tried = 0
    for messages in conversations_of(data_dir, name):
        tried += check_all(messages, counter_for("gpt-4o"), step=11)
        tried += check_all(messages, WORDS.count, step=17)
    assert tried >= 30


@pytest.mark.long
def test_every_claim_holds_for_a_long_coding_session(data_dir: Path) -> None:
    """240 messages with parallel calls, of which one is never answered."""
    assert check_all(coding_session(data_dir), counter_for("gpt-4o"), step=23) >= 12


def test_every_claim_holds_for_the_recorded_agent_session() -> None:
    """The example that comes with the package."""
    if not EXAMPLE.exists():
        pytest.skip(f"{EXAMPLE} is not recorded yet")
    data = json.loads(EXAMPLE.read_text(encoding="utf-8"))
    messages = data["messages"] if isinstance(data, dict) else data
    assert check_all(messages, counter_for("gpt-4o"), step=23) >= 12


def test_reading_only_the_end_of_a_real_conversation_changes_nothing(data_dir: Path) -> None:
    """The lazy way and the grouped way agree, at every size."""
    talks = [*conversations_of(data_dir, "tau_airline_gpt4o"), coding_session(data_dir)]
    for messages in talks:
        whole = WORDS.count(messages)
        for percent in (10, 60, 99):
            for strategy in BY_CUTS[percent % 3 :: 3]:
                assert_same(messages, whole * percent // 100, strategy, WORDS)


def test_the_default_raises_exactly_when_it_must_on_real_conversations(data_dir: Path) -> None:
    """A4: at the least that must stay it fits, at one token less it does not."""
    counter = counter_for("gpt-4o")
    for messages in conversations_of(data_dir, "tau_airline_gpt4o"):
        least = oracle.least_tokens(messages, counter.count, CUT_MARKER)
        assert run(messages, least, DEFAULT, counter).error is None
        error = run(messages, least - 1, DEFAULT, counter).error
        assert error is not None
        assert error.needed_tokens == least


def test_the_default_keeps_the_contract_on_real_conversations(data_dir: Path) -> None:
    """`check_strategy` takes samples of one's own."""
    check_strategy(DEFAULT, samples=conversations_of(data_dir, "swe_agent_trajectories")[:3])


def blocks_of(messages: list[Any], parts: int, strategies: tuple[Any, ...]) -> list[Piece]:
    """Cut a conversation into blocks of one length, so that units may span, with ranks, caps and floors."""
    step = -(-len(messages) // parts)
    return [
        Piece(
            place=at,
            start=start,
            messages=messages[start : start + step],
            options={"priority": at % 3, **({"max_ratio": 0.4}, {"min_ratio": 0.2}, {})[at % 3]},
            strategy=Asked(strategies[at % len(strategies)]),
        )
        for at, start in enumerate(range(0, len(messages), step))
    ]


@pytest.mark.parametrize("name", SOURCES)
def test_every_claim_of_a_context_holds_for_real_conversations(data_dir: Path, name: str) -> None:
    """SPEC A and D, from 5 % of a conversation to all of it, in two to five blocks."""
    tried = 0
    for at, messages in enumerate(conversations_of(data_dir, name)[:4]):
        for counter in (counter_for("gpt-4o"), WORDS.count):
            whole = total(messages, counter)
            for percent in (5, 35, 80, 100):
                strategies = (SlidingWindow(), *STRATEGIES[(at + percent) % 7 :: 7])
                pieces = blocks_of(messages, 2 + at % 4, strategies)
                case = Case(pieces, max(1, whole * percent // 100), counter)
                for claim in (it_is_what_is_said_plainly, *EVERY):
                    claim(case)
                tried += 1
    assert tried >= 12
