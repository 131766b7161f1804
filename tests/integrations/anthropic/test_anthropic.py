"""`with_budget` around Anthropic's clients: what is sent, what comes back, and what is left alone."""

from __future__ import annotations

import asyncio
from typing import Any

import anthropic
import pytest

from tests.integrations.anthropic.play import BUDGET_TOKENS, MODEL, async_client_of, client_of, play
from tests.integrations.loops import LOOPS, Loop
from tests.integrations.upstream import hold
from tests.judge.server import Provider, provider
from trimtab import Budget, Context, Fitted
from trimtab.errors import BudgetExceededError, ConfigurationError
from trimtab.integrations.anthropic import with_budget

pytestmark = pytest.mark.filterwarnings("ignore:The model:DeprecationWarning")


def _talk(turns: int) -> list[Any]:
    said: list[Any] = []
    for turn in range(turns):
        said += [
            {"role": "user", "content": f"question {turn}"},
            {"role": "assistant", "content": "It is sunny. " * 20},
        ]
    return [*said, {"role": "user", "content": "And now?"}]


TALK = _talk(30)
OK: dict[str, Any] = {"model": MODEL, "max_tokens": 100, "system": "Be brief.", "messages": TALK}


def _sent(served: Provider) -> int:
    """Count the messages of the last request."""
    return len(served.bodies[-1][1]["messages"])


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.name)
def test_every_request_of_a_loop_is_valid_within_the_budget_and_shows_what_matters(loop: Loop) -> None:
    """Claude's tokens are estimated, and what was billed puts that right: most of the budget is used."""
    score, said = play(loop, BUDGET_TOKENS)
    hold(score, loop, reuse=0 if loop.huge_every else 0.7)
    assert len(said) > loop.model_calls


def test_without_bills_nothing_is_over() -> None:
    """A server that reports no usage is counted for by estimate, which errs high: less is used and reused."""
    score, _ = play(LOOPS[1], BUDGET_TOKENS, bills=False)
    hold(score, LOOPS[1], fill=0.60, reuse=0.65)


def test_every_way_to_ask_is_fitted() -> None:
    """Created, parsed, streamed, raw, in beta, by `with_options` and by `copy`."""
    with provider() as served:
        client = with_budget(client_of(served), 600)
        asks = [
            lambda: client.messages.create(**OK),
            lambda: list(client.messages.create(**OK, stream=True)),
            lambda: client.messages.with_raw_response.create(**OK).parse(),
            lambda: client.beta.messages.create(**OK),
            lambda: client.with_options(timeout=9).messages.create(**OK),
            lambda: client.copy().with_options().messages.create(**OK),
        ]
        for number, ask in enumerate(asks, start=1):
            ask()
            assert len(served.bodies) == number
            assert 3 < _sent(served) < 30
            assert served.bodies[-1][1]["system"] == "Be brief."
        for messages in (client.messages, client.beta.messages):
            with messages.stream(**OK) as stream:
                assert stream.get_final_text() == "ok"
            assert 3 < _sent(served) < 30


def test_what_counts_and_what_is_no_call_passes_as_it_is() -> None:
    """`count_tokens` counts what it is given."""
    with provider() as served:
        client = with_budget(client_of(served), 600)
        client.messages.count_tokens(model=MODEL, messages=TALK)
        assert _sent(served) == len(TALK)
        with pytest.raises(anthropic.APIStatusError):
            client.models.list()


def test_async_clients_are_fitted() -> None:
    """Many at once, streamed ones too."""

    async def run(served: Provider) -> None:
        async with async_client_of(served) as bare:
            client = with_budget(bare, 600)
            await asyncio.gather(*(client.messages.create(**OK) for _ in range(8)))
            async for _ in await client.messages.create(**OK, stream=True):
                pass
            async with client.with_options(timeout=9).messages.stream(**OK) as stream:
                assert await stream.get_final_text() == "ok"

    with provider() as served:
        asyncio.run(run(served))
        assert len(served.bodies) == 10
        assert all(3 < len(body["messages"]) < 30 for _, body in served.bodies)


def test_a_request_that_cannot_fit_is_not_sent() -> None:
    """What must stay is larger than the budget: the error has the numbers."""
    with provider() as served:
        client = with_budget(client_of(served), 5)
        with pytest.raises(BudgetExceededError):
            client.messages.create(**OK)
        with pytest.raises(BudgetExceededError), client.messages.stream(**OK):
            pass
        assert served.bodies == []


def test_the_client_given_stays_as_it_was() -> None:
    """The one that comes back is of its class; marks are set where they are asked for."""
    with provider() as served:
        bare = client_of(served)
        client = with_budget(bare, 600, breakpoints=True)
        assert type(client) is anthropic.Anthropic
        client.messages.create(**OK)
        assert "cache_control" in str(served.bodies[-1][1])
        bare.messages.create(**OK)
        assert _sent(served) == len(TALK)
        assert "cache_control" not in str(served.bodies[-1][1])


def test_a_budget_is_said_in_every_way() -> None:
    """A share is that of the window of the model; without a budget it is the window less `max_tokens`."""
    seen: list[Fitted[Any]] = []
    with provider() as served:
        for budget in (640, Budget(700, output_reserve=60), "0.32%", None):
            with_budget(client_of(served), budget, on_fitted=seen.append).messages.create(**OK)
        assert [one.report.input_tokens for one in seen] == [640, 640, 640, 199_900]
        nothing: Any = object()
        with pytest.raises(ConfigurationError, match="Anthropic or AsyncAnthropic"):
            with_budget(nothing, 600)


def test_a_context_gives_its_blocks_to_each_request() -> None:
    """The messages fill its history; the other blocks stand where the Context puts them."""
    context = Context(Budget(900), model=MODEL)
    context.add("facts", "The user lives in Utrecht.", priority=90)
    context.add("history", [], priority=50)
    with provider() as served:
        with_budget(client_of(served), context).messages.create(**OK)
        body = served.bodies[-1][1]
    assert str(body).count("Utrecht") == 1
    assert len(body["messages"]) < len(TALK)


def test_the_system_text_of_a_context_is_sent() -> None:
    """That of a request stands before it, and both are system text of the request."""
    blocks = Context(Budget(9_000), model=MODEL).add("system", "Answer in verse.").add("history", [])
    beside = Context(Budget(9_000), model=MODEL, system="Answer in verse.").add("history", [])
    own = {**OK, "system": "Be kind."}
    plain = {name: value for name, value in OK.items() if name != "system"}
    with provider() as served:
        for context in (blocks, beside):
            with_budget(client_of(served), context).messages.create(**plain)
            assert served.bodies[-1][1]["system"] == "Answer in verse."
        with_budget(client_of(served), blocks).messages.create(**own)
        assert served.bodies[-1][1]["system"] == "Be kind.\n\nAnswer in verse."
        with pytest.raises(ConfigurationError, match="system is given twice"):
            with_budget(client_of(served), beside).messages.create(**own)
