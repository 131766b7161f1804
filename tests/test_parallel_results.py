"""Of results that share a message each is cleared, cut, kept and told for itself (SPEC C7)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.builders import Message, assistant, result, user, words
from tests.chat_in_forms import said_in
from trimtab import Cascade, ClearToolResults, Context, SlidingWindow, TruncateText, fit, validate
from trimtab.formats import get_format
from trimtab.report import Report
from trimtab.strategies import ClampResults, Edit, EvictionRequest, EvictionResult
from trimtab.testing import WordCounter

FORMS = ("anthropic", "gemini", "bedrock")
WHOLE = words(40)
CLEARED = "x"
TOOLS = ("look", "draw", "run")


def round_of(tools: tuple[str, ...], turn: int = 0) -> list[Message]:
    """Make calls of some tools at once, and their results."""
    ids = [f"{name}{turn}" for name in tools]
    calls = [
        {"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}}
        for id, name in zip(ids, tools, strict=True)
    ]
    return [{"role": "assistant", "content": None, "tool_calls": calls}, *(result(id, WHOLE) for id in ids)]


def talk(form: str, *, rounds: int = 1, ids: bool = True) -> list[Any]:
    """Write a chat in a form: calls of three tools at once, as often as said, and two turns of words."""
    chat = [user("q"), *(one for turn in range(rounds) for one in round_of(TOOLS, turn))]
    said = said_in(form, [*chat, assistant("ok"), user("and?")])
    if not ids:
        for message in said:
            for part in message["parts"]:
                for key in part.keys() & {"functionCall", "functionResponse"}:
                    del part[key]["id"]
    return said


def texts_of(form: str, messages: list[Any]) -> list[list[str]]:
    """List the results of each message that has some."""
    found = [[slot.text for slot in get_format(form).texts(one) if slot.is_result] for one in messages]
    return [texts for texts in found if texts]


def clear(form: str, messages: list[Any], budget: int, **options: Any) -> Any:
    """Fit with results cleared, no more of them than must be."""
    strategy = ClearToolResults(**{"placeholder": CLEARED, "target_ratio": 1.0, **options})
    return fit(messages, budget, counter=WordCounter(format=form), format=form, strategy=strategy)


@pytest.mark.parametrize("form", FORMS)
def test_each_result_of_a_message_has_its_placeholder(form: str) -> None:
    """The others were cleared to nothing, as if the tools had answered nothing."""
    fitted = clear(form, talk(form), 40, keep_results=0)
    assert texts_of(form, fitted.messages) == [[CLEARED] * 3]
    assert not validate(fitted.messages, format=form)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("keep", "cleared"), [(0, 3), (1, 2), (2, 1)])
def test_newest_results_are_counted_and_not_their_messages(form: str, keep: int, cleared: int) -> None:
    """Three results in one message are three."""
    budget = 20 + 40 * keep
    fitted = clear(form, talk(form), budget, keep_results=keep)
    assert texts_of(form, fitted.messages) == [[CLEARED] * cleared + [WHOLE] * keep]


@pytest.mark.parametrize("form", FORMS)
def test_no_more_results_of_a_message_are_cleared_than_must_be(form: str) -> None:
    """Of two rounds of three results the oldest of all is enough, and then the next one of its message."""
    messages = talk(form, rounds=2)
    counted = WordCounter(format=form).count(messages)
    for count in range(6):
        fitted = clear(form, messages, counted - 39 * count, keep_results=0)
        flat = [text for texts in texts_of(form, fitted.messages) for text in texts]
        assert flat == [CLEARED] * count + [WHOLE] * (6 - count)


@pytest.mark.parametrize(("form", "ids"), [*((form, True) for form in FORMS), ("gemini", False)])
@pytest.mark.parametrize("spared", TOOLS)
def test_tools_are_left_alone_by_the_name_of_each_result(form: str, ids: bool, spared: str) -> None:
    """Once the name of the last result was that of all."""
    fitted = clear(form, talk(form, ids=ids), 60, keep_results=0, exclude_tools=(spared,))
    assert texts_of(form, fitted.messages) == [[WHOLE if name == spared else CLEARED for name in TOOLS]]


@pytest.mark.parametrize("form", FORMS)
def test_each_result_has_a_row_in_that_of_its_message(form: str) -> None:
    """With the tool that gave it, and what became of it; data brings the rows back."""
    fitted = clear(form, talk(form), 60, keep_results=1)
    row = fitted.report.messages[2]
    assert (row.fate, row.reason) == ("changed", "over_limit")
    told = [(one.call_id, one.tool_name, one.fate) for one in row.results]
    assert told == [("look0", "look", "changed"), ("draw0", "draw", "changed"), ("run0", "run", "kept")]
    assert [len(one.results) for one in fitted.report.messages] == [0, 0, 3, 0, 0]
    assert Report.from_dict(json.loads(json.dumps(fitted.report.to_dict()))) == fitted.report


def test_a_result_that_is_a_message_has_the_row_of_its_message() -> None:
    """There is nothing to add to it."""
    messages = [user("q"), *round_of(TOOLS), user("and?")]
    fitted = clear("openai_chat", messages, 60, keep_results=1)
    assert [row.fate for row in fitted.report.messages] == [
        "kept",
        "kept",
        "changed",
        "changed",
        "kept",
        "kept",
    ]
    assert not any(row.results for row in fitted.report.messages)


@pytest.mark.parametrize("form", FORMS)
def test_results_that_leave_are_told_as_gone(form: str) -> None:
    """With their message, whose row says why."""
    messages = talk(form, rounds=2)
    counter = WordCounter(format=form)
    fitted = fit(messages, 150, counter=counter, format=form, strategy=SlidingWindow())
    fates = [[one.fate for one in row.results] for row in fitted.report.messages if row.results]
    assert fates == [["evicted"] * 3, ["kept"] * 3]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("placeholder", ["", " ", CLEARED])
def test_failed_results_stay_failed_and_valid_when_cleared(form: str, placeholder: str) -> None:
    """Anthropic refuses an error without content, Bedrock too, and neither takes blank text."""
    messages = talk(form)
    for part in messages[2]["content"] if form != "gemini" else ():
        if form == "anthropic":
            part["is_error"] = True
        else:
            part["toolResult"]["status"] = "error"
    assert not validate(messages, format=form)
    fitted = clear(form, messages, 30, keep_results=0, placeholder=placeholder)
    assert not validate(fitted.messages, format=form)
    assert WHOLE not in json.dumps(fitted.messages)
    if form == "anthropic":
        assert [part["is_error"] for part in fitted.messages[2]["content"]] == [True] * 3
    if form == "bedrock":
        assert [part["toolResult"]["status"] for part in fitted.messages[2]["content"]] == ["error"] * 3


@pytest.mark.parametrize("form", FORMS)
def test_words_of_the_user_beside_results_do_not_keep_these_from_being_cleared(form: str) -> None:
    """What the user says is pinned, and not what stands beside it."""
    messages = talk(form)[:3]
    key = "parts" if form == "gemini" else "content"
    messages[2][key].append({"text": "and?"} if form != "anthropic" else {"type": "text", "text": "and?"})
    fitted = clear(form, messages, 60, keep_results=1)
    assert texts_of(form, fitted.messages) == [[CLEARED, CLEARED, WHOLE]]
    said = fitted.messages[2][key][-1]["text"]
    assert said == "and?"
    pinned = fit(
        messages,
        200,
        counter=WordCounter(format=form),
        format=form,
        pin=[2],
        strategy=ClearToolResults(keep_results=0, placeholder=CLEARED),
    )
    assert pinned.messages[2] is messages[2]


@pytest.mark.parametrize("form", FORMS)
def test_in_a_context_and_behind_a_clamp_too(form: str) -> None:
    """A result that was clamped before is cleared with the others, and each is marked."""
    counter = WordCounter(format=form)
    strategy = Cascade(
        ClampResults(max_tokens=20), ClearToolResults(keep_results=2, placeholder=CLEARED, target_ratio=1.0)
    )
    context = Context(65, counter=counter, format=form).add(
        "history", talk(form, rounds=2), strategy=strategy
    )
    first, second = texts_of(form, context.fit().messages)
    assert first == [CLEARED] * 3
    assert [counter.count_text(text) for text in second] == [1, 20, 20]
    assert all("[text cut by trimtab" in text for text in second[1:])


@pytest.mark.parametrize("form", FORMS)
def test_the_cut_goes_by_results_in_front_of_a_window_too(form: str) -> None:
    """What was cleared stays so as the chat grows, and the cut goes forward only."""
    counter = WordCounter(format=form)
    strategy = Cascade(ClearToolResults(keep_results=4, placeholder=CLEARED), SlidingWindow(), TruncateText())
    whole = talk(form, rounds=40)
    seen, cut = set[tuple[int, int]](), 0
    for count in range(1, 40):
        given = whole[: 1 + 2 * count]
        fitted = fit(given, 1_000, counter=counter, format=form, strategy=strategy)
        cleared = set[tuple[int, int]]()
        for position, message in zip(fitted.positions, fitted.messages, strict=True):
            for at, text in enumerate((texts_of(form, [message]) or [[]])[0]):
                if text == CLEARED:
                    assert position is not None
                    cleared.add((position, at))
        there = {position for position in fitted.positions if position is not None}
        assert {one for one in seen if one[0] in there} <= cleared
        assert min(there - {0}) >= cut
        seen, cut = seen | cleared, min(there - {0})
    assert seen
    assert cut > 3


def test_very_many_results_of_one_message_are_cleared_in_bounded_time() -> None:
    """Each costs a count of its message; of more than 64 some are cleared together."""
    asked: list[int] = []

    class Counting(WordCounter):
        def count_message(self, message: Any) -> int:
            asked.append(1)
            return super().count_message(message)

    tools = tuple(f"tool{at}" for at in range(500))
    messages = said_in("anthropic", [user("q"), *round_of(tools), assistant("ok"), user("and?")])
    strategy = ClearToolResults(keep_results=0, placeholder=CLEARED, target_ratio=1.0)
    fitted = fit(
        messages, 15_000, counter=Counting(format="anthropic"), format="anthropic", strategy=strategy
    )
    cleared = [text == CLEARED for text in texts_of("anthropic", fitted.messages)[0]]
    assert cleared == sorted(cleared, reverse=True)
    assert 100 < sum(cleared) < 300
    assert len(asked) < 100


class CutFirst:
    """Cuts the first text of a result to nothing, and the second to a word."""

    name = "cut_first"

    def evict(self, request: EvictionRequest, /) -> EvictionResult:
        """Keep all, and cut two texts."""
        slots = [slot for slot in request.texts(2) if slot.is_result]
        texts = {slots[0].path: "", slots[1].path: "short"}
        return EvictionResult(kept=request.units, edits=[Edit(index=2, texts=texts)], fits=False)


@pytest.mark.parametrize("form", ["openai_chat", "openai_responses", "anthropic", "bedrock"])
def test_a_text_that_leaves_a_result_moves_no_other_ones_place(form: str) -> None:
    """A step behind the one that emptied it finds the rest where it is in the caller's message."""
    parts: list[Any] = [{"type": "text", "text": words(30)} for _ in range(3)]
    chat = [user("q"), round_of(("look",))[0], result("look0", parts), assistant("ok"), user("and?")]
    if form == "openai_responses":
        told = [{"type": "input_text", "text": part["text"]} for part in parts]
        chat[1:3] = [
            {"type": "function_call", "call_id": "look0", "name": "look", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "look0", "output": told},
        ]
    elif form == "anthropic":
        chat = said_in(form, chat)
        chat[2]["content"][0]["content"] = parts
    elif form == "bedrock":
        chat = said_in(form, chat)
        chat[2]["content"][0]["toolResult"]["content"] = [{"text": part["text"]} for part in parts]
    assert not validate(chat, format=form)
    strategy = Cascade(CutFirst(), ClampResults(max_tokens=20))
    fitted = fit(chat, 30, counter=WordCounter(format=form), format=form, strategy=strategy)
    texts = texts_of(form, fitted.messages)[0]
    assert texts[0] == "short"
    assert [len(text.split()) for text in texts] == [1, 19]
    assert fitted.report.tokens_after == WordCounter(format=form).count(fitted.messages)
