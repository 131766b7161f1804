"""Parquet: tables packed into files, and such files put together without unpacking them.

pyarrow packs and reads, but takes no row group over as it is. The bytes of one say nothing of where they lie;
only the footer of their file does, in Thrift's compact protocol. That much of it is read and written here.

Source: https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift,
https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeAlias

from trimtab.batch.arrow import Schema, Table, pyarrow
from trimtab.errors import BatchError, ConfigurationError

_MAGIC = b"PAR1"
"""Stands at both ends of a file."""
_TAIL_BYTES = 8
"""What is behind a footer: its length in four bytes, and the magic."""


def open_parquet(path: Path, /) -> Any:
    """Open a Parquet file; its pages are not copied before they are read.

    Raises:
        ConfigurationError: It is none, or cannot be read.
    """
    try:
        return pyarrow("pyarrow.parquet").ParquetFile(path, memory_map=True)
    except (OSError, pyarrow().ArrowException) as error:
        raise ConfigurationError(f"{path}: not a readable Parquet file: {error}") from error


def read_group(path: Path, group: int, /) -> Table:
    """Read a row group of a Parquet file.

    Raises:
        ConfigurationError: It is damaged, or no Parquet.
    """
    file = open_parquet(path)
    try:
        return file.read_row_group(group, use_threads=False)
    except (OSError, pyarrow().ArrowException) as error:
        before = sum(file.metadata.row_group(at).num_rows for at in range(group))
        raise ConfigurationError(
            f"{path}: cannot be read after row {before:,} (row group {group}): {error}"
        ) from error


def pack(table: Table | None, schema: Schema, /) -> bytes:
    """Make a Parquet file of a table, without row groups where it has no rows or there is none."""
    sink = pyarrow().BufferOutputStream()
    parquet = pyarrow("pyarrow.parquet")
    with parquet.ParquetWriter(sink, schema, compression="zstd", compression_level=1) as writer:
        if table is not None and table.num_rows:
            writer.write_table(table, row_group_size=table.num_rows)
    return bytes(sink.getvalue())


class RowGroups:
    """A Parquet file that is put together from others with the same columns, row group behind row group.

    Args:
        file: What it is written to, from its front on.
        schema: Its columns.
    """

    def __init__(self, file: BinaryIO, schema: Schema) -> None:
        self._file = file
        self._empty = _footer(pack(None, schema))  # Arrow has no empty table of some types
        """The footer of the file without rows."""
        self._schema = _values(self._empty)[_SCHEMA]
        self._rows = self._count = 0
        self._groups = bytearray()
        """What the footer will say of the row groups."""
        self._size = file.write(_MAGIC)

    def add(self, part: Path, /) -> None:
        """Take over what `pack` made of a table.

        Raises:
            BatchError: It is not whole, or has other columns.
        """
        data = part.read_bytes()
        footer = _footer(data)
        values = _values(footer)
        if values.get(_SCHEMA) != self._schema:
            raise BatchError(f"{part} was changed after it was written: remove its folder, and run again")
        body = memoryview(data)[len(_MAGIC) : -_TAIL_BYTES - len(footer)]
        moved_by = self._size - len(_MAGIC)
        groups = values[_ROW_GROUPS]
        count, at = _items(groups, 0)
        for _ in range(count):
            at = _copy(groups, at, _OFFSETS, moved_by, into=self._groups)
        self._count += count
        self._rows += _read_number(values[_ROWS], 0)[0]
        self._size += self._file.write(body)

    def finish(self) -> None:
        """Write the footer."""
        values = {_ROWS: _write_number(self._rows), _ROW_GROUPS: _structs(self._count) + self._groups}
        footer = bytearray()
        for one in _fields(self._empty):
            footer += self._empty[one.head : one.start]
            footer += values.get(one.id, self._empty[one.start : one.end])
        footer.append(_STOP)
        self._file.write(footer + len(footer).to_bytes(4, "little") + _MAGIC)


# What of a footer is of interest, by the numbers of its fields.

_SCHEMA, _ROWS, _ROW_GROUPS = 2, 3, 4

_Places: TypeAlias = "Mapping[int, _Places | None]"
"""Fields of a struct, which are offsets (None), or structs or lists of structs with such places in them."""

_PAGES: _Places = {9: None, 10: None, 11: None, 14: None}  # of data, an index, a dictionary; a Bloom filter
_CHUNK: _Places = {2: None, 3: _PAGES, 4: None, 6: None}  # its own, and those of its two indexes of pages
_OFFSETS: _Places = {1: _CHUNK, 5: None}
"""Where in what a footer says of a row group it says where in the file something begins."""


def _footer(file: bytes) -> bytes:
    """Cut the footer out of a file; what was cut off has one without fields."""
    if not file.endswith(_MAGIC):
        return bytes([_STOP])
    size = int.from_bytes(file[-_TAIL_BYTES : -len(_MAGIC)], "little")
    return file[-_TAIL_BYTES - size : -_TAIL_BYTES]


def _values(footer: bytes) -> dict[int, bytes]:
    """Cut a footer into its fields; one that ends within a value has none."""
    try:
        return {one.id: footer[one.start : one.end] for one in _fields(footer)}
    except IndexError:
        return {}


# Thrift's compact protocol: its types (a footer has no sets, no maps and no lists of truths), and its values.

_STOP, _TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _STRUCT = 0, 1, 2, 3, 7, 8, 9, 12
_SIZES = {_TRUE: 0, _FALSE: 0, _BYTE: 1, _DOUBLE: 8}
"""Bytes of a field's value, where its type says it; a truth stands in the type itself."""


class _Field(NamedTuple):
    """A field of a struct: its number, and where its head and its value begin and end."""

    id: int
    head: int
    start: int
    end: int


def _fields(data: bytes) -> Iterator[_Field]:
    """Go through the fields of a struct, up to its end."""
    at = id = 0
    while data[at] != _STOP:
        head, (id, kind, at) = at, _field(data, at, id)
        end = _end(data, at, kind)
        yield _Field(id, head, at, end)
        at = end


def _field(data: bytes, at: int, before: int) -> tuple[int, int, int]:
    """Read the head of a field, behind the one with a number: its number and type, and where its value is."""
    (step, kind), at = divmod(data[at], 16), at + 1
    if step:
        return before + step, kind, at
    id, at = _read_number(data, at)
    return id, kind, at


def _end(data: bytes, at: int, kind: int) -> int:
    """Find where a value ends."""
    if kind == _STRUCT:
        while data[at] != _STOP:
            _, kind, at = _field(data, at, 0)
            at = _end(data, at, kind)
        return at + 1
    if kind == _LIST:
        kind = data[at] & 15
        count, at = _items(data, at)
        for _ in range(count):
            at = _end(data, at, kind)
        return at
    if kind in _SIZES:
        return at + _SIZES[kind]
    number, at = _read_length(data, at)
    return at + number if kind == _BINARY else at


def _copy(data: bytes, at: int, offsets: _Places, moved_by: int, *, into: bytearray) -> int:
    """Copy a struct with its offsets moved, and tell where it ends."""
    id = 0
    while data[at] != _STOP:
        head, (id, kind, at) = at, _field(data, at, id)
        into += data[head:at]
        inner = offsets.get(id)
        if id not in offsets:
            end = _end(data, at, kind)
            into += data[at:end]
            at = end
        elif inner is None:
            offset, at = _read_number(data, at)
            # Nothing begins where the magic stands: 0 says that there is nothing.
            into += _write_number(offset + moved_by if offset else 0)
        elif kind == _STRUCT:
            at = _copy(data, at, inner, moved_by, into=into)
        else:
            count, at = _items(data, at)
            into += _structs(count)
            for _ in range(count):
                at = _copy(data, at, inner, moved_by, into=into)
    into.append(_STOP)
    return at + 1


def _items(data: bytes, at: int) -> tuple[int, int]:
    """Read how many items a list has, and where the first begins."""
    count = data[at] >> 4
    return (count, at + 1) if count < 15 else _read_length(data, at + 1)


def _structs(count: int) -> bytes:
    """Write the head of a list of so many structs."""
    return bytes([count << 4 | _STRUCT]) if count < 15 else bytes([0xF0 | _STRUCT]) + _write_length(count)


def _read_length(data: bytes, at: int) -> tuple[int, int]:
    """Read a number, seven bits a byte, and where it ends."""
    number = shift = 0
    while True:
        byte, at = data[at], at + 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
        shift += 7


def _read_number(data: bytes, at: int) -> tuple[int, int]:
    """Read a number that may have a sign, in its lowest bit (none here has one), and where it ends."""
    number, at = _read_length(data, at)
    return number >> 1, at


def _write_length(number: int) -> bytes:
    written = bytearray()
    while number >= 0x80:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*written, number])


def _write_number(number: int) -> bytes:
    return _write_length(number << 1)
