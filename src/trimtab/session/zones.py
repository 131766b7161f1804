"""How the budget of a session is shared: system and anchors, summary, recent messages (SPEC E2, E3, S3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from trimtab._shared.checks import check_whole

if TYPE_CHECKING:
    from trimtab.session.options import Options

_SUMMARY = (3, 10)
_RECENT = (3, 10)
_THRESHOLD = (1, 10)
_ANCHORS = (4, 10)
_FACTS = (1, 10)
_RULES = (1, 10)
_MOST_RULE_TOKENS = 1_000


class Zones(NamedTuple):
    """The room of each part of a session, in tokens.

    Args:
        system_tokens: Room of what is always shown: system text, the host's rules, anchors, framing.
        summary_tokens: Room kept free for the summary; 0 without a summarizer.
        recent_tokens: Room for unchanged messages.
    """

    system_tokens: int
    """Room of what is always shown: system text, the host's rules, anchors, framing."""
    summary_tokens: int
    """Room kept free for the summary; 0 without a summarizer."""
    recent_tokens: int
    """Room for unchanged messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenBreakdown:
    """Tokens of each part of a session's view.

    Args:
        system: System text, tools and framing.
        anchors: Tokens of the anchors.
        summary: Tokens of the summary.
        recent: Tokens of unchanged messages, including those in view that wait for a summary.
        pending: Tokens of the recent messages that wait for a summary.
        recalled: Tokens of messages found for the newest question.
        facts: Tokens of the facts.
        rules: Tokens of the host's rules, and of found rules that the view restates.
    """

    system: int
    """System text, tools and framing."""
    anchors: int
    summary: int
    recent: int
    """Tokens of unchanged messages, including those in view that wait for a summary."""
    pending: int
    """Tokens of the recent messages that wait for a summary."""
    recalled: int = 0
    """Tokens of messages found for the newest question."""
    facts: int = 0
    rules: int = 0
    """Tokens of the host's rules, and of found rules that the view restates."""

    @property
    def total(self) -> int:
        """Tokens of the whole view."""
        front = self.system + self.rules + self.anchors + self.facts + self.summary
        return front + self.recent + self.recalled


class Limits(NamedTuple):
    """The limits in force: those given, or parts of the budget."""

    max_summary_tokens: int
    min_recent_tokens: int
    threshold_tokens: int
    threshold_messages: int
    max_anchor_tokens: int
    max_fact_tokens: int
    max_rule_tokens: int


def _part(tokens: int, part: tuple[int, int]) -> int:
    return tokens * part[0] // part[1]


def limits_of(options: Options, budget_tokens: int, /) -> Limits:
    """Return the limits in force under a budget; those not given are parts of it, rounded down."""

    def part_or(value: int | None, of: int, part: tuple[int, int]) -> int:
        return _part(of, part) if value is None else value

    most = part_or(options.max_summary_tokens, budget_tokens, _SUMMARY)
    return Limits(
        max_summary_tokens=most,
        min_recent_tokens=part_or(options.min_recent_tokens, budget_tokens, _RECENT),
        threshold_tokens=max(1, part_or(options.summarize_threshold_tokens, budget_tokens, _THRESHOLD)),
        threshold_messages=options.summarize_threshold_messages,
        max_anchor_tokens=part_or(options.max_anchor_tokens, most, _ANCHORS),
        max_fact_tokens=part_or(options.max_fact_tokens, budget_tokens, _FACTS),
        max_rule_tokens=part_or(options.max_rule_tokens, min(budget_tokens, _MOST_RULE_TOKENS * 10), _RULES),
    )


def allocate_zones(
    budget_tokens: int,
    used_tokens: int,
    /,
    *,
    summarizes: bool = True,
    max_summary_tokens: int | None = None,
    min_recent_tokens: int | None = None,
) -> Zones:
    """Share a budget among the fixed part, the summary and the recent messages.

    Args:
        budget_tokens: Input tokens of the whole view.
        used_tokens: Tokens of what is always shown.
        summarizes: Whether there is a summarizer; without one, no room is kept for a summary.
        max_summary_tokens: None: 0.3 of the budget, rounded down.
        min_recent_tokens: Taken from the summary's room if necessary. None: 0.3 of the budget, rounded down.

    Raises:
        ConfigurationError: A number is negative, or not whole.

    Example:
        >>> allocate_zones(4096, 100)
        Zones(system_tokens=100, summary_tokens=1228, recent_tokens=2768)
    """
    budget_tokens = check_whole("budget_tokens", budget_tokens, least=0)
    used_tokens = check_whole("used_tokens", used_tokens, least=0)
    if max_summary_tokens is not None:
        max_summary_tokens = check_whole("max_summary_tokens", max_summary_tokens, least=0)
    if min_recent_tokens is not None:
        min_recent_tokens = check_whole("min_recent_tokens", min_recent_tokens, least=0)
    after = max(0, budget_tokens - used_tokens)
    least = _part(budget_tokens, _RECENT) if min_recent_tokens is None else min_recent_tokens
    most = _part(budget_tokens, _SUMMARY) if max_summary_tokens is None else max_summary_tokens
    summary = min(most, max(0, after - least)) if summarizes else 0
    return Zones(used_tokens, summary, after - summary)


def shares(options: Options, budget_tokens: int, permanent_tokens: int) -> Zones:
    """Share the budget of a session, by its options."""
    limits = limits_of(options, budget_tokens)
    return allocate_zones(
        budget_tokens,
        permanent_tokens,
        summarizes=options.summarizer is not None,
        max_summary_tokens=limits.max_summary_tokens,
        min_recent_tokens=limits.min_recent_tokens,
    )


def recent_target(
    options: Options, budget_tokens: int, *, permanent_tokens: int, summary_tokens: int, stride: float
) -> int:
    """Return how many tokens of recent messages stay once the budget was passed.

    The stride is the share of their room that becomes free.
    """
    zones = shares(options, budget_tokens, permanent_tokens)
    after = max(0, budget_tokens - permanent_tokens)
    room = max(0, after - summary_tokens)
    target = max(0, after - max(summary_tokens, zones.summary_tokens))
    target -= int(stride * target)
    return max(target, min(limits_of(options, budget_tokens).min_recent_tokens, room))
