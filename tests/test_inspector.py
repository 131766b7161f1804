"""The inspector over plain HTTP: who may ask, what every answer says, errors, and bounds."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from trimtab import Budget, CharCounter, Context, Fitted, Session, fit
from trimtab.errors import ConfigurationError, MissingExtraError
from trimtab.inspector import Subject, make_app, serve
from trimtab.replay import replay
from trimtab.stores import MemoryStore
from trimtab.strategies import Summarize, create_strategy

HTMX = "a0abb04f2f45a1f89d1d4844023245537e5e6014c87b144553e0607b4cc32130"
TOKEN = "a-token-that-nobody-guesses"
CHAT = [
    {"role": role, "content": f"{role} says words about the belt, number {turn}"}
    for turn in range(30)
    for role in ("user", "assistant")
]
POLICIES = ("sliding_window", "drop_newest", "truncate_text")


def _fit(word: str, version: int | None = None, chat: list[Any] | None = None) -> Any:
    policy = create_strategy(json.loads(word)) if word.startswith("{") else word
    return fit(CHAT if chat is None else chat, 200, strategy=policy, counter=CharCounter(4))


_BEARER = {"Authorization": f"Bearer {TOKEN}"}


def _client(subject: Subject | None = None, **headers: str) -> TestClient:
    shown = subject or Subject(name="chat.json", policies=POLICIES, fit=_fit)
    return TestClient(
        make_app(shown, token=TOKEN),
        base_url="http://127.0.0.1:8000",
        headers={"Authorization": f"Bearer {TOKEN}", **headers},
        follow_redirects=False,
    )


def _texts(html: str, pattern: str) -> list[str]:
    return re.findall(pattern, html, re.DOTALL)


# Who may ask.


PATHS = (
    "/",
    "/rows",
    "/message?at=0",
    "/text?at=0",
    "/search?q=belt",
    "/quotes",
    "/compare",
    "/static/inspector.js",
)


@pytest.mark.parametrize("path", PATHS)
def test_nothing_is_shown_without_the_token(path: str) -> None:
    """Every path, those of files among them, asks for it; what is said without it tells nothing."""
    client = _client(Authorization="Bearer something-else")
    answer = client.get(path)
    assert answer.status_code == 401
    assert "belt" not in answer.text
    assert client.get(path, headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200


def test_the_token_of_an_address_becomes_a_cookie() -> None:
    """It is out of the address at once, and no script and no other site has it."""
    client = _client(Authorization="")
    first = client.get(f"/?budget=300&token={TOKEN}")
    assert (first.status_code, first.headers["location"]) == (303, "/?budget=300")
    cookie = first.headers["set-cookie"].lower()
    assert cookie.startswith("trimtab-8000=")
    assert {"httponly", "samesite=strict", "path=/"} <= set(cookie.split("; "))
    assert client.get("/").status_code == 200
    client.cookies.clear()
    assert client.get("/").status_code == 401
    assert client.get(f"/?token={TOKEN[:-1]}").status_code == 401


def test_a_redirect_leads_to_no_other_host() -> None:
    """A path that begins with two slashes would be read as a host."""
    answer = _client().get(f"http://127.0.0.1:8000//evil.example/?token={TOKEN}")
    assert answer.headers["location"] == "/evil.example/"


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example:8000", "", "169.254.1.1", "[::2]:1", "["]
)
def test_a_name_that_another_site_points_here_is_refused(host: str) -> None:
    """Whoever rebinds a name to this machine has the browser send that name, token or not."""
    answer = _client(Host=host).get(f"/?token={TOKEN}")
    assert answer.status_code == 421
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:8000", "LocalHost:8000", "[::1]:8000"])
def test_names_of_this_machine_are_taken(host: str) -> None:
    """However it is written."""
    assert _client(Host=host).get("/").status_code == 200


@pytest.mark.parametrize("hosts", [("MyMachine", "0.0.0.0"), ("mymachine", "::")])
def test_where_it_listens_on_every_address_each_of_them_is_taken(hosts: tuple[str, ...]) -> None:
    """An address is no name that another site could point here; a name that was not given is one."""
    subject = Subject(name="chat.json", policies=POLICIES, fit=_fit)
    client = TestClient(make_app(subject, token=TOKEN, hosts=hosts), headers=_BEARER)
    for host, status in {
        "192.168.1.5:8000": 200,
        "[fe80::1]:8000": 200,
        "mymachine:8000": 200,
        "MYMACHINE": 200,
        "evil.example:8000": 421,
        "192.168.1.5.evil.example": 421,
    }.items():
        assert client.get("/", headers={"Host": host}).status_code == status, host


@pytest.mark.parametrize("origin", ["http://[", "http://[::1", "x", "", "http://127.0.0.1:8001", "\xff"])
def test_an_origin_that_is_none_is_another_site(origin: str) -> None:
    """Refused in words, whatever stands in it; our own is taken, in capitals, too."""
    answer = _client().get("/", headers={"Origin": origin.encode("latin-1")})
    assert answer.status_code == 403
    assert _client(Origin="HTTP://127.0.0.1:8000").get("/").status_code == 200


def test_every_answer_says_what_browsers_may_do() -> None:
    """No script but ours, nothing of other hosts, nothing stored, nothing told to others; refusals, too."""
    client = _client()
    for path in (*PATHS, "/nothing-here", "/text?at=99999"):
        headers = client.get(path).headers
        rules = dict(one.split(" ", 1) for one in headers["content-security-policy"].split("; "))
        assert rules["default-src"] == "'none'"
        assert rules["script-src"] == "'self'"
        assert "unsafe" not in headers["content-security-policy"]
        assert rules["frame-ancestors"] == rules["base-uri"] == "'none'"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"
    assert "content-security-policy" in _client(Host="evil.example").get("/").headers


def test_no_page_needs_another_host_or_an_inline_script() -> None:
    """All it loads are files of this server."""
    for path in ("/", "/compare", "/search?q=belt"):
        page = _client().get(path).text
        assert re.findall(r"<script(?! src=\"/static/)", page) == []
        assert re.findall(r"(?:src|href|action)=\"(?!/|#)", page) == []
        assert re.findall(r"\son\w+=|\sstyle=", page) == []


def test_a_token_that_could_be_guessed_is_refused() -> None:
    """The error says how one is made."""
    subject = Subject(name="chat", policies=POLICIES, fit=_fit)
    with pytest.raises(ConfigurationError, match=r"at least 16 ASCII characters.*token_urlsafe"):
        make_app(subject, token="short")


def test_another_machine_is_let_in_by_an_option_only() -> None:
    """The error says what to say."""
    subject = Subject(name="chat", policies=POLICIES, fit=_fit)
    with pytest.raises(ConfigurationError, match="allow_remote=True"):
        serve(subject, host="0.0.0.0")


# What is shown.


def test_the_page_says_what_was_evicted_and_why() -> None:
    """Each message is in its place: what fit says stays is kept, all else is evicted with a reason."""
    fitted = _fit("sliding_window")
    kept = {at for at in fitted.positions if at is not None}
    rows = _client().get("/rows?count=100").text
    fates = _texts(rows, r'aria-label="#(\d+), \w+, ([a-z, ]+)"')
    assert [int(index) for index, _ in fates] == list(range(60))
    assert {int(index) for index, fate in fates if fate.startswith("kept")} == kept
    # the answer next to the cut has room and its question none, so that it may not stand first
    reasons = [rows.count(why) for why in ("the budget has no room for it", "it may not stand first")]
    assert reasons == [60 - len(kept) - 1, 1]
    page = _client().get("/").text
    assert f"unused {fitted.report.remaining_tokens}" in page


def test_the_page_says_what_more_tokens_would_bring_back() -> None:
    """As a fit with so many more says."""
    wider = _fit("sliding_window").at(2_200)
    more = wider.report.kept_message_count - _fit("sliding_window").report.kept_message_count
    assert f"2,000 more tokens would bring back {more} messages" in _client().get("/").text


def test_a_budget_in_the_address_fits_again() -> None:
    """The numbers are those of `at`."""
    again = _fit("sliding_window").at(400).report
    page = _client().get("/?budget=400").text
    assert (
        f"fits, by estimate: {again.tokens_after:,} of 400 tokens" in page
        or f"{again.tokens_after} of 400" in page
    )


def test_what_does_not_fit_is_shown_with_its_error() -> None:
    """The nearest attempt is shown, and what must stay is said in tokens."""
    page = _client().get("/?budget=3").text
    assert 'role="alert"' in page
    assert "Does not fit" in page
    assert "What has to stay needs" in page


def test_what_is_too_large_is_named() -> None:
    """The attempt, with the largest of what must stay before the others."""
    chat = [
        {"role": "system", "content": "s" * 800},
        {"role": "user", "content": "u"},
        {"role": "user", "content": "q" * 4_000},
    ]
    client = _client(
        Subject(name="chat", policies=POLICIES, fit=lambda word, version: _fit(word, version, chat))
    )
    page = client.get("/").text
    [told] = _texts(page, r'role="alert">(.*?)</p>')
    assert (
        "needs 1,200 tokens, and there is room for 200. The largest of it is #2 (user, 1,000 tokens)" in told
    )
    [said] = _texts(page, r'class="largest">(.*?)</p>')
    assert re.findall(r"(#\d)</a> (\w+), ([\d,]+) tokens", said) == [
        ("#2", "user", "1,000"),
        ("#0", "system", "200"),
    ]
    assert page.count("<article") == 2, "the small one is evicted"


def test_a_budget_that_nothing_can_be_tried_with_shows_the_view_without_it() -> None:
    """Below what is kept for the answer there is no attempt; the page is not empty for that."""
    room = Budget(400, output_reserve=100)
    subject = Subject(
        name="chat",
        policies=POLICIES,
        fit=lambda word, version: fit(CHAT, room, strategy=word, counter=CharCounter(4)),
    )
    page = _client(subject).get("/?budget=90").text
    [alert] = _texts(page, r'role="alert">(.*?)</p>')
    assert "no room beside the 100 reserved for the answer" in alert
    assert "at its own budget" in alert
    assert page.count("<article") == fit(CHAT, room, counter=CharCounter(4)).report.kept_message_count
    assert "of 300 tokens" in page


@pytest.mark.parametrize("options", [{}, {"output_reserve": 37, "overhead_tokens": 11}, {"margin": 13}])
def test_the_slider_reaches_all_of_the_conversation(options: dict[str, int]) -> None:
    """Its last step, counted as a browser counts, sends every message."""
    for size in (1, 7, 30, 2_000):
        chat = [{"role": "user", "content": f"{turn} " + "x" * size} for turn in range(41)]
        budget = Budget(173, **options)
        subject = Subject(
            name="chat",
            policies=POLICIES,
            fit=lambda word, version, chat=chat, budget=budget: fit(
                chat, budget, strategy=word, counter=CharCounter(4)
            ),
        )
        page = _client(subject).get("/").text
        least, most, step = (
            int(_texts(page, f'data-{name}="(\\d+)"')[0]) for name in ("least", "most", "step")
        )
        last = least + (most - least) // step * step
        assert last == most
        again = _client(subject).get(f"/?budget={last}").text
        assert 'class="row evicted"' not in again
        assert 'class="row changed"' not in again


def test_the_slider_reaches_all_where_the_margin_grows_with_it() -> None:
    """A margin that is worked out is larger for a larger budget."""
    chat = [{"role": "user", "content": "word " * 400} for _ in range(60)]
    subject = Subject(
        name="chat",
        policies=POLICIES,
        fit=lambda word, version: fit(chat, Budget(5_000, margin="auto"), model="gpt-4o", strategy=word),
        is_margin_auto=True,
    )
    page = _client(subject).get("/").text
    [most] = _texts(page, r'data-most="(\d+)"')
    assert "0 messages not sent" in _client(subject).get(f"/?budget={most}").text


def test_what_was_cleared_is_told_from_what_was_shortened() -> None:
    """Where a policy does both, by what is sent instead."""
    chat = json.loads((Path(__file__).parents[1] / "examples" / "agent_session.json").read_text("utf-8"))
    body = chat if isinstance(chat, list) else chat["messages"]

    def agent(word: str, version: int | None) -> Any:
        return fit(body, 8_000, model="gpt-4o", strategy=word)

    fitted = agent("agent", None)
    changed = {row.index for row in fitted.report.messages if row.fate == "changed"}
    instead = {at: message["content"] for message, at in zip(fitted.messages, fitted.positions, strict=True)}
    cleared = {at for at in changed if instead[at] == "[trimtab: tool result cleared]"}
    client = _client(Subject(name="agent", policies=("agent",), fit=agent))
    rows = "".join(client.get(f"/rows?start={start}&count=100").text for start in range(0, len(body), 100))
    fates = _texts(rows, r'aria-label="#(\d+), \w+, (cleared|shortened|changed)"')
    assert {int(at) for at, fate in fates if fate == "cleared"} == cleared
    assert {int(at) for at, fate in fates if fate == "shortened"} == changed - cleared
    assert cleared
    assert changed - cleared
    lines = re.sub(r"<[^>]+>", "", _texts(client.get("/").text, r'<ul class="fates".*?</ul>')[0])
    assert re.search(r"shortened 1 message, 2,\d+ → 1,2\d+ tokens: .* 325 · read_file", lines)
    assert re.search(rf"cleared {len(cleared)} messages, .* read_file", lines)


def test_what_became_of_all_is_said_in_a_few_lines() -> None:
    """Each fate with its reason, how many, their tokens, and where the first of them stands."""
    fitted = _fit("sliding_window")
    fitted.count_all()
    report = fitted.report
    *left, last = [row for row in report.messages if row.fate == "evicted"]
    lines = _texts(_client().get("/").text, r'<ul class="fates".*?</ul>')[0]
    first, second, *_ = _texts(lines, r"<li>(.*?)</li>")
    tokens = sum(row.tokens_before or 0 for row in left)
    assert re.sub(r"<[^>]+>", "", first) == (
        f"evicted {len(left)} messages, {tokens:,} tokens: the budget has no room for it"
        f" {left[0].index}–{left[-1].index}"
    )
    assert 'data-only="evicted" data-jump="0"' in first
    assert re.sub(r"<[^>]+>", "", second) == (
        f"evicted 1 message, {last.tokens_before:,} tokens: it may not stand first {last.index}"
    )


def _replay(word: str) -> Any:
    return replay(CHAT, word, budget=200)


DEEP = '{"kind": ' + "[" * 5_000 + "]" * 5_000 + "}"


@pytest.mark.few(2)
@pytest.mark.parametrize("path", ["/", "/rows", "/compare", "/message?at=0", "/text?at=0", "/search?q=b"])
def test_what_is_nested_too_deep_is_said(path: str) -> None:
    """A strategy, or a message of 10,000 lists: a page says so, and none fails."""
    policies = _client(Subject(name="chat", policies=POLICIES, fit=lambda word, version: _replay(word)))
    suffix = "_a" if path == "/compare" else ""
    answer = policies.get(path, params={f"json{suffix}": DEEP, "at": "0"})
    assert answer.status_code in (200, 400)
    assert "nested too deep" in _texts(answer.text, r'role="alert">(.*?)</p>')[0]
    deep: Any = []
    for _ in range(10_000):
        deep = [deep]
    chat = [{"role": "user", "content": "a"}, {"role": "user", "content": "b", "extra": deep}]
    client = _client(
        Subject(name="deep", policies=POLICIES, fit=lambda word, version: _fit(word, version, chat))
    )
    answer = client.get(path)
    assert answer.status_code in (200, 400)
    assert "nested too deep" in _texts(answer.text, r'role="alert">(.*?)</p>')[0]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("budget=abc", "Budget must be a whole number of at least 1"),
        ("budget=0", "Budget must be a whole number of at least 1"),
        ("policy=/etc/passwd", "is not offered here"),
        ("policy=sliding_windw", "sliding_window"),
        ("json=" + quote('{"kind": "sliding_window", "keep_turnz": true}'), "keep_turnz"),
    ],
)
def test_what_is_wrong_in_the_page_is_said_in_the_page(query: str, words: str) -> None:
    """With the controls still there, so that it can be put right."""
    answer = _client().get(f"/?{query}")
    alert = _texts(answer.text, r'role="alert">(.*?)</p>')
    assert len(alert) == 1
    assert words in alert[0]
    assert 'id="controls"' in answer.text


def test_a_page_has_no_other_file_read() -> None:
    """A word that was not offered never reaches what makes policies of words."""
    asked = list[str]()

    def note(word: str, version: int | None) -> Any:
        asked.append(word)
        return _fit(word)

    client = _client(Subject(name="chat", policies=POLICIES, fit=note))
    client.get("/?policy=/etc/passwd")
    client.get("/compare?policy_a=../secret.toml")
    assert set(asked) <= {"sliding_window"}


def test_a_policy_file_that_was_edited_is_read_again(tmp_path: Path) -> None:
    """Fit again, and the file counts as it is now."""
    path = tmp_path / "policy.json"
    path.write_text('{"kind": "sliding_window"}', encoding="utf-8")
    subject = Subject(
        name="chat",
        policies=(str(path),),
        fit=lambda word, version: fit(
            CHAT,
            200,
            strategy=create_strategy(json.loads(Path(word).read_text("utf-8"))),
            counter=CharCounter(4),
        ),
    )
    client = _client(subject)
    before = client.get("/rows?count=100").text
    path.write_text('{"kind": "drop_newest"}', encoding="utf-8")
    assert client.get("/rows?count=100").text != before


# Bounds.


def test_no_answer_has_more_rows_than_are_seen() -> None:
    """However many there are and are asked for."""
    chat = [{"role": "user", "content": f"message {n}"} for n in range(10_000)]
    client = _client(
        Subject(name="long", policies=POLICIES, fit=lambda word, version: _fit(word, version, chat))
    )
    assert client.get("/rows?start=5000&count=9999").text.count("<article") == 100
    assert client.get("/").text.count("<article") <= 100
    assert client.get("/rows?start=999999").text.count("<article") == 1
    assert client.get("/search?q=message").text.count("data-jump") == 50


def test_a_line_of_5_mb_is_cut_and_can_be_had_whole() -> None:
    """Pages stay small; the whole is plain text."""
    long = "x" * 5_000_000
    chat = [{"role": "user", "content": long}, {"role": "user", "content": "last"}]
    client = _client(
        Subject(name="long", policies=POLICIES, fit=lambda word, version: _fit(word, version, chat))
    )
    assert len(client.get("/").text) < 100_000
    opened = client.get("/message?at=0").text
    assert len(opened) < 50_000
    assert "5,000,000 characters" in opened
    whole = client.get("/text?at=0")
    assert whole.text == long
    assert whole.headers["content-type"] == "text/plain; charset=utf-8"


HOSTILE = (
    "<script>alert(1)</script>\x1b[31mred\x1b]8;;http://evil.example\x07\u202egnp.exe\u2066"
    "<img src=x onerror=alert(2)>{{ 7 * 7 }}</pre></article>\ud800"
)


def _check_harmless(page: str) -> None:
    assert "&lt;script&gt;" in page
    assert "<script>" not in page
    assert "<img" not in page
    assert not {"\x1b", "\u202e", "\u2066", "\x07"}.intersection(page)
    assert "{{ 7 * 7 }}" in page


@pytest.mark.parametrize("path", ["/", "/rows", "/message?at=0", "/search?q=script", "/compare?only=all"])
def test_text_of_others_is_text(path: str) -> None:
    """No markup of it is markup, and no control or mark of direction of it is left."""
    chat = [{"role": "user", "content": HOSTILE}, {"role": "assistant", "content": HOSTILE, "name": HOSTILE}]
    page = (
        _client(Subject(name=HOSTILE, policies=POLICIES, fit=lambda word, version: _fit(word, version, chat)))
        .get(path)
        .text
    )
    assert 'role="alert"' not in page
    _check_harmless(page)


def test_an_error_that_quotes_others_is_text() -> None:
    """The role that no provider has is quoted, and does as little."""
    chat = [{"role": HOSTILE, "content": "b"}]
    page = (
        _client(Subject(name=HOSTILE, policies=POLICIES, fit=lambda word, version: _fit(word, version, chat)))
        .get("/")
        .text
    )
    assert "no provider has the role" in page
    _check_harmless(page)


# Search, comparison, one message.


def test_search_finds_what_left() -> None:
    """With what became of it, and where."""
    found = _client().get("/search?q=NUMBER 3").text
    there = [at for at, one in enumerate(CHAT) if "number 3" in one["content"]]
    assert _texts(found, r'data-jump="(\d+)"') == [str(at) for at in there]
    assert "evicted" in found
    assert "<mark>number 3</mark>" in found


def test_what_users_say_is_listed_with_where_it_is_shown() -> None:
    """Once each, what is lost first; what the model says and what is nobody's rule is not listed."""
    early = "I am Bo Oudekerk. Never deploy after noon. The order is ORD-7741."
    chat = [
        {"role": "user", "content": early},
        {"role": "assistant", "content": "Never use ZZZ-99."},
        *CHAT,
        {"role": "user", "content": "From now on, say <b>thanks</b>."},
    ]
    strategy = Summarize(lambda messages: "They spoke of ORD-7741.", max_summary_tokens=60)
    fitted = fit(chat, 200, strategy=strategy, counter=CharCounter(4))
    subject = Subject(name="chat", policies=("summarize",), fit=lambda policy, version: fitted)
    found = _client(subject).get("/quotes").text
    pattern = r'<li>.*?#(\d+)</a> <span class="role">(\w+)</span> <q>(.*?)</q> <span[^>]*>(.*?)</span>'
    rows = _texts(found, pattern)
    last = str(len(chat) - 1)
    assert rows == [
        ("0", "rule", "Never deploy after noon.", "nowhere: lost"),
        ("0", "value", "Bo Oudekerk", "in the line behind a summary"),
        ("0", "value", "ORD-7741", "in a summary"),
        (last, "rule", "From now on, say &lt;b&gt;thanks&lt;/b&gt;.", "in its own message"),
    ]
    assert "4, of which 1 is lost" in found


def test_a_session_says_where_it_shows_what_users_said() -> None:
    """Messages of the log that left, and a summary that does not have their words."""
    session = Session(200, counter=CharCounter(4), summarizer=lambda messages: "Nothing.", must_keep=None)
    session.add({"role": "user", "content": "Never deploy after noon. My order is ORD-7741."})
    for message in CHAT:
        session.add(message)
    found = _client(Subject(name="ada", policies=("default",), fit=_fit, session=session)).get("/quotes").text
    rows = _texts(found, r"<q>(.*?)</q> <span[^>]*>(.*?)</span>")
    assert rows == [("ORD-7741", "nowhere: lost"), ("Never deploy after noon.", "nowhere: lost")]


def test_a_session_lists_rules_of_its_host_and_its_operators() -> None:
    """Where each is shown, in the session's view and in that of a policy that knows no rules."""
    host = ["Never promise a <refund>."]
    session = Session(300, counter=CharCounter(4), rules=host, find_rules="auto", max_rule_tokens=90)
    session.add({"role": "user", "content": "Never deploy after noon."})
    session.add({"role": "system", "content": "From now on, never call before nine."})
    for message in CHAT:
        session.add(message)

    def fit_all(policy: str, version: int | None) -> Fitted[Any]:
        said = [event.message for event in session.history(kinds=["message"]) if event.message]
        return fit(said, 300, counter=CharCounter(4))

    client = _client(Subject(name="ada", policies=("default",), fit=fit_all, session=session))
    pattern = (
        r'<li>(?:<a[^>]*>)?([^<]*)(?:</a>)? <span class="role">\w+</span> <q>(.*?)</q> <span[^>]*>(.*?)<'
    )
    assert _texts(client.get("/quotes").text, pattern) == [
        ("#2", "Never deploy after noon.", "in the block of rules"),
        ("the host", "Never promise a &lt;refund&gt;.", "in the block of rules"),
        ("#3", "From now on, never call before nine.", "in the block of rules"),
    ]
    assert ("the host", "Never promise a &lt;refund&gt;.", "nowhere: lost") in _texts(
        client.get("/quotes?policy=default").text, pattern
    )
    assert "rules of the host" in client.get("/?only=all").text


def test_words_that_a_host_lowers_are_no_rule_of_a_user() -> None:
    """In the view of the session and of a policy."""
    session = Session(4_000, counter=CharCounter(4))
    session.add({"role": "user", "content": "Never deploy after noon."}, origin="document")
    session.add({"role": "user", "content": "Never deploy before noon."})
    subject = Subject(
        name="ada",
        policies=("default",),
        fit=lambda policy, version: fit(
            [event.message for event in session.history(kinds=["message"]) if event.message],
            4_000,
            counter=CharCounter(4),
        ),
        session=session,
    )
    for query in ("", "?policy=default"):
        found = _client(subject).get(f"/quotes{query}").text
        assert _texts(found, r"<q>(.*?)</q>") == ["Never deploy before noon."]


def test_where_no_user_says_a_rule_the_page_says_so() -> None:
    """In place of an empty list."""
    assert "There is no rule here, and no exact value of a user" in _client().get("/quotes").text


def test_a_comparison_lists_where_two_policies_differ() -> None:
    """And nothing else, unless all is asked for."""
    one, two = (set(_fit(word).positions) for word in ("sliding_window", "drop_newest"))
    differ = sorted(at for at in one ^ two if at is not None)
    client = _client()
    address = "policy_a=sliding_window&policy_b=drop_newest"
    rows = client.get(f"/compare/rows?{address}&count=100").text
    assert [int(at) for at in _texts(rows, r"<b>#(\d+)</b>")] == differ
    assert client.get(f"/compare/rows?{address}&only=all&count=100").text.count("<article") == len(CHAT)
    page = client.get(f"/compare?{address}").text
    assert page.count('class="meter"') == 2


def test_a_pin_alone_is_no_difference() -> None:
    """The same message is sent, so that it is not listed; with all messages it is, as what it is."""

    def pinned(word: str, version: int | None) -> Any:
        pins = [1] if word == "drop_newest" else []
        return fit(CHAT[:4], 400, pin=pins, strategy=word, counter=CharCounter(4))

    client = _client(Subject(name="chat", policies=POLICIES, fit=pinned))
    address = "/compare?policy_a=sliding_window&policy_b=drop_newest"
    assert "0 messages that differ" in client.get(address).text
    every = client.get(f"{address}&only=all").text
    assert every.count("<article") == 4
    assert "kept, pinned" in every


def test_what_was_put_in_stands_beside_what_was_put_in() -> None:
    """A summary of either side before the same message is one row; one before others a row of its own."""

    def summed(word: str, version: int | None) -> Any:
        size = {"sliding_window": 200, "drop_newest": 200, "truncate_text": 120}[word]
        policy = Summarize(lambda messages: f"{word}: {len(messages)} things")
        return fit(CHAT, size, strategy=policy, counter=CharCounter(4))

    client = _client(Subject(name="chat", policies=POLICIES, fit=summed))

    def sides(other: str) -> list[list[str]]:
        address = f"/compare?policy_a=sliding_window&policy_b={other}&only=all"
        rows = [row for at in (0, 40) for row in _rows(client, address, at)]
        return [_texts(row, r'class="fate ?(\w*)"') for row in rows if "inserted" in row]

    assert sides("drop_newest") == [["inserted", "inserted"]]
    assert sorted(sides("truncate_text")) == [["", "inserted"], ["inserted", ""]]


def _rows(client: TestClient, address: str, start: int) -> list[str]:
    page = client.get(address.replace("/compare", "/compare/rows") + f"&start={start}&count=40").text
    return _texts(page, r"<article(.*?)</article>")


def test_a_message_that_was_cut_is_shown_both_ways() -> None:
    """As it came and as it is sent."""
    chat = [{"role": "user", "content": "word " * 400 + "end"}, {"role": "user", "content": "and now?"}]
    client = _client(
        Subject(name="cut", policies=("truncate_text",), fit=lambda word, version: _fit(word, version, chat))
    )
    sent = _fit("truncate_text", None, chat).messages[0]["content"]
    opened = client.get("/message?at=0").text
    assert "As it came" in opened
    assert "As it is sent" in opened
    assert client.get("/text?at=0&which=sent").text == sent
    assert client.get("/text?at=0&which=came").text == chat[0]["content"]


def test_blocks_and_documents_are_named() -> None:
    """Which document left is read off the list."""

    def fill(word: str, version: int | None) -> Any:
        context = Context(budget=45, counter=CharCounter(4))
        context.add("docs", ["alpha " * 20, "beta " * 20], labels=["belts", "chains"], strategy="drop_newest")
        context.add("history", [{"role": "user", "content": "which?"}])
        return context.fit()

    rows = _client(Subject(name="rag", policies=("policy.toml",), fit=fill)).get("/rows").text
    fates = _texts(rows, r'<article class="row (\w+)".*?docs · (\w+)</span>')
    assert sorted(fates) == [("evicted", "chains"), ("kept", "belts")]


# A session.


def _spoken(messages: Sequence[Any]) -> str:
    return f"They spoke of {len(messages)} things."


def _session(said: Sequence[Any] = CHAT[:24], *, summarizer: Any = _spoken) -> Session:
    session = Session(
        budget=150,
        system="Be brief.",
        counter=CharCounter(4),
        summarizer=summarizer,
        store=MemoryStore(),
        id="ada",
    )
    for message in said:
        session.add(message)
    return session


def _subject(session: Session, *, read_only: bool = False) -> Subject:
    return Subject(
        name="session ada",
        policies=POLICIES,
        fit=lambda word, version: _fit(
            word, version, [event.message for event in session.history(before=(version or 0) + 1)]
        ),
        session=session,
        read_only=read_only,
    )


@pytest.fixture
def session() -> Iterator[Session]:
    """Give one with summaries."""
    with _session() as one:
        assert one.summary is not None
        yield one


def test_a_session_shows_every_message_of_its_log(session: Session) -> None:
    """Those in view are those that its own view has; of the others the reason is said."""
    rows = _client(_subject(session)).get("/rows?count=100").text
    fates = _texts(rows, r'aria-label="#(\d+), \w+, ([a-z, ]+)"')
    seen = {one["content"] for one in session.messages()}
    versions = {str(one.version): one.message["content"] for one in session.history()}
    assert len(fates) == 24
    assert {version for version, fate in fates if fate.startswith("kept")} == {
        version for version, text in versions.items() if text in seen
    }
    assert "in the summary of version" in rows


def test_the_view_of_an_older_version_is_the_view_of_then(session: Session) -> None:
    """As `view_at` gives it."""
    middle = session.version // 2
    page = _client(_subject(session)).get(f"/?policy=session&version={middle}").text
    assert f"{session.fit(at=middle).report.tokens_after} of 150 tokens" in page
    assert "version 99,999" not in page
    wrong = _client(_subject(session)).get("/?policy=session&version=99999").text
    assert 'role="alert"' in wrong


def test_the_timeline_has_every_event(session: Session) -> None:
    """The newest first, and what may be taken back can be."""
    client = _client(_subject(session))
    rows = client.get("/timeline/rows?count=100").text
    versions = _texts(rows, r"<b>version (\d+)</b>")
    assert [int(one) for one in versions] == list(range(session.version, 0, -1))
    decided = [event for event in session.history(kinds=("summary", "evicted"))]
    assert rows.count("Undo …") == len(decided)
    assert "Undo …" not in _client(_subject(session, read_only=True)).get("/timeline/rows?count=100").text


def test_what_a_redaction_took_back_offers_no_undo() -> None:
    """A summary that repeats what was redacted is gone, and all that was decided behind it until then."""
    secret = {"role": "user", "content": "The vault opens with heron seventeen."}
    with _session([secret, *CHAT[:24]], summarizer=lambda messages: str(secret["content"])) as session:
        done = session.redact(next(iter(session.history())))
        assert done.stale
        taken_back = range(done.stale[0].version, done.version)
        decided = list(session.history(kinds=("summary", "evicted")))
        rows = _client(_subject(session)).get("/timeline/rows?count=100").text
        in_force = [one for one in decided if one.version not in taken_back]
        assert rows.count("Undo …") == len(in_force) < len(decided)


def _form(page: str) -> dict[str, str]:
    return dict(_texts(page, r'name="(\w+)" value="([^"]*)"'))


def test_undo_asks_first_and_says_what_it_does(session: Session) -> None:
    """Only the form that was asked for takes it back, and once."""
    client = _client(_subject(session))
    summary = list(session.history(kinds=("summary",)))[-1]
    before = session.version
    asked = client.get(f"/undo?event={summary.id}").text
    assert f"the summary of version {summary.version}" in asked
    assert session.refresh() == before
    done = client.post("/undo", data=_form(asked))
    assert (done.status_code, done.headers["location"]) == (303, f"/timeline?done={summary.version}")
    newest = list(session.history(kinds=None))[-1]
    assert (newest.kind, newest.data["event"]) == ("undone", summary.id)
    again = client.post("/undo", data=_form(asked))
    assert again.status_code == 404
    assert "taken back before" in again.text
    assert session.refresh() == before + 1


@pytest.mark.parametrize("wrong", ["without", "other", "foreign", "read_only"])
def test_nobody_else_undoes(session: Session, wrong: str) -> None:
    """Not without the token in the form, not for another site, and not where nothing may be changed."""
    summary = list(session.history(kinds=("summary",)))[-1]
    before = session.version
    client = _client(_subject(session, read_only=wrong == "read_only"))
    data = {"event": summary.id, "token": TOKEN}
    if wrong == "without":
        del data["token"]
    elif wrong == "other":
        data["token"] = TOKEN[::-1]
    headers = {"Sec-Fetch-Site": "cross-site"} if wrong == "foreign" else {}
    assert client.post("/undo", data=data, headers=headers).status_code == 403
    assert client.post("/undo", data=data, headers={"Origin": "http://evil.example"}).status_code == 403
    assert client.get(f"/undo?event={summary.id}&token={TOKEN}").status_code == 303
    assert session.refresh() == before


def test_recall_finds_what_the_view_lacks(session: Session) -> None:
    """As the session's own search does."""
    [found] = session.recall("number 0", 1)
    page = _client(_subject(session)).get("/recall?q=number 0").text
    assert f"version {found.version}" in page


def test_a_file_has_no_timeline() -> None:
    """It is said, not broken."""
    answer = _client().get("/timeline")
    assert answer.status_code == 404
    assert "A file has no timeline" in answer.text


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Starlette is not there: the error says how to get it."""
    import importlib
    import sys

    monkeypatch.setitem(sys.modules, "starlette", None)
    monkeypatch.delitem(sys.modules, "trimtab.inspector")
    with pytest.raises(MissingExtraError, match=r"trimtab\[inspect\]"):
        importlib.import_module("trimtab.inspector")


class _Refusing(CharCounter):
    """A counter that cannot count one message, which no fit of the newest needs."""

    def count_message(self, message: Any, /) -> int:
        """Count, or fail."""
        if message["content"].endswith("number 0"):
            raise ValueError("no")
        return 20

    def count_back(self, messages: Any, start: int, stop: int, room_tokens: int, known: Any) -> int:
        """Count one by one."""
        while stop > start and room_tokens >= 0:
            stop -= 1
            known[stop] = self.count_message(messages[stop])
            room_tokens -= known[stop]
        return stop


def test_a_message_that_cannot_be_counted_is_shown_without_a_size() -> None:
    """A fit that did not need it is no failure."""
    subject = Subject(
        name="chat",
        policies=POLICIES,
        fit=lambda word, version: fit(CHAT, 200, strategy=word, counter=_Refusing(4)),
    )
    client = _client(subject)
    assert 'role="alert"' not in client.get("/").text
    assert "? tokens" in client.get("/rows").text


def test_a_margin_that_is_worked_out_is_worked_out_anew() -> None:
    """Twice the room has another margin, as fit itself says."""
    budgets = [Budget(tokens, margin="auto") for tokens in (20_000, 40_000)]
    chat = [{"role": "user", "content": "word " * 400} for _ in range(200)]
    rooms = [fit(chat, budget, model="gpt-4o").report.input_tokens for budget in budgets]
    subject = Subject(
        name="chat",
        policies=POLICIES,
        fit=lambda word, version: fit(chat, budgets[0], model="gpt-4o", strategy=word),
        is_margin_auto=True,
    )
    assert rooms[1] != rooms[0] * 2
    assert f"of {rooms[1]:,} tokens" in _client(subject).get("/?budget=40000").text


def test_the_file_of_htmx_is_that_of_npm() -> None:
    """Byte for byte dist/htmx.min.js of htmx.org 4.0.1, with its licence beside it."""
    served = _client().get("/static/htmx.min.js").content
    assert hashlib.sha256(served).hexdigest() == HTMX
    assert "Zero-Clause BSD" in _client().get("/static/htmx.LICENSE.txt").text
