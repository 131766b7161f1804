"""No regular expression of the package costs more than its text is long, whatever the text."""

from __future__ import annotations

import re

import pytest

from tests.guards.patterns import CALLERS_OWN, Engine, found_patterns, worst_growth
from tests.guards.source import sources

SIZES = (16, 32, 64)
MOST_GROWTH = 2.2
"""Most times the steps of the next 16 signs that those of the next 32 may be; linear is 2, quadratic 4."""

PARTS = 8
"""Patterns are tried in so many tests, every eighth in one: to list them takes seconds, and no run that tries
none should."""

BAD = (r"<(?=\s*/?\s*summary\b)", r"(?:a+)+b", r"\s+\Z", r"(?:a|a)*b", r"://[^\s]*(?=@)", r"x*y*x*z", r"a+b")
GOOD = (r"\Aa+b", r"\Aa+\Z", r"<[\s/]*summary", r"(?<=[.!])[\"')]*\s+", r"a{2,5}", r"(?i:ab)|c")


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
def test_a_search_takes_as_many_steps_as_its_text_is_long(part: int) -> None:
    """Steps of a backtracking engine, over texts made of the expression's own signs."""
    slow: list[str] = []
    for found in found_patterns()[part::PARTS]:
        grown, text = worst_growth(Engine(found.pattern, found.flags, anchored=found.anchored), SIZES)
        if grown > MOST_GROWTH:
            slow.append(f"{found.where}: {found.pattern!r} on {text}: {grown:.1f}")
    assert slow == []


def test_every_use_of_re_was_found() -> None:
    """One for each line that calls `re`: none is imported by another name."""
    lines = [line for source in sources() for line in source.text.splitlines()]
    calls = r"(?<![\w.])re\.(compile|match|fullmatch|search|subn?|split|findall|finditer)\("
    assert len(found_patterns()) + len(CALLERS_OWN) == sum(len(re.findall(calls, line)) for line in lines)
    assert not [line for line in lines if re.match(r"\s*(from re import|import re as)", line)]


@pytest.mark.parametrize("pattern", BAD)
def test_what_is_not_linear_is_told(pattern: str) -> None:
    """Repeats in repeats, beside what matches the same, and looked for from each place anew."""
    assert worst_growth(Engine(pattern), SIZES)[0] > MOST_GROWTH


@pytest.mark.parametrize("pattern", GOOD)
def test_what_is_linear_passes_and_finds_what_python_finds(pattern: str) -> None:
    """The engine is one of regular expressions."""
    engine = Engine(pattern)
    assert worst_growth(engine, SIZES)[0] <= MOST_GROWTH
    texts = ("", "aab", "a! b. ", "aaaaaaaab", "< /summary><summary", "AB abc c", 'ha!") so', "\n\n")
    for text in texts:
        assert engine.ends(text) == [one.end() for one in re.finditer(pattern, text)], text
