"""Events of a log in words, a line each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from trimtab.formats import detect
from trimtab.report.text import plural, runs
from trimtab.session.facts import fact_in
from trimtab.session.rule_record import SessionRule
from trimtab.stores import Event
from trimtab.strategies.fact_extractor import Fact


def event_text(event: Event) -> str:
    """Describe an event: a message's text, or what was decided."""
    if event.kind == "message":
        return str(detect([event.message]).transcript(event.message))
    return f"({event.kind}) {_DETAILS[event.kind](event.data) if event.kind in _DETAILS else ''}".rstrip()


class Gap(NamedTuple):
    """A run of pruned events, by its first and last version."""

    first: int
    last: int

    @property
    def text(self) -> str:
        """What an event's text would be."""
        return f"(pruned) {plural(self.last - self.first + 1, 'event')} up to version {self.last:,}"


def with_gaps(events: Iterable[Event], *, after: int, until: int) -> Iterator[Event | Gap]:
    """Put a gap where events were pruned, however many, of those behind a version up to another."""
    known = after
    for event in events:
        if event.version > known + 1:
            yield Gap(known + 1, event.version - 1)
        yield event
        known = event.version
    if until > known:
        yield Gap(known + 1, until)


def _runs(units: Iterable[Iterable[int]]) -> str:
    return runs(version for unit in units for version in unit)


def fact_text(fact: Fact) -> str:
    """Describe a fact: its text, its kind, and what it is ranked by where that differs from the default."""
    parts = [
        fact.kind or "",
        f"weight {fact.weight:g}" if fact.weight != 1.0 else "",
        f"confirmed {plural(fact.confirmations, 'time')}" if fact.confirmations else "",
    ]
    said = ", ".join(filter(None, parts))
    return f"{fact.text} ({said})" if said else fact.text


def rule_text(rule: SessionRule) -> str:
    """Describe a rule: where it is, its text, and what it is."""
    of = "of the host" if rule.by == "host" else f"{rule.kind}, strength {rule.strength}"
    times = f", said {plural(rule.times, 'time')}" if rule.times > 1 else ""
    return f"{rule.place:<10}  {' '.join(rule.text.split())} ({of}{times})"


def _values(data: Mapping[str, Any]) -> str:
    """Say what became of the exact values that a summary must keep."""
    checked = data.get("checked")
    if checked is None or not checked["values"]:
        return ""
    kept = checked["values"] - checked["lost"]
    return f", {kept:,} of {plural(checked['values'], 'value')} kept"


def _switch(data: Mapping[str, Any]) -> str:
    """Say which model was switched to, and what was before it."""
    before = data.get("switch")
    if before is None:
        return ""
    here, there = before["model"] or "no model", data["options"]["model"] or "no model"
    return f"switched from {here} and {before['budget_tokens']:,} tokens to {there}: "


_DETAILS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "options": lambda data: (
        f"{_switch(data)}{data['options']['budget_tokens']:,} tokens,"
        f" counted by {data['options']['counted_by']}"
    ),
    "evicted": lambda data: f"{_runs(data['units'])} from the recent messages",
    "summary": lambda data: (
        "removed by redact"
        if data.get("stale")
        else f"of {_runs(data['covers'])}{_values(data)}: {data['text']}"
    ),
    "recalled": lambda data: f"{_runs(data['units']) or 'nothing'} for the question in {data['question']}",
    "rules": lambda data: (
        f"of the host: {' '.join(data['host']) or 'none'}"
        if "host" in data
        else f"{plural(len(data['register']), 'rule')} found"
        if "register" in data
        else " ".join(one["text"] for one in data.get("rules", ())) or "removed by redact"
    ),
    "fact": lambda data: "removed by redact" if data.get("stale") else fact_text(fact_in(data)),
    "facts": lambda data: (
        f"{data['facts']:,} from {data['messages']:,} messages"
        + (f", {data['confirmations']:,} found again" if data.get("confirmations") else "")
    ),
    "failed": lambda data: f"no {data.get('of', 'summary')}: {data['why']}",
    "budget": lambda data: f"{data['budget_tokens']:,} tokens from here",
    "usage": lambda data: (
        f"{data['input_tokens']:,} tokens reported for a view counted as {data['counted_tokens']:,}"
    ),
    "anchors": lambda data: f"{plural(len(data['anchors']), 'anchor')} from here",
    "abridged": lambda data: f"goes on from version {data['of']:,} of a log that is not here",
    "pinned": lambda data: f"{data['event']}",
    "unpinned": lambda data: f"{data['event']}",
    "undone": lambda data: f"{data['event']} (version {data['version']}) and every decision after it",
    "redacted": lambda data: ", ".join(data["events"]),
    "pruning": lambda data: (
        f"what is older than version {data['before']:,}, but for what is still needed; from version"
        f" {data['oldest']:,} on views can be shown"
    ),
    "erased": lambda data: (
        f"{plural(data['events'], 'event')} pruned by version {data['of']:,},"
        f" {plural(data['messages'], 'message')} of them"
    ),
    "popped": lambda data: f"{data['event']} (version {data['gone'][-1][0]})",
}
