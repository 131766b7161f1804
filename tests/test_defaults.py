"""The default keeps what an agent did: one large result costs a quarter of the room (SPEC C9)."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from tests.builders import Message, assistant, call, result, system, user, words
from tests.test_near_cut import FORMS, in_form, outcome, written
from tests.test_near_cut import words as words_of
from trimtab import (
    Cascade,
    ClampResults,
    ConfigurationError,
    Context,
    SlidingWindow,
    TruncateText,
    create_strategy,
    fit,
    validate,
)
from trimtab.counting import counter_from_text
from trimtab.strategies import CUT_MARKER
from trimtab.testing import WordCounter, group_all

WORDS = WordCounter()
ROOM = 400
LARGE = 240
"""More than half of the room."""


def steps(*sizes: int, first: str = "t") -> list[Message]:
    """Write calls with results of so many words."""
    each = ((call(f"{first}{at}"), result(f"{first}{at}", words(size))) for at, size in enumerate(sizes))
    return [message for step in each for message in step]


def sizes(messages: list[Message]) -> list[int]:
    """Count the words of each message."""
    return [WORDS.count_text(message.get("content") or "") for message in messages]


# -- the agents of the first trial


def reader() -> list[Message]:
    """Twenty turns in which a file is read, one of them of 5,400 tokens."""
    messages = [system("You are an agent.")]
    for at in range(20):
        text = f"def f{at}():\n    return {at}\n" * (600 if at == 17 else 4)
        messages += [
            user(f"look at file {at}"),
            call(f"c{at}"),
            result(f"c{at}", text),
            assistant(f"File {at} defines f{at}."),
        ]
    return [*messages, user("What does file 3 define?")]


@pytest.mark.parametrize("options", [{}, {"steady": True}, {"strategy": "agent"}], ids=str)
def test_one_large_old_result_costs_none_of_the_memory(options: dict[str, Any]) -> None:
    """12 of 82 messages and a tenth of the room were all that was kept."""
    messages = reader()
    fitted = fit(messages, 5_000, model="gpt-4o", **options)
    assert len(fitted.messages) >= 70
    assert fitted.report.tokens_after <= 5_000
    assert validate(fitted.messages) == []


def calls_of_an_agent(seed: int) -> Iterator[list[Message]]:
    """Give what is sent at 25 steps with one to three parallel results of up to 25,000 tokens."""
    chance = Random(seed)
    vocabulary = [f"w{at}" for at in range(4_000)]
    messages: list[Message] = [user("Find the bug and mend it.")]
    for step in range(25):
        ids = [f"t{step}_{at}" for at in range(chance.randint(1, 3))]
        calls = [call(one)["tool_calls"][0] for one in ids]
        messages.append({"role": "assistant", "content": f"Step {step}: reading.", "tool_calls": calls})
        lengths = [int(500 * 50 ** chance.random()) // 3 for _ in ids]
        for one, length in zip(ids, lengths, strict=True):
            messages.append(result(one, " ".join(chance.choices(vocabulary, k=length))))
        yield [*messages]


MODELS = {
    "openai_chat": "gpt-4o",
    "openai_responses": "gpt-4o",
    "anthropic": "claude-sonnet-4-5",
    "bedrock": "claude-sonnet-4-5",
    "gemini": "gemini-2.5-pro",
}


@pytest.mark.few(5)
@pytest.mark.parametrize("seed", range(3, 9))
@pytest.mark.parametrize("form", FORMS)
def test_an_agent_with_large_parallel_results_knows_what_it_did(form: str, seed: int) -> None:
    """3 to 5 of 51 messages were all that "agent" kept, in 29 % of the room."""
    for step, chat in enumerate(calls_of_an_agent(seed)):
        messages = in_form(chat, form)
        fitted = fit(messages, 20_000, strategy="agent", model=MODELS[form], format=form)
        assert validate(fitted.messages, format=form) == []
        if step >= 20:
            assert len(fitted.messages) >= 14
        kept_all = len(fitted.messages) == len(messages)
        assert kept_all or fitted.report.tokens_after >= 0.7 * 20_000, (len(messages), fitted)


# -- what is cut, and what is not


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("options", [{}, {"steady": True}], ids=str)
def test_a_result_above_half_of_the_room_comes_to_a_quarter(form: str, options: dict[str, Any]) -> None:
    """In every form; a result of half of the room stays whole."""
    for size, kept in ((LARGE, ROOM // 4), (ROOM // 2, ROOM // 2)):
        chat = [user(), *steps(80, size, 80, 60), user()]
        messages = in_form(chat, form)
        fitted = fit(messages, ROOM, counter=words_of(form), format=form, **options)
        texts = [text for message in fitted.messages for text in all_texts(message)]
        assert max(map(WORDS.count_text, texts)) <= kept
        assert any(CUT_MARKER[:-1] in text for text in texts) == (size == LARGE)


def all_texts(value: Any) -> Iterator[str]:
    """Walk the texts of a message that hold words."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from all_texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from all_texts(one)


def test_the_newest_result_is_cut_last_and_no_more_than_it_must() -> None:
    """It was just asked for: what is older leaves for it, or is cut."""
    messages = [user("go"), *steps(LARGE, 30, LARGE)]
    fitted = fit(messages, ROOM, counter=WORDS)
    assert sizes(fitted.messages)[-1] == LARGE
    assert sizes(fitted.messages)[2] == ROOM // 4
    huge = fit([user("go"), *steps(60, 5 * ROOM)], ROOM, counter=WORDS)
    assert huge.report.tokens_after == ROOM
    assert sizes(huge.messages)[-1] > ROOM * 0.9


def test_a_document_that_fits_is_never_cut_for_older_small_talk() -> None:
    """A user pasted it; nine tenths of the room are its own."""
    talk = [one for at in range(9) for one in (user(f"hello {at}"), assistant("hi"))]
    document = user(words(9 * ROOM // 10))
    fitted = fit([*talk, document, assistant("I read it."), user("And?")], ROOM, counter=WORDS)
    assert document in fitted.messages
    assert fitted.report.changed_message_count == 0


def test_a_text_that_no_request_could_hold_comes_to_a_quarter() -> None:
    """It would leave with all that is older, whatever is asked later."""
    talk = [one for at in range(5) for one in (user(f"hello {at}"), assistant("hi"))]
    fitted = fit([*talk, user(words(2 * ROOM)), assistant("Too long."), user("And?")], ROOM, counter=WORDS)
    assert len(fitted.messages) == len(talk) + 3
    assert sizes(fitted.messages)[len(talk)] == ROOM // 4


def test_in_a_small_room_nothing_is_cut_to_next_to_nothing() -> None:
    """A quarter of 200 tokens would be two ends of a few words, and a marker."""
    messages = [user("go"), *steps(30, 150, 60)]
    window = fit(messages, 200, counter=WORDS, strategy="sliding_window")
    assert fit(messages, 200, counter=WORDS).messages == window.messages


def test_what_fits_is_as_it_was() -> None:
    """However large one result is."""
    messages = [user("go"), *steps(LARGE, 3)]
    assert fit(messages, ROOM, counter=WORDS).messages == messages


@pytest.mark.parametrize("steady", [False, True])
def test_a_result_is_cut_alike_from_call_to_call(steady: bool) -> None:
    """A prompt cache finds it as it was, once it is no longer the newest."""
    messages = [user("go"), *steps(40, 3 * ROOM, 40, 60, 40, 10, 40)]
    seen = set()
    for end in range(7, len(messages) + 1, 2):
        fitted = fit(messages[:end], ROOM, counter=WORDS, steady=steady)
        seen |= {message["content"] for message in fitted.messages if message.get("tool_call_id") == "t1"}
    assert len(seen) == 1


def test_a_block_goes_by_its_own_room() -> None:
    """Half of what the block may have, whatever the others hold."""
    context = Context(1_000, counter=WORDS)
    context.add("history", [user("go"), *steps(20, LARGE, 40, 120)], max_tokens=ROOM)
    assert sizes(context.fit().messages)[4] == ROOM // 4


# -- in strides of one's own


def test_a_number_is_the_share_that_a_cut_leaves() -> None:
    """As the window written out; True is a half."""
    chat = [user(words(9)) for _ in range(200)]
    for steady, ratio in ((True, 0.5), (0.5, 0.5), (0.3, 0.3), (0.75, 0.75)):
        large = ClampResults(max_ratio=0.25, above_ratio=0.5, texts="too_large", keep_newest=True)
        window = Cascade(large, SlidingWindow(target_ratio=ratio), TruncateText())
        wanted = fit(chat, ROOM, counter=WORDS, strategy=window).messages
        assert fit(chat, ROOM, counter=WORDS, steady=steady).messages == wanted


def test_a_deeper_cut_moves_less_often() -> None:
    """And shows less: of 120 calls."""
    chat = [user(words(9)) for _ in range(160)]
    moves, shown = [], []
    for steady in (0.75, 0.5, 0.3):
        views = [fit(chat[:end], ROOM, counter=WORDS, steady=steady).positions for end in range(41, 161)]
        moves.append(len({view[0] for view in views}))
        shown.append(sum(map(len, views)))
    assert moves == sorted(moves, reverse=True)
    assert shown == sorted(shown, reverse=True)
    assert moves[0] > moves[2]


@pytest.mark.parametrize("steady", [0, 1, 1.0, -0.5, 2, float("nan"), "0.3", None])
def test_a_share_that_is_none_is_refused(steady: Any) -> None:
    """Also a whole 1, which is no flag."""
    with pytest.raises(ConfigurationError, match="steady must be True, False, or the share of the room"):
        fit([user()], ROOM, counter=WORDS, steady=steady)


def test_steady_and_a_strategy_are_one_too_many() -> None:
    """The error says what to write in the strategy."""
    with pytest.raises(ConfigurationError, match=r"SlidingWindow\(target_ratio=0\.3\)"):
        fit([user()], ROOM, counter=WORDS, steady=0.3, strategy="agent")


# -- read lazily


def talk_of(chance: Random) -> str:
    """Write turns, a few of them with results or texts that are far too large."""
    line = []
    for at in range(chance.randint(3, 14)):
        line.append(f"u{chance.choice([1, 20, 50, 400])}")
        for _ in range(chance.randint(0, 2)):
            names = ["A", "B"][: chance.randint(1, 2)] if at % 2 else ["C"]
            line.append("c" + ",".join(names))
            line += [f"r{name}{chance.choice([1, 9, 70, 250, 700])}" for name in names]
        line.append(f"a{chance.choice([1, 20, 40, 300])}")
    return " ".join(line)


@pytest.mark.few(2)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("steady", [False, True])
def test_it_keeps_what_it_keeps_where_everything_is_read(form: str, steady: bool) -> None:
    """Large results are cut in the pass that counts from the newest back."""
    for seed in range(60):
        chance = Random(seed)
        messages, counter = written(talk_of(chance), form), words_of(form)
        total = counter.count(messages)
        for limit in sorted({chance.randint(260, max(261, total)) for _ in range(6)}):
            for pins in ((), (1,)):
                options = {"counter": counter, "format": form, "steady": steady, "pin": pins}
                near = outcome(messages, limit, **options)
                with group_all():
                    assert near == outcome(messages, limit, **options), (seed, limit, pins)


@pytest.mark.parametrize("steady", [False, True])
def test_what_is_not_reached_is_neither_read_nor_counted(steady: bool) -> None:
    """Also where each result is too large: what they come to at least fills the room."""
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return WORDS.count_text(text)

    few = []
    for turns in (100, 1_000):
        counted.clear()
        logs = [result(f"t{at}", f"log {at}: {words(LARGE)}") for at in range(turns)]
        messages = [user("go"), *(one for log in logs for one in (call(log["tool_call_id"]), log))]
        fitted = fit(messages, ROOM, counter=counter_from_text(count), steady=steady)
        assert len(fitted.messages) > 3
        few.append(len(counted))
    assert few[1] <= few[0] + 5


# -- as a strategy of one's own


def test_the_default_is_a_cascade_that_can_be_written() -> None:
    """As the guide has it, in code and as data."""
    large = ClampResults(max_ratio=0.25, above_ratio=0.5, texts="too_large", keep_newest=True)
    written_out = Cascade(large, SlidingWindow(), TruncateText())
    messages = reader()
    named = fit(messages, 5_000, model="gpt-4o", strategy=written_out)
    assert named.messages == fit(messages, 5_000, model="gpt-4o").messages
    assert create_strategy(written_out.to_dict()) == written_out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"max_ratio": 0.5, "above_ratio": 0.25}, "max_ratio of at most 0.25"),
        ({"max_tokens": 5, "above_ratio": 0.25}, "max_ratio of at most 0.25"),
        ({"max_ratio": 0.5, "above_ratio": 2}, "above_ratio must be a number above 0 and at most 1"),
        ({"max_ratio": 0.5, "texts": "large"}, "texts must be True, False or 'too_large'"),
        ({"max_ratio": 0.5, "texts": 1}, "texts must be True, False or 'too_large'"),
        ({"max_ratio": 0.5, "keep_newest": "yes"}, "keep_newest must be True or False"),
    ],
    ids=str,
)
def test_an_option_that_is_none_is_refused(options: dict[str, Any], said: str) -> None:
    """With what may be written."""
    with pytest.raises(ConfigurationError, match=said):
        ClampResults(**options)
