"""Places to cut, held against Unicode's own cases and against `regex` over the whole text."""

from __future__ import annotations

import subprocess
import sys
from itertools import accumulate
from pathlib import Path

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from trimtab.testing.hooks import (
    LONGEST_CLUSTER_CHARS,
    Rule,
    best_rule,
    boundary_at_or_after,
    boundary_at_or_before,
    is_boundary,
    unicodedata_rule,
)

BREAK_TEST = Path(__file__).parent / "data" / "GraphemeBreakTest.txt"
"""Unicode's own cases, version 18.0.0; each line is a text with ÷ where it may be cut and × where not."""

RULES = [pytest.param(best_rule(), id="regex"), pytest.param(unicodedata_rule, id="unicodedata")]

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
CLUSTERS = ["a", "\u00e9", "e\u0301", "\r\n", "\n", "\u4e2d", "\ud55c", "\u1112\u1161\u11ab", FAMILY, " "]
CLUSTERS += [
    "\U0001f1e9\U0001f1ea",
    "\u0915\u094d\u0937\u093f",
    "\U0001f44d\U0001f3fd",
    "\u2764\ufe0f",
    "1\ufe0f\u20e3",
]
CLUSTERS += ["\u1798\u17d2\u1794", "\u0e01\u0e33", "\u0600\u0661", "\U0001f3f4\U000e0067\U000e0062\U000e007f"]
"""What a reader sees as one character, in scripts and emoji of every kind."""

SPECIAL = "a\r\n\u00ad\u00a9\u2764\u200c\u200d\ufe0f\u0301\u0903\u0915\u094d\u09cd\u1039\u1000\u1cf5\u0600"
SPECIAL += "\u0e33\u1100\u1161\u11a8\uac00\uac01\U0001f1e9\U0001f1ea\U0001f468\U0001f3fd\U000e0067"
SPECIAL += "\U000113d1\U00016d63\U00016d67\U00011a3a"
"""Code points of every class UAX #29 tells apart."""


def cases() -> list[list[str]]:
    """Read Unicode's cases, each as the list of its clusters."""
    lines = (line.partition("#")[0].strip() for line in BREAK_TEST.read_text("utf-8").splitlines())
    pieces = [line.strip("÷ ").replace("×", " ").split("÷") for line in lines if line]
    return [["".join(chr(int(code, 16)) for code in piece.split()) for piece in line] for line in pieces]


def borders(clusters: list[str]) -> set[int]:
    """Give the places between clusters and at both ends."""
    return {0, *accumulate(map(len, clusters))}


def cuts(text: str, rule: Rule | None) -> set[int]:
    """Give every place where we would cut."""
    return {index for index in range(len(text) + 1) if is_boundary(text, index, rule=rule)}


def clusters_of(text: str) -> list[str]:
    """Split by the other library's rule over the whole text."""
    return regex.findall(r"\X", text)


def test_regex_cuts_where_unicode_says() -> None:
    """With `regex` every case of Unicode's file comes out exactly."""
    assert len(cases()) > 800
    assert [case for case in cases() if cuts("".join(case), best_rule()) != borders(case)] == []


def test_the_standard_rule_never_cuts_inside_a_case_of_unicode() -> None:
    """Without `regex` no case of Unicode's file is cut inside a cluster."""
    assert [case for case in cases() if not cuts("".join(case), unicodedata_rule) <= borders(case)] == []


def test_the_standard_rule_is_not_so_careful_that_it_is_useless() -> None:
    """Of the borders in Unicode's file, made of odd pairs, the standard rule finds most."""
    found = sum(len(cuts("".join(case), unicodedata_rule)) for case in cases())
    assert found > 0.8 * sum(len(borders(case)) for case in cases())


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("left", CLUSTERS)
def test_a_cluster_is_whole_wherever_it_stands(rule: Rule, left: str) -> None:
    """Between two clusters of any kind there is a cut, and none inside either."""
    for right in CLUSTERS:
        if left != "\u0600\u0661" or right[0] not in "\r\n":
            assert cuts(left + right, rule) == borders([left, right]), (left, right)


@given(st.text(st.sampled_from(SPECIAL), max_size=40) | st.text(max_size=40))
def test_the_standard_rule_cuts_only_where_regex_does(text: str) -> None:
    """The standard rule's places are among ours by `regex`, and those are borders of the whole text."""
    by_regex = cuts(text, best_rule())
    assert cuts(text, unicodedata_rule) <= by_regex <= borders(clusters_of(text))


def test_every_special_code_point_is_known_to_the_standard_rule() -> None:
    """Each code point with a class of its own is held to its neighbours wherever `regex` holds it."""
    special = regex.compile(r"(?V1)[^\p{GCB=Other}\p{GCB=LV}\p{GCB=LVT}\p{GCB=Control}]")
    every = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x1F300), *range(0xE0000, 0xE0100)]))
    assert len(special.findall(every)) > 2_000
    wrong = [
        text
        for char in special.findall(every)
        for text in (
            "a" + char,
            char + "a",
            char + "\u0915",
            "\u1100" + char,
            char + "\u1161",
            char + "\u11a8",
        )
        if not is_boundary(text, 1, rule=best_rule()) and is_boundary(text, 1, rule=unicodedata_rule)
    ]
    assert wrong == []


@given(st.lists(st.sampled_from(CLUSTERS), max_size=30), st.integers(-3, 150))
def test_the_nearest_boundary_is_the_nearest(clusters: list[str], index: int) -> None:
    """Before and after an index the nearest border of a cluster is found, clamped to the text."""
    text = "".join(clusters)
    places = borders(clusters_of(text))
    clamped = min(max(index, 0), len(text))
    assert boundary_at_or_before(text, index) == max(place for place in places if place <= clamped)
    assert boundary_at_or_after(text, index) == min(place for place in places if place >= clamped)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    ("marks", "cut"), [(0, False), (1, False), (62, False), (63, False), (66, True), (1_000, True)]
)
def test_only_an_over_long_cluster_is_cut_inside(rule: Rule, marks: int, cut: bool) -> None:
    """A letter with up to 63 marks is one cluster of 64 and whole; a much longer one may be cut."""
    text = "a" + "\u0301" * marks + "b"
    inside = cuts(text, rule) - {0, len(text) - 1, len(text)}
    assert bool(inside) is cut
    assert all(place > LONGEST_CLUSTER_CHARS for place in inside)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    "endless",
    [
        "\u0301",
        "\u0915\u094d",
        "\U0001f468\u200d",
        "\u1100",
        "\u0600",
        "\U0001f1e9",
        "\u0378",
        "\u200d",
        "\ud83d\ude00",
    ],
)
def test_a_cut_is_near_in_any_endless_text(rule: Rule, endless: str) -> None:
    """However long one sign is repeated, a place to cut lies within 140 code points."""
    text = endless * 5_000
    for index in range(300, 4_000, 333):
        before = boundary_at_or_before(text, index, rule=rule)
        after = boundary_at_or_after(text, index, rule=rule)
        assert index - 140 < before <= index <= after < index + 140


@pytest.mark.parametrize("rule", RULES)
def test_flags_are_paired_from_the_start_of_their_run(rule: Rule) -> None:
    """In a run of 20,001 regional indicators every second place is a cut, far from the start too."""
    text = "x" + "\U0001f1e9\U0001f1ea" * 10_000 + "\U0001f1e9"
    assert [is_boundary(text, index, rule=rule) for index in (1, 2, 3, 19_998, 19_999, 20_000, 20_001)] == [
        *(True, False, True),
        *(False, True, False, True),
    ]


@pytest.mark.parametrize("rule", RULES)
def test_a_small_cluster_after_a_long_run_of_flags_is_whole(rule: Rule) -> None:
    """The last flag of a long run keeps the marks on it, although everything before is joined too."""
    text = "\U0001f1e9\U0001f1ea" * 100 + "\U0001f1e9" + "\u0301" * 63
    assert [index for index in range(201, len(text)) if is_boundary(text, index, rule=rule)] == []


@pytest.mark.parametrize("rule", RULES)
def test_a_surrogate_pair_is_not_torn(rule: Rule) -> None:
    """Two halves of one UTF-16 character stay together; a half alone is cut like a letter."""
    assert cuts("a\ud83d\ude00\ud83db\ude00", rule) == {0, 1, 3, 4, 5, 6}


def test_without_regex_the_standard_rule_is_taken() -> None:
    """Where `regex` cannot be imported, cuts are made all the same."""
    code = (
        "import sys; sys.modules['regex'] = None\n"
        "from trimtab.testing.hooks import boundary_at_or_before\n"
        "print(boundary_at_or_before('ab' + 'e' + chr(0x301), 3))"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "2"
