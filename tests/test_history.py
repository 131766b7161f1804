"""`trimtab.history`: what a limit holds, whatever kind of counter is asked."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import talk
from trimtab import counter_from_text
from trimtab.history import within

CHAT = talk("u3 a2 u1")


def in_words(text: str) -> int:
    """Count words."""
    return len(text.split())


def whole(messages: list[Any]) -> int:
    """Count a list at once: 3, and of each message 4 and its words."""
    return 3 + sum(4 + in_words(message["content"]) for message in messages)


class Single:
    """Counts the same, and single messages too."""

    count = staticmethod(whole)

    def count_message(self, message: Any) -> int:
        """Count 4 and the words."""
        return 4 + in_words(message["content"])


class TestWithin:
    """A limit is for the messages; what a request costs beside them is taken off."""

    @pytest.mark.parametrize(
        ("limit", "count"), [(0, 0), (4, 0), (5, 1), (10, 1), (11, 2), (17, 2), (18, 3), (99, 3)]
    )
    def test_every_kind_of_counter_keeps_the_same(self, limit: int, count: int) -> None:
        """From the newest back the messages cost 5, 6 and 7."""
        for counter in (counter_from_text(in_words, message_overhead=4), Single(), whole):
            assert within(CHAT, limit, counter) == CHAT[len(CHAT) - count :]

    @pytest.mark.parametrize(("limit", "count"), [(4, 0), (5, 1), (10, 1), (11, 2), (18, 3)])
    def test_what_an_empty_list_costs_is_left_out(self, limit: int, count: int) -> None:
        """However much it is."""
        assert len(within(CHAT, limit, lambda messages: 1_000 + whole(messages))) == count

    def test_nothing_is_within_anything(self) -> None:
        """An empty list stays one, and a black box is not asked about it."""
        assert within([], 5, whole) == within([], 0, counter_from_text(in_words)) == []
