"""Replay: what `compact` saved, counted as it was sent."""

from __future__ import annotations

from typing import Any

import pytest

from tests.result_chats import exchange, said
from trimtab import Context, Session
from trimtab.counting import CharCounter
from trimtab.replay import chart_page, replay, replay_table

SOURCE = "\n".join(f"def test_number_{n}(): assert parse('{n}') == {n}" for n in range(20))
CHAT = [
    said("openai_chat", "user", "Why does it fail?"),
    *exchange("openai_chat", [("a", "read", SOURCE)]),
    *exchange("openai_chat", [("b", "lookup", '{ "failed": 2, "passed": 28, "names": [ "x", "y" ] }')]),
    *exchange("openai_chat", [("c", "read", f"$ cat\n{SOURCE}")]),
    said("openai_chat", "assistant", "It is number 7."),
]
COUNTER = CharCounter(4)


def _context(*, compact: bool) -> Context:
    return Context(9_000, counter=COUNTER, compact=compact).add("history", None)


def _session() -> Session:
    return Session(9_000, counter=COUNTER, compact=True)


@pytest.mark.parametrize("policy", [_context(compact=True), _session], ids=["context", "session"])
def test_what_was_saved_is_what_was_not_sent(policy: Any) -> None:
    """By step and summed over calls it is the difference to the same without `compact`."""
    plain = replay(CHAT, _context(compact=False), counter=COUNTER, budget=9_000)
    tight = replay(CHAT, policy, counter=COUNTER, budget=9_000)
    assert plain.totals.saved_tokens == {}
    assert set(tight.totals.saved_tokens) == {"json", "repeats"}
    assert sum(tight.totals.saved_tokens.values()) == plain.totals.tokens - tight.totals.tokens > 0
    assert [row.references for row in tight.calls] == [0, 0, 0, 1]
    for row, other in zip(tight.calls, plain.calls, strict=True):
        assert sum(row.saved_tokens.values()) == other.tokens - row.tokens
    assert tight.totals.evicted == tight.totals.cut_moves == 0
    both = tight + tight
    assert both.totals.saved_tokens == {
        step: 2 * tokens for step, tokens in tight.totals.saved_tokens.items()
    }
    assert both.totals.references == 2


def test_the_table_and_the_page_say_what_was_saved_and_by_what() -> None:
    """A column beside the others, and a line with the steps; nothing where nobody asked for it."""
    plain = replay(CHAT, _context(compact=False), counter=COUNTER, budget=9_000, name="as it is")
    tight = replay(CHAT, _context(compact=True), counter=COUNTER, budget=9_000, name="compact")
    table, saved = replay_table([plain, tight]), tight.totals.saved_tokens
    assert f"{sum(saved.values()):,}" in table.splitlines()[2].split()
    line = (
        "compacted by compact: tokens saved, summed over calls:"
        f" json {saved['json']:,}, repeats {saved['repeats']:,}; 1 reference"
    )
    assert line in " ".join(table.split())
    assert "compacted" not in replay_table([plain])
    assert line in chart_page({"chat": [plain, tight]})
    assert tight.to_dict()["totals"]["saved_tokens"] == saved
