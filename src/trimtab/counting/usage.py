"""What a provider reported of a request and its answer, in any provider's shape: how much, by which price."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from trimtab._shared.checks import is_whole, whole_of
from trimtab.errors import ConfigurationError, FormatError, UsageError
from trimtab.formats import mapping_of
from trimtab.formats.values import as_list, item_of
from trimtab.models.dollars import BilledParts

_INSIDE = ("usage", "usage_metadata", "usageMetadata", "meta")
"""Where a whole response has its usage."""


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
    """Parts of the input that are reported separately."""
    output: str = ""
    not_sent_back: tuple[str, ...] = ()
    """Parts of the output that are not in the next request."""
    hides: str = ""
    """If there is any of this, the answer costs more than its output, and nobody says how much. It is charged
    as output is."""
    read: tuple[str, ...] = ()
    """What of the input a cache served: the first that is there."""
    write: str = ""
    """What of the input was stored for the next request."""
    hour: str = ""
    """What of that is stored for an hour."""


# Read 2026-11-21 in the types of openai 3.54 (CompletionUsage, ResponseUsage), anthropic 2.12 (Usage) and
# google-genai 3.4 (GenerateContentResponseUsageMetadata), and in 748 recorded bills.
_SHAPES = (
    # Chat completions. Cached tokens are part of prompt_tokens; reasoning is never sent back.
    _Shape(
        "prompt_tokens",
        output="completion_tokens",
        not_sent_back=("completion_tokens_details.reasoning_tokens",),
        # The second is DeepSeek's, the third Moonshot's.
        read=("prompt_tokens_details.cached_tokens", "prompt_cache_hit_tokens", "cached_tokens"),
    ),
    # Gemini. Cached tokens are part of the count. Thoughts are apart from candidates; what is sent back of
    # them is their signature, which is billed and not reported: an answer with thoughts has no known size.
    _Shape(
        "prompt_token_count",
        output="candidates_token_count",
        hides="thoughts_token_count",
        read=("cached_content_token_count",),
    ),
    _Shape(
        "promptTokenCount",
        output="candidatesTokenCount",
        hides="thoughtsTokenCount",
        read=("cachedContentTokenCount",),
    ),
    # Anthropic (cache parts stand apart) and OpenAI Responses (they do not). Thinking is sent back within a
    # tool loop, and on later models always; reasoning is not, but for items with encrypted content.
    _Shape(
        "input_tokens",
        beside=("cache_read_input_tokens", "cache_creation_input_tokens"),
        output="output_tokens",
        not_sent_back=("output_tokens_details.reasoning_tokens",),
        read=("cache_read_input_tokens", "input_tokens_details.cached_tokens"),
        write="cache_creation_input_tokens",
        hour="cache_creation.ephemeral_1h_input_tokens",
    ),
    # Bedrock's Converse: cache parts stand apart, and reasoning is sent back, as with Anthropic.
    _Shape(
        "inputTokens",
        beside=("cacheReadInputTokens", "cacheWriteInputTokens"),
        output="outputTokens",
        read=("cacheReadInputTokens",),
        write="cacheWriteInputTokens",
    ),
    # Ollama's native form: the whole prompt, what is in its cache too (llm/llama_server.go, quoted in
    # github.com/stdapi-ai/stdapi.ai/issues/252, 2026-09-17). Before 0.2 it lacked the cache's tokens, or all.
    _Shape("prompt_eval_count", output="eval_count"),
    # Cohere, under `usage` in v2 and under `meta` in v1: all tokens the model read, and where these are not
    # said, those that are charged, without what Cohere writes around them (docs.cohere.com/v2, 2026-11).
    _Shape("tokens.input_tokens", output="tokens.output_tokens"),
    _Shape("billed_units.input_tokens", output="billed_units.output_tokens"),
)


def usage_of(value: object, /) -> Usage:
    """Read what a provider reported: its usage, the response that holds it, or a bare number.

    Args:
        value: A mapping or an SDK's object, with the keys of Chat Completions, Responses, Anthropic,
            Gemini, Converse, Ollama or Cohere; or the input tokens as an integer.

    Raises:
        UsageError: The server replaced messages before it answered, so that it is not of what was sent.
        ConfigurationError: It holds no input tokens, or a number that is none.

    Example:
        >>> usage_of({"input_tokens": 3, "cache_read_input_tokens": 900, "output_tokens": 40})
        Usage(input_tokens=903, answer_tokens=40)
    """
    if isinstance(value, int) or whole_of(value) is not None:
        return Usage(_whole(value, "usage", least=1), None)
    report = _of_sent(_report_in(value), value)
    shape = _shape_of(report)
    tokens = _cleared_tokens(value)
    tokens += sum(_number(report, key) or 0 for key in (shape.input, *shape.beside))
    output = _number(report, shape.output)
    if shape.hides and _number(report, shape.hides):
        output = None
    if output is not None:
        output = max(0, output - sum(_number(report, key) or 0 for key in shape.not_sent_back))
    return Usage(_whole(tokens, shape.input, least=1), output)


def _shape_of(report: Mapping[str, Any]) -> _Shape:
    """Find whose report it is.

    Raises:
        ConfigurationError: It holds no input tokens.
    """
    shape = next((shape for shape in _SHAPES if _number(report, shape.input) is not None), None)
    if shape is None:
        raise ConfigurationError(
            f"usage has no input tokens: it has {', '.join(sorted(map(str, report)))[:200] or 'nothing'} but"
            f" none of {', '.join(one.input for one in _SHAPES)}. Pass the usage of a whole response (for"
            " a stream, its last event), or the input tokens as a number",
            argument="usage",
        )
    return shape


def billed_parts(value: object, /) -> BilledParts:
    """Read by which prices a request and its answer were billed.

    Args:
        value: As for `usage_of`, but for a bare number.

    Raises:
        ConfigurationError: It holds no input tokens, or a number that is none.

    Example:
        >>> billed_parts({"input_tokens": 3, "cache_read_input_tokens": 900, "output_tokens": 40})
        BilledParts(base_tokens=3, read_tokens=900, write_tokens=0, hour_tokens=0, output_tokens=40)
    """
    report = _report_in(value)
    shape = _shape_of(report)
    read = next((found for key in shape.read if (found := _number(report, key))), 0)
    write = (_number(report, shape.write) if shape.write else None) or 0
    hour = (_number(report, shape.hour) if shape.hour else None) or 0
    whole = sum(_number(report, key) or 0 for key in (shape.input, *shape.beside))
    read = min(read, whole)  # a part of it, whatever a server says
    write = min(write, whole - read)
    outputs = (shape.output, shape.hides)
    return BilledParts(
        base_tokens=whole - read - write,
        read_tokens=read,
        write_tokens=max(0, write - hour),
        hour_tokens=min(hour, write),
        output_tokens=sum(_number(report, key) or 0 for key in outputs if key),
    )


def holds_usage(response: object, /) -> bool:
    """Tell whether a response contains its bill."""
    return any(item_of(response, name) is not None for name in _INSIDE)


def _report_in(value: object) -> Mapping[str, Any]:
    for _ in range(2):
        inner = (item_of(value, name) for name in _INSIDE)
        found = next((one for one in inner if one is not None and not isinstance(one, int)), None)
        if found is None:
            break
        value = found
    try:
        return mapping_of(value)
    except FormatError as error:
        raise ConfigurationError(
            f"usage must be the provider's report, or its input tokens as a number, not {value!r:.80}",
            argument="usage",
        ) from error


MOST_TOKENS = 10**9
"""Of a number that a bill may have, a thousand times the longest window: more is a mistake, or made up."""

_INPUT_PARTS = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


# "A `compaction` entry reports the token usage of the compaction operation itself [...] NOT the size of the
# context that was compacted away": BetaUsage.iterations of anthropic 2.12, read 2026-11-27.
def _of_sent(report: Mapping[str, Any], answer: object) -> Mapping[str, Any]:
    """Return what a report says of the request as it was sent.

    Where the server went on by itself, with results of its own tools, that is its first step: the whole is
    the sum of all.

    Raises:
        UsageError: It replaced messages before it answered.
    """
    steps = as_list(report.get("iterations")) or ()
    said = [one for key in ("content", "output") for one in as_list(item_of(answer, key)) or ()]
    if any(item_of(one, "type") == "compaction" for one in (*steps, *said)):
        raise UsageError(
            "the server compacted the conversation before it answered: this usage is for the compacted"
            " messages, and not for those that were sent. Record no usage for this request. The next usage is"
            " for its own messages again, if these include the returned compaction"
        )
    first = next((one for one in steps if item_of(one, "type") == "message"), None)
    if first is None:
        return report
    return {**report, **{key: item_of(first, key) for key in _INPUT_PARTS}}


def _cleared_tokens(answer: object) -> int:
    """Sum the input that the server cleared before it billed: it was sent, and is counted by whoever asks.

    `context_management.applied_edits` of a whole answer of Anthropic's; its usage alone does not say so.
    """
    edits = as_list(item_of(item_of(answer, "context_management"), "applied_edits")) or ()
    found = (item_of(edit, "cleared_input_tokens") for edit in edits)
    return sum(tokens for tokens in found if is_whole(tokens, least=0))


def _number(report: Mapping[str, Any], dotted: str) -> int | None:
    first, *inner = dotted.split(".")
    value: object = report.get(first)
    for key in inner:
        value = item_of(value, key)
    if isinstance(value, float) and value.is_integer():  # as Cohere's SDK has them
        value = int(value)
    return None if value is None else _whole(value, dotted, least=0)


def _whole(value: object, key: str, *, least: int) -> int:
    whole = whole_of(value)
    if whole is None or whole < least or whole > MOST_TOKENS:
        raise ConfigurationError(
            f"{key} must be a whole number of tokens, {least} or more and {MOST_TOKENS:,} at the most, not"
            f" {value!r:.80}"
        )
    return whole
