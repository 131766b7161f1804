"""The store that `--store` names, and what is done to its sessions; a password in its URL is never shown."""

from __future__ import annotations

import functools
import io
import os
import sys
import tempfile
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, NoReturn, TypeVar

import click
from click.shell_completion import CompletionItem

from trimtab._shared.checks import in_words, near_names
from trimtab._shared.strict_json import dump, parse
from trimtab.cli.options import keys_given, keys_option, output_option
from trimtab.cli.output import Refused, encode, in_options, json_text, usage
from trimtab.cli.session.io import event_data, event_line, read_bytes, say_missing, write, write_lines
from trimtab.cli.session.labels import after_option, owner_option
from trimtab.cli.session.owners import check_keys, names_in, note_errors, write_receipt
from trimtab.counting import AdditiveCounter, CharCounter, EstimateCounter
from trimtab.errors import (
    ConfigurationError,
    ContextError,
    CorruptSessionError,
    EncryptionKeyError,
    MissingExtraError,
    SessionExpiredError,
    UnknownNameError,
)
from trimtab.report.text import plain, plural
from trimtab.session import Session
from trimtab.session.options import other_form
from trimtab.stores import (
    EncryptedStore,
    KeyRing,
    Retry,
    SQLiteStore,
    Store,
    copy_session,
    encrypted,
    open_store,
)
from trimtab.stores.encryption.lists import holds_keys
from trimtab.stores.secrets import mask

F = TypeVar("F", bound=Callable[..., Any])

_KINDS = "sqlite:///FILE, postgresql://… or redis://…"


def complete_sessions(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the sessions of the store that is named before, or in the environment, to a shell."""
    url = ctx.params.get("url") or os.environ.get("TRIMTAB_STORE")
    if not url:
        return []
    try:  # whoever types is not told what is wrong: the command will
        with redirect_stderr(io.StringIO()), open_session_store(url) as store:
            return [CompletionItem(name) for name in names_in(store, prefix=incomplete)]
    except (click.ClickException, SystemExit):
        return []


def store_option(command: F) -> F:
    """Add the options that say where sessions are, and with which keys."""
    store = click.option(
        "--store",
        "url",
        metavar="URL",
        envvar="TRIMTAB_STORE",
        show_envvar=True,
        required=True,
        help=f"The store of the sessions: FILE, {_KINDS}",
    )
    return store(keys_option(command))


id_option = click.option(
    "--id", "name", metavar="ID", required=True, shell_complete=complete_sessions, help="Name of the session."
)
one_option = click.option(
    "--id", "name", metavar="ID", shell_complete=complete_sessions, help="Name of the session."
)
"""Where a command may also be about the sessions of an owner."""


HELP = """Keep conversations in a store, and look at them.

A session is a log that only grows, and a view of it that fits a budget. The store is a file
(chats.db, as sqlite:///chats.db), PostgreSQL or Redis.

\b
Exit codes: 0  all is well
            1  the session or event does not exist, is not readable, or the store refuses
            2  wrong usage
"""


EPILOG = """\b
Examples:
  trimtab session add --store chats.db --id ada --budget 4k chat.json
  trimtab session show --store chats.db --id ada --output text
  trimtab session history --store chats.db --id ada --ids --output text
  trimtab session list --store chats.db
"""


@click.group(help=HELP, epilog=EPILOG)
def session() -> None:
    """Take the options that stand before a command; there are none."""


def fail(message: str) -> NoReturn:
    """Say what went wrong on standard error, and exit 1."""
    click.echo(f"trimtab: {plain(message)}", err=True)
    sys.exit(1)


_CONDITIONS = ("owner", "prefix", "metadata", "after")
"""What a list or an export is asked for: one that cannot be is wrong usage."""


def _with_ring(store: Store, place: str) -> EncryptedStore:
    """Make a store encrypted by the key ring at a place."""
    try:
        return encrypted(store, KeyRing.read(place))
    except MissingExtraError as error:
        raise Refused(in_options(error)) from None
    except ConfigurationError as error:
        raise Refused(f"--keys: {in_options(error)}") from None


@contextmanager
def open_session_store(url: str, *, create: bool = False, keys: str | None = None) -> Generator[Store]:
    """Open the store of a URL, made if `create`, and close it in the end; what fails on the way is exit 1.

    Without `keys` with those that the command was given; the empty place is that of a store without.
    """
    store = _store_of(url, create=create)
    place = keys_given() if keys is None else keys
    if place:
        store = _with_ring(store, place)
    try:
        if create and place is None and holds_keys(store):
            raise Refused(
                "the sessions of this store are encrypted: pass --keys PLACE, or --keys '' to begin one in"
                " plain text"
            )
        yield store
    except MissingExtraError as error:
        raise Refused(mask(in_options(error), url)) from None
    except ContextError as error:
        if isinstance(error, ConfigurationError) and error.argument in _CONDITIONS:
            raise Refused(mask(in_options(error), url)) from None
        fail(mask(in_options(error), url))
    finally:
        store.close()


def _store_of(url: str, *, create: bool) -> Store:
    scheme, separator, rest = url.partition("://")
    if not separator:
        return _file_store(url, create=create)
    if scheme.lower() == "memory" or rest == "/:memory:":
        raise Refused(
            f"--store: a store in memory ends with the command, and so do its sessions. Use {_KINDS}"
        )
    try:
        store = open_store(url)
    except ContextError as error:
        raise Refused(mask(f"--store: {in_options(error)}", url)) from None
    if isinstance(store, SQLiteStore):
        _check_there(store.path, create=create)
    return store


def _file_store(name: str, *, create: bool) -> Store:
    """Open a file that is named without a scheme: it has a suffix or a folder, or is there."""
    path = Path(name)
    is_named_so = not set("=@:?").intersection(name) and (path.suffix or path.parent != Path())
    if not is_named_so and not path.is_file():  # a URL or DSN that lacks a part would be a file of that name
        raise Refused(f"--store must be a file, such as chats.db, or a URL: {_KINDS}")
    _check_there(name, create=create)
    return SQLiteStore(path.expanduser())


def _check_there(path: str, *, create: bool) -> None:
    if not create and not Path(path).expanduser().exists():
        fail(f"there is no file {path} yet: `trimtab session add --budget N` begins a session in it")


def open_session(store: Store, name: str) -> Session:
    """Open a session that is in the store; functions it was made with and no log can keep may be missing."""
    return _open_with_counter(store, name)[0]


def _open_with_counter(store: Store, name: str) -> tuple[Session, AdditiveCounter | None]:
    """Open a session, and the counter that was made again by its name."""
    session = Session.open(store, name, retry=Retry(), allow_missing=True)
    try:
        session.refresh()
    except UnknownNameError:
        names = names_in(store)
        near = near_names(name, names)
        others = "; `trimtab session list` lists the sessions" if names else ", and there is no other"
        raise UnknownNameError(
            f"there is no session {name!r}{others}{in_words(map(repr, near))}", name=name, near=near
        ) from None
    counter = _counter_called(session.missing.get("counter", ""))
    if counter is not None:
        session = Session.open(store, name, counter=counter, retry=Retry(), allow_missing=True)
        session.refresh()
    return session, counter


class Answer(NamedTuple):
    """What a command says of a session."""

    data: Any
    """For programs."""
    text: Callable[[], str]
    """For people."""


def session_options(command: F) -> F:
    """Add the options that say which session is meant, and how the answer is written."""
    return output_option(id_option(store_option(command)))


def on_session(command: Callable[..., Answer]) -> Callable[..., None]:
    """Make a command of a function of a session: it is opened, and what the function answers is written."""

    @session_options
    @usage
    @functools.wraps(command)
    def run(url: str, name: str, output: str, **given: Any) -> None:
        with open_session_store(url) as store:
            one = open_session(store, name)
            answer = command(one, **given)
            say_missing(one)
            write(*answer, output=output)

    return run


def _counter_called(name: str) -> AdditiveCounter | None:
    if name == "estimate":
        return EstimateCounter()
    kind, _, number = name.partition("/")
    try:
        return CharCounter(float(number)) if kind == "chars" else None
    except ValueError:
        return None


def open_or_begin(store: Store, name: str, options: Mapping[str, Any]) -> Session:
    """Open a session, or begin it with these options; options of one that is there are changed."""
    known, given = True, dict(options)
    try:
        session, counter = _open_with_counter(store, name)
    except UnknownNameError as error:
        if not options:
            needs = f"{error}. A new one needs --budget N, or --model NAME"
            raise UnknownNameError(needs, name=name, near=error.near) from None
        known = False
    except SessionExpiredError:
        if "ttl" not in options:
            raise
    else:
        if not options:
            return session
        form = session.format.name
        if options.get("format", form) != form:
            raise Refused(in_options(other_form(name, form, options["format"])))
        if counter is not None:
            given.setdefault("counter", counter)
    try:
        return Session(**given, store=store, id=name, retry=Retry(), allow_missing=known)
    except ConfigurationError as error:
        raise Refused(in_options(error)) from None


# Sessions that come from elsewhere or go there: `export`, `import`, `copy`.


@session.command()
@click.option("--no-history", is_flag=True, help="Only the view, and what is needed to go on.")
@after_option
@owner_option
@one_option
@store_option
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), required=False)
@usage
def export(
    url: str, name: str | None, file: Path | None, no_history: bool, owner: str | None, after: str | None
) -> None:
    """Write a whole session as JSON, to FILE or to standard output.

    `import` and `Session.restore` read it. FILE is replaced once everything is written.

    With --owner: all sessions of an owner as JSONL, one event per line. `at` of the last whole line is the
    TOKEN to continue behind it. Exit code 1 if a session could not be read whole.
    """
    _check_one(name, owner)
    if owner is None and after is not None:
        raise Refused("--after continues an export of --owner")
    if owner is not None and no_history:
        raise Refused("--no-history is for one session: pass --id in place of --owner")
    failed: list[str] = []
    with open_session_store(url) as store:
        if owner is not None:
            lines = note_errors(store.export(owner=owner, after=after), failed)
            written: Iterable[bytes] = (encode(f"{line}\n") for line in lines)
        else:
            data = open_session(store, name or "").snapshot(history=not no_history)
            written = [json_text(data, indent=False) if file is None or str(file) == "-" else dump(data)]
        if file is None or str(file) == "-":
            write_lines(written)
        else:
            try:
                _replace(file, written)
            except OSError as error:
                raise Refused(f"{file}: {error.strerror or error}") from None
    if failed:
        fail("; ".join(failed))


def _check_one(name: str | None, owner: str | None) -> None:
    if (name is None) == (owner is None):
        raise Refused("pass --id for one session, or --owner for all of an owner")


def _replace(file: Path, data: Iterable[bytes]) -> None:
    """Write a file whole, or leave it as it was; nobody else may read it: it holds a conversation."""
    handle, path = tempfile.mkstemp(dir=file.absolute().parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(handle, "wb") as out:
            out.writelines(data)
        os.replace(path, file)
    except BaseException:
        os.unlink(path)
        raise


@session.command("import")
@output_option
@click.option("--id", "name", metavar="ID", help="Name of the session. Default: its previous name.")
@store_option
@click.argument("file", type=click.File("rb"), required=False)
@usage
def import_(url: str, name: str | None, output: str, file: BinaryIO | None) -> None:
    """Put an exported session into a store.

    Reads FILE or standard input. An existing session of that name is only extended if it is the beginning of
    this one.
    """
    with open_session_store(url, create=True) as store:
        data = parse(read_bytes(file), whole=True)
        one = Session.restore(data, store=store, id=name, retry=Retry(), allow_missing=True)
        if not one.version:
            raise Refused("it has no events to keep")
        found = {"id": one.id, "version": one.version}
        write(found, lambda: f"{plain(one.id)}: {plural(one.version, 'event')}", output=output)


@session.command()
@click.option("--to", "target", metavar="URL", required=True, help="The other store; may be the same.")
@click.option("--as", "renamed", metavar="ID", help="The name in the other store. Default: the same.")
@click.option(
    "--to-keys", metavar="PLACE", help="The key ring of the other store, as for --keys. Default: the same."
)
@click.option(
    "--decrypt", is_flag=True, help="Write the texts of an encrypted session to a store without keys."
)
@session_options
@usage
def copy(
    url: str,
    name: str,
    output: str,
    target: str,
    renamed: str | None,
    to_keys: str | None,
    decrypt: bool,
) -> None:
    """Copy a session to another store, or under another name.

    Repeat it to continue after an interruption, or to update the copy. The copy of an encrypted session is
    encrypted, unless --decrypt is passed.
    """
    if decrypt and (to_keys or not keys_given()):
        raise Refused("--decrypt copies from a store with --keys to one without: pass no --to-keys")
    theirs = "" if decrypt else to_keys
    with open_session_store(url) as store, open_session_store(target, create=True, keys=theirs) as other:
        open_session(store, name)
        written = copy_session(store, other, name, to=renamed, decrypt=decrypt)
        found = {"id": renamed or name, "events": written}
        write(found, lambda: f"{plain(renamed or name)}: {plural(written, 'event')} written", output=output)


@session.command()
@click.option("--as", "renamed", metavar="ID", required=True, help="Name of the second conversation.")
@click.option(
    "--at", type=click.IntRange(min=0), metavar="VERSION", help="Up to this version. Default: the newest."
)
@session_options
@usage
def fork(url: str, name: str, output: str, renamed: str, at: int | None) -> None:
    """Start a second conversation from a version of this one.

    The two are independent; the first is not changed.
    """
    with open_session_store(url) as store:
        one = open_session(store, name)
        if renamed in store.sessions(prefix=renamed, limit=1):
            raise Refused(f"session {renamed!r} exists already: choose another name with --as")
        twin = one.fork(at, id=renamed)
        found = {"id": twin.id, "version": twin.version}
        write(found, lambda: f"{plain(twin.id)}: {plural(twin.version, 'event')}", output=output)


# What changes a session that is there: `pop`, `pin`, `unpin`, `undo`, `clear`, `redact`, `delete`.


yes_option = click.option("--yes", is_flag=True, help="Do not ask.")


@session.command()
@on_session
def pop(one: Session) -> Answer:
    """Remove the newest message; the log keeps it.

    Writes the removed message. It is no longer in any view, summary or fact, and `recall` does not find it. A
    call whose result was removed is open again.
    """
    event = one.pop()
    if event is None:
        fail(f"session {one.id!r} has no message that could be taken off")
    return Answer(event_data(event), lambda: f"taken off:\n{event_line(event, ids=True)}")


@session.command()
@click.argument("event_id", required=False)
@on_session
def undo(one: Session, event_id: str | None) -> Answer:
    """Take back a summary, facts or an eviction, and all after it.

    Without EVENT_ID, the newest current one. Messages are kept. Writes the event that was taken back.
    """
    event = one.undo(event_id)
    return Answer(event_data(event), lambda: f"taken back:\n{event_line(event, ids=True)}")


messages_argument = click.argument("event_ids", metavar="EVENT_ID...", nargs=-1, required=True)


def _for_each(order: Callable[[Session, str], None], done: str, *, help: str) -> None:
    """Make a command that gives an order for each message, and says for which."""

    @session.command(order.__name__, help=help)
    @messages_argument
    @on_session
    def command(one: Session, event_ids: tuple[str, ...]) -> Answer:
        for event_id in event_ids:
            order(one, event_id)
        found = {done: list(event_ids), "version": one.version}
        return Answer(found, lambda: f"{plural(len(event_ids), 'message')} {done}")


_for_each(
    Session.pin,
    "pinned",
    help="""Keep messages, and the rest of their units,
    in every view.

    `trimtab session history --ids` shows the ids. If one of several is refused, those before it are pinned.
    """,
)
_for_each(Session.unpin, "unpinned", help="Allow pinned messages to be evicted again.")


@session.command()
@on_session
def clear(one: Session) -> Answer:
    """Start over with an empty view; the log is kept.

    Anchors return to the initial ones, and the budget is kept. Earlier messages are in `history`, and `show
    --at VERSION` shows an earlier view.
    """
    one.clear()
    found = {"id": one.id, "version": one.version}
    return Answer(found, lambda: f"{plain(one.id)}: an empty view from version {one.version:,} on")


def confirm(question: str, *, yes: bool) -> None:
    """Ask on a terminal; elsewhere only `--yes` will do."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise Refused(f"{question} This cannot be undone: pass --yes to skip this question")
    click.confirm(f"{question} This cannot be undone.", abort=True, err=True)


@session.command()
@yes_option
@click.option(
    "--where", metavar="PATTERN", help="In place of ids: all messages that match a regular expression."
)
@click.argument("event_ids", metavar="[EVENT_ID]...", nargs=-1)
@on_session
def redact(one: Session, yes: bool, where: str | None, event_ids: tuple[str, ...]) -> Answer:
    """Overwrite the text of messages, in the log too.

    Words that a summary repeats are overwritten there, or the summary is written again later; facts that come
    from the messages lose their text. Writes the ids of what was overwritten.
    """
    if bool(event_ids) == (where is not None):
        raise Refused(
            "pass the ids of messages (`trimtab session history --ids` shows them), or --where PATTERN"
        )
    what = plural(len(set(event_ids)), "message") if event_ids else f"every message with {plain(where or '')}"
    confirm(f"Overwrite {what} of {one.id!r}?", yes=yes)
    done = one.redact(event_ids) if event_ids else one.redact(where=where)
    parts = {
        "redacted": done,
        "mended_summaries": done.mended,
        "stale_summaries": done.stale,
        "stale_facts": done.facts,
        "misattributed_facts": done.misattributed,
        "stale_rules": done.rules,
        "left": done.left,
    }
    found = {name: [event.id for event in events] for name, events in parts.items()}
    told = [
        f"{len(events):,} {noun if len(events) == 1 else nouns} {end}"
        for events, noun, nouns, end in (
            (done, "message", "messages", "overwritten"),
            (done.mended, "summary", "summaries", "mended"),
            (done.stale, "summary", "summaries", "to be written anew"),
            (done.facts, "fact", "facts", "overwritten"),
            (done.rules, "rule", "rules", "overwritten"),
            (done.left, "text", "texts", "in force with words that other messages say, too"),
        )
        if events
    ]
    return Answer(found, lambda: ", ".join(told))


@session.command()
@yes_option
@owner_option
@output_option
@one_option
@store_option
@usage
def delete(url: str, name: str | None, output: str, yes: bool, owner: str | None) -> None:
    """Remove a session, or all of an owner, and their bytes.

    With --owner, writes how many sessions, messages and bytes are gone. Exit code 1 means that something
    could not be removed.
    """
    _check_one(name, owner)
    with open_session_store(url) as store:
        if owner is not None:
            check_keys(store)
            if not yes:  # to count them is for the question alone
                sessions = plural(len(store.sessions(owner=owner)), "session")
                confirm(f"Delete {sessions} of {owner!r}?", yes=yes)
            write_receipt(store.delete(owner=owner), output=output)
            return
        name = name or ""
        try:
            one: Session | None = open_session(store, name)
            events = one.version if one else 0
        except SessionExpiredError as error:
            one, (entry,) = None, store.sessions(prefix=error.session, limit=1)
            events = entry.version
        except (CorruptSessionError, EncryptionKeyError) as error:
            if isinstance(error, EncryptionKeyError) and not isinstance(store, EncryptedStore):
                raise  # with its keys, which go as well
            confirm(f"Delete {name!r}, which cannot be read ({error})?", yes=yes)
            store.delete(name)
            write({"deleted": name, "events": None}, lambda: f"{plain(name)}: deleted", output=output)
            return
        confirm(f"Delete {name!r} with {plural(events, 'event')}?", yes=yes)
        store.delete(name) if one is None else one.delete()
        found = {"deleted": name, "events": events}
        write(found, lambda: f"{plain(name)}: {plural(events, 'event')} deleted", output=output)
