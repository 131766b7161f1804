"""What the documents hold: fenced blocks, links, headings. `--write` rewrites the outputs that are stale.

A block ```python runs, the blocks of one file in order in one namespace. If a block ```text stands right
below it, that is what it prints. A block ```console holds `$` commands and what they print. Blocks of any
other kind (```sh for install lines, ```json) are shown only.

    python -m tests.docs.documents --write
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from tests.judge.server import provider, variables

ROOT = Path(__file__).resolve().parents[2]
STANDALONE = (ROOT / "docs" / "index.md", ROOT / "docs" / "programs.md")
"""Where each Python example is a program that leans on no other."""
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.M | re.S)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.M)


class Block(NamedTuple):
    """One fenced block of a document."""

    kind: str
    text: str
    line: int
    """Line of the document on which the text begins, from 1."""
    span: tuple[int, int]
    """Where the text stands in the document."""


class Stale(NamedTuple):
    """An output in a document that is not what its example prints."""

    line: int
    span: tuple[int, int]
    written: str
    printed: str


def documents() -> list[Path]:
    """List the documents whose examples run: the README and docs/."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def pages() -> list[Path]:
    """List every page whose links are checked."""
    return [
        *sorted(ROOT.glob("*.md")),
        *sorted((ROOT / "docs").rglob("*.md")),
        *sorted((ROOT / "design").rglob("*.md")),
    ]


def blocks(text: str) -> list[Block]:
    """Take the fenced blocks out of a document, in order."""
    return [
        Block(match[1], match[2], text.count("\n", 0, match.start(2)) + 1, match.span(2))
        for match in FENCE.finditer(text)
    ]


def links(text: str) -> list[str]:
    """List the targets of links and pictures outside fenced blocks."""
    prose = re.sub(r"`[^`\n]*`", "", FENCE.sub("", text))
    return [match[1] or match[2] for match in LINK.finditer(prose)]


def anchors(text: str) -> set[str]:
    """Name the headings of a page as a forge does: lower case, words joined by `-`, marks left out."""
    titles = [match[1].replace("`", "") for match in HEADING.finditer(FENCE.sub("", text))]
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def run_python(path: Path) -> list[Stale]:
    """Run the Python blocks of a document from the project's folder; any exception is the caller's.

    Clients of the providers' SDKs ask a server on this machine, which refuses what the providers refuse.

    Returns:
        The ```text blocks that differ from what the block above them printed.
    """
    text = path.read_text(encoding="utf-8")
    found = blocks(text)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    stale: list[Stale] = []
    with contextlib.chdir(ROOT), _clients_ask_here():
        for block, after in zip_longest(found, found[1:]):
            if block.kind == "python":
                printed = _printed(block, path, namespace)
                if (
                    after
                    and after.kind == "text"
                    and text[block.span[1] : after.span[0]] == "```\n\n```text\n"
                ):
                    stale += _compare(after, printed)
    return stale


@contextlib.contextmanager
def _clients_ask_here() -> Iterator[None]:
    """Lead the SDKs to a server on this machine by the variables that they read."""
    with provider() as server:
        here = variables(server.address)
        before = {name: os.environ.get(name) for name in here}
        os.environ.update(here)
        try:
            yield
        finally:
            for name, value in before.items():
                os.environ.pop(name)
                if value is not None:
                    os.environ[name] = value


def _printed(block: Block, path: Path, namespace: dict[str, Any]) -> str:
    code = compile("\n" * (block.line - 1) + block.text, str(path), "exec")
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(code, namespace)
    return output.getvalue()


def run_console(path: Path) -> list[Stale]:
    """Run the commands of a document's console blocks from the project's folder.

    They share a home directory, empty at first, so that one can work on the files of another.

    Returns:
        The blocks that differ from the commands and what they print, on either stream.
    """
    stale: list[Stale] = []
    with tempfile.TemporaryDirectory(prefix="trimtab-docs-") as home:
        for block in blocks(path.read_text(encoding="utf-8")):
            if block.kind == "console":
                commands = [line[2:] for line in block.text.splitlines() if line.startswith("$ ")]
                printed = "".join(f"$ {command}\n{shell(command, HOME=home)}" for command in commands)
                stale += _compare(block, printed)
    return stale


def shell(command: str, **settings: str) -> str:
    """Run a command as a reader would who has activated the environment, 80 columns wide."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    environment = {**os.environ, "PATH": path, "COLUMNS": "80", "NO_COLOR": "1", **settings}
    run = subprocess.run(
        ["bash", "-c", command],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    return run.stdout


def _compare(block: Block, printed: str) -> list[Stale]:
    """Compare line by line, blanks at the end of a line left out."""
    clean = "".join(f"{line.rstrip()}\n" for line in printed.rstrip().splitlines())
    written = "".join(f"{line.rstrip()}\n" for line in block.text.rstrip().splitlines())
    return [] if clean == written else [Stale(block.line, block.span, block.text, clean)]


def rewrite(path: Path) -> int:
    """Put what the examples really print into a document; returns how many outputs were stale."""
    text = path.read_text(encoding="utf-8")
    stale = sorted(run_python(path) + run_console(path), reverse=True)
    for one in stale:
        text = text[: one.span[0]] + one.printed + text[one.span[1] :]
    path.write_text(text, encoding="utf-8")
    return len(stale)


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("usage: python -m tests.docs.documents --write")
    for document in documents():
        print(f"{document.relative_to(ROOT)}: {rewrite(document)} rewritten")
