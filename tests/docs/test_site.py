"""The site's check finds what is wrong; that it finds nothing in the documents is what `make site` says."""

from __future__ import annotations

from pathlib import Path

from tests.docs import site


def test_dead_links_and_what_another_server_would_give_are_found(tmp_path: Path) -> None:
    """A missing page, a missing place on a page, a script of another server; a good link is none of them."""
    (tmp_path / "b.html").write_text("<h1 id='here'>B</h1>", encoding="utf-8")
    (tmp_path / "a.html").write_text(
        "<a href='b.html#here'>good</a><a href='https://example.org'>out</a><a href='b.html#gone'>place</a>"
        "<a href='c.html'>page</a><script src='https://example.org/s.js'></script>",
        encoding="utf-8",
    )
    assert site.dead_links(tmp_path) == [
        "a.html loads https://example.org/s.js",
        "a.html leads to b.html#gone",
        "a.html leads to c.html",
    ]


def test_pages_stand_where_the_documents_do_and_programs_become_pages() -> None:
    """The start page is docs/index.md; a link to a program leads to a page that shows it."""
    assert site.place_of("docs/index.md") == "index.md"
    assert site.place_of("docs/guides/agent.md") == "guides/agent.md"
    assert site.place_of("design/003-strides.md") == "design/003-strides.md"
    assert site.place_of("examples/demo.py") == "files/examples/demo.py.md"


def test_the_navigation_leads_to_every_page() -> None:
    """Documents and packages; a new one is listed in mkdocs.yml."""
    assert site.unlisted() == []


def test_the_reference_has_the_public_names_of_each_package() -> None:
    """Read from the text, as a framework's package may be missing; compared with what Python sees."""
    import trimtab.counting
    import trimtab.errors

    found = site.packages()
    assert found["trimtab"] == list(trimtab.__all__)
    assert found["trimtab.counting"] == list(trimtab.counting.__all__)
    assert found["trimtab.errors"] == list(trimtab.errors.__all__)
    assert "trimtab.integrations.langchain" in found
