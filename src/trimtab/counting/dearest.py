"""The counter of a request that any of several models may be sent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

from trimtab.counting.base import AdditiveCounter
from trimtab.counting.margin import known_margin, known_over_margin
from trimtab.formats import Format, Media, Pieces, get_format


class DearestCounter(AdditiveCounter):
    """Counts each message, and the other parts, as the counter with the highest count.

    So no counter says more of a whole request. Errs high where they differ in what they find dear.
    """

    def __init__(self, counters: Sequence[AdditiveCounter], *, format: Format) -> None:
        """Take counters.

        Args:
            counters: At least one.
            format: The wire form of the messages, which all of them read.
        """
        self._counters = counters
        self._format = format
        self.name = f"dearest of {', '.join(one.name for one in counters)}"
        self.exact = all(one.exact for one in counters)

    def with_format(self, format: str | Format, /) -> Self:
        return self._twin(get_format(format), lambda one: one.with_format(format))

    def charge_as(self, format: str | Format, /) -> Self:
        return self._twin(self._format, lambda one: one.charge_as(format))

    def _twin(self, format: Format, change: Callable[[AdditiveCounter], AdditiveCounter]) -> Self:
        return type(self)([*map(change, self._counters)], format=format)

    def count_message(self, message: Any, /) -> int:
        return max(one.count_message(message) for one in self._counters)

    def fixed_tokens(
        self, system: Any, tools: Any, /, *, has_system: bool, extra: Mapping[str, Any] | None = None
    ) -> int:
        return max(
            one.fixed_tokens(system, tools, has_system=has_system, extra=extra) for one in self._counters
        )

    def margin_tokens(self, tokens: int, /) -> int | None:
        return _most(known_margin(one, tokens) for one in self._counters)

    def over_margin_tokens(self, tokens: int, /) -> int | None:
        return _most(known_over_margin(one, tokens) for one in self._counters)

    def unsure_tokens(self, tools: Any, media: Iterable[Media] = (), /) -> int | None:
        held = [*media]
        return _most(one.unsure_tokens(tools, held) for one in self._counters)

    @property
    def exact_features(self) -> frozenset[str] | None:
        listed = [seen for one in self._counters if (seen := one.exact_features) is not None]
        return frozenset.intersection(*listed) if listed else None

    @property
    def adds_prompt(self) -> bool:
        return any(one.adds_prompt for one in self._counters)

    def sees(self, medium: Media, /) -> bool:
        return all(one.sees(medium) for one in self._counters)

    def guesses(self, pieces: Pieces, /) -> list[str]:
        return [*dict.fromkeys(guess for one in self._counters for guess in one.guesses(pieces))]


def _most(numbers: Iterable[int | None]) -> int | None:
    """Return the largest; None if one of them is unknown."""
    known = [*numbers]
    return None if None in known else max(number for number in known if number is not None)
