"""What several gateways learn together: they send what one would, whoever is asked, killed or unreachable."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.gateways import Recorder, Running, Seen, gateway, recorder, talk
from tests.servers import make_redis, redis_server
from trimtab.counting import measure
from trimtab.errors import ConfigurationError
from trimtab.gateway import Limits, Upstream, make_app

PATH, CLAUDE, KEY = "/v1/messages", "claude-sonnet-4-5", "sk-of-somebody-4c1d"
DATA, SAVED = "trimtab:{records}:data", "trimtab:{records}:saved"


@contextmanager
def _place(kind: str, folder: Path) -> Iterator[str]:
    """Give a place that several processes reach."""
    if kind == "sqlite":
        yield f"sqlite:///{folder / 'learned.db'}"
        return
    server = redis_server()
    with server.client() as client:
        client.delete(DATA, SAVED)
        yield server.url
        client.delete(DATA, SAVED)


PLACES = ("sqlite", pytest.param("redis", marks=pytest.mark.server))


def _rows(place: str) -> dict[str, bytes]:
    """Read all records, behind the back of who wrote them."""
    if place.startswith("sqlite"):
        with closing(sqlite3.connect(place.removeprefix("sqlite:///"))) as file:
            return dict(file.execute("SELECT name, data FROM trimtab_records"))
    with redis_server().client() as client:
        return {name: data.encode() for name, data in client.hgetall(DATA).items()}


def _agent(steps: int) -> list[dict[str, Any]]:
    """Write a loop of an agent; each seventh result is so large that it is cut."""
    said: list[dict[str, Any]] = [{"role": "user", "content": "Find out where it rains."}]
    for step in range(steps):
        words = 2_000 if step % 7 == 3 else 100
        call = {"id": f"toolu_{step}", "type": "tool_use", "name": "look", "input": {"place": step}}
        result = {
            "type": "tool_result",
            "tool_use_id": call["id"],
            "content": f"Place {step}: " + "".join(f"it is {at} degrees, " for at in range(words // 5)),
        }
        said += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    return said


def _biller(factor: float) -> Callable[[Seen], tuple[int, dict[str, str], bytes]]:
    """Bill each request so many times its count, and a prompt that nobody sees."""

    def answer(one: Seen) -> tuple[int, dict[str, str], bytes]:
        tokens = round(factor * measure(one.data, format="anthropic").tokens) + 150
        return 200, {}, json.dumps({"usage": {"input_tokens": tokens, "output_tokens": 1}}).encode()

    return answer


def _ask(front: Running, steps: int) -> dict[str, Any]:
    """Ask; gives the line of the request, which is written once what was billed is learned."""
    body = {"model": CLAUDE, "max_tokens": 9, "messages": _agent(steps)}
    answer = front.ask(PATH, body, {"x-api-key": KEY})
    assert answer.status == 200
    return answer.line


@pytest.mark.parametrize("kind", PLACES)
def test_processes_that_share_send_what_one_does_also_after_one_was_killed(kind: str, tmp_path: Path) -> None:
    """In turn, by bills of 0.6 counts: the same bytes. Then one is killed, and another takes its turns."""
    with ExitStack() as stack:
        place = stack.enter_context(_place(kind, tmp_path))
        behind, alone = (stack.enter_context(recorder(_biller(0.6))) for _ in range(2))
        given: dict[str, Any] = {"budgets": {"*": "3k"}}
        first = stack.enter_context(gateway(behind.address, share=place, **given))
        second = stack.enter_context(gateway(behind.address, share=place, **given))
        only = stack.enter_context(gateway(alone.address, **given))
        for steps in range(3, 26):
            if steps == 15:
                first.process.kill()
                first = stack.enter_context(gateway(behind.address, share=place, **given))
            lines = [_ask(one, steps) for one in ((first, second)[steps % 2], only)]
            assert lines[0]["billed"] == lines[1]["billed"]
        rows = _rows(place)
    sent = [one.body for one in behind.seen]
    assert sent == [one.body for one in alone.seen]
    _check_moves([json.loads(one) for one in sent])
    cut = [(one["tool_use_id"], one["content"]) for body in sent for one in _results(json.loads(body))]
    cut = [(name, text) for name, text in cut if "text cut by trimtab" in text]
    # Bills moved the count of each text, and it stays cut where it was.
    assert len(cut) > len({name for name, _ in cut}) == len(set(cut)) > 1
    # The same with nothing learned is another: what is compared here is what bills changed.
    assert measure(json.loads(sent[-1]), format="anthropic").tokens > 3_000
    _check_silent(rows)


def _check_moves(sent: list[Any]) -> None:
    """Hold that a cut moves only where what is behind it, and is new, would fill the budget of 3,000."""
    moves = [pair for pair in pairwise(sent) if pair[0]["messages"][1] != pair[1]["messages"][1]]
    assert 2 <= len(moves) <= len(sent) / 4
    for before, after in moves:
        whole = {**after, "messages": [*before["messages"], *after["messages"][-2:]]}
        assert 0.6 * measure(whole, format="anthropic").tokens + 150 > 2_700


def _results(body: Any) -> list[Any]:
    return [part for one in body["messages"][1:] for part in one["content"] if part["type"] == "tool_result"]


def _check_silent(rows: dict[str, bytes]) -> None:
    """Hold that records have neither a text nor a key, nor a hash that either could be tried against."""
    assert len(rows) == 1
    told = repr(rows)
    guesses = [KEY, CLAUDE, "Find out", "degrees", "rain", "toolu_", "look", sha256(KEY.encode()).hexdigest()]
    assert [one for one in guesses if one in told] == []
    ((name, data),) = rows.items()
    version, conversations = json.loads(data)
    assert (version, len(name)) == (1, 24)
    assert max(map(len, _texts(conversations))) <= 40  # hashes, and the name of the counter
    assert len(data) < 64 * 2**10


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [*value, *(text for one in value.values() for text in _texts(one))]
    if isinstance(value, list):
        return [text for one in value for text in _texts(one)]
    return [value] if isinstance(value, str) else []


@pytest.mark.server
def test_a_store_that_dies_stops_no_request_and_each_is_told_of_it() -> None:
    """They go on as without learning: the bytes are those of a process that learns nothing."""
    server = make_redis("--save", "")
    try:
        with ExitStack() as stack:
            behind, alone = (stack.enter_context(recorder(_biller(0.6))) for _ in range(2))
            given: dict[str, Any] = {"budgets": {"*": "3k"}}
            front = stack.enter_context(gateway(behind.address, share=server.url, **given))
            only = stack.enter_context(gateway(alone.address, learn=False, **given))
            before = [_ask(front, steps).get("learned") for steps in (3, 4)]
            server.kill()
            after = [_ask(front, steps).get("learned") for steps in range(9, 14)]
            for steps in range(9, 14):
                _ask(only, steps)
            told = front.end()
    finally:
        server.kill()
    assert (before, after) == ([None] * 2, ["no"] * 5)
    assert [one.body for one in behind.seen[2:]] == [one.body for one in alone.seen]
    assert "trimtab@" not in told  # the password of that server


def test_a_place_that_cannot_be_written_stops_no_request(tmp_path: Path) -> None:
    """There is no such folder; the request is fitted, and the answer says that nothing was learned."""
    place = f"sqlite:///{tmp_path / 'no' / 'learned.db'}"
    with recorder() as behind:
        (answer,) = _in_process(behind, place, [{"model": "gpt-4o", "messages": talk(40)}])
    assert b"learned=no" in answer
    assert 0 < len(behind.seen[0].data["messages"]) < 81


def test_a_place_that_cannot_be_had_is_told_of_at_the_start_and_counted(tmp_path: Path) -> None:
    """A place that can be had is not, and its file is read by nobody else."""
    before = os.umask(0o022)
    try:
        with recorder() as behind:
            for folder, words in (("no", "there is no folder"), ("", "")):
                place = f"sqlite:///{tmp_path / folder / 'learned.db'}"
                app = make_app([Upstream(api="openai", url=behind.address)], share=place)
                assert words in app.share_trouble()
                assert bool(words) == bool(app.share_trouble())
                with gateway(behind.address, share=place, budgets={"*": "3k"}) as front:
                    front.ask(CHAT, _chat("a"))
                    told = front.ask("/metrics", method="GET").body.decode()
                    files = list(tmp_path.iterdir())
                count = int(bool(words))
                row = 'requests_unlearned_total{form="openai_chat",upstream="openai"}'
                assert f"trimtab_{row} {count}\n" in told
                assert [oct(one.stat().st_mode & 0o777) for one in files] == ["0o600"] * len(files)
                assert bool(files) != bool(words)
    finally:
        os.umask(before)


def test_a_file_that_was_taken_away_is_made_anew(tmp_path: Path) -> None:
    """While a request is in progress; what it taught, and all that follows, is in the new one."""
    place = f"sqlite:///{tmp_path / 'learned.db'}"
    usage = json.dumps({"usage": {"prompt_tokens": 900, "completion_tokens": 1}}).encode()

    def answer(one: Seen) -> tuple[int, dict[str, str], bytes]:
        if b"hello b" in one.body:
            for path in tmp_path.iterdir():
                path.unlink()
        return 200, {}, usage

    with recorder(answer) as behind:
        told = _in_process(behind, place, [_chat("a"), _chat("b"), _chat("c"), _chat("c", 3)])
    assert [one for one in told if b"learned=no" in one] == []
    assert len(_rows(place)) == 2


CHAT = "/v1/chat/completions"


def _in_process(
    behind: Recorder, place: str, bodies: list[Any], keys: tuple[str, ...] = ("key-a",), **options: Any
) -> list[bytes]:
    """Ask a gateway of this process one after another; gives the reports."""
    upstreams = [Upstream(api="openai", url=behind.address)]
    options = {"limits": Limits(share_seconds=60), **options}  # a busy machine is no place that is down
    app = make_app(upstreams, budgets={"*": 2_000}, share=place, **options)

    async def ask(body: Any, key: str) -> bytes:
        raw = json.dumps(body).encode()
        headers = [(b"host", b"localhost"), (b"content-length", b"%d" % len(raw))]
        scope = {
            "type": "http",
            "method": "POST",
            "path": CHAT,
            "raw_path": CHAT.encode(),
            "query_string": b"",
            "headers": [*headers, (b"authorization", f"Bearer {key}".encode())],
        }
        messages = iter([{"type": "http.request", "body": raw, "more_body": False}])
        found: list[bytes] = []

        async def receive() -> Any:
            return next(messages, None) or await asyncio.Event().wait()

        async def send(message: Any) -> None:
            found.extend(value for name, value in message.get("headers", ()) if name == b"trimtab-report")

        await app(scope, receive, send)
        return found[0]

    async def ask_all() -> list[bytes]:
        told = [await ask(body, key) for body in bodies for key in keys]

        async def end(_: Any = None) -> Any:
            return {"type": "lifespan.shutdown"}

        await app({"type": "lifespan"}, end, end)
        return told

    return asyncio.run(ask_all())


def _chat(name: str, turns: int = 2) -> dict[str, Any]:
    first = {"role": "user", "content": f"hello {name}"}
    return {"model": "gpt-4o", "messages": [first, *talk(turns)[1:]]}


@pytest.mark.parametrize("kind", PLACES)
def test_records_are_bounded_and_end(kind: str, tmp_path: Path) -> None:
    """Of more than 16,384 those go that were saved first, and of a day old ones none is read."""
    usage = json.dumps({"usage": {"prompt_tokens": 400, "completion_tokens": 1}}).encode()
    with _place(kind, tmp_path) as place, recorder(lambda _: (200, {}, usage)) as behind:
        _in_process(behind, place, [_chat("a")])
        (first,) = _rows(place)
        _fill(place, 16_383)
        assert len(_rows(place)) == 16_384
        _in_process(behind, place, [_chat("b")])
        rows = _rows(place)
        assert len(rows) == 16_384
        assert first not in rows  # the oldest, since those that were filled in are a second younger
        before = _in_process(behind, place, [_chat("b", 3)])
        _age(place, 86_500)
        after = _in_process(behind, place, [_chat("b", 3)])
        assert before != after  # counted as by a new gateway again
        assert len(_rows(place)) < 16_384


def _fill(place: str, count: int) -> None:
    if place.startswith("sqlite"):
        with closing(sqlite3.connect(place.removeprefix("sqlite:///"))) as file, file:
            (now,) = file.execute("SELECT max(saved) + 1 FROM trimtab_records").fetchone()
            rows = [(f"other {at}", b"{}", now) for at in range(count)]
            file.executemany("INSERT INTO trimtab_records VALUES (?, ?, ?)", rows)
        return
    with redis_server().client() as client:
        now = max(score for _, score in client.zrange(SAVED, 0, -1, withscores=True)) + 1
        client.hset(DATA, mapping={f"other {at}": "{}" for at in range(count)})
        client.zadd(SAVED, {f"other {at}": now for at in range(count)})


def _age(place: str, seconds: int) -> None:
    if place.startswith("sqlite"):
        with closing(sqlite3.connect(place.removeprefix("sqlite:///"))) as file, file:
            file.execute("UPDATE trimtab_records SET saved = saved - ?", (seconds,))
        return
    with redis_server().client() as client:
        for name in client.zrange(SAVED, 0, -1):
            client.zincrby(SAVED, -seconds, name)


@pytest.mark.parametrize("kind", PLACES)
def test_requests_of_one_conversation_at_once_lose_no_record(kind: str, tmp_path: Path) -> None:
    """Each is billed while the others are in progress: the record stays whole, and one bill is in it."""
    together = threading.Barrier(4)

    def answer(one: Seen) -> tuple[int, dict[str, str], bytes]:
        together.wait()
        tokens = 2 * measure(one.data, format="openai_chat").tokens
        return 200, {}, json.dumps({"usage": {"prompt_tokens": tokens, "completion_tokens": 1}}).encode()

    with _place(kind, tmp_path) as place, recorder(answer) as behind:
        asked = [
            threading.Thread(target=_in_process, args=(behind, place, [_chat("a", turns)]))
            for turns in (2, 3, 4, 5)
        ]
        for one in asked:
            one.start()
        for one in asked:
            one.join()
        ((_, data),) = _rows(place).items()
    _, conversations = json.loads(data)
    assert max(one["baseline"]["bills"] for one in conversations) >= 1
    assert {one["id"] for one in conversations} >= {"root"}


def test_what_one_key_taught_is_not_known_of_another(tmp_path: Path) -> None:
    """The same words under another key, or with another token before them, have records of their own."""
    place = f"sqlite:///{tmp_path / 'learned.db'}"
    usage = json.dumps({"usage": {"prompt_tokens": 900, "completion_tokens": 1}}).encode()
    with recorder(lambda _: (200, {}, usage)) as behind:
        first = _in_process(behind, place, [_chat("a")], keys=("key-a", "key-b", "key-a"))
        assert first[0] == first[1] != first[2]
    assert len(_rows(place)) == 2


DEEP = b'[1, [{"refused": ' + b"[" * 20_000 + b"]" * 20_000 + b"}]]"


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"[1, [{}]]", b"[2, []]", b"[1, 7]", b'[1, [{"marks": 5}]]', b"\xff", DEEP]
)
def test_a_record_that_cannot_be_read_is_as_good_as_none(raw: bytes, tmp_path: Path) -> None:
    """Another version wrote it, or nobody knows what it is: it is written anew."""
    place = f"sqlite:///{tmp_path / 'learned.db'}"
    usage = json.dumps({"usage": {"prompt_tokens": 900, "completion_tokens": 1}}).encode()
    with recorder(lambda _: (200, {}, usage)) as behind:
        new = _in_process(behind, place, [_chat("a")])
        with closing(sqlite3.connect(tmp_path / "learned.db")) as file, file:
            file.execute("UPDATE trimtab_records SET data = ?", (raw,))
        again, known = _in_process(behind, place, [_chat("a"), _chat("a")])
    assert new[0] == again != known


@pytest.mark.parametrize("number", ["Infinity", "9" * 400, "[" * 9_000 + "]" * 9_000])
def test_no_number_of_a_record_fails_a_request(number: str, tmp_path: Path) -> None:
    """Each of them in turn: of conversations, and of what providers refused."""
    place = f"sqlite:///{tmp_path / 'learned.db'}"
    with recorder(_of_700_tokens) as behind:
        new = _in_process(behind, place, [_chat("a", 9)])
        rows = _rows(place)
        with closing(sqlite3.connect(tmp_path / "learned.db")) as file:
            (saved,) = file.execute("SELECT max(saved) FROM trimtab_records").fetchone()
        assert len(rows) == 2
        changes = [
            (name, data[: found.start()] + number.encode() + data[found.end() :])
            for name, data in rows.items()
            for found in re.finditer(rb"(?<=[:\[,])\d+(?=[,}\]])", data)
        ]
        assert len(changes) > 10
        for name, data in changes:
            with closing(sqlite3.connect(tmp_path / "learned.db")) as file, file:
                file.execute("DELETE FROM trimtab_records")
                file.execute("INSERT INTO trimtab_records VALUES (?, ?, ?)", (name, data, saved))
            assert _in_process(behind, place, [_chat("a", 9)]) == new, data[:200]


def _of_700_tokens(one: Seen) -> tuple[int, dict[str, str], bytes]:
    """Refuse what is longer, as OpenAI does."""
    tokens = measure(one.data, format="openai_chat").tokens
    words = (
        "This model's maximum context length is 700 tokens. However, your messages resulted in"
        f" {tokens} tokens."
    )
    error = json.dumps({"error": {"message": words}}).encode()
    return (400, {}, error) if tokens > 700 else (200, {}, b"{}")


def test_a_window_that_a_provider_named_is_known_to_all(tmp_path: Path) -> None:
    """The process that is asked next sends what fits it at once."""
    place = f"sqlite:///{tmp_path / 'learned.db'}"
    with recorder(_of_700_tokens) as behind:
        first = _in_process(behind, place, [_chat("a", 9)])
        before = len(behind.seen)
        second = _in_process(behind, place, [_chat("b", 9)])
        assert len(behind.seen) == before + 1
    assert (b"again" in first[0], b"again" in second[0]) == (True, False)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"share": "memory://"}, "redis://"),
        ({"share": "postgresql://user:secret@host/x"}, "redis://"),
        ({"share": "sqlite:///:memory:"}, "name a file"),
        ({"share": "learned"}, "a store's URL"),
        ({"share": "learned.db", "learn": False}, "nothing to share"),
    ],
)
def test_a_place_that_processes_cannot_share_is_refused(given: dict[str, Any], words: str) -> None:
    """At once, and without a password that stands in it."""
    with pytest.raises(ConfigurationError, match=words) as caught:
        make_app([Upstream(api="openai", url="http://127.0.0.1:9")], **given)
    assert "secret" not in str(caught.value)
