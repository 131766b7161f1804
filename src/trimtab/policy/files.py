"""Files of policies: TOML or JSON, by their suffix."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from trimtab.errors import ConfigurationError, MissingExtraError

__all__ = ["named", "read_file", "write_file"]

_MARK = "\ufeff"


def named(error: ConfigurationError, path: str | PathLike[str], /) -> ConfigurationError:
    """Make an error say which file it is about."""
    error.args = (f"{fspath(path)}: {error}",)
    return error


def read_file(path: str | PathLike[str], /) -> Any:
    """Read the data of a file.

    Raises:
        ConfigurationError: It cannot be read, is not UTF-8, or neither TOML nor JSON.
    """
    suffix = _suffix(path)
    try:
        text = Path(path).read_bytes().decode("utf-8").removeprefix(_MARK)
    except OSError as error:
        raise ConfigurationError(f"{fspath(path)}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{fspath(path)}: not UTF-8 (byte {error.start + 1})") from error
    try:
        return tomllib.loads(text) if suffix == ".toml" else json.loads(text, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise ConfigurationError(f"{fspath(path)}: not JSON: {error.msg} ({where})") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{fspath(path)}: not TOML: {error}") from error
    except ValueError as error:  # a key twice, a number of thousands of digits
        raise ConfigurationError(f"{fspath(path)}: {str(error).partition(';')[0]}") from error
    except RecursionError as error:
        raise ConfigurationError(f"{fspath(path)}: nested too deep to be read") from error


def _suffix(path: str | PathLike[str]) -> str:
    suffix = Path(path).suffix.lower()
    if suffix not in (".toml", ".json"):
        raise ConfigurationError(
            f"{fspath(path)}: a policy is a file in .toml or .json, not {suffix or 'without suffix'}"
        )
    return suffix


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a key that is there twice, as TOML does: one of the two would be lost unseen."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key!r} is given twice in one table")
        found[key] = value
    return found


def write_file(data: Mapping[str, Any], path: str | PathLike[str], /) -> None:
    """Write data into a file; nothing is written if it cannot be.

    Raises:
        MissingExtraError: TOML without extra `toml`.
        ConfigurationError: The file cannot be written, or the data not in its form.
    """
    is_toml = _suffix(path) == ".toml"
    try:
        text = (
            _toml(data) if is_toml else json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        )
        raw = text.encode("utf-8")
    except (TypeError, ValueError) as error:  # None in TOML, half a surrogate pair
        raise ConfigurationError(f"{fspath(path)}: cannot be written: {error}") from error
    try:
        Path(path).write_bytes(raw)
    except OSError as error:
        raise ConfigurationError(f"{fspath(path)}: {error.strerror or error}") from error


def _toml(data: Mapping[str, Any]) -> str:
    try:
        import tomli_w
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            "writing TOML needs tomli-w: pip install 'trimtab[toml]', or save the policy as .json",
            extra="toml",
            package="tomli-w",
        ) from error
    return tomli_w.dumps(data)
