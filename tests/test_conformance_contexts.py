"""The rules for requests of several blocks tell an answer that keeps them from one that does not."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.conformance.blocks import SUMMARY, Composition, Slot
from tests.conformance.compositions import CUT, composition_guards, composition_rules
from tests.conformance.judging import Rule
from tests.conformance.predicates import Kind, Selection, default_counter_rule, summarizer_rule

Message = Mapping[str, Any]


def says(text: str, role: str = "user") -> Message:
    """Make a message, which has as many tokens as its text has characters."""
    return {"role": role, "content": text}


def chars(messages: Sequence[Message]) -> int:
    """Count characters."""
    return sum(len(message["content"]) for message in messages)


def slot(*texts: str, kind: Kind = "sliding_window", role: str = "user", **more: Any) -> Slot:
    """Make a block of texts; what is not about a block is about its strategy."""
    about = {name: more.pop(name) for name in ("rank", "place", "floor_tokens", "cap_tokens") if name in more}
    about |= {name: more.pop(name) for name in ("whole", "summary") if name in more}
    messages = [says(text, role) for text in texts]
    return Slot(
        chosen=Selection(messages=messages, limit=0, size=chars, kind=kind, in_block=True, **more), **about
    )


def rules_of(room: int, *slots: Slot, **more: Any) -> dict[str, Rule]:
    """Give all rules of a request of these blocks."""
    whole = Composition(slots=slots, room=room, size=chars, **more)
    return {**composition_rules(whole), **composition_guards(whole)}


def kept(*items: tuple[int, int], **more: Any) -> dict[str, Any]:
    """Write an answer."""
    return {"kept": list(items), **more}


ERROR = {"error": "BudgetExceededError"}
WRONG = {"error": "ConfigurationError"}
TEN = "xxxxxxxxxx"
PAIR = slot(TEN), slot(TEN)
LONG = "0123456789" * 4
MARK = '<summary of="2 messages" by="trimtab">\ntea\n</summary>'
TALK = ("x" * 60, "y" * 60)


def cut(text: str, role: str = "user") -> dict[str, Any]:
    """Write an answer of one message, whose text is another."""
    return kept((0, 0), changed={(0, 0): says(text, role)})


CHAR = rules_of(30, slot(LONG, kind="truncate_text"))
TWO = rules_of(35, slot(LONG, LONG[:10], kind="truncate_text"))
SUMMED = rules_of(100, slot(*TALK, kind="summarize", summary="tea"))

CASES = [
    ("D2 fault", rules_of(9, slot("x"), faults=True), WRONG, kept((0, 0))),
    ("D2 no fault", rules_of(9, slot("x")), kept((0, 0)), WRONG),
    ("A1", rules_of(10, *PAIR), kept((1, 0)), kept((0, 0), (1, 0))),
    ("A1 system", rules_of(9, slot(TEN, role="system", whole=True)), ERROR, kept((0, 0))),
    (
        "A3 order",
        rules_of(20, slot(TEN, place=2), slot(TEN, place=1)),
        kept((1, 0), (0, 0)),
        kept((0, 0), (1, 0)),
    ),
    (
        "A3 no place",
        rules_of(20, slot(TEN, place=math.inf), slot(TEN, place=1)),
        kept((1, 0), (0, 0)),
        kept((0, 0), (1, 0)),
    ),
    ("A4 needless", rules_of(10, *PAIR), kept((1, 0)), ERROR),
    ("A4 strict", rules_of(15, slot(TEN, rank=1), slot(TEN, kind="strict")), ERROR, kept((0, 0))),
    ("A4 served first", rules_of(15, slot(TEN), slot(TEN, kind="strict", rank=1)), kept((1, 0)), ERROR),
    (
        "A4 behind a window",
        rules_of(15, slot("xxxxxxxxxxx", "yyyyy", rank=1), slot(TEN, kind="strict")),
        kept((0, 1), (1, 0)),
        ERROR,
    ),
    (
        "A4 protected over cap",
        rules_of(50, slot(TEN, cap_tokens=5, protect_roles=frozenset({"user"}))),
        ERROR,
        kept(),
    ),
    (
        "A8",
        rules_of(10, *PAIR),
        kept((1, 0), tokens=10, tokens_before=20),
        kept((1, 0), tokens=10, tokens_before=10),
    ),
    (
        "A8 rest",
        rules_of(15, *PAIR),
        kept((1, 0), tokens=10, remaining_tokens=5),
        kept((1, 0), tokens=10, remaining_tokens=15),
    ),
    ("A10", CHAR, cut(CUT + LONG[-9:]), cut(LONG[-30:])),
    ("C2", rules_of(10, slot("xxxxx", TEN, kind="drop")), kept(), kept((0, 0))),
    ("C3 oldest", rules_of(20, slot(TEN, TEN, TEN)), kept((0, 1), (0, 2)), kept((0, 0), (0, 2))),
    ("C6 nothing remains", rules_of(5, slot(LONG, kind="truncate_text")), kept(), cut("")),
    ("C6 role", CHAR, cut(CUT + LONG[-9:]), cut(CUT + LONG[-9:], "assistant")),
    (
        "C6 oldest",
        TWO,
        cut(CUT + LONG[-4:]) | {"kept": [(0, 0), (0, 1)]},
        kept((0, 0), (0, 1), changed={(0, 1): says(CUT + "9")}),
    ),
    ("C6 not here", rules_of(30, slot(LONG)), kept(), cut(CUT + LONG[-9:])),
    ("D5 shorter cut", CHAR, cut(CUT + LONG[-9:]), cut(CUT + LONG[-8:])),
    ("D5 needless drop", CHAR, cut(CUT + LONG[-9:]), kept()),
    (
        "C8 unmarked",
        SUMMED,
        kept((0, SUMMARY), summaries={0: MARK}),
        kept((0, SUMMARY), summaries={0: "tea"}),
    ),
    ("C8 unused", SUMMED, kept((0, SUMMARY), summaries={0: MARK}), kept()),
    (
        "C8 too large",
        rules_of(50, slot(*TALK, kind="summarize", summary="tea")),
        kept(),
        kept((0, SUMMARY), summaries={0: MARK}),
    ),
    (
        "C8 told",
        rules_of(50, slot(*TALK, kind="summarize", summary="tea")),
        kept(labels={0: "dropped"}),
        kept(labels={0: "summarized"}),
    ),
    ("D5 cap", rules_of(50, slot(TEN, cap_tokens=5)), kept(), kept((0, 0))),
    ("D5 rank", rules_of(10, slot(TEN, rank=1), slot(TEN)), kept((0, 0)), kept((1, 0))),
    ("D5 unused room", rules_of(20, *PAIR), kept((0, 0), (1, 0)), kept((0, 0))),
    ("D5 floor", rules_of(10, slot(TEN, rank=1), slot(TEN, floor_tokens=10)), kept((1, 0)), kept((0, 0))),
    (
        "D5 floors too large",
        rules_of(10, slot(TEN, rank=1, floor_tokens=9), slot(TEN, floor_tokens=9)),
        kept((0, 0)),
        kept((1, 0)),
    ),
    (
        "D5 floor of what it holds",
        rules_of(15, slot("xxxxx", floor_tokens=50), slot(TEN, rank=1)),
        kept((0, 0), (1, 0)),
        kept((1, 0)),
    ),
    ("D6", rules_of(10, *PAIR), kept((1, 0)), kept((0, 0))),
    ("D6 first", rules_of(10, *PAIR, ties="first"), kept((0, 0)), kept((1, 0))),
    ("D11", rules_of(10, *PAIR), kept((1, 0), labels={0: "truncated"}), kept((1, 0), labels={})),
    ("B0", default_counter_rule(), kept(), WRONG),
    ("C10", summarizer_rule(), WRONG, kept()),
]


@pytest.mark.parametrize(
    ("rules", "keeping", "breaking", "name"),
    [pytest.param(*case[1:], case[0].split()[0], id=case[0]) for case in CASES],
)
def test_a_rule_tells_an_answer_that_keeps_it_from_one_that_does_not(
    rules: dict[str, Rule], keeping: Mapping[str, Any], breaking: Mapping[str, Any], name: str
) -> None:
    """The keeping answer keeps all rules of the case; the breaking one breaks this one."""
    assert [rule for rule, keeps in rules.items() if not keeps(keeping)] == []
    assert not rules[name](breaking)


def test_a_tie_the_other_way_round_is_no_matter_of_rank() -> None:
    """D5 asks whether any order of equal ranks explains an answer, D6 whether the said one does."""
    rules = rules_of(10, *PAIR)
    assert rules["D5"](kept((0, 0)))
    assert not rules["D6"](kept((0, 0)))


def test_what_a_floor_left_over_is_offered_again_from_the_top() -> None:
    """A block that had less in its turn may have more than that in the end, and must if it fits."""
    rules = rules_of(20, slot(TEN, "yyyyy", rank=1), slot("z" * 30, floor_tokens=8))
    assert all(keeps(kept((0, 0), (0, 1))) for keeps in rules.values())
    assert not rules["D5"](kept((0, 1)))
