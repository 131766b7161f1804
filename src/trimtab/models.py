"""What is known of models by name: windows, encodings, and what a request is charged for.

The only place with facts about models; each row says where they come from and when they were
looked up. What is not known is None, and nothing is guessed from how a name looks.
"""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field, replace
from typing import Literal

from trimtab.errors import ConfigurationError, UnknownNameError

__all__ = ["Framing", "MediaRule", "ModelFacts", "facts_for", "model_names", "register_model"]

ToolsStyle = Literal["typescript", "json"]
"""How a model is shown tool schemas, and so how they are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Framing:
    """What is charged beside texts, in tokens; the defaults are gpt-4o's.

    Source: OpenAI cookbook, How_to_count_tokens_with_tiktoken.ipynb (@06d9feb5), for messages
    and names; the rest fitted to the usage billed for 70 recorded requests (2026-11).
    Errs: by at most 2 tokens a request on gpt-4o, 3 on gpt-5; more with parallel calls.
    """

    per_request_tokens: int = 3
    """Once a request: the start of the answer."""
    per_message_tokens: int = 3
    """Once a message, beside its role and texts."""
    roles_counted: bool = True
    """Whether the text of the role is charged."""
    per_name_tokens: int | None = 1
    """Beside the text of a message's name; None where names are free."""
    per_call_tokens: int = 5
    """Once a call, beside its name and arguments."""
    call_name_factor: int = 2
    """How often a call's name is charged: it stands before the call and before its result."""
    parallel_calls_tokens: int = 17
    """Once a message that makes two or more calls."""
    result_ids_counted: bool = False
    """Whether the id of the call that is answered is charged as text."""
    tools_style: ToolsStyle = "typescript"
    tools_tokens: int = 8
    """Once, if there are any tools."""
    tools_saved_by_system_tokens: int = 4
    """Taken off where tools meet a leading system message."""
    output_schema_tokens: int = 10
    """Once, if the answer has to follow a schema."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaRule:
    """What images, sounds and files are charged; the defaults are gpt-4o's.

    Source: https://platform.openai.com/docs/guides/images-vision (2026-11), checked against
    billed usage where research had any. Errs: high where the size of a medium is not known.
    """

    part_tokens: int | None = None
    """The same for each image, sound and file; None: by the rules below."""
    image_tokens: int = 85
    """Once an image; all that one of low detail costs where images are cut into tiles."""
    tile_tokens: int = 170
    """A tile of 512 x 512 pixels, after scaling into 2048 x 2048 and to a short side of 768."""
    patch_factor: float | None = None
    """Tokens a patch of 32 x 32 pixels, at most 1,536 patches an image; None: images are tiled."""
    audio_tokens_per_second: int = 10
    file_tokens: int = 1_500
    """A file whose content is not in the message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """What is known of one model."""

    name: str
    provider: str = "openai"
    format: str = "openai_chat"
    """The wire form its provider speaks."""
    window_tokens: int | None = None
    """Most tokens of input and output together; None if not known."""
    output_tokens: int | None = None
    """Most tokens of output; None if not known."""
    encoding: str | None = None
    """How it splits text into tokens; None if no tokenizer is public, and counts are estimates."""
    exact: bool = False
    """Whether counts of plain text by these facts were right in billed requests."""
    framing: Framing = field(default_factory=Framing)
    media: MediaRule = field(default_factory=MediaRule)
    source: str = ""
    """Where window and output limit were read."""
    checked: str = ""
    """When, as an ISO date."""

    @property
    def output_reserve_tokens(self) -> int:
        """Room kept free for the answer where nobody says how much.

        The output limit, but at most half the window: some models may answer with all of it (gpt-4:
        8,192 of 8,192), and a request needs room too.
        """
        limit = self.output_tokens or 0
        return limit if self.window_tokens is None else min(limit, self.window_tokens // 2)


_CHECKED = "2026-11-21"
_DOCS = "https://platform.openai.com/docs/models/"

# Reasoning models start the answer with two tokens, are shown tools with a longer preamble,
# and frame calls differently (fitted on gpt-5, gpt-5-mini, gpt-5.4-mini, o3-mini; 2026-11).
_REASONING = Framing(
    per_request_tokens=2, per_call_tokens=11, tools_tokens=90, tools_saved_by_system_tokens=0
)
# A short user message is billed 67-71 tokens by hosts of gpt-oss: a system text the template adds.
_HARMONY = replace(_REASONING, per_request_tokens=68)

_TILES = MediaRule()
_O_TILES = MediaRule(image_tokens=75, tile_tokens=150)
_GPT5_TILES = MediaRule(image_tokens=70, tile_tokens=140)
_MINI_TILES = MediaRule(image_tokens=2_833, tile_tokens=5_667)


def _patches(factor: float) -> MediaRule:
    # two tokens an image beside its patches, as billed for gpt-5-mini (2026-11)
    return MediaRule(image_tokens=2, patch_factor=factor)


def _openai(
    name: str,
    window_tokens: int | None,
    output_tokens: int | None,
    *,
    encoding: str = "o200k_base",
    framing: Framing | None = None,
    media: MediaRule = _TILES,
    exact: bool = True,
    source: str = "",
) -> ModelFacts:
    return ModelFacts(
        name=name,
        window_tokens=window_tokens,
        output_tokens=output_tokens,
        encoding=encoding,
        framing=framing or Framing(),
        media=media,
        exact=exact,
        source=source or _DOCS + name,
        checked=_CHECKED,
    )


def _reasoning(
    name: str, window_tokens: int, output_tokens: int, media: MediaRule, *, exact: bool = True
) -> ModelFacts:
    return _openai(name, window_tokens, output_tokens, framing=_REASONING, media=media, exact=exact)


def _gpt_oss(name: str) -> ModelFacts:
    return _openai(
        name,
        131_072,
        None,
        encoding="o200k_harmony",
        framing=_HARMONY,
        exact=False,
        source="https://openai.com/index/gpt-oss-model-card/",
    )


_ROWS = (
    _openai("gpt-4o", 128_000, 16_384),
    _openai("gpt-4o-2024-05-13", 128_000, 4_096),
    _openai("gpt-4o-mini", 128_000, 16_384, media=_MINI_TILES),
    _openai("gpt-4o-audio-preview", 128_000, 16_384),
    # billed 11 tokens below the rule: the system message is not charged whole
    _openai("gpt-4o-search-preview", 128_000, 16_384, exact=False),
    _openai("gpt-4o-mini-search-preview", 128_000, 16_384, exact=False),
    _openai("gpt-4.1", 1_047_576, 32_768),
    _openai("gpt-4.1-mini", 1_047_576, 32_768, media=_patches(1.62)),
    _openai("gpt-4.1-nano", 1_047_576, 32_768, media=_patches(2.46)),
    _openai("gpt-4.5-preview", 128_000, 16_384),
    _openai("gpt-4-turbo", 128_000, 4_096, encoding="cl100k_base"),
    _openai("gpt-4", 8_192, 8_192, encoding="cl100k_base"),
    _openai("gpt-4-32k", 32_768, None, encoding="cl100k_base"),
    _openai("gpt-3.5-turbo", 16_385, 4_096, encoding="cl100k_base"),
    _reasoning("o1", 200_000, 100_000, _O_TILES),
    _reasoning("o1-mini", 128_000, 65_536, _O_TILES, exact=False),
    _reasoning("o3", 200_000, 100_000, _O_TILES),
    _reasoning("o3-mini", 200_000, 100_000, _O_TILES),
    _reasoning("o4-mini", 200_000, 100_000, _patches(1.72)),
    _reasoning("gpt-5", 400_000, 128_000, _GPT5_TILES),
    _reasoning("gpt-5-mini", 400_000, 128_000, _patches(1.2)),
    _reasoning("gpt-5-nano", 400_000, 128_000, _patches(1.5)),
    _reasoning("gpt-5.1", 400_000, 128_000, _GPT5_TILES),
    _reasoning("gpt-5.2", 400_000, 128_000, _patches(1.2)),
    _reasoning("gpt-5.4", 1_050_000, 128_000, _patches(1.2)),
    _reasoning("gpt-5.4-mini", 400_000, 128_000, _patches(1.62)),
    _gpt_oss("gpt-oss-20b"),
    _gpt_oss("gpt-oss-120b"),
)

_ALIASES = {
    "chatgpt-4o-latest": "gpt-4o",
    "gpt-4.5": "gpt-4.5-preview",
    "gpt-4-0613": "gpt-4",
    "gpt-4-1106-preview": "gpt-4-turbo",
    "gpt-4-0125-preview": "gpt-4-turbo",
    "gpt-4-turbo-preview": "gpt-4-turbo",
    "gpt-3.5-turbo-1106": "gpt-3.5-turbo",
    "gpt-3.5-turbo-0125": "gpt-3.5-turbo",
    "gpt-35-turbo": "gpt-3.5-turbo",
    "gpt-5-chat-latest": "gpt-5",
    "gpt-5.1-chat-latest": "gpt-5.1",
    "gpt-5.2-chat-latest": "gpt-5.2",
}
"""Other names of the same model: old dated ones, and Azure's spelling."""

_PREFIXES = frozenset(
    ("openai", "azure", "azure_ai", "openrouter", "openai-chat", "openai-responses", "github")
)
"""Words that gateways and frameworks put before a model of OpenAI, with "/" or ":"."""

_DATED = re.compile(r"-\d{4}-\d{2}-\d{2}\Z")

_FACTS: dict[str, ModelFacts] = {row.name: row for row in _ROWS}
_LOCK = threading.Lock()


def model_names() -> list[str]:
    """List the known models, sorted; their dated and prefixed names are known too."""
    return sorted(_FACTS)


def facts_for(model: str, /) -> ModelFacts:
    """Look a model up by its name, dated or with a provider's prefix or not.

    Raises:
        UnknownNameError: Nobody registered it; `.near` has known names spelled like it.

    Example:
        >>> facts_for("openai/gpt-4o-2024-08-06").window_tokens
        128000
    """
    for name in _spellings(model):
        found = _FACTS.get(_ALIASES.get(name, name))
        if found is not None:
            return found
    from difflib import get_close_matches  # not above: only a wrong name needs it

    near = tuple(get_close_matches(model, [*_FACTS, *_ALIASES], n=3, cutoff=0.6))
    meant = f" (did you mean {' or '.join(near)}?)" if near else ""
    raise UnknownNameError(
        f"unknown model {model!r}{meant}: pass counter=EstimateCounter() and a budget, or describe it"
        f" once with register_model(ModelFacts(name={model!r}, window_tokens=..., encoding='o200k_base'))",
        name=model,
        near=near,
    )


def register_model(facts: ModelFacts, /, *, replace: bool = False) -> None:
    """Make a model known by its name, for this process.

    Raises:
        ConfigurationError: The name is taken and `replace` is not given, or a limit is not positive.
    """
    for limit in (facts.window_tokens, facts.output_tokens):
        if limit is not None and limit <= 0:
            raise ConfigurationError(f"{facts.name}: a token limit must be positive or None, not {limit}")
    with _LOCK:
        if facts.name in _FACTS and not replace:
            raise ConfigurationError(f"model {facts.name!r} is known already; pass replace=True to change it")
        _FACTS[facts.name] = facts


def _spellings(model: str) -> list[str]:
    """List a name as given, without known prefixes, and without its date, in that order."""
    names = [model]
    head, mark, tail = _split(model)
    while mark and (head in _PREFIXES or head == "ft"):
        # a fine-tuned model is "ft:base:organisation:suffix:id"
        names.append(tail.split(":")[0] if head == "ft" else tail)
        head, mark, tail = _split(names[-1])
    return names + [_DATED.sub("", name) for name in names]


def _split(name: str) -> tuple[str, str, str]:
    marks = [mark for mark in "/:" if mark in name]
    return name.partition(min(marks, key=name.index)) if marks else (name, "", "")
