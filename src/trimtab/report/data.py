"""Reports as plain data and back; the readers are chosen by each field's annotation."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from functools import lru_cache
from operator import attrgetter
from typing import Any, TypeVar, cast

from trimtab._shared.checks import is_whole
from trimtab.errors import ConfigurationError
from trimtab.report.rows import (
    FATES,
    REASONS,
    STATES,
    BlockReport,
    EvictedUnit,
    InsertedRow,
    MessageRow,
    ReferenceRow,
    ResultRow,
    RuleCounts,
    RunRow,
    SummaryCheck,
    Violation,
    WrittenResults,
)

T = TypeVar("T")
Reader = Callable[[object, str], object]
"""Reads one JSON value; the second argument says where it stands, for the error."""


def to_data(value: Any, *, include_text: bool) -> dict[str, Any]:
    """Write a value of the report as a dict of plain data, field by field."""
    names, values_of, sequences, nested = _fields_of(cast("Hashable", type(value)), include_text)
    data: dict[str, Any] = dict(zip(names, values_of(value), strict=True))
    for name in nested:
        one = data[name]
        if one is not None:
            data[name] = dict(one) if isinstance(one, Mapping) else to_data(one, include_text=include_text)
    for name in sequences:
        data[name] = [
            item if isinstance(item, str) else to_data(item, include_text=include_text) for item in data[name]
        ]
    return data


@lru_cache(maxsize=16)
def _fields_of(
    kind: Hashable, include_text: bool
) -> tuple[tuple[str, ...], Callable[[Any], tuple[Any, ...]], tuple[str, ...], tuple[str, ...]]:
    """Name the fields of a class of rows, what reads them, those that hold several, those that nest."""
    chosen = [
        entry
        for entry in fields(cast("Any", kind))
        if entry.name != "text" or (include_text and kind is not RunRow)
    ]
    names = tuple(entry.name for entry in chosen)
    sequences = tuple(entry.name for entry in chosen if str(entry.type).startswith(("tuple[", "Sequence[")))
    nested = tuple(
        entry.name
        for entry in chosen
        if str(entry.type).startswith(("Mapping[", "RunRow", "SummaryCheck", "RuleCounts", "WrittenResults"))
    )
    return names, attrgetter(*names), sequences, nested


def from_data(make: Callable[..., T], data: object, *, where: str) -> T:
    """Read a dict that `to_data` wrote for the dataclass `make`."""
    if not isinstance(data, Mapping):
        raise _wrong(where, "a mapping", data)
    prefix = f"{where}." if where else ""
    known: dict[str, Field[Any]] = {entry.name: entry for entry in fields(cast("Any", make))}
    for key in data:
        if key not in known:
            raise ConfigurationError(f"a report has no key '{prefix}{key}'; known: {', '.join(known)}")
    for name, entry in known.items():
        if name not in data and entry.default is MISSING:
            raise ConfigurationError(f"the report has no key '{prefix}{name}', which is required")
    return make(**{key: _READERS[str(known[key].type)](data[key], f"{prefix}{key}") for key in data})


def _wrong(where: str, wanted: str, found: object) -> ConfigurationError:
    shown = repr(found) if isinstance(found, (str, int, float, type(None))) else type(found).__name__
    return ConfigurationError(f"{where or 'a report'!r} must be {wanted}, not {shown:.60}")


def _value(wanted: str, is_right: Callable[[object], bool]) -> Reader:
    def read(value: object, where: str) -> object:
        if not is_right(value):
            raise _wrong(where, wanted, value)
        return value

    return read


def _one_of(words: Sequence[str]) -> Reader:
    return _value(f"one of {', '.join(words)}", lambda value: value in words)


def _optional(reader: Reader) -> Reader:
    return lambda value, where: None if value is None else reader(value, where)


def _many(reader: Reader) -> Reader:
    def read(value: object, where: str) -> object:
        if not isinstance(value, (list, tuple)):
            raise _wrong(where, "a list", value)
        return tuple(reader(item, f"{where}[{place}]") for place, item in enumerate(value))

    return read


def _row(make: Callable[..., object]) -> Reader:
    return lambda value, where: from_data(make, value, where=where)


def _rows(make: Callable[..., object]) -> Reader:
    return _many(_row(make))


def _counts(value: object, where: str) -> object:
    if not isinstance(value, Mapping):
        raise _wrong(where, "a mapping", value)
    return {str(key): _number(count, f"{where}.{key}") for key, count in value.items()}


def runs_from(data: object) -> tuple[RunRow, ...]:
    """Read the runs of a report."""
    return cast("tuple[RunRow, ...]", _rows(RunRow)(data, "runs"))


_number = _value("a whole number", is_whole)
_string = _value("a string", lambda value: isinstance(value, str))
_READERS: dict[str, Reader] = {
    "int": _number,
    "int | None": _optional(_number),
    "str": _string,
    "str | None": _optional(_string),
    "bool": _value("true or false", lambda value: isinstance(value, bool)),
    "Fate": _one_of(FATES),
    "Reason | None": _optional(_one_of(REASONS)),
    "State": _one_of(STATES),
    "tuple[str, ...]": _many(_string),
    "tuple[Action, ...]": _many(_string),
    "Sequence[MessageRow]": _rows(MessageRow),
    "RunRow": _row(RunRow),
    "Sequence[RunRow]": _rows(RunRow),
    "Sequence[EvictedUnit]": _rows(EvictedUnit),
    "tuple[ResultRow, ...]": _rows(ResultRow),
    "tuple[InsertedRow, ...]": _rows(InsertedRow),
    "tuple[BlockReport, ...]": _rows(BlockReport),
    "Sequence[Violation]": _rows(Violation),
    "tuple[ReferenceRow, ...]": _rows(ReferenceRow),
    "Mapping[str, int]": _counts,
    "Mapping[str, int] | None": _optional(_counts),
    "WrittenResults | None": _optional(_row(WrittenResults)),
    "SummaryCheck | None": _optional(_row(SummaryCheck)),
    "RuleCounts | None": _optional(_row(RuleCounts)),
}
"""By annotation, which `from __future__ import annotations` keeps as the string it was written as."""
