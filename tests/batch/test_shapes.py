"""Tables and lines as people have them: each is done right, or says what is wrong with it."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from trimtab import CharCounter, fit
from trimtab.batch import BatchTask, count_table, fit_table, run_batch
from trimtab.errors import ConfigurationError
from trimtab.strategies import Summarize

LONG = [{"role": "user", "content": f"question {n}"} for n in range(9)]
SHORT = [{"role": "user", "content": "What is tea?"}]
KEPT = fit(LONG, 20, counter=CharCounter(4)).messages
MESSAGE = pa.struct([("role", pa.string()), ("content", pa.string())])
COUNT = BatchTask(operation="count", counter="chars:4")


def _fit(messages: Any, **beside: Any) -> pa.Table:
    return fit_table(pa.table({"messages": messages, **beside}), budget=20, counter="chars:4")


def _errors(table: pa.Table) -> list[Any]:
    return [error and error["message"] for error in table.column("error").to_pylist()]


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "kind",
    [
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.binary(),
        pa.large_binary(),
        pa.binary_view(),
        pa.dictionary(pa.int32(), pa.string()),
        pa.json_(),
    ],
    ids=str,
)
def test_text_of_any_kind_comes_back_in_its_kind(kind: pa.DataType, tmp_path: Path) -> None:
    """Long, short, as views, as a dictionary, as JSON of Parquet's own; nulls are set aside."""
    texts = pa.array([json.dumps(LONG), None, json.dumps(SHORT)])
    if isinstance(kind, pa.BaseExtensionType):
        column = pa.ExtensionArray.from_storage(kind, texts.cast(kind.storage_type))
    else:
        column = texts.cast(kind)
    fitted = _fit(column)
    assert fitted.schema.field("messages").type == kind
    found = fitted.column("messages").to_pylist()
    assert [one and json.loads(one) for one in found] == [KEPT, None, SHORT]
    pq.write_table(pa.table({"messages": column}), tmp_path / "in.parquet")
    task = BatchTask(operation="fit", budget=20, counter="chars:4")
    for name in ("out.parquet", "out.jsonl"):
        run_batch(task, tmp_path / "in.parquet", target=tmp_path / name, workers=1)
    again = pq.read_table(tmp_path / "out.parquet").column("messages").to_pylist()
    assert [one and json.loads(one) for one in again] == [KEPT, None, SHORT]
    lines = (tmp_path / "out.jsonl").read_bytes().splitlines()
    assert [json.loads(line)["messages"] for line in lines] == [KEPT, None, SHORT]


@pytest.mark.parametrize(
    "kind",
    [
        pa.list_(MESSAGE),
        pa.large_list(MESSAGE),
        pa.list_view(MESSAGE),
        pa.list_(pa.map_(pa.string(), pa.string())),
    ],
    ids=str,
)
def test_lists_of_any_kind_come_back_in_their_kind(kind: pa.DataType) -> None:
    """Messages as structs or as maps; a null is set aside, a conversation without messages is none to cut."""
    values: list[Any] = [LONG, None, []]
    if pa.types.is_map(kind.value_type):
        values = [value and [list(one.items()) for one in value] for value in values]
    fitted = _fit(pa.array(values, type=kind))
    assert fitted.schema.field("messages").type == kind
    assert fitted.column("messages").to_pylist(maps_as_pydicts="strict") == [KEPT, None, []]


def test_chunks_and_no_rows_are_a_table_like_any() -> None:
    """Rows are numbered through; without rows there are the columns."""
    chunks = pa.chunked_array([[json.dumps(SHORT)], [], ["x", "y"]])
    table = count_table(pa.table({"messages": chunks}), counter="chars:4")
    assert [error and error["row"] for error in table.column("error").to_pylist()] == [None, 2, 3]
    assert count_table(pa.table({"messages": pa.chunked_array([], pa.string())})).num_rows == 0


def test_no_rows_of_a_type_that_arrow_makes_no_empty_column_of() -> None:
    """The column of the table itself is kept."""
    kinds, offsets = pa.array([0, 1], pa.int8()), pa.array([0, 0], pa.int32())
    union = pa.UnionArray.from_dense(kinds, offsets, [pa.array([1]), pa.array(["x"])])
    table = pa.table({"messages": [json.dumps(SHORT)] * 2, "other": union})
    for task in (COUNT, BatchTask(operation="fit", budget=20, counter="chars:4")):
        none = task(table.slice(0, 0))
        assert (none.num_rows, none.schema) == (0, task.schema(table.schema))


@pytest.mark.parametrize("index", [pa.int8(), pa.uint8()], ids=str)
def test_chunks_of_a_dictionary_have_more_words_than_one_could(index: pa.DataType) -> None:
    """As tables that were put together of several categoricals have them; the type stays."""
    kind, texts = pa.dictionary(index, pa.string()), [f"{n} " * 80 for n in range(300)]
    chats = [json.dumps([{"role": "user", "content": text}, *SHORT]) for text in texts]
    parts = [pa.array(chats[at : at + 100]).dictionary_encode().cast(kind) for at in (0, 100, 200)]
    fitted = _fit(pa.chunked_array(parts))
    assert fitted.schema.field("messages").type == kind
    assert [json.loads(one) for one in fitted.column("messages").to_pylist()] == [SHORT] * 300
    kept = fit_table(pa.table({"messages": pa.chunked_array(parts)}), budget=900, counter="chars:4")
    assert kept.column("messages").to_pylist() == chats
    few = fit_table(
        pa.table({"messages": pa.array(chats[:100] * 3).dictionary_encode().cast(kind)}), budget=900
    )
    assert few.column("messages").num_chunks == 1  # files of Arrow's own take a dictionary once


def _columns(*names: str) -> pa.StructArray:
    return pa.StructArray.from_arrays([pa.array(["user"]) for _ in names], names=list(names))


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (pa.array([1.5]), "has type double"),
        (pa.RunEndEncodedArray.from_arrays([1], ["x"]), "has type run_end_encoded"),
        (
            pa.UnionArray.from_dense(pa.array([0], pa.int8()), pa.array([0], pa.int32()), [pa.array(["x"])]),
            "union",
        ),
        (pa.ListArray.from_arrays([0, 1], _columns("role", "content", "content")), "with unique field names"),
    ],
)
def test_columns_that_hold_no_conversations_are_refused(column: pa.Array, said: str) -> None:
    """Before a row is done, by their type."""
    with pytest.raises(ConfigurationError, match=said):
        _fit(column)


def test_two_columns_of_one_name_are_refused() -> None:
    """A row of JSON could hold one of them."""
    texts = pa.array([json.dumps(SHORT)])
    with pytest.raises(ConfigurationError, match="several columns 'x'"):
        count_table(pa.table([texts, texts, texts], names=["messages", "x", "x"]))


def test_columns_of_odd_types_are_kept() -> None:
    """They stand beside the conversation and are nobody's business."""
    beside = {
        "price": pa.array([Decimal("1.10")]),
        "at": pa.array([datetime(2020, 1, 1)]),
        "tags": pa.array([[("a", 1), ("a", 2)]], pa.map_(pa.string(), pa.int32())),
        "digest": pa.array([b"x" * 16], pa.binary(16)),
        "shape": pa.ExtensionArray.from_storage(
            pa.fixed_shape_tensor(pa.int8(), [2]), pa.array([[1, 2]], pa.list_(pa.int8(), 2))
        ),
    }
    fitted = _fit(pa.array([json.dumps(LONG)]), **beside)
    assert {name: fitted.column(name).combine_chunks() for name in beside} == beside


def test_a_map_with_a_key_twice_is_an_error_of_its_row() -> None:
    """Which of the two is meant nobody knows; the rows around it are done, and it keeps what it was."""
    kind = pa.list_(pa.map_(pa.string(), pa.string()))
    good = [[("role", "user"), ("content", "hi")]]
    table = _fit(pa.array([good, [[("role", "user"), ("role", "tool")]], good], type=kind))
    assert [error is None for error in _errors(table)] == [True, False, True]
    assert "tool" in table.column("error").to_pylist()[1]["input"]


def _not_utf8(kind: pa.DataType) -> pa.Array:
    """Make an array of text whose second value no encoding has; Arrow does not look."""
    raw = pa.array([json.dumps(LONG).encode(), b'["\xff"]', json.dumps(LONG).encode()], pa.binary())
    text = pa.Array.from_buffers(pa.string(), 3, raw.buffers())
    return text.dictionary_encode() if pa.types.is_dictionary(kind) else text


@pytest.mark.parametrize("kind", [pa.string(), pa.dictionary(pa.int32(), pa.string())], ids=str)
def test_text_that_is_no_utf8_is_an_error_of_its_row(kind: pa.DataType) -> None:
    """Where it should be, and with what it was."""
    table = _fit(_not_utf8(kind))
    assert [error is None for error in _errors(table)] == [True, False, True]
    assert table.column("error").to_pylist()[1]["input"] == '["\\xff"]'
    assert "not UTF-8: 0xff" in table.column("error").to_pylist()[1]["message"]


def test_a_nested_value_that_python_has_nothing_for_is_an_error_of_its_row() -> None:
    """A text that is no UTF-8, and a time of nanoseconds; what is well of it stands in the error."""
    good = pa.array(["hi", "hi", "hi"])
    times = pa.array([0, 1_234_567_890_123_456_789, 0], pa.timestamp("ns"))
    for name, odd, said in (("content", _not_utf8(pa.string()), "\\xff"), ("at", times, "2009-02-13")):
        parts = {"role": pa.array(["user"] * 3), "content": good, name: odd}
        nested = pa.ListArray.from_arrays([0, 1, 2, 3], pa.StructArray.from_arrays(parts.values(), parts))
        error = _fit(nested).column("error").to_pylist()[1]
        assert error["type"] == "FormatError"
        assert said in error["input"]
        assert '"role":"user"' in error["input"]
    kind = pa.list_(pa.map_(pa.string(), pa.timestamp("ns")))
    (error,) = _fit(pa.array([[[("at", 1_234_567_890_123_456_789)]]], kind)).column("error").to_pylist()
    assert "2009-02-13" in error["input"]


def test_a_column_that_takes_no_nulls_takes_one_of_a_row_that_is_set_aside(tmp_path: Path) -> None:
    """Some writers say so of every column; and an inserted message has no nulls where none may be."""
    schema = pa.schema([pa.field("messages", pa.string(), nullable=False)])
    pq.write_table(pa.table({"messages": ["none", json.dumps(LONG)]}, schema=schema), tmp_path / "in.parquet")
    task = BatchTask(operation="fit", budget=50, counter="chars:4")
    run_batch(task, tmp_path / "in.parquet", target=tmp_path / "out.parquet", workers=1)
    messages = pq.read_table(tmp_path / "out.parquet").column("messages").to_pylist()
    assert [one is None for one in messages] == [True, False]

    message = pa.struct(
        [
            pa.field("role", pa.string()),
            pa.field("content", pa.string()),
            pa.field("name", pa.string(), nullable=False),
        ]
    )
    named = [{**one, "content": "tea " * 40, "name": "ada"} for one in LONG]
    table = pa.table({"messages": pa.array([named, named[:1]], pa.list_(message))})
    shorten = Summarize(lambda messages: f"{len(messages)} messages")
    fitted = BatchTask(operation="fit", budget=80, counter="chars:4", policy=shorten)(table)
    assert [error and "store" in error for error in _errors(fitted)] == [True, None]
    pq.write_table(fitted, tmp_path / "named.parquet")
    assert pq.read_table(tmp_path / "named.parquet").num_rows == 2


def test_a_number_that_is_none_does_not_keep_a_conversation_from_being_cut() -> None:
    """In a nested column it is a value like others; JSON has no such number."""
    chat = [{**message, "score": float("nan")} for message in LONG]
    assert _errors(_fit(pa.array([chat]))) == [None]
    assert _errors(_fit(pa.array([json.dumps(chat)]))) == ["not JSON: NaN is not a JSON number"]


def test_a_row_that_is_set_aside_keeps_what_it_was() -> None:
    """A fit takes its messages out of their column, as nobody should send them, and its error has them."""
    texts = ["no chat", None, json.dumps([{"role": "user", "content": "x" * 999}])]
    errors = _fit(pa.array(texts)).column("error").to_pylist()
    assert [error["input"] for error in errors] == texts
    nested = [[{"role": "user", "content": "x" * 999}]]
    (error,) = _fit(pa.array(nested, pa.list_(MESSAGE))).column("error").to_pylist()
    assert json.loads(error["input"]) == nested[0]
    (error,) = _fit(pa.array([b"[\xff]"])).column("error").to_pylist()
    assert error["input"] == "[\\xff]"


def test_a_count_leaves_bad_rows_where_they_are() -> None:
    """Their text is in its column, and not in the error once more."""
    table = count_table(pa.table({"messages": ["no chat"]}), counter="chars:4")
    assert table.column("messages").to_pylist() == ["no chat"]
    assert table.column("error").to_pylist()[0]["input"] is None


# Lines.


def _lines(folder: Path, data: bytes, name: str = "in.jsonl") -> list[dict[str, Any]]:
    (folder / name).write_bytes(data)
    run_batch(COUNT, folder / name, target=folder / "out.jsonl", workers=1, chunk_bytes=60, overwrite=True)
    return [json.loads(line) for line in (folder / "out.jsonl").read_bytes().splitlines()]


def test_lines_as_editors_and_exports_leave_them(tmp_path: Path) -> None:
    """Marks, blank lines and ends of Windows are passed over; what is no line of JSON is set aside."""
    chat = json.dumps(SHORT).encode()
    lines = [
        chat + b"\r",
        b" \t\r",
        chat,
        b'[{"role":"user","content":NaN}]',
        b"\x0c",
        b'{"id":3,"id":4,"messages":[]}',
        b'{"id":"\\ud800","messages":[{"role":"user","content":"\\ud800"}]}',
        '[{"role":"user","content":"a\u2028b"}]'.encode(),
        chat + b"\r" + chat,
    ]
    rows = _lines(tmp_path, b"\xef\xbb\xbf" + b"\n".join(lines))
    assert [row["error"] and row["error"]["row"] for row in rows] == [None, None, 4, 5, None, None, None, 9]
    assert rows[2]["error"]["input"].encode() == lines[3]
    assert [row.get("id") for row in rows[4:6]] == [4, "\ud800"]
    assert rows[6]["messages"][0]["content"] == "a\u2028b"
    assert _lines(tmp_path, b"\n \n", "blank.jsonl") == []


@pytest.mark.few(1)
@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_packed_files_of_several_parts_are_read_to_their_end(tmp_path: Path, suffix: str) -> None:
    """As `cat` of packed files gives them, or a log that was written to again; garbage is told."""
    line = json.dumps(SHORT).encode() + b"\n"
    packed = [
        gzip.compress(part) if suffix == ".gz" else pa.Codec("zstd").compress(part, asbytes=True)
        for part in (line, line * 2)
    ]
    assert len(_lines(tmp_path, b"".join(packed), f"in.jsonl{suffix}")) == 3
    with pytest.raises(ConfigurationError, match="cannot be read after row"):
        _lines(tmp_path, packed[0] + b"garbage!", f"bad.jsonl{suffix}")


@pytest.mark.long
def test_a_line_much_longer_than_a_piece_is_one_row(tmp_path: Path) -> None:
    """A row of 50 MB, and the one behind it."""
    long = json.dumps([{"role": "user", "content": "tea " * (50 << 18)}]).encode()
    (tmp_path / "in.jsonl").write_bytes(long + b"\n" + json.dumps(SHORT).encode())
    run_batch(COUNT, tmp_path / "in.jsonl", target=tmp_path / "out.parquet", workers=1)
    assert pq.read_table(tmp_path / "out.parquet").column("tokens").to_pylist() == [50 << 18, 3]


MISSING = """
import sys
sys.modules.update(dict.fromkeys(("toktok", "tiktoken", "bpe_openai")))
import json, pyarrow
from trimtab.batch import count_table
chat = [{"role": "user", "content": "hi"}]
bodies = [json.dumps({"model": model, "messages": chat}) for model in ("mistral-large-latest", "gpt-4o")]
for error in count_table(pyarrow.table({"messages": bodies})).column("error").to_pylist():
    print(error and error["type"])
"""


def test_a_tokenizer_that_one_row_lacks_sets_that_row_aside() -> None:
    """A body names its own model; the run goes on."""
    done = subprocess.run([sys.executable, "-c", MISSING], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["None", "MissingExtraError"]
