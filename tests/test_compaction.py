"""What stands before Claude's latest compaction: its server neither reads nor charges it (SPEC A1, A8).

"When the API receives a `compaction` block, all content blocks before it are ignored" ("Compaction" in the
documentation of the Messages API). So it costs nothing wherever trimtab counts, leaves first, and is told.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.anthropic_shapes import compaction, model, result, text, thinking, use, user
from tests.response_items import EVERY
from trimtab import (
    BudgetExceededError,
    Cascade,
    ClearToolResults,
    Context,
    Fitted,
    PriorityBased,
    Session,
    SlidingWindow,
    Summarize,
    TruncateText,
    fit,
    validate,
)
from trimtab.counting import TextCounter, UsageBaseline, counter_from_text, measure
from trimtab.formats import get_format
from trimtab.history import evict_messages
from trimtab.strategies import ClampResults, Relevant
from trimtab.testing import WordCounter

FORM = "anthropic"
WORDS = WordCounter(format=FORM)
OLD = [user("w " * 400), model("w " * 400), user("Which tea?")]
COMPACTED = model(compaction("They talked about tea."), text("Green."))
TALK = [*OLD, COMPACTED, user("Why?"), model("It is fresh."), user("And when?")]
READ = WORDS.count(TALK[3:])


def fitted_in(messages: list[Any], budget: int, **how: Any) -> Fitted[Any]:
    """Fit, and hold the total to what `measure` says of the same messages."""
    made = fit(messages, budget, format=FORM, counter=WordCounter(), **how)
    measured = measure(made.messages, counter=WordCounter(), format=FORM)
    assert made.report.tokens_after == measured.tokens <= budget
    rows = [row.tokens_after or 0 for row in made.report.messages if row.fate != "evicted"]
    inserted = [row.tokens for row in made.report.inserted]
    assert sum(rows) + sum(inserted) + made.report.fixed_tokens == measured.tokens
    return made


def test_all_stays_where_what_is_read_fits() -> None:
    """800 words stand before it, and there is room for a few: they stay, with the prefix of the cache."""
    made = fitted_in(TALK, READ)
    assert all(a is b for a, b in zip(made.messages, TALK, strict=True))
    assert [row.tokens_before for row in made.report.messages][:3] == [0, 0, 0]
    assert made.report.tokens_before == READ
    notes = [note for note in made.report.notes if "compaction" in note]
    assert len(notes) == 1
    assert notes[0].startswith("3 messages stand before the provider's latest compaction")
    assert measure(TALK, counter=WordCounter(), format=FORM).notes == tuple(notes)


def test_it_leaves_first_and_what_must_open_the_request_stays_for_nothing() -> None:
    """The first cut takes all before the compaction but the question that opens its turn."""
    made = fitted_in(TALK, READ - 1)
    assert list(made.positions) == [2, 3, 6]
    assert validate(made.messages, format=FORM) == []
    assert any(note.startswith("1 message stands before") for note in made.report.notes)
    again = fitted_in(made.messages, READ - 1)
    assert again.messages == made.messages


def test_pins_before_it_stay_for_nothing() -> None:
    """A pin keeps what the server does not read, at no price; also where nothing else has room."""
    made = fitted_in(TALK, READ - 1, pin=[0])
    assert made.positions[0] == 0
    with pytest.raises(BudgetExceededError) as caught:
        fitted_in(TALK, 3, pin=[0])
    least = caught.value.needed_tokens
    assert least is not None
    assert fitted_in(TALK, least, pin=[0]).positions[0] == 0


def test_a_call_that_waits_before_it_stays_for_nothing() -> None:
    """Its result can still come."""
    waits = [user("w " * 300), model(use("a")), COMPACTED, user("Why?"), model("w " * 40), user("x")]
    made = fitted_in(waits, 30, pending_calls=["a"])
    assert 1 in made.positions
    assert 4 not in made.positions


STRATEGIES: dict[str, Any] = {
    "steady": {"steady": True},
    "agent": {"strategy": "agent"},
    "window": {"strategy": SlidingWindow(keep_turns=True, keep_first_user=True)},
    "cached": {"strategy": SlidingWindow(keep_cached=True)},
    "priority": {"strategy": PriorityBased()},
    "relevant": {"strategy": Relevant(gap="[{count} left out]")},
    "clear": {"strategy": Cascade(ClearToolResults(keep_results=0), SlidingWindow(), TruncateText())},
    "clamp": {"strategy": Cascade(ClampResults(max_ratio=0.2, texts=True), SlidingWindow())},
    "truncate": {"strategy": Cascade(TruncateText(), SlidingWindow())},
    "summarize": {"strategy": Summarize(lambda messages: "a gist", max_summary_tokens=9)},
}


@pytest.mark.parametrize("how", STRATEGIES.values(), ids=STRATEGIES.keys())
@pytest.mark.parametrize("thinks", [False, True])
def test_every_strategy_counts_what_is_measured(how: dict[str, Any], thinks: bool) -> None:
    """Tool turns before and behind; nothing that is free is made shorter."""
    before = thinking() if thinks else text("I look.")
    turns = [
        turn
        for at in range(8)
        for turn in (
            user(f"question {at} " + "w " * 9),
            model(before, use(f"c{at}")),
            user(result(f"c{at}", "found " * 30)),
            model(f"answer {at}"),
        )
    ]
    talk = [*turns[:16], user("so far?"), COMPACTED, *turns[16:], user("last")]
    whole = WORDS.count(talk[17:])
    for budget in range(60, whole + 1, 23):
        made = fitted_in(talk, budget, **how)
        assert COMPACTED in made.messages
        assert validate(made.messages, format=FORM) == []
        given = {id(message) for message in talk[:17]}
        at = made.messages.index(COMPACTED)
        assert all(id(message) in given for message in made.messages[:at])
    assert len(fitted_in(talk, whole, **how).messages) == len(talk)


def test_a_summary_tells_what_is_behind_it_and_stands_there() -> None:
    """One in front would not be read, and what it tells of there is in the compaction."""
    told: list[Any] = []

    def gist(messages: list[Any]) -> str:
        told.extend(messages)
        return "a gist"

    talk = [*TALK[:4], user("w " * 60), model("w " * 60), user("a"), model("b"), user("c")]
    made = fitted_in(talk, 40, strategy=Summarize(gist, max_summary_tokens=12))
    assert told == talk[4:6]
    (row,) = made.report.inserted
    assert row.position == made.messages.index(COMPACTED) + 1


def test_system_text_in_front_is_charged() -> None:
    """It is sent beside the messages, and no part of what the compaction stands for."""
    system = {"role": "system", "content": "Be brief and kind."}
    made = fitted_in([system, *TALK], READ + 4)
    assert made.report.tokens_after == READ + 4
    assert made.report.messages[0].tokens_after == 4
    with pytest.raises(BudgetExceededError):
        fitted_in([system, *TALK], 10)


@pytest.mark.parametrize(
    ("form", "talk"),
    [
        (FORM, [user("w " * 50), user(compaction("so far")), user("x")]),
        (FORM, [user("w " * 50), model(compaction(None), text("y")), user("x")]),
        (FORM, [*TALK, user(compaction("so far")), user("x")]),
        ("openai_responses", [{"role": "user", "content": "w " * 50}, EVERY["compaction"]]),
    ],
    ids=["a user's", "an empty one", "a user's behind the model's", "Responses"],
)
def test_what_does_not_stand_for_it_frees_nothing(form: str, talk: list[Any]) -> None:
    """OpenAI's server reads what was not taken out; and nobody says that a user's message compacts."""
    counter = WordCounter(format=form)
    each = sum(map(counter.count_message, talk))
    assert measure(talk, counter=counter, format=form).tokens == each
    made = fit(talk, 10_000, counter=counter, format=form)
    assert made.report.tokens_after == each
    assert not any("stands before" in note or "stand before" in note for note in made.report.notes)


def test_the_latest_of_several_counts() -> None:
    """What an older one left in its place is free as well."""
    first, second = model(compaction("one"), text("a")), model(compaction("two"), text("b"))
    talk = [user("w " * 90), first, user("w " * 90), second, user("x")]
    made = fitted_in(talk, 10)
    assert len(made.messages) == 5
    assert [row.tokens_after for row in made.report.messages][:3] == [0, 0, 0]


def test_nothing_before_it_is_counted() -> None:
    """Neither while it is read, nor for the report: a slow tokenizer is not asked about it."""

    def words(said: str) -> int:
        assert "secret" not in said
        return len(said.split())

    def refused(message: dict[str, Any]) -> int:
        assert "secret" not in str(message)
        return 5

    class Mine(WordCounter):
        def count_message(self, message: Any, /) -> int:
            return refused(message)

    talk = [user("secret"), model(text("secret"), use("a")), user(result("a", "secret")), *TALK[3:]]
    for counter in (TextCounter(words, name="mine"), counter_from_text(words), Mine()):
        whole = fit(talk, 500, format=FORM, counter=counter)
        assert len(whole.messages) == len(talk)
        whole.count_all()
        assert str(whole.report)
        fit(talk, whole.report.tokens_after - 1, format=FORM, counter=counter).count_all()


def test_a_callback_that_takes_it_out_brings_the_price_back() -> None:
    """What stood before it is read then."""
    seen: list[int] = []

    def forget(context: Any) -> None:
        seen.append(context.total_tokens)
        context.remove(3)
        seen.append(context.total_tokens)

    made = fitted_in(TALK, 10_000, on_trim=forget)
    rest = [*TALK[:3], *TALK[4:]]
    assert made.messages == rest
    assert seen == [READ, WORDS.count(rest)]
    context = Context(10_000, format=FORM, counter=WordCounter(), on_trim=forget).add("talk", TALK)
    assert context.fit().report.tokens_after == WORDS.count(rest)
    assert seen[2:] == seen[:2]


def test_a_callback_that_leaves_it_leaves_the_rest_free() -> None:
    """Other positions, the same prices."""
    made = fitted_in(TALK, 10_000, on_trim=lambda context: context.remove([0, 5]))
    assert made.report.tokens_after == WORDS.count([TALK[3], TALK[4], TALK[6]])


def test_a_repair_counts_what_it_leaves() -> None:
    """A call that nobody answered leaves, and with it the places move."""
    broken = [user("w " * 50), model(use("a")), *TALK[2:]]
    made = fitted_in(broken, READ, repair=True)
    assert COMPACTED in made.messages


def test_in_a_context_what_is_in_front_costs_nothing_in_every_block() -> None:
    """Documents as well: where they stand, they are not read, which the report says."""
    context = Context(READ, format=FORM, counter=WordCounter())
    context.add("documents", "Tea grows. " * 90)
    context.add("notes", ["n " * 50, "m " * 50], join="\n")
    context.add("history", TALK[:-1], max_ratio=0.9).add("question", "And when?")
    made = context.fit()
    assert len(made.messages) == len(TALK) + 2
    measured = measure(made.messages, counter=WordCounter(), format=FORM).tokens
    assert made.report.tokens_after == measured == READ
    assert {block.name: block.tokens_after for block in made.report.blocks} == {
        "documents": 0,
        "notes": 0,
        "history": READ - 2,
        "question": 2,
    }
    assert any(note.startswith("5 messages stand before the provider's") for note in made.report.notes)
    less = made.at(READ - 1)
    assert less.report.tokens_after == measure(less.messages, counter=WordCounter(), format=FORM).tokens
    assert COMPACTED in less.messages
    with pytest.raises(BudgetExceededError):
        made.at(3)


def test_in_a_context_what_stands_behind_it_is_charged() -> None:
    """Behind the history documents are read."""
    context = Context(10_000, format=FORM, counter=WordCounter())
    context.add("history", TALK[:4], position=0).add("documents", "Tea grows. " * 90, position=1)
    assert context.fit().report.tokens_after == WORDS.count([COMPACTED]) + 180


def test_marks_for_the_cache_cost_what_they_did() -> None:
    """The price of marks is the difference of two counts, both without what is unread."""
    made = fitted_in(TALK, READ, breakpoints=True)
    assert len(made.messages) == len(TALK)


def test_a_session_counts_what_its_log_holds_and_says_so() -> None:
    """It cuts early and never late: what it adds up is the sum of what was said."""
    session = Session(1_000, format=FORM, counter=WordCounter())
    session.extend(TALK)
    view = session.fit()
    assert view.report.tokens_after == session.token_count == sum(map(WORDS.count_message, TALK))
    assert any(note.endswith("though it is counted here.") for note in view.report.notes)
    session.add(user("w " * 300))
    assert OLD[1] not in session.messages()
    assert COMPACTED in session.messages()


def test_a_black_box_is_believed() -> None:
    """What it says of all is not taken apart."""

    def words(messages: list[Any]) -> int:
        return sum(map(WORDS.count_message, messages))

    made = fit(TALK, 10_000, format=FORM, counter=words)
    assert made.report.tokens_after == words(TALK)
    assert any(note.endswith("though it is counted here.") for note in made.report.notes)


def test_a_bill_is_shared_among_what_was_read() -> None:
    """Next to the bill nothing is left over for what is in front, whose size would not be asked for again."""
    baseline = UsageBaseline(WORDS, format=FORM)
    baseline.record(TALK, 90)
    assert measure(TALK, counter=baseline, format=FORM).tokens == 90
    assert fit(TALK, 500, counter=baseline, format=FORM).report.tokens_after == 90


def test_functions_of_lists_count_so_too() -> None:
    """There is one answer to what a list costs."""
    assert get_format(FORM).unread(TALK) == range(3)
    assert evict_messages(TALK, READ, counter=WORDS).evicted == []
    assert WORDS.count(TALK) == READ
