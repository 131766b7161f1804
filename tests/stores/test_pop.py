"""What was said last is taken off in every store alike: by one, by two at once, and read anew (E11, E12)."""

from __future__ import annotations

import asyncio

from tests.builders import assistant, call, result, user, words
from tests.stores.stores import Place
from trimtab import Session
from trimtab.stores import Retry, Store
from trimtab.testing import WordCounter

WORDS = WordCounter()


def opened(store: Store, id: str = "talk") -> Session:
    """Open a session of words that summarizes."""
    return Session(
        100,
        counter=WORDS,
        summarizer=lambda messages: f"about {len(messages)}",
        store=store,
        id=id,
        retry=Retry(),
    )


def test_a_talk_is_taken_off_down_to_its_beginning(place: Place) -> None:
    """Through summaries, by a session read anew each time; nothing that was taken off is recalled."""
    said = [user("zebra start"), call("A"), result("A", "zebra sun")]
    said += [assistant(f"zebra{at} {words(9)}") for at in range(14)]
    query = "zebra start sun " + " ".join(f"zebra{at}" for at in range(14))
    with place.make() as store:
        opened(store).extend(said)
        assert opened(store).summary is not None
        for left in range(len(said) - 1, -1, -1):
            session = opened(store)
            event = session.pop()
            assert event is not None
            assert event.message == said[left]
            found = {one.message["content"] for one in session.recall(query, 50)}
            assert found <= {one.get("content") for one in said[:left]}
            assert [one.message for one in session.history()] == said
        session = opened(store)
        assert session.pop() is None
        session.add(user("again"))
        assert opened(store).messages() == [user("again")]


def test_workers_that_take_off_at_once_take_off_each_message_once(place: Place) -> None:
    """Each is given another one, and the view is without all of them."""
    with place.make() as store:
        opened(store, "many").extend([user(f"m{at}") for at in range(12)])

        async def taken() -> tuple[list[str], list[object]]:
            workers = [opened(store, "many") for _ in range(4)]
            events = await asyncio.gather(*(worker.apop() for worker in workers for _ in range(2)))
            left = await opened(store, "many").amessages()
            await store.aclose()
            return [event.message["content"] for event in events if event is not None], list(left)

        said, left = asyncio.run(taken())
        assert sorted(said) == sorted(f"m{at}" for at in range(4, 12))
        assert left == [user(f"m{at}") for at in range(4)]
