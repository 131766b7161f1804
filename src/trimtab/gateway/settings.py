"""What a gateway is told: where it may ask, and how much of everything it takes."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from trimtab._shared.checks import in_words, near_names
from trimtab.errors import ConfigurationError, UnknownNameError
from trimtab.formats.api_paths import APIS, PUBLIC_APIS

__all__ = ["Limits", "Upstream", "public_upstreams"]


class Address(NamedTuple):
    """The parts of a URL that a request is sent to."""

    is_secure: bool
    host: str
    port: int
    shown: str
    """Host and port as the header Host has them."""
    base: str
    """The path before that of each request; "" if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """A server that a gateway may ask.

    Args:
        api: The API that it speaks: "openai", "azure", "anthropic" or "gemini".
        url: Its address, with or without the version that a client's base URL ends with.
        models: Which models it is asked about: a name, or a pattern such as "qwen*".
        key: The name of the key whose requests it gets, which no other server then does; "": of all others.

    Raises:
        ConfigurationError: The API is unknown, or the URL is not one of HTTP.
    """

    api: str
    """The API that it speaks: "openai", "azure", "anthropic" or "gemini"."""
    url: str
    """Its address, with or without the version that a client's base URL ends with."""
    models: str = "*"
    """Which models it is asked about: a name, or a pattern such as "qwen*"."""
    key: str = ""
    """The name of the key whose requests it gets, which no other server then does; "": of all others."""

    @property
    def name(self) -> str:
        """What it is called in the log and in metrics, as the option `--upstream` has it."""
        models = "" if self.models == "*" else f"/{self.models}"
        return f"{self.api}{models},key:{self.key}" if self.key else f"{self.api}{models}"

    def __post_init__(self) -> None:
        if self.api not in APIS:
            near = near_names(self.api, APIS)
            known = ", ".join(APIS)
            raise UnknownNameError(
                f"upstream {self.api!r} is not one of {known}{in_words(near)}",
                name=self.api,
                near=near,
                argument="upstream",
            )
        address_of(self)


_PATH = "/%:@!$&'()*+,;=~"
"""What stands in a path as it is (RFC 3986, 3.3)."""


def address_of(upstream: Upstream, /) -> Address:
    """Read the URL of an upstream.

    Raises:
        ConfigurationError: It is not one of HTTP, or has more than an address.
    """
    try:
        parts = urlsplit(upstream.url)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise _wrong(upstream, str(error)) from error
    if parts.scheme not in ("http", "https") or not host:
        raise _wrong(upstream, "it does not begin with http:// or https:// and a host")
    if "@" in parts.netloc:
        why = "a key in the address would be sent for every client; clients send their own"
        raise _wrong(upstream, why)
    if parts.query or parts.fragment:
        raise _wrong(upstream, "a query in it would be lost")
    try:
        host = host if host.isascii() else host.encode("idna").decode()
    except UnicodeError as error:
        raise _wrong(upstream, f"{host!r:.100} is no name of a host") from error
    is_secure = parts.scheme == "https"
    usual = 443 if is_secure else 80
    name = f"[{host}]" if ":" in host else host
    shown = name if port in (None, usual) else f"{name}:{port}"
    return Address(is_secure, host, port or usual, shown, quote(parts.path.rstrip("/"), safe=_PATH))


def _wrong(upstream: Upstream, why: str) -> ConfigurationError:
    shown = upstream.url.rpartition("@")[2]  # whoever writes a password there does not want to read it again
    return ConfigurationError(
        f"the upstream of {upstream.api} cannot be {shown!r:.200}: {why}. Write, for example,"
        f" {upstream.api}=https://host/v1",
        argument="upstream",
    )


def public_upstreams() -> tuple[Upstream, ...]:
    """List the providers' own addresses, one for each API."""
    return tuple(Upstream(api=api, url=url) for api, url in PUBLIC_APIS.items())


def is_public(upstream: Upstream, /) -> bool:
    """Tell whether an upstream is the provider's own address."""
    return address_of(upstream).host == urlsplit(PUBLIC_APIS.get(upstream.api, "")).hostname


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much a gateway takes, and how long it waits.

    Args:
        max_body_bytes: Of a request that is fitted, which is held in memory; others pass through in parts.
        max_bodies_bytes: Of all such requests in progress together; one more is answered 503.
        max_header_bytes: Of the head of a request.
        max_connections: Open connections of clients; one more is answered 503 and closed.
        max_calls: Requests in progress; one more is answered 503, in the words of its API.
        header_seconds: The time in which the head of a request has to be there.
        body_seconds: The time in which the body of a request that is fitted has to be there.
        connect_seconds: The time in which an upstream has to take a connection.
        answer_seconds: The longest silence of an upstream, before its answer and within.
        stall_seconds: The longest time in which a client takes nothing of its answer, or sends nothing of a
            body that it has begun.
        idle_seconds: How long a connection without a request stays open.
        drain_seconds: How long answers in progress may go on once the gateway is to end.
        share_seconds: How long the place that several processes share may take; a request goes on without it.
        max_kept_calls: Requests whose texts are kept, if they are: the last ones.
        max_kept_bytes: About how much memory they may take together; one that takes more is not kept.

    Raises:
        ConfigurationError: A number is not above zero, or one body may be longer than all together.
    """

    max_body_bytes: int = 64 * 2**20
    """Of a request that is fitted, which is held in memory; others pass through in parts."""
    max_bodies_bytes: int = 512 * 2**20
    """Of all such requests in progress together; one more is answered 503."""
    max_header_bytes: int = 64 * 2**10
    """Of the head of a request."""
    max_connections: int = 2_000
    """Open connections of clients; one more is answered 503 and closed."""
    max_calls: int = 512
    """Requests in progress; one more is answered 503, in the words of its API."""
    header_seconds: float = 20
    """The time in which the head of a request has to be there."""
    body_seconds: float = 300
    """The time in which the body of a request that is fitted has to be there."""
    connect_seconds: float = 10
    """The time in which an upstream has to take a connection."""
    answer_seconds: float = 600
    """The longest silence of an upstream, before its answer and within."""
    stall_seconds: float = 120
    """The longest time in which a client takes nothing of its answer, or sends nothing of a body that it has
    begun.
    """
    idle_seconds: float = 75
    """How long a connection without a request stays open."""
    drain_seconds: float = 30
    """How long answers in progress may go on once the gateway is to end."""
    share_seconds: float = 0.5
    """How long the place that several processes share may take; a request goes on without it."""
    max_kept_calls: int = 100
    """Requests whose texts are kept, if they are: the last ones."""
    max_kept_bytes: int = 32 * 2**20
    """About how much memory they may take together; one that takes more is not kept."""

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                raise ConfigurationError(f"{name} must be above 0, not {value!r}", argument=name)
        if self.max_body_bytes > self.max_bodies_bytes:
            raise ConfigurationError(
                f"max_body_bytes is {self.max_body_bytes:,}, and all bodies together may have"
                f" {self.max_bodies_bytes:,}: make max_bodies_bytes larger",
                argument="max_bodies_bytes",
            )
