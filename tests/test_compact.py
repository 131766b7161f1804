"""`compact=`: what results are written as, what is never done to them, and what the report says of it."""

from __future__ import annotations

import asyncio
import gc
import json
import re
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass
from itertools import count
from random import Random
from typing import Any, ClassVar

import pytest

from tests.builders import LaterCounter
from tests.result_chats import chat, exchange, results, said, unresolved
from trimtab import BudgetExceededError, ConfigurationError, Context, Fitted, afit, fit
from trimtab.batch import BatchTask
from trimtab.compact import Compact, Kind, expand
from trimtab.counting import CharCounter, clear_counts
from trimtab.policy import load_policy, policy_data
from trimtab.report import Report
from trimtab.strategies import Cascade, ClampResults, SlidingWindow
from trimtab.testing import WordCounter

WORDS = CharCounter()
FILE = [f"    value_{n} = compute(first_argument, second_argument, {n * 7})" for n in range(40)]


def _chat(*texts: str, tools: list[str] | None = None) -> list[dict[str, Any]]:
    """Write a chat with a result each."""
    made = [said("openai_chat", "user", "Look.")]
    for at, text in enumerate(texts):
        made += exchange("openai_chat", [(f"call_{at}", (tools or ["read"] * len(texts))[at], text)])
    return made


def _sent(*texts: str, compact: Any = True, tools: list[str] | None = None, **given: Any) -> list[str]:
    """Return what results are sent as."""
    messages = _chat(*texts, tools=tools)
    fitted = fit(messages, 10**9, counter=WORDS, compact=compact, **given)
    return [text for _, _, text in results("openai_chat", fitted.messages)]


# JSON.


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('{ "a" : 1.0, "b": [1, 1e5, -0] }', '{"a":1.0,"b":[1,1e5,-0]}'),
        (f"[{10**40}, 0.10000000000000000000001]", f"[{10**40},0.10000000000000000000001]"),
        ('{"a b": " c :  d, ", "q": "\\" : "}', '{"a b":" c :  d, ","q":"\\" : "}'),
        (
            '{"name": "J\\u00fcrgen \\\\u00fc \\n \\ud83d\\ude00"}',
            '{"name":"Jürgen \\\\u00fc \\n \\ud83d\\ude00"}',
        ),
        ("[\n]\n", "[]"),
    ],
)
def test_json_says_the_same_in_fewer_characters(text: str, wanted: str) -> None:
    """Numbers stay as they are written, texts as well, and only space between values goes."""
    (sent,) = _sent(text)
    assert sent == wanted
    assert json.loads(sent, parse_float=str, parse_int=str) == json.loads(
        text, parse_float=str, parse_int=str
    )


@pytest.mark.parametrize(
    "text",
    [
        '{ "a": 1, "a": 2 }',
        "[ NaN, 1 ]",
        "[ -Infinity ]",
        '{ "a": 1, }',
        "[ 1 ] and more",
        '" only a text "',
        " 17 ",
        "{ }{ }",
        "[" * 100_000,
        '[1,2,"x y"]',
    ],
)
def test_what_is_not_strictly_json_or_is_tight_is_left_alone(text: str) -> None:
    """What two readers may read in two ways is sent as it is."""
    assert _sent(text) == [text]


def test_lists_of_like_objects_become_tables_on_request_alone() -> None:
    """A table has the same values: each row is an object with the keys of the head."""
    rows = [{"identifier": n, "description": f"row {n}", "price": None} for n in range(5)]
    text = json.dumps({"rows of it": rows, "few": rows[:2]})
    tight, table = _sent(text)[0], _sent(text, compact=Compact(json="table"))[0]
    assert json.loads(tight) == json.loads(text)
    read = json.loads(table)
    assert read["few"] == rows[:2]
    head = read["rows of it"]["cols"]
    assert [dict(zip(head, row, strict=True)) for row in read["rows of it"]["rows"]] == rows
    assert len(table) < len(tight)


def test_what_looks_like_a_table_is_not_made_one() -> None:
    """JSON with a table of its own would be read in two ways."""
    rows = [{"identifier": n, "description": "x"} for n in range(5)]
    text = json.dumps([{"cols": 1, "rows": 2}, rows])
    assert json.loads(_sent(text, compact=Compact(json="table"))[0]) == json.loads(text)


# Repeats.


def test_lines_of_an_earlier_result_become_a_reference_with_both_places() -> None:
    """The reference says which lines they are, whose they are, and where they stand there."""
    first, second = "\n".join(FILE), "\n".join(["head", *FILE[10:30], "tail"])
    assert _sent(first, second) == [first, "head\n[lines 2-21 as in call_0 from 11]\ntail"]


def test_line_numbers_are_seen_through_where_they_run_on() -> None:
    """Lines that moved are the same lines; the reference says by which number they begin now."""
    first = "\n".join(f"{n + 1:>3}\t{line}" for n, line in enumerate(FILE))
    second = "\n".join(f"{n + 4:>3}\t{line}" for n, line in enumerate(FILE))
    assert _sent(first, second)[1] == "[lines 1-40 as in call_0 from 1, numbered from 4]"
    holes = "\n".join(f"{2 * n + 4:>3}\t{line}" for n, line in enumerate(FILE))
    assert _sent(first, holes)[1] == holes


def test_few_lines_and_few_tokens_are_not_worth_a_reference() -> None:
    """Below the fewest lines or tokens, results stay as they are."""
    text, few = "\n".join(FILE), "\n".join(FILE[:3])
    assert _sent(text, few)[1] == "[lines 1-3 as in call_0 from 1]"
    assert _sent(text, few, compact=Compact(min_lines=4))[1] == few
    assert _sent(text, few, compact=Compact(min_tokens=100))[1] == few
    assert _sent("}\n}\n}\n}\n}", "}\n}\n}\n}\n}")[1] == "}\n}\n}\n}\n}"
    assert _sent(text, text, compact=Compact(repeats=False)) == [text, text]


def test_no_reference_leads_to_another() -> None:
    """Only lines that are sent are referred to: each is found in one step."""
    text = "\n".join(FILE)
    assert _sent(text, text, text)[1:] == ["[lines 1-40 as in call_0 from 1]"] * 2


@pytest.mark.parametrize("slashes", ["", "\\", "\\\\"])
def test_what_looks_like_a_reference_comes_back_as_the_tool_wrote_it(slashes: str) -> None:
    """A tool's own line is escaped, so nobody takes it for a reference of trimtab."""
    text, own = "\n".join(FILE), f"{slashes}[lines 1-40 as in call_0 from 1]"
    messages = _chat(text, own, f"{own}\n" + text)
    fitted = fit(messages, 10**9, counter=WORDS, compact=True)
    sent = [one for _, _, one in results("openai_chat", fitted.messages)]
    assert sent[1] == f"\\{own}"
    assert sent[2] == f"\\{own}\n[lines 2-41 as in call_0 from 1]"
    assert expand(fitted.messages) == messages


@pytest.mark.parametrize("slashes", ["", "\\", "\\\\"])
def test_what_looks_like_a_reference_comes_back_where_nothing_is_looked_for(slashes: str) -> None:
    """It is escaped with `repeats=False` too; excluded tools and pins are sent as they are."""
    own = f"{slashes}[lines 1-40 as in call_0 from 1]"
    messages = _chat("\n".join(FILE), own, tools=["read", "cat"])
    fitted = fit(messages, 10**9, counter=WORDS, compact=Compact(repeats=False))
    assert [text for _, _, text in results("openai_chat", fitted.messages)] == ["\n".join(FILE), f"\\{own}"]
    assert expand(fitted.messages) == messages
    excluded = Compact(exclude_tools=["cat"])
    assert fit(messages, 10**9, counter=WORDS, compact=excluded).messages[4] is messages[4]
    assert fit(messages, 10**9, counter=WORDS, compact=True, pin=[4]).messages[4] is messages[4]


def test_expand_leaves_alone_what_does_not_stand_where_it_says() -> None:
    """What refers to a call that is not there, or to lines that are not, is a text."""
    texts = [
        "\n".join(FILE),
        "[lines 1-3 as in call_9 from 1]",
        "[lines 1-9 as in call_0 from 39]",
        "[lines 5-9 as in call_0 from 1]",
    ]
    messages = _chat(*texts)
    assert expand(messages) == messages


def test_pinned_messages_and_those_of_excluded_tools_are_sent_as_they_are() -> None:
    """They are no holders of references; others may refer to them."""
    text = "\n".join(FILE)
    assert _sent(text, text, pin=[4]) == [text, text]
    assert _sent(text, text, pin=[2])[1] == "[lines 1-40 as in call_0 from 1]"
    plain = ['{ "a": 1 }', text, text]
    sent = _sent(*plain, compact=Compact(exclude_tools=["cat"]), tools=["cat", "cat", "read"])
    assert sent == [*plain[:2], "[lines 1-40 as in call_1 from 1]"]
    assert _sent(text, text, tools=["read", "read_result"]) == [text, text]


@pytest.mark.parametrize("form", ["openai_chat", "openai_responses", "anthropic", "gemini", "bedrock"])
def test_messages_of_the_caller_stay_as_they_are_in_every_form(form: str) -> None:
    """An edited message is a copy, and expand gives the original of each back."""
    messages = chat(form, Random(form), turns=12)
    before = json.dumps(messages)
    fitted = fit(messages, 10**9, counter=WORDS, format=form, compact=Compact(json=None))
    assert json.dumps(messages) == before
    assert fitted.changed
    assert expand(fitted.messages, format=form) == messages
    assert all(fitted.messages[at] is messages[at] for at in range(len(messages)) if at not in fitted.changed)


# What is in the request.


def test_a_reference_goes_with_what_it_leads_to() -> None:
    """Where the earlier result is evicted, cut or cleared, the later one has its own lines again."""
    text = "\n".join(FILE)
    messages = _chat(text, "x" * 4_000, text)
    assert fit(messages, 2_500, counter=WORDS, compact=True).messages[-1]["content"].startswith("[lines 1-40")
    evicted = fit(messages, 1_000, counter=WORDS, compact=True, strategy=SlidingWindow())
    assert evicted.messages[-1]["content"] == text
    clamped = fit(messages, 1_600, counter=WORDS, compact=True, strategy=ClampResults(max_tokens=300))
    assert unresolved(results("openai_chat", clamped.messages)) == []


@pytest.mark.parametrize("most", [9, 13, 20, 30])
def test_a_cut_tears_no_reference(most: int) -> None:
    """A result that is cut says its own lines: part of a reference would lead nobody anywhere."""
    source = "\n".join(f"def test_number_{n}(): assert parse({n}) == {n}" for n in range(30))
    text = "head " * 60 + "\n" + source
    messages = [said("openai_chat", "user", "go")]
    for name, own in (("first", source), ("second", text)):
        messages += [*exchange("openai_chat", [(name, "read", own)]), said("openai_chat", "user", "on")]
    strategy = Cascade(ClampResults(max_tokens=most), SlidingWindow())
    for room in (60, 90, 200):
        fitted = fit(messages, room, counter=CharCounter(), compact=True, strategy=strategy)
        sent = results("openai_chat", fitted.messages)[-1][2]
        head, cut, tail = sent.partition("[text cut by trimtab")
        assert cut
        assert text.startswith(head)
        assert text.endswith(tail.partition("]")[2])
    whole = fit(messages, 2_000, counter=CharCounter(), compact=True, strategy=strategy)
    assert results("openai_chat", whole.messages)[-1][2].endswith("[lines 2-31 as in first from 1]")


def test_results_keep_their_text_while_the_window_stands() -> None:
    """A growing chat begins as the call before did, unless the cut moved."""
    messages = chat("openai_chat", Random(5), turns=40)
    before, places = list[Any](), list[int | None]()
    moves, calls = 0, 0
    for stop in range(2, len(messages)):
        if messages[stop]["role"] != "assistant":
            continue
        fitted = fit(messages[:stop], 1_500, counter=WORDS, compact=True, steady=True)
        stood = fitted.positions[: len(before)] == places
        if stood:
            assert fitted.messages[: len(before)] == before
        moves, calls = moves + (not stood), calls + 1
        before, places = fitted.messages, fitted.positions
    assert 1 < moves < calls / 3


def test_what_is_remembered_of_this_chat_changes_no_message() -> None:
    """Its calls are settled as if nobody had seen it; of random chats, one call in 200 is cut elsewhere."""
    messages = chat("anthropic", Random(8), turns=30)
    warm = []
    for stop in range(3, len(messages), 2):
        fitted = fit(messages[:stop], 3_000, counter=WORDS, compact=True, steady=True, format="anthropic")
        warm.append(fitted.messages)
    for at, stop in enumerate(range(3, len(messages), 2)):
        clear_counts()
        cold = fit(messages[:stop], 3_000, counter=WORDS, compact=True, steady=True, format="anthropic")
        assert cold.messages == warm[at]


def test_messages_that_change_in_place_are_written_anew() -> None:
    """What is remembered is compared with what messages say now."""
    text = "\n".join(FILE)
    messages = _chat(text, text)
    for _ in range(3):
        assert fit(messages, 10**6, counter=WORDS, compact=True).messages[4]["content"].startswith("[lines")
    messages[2]["content"] = "nothing"
    assert fit(messages, 10**6, counter=WORDS, compact=True).messages[4]["content"] == text


def test_a_result_that_comes_into_a_message_in_place_is_noticed() -> None:
    """A reference by an id that is used again means the latest result, and that may have come in place."""
    form, old, new = "anthropic", "\n".join(FILE), "\n".join(FILE).replace("value", "other")
    go, first, last = said(form, "user", "Go."), *(exchange(form, [(one, "r", old)]) for one in "ac")
    call, result = exchange(form, [("a", "r", new)])
    messages = [go, *first, call, said(form, "user", "Wait.")]
    for _ in range(3):
        fit(messages, 10**6, counter=WORDS, compact=True, format=form, pending_calls=["a"])
    messages[-1]["content"][:0] = result["content"]
    messages += last
    fitted = fit(messages, 10**6, counter=WORDS, compact=True, format=form)
    assert expand(fitted.messages, format=form) == messages
    clear_counts()
    assert fit(messages, 10**6, counter=WORDS, compact=True, format=form).messages == fitted.messages


def test_a_call_that_comes_in_place_names_the_tool_of_its_result() -> None:
    """What is excluded by the name of its tool is so, too, where the name came later."""
    text = "\n".join(FILE)
    compact, messages = Compact(exclude_tools=["cat"]), _chat(text, tools=["read"])
    (call, result) = exchange("openai_chat", [("call_9", "cat", text)])
    messages.append(said("openai_chat", "assistant", "I shall look."))
    for _ in range(3):
        fit(messages, 10**6, counter=WORDS, compact=compact)
    messages[-1]["tool_calls"] = call["tool_calls"]
    messages.append(result)
    assert fit(messages, 10**6, counter=WORDS, compact=compact).messages[-1]["content"] == text


def test_equal_lines_take_steps_in_proportion() -> None:
    """Ten times as many equal lines take about ten times as many steps."""

    def steps(count: int) -> int:
        text, calls = "\n".join(["same line of a log"] * count), [0]

        def count_calls(frame: Any, event: str, arg: object) -> None:
            calls[0] += event in ("call", "c_call")

        sys.setprofile(count_calls)
        try:
            assert _sent(text, text, f"x\n{text}")[1].startswith("[lines")
        finally:
            sys.setprofile(None)
        return calls[0]

    steps(10)
    assert steps(20_000) < 12 * steps(2_000)


def _alive() -> int:
    """Count what results are written as, wherever it is kept."""
    gc.collect()
    return sum(type(one).__name__ == "Written" and hasattr(one, "links") for one in gc.get_objects())


@pytest.mark.parametrize("in_blocks", [False, True])
def test_a_fit_for_many_budgets_keeps_what_was_written_for_the_last_few(in_blocks: bool) -> None:
    """Ten times as many budgets hold no more memory."""
    messages = chat("openai_chat", Random(4), turns=40)
    context = Context(10**6, counter=WORDS, compact=True).add("history", messages)
    fitted = context.fit() if in_blocks else fit(messages, 10**6, counter=WORDS, compact=True)
    before = _alive()
    cuts = {len(fitted.at(budget).messages) for budget in range(500, 2_100, 50)}
    assert len(cuts) > 12
    assert _alive() - before <= 6


class _Interrupted(type(SlidingWindow)):  # type: ignore[misc]
    """Lets another thread in wherever a question about a chat is looked up."""

    others: ClassVar[list[Callable[[], object]]] = []

    def __hash__(cls) -> int:
        waiting, _Interrupted.others = _Interrupted.others, []
        with ThreadPoolExecutor(1) as pool:
            for one in [pool.submit(other) for other in waiting]:
                one.result()
        _Interrupted.others = waiting
        return type.__hash__(cls)


class _Window(SlidingWindow, metaclass=_Interrupted):
    """The same as its base."""


def test_threads_may_ask_about_one_chat_at_once() -> None:
    """What is remembered of a chat by question changes between any two looks at it, and nobody minds."""
    messages = chat("openai_chat", Random(4), turns=20)

    def ask(budget: int) -> int:
        return fit(messages, budget, counter=WORDS, compact=True, strategy=_Window()).report.tokens_after

    budgets = count(500)
    _Interrupted.others = [lambda: ask(next(budgets))] * 9  # others each time; of eight the answer is kept
    try:
        assert ask(520) <= 520
        assert ask(620) <= 620
    finally:
        _Interrupted.others = []


# Kinds.


def _last_lines(text: str) -> str:
    return "\n".join(text.split("\n")[-2:])


def test_a_kind_writes_results_in_its_own_way() -> None:
    """It takes those of its tools and pattern, and what it loses can be found by the id of the call."""
    log = "== test session ==\n" + "ok\n" * 60 + "2 failed"
    kind = Kind(name="pytest", tools=["bash"], match="^== test", write=_last_lines, lossy=True)
    sent = _sent(
        log, log, "ok\n" * 60, compact=Compact(kinds=[kind], repeats=False), tools=["bash", "cat", "bash"]
    )
    assert sent == ["ok\n2 failed\n[text cut by trimtab; all of it: result of call_0]", log, "ok\n" * 60]


@pytest.mark.parametrize(
    ("text", "write", "lossy"),
    [
        ("short", lambda text: text + " and longer", False),
        ("short", lambda text: "s", True),
        ('{"a":1,"b":[2,3,4,5]}', lambda text: text[:5], False),
        ('{"a":1,"b":[2,3,4,5]}', lambda text: "{}", True),
    ],
)
def test_a_kind_never_makes_results_longer_or_json_something_else(
    text: str, write: Callable[[str], str], lossy: bool
) -> None:
    """What breaks the promise is not sent, and the text is."""
    assert _sent(text, compact=Compact(kinds=[Kind(name="k", write=write, lossy=lossy)])) == [text]


def test_a_kind_is_asked_once_for_a_result() -> None:
    """Later calls of a chat remember its answer."""
    asked = []

    def write(text: str) -> str:
        asked.append(text)
        return text[:2]

    messages, compact = _chat("abcdef", "ghijkl"), Compact(kinds=[Kind(name="k", write=write)])
    fit(messages, 10**6, counter=WORDS, compact=compact)  # seen for the first time: nothing is remembered yet
    asked.clear()
    for stop in (3, 5, 5):
        fit(messages[:stop], 10**6, counter=WORDS, compact=compact)
    assert asked == ["abcdef", "ghijkl"]


def _as_list(message: dict[str, Any]) -> list[dict[str, Any]]:
    return [deepcopy(message)]


def _as_read(message: dict[str, Any], messages: list[dict[str, Any]]) -> dict[str, Any]:
    return messages[0]


def _in_context(messages: list[dict[str, Any]], budget: int, **given: Any) -> Any:
    return Context(budget, **given).add("history", messages).fit()


@pytest.mark.parametrize("door", [fit, _in_context])
@pytest.mark.parametrize(
    "given",
    [
        {"system": "Be brief."},
        {"read": deepcopy, "write": _as_read, "format": "openai_chat"},
        {"read": _as_list, "write": _as_read, "format": "openai_chat"},
        {"read": _as_list, "write": _as_read, "format": "openai_chat", "system": "Be brief."},
    ],
)
def test_a_chat_is_known_by_the_objects_of_its_caller(
    door: Callable[..., Any], given: dict[str, Any]
) -> None:
    """What is made anew in each call, as system text and what objects read as, does not hide it."""
    asked = []

    def write(text: str) -> str:
        asked.append(text)
        return text[:2]

    compact = Compact(kinds=[Kind(name="k", write=write)])
    messages = _chat("abcdef", "ghijkl")
    counts = []
    for _ in range(4):
        door(messages, 10**6, counter=WORDS, compact=compact, **given)
        counts.append(len(asked))
        asked.clear()
    assert counts == [2, 2, 0, 0]


class _Block:
    """A part of a message as an SDK returns it."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)

    def model_dump(self, **options: Any) -> dict[str, Any]:
        """Return it as JSON has it."""
        return dict(vars(self))


def test_calls_that_are_objects_of_an_sdk_do_not_hide_a_chat() -> None:
    """Nobody can tell what such an object said before, but it is read again, and mostly says the same."""
    asked = []

    def write(text: str) -> str:
        asked.append(text)
        return text[:2]

    compact = Compact(kinds=[Kind(name="k", write=write, tools=["read"])])
    messages = [said("anthropic", "user", "Go.")]
    for one in ("a", "b"):
        call, result = exchange("anthropic", [(one, "read", f"text of {one}")])
        messages += [{**call, "content": [_Block(**call["content"][0])]}, result]

    def texts() -> list[str]:
        asked.clear()
        fitted = fit(messages, 10**6, counter=WORDS, compact=compact, format="anthropic")
        return [fitted.messages[at]["content"][0]["content"] for at in (2, 4)]

    assert [texts(), texts()] == [["te", "te"]] * 2
    assert texts() == ["te", "te"]
    assert asked == []
    messages[3]["content"][0].name = "list"
    assert texts() == ["te", "text of b"]


def test_a_system_message_that_is_made_anew_does_not_hide_a_chat() -> None:
    """It is often written for each call; the messages behind it are the same objects."""
    asked = []

    def write(text: str) -> str:
        asked.append(text)
        return text[:2]

    compact = Compact(kinds=[Kind(name="k", write=write)])
    messages = _chat("abcdef", "ghijkl")
    for _ in range(2):
        fit([said("openai_chat", "system", "Short."), *messages], 10**6, counter=WORDS, compact=compact)
    asked.clear()
    fit([said("openai_chat", "system", "Short."), *messages], 10**6, counter=WORDS, compact=compact)
    assert asked == []


def test_a_kind_that_returns_no_text_is_an_error() -> None:
    """The error names the kind."""
    broken: Any = lambda text: None  # noqa: E731
    with pytest.raises(ConfigurationError, match="'k' returned a NoneType"):
        _sent("abc", compact=Compact(kinds=[Kind(name="k", write=broken)]))


@dataclass
class _Tail:
    """A callable that cannot be hashed, as it can change."""

    most: int

    def __call__(self, text: str) -> str:
        return text[-self.most :]


async def _write_later(text: str) -> str:
    return text[:1]


def test_any_callable_may_write_a_kind() -> None:
    """One that has no hash is the same as itself alone: another that is equal now may change."""
    tail = _Tail(3)
    one, same, other = (Kind(name="k", write=write) for write in (tail, tail, _Tail(3)))
    assert _sent("abcdef", compact=Compact(kinds=[one])) == ["def"]
    assert one == same
    assert hash(one) == hash(same)
    assert one != other
    assert Kind(name="k", write=str.strip) == Kind(name="k", write=str.strip)
    assert Kind(name="k", write=str.strip) != Kind(name="k", write=str.lstrip)


def test_what_a_kind_raises_goes_on_with_a_note() -> None:
    """The note says which kind it was, and for which call; the next fit is asked as if nothing had been."""

    def write(text: str) -> str:
        if broken:
            raise KeyError("state")
        return text[:2]

    messages, compact = _chat("abcdef", "ghijkl"), Compact(kinds=[Kind(name="k", write=write)])
    for broken in (True, True, False, True):
        if not broken:
            sent = fit(messages, 10**6, counter=WORDS, compact=compact).messages
            assert [text for _, _, text in results("openai_chat", sent)] == ["ab", "gh"]
            messages = _chat("abcdef", "ghijkl", "mnopqr")
            continue
        with pytest.raises(KeyError) as caught:
            fit(messages, 10**6, counter=WORDS, compact=compact)
        assert caught.value.__notes__ == ["raised by write of Kind 'k' for the result of call_0"]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Compact(json="loose"), "json"),  # type: ignore[arg-type]
        (lambda: Compact(min_lines=0), "min_lines"),
        (lambda: Compact(min_tokens=-1), "min_tokens"),
        (lambda: Compact(repeats="yes"), "repeats"),  # type: ignore[arg-type]
        (lambda: Compact(exclude_tools="bash"), "exclude_tools"),
        (lambda: Compact(kinds=["pytest"]), "kinds"),  # type: ignore[list-item]
        (lambda: Compact(kinds=[Kind(name="k", write=str)] * 2), "two kinds"),
        (lambda: Kind(name="", write=str), "name"),
        (lambda: Kind(name="k", write="x"), "write"),  # type: ignore[arg-type]
        (lambda: Kind(name="k", write=str, match="("), "no regular expression"),
        (lambda: Kind(name="k", write=str, match=b"a"), "over text, not b'a'"),  # type: ignore[arg-type]
        (lambda: Kind(name="k", write=str, match=re.compile(b"a")), "over text"),  # type: ignore[arg-type]
        (lambda: Kind(name="k", write=str, match=7), "over text, not 7"),  # type: ignore[arg-type]
        (lambda: Kind(name="k", write=_write_later), "synchronous"),  # type: ignore[arg-type]
        (lambda: Kind(name="k", write=lambda: ""), "function takes"),  # type: ignore[misc,arg-type]
        (lambda: Kind(name="json", write=str), "cannot be named 'json'"),
        (lambda: Kind(name="repeats", write=str), "cannot be named 'repeats'"),
        (lambda: fit([], 10, compact="tight"), "compact must be"),  # type: ignore[call-overload]
        (lambda: Context(10, compact=1), "compact must be"),  # type: ignore[arg-type]
        (lambda: Context(10).add("a", None, compact="x"), "compact must be"),  # type: ignore[arg-type]
    ],
)
def test_options_that_mean_nothing_are_refused_when_they_are_made(
    make: Callable[[], object], said: str
) -> None:
    """The error says what to write."""
    with pytest.raises(ConfigurationError, match=said):
        make()


# The report.


def test_a_kind_that_failed_once_is_asked_again_as_if_it_had_not() -> None:
    """What was read before it failed is not read twice, nor counted twice."""
    failures = [True]

    def write(text: str) -> str:
        if failures:
            raise ValueError(failures.pop())
        return text[:60]

    compact = Compact(kinds=[Kind(name="log", match="^log", write=write)])
    text = "\n".join(FILE)
    exchanges = [exchange("openai_chat", [(f"no handle {at}", "read", text)]) for at in range(4)]
    messages = [said("openai_chat", "user", "Look."), *exchanges[0], *exchanges[1]]
    for _ in range(2):
        fit(messages, 10**6, counter=WORDS, compact=compact)
    messages += [*exchanges[2], *exchange("openai_chat", [("log", "run", f"log {text}")]), *exchanges[3]]
    with pytest.raises(ValueError, match="True"):
        fit(messages, 10**6, counter=WORDS, compact=compact)
    again = fit(messages, 10**6, counter=WORDS, compact=compact)
    anew = fit(deepcopy(messages), 10**6, counter=WORDS, compact=compact)
    assert again.messages == anew.messages
    assert again.report.written == anew.report.written
    assert unresolved(results("openai_chat", again.messages)) == []


def test_a_counter_that_is_awaited_tells_what_was_saved_once_it_is_asked() -> None:
    """Of `fit` and of a `Context`: nobody asks it before, and what it said then stays in the report."""
    messages = _chat("\n".join(FILE), "\n".join(FILE))
    counter: Any = LaterCounter()

    async def asked(fitted: Fitted[Any]) -> None:
        before = fitted.report.written
        assert before is not None
        assert before.saved_tokens is None
        after = (await fitted.acount_all()).written
        assert after is not None
        plain, sent = map(WordCounter().count, (messages, fitted.messages))
        assert after.saved_tokens == {"repeats": plain - sent}

    async def both() -> None:
        await asked(await afit(messages, 10**6, counter=counter, compact=True))
        context = Context(10**6, counter=counter, compact=True).add("history", messages)
        await asked(await context.afit())

    asyncio.run(both())


def test_the_report_counts_what_each_step_saved() -> None:
    """Savings are the difference of what was counted, by step, and references are listed."""
    text = "\n".join(FILE)
    messages = _chat(text, '{ "a":   1 }', text)
    fitted = fit(messages, 10**6, counter=WORDS, compact=True)
    report = fitted.report
    written = report.written
    assert written is not None
    plain, sent = (sum(map(WORDS.count_message, one)) for one in (messages, fitted.messages))
    assert written.saved_tokens is not None
    assert sum(written.saved_tokens.values()) == plain - sent > 0
    assert set(written.saved_tokens) == {"json", "repeats"}
    assert [(one.index, one.source) for one in written.references] == [(6, 2)]
    assert report.tokens_before is not None
    assert report.tokens_before - report.tokens_after == plain - sent
    assert [(row.fate, row.reason) for row in report.messages if row.fate != "kept"] == [
        ("changed", "compacted")
    ] * 2
    assert report.blocks[0].actions == ("compacted",)
    assert Report.from_dict(json.loads(json.dumps(report.to_dict()))) == report
    assert "2 texts compacted, 1 reference; saved:" in str(report.to_text())


def test_nothing_is_said_of_results_where_nobody_asked() -> None:
    """Without compact the report has no such numbers, and outputs are the caller's own objects."""
    messages = _chat("\n".join(FILE), "\n".join(FILE))
    fitted = fit(messages, 10**6, counter=WORDS)
    assert fitted.report.written is None
    assert all(one is other for one, other in zip(fitted.messages, messages, strict=True))


# The doors.


def test_a_policy_says_how_results_are_written() -> None:
    """It is read and written, for the whole and for a block."""
    context = Context(9_000, compact=Compact(json=None, exclude_tools=["cat"]))
    context.add("old", None, compact=False).add("history", None)
    data = policy_data(context)
    assert data["compact"] == {"json": "none", "exclude_tools": ["cat"]}
    assert [block.get("compact") for block in data["blocks"]] == [False, None]
    assert policy_data(load_policy(data)) == data
    assert load_policy({"budget": 9, "compact": True}).policy.compact == Compact()
    with pytest.raises(ConfigurationError, match="kinds are functions"):
        policy_data(Context(9, compact=Compact(kinds=[Kind(name="k", write=str)])))


def test_blocks_say_for_themselves_whether_they_are_compacted() -> None:
    """A block's own word goes before that of the context."""
    messages = _chat("\n".join(FILE), "\n".join(FILE))
    for whole, own, wanted in ((True, None, 1), (True, False, 0), (None, True, 1), (None, None, 0)):
        context = Context(10**6, counter=WORDS, compact=whole).add("history", messages, compact=own)
        assert len(context.fit().changed) == wanted
    for own, wanted in ((True, 1), (None, 0)):
        context = Context(10**6, counter=WORDS, compact=True).add("history", messages, compact=own)
        assert len(context.clone(compact=False).fit().changed) == wanted
    context = Context(10**6, counter=WORDS).add("history", messages, compact=False)
    assert not context.clone(compact=True).fit().changed


def test_a_batch_compacts_each_row() -> None:
    """Rows for training are left as they are, so it is refused there."""
    pyarrow = pytest.importorskip("pyarrow")
    messages = _chat("\n".join(FILE), "\n".join(FILE))
    table = pyarrow.table({"messages": [json.dumps(messages)]})
    task = BatchTask(operation="fit", budget=10**6, counter="chars:4", compact=True)
    row = task(table).to_pylist()[0]
    assert json.loads(row["messages"])[4]["content"] == "[lines 1-40 as in call_0 from 1]"
    assert {one["key"] if isinstance(one, dict) else one[0] for one in row["reasons"]} == {"compacted"}
    training = BatchTask(operation="fit", budget=10**6, counter="chars:4", compact=True, purpose="training")
    with pytest.raises(ConfigurationError, match="compact"):
        training(table)


def test_what_must_be_kept_and_does_not_fit_is_still_an_error() -> None:
    """The error has the best attempt, and no reference in it leads nowhere."""
    text = "\n".join(FILE)
    with pytest.raises(BudgetExceededError) as caught:
        fit(_chat(text, text), 20, counter=WORDS, compact=True, pin=[1, 2, 3, 4])
    attempt = caught.value.attempt
    assert attempt is not None
    assert unresolved(results("openai_chat", attempt.messages)) == []
