"""What of a request nobody can count from it alone, named; and whether the rest is known to the token."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from trimtab._shared.names import in_words
from trimtab.counting.checks import counter_name
from trimtab.counting.schemas import provider_tools
from trimtab.errors import UnknownNameError
from trimtab.formats import Media, Pieces, Request
from trimtab.models import facts_for, near_models

__all__ = ["Unknown", "is_known", "model_notes", "near_words", "unknown_in", "unknown_notes"]

_KINDS = {"image": "image", "audio": "sound", "video": "video", "file": "document"}


_PROMPT = "the system prompt that the provider adds (prompt_mode)"
"""In the words that Chat's form has for a body that asks for it."""


class Unknown(NamedTuple):
    """What of a request nobody can count from it."""

    phrases: tuple[str, ...]
    """One each, for a report."""
    is_bounded: bool
    """Whether a margin can hold all of it: not what the provider adds, which may be of any size."""


def unknown_in(
    counter: Any, tools: Any, pieces: Iterable[Pieces], request: Request | None = None, /
) -> Unknown:
    """List what a count leaves out or takes at a guess.

    Args:
        counter: Whose count it is; it says of which media a message holds enough.
        tools: All tools of the request.
        pieces: Its messages.
        request: The body; None if there is none.
    """
    sees = getattr(counter, "sees", _sees)  # a black box may see what we do not
    media: Tally[str] = Tally()
    guesses = getattr(counter, "guesses", None)
    guessed: Tally[str] = Tally()
    sealed: Tally[str] = Tally()
    stored = 0
    for one in pieces:
        media.update(medium.kind for medium in one.media if not sees(medium))
        sealed.update({medium.name or "a part" for medium in one.media if medium.is_sealed})
        sealed["reasoning"] += one.sealed_chars > 0
        stored += one.is_elsewhere
        if guesses is not None:
            guessed.update(guesses(one))
    added = [] if request is None else list(request.unseen)
    if getattr(getattr(counter, "framing", None), "prompts_by_default", False) and _PROMPT not in added:
        added.append(_PROMPT)
    added += (f"the provider's own tool {name!r}" for name in provider_tools(tools))
    if stored:
        added.append(f"{_several(stored, 'item')} that the provider stored (item_reference)")
    found = [
        f"{_several(number, _KINDS.get(kind, kind))} whose size the request does not hold"
        for kind, number in media.items()
    ]
    found += [
        f"{what} in {_several(number, 'message')} that only the provider can read"
        for what, number in sealed.items()
        if number
    ]
    found += [f"{what} in {_several(number, 'message')}" for what, number in guessed.items()]
    unsure = () if request is None else request.unsure
    return Unknown((*added, *unsure, *found), not added)


def unknown_notes(unknown: Sequence[str], /) -> tuple[str, ...]:
    """Say in a sentence what is unknown of a request; nothing where nothing is."""
    return (f"What this costs is not known from the request: {'; '.join(unknown)}.",) if unknown else ()


def is_known(counter: Any, pieces: Iterable[Pieces], /) -> bool:
    """Tell whether all that messages hold is counted by a rule that is known to the token."""
    knows = getattr(counter, "knows", None)
    return knows is None or all(map(knows, pieces))


def _sees(_: Media) -> bool:
    return True


def _several(number: int, one: str) -> str:
    return f"{number:,} {one if number == 1 else one + 's'}"


def model_notes(model: str | None, counter: Any, /) -> tuple[str, ...]:
    """Say where tokens are counted as for another model."""
    if model is None:
        return ()
    try:
        facts = facts_for(model)
    except UnknownNameError:
        return ()
    if facts.counted_as is None or counter_name(counter) != model:
        return ()
    return (
        f"The model {model!r} is not known, only its maker: tokens are counted as for"
        f" {facts.counted_as!r}, the costliest known of that maker, and its window is not known"
        f"{near_words(model) or '.'}",
    )


def near_words(model: str | None, /) -> str:
    """End a sentence on a name nobody knows by those it may be a slip of; "" for a known one."""
    try:
        is_known = model is None or facts_for(model).counted_as is None
    except UnknownNameError:
        is_known = False
    return "" if model is None or is_known else in_words(near_models(model))
