"""Replay: what of the evidence is in view when a question comes, also of LoCoMo and BEAM."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from tests.builders import assistant, user
from trimtab import ClearToolResults, Session, SlidingWindow, TruncateText, cli
from trimtab.errors import ConfigurationError, FormatError
from trimtab.formats import get_format
from trimtab.replay import Evidence, Question, Recording, chart_page, read_recording, read_recordings, replay
from trimtab.strategies import Relevant
from trimtab.testing import WordCounter

FACT = "My sister Ingrid works as a welder in Bergen."
QUESTION = "What does Ingrid do for a living?"


def talk(turns: int = 30) -> list[dict[str, Any]]:
    """Make a conversation that begins with a fact and goes on about something else."""
    said = [user(FACT), assistant("Good for her!")]
    for turn in range(turns):
        said += [user(f"It rains on day {turn} again, what a pity"), assistant(f"Day {turn} is one for tea")]
    return said


def asked(messages: Sequence[Any], *questions: Question) -> Recording:
    """Read a recording with questions."""
    return read_recording(messages, questions=questions)


def seen(recording: Recording, policy: Any, budget: int = 100) -> Evidence:
    """Replay with a token a word, and return what was in view."""
    return replay(recording, policy, budget=budget, counter=WordCounter()).totals.evidence


# Where a question is asked.


def test_a_question_with_a_text_is_asked_beside_the_conversation() -> None:
    """The policy sees it as the newest message; the calls and their bill are as without it."""
    views: list[list[Any]] = []

    def keep(messages: list[Any]) -> list[Any]:
        views.append(messages)
        return messages[-5:]

    messages = talk(5)
    found = replay(asked(messages, Question(text=QUESTION, evidence=(0,))), keep, counter=WordCounter())
    assert views[-1] == [*messages, user(QUESTION)]
    assert views[-2] == messages
    assert found.totals.calls == len(views) - 1 == 7
    assert found.totals.evidence == Evidence(sought=1)
    early = asked(messages, Question(text=QUESTION, evidence=(0,), at=4))
    assert [bool(row.evidence) for row in replay(early, keep, counter=WordCounter()).calls].index(True) == 2


@pytest.mark.parametrize("form", ["anthropic", "gemini", "openai_responses", "bedrock"])
def test_a_question_is_a_user_message_of_the_wire_form(form: str) -> None:
    """So that a strategy by relevance looks for it in each of them."""
    made = get_format(form)
    roles = ("user", "assistant")
    messages = [made.message(roles[at % 2], [one["content"]]) for at, one in enumerate(talk())]
    recording = read_recording(messages, format=form, questions=[Question(text=QUESTION, evidence=(0,))])
    assert seen(recording, SlidingWindow()) == Evidence(sought=1)
    assert seen(recording, Relevant()) == Evidence(whole=1, sought=1)


def test_a_session_forgets_a_question_that_was_asked_beside_it() -> None:
    """Each question is put to the same session, which has none of them in its log."""
    made: list[Session] = []

    def make() -> Session:
        made.append(Session(100, counter=WordCounter()))
        return made[0]

    messages = talk()
    newest = len(messages) - 1
    questions = [Question(text=f"{QUESTION} {n}", evidence=(0, newest)) for n in range(3)]
    assert seen(asked(messages, *questions), make) == Evidence(whole=3, sought=6)
    told = [event.data["message"] for event in made[0].history()]
    assert told == messages


def test_where_nothing_fits_nothing_is_in_view() -> None:
    """A question too long for the budget has its evidence counted as gone."""
    question = Question(text="why " * 200, evidence=(0, 1))
    assert seen(asked(talk(3), question), "default") == Evidence(sought=2)


def test_of_messages_that_say_the_same_the_one_that_was_sent_counts() -> None:
    """An old "yes" is not in view because a new one is."""
    messages = [user("Is it Bergen?"), assistant("yes"), *talk(5), user("Is it Oslo?"), assistant("yes")]
    question = Question(text="Is it?", evidence=(1,))
    assert seen(asked(messages, question), lambda given: given[-3:]) == Evidence(sought=1)
    assert seen(asked(messages, question), lambda given: [*given[1:2], given[-1]]).whole == 1

    def copies(given: list[Any]) -> list[Any]:
        return [*map(dict, [*given[1:2], *given[-2:-1]]), given[-1]]

    assert seen(asked(messages, question), copies) == Evidence(whole=1, sought=1)


def test_a_question_of_the_models_is_asked_at_the_call_that_has_it() -> None:
    """Not at the one that made it say so."""
    found = replay(asked(talk(2), Question(at=1, evidence=(0,))), counter=WordCounter())
    assert [bool(row.evidence) for row in found.calls] == [False, True, False]


# What counts as in view.


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param(f"Earlier: {FACT}", 1, id="quoted"),
        pytest.param("My sister Priya works as a welder in Bergen.", 0, id="of-somebody-else"),
        pytest.param("My sister Ingrid works in Bergen, as a welder, it seems", 1, id="in-another-order"),
        pytest.param(f"Once: {FACT}".replace("I", "&#73;"), 1, id="escaped"),
        pytest.param("Ingrid is mentioned. It rains a lot. There was tea.", 0, id="a-name-alone"),
        pytest.param("Ingrid called.\nA welder came.\nBergen is far.", 0, id="words-of-other-lines"),
        pytest.param("It rains on day 3 again.", 0, id="something-else"),
    ],
)
def test_a_text_has_a_message_if_a_line_has_its_rare_words(text: str, found: int) -> None:
    """A summary, a fact or a recalled text; a sentence about somebody else is another one."""
    recording = asked(talk(), Question(text=QUESTION, evidence=(0,)))
    assert seen(recording, lambda given: [user(text), given[-1]]) == Evidence(retold=found, sought=1)


@pytest.mark.parametrize(
    ("text", "answer", "found"),
    [
        pytest.param("Ingrid: welder", "a welder", 0, id="a-word-is-missing"),
        pytest.param("Ingrid: welder", "welder", 1, id="a-fact"),
        pytest.param("Ingrid: job\nPriya: welder", "welder", 0, id="on-another-line"),
        pytest.param("Priya is a welder", "welder", 0, id="of-somebody-else"),
        pytest.param("Ingrid: welder", None, 0, id="no-answer-known"),
    ],
)
def test_a_text_has_the_answer_beside_what_is_asked(text: str, answer: str | None, found: int) -> None:
    """Where the question says its answer, other words than the message's will do, on one line."""
    recording = asked(talk(), Question(text=QUESTION, evidence=(0,), answer=answer))
    assert seen(recording, lambda given: [user(text), given[-1]]) == Evidence(retold=found, sought=1)


@pytest.mark.parametrize(
    ("fact", "question", "answer", "text", "found"),
    [
        pytest.param(
            "Does Ann own a dog? The vet told us: yes.",
            "Does Ann own a dog?",
            "yes",
            "Yes, Ann and the dog went out.",
            0,
            id="assent",
        ),
        pytest.param(
            "Does Ann own a dog? The vet told us: yes.",
            "Does Ann own a dog?",
            "Yes.",
            "Earlier: Does Ann own a dog? The vet told us: yes.",
            1,
            id="assent-in-a-quote",
        ),
        pytest.param(
            "Ann has not seen the lake.",
            "Did Ann see the lake?",
            "not",
            "Ann is not at the lake",
            0,
            id="stop",
        ),
        pytest.param("小雅说她不吃花生。", "小雅吃花生吗？", "是的", "小雅买花生，是的", 0, id="assent-zh"),
        pytest.param(
            "Ann said that 7 of them were born.",
            "How many puppies did Ann get?",
            "7",
            "Ann got 7 puppies",
            1,
            id="number",
        ),
        pytest.param(
            "It will be Rex then, says Ann.",
            "How is Ann's dog called?",
            "Rex",
            "Ann's dog: Rex",
            1,
            id="name",
        ),
    ],
)
def test_an_answer_without_a_telling_word_counts_by_quote_alone(
    fact: str, question: str, answer: str, text: str, found: int
) -> None:
    """Any line about the same may have a "yes" in it."""
    recording = asked([user(fact), *talk()[1:]], Question(text=question, evidence=(0,), answer=answer))
    assert seen(recording, lambda given: [user(text), given[-1]]) == Evidence(retold=found, sought=1)


def test_the_words_of_the_question_itself_are_no_evidence() -> None:
    """Nor what another message of the conversation happens to say."""
    question = Question(text=FACT.replace(".", "?"), evidence=(0,))
    assert seen(asked(talk(), question), SlidingWindow()) == Evidence(sought=1)


def test_of_a_long_message_half_has_to_be_told() -> None:
    """Sentence by sentence, each weighed by its rare words."""
    parts = ["Ingrid welds in Bergen.", "Kofi bakes in Lisbon.", "Priya paints in Graz."]
    recording = asked([user(" ".join(parts)), *talk(9)[1:]], Question(text="Who?", evidence=(0,)))
    for count, found in ((1, 0), (2, 1), (3, 1)):
        text = "\n".join(parts[:count])
        assert seen(recording, lambda given, text=text: [user(text), given[-1]]).seen == found  # type: ignore[misc]


def test_a_shortened_message_counts_by_what_is_left_of_it() -> None:
    """If what it says is still there; a cleared result says nothing any more."""
    long = f"{FACT} Besides we had soup on Monday. The roof leaks as it did before. Your cat says hello."
    recording = asked([user(long), assistant("ok")], Question(text=QUESTION, evidence=(0,)))
    assert seen(recording, TruncateText(), budget=32) == Evidence(shortened=1, sought=1)
    assert seen(recording, lambda given: [user(long[-40:]), given[-1]]) == Evidence(sought=1)
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    tools = [
        user("look"),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": long},
        assistant("ok"),
    ]
    cleared = asked(tools, Question(text=QUESTION, evidence=(2,)))
    assert seen(cleared, ClearToolResults(keep_results=0), budget=30) == Evidence(sought=1)


def test_evidence_adds_up_and_is_plain_data() -> None:
    """Over rows and over recordings."""
    recording = asked(talk(), Question(text=QUESTION, evidence=(0, 61)), Question(at=60, evidence=(0,)))
    found = replay(recording, "default", budget=100, counter=WordCounter())
    assert found.totals.evidence == Evidence(whole=1, sought=3)
    assert (found + found).totals.evidence == Evidence(whole=2, sought=6)
    data = json.loads(json.dumps(found.to_dict()))
    assert data["totals"]["evidence"] == {"whole": 1, "shortened": 0, "retold": 0, "sought": 3}
    assert data["totals"]["evidence_share"] == pytest.approx(1 / 3)
    assert sum((row["evidence"] or {"sought": 0})["sought"] for row in data["calls"]) == 3


def test_the_page_of_charts_has_a_bar_a_policy() -> None:
    """As long as the share in view, in two parts; no bars without questions."""
    recording = asked(talk(), Question(text=QUESTION, evidence=(0, 61)))
    half = replay(recording, "default", budget=100, counter=WordCounter(), name="<half>")
    retold = replay(recording, lambda given: [user(f"Earlier: {FACT}"), *given[-3:]], counter=WordCounter())
    root = ElementTree.fromstring(chart_page({"talk": [half, retold]}).removeprefix("<!doctype html>"))
    drawn = [row for row in root.iter("tr") if len(list(row)) == 3]
    bars = [[float(one.get("width", "")) for one in row[1].iter("rect")] for row in drawn]
    assert bars[0][0] == bars[1][0] == bars[1][1] > 0 == bars[0][1]
    assert ["".join(row.itertext()) for row in drawn] == ["<half>50%", "<lambda>100%"]
    plain = [replay(talk(), policy, budget=100, counter=WordCounter()) for policy in ("default", None)]
    assert "Evidence" not in chart_page({"talk": plain})


@pytest.mark.parametrize(
    "question",
    [
        {"evidence": [0]},
        {"text": 3, "evidence": [0]},
        {"text": "Who?", "at": "3", "evidence": [0]},
        {"text": "Who?"},
        "Who?",
        {"text": "Who?", "evidence": [999]},
        {"text": "Who?", "evidence": []},
    ],
)
def test_a_question_that_is_none_is_refused(question: Any) -> None:
    """It has a place or a text, and evidence that is there; which one of a file is not so is said."""
    good = {"text": QUESTION, "evidence": [0]}
    with pytest.raises(FormatError, match=r"questions\[1\]"):
        read_recording({"messages": talk(2), "questions": [good, question]})
    with pytest.raises(ConfigurationError, match="text"):
        read_recording(talk(2), questions=[Question(evidence=(0,))])


@pytest.mark.parametrize("wrong", [5, 0, "abc", {"at": 2, "evidence": [0]}])
def test_questions_of_a_file_are_a_list(wrong: Any) -> None:
    """Anything else is told its shape, not taken apart."""
    with pytest.raises(FormatError, match=r'questions must be a list of \{"at": 12, "evidence": \[3, 5\]\}'):
        read_recording({"messages": talk(2), "questions": wrong})
    assert read_recording({"messages": talk(2), "questions": None}).questions == ()


@pytest.mark.parametrize("notes", [5, "abc", ["of mine"]])
def test_notes_of_a_body_are_the_callers_own(notes: Any) -> None:
    """Whatever they are, they say nothing of what was left out."""
    assert read_recording({"messages": talk(2), "notes": notes}).notes == ()


@pytest.mark.parametrize(
    ("at", "text", "evidence", "place"),
    [
        pytest.param(2, None, (0, 3), 3, id="behind"),
        pytest.param(2, None, (3,), 3, id="nothing-else"),
        pytest.param(2, None, (0, 2), 2, id="the-question-itself"),
        pytest.param(2, QUESTION, (1, 2), 2, id="beside-two-messages"),
    ],
)
def test_evidence_stands_before_its_question(
    at: int, text: str | None, evidence: tuple[int, ...], place: int
) -> None:
    """What comes later would never be sought, and a share without it be too good."""
    late = Question(at=at, text=text, evidence=evidence)
    why = rf"questions\[1\] has evidence at position {place}, and is asked at {at}"
    questions = [Question(at=4, evidence=(1,)), late]
    with pytest.raises(ConfigurationError, match=why):
        read_recording(talk(2), questions=questions)
    with pytest.raises(ConfigurationError, match=why):
        replay(replace(read_recording(talk(2)), questions=tuple(questions)))
    given = [{"at": one.at, "text": one.text, "evidence": list(one.evidence)} for one in questions]
    with pytest.raises(FormatError, match=why):
        read_recording({"messages": talk(2), "questions": given})


def test_evidence_that_is_named_twice_counts_once() -> None:
    """In the share and in what it is a share of."""
    recording = asked(talk(2), Question(at=2, evidence=(1, 0, 0, 1)))
    assert recording.questions == (Question(at=2, evidence=(1, 0)),)
    assert seen(recording, None) == Evidence(whole=2, sought=2)


def test_a_question_beside_all_messages_may_say_how_many_these_are() -> None:
    """It is the same as without a place."""
    messages = talk(2)
    at_end = asked(messages, Question(text=QUESTION, evidence=(0, 5), at=6))
    assert seen(at_end, None) == Evidence(whole=2, sought=2)
    with pytest.raises(ConfigurationError, match="position 6 of 5 messages"):
        asked(messages, Question(evidence=(0, 5), at=6))


# LoCoMo and BEAM.


def locomo(name: str = "talk-1") -> dict[str, Any]:
    """Make a conversation as LoCoMo writes one."""
    return {
        "sample_id": name,
        "conversation": {
            "speaker_a": "Nora",
            "speaker_b": "Hugo",
            "session_10": [{"speaker": "Nora", "dia_id": "D10:1", "text": "Bye"}],
            "session_2_date_time": "1:56 pm on 8 May, 2026",
            "session_2": [
                {"speaker": "Hugo", "dia_id": "D2:1", "text": "Look", "blip_caption": "a red canoe"},
                {"speaker": "Nora", "dia_id": "D2:2", "text": "My piano is in Graz."},
            ],
            "session_3_date_time": "a day without turns",
        },
        "qa": [
            {"question": "Where is the piano?", "answer": "Graz", "evidence": ["D2:2"], "category": 4},
            {"question": "What was shown, and last?", "evidence": ["D2:1; D10:01"], "category": 1},
            {
                "question": "Where is the drum?",
                "adversarial_answer": "x",
                "evidence": ["D2:2"],
                "category": 5,
            },
            {"question": "Who?", "answer": 7, "evidence": [], "category": 3},
            {"question": "When?", "answer": "now", "evidence": ["D9:9"], "category": 2},
        ],
    }


def beam(**more: Any) -> dict[str, Any]:
    """Make a conversation as BEAM writes one."""
    turns = [
        {"role": "user", "id": 0, "content": "My deadline is in June.", "time_anchor": "May-1-2026"},
        {"role": "assistant", "id": 1, "content": "Noted."},
        {"role": "user", "id": 2, "content": "No, in July."},
        {"role": "assistant", "id": 2, "content": "I see."},
    ]
    probing = {
        "knowledge_update": [
            {"question": "When is my deadline?", "source_chat_ids": {"old": [0], "new": [1]}}
        ],
        "abstention": [{"question": "Where do I live?"}],
        "event_ordering": [{"question": "In which order?", "source_chat_ids": [[0], 2]}],
    }
    return {"conversation_id": "7", "chat": [turns[:2], turns[2:]], "probing_questions": probing} | more


def test_locomo_is_read_in_the_order_of_its_sessions() -> None:
    """Speakers, dates and pictures are in the text; what has no evidence is left out, and said."""
    first, other = read_recordings([locomo(), locomo("talk-2")]).values()
    assert [one["role"] for one in first.messages] == ["assistant", "user", "user"]
    texts = [one["content"] for one in first.messages]
    assert texts[0] == "(1:56 pm on 8 May, 2026)\nHugo: Look [shares a picture: a red canoe]"
    assert texts[1:] == ["Nora: My piano is in Graz.", "Nora: Bye"]
    assert first.questions == (
        Question(text="Where is the piano?", evidence=(1,), answer="Graz"),
        Question(text="What was shown, and last?", evidence=(0, 2)),
    )
    assert [note.split(",")[0] for note in first.notes] == [
        "1 question of category 5",
        "1 question without evidence is left out",
        "1 question with evidence that names no turn",
    ]
    unknown = {**locomo(), "qa": [*locomo()["qa"], {"question": "Why?"}]}
    assert "2 questions without evidence are left out" in read_recording(unknown).notes
    assert other.questions == first.questions
    assert len(read_recording(locomo()).questions) == 2


@pytest.mark.parametrize("shape", ["row", "rows", "texts", "python", "batches", "plans"])
def test_beam_is_read_in_each_shape_it_is_given_out_in(shape: str) -> None:
    """A row of the table, an answer with rows, texts for values, batches of turns, plans of batches."""
    one = beam()
    batches = [{"batch_number": n, "turns": [turns]} for n, turns in enumerate(one["chat"])]
    source: Any = {
        "row": one,
        "rows": {"rows": [{"row_idx": 0, "row": one}]},
        "texts": beam(probing_questions=json.dumps(one["probing_questions"])),
        "python": beam(probing_questions=repr(one["probing_questions"]), chat=repr(one["chat"])),
        "batches": beam(chat=batches),
        "plans": beam(chat=[{"plan-1": batches[:1]}, {"plan-2": batches[1:]}]),
    }[shape]
    (recording,) = read_recordings(source).values()
    assert [one["role"] for one in recording.messages] == ["user", "assistant"] * 2
    assert recording.questions == (Question(text="When is my deadline?", evidence=(0, 1)),)
    assert len(recording.notes) == 2


def changed(one: dict[str, Any], key: str, value: Any) -> dict[str, Any]:
    """Put something else into the conversation of a LoCoMo file."""
    return {**one, "conversation": {**one["conversation"], key: value}}


@pytest.mark.parametrize(
    ("source", "where"),
    [
        pytest.param(
            changed(locomo(), "session_2", "x"), "talk-1: session_2 must be a list of turns", id="session"
        ),
        pytest.param(
            changed(locomo(), "session_2", [{"speaker": "Nora", "text": "a"}]),
            r"talk-1: session_2\[0\] has no text 'dia_id'",
            id="turn",
        ),
        pytest.param({**locomo(), "qa": [{"answer": "a"}]}, r"qa\[0\] has no text 'question'", id="question"),
        pytest.param({**locomo(), "qa": {}}, "qa must be a list of questions", id="qa"),
        pytest.param({**locomo(), "conversation": {}}, "talk-1 has no turns", id="no-turns"),
        pytest.param(
            beam(chat=[[{"role": "user"}]]), "BEAM 7: turn 1 of chat has no text 'content'", id="chat"
        ),
        pytest.param(beam(probing_questions="{'a': "), "neither JSON nor a Python value", id="text"),
        pytest.param(beam(probing_questions=[]), "a mapping of lists", id="groups"),
        pytest.param(beam(probing_questions={"a": 3}), "probing_questions.a must be a list", id="group"),
        pytest.param([locomo(), locomo()], "2 conversations: use read_recordings", id="several"),
    ],
)
def test_what_is_wrong_in_a_file_is_said_with_its_place(source: Any, where: str) -> None:
    """And with what is expected there."""
    with pytest.raises(FormatError, match=where):
        read_recording(source)


def test_other_sources_are_one_conversation_without_a_name() -> None:
    """Whatever `read_recording` reads."""
    assert list(read_recordings(talk(2))) == [""]
    assert list(read_recordings([locomo(), locomo()])) == ["talk-1 (1)", "talk-1 (2)"]


def test_the_command_takes_a_file_of_several_conversations(tmp_path: Path) -> None:
    """Each is a recording; what is left out is on standard error, and the table says how evidence is seen."""
    path = tmp_path / "locomo10.json"
    path.write_text(json.dumps([locomo(), locomo("talk-2")]), encoding="utf-8")
    found = CliRunner().invoke(cli.command(), ["replay", str(path), "--budget", "8k", "--output", "text"])
    assert found.exit_code == 0, found.output
    assert "locomo10.json: conversation talk-2: 1 question of category 5" in found.stderr
    head, line = (one.split() for one in found.stdout.splitlines()[:2])
    told = dict(zip(reversed(head), reversed(line), strict=False))
    assert (told["evidence"], told["whole"], told["of"]) == ("100.0%", "6", "6")
    data = json.loads(CliRunner().invoke(cli.command(), ["replay", str(path), "--budget", "8k"]).stdout)
    assert len(data["recordings"]) == 2
    path.write_text(json.dumps(changed(locomo(), "session_2", 3)), encoding="utf-8")
    wrong = CliRunner().invoke(cli.command(), ["replay", str(path), "--budget", "8k"])
    assert wrong.exit_code == 1
    assert "session_2 must be a list of turns" in wrong.stderr
