"""The servers that may be asked, and the connections to them: no request names one of its own."""

from __future__ import annotations

from collections.abc import AsyncIterable, Collection, Sequence
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import httpcore2 as httpcore

from trimtab.errors import ConfigurationError
from trimtab.formats.api_paths import path_of, plain_path, stand_in_of
from trimtab.gateway.settings import Limits, Upstream, address_of, is_public

KEPT_SECONDS = 4.0
"""How long an unused connection is kept: servers close theirs after five and more."""


_PORTS = {"http": 80, "https": 443}

FAILURES = (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError, httpcore.ProxyError)
"""What is raised where an upstream is not there, is silent, or speaks no HTTP."""

_REASONS: tuple[tuple[type[Exception], tuple[int, str, str]], ...] = (
    (httpcore.PoolTimeout, (503, "the upstream has as many requests as it gets: ask again", "busy")),
    (httpcore.ConnectTimeout, (504, "the upstream did not take a connection in time", "upstream_silent")),
    (httpcore.TimeoutException, (504, "the upstream did not answer in time", "upstream_silent")),
    (httpcore.ConnectError, (502, "the upstream cannot be reached", "upstream_unreachable")),
    (
        httpcore.ProxyError,
        (502, "the proxy before the upstream refused the connection", "upstream_unreachable"),
    ),
)


def failure_of(error: Exception, /) -> tuple[int, str, str]:
    """Return the status, the words and the reason for the log of a failed request.

    The text of the error is not among them: it may have addresses of the inside of a network.

    Args:
        error: What was raised.
    """
    found = (told for kind, told in _REASONS if isinstance(error, kind))
    return next(found, (502, "the upstream broke off, or answered what is not HTTP", "upstream_failed"))


class Upstreams:
    """Chooses the server for a request, and asks it.

    Args:
        upstreams: The servers; of several for one API the first whose pattern has the model is asked.
        limits: How long is waited.

    Raises:
        ConfigurationError: There is none, or the proxy before one cannot be asked.
    """

    def __init__(self, upstreams: Sequence[Upstream], limits: Limits) -> None:
        if not upstreams:
            raise ConfigurationError(
                "upstreams is empty: a gateway needs a server to ask", argument="upstreams"
            )
        # A key goes to its own server, and a pattern for all models is asked last, wherever it was written.
        self._upstreams = sorted(upstreams, key=lambda one: (not one.key, one.models == "*"))
        self._limits = limits
        self._addresses = {one: address_of(one) for one in upstreams}
        self._proxies = {one: _proxy_of(one) for one in upstreams}
        self._pools: dict[Upstream, httpcore.AsyncConnectionPool] = {}
        self._timeout = {
            "connect": limits.connect_seconds,
            "read": limits.answer_seconds,
            "write": limits.answer_seconds,
            "pool": limits.connect_seconds,
        }

    def find(self, api: str, model: str | None, key: str = "") -> Upstream | None:
        """Choose the server for a request; None: there is none.

        One that is the only one is asked about everything: it may speak more than one API. A provider's own
        address gets no keys of Azure's, whose paths it does not have.

        Args:
            api: Whose path and keys the request has.
            model: The model that it names.
            key: The name of its key; "": it has none that is named.
        """
        stand_in = stand_in_of(api)
        for spoken in (api, stand_in):
            for one in self._upstreams:
                is_other = spoken == stand_in and is_public(one)
                is_for = one.key in ("", key) and fnmatchcase(model or "", one.models)
                if one.api == spoken and is_for and not is_other:
                    return one
        (only, *others) = self._upstreams
        is_asked = not others and only.models == "*" and not only.key
        return only if is_asked and not (only.api == stand_in and is_public(only)) else None

    def target(self, upstream: Upstream, target: bytes) -> bytes:
        """Return path and query as a server gets them: the form and the budget of a request go by these.

        Args:
            upstream: Whom to ask.
            target: Path and query, as the client wrote them.
        """
        return join(self._addresses[upstream].base.encode(), target)

    def paths(self, upstream: Upstream | None, target: bytes) -> Collection[str]:
        """List how routes may name the path that a server gets: whole, and as clients write it.

        A client may leave out the segment that its base URL shares with that of the server, or not: all of
        these are of the joined path, so that both are the same.

        Args:
            upstream: Whom to ask; None: nobody.
            target: Path and query, as the client wrote them.
        """
        if upstream is None:
            return (plain_path(path_of(target)),)
        base = self._addresses[upstream].base
        own, behind = path_of(base.encode()), path_of(self.target(upstream, target)[len(base) :])
        last = own.rpartition("/")[2]
        return {plain_path(path) for path in (own + behind, f"/{last}{behind}", behind)}

    async def ask(
        self,
        upstream: Upstream,
        method: str,
        target: bytes,
        headers: list[tuple[bytes, bytes]],
        content: bytes | AsyncIterable[bytes] | None,
    ) -> httpcore.Response:
        """Send a request; returns once the head of the answer is there.

        Args:
            upstream: Whom to ask.
            method: As the client has it.
            target: Path and query, as the client wrote them.
            headers: All of them.
            content: The body, whole or in parts.
        """
        address = self._addresses[upstream]
        url = httpcore.URL(
            scheme="https" if address.is_secure else "http",
            host=address.host,
            port=address.port,
            target=self.target(upstream, target),
        )
        given: Any = {"headers": headers, "content": content, "extensions": {"timeout": self._timeout}}
        request = httpcore.Request(method, url, **given)
        return await self._pool(upstream).handle_async_request(request)

    def _pool(self, upstream: Upstream) -> httpcore.AsyncConnectionPool:
        if upstream not in self._pools:
            self._pools[upstream] = httpcore.AsyncConnectionPool(
                proxy=self._proxies[upstream],
                max_connections=self._limits.max_calls,
                keepalive_expiry=KEPT_SECONDS,
            )
        return self._pools[upstream]

    def host(self, upstream: Upstream) -> str:
        """Return what the header Host says to a server."""
        return self._addresses[upstream].shown

    async def aclose(self) -> None:
        """Close all connections."""
        for pool in self._pools.values():
            await pool.aclose()
        self._pools.clear()


def _proxy_of(upstream: Upstream) -> httpcore.Proxy | None:
    """Return the proxy that the environment names for a server; None: there is none.

    Raises:
        ConfigurationError: It is of a kind that cannot be asked, or is no address.
    """
    address = address_of(upstream)
    scheme = "https" if address.is_secure else "http"
    named = getproxies().get(scheme)
    if not named or proxy_bypass(address.host):
        return None
    # As curl and urllib read it: without a scheme it is one of HTTP.
    url = named if "://" in named else f"http://{named}"
    try:
        parts = urlsplit(url)
        usual = _PORTS[parts.scheme]
        place = httpcore.URL(
            scheme=parts.scheme,
            host=parts.hostname or "",
            port=parts.port or usual,
            target="/",
        )
        if not place.host:
            raise ValueError("no host")
    except (KeyError, ValueError, TypeError) as error:
        shown = named.rpartition("@")[2]  # whoever writes a password there does not want to read it again
        raise ConfigurationError(
            f"{scheme.upper()}_PROXY cannot be {shown!r:.200}, which stands before {address.shown}: write"
            f" http://HOST:PORT, or leave that host out by NO_PROXY={address.host}",
            argument="upstreams",
        ) from error
    auth = None
    if parts.username is not None:
        auth = unquote(parts.username).encode(), unquote(parts.password or "").encode()
    return httpcore.Proxy(place, auth=auth)


def join(base: bytes, target: bytes, /) -> bytes:
    """Put the path of an upstream before that of a request; what both have is there once.

    Clients write the version into their base URL, and so does who names an upstream.

    Args:
        base: Without a slash at its end.
        target: Path and query of the request.

    Example:
        >>> join(b"/openai/v1", b"/v1/models?limit=2")
        b'/openai/v1/models?limit=2'
    """
    last = base.rpartition(b"/")[2]
    if last and (target + b"/").startswith(b"/" + last + b"/"):
        target = target[1 + len(last) :]
    return base + target or b"/"
