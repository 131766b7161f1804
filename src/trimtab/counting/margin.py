"""How far a count may be from the bill, as its counter says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from trimtab.counting.base import AdditiveCounter, RequestCounter, checked_count, counter_name
from trimtab.counting.media import is_seen, media_tokens
from trimtab.errors import (
    ConfigurationError,
    Hint,
    option,
    phrase,
)
from trimtab.formats import Media, Pieces
from trimtab.models import MediaRule


def known_margin(counter: RequestCounter, tokens: int, /) -> int | None:
    """Ask a counter how far the bill may be above a count; None if it does not say and is not exact.

    Raises:
        CountingError: It answered what is no number of tokens.
    """
    return _margin(counter.margin_tokens(tokens), counter)


def known_over_margin(counter: RequestCounter, tokens: int, /) -> int | None:
    """Ask a counter how far the bill may be below a count; None if it does not say and is not exact.

    Raises:
        CountingError: It answered what is no number of tokens.
    """
    return _margin(counter.over_margin_tokens(tokens), counter)


def _margin(margin: int | None, counter: RequestCounter) -> int | None:
    if margin is None:
        return 0 if counter.exact is True else None
    return checked_count(lambda: margin, counter, None)


def margin_of(counter: RequestCounter, tokens: int, /) -> int:
    """Ask the same of a counter that has to know.

    Raises:
        ConfigurationError: It does not say.
    """
    margin = known_margin(counter, tokens)
    if margin is None:
        raise ConfigurationError(
            phrase(
                option("margin", "auto"),
                f": counter {counter_name(counter)} does not say how far its counts may be off",
                Hint("margin_tokens", " (it needs margin_tokens(tokens))"),
                "; pass ",
                option("margin"),
                " as a number of tokens",
            ),
            argument="margin",
        )
    return margin


def unsure_of(counter: RequestCounter, tools: object, pieces: Sequence[Pieces], /) -> int | None:
    """Ask a counter how much of a count it cannot know, whatever its margin is otherwise.

    Returns:
        None for a counter that does not say, where there are media whose size nothing shows.
    """
    media = [medium for one in pieces for medium in one.media]
    unsure = counter.unsure_tokens(tools, media)
    if unsure is None:
        return 0 if all(is_seen(medium, MediaRule()) for medium in media) else None
    unsure += counter.unsure_thoughts(pieces)
    late = sum(counter.unsure_tokens(one.tools) or 0 for one in pieces if one.tools)
    cited = [medium for one in pieces for medium in cited_files(one)]
    if cited and isinstance(counter, AdditiveCounter):
        late += _MOST_CITED * sum(counter.media_tokens(medium) or 0 for medium in cited)
    return late + int(unsure)


def cited_files(pieces: Pieces, /) -> list[Media]:
    """List files the model may cite: what their pages cost then is not known."""
    return [medium for medium in pieces.media if medium.kind == "file"] if pieces.is_cited else []


_MOST_CITED = 2
"""How many times its pages a PDF may cost that is cited, beside them: 2,630 to 3,360 tokens more were billed
for one page (2026-11), of which what tells the model to cite is 555 or 808."""


def unseen_tokens(media: Iterable[Media], rule: MediaRule, /) -> int:
    """Sum what is charged for media of which a message does not hold enough."""
    return sum(media_tokens(medium, rule) for medium in media if not is_seen(medium, rule))
