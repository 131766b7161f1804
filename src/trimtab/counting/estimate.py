"""Estimates of token counts by kind of character, where no tokenizer is at hand."""

from __future__ import annotations

from trimtab.counting.cache import TextCache
from trimtab.counting.script_weights import estimate_tokens
from trimtab.counting.texts import TextCounter
from trimtab.formats import Format
from trimtab.models import Framing, Margin, MediaRule

_FRAMING = Framing(tools_style="json", tools_tokens=8, tools_saved_by_system_tokens=0)
"""As OpenAI charges, but tools as JSON: how another provider shows them is not known."""


def _estimates() -> TextCache:
    return ESTIMATES


ESTIMATES = TextCache(estimate_tokens, name="estimate", origin=(_estimates, ()))
"""Estimates remembered for the whole process: they depend on nothing but the text."""


class EstimateCounter(TextCounter):
    """Estimates tokens from the scripts of a text's characters; errs high.

    Needs no package and no vocabulary. At or above the o200k count for 95 % of real messages,
    in every script that was tried; see `tests/test_counting_estimate.py` for how far.

    Args:
        name: What reports call it.
        framing: What is charged beside the text. None: as for OpenAI's models.
        media: What is charged for images, sound and files. None: the rule of the wire form's provider.
        margin: How far an estimate may be off. None: nobody knows.
        format: Name of the wire form its messages are in; `fit` and `Context` set it themselves.
        cache: Where counts of texts are remembered. None: with all other estimates.

    Example:
        >>> EstimateCounter().count([{"role": "user", "content": "What is a token?"}])
        14
    """

    __slots__ = ()

    def __init__(
        self,
        *,
        name: str = "estimate",
        framing: Framing | None = None,
        media: MediaRule | None = None,
        margin: Margin | None = None,
        format: str | Format = "openai_chat",
        cache: TextCache | None = None,
    ) -> None:
        super().__init__(
            estimate_tokens,
            name=name,
            framing=_FRAMING if framing is None else framing,
            media=media,
            margin=margin,
            format=format,
            cache=ESTIMATES if cache is None else cache,
        )
