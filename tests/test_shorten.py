"""Shortened texts: the longest that fit, by several counters, and what it costs to find them."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from itertools import accumulate
from pathlib import Path

import pytest
import regex
import toktok
from hypothesis import example, given
from hypothesis import strategies as st

from trimtab.strategies import CUT_MARKER
from trimtab.testing.hooks import Keep, cut_text, cut_text_near, shorten

Count = Callable[[str], int]

KEEPS: tuple[Keep, ...] = ("end", "start", "both")


def in_o200k(text: str) -> int:
    """Count as gpt-4o does; halves of UTF-16 characters are repaired first."""
    repaired = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return toktok._encoding("o200k_base").count(repaired)


def in_bytes(text: str) -> int:
    """Count a token for every 3 bytes begun: small steps, and not additive."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // 3)


def in_words(text: str) -> int:
    """Count words: a character more can cost nothing, or a token less."""
    return len(text.split())


def in_pairs(text: str) -> int:
    """Count letters, two equal neighbours as one, as a tokenizer merges them: not monotone in length."""
    return len(regex.sub(r"(?s)(.)\1", "x", text))


COUNTS: dict[str, Count] = {
    "o200k": in_o200k,
    "characters": len,
    "bytes": in_bytes,
    "words": in_words,
    "pairs": in_pairs,
}


class Meter:
    """A counter that keeps the books on how often and on how much it was asked."""

    def __init__(self, count: Count) -> None:
        """Count by `count`."""
        self.count = count
        self.calls = self.chars = 0

    def __call__(self, text: str) -> int:
        """Count `text` and note it."""
        self.calls += 1
        self.chars += len(text)
        return self.count(text)


def kept(text: str, result: str, keep: Keep, marker: str) -> tuple[str, str]:
    """Split a result into head and tail; if the text holds the marker, any that fits."""
    starts = [found.start() for found in regex.finditer(regex.escape(marker), result, overlapped=True)]
    splits = [(result[:start], result[start + len(marker) :]) for start in starts]
    return next(
        (head, tail)
        for head, tail in splits
        if text.startswith(head)
        and text.endswith(tail)
        and len(head) + len(tail) < len(text)
        and (keep != "end" or not head)
        and (keep != "start" or not tail)
    )


def places(text: str) -> list[int]:
    """Give every border between grapheme clusters, both ends included."""
    return [0, *accumulate(len(cluster) for cluster in regex.findall(r"\X", text))]


def ends(text: str) -> list[int]:
    """Give the borders at which a head may end: not in a marker that was there, and not behind one."""
    old = [one.span() for one in regex.finditer(regex.escape(CUT_MARKER), text)]
    return [place for place in places(text) if not any(start < place <= stop for start, stop in old)]


def starts(text: str) -> list[int]:
    """Give the borders at which a tail may begin: not in a marker that was there, and not before one."""
    old = [one.span() for one in regex.finditer(regex.escape(CUT_MARKER), text)]
    return [place for place in places(text) if not any(start <= place < stop for start, stop in old)]


def neighbours(text: str, head: str, tail: str, keep: Keep) -> list[tuple[str, str]]:
    """Give what is kept with the next cluster put back, on each side that `keep` keeps."""
    start, stop = len(head), len(text) - len(tail)
    after = next((place for place in ends(text) if place > start), stop)
    before = next((place for place in reversed(starts(text)) if place < stop), start)
    wider = [(text[:after], tail)] if keep != "end" and after < stop else []
    return [*wider, (head, text[before:])] if keep != "start" and before > start else wider


TEXTS = st.text(
    st.sampled_from("ab  \n\r.\u0301\u4e2d\U0001f468\u200d\U0001f1e9\u0915\u094d\x00\ud83d"), max_size=120
)
WORDS = st.lists(
    st.sampled_from(["token", "budget", "\u4e0a\u4e0b\u6587", "42,", "e\u0301t\u00e9", "\n\n"]), max_size=120
)
ANY_TEXT = (
    TEXTS | WORDS.map(" ".join) | st.text(max_size=60) | st.sampled_from("a \n").map(lambda char: char * 400)
)
MARKERS = st.sampled_from([CUT_MARKER, "#", ""])
WIDE = "e" + 4 * "\u0301"
"""One cluster of five code points."""


@pytest.mark.parametrize("name", COUNTS)
@given(text=ANY_TEXT, limit=st.integers(-1, 150), keep=st.sampled_from(KEEPS), marker=MARKERS)
@example(text="ab" * 9, limit=7, keep="both", marker="#")
@example(text=CUT_MARKER * 3, limit=40, keep="both", marker=CUT_MARKER)
def test_the_result_is_the_longest_that_fits(
    name: str, text: str, limit: int, keep: Keep, marker: str
) -> None:
    """It fits, is of the promised shape, cut between clusters, and one cluster more would not fit."""
    count = COUNTS[name]
    result = shorten(text, limit, count=count, keep=keep, marker=marker)
    if count(text) <= limit:
        assert result is text
    elif count(marker) > limit:
        assert result is None
    else:
        assert result is not None
        assert count(result) <= limit
        head, tail = kept(text, result, keep, marker)
        assert len(head) in ends(text)
        assert len(text) - len(tail) in starts(text)
        for wider_head, wider_tail in neighbours(text, head, tail, keep):
            assert count(wider_head + marker + wider_tail) > limit


@pytest.mark.parametrize(
    ("text", "limit", "result"),
    [
        pytest.param(WIDE + "abcdefgh", 6, "#defgh", id="one-more-at-the-end"),
        pytest.param(WIDE + "abce\u0301wxyz", 7, "#e\u0301wxyz", id="a-cluster-more"),
        pytest.param(WIDE + "abce\u0301wxyz", 6, "#wxyz", id="half-a-cluster-is-none"),
        pytest.param("abcdefgh" + WIDE, 6, "abcde#", id="one-more-at-the-beginning"),
    ],
)
def test_what_one_side_cannot_use_the_other_gets(text: str, limit: int, result: str) -> None:
    """Both get as much as four code points; the cluster of five has no room in what is left."""
    assert shorten(text, limit, count=len, keep="both", marker="#") == result


@given(text=ANY_TEXT, limit=st.integers(0, 150), keep=st.sampled_from(KEEPS))
def test_shortening_again_changes_nothing(text: str, limit: int, keep: Keep) -> None:
    """What was shortened fits and comes back as the same object; the same call gives the same text."""
    result = shorten(text, limit, count=in_o200k, keep=keep)
    assert result == shorten(text, limit, count=in_o200k, keep=keep)
    if result is not None:
        assert shorten(result, limit, count=in_o200k, keep=keep) is result


@pytest.mark.parametrize(
    ("keep", "limit", "result"),
    [
        ("end", 10, "0123456789"),
        ("end", 9, "##3456789"),
        ("start", 9, "0123456##"),
        ("both", 9, "0123##789"),
        ("both", 8, "012##789"),
        ("both", 3, "0##"),
        ("both", 2, "##"),
        ("both", 1, None),
        ("end", 0, None),
    ],
)
def test_the_shapes(keep: Keep, limit: int, result: str | None) -> None:
    """Ten digits under a counter of characters: head, tail or both, the odd one to the head."""
    assert shorten("0123456789", limit, count=len, keep=keep, marker="##") == result


@given(text=ANY_TEXT, chars=st.integers(-2, 130), keep=st.sampled_from(KEEPS))
def test_a_text_is_cut_to_a_number_of_characters(text: str, chars: int, keep: Keep) -> None:
    """Without a counter: at most so many code points stay, of the promised side, and more keep no less."""
    result = cut_text(text, chars, keep=keep, marker="#")
    if len(text) <= max(0, chars):
        assert result is text
    else:
        head, tail = kept(text, result, keep, "#")
        assert len(head) + len(tail) <= max(0, chars)
        assert {len(head), len(text) - len(tail)} <= set(places(text))
        assert len(result) <= len(cut_text(text, chars + 1, keep=keep, marker="#")) or chars + 1 == len(text)


@pytest.mark.parametrize(
    ("keep", "chars", "result"),
    [("end", 3, "#789"), ("start", 3, "012#"), ("both", 3, "01#9"), ("both", 0, "#"), ("end", 0, "#")],
)
def test_the_shapes_without_a_counter(keep: Keep, chars: int, result: str) -> None:
    """Ten digits cut to three: tail, head or both, the odd one to the head."""
    assert cut_text("0123456789", chars, keep=keep, marker="#") == result


@given(
    text=ANY_TEXT | st.text(st.sampled_from("ab Z9\u0663\u00b2,.\n\r'(\u4e2d\u3002"), max_size=200),
    chars=st.integers(1, 130),
    others=st.integers(1, 130),
    keep=st.sampled_from(KEEPS),
)
@example(text="ab" * 9 + " " * 1_100 + "ab" * 9, chars=500, others=510, keep="both")
def test_two_cuts_differ_by_what_is_near_them(text: str, chars: int, others: int, keep: Keep) -> None:
    """In o200k exactly, so that a cut need not be counted whole to know what it costs."""
    one, other = (in_o200k(cut_text(text, at, keep=keep)) for at in (chars, others))
    near = in_o200k(cut_text_near(text, chars, others, keep=keep))
    assert one - other == near - in_o200k(cut_text_near(text, others, chars, keep=keep))


@pytest.mark.parametrize(
    ("keep", "chars", "others", "result"),
    [
        ("end", 9, 14, "#four"),
        ("end", 14, 9, "#hree four"),
        ("start", 9, 14, " t#"),
        ("start", 14, 9, " three #"),
        ("both", 9, 99, " t#five"),
        ("both", 99, 9, " two three four five"),
    ],
)
def test_what_is_near_a_cut_ends_with_a_word(keep: Keep, chars: int, others: int, result: str) -> None:
    """A text that is not cut at all has no marker."""
    assert cut_text_near("one two three four five", chars, others, keep=keep, marker="#") == result


@pytest.mark.parametrize("keep", KEEPS)
def test_nothing_is_cut_where_all_has_room(keep: Keep) -> None:
    """Also where head and tail would meet inside a cluster."""
    text = "0\u0300"
    assert cut_text_near(text, 2, 1, keep=keep) == cut_text(text, 2, keep=keep) == text
    assert cut_text_near(text, 9, 1, keep=keep) == text


def test_nothing_is_cut_inside_a_cluster() -> None:
    """Flags are kept whole, so that an odd room stays unused."""
    flags = "\U0001f1e9\U0001f1ea" * 6
    assert shorten(flags, 8, count=len, keep="end", marker="#") == "#" + flags[:6]
    assert shorten(flags, 8, count=len, keep="both", marker="#") == flags[:4] + "#" + flags[:2]
    assert cut_text(flags, 3, keep="end", marker="#") == "#" + flags[:2]
    assert cut_text(flags, 3, keep="start", marker="#") == flags[:2] + "#"


def test_a_side_is_filled_when_the_other_cannot_be() -> None:
    """Where the next cluster of the head is too large, the tail still takes the small ones."""
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    text = "ab" + family * 3 + "0123456789"
    assert shorten(text, 9, count=len, keep="both", marker="#") == "ab#456789"


def test_an_over_long_cluster_is_cut_all_the_same() -> None:
    """A letter under a million marks is one cluster; it is shortened between code points."""
    result = shorten("a" + "\u0301" * 1_000_000, 500, count=len, keep="start", marker="#")
    assert result is not None
    assert 436 <= len(result) <= 500


@pytest.mark.parametrize("keep", KEEPS)
def test_a_counter_that_plays_tricks_gets_an_answer(keep: Keep) -> None:
    """Sizes without sense end in the bare marker or a text that fits, and never in a hang."""
    assert shorten("", 1, count=lambda text: 0 if text else 9, keep=keep, marker="#") == "#"
    rng = random.Random(3)
    sizes: dict[str, int] = {"#": 0, "ab" * 500: 99}
    result = shorten(
        "ab" * 500, 5, count=lambda text: sizes.setdefault(text, rng.randrange(10)), keep=keep, marker="#"
    )
    assert result is not None
    assert sizes[result] <= 5


def test_a_known_size_is_not_counted_again() -> None:
    """Given the size, the whole text never reaches the counter."""
    meter = Meter(len)
    text = "word " * 100_000
    result = shorten(text, 100, count=meter, keep="end", size_tokens=500_000)
    assert result == shorten(text, 100, count=len, keep="end")
    assert meter.chars < 5_000


def test_the_marker_is_visible_and_short() -> None:
    """The marker is ASCII, names who wrote it, and costs 6 tokens in today's vocabularies."""
    assert CUT_MARKER.isascii()
    assert "trimtab" in CUT_MARKER
    assert [toktok._encoding(name).count(CUT_MARKER) for name in ("o200k_base", "cl100k_base")] == [6, 6]


@cache
def pathological() -> dict[str, str]:
    """Make texts of a few hundred thousand characters that break what splits naively."""
    rng = random.Random(7)
    anything = [*range(0xD800), *range(0xE000, 0x110000)]
    return {
        "spaces": " " * 300_000,
        "one letter": "a" * 300_000,
        "random unicode": "".join(map(chr, rng.choices(anything, k=100_000))),
        "lone surrogates": "\ud83d" * 100_000,
        "nul": "\0" * 200_000,
        "crlf": "\r\n" * 150_000,
        "flags": "\U0001f1e9\U0001f1ea" * 100_000,
        "zalgo": ("a" + "\u0301" * 50) * 4_000,
        "only marks": "\u0301" * 200_000,
        "conjuncts without end": "\u0915\u094d" * 100_000,
        "sparse then dense": " " * 300_000 + "\u4e2d\u6587\u7684" * 10_000,
        "dense then sparse": "\u4e2d\u6587\u7684" * 10_000 + " " * 300_000,
        "words": "the quick brown fox jumps over 42 lazy dogs. " * 7_000,
    }


@pytest.mark.parametrize("keep", KEEPS)
@pytest.mark.parametrize("name", pathological())
def test_few_counts_and_little_text_whatever_arrives(name: str, keep: Keep) -> None:
    """Up to 32 counts, on at most 25 times what comes out, or 9 times the text if that is uneven."""
    text = pathological()[name]
    for limit in (10, 500, 20_000):
        meter = Meter(in_o200k)
        result = shorten(text, limit, count=meter, keep=keep)
        assert result is not None
        assert in_o200k(result) <= limit
        assert meter.calls <= 32, limit
        assert meter.chars - len(text) <= max(25 * (len(result) + 64), 9 * len(text)), limit


@pytest.mark.parametrize("keep", KEEPS)
@pytest.mark.parametrize("name", ["words", "zalgo", "one letter", "crlf"])
def test_work_grows_with_the_text_and_no_faster(name: str, keep: Keep) -> None:
    """Doubling the text and the limit about doubles the characters that are counted."""
    text = pathological()[name]
    chars = []
    for part in (4, 2, 1):
        piece = text[: len(text) // part]
        meter = Meter(in_bytes)
        shorten(piece, in_bytes(piece) // 3, count=meter, keep=keep)
        chars.append(meter.chars)
    # A search may happen to take a count more or less; 3.0 is far from the 4 of quadratic work.
    assert chars[1] < 3.0 * chars[0]
    assert chars[2] < 3.0 * chars[1]


@pytest.mark.data
def test_real_messages_take_a_dozen_counts(data_dir: Path) -> None:
    """On real tool results a cut takes 12 counts on average, and never more than 24."""
    text = (data_dir / "pi_coding_sessions.jsonl").read_text("utf-8")[:1_000_000]
    calls = []
    for keep in KEEPS:
        for start in range(0, 1_000_000, 100_000):
            meter = Meter(in_o200k)
            shorten(text[start : start + 50_000], 100 + start // 200, count=meter, keep=keep)
            calls.append(meter.calls)
    assert max(calls) <= 24
    assert sum(calls) / len(calls) <= 12


OLD_MARKERS = (CUT_MARKER, "[trimtab: tool result cleared]", "[text cut by trimtab; all of it: result of a]")
PIECES = st.sampled_from([*OLD_MARKERS, "word ", "x", "[", "]", "[text ", "by trimtab]"])


@given(parts=st.lists(PIECES, max_size=4), chars=st.integers(0, 200), keep=st.sampled_from(KEEPS))
@example(parts=["word ", OLD_MARKERS[1], " word"], chars=20, keep="both")
@example(parts=["word ", OLD_MARKERS[0], "word"], chars=26, keep="both")
def test_a_marker_of_an_earlier_cut_stays_whole_or_goes(parts: list[str], chars: int, keep: Keep) -> None:
    """None is cut in its turn, and the new one stands beside none."""
    text = "".join(parts)
    pattern = "|".join(map(regex.escape, OLD_MARKERS))
    old = [found.span() for found in regex.finditer(pattern, text)]
    for result in (cut_text(text, chars, keep=keep), shorten(text, chars, count=len, keep=keep)):
        if result is None or result == text:
            continue
        held = [
            (start, len(text) - (len(result) - start - len(CUT_MARKER)))
            for start in (found.start() for found in regex.finditer(regex.escape(CUT_MARKER), result))
            if text.startswith(result[:start]) and text.endswith(result[start + len(CUT_MARKER) :])
        ]
        assert any(
            not any(first < start <= last or first <= stop < last for first, last in old)
            for start, stop in held
        )


def test_a_cleared_result_is_cut_to_the_bare_marker() -> None:
    """The model read "[tri[text cut by trimtab]ed]"."""
    assert cut_text("[trimtab: tool result cleared]", 10, keep="both") == CUT_MARKER
