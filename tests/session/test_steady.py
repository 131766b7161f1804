"""A session cuts in strides and remembers the cut, so that a prompt cache keeps what it has (SPEC C3)."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.builders import assistant, call, result, user, words
from tests.chat_in_forms import said_in
from tests.test_prompt_cache import Sizes, airline, coding, common
from trimtab import BudgetExceededError, ConfigurationError, Context, Session, counter_for, fit
from trimtab.counting import FixedCounter
from trimtab.stores import MemoryStore
from trimtab.summaries import ExtractiveSummarizer
from trimtab.testing import WordCounter

Sent = list[dict[str, Any]]

WORDS = WordCounter()
TEN = FixedCounter(per_message=10)


def chat(count: int) -> Sent:
    """Say so many messages: questions, calls, results and answers."""
    said: Sent = []
    for at in range(count // 4):
        said += [
            user(f"question {at} {words(8)}"),
            call(f"c{at}"),
            result(f"c{at}", f"result {at} {words(14)}"),
            assistant(f"answer {at} {words(6)}"),
        ]
    return said


def views_of(session: Session, said: Sent) -> list[Sent]:
    """Add messages one by one; give each view from the first that was cut on, and the last before it."""
    found: list[Sent] = []
    for message in said:
        session.add(message)
        found.append(session.messages())
    first = next(at for at, (a, b) in enumerate(pairwise(found)) if not grows(a, b))
    return found[first:]


def grows(before: Sent, after: Sent) -> bool:
    """Tell whether a prompt is the one before and more at its end."""
    return after[: len(before)] == before


@pytest.mark.few(2)
@pytest.mark.parametrize("ratio", [0.3, 0.5, 0.7, 0.9])
def test_between_two_cuts_the_prompt_only_grows_at_its_end(ratio: float) -> None:
    """A cut takes the share that was asked for, and the next comes when the budget is passed again."""
    session = Session(300, counter=WORDS, system="sys", target_ratio=ratio)
    views = views_of(session, chat(600))
    cuts = [after for before, after in pairwise(views) if not grows(before, after)]
    assert all(WORDS.count(view) <= 300 for view in views)
    largest_unit = 30
    for view in cuts:
        assert 300 * ratio - largest_unit <= WORDS.count(view) <= 300 * ratio + largest_unit
    said_tokens = WORDS.count(chat(600))
    assert len(cuts) <= said_tokens / (300 * (1 - ratio) - largest_unit * (ratio < 0.9)) + 2


@pytest.mark.parametrize("form", ["anthropic", "gemini", "bedrock"])
def test_it_does_so_in_forms_that_care_what_comes_first(form: str) -> None:
    """What may not stand first there leaves with the cut, and does not come and go after it."""
    session = Session(400, counter=WORDS, format=form)
    views = views_of(session, said_in(form, chat(400)))
    cuts = sum(not grows(before, after) for before, after in pairwise(views))
    assert 3 <= cuts <= len(views) // 8


def test_without_strides_every_add_moves_the_cut() -> None:
    """`target_ratio=1` takes no more out of view than has to leave."""
    session = Session(300, counter=TEN, target_ratio=1)
    views = views_of(session, [user(f"{at}") for at in range(100)])
    assert not any(grows(before, after) for before, after in pairwise(views))
    assert {len(view) for view in views} == {30}


def test_the_cut_is_where_it_was_however_the_session_is_opened() -> None:
    """Opened again, restored, forked, kept without its history: the same view, and the same from then on."""
    said = chat(80)
    for count in range(20, 76, 5):
        store = MemoryStore()
        session = Session(300, counter=WORDS, system="sys", store=store, id="one")
        for message in said[:count]:
            session.add(message)
        others = [
            Session.open(store, "one", counter=WORDS).fork(id="two"),
            Session.restore(session.snapshot(), counter=WORDS),
            Session.restore(session.snapshot(history=False), counter=WORDS),
        ]
        for message in (None, *said[count : count + 5]):
            for one in (session, *others):
                if message is not None:
                    one.add(message)
            assert all(one.messages() == session.messages() for one in others)


def test_an_undone_cut_is_forgotten_and_the_one_before_is_remembered() -> None:
    """What it took out of view comes back as far as it fits."""
    session = Session(300, counter=TEN)
    for at in range(50):
        session.add(user(f"{at}"))
    before = [message["content"] for message in session.view_at(session.version)]
    assert before[0] == "32"
    session.undo()
    assert session.messages()[0]["content"] == "20"
    again = Session.restore(session.snapshot(), counter=TEN)
    assert again.messages() == session.messages()


def test_a_larger_budget_brings_back_what_was_cut_and_is_kept_to_then() -> None:
    """All that fits; then it grows at its end until the next cut."""
    session = Session(300, counter=TEN)
    for at in range(40):
        session.add(user(f"{at}"))
    seen = len(session.messages())
    session.set_budget(350)
    assert len(session.messages()) == 35 > seen
    with_ratio = Session(store=session.store, id=session.id, counter=TEN, target_ratio=0.9)
    assert len(with_ratio.messages()) == 35


def test_another_ratio_forgets_the_cut() -> None:
    """Who opens the session with `target_ratio=1` has all in view that fits."""
    session = Session(300, counter=TEN)
    for at in range(33):
        session.add(user(f"{at}"))
    assert len(session.messages()) < 20
    again = Session(300, counter=TEN, store=session.store, id=session.id, target_ratio=1.0)
    assert len(again.messages()) == 30


@pytest.mark.parametrize("ratio", [0, -0.1, 1.1, "half", True])
def test_a_ratio_is_a_share(ratio: Any) -> None:
    """Above 0, and at most 1."""
    with pytest.raises(ConfigurationError, match="target_ratio"):
        Session(300, target_ratio=ratio)


def test_a_log_of_0_1_is_cut_in_strides_from_now_on() -> None:
    """It says nothing of a ratio; that is the default then, and no option that changed."""
    session = Session(300, counter=TEN, target_ratio=1.0)
    for at in range(40):
        session.add(user(f"{at}"))
    data = session.snapshot()
    del data["options"]["target_ratio"]
    for event in data["events"]:
        event["data"].get("options", {}).pop("target_ratio", None)
    old = Session.restore({**data, "version": 1}, counter=TEN)
    assert len(old.messages()) == 30
    old.add(user("more"))
    assert len(old.messages()) == 15
    assert len(list(old.history(kinds=("options",)))) == 1


def test_a_large_unit_does_not_cost_all_the_others() -> None:
    """Half of the room would hold nothing beside it: half of what is left beside it stays."""
    session = Session(1_000, counter=WORDS)
    for at in range(60):
        session.add(assistant(f"{at} {words(10)}"))
    session.add(user(words(600)))
    view = session.messages()
    assert len(view) > 5
    assert 750 <= WORDS.count(view) <= 850


@pytest.mark.parametrize(
    ("large_words", "stays"),
    [
        # To keep 0.70 of the room costs 0.70 / 0.30 at the next cut and is worth 4 times 0.70: -0.47. To keep
        # 0.10: -0.29. 0.75 costs exactly nothing, and from there on more than it is worth.
        pytest.param(590, True, id="in-time"),
        pytest.param(700, False, id="next-cut-at-once"),
    ],
)
def test_a_large_unit_at_the_end_of_a_stride_stays_if_that_costs_less(large_words: int, stays: bool) -> None:
    """To let it go is dear in room, to keep it in what the next cut writes anew."""
    session = Session(1_000, counter=WORDS)
    large = assistant(words(large_words))
    session.extend([assistant(words(900 - large_words)), large])
    before: Sent = []
    while grows(before, session.messages()):
        before = session.messages()
        session.add(assistant(words(10)))
    assert large in before
    assert (large in session.messages()) is stays


def test_blocks_that_grow_and_shrink_a_little_do_not_move_the_cut_back() -> None:
    """The room of the history changes at each call; only as much more room as a cut makes brings back."""
    context = Context(400, counter=TEN)
    context.add("history", None, priority=1)
    context.add("documents", [f"document {n}" for n in range(10)], priority=9)
    session = Session(context=context)
    oldest: list[int] = []
    for at in range(200):
        session.add(user(f"{at}"))
        session.context.replace("documents", [f"document {n}" for n in range(8 + at % 4)])  # type: ignore[union-attr]
        oldest.append(min(int(m["content"]) for m in session.messages() if m["content"].isdigit()))
    assert all(before <= after for before, after in pairwise(oldest))
    assert sum(before != after for before, after in pairwise(oldest)) <= 20
    session.context.replace("documents", [])  # type: ignore[union-attr]
    wide = Session(
        context=Context(1_600, counter=TEN).add("history", None), store=session.store, id=session.id
    )
    assert len(wide.messages()) == 160


def test_reports_of_usage_do_not_move_the_cut_back() -> None:
    """Each changes what the budget is in counted tokens."""
    session = Session(600, counter=WORDS)
    oldest = []
    for at, message in enumerate(chat(400)):
        session.add(message)
        if message["role"] != "tool":
            view = session.messages()
            oldest.append(next((int(m["content"].split()[1]) for m in view if m["role"] == "user"), 0))
            session.record_usage({"input_tokens": WORDS.count(view) * (105 + at % 7) // 100})
    assert all(before <= after for before, after in pairwise(oldest))


def test_what_waits_for_a_summarizer_that_is_away_leaves_in_strides() -> None:
    """It stays in the log, and is summarized when the summarizer is back."""
    away = True

    def summarize(messages: Any) -> str:
        if away:
            raise ConnectionError
        return f"about {len(messages)}"

    session = Session(300, counter=WORDS, summarizer=summarize)
    said = chat(200)
    views = views_of(session, said)
    cuts = sum(not grows(before, after) for before, after in pairwise(views))
    assert cuts <= WORDS.count(said) / 75
    away = False
    assert session.summarize() > 100


@pytest.mark.parametrize("background", [False, True])
def test_where_a_summary_is_renewed_all_before_it_stays(background: bool) -> None:
    """System text and anchors are a prefix of every view; between two summaries the view grows at its end."""
    anchors = [user("anchor one"), assistant("anchor two")]
    session = Session(
        300,
        counter=WORDS,
        system="sys",
        anchors=anchors,
        summarizer=lambda messages: f"about {len(messages)} {words(20)}",
        background=background,
    )
    views = []
    for message in chat(400):
        session.add(message)
        session.drain()
        views.append((session.status().summarized_messages, session.messages()))
    front = [{"role": "system", "content": "sys"}, *anchors]
    assert all(view[:3] == front for _, view in views)
    renewed = sum(before != after for (before, _), (after, _) in pairwise(views))
    moved = sum(not grows(before, after) for (_, before), (_, after) in pairwise(views))
    assert 5 <= renewed == moved <= WORDS.count(chat(400)) / 60


def test_a_summary_that_was_cut_off_does_not_wait_for_the_next_stride() -> None:
    """What is due since an add was interrupted is written with the next one."""
    interrupted = True

    def summarize(messages: Any) -> str:
        if interrupted:
            raise KeyboardInterrupt
        return "fine"

    session = Session(100, counter=TEN, summarizer=summarize)
    with pytest.raises(KeyboardInterrupt):
        session.extend([user(f"{at}") for at in range(11)])
    interrupted = False
    session.add(user("next"))
    assert session.summary == "fine"


# -- the bill, on recorded conversations

READ, WRITE, LEAST_PREFIX = 0.1, 1.25, 1_024
"""Anthropic's prices of a prompt cache, of the base price; shorter prefixes are not kept."""


def bill(views: list[Sent], budget: int) -> tuple[float, float, float]:
    """Give the price of a call, the share of tokens that were read, and how full a view was on average."""
    sizes, price, read, sent = Sizes(), 0.0, 0, 0
    for before, after in pairwise(views):
        size, same = sizes.of(after), sizes.of(after[: common(before, after)])
        kept = same if same >= LEAST_PREFIX else 0
        price += READ * kept + WRITE * (size - kept)
        read, sent = read + same, sent + size
    calls = len(views) - 1
    return price / calls, read / sent, sent / calls / budget


def cut_in(view: Sent, said: Sent) -> int:
    """Go back from the newest as long as each message is in view, whole or with its text shortened."""
    cut = len(said)
    for shown, message in zip(reversed(view), reversed(said), strict=False):
        if shown != message and (shown["role"], message["role"]) != ("tool", "tool"):
            break
        cut -= 1
    return cut


def played(messages: Sent, budget: int, **options: Any) -> tuple[list[Sent], list[int]]:
    """Play a conversation through a session; its views from the first that was cut on, and their cuts."""
    head = [message["content"] for message in messages[:1] if message["role"] == "system"]
    said = messages[len(head) :]
    session = Session(budget, counter=counter_for("gpt-4o"), system=head[0] if head else None, **options)
    views: list[Sent] = []
    cuts: list[int] = []
    for at, message in enumerate(said):
        if message["role"] == "assistant":
            try:
                view = session.messages()
            except BudgetExceededError:  # a question that is larger than the budget
                assert session.token_count > budget
            else:
                if not (session.status().hidden_messages or session.summary):
                    views.clear()
                views.append(view)
                cuts.append(cut_in(view, said[:at]))
        session.add(message)
    return views, cuts


def dropped(messages: Sent, budget: int) -> list[Sent]:
    """Drop the oldest on each call, as who keeps no session does."""
    views: list[Sent] = []
    cut_yet = False
    for at, message in enumerate(messages):
        if at and message["role"] == "assistant":
            try:
                view = fit(messages[:at], budget, counter=counter_for("gpt-4o")).messages
            except BudgetExceededError:
                continue
            cut_yet = cut_yet or len(view) < at
            views = [*(views if cut_yet else ()), view]
    return views


@pytest.mark.long
@pytest.mark.parametrize(
    ("conversation", "summarizes", "most_price", "least_reuse"),
    [
        pytest.param(airline, False, 0.25, 0.93, id="airline"),
        pytest.param(airline, True, 0.27, 0.91, id="airline-summaries"),
        pytest.param(coding, False, 0.45, 0.83, id="coding"),
        pytest.param(coding, True, 0.45, 0.80, id="coding-summaries", marks=pytest.mark.long),
    ],
)
def test_a_session_costs_a_part_of_dropping_the_oldest(
    data_dir: Path, conversation: Any, summarizes: bool, most_price: float, least_reuse: float
) -> None:
    """At 8,000 tokens, by the prices of a prompt cache; two thirds of the budget are used on average.

    A cut moves back only behind a large result: while it is the newest it is whole, and what is older leaves
    that one view.
    """
    messages = conversation(data_dir)[: 1_200 if summarizes else None]
    summarizer = ExtractiveSummarizer() if summarizes else None
    views, cuts = played(messages, 8_000, summarizer=summarizer)
    back = sum(before > after for before, after in pairwise(cuts))
    assert back <= (len(cuts) // 100 if conversation is coding else 0)
    price, reuse, fill = bill(views, 8_000)
    plain, _, _ = bill(dropped(messages, 8_000), 8_000)
    assert price <= most_price * plain
    assert reuse >= least_reuse
    assert fill >= 0.65
