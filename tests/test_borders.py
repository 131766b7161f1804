"""Borders between tokens: what is on either side of one may be counted apart."""

from __future__ import annotations

import pytest
import toktok
from hypothesis import example, given
from hypothesis import strategies as st

from trimtab.testing.hooks import border_after, border_before

TEXTS = st.text(
    st.sampled_from(
        "ab Z9\u0663\u00b2\u2167\n\r\t.,;:()\"'s\uff0c\u3002\u4e2d\u6587\u0301_-+/\u00e9\u200d\u01c5[]"
    )
)


@pytest.mark.parametrize("encoding", ["o200k_base", "cl100k_base"])
@given(text=TEXTS, index=st.integers(0, 40))
@example(text="ab\u00b2" + "9" * 5, index=0)
def test_counts_of_both_sides_add_up(encoding: str, text: str, index: int) -> None:
    """Whatever stands there, in the encodings we know."""
    count = toktok._encoding(encoding).count
    for border in (border_before(text, min(index, len(text))), border_after(text, index)):
        assert count(text[:border]) + count(text[border:]) == count(text)


@pytest.mark.parametrize(
    ("text", "index", "before", "after"),
    [
        ("one two three", 6, 3, 7),
        ("one two three", 4, 3, 7),
        ("one two three", 3, 0, 7),
        ("one two three", 2, 0, 3),
        ("one two three", 7, 3, 13),
        ("one two three", 8, 7, 13),
        ("12, 34", 3, 2, 6),
        ("ab12cd34", 3, 2, 6),
        ("a-\nb\n-c", 4, 3, 7),
        ("", 0, 0, 0),
    ],
)
def test_the_nearest_border_on_each_side(text: str, index: int, before: int, after: int) -> None:
    """At least a character away, so that what makes it one belongs to the nearer piece."""
    assert (border_before(text, index), border_after(text, index)) == (before, after)


def test_a_border_far_away_is_not_looked_for() -> None:
    """A megabyte without one costs no more than a page; all of it is one piece then."""
    text = "word " + "-" * 1_000_000 + "word "
    assert border_before(text, 500_000) == 0
    assert border_after(text, 500_000) == len(text)
