"""Conversations in the columns of an Arrow table: read from text or nested values, and written back."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any, NamedTuple, TypeAlias

from trimtab._shared.checks import in_words, near_names
from trimtab._shared.lazy import package_of
from trimtab._shared.strict_json import parse
from trimtab.errors import ConfigurationError, FormatError

# pyarrow brings no types: these names say what is meant.
Table: TypeAlias = Any
"""A `pyarrow.Table`."""
RecordBatch: TypeAlias = Any
"""A `pyarrow.RecordBatch`."""
Schema: TypeAlias = Any
"""A `pyarrow.Schema`."""
DataType: TypeAlias = Any
"""A `pyarrow.DataType`."""


UNREADABLE = (KeyError, ValueError, OverflowError, NotImplementedError)
"""What Arrow raises of a value that Python has nothing for: a key twice in a map, a time of nanoseconds."""


def pyarrow(module: str = "pyarrow") -> ModuleType:
    """Import pyarrow, or a module of it.

    Raises:
        MissingExtraError: It is not installed.
    """
    return package_of("batch", package=module, needed_by="trimtab.batch")


def column_type(schema: Schema, name: str, /) -> DataType:
    """Return the type of the column of conversations.

    Raises:
        ConfigurationError: There is no such column, two columns have one name, or its values can be no
            conversations.
    """
    if name not in schema.names:
        near = in_words(near_names(name, schema.names))
        raise ConfigurationError(f"there is no column {name!r}; there are: {', '.join(schema.names)}{near}")
    twice = sorted(name for name, count in Counter(schema.names).items() if count > 1)
    if twice:
        raise ConfigurationError(f"the table has several columns {twice[0]!r}: rename one, or leave it out")
    kind = schema.field(name).type
    if not is_text(kind) and (kind.num_fields == 0 or not _is_plain(kind)):
        raise ConfigurationError(
            f"column {name!r} has type {kind}: conversations must be JSON text (string, binary), or nested"
            " lists, structs and maps with unique field names"
        )
    return kind


def _is_plain(kind: DataType) -> bool:
    """Tell whether values of a type can be plain data and back: no unions, no two fields of one name."""
    types = pyarrow().types
    if types.is_union(kind) or types.is_run_end_encoded(kind):
        return False
    inner = [kind.field(at) for at in range(kind.num_fields)]
    return len({one.name for one in inner}) == len(inner) and all(_is_plain(one.type) for one in inner)


def is_text(kind: DataType, /) -> bool:
    """Tell whether values of a type are JSON in text."""
    pa = pyarrow()
    types = pa.types
    if isinstance(kind, pa.BaseExtensionType):  # as Parquet's own JSON
        kind = kind.storage_type
    if types.is_dictionary(kind):
        kind = kind.value_type
    texts = (types.is_string, types.is_large_string, types.is_string_view)
    raw = (types.is_binary, types.is_large_binary, types.is_binary_view)
    return any(test(kind) for test in (*texts, *raw))


def cells(table: Table, name: str, /) -> Iterator[Any]:
    """Give the cells of the column of conversations: text or bytes as they are, nested values as plain data.

    A null inside of a nested value is a key that is not there: a struct has every key that any row has. Text
    that is no UTF-8, which Arrow does not look at, comes as bytes.
    """
    for value in values_of(table.column(name)):
        yield _without_nulls(value)


def values_of(column: Any, /) -> list[Any]:
    """Give the values of a column as plain data, and an `Unreadable` where Python has nothing for one."""
    try:
        values: list[Any] = column.to_pylist(maps_as_pydicts="strict")
    except UNREADABLE:
        return [_value(cell) for cell in column]
    return values


class Unreadable(NamedTuple):
    """A nested value that is no plain data, and why."""

    value: Any
    """As much of it as Python has something for, and text for the rest."""
    why: str


def _value(cell: Any) -> Any:
    try:
        return cell.as_py(maps_as_pydicts="strict")
    except UNREADABLE as error:
        return _bytes_in(cell) if is_text(cell.type) else Unreadable(_plain(cell), str(error))


def _plain(cell: Any) -> Any:
    """Give a value part by part: what is no UTF-8 escaped, and what else Python has nothing for as text."""
    try:
        return cell.as_py()
    except UNREADABLE:
        types = pyarrow().types
    if is_text(cell.type):
        return text_of(_bytes_in(cell))
    if types.is_struct(cell.type):
        return {cell.type.field(at).name: _plain(cell[at]) for at in range(cell.type.num_fields)}
    if types.is_nested(cell.type):
        return [_plain(part) for part in cell.values]
    try:
        return cell.cast(pyarrow().string()).as_py()
    except pyarrow().ArrowException:
        return f"<{cell.type}>"


def _bytes_in(cell: Any) -> bytes:
    pa = pyarrow()
    if isinstance(cell.type, pa.BaseExtensionType) or pa.types.is_dictionary(cell.type):
        return _bytes_in(cell.value)
    return bytes(cell.as_buffer())


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    return [_without_nulls(inner) for inner in value] if isinstance(value, list) else value


def conversation_in(cell: Any, /) -> Sequence[Any] | Mapping[str, Any]:
    """Read the conversation of a cell.

    Raises:
        FormatError: It is null, no JSON, or no conversation.
    """
    if cell is None:
        raise FormatError("there is no conversation: the cell is null")
    if isinstance(cell, Unreadable):
        raise FormatError(f"it cannot be converted to plain data: {cell.why}")
    value = parse(cell.encode("utf-8") if isinstance(cell, str) else cell) if _is_raw(cell) else cell
    if not isinstance(value, list | dict):
        raise FormatError(f"a conversation must be a list of messages or a request body, not {value!r:.40}")
    return value


def _is_raw(cell: object) -> bool:
    return isinstance(cell, str | bytes)


def json_text(value: Any, /) -> str:
    """Write JSON; half a surrogate pair, which no encoding has, is escaped."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    except RecursionError as error:
        raise FormatError("nested too deep to be written as JSON") from error
    return text


def nested_cell(value: Any, kind: DataType, /) -> Any:
    """Make sure that a changed conversation can be written in the type of its column.

    Raises:
        FormatError: It has a key or a value the type has no place for; Arrow itself drops such keys unseen.
    """
    try:
        back = pyarrow().array([value], type=kind).to_pylist(maps_as_pydicts="strict")[0]
    except (*UNREADABLE, TypeError, AttributeError) as error:
        raise FormatError(f"the column cannot store the fitted messages: {error}") from error
    if not _is_same(_without_nulls(back), _without_nulls(value)) or _lacks(back, kind):
        raise FormatError(
            "the column's type cannot store the fitted messages: keep messages as JSON text, or add the"
            " keys of an inserted message to the type"
        )
    return value


def _lacks(value: Any, kind: DataType) -> bool:
    """Tell whether a value has null where its type takes none, which Arrow says when it is written."""
    inner = [kind.field(at) for at in range(kind.num_fields)]
    if isinstance(value, dict) and not pyarrow().types.is_map(kind):
        parts = [(value[one.name], one) for one in inner]
    else:
        parts = [(part, inner[0]) for part in value] if isinstance(value, list) else []
    return any(_lacks(part, one.type) if part is not None else not one.nullable for part, one in parts)


def _is_same(one: Any, other: Any) -> bool:
    """Compare plain data; a number that is none is the same as itself here."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_is_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_same, one, other))
    return bool(one == other or (one != one and other != other))


def text_of(cell: Any, /) -> str | None:
    """Return what a cell holds as text, whatever that is; what is no UTF-8 is escaped."""
    if cell is None:
        return None
    if isinstance(cell, bytes):
        return cell.decode("utf-8", "backslashreplace")
    if isinstance(cell, Unreadable):
        cell = cell.value
    if not isinstance(cell, str):
        cell = json.dumps(cell, ensure_ascii=False, separators=(",", ":"), default=str)
    return str(printable(cell))


def printable(value: Any, /) -> Any:
    """Escape half a surrogate pair, which no encoding has, in all texts of a value."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {printable(key): printable(one) for key, one in value.items()}
    return [printable(one) for one in value] if isinstance(value, list | tuple) else value
