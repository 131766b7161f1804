"""The counter that adds up counts of texts, and its loop over messages from the newest back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trimtab.counting._additive import Additive
from trimtab.counting._cache import TextCache, TextCounts
from trimtab.counting._checks import placed
from trimtab.counting._media import media_tokens
from trimtab.counting._protocols import TextFunction
from trimtab.counting._schemas import output_schema_text, system_texts, tools_text, with_functions
from trimtab.errors import CountingError, FormatError
from trimtab.formats import Format, Prices, Structure, get_format
from trimtab.formats._base import Pieces, mapping_of
from trimtab.models import Framing, MediaRule

_ROLES = ("system", "developer", "user", "assistant", "tool")
_RESULT_ROLES = ("tool", "function")


class TextCounter(Additive):
    """Counts the texts of a message with a text function, and adds what framing costs.

    Sizes of messages add up to the whole, so a conversation is counted from its newest message
    back and only as far as needed. Counts are remembered by text; clear them with `clear()`.
    Safe to share between threads if the text function is.
    """

    __slots__ = ("_cache", "_prices", "framing", "media")

    def __init__(
        self,
        count_text: TextFunction,
        /,
        *,
        name: str,
        exact: bool = False,
        framing: Framing | None = None,
        media: MediaRule | None = None,
        format: str | Format = "openai_chat",
        cache: TextCache | None = None,
    ) -> None:
        self._cache = TextCache(count_text, name=name) if cache is None else cache
        self._format = get_format(format)
        self.name = name
        self.exact = exact
        self.framing = Framing() if framing is None else framing
        self.media = MediaRule() if media is None else media
        self._prices: Prices | None = None

    def clear(self) -> None:
        """Forget the counts remembered by text."""
        self._cache.clear()

    def count_text(self, text: str, /) -> int:
        """Count a bare text, without any framing."""
        return self._cache.young[text]

    def count_message(self, message: Any, /) -> int:
        """Count one message with its framing."""
        if message.__class__ is dict and len(message) == 2 and (prices := self.prices) is not None:
            try:
                return prices.bases[message["role"]] + prices.counts[message["content"]]
            except (KeyError, TypeError):
                pass  # not a role and a text: read below
        return self._any_message(mapping_of(message), self._cache.young)

    def fixed_tokens(
        self, system: Any, tools: Any, /, *, has_system: bool, extra: Mapping[str, Any] | None = None
    ) -> int:
        """Count what a request is charged beside its messages."""
        framing = self.framing
        tokens = framing.per_request_tokens
        if not (system or tools or extra):
            return tokens
        tools, extra = with_functions(tools, extra)
        counts = self._cache.young
        texts = system_texts(system)
        if texts:
            tokens += self._base("system", counts) + sum(counts[text] for text in texts)
        elif tools and framing.tools_style == "json":
            # nobody says how tools are framed there: as one more system message
            tokens += self._base("system", counts)
        if tools:
            tokens += framing.tools_tokens + counts[tools_text(tools, style=framing.tools_style)]
            tokens -= framing.tools_saved_by_system_tokens if has_system else 0
        schema = output_schema_text(extra)
        if schema:
            tokens += framing.output_schema_tokens + counts[schema]
        return tokens

    def count_back(
        self, messages: list[Any], start: int, stop: int, room_tokens: int, sizes: list[int | None], /
    ) -> int:
        """Fill `sizes` from `stop - 1` back, until their sum passes `room_tokens`."""
        prices, walk = self.prices, getattr(self._format, "count_back", None)
        if prices is None or walk is None or any(size is not None for size in sizes[start:stop]):
            return super().count_back(messages, start, stop, room_tokens, sizes)
        span, structure = range(stop - 1, start - 1, -1), Structure(len(messages))
        try:
            low: int = walk(messages, span, room_tokens, sizes, structure, prices)
        except (CountingError, FormatError) as error:
            raise placed(error, next(i for i in span if sizes[i] is None)) from error.__cause__
        finally:
            for index, message in structure.replaced.items():  # the list is not this counter's
                messages[index] = message
        return low

    @property
    def prices(self) -> Prices | None:
        """What plain messages cost; None if none are plain.

        For a format that counts while it reads.
        """
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
        return Prices(
            bases={role: self._base(role, counts) for role in plain},
            counts=counts,
            in_full=self.count_message,
            per_call_tokens=framing.per_call_tokens,
            name_factor=framing.call_name_factor,
            parallel_tokens=framing.parallel_calls_tokens,
        )

    def _base(self, role: str, counts: TextCounts) -> int:
        framing = self.framing
        return framing.per_message_tokens + (counts[role] if framing.roles_counted else 0)

    def _any_message(self, message: Any, counts: TextCounts) -> int:
        pieces = self._format.pieces(message)
        return self._body(pieces, counts) + self._base(pieces.role, counts)

    def _body(self, pieces: Pieces, counts: TextCounts) -> int:
        """Count everything of a message but the framing of its role."""
        framing = self.framing
        tokens = sum(counts[text] for text in (*pieces.texts, *pieces.other))
        if pieces.calls:
            tokens += self._calls(pieces.calls, counts)
        # the name of a tool is charged with its call; with a result it is not charged again
        if pieces.name and framing.per_name_tokens is not None and pieces.role not in _RESULT_ROLES:
            tokens += framing.per_name_tokens + counts[pieces.name]
        if pieces.result_id is not None and framing.result_ids_counted:
            tokens += counts[pieces.result_id]
        return tokens + sum(media_tokens(media, self.media) for media in pieces.media)

    def _calls(self, calls: Sequence[tuple[str, str]], counts: TextCounts) -> int:
        framing = self.framing
        tokens = framing.parallel_calls_tokens if len(calls) > 1 else 0
        for name, arguments in calls:
            tokens += framing.per_call_tokens + counts[arguments] + framing.call_name_factor * counts[name]
        return tokens
