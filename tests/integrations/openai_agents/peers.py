"""The Agents SDK's own ways to keep a request small, and ours, on the same loops."""

from __future__ import annotations

from typing import Any

from agents import SessionSettings, SQLiteSession
from agents.extensions import ToolOutputTrimmer

from tests.integrations.openai_agents.test_openai_agents import play, session_of
from tests.integrations.upstream import BUDGET_TOKENS
from trimtab import Budget
from trimtab.integrations.openai_agents import trim_filter


def _persisted(**options: Any) -> dict[str, Any]:
    session = session_of(**options)
    return {"filter": trim_filter(BUDGET_TOKENS, persist=session), "session": session}


POLICIES: dict[str, Any] = {
    "`trim_filter(4_000)`": lambda: {"filter": trim_filter(BUDGET_TOKENS)},
    "`trim_filter(4_000, persist=session)`": _persisted,
    "the same, its session with `target_ratio=0.65`": lambda: _persisted(target_ratio=0.65),
    "`TrimSession` alone": lambda: {"session": session_of()},
    "`TrimSession` alone, `Budget(4_000, output_reserve=1_000)`": lambda: {
        "session": session_of(Budget(BUDGET_TOKENS, output_reserve=1_000))
    },
    "Agents SDK: a session, no filter": lambda: {},
    "Agents SDK: `ToolOutputTrimmer()`": lambda: {"filter": ToolOutputTrimmer()},
    "Agents SDK: `SessionSettings(limit=20)`": lambda: {
        "session": SQLiteSession("t", session_settings=SessionSettings(limit=20))
    },
    "Agents SDK: both": lambda: {
        "filter": ToolOutputTrimmer(),
        "session": SQLiteSession("t", session_settings=SessionSettings(limit=20)),
    },
}
"""What is compared, by the words of the table."""


def score(loop: Any, name: str) -> Any:
    """Play a loop with what is compared."""
    return play(loop, **POLICIES[name]())[0]
