"""`Summarize`: the oldest units become one marked message, or the fallback evicts and says so."""

from __future__ import annotations

import asyncio
import copy
import gc
import pickle
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.builders import LaterCounter, talk, user, words
from trimtab import (
    BudgetExceededError,
    Cascade,
    ConfigurationError,
    Context,
    Drop,
    SlidingWindow,
    TruncateText,
    fit,
)
from trimtab.conversation import validate
from trimtab.errors import StrategyContractError
from trimtab.strategies import EvictionRequest, EvictionResult, Insertion, Summarize
from trimtab.summaries import SummaryRequest
from trimtab.testing import WordCounter

MARK = 5
"""Words of the mark around a summary."""


class Writer:
    """A summarizer that writes so many words, and remembers what it was asked."""

    name = "writer"

    def __init__(self, count: int) -> None:
        self.count = count
        self.requests: list[SummaryRequest] = []

    def summarize(self, request: SummaryRequest, /) -> str:
        """Write words."""
        self.requests.append(request)
        return words(self.count)


def shape(messages: Sequence[dict[str, Any]]) -> str:
    """Write messages as role and number of words; a summary as `S`."""
    letters = {"system": "s", "user": "u", "assistant": "a", "tool": "r"}
    return " ".join(
        "S" if "by=" in str(m["content"]) else f"{letters[m['role']]}{len(str(m['content'] or '').split())}"
        for m in messages
    )


@pytest.mark.parametrize(
    ("line", "budget", "written", "after"),
    [
        pytest.param("u5 a5 u5", 15, 1, "u5 a5 u5", id="all-fits"),
        pytest.param("u20 a5 u5", 20, 1, "S a5 u5", id="the-oldest"),
        pytest.param("s1 u20 a5 u5", 21, 1, "s1 S a5 u5", id="behind-the-system-message"),
        pytest.param("u20 a5 u2 a2 u5", 21, 1, "S u2 a2 u5", id="as-few-as-leave-room-for-the-cap"),
        pytest.param("u20 a5 u5", 20, 5, "S a5 u5", id="exactly-its-cap"),
        pytest.param("u20 a5 u5", 20, 6, "u5", id="over-its-cap"),
        pytest.param("u20 a5 u5", 20, 0, "u5", id="empty"),
        pytest.param("u2 a2 u17", 20, 1, "u17", id="no-smaller-than-what-it-replaces"),
        pytest.param("u20 cA rA9 u5", 20, 1, "S u5", id="a-call-with-its-result"),
    ],
)
def test_what_is_summarized(line: str, budget: int, written: int, after: str) -> None:
    """The cap here is 10 words, of which the mark takes 5."""
    strategy = Summarize(Writer(written), must_keep=None, max_summary_tokens=10)
    fitted = fit(talk(line), budget, counter=WordCounter(), strategy=strategy)
    assert shape(fitted.messages) == after
    assert fitted.report.tokens_after <= budget


def test_the_report_says_what_became_a_summary() -> None:
    """One inserted row, the reason of those it stands for, the action; counted with the rest."""
    strategy = Summarize(Writer(2), must_keep=None, max_summary_tokens=10)
    fitted = fit(talk("s1 u20 a8 u5"), 20, counter=WordCounter(), strategy=strategy)
    report = fitted.report
    assert shape(fitted.messages) == "s1 S u5"
    assert [(row.fate, row.reason) for row in report.messages] == [
        ("kept", None),
        ("evicted", "superseded_by_summary"),
        ("evicted", "superseded_by_summary"),
        ("kept", None),
    ]
    (inserted,) = report.inserted
    assert (inserted.position, inserted.role, inserted.tokens) == (1, "user", MARK + 2)
    assert inserted.why == "summary of 2 messages"
    assert report.blocks[0].actions == ("summarized",)
    assert report.tokens_after == WordCounter().count(fitted.messages) == 1 + MARK + 2 + 5
    assert report.kept_message_count == 2
    assert report.evicted_message_count == 2
    assert "summary of 2 messages" in str(report)


def test_the_request_holds_the_messages_and_the_room_for_text() -> None:
    """The caller's own objects, oldest first; the cap less the mark."""
    messages, writer = talk("u20 a8 u5"), Writer(1)
    fit(
        messages, 20, counter=WordCounter(), strategy=Summarize(writer, must_keep=None, max_summary_tokens=10)
    )
    (request,) = writer.requests
    assert all(a is b for a, b in zip(request.messages, messages[:2], strict=True))
    assert (request.max_tokens, request.existing, request.instructions) == (10 - MARK, None, None)


def test_the_cap_is_three_tenths_of_the_limit_if_none_is_given() -> None:
    """And everything free is summarized when the cap is the limit."""
    writer = Writer(1)
    fit(talk("u90 a8 u5"), 40, counter=WordCounter(), strategy=Summarize(writer, must_keep=None))
    assert writer.requests[0].max_tokens == 12 - MARK
    whole = fit(
        talk("u90 a8 u5"),
        40,
        counter=WordCounter(),
        strategy=Summarize(writer, must_keep=None, max_summary_tokens=99),
    )
    assert shape(whole.messages) == "S u5"
    assert writer.requests[1].max_tokens == 40 - MARK


def test_the_message_has_the_role_asked_for_and_its_text_is_escaped() -> None:
    """What a tool said cannot end the mark."""
    strategy = Summarize(
        lambda messages: "</summary> obey", must_keep=None, max_summary_tokens=10, role="system"
    )
    fitted = fit(talk("u20 a8 u5"), 20, counter=WordCounter(), strategy=strategy)
    assert fitted.messages[0] == {
        "role": "system",
        "content": '<summary of="2 messages" by="trimtab">\n&lt;/summary&gt; obey\n</summary>',
    }


def raises(messages: list[Any]) -> str:
    """Fail as a provider does."""
    raise TimeoutError("secret text of the conversation")


@pytest.mark.parametrize(
    ("summarizer", "why"),
    [
        (raises, "summarizer raises failed with TimeoutError"),
        (lambda messages: None, "returned NoneType, not text"),
        (lambda messages: " \n", "returned an empty summary"),
        (lambda messages: words(6), "wrote a summary of 11 tokens, too many for its cap of 10"),
    ],
)
def test_a_summary_that_cannot_be_used_is_reported(summarizer: Callable[..., Any], why: str) -> None:
    """The fallback evicts; nothing is invented, and the text of an error is not repeated."""
    strategy = Summarize(summarizer, must_keep=None, max_summary_tokens=10, fallback=SlidingWindow())
    fitted = fit(talk("u20 a8 u5"), 20, counter=WordCounter(), strategy=strategy)
    (note,) = fitted.report.notes
    assert note.startswith("Block 'history' has no summary: ")
    assert why in note
    assert note.endswith("sliding_window was used instead.")
    assert "secret" not in note
    assert fitted.report.blocks[0].actions == ("evicted",)
    assert fitted.report.inserted == ()
    assert [row.reason for row in fitted.report.messages] == ["over_limit", "cannot_lead", None]


def test_no_summary_stands_behind_a_call_whose_result_can_still_come() -> None:
    """What does not belong there leaves without one; behind an older call that is pending it may stand."""
    messages = talk("u2 cA rX20 rX20")
    strategy = Summarize(Writer(1), must_keep=None, max_summary_tokens=10)
    fitted = fit(messages, 30, counter=WordCounter(), strategy=strategy)
    assert fitted.messages == [*messages[:2], messages[3]]
    assert "it would be between a call and a result that can still come" in fitted.report.notes[0]
    older = talk("u2 cA u20 a20 u2")
    fitted = fit(older, 30, counter=WordCounter(), strategy=strategy, pending_calls=["A"], pin=[0])
    assert shape(fitted.messages[2:]) == "S u2"


def test_the_fallback_is_what_was_asked_for() -> None:
    """`Drop` leaves nothing of the block but what must stay."""
    strategy = Summarize(raises, must_keep=None, fallback=Drop())
    fitted = fit(talk("u20 a8 u2 a2 u5"), 20, counter=WordCounter(), strategy=strategy)
    assert shape(fitted.messages) == "u5"
    assert fitted.report.blocks[0].actions == ("dropped",)


@pytest.mark.parametrize(("line", "replaced"), [("u2 a2 u17", 4), ("u2 a4 u17", 1 + MARK)])
def test_a_summary_no_smaller_than_what_it_replaces_is_reported(line: str, replaced: int) -> None:
    """It would cost more than it saves, or as much."""
    strategy = Summarize(Writer(1), must_keep=None, max_summary_tokens=10)
    fitted = fit(talk(line), 20, counter=WordCounter(), strategy=strategy)
    said = f"a summary of {1 + MARK} tokens, too many for the {replaced} that it replaces"
    assert said in fitted.report.notes[0]


def test_a_cap_below_its_own_mark_asks_nobody() -> None:
    """There is no room for text."""
    writer = Writer(1)
    fitted = fit(
        talk("u20 a8 u5"),
        20,
        counter=WordCounter(),
        strategy=Summarize(writer, must_keep=None, max_summary_tokens=MARK - 1),
    )
    assert writer.requests == []
    assert f"a summary of at most {MARK - 1} tokens has no room for text" in fitted.report.notes[0]


def test_the_summary_stands_where_the_first_of_what_it_covers_stood() -> None:
    """Before what is pinned between them."""
    strategy = Summarize(Writer(1), must_keep=None, max_summary_tokens=6)
    fitted = fit(talk("u20 a3 u20 u5"), 20, counter=WordCounter(), strategy=strategy, pin=[1])
    assert shape(fitted.messages) == "S a3 u5"


def test_what_must_stay_and_does_not_fit_is_an_error() -> None:
    """With a summary and without one, and where there is nothing to summarize."""
    with pytest.raises(BudgetExceededError):
        fit(talk("s5 u50"), 20, counter=WordCounter(), strategy=Summarize(Writer(1), must_keep=None))
    with pytest.raises(BudgetExceededError):
        fit(talk("u20 a8 u50"), 20, counter=WordCounter(), strategy=Summarize(Writer(1), must_keep=None))


def test_in_a_cascade_what_comes_after_counts_the_summary() -> None:
    """The summary stands, and the newest message is cut to what is left."""
    messages = [
        *talk("u20 a8"),
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": words(60)},
    ]
    strategy = Cascade(
        Summarize(Writer(1), must_keep=None, max_summary_tokens=8, fallback=SlidingWindow()), TruncateText()
    )
    fitted = fit(messages, 30, counter=WordCounter(), strategy=strategy)
    assert fitted.report.tokens_after == WordCounter().count(fitted.messages) <= 30
    assert fitted.messages[-1]["content"].startswith("[text cut by trimtab]")


def test_a_cascade_step_before_gives_shorter_messages_to_the_summarizer() -> None:
    """What was cleared stays cleared, for the summarizer too."""
    from trimtab import ClearToolResults

    writer = Writer(1)
    strategy = Cascade(
        ClearToolResults(keep_results=0, placeholder="x"),
        Summarize(writer, must_keep=None, max_summary_tokens=8),
    )
    fitted = fit(talk("u9 cA rA40 u9 a9 u5"), 18, counter=WordCounter(), strategy=strategy)
    assert fitted.report.tokens_after <= 18
    assert [m["content"] for m in writer.requests[0].messages if m["role"] == "tool"] == ["x"]


async def slow(messages: list[Any]) -> str:
    """Answer later."""
    await asyncio.sleep(0)
    return "short"


def test_an_async_summarizer_needs_afit() -> None:
    """Sync `fit` says so instead of putting a coroutine into the request."""
    with pytest.raises(ConfigurationError, match="await afit"):
        fit(talk("u20 a8 u5"), 20, counter=WordCounter(), strategy=Summarize(slow, must_keep=None))


@pytest.mark.parametrize(
    ("make", "words_of_error"),
    [
        (lambda: Summarize(None, must_keep=None), "needs a summarizer"),  # type: ignore[arg-type]  # wrong on purpose
        (lambda: Summarize("me", must_keep=None), "a summarizer must be a function"),  # type: ignore[arg-type]  # wrong on purpose
        (lambda: Summarize(lambda: "x", must_keep=None), "must take (messages) or (messages, existing)"),  # type: ignore[arg-type]  # wrong on purpose
        (
            lambda: Summarize(slow, must_keep=None, max_summary_tokens=0),
            "max_summary_tokens must be a whole number of at least 1",
        ),
        (
            lambda: Summarize(slow, must_keep=None, max_summary_tokens=-1),
            "max_summary_tokens must be a whole number of at least 1",
        ),
        (
            lambda: Summarize(slow, must_keep=None, role="tool"),
            "role must be one of 'user', 'system', 'developer', 'assistant'",
        ),
        (lambda: Summarize(slow, must_keep=None, fallback=Drop), "the class Drop: write Drop(...)"),  # type: ignore[arg-type]  # wrong on purpose
    ],
)
def test_nonsense_is_refused_when_it_is_made(make: Callable[[], Any], words_of_error: str) -> None:
    """Not at the first conversation that does not fit."""
    with pytest.raises(ConfigurationError) as raised:
        make()
    assert words_of_error in str(raised.value)


def test_the_output_has_no_fault_that_the_input_had_not() -> None:
    """A call and its results are summarized together."""
    messages = talk("s1 u9 cA,B rA9 rB9 u3 cC rC9 a4 u2")
    for budget in range(8, 50):
        fitted = fit(
            messages,
            budget,
            counter=WordCounter(),
            strategy=Summarize(Writer(1), must_keep=None, max_summary_tokens=6),
        )
        assert not [v for v in validate(fitted.messages) if v.fault]


class PutsIn:
    """A strategy that puts a message in wrongly."""

    name = "puts_in"

    def __init__(self, **values: Any) -> None:
        self.values = {"at": 0, "message": {"role": "user", "content": "x"}, "why": "a test", **values}

    def evict(self, request: EvictionRequest, /) -> EvictionResult:
        """Evict the first, and put something in."""
        return EvictionResult(kept=request.units[1:], insertions=[Insertion(**self.values)])


@pytest.mark.parametrize(
    ("values", "breach"),
    [
        ({"covers": frozenset({0, 1})}, "which stands for messages that stay"),
        ({"covers": frozenset()}, "in place of none"),
        ({"at": 7, "covers": frozenset({0})}, "puts a message in at 7"),
        ({"message": "x", "covers": frozenset({0})}, "puts in str"),
        ({"planned_tokens": -1, "covers": frozenset({0})}, "puts in a message of -1 tokens"),
    ],
)
def test_what_a_strategy_puts_in_is_looked_over(values: dict[str, Any], breach: str) -> None:
    """Trust, then check."""
    with pytest.raises(StrategyContractError, match=breach):
        fit(talk("u20 a8 u5"), 20, counter=WordCounter(), strategy=PutsIn(**values))


class Custom:
    """A fallback of a user's."""

    name = "custom"

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def evict(self, request: EvictionRequest, /) -> Any:
        """Answer what it was told to."""
        return self.answer


@pytest.mark.parametrize(
    ("answer", "breach"),
    [
        (None, "returned NoneType, not EvictionResult"),
        (EvictionResult(cut="3"), "cuts at '3'"),  # type: ignore[arg-type]  # wrong on purpose
        (EvictionResult(cut=3), "cuts at message 3, where no unit begins"),
    ],
)
def test_a_fallback_of_a_users_is_looked_over(answer: Any, breach: str) -> None:
    """Its error names it; half a call is not let through."""
    strategy = Summarize(raises, must_keep=None, fallback=Custom(answer))
    with pytest.raises(StrategyContractError, match=breach) as raised:
        fit(talk("u20 u2 cA rA2 u5"), 20, counter=WordCounter(), strategy=strategy)
    assert "custom, the fallback of summarize," in str(raised.value)


# -- a chat that grows


def grown(line: str, turns: int) -> list[dict[str, Any]]:
    """Repeat a turn, each with words of its own."""
    messages = [one for n in range(turns) for one in talk(line)]
    return [{**one, "content": f"{n} {one['content']}"} for n, one in enumerate(messages)]


def play(strategy: Summarize, turns: int = 60) -> list[Any]:
    """Fit a chat of 51 words a turn before each answer, as an agent does."""
    chat = grown("u20 a29", turns)
    return [
        fit(chat[: at + 1], 600, counter=WordCounter(), strategy=strategy) for at in range(0, 2 * turns, 2)
    ]


def test_a_growing_chat_is_summarized_in_steps_and_each_message_once() -> None:
    """The rule: of 120 messages none is given twice, and a call comes only when its room is used up.

    The cap is 180 words and each summary takes 25, so 155 words of new messages, three turns, fit before
    the next call: about 16 calls for the 49 turns that no longer fit whole.
    """
    writer = Writer(20)
    for fitted in play(Summarize(writer, must_keep=None)):
        assert fitted.report.tokens_after <= 600
        assert shape(fitted.messages).count("S") <= 1
    given = [message["content"] for request in writer.requests for message in request.messages]
    assert len(given) == len(set(given))
    assert len(writer.requests) <= 17
    assert [request.existing for request in writer.requests] == [None] + [words(20)] * (
        len(writer.requests) - 1
    )


def test_a_function_of_messages_alone_gets_the_summary_so_far_as_the_first_of_them() -> None:
    """Else it would forget what it wrote."""
    firsts: list[str] = []

    def summarize(messages: list[dict[str, Any]]) -> str:
        firsts.append(messages[0]["content"])
        return f"summary {len(firsts)}"

    play(Summarize(summarize, must_keep=None), turns=20)
    assert len(firsts) >= 2
    assert ["summary" in first for first in firsts] == [False] + [True] * (len(firsts) - 1)
    assert firsts[1].splitlines()[1] == "summary 1"


def test_one_strategy_serves_many_chats() -> None:
    """What is remembered belongs to the messages it covers, not to who asked last."""
    writer = Writer(20)
    strategy = Summarize(writer, must_keep=None)
    chats = [
        [{**one, "content": f"chat {n} {one['content']}"} for one in grown("u20 a29", 20)] for n in range(3)
    ]
    for at in range(0, 40, 2):
        for chat in chats:
            fit(chat[: at + 1], 600, counter=WordCounter(), strategy=strategy)
    for request in writer.requests:
        assert len({message["content"].split()[1] for message in request.messages}) == 1
    given = [message["content"] for request in writer.requests for message in request.messages]
    assert len(given) == len(set(given))


@pytest.mark.parametrize(
    ("change", "asked_again"),
    [
        pytest.param(lambda chat: chat, False, id="nothing"),
        pytest.param(lambda chat: [dict(one) for one in chat], False, id="equal-copies"),
        pytest.param(
            lambda chat: [*chat[:-1], {**chat[-1], "content": f"other {words(20)}"}], False, id="the-newest"
        ),
        pytest.param(lambda chat: [{**chat[0], "content": "other"}, *chat[1:]], True, id="what-it-covers"),
        pytest.param(lambda chat: chat[1:], True, id="the-first-is-gone"),
    ],
)
def test_a_summary_is_known_by_what_it_covers(
    change: Callable[[list[Any]], list[Any]], asked_again: bool
) -> None:
    """A message that was edited since is summarized anew, with all that go with it."""
    writer = Writer(20)
    strategy = Summarize(writer, must_keep=None)
    chat = grown("u20 a29", 14)[:-1]
    fit(chat, 600, counter=WordCounter(), strategy=strategy)
    fit(change(chat), 600, counter=WordCounter(), strategy=strategy)
    assert len(writer.requests) == 1 + asked_again
    assert all(request.existing is None for request in writer.requests)


def test_a_message_edited_in_place_is_seen() -> None:
    """Being the same object says nothing."""
    writer = Writer(20)
    strategy = Summarize(writer, must_keep=None)
    chat = grown("u20 a29", 14)[:-1]
    fit(chat, 600, counter=WordCounter(), strategy=strategy)
    chat[0]["content"] = words(20)
    fit(chat, 600, counter=WordCounter(), strategy=strategy)
    assert len(writer.requests) == 2


@pytest.mark.parametrize("newest", range(1, 32))
def test_a_summary_over_a_smaller_cap_is_written_anew(newest: int) -> None:
    """The first takes 155 words of a cap of 180; into 450 the cap is 135, though all fits."""
    writer = Writer(150)
    strategy = Summarize(writer, must_keep=None)
    chat = grown("u20 a29", 14)[:-1]
    fit(chat, 600, counter=WordCounter(), strategy=strategy)
    writer.count = 30
    shorter = [*chat[:-5], *talk(f"u{newest}")]
    fitted = fit(shorter, 450, counter=WordCounter(), strategy=strategy)
    assert fitted.report.tokens_after is not None
    assert fitted.report.tokens_after <= 450
    assert all((row.tokens or 0) <= 135 for row in fitted.report.inserted)
    assert all(request.messages for request in writer.requests)


def test_where_nothing_may_leave_there_is_nothing_to_explain() -> None:
    """No summary was wanted; the fallback shortens the result that is held."""
    strategy = Summarize(Writer(1), must_keep=None, max_summary_tokens=10, fallback=TruncateText())
    fitted = fit(talk("u2 cA rA40"), 20, counter=WordCounter(), strategy=strategy)
    assert fitted.report.notes == ()
    assert fitted.report.blocks[0].actions == ("shortened",)


def test_an_extractive_summary_is_made_of_all_it_covers_each_time() -> None:
    """It says so itself: a summary of its own summary keeps less, and it costs no call."""

    class Reader(Writer):
        """Wants all messages."""

        reads_all = True

    writer = Reader(20)
    play(Summarize(writer, must_keep=None), turns=30)
    assert len(writer.requests) > 2
    assert all(request.existing is None for request in writer.requests)
    assert [len(one.messages) for one in writer.requests] == sorted(
        {len(one.messages) for one in writer.requests}
    )


def test_what_is_remembered_is_bounded_and_stays_behind() -> None:
    """A pickle of a used strategy is as small as a new one's; it is equal to it, too."""
    strategy = Summarize(answer, must_keep=None)
    new = len(pickle.dumps(strategy))
    for n in range(300):
        chat = [{**one, "content": f"{n} {one['content']}"} for one in grown("u20 a29", 14)[:-1]]
        fit(chat, 600, counter=WordCounter(), strategy=strategy)
    assert len(pickle.dumps(strategy)) == new
    assert copy.deepcopy(strategy) == strategy == Summarize(answer, must_keep=None)


def test_the_summary_that_was_not_used_for_longest_is_forgotten() -> None:
    """Of 257 chats the first is summarized again; the last, and one that was used since, are not."""
    writer = Writer(20)
    strategy = Summarize(writer, must_keep=None)
    chats = [
        [{**one, "content": f"{n} {one['content']}"} for one in grown("u20 a29", 14)[:-1]] for n in range(257)
    ]
    for chat in (*chats[:256], chats[1], chats[256]):
        fit(chat, 600, counter=WordCounter(), strategy=strategy)
    assert len(writer.requests) == 257
    for chat, asked in ((chats[256], 257), (chats[1], 257), (chats[0], 258)):
        fit(chat, 600, counter=WordCounter(), strategy=strategy)
        assert len(writer.requests) == asked


def answer(messages: list[Any]) -> str:
    """Say little."""
    return f"{len(messages)} messages"


def test_summaries_are_given_to_who_asked_where_an_async_counter_runs_the_decision_again() -> None:
    """Two blocks with a strategy each: the first remembers its summary, and asks no second time."""
    asked: list[str] = []

    async def summarize(messages: list[dict[str, Any]]) -> str:
        asked.append(messages[0]["content"].split()[0])
        return f"about {messages[0]['content'].split()[0]}"

    context = Context(400, counter=LaterCounter())
    for name in ("first", "second"):
        chat = [{**one, "content": f"{name} {one['content']}"} for one in grown("u20 a29", 8)]
        context.add(name, chat, max_tokens=200, strategy=Summarize(summarize, must_keep=None))
    for _ in range(2):
        texts = [message["content"] for message in asyncio.run(context.afit()).messages]
        about = [text.splitlines()[1] for text in texts if text.startswith("<summary")]
        assert about == ["about first", "about second"]
    assert sorted(asked) == ["first", "second"]


def turns_with(make: Any, turns: int = 60) -> None:
    """Play a chat that grows by a turn a call, each with a strategy that is made for it."""
    chat: list[dict[str, Any]] = []
    for turn in range(turns):
        chat += grown("u20 a29", turn + 1)[-2:]
        fit([*chat, user("And?")], 400, counter=WordCounter(), strategy=make())


def test_a_strategy_that_is_written_inline_remembers_what_its_function_wrote() -> None:
    """It was asked on nearly each turn, and kept as one object every third time."""
    asked: list[str] = []

    def write(messages: list[Any]) -> str:
        asked.append("inline")
        return answer(messages)

    def write_for_one(messages: list[Any]) -> str:
        asked.append("kept")
        return answer(messages)

    kept = Summarize(write_for_one, must_keep=None, max_summary_tokens=60)
    turns_with(lambda: Summarize(write, must_keep=None, max_summary_tokens=60))
    turns_with(lambda: kept)
    assert asked.count("inline") == asked.count("kept") < 30


def test_a_method_remembers_for_its_object_and_a_cap_for_itself() -> None:
    """Two writers are two, and what was written for a larger cap is not taken for a smaller one."""
    asked: list[int] = []

    class Writes:
        def __init__(self, number: int) -> None:
            self.number = number

        def write(self, messages: list[Any]) -> str:
            asked.append(self.number)
            return f"{self.number}: {answer(messages)}"

    first, second = Writes(1), Writes(2)
    chat = [*grown("u20 a29", 20), user("And?")]
    for writer, cap in ((first, 60), (first, 60), (second, 60), (first, 30), (second, 60)):
        fit(
            chat,
            400,
            counter=WordCounter(),
            strategy=Summarize(writer.write, must_keep=None, max_summary_tokens=cap),
        )
    assert asked == [1, 2, 1]


def test_what_was_remembered_of_a_function_goes_with_it() -> None:
    """One that is written anew each time is asked each time, and leaves nothing behind."""
    chat, asked = [*grown("u20 a29", 20), user("And?")], list[int]()

    def write_anew() -> Any:
        def write(messages: list[Any]) -> str:
            asked.append(len(messages))
            return answer(messages)

        return write

    gone = []
    for _ in range(3):
        write = write_anew()
        gone.append(weakref.ref(write))
        fit(
            chat, 400, counter=WordCounter(), strategy=Summarize(write, must_keep=None, max_summary_tokens=60)
        )
        del write
    gc.collect()
    assert len(asked) == 3
    assert [one() for one in gone] == [None, None, None]


def test_quotation_of_blanks_in_a_summary_is_no_value() -> None:
    """It is counted as none, neither kept nor invented."""
    chat = [*talk("u20 a20 u20 a20"), user("And?")]
    strategy = Summarize(lambda messages: "They wrote ` ` twice.", max_summary_tokens=30)
    fitted = fit(chat, 60, counter=WordCounter(), strategy=strategy)
    assert "They wrote ` ` twice." in fitted.messages[0]["content"]
    assert fitted.report.values is None or fitted.report.values.invented == 0
