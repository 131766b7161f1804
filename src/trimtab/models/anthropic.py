"""Models of Anthropic: no tokenizer of theirs is public since Claude 3, so counts are o200k's by a factor."""

from __future__ import annotations

import re
from dataclasses import replace

from trimtab.models.facts import Framing, Margin, MediaRule, ModelFacts, Unnamed, aliases, group

_CHECKED = "2026-11-22"
_DOCS = "https://platform.claude.com/docs/en/about-claude/models/overview"
_SDK = "https://github.com/anthropics/anthropic-sdk-python/blob/v2.12.0/src/anthropic/types/model.py"
"""Has the name; no page that says more of it was found."""

# Billed for one half of 290 recorded requests and of one coding session (2026-11): up to Claude 4.6 a plain
# text takes its o200k tokens, and each mark of punctuation 0.39 of a token more, each letter of words in
# capitals 0.105; so English prose is 1.0 times o200k, indented JSON 1.2, code 1.25. Errs: within 10 % for
# nine texts of ten, where one factor for all was 17 % off. The tokenizer since 4.7 makes "approximately 30 %
# more" of the same text (platform.claude.com/docs/en/about-claude/pricing, 2026-08). Other scripts were not
# in those bills.
_MARGIN = Margin(tokens=4, per_mille=75, over_tokens=5, over_per_mille=90)

# docs "Vision" (2026-11): width x height / 750, after scaling to a long side of 1,568 pixels and about 1,600
# tokens; 2,576 pixels and three times the tokens since Opus 4.7. A page of a PDF is an image and its text:
# "1,500 to 3,000 tokens"; billed 1,590 for a short one.
_MEDIA = MediaRule(
    pixels_per_token=750,
    most_image_tokens=1_600,
    image_tokens=0,
    page_tokens=1_600,
    file_tokens=1_600,
    pdf_bytes_per_token=None,
)
_SHARPER_MEDIA = replace(
    _MEDIA, long_pixels=2_576, most_image_tokens=4_784, page_tokens=2_200, file_tokens=2_200
)

# As billed; the prompt that tools bring along differs by model and is documented.
_FRAMING = Framing(
    per_request_tokens=0,
    per_message_tokens=7,  # a user's, with what opens the answer behind it
    answer_frame_tokens=0,
    system_frame_tokens=0,
    roles_counted=False,
    system_framed=False,
    per_call_tokens=25,
    call_name_factor=1,
    parallel_calls_tokens=0,
    further_call_tokens=31,
    per_result_tokens=18,
    tools_style="schemas",
    per_tool_tokens=2,
    tools_saved_by_system_tokens=0,
    output_schema_style="indented",
    output_schema_tokens=80,
    thinking_tokens=28,  # billed: 16 to 29
    task_budget_tokens=37,
    citations_tokens=555,  # billed: 553 to 563
    document_tokens=40,  # billed: 37 to 41
    calls_framed_by_tools=True,  # 510 were billed without tools, 711 counted with the frames
    late_tools_tokens=65,
    past_thoughts_charged=True,
    sealed_chars_per_token=5,
)
_OLD = ModelFacts(
    name="",
    provider="anthropic",
    format="anthropic",
    near_encoding="o200k_base",
    text_factor=1.0,
    mark_tokens=0.39,
    capital_tokens=0.105,
    framing=_FRAMING,
    media=_MEDIA,
    margin=_MARGIN,
    source=_DOCS,
    checked=_CHECKED,
)
_NEW = replace(
    _OLD,
    text_factor=1.22,
    mark_tokens=0.47,
    capital_tokens=0.13,
    # what frames calls and tools is text as well, in the finer vocabulary
    framing=replace(
        _FRAMING,
        per_call_tokens=31,
        further_call_tokens=38,
        per_result_tokens=22,
        per_tool_tokens=3,
        late_tools_tokens=130,
        citations_tokens=808,
        document_tokens=48,
    ),
    media=_SHARPER_MEDIA,
)


def _claude(
    kind: ModelFacts, auto_tokens: int, forced_tokens: int, *, keeps_thoughts: bool = True
) -> ModelFacts:
    """Give a kind with what tools bring along, and with whether earlier thinking stays in the context."""
    framing = replace(
        kind.framing,
        tools_tokens=auto_tokens,
        forced_tools_tokens=forced_tokens,
        past_thoughts_charged=keeps_thoughts,
    )
    return replace(kind, framing=framing)


# Thinking of earlier turns stays in the context since Opus 4.5 and Sonnet 4.6, and is taken out before that
# and by every Haiku (docs "Extended thinking", "Thinking block preservation", 2026-11, as quoted in projects
# that follow it). Bills of Sonnet 4.5 were the same without it.
# What tools bring along (auto or none, any or tool): pricing page of the docs (2026-08), "Tool use system
# prompt token overhead".
# Not documented where we looked for those after Opus 5: as for the last of their line that is.
_FABLE, _SONNET = _claude(_NEW, 290, 410), _claude(_NEW, 354, 474)
_FORGETS_4 = _claude(_OLD, 313, 315, keeps_thoughts=False)
_FORGETS_4_5 = _claude(_OLD, 496, 588, keeps_thoughts=False)

_ROWS = (
    *group(_claude(_NEW, 286, 406), 1_000_000, 128_000, "claude-opus-5-5 claude-opus-5"),
    *group(_SONNET, 1_000_000, 128_000, "claude-sonnet-5-5 claude-sonnet-5"),
    *group(_claude(_NEW, 354, 474, keeps_thoughts=False), 1_000_000, 128_000, "claude-haiku-5-5"),
    *group(_FABLE, 1_000_000, 128_000, "claude-fable-5-1"),
    *group(_FABLE, 1_000_000, 128_000, "claude-mythos-5 claude-mythos-5-1 claude-mythos-preview"),
    # not documented for Fable 5: as for Opus 4.8, which its bill bears out
    *group(_FABLE, 1_000_000, 128_000, "claude-opus-4-8 claude-fable-5"),
    # the window by genai-prices 0.2.3 (2026-11-27), the most output as of all since 4.6
    *group(_FABLE, 1_000_000, 128_000, "claude-fable-5-2 claude-mythos-5-2", source=_SDK),
    *group(_claude(_NEW, 675, 804), 1_000_000, 128_000, "claude-opus-4-7"),
    *group(_claude(_OLD, 497, 589), 1_000_000, 128_000, "claude-opus-4-6 claude-sonnet-4-6"),
    *group(_claude(_OLD, 496, 588), 200_000, 64_000, "claude-opus-4-5"),
    *group(_FORGETS_4_5, 200_000, 64_000, "claude-sonnet-4-5 claude-haiku-4-5"),
    *group(_FORGETS_4, 200_000, 32_000, "claude-opus-4-1 claude-opus-4"),
    *group(_FORGETS_4, 200_000, 64_000, "claude-sonnet-4"),
    # the prompt for tools: not documented where we looked, as for Sonnet 4
    *group(_FORGETS_4, 200_000, 64_000, "claude-3-7-sonnet"),
    *group(_FORGETS_4, 200_000, 8_192, "claude-3-5-sonnet"),
    *group(_claude(_OLD, 264, 355, keeps_thoughts=False), 200_000, 8_192, "claude-3-5-haiku"),
    # docs.anthropic.com, "Tool use pricing and tokens", in its first form
    *group(_claude(_OLD, 530, 281, keeps_thoughts=False), 200_000, 4_096, "claude-3-opus"),
    *group(_claude(_OLD, 159, 235, keeps_thoughts=False), 200_000, 4_096, "claude-3-sonnet"),
    *group(_claude(_OLD, 264, 340, keeps_thoughts=False), 200_000, 4_096, "claude-3-haiku"),
)

# Databricks makes a tool of an output schema, and the model call it: billed as the prompt for that, its words
# and some 45 more (2026-11, two bills; api "chat"). The others' bills there are as Anthropic's.
_DATABRICKS = tuple(
    replace(
        row,
        name=f"databricks-{row.name}",
        format="openai_chat",
        framing=replace(
            row.framing,
            output_schema_style="compact",
            output_schema_tokens=(row.framing.forced_tools_tokens or 0) + 45,
        ),
    )
    for row in _ROWS
    if row.output_tokens and row.output_tokens > 8_192
)
ROWS = (*_ROWS, *_DATABRICKS)

# The finer vocabulary and the longest prompt for tools of all; the margin reaches down to the least.
UNNAMED = (
    Unnamed(re.compile(r"claude-"), "claude-opus-4-7", Margin(tokens=660, per_mille=260, plain_tokens=8)),
)

# As gateways spell them: with a point in the version, or with the line behind it.
_VERSIONS = {
    "opus": ("4.1", "4.5", "4.6", "4.7", "4.8", "5.5"),
    "sonnet": ("4.5", "4.6", "5.5"),
    "haiku": ("4.5", "5.5"),
    "fable": ("5.1", "5.2"),
    "mythos": ("5.1", "5.2"),
}
ALIASES = {
    f"claude-{line}-{version}": f"claude-{line}-{version.replace('.', '-')}"
    for line, versions in _VERSIONS.items()
    for version in versions
} | aliases(
    {
        "claude-opus-4": "claude-opus-4-0 claude-4-opus",
        "claude-opus-4-5": "claude-4.5-opus",
        "claude-opus-4-6": "claude-4.6-opus",
        "claude-sonnet-4": "claude-sonnet-4-0 claude-4-sonnet",
        "claude-sonnet-4-5": "claude-4.5-sonnet",
        "claude-sonnet-4-6": "claude-4.6-sonnet",
        "claude-haiku-4-5": "claude-4.5-haiku",
        "claude-3-7-sonnet": "claude-3-7-sonnet-latest claude-3.7-sonnet",
        "claude-3-5-sonnet": "claude-3-5-sonnet-latest claude-3.5-sonnet",
        "claude-3-5-haiku": "claude-3-5-haiku-latest claude-3.5-haiku",
        "claude-3-opus": "claude-3-opus-latest",
    }
)

REASONS: dict[tuple[str, str], str] = {}
"""Why a value is not what other tables have, and when it was looked into; see bench/models.py."""
