"""The counters of the references, as small as they can be; see SEMANTICS R1, L14, S2 and X11.

Those that our own counters cover are ours with the references' numbers; what is left is here.
`fixed_size` and `r1_size` count again without any code of trimtab, for the predicates.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from tests.conformance.judging import OutOfScope, kind_of
from trimtab import CharCounter
from trimtab.counting import AdditiveCounter, FixedCounter

Message = Mapping[str, Any]

R1_REQUEST_TOKENS = 3
R1_MESSAGE_TOKENS = 4
R1_TOOLS_TOKENS = 10


def r1_text(text: str) -> int:
    """Count as R1: ASCII bytes by four, others by three, at least 1 unless empty."""
    if not text:
        return 0
    ascii_bytes = sum(character.isascii() for character in text)
    other_bytes = len(text.encode()) - ascii_bytes
    return max(1, math.ceil(ascii_bytes / 4 + other_bytes / 3))


def r1_message(message: Message) -> int:
    """Count a message as R1: role, content if it is a string, calls by name and arguments."""
    content = message.get("content")
    tokens = R1_MESSAGE_TOKENS + r1_text(message.get("role") or "")
    tokens += r1_text(content) if isinstance(content, str) else 0
    for call in message.get("tool_calls") or ():
        function = call.get("function") or {}
        said = [function.get("name"), function.get("arguments")]
        tokens += 3 + sum(r1_text(text) for text in said if isinstance(text, str))
    return tokens


def r1_size(messages: Sequence[Message]) -> int:
    """Count a list as R1: 3 and its messages."""
    return R1_REQUEST_TOKENS + sum(map(r1_message, messages))


def r1_system(text: str | None) -> int:
    """Count what R2 reserves for a system prompt."""
    return 0 if text is None else R1_MESSAGE_TOKENS + r1_text("system") + r1_text(text)


def r1_tools(tools: Sequence[Any] | None) -> int:
    """Count tools as R1: 10, and each as compact JSON with sorted keys."""
    return R1_TOOLS_TOKENS + sum(map(r1_text, map(_sorted_json, tools))) if tools else 0


class R1Counter(AdditiveCounter):
    """The built-in estimate of `llm_context_core`."""

    name = "r1"
    exact = False

    def count_message(self, message: Any, /) -> int:
        """Count one message."""
        return r1_message(message)

    def count_text(self, text: str, /) -> int:
        """Count a bare text."""
        return r1_text(text)

    def fixed_tokens(
        self, system: Any, tools: Any, /, *, has_system: bool, extra: Mapping[str, Any] | None = None
    ) -> int:
        """Count the request's own 3 tokens, system text and tools."""
        return R1_REQUEST_TOKENS + r1_system(system) + r1_tools(tools)


def _sorted_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


_HAN = re.compile("[\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff]")


def looma_text(text: str) -> int:
    """Count as L14: Han 1.6, others 0.75, rounded up, and again with a margin of a tenth."""
    han = len(_HAN.findall(text))
    return math.ceil(math.ceil(han * 1.6 + (len(text) - han) * 0.75) * 1.1)


def looma_message(message: Message, text_tokens: Callable[[str], int]) -> int:
    """Count a message as L14: its texts, and its attachments with a margin; nothing else is charged."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return text_tokens(content)
    files = [part["attachment"] for part in content if "attachment" in part]
    return sum(text_tokens(part["text"]) for part in content if "text" in part) + math.ceil(
        sum(map(_looma_file, files)) * 1.15
    )


def _looma_file(file: Mapping[str, Any]) -> int:
    if file["mimeType"] == "application/pdf":
        return min(12_000, max(900, math.ceil(file["size"] / 80))) if file["size"] else 1800
    return 1200


def looma_text_function(spec: Mapping[str, Any]) -> Callable[[str], int]:
    """Make what counts a text in looma: its estimate, or UTF-16 units by so many."""
    kind = kind_of(spec, "counter")
    if kind == "looma":
        return looma_text
    if kind != "chars":
        raise OutOfScope(f"counter {kind}")
    return lambda text: math.ceil(utf16_length(text) / spec["chars_per_token"])


class LoomaCounter(AdditiveCounter):
    """What counts in looma: texts and attachments."""

    name = "looma"
    exact = False

    def __init__(self, spec: Mapping[str, Any]) -> None:
        self._text_tokens = looma_text_function(spec)

    def count_message(self, message: Any, /) -> int:
        """Count one message."""
        return looma_message(message, self._text_tokens)

    def count_text(self, text: str, /) -> int:
        """Count a bare text."""
        return self._text_tokens(text)


def utf16_length(text: str) -> int:
    """Count UTF-16 code units."""
    return len(text.encode("utf-16-le")) // 2


def approximate(text: str) -> int:
    """Count as S2: four UTF-16 code units a token."""
    return math.ceil(utf16_length(text) / 4)


def words(text: str) -> int:
    """Count words."""
    return len(text.split())


def code_points(text: str) -> int:
    """Count code points."""
    return len(text)


def text_function(spec: Mapping[str, Any]) -> Callable[[str], int]:
    """Make the text function a vector of sliding-context or phronomy names."""
    kind = kind_of(spec, "counter")
    functions = {"approx": approximate, "utf16_length": utf16_length, "words": words, "length": code_points}
    if kind == "const":
        return lambda text: int(spec["n"])
    if kind not in functions:
        raise OutOfScope(f"counter {kind}")
    return functions[kind]


class Failing:
    """A counter that fails from its n-th call on."""

    name = "failing"

    def __init__(self, inner: Any, *, from_call: int = 1, error: type[BaseException] = OSError) -> None:
        self._inner = inner
        self._left = from_call - 1
        self._error = error

    def count(self, messages: Sequence[Any], /) -> int:
        """Count, or fail."""
        if self._left <= 0:
            raise self._error("count failed")
        self._left -= 1
        return int(self._inner.count(messages))


class CountedBefore:
    """A counter that knows the size of one list, since somebody counted it before."""

    name = "counted before"

    def __init__(self, inner: Any, messages: Sequence[Any], tokens: int) -> None:
        self._inner = inner
        self._messages = list(messages)
        self._tokens = tokens

    def count(self, messages: Sequence[Any], /) -> int:
        """Give the known answer, or count."""
        return self._tokens if list(messages) == self._messages else int(self._inner.count(messages))


class Pausing:
    """A counter that is awaited."""

    name = "pausing"

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def count(self, messages: Sequence[Any], /) -> int:
        """Let others run, then count."""
        await asyncio.sleep(0)
        return int(self._inner.count(messages))


FAULTS: Mapping[str, type[BaseException]] = {
    "error": OSError,
    "other": OSError,
    "canceled": asyncio.CancelledError,
}
"""What a counter raises that is made to fail: a failure of its own, or what cancels the caller."""


def fails(spec: Any) -> bool:
    """Tell whether a counter is made to fail."""
    return kind_of(spec, "counter") in (*FAULTS, "fail_from_call")


def contexty_counter(spec: Mapping[str, Any], *, call_tokens: int = 0) -> Any:
    """Make a counter of contexty: ours, with its numbers.

    Args:
        spec: The counter as a vector names it.
        call_tokens: What a call costs beside the estimate (X23: 20 from version 0.5 on).
    """
    kind = kind_of(spec, "counter")
    if kind == "fixed":
        return FixedCounter(spec["per_message"], spec["per_part"], per_tool_call=spec["per_tool_call"])
    if kind in FAULTS:
        return Failing(None, error=FAULTS[str(spec.get("error", kind))])
    if kind == "fail_from_call":
        error = FAULTS[str(spec.get("error", "error"))]
        return Failing(contexty_counter(spec["inner"]), from_call=spec["n"], error=error)
    if kind != "chars":
        raise OutOfScope(f"counter {kind}")
    estimate = spec.get("tool_call_tokens")
    part_tokens = _part_tokens(spec)
    if estimate is None:
        return CharCounter(spec["chars_per_token"], part_tokens=part_tokens)
    return CharCounter(
        spec["chars_per_token"],
        part_tokens=part_tokens,
        tool_call_tokens=lambda name, arguments: int(estimate) + call_tokens,
    )


def contexty_size(spec: Mapping[str, Any], messages: Sequence[Message]) -> int:
    """Count again what a counter of contexty counts; X11: characters are rounded up once for a list."""
    if spec["kind"] != "chars":
        return fixed_size(spec, messages)
    chars_per_token = spec["chars_per_token"]
    characters = 0
    for message in messages:
        content = message.get("content") or ""
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        characters += len(message.get("name") or "")
        for part in parts:
            is_text = part["type"] == "text"
            characters += len(part["text"]) if is_text else _part_tokens(spec) * chars_per_token
        for call in message.get("tool_calls") or ():
            characters += len(call["function"]["name"]) + len(call["function"]["arguments"])
    return math.ceil(characters / chars_per_token)


def _part_tokens(spec: Mapping[str, Any]) -> int:
    return int(spec.get("tokens_per_non_text_part") or 85)


def contexty_list_counter(spec: Mapping[str, Any]) -> Any:
    """Make a counter of contexty for a whole list: a black box where it rounds only once."""
    counter = contexty_counter(spec)
    return partial(contexty_size, spec) if spec["kind"] == "chars" else counter


def fixed_size(spec: Mapping[str, Any], messages: Sequence[Message]) -> int:
    """Count again what `contexty_counter` counts for a `fixed` one."""
    spec = spec.get("inner", spec)
    tokens = 0
    for message in messages:
        content = message.get("content")
        parts = 1 if isinstance(content, str) else len(content or ())
        tokens += spec["per_message"] + spec["per_part"] * parts
        tokens += spec["per_tool_call"] * len(message.get("tool_calls") or ())
    return tokens
