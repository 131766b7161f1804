"""Who asks: told apart without keeping what they prove it with.

What an upstream says of one account's bills and limits is not true of another's, and not another's to know.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from hashlib import blake2b
from urllib.parse import parse_qsl

from trimtab.formats.api_paths import ApiCall
from trimtab.gateway.headers import Headers

_PROVES = re.compile("auth|key|token|secret|cookie|credential|organi[sz]ation|project|account|tenant|sign")
"""In the names of headers and of a query's parts that say whose a request is: keys of one account may differ
by its organizations and projects."""

_CHANGES = re.compile("idempotency")
"""In the names of headers that are others with each request."""

_WIDER = re.compile(rb"context-\d[^,;\s]*")
"""What headers named -beta ask for that makes a model's window another."""


class Askers:
    """Names who asks, by a hash.

    Args:
        secret: What it is made with; None: something of this process's own, so that nobody can try keys
            against a name.
    """

    def __init__(self, secret: bytes | None = None) -> None:
        self._secret = secrets.token_bytes(32) if secret is None else secret

    def name(self, call: ApiCall, model: str | None, headers: Headers, target: bytes, /) -> str:
        """Name who asks whom: another credential, API or model, and so another upstream, is another name.

        Args:
            call: What is asked for.
            model: Who is asked.
            headers: With names in small letters.
            target: Path and query.
        """
        proved = sorted(proofs_in(headers, target))
        told = repr((call.api, model, proved)).encode("utf-8", "surrogatepass")
        return blake2b(told, key=self._secret, digest_size=16).hexdigest()


def proofs_in(headers: Headers, target: bytes, /) -> Iterator[tuple[str, bytes]]:
    """List what a request says of whose it is, and what makes another window of its model.

    Args:
        headers: With names in small letters.
        target: Path and query.
    """
    for raw, value in headers:
        name = raw.decode("latin-1")
        if _PROVES.search(name) is not None and _CHANGES.search(name) is None:
            yield name, value
        elif name.endswith("-beta"):
            yield from ((name, wider) for wider in _WIDER.findall(value))
    query = target.partition(b"?")[2].decode("latin-1")
    for part, text in parse_qsl(query, keep_blank_values=True) if query else ():
        if _PROVES.search(part.lower()) is not None:
            yield f"?{part.lower()}", text.encode("utf-8", "surrogatepass")
