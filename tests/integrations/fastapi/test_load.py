"""A slice of the load test of the web app; `load.py` runs it at size."""

from __future__ import annotations

import asyncio
import random

import httpx
import pytest

from tests.integrations.fastapi import load
from tests.loopback import JSONHandler, loopback


@pytest.mark.parametrize("kind", ["sqlite", "postgres", "redis"])
def test_many_users_lose_nothing_and_send_nothing_invalid(kind: str) -> None:
    """Ten users of two workers ask, stop, ask anew, use two tabs; logs are held against what they saw."""
    outcome = load.run(kind, users=10, messages=4, at_once=10, alone=0)
    assert (outcome.lost, outcome.invalid, outcome.over) == ([], 0, 0)
    assert outcome.asked == 40
    assert min(outcome.stopped, outcome.anew) > 0
    assert outcome.answered >= outcome.asked - outcome.stopped - sum(outcome.refused.values())
    assert outcome.failures == []


@pytest.mark.parametrize("status", [500, 503])
def test_a_load_that_is_refused_fails_and_ends(status: int) -> None:
    """An app that always has an error is no success, and one that is never there is not asked for ever."""
    handler = type("_", (_Refusal,), {"status": status})
    with loopback(handler) as address:
        outcome = asyncio.run(_asked(address))
    assert [one.partition(": ")[2][:3] for one in outcome.failures] == [str(status)]
    assert outcome.again == (load.TRIES if status == 503 else 0)


class _Refusal(JSONHandler):
    status: int

    def do_POST(self) -> None:
        self.received()
        self.answer(self.status, {"detail": "no"})


async def _asked(address: str) -> load.Outcome:
    outcome = load.Outcome()
    async with httpx.AsyncClient(base_url=address, trust_env=False) as client:
        await load.User([client], "ada", outcome, random.Random(0)).ask(1)
    return outcome
