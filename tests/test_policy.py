"""Policies: a `Context` from data and back, its files, and what the errors name."""

from __future__ import annotations

import json
import sys
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any

import pytest

from tests.test_strategies_data import KeepAll, by_length
from trimtab import (
    Block,
    Budget,
    Cascade,
    CharCounter,
    ClearToolResults,
    ConfigurationError,
    Context,
    Drop,
    DropNewest,
    EstimateCounter,
    PriorityBased,
    SlidingWindow,
    Strict,
    Summarize,
    Tier,
    TruncateText,
    create_strategy,
)
from trimtab.counting import FixedCounter
from trimtab.errors import MissingExtraError, UnknownNameError
from trimtab.formats import OpenAIChat, get_format
from trimtab.policy import load_policy, policy_data, policy_schema, save_policy
from trimtab.strategies import ClampResults, StrategyKind, strategy_data
from trimtab.testing import WordCounter

ROOT = Path(__file__).resolve().parents[1]


def keep(context: Any) -> None:
    """Take nothing out."""


def summarize(messages: list[Any]) -> str:
    """Say how many there were."""
    return f"{len(messages)} messages"


NAMES: dict[str, Any] = {
    "keep": keep,
    "sum_up": summarize,
    "long_first": by_length,
    "keep_all": KeepAll(),
    "words": WordCounter(),
}


def block(**options: Any) -> Context:
    """Make a context of one block."""
    return Context().add_block(Block(name="b", **options))


CONTEXTS: list[tuple[dict[str, Any], Context]] = [
    ({}, Context()),
    ({"budget": 8192}, Context(8192)),
    ({"budget": {"window": 99, "margin": 9}}, Context(Budget(99, margin=9))),
    (
        {"budget": {"window": 99, "output_reserve": 1, "overhead_tokens": 2, "margin": 3}},
        Context(Budget(99, output_reserve=1, overhead_tokens=2, margin=3)),
    ),
    ({"model": "gpt-4o", "format": "openai_chat"}, Context(model="gpt-4o", format="openai_chat")),
    ({"ties": "first"}, Context(ties="first")),
    ({"counter": "words", "on_trim": "keep"}, Context(counter=NAMES["words"], on_trim=keep)),
    ({"blocks": [{"name": "b"}]}, block()),
    ({"blocks": [{"name": "b", "priority": 2, "position": 0}]}, block(priority=2, position=0)),
    ({"blocks": [{"name": "b", "priority": -0.5}]}, block(priority=-0.5)),
    ({"blocks": [{"name": "b", "tier": "system"}]}, block(tier=Tier.SYSTEM)),
    ({"blocks": [{"name": "b", "tier": 7}]}, block(tier=7)),
    (
        {"blocks": [{"name": "b", "min_tokens": 1, "max_tokens": 0, "min_ratio": 0.1, "max_ratio": 0.0}]},
        block(min_tokens=1, max_tokens=0, min_ratio=0.1, max_ratio=0),
    ),
    ({"blocks": [{"name": "b", "share": 2.5, "role": "user"}]}, block(share=2.5, role="user")),
    ({"blocks": [{"name": "b", "trim_behavior": "char"}]}, block(trim_behavior="char")),
    ({"blocks": [{"name": "b", "pinned": True}]}, block(pinned=True)),
    ({"blocks": [{"name": "b", "cache_control": "ephemeral"}]}, block(cache_control="ephemeral")),
    (
        {"blocks": [{"name": "b", "cache_control": {"type": "ephemeral", "ttl": "1h"}}]},
        block(cache_control={"type": "ephemeral", "ttl": "1h"}),
    ),
    ({"blocks": [{"name": "b", "on_trim": "keep"}]}, block(on_trim=keep)),
    ({"blocks": [{"name": "b", "strategy": "strict"}]}, block(strategy=Strict())),
    ({"blocks": [{"name": "b", "strategy": "sliding_window"}]}, block(strategy=SlidingWindow())),
    (
        {"blocks": [{"name": "b", "strategy": {"kind": "sliding_window", "protect_roles": ["user"]}}]},
        block(strategy=SlidingWindow(protect_roles=["user"])),
    ),
    (
        {"blocks": [{"name": "b", "strategy": {"kind": "clear_tool_results", "placeholder": ""}}]},
        block(strategy=ClearToolResults(placeholder="")),
    ),
    (
        {
            "blocks": [
                {
                    "name": "b",
                    "strategy": {
                        "kind": "clamp_results",
                        "max_tokens": 9,
                        "keep": {"grep": "start", "*": "end"},
                    },
                }
            ]
        },
        Context().add("b", None, strategy=ClampResults(max_tokens=9, keep={"*": "end", "grep": "start"})),
    ),
    (
        {"blocks": [{"name": "b", "strategy": {"kind": "clamp_results", "max_ratio": 0.25}}]},
        block(strategy=ClampResults(max_ratio=0.25)),
    ),
    (
        {"blocks": [{"name": "b", "strategy": {"kind": "cascade", "steps": ["keep_all", "drop"]}}]},
        block(strategy=Cascade(NAMES["keep_all"], Drop())),
    ),
    ({"blocks": [{"name": "b", "strategy": "keep_all"}]}, block(strategy=NAMES["keep_all"])),
    (
        {"blocks": [{"name": "b", "strategy": {"kind": "priority_based", "score": "long_first"}}]},
        block(strategy=PriorityBased(score=by_length, score_name="long_first")),
    ),
    (
        {
            "blocks": [
                {"name": "a"},
                {
                    "name": "b",
                    "strategy": {
                        "kind": "summarize",
                        "summarizer": "sum_up",
                        "max_summary_tokens": 50,
                        "fallback": {"kind": "truncate_text", "keep": "end"},
                    },
                },
            ]
        },
        Context()
        .add("a", None)
        .add(
            "b",
            None,
            strategy=Summarize(
                summarize,
                max_summary_tokens=50,
                fallback=TruncateText(keep="end"),
                summarizer_name="sum_up",
            ),
        ),
    ),
]

every_context = pytest.mark.parametrize(
    ("data", "context"), CONTEXTS, ids=[json.dumps(data) for data, _ in CONTEXTS]
)


def told(context: Context) -> Any:
    """Give what a context is made of, to be compared; summarizers by their name."""
    policy = context._policy
    return replace(policy, blocks=tuple(map(_comparable, context.blocks)))


def _comparable(block: Block) -> Any:
    strategy = block.strategy
    if isinstance(strategy, Summarize):
        return replace(block, strategy=None), strategy_data(strategy)
    return replace(block, content=None)


@every_context
def test_data_makes_the_context_that_code_makes(data: dict[str, Any], context: Context) -> None:
    """Every option of a block and of a budget is a key under its own name."""
    assert told(load_policy(data, names=NAMES)) == told(context)


@every_context
def test_a_context_is_written_with_what_differs_from_the_defaults(
    data: dict[str, Any], context: Context
) -> None:
    """In the words a person would write; and it is plain data."""
    found = policy_data(context, names=NAMES)
    assert found == {"schema": 1, **data}
    assert json.loads(json.dumps(found)) == found


@every_context
@pytest.mark.parametrize("suffix", [".toml", ".json"])
def test_a_context_survives_the_trip_through_a_file(
    tmp_path: Path, suffix: str, data: dict[str, Any], context: Context
) -> None:
    """Saved and loaded it is the same."""
    path = tmp_path / f"policy{suffix}"
    save_policy(context, path, names=NAMES)
    assert told(load_policy(path, names=NAMES)) == told(context)
    assert told(load_policy(str(path), names=NAMES)) == told(context)


def test_every_key_of_a_block_a_budget_and_a_policy_is_in_the_table() -> None:
    """An option that comes is put into the tables too, or named here as content."""
    written = policy_schema()["properties"]
    blocks = written["blocks"]["items"]
    assert set(blocks["properties"]) == {one.name for one in fields(Block)} - {"content", "labels"}
    budget = written["budget"]["anyOf"][1]
    assert set(budget["properties"]) == {one.name for one in fields(Budget)}
    content = {"system", "tools", "pending_calls", "notes", "checked", "rule_counts", "pins"}
    content |= {"read", "write", "owner_of", "results"}
    assert set(written) - {"schema", "$schema"} == {one.name for one in fields(Context()._policy)} - content


def options_of(kind: str) -> dict[str, Any]:
    """Return the schema of a strategy's table."""
    tables = [one for one in policy_schema()["$defs"]["strategy"]["anyOf"] if "properties" in one]
    return next(one for one in tables if kind in one["properties"]["kind"]["enum"])


@pytest.mark.parametrize("kind", list(StrategyKind))
def test_options_of_strategies_are_those_of_create_strategy(kind: StrategyKind) -> None:
    """Under the same names, with the same defaults."""
    table = options_of(kind)
    with pytest.raises(ConfigurationError) as caught:
        create_strategy({"kind": kind, "nonsense": 1})
    _, _, allowed = str(caught.value).partition("; it has: ")
    assert ", ".join(list(table["properties"])[1:]) == allowed.replace("no options", "")
    defaults = {key: one.get("default") for key, one in table["properties"].items()}
    if table["required"] == ["kind"] and "oneOf" not in table:
        usual = strategy_data(create_strategy(kind))
        assert all(key == "kind" or usual.get(key) in (one, []) for key, one in defaults.items())
    elif "summarizer" in table["required"]:
        usual = {one.name: one.default for one in fields(Summarize)}
        assert (defaults["role"], usual["max_summary_tokens"]) == (usual["role"], None)
        assert create_strategy(defaults["fallback"]) == usual["fallback"]


def test_defaults_of_blocks_and_budgets_are_those_of_the_classes() -> None:
    """What the schema shows in an editor holds."""
    written = policy_schema()["properties"]
    for schema, made in ((written["blocks"]["items"], Block), (written["budget"]["anyOf"][1], Budget)):
        for one in fields(made):
            default = schema["properties"].get(one.name, {}).get("default")
            assert default == (None if one.default is MISSING or one.name == "content" else one.default)


def test_options_left_at_their_defaults_are_not_written() -> None:
    """`to_dict` of a strategy writes all; a policy is for people."""
    context = block(strategy=Cascade(ClearToolResults(keep_results=3), SlidingWindow(), TruncateText()))
    assert policy_data(context)["blocks"][0]["strategy"] == {
        "kind": "cascade",
        "steps": ["clear_tool_results", "sliding_window", "truncate_text"],
    }
    context = block(strategy=Summarize(summarize, summarizer_name="sum_up"))
    assert policy_data(context)["blocks"][0]["strategy"] == {"kind": "summarize", "summarizer": "sum_up"}
    context = Context(Budget(9), format="auto").add("b", None, priority=0.0, max_ratio=1)
    assert policy_data(context) == {"schema": 1, "budget": 9, "blocks": [{"name": "b"}]}


def test_all_that_to_dict_writes_is_read() -> None:
    """Also null for a cap that is not set, which is how it writes None."""
    strategies = [
        SlidingWindow(),
        ClearToolResults(),
        DropNewest(),
        Cascade(TruncateText(), PriorityBased()),
        Summarize(summarize, summarizer_name="sum_up"),
    ]
    blocks = [{"name": one.name, "strategy": strategy_data(one)} for one in strategies]
    context = load_policy({"blocks": blocks}, names=NAMES)
    assert [block.strategy for block in context.blocks[:4]] == strategies[:4]
    assert strategy_data(context.blocks[4].gives_way_by) == strategy_data(strategies[4])


def test_content_is_not_written() -> None:
    """A policy says how a request is fitted, not what is in it."""
    context = Context(99, system="Be brief.", tools=[{"type": "function"}], pending_calls=["a"])
    context.add("question", "What is tea?")
    assert policy_data(context) == {"schema": 1, "budget": 99, "blocks": [{"name": "question"}]}
    assert load_policy(policy_data(context)).blocks[0].is_empty


def test_whole_numbers_may_be_written_as_floats() -> None:
    """As in JSON Schema, where 10.0 is an integer."""
    context = load_policy({"budget": 10.0, "blocks": [{"name": "b", "min_tokens": 2.0, "tier": 1.0}]})
    assert context._policy.budget == Budget(10)
    assert (context.blocks[0].min_tokens, context.blocks[0].tier) == (2, 1)
    assert type(context.blocks[0].min_tokens) is int


# --- counters


@pytest.mark.parametrize(
    ("words", "counter"),
    [("estimate", EstimateCounter()), ("chars", CharCounter()), ("chars:1.5", CharCounter(1.5))],
)
def test_a_counter_is_written_in_the_words_of_the_command_line(words: str, counter: Any) -> None:
    """Those that have words need no name."""
    found = load_policy({"counter": words})._policy.counter
    assert type(found) is type(counter)
    assert found.count_text("What is tea?" * 9) == counter.count_text("What is tea?" * 9)
    assert policy_data(Context(counter=counter))["counter"] in (words, "chars:4")
    again = load_policy(policy_data(Context(counter=counter)))._policy.counter
    assert again.count_text("What is tea?" * 9) == counter.count_text("What is tea?" * 9)


@pytest.mark.parametrize(
    "counter",
    [
        pytest.param(FixedCounter(), id="of another class"),
        pytest.param(WordCounter(), id="of another module"),
        pytest.param(CharCounter(4, part_tokens=1), id="with another option"),
        pytest.param(CharCounter(1 / 3), id="with a ratio of many digits"),
        pytest.param(CharCounter(1e-7), id="with a ratio no words say"),
        pytest.param(EstimateCounter(name="mine"), id="with another name"),
        pytest.param(lambda messages: sum(1 for one in messages if one["role"]), id="a function"),
    ],
)
def test_a_counter_without_words_needs_a_name(counter: Any) -> None:
    """Otherwise another would count when the policy is loaded again."""
    with pytest.raises(ConfigurationError, match=r"^counter: .* cannot be written as data: name it"):
        policy_data(Context(counter=counter))
    assert policy_data(Context(counter=counter), names={"mine": counter})["counter"] == "mine"


# --- what cannot be written


@pytest.mark.parametrize(
    ("context", "said"),
    [
        pytest.param(Context(on_trim=keep), "on_trim: <function keep", id="callback of the context"),
        pytest.param(
            Context().add("a", None).add("b", None, on_trim=keep),
            "blocks[1].on_trim: <function keep",
            id="callback of a block",
        ),
        pytest.param(block(strategy=KeepAll()), "blocks[0].strategy: <", id="strategy"),
        pytest.param(block(strategy=Cascade(Drop(), KeepAll())), "blocks[0].strategy.steps[1]: <", id="step"),
        pytest.param(
            block(strategy=Summarize(summarize, summarizer_name="s", fallback=KeepAll())),
            "blocks[0].strategy.fallback: <",
            id="fallback",
        ),
        pytest.param(
            block(strategy=Summarize(summarize)),
            "blocks[0].strategy: summarizer summarize has no name",
            id="summarizer",
        ),
        pytest.param(
            block(strategy=PriorityBased(score=by_length)),
            "blocks[0].strategy: score is a function without a name",
            id="score",
        ),
        pytest.param(
            block(cache_control={"type": object()}), "blocks[0].cache_control: {'type': <", id="object"
        ),
        pytest.param(
            block(cache_control={"ttl": float("nan")}), "blocks[0].cache_control: {'ttl': nan}", id="nan"
        ),
    ],
)
def test_an_object_without_a_name_is_an_error_that_says_where(context: Context, said: str) -> None:
    """Never left out in silence."""
    with pytest.raises(ConfigurationError) as caught:
        policy_data(context)
    assert str(caught.value).startswith(said)


def test_functions_are_written_by_the_names_they_are_given() -> None:
    """A bound method is a new object each time; it is known all the same."""

    class Notes:
        def on_trim(self, context: Any) -> None:
            """Take nothing out."""

    notes = Notes()
    context = Context(on_trim=notes.on_trim).add("b", None, strategy=PriorityBased(score=by_length))
    data = policy_data(context, names={"notes": notes.on_trim, "long_first": by_length})
    assert data["on_trim"] == "notes"
    assert data["blocks"][0]["strategy"] == {"kind": "priority_based", "score": "long_first"}


def test_a_strategy_derived_from_ours_is_not_written_as_ours() -> None:
    """It inherits `to_dict`, but would come back as its parent."""

    class Careful(SlidingWindow):
        pass

    with pytest.raises(ConfigurationError, match="cannot be written"):
        policy_data(block(strategy=Careful()))


def test_a_wire_form_of_ones_own_is_not_written() -> None:
    """One of ours is, given as an object or by its name."""

    class Own(OpenAIChat):
        name = "own"

    with pytest.raises(ConfigurationError, match=r"^format: .* is not one of .*openai_chat"):
        policy_data(Context(format=Own()))
    assert policy_data(Context(format=get_format("openai_chat")))["format"] == "openai_chat"


def test_only_a_context_is_written() -> None:
    """A mapping is data already."""
    with pytest.raises(ConfigurationError, match="be made from a Context, not dict"):
        # a mapping on purpose
        policy_data({})  # type: ignore[arg-type]  # wrong on purpose


# --- what is refused


def of_block(**options: Any) -> dict[str, Any]:
    """Write a policy whose second block has these options."""
    return {"blocks": [{"name": "a"}, {"name": "b", **options}]}


RATIO = "a number from 0 to 1"
COUNT = "a whole number of at least 0"

BROKEN: list[tuple[Any, str]] = [
    ([], "a policy is a table, not []"),
    ({"bugdet": 5}, "no key is called 'bugdet'; the keys are: schema, model,"),
    ({"schema": 2}, "schema is 1, not 2"),
    *(
        (
            {"blocks": [{"name": "b", "strategy": {"kind": "clamp_results", "max_tokens": 9, "keep": keep}}]},
            why,
        )
        for keep, why in (
            (
                "strat",
                "blocks[0].strategy.keep is 'start', 'both' or 'end', or a table of these by the names",
            ),
            (["start"], "blocks[0].strategy.keep is 'start', 'both' or 'end', or a table of these by the"),
            ({"grep": "ends"}, "blocks[0].strategy.keep.grep is 'start', 'both' or 'end', not 'ends'"),
            ({"grep": 3}, "blocks[0].strategy.keep.grep is 'start', 'both' or 'end', not 3"),
            ({"": "end"}, "blocks[0].strategy.keep is 'start', 'both' or 'end', or a table of these by the"),
        )
    ),
    ({"schema": True}, "schema is 1, not True"),
    ({"model": 5}, "model is the name of a model that is not empty, not 5"),
    ({"model": ""}, "model is the name of a model that is not empty, not ''"),
    ({"model": None}, "model is the name of a model that is not empty, not None"),
    ({"counter": "chars:0"}, "counter is 'estimate', 'chars:N' (a token each N characters) or the name"),
    ({"counter": 4}, "counter is 'estimate'"),
    ({"counter": "word"}, "counter is 'estimate'"),
    (
        {"format": "openai"},
        "format is 'auto', 'anthropic', 'bedrock', 'gemini', 'openai_chat' or 'openai_responses',"
        " not 'openai'",
    ),
    (of_block(pinned=None), "blocks[1].pinned is true or false, not None"),
    (
        of_block(strategy={"kind": "summarize", "summarizer": "sum_up", "max_summary_tokens": "few"}),
        "blocks[1].strategy.max_summary_tokens is a whole number of at least 1, or null, not 'few'",
    ),
    ({"ties": "oldest"}, "ties is 'newest' or 'first', not 'oldest'"),
    ({"on_trim": "mine"}, "on_trim: no callback is called 'mine'; names= has: "),
    ({"on_trim": keep}, "on_trim is the name of a callback in names=, not <function"),
    (
        {"budget": "8kg"},
        "budget is a text as '8k', '80%' of what the model takes of input, or 'tier', not '8kg'",
    ),
    ({"budget": 0}, "budget is a whole number of at least 1, not 0"),
    ({"budget": 9.5}, "budget is a whole number of at least 1, not 9.5"),
    (
        {"budget": True},
        "budget is a whole number of at least 1, or a table with window, or a text as '8k', '80%' of"
        " what the model takes of input, or 'tier', not True",
    ),
    ({"budget": {}}, "budget.window is missing: a whole number of at least 1"),
    ({"budget": {"window": 9, "margin": -1}}, f"budget.margin is {COUNT}, not -1"),
    ({"budget": {"window": float("inf")}}, "budget.window is a whole number of at least 1, not inf"),
    ({"budget": {"windw": 9}}, "budget: no key is called 'windw'; the keys are: window, output_reserve"),
    ({"blocks": {"b": {}}}, "blocks is a list of blocks, not {'b': {}}"),
    ({"blocks": "b"}, "blocks is a list of blocks, not 'b'"),
    ({"blocks": ["b"]}, "blocks[0] is a table with name, not 'b'"),
    ({"blocks": [{}]}, "blocks[0].name is missing: a name that is not empty"),
    ({"blocks": [{"name": ""}]}, "blocks[0].name is a name that is not empty, not ''"),
    ({"blocks": [{"name": "b"}, {"name": "b"}]}, "blocks[1].name: block 'b' exists already"),
    (of_block(content="x"), "blocks[1]: no key is called 'content'"),
    (of_block(priority="high"), "blocks[1].priority is a finite number, not 'high'"),
    (of_block(priority=float("nan")), "blocks[1].priority is a finite number, not nan"),
    (of_block(priority=10**400), "blocks[1].priority is a finite number, not 1"),
    (of_block(position=True), "blocks[1].position is a finite number, not True"),
    (
        of_block(tier="rga"),
        "blocks[1].tier is 'system', 'core', 'rag', 'history' or 'scratchpad', or a whole",
    ),
    (of_block(tier=1.5), "blocks[1].tier is 'system', 'core'"),
    (of_block(tier="RAG"), "blocks[1].tier is 'system', 'core'"),
    (of_block(min_tokens=-1), f"blocks[1].min_tokens is {COUNT}, not -1"),
    (of_block(max_tokens=None), f"blocks[1].max_tokens is {COUNT}, not None"),
    (of_block(min_ratio=-0.1), f"blocks[1].min_ratio is {RATIO}, not -0.1"),
    (of_block(max_ratio=1.1), f"blocks[1].max_ratio is {RATIO}, not 1.1"),
    (of_block(max_ratio="40%"), f"blocks[1].max_ratio is {RATIO}, not '40%'"),
    (of_block(share=0), "blocks[1].share is a number above 0, not 0"),
    (of_block(role=""), "blocks[1].role is a role that is not empty, not ''"),
    (of_block(pinned=1), "blocks[1].pinned is true or false, not 1"),
    (of_block(trim_behavior="word"), "blocks[1].trim_behavior is 'message' or 'char', not 'word'"),
    (of_block(cache_control=5), "blocks[1].cache_control is a word that is not empty"),
    (of_block(cache_control=""), "blocks[1].cache_control is a word that is not empty"),
    (of_block(strategy=5), "blocks[1].strategy is a kind (sliding_window, "),
    (of_block(strategy={}), "blocks[1].strategy.kind is missing: one of sliding_window, "),
    (of_block(strategy={"kind": 5}), "blocks[1].strategy.kind is one of sliding_window, "),
    (
        of_block(strategy="strct"),
        "blocks[1].strategy: no strategy is called 'strct'; there are, with those in names=: sliding_window",
    ),
    (of_block(strategy={"kind": "strct"}), "blocks[1].strategy.kind: no strategy is called 'strct'"),
    (of_block(strategy="cascade"), "blocks[1].strategy.steps is missing: a list of strategies, at least 1"),
    (of_block(strategy={"kind": "cascade", "steps": []}), "blocks[1].strategy.steps is a list of strategies"),
    (of_block(strategy={"kind": "cascade", "steps": "drop"}), "blocks[1].strategy.steps is a list of"),
    (
        of_block(strategy={"kind": "cascade", "steps": ["drop", {"kind": "truncate_text", "keep": "all"}]}),
        "blocks[1].strategy.steps[1].keep is 'auto', 'end', 'start' or 'both', not 'all'",
    ),
    (
        of_block(strategy={"kind": "sliding_window", "target_ratio": 0}),
        "blocks[1].strategy.target_ratio is a number above 0 and at most 1, not 0",
    ),
    (
        of_block(strategy={"kind": "sliding_window", "keep": "end"}),
        "blocks[1].strategy: no key is called 'keep'; the keys are: kind, protect_roles",
    ),
    (
        of_block(strategy={"kind": "sliding_window", "protect_roles": "user"}),
        "blocks[1].strategy.protect_roles is a list of roles, not 'user'",
    ),
    (
        of_block(strategy={"kind": "sliding_window", "protect_roles": [5]}),
        "blocks[1].strategy.protect_roles[0] is a text, not 5",
    ),
    (
        of_block(strategy={"kind": "priority_based", "score": "mine"}),
        "blocks[1].strategy.score: no score is called 'mine'; there are, with those in names=: ",
    ),
    (of_block(strategy="summarize"), "blocks[1].strategy.summarizer is missing: the name of a summarizer"),
    (
        of_block(strategy={"kind": "summarize", "summarizer": "sum_up", "max_summary_tokens": 0}),
        "blocks[1].strategy.max_summary_tokens is a whole number of at least 1, not 0",
    ),
    (
        of_block(strategy={"kind": "summarize", "summarizer": "sum_up", "fallback": "none"}),
        "blocks[1].strategy.fallback: no strategy is called 'none'",
    ),
    (of_block(strategy={"kind": "keep_all", "keep": "end"}), "blocks[1].strategy: no key is called 'keep'"),
    (
        of_block(strategy="drop", trim_behavior="char"),
        "blocks[1]: block 'b': trim_behavior and strategy contradict",
    ),
    (
        {"blocks": [{"name": "b", "tier": 1, "priority": 2}]},
        "blocks[0]: block 'b': a tier sets both rank and place: leave out priority",
    ),
    (of_block(tier=1), "blocks[1]: block 'b' has a tier but block 'a' has none"),
]
"""Data, and how its error begins. `tests/test_policy_schema.py` holds the schema to the same table."""

MISUSED: list[tuple[Any, str]] = [
    (
        of_block(strategy="long_first"),
        "blocks[1]: names['long_first'] is used as a strategy but has no evict",
    ),
    ({"on_trim": "keep_all"}, "on_trim must be a function that takes a TrimContext"),
    (of_block(on_trim="keep_all"), "blocks[1]: on_trim must be a function that takes a TrimContext"),
    (
        of_block(strategy={"kind": "priority_based", "score": "keep_all"}),
        "blocks[1]: score must be a function",
    ),
    ({"counter": "keep_all"}, "counter must have count(messages)"),
]
"""A name that stands for the wrong thing: no schema can say that."""


@pytest.mark.parametrize(("data", "said"), [*BROKEN, *MISUSED], ids=[said for _, said in [*BROKEN, *MISUSED]])
def test_an_error_names_the_key_the_value_and_what_may_stand_there(
    tmp_path: Path, data: Any, said: str
) -> None:
    """And the file, if it came from one."""
    path = tmp_path / "policy.json"
    if isinstance(data, dict):
        with pytest.raises(ConfigurationError) as caught:
            load_policy(data, names=NAMES)
        assert str(caught.value).startswith(said)
    try:
        path.write_text(json.dumps(data), encoding="utf-8")
    except TypeError:
        return  # a function cannot get into a file
    with pytest.raises(ConfigurationError) as caught:
        load_policy(path, names=NAMES)
    assert str(caught.value).startswith(f"{path}: ")
    assert str(caught.value).removeprefix(f"{path}: ").startswith(said)


@pytest.mark.parametrize(
    ("data", "near"),
    [
        ({"bugdet": 5}, ("budget",)),
        (of_block(max_ration=1), ("max_ratio",)),
        (of_block(strategy="slidingwindow"), ("sliding_window",)),
        (of_block(strategy="keepall"), ("keep_all",)),
        ({"on_trim": "kep"}, ("keep",)),
        ({"zzz": 5}, ()),
    ],
)
def test_a_misspelt_name_is_answered_with_near_ones(data: Any, near: tuple[str, ...]) -> None:
    """In `.near`, and in the message."""
    with pytest.raises(UnknownNameError) as caught:
        load_policy(data, names=NAMES)
    assert caught.value.near[:1] == near
    assert ("did you mean" in str(caught.value)) == bool(near)


# --- files


@pytest.mark.parametrize(
    ("name", "raw", "said"),
    [
        ("policy.yaml", b"", "the file of a policy must end in .toml or .json, not .yaml"),
        ("policy", b"", "the file of a policy must end in .toml or .json, not nothing"),
        (
            "policy.json",
            b"{",
            "not JSON: Expecting property name enclosed in double quotes (line 1, column 2)",
        ),
        ("policy.json", b'{"budget": 1, "budget": 2}', "the key 'budget' occurs twice in one table"),
        ("policy.json", b'{"budget": ' + b"9" * 5_000 + b"}", "Exceeds the limit"),
        ("policy.json", b"[" * 200_000, "nested too deep to be read"),
        ("policy.json", b'{"model": "\xff"}', "not UTF-8 (byte 12)"),
        ("policy.toml", b"budget = ", "not TOML: Invalid value (at end of document)"),
        (
            "policy.toml",
            b"budget = 1\nbudget = 2\n",
            "not TOML: Cannot overwrite a value (at line 2, column 11)",
        ),
        ("policy.toml", b"[[block]]", "no key is called 'block'; the keys are: schema, "),
        ("policy.toml", b"budget = 2024-01-01", "budget is a whole number of at least 1, or a table"),
        ("missing.toml", None, "No such file or directory"),
    ],
)
def test_a_file_that_is_no_policy_is_named(tmp_path: Path, name: str, raw: bytes | None, said: str) -> None:
    """With the line where there is one."""
    path = tmp_path / name
    if raw is not None:
        path.write_bytes(raw)
    with pytest.raises(ConfigurationError) as caught:
        load_policy(path)
    assert str(caught.value).startswith(f"{path}: {said}")


def test_a_mark_and_an_upper_case_suffix_are_no_obstacle(tmp_path: Path) -> None:
    """As editors on Windows write them."""
    for name, raw in (("a.TOML", b"\xef\xbb\xbfbudget = 9"), ("a.Json", b'\xef\xbb\xbf{"budget": 9}')):
        (tmp_path / name).write_bytes(raw)
        assert load_policy(tmp_path / name)._policy.budget == Budget(9)


def test_steps_in_steps_without_end_are_refused() -> None:
    """Deeper than anything that could be followed."""
    strategy: Any = "drop"
    for _ in range(sys.getrecursionlimit()):
        strategy = {"kind": "cascade", "steps": [strategy]}
    with pytest.raises(ConfigurationError, match="nested too deep to be read"):
        load_policy(of_block(strategy=strategy))


def test_a_policy_is_a_path_or_a_mapping() -> None:
    """Bytes and lists are neither."""
    with pytest.raises(ConfigurationError, match="the path of a file or a mapping, not list"):
        # a list on purpose
        load_policy([])  # type: ignore[arg-type]  # wrong on purpose


def test_without_the_extra_json_is_written_and_toml_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing is left behind; reading TOML needs nothing."""
    monkeypatch.setitem(sys.modules, "tomli_w", None)
    path = tmp_path / "policy.toml"
    with pytest.raises(
        MissingExtraError, match=r"pip install 'trimtab\[toml\]', or save .* as \.json"
    ) as caught:
        save_policy(Context(9), path)
    assert (caught.value.extra, caught.value.package) == ("toml", "tomli-w")
    assert not path.exists()
    save_policy(Context(9), tmp_path / "policy.json")
    path.write_text("budget = 9", encoding="utf-8")
    assert load_policy(path)._policy == load_policy(tmp_path / "policy.json")._policy


@pytest.mark.parametrize(
    ("name", "context", "said"),
    [
        ("policy.toml", block(cache_control={"ttl": None}), "cannot be written: "),
        ("policy.json", Context().add("\ud800", None), "cannot be written: 'utf-8' codec"),
        ("policy.yml", Context(), "the file of a policy must end in .toml or .json, not .yml"),
        ("none/policy.json", Context(), "No such file or directory"),
    ],
)
def test_what_cannot_be_saved_leaves_the_file_as_it_was(
    tmp_path: Path, name: str, context: Context, said: str
) -> None:
    """TOML has no null, UTF-8 no half of a pair."""
    path = tmp_path / name
    if path.parent == tmp_path:
        path.write_bytes(b"before")
    with pytest.raises(ConfigurationError) as caught:
        save_policy(context, path)
    assert str(caught.value).startswith(f"{path}: {said}")
    if path.parent == tmp_path:
        assert path.read_bytes() == b"before"


def test_the_example_is_loaded_filled_and_fitted() -> None:
    """One policy for many requests: each is a clone that is filled."""
    policy = load_policy(ROOT / "examples" / "policy.toml")
    fitted = policy.clone().replace("question", "What is tea?").replace("system", "Be brief.").fit()
    assert [message["role"] for message in fitted.messages] == ["system", "user"]
    assert fitted.report.input_tokens == 7_168
    assert all(block.is_empty for block in policy.blocks)
    assert load_policy(policy_data(policy)).blocks == policy.blocks
