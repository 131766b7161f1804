"""Who may ask: whoever has the token, from this machine's own pages, and what every answer says to browsers.

Other users of the machine reach a port of the loopback, and so do pages of the web that a browser shows: the
first lack the token, the second are told apart by the Host they name and the Origin they come from.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64encode
from collections.abc import Collection
from ipaddress import ip_address
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trimtab._shared.hosts import host_name
from trimtab.report import Report
from trimtab.report.html import overview_fragment

__all__ = ["Guard", "policy_for_style", "style_of"]

TOKEN_FIELD = "token"
HEADER = "authorization"

_HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Of every answer: nothing is stored, nothing is told to others, nothing is read as what it is not."""


def policy_for_style(style: str = "") -> str:
    """Write a content security policy that takes files of ours, and one style that stands in the page.

    No script but the files, nothing of other hosts, no frames, no forms that go elsewhere.
    """
    digest = b64encode(hashlib.sha256(style.encode()).digest()).decode()
    inline = f" 'sha256-{digest}'" if style else ""
    return (
        f"default-src 'none'; script-src 'self'; style-src 'self'{inline}; connect-src 'self';"
        " img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )


def style_of(page: str) -> str:
    """Return what the first style of a page of ours holds: text of others is escaped."""
    return page.partition("<style>")[2].partition("</style>")[0]


def _report_style() -> str:
    """Return the style that comes with every report: the same for all of them."""
    empty = Report(
        format="",
        counter="",
        exact=False,
        window_tokens=1,
        input_tokens=1,
        tokens_after=0,
        fits=True,
        kept_message_count=0,
    )
    return style_of(overview_fragment(empty))


class Guard:
    """Lets through who has the token, and no request that another site had a browser make."""

    def __init__(self, app: ASGIApp, *, token: str, hosts: Collection[str]) -> None:
        """Guard an application.

        Args:
            app: What answers.
            token: What a visitor has: in the address of the first visit, in a cookie from then on, or as
                `Authorization: Bearer …`.
            hosts: Names by which the server may be asked, without a port, in capitals or not; others are
                those of a site that points its name at this machine. With "0.0.0.0" or "::" among them it may
                be asked by every address, which is no name that could be pointed elsewhere.
        """
        self._app = app
        self._token = token.encode()
        self._hosts = frozenset(map(str.lower, hosts))
        self._policy = policy_for_style(_report_style())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or refuse."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.setdefault("Content-Security-Policy", self._policy)
                for name, value in _HEADERS.items():
                    headers[name] = value
            await send(message)

        await self._answer(scope)(scope, receive, send_safely)

    def _answer(self, scope: Scope) -> ASGIApp:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if not self._is_own(host_name(host)):
            return PlainTextResponse(
                "This server is asked by its own address only, and not by the name in this request's Host.\n",
                status_code=421,
            )
        origin = headers.get("origin")
        if origin is not None and origin != "null" and _place(origin) != host.lower():
            return PlainTextResponse("Another site made this request.\n", status_code=403)
        if scope["method"] not in ("GET", "HEAD") and headers.get("sec-fetch-site", "same-origin") not in (
            "same-origin",
            "none",
        ):
            return PlainTextResponse("Another site made this request.\n", status_code=403)
        query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if TOKEN_FIELD in query and self.is_token(query[TOKEN_FIELD][0]):
            return self._remember(scope, query, host)
        bearer = headers.get(HEADER, "").removeprefix("Bearer ")
        if self.is_token(bearer) or self.is_token(_cookie(headers, _cookie_name(host))):
            return self._app
        return PlainTextResponse(
            "Open the whole address that trimtab wrote, with its token.\n", status_code=401
        )

    def _is_own(self, name: str) -> bool:
        """Say whether it is a name of this server, or an address where it listens on all of them."""
        if name in self._hosts:
            return True
        if not self._hosts & {"0.0.0.0", "::"}:
            return False
        try:
            ip_address(name)
        except ValueError:
            return False
        return True

    def is_token(self, given: str) -> bool:
        """Say whether it is the token, in a time that tells nothing of how much of it is right."""
        return hmac.compare_digest(given.encode("utf-8", "replace"), self._token)

    def _remember(self, scope: Scope, query: dict[str, list[str]], host: str) -> ASGIApp:
        """Put the token into a cookie, and take it out of the address, which is shown and kept."""
        rest = {name: values for name, values in query.items() if name != TOKEN_FIELD}
        where = quote(scope["path"]) + ("?" + urlencode(rest, doseq=True) if rest else "")
        answer = RedirectResponse("/" + where.lstrip("/\\"), status_code=303)
        path = scope.get("root_path") or "/"  # what else the server has is told nothing
        answer.set_cookie(
            _cookie_name(host), self._token.decode(), httponly=True, samesite="strict", path=path
        )
        return answer


def _place(origin: str) -> str:
    """Return the host and port of an Origin; nothing of one that is none."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _cookie_name(host: str) -> str:
    """Name the cookie by the port: a browser sends a cookie to all ports of a host."""
    port = host.rpartition(":")[2]
    return f"trimtab-{port if port.isdigit() else 80}"


def _cookie(headers: Headers, name: str) -> str:
    for part in headers.get("cookie", "").split(";"):
        key, _, value = part.strip().partition("=")
        if key == name:
            return value.strip('"')
    return ""
