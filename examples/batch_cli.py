"""A folder of chats made into one file for a batch API: the command line fits them all at once.

python examples/batch_cli.py chats/ > batch.jsonl
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

MODEL = "gpt-4o"


def main(folder: str) -> int:
    """Write a request a line for each chat that fits; the others are named on standard error."""
    command = ["trimtab", "fit", f"{folder}/**/*.json", "--model", MODEL, "--budget", "8k", "--repair"]
    done = subprocess.run(command, stdout=subprocess.PIPE, encoding="utf-8")
    for line in done.stdout.splitlines():
        answer = json.loads(line)
        if "error" in answer:
            continue  # trimtab has said why, and what did not fit is still in its file
        name = Path(answer["file"]).relative_to(folder).with_suffix("").as_posix()
        body = {"model": MODEL, "messages": answer["messages"]}
        request = {"custom_id": name, "method": "POST", "url": "/v1/chat/completions", "body": body}
        print(json.dumps(request, ensure_ascii=False))
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
