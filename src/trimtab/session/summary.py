"""Writing a summary: the request to the summarizer, and the handling of an unusable answer."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from trimtab.counting.shorten import cut_at_sentence
from trimtab.errors import CountingError, SummaryError
from trimtab.formats import Dict
from trimtab.formats.origin import Origins
from trimtab.session.effects import Question, Steps, ask_summary
from trimtab.session.messages import MessageReader
from trimtab.session.options import Options
from trimtab.session.state import Members
from trimtab.strategies.must_keep import Source, finder_of, keep_values, sources_of, summary_source
from trimtab.strategies.summarizer import SummaryRequest, takes_existing, word_of

if TYPE_CHECKING:
    from trimtab.report import SummaryCheck

_SHORTER = "Write this summary again, shorter. Keep facts, names, numbers and decisions."
_AIM = (3, 4)
"""The length requested for a summary that was too long, as a share of its room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A summary to write: its units, and the summary that it replaces."""

    units: tuple[Members, ...]
    messages: list[Dict]
    """The messages of these units as a view shows them, in order."""
    given: list[Dict]
    """The messages for the summarizer: these, and those summarized before if it reads all."""
    given_origins: list[Origins]
    """The origins of each of them."""
    gives_all: bool
    """Whether all that the summary so far stands for is among them: then it needs no word of that."""
    unit_tokens: tuple[int, ...]
    existing: str | None
    """The text of the summary so far."""
    existing_tokens: int
    covered_before: int
    """How many messages the summary so far replaces."""
    origins_before: Origins
    """The origins of what the summary so far replaces."""
    origins: Origins
    """The origins of what the summary will replace."""
    rules: tuple[str, ...]
    """The rules that views restate once no message says them."""
    becomes_anchor: bool
    cap_tokens: int
    base: int
    """Version of the summary at the decision; 0 for none."""
    epoch: int

    @property
    def stands_for(self) -> int:
        """Number of messages that the summary will replace."""
        return self.covered_before + len(self.messages)


@dataclass(slots=True, kw_only=True)
class Written:
    """A usable summary."""

    text: str
    tokens: int
    """Of the message it stands in."""
    seconds: float
    compressions: list[tuple[str, str]] = field(default_factory=list)
    """Each text that was too long, with its replacement."""
    calls: int = 1
    """How often the summarizer was called."""
    checked: SummaryCheck | None = None
    """What became of the values that it must keep; None: none must be kept."""
    lost: tuple[str, ...] = ()
    """The values among them that it does not have."""


def write_summary(job: Job, reader: MessageReader) -> Steps[Written]:
    """Ask for a summary, and for a shorter one while it is too long; in the end cut it at a sentence."""
    try:
        return (yield from _first_that_fits(job, reader))
    except CountingError as error:
        raise SummaryError(f"what the summarizer wrote cannot be counted: {error}") from error


def _first_that_fits(job: Job, reader: MessageReader) -> Steps[Written]:
    options = reader.options
    start = time.perf_counter()
    name = word_of(options.summarizer)
    limit = min(job.cap_tokens, job.existing_tokens + sum(job.unit_tokens) - 1)

    def size(text: str) -> int:
        return reader.tokens(reader.summary_message(text, job.stands_for, job.origins))

    room = limit - size("")
    if room < 1:
        raise SummaryError(
            f"a summary of at most {limit:,} tokens has no room for text: raise max_summary_tokens or"
            " summarize_threshold_tokens"
        )
    existing = None if job.gives_all or _rolls(options) else job.existing
    question = _question(options, _messages(job, reader), existing, room, options.summary_instructions)
    text = _text((yield question), name)
    tokens = size(text)
    compressions: list[tuple[str, str]] = []
    calls = 1
    while tokens > limit and len(compressions) < options.max_summary_rounds:
        calls += 1
        try:
            again = [reader.format.message("user", [text])]
            aim = max(1, room * _AIM[0] // _AIM[1])
            question = _question(options, again, None, aim, _SHORTER)
            shorter = _text((yield question), name)
        except SummaryError:
            break  # what it wrote first can still be cut
        compressions.append((text, shorter))
        text, tokens = shorter, size(shorter)
    if tokens > limit:
        cut = cut_at_sentence(text, limit, size)
        if cut is None:
            raise SummaryError(f"no part of a summary of {len(text):,} characters fits {limit:,} tokens")
        text = cut
    seconds = time.perf_counter() - start
    written = Written(text=text, tokens=size(text), seconds=seconds, compressions=compressions, calls=calls)
    if options.must_keep is None:
        return written
    kept = keep_values(
        finder_of(options.must_keep),
        text,
        _sources(job, reader),
        limit_tokens=limit,
        ratio=options.max_kept_ratio,
        size=size,
        shown=job.rules,
    )
    return replace(written, text=kept.text, tokens=size(kept.text), checked=kept.checked, lost=kept.lost)


def _sources(job: Job, reader: MessageReader) -> list[Source]:
    """List what the summary replaces: the one before, and the messages."""
    before = [] if job.existing is None else [summary_source(job.existing)]
    return [*before, *sources_of(reader.format, zip(job.given, job.given_origins, strict=True))]


def _rolls(options: Options) -> bool:
    """Tell whether the summary so far is given as the first of the messages.

    Also where it could not be given otherwise: a function of messages alone would forget what it says.
    """
    return options.summary_mode != "incremental" or not takes_existing(options.summarizer)


def _messages(job: Job, reader: MessageReader) -> list[Dict]:
    """List the messages to summarize; if the summary is rolling, the summary so far comes first."""
    messages = list(job.given)
    if job.existing is None or job.gives_all or not _rolls(reader.options):
        return messages
    previous = reader.summary_message(job.existing, job.covered_before, job.origins_before)
    return [reader.format.with_role(previous, "user"), *messages]


def _question(
    options: Options,
    messages: Sequence[Dict],
    existing: str | None,
    max_tokens: int,
    instructions: str | None,
) -> Question:
    request = SummaryRequest(
        messages=messages, existing=existing, max_tokens=max_tokens, instructions=instructions
    )
    return ask_summary(options.summarizer, request, options.summary_timeout_seconds)


def _text(answer: object, name: str) -> str:
    text = answer.strip() if isinstance(answer, str) else ""
    if not text:
        raise SummaryError(f"{name} returned an empty summary")
    return text
