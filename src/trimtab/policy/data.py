"""A `Context` as plain data: what differs from the defaults, in the words a person would write."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from trimtab._fitting.blocks import Block, Tier
from trimtab.budget import Budget
from trimtab.context import Context
from trimtab.counting import CharCounter, EstimateCounter
from trimtab.counting.door import counter_in_words
from trimtab.errors import ConfigurationError
from trimtab.formats import Format, formats, get_format
from trimtab.policy.schema import OPTIONS, VERSION, Place, Table, is_counter
from trimtab.strategies import (
    Cascade,
    ClearToolResults,
    Drop,
    DropNewest,
    PriorityBased,
    SlidingWindow,
    Strategy,
    StrategyKind,
    Strict,
    Summarize,
    TruncateText,
    strategy_data,
)

__all__ = ["written"]

_CLASSES = (
    Cascade,
    ClearToolResults,
    Drop,
    DropNewest,
    PriorityBased,
    SlidingWindow,
    Strict,
    Summarize,
    TruncateText,
)
"""Whose data `create_strategy` reads back as the same class."""


def written(context: Context, names: Mapping[str, Any], /) -> dict[str, Any]:
    """Write a context without its content.

    Raises:
        ConfigurationError: Something of it is an object without a name; says where.
    """
    policy, at = context._policy, Place(names=names)
    data: dict[str, Any] = {
        "schema": VERSION,
        "model": policy.model,
        "counter": _counter(policy.counter, at.key("counter")),
        "format": _format(policy.format, at.key("format")),
        "ties": policy.ties,
        "on_trim": _name(policy.on_trim, at.key("on_trim")),
        "strict": policy.strict or None,
        "budget": None if policy.budget is None else _budget(Budget.of(policy.budget)),
        "blocks": [_block(block, at.key("blocks").item(index)) for index, block in enumerate(context.blocks)],
    }
    return {key: value for key, value in data.items() if value is not None and value != []}


def _budget(budget: Budget) -> int | dict[str, int | str]:
    rest = {
        one.name: getattr(budget, one.name)
        for one in fields(Budget)
        if one.name != "window" and getattr(budget, one.name)
    }
    return {"window": budget.window, **rest} if rest else budget.window


def _format(format: str | Format, at: Place) -> str | None:
    name = format if isinstance(format, str) else format.name
    if name == "auto":
        return None
    if name in formats() and format in (name, get_format(name)):
        return name
    raise ConfigurationError(
        f"{at.path}: {format!r} is not one of {', '.join(formats())}, and has no name in data"
    )


def _counter(counter: Any, at: Place) -> str | None:
    if counter is None:
        return None
    words = _known(counter, at.names) or _counter_words(counter)
    if words is None:
        raise _unnamed(counter, at)
    return words


def _counter_words(counter: Any) -> str | None:
    """Return the words for a counter that is as the words would make it."""
    told: tuple[str, ...]
    if type(counter) is EstimateCounter:
        words, told = "estimate", ("name", "framing", "media", "_format", "_cache")
    elif type(counter) is CharCounter:
        words, told = f"chars:{counter._ratio:g}", ("_ratio", "_part_tokens", "_tool_call_tokens", "_format")
    else:
        return None
    if not is_counter(words):
        return None
    usual = counter_in_words(words)
    return words if all(getattr(counter, name) == getattr(usual, name) for name in told) else None


def _known(value: Any, names: Mapping[str, Any]) -> str | None:
    """Return the name of an object; a method is a new object each time it is looked up."""
    same = (lambda one: one == value) if inspect.ismethod(value) else (lambda one: one is value)
    return next((name for name, one in names.items() if value is not None and same(one)), None)


def _name(value: Any, at: Place) -> str | None:
    name = _known(value, at.names)
    if value is not None and name is None:
        raise _unnamed(value, at)
    return name


def _unnamed(value: Any, at: Place) -> ConfigurationError:
    return ConfigurationError(
        f"{at.path}: {value!r} cannot be written as data: give it a name, as in names={{'mine': …}}, here and"
        " where the policy is loaded"
    )


def _block(block: Block, at: Place) -> dict[str, Any]:
    data: dict[str, Any] = {"name": block.name}
    for one in fields(Block):
        value = getattr(block, one.name)
        if one.name in ("name", "content", "labels") or value is None or value == one.default:
            continue
        data[one.name] = _of_block(one.name, value, at.key(one.name))
    return data


def _of_block(name: str, value: Any, at: Place) -> Any:
    if name == "tier":
        return Tier.label(value) if value in list(Tier) else int(value)
    if name == "strategy":
        return _strategy(value, at)
    if name == "on_trim":
        return _name(value, at)
    if name == "cache_control":
        return _carried(value, at)
    return value


def _carried(value: Mapping[str, Any], at: Place) -> Any:
    word = value.get("type")
    if len(value) == 1 and isinstance(word, str) and word:
        return word
    try:
        return json.loads(json.dumps(dict(value), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"{at.path}: {value!r} cannot be written as data: {error}") from error


def _strategy(strategy: Strategy, at: Place) -> str | dict[str, Any]:
    """Write a strategy: its name in names=, its kind, or its kind and what differs from its defaults."""
    known = _known(strategy, at.names)
    if known is not None:
        return known
    if type(strategy) not in _CLASSES:
        raise _unnamed(strategy, at)
    if isinstance(strategy, Cascade):
        steps = [_strategy(step, at.key("steps").item(index)) for index, step in enumerate(strategy.steps)]
        return {"kind": strategy.name, "steps": steps}
    fallback: dict[str, Any] = {}
    if isinstance(strategy, Summarize):
        fallback = {"fallback": _strategy(strategy.fallback, at.key("fallback"))}
        strategy = replace(strategy, fallback=SlidingWindow())
    elif isinstance(strategy, PriorityBased) and strategy.score_name is None:
        strategy = replace(strategy, score_name=_known(strategy.score, at.names))
    try:
        data = {**strategy_data(strategy), **fallback}
    except ConfigurationError as error:
        raise ConfigurationError(f"{at.path}: {error}") from error
    table = OPTIONS[StrategyKind(strategy.name)]
    told = {key: value for key, value in data.items() if not _is_usual(table, key, value)}
    return told if len(told) > 1 else strategy.name


def _is_usual(table: Table, key: str, value: Any) -> bool:
    """Tell whether an option is as it would be if it were left out."""
    return key not in table.required and (value in (None, []) or value == table.keys[key].default)
