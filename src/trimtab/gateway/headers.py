"""Headers of a request as an upstream gets them, and of an answer as a client does.

What is said from one machine to the next (RFC 9110, 7.6.1) ends here: each side has a connection of its own.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import TypeAlias

Headers: TypeAlias = Sequence[tuple[bytes, bytes]]

OWN = b"trimtab-"
"""What the names of this gateway's own headers begin with."""

_HOP_BY_HOP = frozenset(
    (
        *(b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization"),
        *(b"proxy-connection", b"te", b"trailer", b"transfer-encoding", b"upgrade"),
    )
)
_OF_REQUESTS = _HOP_BY_HOP | {b"host", b"content-length", b"expect"}
READABLE = ("gzip", "x-gzip", "deflate", "identity")
"""Encodings in which the usage of an answer can be read."""


def value_of(headers: Headers, name: bytes, /) -> str:
    """Return the value of a header; "" if it is not there.

    Args:
        headers: With names in small letters.
        name: The name.
    """
    return next((value.decode("latin-1") for key, value in headers if key == name), "")


def names_for_connection(headers: Headers, /) -> Collection[bytes]:
    """List headers that the header Connection names, which are for this connection alone."""
    said = [value for key, value in headers if key.lower() == b"connection"]
    return {name.strip().lower() for value in said for name in value.split(b",")}


def for_upstream(
    headers: Headers, /, *, host: str, readable: bool, decoded: bool
) -> list[tuple[bytes, bytes]]:
    """Write the headers of a request for an upstream, without its length.

    Args:
        headers: As the client sent them, with names in small letters.
        host: That of the upstream.
        readable: Whether the answer has to be in an encoding that can be read here.
        decoded: Whether the body is no longer in the encoding that it came in.
    """
    gone = {*_OF_REQUESTS, *names_for_connection(headers)}
    if decoded:
        gone.add(b"content-encoding")
    made = [(b"host", host.encode("latin-1"))]
    for name, value in headers:
        if name in gone or name.startswith(OWN):
            continue
        if readable and name == b"accept-encoding":
            value = _readable(value)
        made.append((name, value))
    return made


_CODING = re.compile(rb"[^,;\s]+")


def _readable(accepted: bytes) -> bytes:
    """Take out of a list of encodings those that cannot be read here."""
    words = [one.strip() for one in accepted.split(b",")]
    names = [(_CODING.match(one), one) for one in words]
    kept = [one for name, one in names if name is not None and name[0].decode("latin-1").lower() in READABLE]
    return b", ".join(kept) or b"identity"


def for_client(headers: Headers, own: Headers, /) -> list[tuple[bytes, bytes]]:
    """Write the headers of an answer for a client.

    Args:
        headers: As the upstream sent them.
        own: What the gateway adds.
    """
    gone = {*_HOP_BY_HOP, *names_for_connection(headers)}
    if any(name.lower() == b"transfer-encoding" for name, _ in headers):
        gone.add(b"content-length")  # it is not that of the body that was read (RFC 9112, 6.3)
    found = [(name, value) for name, value in headers if name.lower() not in gone]
    return [*((name, value) for name, value in found if not name.lower().startswith(OWN)), *own]
