"""A long conversation in a SQLite file: summaries, a second process, recall, undo.

    python examples/chat_session.py
    python examples/chat_session.py --budget 12000 --store chats.db

The recorded agent session of this folder is added message by message, as an agent would. Every view is
checked: within the budget, and nothing a provider would refuse. No model is asked: the summarizer picks
what the user asked and which tools ran. Then another process opens the file and goes on.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trimtab import BudgetExceededError, Session, validate
from trimtab.session import SessionHooks
from trimtab.stores import SQLiteStore, Store

RECORDED = Path(__file__).with_name("agent_session.json")
NAME = "review"
MOST_TOOLS = 12


def main() -> None:
    """Play the conversation into a store, then open it in a second process."""
    parser = argparse.ArgumentParser(description="A conversation of hundreds of messages in one file.")
    parser.add_argument("--budget", type=int, default=8_000, help="tokens a request may have (8,000)")
    parser.add_argument("--store", type=Path, help="the SQLite file (one that is thrown away)")
    parser.add_argument("--second", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="trimtab-chat-") as folder:
        path = arguments.store or Path(folder) / "chats.db"
        with SQLiteStore(path) as store:
            if arguments.second:
                go_on(store)
                return
            if NAME in store.sessions():
                parser.exit(1, f"{path} holds a session {NAME!r} already: take another file.\n")
            try:
                play(store, arguments.budget)
            except BudgetExceededError as error:
                parser.exit(1, f"The conversation does not fit: {error}\n")
        size = path.stat().st_size
        print(f"\nThe file has {size / 1024:,.0f} KiB. Another process opens it:\n", flush=True)
        subprocess.run([sys.executable, __file__, "--second", "--store", str(path)], check=True)


def summarize(messages: Sequence[dict[str, Any]], existing: str | None) -> str:
    """Continue a summary: what the user asked, and how often each tool ran.

    A real one asks a model; trimtab.summaries has some.
    """
    text = existing or ""
    asked = re.findall(r"^- (.+)$", text, re.M)
    tools = Counter({name: int(count) for name, count in re.findall(r"(\w+) \((\d+)\)", text)})
    for message in messages:
        if message["role"] == "user":
            asked += [
                f"“{line[:90]}”" for line in message["content"].splitlines()[:1] if line[:1] not in "-T"
            ]
        tools.update(call["function"]["name"] for call in message.get("tool_calls") or ())
    ran = ", ".join(f"{name} ({count})" for name, count in tools.most_common(MOST_TOOLS))
    return "\n".join(["The user asked:", *(f"- {one}" for one in asked), f"Tools that ran: {ran or 'none'}."])


def play(store: Store, budget_tokens: int) -> None:
    """Add the recorded messages one by one, and check every view."""
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    system, *messages = recorded["messages"]
    print(
        f"{len(messages)} recorded messages; no model is asked. A view has {budget_tokens:,} tokens at most\n"
    )
    covered: list[int] = []

    def told(messages: list[Any], existing: str | None, summary: str, seconds: float) -> None:
        covered.append(len(messages))

    session = Session(
        budget_tokens,
        system=system["content"],
        tools=recorded["tools"],
        summarizer=summarize,
        hooks=SessionHooks(on_summarize=told),
        store=store,
        id=NAME,
    )
    sent_tokens = 0
    for at, message in enumerate(messages, 1):
        known, before_tokens = len(covered), sent_tokens
        session.add(message)
        sent_tokens = check(session)
        if len(covered) > known:
            into = f"{covered[-1]:>3} messages went into the summary"
            print(f"  message {at:>3}: {into}; view {before_tokens:>6,} -> {sent_tokens:>6,} tokens")
    print(f"\n{describe(session)}\n\n{session.summary or 'Everything fits: there is no summary.'}")


def go_on(store: Store) -> None:
    """What the second process does: it knows the name of the session and nothing else."""
    # Nobody listens here. A log keeps no functions, and leaving out the hooks it had would be an error.
    session = Session.open(store, NAME, summarizer=summarize, hooks={})
    print(describe(session))

    print("\nWhat is out of view is found again, here by words about emoji:")
    for event in session.recall("can it cut a family emoji in half", 2):
        print(f"  {event.version:>4}  {event.message['role']}: {shown(event.message)}")

    summaries = list(session.history(kinds=("summary",)))
    if summaries:
        before = session.status().summarized_messages
        undone = session.undo(summaries[-1].id)
        after = session.status().summarized_messages
        print(
            f"\nThe newest of {len(summaries)} summaries (version {undone.version}) is taken back:", end=" "
        )
        print(f"{after} messages are summarized, not {before}.\n{describe(session)}")

    session.add({"role": "assistant", "content": "You have to implement one method: evict(request)."})
    session.add({"role": "user", "content": "Thank you. What did I ask you first?"})
    print(f"\nThe talk goes on. {describe(session)}")
    roles = Counter(message["role"] for message in session.messages())
    print(f"The view: {', '.join(f'{count} {role}' for role, count in roles.items())}; it is valid and fits.")


def describe(session: Session) -> str:
    """Say where the session stands."""
    status = session.status()
    return (
        f"Version {status.version}: {check(session):,} of {status.budget_tokens:,} tokens in view;"
        f" {status.summarized_messages} messages summarized, {status.pending_messages} waiting,"
        f" {status.recent_messages} recent."
    )


def shown(message: dict[str, Any]) -> str:
    """Cut what a message says to a line."""
    text = " ".join(str(message.get("content") or message.get("tool_calls")).split())
    return text if len(text) < 80 else f"{text[:79]}…"


def check(session: Session) -> int:
    """Trust nothing: the view is within the budget, and a provider would take it; give its tokens."""
    fitted = session.fit()
    assert fitted.report.tokens_after <= session.budget_tokens
    assert not [one for one in validate(fitted.messages) if one.fault]
    return fitted.report.tokens_after


if __name__ == "__main__":
    main()
