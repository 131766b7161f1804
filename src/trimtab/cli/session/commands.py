"""The store that `--store` names, and the sessions in it; a password in its URL is never shown."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click
from click.shell_completion import CompletionItem

from trimtab._shared.names import in_words, near_names
from trimtab.cli.output import Refused
from trimtab.cli.words import said
from trimtab.counting import AdditiveCounter, CharCounter, EstimateCounter
from trimtab.errors import ConfigurationError, ContextError, MissingExtraError, UnknownNameError
from trimtab.report.lines import plain
from trimtab.session import Session
from trimtab.session.options import other_form
from trimtab.stores import LoadRequest, Retry, SQLiteStore, Store, open_store
from trimtab.stores.secrets import mask

__all__ = ["Masking", "begun", "existing", "fail", "id_option", "name_of", "store_option", "stored"]

F = TypeVar("F", bound=Callable[..., Any])

_KINDS = "sqlite:///FILE, postgresql://… or redis://…"


def store_option(command: F) -> F:
    """Add the store."""
    option = click.option(
        "--store",
        "url",
        metavar="URL",
        envvar="TRIMTAB_STORE",
        show_envvar=True,
        required=True,
        help=f"Where sessions are kept: FILE, {_KINDS}",
    )
    return option(command)


def id_option(command: F) -> F:
    """Add the name of the session."""
    option = click.option(
        "--id",
        "name",
        metavar="ID",
        required=True,
        shell_complete=complete_sessions,
        help="Name of the session.",
    )
    return option(command)


def complete_sessions(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the sessions of the store that is named before, or in the environment, to a shell."""
    url = ctx.params.get("url") or os.environ.get("TRIMTAB_STORE")
    if not url:
        return []
    try:  # whoever types is not told what is wrong: the command will
        with redirect_stderr(io.StringIO()), stored(url) as store:
            return [CompletionItem(name) for name in store.sessions() if name.startswith(incomplete)]
    except (click.ClickException, SystemExit):
        return []


class Masking(click.Group):
    """A group whose complaints about arguments do not repeat the password in a URL."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except Refused as error:
            raise Refused(mask(error.message)) from None
        except click.UsageError as error:
            raise click.UsageError(mask(error.format_message()), error.ctx) from None


def fail(message: str) -> NoReturn:
    """Say what went wrong on standard error, and exit 1."""
    click.echo(f"trimtab: {plain(message)}", err=True)
    sys.exit(1)


@contextmanager
def stored(url: str, *, create: bool = False) -> Generator[Store]:
    """Open the store of a URL, and close it in the end; what fails on the way is a message and exit 1.

    Args:
        url: As `--store` has it.
        create: A file that is not there yet is made.

    Raises:
        Refused: There is no such kind of store, or its client is not installed.
    """
    store = _store_of(url, create=create)
    try:
        yield store
    except MissingExtraError as error:
        raise Refused(mask(said(error), url)) from None
    except ContextError as error:
        fail(mask(said(error), url))
    finally:
        store.close()


def _store_of(url: str, *, create: bool) -> Store:
    scheme, separator, rest = url.partition("://")
    if not separator:
        return _file_store(url, create=create)
    if scheme.lower() == "memory" or rest == "/:memory:":
        raise Refused(f"--store: a store in memory ends with the command, and its sessions too. Use {_KINDS}")
    try:
        store = open_store(url)
    except ContextError as error:
        raise Refused(mask(f"--store: {said(error)}", url)) from None
    path = getattr(store, "path", None)
    if path is not None:
        _check_there(path, create=create)
    return store


def _file_store(name: str, *, create: bool) -> Store:
    """Open a file that is named without a scheme: it has a suffix or a folder, or is there."""
    path = Path(name)
    is_named_so = not set("=@:?").intersection(name) and (path.suffix or path.parent != Path())
    if (
        not is_named_so and not path.is_file()
    ):  # a URL or a DSN that lacks a part would be a file of that name
        raise Refused(f"--store is a file, as chats.db, or a URL: {_KINDS}")
    _check_there(name, create=create)
    return SQLiteStore(path.expanduser())


def _check_there(path: str, *, create: bool) -> None:
    if not create and not Path(path).expanduser().exists():
        fail(f"there is no file {path} yet: `trimtab session add --budget N` begins a session in it")


def existing(store: Store, name: str) -> Session:
    """Open a session that is in the store; functions it was made with and no log can keep may be missing.

    Raises:
        UnknownNameError: There is none of that name; says those spelled like it.
    """
    session = Session.open(store, name, retry=Retry(), allow_missing=True)
    try:
        session.refresh()
    except UnknownNameError:
        raise _unknown(store, name) from None
    counter = _counter_called(session.missing.get("counter", ""))
    if counter is None:
        return session
    session = Session.open(store, name, counter=counter, retry=Retry(), allow_missing=True)
    session.refresh()
    return session


def _unknown(store: Store, name: str) -> UnknownNameError:
    names = store.sessions()
    near = near_names(name, names)
    others = "; `trimtab session list` lists those there are" if names else ", and no other"
    return UnknownNameError(
        f"there is no session {name!r}{others}{in_words(map(repr, near))}", name=name, near=near
    )


def _counter_called(name: str) -> AdditiveCounter | None:
    """Make a counter that its name says all about."""
    if name == "estimate":
        return EstimateCounter()
    kind, _, number = name.partition("/")
    try:
        return CharCounter(float(number)) if kind == "chars" else None
    except ValueError:
        return None


def begun(store: Store, name: str, options: Mapping[str, Any]) -> Session:
    """Open a session, or begin it with these options; options of one that is there are changed.

    Raises:
        UnknownNameError: There is none of that name, and no options to begin it with.
        Refused: An option is out of range.
    """
    known = True
    given = dict(options)
    try:
        session = existing(store, name)
    except UnknownNameError as error:
        if not options:
            needs = f"{error}. A new one needs --budget N, or --model NAME"
            raise UnknownNameError(needs, name=name, near=error.near) from None
        known = False
    else:
        if not options:
            return session
        in_force = session._core.in_force
        if (form := options.get("format", in_force.reader.name)) != in_force.reader.name:
            raise Refused(said(other_form(name, in_force.reader.name, form)))
        if in_force.counter is not None:
            given.setdefault("counter", in_force.counter)  # made again by its name
    try:
        session = Session(**given, store=store, id=name, retry=Retry(), allow_missing=known)
    except ConfigurationError as error:
        raise Refused(said(error)) from None
    return session


def name_of(store: Store, name: str) -> dict[str, Any]:
    """Say of a session how many events it has, and when the newest was made."""
    try:
        newest = store.load(LoadRequest(session=name, limit=1, newest_first=True))
    except ContextError as error:
        return {"id": name, "error": said(error)}
    return {"id": name, "version": newest[0].version, "time": newest[0].time} if newest else {}
