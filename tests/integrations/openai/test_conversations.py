"""What `with_budget` remembers of conversations: their bills, their cuts, and which is which."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from tests.integrations.openai.play import client_of
from tests.judge.server import Provider, answered, provider
from trimtab import Budget, CharCounter, Context, EstimateCounter, Fitted
from trimtab.counting import UsageBaseline
from trimtab.errors import BudgetExceededError, ConfigurationError
from trimtab.integrations.openai import with_budget

Bill = Callable[[int, int], float]
"""Given the number of a call and its count, returns what it is billed."""


def _billed(bill: Bill, bills: list[int]) -> Callable[[str, dict[str, Any]], Any]:
    """Write answers that report a bill, and list the bills."""

    def answer(form: str, body: dict[str, Any]) -> Any:
        tokens = round(bill(len(bills), EstimateCounter().count(body["messages"])))
        bills.append(tokens)
        return {**answered(form, "m"), "usage": {"prompt_tokens": tokens, "completion_tokens": 1}}

    return answer


def _turn(name: str, turn: int, words: int = 20) -> list[Any]:
    return [
        {"role": "user", "content": f"{name} asks question {turn}"},
        {"role": "assistant", "content": f"It is sunny in {name}, {turn}. " * words},
    ]


def _grows(name: str, turns: int) -> list[list[Any]]:
    """List the calls of a conversation, each with a turn more."""
    said: list[Any] = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "Hello!"}]
    calls = []
    for turn in range(turns):
        said = [*said, *_turn(name, turn)]
        calls.append(said[:-1])
    return calls


def _ask(client: Any, messages: list[Any]) -> None:
    client.chat.completions.create(model="m", messages=messages)


def _sent(served: Provider) -> list[Any]:
    return [body["messages"] for _, body in served.bodies]


@pytest.mark.parametrize("times", [3, 3.9, 20, 100, 100_000])
@pytest.mark.parametrize("wrong", [0, 9])
def test_one_bill_far_too_high_shuts_no_conversation(times: float, wrong: int) -> None:
    """A server's mistake, at the first call or later: the calls behind it are answered, and fit."""
    bills: list[int] = []
    talk = [{"role": "system", "content": "Be brief. " * 60}]
    with provider(_billed(lambda at, count: count * (times if at == wrong else 1), bills)) as served:
        client = with_budget(client_of(served), 1_000)
        for said in _grows("Utrecht", 20):
            _ask(client, [*talk, *said])
    assert len(bills) == 20
    assert all(tokens <= 1_000 for at, tokens in enumerate(bills) if at != wrong)
    assert max(bills[wrong + 3 :]) > 700


@pytest.mark.parametrize("times", [20, 100])
def test_a_bill_that_no_count_explains_takes_nothing_out_of_view(times: int) -> None:
    """What is sent behind it is what would be sent had it been right."""
    seen = []
    for mistake in (1, times):
        bills: list[int] = []
        with provider(
            _billed(lambda at, count, by=mistake: count * (by if at == 6 else 1), bills)  # type: ignore[misc]
        ) as served:
            client = with_budget(client_of(served), Budget(1_000))
            for said in _grows("Utrecht", 12):
                _ask(client, said)
        seen.append(_sent(served))
    assert seen[0] == seen[1]


@pytest.mark.parametrize("part", [0.8, 1.5, 2.0, 3.0])
def test_honest_bills_keep_every_request_within_the_budget(part: float) -> None:
    """A provider that charges other than is counted, up to three times: no bill is above the budget."""
    bills: list[int] = []
    with provider(_billed(lambda at, count: count * part, bills)) as served:
        client = with_budget(client_of(served), 2_000)
        for said in _grows("Utrecht", 40):
            _ask(client, said)
    assert max(bills) <= 2_000
    assert max(bills) > 1_200


@pytest.mark.parametrize("block", ["system", "facts"])
def test_bills_are_learned_beside_a_blocks_own_text(block: str) -> None:
    """What a `Context` puts before the messages of a call hides no turn from the next: bills keep to it."""
    bills: list[int] = []
    context = Context(2_000).add(block, "Amsterdam is the capital. " * 4).add("history", [])
    said: list[Any] = []
    with provider(_billed(lambda at, count: count * 1.6, bills)) as served:
        client = with_budget(client_of(served), context)
        for turn in range(40):
            said += _turn("Utrecht", turn, words=2 + 11 * turn % 37)
            _ask(client, said[:-1])
    assert 1_800 < max(bills[10:]) <= 2_020


def test_a_prompt_that_nobody_sees_is_believed_at_once_where_it_leaves_room() -> None:
    """The server's own tools before a short question: a hundred times the count, and honest."""
    bills: list[int] = []
    with provider(_billed(lambda at, count: count + 1_500, bills)) as served:
        client = with_budget(client_of(served), 4_000)
        for said in _grows("Utrecht", 40):
            _ask(client, said)
    assert max(bills) <= 4_000
    assert max(bills) > 3_000


def test_a_bill_that_comes_again_is_believed() -> None:
    """More than the budget is hidden: two bills say so, and the third call has an error that names it."""
    bills: list[int] = []
    with provider(_billed(lambda at, count: count + 50_000, bills)) as served:
        client = with_budget(client_of(served), 4_000)
        first, second, third, *_ = _grows("Utrecht", 5)
        _ask(client, first)
        _ask(client, second)
        with pytest.raises(BudgetExceededError):
            _ask(client, third)
    assert len(bills) == 2


def test_a_full_request_that_is_billed_thrice_its_count_is_cut_and_not_refused() -> None:
    """What must stay would fit at that price: the next call is sent with less."""
    bills: list[int] = []
    with provider(_billed(lambda at, count: 3 * count, bills)) as served:
        client = with_budget(client_of(served), Budget(2_000))
        for said in _grows("Utrecht", 20)[12:]:
            _ask(client, said)
    assert len(bills) == 8
    assert bills[0] > 2_000
    assert max(bills[1:]) <= 2_000


def test_conversations_that_begin_alike_are_told_apart_as_they_grow() -> None:
    """What one is billed, and where it is cut, is nothing to the other."""
    talks = {"Utrecht": _grows("Utrecht", 30), "Delft": _grows("Delft", 30)}

    def play(*names: str) -> tuple[list[Any], int]:
        seen: list[Fitted[Any]] = []
        by_name = {"Utrecht": 1.0, "Delft": 2.5}

        def answer(form: str, body: dict[str, Any]) -> Any:
            name = next(name for name in by_name if name in body["messages"][-1]["content"])
            tokens = round(by_name[name] * EstimateCounter().count(body["messages"]))
            return {**answered(form, "m"), "usage": {"prompt_tokens": tokens, "completion_tokens": 1}}

        with provider(answer) as served:
            client = with_budget(client_of(served), Budget(2_000), on_fitted=seen.append)
            for turn in range(30):
                for name in names:
                    _ask(client, talks[name][turn])
        own = [sent for sent in _sent(served) if "Utrecht" in sent[-1]["content"]]
        return own, len(seen)

    alone, _ = play("Utrecht")
    beside, calls = play("Utrecht", "Delft")
    assert calls == 60
    assert beside == alone


def test_what_a_conversation_taught_serves_the_next_that_begins_like_it() -> None:
    """A prompt of examples, and one question each: the first bill is known to the second conversation."""
    seen: list[Fitted[Any]] = []
    bills: list[int] = []
    shots = _grows("Utrecht", 3)[-1]
    with provider(_billed(lambda at, count: count + 300, bills)) as served:
        client = with_budget(client_of(served), 5_000, on_fitted=seen.append)
        for turn in range(3):
            _ask(client, [*shots, *_turn(f"Delft {turn}", 1)[:1]])
    assert abs(seen[1].report.tokens_after - bills[1]) < 20
    assert abs(seen[2].report.tokens_after - bills[2]) < 20


def test_a_file_of_one_conversation_shuts_none_that_begins_like_it() -> None:
    """A file is given by its id and billed with more than the budget: the others never saw it."""
    talk: list[Any] = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi!"}]
    file = {"role": "user", "content": [{"type": "file", "file": {"file_id": "file-1"}}]}
    bills: list[int] = []

    def answer(form: str, body: dict[str, Any]) -> Any:
        tokens = len(body["messages"]) * 10 + 40_000 * (file in body["messages"])
        bills.append(tokens)
        return {**answered(form, "m"), "usage": {"prompt_tokens": tokens, "completion_tokens": 1}}

    with provider(answer) as served:
        client = with_budget(client_of(served), 32_000)
        reads = [*talk, file]
        for question in ("And?", "And then?"):
            _ask(client, reads)
            reads = [*reads, talk[1], {"role": "user", "content": question}]
        assert [tokens > 32_000 for tokens in bills] == [True, True]
        with pytest.raises(BudgetExceededError, match="tokens are needed"):
            _ask(client, reads)
        for others in (talk[:1], [*talk, *talk[:1]], [*talk, {"role": "user", "content": "And?"}]):
            _ask(client, others)
            assert served.bodies[-1][1]["messages"] == others


def test_an_answer_that_is_asked_for_again_goes_on_where_it_was() -> None:
    """The last question is put in other words: its conversation is known, with its cut and its bills."""
    seen: list[Fitted[Any]] = []
    bills: list[int] = []
    with provider(_billed(lambda at, count: 2 * count, bills)) as served:
        client = with_budget(client_of(served), Budget(2_000), on_fitted=seen.append)
        for said in _grows("Utrecht", 20):
            _ask(client, said)
        before = seen[-1]
        _ask(client, [*said[:-1], {"role": "user", "content": "Utrecht asks question 19 anew"}])
    assert [one["content"] for one in seen[-1].messages[:-1]] == [
        one["content"] for one in before.messages[:-1]
    ]
    assert abs(seen[-1].report.tokens_after - bills[-1]) < 30


def test_a_reminder_behind_each_call_hides_no_conversation() -> None:
    """A program sends a line of its own behind what was said: the cut is held, and most is known."""
    with provider() as served:
        client = with_budget(client_of(served), Budget(6_000))
        for turn, said in enumerate(_grows("Utrecht", 80)):
            _ask(client, [*said, {"role": "user", "content": f"Remember: it is {turn} o'clock."}])
    sent = _sent(served)[40:]
    goes_on = [after[: len(before) - 1] == before[:-1] for before, after in pairwise(sent)]
    assert sum(goes_on) >= 0.6 * len(goes_on)


def test_a_baseline_of_ones_own_is_refused_with_what_to_write() -> None:
    """It is of one conversation, and nobody would teach it."""
    baseline = UsageBaseline(EstimateCounter())
    with provider() as served:
        with pytest.raises(ConfigurationError, match="counter=EstimateCounter"):
            with_budget(client_of(served), 600, counter=baseline)
        with pytest.raises(ConfigurationError, match="counter=EstimateCounter"):
            with_budget(client_of(served), Context(600, counter=baseline).add("history", []))


def test_the_counter_of_a_context_counts_its_calls() -> None:
    """It is the caller's word as `counter=` is, also where the model is known."""
    seen: list[Fitted[Any]] = []
    context = Context(Budget(9_000), counter=CharCounter()).add("history", [])
    with provider() as served:
        client = with_budget(client_of(served), context, on_fitted=seen.append)
        client.chat.completions.create(model="gpt-4o", messages=_grows("Utrecht", 30)[-1])
    [fitted] = seen
    assert fitted.report.counter == CharCounter().name
    assert fitted.report.tokens_after == CharCounter().count(fitted.messages)


def test_what_a_program_hangs_on_a_client_is_no_part_of_it() -> None:
    """A helper that knows the client is kept, whatever it is called; its own wrapper of a part is not."""

    class Helper:
        def __init__(self, client: Any) -> None:
            self._client = client

    with provider() as served:
        bare: Any = client_of(served)
        bare.helper = Helper(bare)
        client: Any = with_budget(bare, 600)
        assert client.helper is bare.helper
        bare.chat = Helper(bare)
        with pytest.raises(ConfigurationError, match=r"client\.chat was replaced"):
            with_budget(bare, 600)


def test_a_counter_that_takes_long_to_make_holds_up_no_other_call() -> None:
    """A tokenizer may have to be read from files for a second: another thread's conversation goes on."""
    entered, goes_on = threading.Event(), threading.Event()

    class Slow(EstimateCounter):
        def with_format(self, format: Any, /) -> Any:
            if threading.current_thread().name == "slow":
                entered.set()
                assert goes_on.wait(30)
            return super().with_format(format)

    with provider() as served:
        client = with_budget(client_of(served), 600, counter=Slow())
        slow = threading.Thread(
            target=_ask, args=(client, [{"role": "user", "content": "slow"}]), name="slow"
        )
        fast = threading.Thread(target=_ask, args=(client, [{"role": "user", "content": "fast"}]))
        slow.start()
        assert entered.wait(30)
        fast.start()
        fast.join(10)
        answered_meanwhile = len(served.bodies)
        goes_on.set()
        slow.join(30)
        fast.join(30)
    assert answered_meanwhile == 1
    assert len(served.bodies) == 2


def test_what_was_set_on_a_client_is_set_on_the_one_with_a_budget() -> None:
    """Attributes, replaced methods of the client itself, and what `with_options` gives stays fitted."""
    posts: list[str] = []
    with provider() as served:
        bare: Any = client_of(served, max_retries=7, default_headers={"X-Team": "weather"})
        bare.tenant, bare.timeout = "north", 9
        whole = bare.post

        def post(path: str, **given: Any) -> Any:
            posts.append(path)
            return whole(path, **given)

        bare.post = post
        assert bare.chat.completions.with_raw_response  # made before, as in any program
        client: Any = with_budget(bare, 600)
        assert (client.tenant, client.timeout, client.max_retries) == ("north", 9, 7)
        assert client.default_headers["X-Team"] == "weather"
        calls = _grows("Utrecht", 20)[-1]
        _ask(client, calls)
        _ask(client.with_options(timeout=3), calls)
        _ask(with_budget(client, 500), calls)
        assert posts == ["/chat/completions"]
        assert all(len(sent) < len(calls) for sent in _sent(served))
        assert len(_sent(served)) == 3


@pytest.mark.parametrize(
    "path", ["chat.completions.create", "responses.stream", "beta.chat.completions.parse", "chat"]
)
def test_a_method_that_was_replaced_on_the_client_is_refused(path: str) -> None:
    """As tracing does it: what replaced it asks by the bare client, and no budget would be held."""
    with provider() as served:
        bare: Any = client_of(served)
        *owners, name = path.split(".")
        owner = bare
        for one in owners:
            owner = getattr(owner, one)
        setattr(owner, name, lambda **given: None)
        with pytest.raises(ConfigurationError, match=rf"client\.{path} was replaced.*wrap\(with_budget"):
            with_budget(bare, 600)
        fitted: Any = with_budget(client_of(served), 600)
        create, seen = fitted.chat.completions.create, list[str]()
        fitted.chat.completions.create = lambda **given: (seen.append("traced"), create(**given))
        _ask(fitted, _grows("Utrecht", 20)[-1])
    assert seen == ["traced"]
    assert len(_sent(served)[0]) < 40
