"""Mutants of who may look at a conversation, of what a page asks for, and of what it shows."""

from __future__ import annotations

from tests.mutants.mutants import module

INSPECTOR = (
    module(
        "inspector/guard.py",
        "test_inspector.py",
        ("Guard._answer", "if not self._is_own(host_name(host)):", "if False:"),
        ("Guard._answer", "_place(origin) != host.lower()", "False"),
        ("Guard._answer", 'not in ("GET", "HEAD")', 'in ("GET", "HEAD")'),
        ("Guard._answer", "self.is_token(query[TOKEN_FIELD][0])", "True"),
        ("Guard._answer", "if self.is_token(bearer) or", "if bearer or"),
        ("Guard._is_own", "if name in self._hosts:", "if True:"),
        ("Guard._remember", "if name != TOKEN_FIELD", "if True"),
        ("Guard._remember", "httponly=True", "httponly=False"),
        ("Guard._remember", 'samesite="strict"', 'samesite="lax"'),
        ("Guard._remember", 'where.lstrip("/\\\\")', "where[1:]"),
        ("Guard.__call__", 'headers.setdefault("Content-Security-Policy", self._policy)', "pass"),
    ),
    module(
        "inspector/app.py",
        "test_inspector.py test_inspector_sessions.py test_inspector_collections.py",
        ("Desk.take_back", 'not self.is_token(form.get("token", ""))', "False"),
        ("Desk._values", "-_size(one[1])", "_size(one[1])"),
        ("Desk._values", "collection.describe is None or len(found) <= LIST_ROWS", "True"),
    ),
    module(
        "inspector/pages.py",
        "test_inspector.py test_inspector_sessions.py test_inspector_collections.py",
        ("Inspector.take_back", "if self._subject.read_only:", "if False:"),
        ("Inspector.take_back", 'events[-1].id != form.get("last", "")', "False"),
        ("Inspector._view", 'if not question.policy.startswith("{"):', "if False:"),
        ("Inspector._window", "min(asked, MOST_ROWS)", "asked"),
        ("Inspector.message", "text[:SHOWN_CHARS]", "text"),
        ("Inspector.search", "start < total <= start + MOST_FOUND", "start < total"),
        ("Inspector.refresh", "self._forget()", "pass"),
        ("Inspector._rows", "shown[place - 1] + 1", "shown[place - 1]"),
        ("Inspector._price", "1 if tier is None else tier.input", "1"),
        ("_steps", "most - (most - least) // step * step", "least"),
    ),
    module(
        "inspector/compare.py",
        "test_inspector.py",
        ("_differ", "left.output(one) != right.output(other)", "one.kind != other.kind"),
        ("align", "waiting.pop(other)", "waiting[other]"),
    ),
    module(
        "inspector/views.py",
        "test_inspector.py",
        ("in_lines", "map(plain, text.splitlines())", "text.splitlines()"),
        ("more_room", "at in then and at not in now", "at in now and at not in then"),
        ("View.listed_in", "entry.kind not in GONE", "True"),
        ("write_time", "path.stat().st_mtime_ns if path.is_file() else None", "None"),
        ("budget_like", '"auto" if is_margin_auto else', ""),
    ),
    module(
        "inspector/log.py",
        "test_inspector.py test_inspector_sessions.py",
        ("_in_force", "[::-1]", ""),
        ("_why_gone", "event.version > cleared", "True"),
        ("_why_gone", "[-1][0]", "[0][0]"),
        ("Log.moments", "[::-1][start:stop]", "[start:stop]"),
        ("Log.refresh", 'any(event.kind == "redacted" for event in came)', "False"),
        ("Log.events", "self._before = since", "pass"),
        ("Log.since", "min(asked, version)", "version - LISTED"),
        ("Log._sent_before", "if until < version <= since:", "if until < version < 0:"),
        ("Log._most_tokens", " + state.pending_tokens", ""),
        ("_entries", "before[version], waiting = waiting, []", "before[version], waiting = [], []"),
        ("Log.undone_by", "if event.id == event_id:", "if True:"),
    ),
)
