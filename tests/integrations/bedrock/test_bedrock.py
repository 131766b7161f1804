"""`with_budget` around boto3's client of Bedrock: what is sent, what comes back, and what is left alone."""

from __future__ import annotations

from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from tests.integrations.bedrock.play import BUDGET_TOKENS, MODEL, client_of, play
from tests.integrations.loops import LOOPS, Loop
from tests.integrations.refusing import WORDS, refusing
from tests.integrations.upstream import hold
from tests.judge.server import Provider, provider
from trimtab import Budget, Context, Fitted
from trimtab.errors import BudgetExceededError, ConfigurationError
from trimtab.integrations.bedrock import with_budget


def _talk(turns: int) -> list[Any]:
    said: list[Any] = []
    for turn in range(turns):
        said += [
            {"role": "user", "content": [{"text": f"question {turn}"}]},
            {"role": "assistant", "content": [{"text": "It is sunny. " * 40}]},
        ]
    return [*said, {"role": "user", "content": [{"text": "And now?"}]}]


TALK = _talk(30)
OK: dict[str, Any] = {"modelId": MODEL, "system": [{"text": "Be brief."}], "messages": TALK}


def _sent(served: Provider) -> int:
    """Count the messages of the last request."""
    return len(served.bodies[-1][1]["messages"])


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.name)
def test_every_request_of_a_loop_is_valid_within_the_budget_and_shows_what_matters(loop: Loop) -> None:
    """Claude's tokens are estimated, and what was billed puts that right: most of the budget is used."""
    score, said = play(loop, BUDGET_TOKENS)
    hold(score, loop, reuse=0 if loop.huge_every else 0.7)
    assert len(said) > loop.model_calls


def test_both_ways_to_ask_are_fitted_and_the_client_given_is_as_it_was() -> None:
    """Converse and its stream, with all that a stream of boto3's has."""
    with provider() as served:
        plain = client_of(served)
        client = with_budget(plain, 600)
        answer = client.converse(**OK)
        assert answer["output"]["message"]["role"] == "assistant"
        assert 1 < _sent(served) < 30
        assert served.bodies[-1][1]["system"] == [{"text": "Be brief."}]
        stream = client.converse_stream(**OK)["stream"]
        events = [*stream]
        assert 1 < _sent(served) < 30
        assert {"messageStart", "messageStop", "metadata"} <= {key for event in events for key in event}
        stream.close()
        plain.converse(**OK)
        assert _sent(served) == len(TALK)
        assert type(client) is type(plain)
        assert client.meta is plain.meta
        assert client.can_paginate("converse") is False
        assert client.exceptions.ValidationException is plain.exceptions.ValidationException


@pytest.mark.parametrize("way", ["converse", "converse_stream"])
def test_what_was_billed_is_the_count_of_the_next_call(way: str) -> None:
    """Of an answer, and of the event of a stream that says it."""
    seen: list[Fitted[Any]] = []
    with refusing("", limit_tokens=10**6) as served:
        client = with_budget(client_of(served), Budget(100_000), on_fitted=seen.append)
        for _ in range(2):
            [*getattr(client, way)(**OK).get("stream", ())]
    estimated, learned = (one.report.tokens_after for one in seen)
    billed = served.sizes[0]
    assert billed <= learned <= billed + 5 < estimated  # sizes of messages are whole numbers


def test_what_is_refused_as_too_long_is_sent_once_more() -> None:
    """By what boto3 raises; without retry_overflow it is the caller's."""
    for way in ("converse", "converse_stream"):
        seen: list[Fitted[Any]] = []
        with refusing(WORDS["bedrock"], limit_tokens=4_000) as served:
            client = with_budget(client_of(served), 50_000, retry_overflow=True, on_fitted=seen.append)
            assert getattr(client, way)(**OK)
            assert (len(served.bodies), served.refused, len(seen)) == (2, 1, 2)
            assert seen[1].report.notes[-1].startswith("Sent once more, shorter")
            with pytest.raises(ClientError, match="Input is too long"):
                getattr(with_budget(client_of(served), 50_000), way)(**OK)


def test_what_is_no_client_of_bedrock_is_refused() -> None:
    """Each with what to give."""
    other = boto3.client("bedrock", region_name="us-east-1")
    for wrong in (other, "bedrock-runtime", object()):
        with pytest.raises(
            ConfigurationError, match=r"client must be from boto3\.client\('bedrock-runtime'\)"
        ):
            with_budget(wrong, 600)


def test_what_cannot_fit_is_not_sent_and_a_policy_has_its_blocks() -> None:
    """A Context says which blocks there are; its system text is sent beside the messages."""
    with provider() as served:
        with pytest.raises(BudgetExceededError):
            with_budget(client_of(served), 5).converse(**OK)
        assert served.bodies == []
        context = Context(900).add("facts", "The user lives in Utrecht.").add("history", [])
        with_budget(client_of(served), context).converse(**OK)
        assert "Utrecht" in str(served.bodies[-1][1])
        assert 3 < _sent(served) < 31
