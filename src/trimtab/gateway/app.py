"""A gateway as an ASGI application: its own pages, how much is in progress, and the log."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack
from urllib.parse import unquote

from trimtab.errors import ConfigurationError
from trimtab.gateway.body_bytes import BodyBytes
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

if TYPE_CHECKING:
    from trimtab.gateway.spans import Spans
    from trimtab.gateway.texts import Texts

__all__ = ["make_app"]


class Page(NamedTuple):
    """An answer of the gateway's own."""

    status: int
    kind: bytes
    """The header Content-Type."""
    body: bytes
    more: tuple[tuple[bytes, bytes], ...] = ()
    """Headers of its own."""


INSPECT_PATH = "/trimtab/inspect"
"""Where the inspector is, if texts are kept; it has a secret of its own, and asks for no token."""

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
        self,
        rooms: Rooms,
        *,
        has_token: bool,
        log: Callable[[Mapping[str, Any]], object] | None,
        texts: Texts | None = None,
        spans: Spans | None = None,
    ) -> None:
        self._rooms, self._log, self._texts, self._spans = rooms, log, texts, spans
        self._calls = 0
        self._metrics, self._recent = Metrics(), Recent()
        self.limits = rooms.limits
        """How much it takes, and how long it waits."""
        self.has_token = has_token
        """Whether it asks for a token."""
        self.is_draining = False
        """Whether it is to end: it answers what is in progress, and is not ready for more."""
        self.inspect_path = "" if texts is None else texts.address
        """Where a browser opens the texts of the last requests, secret and all; "": none are kept."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] != "http":
            raise ConfigurationError(f"a gateway speaks HTTP, not {scope['type']}")
        elif self._texts is not None and (inner := self._for_inspector(scope)) is not None:
            await self._texts.app(inner, receive, send)
        elif scope["method"] in ("GET", "HEAD") and (page := self._page(scope)) is not None:
            await _send_page(page, scope["method"], send)
        else:
            await self._exchange(scope, receive, send)

    def share_trouble(self) -> str:
        """Ask where several processes keep what they learn, and say why it cannot be had; "": it can.

        A gateway without it goes on, and learns nothing: whoever starts one looks here first.
        """
        return self._rooms.fits.memory_trouble()

    def _for_inspector(self, scope: Any) -> Any:
        """Make of a request one to the inspector, below its own path; None: it is for somebody else."""
        path = unquote(self._rooms.guard.target(scope["raw_path"])[0].decode("latin-1"))
        if path != INSPECT_PATH and not path.startswith(f"{INSPECT_PATH}/"):
            return None
        inner = path if path != INSPECT_PATH else f"{path}/"
        return {**scope, "path": inner, "raw_path": inner.encode(), "root_path": INSPECT_PATH}

    async def _live(self, receive: Any, send: Any) -> None:
        """Live with the server: connections are made when one is needed, and closed at the end."""
        while True:
            message = await receive()
            if message["type"] == "lifespan.shutdown":
                await self._rooms.upstreams.aclose()
                self._rooms.fits.close()
                if self._spans is not None:
                    self._spans.end()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return

    def _page(self, scope: Any) -> Page | None:
        """Find a page of the gateway's own; None: the path is an upstream's."""
        guard = self._rooms.guard
        path, token = guard.target(scope["raw_path"])
        if path == b"/health" or path == b"/ready":  # whoever asks needs no token for that
            return self._state(is_ready=path == b"/health" or self._is_ready)
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
        kept: Container[str] = () if self._texts is None else self._texts
        text = overview(self._recent, kept=kept) if one is None else page_of(one, kept=kept)
        headers = ((b"content-security-policy", policy_of(text)), (b"referrer-policy", b"no-referrer"))
        return Page(200, b"text/html; charset=utf-8", text.encode(), headers)

    def _state(self, *, is_ready: bool) -> Page:
        """Say whether it lives, or whether it takes more requests."""
        told = json.dumps({"status": "ok" if is_ready else "busy", "calls": self._calls}).encode()
        return Page(200 if is_ready else 503, b"application/json", told)

    @property
    def _is_full(self) -> bool:
        return self._calls >= self.limits.max_calls

    @property
    def _is_ready(self) -> bool:
        return not (self.is_draining or self._is_full or self._rooms.held.is_full)

    async def _exchange(self, scope: Any, receive: Any, send: Any) -> None:
        one = Exchange(scope, receive, send, self._rooms, is_full=self._is_full)
        self._calls += 1
        try:
            with nullcontext() if self._spans is None else self._spans.request(scope["headers"], one.record):
                await one.run()
        finally:
            self._calls -= 1
            self._metrics.add(one.record)
            self._recent.add(one.record)
            if self._texts is not None:
                self._texts.add(one.record)
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
    keep_bodies: bool = False,
    otel: bool = False,
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
        keep_bodies: Whether the last requests are kept in memory, texts and all, as far as `limits` says. An
            inspector shows them to who knows its address, `inspect_path` of the application. Needs the extra
            `inspect`.
        otel: Whether each request is a span of the OpenTelemetry of the process, with metrics; its providers
            are set before. Needs the extra `otel`.
        options: `rules`, `compact` and other keyword arguments of `trimtab.fit`.

    Raises:
        ConfigurationError: A budget, a key, a place or an option is invalid, the token is too short, or
            OpenTelemetry is not set up.
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
        memory=None if share is None else Memory(open_records(share, wait_seconds=limits.share_seconds)),
        secret=None if share is None else secret_of(token),
    )
    for key in (*fits.selectors.keys, *(one.key for one in servers)):
        named.check(key)
    rooms = Rooms(
        Guard(token, hosts),
        fits,
        Upstreams(servers, limits),
        limits,
        BodyBytes(limits.max_bodies_bytes),
        named,
    )
    texts = None
    if keep_bodies:
        from trimtab.gateway.texts import Texts  # not above: it needs an extra of its own

        # With a token, other machines ask by names that nobody told: addresses are no names of others' sites.
        texts = Texts(INSPECT_PATH, limits, hosts if token is None else [*hosts, "0.0.0.0"], options)
    spans = None
    if otel:
        from trimtab.gateway.spans import Spans  # not above: it needs an extra of its own

        spans = Spans()
    return Gateway(rooms, has_token=token is not None, log=log, texts=texts, spans=spans)
