"""Content that Gemini's server holds (`cached_content`), and what was replaced on a client."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from google.genai import types

from tests.integrations.google_genai.play import MODEL, client_of, talk_of
from tests.judge.server import answered
from tests.loopback import JSONHandler, loopback
from trimtab import Budget, EstimateCounter, Fitted
from trimtab.errors import BudgetExceededError, ConfigurationError
from trimtab.integrations.google_genai import with_budget

HELD_TOKENS = 40_000
NAME = "cachedContents/weather"
CACHED = types.GenerateContentConfig(cached_content=NAME)


class _Gemini:
    address = ""

    def __init__(self) -> None:
        self.billed: list[int] = []
        self.sent: list[list[Any]] = []
        self.says_held = True


@contextmanager
def _gemini() -> Iterator[_Gemini]:
    """Serve Gemini and its caches: the content of one has 40,000 tokens, which are billed with the rest."""
    state = _Gemini()

    class Answering(JSONHandler):
        def do_POST(self) -> None:
            body = self.received()
            if "cachedContents" in self.path:
                self.answer(200, {"name": NAME, "usageMetadata": {"totalTokenCount": HELD_TOKENS}})
                return
            tokens = EstimateCounter().with_format("gemini").count(body["contents"])
            held = HELD_TOKENS if "cachedContent" in body else 0
            state.billed.append(tokens + held)
            state.sent.append(body["contents"])
            usage = {"promptTokenCount": tokens + held}
            if held and state.says_held:
                usage["cachedContentTokenCount"] = held
            self.answer(200, {**answered("gemini", MODEL), "usageMetadata": usage})

        def do_GET(self) -> None:
            self.answer(200, {"name": NAME, "usageMetadata": {"totalTokenCount": HELD_TOKENS}})

    with loopback(Answering) as state.address:
        yield state


def test_what_the_server_holds_is_counted_from_its_first_bill_on() -> None:
    """One warning says so; other conversations with the cache know it, and calls without it do not pay."""
    seen: list[Fitted[Any]] = []
    limit = HELD_TOKENS + 1_000
    with _gemini() as served:
        client = with_budget(client_of(served), Budget(limit), on_fitted=seen.append)
        with pytest.warns(UserWarning, match="cachedContent='cachedContents/weather'.*caches.get"):
            client.models.generate_content(model=MODEL, contents=talk_of(1), config=CACHED)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for turns in range(2, 40):
                client.models.generate_content(model=MODEL, contents=talk_of(turns), config=CACHED)
            client.models.generate_content(model=MODEL, contents="Another question.", config=CACHED)
            another = seen[-1].report.tokens_after
            client.models.generate_content(model=MODEL, contents="Another question.")
    assert max(served.billed) <= limit
    assert max(served.billed) > HELD_TOKENS + 700
    assert abs(another - served.billed[-2]) < 10
    assert abs(seen[-1].report.tokens_after - served.billed[-1]) < 10


@pytest.mark.parametrize("way", ["create", "get"])
def test_what_the_server_said_of_a_cache_is_known_before_the_first_bill(way: str) -> None:
    """A cache that was made or asked for by this client: its size is in the answer, and is not asked for."""
    with _gemini() as served, warnings.catch_warnings():
        warnings.simplefilter("error")
        for budget in (HELD_TOKENS + 1_000, HELD_TOKENS):
            client = with_budget(client_of(served), Budget(budget))
            if way == "create":
                client.caches.create(model=MODEL, config=types.CreateCachedContentConfig(contents=talk_of(3)))
            else:
                client.caches.get(name=NAME)
            if budget > HELD_TOKENS:
                client.models.generate_content(model=MODEL, contents=talk_of(40), config=CACHED)
            else:
                with pytest.raises(BudgetExceededError):
                    client.models.generate_content(model=MODEL, contents=talk_of(1), config=CACHED)
    assert len(served.billed) == 1
    assert HELD_TOKENS + 500 < served.billed[0] <= HELD_TOKENS + 1_000


def test_a_server_that_does_not_say_what_it_holds_teaches_by_the_whole_bill() -> None:
    """The second bill that is far above the count is believed."""
    limit = HELD_TOKENS + 1_000
    with _gemini() as served:
        served.says_held = False
        client = with_budget(client_of(served), Budget(limit))
        with pytest.warns(UserWarning, match="cachedContent"):
            client.models.generate_content(model=MODEL, contents=talk_of(1), config=CACHED)
        for turns in range(2, 40):
            client.models.generate_content(model=MODEL, contents=talk_of(turns), config=CACHED)
    assert max(served.billed) <= limit
    assert max(served.billed) > HELD_TOKENS + 500


def test_a_method_that_was_replaced_on_the_models_is_refused() -> None:
    """What replaced it asks by the bare client, and no budget would be held; that of another part is kept."""
    with _gemini() as served:
        for part in ("models", "aio.models"):
            bare: Any = client_of(served)
            owner = bare.models if part == "models" else bare.aio.models
            owner.generate_content = lambda **given: None
            with pytest.raises(ConfigurationError, match=rf"client\.{part}\.generate_content was replaced"):
                with_budget(bare, 600)
        bare = client_of(served)
        bare.tenant, bare.files.upload = "north", lambda **given: "uploaded"
        client: Any = with_budget(bare, 600)
        assert (client.tenant, client.files.upload()) == ("north", "uploaded")
        client.models.generate_content(model=MODEL, contents=talk_of(30))
        assert len(served.sent[-1]) < 40
