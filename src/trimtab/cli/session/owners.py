"""Many sessions at once: which there are, and what an order to remove them did."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import click

from trimtab.cli.output import Refused, in_options
from trimtab.cli.session.io import when, write
from trimtab.errors import ContextError
from trimtab.report.text import plain, plural
from trimtab.session import StoredStatus, statuses
from trimtab.stores import EncryptedStore, LoadRequest, Receipt, Store
from trimtab.stores.encryption.lists import holds_keys, list_without_keys


def list_sessions(
    store: Store, *, with_status: bool = False, **asked: Any
) -> tuple[list[dict[str, Any]], str | None]:
    """List sessions, and where the next page begins; a store without entries is asked for each."""
    found = list_without_keys(store, **{name: one for name, one in asked.items() if one is not None})
    if with_status:
        return [_status_of(one) for one in statuses(store, found)], found.next
    rows = (one.to_dict() if one.version else name_of(store, one) for one in found)
    return list(filter(None, rows)), found.next


def _status_of(one: StoredStatus) -> dict[str, Any]:
    told = one.to_dict()
    return told if one.error is None else {**told, "error": in_options(one.error)}


def names_in(store: Store, *, prefix: str | None = None) -> list[str]:
    """List the sessions of a store, which may be encrypted and opened without its keys."""
    return list(list_without_keys(store, **({} if prefix is None else {"prefix": prefix})))


def check_keys(store: Store) -> None:
    """Refuse to remove many sessions of an encrypted store without their keys, which would stay."""
    if not isinstance(store, EncryptedStore) and holds_keys(store):
        raise Refused(
            "the sessions of this store are encrypted: pass --keys PLACE, so that their keys go, too"
        )


def note_errors(lines: Iterable[str], failed: list[str]) -> Iterator[str]:
    """Pass the lines of an export on, and note the sessions that are not whole in it."""
    for line in lines:
        if '"error":' in line and "error" in (told := json.loads(line)):
            failed.append(f"session {told['session']!r} is not whole: {told['error']}")
        yield line


def name_of(store: Store, name: str) -> dict[str, Any]:
    """Say of a session how many events it has, and when the newest was made."""
    try:
        newest = store.load(LoadRequest(session=name, limit=1, newest_first=True))
    except ContextError as error:
        return {"id": name, "error": in_options(error)}
    return {"id": name, "version": newest[0].version, "time": newest[0].time} if newest else {}


def row_text(row: Mapping[str, Any]) -> str:
    """Write a session of a list for people."""
    if "error" in row:
        return plain(f"{'?':>9}  {row['id']}: {row['error']}")
    told = [f"{row['version']:>9,}", when(row["time"]), plain(row["id"])]
    if row.get("owner") is not None:
        told.append(f"of {plain(row['owner'])}")
    told += (plain(f"{name}={json.dumps(one)}") for name, one in (row.get("metadata") or {}).items())
    return "  ".join([*told, status_text(row)] if "budget_tokens" in row else told)


def status_text(row: Mapping[str, Any]) -> str:
    """Write where a session stands, in one line."""
    room = f"{row['recent_tokens']:,} of {row['budget_tokens']:,} tokens"
    told = [f"{plural(row['recent_messages'], 'recent message')}: {room}"]
    if row["pending_messages"]:
        told.append(f"{row['pending_messages']:,} waiting: {plural(row['pending_tokens'], 'token')}")
    for name, noun in (("failures", "summary"), ("fact_failures", "question for facts")):
        if row[name]:
            told.append(f"the last {noun} failed ({row[name]:,} in a row)")
    return f"({', '.join(told)})"


def write_receipt(receipt: Receipt, *, output: str) -> None:
    """Write what is gone; what could not be is on standard error, and the exit code is 1."""
    told = f"{plural(receipt.sessions, 'session')} with {plural(receipt.messages, 'message')} deleted"
    more = "; there are more: repeat it" if receipt.more else ""
    write(receipt.to_dict(), lambda: f"{told}, {receipt.bytes:,} bytes{more}", output=output)
    for name, why in receipt.left.items():
        click.echo(plain(f"trimtab: {name!r} is still there: {why}"), err=True)
    if receipt.not_erased is not None:
        click.echo(plain(f"trimtab: files may still hold the text: {receipt.not_erased}"), err=True)
    if receipt.left or receipt.not_erased is not None:
        raise SystemExit(1)
