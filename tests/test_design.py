"""The look of the pages: one set of tokens, which can be read on light and on dark."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from trimtab import CharCounter, Session, fit
from trimtab.replay import chart_page, replay

TOKEN = re.compile(r"--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)")
COLOUR = re.compile(r"#[0-9a-fA-F]{3,8}\b|\b(?:rgb|hsl)a?\(")
CHAT = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}]


def style(page: str) -> str:
    """Return the first style of a page."""
    return page.partition("<style>")[2].partition("</style>")[0]


def pages() -> dict[str, str]:
    """Give each page's style, by name."""
    return {
        "report": style(fit(CHAT, 100, counter=CharCounter()).to_html()),
        "replay": style(chart_page({"chat": [replay(CHAT, "none", budget=100)]})),
        "notebook": style(Session(100, counter=CharCounter())._repr_html_()),
        "inspector": (files("trimtab.inspector") / "static" / "inspector.css").read_text("utf-8"),
    }


def luminance(colour: str) -> float:
    """Give what a colour weighs to the eye, by WCAG 2."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Give the contrast of two colours, by WCAG 2."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_each_colour_can_be_read_on_each_paper() -> None:
    """Words in any colour stand out on the page and on a card, in light and in dark."""
    tokens = {name: colours for name, *colours in TOKEN.findall(pages()["report"])}
    papers = {name: tokens.pop(name) for name in ("back", "card")}
    for name in ("line", "on-accent"):  # a border is no word, and these words stand on the accent
        at = tokens.pop(name)
    assert min(contrast(*pair) for pair in zip(at, tokens["accent"], strict=True)) >= 4.5
    poor = [
        (name, paper, scheme)
        for name, colours in tokens.items()
        for paper, backs in papers.items()
        for scheme in (0, 1)
        if contrast(colours[scheme], backs[scheme]) < 4.5
    ]
    assert poor == []
    assert len(tokens) > 20


def test_bars_are_seen_in_a_dark_notebook_that_does_not_say_so() -> None:
    """Where nobody says dark, the light colours stand on black, and can be told from it."""
    tokens = TOKEN.findall(pages()["notebook"])
    assert [name for name, light, _ in tokens if name != "on-accent" and contrast(light, "#111111") < 3] == []


@pytest.mark.parametrize("name", ["report", "replay", "notebook", "inspector"])
def test_pages_have_no_colours_of_their_own(name: str) -> None:
    """What is not a token is said by the name of one, and all that are named are there."""
    written = pages()[name]
    own = re.sub(r"--[\w-]+:[^;}]*[;}]", "", written).replace("rgb(0 0 0 / .5)", "")
    assert COLOUR.findall(own) == []
    known = set(re.findall(r"--([\w-]+):", pages()["report"] + written))
    assert set(re.findall(r"var\(--([\w-]+)", written)) <= known
