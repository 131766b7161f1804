"""Training data: whole turns leave, and an answer that is trained on comes out as it went in, or not."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from jinja2 import Environment

from tests.batch.conversations import conversations
from tests.chat_vocabulary import CHATML, small_tokenizer, write_small_model
from trimtab import Context
from trimtab.batch import BatchTask, count_table, fit_table, run_batch
from trimtab.conversation import validate
from trimtab.counting import counter_from_tokenizer
from trimtab.errors import ConfigurationError
from trimtab.strategies import Edit, EvictionRequest, EvictionResult, SlidingWindow

BUDGETS = (60, 250, 1_000, 3_000, 9_000)
ROAD = "The lake road is closed for repairs until the end of June, so take the forest track instead. " * 8
CASE = [
    {"role": "user", "content": f"Q1 {ROAD}"},
    {"role": "assistant", "content": "A1"},
    {"role": "user", "content": f"Q2 {ROAD}"},
    {"role": "assistant", "content": f"A2 {ROAD}"},
]
"""Case 08: a chat whose last answer was cut, and trained on."""


def say(role: str, text: str = "x" * 40, **more: Any) -> dict[str, Any]:
    """Make a message; of ten tokens by four characters each, where nothing else is said."""
    return {"role": role, "content": text, **more}


U, A, S = say("user"), say("assistant"), say("system")


def fit_rows(rows: Sequence[Any], budget: Any, **options: Any) -> list[dict[str, Any]]:
    """Fit rows of JSON, and read what comes out."""
    given: dict[str, Any] = {"counter": "chars:4", "purpose": "training", **options}
    fitted = fit_table(pa.table({"messages": [json.dumps(row) for row in rows]}), budget=budget, **given)
    found = fitted.to_pylist(maps_as_pydicts="strict")
    return [{**row, "messages": row["messages"] and json.loads(row["messages"])} for row in found]


def fit_row(row: Any, budget: Any, **options: Any) -> Any:
    """Fit one row; gives what is kept, or the kind of its error."""
    (found,) = fit_rows([row], budget, **options)
    return found["messages"] if found["error"] is None else found["error"]["type"]


def _tokens(messages: list[Any], **options: Any) -> int:
    """Count a chat as a table of it alone is counted."""
    table = pa.table({"messages": [json.dumps(messages)]})
    return int(count_table(table, **{"counter": "chars:4", **options}).column("tokens")[0].as_py())


# The case that was reported.


def test_case_08_is_set_aside_or_loses_the_older_turn() -> None:
    """At the budget of the report the last answer does not fit; at a larger one it stays as it is."""
    aside, fewer, whole = (
        fit_row({"messages": CASE}, budget, counter=None, model="gpt-4o") for budget in (180, 400, 600)
    )
    assert aside == "BudgetExceededError"
    assert fewer == {"messages": CASE[2:]}
    assert whole == {"messages": CASE}


# What stays.


@pytest.mark.parametrize(
    ("messages", "budget", "kept"),
    [
        ([U, A], 20, [0, 1]),
        ([U, A], 19, None),
        ([U, A, U, A], 39, [2, 3]),
        ([U, A, U, A], 40, [0, 1, 2, 3]),
        ([U, A, U, A, U, A], 40, [2, 3, 4, 5]),
        ([S, U, A, U, A], 30, [0, 3, 4]),
        ([S, U, A, U, A], 29, None),
        ([S, S, U, A, U, A], 40, [0, 1, 4, 5]),
        ([A, U, A], 20, [1, 2]),
        ([U, A, U], 20, [0, 1]),
        ([U, A, U], 99, [0, 1]),
        ([U, A, U, U, A], 40, [2, 3, 4]),
        ([U, A, U, U, A], 20, None),
        ([U, A, A, U, A], 40, [3, 4]),
        ([U], 99, None),
        ([], 99, None),
    ],
)
def test_whole_turns_leave_the_oldest_first(messages: list[Any], budget: int, kept: list[int] | None) -> None:
    """System text stays, words of the user in a row are one turn, and what is behind the answer leaves."""
    found = fit_row(messages, budget)
    expected = None if kept is None else [messages[at] for at in kept]
    assert (None if isinstance(found, str) else found) == expected


def test_a_row_says_what_left_and_why() -> None:
    """Columns are those of any fit."""
    (row,) = fit_rows([[U, A, U, A, U]], 20)
    assert row["fates"] == ["evicted", "evicted", "kept", "kept", "evicted"]
    assert row["reasons"] == {"behind_target": 1, "over_limit": 2}
    assert (row["tokens_before"], row["tokens_after"], row["violations"]) == (50, 20, [])
    (row,) = fit_rows([[U, A]], 20, columns=["tokens_after"])
    assert row == {"messages": [U, A], "tokens_after": 20, "error": None}


def test_answers_of_weight_0_are_not_trained_on() -> None:
    """They leave behind the last target, and stand before it as anything does."""
    light, off = say("assistant", weight=0), say("assistant", train=False)
    heavy = say("assistant", weight=1, train=True)
    for other in (light, off):
        assert fit_row([U, A, U, other], 99) == [U, A]
        assert fit_row([U, other, U, heavy], 99) == [U, other, U, heavy]
        (row,) = fit_rows([[U, other]], 99)
        assert row["error"]["type"] == "NoTargetError"
        assert row["error"]["message"].endswith("weight 0, or train false, for all 1")
    (row,) = fit_rows([[U]], 99)
    assert row["error"]["message"] == "no answer of the row is trained on: it has none"


def test_what_tells_the_trainer_alone_something_costs_nothing() -> None:
    """By a template, too: it is in no text that a model reads, and comes back with its message."""
    counter = counter_from_tokenizer(small_tokenizer(), chat_template=CHATML)
    marked = [U, say("assistant", weight=1, train=True, train_detail=[{"begin_offset": 0}])]
    for options in ({}, {"counter": counter}):
        (plain,) = fit_rows([[U, A]], 999, **options)
        (found,) = fit_rows([marked], 999, **options)
        assert found["tokens_after"] == plain["tokens_after"]
        assert found["messages"] == marked


def _call(id: str) -> dict[str, Any]:
    function = {"name": "f", "arguments": "{}"}
    return say("assistant", tool_calls=[{"id": id, "type": "function", "function": function}])


def test_no_cut_parts_a_call_from_its_result() -> None:
    """A result that came a turn later keeps both turns together."""
    late = [U, A, U, _call("a"), U, say("tool", tool_call_id="a"), A]
    assert fit_row(late, 30) == "BudgetExceededError"
    assert fit_row(late, 55) == late[2:]
    prompt = [U, _call("a"), say("tool", tool_call_id="a")]
    assert fit_row(prompt, 99) == prompt[:2]  # what a model learns here is the call


def test_rows_that_fit_are_the_same_bytes() -> None:
    """However they are written."""
    texts = ['[ {"role":"user", "content":"\\u00e9"},{"content": "b","role": "assistant"} ]']
    table = fit_table(pa.table({"messages": texts}), budget=99, counter="chars:4", purpose="training")
    assert table.column("messages").to_pylist() == texts


def _parts(chat: list[Any]) -> tuple[list[Any], list[list[Any]]]:
    """Take a chat apart in a way of its own: system text, and its turns up to the last answer."""
    answers = [at for at, one in enumerate(chat) if one["role"] == "assistant"]
    rest = chat[: answers[-1] + 1] if answers else []
    head = [one for one in rest if one["role"] == "system"]
    turns: list[list[Any]] = []
    for one in rest[len(head) :]:
        if not turns or (one["role"] == "user" and turns[-1][-1]["role"] != "user"):
            turns.append([])
        turns[-1].append(one)
    return head, turns


def _check(chats: list[list[Any]], budget: int, **options: Any) -> int:
    """Hold every row to what is promised; gives how many are kept."""
    before = copy.deepcopy(chats)
    rows = fit_rows(chats, budget, **options)
    assert chats == before
    for chat, row in zip(chats, rows, strict=True):
        head, turns = _parts(chat)
        if row["error"] is not None:
            kind = row["error"]["type"]
            assert kind == ("BudgetExceededError" if turns else "NoTargetError")
            continue
        found = row["messages"]
        assert "[text cut" not in json.dumps(found) or "[text cut" in json.dumps(chat)
        sizes = [sum(map(len, turns[at:])) for at in range(len(turns))]
        at = sizes.index(len(found) - len(head))
        assert found == [*head, *(one for turn in turns[at:] for one in turn)]
        assert found[-1] in chat
        assert found[-1]["role"] == "assistant"
        assert row["tokens_after"] == _tokens(found, **options) <= budget
        assert at or row["tokens_after"] <= budget  # the oldest turn leaves only where it must
        assert not _new_faults(chat, found)
    return sum(row["error"] is None for row in rows)


def _new_faults(chat: list[Any], found: list[Any]) -> set[str]:
    faults = {one.rule for one in validate(found) if one.fault}
    return faults - {one.rule for one in validate(chat) if one.fault}


@pytest.mark.parametrize("budget", BUDGETS)
def test_real_chats_keep_their_last_answer_or_are_set_aside(data_dir: Path, budget: int) -> None:
    """No marker, whole turns in their order, pairs together, and never over budget."""
    chats = [messages for _, messages in conversations(data_dir, 300)]
    chats += [one[:cut] for one in chats[::9] for cut in range(1, len(one), 5)]
    assert 0 < _check(chats, budget) <= len(chats)


def test_no_more_leaves_than_must(data_dir: Path) -> None:
    """With the turn before, each row that lost some would be over budget."""
    chats = [messages for _, messages in conversations(data_dir, 200)]
    lost = 0
    for chat, row in zip(chats, fit_rows(chats, 400), strict=True):
        head, turns = _parts(chat)
        if row["error"] is not None:
            least = [*head, *turns[-1]] if turns else chat
            assert not turns or _tokens(least) > 400
        elif len(row["messages"]) < len(head) + sum(map(len, turns)):
            at = len(turns)
            while sum(map(len, turns[at:])) < len(row["messages"]) - len(head):
                at -= 1
            lost += 1
            assert _tokens([*head, *(one for turn in turns[at - 1 :] for one in turn)]) > 400
    assert lost


@pytest.mark.long
def test_no_marker_in_twenty_thousand_rows_at_five_budgets(data_dir: Path) -> None:
    """Made of the real chats, each cut off at another message and with words of its own in front."""
    rows = []
    for number, (name, messages) in enumerate(conversations(data_dir, 20_000)):
        stop = 1 + number * 7 % len(messages)
        first, *rest = messages[:stop]
        rows.append([{**first, "content": f"{name} {first['content']}"}, *rest])
    for start in range(0, len(rows), 2_000):
        table = pa.table({"messages": [json.dumps(row) for row in rows[start : start + 2_000]]})
        for budget in BUDGETS:
            fitted = fit_table(
                table, budget=budget, counter="chars:4", purpose="training", columns=["tokens_after"]
            )
            for row, found in zip(rows[start:], fitted.to_pylist(), strict=False):
                if found["error"] is None:
                    kept = json.loads(found["messages"])
                    assert "[text cut by trimtab]" not in found["messages"]
                    assert kept[-1]["role"] == "assistant"
                    assert kept[-1] in row
                    assert found["tokens_after"] <= budget


# Shapes of trainers.


def tagged(*pairs: str, **more: Any) -> list[dict[str, Any]]:
    """Make entries of ShareGPT, each of ten tokens, from the names of who says them."""
    return [{"from": name, "value": "x" * 40, **more} for name in pairs]


H, G = tagged("human", "gpt")
ASKED = {"name": "f", "arguments": {"a": 1}}
CALL = {"from": "function_call", "value": json.dumps(ASKED)}
SEEN = {"from": "observation", "value": "2"}
TOOL = {"type": "function", "function": {"name": "f", "description": "y" * 400, "parameters": {}}}

SHAPES: dict[str, tuple[Any, Any]] = {
    "messages": ({"id": 1, "messages": [U, A, U, A], "own": [1]}, {"messages": [U, A]}),
    "TRL prompt and completion": (
        {"prompt": [S, U, A, U], "completion": [A], "own": None},
        {"prompt": [S, U]},
    ),
    "TRL, several in the completion": (
        {"prompt": [U, A, U], "completion": [A, U]},
        {"prompt": [U], "completion": [A]},
    ),
    "Axolotl": ({"conversations": [H, G, H, G], "own": 2.5}, {"conversations": [H, G]}),
    "Axolotl, words of roles": (
        {"conversations": [*tagged("system", "user", "assistant"), *tagged("user", "model"), H]},
        {"conversations": tagged("system", "user", "model")},
    ),
    "Axolotl, messages with roles": ({"conversations": [U, A, U, A]}, {"conversations": [U, A]}),
    "LLaMA-Factory ShareGPT": (
        {"conversations": [H, G, H, CALL, SEEN, G, H], "system": "", "tools": "[]"},
        {"conversations": [H, CALL, SEEN, G]},
    ),
    "LLaMA-Factory Alpaca": (
        {
            "instruction": "x" * 20,
            "input": "x" * 20,
            "output": "x" * 40,
            "history": [["x" * 60, "y"], ["x", "y"]],
        },
        {"history": [["x", "y"]]},
    ),
    "ShareGPT under messages": ({"messages": [H, G, H, G]}, {"messages": [H, G]}),
}


@pytest.mark.parametrize(("row", "change"), SHAPES.values(), ids=SHAPES)
def test_each_shape_is_read_and_comes_back_in_it(row: Any, change: Any) -> None:
    """With the rest of the row as it was."""
    kept = {**row, **change}
    assert fit_row(row, 31) == kept
    assert fit_row(kept, 999) == kept


def test_lines_of_each_shape_are_read_without_the_name_of_their_key(tmp_path: Path) -> None:
    """All in one file, and as JSON in a column of Parquet."""
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text("".join(f"{json.dumps(row)}\n" for row, _ in SHAPES.values()), "utf-8")
    task = BatchTask(operation="fit", purpose="training", budget=31, counter="chars:4", columns=["fates"])
    assert run_batch(task, source, target=out, workers=1).failed_rows == 0
    expected = [{**row, **change} for row, change in SHAPES.values()]
    for line, kept in zip(out.read_text("utf-8").splitlines(), expected, strict=True):
        found = json.loads(line)
        assert "evicted" in found.pop("fates")
        assert found == {**kept, "error": None}
    numbers = range(1, len(SHAPES) + 1)
    lines = source.read_bytes().splitlines()
    table = task.run_lines(lines, numbers, file="in.jsonl", into_lines=False)
    assert [json.loads(text) for text in table.column("messages").to_pylist()] == expected


def test_rows_that_fit_are_untouched_in_each_shape() -> None:
    """Byte for byte, up to what is behind the last answer."""
    texts = [json.dumps({**row, **change}, indent=1) for row, change in SHAPES.values()]
    table = fit_table(pa.table({"messages": texts}), budget=9_999, counter="chars:4", purpose="training")
    assert table.column("messages").to_pylist() == texts


def test_a_list_of_sharegpt_is_one_too() -> None:
    """As the cells of a column `conversations` hold it, nested or as text."""
    assert fit_row([H, G, H, G], 20) == [H, G]
    nested = pa.table({"conversations": [[H, G, H, G]]})
    fitted = fit_table(
        nested, budget=20, counter="chars:4", purpose="training", column="conversations", columns=()
    )
    assert fitted.column("conversations").to_pylist() == [[H, G]]


REFUSED: list[tuple[Any, str]] = [
    ({"prompt": "a", "completion": "b"}, "{'role': 'assistant', 'content': row['completion']}"),
    ({"prompt": [U], "chosen": [A], "rejected": [A]}, "*row['chosen']]}"),
    ({"messages": [U], "chosen": A, "rejected": A}, "{'messages': [*row['messages'], row['chosen']]}"),
    ({"conversations": [H], "chosen": G, "rejected": G}, "{'conversations': [*row['conversations'], row['"),
    ({"messages": [U, A, U], "chosen": [A], "rejected": [A], "own": 1}, "with two answers: fit one of each"),
    (
        {"input": {"messages": [U]}, "preferred_output": [A], "non_preferred_output": [A]},
        "*row['preferred_output']]}",
    ),
    ({"prompt": "a", "chosen": "b", "rejected": "c"}, "{'role': 'user', 'content': row['prompt']}"),
    ({"chosen": [U, A], "rejected": [U, A]}, "fit one of each, {'messages': row['chosen']} and the same"),
    (
        {"prompt": "a", "completions": ["b"], "labels": [True]},
        "an answer in steps that are judged one by one",
    ),
    ({"prompt": [U]}, "a prompt without an answer, so nothing in it is trained on"),
    ({"input": [U], "output": "A"}, "{'messages': [*row['input'], {'role': 'assistant',"),
    ({"text": "<|im_start|>user"}, "it is a text, of which no turn can be evicted: write"),
    ({"segments": [{"label": True, "text": "a"}]}, "Axolotl's input_output"),
    ({"instruction": "a", "output": ["b", "c"]}, "'output' must be texts"),
    ({"instruction": "a", "output": "b", "history": [["c"]]}, "a list of pairs of texts: write"),
    ({"conversations": tagged("human", "function")}, "rename it, or write"),
    ({"conversations": [H, {"from": "gpt", "value": None}]}, "entry 1 needs a text under 'value'"),
    ({"conversations": "no list"}, "must be a list of messages"),
    ({"conversations": [H, G], "tools": "no JSON"}, "the text under 'tools' is not JSON"),
    ({"conversations": [H, G], "tools": "{}"}, "must be a list of tools"),
    ({"conversations": [H, G], "system": 5}, "'system' must be a text or a list of parts, not 5"),
]


@pytest.mark.parametrize(("row", "said"), REFUSED, ids=[said for _, said in REFUSED])
def test_what_is_not_read_is_refused_with_the_line_to_write(row: Any, said: str) -> None:
    """By its name, as a cell and as a line."""
    (found,) = fit_rows([row], 999)
    assert found["error"]["type"] == "FormatError"
    assert said in found["error"]["message"]
    task = BatchTask(operation="fit", purpose="training", budget=999, counter="chars:4")
    table = task.run_lines([json.dumps(row).encode()], [7], file="in.jsonl", into_lines=True)
    (error,) = table.column("error").to_pylist()
    assert (error["row"], said in error["message"]) == (7, True)


def test_a_line_of_no_shape_names_its_keys() -> None:
    """As any line does; a key that is named is looked for alone."""
    task = BatchTask(operation="fit", purpose="training", budget=999, counter="chars:4")
    for line, column, said in (
        ({"dialog": [U, A]}, "messages", "the line has no key 'messages' (its first keys: dialog)"),
        ({"dialog": [U, A], "text": "x"}, "dialog", None),
        ({"messages": [U, A], "text": "x"}, "messages", None),
        ({"row": {"conversations": [H, G]}}, "row", None),
        ({"conversations": [H, G]}, "conversations", None),
    ):
        asked = replace(task, column=column)
        table = asked.run_lines([json.dumps(line).encode()], [1], file="in.jsonl", into_lines=True)
        (error,) = table.column("error").to_pylist()
        assert (error and error["message"][: len(said or "")]) == said


@pytest.mark.parametrize(
    ("row", "column", "change"),
    [
        ({"messages": [U, A, U, A], "instruction": "i", "output": "o"}, "messages", {"messages": [U, A]}),
        ({"messages": [U, A, U, A], "prompt": "p", "completion": "c"}, "messages", {"messages": [U, A]}),
        ({"messages": [U, A, U, A], "conversations": [H, G]}, "messages", {"messages": [U, A]}),
        (
            {"messages": [U, A, U, A], "conversations": [H, G, H, G]},
            "conversations",
            {"conversations": [H, G]},
        ),
        (
            {"messages": [U], "chat": [U, A, U, A], "instruction": "i", "output": "o"},
            "chat",
            {"chat": [U, A]},
        ),
        (
            {"messages": [U, A, U, A], "prompt": "p", "chosen": [A], "rejected": [A]},
            "messages",
            {"messages": [U, A]},
        ),
        ({"messages": [U, A, U, A], "chosen": None, "rejected": None}, "messages", {"messages": [U, A]}),
    ],
)
def test_what_is_named_goes_before_messages_and_these_before_a_shape(
    row: dict[str, Any], column: str, change: dict[str, Any]
) -> None:
    """As a line, and as a cell where the column has that name."""
    task = BatchTask(operation="fit", purpose="training", budget=20, counter="chars:4", column=column)
    table = task.run_lines([json.dumps(row).encode()], [1], file="in.jsonl", into_lines=True)
    fitted = task(pa.table({column: [json.dumps(row)]}))
    for found in (table, fitted):
        assert found.column("error").to_pylist() == [None]
        assert json.loads(found.column(column)[0].as_py()) == {**row, **change}


def test_rows_that_were_rendered_beside_are_read() -> None:
    """As those of Alpaca, which have their whole text under `text`."""
    alpaca = {"instruction": "x" * 20, "input": "", "output": "x" * 20, "text": "Below is an instruction."}
    assert fit_rows([alpaca], 99)[0]["tokens_after"] == 10
    asked = {"prompt": [U, A, U], "completion": [A], "text": "<|im_start|>"}
    assert fit_row(asked, 20) == {**asked, "prompt": [U]}


@pytest.mark.parametrize(
    ("names", "column", "others"),
    [
        (("prompt", "completion"), "prompt", "'completion'"),
        (("prompt", "completion"), "completion", "'prompt'"),
        (("instruction", "input", "output"), "instruction", "'output'"),
        (("prompt", "chosen", "rejected"), "chosen", "'prompt' and 'rejected'"),
        (("messages", "chosen", "rejected"), "messages", "'chosen' and 'rejected'"),
        (("conversations", "chosen", "rejected"), "conversations", "'chosen' and 'rejected'"),
    ],
)
def test_a_column_that_is_a_part_of_each_row_is_refused(
    names: Sequence[str], column: str, others: str
) -> None:
    """What the model answers is in another; a column of messages beside them is whole."""
    table = pa.table({name: [json.dumps([U, A])] for name in names})
    with pytest.raises(
        ConfigurationError,
        match=f"column '{column}' holds one part of each conversation, and {others} the rest",
    ):
        fit_table(table, budget=99, counter="chars:4", purpose="training", column=column)
    assert fit_table(table, budget=99, counter="chars:4", column=column).num_rows == 1
    if column != "messages":
        whole = pa.table({"messages": [json.dumps([U, A])], **{name: ["x"] for name in (*names, "prompt")}})
        fitted = fit_table(whole, budget=99, counter="chars:4", purpose="training")
        assert fitted.column("error").to_pylist() == [None]


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("system", 5, "'system' must be a text or a list of parts, not 5"),
        ("tools", 5, "'tools' must be a list of tool schemas, not 5"),
        ("tools", [5], "'tools' must be a list of tool schemas, not [5]"),
        ("tools", "x", "the text under 'tools' is not JSON"),
    ],
)
def test_columns_that_are_no_system_text_and_no_tools_set_the_row_aside(
    name: str, value: Any, said: str
) -> None:
    """As they do under a key of a line; a row without one is fitted."""
    table = pa.table({"messages": [[U, A]] * 2, name: [value, None]})
    error, none = (
        fit_table(table, budget=99, counter="chars:4", purpose="training").column("error").to_pylist()
    )
    assert (error["type"], none) == ("FormatError", None)
    assert said in error["message"]
    task = BatchTask(operation="fit", purpose="training", budget=99, counter="chars:4", column="chat")
    line = json.dumps({"chat": [U, A], name: value}).encode()
    (error,) = task.run_lines([line], [1], file="in.jsonl", into_lines=True).column("error").to_pylist()
    assert said in error["message"]


def test_a_key_that_is_named_is_charged_with_what_is_beside_it() -> None:
    """Tools and system text of a line, as those of a table; for requests nothing else of it is read."""
    line = json.dumps({"chat": [U, A], "tools": [TOOL], "system": "x" * 40}).encode()
    task = BatchTask(operation="fit", purpose="training", budget=999, counter="chars:4", column="chat")
    for asked, tokens in ((task, _tokens([], tools=[TOOL]) + 30), (replace(task, purpose="requests"), 20)):
        table = asked.run_lines([line], [1], file="in.jsonl", into_lines=True)
        assert table.column("tokens_after").to_pylist() == [tokens]


def test_what_stands_beside_a_shape_is_read_where_its_key_is_named() -> None:
    """The row is one; and an empty input is no line of the instruction."""
    row = {"conversations": [H, G, H, G], "system": "x" * 40}
    table = pa.table({"conversations": [json.dumps(row)]})
    fitted = fit_table(
        table, budget=40, counter="chars:4", purpose="training", column="conversations", columns=()
    )
    (found,) = fitted.column("conversations").to_pylist()
    assert json.loads(found) == {**row, "conversations": [H, G]}
    alpaca = {"instruction": "x" * 40, "input": "", "output": "x" * 40}
    assert fit_rows([alpaca], 99)[0]["tokens_after"] == 20
    calls = {"conversations": [H, CALL, SEEN, G]}
    assert fit_rows([calls], 99)[0]["violations"] == []


def test_a_completion_is_what_is_trained_on() -> None:
    """Answers in the prompt are none, and a turn of the completion does not leave."""
    both = {"prompt": [U, A, U], "completion": [A, U, A]}
    assert fit_row(both, 40) == {"prompt": [U], "completion": [A, U, A]}
    assert fit_row(both, 39) == "BudgetExceededError"
    assert fit_row({"prompt": [U, A], "completion": [U]}, 99) == "NoTargetError"


def test_tools_and_system_text_are_charged_wherever_they_stand() -> None:
    """In the row, as JSON in a text, in columns of their own, or for all rows; unchanged in any case."""
    chat = [U, A, U, A]
    for row in (
        {"messages": chat, "tools": [TOOL]},
        {"messages": chat, "tools": json.dumps([TOOL])},
        {"conversations": chat, "tools": json.dumps([TOOL])},
    ):
        (found,) = fit_rows([row], 999)
        assert found["messages"] == row
        assert found["tokens_after"] == _tokens([], tools=[TOOL]) + 40
        assert fit_row(row, found["tokens_after"] - 20) == {**row, next(iter(row)): [U, A]}
    assert fit_row({"conversations": [H, G, H, G], "system": "x" * 40}, 40)["conversations"] == [H, G]
    table = pa.table({"messages": [json.dumps(chat)], "tools": [json.dumps([TOOL])], "system": ["x" * 40]})
    fitted = fit_table(table, budget=999, counter="chars:4", purpose="training")
    assert fitted.column("tokens_after")[0].as_py() > 140
    assert fit_table(table, budget=999, counter="chars:4").column("tokens_after")[0].as_py() == 40
    nested = pa.table({"messages": [chat], "tools": [[TOOL]]})
    fitted = fit_table(nested, budget=_tokens([], tools=[TOOL]) + 30, counter="chars:4", purpose="training")
    assert fitted.column("messages").to_pylist() == [[U, A]]
    (found,) = fit_rows([chat], 999, tools=[TOOL], system="x" * 40)
    assert found["tokens_after"] > 140
    assert found["messages"] == chat
    (own,) = fit_rows([[S, U, A]], 999, system="x" * 4_000)
    assert own["tokens_after"] == 30


def test_other_wire_forms_are_training_data_too() -> None:
    """A user message of nothing but results opens no turn."""
    use = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": "x"}
    chat = [U, say("assistant", "x" * 400), U, {"role": "assistant", "content": [use]}]
    chat += [{"role": "user", "content": [result]}, A]
    found = fit_row({"system": "x", "messages": chat, "max_tokens": 9}, 60, format="anthropic")
    assert found == {"system": "x", "messages": chat[2:], "max_tokens": 9}
    also = {"role": "user", "content": [result, {"type": "text", "text": "x"}]}
    pair = [U, {"role": "assistant", "content": [use]}, also, A]
    whole = fit_rows([pair], 999, format="anthropic")[0]["tokens_after"]
    assert fit_row(pair, whole, format="anthropic") == pair
    assert fit_row(pair, whole - 1, format="anthropic") == "BudgetExceededError"


# Counted by the model's own template.


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a model's tokenizer and its template."""
    return write_small_model(tmp_path_factory.mktemp("models") / "acme-8b")


def _rendered(messages: list[Any], tools: Any = None) -> int:
    """Count as `apply_chat_template(messages, tools=tools)` does, by an environment of our own."""
    environment = Environment(trim_blocks=True, lstrip_blocks=True)
    environment.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
    entries = [{**one, "content": one.get("content") or ""} for one in messages]
    for one in entries:
        for call in one.get("tool_calls") or ():
            if isinstance(call["function"]["arguments"], str):
                call["function"]["arguments"] = json.loads(call["function"]["arguments"])
    text = environment.from_string(CHATML).render(messages=entries, tools=tools, add_generation_prompt=False)
    return len(small_tokenizer().encode(text, add_special_tokens=False))


@pytest.mark.parametrize("budget", [700, 3_000, 12_000])
def test_counts_by_template_are_the_templates_own(data_dir: Path, folder: Path, budget: int) -> None:
    """Of every row that is kept, with tools and calls, and no beginning of another answer."""
    chats = [messages for _, messages in conversations(data_dir, 60)]
    counter = counter_from_tokenizer(folder)
    for tools in (None, [TOOL]):
        rows = fit_rows(chats, budget, counter=counter, tools=tools)
        kept = [row for row in rows if row["error"] is None]
        assert len(kept) > 5
        for row in kept:
            assert row["tokens_after"] == _rendered(copy.deepcopy(row["messages"]), tools) <= budget


# What does not go with it, and what is said without it.


@pytest.mark.parametrize(
    "options",
    [{"policy": "agent"}, {"policy": SlidingWindow()}, {"policy": "steady"}, {"repair": True}],
    ids=str,
)
def test_what_would_change_a_message_is_refused(options: Any) -> None:
    """Before the first row."""
    with pytest.raises(ConfigurationError, match="purpose='training'"):
        fit_rows([[U, A]], 99, **options)
    assert fit_row([U, A], 99, policy="default") == [U, A]


def test_what_has_no_purpose_is_refused() -> None:
    """An operation that does not fit, and a purpose that is none."""
    with pytest.raises(ConfigurationError, match="does not use purpose='training'"):
        BatchTask(operation="count", purpose="training")
    with pytest.raises(ConfigurationError, match="purpose"):
        BatchTask(operation="fit", purpose="learning")  # type: ignore[arg-type]


def test_strict_sets_faults_aside() -> None:
    """As for any fit; pending calls are none."""
    orphan = [U, say("tool", tool_call_id="b"), A]
    assert fit_row(orphan, 99, strict=True) == "InvalidHistoryError"
    (row,) = fit_rows([orphan], 99)
    assert [one["rule"] for one in row["violations"]] == ["orphan_result"]


def test_without_a_budget_the_whole_window_is_room() -> None:
    """A trainer has no answer written; without a model there is an error before the first row."""
    chat = [U, say("assistant", "word " * 120_000)]
    assert fit_row(chat, None, counter=None, model="gpt-4o") == chat
    for budget in (None, "80%"):
        with pytest.raises(ConfigurationError, match="budget"):
            fit_row({"messages": [U, A], "model": "gpt-4o"}, budget)


def test_the_model_of_a_row_is_who_wrote_it() -> None:
    """Neither its tokenizer counts, nor does its window hold the budget."""
    row = {"conversations": [H, {"from": "gpt", "value": "word " * 40_000}], "model": "gpt-4"}
    assert fit_row(row, 60_000) == row


BLOCKS = '{"blocks": [{"name": "history", "strategy": {"kind": "truncate_text", "keep": "start"}}]}'


def _cut_rows(folder: Path) -> Path:
    """Write ten rows, in two of which the newest message is an answer that is too long."""
    long = say("assistant", "y" * 4_000)
    chats = [[U, long], [U, A], [U, long, U], [long, say("user", "y" * 4_000)], [U, A, U, A, U, long]]
    rows = [json.dumps({"messages": chat}) for chat in [*chats, *[[U, A]] * 5]]
    (folder / "in.jsonl").write_text("".join(f"{row}\n" for row in rows), "utf-8")
    return folder / "in.jsonl"


@pytest.mark.parametrize(("policy", "cut"), [(None, 2), (BLOCKS, 3)], ids=["fit", "blocks"])
def test_without_it_a_run_counts_the_answers_that_it_cut(
    tmp_path: Path, policy: str | None, cut: int
) -> None:
    """Wherever they are, where no column says it, too."""
    task = BatchTask(operation="fit", policy=policy, budget=60, counter="chars:4", columns=())
    done = run_batch(task, _cut_rows(tmp_path), target=tmp_path / "out.jsonl", workers=1)
    assert (done.rows, done.cut_targets) == (10, cut)


class EachCut:
    """Shortens every long text."""

    name = "each_cut"

    def evict(self, request: EvictionRequest) -> EvictionResult:
        """Keep all messages."""
        found = {at: request.texts(at) for unit in request.units for at in unit.indices}
        edits = [
            Edit(index=at, texts={slot.path: "Cut." for slot in slots})
            for at, slots in found.items()
            if any(len(slot.text) > 1_000 for slot in slots)
        ]
        return EvictionResult(kept=request.units, edits=edits)


def test_every_answer_that_was_cut_is_counted() -> None:
    """Several in one row, and older ones; none of weight 0, and no message of the policy's own."""
    long, light = say("assistant", "y" * 4_000), say("assistant", "y" * 4_000, weight=0)
    own = Context()
    own.add("own", ["You are kind.", "You are brief."])
    own.add("history", ["Hello."], strategy=EachCut())
    for policy in (EachCut(), own):
        task = BatchTask(operation="fit", policy=policy, budget=900, counter="chars:4", columns=())
        for chat, cut in (
            ([U, long, U, long], 2),
            ([S, U, long, U, A], 1),
            ([U, long, U], 1),
            ([U, light, U, long], 1),
            ([say("user", "y" * 4_000), A, U], 0),
        ):
            (error,) = task(pa.table({"messages": [json.dumps(chat)]})).column("error").to_pylist()
            assert (error, task.take_tally()) == (None, {"cut_targets": cut})


def test_what_a_column_cannot_store_counts_no_cut() -> None:
    """The row is set aside, so the answer that was cut in it is in no output."""
    own = Context()
    own.add("own", [say("user", "Be kind.", name="Ann")])
    own.add("history", ["Hello."], strategy=EachCut())
    task = BatchTask(operation="fit", policy=own, budget=900, counter="chars:4", columns=())
    chat = [U, say("assistant", "y" * 4_000), U]
    (error,) = task(pa.table({"messages": [chat]})).column("error").to_pylist()
    assert error["message"].startswith("the column's type cannot store the fitted messages")
    assert task.take_tally() == {}
    (error,) = task(pa.table({"messages": [json.dumps(chat)]})).column("error").to_pylist()
    assert (error, task.take_tally()) == (None, {"cut_targets": 1})


def test_a_run_that_goes_on_counts_what_was_cut_before(tmp_path: Path) -> None:
    """It is kept with each piece."""
    task, out = BatchTask(operation="fit", budget=60, counter="chars:4"), tmp_path / "out.jsonl"

    def stop(done: Any) -> None:
        raise InterruptedError

    source = _cut_rows(tmp_path)
    with pytest.raises(InterruptedError):
        run_batch(task, source, target=out, workers=1, chunk_bytes=4_000, on_progress=stop)
    done = run_batch(task, source, target=out, workers=1, chunk_bytes=4_000)
    assert done.resumed_rows
    assert (done.rows, done.cut_targets) == (10, 2)


def test_a_repair_is_no_cut(tmp_path: Path) -> None:
    """The newest answer is mended, and says what it said."""
    blank = {"role": "assistant", "content": [{"type": "text", "text": "Hot."}, {"type": "text", "text": ""}]}
    source = tmp_path / "in.jsonl"
    source.write_text(json.dumps({"messages": [U, blank], "max_tokens": 9, "system": "x"}), "utf-8")
    task = BatchTask(operation="fit", budget=99, counter="chars:4", format="anthropic", repair=True)
    assert run_batch(task, source, target=tmp_path / "out.jsonl", workers=1).cut_targets == 0


def test_parquet_comes_back_as_parquet(tmp_path: Path) -> None:
    """With its other columns, and the rows in their places."""
    table = pa.table({"id": [1, 2, 3], "messages": [[U, A, U, A], [U], [U, A]]})
    pq.write_table(table, tmp_path / "in.parquet")
    task = BatchTask(operation="fit", purpose="training", budget=20, counter="chars:4", columns=())
    done = run_batch(task, tmp_path / "in.parquet", target=tmp_path / "out.parquet", workers=1)
    assert done.errors == {"NoTargetError": 1}
    found = pq.read_table(tmp_path / "out.parquet")
    assert found.column("messages").to_pylist() == [[U, A], None, [U, A]]
    assert found.column("id").to_pylist() == [1, 2, 3]
