"""Many writers at once, and what must be there afterwards; for any store."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from tests.stores.crash import handle, start_writer
from tests.stores.stores import Place
from trimtab.stores import AppendRequest, Event, LoadRequest, Store

MOST_RETRIES = 20
"""At the 99th percentile of the appends (issue 4)."""

SESSIONS = 64


def append_from_processes(place: Place, *, processes: int = 8, each: int = 40) -> list[int]:
    """Append from processes to one session, all at the same time; return the retries of each append."""
    session = "crowd"
    writers = [start_writer(str(place.url), session, str(name), str(each)) for name in range(processes)]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"ready\n", writer.communicate()
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write(b"go\n")
        writer.stdin.flush()
    answers = [writer.communicate() for writer in writers]
    assert [errors for _, errors in answers] == [b""] * processes
    with handle(place) as store:
        events = store.load(LoadRequest(session=session))
        store.delete(session)
    assert [event.version for event in events] == list(range(1, processes * each + 1))
    wrote = Counter((event.data["writer"], event.data["at"]) for event in events)
    assert wrote == Counter((str(name), at) for name in range(processes) for at in range(each))
    for name in range(processes):
        own = [event.data["at"] for event in events if event.data["writer"] == str(name)]
        assert own == list(range(each))
    return sorted(retries for answer, _ in answers for retries in json.loads(answer))


def at_percentile(sorted_numbers: list[int], part: float) -> int:
    """Return the number that so large a part of them does not pass."""
    return sorted_numbers[min(len(sorted_numbers) - 1, int(len(sorted_numbers) * part))]


def _event(at: int) -> Event:
    return Event(id=f"e{at}", kind="message", time=float(at), data={"message": {"content": f"number {at}"}})


def _request(session: str, at: int) -> AppendRequest:
    return AppendRequest(session=session, expected_version=at, events=[_event(at)])


def _names() -> list[str]:
    return [f"task-{number}" for number in range(SESSIONS)]


def _check_all(store: Store, each: int) -> None:
    for name in _names():
        assert [event.id for event in store.load(LoadRequest(session=name))] == [
            f"e{at}" for at in range(each)
        ]
        store.delete(name)


def append_from_tasks(place: Place, *, each: int = 10) -> None:
    """Append from 64 tasks to a session each, through one handle."""

    async def write(store: Store, name: str) -> None:
        for at in range(each):
            answer = await store.aappend(_request(name, at))
            assert answer[:2] == (at + 1, False)
            newest = await store.aload(LoadRequest(session=name, limit=1, newest_first=True))
            assert newest[0].id == f"e{at}"

    async def all_of_them() -> None:
        store = place.make()
        try:
            await asyncio.gather(*(write(store, name) for name in _names()))
            await asyncio.to_thread(_check_all, store, each)
        finally:
            await store.aclose()

    asyncio.run(all_of_them())


def append_from_threads(place: Place, *, each: int = 10, handles: int = 8) -> None:
    """Append from 64 threads to a session each, through a few handles."""
    stores = [place.make() for _ in range(handles)]

    def write(number: int) -> None:
        store, name = stores[number % handles], _names()[number]
        for at in range(each):
            assert store.append(_request(name, at))[:2] == (at + 1, False)

    with ThreadPoolExecutor(SESSIONS) as pool:
        list(pool.map(write, range(SESSIONS)))
    _check_all(stores[0], each)
    for store in stores:
        store.close()
