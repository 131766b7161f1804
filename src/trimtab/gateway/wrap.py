"""A command whose requests go through a gateway of its own: where that asks, and what the command is told."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from urllib.request import getproxies_environment

from trimtab.errors import ConfigurationError
from trimtab.formats.api_paths import APIS, OWN_BEGINNINGS, PUBLIC_APIS
from trimtab.formats.api_variables import URL_VARIABLES, Variable
from trimtab.gateway.app import Gateway
from trimtab.gateway.serve import serve_in_thread
from trimtab.gateway.settings import Upstream, address_of

LOOPBACK = "127.0.0.1"

NOT_FOUND, NOT_RUN = 127, 126
"""Exit codes of shells for a command that is not there, and for one that cannot be run."""

_OF_TERMINALS = ("SIGINT", "SIGQUIT", "SIGHUP")
"""What a terminal sends to each process that it shows; of these the command gets its own."""
_PASSED = (*_OF_TERMINALS, "SIGTERM", "SIGUSR1", "SIGUSR2")


class Plan:
    """Where the requests of a command go, and by which variables it finds the gateway.

    Args:
        variables: The environment: the servers that it names are asked, else the providers' own.
        named: Servers that go before these.

    Raises:
        ConfigurationError: A variable is no URL of HTTP, or two name different servers for one API.
    """

    def __init__(self, variables: Mapping[str, str], named: Sequence[Upstream] = ()) -> None:
        self._variables = dict(variables)
        whole = {one.api for one in named if one.models == "*" and not one.key}
        found = {api: self._of_environment(api) for api in APIS if api not in whole}
        own = [one for one in found.values() if one is not None]
        public = [
            Upstream(api=api, url=PUBLIC_APIS[api])
            for api, one in found.items()
            if one is None and api in PUBLIC_APIS
        ]
        self.upstreams = (*named, *own, *public)
        """The servers that the gateway may ask."""
        self._paths = {one.api: _last_segment(one) for one in own}
        """What stands behind the host, where the environment named a server: `join` takes it off again."""
        apis = {one.api for one in self.upstreams}
        self._set = [one for one in URL_VARIABLES if one.api in apis]
        for api, beginning in OWN_BEGINNINGS.items():
            alike = (one for one in own if f"{self._paths[one.api]}/" == beginning and one.api != api)
            if api in apis and (other := next(alike, None)) is not None:
                name = self._variables_of(other.api)[0].name
                raise ConfigurationError(
                    f"paths of {name} and of the API {api} begin alike, with {beginning}: unset one of them,"
                    f" or name the server as --upstream {other.api}=URL"
                )

    def _variables_of(self, api: str) -> list[Variable]:
        return [one for one in URL_VARIABLES if one.api == api and self._variables.get(one.name, "").strip()]

    def _of_environment(self, api: str) -> Upstream | None:
        """Read the server that the environment names for an API; None: it names none."""
        named = self._variables_of(api)
        urls = {one.name: self._variables[one.name].strip().rstrip("/") for one in named}
        if len(set(urls.values())) > 1:
            names = " and ".join(urls)
            raise ConfigurationError(
                f"{names} name different servers, and requests for them come by the same paths: unset all but"
                f" one, or name the server as --upstream {api}=URL"
            )
        if not named:
            return None
        try:
            return Upstream(api=api, url=urls[named[0].name])
        except ConfigurationError as error:
            raise ConfigurationError(f"{named[0].name}: {error}") from error

    def variables(self, address: str, /) -> dict[str, str]:
        """Write the environment of the command.

        Args:
            address: That of the gateway.
        """
        told = {one.name: address + self._paths.get(one.api, one.path) for one in self._set}
        made = {**self._variables, **told}
        if getproxies_environment():  # a proxy cannot reach this machine's loopback, and need not see it
            kept = self._variables.get("no_proxy") or self._variables.get("NO_PROXY")  # as the library reads
            if kept != "*":
                made |= dict.fromkeys(("no_proxy", "NO_PROXY"), f"{kept},{LOOPBACK}" if kept else LOOPBACK)
        return made


def _last_segment(upstream: Upstream) -> str:
    last = address_of(upstream).base.rpartition("/")[2]
    return f"/{last}" if last else ""


def run_command(words: Sequence[str], plan: Plan, gateway: Gateway) -> int:
    """Run a command while its gateway is served, and return the exit code that a shell would have.

    Args:
        words: The command and its arguments.
        plan: What the gateway was made of.
        gateway: What fits the requests of the command.

    Raises:
        OSError: It cannot be run.
    """
    # Signals are taken before the gateway is there and until it is gone: none ends one without the other.
    with _signals() as passed, serve_in_thread(gateway) as address:
        process = subprocess.Popen(words, env=plan.variables(address))
        passed.begin(process)
        code = process.wait()
    return code if code >= 0 else 128 - code


class _Signals:
    """Passes signals on to a process; those that come before it runs wait."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []

    def take(self, number: int, frame: FrameType | None) -> None:
        """Take a signal."""
        if self._process is None:
            self._early.append(number)
        elif signal.Signals(number).name not in _OF_TERMINALS or not _is_in_foreground():
            self._process.send_signal(number)

    def begin(self, process: subprocess.Popen[bytes]) -> None:
        """Pass on to a process what comes, and what came."""
        self._process = process
        for number in self._early:
            process.send_signal(number)


@contextmanager
def _signals() -> Generator[_Signals]:
    """Take the signals of this process; one that it ignores the command ignores, too, as under nohup."""
    made = _Signals()
    known = [signal.Signals[name] for name in _PASSED if name in signal.Signals.__members__]
    before = {one: signal.getsignal(one) for one in known}
    for one, handler in before.items():
        if handler != signal.SIG_IGN:
            signal.signal(one, made.take)
    try:
        yield made
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def _is_in_foreground() -> bool:
    """Tell whether a terminal sends its signals to this process, and so to the command itself."""
    with suppress(AttributeError, OSError):  # no terminal, or a system that has none of these calls
        place = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
        try:
            return os.tcgetpgrp(place) == os.getpgrp()
        finally:
            os.close(place)
    return False
