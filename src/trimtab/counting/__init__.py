"""Counting tokens: exactly with a model's tokenizer, by estimate, or by a function of yours.

`counter_for("gpt-4o")` counts as OpenAI bills; `EstimateCounter()` needs nothing installed;
`counter_from_tokenizer(folder)` counts for an open model by its own files, and `counter_from_text(fn)` by a
function over texts. Any object with `count(messages) -> int` is a counter too, used as a black box.
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
    """Return the counter of a model: exact if its tokenizer is public, or estimates.

    Loads the tokenizer on the first call; counters of models with the same encoding share what
    they remember.

    Args:
        model: A name `trimtab.models` knows, with or without a date or a provider's prefix.
        tokenizer: One of `TOKENIZERS`, the package that splits text; None takes the first installed.
        calibration: What `trimtab count --bills --learn` wrote, a file or its data: counts are corrected by
            what the model's bills taught, and never exact. The model may be one that only the file knows.

    Raises:
        UnknownNameError: Nobody registered the model, or there is no such tokenizer.
        MissingExtraError: No tokenizer package is installed.
        ConfigurationError: The calibration is of other models, of another counter, of too few calls, or
            cannot be read.

    Example:
        >>> counter_for("gpt-4o").count([{"role": "user", "content": "What is a token?"}])
        12
    """
    if tokenizer is not None and not isinstance(tokenizer, str):
        raise ConfigurationError(
            f"tokenizer is one of {', '.join(TOKENIZERS)}, not {tokenizer!r:.80}", argument="tokenizer"
        )
    if calibration is None:
        return _counter_by(facts_for(model), tokenizer, replacements())
    from trimtab.counting.calibration import CalibratedCounter, calibration_of

    facts = find_facts(model)
    learned = calibration_of(model if facts is None else facts.name, calibration)
    if facts is None or learned.counter == "estimate":
        return CalibratedCounter(EstimateCounter(), learned)
    return CalibratedCounter(_counter_by(facts, tokenizer, replacements()), learned)


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
    """Return what estimates for a known model, whatever is installed.

    Args:
        model: As for `counter_for`.

    Raises:
        UnknownNameError: Nobody registered the model.
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
    """Count a whole request, with what it is made of and how far the bill may be off.

    Unlike a counter, which is asked about one message at a time, this reads the request as a whole:
    reasoning of turns that are over is not charged where the provider does not.

    Args:
        given: Messages, or a request body, of any wire form.
        model: Whose rules to count by; None takes the one a body names, if it is known.
        counter: Counts in its place; None takes the model's own, or the estimate without one.
        format: "auto", the name of a wire form, or a `Format`.
        system: System text that is not among the messages.
        tools: Tool schemas that are not in a body.

    Raises:
        ConfigurationError: Both a model and a counter are given, or what is given is no counter.
        UnknownNameError: Nobody registered the model, or there is no such wire form.
        MissingExtraError: The model's tokenizer is not installed.
        FormatError: What is given holds no messages.

    Example:
        >>> found = measure([{"role": "user", "content": "What is a token?"}], model="gpt-4o")
        >>> found.tokens, found.exact, found.margin_tokens, found.messages_tokens
        (12, True, 0, 9)
    """
    if model is not None and counter is not None:
        raise ConfigurationError(
            "pass model= or counter= to measure, not both: a model has a counter", argument="model"
        )
    check_tools(tools)
    from trimtab.counting.measurement import count_of_request

    named = known_model_in(given) if model is None else model
    if counter is None:
        counter = EstimateCounter() if named is None else counter_for(named)
    return count_of_request(given, counter, format=format, model=named, system=system, tools=tools).total


def features_in(given: Any, /, *, model: str, format: str | Format = "auto") -> frozenset[str]:
    """List what a request has that bills are compared for; see `trimtab.counting.features`."""
    from trimtab.counting.features import features_of
    from trimtab.counting.measurement import read_given

    form, entries, fixed, request = read_given(given, format=format, model=model, system=None, tools=None)
    return features_of(entries, form, fixed, model=model, request=request)


def clear_counts() -> None:
    """Forget the counts remembered by text, of every encoding and of estimates.

    What is remembered from call to call of a chat is forgotten, too: what messages weigh in strides, where
    `Cheapest` cut, and the words of texts that questions were asked about.
    """
    forget_counts()
    forget_scaled()
    ESTIMATES.clear()
    WEIGHTS.clear()
    TEXTS.clear()
    TERMS.clear()
