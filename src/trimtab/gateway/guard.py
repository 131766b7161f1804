"""Who may ask: on this machine its own programs, elsewhere whoever has the token; and what is no request.

A page of the web that a browser shows reaches the loopback, too: it is told by the Host that it names, or by
the Origin that it comes from. What has two lengths or two keys could be read in two ways by two machines.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Collection
from typing import NamedTuple
from urllib.parse import unquote

from trimtab._shared.hosts import host_name, is_loopback_address
from trimtab.errors import ConfigurationError
from trimtab.gateway.headers import Headers, value_of

TOKEN_HEADER = b"trimtab-token"

LOOPBACK = ("127.0.0.1", "localhost", "::1")

_ONCE = frozenset(
    (
        b"authorization",
        b"x-api-key",
        b"api-key",
        b"x-goog-api-key",
        b"host",
        b"content-length",
        b"content-type",
    )
)
"""Headers that a request may have once."""

_LEAVES = re.compile(rb"(?:/|%2f|\\|%5c)(?:\.|%2e){1,2}(?:(?:;|%3b)[^/]*)?(?:/|%2f|\\|%5c|$)|#", re.I)
"""Leads out of the path of an upstream, however it is written, or to a fragment, which no request has."""


_TOKEN = re.compile(rb"/t/+([^/]*)")
"""Before a path, for programs of which only the base URL can be set."""
_ALMOST = re.compile(rb"(?i)(?:/|%2f)+(?:t|%74|%54)(?:/|%2f)")
"""The beginning of a path that was meant to have a token: its upstream must not get it."""

_HIDDEN = "…"
_MEANT = re.compile(r"(?i)(/t/+)[^/]+")
"""A token that is not quite where it belongs: behind two slashes, in capitals, or where none is asked for."""


class Refusal(NamedTuple):
    """Why a request is not for anybody here."""

    status: int
    message: str
    reason: str
    """A word for the log."""


class Guard:
    """Lets requests through that have the token, and those of this machine where there is none.

    Args:
        token: What clients send in the header trimtab-token, or in the path; None: whoever reaches this
            machine's own address may ask.
        hosts: Names by which the gateway may be asked, where there is no token.

    Raises:
        ConfigurationError: The token is short, or could not stand in an address.
    """

    def __init__(self, token: str | None, hosts: Collection[str] = LOOPBACK) -> None:
        letters = token is not None and token.replace("-", "").replace("_", "")
        if token is not None and (len(token) < 16 or not token.isascii() or not str(letters).isalnum()):
            raise ConfigurationError(
                "token must be at least 16 letters, digits, - and _, for example from"
                " secrets.token_urlsafe()",
                argument="token",
            )
        self._token = None if token is None else token.encode()
        self._hosts = frozenset(map(str.lower, hosts))

    def target(self, raw_path: bytes) -> tuple[bytes, bytes]:
        """Take the token out of a path; gives the path without it, and the token or b"".

        One that nobody asks for is taken out, too: it is a secret, and no upstream's.

        Args:
            raw_path: As the client wrote it.
        """
        found = _TOKEN.match(raw_path)
        return (raw_path, b"") if found is None else (raw_path[found.end() :] or b"/", found[1])

    def log_path(self, path: bytes) -> str:
        """Write a path for the log: decoded, and without what is a token or was meant to be one.

        Args:
            path: As the client wrote it, or without the token that stood where it belongs.
        """
        shown = _MEANT.sub(rf"\1{_HIDDEN}", unquote(path.decode("latin-1")))
        return shown if self._token is None else shown.replace(self._token.decode(), _HIDDEN)

    def refuse(self, headers: Headers, path: bytes, token: bytes) -> Refusal | None:
        """Say why a request is not let through; None: it is.

        Args:
            headers: With names in small letters.
            path: Without the token.
            token: That of its path.
        """
        if not path.startswith(b"/") or _LEAVES.search(path) is not None:
            return Refusal(400, "the path must begin with / and have neither dot segments nor #", "odd_path")
        if _ALMOST.match(path) is not None:
            return Refusal(400, "a token in the path is written as /t/TOKEN before it, once", "odd_path")
        names = [name for name, _ in headers]
        is_once = len({*names}) == len(names)
        twice = None if is_once else next((name for name in _ONCE if names.count(name) > 1), None)
        if twice is not None:
            return Refusal(400, f"the header {twice.decode()} is there more than once", "two_headers")
        if b"transfer-encoding" in names and b"content-length" in names:
            return Refusal(400, "content-length and transfer-encoding contradict each other", "two_lengths")
        return self._without_token(headers) if self._token is None else self._with_token(headers, token)

    def _with_token(self, headers: Headers, token: bytes) -> Refusal | None:
        sent = token or value_of(headers, TOKEN_HEADER).encode("latin-1")
        if self._token is not None and hmac.compare_digest(sent, self._token):
            return None
        why = "this gateway asks for its token: in the header trimtab-token, or as /t/TOKEN before the path"
        return Refusal(401, why, "no_token")

    def _without_token(self, headers: Headers) -> Refusal | None:
        if not self._is_ours(host_name(value_of(headers, b"host"))):
            return Refusal(421, "this gateway is asked by its own address only", "unknown_host")
        origin = value_of(headers, b"origin")
        if origin and not self._is_own(origin):
            return Refusal(403, "a page of another site made this request", "other_site")
        return None

    def _is_ours(self, name: str) -> bool:
        """Tell whether a name is this machine's; a name of a page may lead here, an address of it cannot."""
        return name in self._hosts or is_loopback_address(name)

    def _is_own(self, origin: str) -> bool:
        """Tell whether an Origin is a page of this machine, or a program's own window, as editors have."""
        scheme, found, place = origin.partition("://")
        if not found:
            return False  # "null": a page whose site is hidden
        return scheme not in ("http", "https") or self._is_ours(host_name(place))
