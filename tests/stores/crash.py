"""kill -9 of writers at random points, and what must be there afterwards; for any store with a URL."""

from __future__ import annotations

import multiprocessing
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import trimtab
from tests.stores import writer
from tests.stores.stores import Place
from trimtab.stores import AppendRequest, Event, LoadRequest, SearchRequest, Store

WRITER = Path(__file__).with_name("writer.py")

STEPS = ("start", "append", "batch", "large", "search", "erase", "reopen")
"""What a writer says it does, in `writer.py`."""

MOST_DELAY_SECONDS = 0.012
"""A step takes this long or less; the kill falls into it or into one of the next."""

FORKS = multiprocessing.get_context("forkserver")
"""Starts a writer in a tenth of the time: what it needs is loaded once, where it is forked from."""
FORKS.set_forkserver_preload(
    [
        "tests.stores.writer",
        "tests.stores.facts_writer",
        "trimtab.stores.postgres",
        "trimtab.stores.redis",
        "psycopg",
        "redis",
    ]
)


def start_writer(*arguments: str) -> subprocess.Popen[bytes]:
    """Start a process of `writer.py` on the package under test."""
    environment = {**os.environ, "PYTHONPATH": str(Path(trimtab.__file__).parents[1])}
    return subprocess.Popen(
        [sys.executable, str(WRITER), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    )


@contextmanager
def handle(place: Place) -> Iterator[Store]:
    """Open a place for the length of a block."""
    store = place.make()
    try:
        yield store
    finally:
        store.close()


@contextmanager
def child(target: Callable[..., None], *arguments: object) -> Iterator[tuple[Any, BinaryIO]]:
    """Start a process and read the lines it says in the block, which sees to its end; it told no error."""
    (ours, theirs), (our_errors, their_errors) = (FORKS.Pipe(duplex=False) for _ in range(2))
    process = FORKS.Process(target=target, args=(theirs, their_errors, *arguments))
    process.start()
    theirs.close()
    their_errors.close()
    with open(ours.fileno(), "rb", closefd=False) as lines:
        yield process, lines
    with open(our_errors.fileno(), encoding="utf-8", closefd=False) as wrong:
        errors = wrong.read()
    process.join()
    process.close()
    ours.close()
    our_errors.close()
    assert errors == "", errors


def kill_writers(place: Place, *, kills: int, seed: int) -> Counter[str]:
    """Kill so many writers of one session, each at a random point, and look after each.

    Returns:
        How many died in which step, by the last one each had said.
    """
    chance = random.Random(seed)
    session, seen = f"crash-{seed}", 0
    died: Counter[str] = Counter()
    for kill in range(kills):
        step, acknowledged = _kill_one(place, session, f"{seed}-{kill}", chance)
        died[step] += 1
        seen = _check_after(place, session, acknowledged, seen)
    with handle(place) as store:
        events = store.load(LoadRequest(session=session))
        assert [event.version for event in events] == list(range(1, seen + 1))
        assert len({event.id for event in events}) == seen
        store.delete(session)
    return died


def _kill_one(place: Place, session: str, seed: str, chance: random.Random) -> tuple[str, dict[int, str]]:
    """Start a writer, kill it, and return its last step and what it had acknowledged: ids by version."""
    target, rounds = chance.choice(STEPS), chance.randrange(1, 3)
    said: list[str] = []
    with child(writer.forked, str(place.url), session, seed) as (process, lines):
        for raw in lines:
            said.append(raw.decode().strip())
            if said[-1] == f"step {target}":
                rounds -= 1
            if rounds == 0 or target == "start":
                break
        time.sleep(chance.random() * MOST_DELAY_SECONDS)
        process.kill()
        said += lines.read().decode().splitlines()
    acknowledged = [line.split() for line in said if line.startswith("ack ")]
    steps = [line.removeprefix("step ") for line in said if line.startswith("step ")]
    return steps[-1], {int(version): event_id for _, version, event_id in acknowledged}


def _check_after(place: Place, session: str, acknowledged: dict[int, str], seen: int) -> int:
    """Open the store as after a crash: all that was acknowledged is there, and the next append works."""
    place.settle()
    with handle(place) as store:
        events = store.load(LoadRequest(session=session, after=seen))
        there = {event.version: event.id for event in events}
        assert {version: there.get(version) for version in acknowledged} == acknowledged
        version = seen + len(events)
        assert list(there) == list(range(seen + 1, version + 1))
        after = Event(
            id=f"after-{version}", kind="message", time=1.0, data={"message": {"content": "kingfisher"}}
        )
        request = AppendRequest(session=session, expected_version=version, events=[after])
        assert store.append(request).version == version + 1
        found = store.search(SearchRequest(session=session, terms=("kingfisher",), limit=1))
        assert [event.version for event in found] == [version + 1]
        for scrap in store.sessions():
            if scrap.startswith(f"{session}-scrap"):
                store.delete(scrap)
    return version + 1
