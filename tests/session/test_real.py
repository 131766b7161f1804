"""Real conversations, with orders in between: the session is what is said plainly there too."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

from tests.complexity.real_conversations import concatenated
from tests.properties.test_real import SOURCES, coding_session, conversations_of
from tests.session.plain import Settings
from tests.session.playing import Operation, play
from trimtab import BudgetExceededError, Session, counter_for, validate
from trimtab.stores import MemoryStore

MOST = 70
"""Messages of one conversation: the model takes quadratic time."""


def with_orders(messages: list[Any], seed: int) -> list[Operation]:
    """Say a conversation, some of it in one step, with an order after every fifth message or so."""
    draw = random.Random(seed)
    operations: list[Operation] = []
    at = 0
    while at < len(messages):
        size = draw.choice((1, 1, 1, 2, 4))
        part = messages[at : at + size]
        operations.append(("add", part[0]) if size == 1 else ("extend", part))
        at += size
        if draw.random() < 0.25:
            orders: list[Operation] = [
                ("budget", draw.randint(300, 1_500)),
                ("pin", draw.randrange(999)),
                ("unpin", draw.randrange(999)),
                ("undo", draw.randrange(3)),
                ("fail", draw.random() < 0.5),
                ("reopen",),
                ("restore",),
                ("fork",),
                ("refresh",),
            ]
            operations.append(draw.choice(orders))
    return operations


def settings_for(seed: int) -> Settings:
    """Take turns with modes, with and without a summarizer."""
    return Settings(
        budget=(350, 700, 1_200)[seed % 3],
        system="You are helpful." if seed % 2 else None,
        mode=("incremental", "rolling", "anchored")[seed % 3],
        summarizes=seed % 4 != 3,
        pending_first=seed % 5 == 4,
        ratio=(0.5, 1.0, 0.7, 0.5)[seed % 4],
    )


@pytest.mark.long
@pytest.mark.parametrize("name", SOURCES)
def test_a_session_of_a_real_conversation_is_what_is_said_plainly(data_dir: Path, name: str) -> None:
    """Log, states, hooks, views, counts; sync and async in turn."""
    kinds = set[str]()
    talk = concatenated(data_dir / f"{name}.jsonl", 5 * MOST)
    for seed in range(5):
        operations = with_orders(talk[seed * MOST : (seed + 1) * MOST], seed)
        colour = "async" if seed % 3 == 2 else "sync"
        played = play(settings_for(seed), operations, colour=colour, counter="estimate")
        kinds.update(event.kind for event in played.log())
    assert {"message", "evicted"} <= kinds


@pytest.mark.long
def test_a_long_coding_session_is_what_is_said_plainly(data_dir: Path) -> None:
    """Parallel calls, of which one is never answered."""
    messages = coding_session(data_dir)[:100]
    for seed in range(2):
        play(settings_for(seed), with_orders(messages, seed))


@pytest.mark.parametrize("name", SOURCES)
def test_views_of_real_conversations_are_valid_and_fit_by_real_counts(data_dir: Path, name: str) -> None:
    """SPEC A1 and A2 by o200k, after every message; what is in the log is what was said."""
    counter = counter_for("gpt-4o")
    for at, messages in enumerate(conversations_of(data_dir, name)[:6]):
        system = [message for message in messages if message["role"] == "system"]
        rest = [message for message in messages if message["role"] != "system"][:MOST]
        budget = max(400, counter.count(system) + counter.count(messages) // (2 + at % 3))
        session = Session(
            budget,
            counter=counter,
            summarizer=None if at % 2 else lambda messages: f"It was about {len(messages)} things.",
        )
        faults = {(one.rule, one.call_id) for one in validate(rest)}
        for message in rest:
            session.add(message)
            try:
                fitted = session.fit()
            except BudgetExceededError:  # what was just said is longer than the budget
                assert counter.count([message]) + counter.count([latest_user(rest, message)]) > budget
                continue
            assert counter.count(fitted.messages) <= budget
            assert {(one.rule, one.call_id) for one in validate(fitted.messages)} <= faults | open_calls(
                fitted
            )
        assert [event.message for event in session.history()] == rest


def latest_user(messages: list[Any], newest: Any) -> Any:
    """Find what the user said last, by the time of a message."""
    at = next(at for at, message in enumerate(messages) if message is newest)
    return [message for message in messages[: at + 1] if message["role"] == "user"][-1]


def open_calls(fitted: Any) -> set[tuple[str, str | None]]:
    """Calls whose results are still to come: no fault."""
    return {(one.rule, one.call_id) for one in validate(fitted.messages) if one.rule == "open_call"}


def test_64_tasks_keep_64_real_conversations(data_dir: Path) -> None:
    """One store, one loop; each session has all of its own messages and no other."""
    talks = [messages[:20] for messages in conversations_of(data_dir, "glaive_toolcall_en")]
    store = MemoryStore()

    async def keep(at: int) -> None:
        session = Session(300, store=store, id=f"s{at}")
        for message in talks[at % len(talks)]:
            await session.aadd(message)
        kept = [event.message async for event in session.ahistory()]
        assert kept == talks[at % len(talks)]

    async def all_of_them() -> None:
        await asyncio.gather(*map(keep, range(64)))

    asyncio.run(all_of_them())
    assert len(store.sessions()) == 64
