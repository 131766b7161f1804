"""Rollouts of Codex, one JSON object a line, read into the Responses form.

A rollout has the items of the conversation as they were sent and answered, in order, and beside them events:
what each call was billed, that turns were rolled back, and what a compaction put in the place of all items.

Sources: codex-rs/protocol/src (protocol.rs, models.rs) and core/src/session/rollout_reconstruction.rs in
github.com/openai/codex; rollouts in yoavf/ai-sessions and daaain/claude-code-log (2026-11).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any, NamedTuple

from trimtab._shared.checks import is_number
from trimtab.errors import FormatError
from trimtab.formats.programs import CODEX
from trimtab.formats.recordings.base import Bill, ForeignConversation, Reader, Source
from trimtab.formats.recordings.lines import (
    first_lines,
    line_of,
    note_of,
    object_of,
    refuse,
    seconds_of,
    times_of,
)
from trimtab.formats.values import Dict
from trimtab.report.text import plural

_LINES = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})
"""Types of lines that hold a payload."""

_HEAD = frozenset({"id", "timestamp", "instructions", "git"})
"""Keys of the first line of older rollouts, which has no type."""

_INPUT = frozenset({"function_call_output", "custom_tool_call_output", "local_shell_call_output"})
"""Items that answer a call: with messages of others than the model, all that is not an answer."""

_NEEDS = {
    "message": ("role", "content"),
    "function_call": ("name", "call_id"),
    "custom_tool_call": ("name", "call_id"),
    "function_call_output": ("call_id",),
    "custom_tool_call_output": ("call_id",),
}
"""What an item cannot be without, by its type."""

_UNSENT = frozenset({"ghost_snapshot", "other"})
"""Types of items that Codex writes for itself."""

_CONTEXT = (
    "<environment_context>",
    "<user_instructions>",
    "<permissions instructions>",
    "<user_shell_command>",
    "<skill>",
    "<turn_aborted>",
    "<subagent_notification>",
    "# AGENTS.md instructions",
)
"""What the text of a user's message begins with that the program wrote: no turn begins with it."""

_UNRECORDED = "The tools are not in the log: a bill is higher than the count by what they take."


def owns(source: Source, /) -> bool:
    """Tell whether a recording is a rollout of Codex, by its first two lines or the keys of a document."""
    if isinstance(source, dict):
        return isinstance(source.get("items"), list) and _is_head(source.get("session"))
    lines = first_lines(source)
    if not lines:
        return False
    if _is_head(lines[0]):
        second = lines[1] if len(lines) > 1 else {}
        return "record_type" in second or "instructions" in lines[0] or _is_item(second)
    return all(_is_line(line) for line in lines)


def _is_line(line: Dict) -> bool:
    kind = line.get("type")
    return isinstance(kind, str) and kind in _LINES and isinstance(line.get("payload"), dict)


def _is_head(line: Any) -> bool:
    return (
        isinstance(line, dict)
        and line.keys() <= _HEAD
        and isinstance(line.get("id"), str)
        and isinstance(line.get("timestamp"), str)
    )


def _is_item(line: Dict) -> bool:
    kind = line.get("type")
    return isinstance(kind, str) and (kind in _NEEDS or kind in ("reasoning", "local_shell_call"))


def read(source: Source, /) -> list[ForeignConversation]:
    """Read the conversations of a rollout: the last first, others as they were begun.

    Linear in its lines and in the items it gives: each conversation has those it shares with others, too.

    Raises:
        FormatError: A line is not as Codex writes it, or there is no item.
    """
    if isinstance(source, dict):
        source = [source["session"], *source["items"]]
    rollout = _Rollout()
    for at, line in enumerate(source):
        rollout.add(at, line)
    return rollout.conversations()


class _State(NamedTuple):
    """A conversation as it was when it was abandoned."""

    label: str
    items: list[Dict]
    times: list[float | None]
    bills: list[Bill]
    model: str | None
    note: str


class _Rollout:
    """The items of a conversation as they grow, are rolled back and replaced."""

    def __init__(self) -> None:
        self.name = ""
        self.model: str | None = None
        self.instructions: str | None = None
        self.items: list[Dict] = []
        self.times: list[float | None] = []
        self.turns: list[int] = []
        """Where what a user wrote is, of those items."""
        self.bills: list[Bill] = []
        self.unbilled: int | None = None
        """Where the answer begins of which no bill came yet."""
        self.bills_before: bool | None = None
        """A bill is written before its answer, as in older versions; None until there is one."""
        self.total: Any = None
        self.note = ""
        self.past: list[_State] = []
        self.compactions = 0
        self.branches = 0
        self.skipped: Counter[str] = Counter()

    def add(self, at: int, value: Any) -> None:
        """Take in a line."""
        if isinstance(value, dict) and "type" not in value and "payload" not in value:
            if "record_type" in value:
                return
            if at == 0 and _is_head(value):
                self._meta(value)
                return
        line = line_of(value, at)
        kind = line["type"]
        if kind in _LINES:
            payload = object_of(line, "payload", at, f"a line of type {kind}")
            self._line(kind, payload, at, seconds_of(line.get("timestamp"), at))
        elif "payload" in line:
            self.skipped[f"lines of type {kind}"] += 1
        else:
            self._item(line, at, None)  # as older versions write them

    def _line(self, kind: str, payload: Dict, at: int, time: float | None) -> None:
        if kind == "session_meta":
            self._meta(payload)
        elif kind == "turn_context":
            self.model = payload["model"] if isinstance(payload.get("model"), str) else self.model
        elif kind == "response_item":
            self._item(payload, at, time, "payload")
        elif kind == "compacted":
            self._compact(payload, at, time)
        elif payload.get("type") == "token_count":
            self._bill(payload, at)
        elif payload.get("type") == "thread_rolled_back":
            self._roll_back(payload, at)

    def _meta(self, meta: Dict) -> None:
        """Take the first of what is said of the session; later lines are of one it was forked from."""
        if not self.name:
            self.name = str(meta.get("id") or meta.get("session_id") or "")
        base = meta.get("base_instructions")
        text = base.get("text") if isinstance(base, dict) else None
        text = text or meta.get("instructions")
        if self.instructions is None and isinstance(text, str) and text:
            self.instructions = text

    def _item(self, item: Dict, at: int, time: float | None, *keys: str | int) -> None:
        item = _item_of(item, at, *keys)
        if item["type"] in _UNSENT:
            self.skipped[f"items of type {item['type']}"] += 1
            return
        self._put(item, time)

    def _put(self, item: Dict, time: float | None) -> None:
        if _begins_turn(item):
            self.turns.append(len(self.items))
        if item.get("role") == "user" and self.bills and self.bills[-1].at == self.unbilled:
            self.unbilled = None  # billed before it came, as in older versions
        if _is_answer(item) and self.unbilled is None:
            self.unbilled = len(self.items)
        self.items.append(item)
        self.times.append(time)

    def _bill(self, payload: Dict, at: int) -> None:
        """Give a bill its answer: the one after it in older versions, the one before it in newer ones."""
        told = payload.get("info")
        if told is None:
            return
        if not isinstance(told, dict):
            refuse(at, "'info' must be an object", "payload", "info")
        usage, total = told.get("last_token_usage"), told.get("total_token_usage")
        if not isinstance(usage, dict) or not is_number(usage.get("input_tokens")):
            return
        if not usage["input_tokens"]:
            return
        if total is not None and total == self.total:
            return  # told again, with new limits of the account
        self.total = total
        is_behind = bool(self.items) and _is_answer(self.items[-1])
        if self.bills_before is None:
            self.bills_before = self.unbilled is None
        start = len(self.items) if self.bills_before and not is_behind else self.unbilled
        if start is None or (self.bills and self.bills[-1].at == start):
            self.skipped["bills of calls whose answers are not in the log"] += 1
        else:
            self.bills.append(Bill(at=start, usage=_usage(usage), model=self.model))
        self.unbilled = None

    def _compact(self, payload: Dict, at: int, time: float | None) -> None:
        """Begin again with what a compaction put in the place of all items."""
        self.compactions += 1
        if self.items:
            self._leave(f"before compaction {self.compactions}", 0)
        old, history = self.items, payload.get("replacement_history")
        self.items, self.times, self.turns, self.bills = [], [], [], []
        self.note = ""
        if history is not None and not isinstance(history, list):
            refuse(at, "'replacement_history' must be a list", "payload", "replacement_history")
        if history is not None:
            for index, entry in enumerate(history):
                held = entry.get("item") if isinstance(entry, dict) and "type" not in entry else None
                kept = entry if held is None else held
                self._item(kept, at, None, "payload", "replacement_history", index)
        elif isinstance(summary := payload.get("message"), str):
            for item in old:
                if _begins_turn(item):
                    self._put(item, None)
            self._put(
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": summary}]},
                time,
            )
            self.note = (
                "What the compaction kept is not in the log: users' messages and the summary are taken."
            )
        else:
            refuse(at, "it has neither 'replacement_history' nor 'message'", "payload")
        self.unbilled = None

    def _roll_back(self, payload: Dict, at: int) -> None:
        """Take off the last turns; what they were is a conversation if a model answered."""
        count = payload.get("num_turns")
        if not isinstance(count, int) or isinstance(count, bool) or count < 0:
            refuse(at, "'num_turns' must be a number of turns", "payload", "num_turns")
        if not count or not self.turns:
            return
        start = self.turns[-min(count, len(self.turns))]
        if any(map(_is_answer, self.items[start:])):
            self.branches += 1
            self._leave(f"branch {self.branches}", start)
            self.items, self.times = self.items[:start], self.times[:start]
        else:
            del self.items[start:], self.times[start:]
        while self.turns and self.turns[-1] >= start:
            self.turns.pop()
        while self.bills and self.bills[-1].at >= start:
            self.bills.pop()
        self.unbilled = None

    def _leave(self, label: str, start: int) -> None:
        bills = [bill for bill in self.bills if start <= bill.at]
        note = self.note
        if len(bills) < len(self.bills):
            note = (
                f"The bills of {plural(len(self.bills) - len(bills), 'call')} it shares are in another alone."
            )
        self.past.append(_State(label, self.items, self.times, bills, self.model, note))

    def conversations(self) -> list[ForeignConversation]:
        """Make the conversations, the last first."""
        states = [
            _State("", self.items, self.times, self.bills, self.model, self.note),
            *self.past,
        ]
        states = [state for state in states if state.items]
        if not states:
            raise FormatError("the rollout has no item of a user or a model")
        made = [self._conversation(state, lone=len(states) == 1) for state in states]
        made[0] = replace(made[0], notes=(*made[0].notes, *note_of(self.skipped)))
        return made

    def _conversation(self, state: _State, *, lone: bool) -> ForeignConversation:
        body: Dict = {} if state.model is None else {"model": state.model}
        notes = [_UNRECORDED]
        if self.instructions is None:
            notes = ["Instructions and tools are not in the log: a bill is higher than the count by them."]
        elif not any(_holds(item, self.instructions) for item in state.items):
            body["instructions"] = self.instructions
        body["input"] = state.items
        # What was billed and not answered, as a compaction, is told of no messages that are here.
        bills = tuple(bill for bill in state.bills if bill.at < len(state.items))
        return ForeignConversation(
            program=CODEX,
            name="" if lone else " ".join(filter(None, (self.name, state.label))),
            format="openai_responses",
            body=body,
            times=times_of(state.times),
            bills=bills,
            complete=False,
            notes=tuple(filter(None, (*notes, state.note))),
        )


def _item_of(item: Any, at: int, *keys: str | int) -> Dict:
    """Return an item as the API takes it."""
    if not isinstance(item, dict):
        refuse(at, "each item of it must be an object", *keys)
    kind = item.get("type")
    if kind is None and "role" in item:
        item, kind = {**item, "type": "message"}, "message"
    if not isinstance(kind, str):
        refuse(at, "its item has no 'type'", *keys, "type")
    for key in _NEEDS.get(kind, ()):
        if item.get(key) is None:
            refuse(at, f"its {kind} has no {key!r}", *keys, key)
    output = item.get("output")
    if kind in _INPUT and isinstance(output, dict) and isinstance(output.get("content"), str):
        return {**item, "output": output["content"]}  # as older versions held what they sent as a text
    return {**item, "type": "compaction"} if kind == "compaction_summary" else item


def _is_answer(item: Dict) -> bool:
    kind: str = item["type"]
    if kind == "message":
        return bool(item["role"] == "assistant")
    return kind == "reasoning" or kind.endswith("_call")


def _begins_turn(item: Dict) -> bool:
    if item["type"] != "message" or item["role"] != "user":
        return False
    return not _first_text(item).lstrip().startswith(_CONTEXT)


def _first_text(item: Dict) -> str:
    content = item.get("content")
    if isinstance(content, list) and content and isinstance(content[0], dict):
        content = content[0].get("text")
    return content if isinstance(content, str) else ""


def _holds(item: Dict, instructions: str) -> bool:
    """Tell whether a message of the user or the developer has the instructions already."""
    return item["type"] == "message" and item["role"] != "assistant" and instructions in _first_text(item)


def _usage(told: Dict) -> Dict:
    """Write a usage as the API did: Codex puts its details beside it."""
    usage: Dict = {key: told[key] for key in ("input_tokens", "output_tokens", "total_tokens") if key in told}
    if told.get("cached_input_tokens") is not None:
        usage["input_tokens_details"] = {"cached_tokens": told["cached_input_tokens"]}
    if told.get("reasoning_output_tokens") is not None:
        usage["output_tokens_details"] = {"reasoning_tokens": told["reasoning_output_tokens"]}
    return usage


READER = Reader(owns=owns, read=read, by_line=True)
