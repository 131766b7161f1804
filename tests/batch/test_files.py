"""Files in and out: every form gives the same rows, whole and once, whatever stops a run on the way."""

from __future__ import annotations

import gzip
import hashlib
import json
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.batch.conversations import lines_of, table_of
from tests.recorded_logs import claude_session, codex_lines
from trimtab import Budget, fit, observe
from trimtab.batch import BatchSummary, BatchTask, count_table, fit_table, run_batch
from trimtab.errors import BatchError, ConfigurationError, ContextError
from trimtab.formats import get_format
from trimtab.telemetry import TelemetryEvent

FIT = BatchTask(operation="fit", budget=600, counter="chars:4")
COUNT = BatchTask(operation="count", counter="chars:4")
CHAT = [{"role": "user", "content": "What is tea?"}]
LINE = json.dumps(CHAT).encode() + b"\n"


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _parquet(path: Path, table: pa.Table, *, rows: int) -> Path:
    pq.write_table(table, path, row_group_size=rows)
    return path


class _Stopped(Exception):
    """Somebody stopped the run."""


def _stop_at_200_rows(done: BatchSummary) -> None:
    if done.rows >= 200:
        raise _Stopped


@pytest.fixture
def chats(data_dir: Path, tmp_path: Path) -> Path:
    """Write 600 conversations in 12 row groups."""
    return _parquet(tmp_path / "chats.parquet", table_of(data_dir, 600), rows=50)


def _rest(folder: Path) -> list[str]:
    """List what is left beside the files that somebody asked for."""
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("."))


# What a run gives.


@pytest.mark.few(1)
@pytest.mark.parametrize("workers", [1, 2])
def test_a_file_is_what_the_kernel_makes_of_its_table(chats: Path, workers: int) -> None:
    """Rows, order and row groups are those of the input; nothing is left beside it."""
    done = run_batch(FIT, chats, target=chats.with_name("out.parquet"), workers=workers)
    out = pq.ParquetFile(chats.with_name("out.parquet"))
    expected = FIT.run(pq.read_table(chats), range(1, 601), file="chats.parquet")
    failed = expected.num_rows - expected.column("error").null_count
    # each row group is done by itself, and its rows are numbered as those of the file
    assert out.read().equals(expected)
    assert out.metadata.num_row_groups == 12
    assert (done.rows, done.failed_rows, done.share) == (600, failed, 1.0)
    assert done.errors == {"BudgetExceededError": failed}
    assert failed >= 5
    assert _rest(chats.parent) == []


@pytest.mark.long
@pytest.mark.parametrize("rows", [1, 20, 300])
def test_row_groups_put_together_are_the_file_that_pyarrow_writes(
    data_dir: Path, tmp_path: Path, rows: int
) -> None:
    """Byte for byte: one or hundreds, with columns of any kind, and a file without rows among them."""
    given = table_of(data_dir, 300).append_column("at", pa.array([None, *range(299)], pa.int16()))
    given = given.append_column("tags", pa.array([{"a": [b"\x00" * 300, None]}, None, {}] * 100))
    given = given.append_column("kind", pa.array(["chat", None, "agent"] * 100).dictionary_encode())
    (tmp_path / "in").mkdir()
    _parquet(tmp_path / "in" / "a.parquet", given, rows=rows)
    _parquet(tmp_path / "in" / "b.parquet", given.slice(0, 0), rows=1)
    _parquet(tmp_path / "in" / "c.parquet", given.slice(0, 7), rows=7)
    run_batch(COUNT, tmp_path / "in", target=tmp_path / "out.parquet", workers=1)
    files = [pq.ParquetFile(tmp_path / "in" / f"{name}.parquet") for name in "ac"]
    schema = COUNT.schema(files[0].schema_arrow)
    with pq.ParquetWriter(tmp_path / "peer.parquet", schema, compression="zstd", compression_level=1) as peer:
        for file in files:
            for group in range(file.num_row_groups):
                peer.write_table(COUNT(file.read_row_group(group)))
    assert (tmp_path / "out.parquet").read_bytes() == (tmp_path / "peer.parquet").read_bytes()
    assert pq.read_metadata(tmp_path / "out.parquet").num_row_groups == 300 // rows + 1


class Tag(pa.ExtensionType):
    """A type of somebody's own."""

    def __init__(self) -> None:
        super().__init__(pa.string(), "tests.tag")

    def __arrow_ext_serialize__(self) -> bytes:
        """It has no options."""
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> Tag:
        """It is one like any."""
        return cls()


def test_a_type_that_the_run_alone_knows_comes_through(tmp_path: Path) -> None:
    """Workers are not told of it; they see what it is stored as."""
    pa.register_extension_type(Tag())
    try:
        tags = pa.ExtensionArray.from_storage(Tag(), pa.array(["a", None]))
        ids = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0123456789abcdef"] * 2, pa.binary(16)))
        nested = pa.ListArray.from_arrays([0, 1, 2], ids)  # of which Arrow has no empty table
        path = _parquet(
            tmp_path / "in.parquet",
            pa.table({"messages": [json.dumps(CHAT)] * 2, "tag": tags, "tags": nested}),
            rows=1,
        )
        run_batch(COUNT, path, target=tmp_path / "out.parquet", workers=1)
        out = pq.read_table(tmp_path / "out.parquet")
        assert out.column("tag").to_pylist() == ["a", None]
        assert out.column("tags").to_pylist() == nested.to_pylist()
        assert pq.read_schema(tmp_path / "out.parquet").field("tag").type == Tag()
    finally:
        pa.unregister_extension_type("tests.tag")


@pytest.mark.long
def test_a_piece_that_was_damaged_goes_into_no_file(chats: Path) -> None:
    """The run that finds it says which, and what was there before stays."""
    out = chats.with_name("out.parquet")

    with pytest.raises(_Stopped):
        run_batch(COUNT, chats, target=out, workers=1, on_progress=_stop_at_200_rows)
    part = chats.with_name(".out.parquet.trimtab") / "part-00000001"
    other = _parquet(chats.with_name("other.parquet"), pa.table({"id": ["a"]}), rows=1).read_bytes()
    whole = part.read_bytes()
    garbage = b"PAR1" + b"\xff" * 40 + b"PAR1"
    for damaged in (whole[:-1], whole[:-1] + b"X", b"", b"PAR1", garbage, other):
        part.write_bytes(damaged)
        with pytest.raises(
            BatchError, match=r"part-00000001 was changed after it was written: remove its folder"
        ):
            run_batch(COUNT, chats, target=out, workers=1)
    assert not out.exists()


MEMORY = """
import resource, sys
from trimtab.batch import BatchTask, run_batch

if __name__ == "__main__":
    run_batch(BatchTask(operation="validate"), sys.argv[1], target=sys.argv[2], workers=1)
    print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


@pytest.mark.long
def test_lines_take_no_more_memory_than_parquet(tmp_path: Path) -> None:
    """A worker makes Python objects of some rows at a time, not of the row group."""
    others = pa.array([[[]] * 200] * 9_000, pa.list_(pa.list_(pa.int8())))
    table = pa.table({"messages": [json.dumps(CHAT)] * 9_000, "others": others})
    source = _parquet(tmp_path / "in.parquet", table, rows=9_000)
    (tmp_path / "program.py").write_text(MEMORY)
    peaks = []
    for name in ("out.parquet", "out.jsonl"):
        command = [sys.executable, tmp_path / "program.py", source, tmp_path / name]
        peaks.append(int(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout))
    assert peaks[1] < 1.4 * peaks[0]


@pytest.mark.long
def test_twenty_thousand_rows_are_all_there(tmp_path: Path) -> None:
    """Each once and in its place, with the number the bare kernel has for it."""
    texts = [json.dumps(CHAT * (1 + at % 9)) for at in range(20_000)]
    table = pa.table({"id": range(20_000), "messages": texts})
    path = _parquet(tmp_path / "in.parquet", table, rows=1_000)
    done = run_batch(COUNT, path, target=tmp_path / "out.parquet", workers=2)
    out = pq.read_table(tmp_path / "out.parquet")
    nine = COUNT(table.slice(0, 9)).column("tokens").to_pylist()
    assert (done.rows, done.failed_rows) == (20_000, 0)
    assert out.column("id").to_pylist() == list(range(20_000))
    assert out.column("tokens").to_pylist() == [nine[at % 9] for at in range(20_000)]


@pytest.mark.few(1)
@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz", ".jsonl.zst", ".parquet"])
def test_lines_in_any_form_give_the_same_results(data_dir: Path, tmp_path: Path, suffix: str) -> None:
    """Packed or not, in and out: the numbers are those of the table of the same conversations."""
    raw = lines_of(data_dir, 120)
    plain, source = tmp_path / "in.jsonl", tmp_path / ("in2.jsonl" + suffix.removeprefix(".jsonl"))
    plain.write_bytes(raw)
    if suffix == ".jsonl.gz":
        source.write_bytes(gzip.compress(raw))
    elif suffix == ".jsonl.zst":
        source.write_bytes(pa.Codec("zstd").compress(raw, asbytes=True))
    else:
        source = plain
    out = tmp_path / f"out{suffix}"
    run_batch(FIT, source, target=out, workers=1, chunk_bytes=50_000)
    rows = _read(out)
    expected = FIT(table_of(data_dir, 120)).to_pylist(maps_as_pydicts="strict")
    for row, known in zip(rows, expected, strict=True):
        body = (
            row["messages"]
            if suffix != ".parquet"
            else row["messages"] and json.loads(row["messages"])["messages"]
        )
        assert row["id"] == known["id"]
        assert body == (known["messages"] and json.loads(known["messages"]))
        for name in ("tokens_before", "tokens_after", "fates", "reasons", "violations"):
            assert row[name] == known[name], name
        if row["error"] is not None:
            assert row["error"].pop("file") == source.name
            assert known["error"].pop("file") is None
            was = json.loads(row["error"].pop("input"))
            assert was == {"id": row["id"], "messages": json.loads(known["error"].pop("input"))}
        assert row["error"] == known["error"]


def _read(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".parquet":
        found: list[dict[str, Any]] = pq.read_table(path).to_pylist(maps_as_pydicts="strict")
        return found
    codec = {".gz": "gzip", ".zst": "zstd"}.get(path.suffix)
    with pa.input_stream(str(path), compression=codec) as file:
        lines = file.read().splitlines()
    return [{"messages": None, **json.loads(line)} for line in lines]


def test_a_line_is_what_it_was_with_its_results(tmp_path: Path) -> None:
    """Keys, their order and their spaces stay; a list becomes an object; a bad line is in its error."""
    lines = [
        b'{"id": 7, "messages": [{"role": "user", "content": "hi"}], "mine": {"a" : 1}}',
        b'[{"role":"user","content":"hi"}]',
        b"",
        b'{"id": [8, null], "messages": 5}',
        b"\xff",
    ]
    (tmp_path / "in.jsonl").write_bytes(b"\xef\xbb\xbf" + b"\r\n".join(lines))
    done = run_batch(COUNT, tmp_path / "in.jsonl", target=tmp_path / "out.jsonl", workers=1)
    first, second, third, fourth = (tmp_path / "out.jsonl").read_bytes().splitlines()
    assert first.startswith(lines[0][:-1] + b',"tokens":')
    assert second.startswith(b'{"messages":' + lines[1] + b',"tokens":')
    assert (json.loads(third)["id"], json.loads(third)["error"]["row"]) == ([8, None], 4)
    assert json.loads(third)["error"]["input"].encode() == lines[3]
    assert json.loads(fourth)["error"]["row"] == 5
    assert "not UTF-8" in json.loads(fourth)["error"]["message"]
    assert json.loads(fourth)["error"]["input"] == "\\xff"
    assert done.errors == {"FormatError": 2}


def test_a_cell_of_several_lines_is_one_line_of_json(tmp_path: Path) -> None:
    """JSON may be printed over several lines in a column; in JSONL each row is one."""
    chat = [{"role": "user", "content": "two\nlines"}]
    table = pa.table({"id": ["a", "b"], "messages": [json.dumps(chat, indent=1), json.dumps(chat)]})
    source = _parquet(tmp_path / "in.parquet", table, rows=2)
    task = BatchTask(operation="count", counter="chars:4")
    run_batch(task, source, target=tmp_path / "out.jsonl", workers=1)
    assert [row["messages"] for row in _read(tmp_path / "out.jsonl")] == [chat, chat]


@pytest.mark.few(1)
@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_files_have_the_columns_that_are_asked_for(data_dir: Path, chats: Path, suffix: str) -> None:
    """From Parquet and from lines; a run goes on with the same ones in any order, and with no others."""
    whole, out, again = (chats.with_name(f"{name}{suffix}") for name in ("whole", "out", "again"))
    some = replace(FIT, columns=("tokens_after", "violations"))
    run_batch(FIT, chats, target=whole, workers=1)
    with pytest.raises(_Stopped):
        run_batch(some, chats, target=out, workers=1, on_progress=_stop_at_200_rows)
    with pytest.raises(ConfigurationError, match=r"with other options \(columns\)"):
        run_batch(FIT, chats, target=out, workers=1)
    other = replace(some, columns=["violations", "tokens_after"])
    assert run_batch(other, chats, target=out, workers=1).resumed_rows >= 200
    lines = chats.with_name("chats.jsonl")
    lines.write_bytes(lines_of(data_dir, 600))
    run_batch(some, lines, target=again, workers=1)

    def rows(path: Path) -> list[dict[str, Any]]:
        if suffix == ".parquet":
            return list(pq.read_table(path).to_pylist())
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]

    results = ("tokens_after", "violations", "error")
    for one, found, of_line in zip(rows(whole), rows(out), rows(again), strict=True):
        kept = {key: value for key, value in one.items() if key not in ("tokens_before", "fates", "reasons")}
        assert found == kept
        assert [of_line[key] for key in results[:2]] == [one[key] for key in results[:2]]
        assert set(of_line) <= {"id", "messages", *results}


@pytest.mark.long
def test_a_line_with_a_key_of_a_result_is_set_aside_unless_there_is_a_prefix(tmp_path: Path) -> None:
    """Two keys of one name would hide each other; with a prefix runs can stand behind each other."""
    (tmp_path / "a.jsonl").write_bytes(LINE)
    run_batch(COUNT, tmp_path / "a.jsonl", target=tmp_path / "b.jsonl", workers=1)
    assert run_batch(COUNT, tmp_path / "b.jsonl", target=tmp_path / "c.jsonl", workers=1).failed_rows == 1
    again = BatchTask(operation="count", counter="chars:4", prefix="again_")
    run_batch(again, tmp_path / "b.jsonl", target=tmp_path / "d.jsonl", workers=1)
    row = json.loads((tmp_path / "d.jsonl").read_text())
    assert row["again_tokens"] == row["tokens"]


def test_a_line_with_a_key_of_a_result_is_done_into_parquet(tmp_path: Path) -> None:
    """There a line has a column of its own, and nothing of it is hidden."""
    line = json.dumps({"id": "a", "messages": CHAT, "error": None, "tokens": 7}).encode() + b"\n"
    (tmp_path / "in.jsonl").write_bytes(line + b"[{\n")
    run_batch(COUNT, tmp_path / "in.jsonl", target=tmp_path / "out.parquet", workers=1)
    first, second = _read(tmp_path / "out.parquet")
    assert (first["messages"].encode() + b"\n", first["tokens"], first["error"]) == (line, 3, None)
    assert (second["error"]["row"], second["error"]["input"]) == (2, "[{")


def test_a_folder_becomes_a_folder_or_a_file(tmp_path: Path) -> None:
    """A file each, with the same name and form; or all in one, in the order of their names."""
    source = tmp_path / "in"
    (source / "deep").mkdir(parents=True)
    table = pa.table({"id": ["p"], "messages": [json.dumps(CHAT)]})
    _parquet(source / "b.parquet", table, rows=1)
    (source / "a.jsonl").write_bytes(LINE)
    (source / "deep" / "c.jsonl.gz").write_bytes(gzip.compress(LINE * 3))
    (source / "empty.jsonl").write_bytes(b"")
    for hidden in ("_SUCCESS", "_x.jsonl", ".y.jsonl", "notes.txt"):
        (source / hidden).write_bytes(b"nothing")
    done = run_batch(COUNT, source, target=tmp_path / "out", workers=1)
    names = sorted(path.relative_to(tmp_path / "out").as_posix() for path in done.outputs)
    assert names == ["a.jsonl", "b.parquet", "deep/c.jsonl.gz", "empty.jsonl"]
    assert [len(_read(tmp_path / "out" / name)) for name in names] == [1, 1, 3, 0]
    run_batch(COUNT, source, target=tmp_path / "all.jsonl", workers=1)
    assert [row.get("id") for row in _read(tmp_path / "all.jsonl")] == [None, "p", None, None, None]
    assert _rest(tmp_path) == []


@pytest.mark.few(1)
@pytest.mark.parametrize("target", ["all.jsonl", "all.parquet"])
def test_a_row_that_is_set_aside_says_which_file_it_is_of(tmp_path: Path, target: str) -> None:
    """By its name in the folder that is read, which is the same wherever that lies."""
    table = pa.table({"id": ["p"], "messages": ["no chat"]})
    for root in ("one", "two/in"):
        source = tmp_path / root
        (source / "deep").mkdir(parents=True)
        (source / "a.jsonl").write_bytes(LINE + b"no chat")
        (source / "deep" / "b.jsonl.gz").write_bytes(gzip.compress(LINE + b"no chat"))
        if target == "all.jsonl":
            _parquet(source / "p.parquet", table, rows=1)
        run_batch(COUNT, source, target=source.with_name(target), workers=1)
    out = tmp_path / "one" / ".." / target
    errors = [row["error"] for row in _read(out) if row["error"] is not None]
    ours = [("a.jsonl", 2), ("deep/b.jsonl.gz", 2), ("p.parquet", 1)]
    assert [(error["file"], error["row"]) for error in errors] == ours[: len(errors)]
    assert len(errors) == (3 if target == "all.jsonl" else 2)
    assert _digest(out) == _digest(tmp_path / "two" / target)
    run_batch(COUNT, tmp_path / "one" / "a.jsonl", target=tmp_path / "alone.jsonl", workers=1)
    assert _read(tmp_path / "alone.jsonl")[1]["error"]["file"] == "a.jsonl"


def test_an_empty_table_has_its_columns(tmp_path: Path) -> None:
    """A file without rows is written, too."""
    table = pa.table({"messages": pa.array([], pa.string())})
    pq.write_table(table, tmp_path / "in.parquet")
    run_batch(COUNT, tmp_path / "in.parquet", target=tmp_path / "out.parquet", workers=1)
    assert pq.read_schema(tmp_path / "out.parquet").equals(COUNT.schema(table.schema))


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"budget": Budget(1_000, margin="auto")},
        {"budget": Budget(1_000, margin="auto"), "model": "gpt-4o"},
        {"policy": {"budget": {"window": 1_000, "margin": "auto"}, "blocks": [{"name": "history"}]}},
        {"pending_calls": ["a"], "strict": True, "budget": 100},
        {"budget": 200_000},
        {"budget": 200},
    ],
)
def test_what_a_row_may_bring_is_not_missed_before_it_comes(tmp_path: Path, options: Any) -> None:
    """A body names its model, and with it come a window, a counter and its margin."""
    (tmp_path / "in.jsonl").write_text(json.dumps({"model": "gpt-4.1", "messages": CHAT}))
    task = BatchTask(operation="fit", **options)
    done = run_batch(task, tmp_path / "in.jsonl", target=tmp_path / "out.jsonl", workers=1)
    assert (done.rows, done.errors) == (1, {})


# What stops a run, and how it goes on.


@pytest.mark.long
def test_a_killed_worker_is_replaced(chats: Path) -> None:
    """The table is the same, byte for byte."""
    run_batch(FIT, chats, target=chats.with_name("whole.parquet"), workers=2)
    killed: list[int] = []

    def kill(done: BatchSummary) -> None:
        if not killed:
            killed.append(int(multiprocessing.active_children()[0].pid or 0))
            os.kill(killed[0], signal.SIGKILL)

    done = run_batch(FIT, chats, target=chats.with_name("killed.parquet"), workers=2, on_progress=kill)
    assert killed
    assert done.rows == 600
    assert _digest(chats.with_name("killed.parquet")) == _digest(chats.with_name("whole.parquet"))


@pytest.mark.few(1)
@pytest.mark.parametrize("suffix", [".parquet", ".jsonl.zst"])
def test_a_stopped_run_goes_on_where_it_was(chats: Path, suffix: str) -> None:
    """Nothing is in its place before it is whole; what was done is not done again; the bytes are the same."""
    whole, out = chats.with_name(f"whole{suffix}"), chats.with_name(f"out{suffix}")
    run_batch(FIT, chats, target=whole, workers=1)

    with pytest.raises(_Stopped):
        run_batch(FIT, chats, target=out, workers=1, on_progress=_stop_at_200_rows)
    assert not out.exists()
    with pytest.raises(ConfigurationError, match="with other options"):
        run_batch(COUNT, chats, target=out, workers=1)
    with pytest.raises(ConfigurationError, match=r"with other options \(columns\)"):
        run_batch(replace(FIT, columns=["tokens_after"]), chats, target=out, workers=1)
    done = run_batch(FIT, chats, target=out, workers=1)
    assert 200 <= done.resumed_rows < 600
    assert done.rows == 600
    assert done.failed_rows >= 5
    assert _digest(out) == _digest(whole)
    assert _rest(chats.parent) == []


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="files are not locked there")
def test_a_second_run_into_a_target_is_refused_while_the_first_is_under_way(chats: Path) -> None:
    """Each would take pieces away from the other; the first one ends as if it were alone."""
    out, said = chats.with_name("out.jsonl"), list[str]()

    def run_again(_: BatchSummary) -> None:
        with pytest.raises(ConfigurationError) as refused:
            run_batch(FIT, chats, target=out, workers=1, overwrite=True)
        said.append(str(refused.value))

    assert run_batch(FIT, chats, target=out, workers=1, on_progress=run_again).rows == 600
    assert set(said) == {
        "another run into out.jsonl is in progress: wait for its end, or choose another target"
    }
    run_batch(FIT, chats, target=chats.with_name("whole.jsonl"), workers=1)
    assert _digest(out) == _digest(chats.with_name("whole.jsonl"))
    assert _rest(chats.parent) == []


PROGRAM = """
import os, signal, sys
from trimtab.batch import BatchTask, run_batch

def end(done):
    if done.rows >= 200:
        os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    task = BatchTask(operation="fit", budget=600, counter="chars:4")
    run_batch(task, sys.argv[1], target=sys.argv[2], workers=2, on_progress=end)
"""


@pytest.mark.long
def test_a_run_that_is_killed_goes_on_too(chats: Path) -> None:
    """Its workers end with it, and a line of the list it was writing counts as not written."""
    program, out = chats.with_name("program.py"), chats.with_name("out.parquet")
    program.write_text(PROGRAM)
    killed = subprocess.run([sys.executable, program, chats, out], stderr=subprocess.PIPE, check=False)
    assert killed.returncode == -signal.SIGKILL  # and nobody holds its standard error open
    (manifest,) = chats.parent.glob(".*/manifest.jsonl")
    manifest.write_bytes(manifest.read_bytes() + b'{"unit":5,"ro')
    done = run_batch(FIT, chats, target=out, workers=1)
    assert done.resumed_rows >= 200
    run_batch(FIT, chats, target=chats.with_name("whole.parquet"), workers=1)
    assert _digest(out) == _digest(chats.with_name("whole.parquet"))


INTERRUPTED = """
import os, signal, sys

if __name__ == "__mp_main__":
    os.killpg(0, signal.SIGINT)  # as Ctrl-C does, while a worker is being started

from trimtab.batch import BatchTask, run_batch

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    task = BatchTask(operation="count", counter="chars:4")
    try:
        run_batch(task, sys.argv[1], target=sys.argv[2], workers=1)
    except KeyboardInterrupt:
        sys.exit(130)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals cannot be held back there")
def test_ctrl_c_while_workers_start_ends_the_run_without_a_word_of_theirs(chats: Path) -> None:
    """A worker that met it between its imports wrote a traceback."""
    program = chats.with_name("program.py")
    program.write_text(INTERRUPTED)
    command = [sys.executable, program, chats, chats.with_name("out.parquet")]
    ended = subprocess.run(
        command, stderr=subprocess.PIPE, text=True, start_new_session=True, check=False, timeout=120
    )
    assert (ended.returncode, ended.stderr) == (130, "")


def test_an_input_that_changed_is_no_run_to_go_on_with(tmp_path: Path) -> None:
    """Half of a table would be of the old file."""
    source = tmp_path / "in.jsonl"
    source.write_bytes(LINE * 4)

    def stop(done: BatchSummary) -> None:
        raise _Stopped

    with pytest.raises(_Stopped):
        run_batch(COUNT, source, target=tmp_path / "out.jsonl", workers=1, chunk_bytes=10, on_progress=stop)
    source.write_bytes(LINE * 5)
    with pytest.raises(ConfigurationError, match="with other files"):
        run_batch(COUNT, source, target=tmp_path / "out.jsonl", workers=1, chunk_bytes=10)


def test_an_input_with_fewer_row_groups_than_it_had_is_said_to_be_changed(tmp_path: Path) -> None:
    """Arrow says that a number is out of bounds, and not of what."""
    table = pa.table({"messages": [json.dumps(CHAT)] * 200})
    source = _parquet(tmp_path / "in.parquet", table, rows=2)

    def put(done: BatchSummary) -> None:
        _parquet(tmp_path / "other.parquet", table, rows=200).replace(source)

    with pytest.raises(BatchError, match=r"in\.parquet was changed or removed during the run"):
        run_batch(COUNT, source, target=tmp_path / "out.parquet", workers=1, on_progress=put)


def test_a_changed_input_is_done_anew_as_the_error_says(tmp_path: Path) -> None:
    """Also where a file of the run is in its place already."""
    (tmp_path / "in").mkdir()
    for name in "abc":
        (tmp_path / "in" / f"{name}.jsonl").write_bytes(LINE)

    def grow(done: BatchSummary) -> None:
        if done.rows == 2:
            (tmp_path / "in" / "c.jsonl").write_bytes(LINE * 2)

    with pytest.raises(BatchError) as raised:
        run_batch(COUNT, tmp_path / "in", target=tmp_path / "out", workers=1, on_progress=grow)
    (folder,) = re.findall(r"remove (\S+) and start again, with overwrite=True,", str(raised.value))
    shutil.rmtree(folder)
    assert run_batch(COUNT, tmp_path / "in", target=tmp_path / "out", workers=1, overwrite=True).rows == 4


class Turns(type(get_format("openai_chat"))):  # type: ignore[misc]
    """A wire form of somebody's own."""

    name = "turns"
    rules = replace(get_format("openai_chat").rules, body_key="turns")


def test_lines_are_bodies_of_a_form_of_ones_own(tmp_path: Path) -> None:
    """What key has the messages, the form says."""
    (tmp_path / "in.jsonl").write_text(json.dumps({"id": 1, "turns": CHAT}))
    task = BatchTask(operation="count", counter="chars:4", format=Turns())
    assert run_batch(task, tmp_path / "in.jsonl", target=tmp_path / "out.jsonl", workers=1).errors == {}
    counted = json.loads((tmp_path / "out.jsonl").read_text())["tokens"]
    assert [counted] == COUNT(pa.table({"messages": [json.dumps(CHAT)]})).column("tokens").to_pylist()


@pytest.mark.few(2)
@pytest.mark.parametrize("change", ["replace", "shorten", "grow", "remove"])
def test_an_input_that_changes_during_a_run_ends_it(tmp_path: Path, change: str) -> None:
    """No results are put in their place, neither mixed ones nor some of half a line; it is said why."""
    source, other, out = tmp_path / "in.jsonl", tmp_path / "other.jsonl", tmp_path / "out.jsonl"
    source.write_bytes(LINE * 200)

    def act(done: BatchSummary) -> None:
        if change == "remove":
            source.unlink(missing_ok=True)
        elif change == "grow":
            with source.open("ab") as file:
                file.write(b'{"messages": [')
        else:
            other.write_bytes(LINE.replace(b"tea", b"ale") * (200 if change == "replace" else 9))
            other.replace(source)

    with pytest.raises(BatchError, match=r"in\.jsonl was changed or removed during the run.* start again"):
        run_batch(COUNT, source, target=out, workers=1, chunk_bytes=300, on_progress=act)
    assert not out.exists()
    source.write_bytes(LINE * 3)
    with pytest.raises(ConfigurationError, match="with other files"):
        run_batch(COUNT, source, target=out, workers=1, chunk_bytes=300)


def test_an_input_that_changes_after_its_last_piece_is_not_put_in_place(tmp_path: Path) -> None:
    """Also where a folder goes into one file, and another one is read by then."""
    (tmp_path / "in").mkdir()
    for name in "ab":
        (tmp_path / "in" / f"{name}.jsonl").write_bytes(LINE)

    def touch(done: BatchSummary) -> None:
        (tmp_path / "in" / "a.jsonl").write_bytes(LINE * 2)

    with pytest.raises(BatchError, match=r"a\.jsonl was changed or removed during the run"):
        run_batch(COUNT, tmp_path / "in", target=tmp_path / "out.jsonl", workers=1, on_progress=touch)
    assert not (tmp_path / "out.jsonl").exists()


POLICIES = """
import re, threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache

LIMITS = {{"one": [{limit}], "lock": threading.Lock()}}

class Kind(Enum):
    A = 1

@dataclass(slots=True)
class Mine:
    words: set = field(default_factory=lambda: {{"tea", "milk", "bread", "salt", "oil", "rice", "corn"}})
    kind: Kind = Kind.A
    pattern: re.Pattern = re.compile("a")
    table: Mapping = field(default_factory=dict)

    def __call__(self, messages):
        return sum(self._size(len(one), len(one["content"])) for one in messages)

    @staticmethod
    def _size(keys, length):
        return _cached(keys, length) + LIMITS["one"][0]

@lru_cache
def _cached(keys, length):
    return {size}
"""
STOP = """
import sys
from mine import Mine
from trimtab.batch import BatchTask, run_batch
from trimtab.errors import ConfigurationError, ContextError

def stop(done):
    if sys.argv[3] == "stop":
        raise KeyboardInterrupt

if __name__ == "__main__":
    pending = {"a", "b", "c", "d"}
    task = BatchTask(operation="fit", budget=9_000, counter=Mine(), pending_calls=pending)
    try:
        done = run_batch(task, sys.argv[1], target=sys.argv[2], workers=1, chunk_bytes=10, on_progress=stop)
        print("resumed", done.resumed_rows)
    except ConfigurationError as error:
        print(error)
    except KeyboardInterrupt:
        print("stopped")
"""


@pytest.mark.long
def test_a_policy_is_the_same_by_what_it_says_not_by_where_it_lies(tmp_path: Path) -> None:
    """Neither the order of a set nor an address refuses a run; another code or another constant does."""
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_bytes(LINE * 9)
    (tmp_path / "program.py").write_text(STOP)

    def run(seed: str, what: str, **code: str) -> str:
        (tmp_path / "mine.py").write_text(POLICIES.format(**{"limit": "3", "size": "length", **code}))
        command = [sys.executable, str(tmp_path / "program.py"), str(source), str(out), what]
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
        return done.stdout

    assert run("1", "stop") == "stopped\n"
    assert "with other options (counter)" in run("1", "go on", size="1 + length")
    assert "with other options (counter)" in run("1", "go on", limit="4")
    assert "with other options (counter)" in run("1", "go on", size="keys")
    assert run("2", "go on").startswith("resumed ")


HELPED = """
import re, threading
from functools import lru_cache, partial

import {helper} as helper
from trimtab import CharCounter

class Rate:
    def __init__(self, tokens):
        self.tokens, self.lock = tokens, threading.Lock()

    def size(self, text):
        return self.tokens

class Other:
    PATTERN, rate = re.compile({in_class!r}), Rate({in_value})

    def __call__(self, text):
        return len(self.PATTERN.findall(text)) + self.rate.size(text) + self.more

    @property
    def more(self):
        return {more}

def _part(tokens, text):
    return tokens

PATTERN, RATE, PART = re.compile({pattern!r}), Rate({rate}), partial(_part, {part})
OTHER, OURS, UNNAMED = Other(), CharCounter({ours}), {unnamed}

def count(messages):
    text = str(messages)
    return len(PATTERN.findall(text)) + RATE.size(text) + PART(text) + OTHER(text) + helper.size(text)

def count_by_ours(messages):
    return OURS.count(messages)
"""
AS_IT_WAS: dict[str, Any] = {
    "in_class": "a",
    "in_value": 1,
    "more": 2,
    "pattern": "b",
    "rate": 3,
    "part": 4,
    "ours": 4,
    "unnamed": 5,
}
HELPS = "WEIGHT, UNNAMED = {weight}, {unnamed}\ndef size(text):\n    return WEIGHT\n"
BIG = """
def f{number}(text):
    return {calls}
"""
ROUND = """
from __future__ import annotations

class A:
    def make(self):
        return B(), {weight}

class B:
    def make(self):
        return A(), KNOWN

KNOWN = {{"a": A, "b": B, "names": {{"tea", "milk", "bread", "salt", "oil"}}}}
KNOWN["all"] = KNOWN

def count(text):
    return len(text) * len(KNOWN["a"]().make())
"""


def _go_on(folder: Path, counter: str, code: Mapping[str, str], *then: Mapping[str, str]) -> list[bool]:
    """Stop a run with a counter, change the modules, and ask of each change whether a run goes on with it."""
    source, out = folder / "in.jsonl", folder / "out.jsonl"
    source.write_bytes(LINE * 9)
    program = STOP.replace("from mine import Mine", f"from mine import {counter}")
    (folder / "program.py").write_text(program.replace("counter=Mine()", f"counter={counter}"))

    def run(seed: str, modules: Mapping[str, str]) -> str:
        for name, text in modules.items():
            (folder / f"{name}.py").write_text(text)
        command = [sys.executable, str(folder / "program.py"), str(source), str(out), "stop"]
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
        return done.stdout

    assert run("1", code) == "stopped\n"
    said = [run("2", modules) for modules in then]
    assert [one for one in said if one != "stopped\n" and "with other options (counter)" not in one] == []
    return [one == "stopped\n" for one in said]


def _helped(**changed: Any) -> dict[str, str]:
    helper = HELPS.format(**{"weight": 6, "unnamed": 7, **changed.pop("helps", {})})
    return {"mine": HELPED.format(helper="helps", **{**AS_IT_WAS, **changed}), "helps": helper}


@pytest.mark.long
def test_what_a_function_names_of_modules_of_ones_own_counts(tmp_path: Path) -> None:
    """A pattern, a value of a class, a part of a function, another module decide a count; others do not."""
    changed: list[dict[str, Any]] = [
        {"pattern": "c"},
        {"rate": 9},
        {"part": 9},
        {"in_class": "c"},
        {"in_value": 9},
        {"more": 9},
        {"helps": {"weight": 9}},
    ]
    free = _helped(unnamed=8, helps={"unnamed": 9}, ours=9)
    found = _go_on(tmp_path, "count", _helped(), *(_helped(**one) for one in changed), free)
    assert found == [False] * len(changed) + [True]


@pytest.mark.long
def test_a_counter_of_ours_in_a_module_counts(tmp_path: Path) -> None:
    """A function that asks it gives other numbers with another one."""
    found = _go_on(tmp_path, "count_by_ours", _helped(), _helped(ours=9), _helped())
    assert found == [False, True]


@pytest.mark.long
def test_what_goes_round_in_circles_is_told_apart(tmp_path: Path) -> None:
    """Classes that name each other, and a table that holds itself, in whatever order a set has."""
    first, other = ({"mine": ROUND.format(weight=weight)} for weight in (1, 2))
    assert _go_on(tmp_path, "count", first, other, first) == [False, True]


@pytest.mark.long
def test_functions_that_call_many_others_are_looked_at_once(tmp_path: Path) -> None:
    """Sixty of which each calls all that follow: a way for each order of calls would never end."""
    code = "".join(
        BIG.format(number=number, calls="+".join(f"f{other}(text)" for other in range(number + 1, 60)) or 1)
        for number in range(60)
    )
    code += "\ndef count(text):\n    return len(text) if text else f0(text)\n"
    other = {"mine": code.replace("return 1", "return 2")}
    assert _go_on(tmp_path, "count", {"mine": code}, other, {"mine": code}) == [False, True]


@pytest.mark.long
def test_what_a_trial_leaves_in_a_module_is_no_difference(tmp_path: Path) -> None:
    """A cache that a counter fills was empty when the stopped run began, and is when it goes on."""
    code = "import os\nSEEN = {}\ndef count(text):\n    SEEN[os.getpid()] = 1\n    return len(text)\n"
    assert _go_on(tmp_path, "count", {"mine": code}, {"mine": code}) == [True]


def test_nobody_is_told_of_the_trial_before_a_run(tmp_path: Path) -> None:
    """Workers fit the rows, so that who looks on in the run itself sees none."""
    (tmp_path / "in.jsonl").write_bytes(LINE)
    told: list[TelemetryEvent] = []
    with observe(told.append):
        run_batch(FIT, tmp_path / "in.jsonl", target=tmp_path / "out.jsonl", workers=1)
        assert told == []
        fit(CHAT, 600, counter="chars:4")
    assert len(told) == 1


def test_a_run_takes_no_file_of_another_that_has_a_like_name(tmp_path: Path) -> None:
    """What `out.jsonl.gz` is put together in begins as what a killed `out.jsonl` left."""
    (tmp_path / "in.jsonl").write_bytes(LINE)
    theirs, left = (tmp_path / f".{name}.{'0a' * 16}.tmp" for name in ("out.jsonl.gz", "out.jsonl"))
    for path in (theirs, left):
        path.write_bytes(b"half")
    run_batch(COUNT, tmp_path / "in.jsonl", target=tmp_path / "out.jsonl", workers=1)
    assert (theirs.exists(), left.exists()) == (True, False)


def test_a_run_that_did_nothing_is_none_to_go_on_with(tmp_path: Path) -> None:
    """A file that could not be read is mended, and the run starts."""
    source = tmp_path / "in.jsonl.gz"
    source.write_bytes(b"none")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        run_batch(COUNT, source, target=tmp_path / "out.jsonl", workers=1)
    source.write_bytes(gzip.compress(LINE))
    assert run_batch(COUNT, source, target=tmp_path / "out.jsonl", workers=1).rows == 1


@pytest.mark.long
def test_what_a_killed_run_leaves_is_gone_after_the_next(chats: Path) -> None:
    """Also the file that it was putting together."""
    program, out = chats.with_name("program.py"), chats.with_name("out.parquet")
    program.write_text(PROGRAM)
    subprocess.run([sys.executable, program, chats, out], stderr=subprocess.PIPE, check=False)
    assert [name for name in _rest(chats.parent) if name.endswith(".tmp")]
    run_batch(FIT, chats, target=out, workers=1)
    assert _rest(chats.parent) == []


def test_pieces_leave_with_the_file_they_are_in(tmp_path: Path) -> None:
    """A folder takes the room of a few of its files beside the results, not of all of them twice."""
    (tmp_path / "in").mkdir()
    for number in range(12):
        (tmp_path / "in" / f"{number:02d}.jsonl").write_bytes(LINE)
    held: list[int] = []

    def look(done: BatchSummary) -> None:
        held.append(len(list((tmp_path / ".out.trimtab").glob("part-*"))))

    run_batch(COUNT, tmp_path / "in", target=tmp_path / "out", workers=1, on_progress=look)
    assert len(held) == 12
    assert max(held) <= 4


# What is refused.


def test_what_is_there_is_not_written_over(tmp_path: Path) -> None:
    """Unless it is asked for."""
    (tmp_path / "in.jsonl").write_bytes(LINE)
    (tmp_path / "out.jsonl").write_bytes(b"mine")
    with pytest.raises(ConfigurationError, match="exists already"):
        run_batch(COUNT, tmp_path / "in.jsonl", target=tmp_path / "out.jsonl", workers=1)
    assert (tmp_path / "out.jsonl").read_bytes() == b"mine"
    run_batch(COUNT, tmp_path / "in.jsonl", target=tmp_path / "out.jsonl", workers=1, overwrite=True)
    assert b"tokens" in (tmp_path / "out.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("source", "target", "said"),
    [
        ("nothing.jsonl", "out.jsonl", "No such file"),
        ("notes.txt", "out.jsonl", "conversations are read from"),
        ("in.jsonl", "out.csv", "results are written as"),
        ("in.jsonl", "in.jsonl", "is an input and would be overwritten"),
        ("folder", "folder/out", "is inside the input"),
        ("empty", "out", "the folder has no file that ends in"),
        ("broken.parquet", "out.parquet", "broken.parquet: not a readable Parquet"),
        ("other.parquet", "out.parquet", "other.parquet: there is no column 'messages'"),
        ("lacks", "out", "z.parquet: there is no column 'messages'"),
        ("twice.parquet", "out.parquet", "several columns 'messages'"),
        ("times.parquet", "out.jsonl", "times.parquet: column 'at' cannot be written as JSON"),
        ("cut.jsonl.gz", "out.jsonl", "cut.jsonl.gz: cannot be read after row 0"),
        ("mixed", "out.parquet", "files with different columns"),
        (
            "mixed",
            "out.parquet",
            r"compared with \S+a.parquet, this one lacks 'o' and also has 'n': write into a",
        ),
        ("types", "out.parquet", "this one has 'n' as int64, not string: write into a folder"),
        ("order", "out.parquet", "this one has them in another order: write into a folder"),
    ],
)
def test_files_that_cannot_be_are_named(tmp_path: Path, source: str, target: str, said: str) -> None:
    """With what would do."""
    for folder in ("folder", "empty", "mixed", "lacks", "types", "order"):
        (tmp_path / folder).mkdir()
    for name in ("in.jsonl", "notes.txt", "folder/in.jsonl", "lacks/a.jsonl"):
        (tmp_path / name).write_bytes(LINE)
    (tmp_path / "broken.parquet").write_bytes(b"nothing")
    pq.write_table(pa.table({"other": ["x"]}), tmp_path / "other.parquet")
    pq.write_table(pa.table({"other": ["x"]}), tmp_path / "lacks" / "z.parquet")
    texts, now = pa.array([json.dumps(CHAT)]), pa.array([0], pa.timestamp("us"))
    pq.write_table(pa.table([texts, texts], names=["messages"] * 2), tmp_path / "twice.parquet")
    pq.write_table(pa.table({"messages": texts, "at": now}), tmp_path / "times.parquet")
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(LINE * 99)[:-9])
    columns = {"messages": texts, "o": ["x"]}
    numbered = {"n": [1], "messages": texts}
    for folder, (first, second) in {
        "mixed": (columns, numbered),
        "types": ({**numbered, "n": ["x"]}, numbered),
        "order": (columns, dict(reversed(columns.items()))),
    }.items():
        pq.write_table(pa.table(first), tmp_path / folder / "a.parquet")
        pq.write_table(pa.table(second), tmp_path / folder / "b.parquet")
    with pytest.raises(ConfigurationError, match=said):
        run_batch(COUNT, tmp_path / source, target=tmp_path / target, workers=1)
    assert not (tmp_path / target).exists() or target == "in.jsonl"


def test_a_run_into_the_folder_one_is_in_is_kept_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`.` is called as that folder is; what is done would else lie in it, as `..trimtab`."""
    (tmp_path / "in.jsonl").write_bytes(LINE)
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path / "out")
    kept: list[str] = []
    run_batch(
        COUNT,
        tmp_path / "in.jsonl",
        target=".",
        workers=1,
        on_progress=lambda _: kept.extend(_rest(tmp_path)),
    )
    assert (kept, os.listdir()) == ([".out.trimtab"], ["in.jsonl"])


def test_the_id_of_a_line_is_no_conversation(tmp_path: Path) -> None:
    """A column of that name would be there twice."""
    (tmp_path / "in.jsonl").write_bytes(LINE)
    task = BatchTask(operation="count", column="id")
    with pytest.raises(ConfigurationError, match="is the key of the ids in JSON lines: name the key"):
        run_batch(task, tmp_path / "in.jsonl", target=tmp_path / "out.jsonl", workers=1)


@pytest.mark.parametrize("target", ["out.parquet", "out.jsonl"])
def test_partitions_keep_their_column(tmp_path: Path, target: str) -> None:
    """It stands in the names of folders, which a folder of results has as well and one file has not."""
    table = pa.table({"day": ["1", "1", "2"], "messages": [json.dumps(CHAT)] * 3})
    pq.write_to_dataset(table, tmp_path / "in", partition_cols=["day"])
    with pytest.raises(ConfigurationError, match=r"day=1/.*NAME=VALUE .* write into a folder"):
        run_batch(COUNT, tmp_path / "in", target=tmp_path / target, workers=1)
    run_batch(COUNT, tmp_path / "in", target=tmp_path / "out", workers=1)
    assert sorted(pq.read_table(tmp_path / "out").column("day").to_pylist()) == [1, 1, 2]


@pytest.mark.few(1)
@pytest.mark.parametrize("source", ["in.jsonl", "folder"])
def test_the_name_of_a_folder_may_have_a_dot(tmp_path: Path, source: str) -> None:
    """Where a folder is read, a folder is written; for a file it is there, or its name ends as one's."""
    (tmp_path / "folder").mkdir()
    for name in ("in.jsonl", "folder/in.jsonl"):
        (tmp_path / name).write_bytes(LINE)
    (tmp_path / "run.v2").mkdir()
    for target in ("run.v2", "run.v3/"):
        run_batch(COUNT, tmp_path / source, target=f"{tmp_path}/{target}", workers=1)
        assert b"tokens" in (tmp_path / target / "in.jsonl").read_bytes()
    if source == "in.jsonl":  # a Path drops the end of its name
        with pytest.raises(ConfigurationError, match="it first, or pass it as text that ends with /"):
            run_batch(COUNT, tmp_path / source, target=Path(f"{tmp_path}/run.v5/"), workers=1)
    run_batch(COUNT, tmp_path / "folder", target=tmp_path / "run.v4", workers=1)
    assert (tmp_path / "run.v4" / "in.jsonl").is_file()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"model": "nobody-1"}, "nobody-1"),
        ({"model": "gpt-4o", "budget": 10_000_000}, "128,000"),
        ({"budget": 50, "policy": {"blocks": [{"name": "a"}, {"name": "b"}]}}, "'history'"),
        ({"budget": 50, "counter": lambda messages: 2 * len(messages)}, "another process"),
    ],
)
def test_what_is_wrong_with_every_row_is_said_before_the_first(
    tmp_path: Path, options: Any, said: str
) -> None:
    """Not after an hour, and not row by row; nothing is left of such a run."""
    (tmp_path / "in.jsonl").write_bytes(LINE)
    with pytest.raises(ContextError, match=said):
        run_batch(
            BatchTask(operation="fit", **options),
            tmp_path / "in.jsonl",
            target=tmp_path / "out.jsonl",
            workers=1,
        )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl"]


def test_what_json_cannot_say_is_refused(tmp_path: Path) -> None:
    """A column of bytes; and a number that is none, or a text that is no UTF-8, with its row."""
    for values, where in (
        ([b"\x00"] * 2, ": "),
        ([0.5, float("nan")], ", row 2: "),
        (_odd_texts(), ", row 2: "),
    ):
        table = pa.table({"other": values, "messages": [json.dumps(CHAT)] * 2})
        pq.write_table(table, tmp_path / "in.parquet")
        said = f"in.parquet{where}column 'other' cannot be written as JSON"
        with pytest.raises(ConfigurationError, match=re.escape(said)):
            run_batch(COUNT, tmp_path / "in.parquet", target=tmp_path / "out.jsonl", workers=1)


def _odd_texts() -> pa.Array:
    """Make an array of text whose second value is no UTF-8."""
    return pa.Array.from_buffers(pa.string(), 2, pa.array([b"well", b"\xff"]).buffers())


def test_a_conversation_that_is_no_utf8_is_a_line_with_its_error(tmp_path: Path) -> None:
    """What it was stands there escaped."""
    pq.write_table(pa.table({"messages": _odd_texts()}), tmp_path / "in.parquet")
    done = run_batch(COUNT, tmp_path / "in.parquet", target=tmp_path / "out.jsonl", workers=1)
    assert done.failed_rows == 2
    assert _read(tmp_path / "out.jsonl")[1]["messages"] == "\\xff"


def test_a_damaged_page_is_said_with_its_file(tmp_path: Path) -> None:
    """And the rows before which it is."""
    source = _parquet(tmp_path / "in.parquet", pa.table({"messages": [json.dumps(CHAT)] * 4}), rows=2)
    at = pq.read_metadata(source).row_group(1).column(0)
    data = bytearray(source.read_bytes())
    start = min(one for one in (at.dictionary_page_offset, at.data_page_offset) if one)
    data[start : start + 8] = b"\xff" * 8
    source.write_bytes(data)
    with pytest.raises(ConfigurationError, match=r"in\.parquet: cannot be read after row 2 "):
        run_batch(COUNT, source, target=tmp_path / "out.parquet", workers=1)


@pytest.mark.long
def test_a_run_that_goes_on_writes_over_nothing_of_others(chats: Path) -> None:
    """What came to its place meanwhile is another's, and so is what took the place of its own file."""
    folder, target = chats.parent / "two", chats.parent / "out"
    folder.mkdir()
    for name in ("a.parquet", "b.parquet"):
        (folder / name).write_bytes(chats.read_bytes())

    def stop(done: BatchSummary) -> None:
        if done.rows > 700:
            raise _Stopped

    with pytest.raises(_Stopped):
        run_batch(FIT, folder, target=target, workers=1, on_progress=stop)
    mine = (target / "a.parquet").read_bytes()
    for name in ("a.parquet", "b.parquet"):
        (target / name).write_bytes(b"another's")
        with pytest.raises(ConfigurationError, match=f"{name} exists already: pass another name"):
            run_batch(FIT, folder, target=target, workers=1)
        assert (target / name).read_bytes() == b"another's"
        (target / name).unlink()
    done = run_batch(FIT, folder, target=target, workers=1)
    assert (target / "a.parquet").read_bytes() == mine
    a, b = (pq.read_table(target / name).drop_columns("error") for name in ("a.parquet", "b.parquet"))
    assert a.equals(b)
    assert done.resumed_rows > 0


def test_a_run_that_did_nothing_leaves_nothing(tmp_path: Path) -> None:
    """And one without rows names the file it wrote."""
    (tmp_path / "in.jsonl.gz").write_bytes(b"no gzip")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        run_batch(COUNT, tmp_path / "in.jsonl.gz", target=tmp_path / "out.jsonl", workers=1)
    assert _rest(tmp_path) == []
    (tmp_path / "none.jsonl").write_bytes(b"")
    done = run_batch(COUNT, tmp_path / "none.jsonl", target=tmp_path / "out.jsonl", workers=1)
    assert (done.rows, done.outputs) == (0, (tmp_path / "out.jsonl",))


def test_lines_that_were_made_of_bodies_are_read_again(tmp_path: Path) -> None:
    """A cell may hold a body, which is then under the key of the messages; a fit writes it back there."""
    body = {"model": "gpt-4o", "messages": [{"role": "user", "content": f"{n} " * 40} for n in range(9)]}
    pq.write_table(pa.table({"id": [1], "messages": [json.dumps(body)]}), tmp_path / "in.parquet")
    run_batch(COUNT, tmp_path / "in.parquet", target=tmp_path / "counted.jsonl", workers=1)
    task = BatchTask(operation="fit", budget=100, counter="chars:4", prefix="then_")
    run_batch(task, tmp_path / "counted.jsonl", target=tmp_path / "fitted.jsonl", workers=1)
    (row,) = _read(tmp_path / "fitted.jsonl")
    assert (row["id"], row["tokens"], row["then_error"]) == (1, 180, None)
    assert row["messages"] == fit(body, 100, counter="chars:4").request != body


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "line",
    [
        {"id": 1, "conversations": [{"from": "human", "value": "hi"}]},
        {"custom_id": "c", "method": "POST", "body": {"messages": CHAT}},
        {"id": 1, "text": "hi"},
        {},
    ],
)
def test_a_line_without_messages_says_its_keys_and_the_option(tmp_path: Path, line: dict[str, Any]) -> None:
    """The default name is nobody's choice; who has another learns how it is said."""
    (tmp_path / "in.jsonl").write_text(json.dumps(line))
    run_batch(COUNT, tmp_path / "in.jsonl", target=tmp_path / "out.jsonl", workers=1)
    (row,) = _read(tmp_path / "out.jsonl")
    begin = f"the line has no key 'messages' (its first keys: {', '.join(line) or 'none'})"
    assert row["error"]["message"].startswith(begin)
    assert row["error"]["message"].endswith("column= (--column)")


@pytest.mark.parametrize(
    ("lines", "what"),
    [
        (claude_session(), "a line of Claude Code's log: read_foreign(messages) of trimtab.formats reads it"),
        (codex_lines({"model": "m", "input": CHAT}), "a line of Codex's log: read_foreign(messages)"),
    ],
    ids=["claude_code", "codex"],
)
def test_a_log_of_an_agent_is_told_line_by_line(
    tmp_path: Path, lines: list[dict[str, Any]], what: str
) -> None:
    """A row is a whole conversation, so each line is set aside with what reads the file."""
    (tmp_path / "in.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    run_batch(COUNT, tmp_path / "in.jsonl", target=tmp_path / "out.jsonl", workers=1)
    first = _read(tmp_path / "out.jsonl")[0]
    assert first["error"]["message"].startswith(f"it is {what}")
    assert first["error"]["message"].endswith("a row must be a whole conversation")


def test_nested_columns_come_into_lines_without_keys_that_are_null(tmp_path: Path) -> None:
    """A struct has the keys of all messages: written as nulls they made a valid conversation a faulty one."""
    chat = [
        {"role": "user", "content": [{"type": "text", "text": "Rain?"}]},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "t", "name": "look", "input": {"city": "B"}}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "sun"}]},
    ]
    table = pa.table({"id": [1, 2], "messages": [chat, chat[:1]], "tags": [{"a": 1, "b": None}] * 2})
    pq.write_table(table, tmp_path / "in.parquet")
    run_batch(FIT, tmp_path / "in.parquet", target=tmp_path / "out.jsonl", workers=1)
    rows = _read(tmp_path / "out.jsonl")
    assert [row["messages"] for row in rows] == [chat, chat[:1]]
    assert rows[0]["tags"] == {"a": 1, "b": None}


def test_lines_hold_their_conversation_under_any_key(tmp_path: Path) -> None:
    """As a list or as JSON text; the rest of a line stays, and a line without the key is set aside."""
    talk = [{"role": "user", "content": f"{n} " * 40} for n in range(9)]
    lines = [{"id": 7, "talk": talk}, {"id": 8, "talk": json.dumps(talk)}, {"id": 9, "messages": talk}]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    task = BatchTask(operation="fit", budget=100, counter="chars:4", column="talk")
    run_batch(task, tmp_path / "in.jsonl", target=tmp_path / "out.jsonl", workers=1)
    first, second, third = _read(tmp_path / "out.jsonl")
    (alone,) = fit_table(
        pa.table({"messages": [json.dumps(talk)]}), budget=100, counter="chars:4"
    ).to_pylist()
    assert first["talk"] == json.loads(alone["messages"]) != talk
    whole = fit_table(
        pa.table({"talk": [json.dumps(lines[1])]}), budget=9_000, counter="chars:4", column="talk"
    )
    assert whole.column("talk").to_pylist() == [json.dumps(lines[1])]
    body = {
        "contents": [{"role": "user", "parts": [{"text": "Hi"}]}],
        "systemInstruction": {"parts": [{"text": "x" * 400}]},
    }
    (counted,) = count_table(
        pa.table({"contents": [json.dumps(body)]}), column="contents", counter="chars:4"
    ).to_pylist()
    assert counted["tokens"] > 100
    assert json.loads(second["talk"]) == first["talk"]
    assert [one["id"] for one in (first, second, third)] == [7, 8, 9]
    assert "no key 'talk'" in third["error"]["message"]
    run_batch(task, tmp_path / "in.jsonl", target=tmp_path / "out.parquet", workers=1)
    again = BatchTask(operation="count", counter="chars:4", column="talk", prefix="then_")
    counted = again(pq.read_table(tmp_path / "out.parquet"))
    assert counted.column("then_tokens").to_pylist() == [alone["tokens_after"]] * 2 + [None]
