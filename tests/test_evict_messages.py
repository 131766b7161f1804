"""`evict_messages`: the oldest units leave until the rest is within a limit."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import places, system, talk, user, valid_conversations, words
from tests.chat_in_forms import said_in
from trimtab import ConfigurationError
from trimtab.counting import FixedCounter
from trimtab.history import evict_messages
from trimtab.testing import WordCounter

WORDS = WordCounter()
ANTHROPIC = WordCounter(format="anthropic")


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
    both = evict_messages([*talk, talk[0]], counter.count([talk[0]]), counter=counter)
    assert both.evicted == talk
    assert both.evicted[2] is talk[2]
    assert both.remaining == talk[:1]


def in_anthropic(line: str) -> list[Any]:
    """Write a conversation of one line as Anthropic has it; results are behind their call."""
    return said_in("anthropic", talk(line))


@pytest.mark.parametrize("counter", [ANTHROPIC, ANTHROPIC.count], ids=["adds-up", "black-box"])
@pytest.mark.parametrize(
    ("line", "limit", "rest"),
    [
        pytest.param("cA rA1 u4 a3 u2 a1", 3, [4, 5], id="what-began-with-the-model"),
        pytest.param("cA rA1 u4 a3 u2 a1", 6, [3, 4, 5], id="may-do-so-still"),
        pytest.param("u1 cA rA1 u4 a3 u2 a1", 6, [5, 6], id="more-leaves"),
        pytest.param("u1 cA rA1 u4 a3 u2 a1", 3, [5, 6], id="it-begins-with-the-user-already"),
        pytest.param("u1 cA rA1 u4 a3 u2 a1", 2, [5, 6], id="the-last-stays-with-its-question"),
        pytest.param("u1 cA rA1 u4", 6, [3], id="a-call-may-not-lead"),
        pytest.param("u4 cA rA2 a2", 5, [0, 1, 2, 3], id="nothing-but-the-first-may-lead"),
    ],
)
def test_what_stays_never_begins_with_the_model_where_it_did_not(
    counter: Any, line: str, limit: int, rest: list[int]
) -> None:
    """Anthropic refuses that: more leaves, or what stays is over the limit, as a last unit may be."""
    messages = in_anthropic(line)
    done = evict_messages(messages, limit, counter=counter)
    assert places(done.remaining, messages) == rest
    assert done.remaining_tokens == ANTHROPIC.count(done.remaining)
    assert done.evicted == [message for message in messages if message not in done.remaining]


@given(valid_conversations(), st.integers(0, 80))
def test_random_conversations_begin_as_they_may(messages: list[Any], limit: int) -> None:
    """The model never comes to be the first, wherever the list is cut."""
    whole = in_anthropic("u1 cZ rZ1") + said_in("anthropic", messages)
    done = evict_messages(whole, limit, counter=ANTHROPIC)
    assert not done.remaining or done.remaining[0]["role"] == "user"
    assert done.remaining_tokens == ANTHROPIC.count(done.remaining)


def test_what_is_protected_in_front_leads() -> None:
    """Only the oldest answer leaves, since the question before it stays."""
    messages = in_anthropic("u1 a3 cA rA1 a2 u1")
    limit = ANTHROPIC.count(messages) - 3
    done = evict_messages(messages, limit, counter=ANTHROPIC, protect_roles=("user",))
    assert places(done.evicted, messages) == [1]


def test_a_message_that_is_all_there_is_leaves() -> None:
    """Nothing is left of it."""
    assert evict_messages(talk("u3"), 2, counter=WORDS).remaining == []
