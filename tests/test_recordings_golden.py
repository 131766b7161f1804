"""Every recorded request of OpenAI Chat, written as other programs record it and read back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.billed import FILES, billed
from tests.foreign_shapes import (
    as_model_messages,
    as_telemetry,
    as_ui_messages,
    as_vercel_tools,
    outline,
    plain_body,
)
from trimtab.counting import measure
from trimtab.formats import read_foreign

Body = dict[str, Any]


def _bodies(folder: Path, file: str) -> Iterator[tuple[str, Body]]:
    for one in billed(folder / file):
        if one.format == "openai_chat" and _is_plain(one.request):
            yield one.name, plain_body(dict(one.request))


def _is_plain(request: Any) -> bool:
    """Tell whether it has only what the other program has a word for."""
    return all(
        message["role"] in ("system", "user", "assistant", "tool")
        and not message.get("function_call")
        and all(call.get("type") == "function" and call.get("id") for call in message.get("tool_calls") or ())
        and all(
            part.get("type") in ("text", "input_audio")
            or (part.get("type") == "image_url" and isinstance(part["image_url"], dict))
            or (part.get("type") == "file" and ":" in str(part["file"].get("file_data")))
            for part in (message["content"] if isinstance(message.get("content"), list) else ())
        )
        for message in request["messages"]
    )


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize(
    ("write", "share"),
    [(as_model_messages, 0.2), (as_ui_messages, 0.95), (as_telemetry, 1.0)],
    ids=["vercel-model", "vercel-ui", "telemetry"],
)
def test_a_request_read_back_counts_as_it_did(
    data_dir: Path, file: str, write: Callable[[Any], Any], share: float
) -> None:
    """The same tokens, the same speakers, and each result behind its call."""
    read, all_of_it = 0, 0
    for name, body in _bodies(data_dir, file):
        all_of_it += 1
        written = write(body["messages"])
        if written is None:
            continue
        tools = body.get("tools", [])
        beside = {"tools": tools if write is as_telemetry else as_vercel_tools(tools)}
        found = read_foreign({"messages": written, **beside})
        if found is None:  # plain texts alone: nothing tells them from messages of Chat
            assert write is as_model_messages, name
            continue
        read += 1
        [conversation] = found
        assert outline(conversation.body["messages"]) == outline(body["messages"]), name
        before, after = (measure(one, model="gpt-4o") for one in (body, conversation.body))
        assert after.tokens == before.tokens, name
        assert conversation.notes == (), name
    assert all_of_it > 100
    assert read >= share * all_of_it
