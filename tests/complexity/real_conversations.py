"""Real conversations laid end to end, as long as a test wants them."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from functools import lru_cache
from itertools import count, islice
from pathlib import Path
from typing import Any

Message = dict[str, Any]

SESSION = Path(__file__).resolve().parents[2] / "examples" / "agent_session.json"


def recorded_session() -> list[Message]:
    """Return the recorded session that is part of this project."""
    read = json.loads(SESSION.read_text(encoding="utf-8"))
    return list(read["messages"] if isinstance(read, dict) else read)


@lru_cache(maxsize=4)
def concatenated(file: Path, messages: int) -> list[Message]:
    """Lay the conversations of a file end to end, again and again; call ids are made unique.

    The system message of the first one is kept, so that the whole is one valid conversation.
    """
    conversations = [json.loads(line)["messages"] for line in file.read_text(encoding="utf-8").splitlines()]
    leading = [m for m in conversations[0] if m["role"] == "system"]
    return [*leading, *islice(_endless(conversations), messages - len(leading))]


def _endless(conversations: list[list[Message]]) -> Iterator[Message]:
    for round_ in count():
        for place, conversation in enumerate(conversations):
            for message in conversation:
                if message["role"] not in ("system", "developer"):
                    yield _renamed(message, f"{round_}.{place}.")


def _renamed(message: Message, prefix: str) -> Message:
    made = copy.deepcopy(message)
    for call in made.get("tool_calls") or ():
        call["id"] = prefix + call["id"]
    if "tool_call_id" in made:
        made["tool_call_id"] = prefix + made["tool_call_id"]
    return made
