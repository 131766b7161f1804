"""Summarizers: an endpoint of a model, one that needs no model, and the seam for one of your own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trimtab._shared.lazy import later
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
    from trimtab.summaries.openai import AsyncOpenAISummarizer, OpenAISummarizer
else:
    # They stand on `fit`, which stands on the strategies, which ask summarizers.
    _HERE = "trimtab.summaries."
    __getattr__ = later(
        globals(),
        {
            **dict.fromkeys(("AsyncOpenAISummarizer", "OpenAISummarizer"), _HERE + "openai"),
            "ExtractiveSummarizer": _HERE + "extractive",
        },
    )

__all__ = [
    "AsyncOpenAISummarizer",
    "ExtractiveSummarizer",
    "OpenAISummarizer",
    "Summarizer",
    "SummarizerLike",
    "SummaryRequest",
    "arun_summarizer",
    "default_prompt",
    "marked_summary",
    "run_summarizer",
    "summarizer_from",
]
