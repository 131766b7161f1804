"""The runner: a strategy is trusted with the decision, and with nothing else."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from tests.builders import call, places, result, system, talk, user, words
from trimtab import BudgetExceededError, Cascade, ConfigurationError, SlidingWindow, fit
from trimtab.conversation import Unit
from trimtab.errors import StrategyContractError
from trimtab.strategies import Edit, EvictionRequest, EvictionResult, Insertion
from trimtab.testing import WordCounter

WORDS = WordCounter()
LINE = "s1 u2 a3 u4 cA rA5 u1"


@dataclass(frozen=True)
class Custom:
    """A strategy of a user's."""

    decide: Callable[[EvictionRequest], Any]
    name: str = "mine"

    def evict(self, request: EvictionRequest, /) -> Any:
        """Decide."""
        return self.decide(request)


def run(decide: Callable[[EvictionRequest], Any], messages: list[Any], budget: int) -> Any:
    """Fit with a strategy made of a function."""
    return fit(messages, budget, counter=WORDS, strategy=Custom(decide))


def kept(*firsts: int, **options: Any) -> Callable[[EvictionRequest], EvictionResult]:
    """Keep the units that begin at those messages."""
    return lambda request: EvictionResult(
        kept=[unit for first in firsts for unit in request.units if unit.first == first], **options
    )


def cut(at: Any, *beside: int, **options: Any) -> Callable[[EvictionRequest], EvictionResult]:
    """Cut at a message, and keep those units beside it."""
    return lambda request: EvictionResult(
        cut=at, kept=[unit for unit in request.units if unit.first in beside], **options
    )


def put_in(**changes: Any) -> Insertion:
    """Make an insertion that stands for message 1, as it should be but for what is given."""
    right: dict[str, Any] = {"at": 1, "message": user("instead of 1"), "why": "a word", "covers": {1}}
    return Insertion(**{**right, **changes})


def written(*covers: int) -> Insertion:
    """Make a message that stands for others, before the first of them."""
    message = user(f"instead of {covers[0]}")
    return Insertion(at=covers[0], message=message, why="a word", covers=frozenset(covers))


@pytest.mark.parametrize(
    ("decide", "expected"),
    [
        (kept(0, 1, 3, 6), [0, 1, 3, 6]),
        (kept(0, 4, 6), [0, 4, 5, 6]),
        (kept(0, 6), [0, 6]),
        (cut(4), [0, 4, 5, 6]),
        (cut(3), [0, 3, 4, 5, 6]),
        (cut(6), [0, 6]),
        (cut(7), [0, 6]),
        (cut(4, 1), [0, 1, 4, 5, 6]),
        (cut(6, 4), [0, 4, 5, 6]),
        (cut(4, 0, 4, 6), [0, 4, 5, 6]),
        (cut(4, 4, 6), [0, 4, 5, 6]),
        (cut(7, 6), [0, 6]),
    ],
)
def test_what_a_strategy_keeps_comes_out(decide: Any, expected: list[int]) -> None:
    """As a list of units, or as a cut with some beside it; pinned units need not be named for a cut."""
    messages = talk(LINE)
    fitted = run(decide, messages, 15)
    assert places(fitted.messages, messages) == expected
    assert fitted.report.tokens_after == WORDS.count(fitted.messages)
    assert fitted.report.blocks[0].actions == ("mine",)


@pytest.mark.parametrize(
    ("decide", "said"),
    [
        (lambda request: None, "returned NoneType"),
        (lambda request: [], "returned list"),
        (cut("3"), "cuts at '3'"),
        (cut(True), "cuts at True"),
        (cut(5), "cuts at message 5"),
        (cut(8), "cuts at message 8"),
        (kept(0, 1, 2, 3, 4, 6), "says it fits, but 18 tokens are over 15"),
        (cut(1), "says it fits, but 18 tokens are over 15"),
        (kept(0, 3), "which is pinned"),
        (kept(3, 6), "which is pinned"),
        (kept(0, 3, 1, 6), "changed the order"),
        (kept(0, 1, 1, 6), "kept one twice"),
        (cut(-1), "cuts at message -1"),
        (cut(0), "says it fits, but 18 tokens are over 15"),
        (lambda request: EvictionResult(kept=["x"]), "not a unit"),
        (lambda request: EvictionResult(cut=6, kept=["x"]), "not a unit"),
        (lambda request: EvictionResult(cut=6, kept=[Unit((5,), kind="tool")]), "not a unit"),
        (lambda request: EvictionResult(cut=6, kept=[Unit((9,), kind="user")]), "not a unit"),
        (lambda request: EvictionResult(cut=6, kept=[Unit((-1,), kind="user")]), "not a unit"),
        (
            lambda request: EvictionResult(cut=6, kept=[Unit((3,), kind="user", parts={3: (0,)})]),
            "not a unit",
        ),
        (lambda request: EvictionResult(kept=None), "None as kept; it is a sequence"),
        (lambda request: EvictionResult(cut=6, kept=None), "None as kept; it is a sequence"),
        (lambda request: EvictionResult(kept="units"), "'units' as kept; it is a sequence"),
        (kept(0, 3, 6, edits=None), "None as edits; it is a sequence"),
        (kept(0, 3, 6, edits=["x"]), "'x' among its edits"),
        (kept(0, 3, 6, edits=[Edit(index="3", texts={})]), "edits message '3'"),
        (kept(0, 3, 6, edits=[Edit(index=3, texts=None)]), "edits message 3 with None"),
        (kept(0, 4, 6, edits=[Edit(index=5, texts={("content",): None})]), "with NoneType, not text"),
        (kept(0, 4, 6, edits=[Edit(index=5, texts={("content",): 5})]), "with int, not text"),
        (cut(6, actions="evicted"), "'evicted' as actions"),
        (cut(6, actions=("evicted", 5)), "as actions; it is a tuple of words"),
        (cut(6, reason="because"), "'because' as reason; it is one of over_limit, over_cap"),
        (cut(6, reason=None), "None as reason"),
        (cut(6, fits=None), "None as fits"),
        (cut(6, fits=False, needed_tokens="20"), "'20' as needed_tokens"),
        (cut(6, protected=[3]), r"\[3\] as protected"),
        (lambda request: EvictionResult(cut=6, kept=[_half(request)]), "not a unit"),
        (lambda request: EvictionResult(kept=[*request.units[:1], _half(request)]), "not a unit"),
        (
            kept(0, 3, 6, edits=[Edit(index=1, texts={("content",): "x"})]),
            "edits message 1, which is evicted",
        ),
        (kept(0, 3, 6, edits=[Edit(index=6, texts={("content",): "x"})]), "edits message 6, which is pinned"),
        (kept(0, 3, 6, edits=[Edit(index=3, texts={("name",): "x"})]), "where no text is"),
        (kept(0, 1, 6, insertions=[written(1)]), "stands for messages that stay"),
        (kept(0, 1, 6, insertions=[written(2, 6)]), "stands for messages that stay"),
        (kept(0, 6, insertions=[put_in(planned_tokens=1)]), "of 3 tokens and plans 1 for it"),
        (kept(0, 6, insertions=[put_in(planned_tokens=2)]), "of 3 tokens and plans 2 for it"),
        (kept(0, 6, insertions=[put_in(planned_tokens=True)]), "planned_tokens is a whole number"),
        (kept(0, 6, insertions=[put_in(message={"a": 1})]), "which the provider refuses"),
        (
            kept(0, 6, insertions=[put_in(message={"role": "user", "content": "x", "name": 5})]),
            "the provider refuses: a name must be a string",
        ),
        (kept(0, 6, insertions=[put_in(message={"role": "nobody", "content": "x"})]), "the provider refuses"),
        (kept(0, 6, insertions=[put_in(message=result("A"))]), "makes or answers a call"),
        (kept(0, 6, insertions=[put_in(message=call("B"))]), "makes or answers a call"),
        (kept(0, 6, insertions=[put_in(covers=[1])]), "as covers; it is a set of positions"),
        (kept(0, 6, insertions=[put_in(covers={1, "2"})]), "as covers; it is a set of positions"),
        (kept(0, 6, insertions=[put_in(covers={1, 99})]), "stands for messages that there are not"),
        (kept(0, 6, insertions=[put_in(covers=None)]), "None as covers"),
        (kept(0, 6, insertions=[put_in(why=None)]), "None as why"),
        (kept(0, 6, insertions=[put_in(at=2)]), "at message 2, in place of none"),
        (lambda request: EvictionResult(cut=6, kept=[Unit((), kind="user")]), "not a unit"),
        (lambda request: EvictionResult(kept=[Unit((), kind="user")]), "not a unit"),
        (lambda request: EvictionResult(kept=[Unit(([],), kind="user")]), "not a unit"),
        (lambda request: EvictionResult(cut=6, kept=[Unit(("a",), kind="user")]), "not a unit"),
        (lambda request: EvictionResult(kept=[Unit((3,), kind="user", parts=None)]), "not a unit"),
    ],
)
def test_a_breach_of_the_contract_is_an_error(decide: Any, said: str) -> None:
    """And never a wrong request."""
    with pytest.raises(StrategyContractError, match=said) as caught:
        run(decide, talk(LINE), 15)
    assert "mine" in str(caught.value)


@pytest.mark.parametrize(
    "decide", [cut(6), kept(0, 3, 6), lambda request: None, kept(0, 6, reason="because")]
)
def test_a_breach_in_a_cascade_names_the_step(decide: Any) -> None:
    """Whichever step it is: what the others did was right."""
    whole = kept(0, 1, 2, 3, 4, 6, fits=False)
    wrong = Custom(lambda request: replaced(decide(request)), name="wrong")
    for steps in ((wrong, Custom(whole)), (Custom(whole), wrong), (Custom(whole), wrong, Custom(whole))):
        at = steps.index(wrong) + 1
        with pytest.raises(StrategyContractError, match=f"wrong, step {at} of a cascade") as caught:
            fit(talk(LINE), 15, counter=WORDS, strategy=Cascade(*steps))
        assert "wrong" in caught.value.strategy


def replaced(answer: Any) -> Any:
    """Spoil an answer that would be right: it edits a message that is pinned."""
    if not isinstance(answer, EvictionResult):
        return answer
    return replace(answer, fits=False, edits=[Edit(index=6, texts={("content",): "x"})])


def test_half_a_call_beside_a_cut_is_a_breach() -> None:
    """A result alone reads as a unit of one message, and would come out as an orphan."""
    messages = [system(), user(), call("A"), result("A"), {"role": "assistant", "content": words(9)}]
    for count in (0, 40):
        long = [*messages[:1], *talk("u9 a9 " * count), *messages[1:]]
        end = len(long)
        decide = half_beside(end)
        with pytest.raises(StrategyContractError, match="not a unit of the request"):
            run(decide, long, 13)


def half_beside(count: int) -> Callable[[EvictionRequest], EvictionResult]:
    """Keep the newest message, and the one before it as a unit."""
    return lambda request: EvictionResult(cut=count - 1, kept=[Unit((count - 2,), kind="tool")])


@pytest.mark.parametrize("name", ["indices", "kind", "state", "open", "parts"])
def test_a_strategy_cannot_rewrite_a_unit(name: str) -> None:
    """Else it could evict what is pinned by calling it free."""

    def free_it(request: EvictionRequest) -> EvictionResult:
        with pytest.raises(AttributeError, match="is read-only"):
            setattr(request.units[0], name, "free")
        with pytest.raises(AttributeError, match="is read-only"):
            delattr(request.units[0], name)
        return EvictionResult(kept=request.units[3:])

    with pytest.raises(StrategyContractError, match="which is pinned"):
        run(free_it, talk(LINE), 15)


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda unit: pickle.loads(pickle.dumps(unit))])
def test_a_unit_can_be_copied_and_pickled(again: Callable[[Unit], Unit]) -> None:
    """Though it cannot be changed."""
    unit = Unit((4, 5), kind="assistant", state="held", open=True, parts={5: (0, 2)})
    other = again(unit)
    assert (other.indices, other.kind, other.state, other.open) == ((4, 5), "assistant", "held", True)
    assert other.parts == {5: (0, 2)}


@pytest.mark.parametrize("kind", [SlidingWindow, None])
def test_what_has_no_name_is_no_strategy(kind: Any) -> None:
    """Said before anything is decided, whether it would have fitted or not."""

    class Nameless:
        def evict(self, request: EvictionRequest, /) -> EvictionResult:
            return EvictionResult(kept=request.units, fits=False)

    nameless: Any = Nameless()
    with pytest.raises(ConfigurationError, match="name"):
        fit(talk(LINE), 15, counter=WORDS, strategy=nameless if kind is None else Cascade(kind(), nameless))


def test_the_first_step_that_fits_is_named_in_the_report() -> None:
    """As any other step is, where it does not say what it did."""
    fitted = fit(talk(LINE), 15, counter=WORDS, strategy=Cascade(Custom(cut(6)), SlidingWindow()))
    assert fitted.report.blocks[0].actions == ("mine",)


def _half(request: EvictionRequest) -> Any:
    """Make a unit of a call without its result."""
    whole = next(unit for unit in request.units if unit.first == 4)
    return type(whole)((4,), kind="assistant")


@pytest.mark.parametrize(("budget", "fits"), [(15, True), (14, True), (13, False)])
def test_at_the_limit_itself_it_fits(budget: int, fits: bool) -> None:
    """1 + 2 + 3 + 7 + 1 tokens of 18."""
    decide = kept(0, 1, 2, 4, 6)
    if fits:
        assert run(decide, talk(LINE), budget).report.tokens_after == 14
    else:
        with pytest.raises(StrategyContractError):
            run(decide, talk(LINE), budget)


def test_a_strategy_may_say_that_it_does_not_fit() -> None:
    """Then it may be over: that is BudgetExceededError, with its attempt and its size."""
    with pytest.raises(BudgetExceededError) as caught:
        run(kept(0, 1, 2, 4, 6, fits=False), talk(LINE), 13)
    assert caught.value.needed_tokens == 14
    with pytest.raises(BudgetExceededError) as caught:
        run(cut(1, fits=False, needed_tokens=16), talk(LINE), 13)
    assert caught.value.needed_tokens == 16


def test_a_cut_inside_a_unit_is_a_breach_wherever_it_is() -> None:
    """The result at 2 belongs to the call at 0, though another message stands between."""
    with pytest.raises(StrategyContractError, match=r"^block 'history': .* cuts at message 2, where no unit"):
        run(cut(2, fits=False), talk("cA a9 rA9 u9 u1"), 5)


def test_edits_are_laid_over_the_message() -> None:
    """Of several for one message the last text of a place wins; the caller's objects stay."""
    messages = talk(LINE)
    edits = [Edit(index=5, texts={("content",): words(2)}), Edit(index=5, texts={("content",): "x"})]
    fitted = run(kept(0, 4, 6, edits=edits, actions=("cut",)), messages, 15)
    assert [message["content"] for message in fitted.messages] == ["w", None, "x", "w"]
    assert messages[5]["content"] == words(5)
    assert places(fitted.messages[:2], messages) == [0, 4]
    report = fitted.report
    assert (report.tokens_after, report.changed_message_count) == (5, 1)
    assert report.blocks[0].actions == ("cut",)
    assert [(row.fate, row.tokens_after) for row in report.messages][4:6] == [("kept", 2), ("changed", 1)]


def test_edits_of_several_places_in_one_message_add_up() -> None:
    """Whether they come in one edit or in two."""
    content = [{"type": "text", "text": words(5)}, {"type": "text", "text": words(6)}]
    messages = [user("one"), {"role": "assistant", "content": content}, user("two")]
    edits = [Edit(index=1, texts={("content", at, "text"): f"x{at}"}) for at in (0, 1)]
    fitted = run(kept(1, 2, edits=edits), messages, 8)
    assert [part["text"] for part in fitted.messages[0]["content"]] == ["x0", "x1"]


@pytest.mark.parametrize("counter", [WORDS, WORDS.count], ids=["additive", "black box"])
@pytest.mark.parametrize("decide", [kept, cut], ids=["kept", "cut"])
def test_what_is_put_in_stands_where_others_stood(decide: Any, counter: Any) -> None:
    """In order, however it was listed; it is counted, with a cut as with units."""
    messages = talk("s1 u2 a3 u9 a1 a2 u1")
    insertions = [written(3), written(1, 2)]
    stays = kept(0, 4, 5, 6, insertions=insertions) if decide is kept else cut(4, insertions=insertions)
    fitted = fit(messages, 15, counter=counter, strategy=Custom(stays))
    said = [message["content"] for message in fitted.messages]
    assert said == ["w", "instead of 1", "instead of 3", "w", "w w", "w"]
    report = fitted.report
    assert report.tokens_after == WORDS.count(fitted.messages) == 11
    assert [row.reason for row in report.messages][1:5] == [*["superseded_by_summary"] * 3, None]


def test_a_step_may_cut_and_edit_at_once() -> None:
    """What it edits is behind the cut; the next step goes on from there."""
    first = Custom(cut(4, edits=[Edit(index=5, texts={("content",): words(4)})], fits=False))
    messages = talk(LINE)
    fitted = fit(messages, 8, counter=WORDS, strategy=Cascade(first, SlidingWindow()))
    assert [message["content"] for message in fitted.messages] == ["w", None, words(4), "w"]
    assert fitted.report.tokens_after == 8


def test_a_message_at_the_cut_may_be_edited() -> None:
    """Everything after it comes out unedited, in its place."""
    messages = [
        user("old"),
        call("A"),
        result("A", words(9)),
        user("q"),
        {"role": "assistant", "content": "a"},
    ]
    decide = cut(1, edits=[Edit(index=2, texts={("content",): "x"})])
    assert [m["content"] for m in run(decide, messages, 12).messages] == [None, "x", "q", "a"]


def test_an_insertion_is_counted_whatever_was_planned_for_it() -> None:
    """One that plans as much as it takes, or more, is charged with that; exactly what fits passes."""
    for planned, tokens in ((None, 3), (3, 3), (5, 5)):
        decide = kept(0, 6, insertions=[put_in(planned_tokens=planned)])
        least = run(kept(0, 6), talk(LINE), 15).report.tokens_after
        assert run(decide, talk(LINE), 15).report.tokens_after == least + tokens


def test_a_breach_by_an_insertion_in_a_cascade_names_the_step_and_the_block() -> None:
    """Though later steps would have covered it up."""
    wrong = Custom(kept(0, 6, fits=False, insertions=[put_in(covers={1, 6})]), name="wrong")
    with pytest.raises(StrategyContractError, match="wrong, step 1 of a cascade") as caught:
        fit(talk(LINE), 15, counter=WORDS, strategy=Cascade(wrong, Custom(kept(0, 6))))
    assert caught.value.block == "history"
