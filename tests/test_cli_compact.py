"""`trimtab fit --compact` and `--no-compact`: results that are written once."""

from __future__ import annotations

import json
from pathlib import Path

from tests.result_chats import exchange, said
from tests.test_cli import answers, run

TEXT = "\n".join(f"    value_{n} = compute(first_argument, second_argument, {n * 7})" for n in range(40))
CHAT = [
    said("openai_chat", "user", "Look."),
    *exchange("openai_chat", [("call_0", "read", TEXT)]),
    *exchange("openai_chat", [("call_1", "read", TEXT)]),
]


def test_the_command_line_compacts_conversations(tmp_path: Path) -> None:
    """The option goes before what a policy says, and what a block says goes before both."""
    policy = tmp_path / "policy.json"
    policy.write_text(json.dumps({"compact": True, "blocks": [{"name": "history"}]}), encoding="utf-8")
    by_block = tmp_path / "block.json"
    blocks = {"compact": False, "blocks": [{"name": "history", "compact": True}]}
    by_block.write_text(json.dumps(blocks), encoding="utf-8")
    room = ("--budget", "100k", "--counter", "chars:4")
    for given, count in (
        (("--compact",), 1),
        (("--no-compact",), 0),
        ((), 0),
        (("--policy", str(policy)), 1),
        (("--policy", str(policy), "--no-compact"), 0),
        (("--policy", str(by_block)), 1),
        (("--policy", str(by_block), "--no-compact"), 1),
    ):
        (found,) = answers(run("fit", *room, *given, data=CHAT))
        assert json.dumps(found["messages"]).count("as in call_0 from 1]") == count
