"""The report as HTML: everything a reader asks is in it, and nothing of a hostile text acts."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from trimtab import CharCounter, Context, Session, fit
from trimtab.counting import FixedCounter
from trimtab.report import Report

HOSTILE = "</style><script>alert(1)</script><img src=x onerror=alert(2)> \u202eevil \x1b[31m"


class Page(HTMLParser):
    """What a browser would see: elements with their attributes, and all text."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "rect", "img"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element that holds nothing."""
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        """Close what it closes."""
        if tag in self.open:
            while self.open.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        """Keep what is shown."""
        if not self.open or self.open[-1] != "style":
            self.text += data

    def cells(self) -> list[str]:
        """Classes of the rectangles, in the order of drawing."""
        return [str(attributes.get("class")) for tag, attributes in self.elements if tag == "rect"]


def page_of(report: Report) -> str:
    """Return the page of a report without the time it was made at."""
    return re.sub(r"<time.*?</time>", "", report.to_html())


def chat(count: int, *, text: str = "some words of a message") -> list[dict[str, str]]:
    """Make a talk of equal messages."""
    return [{"role": ("user", "assistant")[at % 2], "content": text} for at in range(count)]


def test_each_message_has_a_cell_with_what_became_of_it() -> None:
    """The strip has a place for each message, in order, and the table says the same in words."""
    fitted = fit(chat(9), 40, counter=FixedCounter(per_message=10))
    page = Page(fitted.to_html())
    strip = [kind for kind in page.cells() if kind in ("kept", "pinned", "evicted")]
    fates = [row.fate for row in fitted.report.messages]
    assert [kind if kind != "pinned" else "kept" for kind in strip[: len(fates)]] == fates
    assert "0–4" in page.text
    assert "it may not stand first" in page.text  # message 5, whose question has no room
    assert "over_limit" in page.text


def test_names_of_what_left_are_shown() -> None:
    """A reader sees which tool was called in what is gone."""
    call = {"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}
    talk = [
        {"role": "user", "content": "Where?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "There."},
        {"role": "user", "content": "And now?"},
    ]
    page = Page(fit(talk, 10, counter=FixedCounter(per_message=10)).to_html())
    assert "look_up" in page.text


def test_blocks_are_parts_of_the_budget_with_floor_and_cap() -> None:
    """Each block has its floor and cap, and what of it left has its labels."""
    context = Context(200, counter=FixedCounter(per_message=10))
    context.add("documents", ["one", "two", "three"], max_tokens=20, labels=["a.md", "b.md", "c.md"])
    context.add("history", chat(30), min_ratio=0.25)
    report = context.fit().count_all()
    assert (report.block("history").floor_tokens, report.block("documents").floor_tokens) == (50, 0)
    page = Page(report.to_html())
    assert "floor: 50 tokens" in page.text
    assert "cap: 20 tokens" in page.text
    assert "a.md" in page.text
    assert page_of(Report.from_dict(report.to_dict(rows="messages"))) == page_of(report)


def test_a_report_of_before_the_floor_was_in_it_is_read() -> None:
    """Reports that were stored earlier can still be read."""
    data = fit(chat(3), 100, counter=CharCounter()).report.to_dict()
    for block in data["blocks"]:
        del block["floor_tokens"]
    assert Report.from_dict(data).blocks[0].floor_tokens == 0


@pytest.mark.parametrize("include_text", [False, True])
def test_hostile_text_does_nothing(include_text: bool) -> None:
    """No element, attribute or control character of a text of others gets into the page."""
    context = Context(100, counter=FixedCounter(per_message=10))
    context.add(HOSTILE, chat(12, text=HOSTILE), labels=[HOSTILE] * 12)
    shown = context.fit().to_html(include_text=include_text, title=HOSTILE)
    page = Page(shown)
    assert not {"script", "img", "link", "iframe"}.intersection(tag for tag, _ in page.elements)
    assert not any(name.startswith("on") for _, attributes in page.elements for name in attributes)
    assert "\u202e" not in shown
    assert "\x1b" not in shown
    assert page.open == []
    assert "alert(1)" in page.text  # it is shown, and is only text


def test_the_page_asks_for_nothing_from_elsewhere() -> None:
    """It is whole by itself: nothing is loaded, and links go to its own rows."""
    page = Page(fit(chat(9), 40, counter=CharCounter()).to_html())
    assert not any("src" in attributes for _, attributes in page.elements)
    links = [str(attributes["href"]) for _, attributes in page.elements if "href" in attributes]
    rows = {f"#{attributes['id']}" for tag, attributes in page.elements if tag == "tr" and "id" in attributes}
    assert links
    assert set(links) == rows


def test_a_notebook_has_no_links_between_its_outputs() -> None:
    """Two reports on one page have the same rows: a link would go to the first of them."""
    page = Page(fit(chat(9), 40, counter=CharCounter())._repr_html_())
    assert not any("href" in attributes or "id" in attributes for _, attributes in page.elements)


def test_a_page_says_what_it_is_of_and_when_it_was_made() -> None:
    """File, model, day and version stand in its head."""
    fitted = fit(chat(3), 900, model="gpt-4o")
    shown = Page(fitted.to_html(source="chats/<b>.json")).text
    assert re.search(r"chats/<b>\.json · gpt-4o · \d{4}-\d\d-\d\d \d\d:\d\d UTC · trimtab \d", shown)


def test_sizes_are_bars_against_the_largest() -> None:
    """The run that takes most has the whole width, and the others their share of it."""
    page = Page(fit(chat(9), 40, counter=FixedCounter(per_message=10)).to_html())
    bars = [one for tag, one in page.elements if tag == "rect" and one.get("height") == "32.0"]
    widths = [one["width"] for one in bars if one["x"] == "0.0"]
    assert widths[-4:] == ["1000.0", "200.0", "400.0", "200.0"]  # 50, 10, 20 and 10 tokens


def test_text_is_shown_only_where_it_is_asked_for() -> None:
    """As in every form of the report, text of messages leaves only when somebody says so."""
    fitted = fit([{"role": "user", "content": "a secret word"}], 40, counter=CharCounter())
    assert "a secret word" not in fitted.to_html()
    assert "a secret word" not in fitted._repr_html_()
    assert "a secret word" in fitted.to_html(include_text=True)


def test_a_long_conversation_has_a_bounded_strip() -> None:
    """Ten thousand messages make no page of ten thousand elements."""
    fitted = fit(chat(10_000), 400, counter=FixedCounter(per_message=10))
    assert len(Page(fitted.to_html()).cells()) < 400


def test_what_a_text_of_five_megabytes_is_shown_of_is_bounded() -> None:
    """A huge text does not make a huge page."""
    fitted = fit([{"role": "user", "content": "<b>" * 1_700_000}], 10, counter=FixedCounter(per_message=1))
    assert len(fitted.to_html(include_text=True)) < 40_000


def test_a_huge_id_makes_no_huge_page() -> None:
    """What is wrong with the input names the call, and no more of it than a line or two."""
    orphan = {"role": "tool", "tool_call_id": "x" * 2_000_000, "content": "lost"}
    fitted = fit([{"role": "user", "content": "hi"}, orphan], 900, counter=FixedCounter(per_message=1))
    assert len(fitted.to_html()) < 40_000


def test_notebooks_show_contexts_and_sessions() -> None:
    """They show limits and numbers, and no content."""
    context = Context(100, counter=CharCounter())
    context.add("history", chat(3), min_ratio=0.25, max_tokens=80)
    text = Page(context._repr_html_()).text
    assert "25 % of the room" in text
    assert "80 tokens" in text
    session = Session(budget=100, counter=CharCounter())
    session.add({"role": "user", "content": "a secret word"})
    shown = Page(session._repr_html_()).text
    assert "budget tokens" in shown
    assert "a secret word" not in shown


def test_a_session_has_a_plain_heading_and_no_rows_of_zeros() -> None:
    """What is 0 is not said, and numbers are written as everywhere."""
    session = Session(30_000, counter=FixedCounter(per_message=1_000), id="ada")
    session.extend(chat(20))
    session.messages()
    shown = Page(session._repr_html_())
    assert shown.text.strip().startswith("Session ada")
    assert "<Session" not in shown.text
    assert "20,000" in shown.text
    assert "failures" not in shown.text
    assert all(text != "0" for text in re.findall(r"<dd>(.*?)</dd>", session._repr_html_()))


def test_a_context_in_a_notebook_has_no_empty_column() -> None:
    """Without a cap there is no column for caps."""
    context = Context(300, counter=CharCounter())
    context.add("history", chat(3))
    assert "cap" not in Page(context._repr_html_()).text
    context.add("documents", ["one"], max_tokens=20)
    assert "cap" in Page(context._repr_html_()).text
