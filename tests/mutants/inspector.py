"""Mutants of who may look at a conversation, of what a page asks for, and of what it shows."""

from __future__ import annotations

from tests.mutants.mutants import module

INSPECTOR = (
    module(
        "inspector/guard.py",
        "test_inspector.py",
        ("Guard._answer", "if _name(host) not in self._hosts:", "if False:"),
        ("Guard._answer", "urlsplit(origin).netloc != host", "False"),
        ("Guard._answer", 'not in ("GET", "HEAD")', 'in ("GET", "HEAD")'),
        ("Guard._answer", "self.is_token(query[TOKEN_FIELD][0])", "True"),
        ("Guard._answer", "if self.is_token(bearer) or", "if bearer or"),
        ("Guard._remember", "if name != TOKEN_FIELD", "if True"),
        ("Guard._remember", "httponly=True", "httponly=False"),
        ("Guard._remember", 'samesite="strict"', 'samesite="lax"'),
        ("Guard._remember", 'where.lstrip("/\\\\")', "where[1:]"),
        ("Guard.__call__", 'headers.setdefault("Content-Security-Policy", self._policy)', "pass"),
    ),
    module(
        "inspector/app.py",
        "test_inspector.py",
        ("Inspector._take_back", 'not self.is_token(form.get("token", ""))', "False"),
        ("Inspector._take_back", "if self._subject.read_only:", "if False:"),
        ("Inspector._take_back", 'log.undone_by(form.get("event", ""))', "pass"),
        ("Inspector._view", 'if not question.policy.startswith("{"):', "if False:"),
        ("Inspector._window", "min(asked, MOST_ROWS)", "asked"),
        ("Inspector.message", "text[:SHOWN_CHARS]", "text"),
        ("Inspector.search", "start < total <= start + MOST_FOUND", "start < total"),
        ("Pair.differs", "(self.left.kind, self.left.tokens) !=", "(self.left.kind, self.left.tokens) =="),
    ),
    module(
        "inspector/views.py",
        "test_inspector.py",
        ("in_lines", "map(plain, text.splitlines())", "text.splitlines()"),
        ("Views.more", "wider.stays() - view.stays()", "view.stays() - wider.stays()"),
        ("Views._stamp", "path.stat().st_mtime_ns if path.is_file() else None", "None"),
        ("Views._at", '"auto" if self._subject.is_margin_auto else', ""),
    ),
    module(
        "inspector/log.py",
        "test_inspector.py",
        ("_in_force", "[::-1]", ""),
        ("Log.moments", "events[::-1][start:stop]", "events[start:stop]"),
        ("Log.undone_by", "if event.id == event_id:", "if True:"),
    ),
)
