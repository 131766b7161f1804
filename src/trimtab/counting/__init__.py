"""Counting tokens: exactly with a model's tokenizer, by estimate, or by a function of yours.

`counter_for("gpt-4o")` counts as OpenAI bills; `EstimateCounter()` needs nothing installed;
`counter_from_tokenizer(folder)` counts for an open model by its own files, and `counter_from_text(fn)` by a
function over texts. Any object with `count(messages) -> int` is a counter too, used as a black box.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from trimtab._later import later
from trimtab.counting._additive import Additive
from trimtab.counting._estimate import ESTIMATES, EstimateCounter
from trimtab.counting._protocols import AdditiveCounter, Counter, RequestCounter, TextFunction
from trimtab.counting._simple import CharCounter, FixedCounter, counter_from_text
from trimtab.counting._text import TextCounter
from trimtab.counting._tokenizers import (
    ENCODINGS,
    TOKENIZERS,
    forget_counts,
    load_tokenizer,
    register_encoding,
)
from trimtab.models import ModelFacts, facts_for

if TYPE_CHECKING:
    from trimtab.counting._huggingface import counter_from_tokenizer
    from trimtab.counting._mistral import MistralCounter
    from trimtab.counting._template import TemplateCounter
else:
    # What counting for OpenAI's models does not need.
    __getattr__ = later(
        globals(),
        {
            "MistralCounter": "trimtab.counting._mistral",
            "TemplateCounter": "trimtab.counting._template",
            "counter_from_tokenizer": "trimtab.counting._huggingface",
        },
    )

__all__ = [
    "ENCODINGS",
    "TOKENIZERS",
    "Additive",
    "AdditiveCounter",
    "CharCounter",
    "Counter",
    "EstimateCounter",
    "FixedCounter",
    "MistralCounter",
    "RequestCounter",
    "TemplateCounter",
    "TextCounter",
    "TextFunction",
    "clear_counts",
    "counter_for",
    "counter_from_text",
    "counter_from_tokenizer",
    "register_encoding",
]


def counter_for(model: str, /, *, tokenizer: str | None = None) -> TextCounter | MistralCounter:
    """Return the counter of a model: exact if its tokenizer is public, or estimates.

    Loads the tokenizer on the first call; counters of models with the same encoding share what
    they remember.

    Args:
        model: A name `trimtab.models` knows, with or without a date or a provider's prefix.
        tokenizer: One of `TOKENIZERS`, the package that splits text; None takes the first installed.

    Raises:
        UnknownNameError: Nobody registered the model, or there is no such tokenizer.
        MissingExtraError: No tokenizer package is installed.

    Example:
        >>> counter_for("gpt-4o").count([{"role": "user", "content": "What is a token?"}])
        12
    """
    return _counter_by(facts_for(model), tokenizer)


# Threads that meet here may get a counter each; what counters remember is shared all the same.
@cache
def _counter_by(facts: ModelFacts, tokenizer: str | None) -> TextCounter | MistralCounter:
    if facts.encoding is None:
        return EstimateCounter(name=facts.name, framing=facts.framing, media=facts.media, format=facts.format)
    loaded = load_tokenizer(facts.encoding, package=tokenizer)
    kind: type[TextCounter | MistralCounter] = TextCounter
    if facts.encoding == "tekken":
        from trimtab.counting._mistral import MistralCounter as kind
    return kind(
        loaded.count,
        name=facts.name,
        exact=facts.exact,
        framing=facts.framing,
        media=facts.media,
        format=facts.format,
        cache=loaded.cache,
    )


def clear_counts() -> None:
    """Forget the counts remembered by text, of every encoding and of estimates."""
    forget_counts()
    ESTIMATES.clear()
