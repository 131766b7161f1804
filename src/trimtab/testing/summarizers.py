"""`ask_summarizer` and `aask_summarizer`: a summarizer is asked as a strategy asks it."""

from __future__ import annotations

from trimtab.strategies.summarizer import (
    SummarizerLike,
    SummaryRequest,
    asummary_by,
    require_summarizer,
    summary_by,
)


def ask_summarizer(summarizer: SummarizerLike, request: SummaryRequest, /) -> str:
    """Ask a summarizer of your own once, and see what went wrong if it fails.

    `trimtab.summaries.run_summarizer` answers None then, and a fit goes on without the summary.

    Args:
        summarizer: A summarizer, or a function.
        request: What it is asked.

    Raises:
        SummaryError: It failed, which is the cause of this error, or answered no text.
        ConfigurationError: It is none, or an async one.

    Example:
        >>> from trimtab.summaries import SummaryRequest
        >>> ask_summarizer(lambda messages: f"{len(messages)} messages", SummaryRequest(messages=[]))
        '0 messages'
    """
    return summary_by(require_summarizer(summarizer), request)


async def aask_summarizer(summarizer: SummarizerLike, request: SummaryRequest, /) -> str:
    """Ask a summarizer once as `ask_summarizer` does, and await it if it is async.

    Args:
        summarizer: A summarizer, or a function.
        request: What it is asked.

    Raises:
        SummaryError: It failed, or answered no text. Cancellation passes through.
        ConfigurationError: It is no summarizer.
    """
    return await asummary_by(require_summarizer(summarizer), request)
