"""`trimtab inspect` as a process, for as long as a block lasts, and conversations to look at."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SCRIPT = Path(sys.executable).with_name("trimtab")


def conversation(turns: int) -> list[dict[str, Any]]:
    """Write a conversation in which each message says which it is."""
    roles = ("user", "assistant")
    return [
        {
            "role": roles[at % 2],
            "content": f"message {at} says that belt {at} needs oil" + " and care" * (at % 9),
        }
        for at in range(turns)
    ]


@contextmanager
def inspector(folder: Path, *arguments: object) -> Iterator[str]:
    """Run `trimtab inspect` for the length of a block; gives the address it wrote, token and all."""
    command = [str(SCRIPT), "inspect", *map(str, arguments)]
    process = subprocess.Popen(
        command, cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    assert process.stderr is not None
    try:
        lines = list[str]()
        for line in process.stderr:
            lines.append(line)
            if found := re.search(r"http://\S+", line):
                yield found[0]
                return
        raise AssertionError("".join(lines))
    finally:
        process.terminate()
        process.wait()
        process.stderr.close()
