"""Type checkers are given the examples of the documents, and find what is wrong in them."""

from __future__ import annotations

from pathlib import Path

from tests.docs import typed
from tests.docs.documents import ROOT, documents


def test_each_line_of_an_example_is_checked_at_its_own_line(tmp_path: Path) -> None:
    """An error of a checker names the line of the document."""
    files = {
        path.name: path.read_text(encoding="utf-8").splitlines()
        for path in typed.write(documents(), tmp_path)
    }
    assert any(name.endswith("docs_guides_sessions.py") for name in files)
    fit = next(name for name in files if name.endswith("docs_fit.py"))
    document = (ROOT / "docs" / "fit.md").read_text(encoding="utf-8").splitlines()
    shown = [(at, line) for at, line in enumerate(files[fit]) if line]
    assert len(shown) > 50
    assert [line for at, line in shown if document[at] != line] == []


def test_what_a_checker_finds_is_counted(tmp_path: Path) -> None:
    """A number in the place of a text is found by mypy and by pyright.

    Nothing of trimtab is read for it, which takes half a minute: `make types` does, for all examples.
    """
    page = tmp_path / "page.md"
    page.write_text("# Page\n\n```python\n'a text'.split(10)\n```\n", encoding="utf-8")
    assert typed.check([page]) == 2
