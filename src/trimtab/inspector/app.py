"""An inspector as an application: which conversation a request is about, and what answers it."""

from __future__ import annotations

import functools
import itertools
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from trimtab._shared.design import PAGE_TOKENS
from trimtab.errors import ConfigurationError, ContextError, UnknownNameError
from trimtab.inspector.guard import Guard
from trimtab.inspector.pages import Inspector
from trimtab.inspector.questions import whole
from trimtab.inspector.subject import Collection, Item, Subject
from trimtab.inspector.views import keep
from trimtab.inspector.words import in_page, render

__all__ = ["make_app"]

STATIC = Path(__file__).with_name("static")
FORM_BYTES = 10_000
LIST_ROWS = 200
MOST_OPENED = 8
"""Conversations of a collection that are at hand with their views."""

Handler = Callable[["Inspector", Request], Response]


def make_app(
    subject: Subject | None = None,
    /,
    *,
    token: str,
    hosts: Sequence[str] = ("127.0.0.1", "localhost", "::1"),
    collection: Collection | None = None,
) -> Guard:
    """Make the inspector of one conversation, or of several, as an ASGI application.

    Args:
        subject: What to inspect.
        token: The secret that a visitor has in the address of the first visit (`?token=…`), or as a bearer.
        hosts: Host names that requests may use.
        collection: Conversations to choose from, in place of `subject`.

    Raises:
        ConfigurationError: The token is shorter than 16 characters, or not exactly one of subject and
            collection is given.
    """
    if len(token) < 16 or not token.isascii() or not token.isprintable() or set(token) & set(' ";,\\'):
        raise ConfigurationError(
            "token must be at least 16 ASCII characters without spaces, quotes, commas and semicolons, for"
            " example from secrets.token_urlsafe()",
            argument="token",
        )
    if (subject is None) == (collection is None):
        raise ConfigurationError("pass either a subject or collection= with several")
    desk = Desk(subject, collection, token)
    pages: Mapping[str, Handler] = {
        "/": Inspector.conversation,
        "/grown": Inspector.growth,
        "/rows": Inspector.rows,
        "/message": Inspector.message,
        "/text": Inspector.text,
        "/search": Inspector.search,
        "/quotes": Inspector.quotes,
        "/compare": Inspector.compare,
        "/compare/rows": Inspector.compare_rows,
        "/timeline": Inspector.timeline,
        "/timeline/rows": Inspector.timeline_rows,
        "/recall": Inspector.recall,
        "/undo": Inspector.undo,
        "/bill": Inspector.bill,
        "/bill/charts": Inspector.charts,
    }
    before = "" if collection is None else "/of/{number:int}"
    routes: list[Route | Mount] = [Route(before + path, desk.answer(page)) for path, page in pages.items()]
    routes.append(Route(f"{before}/undo", desk.take_back, methods=["POST"]))
    if collection is not None:
        routes.append(Route("/", desk.list(collection)))
        routes.append(Route("/named/{name}", desk.by_name(collection)))
    routes.append(Route("/static/tokens.css", _tokens))
    routes.append(Route("/favicon.ico", _icon))
    routes.append(Mount("/static", StaticFiles(directory=STATIC)))
    guarded = Guard(Starlette(routes=routes), token=token, hosts=hosts)
    desk.is_token = guarded.is_token
    return guarded


def _tokens(request: Request) -> Response:
    """Give the look that all pages share."""
    return Response(PAGE_TOKENS, media_type="text/css")


def _icon(request: Request) -> Response:
    """Give the icon to a page that names none, as that of charts."""
    return FileResponse(STATIC / "icon.svg")


class Desk:
    """Answers one question after the other, with the inspector of what it is about."""

    def __init__(self, subject: Subject | None, collection: Collection | None, token: str) -> None:
        self._collection = collection
        self._token = token
        self._lock = threading.Lock()
        self._numbers = dict[str, int]()
        """What addresses call the conversations that are there, by name: a new one shifts no other."""
        self._next = itertools.count()
        self._opened: OrderedDict[int, Inspector] = OrderedDict()
        if subject is not None:
            self._opened[0] = Inspector(subject, token=token)
        self.is_token: Callable[[str], bool] = lambda given: False

    def answer(self, page: Handler) -> Callable[[Request], Any]:
        """Make what answers requests of a page: in a thread, one at a time, errors in words."""

        @functools.wraps(page)
        async def run(request: Request) -> Response:
            return await run_in_threadpool(self._run, page, request)

        return run

    def _run(self, page: Handler, request: Request) -> Response:
        with self._lock:
            inspector: Inspector | None = None
            try:
                inspector = self._inspector(request)
                inspector.refresh()
                return page(inspector, request)
            except ContextError as error:
                status = 404 if isinstance(error, UnknownNameError) else 400
                told = in_page(error)
            except RecursionError:
                status, told = 400, "something in this conversation or policy is nested too deep to be shown"
            names = self._names if inspector is None else inspector.names
            return render("error.html", request, status=status, error=told, **names)

    @property
    def _names(self) -> dict[str, Any]:
        return {"collection": self._collection}

    def _inspector(self, request: Request) -> Inspector:
        if self._collection is None:
            return self._opened[0]
        collection, number = self._collection, int(request.path_params["number"])

        def make() -> Inspector:
            named = {one: name for name, one in self._numbers.items()}
            if number not in named:  # it is newer than the list, or not there any more
                named = {one: item.name for one, item in self._numbers_of(collection)}
            if number not in named:
                raise UnknownNameError(f"there is no {collection.noun} {number}", name=str(number))
            subject = collection.open(named[number])
            return Inspector(subject, token=self._token, base=f"/of/{number}", collection=collection)

        return keep(self._opened, number, make, most=MOST_OPENED)

    def _numbers_of(self, collection: Collection) -> list[tuple[int, Item]]:
        """List all items with the numbers that addresses have for them."""
        found = collection.items()
        known = self._numbers  # those of what is gone are forgotten, and never another's
        self._numbers = {
            item.name: known[item.name] if item.name in known else next(self._next) for item in found
        }
        return [(self._numbers[item.name], item) for item in found]

    def list(self, collection: Collection) -> Callable[[Request], Any]:
        """Make what shows all there is to choose from."""

        async def run(request: Request) -> Response:
            return await run_in_threadpool(self._list, collection, request)

        return run

    def by_name(self, collection: Collection) -> Callable[[Request], Any]:
        """Make what leads from the name of a conversation to its page."""

        async def run(request: Request) -> Response:
            return await run_in_threadpool(self._by_name, collection, request)

        return run

    def _by_name(self, collection: Collection, request: Request) -> Response:
        name, root = request.path_params["name"], request.scope.get("root_path", "")
        with self._lock:
            if name not in self._numbers:
                self._numbers_of(collection)
            number = self._numbers.get(name)
        if number is None:
            told = f"There is no {collection.noun} {name}."
            return render("error.html", request, status=404, error=told, **self._names)
        return RedirectResponse(f"{root}/of/{number}/", status_code=303)

    def _list(self, collection: Collection, request: Request) -> Response:
        given = request.query_params
        with self._lock:
            try:
                start = whole(given, "start") or 0
                values = self._values(
                    collection, given.get("q", "").strip()[:200], given.get("by", ""), start
                )
            except ContextError as error:
                return render("error.html", request, status=400, error=in_page(error), collection=collection)
        return render("collection.html", request, collection=collection, start=start, **values)

    def _values(self, collection: Collection, words: str, by: str, start: int) -> dict[str, Any]:
        """Choose the items of a page; where all of them are known, they can be put in order."""
        tell = collection.describe or (lambda item: item)
        found = self._numbers_of(collection)
        is_known = collection.describe is None or len(found) <= LIST_ROWS
        if is_known:
            found = [(number, tell(item)) for number, item in found]
        shown = [one for one in found if words.casefold() in f"{one[1].name} {one[1].said}".casefold()]
        if by == "size" and is_known:
            shown.sort(key=lambda one: -_size(one[1]))
        page = shown[start : start + LIST_ROWS]
        if not is_known:
            page = [(number, tell(item)) for number, item in page]
        sizes = [(_size(item), at) for at, (_, item) in enumerate(found if is_known else page)]
        most, at = max(sizes, default=(0, 0))
        return {
            "items": page,
            "is_known": is_known,
            "total": len(shown),
            "of": len(found),
            "step": LIST_ROWS,
            "words": words,
            "by": by,
            "query": urlencode({"q": words, "by": by}),
            "longest": found[at] if is_known and most else None,
            "most": most or 1,
        }

    async def take_back(self, request: Request) -> Response:
        """Undo a decision, as a form that holds the token asked for."""
        body = bytearray()
        async for part in request.stream():
            body += part
            if len(body) > FORM_BYTES:
                return PlainTextResponse("The form is too large.\n", status_code=413)
        form = {name: values[0] for name, values in parse_qs(body.decode("utf-8", "replace")).items()}
        if not self.is_token(form.get("token", "")):
            return PlainTextResponse("The form lacks the token of this inspector.\n", status_code=403)
        return await run_in_threadpool(self._run, lambda one, asked: one.take_back(asked, form), request)


def _size(item: Item) -> int:
    return item.tokens or item.messages or 0
