"""Texts of the last requests in an inspector: what came, what was sent, and why; not for all, and bounded."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.gateway.gateways import Answer, Recorder, Running, Seen, gateway, recorder, talk

TOKEN = "a-token-of-16-or-more"
CHAT = "/v1/chat/completions"
KEY = "sk-this-is-a-key"
EVICTED = "the first thing that was said"


def chat(turns: int, first: str = EVICTED, model: str = "gpt-4o") -> dict[str, Any]:
    """Write a request whose first message is told apart."""
    return {"model": model, "messages": [{"role": "user", "content": first}, *talk(turns)[1:]]}


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Running, Recorder]]:
    """A gateway that keeps texts, with a budget of 1,000 tokens."""

    def answer(seen: Seen) -> tuple[int, dict[str, str], bytes]:
        return 200, {}, b'{"usage": {"prompt_tokens": 800, "completion_tokens": 0}}'

    with (
        recorder(answer) as behind,
        gateway(behind.address, budgets={"*": "1k"}, learn=False, keep_bodies=True) as front,
    ):
        yield front, behind


def asked(front: Running, body: Any, path: str = CHAT) -> str:
    """Send a request, and return its id once it is at its end, and so is kept."""
    return front.ask(path, body, {"Authorization": f"Bearer {KEY}"}).headers["trimtab-request-id"]


def visit(front: Running, path: str) -> Answer:
    """Ask the inspector for a page, as a browser does after its first visit, and follow where it leads."""
    first = front.ask(front.inspect_path, method="GET")
    assert first.status == 303
    cookie = first.headers["set-cookie"].partition(";")[0]
    answer = front.ask(f"/trimtab/inspect{path}", method="GET", headers={"Cookie": cookie})
    if answer.status == 303:
        answer = front.ask(answer.headers["location"], method="GET", headers={"Cookie": cookie})
    return answer


def text(answer: Answer) -> str:
    """Read what a page shows."""
    return html.unescape(re.sub(r"<[^>]*>", " ", answer.body.decode()))


def listed(front: Running) -> list[str]:
    """List the ids of the requests that are kept, the last one first."""
    return re.findall(r'class="title">([0-9a-f]{16})<', visit(front, "/").body.decode())


def test_a_request_is_shown_as_it_came_and_as_it_was_sent(pair: tuple[Running, Recorder]) -> None:
    """Its id leads to its page; evicted messages are listed with their text and why."""
    front, behind = pair
    id = asked(front, chat(30))
    page = visit(front, f"/named/{id}")
    assert page.status == 200
    assert f"request {id}" in text(page)
    assert "done, status 200, 800 tokens of input billed, $0.002" in text(page)
    sent = behind.seen[-1].data["messages"]
    assert f"{len(sent)} of 61 messages" in " ".join(text(page).split())
    assert "over the budget" in text(page) or "over limit" in text(page).replace("_", " ")
    number = re.search(r"/of/(\d+)/", page.body.decode())
    assert number is not None
    evicted = visit(front, f"/of/{number[1]}/rows?only=evicted&start=0")
    assert EVICTED in text(evicted)
    shown = text(visit(front, f"/of/{number[1]}/rows?only=sent&start=0"))
    assert EVICTED not in shown
    assert sent[-1]["content"] in shown


def test_other_policies_and_budgets_are_tried_beside_it(pair: tuple[Running, Recorder]) -> None:
    """What was sent has no other budget; the same request under another policy has any."""
    front, _ = pair
    at = f"/of/{_number(front, asked(front, chat(30)))}/"
    assert "choose another policy" in text(visit(front, f"{at}?budget=100000"))
    whole = text(visit(front, f"{at}?policy=default&budget=100000"))
    assert "61 of 61 messages" in " ".join(whole.split())
    first = text(visit(front, f"{at}?policy=drop_newest"))
    assert EVICTED in first


def _number(front: Running, id: str) -> str:
    found = re.search(r"/of/(\d+)/", visit(front, f"/named/{id}").body.decode())
    assert found is not None
    return found[1]


def test_what_was_refused_shows_what_came_nearest(pair: tuple[Running, Recorder]) -> None:
    """Its numbers, and the message that takes the room."""
    front, _ = pair
    id = asked(front, {"model": "gpt-4o", "messages": [{"role": "user", "content": "word " * 3_000}]})
    page = " ".join(text(visit(front, f"/named/{id}")).split())
    assert "Does not fit" in page
    assert "too long, status 400" in page


def test_what_has_no_messages_here_is_not_kept(pair: tuple[Running, Recorder]) -> None:
    """Counts, calls that go on from a server's messages, and other paths."""
    front, _ = pair
    kept = listed(front)
    asked(front, {**chat(3, model="claude-opus-4-5"), "max_tokens": 9}, "/v1/messages/count_tokens")
    asked(front, {"model": "gpt-4o", "input": "x", "previous_response_id": "resp_1"}, "/v1/responses")
    asked(front, {}, "/v1/files")
    assert listed(front) == kept


def test_the_page_of_numbers_leads_to_texts_and_has_none(pair: tuple[Running, Recorder]) -> None:
    """By the id of each request; without the secret such a link leads nowhere."""
    front, _ = pair
    id = asked(front, chat(5))
    page = front.ask("/trimtab/", method="GET").body.decode()
    assert EVICTED not in page
    assert f'href="inspect/named/{id}"' in page
    assert front.ask(f"/trimtab/inspect/named/{id}", method="GET").status == 401
    assert visit(front, "/named/0123456789abcdef").status == 404


def test_no_page_has_a_key_and_the_secret_is_sent_to_nobody_else(pair: tuple[Running, Recorder]) -> None:
    """A cookie of all paths would go to providers with the requests of a page."""
    front, behind = pair
    number = _number(front, asked(front, chat(30)))
    for path in ("/", f"/of/{number}/", f"/of/{number}/rows?only=all&start=0"):
        assert KEY.encode() not in visit(front, path).body
    cookie = front.ask(front.inspect_path, method="GET").headers["set-cookie"]
    assert {"path=/trimtab/inspect", "httponly", "samesite=strict"} <= set(cookie.lower().split("; "))
    assert all("/trimtab" not in one.target for one in behind.seen)


def test_hosts_and_sites_of_others_see_no_text(pair: tuple[Running, Recorder]) -> None:
    """Not even with the secret."""
    front, _ = pair
    for headers, status in (({"Host": "evil.example"}, 421), ({"Origin": "https://evil.example"}, 403)):
        assert front.ask(front.inspect_path, method="GET", headers=headers).status == status


def test_the_token_of_clients_opens_no_text() -> None:
    """Whoever may ask may not read what others asked; whoever runs it needs no token beside the secret."""
    with recorder() as behind, gateway(behind.address, token=TOKEN, keep_bodies=True) as front:
        id = front.ask(CHAT, chat(3), {"trimtab-token": TOKEN}).headers["trimtab-request-id"]
        assert front.ask(f"/t/{TOKEN}/trimtab/inspect/", method="GET").status == 401
        assert listed(front) == [id]
        assert f"request {id}" in text(visit(front, f"/named/{id}"))


def test_kept_texts_are_bounded_by_number_and_by_size() -> None:
    """The last ones stay; one that is longer than all may be is not kept, and evicts no other."""
    limits = {"max_kept_calls": 3, "max_kept_bytes": 100_000}
    with recorder() as behind, gateway(behind.address, limits=limits, keep_bodies=True) as front:
        few = [asked(front, chat(2)) for _ in range(5)]
        assert listed(front) == few[:1:-1]
        large = asked(front, chat(22))  # 45 messages of 500 bytes, each with what an object takes
        assert listed(front) == [large, few[-1], few[-2]]
        next = asked(front, chat(22))
        assert listed(front) == [next]
        asked(front, chat(60))
        assert listed(front) == [next]
        assert visit(front, f"/named/{few[0]}").status == 404


def test_texts_are_kept_by_nobody_who_was_not_asked_to() -> None:
    """The path is no page then, and no upstream's."""
    with recorder() as behind, gateway(behind.address) as front:
        asked(front, chat(3))
        assert front.inspect_path == ""
        assert front.ask("/trimtab/inspect/", method="GET").status == 404
        assert len(behind.seen) == 1
