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
    """Call your own summarizer once, and raise if it fails.

    `trimtab.summaries.run_summarizer` returns None instead, and a fit goes on without the summary.

    Args:
        summarizer: A summarizer, or a function.
        request: The request to it.

    Raises:
        SummaryError: It failed, and the error is the cause of this one, or it returned no text.
        ConfigurationError: The argument is not a summarizer, or is async.

    Example:
        >>> from trimtab.summaries import SummaryRequest
        >>> ask_summarizer(lambda messages: f"{len(messages)} messages", SummaryRequest(messages=[]))
        '0 messages'
    """
    return summary_by(require_summarizer(summarizer), request)


async def aask_summarizer(summarizer: SummarizerLike, request: SummaryRequest, /) -> str:
    """Call a summarizer once as `ask_summarizer` does, and await it if it is async.

    Args:
        summarizer: A summarizer, or a function.
        request: The request to it.

    Raises:
        SummaryError: It failed, or returned no text. Cancellation passes through.
        ConfigurationError: The argument is not a summarizer.
    """
    return await asummary_by(require_summarizer(summarizer), request)
