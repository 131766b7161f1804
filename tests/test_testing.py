"""The contract suites: what is broken on purpose is caught, by the rule it breaks."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.builders import call, result, system, talk, user, without_address
from trimtab import ConfigurationError, SlidingWindow, TruncateText, validate
from trimtab.conversation import Unit
from trimtab.counting import CountRequest
from trimtab.strategies import Edit, EvictionRequest, EvictionResult
from trimtab.testing import ContractBroken, WordCounter, check_counter, check_strategy, conversations

# -- WordCounter


@pytest.mark.parametrize(
    ("message", "tokens"),
    [
        (user("one two three"), 3),
        (user(""), 0),
        (user(" \n "), 0),
        (user([{"type": "text", "text": "a b"}, {"type": "text", "text": "c"}]), 3),
        (user([{"type": "image_url", "image_url": {"url": "https://example.org/a b.png"}}]), 1),
        (call("A", "B"), 4),
        (call("A", text="let me see"), 5),
        (result("A", "one two"), 2),
    ],
)
def test_a_token_is_a_word(message: dict[str, Any], tokens: int) -> None:
    """Texts, tool names and arguments count; roles, ids and framing are free."""
    assert WordCounter().count_message(message) == tokens
    assert WordCounter().count([message, message]) == 2 * tokens


def test_system_text_and_tools_are_counted_once() -> None:
    """As the words of the text, and of the tools as compact JSON."""
    words = WordCounter()
    assert (
        words.count_request(
            CountRequest([user("a b")], system="be very brief", tools=[{"about": "two words"}])
        )
        == 2 + 3 + 2
    )
    assert words.count([]) == 0


# -- conversations


def test_equal_seeds_give_equal_conversations() -> None:
    """And other seeds others; more of them begin with the same."""
    assert conversations(5, seed=1) == conversations(9, seed=1)[:5]
    assert conversations(5, seed=1) != conversations(5, seed=2)


def test_the_samples_hold_everything_that_breaks_trimmers() -> None:
    """Every pair rule is broken somewhere, and every shape occurs."""
    samples = conversations(200)
    rules = {violation.rule for sample in samples for violation in validate(sample)}
    assert rules >= {"orphan_result", "repeated_result", "unanswered_call", "open_call", "late_result"}
    messages = [message for sample in samples for message in sample]
    assert any(len(message.get("tool_calls", ())) > 1 for message in messages)
    assert any(isinstance(message["content"], list) for message in messages)
    assert any(message["content"] is None for message in messages)
    assert any(sample[i]["role"] == "system" for sample in samples for i in range(3, len(sample)))


def test_valid_samples_are_valid() -> None:
    """Nothing a provider would refuse about calls and results; some end with an open call."""
    found = [violation for sample in conversations(200, valid=True) for violation in validate(sample)]
    assert {violation.rule for violation in found if violation.rule.endswith(("result", "call"))} == {
        "open_call"
    }


# -- broken strategies


class Broken:
    """A strategy made of a function."""

    name = "broken"

    def __init__(self, evict: Callable[[EvictionRequest], Any]) -> None:
        self._evict = evict

    def evict(self, request: EvictionRequest, /) -> Any:
        """Do what the function does."""
        return self._evict(request)


def keeping(request: EvictionRequest) -> list[Unit]:
    """Do it right: drop the oldest free units until the rest fits."""
    kept = list(request.units)
    for unit in request.units:
        if request.fits(kept):
            break
        if not request.stays(unit):
            kept.remove(unit)
    return kept


def right(request: EvictionRequest, **more: Any) -> EvictionResult:
    """Answer rightly."""
    kept = keeping(request)
    return EvictionResult(kept=kept, fits=request.fits(kept), **more)


def _keep_everything(request: EvictionRequest) -> EvictionResult:
    return EvictionResult(kept=request.units)


def _give_up_needlessly(request: EvictionRequest) -> EvictionResult:
    return EvictionResult(kept=keeping(request), fits=False)


def _need_less_than_there_is(request: EvictionRequest) -> EvictionResult:
    answer = right(request)
    return EvictionResult(kept=answer.kept, fits=answer.fits, needed_tokens=0)


def _evict_pinned(request: EvictionRequest) -> EvictionResult:
    return EvictionResult(kept=[unit for unit in request.units if unit.state != "pinned"], fits=False)


def _evict_held(request: EvictionRequest) -> EvictionResult:
    return EvictionResult(kept=[unit for unit in request.units if unit.state != "held"], fits=False)


def _reverse(request: EvictionRequest) -> EvictionResult:
    answer = right(request)
    return EvictionResult(kept=list(answer.kept)[::-1], fits=answer.fits)


def _twice(request: EvictionRequest) -> EvictionResult:
    answer = right(request)
    return EvictionResult(kept=[*answer.kept, answer.kept[-1]], fits=answer.fits)


def _split(request: EvictionRequest) -> EvictionResult:
    kept = [Unit(u.indices[:1], kind=u.kind, state=u.state) for u in request.units]
    return EvictionResult(kept=kept, fits=False)


def _invent(request: EvictionRequest) -> EvictionResult:
    return EvictionResult(kept=[*keeping(request), Unit((10_000,), kind="user")], fits=False)


def _cut_inside(request: EvictionRequest) -> EvictionResult:
    long = [unit for unit in request.units if len(unit.indices) > 1]
    return EvictionResult(cut=long[-1].indices[1], fits=False) if long else right(request)


def _cut_nowhere(request: EvictionRequest) -> EvictionResult:
    return EvictionResult(cut=-1, fits=False)


def _edit_everything(request: EvictionRequest) -> EvictionResult:
    kept = keeping(request)
    edits = [
        Edit(index=index, texts={slot.path: ""})
        for unit in kept
        for index in unit.indices
        for slot in request.texts(index)
    ]
    return EvictionResult(kept=kept, edits=edits, fits=request.fits(kept))


def _edit_roles(request: EvictionRequest) -> EvictionResult:
    kept = keeping(request)
    edits = [Edit(index=unit.first, texts={("role",): "user"}) for unit in kept if unit.state != "pinned"]
    return EvictionResult(kept=kept, edits=edits, fits=request.fits(kept))


def _edit_what_left(request: EvictionRequest) -> EvictionResult:
    answer = right(request)
    gone = [unit for unit in request.units if unit not in answer.kept]
    edits = [Edit(index=unit.first, texts={("content",): ""}) for unit in gone]
    return EvictionResult(kept=answer.kept, edits=edits, fits=answer.fits)


def _edit_with_numbers(request: EvictionRequest) -> EvictionResult:
    kept = keeping(request)
    texts = [(u.first, slot) for u in kept if u.state == "held" for slot in request.texts(u.first)]
    edits = [Edit(index=at, texts={slot.path: 7}) for at, slot in texts]  # type: ignore[dict-item]  # wrong on purpose
    return EvictionResult(kept=kept, edits=edits, fits=request.fits(kept))


def _keep_none(request: EvictionRequest) -> EvictionResult:
    return EvictionResult(kept=None, fits=False)  # type: ignore[arg-type]  # wrong on purpose


def _edit_without_texts(request: EvictionRequest) -> EvictionResult:
    answer = right(request)
    edits = [Edit(index=0, texts=None)]  # type: ignore[arg-type]  # wrong on purpose
    return EvictionResult(kept=answer.kept, edits=edits, fits=answer.fits)


def _write_into_the_input(request: EvictionRequest) -> EvictionResult:
    request.history.originals[-1]["content"] = "overwritten"
    return right(request)


def _roll_dice(request: EvictionRequest) -> EvictionResult:
    free = [unit for unit in keeping(request) if not request.stays(unit)]
    gone = random.choice(free) if free else None
    kept = [unit for unit in keeping(request) if unit is not gone]
    return EvictionResult(kept=kept, fits=request.fits(kept))


def _drop_all(request: EvictionRequest) -> EvictionResult:
    kept = [unit for unit in request.units if request.stays(unit)]
    return EvictionResult(kept=kept, fits=request.fits(kept))


def _sum_shares(request: EvictionRequest) -> EvictionResult:
    """Add up sizes: right for additive counters, wrong for a black box."""
    kept = list(request.units)
    for unit in request.units:
        if sum(map(request.size, kept)) + request.fixed_tokens <= request.limit_tokens:
            return EvictionResult(kept=kept)
        if not request.stays(unit):
            kept.remove(unit)
    return EvictionResult(kept=kept, fits=request.fits(kept))


def _raise(request: EvictionRequest) -> EvictionResult:
    raise KeyError("units")


BROKEN_STRATEGIES: tuple[tuple[str, Callable[[EvictionRequest], Any]], ...] = (
    ("answers", lambda request: None),
    ("answers", lambda request: keeping(request)),
    ("answers", _raise),
    ("answers", _cut_nowhere),
    ("answers", lambda request: right(request, reason="too_long")),
    ("answers", lambda request: right(request, actions="evicted")),
    ("answers", lambda request: EvictionResult(kept=keeping(request), fits=1)),  # type: ignore[arg-type]  # wrong on purpose
    ("within_limit", _keep_everything),
    ("within_limit", _sum_shares),
    ("honest", _give_up_needlessly),
    ("honest", _need_less_than_there_is),
    ("whole_units", _split),
    ("whole_units", _invent),
    ("whole_units", _cut_inside),
    ("once_in_order", _reverse),
    ("once_in_order", _twice),
    ("stays", _evict_pinned),
    ("stays", _evict_held),
    ("edits", _edit_everything),
    ("edits", _edit_roles),
    ("edits", _edit_what_left),
    ("edits", _edit_with_numbers),
    ("answers", _keep_none),
    ("answers", _edit_without_texts),
    ("input_unchanged", _write_into_the_input),
    ("deterministic", _roll_dice),
    ("thrifty", _drop_all),
)


@pytest.mark.parametrize(
    ("rule", "evict"), BROKEN_STRATEGIES, ids=lambda value: getattr(value, "__name__", value)
)
def test_a_broken_strategy_is_caught_by_the_rule_it_breaks(
    rule: str, evict: Callable[[EvictionRequest], Any]
) -> None:
    """And the error says which strategy, sample, limit and counter."""
    random.seed(1)
    with pytest.raises(ContractBroken) as caught:
        check_strategy(Broken(evict), samples=conversations(25, seed=5))
    assert caught.value.rule == rule
    assert str(caught.value).startswith(f"{rule}: strategy broken, sample ")


@pytest.mark.long
def test_the_right_strategy_is_not_caught() -> None:
    """The suite complains about what is broken only; what is wasteful may be allowed."""
    check_strategy(Broken(right))
    check_strategy(Broken(_drop_all), thrifty=False)


def test_a_strategy_needs_a_name_and_its_data_must_be_plain() -> None:
    """`name` goes into reports, `to_dict()` into configuration files."""
    nameless = Broken(right)
    nameless.name = ""
    with pytest.raises(ContractBroken, match="no name"):
        check_strategy(nameless)

    class Unwritable(Broken):
        """Has a function in its data."""

        def to_dict(self) -> dict[str, Any]:
            """Write what JSON cannot."""
            return {"score": right}

    with pytest.raises(ContractBroken, match=r"data: .*plain data"):
        check_strategy(Unwritable(right))


def test_samples_that_always_fit_prove_nothing() -> None:
    """A suite that tried nothing says so."""
    with pytest.raises(ConfigurationError, match="had nothing"):
        check_strategy(SlidingWindow(), samples=[[user("")]])


def test_a_sample_of_ones_own_is_used() -> None:
    """The strategy is asked about it with one's own counter."""
    seen: list[int] = []

    def note(request: EvictionRequest) -> EvictionResult:
        seen.append(len(request.history))
        return right(request)

    check_strategy(Broken(note), samples=[talk("s1 u2 a3 u4 a5")], counters=[WordCounter()])
    assert set(seen) == {5}
    check_strategy(TruncateText(), samples=[[system("x"), user("a b c d e")]])


# -- broken counters


def _words(messages: list[Any]) -> int:
    return WordCounter().count(messages)


def _no_parts(messages: list[Any]) -> int:
    return sum(len(m["content"].split()) for m in messages if isinstance(m["content"], str))


def _no_arguments(messages: list[Any]) -> int:
    return _words([{**m, "tool_calls": []} for m in messages])


def _mutating(messages: list[Any]) -> int:
    for message in messages:
        message.setdefault("name", "somebody")
    return _words(messages)


def _refuses_empty(messages: list[Any]) -> int:
    return max(len(str(message)) for message in messages)


def _refuses_surrogates(messages: list[Any]) -> int:
    return len(json.dumps(messages, ensure_ascii=False).encode())


def _refuses_special_tokens(messages: list[Any]) -> int:
    if "<|im_start|><|" in json.dumps(messages) or "<|endoftext|><|" in json.dumps(messages):
        raise ValueError("disallowed special token")
    return len(json.dumps(messages))


def _random(messages: list[Any]) -> int:
    return _words(messages) + random.randint(0, 9)


async def _asynchronous(messages: list[Any]) -> int:
    return _words(messages)


class Framed(WordCounter):
    """Counts a whole that is not its parts."""

    def count(self, messages: Any, /) -> int:
        """Count a request."""
        return 3 + super().count(messages) if messages else 0


class Overfull(WordCounter):
    """Counts back too far."""

    def count_back(self, messages: Any, start: int, stop: int, room_tokens: int, sizes: Any, /) -> int:
        """Count from the end."""
        return super().count_back(messages, start, stop, room_tokens + 10, sizes)


class Misfilled(WordCounter):
    """Fills in other sizes when counting back."""

    def count_back(self, messages: Any, start: int, stop: int, room_tokens: int, sizes: Any, /) -> int:
        """Count from the end."""
        low = super().count_back(messages, start, stop, room_tokens, sizes)
        if room_tokens < 1_000_000 and start < stop:
            sizes[stop - 1] += 1
        return low


class Forgetful(WordCounter):
    """Counts a request of its own, smaller with system text than without."""

    def count_request(self, request: CountRequest, /) -> int:
        """Count a request with all that is beside it."""
        return 0 if request.tools else super().count_request(request)


class OfOneThread:
    """Knows what a message costs only in the thread that made it."""

    def __init__(self) -> None:
        self._of_thread = threading.local()
        self._of_thread.tokens = 3

    def count(self, messages: Any, /) -> int:
        """Count a request."""
        return WordCounter().count(messages) + getattr(self._of_thread, "tokens", 0) * len(messages)


BROKEN_COUNTERS: tuple[tuple[str, Any], ...] = (
    ("callable", len),
    ("callable", "o200k_base"),
    ("callable", _asynchronous),
    ("answers", lambda messages: len(str(messages)) / 4),
    ("answers", lambda messages: True),
    ("answers", lambda messages: None),
    ("answers", lambda messages: -1),
    ("answers", _refuses_empty),
    ("deterministic", _random),
    ("input_unchanged", _mutating),
    ("odd_text", _refuses_surrogates),
    ("odd_text", _refuses_special_tokens),
    ("reads_text", lambda messages: 3 * len(messages)),
    ("reads_text", _no_parts),
    ("reads_text", _no_arguments),
    ("additive", Framed()),
    ("count_back", Overfull()),
    ("count_back", Misfilled()),
    ("count_request", Forgetful()),
    ("reads_objects", lambda messages: sum(len(json.dumps(m)) for m in messages)),
    ("threads", OfOneThread()),
)


@pytest.mark.parametrize(("rule", "counter"), BROKEN_COUNTERS, ids=without_address)
def test_a_broken_counter_is_caught_by_the_rule_it_breaks(rule: str, counter: Any) -> None:
    """And the error names the counter."""
    random.seed(2)
    with pytest.raises(ContractBroken) as caught:
        check_counter(counter, samples=_plain_samples() if rule == "odd_text" else None)
    assert caught.value.rule == rule
    assert str(caught.value).startswith(f"{rule}: ")


def _plain_samples() -> list[list[Any]]:
    return [talk("s3 u5 cA,B rA9 rB4 u1"), talk("u1")]


def test_what_a_counter_does_not_claim_is_not_asked_of_it() -> None:
    """A counter by messages, and a function that takes dicts only."""
    check_counter(lambda messages: 3 * len(messages), reads_text=False, reads_objects=True)
    check_counter(lambda messages: sum(len(json.dumps(m)) for m in messages), reads_objects=False)
