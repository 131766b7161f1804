"""What the job costs without a library: three floors under every contender."""

from __future__ import annotations

from conversations import Message, Messages
from formula import COUNT, REQUEST_TOKENS, Count, message_tokens


class TextCounts(dict[str, int]):
    """Counts by text; a text that is missing is counted, once."""

    def __missing__(self, text: str) -> int:
        """Count a text seen for the first time."""
        tokens = self[text] = COUNT(text)
        return tokens


def plain_loop(messages: Messages, limit_tokens: int, count: Count = COUNT) -> Messages:
    """Keep the newest that fits, as one would write it by hand for one's own chat.

    System messages at the front stay, the latest user message stays, a call and its results stay or go
    together, and the walk stops at the first group that does not fit.
    """
    head, used = 0, REQUEST_TOKENS
    while head < len(messages) and messages[head]["role"] == "system":
        used += message_tokens(messages[head], count)
        head += 1
    latest = latest_user_index(messages, head)
    if latest is not None:
        used += message_tokens(messages[latest], count)
    start = len(messages)
    group_tokens = 0
    waiting: set[str] = set()
    for index in range(len(messages) - 1, head - 1, -1):
        message = messages[index]
        if index != latest:
            group_tokens += message_tokens(message, count)
            if used + group_tokens > limit_tokens:
                break
        if message["role"] == "tool":
            waiting.add(message["tool_call_id"])
        elif waiting and message.get("tool_calls"):
            waiting.difference_update([call["id"] for call in message["tool_calls"]])
        if not waiting:
            start, used, group_tokens = index, used + group_tokens, 0
    kept_user = [messages[latest]] if latest is not None and latest < start else []
    return messages[:head] + kept_user + messages[start:]


def latest_user_index(messages: Messages, head: int) -> int | None:
    """Return where the newest user message stands at or after `head`, or None."""
    for index in range(len(messages) - 1, head - 1, -1):
        if messages[index]["role"] == "user":
            return index
    return None


def texts_of(messages: Messages) -> list[str]:
    """Return every text that has tokens: contents, function names, arguments."""
    return [text for message in messages for text in _texts(message) if text]


def count_texts(texts: list[str]) -> int:
    """Tokenise each text once and do nothing else: the floor under any exact fit."""
    return sum(map(COUNT, texts))


def read_roles_and_ids(messages: Messages) -> int:
    """Read the role and ids of every message once: the floor under any fit that visits the whole history."""
    ids: set[str] = set()
    for message in messages:
        role = message["role"]
        if role == "tool":
            ids.add(message["tool_call_id"])
        elif message.get("tool_calls"):
            ids.update([call["id"] for call in message["tool_calls"]])
    return len(ids)


def _texts(message: Message) -> list[str]:
    texts = [message["content"]]
    for call in message.get("tool_calls") or ():
        texts += [call["function"]["name"], call["function"]["arguments"]]
    return texts
