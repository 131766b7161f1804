"""What all adapters share: options are checked when one is made, and threads may share it."""

from __future__ import annotations

import asyncio
import gc
import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from trimtab import Budget, Context, Fitted, fit
from trimtab.errors import ConfigurationError, MissingExtraError, UnknownNameError
from trimtab.integrations.base import AdapterBudget, OnFitted, Outcome, Schemas, Trimmer
from trimtab.integrations.bodies import Bodies
from trimtab.models import facts_for, register_model
from trimtab.strategies import Summarize
from trimtab.testing.hooks import nothing_loaded

TALK: list[dict[str, Any]] = [
    {"role": "assistant" if at % 2 else "user", "content": f"m{at} {'word ' * 30}"} for at in range(21)
]
LOOK = [{"type": "function", "function": {"name": "look", "parameters": {}}}]


def adapter(
    budget: AdapterBudget = 300, *, on_fitted: OnFitted | None = None, **options: Any
) -> Trimmer[dict[str, Any]]:
    """Make what an adapter of OpenAI's messages has."""
    given: Any = {"model": "gpt-4o", **options}
    return Trimmer(budget, format="openai_chat", on_fitted=on_fitted, options=given)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        pytest.param({"stategy": "agent"}, "stategy= is not an option.*did you mean strategy", id="typo"),
        pytest.param({"system": "Be brief."}, "system= is not an option", id="said-by-the-call"),
        pytest.param({"strategy": "agnet"}, "no strategy is called 'agnet'", id="strategy"),
        pytest.param({"strategy": "agent", "steady": True}, "leave out steady=True", id="contradiction"),
        pytest.param({"charge_as": "antropic"}, "did you mean anthropic", id="charge-as"),
        pytest.param({"counter": 7}, "counter must have count", id="counter"),
        pytest.param({"pin": 0}, "pin must be a list of positions", id="pin"),
        pytest.param({"pin": ["a"]}, "'a' is not a position", id="position"),
        pytest.param({"breakpoints": 1}, "breakpoints must be True, False", id="breakpoints"),
        pytest.param({"pending_calls": "a"}, "pending_calls must be a list", id="pending-calls"),
        pytest.param({"strict": 1}, "strict must be True or False", id="flag"),
        pytest.param({"budget": "150%"}, "above 0% and at most 100%", id="more-than-the-window"),
        pytest.param({"budget": "0%"}, "above 0% and at most 100%", id="nothing-of-the-window"),
    ],
)
def test_a_wrong_option_is_refused_before_a_call(options: dict[str, Any], said: str) -> None:
    """Nobody makes an adapter that fails, or does otherwise than was said, once it is called."""
    with pytest.raises((ConfigurationError, UnknownNameError), match=said):
        adapter(**options)


@pytest.mark.parametrize(
    "name",
    [
        "breakpoints",
        "charge_as",
        "counter",
        "on_trim",
        "pending_calls",
        "pin",
        "repair",
        "steady",
        "strategy",
        "strict",
    ],
)
def test_none_says_nothing(name: str) -> None:
    """A call is fitted as without the option: in the adapter's way, and charged as it is sent."""
    plain, given = (
        one.fit(TALK, sent_as="openai_responses", tools=LOOK).fitted
        for one in (adapter(), adapter(**{name: None}))
    )
    assert given.positions == plain.positions
    assert given.report.tokens_after == plain.report.tokens_after


@pytest.mark.parametrize(
    ("model", "known", "window_tokens"),
    [
        pytest.param("gpt-4o", "gpt-4o", 128_000, id="bare"),
        pytest.param("openai/gpt-4o", "openai/gpt-4o", 128_000, id="maker"),
        pytest.param("mine/gpt-4o", "gpt-4o", 128_000, id="gateway-nobody-knows"),
        pytest.param("litellm/openai/gpt-4o", "gpt-4o", 128_000, id="behind-the-last-slash"),
        pytest.param("groq/llama-3.3-70b-versatile", "llama-3.3-70b-versatile", None, id="host"),
    ],
)
def test_what_stands_before_a_model_is_read_or_left_out(
    model: str, known: str, window_tokens: int | None
) -> None:
    """A host that is known may have a smaller window than the maker; a gateway nobody knows says nothing."""
    shared = adapter("50%", model=None)
    if window_tokens is None:
        with pytest.raises(ConfigurationError, match="is unknown"):
            shared.fit(TALK, model=model)
    else:
        assert shared.fit(TALK, model=model).fitted.report.input_tokens == window_tokens // 2
    by_number = adapter(300, model=None)
    counts = [by_number.fit(TALK, model=name).fitted.report.tokens_after for name in (model, known)]
    assert counts[0] == counts[1]


def test_what_can_be_read_once_holds_at_each_call() -> None:
    """An iterator of pins, or of calls whose results are to come, is that of all calls."""
    call = {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    talk = [*TALK, {"role": "assistant", "content": None, "tool_calls": [call]}]
    shared = adapter(pin=iter([0]), pending_calls=iter(["a"]))
    first, second = (shared.fit(talk).fitted for _ in range(2))
    assert first.positions == second.positions
    assert second.positions[0] == 0
    assert second.positions[-1] == len(TALK)


def test_a_list_or_set_that_fills_between_calls_is_read_at_each() -> None:
    """A program may learn what is pinned, and which results are to come, after the adapter is made."""
    call = {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    talk = [*TALK[:3], {"role": "assistant", "content": None, "tool_calls": [call]}, *TALK[3:]]
    pins, pending = list[int](), set[str]()
    shared = adapter(pin=pins, pending_calls=pending)
    before = shared.fit(talk).fitted.positions
    pins.append(0)
    pending.add("a")
    after = shared.fit(talk).fitted.positions
    assert {0, 3}.isdisjoint(before)
    assert {0, 3}.issubset(after)


class OtherCall(list[Any]):
    """Tools of a call, during which another call asks for the schemas of its own."""

    def __init__(self, tools: list[Any], schemas: Schemas, others: list[Any]) -> None:
        super().__init__(tools)
        self.schemas = schemas
        self.others = others

    def __iter__(self) -> Iterator[Any]:
        """Have the other call asked when all of these were looked at."""
        yield from super().__iter__()
        self.schemas.of(self.others)


def test_a_call_has_the_schemas_of_its_own_tools() -> None:
    """Another call may ask between a look at what is known and its use, as a thread would."""
    schemas = Schemas(lambda tools: [f"schema of {one}" for one in tools])
    assert schemas.of(["ada"]) == ["schema of ada"]
    assert schemas.of(OtherCall(["ada"], schemas, ["bob"])) == ["schema of ada"]
    assert schemas.of(["bob"]) == ["schema of bob"]


def test_an_async_summarizer_is_awaited_for_each_of_two_calls_at_once() -> None:
    """Each call gets its own messages and its own `Fitted`, whichever is done first."""
    order: list[str] = []

    async def run() -> list[Outcome[dict[str, Any]]]:
        done = asyncio.Event()

        async def summarize(messages: list[Any], existing: str | None = None) -> str:
            name = messages[0]["content"].split()[0]
            if name == "ada":
                await done.wait()
            order.append(name)
            done.set()
            return f"summary of {name}"

        shared = adapter(strategy=Summarize(summarize))
        talks = [[{**one, "content": f"{name} {one['content']}"} for one in TALK] for name in ("ada", "bob")]
        return [*await asyncio.gather(*(shared.afit(talk) for talk in talks))]

    for name, sent in zip(("ada", "bob"), asyncio.run(run()), strict=True):
        assert f"summary of {name}" in sent.messages[0]["content"]
        assert sent.fitted.messages == sent.messages
        assert sent.places == sent.fitted.positions
    assert order == ["bob", "ada"]


def test_a_conversation_that_the_server_keeps_is_told_of_once_for_each_adapter(
    recwarn: pytest.WarningsRecorder,
) -> None:
    """Each call would be too often; what to write instead is said by the framework's own names."""
    warnings.simplefilter("always")
    first, second = adapter(), adapter()
    for shared in (first, first, second):
        shared.warn_stored("store=True", instead="write store=False")
    said = [str(one.message) for one in recwarn]
    assert len(said) == 2
    assert all(one.startswith("store=True: the server adds messages that nobody here sees") for one in said)
    assert all(one.endswith("write store=False") for one in said)


ASYNC = r"on_fitted is async, but the call is not: pass a synchronous function"


class Log:
    """What a program keeps of its fits, in an async method."""

    def __init__(self) -> None:
        self.fits: list[Fitted[Any]] = []

    async def __call__(self, fitted: Fitted[Any], /) -> None:
        """Keep a fit, a while later."""
        await asyncio.sleep(0)
        self.fits.append(fitted)


@pytest.mark.parametrize("budget", [300, Context(300, model="gpt-4o").add("history", [])])
def test_an_async_function_is_told_of_a_fit_that_is_awaited(budget: Any) -> None:
    """Before the call goes on: it never ran. What it is told is what is sent."""
    log = Log()
    functions: tuple[OnFitted, ...] = (log, log.__call__, lambda fitted: log(fitted))
    for at, on_fitted in enumerate(functions):
        sent = asyncio.run(adapter(budget, on_fitted=on_fitted).afit(TALK))
        assert log.fits[at] is sent.fitted
    assert len(log.fits) == 3


@pytest.mark.few(1)
@pytest.mark.parametrize("budget", [300, Context(300, model="gpt-4o").add("history", [])])
def test_an_async_function_is_refused_where_nothing_is_awaited(
    budget: Any, recwarn: pytest.WarningsRecorder
) -> None:
    """At the call, and nothing is left unawaited; where no call ever is, when the adapter is made."""
    log = Log()
    for on_fitted in (log, lambda fitted: log(fitted)):
        with pytest.raises(ConfigurationError, match=ASYNC):
            adapter(budget, on_fitted=on_fitted).fit(TALK)
    with pytest.raises(ConfigurationError, match=ASYNC):
        adapter(budget, on_fitted=log).check_sync()
    adapter(budget, on_fitted=log.fits.append).check_sync()
    adapter(budget).check_sync()
    gc.collect()
    assert [one for one in recwarn if "never awaited" in str(one.message)] == []
    assert log.fits == []


def test_a_task_that_a_function_starts_runs_by_itself() -> None:
    """Awaited or not, the call goes on at once, and neither what it waits for nor its error is the call's."""

    async def run() -> list[Fitted[Any]]:
        logs, fits, is_open = list[asyncio.Future[None]](), list[Fitted[Any]](), asyncio.Event()

        async def log(fitted: Fitted[Any]) -> None:
            await is_open.wait()
            fits.append(fitted)
            raise RuntimeError("no disk")

        def start(fitted: Fitted[Any]) -> asyncio.Future[None]:
            logs.append(asyncio.ensure_future(log(fitted)))
            return logs[-1]

        sent = [adapter(on_fitted=start).fit(TALK), await adapter(on_fitted=start).afit(TALK)]
        assert fits == []
        is_open.set()
        await asyncio.wait(logs)
        assert [str(one.exception()) for one in logs] == ["no disk", "no disk"]
        assert [one.fitted for one in sent] == fits
        return fits

    assert len(asyncio.run(run())) == 2


def test_what_a_function_raises_ends_the_call() -> None:
    """Awaited or not, it is the program's own error."""

    async def fail(fitted: Fitted[Any]) -> None:
        raise RuntimeError("no disk")

    def fail_now(fitted: Fitted[Any]) -> None:
        raise RuntimeError("no disk")

    with pytest.raises(RuntimeError, match="no disk"):
        asyncio.run(adapter(on_fitted=fail).afit(TALK))
    with pytest.raises(RuntimeError, match="no disk"):
        adapter(on_fitted=fail_now).fit(TALK)


JAPANESE = "これは日本語の文章です。" * 6
CODE = "função não é só código; x_y={'a':1} " * 4
PICTURE = {"type": "image_url", "image_url": {"url": "https://example.org/a.png", "detail": "high"}}
SPOKEN: list[dict[str, Any]] = [
    {"role": "assistant" if at % 2 else "user", "content": f"m{at} {JAPANESE if at % 3 else CODE}"}
    for at in range(60)
]
MIXED: list[dict[str, Any]] = [
    *SPOKEN,
    {"role": "user", "content": [{"type": "text", "text": "And this?"}, PICTURE]},
]
SENT: list[tuple[str | None, str]] = [
    ("gpt-4o", "openai_chat"),
    ("claude-opus-4-5", "anthropic"),
    ("gpt-4", "openai_responses"),
    (None, "openai_chat"),
]


@pytest.mark.parametrize("first", range(len(SENT)))
@pytest.mark.parametrize("talk", [SPOKEN, MIXED], ids=["texts", "picture"])
@pytest.mark.parametrize("is_context", [False, True])
def test_a_call_that_any_of_several_models_may_be_sent_is_over_for_none(
    first: int, talk: list[Any], is_context: bool
) -> None:
    """Whichever of them has the smallest window: what counts is the dearest, tools and system text, too."""
    budget = Context(4_000).add("history", []) if is_context else 4_000
    trimmer = Trimmer[Any](budget, format="openai_chat", on_fitted=None, options={})
    (model, sent_as), *others = [*SENT[first:], *SENT[:first]]
    told: Any = {"model": model, "sent_as": sent_as, "others": others}
    beside: Any = {"system": "Be brief.", "tools": trimmer.dearest([[], LOOK], has_system=True, **told)}
    sent = trimmer.fit(talk, **told, **beside)
    counts = [
        fit(sent.messages, 8_000, model=name, format="openai_chat", charge_as=form, **beside).report
        for name, form in SENT
    ]
    most = max(report.tokens_after for report in counts)
    assert most <= sent.fitted.report.tokens_after <= 4_000
    assert (beside["tools"], len(sent.messages) < len(talk)) == (LOOK, True)
    assert not sent.fitted.report.exact


def test_models_that_count_alike_are_counted_as_each() -> None:
    """One that is named twice is counted once; a count that is exact for each of them is exact."""
    trimmer = Trimmer[Any](900, format="openai_chat", on_fitted=None, options={})
    alone, twice, both = (
        trimmer.fit(TALK, model="gpt-4o", others=others).fitted.report
        for others in ((), [("gpt-4o", None)], [("gpt-4o-mini", None)])
    )
    assert alone == twice
    assert (both.tokens_after, both.exact) == (alone.tokens_after, True)


def test_the_margin_of_several_models_is_the_largest() -> None:
    """`margin="auto"` holds for each, and a form that the user names is that of each."""
    budget = Budget(4_000, margin="auto")
    trimmer = Trimmer[Any](budget, format="openai_chat", on_fitted=None, options={"charge_as": "anthropic"})
    model, *others = (("gpt-4o", None), ("claude-opus-4-5", None))
    both, alone = (
        trimmer.fit(SPOKEN, model=name, others=rest).fitted.report
        for name, rest in ((model[0], others), (others[0][0], ()))
    )
    assert both.margin_tokens >= alone.margin_tokens > 0


@pytest.mark.parametrize("options", [{"model": "gpt-4o"}, {"counter": "chars:4"}], ids=str)
def test_what_the_user_counts_by_counts_for_every_model(options: Any) -> None:
    """A model or a counter that is named is the user's word on how to count."""
    trimmer = Trimmer[Any](900, format="openai_chat", on_fitted=None, options=options)
    alone = trimmer.fit(SPOKEN, model="gpt-4o").fitted.report
    assert trimmer.fit(SPOKEN, model="gpt-4o", others=[("claude-opus-4-5", None)]).fitted.report == alone


@pytest.fixture
def without_tekken(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Name a model whose tokenizer is not installed, and whose counts are exact where it is."""
    monkeypatch.setitem(sys.modules, "mistral_common.tokens.tokenizers.tekken", None)
    facts = facts_for("mistral-large-latest")
    register_model(replace(facts, name="acme-tekken", exact=True), replace=True)
    with nothing_loaded():
        yield "acme-tekken"


def test_a_known_model_whose_tokenizer_is_missing_is_estimated_and_said(without_tekken: str) -> None:
    """A gateway asks models that its program does not name; fit in a program of one's own raises."""
    with pytest.raises(MissingExtraError):
        fit(TALK, 300, model=without_tekken)
    budgets: list[AdapterBudget] = [300, Context(300).add("history", [])]
    for budget in budgets:
        shared = adapter(budget, model=None)
        with pytest.warns(UserWarning, match=r"acme-tekken is counted by an estimate.*trimtab\[m"):
            report = shared.fit(TALK, model=without_tekken).fitted.report
        assert not report.exact
        assert report.tokens_after <= 300
        assert any("'trimtab[mistral]'" in note for note in report.notes)
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # said once
            asyncio.run(shared.afit(TALK, model=without_tekken))
            beside = shared.fit(TALK, model="gpt-4o", others=[(without_tekken, None)]).fitted.report
            alone = shared.fit(TALK, model="gpt-4o").fitted.report
        assert any("'trimtab[mistral]'" in note for note in beside.notes)
        assert (alone.exact, alone.notes) == (True, ())


def test_a_model_that_options_or_a_context_name_is_estimated_too(without_tekken: str) -> None:
    """Whoever names it; a counter of the user's own is asked, and nothing is said."""
    context = Context(300, model=without_tekken).add("history", [])
    for one in (adapter(model=without_tekken), adapter(context, model=None)):
        with pytest.warns(UserWarning, match="counted by an estimate"):
            assert one.fit(TALK).fitted.report.notes
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        own = adapter(model=without_tekken, counter="estimate")
        assert own.fit(TALK).fitted.report.notes == ()


def test_a_client_that_learns_from_bills_estimates_such_a_model_too(without_tekken: str) -> None:
    """What with_budget and a gateway's handler do: what is billed is learned."""
    bodies = Bodies(
        300,
        format="openai_chat",
        retry_overflow=False,
        on_fitted=None,
        options={},
    )
    body = {"model": without_tekken, "messages": TALK}
    with pytest.warns(UserWarning, match="acme-tekken is counted by an estimate"):
        sent = bodies.fit_body(body, model=without_tekken)
    assert sent.fitted is not None
    assert any("'trimtab[mistral]'" in note for note in sent.fitted.report.notes)
    assert len(sent.body["messages"]) < len(TALK)


@pytest.mark.parametrize("words", [1_100, 1_500, 2_200, 3_000, 3_700])
@pytest.mark.parametrize("steady", [True, False, 0.9])
def test_the_newest_turn_stays_where_it_fits_however_large_it_is(steady: bool | float, words: int) -> None:
    """Also one larger than what a stride leaves: at each call, all before the question was forgotten."""
    given: Any = {"retry_overflow": False, "on_fitted": None, "options": {"steady": steady}}
    bodies = Bodies(8_000, format="openai_chat", **given)
    turn = [{"role": role, "content": "river " * words} for role in ("user", "assistant")]
    messages: list[dict[str, str]] = []
    for call in range(12):
        messages += [*turn, {"role": "user", "content": f"And number {call}?"}]
        sent = bodies.fit_body({"model": "gpt-4o", "messages": messages}, model="gpt-4o")
        assert [one["role"] for one in sent.body["messages"]][-3:] == ["user", "assistant", "user"]
        assert sent.fitted is not None
        assert sent.fitted.report.tokens_after <= 8_000
        messages.append({"role": "assistant", "content": "Yes."})
