"""Rows of models in a TOML or JSON file: read, checked, made facts; an error names row and key."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from trimtab._shared.checks import in_words, near_names
from trimtab.errors import ConfigurationError, UnknownNameError
from trimtab.models.facts import Framing, Margin, MediaRule, ModelFacts, check_facts

_KEYS = ("models", "aliases")
_PARTS: dict[str, type[Framing | Margin | MediaRule]] = {
    "framing": Framing,
    "media": MediaRule,
    "margin": Margin,
}
_BY_FORM: dict[str, type[Framing | Margin | MediaRule]] = {"framings": Framing, "margins": Margin}
_NOT_GIVEN = ("name", "counted_as")

Known = Callable[[str], ModelFacts]


def read_rows(path: str | os.PathLike[str], /, *, known: Known) -> tuple[list[ModelFacts], dict[str, str]]:
    """Read a file of models: rows of facts, and other names of models.

    Raises:
        ConfigurationError: It cannot be read, or is not of the documented shape.
    """
    where = os.fspath(path)
    data = _mapping(_read(Path(path), where), where)
    _check_keys(data, _KEYS, where)
    rows: dict[str, ModelFacts] = {}

    def known_here(name: str) -> ModelFacts:
        return rows.get(name) or known(name)

    for name, row in _mapping(data.get("models", {}), f"{where}: models").items():
        at = f"{where}: models.{name}"
        rows[name] = _facts(name, _mapping(row, at), at, known_here)
    aliases = _mapping(data.get("aliases", {}), f"{where}: aliases")
    for alias, model in aliases.items():
        if not isinstance(model, str):
            raise ConfigurationError(
                f"{where}: aliases.{alias} must be the name of a model, not {model!r:.80}"
            )
        _model(model, f"{where}: aliases.{alias}", known_here)
    return list(rows.values()), {alias: known_here(model).name for alias, model in aliases.items()}


def _read(path: Path, where: str) -> Any:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{where}: the models in it cannot be read: {error}") from error
    kind = path.suffix.lower()
    if kind not in (".toml", ".json"):
        raise ConfigurationError(
            f"{where}: the file of models must end in .toml or .json, not {kind or 'nothing'}"
        )
    try:
        if kind == ".json":
            return json.loads(text)
        import tomllib  # not above: few files are TOML

        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"{where}: it is not {kind[1:].upper()}: {error}") from error


def _facts(name: str, row: Mapping[str, Any], at: str, known: Known) -> ModelFacts:
    hints = get_type_hints(ModelFacts)
    _check_keys(row, ("like", *(key for key in hints if key not in _NOT_GIVEN)), at)
    given = {key: _value(row[key], key, hints[key], f"{at}.{key}") for key in row if key != "like"}
    started = _start(name, row, at, known)
    for key, part in _PARTS.items():
        if key in given and isinstance(given[key], Mapping):
            given[key] = _part(getattr(started, key), part, given[key], f"{at}.{key}")
    for key, part in _BY_FORM.items():
        if key in given:
            before = dict(getattr(started, key))
            made = {
                form: _part(before.get(form), part, _mapping(one, f"{at}.{key}.{form}"), f"{at}.{key}.{form}")
                for form, one in given[key].items()
            }
            given[key] = tuple({**before, **made}.items())
    if "window_tokens" in given:  # the limit of a smaller window says nothing of this one
        given.setdefault("input_tokens", None)
    facts = replace(started, **given, name=name)
    try:
        check_facts(facts)
    except ConfigurationError as error:
        raise ConfigurationError(f"{at}: {error}") from error
    return facts


def _start(name: str, row: Mapping[str, Any], at: str, known: Known) -> ModelFacts:
    """Give the facts a row starts from: those under `like`, those known by its name, or none."""
    like = row.get("like")
    if like is not None:
        if not isinstance(like, str):
            raise ConfigurationError(f"{at}.like must be the name of a known model, not {like!r:.80}")
        return _model(like, f"{at}.like", known)
    try:
        found = known(name)
    except UnknownNameError:
        return ModelFacts(name=name)
    return found if found.name == name and found.counted_as is None else ModelFacts(name=name)


def _model(name: str, at: str, known: Known) -> ModelFacts:
    try:
        found = known(name)
    except UnknownNameError as error:
        raise ConfigurationError(f"{at}: {error}") from error
    if found.counted_as is not None:
        raise ConfigurationError(f"{at}: model {name!r} is unknown; its name only shows its maker")
    return found


def _part(before: Any, kind: type[Any], given: Mapping[str, Any], at: str) -> Any:
    """Make a framing, a media rule or a margin: what is given over what stood there before."""
    hints = get_type_hints(kind)
    _check_keys(given, tuple(field.name for field in fields(kind)), at)
    values = {key: _value(value, key, hints[key], f"{at}.{key}") for key, value in given.items()}
    return kind(**values) if before is None else replace(before, **values)


def _value(value: Any, key: str, hint: Any, at: str) -> Any:
    """Check one value by the type of its field; parts are looked at by themselves."""
    if key in _BY_FORM:
        return _mapping(value, at)
    if key in _PARTS and isinstance(value, Mapping):
        return value
    kinds = get_args(hint) or (hint,)
    if get_origin(hint) is Literal:
        if value not in kinds:
            raise ConfigurationError(f"{at} must be one of {', '.join(map(str, kinds))}, not {value!r:.80}")
        return value
    if type(value) is int and float in kinds:
        return float(value)
    if type(value) not in kinds:
        wanted = " or ".join(_WORDS.get(kind, "a table") for kind in kinds if kind is not NoneType)
        raise ConfigurationError(f"{at} must be {wanted}, not {value!r:.80}")
    return value


_WORDS = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}


def _mapping(value: Any, at: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigurationError(f"{at} must be a table of names and values, not {value!r:.80}")
    return value


def _check_keys(given: Mapping[str, Any], known: tuple[str, ...], at: str) -> None:
    for key in given:
        if key not in known:
            near = near_names(key, known)
            raise ConfigurationError(
                f"{at}: unknown key {key!r}{in_words(near) or '; known: ' + ', '.join(known)}"
            )
