"""A process that carries out one order about sessions, until it is killed or done; see `order_kills.py`."""

from __future__ import annotations

import json
import os
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tests.stores.writer import FIRST, KEYS
from trimtab.stores import KeyRing, Receipt, RotationReceipt, Store, encrypted, open_store

SECOND = b"the key after it " * 3
BOTH = KeyRing({"first": FIRST, "next": SECOND}, current="next")
"""The keys of the tests, and one that takes their place."""

NEXT = KeyRing({"next": SECOND})
"""That one alone."""

FAR = 5e9
"""A time at which every session with a time to live has ended."""

OWNER, LONG = "ada", "ada-long"


def open_with(url: str, keys: KeyRing = KEYS) -> Store:
    """Open the store of a URL; of one behind `encrypted+`, with these keys."""
    plain = url.removeprefix("encrypted+")
    return open_store(plain) if plain == url else encrypted(open_store(plain), keys)


def carry_out(store: Store, order: str, file: Path) -> dict[str, Any]:
    """Do what a name of an order says, and return its receipt."""
    if order == "export":
        return {"lines": export(store, file)}
    if order == "rotate":
        done: RotationReceipt = store.rotate()  # type: ignore[attr-defined]
        return {name: getattr(done, name) for name in ("sessions", "renewed", "removed", "complete")}
    receipt: Receipt = {
        "delete owner": lambda: store.delete(owner=OWNER),
        "delete one": lambda: store.delete(LONG),
        "expire": lambda: store.expire(now=FAR),
    }[order]()
    return receipt.to_dict()


def export(store: Store, file: Path) -> int:
    """Write the lines of an owner's sessions behind what a file has of them, without half a line."""
    had = file.read_bytes() if file.exists() else b""
    whole = had[: had.rfind(b"\n") + 1]
    after = json.loads(whole.splitlines()[-1])["at"] if whole else None
    with file.open("r+b" if had else "wb", buffering=0) as out:
        out.truncate(len(whole))
        out.seek(len(whole))
        lines = 0
        for line in store.export(owner=OWNER, after=after):
            out.write(line.encode() + b"\n")
            lines += 1
    return lines


def forked(out: Connection, errors: Connection, url: str, order: str, file: str) -> None:
    """Carry out an order; says `begun`, and `done` with the seconds it took."""
    os.dup2(out.fileno(), 1)
    os.dup2(errors.fileno(), 2)
    out.close()
    errors.close()
    store = open_with(url, BOTH if order == "rotate" else KEYS)
    store.sessions(limit=1)
    os.write(1, b"begun\n")
    start = time.perf_counter()
    carry_out(store, order, Path(file))
    os.write(1, b"done %.6f\n" % (time.perf_counter() - start))
