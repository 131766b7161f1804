"""Summarizers and fact extractors: by a model endpoint, without a model, or your own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trimtab._shared.lazy import later
from trimtab.strategies.fact_extractor import (
    Fact,
    FactExtractor,
    FactExtractorLike,
    FactRequest,
    fact_extractor_from,
)
from trimtab.strategies.must_keep import MustKeepLike
from trimtab.strategies.summarizer import (
    Summarizer,
    SummarizerLike,
    SummaryRequest,
    arun_summarizer,
    default_prompt,
    marked_summary,
    run_summarizer,
    summarizer_from,
)

if TYPE_CHECKING:
    from trimtab.summaries.extractive import ExtractiveSummarizer
    from trimtab.summaries.openai import (
        AsyncOpenAIFactExtractor,
        AsyncOpenAISummarizer,
        OpenAIFactExtractor,
        OpenAISummarizer,
    )
else:
    # They stand on `fit`, which stands on the strategies, which ask summarizers.
    _HERE = "trimtab.summaries."
    __getattr__ = later(
        globals(),
        {
            **dict.fromkeys(
                (
                    "AsyncOpenAIFactExtractor",
                    "AsyncOpenAISummarizer",
                    "OpenAIFactExtractor",
                    "OpenAISummarizer",
                ),
                _HERE + "openai",
            ),
            "ExtractiveSummarizer": _HERE + "extractive",
        },
    )

__all__ = [
    "AsyncOpenAIFactExtractor",
    "AsyncOpenAISummarizer",
    "ExtractiveSummarizer",
    "Fact",
    "FactExtractor",
    "FactExtractorLike",
    "FactRequest",
    "MustKeepLike",
    "OpenAIFactExtractor",
    "OpenAISummarizer",
    "Summarizer",
    "SummarizerLike",
    "SummaryRequest",
    "arun_summarizer",
    "default_prompt",
    "fact_extractor_from",
    "marked_summary",
    "run_summarizer",
    "summarizer_from",
]
