"""Mistral's requests as its own package encodes them, message by message.

The rules are those of mistral-common 1.13 (tokens/tokenizers/instruct.py, version 13) and of the bills
of one half of the recorded requests (2026-11); tests compare the sums with the package's whole requests.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, Self

from trimtab.counting.base import AdditiveCounter, TextFunction
from trimtab.counting.cache import TextCache
from trimtab.counting.media import base64_of, image_size, is_seen, media_tokens
from trimtab.counting.schemas import is_refused, split_beside, system_texts
from trimtab.formats import Format, Media, Pieces, get_format
from trimtab.formats.tools import function_in
from trimtab.formats.values import compact_json, mapping_of
from trimtab.models import Framing, Margin, MediaRule

_BRACKETS_TOKENS = 2
"""What stands around system text, a user's message, a result, the tools, and in a call."""
_END_TOKENS = 1
"""The end of an answer."""

_PATCH_PIXELS, _LONGEST_PIXELS = 28, 1_540
"""Of images: billed for two sizes, and mistral-common's ImageConfig of Mistral Small 3.1 (2026-11)."""

_FREE = '{"prefix":'
"""What stands beside texts and costs nothing, as it is read."""
_BY_SIZE = MediaRule(pixels_per_token=1)
"""For telling what is seen: an image of any detail costs by its size here."""


class MistralCounter(AdditiveCounter):
    """Counts requests to Mistral's models as they are billed.

    Images of unknown size cost the most possible. In `Framing`, `per_request_tokens` is the start of a
    request, including the settings of the model, and `result_ids_counted` says that calls and results show
    their ids, as before version 13.

    Args:
        count_text: The model's tokenizer: returns the tokens of a text.
        name: Its name in reports.
        exact: Whether that tokenizer and framing are the model's own.
        framing: Charges in addition to the text.
        media: Charges for images and files. None: `MediaRule()`.
        margin: How far a count may be off. None: they are exact.
        exact_features: By wire form, the features of requests that were billed as counted; a count with other
            features is not exact. None: those of `exact`.
        format: Name of the wire form of the messages; `fit` and `Context` set it themselves.
        cache: Where counts of texts are remembered. None: its own cache.
    """

    def __init__(
        self,
        count_text: TextFunction,
        /,
        *,
        name: str,
        exact: bool,
        framing: Framing,
        media: MediaRule | None = None,
        margin: Margin | None = None,
        exact_features: Mapping[str, frozenset[str]] | None = None,
        format: str | Format = "openai_chat",
        cache: TextCache | None = None,
    ) -> None:
        self.name = name
        self.exact = exact
        self.framing = framing
        self.margin = margin
        self.media = MediaRule() if media is None else media
        self._format = get_format(format)
        self._exact_form = self._format.name if exact else None
        self._exact_features = exact_features
        self._cache = TextCache(count_text, name=name) if cache is None else cache

    def with_format(self, format: str | Format, /) -> Self:
        """Return the same counter for another wire form; remembered counts are shared.

        It is exact only in the form it was made for: Mistral accepts no other.
        """
        twin = super().with_format(format)
        twin.exact = twin.format.name == self._exact_form
        return twin

    @property
    def exact_features(self) -> frozenset[str] | None:
        return (
            None if self._exact_features is None else self._exact_features.get(self._format.name, frozenset())
        )

    def margin_tokens(self, tokens: int, /) -> int | None:
        """Return how far the bill may be above a count; None if unknown.

        Source: 16 of 16 recorded requests were billed as counted (2026-11), with tools and images among them.
        """
        if self.exact and self._exact_features is None:
            return 0
        return None if self.margin is None else self.margin.of(tokens)

    def over_margin_tokens(self, tokens: int, /) -> int | None:
        """Return how far the bill may be below a count; None if unknown."""
        if self.exact and self._exact_features is None:
            return 0
        return None if self.margin is None else self.margin.over_of(tokens)

    def count_text(self, text: str, /) -> int:
        return self._cache.young[text]

    def count_message(self, message: Any, /) -> int:
        message = mapping_of(message)
        if "prefix" in message:
            # says whether the model goes on with this answer, and is not shown to it
            message = {key: value for key, value in message.items() if key != "prefix"}
        pieces = self._format.pieces(message)
        counts = self._cache.young
        tokens = sum(counts[text] for text in (*pieces.texts, *pieces.other))
        tokens += sum(_BRACKETS_TOKENS + counts[text] for text in pieces.thoughts)
        tokens += counts[_tools_text(pieces.tools)] if pieces.tools else 0
        tokens += sum(self.media_tokens(media) for media in pieces.media)
        tokens += sum(
            _BRACKETS_TOKENS + counts[name] + counts[_with_spaces(arguments)]
            for name, arguments in pieces.calls
        )
        kind = self._format.kind(message)
        # results that are parts of a message are messages here
        tokens += _BRACKETS_TOKENS * max(0, pieces.results - (kind == "tool"))
        if self.framing.result_ids_counted:
            ids = [pieces.result_id] if pieces.result_id else self._format.tool_names(message)
            tokens += sum(1 + counts[id] for id in ids)
        return tokens + (_END_TOKENS if kind == "assistant" else _BRACKETS_TOKENS)

    def fixed_tokens(
        self, system: Any, tools: Any, /, *, has_system: bool, extra: Mapping[str, Any] | None = None
    ) -> int:
        """Count what a request is charged in addition to its messages.

        Output schemas cost nothing: the model does not see them.
        """
        tools, extra = split_beside(tools, extra)
        if self.framing.tools_dropped_by_none and is_refused(extra):
            tools = None
        counts = self._cache.young
        texts = system_texts(system)
        tokens = self.framing.per_request_tokens
        tokens += sum(counts[text] for text in texts) + (_BRACKETS_TOKENS if texts else 0)
        return tokens + (_BRACKETS_TOKENS + counts[_tools_text(tools)] if tools else 0)

    @property
    def adds_prompt(self) -> bool:
        return self.framing.prompts_by_default

    def sees(self, medium: Media, /) -> bool:
        """Tell whether a medium is an image whose size the message shows."""
        return medium.kind == "image" and is_seen(medium, _BY_SIZE)

    def knows(self, pieces: Pieces, /) -> bool:
        """Tell whether a message has only content that bills were compared for."""
        return not self.guesses(pieces) and all(medium.kind == "image" for medium in pieces.media)

    def guesses(self, pieces: Pieces, /) -> list[str]:
        """List the parts of a message whose counting rules no bill confirms.

        One bill had 664 tokens where 720 were counted with thoughts, and one had 997 for a document that was
        counted as the 115 of its address.
        """
        found = ["thoughts of earlier answers"] if pieces.thoughts else []
        if any(not other.startswith(_FREE) for other in pieces.other):
            found.append("parts or keys without a rule")
        return found

    def unsure_tokens(self, tools: Any, media: Iterable[Media] = (), /) -> int:
        """Say how far the count of media may be off beyond the margin.

        These are images whose size a message does not show, and media other than images.
        """
        return sum(self.media_tokens(one) for one in media if not self.sees(one))

    def media_tokens(self, media: Media, /) -> int:
        if media.kind != "image":
            return media_tokens(media, self.media)
        size, patch, longest = image_size(base64_of(media.data)), _PATCH_PIXELS, _LONGEST_PIXELS
        if self.media.pixels_per_token is not None:
            patch, longest = math.isqrt(self.media.pixels_per_token), self.media.long_pixels
        if size is None:
            most = longest // patch
            return (most + 1) * most
        scale = min(1.0, longest / max(size))
        across, down = (max(1, math.ceil(round(side * scale) / patch)) for side in size)
        return (across + 1) * down  # each row ends with a token of its own


def _with_spaces(arguments: str) -> str:
    """Write arguments of a call as the package does, with spaces behind marks; no JSON stays as it is."""
    try:
        return json.dumps(json.loads(arguments), ensure_ascii=False)
    except (ValueError, RecursionError):
        return json.dumps(arguments, ensure_ascii=False)


def _tools_text(tools: object) -> str:
    """Write tools as they are encoded: all fields, in the package's order, with spaces."""
    if not isinstance(tools, list | tuple):
        return tools if isinstance(tools, str) else compact_json(tools)
    return json.dumps([_tool(tool) for tool in tools], ensure_ascii=False, default=str)


def _tool(tool: object) -> object:
    function = function_in(tool)
    if function is None:
        return json.loads(compact_json(tool))
    return {
        "type": "function",
        "function": {
            "name": function.name,
            "description": function.description or "",
            "parameters": function.schema,
        },
    }
