"""Every route of the program of docs/guides/web-app.md, over HTTP, on each store; the stores are real."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests import servers
from tests.integrations.fastapi.model import BREAK, END, HOLD, Model, model
from tests.integrations.fastapi.service import Browser, Said, lines_of, served, store_url
from trimtab import Session, counter_for
from trimtab.stores import open_store

KEYS = "one:" + "A" * 43 + "="


class Service(NamedTuple):
    """A service that runs, and what it stands on."""

    address: str
    api: Model
    url: str

    def browser(self, chat: str, user: str = "ada") -> Browser:
        """Open a conversation in a browser."""
        return Browser(self.address, user, chat)


@pytest.fixture(scope="module", params=["sqlite", "postgres", "redis", "sqlite encrypted"])
def service(request: pytest.FixtureRequest) -> Iterator[Service]:
    """Give one service on each store for the tests that stop nothing."""
    kind, _, is_encrypted = request.param.partition(" ")
    more = {"STORE_KEYS": "env:RING", "RING": KEYS} if is_encrypted else {}
    with store_url(kind) as url, model() as api, served(url, api.address, **more) as address:
        yield Service(address, api, url)
        assert api.refusals == []


@pytest.fixture
def many() -> Iterator[Browser]:
    """Give a browser in a conversation of 260 messages."""
    with store_url("sqlite") as url, model() as api, served(url, api.address) as address:
        ada = Browser(address)
        store = open_store(url)
        with Session(90_000, model="gpt-4o", store=store, id="ada/bicycle", owner="ada") as chat:
            chat.extend([{"role": "user", "content": f"message {n}"} for n in range(260)])
        store.close()
        yield ada


def test_an_answer_comes_in_pieces_and_last_as_it_is_stored(service: Service) -> None:
    """The pieces together are the message, and the message is what the conversation has."""
    ada = service.browser("pieces")
    said = ada.ask("Does my belt drive need oil?", id="q1")
    assert said.status == 200
    assert len(said.pieces) > 3
    assert "".join(said.pieces) == said.text
    assert not said.message["cut"]
    assert ada.read()[-1] == said.message
    assert ada.texts() == ["Does my belt drive need oil?", said.text]


def test_a_question_asked_again_is_stored_once_and_answered_alike(service: Service) -> None:
    """The browser lost the answer, and asks with the same id: the model is not asked again."""
    ada = service.browser("again")
    first = ada.ask("Why does it squeak?", id="q1")
    before = service.api.said
    again = ada.ask("Why does it squeak?", id="q1")
    assert (again.pieces, again.message) == ([], first.message)
    assert service.api.said == before
    assert ada.texts() == ["Why does it squeak?", first.text]
    assert ada.ask("Why?", id="q2").text != first.text
    other = ada.ask("Another text", id="q1")
    assert (other.status, other.last.keys()) == (400, {"detail"})


def test_users_do_not_see_each_other(service: Service) -> None:
    """The name of a conversation of another user is a 404, and is in no list, export or deletion."""
    ada, bob = service.browser("secret", "ada2"), service.browser("secret", "bob2")
    mine = ada.ask("My order is 7741.", id="q1")
    edit: dict[str, Any] = {"id": "q2", "text": "Hm", "version": 2, "chat": "mine"}
    for method, path, body in (
        ("GET", "/chats/secret", {}),
        ("PATCH", "/chats/secret", {"title": "Bob's"}),
        ("POST", "/chats/secret/branch", edit),
    ):
        assert bob.call(method, path, **body).status_code == 404
    assert bob.call("GET", "/chats").json() == {"chats": [], "next": None}
    assert bob.call("GET", "/me/export").json() == {"lines": 0}
    assert bob.call("DELETE", "/chats/secret").json()["sessions"] == 0
    assert bob.call("DELETE", "/me").json()["sessions"] == 0
    bob.ask("Hello.", id="q1")
    assert service.api.views[-1] == ["Be brief.", "Hello."]
    assert ada.texts() == ["My order is 7741.", mine.text]


def test_nobody_and_odd_names_are_refused(service: Service) -> None:
    """A request without a user, and names that are no names."""
    nobody = Browser(service.address, "")
    assert nobody.call("GET", "/chats").status_code == 422
    ada = service.browser("odd")
    for name in ("a%2Fb", "a b", "x" * 65):
        assert ada.call("POST", f"/chats/{name}", id="q1", text="Hello").status_code in (404, 422)
    assert ada.call("POST", "/chats/odd", id="a/b", text="Hello").status_code == 422
    assert ada.call("GET", "/chats?after=x").status_code == 400
    assert ada.call("GET", "/chats/odd").status_code == 404


def test_an_answer_is_replaced_twice(service: Service) -> None:
    """Each attempt takes back the one before; the model sees none of them. A late repeat changes nothing."""
    ada = service.browser("anew")
    first = ada.ask("A name for my boat?", id="q1")
    second = ada.ask("A name for my boat?", id="q1", attempt=2)
    third = ada.ask("A name for my boat?", id="q1", attempt=3)
    assert len({first.text, second.text, third.text}) == 3
    assert ada.texts() == ["A name for my boat?", third.text]
    assert service.api.views[-2:] == [["Be brief.", "A name for my boat?"]] * 2
    assert ada.ask("A name for my boat?", id="q1", attempt=2).message == third.message
    ada.ask("Thanks", id="q2")
    assert service.api.views[-1] == ["Be brief.", "A name for my boat?", third.text, "Thanks"]


def test_an_answer_that_is_not_the_last_is_not_replaced(service: Service) -> None:
    """What came after it stands on it."""
    ada = service.browser("later")
    first = ada.ask("One?", id="q1")
    second = ada.ask("Two?", id="q2")
    assert ada.ask("One?", id="q1", attempt=2).status == 409
    assert ada.texts() == ["One?", first.text, "Two?", second.text]


def test_an_edit_branches_and_leaves_the_conversation(service: Service) -> None:
    """The new conversation has what was said before the message; asked again it is made once."""
    ada = service.browser("trunk")
    first = ada.ask("I ride a red bicycle.", id="q1")
    second = ada.ask("What do I ride?", id="q2")
    at = ada.read()[2]["version"]
    branched = ada.branch("Which colour?", id="e1", version=at, to="twig")
    assert service.api.views[-1] == ["Be brief.", "I ride a red bicycle.", first.text, "Which colour?"]
    assert ada.branch("Which colour?", id="e1", version=at, to="twig").message == branched.message
    twig = service.browser("twig")
    assert twig.texts() == ["I ride a red bicycle.", first.text, "Which colour?", branched.text]
    assert ada.texts() == ["I ride a red bicycle.", first.text, "What do I ride?", second.text]
    assert ada.branch("Hm", id="e2", version=99, to="none").status == 400
    assert ada.branch("Hm", id="e2", version=at, to="twig").status == 400
    assert ada.branch("Hello", id="e3", version=at, to="trunk").status == 400


def test_an_edit_that_is_refused_leaves_no_conversation(service: Service) -> None:
    """Its id is that of a message of the copy, or it is too long: the list has the old conversation only."""
    ada = service.browser("stays", "edith")
    first = ada.ask("I ride a red bicycle.", id="q1")
    ada.ask("What do I ride?", id="q2")
    at = ada.read()[2]["version"]
    assert ada.branch("Which colour?", id="q1", version=at, to="same-id").status == 400
    assert ada.branch("oil, water, " * 3_000, id="e1", version=at, to="huge").status == 413
    assert [chat["name"] for chat in ada.call("GET", "/chats").json()["chats"]] == ["stays"]
    said = ada.branch("Which colour?", id="e1", version=at, to="huge")
    assert service.browser("huge", "edith").texts()[1:] == [first.text, "Which colour?", said.text]


def test_a_long_conversation_is_read_in_parts(many: Browser) -> None:
    """The newest 200 messages, then those before."""
    newest = many.read()
    older = many.call("GET", f"/chats/bicycle?before={newest[0]['version']}").json()
    assert (len(newest), len(older)) == (200, 60)
    assert [one["content"] for one in older + newest] == [f"message {n}" for n in range(260)]


def test_an_edit_of_the_first_message_begins_anew(service: Service) -> None:
    """There is nothing before it, and the branch is the user's."""
    ada = service.browser("root", "root-user")
    ada.ask("Hello", id="q1")
    said = ada.branch("Good morning", id="e1", version=ada.read()[0]["version"], to="root-2")
    assert service.api.views[-1] == ["Be brief.", "Good morning"]
    assert service.browser("root-2", "root-user").texts() == ["Good morning", said.text]
    names = [chat["name"] for chat in ada.call("GET", "/chats").json()["chats"]]
    assert names == ["root", "root-2"]


def test_a_user_who_stops_an_answer_keeps_what_was_said(service: Service) -> None:
    """The call of the model ends, the part is stored and marked, and the conversation goes on from it."""
    ada, api = service.browser("stop"), service.api
    shown = _stopped(ada, api, id="q1")
    question, part = ada.read()
    assert question["content"] == f"Tell me all {HOLD}"
    assert part["cut"]
    assert part["content"].startswith(shown)
    assert not part["content"].endswith(END)
    ada.ask("Shorter.", id="q2")
    assert api.views[-1] == ["Be brief.", question["content"], part["content"], "Shorter."]


def _stopped(ada: Browser, api: Model, *, id: str) -> str:
    """Ask, and close the connection in the middle of the answer; gives what was shown by then."""
    api.reset()
    with ada.open(f"Tell me all {HOLD}", id=id) as response:
        events = lines_of(response)
        shown = next(events)["text"]
        assert api.holds.wait(30)
    assert api.client_left.wait(30)
    servers.until(lambda: ada.read()[-1]["cut"], "the part of an answer")
    return str(shown)


def test_a_stopped_answer_is_given_whole_to_who_asks_again(service: Service) -> None:
    """As a browser does whose connection broke: the part is replaced."""
    ada, api = service.browser("broke"), service.api
    _stopped(ada, api, id="q1")
    api.go.set()
    whole = ada.ask(f"Tell me all {HOLD}", id="q1")
    assert not whole.message["cut"]
    assert whole.text.endswith(END)
    assert ada.texts() == [f"Tell me all {HOLD}", whole.text]
    assert api.views[-1] == ["Be brief.", f"Tell me all {HOLD}"]


def test_a_model_that_breaks_off_leaves_its_part(service: Service) -> None:
    """The browser is told that the answer is cut, and may ask again."""
    ada = service.browser("break")
    said = ada.ask(f"Tell me {BREAK}", id="q1")
    assert said.message["cut"]
    assert "".join(said.pieces) == said.text
    assert ada.texts() == [f"Tell me {BREAK}", said.text]


def test_two_tabs_ask_at_once_and_both_are_answered(service: Service) -> None:
    """One holds in the middle of its answer while the other is answered; each sees both by reading."""
    one, api = service.browser("tabs"), service.api
    two = service.browser("tabs")
    api.reset()
    with one.open(f"One {HOLD}", id="q1") as response:
        assert api.holds.wait(30)
        second = two.ask("Two", id="q2")
        assert [event["content"] for event in one.read()] == [f"One {HOLD}", "Two", second.text]
        api.go.set()
        *_, last = lines_of(response)
    first = last["message"]["content"]
    assert two.texts() == [f"One {HOLD}", "Two", second.text, first]
    one.ask("Three", id="q3")
    assert api.views[-1] == ["Be brief.", f"One {HOLD}", "Two", second.text, first, "Three"]


def test_one_question_of_two_tabs_has_one_answer(service: Service) -> None:
    """Both asked with one id while neither was answered: the later one is told what is stored."""
    one, api = service.browser("twice"), service.api
    api.reset()
    with one.open(f"One {HOLD}", id="q1") as response:
        assert api.holds.wait(30)
        api.holds.clear()
        with one.open(f"One {HOLD}", id="q1") as other:
            assert api.holds.wait(30)
            api.go.set()
            *_, second = lines_of(other)
        *_, first = lines_of(response)
    assert first == second
    assert one.texts() == [f"One {HOLD}", first["message"]["content"]]


def test_conversations_are_listed_in_pages_with_their_titles(service: Service) -> None:
    """Fifty at a time, each once."""
    names = [f"chat-{n:02}" for n in range(53)]
    for name in names:
        service.browser(name, "eve").ask("Hello", id="q1")
    eve = service.browser("chat-07", "eve")
    assert eve.call("PATCH", "/chats/chat-07", title="Belts").status_code == 204
    assert eve.call("PATCH", "/chats/none", title="Belts").status_code == 404
    first = eve.call("GET", "/chats").json()
    second = eve.call("GET", f"/chats?after={first['next']}").json()
    assert [len(page["chats"]) for page in (first, second)] == [50, 3]
    assert second["next"] is None
    listed = [*first["chats"], *second["chats"]]
    assert [chat["name"] for chat in listed] == names
    assert [chat.get("title") for chat in listed] == [
        "Belts" if name == "chat-07" else None for name in names
    ]


def test_an_export_has_all_of_a_user_and_a_deletion_leaves_nothing(service: Service) -> None:
    """The receipt says what the export had, and the texts are in no list, conversation or store."""
    said: list[Said] = []
    for name in ("one", "two"):
        dora = service.browser(name, "dora")
        said += [dora.ask(f"My code is 59{n}-{name}.", id=f"q{n}") for n in range(3)]
    said.append(dora.ask("My code is 592-two.", id="q2", attempt=2))
    *lines, end = [json.loads(line) for line in dora.call("GET", "/me/export").text.splitlines()]
    assert end == {"lines": len(lines)}
    messages = [line["data"]["message"]["content"] for line in lines if line.get("kind") == "message"]
    asked = [f"My code is 59{n}-{name}." for name in ("one", "two") for n in range(3)]
    assert sorted(messages) == sorted([*asked, *(one.text for one in said)])
    assert {line["session"] for line in lines} == {"dora/one", "dora/two"}
    whole = [line for line in lines if "events" in line]
    assert [line["owner"] for line in whole] == ["dora"] * 2
    rest = dora.call("GET", f"/me/export?after={lines[-2]['at']}").text.splitlines()
    assert [json.loads(line) for line in rest] == [lines[-1], {"lines": 1}]

    receipt = dora.call("DELETE", "/me").json()
    assert (receipt["sessions"], receipt["messages"]) == (2, len(messages))
    assert (receipt["left"], receipt["not_erased"], receipt["more"]) == ({}, None, False)
    assert dora.call("GET", "/me/export").json() == {"lines": 0}
    if service.url.startswith("sqlite"):  # files of servers: tests/stores/test_servers.py
        folder = Path(service.url.removeprefix("sqlite:///")).parent
        assert all(b"My code is 59" not in file.read_bytes() for file in folder.iterdir())
    assert dora.call("GET", "/chats").json()["chats"] == []
    assert dora.call("GET", "/chats/one").status_code == 404


def test_a_deleted_conversation_is_gone(service: Service) -> None:
    """Others of the user stay, and its name may be used anew."""
    cleo, other = service.browser("order", "cleo"), service.browser("other", "cleo")
    cleo.ask("My order is 7741.", id="q1")
    other.ask("Hello.", id="q1")
    receipt = cleo.call("DELETE", "/chats/order").json()
    assert (receipt["sessions"], receipt["messages"], receipt["not_erased"]) == (1, 2, None)
    assert cleo.call("GET", "/chats/order").status_code == 404
    assert len(other.read()) == 2
    assert cleo.ask("Hello again.", id="q1").status == 200
    assert service.api.views[-1] == ["Be brief.", "Hello again."]


def test_a_conversation_that_is_deleted_during_an_answer_stays_deleted(service: Service) -> None:
    """The browser is told, and nothing of it comes back."""
    cleo, api = service.browser("gone", "cleo2"), service.api
    api.reset()
    with cleo.open(f"Tell me {HOLD}", id="q1") as response:
        assert api.holds.wait(30)
        assert cleo.call("DELETE", "/chats/gone").json()["sessions"] == 1
        api.go.set()
        *_, last = lines_of(response)
    assert last == {"error": "the conversation was deleted, or has expired"}
    assert cleo.call("GET", "/chats/gone").status_code == 404


def test_a_message_larger_than_the_budget_is_refused(service: Service) -> None:
    """The model is not asked, and the next question is answered."""
    ada, before = service.browser("huge"), service.api.said
    assert ada.ask("oil, water, " * 3_000, id="q1").status == 413
    assert service.api.said == before
    assert ada.ask("Oil, or water?", id="q2").status == 200
    assert service.api.views[-1][-1] == "Oil, or water?"


def test_a_long_conversation_is_summarized_and_each_request_fits(service: Service) -> None:
    """Over the budget several times: the smaller model writes summaries, and the log has every word."""
    ada, before = service.browser("long"), len(service.api.bodies)
    for n in range(20):
        assert ada.ask(f"{n}: " + "does a belt drive need oil? " * 40, id=f"q{n}").status == 200
    assert len(ada.read()) == 40
    bodies = [body for _, body in service.api.bodies[before:]]
    chats = [body["messages"] for body in bodies if body["model"] == "gpt-4o"]
    assert len(chats) == 20
    assert max(counter_for("gpt-4o").count(messages) for messages in chats) <= 2_000
    assert any(body["model"] == "gpt-4o-mini" for body in bodies)
    assert "<summary" in json.dumps(chats[-1])
