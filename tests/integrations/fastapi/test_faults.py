"""What stops while the web app of docs/guides/web-app.md answers: workers, the store, a user's time."""

from __future__ import annotations

import asyncio
import importlib
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import httpx
import pytest

from tests import servers
from tests.integrations.fastapi.model import HOLD, Model, model
from tests.integrations.fastapi.service import Browser, Said, lines_of, process, served, store_url
from trimtab import Session
from trimtab.errors import VersionConflictError
from trimtab.stores import open_store


@pytest.fixture(params=["sqlite", "postgres", "redis"])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """Give a place on each store."""
    with store_url(request.param) as made:
        yield made


@pytest.fixture
def database() -> Iterator[str]:
    """Give a place in PostgreSQL, for what does not depend on the store."""
    with store_url("postgres") as made:
        yield made


@pytest.fixture
def api() -> Iterator[Model]:
    """Give a model, which was asked nothing that it refuses."""
    with model() as made:
        yield made
    assert made.refusals == []


def test_a_conversation_goes_on_in_another_process(database: str, api: Model) -> None:
    """The worker is restarted in between."""
    with served(database, api.address) as address:
        first = Browser(address).ask("I ride a red bicycle.", id="q1")
    with served(database, api.address) as address:
        assert Browser(address).ask("What do I ride?", id="q2").status == 200
    assert api.views[-1] == ["Be brief.", "I ride a red bicycle.", first.text, "What do I ride?"]


def test_a_worker_killed_in_an_answer_leaves_the_question(url: str, api: Model) -> None:
    """Nothing half is stored, and the browser asks again with the same id: the question is there once."""
    with process(url, api.address) as (address, service):
        with Browser(address).open(f"Tell me {HOLD}", id="q1") as response:
            events = lines_of(response)
            next(events)
            assert api.holds.wait(30)
            service.kill()
            with pytest.raises(httpx.TransportError):
                list(events)
        service.wait(30)
    assert api.client_left.wait(30)
    api.go.set()
    with served(url, api.address) as address:
        ada = Browser(address)
        assert ada.texts() == [f"Tell me {HOLD}"]
        said = ada.ask(f"Tell me {HOLD}", id="q1")
        assert ada.texts() == [f"Tell me {HOLD}", said.text]
    assert api.views[-1] == ["Be brief.", f"Tell me {HOLD}"]


def test_a_question_whose_worker_died_is_answered_though_a_part_came_behind_it(
    database: str, api: Model
) -> None:
    """The part of the question before it comes late; the browser asks again, and the model is asked by it."""
    one, two = f"One {HOLD}", "Two"
    with served(database, api.address) as address:
        ada = Browser(address)
        with ada.open(one, id="q1") as response:
            events = lines_of(response)  # which closes the connection once nobody has it
            next(events)
            assert api.holds.wait(30)
            _store_question(database, two, id="q2")  # all that its worker did before it was killed
        servers.until(lambda: len(ada.texts()) == 3, "the part")
        said = ada.ask(two, id="q2")
        assert said.status == 200, said.last
        assert api.views[-1] == ["Be brief.", one, two]
        assert [text for text in ada.texts() if not text.startswith("Answer 1 ")] == [one, two, said.text]


def test_an_answer_stays_if_the_model_fails_to_write_it_anew(database: str, api: Model) -> None:
    """The model refuses, or breaks in the middle: each leaves what was acknowledged."""
    text = "A name for my boat?"
    with served(database, api.address) as address:
        ada = Browser(address)
        first = ada.ask(text, id="q1")
        api.is_away.set()
        assert "the model said nothing" in ada.ask(text, id="q1", attempt=2).last["error"]
        api.is_away.clear()
        assert ada.texts() == [text, first.text]
        api.breaks.set()
        broken = ada.ask(text, id="q1", attempt=2)
        api.breaks.clear()
        assert broken.pieces
        assert broken.message == first.message
        assert ada.texts() == [text, first.text]
        second = ada.ask(text, id="q1", attempt=2)
        assert ada.texts() == [text, second.text]
    assert api.views == [["Be brief.", text]] * 4


def test_an_answer_that_turns_to_garbage_is_kept_by_half_and_asked_again(database: str, api: Model) -> None:
    """What a proxy may send is no error of the model's client: it raises what its parser raises."""
    with served(database, api.address) as address:
        ada = Browser(address)
        api.garbles.set()
        broken = ada.ask("Hello", id="q1")
        api.garbles.clear()
        assert broken.message["cut"]
        assert broken.text == "".join(broken.pieces) != ""
        assert ada.read()[-1] == broken.message
        whole = ada.ask("Hello", id="q1")
        assert ada.texts() == ["Hello", whole.text]


def _store_question(url: str, text: str, *, id: str) -> None:
    store = open_store(url)
    Session.open(store, "ada/bicycle", allow_missing=True).add({"role": "user", "content": text}, id=id)
    store.close()


def test_a_worker_that_is_stopped_ends_its_answers_first(database: str, api: Model) -> None:
    """A deployment: SIGINT, then the model goes on, and the browser has the whole answer."""
    with process(database, api.address) as (address, service):
        with Browser(address).open(f"Tell me {HOLD}", id="q1") as response:
            assert api.holds.wait(30)
            service.terminate()
            api.go.set()
            *_, last = lines_of(response)
        service.wait(30)
    with served(database, api.address) as address:
        assert Browser(address).read()[-1] == last["message"]


def _ask_until_there(browser: Browser, text: str, *, id: str, attempt: int = 1) -> Said:
    """Ask as a browser does that is told to ask again; not for ever."""
    said = browser.ask(text, id=id, attempt=attempt)
    for _ in range(20):
        if said.status != 503 and "error" not in said.last:
            break
        said = browser.ask(text, id=id, attempt=attempt)
    return said


def test_workers_take_questions_of_one_conversation_at_once(url: str, api: Model) -> None:
    """Twelve from four tabs, by two workers: each is answered, and is there once."""
    with served(url, api.address, workers=2) as address, ThreadPoolExecutor(4) as threads:
        ada = Browser(address)

        def asked(n: int) -> str:
            said = _ask_until_there(ada, f"question {n}", id=f"q{n}")
            assert said.status == 200, said.last
            return said.text

        answers = list(threads.map(asked, range(12)))
        told = ada.texts()
    assert sorted(told) == sorted([f"question {n}" for n in range(12)] + answers)


def test_tabs_that_ask_anew_take_back_no_question_of_another(url: str, api: Model) -> None:
    """Half of the tabs have an answer written anew while the others ask: no question is taken back."""
    with served(url, api.address, workers=2) as address, ThreadPoolExecutor(4) as threads:
        ada = Browser(address)
        ada.ask("first", id="q0")

        def anew(n: int) -> int:
            if n % 2:
                return _ask_until_there(ada, "first", id="q0", attempt=n + 1).status
            return _ask_until_there(ada, f"question {n}", id=f"q{n}").status

        statuses = list(threads.map(anew, range(2, 14)))
        told = ada.texts()
    assert statuses[::2] == [200] * 6  # the questions
    assert set(statuses[1::2]) <= {200, 409}
    assert {f"question {n}" for n in range(2, 14, 2)} <= set(told)
    assert told[0] == "first"


def test_what_came_after_it_was_read_is_not_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """One tab reads that its answer is the last, another asks, then the first takes back: it is refused."""
    monkeypatch.setenv("STORE_URL", "memory://")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    program = importlib.import_module("tests.integrations.fastapi.program")

    async def tabs() -> list[str]:
        one = await program.new_or_known("bicycle", "ada")
        two = await program.new_or_known("bicycle", "ada")
        question = program.Question(id="q1", text="One", attempt=2)
        asked = await one.aadd({"role": "user", "content": "One"}, id="q1")
        await one.aadd({"role": "assistant", "content": "First"}, id="q1/1/whole/0")
        assert [event.id for event in await program.said(one)][-1] == "q1/1/whole/0"
        await two.aadd({"role": "user", "content": "Two"}, id="q2")
        with pytest.raises(VersionConflictError):
            await program.keep(one, asked, question, "Second", "whole")
        kept = await program.keep(one, asked, question, "Second", "whole")
        after = [event.id for event in await program.said(one)]
        assert question.answer_in(await program.said(one)) == kept
        return [id if id != kept.id else "kept" for id in after]

    assert asyncio.run(tabs()) == ["q1", "q1/1/whole/0", "q2", "kept"]


def test_an_answer_is_stored_though_the_server_restarts_meanwhile(api: Model) -> None:
    """PostgreSQL is stopped in the middle of the answer, and comes back while the app tries to store it."""
    server = servers.postgres()
    assert server.data.exists()
    with store_url("postgres") as url, served(url, api.address) as address:
        ada = Browser(address)
        with ada.open(f"Tell me {HOLD}", id="q1") as response:
            assert api.holds.wait(30)
            server.stop()
            refused = Browser(address, "bob").call("GET", "/chats")
            api.go.set()
            server.start()
            *_, last = lines_of(response)
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
        servers.until(lambda: ada.call("GET", "/chats/bicycle").status_code == 200, "the app")
        assert ada.read()[-1] == last["message"]


def test_a_database_that_is_away_is_told_as_such(api: Model) -> None:
    """The service starts nevertheless, and the browser may ask again, with the same id."""
    nobody = f"postgresql://postgres@127.0.0.1:{servers.free_port()}/chats"
    with served(nobody, api.address) as address:
        refused = Browser(address).call("POST", "/chats/bicycle", id="q1", text="Hello.")
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
        assert refused.json() == {"detail": "ask again, with the same id"}
        assert Browser(address).call("GET", "/me/export").status_code == 503
    assert api.bodies == []


def test_a_wrong_password_ends_the_service_at_its_start(database: str, api: Model) -> None:
    """It is not told to each user."""
    place = urlsplit(database)
    wrong = place._replace(netloc=f"{place.username}:wrong@{place.hostname}:{place.port}").geturl()
    with pytest.raises(AssertionError, match="the service has ended"), served(wrong, api.address):
        pass


def test_a_conversation_nobody_uses_ends(database: str, api: Model) -> None:
    """Ninety days after its newest message `trimtab session expire` removes it; used ones stay."""
    with served(database, api.address) as address:
        ada = Browser(address)
        ada.ask("Hello.", id="q1")
        [entry] = (store := open_store(database)).sessions(owner="ada")
        assert entry.ttl == 90 * 86_400
        assert store.expire(now=time.time() + 89 * 86_400).sessions == 0
        assert store.expire(now=time.time() + 91 * 86_400).sessions == 1
        store.close()
        assert ada.call("GET", "/chats/bicycle").status_code == 404
