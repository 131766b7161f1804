"""Words of the pages, of errors, policies and prices, and how they are put into templates."""

from __future__ import annotations

import functools
from typing import Any, cast

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from trimtab.errors import ContextError, Hint, Phrase
from trimtab.inspector.views import in_lines
from trimtab.report.text import in_dollars, plain, plural
from trimtab.stores.secrets import mask

__all__ = ["in_page", "policy_name", "render"]

_POLICIES = {
    "default": "as fit does",
    "steady": "as fit does, steady",
    "session": "the session itself",
    "none": "no trimming",
    "session-extractive": "a session with extracted summaries",
}
_HINTS = {
    "room": "a budget",
    "budget": "the budget",
    "event": "choose an event of the timeline",
    "facts": "facts about the model in a file of your own",
    "margin_tokens": "",
    "path": "",
}
"""What an error suggests, as a page calls it; else it is called as it is, with blanks."""


def in_page(error: Exception) -> str:
    """Return the text of an error for somebody in front of a page; no password of a store is in it."""
    text = error.args[0] if isinstance(error, ContextError) and error.args else str(error)
    if isinstance(text, Phrase):
        text = "".join(part if isinstance(part, str) else _hint(part) for part in text.parts)
    told = mask(str(text)).strip()
    first = told.partition(" ")[0]
    return told[:1].upper() + told[1:] if first.isalpha() else told  # a name stays as it is written


def _hint(hint: Hint) -> str:
    if hint.name in _HINTS and not hint.value:
        return _HINTS[hint.name]
    name = _HINTS.get(hint.name, hint.name.replace("_", " "))
    return f"{name} {hint.value}" if hint.value else name


def policy_name(word: str) -> str:
    """Name a policy for people."""
    return _POLICIES.get(word, plain(word))


@functools.cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("trimtab.inspector"), autoescape=True, undefined=StrictUndefined
    )
    environment.filters |= {"plain": plain, "lines": in_lines, "money": in_dollars}
    cast("dict[str, Any]", environment.globals).update({"count": plural, "policy_name": policy_name})
    return environment


def render(template: str, request: Request, *, status: int = 200, **values: Any) -> Response:
    """Make a page, or a part of one for a page that is there."""
    root: str = request.scope.get("root_path", "")
    base = root + values.get("base", "")
    names = {
        "subject": None,
        "collection": None,
        "model": "",
        "path": request.url.path.removeprefix(base) or "/",
        "part": "hx-request" in request.headers or request.url.path.endswith(("rows", "message")),
    }
    page = _environment().get_template(template).render({**names, **values, "root": root, "base": base})
    return HTMLResponse(page, status_code=status)
