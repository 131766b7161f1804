"""Files of conversations in and out: which there are, how they are read in pieces, and results written."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from glob import escape, has_magic
from os.path import isdir, isfile
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from uuid import uuid4

from trimtab._shared.files import BYTE_ORDER_MARK, CODECS, LINE_SUFFIXES, PARQUET_SUFFIXES, visible_paths
from trimtab._shared.strict_json import parse
from trimtab.batch.arrow import (
    Schema,
    Table,
    Unreadable,
    cells,
    is_text,
    json_text,
    pyarrow,
    text_of,
    values_of,
)
from trimtab.batch.parquet import RowGroups, open_parquet, pack, read_group
from trimtab.batch.task import ID, ROWS_AT_ONCE, BatchTask
from trimtab.errors import (
    ConfigurationError,
    FormatError,
    Hint,
    phrase,
)

CHUNK_BYTES = 4 << 20
"""Bytes of lines that are one piece of work; of Parquet that is a row group."""

_KNOWN = "`.parquet`, `.pq`, `.jsonl` or `.ndjson` (these two also with `.gz` or `.zst` behind)"


class Form(NamedTuple):
    """How a file holds conversations."""

    lines: bool
    """Whether it holds lines of JSON; else Parquet."""
    packed: str = ""
    """How lines are compressed, as their suffix says."""


def form_of(path: Path, /) -> Form | None:
    """Tell what a file holds, by its suffix; None: nothing that is known."""
    suffixes = [one.lower() for one in path.suffixes]
    if suffixes and suffixes[-1] in PARQUET_SUFFIXES:
        return Form(lines=False)
    packed = suffixes.pop() if suffixes and suffixes[-1] in CODECS else ""
    return Form(lines=True, packed=packed) if suffixes and suffixes[-1] in LINE_SUFFIXES else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One file that is written, and those it is made of."""

    root: Path
    """The folder that inputs are named from."""
    inputs: tuple[Path, ...]
    output: Path


def jobs_of(source: Path, target: Path, /, *, into_folder: bool = False) -> tuple[list[Job], int]:
    """Say which files are read and which are written, and how many of a folder are of another kind.

    A folder becomes a folder with the same names in it, or one file, if the target has a suffix of one. Files
    and folders whose names begin with a dot or an underscore are passed over. A link to a folder is not
    followed, and counts as a file of another kind.

    Args:
        source: A file, or a folder.
        target: A file, or a folder, whose name may have a dot.
        into_folder: The target is a folder, whatever its name.

    Raises:
        ConfigurationError: There is nothing to read, a suffix is none that is known, the target would be
            written into the source, or one file would lose the columns that folders are called after.
    """
    may_be_file = not into_folder and not isdir(target)
    as_file = may_be_file and form_of(target) is not None
    if not isdir(source):
        if not isfile(source):
            hint = "; the input must be a file, or a folder of files" if has_magic(str(source)) else ""
            raise ConfigurationError(f"{source}: No such file or folder{hint}")
        if form_of(source) is None:
            raise ConfigurationError(f"{source}: conversations are read from {_KNOWN}, or a folder of them")
        if may_be_file and not as_file and target.suffix:
            raise ConfigurationError(
                phrase(
                    f"{target}: results are written as {_KNOWN}, or into a folder."
                    " If the folder's name has a dot, create it first, or pass it as text that ends with /"
                    f" ({f'{target}/'!r}",
                    Hint("path", ", because a Path drops the slash"),
                    ")",
                )
            )
        output = target if as_file else target / source.name
        if output.resolve() == source.resolve():
            raise ConfigurationError(f"{output} is an input and would be overwritten: pass another name")
        return [Job(root=source.parent, inputs=(source,), output=output)], 0
    if target.resolve().is_relative_to(source.resolve()):
        raise ConfigurationError(f"{target} is inside the input {source}: write it elsewhere")
    paths = visible_paths(source)
    found = [path for path in paths if path.is_file() and form_of(path) is not None]
    others = sum(path.is_symlink() or not path.is_dir() for path in paths) - len(found)
    if not found:
        raise ConfigurationError(f"{source}: the folder has no file that ends in {_KNOWN}")
    if as_file:
        partition = next((path for path in found if "=" in str(path.relative_to(source).parent)), None)
        if partition is not None:
            raise ConfigurationError(
                f"{partition}: a folder NAME=VALUE contains the value of a column, which one file would"
                " lose: write into a folder, which keeps it"
            )
        return [Job(root=source, inputs=tuple(found), output=target)], others
    jobs = [Job(root=source, inputs=(path,), output=target / path.relative_to(source)) for path in found]
    return jobs, others


# Pieces of work.


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A piece of the input that one worker does at once."""

    index: int
    job: int
    """Which job it is of."""
    path: Path
    name: str
    """What an error calls the file: the same on every machine."""
    group: int | None = None
    """The row group of a Parquet file."""
    start: int = 0
    size: int = 0
    """Where its lines begin and how many bytes they are."""
    data: bytes | None = None
    """The lines themselves, of a file that has to be unpacked from its front on."""
    first_row: int = 1
    share: float = 0.0
    """How much of the input ends with it, from 0 to 1."""


def units_of(jobs: Sequence[Job], /, *, chunk_bytes: int) -> Iterator[Unit]:
    """Cut the input into pieces, in order; no more of it is held than one piece.

    Raises:
        ConfigurationError: A file cannot be read.
    """
    sizes = {path: path.stat().st_size for job in jobs for path in job.inputs}
    total, before, index = max(1, sum(sizes.values())), 0, 0
    for number, job in enumerate(jobs):
        for path in job.inputs:
            pieces = _groups(path) if not _form(path).lines else _chunks(path, chunk_bytes)
            for piece in pieces:
                share = (before + piece.share * sizes[path]) / total
                yield Unit(
                    index=index,
                    job=number,
                    path=path,
                    name=path.relative_to(job.root).as_posix(),
                    group=piece.group,
                    start=piece.start,
                    size=piece.size,
                    data=piece.data,
                    first_row=piece.first_row,
                    share=share,
                )
                index += 1
            before += sizes[path]


class _Piece(NamedTuple):
    first_row: int
    share: float
    group: int | None = None
    start: int = 0
    size: int = 0
    data: bytes | None = None


def _form(path: Path) -> Form:
    found = form_of(path)
    assert found is not None, path  # jobs have no others
    return found


def _groups(path: Path) -> Iterator[_Piece]:
    metadata, row = open_parquet(path).metadata, 1
    for group in range(metadata.num_row_groups):
        yield _Piece(row, (group + 1) / metadata.num_row_groups, group=group)
        row += metadata.row_group(group).num_rows


def _chunks(path: Path, chunk_bytes: int) -> Iterator[_Piece]:
    """Cut lines into chunks that end with a line; only of packed files the bytes are kept."""
    total, start, row = max(1, path.stat().st_size), 0, 1
    packed = _form(path).packed
    try:
        with path.open("rb") as raw, _unpack(raw, packed) as file:
            while data := file.read(chunk_bytes):
                data += file.readline()
                kept = data if packed else None
                yield _Piece(row, raw.tell() / total, start=start, size=len(data), data=kept)
                start, row = start + len(data), row + data.count(b"\n")
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read after row {row - 1:,}: {error}") from error


def _unpack(raw: BinaryIO, packed: str) -> BinaryIO:
    """Read what is packed; Arrow does not take a file that was cut off for a whole one."""
    if not packed:
        return raw
    return io.BufferedReader(pyarrow().CompressedInputStream(raw, CODECS[packed]))


def do_unit(task: BatchTask, unit: Unit, form: Form, schema: Schema, /) -> tuple[Table, bytes]:
    """Do one piece; gives its table, and the bytes of it in the file that is written."""
    if unit.group is not None:
        table = read_group(unit.path, unit.group)
        numbers = range(unit.first_row, unit.first_row + table.num_rows)
        done = task.run(table, numbers, file=unit.name)
    else:
        lines, line_numbers = _lines_of(unit)
        done = task.run_lines(lines, line_numbers, file=unit.name, into_lines=form.lines)
    if not form.lines:
        return done, pack(done, schema)
    text = b"".join(_write_lines(task, done, unit))
    if form.packed:
        text = pyarrow().Codec(CODECS[form.packed]).compress(text, asbytes=True)
    return done, text


def _lines_of(unit: Unit) -> tuple[list[bytes], list[int]]:
    """Read the lines of a piece that are not blank, and their numbers."""
    data = unit.data
    if data is None:
        with unit.path.open("rb") as file:
            file.seek(unit.start)
            data = file.read(unit.size)
    if not unit.start:
        data = data.removeprefix(BYTE_ORDER_MARK)
    numbered = [
        (line.strip(b" \t\r"), number) for number, line in enumerate(data.split(b"\n"), unit.first_row)
    ]
    kept = [one for one in numbered if one[0]]
    return [line for line, _ in kept], [number for _, number in kept]


# Results as lines.


def _write_lines(task: BatchTask, table: Table, unit: Unit) -> Iterator[bytes]:
    """Write rows as lines; those that were lines of JSON stay what they were, with the results in them."""
    names = {one.name for one in task.result_fields()}
    error, column = f"{task.prefix}error", task.column
    has_texts = is_text(table.schema.field(column).type)
    for at, row in enumerate(_rows_of(table, column), unit.first_row):
        cell, is_bad = row[column], row[error] is not None
        if unit.group is None:
            results = {name: row[name] for name in row if name in names}
            line = _set_aside(results, error) if is_bad else _splice(str(cell), results, column)
        else:
            is_said = has_texts or isinstance(cell, Unreadable)
            held = {column: _plain_text(cell, is_bad=is_bad)} if is_said else {}
            line = _object(row, held, f"{unit.path}, row {at:,}")
        yield line.encode("utf-8") + b"\n"


def _rows_of(table: Table, conversations: str) -> Iterator[dict[str, Any]]:
    """Give rows as plain data, and the column of conversations as these are read.

    A null in a nested one is a key that is not there. No more rows are Python objects at one time than a task
    has.
    """
    for start in range(0, table.num_rows, ROWS_AT_ONCE):
        piece = table.slice(start, ROWS_AT_ONCE)
        columns = [
            cells(piece, name) if name == conversations else values_of(piece.column(name))
            for name in table.column_names
        ]
        yield from (
            dict(zip(table.column_names, values, strict=True)) for values in zip(*columns, strict=True)
        )


def _set_aside(results: dict[str, Any], error: str) -> str:
    """Write a line that cannot be done: the id it has, as it is there, and what it was in its error."""
    try:
        line = parse(results[error]["input"].encode("utf-8"))
    except FormatError:
        line = None
    held = {ID: line[ID]} if isinstance(line, dict) and ID in line else {}
    return json_text({**held, **results})


def _splice(text: str, results: dict[str, Any], column: str) -> str:
    """Put results behind what a line holds, without writing that anew."""
    tail = json_text(results)[1:]
    if text.startswith("{"):
        head = text.rstrip()[:-1].rstrip()
        return f"{head}{'' if head == '{' else ','}{tail}"
    return f"{{{json_text(column)}:{text},{tail}"


def _plain_text(cell: Any, *, is_bad: bool) -> str:
    """Write the cell of a conversation: JSON as it is, and what is none as a text."""
    text = text_of(cell)
    if is_bad or text is None:
        return json_text(text)
    # Between its values only: inside of them JSON escapes a line's end.
    return text.replace("\r", " ").replace("\n", " ")


def _object(row: dict[str, Any], held: dict[str, str], where: str) -> str:
    """Write a row; `held` is JSON for some of its columns.

    Raises:
        ConfigurationError: JSON has nothing for a value of it.
    """
    pairs = []
    for name, value in row.items():
        try:
            if name not in held and isinstance(value, Unreadable | bytes):
                raise FormatError(value.why if isinstance(value, Unreadable) else "it is not text in UTF-8")
            pairs.append(f"{json_text(name)}:{held[name] if name in held else json_text(value)}")
        except (TypeError, ValueError, FormatError) as error:
            raise ConfigurationError(
                f"{where}: column {name!r} cannot be written as JSON ({error}): leave the column out, or"
                " write Parquet"
            ) from error
    return "{" + ",".join(pairs) + "}"


# Pieces put together.


class Assembly:
    """One file that is put together piece by piece beside its place, and is there when it is whole."""

    def __init__(self, output: Path, schema: Schema) -> None:
        self._output = output
        self._form = _form(output)
        output.parent.mkdir(parents=True, exist_ok=True)
        name = f".{escape(output.name)}.{'[0-9a-f]' * 32}.tmp"
        for left in output.parent.glob(name):  # by a run that was killed
            left.unlink(missing_ok=True)
        self._beside = output.with_name(f".{output.name}.{uuid4().hex}.tmp")
        self._file = self._beside.open("wb")
        self._groups = None if self._form.lines else RowGroups(self._file, schema)

    def add(self, part: Path, /) -> None:
        """Put a piece behind the others.

        Raises:
            BatchError: It is not what was written.
        """
        if self._groups is None:
            self._file.write(part.read_bytes())
        else:
            self._groups.add(part)

    def finish(self) -> Path:
        """Write the rest of the file; gives where it is until it is in its place."""
        if self._groups is not None:
            self._groups.finish()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        return self._beside

    def place(self) -> None:
        """Put the finished file in its place."""
        self._beside.replace(self._output)

    def abandon(self) -> None:
        """Leave nothing behind."""
        with suppress(OSError):  # what could not be written cannot be written now
            self._file.close()
        self._beside.unlink(missing_ok=True)


def schema_of(task: BatchTask, job: Job, /) -> Schema:
    """Return the schema of what a job writes, when all that it reads was looked at.

    Raises:
        ConfigurationError: A file has no column of conversations, one of a result's name, one that JSON
            cannot say where lines are written, or other columns than others that go into the same file.
    """
    to_lines = _form(job.output).lines
    found = [_schema(task, path, to_lines=to_lines) for path in job.inputs]
    first = next((at for at, (_, has_rows) in enumerate(found) if has_rows), 0)
    schema, _ = found[first]
    for path, (other, has_rows) in zip(job.inputs, found, strict=True):
        if has_rows and not to_lines and not other.equals(schema):
            raise ConfigurationError(
                f"{path}: files with different columns cannot be written to one file; compared with"
                f" {job.inputs[first]}, this one {_difference(schema, other)}: write into a folder"
            )
    return schema


def _difference(schema: Schema, other: Schema) -> str:
    """Say what another schema lacks, has more or has otherwise."""
    lacks, more = (
        [repr(name) for name in one.names if name not in two.names]
        for one, two in ((schema, other), (other, schema))
    )
    said = [f"{what} {', '.join(names)}" for what, names in (("lacks", lacks), ("also has", more)) if names]
    types = [
        f"has {one.name!r} as {_type_of(one)}, not {_type_of(schema.field(one.name))}"
        for one in other
        if one.name in schema.names and not one.equals(schema.field(one.name))
    ]
    return " and ".join([*said, *types]) or "has them in another order"


def _type_of(field: Any) -> str:
    return f"{field.type}{'' if field.nullable else ' not null'}"


def _schema(task: BatchTask, path: Path, *, to_lines: bool) -> tuple[Schema, bool]:
    """Return the schema of what a file becomes, and whether the file has rows."""
    if _form(path).lines:
        return task.lines_schema(), path.stat().st_size > 0
    file = open_parquet(path)
    try:
        schema = task.schema(file.schema_arrow)
        if to_lines:
            _check_json(schema, task.column)
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error}") from error
    return schema, file.metadata.num_rows > 0


def _check_json(schema: Schema, column: str) -> None:
    """Refuse columns whose values JSON cannot say, before any is met; text of conversations is JSON."""
    for field in schema:
        if (kind := _foreign_to_json(field.type)) and not (field.name == column and is_text(field.type)):
            raise ConfigurationError(
                f"column {field.name!r} cannot be written as JSON ({kind}): leave the column out, or write"
                " Parquet"
            )


def _foreign_to_json(kind: Any) -> Any:
    """Give a type in this one that JSON has nothing for; None: there is none."""
    types = pyarrow().types
    if isinstance(kind, pyarrow().BaseExtensionType):
        return kind if _foreign_to_json(kind.storage_type) or not is_text(kind) else None
    if types.is_dictionary(kind):
        return _foreign_to_json(kind.value_type)
    if types.is_nested(kind):
        inner = (_foreign_to_json(kind.field(at).type) for at in range(kind.num_fields))
        return next((one for one in inner if one is not None), None)
    texts = (types.is_string, types.is_large_string, types.is_string_view)
    known = (*texts, types.is_boolean, types.is_integer, types.is_floating, types.is_null)
    return None if any(test(kind) for test in known) else kind


def write_part(part: Path, data: bytes, /) -> None:
    """Write the results of a piece; they are there whole or not at all."""
    beside = part.with_name(f"{part.name}.{uuid4().hex}.tmp")  # two nodes may have one process id
    with beside.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(part)
