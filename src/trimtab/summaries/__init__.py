"""Summaries: what writes a short text in place of messages that leave."""

from __future__ import annotations

from trimtab.summaries._base import (
    Summarizer,
    SummaryRequest,
    arun_summarizer,
    default_prompt,
    marked_summary,
    run_summarizer,
    summarizer_from,
)

__all__ = [
    "Summarizer",
    "SummaryRequest",
    "arun_summarizer",
    "default_prompt",
    "marked_summary",
    "run_summarizer",
    "summarizer_from",
]
