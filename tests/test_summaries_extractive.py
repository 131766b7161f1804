"""Summaries of a conversation's own sentences: within the limit, in order, the same every time."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import assistant, call, result, user
from tests.guards.source import PACKAGE
from trimtab import CharCounter, EstimateCounter, counter_for
from trimtab.errors import ConfigurationError
from trimtab.summaries import ExtractiveSummarizer, SummaryRequest, run_summarizer
from trimtab.testing import WordCounter

WORDS = ExtractiveSummarizer(counter=WordCounter())
"""Counts words, the label among them, so that a limit can be read off a text."""


def picked(*messages: Any, **request: Any) -> list[str]:
    """Give the lines of a summary."""
    return WORDS.summarize(SummaryRequest(messages=messages, **request)).splitlines()


TALK = [
    user("Plan a trip to Kyoto. The trip must stay below 900 EUR. I like trains."),
    assistant("Fine. Kyoto in May is full. In June a trip to Kyoto costs 850 EUR. Shall I book?"),
    user("Book the June trip. Take the window seat."),
]
ASIDES = [assistant(f"The aside{n} is so{n}.") for n in range(6)]
REQUEST_LINES = ["USER: Book the June trip.", "USER: Take the window seat."]


def test_with_room_for_all_every_sentence_stands_in_order() -> None:
    """A line a sentence, with whose it is."""
    assert picked(*TALK, max_tokens=1_000) == [
        "USER: Plan a trip to Kyoto.",
        "USER: The trip must stay below 900 EUR.",
        "USER: I like trains.",
        "ASSISTANT: Fine.",
        "ASSISTANT: Kyoto in May is full.",
        "ASSISTANT: In June a trip to Kyoto costs 850 EUR.",
        "ASSISTANT: Shall I book?",
        *REQUEST_LINES,
    ]


@pytest.mark.parametrize(
    ("limit", "lines"),
    [
        pytest.param(20, REQUEST_LINES, id="both sentences of the request, exactly half"),
        pytest.param(19, REQUEST_LINES[:1], id="one under"),
        pytest.param(10, REQUEST_LINES[:1], id="one, exactly half"),
    ],
)
def test_the_newest_request_comes_first_up_to_half_of_the_room(limit: int, lines: list[str]) -> None:
    """Five words each, with the label; nothing else here is short enough to be taken beside them."""
    older = assistant("word " * 30)
    assert [
        line for line in picked(older, TALK[2], max_tokens=limit) if line in REQUEST_LINES[: len(lines)]
    ] == lines


def test_a_request_that_is_too_long_is_cut() -> None:
    """Its label stays, a marker says so, and the rest of the room is for what was said before."""
    lines = picked(assistant("Noted."), user("please " * 50), max_tokens=24)
    assert lines[0] == "ASSISTANT: Noted."
    assert lines[1].startswith("USER: please")
    assert "[text cut by trimtab]" in lines[1]


def test_what_the_conversation_comes_back_to_is_preferred() -> None:
    """Not what only one message says, nor what each of them says."""
    pump, again = assistant("The pump leaks."), assistant("Again the pump leaks badly today.")
    talk = [*ASIDES[:2], pump, *ASIDES[2:4], again, *ASIDES[4:], user("Go on.")]
    assert picked(*talk, max_tokens=9) == ["ASSISTANT: The pump leaks.", "USER: Go on."]


def test_half_of_the_room_is_not_the_requests() -> None:
    """A long request leaves room for what was said before, though all of it would fit."""
    pumps = [assistant("The pump leaks."), assistant("Why the pump leaks?")]
    request = user("One apple here. Two pears there. Three plums too. Four figs also.")
    lines = picked(*ASIDES, *pumps, request, max_tokens=16)
    assert lines[:3] == ["ASSISTANT: The pump leaks.", "USER: One apple here.", "USER: Two pears there."]


def test_room_that_nothing_else_takes_is_the_requests() -> None:
    """A conversation of one message is picked whole, if it fits."""
    request = user("One apple here. Two pears there. Three plums too. Four figs also.")
    assert len(picked(request, max_tokens=16)) == 4
    assert len(picked(request, max_tokens=15)) == 3


def test_what_was_said_already_counts_no_more() -> None:
    """Of two that say the same one is picked, and then one that says something else."""
    leaks = [assistant(f"The pump leaks {word}.") for word in ("badly", "again", "today")]
    doors = [assistant(f"A door {word} creaks.") for word in ("here", "there")]
    lines = picked(*leaks, *doors, *ASIDES, user("Go on."), max_tokens=13)
    assert [line.split()[2] for line in lines[:2]] == ["pump", "door"]


def test_a_short_sentence_beats_a_longer_one_that_says_a_little_more() -> None:
    """What counts is how much is said for its length."""
    talk = [
        assistant("Pump leaks."),
        assistant("So in fact the pump really leaks from below, and the door too."),
        assistant("Door and pump it is which it leaks."),
        *ASIDES,
        user("Go on."),
    ]
    assert picked(*talk, max_tokens=17)[0] == "ASSISTANT: Pump leaks."


def test_what_each_message_says_is_worth_less_than_what_some_come_back_to() -> None:
    """No list of stop words is needed."""
    talk = [assistant(f"Ok a{n}." + (f" Pump b{n}." if n < 4 else "")) for n in range(12)]
    first, last = picked(*talk, user("Go on."), max_tokens=6)
    assert first.startswith("ASSISTANT: Pump")
    assert last == "USER: Go on."


def test_a_word_is_the_same_in_capitals_and_with_marks_around_it() -> None:
    """Marks inside it are part of it."""
    newer = [assistant(f"Aside{n} so{n}.") for n in range(6)]
    talk = [assistant("(Pump!) a."), assistant("pump, b."), *newer, user("Go on.")]
    assert picked(*talk, max_tokens=6) == ["ASSISTANT: pump, b.", "USER: Go on."]
    paths = [assistant("src/a.py x."), assistant("`src/a.py` y."), *newer, user("Go on.")]
    assert picked(*paths, max_tokens=6) == ["ASSISTANT: `src/a.py` y.", "USER: Go on."]


def test_nothing_is_said_twice() -> None:
    """A sentence that was said again stands where it was first said."""
    lines = picked(user("Mind the gap."), assistant("Yes."), user("Mind the gap."), max_tokens=100)
    assert lines == ["USER: Mind the gap.", "ASSISTANT: Yes."]


def test_results_of_tools_come_last_and_calls_never() -> None:
    """What came of a call is taken from what is said of it, while that is enough."""
    talk = [
        user("Is it raining?"),
        call("c", text="I look."),
        result("c", "rain raining rain"),
        assistant("It is raining."),
    ]
    said = ["USER: Is it raining?", "ASSISTANT: I look.", "ASSISTANT: It is raining."]
    assert picked(*talk, max_tokens=12) == said
    assert picked(*talk, max_tokens=16) == [*said[:2], "TOOL: rain raining rain", said[2]]


def test_an_earlier_summary_is_carried_over() -> None:
    """With whose its sentences are, before the new ones; text of another summarizer has no label."""
    existing = "USER: I like trains.\nKyoto was the aim. It is far."
    assert picked(user("Go on."), existing=existing, max_tokens=100) == [
        "USER: I like trains.",
        "Kyoto was the aim.",
        "It is far.",
        "USER: Go on.",
    ]


def test_new_talk_does_not_push_all_of_an_earlier_summary_out() -> None:
    """Half of what the request leaves is for it."""
    existing = "\n".join(f"USER: old{n} fact{n}." for n in range(10))
    talk = [assistant(f"Rain again and wind{n} again.") for n in range(50)]
    lines = picked(*talk, user("Go on."), existing=existing, max_tokens=33)
    assert sum("old" in line for line in lines) >= 5
    assert sum("Rain" in line for line in lines) >= 2
    assert lines[-1] == "USER: Go on."


SCRIPTS = {
    "zh": ("今天天气很好。我们去公园散步吧！你觉得怎么样？", 3),
    "ja": ("今日は天気がいいです。散歩に行きましょう。", 2),
    "hi": ("मैं घर जा रहा हूँ। तुम कब आओगे?", 2),
    "ar": ("هل أنت بخير؟ نعم، أنا بخير.", 2),
    "ru": ("Привет. Как дела?", 2),
    "en": ("Dr. Smith uses v1.2 of src/main.py. See https://a.b/c.d?e=f for more.", 2),
}


@pytest.mark.parametrize("language", SCRIPTS)
def test_sentences_are_told_apart_in_any_script(language: str) -> None:
    """Also by the rules for English, which are the default."""
    text, count = SCRIPTS[language]
    for rules in ("en", language):
        summarizer = ExtractiveSummarizer(language=rules)
        lines = summarizer.summarize(SummaryRequest(messages=[user(text)])).splitlines()
        assert len(lines) == count
        assert [line.removeprefix("USER: ") in text for line in lines] == [True] * count


def test_words_without_blanks_between_are_compared_too() -> None:
    """The sentence on what others talk of is taken, though its words are never set apart."""
    texts = [
        "我喜欢猫和狗。",
        "京都旅行很贵。",
        "明天可能下雨。",
        "六月去京都旅行的人很多很多很多很多很多很多。",
        "他们也许会来。",
    ]
    request = SummaryRequest(messages=[*map(assistant, texts), user("好的。")], max_tokens=20)
    lines = ExtractiveSummarizer().summarize(request).splitlines()
    assert lines == ["ASSISTANT: 京都旅行很贵。", "USER: 好的。"]


TEXTS = st.text(st.sampled_from("ab. \n漢。?!🔥"), max_size=60)
MESSAGES = st.lists(st.builds(user, TEXTS) | st.builds(assistant, TEXTS), max_size=12)


@pytest.mark.parametrize("counter", [EstimateCounter(), CharCounter(4), WordCounter(), counter_for("gpt-4o")])
@given(messages=MESSAGES, existing=st.none() | TEXTS, limit=st.integers(0, 60))
def test_a_summary_is_within_its_limit(
    counter: Any, messages: list[Any], existing: str | None, limit: int
) -> None:
    """Counted as one text; and whatever stands in it was said, or is a cut of it."""
    request = SummaryRequest(messages=messages, existing=existing, max_tokens=limit)
    text = ExtractiveSummarizer(counter=counter).summarize(request)
    assert not text or counter.count_text(text) <= limit
    whole = " ".join("\n".join([existing or "", *(m["content"] for m in messages)]).split())
    for line in text.splitlines():
        said = line.partition(": ")[2] or line
        assert "[text cut by trimtab]" in line or said in whole


def test_a_request_of_which_nothing_fits_is_left_out() -> None:
    """Not even the marker of a cut; the rest of the room is still used."""
    assert picked(assistant("Noted."), user("please " * 50), max_tokens=3) == ["ASSISTANT: Noted."]


class Steep:
    """A counter for which two texts cost more together than apart."""

    def count_text(self, text: str) -> int:
        """Square the number of lines."""
        return len(text.splitlines()) ** 2


def test_what_is_counted_together_decides() -> None:
    """The last that were taken are given up, the request never before them."""
    request = SummaryRequest(messages=TALK, max_tokens=9)
    lines = ExtractiveSummarizer(counter=Steep()).summarize(request).splitlines()
    assert len(lines) == 3
    assert lines[-2:] == REQUEST_LINES


def test_it_names_its_rules() -> None:
    """In reports and where it is printed."""
    summarizer = ExtractiveSummarizer(language="de")
    assert (repr(summarizer), summarizer.name) == ("ExtractiveSummarizer(language='de')", "extractive")


def test_without_a_limit_its_own_holds() -> None:
    """500 tokens, if nothing else is said."""
    talk = [assistant(f"Sentence number {n} of many.") for n in range(500)]
    for summarizer, limit in ((ExtractiveSummarizer(), 500), (ExtractiveSummarizer(max_tokens=90), 90)):
        tokens = EstimateCounter().count_text(summarizer.summarize(SummaryRequest(messages=talk)))
        assert 0.7 * limit <= tokens <= limit  # sizes of single lines are rounded up


@pytest.mark.parametrize(
    "messages",
    [[], [user("")], [user("?! …")], [call("c")], [user([{"type": "image_url", "image_url": {"url": "x"}}])]],
)
def test_where_nothing_is_said_the_summary_is_empty(messages: list[Any]) -> None:
    """And so it is not used."""
    assert run_summarizer(ExtractiveSummarizer(), SummaryRequest(messages=messages)) == ""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"counter": len}, "count_text"),
        ({"counter": object()}, "count_text"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": 1.5}, "max_tokens"),
    ],
)
def test_what_cannot_work_is_refused_when_it_is_made(options: dict[str, Any], message: str) -> None:
    """Not when the first summary is needed."""
    with pytest.raises(ConfigurationError, match=message):
        ExtractiveSummarizer(**options)


def test_a_summary_does_not_hang_on_the_order_of_sets() -> None:
    """Interpreters with other hash seeds write the same."""
    code = (
        f"import sys; sys.path.insert(0, {str(PACKAGE.parent)!r})\n"
        "from trimtab.summaries import ExtractiveSummarizer, SummaryRequest\n"
        "talk = [{'role': 'assistant', 'content': f'Red {n % 7} and blue {n % 5} and {n % 3} more.'}"
        " for n in range(200)]\n"
        "print(ExtractiveSummarizer().summarize(SummaryRequest(messages=talk)))"
    )
    written = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(written) == 1
