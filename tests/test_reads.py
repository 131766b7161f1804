"""Speed goes by what a strategy promises and asks for, and an answer by neither."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.test_near_cut import FORMS, TALKS, TURNS_BEFORE, outcome, written
from trimtab import Cascade, ClearToolResults, EstimateCounter, SlidingWindow, TruncateText, fit
from trimtab.conversation import History
from trimtab.formats import get_format
from trimtab.strategies import EvictionRequest, EvictionResult, Reads
from trimtab.testing import ContractBroken, WordCounter, check_strategy, group_all

WORDS = WordCounter()
Kept = Callable[[EvictionRequest, list[Any]], Sequence[Any]]


def from_newest(request: EvictionRequest) -> list[Any]:
    """Take what fits from the newest unit back, as docs/strategies.md shows."""
    room, taken = request.room_tokens, []
    for unit in request.newest_first():
        if not request.stays(unit):
            room -= request.size(unit)
            if room < 0:
                break
        taken.append(unit)
    return taken


def by_identity(request: EvictionRequest, taken: list[Any]) -> list[Any]:
    """What was taken and what must stay, as most write it."""
    ids = set(map(id, taken))
    return [unit for unit in request.units if id(unit) in ids or request.stays(unit)]


def with_oldest(request: EvictionRequest, taken: list[Any]) -> list[Any]:
    """The oldest unit that is free stays, too: that is asked of what nobody has read."""
    ids = set(map(id, taken[:-2]))
    oldest = next((unit.first for unit in request.units if not request.stays(unit)), -1)
    return [unit for unit in request.units if id(unit) in ids or request.stays(unit) or unit.first == oldest]


def every_second(request: EvictionRequest, taken: list[Any]) -> list[Any]:
    """Positions among all units."""
    ids = set(map(id, taken))
    return [
        unit
        for at, unit in enumerate(request.units)
        if request.stays(unit) or (at % 2 == 0 and id(unit) in ids)
    ]


def newest_half(request: EvictionRequest, taken: list[Any]) -> list[Any]:
    """How many units there are says how many stay."""
    half = min(len(request.units) // 2, len(taken))
    return [unit for unit in request.units[:-half] if request.stays(unit)] + [*request.units[-half:]]


def of_users(request: EvictionRequest, taken: list[Any]) -> list[Any]:
    """Kinds of units nobody has read."""
    ids = set(map(id, taken[: len(taken) // 2]))
    users = [unit for unit in request.units if unit.kind == "user"][:1]
    return [unit for unit in request.units if id(unit) in ids or request.stays(unit) or unit in users]


def agree(messages: list[Any], budget: int, **options: Any) -> tuple[Any, ...]:
    """Hold what is decided to what is decided where everything is grouped; more may have been counted."""
    lazy = outcome(messages, budget, **options)
    with group_all():
        assert lazy == outcome(messages, budget, **options), budget
    return lazy


class Own:
    """A strategy of somebody's own that walks back from the newest unit."""

    name = "own"

    def __init__(self, keep: Kept = by_identity, *, reads: Reads | None = None) -> None:
        self.keep = keep
        self.asked = 0
        if reads is not None:
            self.reads = reads

    def __repr__(self) -> str:
        return f"{self.keep.__name__}, {getattr(self, 'reads', 'no promise')}"

    def evict(self, request: EvictionRequest, /) -> EvictionResult:
        """Choose by `keep`."""
        self.asked += 1
        kept = self.keep(request, from_newest(request))
        return EvictionResult(kept=kept, fits=request.fits(kept))


WALKERS = [
    *(Own(keep) for keep in (by_identity, with_oldest, every_second, newest_half, of_users)),
    Own(by_identity, reads="newest"),
]


@pytest.mark.few(7)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("strategy", WALKERS, ids=repr)
def test_who_walks_back_is_answered_as_if_all_was_read(strategy: Own, form: str) -> None:
    """Whatever is asked behind the walk, in every wire form and for many budgets."""
    for talk in (*TALKS, *(f"{TURNS_BEFORE} {talk}" for talk in TALKS[::8])):
        messages = written(talk, form)
        whole = fit(messages, 10**6, counter=WORDS, format=form).report.tokens_after
        for share in (0.2, 0.5, 0.8):
            agree(messages, max(1, int(whole * share)), counter=WORDS, format=form, strategy=strategy)


def long_talk(turns: int = 60) -> list[dict[str, Any]]:
    """Make turns of a question, a call, its result, an answer."""
    made: list[dict[str, Any]] = []
    for at in range(turns):
        function = {"name": "look", "arguments": "{}"}
        made += [
            {"role": "user", "content": f"question {at}"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": f"c{at}", "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": f"c{at}", "content": f"found {at} and more of it"},
            {"role": "assistant", "content": f"answer {at}"},
        ]
    return made


def test_who_stops_on_the_way_back_is_asked_once() -> None:
    """And who asks for what was not read, twice."""
    for keep, asked in ((by_identity, 1), (of_users, 2), (newest_half, 2)):
        strategy = Own(keep)
        fit(long_talk(), 200, counter=WORDS, strategy=strategy)
        assert strategy.asked == asked, keep.__name__


class FirstWords(SlidingWindow):
    """A window that keeps the first two of the user's messages, and inherits a promise that is wrong."""

    def evict(self, request: EvictionRequest, /) -> EvictionResult:
        """Hold them."""
        users = [unit.first for unit in request.units if unit.kind == "user"]
        return super().evict(request.hold(users[:2]))


class Unchanged(SlidingWindow):
    """A window under another name."""


@pytest.mark.parametrize(
    "strategy",
    [
        FirstWords(),
        Cascade(ClearToolResults(keep_results=1, target_ratio=1.0), FirstWords()),
        Cascade(FirstWords(), TruncateText()),
    ],
    ids=["alone", "behind results that are cleared", "first of two"],
)
def test_a_wrong_promise_never_makes_a_wrong_answer(strategy: Any) -> None:
    """The older messages it asks for are there, and what was decided without them is decided again."""
    messages = long_talk()
    for budget in (60, 150, 300):
        _, kept, *_ = agree(messages, budget, counter=WORDS, strategy=strategy)
        assert kept[:2] == [0, 4]


@pytest.mark.parametrize("budget", [40, 150, 300])
def test_a_subclass_that_changes_nothing_is_answered_as_the_original(budget: int) -> None:
    """It inherits what the original promises."""
    messages = long_talk()
    assert Unchanged().reads == SlidingWindow().reads == "newest"
    ours = fit(messages, budget, counter=WORDS, strategy=SlidingWindow())
    assert fit(messages, budget, counter=WORDS, strategy=Unchanged()).messages == ours.messages


@pytest.mark.parametrize(
    ("options", "reads"),
    [
        ({}, "newest"),
        ({"target_ratio": 0.5, "min_messages": 3}, "newest"),
        ({"keep_first_user": True, "keep_turns": True}, "newest"),
        ({"keep_cached": True}, "all"),
        ({"protect_roles": ["system"]}, "all"),
    ],
)
def test_a_window_says_whether_older_messages_have_a_say(options: dict[str, Any], reads: str) -> None:
    """By its options; a Cascade says what its first step says that lets something leave."""
    window = SlidingWindow(**options)
    assert window.reads == reads
    assert Cascade(window, TruncateText()).reads == reads
    assert Cascade(ClearToolResults(), window).reads == reads


def test_in_a_conversation_older_messages_may_have_no_say_after_all() -> None:
    """No mark is there; and those that have are named beforehand."""
    form = get_format("openai_chat")
    plain = History([{"role": "user", "content": "go"}], format=form)
    part = {"type": "text", "text": "go", "cache_control": {"type": "ephemeral"}}
    marked = History([{"role": "user", "content": [part]}], format=form)
    cached = Cascade(SlidingWindow(keep_cached=True), TruncateText())
    assert (cached.reads_in(plain), cached.reads_in(marked)) == ("newest", "all")
    assert SlidingWindow(keep_turns=True).reads_in(marked) == "newest"
    assert SlidingWindow(protect_roles=["user"]).reads_in(plain) == "all"
    talk = History([{"role": "system", "content": "be"}, *long_talk(2)], format=form)
    assert set(Cascade(ClearToolResults(), SlidingWindow(keep_first_user=True)).landmarks(talk)) == {1}
    assert set(SlidingWindow().landmarks(talk)) == set()


@pytest.mark.parametrize("form", FORMS)
def test_who_walks_back_is_answered_alike_where_counting_reads_the_structure(form: str) -> None:
    """By a counter with prices, whose walk may stop between a call and the result of an older one."""
    counter = EstimateCounter()
    for talk in ("u1 a2 cZ u1 cA rA2 rZ3 a2 u2", "cA u1 a2 rA2 a1 u1 a1", *TALKS[::5]):
        messages = written(talk, form)
        whole = fit(messages, 10**6, counter=counter, format=form).report.tokens_after
        for budget in range(5, whole, 3):
            agree(messages, budget, counter=counter, format=form, strategy=Own(by_identity, reads="newest"))


@pytest.mark.long
def test_a_wrong_promise_is_found() -> None:
    """By asking of the newest alone, too."""
    with pytest.raises(ContractBroken, match="says that it reads") as caught:
        check_strategy(FirstWords(), thrifty=False)
    assert caught.value.rule == "reads"
    check_strategy(Own(by_identity, reads="newest"))
    check_strategy(Unchanged())


def test_a_promise_is_one_of_two_words() -> None:
    """Another one would be none."""
    strategy: Any = Own(by_identity)
    strategy.reads = "some"
    with pytest.raises(ContractBroken, match='reads \'some\'; it is "all" or "newest"'):
        check_strategy(strategy)


@pytest.mark.few(6)
@pytest.mark.parametrize("target_ratio", [1.0, 0.7])
@pytest.mark.parametrize("least", [0, 20, 500, 10**6])
@pytest.mark.parametrize("options", [{}, {"keep_turns": True}, {"keep_first_user": True}], ids=str)
def test_results_that_are_cleared_in_large_steps_are_cleared_near_the_cut(
    options: dict[str, Any], least: int, target_ratio: float
) -> None:
    """`clear_at_least_tokens` and options of the window behind: as where everything was read."""
    messages = long_talk(100)
    strategy = Cascade(
        ClearToolResults(keep_results=2, clear_at_least_tokens=least, target_ratio=target_ratio),
        SlidingWindow(**options),
        TruncateText(),
    )
    for budget in (30, 100, 250, 600, 900):
        agree(messages, budget, counter=WORDS, strategy=strategy)


def test_a_walk_that_goes_on_comes_to_all_units() -> None:
    """Each once, from the newest to the oldest, as the units of the whole conversation."""
    seen: list[list[int]] = []

    class Walker:
        name = "walker"

        def evict(self, request: EvictionRequest, /) -> EvictionResult:
            seen.append([unit.first for unit in request.newest_first()])
            kept = [unit for unit in request.units if request.stays(unit)]
            return EvictionResult(kept=kept, fits=request.fits(kept))

    messages = long_talk()
    fit(messages, 100, counter=WORDS, strategy=Walker())
    with group_all():
        fit(messages, 100, counter=WORDS, strategy=Walker())
    lazy, *_, whole = seen
    assert lazy == whole == sorted(lazy, reverse=True)
    assert lazy[-1] == 0
