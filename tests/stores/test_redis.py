"""`RedisStore`: its keys, what the server refuses, clusters, and servers that keep nothing."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import redis

from tests import servers
from tests.stores.counted import count_requests
from tests.stores.served import Served, add, contents, event, load
from tests.stores.writer import KEYS
from trimtab.errors import (
    ConfigurationError,
    CorruptSessionError,
    StoreError,
    StoreUnavailableError,
    VersionConflictError,
)
from trimtab.relevance import question_terms
from trimtab.stores import AppendRequest, Labels, LoadRequest, Receipt, RedisStore, SearchRequest, encrypted
from trimtab.testing.hooks import (
    FILL_EVENTS,
    FILL_TERMS,
    PAGE_EVENTS,
    Command,
    RedisOperations,
    redis_error,
    run_steps,
)

# -- what can be seen without a server


@pytest.mark.parametrize(
    ("given", "said"),
    [
        pytest.param({"url": "garbage"}, "redis://user:password@host", id="no-url"),
        pytest.param({"prefix": ""}, "prefix", id="no-prefix"),
        pytest.param({"prefix": "x" * 201}, "prefix", id="long-prefix"),
        pytest.param({"prefix": "a{b}"}, "prefix", id="braces"),
        pytest.param({"prefix": "a\nb"}, "prefix", id="line-break"),
        pytest.param({"prefix": "app:session"}, "those of the prefix 'app'", id="prefix-of-another"),
        pytest.param({"prefix": "app:session:x"}, "those of the prefix 'app'", id="prefix-inside-another"),
        pytest.param({"url": "redis://h?colour=red"}, "unexpected keyword argument 'colour'", id="no-option"),
        pytest.param({"url": "unix:///s?colour=red"}, "'colour'", id="no-option-of-a-file"),
        pytest.param({"url": "rediss://h?ssl_cert_reqs=perhaps"}, "options after the \\?", id="no-value"),
        pytest.param({"max_connections": 0}, "max_connections", id="no-connections"),
        pytest.param({"pool_timeout_seconds": 0}, "pool_timeout_seconds", id="no-wait"),
        pytest.param({"command_timeout_seconds": -1}, "command_timeout_seconds", id="negative-time"),
        pytest.param({"scrub_timeout_seconds": 0}, "scrub_timeout_seconds", id="no-scrub"),
    ],
)
def test_what_cannot_be_meant_is_refused_when_the_store_is_made(given: dict[str, Any], said: str) -> None:
    """Not at the first append."""
    arguments = {"url": "redis://h", **given}
    with pytest.raises(ConfigurationError, match=said):
        RedisStore(arguments.pop("url"), **arguments)


def test_a_password_in_what_cannot_be_read_is_not_shown() -> None:
    """The package quotes what it does not understand."""
    with pytest.raises(ConfigurationError) as raised:
        RedisStore("redis://u:se/cret@h:1")
    assert "cret" not in str(raised.value)
    assert raised.value.__suppress_context__


def test_bounds_of_arguments_are_taken() -> None:
    """One connection, the longest prefix."""
    RedisStore("redis://h", prefix="x" * 200, max_connections=1)
    RedisStore("redis://h?health_check_interval=3", prefix="app:sessions")
    RedisStore("unix://:secret@/run/redis.sock?db=1", prefix="session")


def test_every_error_of_redis_has_one_of_ours() -> None:
    """Walks its module: what may pass can be retried, the rest is final."""
    kinds = {
        name: kind
        for name, kind in vars(redis.exceptions).items()
        if isinstance(kind, type)
        and issubclass(kind, (redis.RedisError, redis.exceptions.RedisClusterException))
    }
    assert len(kinds) > 25
    made = {name: kind.__new__(kind, "it") for name, kind in kinds.items()}
    ours = {name: type(redis_error(redis, error, name="here")) for name, error in made.items()}
    assert set(ours.values()) == {StoreUnavailableError, ConfigurationError, StoreError}
    passing = (
        "ConnectionError TimeoutError BusyLoadingError MaxConnectionsError OutOfMemoryError ReadOnlyError"
        " TryAgainError MovedError AskError ClusterDownError MasterDownError SlotNotCoveredError"
    )
    assert {name: ours[name] for name in passing.split() if ours[name] is not StoreUnavailableError} == {}
    for name in ("AuthenticationError", "AuthorizationError", "NoPermissionError"):
        assert ours[name] is ConfigurationError
    for name in ("ResponseError", "NoScriptError", "DataError", "InvalidResponse"):
        assert ours[name] is StoreError


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("MISCONF Errors writing to the AOF file: No space left on device", StoreUnavailableError),
        ("BUSY Redis is busy running a script", StoreUnavailableError),
        ("NOREPLICAS Not enough good replicas to write", StoreUnavailableError),
        ("OOM command not allowed when used memory > 'maxmemory'", StoreUnavailableError),
        ("WRONGTYPE Operation against a key holding the wrong kind of value", CorruptSessionError),
        ("DB index is out of range", ConfigurationError),
        ("unknown command 'EVALSHA'", StoreError),
    ],
)
def test_what_the_server_says_decides_where_no_class_does(said: str, kind: type[StoreError]) -> None:
    """By its first word, which is its code."""
    assert type(redis_error(redis, redis.ResponseError(said), name="here")) is kind


# -- keys


def test_a_session_is_one_key(on_redis: Served) -> None:
    """So it is removed whole, and any cluster can keep it; names may hold what patterns are made of."""
    names = ["a", "a*", "{a}", "a]b[", "*", "日記", "a:b", " "]
    with on_redis.make(prefix="t*[x]") as store, on_redis.server.client() as client:
        for name in names:
            add(store, 0, 2, session=name)
        ours = ["t*[x]:schema", "t*[x]:index"]
        assert sorted(client.keys()) == sorted([*ours, *(f"t*[x]:session:{name}" for name in names)])
        client.set("t*x:session:other", "not ours")
        assert store.sessions() == sorted(names)
        for name in names:
            store.delete(name)
        assert sorted(client.keys()) == [*sorted(ours), "t*x:session:other"]
        assert client.zrange("t*[x]:index", 0, -1) == ["ready"]


def test_stores_of_different_prefixes_do_not_see_each_other(on_redis: Served) -> None:
    """Two users of one database."""
    with on_redis.make(prefix="one") as one, on_redis.make(prefix="two") as two:
        add(one, 0, 2)
        assert (load(two), two.sessions()) == ([], [])
        two.delete("s")
        assert len(load(one)) == 2


def test_sessions_kept_by_a_newer_version_are_left_alone(on_redis: Served) -> None:
    """The number beside the sessions says how they are kept."""
    with on_redis.make() as store, on_redis.server.client() as client:
        add(store, 0)
        assert client.get("trimtab:schema") == "5"
        client.set("trimtab:schema", "6")
        with on_redis.make() as other:
            for call in (lambda: add(other, 1), lambda: asyncio.run(_sessions(other))):
                with pytest.raises(ConfigurationError, match=r"newer version of trimtab.*schema 6"):
                    call()
        assert client.hget("trimtab:session:s", "v") == "1"


def test_a_row_is_written_as_one_line_of_columns_and_its_body(on_redis: Served) -> None:
    """What a person reads who looks at Redis."""
    with on_redis.make() as store, on_redis.server.client() as client:
        add(store, 0, [event("hi", id="a\nb")])
        head, _, body = client.hget("trimtab:session:s", "e1").partition("\n")
    version, *columns, seal = json.loads(head)
    assert (version, columns) == (1, ["a\nb", "message", 1.5])
    assert re.fullmatch("[0-9a-f]{24}", seal)
    assert body == '{"data":{"message":{"content":"hi"}},"state":{}}'


async def _sessions(store: RedisStore) -> list[str]:
    try:
        return await store.asessions()
    finally:
        await store.aclose()


def test_a_key_of_another_kind_is_corrupt(on_redis: Served) -> None:
    """Somebody else wrote there."""
    with on_redis.make() as store, on_redis.server.client() as client:
        client.set("trimtab:session:s", "text")
        with pytest.raises(CorruptSessionError, match="one of our keys contains other data"):
            add(store, 0)


@pytest.mark.parametrize("row", ["", "no json", "[2]\n{}", "\udcff", '[2,"i","k",1.0,"s"]'])
def test_a_row_that_is_no_row_is_corrupt(on_redis: Served, row: str) -> None:
    """Whatever somebody put there."""
    with on_redis.make() as store, on_redis.server.client() as client:
        add(store, 0, 3)
        client.hset("trimtab:session:s", "e2", row.encode("utf-8", "surrogateescape"))
        with pytest.raises(CorruptSessionError) as raised:
            load(store)
        assert raised.value.version == 2


def test_a_script_the_server_forgot_is_sent_again(on_redis: Served) -> None:
    """After a restart, a failover or SCRIPT FLUSH; nobody notices."""
    with on_redis.make() as store, on_redis.server.client() as client:
        add(store, 0)
        client.script_flush()
        assert add(store, 1).version == 2
        client.script_flush()
        assert len(load(store)) == 2


def test_a_connection_that_was_closed_while_idle_is_made_again(on_redis: Served) -> None:
    """A server with a `timeout` closes such; no call fails for it, in threads and in tasks."""
    with on_redis.make() as store, on_redis.server.client() as client:
        add(store, 0)
        client.client_kill_filter(_type="normal", skipme=True)
        assert add(store, 1).version == 2

        async def awaited() -> None:
            async with on_redis.make() as other:
                await other.asessions()
                client.client_kill_filter(_type="normal", skipme=True)
                assert await other.asessions() == ["s"]

        asyncio.run(awaited())


# -- pages


@pytest.mark.parametrize("count", [PAGE_EVENTS - 1, PAGE_EVENTS, PAGE_EVENTS + 1, 2 * PAGE_EVENTS + 1])
def test_pages_have_no_seam(on_redis: Served, count: int) -> None:
    """Loads and searches of one page more or less."""
    with on_redis.make() as store:
        add(store, 0, count)
        versions = list(range(1, count + 1))
        assert [one.version for one in load(store)] == versions
        assert [one.version for one in load(store, newest_first=True)] == versions[::-1]
        limit = PAGE_EVENTS + 1
        assert [one.version for one in load(store, limit=limit)] == versions[:limit]
        found = store.search(SearchRequest(session="s", terms=("number",), limit=count))
        assert sorted(one.version for one in found) == versions
        found = store.search(SearchRequest(session="s", terms=("number", "0"), limit=2))
        assert [one.version for one in found] == [1, 2]  # what stands beside the best, too


@pytest.mark.parametrize("again", [0, 3])
def test_a_session_removed_between_two_pages_is_no_corruption(on_redis: Served, again: int) -> None:
    """The load begins again: what it answers was there at one moment."""
    with on_redis.make(scrub_on_delete=False) as store, on_redis.server.client() as client:
        add(store, 0, 2 * PAGE_EVENTS)
        load(store)  # the server knows the script by now
        operations = RedisOperations("trimtab", redis=redis, scrub_seconds=1)
        raw = redis.Redis.from_url(on_redis.url(None))
        asked: list[Command] = []

        def answer(step: Command) -> Any:
            asked.append(step)
            found = raw.execute_command(*step.words)
            if len(asked) == 1:
                client.delete("trimtab:session:s")
                for at in range(again):
                    add(store, at)
            return found

        events = run_steps(operations.load(LoadRequest(session="s")), answer)
        assert len(events) == again
        raw.close()


def test_what_is_added_during_a_load_is_not_part_of_it(on_redis: Served) -> None:
    """A load ends, however fast others append."""
    with on_redis.make() as store:
        add(store, 0, 2 * PAGE_EVENTS)
        load(store)  # the server knows the script by now
        operations = RedisOperations("trimtab", redis=redis, scrub_seconds=1)
        raw = redis.Redis.from_url(on_redis.url(None))
        commands = 0

        def answer(step: Command) -> Any:
            nonlocal commands
            commands += 1
            found = raw.execute_command(*step.words)
            add(store, 2 * PAGE_EVENTS + commands - 1)
            return found

        events = run_steps(operations.load(LoadRequest(session="s")), answer)
        assert len(events) == 2 * PAGE_EVENTS
        assert commands == 2
        raw.close()


# -- the index


def _during(on_redis: Served, steps: Any, other: Callable[[], None], *, after: str) -> None:
    """Run an operation, and something else after its first command with these words."""
    raw = redis.Redis.from_url(on_redis.url(None))
    waiting = [other]

    def answer(step: Command) -> Any:
        found = raw.execute_command(*step.words)
        if waiting and after in step.words:
            waiting.pop()()
        return found

    with closing(raw):
        run_steps(steps, answer)
    assert not waiting


def _fields(on_redis: Served) -> str:
    with on_redis.server.client() as client:
        return " ".join(client.hkeys("trimtab:session:s"))


def test_what_is_redacted_while_it_is_indexed_does_not_come_back(on_redis: Served) -> None:
    """The words were read before the redaction, and are not written after it."""
    with on_redis.make(scrub_on_delete=False) as store:
        add(store, 0, [event("krakynquon"), *(event("otter") for _ in range(FILL_EVENTS - 2))])
        old = load(store, limit=1)[0]
        new = replace(old, data={"message": {"content": "redacted"}})
        operations = RedisOperations("trimtab", redis=redis, scrub_seconds=1)
        request = AppendRequest(session="s", expected_version=FILL_EVENTS - 1, events=[event("otter")])
        _during(
            on_redis,
            operations.append(request),
            lambda: add(store, FILL_EVENTS, rewrites=[new]) and None,
            after="span",
        )
        assert "krakynquon" not in _fields(on_redis)
        for term, versions in (("krakynquon", []), ("redact", [1]), ("otter", [FILL_EVENTS])):
            found = store.search(SearchRequest(session="s", terms=question_terms(term), limit=1))
            assert [one.version for one in found] == versions


def test_a_redaction_decided_on_what_another_rewrote_meanwhile_is_a_conflict(on_redis: Served) -> None:
    """Else the words of the text between the two would stay in the index."""
    with on_redis.make(scrub_on_delete=False) as store:
        add(store, 0, FILL_EVENTS)
        old = load(store, limit=1)[0]
        between, last = (replace(old, data={"message": {"content": text}}) for text in ("heron", "gone"))
        operations = RedisOperations("trimtab", redis=redis, scrub_seconds=1)
        request = AppendRequest(
            session="s", expected_version=FILL_EVENTS + 1, events=[event()], rewrites=[last]
        )
        with pytest.raises(VersionConflictError):
            _during(
                on_redis,
                operations.append(request),
                lambda: add(store, FILL_EVENTS, rewrites=[between]) and None,
                after="versions",
            )
        add(store, FILL_EVENTS + 1, rewrites=[last])
        assert "heron" not in _fields(on_redis)
        assert "tgon" in _fields(on_redis)


def test_sessions_of_the_first_schema_are_brought_into_an_index(on_redis: Served) -> None:
    """The number beside them says so from the first append on; until then an older trimtab may go on."""
    with on_redis.server.client() as client, on_redis.make() as store:
        add(store, 0, 3)
        client.set("trimtab:schema", "1")
        with on_redis.make() as other:
            assert len(load(other)) == 3
            assert client.get("trimtab:schema") == "1"
            add(other, 3)
            assert client.get("trimtab:schema") == "5"


def test_an_index_that_knew_no_frequencies_is_made_anew(on_redis: Served) -> None:
    """As schema 2 had it; a redaction takes all of it away, and appends fill the new one."""
    with on_redis.server.client() as client, on_redis.make() as store:
        add(store, 0, [event("heron krakynquon"), *(event(f"otter {at}") for at in range(2 * FILL_EVENTS))])
        key = "trimtab:session:s"
        client.hdel(key, *(one for one in client.hkeys(key) if one.startswith("t")))
        client.hset(key, mapping={"x": "200", "tkrakynquon": " 0", "tkrakynquon 0": "\0\1"})
        client.set("trimtab:schema", "2")
    with on_redis.make() as store:
        found = store.search(SearchRequest(session="s", terms=("krakynquon",), limit=1))
        assert [one.version for one in found] == [1]
        assert "tkrakynquon 0" in _fields(on_redis)
    with on_redis.server.client() as client, on_redis.make() as store:
        client.hset(key, mapping={"x": "200", "told": " 0", "told 0": "\0\1"})
        (old,) = load(store, limit=1)
        new = replace(old, data={"message": {"content": "redacted"}})
        add(store, 2 * FILL_EVENTS + 1, rewrites=[new])
        assert "told" not in _fields(on_redis)
        assert "krakynquon" not in _fields(on_redis)
        found = store.search(SearchRequest(session="s", terms=("redact",), limit=1))
        assert [one.version for one in found] == [1]


def test_an_index_of_words_with_their_accents_is_made_anew(on_redis: Served) -> None:
    """As schema 3 had it: where an older trimtab left off, and by the next search or append."""
    key = "trimtab:session:s"
    for writes in (False, True):
        with on_redis.server.client() as client, on_redis.make() as store:
            client.delete(key)
            add(
                store, 0, [event("Zoë met a heron"), *(event(f"otter {at}") for at in range(2 * FILL_EVENTS))]
            )
            posting = client.hget(key, "tzoe 0")
            old = {"x": client.hget(key, "x").removeprefix("4 "), "tzoë": " 0", "tzoë 0": posting}
            client.hdel(key, "tzoe", "tzoe 0")
            client.hset(key, mapping=old)
            client.set("trimtab:schema", "3")
        with on_redis.make() as store:
            if writes:
                add(store, 2 * FILL_EVENTS + 1)
            for word in ("zoe", "Zoë"):
                found = store.search(SearchRequest(session="s", terms=question_terms(word), limit=1))
                assert [one.version for one in found] == [1]
            assert "tzoë" not in _fields(on_redis)
            assert "tzoe" in _fields(on_redis)


def test_a_message_of_very_many_words_is_indexed_alone(on_redis: Served) -> None:
    """The server answers nobody while words are put into the index, so that few are at once."""
    words = [f"word{at:05d}" for at in range(FILL_TERMS + 1)]
    with on_redis.make() as store:
        add(store, 0, [event(" ".join(words)), *(event("otter") for _ in range(FILL_EVENTS - 1))])
        for word, versions in ((words[0], [1]), (words[-1], [1]), ("otter", [FILL_EVENTS])):
            found = store.search(SearchRequest(session="s", terms=question_terms(word), limit=1))
            assert [one.version for one in found] == versions


# -- what the server refuses


@pytest.fixture
def own_redis() -> Iterator[servers.RedisServer]:
    """Give a Redis without files that a test may set as it likes."""
    servers.redis_server()
    made = servers.make_redis("--save", "", "--appendonly", "no")
    yield made
    made.stop()


@pytest.mark.server
def test_a_certificate_that_nobody_signed_is_a_wrong_setting(tmp_path: Path) -> None:
    """Asking again does not mend it; the one who signed it can be named."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
    ]
    subprocess.run([*made, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    port = servers.free_port()
    files = ("--tls-cert-file", str(certificate), "--tls-key-file", str(key))
    try:
        server = servers.make_redis("--tls-port", str(port), *files, "--tls-auth-clients", "no", "--save", "")
    except servers.NoServer as reason:
        pytest.skip(f"no Redis with TLS: {reason}")
    try:
        store = RedisStore(f"rediss://:trimtab@localhost:{port}/0")
        with pytest.raises(ConfigurationError, match=r"ssl_ca_certs=/path/to/ca\.pem"):
            store.sessions()
        trusted = RedisStore(f"rediss://:trimtab@localhost:{port}/0?ssl_ca_certs={certificate}")
        assert trusted.sessions() == []
    finally:
        server.stop()


def test_a_server_that_is_full_is_unavailable_and_stores_nothing_by_half(own_redis: Any) -> None:
    """And goes on when it has room again."""
    with RedisStore(own_redis.url) as store, own_redis.client() as client:
        add(store, 0, 3)
        client.config_set("maxmemory", client.info("memory")["used_memory"])
        request = AppendRequest(session="s", expected_version=3, events=[event("x" * 10_000), event("y")])
        with pytest.raises(StoreUnavailableError, match="maxmemory"):
            store.append(request)
        assert len(load(store)) == 3
        store.delete("another")
        client.config_set("maxmemory", 0)
        assert store.append(request).version == 5


def test_a_process_that_begins_while_the_server_is_full_may_read_and_delete(own_redis: Any) -> None:
    """Its first use writes nothing; that is what makes room again."""
    with RedisStore(own_redis.url) as store:
        add(store, 0, 3)
    with own_redis.client() as client, RedisStore(own_redis.url) as store:
        client.script_flush()
        client.config_set("maxmemory", 1)
        assert len(load(store)) == 3
        assert len(store.search(SearchRequest(session="s", terms=("number",), limit=9))) == 3
        assert store.sessions() == ["s"]
        with pytest.raises(StoreUnavailableError, match="maxmemory"):
            add(store, 3)
        store.delete("s")
        assert store.sessions() == []
        client.config_set("maxmemory", 0)


def test_a_process_that_begins_at_a_replica_may_read(own_redis: Any) -> None:
    """Also where nobody ever noted how sessions are kept: nothing was written with that prefix."""
    with RedisStore(own_redis.url) as store:
        add(store, 0, 3)
    with own_redis.client() as client:
        client.replicaof("127.0.0.1", servers.free_port())
        with RedisStore(own_redis.url) as store, RedisStore(own_redis.url, prefix="other") as other:
            assert len(load(store)) == 3
            assert other.sessions() == []
            with pytest.raises(StoreUnavailableError, match=r"(?i)read ?only"):
                add(other, 0)
        client.replicaof("NO", "ONE")


def test_a_server_may_be_reached_by_a_socket_of_the_file_system() -> None:
    """In threads and in tasks."""
    servers.redis_server()
    with tempfile.TemporaryDirectory(prefix="tt", dir="/tmp") as folder:
        path = f"{folder}/redis.sock"
        made = servers.make_redis("--save", "", "--appendonly", "no", "--unixsocket", path)
        password = urlsplit(made.url).password
        try:
            with RedisStore(f"unix://:{password}@{path}?db=1") as store:
                assert add(store, 0, 2).version == 2
                assert asyncio.run(_sessions(store)) == ["s"]
        finally:
            made.stop()


@pytest.mark.parametrize(
    ("policy", "maxmemory", "is_refused"),
    [
        ("allkeys-lru", "100mb", True),
        ("allkeys-random", "100mb", True),
        ("allkeys-lru", "0", False),
        ("volatile-lru", "100mb", False),
        ("noeviction", "100mb", False),
    ],
)
def test_a_server_that_removes_keys_is_refused(
    own_redis: Any, policy: str, maxmemory: str, is_refused: bool
) -> None:
    """At first use. Ours have no expiry, so policies that remove those that have do no harm."""
    with own_redis.client() as client:
        client.config_set("maxmemory-policy", policy)
        client.config_set("maxmemory", maxmemory)
    with RedisStore(own_redis.url) as store:
        if is_refused:
            with pytest.raises(ConfigurationError, match=rf"{policy}.*noeviction"):
                add(store, 0)
        else:
            add(store, 0)


def test_a_replica_is_unavailable_for_writing(own_redis: Any) -> None:
    """After a failover the address may point at one for a while."""
    with RedisStore(own_redis.url) as store, own_redis.client() as client:
        add(store, 0)
        client.replicaof("127.0.0.1", servers.free_port())
        with pytest.raises(StoreUnavailableError, match=r"(?i)read ?only"):
            add(store, 1)
        client.replicaof("NO", "ONE")
        assert add(store, 1).version == 2


RIGHTS = ["+@connection", "+@read", "+@write", "+@scripting", "+info"]
"""What docs/guides/deployment.md says a user needs."""


def test_a_user_who_may_not_rewrite_files_is_told_so(on_redis: Served) -> None:
    """The session is removed; what is left to do is said. Without scrubbing nothing of it is asked."""
    url = on_redis.url(None).replace(":trimtab@", "app:x@")
    with on_redis.server.client() as client:

        def allow(*commands: str) -> None:
            client.acl_setuser(
                "app", enabled=True, reset=True, passwords=["+x"], keys=["trimtab:*"], commands=list(commands)
            )

        allow(*RIGHTS)
        with RedisStore(url) as store:
            add(store, 0)
            assert store.search(SearchRequest(session="s", terms=("number",), limit=1))
            assert store.sessions() == ["s"]
            with pytest.raises(ConfigurationError, match="scrub_on_delete=False"):
                store.delete("s")
            assert load(store) == []
        with RedisStore(url, scrub_on_delete=False) as store:
            add(store, 0)
            store.delete("s")
        allow(*RIGHTS, "+bgrewriteaof", "+bgsave", "+config|get")
        with RedisStore(url) as store:
            add(store, 0)
            store.delete("s")
        allow("-@all")
        with RedisStore(url) as store, pytest.raises(ConfigurationError, match="ACL"):
            store.sessions()
        client.acl_deluser("app")


# -- files


def test_a_server_without_files_is_given_none(own_redis: Any) -> None:
    """A cache that keeps nothing on disk is not made to by a deletion."""
    with RedisStore(own_redis.url) as store:
        add(store, 0)
        store.delete("s")
        assert not list(own_redis.data.glob("*.rdb"))


@pytest.mark.parametrize("save", ["3600 1", ""])
def test_snapshots_hold_no_byte_of_a_deleted_session(own_redis: Any, save: str) -> None:
    """Where they are configured, and where somebody took one by hand."""
    secret = "krakynquon"  # no three hexadecimal digits in a row: Redis packs what stood before
    with RedisStore(own_redis.url) as store, own_redis.client() as client:
        client.config_set("save", save)
        add(store, 0, [event(secret)])
        client.save()
        snapshot = own_redis.data / "dump.rdb"
        assert secret.encode() in snapshot.read_bytes()
        store.delete("s")
        assert secret.encode() not in snapshot.read_bytes()


def test_a_file_that_cannot_be_written_is_unavailable(own_redis: Any) -> None:
    """The session is gone from memory, and the store says that a file may still hold it."""
    with RedisStore(own_redis.url, scrub_timeout_seconds=5) as store, own_redis.client() as client:
        add(store, 0)
        client.config_set("save", "3600 1")
        client.config_set("stop-writes-on-bgsave-error", "no")
        snapshot = own_redis.data / "dump.rdb"
        snapshot.mkdir()
        with pytest.raises(StoreUnavailableError, match=r"BGSAVE failed.*scrub"):
            store.delete("s")
        snapshot.rmdir()
        store.scrub()


def test_a_scrub_waits_for_what_is_being_written(on_redis: Served) -> None:
    """A file begun before the deletion still holds the text: another one is asked for after it."""
    secret = "krakynquon"  # no three hexadecimal digits in a row: Redis packs what stood before
    with on_redis.make() as store, on_redis.server.client() as client:
        add(store, 0, [event(secret), *(event(os.urandom(50_000).hex()) for _ in range(100))])
        client.config_set("rdb-key-save-delay", 300_000)
        client.bgrewriteaof()
        servers.until(lambda: client.info("persistence")["aof_rewrite_in_progress"], "the rewrite")
        client.config_set("rdb-key-save-delay", 0)
        store.delete("s")
        assert on_redis.files_with(secret) == []


def test_a_file_that_is_not_written_in_time_is_unavailable(own_redis: Any) -> None:
    """Neither one that another began, so that ours cannot begin, nor ours."""
    with RedisStore(own_redis.url, scrub_timeout_seconds=0.1) as store, own_redis.client() as client:
        add(store, 0, 20)
        for at in range(20):
            add(store, 0, [event(os.urandom(50_000).hex())], session=f"s{at}")
        client.config_set("save", "3600 1")
        client.config_set("rdb-key-save-delay", 100_000)
        for begun in ("end", "begin"):
            with pytest.raises(StoreUnavailableError, match=rf"did not {begun} BGSAVE within 0\.1 seconds"):
                store.delete("s")
        assert load(store) == []


# -- the list of sessions


def _put(store: Any, name: str, *, time: float = 1.0, **labels: Any) -> None:
    one = replace(event(), time=time)
    store.append(AppendRequest(session=name, expected_version=0, events=[one], labels=Labels(**labels)))


def _members(client: Any, start: str) -> list[str]:
    return [one for one in client.zrange("trimtab:index", 0, -1) if one.startswith(start)]


def _stale(client: Any, name: str) -> None:
    """Have a session end at once for the list, as where a process was killed or the session begun anew."""
    client.zadd("trimtab:index", {f"x\0{5:020.6f}\0{name}": 0})


def _told_wrongly(name: str) -> Any:
    yield Command(("ZADD", "trimtab:index", 0, f"x\0{5:020.6f}\0{name}"))


def test_expiry_ends_where_members_tell_of_sessions_that_live(on_redis: Served) -> None:
    """Those that are wrong leave the list, one whose end rounds to now stays; what has ended goes."""
    with on_redis.make(scrub_on_delete=False) as store, on_redis.server.client() as client:
        for name in ("a", "b", "rounds"):
            _put(store, name, time=1000.0, ttl=None if name == "a" else 10.0)
        for name in ("a", "b", "never"):
            _stale(client, name)
        now = 1009.9999999
        assert store.expire(now=now, limit=1).to_dict() == Receipt(more=False).to_dict()
        assert [one.rpartition("\0")[2] for one in _members(client, "x\0")] == ["b", "rounds"]
        _put(store, "ended", time=1.0, ttl=10.0)
        _stale(client, "ended")
        assert store.expire(now=now, limit=1).sessions == 1
        assert len(_members(client, "x\0")) == 2
        assert store.expire(now=1010.0).sessions == 2
        assert _members(client, "x\0") == []


def test_no_member_of_the_list_stays_of_a_key_that_went_with_its_session(on_redis: Served) -> None:
    """In the same step; what is noted for the next rewrite of the files is taken back with that."""
    with on_redis.make() as inner, on_redis.server.client() as client:
        store = encrypted(inner, KEYS)
        for name, owner in (("a", "ada"), ("b", "bob")):
            given = Labels(owner=owner, ttl=5.0 if owner == "bob" else None)
            store.append(AppendRequest(session=name, expected_version=0, events=[event()], labels=given))
        assert len(client.zrange("trimtab:index", 0, -1)) > 8
        assert (store.delete(owner="ada").sessions, store.expire(now=100.0).sessions) == (1, 1)
        assert client.zrange("trimtab:index", 0, -1) == ["ready"]
        assert client.keys("*:session:*") == []
        assert client.get("trimtab:removed") is None


def test_what_a_server_lost_is_lost_and_what_came_after_is_listed(on_redis: Served) -> None:
    """Also by an open process, which noted long ago how it keeps sessions."""
    with on_redis.make(scrub_on_delete=False) as store, on_redis.server.client() as client:
        assert store.sessions() == []
        _put(store, "lost", owner="ada")
        client.flushdb()
        assert store.sessions() == []
        assert client.keys() == []
        for name in ("x", "y"):
            _put(store, name, owner="ada")
        with on_redis.make(scrub_on_delete=False) as other:
            assert other.sessions() == ["x", "y"]
        client.delete("trimtab:index")
        assert store.delete(owner="ada").sessions == 2


def test_sessions_of_an_older_process_are_listed_while_one_may_be_running(on_redis: Served) -> None:
    """By each process that begins: the older one does not list what it begins."""
    with on_redis.make(scrub_on_delete=False) as store, on_redis.server.client() as client:
        for name, schema in (("a", None), ("b", 4), ("c", None)):
            if schema is not None:
                client.set("trimtab:schema", schema)
            with on_redis.make(scrub_on_delete=False) as other:
                _put(other, name)
        assert store.sessions() == ["a", "b", "c"]
        for name in "ab":
            client.hdel(f"trimtab:session:{name}", "u", "g", "k", "o")
            client.zrem("trimtab:index", *(one for one in _members(client, "") if one.endswith(name)))
        assert store.sessions() == ["c"]
        with on_redis.make(scrub_on_delete=False) as other:
            assert other.sessions() == ["a", "b", "c"]
        assert 0 < client.ttl("trimtab:older") <= 86_400


def test_a_condition_beside_the_index_is_looked_through_in_large_steps(on_redis: Served) -> None:
    """However few sessions meet it, and however short the page is."""
    with on_redis.make(scrub_on_delete=False) as store, on_redis.server.client() as client:
        for at in range(300):
            _put(store, f"s{at:03}", time=float(at), owner="ada", metadata={"last": at == 299})
        for asked in ({"owner": "ada"}, {"used_after": -1.0}):
            before = client.info("commandstats")["cmdstat_evalsha"]["calls"]
            assert store.sessions(metadata={"last": True}, limit=1, **asked) == ["s299"]
            assert client.info("commandstats")["cmdstat_evalsha"]["calls"] - before <= 24


# -- clusters


@pytest.fixture
def cluster() -> Iterator[list[servers.RedisServer]]:
    """Give three primaries that share the slots."""
    servers.redis_server()
    options = ("--cluster-enabled", "yes", "--save", "", "--appendonly", "yes")
    nodes = [servers.make_redis(*options) for _ in range(3)]
    bounds = [0, 5461, 10923, 16384]
    for at, node in enumerate(nodes):
        with node.client() as client:
            client.execute_command("CLUSTER ADDSLOTSRANGE", bounds[at], bounds[at + 1] - 1)
            for other in nodes:
                port = int(other.url.rpartition(":")[2].partition("/")[0])
                client.execute_command("CLUSTER MEET", "127.0.0.1", port)
    for node in nodes:
        with node.client() as client:
            servers.until(
                lambda client=client: (
                    client.execute_command("CLUSTER INFO")["cluster_state"] == "ok"
                    and len(client.execute_command("CLUSTER NODES")) == 3
                ),
                "the cluster",
            )
    yield nodes
    for node in nodes:
        node.stop()


@pytest.mark.long
def test_a_cluster_keeps_sessions_on_all_its_nodes(cluster: list[servers.RedisServer]) -> None:
    """Appends, loads, searches, lists and deletions find their node; files are rewritten on every one."""
    names = [f"s{at}" for at in range(12)]
    with RedisStore(cluster[0].url, cluster=True) as store:
        for name in names:
            add(store, 0, [event(f"kraken-{name}"), event("two")], session=name)
            assert contents(load(store, name)) == [f"kraken-{name}", "two"]
        assert store.sessions() == sorted(names)
        assert store.load_newest([*names, "none"]) == {name: load(store, name)[-1] for name in names}
        kept = []
        for node in cluster:
            with node.client() as client:
                kept.append(len(client.keys("*:session:*")))
        assert min(kept) > 0
        assert sum(kept) == len(names)
        old = load(store, "s1")[0]
        add(store, 2, session="s1", rewrites=[replace(old, data={"message": {"content": "redacted"}})])
        assert contents(load(store, "s1"))[0] == "redacted"
        store.delete("s2")
        for name, ttl in (("t1", 1.0), ("t2", None)):
            _put(store, name, owner="ada", ttl=ttl)
        store._connections.run(_told_wrongly("t2"))
        ended = store.expire(now=9.0)
        assert (ended.sessions, ended.messages, ended.more) == (1, 1, False)
        assert store.sessions(owner="ada") == ["t2"]
        assert store.delete(owner="ada").sessions == 1
        safe = encrypted(store, KEYS)  # a session and its key are in two slots
        for at in range(50):
            _put(safe, f"e{at}", owner="eve")
        assert len(store.sessions(prefix="trimtab:key:")) == 50
        said = count_requests(store)
        assert safe.delete(owner="eve").sessions == 50
        assert len(said) <= 6 * 50 + 20, len(said)
        assert store.sessions(prefix="trimtab:key:") == []

    async def awaited() -> list[str]:
        async with RedisStore(cluster[1].url, cluster=True) as store:
            await store.aappend(AppendRequest(session="s2", expected_version=0, events=[event()]))
            await store.adelete("s2")
            return await store.asessions()

    assert asyncio.run(awaited()) == sorted({*names} - {"s2"})


@pytest.mark.parametrize(
    "option", ["decode_responses=true", "encoding=zz", "retry=3", "retry_on_timeout=true"]
)
def test_an_option_that_would_change_what_answers_are_is_refused_when_the_store_is_made(option: str) -> None:
    """It was an AttributeError or a LookupError at the first use."""
    with pytest.raises(ConfigurationError, match=f"may not set {option.partition('=')[0]},"):
        RedisStore(f"redis://127.0.0.1:1/0?{option}")
