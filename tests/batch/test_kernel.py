"""The kernel of batches: each row is what the library says of it alone, whatever happens to others."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.batch.conversations import conversations, table_of
from trimtab import Budget, CharCounter, Context, SlidingWindow, fit, validate
from trimtab.batch import OPERATIONS, BatchTask, count_table, fit_table, validate_table
from trimtab.counting import measure
from trimtab.errors import ConfigurationError, ContextError, UnknownNameError
from trimtab.replay import replay
from trimtab.report import Report

CHAT = [{"role": "user", "content": f"question {n}"} for n in range(9)]
GEMINI = [{"role": "user", "parts": [{"text": "hi"}]}, {"role": "model", "parts": [{"text": "yes"}]}]
BEDROCK = [{"role": "user", "content": [{"text": "hi"}]}]
CALL = {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}
RESPONSES = [
    {"role": "user", "content": "hi"},
    CALL,
    {"type": "function_call_output", "call_id": "a", "output": "4"},
]
BLOCKS = [
    {"type": "text", "text": "look"},
    {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
]
ANTHROPIC = [{"role": "user", "content": BLOCKS}]


def _texts(*values: object) -> pa.Table:
    return pa.table({"id": list(range(len(values))), "messages": [json.dumps(value) for value in values]})


def test_a_table_is_fitted_as_fit_does_each(data_dir: Path) -> None:
    """Messages, numbers, fates, reasons and violations are those of `fit`, on real conversations."""
    rows = list(conversations(data_dir, 300))
    table = fit_table(table_of(data_dir, 300), budget=600, counter="chars:4")
    assert table.column("id").to_pylist() == [name for name, _ in rows]
    changed = 0
    for (_, messages), found in zip(rows, table.to_pylist(maps_as_pydicts="strict"), strict=True):
        if found["error"] is not None:
            assert found["error"]["type"] == "BudgetExceededError"
            assert {found[key] for key in ("messages", "tokens_after", "fates")} == {None}
            continue
        report = (alone := fit(messages, 600, counter=CharCounter(4))).report
        assert json.loads(found["messages"]) == alone.messages
        assert (found["tokens_before"], found["tokens_after"]) == (report.tokens_before, report.tokens_after)
        assert found["fates"] == [row.fate for row in report.messages]
        assert found["reasons"] == Counter(row.reason for row in report.messages if row.reason is not None)
        assert [one["rule"] for one in found["violations"]] == [one.rule for one in report.violations]
        changed += "evicted" in found["fates"]
    assert changed >= 20


def test_a_row_that_nothing_left_keeps_its_text() -> None:
    """The very same bytes, with the spaces and the order of keys somebody chose."""
    text = '[ {"content": "hi",  "role": "user"} ]'
    assert fit_table(pa.table({"messages": [text]}), budget=99).column("messages").to_pylist() == [text]


def test_bad_rows_are_set_aside_with_their_number_and_reason() -> None:
    """They stay in their place, and the rows around them are done."""
    texts = [json.dumps(CHAT), "[{", None, '"hello"', json.dumps([{"role": "nobody", "content": "x"}])]
    table = fit_table(pa.table({"messages": [*texts, json.dumps(CHAT)]}), budget=20, counter="chars:4")
    errors = table.column("error").to_pylist()
    assert [error["file"] for error in errors if error] == [None] * 4  # a table is of no file
    assert [error and (error["row"], error["type"]) for error in errors] == [
        None,
        (2, "FormatError"),
        (3, "FormatError"),
        (4, "FormatError"),
        (5, "FormatError"),
        None,
    ]
    assert "not JSON" in errors[1]["message"]
    assert "null" in errors[2]["message"]
    assert table.column("tokens_after").to_pylist() == [18, None, None, None, None, 18]


def test_half_a_surrogate_pair_stops_no_run() -> None:
    """No encoding has it: where a result says it, it is escaped there, and the row is done."""
    orphan = [{"role": "user", "content": "hi"}, {"role": "tool", "tool_call_id": "\ud83d", "content": "x"}]
    (row,) = validate_table(pa.table({"messages": [json.dumps(orphan)]})).to_pylist()
    assert row["error"] is None
    assert row["violations"][0]["call_id"] == "\\ud83d"


@pytest.mark.parametrize(
    ("messages", "format"),
    [(CHAT, "auto"), (GEMINI, "auto"), (BEDROCK, "bedrock"), (RESPONSES, "auto"), (ANTHROPIC, "auto")],
)
def test_every_wire_form_goes_as_text_and_as_nested_columns(messages: list[Any], format: str) -> None:
    """Both give the same numbers; nested messages come back in the type they had."""
    nested = pa.table({"messages": pa.array([messages])})
    by_text, by_column = (
        fit_table(table, budget=5_000, format=format) for table in (_texts(messages), nested)
    )
    assert by_column.column("error").to_pylist() == [None]
    for name in ("tokens_after", "fates", "reasons", "violations"):
        assert by_column.column(name).equals(by_text.column(name))
    assert by_column.column("messages").equals(nested.column("messages"))


def test_nested_messages_that_leave_are_gone_from_the_column() -> None:
    """The type stays, nulls for keys that a message does not have included."""
    chat = [*CHAT, {"role": "assistant", "content": "yes", "name": "ada"}]
    nested = pa.table({"messages": pa.array([chat])})
    fitted = fit_table(nested, budget=20, counter="chars:4")
    kept = [
        {key: one[key] for key in one if one[key] is not None} for one in fitted.to_pylist()[0]["messages"]
    ]
    assert kept == fit(chat, 20, counter=CharCounter(4)).messages
    assert fitted.schema.field("messages").type == nested.schema.field("messages").type


def test_a_result_the_column_has_no_place_for_is_an_error_of_its_row() -> None:
    """Arrow would drop the key of an inserted message unseen."""
    kind = pa.list_(
        pa.struct([("role", pa.string()), ("parts", pa.list_(pa.struct([("text", pa.string())])))])
    )
    table = pa.table({"messages": pa.array([GEMINI], type=kind)})
    body = pa.table({"messages": pa.array([{"contents": GEMINI}], type=pa.struct([("contents", kind)]))})
    assert fit_table(table, budget=500).column("error").to_pylist() == [None]
    error = fit_table(body, budget=500, system="be brief").column("error").to_pylist()[0]
    assert "cannot store" in error["message"]


def test_request_bodies_keep_what_they_hold() -> None:
    """The model a body names is counted for, and its keys stay beside the fitted messages."""
    body = {"model": "gpt-4o", "messages": CHAT, "temperature": 0.5}
    fitted = json.loads(fit_table(_texts(body), budget=30).column("messages").to_pylist()[0])
    assert fitted == fit(body, 30).request
    assert fitted["temperature"] == 0.5


def test_a_policy_of_blocks_takes_conversations_apart(tmp_path: Path) -> None:
    """A file, data and a `Context` do the same: system messages have their block, history the rest."""
    data = {
        "budget": 20,
        "counter": "chars:4",
        "blocks": [{"name": "system", "pinned": True}, {"name": "history", "strategy": "drop"}],
    }
    path = tmp_path / "policy.json"
    path.write_text(json.dumps(data))
    table = _texts([{"role": "system", "content": "be brief"}, *CHAT[:3]], CHAT)
    from trimtab.policy import load_policy

    found = [fit_table(table, policy).to_pylist() for policy in (str(path), data, load_policy(data))]
    assert found[0] == found[1] == found[2]
    assert [row["fates"] for row in found[0]] == [["kept"] * 4, ["evicted"] * 9]


def test_the_system_text_of_a_context_is_sent_beside_that_of_a_row() -> None:
    """A block's behind it; what stands beside the blocks is one too many where a row has its own."""
    talk = [{"role": "user", "content": "Hi"}]
    table = _texts(talk, {"messages": talk}, {"messages": talk, "system": "Be kind."})
    block = Context(900, counter=CharCounter()).add("system", "Be brief.").add("history", [])
    beside = Context(900, counter=CharCounter(), system="Be brief.").add("history", [])
    *plain, both = fit_table(table, block, format="anthropic").to_pylist()
    *alone, refused = fit_table(table, beside, format="anthropic").to_pylist()
    assert {json.loads(row["messages"])["system"] for row in (*plain, *alone)} == {"Be brief."}
    assert json.loads(both["messages"])["system"] == "Be kind.\n\nBe brief."
    assert "system is given twice" in refused["error"]["message"]


def test_steady_is_a_policy_too() -> None:
    """As `fit(steady=True)` does it, which is deeper than `fit` by itself."""
    chat = [
        {"role": role, "content": f"{turn} " * 40} for turn in range(37) for role in ("user", "assistant")
    ]
    [deep], [flat] = (
        fit_table(_texts(chat), word, budget=900, counter="chars:4").column("tokens_after").to_pylist()
        for word in ("steady", "default")
    )
    made = fit(chat, 900, counter=CharCounter(4), steady=True)
    assert deep == made.report.tokens_after < flat


def test_a_strategy_is_a_policy_too() -> None:
    """By its word, as data and as an object; another kind of policy is refused."""
    kind = {"kind": "sliding_window", "target_ratio": 0.5}
    found = [
        fit_table(_texts(CHAT), policy, budget=20, counter="chars:4").column("tokens_after").to_pylist()
        for policy in (kind, json.dumps(kind), SlidingWindow(target_ratio=0.5))
    ]
    alone = fit(CHAT, 20, counter=CharCounter(4), strategy=SlidingWindow(target_ratio=0.5))
    assert found == [[alone.report.tokens_after]] * 3
    with pytest.raises(ConfigurationError, match="'default' or 'steady', not 'session'"):
        fit_table(_texts(CHAT), "session", budget=20)


def test_counts_are_those_of_measure(data_dir: Path) -> None:
    """Tokens, whether they are exact, and the margin."""
    rows = list(conversations(data_dir, 60))
    table = count_table(table_of(data_dir, 60), model="gpt-4o")
    for (_, messages), found in zip(rows, table.to_pylist(), strict=True):
        alone = measure(messages, model="gpt-4o")
        assert (found["tokens"], found["exact"], found["margin_tokens"]) == (
            alone.tokens,
            alone.exact,
            alone.margin_tokens,
        )


def test_violations_are_those_of_validate() -> None:
    """One that is invalid is no error: its row says what is wrong."""
    bad = [{"role": "tool", "tool_call_id": "a", "content": "4"}]
    table = validate_table(_texts(CHAT, bad))
    assert table.column("valid").to_pylist() == [True, False]
    assert [one["rule"] for one in table.column("violations").to_pylist()[1]] == [validate(bad)[0].rule]
    assert table.column("error").to_pylist() == [None, None]


def test_a_replay_gives_the_totals_of_each() -> None:
    """Calls, tokens and price under a policy."""
    chat = [{"role": ("user", "assistant")[n % 2], "content": f"{n} " * 50} for n in range(20)]
    task = BatchTask(operation="replay", policy="default", budget=400, counter="chars:4", pricing="openai")
    found = task(_texts(chat)).to_pylist()[0]
    totals = replay(chat, "default", budget=400, counter="chars:4", pricing="openai").totals
    assert (found["calls"], found["tokens"], found["price"]) == (totals.calls, totals.tokens, totals.price)


def _asked(operation: Any, **options: Any) -> BatchTask:
    room = {} if operation in ("count", "validate") else {"budget": 20}
    counter = {} if operation == "validate" else {"counter": "chars:4"}
    return BatchTask(operation=operation, **counter, **room, **options)


COLUMNS = {
    "fit": ["tokens_before", "tokens_after", "fates", "reasons", "violations"],
    "count": ["tokens", "exact", "margin_tokens", "over_margin_tokens", "counter", "unknown"],
    "validate": ["valid", "violations"],
    "replay": [
        *("calls", "tokens", "shared_tokens", "read_tokens", "write_tokens", "base_tokens", "evicted"),
        *("over_limit", "invalid", "refused", "price"),
    ],
}
"""As docs/batch.md has them."""


@pytest.mark.parametrize("operation", OPERATIONS)
def test_columns_that_are_asked_for_are_those_of_all_and_no_others(operation: Any) -> None:
    """Each alone, some in any order, and none; the columns of the table and errors are there anyway."""
    table = _texts(CHAT, [], "nothing", CHAT[:1])
    whole = _asked(operation)(table)
    names = COLUMNS[operation]
    assert whole.column_names == ["id", "messages", *names, "error"]
    for some in ((), *((name,) for name in names), tuple(dict.fromkeys((names[0], names[-1])))):
        task = _asked(operation, columns=some)
        expected = whole.select(["id", "messages", *some, "error"])
        assert task(table).equals(expected)
        assert task.schema(table.schema).equals(expected.schema)
        assert pa.Table.from_batches(task.batches(table.to_batches())).equals(expected)
        assert pickle.loads(pickle.dumps(task))(table).equals(expected)
    assert whole.column("error").to_pylist()[2]["type"] == "FormatError"


def test_columns_are_named_without_the_prefix_and_what_is_there_anyway_may_be_named() -> None:
    """Whatever their order they are the same task, and stand in the order that all have."""
    given = ("error", "tokens_after", "chat", "tokens_before")
    task = _asked("fit", columns=given, column="chat", prefix="t_")
    assert task == _asked("fit", columns=["tokens_before", "tokens_after"], column="chat", prefix="t_")
    table = pa.table({"chat": [json.dumps(CHAT)]})
    assert task(table).column_names == ["chat", "t_tokens_before", "t_tokens_after", "t_error"]
    taken = table.append_column("fates", pa.array([1]))
    assert _asked("fit", columns=["chat"], column="chat")(taken).column("fates").to_pylist() == [1]


@pytest.mark.parametrize("policy", [None, "drop_newest", {"blocks": [{"name": "history"}]}])
@pytest.mark.parametrize("chat", [CHAT, CHAT[:2]])
def test_numbers_alone_make_no_report(policy: Any, chat: list[Any]) -> None:
    """Which takes as long as the fit; only what became of messages needs it."""

    def reports(columns: tuple[str, ...]) -> int:
        task, made = _asked("fit", columns=columns, policy=policy), Counter[bool]()
        task(table := _texts(chat))
        code = Report.__init__.__code__
        sys.setprofile(lambda frame, event, _: made.update([event == "call" and frame.f_code is code]))
        try:
            task(table)
        finally:
            sys.setprofile(None)
        return made[True]

    assert reports(("tokens_before", "tokens_after")) == 0
    assert reports(("fates",)) == 1


@pytest.mark.parametrize("operation", OPERATIONS)
def test_the_schema_is_told_before_anything_is_read(operation: Any) -> None:
    """Spark and Ray ask for it; an empty table has it as well."""
    task = BatchTask(operation=operation, budget=None if operation in ("count", "validate") else 500)
    table = _texts(CHAT)
    assert task(table).schema.equals(task.schema(table.schema))
    assert task(table.slice(0, 0)).schema.equals(task.schema(table.schema))


def test_batches_are_numbered_on() -> None:
    """As `mapInArrow` hands them over, one by one."""
    table = pa.table({"messages": [json.dumps(CHAT), "x", json.dumps(CHAT), "y"]})
    batches = BatchTask(operation="count").batches(iter(table.to_batches(max_chunksize=2)))
    errors = pa.Table.from_batches(batches).column("error").drop_null().to_pylist()
    assert [error["row"] for error in errors] == [2, 4]


def test_a_task_survives_pickling_and_leaves_its_tokenizer_behind() -> None:
    """A worker loads its own."""
    task = BatchTask(operation="fit", model="gpt-4o", budget=Budget(99))
    fresh = pickle.dumps(task)
    expected = task(_texts(CHAT))
    assert pickle.dumps(task) == fresh
    assert pickle.loads(fresh) == task
    assert pickle.loads(fresh)(_texts(CHAT)).equals(expected)


@pytest.mark.parametrize(
    ("table", "options", "said"),
    [
        (_texts(CHAT), {"column": "message"}, "no column 'message'.*did you mean messages"),
        (
            _texts(CHAT).append_column("error", pa.array([1])),
            {},
            "already has a column 'error': pass a prefix",
        ),
        (_texts(CHAT), {"column": "id"}, "column 'id' has type int64"),
        (_texts(CHAT), {"model": "nobody-1"}, "nobody-1"),
        (_texts(CHAT), {"format": "gemnii"}, "gemnii"),
    ],
)
def test_what_is_wrong_with_all_rows_is_refused_at_once(table: pa.Table, options: Any, said: str) -> None:
    """It is no error of a row."""
    with pytest.raises(ConfigurationError, match=said):
        count_table(table, **options)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"operation": "fit", "budget": -3}, "at least 1 token, not -3"),
        ({"operation": "fit", "budget": "8kk"}, "not '8kk'"),
        ({"operation": "fit", "budget": 50, "model": 3}, "the name of a model, not 3"),
        ({"operation": "count", "counter": "words"}, "counter='words'"),
        ({"operation": "replay", "budget": 30, "pricing": "zz"}, "no pricing is called 'zz'"),
        ({"operation": "fit", "budget": 50, "policy": {"blocks": [{"name": "a"}, {"name": "b"}]}}, "history"),
    ],
)
def test_whoever_hands_over_tables_is_told_what_is_wrong_with_all_rows(options: Any, said: str) -> None:
    """A table that is called with, and batches one by one: no table comes out with every row set aside."""
    table, task = _texts(CHAT), BatchTask(**options)
    for run in (task, lambda table: list(task.batches(table.to_batches()))):
        with pytest.raises(ContextError, match=said):
            run(table)


def test_system_parts_are_in_the_form_of_the_rows() -> None:
    """Which that is each row says, so that parts of a form that is not the first are not refused before."""
    table = _texts({"modelId": "x", "messages": BEDROCK}, CHAT)
    fitted = fit_table(table, budget=500, counter="chars:4", system=[{"text": "be brief"}])
    assert [row["error"] is None for row in fitted.to_pylist()] == [True, False]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"operation": "count", "system": 3}, "system must be a text.*not 3"),
        ({"operation": "count", "tools": "abc"}, "tools must be a list of tool schemas.*'abc'"),
        ({"operation": "count", "tools": [3]}, r"tools\[0\] is int, 3"),
        ({"operation": "fit", "strict": "no"}, "strict must be True or False, not 'no'"),
        ({"operation": "fit", "repair": 1}, "repair must be True or False, not 1"),
        ({"operation": "fit", "pending_calls": "abc"}, r"write \['abc'\]"),
        ({"operation": "count", "column": None}, "column must be the name of a column, not None"),
        ({"operation": "count", "prefix": None}, "prefix must be a text, '' for none, not None"),
        (
            {"operation": "count", "policy": "drop"},
            "'count' does not use policy='drop'.*'fit', 'replay'",
        ),
        ({"operation": "validate", "budget": -3}, "'validate' does not use budget=-3"),
        ({"operation": "validate", "pricing": "openai"}, "does not use pricing='openai'"),
        ({"operation": "replay", "strict": True}, r"does not use strict=True.*\('fit'\)"),
        ({"operation": "replay", "pending_calls": ["a"]}, "does not use pending_calls="),
        ({"operation": "fit", "pricing": "openai"}, "does not use pricing='openai'"),
        (
            {"operation": "fit", "columns": ["tokens_afer"]},
            "no column 'tokens_afer'.*did you mean tokens_after",
        ),
        ({"operation": "count", "columns": ["fates"]}, "'count' has no column 'fates'; there are: tokens,"),
        ({"operation": "fit", "columns": ["chat"]}, "no column 'chat'"),
        (
            {"operation": "fit", "columns": "fates"},
            r"columns must be a list of names, such as columns=\('tokens_before',",
        ),
        ({"operation": "fit", "columns": 3}, "columns must be a list of names"),
    ],
)
def test_a_task_with_an_option_that_is_none_is_not_made(options: Any, said: str) -> None:
    """The error names the option and what was given; one that the operation lacks is not passed over."""
    with pytest.raises(ConfigurationError, match=said):
        BatchTask(**options)


def test_pending_calls_hold_for_every_row() -> None:
    """An iterator was read by the first."""
    task = BatchTask(operation="validate", pending_calls=iter(["a"]))  # type: ignore[arg-type]
    assert task.pending_calls == {"a"}


@pytest.mark.parametrize("given", [_texts(CHAT).to_reader(), _texts(CHAT).to_pylist(), {"messages": [1]}])
def test_what_is_no_table_is_refused_with_how_to_make_one(given: object) -> None:
    """A reader as DuckDB gives one, rows, and what Ray hands over by default."""
    with pytest.raises(ConfigurationError, match=r"read_all.*from_pandas.*from_pylist.*batch_format"):
        count_table(given)


def test_an_operation_nobody_knows_is_refused() -> None:
    """Where it is given."""
    with pytest.raises(ConfigurationError, match="'fit', 'count', 'validate'"):
        BatchTask(operation="trim")  # type: ignore[arg-type]


def test_an_empty_policy_is_refused() -> None:
    """It has no block for a conversation to go into."""
    with pytest.raises(ConfigurationError, match="no blocks"):
        fit_table(_texts(CHAT), Context(500))


def test_an_unknown_word_for_a_policy_is_refused() -> None:
    """With those that are spelled like it."""
    with pytest.raises(UnknownNameError, match="drop"):
        fit_table(_texts(CHAT), "dropp", budget=500)


def test_half_a_surrogate_pair_comes_out_as_it_went_in() -> None:
    """No encoding has it; JSON escapes it."""
    chat = [*CHAT, {"role": "user", "content": "\ud800"}]
    table = fit_table(pa.table({"messages": [json.dumps(chat)]}), budget=20, counter="chars:4")
    assert json.loads(table.column("messages").to_pylist()[0])[-1] == chat[-1]


def test_without_pyarrow_the_error_says_what_to_install() -> None:
    """Importing works, as a command line has to say it."""
    code = """
import sys
sys.modules["pyarrow"] = None
from trimtab.batch import BatchTask
from trimtab.errors import MissingExtraError
try:
    BatchTask(operation="count")(None)
except MissingExtraError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'trimtab[batch]'" in done.stdout


def _first_two(request: Any) -> list[Any]:
    messages = list(request)
    return [messages[0], messages[1]]


def test_a_policy_of_ones_own_need_not_do_with_one_message() -> None:
    """What is tried before the first row is short, and is no row."""
    chat = [{"role": "system", "content": "Be kind."}, *CHAT[:1]]
    task = BatchTask(operation="replay", policy=_first_two, budget=50, counter="chars:4")
    done = task(pa.table({"messages": [json.dumps(chat)]}))
    assert done.column("error").to_pylist() == [None]


def test_no_rules_remove_those_of_a_policy() -> None:
    """An empty list is none; without the argument those of the policy are shown."""
    table = pa.table({"messages": [json.dumps(CHAT)]})
    policy = Context(99, counter="chars:4", rules=["Of the policy."]).add("history", [])
    for rules, count in ((None, 1), ([], 0), (["Given."], 0)):
        (made,) = fit_table(table, policy=policy, rules=rules).column("messages").to_pylist()
        assert made.count("Of the policy.") == count
