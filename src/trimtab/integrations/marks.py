"""Where a framework's messages may be marked for a prompt cache."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from trimtab.formats import Format, OpenAIChat, mapping_of


class Markable(OpenAIChat):
    """Chat Completions, as a framework's messages are read, and where these may be marked for a prompt cache.

    A mark has to stand in a part: calls are written beside the parts.

    Args:
        kinds: Kinds of messages that may carry a mark, by the wire form they are sent in: those it is not
            said of carry none. Where several models may be sent the same, those that may in each.
    """

    def __init__(self, kinds: Mapping[str, Collection[str]]) -> None:
        self._kinds = kinds
        self._sent_in: frozenset[str] = frozenset()

    def _sent_as(self, sent: Format, /) -> Format:
        return super()._sent_as(sent)._with({"_sent_in": self._sent_in | {sent.name}})

    @property
    def _kinds_for_all(self) -> set[str]:
        return set.intersection(*(set(self._kinds.get(name, ())) for name in self._sent_in or (self.name,)))

    def most_marks(self, model: str | None, /) -> int:
        """Return how many marks a request may have: none where no message may carry one."""
        return super().most_marks(model) if self._kinds_for_all else 0

    def with_cache_control(self, message: Any, value: Any, /) -> Any:
        """Return a shallow copy whose last part ends a prefix; the message itself if it may carry no mark."""
        known = mapping_of(message)
        taken = self.kind(known) in self._kinds_for_all and known.get("content")
        return super().with_cache_control(message, value) if taken else message
