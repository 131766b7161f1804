"""Going on with another model: what the plan says is what the switch does (design/044-model-switch.md)."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.builders import Message, assistant, user, words
from tests.judge import FORMS, judge, newly_refused
from tests.judge.talks import talk
from tests.session.test_session_forms import KEYS, said_in, sent, session_of
from tests.session.test_summarizers import WORDS
from trimtab import BudgetExceededError, ConfigurationError, Context, Session
from trimtab.counting import CharCounter, counter_for
from trimtab.errors import StoreUnavailableError, SummaryError
from trimtab.session import VERDICTS, SwitchPlan
from trimtab.stores import Appended, AppendRequest, MemoryStore, Retry, SQLiteStore
from trimtab.summaries import Fact, FactRequest, SummaryRequest
from trimtab.testing import WordCounter


class Writer:
    """A summarizer that answers the same for the same, and notes what it was given."""

    def __init__(self, length: int = 10) -> None:
        self.length, self.calls = length, 0
        self.given: list[Any] = []

    def summarize(self, request: SummaryRequest) -> str:
        """Write so many words."""
        self.calls += 1
        self.given += request.messages
        return f"so far {words(self.length)}"


def chat(count: int, size: int = 19) -> list[Message]:
    """Messages of about twenty words, each its own."""
    return [(assistant if at % 2 else user)(f"{at} {words(size)}") for at in range(count)]


def session_with(writer: Writer | None, budget: int = 20_000, count: int = 400, **options: Any) -> Session:
    """A session of many messages that are all in view."""
    summarizer = None if writer is None else writer
    session = Session(budget, counter=WORDS, model="gpt-4.1", summarizer=summarizer, **options)
    session.extend(chat(count))
    return session


def kinds(session: Session, after: int = 0) -> list[str]:
    """List the kinds of events behind a version."""
    return [event.kind for event in session.history(after=after, kinds=None)]


def contents(session: Session) -> list[str]:
    """List what is in view."""
    return [str(message["content"]) for message in session.messages()]


@pytest.mark.parametrize(("budget", "summaries"), [(20_000, 0), (5_000, 2), (1_000, 8), (300, 27)])
def test_the_view_is_whole_at_once(budget: int, summaries: int) -> None:
    """Each message is in view or was given to the summarizer, oldest first, in as many calls as planned.

    A message has 20 tokens. What stays is half of the room beside the summary's, of 5,000 tokens 1,750: 87
    messages. 313 leave, and a call is given 250. Of 1,000: 17 stay, 50 a call. Of 300: 5 stay, 15 a call.
    """
    writer = Writer()
    session = session_with(writer)
    said, version = contents(session), session.version
    plan = session.plan("gpt-4o", budget=budget)
    assert (session.version, writer.calls) == (version, 0)
    assert plan.summaries == summaries
    assert session.switch("gpt-4o", budget=budget) == plan
    assert writer.calls == kinds(session, version).count("summary") == summaries
    shown = [text for text in contents(session) if not text.startswith("<summary")]
    assert [message["content"] for message in writer.given if message["content"] in said] + shown == said
    assert session.status().hidden_messages == session.status().pending_messages == 0
    assert session.budget_tokens == budget


def view_of(session: Session) -> list[Any] | None:
    """Return what is in view; None if what must stay does not fit."""
    try:
        return session.messages()
    except BudgetExceededError:
        return None


def numbers_hold(session: Session, plan: SwitchPlan) -> None:
    """What was planned is there."""
    status, sizes, tokens = session.status(), session.token_breakdown, session.fit().report.tokens_after
    assert tokens is not None
    assert tokens <= plan.tokens_after <= session.budget_tokens
    assert (status.hidden_facts, status.hidden_rules) == (plan.hidden_facts, plan.hidden_rules)
    if plan.verdict == "summarize":
        assert status.pending_messages == 0
        if plan.tokens_after < session.budget_tokens and not sizes.anchors:
            assert tokens - sizes.summary == plan.tokens_after - plan.summary_tokens
    else:
        assert tokens == plan.tokens_after


def random_session(chance: Random, writer: Writer) -> Session:
    """A session of any options, in which much, little or nothing waits."""
    options: dict[str, Any] = {
        "target_ratio": chance.choice([0.3, 0.5, 0.7, 1.0]),
        "summary_mode": chance.choice(["incremental", "rolling", "anchored"]),
        "pending_first": chance.random() < 0.2,
        "must_keep": chance.choice([None, "values"]),
        "max_result_ratio": chance.choice([None, "auto", 0.2]),
    }
    if chance.random() < 0.3:
        options["system"] = words(chance.randint(1, 60))
    if chance.random() < 0.2:
        options["min_recent_tokens"] = chance.randint(0, 400)
    if chance.random() < 0.2:
        options["max_summary_tokens"] = chance.randint(30, 300)
    if chance.random() < 0.3:
        options["summarize_threshold_tokens"] = chance.choice([1, 300, 5_000])
    summarizer = None if chance.random() < 0.2 else writer
    budget = chance.choice([300, 1_000, 5_000])
    session = Session(budget, counter=WORDS, model="gpt-4.1", summarizer=summarizer, **options)
    for at in range(chance.randint(0, 60)):
        size = chance.choice([1, 5, 20, 20, 90, 400])
        event = session.add((assistant if at % 2 else user)(f"order {at}-7741 {words(size)}"))
        if chance.random() < 0.03:
            session.pin(event)
    return session


@pytest.mark.few(40)
@pytest.mark.parametrize("seed", range(400))
def test_a_plan_says_what_a_switch_does(seed: int) -> None:
    """Verdict, calls and numbers; what is impossible is refused, with the numbers, and changes nothing."""
    chance, writer = Random(seed), Writer(Random(seed).choice([1, 10, 500]))
    session = random_session(chance, writer)
    writer.calls, version, view = 0, session.version, view_of(session)
    budget = chance.choice([100, 150, 300, 700, 2_000, 8_000])
    counter = WORDS if chance.random() < 0.7 else CharCounter(chance.choice([1.0, 3.0, 8.0]))
    plan = session.plan("gpt-4o", budget=budget, counter=counter)
    assert (session.version, view_of(session), writer.calls) == (version, view, 0)
    assert plan.to_dict() == json.loads(json.dumps(plan.to_dict()))
    if plan.verdict == "impossible":
        with pytest.raises(BudgetExceededError) as caught:
            session.switch("gpt-4o", budget=budget, counter=counter)
        assert caught.value.needed_tokens == plan.tokens_after > caught.value.limit_tokens  # type: ignore[operator]
        assert (session.version, view_of(session)) == (version, view)
        return
    try:
        done = session.switch("gpt-4o", budget=budget, counter=counter)
    except SummaryError:  # the summarizer's words have no room, which nobody knows before it answers
        assert plan.summary_tokens < 120
        return
    assert done == plan
    assert plan.verdict in VERDICTS
    assert kinds(session, version).count("summary") == plan.summaries <= writer.calls
    numbers_hold(session, plan)
    if plan.tokens_after < budget:  # else a summary has hardly any room beside what must stay
        assert session.plan(budget=budget).verdict != "summarize"
        assert session.switch(budget=budget).summaries == 0


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("budget", [130, 400])
def test_every_wire_form_is_valid_after_it(form: str, budget: int) -> None:
    """Calls and results stay together, and what leads may lead, by the judge; in the form it had."""
    body, calls = talk(form, 15), 0

    def summarize(messages: list[Any], existing: str | None) -> str:
        nonlocal calls
        calls += 1
        return f"{len(messages)} things were said."

    session = session_of(form, 100_000, summarizer=summarize)
    messages = said_in(form, body)
    session.extend(messages)
    plan = session.plan(budget=budget, counter=WordCounter(format=form))
    assert plan.verdict == "summarize"
    done = session.switch(budget=budget, counter=WordCounter(format=form))
    assert (done.summaries, calls) == (plan.summaries, plan.summaries)
    assert session.format.name == form
    view = session.fit()
    assert view.report.tokens_after is not None
    assert view.report.tokens_after <= budget
    written = sent(form, body, view.system, view.messages)
    assert not newly_refused(form, sent(form, body, "Be brief.", messages), written)
    assert written[KEYS[form]]
    assert not judge(form, body)


def test_sizes_follow_the_model() -> None:
    """Another counter counts all anew, and what usage taught of the old one is forgotten."""
    session = Session(8_000, model="gpt-4")
    session.extend([user(f"{at} naïve Überprüfung 你好 {words(10)}") for at in range(30)])
    session.messages()
    session.record_usage(3_000)
    assert session.status().expected_tokens == 3_000
    session.switch("gpt-4o", budget=8_000)
    fresh = Session(8_000, model="gpt-4o", counter=counter_for("gpt-4o"))
    fresh.extend([user(f"{at} naïve Überprüfung 你好 {words(10)}") for at in range(30)])
    assert session.token_count == fresh.token_count == session.status().expected_tokens
    with pytest.raises(ConfigurationError, match="has returned no view"):
        session.record_usage(3_000)  # of a view that another model was sent


def test_the_budget_follows_the_window() -> None:
    """The whole window becomes the whole window; another budget stays, as far as the model takes it."""
    whole = Session(model="gpt-4.1")
    assert whole.budget_tokens == 1_047_576 - 32_768
    assert whole.plan("gpt-4o").budget_tokens == 128_000 - 16_384
    whole.switch("gpt-4o")
    assert whole.budget_tokens == 128_000 - 16_384
    whole.switch("gpt-4.1")
    assert whole.budget_tokens == 1_047_576 - 32_768
    own = Session(50_000, model="gpt-4.1")
    own.switch("gpt-4o")
    assert own.budget_tokens == 50_000
    large = Session(500_000, model="gpt-4.1")
    assert large.switch("gpt-4o").budget_tokens == 128_000 - 16_384


def test_thinking_that_the_new_model_refuses_leaves() -> None:
    """Thinking is bound to what stood before it; what the new model thinks afterwards stays."""
    session = Session(9_000, model="claude-opus-5-5", format="anthropic", counter=CharCounter(4))

    def turn(at: int) -> None:
        session.add(user(f"question {at}"))
        thought = {"type": "thinking", "thinking": "hm " * 20, "signature": f"E{at}"}
        session.add({"role": "assistant", "content": [thought, {"type": "text", "text": f"answer {at}"}]})
        session.messages()

    def signatures() -> list[str]:
        blocks = [b for m in session.messages() if isinstance(m["content"], list) for b in m["content"]]
        return [block["signature"] for block in blocks if block["type"] == "thinking"]

    turn(1)
    assert signatures() == ["E1"]
    session.switch("claude-sonnet-5-5", budget=8_000)
    assert signatures() == []
    turn(2)
    assert signatures() == ["E2"]


def test_large_results_are_cut_to_their_new_share() -> None:
    """`max_result_ratio` goes by the new budget, as at opening; the plan counts what is cut."""
    session = Session(2_000, counter=WORDS, max_result_ratio=0.1)
    call = {"id": "c", "type": "function", "function": {"name": "run", "arguments": "{}"}}
    result = {"role": "tool", "tool_call_id": "c", "content": words(150)}
    session.extend([user("go"), {"role": "assistant", "tool_calls": [call]}, result])
    session.extend([assistant("done"), user("more")])
    assert session.plan(budget=1_900).shortened_messages == 0
    plan = session.switch(budget=500)
    assert (plan.verdict, plan.shortened_messages) == ("fits", 1)
    assert len(session.messages()[2]["content"].split()) <= 50


def test_values_at_risk_are_those_nothing_else_says() -> None:
    """A value that a message that stays says is at no risk, nor is one in the system text."""
    writer = Writer()
    told: dict[str, Any] = {
        "counter": WORDS,
        "summarizer": writer,
        "system": "The shop is SHOP-1.",
        "model": "gpt-4.1",
    }
    session = Session(5_000, **told)
    session.add(user("My order is ORD-7741, of SHOP-1, and the other is ORD-8852."))
    session.extend([assistant(words(40)) for _ in range(40)])
    session.add(user("What of ORD-8852?"))
    plan = session.plan("gpt-4o", budget=400)
    assert (plan.verdict, plan.values_at_risk) == ("summarize", 1)
    assert session.plan(budget=4_000).values_at_risk == 0
    assert Session(5_000, **{**told, "must_keep": None}).plan(budget=400).values_at_risk is None


def test_hidden_facts_are_counted() -> None:
    """The cap of facts goes by the new budget."""

    def extract(request: FactRequest) -> list[Fact]:
        return [Fact(text=f"{name} {words(9)}", sources=[name]) for name in request.ids]

    session = session_with(None, 2_000, 60, fact_extractor=extract)
    session.cut()
    session.extend(chat(20))
    before = session.status()
    assert before.facts > 3
    plan = session.plan("gpt-4o", budget=300)
    assert plan.hidden_facts > before.hidden_facts
    assert 0 <= before.facts + before.hidden_facts - plan.hidden_facts < before.facts


RULES = (
    "Never deploy on Fridays.",
    "From now on, answer in German.",
    "Always show prices with tax.",
    "I am allergic to peanuts, so never suggest them.",
    "Never delete a backup of order ORD-7741.",
)
"""What users say once; each holds on."""


def with_rules(chance: Random, summarizer: Writer | None, find: Any, **options: Any) -> Session:
    """A session whose users say rules, orders, and limits that replace each other."""
    session = Session(
        chance.choice([600, 900, 1_500]),
        counter=CharCounter(4),
        model="gpt-4.1",
        find_rules=find,
        summarizer=summarizer,
        **options,
    )
    for at in range(chance.choice([10, 40, 80])):
        said = ("", "", "", chance.choice(RULES), f"My budget is ${at}.", f"Return only the number {at}.")
        session.add(user(f"How is the weather on day {at}, is it nice? {chance.choice(said)}".rstrip()))
    return session


@pytest.mark.few(4)
@pytest.mark.parametrize("seed", range(20))
def test_tokens_before_are_those_of_the_view(seed: int) -> None:
    """Not the room kept free beside it for rules and for what is recalled."""
    chance = Random(seed)
    options: dict[str, Any] = {
        "recall_ratio": chance.choice([0.0, 0.1]),
        "rules": chance.choice([[], ["Be honest."]]),
    }
    session = with_rules(chance, None, chance.choice(["auto", "all"]), **options)
    plan = session.plan("gpt-4o", budget=500)
    assert plan.tokens_before == session.token_count == session.fit().report.tokens_after


@pytest.mark.few(8)
@pytest.mark.parametrize("seed", range(160))
def test_a_plan_counts_rules_as_the_switch_shows_them(seed: int) -> None:
    """Rules of messages that leave are restated, and take tokens; those without room are counted."""
    chance = Random(seed)
    writer = (None, Writer(1), Writer(4), Writer(10))[seed % 4]
    session = with_rules(
        chance,
        writer,
        ("auto", "all")[seed // 4 % 2],
        max_rule_tokens=chance.choice([None, None, 60, 0]),
        rules=chance.choice([[], ["Be honest."]]),
        summary_mode=chance.choice(["incremental", "rolling", "anchored"]),
    )
    budget = chance.choice([120, 150, 200, 300, 450, 700])
    plan = session.plan("gpt-4o", budget=budget)
    assert plan.verdict != "impossible"
    try:
        assert session.switch("gpt-4o", budget=budget) == plan
    except SummaryError:  # the summarizer's words have no room, which nobody knows before it answers
        assert plan.summary_tokens < 40
        return
    numbers_hold(session, plan)


def test_a_value_in_a_rule_that_is_shown_is_at_no_risk() -> None:
    """Neither in one of the host nor in one that is restated; one without room says nothing."""
    said = user("Never delete a backup of order ORD-7741.")
    given: dict[str, Any] = {"counter": CharCounter(4), "model": "gpt-4.1", "find_rules": "auto"}
    cases: list[tuple[dict[str, Any], int]] = [
        ({"find_rules": "off"}, 1),
        ({"find_rules": "off", "rules": ["The order is ORD-7741."]}, 0),
        ({}, 0),
        ({"max_rule_tokens": 0}, 1),
    ]
    for options, at_risk in cases:
        session = Session(5_000, **{**given, **options})
        session.extend([said, *(user(f"Is it nice? {words(20)}") for _ in range(60))])
        plan = session.plan("gpt-4o", budget=600)
        assert (plan.verdict, plan.values_at_risk) == ("evict", at_risk)
        session.switch("gpt-4o", budget=600)
        assert any("ORD-7741" in text for text in contents(session)) is (at_risk == 0)


def test_without_a_summarizer_messages_leave() -> None:
    """The plan says how many; they are in the log, and found there."""
    session = session_with(None)
    plan = session.switch("gpt-4o", budget=1_000)
    assert plan.verdict == "evict"
    assert plan.leaving_messages == session.status().hidden_messages == 400 - len(session.messages())
    assert plan.leaving_tokens == 20 * plan.leaving_messages
    assert (plan.tokens_before, plan.tokens_after) == (8_000, session.token_count)
    assert session.recall("0 w")


def test_impossible_changes_nothing() -> None:
    """What must stay is larger than the room: an error with the numbers, and no event."""
    session = session_with(Writer(), system=words(150))
    version = session.version
    plan = session.plan(budget=120)
    assert plan.verdict == "impossible"
    assert plan.tokens_after > 120
    assert str(plan).endswith(f"takes {plan.tokens_after} tokens, {plan.tokens_after - 120} too many.")
    with pytest.raises(BudgetExceededError) as caught:
        session.switch(budget=120)
    assert (caught.value.needed_tokens, caught.value.limit_tokens) == (plan.tokens_after, 120)
    assert (session.version, session.budget_tokens) == (version, 20_000)


def test_what_a_caller_does_wrong() -> None:
    """Nothing to switch to; an unknown window; a Context, which has the budget."""
    session = session_with(None, 2_000, 4)
    with pytest.raises(ConfigurationError, match="pass the model"):
        session.plan()
    with pytest.raises(ConfigurationError, match="window of 'mine-7b' is not known"):
        session.switch("mine-7b")
    assert session.plan("mine-7b", budget=1_000).verdict == "fits"
    context = Context(1_000, counter=WORDS)
    context.add("history", [])
    with pytest.raises(ConfigurationError, match="Context's"):
        Session(context=context).plan("gpt-4o")


def test_a_failure_keeps_the_switch_and_the_same_call_finishes() -> None:
    """A summarizer that is away costs no message."""
    away = True

    def summarize(messages: list[Any]) -> str:
        if away:
            raise ConnectionError
        return "short"

    session = Session(20_000, counter=WORDS, model="gpt-4.1", summarizer=summarize)
    session.extend(chat(100))
    with pytest.raises(SummaryError):
        session.switch("gpt-4o", budget=1_000)
    assert session.budget_tokens == 1_000
    waiting = session.status().hidden_messages
    assert waiting > 0
    away = False
    version = session.version
    assert session.switch("gpt-4o", budget=1_000).summaries == 2
    assert session.status().hidden_messages == 0
    assert set(kinds(session, version)) == {"summary"}


@pytest.mark.parametrize("at", range(1, 5))
def test_a_killed_process_loses_nothing(tmp_path: Path, at: int) -> None:
    """Killed in the n-th summary: the session is valid, goes on, and the same call writes the others."""
    path = tmp_path / "chats.db"
    child = os.fork()
    if child == 0:  # pragma: no cover: another process
        calls = 0

        def dies(messages: list[Any]) -> str:
            nonlocal calls
            calls += 1
            if calls == at:
                os.kill(os.getpid(), 9)
            return "short"

        started = Session(
            20_000, counter=WORDS, model="gpt-4.1", summarizer=dies, store=SQLiteStore(path), id="s"
        )
        started.extend(chat(200))
        started.switch("gpt-4o", budget=1_000)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 9
    writer = Writer()
    session = Session.open(SQLiteStore(path), "s", counter=WORDS, summarizer=writer)
    assert kinds(session).count("summary") == at - 1
    assert session.budget_tokens == 1_000
    assert session.token_count <= 1_000
    plan = session.plan("gpt-4o")
    assert session.switch("gpt-4o") == plan
    assert plan.summaries == writer.calls == 5 - at  # 183 messages, 50 a call
    assert session.status().hidden_messages == 0
    session.add(user("and on"))
    assert contents(session)[-1] == "and on"


class Forgetful(MemoryStore):
    """Loses the answer of the next append after it was stored, if it is told to."""

    loses = False

    def append(self, request: AppendRequest, /) -> Appended:
        """Store, and lose the answer."""
        done = super().append(request)
        if self.loses:
            self.loses = False
            raise StoreUnavailableError("the answer was lost")
        return done


def test_a_lost_answer_switches_once() -> None:
    """Tried again, it goes on from what the store has."""
    store, writer = Forgetful(), Writer()
    session = session_with(writer, store=store, id="s", retry=Retry(attempts=3, first_seconds=0.0))
    version, store.loses = session.version, True
    assert session.switch("gpt-4o", budget=1_000).summaries == 8
    assert kinds(session, version) == ["options", "evicted"] + 8 * ["summary"]


class AsyncWriter:
    """The same, awaited."""

    def __init__(self) -> None:
        self.calls = 0

    async def summarize(self, request: SummaryRequest) -> str:
        """Write some words."""
        self.calls += 1
        return f"so far {words(10)}"


def test_the_same_awaited() -> None:
    """Two colours, one algorithm; an async summarizer and one in the background."""

    async def run() -> None:
        for background in (False, True):
            writer = AsyncWriter()

            session = Session(
                20_000, counter=WORDS, model="gpt-4.1", summarizer=writer, background=background
            )
            await session.aextend(chat(400))
            plan = await session.aplan("gpt-4o", budget=1_000)
            assert plan.summaries == 8
            assert await session.aswitch("gpt-4o", budget=1_000) == plan
            assert writer.calls == 8
            assert session.status().hidden_messages == 0

    asyncio.run(run())


def reopened(store: MemoryStore, **options: Any) -> Session:
    """Open the session again, as another process does."""
    return Session(store=store, id="s", counter=WORDS, summarizer=Writer(), **options)


def test_it_is_opened_again_without_ceremony() -> None:
    """The log knows the model; who opens it with the one before is told what happened, and how to go on."""
    store = MemoryStore()
    session = session_with(Writer(), store=store, id="s")
    session.switch("gpt-4o", budget=1_000)
    view, switched = session.messages(), session.version
    for again in (
        Session.open(store, "s", counter=WORDS, summarizer=Writer()),
        reopened(store),
        reopened(store, model="gpt-4o"),
        Session.restore(session.snapshot(), counter=WORDS, summarizer=Writer()),
        Session.restore(session.snapshot(history=False), counter=WORDS, summarizer=Writer()),
        session.fork(),
    ):
        assert again.messages() == view
        assert again.budget_tokens == 1_000
        assert again.plan(budget=1_000).model == "gpt-4o"
    with pytest.raises(ConfigurationError, match=r"switched from 'gpt-4.1' to 'gpt-4o' at version 402"):
        reopened(store, model="gpt-4.1").messages()
    assert session.version == switched
    session.switch("gpt-4.1", budget=2_000)
    assert reopened(store, model="gpt-4.1").budget_tokens == 2_000


def test_other_objects_follow_it() -> None:
    """A worker that opened the session before goes on with the model of the log, and does not switch back."""
    store = MemoryStore()
    first, second = (
        Session(20_000, counter=WORDS, model="gpt-4.1", store=store, id="s", retry=Retry(first_seconds=0.0))
        for _ in range(2)
    )
    first.extend(chat(100))
    second.refresh()
    first.switch("gpt-4o", budget=1_000)
    second.add(user("mine"))
    second.refresh()
    assert second.budget_tokens == 1_000
    assert second.plan(budget=1_000).model == "gpt-4o"
    assert kinds(second).count("options") == 2


def test_past_views_forks_and_undo() -> None:
    """The past is as it was; undo takes back what was evicted and summarized, and the model stays."""
    session = session_with(Writer())
    before, version = session.messages(), session.version
    session.switch("gpt-4o", budget=1_000)
    after, end = session.messages(), session.version
    assert session.view_at(version) == before
    fork = session.fork(version)
    assert (fork.messages(), fork.budget_tokens) == (before, 20_000)
    assert fork.plan(budget=20_000).model == "gpt-4.1"
    evicted = next(session.history(after=version, kinds=("evicted",)))
    session.undo(evicted)
    assert (session.summary, session.budget_tokens) == (None, 1_000)
    assert session.plan(budget=1_000).model == "gpt-4o"
    assert session.token_count <= 1_000
    assert session.view_at(end) == after
    session.clear()
    with pytest.raises(ConfigurationError, match="was switched from"):
        Session(
            store=session.store, id=session.id, model="gpt-4.1", counter=WORDS, summarizer=Writer()
        ).messages()


def test_hooks_and_events_tell_of_it() -> None:
    """What left, each summary, and the switch with its budget."""
    from trimtab import observe

    told: list[tuple[str, int]] = []
    hooks: dict[str, Callable[..., None]] = {
        "on_evict": lambda messages, reason: told.append((reason, len(messages))),
        "on_summarize": lambda messages, *_: told.append(("summary", len(messages))),
    }
    session = session_with(Writer(), hooks=hooks)
    told.clear()
    seen: list[Any] = []
    with observe(seen.append):
        plan = session.switch("gpt-4o", budget=1_000)
    assert told[0] == ("budget", plan.leaving_messages)
    assert sum(count for kind, count in told[1:]) == plan.leaving_messages
    switched = [event for event in seen if getattr(event, "kind", "") == "switched"]
    assert [(event.tokens, event.version) for event in switched] == [(1_000, 402)]


@pytest.mark.parametrize(
    ("plan", "text"),
    [
        (
            SwitchPlan(verdict="fits", model=None, budget_tokens=9_000, tokens_before=8, tokens_after=8),
            "no model, 9,000 tokens: fits now, with 8 tokens.",
        ),
        (
            SwitchPlan(
                verdict="summarize",
                model="m",
                budget_tokens=9_000,
                tokens_before=12_345,
                tokens_after=8_000,
                summary_tokens=900,
                summaries=1,
                leaving_messages=40,
                leaving_tokens=5_000,
                shortened_messages=2,
                hidden_facts=1,
                hidden_rules=2,
                values_at_risk=3,
            ),
            "m, 9,000 tokens: fits after 1 summary, with at most 8,000 of 12,345 tokens."
            " Replaced by a summary: 40 messages (5,000 tokens)."
            " In no message that stays: 3 exact values. Shown shortened: 2 messages."
            " Without room in view: 1 fact, 2 rules.",
        ),
        (
            SwitchPlan(
                verdict="evict",
                model="m",
                budget_tokens=900,
                tokens_before=2_000,
                tokens_after=800,
                leaving_messages=1,
                leaving_tokens=1_200,
                hidden_rules=1,
            ),
            "m, 900 tokens: fits, with 800 of 2,000 tokens."
            " Out of view, but in the log: 1 message (1,200 tokens). Without room in view: 1 rule.",
        ),
    ],
)
def test_a_plan_is_read(plan: SwitchPlan, text: str) -> None:
    """In sentences, without what is 0."""
    assert str(plan) == text
