"""kill -9 of orders about sessions at random moments, and what must be there afterwards."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import redis as redis_package

from tests import servers
from tests.stores import orders
from tests.stores.crash import child
from tests.stores.orders import BOTH, LONG, NEXT, OWNER, carry_out, open_with
from tests.stores.served import load
from tests.stores.stores import Place
from tests.stores.writer import KEYS
from trimtab import Session
from trimtab.stores import EncryptedStore, KeyRing, SearchRequest, Store

RECORDS = "trimtab:key:"


@dataclass
class Kept:
    """A place, and a copy of it that is put back before each kill."""

    place: Place
    restore: Callable[[], None]
    files_with: Callable[[list[str]], list[str]]
    """Lists those of some words that stand in the files of the place."""


@dataclass
class Died:
    """What became of the kills of one order."""

    inside: int = 0
    outside: int = 0
    before: int = 0
    """Of those inside: how many found nothing done yet."""
    within: int = 0
    """How many found part of it done."""
    after: int = 0
    """How many found all of it done, before the process could say so."""

    def __str__(self) -> str:
        kills = self.inside + self.outside
        return f"{kills} kills, {self.inside} inside: {self.before} / {self.within} / {self.after}"


@dataclass
class Whole:
    """What a place has before an order: lines of each session, and what else must not change."""

    lines: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    views: dict[str, list[Any]] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)
    """A word in the text of each session, and in no other's."""
    wrapped: dict[str, str] = field(default_factory=dict)
    """What the key record of each session has of its key."""

    @property
    def meant(self) -> set[str]:
        """Sessions of the owner."""
        return {name for name in self.lines if name.startswith(OWNER)}

    def messages(self, names: set[str]) -> int:
        """Count the messages of sessions."""
        return sum('"kind":"message"' in line for name in names for line in self.lines[name])


def fill(place: Place, sessions: int) -> Whole:
    """Make sessions of an owner, one of them long, and a few of others."""
    whole, chance = Whole(), random.Random(sessions)
    with open_place(place, keys=KEYS) as store:
        names = [LONG, *(f"{OWNER}-{at:03}" for at in range(sessions)), *(f"bob-{at}" for at in range(5))]
        for at, name in enumerate(names):
            owner = name.partition("-")[0]
            word = whole.words[name] = "".join(chance.choice("bcdfghjklmnp") for _ in range(18))
            ttl = 1e8 if owner == OWNER else None
            session = Session(900, store=store, id=name, owner=owner, metadata={"n": at % 3}, ttl=ttl)
            said = [f"{word} is number {number}" for number in range(700 if name == LONG else 1 + at % 4)]
            session.extend([{"role": "user", "content": text} for text in said])
        for line in store.export():
            whole.lines[json.loads(line)["session"]].append(line)
        for name in (LONG, names[1], names[-1]):
            whole.views[name] = Session.open(store, name).messages()
        whole.wrapped = {one: row.data["wrapped"] for one, (_, row) in _records(store).items()}
    assert set(whole.lines) == set(names)
    return whole


@contextmanager
def open_place(place: Place, *, keys: KeyRing = BOTH) -> Iterator[Store]:
    """Open a place with its own options, as who repeats an order does."""
    assert place.url is not None
    store = open_with(place.url, keys)
    try:
        yield store
    finally:
        store.close()


def _records(store: Store) -> dict[str, tuple[str, Any]]:
    """Read the key records of an encrypted store: their names and newest events, by session."""
    if not isinstance(store, EncryptedStore):
        return {}
    inner = store.keeps_labels_in
    rows = {str(name): load(inner, name)[-1] for name in inner.sessions(prefix=RECORDS)}
    found = {row.data["session"]: (name, row) for name, row in rows.items()}
    assert len(found) == len(rows), "one record a session"
    return found


# Copies of a place


def keep(place: Place, folder: Path) -> Kept:
    """Take a copy of a place."""
    url = (place.url or "").removeprefix("encrypted+")
    kind = urlsplit(url).scheme
    return {"sqlite": _keep_sqlite, "postgresql": _keep_postgres, "redis": _keep_redis}[kind](
        place, url, folder
    )


def _keep_sqlite(place: Place, url: str, folder: Path) -> Kept:
    path = Path(url.removeprefix("sqlite:///"))
    copy = shutil.copy(path, folder / "copy")

    def restore() -> None:
        for one in path.parent.glob(f"{path.name}*"):
            one.unlink()
        shutil.copy(copy, path)

    def files_with(words: list[str]) -> list[str]:
        return _grep(words, *path.parent.glob(f"{path.name}*"))

    return Kept(place, restore, files_with)


def _keep_postgres(place: Place, url: str, folder: Path) -> Kept:
    server, name = servers.postgres(), urlsplit(url).path.removeprefix("/")
    place.settle()
    server.ask(f"CREATE DATABASE {name}_copy TEMPLATE {name}")

    def restore() -> None:
        server.ask(f"DROP DATABASE {name} WITH (FORCE)")
        server.ask(f"CREATE DATABASE {name} TEMPLATE {name}_copy")

    def files_with(words: list[str]) -> list[str]:
        server.ask("CHECKPOINT", database=name)
        ((oid,),) = server.ask("SELECT oid::text FROM pg_database WHERE datname = %s", name)
        return _grep(words, server.data / "base" / oid)

    return Kept(place, restore, files_with)


def _keep_redis(place: Place, url: str, folder: Path) -> Kept:
    server = servers.redis_server()
    with redis_package.Redis.from_url(url) as client:
        copy = {key: client.dump(key) for key in client.scan_iter()}

    def restore() -> None:
        with redis_package.Redis.from_url(url) as client, client.pipeline() as pipe:
            pipe.flushdb()
            for key, dump in copy.items():
                pipe.restore(key, 0, dump)
            pipe.execute()

    def files_with(words: list[str]) -> list[str]:
        files = server.data / "appendonlydir"
        manifest = next(files.glob("*.manifest"))
        servers.until(
            lambda: len(list(files.iterdir())) <= 1 + manifest.read_text().count("file "),
            "the end of old files",
        )
        return _grep(words, files)

    return Kept(place, restore, files_with)


def _grep(words: list[str], *places: Path) -> list[str]:
    """Say which words stand in files."""
    if not words:
        return []
    command = ["grep", "-rohaF", "-f", "-", *map(str, places)]
    done = subprocess.run(command, input="\n".join(words), capture_output=True, text=True, check=False)
    return sorted(set(done.stdout.split()))


# Kills


def kill_orders(kept: Kept, whole: Whole, order: str, folder: Path, *, kills: int, seed: int) -> Died:
    """Kill so many processes in the middle of an order, and look after each."""
    chance, died, file = random.Random(seed), Died(), folder / "export"
    seconds = min(_run(kept, order, file, None) or 0.0 for _ in range(3))
    while died.inside < kills:
        assert died.outside <= 20 * kills + 100, died
        # sooner rather than later: the longest part of many is that files are written anew
        took = _run(kept, order, file, seconds * chance.random() ** 2)
        if took is not None:
            died.outside += 1
            seconds = min(seconds, took)  # the machine was busy while it was measured
            continue
        died.inside += 1
        CHECKS[order](kept, whole, died, file)
    return died


def _run(kept: Kept, order: str, file: Path, delay: float | None) -> float | None:
    """Run an order in a process that is killed so many seconds after it began; None: before its end.

    The process says `begun` as it calls the store, and `done` as that returned: who never said the second was
    killed inside.
    """
    kept.restore()
    file.unlink(missing_ok=True)
    with child(orders.forked, str(kept.place.url), order, str(file)) as (process, lines):
        begun = lines.readline()
        if delay is not None:
            time.sleep(delay)
            process.kill()
        rest = lines.read().split()
    assert begun == b"begun\n"
    kept.place.settle()
    return float(rest[1]) if rest else None


# What must be there


def _lines_of(store: Store) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for line in store.export():
        found[json.loads(line)["session"]].append(line)
    return found


def _check_whole(store: Store, whole: Whole, *, unreadable: str | None = None) -> set[str]:
    """Insist that each session is as before or gone altogether; returns those that are there."""
    lines = _lines_of(store)
    there = set(lines)
    for name, told in lines.items():
        if name == unreadable and "error" in json.loads(told[-1]):
            assert "its key" in json.loads(told[-1])["error"], told
        else:
            assert told == whole.lines[name], name
    for asked, wanted in (
        ({}, there),
        ({"owner": OWNER}, there & whole.meant),
        ({"owner": "bob"}, there - whole.meant),
        ({"used_before": orders.FAR}, there),
        ({"prefix": f"{OWNER}-00"}, {one for one in there if one.startswith(f"{OWNER}-00")}),
    ):
        listed = store.sessions(**asked)
        assert (set(listed), len(listed)) == (wanted, len(wanted)), asked
    labelled = [name for n in range(3) for name in store.sessions(metadata={"n": n})]
    assert sorted(labelled) == sorted(there)
    for name in whole.views:
        if name == unreadable and name in there and "error" in json.loads(lines[name][-1]):
            continue
        found = store.search(SearchRequest(session=name, terms=(whole.words[name],), limit=1))
        assert bool(found) == (name in there)
        if name in there:
            assert Session.open(store, name).messages() == whole.views[name]
    return there


def _note(died: Died, done: int, all_of_it: int) -> None:
    if done == 0:
        died.before += 1
    elif done < all_of_it:
        died.within += 1
    else:
        died.after += 1


def _check_removal(kept: Kept, whole: Whole, died: Died, file: Path, *, order: str, meant: set[str]) -> None:
    """After a kill each session is whole or gone; the order asked again removes the rest, and says so."""
    alone = LONG if order == "delete one" else None
    with open_place(kept.place) as store:
        there = _check_whole(store, whole, unreadable=alone)
        assert there >= set(whole.lines) - meant
        rest = there & meant
        if _check_keys(store, there, without=alone):
            _note(died, len(meant - rest), len(meant))
        else:
            died.within += 1  # the key is gone, the rows are not
        with open_place(kept.place) as again:
            receipt = carry_out(again, order, file)
        told = {"sessions": len(rest), "messages": whole.messages(rest), "left": {}, "more": False}
        assert {**receipt, **told} == receipt, (receipt, told)
        assert _check_whole(store, whole) == set(whole.lines) - meant
        _check_keys(store, set(whole.lines) - meant)
        assert receipt["not_erased"] is None
        gone = [whole.words[name] for name in meant]
        gone += [whole.wrapped[name] for name in meant if name in whole.wrapped]
        assert kept.files_with(gone) == []


def _check_keys(store: Store, there: set[str], *, without: str | None = None) -> bool:
    """Insist on one key record a session, and no other; that of one may be gone: tells whether it is not."""
    if not isinstance(store, EncryptedStore):
        return True
    records = set(_records(store))
    assert records <= there
    assert there - records <= {without}
    return records == there


def _check_export(kept: Kept, whole: Whole, died: Died, file: Path) -> None:
    """What is resumed behind the last whole line has every line once."""
    wanted = [line for name in sorted(whole.meant) for line in whole.lines[name]]
    had = file.read_text(encoding="utf-8") if file.exists() else ""
    lines = had.split("\n")
    assert lines[:-1] == wanted[: len(lines) - 1]
    _note(died, len(lines) - 1, len(wanted))
    with open_place(kept.place) as store:
        told = carry_out(store, "export", file)
        assert told == {"lines": len(wanted) - len(lines) + 1}
        assert file.read_text(encoding="utf-8").splitlines() == wanted
        assert _check_whole(store, whole) == set(whole.lines)


def _check_rotation(kept: Kept, whole: Whole, died: Died, file: Path) -> None:
    """All can be read and found in between; the next one ends it, and the old key can go."""
    with open_place(kept.place) as store:
        assert _check_whole(store, whole) == set(whole.lines)
        records = _records(store)
        assert set(records) == set(whole.lines)
        renewed = [name for name, (_, row) in records.items() if row.data["generation"] == 2]
        _note(died, len(renewed), len(records))
        receipt = carry_out(store, "rotate", file)
        told = {"complete": True, "sessions": len(records), "renewed": len(records) - len(renewed)}
        assert receipt == {**told, "removed": 0}
    with open_place(kept.place, keys=NEXT) as store:
        assert _check_whole(store, whole) == set(whole.lines)
        assert isinstance(store, EncryptedStore)
        places = {row.data["key"].partition(".")[2] for row in load(store.keeps_labels_in, LONG)}
        assert places == {"2"}
        assert set(_records(store)) == set(whole.lines)
    assert kept.files_with([*whole.wrapped.values()]) == []


Check = Callable[[Kept, Whole, Died, Path], None]


def _removal(order: str) -> Check:
    def check(kept: Kept, whole: Whole, died: Died, file: Path) -> None:
        meant = {LONG} if order == "delete one" else whole.meant
        _check_removal(kept, whole, died, file, order=order, meant=meant)

    return check


CHECKS: dict[str, Check] = {
    "export": _check_export,
    "delete owner": _removal("delete owner"),
    "delete one": _removal("delete one"),
    "expire": _removal("expire"),
    "rotate": _check_rotation,
}
"""What is looked at after a kill, by order."""
