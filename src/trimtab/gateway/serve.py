"""A gateway on a port: connections and their limits, and the end that waits for answers in progress."""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from trimtab._shared.hosts import is_loopback
from trimtab.errors import ConfigurationError, option, phrase
from trimtab.gateway.app import Gateway
from trimtab.gateway.settings import Limits

__all__ = ["serve"]

_BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
)


def serve(
    gateway: Gateway,
    /,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    ready: Callable[[str], object] | None = None,
) -> None:
    """Serve a gateway until the process is told to end.

    SIGTERM and Ctrl+C end it: no new connection is taken, and answers in progress have `drain_seconds` to
    come to their end.

    Args:
        gateway: What `make_app` made.
        host: The address to listen on; one that other machines reach needs a gateway with a token.
        port: The port; 0 takes a free one.
        ready: Called with the address once it can be asked.

    Raises:
        ConfigurationError: The port is taken, or other machines would reach a gateway without a token.
    """
    with _listen(gateway, host, port) as place:
        server = _Server(gateway, _address(place), ready)
        with _signals(server):
            server.run(sockets=[place])


@contextmanager
def serve_in_thread(gateway: Gateway, /) -> Generator[str]:
    """Serve a gateway on a free port of the loopback while a block runs; gives its address.

    Args:
        gateway: What `make_app` made.
    """
    with _listen(gateway, "127.0.0.1", 0) as place:
        server = _Server(gateway, _address(place), None)
        thread = threading.Thread(target=server.run, args=([place],), name="trimtab-gateway", daemon=True)
        thread.start()
        try:
            yield _address(place)  # who connects before the server runs waits in the backlog
        finally:
            gateway.is_draining = server.should_exit = True
            thread.join()


def _listen(gateway: Gateway, host: str, port: int) -> socket.socket:
    if not is_loopback(host) and not gateway.has_token:
        raise ConfigurationError(
            phrase(
                f"host {host!r} can be reached from other machines, and the gateway would pass on what any of"
                " them asks: listen on 127.0.0.1, or give the secret that clients send: ",
                option("token"),
            ),
            argument="host",
        )
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=2_048)
    except OSError as error:
        raise ConfigurationError(
            f"port {port} of {host} cannot be used: {error.strerror or error}", argument="port"
        ) from error


def _address(place: socket.socket) -> str:
    host, port = place.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class _Server(uvicorn.Server):
    """A server that says when it can be asked, and tells its gateway when it is to end."""

    def __init__(self, gateway: Gateway, address: str, ready: Callable[[str], object] | None) -> None:
        limits = gateway.limits
        config: Any = uvicorn.Config(
            gateway,
            http=type("Connection", (_Connection,), {"limits": limits}),
            ws="none",
            lifespan="on",
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            backlog=2_048,
            h11_max_incomplete_event_size=limits.max_header_bytes,
            timeout_keep_alive=max(1, round(limits.idle_seconds)),
            timeout_graceful_shutdown=max(1, round(limits.drain_seconds)),
        )
        super().__init__(config)
        self._gateway, self._address, self._ready = gateway, address, ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin, and say so: from here on a request is answered and a signal ends the process well."""
        await super().startup(sockets)
        if self._ready is not None and not self.should_exit:
            self._ready(self._address)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to end."""
        self._gateway.is_draining = True
        super().handle_exit(sig, frame)


class _Connection(H11Protocol):
    """A connection of a client.

    It is closed where it is one too many or the head of its request is slow, and cut off where the client
    takes nothing of what was written: a close waits until that is taken, which may be for ever.
    """

    limits: Limits
    _timer: asyncio.TimerHandle | None = None
    _look: asyncio.TimerHandle | None = None
    _held_bytes = 0
    """What was written and not taken, when it was looked at last; 0: the client may go on."""

    def connection_made(self, transport: Any) -> None:
        """Take a connection, or refuse it."""
        super().connection_made(transport)
        self._look_later()
        if len(self.connections) > self.limits.max_connections:
            transport.write(_BUSY)
            transport.close()
        else:
            self._watch_head()

    def data_received(self, data: bytes) -> None:
        """Take what came."""
        super().data_received(data)
        self._watch_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_timer()
        if self._look is not None:
            self._look.cancel()
            self._look = None
        super().connection_lost(exc)

    def _look_later(self) -> None:
        self._look = self.loop.call_later(self.limits.stall_seconds, self._cut_off)

    def _cut_off(self) -> None:
        """Cut the connection off if nothing was taken since the last look, and nobody writes any more."""
        transport: Any = self.transport
        is_held = transport.is_closing() or self.flow.write_paused
        held_bytes = transport.get_write_buffer_size() if is_held else 0
        if held_bytes and held_bytes == self._held_bytes:
            transport.abort()
            return
        self._held_bytes = held_bytes
        self._look_later()

    @property
    def _waits(self) -> bool:
        """Whether no request is in progress."""
        return self.cycle is None or self.cycle.response_complete

    def _watch_head(self) -> None:
        """Wait for the head of a request only so long."""
        if not self._waits:
            self._stop_timer()
        elif self._timer is None:
            self._timer = self.loop.call_later(self.limits.header_seconds, self._close)

    def _close(self) -> None:
        self._timer = None
        if self._waits and not self.transport.is_closing():
            self.transport.close()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


@contextmanager
def _signals(server: _Server) -> Generator[None]:
    """End well by a signal: uvicorn raises it again once it has ended by it, which would kill the process.

    One that comes before uvicorn waits for it ends the server, too.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, server.handle_exit)
    try:
        with suppress(KeyboardInterrupt):
            yield
    finally:
        signal.signal(signal.SIGTERM, before)
