"""The inspector over several conversations: the list and the way to each; filters, prices, models of one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.inspectors import conversation
from trimtab import CharCounter, fit
from trimtab.errors import ConfigurationError, UnknownNameError
from trimtab.inspector import Collection, Item, Subject, make_app
from trimtab.models import dollars_for
from trimtab.replay import replay

TOKEN = "a-token-that-nobody-guesses"
HOSTILE = "<script>alert(1)</script>\x1b[31m\u202egnp.exe"


def _client(subject: Subject | None = None, **more: Any) -> TestClient:
    return TestClient(
        make_app(subject, token=TOKEN, **more),
        base_url="http://127.0.0.1:8000",
        headers={"Authorization": f"Bearer {TOKEN}"},
        follow_redirects=False,
    )


def _subject(name: str, turns: int = 6, **more: Any) -> Subject:
    chat = conversation(turns)

    def made(word: str, version: int | None) -> Any:
        strategy = None if word == "default" else word
        return fit(chat, 100, strategy=strategy, counter=CharCounter(4))

    return Subject(name=name, policies=("default", "drop_newest"), fit=made, **more)


def _opens(sizes: Mapping[str, int], opened: list[str] | None = None, **more: Any) -> Collection:
    def open(name: str) -> Subject:
        if opened is not None:
            opened.append(name)
        return _subject(name, sizes[name])

    items = [Item(name=name, said=f"begins {name}", messages=size) for name, size in sizes.items()]
    return Collection(**{"name": "chats", "items": lambda: items, "open": open, **more})


def _texts(page: str, pattern: str) -> list[str]:
    return re.findall(pattern, page, re.DOTALL)


def _names(page: str) -> list[str]:
    return _texts(page, r'<span class="title">(.*?)</span>')


def test_the_list_names_all_and_the_longest() -> None:
    """In their order, or the longest first; words find some of them."""
    client = _client(collection=_opens({"monday": 4, "tuesday": 12, "friday": 8}))
    page = client.get("/").text
    assert _names(page) == ["monday", "tuesday", "friday"]
    assert re.search(r"The longest is <a[^>]*>tuesday</a>: 12 messages", page)
    assert _names(client.get("/?by=size").text) == ["tuesday", "friday", "monday"]
    assert _names(client.get("/?q=FRI").text) == ["friday"]
    assert _names(client.get("/?q=nothing").text) == []


def test_each_is_opened_by_its_link_and_stays_there() -> None:
    """Its pages lead to its own pages and back; it is opened once."""
    opened = list[str]()
    client = _client(collection=_opens({"monday": 4, "tuesday": 12}, opened))
    links = _texts(client.get("/").text, r'<a href="(/of/\d+/)"><span class="title">')
    assert len(links) == 2
    page = client.get(links[1]).text
    assert "12 messages" in page
    inside = set(_texts(page, r'(?:href|action|hx-get|data-rows)="(/[^"]*)"'))
    inside = {one for one in inside if not one.startswith("/static/")}
    assert {one for one in inside if not one.startswith(links[1])} == {"/"}
    [rows] = _texts(page, r'data-rows="(.*?)"')
    assert client.get(rows.replace("&amp;", "&") + "&count=100").text.count("<article") == 12
    for path in ("compare", "search?q=belt", "message?at=3", "text?at=3"):
        assert client.get(links[1] + path).status_code == 200
    assert opened == ["tuesday"]
    assert client.get("/of/7/").status_code == 404
    at_once = _client(collection=_opens({"monday": 4, "tuesday": 12}))
    assert "12 messages" in at_once.get("/of/1/").text, "without a look at the list"


def test_a_new_one_shifts_no_address() -> None:
    """A store may grow while somebody looks."""
    names = ["bob", "cyd"]
    client = _client(
        collection=Collection(
            name="store",
            noun="session",
            items=lambda: [Item(name=name) for name in sorted(names)],
            open=lambda name: _subject(name),
        )
    )
    before = dict(re.findall(r'href="(/of/\d+/)"><span class="title">(.*?)<', client.get("/").text))
    names.append("ada")
    after = dict(re.findall(r'href="(/of/\d+/)"><span class="title">(.*?)<', client.get("/").text))
    assert before.items() <= after.items()
    assert set(after.values()) == {"ada", "bob", "cyd"}
    [bob] = [link for link, name in after.items() if name == "bob"]
    assert '<span class="what">bob</span>' in client.get(bob).text


def test_the_address_of_one_that_is_gone_is_nobodys() -> None:
    """Its name is forgotten, and its number is not given to another; one that is open stays so."""
    here = ["a", "b"]
    opened: list[str] = []

    def open(name: str) -> Subject:
        opened.append(name)
        return _subject(name)

    collection = Collection(
        name="chats", items=lambda: [Item(name=name, said="", messages=6) for name in here], open=open
    )
    client = _client(collection=collection)
    assert [client.get(path).status_code for path in ("/", "/of/0/", "/of/1/")] == [200] * 3
    here[:] = ["c"]
    assert client.get("/named/c").headers["location"] == "/of/2/"
    assert client.get("/of/1/").status_code == 200
    for number in range(2, 30):  # as many as push those out that are open
        here[:] = [f"new-{number}"]
        assert client.get("/").status_code == 200
        assert client.get(f"/of/{number + 1}/").status_code == 200
    before = len(opened)
    assert [client.get(f"/of/{number}/").status_code for number in (0, 1, 2, 99)] == [404] * 4
    assert len(opened) == before


def test_of_many_only_those_of_a_page_are_described() -> None:
    """What is asked of a store is bounded by what is shown."""
    asked = list[str]()

    def describe(item: Item) -> Item:
        asked.append(item.name)
        return Item(name=item.name, messages=len(asked))

    names = [f"s{at:04}" for at in range(1_000)]
    collection = Collection(
        name="store", items=lambda: [Item(name=name) for name in names], open=_subject, describe=describe
    )
    page = _client(collection=collection).get("/?start=400").text
    assert _names(page) == names[400:600] == asked
    assert "Longest" not in page
    assert 'name="by"' not in page


def test_what_cannot_be_opened_says_why_and_hostile_names_are_text() -> None:
    """Without a link; nothing of a name is markup."""
    items = [Item(name="bad", error="not JSON: line 1"), Item(name=HOSTILE, said=HOSTILE, messages=1)]
    collection = Collection(name=HOSTILE, items=lambda: items, open=_subject)
    page = _client(collection=collection).get("/?q=").text
    assert "not JSON: line 1" in page
    assert len(_texts(page, r'<a href="/of/')) == 2, (
        "the one that can be opened, in the list and as the longest"
    )
    assert "<script>alert" not in page
    assert not {"\x1b", "\u202e"}.intersection(page)


def test_there_is_one_subject_or_a_collection() -> None:
    """Neither and both are refused."""
    for given in ({}, {"collection": _opens({"a": 1})}):
        subject = _subject("chat") if given else None
        with pytest.raises(ConfigurationError, match="either a subject or collection="):
            make_app(subject, token=TOKEN, **given)  # type: ignore[arg-type]


# Filters, prices and models of one conversation.


def test_filters_divide_all_messages() -> None:
    """What is sent and what is evicted are all of them, and each row knows what stands before it unsent."""
    client = _client(_subject("chat", 60))
    listed = {
        only: [int(at) for at in _texts(client.get(f"/rows?only={only}&count=100").text, r'data-at="(\d+)"')]
        for only in ("sent", "evicted", "changed", "all")
    }
    assert listed["all"] == list(range(60))
    assert sorted(listed["sent"] + listed["evicted"]) == listed["all"]
    assert listed["changed"] == []
    page = client.get("/").text
    assert [int(at) for at in _texts(page, r'<article[^>]*data-at="(\d+)"')] == listed["sent"]
    assert _texts(page, r'class="gap">(\d+) messages') == [str(listed["sent"][0])]
    found = re.findall(r'data-filter="(\w+)" data-number="(\d+)"', page)
    counts = {only: int(number) for only, number in found}
    assert counts == {only: len(found) for only, found in listed.items()}
    assert client.get("/rows?only=nothing").status_code == 404


def test_a_gap_in_the_middle_is_counted() -> None:
    """Between system text and what the window keeps: as many messages as lie between the two numbers."""
    chat = [{"role": "system", "content": "Be brief."}, *conversation(60)]
    subject = Subject(
        name="chat",
        policies=("default",),
        fit=lambda word, version: fit(chat, 100, counter=CharCounter(4)),
    )
    rows = _client(subject).get("/rows?only=sent&count=100").text
    first, second, *_ = map(int, _texts(rows, r'data-at="(\d+)"'))
    assert first == 0
    assert _texts(rows, r'class="gap">(\d+) messages') == [str(second - 1)]


def test_a_request_above_a_price_tier_costs_more() -> None:
    """All of it: twice as much for gpt-5.5 from 272,000 tokens on."""
    chat = [{"role": "user", "content": "x" * 300_000}]
    subject = Subject(
        name="chat",
        policies=("default",),
        fit=lambda word, version: fit(chat, 400_000, counter=CharCounter(1)),
        model="gpt-5.5",
    )
    [said] = _texts(_client(subject).get("/").text, r"<b>\$([\d.]+)</b> for the input")
    assert float(said) == pytest.approx(2 * 5.0 * 0.3, rel=0.01)


def test_what_was_evicted_is_found_among_all() -> None:
    """A search leads to the row of the filter that shows it."""
    client = _client(_subject("chat", 60))
    [link] = _texts(
        client.get("/search?q=belt 3 needs").text, r'<a href="#list" (data-only="\w+" data-jump="\d+")'
    )
    assert link == 'data-only="all" data-jump="3"'
    newest = client.get("/search?q=belt 59 needs").text
    sent = client.get("/rows?only=sent&count=100").text.count("<article")
    assert f'data-only="sent" data-jump="{sent - 1}"' in newest


def test_the_input_has_its_price_in_dollars() -> None:
    """Of the model that is named; where its price is not known none is said."""
    subject = _subject("chat", 60, model="gpt-4o")
    price = dollars_for("gpt-4o")
    assert price is not None
    dollars = fit(conversation(60), 100, counter=CharCounter(4)).report.tokens_after * price / 1e6
    [said] = _texts(_client(subject).get("/").text, r"<b>\$([\d.]+)</b> for the input")
    assert float(said) == pytest.approx(dollars, rel=0.02)
    assert "for the input" not in _client(_subject("chat", 60, model="gpt-99")).get("/").text


def test_a_model_of_the_page_is_asked_for_and_a_wrong_one_is_said() -> None:
    """Its subject is made once; the error is in the page, with the controls."""
    made = list[str]()

    def for_model(name: str) -> Subject:
        made.append(name)
        if name == "wrong":
            raise UnknownNameError("no model called 'wrong' is known", name=name)
        return _subject("chat", 8, model=name, note=f"for {name}")

    client = _client(_subject("chat", 60, models=("gpt-4o",), for_model=for_model))
    page = client.get("/?model=gpt-4o").text
    assert "for gpt-4o" in page
    assert "8 messages" in page
    assert client.get("/rows?model=gpt-4o&count=100").text.count("<article") == 8
    assert made == ["gpt-4o"]
    wrong = client.get("/?model=wrong")
    assert wrong.status_code == 200
    assert _texts(wrong.text, r'role="alert">(.*?)</p>') == ["No model called &#39;wrong&#39; is known"]
    assert 'name="policy"' in wrong.text


def test_a_bill_is_played_at_once_in_the_prices_of_its_model() -> None:
    """Of a short conversation; refused calls stand beside the price."""
    chat = conversation(12)

    def play(word: str, pricing: str, window: int | None, version: int | None) -> Any:
        return replay(chat, word, budget=100, counter=CharCounter(4), pricing=pricing, name=word)

    subject = _subject("chat", 12, play=play, pricings=("gpt-4o", "anthropic"), model="gpt-4o")
    page = _client(subject).get("/bill").text
    found = play("default", "gpt-4o", None, None)
    [said] = _texts(page, r'class="figure"><b>\$([\d.]+)</b> for 6 calls')
    assert float(said) == pytest.approx(found.totals.price * 2.5 / 1e6, rel=0.01)
    assert "calls that could not be sent" in page
    other = _client(subject).get("/bill?policy_a=default&pricing=anthropic").text
    assert "tokens of plain input for 6 calls" in other
    assert "$" not in other
