"""`ExtractiveSummarizer`: a summary of a conversation's own sentences, without a model.

Needs extra `extractive`: the sentencex package knows where sentences end in some 300 languages. Which
sentences to take is decided here: those that say, for their length, most of what the conversation comes
back to and was not said yet (maximum coverage within a budget, taken greedily: Lin & Bilmes 2010).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import pairwise
from math import log
from typing import ClassVar, Literal, NamedTuple

from trimtab._shared.lazy import package_of
from trimtab.counting import AdditiveCounter, EstimateCounter
from trimtab.counting.shorten import shorten
from trimtab.errors import ConfigurationError
from trimtab.formats import detect, mapping_of
from trimtab.strategies.summarizer import SummaryRequest

_LABELLED = re.compile(r"([A-Z]+): (.*)")
"""A line of an earlier summary of ours: whose sentence it is, and the sentence."""

_INNER = re.compile(r"\w(?:.*\w)?", re.DOTALL)
"""A word without the marks around it; those inside stay, as in `src/main.py` or `v1.2`."""

# Thai, Lao, Burmese, Khmer, Chinese and Japanese are written without blanks between words.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)


class ExtractiveSummarizer:
    """Picks the most informative sentences of a conversation, without a model.

    A summary has one sentence per line, in order, each with its author: `USER: …`. The user's newest message
    comes first, up to half of the room; then the summary so far, up to half of the rest; then the most
    informative sentences, tool results last. Calls and media are omitted, and instructions of the request are
    ignored: those need a model. The same input gives the same summary.

    Args:
        language: ISO code of the rules for sentences. "en" also knows the punctuation of other scripts, but
            only English abbreviations.
        counter: Any object with `count_text`. None: an estimate that errs high.
        max_tokens: Maximum tokens of a summary whose request names no limit.

    Raises:
        MissingExtraError: The package is not installed.
        ConfigurationError: The counter cannot count a text, or `max_tokens` is not above 0.

    Example:
        >>> talk = [
        ...     {"role": "user", "content": "Plan a trip to Kyoto. It must cost less than 900 EUR."},
        ...     {"role": "assistant", "content": "Nice! Kyoto in May is full. In June a trip costs 850 EUR."},
        ... ]
        >>> print(ExtractiveSummarizer().summarize(SummaryRequest(messages=talk, max_tokens=40)))
        USER: Plan a trip to Kyoto.
        USER: It must cost less than 900 EUR.
        ASSISTANT: In June a trip costs 850 EUR.
    """

    reads_all: ClassVar[bool] = True
    """It is given all messages each time: this costs no call and keeps more than its own summary did."""

    name = "extractive"
    """Its name in reports."""

    def __init__(
        self, *, language: str = "en", counter: AdditiveCounter | None = None, max_tokens: int = 500
    ) -> None:
        counter = EstimateCounter() if counter is None else counter
        if not callable(getattr(counter, "count_text", None)):
            raise ConfigurationError(
                "counter must have count_text(text), as counters from counter_for and counter_from_text do,"
                f" not {counter!r}",
                argument="counter",
            )
        if type(max_tokens) is not int or max_tokens < 1:
            raise ConfigurationError(
                f"max_tokens must be a whole number above 0, not {max_tokens!r}", argument="max_tokens"
            )
        self.language = language
        self.max_tokens = max_tokens
        self._count: Callable[[str], int] = counter.count_text
        package = package_of("extractive", package="sentencex", needed_by=type(self).__name__)
        self._segment: Callable[[str, str], list[str]] = package.segment

    def __repr__(self) -> str:
        """Name the language."""
        return f"{type(self).__name__}(language={self.language!r})"

    def summarize(self, request: SummaryRequest, /) -> str:
        """Pick sentences of the summary so far and of the messages.

        Empty if not even one sentence fits.

        Complexity: O(n log n) in sentences, more if one repeats many others.
        """
        limit = self.max_tokens if request.max_tokens is None else request.max_tokens
        passages = list(self._passages(request))
        # Of a sentence that is said twice the first place counts, and whose it was last.
        sentences = list({one.line: one for passage in passages for one in passage}.values())
        choice = _Choice(sentences, _values(passages))
        choice.take_first(choice.of("request"), limit // 2)
        if not choice.taken:
            self._take_cut(choice, limit // 2)
        choice.take_most_telling(choice.of("summary"), (choice.tokens + limit) // 2)
        choice.take_most_telling(choice.of("summary", "speech", "request"), limit)
        choice.take_most_telling(choice.of("result"), limit)
        return self._write(choice, limit)

    def _passages(self, request: SummaryRequest) -> Iterator[list[_Sentence]]:
        """Yield what was said, oldest first: a line of the summary so far, or a text of a message."""
        for line in (request.existing or "").splitlines():
            labelled = _LABELLED.fullmatch(line)
            label, text = labelled.groups() if labelled else ("", line)
            yield list(self._sentences(label, text, "summary"))
        format = detect(request.messages)
        messages = [mapping_of(message) for message in request.messages]
        kinds = [format.kind(message) for message in messages]
        newest = max((index for index, kind in enumerate(kinds) if kind == "user"), default=None)
        for index, message in enumerate(messages):
            for slot in format.texts(message):
                source: Source = "result" if slot.is_result else "request" if index == newest else "speech"
                yield list(self._sentences(kinds[index].upper(), slot.text, source))

    def _sentences(self, label: str, text: str, source: Source) -> Iterator[_Sentence]:
        """Yield the sentences of a text that say anything; a line of it ends one."""
        for line in text.splitlines():
            for sentence in self._segment(self.language, line):
                if any(map(str.isalnum, sentence)):
                    said = " ".join(sentence.split())
                    written = f"{label}: {said}" if label else said
                    terms = tuple(dict.fromkeys(_terms(said)))
                    yield _Sentence(written, terms, self._tokens(written), source)

    def _take_cut(self, choice: _Choice, limit: int) -> None:
        """Take the first sentence of the newest request cut, since it does not fit whole."""
        for index in choice.of("request")[:1]:
            whole = choice.sentences[index]
            cut = shorten(whole.line, limit, count=self._tokens, keep="both")
            if cut is not None:
                choice.sentences[index] = whole._replace(line=cut, tokens=self._tokens(cut))
                choice.take(index)

    def _tokens(self, line: str) -> int:
        return max(1, self._count(f"{line}\n"))  # a counter may answer 0, and sizes are divided by

    def _write(self, choice: _Choice, limit: int) -> str:
        """Put the sentences in order, without the last taken while together they pass the limit."""
        for count in range(len(choice.taken), 0, -1):
            text = "\n".join(choice.sentences[index].line for index in sorted(choice.taken[:count]))
            if self._count(text) <= limit:
                return text
        return ""


Source = Literal["summary", "speech", "request", "result"]
"""Where a sentence is from: the summary so far, a message, the newest of the user, or a tool."""


class _Sentence(NamedTuple):
    """A sentence as it would stand in the summary."""

    line: str
    terms: tuple[str, ...]
    """The words it says, each once."""
    tokens: int
    """With the end of its line; at least 1."""
    source: Source


class _Choice:
    """Which sentences are taken so far, in the order they were."""

    def __init__(self, sentences: list[_Sentence], values: Mapping[str, float]) -> None:
        self.sentences = sentences
        self.taken: list[int] = []
        self.tokens = 0
        self._said: set[str] = set()
        self._values = values

    def of(self, *sources: Source) -> list[int]:
        """List the sentences from there that are not taken, in order."""
        taken = set(self.taken)
        return [i for i, one in enumerate(self.sentences) if one.source in sources and i not in taken]

    def take(self, index: int) -> None:
        """Take a sentence, whatever its size."""
        self.taken.append(index)
        self.tokens += self.sentences[index].tokens
        self._said.update(self.sentences[index].terms)

    def take_first(self, among: Iterable[int], limit: int) -> None:
        """Take sentences in their order, up to the first that passes the limit."""
        for index in among:
            if self.tokens + self.sentences[index].tokens > limit:
                break
            self.take(index)

    def take_most_telling(self, among: Iterable[int], limit: int) -> None:
        """Take what says most that is new for its length, again and again, while it fits."""
        ranks = [self._rank(index) for index in among]
        heapify(ranks)
        while ranks:
            index = -heappop(ranks)[1]
            if self.tokens + self.sentences[index].tokens > limit:
                continue
            # What was taken since can only have lowered its rank, so the first that keeps it is the best.
            now = self._rank(index)
            if ranks and now > ranks[0]:
                heappush(ranks, now)
            else:
                self.take(index)

    def _rank(self, index: int) -> tuple[float, int]:
        """Return what sorts the most telling sentence first; of equals the newest."""
        one = self.sentences[index]
        new = sum(self._values[term] for term in one.terms if term not in self._said)
        return -new / one.tokens, -index


def _values(passages: Sequence[Sequence[_Sentence]]) -> dict[str, float]:
    """Say what each word is worth: the conversation comes back to it, but not everywhere.

    A word of one passage alone is worth nothing, so that a list of ids is not, either; and one of every
    passage little, so that no list of stop words is needed. In between it is tf-idf, both as logarithms.
    """
    counts = Counter(
        term for passage in passages for term in dict.fromkeys(term for one in passage for term in one.terms)
    )
    return {term: log(count) * log(1 + len(passages) / count) for term, count in counts.items()}


def _terms(text: str) -> Iterator[str]:
    """Yield the words of a text; where words are not set apart, pairs of letters instead."""
    for word in text.casefold().split():
        if _UNSPACED.search(word):
            yield from map("".join, pairwise(word))
        elif inner := _INNER.search(word):
            yield inner[0]
