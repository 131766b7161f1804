"""What a rule is: a sentence of a user or operator, word for word, with what it is about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

__all__ = ["KINDS", "STANDING", "STRONGEST", "Rule", "RuleKind"]

RuleKind = Literal["rule", "limit", "preference", "order"]
"""What a sentence asks for.

A `rule` holds until it is taken back, a `limit` bounds a number, a `preference` says what somebody likes,
and an `order` is about one answer.
"""

KINDS: tuple[RuleKind, ...] = get_args(RuleKind)
"""The kinds, as values."""

STANDING = 3
"""From this strength on a rule holds beyond the answer it was said for."""

STRONGEST = 4
"""The highest strength; the lowest is 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule that was found in a text, word for word.

    Args:
        text: The whole sentence, as it is in the text it was found in, with its line breaks and its list.
        start: Where it begins in that text, in characters.
        kind: Whether it holds on, bounds a number, says what somebody likes, or is about one answer.
        strength: 4: it says how long it holds, or forbids. 3: it is about every case, or is a limit or a
            preference. 2: it forbids or obliges for one answer. 1: a plain order.
        language: Its code: "en", "de", "es", "fr" or "zh".
        topic: What it is about: its words, sorted, without its values and without words that all sentences
            have. Empty for an order, which nothing supersedes.
        values: What it sets, in the order said: "$500", "10 words", "german". Empty for an order.
        forbids: It says what must not be done. False for an order.
        adds: It says that it comes on top of what was said before ("also"), so it replaces nothing.

    Example:
        >>> from trimtab.rules import find_rules
        >>> rule, = find_rules("Thanks. Never deploy on Fridays.")
        >>> rule.text, rule.kind, rule.standing
        ('Never deploy on Fridays.', 'rule', True)
    """

    text: str
    """The whole sentence, as it is in the text it was found in, with its line breaks and its list."""
    start: int
    """Where it begins in that text, in characters."""
    kind: RuleKind
    """Whether it holds on, bounds a number, says what somebody likes, or is about one answer."""
    strength: int
    """4: it says how long it holds, or forbids. 3: it is about every case, or is a limit or a preference.
    2: it forbids or obliges for one answer. 1: a plain order."""
    language: str
    """Its code: "en", "de", "es", "fr" or "zh"."""
    topic: tuple[str, ...] = ()
    """What it is about: its words, sorted, without its values and without words that all sentences have.
    Empty for an order, which nothing supersedes."""
    values: tuple[str, ...] = ()
    """What it sets, in the order said: "$500", "10 words", "german". Empty for an order."""
    forbids: bool = False
    """It says what must not be done. False for an order."""
    adds: bool = False
    """It says that it comes on top of what was said before ("also"), so it replaces nothing."""

    @property
    def standing(self) -> bool:
        """Whether it holds beyond the answer it was said for; False for orders."""
        return self.strength >= STANDING
