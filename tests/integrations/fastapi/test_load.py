"""A slice of the load test of the web app; `load.py` runs it at size."""

from __future__ import annotations

import pytest

from tests.integrations.fastapi import load


@pytest.mark.parametrize("kind", ["sqlite", "postgres", "redis"])
def test_many_users_lose_nothing_and_send_nothing_invalid(kind: str) -> None:
    """Ten users of two workers ask, stop, ask anew, use two tabs; logs are held against what they saw."""
    outcome = load.run(kind, users=10, messages=4, at_once=10, alone=0)
    assert (outcome.lost, outcome.invalid, outcome.over) == ([], 0, 0)
    assert outcome.asked == 40
    assert min(outcome.stopped, outcome.anew) > 0
    assert outcome.answered >= outcome.asked - outcome.stopped - sum(outcome.refused.values())
    assert {told[:3] for told in outcome.refused} <= {"409"}
