"""Strict JSON: what is read can be written again, and everything else is a typed error."""

from __future__ import annotations

import json
import math
from typing import Any

from trimtab.errors import FormatError

_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


class BrokenJSONError(FormatError):
    """Bytes that are no JSON; says the column, and the line where there is more than one."""

    def __init__(self, message: str, *, cut_off: bool = False) -> None:
        super().__init__(message)
        self.cut_off = cut_off
        """True if it only lacks an end."""


def parse(raw: bytes, *, whole: bool = False) -> Any:
    """Read JSON in UTF-8.

    Args:
        raw: One line, or a whole document.
        whole: Say the line of a mistake too.

    Raises:
        BrokenJSONError: It is no JSON or no UTF-8, is nested too deep, or holds a number that
            could not be written again (NaN, Infinity, 1e999, thousands of digits).
    """
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BrokenJSONError(_not_utf8(raw, error, whole=whole)) from error
    if not text.strip():
        raise BrokenJSONError("it is empty")
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}" if whole else f"column {error.colno}"
        cut_off = error.pos >= len(text.rstrip())
        raise BrokenJSONError(f"not JSON: {error.msg} ({where})", cut_off=cut_off) from error
    except RecursionError as error:
        raise BrokenJSONError("the JSON is nested too deep to be read") from error
    except ValueError as error:
        # json.loads leaves int() to refuse thousands of digits, with advice for programmers.
        raise BrokenJSONError(str(error).partition(";")[0]) from error


def _not_utf8(raw: bytes, error: UnicodeDecodeError, *, whole: bool) -> str:
    if raw.startswith(_UTF16_MARKS):
        return "not UTF-8 but UTF-16: save it as UTF-8"
    line = raw.count(b"\n", 0, error.start) + 1
    byte = error.start - raw.rfind(b"\n", 0, error.start)
    where = f"line {line}, byte {byte}" if whole else f"byte {byte}"
    return f"not UTF-8: 0x{raw[error.start]:02x} ({where})"


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"the number {text:.20} is too large to be written as JSON again")
    return number


def _no_constant(text: str) -> None:
    raise ValueError(f"not JSON: {text} is not a JSON number")


_DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=_no_constant)
"""Made once: `json.loads` makes one for each call, which of a short text is half of the work."""


def dump(data: Any, *, indent: int | None = None) -> bytes:
    """Write JSON in UTF-8 and a line end; lone surrogates are escaped."""
    separators = None if indent else (",", ":")
    try:
        text = json.dumps(data, ensure_ascii=False, allow_nan=False, indent=indent, separators=separators)
    except RecursionError as error:
        raise FormatError("nested too deep to be written as JSON") from error
    try:
        return text.encode("utf-8") + b"\n"
    except UnicodeEncodeError:
        return json.dumps(data, allow_nan=False, indent=indent, separators=separators).encode("ascii") + b"\n"
