"""What `help()`, `dir()` and `repr()` show of the public surface, and the package as a command."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest

import trimtab
from tests.guards.source import ROOT, Public, public_modules, public_values
from trimtab import Block, Context, Session, cli
from trimtab.counting import FixedCounter
from trimtab.stores import MemoryStore, PostgresStore, RedisStore, SQLiteStore

MADE_BY_TRIMTAB = (
    "trimtab.Fitted",
    "trimtab.Report",
    "trimtab.TrimContext",
    "trimtab.context.Allocation",
    "trimtab.context.Offer",
    "trimtab.counting.Count",
    "trimtab.counting.CountQuestion",
    "trimtab.formats.",
    "trimtab.history.Evicted",
    "trimtab.report.",
    "trimtab.session.RecallTool",
    "trimtab.session.SessionStatus",
    "trimtab.session.TokenBreakdown",
    "trimtab.session.ViewDiff",
    "trimtab.session.Zones",
    "trimtab.stores.AppendRequest",
    "trimtab.stores.Appended",
    "trimtab.stores.Event",
    "trimtab.stores.LoadRequest",
    "trimtab.stores.SearchRequest",
    "trimtab.strategies.EvictionRequest",
    "trimtab.strategies.Place",
    "trimtab.context.MessageElement",
    "trimtab.conversation.",
    "trimtab.testing.corpus.Case",
)
"""Values a user reads, or a seam hands over: what an attribute means stands beneath it. May only shrink."""

CLASSES = [
    public
    for public in public_values()
    if inspect.isclass(public.value)
    and not issubclass(public.value, (BaseException, Enum))
    and not getattr(public.value, "_is_protocol", False)
    and not public.name.startswith(MADE_BY_TRIMTAB)
]


@pytest.mark.parametrize("public", CLASSES, ids=lambda public: public.name)
def test_the_options_of_a_class_stand_where_help_shows_them(public: Public) -> None:
    """In the Args of its docstring, or of its constructor's; the text beneath an attribute is never shown."""
    shown = f"{inspect.getdoc(public.value)}\n{inspect.getdoc(public.value.__init__)}"
    options = [name for name in inspect.signature(public.value).parameters if name != "self"]
    assert [name for name in options if not re.search(rf"^ +{name}: \S", shown, re.MULTILINE)] == []


def test_the_guard_sees_the_classes() -> None:
    """It cannot pass by finding nothing."""
    assert {"trimtab.Block", "trimtab.Session", "trimtab.Summarize"} <= {public.name for public in CLASSES}


def test_every_option_of_a_block_is_explained_where_it_is_added() -> None:
    """`help(Context.add)` sends nobody elsewhere, and says the same as `help(Block)`."""
    doc = inspect.getdoc(Context.add) or ""
    options = set(inspect.signature(Context.add).parameters) - {"self"}
    assert [name for name in sorted(options) if f"    {name}: " not in doc] == []
    told = " ".join(doc.split())
    explained = " ".join((inspect.getdoc(Block) or "").split())
    for name in sorted(options - {"name", "content", "replace"}):
        line = re.search(rf" {name}: (.*?\.)(?= \w+: | Raises:)", explained)
        assert line is not None
        assert line[1] in told


@pytest.mark.parametrize("module", public_modules(), ids=lambda module: module.__name__)
def test_dir_lists_every_public_name(module: ModuleType) -> None:
    """Those that are imported when they are first asked for, too: a new interpreter has asked for none."""
    code = f"import {module.__name__} as m; print(sorted(set(m.__all__) - set(dir(m))))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_the_package_knows_its_version() -> None:
    """The number that was installed."""
    from importlib.metadata import version

    assert trimtab.__version__ == version("trimtab")


def test_the_package_can_be_run() -> None:
    """`python -m trimtab` is the command."""
    run = subprocess.run(
        [sys.executable, "-m", "trimtab", "--version"], capture_output=True, text=True, check=True
    )
    assert run.stdout == f"trimtab, version {trimtab.__version__}\n"


# -- repr


def test_a_block_shows_its_options_and_no_content() -> None:
    """What is as by default is left out."""
    made = Block(name="history", content="secret", priority=3, max_ratio=0.4)
    assert repr(made) == "Block('history', priority=3, max_ratio=0.4)"


def test_stores_show_where_they_are(tmp_path: Path) -> None:
    """A file with its options; memory with how much there is."""
    path = tmp_path / "chats.db"
    assert repr(SQLiteStore(path)) == f"SQLiteStore({str(path)!r}, busy_seconds=5.0, synchronous='FULL')"
    store = MemoryStore()
    assert repr(store) == "<MemoryStore of 0 sessions>"
    Session(999, store=store, id="a").add({"role": "user", "content": "hi"})
    assert repr(store) == "<MemoryStore of 1 session>"


@pytest.mark.parametrize(
    ("kind", "package", "url", "shown"),
    [
        (
            PostgresStore,
            "psycopg",
            "postgresql://ada:se%2Fcret@db.example:5433/chats",
            "<PostgresStore in PostgreSQL at db.example:5433/chats, schema='public', max_connections=10>",
        ),
        (
            RedisStore,
            "redis",
            "redis://ada:secret@db.example:6380/1",
            "<RedisStore in Redis at db.example:6380/1, prefix='trimtab', max_connections=10>",
        ),
    ],
)
def test_stores_of_a_server_show_no_password(kind: Any, package: str, url: str, shown: str) -> None:
    """Nor the user: logs are read by many."""
    pytest.importorskip(package)
    assert repr(kind(url)) == shown
    session = Session(999, store=kind(url), id="ada's", counter=FixedCounter(5))
    assert repr(session) == f'<Session "ada\'s" in {shown}: budget 999>'


def test_a_session_shows_its_budget_and_what_is_in_view() -> None:
    """As far as it was read: nothing is asked of a store for it."""
    session = Session(999, id="u", model="gpt-4o", counter=FixedCounter(5))
    assert repr(session) == "<Session 'u' in <MemoryStore of 0 sessions>: budget 999, model gpt-4o>"
    session.add({"role": "user", "content": "secret"})
    read = f"5 of 999 tokens, version {session.version}, model gpt-4o"
    assert repr(session) == f"<Session 'u' in <MemoryStore of 1 session>: {read}>"
    opened = Session.open(session.store, "u", counter=FixedCounter(5))
    assert repr(opened) == "<Session 'u' in <MemoryStore of 1 session>: not read yet>"


def test_a_session_whose_budget_is_in_its_log_shows_none_before_it_was_read() -> None:
    """It was shown as one of 0 tokens; and one that was set later as it was before."""
    store = MemoryStore()
    Session(budget=999, store=store, id="ada's").add({"role": "user", "content": "hi"})
    session = Session(store=store, id="ada's")
    assert repr(session).endswith("budget not read yet>")
    session.set_budget(500)
    assert " of 500 tokens" in repr(session)


COMMAND_TESTS = {
    "batch": "test_cli_batch.py",
    "mcp": "test_mcp.py",
    "replay": "test_cli_replay.py",
    "session": "test_cli_session.py",
}
"""Where a command is tested whose options are the names of others' as well."""


def _options(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """List the options of a command and of those below it, by their long names."""
    context = click.Context(command)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from _options(below, (*path, name))
    for parameter in command.params:
        yield from ((path, name) for name in parameter.opts if name.startswith("--"))


def test_every_option_of_every_command_is_given_in_a_test() -> None:
    """Through the command line: one that nobody gives may be deaf and nobody knows."""
    listed = [one for one in _options(cli.command(), ()) if one[1] != "--version"]
    assert len(listed) > 100
    files = [*(ROOT / "tests").glob("test_cli*.py"), ROOT / "tests/integrations/mcp/test_mcp.py"]
    texts = {path.name: path.read_text(encoding="utf-8") for path in files}
    others = "".join(text for name, text in texts.items() if name not in COMMAND_TESTS.values())
    silent = [
        f"trimtab {' '.join(path)} {name}"
        for path, name in listed
        if f'"{name}"' not in (texts[COMMAND_TESTS[path[0]]] if path[0] in COMMAND_TESTS else others)
    ]
    assert silent == []
