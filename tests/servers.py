"""Real PostgreSQL and Redis for the tests: installed where the system allows, started once, stopped after.

Each runs in a folder of its own on a free port of the loopback, and is stopped by its process id, also
when the run is killed. TRIMTAB_TEST_POSTGRES and TRIMTAB_TEST_REDIS name servers that run already; tests
that kill a server or read its files then skip. Where there is no server and none can be installed, tests
say so and skip.
"""

from __future__ import annotations

import atexit
import fcntl
import functools
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
import redis

INSTALL_SECONDS = 180
START_SECONDS = 30


class NoServer(Exception):
    """There is none here, and why."""


def find_program(name: str, *, package: str, folders: str) -> Path:
    """Find a program of a server, installing it if the system allows."""
    found = _found(name, folders)
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        with (Path(tempfile.gettempdir()) / "trimtab-apt").open("wb") as lock:
            fcntl.flock(
                lock, fcntl.LOCK_EX
            )  # apt refuses a second one beside it, of another process or thread
            found = _found(name, folders)
            if found is None:
                _install(package)
                found = _found(name, folders)
    if found is None:
        raise NoServer(f"{name} is not installed: apt-get install {package}, or the like")
    return found


def _found(name: str, folders: str) -> Path | None:
    there = shutil.which(name)
    newest = sorted(Path("/").glob(f"{folders}/{name}"), key=lambda path: path.parts)
    return Path(there) if there else newest[-1] if newest else None


def _install(package: str) -> None:
    quiet: dict[str, Any] = {
        "env": {**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        "stdout": subprocess.DEVNULL,
        "stderr": subprocess.DEVNULL,
        "timeout": INSTALL_SECONDS,
        "check": True,
    }
    try:
        subprocess.run(["apt-get", "update", "-qq"], **quiet)
        subprocess.run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", package], **quiet)
    except (subprocess.SubprocessError, OSError) as error:
        raise NoServer(f"apt-get install {package} failed: {error}") from error


def free_port() -> int:
    """Return a port of the loopback that nobody listens on, nor on that 10,000 above: Redis Cluster's own."""
    while True:
        with socket.socket() as one, socket.socket() as above, suppress(OSError, OverflowError):
            one.bind(("127.0.0.1", 0))
            port: int = one.getsockname()[1]
            above.bind(("127.0.0.1", port + 10_000))
            return port


def until(is_done: Callable[[], object], what: str, *, seconds: float = START_SECONDS) -> None:
    """Wait for something of a server."""
    end = time.monotonic() + seconds
    while not is_done():
        assert time.monotonic() < end, f"{what}: not within {seconds} seconds"
        time.sleep(0.02)


class PostgresServer:
    """A PostgreSQL with fsync on; without a folder one that somebody else started."""

    def __init__(self, dsn: str, folder: Path | None = None, programs: Path | None = None) -> None:
        self.dsn = dsn
        self.folder = folder
        self._programs = programs

    @property
    def programs(self) -> Path:
        """The folder of its programs, which of a server that runs already are those found here."""
        if self._programs is not None:
            return self._programs
        found = find_program("pg_dump", package="postgresql-client", folders="usr/lib/postgresql/*/bin")
        return found.resolve().parent

    @property
    def data(self) -> Path:
        """The folder of its files."""
        if self.folder is None:
            pytest.skip("TRIMTAB_TEST_POSTGRES: this test stops the server, or reads its files")
        return self.folder / "data"

    def of(self, database: str, *, port: int | None = None) -> str:
        """Return the DSN of a database, at another port if there is a relay."""
        parts = urlsplit(self.dsn)
        at = parts.netloc if port is None else f"{parts.netloc.rpartition(':')[0]}:{port}"
        return parts._replace(path=f"/{database}", netloc=at).geturl()

    def ask(
        self, sql: str, *params: object, database: str = "postgres", port: int | None = None
    ) -> list[tuple[Any, ...]]:
        """Run a statement, behind the store's back; at another port that of a copy of the server."""
        with psycopg.connect(self.of(database, port=port), autocommit=True) as connection:
            cursor = connection.execute(sql, params or None)
            return cursor.fetchall() if cursor.description else []

    @contextmanager
    def database(self) -> Iterator[str]:
        """Make a database for the length of a block; gives its name."""
        name = f"t{uuid.uuid4().hex[:12]}"
        self.ask(f"CREATE DATABASE {name}")
        try:
            yield name
        finally:
            self.ask(f"DROP DATABASE {name} WITH (FORCE)")

    def _run(self, program: str, *arguments: object) -> None:
        assert self._programs is not None
        command = [str(self._programs / program), *map(str, arguments)]
        if os.geteuid() == 0:  # the server refuses to run as root
            command = ["runuser", "-u", "postgres", "--", *command]
        log = self.data.parent / f"{program}.log"
        with log.open("ab") as out:
            done = subprocess.run(
                command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, cwd="/", check=False
            )
        if done.returncode:
            raise NoServer(f"{program} failed: {log.read_text(errors='replace')[-1000:]}")

    def make(self) -> None:
        """Make its files."""
        assert self.folder is not None
        if os.geteuid() == 0:
            self.folder.chmod(0o755)
            shutil.chown(self.folder, "postgres")
        password = self.folder / "password"
        password.write_text("trimtab\n", encoding="utf-8")
        password.chmod(0o644)
        self._run(
            "initdb",
            *("-D", self.data, "-U", "postgres", "--no-sync", "-E", "UTF8", "--locale=C.UTF-8"),
            *("--auth-host=scram-sha-256", "--auth-local=trust", f"--pwfile={password}"),
        )

    def start(self) -> None:
        """Start it, again after it was stopped or killed."""
        port = urlsplit(self.dsn).port
        options = (
            f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self.folder} -c fsync=on"
            " -c max_connections=200 -c max_wal_size=4GB -c shared_buffers=64MB -c autovacuum_naptime=5s"
        )
        arguments = ("-D", self.data, "-w", "-t", START_SECONDS, "-l", self.data.parent / "log")
        for attempt in range(50):  # what a killed server left needs a moment to end
            try:
                return self._run("pg_ctl", *arguments, "-o", options, "start")
            except NoServer:
                if attempt == 49:
                    raise
                time.sleep(0.1)
        return None

    @property
    def pid(self) -> int:
        """The process that all others of the server end with."""
        return int((self.data / "postmaster.pid").read_text().split()[0])

    def kill(self) -> None:
        """End it at once, as a crash does."""
        _end(self.pid, signal.SIGKILL)

    def stop(self) -> None:
        """Ask it to end now; connections are cut."""
        _end(self.pid, signal.SIGINT)


class RedisServer:
    """A Redis; without a folder one that somebody else started."""

    def __init__(self, url: str, folder: Path | None = None, program: Path | None = None) -> None:
        self.url = url
        self.folder = folder
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None
        self._options: tuple[str, ...] = ()

    @property
    def data(self) -> Path:
        """The folder of its files."""
        if self.folder is None:
            pytest.skip("TRIMTAB_TEST_REDIS: this test stops the server, or reads its files")
        return self.folder

    def of(self, database: int = 0, *, port: int | None = None) -> str:
        """Return the URL of a database, at another port if there is a relay."""
        parts = urlsplit(self.url)
        at = parts.netloc if port is None else f"{parts.netloc.rpartition(':')[0]}:{port}"
        return parts._replace(path=f"/{database}", netloc=at).geturl()

    @contextmanager
    def client(self, database: int = 0) -> Iterator[Any]:
        """Give a client, for what is done behind the store's back."""
        with redis.Redis.from_url(self.of(database), decode_responses=True) as client:
            yield client

    def start(self, *options: str) -> None:
        """Start it; after it was stopped or killed with the same options, if none are given."""
        self._options = options or self._options
        port = str(urlsplit(self.url).port)
        command = [str(self._program), "--bind", "127.0.0.1", "--port", port, "--dir", str(self.data)]
        command += ["--requirepass", "trimtab", "--pidfile", str(self.data / "redis.pid")]
        with (self.data / "log").open("ab") as out:
            self._process = subprocess.Popen([*command, *self._options], stdout=out, stderr=out)
        _started.append(self._process)
        until(self._answers, "redis-server")

    def _answers(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise NoServer((self.data / "log").read_text(errors="replace")[-1000:])
        with suppress(redis.RedisError), self.client() as client:
            return bool(client.ping())
        return False

    def kill(self) -> None:
        """End it at once, as a crash does."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """Ask it to end; connections are cut."""
        assert self._process is not None
        self._process.terminate()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:  # it cannot write its files, and stays for that
            self.kill()


def _end(pid: int, kind: signal.Signals) -> None:
    os.kill(pid, kind)
    until(lambda: not _runs(pid), f"the end of process {pid}")


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


_KEEPER = """
import os, shutil, signal, sys
from pathlib import Path

folder = Path(sys.argv[1])
sys.stdin.read()
for file in (folder / "data" / "postmaster.pid", folder / "redis.pid"):
    try:
        pid = int(file.read_text().split()[0])
        there = Path(f"/proc/{pid}/cwd")
        if not there.exists() or there.resolve().is_relative_to(folder.resolve()):
            os.kill(pid, signal.SIGQUIT if file.name == "postmaster.pid" else signal.SIGKILL)
    except (OSError, ValueError, IndexError):
        pass
shutil.rmtree(folder, ignore_errors=True)
"""


def _kept(prefix: str) -> Path:
    """Make a folder for a server, which is ended and removed when this process ends, however it ends.

    A process of its own waits for that: one that is killed does nothing more.
    """
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    command = [sys.executable, "-I", "-S", "-c", _KEEPER, str(folder)]
    keeper = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
    _keepers.append(keeper)
    return folder


def _release() -> None:
    for keeper in _keepers:
        assert keeper.stdin is not None
        keeper.stdin.close()
    for process in (*_keepers, *_started):
        process.wait()


_keepers: list[subprocess.Popen[bytes]] = []
_started: list[subprocess.Popen[bytes]] = []
"""Servers that are children of this process; their keepers end them."""

atexit.register(_release)


def find_postgres() -> PostgresServer | NoServer:
    """Find the PostgreSQL that a variable names, or start one."""
    given = os.environ.get("TRIMTAB_TEST_POSTGRES")
    if given:
        return PostgresServer(given)
    try:
        return make_postgres()
    except NoServer as reason:
        return reason


def make_postgres(*settings: str) -> PostgresServer:
    """Start a PostgreSQL of one's own, with more settings; it ends with this process at the latest."""
    programs = find_program("postgres", package="postgresql", folders="usr/lib/postgresql/*/bin")
    folder = _kept("trimtab-postgres-")
    dsn = f"postgresql://postgres:trimtab@127.0.0.1:{free_port()}/postgres"
    server = PostgresServer(dsn, folder, programs.resolve().parent)
    server.make()
    with (server.data / "postgresql.conf").open("a", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in settings)
    server.start()
    return server


class PgBouncer:
    """A PgBouncer in front of the PostgreSQL of this run, in transaction mode."""

    def __init__(self, server: PostgresServer, *settings: str) -> None:
        program = find_program("pgbouncer", package="pgbouncer", folders="usr/sbin")
        self.folder = _kept("trimtab-pgbouncer-")
        self._server, at = server, urlsplit(server.dsn)
        self._port = free_port()
        lines = [
            "[databases]",
            f"* = host={at.hostname} port={at.port} user={at.username} password={at.password}",
            "[pgbouncer]",
            f"listen_addr = 127.0.0.1\nlisten_port = {self._port}\nunix_socket_dir =",
            "auth_type = any\npool_mode = transaction\nmax_client_conn = 200\ndefault_pool_size = 8",
            *settings,
        ]
        file = self.folder / "pgbouncer.ini"
        file.write_text("\n".join(lines), encoding="utf-8")
        command = [str(program), str(file)]
        if os.geteuid() == 0:  # it refuses to run as root
            self.folder.chmod(0o755)
            command = ["runuser", "-u", "postgres", "--", *command]
        with (self.folder / "log").open("ab") as out:
            self._process = subprocess.Popen(command, stdout=out, stderr=out, cwd="/")

    def __enter__(self) -> PgBouncer:
        until(self._answers, "pgbouncer")
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()

    def _answers(self) -> bool:
        if self._process.poll() is not None:
            raise NoServer((self.folder / "log").read_text(errors="replace")[-1000:])
        with suppress(OSError), socket.create_connection(("127.0.0.1", self._port)):
            return True
        return False

    def has_no_client(self, database: str) -> bool:
        """Tell whether nobody is connected to a database behind it, by its own account."""
        with psycopg.connect(self.of("pgbouncer"), autocommit=True) as connection:
            cursor = psycopg.ClientCursor(connection).execute("SHOW CLIENTS")
            names = [column.name for column in cursor.description or ()]
            return all(row[names.index("database")] != database for row in cursor)

    def of(self, database: str) -> str:
        """Return the DSN of a database behind it."""
        return self._server.of(database, port=self._port)


def make_redis(*options: str) -> RedisServer:
    """Start a Redis of one's own; it ends with this process at the latest."""
    program = find_program("redis-server", package="redis-server", folders="usr/bin")
    folder = _kept("trimtab-redis-")
    server = RedisServer(f"redis://:trimtab@127.0.0.1:{free_port()}/0", folder, program)
    server.start(*options)
    return server


DURABLE = ("--save", "", "--appendonly", "yes", "--appendfsync", "always")
"""Options of a Redis that has written down what it acknowledges."""


def find_redis() -> RedisServer | NoServer:
    """Find the Redis that a variable names, or start one."""
    given = os.environ.get("TRIMTAB_TEST_REDIS")
    if given:
        return RedisServer(given)
    try:
        return make_redis(*DURABLE)
    except NoServer as reason:
        return reason


_postgres, _redis = functools.cache(find_postgres), functools.cache(find_redis)
"""Those of this run."""


def postgres() -> PostgresServer:
    """Give the PostgreSQL of this run, or skip the test."""
    server = _postgres()
    if isinstance(server, NoServer):
        pytest.skip(f"no PostgreSQL: {server}")
    return server


def redis_server() -> RedisServer:
    """Give the Redis of this run, or skip the test."""
    server = _redis()
    if isinstance(server, NoServer):
        pytest.skip(f"no Redis: {server}")
    return server


class Relay:
    """Stands between a client and a server: counts what passes, and can lose an answer."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.sent_bytes = 0
        self.received_bytes = 0
        self.requests = 0
        self.lose: bytes | None = None
        """The answer to the next request that contains this is lost, and the connection with it."""
        self.lost = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def reset(self) -> None:
        """Count from nothing."""
        self.sent_bytes = self.received_bytes = self.requests = 0

    def close(self) -> None:
        """Take no more connections."""
        self._listener.close()

    def __enter__(self) -> Relay:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, suppress(OSError), socket.create_connection(("127.0.0.1", self._target)) as server:
            cut = threading.Event()
            threading.Thread(target=self._back, args=(server, client, cut), daemon=True).start()
            while data := client.recv(1 << 16):
                self.sent_bytes += len(data)
                self.requests += 1
                if self.lose is not None and self.lose in data:
                    self.lose = None
                    cut.set()
                server.sendall(data)

    def _back(self, server: socket.socket, client: socket.socket, cut: threading.Event) -> None:
        with suppress(OSError):
            while data := server.recv(1 << 16):
                if cut.is_set():
                    self.lost += 1
                    break
                self.received_bytes += len(data)
                client.sendall(data)
        for one in (client, server):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
