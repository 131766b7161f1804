"""An inspector on a port."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import uvicorn

from trimtab._shared.hosts import is_loopback
from trimtab.errors import (
    ConfigurationError,
    option,
    phrase,
)
from trimtab.inspector.app import make_app
from trimtab.inspector.subject import Collection, Subject

__all__ = ["serve"]

LOOPBACK = "127.0.0.1"


def serve(
    subject: Subject | None = None,
    /,
    *,
    port: int = 0,
    host: str = LOOPBACK,
    allow_remote: bool = False,
    token: str | None = None,
    ready: Callable[[str], object] | None = None,
    collection: Collection | None = None,
) -> None:
    """Serve an inspector until Ctrl+C, or until the process is ended.

    Args:
        subject: What to inspect.
        port: The port; 0 takes a free one.
        host: The address to listen on; other machines can reach it only if it is not a loopback address.
            Requests may use that name, those of the loopback, and, if it listens on all addresses (`0.0.0.0`
            or `::`), each address and the name of the machine.
        allow_remote: Whether other machines may reach it. They send the token, and receive the
            pages, without encryption.
        token: The secret of a visitor; None: a new one.
        ready: Called with the address, including the token, once it can be opened.
        collection: Conversations to choose from, in place of `subject`.

    Raises:
        ConfigurationError: The port is taken or unavailable, or the host is not a loopback address and that
            is not allowed.
    """
    if not is_loopback(host) and not allow_remote:
        raise ConfigurationError(
            phrase(
                f"host {host!r} can be reached from other machines, and the traffic is not encrypted: use"
                f" {LOOPBACK}, or pass ",
                option("allow_remote", True),
            ),
            argument="host",
        )
    host = host.lower()
    made = secrets.token_urlsafe(24) if token is None else token
    shown = f"[{host}]" if ":" in host else host
    names = ["127.0.0.1", "localhost", "::1", host]
    if host in ("0.0.0.0", "::"):
        shown = socket.gethostname()
        names.append(shown)
    app = make_app(subject, token=made, hosts=names, collection=collection)
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        place = socket.create_server((host, port), family=family)
    except OSError as error:
        raise ConfigurationError(
            f"port {port} of {host} cannot be used: {error.strerror}", argument="port"
        ) from error
    with place:
        if ready is not None:
            ready(f"http://{shown}:{place.getsockname()[1]}/?token={made}")
        config: Any = uvicorn.Config(app, log_level="warning", server_header=False, access_log=False)
        with suppress(KeyboardInterrupt):  # uvicorn raises it again when it has ended by it
            uvicorn.Server(config).run(sockets=[place])
