"""Real conversations, concatenated to a wanted length, and the calls made in them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Message = dict[str, Any]
Messages = list[Message]

AIRLINE = "tau_airline_gpt4o.jsonl"
AIRLINE_TOOLS = "tau_airline_gpt4o.tools.json"
CODING = "pi_coding_sessions.jsonl"


class NoDataError(Exception):
    """The folder of conversations is not there."""


def data_folder() -> Path:
    """Return `TRIMTAB_DATA`, else `shared/data` beside the checkout."""
    given = os.environ.get("TRIMTAB_DATA")
    return Path(given) if given else Path(__file__).resolve().parents[2] / "shared" / "data"


def airline(max_messages: int | None = None) -> Messages:
    """Concatenate the airline chats up to `max_messages`; None takes each chat once.

    The system message stands once, at the front. Call ids are unique. The list ends where a model is asked,
    so it may be a few messages shorter than wanted.
    """
    chats = [row["messages"] for row in _rows(AIRLINE)]
    messages: Messages = [chats[0][0]]
    for turn, chat in enumerate(_endless(chats) if max_messages else chats):
        messages.extend(_renamed(chat, turn))
        if max_messages and len(messages) >= max_messages:
            break
    return _ends_where_a_model_is_asked(messages[:max_messages])


def airline_tools() -> list[dict[str, Any]]:
    """Return the tools that the airline chats were given."""
    tools: list[dict[str, Any]] = json.loads(_found(AIRLINE_TOOLS).read_text(encoding="utf-8"))
    return tools


def coding_session() -> Messages:
    """Return the coding session; `reasoning_content` is left out, no provider bills it as sent."""
    chat = _rows(CODING)[0]["messages"]
    return [{key: value for key, value in message.items() if key != "reasoning_content"} for message in chat]


def differing(messages: Messages) -> Messages:
    """Return the conversation with no text that is there twice: each has a word of its own in its middle."""
    return [_with_own_word(message, f"w{at}") for at, message in enumerate(messages)]


def _with_own_word(message: Message, word: str) -> Message:
    changed = dict(message)
    if message.get("content"):
        words = message["content"].split(" ")
        words[len(words) // 2] = word
        changed["content"] = " ".join(words)
    if message.get("tool_calls"):
        changed["tool_calls"] = [_with_own_argument(call, word) for call in message["tool_calls"]]
    return changed


def _with_own_argument(call: dict[str, Any], word: str) -> dict[str, Any]:
    arguments = {**json.loads(call["function"]["arguments"]), "note": word}
    return {**call, "function": {**call["function"], "arguments": json.dumps(arguments)}}


def model_calls(messages: Messages) -> list[Messages]:
    """Return what each model call was given: the list before every assistant message, in order."""
    return [messages[:index] for index, message in enumerate(messages) if index and _by_model(message)]


def _rows(name: str) -> list[dict[str, Any]]:
    with _found(name).open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def _found(name: str) -> Path:
    path = data_folder() / name
    if not path.exists():
        raise NoDataError(f"{path} is not there; set TRIMTAB_DATA to the folder that holds {name}")
    return path


def _endless(chats: list[Messages]) -> Iterator[Messages]:
    while True:
        yield from chats


def _renamed(chat: Messages, turn: int) -> Iterator[Message]:
    """Yield the chat without its system messages, every call id made unique; copies only what changes."""
    names: dict[str, str] = {}
    for index, message in enumerate(chat):
        if message["role"] == "system":
            continue
        if message.get("tool_calls"):
            for call in message["tool_calls"]:
                names[call["id"]] = f"call_{turn}_{index}_{len(names)}"
            calls = [{**call, "id": names[call["id"]]} for call in message["tool_calls"]]
            yield {**message, "tool_calls": calls}
        elif message["role"] == "tool":
            yield {**message, "tool_call_id": names[message["tool_call_id"]]}
        else:
            yield dict(message)


def _ends_where_a_model_is_asked(messages: Messages) -> Messages:
    end = len(messages)
    while end and _by_model(messages[end - 1]):
        end -= 1
    return messages[:end]


def _by_model(message: Message) -> bool:
    return bool(message["role"] == "assistant")
