"""`evict_messages`: the oldest units leave until the rest is within a limit."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import places, system, talk, user, words
from trimtab import ConfigurationError, FixedCounter, evict_messages
from trimtab.testing import WordCounter

WORDS = WordCounter()


def quarter_letters(messages: list[Any]) -> int:
    """Count a token for each four letters, and 50 more for a list of more than five."""
    letters = sum(-(-len(str(message["content"])) // 4) for message in messages)
    return letters + (50 if len(messages) > 5 else 0)


def test_a_black_box_says_what_remains() -> None:
    """Of ten messages of 2 tokens seven make 64 and six 62: five are 10, within 20."""
    messages = [user("12345678") for _ in range(10)]
    done = evict_messages(messages, 20, counter=quarter_letters)
    assert done.remaining_tokens == quarter_letters(done.remaining) == 10
    assert places(done.remaining, messages) == [5, 6, 7, 8, 9]
    assert places(done.evicted, messages) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("limit", [0, 1, 5, 6, 7, 11, 15, 17, 18, 19])
@pytest.mark.parametrize("line", ["s1 u2 a3 u4 cA rA5 u1", "cA u9 rA5 u1", "u3", "cA rA3", "s4"])
def test_a_black_box_and_an_additive_counter_agree(line: str, limit: int) -> None:
    """The same function, asked about lists or about single messages."""
    messages = talk(line)
    by_list = evict_messages(messages, limit, counter=WORDS.count)
    by_message = evict_messages(messages, limit, counter=WORDS)
    assert by_list == by_message
    assert by_list.remaining_tokens == WORDS.count(by_list.remaining)


def test_a_black_box_is_asked_by_halves() -> None:
    """A thousand messages take some twelve calls."""
    asked: list[int] = []

    def box(given: list[Any]) -> int:
        asked.append(len(given))
        return WORDS.count(given)

    done = evict_messages([user(words(2)) for _ in range(1_000)], 501, counter=box)
    assert (len(done.remaining), done.remaining_tokens) == (250, 500)
    assert len(asked) <= 12


@pytest.mark.parametrize("roles", ["system", b"system", 7, ["system", 7]])
def test_roles_are_a_sequence_of_names(roles: Any) -> None:
    """A bare word would be read letter by letter, and protect nothing."""
    with pytest.raises(ConfigurationError, match="protect_roles"):
        evict_messages([system(), user()], 10, counter=FixedCounter(per_message=10), protect_roles=roles)


def test_words_that_share_a_message_with_results_stay_or_leave_by_themselves() -> None:
    """The results leave with their call; what stays of the message they share is told from what left."""
    use = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
    found = {"type": "tool_result", "tool_use_id": "a", "content": "w " * 40}
    words = {"type": "text", "text": "and what now"}
    talk = [
        {"role": "user", "content": "look it up"},
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [found, words]},
        {"role": "assistant", "content": "well"},
    ]
    counter = WordCounter(format="anthropic")
    rest = [{"role": "user", "content": [words]}, talk[3]]
    done = evict_messages(talk, counter.count(rest), counter=counter)
    assert done.remaining == rest
    assert done.evicted == [talk[0], talk[1], {"role": "user", "content": [found]}]
    assert done.remaining_tokens == counter.count(rest)
    both = evict_messages(talk, counter.count([talk[3]]), counter=counter)
    assert both.evicted == talk[:3]
    assert both.evicted[2] is talk[2]
    assert both.remaining == talk[3:]
