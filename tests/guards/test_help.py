"""What `help()`, `dir()` and `repr()` show of the public surface, and the package as a command."""

from __future__ import annotations

import ast
import importlib
import inspect
import pydoc
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from enum import Enum
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
import pytest

import trimtab
from tests.guards.source import (
    ROOT,
    Public,
    Source,
    names_offered,
    public_callables,
    public_modules,
    public_values,
    sources,
)
from trimtab import Block, Context, Session, cli, integrations
from trimtab.counting import FixedCounter
from trimtab.stores import MemoryStore, PostgresStore, RedisStore, SQLiteStore

ENGINE_MADE = {
    "trimtab.Fitted": "`fit` makes it",
    "trimtab.TrimContext": "a callback is given it",
    "trimtab.context.MessageElement": "a callback is given it",
    "trimtab.conversation.History": "a fit makes it",
    "trimtab.session.RecallTool": "`Session.recall_tool` makes it",
    "trimtab.strategies.EvictionRequest": "a strategy is given it",
}
"""Classes whose constructors are the engine's: nobody else calls them. May only shrink."""

SEAMS = tuple(
    public.value
    for public in public_values()
    if inspect.isclass(public.value)
    and (
        getattr(public.value, "_is_protocol", False)
        or public.name
        in (
            "trimtab.counting.AdditiveCounter",
            "trimtab.counting.RequestCounter",
            "trimtab.formats.Format",
            "trimtab.stores.Store",
        )
    )
)
"""What people write parts of their own for: an override says what differs, the seam what it is given."""

OPTION = re.compile(r"^ +\*{0,2}(\w+): \S", re.MULTILINE)


def _parameters(public: Public) -> set[str]:
    """List the parameters of a function or a class; none of a class that nobody makes by calling it."""
    value = public.value
    if isinstance(value, property):
        return set()
    if inspect.isclass(value) and (
        issubclass(value, Enum) or getattr(value, "_is_protocol", False) or public.name in ENGINE_MADE
    ):
        return set()
    try:
        return set(inspect.signature(value).parameters) - {"self", "cls"}
    except ValueError:  # an error of ours with no constructor of its own
        return set()


def _shown(public: Public) -> set[str]:
    """List what `help()` explains: by itself, at the seam it overrides, or at the twin that it names."""
    value, name = public.value, public.name.rpartition(".")[2]
    docs = [inspect.getdoc(value) or ""]
    if isinstance(value, property):
        return set()
    if inspect.isclass(value):
        docs.append(inspect.getdoc(value.__init__) or "")
    elif "." in value.__qualname__:
        docs += [inspect.getdoc(getattr(seam, name)) or "" for seam in SEAMS if hasattr(seam, name)]
    owner = public.name.rpartition(".")[0]
    twin = TWINS.get(f"{owner}.{name.removeprefix('a')}")
    if twin is not None and name[0] == "a" and re.search(rf"`{name[1:]}`", " ".join(docs)):
        return _shown(twin)
    return {one for doc in docs for one in OPTION.findall(doc)}


TWINS = {public.name: public for public in public_callables()}
CALLABLES = list(public_callables())


def test_every_option_stands_where_help_shows_it() -> None:
    """In the Args of a class, a function or a method; an async twin names the method that has them."""
    missing = {public.name: gap for public in CALLABLES if (gap := _parameters(public) - _shown(public))}
    assert missing == {}


def test_the_options_of_afit_are_told_as_those_of_fit() -> None:
    """It is a front door: its own help shows them, in the same words."""
    told = [" ".join(_args(inspect.getdoc(door) or "").split()) for door in (trimtab.fit, trimtab.afit)]
    assert told[0] == told[1] != ""


@pytest.mark.parametrize("door", ["fit", "afit", "Context", "Session"])
def test_the_help_of_a_front_door_reads_well_in_a_terminal(door: str) -> None:
    """Of 80 columns; only signatures, which Python writes, are longer. Options stand before methods."""
    shown = pydoc.plain(pydoc.render_doc(getattr(trimtab, door)))
    long = [line for line in shown.splitlines() if len(line) > 80]
    assert [line for line in long if not re.search(r"\) -> |^ \|  \w+ = ", line)] == []
    assert 0 < shown.index("budget: Room for") < shown.find("Methods defined here") % len(shown)


def _args(doc: str) -> str:
    return doc.partition("Args:\n")[2].partition("\n\n")[0]


def test_the_guard_sees_the_options() -> None:
    """It cannot pass by finding nothing."""
    assert {"trimtab.Block", "trimtab.Session", "trimtab.Summarize"} <= {one.name for one in CALLABLES}
    assert sum(len(_parameters(public)) for public in CALLABLES) >= 900
    bare = Public("trimtab.bare", lambda tokens: tokens)
    assert _parameters(bare) - _shown(bare) == {"tokens"}


def _fields(source: Source) -> Iterator[tuple[str, str, str]]:
    """List (class, attribute, text beneath it) of the classes of a module."""
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.ClassDef):
            continue
        bodies = [node.body, *(one.body for one in node.body if getattr(one, "name", "") == "__init__")]
        for body in bodies:
            for field, beneath in pairwise(body):
                if not isinstance(beneath, ast.Expr) or not isinstance(beneath.value, ast.Constant):
                    continue
                target = getattr(field, "target", None) or next(iter(getattr(field, "targets", ())), None)
                name = getattr(target, "id", None) or getattr(target, "attr", None)
                if name is not None:
                    yield node.name, name, " ".join(str(beneath.value.value).split())


def test_what_stands_beneath_an_attribute_is_what_the_args_say() -> None:
    """`help()` shows the Args, an editor the text beneath: who reads a value finds one wording."""
    public = {one.value.__name__: one for one in CALLABLES if inspect.isclass(one.value)}
    other = []
    for source in sources():
        for owner, name, text in _fields(source):
            one = public.get(owner)
            if one is None or one.value.__module__ != source.name or name not in _parameters(one):
                continue
            told = " ".join((inspect.getdoc(one.value) or "").split())
            if f" {name}: {text}" not in told:
                other.append(f"{owner}.{name}: {text}")
    assert other == []


def test_every_option_of_an_adapter_stands_where_help_shows_it() -> None:
    """Their frameworks are not here: the source is read."""
    seen, missing = 0, []
    for source in sources():
        if not source.name.startswith("trimtab.integrations."):
            continue
        listed = names_offered(source.tree)
        for node in source.tree.body:
            if not isinstance(node, (ast.ClassDef, *FUNCTIONS)) or node.name not in listed:
                continue
            if "overload" in map(ast.unparse, node.decorator_list):
                continue  # what implements them says it
            makes = [one for one in getattr(node, "body", ()) if getattr(one, "name", "") == "__init__"]
            function = next(iter(makes), node)
            if isinstance(function, FUNCTIONS):
                given = function.args
                names = {one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)} - {"self"}
                names |= {one.arg for one in (given.vararg, given.kwarg) if one is not None}
                seen += len(names)
                gap = names - set(OPTION.findall(ast.get_docstring(node) or ""))
                missing += [f"{source.name}.{node.name}: {sorted(gap)}"] if gap else []
    assert seen >= 30
    assert missing == []


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


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


LISTS = """
ADAPTERS = "trimtab.integrations"
import importlib, pkgutil, sys
wrong = {}
for name in sys.argv[1:]:
    module = importlib.import_module(name)
    rooms = {one.name for one in pkgutil.iter_modules(module.__path__)} if name == ADAPTERS else set()
    shown = [one for one in dir(module) if not (one.startswith("__") and one.endswith("__"))]
    gone, other = set(module.__all__) - set(shown), set(shown) - set(module.__all__) - rooms
    if gone or other:
        wrong[name] = sorted(gone), sorted(other)
print(wrong)
"""


def test_dir_lists_the_public_names_and_no_others() -> None:
    """Of every package, those that are imported when they are first asked for, too.

    A new interpreter has asked for none. The names Python gives every module are listed as well; of
    `trimtab.integrations` the adapters are.
    """
    names = [module.__name__ for module in public_modules() if hasattr(module, "__path__")]
    run = subprocess.run([sys.executable, "-c", LISTS, *names], capture_output=True, text=True, check=True)
    assert len(names) >= 15
    assert run.stdout.strip() == "{}"


def test_integrations_are_the_modules_that_offer_something() -> None:
    """`dir()` and errors of a wrong name list no module that adapters share: nothing in it is for use."""
    rooms = Path(*integrations.__path__).glob("*.py")
    offer = {path.stem for path in rooms if "\n__all__ = [" in path.read_text(encoding="utf-8")}
    adapters = offer - {"__init__"}
    assert len(adapters) >= 15
    assert {name for name in dir(integrations) if not name.startswith("__")} == adapters
    with pytest.raises(ImportError) as failed:
        importlib.import_module("trimtab.integrations.opneai")
    listed = str(failed.value).partition("there are: ")[2].partition("; ")[0]
    assert set(listed.split(", ")) == adapters


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


def _commands(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[str, click.Command]]:
    """List a command and those below it, each with its words."""
    yield " ".join(path), command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from _commands(below, (*path, name))


def test_every_commands_help_ends_with_examples_that_can_be_given() -> None:
    """Each line of them names a command that is there, with options it has, and fits 80 columns."""
    commands = dict(_commands(cli.command(), ("trimtab",)))
    assert len(commands) > 30
    wrong = []
    for words, command in commands.items():
        context = click.Context(command, info_name=words, terminal_width=80, max_content_width=80)
        shown = command.get_help(context).partition("\n  Examples:\n")[2]
        wrong += [words] if not shown else []
        wrong += [line for line in shown.splitlines() if len(line) > 80]
        for one in re.findall(r"trimtab [^|>\n]+", shown):
            given = shlex.split(one)
            deepest = max((at for at in range(4) if " ".join(given[:at]) in commands), default=0)
            named = commands[" ".join(given[:deepest])]
            known = {name for parameter in named.params for name in parameter.opts}
            wrong += [one for word in given[deepest:] if word.startswith("--") and word not in known]
    assert wrong == []


def test_every_option_of_every_command_is_given_in_a_test() -> None:
    """Through the command line: one that nobody gives may be deaf and nobody knows."""
    listed = [one for one in _options(cli.command(), ()) if one[1] != "--version"]
    assert len(listed) > 100
    files = [*(ROOT / "tests").glob("test_cli*.py"), ROOT / "tests/integrations/mcp/test_mcp.py"]
    texts = {path.name: path.read_text(encoding="utf-8") for path in files}
    texts["test_cli_session.py"] += texts.pop("test_cli_owners.py")  # the commands about many sessions
    texts["test_cli_session.py"] += texts.pop("test_cli_prune.py")
    others = "".join(text for name, text in texts.items() if name not in COMMAND_TESTS.values())
    keys = texts["test_cli_encryption.py"]  # of every command that opens a store
    silent = [
        f"trimtab {' '.join(path)} {name}"
        for path, name in listed
        if f'"{name}"' not in (texts[COMMAND_TESTS[path[0]]] + keys if path[0] in COMMAND_TESTS else others)
    ]
    assert silent == []
