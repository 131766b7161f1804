"""The inspector in a real Chromium: what a reader does there, on real addresses of `trimtab inspect`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser import PATIENCE_MS, axe, chromium
from tests.inspectors import conversation, inspector
from trimtab import Session
from trimtab.stores import SQLiteStore

pytestmark = pytest.mark.server

MOST_NODES = 300
HOSTILE = (
    "<script>window.harm = 1</script><img src=http://evil.example/x onerror='window.harm = 2'>"
    "\x1b[31mred\x1b]8;;http://evil.example\x07link\u202egnp.exe\u2066 {{ 7 * 7 }} </pre></article>"
    "<button hx-get=http://evil.example hx-trigger=load>x</button><a hx-on:click='window.harm=3'>y</a>"
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Give one Chromium to all tests of this file."""
    with chromium() as one:
        yield one


Open = Callable[..., Page]


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Open]:
    """Give what opens an address in a browser that knows nothing yet; what it complained of is a failure."""
    contexts, complaints = [], list[str]()

    def open_one(address: str, *, width: int = 1280, scheme: Any = "light") -> Page:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        context.set_default_timeout(PATIENCE_MS)
        contexts.append(context)
        page = context.new_page()
        page.on(
            "console", lambda message: complaints.append(message.text) if message.type == "error" else None
        )
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(address)
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture(scope="module")
def chat(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve a conversation of 60 messages."""
    folder = tmp_path_factory.mktemp("chat")
    (folder / "chat.json").write_text(json.dumps(conversation(60)), encoding="utf-8")
    (folder / "newest.json").write_text('{"kind": "drop_newest"}', encoding="utf-8")
    with inspector(folder, "chat.json", "--budget", "500", "--policy", "newest.json") as address:
        yield address


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve a conversation of 10,000 messages."""
    folder = tmp_path_factory.mktemp("long")
    (folder / "long.json").write_text(json.dumps(conversation(10_000)), encoding="utf-8")
    with inspector(folder, "long.json", "--budget", "20k") as address:
        yield address


@pytest.fixture
def session_address(tmp_path: Path) -> Iterator[str]:
    """Serve a session that has summaries."""
    with (
        SQLiteStore(tmp_path / "chats.db") as store,
        Session(
            budget=400,
            summarizer=lambda messages: f"They spoke of {len(messages)} things.",
            store=store,
            id="ada",
        ) as session,
    ):
        for message in conversation(60):
            session.add(message)
    with inspector(tmp_path, "--store", "chats.db") as address:
        yield address


def _follow(link: Locator) -> None:
    """Click what leads to another page, and wait for its scripts: a key before them is the browser's own."""
    with link.page.expect_navigation():
        link.click()


def _number(text: str) -> int:
    return int(re.sub(r"\D", "", text))


def _kept(page: Page) -> int:
    found = re.search(r"(\d+) of \d+ messages sent", page.locator(".headline").inner_text())
    assert found
    return int(found[1])


def test_the_token_leaves_the_address(chat: str, open_page: Open) -> None:
    """It is in no history, and a page without it is refused."""
    page = open_page(chat)
    assert "token" not in page.url
    page.reload()
    expect(page.locator(".headline")).to_contain_text("of 500 tokens")


def test_the_slider_fits_again(chat: str, open_page: Open) -> None:
    """A key on the slider changes the budget, the report, the rows and what is said to who does not see."""
    page = open_page(chat)
    before = _kept(page)
    slider = page.get_by_label("Budget, on a slider")
    slider.focus()
    for _ in range(60):
        page.keyboard.press("ArrowRight")
    budget = page.get_by_label("Budget, in tokens").input_value()
    expect(page.locator("#view .headline")).to_contain_text(f"of {int(budget):,} tokens")
    assert int(budget) > 500
    assert _kept(page) > before
    expect(page.get_by_role("status")).to_contain_text(f"of {int(budget):,} tokens")
    assert f"budget={budget}" in page.url
    assert page.evaluate("document.activeElement.id") == "slider"


def test_the_last_step_of_the_slider_sends_all(chat: str, open_page: Open) -> None:
    """Its end is the size of the whole conversation, and not a step short of it."""
    page = open_page(chat)
    page.get_by_label("Budget, on a slider").focus()
    page.keyboard.press("End")
    expect(page.get_by_role("status")).to_contain_text("0 messages not sent")
    expect(page.locator(".row.evicted")).to_have_count(0)
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("status")).not_to_contain_text("0 messages not sent")


def test_a_line_of_the_overview_leads_to_its_first_message(long: str, open_page: Open) -> None:
    """From what became of them to the row where it begins, of 10,000."""
    page = open_page(long)
    line = page.locator(".fates li", has_text="kept").last
    expect(line).to_contain_text("messages")
    line.get_by_role("link").click()
    row = page.locator(".row:focus")
    expect(row).to_contain_text("kept")
    expect(row).to_be_in_viewport()


def test_a_reader_sees_what_was_evicted_and_what_more_room_brings(chat: str, open_page: Open) -> None:
    """What was evicted, why, how much is unused, and what 2,000 more tokens would bring back."""
    page = open_page(chat.replace("/?", "/?policy=sliding_window&"))
    page.get_by_role("button", name="Evicted").click()
    first = page.locator(".row").first
    expect(first).to_contain_text("evicted")
    expect(first).to_contain_text("the budget has no room for it")
    expect(first).to_contain_text("message 0 says")
    expect(page.locator(".headline")).to_contain_text("unused")
    expect(page.locator(".more")).to_contain_text("2,000 more tokens would bring back")


def test_the_list_opens_on_what_the_model_sees(chat: str, open_page: Open) -> None:
    """Its first row is the first that is sent, with how many before it are not; pills show the others."""
    page = open_page(chat.replace("/?", "/?policy=default&"))
    rows, kept = page.locator(".row"), _kept(page)
    expect(page.get_by_role("button", name="What the model sees")).to_have_attribute("aria-pressed", "true")
    expect(rows).to_have_count(kept)
    expect(rows.first).to_contain_text(f"{60 - kept} messages before this not sent")
    evicted = page.get_by_role("button", name="Evicted")
    evicted.focus()
    page.keyboard.press("Space")
    expect(evicted).to_have_attribute("aria-pressed", "true")
    expect(rows.first).to_contain_text("#0")
    expect(page.locator(".row.kept")).to_have_count(0)
    page.get_by_role("button", name="Changed").click()
    expect(page.locator(".none")).to_be_visible()
    page.get_by_role("button", name="All messages").click()
    expect(page.locator(".row.evicted").first).to_be_visible()


def test_a_bar_of_the_chart_leads_to_its_row(chat: str, open_page: Open) -> None:
    """To a message that is not sent, too, among all of them."""
    page = open_page(chat.replace("/?", "/?policy=default&"))
    page.locator(".chart g").nth(7).click(force=True)
    expect(page.locator('.row[data-at="7"]')).to_be_focused()
    expect(page.get_by_role("button", name="All messages")).to_have_attribute("aria-pressed", "true")


def test_a_conversation_is_chosen_from_a_file(tmp_path: Path, open_page: Open) -> None:
    """The longest is named; the way back is in the head of each page."""
    lines = (json.dumps(conversation(turns)) for turns in (4, 30, 8))
    (tmp_path / "chats.jsonl").write_text("\n".join(lines), encoding="utf-8")
    with inspector(tmp_path, "chats.jsonl", "--budget", "500") as address:
        page = open_page(address)
        expect(page.get_by_role("heading", name="3 conversations")).to_be_visible()
        expect(page.locator(".lead")).to_contain_text("The longest is line 2: 30 messages")
        page.get_by_label("Order").select_option("size")
        _follow(page.get_by_role("button", name="Show"))
        expect(page.locator(".choices li").first).to_contain_text("line 2")
        _follow(page.locator(".choices a").last)
        expect(page.locator(".what")).to_have_text("chats.jsonl, line 1")
        expect(page.locator(".headline")).to_contain_text("4 of 4 messages sent")
        page.locator(".row .open").first.click()
        expect(page.get_by_role("dialog")).to_contain_text("message 0 says")
        page.keyboard.press("Escape")
        _follow(page.get_by_role("link", name="Bill"))
        _follow(page.get_by_role("link", name="All conversations"))
        expect(page.get_by_role("heading", name="3 conversations")).to_be_visible()


def test_without_a_budget_a_model_is_chosen_in_the_page(tmp_path: Path, open_page: Open) -> None:
    """The first visit shows all of it; a model brings its room and price, and a wrong name is said."""
    (tmp_path / "chat.json").write_text(json.dumps(conversation(30)), encoding="utf-8")
    with inspector(tmp_path, "chat.json") as address:
        page = open_page(address)
        expect(page.locator(".headline")).to_contain_text("30 of 30 messages sent")
        expect(page.locator(".what-if")).to_contain_text("No budget was given")
        page.get_by_label("Model").fill("gpt-4o")
        page.get_by_label("Model").press("Enter")
        expect(page.locator(".headline")).to_contain_text("for the input without a cache")
        expect(page.locator(".what-if")).to_have_count(0)
        assert int(page.get_by_label("Budget, in tokens").input_value()) == 128_000
        page.get_by_label("Model").fill("lama-4")
        page.get_by_label("Model").press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("Model 'lama-4' is unknown")
        expect(page.get_by_role("alert")).not_to_contain_text("--")


def test_a_policy_is_chosen_and_typed(chat: str, open_page: Open) -> None:
    """A file, then JSON; what is wrong in it is said in the page and can be put right there."""
    page = open_page(chat)
    assert page.get_by_label("Policy", exact=True).input_value() == "newest.json"
    page.get_by_label("Policy", exact=True).select_option("sliding_window")
    expect(page.locator(".row").first).not_to_contain_text("#0")
    page.get_by_text("Or a strategy as JSON").click()
    page.get_by_label("In place of the policy").fill('{"kind": "sliding_window", "keep_turnz": 1}')
    page.get_by_role("button", name="Fit").click()
    expect(page.get_by_role("alert")).to_contain_text("keep_turnz")
    page.get_by_label("In place of the policy").fill('{"kind": "drop_newest"}')
    page.get_by_role("button", name="Fit").click()
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(page.locator(".row").first).to_contain_text("#0")


def test_search_finds_and_leads_there(long: str, open_page: Open) -> None:
    """From the box to a message of 10,000 that is not in the page yet, and to all of it."""
    page = open_page(long)
    page.get_by_label("Search in all messages").fill("belt 7123 ")
    expect(page.get_by_role("status")).to_contain_text("1 message with")
    page.locator("#found a").click()
    row = page.locator('.row[data-at="7123"]')
    expect(row).to_be_focused()
    expect(row).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_contain_text("message 7123 says that belt 7123 needs oil")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_ten_thousand_messages_are_at_most_300_nodes(long: str, open_page: Open) -> None:
    """Wherever one scrolls, what is seen is there, and little else."""
    page = open_page(long.replace("/?", "/?only=all&"))
    box = page.locator(".list")
    box.evaluate("box => box.scrollIntoView({block: 'center'})")
    most = 0
    for share in (0.1, 0.37, 0.5, 0.93, 1.0, 0.0):
        box.evaluate(
            "(box, share) => { box.scrollTop = share * (box.scrollHeight - box.clientHeight) }", share
        )
        page.wait_for_function(
            """() => { const box = document.querySelector(".list").getBoundingClientRect();
            const at = document.elementFromPoint(box.left + 40, box.top + box.height / 2);
            return at?.closest(".row") && document.querySelector(".window").ariaBusy === "false" }"""
        )
        most = max(most, page.locator(".row").count())
    assert 0 < most <= MOST_NODES
    box.focus()
    page.keyboard.press("End")
    expect(page.locator('.row[data-at="9999"]')).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(page.locator('.row[data-at="9998"]')).to_be_focused()
    assert page.locator("article").count() <= MOST_NODES


def test_a_hostile_conversation_does_no_harm(tmp_path: Path, open_page: Open) -> None:
    """No script of it runs, no request of it leaves, and what would steer a reader's eye is seen as text."""
    texts = [HOSTILE, "x" * 5_000_000, f"{HOSTILE} end"]
    chat = [
        {"role": role, "content": text}
        for role, text in zip(("user", "assistant", "user"), texts, strict=True)
    ]
    chat[1]["name"] = HOSTILE
    (tmp_path / "chat.json").write_text(json.dumps(chat), encoding="utf-8")
    with inspector(tmp_path, "chat.json", "--budget", "5m", "--format", "openai_chat") as address:
        page = open_page(address)
        asked = list[str]()
        page.on("request", lambda request: asked.append(request.url))
        page.reload()
        page.get_by_label("Search in all messages").fill("script")
        expect(page.locator("#found")).to_contain_text("<script>")
        for at in range(3):
            page.locator(".row").nth(at).get_by_role("button").click()
            expect(page.get_by_role("dialog")).to_contain_text("characters")
            page.keyboard.press("Escape")
        page.goto(address.partition("?")[0] + "compare")
        assert page.evaluate("window.harm") is None
        assert [one for one in asked if not one.startswith("http://127.0.0.1:")] == []
        text = page.content()
        assert not {"\x1b", "\u202e", "\u2066"}.intersection(text)
        assert len(text) < 200_000


def test_no_script_of_a_page_runs_but_its_files(chat: str, browser: Browser) -> None:
    """Were there markup of others in a page after all, the content security policy holds it."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(chat)
    page.evaluate(
        """() => { const made = document.createElement("div");
        made.innerHTML = "<img src=/nothing onerror='window.harm = 1'>"; document.body.append(made);
        const script = document.createElement("script"); script.textContent = "window.harm = 2";
        document.body.append(script) }"""
    )
    page.wait_for_load_state("networkidle")
    assert page.evaluate("window.harm") is None
    context.close()


def test_two_policies_are_compared(chat: str, open_page: Open) -> None:
    """Side by side, and the rows are those that differ."""
    page = open_page(chat)
    _follow(page.get_by_role("link", name="Compare"))
    page.locator("#policy_b").select_option("sliding_window")
    expect(page.locator(".sides .headline")).to_have_count(2)
    first = page.locator(".row").first
    expect(first.locator(".side").nth(0)).to_contain_text("kept")
    expect(first.locator(".side").nth(1)).to_contain_text("evicted")
    page.get_by_label("Messages", exact=True).select_option("all")
    expect(page.get_by_role("heading", name="60 messages in all")).to_be_visible()


@pytest.mark.long
def test_a_decision_of_a_session_is_taken_back(session_address: str, open_page: Open) -> None:
    """From the timeline, by a page that asks first; what was summarized is said again."""
    page = open_page(session_address)
    page.get_by_role("button", name="Evicted").click()
    expect(page.locator(".row.summarized").first).to_contain_text("in the summary of version")
    _follow(page.get_by_role("link", name="Timeline"))
    summary = page.locator(".row", has_text="(summary)").first
    version = _number(summary.locator("b").inner_text())
    _follow(summary.get_by_role("link", name="Undo"))
    expect(page.locator("main")).to_contain_text(f"the summary of version {version}")
    _follow(page.get_by_role("button", name="Take it back"))
    expect(page.locator(".done")).to_contain_text(f"version {version} is taken back")
    expect(page.locator(".row").first).to_contain_text("(undone)")
    page.get_by_label("Recall: find what is no longer sent").fill("belt 3")
    page.get_by_role("button", name="Recall").click()
    expect(page.locator("#found li").first).to_contain_text("belt 3")


@pytest.mark.long
def test_a_session_has_a_slider_that_writes_nothing(session_address: str, open_page: Open) -> None:
    """What it would show with less, and that this is no more than a look."""
    page = open_page(session_address)
    events = page.get_by_label("Version, up to")
    before = events.get_attribute("max")
    slider = page.get_by_label("Budget, on a slider")
    slider.focus()
    page.keyboard.press("Home")
    expect(page.locator(".what-if")).to_contain_text("instead of the 400 of the session. Nothing is written.")
    budget = page.get_by_label("Budget, in tokens").input_value()
    expect(page.locator("#view .headline")).to_contain_text(f"of {int(budget):,} tokens")
    page.reload()
    assert events.get_attribute("max") == before


@pytest.mark.long
def test_a_page_says_that_its_session_has_grown(tmp_path: Path, open_page: Open) -> None:
    """Its rows stay those of its version, wherever one scrolls, until the reader asks for the newest."""
    with (
        SQLiteStore(tmp_path / "chats.db") as store,
        Session(budget=2_000, store=store, id="ada") as session,
    ):
        session.extend(conversation(200))
        with inspector(tmp_path, "--store", "chats.db") as address:
            page = open_page(address)
            expect(page.locator("#grown")).to_be_hidden()
            session.extend(conversation(300)[200:])
            session.set_budget(500)
            expect(page.locator("#grown")).to_contain_text("by now")
            page.locator(".list").focus()
            page.keyboard.press("End")
            expect(page.locator(".row:focus")).to_contain_text("message 199 says")
            page.locator(".row:focus").get_by_role("button").click()
            expect(page.get_by_role("dialog")).to_contain_text("message 199 says")
            page.keyboard.press("Escape")
            _follow(page.get_by_role("link", name="Show the newest"))
            expect(page.locator("#grown")).to_be_hidden()
            page.locator(".list").focus()
            page.keyboard.press("End")
            expect(page.locator(".row:focus")).to_contain_text("message 299 says")


@pytest.mark.long
def test_what_a_version_changed_is_one_click_away(session_address: str, open_page: Open) -> None:
    """The difference of two views, from the timeline."""
    page = open_page(session_address)
    _follow(page.get_by_role("link", name="Timeline"))
    decision = page.locator(".row", has_text="(evicted)").first
    _follow(decision.get_by_role("link", name="What it changed"))
    expect(page.locator(".fates li").first).to_contain_text("A kept, B evicted")
    rows = page.locator(".row")
    expect(rows.first.locator(".side .fate").nth(0)).to_have_text("kept")
    expect(rows.first.locator(".side .fate").nth(1)).to_have_text("evicted")


def test_the_bill_has_a_line_for_each_call(chat: str, open_page: Open) -> None:
    """Of two policies, side by side, with charts."""
    page = open_page(chat.replace("/?", "/bill?"))
    page.get_by_label("Policy", exact=True).select_option("sliding_window")
    page.get_by_label("Compared with").select_option("none")
    page.get_by_role("button", name="Play").click()
    expect(page.get_by_label("Calls", exact=True).locator("tbody tr")).to_have_count(30)
    expect(page.locator("#view")).to_contain_text("sliding_window")
    _follow(page.get_by_role("link", name="Charts by call"))
    expect(page.locator("svg").first).to_be_visible()


PAGES = ("", "?only=all", "?budget=20", "compare", "bill?policy_a=default", "search?q=belt")


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_what_users_say_is_listed_on_the_page(
    tmp_path: Path, open_page: Open, width: int, scheme: str
) -> None:
    """A click lists it below the messages; a number leads to its message; nothing bars people."""
    early = {"role": "user", "content": "Never deploy after noon. My order is ORD-7741."}
    (tmp_path / "chat.json").write_text(json.dumps([early, *conversation(60)]), encoding="utf-8")
    with inspector(tmp_path, "chat.json", "--budget", "500") as address:
        page = open_page(address, width=width, scheme=scheme)
        page.get_by_role("link", name="Rules and exact values").click()
        rows = page.get_by_role("region", name="Rules and exact values").get_by_role("listitem")
        expect(rows).to_have_count(2)
        expect(rows.first).to_have_text("#0 value ORD-7741 nowhere: lost")
        _check_barriers(page, axe())
        rows.first.get_by_role("link").click()
        expect(page.locator(".row", has_text="#0").first).to_be_visible()


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_bars_people(chat: str, open_page: Open, scheme: str) -> None:
    """The axe finds no serious fault, at the width of a desk and of a phone, and nothing is wider."""
    script = axe()
    page = open_page(chat, scheme=scheme)
    for path in PAGES:
        page.goto(chat.partition("?")[0] + path)
        _check_barriers(page, script)
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(chat.partition("?")[0])
    page.locator(".row").first.get_by_role("button").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    _check_barriers(page, script)


@pytest.mark.long
def test_nothing_bars_people_who_choose(tmp_path: Path, open_page: Open) -> None:
    """The list of a file, one that cannot be read among it, at both widths."""
    lines = [json.dumps(conversation(4)), "{", json.dumps(conversation(9))]
    (tmp_path / "chats.jsonl").write_text("\n".join(lines), encoding="utf-8")
    script = axe()
    with inspector(tmp_path, "chats.jsonl") as address:
        for width, scheme in ((1280, "light"), (390, "dark")):
            _check_barriers(open_page(address, width=width, scheme=scheme), script)


@pytest.mark.long
def test_nothing_bars_people_from_a_session(session_address: str, open_page: Open) -> None:
    """The same of its timeline, and of the page that asks before something is taken back."""
    script = axe()
    page = open_page(f"{session_address}&policy=session&budget=150&version=40")
    expect(page.locator("#grown")).to_contain_text("Show the newest")
    _check_barriers(page, script)
    _follow(page.get_by_role("link", name="Timeline"))
    _check_barriers(page, script)
    _follow(page.get_by_role("link", name="Undo").first)
    _check_barriers(page, script)


def _check_barriers(page: Page, script: str) -> None:
    page.evaluate(script)  # as the page's policy would not let it in
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    grave = [
        (one["id"], [node["html"][:200] for node in one["nodes"][:3]])
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
    ]
    assert grave == [], page.url
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), (
        page.url
    )
