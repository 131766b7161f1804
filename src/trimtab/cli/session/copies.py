"""Sessions that come from elsewhere or go there: `export`, `import`, `copy`."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import BinaryIO

import click

from trimtab.cli.json_out import dump, parse
from trimtab.cli.output import Refused, usage
from trimtab.cli.session.commands import existing, id_option, store_option, stored
from trimtab.cli.session.io import read_bytes
from trimtab.cli.session.output import output_option, write, write_lines
from trimtab.report.lines import counted, plain
from trimtab.session import Session
from trimtab.stores import Retry, copy_session

__all__ = ["copy", "export", "fork", "import_"]


@click.command()
@click.option("--no-history", is_flag=True, help="Only the view, and what is needed to go on.")
@id_option
@store_option
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), required=False)
@usage
def export(url: str, name: str, file: Path | None, no_history: bool) -> None:
    """Write a whole session as JSON, to FILE or to standard output.

    `import` and `Session.restore` read it. FILE is replaced when all is written, not before.
    """
    with stored(url) as store:
        data = dump(existing(store, name).snapshot(history=not no_history))
        if file is None or str(file) == "-":
            write_lines([data])
            return
        try:
            _replace(file, data)
        except OSError as error:
            raise Refused(f"{file}: {error.strerror or error}") from None


def _replace(file: Path, data: bytes) -> None:
    """Write a file whole, or leave it as it was; nobody else may read it: it holds a conversation."""
    handle, path = tempfile.mkstemp(dir=file.absolute().parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(data)
        os.replace(path, file)
    except BaseException:
        os.unlink(path)
        raise


@click.command("import")
@output_option
@click.option("--id", "name", metavar="ID", help="Name of the session. Default: the one it had.")
@store_option
@click.argument("file", type=click.File("rb"), required=False)
@usage
def import_(url: str, name: str | None, output: str, file: BinaryIO | None) -> None:
    """Put a session that was exported into a store.

    Reads FILE or standard input. A session of that name that is there is only added to if it is
    the beginning of this one.
    """
    with stored(url, create=True) as store:
        data = parse(read_bytes(file), whole=True)
        one = Session.restore(data, store=store, id=name, retry=Retry(), allow_missing=True)
        if not one.version:
            raise Refused("there are no events in it: nothing to keep")
        found = {"id": one.id, "version": one.version}
        write(found, lambda: f"{plain(one.id)}: {counted(one.version, 'event')}", output=output)


@click.command()
@click.option("--to", "target", metavar="URL", required=True, help="The other store; may be the same.")
@click.option("--as", "renamed", metavar="ID", help="Its name there. Default: the same.")
@output_option
@id_option
@store_option
@usage
def copy(url: str, name: str, output: str, target: str, renamed: str | None) -> None:
    """Copy a session to another store, or under another name.

    Repeat it to go on after an interruption, or to bring the copy up to date.
    """
    with stored(url) as store, stored(target, create=True) as other:
        existing(store, name)
        written = copy_session(store, other, name, to=renamed)
        found = {"id": renamed or name, "events": written}
        write(found, lambda: f"{plain(renamed or name)}: {counted(written, 'event')} written", output=output)


@click.command()
@click.option("--as", "renamed", metavar="ID", required=True, help="Name of the second conversation.")
@click.option(
    "--at", type=click.IntRange(min=0), metavar="VERSION", help="Up to this version. Default: the newest."
)
@output_option
@id_option
@store_option
@usage
def fork(url: str, name: str, output: str, renamed: str, at: int | None) -> None:
    """Start a second conversation on what was said up to a version.

    Both go on by themselves; the first is as it was.
    """
    with stored(url) as store:
        one = existing(store, name)
        if renamed in store.sessions():
            raise Refused(f"there is a session {renamed!r} already: --as names a new one")
        twin = one.fork(at, id=renamed)
        found = {"id": twin.id, "version": twin.version}
        write(found, lambda: f"{plain(twin.id)}: {counted(twin.version, 'event')}", output=output)
