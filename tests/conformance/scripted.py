"""What the sessions of sliding-context's vectors are written in: option names, numbers, summarizers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.conformance.judging import OutOfScope, kind_of

NAMES = {
    "system_prompt": "system",
    "strategy": "summary_mode",
    "max_summary_tokens": "max_summary_tokens",
    "min_recent_tokens": "min_recent_tokens",
    "summarize_threshold_tokens": "summarize_threshold_tokens",
    "summarize_threshold_messages": "summarize_threshold_messages",
    "max_summary_rounds": "max_summary_rounds",
    "summary_role": "summary_role",
    "anchor": "anchors",
    "max_anchor_tokens": "max_anchor_tokens",
}
"""Its options that are plain data, and ours."""


def number(value: Any) -> Any:
    """Read a number that JSON cannot hold."""
    return float(value) if value in ("Infinity", "-Infinity", "NaN") else value


def shape(message: Mapping[str, Any]) -> dict[str, Any]:
    """Write a message as vectors show it: of calls their ids."""
    shown = dict(message)
    if "tool_calls" in shown:
        shown["tool_calls"] = [call["id"] for call in shown["tool_calls"]]
    return shown


SUMMARIZERS = (
    *("const", "numbered", "concat", "slow", "sized"),
    *("fail", "fail_calls", "empty", "undefined"),
)


def summarizer_kind(spec: Mapping[str, Any]) -> str:
    """Return the kind of a summarizer.

    Raises:
        OutOfScope: Nobody here knows it.
    """
    kind = kind_of(spec, "summarizer")
    if kind not in SUMMARIZERS:
        raise OutOfScope(f"summarizer {kind}")
    return kind


def summary_of(spec: Mapping[str, Any], call: Mapping[str, Any]) -> Any:
    """Answer as the summarizer a vector names.

    Raises:
        RuntimeError: It is one that fails.
    """
    kind, asked, messages = spec["kind"], call["call"], call["messages"]
    if kind == "fail" or (kind == "fail_calls" and asked in spec["calls"]):
        raise RuntimeError("summarizer failed")
    if kind == "concat":
        said = ";".join(one if isinstance(one, str) else json.dumps(one) for one in messages)
        return said if call["existing"] is None else f"{call['existing']} | {said}"
    fixed = {"empty": "", "undefined": None, "sized": "z" * spec.get("chars", 0)}
    if kind in fixed:
        return fixed[kind]
    return spec["text"] if "text" in spec else f"S{asked}({len(messages)})"
