"""Random sessions with a summarizer that drops sentences and numbers: no value is gone uncounted."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from tests.builders import words
from tests.injections import FORMS, text_message, tool_messages
from trimtab import Session, validate
from trimtab.counting import measure
from trimtab.formats import get_format
from trimtab.report import SummaryCheck
from trimtab.testing import WordCounter

WORDS = WordCounter()
LABEL = "Exact values: "
KINDS = (
    "ORD-{}",
    "{} EUR",
    "sara_doe_{}",
    "a{}@x.org",
    "src/f{}.py",
    "HAT{}",
    "https://x.org/?a={}&b=1",
    "#{}",
    "${}.50",
)
"""Values of which nobody can say that they are none; with another number each is said by one side only."""


def lossy(form: str) -> Any:
    """Make a summarizer that keeps three of ten sentences and half of the numbers."""
    format = get_format(form)

    def summarize(messages: list[Any], existing: str | None) -> str:
        texts = [existing or "", *(slot.text for message in messages for slot in format.texts(message))]
        sentences = [one for text in texts for one in re.split(r"(?<=[.!?])\s+|\n+", text) if one]
        kept = " ".join(one for at, one in enumerate(sentences) if at % 10 in (0, 4, 7))
        seen = iter(range(10**6))
        return re.sub(r"\d+", lambda number: "" if next(seen) % 2 else number[0], kept) or "They talked."

    return summarize


def talk(random: Random, form: str, told: set[str]) -> Iterator[list[Any]]:
    """Say what has values in it; those of user and assistant are noted."""
    numbers = iter(random.sample(range(1_000, 10_000), 500))
    for turn in range(random.randint(8, 30)):
        for role in ("user", "assistant"):
            said = [random.choice(KINDS).format(next(numbers)) for _ in range(random.randint(0, 4))]
            sentences = [f"It is about {value} and {words(random.randint(0, 12))}." for value in said]
            yield [text_message(form, role, " ".join([*sentences, "So it is."]))]
            told.update(said)
            if role == "user" and random.random() < 0.3:
                yield tool_messages(form, f"c{turn}", f"It found SECRET-{next(numbers)}. It is done.")


def says(text: str, value: str) -> bool:
    """Tell whether a text says a value word for word: "$5" is not in "$5.50"."""
    return re.search(rf"(?<!\w){re.escape(value)}(?!\w|[.,:]\d)", text) is not None


def check_session(form: str, seed: int) -> int:
    """Play a session and look at it after each message; return how many values were restated."""
    random = Random(seed)
    told, checks = set[str](), list[tuple[str, SummaryCheck, list[str]]]()
    budget, cap = random.randint(220, 500), random.randint(30, 160)
    ratio = random.choice([0.1, 0.3, 0.3, 1.0])
    session = Session(
        budget,
        format=form,
        counter=WORDS,
        summarizer=lossy(form),
        summary_mode=random.choice(["incremental", "rolling", "anchored"]),
        max_summary_tokens=cap,
        max_kept_ratio=ratio,
        summarize_threshold_messages=random.randint(2, 6),
        hooks={"on_summary_checked": lambda *given: checks.append(given)},
    )
    for messages in talk(random, form, told):
        session.extend(messages)
        view = session.messages()
        assert measure(view, counter=WORDS, format=form).tokens <= budget
        assert not [one for one in validate(view, format=form) if one.fault]
    for text, checked, lost in checks:
        line = text.rpartition("\n")[2] if LABEL in text else ""
        assert len(line.split()) <= ratio * cap, "the line is within its share"
        assert checked.lost == len(lost)
        assert checked.missing == checked.restated + checked.lost <= checked.values
        assert not [value for value in lost if says(text, value)], "what is lost is not there"
    shown = json.dumps(session.messages(), ensure_ascii=False)
    shown = shown.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    lost_ever = {value for _, _, lost in checks for value in lost}
    gone = [value for value in told if not says(shown, value) and value not in lost_ever]
    assert not gone, "each value is in view, or was counted as lost"
    assert not session.status().last_failure
    return sum(checked.restated for _, checked, _ in checks)


@pytest.mark.parametrize("form", FORMS)
def test_no_value_is_gone_without_being_counted(form: str) -> None:
    """After many summaries, in each form and mode."""
    assert sum(check_session(form, seed) for seed in range(4)) > 40


@pytest.mark.long
@pytest.mark.parametrize("form", FORMS)
def test_no_value_is_gone_without_being_counted_in_many_sessions(form: str) -> None:
    """The same, of other sessions."""
    assert sum(check_session(form, seed) for seed in range(100, 200)) > 2_000
