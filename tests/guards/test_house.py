"""The design pages are about the code there is: floors, rooms, and every file they name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.documents import FENCE, ROOT, pages
from tests.guards.source import PACKAGE
from tests.guards.test_layers import FLOORS

HOUSE = ROOT / "design" / "house.md"
PAGES = pages()
ROOMS = {room for rooms in FLOORS for room in rooms}

CODE = re.compile(r"`([^`\n]+)`")
FILE = re.compile(r"[\w.-]*[\w/.-]*(?:/|\.(?:py|md|txt|toml|jsonl))")
FLOOR = re.compile(r"^ ?(\d+)  ((?:\w+  ?)*\w+)", re.M)
ROW = re.compile(r"^\| (`.+?) \| .+? \| (.*)\|$", re.M)


def _section(title: str) -> str:
    return HOUSE.read_text(encoding="utf-8").partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def test_the_floors_drawn_are_those_that_are_held() -> None:
    """Top to bottom in the picture, bottom to top in the guard."""
    drawn = {
        int(number): tuple(rooms.split("   ")[0].split())
        for number, rooms in FLOOR.findall(_section("The floors"))
    }
    assert drawn == dict(enumerate(FLOORS, 1))


def test_every_room_has_a_line_and_no_line_names_what_is_gone() -> None:
    """The files of a room are told by their names alone; a folder is a file as well."""
    rows = {
        room: files for rooms, files in ROW.findall(_section("The rooms")) for room in CODE.findall(rooms)
    }
    without = {"__init__", "__main__"}  # their floor says all there is to say
    assert rows.keys() == ROOMS - without
    gone = [
        f"{room}: {name}"
        for room, files in rows.items()
        for name in CODE.findall(files)
        if name not in {path.stem for path in (PACKAGE / room).rglob("*")}
    ]
    assert gone == []


def _named(path: Path) -> list[str]:
    """List the files a page names; of pages for users, which name theirs as well, only what is in a room."""
    prose = FENCE.sub("", path.read_text(encoding="utf-8"))
    named = [span for span in CODE.findall(prose) if FILE.fullmatch(span)]
    for_users = (ROOT / "docs") in path.parents
    return [name for name in named if not for_users or name.partition("/")[0] in ROOMS]


def test_the_guard_sees_the_files_that_are_named() -> None:
    """It cannot pass by finding nothing."""
    assert "conversation/pairing.py" in _named(HOUSE)
    assert sum(len(_named(path)) for path in PAGES) >= 50


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_file_a_page_names_is_there(path: Path) -> None:
    """As seen from the project, from the package, or from the page; a move that forgets one fails here."""
    places = (ROOT, PACKAGE, path.parent)
    assert [name for name in _named(path) if not any((place / name).exists() for place in places)] == []
