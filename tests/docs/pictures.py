"""The pictures in docs/, taken in a real Chromium: python -m tests.docs.pictures.

They are looked at by people, and made again when the pages change; no test compares them.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from tests.browser import chromium
from tests.docs.documents import ROOT
from tests.inspectors import inspector
from trimtab import Session
from trimtab.stores import SQLiteStore

IMAGES = ROOT / "docs" / "images"
CHAT = ROOT / "examples" / "agent_session.json"
TALK = (
    "The conveyor of line 4 stops every morning. What should I look at first?",
    "At the belt tension: it drops when the hall is cold. Measure it before the shift begins.",
    "It is at 310 newton. Is that enough?",
    "No. Line 4 needs 380 newton; its manual says so on page 12.",
)
SUMMARY = "Line 4 stops on cold mornings. Its belt has 310 newton and needs 380."


@contextmanager
def pages(folder: Path) -> Iterator[dict[str, str]]:
    """Serve a file and a session for the length of a block; gives their addresses."""
    with SQLiteStore(folder / "chats.db") as store:
        session = Session(
            budget=500,
            system="You help technicians. Be brief.",
            summarizer=lambda messages: (
                "Line 4 stops on cold mornings. Its belt has 310 newton and needs 380."
            ),
            store=store,
            id="ada",
        )
        for turn in range(40):
            for at, text in enumerate(TALK):
                role = ("user", "assistant")[at % 2]
                session.add({"role": role, "content": f"{text} (day {turn + 1})"})
    options = ("--budget", "8k", "--model", "gpt-4o", "--policy", "steady.json")
    (folder / "steady.json").write_text('{"kind": "sliding_window", "target_ratio": 0.5}', encoding="utf-8")
    (folder / "agent.json").write_bytes(CHAT.read_bytes())
    chat = json.loads(CHAT.read_bytes())
    starts = [at for at, one in enumerate(chat["messages"]) if one["role"] == "user"]
    cuts = [*starts[::6], len(chat["messages"])]
    parts = (chat["messages"][first:last] for first, last in itertools.pairwise(cuts))
    (folder / "chats.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in parts), encoding="utf-8")
    with (
        inspector(folder, "agent.json", *options) as of_file,
        inspector(folder, "chats.jsonl", "--budget", "4k", "--model", "gpt-4o") as of_list,
        inspector(folder, "--store", "chats.db") as of_session,
    ):
        yield {"file": of_file, "list": of_list, "session": of_session}


def _take(page: Page, address: str, path: str, name: str) -> None:
    base, _, query = address.partition("?")
    page.goto(f"{base}{path}{'&' if '?' in path else '?'}{query}")
    page.wait_for_load_state("networkidle")
    page.screenshot(path=IMAGES / f"{name}.png")


PICTURES: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
    ("inspector", "file", "?policy=default&budget=8000", {"width": 1060, "height": 1000}),
    ("inspector-list", "list", "?by=size", {"width": 1060, "height": 480}),
    (
        "inspector-compare",
        "file",
        "compare?policy_a=default&policy_b=agent",
        {"width": 1100, "height": 800},
    ),
    ("inspector-timeline", "session", "timeline", {"width": 1100, "height": 620}),
    ("inspector-bill", "file", "bill?policy_a=default&policy_b=steady", {"width": 1100, "height": 620}),
    ("inspector-phone", "session", "", {"width": 390, "height": 844}),
)


FILES: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("report", "report.html", {"width": 1000, "height": 720}),
    ("replay", "costs.html", {"width": 1000, "height": 830}),
)
"""Pages that commands write."""


def _write(folder: Path) -> None:
    """Let the commands write their pages."""
    policies = (
        "agent",
        "session",
        '{"kind": "sliding_window", "target_ratio": 0.5}',
        "clear_tool_results",
        "none",
    )
    named = [word for policy in policies for word in ("--policy", policy)]
    chat = str(CHAT.relative_to(ROOT))
    fit = _run("fit", chat, "--budget", "8k", "--model", "gpt-4o", "--strategy", "agent", "--output", "html")
    (folder / "report.html").write_bytes(fit)
    _run("replay", chat, "--budget", "4k", "--model", "gpt-4o", *named, "--chart", str(folder / "costs.html"))


def _run(*words: str) -> bytes:
    return subprocess.run(
        [sys.executable, "-m", "trimtab", *words], cwd=ROOT, check=True, capture_output=True
    ).stdout


def main() -> None:
    """Take all of them: each in light, that of a phone in dark."""
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        _write(Path(folder))
        for name, path, size in FILES:
            context = browser.new_context(viewport=size, color_scheme="light")
            page = context.new_page()
            page.goto((Path(folder) / path).as_uri())
            page.screenshot(path=IMAGES / f"{name}.png")
            context.close()
            print(IMAGES.relative_to(ROOT) / f"{name}.png")
    with tempfile.TemporaryDirectory() as folder, pages(Path(folder)) as served, chromium() as browser:
        for name, subject, path, size in PICTURES:
            scheme: Any = "dark" if name.endswith("phone") else "light"
            context = browser.new_context(viewport=size, color_scheme=scheme)
            _take(context.new_page(), served[subject], path, name)
            context.close()
            print(IMAGES.relative_to(ROOT) / f"{name}.png")


if __name__ == "__main__":
    sys.exit(main())
