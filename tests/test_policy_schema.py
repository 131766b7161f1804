"""The JSON Schema of policies says what the loader does, as far as a schema can."""

from __future__ import annotations

import inspect
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

import trimtab
from tests.test_policy import BROKEN, CONTEXTS, MISUSED, NAMES, options_of
from trimtab import ConfigurationError
from trimtab import strategies as ready
from trimtab.policy import load_policy, policy_data, policy_schema
from trimtab.strategies import StrategyKind

ROOT = Path(__file__).resolve().parents[1]
SCHEMA = Draft202012Validator(policy_schema(names=NAMES))
FOR_EDITORS = Draft202012Validator(policy_schema())


def is_plain(data: Any) -> bool:
    """Tell whether JSON can hold it, and no more is asked of the schema than JSON has."""
    try:
        json.dumps(data, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True


@pytest.mark.parametrize("names", [None, (), tuple(NAMES)])
def test_the_schema_is_one(names: tuple[str, ...] | None) -> None:
    """By its own meta-schema, and it can be written."""
    schema = policy_schema(names=names)
    Draft202012Validator.check_schema(schema)
    assert json.loads(json.dumps(schema)) == schema


@pytest.mark.parametrize("data", [data for data, _ in CONTEXTS], ids=json.dumps)
def test_what_is_loaded_is_valid(data: dict[str, Any]) -> None:
    """With names known, and for an editor, which does not know them."""
    assert [error.message for error in SCHEMA.iter_errors(data)] == []
    assert [error.message for error in FOR_EDITORS.iter_errors(data)] == []


def test_the_example_is_valid() -> None:
    """And so is what is written of it."""
    data = tomllib.loads((ROOT / "examples" / "policy.toml").read_text(encoding="utf-8"))
    FOR_EDITORS.validate(data)
    FOR_EDITORS.validate(policy_data(load_policy(data)))


@pytest.mark.parametrize(
    "kind",
    [
        "sliding_window",
        "truncate_text",
        "clear_tool_results",
        "clamp_results",
        "cheapest",
        "summarize",
        "drop",
    ],
)
def test_the_options_of_a_strategy_are_those_of_its_class(kind: str) -> None:
    """Whoever adds one writes it in one place: what editors show is what `help()` says."""
    made = getattr(ready, "".join(word.title() for word in kind.split("_")))
    variants = policy_schema()["$defs"]["strategy"]["anyOf"]
    of_kind = [one for one in variants if kind in one.get("properties", {}).get("kind", {}).get("enum", ())]
    (options,) = [one["properties"] for one in of_kind]
    given = [name for name in inspect.signature(made).parameters if not name.endswith("_name")]
    assert sorted(options) == sorted(["kind", *given])
    assert unlike_help(made, {name: options[name] for name in given}) == []


def unlike_help(made: type, options: dict[str, Any]) -> list[str]:
    """List what an editor describes in other words than `help()`; what is None there is left out here."""
    told = " ".join((inspect.getdoc(made) or "").split())
    ways = [told.replace("None", written) for written in ("left out", '"none"')]
    shown = {name: one["description"].removesuffix(" Its name in names=.") for name, one in options.items()}
    return [
        name
        for name, words in shown.items()
        if not words or not any(f" {name}: {words}" in way for way in ways)
    ]


def test_the_options_of_blocks_and_budgets_are_described_in_the_words_of_their_classes() -> None:
    """An option of a block is written in its class, and an editor says what `help(Block)` says."""
    written = policy_schema()["properties"]
    assert unlike_help(trimtab.Block, written["blocks"]["items"]["properties"]) == []
    assert unlike_help(trimtab.Budget, written["budget"]["anyOf"][1]["properties"]) == []


UNSAID = ("block 'b' exists already", "priority is a finite number, not 1")
"""What no schema can say: that two blocks have one name, and that an int is too large for a float."""


@pytest.mark.parametrize(
    "data",
    [data for data, said in BROKEN if is_plain(data) and not said.endswith(UNSAID)],
    ids=lambda data: json.dumps(data)[:80],
)
def test_what_is_refused_is_invalid(data: Any) -> None:
    """Each row of the loader's table."""
    assert not SCHEMA.is_valid(data)


def test_what_a_name_stands_for_the_schema_cannot_say() -> None:
    """So an editor is content where the loader is not."""
    assert all(SCHEMA.is_valid(data) for data, _ in MISUSED)


def test_an_editor_takes_any_word_for_a_name_but_knows_the_options_of_kinds() -> None:
    """It completes kinds; a name of yours is no error to it."""
    assert FOR_EDITORS.is_valid({"blocks": [{"name": "b", "strategy": "yours", "on_trim": "yours"}]})
    assert not SCHEMA.is_valid({"blocks": [{"name": "b", "strategy": "yours"}]})
    assert not FOR_EDITORS.is_valid({"blocks": [{"name": "b", "strategy": {"kind": "drop", "keep": "end"}}]})
    assert FOR_EDITORS.is_valid({"$schema": "./policy.schema.json"})


# --- policies at random, right and wrong

numbers = st.sampled_from([-1, 0, 1, 2, 0.5, 1.0, 1.5, -0.5])
words = st.sampled_from(["", "user", "system", "rag", "char", "message", "first", "newest", "auto", "end"])
anything = st.one_of(
    numbers,
    words,
    st.booleans(),
    st.none(),
    st.just([]),
    st.just(["user"]),
    st.just({}),
    st.just({"type": "x"}),
)
ALIASES = ["truncate_oldest", "drop_head", "drop_tail"]
KINDS = [*StrategyKind, *ALIASES, "keep_all", "none"]


def options(*, right: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """Give some keys values that mostly may stand there."""
    return st.fixed_dictionaries(
        {}, optional={key: st.one_of(good, good, anything) for key, good in right.items()}
    )


def strategies(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Write strategies by word and by table, with options of this kind or of another."""
    right: dict[str, st.SearchStrategy[Any]] = {
        "protect_roles": st.just(["user"]),
        "keep_turns": st.booleans(),
        "min_messages": st.just(3),
        "target_ratio": st.just(0.5),
        "score": st.sampled_from(["long_first", "nobody"]),
        "keep": st.just("end"),
        "keep_results": st.just(1),
        "placeholder": st.just(""),
        "steps": st.lists(inner, max_size=2),
        "summarizer": st.sampled_from(["sum_up", "nobody"]),
        "max_summary_tokens": st.just(9),
        "role": st.just("system"),
        "fallback": inner,
    }

    def table(kind: str) -> st.SearchStrategy[dict[str, Any]]:
        known = () if kind in ("keep_all", "none") else options_of(kind)["properties"]
        fitting = {key: good for key, good in right.items() if key in known}
        needed = {key: fitting[key] for key in ("steps", "summarizer") if key in fitting}
        written = st.tuples(options(right=fitting), st.one_of(st.just({}), st.fixed_dictionaries(needed)))
        return written.map(lambda two: {"kind": str(kind), **two[0], **two[1]})

    return st.one_of(st.sampled_from(KINDS).map(str), st.sampled_from(KINDS).flatmap(table), anything)


strategy = st.recursive(st.sampled_from(["strict", "drop", "keep_all", "nobody"]), strategies, max_leaves=4)
block_options = options(
    right={
        "priority": numbers,
        "position": numbers,
        "tier": st.sampled_from(["system", "rag", 3, 9]),
        "min_tokens": st.just(5),
        "max_tokens": st.just(5),
        "min_ratio": st.just(0.5),
        "max_ratio": st.just(0.5),
        "share": st.just(2),
        "role": st.just("user"),
        "strategy": strategy,
        "trim_behavior": st.sampled_from(["char", "message"]),
        "pinned": st.booleans(),
        "cache_control": st.sampled_from(["ephemeral", {"type": "ephemeral"}]),
        "on_trim": st.sampled_from(["keep", "nobody"]),
        "max_ratoi": numbers,
    }
)
blocks = st.lists(block_options, max_size=3).map(
    lambda all_options: [{"name": f"b{index}", **one} for index, one in enumerate(all_options)]
)
policies = st.fixed_dictionaries(
    {},
    optional={
        "schema": st.sampled_from([1, 1.0, 2, "1"]),
        "model": st.sampled_from(["gpt-4o", "", 5, None]),  # of names only the loader knows which there are
        "counter": st.sampled_from(
            ["estimate", "chars", "chars:4", "chars:0", "chars:", "words", "nobody", 4]
        ),
        "format": st.sampled_from(["auto", "openai_chat", "none"]),
        "ties": words,
        "on_trim": st.sampled_from(["keep", "nobody", 5]),
        "budget": st.one_of(
            numbers,
            options(right={"window": st.just(99), "margin": st.just(1), "output_reserve": st.just(200)}),
        ),
        "blocks": blocks,
    },
)


def is_loaded(data: Any) -> bool:
    """Tell whether the loader takes it."""
    try:
        load_policy(data, names=NAMES)
    except ConfigurationError:
        return False
    return True


@given(policies)
def test_the_schema_and_the_loader_agree(data: dict[str, Any]) -> None:
    """On policies whose blocks have names of their own and whose names stand for what they should."""
    assert SCHEMA.is_valid(data) == is_loaded(data), list(SCHEMA.iter_errors(data))


@given(block_options)
def test_the_schema_and_the_loader_agree_on_a_block(data: dict[str, Any]) -> None:
    """One at a time, so that more of them are right."""
    policy = {"blocks": [{"name": "b", **data}]}
    assert SCHEMA.is_valid(policy) == is_loaded(policy), list(SCHEMA.iter_errors(policy))


@given(strategy)
def test_the_schema_and_the_loader_agree_on_a_strategy(data: Any) -> None:
    """Kinds, options, steps and fallbacks."""
    policy = {"blocks": [{"name": "b", "strategy": data}]}
    assert SCHEMA.is_valid(policy) == is_loaded(policy), list(SCHEMA.iter_errors(policy))


@given(policies)
def test_what_is_written_is_valid_and_read_as_the_same(data: dict[str, Any]) -> None:
    """Loaded and written twice, nothing moves."""
    if not is_loaded(data):
        return
    written = policy_data(load_policy(data, names=NAMES), names=NAMES)
    assert SCHEMA.is_valid(written)
    assert policy_data(load_policy(written, names=NAMES), names=NAMES) == written
