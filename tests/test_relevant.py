"""`Relevant` and scores by name: what stays of a conversation when a question comes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest

from tests import planted
from tests.builders import assistant, call, places, result, talk, user
from trimtab import (
    BudgetExceededError,
    Cascade,
    ClearToolResults,
    ConfigurationError,
    Context,
    PriorityBased,
    SlidingWindow,
    TruncateText,
    afit,
    counter_for,
    create_strategy,
    fit,
    validate,
)
from trimtab.counting import EstimateCounter, FixedCounter
from trimtab.errors import UnknownNameError
from trimtab.formats import formats, get_format, mapping_of
from trimtab.policy import load_policy, policy_data
from trimtab.relevance import relevance
from trimtab.strategies import Place, Relevant, default_score, strategy_data
from trimtab.testing import WordCounter, request_bodies

TEN = FixedCounter(per_message=10)
"""Ten tokens a message and nothing beside, so that a budget is a number of messages."""

GAP = "[… {count} messages left out …]"


def said(texts: str) -> list[dict[str, Any]]:
    """Write a conversation: texts with | between them, the user's and the model's in turns."""
    return [assistant(text) if at % 2 else user(text) for at, text in enumerate(texts.split("|"))]


CAT = said("my cat is Tom|nice|it rains|yes|so dull|true|I read|good|the cat?")


@pytest.mark.parametrize(
    ("strategy", "kept"),
    [
        pytest.param(
            Relevant(), {5: [0, 1, 6, 7, 8], 4: [0, 1, 2, 8], 3: [0, 1, 8], 2: [0, 8]}, id="default"
        ),
        pytest.param(
            Relevant(recent_ratio=0.5),
            {5: [0, 1, 6, 7, 8], 4: [0, 6, 7, 8], 3: [6, 7, 8], 2: [0, 8]},
            id="half",
        ),
        pytest.param(Relevant(recent_ratio=0), {5: [0, 1, 2, 3, 8], 3: [0, 1, 8]}, id="none-newest"),
        pytest.param(Relevant(recent_ratio=1), {5: [4, 5, 6, 7, 8], 3: [6, 7, 8]}, id="all-newest"),
        pytest.param(Relevant("rain", recent_ratio=0), {3: [2, 3, 8], 4: [1, 2, 3, 8]}, id="a-query"),
        pytest.param(Relevant("zebra", recent_ratio=0.5), {4: [4, 6, 7, 8], 3: [6, 7, 8]}, id="nothing-said"),
        pytest.param(Relevant(score="recency", recent_ratio=0), {4: [5, 6, 7, 8]}, id="by-recency"),
    ],
)
def test_the_newest_stay_and_what_the_question_is_about(
    strategy: Relevant, kept: dict[int, list[int]]
) -> None:
    """The newest, with the question they answer, have their share; then hits, then what is beside one."""
    for messages, places_kept in kept.items():
        fitted = fit(CAT, 10 * messages, counter=TEN, strategy=strategy)
        assert places(fitted.messages, CAT) == places_kept, messages


def test_the_question_of_the_turn_that_is_cut_into_stays_with_it() -> None:
    """As with a window, if there is room for it."""
    messages = [*said("a|b|c|d"), user("go on"), *[assistant("step")] * 4, user("and?")]
    fitted = fit(messages, 60, counter=TEN, strategy=Relevant("nothing of this"))
    assert messages[4] in fitted.messages


def test_what_must_stay_stays_whatever_it_says() -> None:
    """System text, pins, the latest user message, the newest unit, and an open call."""
    messages = [{"role": "system", "content": "be kind"}, *CAT, call("a")]
    fitted = fit(messages, 50, counter=TEN, strategy=Relevant(), pin=[4])
    assert places(fitted.messages, messages) == [0, 1, 4, 9, 10]
    with pytest.raises(BudgetExceededError):
        fit(messages, 30, counter=TEN, strategy=Relevant(), pin=[4])


def test_a_result_is_found_with_its_call_and_leaves_with_it() -> None:
    """Parallel calls are one unit: what one of the results says keeps all of them."""
    work = [user("look"), call("a", "b"), result("a", "the cat sleeps"), result("b", "rain"), assistant("ok")]
    messages = [*work, *said("x|y|z|u|v"), assistant("fine"), user("where is my cat")]
    kept = places(fit(messages, 50, counter=TEN, strategy=Relevant(recent_ratio=0.2)).messages, messages)
    assert kept == [0, 1, 2, 3, 11]
    kept = places(fit(messages, 30, counter=TEN, strategy=Relevant(recent_ratio=0.5)).messages, messages)
    assert not {1, 2, 3} & set(kept)


def test_arguments_of_calls_are_searched_too() -> None:
    """In every place where a message says something."""
    asked = call("a")
    asked["tool_calls"][0]["function"]["arguments"] = json.dumps({"city": "Oslo"})
    messages = [user("go"), asked, result("a"), *said("x|y|z|u|v|w"), user("what of Oslo?")]
    kept = places(fit(messages, 40, counter=TEN, strategy=Relevant(recent_ratio=0)).messages, messages)
    assert kept == [0, 1, 2, 9]


# -- evidence


@pytest.mark.few(1)
@pytest.mark.parametrize("language", [planted.ENGLISH, planted.CHINESE], ids=["english", "chinese"])
@pytest.mark.parametrize("seed", [1, 2])
def test_what_was_told_once_is_in_view_when_it_is_asked_for(language: Any, seed: int) -> None:
    """Where a sliding window has a fifth of the evidence; with lines at the gaps, and in a mixture, too."""
    made = planted.planted(language, seed=seed)
    counter = counter_for("gpt-4o")
    budget = counter.count(made.messages) // 5

    def share(strategy: Any) -> float:
        return planted.share_in_view(
            made, lambda messages: fit(messages, budget, counter=counter, strategy=strategy).messages
        )

    assert share(SlidingWindow()) <= 0.25
    assert share(Relevant()) >= 0.95
    assert share(Relevant(gap=GAP)) >= 0.85
    assert share(PriorityBased(score={"relevance": 1, "role": 0.3})) >= 0.85


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "words", [planted.ENGLISH_ADVICE, planted.CHINESE_ADVICE], ids=["english", "chinese"]
)
@pytest.mark.parametrize("by_assistant", [False, True], ids=["by-the-user", "by-the-assistant"])
def test_a_line_is_found_among_long_answers(words: planted.Advice, by_assistant: bool) -> None:
    """In a twentieth of the room, whoever said it: long answers that share its words do not crowd it out."""
    made = planted.advised(words, by_assistant=by_assistant)
    counter = EstimateCounter()
    budget = counter.count(made.messages) // 20

    def share(strategy: Any) -> float:
        return planted.share_in_view(
            made, lambda messages: fit(messages, budget, counter=counter, strategy=strategy).messages
        )

    assert share(SlidingWindow()) <= 0.1
    assert share(Relevant()) >= 0.85


def test_of_two_messages_that_say_as_much_the_users_stays() -> None:
    """Though the other is newer; what says nothing of the question leaves by role, too."""
    messages = [*said("the cat is Tom|well|it rains|the cat is Tom|I read|good"), user("the cat?")]
    fitted = fit(messages, 20, counter=TEN, strategy=Relevant(recent_ratio=0))
    assert places(fitted.messages, messages) == [0, 6]
    newest = fit(messages, 20, counter=TEN, strategy=Relevant(recent_ratio=0, score="relevance"))
    assert places(newest.messages, messages) == [3, 6]


def test_a_long_answer_beside_a_hit_pays_for_its_own_room() -> None:
    """It has half of what the short question beside it says, and takes the room of many worth more."""
    answer = "That depends on many things. " * 40
    asked = ["Does my cat eat fish?", answer]
    lines = ["A cat came by.", "So it did.", "The cat again?", "It seems so."]
    scores = relevance("What did I say of the cat?", [*asked, *["Well.", "Hm."] * 2, *lines])
    long, beside = scores[1], scores[-1]
    assert 0 < 4 * long < beside < scores[0]


def test_a_long_text_has_to_say_more() -> None:
    """Sixteen times as long, it has a quarter of the score beyond what BM25 takes; a word gains nothing."""
    short, long = "a cat " * 7, "a cat " * 112
    scores = relevance("cat", [short, "", "", "", "", "", "", "", "", "", "", "", long])
    often = [text.count("cat") for text in (short, long)]
    length = (len(short) + len(long)) / 13
    by_bm25 = [
        times * 2.2 / (times + 1.2 * (0.25 + 0.75 * len(text) / length))
        for times, text in zip(often, (short, long), strict=True)
    ]
    assert scores[0] / scores[-1] == pytest.approx(4 * by_bm25[0] / by_bm25[1])
    both, one = relevance(
        "crane kite",
        ["a crane and a kite over it", "kite", *["what else is said, and it is longer"] * 9],
    )[:2]
    assert both > one


# -- a score of one's own


def by_length(query: str, messages: Sequence[Any]) -> list[int]:
    """Score messages by how long they are."""
    return [len(message["content"]) for message in messages]


def test_a_function_scores_all_messages_at_once() -> None:
    """It is given the question, or the query, and every message; higher stays."""
    asked = []

    def score(query: str, messages: Sequence[Any]) -> Any:
        asked.append((query, list(messages)))
        return (len(message["content"]) for message in messages)

    fitted = fit(CAT, 40, counter=TEN, strategy=Relevant(score=score, recent_ratio=0))
    assert places(fitted.messages, CAT) == [0, 2, 4, 8]
    fit(CAT, 40, counter=TEN, strategy=Relevant("a query", score=score))
    assert [query for query, _ in asked] == ["the cat?", "a query"]
    assert all(messages == CAT for _, messages in asked)


async def later(query: str, messages: Sequence[Any]) -> list[float]:
    """Score later."""
    return [0.0] * len(messages)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        pytest.param({"query": 3}, "query must be a text", id="query"),
        pytest.param({"recent_ratio": 1.1}, "recent_ratio", id="ratio-above"),
        pytest.param({"recent_ratio": -0.1}, "recent_ratio", id="ratio-below"),
        pytest.param({"recent_ratio": True}, "recent_ratio", id="ratio-flag"),
        pytest.param({"gap": ""}, "gap must be a text", id="gap-empty"),
        pytest.param({"gap": 3}, "gap must be a text", id="gap-number"),
        pytest.param({"gap": "{number} left"}, "number", id="gap-key"),
        pytest.param({"gap": "{} left"}, "gap may have", id="gap-place"),
        pytest.param({"gap": "{ left"}, "gap may have", id="gap-brace"),
        pytest.param({"score": 3}, "score must be", id="score-number"),
        pytest.param({"score": {}}, "needs a weight", id="no-weights"),
        pytest.param({"score": {"role": 0}}, "above 0", id="weight-0"),
        pytest.param({"score": {"role": float("inf")}}, "above 0", id="weight-inf"),
        pytest.param({"score": "relevence"}, "did you mean relevance", id="score-word"),
        pytest.param({"score": {"rolle": 1}}, "did you mean role", id="weights-word"),
        pytest.param({"score": lambda message: 1.0}, "query, messages", id="score-one"),
    ],
)
def test_what_cannot_score_is_refused_when_it_is_made(options: dict[str, Any], said: str) -> None:
    """Each error names the option and what it may be."""
    with pytest.raises(ConfigurationError, match=said):
        Relevant(**options)


@pytest.mark.parametrize(
    ("score", "said"),
    [
        pytest.param(lambda query, messages: [1.0], "1 numbers for 9 messages", id="too-few"),
        pytest.param(lambda query, messages: iter(int, 1), "more than 9 numbers", id="without-end"),
        pytest.param(lambda query, messages: dict.fromkeys(range(9), 1.0), "returned dict", id="by-message"),
        pytest.param(lambda query, messages: "abc", "returned str", id="text"),
        pytest.param(lambda query, messages: 3, "returned int", id="number"),
        pytest.param(lambda query, messages: ["a"] * 9, "must be a number", id="words"),
        pytest.param(lambda query, messages: [float("nan")] * 9, "nan", id="nan"),
        pytest.param(lambda query, messages: ["1"] * 9, "must be a number", id="digits"),
        pytest.param(lambda query, messages: [None] * 9, "NoneType for message 0", id="none"),
    ],
)
def test_what_a_score_answers_is_looked_over(score: Any, said: str) -> None:
    """A number for each message, whether it is awaited or not."""

    async def answer(query: str, messages: Sequence[Any]) -> Any:
        return score(query, messages)

    with pytest.raises(ConfigurationError, match=said):
        fit(CAT, 40, counter=TEN, strategy=Relevant(score=score))
    for either in (score, answer):
        with pytest.raises(ConfigurationError, match=said):
            asyncio.run(afit(CAT, 40, counter=TEN, strategy=Relevant(score=either)))


def test_an_async_score_is_awaited_once_and_by_afit_alone() -> None:
    """`fit` names `afit`; alone and in a Cascade, with a counter that is awaited, too."""
    asked = []

    async def score(query: str, messages: Sequence[Any]) -> list[int]:
        await asyncio.sleep(0)
        asked.append(query)
        return by_length(query, messages)

    async def count(messages: list[dict[str, Any]]) -> int:
        await asyncio.sleep(0)
        return sum(10 for message in messages if message["role"])

    for ranker in (score, lambda query, messages: score(query, messages)):
        relevant = Relevant(score=ranker, recent_ratio=0)
        for strategy in (relevant, Cascade(ClearToolResults(), relevant, TruncateText())):
            with pytest.raises(ConfigurationError, match="afit"):
                fit(CAT, 40, counter=TEN, strategy=strategy)
            for counter in (TEN, count):
                asked.clear()
                fitted = asyncio.run(afit(CAT, 40, counter=counter, strategy=strategy))
                assert places(fitted.messages, CAT) == [0, 2, 4, 8]
                assert asked == ["the cat?"]


def test_an_async_score_of_one_message_is_awaited_for_each() -> None:
    """By `afit` and a Context's, once; `fit` names `afit`; a fit to another budget goes by role."""
    asked: list[int] = []

    async def score(message: Any, place: Place) -> int:
        await asyncio.sleep(0)
        asked.append(place.index)
        return len(message["content"])

    by_role = places(fit(CAT, 30, counter=TEN, strategy=PriorityBased()).messages, CAT)
    for one in (score, lambda message, place: score(message, place)):
        strategy = PriorityBased(score=one)
        context = Context(40, counter=TEN).add("chat", CAT, strategy=strategy)
        with pytest.raises(ConfigurationError, match="score is async: await afit"):
            fit(CAT, 40, counter=TEN, strategy=strategy)
        with pytest.raises(ConfigurationError, match="score is async: await afit"):
            context.fit()
        for coming in (afit(CAT, 40, counter=TEN, strategy=strategy), context.afit()):
            asked.clear()
            fitted = asyncio.run(coming)
            assert places(fitted.messages, CAT) == [0, 2, 4, 8]
            assert asked == list(range(9))
            assert places(fitted.at(30).messages, CAT) == by_role


def test_a_fit_to_another_budget_asks_no_async_score() -> None:
    """It ranks by words in its place; a function that answers at once is asked."""
    fitted = asyncio.run(afit(CAT, 40, counter=TEN, strategy=Relevant(score=later, recent_ratio=0)))
    assert places(fitted.at(30).messages, CAT) == [0, 1, 8]
    fitted = fit(CAT, 40, counter=TEN, strategy=Relevant(score=by_length, recent_ratio=0))
    assert places(fitted.at(30).messages, CAT) == [0, 2, 8]


# -- gaps


def test_a_line_stands_where_messages_were_left_out() -> None:
    """One for each gap, with their number; counted, and not in the way of what the report says of them."""
    fitted = fit(CAT, 50, counter=TEN, strategy=Relevant(gap=GAP))
    assert [message["content"] for message in fitted.messages] == [
        "my cat is Tom",
        "[… 5 messages left out …]",
        "I read",
        "good",
        "the cat?",
    ]
    report = fitted.report
    assert report.tokens_after == 50
    assert {row.reason for row in report.messages if row.fate == "evicted"} == {"over_limit"}


def test_a_line_is_short_or_not_there() -> None:
    """Where what must stay leaves no room for a line, the report says so."""
    fitted = fit(CAT, 15, counter=TEN, strategy=Relevant(gap=GAP))
    assert fitted.messages == CAT[-1:]
    assert any("no room for lines" in note for note in fitted.report.notes)


def test_no_line_stands_between_a_call_and_its_result() -> None:
    """Also where something that left stood there."""
    messages = [
        user("look"),
        call("a"),
        assistant("wait"),
        result("a", "the cat sleeps"),
        *said("x|y|z|u"),
        assistant("w"),
        user("the cat?"),
    ]
    fitted = fit(messages, 50, counter=TEN, strategy=Relevant(gap=GAP, recent_ratio=0))
    at = fitted.messages.index(messages[1])
    assert fitted.messages[at + 1] is messages[3]


def test_no_line_stands_behind_an_open_call() -> None:
    """A message of the user's would end the wait for its result."""
    note = {"role": "system", "content": "a note " * 9}
    messages = [*CAT, call("a"), note, note, note]
    fitted = fit(messages, 70, counter=WordCounter(), strategy=Relevant(gap="gap"))
    assert len(fitted.messages) < len(messages)
    before = {one.rule for one in validate(messages)}
    assert {one.rule for one in validate(fitted.messages)} == before


@pytest.mark.few(1)
@pytest.mark.parametrize("form", formats())
@pytest.mark.parametrize("black_box", [False, True], ids=["additive", "black-box"])
def test_with_lines_every_wire_form_stays_valid(form: str, black_box: bool) -> None:
    """Within the budget, with no fault that the input did not have; alone, in a Cascade, and async."""
    rules, words = get_format(form).rules, WordCounter(format=form)
    counter: Any = words.count if black_box else words
    relevant = Relevant("look search", gap="[{count} left out]", recent_ratio=0.3)
    lines = 0
    for body in request_bodies(40, format=form, seed=5, valid=True):
        messages = body[rules.body_key]
        if validate(messages, format=form):
            continue
        for strategy in (relevant, Cascade(ClearToolResults(keep_results=1), relevant, TruncateText())):
            for part in (0.4, 0.7):
                budget = max(1, int(words.count(messages) * part))
                try:
                    fitted = fit(messages, budget, counter=counter, strategy=strategy, format=form)
                except BudgetExceededError:
                    continue
                assert words.count(fitted.messages) <= budget
                assert validate(fitted.messages, format=form) == []
                lines += len(fitted.messages) - sum(row.fate != "evicted" for row in fitted.report.messages)
                later = asyncio.run(afit(messages, budget, counter=counter, strategy=strategy, format=form))
                assert later.messages == fitted.messages
    assert lines > 5


@pytest.mark.parametrize("form", formats())
def test_a_line_that_comes_back_is_counted_once_and_never_the_question(form: str) -> None:
    """Fit after fit on what the last one gave: lines and messages add up to all that was ever said."""
    wire, counter = get_format(form), WordCounter(format=form)
    messages: list[Any] = []
    for turn in range(60):
        messages += [wire.message("user", [f"question {turn} is here"])]
        messages = list(fit(messages, 90, counter=counter, strategy=Relevant(gap=GAP), format=form).messages)
        texts = [wire.full_text(message) for message in messages]
        lines = [int(text.split()[1]) for text in texts if text.endswith("left out …]")]
        assert texts[-1] == f"question {turn} is here"
        assert len(texts) - len(lines) + sum(lines) == turn + 1
        assert not any("left out" in one and "left out" in next for one, next in pairwise(texts))
    assert lines


def test_a_line_that_comes_back_is_no_evidence() -> None:
    """Though it has the question's words, it leaves for the new line, which stands for what it stood for."""
    messages = said("[… 3 messages about the cat left out …]|it rains|yes|so dull|the cat?")
    strategy = Relevant(gap="[… {count} messages about the cat left out …]", recent_ratio=0)
    fitted = fit(messages, 30, counter=TEN, strategy=strategy)
    assert [message["content"] for message in fitted.messages] == [
        "[… 6 messages about the cat left out …]",
        "the cat?",
    ]


def test_no_line_stands_behind_the_question() -> None:
    """In a loop of calls it would be the latest user message, and the next fit would keep it as such."""
    messages = [*said("x|y|z|u"), user("the cat?")]
    for name in "abcdef":
        messages += [call(name), result(name, "it sleeps")]
    fitted = fit(messages, 70, counter=TEN, strategy=Relevant(gap=GAP))
    said_by_user = [message["content"] for message in fitted.messages if message["role"] == "user"]
    assert said_by_user[-1] == "the cat?"
    assert said_by_user[0].endswith("left out …]")


# -- in a Context, and as data


def test_the_question_may_stand_in_another_block() -> None:
    """Documents are chosen by what the user asks behind them, not by what they hold themselves."""
    documents = ["Tea is a drink.", "The cat sleeps in the barn.", "Bread takes an hour.", "It rains in May."]
    context = (
        Context(30, counter=TEN)
        .add("documents", documents, strategy=Relevant(recent_ratio=0))
        .add("history", said("hello|hi"), priority=5)
        .add("question", "Where does my cat sleep?", priority=9)
    )
    told = [message["content"] for message in Context.fit(context).messages]
    assert told[-1] == "Where does my cat sleep?"
    assert len(told) == 3
    told = [message["content"] for message in context.fit(40).messages]
    assert told[0] == "The cat sleeps in the barn."


def test_relevant_goes_through_data_and_policies() -> None:
    """With a score by word, with weights, and a function by its name."""
    for options in ({}, {"score": "recency"}, {"score": {"relevance": 1, "role": 0.5}}, {"gap": GAP}):
        policy = {"blocks": [{"name": "chat", "strategy": {"kind": "relevant", **options}}]}
        context = load_policy(policy)
        assert context.blocks[0].strategy == Relevant(**options)
        assert load_policy(policy_data(context)).blocks[0].strategy == Relevant(**options)
    data = {"kind": "relevant", "score": "mine"}
    made = create_strategy(data, names={"mine": by_length})
    assert made == Relevant(score=by_length, score_name="mine")
    assert strategy_data(made)["score"] == "mine"
    with pytest.raises(ConfigurationError, match="without a name"):
        strategy_data(Relevant(score=by_length))
    with pytest.raises(UnknownNameError, match="relevance"):
        create_strategy({"kind": "relevant", "score": "relevanse"})


# -- scores by name


def test_priority_by_a_word_scores_as_the_word_says() -> None:
    """`role` is the default, `recency` the newest, `relevance` what the question is about."""
    assert PriorityBased(score="role") == PriorityBased() == PriorityBased(score={"role": 2})
    assert PriorityBased(score="role").score is default_score
    newest = fit(CAT, 40, counter=TEN, strategy=PriorityBased(score="recency"))
    assert places(newest.messages, CAT) == [5, 6, 7, 8]
    relevant = fit(CAT, 30, counter=TEN, strategy=PriorityBased(score="relevance"))
    assert places(relevant.messages, CAT) == [0, 1, 8]


def test_the_default_is_relevance_with_a_tenth_of_role() -> None:
    """As its documentation says, and what it writes as data."""
    assert Relevant() == Relevant(score={"relevance": 1, "role": 0.1})


def test_a_mixture_weighs_what_is_said_against_who_says_it() -> None:
    """With little weight on the role a hit of the model's stays, with much the words of users do."""
    messages = said("hello|the cat is Tom|it rains|yes|so dull|true|the cat?")
    little = PriorityBased(score={"relevance": 1, "role": 0.1})
    much = PriorityBased(score={"relevance": 0.1, "role": 1})
    assert places(fit(messages, 20, counter=TEN, strategy=little).messages, messages) == [1, 6]
    assert places(fit(messages, 20, counter=TEN, strategy=much).messages, messages) == [4, 6]


def test_the_role_in_a_mixture_is_that_of_the_default_score() -> None:
    """Alone, with another weight, it ranks as the default does, in any wire form; system text first."""
    messages = talk("s1 u3 cA rA4 a2 s2 u3 a6 cB rB2 u1")
    for budget in range(4, 34):
        kept = []
        for strategy in (PriorityBased(), PriorityBased(score={"role": 0.5, "recency": 1e-12})):
            kept.append(fit(messages, budget, counter=WordCounter(), strategy=strategy).messages)
        assert kept[0] == kept[1]
    place = Place(index=9, count=10, kind="user", has_calls=False)
    assert default_score(mapping_of(messages[0]), place) == 150.0
