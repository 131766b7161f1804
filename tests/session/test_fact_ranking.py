"""Which facts are in view where not all have room: by weight, confirmation and age (E13, issue 36)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from click.testing import CliRunner

from tests.builders import user, words
from tests.session.test_facts import Extractor, in_view, session_with, talk, texts
from tests.session.test_facts_fuzz import ranking
from trimtab import CharCounter, Session, cli
from trimtab.errors import CorruptSessionError
from trimtab.stores import Event, LoadRequest, MemoryStore, SQLiteStore
from trimtab.summaries import Fact, FactRequest
from trimtab.testing import WordCounter

WORDS = WordCounter()

OLDER_FILE = Path(__file__).parents[1] / "data" / "facts" / "snapshot-0.2.0.json"


def told(*answers: Sequence[Fact]) -> Extractor:
    """Answer these, one after the other, and then nothing."""
    listed: Iterator[Sequence[Fact]] = iter(answers)
    return Extractor(lambda request: list(next(listed, ())))


def numbered(start: int, stop: int, **given: Any) -> list[Fact]:
    """List facts of two words each."""
    return [Fact(text=f"number {at}", **given) for at in range(start, stop)]


def asked(session: Session, extractor: Extractor, times: int) -> None:
    """Add messages until the extractor was asked so many times."""
    start = len(extractor.requests)
    while len(extractor.requests) < start + times:
        talk(session, session.version, session.version + 1)


def facts_block(session: Session) -> str:
    """The text of the message with the facts."""
    return next(text for text in in_view(session) if text.startswith("<facts"))


@pytest.mark.parametrize("by", ["weight", "age"])
def test_a_name_told_first_is_in_view_after_fifty_more_facts(by: str) -> None:
    """By its weight whatever the others are; with the same weight since it is the oldest."""
    later = 0.5 if by == "weight" else 1
    answers = [[Fact(text="My name is Ada", weight=2 if by == "weight" else 1)]]
    answers += [numbered(at, at + 5, weight=later) for at in range(0, 50, 5)]
    extractor = told(*answers)
    session = session_with(extractor)
    session.add(user("My name is Ada"))
    asked(session, extractor, len(answers))
    assert "My name is Ada" in [line.removeprefix("- ") for line in facts_block(session).split("\n")]
    status = session.status()
    assert status.facts + status.hidden_facts == 51
    note = f"Facts in view: {status.facts}; without room in view, but in the log: {status.hidden_facts}."
    assert status.hidden_facts > 30
    assert note in session.fit().report.notes


def test_nothing_is_hidden_while_all_have_room() -> None:
    """However old it is, and whatever it weighs."""
    answers = [[Fact(text="number first", weight=0.001)], *(numbered(at, at + 5) for at in range(0, 50, 5))]
    extractor = told(*answers)
    session = session_with(extractor, 2_000, max_fact_tokens=200, target_ratio=0.2)
    asked(session, extractor, len(answers))
    assert texts(session) == ["number first", *(fact.text for fact in numbered(0, 50))]
    assert session.status().hidden_facts == 0


def test_weight_goes_before_confirmation_and_that_before_age() -> None:
    """And what is in view is written oldest first, whatever its rank."""
    answers = [
        [Fact(text=text, weight=weight) for text, weight in (("old", 1), ("light", 0.5), ("heavy", 3))],
        [Fact(text="newer"), Fact(text="LIGHT.", weight=0.5), Fact(text="newest")],
        [Fact(text="newest"), Fact(text="light", weight=0.5)],
    ]
    shown: list[list[str]] = []
    for cap in range(5, 15, 2):  # two words for the mark, and two for a line
        extractor = told(*answers)
        session = session_with(extractor, max_fact_tokens=cap)
        asked(session, extractor, 3)
        shown.append(texts(session))
    assert shown == [
        ["heavy"],
        ["heavy", "newest"],
        ["old", "heavy", "newest"],
        ["old", "heavy", "newer", "newest"],
        ["old", "light", "heavy", "newer", "newest"],
    ]


def test_a_fact_that_is_told_again_is_confirmed_and_the_block_stays() -> None:
    """In view or not, in other letters; its words, its sources and its place are those it had."""
    again = [Fact(text="NUMBER 1.", weight=0.5, kind="count", sources=())]
    extractor = told(numbered(0, 3), again, again)
    session = session_with(extractor)
    asked(session, extractor, 1)
    before, block = list(session.facts), facts_block(session)
    asked(session, extractor, 2)
    assert facts_block(session) == block
    assert session.facts == [
        before[0],
        replace(before[1], confirmations=2, kind="count"),
        before[2],
    ]
    assert session.status().hidden_facts == 0
    newest = list(session.history(kinds=("facts",)))[-1]
    assert (newest.data["facts"], newest.data["confirmations"]) == (0, 1)
    assert session.undo().id == newest.id
    assert [fact.confirmations for fact in session.facts] == [0, 1, 0]
    session.redact(list(before[1].sources))
    assert session.facts == []  # all are of the same messages
    assert "number" not in str([one.data for one in session.history(kinds=("fact",))])


def test_the_hook_is_told_of_new_facts_and_not_of_those_told_again() -> None:
    """An answer with nothing new tells it nothing."""
    found: list[list[str]] = []
    extractor = told(numbered(0, 2), numbered(0, 2), numbered(1, 3))
    hooks = {"on_facts": lambda messages, facts: found.append([fact.text for fact in facts])}
    session = session_with(extractor, hooks=hooks)
    asked(session, extractor, 3)
    assert found == [["number 0", "number 1"], ["number 2"]]


def test_a_hidden_fact_comes_into_view_once_it_is_confirmed() -> None:
    """In its place by age; another has no room then."""
    answers = [numbered(0, 20), [Fact(text="number 10")]]
    extractor = told(*answers)
    session = session_with(extractor, max_fact_tokens=20)
    asked(session, extractor, 1)
    before = texts(session)
    assert before == ["number 0", "number 1", "number 2", "number 18", "number 19"]
    asked(session, extractor, 1)
    assert texts(session) == ["number 0", "number 1", "number 10", "number 18", "number 19"]
    assert [fact.confirmations for fact in session.facts] == [0, 0, 1, 0, 0]
    assert session.status().hidden_facts == 20 - len(before)


def test_a_correction_stands_in_the_place_of_what_it_corrects() -> None:
    """So it is in view if that was; it is not confirmed by those who confirmed the other."""
    extractor = told(
        numbered(0, 20),
        [Fact(text="number 1")],
        [Fact(text="number one", supersedes="number 1", kind="count")],
    )
    session = session_with(extractor, max_fact_tokens=20)
    asked(session, extractor, 2)
    before = texts(session)
    asked(session, extractor, 1)
    assert texts(session) == [before[0], "number one", *before[2:]]
    assert (session.facts[1].confirmations, session.facts[1].kind) == (0, "count")
    changed = session.undo()
    assert changed.kind == "facts"
    assert texts(session) == before
    assert session.facts[1].confirmations == 1


def test_one_answer_that_confirms_and_corrects_a_fact_corrects_it() -> None:
    """What it superseded is not in force beside it."""
    extractor = told(numbered(0, 2), [Fact(text="number 1"), Fact(text="number one", supersedes="number 1")])
    session = session_with(extractor)
    asked(session, extractor, 2)
    assert texts(session) == ["number 0", "number one"]


def test_the_block_changes_only_when_facts_do() -> None:
    """Between two answers it stays, byte for byte; what stays in view stays in its order."""
    answers = [
        [Fact(text=f"number {at} {at % 3}", weight=1 + at * 7 % 5) for at in range(start, start + 4)]
        for start in range(0, 80, 4)
    ]
    extractor = told(*answers)
    session = session_with(extractor)
    seen: list[tuple[int, list[str]]] = []
    while len(extractor.requests) < 20:
        talk(session, session.version, session.version + 1)
        seen.append((len(extractor.requests), texts(session)))
    assert len({tuple(some) for _, some in seen}) > 5
    for (before, some), (after, others) in pairwise(seen):
        stay = [text for text in some if text in others]
        assert stay == [text for text in others if text in some]
        assert before != after or some == others


# -- what is read


class Counting(MemoryStore):
    """Counts requests and the events it gives back."""

    def __init__(self) -> None:
        super().__init__()
        self.requests = self.events = 0

    def load(self, request: LoadRequest, /) -> list[Event]:
        """Read, and count."""
        found = super().load(request)
        self.requests, self.events = self.requests + 1, self.events + len(found)
        return found


def filled(answers: int, **options: Any) -> tuple[Session, Counting, Extractor]:
    """Make a session whose facts are of different weights, four an answer, of which one is corrected."""

    def find(request: FactRequest) -> list[Fact]:
        at = len(extractor.requests)
        found = [
            Fact(text=f"number {at} {one}", weight=1 + (at * 5 + one) % 7, sources=request.ids[one % 2 :][:1])
            for one in range(4)
        ]
        old = request.known[at % len(request.known)].text if request.known and at % 3 == 0 else None
        return [*found[:3], replace(found[3], supersedes=old), Fact(text=f"number {at // 2} 1")]

    extractor, store = Extractor(find), Counting()
    session = session_with(extractor, store=store, id="s", **options)
    asked(session, extractor, answers)
    return session, store, extractor


@pytest.mark.parametrize("answers", [7, 8, 9, 40])
def test_what_is_in_view_are_the_best_of_all_facts_of_the_log(answers: int) -> None:
    """Whatever was named on the way; also after redactions, with a larger cap, and after undo."""
    session, store, extractor = filled(answers)

    def check(session: Session) -> None:
        best = ranking(list(session.history(kinds=None)))
        shown = [one.data["text"] for one in best][: len(session.facts)]
        assert sorted(texts(session)) == sorted(shown)
        assert 0 < len(shown) <= len(best)
        assert session.status().hidden_facts == len(best) - len(shown)

    check(session)
    for _ in range(min(12, answers // 2)):
        session.redact(list(session.facts[-1].sources))
        check(session)
    session = Session(store=store, id="s", max_fact_tokens=120, fact_extractor=extractor, counter=WORDS)
    session.set_budget(400)
    assert len(texts(session)) == len(ranking(list(session.history(kinds=None)))) or len(texts(session)) > 15
    session = Session(store=store, id="s", max_fact_tokens=20, fact_extractor=extractor, counter=WORDS)
    asked(session, extractor, 3)
    check(session)
    session.undo()
    check(session)
    check(session.fork())
    check(Session.restore(session.snapshot(), fact_extractor=extractor, counter=WORDS))


@pytest.mark.parametrize("again", [False, True])
def test_with_a_larger_cap_the_best_of_all_facts_are_in_view(again: bool) -> None:
    """The named ones are too few then, or of the newest none is of the rank it had; all answers are read."""
    answers = [numbered(at, at + 5) for at in range(0, 80, 5)]
    answers += [numbered(57, 80)] if again else [numbered(at, at + 5) for at in range(80, 115, 5)]
    session = session_with(extractor := told(*answers), store=MemoryStore(), id="s")
    asked(session, extractor, len(answers))
    given: dict[str, Any] = {"fact_extractor": extractor, "counter": WORDS, "max_fact_tokens": 160}
    session = Session(store=session.store, id="s", **given)
    session.set_budget(600)
    best = [one.data["text"] for one in ranking(list(session.history(kinds=None)))]
    shown = texts(session)
    assert 40 < len(shown) < len(best)
    assert sorted(shown) == sorted(best[: len(shown)])


def test_opening_a_session_reads_no_more_for_a_long_log() -> None:
    """The answers since the best were named, and these."""
    costs = []
    for answers in (45, 365):
        session, store, extractor = filled(answers)
        assert session.status().hidden_facts > 2 * answers
        before = store.requests, store.events
        again = Session.open(store, "s", fact_extractor=extractor, counter=WORDS)
        again.messages()
        costs.append((store.requests - before[0], store.events - before[1]))
        assert again.facts == session.facts
    (few, less), (many, more) = costs
    assert many <= few + 8
    assert more <= 1.2 * less + 40


# -- what an extractor may answer


@pytest.mark.parametrize("weight", [0, -1, float("nan"), float("inf"), 1e10, True, "2", None])
def test_a_weight_that_is_none_is_a_failure(weight: Any) -> None:
    """As every answer of no use: nothing of it is kept, and the messages are read again."""
    session = session_with(extractor := told([Fact(text="tea", weight=weight)]))
    asked(session, extractor, 1)
    assert session.status().fact_failures == 1
    assert "weight is not a number above 0 and up to 1,000,000,000" in str(session.status().last_fact_failure)
    assert not list(session.history(kinds=("fact",)))


def test_a_kind_that_is_no_text_is_a_failure() -> None:
    """It says what it is."""
    session = session_with(extractor := told([Fact(text="tea", kind=cast("str", 5))]))
    asked(session, extractor, 1)
    assert "a Fact whose kind is not a text: int" in str(session.status().last_fact_failure)


def test_a_weight_of_numpy_is_a_number_and_a_long_kind_is_cut() -> None:
    """What is stored is plain data; what nobody said is not stored."""
    facts = [
        Fact(text="tea", weight=cast("float", np.float32(2.5)), kind="a\n b " * 20, confirmations=9),
        Fact(text="milk", kind=" "),
    ]
    session = session_with(extractor := told(facts))
    asked(session, extractor, 1)
    tea, milk = session.history(kinds=("fact",))
    assert (tea.data["weight"], type(tea.data["weight"])) == (2.5, float)
    assert tea.data["kind"] == ("a b " * 10).rstrip()
    assert "confirmations" not in tea.data
    assert not milk.data.keys() & {"weight", "kind", "confirmations", "since"}
    assert [(fact.weight, fact.kind) for fact in session.facts] == [(2.5, tea.data["kind"]), (1.0, None)]


def test_a_kind_is_redacted_with_its_fact_and_by_its_words() -> None:
    """It is an extractor's text, too."""

    def find(request: FactRequest) -> list[Fact]:
        if len(extractor.requests) > 1:
            return []
        return [
            Fact(text="It is secret", kind="swordfish", sources=request.ids[1:2]),
            Fact(text="Boats have oars", kind="boat", sources=request.ids[1:2]),
        ]

    session = session_with(extractor := Extractor(find))
    secret = session.add(user("the password is swordfish"))
    asked(session, extractor, 1)
    assert len(session.facts) == 2
    done = session.redact(secret)
    assert [fact.text for fact in session.facts] == ["Boats have oars"]
    assert len(done.misattributed) == 1
    assert "swordfish" not in str([one.data for one in session.history(kinds=None)])


def test_what_is_redacted_while_it_is_read_is_not_confirmed() -> None:
    """A fact that was known when the extractor was asked, and is gone when it answers."""
    extractor = told(numbered(0, 2), numbered(0, 2))
    session = session_with(extractor)
    asked(session, extractor, 1)
    sources = session.facts[0].sources

    def redact_first(request: FactRequest) -> list[Fact]:
        Session.open(session.store, session.id, fact_extractor=Extractor(), counter=WORDS).redact(sources)
        return numbered(0, 2)

    extractor.find = redact_first
    count = len(extractor.requests)
    while len(extractor.requests) == count:
        talk(session, session.version, session.version + 1)
        session.refresh()
    assert session.facts == []
    assert "number" not in str([one.data for one in session.history(kinds=("fact",))])


# -- logs and snapshots


def command(*arguments: str) -> str:
    """Run `trimtab session`."""
    found = CliRunner().invoke(cli.command(), ["session", *arguments])
    assert found.exit_code == 0, found.output
    return found.stdout


def test_the_command_line_says_weight_kind_and_confirmations(tmp_path: Path) -> None:
    """`session history` and `session facts`; nothing where a fact has the default of all."""
    url = f"sqlite:///{tmp_path / 'chats.db'}"
    answers = [
        [Fact(text="tea", weight=2, kind="preference"), Fact(text="milk")],
        [Fact(text="Tea"), Fact(text=words(40))],
    ]
    with SQLiteStore(tmp_path / "chats.db") as store:
        given = {"store": store, "id": "ada", "max_fact_tokens": 22, "counter": CharCounter(4)}
        session = session_with(extractor := told(*answers), 400, **given)
        asked(session, extractor, 2)
        expected = [list(fact.sources) for fact in session.facts]
    ada = ("--store", url, "--id", "ada")
    told_lines = command("history", *ada, "--kinds", "fact,facts", "--output", "text").splitlines()
    lines = [line.split("  ", 2)[-1].split("(", 1)[1] for line in told_lines]
    assert lines[0] == "fact) tea (preference, weight 2)"
    assert lines[1] == "fact) milk"
    assert lines[3] == "fact) tea (preference, weight 2, confirmed 1 time)"
    assert lines[5].endswith(", 1 found again")
    shown = command("facts", *ada, "--output", "text")
    assert shown == ("- tea (preference, weight 2, confirmed 1 time)\n- milk\nwithout room in view: 1\n")
    data = json.loads(command("facts", *ada))
    assert data["hidden_facts"] == 1
    assert data["facts"] == [
        {"text": "tea", "weight": 2, "kind": "preference", "confirmations": 1, "origin": "user"}
        | {"sources": expected[0]},
        {"text": "milk", "weight": 1, "kind": None, "confirmations": 0, "origin": "user"}
        | {"sources": expected[1]},
    ]
    assert "- tea\n    - milk\n" in command("show", *ada, "--output", "text")


def test_a_snapshot_without_history_has_facts_in_order_and_rank() -> None:
    """What a fact stands in the place of is not there, and where it stands is."""
    answers = [numbered(0, 3), [Fact(text="number 0", weight=3, kind="count")], numbered(3, 9)]
    extractor = told(*answers)
    session = session_with(extractor)
    asked(session, extractor, 3)
    restored = Session.restore(session.snapshot(history=False), fact_extractor=extractor, counter=WORDS)
    assert restored.messages() == session.messages()
    said = [(one.text, one.weight, one.kind, one.confirmations) for one in restored.facts]
    assert said == [(one.text, one.weight, one.kind, one.confirmations) for one in session.facts]
    assert said[0] == ("number 0", 3, "count", 1)


def test_facts_of_an_older_file_weigh_one_and_are_of_no_kind() -> None:
    """Release 0.2.0 wrote 32, one redacted and one superseded; the oldest and the newest are shown."""
    data = json.loads(OLDER_FILE.read_text(encoding="utf-8"))
    extractor = told([Fact(text="Noted thing31.", weight=2, kind="thing")])
    functions: dict[str, Any] = {"fact_extractor": extractor, "counter": WORDS}
    session = Session.restore(data, **functions)
    old = [one.data["supersedes"] for one in session.history(kinds=("fact",)) if one.data["supersedes"]]
    (superseded,) = (one.data["text"] for one in session.history(kinds=("fact",)) if one.version in old)
    said = [f"noted thing{at}" for at in range(32) if at != 1]
    known, count = [text for text in said if text != superseded], len(session.facts)
    assert texts(session) == known[: -(-count // 2)] + known[-(count // 2) :]
    assert {(fact.weight, fact.kind, fact.confirmations) for fact in session.facts} == {(1.0, None, 0)}
    assert session.status().facts + session.status().hidden_facts == 30
    whole = Session.restore(data, max_fact_tokens=110, **functions)
    assert texts(whole) == known
    asked(session, extractor, 1)
    newest = session.facts[-1]
    assert (newest.text, newest.weight, newest.kind) == ("noted thing31", 2, "thing")
    assert newest.confirmations == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [("weight", 0), ("weight", "2"), ("kind", 3), ("confirmations", -1), ("since", 10**6), ("since", 1)],
)
def test_a_snapshot_with_a_fact_of_no_use_is_refused(name: str, value: Any) -> None:
    """With where it stands and what it has to be."""
    data = json.loads(OLDER_FILE.read_text(encoding="utf-8"))
    data |= {"version": 1}
    fact = next(one for one in data["events"] if one["kind"] == "fact")
    fact["data"][name] = value
    with pytest.raises(CorruptSessionError, match=name):
        Session.restore(data, fact_extractor=Extractor(), counter=WORDS)


def test_a_log_that_names_a_fact_that_is_not_there_is_refused() -> None:
    """It says which."""
    session, _, extractor = filled(16)
    data = session.snapshot() | {"version": 1}
    named = [one for one in data["events"] if one["kind"] == "facts" and one["data"].get("best")]
    named[-1]["data"]["best"] = ["nowhere"]
    with pytest.raises(CorruptSessionError, match="fact nowhere is missing"):
        Session.restore(data, fact_extractor=extractor, counter=WORDS)
