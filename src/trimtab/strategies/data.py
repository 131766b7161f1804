"""Strategies as plain data: made from a kind or a mapping, and written back."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from enum import StrEnum
from typing import Any

from trimtab._shared.checks import check_names, in_words, near_names
from trimtab._shared.plugins import make_plugin, plugin_names
from trimtab.errors import (
    IN_NAMES,
    NAMES_HAS,
    ConfigurationError,
    UnknownNameError,
    phrase,
)
from trimtab.strategies.base import Strategy, as_strategy
from trimtab.strategies.cascade import Cascade
from trimtab.strategies.cheapest import Cheapest
from trimtab.strategies.clamp_results import ClampResults
from trimtab.strategies.clear_tool_results import ClearToolResults
from trimtab.strategies.drop import Drop, DropNewest, Strict
from trimtab.strategies.priority import PriorityBased
from trimtab.strategies.relevant import Relevant
from trimtab.strategies.scores import SCORE_NAMES
from trimtab.strategies.sliding_window import SlidingWindow
from trimtab.strategies.summarize import Summarize
from trimtab.strategies.truncate_text import TruncateText

__all__ = ["StrategyKind", "create_strategy"]


class StrategyKind(StrEnum):
    """The names of strategies in data: class names in snake_case."""

    SLIDING_WINDOW = "sliding_window"
    CHEAPEST = "cheapest"
    PRIORITY_BASED = "priority_based"
    RELEVANT = "relevant"
    STRICT = "strict"
    DROP = "drop"
    DROP_NEWEST = "drop_newest"
    TRUNCATE_TEXT = "truncate_text"
    CLEAR_TOOL_RESULTS = "clear_tool_results"
    CLAMP_RESULTS = "clamp_results"
    CASCADE = "cascade"
    SUMMARIZE = "summarize"
    SLIDING_WINDOW_WITH_SUMMARY = "sliding_window_with_summary"


ALIASES: Mapping[str, StrategyKind] = {
    "truncate_oldest": StrategyKind.SLIDING_WINDOW,
    "drop_head": StrategyKind.SLIDING_WINDOW,
    "drop_tail": StrategyKind.DROP_NEWEST,
    StrategyKind.SLIDING_WINDOW_WITH_SUMMARY: StrategyKind.SUMMARIZE,
}
"""Words of other libraries for the same thing."""

PRESETS: Mapping[str, Strategy] = {
    "agent": Cascade(
        ClampResults(max_ratio=0.15),
        ClearToolResults(keep_results=1, cleared_ratio=0.25),
        SlidingWindow(target_ratio=0.5),
        TruncateText(),
    ),
}
"""Names for a whole way to give way; in data they take no options."""

CLASSES: Mapping[StrategyKind, type[Any]] = {
    StrategyKind.SLIDING_WINDOW: SlidingWindow,
    StrategyKind.CHEAPEST: Cheapest,
    StrategyKind.PRIORITY_BASED: PriorityBased,
    StrategyKind.RELEVANT: Relevant,
    StrategyKind.STRICT: Strict,
    StrategyKind.DROP: Drop,
    StrategyKind.DROP_NEWEST: DropNewest,
    StrategyKind.TRUNCATE_TEXT: TruncateText,
    StrategyKind.CLEAR_TOOL_RESULTS: ClearToolResults,
    StrategyKind.CLAMP_RESULTS: ClampResults,
    StrategyKind.CASCADE: Cascade,
    StrategyKind.SUMMARIZE: Summarize,
}
"""What each kind makes."""


NEEDS: Mapping[StrategyKind, str] = {
    StrategyKind.CLAMP_RESULTS: 'a share, as data: {"kind": "clamp_results", "max_ratio": 0.25}',
    StrategyKind.CASCADE: 'steps, as data: {"kind": "cascade", "steps": ["clear_tool_results", "drop"]}',
    StrategyKind.SUMMARIZE: "a function that writes summaries, which only a program has",
    StrategyKind.SLIDING_WINDOW_WITH_SUMMARY: "a function that writes summaries, which only a program has",
}
"""What kinds need that say nothing alone."""

KINDS_ALONE = [*(kind.value for kind in StrategyKind if kind not in NEEDS), *PRESETS]
"""Words that are a whole strategy."""


def option_names(kind: StrategyKind, /) -> tuple[str, ...]:
    """List the options a kind may have in data: its fields, but for the names its functions go by."""
    if kind is StrategyKind.CASCADE:
        return ("steps",)
    return tuple(one.name for one in fields(CLASSES[kind]) if one.init and not one.name.endswith("_name"))


def create_strategy(
    data: StrategyKind | str | Mapping[str, Any],
    *,
    names: Mapping[str, Any] | None = None,
) -> Strategy:
    """Make a strategy from data: a kind, or a mapping with `kind` and its options.

    Args:
        data: `"sliding_window"`, or `{"kind": "sliding_window", "target_ratio": 0.7}`; a Cascade has `steps`,
            a list of the same. Or `"agent"`, a Cascade for agents with large tool results. Other kinds are
            looked up in the entry points `trimtab.strategies`, and called with the options.
        names: Functions by the names used in the data, such as `{"score": "mine"}`.

    Raises:
        UnknownNameError: The kind or a registered name is unknown; the error lists similar names.
        ConfigurationError: The kind does not have an option, or a value is out of range.

    Example:
        >>> create_strategy({"kind": "sliding_window", "keep_turns": True}).to_dict()["keep_turns"]
        True
    """
    names = check_names(names)
    if isinstance(data, str):
        data = {"kind": data}
    if not isinstance(data, Mapping):
        raise ConfigurationError(
            f"a strategy must be a kind or a mapping with 'kind', not {reprlib.repr(data)}"
        )
    options = dict(data)
    word = options.pop("kind", None)
    if not isinstance(word, str):
        raise ConfigurationError(f"a strategy needs 'kind', one of {', '.join(StrategyKind)}")
    if word in names:
        return _from_name(word, names[word], options)
    if word in PRESETS:
        return _preset(word, options)
    if word not in ALIASES and word not in list(StrategyKind):
        return _plugin_of(word, options)
    kind = ALIASES.get(word) or StrategyKind(word)
    _check_options(kind, options)
    if kind is StrategyKind.CASCADE:
        return _cascade(options.get("steps"), names)
    if kind in (StrategyKind.PRIORITY_BASED, StrategyKind.RELEVANT):
        return _with_score(CLASSES[kind], options, names)
    if kind is StrategyKind.SUMMARIZE:
        return _summarize(word, options, names)
    made: Strategy = CLASSES[kind](**options)
    return made


def _check_options(kind: StrategyKind, options: Mapping[str, Any]) -> None:
    known = option_names(kind)
    unknown = [key for key in options if key not in known]
    if unknown:
        allowed = ", ".join(known) or "no options"
        raise ConfigurationError(f"{kind} has no option {unknown[0]!r}; it has: {allowed}")


def _plugin_of(word: str, options: Mapping[str, Any]) -> Strategy:
    """Make the strategy another package publishes under a name."""
    made = make_plugin("strategies", word, **options)
    if made is not None:
        return as_strategy(made)
    published = plugin_names("strategies")
    near = near_names(word, [*StrategyKind, *PRESETS, *ALIASES, *published])
    there = ", ".join((*StrategyKind, *PRESETS, *published))
    raise UnknownNameError(
        f"no strategy is called {word!r}; there are: {there}{in_words(near)}",
        name=word,
        near=near,
        argument="strategy",
    )


def _from_name(word: str, value: Any, options: Mapping[str, Any]) -> Strategy:
    if options:
        raise ConfigurationError(f"{word!r} is a strategy from names=, and takes no options here")
    if not callable(getattr(value, "evict", None)):
        raise ConfigurationError(
            f"names[{word!r}] is used as a strategy but has no evict method: {value!r}", argument="names"
        )
    return as_strategy(value)


def _preset(word: str, options: Mapping[str, Any]) -> Strategy:
    if options:
        raise ConfigurationError(
            f"{word!r} has no options: write out its steps, from create_strategy({word!r}).to_dict()"
        )
    return PRESETS[word]


def _cascade(steps: Any, names: Mapping[str, Any]) -> Strategy:
    if isinstance(steps, (str, bytes)) or not isinstance(steps, Sequence):
        raise ConfigurationError(
            f"cascade: steps must be a list of strategies, not {steps!r}", argument="steps"
        )
    return Cascade(*(create_strategy(step, names=names) for step in steps))


def _with_score(made: type[Any], options: dict[str, Any], names: Mapping[str, Any]) -> Strategy:
    """Make a strategy whose score is a word, words with weights, or a function by its name."""
    score = options.pop("score", None)
    if isinstance(score, str) and score not in names and score not in SCORE_NAMES:
        near = near_names(score, [*SCORE_NAMES, *names])
        raise UnknownNameError(
            phrase(
                f"no score is called {score!r}; there are {', '.join(SCORE_NAMES)}, and ",
                NAMES_HAS,
                f": {', '.join(names) or 'nothing'}{in_words(near)}",
            ),
            name=score,
            near=near,
            argument="score",
        )
    if isinstance(score, str) and score in names:
        options |= {"score": names[score], "score_name": score}
    elif isinstance(score, (str, Mapping)):
        options["score"] = score
    elif score is not None:
        raise ConfigurationError(
            phrase(
                "score must be a name",
                IN_NAMES,
                f", one of {', '.join(SCORE_NAMES)}, or a table of these with weights, not {score!r}",
            ),
            argument="score",
        )
    strategy: Strategy = made(**options)
    return strategy


def _summarize(kind: str, options: dict[str, Any], names: Mapping[str, Any]) -> Strategy:
    name = options.pop("summarizer", None)
    if name is None:
        raise ConfigurationError(
            phrase(f"{kind} needs a summarizer: its name under 'summarizer', and the function", IN_NAMES),
            argument="summarizer",
        )
    if (fallback := options.pop("fallback", None)) is not None:
        options["fallback"] = create_strategy(fallback, names=names)
    if isinstance(keep := options.get("must_keep"), str) and keep != "values":
        options |= {"must_keep": _must_keep(keep, names), "must_keep_name": keep}
    return Summarize(_function("summarizer", name, names), **options, summarizer_name=name)


def _must_keep(name: str, names: Mapping[str, Any]) -> Any:
    """Look up the function that says what summaries must keep."""
    if name in names:
        return names[name]
    near = near_names(name, ("values", *names))
    raise UnknownNameError(
        phrase(
            f"no must_keep is called {name!r}: it is 'values', a table with 'pattern', or a function",
            IN_NAMES,
            "; ",
            NAMES_HAS,
            f": {', '.join(names) or 'nothing'}{in_words(near)}",
        ),
        argument="must_keep",
        name=name,
        near=near,
    )


def _function(option: str, name: Any, names: Mapping[str, Any]) -> Any:
    """Look a function up by the name used in data."""
    if not isinstance(name, str):
        raise ConfigurationError(
            phrase(f"{option} must be a name", IN_NAMES, f", not {name!r}"), argument=option
        )
    if name not in names and (made := make_plugin("summarizers", name)) is not None:
        return made
    if name not in names:
        near = near_names(name, names)
        raise UnknownNameError(
            phrase(
                f"no {option} is called {name!r}; ",
                NAMES_HAS,
                f": {', '.join(names) or 'nothing'}{in_words(near)}",
            ),
            argument=option,
            name=name,
            near=near,
        )
    return names[name]
