"""`Context`: what blocks hold, where they stand, who gives way; the template and its many fits."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.builders import places, talk, user, words
from trimtab import (
    Block,
    Budget,
    BudgetExceededError,
    ConfigurationError,
    Context,
    SlidingWindow,
    Tier,
)
from trimtab.errors import UnknownNameError
from trimtab.testing import WordCounter

WORDS = WordCounter()


def context(budget: Any = 99, **options: Any) -> Context:
    """Make one that counts words."""
    return Context(budget, counter=WORDS, **options)


def contents(made: Context) -> list[Any]:
    """Fit, and list role and content of what comes out."""
    return [(message["role"], message["content"]) for message in made.fit().messages]


# -- what a block holds (D2)


@pytest.mark.parametrize(
    ("name", "content", "options", "expected"),
    [
        pytest.param("b", "hi", {}, [("user", "hi")], id="text"),
        pytest.param("b", "", {}, [("user", "")], id="empty-text"),
        pytest.param("system", "hi", {}, [("system", "hi")], id="text-of-system"),
        pytest.param("System", "hi", {}, [("user", "hi")], id="names-are-exact"),
        pytest.param("system", "hi", {"role": "developer"}, [("developer", "hi")], id="role-of-text"),
        pytest.param("b", user("hi"), {}, [("user", "hi")], id="message"),
        pytest.param("system", user("hi"), {}, [("user", "hi")], id="a-message-has-its-own-role"),
        pytest.param("b", user("hi"), {"role": "system"}, [("system", "hi")], id="a-role-overrides"),
        pytest.param(
            "b",
            [user("hi"), "ho"],
            {"role": "assistant"},
            [("assistant", "hi"), ("assistant", "ho")],
            id="list",
        ),
        pytest.param("b", (user("hi"), "ho"), {}, [("user", "hi"), ("user", "ho")], id="tuple"),
        pytest.param("b", None, {}, [], id="None"),
        pytest.param("b", [], {}, [], id="empty-list"),
        pytest.param(
            "b",
            {"text": "see", "attachments": [{"type": "image_url", "image_url": {"url": "u"}}]},
            {},
            [("user", [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "u"}}])],
            id="attachments",
        ),
        pytest.param(
            "b",
            [{"text": "", "attachments": [{"type": "file", "file": {}}]}],
            {"role": "system"},
            [("system", [{"type": "file", "file": {}}])],
            id="attachments-alone",
        ),
    ],
)
def test_content_in_every_form(name: str, content: Any, options: Any, expected: list[Any]) -> None:
    """Text takes the role, else system in a block named so, else user; a given role also overrides."""
    assert contents(context().add(name, content, **options)) == expected


def test_messages_are_the_callers_own_unless_their_role_changes() -> None:
    """And then a copy has the new one; nothing of the caller's changes (A5)."""
    messages = talk("u2 a3")
    before = copy.deepcopy(messages)
    assert places(context().add("b", messages).fit().messages, messages) == [0, 1]
    changed = context().add("b", messages, role="user").fit().messages
    assert changed[0] is not messages[0]
    assert [m["role"] for m in changed] == ["user", "user"]
    assert messages == before


# -- where blocks stand (D4)


@pytest.mark.parametrize(
    ("places_of", "expected"),
    [
        pytest.param([None, None, None], "abc", id="in-order-of-adding"),
        pytest.param([2, 1, 0], "cba", id="by-position"),
        pytest.param([None, 5, None], "bac", id="without-one-after-those-with-one"),
        pytest.param([1, 0, 1], "bac", id="ties-in-order-of-adding"),
        pytest.param([0.5, -1, 0], "bca", id="any-number"),
    ],
)
def test_positions(places_of: list[Any], expected: str) -> None:
    """Ascending; rank has nothing to do with it."""
    made = context()
    for at, (name, position) in enumerate(zip("abc", places_of, strict=True)):
        made.add(name, name, position=position, priority=at)
    assert "".join(content for _, content in contents(made)) == expected
    assert [block.name for block in made.fit().report.blocks] == list(expected)


def test_a_tier_is_rank_and_place() -> None:
    """Lower stands first and is served first; equal ones are served in order of adding (D3, D6)."""
    made = context(4).add("h", "h h", tier=Tier.HISTORY).add("s", "s", tier=Tier.SYSTEM)
    made.add("c1", "x y", tier=1).add("c2", "x y z", tier=1)
    fitted = made.fit()
    assert [block.name for block in fitted.report.blocks] == ["s", "c1", "c2", "h"]
    assert [block.tokens_after for block in fitted.report.blocks] == [1, 2, 0, 0]


# -- the template


def test_a_fit_changes_nothing() -> None:
    """Fitted many times, to one budget or another."""
    messages = talk("u2 u2 u2")
    made = context(4).add("h", messages)
    first = made.fit()
    assert made.fit(2).messages == messages[2:]
    assert made.fit(Budget(99, output_reserve=1)).messages == messages
    assert made.fit().messages == first.messages == messages[1:]
    assert made.fit().report == first.report


def test_threads_may_fit_one_context_at_once() -> None:
    """Each gets the same."""
    made = context(40).add("a", talk("u2 a2 " * 20)).add("b", talk("u1 cA rA5 " * 9), max_ratio=0.5)
    expected = made.fit().report
    with ThreadPoolExecutor(8) as pool:
        reports = list(pool.map(lambda _: made.fit().report, range(40)))
    assert all(report == expected for report in reports)


def test_a_clone_is_changed_apart() -> None:
    """Blocks and settings are taken along."""
    made = context(9).add("a", "hi")
    twin = made.clone().add("b", "ho")
    assert (contents(made), contents(twin)) == ([("user", "hi")], [("user", "hi"), ("user", "ho")])
    assert [block.name for block in twin.blocks] == ["a", "b"]
    assert "b" in twin
    assert "b" not in made
    assert (repr(made), repr(context())) == ("<Context of 'a'>", "<Context of no blocks>")


def test_replace_and_remove() -> None:
    """Options and place stay with new content; a removed name may be added again, at the end."""
    made = context().add("a", "one", role="assistant").add("b", "two")
    assert contents(made.replace("a", "three")) == [("assistant", "three"), ("user", "two")]
    assert contents(made.remove("a").add("a", "four")) == [("user", "two"), ("user", "four")]
    assert contents(made.add("b", "five", replace=True)) == [("user", "five"), ("user", "four")]


def test_a_block_without_content_can_be_filled_later() -> None:
    """In its place; and no block is an empty request."""
    made = context().add("a", None).add("b", "two")
    assert contents(made.add("a", "one")) == [("user", "one"), ("user", "two")]
    assert contents(made.replace("a", [])) == [("user", "two")]
    assert [block.name for block in made.fit().report.blocks] == ["b"]
    assert contents(made.add("a", "three")) == [("user", "three"), ("user", "two")]
    fitted = context().fit()
    assert (fitted.messages, fitted.report.blocks, fitted.report.tokens_after) == ([], (), 0)


@pytest.mark.parametrize("method", ["replace", "remove"])
def test_an_unknown_block_is_named_with_what_is_near(method: str) -> None:
    """A typing error is the usual reason."""
    made = context().add("history", "x").add("facts", "y")
    with pytest.raises(
        UnknownNameError, match="no block is named 'histroy'; there are: history, facts"
    ) as raised:
        getattr(made, method)(*["histroy", "x"][: 2 if method == "replace" else 1])
    assert raised.value.near == ("history",)
    with pytest.raises(UnknownNameError, match="there are: none"):
        context().remove("x")


@pytest.mark.parametrize(
    ("first", "second", "words_of_error"),
    [
        ({}, {"tier": 1}, "block 'b' has a tier but block 'a' has none"),
        ({"tier": 1}, {}, "block 'a' has a tier but block 'b' has none"),
    ],
)
def test_tiers_and_ranks_do_not_mix(first: Any, second: Any, words_of_error: str) -> None:
    """D3; but the only block may be replaced by one of the other kind."""
    made = context().add("a", "x", **first)
    with pytest.raises(ConfigurationError, match=words_of_error):
        made.add("b", "y", **second)
    assert contents(made.add("a", "z", replace=True, **second)) == [("user", "z")]


def test_a_name_is_used_once() -> None:
    """Unless replacing is asked for."""
    made = context().add("a", "x")
    with pytest.raises(ConfigurationError, match="a block named 'a' exists already"):
        made.add("a", "y")
    with pytest.raises(ConfigurationError, match="a block named 'a' exists already"):
        made.add_block(Block(name="a", content="y"))
    assert contents(made.add_block(Block(name="a", content="y"), replace=True)) == [("user", "y")]


@pytest.mark.parametrize(
    ("options", "words_of_error"),
    [
        ({"ties": "last"}, "ties must be 'newest' or 'first'"),
        ({"model": 5}, "model must be the name of a model"),
        ({"counter": len}, "counter=len counts messages"),
        ({"on_trim": 5}, "on_trim must be a function"),
        ({"system": 5}, "system must be a text"),
        ({"pending_calls": "A"}, "pending_calls must be a list"),
        ({"format": 5}, "format must be 'auto'"),
        ({"budget": 0}, "budget must be at least 1 token"),
    ],
)
def test_nonsense_is_refused_when_the_context_is_made(options: Any, words_of_error: str) -> None:
    """Not at the first fit."""
    with pytest.raises(ConfigurationError, match=words_of_error):
        Context(**{"budget": 9, **options})


def test_without_a_budget_the_window_of_the_model_is_asked_for() -> None:
    """None is known without a model; one may be given to the fit."""
    made = Context(counter=WORDS).add("a", "x")
    with pytest.raises(ConfigurationError, match="pass budget="):
        made.fit()
    assert made.fit(5).report.input_tokens == 5
    known = Context(model="gpt-4o", counter=WORDS).add("a", "x").fit().report
    assert known.window_tokens == 128_000


def test_a_copy_of_the_result_has_all_there_is_to_read() -> None:
    """But cannot count."""
    fitted = context(4, tools=[{"type": "function"}]).add("h", talk("u2 a2 u2"), max_ratio=0.5).fit()
    for twin in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted)):
        assert (twin.messages, twin.report, twin.tools) == (fitted.messages, fitted.report, fitted.tools)
        assert repr(twin) == repr(fitted)
        with pytest.raises(ConfigurationError, match="at\\(\\) needs the counter"):
            twin.at(3)


def test_a_strategy_of_a_block_is_the_blocks() -> None:
    """The default is the sliding window; `Strict` in the system tier."""
    with pytest.raises(BudgetExceededError):
        context(2).add("s", words(3), tier=Tier.SYSTEM).fit()
    assert context(2).add("s", words(3), tier=Tier.CORE).fit().messages == []
    cut = context(6).add("s", words(30), trim_behavior="char").fit()
    assert cut.report.blocks[0].actions == ("shortened",)
    kept = context(6).add("s", talk("u4 a4 u4"), strategy=SlidingWindow(keep_first_user=True)).fit()
    assert kept.report.kept_message_count == 1


def _openers(messages: list[Any]) -> int:
    """Count as OpenAI's cookbook does: 3 for the answer, whatever is asked."""
    return 3 + sum(4 + len(message["content"]) for message in messages)


@pytest.mark.parametrize("budget", range(20, 120, 7))
def test_a_black_box_charges_its_constant_once(budget: int) -> None:
    """Not once for each block: nothing leaves for it, no error names it, and the report adds up."""
    ten = {"role": "user", "content": "x" * 10}
    made = Context(budget, counter=_openers)
    for rank in range(6):
        made.add(f"b{rank}", [ten], priority=rank)
    fitted = made.fit()
    assert len(fitted.messages) == min(6, (budget - 3) // 14)
    report = fitted.report
    assert report.tokens_after == _openers(fitted.messages) <= budget
    assert report.fixed_tokens + sum(block.tokens_after for block in report.blocks) == report.tokens_after
    assert all(block.tokens_after <= block.limit_tokens for block in report.blocks)
    assert Context(3, counter=_openers).fit().report.tokens_after == 3


@pytest.mark.parametrize(
    ("content", "words_of_error"),
    [
        ({"text": "hi", "attachments": [], "name": "bob"}, "unknown key 'name'"),
        ({"text": "hi", "attachments": "http://x"}, "attachments must be a list of content parts, not str"),
        ({"text": 5, "attachments": []}, "text must be a text or None, not int"),
        ([{"text": "hi", "attachments": [], "role_": "user"}], "unknown key 'role_'"),
    ],
)
def test_text_with_attachments_loses_nothing(content: Any, words_of_error: str) -> None:
    """What would not be sent is refused where it is added."""
    with pytest.raises(ConfigurationError, match=words_of_error):
        Context(50).add("question", content)


def test_text_alone_in_a_mapping_is_text() -> None:
    """As it is with attachments; never a message without a role."""
    assert Context(50).add("question", {"text": "hi"}).fit().messages == [{"role": "user", "content": "hi"}]


def test_an_unknown_model_is_refused_when_the_context_is_made() -> None:
    """Unless a counter is given: then only the budget needs one."""
    with pytest.raises(ConfigurationError, match="gtp-4o"):
        Context(50, model="gtp-4o")
    assert Context(50, model="gtp-4o", counter=WordCounter()).add("q", "hi").fit().messages
