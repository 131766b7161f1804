"""Budget: what is left for the input, to the token."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from trimtab import Budget, BudgetExceededError, ConfigurationError, Context, Session, fit
from trimtab.counting import FixedCounter, measure
from trimtab.strategies import PriorityBased, Strategy


@pytest.mark.parametrize(
    ("budget", "room"),
    [
        (Budget(100), 100),
        (Budget(100, output_reserve=30), 70),
        (Budget(100, output_reserve=30, overhead_tokens=5), 65),
        (Budget(100, output_reserve=30, overhead_tokens=5, margin=1), 64),
        (Budget(100, output_reserve=60, overhead_tokens=30, margin=9), 1),
        (Budget(100, output_reserve=60, overhead_tokens=30, margin=10), 0),
        (Budget(100, output_reserve=60, overhead_tokens=30, margin=11), 0),
        (Budget(1), 1),
    ],
)
def test_the_input_room_is_the_window_less_everything_reserved(budget: Budget, room: int) -> None:
    """Never below 0 (SPEC D1)."""
    assert budget.input_tokens == room


@pytest.mark.parametrize(
    ("used", "available", "share", "exceeds"),
    [
        (0, 80, 0.0, False),
        (20, 60, 0.25, False),
        (79, 1, 0.9875, False),
        (80, 0, 1.0, False),
        (81, 0, 1.0, True),
        (200, 0, 1.0, True),
    ],
)
def test_what_is_used_is_measured_against_the_input_room(
    used: int, available: int, share: float, exceeds: bool
) -> None:
    """At the room itself nothing is exceeded."""
    budget = Budget(100, output_reserve=20)
    assert budget.available(used) == available
    assert budget.utilization(used) == share
    assert budget.would_exceed(used) is exceeds


def test_nothing_is_used_unless_said() -> None:
    """`available()` is the whole room."""
    assert Budget(10).available() == 10


def test_no_room_is_full() -> None:
    """A budget whose margin takes all has a utilization of 1."""
    budget = Budget(10, output_reserve=4, margin=6)
    assert (budget.available(), budget.utilization(0), budget.would_exceed(0)) == (0, 1.0, False)


NUMBERS = ("window", "output_reserve", "overhead_tokens", "margin")


@pytest.mark.parametrize("value", [-1, math.inf, math.nan, True, "8", None, -0.5])
@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_that_is_none_is_refused_by_name(name: str, value: Any) -> None:
    """Negative, infinite, boolean or text."""
    with pytest.raises(ConfigurationError, match=name):
        Budget(**{"window": 100, name: value})


@pytest.mark.parametrize("value", [-1, 0.5, True, "8", math.nan])
@pytest.mark.parametrize("method", ["available", "utilization", "would_exceed"])
def test_what_is_used_must_be_a_number_of_tokens(method: str, value: Any) -> None:
    """Like the numbers of the budget itself."""
    with pytest.raises(ConfigurationError, match="used"):
        getattr(Budget(100), method)(value)


def test_a_window_of_nothing_is_refused_and_other_numbers_may_be_0() -> None:
    """The window is above 0, the rest at least 0."""
    with pytest.raises(ConfigurationError, match="window must be at least 1"):
        Budget(0)
    assert Budget(5, output_reserve=0, overhead_tokens=0, margin=0) == Budget(5)


def test_a_whole_float_is_taken_as_its_integer() -> None:
    """`8e3` is how people write thousands."""
    budget = Budget(8e3, margin=2.0)
    assert (budget.window, type(budget.window), type(budget.margin)) == (8000, int, int)
    assert Budget(1.0, margin=0.0).input_tokens == 1
    assert (budget.available(0.0), type(budget.available(5.0))) == (7998, int)


def test_a_fraction_of_a_token_is_rounded_down() -> None:
    """SPEC D1: a budget may be a share of a window; every number of it, wherever a budget is taken."""
    budget = Budget(100.5, output_reserve=10.9, overhead_tokens=0.0, margin=5.5)
    assert budget == Budget(100, output_reserve=10, overhead_tokens=0, margin=5)
    assert Budget.of(100.5) == Budget(100)
    messages = [{"role": "user", "content": "hi"}] * 3
    for room in (2.999, Budget(2.999)):
        assert len(fit(messages, room, counter=FixedCounter(per_message=1)).messages) == 2  # type: ignore[arg-type]
    session = Session(100.5)  # type: ignore[arg-type]
    assert session.budget_tokens == 100
    session.set_budget(200.5)  # type: ignore[arg-type]
    assert session.budget_tokens == 200
    with pytest.raises(ConfigurationError, match=r"window must be at least 1 token, not 0\.999"):
        Budget(0.999)
    with pytest.raises(ConfigurationError, match=r"budget must be at least 1 token, not 0\.5"):
        Budget.of(0.5)
    with pytest.raises(ConfigurationError, match="at least 100"):
        Session(99.999)  # type: ignore[arg-type]


def test_a_bare_number_is_a_budget_and_a_budget_stays_itself() -> None:
    """`Budget.of` is what `fit` calls."""
    budget = Budget(9, margin=1)
    assert Budget.of(budget) is budget
    assert Budget.of(9) == Budget(9)
    assert Budget.of(9) is not budget
    with pytest.raises(ConfigurationError):
        Budget.of(True)
    with pytest.raises(ConfigurationError):
        Budget.of([9])  # type: ignore[arg-type]  # that is the test


class Unsure:
    """A counter that may be off by a tenth and five tokens."""

    name = "unsure"

    def count(self, messages: list[Any]) -> int:
        """Count words."""
        return sum(len(message["content"].split()) for message in messages)

    def count_message(self, message: Any) -> int:
        """Count words."""
        return self.count([message])

    def margin_tokens(self, tokens: int) -> int:
        """Allow for a tenth, rounded up, and five."""
        return 5 + -(-tokens // 10)


@pytest.mark.parametrize("window", [1, 4, 5, 6, 16, 17, 100, 1_000, 99_999])
def test_a_margin_of_the_counters_own_is_as_small_as_it_can_be(window: int) -> None:
    """The room and its margin stay within the window, and one token more would not."""
    counter = Unsure()
    room = Budget(window, margin="auto").resolved(counter).input_tokens
    assert room == 0 or room + counter.margin_tokens(room) <= window
    assert room + 1 + counter.margin_tokens(room + 1) > window


def test_what_is_reserved_is_taken_off_first() -> None:
    """The margin is of the input alone."""
    budget = Budget(1_000, output_reserve=300, overhead_tokens=90, margin="auto").resolved(Unsure())
    assert budget.input_tokens == 550
    assert budget.margin == 610 - 550


def test_a_margin_in_tokens_is_left_alone() -> None:
    """No counter is asked."""
    budget = Budget(100, margin=7)
    assert budget.resolved(None) is budget


def test_an_exact_counter_without_a_margin_of_its_own_needs_none() -> None:
    """It is never off."""

    class Exact(Unsure):
        exact = True
        margin_tokens = None

    assert Budget(100, margin="auto").resolved(Exact()).margin == 0


def test_before_the_counter_is_known_the_room_is_not() -> None:
    """The error says what to call."""
    with pytest.raises(ConfigurationError, match=r"budget\.resolved\(counter\)"):
        _ = Budget(100, margin="auto").input_tokens


def test_a_counter_that_does_not_know_its_margin_is_refused() -> None:
    """Nothing is guessed."""
    with pytest.raises(ConfigurationError, match="estimate does not say how far"):
        fit([{"role": "user", "content": "hi"}], Budget(100, margin="auto"))


@pytest.mark.parametrize("other", ["auto ", "AUTO", None, -1.5, -1, True])
def test_a_margin_is_a_number_or_the_word(other: Any) -> None:
    """Anything else is refused at once."""
    with pytest.raises(ConfigurationError, match="margin must be"):
        Budget(100, margin=other)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=30), st.integers(1, 600))
def test_what_is_kept_fits_together_with_its_margin(lengths: list[int], window: int) -> None:
    """A1 under the margin: whatever stays, and whatever it may be off by, is within the window."""
    counter = Unsure()
    messages = [{"role": "user", "content": "w " * length} for length in lengths]
    for fitted in _fitted(messages, window, counter):
        tokens = counter.count(fitted.messages)
        # a context may keep nothing of its history, and nothing is not sent
        assert not tokens or tokens + counter.margin_tokens(tokens) <= window
        assert fitted.report.margin_tokens == window - fitted.report.input_tokens


def _fitted(messages: list[Any], window: int, counter: Any) -> Iterator[Any]:
    budget = Budget(window, margin="auto")
    with suppress(BudgetExceededError):
        yield fit(messages, budget, counter=counter)
    with suppress(BudgetExceededError):
        yield fit(messages, 10**9, counter=counter).at(budget)
    with suppress(BudgetExceededError):
        yield Context(budget, counter=counter).add("history", messages).fit()


def test_a_session_takes_it_too() -> None:
    """Its budget is the room that is left."""
    budget = Budget(1_000, margin="auto")
    session = Session(budget=budget, counter=Unsure())
    assert session.status().budget_tokens == budget.resolved(Unsure()).input_tokens


def test_the_report_of_a_session_has_its_whole_budget() -> None:
    """Window, reserve and margin as given, and as changed; not what is left of them as one number."""
    given = Budget(3_000, output_reserve=500, overhead_tokens=9, margin="auto")
    session = Session(budget=given, model="gemini-2.5-flash", format="openai_chat", tools=TOOLS)
    session.add({"role": "user", "content": "hi"})
    for budget in (given, Budget(5_000, output_reserve=100, overhead_tokens=9, margin=7)):
        session.set_budget(budget)
        report = session.fit().report
        spent = (report.output_reserve_tokens, report.overhead_tokens)
        assert (report.window_tokens, *spent) == (
            budget.window,
            budget.output_reserve,
            budget.overhead_tokens,
        )
        assert report.margin_tokens > 0
        assert (
            report.input_tokens
            == session.budget_tokens
            == report.window_tokens - sum(spent) - report.margin_tokens
        )
    assert report.margin_tokens == 7


def test_the_margin_of_a_session_holds_for_its_tools() -> None:
    """With what is nested in their schemas."""
    budget = Budget(6_000, margin="auto")
    session = Session(budget=budget, model="gemini-2.5-flash", format="openai_chat", tools=TOOLS)
    for _ in range(60):
        session.add({"role": "user", "content": "word " * 200})
    sent = session.fit()
    found = measure(list(sent.messages), model="gemini-2.5-flash", tools=TOOLS)
    assert 5_000 < (found.most_tokens or 0) <= 6_000


NESTED = {
    "type": "object",
    "properties": {
        "a": {"type": "object", "properties": {"b": {"type": "string", "description": "word " * 40}}}
    },
}
TOOLS = [{"type": "function", "function": {"name": "f", "description": "d", "parameters": NESTED}}]
UNSEEN = {"type": "image_url", "image_url": {"url": "https://example.org/cat.png"}}
TURNS = st.lists(
    st.tuples(st.sampled_from(["user", "assistant"]), st.integers(1, 300), st.integers(0, 2)), max_size=12
)


def talk(turns: list[tuple[str, int, int]]) -> list[dict[str, Any]]:
    """Make messages of so many words, users' with so many pictures nobody sees."""
    return [
        {"role": role, "content": [{"type": "text", "text": "word " * words}, *[UNSEEN] * pictures]}
        if role == "user"
        else {"role": role, "content": "word " * words}
        for role, words, pictures in [*turns, ("user", 5, 0)]
    ]


@settings(deadline=None)
@given(
    turns=TURNS,
    model=st.sampled_from(
        ["gpt-4o", "gpt-5", "claude-sonnet-4-5", "gemini-2.5-flash", "mistral-large-latest"]
    ),
    window=st.integers(300, 20_000),
    with_tools=st.booleans(),
    strategy=st.sampled_from([None, PriorityBased()]),
)
@example(turns=[("user", 5, 2)] * 6, model="gemini-2.5-flash", window=6_000, with_tools=True, strategy=None)
def test_an_auto_margin_holds_for_what_is_sent(
    turns: list[tuple[str, int, int]], model: str, window: int, with_tools: bool, strategy: Strategy | None
) -> None:
    """With everything nobody can know of it: nested schemas, and pictures behind an address."""
    messages, tools = talk(turns), TOOLS if with_tools else None
    budget = Budget(window, output_reserve=50, overhead_tokens=7, margin="auto")
    with suppress(BudgetExceededError):
        fitted = fit(messages, budget, model=model, format="openai_chat", tools=tools, strategy=strategy)
        found = measure(
            fitted.request, model=model, tools=tools if isinstance(fitted.request, list) else None
        )
        assert found.tokens == fitted.report.tokens_after
        assert (found.most_tokens or window) <= window - 57
    context = Context(budget=budget, model=model, format="openai_chat", tools=tools)
    context.add("history", messages)
    with suppress(BudgetExceededError):
        fitted = context.fit()
        assert (measure(fitted.messages, model=model, tools=tools).most_tokens or window) <= window - 57
        for other in (window, 2 * window):
            again = fitted.at(Budget(other, margin="auto"))
            assert (measure(again.messages, model=model, tools=tools).most_tokens or window) <= other


def test_what_left_is_not_in_the_margin() -> None:
    """Pictures of turns that are gone take no room; what is left fills it."""
    messages = talk([("user", 300, 2)] * 40 + [("user", 5, 0), ("assistant", 10, 0)] * 200)
    fitted = fit(messages, Budget(4_000, margin="auto"), model="gpt-4o")
    assert fitted.report.tokens_after > 3_900


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"margin": 0.1}, "margin is a number of tokens, not a share of them as 0.1"),
        ({"output_reserve": 0.2}, "output_reserve is a number of tokens, not a share"),
        ({"overhead_tokens": 0.5}, "overhead_tokens is a number of tokens, not a share"),
        ({"output_reserve": 9_000}, "no room remains in a window of 8000 tokens beside output_reserve=9,000"),
        ({"output_reserve": 8_000}, "nothing remains"),
        ({"output_reserve": 5_000, "overhead_tokens": 3_000}, "nothing remains.*overhead_tokens=3,000"),
        ({"over_limit": 1}, "over_limit is True or False"),
    ],
)
def test_what_can_be_no_room_is_refused(given: dict[str, Any], said: str) -> None:
    """SPEC D1: a share that was meant is not 0 in silence, and a reserve leaves something of the window."""
    with pytest.raises(ConfigurationError, match=said):
        Budget(8_000, **given)
    assert Budget(8_000, output_reserve=4_999, overhead_tokens=3_000, margin=0.0).input_tokens == 1


class Index:
    """A whole number as numpy writes them."""

    def __index__(self) -> int:
        """Be 300."""
        return 300


def test_whole_numbers_of_other_makes_are_taken() -> None:
    """SPEC D0: what has `__index__` and is no bool."""
    assert Budget(Index(), output_reserve=Index().__index__() - 1).input_tokens == 1
    assert Budget.of(Index()) == Budget(300)
    messages = [{"role": "user", "content": "hi"}]
    assert fit(messages, Index(), counter=FixedCounter(per_message=1)).report.input_tokens == 300
    assert Session(Index()).budget_tokens == 300
    numpy = pytest.importorskip("numpy")
    assert Budget(numpy.int64(300), margin=numpy.int32(5)) == Budget(300, margin=5)
    assert type(Budget(numpy.int64(300)).window) is int
    with pytest.raises(ConfigurationError, match="window"):
        Budget(numpy.bool_(1))


@pytest.mark.parametrize(
    ("words", "tokens"),
    [("8k", 8_000), ("8_000", 8_000), ("8,000", 8_000), (" 1.5M ", 1_500_000), ("4000", 4_000)],
)
def test_a_number_of_tokens_may_be_a_text(words: str, tokens: int) -> None:
    """As the command line takes it, at every door."""
    assert Budget.of(words) == Budget(tokens)
    messages = [{"role": "user", "content": "hi"}]
    assert fit(messages, words).report.input_tokens == tokens
    assert Context(words).add("a", "b").fit().report.input_tokens == tokens
    assert Session(words).budget_tokens == tokens


@pytest.mark.parametrize("words", ["", "k", "8g", "80 %%", "-8k", "0", "0%", "101%", "1e3", "9" * 41, "١k%"])
def test_other_texts_are_no_budget(words: str) -> None:
    """With what may stand there."""
    with pytest.raises(ConfigurationError, match="budget"):
        Budget.of(words, model="gpt-4o")


def test_a_share_needs_a_known_model() -> None:
    """It says which model is meant, or that none is."""
    assert Budget.of("50%", model="gpt-4o") == Budget(64_000)
    assert Budget.of("0.001%", model="gpt-4o") == Budget(1)
    with pytest.raises(ConfigurationError, match=r"no model is named: pass model=, or tokens"):
        Budget.of("50%")
    with pytest.raises(ConfigurationError, match="'claude-99' is not known"):
        Budget.of("50%", model="claude-99")
