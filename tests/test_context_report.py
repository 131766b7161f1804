"""What a `Context` reports and counts: parts of the request, black boxes, marks, other budgets."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest

from tests.builders import result, talk, words
from trimtab import (
    BudgetExceededError,
    CharCounter,
    Context,
    DropNewest,
    Report,
    SlidingWindow,
    Strict,
    Summarize,
    TruncateText,
    fit,
)
from trimtab.errors import UnknownNameError
from trimtab.testing import WordCounter

WORDS = WordCounter()
TOOLS = [{"type": "function", "function": {"name": "look up"}}]


def rounded(messages: list[Any]) -> int:
    """Count as a black box with one rounding over the whole list: blocks cost more than the whole."""
    return -(-sum(map(WORDS.count_message, messages)) // 4)


def paired(messages: list[Any]) -> int:
    """Count as a black box that charges each neighbour: the whole costs more than its blocks."""
    return WORDS.count(messages) + 2 * max(0, len(messages) - 1)


# -- rows and totals (A8, D11)


def test_the_rows_are_those_of_the_whole_request() -> None:
    """Indices run through all blocks in the order of the request; everything adds up."""
    made = Context(14, counter=WORDS, system="be kind", tools=TOOLS)
    made.add("h", talk("u4 cA rA2 u3"), position=2, max_ratio=0.6).add("s", talk("s2"), position=1)
    report = made.fit().report
    assert [(row.index, row.block, row.fate, row.unit) for row in report.messages] == [
        (0, "s", "kept", 0),
        (1, "h", "evicted", 1),
        (2, "h", "evicted", 2),
        (3, "h", "evicted", 2),
        (4, "h", "kept", 4),
    ]
    assert [(row.position, row.tokens) for row in report.inserted] == [(0, 2)]
    assert report.fixed_tokens == report.tools_tokens == WORDS.fixed_tokens(None, TOOLS, has_system=True)
    after = report.fixed_tokens + 2 + sum(row.tokens_after or 0 for row in report.messages)
    assert (
        after == report.tokens_after == report.fixed_tokens + 2 + sum(b.tokens_after for b in report.blocks)
    )
    assert report.messages[2].call_ids == report.messages[3].call_ids == ("A",)
    assert report.messages[3].tool_names == ("f",)


def test_system_text_and_tools_are_counted_once() -> None:
    """System text becomes the first message; both are handed back."""
    made = Context(99, counter=WORDS, system="be kind", tools=TOOLS).add("q", "hi")
    fitted = made.fit()
    assert fitted.messages == [{"role": "system", "content": "be kind"}, {"role": "user", "content": "hi"}]
    assert (fitted.system, fitted.tools, fitted.request) == (None, TOOLS, fitted.messages)
    tools_tokens = WORDS.fixed_tokens(None, TOOLS, has_system=True)
    assert fitted.report.tokens_after == fitted.report.tokens_before == 3 + tools_tokens
    assert made.fit(3 + tools_tokens).report.remaining_tokens == 0
    assert made.fit(2 + tools_tokens).messages == fitted.messages[:1]


def test_the_report_is_json_and_comes_back() -> None:
    """With blocks, insertions, units that span, floors and text only where asked for."""
    made = Context(12, counter=WORDS, system="be kind")
    made.add("h", talk("u4 u4 cA"), min_tokens=4).add("r", talk("rA2 u1")).add("q", "secret", priority=1)
    report = made.fit().report
    data = json.loads(json.dumps(report.to_dict()))
    assert Report.from_dict(data) == report
    assert "secret" not in json.dumps(data)
    assert "secret" in json.dumps(report.to_dict(include_text=True))
    assert [block["name"] for block in data["blocks"]] == ["h", "r", "q"]


def test_the_report_reads_as_text() -> None:
    """A line a block, with what became of it."""
    made = Context(8, counter=WORDS).add("history", talk("u4 u4")).add("facts", talk("u9"), max_tokens=2)
    text = made.add("question", "what then", priority=1).fit().report.to_text()
    for word in ("history", "facts", "question", "evicted", "kept"):
        assert word in text
    assert max(map(len, text.splitlines())) <= 80


def test_the_violations_are_those_of_all_blocks_together() -> None:
    """A call whose result stands in another block is no fault."""
    made = Context(99, counter=WORDS).add("a", talk("u1 cA")).add("b", talk("rA1 rZ1 u1"))
    assert [(v.index, v.call_id) for v in made.fit().report.violations] == [(3, "Z")]


def test_numbers_nobody_needed_are_none_until_counted() -> None:
    """`count_all` agrees with a recount."""
    made = Context(9, counter=WORDS).add("h", talk("u9 u5 u4 u3 u2")).add("q", "hi", priority=1)
    fitted = made.fit()
    assert [row.tokens_before for row in fitted.report.messages] == [None, 5, 4, 3, 2, 1]
    assert (fitted.report.tokens_before, fitted.report.blocks[0].tokens_before) == (None, None)
    report = fitted.count_all()
    assert [row.tokens_before for row in report.messages] == [9, 5, 4, 3, 2, 1]
    assert (report.tokens_before, report.blocks[0].tokens_before) == (24, 23)


# -- black boxes (B1, X11)


def test_what_a_black_box_says_fits_is_kept_though_its_blocks_round_up() -> None:
    """A6: one rounding over the whole."""
    made = Context(1, counter=rounded)
    for name in "abcd":
        made.add(name, "w")
    report = made.fit().report
    assert (report.kept_message_count, report.tokens_before, report.tokens_after) == (4, 1, 1)
    assert report.shares
    assert sum(block.tokens_after for block in report.blocks) == 1
    assert all(block.floor_missed_tokens == 0 for block in report.blocks)
    capped = Context(2, counter=rounded).add("a", "w " * 8, max_tokens=1).add("b", "w").fit().report
    assert [block.tokens_after for block in capped.blocks] == [0, 1]
    roomy = Context(9, counter=rounded).add("a", "w " * 8, max_tokens=1).add("b", "w").fit().report
    assert [block.tokens_after for block in roomy.blocks] == [0, 1]


def test_a_floor_is_not_missed_by_what_rounding_saved() -> None:
    """Each block is held to its own count."""
    made = Context(2, counter=rounded)
    for name in "abcd":
        made.add(name, "w", min_tokens=1)
    made.add("big", words(40))
    assert all(block.floor_missed_tokens == 0 for block in made.fit(5).report.blocks)


@pytest.mark.parametrize(
    ("budget", "most"), [(17, 6), (16, 6), (15, 5), (13, 5), (9, 3), (4, 2), (3, 1), (1, 1)]
)
def test_where_a_black_box_counts_the_whole_higher_blocks_get_less(budget: int, most: int) -> None:
    """A1 all the same."""
    made = Context(budget, counter=paired)
    for name in "abc":
        made.add(name, talk("u1 u1"))
    fitted = made.fit()
    assert paired(fitted.messages) == fitted.report.tokens_after <= budget
    assert max(1, most - 2) <= fitted.report.kept_message_count <= most
    assert (fitted.report.kept_message_count == 6) == (most == 6)
    assert fitted.messages[-1:] == talk("u1")


def test_where_no_cut_of_the_blocks_will_do_the_error_says_what_the_whole_is() -> None:
    """Strict blocks that fit alone, but not together."""
    made = Context(12, counter=paired, system="x").add("a", words(5), strategy=Strict())
    made.add("b", words(5), strategy=Strict())
    assert made.fit(15).report.tokens_after == 15
    with pytest.raises(BudgetExceededError, match="the counter returns 15 tokens of the whole") as raised:
        made.fit()
    assert (raised.value.needed_tokens, raised.value.limit_tokens) == (15, 12)
    assert raised.value.attempt is not None
    assert raised.value.attempt.report.tokens_after == 15


def test_system_text_has_its_share_of_a_black_box() -> None:
    """The parts add up to the total, tools included."""
    made = Context(99, counter=WORDS.count, system="one two", tools=TOOLS).add("a", talk("u2 a2"))
    report = made.fit().report
    shares = [row.tokens for row in report.inserted] + [row.tokens_after or 0 for row in report.messages]
    assert report.fixed_tokens + sum(shares) == report.tokens_after == report.tokens_before
    assert report.inserted[0].tokens > 0


# -- marks for the provider's cache


def test_the_last_message_of_a_block_that_stays_carries_the_mark() -> None:
    """In a copy; the caller's own has none."""
    messages = talk("u3 u2")
    made = Context(4, counter=WORDS).add("h", messages, cache_control="ephemeral").add("q", "hi", priority=1)
    fitted = made.fit()
    part = {"type": "text", "text": "w w", "cache_control": {"type": "ephemeral"}}
    assert fitted.messages[0]["content"] == [part]
    assert messages == talk("u3 u2")
    assert "cache_control" not in str(fitted.messages[1])


class MarksCost(WordCounter):
    """Counts a mark as three tokens."""

    def count_message(self, message: Any, /) -> int:
        """Count words, and marks."""
        return super().count_message(message) + 3 * str(message).count("cache_control")


def test_marks_are_counted_and_left_out_where_there_is_no_room() -> None:
    """The row of the message has them; a note says where they are not."""
    made = Context(9, counter=MarksCost()).add("h", talk("u2 u2"), cache_control={"type": "x"}).add("q", "hi")
    report = made.fit().report
    assert [row.tokens_after for row in report.messages] == [2, 5, 1]
    assert [block.tokens_after for block in report.blocks] == [7, 1]
    assert (report.tokens_after, report.notes) == (8, ())
    less = made.fit(7)
    assert "cache_control" not in str(less.messages)
    assert less.report.tokens_after == 5
    assert less.report.notes == ("cache_control of block 'h' was left out: there was no room for its mark.",)
    assert [row.tokens_after for row in less.report.messages] == [2, 2, 1]


class MarksWeigh(WordCounter):
    """Counts a message with a mark twice."""

    def count_message(self, message: Any, /) -> int:
        """Count words, and again where there is a mark."""
        return super().count_message(message) * (1 + str(message).count("cache_control"))


def test_a_mark_costs_what_it_costs_on_the_message_that_carries_it() -> None:
    """Five on the last of two messages, which is all that is left over; with one less it has no room."""
    made = Context(13, counter=MarksWeigh()).add("h", talk("u3 u5"), cache_control={"type": "x"})
    assert [row.tokens_after for row in made.fit().report.messages] == [3, 10]
    assert [row.tokens_after for row in made.fit(12).report.messages] == [3, 5]


def test_a_mark_costs_a_black_box_no_message() -> None:
    """All fits without it, so that it is left out; with room for its three tokens it is there."""
    made = Context(7, counter=MarksCost().count).add("h", talk("u2 u2"), cache_control={"type": "x"})
    without = made.fit(4)
    assert (len(without.messages), without.report.tokens_after) == (2, 4)
    assert len(made.fit(6).report.notes) == 1
    assert (made.fit().report.tokens_after, made.fit().report.notes) == (7, ())


def test_a_mark_is_charged_to_the_last_message_that_stays() -> None:
    """Not to a newer one that left."""
    made = Context(8, counter=MarksCost())
    made.add("h", talk("u2 u3 u4"), cache_control={"type": "x"}, strategy=DropNewest())
    assert [row.tokens_after for row in made.fit().report.messages] == [2, 6, None]


def test_a_mark_is_charged_to_the_summary_that_ends_its_block() -> None:
    """To its row alone, not to a message that left for it."""
    short = Summarize(summary, max_summary_tokens=8)
    made = Context(14, counter=MarksCost())
    made.add("h", talk("u20 a20 u20"), cache_control={"type": "x"}, strategy=short).add("q", "hi", priority=1)
    fitted = made.fit()
    (row,) = fitted.report.inserted
    assert "cache_control" in str(fitted.messages[0])
    assert row.tokens == MarksCost().count_message(fitted.messages[0])
    assert [row.tokens_after for row in fitted.report.messages] == [None, None, None, 1]


# -- another budget, and summaries


def summary(messages: list[Any]) -> str:
    """Write one word."""
    ASKED.append(len(messages))
    return "short"


ASKED: list[int] = []


@pytest.mark.parametrize("budget", [99, 14, 11, 8, 6, 5, 3])
def test_another_budget_gives_what_a_fresh_fit_gives(budget: int) -> None:
    """`Fitted.at`, whatever was counted before."""
    made = Context(12, counter=WORDS, system="x").add("h", talk("u2 a2 u2"), min_ratio=0.4, priority=1)
    made.add("c", words(9), strategy=TruncateText(), max_tokens=6).add("q", "hi", priority=2)
    found, fresh = made.fit().at(budget), made.fit(budget)
    assert found.messages == fresh.messages
    assert found.count_all() == fresh.count_all()
    assert made.fit().at(12).report == made.fit().report


def test_another_budget_plans_a_summary_and_does_not_ask_for_it() -> None:
    """Its cap stands in for it."""
    ASKED.clear()
    made = Context(99, counter=WORDS)
    made.add("h", talk("u20 u20 u3"), strategy=Summarize(summary, max_summary_tokens=8), priority=1)
    made.add("q", "hi", priority=2)
    planned = made.fit().at(20)
    assert (ASKED, planned.report.planned, planned.report.tokens_after) == ([], True, 12)
    written = made.fit(20)
    assert (ASKED, written.report.planned, written.report.tokens_after) == (
        [2],
        False,
        10,
    )  # the mark has 5 words
    assert [row.why for row in written.report.inserted] == ["summary of 2 messages"]
    assert [row.reason for row in written.report.messages[:2]] == ["superseded_by_summary"] * 2
    assert written.report.blocks[0].actions == ("summarized",)


def test_a_block_with_a_summary_is_asked_once() -> None:
    """Room that a lower block leaves is not offered to it again."""
    ASKED.clear()
    made = Context(30, counter=WORDS)
    written_anew = Summarize(lambda messages: summary(messages), max_summary_tokens=8)
    made.add("h", talk("u20 u20 u3"), strategy=written_anew, priority=1)
    made.add("d", talk("u25"), min_tokens=10)
    report = made.fit().report
    assert ASKED == [2]
    assert [(block.offered_tokens, block.tokens_after) for block in report.blocks] == [(20, 9), (21, 0)]


def test_a_summary_of_a_call_takes_its_result_in_another_block() -> None:
    """The call is gone, so its result goes too."""
    made = Context(16, counter=WORDS)
    made.add("h", talk("cA u20 u3"), strategy=Summarize(summary, max_summary_tokens=6), priority=1)
    report = made.add("r", talk("rA4 u1")).fit().report
    rows = [(row.fate, row.reason) for row in report.messages]
    assert rows[3] == ("evicted", "unit_of_removed")
    assert rows[0] == ("evicted", "superseded_by_summary")


def test_room_is_of_characters_where_characters_are_counted() -> None:
    """A counter of our own beside the words."""
    made = Context(10, counter=CharCounter()).add("h", ["a" * 40, "b" * 20], strategy=SlidingWindow())
    assert [m["content"] for m in made.fit().messages] == ["b" * 20]


# -- limit, cap and offer; blocks by name; the messages that left


def test_limit_cap_and_offer_are_three_numbers() -> None:
    """A cap is the block's own, the limit the least of it and the room, an offer no more than is needed."""
    made = Context(30, counter=WORDS)
    made.add("capped", talk("u9 u4"), max_tokens=5, priority=3)
    made.add("small", talk("u6"), max_tokens=20, priority=2)
    made.add("rest", talk("u15 u15"), max_tokens=29, priority=1)
    report = made.fit().report
    assert [(one.cap_tokens, one.limit_tokens, one.offered_tokens) for one in report.blocks] == [
        (5, 5, 5),
        (20, 20, 6),
        (29, 20, 20),  # 30 less 4 and 6
    ]
    assert [one.tokens_after for one in report.blocks] == [4, 6, 15]
    text = report.to_text(width=200)
    assert text.count("limit is its cap") == 2
    assert "limit is what was unused, below its cap of 29" in text


def test_without_a_cap_the_limit_is_the_room_that_was_left() -> None:
    """Also where everything fits: the block might have had more than it needs."""
    made = Context(30, counter=WORDS).add("first", talk("u6"), priority=2).add("second", talk("u9"))
    report = made.fit().report
    assert [(one.cap_tokens, one.limit_tokens, one.offered_tokens) for one in report.blocks] == [
        (None, 30, 6),
        (None, 24, 9),
    ]
    assert "cap" not in report.to_text()


def test_a_black_box_that_fits_as_it_is_has_the_whole_room_for_a_limit() -> None:
    """Nothing was offered in turn: all of it was taken."""
    made = Context(30, counter=rounded).add("first", talk("u6"), max_tokens=9).add("second", talk("u9"))
    assert [(one.cap_tokens, one.limit_tokens) for one in made.fit().report.blocks] == [(9, 9), (None, 30)]


def test_a_block_is_found_by_its_name() -> None:
    """A wrong name is answered with those there are, and near ones."""
    report = Context(30, counter=WORDS).add("history", talk("u2")).add("question", "Why?").fit().report
    assert report.block("question") is report.blocks[1]
    with pytest.raises(UnknownNameError, match=r"histroy.*history, question; did you mean history") as caught:
        report.block("histroy")
    assert caught.value.near == ("history",)
    assert fit(talk("u2"), 9, counter=WORDS).report.block("history").kept_message_count == 1


def test_the_messages_that_left_are_the_callers_own_in_order() -> None:
    """Of `fit`, of each block of a context, of a copy, and none where all fits."""
    spoken = talk("u4 cA rA2 u3")
    fitted = fit(spoken, 4, counter=WORDS)
    assert list(map(id, fitted.evicted)) == list(map(id, spoken[:3]))
    assert fitted.report.evicted_message_count == 3
    assert copy.copy(fitted).evicted == pickle.loads(pickle.dumps(fitted)).evicted == spoken[:3]
    assert copy.copy(copy.copy(fitted)).evicted == spoken[:3]
    assert fit(spoken, 99, counter=WORDS).evicted == []
    made = Context(14, counter=WORDS).add("second", spoken, position=2, max_tokens=4)
    made.add("first", talk("u9 u2"), position=1, max_tokens=4)
    both = made.fit()
    assert list(map(id, both.evicted)) == [id(made.blocks[1].content[0]), *map(id, spoken[:3])]


def test_what_a_repair_or_a_callback_takes_has_left_too() -> None:
    """And what is only shortened has not."""
    spoken = [result("lost"), *talk("u4 u3 u2")]
    fitted = fit(spoken, 99, counter=WORDS, repair=True, on_trim=lambda context: context.remove(2))
    assert list(map(id, fitted.evicted)) == [id(spoken[0]), id(spoken[2])]
    shortened = fit(talk("u2 a90"), 20, counter=WORDS, strategy=TruncateText())
    assert shortened.report.changed_message_count == 1
    assert shortened.evicted == []


def test_a_request_without_what_the_user_wrote_last_says_so() -> None:
    """Not where it is there, or where nobody wrote."""
    context = Context(20, counter=WORDS).add("rules", "be brief", role="system", priority=2)
    context.add("notes", talk("a9 a9"), priority=1).add("history", talk("u2 a2 u9 a1"), strategy="drop")
    (note,) = context.fit().report.notes
    assert note.startswith(
        "The latest message of the user is not in the request: message 2 of block 'history'."
    )
    assert context.fit(40).report.notes == ()
    assert Context(5, counter=WORDS).add("notes", talk("a9 a2")).fit().report.notes == ()


@pytest.mark.parametrize("strategy", ["sliding_window", "drop", "drop_newest", "cheapest"])
def test_an_empty_request_is_an_error_or_has_a_note(strategy: str) -> None:
    """Nothing leaves in silence; a context with nothing in it has nothing to say."""
    fitted = Context(5, counter=WORDS, system="be brief").add("history", talk("u9"), strategy=strategy).fit()
    assert fitted.messages == [] or fitted.messages[0]["role"] == "system"
    assert any(note.startswith("The request has no message") for note in fitted.report.notes)
    assert Context(5, counter=WORDS).add("history", []).fit().report.notes == ()
