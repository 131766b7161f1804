"""Strategies at their boundaries: with room, at the limit, one over, only what is pinned, nothing.

One token is one word (`WordCounter`), a call is two; `talk("s2 u3 cA rA4")` writes a conversation of
2 + 3 + 2 + 4. A table gives for each budget which messages stay, by hand; None where nothing fits.
"""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.builders import call, places, result, system, talk, user, without_address, words
from trimtab import (
    BudgetExceededError,
    Cascade,
    ClearToolResults,
    ConfigurationError,
    Context,
    Drop,
    DropNewest,
    PriorityBased,
    SlidingWindow,
    Strict,
    TruncateText,
    fit,
)
from trimtab.conversation import History, group
from trimtab.counting import CharCounter, EstimateCounter, FixedCounter, counter_for
from trimtab.formats import get_format
from trimtab.strategies import CUT_MARKER, Place, default_score
from trimtab.testing import WordCounter, eviction_request

WORDS = WordCounter()

WINDOW = SlidingWindow()
TURNS = SlidingWindow(keep_turns=True)
FIRST = SlidingWindow(keep_first_user=True)
MODEL = SlidingWindow(protect_roles=("assistant",))
TOOLS = SlidingWindow(protect_roles=("tool",))

KEPT: list[tuple[Any, str, dict[int, list[int] | None]]] = [
    # the oldest units leave; a cut inside a turn keeps the question that opened it
    (
        WINDOW,
        "s2 u3 a4 u5 a6 u1",
        {
            22: [0, 1, 2, 3, 4, 5],
            21: [0, 1, 2, 3, 4, 5],
            20: [0, 3, 4, 5],
            14: [0, 3, 4, 5],
            13: [0, 5],
            3: [0, 5],
            2: None,
        },
    ),
    (WINDOW, "u3 a4 a6 u1", {14: [0, 1, 2, 3], 13: [0, 2, 3], 10: [0, 2, 3], 9: [3], 1: [3]}),
    (WINDOW, "u3 cA rA4 u1", {10: [0, 1, 2, 3], 9: [3], 1: [3]}),
    (WINDOW, "u1 u2 u3 a4", {10: [0, 1, 2, 3], 9: [1, 2, 3], 8: [2, 3], 7: [2, 3], 6: None}),
    (WINDOW, "a3 a4 a5", {12: [0, 1, 2], 11: [1, 2], 9: [1, 2], 8: [2], 5: [2], 4: None}),
    # what stays is not only at the end: the question of a long last turn
    (WINDOW, "u3 a4 a5 a6", {18: [0, 1, 2, 3], 17: [0, 2, 3], 14: [0, 2, 3], 13: [0, 3], 9: [0, 3], 8: None}),
    # late results: the unit is as old as its call
    (WINDOW, "u1 cA a2 rA3 u1", {9: [0, 1, 2, 3, 4], 8: [0, 2, 4], 4: [0, 2, 4], 3: [4]}),
    (WINDOW, "u1 cA a2 u1 rA3", {9: [0, 1, 2, 3, 4], 8: [1, 3, 4], 6: [1, 3, 4], 5: None}),
    # an open call stays, also where the limit is passed behind it
    (WINDOW, "u1 cA s5 s1", {9: [0, 1, 2, 3], 8: [0, 1, 3], 5: [0, 1, 3], 4: [0, 1, 3], 3: None}),
    # an orphan is a unit alone
    (WINDOW, "u2 rA3 u1", {6: [0, 1, 2], 5: [2]}),
    (WINDOW, "a2 rA3 u1", {6: [0, 1, 2], 5: [1, 2], 4: [1, 2], 3: [2]}),
    # turns leave whole, unless one alone passes the limit (with the question behind it)
    (TURNS, "u2 a2 a2 u3 a1 u1", {11: [0, 1, 2, 3, 4, 5], 10: [3, 4, 5], 5: [3, 4, 5], 4: [5]}),
    (TURNS, "u1 a9 a1 u2 a1 u1", {14: [3, 4, 5], 13: [3, 4, 5], 12: [0, 2, 3, 4, 5], 6: [0, 2, 3, 4, 5]}),
    (TURNS, "s2 u1 a9 a1 u2 a1 u5", {19: [0, 4, 5, 6], 15: [0, 4, 5, 6], 14: [0, 1, 3, 4, 5, 6]}),
    (TURNS, "u2 a2 a2 u1", {7: [0, 1, 2, 3], 6: [0, 2, 3], 5: [0, 2, 3], 4: [3]}),
    (TURNS, "a2 a2 u1 a1", {6: [0, 1, 2, 3], 5: [1, 2, 3], 4: [1, 2, 3], 3: [2, 3]}),
    # the task an agent was given
    (
        FIRST,
        "u1 a3 u2 a3 u1",
        {10: [0, 1, 2, 3, 4], 9: [0, 2, 3, 4], 7: [0, 2, 3, 4], 6: [0, 4], 2: [0, 4], 1: None},
    ),
    (
        FIRST,
        "s1 a3 u2 a3 u1",
        {10: [0, 1, 2, 3, 4], 9: [0, 2, 3, 4], 7: [0, 2, 3, 4], 6: [0, 2, 4], 4: [0, 2, 4], 3: None},
    ),
    (FIRST, "a3 a1 u2 a3 u1", {10: [0, 1, 2, 3, 4], 9: [1, 2, 3, 4], 7: [1, 2, 3, 4], 6: [2, 3, 4]}),
    (FIRST, "u2 a3 a3", {8: [0, 1, 2], 7: [0, 2], 5: [0, 2], 4: None}),
    (FIRST, "a3 a3", {6: [0, 1], 5: [1], 3: [1]}),
    # roles that never leave
    (MODEL, "u3 a2 u4 u1", {10: [0, 1, 2, 3], 9: [1, 2, 3], 7: [1, 2, 3], 6: [1, 3], 3: [1, 3], 2: None}),
    (TOOLS, "u3 cA rA2 a1 u1", {9: [0, 1, 2, 3, 4], 8: [1, 2, 4], 5: [1, 2, 4], 4: None}),
    # fewer than min_messages left: nothing free stays
    (
        SlidingWindow(min_messages=3),
        "u5 a5 u5 a5 u1",
        {21: [0, 1, 2, 3, 4], 20: [2, 3, 4], 11: [2, 3, 4], 10: [4]},
    ),
    (SlidingWindow(min_messages=4), "u5 a5 u5 a5 u1", {20: [4], 11: [4], 1: [4]}),
    (SlidingWindow(min_messages=4), "s1 u5 a5 u5 a5 u1", {21: [0, 3, 4, 5], 12: [0, 3, 4, 5], 11: [0, 5]}),
    (SlidingWindow(min_messages=3), "u1 a5 a5 u1", {11: [0, 2, 3], 7: [0, 2, 3], 6: [3]}),
    # all or nothing
    (Drop(), "u3 a4 u2", {9: [0, 1, 2], 8: [2], 2: [2], 1: None}),
    (Drop(), "s1 u3 a4 u2 cA", {12: [0, 1, 2, 3, 4], 11: [0, 3, 4], 5: [0, 3, 4], 4: None}),
    (Strict(), "u3 a4 u2", {10: [0, 1, 2], 9: [0, 1, 2], 8: None}),
    # ranked documents: the newest leave
    (
        DropNewest(),
        "u3 a4 u5 a1 u1",
        {
            14: [0, 1, 2, 3, 4],
            13: [0, 1, 2, 4],
            12: [0, 1, 4],
            8: [0, 1, 4],
            7: [0, 4],
            4: [0, 4],
            3: [4],
            1: [4],
        },
    ),
    (DropNewest(), "u3 a4 u2", {9: [0, 1, 2], 8: [0, 2], 5: [0, 2], 4: [2], 2: [2], 1: None}),
    (DropNewest(), "u3 cA rA4 a1 u1", {11: [0, 1, 2, 3, 4], 10: [0, 1, 2, 4], 9: [0, 4]}),
    # the best stay; what does not fit is skipped
    (
        PriorityBased(),
        "u3 a4 u5 cA rA1 u1",
        {
            16: [0, 1, 2, 3, 4, 5],
            15: [0, 2, 3, 4, 5],
            12: [0, 2, 3, 4, 5],
            11: [0, 2, 5],
            9: [0, 2, 5],
            8: [2, 5],
            5: [0, 5],
            3: [5],
            1: [5],
        },
    ),
    (PriorityBased(), "cA rA1 a2 u1", {6: [0, 1, 2, 3], 5: [0, 1, 3], 4: [0, 1, 3], 3: [2, 3], 1: [3]}),
    (PriorityBased(), "u3 u2", {5: [0, 1], 4: [1], 2: [1], 1: None}),
    (PriorityBased(score=lambda message, place: 1), "u3 a3 u1", {7: [0, 1, 2], 6: [1, 2], 4: [1, 2], 3: [2]}),
    (PriorityBased(score=lambda message, place: -place.index), "u3 a3 u1", {6: [0, 2], 4: [0, 2], 3: [2]}),
]


@pytest.mark.parametrize("black_box", [False, True], ids=["adds_up", "black_box"])
@pytest.mark.parametrize(
    ("strategy", "line", "budget", "expected"),
    [
        pytest.param(strategy, line, budget, kept, id=f"{at}-{budget}")
        for at, (strategy, line, table) in enumerate(KEPT)
        for budget, kept in table.items()
    ],
)
def test_what_stays_at_each_boundary(
    strategy: Any, line: str, budget: int, expected: list[int] | None, black_box: bool
) -> None:
    """The same under a counter that adds up and under a black box; no text is cut."""
    messages = talk(line)
    counter = WORDS.count if black_box else WORDS
    if expected is None:
        with pytest.raises(BudgetExceededError):
            fit(messages, budget, counter=counter, strategy=strategy, cut_newest=False)
    else:
        fitted = fit(messages, budget, counter=counter, strategy=strategy, cut_newest=False)
        assert places(fitted.messages, messages) == expected
        assert fitted.report.tokens_after == WORDS.count(fitted.messages)


@pytest.mark.parametrize(
    "strategy",
    [
        *(WINDOW, TURNS, FIRST, MODEL, SlidingWindow(min_messages=2), SlidingWindow(target_ratio=0.5)),
        *(Drop(), Strict(), DropNewest(), PriorityBased(), TruncateText(), ClearToolResults(), None),
    ],
    ids=without_address,
)
def test_an_empty_conversation_stays_empty(strategy: Any) -> None:
    """For every strategy, in any budget."""
    assert fit([], 1, counter=WORDS, strategy=strategy).messages == []


@pytest.mark.parametrize(
    ("strategy", "line", "budget", "needed"),
    [
        (WINDOW, "s2 u3 a4 u5", 6, 7),
        (MODEL, "u3 a2 u4 u1", 2, 3),
        (FIRST, "u1 a3 u2 a3 u1", 1, 2),
        (Drop(), "u3 a4 u2", 1, 2),
        (Strict(), "u3 a4 u2", 8, 9),
        (DropNewest(), "u3 a4 u2", 1, 2),
        (PriorityBased(), "u3 u2", 1, 2),
        (TruncateText(), "u3 a9", 6, 7),
        (TruncateText(), "u3 a3", 5, 6),
        (ClearToolResults(), "u3 a4", 6, 7),
        (None, "u3 a9", 6, 7),
        (None, "a9 u3", 2, 3),
        (None, "u3 cA rA9", 8, 9),
        (Cascade(Drop(), WINDOW), "u9 u2", 1, 2),
    ],
)
def test_what_does_not_fit_says_how_much_it_needs(strategy: Any, line: str, budget: int, needed: int) -> None:
    """The size at its least (SPEC A4); one token more is enough."""
    messages = talk(line)
    with pytest.raises(BudgetExceededError) as caught:
        fit(messages, budget, counter=WORDS, strategy=strategy)
    assert (caught.value.needed_tokens, caught.value.limit_tokens) == (needed, budget)
    assert fit(messages, needed, counter=WORDS, strategy=strategy).messages


def test_a_strategy_that_is_asked_although_all_fits_takes_nothing() -> None:
    """At the limit itself; `fit` does not ask then, a user's own code may."""
    result = WINDOW.evict(eviction_request(talk("a2 a3"), 5, counter=WORDS))
    assert (result.cut, result.fits) == (0, True)


@pytest.mark.parametrize("limit", [1, 3, 5, 8, 99])
@pytest.mark.parametrize(
    "line",
    ["s1 u1 cA rA2 u1 cB,C rB1 rC1 a1 u1", "cA a1 rA1 u1 a1", "u1 u1 u1", "s1 u1 cA", "cA rA3 a1 cB rB3"],
)
def test_units_are_walked_from_the_newest(line: str, limit: int) -> None:
    """All of them, however little was counted and read before."""
    request = eviction_request(talk(line), limit, counter=WORDS)
    assert [unit.indices for unit in request.newest_first()] == [
        unit.indices for unit in reversed(group(talk(line)))
    ]


@pytest.mark.parametrize(
    ("line", "limit", "lowest"),
    [
        ("s3 a5 a4 a3 a2 u1", 18, 1),
        ("s3 a5 a4 a3 a2 u1", 17, 1),
        ("s3 a5 a4 a3 a2 u1", 13, 1),
        ("s3 a5 a4 a3 a2 u1", 12, 2),
        ("s3 a5 a4 a3 a2 u1", 8, 3),
        ("s3 a5 a4 a3 a2 u1", 5, 4),
        ("u9 a1 a2 a3 a4", 15, 3),
        ("u9 a1 a2 a3 a4", 17, 2),
        ("u9 a1 a2 a3 a4", 19, 0),
        ("u9 a3 a4", 16, 0),
        ("u9 a3 a4", 15, 1),
    ],
)
def test_no_more_is_counted_than_what_passes_the_limit(line: str, limit: int, lowest: int) -> None:
    """What stays is reserved first: leading system messages and a large latest question."""
    messages, asked = talk(line), list[int]()

    class Noting(WordCounter):
        """Notes which messages it counts."""

        def count_message(self, message: Any, /) -> int:
            asked.extend(at for at, one in enumerate(messages) if one is message)
            return super().count_message(message)

    history = History(messages, format=get_format("openai_chat"))
    eviction_request(history, limit, counter=Noting(), lazy=True)
    assert set(asked) == {*range(history.head), *range(lowest, len(history)), history.latest_user}


# -- texts


def contents(messages: list[Any]) -> list[str]:
    """List the contents, calls left out."""
    return [message["content"] for message in messages if message["content"] is not None]


@pytest.mark.parametrize(
    ("line", "budget", "expected"),
    [
        # a free message: the end of it stays as long as the marker (4 words, one glued) fits beside it
        ("u6 a2 u1", 9, [words(6), words(2), words(1)]),
        ("u6 a2 u1", 8, [CUT_MARKER + words(2), words(2), words(1)]),
        ("u6 a2 u1", 7, [CUT_MARKER + words(1), words(2), words(1)]),
        ("u6 a2 u1", 6, [words(2), words(1)]),
        ("u6 a2 u1", 3, [words(2), words(1)]),
        ("u6 a2 u1", 2, [words(1)]),
        ("u6 a2 u1", 1, [words(1)]),
        ("u2 u9 u9 u1", 17, [CUT_MARKER + words(4), words(9), words(1)]),
        ("u2 u9 u9 u1", 16, [CUT_MARKER + words(3), words(9), words(1)]),
        ("u2 u9 u9 u1", 13, [words(9), words(1)]),
        # a held message: down to its marker
        ("u3 a9", 11, [words(3), CUT_MARKER + words(5)]),
        ("u3 a9", 7, [words(3), CUT_MARKER + words(1)]),
        # a held result: from the middle
        ("u1 cA rA9", 11, [words(1), words(3) + CUT_MARKER + words(3)]),
        ("u1 cA rA9", 7, [words(1), words(1) + CUT_MARKER + words(1)]),
        ("u1 cA rA5", 7, [words(1), words(1) + CUT_MARKER + words(1)]),
    ],
)
def test_texts_are_shortened_as_little_as_fits(line: str, budget: int, expected: list[str]) -> None:
    """With the marker counted."""
    fitted = fit(talk(line), budget, counter=WORDS, strategy=TruncateText())
    assert contents(fitted.messages) == expected


@pytest.mark.parametrize(
    ("keep", "expected"),
    [("end", CUT_MARKER + "h i j"), ("start", "a b c" + CUT_MARKER), ("both", "a b" + CUT_MARKER + "j")],
)
def test_the_part_asked_for_stays(keep: Any, expected: str) -> None:
    """Ten words into six, of which the marker takes four and shares its first or last."""
    messages = [user("q"), {"role": "assistant", "content": "a b c d e f g h i j"}]
    fitted = fit(messages, 7, counter=WORDS, strategy=TruncateText(keep=keep))
    kept = fitted.messages[1]["content"]
    assert WORDS.count_text(kept) <= 6
    assert CUT_MARKER in kept
    assert kept.startswith("a") is (keep != "end")
    assert kept.endswith("j") is (keep != "start")
    if keep != "both":
        assert kept == expected


def test_the_longest_result_gives_way_first() -> None:
    """Down to the length of the next; the shorter ones are left alone (SPEC C6)."""
    messages = talk("u1 cA,B,C rA3 rB40 rC20")
    fitted = fit(messages, 1 + 6 + 3 + 30 + 20, counter=WORDS)
    sizes = [WORDS.count_message(message) for message in fitted.messages[2:]]
    assert sizes[0] == 3
    assert sizes[2] == 20
    assert 20 < sizes[1] <= 30


def test_results_give_way_before_text() -> None:
    """The held unit's own words are cut only when its results are down to their markers."""
    messages = [user("q"), call("A", text=words(20)), result("A", words(20))]
    some = fit(messages, 1 + 22 + 10, counter=WORDS)
    assert some.messages[1] is messages[1]
    less = fit(messages, 1 + 12 + 4, counter=WORDS)
    assert less.messages[2]["content"] == CUT_MARKER
    assert CUT_MARKER in less.messages[1]["content"]
    assert less.messages[1]["tool_calls"] == messages[1]["tool_calls"]


class Letters(WordCounter):
    """One token a character."""

    def count_text(self, text: str, /) -> int:
        """Count characters."""
        return len(text)


def test_a_message_of_which_nothing_would_remain_leaves_and_a_held_one_is_its_marker() -> None:
    """The marker alone is no message to keep, but all that may become of one that must stay."""
    alone = len(CUT_MARKER) + 1
    old = [{"role": "assistant", "content": "x" * 99}, user("q")]
    strategy = TruncateText()
    assert contents(fit(old, alone, counter=Letters(), strategy=strategy).messages) == ["q"]
    kept = fit(old, alone + 1, counter=Letters(), strategy=strategy).messages
    assert contents(kept) == [CUT_MARKER + "x", "q"]
    held = old[::-1]
    assert contents(fit(held, alone, counter=Letters(), strategy=strategy).messages) == ["q", CUT_MARKER]
    with pytest.raises(BudgetExceededError):
        fit(held, alone - 1, counter=Letters(), strategy=strategy)


class Distinct(WordCounter):
    """Counts no word twice, so that no part of a text tells what the whole costs."""

    exact = False

    def count_text(self, text: str, /) -> int:
        """Count different words."""
        return len(set(text.split()))


COUNTERS: dict[str, Any] = {
    "o200k": counter_for("gpt-4o"),
    "estimate": EstimateCounter(),
    "characters": CharCounter(4),
    "words": WORDS,
    "distinct words": Distinct(),
    "black box": WORDS.count,
}


def cut_to(text: str, kept: int, keep: str) -> str:
    """Cut a text whose characters all stand alone; of both ends the odd character is the head's."""
    head = {"start": kept, "end": 0, "both": kept - kept // 2}[keep]
    return text[:head] + CUT_MARKER + text[len(text) - (kept - head) :]


@pytest.mark.parametrize("keep", ["both", "end", "start"])
@pytest.mark.parametrize("name", COUNTERS)
def test_the_next_character_would_not_fit(name: str, keep: Any) -> None:
    """Whatever the search was told on the way: what comes out is counted, and the longest (SPEC A11)."""
    counter = COUNTERS[name]
    count = getattr(counter, "count", counter)
    text = "".join(f"line {at * at}: {'a, 中文 ' * (at % 7)}{'-' * (at % 31)}\n" for at in range(300))
    question, answer = user("q"), {"role": "assistant", "content": text}
    whole, least = count([question, answer]), count([question, {**answer, "content": CUT_MARKER}])
    for part in (0.02, 0.3, 0.77, 0.99):
        limit = least + 2 + int((whole - least - 3) * part)
        fitted = fit([question, answer], limit, counter=counter, strategy=TruncateText(keep))
        kept = fitted.messages[1]["content"]
        longer = cut_to(text, len(kept) - len(CUT_MARKER) + 1, keep)
        assert kept == cut_to(text, len(kept) - len(CUT_MARKER), keep)
        assert count(fitted.messages) <= limit < count([question, {**answer, "content": longer}])


def test_a_counter_that_only_says_it_is_exact_is_not_passed() -> None:
    """What parts of a text foretold is not believed over the count of what comes out."""
    counter = Distinct()
    counter.exact = True
    messages = [user("q"), {"role": "assistant", "content": " ".join(f"{at % 50} {at}" for at in range(900))}]
    for limit in range(20, 900, 40):
        assert counter.count(fit(messages, limit, counter=counter).messages) <= limit


def test_what_has_no_text_stays_where_it_fits_to_the_token() -> None:
    """Ten tokens a message: of a note, a picture and a question the note leaves in 20."""
    picture = user([{"type": "image_url", "image_url": {"url": "https://example.org/cat.png"}}])
    messages = [user("note"), picture, user("q")]
    fitted = fit(messages, 20, counter=FixedCounter(per_message=10), strategy=TruncateText())
    assert fitted.messages == messages[1:]


def test_a_stride_too_small_to_be_added_to_what_was_weighed_still_ends() -> None:
    """The ratio next below 1: a window moves by single messages, as without strides."""
    messages = talk("u1 a1 " * 200)
    window = SlidingWindow(target_ratio=math.nextafter(1, 0))
    fitted = fit(messages, 50, counter=WORDS, strategy=window)
    assert fitted.messages == fit(messages, 50, counter=WORDS, strategy=WINDOW).messages


class Framed(WordCounter):
    """Charges 5 words for system text in front, as some providers do."""

    def fixed_tokens(self, system: Any, tools: Any, /, *, has_system: bool, extra: Any = None) -> int:
        """Count what frames it."""
        return 5 if has_system else 0


def test_what_system_text_costs_beside_its_words_is_no_room_for_texts() -> None:
    """Of 1 + 8 + 8 + 1 words and 5 around the system text, all the budget is used and none passed."""
    messages = talk("s1 u8 a8 u1")
    for budget in range(7, 23):
        fitted = fit(messages, budget, counter=Framed(), strategy=TruncateText())
        assert fitted.messages[0] == messages[0]
        assert fitted.messages[-1] == messages[-1]
        assert Framed().count(fitted.messages) <= budget


def test_what_leaves_just_makes_room_and_nothing_is_called_shortened() -> None:
    """The rest fits to the token."""
    fitted = fit(talk("u6 a2 u1"), 3, counter=WORDS, strategy=TruncateText())
    assert fitted.report.blocks[0].actions == ("evicted",)


def test_text_stays_whole_where_the_marker_of_a_result_is_enough() -> None:
    """Of an old call and its result; the words beside the call are more than nothing."""
    old = [call("A", text="hello"), result("A", "x" * 99)]
    messages = [user("q"), *old, user("q")]
    least = Letters().count([user("q"), old[0], result("A", CUT_MARKER), user("q")])
    kept = fit(messages, least, counter=Letters(), strategy=TruncateText(), pin=[0]).messages
    assert contents(kept) == ["q", "hello", CUT_MARKER, "q"]


@pytest.mark.parametrize("counter", [WORDS, WORDS.count], ids=["adds_up", "black_box"])
def test_as_few_results_are_cleared_as_make_it_fit_to_the_token(counter: Any) -> None:
    """Three results of 9 words; a word in place of each saves 8."""
    messages = talk("u1 cA rA9 cB rB9 cC rC9 u1")
    clear = ClearToolResults(keep_results=0, placeholder="x", target_ratio=1.0)
    for cleared in range(4):
        fitted = fit(messages, WORDS.count(messages) - 8 * cleared, counter=counter, strategy=clear)
        assert contents(fitted.messages).count("x") == cleared


def test_a_black_box_is_not_asked_about_every_text() -> None:
    """A hundred results to be levelled take far fewer calls."""
    ids = [f"c{at}" for at in range(100)]
    messages = [user("q"), call(*ids), *(result(each, words(30)) for each in ids)]
    asked: list[int] = []

    def box(given: list[Any]) -> int:
        asked.append(len(given))
        return WORDS.count(given)

    fit(messages, 2_000, counter=box)
    assert len(asked) < 60


def test_what_is_pinned_is_not_shortened() -> None:
    """The latest question stays as it is; nothing else can give way."""
    with pytest.raises(BudgetExceededError):
        fit([user(words(30))], 29, counter=WORDS)
    with pytest.raises(BudgetExceededError):
        fit([user("q"), {"role": "assistant", "content": words(30)}], 30, counter=WORDS, pin=[1])


# -- cleared results


@pytest.mark.parametrize(
    ("options", "budget", "expected"),
    [
        ({"keep_results": 1}, 26, [5, 6, 7]),
        ({"keep_results": 1}, 25, [1, 6, 7]),
        ({"keep_results": 1}, 22, [1, 6, 7]),
        ({"keep_results": 1}, 21, [1, 1, 7]),
        ({"keep_results": 1}, 17, [1, 1, 7]),
        ({"keep_results": 1}, 16, None),
        ({"keep_results": 0}, 16, [1, 1, 1]),
        ({"keep_results": 0}, 11, [1, 1, 1]),
        ({"keep_results": 0}, 10, None),
        ({"keep_results": 2}, 22, [1, 6, 7]),
        ({"keep_results": 2}, 21, None),
        ({"keep_results": 3}, 25, None),
        ({"keep_results": 0, "clear_at_least_tokens": 4}, 25, [1, 6, 7]),
        ({"keep_results": 0, "clear_at_least_tokens": 5}, 25, [1, 1, 7]),
        ({"keep_results": 0, "clear_at_least_tokens": 9}, 25, [1, 1, 7]),
        ({"keep_results": 0, "clear_at_least_tokens": 10}, 25, [1, 1, 1]),
        ({"keep_results": 1, "clear_at_least_tokens": 100}, 25, [1, 1, 7]),
        ({"keep_results": 0, "exclude_tools": ("f",)}, 25, None),
        ({"keep_results": 0, "exclude_tools": ("g",)}, 25, [1, 6, 7]),
        ({"keep_results": 0, "placeholder": words(5)}, 25, [5, 5, 7]),
        ({"keep_results": 0, "placeholder": words(4)}, 25, [4, 6, 7]),
    ],
)
def test_results_are_cleared_from_the_oldest_until_it_fits(
    options: dict[str, Any], budget: int, expected: list[int] | None
) -> None:
    """Beyond the newest `keep_results`, and on to `clear_at_least_tokens` (SPEC C7)."""
    messages = talk("u1 cA rA5 cB rB6 cC rC7 u1")
    strategy = ClearToolResults(**{"placeholder": "x", **options})
    if expected is None:
        with pytest.raises(BudgetExceededError):
            fit(messages, budget, counter=WORDS, strategy=strategy)
        return
    fitted = fit(messages, budget, counter=WORDS, strategy=strategy)
    assert [WORDS.count_message(fitted.messages[index]) for index in (2, 4, 6)] == expected
    assert fitted.report.changed_message_count == sum(
        a != b for a, b in zip(expected, (5, 6, 7), strict=True)
    )


def test_a_pinned_result_is_not_cleared() -> None:
    """The next one is."""
    messages = talk("u1 cA rA5 cB rB6 u1")
    fitted = fit(
        messages, 12, counter=WORDS, pin=[2], strategy=ClearToolResults(keep_results=0, placeholder="x")
    )
    assert fitted.messages[2] is messages[2]
    assert fitted.messages[4]["content"] == "x"


# -- strides


@pytest.mark.parametrize(
    ("count", "cut"), [(400, 304), (404, 304), (405, 316), (416, 316), (417, 320), (420, 320), (421, 332)]
)
def test_the_cut_moves_in_strides(count: int, cut: int) -> None:
    """One-word messages weigh 30/7; a stride of 50 is 12 of them, counted from multiples of 64."""
    messages = talk(" ".join(["u1"] * count))
    fitted = fit(messages, 100, counter=WORDS, strategy=SlidingWindow(target_ratio=0.5))
    assert places(fitted.messages, messages) == list(range(cut, count))


@pytest.mark.parametrize(
    ("ratio", "count", "cut"),
    [(0.5, 10, 8), (0.5, 11, 10), (0.1, 11, 10), (0.1, 10, 8), (0.1, 9, 8), (0.9, 9, 7)],
)
def test_a_stride_that_leaves_too_little_is_halved(ratio: float, count: int, cut: int) -> None:
    """Two messages of 40 words fit 100; each weighs 79 / 3.5 + 4."""
    messages = talk(" ".join(["u40"] * count))
    fitted = fit(messages, 100, counter=WORDS, strategy=SlidingWindow(target_ratio=ratio))
    assert places(fitted.messages, messages) == list(range(cut, count))


@pytest.mark.parametrize(("newest", "cut"), [(25, 10), (24, 9)])
def test_a_stride_leaves_at_least_half_of_what_was_asked_for(newest: int, cut: int) -> None:
    """The half of 100 that is asked for, halved, is 25: a mark that leaves so much is used, one below not."""
    messages = talk("u40 " * 10 + f"u{newest}")
    fitted = fit(messages, 100, counter=WORDS, strategy=SlidingWindow(target_ratio=0.5))
    assert places(fitted.messages, messages) == list(range(cut, 11))


class Weighed(WordCounter):
    """A counter that says itself what every message weighs."""

    def __init__(self, weight: Any) -> None:
        super().__init__()
        self._weight = weight

    def weight(self, message: Any, /) -> Any:
        """Weigh all alike."""
        return self._weight


@pytest.mark.parametrize(("weight", "cut"), [(25, 8), (24.9, 9), (0, 7)])
def test_a_stride_ends_where_its_weight_is_reached(weight: float, cut: int) -> None:
    """Of 11 messages four fit; two of 25 are a stride of 50, of less it takes three, and of none no mark."""
    messages = talk("u25 " * 11)
    fitted = fit(messages, 100, counter=Weighed(weight), strategy=SlidingWindow(target_ratio=0.5))
    assert places(fitted.messages, messages) == list(range(cut, 11))


def test_half_a_letter_is_weighed_like_any_other() -> None:
    """A text with a lone surrogate has no bytes of its own; it is cut in strides all the same."""
    messages = [user("\ud83d " + words(39)) for _ in range(11)]
    fitted = fit(messages, 100, counter=WORDS, strategy=SlidingWindow(target_ratio=0.5))
    assert places(fitted.messages, messages) == [10]


def test_a_call_weighs_more_than_its_text() -> None:
    """A call and its result weigh 125/7: three pairs make a stride of 50, from the 64th pair on."""
    messages = talk("cA rA1 " * 104)
    fitted = fit(messages, 100, counter=WORDS, strategy=SlidingWindow(target_ratio=0.5))
    assert places(fitted.messages, messages) == list(range(146, 208))


def test_text_is_weighed_by_its_bytes() -> None:
    """Forty letters of two bytes weigh 80 / 3.5 + 4: two messages make a stride of 50."""
    messages = [user("é" * 40) for _ in range(401)]
    fitted = fit(messages, 100, counter=WORDS, strategy=SlidingWindow(target_ratio=0.5))
    assert places(fitted.messages, messages) == list(range(302, 401))


def test_leading_system_messages_do_not_move_the_fixed_places() -> None:
    """Multiples are counted after them."""
    plain = talk(" ".join(["u1"] * 400))
    headed = [system("x"), system("y"), *plain]
    strategy = SlidingWindow(target_ratio=0.5)
    kept = places(fit(headed, 102, counter=WORDS, strategy=strategy).messages, headed)
    assert kept == [0, 1, *range(306, 402)]


# -- scores


@pytest.mark.parametrize(
    ("kind", "has_calls", "score"),
    [
        ("system", False, float("inf")),
        ("user", False, 125.0),
        ("assistant", True, 100.0),
        ("assistant", False, 75.0),
        ("tool", False, 70.0),
        ("other", False, 12.5),
    ],
)
def test_scores_are_those_of_the_reference(kind: str, has_calls: bool, score: float) -> None:
    """At half the recency (SPEC C5, seeds/002)."""
    assert default_score({}, Place(index=4, count=10, kind=kind, has_calls=has_calls)) == score


@pytest.mark.parametrize("counter", [WORDS, EstimateCounter(), CharCounter(4)])
def test_a_call_with_its_result_outranks_a_newer_answer(counter: Any) -> None:
    """Whether the counter reads the messages while it counts, or not."""
    messages = [call("A"), result("A", words(40)), {"role": "assistant", "content": words(30)}, user("q")]
    budget = counter.count([*messages[:2], messages[3]])
    fitted = fit(messages, budget, counter=counter, strategy=PriorityBased())
    assert places(fitted.messages, messages) == [0, 1, 3]


@pytest.mark.parametrize("answer", [None, "1", float("nan")])
def test_a_score_that_is_no_number_is_refused(answer: Any) -> None:
    """With the message it was for."""
    with pytest.raises(ConfigurationError, match="message 0"):
        fit(talk("u3 u1"), 3, counter=WORDS, strategy=PriorityBased(score=lambda message, place: answer))


def test_a_score_cannot_change_the_message() -> None:
    """It is given a view that refuses; what it reads is what the caller wrote."""
    messages = talk("u3 u1")
    before = [dict(message) for message in messages]

    def spoil(message: Any, place: Place) -> float:
        message["content"] = "gone"
        return 1.0

    with pytest.raises(TypeError, match="does not support item assignment"):
        fit(messages, 3, counter=WORDS, strategy=PriorityBased(score=spoil))
    assert messages == before


@pytest.mark.parametrize(("count", "calls"), [(60, 45), (960, 70)])
def test_a_black_box_is_filled_up_with_what_is_small(count: int, calls: int) -> None:
    """Two of 100 letters leave 60 of 260, which 20 of 3 fill, however many of 100 stand before them.

    Halving over n takes log2(n) + 1 calls, six times: four skips, the rest, and the share of a message.
    """
    messages = [user("x" * (100 if at % 2 == 0 else 3)) for at in range(count - 1)] + [user("abc")]
    asked: list[int] = []

    def box(given: list[Any]) -> int:
        asked.append(len(given))
        return sum(len(message["content"]) for message in given)

    by_length = PriorityBased(score=lambda message, place: len(message["content"]))
    fitted = fit(messages, 260, counter=box, strategy=by_length)
    assert sorted(len(message["content"]) for message in fitted.messages) == [3] * 20 + [100, 100]
    assert fitted.report.tokens_after == 260
    assert len(asked) <= calls


KEEPS_FIRST = SlidingWindow(keep_first_user=True)
KEEPS_USERS = SlidingWindow(protect_roles=("user",))


@pytest.mark.parametrize("counter", [WORDS, WORDS.count])
@pytest.mark.parametrize("first", [KEEPS_FIRST, KEEPS_USERS])
def test_what_a_step_protects_later_steps_only_shorten(first: Any, counter: Any) -> None:
    """Of 15 words the last takes 5; the marker is 4, and the first word behind it is one with its last."""
    messages = talk("u20 a3 u5")
    fitted = fit(messages, 15, counter=counter, strategy=Cascade(first, TruncateText()))
    shortened, last = contents(fitted.messages)
    assert (last, shortened) == (words(5), CUT_MARKER + words(7))
    assert fitted.report.tokens_after == 15
    for step in (SlidingWindow(), Drop(), DropNewest(), PriorityBased()):
        with pytest.raises(BudgetExceededError):
            fit(messages, 15, counter=counter, strategy=Cascade(first, step))


def test_a_step_keeps_the_first_user_message_only_if_it_is_still_there() -> None:
    """An earlier step may have taken it."""
    messages = talk("u9 a3 u9")
    with pytest.raises(BudgetExceededError):
        fit(messages, 8, counter=WORDS, strategy=Cascade(SlidingWindow(), KEEPS_FIRST))


def test_a_cascade_of_one_step_says_what_that_step_says() -> None:
    """Also where it does not fit: the attempt is what must stay."""
    messages = talk("s2 u9 u4")
    with pytest.raises(BudgetExceededError) as caught:
        fit(messages, 5, counter=WORDS, strategy=Cascade(SlidingWindow()))
    assert caught.value.needed_tokens == 6


def strides(first: dict[str, Any]) -> list[int]:
    """Count what strides keep of a chat of which only the first message's weight is open."""
    messages = [first, *(user("x" * 35) for _ in range(40))]
    window = SlidingWindow(target_ratio=0.5)
    return [
        len(fit(messages, 10 * most, counter=FixedCounter(per_message=10), strategy=window).messages)
        for most in range(5, 40)
    ]


def called(**how: Any) -> dict[str, Any]:
    """Make a message that says a little and calls one function."""
    return {"role": "assistant", "content": "x" * 7, **how}


FUNCTION = {"name": "f", "arguments": "x" * 353}


@pytest.mark.parametrize(
    ("message", "other"),
    [
        ({"role": "assistant", "content": None}, user("")),
        ({"role": "assistant", "content": None, "refusal": "x" * 7}, user("x" * 7)),
        ({"role": "user", "content": [{"type": "text", "text": "x" * 70}] * 2}, user("x" * 140)),
        (call("A", "B", text="x" * 3), user("x" * (3 + 4 + 63))),
        (
            called(function_call=FUNCTION),
            called(tool_calls=[{"id": "A", "type": "function", "function": FUNCTION}]),
        ),
    ],
)
def test_a_message_weighs_its_text_and_its_calls(message: dict[str, Any], other: dict[str, Any]) -> None:
    """Bytes / 3.5 + 4, and 9 a call (SPEC C3), in whatever field the wire form keeps them."""
    assert strides(message) == strides(other)
    assert strides(message) != strides(user("x" * 600))


def test_whether_a_turn_leaves_whole_does_not_go_by_the_room_that_others_leave() -> None:
    """It has 53 words with the question behind it: above the 40 that are left, and not above the budget."""
    context = Context(100, counter=WORDS)
    context.add("notes", words(60), priority=9, strategy=Strict())
    context.add("history", talk("u1 a20 a30 u2 a1 u5"), strategy=TURNS)
    assert [WORDS.count([one]) for one in context.fit().messages[1:]] == [2, 1, 5]
