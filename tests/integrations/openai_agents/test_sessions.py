"""`TrimSession` by what the SDK tests of its own sessions."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from inspect import iscoroutine, signature
from pathlib import Path
from typing import Any

import pytest
from agents import SessionSettings, set_tracing_disabled

from tests.integrations.sdist import module_at, source_of
from trimtab import Session
from trimtab.integrations.openai_agents import TrimSession
from trimtab.stores import SQLiteStore

set_tracing_disabled(True)

RUNS = ("run", "run_sync", "run_streamed")
"""The SDK's ways to run an agent."""

LOOKS_INSIDE = {
    # Connections, locks and threads of the SDK's session, which is not closed here.
    "close_closes_worker_thread_connections",
    "closed_rejects_empty_add_items",
    "file_lock_is_shared_across_instances",
    "keeps_connections_of_live_worker_threads",
    "reaps_connections_from_exited_worker_threads",
    # Rows of its tables, and triggers on them.
    "failed_clear_session_rolls_back",
    "failed_pop_item_releases_write_lock",
    "get_items_limit_skips_corrupt_newest_rows",
    "get_items_session_settings_limit_skips_corrupt_rows",
    "pop_item_returns_none_after_dropping_only_corrupt_rows",
    "pop_item_skips_corrupt_most_recent",
    # The words of json.dumps for an object, which a log refuses in its own.
    "failed_add_items_releases_write_lock",
}
"""The SDK's tests of what no other session has."""


class _Session(TrimSession):
    """Made as the SDK's own session is."""

    def __init__(self, session_id: str, db_path: Any = ":memory:", session_settings: Any = None) -> None:
        store = None if db_path == ":memory:" else SQLiteStore(db_path)
        session = Session(1_000_000, id=session_id, format="openai_responses", store=store)
        super().__init__(session, session_settings=session_settings)

    def close(self) -> None:
        """A store closes by itself."""


def _tests(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """List the SDK's tests of sessions that need no fixture, with what each is called with."""
    root = source_of("openai-agents", folder)
    for name in ("test_responses", "memory.test_session", "memory.test_session_limit"):
        module = module_at(root / "tests" / f"{name.replace('.', '/')}.py")
        patch.setitem(sys.modules, f"tests.{name}", module)
        patch.setattr(module, "SQLiteSession", _Session, raising=False)
        for test in [one for one in vars(module) if one.startswith("test_") and "memory" in name]:
            named = [*signature(getattr(module, test)).parameters]
            ways = [{"runner_method": way} for way in RUNS] if named == ["runner_method"] else [{}]
            for given in ways if named in ([], ["runner_method"]) else ():
                yield test.removeprefix("test_"), getattr(module, test), given


def test_the_sdks_own_tests_of_sessions_pass_but_for_those_that_look_inside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run cannot tell the two apart."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    passed, failed = 0, set[str]()
    for name, test, given in _tests(tmp_path, monkeypatch):
        try:
            said = test(**given)
            asyncio.run(said) if iscoroutine(said) else None
            passed += 1
        except BaseException as error:  # pytest's own among them
            if isinstance(error, KeyboardInterrupt):
                raise
            failed.add(name.removeprefix("sqlite_session_"))
    assert failed == LOOKS_INSIDE
    assert passed >= 50


def test_settings_are_the_sdks_or_what_it_makes_them_from() -> None:
    """As for its own sessions: None is its default, and what it does not know is its error."""

    def session(**given: Any) -> TrimSession:
        return TrimSession(Session(4_000, format="openai_responses"), **given)

    own = SessionSettings(limit=2)
    assert session().session_settings == SessionSettings()
    assert session(session_settings=own).session_settings is own
    limited = session(session_settings={"limit": 1})
    assert limited.session_settings == SessionSettings(limit=1)
    asyncio.run(limited.add_items([{"role": "user", "content": text} for text in ("one", "two")]))
    assert [one["content"] for one in asyncio.run(limited.get_items())] == ["two"]  # type: ignore[typeddict-item]
    with pytest.raises(TypeError, match="limitt"):
        session(session_settings={"limitt": 1})
