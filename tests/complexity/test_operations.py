"""Operations grow with the input and not with its square, whatever arrives.

Operations are lines run inside trimtab plus bytes given to the tokenizer, counted on two sizes.
The full size of each promise is then fitted once, uncounted, for its answer.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest

import trimtab
from tests.complexity.counting_machine import assert_linear, exact_counter, operations_of
from tests.complexity.shapes import SHAPES, TEXTS, Message, calls, result, said, user, valid
from tests.own_strategies import FromNewest, HoldsOld, Unchanged
from trimtab import (
    Cascade,
    ClearToolResults,
    Drop,
    DropNewest,
    PriorityBased,
    SlidingWindow,
    Strict,
    TruncateText,
    create_strategy,
    fit,
    validate,
)
from trimtab.conversation import repair
from trimtab.counting import EstimateCounter, TextCounter
from trimtab.formats import formats, get_format
from trimtab.results import read_result
from trimtab.strategies import ClampResults, Relevant
from trimtab.testing import WordCounter

STRATEGIES: dict[str, Any] = {
    "default": None,
    "strides": SlidingWindow(target_ratio=0.5),
    "turns": SlidingWindow(keep_turns=True),
    "first_user": SlidingWindow(keep_first_user=True),
    "protected": SlidingWindow(protect_roles=("user", "system")),
    "min_messages": SlidingWindow(min_messages=10),
    "priority": PriorityBased(),
    "relevant": Relevant(),
    "relevant, gaps": Relevant("question 3 found", gap="[… {count} messages left out …]"),
    "mixture": PriorityBased(score={"relevance": 1, "role": 0.3}),
    "cleared": ClearToolResults(),
    "shortened": TruncateText(),
    "newest": DropNewest(),
    "dropped": Drop(),
    "strict": Strict(),
    "clamped": ClampResults(max_ratio=0.25),
    "texts_clamped": ClampResults(max_tokens=3, texts=True),
    "agent": create_strategy("agent"),
    "cascade": Cascade(ClearToolResults(clear_at_least_tokens=100), SlidingWindow(), TruncateText()),
}

Call = Callable[[TextCounter], Any]


def _fit_or_error(messages: Any, budget: int, counter: Any, **options: Any) -> list[Any]:
    """Return what is kept; nothing if it cannot fit, which is an answer too."""
    try:
        return list(fit(messages, budget, counter=counter, **options).messages)
    except trimtab.BudgetExceededError:
        return []


# -- long histories


@pytest.mark.few(11)
@pytest.mark.parametrize("tokens_each", [1, 5])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_a_history_of_any_shape_is_fitted_in_linear_time(
    shape: Callable[[int], list[Message]], tokens_each: int
) -> None:
    """Also where the budget grows with the history, so that most of it is kept.

    It begins with a room in which a large text is cut: below 256 tokens none is.
    """

    def case(count: int) -> Call:
        messages = shape(count)
        return lambda counter: fit(messages, tokens_each * count, counter=counter)

    assert_linear(case, (300, 1_200))


def _talk_in(form: str, count: int) -> list[Message]:
    """Make turns of four messages: a question, a call, its result, an answer."""
    made: list[Message] = []
    for at in range(count // 4):
        if form == "anthropic":
            call = {"type": "tool_use", "id": f"c{at}", "name": "look", "input": {"at": at}}
            found = {"type": "tool_result", "tool_use_id": f"c{at}", "content": f"found {at}"}
            made += [user(f"question {at}"), {"role": "assistant", "content": [call]}]
            made += [{"role": "user", "content": [found]}, said(f"answer {at}")]
        elif form == "gemini":
            for role, part in (
                ("user", {"text": f"question {at}"}),
                ("model", {"functionCall": {"name": "look", "args": {"at": at}}}),
                ("user", {"functionResponse": {"name": "look", "response": {"found": at}}}),
                ("model", {"text": f"answer {at}"}),
            ):
                made.append({"role": role, "parts": [part]})
        elif form == "bedrock":
            for role, block in (
                ("user", {"text": f"question {at}"}),
                ("assistant", {"toolUse": {"toolUseId": f"c{at}", "name": "look", "input": {"at": at}}}),
                ("user", {"toolResult": {"toolUseId": f"c{at}", "content": [{"json": {"found": at}}]}}),
                ("assistant", {"text": f"answer {at}"}),
            ):
                made.append({"role": role, "content": [block]})
        elif form == "openai_responses":
            call = {"type": "function_call", "call_id": f"c{at}", "name": "look", "arguments": "{}"}
            found = {"type": "function_call_output", "call_id": f"c{at}", "output": f"found {at}"}
            made += [user(f"question {at}"), call, found, said(f"answer {at}")]
        else:
            made += [user(f"question {at}"), calls(f"c{at}"), result(f"c{at}"), said(f"answer {at}")]
    return made


@pytest.mark.parametrize(
    ("form", "options"),
    [
        ("gemini", {}),
        ("bedrock", {}),
        ("openai_chat", {"pin": [4]}),
        ("openai_chat", {"pending_calls": ["c-1"]}),
        ("openai_chat", {"strategy": Cascade(ClearToolResults(), SlidingWindow(), TruncateText())}),
        ("openai_chat", {"strategy": "agent"}),
    ],
    ids=[
        "an order",
        "views of messages",
        "a pin",
        "a pending call",
        "results are cleared",
        "and clamped before",
    ],
)
def test_what_is_too_old_to_stay_is_not_read(form: str, options: dict[str, Any]) -> None:
    """Ten times as many messages into the same budget: the newest turns are read, and those of pins."""

    def lines(count: int) -> int:
        messages = _talk_in(form, count)
        if "pending_calls" in options:
            messages[-1] = calls("c-1")
        return operations_of(
            lambda counter: fit(messages, 400, counter=counter, format=form, **options)
        ).lines

    assert lines(10_000) <= 1.2 * lines(1_000)


class Promising(FromNewest):
    """The same with a promise."""

    reads = "newest"


def _cleared(**options: Any) -> Cascade:
    return Cascade(ClearToolResults(**options), SlidingWindow(target_ratio=0.7), TruncateText())


LANES: dict[str, tuple[dict[str, Any], float]] = {
    "derived": ({"strategy": Unchanged()}, 1.1),
    "own": ({"strategy": FromNewest()}, 4),
    "own, holds": ({"strategy": HoldsOld()}, 2.5),
    "own, with a promise": ({"strategy": Promising()}, 4),
    "steady": ({"steady": True}, 2.5),
    "first user": ({"strategy": SlidingWindow(keep_first_user=True)}, 1.5),
    "turns": ({"strategy": SlidingWindow(keep_turns=True)}, 1.7),
    "first user, turns, strides": (
        {"strategy": SlidingWindow(keep_first_user=True, keep_turns=True, target_ratio=0.5)},
        3,
    ),
    "min_messages": ({"strategy": SlidingWindow(min_messages=10)}, 1.7),
    "agent": ({"strategy": "agent"}, 8),
    "cleared": ({"strategy": _cleared(keep_results=3)}, 8),
    "cleared, at least": ({"strategy": _cleared(keep_results=3, clear_at_least_tokens=100)}, 8),
    "cleared, some spared": ({"strategy": _cleared(keep_results=3, exclude_tools=["other"])}, 10),
    "cleared for a window that keeps": (
        {
            "strategy": Cascade(
                ClearToolResults(clear_at_least_tokens=50),
                SlidingWindow(keep_first_user=True, keep_turns=True),
            )
        },
        8,
    ),
    "clamped": ({"strategy": Cascade(ClampResults(max_ratio=0.25), SlidingWindow())}, 4),
    "pin": ({"pin": [4]}, 1.7),
    "repair": ({"repair": True}, 4.5),
    "on_trim": ({"on_trim": lambda context: None}, 1.3),
}
"""What is asked, and how many times the lines of a fit by default it may take."""


@pytest.mark.parametrize(("options", "most"), LANES.values(), ids=LANES)
def test_no_lane_grows_with_the_history(options: dict[str, Any], most: float) -> None:
    """Ten times as many messages into the same budget, and beside a fit by default."""
    for count in (1_000, 10_000):
        _lines(count, **options)  # what is imported late is no operation of a fit
    taken, usual = _lines(10_000, **options), _lines(10_000)
    assert taken <= 1.2 * _lines(1_000, **options)
    assert taken <= most * usual, taken / usual


MORE_IN: dict[str, float] = {"openai_responses": 4, "gemini": 5, "anthropic": 3.8, "bedrock": 6.5}
"""How many times the lines of Chat's own lane a lane may take, a look for a compaction apart."""


@pytest.mark.parametrize("form", MORE_IN)
@pytest.mark.parametrize("lane", [name for name in LANES if not name.startswith(("derived", "own"))])
def test_no_lane_of_a_form_grows_with_the_history(form: str, lane: str) -> None:
    """Each is as flat as Chat's, and near it, whatever is asked."""
    options, _ = LANES[lane]

    def lines(form: str, count: int) -> int:
        return _lines_of(_talk_in(form, count), format=form, **options)

    lines(form, 100)  # what is imported late is no operation of a fit
    looks = 1 if form == "anthropic" else 0  # of Responses' it is done without a line
    small = max(lines(form, 1_000), lines(form, 1_400))  # in strides the end of a stride takes more
    large = lines(form, 10_000) - looks * 9_000
    assert large <= 1.25 * small
    assert large <= MORE_IN[form] * lines("openai_chat", 10_000), large / lines("openai_chat", 10_000)


@pytest.mark.parametrize("broken", [[], [-2], [-6, -29]], ids=["whole", "the last call", "two calls"])
@pytest.mark.parametrize("form", formats())
def test_a_repair_reads_no_more_of_a_longer_history(form: str, broken: list[int]) -> None:
    """Also where something is broken in what stays: it is looked for around there, in every wire form."""

    def lines(count: int) -> int:
        messages = _talk_in(form, count)
        for at in broken:
            del messages[at]
        return _lines_of(messages, format=form, repair=True) - _lines_of(messages, format=form)

    lines(100)
    looks = 2 if broken and form == "anthropic" else 0  # for a compaction, in what was mended
    assert lines(10_000) - looks * 9_000 <= 1.2 * lines(1_000)


def test_a_mark_for_the_prompt_cache_is_looked_for_by_one_look_a_message() -> None:
    """Two lines each: one tells what is written in it, and one whether that has parts."""
    window = SlidingWindow(keep_cached=True)
    more = _lines(10_000, strategy=window) - _lines(1_000, strategy=window)
    assert more <= 2.1 * 9_000


def _lines(count: int, **given: Any) -> int:
    """Count the lines of a fit that keeps a few hundred messages."""
    return _lines_of(_talk_in("openai_chat", count), **given)


def _lines_of(messages: list[Message], **given: Any) -> int:
    return operations_of(lambda counter: fit(messages, 2_000, counter=counter, **given)).lines


@pytest.mark.few(11)
@pytest.mark.parametrize("at", [0.1, 0.5, 0.95])
@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES.keys())
def test_what_stands_before_a_compaction_is_fitted_in_linear_time(strategy: Any, at: float) -> None:
    """Claude's: it costs nothing, so that counting back passes no limit there, wherever the compaction is."""

    def case(count: int) -> Call:
        messages = _talk_in("anthropic", count)
        place = int(count * at) // 4 * 4 + 3
        said_last = messages[place]["content"]
        block = {"type": "compaction", "content": "They talked."}
        messages[place] = {"role": "assistant", "content": [block, {"type": "text", "text": said_last}]}
        budget = 4 * (count - place)
        return lambda counter: _fit_or_error(messages, budget, counter, format="anthropic", strategy=strategy)

    assert_linear(case, sizes=(500, 1_000))


@pytest.mark.few(7)
@pytest.mark.parametrize("form", formats())
@pytest.mark.parametrize("part", [0.05, 0.6], ids=["a little stays", "most stays"])
@pytest.mark.parametrize(
    ("strategy", "most"), [(PriorityBased(), 65), (Relevant(), 120)], ids=["priority", "relevant"]
)
def test_to_choose_among_all_messages_takes_a_few_lines_for_each(
    strategy: Any, most: int, part: float, form: str
) -> None:
    """In every wire form, beyond the lines in which all of them are read and counted."""
    messages = _talk_in(form, 2_000)
    whole = fit(messages, 10**6, counter=exact_counter(), format=form).report.tokens_after
    read = operations_of(lambda counter: fit(messages, 10**6, counter=counter, format=form)).lines
    ours = operations_of(
        lambda counter: fit(messages, int(whole * part), counter=counter, format=form, strategy=strategy)
    ).lines
    assert ours - read <= most * len(messages), (ours - read) / len(messages)


@pytest.mark.few(23)
@pytest.mark.parametrize(
    "shape", ["late_results", "interleaved", "heavy_opener", "unanswered", "long_results"]
)
@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES.keys())
def test_every_strategy_takes_linear_time(strategy: Any, shape: str) -> None:
    """On histories that have to be grouped, and on one whose turn is long."""

    def case(count: int) -> Call:
        messages = SHAPES[shape](count)
        return lambda counter: fit(messages, 5 * count, counter=counter, strategy=strategy)

    assert_linear(case, (150, 600))


@pytest.mark.few(1)
@pytest.mark.parametrize("shape", ["valid", "interleaved", "reused_ids", "unanswered"])
def test_100_000_messages_give_an_answer(shape: str) -> None:
    """Within the budget, and not empty."""
    messages = SHAPES[shape](100_000)
    counter = exact_counter()
    kept = fit(messages, 20_000, counter=counter).messages
    assert kept
    assert counter.count(kept) <= 20_000


@pytest.mark.few(2)
@pytest.mark.parametrize("shape", ["parallel", "parallel_reversed", "parallel_open", "old_parallel"])
@pytest.mark.parametrize("budget", [20_000, 1_000_000])
def test_10_000_parallel_calls_give_an_answer(shape: str, budget: int) -> None:
    """Kept whole, levelled or left out as one; never in part."""
    messages = SHAPES[shape](10_000)
    kept = _fit_or_error(messages, budget, exact_counter())
    results = sum(message["role"] == "tool" for message in kept)
    assert results in (0, sum(message["role"] == "tool" for message in messages))
    assert (len(kept) == len(messages)) == (budget == 1_000_000)


@pytest.mark.long
def test_the_results_of_10_000_parallel_calls_are_levelled() -> None:
    """All of them stay, the longest shortened to one length."""
    messages = SHAPES["long_results"](10_000)
    room = exact_counter().count(messages) * 9 // 10
    fitted = fit(messages, room, counter=exact_counter())
    assert len(fitted.messages) == len(messages)
    assert fitted.report.changed_message_count > 1_000


def test_10_000_calls_answered_twice_stay_one_unit() -> None:
    """Both results of a call leave with it."""
    messages = [*SHAPES["answered_twice"](10_000), said("done"), user("thanks")]
    assert fit(messages, 20_000, counter=exact_counter()).messages[-1] == user("thanks")
    assert len(fit(messages, 20_000, counter=exact_counter()).messages) < 4


def _of_chat(count: int) -> list[Message]:
    parts = [{"type": "text", "text": f"{at} is found " + "and long " * 12} for at in range(count)]
    return [user("go"), calls("a"), {"role": "tool", "tool_call_id": "a", "content": parts}]


def _of_anthropic(count: int) -> list[Message]:
    made = [{"type": "tool_use", "id": f"c{at}", "name": "f", "input": {}} for at in range(count)]
    found = [
        {"type": "tool_result", "tool_use_id": f"c{at}", "content": f"{at} is found " + "and long " * 12}
        for at in range(count)
    ]
    return [user("go"), {"role": "assistant", "content": made}, {"role": "user", "content": found}]


def _of_gemini(count: int) -> list[Message]:
    made = [{"functionCall": {"id": f"c{at}", "name": "f", "args": {}}} for at in range(count)]
    found = [
        {
            "functionResponse": {
                "id": f"c{at}",
                "name": "f",
                "response": {"result": f"{at} is found " + "and long " * 12},
            }
        }
        for at in range(count)
    ]
    contents = [("user", [{"text": "go"}]), ("model", made), ("user", found)]
    return [{"role": role, "parts": parts} for role, parts in contents]


def _of_converse(count: int) -> list[Message]:
    made = [{"toolUse": {"toolUseId": f"c{at}", "name": "f", "input": {}}} for at in range(count)]
    found = [
        {
            "toolResult": {
                "toolUseId": f"c{at}",
                "content": [{"text": f"{at} is found " + "and long " * 12}],
            }
        }
        for at in range(count)
    ]
    contents = [("user", [{"text": "go"}]), ("assistant", made), ("user", found)]
    return [{"role": role, "content": content} for role, content in contents]


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("form", "shape"),
    [
        ("openai_chat", _of_chat),
        ("anthropic", _of_anthropic),
        ("gemini", _of_gemini),
        ("bedrock", _of_converse),
    ],
)
def test_the_texts_of_one_message_are_shortened_in_linear_time(
    form: str, shape: Callable[[int], list[Message]]
) -> None:
    """Also where a thousand results stand in one: none is weighed with all the others."""
    whole = exact_counter().with_format(get_format(form))

    def case(count: int) -> Call:
        messages = shape(count)
        budget = whole.count(messages) - 5 * count
        return lambda counter: fit(messages, budget, counter=counter, format=form, strategy=TruncateText())

    shortened = case(200)(exact_counter())
    assert shortened.report.changed_message_count == 1
    assert_linear(case, (100, 400))


# -- wire forms in which not every message may come first

ORDERED = pytest.mark.parametrize("form", ["anthropic", "gemini", "bedrock"])


def _run_of(form: str, count: int) -> list[Message]:
    """One question, a call and its result over and over, and thanks."""
    format = get_format(form)
    run = [format.message("user", ["go"])]
    for at in range(count // 2):
        if form == "anthropic":
            call: Any = {"type": "tool_use", "id": f"c{at}", "name": "f", "input": {}}
            found: Any = {"type": "tool_result", "tool_use_id": f"c{at}", "content": "it is found"}
        elif form == "bedrock":
            call = {"toolUse": {"toolUseId": f"c{at}", "name": "f", "input": {}}}
            found = {"toolResult": {"toolUseId": f"c{at}", "content": [{"text": "it is found"}]}}
        else:
            call = {"functionCall": {"id": f"c{at}", "name": "f", "args": {}}}
            answer = {"id": f"c{at}", "name": "f", "response": {"result": "it is found"}}
            found = {"functionResponse": answer}
        run += [format.message("assistant", [call]), format.message("user", [found])]
    return [*run, format.message("user", ["thanks"])]


@pytest.mark.few(11)
@ORDERED
@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES.keys())
def test_a_run_that_cannot_lead_is_fitted_in_linear_time(strategy: Any, form: str) -> None:
    """Whatever part of it is kept needs the question in front."""

    def case(count: int) -> Call:
        messages = _run_of(form, count)
        return lambda counter: _fit_or_error(messages, 5 * count, counter, format=form, strategy=strategy)

    assert_linear(case, (200, 800))  # at 100 a fit has nothing to clear yet, and the first step is steep


@ORDERED
def test_a_callback_that_takes_the_question_takes_linear_time(form: str) -> None:
    """Nothing of the run may come first then, and all of it leaves."""

    def case(count: int) -> Call:
        messages = _run_of(form, count)
        return lambda counter: fit(
            messages, 10**9, counter=counter, format=form, on_trim=lambda context: context.remove(0)
        )

    assert_linear(case, (100, 400))
    assert len(case(200)(exact_counter()).messages) == 1


@ORDERED
def test_a_message_of_many_results_is_fitted_in_linear_time(form: str) -> None:
    """They are one unit, which leaves as one."""

    def case(count: int) -> Call:
        shape = _of_anthropic if form == "anthropic" else _of_gemini
        messages = [*shape(count), get_format(form).message("user", ["thanks"])]
        return lambda counter: fit(messages, 50, counter=counter, format=form)

    assert_linear(case, (100, 400))


# -- long texts


def _as_question(text: str) -> list[Message]:
    return [user("hi"), said("ho"), user(text)]


def _as_result(text: str) -> list[Message]:
    return [user("hi"), calls("a"), result("a", text)]


def _as_answer(text: str) -> list[Message]:
    return [user("hi"), said(text)]


def _as_old(text: str) -> list[Message]:
    return [user("hi"), said(text), user("and now?")]


PLACES = {"question": _as_question, "result": _as_result, "answer": _as_answer, "old": _as_old}


@pytest.mark.few(17)
@pytest.mark.parametrize("bytes_a_token", [0, 1_000])
@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES.keys())
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_a_long_text_is_fitted_in_linear_time(
    text: Callable[[int], str], place: Callable[[str], list[Message]], bytes_a_token: int
) -> None:
    """Into a small budget, and into one that grows with the text."""

    def case(size: int) -> Call:
        messages = place(text(size))
        budget = 300 + size // bytes_a_token if bytes_a_token else 300
        return lambda counter: fit(messages, budget, counter=counter)

    assert_linear(case, (62_500, 250_000))  # shorter ones may fit as they are


@pytest.mark.few(3)
@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES.keys())
@pytest.mark.parametrize("text", ["spaces", "one_letter", "random_unicode"])
def test_a_megabyte_of_text_gives_an_answer(text: str, place: Callable[[str], list[Message]]) -> None:
    """The question cannot fit and says so; everything else is cut, and what was said around it stays."""
    messages = place(TEXTS[text](1_000_000))
    if place is _as_question:
        with pytest.raises(trimtab.BudgetExceededError):
            fit(messages, 1_000, counter=exact_counter())
    else:
        kept = fit(messages, 1_000, counter=exact_counter()).messages
        assert kept[0] == user("hi")
        assert exact_counter().count(kept) <= 1_000


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_the_estimate_takes_linear_time(text: Callable[[int], str]) -> None:
    """For one message with text of any script."""

    def case(size: int) -> Call:
        message = user(text(size))
        return lambda _: EstimateCounter().count_message(message)

    assert_linear(case, (62_500, 250_000))  # shorter ones may fit as they are


def _deep(depth: int) -> Any:
    value: Any = "bottom"
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "message",
    [
        calls("a", arguments="[" * 10_000 + "]" * 10_000),
        {**said("hi"), "reasoning_details": _deep(10_000)},
        {"role": "user", "content": [{"type": "novel", "novel": _deep(10_000)}]},
        {"role": "user", "content": _deep(10_000)},
        {**calls("a"), "tool_calls": _deep(10_000)},
    ],
    ids=["arguments", "unknown_key", "unknown_part", "content", "calls"],
)
@pytest.mark.parametrize("budget", [60, 100_000])
def test_deep_json_gives_an_answer_or_a_typed_error(message: Message, budget: int) -> None:
    """Nesting beyond what Python recurses into never ends in a RecursionError."""
    with contextlib.suppress(trimtab.ContextError):
        assert fit([user("hi"), message, user("go on")], budget, counter=exact_counter()).messages
    validate([user("hi"), message])


# -- what surrounds a fit


@pytest.mark.few(7)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_validate_and_repair_take_linear_time(shape: Callable[[int], list[Message]]) -> None:
    """On conversations with every kind of fault."""

    def case(count: int) -> Call:
        messages = shape(count)
        return lambda _: (validate(messages), repair(messages))

    assert_linear(case, (250, 1_000))


@pytest.mark.parametrize("last", [[], [{"role": "user", "content": "x"}]], ids=["none leads", "the last"])
def test_a_tool_loop_without_its_question_is_repaired_in_linear_time(last: list[Message]) -> None:
    """Each call would come first once those before it have left."""

    def case(count: int) -> Call:
        loop: list[Message] = []
        for at in range(count):
            use = {"type": "tool_use", "id": f"t{at}", "name": "f", "input": {}}
            result = {"type": "tool_result", "tool_use_id": f"t{at}", "content": "x"}
            loop += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
        return lambda _: repair([*loop, *last], format="anthropic")

    assert_linear(case, (250, 1_000))


@pytest.mark.parametrize("shape", ["valid", "late_results", "old_parallel", "long_results", "unanswered"])
def test_the_report_takes_linear_time(shape: str) -> None:
    """Its rows, its data and its text."""

    def case(count: int) -> Call:
        messages = SHAPES[shape](count)
        attempt: Any = fit(messages, 10**9, counter=exact_counter())
        try:
            attempt = fit(messages, 5 * count, counter=exact_counter())
        except trimtab.BudgetExceededError as error:
            attempt = error.attempt
        return lambda _: (list(attempt.report.messages), attempt.report.to_dict(), str(attempt.report))

    assert_linear(case, (250, 1_000))


def test_a_report_by_runs_tells_no_units_apart() -> None:
    """Of what left one row says all: to look for violations is most of it; a row each is thrice as much."""

    def case(count: int) -> Call:
        fitted = fit(SHAPES["valid"](count), 2_000, counter=exact_counter())
        return lambda _: fitted.report.to_dict()

    few, many = (operations_of(case(count)).lines for count in (1_000, 4_000))
    assert (many - few) / 3_000 < REPORT_LINES, f"{few}, {many}"


REPORT_LINES = 60
"""Lines run a message for a report that is written."""


@pytest.mark.parametrize("shape", ["valid", "old_parallel", "late_results"])
def test_a_callback_that_removes_one_message_at_a_time_takes_linear_time(shape: str) -> None:
    """Also where all of them are of one unit."""

    def remove_results(context: Any) -> None:
        for element in context.message_elements:
            if element.role == "tool":
                context.remove(element.seq)

    def case(count: int) -> Call:
        messages = SHAPES[shape](count)
        return lambda counter: fit(messages, 5 * count, counter=counter, on_trim=remove_results)

    assert_linear(case, (250, 1_000))


# -- black boxes


@pytest.mark.few(11)
@pytest.mark.parametrize("shape", ["valid", "long_results"])
@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES.keys())
def test_a_black_box_is_called_a_logarithmic_number_of_times(strategy: Any, shape: str) -> None:
    """Twice the messages cost a few calls more, not twice as many (SPEC A9)."""

    def calls_for(count: int) -> int:
        made: list[int] = []

        def words(messages: Any) -> int:
            made.append(len(messages))
            return WordCounter().count(messages)

        _fit_or_error(SHAPES[shape](count), count, words, strategy=strategy)
        return len(made)

    once, twice, four_times = calls_for(100), calls_for(200), calls_for(400)
    assert twice - once <= 8
    assert four_times - twice <= 8
    assert four_times <= 80


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("a word in a line\n", {"around": "word"}),
        ("word ", {"around": "word"}),
        ("A", {"around": "aa"}),
        ("\n", {}),
        ("x\n", {"lines": "1-999999999999999"}),
        ("x", {"lines": "1+1000"}),
    ],
)
def test_reading_a_result_again_takes_linear_time(text: str, asked: dict[str, Any]) -> None:
    """Of one long result, and of one among many."""

    def long(count: int) -> Call:
        messages = [user("hi"), calls("a"), result("a", text * 50 * count)]
        return lambda counter: read_result(messages, "a", format="openai_chat", **asked)

    def many(count: int) -> Call:
        messages = [one for n in range(count) for one in (calls(f"c{n}"), result(f"c{n}", text * 2_000))]
        return lambda counter: read_result(messages, "c1", format="openai_chat", **asked)

    assert_linear(long, (100, 400))
    assert_linear(many, (100, 400))


def test_the_machine_sees_what_is_quadratic() -> None:
    """Fitting again for every message counts as much as it is."""
    messages = valid(400)

    def again(count: int) -> Call:
        return lambda counter: [repair(messages[:stop]) for stop in range(count)]

    less, more = (operations_of(again(count)).total for count in (100, 200))
    assert more > 3 * less
