"""Logs of coding agents, made up: lines as Claude Code and Codex write them, of few words or of a request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from trimtab.formats import Dict

SESSION = "3c0e"


class ClaudeLog:
    """Lines of a session of Claude Code, each behind the one before unless a parent is named."""

    def __init__(self, session: str = SESSION) -> None:
        self.lines: list[Dict] = []
        self.session = session
        self.last: str | None = None

    def line(self, kind: str, /, **fields: Any) -> str:
        """Add a line; return its id."""
        uuid = f"u{len(self.lines)}"
        parent = fields.pop("parent", self.last)
        stamp = f"2026-03-01T10:{len(self.lines) // 60 % 60:02}:{len(self.lines) % 60:02}.000Z"
        named = {"uuid": uuid, "parentUuid": parent, "sessionId": self.session, "isSidechain": False}
        self.lines.append(
            {**named, "type": kind, "timestamp": stamp, "version": "2.1.0", "cwd": "/p", **fields}
        )
        self.last = str(self.lines[-1]["uuid"])
        return self.last

    def user(self, content: Any, /, **fields: Any) -> str:
        """Add what a user or a tool said."""
        role = fields.pop("role", "user")
        return self.line("user", message={"role": role, "content": content}, **fields)

    def answer(self, name: str, *blocks: Any, model: str = "claude-sonnet-4-5", **fields: Any) -> str:
        """Add the lines of an answer, one a block; its usage grows with them."""
        parent = {"parent": fields.pop("parent")} if "parent" in fields else {}
        for at, block in enumerate(blocks):
            said = {"type": "text", "text": block} if isinstance(block, str) else block
            message = {
                **{"id": name, "type": "message", "role": "assistant", "model": model, "content": [said]},
                **{"stop_reason": None, "usage": {"input_tokens": 100, "output_tokens": at + 1}},
            }
            self.line("assistant", message=message, requestId=f"req_{name}", **fields, **parent)
            parent = {}
        return str(self.last)

    def result(self, call: str, text: str = "ok", **fields: Any) -> str:
        """Add the result of a call."""
        block = {"type": "tool_result", "tool_use_id": call, "content": text}
        return self.user([block], toolUseResult={"stdout": text}, **fields)

    def turn(self, number: int) -> str:
        """Add a question and its answer."""
        self.user(f"question {number}")
        return self.answer(f"msg_{number}", f"answer {number}")

    def compact(self, summary: str = "what was said", **told: Any) -> str:
        """Add a compaction."""
        kept = {"trigger": "auto", "preTokens": 9, **told}
        last = self.last
        self.line(
            "system", subtype="compact_boundary", parent=None, logicalParentUuid=last, compactMetadata=kept
        )
        return self.user(summary, isCompactSummary=True, isVisibleInTranscriptOnly=True)


def use(call: str) -> Dict:
    """Make a call of a tool."""
    return {"type": "tool_use", "id": call, "name": "Read", "input": {"file": call}}


def claude_lines(body: Mapping[str, Any]) -> list[Dict]:
    """Write a request as Claude Code logs it: a line a block, results behind the lines of their calls."""
    log, calls, numbers = ClaudeLog(), dict[str, str](), count()
    for message in body["messages"]:
        content = message["content"]
        if message["role"] == "assistant":
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
            name = f"msg_{next(numbers)}"
            for block in blocks:
                log.answer(name, block, model=body["model"])
                calls.setdefault(str(block.get("id")), str(log.last))
            continue
        results = [] if isinstance(content, str) else [one for one in content if one["type"] == "tool_result"]
        for block in results[:-1]:
            log.user([block], parent=calls.get(block["tool_use_id"], log.last))
        if results:
            rest = [one for one in content if one["type"] != "tool_result"]
            log.user([results[-1], *rest], parent=calls.get(results[-1]["tool_use_id"], log.last))
        else:
            log.user(content, role=message["role"])
    return log.lines


class Rollout:
    """Lines of a rollout of Codex."""

    def __init__(self, **meta: Any) -> None:
        self.lines: list[Dict] = []
        self.spent = 0
        self.line("session_meta", {"id": "r1", "cwd": "/p", "cli_version": "0.99.0", **meta})
        self.line("turn_context", {"cwd": "/p", "model": "gpt-5-codex"})

    def line(self, kind: str, payload: Dict, /) -> None:
        """Add a line."""
        stamp = f"2026-03-01T10:{len(self.lines) // 60 % 60:02}:{len(self.lines) % 60:02}.000Z"
        self.lines.append({"timestamp": stamp, "type": kind, "payload": payload})

    def item(self, kind: str, /, **fields: Any) -> None:
        """Add an item."""
        self.line("response_item", {"type": kind, **fields})

    def user(self, text: str) -> None:
        """Add what a user said, and the event that shows it."""
        self.item("message", role="user", content=[{"type": "input_text", "text": text}])
        self.line("event_msg", {"type": "user_message", "message": text})

    def answer(self, text: str) -> None:
        """Add what the model said."""
        self.item("message", role="assistant", content=[{"type": "output_text", "text": text}])

    def call(self, name: str) -> None:
        """Add a call of a tool."""
        self.item("function_call", name="shell", arguments="{}", call_id=name)

    def result(self, name: str) -> None:
        """Add its result."""
        self.item("function_call_output", call_id=name, output="ok")

    def bill(self, tokens: int, *, again: bool = False) -> None:
        """Add what a call was billed, or say it once more."""
        self.spent += 0 if again else tokens
        last = {
            "input_tokens": tokens,
            "cached_input_tokens": 5,
            "output_tokens": 2,
            "reasoning_output_tokens": 1,
        }
        info = {"last_token_usage": last, "total_token_usage": {"input_tokens": self.spent}}
        self.line("event_msg", {"type": "token_count", "info": info, "rate_limits": {}})


def codex_lines(body: Mapping[str, Any]) -> list[Dict]:
    """Write a request as Codex logs it."""
    told = body.get("instructions")
    rollout = Rollout(base_instructions={"text": told}) if told else Rollout()
    rollout.line("turn_context", {"model": body["model"]})
    for item in items_of(body["input"]):
        rollout.line("response_item", item)
    return rollout.lines


def items_of(given: str | Sequence[Dict]) -> Iterator[Dict]:
    """Write the input of a request as items with types."""
    if isinstance(given, str):
        yield {"type": "message", "role": "user", "content": [{"type": "input_text", "text": given}]}
        return
    for item in given:
        yield item if "type" in item or "role" not in item else {"type": "message", **item}


def claude_session() -> list[Dict]:
    """Write a session of Claude Code with all that one may have."""
    log = ClaudeLog()
    log.user("<command-name>/model</command-name>", isMeta=True)
    start = log.turn(1)
    log.user([{"type": "text", "text": "look"}])
    first = log.answer("m", "hi", use("a"))
    second = log.answer("m", use("b"))
    log.result("a", parent=first)
    log.user([{"type": "tool_result", "tool_use_id": "b", "content": [{"type": "text", "text": "x"}]}])
    log.line("attachment", attachment={"type": "queued_command", "prompt": "x"})
    log.line("system", subtype="local_command", content="<local-command-stdout>")
    kept = log.turn(2)
    log.last = start
    log.turn(3)
    log.user("s", isSidechain=True, parent=None)
    log.answer("q", "x", isSidechain=True)
    log.user("s", isSidechain=True, agentId="f", parent=None)
    log.last = kept
    log.compact(preservedMessages={"uuids": [first, second, kept], "anchorUuid": "x"})
    end = log.turn(4)
    log.compact(preservedSegment={"headUuid": log.lines[-2]["uuid"], "tailUuid": end})
    log.turn(5)
    return log.lines


def codex_session() -> list[Dict]:
    """Write a rollout of Codex with all that one may have."""
    rollout = Rollout(base_instructions={"text": "x"}, instructions="y")
    for number in range(4):
        rollout.user("x")
        rollout.item("reasoning", summary=[])
        rollout.call("a")
        rollout.bill(number + 1)
        rollout.item("function_call_output", call_id="a", output={"content": "x"})
        rollout.answer("x")
        if number == 1:
            rollout.line("event_msg", {"type": "thread_rolled_back", "num_turns": 1})
        kept = [{"type": "compaction_summary"}, {"item": {"type": "message", "role": "user", "content": "x"}}]
        rollout.line("compacted", {"message": "x", **({"replacement_history": kept} if number else {})})
    return rollout.lines
