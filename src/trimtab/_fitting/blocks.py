"""Blocks: what a request is made of, declared and checked, not yet fitted.

A block is a named part of a request (the system prompt, facts, documents, history, the question)
with its own strategy and limits. Which block gives way to which is `allocation.py`'s to say.
"""

from __future__ import annotations

import math
import re
import reprlib
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from enum import IntEnum
from itertools import repeat
from typing import Any, Literal, cast

from trimtab._fitting.request import compact_of
from trimtab._shared.checks import check_trim, number_of, whole_of
from trimtab.errors import (
    ConfigurationError,
    phrase,
)
from trimtab.strategies import SlidingWindow, Strategy, Strict, TruncateText
from trimtab.strategies.door import DEFAULT_STRATEGY, StrategyLike, strategy_given

__all__ = ["Block", "Tier", "TrimBehavior"]

TrimBehavior = Literal["message", "char"]
"""How a block gives way: by whole messages, or by cutting their text."""


class Tier(IntEnum):
    """Ranks of the usual blocks; the lowest gets its room first and comes first.

    Any int is a tier: use `Tier.HISTORY + 1` or 10 for your own ranks.
    """

    SYSTEM = 0
    """Instructions that are never evicted."""
    CORE = 1
    """Facts that are always needed: who the user is, what was agreed."""
    RAG = 2
    """Documents that were retrieved."""
    HISTORY = 3
    """The conversation so far."""
    SCRATCHPAD = 4
    """Notes and tool logs that may be evicted first."""

    @staticmethod
    def label(tier: int, /) -> str:
        """Return a tier's name for reports: in lower case, or `Tier(42)` for one without a name.

        Example:
            >>> Tier.label(Tier.RAG), Tier.label(42)
            ('rag', 'Tier(42)')
        """
        try:
            return Tier(tier).name.lower()
        except ValueError:
            return f"Tier({tier})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One named part of a request, and the rule by which it gives way.

    Args:
        name: Its name in reports and errors; not empty, and unique in a
            context.
        content: Text, a message, a list of messages, or `{"text": …,
            "attachments": […]}`; None and [] add nothing.
        priority: Rank: blocks of a higher rank get their room first. Cannot
            be combined with `tier`.
        position: Place in the request: lower comes first. None: after all
            blocks that have one, in the order they were added.
        tier: Rank and place in one: the block of a lower tier gets its room
            first and comes first. Cannot be combined with `priority` or
            `position`.
        min_tokens: Floor: tokens reserved for it, as long as the floors of
            all blocks fit.
        max_tokens: Cap on its tokens, which holds even when everything
            would fit; None: no cap.
        min_ratio: Floor as a share of the input room, 0 to 1; if both
            floors are given, the larger one applies.
        max_ratio: Cap as a share of the input room, 0 to 1; if both caps
            are given, the smaller one applies.
        share: Weight by which blocks of one rank divide the remaining room;
            None: they get their room one after the other.
        role: Role of all its messages; None: messages keep their own, and
            text gets "system" in a block of that name, else "user".
        strategy: How it gives way: a strategy, or a name such as "agent".
            None: `Strict` in `Tier.SYSTEM`, otherwise the default of `fit`.
        trim_behavior: "message" means `SlidingWindow()`, "char" means
            `TruncateText()`; cannot be combined with `strategy`.
        pinned: True: all of it is kept, even if it is larger than its cap.
        cache_control: Mark that the last kept message of the block carries,
            in the provider's form, such as `{"type": "ephemeral"}`. A
            string is the type of that mapping.
        join: Text between documents that are joined into one message; None:
            each text is a message of its own.
        wrap: Element that wraps each document of that message, escaped:
            "document" writes `<document label="…">`.
        labels: One label for each text or message of the content, for the
            report and for `wrap`.
        on_trim: Called with a `TrimContext` of this block before anything
            is decided.
        compact: How its tool results are written; None: as the context
            says; False: as they are. What is said here goes before what the
            context says.

    Raises:
        ConfigurationError: A value is out of range, two values contradict
            each other, or the name is empty; raised when the block is made.

    Example:
        >>> Block(name="documents", content=["Tea is a drink."], priority=40, max_ratio=0.4).max_ratio
        0.4
    """

    name: str
    content: Any = None
    priority: int | float = 0
    position: int | float | None = None
    tier: int | None = None
    min_tokens: int = 0
    max_tokens: int | None = None
    min_ratio: float = 0.0
    max_ratio: float = 1.0
    share: float | None = None
    role: str | None = None
    strategy: StrategyLike | None = None
    trim_behavior: TrimBehavior | None = None
    pinned: bool = False
    cache_control: Any = None
    join: str | None = None
    wrap: str | None = None
    labels: Sequence[str] | None = None
    on_trim: Callable[[Any], object] | None = None
    compact: Any = None

    def __post_init__(self) -> None:
        """Check every value, and bring those with two spellings into one."""
        put = object.__setattr__
        if not isinstance(self.name, str) or not self.name:
            raise ConfigurationError(
                f"the name of a block must be a non-empty text, not {reprlib.repr(self.name)}",
                argument="name",
            )
        check = _Check(self.name)
        put(self, "content", check.content(self.content))
        ranks = check.rank(priority=self.priority, position=self.position, tier=self.tier)
        for name, rank in ranks.items():
            put(self, name, rank)
        for name, check_of, default in _CHECKS:
            value = getattr(self, name)
            if type(value) is not type(default) or value != default:
                put(self, name, check_of(check, name, value))
        if self.strategy is not None or self.trim_behavior is not None:
            put(self, "strategy", check.giving_way(self.strategy, self.trim_behavior))
        if self.join is not None or self.wrap is not None:
            check.joint(self.join, self.wrap, self.content)
        if self.labels is not None:
            put(self, "labels", check.labels(self.labels, self.content))
        if self.on_trim is not None:
            check_trim(self.on_trim)
        if self.compact is not None:
            put(self, "compact", compact_of(self.compact) or False)

    def __repr__(self) -> str:
        """Show the name and what is not as it would be by default; no content."""
        given = (
            f", {field.name}={getattr(self, field.name)!r}"
            for field in fields(self)
            if field.name not in ("name", "content", "labels") and getattr(self, field.name) != field.default
        )
        return f"Block({self.name!r}{''.join(given)})"

    @property
    def separator(self) -> str | None:
        """The text between joined documents; None if each is a message of its own."""
        return self.join if self.join is not None or self.wrap is None else "\n"

    @property
    def is_empty(self) -> bool:
        """True if it adds nothing to a request."""
        return self.content is None or self.content == ()

    @property
    def rank(self) -> float:
        """Its rank: the priority, or below 0 for a tier; a higher rank is served first."""
        return self.priority if self.tier is None else -self.tier

    @property
    def place(self) -> float:
        """Its place: its position or tier; infinity if it has neither."""
        if self.tier is not None:
            return self.tier
        return math.inf if self.position is None else self.position

    @property
    def gives_way_by(self) -> Strategy:
        """The strategy that applies."""
        if self.strategy is not None:
            return cast("Strategy", self.strategy)  # which a name was made into
        if self.trim_behavior == "char":
            return CHAR
        if self.trim_behavior == "message":
            return MESSAGE
        return _STRICT if self.tier == Tier.SYSTEM else DEFAULT_STRATEGY

    def floor_tokens(self, room_tokens: int, /) -> int:
        """Return the fewest tokens it asks for in an input room; at most
        its cap.

        The room does not limit it: a floor larger than the room is
        returned unchanged, and cannot be kept.

        Args:
            room_tokens: Size of the room, in tokens.
        """
        floor, cap = asked_floor_tokens(self, room_tokens), self.cap_tokens(room_tokens)
        return min(floor, cap) if cap < room_tokens else floor

    def cap_tokens(self, room_tokens: int, /) -> int:
        """Return the most tokens it may take of an input room.

        Args:
            room_tokens: Size of the room, in tokens.
        """
        cap = math.floor(self.max_ratio * room_tokens)
        return cap if self.max_tokens is None else min(cap, self.max_tokens)


def asked_floor_tokens(block: Block, room_tokens: int, /) -> int:
    """Return the least a block asks for, in tokens of an input room, whatever its cap."""
    return max(block.min_tokens, math.floor(block.min_ratio * room_tokens))


MESSAGE: Strategy = SlidingWindow()
"""What `trim_behavior="message"` means."""
CHAR: Strategy = TruncateText()
"""What `trim_behavior="char"` means."""
_STRICT: Strategy = Strict()


_ELEMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
"""Names of elements that need no escape."""


def is_text_with_attachments(value: Any, /) -> bool:
    """Tell `{"text": …, "attachments": […]}` from a message, in whatever wire form that is."""
    if not isinstance(value, Mapping) or "role" in value:
        return False
    return "attachments" in value or value.keys() == {"text"}


def _rank_of(value: object) -> str:
    """Name the tier whose word was given in place of it."""
    known = isinstance(value, str) and value.upper() in Tier.__members__
    return f": write Tier.{str(value).upper()}" if known else ""


def is_text(value: Any, /) -> bool:
    """Tell whether an entry of a block is text that a message is made of, with attachments or without."""
    return isinstance(value, str) or is_text_with_attachments(value)


class Messages(tuple[Any, ...]):
    """Content of which each entry was found to be a dict with a role: a message as it is."""

    __slots__ = ()


class _Check:
    """Checks of one block's values; every error names the block."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def fail(self, what: str, argument: str) -> ConfigurationError:
        return ConfigurationError(f"block {self._name!r}: {what}", argument=argument)

    def content(self, value: Any) -> Any:
        """Take a list as one of its own, so that a block keeps what it was given."""
        if isinstance(value, Mapping):
            self.attachments(value)
        if value is None or isinstance(value, (str, Mapping)) or callable(getattr(value, "model_dump", None)):
            return value
        if isinstance(value, (bytes, bytearray)) or not isinstance(value, Sequence):
            raise self.fail(
                f"content must be text, a message, a list of messages or None, not {type(value).__name__}",
                "content",
            )
        with suppress(TypeError):  # one is no dict; in C, as this runs over all messages
            if value and all(map(dict.__contains__, value, repeat("role"))):
                return Messages(value)  # nearly always
        for item in value:
            if isinstance(item, Mapping):
                self.attachments(item)
        return tuple(value)

    def attachments(self, value: Mapping[str, Any]) -> None:
        """Refuse what would be lost of text with attachments."""
        if not is_text_with_attachments(value):
            return
        if unknown := [key for key in value if key not in ("text", "attachments")]:
            raise self.fail(
                f"unknown key {unknown[0]!r}: content has the keys text and attachments only, and a message"
                " has a role",
                "content",
            )
        text, attached = value.get("text"), value.get("attachments")
        if text is not None and not isinstance(text, str):
            raise self.fail(f"text must be a text or None, not {type(text).__name__}", "content")
        if attached is not None and (isinstance(attached, str) or not isinstance(attached, Sequence)):
            raise self.fail(
                f"attachments must be a list of content parts, not {type(attached).__name__}", "content"
            )

    def rank(self, *, priority: Any, position: Any, tier: Any) -> dict[str, float | None]:
        ranks: dict[str, float | None] = {}
        for name, value in (("priority", priority), ("position", position), ("tier", tier)):
            ranks[name] = None if value is None else number_of(value)
            if ranks[name] is None and (value is not None or name == "priority"):
                raise self.fail(
                    f"{name} must be a finite number, not {reprlib.repr(value)}{_rank_of(value)}", name
                )
        if tier is None:
            return ranks
        if not isinstance(ranks["tier"], int):
            raise self.fail(f"tier must be a whole number, not {tier!r}", "tier")
        if priority != 0 or position is not None:
            other = "priority" if priority != 0 else "position"
            raise self.fail(f"a tier sets both rank and place: leave out {other}, or the tier", "tier")
        return ranks

    def tokens(self, name: str, value: Any) -> int:
        whole = whole_of(value)
        if whole is None or whole < 0:
            raise self.fail(f"{name} must be a whole number of tokens >= 0, not {reprlib.repr(value)}", name)
        return whole

    def ratio(self, name: str, value: Any) -> float:
        number = number_of(value)
        if number is None or not 0 <= number <= 1:
            raise self.fail(f"{name} must be a share of the input room, 0 to 1, not {value!r}", name)
        return float(number)

    def share(self, name: str, value: Any) -> float:
        number = number_of(value)
        if number is None or not 0 < number <= sys.float_info.max:  # of larger ints no float is made
            raise self.fail(f"share must be a weight above 0, not {reprlib.repr(value)}", name)
        return float(number)

    def role(self, name: str, value: Any) -> str:
        if not isinstance(value, str) or not value:
            raise self.fail(f"role must be the name of a role, not {value!r}", name)
        return value

    def flag(self, name: str, value: Any) -> bool:
        if not isinstance(value, bool):
            raise self.fail(f"{name} must be True or False, not {value!r}", name)
        return value

    def giving_way(self, strategy: Any, trim_behavior: Any) -> Strategy | None:
        if trim_behavior is not None and trim_behavior not in ("message", "char"):
            raise self.fail(
                f"trim_behavior must be 'message' or 'char', not {trim_behavior!r}", "trim_behavior"
            )
        if strategy is None:
            return None
        if trim_behavior is not None:
            raise self.fail(
                "trim_behavior and strategy contradict each other: pass one of them", "trim_behavior"
            )
        try:
            return strategy_given(strategy)
        except ConfigurationError as error:
            error.args = (phrase(f"block {self._name!r}: ", error),)
            error.argument = "strategy"
            raise

    def joint(self, join: Any, wrap: Any, content: Any) -> None:
        if join is not None and not isinstance(join, str):
            raise self.fail(
                f"join must be the text between documents, such as '\\n\\n', not {reprlib.repr(join)}", "join"
            )
        if wrap is not None and not (isinstance(wrap, str) and _ELEMENT.fullmatch(wrap)):
            raise self.fail(
                f"wrap must be the name of an element, such as 'document', not {reprlib.repr(wrap)}", "wrap"
            )
        for item in content if isinstance(content, tuple) else (content,):
            if item is not None and not isinstance(item, str):
                raise self.fail(
                    f"join= and wrap= join texts into one message, and a {type(item).__name__} is not text:"
                    " pass the texts, and role= for the message",
                    "join",
                )

    def labels(self, value: Any, content: Any) -> tuple[str, ...]:
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise self.fail(
                f"labels must be a list of texts, one for each document, not {reprlib.repr(value)}", "labels"
            )
        count = len(content) if isinstance(content, tuple) else 0 if content is None else 1
        if len(value) != count:
            raise self.fail(
                f"there are {len(value):,} labels for {count:,} texts or messages: pass one for each",
                "labels",
            )
        wrong = next((one for one in value if not isinstance(one, str)), None)
        if wrong is not None:
            raise self.fail(f"a label must be a text, not {reprlib.repr(wrong)}", "labels")
        return tuple(value)

    def cache_control(self, name: str, value: Any) -> Any:
        if isinstance(value, Mapping):
            return value
        if isinstance(value, str) and value:
            return {"type": value}
        raise self.fail(
            f"cache_control must be a mapping such as {{'type': 'ephemeral'}}, or its type, not {value!r}",
            name,
        )


_CHECKS: tuple[tuple[str, Callable[[_Check, str, Any], Any], Any], ...] = (
    ("min_tokens", _Check.tokens, 0),
    ("max_tokens", _Check.tokens, None),
    ("min_ratio", _Check.ratio, 0.0),
    ("max_ratio", _Check.ratio, 1.0),
    ("share", _Check.share, None),
    ("role", _Check.role, None),
    ("pinned", _Check.flag, False),
    ("cache_control", _Check.cache_control, None),
)
"""Fields that are checked one by one, and what they are where nobody says otherwise."""
