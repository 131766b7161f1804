"""The program of docs/guides/web-app.md, served by uvicorn, asked over HTTP; PostgreSQL is real."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests import servers
from tests.judge.server import Provider, answered, provider, variables
from trimtab import counter_for

HERE = Path(__file__).resolve().parent
FREE = {"trust_env": False, "timeout": 30}


@pytest.fixture
def database() -> Iterator[str]:
    """Give the DSN of an empty database."""
    server = servers.postgres()
    with server.database() as name:
        yield server.of(name)


@contextmanager
def served(dsn: str, api: Provider, *, workers: int = 1) -> Iterator[str]:
    """Serve the program as its page says; gives its address."""
    port = servers.free_port()
    command = [sys.executable, "-m", "uvicorn", "program:app", "--port", str(port), "--workers", str(workers)]
    surroundings = {**os.environ, **variables(api.address), "DATABASE_URL": dsn}
    service = subprocess.Popen(command, cwd=HERE, env=surroundings)
    address = f"http://127.0.0.1:{port}"

    def answers() -> bool:
        try:
            return httpx.get(f"{address}/openapi.json", **FREE).status_code == 200
        except httpx.TransportError:
            return False

    try:
        servers.until(answers, "the service")
        yield address
    finally:
        service.send_signal(signal.SIGINT)
        assert service.wait(30) in (0, -signal.SIGINT)


class Numbered:
    """Answers "answer 1", "answer 2" and so on."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, form: str, body: dict[str, Any]) -> Any:
        """Write the next."""
        self.count += 1
        whole = answered(form, body["model"])
        whole["choices"][0]["message"]["content"] = f"answer {self.count}"
        return whole


@pytest.fixture(scope="module")
def service() -> Iterator[tuple[str, Provider]]:
    """Give one service for the tests that stop nothing: its address, and the API that it asks."""
    server = servers.postgres()
    with server.database() as name, provider(Numbered()) as api, served(server.of(name), api) as address:
        yield address, api


def ask(address: str, text: str, *, id: str, user: str = "ada", chat: str = "bicycle") -> httpx.Response:
    """Ask once."""
    return httpx.post(
        f"{address}/chats/{chat}", json={"id": id, "text": text}, headers={"X-User": user}, **FREE
    )


def read(address: str, *, user: str = "ada", chat: str = "bicycle") -> list[dict[str, Any]]:
    """Read a conversation."""
    found: list[dict[str, Any]] = httpx.get(
        f"{address}/chats/{chat}", headers={"X-User": user}, **FREE
    ).json()
    return found


def texts(messages: list[dict[str, Any]]) -> list[str]:
    """Give what messages say."""
    return [message["content"] for message in messages]


def test_a_conversation_goes_on_in_another_process_and_users_do_not_see_each_other(database: str) -> None:
    """Two services, one after the other; a header of another user leads to another conversation."""
    with provider() as api:
        with served(database, api) as address:
            assert ask(address, "I ride a red bicycle.", id="1").json() == {"text": "ok"}
            assert ask(address, "Hello.", id="1", user="bob").json() == {"text": "ok"}
        with served(database, api) as address:
            assert ask(address, "What do I ride?", id="2").json() == {"text": "ok"}
            assert texts(read(address, user="bob")) == ["Hello.", "ok"]
            assert httpx.get(f"{address}/chats/bicycle", **FREE).status_code == 422
    sent = [texts(body["messages"]) for _, body in api.bodies]
    assert sent[-1] == ["Be brief.", "I ride a red bicycle.", "ok", "What do I ride?"]
    assert sent[1] == ["Be brief.", "Hello."]


def test_a_question_asked_again_is_stored_once_and_answered_alike(service: tuple[str, Provider]) -> None:
    """The browser lost the answer, and asks with the same id: the model is not asked again."""
    address, api = service
    before = len(api.bodies)
    first = ask(address, "Why does it squeak?", id="1", chat="again").json()["text"]
    assert ask(address, "Why does it squeak?", id="1", chat="again").json() == {"text": first}
    assert texts(read(address, chat="again")) == ["Why does it squeak?", first]
    assert len(api.bodies) == before + 1
    assert ask(address, "Why?", id="2", chat="again").json() != {"text": first}


def test_a_long_conversation_is_summarized_and_each_request_fits(service: tuple[str, Provider]) -> None:
    """Over the budget many times: the smaller model writes summaries, and the log has every word."""
    address, api = service
    before = len(api.bodies)
    for n in range(40):
        words = f"{n}: " + "does a belt drive need oil? " * 20
        assert ask(address, words, id=str(n), chat="long").status_code == 200
    assert len(read(address, chat="long")) == 80
    bodies = [body for _, body in api.bodies[before:]]
    chats = [body["messages"] for body in bodies if body["model"] == "gpt-4o"]
    assert len(chats) == 40
    assert max(counter_for("gpt-4o").count(messages) for messages in chats) <= 2_000
    assert any(body["model"] == "gpt-4o-mini" for body in bodies)
    assert "<summary" in json.dumps(chats[-1])


def test_two_workers_take_questions_of_one_conversation_at_once(database: str) -> None:
    """Who is told to ask again does so with the same id: nothing is lost or stored twice."""

    def asked(n: int) -> int:
        while (status := ask(address, f"question {n}", id=str(n)).status_code) == 503:
            pass
        return status

    with provider() as api, served(database, api, workers=2) as address, ThreadPoolExecutor(8) as threads:
        assert list(threads.map(asked, range(16))) == [200] * 16
        told = texts(read(address))
    assert sorted(told) == sorted([f"question {n}" for n in range(16)] + ["ok"] * 16)


def test_a_deleted_conversation_is_gone(service: tuple[str, Provider]) -> None:
    """And its name may be used anew."""
    address, api = service
    ask(address, "My order is 7741.", id="1", chat="order")
    deleted = httpx.delete(f"{address}/chats/order", headers={"X-User": "ada"}, **FREE)
    assert deleted.status_code == 204
    assert read(address, chat="order") == []
    assert ask(address, "Hello again.", id="1", chat="order").status_code == 200
    assert texts(api.bodies[-1][1]["messages"]) == ["Be brief.", "Hello again."]


def test_a_message_larger_than_the_budget_is_refused(service: tuple[str, Provider]) -> None:
    """The model is not asked, and the next question is answered."""
    address, api = service
    before = len(api.bodies)
    assert ask(address, "oil, water, " * 3_000, id="1", chat="huge").status_code == 413
    assert len(api.bodies) == before
    assert ask(address, "Oil, or water?", id="2", chat="huge").status_code == 200
    assert texts(api.bodies[-1][1]["messages"])[-1] == "Oil, or water?"


def test_a_database_that_is_away_is_told_as_such() -> None:
    """The browser may ask again, with the same id."""
    nobody = f"postgresql://postgres@127.0.0.1:{servers.free_port()}/chats"
    with provider() as api, served(nobody, api) as address:
        refused = ask(address, "Hello.", id="1")
    assert refused.status_code == 503
    assert refused.headers["Retry-After"] == "1"
    assert api.bodies == []
