"""The commands of docs/guides/backup.md on real servers: what is restored is what was backed up."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from threading import Event as Flag
from threading import Thread
from typing import Any

import pytest

from tests import servers
from tests.builders import user
from tests.docs.documents import ROOT, blocks
from tests.stores.rings import BOTH, FIRST, NEW, OLD, SECOND
from tests.stores.served import Served
from trimtab import Session
from trimtab.errors import EncryptionKeyError, KeyDroppedError, VersionConflictError
from trimtab.session import statuses
from trimtab.stores import (
    KeyRing,
    KmsKeys,
    PostgresStore,
    RedisStore,
    Retry,
    SQLiteStore,
    Store,
    encrypted,
)
from trimtab.testing import WordCounter

WORDS = WordCounter()
PAGE = (ROOT / "docs" / "guides" / "backup.md").read_text(encoding="utf-8")
RINGS = pytest.mark.parametrize("ring", [None, OLD], ids=["plain", "encrypted"])
WITH_SQLITE_SHELL = pytest.mark.usefixtures("sqlite_shell")


def commands(heading: str) -> list[str]:
    """Give the shell blocks of a section of the page."""
    section = re.split(r"^## ", PAGE, flags=re.M)
    (text,) = [one for one in section if one.startswith(f"{heading}\n")]
    return [block.text for block in blocks(re.sub(r"^ +", "", text, flags=re.M)) if block.kind == "sh"]


def shell(command: str, folder: Path, *, programs: Path | None = None, **names: object) -> str:
    """Run a block of the page as it is, with the names that it uses; gives what it wrote."""
    path = os.pathsep.join([*([str(programs)] if programs else []), os.environ["PATH"]])
    given = {**os.environ, "PATH": path, **{name: str(one) for name, one in names.items()}}
    done = subprocess.run(
        ["sh", "-eu", "-c", command], cwd=folder, env=given, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    assert "WRONGPASS" not in done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def sqlite_shell() -> None:
    """Find SQLite's own shell, which the commands of the page call."""
    try:
        servers.find_program("sqlite3", package="sqlite3", folders="usr/bin")
    except servers.NoServer as reason:
        pytest.skip(str(reason))


def with_ring(store: Store, ring: KeyRing | None) -> Any:
    """Encrypt a store, if there is a ring."""
    return store if ring is None else encrypted(store, ring)


def fill(store: Store) -> None:
    """Make sessions of every kind: short, summarized, redacted, forked, of an owner, with a time to live."""
    for name, messages, options in (
        ("short", 2, {"owner": "ada", "metadata": {"plan": "free"}}),
        ("long", 40, {"owner": "ada", "ttl": 1e9, "summarizer": lambda messages: "of herons"}),
        ("bob's", 15, {"owner": "bob"}),
    ):
        session = Session(300, store=store, id=name, counter=WORDS, **options)
        events = [session.add(user(f"message {at} of the heron " + "word " * at)) for at in range(messages)]
        session.redact([events[1]])
        session.fork(id=f"{name} again")


def picture(store: Store) -> dict[str, Any]:
    """Give all that a store says: its list, every event, every view, where sessions stand, what is found."""
    names = store.sessions()
    opened = {str(one): open_session(store, one) for one in names}
    return {
        "list": [one.to_dict() for one in names],
        "by use": [str(one) for one in store.sessions(used_after=0.0)],
        "of ada": [str(one) for one in store.sessions(owner="ada", metadata={"plan": "free"})],
        "events": [re.sub(r',"at":.*', "", line) for line in store.export()],
        "views": {name: session.messages() for name, session in opened.items()},
        "found": {name: [one.id for one in session.recall("heron", 9)] for name, session in opened.items()},
        "statuses": [one.to_dict() for one in statuses(store, names)],
    }


def open_session(store: Store, name: str) -> Session:
    """Open a session whichever functions it has."""
    return Session.open(store, str(name), counter=WORDS, allow_missing=True)


def go_on(store: Store) -> None:
    """Use what was restored: go on, begin anew, and remove."""
    session = open_session(store, "short")
    before = session.version
    session.add(user("after the restore"))
    assert session.version > before
    assert [one.message for one in session.recall("restore")] == []  # it is in view
    incarnations = {one.incarnation for one in store.sessions()}
    Session(300, store=store, id="new", counter=WORDS).add(user("new"))
    assert {one.incarnation for one in store.sessions(prefix="new")}.isdisjoint(incarnations)
    assert store.delete(owner="ada").sessions > 2
    assert store.sessions(owner="ada") == []


@contextmanager
def busy(store: Store) -> Iterator[None]:
    """Write to a session of its own meanwhile, from its second message on."""
    done, begun = Flag(), Flag()

    def write() -> None:
        session = Session(300, store=store, id="busy", counter=WORDS)
        at = 0
        while not done.is_set():
            session.add(user(f"busy {at}"))
            at += 1
            if at == 2:
                begun.set()

    thread = Thread(target=write)
    thread.start()
    try:
        assert begun.wait(60)
        yield
    finally:
        done.set()
        thread.join()


def check_restored(store: Store, before: Mapping[str, Any], source: Store) -> None:
    """Compare what was restored with what was there, apart from the session that somebody wrote to."""
    wrote = [one.message for one in open_session(source, "busy").history()]
    kept = [one.message for one in open_session(store, "busy").history()]
    assert len(kept) >= 2
    assert kept == wrote[: len(kept)]
    open_session(store, "busy").delete()
    assert picture(store) == before
    go_on(store)


def test_every_command_of_the_page_is_run_here() -> None:
    """One that is added is run by one of these tests, or this fails."""
    found = {name.partition("\n")[0]: name for name in re.split(r"^## ", PAGE, flags=re.M)[1:]}
    assert {name: len(commands(name)) for name in found if commands(name)} == {
        "SQLite": 2,
        "PostgreSQL": 4,
        "Redis": 5,
        "After a restore": 1,
        "Encrypted stores": 1,
    }


@WITH_SQLITE_SHELL
@RINGS
def test_a_file_of_sqlite_is_restored(ring: KeyRing | None, tmp_path: Path) -> None:
    """While somebody writes; what belongs to the old file goes."""
    backup, restore = commands("SQLite")
    source = with_ring(SQLiteStore(tmp_path / "chats.db"), ring)
    fill(source)
    before = picture(source)
    with busy(source):
        shell(backup, tmp_path)
    place = tmp_path / "restored"
    place.mkdir()
    (tmp_path / "chats.bak").rename(place / "chats.bak")
    with SQLiteStore(place / "chats.db") as old:
        Session(300, store=old, id="of the old file", counter=WORDS).add(user("old"))
        (place / "left").write_bytes((place / "chats.db-wal").read_bytes())
    (place / "left").rename(place / "chats.db-wal")  # as who was killed leaves it
    shell(restore, place)
    with with_ring(SQLiteStore(place / "chats.db"), ring) as store:
        check_restored(store, before, source)
    source.close()


@pytest.mark.server
@RINGS
def test_a_dump_of_postgres_is_restored(ring: KeyRing | None, on_postgres: Served, tmp_path: Path) -> None:
    """To an empty database; texts are in no statistics of it, as in the old one."""
    dump, restore, *_ = commands("PostgreSQL")
    server = on_postgres.server
    assert isinstance(server, servers.PostgresServer)
    source = with_ring(on_postgres.make(scrub_on_delete=False), ring)
    fill(source)
    before = picture(source)
    database = f"restored_{os.getpid()}"
    role = f"app_{os.getpid()}"  # the new server has no such role
    (name,) = re.findall(r"\w+$", on_postgres.url(None))
    server.ask(f"CREATE ROLE {role}")
    server.ask(f"GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA public TO {role}", database=name)
    restored = server.of(database)
    names = {"CHATS": on_postgres.url(None), "SERVER": server.dsn, "RESTORED": restored}
    with busy(source):
        shell(dump, tmp_path, programs=server.programs, **names)
    try:
        server.ask(f"DROP OWNED BY {role}", database=name)
        server.ask(f"DROP ROLE {role}")
        restore = restore.replace("chats_restored", database)
        shell(restore, tmp_path, programs=server.programs, **names)
        with with_ring(PostgresStore(restored, scrub_on_delete=False), ring) as store:
            check_restored(store, before, source)
        sql = "SELECT attstattarget FROM pg_attribute WHERE attrelid = 'trimtab_events'::regclass"
        body = server.ask(f"{sql} AND attname = 'body'", database=database)
        assert body == [(0,)]
    finally:
        server.ask(f"DROP DATABASE IF EXISTS {database} WITH (FORCE)")
        source.close()


def as_server(command: str) -> str:
    """Have a command run by the user that PostgreSQL runs as: it refuses to run as root."""
    return f"runuser -u postgres -- sh -eu <<'RUN'\n{command}\nRUN\n" if os.geteuid() == 0 else command


@pytest.mark.server
def test_of_a_database_with_others_the_tables_are_restored_alone(on_postgres: Served, tmp_path: Path) -> None:
    """By the option that the page names."""
    dump, restore, *_ = commands("PostgreSQL")
    (option,) = re.findall(r"add `(--table=[^`]+)`", PAGE)
    server = on_postgres.server
    assert isinstance(server, servers.PostgresServer)
    names = {"CHATS": on_postgres.url(None), "SERVER": server.dsn}
    with server.database() as database, on_postgres.make(scrub_on_delete=False) as source:
        fill(source)
        before = picture(source)
        (name,) = re.findall(r"\w+$", on_postgres.url(None))
        server.ask("CREATE TABLE others AS SELECT 1", database=name)
        shell(dump.replace("--file", f"{option} --file"), tmp_path, programs=server.programs, **names)
        (_, restore) = restore.strip().splitlines()
        restored = server.of(database)
        shell(restore, tmp_path, programs=server.programs, RESTORED=restored)
        with PostgresStore(restored, scrub_on_delete=False) as store:
            assert picture(store) == before
            go_on(store)
        assert server.ask("SELECT to_regclass('others')", database=database) == [(None,)]


@pytest.mark.server
def test_postgres_is_restored_to_a_moment() -> None:
    """By a base backup and the archive of its log: before an order that was a mistake."""
    *_, base, recover = commands("PostgreSQL")
    try:
        server = servers.make_postgres(
            *("archive_mode = on", "archive_command = 'cp %p ../archive/%f'", "max_connections = 200")
        )
    except servers.NoServer as reason:
        pytest.skip(f"no PostgreSQL: {reason}")
    assert server.folder is not None
    archive, port = server.folder / "archive", servers.free_port()
    shell(as_server(f"mkdir {archive}"), server.folder)
    names = {"SERVER": server.dsn, "ARCHIVE": archive, "PORT": port}

    def run(command: str, **more: object) -> None:
        assert server.folder is not None
        shell(as_server(command), server.folder, programs=server.programs, **names, **more)

    with server.database() as database:
        with PostgresStore(server.of(database), scrub_on_delete=False) as source:
            fill(source)
            run(base)
            open_session(source, "bob's").add(user("after the base backup"))
            before = picture(source)
            ((moment,),) = server.ask("SELECT clock_timestamp()")
            source.delete(owner="ada")
            open_session(source, "bob's").add(user("too late"))
        ((segment,),) = server.ask("SELECT pg_walfile_name(pg_switch_wal())")
        servers.until((archive / segment).exists, "the archive")
        try:
            run(recover, MOMENT=moment)
            servers.until(
                lambda: server.ask("SELECT pg_is_in_recovery()", port=port) == [(False,)], "the recovery"
            )
            with PostgresStore(server.of(database, port=port), scrub_on_delete=False) as store:
                assert picture(store) == before
                go_on(store)
        finally:
            run("pg_ctl --pgdata=base --mode=immediate stop || true")


@contextmanager
def restored_redis(command: str, folder: Path) -> Iterator[str]:
    """Start a server by a block of the page, and end it; gives its URL."""
    port = servers.free_port()
    shell(command, folder, PORT=port)
    url = f"redis://default@127.0.0.1:{port}"
    try:
        servers.until(lambda: "PONG" in shell("redis-cli -u $URL PING || true", folder, URL=url), "Redis")
        servers.until(
            lambda: "loading:0" in shell("redis-cli -u $URL INFO persistence", folder, URL=url), "its data"
        )
        yield url
    finally:
        shell("redis-cli -u $URL SHUTDOWN NOSAVE || true", folder, URL=url)
        servers.until(
            lambda: "refused" in shell("redis-cli -u $URL PING 2>&1 || true", folder, URL=url), "its end"
        )


def redis_names(served: Served) -> dict[str, object]:
    """Give what the page calls the server, whose only user is default."""
    return {"CHATS": served.url(None).replace("//:", "//default:")}


@RINGS
def test_a_snapshot_of_redis_is_restored(ring: KeyRing | None, on_redis: Served, tmp_path: Path) -> None:
    """To a server that keeps it in an append-only file from then on, and has it after a restart."""
    snapshot, restore, switch_on, *_ = commands("Redis")
    source = with_ring(on_redis.make(scrub_on_delete=False), ring)
    fill(source)
    before = picture(source)
    with busy(source):
        shell(snapshot, tmp_path, **redis_names(on_redis))
    with restored_redis(restore, tmp_path) as url:
        shell(switch_on, tmp_path, RESTORED=url)
        servers.until(
            lambda: (
                "aof_rewrite_in_progress:0" in shell("redis-cli -u $URL INFO persistence", tmp_path, URL=url)
            ),
            "the append-only file",
        )
        with with_ring(RedisStore(url, scrub_on_delete=False), ring) as store:
            check_restored(store, before, source)
            after = picture(store)
    (_, start) = restore.strip().splitlines()
    start = start.replace("--appendonly no", "--appendonly yes")
    with restored_redis(start, tmp_path) as url, with_ring(RedisStore(url), ring) as store:
        assert picture(store) == after
    source.close()


def test_a_server_that_begins_with_an_append_only_file_reads_no_snapshot(
    on_redis: Served, tmp_path: Path
) -> None:
    """As the page says; who trusts in it has an empty store."""
    snapshot, restore, *_ = commands("Redis")
    with on_redis.make(scrub_on_delete=False) as source:
        fill(source)
    shell(snapshot, tmp_path, **redis_names(on_redis))
    wrong = restore.replace("--appendonly no", "--appendonly yes")
    with restored_redis(wrong, tmp_path) as url, RedisStore(url) as store:
        assert store.sessions() == []


def test_the_append_only_file_of_redis_is_restored(on_redis: Served, tmp_path: Path) -> None:
    """A copy of the folder, while somebody writes."""
    *_, copy, restore = commands("Redis")
    source = on_redis.make(scrub_on_delete=False)
    fill(source)
    before = picture(source)
    with busy(source):
        shell(copy, tmp_path, DATA=on_redis.server.data, **redis_names(on_redis))
    with restored_redis(restore, tmp_path) as url, RedisStore(url, scrub_on_delete=False) as store:
        check_restored(store, before, source)
    source.close()


# -- after a restore


@WITH_SQLITE_SHELL
def test_a_restored_store_is_looked_through(tmp_path: Path) -> None:
    """By the command of the page; who knows newer events reads the session again."""
    (look,) = commands("After a restore")
    url = f"sqlite:///{tmp_path / 'chats.db'}"
    with SQLiteStore(tmp_path / "chats.db") as store:
        fill(store)
        shell(commands("SQLite")[0], tmp_path)
        patient = Session(300, store=store, id="short", counter=WORDS, retry=Retry(first_seconds=0))
        other = Session(300, store=store, id="bob's", counter=WORDS)
        known = [patient.add(user("one")).version, other.add(user("two")).version]
        store.close()
        shell(commands("SQLite")[1], tmp_path)
        lines = shell(cli(look), tmp_path, RESTORED=url).splitlines()
        assert len(lines) == 6
        assert all("recent message" in line for line in lines)
        assert patient.add(user("three")).version == known[0]
        with pytest.raises(VersionConflictError):
            other.add(user("four"))


def cli(command: str) -> str:
    """Have the program of this environment run."""
    return re.sub(r"^trimtab ", f"{sys.executable} -P -m trimtab ", command, flags=re.M)


# -- keys


def sqlite_backup(folder: Path, name: str) -> Path:
    """Back a file up by the command of the page, and give the copy."""
    backup, _ = commands("SQLite")
    shell(backup.replace("chats", name), folder)
    return folder / f"{name}.bak"


@WITH_SQLITE_SHELL
def test_what_was_dropped_and_deleted_is_there_again_with_keys_in_the_same_store(tmp_path: Path) -> None:
    """And goes by the same orders."""
    with encrypted(SQLiteStore(tmp_path / "chats.db"), OLD) as store:
        fill(store)
        copy = sqlite_backup(tmp_path, "chats")
        view = open_session(store, "bob's").messages()
        store.drop_key("bob's")
        store.delete("short")
    with encrypted(SQLiteStore(copy), OLD) as restored:
        assert open_session(restored, "bob's").messages() == view
        assert "short" in restored.sessions()
        restored.drop_key("bob's")
        with pytest.raises(KeyDroppedError):
            open_session(restored, "bob's").messages()


@WITH_SQLITE_SHELL
def test_beside_the_store_of_keys_of_now_a_restored_session_stays_dropped(tmp_path: Path) -> None:
    """And one that was deleted has no key; the list names both, and to delete them removes the rows."""
    keys = SQLiteStore(tmp_path / "keys.db")
    with encrypted(SQLiteStore(tmp_path / "chats.db"), OLD, key_store=keys) as store:
        fill(store)
        copy = sqlite_backup(tmp_path, "chats")
        view = open_session(store, "long").messages()
        store.drop_key("bob's")
        store.delete("short")
    with encrypted(SQLiteStore(copy), OLD, key_store=keys) as restored:
        told = {
            str(one.session): type(one.error) for one in statuses(restored, restored.sessions()) if one.error
        }
        assert told == {"bob's": KeyDroppedError, "short": EncryptionKeyError}
        assert open_session(restored, "long").messages() == view
        for name in told:
            restored.delete(name)
        assert len(restored.sessions()) == 4


@WITH_SQLITE_SHELL
def test_the_store_of_keys_is_backed_up_after_the_sessions(tmp_path: Path) -> None:
    """The other way round a session that was begun in between has no key; a rotation does no harm."""
    keys = SQLiteStore(tmp_path / "keys.db")
    with encrypted(SQLiteStore(tmp_path / "chats.db"), OLD, key_store=keys) as store:
        fill(store)
        too_early = sqlite_backup(tmp_path, "keys").rename(tmp_path / "early")
        Session(300, store=store, id="between", counter=WORDS).add(user("between"))
        before = picture(store)
        copy = sqlite_backup(tmp_path, "chats")
    with encrypted(SQLiteStore(tmp_path / "chats.db"), BOTH, key_store=keys) as store:
        assert store.rotate().complete
    after = sqlite_backup(tmp_path, "keys")
    with encrypted(SQLiteStore(copy), NEW, key_store=SQLiteStore(after)) as restored:
        assert picture(restored) == before
    with encrypted(SQLiteStore(copy), OLD, key_store=SQLiteStore(too_early)) as restored:
        told = [str(one.session) for one in statuses(restored, restored.sessions()) if one.error]
        assert told == ["between"]


@WITH_SQLITE_SHELL
def test_rotation_goes_on_after_a_restore(tmp_path: Path) -> None:
    """By the commands of the page, from a backup of before; the old key is needed until then."""
    look, rotate = commands("Encrypted stores")[0].splitlines()
    with encrypted(SQLiteStore(tmp_path / "chats.db"), OLD) as store:
        fill(store)
        before = picture(store)
        copy = sqlite_backup(tmp_path, "chats")
    with encrypted(SQLiteStore(tmp_path / "chats.db"), BOTH) as store:
        assert store.rotate().complete
    with encrypted(SQLiteStore(copy), NEW) as restored:
        assert {type(one.error) for one in statuses(restored, restored.sessions())} == {EncryptionKeyError}
    lines = [f"{name}:{b64encode(secret).decode()}" for name, secret in (("two", SECOND), ("one", FIRST))]
    (tmp_path / "keys").write_text("\n".join(lines), encoding="utf-8")
    url = f"sqlite:///{copy}"
    assert '"error"' not in shell(cli(look), tmp_path, RESTORED=url)
    receipt = json.loads(shell(cli(rotate), tmp_path, RESTORED=url))
    assert (receipt["key"], receipt["left"]) == ("two", {})
    with encrypted(SQLiteStore(copy), NEW) as restored:
        assert picture(restored) == before


@WITH_SQLITE_SHELL
def test_keys_of_a_service_are_asked_again_after_a_restore(tmp_path: Path) -> None:
    """The service of then opens the backup, whoever asks; one without that key opens nothing."""
    held = {"kek": b"held by the service " * 2}

    def xor(key: str, data: bytes) -> bytes:
        return bytes(one ^ other for one, other in zip(data, cycle(held[key]), strict=False))

    def keys() -> KmsKeys:
        return KmsKeys("kek", wrap=xor, unwrap=xor)

    with encrypted(SQLiteStore(tmp_path / "chats.db"), keys()) as store:
        fill(store)
        before = picture(store)
        copy = sqlite_backup(tmp_path, "chats")
    with encrypted(SQLiteStore(copy), keys()) as restored:
        assert picture(restored) == before
    held.clear()
    with encrypted(SQLiteStore(copy), keys()) as restored:
        assert {type(one.error) for one in statuses(restored, restored.sessions())} == {EncryptionKeyError}
