"""Conversations for batches, made of the real ones when a test runs: ids are unique, contents are not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pyarrow as pa

FILES = ("glaive_toolcall_en", "pydantic_ai_chats", "glaive_toolcall_zh", "tau_airline_gpt4o")


def conversations(folder: Path, count: int, start: int = 0) -> Iterator[tuple[str, list[Any]]]:
    """Give (id, messages), the real ones over and over; `start` are passed over."""
    real = [
        json.loads(line)["messages"]
        for name in FILES
        for line in (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    # 97 is prime to their number: neighbours are of different files
    mixed = [real[at * 97 % len(real)] for at in range(len(real))]
    some = islice(cycle(mixed), start, start + count)
    return ((f"c-{at}", messages) for at, messages in enumerate(some, start))


def table_of(folder: Path, count: int, start: int = 0) -> pa.Table:
    """Make a table of ids and JSON text."""
    rows = list(conversations(folder, count, start))
    return pa.table(
        {
            "id": [name for name, _ in rows],
            "messages": [json.dumps(messages, ensure_ascii=False) for _, messages in rows],
        }
    )


def lines_of(folder: Path, count: int) -> bytes:
    """Make a request body a line."""
    bodies = ({"id": name, "messages": messages} for name, messages in conversations(folder, count))
    return b"".join(json.dumps(body, ensure_ascii=False).encode() + b"\n" for body in bodies)
