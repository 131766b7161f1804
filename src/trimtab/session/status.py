"""Numbers about a session, and what two of its views differ in."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from trimtab.session.working_set import Scene
from trimtab.stores import Event

if TYPE_CHECKING:
    from trimtab.session.core import Core

__all__ = ["SessionStatus", "ViewDiff"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStatus:
    """Where a session stands."""

    version: int
    """Events in its log."""
    budget_tokens: int
    view_tokens: int
    expected_tokens: int
    """What the provider is expected to bill for the view: `view_tokens` until usage was recorded."""
    recent_messages: int
    recent_tokens: int
    pending_messages: int
    """Messages that wait for a summary."""
    pending_tokens: int
    hidden_messages: int
    """Messages that are neither in view nor summarized; `Session.summarize` takes those that wait."""
    summarized_messages: int
    """Messages the summaries in force stand for."""
    failures: int
    """Summaries that failed since the last one that did not."""
    retry_tokens: int
    """Waiting tokens from which the summarizer is asked again.

    0 if it did not fail, and did not have to be asked for a shorter text.
    """
    last_failure: str | None
    """Why the last summary failed, as far as this object knows."""
    stale_summaries: int
    """Summaries this object dropped, since what they covered had changed meanwhile."""
    hook_errors: int

    @classmethod
    def of(cls, scene: Scene, core: Core) -> SessionStatus:
        """Collect the numbers."""
        state = scene.state
        covering = [one for one in (scene.anchor_summary, scene.summary) if one is not None]
        return cls(
            version=scene.version,
            budget_tokens=state.budget_tokens,
            view_tokens=scene.breakdown.total,
            expected_tokens=state.expected_tokens(scene.breakdown.total),
            recent_messages=state.recent_messages,
            recent_tokens=state.recent_tokens,
            pending_messages=state.pending_messages,
            pending_tokens=state.pending_tokens,
            hidden_messages=scene.hidden_messages,
            summarized_messages=sum(one.messages for one in covering),
            failures=state.failures,
            retry_tokens=state.retry_tokens,
            last_failure=core.last_failure,
            stale_summaries=core.stale_summaries,
            hook_errors=core.hook_errors,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewDiff:
    """What came into a view and what left it, from one version to another."""

    came: tuple[Event, ...]
    """Messages in the second view only."""
    left: tuple[Event, ...]
    """Messages in the first view only."""
    summary_before: str | None
    summary_after: str | None
