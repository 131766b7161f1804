"""The way that reads only the newest messages gives what the way that groups everything gives."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import conversations, talk, valid_conversations
from tests.properties.cases import ADDITIVE, DEFAULT, MINIMUMS, STRIDES, WINDOWS, WORDS, limits
from trimtab import BudgetExceededError, Cascade, SlidingWindow, TruncateText, fit
from trimtab.conversation import History
from trimtab.counting.sizes import Fixed, sizes_for
from trimtab.formats import get_format
from trimtab.strategies import EvictionRequest, Strategy
from trimtab.strategies.cuts import TailCuts, UnitCuts, count_back
from trimtab.strategies.runner import Settled
from trimtab.strategies.runner import run as run_strategy

BY_CUTS = (
    *WINDOWS,
    *STRIDES,
    *MINIMUMS,
    DEFAULT,
    Cascade(SlidingWindow(keep_first_user=True, target_ratio=0.5), TruncateText()),
)


def settle(
    messages: list[Any], limit: int, strategy: Strategy, counter: Any, *, grouped: bool
) -> tuple[Settled, list[Any], EvictionRequest]:
    """Run a strategy as `fit` does, or over grouped units."""
    history = History(messages, format=get_format("openai_chat"))
    sizes = sizes_for(counter, history.messages, Fixed())
    counted = None if grouped else count_back(history, sizes, limit)
    request = EvictionRequest(history, sizes, limit_tokens=limit, counted=counted)
    settled = run_strategy(strategy, request)
    return settled, settled.assemble(request), request


def assert_same(messages: list[Any], limit: int, strategy: Strategy, counter: Any) -> None:
    """Compare both ways and `fit`: the same objects, the same size, the same verdict."""
    tail, tail_output, _ = settle(messages, limit, strategy, counter, grouped=False)
    full, full_output, request = settle(messages, limit, strategy, counter, grouped=True)
    assert isinstance(request.cuts, UnitCuts)
    assert (tail.fits, tail.tokens, tail.reason, tail.needed_tokens) == (
        full.fits,
        full.tokens,
        full.reason,
        full.needed_tokens,
    )
    assert len(tail_output) == len(full_output)
    for a, b in zip(tail_output, full_output, strict=True):
        assert a is b or a == b
    try:
        fitted = fit(messages, limit, counter=counter, strategy=strategy)
    except BudgetExceededError as error:
        assert not full.fits
        fitted = error.attempt
    assert fitted.messages == full_output


@given(valid_conversations(), st.sampled_from(BY_CUTS), st.sampled_from(ADDITIVE), st.data())
@settings(max_examples=settings.default.max_examples * 3)
def test_reading_only_the_end_of_a_valid_conversation_changes_nothing(
    messages: list[Any], strategy: Strategy, counter: Any, data: st.DataObject
) -> None:
    """Whatever of SlidingWindow is asked for."""
    limit = data.draw(limits(messages, counter))
    if counter.count(messages) > limit:
        assert_same(messages, limit, strategy, counter)


@given(conversations(), st.sampled_from(BY_CUTS), st.sampled_from(ADDITIVE), st.data())
@settings(max_examples=settings.default.max_examples * 3)
def test_reading_only_the_end_of_a_broken_conversation_changes_nothing(
    messages: list[Any], strategy: Strategy, counter: Any, data: st.DataObject
) -> None:
    """What is broken in the end is seen there; what is broken before it does not matter."""
    limit = data.draw(limits(messages, counter))
    if counter.count(messages) > limit:
        assert_same(messages, limit, strategy, counter)


def test_a_valid_conversation_is_read_no_further_than_the_limit_reaches() -> None:
    """The lazy way is really taken: 900 of 1,000 messages are never looked at."""
    messages = talk("s1 " + " ".join(["u5 cA rA9 a6"] * 250))
    _, output, request = settle(messages, 200, SlidingWindow(), WORDS, grouped=False)
    assert isinstance(request.cuts, TailCuts)
    assert request.history.read_from > 900
    assert 20 < len(output) < 80


def test_a_newest_unit_that_passes_the_limit_is_still_grouped_as_a_whole() -> None:
    """The limit is passed among the results of the newest call: the unit is that call with all of them."""
    messages = talk("u1 a5 u2 cA,B,C rA9 rB9 rC9")
    settled, output, _ = settle(messages, 12, SlidingWindow(), WORDS, grouped=False)
    assert not settled.fits
    assert output == messages[2:]


def test_an_orphan_at_the_end_is_no_part_of_the_unit_before_it() -> None:
    """The newest unit is the orphan alone; the call before it may leave."""
    messages = talk("u1 cA rA9 rZ5")
    settled, output, _ = settle(messages, 7, SlidingWindow(), WORDS, grouped=False)
    assert settled.fits
    assert output == [messages[0], messages[3]]


def test_an_open_call_before_large_system_messages_is_not_overlooked() -> None:
    """Only a user message or a model turn closes a call, so what follows may be far past the limit."""
    messages = talk("u1 a3 cA s20 s20")
    settled, output, _ = settle(messages, 25, SlidingWindow(), WORDS, grouped=False)
    assert settled.fits
    assert output == [messages[0], messages[2], messages[4]]


def test_a_result_behind_the_latest_user_message_is_not_kept_for_its_sake() -> None:
    """A late result right behind what the user wrote belongs to its own call."""
    for line, stays in (("u1 cA u2 rA30 a4 a5", [2, 4, 5]), ("u1 cA u2 rA30 a9 a5", [2, 5])):
        messages = talk(line)
        settled, output, _ = settle(messages, 11, SlidingWindow(), WORDS, grouped=False)
        assert settled.fits
        assert output == [messages[at] for at in stays]


def test_a_result_between_system_messages_closes_its_call() -> None:
    """It answers the last turn, far before the newest unit."""
    for line in ("u1 a9 cA s20 rA2 s3", "u1 a9 cA s2 rA2 s30 s3"):
        assert_same(talk(line), 8, SlidingWindow(), WORDS)
