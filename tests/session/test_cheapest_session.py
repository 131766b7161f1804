"""`Session(strategy="cheapest")`: how deep a cut goes is worked out, and a cold cache is a time to cut."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.builders import assistant, system, user, words
from tests.session.test_steady import chat, grows, views_of
from tests.test_prompt_cache import airline, coding
from trimtab import CharCounter, ConfigurationError, Context, Session, fit, validate
from trimtab.models import CachePricing
from trimtab.replay import replay
from trimtab.stores import MemoryStore
from trimtab.strategies import Cheapest
from trimtab.testing import WordCounter

WORDS = WordCounter()


def even(turns: int, size: int = 9) -> list[Any]:
    """Make a chat whose messages are all of one size."""
    return [one for _ in range(turns) for one in (user(words(size)), assistant(words(size)))]


def test_it_cuts_as_seldom_and_as_deep_as_the_strategy_does() -> None:
    """On a chat that grows evenly: as many cuts as `fit` makes of it call by call, give or take one."""
    said = even(200)
    session = Session(900, counter=WORDS, strategy="cheapest")
    views, fitted = list[list[Any]](), list[list[Any]]()
    for at, message in enumerate(said):
        session.add(message)
        if at % 2 == 0:
            views.append(session.messages())
            fitted.append(fit(said[: at + 1], 900, counter=WORDS, strategy="cheapest").messages)
    cuts, wanted = (
        sum(len(after) < len(before) for before, after in pairwise(found)) for found in (views, fitted)
    )
    assert wanted >= 5
    assert abs(cuts - wanted) <= 1
    assert all(WORDS.count(view) <= 900 for view in views)


def test_dearer_room_makes_cuts_less_deep() -> None:
    """The options of `Cheapest` are those of the session's; data says them, too."""
    ways: list[Any] = [Cheapest(room_weight=0.1), {"kind": "cheapest", "room_weight": 5.0}]
    cuts = []
    for strategy in ways:
        views = views_of(Session(900, counter=WORDS, strategy=strategy), even(300))
        cuts.append(sum(not grows(before, after) for before, after in pairwise(views)))
    assert cuts[0] * 2 < cuts[1]


@pytest.mark.parametrize("form", ["openai_chat", "anthropic"])
def test_the_cut_is_where_it_was_however_the_session_is_opened(form: str) -> None:
    """Opened again, restored, forked, kept without its history: the same view, and the same from then on."""
    said = chat(120) if form == "openai_chat" else even(60)
    options: dict[str, Any] = {"counter": WordCounter(format=form)}
    for count in range(40, 110, 14):
        store = MemoryStore()
        session = Session(
            300, system="sys", strategy="cheapest", format=form, store=store, id="one", **options
        )
        session.extend(said[:count])
        others = [
            Session.open(store, "one", **options).fork(id="two"),
            Session.restore(session.snapshot(), **options),
            Session.restore(session.snapshot(history=False), **options),
        ]
        for message in (None, *said[count : count + 9]):
            for one in (session, *others):
                if message is not None:
                    one.add(message)
            assert all(one.messages() == session.messages() for one in others)
            assert not [one for one in validate(session.messages(), format=form) if one.fault]


@pytest.mark.long
@pytest.mark.parametrize(
    ("conversation", "most"), [(airline, 1.15), pytest.param(coding, 1.15, marks=pytest.mark.long)]
)
def test_it_costs_no_more_than_strides_of_a_half_at_their_fill(
    data_dir: Path, conversation: Any, most: float
) -> None:
    """Price and empty room together, weighed as `room_weight` does: on recorded chats no worse than 0.5."""
    counter = CharCounter(4)
    talk = conversation(data_dir)[:400]
    costs = []
    for options in ({"target_ratio": 0.5}, {"strategy": "cheapest"}):
        found = replay(
            talk,
            lambda options=options: Session(8_000, counter=counter, **options),  # type: ignore[misc]
            counter=counter,
            pricing="anthropic",
        )
        assert found.totals.invalid == found.totals.over_limit == found.totals.moved_back == 0
        steady = found.steady
        costs.append(steady.price / steady.calls + 0.3 * (1 - (steady.fill or 0)) * 8_000)
    assert costs[1] <= costs[0] * most


def test_a_session_in_a_context_and_one_with_summaries_cut_by_it() -> None:
    """Within the budget, and the prompt grows at its end between two cuts."""
    context = Context(400, counter=WORDS).add("task", words(60)).add("history", None)
    in_context = Session(context=context, strategy="cheapest")
    summarizing = Session(400, counter=WORDS, strategy="cheapest", summarizer=lambda messages: "gist")
    for session in (in_context, summarizing):
        views = views_of(session, chat(200))
        assert all(WORDS.count(view) <= 400 for view in views)
        cuts = sum(not grows(before, after) for before, after in pairwise(views))
        assert 2 <= cuts <= len(views) / 5


def test_the_one_that_is_given_takes_the_place_of_the_other() -> None:
    """A session that is opened with a ratio goes by it, and back."""
    store = MemoryStore()
    Session(300, counter=WORDS, strategy="cheapest", store=store, id="s").extend(chat(40))
    by_ratio = Session(counter=WORDS, target_ratio=0.9, store=store, id="s")
    by_ratio.extend(chat(40))
    assert Session(counter=WORDS, strategy="cheapest", store=store, id="s").messages()
    with pytest.raises(ConfigurationError, match="pass one"):
        Session(300, counter=WORDS, strategy="cheapest", target_ratio=0.9)


@pytest.mark.parametrize(
    "strategy", ["sliding_window", "agent", {"kind": "drop"}, Cheapest(cold_at=[3]), "no such", 3]
)
def test_what_a_session_cannot_cut_by_is_refused(strategy: Any) -> None:
    """When it is made."""
    with pytest.raises(ConfigurationError):
        Session(300, counter=WORDS, strategy=strategy)


SECONDS = 10.0


def with_pause(count: int, before: int | None) -> list[float]:
    """Say when each message came: every ten seconds, and one after a pause of ten minutes."""
    return [at * SECONDS + (600 if before is not None and at >= before else 0) for at in range(count)]


def by_session() -> Session:
    """Make a session that is given no times but those of its events."""
    return Session(900, counter=WORDS, strategy="cheapest")


@pytest.mark.few(1)
@pytest.mark.parametrize("policy", [Cheapest(), by_session, {"kind": "cheapest"}])
@pytest.mark.parametrize("lead", [0, 1])
def test_a_pause_moves_the_cut_then_and_not_at_the_next_call(policy: Any, lead: int) -> None:
    """In the middle between two cuts; the strategy is told by the replay, the session knows by itself."""
    said = [*[system(words(5))] * lead, *even(160), user("end")]

    def cuts(before: int | None) -> list[int]:
        recording = {"messages": said, "times": with_pause(len(said), before)}
        return [row.cut for row in replay(recording, policy, budget=900, counter=WORDS).calls]

    plain = cuts(None)
    moves = [at for at, (a, b) in enumerate(pairwise(plain), 1) if a < b]
    paused = moves[3] - (moves[3] - moves[2]) // 3  # a call some way behind a cut, and before the next
    assert paused not in moves
    found = cuts(lead + 2 * paused)
    assert found[:paused] == plain[:paused]
    assert found[paused] > plain[paused]
    later = found[paused : paused + (moves[3] - moves[2]) // 2]
    assert set(later) == {found[paused]}


def test_a_pause_that_the_cache_outlives_changes_nothing() -> None:
    """An hour's cache: the same recording, and no cut that was not due."""
    said = [*even(160), user("end")]
    hour = Cheapest(pricing=CachePricing(name="hour", lifetime_seconds=3_600))
    rows = [
        replay({"messages": said, "times": with_pause(len(said), before)}, hour, budget=900, counter=WORDS)
        for before in (None, 250)
    ]
    assert [one.cut for one in rows[0].calls] == [one.cut for one in rows[1].calls]


@pytest.mark.long
def test_told_of_pauses_it_costs_less() -> None:
    """A recording with a pause at every tenth call, against the same strategy without times."""
    said = [*even(300), user("end")]
    times = [at * SECONDS + at // 20 * 600 for at in range(len(said))]
    recording = {"messages": said, "times": times}
    prices = CachePricing(name="short", min_prefix_tokens=0)

    def deaf(messages: list[Any]) -> list[Any]:
        return fit(messages, 900, counter=WORDS, strategy=Cheapest(pricing=prices)).messages

    told, untold = (
        replay(recording, policy, budget=900, counter=WORDS, pricing=prices)
        for policy in (Cheapest(pricing=prices), deaf)
    )
    assert told.totals.cold_calls == untold.totals.cold_calls > 20
    assert told.steady.price < untold.steady.price
