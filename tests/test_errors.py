"""Errors about a message carry its place as data, and their text names it where it moved to."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from trimtab import Context, Session, SlidingWindow, create_strategy, fit
from trimtab.errors import ConfigurationError, CountingError, FormatError, move_error
from trimtab.policy import load_policy

TEXTS = [{"role": "user", "content": "one"}, {"role": "user", "content": "two"}]


def test_an_error_says_its_block_and_its_place_in_it() -> None:
    """In a context: which block, and which of its messages; in fit there is no block."""
    context = Context(100, counter="chars:4").add("history", TEXTS)
    with pytest.raises(FormatError) as caught:
        context.replace("history", [*TEXTS, 3]).fit()
    assert (caught.value.block, caught.value.index, caught.value.path) == ("history", 2, "messages[2]")
    assert str(caught.value).startswith("block 'history': messages[2]: a message must be")
    with pytest.raises(FormatError) as caught:
        fit([*TEXTS, 3], 100, counter="chars:4")
    assert (caught.value.block, caught.value.index) == (None, 2)
    assert str(caught.value).startswith("messages[2]: a message must be")


@pytest.mark.parametrize(
    ("error", "moved"),
    [
        (CountingError("message 1: failed", index=1), "message 4: failed"),
        (CountingError("it failed on message 1: message 1", index=1), "it failed on message 4: message 1"),
        (CountingError("failed", index=1), "failed"),
        (
            FormatError("messages[1].content is none", path="messages[1].content"),
            "messages[4].content is none",
        ),
        (FormatError("a text is none", path="messages[1].content"), "a text is none"),
    ],
)
def test_the_text_names_the_place_an_error_was_moved_to(
    error: CountingError | FormatError, moved: str
) -> None:
    """Once, where it stood; a copy and a pickle can be moved on."""
    for one in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        move_error(one, index=4)
        assert (one.index, str(one)) == (4, moved)
        move_error(one, block="history")
        assert str(one) == f"block 'history': {moved}"
        if isinstance(one, FormatError):
            assert one.path == "messages[4].content"


@pytest.mark.parametrize(
    ("ask", "argument"),
    [
        (lambda: fit(TEXTS, "lots"), "budget"),
        (lambda: fit(TEXTS, True), "budget"),
        (lambda: fit(TEXTS), "budget"),
        (lambda: fit(TEXTS, 100, model="gtp-4o"), "model"),
        (lambda: fit(TEXTS, 100, format="opneai"), "format"),
        (lambda: fit(TEXTS, 100, counter=len), "counter"),
        (lambda: fit(TEXTS, 100, strategy="slidng"), "strategy"),
        (lambda: fit(TEXTS, 100, repair="yes"), "repair"),  # type: ignore[arg-type]
        (lambda: fit(TEXTS, 100, pin=[9]), "pin"),
        (lambda: fit("hi", 100), "messages"),
        (lambda: fit(TEXTS, 100, tools=[3]), "tools"),  # type: ignore[list-item]
        (lambda: Context(100).add("a", "b", max_ratio=2), "max_ratio"),
        (lambda: Context(100).add("a", "b", strategy="slidng"), "strategy"),
        (lambda: Context(100).add("", "b"), "name"),
        (lambda: SlidingWindow(target_ratio=2), "target_ratio"),
        (lambda: Session(999, recall_ratio=2).messages(), "recall_ratio"),
        (lambda: Session(5).messages(), "budget"),
        (lambda: create_strategy({"kind": "sliding_window", "target_ratio": 2}), "target_ratio"),
    ],
)
def test_an_error_names_the_argument_that_is_wrong(ask: Callable[[], object], argument: str) -> None:
    """As the parameter is called; a copy and a pickle have it, too."""
    with pytest.raises(ConfigurationError) as caught:
        ask()
    for one in (caught.value, copy.copy(caught.value), pickle.loads(pickle.dumps(caught.value))):
        assert (one.argument, one.place, str(one)) == (argument, None, str(caught.value))


@pytest.mark.parametrize(
    ("block", "argument", "place"),
    [
        ({"max_ratio": 2}, "max_ratio", "blocks[1].max_ratio"),
        ({"max_ratoi": 1}, "max_ratoi", "blocks[1]"),
        (
            {"strategy": {"kind": "clear_tool_results", "keep_results": "3"}},
            "keep_results",
            "blocks[1].strategy.keep_results",
        ),
        ({"strategy": "slidng"}, "strategy", "blocks[1].strategy"),
        ({"tier": 1, "priority": 3}, "tier", "blocks[1].tier"),
        ({"name": "rules"}, "name", "blocks[1].name"),
    ],
)
def test_an_error_about_a_policy_says_where_in_it(block: dict[str, Any], argument: str, place: str) -> None:
    """Which key, and where it stands; the text begins with the block at least."""
    policy = {"budget": 100, "blocks": [{"name": "rules"}, {"name": "history", **block}]}
    with pytest.raises(ConfigurationError) as caught:
        load_policy(policy)
    assert (caught.value.argument, caught.value.place) == (argument, place)
    assert str(caught.value).startswith("blocks[1]")
