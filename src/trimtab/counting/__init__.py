"""Token counting: exact with a model's tokenizer, by estimate, or with a function of your own.

`counter_for("gpt-4o")` counts as OpenAI bills; `EstimateCounter()` needs no package;
`counter_from_tokenizer(folder)` counts for an open model with its own files; and `counter_from_text(fn)`
counts with a function over texts. Any object with `count(messages) -> int` is a counter too, and is used as a
black box.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

from trimtab._shared.checks import check_tools
from trimtab._shared.lazy import later
from trimtab._shared.memory import TERMS, TEXTS, WEIGHTS
from trimtab.counting.base import (
    AdditiveCounter,
    Counter,
    CounterLike,
    CountRequest,
    RequestCounter,
    TextFunction,
)
from trimtab.counting.estimate import ESTIMATES, EstimateCounter
from trimtab.counting.simple import CharCounter, FixedCounter, counter_from_text
from trimtab.counting.texts import TextCounter, forget_scaled, scale
from trimtab.counting.tokenizers import (
    ENCODINGS,
    TOKENIZERS,
    Tokenizer,
    forget_counts,
    load_tokenizer,
    register_encoding,
    replacements,
)
from trimtab.errors import ConfigurationError, MissingExtraError
from trimtab.formats import Format, SystemLike, ToolSchema
from trimtab.models import ModelFacts, exact_features_for, facts_for, find_facts, known_model_in

if TYPE_CHECKING:
    from trimtab.counting.awaited import AsyncRequestCounter
    from trimtab.counting.baseline import UsageBaseline
    from trimtab.counting.calibration import CalibratedCounter, CalibrationLike
    from trimtab.counting.measurement import Count
    from trimtab.counting.remote import CountQuestion, RemoteCounter
    from trimtab.counting.tokenizers.huggingface import counter_from_tokenizer
    from trimtab.counting.tokenizers.mistral import MistralCounter
    from trimtab.counting.tokenizers.template import TemplateCounter
    from trimtab.counting.usage import billed_parts
else:
    # What counting for OpenAI's models does not need.
    __getattr__ = later(
        globals(),
        {
            "AsyncRequestCounter": "trimtab.counting.awaited",
            "CalibratedCounter": "trimtab.counting.calibration",
            "Count": "trimtab.counting.measurement",
            "CountQuestion": "trimtab.counting.remote",
            "MistralCounter": "trimtab.counting.tokenizers.mistral",
            "RemoteCounter": "trimtab.counting.remote",
            "TemplateCounter": "trimtab.counting.tokenizers.template",
            "UsageBaseline": "trimtab.counting.baseline",
            "billed_parts": "trimtab.counting.usage",
            "counter_from_tokenizer": "trimtab.counting.tokenizers.huggingface",
        },
    )

__all__ = [
    "ENCODINGS",
    "TOKENIZERS",
    "AdditiveCounter",
    "AsyncRequestCounter",
    "CalibratedCounter",
    "CharCounter",
    "Count",
    "CountQuestion",
    "CountRequest",
    "Counter",
    "CounterLike",
    "EstimateCounter",
    "FixedCounter",
    "MistralCounter",
    "RemoteCounter",
    "RequestCounter",
    "TemplateCounter",
    "TextCounter",
    "TextFunction",
    "UsageBaseline",
    "billed_parts",
    "clear_counts",
    "counter_for",
    "counter_from_text",
    "counter_from_tokenizer",
    "measure",
    "register_encoding",
]


@overload
def counter_for(
    model: str, /, *, tokenizer: str | None = None, calibration: None = None
) -> TextCounter | MistralCounter: ...
@overload
def counter_for(
    model: str, /, *, tokenizer: str | None = None, calibration: CalibrationLike
) -> CalibratedCounter: ...
def counter_for(
    model: str, /, *, tokenizer: str | None = None, calibration: CalibrationLike | None = None
) -> TextCounter | MistralCounter | CalibratedCounter:
    """Return a model's counter: exact if its tokenizer is public, else an estimate.

    Loads the tokenizer on the first call; counters of models with the same encoding share remembered counts.

    Args:
        model: A name `trimtab.models` knows, with or without a date or a provider's prefix.
        tokenizer: One of `TOKENIZERS`, the package that splits text; None takes the first that is installed.
        calibration: What `trimtab count --bills --learn` wrote, as a file or its data. It corrects counts by
            the model's bills; such counts are never exact. The model may be known only to that file.

    Raises:
        UnknownNameError: The model is not registered, or there is no such tokenizer.
        MissingExtraError: No tokenizer package is installed.
        ConfigurationError: The calibration is for other models or another counter, has too few calls, or
            cannot be read.

    Example:
        >>> counter_for("gpt-4o").count([{"role": "user", "content": "What is a token?"}])
        12
    """
    if tokenizer is not None and not isinstance(tokenizer, str):
        raise ConfigurationError(
            f"tokenizer must be one of {', '.join(TOKENIZERS)}, not {tokenizer!r:.80}", argument="tokenizer"
        )
    if calibration is None:
        return _counter_by(facts_for(model), tokenizer, replacements())
    from trimtab.counting.calibration import CalibratedCounter, calibration_of

    learned, facts = calibration_of(model, calibration), find_facts(model)
    if facts is None or learned.counter == "estimate":
        return CalibratedCounter(EstimateCounter(), learned)
    return CalibratedCounter(_counter_by(facts, tokenizer, replacements()), learned)


def counter_given(counter: CounterLike | None, model: str | None, /) -> CounterLike:
    """Return the counter that is given, else the one of the model; without either, one that estimates."""
    if counter is not None:
        return counter
    return EstimateCounter() if model is None else counter_for(model)


# Threads that meet here may get a counter each; what counters remember is shared all the same.
@functools.cache
def _counter_by(facts: ModelFacts, tokenizer: str | None, _replaced: int) -> TextCounter | MistralCounter:
    loaded = _tokenizer_for(facts, tokenizer)
    if loaded is None:
        return _estimate_of(facts)
    if loaded.encoding == "tekken":
        from trimtab.counting.tokenizers.mistral import MistralCounter

        return MistralCounter(
            loaded.count,
            name=facts.name,
            exact=facts.exact,
            framing=facts.framing,
            media=facts.media,
            margin=facts.margin,
            exact_features=exact_features_for(facts) if facts.exact else None,
            format=facts.format,
            cache=loaded.cache,
        )
    own = loaded.encoding == facts.encoding
    cache = loaded.cache if own else scale(loaded, facts)
    return TextCounter(
        cache.count_text,
        name=facts.name,
        exact=facts.exact and own,
        framing=facts.framing,
        framings=dict(facts.framings),
        media=facts.media,
        margin=facts.margin,
        margins=dict(facts.margins),
        exact_features=exact_features_for(facts) if facts.exact and own else None,
        format=facts.format,
        cache=cache,
    )


def estimate_for(model: str, /) -> EstimateCounter:
    """Return the estimating counter of a known model, whatever is installed.

    Args:
        model: As for `counter_for`.

    Raises:
        UnknownNameError: The model is not registered.
    """
    return _estimate_of(facts_for(model))


def _estimate_of(facts: ModelFacts) -> EstimateCounter:
    # the margin of a model whose own or nearest encoding is missing is not one of estimates
    by_estimate = facts.encoding is None and facts.near_encoding is None
    return EstimateCounter(
        name=facts.name,
        framing=facts.framing,
        media=facts.media,
        margin=facts.margin if by_estimate else None,
        format=facts.format,
    )


def _tokenizer_for(facts: ModelFacts, package: str | None) -> Tokenizer | None:
    """Load a model's own encoding, else the one that is nearest; None where neither can be had.

    Raises:
        MissingExtraError: Counts of the model are exact with its own one, or there is nothing near it, or the
            package was asked for by name. A count that is silently no count is worse than none.
    """
    if facts.encoding is not None:
        try:
            return load_tokenizer(facts.encoding, package=package)
        except MissingExtraError:
            if facts.exact or facts.near_encoding is None:
                raise
    if facts.near_encoding is None:
        return None
    try:
        return load_tokenizer(facts.near_encoding, package=package)
    except MissingExtraError:
        if package is not None:
            raise
        return None


def measure(
    given: Any,
    /,
    *,
    model: str | None = None,
    counter: CounterLike | None = None,
    format: str | Format = "auto",
    system: SystemLike | None = None,
    tools: Sequence[ToolSchema] | None = None,
) -> Count:
    """Count a whole request, with its parts and how far the bill may be off.

    A counter is asked about one message at a time; this reads the request as a whole. Reasoning of finished
    turns is not charged if the provider does not charge it.

    Args:
        given: Messages, or a request body, in any wire form.
        model: The model whose rules apply; None takes the model that a body names, if it is known.
        counter: The counter to use instead; None takes the model's own, or the estimate without a model.
        format: "auto", the name of a wire form, or a `Format`.
        system: System text outside the messages.
        tools: Tool schemas outside a body.

    Raises:
        ConfigurationError: Both a model and a counter are given, or `counter` is not a counter.
        UnknownNameError: The model is not registered, or there is no such wire form.
        MissingExtraError: The model's tokenizer is not installed.
        FormatError: The argument has no messages.

    Example:
        >>> found = measure([{"role": "user", "content": "What is a token?"}], model="gpt-4o")
        >>> found.tokens, found.exact, found.margin_tokens, found.messages_tokens
        (12, True, 0, 9)
    """
    if model is not None and counter is not None:
        raise ConfigurationError(
            "pass model= or counter= to measure, not both: a model has its own counter", argument="model"
        )
    check_tools(tools)
    from trimtab.counting.measurement import count_of_request

    named = known_model_in(given) if model is None else model
    counter = counter_given(counter, named)
    return count_of_request(given, counter, format=format, model=named, system=system, tools=tools).total


def features_in(given: Any, /, *, model: str, format: str | Format = "auto") -> frozenset[str]:
    """List the features of a request for which bills are compared; see `trimtab.counting.features`."""
    from trimtab.counting.features import features_of
    from trimtab.counting.measurement import read_given

    form, entries, fixed, request = read_given(given, format=format, model=model, system=None, tools=None)
    return features_of(entries, form, fixed, model=model, request=request)


def clear_counts() -> None:
    """Forget the counts remembered by text, of all encodings and of estimates.

    What is remembered between calls of a chat is forgotten, too: weights of messages in strides, the cuts of
    `Cheapest`, and the words of texts that questions were asked about.
    """
    forget_counts()
    forget_scaled()
    ESTIMATES.clear()
    WEIGHTS.clear()
    TEXTS.clear()
    TERMS.clear()
