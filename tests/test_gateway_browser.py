"""The pages of a gateway in a real Chromium: on a phone and a screen, in light and in dark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser import PATIENCE_MS, axe, chromium
from tests.gateway.gateways import Running, gateway, recorder, talk

pytestmark = pytest.mark.server

TOKEN = "a-token-of-16-or-more"
HOSTILE = (
    "</style></title><script>window.harm = 1</script><img src=x onerror='window.harm = 2'>" + "long" * 30
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Give one Chromium to all tests of this file."""
    with chromium() as one:
        yield one


@pytest.fixture(scope="module")
def front() -> Iterator[Running]:
    """A gateway with a token that three conversations went through, one with a hostile name of a model."""
    with recorder() as behind, gateway(behind.address, budgets={"*": "1k"}, token=TOKEN) as running:
        for turns in (5, 20, 30, 31, 32):
            for name, model in (("one", "gpt-4o"), ("two", HOSTILE), ("three", "gpt-5")):
                said = [{"role": "user", "content": name}, *talk(turns)[1:]]
                running.ask(f"/t/{TOKEN}/v1/chat/completions", {"model": model, "messages": said})
        yield running


def opened(browser: Browser, front: Running, *, width: int = 1280, scheme: Any = "light") -> Page:
    """Open the page by its address without the slash at its end."""
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.set_default_timeout(PATIENCE_MS)
    page.goto(f"{front.address}/t/{TOKEN}/trimtab")
    return page


def check(page: Page, script: str) -> None:
    """Say that nothing moves sideways, that axe finds nothing serious, and that no text of others acts."""
    assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
    page.evaluate(script)
    found = page.evaluate("axe.run()")["violations"]
    assert [(one["id"], one["impact"]) for one in found if one["impact"] in ("serious", "critical")] == []
    assert page.evaluate("window.harm") is None


@pytest.fixture(scope="module")
def kept() -> Iterator[Running]:
    """A gateway that keeps texts, with a request whose messages and model are hostile."""
    with recorder() as behind, gateway(behind.address, budgets={"*": "1k"}, keep_bodies=True) as running:
        said = [{"role": "user", "content": HOSTILE}, *talk(30)[1:]]
        running.ask("/v1/chat/completions", {"model": HOSTILE[:200], "messages": said})
        yield running


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
def test_texts_are_reached_by_clicks_and_do_no_harm(
    browser: Browser, kept: Running, width: int, scheme: Any
) -> None:
    """From the address of the start to the list, from the numbers to the request, and to an evicted text."""
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.set_default_timeout(PATIENCE_MS)
    script = axe()
    page.goto(kept.address + kept.inspect_path)
    expect(page.locator("h1")).to_have_text("1 request")
    check(page, script)
    page.goto(f"{kept.address}/trimtab/")
    page.locator('a[href^="inspect/"]').click()
    expect(page.locator(".hero")).to_contain_text("Fits")
    page.locator("[data-filter=evicted]").click()
    expect(page.locator("#list, .list").first).to_contain_text("window.harm")
    check(page, script)
    page.close()


@pytest.mark.parametrize(
    ("width", "scheme"), [(390, "light"), (390, "dark"), (1280, "light"), (1280, "dark")]
)
def test_a_page_fits_its_window_and_has_no_barriers(
    browser: Browser, front: Running, width: int, scheme: str
) -> None:
    """Both pages: nothing moves sideways, axe finds nothing serious, no text of others acts."""
    page = opened(browser, front, width=width, scheme=scheme)
    script = axe()
    for name in ("Last requests", "Conversation"):
        expect(page.locator("h1")).to_contain_text(name)
        check(page, script)
        assert page.evaluate("getComputedStyle(document.querySelector('main')).maxWidth") != "none"
        page.locator("td.name a, p > a").first.click()
    expect(page.locator("h1")).to_have_text("Last requests")
    page.close()
