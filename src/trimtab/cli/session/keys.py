"""`trimtab session rotate` and `drop-key`: the keys of an encrypted store."""

from __future__ import annotations

import sys

from trimtab.cli.options import output_option
from trimtab.cli.output import Refused, usage
from trimtab.cli.session.commands import (
    confirm,
    id_option,
    open_session_store,
    session,
    store_option,
    yes_option,
)
from trimtab.cli.session.io import write
from trimtab.report.text import plain, plural
from trimtab.stores import EncryptedStore, Store


def _with_keys(store: Store) -> EncryptedStore:
    if not isinstance(store, EncryptedStore):
        raise Refused("pass --keys PLACE, the key ring of the store")
    return store


@session.command()
@output_option
@store_option
@usage
def rotate(url: str, output: str) -> None:
    """Encrypt every session with the current key of the ring.

    The first key of the ring is the current one; keep the others in it until this succeeds. Safe to repeat,
    and while others write. Exit code 1 if a session could not be encrypted with it.
    """
    with open_session_store(url) as store:
        receipt = _with_keys(store).rotate()

    def text() -> str:
        lines = [f"{plain(name)}: {plain(why)}" for name, why in receipt.left.items()]
        events = plural(receipt.events, "event")
        done = (
            f"{receipt.renewed:,} of {plural(receipt.sessions, 'session')} got a new key, {events} rewritten"
        )
        return "\n".join([*lines, done])

    found = {
        "key": receipt.key,
        "sessions": receipt.sessions,
        "renewed": receipt.renewed,
        "events": receipt.events,
        "dropped": receipt.dropped,
        "removed": receipt.removed,
        "left": dict(receipt.left),
    }
    write(found, text, output=output)
    if not receipt.complete:
        sys.exit(1)


@session.command("drop-key")
@yes_option
@output_option
@id_option
@store_option
@usage
def drop_key(url: str, name: str, output: str, yes: bool) -> None:
    """Forget the key of a session: nobody can read its text again.

    Its rows stay in the store until `delete`.
    """
    with open_session_store(url) as store:
        one = _with_keys(store)
        confirm(f"Drop the key of {name!r}?", yes=yes)
        one.drop_key(name)
    write({"dropped": name}, lambda: f"{plain(name)}: its key is dropped", output=output)
