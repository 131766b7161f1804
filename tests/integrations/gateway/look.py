"""The tool of a loop as a server of MCP on standard input and output, for agents that start one."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

SCHEMA = {"type": "object", "properties": {"place": {"type": "integer"}}, "required": ["place"]}


def answer(asked: dict[str, Any], answers: dict[str, Any]) -> dict[str, Any]:
    """Answer a request of MCP."""
    if asked["method"] == "initialize":
        about = {"name": "loop", "version": "1"}
        version = asked["params"]["protocolVersion"]
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
    if asked["method"] == "tools/list":
        return {"tools": [{"name": "look", "description": "Look at a place.", "inputSchema": SCHEMA}]}
    if asked["method"] == "tools/call":
        said = answers[str(asked["params"]["arguments"]["place"])]
        return {"content": [{"type": "text", "text": said["text"]}], "isError": said["error"]}
    return {}


def main(path: str) -> None:
    """Answer until nobody asks any more.

    Args:
        path: A file of what the tool says at each place.
    """
    answers = json.loads(Path(path).read_text(encoding="utf-8"))
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" in asked:
            told = {"jsonrpc": "2.0", "id": asked["id"], "result": answer(asked, answers)}
            print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
