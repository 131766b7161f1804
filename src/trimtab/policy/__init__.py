"""Policies: a whole `Context` as plain data, in TOML, in JSON or as a mapping.

A policy says how to fit a request: budget, model, blocks with their options and strategies. It does not say
what is in the request. The blocks of a loaded policy are empty; fill them with `Context.replace`.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Collection, Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from trimtab._fitting.blocks import Block
from trimtab._shared.checks import check_names
from trimtab._shared.lazy import public_dir
from trimtab.budget import Budget
from trimtab.context import Context
from trimtab.errors import (
    ConfigurationError,
    MissingExtraError,
    phrase,
)
from trimtab.policy.data import context_data
from trimtab.policy.schema import POLICY, STRATEGY, Place
from trimtab.strategies import create_strategy

__all__ = ["load_policy", "policy_data", "policy_schema", "save_policy"]

__dir__ = public_dir(globals())


def load_policy(
    source: str | PathLike[str] | Mapping[str, Any], *, names: Mapping[str, Any] | None = None
) -> Context:
    """Make the `Context` that a policy describes; its blocks are empty.

    Args:
        source: Path of a file in TOML or JSON, by its suffix; or the data itself.
        names: Functions, strategies and counters by the names used in the policy, such as `{"my_summarizer":
            summarize}`.

    Raises:
        ConfigurationError: The file cannot be read, a key is missing, or a value is invalid; the error gives
            the file, the path of the key, the value, and the allowed values.
        UnknownNameError: A key, kind or name is unknown; the error lists those with a similar spelling.

    Example:
        >>> data = {"budget": 8192, "blocks": [{"name": "history", "min_ratio": 0.2}, {"name": "question"}]}
        >>> context = load_policy(data)
        >>> [block.name for block in context.blocks]
        ['history', 'question']
        >>> fitted = context.clone().replace("question", "What is tea?").fit()
    """
    if isinstance(source, Mapping):
        return _context(source, check_names(names))
    if not isinstance(source, (str, PathLike)):
        raise ConfigurationError(
            f"a policy must be the path of a file or a mapping, not {type(source).__name__}",
            argument="source",
        )
    return policy_in(read_file(source), source, names=names)


_ALONE = ("kind", "session")
"""Keys by which a strategy or a session is told from a policy."""


def _context(data: object, names: Mapping[str, object]) -> Context:
    at = Place(names=names)
    if isinstance(data, Mapping) and not data.keys().isdisjoint(_ALONE):
        raise ConfigurationError(
            "a policy has blocks. A strategy, with its 'kind', is the strategy of a block, strategy= of"
            " fit, or --strategy; a session (kind = 'session' with its options) is for Session(…) and"
            " `trimtab replay`"
        )
    try:
        read = POLICY.read(data, at)
    except RecursionError as error:  # steps of steps of steps
        raise ConfigurationError("nested too deep to be read") from error
    blocks = read.pop("blocks", [])
    budget = read.pop("budget", None)
    given = {key: value for key, value in read.items() if not key.endswith("schema")}
    context = Context(Budget(**budget) if isinstance(budget, dict) else budget, **given)
    for index, options in enumerate(blocks):
        place = at.key("blocks").item(index)
        if options["name"] in context:
            raise ConfigurationError(
                f"{place.key('name').path}: block {options['name']!r} exists already",
                argument="name",
                place=place.key("name").path,
            )
        try:
            if (strategy := options.pop("strategy", None)) is not None:
                options["strategy"] = create_strategy(strategy, names=names)
            context.add_block(Block(**options))
        except ConfigurationError as error:
            error.args = (phrase(f"{place.path}: ", error),)
            known = error.argument if error.argument in options else None
            error.place = place.path if known is None else place.key(known).path
            raise
    return context


def policy_data(context: Context, /, *, names: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Write a context as plain data that `load_policy` reads.

    Only differences from the defaults are written. The content of a request is not part of it: the content of
    blocks, system text, tools, pending calls.

    Args:
        context: The context.
        names: Functions, strategies and counters by the names to write for them.

    Raises:
        ConfigurationError: A callback, counter or strategy has no name; the error gives its place.

    Example:
        >>> from trimtab import Context, Drop
        >>> policy_data(Context(8192).add("documents", None, max_ratio=0.4, strategy=Drop()))
        {'schema': 1, 'budget': 8192, 'blocks': [{'name': 'documents', 'max_ratio': 0.4, 'strategy': 'drop'}]}
    """
    if not isinstance(context, Context):
        raise ConfigurationError(f"a policy must be made from a Context, not {type(context).__name__}")
    return context_data(context, check_names(names))


def save_policy(
    context: Context, path: str | PathLike[str], *, names: Mapping[str, Any] | None = None
) -> None:
    """Write a context as a policy into a file, which is replaced, including comments.

    Args:
        context: The context.
        path: Path that ends in `.json`, or in `.toml`, which needs the extra `toml`.
        names: As for `policy_data`.

    Raises:
        ConfigurationError: As for `policy_data`, or the file cannot be written.
        MissingExtraError: The extra of `pip install 'trimtab[toml]'` is not installed, and the file is TOML.
    """
    _write_file(policy_data(context, names=names), path)


def policy_schema(*, names: Collection[str] | None = None) -> dict[str, Any]:
    """Describe policies as a JSON Schema, draft 2020-12, for editors.

    `load_policy` refuses everything that the schema refuses. `load_policy` also refuses what a schema cannot
    express: two blocks of one name, or a name of the wrong kind.

    Args:
        names: The names that may be used. None: any name may be used, but `{"kind": word}` is for kinds.

    Example:
        >>> policy_schema()["properties"]["ties"]["enum"]
        ['newest', 'first']
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "trimtab policy",
        "description": "How a request of many blocks is fitted into a token budget.",
        **POLICY.schema(names),
        "$defs": {"strategy": STRATEGY.definition(names)},
    }


# Files: TOML or JSON, by their suffix.


def policy_in(
    data: object, path: str | PathLike[str], /, *, names: Mapping[str, object] | None = None
) -> Context:
    """Make the `Context` that the data of a file describes; what is wrong says which file it is about."""
    try:
        return _context(data, check_names(names))
    except ConfigurationError as error:
        raise with_path(error, path) from error.__cause__


def with_path(error: ConfigurationError, path: str | PathLike[str], /) -> ConfigurationError:
    """Make an error say which file it is about."""
    error.args = (phrase(f"{fspath(path)}: ", error),)
    return error


def read_file(path: str | PathLike[str]) -> Any:
    """Read the data of a file; a mark in front of it, as editors on Windows write it, is passed over."""
    is_toml = _is_toml(path)
    cause: Exception
    try:
        text = Path(path).read_bytes().decode("utf-8").removeprefix("\ufeff")
        return tomllib.loads(text) if is_toml else json.loads(text, object_pairs_hook=_once)
    except OSError as error:
        what, cause = error.strerror or str(error), error
    except UnicodeDecodeError as error:
        what, cause = f"not UTF-8 (byte {error.start + 1})", error
    except json.JSONDecodeError as error:
        what, cause = f"not JSON: {error.msg} (line {error.lineno}, column {error.colno})", error
    except tomllib.TOMLDecodeError as error:
        what, cause = f"not TOML: {error}", error
    except ValueError as error:  # a key twice, a number of thousands of digits
        what, cause = str(error).partition(";")[0], error
    except RecursionError as error:
        what, cause = "nested too deep to be read", error
    raise ConfigurationError(f"{fspath(path)}: {what}") from cause


def _is_toml(path: str | PathLike[str]) -> bool:
    suffix = Path(path).suffix.lower()
    if suffix not in (".toml", ".json"):
        raise ConfigurationError(
            f"{fspath(path)}: the file of a policy must end in .toml or .json, not {suffix or 'nothing'}"
        )
    return suffix == ".toml"


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Refuse a key that is there twice, as TOML does: one of the two would be lost unseen."""
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key!r} occurs twice in one table")
        found[key] = value
    return found


def _write_file(data: Mapping[str, object], path: str | PathLike[str]) -> None:
    """Write data into a file; nothing is written if it cannot be."""
    write = _toml if _is_toml(path) else _json
    try:
        Path(path).write_bytes(write(data).encode("utf-8"))
    except OSError as error:
        raise ConfigurationError(f"{fspath(path)}: {error.strerror or error}") from error
    except (TypeError, ValueError) as error:  # None in TOML, half a surrogate pair
        raise ConfigurationError(f"{fspath(path)}: cannot be written: {error}") from error


def _json(data: Mapping[str, object]) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _toml(data: Mapping[str, object]) -> str:
    try:
        import tomli_w
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            "writing TOML needs tomli-w: pip install 'trimtab[toml]', or save the policy as .json",
            extra="toml",
            package="tomli-w",
        ) from error
    return tomli_w.dumps(data)
