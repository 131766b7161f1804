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
"""How a model is shown tool schemas, and so how they are counted.

"typescript" is one text for all of them, "json" the whole list as it is, "spaced" and "indented" each tool
as JSON with blanks, or with lines indented by four, as chat templates write it; with "schemas" each tool is
the JSON of its name, description and schema, and with "words" only what its author wrote in these.
"""


SchemaStyle = Literal["compact", "indented"]
"""How the schema of an answer is written for a model: without what only checks it, or whole and indented."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Framing:
    """What is charged beside texts, in tokens; the defaults are gpt-4o's.

    Args:
        per_request_tokens: Once a request: the start of the answer.
        per_message_tokens: Once a message, beside its role and texts.
        answer_frame_tokens: The same of a message of the model's; None: as of any other.
        system_frame_tokens: The same of system text that stands among the messages; None: as of any other.
        reasoning_framed: Whether reasoning that is an item of its own is framed like a message.
        roles_counted: Whether the text of the role is charged.
        system_framed: Whether system text outside the messages is charged like one more message.
        default_system_tokens: Once a request without system text: what the provider, or the model's template,
            puts in its place.
        per_name_tokens: Beside the text of a message's name; None where names are free.
        per_call_tokens: Per call, in addition to its name and arguments.
        call_name_factor: How often a call's name is charged: it stands before the call and before its result.
        parallel_calls_tokens: Once a message that makes two or more calls.
        further_call_tokens: Per call of a message after its first.
        per_result_tokens: Once a result of a call, beside its text; below 0 where not all of that is charged.
            No message costs less than nothing.
        result_ids_counted: Whether the id of the call that is answered is charged as text.
        tools_style: How tool schemas are written for the model.
        tools_tokens: Once, if there are any tools.
        serial_calls_tokens: Once, if there are tools and the request forbids parallel calls.
        named_tool_tokens: Once, beside its name, where the request names the tool to call; None: nothing.
        forced_tools_tokens: Once in place of `tools_tokens`, where the request makes the model call one;
            None: the same.
        per_tool_tokens: Once a tool, beside its text.
        per_property_tokens: Once a property of a tool's schema, beside its text.
        nested_schemas_factor: How many times the words of schemas inside schemas may be missing, which the
            margin allows for.
        late_tools_tokens: Once a message that brings tools along.
        tools_dropped_by_none: Whether tools are free in a request whose `tool_choice` is "none".
        tools_saved_by_system_tokens: Taken off where tools or an output schema meet a leading system message,
            and where they meet each other: all these are one message.
        output_schema_style: How the schema of an answer is written for the model: "compact", without what
            only checks it, or "indented" by two blanks, with all it holds.
        output_schema_tokens: Once, if the answer has to follow a schema; None where schemas are free.
        thinking_tokens: Once, if the request gives the model a budget for thinking.
        task_budget_tokens: Once, if the request gives the model a budget for the whole task.
        citations_tokens: Once a message that holds what the model may cite: what tells it how.
        document_tokens: Once a document of plain text, beside that text.
        calls_framed_by_tools: Whether calls and results are framed only in a request that has tools.
        thoughts_counted: Whether reasoning that can be read is charged where it led to a call; no where a
            summary of what is encrypted is all that can be read.
        past_thoughts_charged: Whether reasoning before the newest user message is charged, too.
        tagged_thoughts_dropped: Whether of answers before the newest user message only what stands behind
            `</think>` is charged, since the model's template takes the rest out.
        prompts_by_default: Whether the provider may put a prompt of its own before a request that asks for
            none, whose length nobody knows.
        sealed_chars_per_token: Characters of encrypted reasoning per token; None if it is not charged.
        sealed_free_chars: So many of them are free in each message: how the provider wraps them.
        sealed_unsure_chars_per_token: In place of `sealed_chars_per_token` where some bills charge encrypted
            reasoning and others do not: the margin alone allows for it.

    Source: OpenAI cookbook, How_to_count_tokens_with_tiktoken.ipynb (@06d9feb5), for messages
    and names; the rest fitted to the usage billed for 70 recorded requests (2026-11).
    Errs: by at most 2 tokens a request on gpt-4o, 3 on gpt-5; more with parallel calls.
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
    """What images, sounds, videos and files are charged; the defaults are gpt-4o's.

    Args:
        part_tokens: The same for each image, sound and file; None: by the rules below.
        image_tokens: Once an image; all that one of low detail costs where images are cut into tiles.
        tile_tokens: A tile of 512 x 512 pixels, after scaling into 2048 x 2048 and to a short side of 768; 0:
            none.
        crops: Tiles are cut by two thirds of the short side, 256 to 768 pixels, and `image_tokens` is the
            whole image scaled down; one within 384 x 384 costs that alone.
        patch_factor: Tokens a patch of 32 x 32 pixels, at most 1,536 patches an image; None: images are
            tiled.
        pixels_per_token: Pixels a token, after scaling to `long_pixels`; None: by tiles or patches.
        long_pixels: Longer side an image is scaled down to, where pixels are charged.
        most_image_tokens: No image costs more; None: no such limit.
        audio_tokens: Once a sound.
        audio_tokens_per_second: A second of sound, beside that.
        video_tokens_per_second: None: a video is a file.
        file_tokens: A file whose content is not in the message.
        page_tokens: A page of a PDF: an image of it, and its text where that is charged too.
        pdf_bytes_per_token: Bytes a token of a PDF whose pages nobody can count, where pages do not say what
            one costs, so that it is a guess (billed for a page: 4 to 754 tokens by OpenAI's Responses, 218 to
            1,034 by its Chat, 2026-11); None: its pages alone say what it costs.

    Source: https://platform.openai.com/docs/guides/images-vision (2026-11), checked against
    billed usage where research had any. Errs: high where the size of a medium is not known.
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
    """How far the bill may be above a count, and how far below it.

    Each is a constant and a share of the count, chosen on recorded bills so that as many are inside as a
    small margin allows; design/012-counts.md says how many that is of which provider. A budget keeps the
    first free: of a bill below the count it is not passed.

    Args:
        tokens: How far above the count, in a part that does not grow with the request.
        per_mille: And in thousandths of the count.
        over_tokens: How far below the count, where it counts too much; None: as `tokens`.
        over_per_mille: And in thousandths of the count; None: as `per_mille`.
        plain_tokens: In place of both constants for a request of plain text alone, whose framing is known
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
            is_plain: Whether it is of plain text alone.
        """
        constant = self.plain_tokens if is_plain and self.plain_tokens is not None else self.tokens
        return constant - -tokens * self.per_mille // 1_000

    def over_of(self, tokens: int, /, *, is_plain: bool = False) -> int:
        """Return how far the bill may be below a count, in tokens, rounded up.

        Args:
            tokens: The count.
            is_plain: Whether it is of plain text alone.
        """
        constant = self.tokens if self.over_tokens is None else self.over_tokens
        if is_plain and self.plain_tokens is not None:
            constant = self.plain_tokens
        share = self.per_mille if self.over_per_mille is None else self.over_per_mille
        return min(tokens, constant - -tokens * share // 1_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """What is known of one model.

    Args:
        name: What it is looked up by.
        provider: Who serves it, a word in lower case.
        format: The wire form its provider speaks.
        window_tokens: Most tokens of input and output together; None if not known.
        input_tokens: Most tokens of input, where that is less than the window; None: the window alone.
        output_tokens: Most tokens of output; None if not known.
        encoding: How it splits text into tokens; None if no tokenizer of its is public.
        near_encoding: An encoding counted in place of its own, where that is not public or not installed;
            None: estimates.
        text_factor: Its tokens for one of `near_encoding`.
        mark_tokens: Tokens beside these for each mark of punctuation: its vocabulary joins fewer of them.
        capital_tokens: The same for each letter of words in capitals.
        digits_apart: Whether each digit is a token of its own to it, where `near_encoding` takes up to three
            as one.
        lines_apart: Whether the end of a line is a token of its own behind a mark, where `near_encoding`
            takes both as one.
        exact: Whether counts of plain text by these facts were right in billed requests.
        framing: Charges beside the text.
        framings: (wire form, framing) where its provider charges another form differently.
        media: What is charged for images, sound, video and files.
        margins: (wire form, margin) where another form is known less well, or better.
        margin: How far counts of requests that are not plain text may be off; None if nobody measured.
        open_weights: Whether hosts beside its maker serve it, whose window may be smaller: a name with a
            host's prefix leads to these facts without their limits.
        counted_as: The known model it is counted by, for a name that only tells its maker; None for a known
            one.
        source: Where window and output limit were read.
        checked: When, as an ISO date.
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
        """Most tokens of input: `input_tokens`, else the window; None if not known."""
        return self.window_tokens if self.input_tokens is None else self.input_tokens

    @property
    def output_reserve_tokens(self) -> int:
        """Room kept free for the answer where nobody says how much.

        The output limit, but at most half the window: some models may answer with all of it (gpt-4:
        8,192 of 8,192), and a request needs room too.
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
            f"a model is described by ModelFacts(...), not by {facts!r:.80}", argument="facts"
        )
    if not isinstance(facts.name, str) or not facts.name:
        raise ConfigurationError(f"the name of a model is a text, not {facts.name!r:.80}")
    for name, (is_one, wanted) in _FACTS.items():
        value = getattr(facts, name)
        if not is_one(value):
            raise ConfigurationError(f"{facts.name}: {name} is {wanted}, not {value!r:.80}")
    if facts.input_tokens is not None and facts.input_tokens > (facts.window_tokens or math.inf):
        raise ConfigurationError(
            f"{facts.name}: input_tokens is at most window_tokens, {facts.window_tokens:,}, or None where the"
            f" window alone is the limit, not {facts.input_tokens:,}"
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
