"""The counter that adds up counts of texts: a message costs what it says, and what framing it costs.

Where a model's own vocabulary is not public, texts cost those of the nearest known one times a factor.
"""

from __future__ import annotations

import copy
import math
import re
import string
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self

from trimtab.counting.base import AdditiveCounter, TextFunction, with_index
from trimtab.counting.cache import TextCache, TextCounts
from trimtab.counting.margin import unseen_tokens
from trimtab.counting.media import is_seen, media_tokens, text_in
from trimtab.counting.schemas import (
    chosen_tool,
    is_forced,
    is_refused,
    is_thinking,
    output_schema_text,
    split_beside,
    system_texts,
    tool_shapes,
    tools_text,
)
from trimtab.counting.tokenizers import Tokenizer, load_tokenizer
from trimtab.errors import CountingError, FormatError
from trimtab.formats import Format, Media, Prices, Structure, get_format, wire_form
from trimtab.formats.base import Pieces
from trimtab.formats.values import mapping_of
from trimtab.models import Framing, Margin, MediaRule, ModelFacts

_ROLES = ("system", "developer", "user", "assistant", "model", "tool", "reasoning")
_RESULT_ROLES = ("tool", "function")
_ANSWER_ROLES = ("assistant", "model")
_SYSTEM_ROLES = ("system", "developer")
_THOUGHT_END = "</think>"
_AS_SYSTEM = ("json", "spaced", "indented")
"""Styles of tools that are written into system text."""


class TextCounter(AdditiveCounter):
    """Counts the texts of a message with a function, and adds the cost of framing.

    Sizes of messages add up to the whole, so counting starts at the newest message and goes back only as far
    as needed. Counts are remembered by text; `clear()` forgets them. Safe to share between threads if the
    text function is.
    """

    def __init__(
        self,
        count_text: TextFunction,
        /,
        *,
        name: str,
        exact: bool = False,
        framing: Framing | None = None,
        framings: Mapping[str, Framing] | None = None,
        media: MediaRule | None = None,
        margin: Margin | None = None,
        margins: Mapping[str, Margin] | None = None,
        exact_features: Mapping[str, frozenset[str]] | None = None,
        format: str | Format = "openai_chat",
        cache: TextCache | None = None,
    ) -> None:
        """Take a text function, and the rules for charges other than texts.

        Args:
            count_text: Returns the tokens of a text; must always return the same number for the same text.
            name: Its name in reports.
            exact: Whether plain text is counted as the model counts it, including its framing.
            framing: Charges other than texts; None: those of gpt-4o.
            framings: The same by wire form, for forms that are charged differently.
            media: Charges for images and files; None: those of gpt-4o.
            margin: How far counts may be off; None if unknown.
            margins: The same by wire form, for forms that are known less well.
            exact_features: By wire form, the features of requests that were billed as counted; a count with
                other features is not exact. None: plain text only, if `exact` is True.
            format: The wire form of the messages.
            cache: Remembers counts by text; None: its own cache.
        """
        self._cache = TextCache(count_text, name=name) if cache is None else cache
        self._format = self._reader = get_format(format)
        self.name = name
        self.exact = exact
        self._exact_form = self._format.name if exact else None
        self._exact_features = exact_features
        self._framings = {"": Framing() if framing is None else framing, **(framings or {})}
        self.framing = self._framings.get(self._format.name, self._framings[""])
        self._margins = {"": margin, **(margins or {})}
        self.margin = self._margins.get(self._format.name, margin)
        self.media = MediaRule() if media is None else media
        self._prices: Prices | None = None

    def with_format(self, format: str | Format, /) -> Self:
        """Return the same counter for another wire form; remembered counts are shared.

        It is exact only in the form it was made for: the framing of other forms is known less well.
        """
        if format is self._format:
            return self
        twin = super().with_format(format)
        if twin is not self:
            twin._reader, form = twin._format, twin._format.name
            twin.exact = form == self._exact_form
            twin.framing = self._framings.get(form, self._framings[""])
            twin.margin = self._margins.get(form, self._margins[""])
            twin._prices = None
        return twin

    def charge_as(self, format: str | Format, /) -> Self:
        """Return the same counter for messages sent in another wire form.

        A call or a result that becomes a message of its own there is charged the framing of a message. An
        object that becomes text there is charged as its longest text form. Errs high: by the framing of a
        message without other content, and by what merging messages saves.
        """
        sent, read = get_format(format), self._format
        if sent is read:
            return self
        twin = copy.copy(self.with_format(sent))
        twin._format, twin.exact, twin._prices = read, False, None
        twin._exact_features = None if twin._exact_features is None else {}
        twin._reader = wire_form(read, sent)
        twin.framing = _between(twin.framing, read, sent, self._cache.young)
        return twin

    def __getstate__(self) -> dict[str, Any]:
        """Leave behind what is looked up again when it is needed."""
        return {**self.__dict__, "_prices": None}

    def without_tools(self) -> Self:
        if not self.framing.calls_framed_by_tools:
            return self
        twin = copy.copy(self)
        twin.framing = replace(self.framing, per_call_tokens=0, further_call_tokens=0, per_result_tokens=0)
        twin._prices = None
        return twin

    @property
    def exact_features(self) -> frozenset[str] | None:
        return (
            None if self._exact_features is None else self._exact_features.get(self._format.name, frozenset())
        )

    @property
    def adds_prompt(self) -> bool:
        return self.framing.prompts_by_default

    def sees(self, medium: Media, /) -> bool:
        return is_seen(medium, self.media)

    def knows(self, pieces: Pieces, /) -> bool:
        """Tell whether a message is one plain text.

        The other charges are fitted to bills, not published. Some hosts join several texts in one message,
        others count them separately.
        """
        found = (pieces.calls, pieces.results, pieces.result_id, pieces.thoughts, pieces.tools, pieces.other)
        return not any(found) and not pieces.sealed_chars and not pieces.media and len(pieces.texts) <= 1

    def clear(self) -> None:
        """Forget the counts remembered by text."""
        self._cache.clear()

    def count_text(self, text: str, /) -> int:
        return self._cache.young[text]

    def count_message(self, message: Any, /) -> int:
        if message.__class__ is dict and len(message) == 2 and (prices := self.prices) is not None:
            try:
                return prices.bases[message["role"]] + prices.counts[message["content"]]
            except (KeyError, TypeError):
                pass  # not a role and a text: read below
        return self._any_message(mapping_of(message), self._cache.young)

    def margin_tokens(self, tokens: int, /, *, is_plain: bool = False) -> int | None:
        """Say how far the bill may be above a count; None if unknown.

        Args:
            tokens: The count.
            is_plain: Whether the request is known to be text only, whose framing is known better.
        """
        return None if self.margin is None else self.margin.of(tokens, is_plain=is_plain)

    def over_margin_tokens(self, tokens: int, /, *, is_plain: bool = False) -> int | None:
        """Say how far the bill may be below a count; None if unknown.

        Args:
            tokens: The count.
            is_plain: Whether the request is known to be text only, whose framing is known better.
        """
        return None if self.margin is None else self.margin.over_of(tokens, is_plain=is_plain)

    def fixed_tokens(
        self, system: Any, tools: Any, /, *, has_system: bool, extra: Mapping[str, Any] | None = None
    ) -> int:
        framing = self.framing
        tokens = framing.per_request_tokens + (0 if has_system else framing.default_system_tokens)
        if not (system or tools or extra):
            return tokens
        tools, extra = split_beside(tools, extra)
        if framing.tools_dropped_by_none and is_refused(extra):
            tools = None
        counts = self._cache.young
        texts = system_texts(system)
        if texts:
            tokens += self._base("system", counts) if framing.system_framed else 0
            tokens += sum(counts[text] for text in texts)
        if tools:
            if framing.tools_style in _AS_SYSTEM and not has_system and not framing.default_system_tokens:
                # they are shown in system text, which there is none of
                tokens += self._base("system", counts)
            forced_tokens = framing.forced_tools_tokens if is_forced(extra) else None
            tokens += framing.tools_tokens if forced_tokens is None else forced_tokens
            is_serial = extra is not None and extra.get("parallel_tool_calls") is False
            tokens += framing.serial_calls_tokens if is_serial else 0
            chosen = chosen_tool(extra)
            if chosen and framing.named_tool_tokens is not None:
                tokens += framing.named_tool_tokens + counts[chosen]
            tokens += self._schemas(tools, counts)
        style = framing.output_schema_style
        schema = output_schema_text(extra, style=style) if framing.output_schema_tokens is not None else ""
        if schema:
            tokens += (framing.output_schema_tokens or 0) + counts[schema]
        joined = bool(tools) + bool(schema) + has_system - 1
        tokens -= framing.tools_saved_by_system_tokens * joined if tools or schema else 0
        tokens += framing.task_budget_tokens if extra and extra.get("task_budget") else 0
        return tokens + (framing.thinking_tokens if is_thinking(extra) else 0)

    def _schemas(self, tools: Any, counts: TextCounts) -> int:
        framing = self.framing
        style = framing.tools_style
        if style in ("typescript", *_AS_SYSTEM):
            return counts[tools_text(tools, style=style)]
        return sum(
            framing.per_tool_tokens
            + framing.per_property_tokens * shape.properties
            + sum(counts[text] for text in shape.texts)
            for shape in tool_shapes(tools, style=style)
        )

    def count_back(
        self, messages: list[Any], start: int, stop: int, room_tokens: int, sizes: list[int | None], /
    ) -> int:
        prices = self.prices
        counts_back = type(self._format).count_back is not Format.count_back
        if not counts_back or prices is None or any(size is not None for size in sizes[start:stop]):
            return super().count_back(messages, start, stop, room_tokens, sizes)
        span, structure = range(stop - 1, start - 1, -1), Structure(len(messages))
        try:
            low = self._format.count_back(messages, span, room_tokens, sizes, structure, prices)
        except (CountingError, FormatError) as error:
            raise with_index(error, next(i for i in span if sizes[i] is None)) from error.__cause__
        finally:
            for index, message in structure.replaced.items():  # the list is not this counter's
                messages[index] = message
        return super().count_back(messages, start, stop, room_tokens, sizes) if low is None else low

    @property
    def prices(self) -> Prices | None:
        made = self._prices
        if made is None or made.counts is not self._cache.young:
            made = self._prices = self._made_prices()
        return made if made.bases else None

    def _made_prices(self) -> Prices:
        """Look up what plain messages cost; not when made, since that loads a tokenizer."""
        framing = self.framing
        counts = self._cache.young
        # a subclass that counts messages in its own way is asked about each
        own = type(self).count_message is not TextCounter.count_message
        plain = () if own or framing.result_ids_counted else _ROLES
        bases = {role: self._base(role, counts) for role in plain}
        thinks = type(self).thought_tokens is TextCounter.thought_tokens
        return Prices(
            # what is taken off may be more than all of a short message, which then costs nothing
            bases={role: tokens for role, tokens in bases.items() if tokens >= 0},
            counts=counts,
            in_full=self.count_message,
            per_call_tokens=framing.per_call_tokens,
            name_factor=framing.call_name_factor,
            parallel_tokens=framing.parallel_calls_tokens,
            further_call_tokens=framing.further_call_tokens,
            per_result_tokens=framing.per_result_tokens,
            thoughts_counted=framing.thoughts_counted if thinks else None,
            sealed_chars_per_token=framing.sealed_chars_per_token,
            write_json=self._reader.write_json,
            sealed_free_chars=framing.sealed_free_chars,
        )

    def _base(self, role: str, counts: TextCounts) -> int:
        framing = self.framing
        if role == "reasoning":  # an item of its own, of the model's
            role = "assistant"
            if not framing.reasoning_framed:
                return 0
        tokens = _frame_tokens(framing, role) + (counts[role] if framing.roles_counted else 0)
        return tokens + framing.per_result_tokens if role in _RESULT_ROLES else tokens

    def _any_message(self, message: Any, counts: TextCounts) -> int:
        pieces = self._reader.pieces(message)
        return max(0, self._body(pieces, counts) + self._base(pieces.role, counts))

    def _body(self, pieces: Pieces, counts: TextCounts) -> int:
        """Count everything of a message but the framing of its role."""
        framing = self.framing
        tokens = sum(counts[text] for text in (*pieces.texts, *pieces.other))
        if pieces.calls:
            tokens += self._calls(pieces.calls, counts)
        # The name of a tool is charged with its call and not again with a result; that of a role is not twice
        # (9 of 9 bills of AutoGen's, 2026-11).
        if pieces.name and framing.per_name_tokens is not None and pieces.role not in _RESULT_ROLES:
            tokens += framing.per_name_tokens
            tokens += 0 if pieces.name == pieces.role else counts[pieces.name]
        if pieces.result_id is not None and framing.result_ids_counted:
            tokens += counts[pieces.result_id]
        if pieces.results:
            tokens += framing.per_result_tokens * pieces.results
        if pieces.tools:
            tokens += framing.late_tools_tokens + self._schemas(pieces.tools, counts)
        if pieces.thoughts or pieces.sealed_chars:
            tokens += self.thought_tokens(pieces)
        if pieces.documents:
            tokens += framing.document_tokens * pieces.documents
        tokens += framing.citations_tokens if pieces.is_cited else 0
        return tokens + sum(map(self.media_tokens, pieces.media))

    def unsure_tokens(self, tools: Any, media: Iterable[Media] = (), /) -> int:
        """Say how far the count of tools and media may be off beyond the margin.

        These are nested schemas, and media whose size a message does not show.
        """
        tokens = unseen_tokens(media, self.media)
        factor = self.framing.nested_schemas_factor
        if not factor or not tools:
            return tokens
        counts = self._cache.young
        shapes = tool_shapes(tools, style=self.framing.tools_style)
        return tokens + factor * sum(counts[text] for shape in shapes for text in shape.nested)

    def unsure_thoughts(self, pieces: Sequence[Pieces], /) -> int:
        """Say how far the count of encrypted reasoning may be off beyond the margin.

        Args:
            pieces: The messages of the request.
        """
        per_token = self.framing.sealed_unsure_chars_per_token
        return 0 if per_token is None else math.ceil(sum(one.sealed_chars for one in pieces) / per_token)

    def media_tokens(self, media: Media, /) -> int:
        text = text_in(media)
        return media_tokens(media, self.media) if text is None else self._cache.young[text]

    def thought_tokens(self, pieces: Pieces, /) -> int:
        """Count the reasoning of a message; encrypted reasoning by its length.

        Args:
            pieces: The content of the message.
        """
        framing, counts = self.framing, self._cache.young
        tokens = sum(counts[text] for text in pieces.thoughts) if framing.thoughts_counted else 0
        if pieces.sealed_chars and framing.sealed_chars_per_token is not None:
            chars = max(0, pieces.sealed_chars - framing.sealed_free_chars)
            tokens += math.ceil(chars / framing.sealed_chars_per_token)
        return tokens

    def dropped_tokens(self, pieces: Pieces, /) -> int:
        framing, counts = self.framing, self._cache.young
        tokens = 0 if framing.past_thoughts_charged else self.thought_tokens(pieces)
        if framing.tagged_thoughts_dropped and any(_THOUGHT_END in text for text in pieces.texts):
            last = max(at for at, text in enumerate(pieces.texts) if _THOUGHT_END in text)
            tokens += sum(counts[text] for text in pieces.texts[: last + 1])
            tokens -= counts[pieces.texts[last].rpartition(_THOUGHT_END)[2]]
        return tokens

    def _calls(self, calls: Sequence[tuple[str, str]], counts: TextCounts) -> int:
        framing = self.framing
        tokens = framing.parallel_calls_tokens if len(calls) > 1 else 0
        tokens += framing.further_call_tokens * (len(calls) - 1)
        for name, arguments in calls:
            tokens += framing.per_call_tokens + counts[arguments] + framing.call_name_factor * counts[name]
        return tokens


def _frame_tokens(framing: Framing, role: str) -> int:
    """Return what a message of that role is charged beside its role and texts."""
    own = (
        framing.answer_frame_tokens
        if role in _ANSWER_ROLES
        else framing.system_frame_tokens
        if role in _SYSTEM_ROLES
        else None
    )
    return framing.per_message_tokens if own is None else own


def _between(framing: Framing, read: Format, sent: Format, counts: TextCounts) -> Framing:
    """Return what is charged beside texts for messages read in one wire form and sent in another."""
    frame_tokens = max(framing.per_message_tokens, _frame_tokens(framing, "assistant"))
    frame_tokens += max(counts["assistant"], counts["tool"]) if framing.roles_counted else 0
    per_call, per_result = framing.per_call_tokens, framing.per_result_tokens
    parallel, further = framing.parallel_calls_tokens, framing.further_call_tokens
    if sent.rules.calls_are_messages and not read.rules.calls_are_messages:
        per_call, parallel, further = per_call + frame_tokens, 0, 0
    if read.rules.calls_are_messages and not sent.rules.calls_are_messages:
        # two calls that become one message are the fewest that are charged as parallel
        per_call += max(0, math.ceil((parallel - frame_tokens) / 2)) + further
    if sent.rules.results_are_messages and not read.rules.results_are_messages:
        per_result += frame_tokens
    if sent.rules.result_frame != read.rules.result_frame:
        per_result += counts[sent.rules.result_frame]
    return replace(
        framing,
        per_call_tokens=per_call,
        per_result_tokens=per_result,
        parallel_calls_tokens=parallel,
        further_call_tokens=further,
    )


def scale(tokenizer: Tokenizer, facts: ModelFacts, /) -> TextCache:
    """Return what remembers counts by text: the tokenizer's own counts, or those of a vocabulary near it.

    Each text is rounded by itself, to the nearest, so that counts of messages still add up.

    Args:
        tokenizer: Of the vocabulary that is near.
        facts: What the model's own has more of: by a factor, for each mark of punctuation, for each letter of
            words in capitals, for each digit of a number, and for the end of a line behind a mark.
    """
    near = _Near(
        round(facts.text_factor * _PER),
        round(facts.mark_tokens * _PER),
        round(facts.capital_tokens * _PER),
        facts.digits_apart,
        facts.lines_apart,
    )
    return _near_counts(tokenizer, near)


class _Near(NamedTuple):
    """How counts differ from those of a tokenizer; numbers are thousandths of a token."""

    factor: int
    per_mark: int
    per_capital: int
    digits_apart: bool
    lines_apart: bool


def _near_counts(tokenizer: Tokenizer, near: _Near) -> TextCache:
    if near == (_PER, 0, 0, False, False):
        return tokenizer.cache
    key = (tokenizer, near)
    with _LOCK:
        found = _SCALED.get(key)
        if found is None:
            count = tokenizer.count

            def count_scaled(text: str) -> int:
                tokens = count(text) * near.factor
                if near.per_mark or near.per_capital:
                    marks, capitals = _marks_and_capitals(text)
                    tokens += marks * near.per_mark + capitals * near.per_capital
                if near.digits_apart:
                    tokens += _PER * sum(len(one) - -(-len(one) // 3) for one in _NUMBER.findall(text))
                if near.lines_apart:
                    tokens += _PER * len(_LINE_END.findall(text))
                return (tokens + _PER // 2) // _PER

            found = _SCALED[key] = TextCache(
                count_scaled,
                name=f"{tokenizer.encoding} x {near.factor / _PER:g}",
                origin=(
                    _find_scaled,
                    (tokenizer.encoding, tokenizer.package or None, near),
                ),
            )
        return found


def _marks_and_capitals(text: str) -> tuple[int, int]:
    """Count marks of punctuation, and letters of words in capitals.

    Four characters beyond ASCII are taken for a mark: in no bill there were enough of them to know better.
    """
    plain = text.encode("ascii", "ignore")
    marks = len(plain) - len(plain.translate(None, _MARKS)) + (len(text) - len(plain)) // 4
    return marks, sum(map(len, _CAPITALS.findall(plain)))


def _find_scaled(encoding: str, package: str | None, near: _Near) -> TextCache:
    return _near_counts(load_tokenizer(encoding, package=package), near)


def forget_scaled() -> None:
    """Forget the counts remembered for texts, by every factor."""
    with _LOCK:
        for cache in _SCALED.values():
            cache.clear()


_PER = 1_000
_MARKS = string.punctuation.replace("_", "").encode("ascii")
_CAPITALS = re.compile(rb"[A-Z]{2,}")
_NUMBER, _LINE_END = re.compile(r"\d{2,}"), re.compile(r"[^\w\s]\n")
_SCALED: dict[tuple[Tokenizer, _Near], TextCache] = {}
_LOCK = threading.Lock()
