"""The inspector of a session over plain HTTP: what its rows are of, while it grows, and after a redaction."""

from __future__ import annotations

import re
import threading
from types import FrameType
from typing import Any

import pytest
from starlette.testclient import TestClient

from trimtab import CharCounter, Context, Session, fit
from trimtab.inspector import Subject, make_app
from trimtab.replay import Replayed, replay
from trimtab.stores import MemoryStore

TOKEN = "a-token-that-nobody-guesses"
COUNTER = CharCounter(4)


def _add(session: Session, first: int, last: int) -> None:
    for turn in range(first, last):
        text = f"message {turn} about belt {turn % 7} " + "x" * (turn * 13 % 90)
        session.add({"role": ("user", "assistant")[turn % 2], "content": text})


def _session(turns: int = 40, **options: Any) -> Session:
    session = Session(
        budget=300, system="Be brief.", counter=COUNTER, store=MemoryStore(), id="ada", **options
    )
    _add(session, 0, turns)
    return session


def _subject(session: Session, played: list[tuple[object, ...]] | None = None) -> Subject:
    def said(version: int | None) -> list[Any]:
        return [event.message for event in session.history(before=(version or 0) + 1)]

    def play(word: str, pricing: str, window: int | None, version: int | None) -> Replayed:
        if played is not None:
            played.append((word, pricing, window, version))
        return replay(said(version), word, budget=window or 300, counter=COUNTER, name=word)

    return Subject(
        name="session ada",
        policies=("sliding_window", "drop_newest"),
        fit=lambda word, version: fit(said(version), 300, strategy=word, counter=COUNTER),
        play=play,
        pricings=("default",),
        session=session,
    )


def _client(session: Session, played: list[tuple[object, ...]] | None = None) -> TestClient:
    return TestClient(
        make_app(_subject(session, played), token=TOKEN),
        base_url="http://127.0.0.1:8000",
        headers={"Authorization": f"Bearer {TOKEN}"},
    )


def _texts(html: str, pattern: str) -> list[Any]:
    return re.findall(pattern, html, re.DOTALL)


def _rows(page: str) -> list[tuple[str, str, str, str]]:
    """Read of each row its place, its title, what became of it and its size."""
    head = r'data-at="(\d+)".*?<b>(.*?)</b>.*?class="fate \w+">(.*?)</span>'
    return _texts(page, head + r'.*?class="size">(?:<svg.*?</svg> )?(.*?)</p>')


def _text(client: TestClient, at: str, which: str = "came", **words: str | int) -> str:
    return str(client.get("/text", params={"at": at, "which": which, **words}).text)


HOSTILE = (
    "<script>alert(1)</script>\x1b[31m\x1b]8;;http://evil.example\x07\u202egnp.exe\u2066"
    "<img src=x onerror=alert(2)>\"'{{ 7 * 7 }}</pre></article>\x85\u2028"
)


def _hostile_session() -> Session:
    """Say it wherever a session can."""
    session = Session(
        budget=1_000,
        system=HOSTILE,
        counter=COUNTER,
        store=MemoryStore(),
        id="ada",
        recall_ratio=0.1,
        summarizer=lambda messages: HOSTILE,
        anchors=[{"role": "user", "content": HOSTILE}],
    )
    for turn in range(30):
        call = {
            "id": f"{HOSTILE}{turn}",
            "type": "function",
            "function": {"name": HOSTILE, "arguments": HOSTILE},
        }
        session.add({"role": "user", "content": f"{turn} {HOSTILE}"})
        session.add({"role": "assistant", "content": HOSTILE, "tool_calls": [call]})
        session.add({"role": "tool", "tool_call_id": f"{HOSTILE}{turn}", "content": HOSTILE})
    return session


def test_a_hostile_session_is_text_on_every_page() -> None:
    """No markup of it is markup, and no control or mark of direction of it remains."""
    session = _hostile_session()
    client = _client(session)
    decision = list(session.history(kinds=("summary",)))[-1]
    early, late = session.version - 9, session.version
    pages = {
        path: client.get(path).text
        for path in (
            "/",
            "/?policy=sliding_window&budget=700",
            "/?policy=session&budget=101",
            "/rows?count=100",
            "/message?at=0",
            "/message?at=40",
            "/search?q=script",
            f"/compare?policy_a=session&version_a={early}&policy_b=session&version_b={late}",
            "/compare?policy_a=session&policy_b=sliding_window&only=all",
            "/timeline",
            "/recall?q=script",
            f"/undo?event={decision.id}",
            "/bill?policy_a=sliding_window",
        )
    }
    for path, page in pages.items():
        said = re.sub(r"<[^>]+>", "", page.partition("<body>")[2] or page)
        assert "script" in said or path.startswith(("/undo", "/bill")), path  # these quote nothing
        _check_harmless(page, path)
    for parameters in (
        {"policy": HOSTILE},
        {"json": HOSTILE},
        {"version": HOSTILE},
        {"q": HOSTILE},
        {"of": "1"},
    ):
        for path in ("/", "/compare", "/search", "/bill", "/recall", "/grown", "/undo"):
            suffixed = {f"{name}{end}": value for name, value in parameters.items() for end in ("", "_a")}
            page = client.get(path, params={**suffixed, HOSTILE: HOSTILE, "event": HOSTILE}).text
            _check_harmless(page, path)


def _check_harmless(page: str, path: str) -> None:
    assert "<script>" not in page, path
    assert "<img" not in page, path
    assert not {"\x1b", "\u202e", "\u2066", "\x07", "\x85", "\u2028"}.intersection(page), path


OPTIONS: dict[str, dict[str, Any]] = {
    "recall": {"recall_ratio": 0.2},
    "summaries": {"summarizer": lambda messages: f"They spoke of {len(messages)} things"},
    "waiting first": {"pending_first": True, "summarizer": lambda messages: f"{len(messages)} things"},
    "anchors": {"anchors": [{"role": "user", "content": "I am Ada."}]},
}


@pytest.mark.parametrize("kind", list(OPTIONS))
def test_each_row_is_of_the_message_that_it_opens(kind: str) -> None:
    """Its size is that of the report, and what it opens is the message of its version."""
    session = _session(**OPTIONS[kind])
    client = _client(session)
    rows = _rows(client.get("/rows?count=100").text)
    said = {event.version: event.message["content"] for event in session.history()}
    titled = {title: (at, fate, size) for at, title, fate, size in rows}
    assert sum(title.startswith("#") for _, title, _, _ in rows) == len(said)
    for version, text in said.items():
        assert _text(client, titled[f"#{version}"][0]) == text
    fitted, seen = session.fit(), dict[int, int | None]()
    for row, origin in zip(fitted.report.messages, session.origins(), strict=True):
        if origin.kind == "message":
            seen[origin.versions[0]] = row.tokens_after
    for version in said:
        _, fate, size = titled[f"#{version}"]
        assert fate.startswith("kept") == (version in seen), version
        if version in seen:
            assert size == f"{seen[version]} tokens"
    inserted = [title for _, title, fate, _ in rows if fate == "inserted"]
    assert len(inserted) == len(fitted.messages) - len(seen)
    assert inserted[0] == "system text"


def test_what_was_recalled_is_opened_as_it_is_shown() -> None:
    """The message as it was said, and the earlier text that it stands in."""
    session = _session(**OPTIONS["recall"])
    client = _client(session)
    rows = _rows(client.get("/rows?count=100").text)
    [recalled] = [at for at, title, _, _ in rows if title.startswith("recalled")]
    versions = [event.version for event in session.diff(0, session.version).recalled_after]
    listed = {title: at for at, title, fate, _ in rows if fate == "recalled"}
    assert list(listed) == [f"#{version}" for version in versions]
    for title, at in listed.items():
        event = next(one for one in session.history() if title == f"#{one.version}")
        assert _text(client, at) == event.message["content"]
        assert _text(client, at, which="sent") == _text(client, recalled)
        assert event.message["content"] in _text(client, recalled)


def test_rows_of_a_context_are_those_of_its_blocks() -> None:
    """What stands before and behind the history is named by its block, and the history by its versions."""
    context = Context(budget=400, counter=COUNTER)
    context.add("docs", ["alpha " * 10, "beta " * 10], role="user", labels=["belts", "chains"])
    context.add("history", None)
    context.add("notes", ["omega " * 10], role="user")
    session = Session(context=context, store=MemoryStore(), id="ada")
    _add(session, 0, 40)
    client = _client(session)
    page = client.get("/")
    rows = _rows(client.get("/rows?count=100").text)
    said = {f"#{event.version}": event.message["content"] for event in session.history()}
    for at, title, _, _ in rows:
        if title in said:
            assert _text(client, at) == said.pop(title)
    assert said == {}
    blocks = [(title, _text(client, at).split()[0]) for at, title, _, _ in rows if title.startswith("block")]
    assert blocks == [("block docs", "alpha"), ("block docs", "beta"), ("block notes", "omega")]
    assert rows[-1][1] == "block notes"
    assert "belts" in page.text
    assert 'role="alert"' not in page.text
    assert "data-most" not in page.text, "its budget is the Context's"


@pytest.mark.parametrize("policy", ["session", "sliding_window"])
def test_a_page_is_of_one_version_however_the_session_grows(policy: str) -> None:
    """Its rows, messages and finds are those of the version it names; it says that there is a newer one."""
    session = _session()
    client = _client(session)
    page = client.get("/", params={"policy": policy}).text
    [address] = _texts(page, r'data-rows="(.*?)"')
    address = address.replace("&amp;", "&")
    assert f"version={session.version}" in address
    before = client.get(f"{address}&count=100").text
    finds = client.get(address.replace("/rows", "/search") + "&q=belt").text
    [asks] = _texts(page, r'id="grown" role="status" hx-get="(.*?)"')
    assert "Show the newest" not in client.get(asks.replace("&amp;", "&")).text
    old = session.version
    _add(session, 40, 60)
    session.set_budget(150)
    assert client.get(f"{address}&count=100").text == before
    assert client.get(address.replace("/rows", "/search") + "&q=belt").text == finds
    said = client.get(asks.replace("&amp;", "&")).text
    assert f"version {old} of the session, which is at version {session.version}" in said
    [newest] = _texts(said, r'href="(.*?)"')
    again = client.get("/" + newest.replace("&amp;", "&")).text
    assert f"version={session.version}" in _texts(again, r'data-rows="(.*?)"')[0]
    assert "message 59" in client.get("/search", params={"policy": policy, "q": "message 59"}).text


def test_a_timeline_is_of_one_version_too() -> None:
    """Its rows stay where they are."""
    session = _session()
    client = _client(session)
    [address] = _texts(client.get("/timeline").text, r'data-rows="(.*?)"')
    before = client.get(f"{address}&start=5&count=20").text
    _add(session, 40, 50)
    assert client.get(f"{address}&start=5&count=20").text == before


def test_two_versions_are_compared_message_by_message() -> None:
    """A message that both send is no difference; what came since and what was evicted are."""
    session = _session()
    first, last = session.version - 10, session.version
    address = f"/compare/rows?policy_a=session&version_a={first}&policy_b=session&version_b={last}&count=100"
    listed = set(_texts(_client(session).get(address).text, r"<b>#(\d+)</b>"))
    change = session.diff(first, last)
    said_since = {str(event.version) for event in session.history(after=first)}
    assert listed == {str(event.version) for event in (*change.came, *change.left)} | said_since
    page = _client(session).get(address.replace("/rows", "")).text
    [lines] = _texts(page, r'<ul class="fates".*?</ul>')
    gone = re.findall(r"(\d+) messages?: A kept(?:, pinned)?, B evicted", re.sub(r"<[^>]+>", "", lines))
    assert sum(map(int, gone)) == len(change.left)


def test_a_session_and_a_policy_are_compared_message_by_message() -> None:
    """Although the one has system text, and the other the whole log."""
    session = _session()
    address = "/compare/rows?policy_a=session&policy_b=sliding_window&only=all&count=100"
    page = _client(session).get(address).text
    said = [str(event.version) for event in session.history()]
    assert sorted(_texts(page, r"<b>#(\d+)</b>")) == sorted(said)


def _long_session(turns: int = 2_100) -> Session:
    """Make one whose log is longer than what a page lists of it; its oldest message is pinned."""
    session = Session(budget=400, counter=COUNTER, store=MemoryStore(), id="ada")
    session.pin(session.add({"role": "user", "content": "the oldest, about a canoe"}))
    session.extend([{"role": "user", "content": f"message {turn} about belts"} for turn in range(turns)])
    return session


def _words(page: str) -> dict[str, str]:
    """Read what a page's rows and searches are asked with."""
    return dict(
        re.findall(r'<input type="hidden" name="(\w+)" value="(\w+)">', page.partition('id="shown"')[2])
    )


def test_of_a_long_log_a_page_lists_the_newest_and_all_when_asked() -> None:
    """Rows, texts and searches of a page are of its list; what is sent of what was said before is in it."""
    session = _long_session()
    client, said = _client(session), list(session.history())
    page = client.get("/").text
    asked = _words(page)
    since = int(asked["since"])
    assert f"Messages since version {since:,}" in page
    assert 0 < since < session.version - 1_000
    listed = [said[0], *(event for event in said if event.version > since)]
    everything = _texts(client.get("/", params={**asked, "only": "all"}).text, r'data-count="(\d+)"')
    assert everything == [str(len(listed))]
    last = len(listed) - 1
    rows = _rows(client.get("/rows", params={**asked, "start": last, "count": 1}).text)
    assert [row[:2] for row in (_rows(page)[0], *rows)] == [
        ("0", f"#{said[0].version}"),
        (str(last), f"#{said[-1].version:,}"),
    ]
    assert _rows(page)[0][2] == "kept, pinned"
    assert _text(client, "0", **asked) == "the oldest, about a canoe"
    assert _text(client, str(last), **asked) == "message 2099 about belts"
    search = {"q": "message 5 about"}
    assert "5 about belts" not in re.sub(r"<[^>]+>", "", client.get("/search", params=asked | search).text)
    (link,) = _texts(page, r'<a href="/\?([^"]+)">List the whole log')
    whole = client.get("/?" + link.replace("&amp;", "&")).text
    assert "Messages since" not in whole
    assert _texts(whole, r'data-filter="all" data-number="(\d+)"') == [str(len(said))]
    found = client.get("/search", params=_words(whole) | search).text
    assert "5 about belts" in re.sub(r"<[^>]+>", "", found)
    timeline = client.get("/timeline").text
    assert _texts(timeline, r'data-count="(\d+)"') == [str(session.version)]
    oldest = client.get("/timeline/rows", params={"start": session.version - 1, "count": 1}).text
    assert "options" in oldest


def test_what_is_not_at_hand_is_forgotten_by_a_redaction_all_the_same() -> None:
    """A page that read the newest only, and one that read all."""
    session = _long_session()
    client = _client(session)
    asked = {"since": "0", "at": "0", "which": "came"}
    assert "canoe" in client.get("/").text
    assert "canoe" in client.get("/text", params=asked).text
    session.redact(where="canoe")
    for path in ("/", "/?since=0", "/timeline", "/text?at=0&which=came&since=0", "/search?q=canoe&since=0"):
        assert "about a canoe" not in client.get(path).text, path


def _calls_for_a_view(clears: int) -> int:
    """Count what the inspector's log enters for the view of a session that was begun anew so often."""
    session = _session(1)
    for turn in range(clears):
        session.clear()
        _add(session, turn, turn + 1)
    client, entered = _client(session), list[str]()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.endswith("inspector/log.py"):
            entered.append(frame.f_code.co_name)

    threading.setprofile(note)  # the server answers in threads of its own
    try:
        page = client.get("/rows", params={"count": "100"}).text
    finally:
        threading.setprofile(None)
    assert len(_rows(page)) == 100, page
    return len(entered)


def test_twice_the_clears_are_twice_the_work() -> None:
    """What every clear left behind is said once, of the last: a view waits behind the inspector's lock."""
    once, twice = _calls_for_a_view(100), _calls_for_a_view(200)
    assert once > 100
    assert twice <= 2.2 * once


def test_what_was_cleared_and_taken_off_is_said_of_each() -> None:
    """A message is gone by the last clear or by its own pop, and no later pop says that it took it."""
    session = _session(2)
    session.pop()  # the version of this is 4, of the clear 5, and so on
    session.clear()
    _add(session, 2, 4)
    session.pop()
    session.clear()
    _add(session, 4, 8)
    session.pop()
    session.pop()
    versions = [event.version for event in session.history(kinds=("cleared", "popped"))]
    assert versions == [4, 5, 8, 9, 14, 15]
    page = _client(session).get("/rows?count=100").text
    why = dict(_texts(page, r'<b>#(\d+)</b>(?:(?!</article>).)*?class="why">(.*?)</span>'))
    cleared = dict.fromkeys(("2", "3", "6", "7"), "said before the view was cleared")
    assert why == cleared | {"12": "taken off at version 15", "13": "taken off at version 14"}


def test_a_redacted_text_is_never_shown_again() -> None:
    """Not in the view of now or then, not under a policy, not by the search, whatever was at hand."""
    session = _session(**OPTIONS["summaries"])
    session.add({"role": "user", "content": "the secret is swordfish"})
    version = session.version
    client = _client(session)
    addresses = [
        f"{path}?policy={policy}&version={version}&q=swordfish&at={{at}}&count=100"
        for policy in ("session", "sliding_window")
        for path in ("/", "/rows", "/search", "/message", "/text")
    ]
    newest = next(
        at for at, title, _, _ in _rows(client.get("/rows?count=100").text) if title == f"#{version}"
    )
    asked = {address: address.format(at=newest) for address in addresses}
    found = {address: client.get(one).text for address, one in asked.items()}
    assert all("secret is" in text for address, text in found.items() if address.startswith("/rows"))
    [event] = [one for one in session.history() if one.version == version]
    session.redact(event)
    for one in asked.values():
        assert "the secret is" not in client.get(one).text, one
    for path in ("/", "/rows?count=100", "/timeline", "/bill?policy_a=none", "/compare?only=all"):
        assert "swordfish" not in client.get(path).text, path


def test_a_session_is_shown_at_another_budget_without_a_write() -> None:
    """As `Session.fit` gives it; the last step of its slider shows all that no summary stands for."""
    session = _session()
    before = session.version
    client = _client(session)
    page = client.get("/?policy=session&budget=150").text
    assert f"{session.fit(budget=150).report.tokens_after} of 150 tokens" in page
    assert "With 150 tokens instead of the 300 of the session" in page
    least, most, step = (int(_texts(page, f'data-{name}="(\\d+)"')[0]) for name in ("least", "most", "step"))
    assert least + (most - least) // step * step == most
    assert "0 messages not sent" in client.get(f"/?policy=session&budget={most}").text
    assert "0 messages not sent" not in client.get(f"/?policy=session&budget={most - step}").text
    wider = {one.versions for one in session.origins(budget=2_300)} - {
        one.versions for one in session.origins()
    }
    assert f"2,000 more tokens would bring back {len(wider)} messages" in client.get("/").text
    wrong = client.get("/?policy=session&budget=50").text
    assert "at least 100 tokens" in _texts(wrong, r'role="alert">(.*?)</p>')[0]
    assert wrong.count("<article") == len(session.messages())
    assert session.refresh() == before


@pytest.mark.parametrize("ratio", [0.6, 1.0, 1.7, 3.0])
def test_a_slider_ends_where_all_is_shown_whatever_was_billed(ratio: float) -> None:
    """A provider that counts more or less than the counter has another budget for the same messages."""
    session = _session()
    session.messages()
    session.record_usage({"input_tokens": round(session.status().view_tokens * ratio), "output_tokens": 5})
    client = _client(session)
    [most] = _texts(client.get("/").text, r'data-most="(\d+)"')
    assert ", 0 messages not sent" in client.get(f"/?policy=session&budget={most}").text
    less = f"/?policy=session&budget={int(most) * 8 // 10}"
    assert ", 0 messages not sent" not in client.get(less).text


def test_a_bill_is_played_once_and_again_when_the_session_has_grown() -> None:
    """Its pages and its charts are of the same calls."""
    session, played = _session(), list[tuple[object, ...]]()
    client = _client(session, played)
    page = client.get("/bill?policy_a=sliding_window").text
    [charts] = _texts(page, r'href="/bill/charts\?(.*?)"')
    for path in (f"/bill?{charts}", f"/bill?{charts}&start=10", f"/bill/charts?{charts}"):
        assert client.get(path.replace("&amp;", "&")).status_code == 200
    assert played == [("sliding_window", "default", None, session.version)]
    _add(session, 40, 44)
    client.get(f"/bill?{charts}".replace("&amp;", "&"))
    assert len(played) == 1
    client.get("/bill?policy_a=sliding_window")
    assert played[1:] == [("sliding_window", "default", None, session.version)]


def test_an_undo_that_would_take_back_more_than_was_said_asks_again() -> None:
    """Another decision came meanwhile: the page says so, and nothing is taken back."""
    session = _session()
    client = _client(session)
    event = list(session.history(kinds=("evicted",)))[-1]
    form = dict(_texts(client.get(f"/undo?event={event.id}").text, r'name="(\w+)" value="([^"]*)"'))
    _add(session, 40, 60)
    before = session.version
    asked = client.post("/undo", data=form)
    assert asked.status_code == 200
    assert "look again" in asked.text
    assert session.refresh() == before
    again = dict(_texts(asked.text, r'name="(\w+)" value="([^"]*)"'))
    assert client.post("/undo", data=again, follow_redirects=False).status_code == 303
    assert session.refresh() == before + 1


def test_a_run_of_pruned_events_is_one_row_of_the_timeline() -> None:
    """And the newest are there before it."""
    session = _session()
    client = _client(session)
    assert "(pruned)" not in client.get("/timeline").text
    receipt = session.prune(keep=0)
    page = client.get("/timeline").text
    assert page.count("(pruned)") == 1
    assert f"(pruned) {receipt.events} events up to version" in page
    assert f"{receipt.kept + 1} events, the newest first" in page
