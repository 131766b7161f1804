"""Reports, replays and notebook views in a real Chromium: on a phone and a screen, in light and in dark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser import PATIENCE_MS, axe, chromium
from tests.chat_shapes import calling, result
from trimtab import CharCounter, Context, Session, fit
from trimtab.counting import FixedCounter
from trimtab.replay import chart_page, replay
from trimtab.testing import WordCounter

pytestmark = pytest.mark.server

HOSTILE = (
    "</style></title></pre><script>window.harm = 1</script><img src=x onerror='window.harm = 2'>\u202egnp"
)
LONG = "a_name_without_any_blank_" * 20


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Give one Chromium to all tests of this file."""
    with chromium() as one:
        yield one


def talk(count: int) -> list[dict[str, Any]]:
    """Make an agent's talk with hostile texts and names."""
    found: list[dict[str, Any]] = []
    for at in range(count):
        call = calling(f"c{at}", name="look_up")
        found += [
            {"role": "user", "content": f"{HOSTILE} {at}"},
            call,
            result(f"c{at}", "word " * (at % 7) * 9),
        ]
    return [*found, {"role": "user", "content": "And now?"}]


def report_page() -> str:
    """Write the page of a fit with texts."""
    fitted = fit(talk(20), 400, counter=WordCounter())
    return fitted.to_html(include_text=True, title=HOSTILE, source=f"{LONG}.json")


def blocks_page() -> str:
    """Write the page of a context whose blocks have long names and limits."""
    context = Context(300, counter=FixedCounter(per_message=10))
    context.add(LONG[:60], ["one", "two", HOSTILE], max_tokens=20, labels=["a.md", LONG, HOSTILE])
    context.add("history", talk(20), min_ratio=0.25)
    return context.fit().to_html()


def replay_page() -> str:
    """Write the page of three policies, of which one refuses calls and one goes over."""
    policies = {HOSTILE: "default", f"{LONG}": '{"kind": "clear_tool_results"}', "none": None}
    short, long = (
        [
            replay(talk(size), one, budget=300, counter=WordCounter(), name=name)
            for name, one in policies.items()
        ]
        for size in (1, 12)
    )
    return chart_page({"chats.jsonl, line 1": short, f"chats.jsonl, {HOSTILE}": long}, title=HOSTILE)


def notebook_page() -> str:
    """Write what a notebook shows of each object below each other."""
    fitted = fit(talk(9), 200, counter=WordCounter())
    context = Context(300, counter=CharCounter())
    context.add(LONG[:40], [HOSTILE], max_tokens=20)
    session = Session(300, counter=CharCounter(), id=HOSTILE)
    session.extend(talk(2))
    found = replay(talk(12), "default", budget=300, counter=WordCounter(), name=HOSTILE)
    shown = "\n".join(one._repr_html_() for one in (fitted, context, session, found))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Notebook</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"></head>'
        f"<body><main><h1>Notebook</h1>{shown}</main></body></html>"
    )


PAGES = {"report": report_page, "blocks": blocks_page, "replay": replay_page, "notebook": notebook_page}


def opened(browser: Browser, folder: Path, name: str, *, width: int = 1280, scheme: Any = "light") -> Page:
    """Open one of the pages as a file."""
    path = folder / f"{name}.html"
    path.write_text(PAGES[name](), encoding="utf-8")
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.set_default_timeout(PATIENCE_MS)
    page.goto(path.as_uri())
    return page


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1280, "dark")])
def test_a_page_fits_its_window_and_has_no_barriers(
    browser: Browser, tmp_path: Path, name: str, width: int, scheme: str
) -> None:
    """Nothing makes the page move sideways, axe finds nothing serious, and no text of others acts."""
    page = opened(browser, tmp_path, name, width=width, scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
    page.evaluate(axe())
    found = page.evaluate("axe.run()")["violations"]
    assert [(one["id"], one["impact"]) for one in found if one["impact"] in ("serious", "critical")] == []
    assert page.evaluate("window.harm") is None
    assert page.locator("script, img").count() == 0
    page.close()


def test_the_strip_leads_to_a_row_also_to_one_that_is_folded(browser: Browser, tmp_path: Path) -> None:
    """A click on a message shows its row, and marks it."""
    page = opened(browser, tmp_path, "report")
    part = page.locator("svg a").nth(1)
    goes = str(part.get_attribute("href"))
    part.locator("rect").first.click()
    row = page.locator(goes)
    expect(row).to_be_in_viewport()
    assert page.evaluate("document.querySelector(':target').id") == goes[1:]
    page.close()


def test_a_phone_shows_which_policy_is_cheaper_and_which_calls_were_refused(
    browser: Browser, tmp_path: Path
) -> None:
    """The first screen has the verdict; numbers have their word beside them, since the heads are away."""
    page = opened(browser, tmp_path, "replay", width=390)
    expect(page.locator(".verdict")).to_be_in_viewport()
    expect(page.locator("h2", has_text="were not sent")).to_be_visible()
    expect(page.locator("thead").first).to_be_hidden()
    head = page.evaluate("getComputedStyle(document.querySelector('td[data-head=cost]'), '::before').content")
    assert "cost" in head
    ticks = page.locator(".ticks").first
    assert page.evaluate("one => parseFloat(getComputedStyle(one).fontSize)", ticks.element_handle()) >= 12
    page.close()
