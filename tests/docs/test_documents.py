"""The documents are true: examples run and print what is shown, links lead somewhere, commands are there."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

from tests.docs.documents import (
    FENCE,
    ROOT,
    anchors,
    blocks,
    documents,
    links,
    pages,
    rewrite,
    run_console,
    run_python,
    shell,
)

every_document = pytest.mark.parametrize("path", documents(), ids=lambda path: str(path.relative_to(ROOT)))
every_page = pytest.mark.parametrize("path", pages(), ids=lambda path: str(path.relative_to(ROOT)))


def test_the_documents_are_found() -> None:
    """The checks of this file cannot pass by finding nothing."""
    kinds = [block.kind for path in documents() for block in blocks(path.read_text(encoding="utf-8"))]
    assert "python" in kinds
    assert "console" in kinds
    assert any(links(path.read_text(encoding="utf-8")) for path in pages())


@every_document
def test_python_examples_run_and_print_what_is_shown(path: Path) -> None:
    """Stale output is rewritten by `python -m tests.docs.documents --write`."""
    assert run_python(path) == []


@pytest.mark.long
@every_document
def test_commands_print_what_is_shown(path: Path) -> None:
    """CLI help in the documents is the help the command gives."""
    assert run_console(path) == []


@every_page
def test_links_lead_somewhere(path: Path) -> None:
    """Files exist and headings too; addresses on the web are not asked."""
    dead: list[str] = []
    for link in links(path.read_text(encoding="utf-8")):
        name, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", name):
            continue
        target = (path.parent / name).resolve() if name else path
        if not target.exists() or (anchor and anchor not in anchors(target.read_text(encoding="utf-8"))):
            dead.append(link)
    assert dead == []


def test_every_command_is_documented() -> None:
    """Each command that `trimtab --help` lists has its help in docs/cli.md."""
    listed = shell("trimtab --help").partition("Commands:\n")[2].partition("\n\n")[0]
    commands = re.findall(r"^  (\w[\w-]*)", listed, re.M)
    assert {"fit", "count", "validate"} <= set(commands)
    shown = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert [name for name in commands if f"$ trimtab {name} --help" not in shown] == []


def test_every_error_is_found_where_one_looks_for_it() -> None:
    """A row of the table in docs/troubleshooting.md says what happened and what to do."""
    text = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    rows = set(re.findall(r"^\| `(\w+Error)` \|", text, re.M))
    assert rows == {*import_module("trimtab.errors").__all__} - {"ContextError"}
    assert "`ContextError`" in text


def test_the_readme_shows_where_its_names_come_from() -> None:
    """Every public name of trimtab that it mentions is imported in one of its examples."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    code = "\n".join(block.text for block in blocks(text) if block.kind == "python")
    imported = {
        alias.name
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("trimtab")
        for alias in node.names
    }
    rooms = [
        import_module(f"trimtab{room}") for room in ("", ".counting", ".policy", ".stores", ".summaries")
    ]
    public = {name for room in rooms for name in room.__all__}
    prose = " ".join(re.findall(r"`([^`\n]+)`", FENCE.sub("", text)))
    mentioned = public & set(re.findall(r"(?<![.\w])[A-Za-z_]\w+", prose))
    assert "Session" in mentioned
    assert mentioned <= imported


FIRST_SCREEN = (
    "Never over budget.",
    "![",
    "## Why not a ten-line loop?",
    "## Install",
    "completions.create(",
)


def test_the_readme_is_one_screen_that_begins_with_what_one_needs() -> None:
    """The promise, why, how to install it and a call of an SDK; those of the others are a link away."""
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 160
    first = "\n".join(lines[:60])
    assert [one for one in FIRST_SCREEN if one not in first] == []
    assert "(docs/programs.md)" in "\n".join(lines)
    others = (ROOT / "docs" / "programs.md").read_text(encoding="utf-8")
    for call in ("client.messages.create(", "responses.create(", "generate_content(", ".converse("):
        assert call in others
    guide = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert "## `fit`, `Context` or `Session`?" in guide


def test_the_web_app_of_the_page_is_the_program_that_is_tested() -> None:
    """It is shown in parts; tests/integrations/fastapi serves it, as FastAPI is not where these tests run."""
    page = (ROOT / "docs" / "guides" / "web-app.md").read_text(encoding="utf-8")
    program = ROOT / "tests" / "integrations" / "fastapi" / "program.py"
    parts = [block.text for block in blocks(page) if block.kind == "py"]
    assert "\n\n".join(parts) == program.read_text(encoding="utf-8")


STALE = """# A page

```python
print("two  ")
```

```text
one
```

```python
print("not compared")
```

Words between.

```text
shown only
```

```console
$ echo "kept"; exit 3
wrong
```
"""

FRESH = STALE.replace("one\n", "two\n").replace("wrong\n", "kept\n")


def test_stale_output_is_found_and_rewritten(tmp_path: Path) -> None:
    """The check bites, and what it writes passes it."""
    path = tmp_path / "page.md"
    path.write_text(STALE, encoding="utf-8")
    assert [(one.line, one.printed) for one in run_python(path)] == [(8, "two\n")]
    assert [one.line for one in run_console(path)] == [22]
    assert rewrite(path) == 2
    assert path.read_text(encoding="utf-8") == FRESH
    assert run_python(path) + run_console(path) == []


def test_links_and_headings_are_read_as_a_forge_reads_them() -> None:
    """Links in code are none; headings lose their marks."""
    text = (
        "# The `fit` call, *again*\n[a](b.md#c), `[no](link)`\n\n```md\n[no](x.md)\n# no\n```\n![p](p.png)\n"
    )
    assert links(text) == ["b.md#c", "p.png"]
    assert anchors(text) == {"the-fit-call-again"}
