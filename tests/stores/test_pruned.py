"""Pruning on every store: no byte of what is gone, beside writers, and killed at any point."""

from __future__ import annotations

import random
import time
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.stores.crash import FORKS
from tests.stores.served import Served, load, served_postgres, served_redis
from tests.stores.stores import MAKERS, Maker, Place, params, placed
from tests.stores.writer import KEYS, die_pruning, prune_place
from trimtab import Session
from trimtab.errors import ConfigurationError, CorruptSessionError, PrunedError
from trimtab.stores import (
    AppendRequest,
    LoadRequest,
    MemoryStore,
    Retry,
    SQLiteStore,
    Store,
    encrypted,
)

KEEP = 2
GONE, NOW = "quollzibar", "ibexyukon"
"""Words of messages that are pruned, and of those that are in view: no hexadecimal digits in a row."""


def _session(store: Store, **more: Any) -> Session:
    return Session(
        120,
        store=store,
        id="s",
        counter=lambda messages: sum(len(str(one["content"]).split()) for one in messages),
        summarizer=_summarize,
        summarize_threshold_tokens=20,
        retry=Retry(attempts=200),
        **more,
    )


def _summarize(messages: list[Any]) -> str:
    return f"{len(messages)} so far"


def _fill(store: Store, *, messages: int = 90) -> Session:
    """Say so much that most of it is neither in view nor needed to undo two decisions."""
    session = _session(store)
    for at in range(0, messages, 3):
        word = GONE if at < messages * 2 // 3 else NOW
        session.extend([{"role": "user", "content": f"{word} event {at + one} " * 3} for one in range(3)])
    return session


def _seen(session: Session) -> list[Any]:
    """What a pruned session shows, and what it shows once its last decisions are undone."""
    shown = [session.messages(), session.summary, session.facts, session.status().to_dict()]
    shown[-1].pop("version")
    return shown


def _undone(session: Session) -> list[Any]:
    fork = session.fork()
    shown = []
    for _ in range(KEEP):
        fork.undo()
        shown.append(fork.messages())
    fork.delete()
    return shown


def test_every_store_prunes(place: Place) -> None:
    """Views stay, in the object and in another; the receipt says what is gone; others may go on."""
    store = place.make()
    session = _fill(store)
    other = _session(store)
    seen, undone, version = _seen(other), _undone(session), session.version
    log = load(store)
    receipt = session.prune(keep=KEEP)
    now = load(store)
    gone = [event for event in now if event.kind == "pruned"]
    assert receipt.messages == sum(log[event.version - 1].kind == "message" for event in gone) > 40
    assert (receipt.events, receipt.not_erased) == (len(gone), None)
    assert [(one.version, one.id, one.time) for one in now[:version]] == [
        (one.version, one.id, one.time) for one in log
    ]
    assert _seen(session) == _seen(_session(store)) == seen
    assert _undone(session) == undone
    assert session.recall(GONE) == []
    assert session.recall(NOW) != []
    other.add({"role": "user", "content": "others go on"})
    assert _session(store).messages()[-1]["content"] == "others go on"
    assert session.prune(keep=KEEP).events == 0
    assert store.delete("s").messages == sum(event.kind == "message" for event in now) + 1
    store.close()


def _ciphertexts(store: Store, versions: range) -> list[str]:
    """What an encrypted store keeps of events."""
    rows = store.load(LoadRequest(session="s", after=versions.start - 1, before=versions.stop))
    return [str(row.data["trimtab.sealed"])[20:60] for row in rows if "trimtab.sealed" in row.data]


def test_no_file_of_sqlite_has_a_byte_of_what_was_pruned(tmp_path: Path) -> None:
    """Beside the file, too; neither its text nor, where it is encrypted, its ciphertext."""
    for keys in (None, KEYS):
        store = SQLiteStore(tmp_path / f"{keys is None}.db")
        session = _fill(store if keys is None else encrypted(store, keys))
        words = [GONE] if keys is None else _ciphertexts(store, range(5, 30))
        there = b"".join(one.read_bytes() for one in tmp_path.iterdir())
        assert all(word.encode() in there for word in words)
        session.prune(keep=KEEP)
        there = b"".join(one.read_bytes() for one in tmp_path.iterdir())
        assert not any(word.encode() in there for word in words)
        store.close()


@pytest.mark.server
@pytest.mark.parametrize("make", [served_postgres, served_redis], ids=["postgres", "redis"])
def test_no_file_of_a_server_has_a_byte_of_what_was_pruned(make: Any) -> None:
    """But for the log it writes ahead, until its next checkpoint."""
    for keys in (None, KEYS):
        with make() as served:
            assert isinstance(served, Served)
            store = served.make()
            session = _fill(store if keys is None else encrypted(store, keys))
            words = [GONE] if keys is None else _ciphertexts(store, range(5, 30))
            assert served.files_with(words[0])
            session.prune(keep=KEEP)
            assert [served.files_with(word) for word in words] == [[]] * len(words)
            store.close()


def test_prunes_and_writers_at_once_lose_nothing(place: Place) -> None:
    """Two orders and a writer: every message that was added is there, and what is gone is gone."""
    stores = [place.make() for _ in range(3)]
    _fill(stores[0])
    sessions = [_session(store) for store in stores]
    failed: list[BaseException] = []

    def run(call: Any, *arguments: Any) -> None:
        try:
            call(*arguments)
        except BaseException as error:
            failed.append(error)

    def write() -> None:
        for at in range(8):
            sessions[2].add({"role": "user", "content": f"late {at}"}, id=f"late-{at}")

    threads = [Thread(target=run, args=(sessions[at].prune,), kwargs={}) for at in range(2)]
    threads.append(Thread(target=run, args=(write,)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    session = _session(stores[0])
    session.prune(keep=0)
    said = [event.id for event in session.history()]
    assert [one for one in said if one.startswith("late-")] == [f"late-{at}" for at in range(8)]
    assert session.messages() == _session(stores[1]).messages()
    for store in stores:
        store.close()


class _Refusing(MemoryStore):
    """A store of somebody's own that was written when nothing could be pruned."""

    def append(self, request: AppendRequest, /) -> Any:
        """Refuse another kind, as it always did."""
        if any(event.kind == "pruned" for event in request.rewrites):
            raise ConfigurationError("id, kind and time must be those of the stored event")
        return super().append(request)


def test_a_store_that_refuses_is_left_as_it_was() -> None:
    """Nothing says that the log is pruned."""
    store = _Refusing()
    session = _fill(store)
    before = load(store)
    with pytest.raises(ConfigurationError, match=r"check_store"):
        session.prune(keep=KEEP)
    assert load(store) == before
    assert session.messages() == _session(store).messages()


# -- killed


class Killed(BaseException):
    """The process ends here."""


class _Killer(MemoryStore):
    """A store whose process is killed before or after the nth append."""

    calls, last = 0, 10_000

    def append(self, request: AppendRequest, /) -> Any:
        """Be killed before it, or after it."""
        self._count()
        answer = super().append(request)
        self._count()
        return answer

    def _count(self) -> None:
        self.calls += 1
        if self.calls >= self.last:
            raise Killed


def test_an_order_that_is_killed_at_any_step_is_never_half() -> None:
    """View, facts and undo hold at each; the next order ends it, and its receipt says what it removed."""
    kills = 0
    for last in range(1, 100):
        store = _Killer()
        session = _fill(store, messages=240)
        seen, undone = _seen(session), _undone(session)
        store.calls, store.last = 0, last
        try:
            session.prune(keep=KEEP)
            ended = True
        except Killed:
            ended, kills = False, kills + 1
        store.last = 10_000
        _is_whole(store, seen, undone)
        if ended:
            break
        _is_ended(store)
        _is_whole(store, seen, undone)
    assert kills > 8


def test_what_an_interrupted_order_has_yet_to_remove_can_be_redacted() -> None:
    """It is in no history, and a pattern finds it all the same."""
    store = _Killer()
    session = _fill(store, messages=240)
    store.calls, store.last = 0, 4
    with pytest.raises(Killed):
        session.prune(keep=KEEP)
    store.last = 10_000
    again = _session(store)
    assert not any(GONE in str(event.data) for event in again.history(kinds=None))
    assert any(GONE in str(event.data) for event in load(store))
    assert again.redact(where=GONE)
    assert not any(GONE in str(event.data) for event in load(store))
    again.prune(keep=KEEP)
    assert _session(store).messages() == again.messages()


def _is_whole(store: Store, seen: list[Any], undone: list[Any]) -> None:
    session = _session(store)
    assert _seen(session) == seen
    assert _undone(session) == undone


def _is_ended(store: Store) -> None:
    """Another order ends it: its receipt is true, and nothing is left to do."""
    before = [event.kind for event in load(store)]
    receipt = _session(store).prune(keep=KEEP)
    log = load(store)
    assert receipt.events == [event.kind for event in log].count("pruned") - before.count("pruned")
    assert not any(GONE in str(event.data) for event in log)
    assert [event.kind for event in log].count("pruning") == 1  # it goes on with the one that was killed
    assert _session(store).prune(keep=KEEP).events == 0


@pytest.mark.parametrize("maker", params("sqlite", "postgres", "redis", "sqlite-encrypted"))
@pytest.mark.parametrize("kills", [3, pytest.param(40, marks=pytest.mark.long)])
def test_a_process_that_is_killed_at_random_leaves_nothing_half(
    maker: Maker, kills: int, tmp_path: Path
) -> None:
    """With signal 9, at any moment of an order; on a store of its own each time."""
    chance, died = random.Random(kills), 0
    for kill in range(kills):
        folder = tmp_path / str(kill)
        folder.mkdir()
        with placed(maker, folder) as place:
            store = place.make()
            session = _fill(store, messages=240)
            seen, undone = _seen(session), _undone(session)
            store.close()
            died += _kill_one(place, chance)
            place.settle()
            store = place.make()
            _is_whole(store, seen, undone)
            _is_ended(store)
            _is_whole(store, seen, undone)
            store.delete("s")
            store.close()
    assert died >= kills // 3


def _kill_one(place: Place, chance: random.Random) -> int:
    """Start a process that prunes, and kill it; 1 if it was not done."""
    ours, theirs = FORKS.Pipe(duplex=False)
    process = FORKS.Process(target=prune_place, args=(theirs, str(place.url), KEEP))
    process.start()
    theirs.close()
    assert ours.recv() == "begins"
    time.sleep(chance.random() * 0.06)
    process.kill()
    process.join()
    try:
        return ours.recv() != "done"
    except EOFError:
        return 1
    finally:
        ours.close()


@pytest.mark.long
def test_a_process_that_dies_at_each_transaction_of_a_file_leaves_nothing_half(tmp_path: Path) -> None:
    """Before it and after it, and in the middle of cleaning the file."""
    kills = 0
    for calls in range(1, 200):
        path = tmp_path / f"{calls}.db"
        with SQLiteStore(path) as store:
            session = _fill(store, messages=240)
            seen, undone = _seen(session), _undone(session)
        process = FORKS.Process(target=die_pruning, args=(str(path), KEEP, calls))
        process.start()
        process.join()
        assert process.exitcode in (0, -9)
        kills += process.exitcode == -9
        with SQLiteStore(path) as store:
            _is_whole(store, seen, undone)
            if process.exitcode == 0:
                break
            _is_ended(store)
            _is_whole(store, seen, undone)
        assert not any(GONE.encode() in one.read_bytes() for one in tmp_path.glob(f"{calls}.db*"))
    assert kills > 30


# -- an older trimtab, and errors


def test_a_damaged_event_is_told_and_nothing_is_pruned_behind_it(tmp_path: Path) -> None:
    """As everywhere."""
    with placed(MAKERS["sqlite"], tmp_path) as place, place.make() as store:
        session = _fill(store)
        assert place.damage is not None
        place.damage("s", 4)
        with pytest.raises(CorruptSessionError, match=r"event 4 does not match its seal"):
            session.prune(keep=KEEP)


def test_what_was_pruned_is_told_as_that() -> None:
    """By every door, with the day and the oldest version."""
    store = MemoryStore()
    session = _fill(store)
    first = next(session.history())
    receipt = session.prune(keep=KEEP)
    with pytest.raises(PrunedError) as told:
        session.view_at(5)
    assert told.value.oldest == receipt.oldest
    assert "version 5 was pruned on 20" in str(told.value)
    assert f"the oldest version that can be shown is {receipt.oldest}" in str(told.value)
    for call in (
        lambda: session.fork(at=5),
        lambda: session.pin(first),
        lambda: session.redact(first),
        lambda: session.view_of(first),
        lambda: session.add(first.message, id=first.id),
        lambda: session.diff(5, receipt.oldest),
    ):
        with pytest.raises(PrunedError, match=rf"was pruned on .* {receipt.oldest}"):
            call()
    with pytest.raises(PrunedError, match="skip it"):
        session.add(first.message, id=first.id)
