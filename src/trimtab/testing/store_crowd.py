"""The contract of stores under many writers at once."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from trimtab.stores import AppendRequest, LoadRequest, Retry, Store
from trimtab.testing.store_asking import Asking, note

__all__ = ["check_tasks", "check_threads"]

_WRITERS = 8
_EACH = 5
_PATIENT = Retry(attempts=500, first_seconds=0.002, max_seconds=0.1)


def check_threads(check: Asking) -> None:
    """Append from many threads to one session through one handle; all of it is there, once, in order."""
    session = check.new_session()

    def write(writer: int) -> None:
        for at in range(_EACH):
            event = note(f"{writer}/{at}")

            def attempt(event: Any = event) -> None:
                newest = check.store.load(LoadRequest(session=session, limit=1, newest_first=True))
                version = newest[0].version if newest else 0
                check.store.append(AppendRequest(session=session, expected_version=version, events=[event]))

            _PATIENT.call(attempt)

    with ThreadPoolExecutor(_WRITERS) as pool:
        list(pool.map(write, range(_WRITERS)))
    _check_whole(check, session, "threads")


async def check_tasks(check: Asking, store: Store) -> None:
    """Append from many tasks to one session, and from as many to one each."""
    session = check.new_session()

    async def write(writer: int) -> None:
        for at in range(_EACH):
            event = note(f"{writer}/{at}")

            async def attempt(event: Any = event) -> None:
                newest = await store.aload(LoadRequest(session=session, limit=1, newest_first=True))
                version = newest[0].version if newest else 0
                await store.aappend(AppendRequest(session=session, expected_version=version, events=[event]))

            await _PATIENT.acall(attempt)

    await asyncio.gather(*map(write, range(_WRITERS)))
    _check_whole(check, session, "tasks")
    own = [check.new_session() for _ in range(_WRITERS)]
    await asyncio.gather(
        *(
            store.aappend(AppendRequest(session=one, expected_version=0, events=[note(), note()]))
            for one in own
        )
    )
    check.equal("tasks", [len(check.load(one)) for one in own], [2] * _WRITERS, "each task has its session")


def _check_whole(check: Asking, session: str, rule: str) -> None:
    events = check.load(session)
    check.equal(rule, [event.version for event in events], list(range(1, _WRITERS * _EACH + 1)), "no gap")
    texts = [str(event.data["text"]) for event in events]
    wanted = sorted(f"{writer}/{at}" for writer in range(_WRITERS) for at in range(_EACH))
    check.equal(rule, sorted(texts), wanted, "nothing is lost or stored twice")
    for writer in range(_WRITERS):
        own = [text for text in texts if text.startswith(f"{writer}/")]
        check.equal(rule, own, sorted(own), "each writer's events stand in its order")
