"""A process that writes to a store until it is killed or done: what the tests of crashes and crowds start.

`crash` appends, searches, deletes, and says what it does; a process for it is forked, see `crash.py`.

python writer.py URL SESSION NAME EACH  appends EACH events with Retry, once a line arrives
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from itertools import cycle
from multiprocessing.connection import Connection
from typing import Any

from trimtab import Session
from trimtab.errors import ConfigurationError
from trimtab.stores import (
    AppendRequest,
    Event,
    KeyRing,
    LoadRequest,
    Retry,
    SearchRequest,
    SQLiteStore,
    Store,
    encrypted,
    open_store,
)

FIRST = b"only tests have this key " * 2
KEYS = KeyRing({"first": FIRST})
"""The keys of all encrypted places of the tests."""

WORDS = ("heron", "otter", "river", "天气", "晴朗", "fjord")


def open_place(url: str) -> Store:
    """Open the store of a URL; of one behind `encrypted+`, with the keys of the tests."""
    plain = url.removeprefix("encrypted+")
    return open_store(plain) if plain == url else encrypted(open_store(plain), KEYS)


def _say(line: str) -> None:
    """Write a line at once: what was said before a kill is read after it."""
    os.write(1, f"{line}\n".encode())


def _version(store: Store, session: str) -> int:
    newest = store.load(LoadRequest(session=session, limit=1, newest_first=True))
    return newest[0].version if newest else 0


def _message(text: str) -> Event:
    return Event(id=uuid.uuid4().hex, kind="message", time=1.0, data={"message": {"content": text}})


def crash(url: str, session: str, seed: str) -> None:
    """Write for ever. Lines: `step NAME` before each step, `ack VERSION ID` after each append returned."""
    chance = random.Random(seed)
    _say("step start")
    store = open_place(url)
    version = _version(store, session)
    scrap = f"{session}-scrap-{seed}"

    def append(count: int, chars: int) -> None:
        nonlocal version
        events = [_message(chance.choice(WORDS) + " x" * (chars // 2)) for _ in range(count)]
        version = store.append(
            AppendRequest(session=session, expected_version=version, events=events)
        ).version
        _say(f"ack {version} {events[-1].id}")

    def search() -> None:
        store.search(SearchRequest(session=session, terms=("heron",), limit=5))

    def erase() -> None:
        store.append(AppendRequest(session=scrap, expected_version=0, events=[_message("scrap " * 200)]))
        # other writers may see the rows for a moment yet: the store says so, and to ask again
        try:
            Retry(attempts=40, max_seconds=0.5).call(lambda: store.delete(scrap))
        except ConfigurationError as error:  # behind a pooler the files are not cleaned
            if "the data is removed" not in str(error):
                raise

    def reopen() -> None:
        nonlocal store
        store.close()
        store = open_place(url)
        version_now = _version(store, session)
        if version_now != version:
            raise AssertionError(f"reopened at {version_now}, not at {version}")

    for name, step in _steps(append, search, erase, reopen):
        _say(f"step {name}")
        step()


def forked(out: Connection, errors: Connection, url: str, session: str, seed: str) -> None:
    """Be `crash` in a process that multiprocessing made, with pipes of its own."""
    os.dup2(out.fileno(), 1)
    os.dup2(errors.fileno(), 2)
    out.close()
    errors.close()
    crash(url, session, seed)


def _steps(
    append: Callable[[int, int], None], *others: Callable[[], None]
) -> Iterator[tuple[str, Callable[[], None]]]:
    search, erase, reopen = others
    return cycle(
        (
            ("append", lambda: append(1, 40)),
            ("append", lambda: append(1, 40)),
            ("batch", lambda: append(60, 40)),
            ("large", lambda: append(1, 100_000)),
            ("search", search),
            ("append", lambda: append(1, 40)),
            ("erase", erase),
            ("reopen", reopen),
        )
    )


def crowd(url: str, session: str, name: str, each: str) -> None:
    """Append so many events; prints how often each was tried again, as a JSON list."""
    store = open_place(url)
    store.load(LoadRequest(session=session, limit=1))
    retry = Retry(attempts=1_000)
    retries: list[int] = []
    _say("ready")
    sys.stdin.readline()
    for at in range(int(each)):
        event = Event(id=uuid.uuid4().hex, kind="note", time=1.0, data={"writer": name, "at": at})
        calls = 0

        def attempt(event: Event = event) -> None:
            nonlocal calls
            calls += 1
            version = _version(store, session)
            store.append(AppendRequest(session=session, expected_version=version, events=[event]))

        retry.call(attempt)
        retries.append(calls - 1)
    store.close()
    _say(json.dumps(retries))


class DyingStore(SQLiteStore):
    """A store whose process is killed at a call: before it, or after it."""

    def __init__(self, path: str, *, calls: int) -> None:
        super().__init__(path)
        self._calls = calls

    def _run(self, work: Any, *, writes: bool = False) -> Any:
        self._count()
        answer = super()._run(work, writes=writes)
        self._count()
        return answer

    def _count(self) -> None:
        self._calls -= 1
        if self._calls == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def turn_keys(path: str, keys: Mapping[str, bytes], current: str, calls: int) -> None:
    """Rotate the sessions of a file, and die at a transaction."""
    encrypted(DyingStore(path, calls=calls), KeyRing(keys, current=current)).rotate()


def prune_place(said: Connection, url: str, keep: int) -> None:
    """Prune a session of a place; the process may be killed meanwhile."""
    store = open_place(url)
    session = Session.open(store, "s", allow_missing=True)
    session.refresh()
    said.send("begins")
    session.prune(keep=keep)
    said.send("done")
    store.close()


def die_pruning(path: str, keep: int, calls: int) -> None:
    """Prune a session of a file, and die at a transaction."""
    with DyingStore(path, calls=calls) as store:
        Session.open(store, "s", allow_missing=True).prune(keep=keep)


if __name__ == "__main__":
    crowd(*sys.argv[1:])
