"""Files of conversations: how their names end, which are passed over, and the mark some begin with."""

from __future__ import annotations

from pathlib import Path

LINE_SUFFIXES = (".jsonl", ".ndjson")
PARQUET_SUFFIXES = (".parquet", ".pq")
CODECS = {".gz": "gzip", ".zst": "zstd"}
"""How lines are packed, by what stands behind their own suffix."""
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def visible_paths(folder: Path) -> list[Path]:
    """List what is in a folder and below it, in order of name, without what begins with a dot or underscore.

    A link to a folder is in the list, and nothing of what it leads to.
    """
    found = ((path, path.relative_to(folder).parts) for path in sorted(folder.rglob("*")))
    return [path for path, parts in found if not any(part.startswith((".", "_")) for part in parts)]
