"""What a provider's endpoint is not asked about, or does not answer, by estimate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from trimtab.counting.checks import checked_count
from trimtab.counting.estimate import EstimateCounter
from trimtab.counting.margin import known_margin
from trimtab.errors import ConfigurationError

if TYPE_CHECKING:
    from trimtab.counting.remote import CountQuestion
    from trimtab.counting.remote_clients import Told

__all__ = ["Said", "StandIn"]

_UNKNOWN_PARTS = 10
"""An estimate that does not say how far off it may be is taken to be by a tenth, as in `_learned`."""


class Said(NamedTuple):
    """A question and what the provider said."""

    question: CountQuestion
    told: Told


class StandIn:
    """A counter in the place of a provider.

    Raises:
        ConfigurationError: It counts no whole requests.
    """

    __slots__ = ("_counter",)

    def __init__(self, counter: Any) -> None:
        self._counter = EstimateCounter() if counter is None else counter
        if isinstance(counter, type) or not callable(getattr(self._counter, "count_request", None)):
            raise ConfigurationError(
                "estimate is a counter with count_request(), as counter_for(...) makes it"
            )

    def count(
        self, messages: Sequence[Any], system: Any = None, tools: Any = None, *extra: Mapping[str, Any]
    ) -> int:
        """Estimate a request.

        Raises:
            CountingError: The counter failed.
        """
        ask = self._counter.count_request
        return checked_count(lambda: ask(list(messages), system, tools, *extra), self._counter, None)

    def beside(self, tools: Any, extra: Mapping[str, Any] | None) -> int:
        """Estimate what an endpoint is not asked about."""
        if not tools and not extra:
            return 0
        given = (extra,) if extra else ()
        return max(0, self.count([], None, tools, *given) - self.count([]))

    def margin_tokens(self, tokens: int, /) -> int:
        """Say how far off an estimate may be."""
        known = known_margin(self._counter, tokens)
        return -(-tokens // _UNKNOWN_PARTS) if known is None else known

    def compared(self, tokens: int, said: Sequence[Said]) -> int:
        """Raise an estimate by the most the provider said for an estimated token.

        It is never lowered: what holds for a whole need not hold for its parts.
        """
        most = tokens
        for question, told in said:
            tools = None if told.tools is not None else question.tools
            by = self.count(question.messages, question.system, tools)
            most = max(most, -(-tokens * told.tokens // max(1, by)))
        return most
