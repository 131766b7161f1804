"""Counters that need no tokenizer: by characters, by fixed numbers, by a user's text function."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from trimtab._shared.checks import answers_later, check_whole, number_of
from trimtab.counting.base import AdditiveCounter, TextFunction, checked_count, counter_name
from trimtab.counting.cache import TextCounts
from trimtab.counting.texts import TextCounter
from trimtab.errors import ConfigurationError
from trimtab.formats import Format, get_format
from trimtab.formats.values import compact_json, mapping_of
from trimtab.models import Framing, MediaRule

_PLAIN_KEYS = frozenset({"role", "content", "tool_call_id"})

_HIGHEST_RATIO = 1e300
"""Far above any ratio; larger integers are no floats, and infinity is no ratio."""

ToolCallTokens = Callable[[str, str], int]
"""Tells what a tool call costs from its name and its arguments as text."""


class CharCounter(AdditiveCounter):
    """Counts characters and divides, rounding up once per message.

    Message names, tool names and arguments count as text; roles and ids cost nothing. Other unknown fields
    count as JSON.

    Example:
        >>> CharCounter(4).count([{"role": "user", "content": "hello"}])
        2
    """

    def __init__(
        self,
        chars_per_token: float = 4,
        *,
        part_tokens: int = 85,
        tool_call_tokens: ToolCallTokens | None = None,
        format: str | Format = "openai_chat",
    ) -> None:
        """Set the ratio.

        Args:
            chars_per_token: Characters per token; greater than 0.
            part_tokens: Tokens of a part that is not text; 0 or more.
            tool_call_tokens: Charge for each call, in place of the characters of its name and arguments.
            format: Name of the wire form of the messages; `fit` and `Context` set it themselves.

        Raises:
            ConfigurationError: A number is out of range, or `tool_call_tokens` is not a function, or is
                async.
        """
        ratio = number_of(chars_per_token)
        if ratio is None or not 0 < ratio <= _HIGHEST_RATIO:
            raise ConfigurationError(
                f"chars_per_token must be a number above 0, not {reprlib.repr(chars_per_token)}",
                argument="chars_per_token",
            )
        if tool_call_tokens is not None:
            _check_at_once("tool_call_tokens", tool_call_tokens)
        self._ratio = ratio
        self._part_tokens = check_whole("part_tokens", part_tokens, least=0)
        self._tool_call_tokens = tool_call_tokens
        self._format = get_format(format)
        self.name = f"chars/{ratio:g}"

    def count_text(self, text: str, /) -> int:
        """Count a bare text, rounded up."""
        return math.ceil(len(text) / self._ratio)

    def count_message(self, message: Any, /) -> int:
        """Count one message, rounded up once."""
        entry = mapping_of(message)
        content = entry.get("content")
        if isinstance(content, str) and entry.keys() <= _PLAIN_KEYS:
            return math.ceil(len(content) / self._ratio)
        if has_chat_content(self._format):
            texts, others = parts_of(content)
            rest = self._format.pieces({key: value for key, value in entry.items() if key != "content"})
        else:
            texts, others, rest = [], 0, self._format.pieces(entry)
        chars = len(rest.name or "") + sum(map(len, (*texts, *rest.texts, *rest.beside)))
        tokens = (others + len(rest.media)) * self._part_tokens
        for name, arguments in rest.calls:
            if self._tool_call_tokens is None:
                chars += len(name) + len(arguments)
            else:
                count_call = partial(self._tool_call_tokens, name, arguments)
                tokens += checked_count(count_call, self, None, of=f"a call of {name!r}")
        return tokens + math.ceil(chars / self._ratio)


class FixedCounter(AdditiveCounter):
    """Charges the same for every message, part and call; for tests.

    Example:
        >>> FixedCounter(10, per_part=2).count([{"role": "user", "content": "whatever it says"}])
        12
    """

    name = "fixed"

    def __init__(
        self,
        per_message: int = 1,
        per_part: int = 0,
        per_tool_call: int = 0,
        *,
        format: str | Format = "openai_chat",
    ) -> None:
        """Set the charges, in tokens.

        Args:
            per_message: Tokens for each message.
            per_part: Tokens for each part of a message.
            per_tool_call: Tokens for each call of a message.
            format: Name of the wire form of the messages; `fit` and `Context` set it themselves.

        Raises:
            ConfigurationError: A number is negative or not an integer.
        """
        self._per_message = check_whole("per_message", per_message, least=0)
        self._per_part = check_whole("per_part", per_part, least=0)
        self._per_tool_call = check_whole("per_tool_call", per_tool_call, least=0)
        self._format = get_format(format)

    def count_text(self, text: str, /) -> int:
        """Return 0: texts cost nothing; messages, parts and calls do."""
        return 0

    def count_message(self, message: Any, /) -> int:
        """Count one message; a string is one part, and empty content has no part."""
        pieces = self._format.pieces(mapping_of(message))
        return self._per_message + self._per_part * pieces.parts + self._per_tool_call * len(pieces.calls)


def counter_from_text(
    count_text: TextFunction,
    /,
    *,
    message_overhead: int = 4,
    part_tokens: int = 85,
    name: str | None = None,
) -> TextCounter:
    """Make a counter from a function that counts a text.

    A message costs its text, the compact JSON of its tool calls, the id of the call it answers, and
    `message_overhead`; a name costs nothing. Counts are remembered by text, so the function must always
    answer the same.

    Args:
        count_text: Returns the tokens of a text: an integer, 0 or more.
        message_overhead: Tokens of a message in addition to its texts.
        part_tokens: Tokens of a part that is not text.
        name: Its name in reports and errors; None: the function's own name.

    Raises:
        ConfigurationError: The function is `len`, is not callable or is async, or a number is negative.

    Example:
        >>> words = counter_from_text(lambda text: len(text.split()))
        >>> words.count([{"role": "user", "content": "How are you?"}])
        7
    """
    if count_text is len:
        raise ConfigurationError(
            "len counts characters, not tokens; for characters per token use CharCounter(chars_per_token)",
            argument="count_text",
        )
    _check_at_once("a text function", count_text)
    framing = Framing(
        per_request_tokens=0,
        per_message_tokens=check_whole("message_overhead", message_overhead, least=0),
        roles_counted=False,
        per_name_tokens=None,
        per_call_tokens=0,
        call_name_factor=1,
        parallel_calls_tokens=0,
        result_ids_counted=True,
        tools_style="json",
        tools_tokens=0,
        tools_saved_by_system_tokens=0,
        output_schema_tokens=0,
    )
    media = MediaRule(part_tokens=check_whole("part_tokens", part_tokens, least=0))
    return FunctionCounter(
        count_text, name=str(name or counter_name(count_text)), framing=framing, media=media
    )


class FunctionCounter(TextCounter):
    """Counts with a user's text function; made by `counter_from_text`."""

    def _any_message(self, message: Any, counts: TextCounts) -> int:
        content = message.get("content")
        tokens = self.framing.per_message_tokens
        if not has_chat_content(self._format):
            return tokens + self._body(self._reader.pieces(message), counts)
        if isinstance(content, str):
            tokens += counts[content] if content else 0
        else:
            # texts of parts are counted even when empty, as sliding-context does (rule S2)
            texts, others = parts_of(content, typeless=True)
            tokens += sum(counts[text] for text in texts) + others * (self.media.part_tokens or 0)
        calls, result_id = message.get("tool_calls"), message.get("tool_call_id")
        if calls:
            tokens += counts[compact_json(calls)]
        if isinstance(result_id, str) and result_id:
            tokens += counts[result_id]
        if message.keys() <= _READ_KEYS:
            return tokens
        rest = self._reader.pieces({key: value for key, value in message.items() if key not in _READ_KEYS})
        return tokens + self._body(rest, counts)


_READ_KEYS = frozenset({"role", "content", "tool_calls", "tool_call_id", "name"})


def parts_of(content: Any, /, *, typeless: bool = False) -> tuple[list[str], int]:
    """List the texts of a content, and count the parts that are not text.

    Args:
        content: A string, a list of parts, or nothing.
        typeless: Whether a part without a type is text, too.
    """
    if isinstance(content, str):
        return [content], 0
    if not isinstance(content, list | tuple):
        return [], 0 if content is None else 1
    texts = [text for part in content if (text := _text_of(part, typeless)) is not None]
    return texts, len(content) - len(texts)


def _text_of(part: Any, typeless: bool) -> str | None:
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        part = mapping_of(part)
    if part.get("type", "text" if typeless else None) != "text":
        return None
    text = part.get("text", "")
    return text if isinstance(text, str) else None


def has_chat_content(format: Format, /) -> bool:
    """Tell whether content parts are those of Chat Completions, which the references' counters know."""
    return format.rules.results_are_messages and format.rules.body_key == "messages"


def _check_at_once(name: str, function: Any) -> None:
    if not callable(function):
        raise ConfigurationError(f"{name} must be callable, not {function!r}", argument=name)
    if answers_later(function):
        raise ConfigurationError(f"{name} must be synchronous, and is async", argument=name)
