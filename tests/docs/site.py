"""The documents as a site: `python -m tests.docs.site` builds build/site and checks its links.

The pages stand where a forge shows them, and their links lead to files of the repository. A site has pages
only, so each page is staged in build/pages with its links led to pages there; a file that is no page (a
program, a test) becomes one that shows its text. The reference is written from the docstrings: a page for
each public package, of what its `__all__` names.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urldefrag, urlsplit

from tests.docs.documents import FENCE, LINK, ROOT
from tests.guards.source import names_offered

BUILD: Final = ROOT / "build"
STAGED: Final = BUILD / "pages"
SITE: Final = BUILD / "site"

CONFIG: Final = ROOT / "mkdocs.yml"

MOVED: Final = {"README.md": "readme.md", "docs/README.md": "all-pages.md", "docs/index.md": "index.md"}
"""Where a page of the repository stands on the site, if not where it stands in docs/ or beside it."""

UNSOUGHT: Final = "---\nsearch:\n  exclude: true\n---\n\n"
"""Stands before pages that explain how trimtab is made: who searches wants to know how it is used."""

LANGUAGES: Final = {".py": "python", ".toml": "toml", ".json": "json", ".yaml": "yaml"}


def place_of(path: str) -> str:
    """Say where a file of the repository stands on the site."""
    if path in MOVED:
        return MOVED[path]
    if path.endswith(".md"):
        return path.removeprefix("docs/").lower() if path.count("/") == 0 else path.removeprefix("docs/")
    return f"files/{path}.md" if Path(path).suffix in LANGUAGES else path.removeprefix("docs/")


def stage() -> list[str]:
    """Write every page into build/pages, with all that its links lead to; returns their places."""
    shutil.rmtree(STAGED, ignore_errors=True)
    waiting = [
        "docs/index.md",
        "README.md",
        *(str(path.relative_to(ROOT)) for path in sorted((ROOT / "docs").rglob("*.md"))),
    ]
    staged: dict[str, None] = {}
    while waiting:
        path = waiting.pop()
        if path in staged:
            continue
        staged[path] = None
        target = STAGED / place_of(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.endswith(".md"):
            text, linked = _lead(path, (ROOT / path).read_text(encoding="utf-8"))
            is_sought = path.startswith("docs/") or path == "README.md"
            target.write_text(text if is_sought else UNSOUGHT + text, encoding="utf-8")
            waiting += linked
        elif Path(path).suffix in LANGUAGES:
            target.write_text(_shown(path), encoding="utf-8")
        else:
            shutil.copyfile(ROOT / path, target)
    _stage_reference()
    return [place_of(path) for path in staged]


def _stage_reference() -> None:
    """Write the page of each package, and a line for it on the page that stands before them."""
    before = STAGED / "reference.md"
    lines = [before.read_text(encoding="utf-8"), "| package | names |", "| --- | --- |"]
    for package, names in sorted(packages().items()):
        target = STAGED / "reference" / f"{package}.md"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(_entries(package, names), encoding="utf-8")
        lines.append(
            f"| [`{package}`](reference/{package}.md) | {', '.join(f'`{name}`' for name in names)} |"
        )
    before.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _lead(path: str, text: str) -> tuple[str, list[str]]:
    """Lead the links of a page to the places of the site; returns the text and the files that it names."""
    linked: list[str] = []

    def led(match: re.Match[str]) -> str:
        link = match[1] or match[2]
        name, _, anchor = link.partition("#")
        if not name or re.match(r"[a-z]+:", name):
            return match[0]
        target = os.path.normpath(Path(path).parent / name)
        if (ROOT / target).is_dir():
            target = _page_of_folder(target)
        linked.append(target)
        there = os.path.relpath(place_of(target), Path(place_of(path)).parent)
        return match[0].replace(f"({link})", f"({there}{'#' * bool(anchor)}{anchor})")

    parts = []
    at = 0
    for fence in FENCE.finditer(text):
        parts += [LINK.sub(led, text[at : fence.start()]), fence[0]]
        at = fence.end()
    return "".join([*parts, LINK.sub(led, text[at:])]), linked


def _page_of_folder(folder: str) -> str:
    """Name the page that a link to a folder shows, as a forge does; without one its first module."""
    for name in ("README.md", "__init__.py"):
        if (ROOT / folder / name).exists():
            return f"{folder}/{name}"
    msg = f"a link leads to {folder}/, which has no README.md and no __init__.py to show"
    raise FileNotFoundError(msg)


def _shown(path: str) -> str:
    text = (ROOT / path).read_text(encoding="utf-8")
    return f"{UNSOUGHT}# {path}\n\n````{LANGUAGES[Path(path).suffix]}\n{text.rstrip()}\n````\n"


@cache
def packages() -> dict[str, list[str]]:
    """Name the public packages and what each `__all__` holds; read as text: a framework may be missing."""
    root = ROOT / "src" / "trimtab"
    files = [
        *root.glob("*.py"),
        *root.glob("*/__init__.py"),
        *(root / "integrations").glob("*.py"),
    ]
    found: dict[str, list[str]] = {}
    for file in files:
        parts = ("trimtab", *file.relative_to(root).with_suffix("").parts)
        name = ".".join(part for part in parts if part != "__init__")
        if not re.search(r"\._|\.cli$", name) and (
            names := names_offered(ast.parse(file.read_text(encoding="utf-8")))
        ):
            found[name] = names
    return found


def _entries(package: str, names: list[str]) -> str:
    """Write the page of a package; what the package `trimtab` has from another room is shown there."""
    rooms = {name: room for room, held in packages().items() if room.count(".") == 1 for name in held}
    elsewhere = [name for name in names if package == "trimtab" and name in rooms]
    lines = [f"# {package}", "", f"::: {package}"]
    lines += ["    options:", "      members: false", "      show_root_heading: false", ""]
    if elsewhere:
        shown = (f"[`{name}`]({rooms[name]}.md#{rooms[name]}.{name})" for name in elsewhere)
        lines += [f"Also named here, and described in their rooms: {', '.join(shown)}.", ""]
    for name in names:
        if name not in elsewhere:
            lines += [f"::: {package}.{name}", ""]
    return "\n".join(lines)


def unlisted() -> list[str]:
    """Name the pages of the documents and the reference that the navigation does not lead to."""
    listed = set(re.findall(r": ([\w/.-]+\.md)$", CONFIG.read_text(encoding="utf-8"), re.M))
    pages = [place_of(str(path.relative_to(ROOT))) for path in (ROOT / "docs").rglob("*.md")]
    pages += [f"reference/{package}.md" for package in packages()]
    return sorted({*pages} - listed - {MOVED["docs/README.md"]})


def build() -> int:
    """Build the site; warnings are errors. Returns the exit code."""
    shutil.rmtree(SITE, ignore_errors=True)
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


class _Links(HTMLParser):
    """What a page of the site leads to and loads, and the places on it that can be led to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.leads: list[str] = []
        self.loads: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.places |= {value for key in ("id", "name") if (value := given.get(key))}
        if tag == "a" and (href := given.get("href")):
            self.leads.append(href)
        elif tag == "link" and given.get("rel") != "canonical" and (href := given.get("href")):
            self.loads.append(href)
        elif source := given.get("src"):
            self.loads.append(source)


def dead_links(site: Path = SITE) -> list[str]:
    """List the links of a site that lead nowhere, and what it would load from another server."""
    pages = {path: _Links(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    dead = []
    for path, page in pages.items():
        here = path.relative_to(site)
        if here.name == "404.html":
            continue  # written for the root of a server
        dead += [f"{here} loads {link}" for link in page.loads if urlsplit(link).netloc]
        for link in page.leads + page.loads:
            where, anchor = urldefrag(link)
            if urlsplit(link).scheme or urlsplit(link).netloc:
                continue
            target = (path.parent / unquote(where)).resolve() if where else path
            target = target / "index.html" if target.is_dir() else target
            there = pages.get(target)
            if not target.exists() or (anchor and there and unquote(anchor) not in there.places):
                dead.append(f"{here} leads to {link}")
    return dead


def main() -> int:
    """Stage, build and check; say how many pages there are, or what is wrong."""
    if missing := unlisted():
        print(f"mkdocs.yml: `nav` does not list {', '.join(missing)}", flush=True)
        return 1
    stage()
    if code := build():
        return code
    dead = dead_links()
    print(
        "\n".join(dead) or f"{len(list(SITE.rglob('*.html')))} pages, every link leads somewhere", flush=True
    )
    return bool(dead)


if __name__ == "__main__":
    sys.exit(main())
