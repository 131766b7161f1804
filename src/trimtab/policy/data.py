"""A `Context` as plain data: what differs from the defaults, in the words a person would write."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from typing import Any

from trimtab._fitting.blocks import Block, Tier
from trimtab._fitting.request import check_breakpoints
from trimtab.budget import Budget, BudgetLike
from trimtab.compact import Compact
from trimtab.context import Context
from trimtab.counting import CharCounter, EstimateCounter
from trimtab.counting.door import counter_in_words
from trimtab.errors import ConfigurationError
from trimtab.formats import Format, formats, get_format
from trimtab.policy.schema import OPTIONS, VERSION, Place, is_counter
from trimtab.strategies import (
    Cascade,
    PriorityBased,
    Relevant,
    SlidingWindow,
    Strategy,
    Summarize,
    strategy_data,
)


def context_data(context: Context, names: Mapping[str, object], /) -> dict[str, Any]:
    """Write a context without its content."""
    policy, at = context.policy, Place(names=names)
    if policy.read is not None:
        raise ConfigurationError(
            "read= and write= are functions over a framework's objects, and cannot be part of a policy:"
            " make the policy from a Context without them, and pass them to the Context that is filled",
            argument="read",
        )
    counter = _name_in(policy.counter, names) or _counter_words(policy.counter)
    data: dict[str, Any] = {
        "schema": VERSION,
        "model": policy.model,
        "counter": counter or _name(policy.counter, at.key("counter")),
        "format": _format(policy.format, at.key("format")),
        "charge_as": None if policy.charge_as is None else _format(policy.charge_as, at.key("charge_as")),
        "ties": policy.ties,
        "on_trim": _name(policy.on_trim, at.key("on_trim")),
        "origin": _name(policy.origin, at.key("origin")),
        "rules": list(policy.rules),
        "compact": _compact(policy.compact, at.key("compact")),
        "strict": policy.strict or None,
        "breakpoints": _mark(policy.breakpoints),
        "budget": _budget(policy.budget),
        "blocks": [_block(block, at.key("blocks").item(index)) for index, block in enumerate(context.blocks)],
    }
    return {key: value for key, value in data.items() if value is not None and value != []}


def _budget(budget: BudgetLike | None) -> int | str | dict[str, int | str] | None:
    if budget is None or isinstance(budget, str):
        return budget
    made = Budget.of(budget)
    data = {name: value for name, value in asdict(made).items() if value}
    return data if len(data) > 1 else made.window


def _mark(breakpoints: Mapping[str, Any] | None) -> bool | dict[str, Any] | None:
    """Write the mark for a prompt cache; the plain one as True."""
    if breakpoints is None:
        return None
    return True if breakpoints == check_breakpoints(True) else dict(breakpoints)


def _compact(compact: Compact | None, at: Place) -> bool | dict[str, Any] | None:
    """Write how results are written: what is not as it would be if it were left out."""
    if compact is None:
        return None
    if compact.kinds:
        raise ConfigurationError(
            f"{at.path}: kinds are functions, and cannot be part of a policy: pass compact= to the Context",
            argument="kinds",
            place=at.path or None,
        )
    usual = asdict(Compact())
    told = {name: value for name, value in asdict(compact).items() if value != usual[name]}
    if "json" in told:
        told["json"] = told["json"] or "none"
    if "exclude_tools" in told:
        told["exclude_tools"] = [*told["exclude_tools"]]
    return told or True


def _format(format: str | Format, at: Place) -> str | None:
    name = format if isinstance(format, str) else format.name
    if name == "auto":
        return None
    if name in formats() and format in (name, get_format(name)):
        return name
    raise ConfigurationError(
        f"{at.path}: {format!r} is not one of {', '.join(formats())}, and a policy cannot name it"
    )


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


def _name_in(value: object, names: Mapping[str, object]) -> str | None:
    """Return the name of an object; a method is a new object each time it is looked up."""
    same = (lambda one: one == value) if inspect.ismethod(value) else (lambda one: one is value)
    return next((name for name, one in names.items() if value is not None and same(one)), None)


def _name(value: object, at: Place) -> str | None:
    name = _name_in(value, at.names)
    if value is not None and name is None:
        raise ConfigurationError(
            f"{at.path}: {value!r} cannot be written as data: name it, as in names={{'mine': …}}, here and"
            " where the policy is loaded"
        )
    return name


def _block(block: Block, at: Place) -> dict[str, Any]:
    """Write the options that are not as they would be if they were left out."""
    data: dict[str, Any] = {}
    for one in fields(Block):
        value = getattr(block, one.name)
        if one.name in ("content", "labels") or value is None or value == one.default:
            continue
        place = at.key(one.name)
        match one.name:
            case "tier":
                data["tier"] = Tier.label(value) if value in list(Tier) else int(value)
            case "strategy":
                data["strategy"] = short_strategy(value, place)
            case "compact":
                data["compact"] = value and _compact(value, place)
            case "on_trim":
                data["on_trim"] = _name(value, place)
            case "cache_control":
                data["cache_control"] = _cache_control(value, place)
            case name:
                data[name] = value
    return data


def _cache_control(value: Mapping[str, object], at: Place) -> Any:
    word = value.get("type")
    if len(value) == 1 and isinstance(word, str) and word:
        return word
    try:
        return json.loads(json.dumps(dict(value), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"{at.path}: {value!r} cannot be written as data: {error}") from error


def short_strategy(strategy: Strategy, at: Place) -> str | dict[str, Any] | None:
    """Write a strategy: its name in names=, its kind, or its kind and what differs from its defaults."""
    table = next((table for table in OPTIONS.values() if table.made is type(strategy)), None)
    known = _name_in(strategy, at.names)
    if known is not None or table is None:
        return _name(strategy, at)
    if isinstance(strategy, Cascade):
        steps = [
            short_strategy(step, at.key("steps").item(index)) for index, step in enumerate(strategy.steps)
        ]
        return {"kind": strategy.name, "steps": steps}
    data: dict[str, Any] = {}
    if isinstance(strategy, Summarize):
        data["fallback"] = short_strategy(strategy.fallback, at.key("fallback"))
        strategy = replace(strategy, fallback=SlidingWindow())
    elif isinstance(strategy, (PriorityBased, Relevant)) and strategy.score_name is None:
        strategy = replace(strategy, score_name=_name_in(strategy.score, at.names))
    try:
        data = {**strategy_data(strategy), **data}
    except ConfigurationError as error:
        raise ConfigurationError(
            f"{at.path}: {error}", argument=error.argument, place=at.path or None
        ) from error
    told = {
        key: value
        for key, value in data.items()
        if key in table.required or (value not in (None, []) and value != table.keys[key].default)
    }
    return told if len(told) > 1 else strategy.name
