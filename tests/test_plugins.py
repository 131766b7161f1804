"""Names that other packages publish by entry points: found where ours are, loaded when asked for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

import trimtab

MODULE = """
from trimtab.counting import CharCounter
from trimtab.formats import OpenAIChat
from trimtab.stores import MemoryStore
from trimtab.strategies import SlidingWindow

class Form(OpenAIChat):
    name = "vendor"

class Store(MemoryStore):
    def __init__(self, url):
        super().__init__()
        self.url = url

def counter():
    return CharCounter(1)

def strategy(keep=1):
    return SlidingWindow(min_messages=keep)

def summarizer():
    return lambda messages: f"{len(messages)} messages"

def fails():
    raise OSError("no such disk")

NUMBER = 7
"""

POINTS = """
[trimtab.counters]
letters = vendor:counter
estimate = vendor:fails
absent = vendor:absent
nowhere = no_such_package_at_all:counter
fails = vendor:fails
number = vendor:NUMBER
[trimtab.stores]
vault = vendor:Store
odd = vendor:counter_of_url
[trimtab.strategies]
short = vendor:strategy
drop = vendor:fails
[trimtab.summarizers]
counting = vendor:summarizer
[trimtab.formats]
vendor = vendor:Form
twice = vendor:Form
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install a tiny package as pip does: a module, and beside it what it publishes."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "vendor.py").write_text(MODULE + "\ndef counter_of_url(url):\n    return 7\n", encoding="utf-8")
    write_points(folder, "vendor_trimtab", POINTS)
    return folder


def write_points(folder: Path, name: str, points: str) -> None:
    """Write what a distribution publishes."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(points, encoding="utf-8")


def run(code: str, *sites: Path) -> str:
    """Run a program where the packages are installed; return what it prints."""
    source = Path(trimtab.__file__).parents[1]
    path = os.pathsep.join(map(str, (source, *sites)))
    made = subprocess.run(
        [sys.executable, "-c", dedent(code)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert made.returncode == 0, made.stderr
    return made.stdout


def test_each_kind_is_found_where_its_name_is_written(site: Path) -> None:
    """A counter, a strategy, a form, a store and a summarizer, in calls and in data."""
    printed = run(
        """
        from trimtab import Session, fit
        from trimtab.counting import measure
        from trimtab.policy import load_policy
        from trimtab.strategies import Summarize, create_strategy
        from trimtab.stores import open_store

        talk = [{"role": "user", "content": "abcd"} for _ in range(5)]
        fitted = fit(talk, 8, counter="letters", strategy="short", format="vendor")
        print(fitted.report.tokens_after, len(fitted.messages), fitted.report.format)
        print(create_strategy({"kind": "short", "keep": 3}).min_messages)
        store = open_store("vault://place/1")
        print(type(store).__name__, store.url)
        session = Session(budget=100, store=store, counter="letters", summarizer="counting")
        session.add(talk[0])
        print(session.messages())
        print(Summarize("counting").summarizer.summarize)
        print(create_strategy({"kind": "summarize", "summarizer": "counting"}).name)
        made = load_policy({
            "budget": 20, "counter": "letters",
            "blocks": [
                {"name": "history", "strategy": {"kind": "short", "keep": 2}},
                {"name": "notes", "strategy": {"kind": "summarize", "summarizer": "counting"}},
            ],
        })
        print(made.blocks[0].strategy.min_messages, made.replace("history", talk).fit().report.tokens_after)
        """,
        site,
    )
    lines = printed.splitlines()
    assert lines[:3] == ["8 2 vendor", "3", "Store vault://place/1"], printed
    assert "abcd" in lines[3]
    assert lines[-1] == "2 20"


def test_nothing_is_looked_up_before_a_name_is_not_ours(site: Path) -> None:
    """Not at import, and not for our own names; ours win over the same ones of others."""
    printed = run(
        """
        import sys
        from trimtab import EstimateCounter, fit
        from trimtab.counting.door import as_counter
        from trimtab.strategies import create_strategy
        from trimtab.stores import open_store

        talk = [{"role": "user", "content": "hi"}]
        fit(talk, 99, counter="estimate", strategy="drop", format="openai_chat")
        open_store("memory://")
        print(type(as_counter("estimate")).__name__, type(create_strategy("drop")).__name__)
        print("importlib.metadata" in sys.modules, "vendor" in sys.modules)
        as_counter("letters")
        print("vendor" in sys.modules)
        """,
        site,
    )
    assert printed.splitlines() == ["EstimateCounter Drop", "False False", "True"]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("as_counter('absent')", "'absent' (vendor:absent of vendor_trimtab, published in trimtab.counters)"),
        ("as_counter('absent')", "could not be loaded: AttributeError"),
        ("as_counter('nowhere')", "could not be loaded: ModuleNotFoundError"),
        ("as_counter('fails')", "could not be made: OSError: no such disk"),
        ("as_counter('number')", "cannot be called"),
        ("create_strategy({'kind': 'short', 'depth': 2})", "could not be made: TypeError"),
        ("open_store('odd://x')", "is no Store: 7"),
        ("as_counter('leters')", "'letters'"),
        ("create_strategy('shirt')", "did you mean short"),
        ("open_store('valt://x')", "did you mean vault"),
        ("get_format('vendr')", "did you mean vendor"),
        ("Summarize('countng')", "did you mean counting"),
    ],
)
def test_what_cannot_be_used_is_told(site: Path, call: str, words: str) -> None:
    """Which entry point of which package, and why; a name that is nobody's has those of others near it."""
    printed = run(
        f"""
        from trimtab import ConfigurationError
        from trimtab.counting.door import as_counter
        from trimtab.formats import get_format
        from trimtab.strategies import Summarize, create_strategy
        from trimtab.stores import open_store

        try:
            {call}
        except ConfigurationError as error:
            print(error)
        """,
        site,
    )
    assert words in printed


def test_a_name_that_two_packages_publish_is_nobodys(site: Path, tmp_path: Path) -> None:
    """Which of them is meant is not for us to say; one that is found twice on the way is one."""
    write_points(
        tmp_path / "other", "other", "[trimtab.counters]\nletters = vendor:other\nfew = vendor:counter\n"
    )
    write_points(tmp_path / "again", "again", "[trimtab.counters]\nfew = vendor:counter\n")
    printed = run(
        """
        from trimtab import ConfigurationError
        from trimtab.counting.door import as_counter

        print(as_counter("few").count([{"role": "user", "content": "abcd"}]))
        try:
            as_counter("letters")
        except ConfigurationError as error:
            print(error)
        """,
        site,
        tmp_path / "other",
        tmp_path / "again",
    )
    assert printed.splitlines()[0] == "4"
    assert "several packages publish 'letters' in trimtab.counters: vendor:counter, vendor:other" in printed
