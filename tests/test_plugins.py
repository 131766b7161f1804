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
[trimtab.integrations]
vendor = vendor_agents
langchain = vendor_agents
number = vendor:NUMBER
broken = vendor_broken
bare = vendor_bare
"""

AGENTS = """
from trimtab import fit

def trim(messages, budget, **options):
    return fit(messages, budget, **options).messages
"""

BARE = """
from trimtab.errors import MissingExtraError

raise MissingExtraError("vendor needs agents: pip install 'vendor[agents]'", extra="agents", package="agents")
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install a tiny package as pip does: a module, and beside it what it publishes."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "vendor.py").write_text(MODULE + "\ndef counter_of_url(url):\n    return 7\n", encoding="utf-8")
    (folder / "vendor_agents.py").write_text(AGENTS, encoding="utf-8")
    (folder / "vendor_broken.py").write_text("import no_such_package_at_all", encoding="utf-8")
    (folder / "vendor_bare.py").write_text(BARE, encoding="utf-8")
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
        session = Session(budget=100, id="s", store=store, counter="letters", summarizer="counting")
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


def test_an_integration_is_imported_where_ours_are(site: Path) -> None:
    """By each way to import a module; it is the very module that was published, and stays itself."""
    printed = run(
        """
        import importlib
        import sys
        import trimtab.integrations

        print("vendor_agents" in sys.modules)
        from trimtab.integrations.vendor import trim
        from trimtab.integrations import vendor
        import vendor_agents

        found = importlib.import_module("trimtab.integrations.vendor")
        print(found is vendor is trimtab.integrations.vendor is vendor_agents, vendor.__spec__.name)
        print(trim([{"role": "user", "content": "hi"}], 99), "vendor" in dir(trimtab.integrations))
        """,
        site,
    )
    assert printed.splitlines() == [
        "False",
        "True vendor_agents",
        "[{'role': 'user', 'content': 'hi'}] True",
    ]


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("import trimtab.integrations.vendr", "no integration is called 'vendr'; there are: "),
        ("from trimtab.integrations import vendr", "did you mean vendor"),
        ("from trimtab.integrations.lanchain import TrimMiddleware", "did you mean langchain"),
        ("from trimtab.integrations.langchain import TrimMiddleware", "pip install 'trimtab[langchain]'"),
        ("import trimtab.integrations.number", "must be a module, not 7"),
        ("import trimtab.integrations.broken", "vendor_broken of vendor_trimtab"),
        ("import trimtab.integrations.broken", "could not be loaded: ModuleNotFoundError"),
        ("import trimtab.integrations.bare", "pip install 'vendor[agents]'"),
    ],
)
def test_an_integration_that_cannot_be_imported_says_why(site: Path, statement: str, words: str) -> None:
    """As an import fails: with the names there are, or what to install; ours win over one of another's."""
    printed = run(
        f"""
        try:
            {statement}
        except ImportError as error:
            print(error)
        """,
        site,
    )
    assert words in printed


def test_names_that_no_integration_has_are_missing_as_in_any_package(site: Path) -> None:
    """Asking whether it has one is no error: others look at every module that is loaded."""
    printed = run(
        """
        import importlib.util
        import trimtab.integrations

        print(hasattr(trimtab.integrations, "vendr"), importlib.util.find_spec("trimtab.nothing"))
        """,
        site,
    )
    assert printed == "False None\n"
