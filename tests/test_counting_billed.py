"""Our counts against what OpenAI billed for recorded requests (golden_usage.jsonl)."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from trimtab.counting import counter_for
from trimtab.models import facts_for


class Bill(NamedTuple):
    """One request, and how far our count is from its bill."""

    name: str
    model: str
    has: frozenset[str]
    """Of "media", "schema", "tools", "calls", "parallel"."""
    error: int


def _refilled(value: Any) -> Any:
    """Put data of the recorded size where the recording left it out."""
    if isinstance(value, list):
        return [_refilled(item) for item in value]
    if not isinstance(value, dict):
        return value
    filled = {key: _refilled(item) for key, item in value.items()}
    if "url_meta" in filled:
        meta = filled.pop("url_meta")
        head = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", meta["w"], meta["h"])
        filled["url"] = "data:image/png;base64," + base64.b64encode(head).decode()
    for key in ("file_data", "data"):
        if f"{key}_meta" in filled:
            size = filled.pop(f"{key}_meta")["bytes"]
            filled[key] = base64.b64encode(_head(filled).ljust(size, b"\0")).decode()
    return filled


def _head(part: dict[str, Any]) -> bytes:
    if part.get("format") == "wav":
        return b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0" + struct.pack("<II", 16_000, 32_000)
    return b"%PDF-" if "file_data" in part else b""


def _bills(path: Path) -> Iterator[Bill]:
    seen: set[str] = set()
    for line in path.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        key = json.dumps([entry["model"], entry["request"]], sort_keys=True)
        if (entry["provider"], entry["api"]) != ("api.openai.com", "chat") or key in seen:
            continue
        seen.add(key)
        request = _refilled(entry["request"])
        counted = counter_for(entry["model"]).count_request(
            request["messages"], None, request.get("tools"), request
        )
        yield Bill(entry["id"], entry["model"], _traits(request), counted - entry["usage"]["prompt_tokens"])


def _traits(request: dict[str, Any]) -> frozenset[str]:
    calls = [message.get("tool_calls") or () for message in request["messages"]]
    parts = [
        part
        for message in request["messages"]
        for part in message.get("content") or ()
        if isinstance(part, dict)
    ]
    found = {
        "media": any(part.get("type") != "text" for part in parts),
        "schema": "json_schema" in (request.get("response_format") or {}),
        "tools": bool(request.get("tools")),
        "calls": any(calls),
        "parallel": any(len(call) > 1 for call in calls),
    }
    return frozenset(name for name, holds in found.items() if holds)


@pytest.fixture(scope="module")
def bills(data_dir: Path) -> list[Bill]:
    """Count every distinct chat request to OpenAI."""
    found = list(_bills(data_dir / "golden_usage.jsonl"))
    assert len(found) > 60
    return found


def test_plain_text_is_billed_as_counted(bills: list[Bill], data_dir: Path) -> None:
    """Exact where a row says so, with at most one miss (a text document, 19 tokens of 3,152)."""
    exact = [bill for bill in bills if not bill.has and facts_for(bill.model).exact]
    assert len(exact) >= 13
    missed = [bill for bill in exact if bill.error]
    assert len(missed) <= 1, missed
    assert all(0 < bill.error <= 20 for bill in missed)


def test_calls_without_tools_are_billed_as_counted(bills: list[Bill], data_dir: Path) -> None:
    """A call and its result cost the name twice, the arguments, the result and a constant."""
    assert [bill.error for bill in bills if bill.has == {"calls"}] == [0]


def test_tools_and_calls_are_within_a_few_tokens(bills: list[Bill], data_dir: Path) -> None:
    """At most 2 off for up to four tools, 4 for twenty; half of them exact."""
    with_tools = [bill for bill in bills if "tools" in bill.has and not bill.has & {"media", "schema"}]
    assert len(with_tools) >= 35
    assert all(-2 <= bill.error <= 4 for bill in with_tools), with_tools
    assert sum(bill.error == 0 for bill in with_tools) >= len(with_tools) // 2
    assert sum(abs(bill.error) > 2 for bill in with_tools) <= 3


def test_an_output_schema_is_within_three_tokens(bills: list[Bill], data_dir: Path) -> None:
    """And not below the bill."""
    assert [bill.error for bill in bills if "schema" in bill.has if not 0 <= bill.error <= 3] == []


def test_media_are_never_counted_below_the_bill(bills: list[Bill], data_dir: Path) -> None:
    """Where the size is known images are exact to a token; files and unseen images err high."""
    media = [bill for bill in bills if "media" in bill.has]
    assert len(media) >= 15
    assert all(0 <= bill.error <= 1_700 for bill in media), media
    assert sum(bill.error <= 1 for bill in media) >= 7
