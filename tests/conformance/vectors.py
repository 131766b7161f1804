"""Vectors: cases that were made by running the reference systems, read from beside the checkout."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

LANGUAGE_SPECIFIC = "language_specific"
"""Tag of a case that hangs on how the reference's language compares values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One line of a vectors file."""

    id: str
    system: str
    op: str
    input: Mapping[str, Any]
    expected: Mapping[str, Any]
    tags: tuple[str, ...] = ()


class NoVector(Exception):
    """A line that is no vector: no JSON, or without the keys every vector has."""


def vectors_dir() -> Path:
    """Name the folder of the vectors; it need not be there.

    TRIMTAB_SHARED names the folder it is in; else it is beside the real conversations.
    """
    if shared := os.environ.get("TRIMTAB_SHARED"):
        return Path(shared) / "vectors"
    if data := os.environ.get("TRIMTAB_DATA"):
        return Path(data).resolve().parent / "vectors"
    return ROOT.parent / "shared" / "vectors"


def vector_files(folder: Path) -> list[Path]:
    """List the files of vectors in a folder, by name; empty if there is no such folder."""
    return sorted(folder.glob("*.jsonl"))


def read_cases(path: Path) -> Iterator[Case]:
    """Read the cases of a file, one JSON object a line.

    Raises:
        NoVector: A line is none.
    """
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                try:
                    yield _case(json.loads(line))
                except (ValueError, KeyError, TypeError) as error:
                    raise NoVector(f"{path}, line {number}: {type(error).__name__}: {error}") from error


def _case(data: Mapping[str, Any]) -> Case:
    return Case(
        id=data["id"],
        system=data["system"],
        op=data["op"],
        input=data["input"],
        expected=data["expected"],
        tags=tuple(data.get("tags") or ()),
    )
