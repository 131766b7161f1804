"""`afit` and `Context.afit`: the same answers as `fit`, with counters and summarizers that are awaited."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.builders import call, result, talk, without_address, words
from trimtab import (
    BudgetExceededError,
    Context,
    Drop,
    EstimateCounter,
    PriorityBased,
    SlidingWindow,
    Strict,
    Summarize,
    TruncateText,
    afit,
    fit,
)
from trimtab.counting import AsyncRequestCounter
from trimtab.errors import ConfigurationError, CountingError
from trimtab.testing import WordCounter

WORDS = WordCounter()


class Endpoint:
    """A black box that answers later, as a provider's endpoint does."""

    name = "endpoint"

    def __init__(self) -> None:
        self.asked: list[int] = []

    async def count(self, messages: list[Any], /) -> int:
        """Count words."""
        self.asked.append(len(messages))
        await asyncio.sleep(0)
        return WORDS.count(messages)


class EachLater:
    """An additive counter that answers later."""

    name = "each_later"
    exact = True

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.now = self.most = 0

    async def count(self, messages: list[Any], /) -> int:
        """Count words."""
        return WORDS.count(messages)

    async def count_message(self, message: Any, /) -> int:
        """Count words, and note how many are asked about at once."""
        self.asked.append(message)
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0)
        self.now -= 1
        return WORDS.count_message(message)

    def fixed_tokens(self, system: Any, tools: Any, /, *, has_system: bool, extra: Any = None) -> int:
        """Charge nothing beside."""
        return WORDS.fixed_tokens(system, tools, has_system=has_system, extra=extra)


LONG = talk("s3 " + "u5 a5 u5 cA rA7 a3 " * 20 + "u4")
STRATEGIES = [None, SlidingWindow(keep_turns=True), Drop(), PriorityBased(), TruncateText()]


@pytest.mark.parametrize("strategy", STRATEGIES, ids=without_address)
@pytest.mark.parametrize("budget", [20, 60, 333, 9999])
def test_an_async_counter_gives_what_the_same_one_gives_at_once(strategy: Any, budget: int) -> None:
    """Messages and report, for an additive counter and for a black box."""
    try:
        expected = fit(LONG, budget, counter=WORDS, strategy=strategy)
    except BudgetExceededError as error:
        needed = f"at least {error.needed_tokens} tokens are needed"
        with pytest.raises(BudgetExceededError, match=needed):
            asyncio.run(afit(LONG, budget, counter=EachLater(), strategy=strategy))
        return
    found = asyncio.run(afit(LONG, budget, counter=EachLater(), strategy=strategy))
    assert found.messages == expected.messages
    assert found.report.tokens_after == expected.report.tokens_after
    plain = fit(LONG, budget, counter=WORDS.count, strategy=strategy)
    boxed = asyncio.run(afit(LONG, budget, counter=Endpoint(), strategy=strategy))
    assert boxed.messages == plain.messages
    assert boxed.report.tokens_after == plain.report.tokens_after


def test_sizes_are_awaited_in_batches_from_the_newest_back() -> None:
    """What leaves is hardly asked about, nothing twice, and many at once."""
    counter = EachLater()
    messages = [{"role": "user", "content": f"{n} {words(4)}"} for n in range(1_000)]
    fitted = asyncio.run(afit(messages, 400, counter=counter))
    assert len(fitted.messages) == 80
    assert len(counter.asked) <= 80 + 32 + 1
    assert len({message["content"] for message in counter.asked}) == len(counter.asked)
    assert counter.most >= 16


@pytest.mark.parametrize("budget", range(2, 10))
def test_as_many_sizes_are_known_as_where_all_are_answered_at_once(budget: int) -> None:
    """Also where the room is used up to the last token: what is next to leave was asked about."""
    messages = talk("u1 a2 u3 a1 u2")
    later = asyncio.run(afit(messages, budget, counter=EachLater())).report
    at_once = fit(messages, budget, counter=WORDS).report
    assert [row.tokens_before for row in later.messages] == [row.tokens_before for row in at_once.messages]


def test_a_text_that_is_said_again_is_not_asked_about_again() -> None:
    """Also where the next batch begins with it."""
    counter = EachLater()
    messages = [{"role": "user", "content": f"{n if n % 2 else 'again'} {words(4)}"} for n in range(200)]
    asyncio.run(afit(messages, 400, counter=counter))
    assert len({message["content"] for message in counter.asked}) == len(counter.asked) > 32


class LaterEstimate(EstimateCounter):
    """One of ours, made async; what it could do at once beside that must not be used."""

    async def count_message(self, message: Any, /) -> int:
        """Count a hundred more."""
        return 100 + EstimateCounter().count_message(message)


class LaterWhole(EachLater):
    """Only the whole and what is beside the messages have to be waited for."""

    def count_message(self, message: Any, /) -> int:
        """Count words at once."""
        self.asked.append(message)
        return WORDS.count_message(message)

    async def fixed_tokens(self, system: Any, tools: Any, /, *, has_system: bool, extra: Any = None) -> int:
        """Count words of a schema, too."""
        return WORDS.fixed_tokens(system, tools, has_system=has_system, extra=extra)


def test_what_an_async_counter_answers_at_once_is_not_awaited() -> None:
    """Which of its methods are async is its own affair, and none of another counter's is used."""
    schema = {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}}
    body = {"messages": LONG, "response_format": schema}
    counter = LaterWhole()
    fitted, expected = asyncio.run(afit(body, 60, counter=counter)), fit(body, 60, counter=WORDS)
    assert len({id(message) for message in counter.asked}) == len(counter.asked)
    assert fitted.messages == expected.messages
    assert fitted.report.fixed_tokens == expected.report.fixed_tokens == 1
    assert fitted.report.tools_tokens == expected.report.tools_tokens == 1
    assert len(asyncio.run(afit(LONG, 500, counter=LaterEstimate())).messages) == 4


def test_an_awaited_counter_is_as_exact_as_the_counter() -> None:
    """As the report says; a class is left to be refused."""
    for counter, exact in ((EachLater(), True), (Endpoint(), False), (WORDS, WORDS.exact)):
        assert asyncio.run(afit(LONG, 100, counter=counter)).report.exact is exact
    with pytest.raises(ConfigurationError, match="EachLater is a class"):
        asyncio.run(afit(LONG, 100, counter=EachLater))


def test_a_count_that_is_cancelled_cancels_the_fit() -> None:
    """It is no failure of the counter, be it a function, which is probed first, or an object."""

    async def cancelled(messages: list[Any]) -> int:
        raise asyncio.CancelledError

    class Cancelled(EachLater):
        async def count_message(self, message: Any, /) -> int:
            raise asyncio.CancelledError

    for counter in (cancelled, Cancelled()):
        with pytest.raises(asyncio.CancelledError):
            asyncio.run(afit(LONG, 100, counter=counter))


def test_a_black_box_is_asked_few_times() -> None:
    """O(log n) times, as one that answers at once."""
    counter = Endpoint()
    asyncio.run(afit(LONG, 100, counter=counter))
    assert len(counter.asked) <= 12


async def _refuses(messages: list[Any]) -> int:
    raise ConnectionError("no route")


async def _nonsense(messages: list[Any]) -> int:
    return -3


@pytest.mark.parametrize(
    ("counter", "words_of_error"),
    [(_refuses, "failed on a request: ConnectionError: no route"), (_nonsense, "returned -3 for a request")],
)
def test_a_counter_that_fails_is_a_counting_error(
    counter: Callable[..., Awaitable[int]], words_of_error: str
) -> None:
    """With the cause, as for one that answers at once."""
    with pytest.raises(CountingError, match=words_of_error):
        asyncio.run(afit(LONG, 100, counter=counter))


def test_sync_fit_with_an_async_counter_names_afit() -> None:
    """For a function, a black box, an additive counter, and a Context."""
    for counter in (_nonsense, Endpoint(), EachLater()):
        with pytest.raises(ConfigurationError, match="await afit"):
            fit(LONG, 100, counter=counter)
        with pytest.raises(ConfigurationError, match="await afit"):
            Context(100, counter=counter).add("history", LONG).fit()


@pytest.mark.parametrize("repair", [False, True])
def test_after_counting_all_nothing_has_to_be_awaited(repair: bool) -> None:
    """Any other budget is decided at once."""
    chat = [call("A", "B"), result("A"), *talk("u5 a6 " * 60)]

    async def check() -> None:
        fitted = await afit(chat, 60, counter=EachLater(), repair=repair)
        assert (await fitted.acount_all()).tokens_before == WORDS.count(chat)
        assert fitted.at(9999).messages == fit(chat, 9999, counter=WORDS, repair=repair).messages

    asyncio.run(check())


def test_what_was_not_counted_yet_needs_an_awaited_method() -> None:
    """`at` and `count_all` say which; what is known needs none."""

    async def check() -> None:
        chat = [{"role": "user", "content": f"{n} {words(4)}"} for n in range(200)]
        fitted = await afit(chat, 60, counter=EachLater())
        assert fitted.at(40).messages == fit(chat, 40, counter=WORDS).messages
        with pytest.raises(ConfigurationError, match=r"await fitted\.aat"):
            fitted.at(400)
        with pytest.raises(ConfigurationError, match=r"await fitted\.acount_all"):
            fitted.count_all()
        assert (await fitted.aat(400)).messages == fit(chat, 400, counter=WORDS).messages
        report = await fitted.acount_all()
        assert report.tokens_before == WORDS.count(chat)
        assert fitted.count_all() == report
        gone = copy.copy(fitted)
        with pytest.raises(ConfigurationError, match="call fit again"):
            await gone.aat(40)
        with pytest.raises(ConfigurationError, match="needs the counter"):
            await gone.acount_all()

    asyncio.run(check())


async def _until_it_ends(limit: asyncio.Timeout) -> None:
    """Let the caller's time end now, and wait for what does not come."""
    limit.reschedule(0)
    await asyncio.Event().wait()


class Writer:
    """An async summarizer that notes when it is asked."""

    name = "writer"

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.cancelled = 0
        self.limit: asyncio.Timeout | None = None
        """Of the caller's time, which ends once it is asked; None: it answers."""

    async def summarize(self, request: Any, /) -> str:
        """Write two words."""
        self.asked.append(len(request.messages))
        try:
            await (asyncio.sleep(0) if self.limit is None else _until_it_ends(self.limit))
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return "short summary"


def _context(counter: Any, summarizer: Any) -> Context:
    return (
        Context(60, counter=counter)
        .add("system", "you are", priority=100, strategy=Strict())
        .add("documents", [words(20), words(20)], priority=40, max_ratio=0.4, strategy=Drop())
        .add(
            "history",
            talk("u9 a9 u9 cA rA5 a9 u2 a30"),
            priority=50,
            strategy=Summarize(summarizer, max_summary_tokens=12),
        )
        .add("question", "what is it?", priority=95)
    )


def test_a_context_is_awaited_in_the_same_way() -> None:
    """Sync summarizer at once, async one awaited, counters of all kinds: one answer; asked once each."""
    expected = _context(WORDS, lambda messages: "short summary").fit()
    assert [row.why for row in expected.report.inserted] == ["summary of 5 messages"]
    for counter in (WORDS, EachLater()):
        writer = Writer()
        found = asyncio.run(_context(counter, writer).afit())
        assert found.messages == expected.messages
        assert writer.asked == [5]
    writer = Writer()
    boxed = asyncio.run(_context(Endpoint(), writer).afit())
    assert boxed.messages == _context(WORDS.count, lambda messages: "short summary").fit().messages
    assert writer.asked == [5]
    with pytest.raises(ConfigurationError, match="await afit"):
        _context(WORDS, Writer()).fit()


def test_each_summary_is_given_to_the_block_that_asked_for_it() -> None:
    """Also where counts were missing between them."""
    context = Context(60, counter=EachLater())
    for name, writer in (("first", lambda messages: "one"), ("second", lambda messages: "two")):
        context.add(name, talk("u20 a20 u20 a5"), strategy=Summarize(writer, max_summary_tokens=12))
    messages = asyncio.run(context.afit()).messages
    said = [message["content"] for message in messages if "by=" in str(message["content"])]
    assert ["one" in text for text in said] == [True, False]
    assert ["two" in text for text in said] == [False, True]


def test_what_if_asks_no_summarizer_and_says_planned() -> None:
    """The cap stands in for the summary."""

    async def check() -> None:
        writer = Writer()
        fitted = await _context(WORDS, writer).afit()
        smaller = fitted.at(50)
        assert writer.asked == [5]
        assert smaller.report.planned
        assert not fitted.report.planned
        assert [row.why for row in smaller.report.inserted] == ["planned summary of 6 messages"]
        assert [row.tokens for row in smaller.report.inserted] == [12]
        assert smaller.report.tokens_after <= 50

    asyncio.run(check())


def test_a_summarizer_that_fails_later_is_reported_and_asked_once() -> None:
    """Also where counts have to be awaited after it failed."""

    class Fails(Writer):
        async def summarize(self, request: Any, /) -> str:
            await super().summarize(request)
            raise TimeoutError("slow")

    writer = Fails()
    fitted = asyncio.run(_context(EachLater(), writer).afit())
    assert writer.asked == [5]
    assert "failed with TimeoutError" in fitted.report.notes[0]
    writer = Fails()
    strategy = Summarize(writer, max_summary_tokens=12, fallback=TruncateText())
    asyncio.run(afit(talk("u30 a30 u9 a9 u2"), 40, counter=EachLater(), strategy=strategy))
    assert len(writer.asked) == 1


@pytest.mark.parametrize("counter", [WORDS, EachLater()], ids=["at once", "later"])
def test_many_tasks_fit_one_context_at_once(counter: Any) -> None:
    """A Context is a template: nothing of one call is seen by another."""

    async def check() -> list[Any]:
        context = _context(counter, Writer())
        return await asyncio.gather(*(context.afit() for _ in range(16)))

    found = asyncio.run(check())
    assert all(one.messages == found[0].messages for one in found)


def test_a_timeout_reaches_the_summarizer() -> None:
    """Cancellation passes through and is not taken for a failed summary."""

    async def check() -> Writer:
        writer = Writer()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(None) as writer.limit:
                await _context(WORDS, writer).afit()
        return writer

    assert asyncio.run(check()).cancelled == 1


def test_a_timeout_reaches_the_counter() -> None:
    """Every count that is under way is cancelled."""
    cancelled = []

    class Hangs(EachLater):
        def __init__(self, limit: asyncio.Timeout) -> None:
            super().__init__()
            self._limit = limit

        async def count_message(self, message: Any, /) -> int:
            try:
                await _until_it_ends(self._limit)
            except asyncio.CancelledError:
                cancelled.append(message)
                raise
            return 0

    async def check() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(None) as limit:
                await afit(LONG, 100, counter=Hangs(limit))

    asyncio.run(check())
    assert cancelled


def test_a_callback_runs_once_and_may_ask_for_any_size() -> None:
    """Also where counts are awaited: they are there before it is called."""
    seen: list[int] = []

    def callback(ctx: Any) -> None:
        seen.append(ctx.total_tokens)
        ctx.remove(1)

    for counter in (EachLater(), Endpoint()):
        seen.clear()
        fitted = asyncio.run(afit(LONG, 100, counter=counter, on_trim=callback))
        assert len(seen) == 1
        assert fitted.report.messages[1].reason == "callback"
        seen.clear()
        context = Context(100, counter=counter, on_trim=callback).add("history", LONG, on_trim=callback)
        report = asyncio.run(context.afit()).report
        assert len(seen) == 2
        assert report.messages[1].reason == "callback"


def test_objects_are_told_apart_by_what_they_hold() -> None:
    """A model that hides its content from `repr` is not taken for another one."""
    from pydantic import BaseModel, Field

    class Quiet(BaseModel):
        role: str = "user"
        content: str = Field(default="", repr=False)

    async def chars(messages: list[Any]) -> int:
        return sum(len(message["content"]) for message in messages)

    context = (
        Context(600, counter=chars).add("a", [Quiet(content="a" * 5)]).add("b", [Quiet(content="b" * 500)])
    )
    assert asyncio.run(context.afit()).report.tokens_after == 505


def test_a_counter_that_fails_when_it_is_called_is_a_counting_error() -> None:
    """Not a bare TypeError from the midst of a fit."""

    async def wrong() -> int:
        return 0

    with pytest.raises(CountingError, match="TypeError"):
        asyncio.run(afit(LONG, 100, counter=wrong))


def test_a_callback_of_blocks_runs_once_with_a_black_box() -> None:
    """The whole is counted before it is called."""
    seen: list[int] = []
    context = Context(99, counter=Endpoint(), on_trim=lambda ctx: seen.append(ctx.total_tokens))
    asyncio.run(context.add("a", "one two").add("b", "three").afit())
    assert seen == [3]


def test_a_question_is_keyed_by_all_there_is_of_it() -> None:
    """Where texts end, which key they stand under, and their order; equal copies have one key."""
    asked: list[list[Any]] = [
        [{"role": "user", "content": "ab"}, {"role": "user", "content": "c"}],
        [{"role": "user", "content": "a"}, {"role": "user", "content": "bc"}],
        [{"role": "user", "content": "c"}, {"role": "user", "content": "ab"}],
        [{"role": "user", "name": "ab"}, {"role": "user", "content": "c"}],
        [{"role": "usera", "content": "b"}, {"role": "user", "content": "c"}],
        [{"role": "user", "content": ["ab"]}, {"role": "user", "content": "c"}],
        [{"role": "user", "content": "ab"}],
    ]
    digests = AsyncRequestCounter().digests()
    keys = [digests.key_of("count", (list(one),)) for one in asked]
    assert len(set(keys)) == len(asked)
    assert [digests.key_of("count", (copy.deepcopy(one),)) for one in asked] == keys
    assert [AsyncRequestCounter().digests().key_of("count", (one,)) for one in asked] == keys
    assert digests.key_of("count", (asked[0], "system")) != keys[0]
    assert digests.key_of("count", (asked[0],), {"extra": 1}) != keys[0]
    assert digests.key_of("count_request", (asked[0],)) != keys[0]
