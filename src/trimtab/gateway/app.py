"""A gateway as an ASGI application: its own pages, how much is in progress, and the log."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple, Unpack

from trimtab.errors import ConfigurationError
from trimtab.gateway.exchange import Exchange, Rooms
from trimtab.gateway.fits import Fits
from trimtab.gateway.guard import LOOPBACK, Guard
from trimtab.gateway.keys import Keys
from trimtab.gateway.memory import Memory, secret_of
from trimtab.gateway.metrics import CONTENT_TYPE, Metrics
from trimtab.gateway.page import overview, page_of, policy_of
from trimtab.gateway.recent import Recent
from trimtab.gateway.settings import Limits, Upstream, public_upstreams
from trimtab.gateway.upstreams import Upstreams
from trimtab.integrations.base import AdapterBudget, FitOptions
from trimtab.stores.records import open_records

__all__ = ["make_app"]


class Page(NamedTuple):
    """An answer of the gateway's own."""

    status: int
    kind: bytes
    """The header Content-Type."""
    body: bytes
    more: tuple[tuple[bytes, bytes], ...] = ()
    """Headers of its own."""


TEXT = b"text/plain; charset=utf-8"


async def _send_page(page: Page, method: str, send: Any) -> None:
    headers = [(b"content-type", page.kind), (b"content-length", b"%d" % len(page.body))]
    headers += [(b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"), *page.more]
    await send({"type": "http.response.start", "status": page.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if method == "HEAD" else page.body})


class Gateway:
    """Passes requests on to upstreams, and fits those that hold a conversation.

    An ASGI application; `make_app` makes it.
    """

    def __init__(
        self, rooms: Rooms, *, has_token: bool, log: Callable[[Mapping[str, Any]], object] | None
    ) -> None:
        self._rooms, self._log = rooms, log
        self._calls = 0
        self._metrics, self._recent = Metrics(), Recent()
        self.limits = rooms.limits
        """How much it takes, and how long it waits."""
        self.has_token = has_token
        """Whether it asks for a token."""
        self.is_draining = False
        """Whether it is to end: it answers what is in progress, and is not ready for more."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] != "http":
            raise ConfigurationError(f"a gateway speaks HTTP, not {scope['type']}")
        elif scope["method"] in ("GET", "HEAD") and (page := self._page(scope)) is not None:
            await _send_page(page, scope["method"], send)
        else:
            await self._exchange(scope, receive, send)

    async def _live(self, receive: Any, send: Any) -> None:
        """Live with the server: connections are made when one is needed, and closed at the end."""
        while True:
            message = await receive()
            if message["type"] == "lifespan.shutdown":
                await self._rooms.upstreams.aclose()
                self._rooms.fits.close()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return

    def _page(self, scope: Any) -> Page | None:
        """Find a page of the gateway's own; None: the path is an upstream's."""
        guard = self._rooms.guard
        path, token = guard.target(scope["raw_path"])
        if path == b"/health" or path == b"/ready":  # whoever asks needs no token for that
            return self._state(is_ready=path == b"/health" or not (self.is_draining or self._is_full))
        if path not in (b"/metrics", b"/trimtab") and not path.startswith(b"/trimtab/"):
            return None
        refusal = guard.refuse(scope["headers"], path, token)
        if refusal is not None:
            return Page(refusal.status, TEXT, f"trimtab: {refusal.message}\n".encode())
        if path == b"/metrics":
            return Page(200, CONTENT_TYPE, self._metrics.text(self._calls))
        if path == b"/trimtab":  # a link of the page is one of this folder, behind whatever stands before it
            return Page(307, TEXT, b"", ((b"location", b"trimtab/"),))
        return self._recent_page(path.removeprefix(b"/trimtab/").decode("latin-1"))

    def _recent_page(self, name: str) -> Page:
        one = self._recent.find(name) if name else None
        if name and one is None:
            return Page(404, TEXT, b"trimtab: this conversation is not remembered\n")
        text = overview(self._recent) if one is None else page_of(one)
        headers = ((b"content-security-policy", policy_of(text)), (b"referrer-policy", b"no-referrer"))
        return Page(200, b"text/html; charset=utf-8", text.encode(), headers)

    def _state(self, *, is_ready: bool) -> Page:
        """Say whether it lives, or whether it takes more requests."""
        told = json.dumps({"status": "ok" if is_ready else "busy", "calls": self._calls}).encode()
        return Page(200 if is_ready else 503, b"application/json", told)

    @property
    def _is_full(self) -> bool:
        return self._calls >= self.limits.max_calls

    async def _exchange(self, scope: Any, receive: Any, send: Any) -> None:
        one = Exchange(scope, receive, send, self._rooms, is_full=self._is_full)
        self._calls += 1
        try:
            await one.run()
        finally:
            self._calls -= 1
            self._metrics.add(one.record)
            self._recent.add(one.record)
            if self._log is not None:
                self._log(one.record.to_dict())


def make_app(
    upstreams: Sequence[Upstream] | None = None,
    /,
    *,
    budgets: Mapping[str, AdapterBudget] | None = None,
    keys: Mapping[str, str] | None = None,
    learn: bool = True,
    share: str | None = None,
    token: str | None = None,
    hosts: Collection[str] = LOOPBACK,
    limits: Limits | None = None,
    log: Callable[[Mapping[str, Any]], object] | None = None,
    **options: Unpack[FitOptions],
) -> Gateway:
    """Make a gateway as an ASGI application.

    Args:
        upstreams: The servers that it may ask; None: the providers' own.
        budgets: The budget by what it is for: the name of a model or a pattern such as "claude-*",
            "route:/v1/messages" for the beginning of a path, "key:ci" for a key that `keys` names, or several
            of these with commas between; "*" is for all others. Each is tokens, a share such as "80%", the
            path of a policy, a `Context`, or None for the model's window less the room for the answer, which
            is also the default.
        keys: Names for clients' keys, and what each is told by: "sha256:" and its hash in hex, "env:" and the
            variable that has it, or "file:" and a path.
        learn: Whether what requests are billed improves the count of those that follow. False: every process
            sends the same for the same request.
        share: Where several processes keep together what they learn: "redis://…", or "sqlite:///FILE" on one
            machine. None: each learns by itself.
        token: What clients send in the header `trimtab-token`, or before the path as `/t/TOKEN`; None: it is
            for programs of this machine alone.
        hosts: Names by which it may be asked, if there is no token.
        limits: How much it takes, and how long it waits.
        log: Called with each request's line of the log, which has no text and no key.
        options: `rules`, `compact` and other keyword arguments of `trimtab.fit`.

    Raises:
        ConfigurationError: A budget, a key, a place or an option is invalid, or the token is too short.
        MissingExtraError: The client of `share` is not installed.
    """
    limits, named = Limits() if limits is None else limits, Keys(keys or {})
    servers = public_upstreams() if upstreams is None else upstreams
    if share is not None and not learn:
        raise ConfigurationError("share is given, and learn is False: there is nothing to share")
    fits = Fits(
        budgets or {},
        learns=learn,
        max_bytes=limits.max_body_bytes,
        options=options,
        memory=None if share is None else Memory(open_records(share)),
        secret=None if share is None else secret_of(token),
    )
    for key in (*fits.selectors.keys, *(one.key for one in servers)):
        named.check(key)
    rooms = Rooms(Guard(token, hosts), fits, Upstreams(servers, limits), limits, named)
    return Gateway(rooms, has_token=token is not None, log=log)
