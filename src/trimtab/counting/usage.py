"""What a provider reports of a request it answered, read from any of the shapes in use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from trimtab.errors import ConfigurationError, FormatError
from trimtab.formats import mapping_of

__all__ = ["Usage", "usage_of"]

_INSIDE = ("usage", "usage_metadata", "usageMetadata")
"""Where a whole response holds its usage."""


class Usage(NamedTuple):
    """What was billed for one request and its answer, in tokens."""

    input_tokens: int
    """Everything the request held; what was read from a cache or written to one included."""
    answer_tokens: int | None
    """What the answer costs when it is sent back; None if not reported.

    Errs: high where a provider keeps thinking in some requests only.
    """


class _Shape(NamedTuple):
    """The keys of one provider's report; dotted ones lead into a mapping."""

    input: str
    beside: tuple[str, ...] = ()
    """Parts of the input that are reported apart."""
    output: str = ""
    not_sent_back: tuple[str, ...] = ()
    """Parts of the output that are not in the next request."""
    hides: str = ""
    """If there is any of this, the answer costs more than its output, and nobody says how much."""


# Read 2026-11-21 in the types of openai 3.54 (CompletionUsage, ResponseUsage), anthropic 2.12 (Usage) and
# google-genai 3.4 (GenerateContentResponseUsageMetadata), and in 748 recorded bills.
_SHAPES = (
    # Chat completions. Cached tokens are part of prompt_tokens; reasoning is never sent back.
    _Shape(
        "prompt_tokens",
        output="completion_tokens",
        not_sent_back=("completion_tokens_details.reasoning_tokens",),
    ),
    # Gemini. Cached tokens are part of the count. Thoughts are apart from candidates; what is sent back of
    # them is their signature, which is billed and not reported: an answer with thoughts has no known size.
    _Shape("prompt_token_count", output="candidates_token_count", hides="thoughts_token_count"),
    _Shape("promptTokenCount", output="candidatesTokenCount", hides="thoughtsTokenCount"),
    # Anthropic (cache parts stand apart) and OpenAI Responses (they do not). Thinking is sent back within a
    # tool loop, and on later models always; reasoning is not, but for items with encrypted content.
    _Shape(
        "input_tokens",
        beside=("cache_read_input_tokens", "cache_creation_input_tokens"),
        output="output_tokens",
        not_sent_back=("output_tokens_details.reasoning_tokens",),
    ),
)


def usage_of(value: Any, /) -> Usage:
    """Read what a provider reported: its usage, the response that holds it, or a bare number.

    Args:
        value: A mapping or an SDK's object, with the keys of Chat Completions, Responses, Anthropic or
            Gemini; or the input tokens as an integer.

    Raises:
        ConfigurationError: It holds no input tokens, or a number that is none.

    Example:
        >>> usage_of({"input_tokens": 3, "cache_read_input_tokens": 900, "output_tokens": 40})
        Usage(input_tokens=903, answer_tokens=40)
    """
    if isinstance(value, int):
        return Usage(_whole(value, "usage", least=1), None)
    report = _report_in(value)
    for shape in _SHAPES:
        if report.get(shape.input) is not None:
            return _read(report, shape)
    raise ConfigurationError(
        f"usage holds no input tokens: it has {_listed(report)} and none of"
        f" {', '.join(shape.input for shape in _SHAPES)}. Pass the usage of a whole response (the last event,"
        " when it is streamed), or the input tokens as a number"
    )


def _report_in(value: Any) -> Mapping[str, Any]:
    for _ in range(2):
        inner = [getattr(value, name, None) for name in _INSIDE]
        if isinstance(value, Mapping):
            inner = [value.get(name) for name in _INSIDE]
        found = next((one for one in inner if one is not None and not isinstance(one, int)), None)
        if found is None:
            break
        value = found
    try:
        return mapping_of(value)
    except FormatError as error:
        raise ConfigurationError(
            f"usage is what the provider reported, or its input tokens as a number, not {value!r:.80}"
        ) from error


def _read(report: Mapping[str, Any], shape: _Shape) -> Usage:
    tokens = sum(_number(report, key) or 0 for key in (shape.input, *shape.beside))
    output = _number(report, shape.output)
    if shape.hides and _number(report, shape.hides):
        output = None
    if output is not None:
        output = max(0, output - sum(_number(report, key) or 0 for key in shape.not_sent_back))
    return Usage(_whole(tokens, shape.input, least=1), output)


def _number(report: Mapping[str, Any], dotted: str) -> int | None:
    value: Any = report
    for key in dotted.split("."):
        value = value.get(key) if isinstance(value, Mapping) else getattr(value, key, None)
    return None if value is None else _whole(value, dotted, least=0)


def _whole(value: object, key: str, *, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConfigurationError(f"{key} is a whole number of tokens, {least} or more, not {value!r:.80}")
    return int(value)


def _listed(report: Mapping[str, Any]) -> str:
    return ", ".join(sorted(map(str, report)))[:200] or "nothing"
