"""A session of sliding-context as a `Session`: options, steps, hooks and what it shows, translated."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.conformance.counters import text_function
from tests.conformance.judging import Answer, OutOfScope, attempt
from tests.conformance.scripted import NAMES, number, shape, summarizer_kind, summary_of
from trimtab import Session, counter_from_text
from trimtab.errors import ContextError


def summarizer_of(
    spec: Mapping[str, Any] | None, calls: list[Any]
) -> Callable[[list[Any], str | None], Any] | None:
    """Make the summarizer a vector names; it writes down what it is asked."""
    if spec is None:
        return None

    def summarize(messages: list[Any], existing: str | None) -> Any:
        said, roles = [message["content"] for message in messages], [message["role"] for message in messages]
        calls.append({"call": len(calls) + 1, "messages": said, "roles": roles, "existing": existing})
        return summary_of(spec, calls[-1])

    async def slowly(messages: list[Any], existing: str | None) -> Any:
        await asyncio.sleep(0)
        return summarize(messages, existing)

    return slowly if summarizer_kind(spec) == "slow" else summarize


class Sitting:
    """Runs the steps of one case and writes down what each of them caused."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._calls: list[Any] = []
        self._told: list[Any] = []
        self._hooks: Mapping[str, Any] | None = None
        self._given = options
        self.session = Session(
            number(options.get("token_budget")),
            **{"summary_role": "system"}  # the reference's default, whatever the summary is made of
            | {ours: options[theirs] for theirs, ours in NAMES.items() if theirs in options},
            trust_summaries=True,
            must_keep=None,  # the reference restates nothing
            **self._functions(options),
            pending_first=True,
            target_ratio=1.0,
        )

    def _functions(self, options: Mapping[str, Any]) -> dict[str, Any]:
        self._hooks = options.get("hooks")
        text = text_function(options.get("counter") or {"kind": "approx"})
        return {
            "summarizer": summarizer_of(options.get("summarizer"), self._calls),
            "counter": counter_from_text(text, message_overhead=options.get("message_overhead", 4)),
            "hooks": {name: self._hook(name, keys) for name, keys in HOOKS.items()},
        }

    def _hook(self, name: str, keys: Sequence[str]) -> Callable[..., None]:
        def hook(*arguments: Any) -> None:
            said = {
                key: _contents(value) if isinstance(value, list) else value
                for key, value in zip(keys, arguments, strict=False)  # how long a summary took is no answer
            }
            self._told.append({"hook": name, **said})
            if name in (self._hooks or {}).get("throw_in", ()):
                raise RuntimeError(f"hook {name} threw")

        return hook

    def run(self, step: Mapping[str, Any], *, shows: bool) -> Answer:
        """Carry out a step."""
        self._told.clear()
        asked = len(self._calls)
        done: dict[str, Any] = {"do": step["do"]}
        try:
            done.update(self._carry_out(step))
        except ContextError as error:
            done["error"] = type(error).__name__
        if self._told and self._hooks is not None:
            done["hooks"] = list(self._told)
        if self._calls[asked:]:
            done["summarizer_calls"] = self._calls[asked:]
        if shows or step.get("snapshot"):
            done["after"] = self.shown()
        return done

    def _carry_out(self, step: Mapping[str, Any]) -> Mapping[str, Any]:
        do, session = step["do"], self.session
        if do in ("add", "add_many", "add_same_object_twice", "add_concurrent"):
            asyncio.run(self._add(step))
        elif do == "set_budget":
            asyncio.run(session.aset_budget(number(step["value"])))
        elif do == "set_anchor":
            session.set_anchors(step["messages"])
        elif do == "clear":
            session.clear()
        elif do == "round_trip":
            snapshot = json.loads(json.dumps(session.snapshot()))
            self.session = Session.restore(snapshot, **self._functions(step["options"]))
        elif do == "serialize":
            return {"state": self._saved()}
        else:
            raise OutOfScope(f"step {do}")
        return {}

    async def _add(self, step: Mapping[str, Any]) -> None:
        messages = step["messages"] if "messages" in step else [step["message"]]
        if step["do"] == "add_concurrent":
            await asyncio.gather(*map(self.session.aadd, messages))
            return
        for message in messages * 2 if step["do"] == "add_same_object_twice" else messages:
            await self.session.aadd(message)

    def shown(self) -> Answer:
        """Say what the session shows, in the names of sliding-context."""
        session = self.session
        parts, count = session.token_breakdown, session.status()
        zones = self._zones()
        return {
            "messages": attempt(lambda: {"messages": [shape(one) for one in session.messages()]}).get(
                "messages", "BudgetExceededError"
            ),
            "summary": session.summary,
            "token_count": session.token_count,
            "breakdown": {
                "system": parts.system,
                "anchor": parts.anchors,
                "summary": parts.summary,
                "recent": parts.recent,
                "total": parts.total,
            },
            "recent_count": session.recent_message_count,
            "total_count": session.total_message_count,
            "zones": {
                "recent": _contents(zones["recent"]),
                "pending": _contents(zones["pending"]),
                "summary_rounds": zones["rounds"],
                "token_counts": {
                    "system": parts.system,
                    "anchor": parts.anchors,
                    "summary": parts.summary,
                    "recent": count.recent_tokens,
                    "pending": count.pending_tokens,
                },
            },
        }

    def _zones(self) -> dict[str, Any]:
        """Read from the log which messages are recent and which wait."""
        units: dict[int, list[Any]] = {}
        waiting: set[int] = set()
        rounds = 0
        for event in self.session.history(kinds=None):
            if event.kind == "message":
                first = event.data.get("joins", event.version)
                units.setdefault(first, []).append((event.version, event.data["message"]))
                waiting.discard(first)
            elif event.kind == "evicted":
                waiting.update(members[0] for members in event.data["units"])
            elif event.kind == "summary":
                rounds += 1
                for members in event.data["covers"]:
                    del units[members[0]]
                    waiting.discard(members[0])
            elif event.kind == "cleared":
                units, waiting, rounds = {}, set(), 0
        listed = {
            name: sorted(one for first, unit in units.items() if (first in waiting) == waits for one in unit)
            for name, waits in (("recent", False), ("pending", True))
        }
        return {name: [message for _, message in found] for name, found in listed.items()} | {
            "rounds": rounds
        }

    def _saved(self) -> Answer:
        """Write the session as sliding-context writes it, from our snapshot and what it shows."""
        snapshot, shown, zones = self.session.snapshot(), self.shown(), self._zones()
        kept = {theirs: snapshot["options"][ours] for theirs, ours in NAMES.items() if theirs in self._given}
        options = {
            "token_budget": self.session.budget_tokens,
            **{name: value for name, value in kept.items() if name != "summarizer"},
        }
        return {
            "options": {_camel(name): value for name, value in options.items()},
            "messages": zones["recent"],
            "summary": self.session.summary,
            "anchor": self.session.anchors,
            "pendingBuffer": zones["pending"],
            "summaryRounds": zones["rounds"],
            "tokenCounts": shown["zones"]["token_counts"],
            "version": 1,  # of the form written here; that of a snapshot is another
        }


HOOKS = {
    "on_evict": ("messages", "reason"),
    "on_summarize": ("input", "existing", "summary"),
    "on_budget_exceeded": ("total", "budget"),
    "on_summary_compressed": ("old", "new"),
}
"""What a vector calls the arguments of each hook."""


def _contents(messages: Sequence[Mapping[str, Any]]) -> list[Any]:
    return [message["content"] for message in messages]


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


def run_session(data: Mapping[str, Any]) -> Answer:
    """Run a whole case; what it logs of hooks and summarizers that fail is not wanted here."""
    log = logging.getLogger("trimtab.session")
    log.disabled = True
    try:
        sitting = Sitting(data["options"])
        steps = [sitting.run(step, shows=data.get("snapshot_each", False)) for step in data["steps"]]
        return {"steps": steps, "final": sitting.shown()}
    finally:
        log.disabled = False


def told(expected: Mapping[str, Any]) -> Answer:
    """Write what a vector expects in our words: a RangeError is a ConfigurationError."""
    if "error" in expected:
        return {"error": _word(expected["error"])}
    steps = [
        {**step, "error": _word(step["error"])} if "error" in step else dict(step)
        for step in expected["steps"]
    ]
    return {**expected, "steps": steps}


def _word(error: Mapping[str, Any]) -> str:
    return "ConfigurationError" if error["type"] == "RangeError" else str(error["type"])
