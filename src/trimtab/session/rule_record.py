"""A rule of a session as its user reads it, and rules in numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from trimtab.report import RuleCounts

if TYPE_CHECKING:  # the finder is loaded by who finds a rule
    from trimtab.rules import RuleKind

RulePlace: TypeAlias = Literal["shown", "in view", "hidden", "superseded", "listed"]
"""Where a rule is: restated in the view, in a message in view, in neither, replaced, or an order that no view
restates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRule:
    """A rule of a session.

    Args:
        id: Its id, for `Session.drop_rule`.
        text: The rule, word for word.
        kind: Whether it holds on, bounds a number, says what somebody likes, or is about one answer.
        strength: From 4, which holds on, to 1, a plain order; see `trimtab.rules.Rule`.
        by: Who made it one: the "host", or "found" in a message.
        source: Id of the message that said it first; None for the host's.
        times: How often it was said.
        place: "shown": restated in the view. "in view": a message in view says it. "hidden": it holds, but
            has no room in the view. "superseded": a later one replaces it. "listed": an order that is not
            restated.
    """

    id: str
    """Its id, for `Session.drop_rule`."""
    text: str
    """The rule, word for word."""
    kind: RuleKind
    """Whether it holds on, bounds a number, says what somebody likes, or is about one answer."""
    strength: int
    """From 4, which holds on, to 1, a plain order; see `trimtab.rules.Rule`."""
    by: Literal["host", "found"]
    """Who made it one: the "host", or "found" in a message."""
    source: str | None = None
    """Id of the message that said it first; None for the host's."""
    times: int = 1
    """How often it was said."""
    place: RulePlace = "shown"
    """"shown": restated in the view. "in view": a message in view says it. "hidden": it holds, but has no
    room in the view. "superseded": a later one replaces it. "listed": an order that is not restated."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)


def host_rule(text: str, /) -> SessionRule:
    """Make the record of a rule of the host; its id goes by its words."""
    name = blake2b(text.encode(errors="surrogatepass"), digest_size=6).hexdigest()
    return SessionRule(id=f"host:{name}", text=text, kind="rule", strength=4, by="host")


def count_rules(rules: Iterable[SessionRule], *, unlisted: int) -> RuleCounts | None:
    """Count rules by where they are; None if there are none.

    Args:
        rules: All that are listed; an order that no view restates does not count.
        unlisted: Rules that hold and are not listed.
    """
    places = Counter(one.place for one in rules)
    del places["listed"]
    if not places and not unlisted:
        return None
    hidden = places["hidden"] + unlisted
    return RuleCounts(
        in_force=places["shown"] + places["in view"] + hidden,
        in_view=places["in view"],
        restated=places["shown"],
        hidden=hidden,
        superseded=places["superseded"],
    )
