"""Calls of a framework's seam without a model, to time an adapter (`bench/adapter_cost.py`)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

from trimtab import fit
from trimtab.integrations.base import clamped_strides

Run = Callable[[], object]
MODEL = "gpt-4o"
STEADY = clamped_strides(0.5)
"""How an adapter has requests give way by default: to half of the room, as `steady=True` says."""


def bare(messages: list[Any], budget: int, *, model: str = MODEL, format: str = "openai_chat") -> Run:
    """Return a fit of wire messages as an adapter asks for it."""
    return lambda: fit(messages, budget, model=model, format=format, strategy=STEADY).messages


def bill_below(
    messages: list[Any], budget: int, *, model: str = MODEL, format: str = "openai_chat", part: float = 0.9
) -> int:
    """Return a bill for what fits that is a part of its count: an adapter that takes it in has to learn."""
    return round(part * fit(messages, budget, model=model, format=format).report.tokens_after)


def calls_of(message: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    """List the id, the tool and the arguments of the calls a message of Chat Completions makes."""
    calls = message.get("tool_calls") or ()
    return [
        (call["id"], call["function"]["name"], json.loads(call["function"]["arguments"])) for call in calls
    ]


def complete(function: Callable[[], Coroutine[Any, Any, object]]) -> Run:
    """Run what is async in one loop that is there already."""
    loop = asyncio.new_event_loop()
    return lambda: loop.run_until_complete(function())
