"""What the inspector shows of a session first costs what the page shows, however long the log is."""

from __future__ import annotations

import threading
from functools import cache
from types import FrameType
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.builders import assistant, user, words
from tests.complexity.counting_machine import PACKAGE
from trimtab import Session
from trimtab.inspector import Subject, make_app
from trimtab.stores import Event, LoadRequest, MemoryStore
from trimtab.testing import WordCounter

FEW, MANY = 3_000, 12_000
MOST_GROWTH = 1.2
"""Most times the cost of the short session that the cost of the long one may be."""

TOKEN = "a-token-that-nobody-guesses"


class Measured(MemoryStore):
    """Counts the events it gives back."""

    read_events = 0

    def load(self, request: LoadRequest, /) -> list[Event]:
        """Read, and count."""
        events = super().load(request)
        self.read_events += len(events)
        return events


@cache
def chat(count: int, *, summarizes: bool) -> tuple[Session, Measured]:
    """Make a session of so many messages, the oldest of them pinned; it shows what a short one shows."""
    store = Measured()
    summarizer = (lambda _: "They talked.") if summarizes else None
    session = Session(2_000, counter=WordCounter(), summarizer=summarizer, store=store, id="s")
    session.pin(session.add(user("Remember this.")))
    for at in range(0, count, 500):
        session.extend([(user, assistant)[n % 2](f"{n:09} {words(19)}") for n in range(at, at + 500)])
    return session, store


def client_of(session: Session) -> TestClient:
    """Make the inspector of a session, which has read nothing yet."""
    return TestClient(
        make_app(Subject(name="s", policies=(), fit=lambda *_: session.fit(), session=session), token=TOKEN),
        base_url="http://127.0.0.1:8000",
        headers={"Authorization": f"Bearer {TOKEN}"},
    )


def lines_of(client: TestClient, path: str) -> int:
    """Ask for a page; count the lines that are run inside trimtab, in threads that are started for it."""
    lines = [0]

    def on_line(_frame: FrameType, event: str, _arg: object) -> Any:
        lines[0] += event == "line"
        return on_line

    def on_call(frame: FrameType, _event: str, _arg: object) -> Any:
        return on_line if frame.f_code.co_filename.startswith(PACKAGE) else None

    before = threading.gettrace()
    threading.settrace(on_call)
    try:
        assert client.get(path).status_code == 200
    finally:
        # typeshed has no None here, which is what stands there where nobody traces
        threading.settrace(before)  # type: ignore[arg-type]
    return lines[0]


@pytest.mark.long
@pytest.mark.parametrize("path", ["/", "/timeline", "/rows?start=40&count=100", "/?budget=3000"])
@pytest.mark.parametrize("summarizes", [True, False])
def test_a_first_page_costs_what_it_shows(path: str, summarizes: bool) -> None:
    """Of a log of four times the length no more is read, and no more is done."""
    costs = []
    for count in (FEW, MANY):
        session, store = chat(count, summarizes=summarizes)
        session.refresh()
        store.read_events = 0
        lines = lines_of(client_of(session), path)
        assert lines > 1_000
        costs.append((lines, store.read_events))
    (few_lines, few_events), (many_lines, many_events) = costs
    assert many_lines <= MOST_GROWTH * few_lines
    assert many_events <= MOST_GROWTH * few_events
