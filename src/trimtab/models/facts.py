"""What can be said of a model: windows, encoding, and what a request is charged for; as data."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import NoneType
from typing import Any, Literal, NamedTuple

from trimtab._shared.checks import is_number, is_whole
from trimtab.errors import ConfigurationError

ToolsStyle = Literal["typescript", "json", "spaced", "indented", "schemas", "words"]
"""How tool schemas are written for a model, and so how they are counted.

"typescript" is one text for all of them; "json" the whole list unchanged; "spaced" and "indented" each tool
as JSON with blanks, or indented by four, as chat templates write it; with "schemas" each tool is the JSON of
its name, description and schema; and with "words" only the author's words in these.
"""


SchemaStyle = Literal["compact", "indented"]
"""How an output schema is written for a model: without what only validates, or whole and indented."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Framing:
    """Charges other than texts, in tokens; the defaults are gpt-4o's.

    Args:
        per_request_tokens: Per request: the start of the answer.
        per_message_tokens: Per message, in addition to its role and texts.
        answer_frame_tokens: The same for a message of the model; None: as for any message.
        system_frame_tokens: The same for system text among the messages; None: as for any message.
        reasoning_framed: Whether a separate reasoning item has the framing of a message.
        roles_counted: Whether the text of the role is charged.
        system_framed: Whether system text outside the messages is charged like an additional message.
        default_system_tokens: Per request without system text: what the provider, or the model's template,
            inserts instead.
        per_name_tokens: Per name of a message, in addition to its text; None if names cost nothing.
        per_call_tokens: Per call, in addition to its name and arguments.
        call_name_factor: How many times a call's name is charged: it is written before the call and before
            its result.
        parallel_calls_tokens: Per message with two or more calls.
        further_call_tokens: Per call of a message after its first.
        per_result_tokens: Per result of a call, in addition to its text; below 0 if not all of the text is
            charged. No message costs less than nothing.
        result_ids_counted: Whether the id of the answered call is charged as text.
        tools_style: How tool schemas are written for the model.
        tools_tokens: Per request, if there are any tools.
        serial_calls_tokens: Per request, if there are tools and parallel calls are disabled.
        named_tool_tokens: Per request that names the tool to call, in addition to its name; None: nothing.
        forced_tools_tokens: Per request that makes the model call a tool, in place of `tools_tokens`;
            None: the same.
        per_tool_tokens: Per tool, in addition to its text.
        per_property_tokens: Per property of a tool's schema, in addition to its text.
        nested_schemas_factor: How many times the words of nested schemas may be missing from the count; the
            margin allows for it.
        late_tools_tokens: Per message with tools.
        tools_dropped_by_none: Whether tools cost nothing in a request whose `tool_choice` is "none".
        tools_saved_by_system_tokens: Subtracted if tools or an output schema are combined with a leading
            system message or with each other: they share one message.
        output_schema_style: How an output schema is written for the model: "compact", without what only
            validates, or "indented" by two blanks, with everything.
        output_schema_tokens: Per request, if the answer has to follow a schema; None if schemas cost nothing.
        thinking_tokens: Per request, if it gives the model a budget for thinking.
        task_budget_tokens: Per request, if it gives the model a budget for the whole task.
        citations_tokens: Per message with citable content: the instructions for citing.
        document_tokens: Per document of plain text, in addition to that text.
        calls_framed_by_tools: Whether calls and results have framing only in a request with tools.
        thoughts_counted: Whether readable reasoning is charged if it led to a call; False if it is only a
            summary of encrypted reasoning.
        past_thoughts_charged: Whether reasoning before the newest user message is charged, too.
        tagged_thoughts_dropped: Whether, in answers before the newest user message, only the part after
            `</think>` is charged, because the model's template removes the rest.
        prompts_by_default: Whether the provider may add a prompt of unknown length to a request that asks for
            none.
        sealed_chars_per_token: Characters of encrypted reasoning per token; None if it is not charged.
        sealed_free_chars: Characters of encrypted reasoning that are free in each message: the provider's
            wrapping.
        sealed_unsure_chars_per_token: In place of `sealed_chars_per_token`, if some bills charge encrypted
            reasoning and others do not: only the margin allows for it.

    Source: OpenAI cookbook, How_to_count_tokens_with_tiktoken.ipynb (@06d9feb5), for messages
    and names; the rest fitted to the usage billed for 70 recorded requests (2026-11). Errs:
    by at most 2 tokens per request on gpt-4o, 3 on gpt-5; more with parallel calls.
    """

    per_request_tokens: int = 3
    per_message_tokens: int = 3
    answer_frame_tokens: int | None = None
    system_frame_tokens: int | None = None
    reasoning_framed: bool = True
    roles_counted: bool = True
    system_framed: bool = True
    default_system_tokens: int = 0
    per_name_tokens: int | None = 1
    per_call_tokens: int = 5
    call_name_factor: int = 2
    parallel_calls_tokens: int = 17
    further_call_tokens: int = 0
    per_result_tokens: int = 0
    result_ids_counted: bool = False
    tools_style: ToolsStyle = "typescript"
    tools_tokens: int = 9
    serial_calls_tokens: int = 0
    named_tool_tokens: int | None = None
    forced_tools_tokens: int | None = None
    per_tool_tokens: int = 0
    per_property_tokens: int = 0
    nested_schemas_factor: int = 0
    late_tools_tokens: int = 0
    tools_dropped_by_none: bool = False
    tools_saved_by_system_tokens: int = 4
    output_schema_style: SchemaStyle = "compact"
    output_schema_tokens: int | None = 8
    thinking_tokens: int = 0
    task_budget_tokens: int = 0
    citations_tokens: int = 0
    document_tokens: int = 0
    calls_framed_by_tools: bool = False
    thoughts_counted: bool = True
    past_thoughts_charged: bool = False
    tagged_thoughts_dropped: bool = False
    prompts_by_default: bool = False
    sealed_chars_per_token: float | None = None
    sealed_free_chars: int = 0
    sealed_unsure_chars_per_token: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaRule:
    """Charges for images, sounds, videos and files; the defaults are gpt-4o's.

    Args:
        part_tokens: The same charge for each image, sound and file; None: by the rules below.
        image_tokens: Per image; an image of low detail costs only this if images are cut into tiles.
        tile_tokens: Per tile of 512 x 512 pixels, after scaling into 2048 x 2048 and to a short side of 768;
            0: no tiles.
        crops: Tiles have a side of two thirds of the short side, 256 to 768 pixels, and `image_tokens` is for
            the whole image scaled down; an image within 384 x 384 costs only that.
        patch_factor: Tokens per patch of 32 x 32 pixels, at most 1,536 patches per image; None: images are
            tiled.
        pixels_per_token: Pixels per token, after scaling to `long_pixels`; None: by tiles or patches.
        long_pixels: Longer side to which an image is scaled down, if pixels are charged.
        most_image_tokens: Maximum charge for an image; None: no maximum.
        audio_tokens: Per sound.
        audio_tokens_per_second: Per second of sound, in addition to `audio_tokens`.
        video_tokens_per_second: Per second of video. None: a video is a file.
        file_tokens: Per file whose content is not in the message.
        page_tokens: Per page of a PDF: its image, and its text if that is charged too.
        pdf_bytes_per_token: Bytes per token of a PDF whose pages cannot be counted, if the cost of a page is
            unknown, so it is a guess (bills per page: 4 to 754 tokens by OpenAI's Responses, 218 to 1,034 by
            its Chat, 2026-11); None: only the pages decide.

    Source: https://platform.openai.com/docs/guides/images-vision (2026-11), checked against
    billed usage where research had any. Errs: high if the size of a medium is unknown.
    """

    part_tokens: int | None = None
    image_tokens: int = 85
    tile_tokens: int = 170
    crops: bool = False
    patch_factor: float | None = None
    pixels_per_token: int | None = None
    long_pixels: int = 1_568
    most_image_tokens: int | None = None
    audio_tokens: int = 3
    audio_tokens_per_second: float = 10
    video_tokens_per_second: float | None = None
    file_tokens: int = 1_500
    page_tokens: int = 1_500
    pdf_bytes_per_token: float | None = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Margin:
    """How far the bill may be above a count, and how far it may be below.

    Each is a constant and a share of the count. They were chosen on recorded bills, as small as possible with
    most bills inside; design/012-counts.md gives the share of bills by provider. A budget keeps only the
    first free, because a bill below the count does not exceed the budget.

    Args:
        tokens: How far above the count, as a constant.
        per_mille: How far above the count, in thousandths of it.
        over_tokens: How far below the count, as a constant; None: as `tokens`.
        over_per_mille: How far below the count, in thousandths of it; None: as `per_mille`.
        plain_tokens: Replaces both constants for a request of plain text only, whose framing is known
            better than that of tools, calls, schemas and media; None: the same constants.
    """

    tokens: int = 0
    per_mille: int = 0
    over_tokens: int | None = None
    over_per_mille: int | None = None
    plain_tokens: int | None = None

    def of(self, tokens: int, /, *, is_plain: bool = False) -> int:
        """Return how far the bill may be above a count, in tokens, rounded up.

        Args:
            tokens: The count.
            is_plain: Whether the request is plain text only.
        """
        constant = self.plain_tokens if is_plain and self.plain_tokens is not None else self.tokens
        return constant - -tokens * self.per_mille // 1_000

    def over_of(self, tokens: int, /, *, is_plain: bool = False) -> int:
        """Return how far the bill may be below a count, in tokens, rounded up.

        Args:
            tokens: The count.
            is_plain: Whether the request is plain text only.
        """
        constant = self.tokens if self.over_tokens is None else self.over_tokens
        if is_plain and self.plain_tokens is not None:
            constant = self.plain_tokens
        share = self.per_mille if self.over_per_mille is None else self.over_per_mille
        return min(tokens, constant - -tokens * share // 1_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """The facts about one model.

    Args:
        name: The name to look it up by.
        provider: Its provider, a word in lower case.
        format: The wire form of its provider.
        window_tokens: Maximum tokens of input and output together; None if unknown.
        input_tokens: Maximum tokens of input, if less than the window; None: only the window limits it.
        output_tokens: Maximum tokens of output; None if unknown.
        encoding: Its tokenizer's encoding; None if it has no public tokenizer.
        near_encoding: An encoding to use if its own is not public or not installed;
            None: estimates.
        text_factor: How many of its tokens are counted per token of `near_encoding`.
        mark_tokens: Additional tokens per punctuation mark: its vocabulary joins fewer of them.
        capital_tokens: The same per letter of words in capitals.
        digits_apart: Whether each digit is a token of its own, where `near_encoding` joins up to three.
        lines_apart: Whether the end of a line is a token of its own after a mark, where `near_encoding` joins
            both.
        exact: Whether counts of plain text with these facts were right in billed requests.
        framing: Charges in addition to the text.
        framings: (wire form, framing) pairs for forms that its provider charges differently.
        media: Charges for images, sound, video and files.
        margins: (wire form, margin) pairs for forms that are known less well, or better.
        margin: How far counts of requests beyond plain text may be off; None if unknown.
        open_weights: Whether hosts other than its maker serve it. Their windows may be smaller, so a name
            with a host's prefix gives these facts without the limits.
        counted_as: The known model it is counted as, for a name that only shows its maker; None for a known
            model.
        source: Source of window and output limit.
        checked: Date on which the source was read, in ISO format.
    """

    name: str
    provider: str = "openai"
    format: str = "openai_chat"
    window_tokens: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    encoding: str | None = None
    near_encoding: str | None = None
    text_factor: float = 1.0
    mark_tokens: float = 0.0
    capital_tokens: float = 0.0
    digits_apart: bool = False
    lines_apart: bool = False
    exact: bool = False
    framing: Framing = field(default_factory=Framing)
    framings: tuple[tuple[str, Framing], ...] = ()
    media: MediaRule = field(default_factory=MediaRule)
    margins: tuple[tuple[str, Margin], ...] = ()
    margin: Margin | None = None
    open_weights: bool = False
    counted_as: str | None = None
    source: str = ""
    checked: str = ""

    @property
    def input_limit_tokens(self) -> int | None:
        """Maximum tokens of input: `input_tokens`, otherwise the window; None if unknown."""
        return self.window_tokens if self.input_tokens is None else self.input_tokens

    @property
    def output_reserve_tokens(self) -> int:
        """Room kept free for the answer if nothing else is said.

        The output limit, but at most half the window: some models may answer with all of it (gpt-4: 8,192 of
        8,192), and a request needs room too.
        """
        limit = self.output_tokens or 0
        return limit if self.window_tokens is None else min(limit, self.window_tokens // 2)


BY_ESTIMATE = Margin(tokens=100, per_mille=350)
"""Of a model nobody knows whose maker's vocabulary nobody has, so that all its rows are one estimate.

No other vocabulary lies further from o200k, which the estimate goes by, than that of Claude since 4.7: 1.35.
The tokens are for what tools bring along, as for OpenAI's models. Errs low where a host adds text of its own:
once 687 tokens were billed for the 12 of a short message to Grok (2026-11).
"""


class Unnamed(NamedTuple):
    """How a model is counted whose name nobody knows, but tells its maker."""

    name: re.Pattern[str]
    """How names of its maker begin."""
    costliest: str
    """The known row of its maker that counts most."""
    margin: Margin
    """Over what the maker's known rows count, from the least to the most."""


def group(
    kind: ModelFacts, window_tokens: int | None, output_tokens: int | None, names: str, **changes: Any
) -> tuple[ModelFacts, ...]:
    """Make the rows of models that differ in nothing but their names, which stand with blanks between them.

    In the source {} stands for the name; `changes` are what else is not as with that kind.
    """
    like = replace(kind, window_tokens=window_tokens, output_tokens=output_tokens, **changes)
    return tuple(replace(like, name=name, source=like.source.format(name)) for name in names.split())


def aliases(others: Mapping[str, str], /) -> dict[str, str]:
    """Turn other names of a model, with blanks between them, into a model for each other name."""
    return {name: model for model, names in others.items() for name in names.split()}


def check_facts(facts: Any, /) -> None:
    """Refuse facts that cannot be, as they are registered: a wrong one would break a count far from here.

    Raises:
        ConfigurationError: With the fact and what it has to be.
    """
    if not isinstance(facts, ModelFacts):
        raise ConfigurationError(
            f"the facts of a model must be ModelFacts(...), not {facts!r:.80}", argument="facts"
        )
    if not isinstance(facts.name, str) or not facts.name:
        raise ConfigurationError(f"the name of a model must be a text, not {facts.name!r:.80}")
    for name, (is_one, wanted) in _FACTS.items():
        value = getattr(facts, name)
        if not is_one(value):
            raise ConfigurationError(f"{facts.name}: {name} must be {wanted}, not {value!r:.80}")
    if facts.input_tokens is not None and facts.input_tokens > (facts.window_tokens or math.inf):
        raise ConfigurationError(
            f"{facts.name}: input_tokens must be at most window_tokens, {facts.window_tokens:,}, or None if"
            f" only the window limits it, not {facts.input_tokens:,}"
        )


def _is(*kinds: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kinds)


def _is_by_form(kind: type) -> Callable[[Any], bool]:
    return lambda value: (
        isinstance(value, tuple)
        and all(
            isinstance(pair, tuple)
            and len(pair) == 2
            and isinstance(pair[0], str)
            and isinstance(pair[1], kind)
            for pair in value
        )
    )


_LIMIT = (
    lambda value: value is None or (is_whole(value) and value > 0),
    "a whole number of tokens above 0, or None",
)
_WEIGHT = (lambda value: is_number(value) and value >= 0, "a number, not below 0")
_TEXT = (_is(str), "a text")
_ENCODING = (_is(str, NoneType), "the name of an encoding, or None")
_FLAG = (_is(bool), "True or False")
_FACTS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "window_tokens": _LIMIT,
    "input_tokens": _LIMIT,
    "output_tokens": _LIMIT,
    "text_factor": (lambda value: is_number(value) and value > 0, "a number above 0"),
    "mark_tokens": _WEIGHT,
    "capital_tokens": _WEIGHT,
    "provider": _TEXT,
    "format": _TEXT,
    "encoding": _ENCODING,
    "near_encoding": _ENCODING,
    "digits_apart": _FLAG,
    "lines_apart": _FLAG,
    "exact": _FLAG,
    "open_weights": _FLAG,
    "framing": (_is(Framing), "a Framing"),
    "media": (_is(MediaRule), "a MediaRule"),
    "margin": (_is(Margin, NoneType), "a Margin, or None"),
    "framings": (_is_by_form(Framing), "a tuple of (wire form, Framing)"),
    "margins": (_is_by_form(Margin), "a tuple of (wire form, Margin)"),
}
