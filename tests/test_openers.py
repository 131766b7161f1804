"""Where not every message may come first, what is kept is weighed with what it needs in front of it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import talk
from tests.chat_in_forms import said_in
from trimtab import (
    BudgetExceededError,
    Cascade,
    Context,
    PriorityBased,
    Session,
    SlidingWindow,
    TruncateText,
    fit,
    validate,
)
from trimtab.conversation import group
from trimtab.formats import get_format
from trimtab.strategies import ClampResults, EvictionRequest, EvictionResult, Insertion
from trimtab.testing import WordCounter

Message = dict[str, Any]

every_form = pytest.mark.parametrize(
    "form", ["openai_chat", "openai_responses", "anthropic", "gemini", "bedrock"]
)
ordered = pytest.mark.parametrize("form", ["anthropic", "gemini", "bedrock"])


def said(form: str, role: str, count: int) -> Message:
    """Make a message of so many words, which cost as many tokens."""
    return get_format(form).message(role, [" ".join(["word"] * count)])


def looked_up(form: str, number: int, count: int) -> list[Message]:
    """Make a call and its result: together the result's words and three tokens."""
    text, call_id = " ".join(["word"] * count), f"c{number}"
    if form == "anthropic":
        call: Any = {"type": "tool_use", "id": call_id, "name": "look", "input": {"at": "dog"}}
        found: Any = {"type": "tool_result", "tool_use_id": call_id, "content": text}
        return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [found]}]
    if form == "bedrock":
        call = {"toolUse": {"toolUseId": call_id, "name": "look", "input": {"at": "dog"}}}
        found = {"toolResult": {"toolUseId": call_id, "content": [{"text": text}]}}
        return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [found]}]
    call = {"functionCall": {"id": call_id, "name": "look", "args": {"at": "dog"}}}
    found = {"functionResponse": {"id": call_id, "name": "look", "response": {"result": text}}}
    return [{"role": "model", "parts": [call]}, {"role": "user", "parts": [found]}]


def run_of(form: str) -> list[Message]:
    """A question of 30, ten answers of 28 each, and two short messages that stay."""
    answers = [said(form, "assistant", 28) for _ in range(10)]
    return [said(form, "user", 30), *answers, said(form, "user", 6), said(form, "assistant", 5)]


@every_form
def test_a_run_that_is_shortened_uses_its_budget(form: str) -> None:
    """321 tokens into 288: the question is cut, and stands in front of all its answers (6 were left)."""
    messages, counter = run_of(form), WordCounter(format=form)
    assert counter.count(messages) == 321
    fitted = fit(messages, 288, counter=counter, format=form, strategy=TruncateText())
    assert counter.count(fitted.messages) == 288
    context = Context(288, counter=counter, format=form)
    context.add("history", messages[:-2], trim_behavior="char")
    context.add("question", messages[-2:], priority=9)
    assert counter.count(context.fit().messages) == 288


@ordered
def test_an_opener_is_cut_to_its_marker_before_its_answers_leave(form: str) -> None:
    """It stays as long as one of them does; the oldest of them is cut next."""
    messages, counter = run_of(form), WordCounter(format=form)
    fitted = fit(messages, 60, counter=counter, format=form, strategy=TruncateText())
    rows = fitted.report.messages
    assert counter.count(fitted.messages) == 60
    assert [row.index for row in rows if row.fate != "evicted"] == [0, 9, 10, 11, 12]
    assert [row.index for row in rows if row.fate == "changed"] == [0, 9]
    assert rows[0].tokens_after == counter.count(
        [get_format(form).message("user", ["[text cut by trimtab]"])]
    )


@ordered
def test_no_opener_stays_where_something_else_stands_in_front(form: str) -> None:
    """Of a pinned question in front of all, and of nothing at all: then what stays is led by its own."""
    messages, counter = [said(form, "user", 10), *run_of(form)], WordCounter(format=form)
    fitted = fit(messages, 60, counter=counter, format=form, strategy=TruncateText(), pin=[0])
    assert fitted.positions == [0, 10, 11, 12, 13]  # 10 and 28 and 6 and 5, and 11 of the next answer
    assert list(fitted.changed) == [1]
    assert fitted.report.tokens_after == 60
    fitted = fit(messages, 12, counter=counter, format=form, strategy=TruncateText())
    assert fitted.positions == [12, 13]


class Letters(WordCounter):
    """One token a character."""

    def count_text(self, text: str, /) -> int:
        """Count characters."""
        return len(text)


@ordered
def test_of_an_opener_the_marker_alone_may_stay(form: str) -> None:
    """Where not a character of it has room beside the newest answer and what stays."""
    texts = (("user", "q" * 60), ("assistant", "a" * 40), ("assistant", "b" * 40), ("user", "c"))
    messages = [get_format(form).message(role, [text]) for role, text in (*texts, ("assistant", "d"))]
    marker = get_format(form).message("user", ["[text cut by trimtab]"])
    budget = len("[text cut by trimtab]") + 40 + 1 + 1
    fitted = fit(messages, budget, counter=Letters(format=form), format=form, strategy=TruncateText())
    assert fitted.messages == [marker, *messages[2:]]


def task(form: str) -> list[Message]:
    """A question, an answer, a call with its result, an answer; then what stays."""
    return [
        said(form, "user", 20),
        said(form, "assistant", 21),
        *looked_up(form, 1, 18),
        said(form, "assistant", 11),
        said(form, "user", 4),
    ]


@ordered
def test_protected_results_stay_with_the_question_in_front(form: str) -> None:
    """Their question stays, and what else fits; without room for it the error says what is needed."""
    messages, counter = task(form), WordCounter(format=form)
    tool = counter.count(messages[2:4])
    whole = counter.count(messages)
    strategy = SlidingWindow(protect_roles=["tool"])
    fitted = fit(messages, whole - 21, counter=counter, format=form, strategy=strategy)
    assert fitted.messages == [messages[0], *messages[2:]]
    least = 20 + tool + 4
    fitted = fit(messages, least, counter=counter, format=form, strategy=strategy)
    assert fitted.messages == [messages[0], *messages[2:4], messages[5]]
    with pytest.raises(BudgetExceededError) as raised:
        fit(messages, least - 1, counter=counter, format=form, strategy=strategy)
    assert (raised.value.needed_tokens, raised.value.limit_tokens) == (least, least - 1)
    both = Cascade(strategy, TruncateText())
    assert (
        counter.count(fit(messages, least - 1, counter=counter, format=form, strategy=both).messages) < least
    )


@ordered
def test_the_newest_by_score_come_with_their_question(form: str) -> None:
    """Newest first is what a window keeps: the question, and as many answers as fit beside it."""
    messages, counter = run_of(form), WordCounter(format=form)
    newest = PriorityBased(score=lambda message, place: place.recency)
    fitted = fit(messages, 126, counter=counter, format=form, strategy=newest)
    assert fitted.messages == [messages[0], *messages[8:]]  # 30 + 3 * 28 + 11 = 125
    fitted = fit(messages, 68, counter=counter, format=form, strategy=newest)
    assert fitted.messages == [messages[0], *messages[11:]]  # 11 + 28 fits, and not with the question


class Newest:
    """A user's own: the newest units as long as the request says that they fit."""

    name = "newest"

    def __init__(self) -> None:
        self.openers: list[Any] = []

    def evict(self, request: EvictionRequest, /) -> EvictionResult:
        """Ask for each unit what it needs, too."""
        self.openers = [request.opener(unit) for unit in request.units]
        kept = [unit for unit in request.units if request.stays(unit)]
        for unit in reversed(request.units):
            tried = [one for one in request.units if one in kept or one is unit]
            kept = tried if request.fits(tried) else kept
        return EvictionResult(kept=kept, fits=request.fits(kept))


@every_form
def test_a_strategy_of_ones_own_is_told_what_a_unit_needs(form: str) -> None:
    """What it keeps by `fits` comes out with its opener, which the runner puts to it."""
    messages, counter = run_of(form), WordCounter(format=form)
    strategy = Newest()
    fitted = fit(messages, 126, counter=counter, format=form, strategy=strategy)
    assert validate(fitted.messages, format=form) == []
    assert counter.count(fitted.messages) == (123 if form.startswith("openai") else 125)
    question = None if form.startswith("openai") else group(messages, format=form)[0].indices
    found = [one and one.indices for one in strategy.openers]
    assert found == [None, *[question] * 10, None, (11,) if question else None]


class Blind:
    """A user's own that adds up sizes and asks nothing."""

    name = "blind"

    def evict(self, request: EvictionRequest, /) -> EvictionResult:
        """Keep what stays and the newest other unit."""
        free = [unit for unit in request.units if not request.stays(unit)]
        kept = [unit for unit in request.units if request.stays(unit) or unit is free[-1]]
        return EvictionResult(kept=kept)


@ordered
def test_what_a_blind_strategy_keeps_gets_its_opener_or_leaves(form: str) -> None:
    """If there is room it stays, else what cannot lead leaves; neither is the strategy's error."""
    messages, counter = run_of(form), WordCounter(format=form)
    fitted = fit(messages, 69, counter=counter, format=form, strategy=Blind())
    assert fitted.messages == [messages[0], *messages[10:]]
    fitted = fit(messages, 68, counter=counter, format=form, strategy=Blind())
    assert fitted.messages == messages[11:]
    assert fitted.report.messages[10].reason == "cannot_lead"


STEPS = "u20 a9 u30 cA rA3 cB rB3 a5 u4 a2"
"""A turn whose question is long: what answers it may fit where it does not."""


@pytest.mark.parametrize("form", ["openai_chat", "anthropic", "gemini"])
@pytest.mark.parametrize(
    "strategy", [None, SlidingWindow(), Cascade(ClampResults(max_tokens=90), SlidingWindow())], ids=repr
)
def test_what_has_room_and_no_opener_leaves_for_that(strategy: Any, form: str) -> None:
    """The reason says so, and of what has no room by itself it says that."""
    messages = said_in(form, talk(STEPS)) if form != "openai_chat" else talk(STEPS)
    counter = WordCounter(format=form)
    least = counter.count(messages[-2:])
    for budget in range(least, least + 25):
        fitted = fit(messages, budget, counter=counter, format=form, strategy=strategy)
        free = budget - fitted.report.tokens_after
        first = min(fitted.positions, key=lambda at: len(messages) if at is None else at)
        found = {row.index for row in fitted.report.messages if row.reason == "cannot_lead"}
        sizes = list(map(counter.count_message, messages))
        assert first is not None
        alone = [at for at in (3, 5, 7) if at < first and sum(sizes[at:first]) <= free]
        assert found == set(range(min(alone, default=first), first)), budget
        assert {row.reason for row in fitted.report.messages} <= {None, "over_limit", "cannot_lead"}


def test_what_a_stride_lets_go_had_no_room() -> None:
    """So it was chosen: its opener would have had room, too."""
    messages = [one for number in range(99) for one in talk(f"u{number % 3 + 9} a25")]
    fitted = fit(messages, 600, counter=WordCounter(), strategy=SlidingWindow(target_ratio=0.5))
    assert fitted.report.tokens_after < 560
    assert {row.reason for row in fitted.report.messages} == {None, "over_limit"}
    first = fit(talk("u30 a9 u2 a2"), 36, counter=WordCounter(), strategy=SlidingWindow(keep_first_user=True))
    assert "cannot_lead" not in {row.reason for row in first.report.messages}


def test_a_block_says_it_too() -> None:
    """And a strategy of a user's may say it; what stays all the same is not told."""

    class Own:
        name = "own"

        def evict(self, request: EvictionRequest, /) -> EvictionResult:
            """Keep what must stay, and say of all why."""
            kept = [unit for unit in request.units if request.stays(unit)]
            return EvictionResult(kept=kept, cannot_lead=frozenset(range(request.history.count)))

    context = Context(13, counter=WordCounter()).add("history", talk(STEPS))
    rows = context.fit().report.messages
    assert [row.reason for row in rows][6:] == ["over_limit", "cannot_lead", None, None]
    fitted = fit(talk(STEPS), 13, counter=WordCounter(), strategy=Own())
    assert [row.reason for row in fitted.report.messages] == ["cannot_lead"] * 8 + [None] * 2


@ordered
def test_a_block_behind_one_that_leads_needs_no_opener(form: str) -> None:
    """The task stands in a block of its own: a run of calls alone is cut behind it (nothing of it stayed)."""
    counter = WordCounter(format=form)
    calls = [message for number in range(5) for message in looked_up(form, number, 20)]
    each = counter.count(calls[:2])
    context = Context(10 + 3 * each, counter=counter, format=form)
    context.add("task", [said(form, "user", 10)], priority=9, pinned=True)
    context.add("history", calls, priority=1)
    fitted = context.fit()
    assert fitted.messages[1:] == calls[-6:]
    assert validate(fitted.messages, format=form) == []
    decided = Context(10 + 3 * each, counter=counter, format=form)
    decided.add("task", [said(form, "user", 10)], priority=9)
    decided.add("history", calls, priority=1)
    assert decided.fit().messages == fitted.messages


@ordered
def test_a_session_keeps_the_question_of_the_turn_it_cuts(form: str) -> None:
    """A long turn is in view as far as it fits, behind its question (all of it was out of view)."""
    counter = WordCounter(format=form)
    session = Session(150, counter=counter, format=form)
    messages = [
        said(form, "user", 10),
        *(said(form, "assistant", 9) for _ in range(30)),
        said(form, "user", 5),
        *(said(form, "assistant", 9) for _ in range(3)),
    ]
    session.extend(messages)
    shown = session.messages()
    assert shown[0] == messages[0]
    assert shown[1:] == messages[-len(shown) + 1 :]
    assert 150 - 9 < counter.count(shown) <= 150
    session.extend([said(form, "assistant", 9) for _ in range(13)])  # and 5: 149 of the second turn
    assert messages[0] not in session.messages()
    assert validate(session.messages(), format=form) == []


@ordered
@pytest.mark.parametrize(
    "strategy",
    [SlidingWindow(), PriorityBased(), PriorityBased(score=lambda message, place: place.recency)],
)
def test_what_must_stay_does_so_without_an_opener(form: str, strategy: Any) -> None:
    """The list begins with the model, which is the caller's fault: the last message is sent all the same."""
    messages = [said(form, "assistant", 3), said(form, "assistant", 2)]
    fitted = fit(messages, 4, counter=WordCounter(format=form), format=form, strategy=strategy)
    assert fitted.messages == messages[1:]


class Short:
    """A user's own that writes one message in place of the first answer."""

    name = "short"

    def __init__(self, message: Message) -> None:
        self.message = message

    def evict(self, request: EvictionRequest, /) -> EvictionResult:
        """Keep the question out, too: the message says what it was."""
        note = Insertion(at=1, message=self.message, why="what was said", covers=frozenset({1}))
        return EvictionResult(kept=list(request.units[2:]), insertions=(note,))


@ordered
def test_what_is_put_in_front_stands_for_an_opener(form: str) -> None:
    """The written message may come first, so that the question stays out although there is room."""
    note = said(form, "user", 1)
    messages = [said(form, "user", 5), *(said(form, "assistant", count) for count in (4, 3, 2))]
    messages.append(said(form, "user", 1))
    fitted = fit(messages, 14, counter=WordCounter(format=form), format=form, strategy=Short(note))
    assert fitted.messages == [note, *messages[2:]]


def test_a_question_opens_and_no_result_of_an_unknown_call_behind_it() -> None:
    """Gemini takes such a result as the first; the turn is the question's all the same."""
    form = "gemini"
    orphan = {"role": "user", "parts": [{"functionResponse": {"id": "z", "name": "f", "response": {}}}]}
    messages = [said(form, "user", 4), orphan, said(form, "assistant", 3), said(form, "assistant", 2)]
    messages.append(said(form, "user", 1))
    strategy = Newest()
    fit(messages, 9, counter=WordCounter(format=form), format=form, strategy=strategy)
    found = [one and one.indices for one in strategy.openers]
    assert found == [None, None, (0,), (0,), None]


def test_a_stride_may_end_at_a_call_behind_the_pinned_text_it_stood_behind() -> None:
    """Gemini refuses a call behind a model's text where that is new; here it was so before.

    The stride is 35.7; what stands before the call weighs 42.6, and before the pinned text 35.4.
    """
    form = "gemini"
    sizes = [("user", 8), ("user", 8), ("assistant", 9), ("assistant", 11), ("assistant", 6)]
    messages = [get_format(form).message(role, [" ".join(["w"] * count)]) for role, count in sizes]
    messages += [*looked_up(form, 1, 2), said(form, "assistant", 18)]
    counter, strategy = WordCounter(format=form), SlidingWindow(target_ratio=0.3)
    fitted = fit(messages, 51, counter=counter, format=form, strategy=strategy, pin=[4])
    assert fitted.messages == [messages[1], *messages[4:]]


def test_what_is_pinned_keeps_a_result_that_opens_its_turn_where_no_question_does() -> None:
    """It is the result of an unknown call; without it the request would begin with the model."""
    form = "anthropic"
    orphan = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "z", "content": "word"}]}
    messages = [orphan, said(form, "assistant", 2), said(form, "user", 40), said(form, "user", 1)]
    fitted = fit(messages, 10, counter=WordCounter(format=form), format=form, pin=[1])
    assert fitted.messages == [*messages[:2], messages[3]]
