"""Counting by a provider's endpoint: real clients against a server on this machine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.builders import assistant, user, words
from tests.count_server import PATIENCE_SECONDS, CountServer, count_server, tokens_of
from trimtab import Budget, ConfigurationError, EstimateCounter, afit, fit
from trimtab.counting import CountQuestion, CountRequest, RemoteCounter, UsageBaseline
from trimtab.errors import CountingError
from trimtab.testing import WordCounter, check_counter

Maker = Callable[[CountServer], Any]
WORDS = WordCounter()


@asynccontextmanager
async def anthropic_client(server: CountServer, **options: Any) -> AsyncIterator[Any]:
    """The client people have, pointed at this machine."""
    package = pytest.importorskip("anthropic")
    async with package.AsyncAnthropic(api_key="k", base_url=server.url, max_retries=0, **options) as client:
        yield client


@asynccontextmanager
async def openai_client(server: CountServer, **options: Any) -> AsyncIterator[Any]:
    """The client people have, pointed at this machine."""
    package = pytest.importorskip("openai")
    async with package.AsyncOpenAI(
        api_key="k", base_url=f"{server.url}/v1", max_retries=0, **options
    ) as client:
        yield client


@asynccontextmanager
async def google_client(server: CountServer) -> AsyncIterator[Any]:
    """The client people have, pointed at this machine."""
    package = pytest.importorskip("google.genai")
    client = package.Client(api_key="k", http_options={"base_url": server.url})
    try:
        yield client
    finally:
        await client.aio.aclose()
        client.close()


async def turned() -> None:
    """Let every task go as far as it can."""
    for _ in range(20):
        await asyncio.sleep(0)


TOOL = {"name": "search", "description": "looks things up", "input_schema": {"type": "object"}}


def test_anthropics_client_is_asked_with_the_whole_request() -> None:
    """System text and tools go with it; the count is the server's."""

    async def run(server: CountServer) -> int:
        async with anthropic_client(server) as client:
            counter = RemoteCounter.of(
                client,
                model="claude-sonnet-4-5",
                estimate=WORDS,
                options={"thinking": {"type": "enabled", "budget_tokens": 2_000}},
            )
            return await counter.count_request(
                CountRequest([user("how are you")], system="be brief", tools=[TOOL])
            )

    with count_server() as server:
        found = asyncio.run(run(server))
        (body,) = server.bodies
    assert body["path"] == "/v1/messages/count_tokens"
    assert body["model"] == "claude-sonnet-4-5"
    assert body["messages"] == [user("how are you")]
    assert (body["system"], body["tools"]) == ("be brief", [TOOL])
    assert body["thinking"]["budget_tokens"] == 2_000
    assert found == tokens_of({key: value for key, value in body.items() if key != "path"})


def test_openais_client_is_asked_with_items_and_instructions() -> None:
    """As the Responses API takes them."""

    async def run(server: CountServer) -> int:
        async with openai_client(server) as client:
            counter = RemoteCounter.of(client, model="gpt-5", estimate=WORDS)
            return await counter.count_request(CountRequest([user("how are you")], system="be brief"))

    with count_server() as server:
        assert asyncio.run(run(server)) == 5
        (body,) = server.bodies
    assert body["path"] == "/v1/responses/input_tokens"
    assert (body["input"], body["instructions"]) == ([user("how are you")], "be brief")
    assert "tools" not in body


def test_googles_client_is_asked_with_what_its_developer_api_takes() -> None:
    """System text as one more content; tools, which the endpoint refuses, by estimate."""
    content = {"role": "user", "parts": [{"text": "how are you"}]}
    tools = [{"functionDeclarations": [{"name": "search", "description": "looks up things"}]}]

    async def run(server: CountServer, tools: Any) -> int:
        async with google_client(server) as client:
            counter = RemoteCounter.of(client, model="gemini-2.5-flash", estimate=WORDS)
            return await counter.count_request(CountRequest([content], system="be brief", tools=tools))

    with count_server() as server:
        assert asyncio.run(run(server, None)) == 5
        (body,) = server.bodies
        assert body["path"].endswith("/models/gemini-2.5-flash:countTokens")
        assert [one["parts"] for one in body["contents"]] == [
            [{"text": "be brief"}],
            [{"text": "how are you"}],
        ]
        beside = WORDS.count_request(CountRequest([], tools=tools)) - WORDS.count([])
        assert beside > 0
        assert asyncio.run(run(server, tools)) == 5 + beside


def test_a_fit_keeps_the_providers_own_count_within_the_budget() -> None:
    """A1 under the count that will be billed, with few questions."""
    messages = [user("go on"), *(make(words(9)) for _ in range(150) for make in (assistant, user))]

    async def run(server: CountServer) -> Any:
        async with anthropic_client(server) as client:
            counter = RemoteCounter.of(client, model="m", estimate=EstimateCounter())
            return await afit(messages, 1_000, counter=counter, system=None), counter

    with count_server() as server:
        fitted, counter = asyncio.run(run(server))
        asked = len(server.bodies)
    billed = tokens_of({"messages": fitted.messages})
    assert fitted.report.tokens_after == billed
    assert 980 <= billed <= 1_000
    assert asked <= 12
    assert (counter.failures, counter.last_failure) == (0, None)
    assert fitted.report.exact
    assert fitted.report.counter == "m by its provider"


def test_what_fits_is_asked_about_once() -> None:
    """And not at all when it was asked before."""

    async def run(server: CountServer) -> None:
        async with openai_client(server) as client:
            counter = RemoteCounter.of(client, model="gpt-5", estimate=WORDS)
            for _ in range(3):
                await afit([user("a b c"), assistant("d")], 100, counter=counter)

    with count_server() as server:
        asyncio.run(run(server))
        assert len(server.bodies) == 1


def test_equal_questions_underway_are_one_and_no_more_than_allowed_are_at_once() -> None:
    """Twenty tasks, four different requests, two at a time."""
    inside = most = 0
    asked: list[int] = []

    async def ask(question: CountQuestion) -> int:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        asked.append(len(question.messages))
        await turned()
        inside -= 1
        return 7 * len(question.messages)

    async def run() -> list[int]:
        counter = RemoteCounter(ask, max_concurrent=2)
        return await asyncio.gather(*(counter.count([user()] * (1 + n % 4)) for n in range(20)))

    assert asyncio.run(run()) == [7 * (1 + n % 4) for n in range(20)]
    assert sorted(asked) == [1, 2, 3, 4]
    assert most == 2


def test_a_server_that_hangs_is_not_waited_for_and_the_report_says_so() -> None:
    """One wait a fit, not one a question; then the estimate answers, or the test never ends."""
    messages = [user("go on"), *(make(words(9)) for _ in range(50) for make in (assistant, user))]

    async def run(server: CountServer) -> Any:
        async with anthropic_client(server) as client:
            counter = RemoteCounter.of(client, model="m", estimate=WORDS, timeout_seconds=0.2)
            return await afit(messages, 300, counter=counter), counter

    with count_server() as server:
        server.hangs = True
        fitted, counter = asyncio.run(run(server))
    assert len(server.bodies) <= 1
    assert fitted.report.tokens_after == WORDS.count(fitted.messages) <= 300
    assert counter.failures >= 1
    assert "0.2 seconds" in counter.last_failure
    assert "now estimated" in fitted.report.counter
    assert not fitted.report.exact


def test_a_refusal_is_estimated_and_told_and_the_provider_is_asked_again_later() -> None:
    """An error of the client's is a failure like any other."""

    async def run(server: CountServer) -> None:
        async with openai_client(server) as client:
            counter = RemoteCounter.of(client, model="gpt-5", estimate=WORDS)
            server.status = 503
            assert await counter.count([user("a b c")]) == WORDS.count([user("a b c")])
            assert await counter.count([user("a b c")]) == WORDS.count([user("a b c")])
            assert (len(server.bodies), counter.failures, counter.exact) == (0, 2, False)
            assert "InternalServerError" in str(counter.last_failure)

    with count_server() as server:
        asyncio.run(run(server))


def test_once_its_silence_is_over_the_provider_is_asked_again() -> None:
    """Here it lasts no time; what happened is still to be seen."""
    answers: list[int | None] = [None, 4]

    async def ask(question: CountQuestion) -> int:
        answer = answers.pop(0)
        if answer is None:
            raise OSError("no network")
        return answer

    async def run() -> None:
        counter = RemoteCounter(ask, name="theirs", estimate=WORDS, retry_after_seconds=0)
        assert await counter.count([user("a b c")]) == WORDS.count([user("a b c")])
        assert counter.failures == 1
        assert await counter.count([user("a b c d")]) == 4
        assert (answers, counter.exact, counter.name) == ([], True, "theirs")
        assert "no network" in str(counter.last_failure)

    asyncio.run(run())


@pytest.mark.parametrize("answer", [True, -1, 1.5, "9", None], ids=repr)
def test_what_is_no_count_is_a_failure(answer: Any) -> None:
    """Nonsense is not taken for a count."""

    async def ask(question: CountQuestion) -> Any:
        return answer

    counter = RemoteCounter(ask, estimate=WORDS)
    assert asyncio.run(counter.count([user("a b c")])) == WORDS.count([user("a b c")])
    assert counter.failures == 1


def test_cancellation_reaches_the_client_and_spares_who_waits_for_the_same() -> None:
    """The last to go takes the question back."""

    async def run(server: CountServer) -> None:
        async with anthropic_client(server) as client:
            counter = RemoteCounter.of(client, model="m", estimate=WORDS)
            first = asyncio.create_task(counter.count([user("hi")]))
            second = asyncio.create_task(counter.count([user("hi")]))
            assert await asyncio.to_thread(server.asked.wait, PATIENCE_SECONDS)
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first
            await turned()
            assert not second.done()
            assert not server.left.is_set()
            second.cancel()
            with pytest.raises(asyncio.CancelledError):
                await second
            assert await asyncio.to_thread(server.left.wait, PATIENCE_SECONDS)
            assert (counter.failures, len(server.bodies)) == (0, 1)

    with count_server() as server:
        server.hangs = True
        asyncio.run(run(server))


def test_a_request_without_messages_is_estimated_and_no_failure() -> None:
    """No provider takes one."""

    async def ask(question: CountQuestion) -> int:
        raise AssertionError("was asked")

    counter = RemoteCounter(ask, estimate=WORDS)
    assert asyncio.run(counter.count_request(CountRequest([], system="two words"))) == WORDS.count_request(
        CountRequest([], system="two words")
    )
    assert counter.failures == 0


def test_an_output_schema_is_estimated_on_top() -> None:
    """The endpoints take it in other words than requests do."""
    schema = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}}
    body = {"messages": [user("a b c")], "response_format": schema}

    async def ask(question: CountQuestion) -> int:
        return 50

    counter = RemoteCounter(ask)
    fitted = asyncio.run(afit(body, 1_000, counter=counter))
    estimate = EstimateCounter()
    beside = estimate.count_request(CountRequest([], extra={"response_format": schema})) - estimate.count([])
    assert beside > 0
    assert fitted.report.tokens_after == 50 + beside + -(-beside // 10)  # raised by a tenth: it does not say
    assert not fitted.report.exact
    assert "output schema" in fitted.report.counter
    assert counter.failures == 0


def test_it_remembers_no_more_than_it_may() -> None:
    """The least recently used answer goes first."""
    asked: list[str] = []

    async def ask(question: CountQuestion) -> int:
        asked.append(question.messages[0]["content"])
        return 1

    async def run() -> None:
        counter = RemoteCounter(ask, max_entries=2)
        for one in ("a", "b", "a", "c", "a", "b"):
            await counter.count([user(one)])

    asyncio.run(run())
    assert asked == ["a", "b", "c", "b"]


def test_one_counter_serves_several_event_loops_and_keeps_the_contract() -> None:
    """Each thread of the contract has a loop of its own."""

    async def ask(question: CountQuestion) -> int:
        await asyncio.sleep(0)
        return WORDS.count_request(
            CountRequest(list(question.messages), system=question.system, tools=question.tools)
        )

    counter = RemoteCounter(ask, estimate=WORDS)

    class AtOnce:
        """The same counter, for who cannot await."""

        name = counter.name

        def count(self, messages: Any, /) -> int:
            """Run a loop for one question."""
            return asyncio.run(counter.count(messages))

        def count_request(self, messages: Any, system: Any = None, tools: Any = None, /) -> int:
            """Run a loop for one question."""
            return asyncio.run(counter.count_request(CountRequest(messages, system=system, tools=tools)))

    check_counter(AtOnce())
    assert counter.failures == 0


def test_it_is_refused_where_nobody_awaits() -> None:
    """`fit` says what to call instead; a baseline needs single messages."""

    async def ask(question: CountQuestion) -> int:
        return 1

    with pytest.raises(ConfigurationError, match="afit"):
        fit([user()], 10, counter=RemoteCounter(ask))
    with pytest.raises(ConfigurationError, match="count_message"):
        UsageBaseline(RemoteCounter(ask))
    with pytest.raises(CountingError):
        raise CountingError("the type is public", counter="x")


def in_characters(question: CountQuestion) -> int:
    """Bill a token a character, which is far more than an estimate."""
    return 3 + sum(len(message["content"]) for message in question.messages)


def failing_after(answers: int) -> Callable[[CountQuestion], Any]:
    """Make an endpoint that answers so many times and then fails."""
    left = answers

    async def ask(question: CountQuestion) -> int:
        nonlocal left
        left -= 1
        if left < 0:
            raise RuntimeError("503")
        return in_characters(question)

    return ask


@pytest.mark.parametrize("retry_after_seconds", [0.0, 30.0])
@pytest.mark.parametrize("answers", [1, 2, 3])
@pytest.mark.parametrize("budget", [4_000, Budget(4_000, margin="auto")], ids=["bare", "auto"])
def test_a_fit_the_provider_left_half_way_is_not_exact_and_stays_within_what_it_would_bill(
    budget: Any, answers: int, retry_after_seconds: float
) -> None:
    """What it said before tells how much an estimate is to be raised."""
    messages = [user("go on"), *(make(words(30)) for _ in range(60) for make in (assistant, user))]
    counter = RemoteCounter(failing_after(answers), retry_after_seconds=retry_after_seconds)
    report = (fitted := asyncio.run(afit(messages, budget, counter=counter))).report
    assert not report.exact
    assert "in part estimated" in report.counter
    assert "503" in report.counter
    billed = in_characters(CountQuestion(messages=tuple(fitted.messages)))
    assert 2_000 < billed <= 4_000
    later = asyncio.run(afit(messages[-1:], budget, counter=RemoteCounter(failing_after(1)))).report
    assert later.exact


def test_another_fits_failure_is_not_this_ones() -> None:
    """Exactness belongs to the answers a report goes by."""

    async def run() -> tuple[Any, Any]:
        counter = RemoteCounter(failing_after(1))
        first = await afit([user("a b c")], 100, counter=counter)
        return first, await afit([user("d e f")], 100, counter=counter)

    first, second = asyncio.run(run())
    assert (first.report.exact, first.report.counter) == (True, "ask")
    assert not second.report.exact
    assert second.report.tokens_after >= 8  # by what the provider said of the first


def test_a_margin_that_was_kept_free_is_not_added_twice() -> None:
    """A fit that begins while only the estimate answers resolves its margin by that."""

    async def run() -> tuple[Any, Any]:
        counter = RemoteCounter(failing_after(0), estimate=EstimateCounter())
        with_none = await afit([user("a b c")], 100, counter=counter)
        return with_none, await afit([user("a b c")], Budget(100, margin="auto"), counter=counter)

    with_none, auto = asyncio.run(run())
    estimate = EstimateCounter().count([user("a b c")])
    assert auto.report.margin_tokens > 0
    assert auto.report.tokens_after == estimate
    assert with_none.report.tokens_after == estimate + -(-estimate // 10)


def test_tools_the_endpoint_refuses_make_a_count_no_longer_exact() -> None:
    """By estimate, raised; and the report says so."""
    content = {"role": "user", "parts": [{"text": "how are you"}]}
    tools = [{"functionDeclarations": [{"name": "search", "description": "looks up things"}]}]

    async def run(server: CountServer, **options: Any) -> Any:
        async with google_client(server) as client:
            counter = RemoteCounter.of(
                client, model="gemini-2.5-flash", estimate=EstimateCounter(), **options
            )
            return (await afit([content], 1_000, counter=counter, tools=tools, format="gemini")).report

    with count_server() as server:
        report = asyncio.run(run(server))
        (body,) = server.bodies
    estimate = EstimateCounter()
    beside = estimate.count_request(CountRequest([], tools=tools)) - estimate.count([])
    assert report.tokens_after == tokens_of({"contents": body["contents"]}) + beside + -(-beside // 10)
    assert not report.exact
    assert "tools, which the endpoint does not take" in report.counter


def test_a_mistake_of_the_callers_is_a_failure_and_no_refusal_of_tools() -> None:
    """The client's ValueError about an option is told, not taken for what the endpoint lacks."""
    content = {"role": "user", "parts": [{"text": "how are you"}]}
    tools = [{"functionDeclarations": [{"name": "search"}]}]

    async def run(server: CountServer) -> Any:
        async with google_client(server) as client:
            counter = RemoteCounter.of(
                client, model="gemini-2.5-flash", estimate=WORDS, options={"nosuch_option": 1}
            )
            await counter.count_request(CountRequest([content], tools=tools))
            return counter

    with count_server() as server:
        counter = asyncio.run(run(server))
        assert server.bodies == []
    assert (counter.failures, counter.exact) == (1, False)
    assert "nosuch_option" in str(counter.last_failure)


def test_a_timeout_and_a_cancellation_inside_the_client_are_failures_of_its_own() -> None:
    """Neither is our time limit, and nobody cancelled the count."""

    async def times_out(question: CountQuestion) -> int:
        raise TimeoutError("the pool is full")

    async def is_cancelled(question: CountQuestion) -> int:
        raise asyncio.CancelledError

    for ask, said in ((times_out, "the pool is full"), (is_cancelled, "an inner operation was cancelled")):
        counter = RemoteCounter(ask, estimate=WORDS)
        assert asyncio.run(counter.count([user("a b c")])) == WORDS.count([user("a b c")])
        assert said in str(counter.last_failure)


def test_a_question_that_is_asked_anew_is_not_forgotten_with_the_one_taken_back() -> None:
    """Who comes later waits for the new one."""
    asked, let = 0, asyncio.Event()

    async def ask(question: CountQuestion) -> int:
        nonlocal asked
        asked += 1
        try:
            await let.wait()
        except asyncio.CancelledError:
            await turned()  # a client that closes its connection first
            raise
        return 7

    async def run() -> list[Any]:
        counter = RemoteCounter(ask)
        first: Any = asyncio.create_task(counter.count([user("hi")]))
        await turned()
        first.cancel()
        second = asyncio.create_task(counter.count([user("hi")]))
        for _ in range(3):
            await turned()
        third = asyncio.create_task(counter.count([user("hi")]))
        await turned()
        let.set()
        found = await asyncio.gather(first, second, third, return_exceptions=True)
        return list(found[1:])

    assert asyncio.run(run()) == [7, 7]
    assert asked == 2


def test_an_estimate_that_fails_is_named() -> None:
    """Not a bare KeyError."""

    class Broken:
        name = "broken"

        def count_request(self, messages: Any, system: Any = None, tools: Any = None, /) -> int:
            raise KeyError("x")

    with pytest.raises(CountingError, match="broken"):
        asyncio.run(RemoteCounter(failing_after(0), estimate=Broken()).count([user()]))


def test_what_is_no_client_is_refused() -> None:
    """A sync client, a thing without an endpoint, numbers out of range."""
    package = pytest.importorskip("anthropic")
    with pytest.raises(ConfigurationError, match="async client"), package.Anthropic(api_key="k") as client:
        RemoteCounter.of(client, model="m")
    with pytest.raises(ConfigurationError, match=r"RemoteCounter\(ask\)"):
        RemoteCounter.of(object(), model="m")
    with pytest.raises(ConfigurationError, match="ask"):
        RemoteCounter("nothing")  # type: ignore[arg-type]

    async def ask(question: CountQuestion) -> int:
        return 1

    with pytest.raises(ConfigurationError, match="timeout_seconds"):
        RemoteCounter(ask, timeout_seconds=float("inf"))
    for name, value in {
        "timeout_seconds": 0,
        "retry_after_seconds": -1,
        "max_concurrent": 0,
        "max_entries": -1,
        "name": 5,
        "estimate": EstimateCounter,
    }.items():
        with pytest.raises(ConfigurationError, match=name):
            RemoteCounter(ask, **{name: value})  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="estimate"):
        RemoteCounter(ask, estimate=len)
