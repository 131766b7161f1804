"""`Block`: what it may be declared with, and what the error says to write instead."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.builders import user
from trimtab import (
    Block,
    Cascade,
    ClampResults,
    ConfigurationError,
    Context,
    Drop,
    SlidingWindow,
    Strict,
    Tier,
    TruncateText,
    counter_from_text,
)
from trimtab.errors import CountingError, FormatError
from trimtab.testing import WordCounter


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"name": ""}, "the name of a block must be a non-empty text, not ''"),
        ({"name": None}, "the name of a block must be a non-empty text, not None"),
        ({"priority": None}, "priority must be a finite number, not None"),
        ({"priority": True}, "priority must be a finite number, not True"),
        ({"priority": math.inf}, "priority must be a finite number, not inf"),
        ({"position": "first"}, "position must be a finite number, not 'first'"),
        ({"tier": 1.5}, "tier must be a whole number, not 1.5"),
        ({"tier": 1, "priority": 2}, "a tier sets both rank and place: leave out priority"),
        ({"tier": 1, "position": 0}, "a tier sets both rank and place: leave out position"),
        ({"min_tokens": -1}, "min_tokens must be a whole number of tokens >= 0, not -1"),
        ({"max_tokens": 1.5}, "max_tokens must be a whole number of tokens >= 0, not 1.5"),
        ({"min_tokens": True}, "min_tokens must be a whole number of tokens >= 0, not True"),
        ({"min_ratio": -0.1}, "min_ratio must be a share of the input room, 0 to 1, not -0.1"),
        ({"max_ratio": 1.1}, "max_ratio must be a share of the input room, 0 to 1, not 1.1"),
        ({"max_ratio": math.nan}, "max_ratio must be a share of the input room, 0 to 1, not nan"),
        ({"max_ratio": True}, "max_ratio must be a share of the input room, 0 to 1, not True"),
        ({"share": 0}, "share must be a weight above 0, not 0"),
        ({"share": math.inf}, "share must be a weight above 0, not inf"),
        ({"share": math.nan}, "share must be a weight above 0, not nan"),
        ({"share": 10**400}, "share must be a weight above 0, not 1000"),
        ({"role": ""}, "role must be the name of a role, not ''"),
        ({"pinned": 1}, "pinned must be True or False, not 1"),
        ({"trim_behavior": "word"}, "trim_behavior must be 'message' or 'char', not 'word'"),
        ({"trim_behavior": "char", "strategy": Drop()}, "trim_behavior and strategy contradict each"),
        ({"strategy": Drop}, "the class Drop: write Drop(...)"),
        ({"strategy": "dorp"}, "no strategy is called 'dorp'"),
        ({"cache_control": 5}, "cache_control must be a mapping such as"),
        ({"content": 5}, "content must be text, a message, a list of messages or None, not int"),
        ({"content": b"x"}, "content must be text, a message, a list of messages or None, not bytes"),
        ({"on_trim": "f"}, "on_trim must be a function"),
    ],
)
def test_nonsense_is_refused_when_the_block_is_made(options: dict[str, Any], words: str) -> None:
    """The error names the block, the value and what may stand there."""
    with pytest.raises(ConfigurationError) as raised:
        Block(**{"name": "facts", **options})
    assert words in str(raised.value)
    if "name" not in options and "on_trim" not in options:
        assert str(raised.value).startswith("block 'facts': ")


def test_a_block_keeps_the_list_it_was_given_not_the_callers_own() -> None:
    """What the caller appends afterwards is not in it; the messages are the caller's objects."""
    messages = [user()]
    block = Block(name="history", content=messages)
    messages.append(user())
    assert len(block.content) == 1
    assert block.content[0] is messages[0]


AS_FIT_DOES = Cascade(
    ClampResults(max_ratio=0.25, above_ratio=0.5, texts="too_large", keep_newest=True),
    SlidingWindow(),
    TruncateText(),
)


@pytest.mark.parametrize(
    ("options", "strategy"),
    [
        ({}, AS_FIT_DOES),
        ({"tier": Tier.SYSTEM}, Strict()),
        ({"tier": Tier.SYSTEM, "strategy": Drop()}, Drop()),
        ({"tier": Tier.SYSTEM, "trim_behavior": "message"}, SlidingWindow()),
        ({"tier": Tier.CORE}, AS_FIT_DOES),
        ({"trim_behavior": "message"}, SlidingWindow()),
        ({"trim_behavior": "char"}, TruncateText()),
        ({"strategy": Drop()}, Drop()),
    ],
)
def test_how_it_gives_way(options: dict[str, Any], strategy: object) -> None:
    """`Strict` in the system tier, else as `fit` does; `trim_behavior` names two others."""
    assert Block(name="b", **options).gives_way_by == strategy


@pytest.mark.parametrize(
    ("options", "floor", "cap"),
    [
        ({}, 0, 1000),
        ({"min_ratio": 0.1, "min_tokens": 50}, 100, 1000),
        ({"min_ratio": 0.1, "min_tokens": 150}, 150, 1000),
        ({"max_ratio": 0.4, "max_tokens": 300}, 0, 300),
        ({"max_ratio": 0.2, "max_tokens": 300}, 0, 200),
        ({"min_tokens": 500, "max_ratio": 0.25}, 250, 250),
        ({"max_tokens": 0}, 0, 0),
        ({"min_tokens": 1500}, 1500, 1000),
        ({"min_tokens": 1500, "max_tokens": 900}, 900, 900),
        ({"max_ratio": 0.0999}, 0, 99),
    ],
)
def test_floors_and_caps_in_tokens(options: dict[str, Any], floor: int, cap: int) -> None:
    """Of two floors the larger holds, of two caps the smaller; the floor is lowered to the cap."""
    block = Block(name="b", **options)
    assert (block.floor_tokens(1000), block.cap_tokens(1000)) == (floor, cap)


def test_rank_and_place() -> None:
    """A tier is both; a block without a position stands after those with one."""
    assert [(Block(name="b", tier=t).rank, Block(name="b", tier=t).place) for t in (0, 3, -2)] == [
        (0, 0),
        (-3, 3),
        (2, -2),
    ]
    assert Block(name="b", priority=5).rank == 5
    assert Block(name="b", position=-1).place == -1
    assert Block(name="b").place == math.inf


def test_cache_control_may_be_a_word() -> None:
    """The word stands for a mapping of its type."""
    assert Block(name="b", cache_control="ephemeral").cache_control == {"type": "ephemeral"}
    assert Block(name="b", cache_control={"type": "x", "ttl": "1h"}).cache_control == {
        "type": "x",
        "ttl": "1h",
    }


def test_a_block_is_shown_without_its_content() -> None:
    """Logs get no text of a conversation."""
    assert repr(Block(name="b", content="secret", max_ratio=0.5)) == "Block('b', max_ratio=0.5)"


@pytest.mark.parametrize(
    ("context", "error", "words"),
    [
        (
            Context(50, counter=WordCounter()).add("a", "x").add("history", [user(), 5]),
            FormatError,
            r"block 'history': messages\[1\]: a message must be a mapping",
        ),
        (
            Context(50, counter=counter_from_text(lambda text: -1)).add("history", [user()]),
            CountingError,
            "block 'history': ",
        ),
    ],
    ids=["entry", "count"],
)
def test_an_error_about_an_entry_names_its_block(
    context: Context, error: type[Exception], words: str
) -> None:
    """Positions are those in the block."""
    with pytest.raises(error, match=words):
        context.fit()
