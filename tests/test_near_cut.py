"""What is told apart near a cut alone is what grouping the whole conversation tells, in every wire form.

Both must keep the same messages at every limit. The conversations are small tables, each with something in
them at which a border could be missed.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest

from tests.builders import places, talk
from tests.chat_in_forms import said_in
from trimtab import (
    BudgetExceededError,
    Cascade,
    ClearToolResults,
    Context,
    PriorityBased,
    SlidingWindow,
    TruncateText,
    fit,
)
from trimtab.conversation import History
from trimtab.counting import EstimateCounter, TextCounter
from trimtab.errors import FormatError, InvalidHistoryError
from trimtab.formats import get_format
from trimtab.models import Framing
from trimtab.strategies import ClampResults, EvictionRequest, EvictionResult, Reads, Strategy
from trimtab.testing import WordCounter, group_all


class AllUnits(SlidingWindow):
    """Promises nothing: what is broken is mended before it is asked."""

    @property
    def reads(self) -> Reads:
        """All."""
        return "all"


TALKS = (
    "u1 a2 u3 a4 u1 a2 u2 a1",
    "s2 u1 a2 u3 a4 s1 u1 a2 s2 a1",
    "u4 a1 a2 a1 u2",
    "u1 cA rA4 a1 u2 cB,C rB2 rC3 a2 u1 cD rD2",
    "u1 cA rA4 cB rB3 cC rC2 a1 cD rD3 cE rE1 u1 a1",
    "u2 cA,B rA3 rB3 cC rC2 u1",
    "u2 cA,B rB3 rA3 cC rC2 u1 a3",
    "u1 a5 u2 cA,B,C rA9 rB9 rC9",
    "u1 a2 u2 a1 cA rA3 cB",
    "u1 cA rA3 a2 u1 cB,C rB2",
    "u1 cA rA3 a2 cB,C rB2",
    "u1 cA s3 rA2 u2 a1 u1 a1",
    "u1 a9 cA s2 rA2 s6 s3",
    "u1 a3 cA s9 s9",
    "u1 cA u2 rA6 a4 a5",
    "u1 a2 cZ u1 cA rA2 rZ3 a2 u2",
    "u1 cA rA9 rZ5",
    "rZ2 rY3 u1 a2 u3 a1",
    "rZ2 rY3 a1 a2",
    "a3 a2 cA rA2 a1",
    "u1 a2 rZ3 a1 u2 a2",
    "u1 cA rA2 cA rA3 a1 cA rA2 u1",
    "u1 cA cB rA2 rB2 a1 u1 a2",
    "u1 cA cB rA2 rB2 a1 cC rC3 a2",
    "u1 cA rA2 rA3 a1 u1 a1",
    "u9 a1 cA rA1 a1 cB rB1",
    "d1 s1 u2 a3 u1",
    "u1 u2 u3 a1 a2 u1 u2 a2 a2",
    "cA u1 a2 rA2 a1 u1 a1",
    "cA u1 rA3 u1",
    "u1 cA u1 rA3 u1 a1",
    "s1 a1 cA rA2 a2 s2 cB rB2",
    "u1 a1 s2 s1 a2 u1 s1 a1 s3",
)


def words(name: str) -> TextCounter:
    """Count words while a wire form is read."""
    return TextCounter(
        lambda text: len(text.split()),
        name="words",
        framing=Framing(per_request_tokens=0, per_message_tokens=0, roles_counted=False),
        format=name,
    )


def in_form(messages: list[dict[str, Any]], form: str) -> list[dict[str, Any]]:
    """Write a chat in a wire form."""
    if form == "openai_chat":
        return messages
    if form != "openai_responses":
        return said_in(form, messages)
    items: list[dict[str, Any]] = []
    for message in messages:
        if message["role"] == "tool":
            call_id, output = message["tool_call_id"], message["content"]
            items.append({"type": "function_call_output", "call_id": call_id, "output": output})
            continue
        if message["content"]:
            items.append({"role": message["role"], "content": message["content"]})
        for call in message.get("tool_calls", ()):
            items.append({"type": "function_call", "call_id": call["id"], **call["function"]})
    return items


def written(line: str, form: str) -> list[dict[str, Any]]:
    """Write a conversation in a wire form."""
    return in_form(talk(line), form)


def outcome(messages: list[Any], limit: int, **options: Any) -> tuple[Any, ...]:
    """Fit, and say what stays, what it takes and what would not fit, or is refused though it was mended."""
    try:
        fitted = fit(messages, limit, **options)
        fits = True
    except InvalidHistoryError as error:
        return (error.violations,)
    except BudgetExceededError as error:
        fitted, fits = error.attempt, False
    places = [row.index for row in fitted.report.messages if row.fate != "evicted"]
    return fits, places, fitted.messages, fitted.report.tokens_after


def assert_same_at_every_limit(messages: list[Any], strategy: Strategy, counter: Any, **options: Any) -> None:
    """Compare what is told apart near the cut with what grouping everything says."""
    total = counter.count(messages)
    for limit in sorted({3, 5, *range(7, total, 5), total - 1}):
        few = outcome(messages, limit, counter=counter, strategy=strategy, **options)
        with group_all():
            assert few == outcome(messages, limit, counter=counter, strategy=strategy, **options), limit


FORMS = ("openai_chat", "anthropic", "gemini", "openai_responses", "bedrock")


@pytest.mark.few(1)
@pytest.mark.parametrize("form", FORMS)
def test_a_cut_keeps_what_grouping_everything_keeps(form: str) -> None:
    """Walked over while it is counted, or counted first and read then."""
    for line in TALKS:
        messages = written(line, form)
        for counter in (words(form), WordCounter(format=form)):
            assert_same_at_every_limit(messages, SlidingWindow(), counter, format=form)


@pytest.mark.few(1)
@pytest.mark.parametrize("form", FORMS)
def test_pins_and_pending_calls_stay_wherever_they_stand(form: str) -> None:
    """Far before the cut, in it, behind it; a pending call that is not there changes nothing."""
    for line in TALKS[3:16:2]:
        messages = written(line, form)
        for options in (
            {"pin": [1]},
            {"pin": [len(messages) - 2, 0]},
            {"pending_calls": ["B"]},
            {"pending_calls": ["A", "X"]},
        ):
            assert_same_at_every_limit(messages, SlidingWindow(), words(form), format=form, **options)


@pytest.mark.few(1)
@pytest.mark.parametrize("form", FORMS)
def test_results_are_cleared_as_if_everything_was_grouped(form: str) -> None:
    """Old results, however far back they stand."""
    for line in TALKS:
        for keep in (0, 2):
            options: dict[str, Any] = {"keep_results": keep, "placeholder": "-"}
            assert_same_at_every_limit(
                written(line, form),
                ClearToolResults(**options),
                words(form),
                format=form,
            )


def two_tools(line: str, form: str) -> list[dict[str, Any]]:
    """Write a conversation in which every second call is of another tool."""
    messages = talk(line)
    made = [one for message in messages for one in message.get("tool_calls", ())]
    for one in made[::2]:
        one["function"]["name"] = "g"
    return messages if form == "openai_chat" else said_in(form, messages)


@pytest.mark.few(1)
@pytest.mark.parametrize("form", ["openai_chat", "anthropic", "gemini", "bedrock"])
def test_results_of_some_tools_are_cleared_as_if_everything_was_grouped(form: str) -> None:
    """Which tool gave a result is told by the call before it."""
    before = "u2 cA rA3 a2 u1 cB,C rB2 rC3 a2 " * 8
    for line in TALKS:
        for spared in ("f", "g"):
            clear = ClearToolResults(keep_results=0, placeholder="-", exclude_tools=[spared])
            strategy = Cascade(clear, SlidingWindow())
            assert_same_at_every_limit(two_tools(line, form), strategy, words(form), format=form)
            long = two_tools(before + line, form)
            for limit in (20, 33, 47):
                near = outcome(long, limit, counter=words(form), strategy=strategy, format=form)
                with group_all():
                    whole = outcome(long, limit, counter=words(form), strategy=strategy, format=form)
                assert near == whole, (line, spared, limit)


@pytest.mark.few(1)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "share", [{"max_tokens": 1}, {"max_ratio": 0.3}, {"max_tokens": 1, "texts": True}], ids=str
)
def test_results_are_clamped_as_if_everything_was_grouped(form: str, share: dict[str, Any]) -> None:
    """Before a window alone, and before results are cleared."""
    clear = ClearToolResults(keep_results=1, placeholder="-")
    for line in TALKS:
        messages, counter = written(line, form), words(form)
        for others in ([SlidingWindow()], [clear, SlidingWindow()]):
            strategy = Cascade(ClampResults(**share), *others)
            assert_same_at_every_limit(messages, strategy, counter, format=form)


class Unpromised:
    """Another strategy as a black box: it promises nothing, so that all is counted and grouped first."""

    name = "unpromised"

    def __init__(self, inner: Strategy) -> None:
        self._inner = inner

    def evict(self, request: EvictionRequest, /) -> EvictionResult:
        """Keep what the other keeps."""
        return self._inner.evict(request)


@pytest.mark.few(1)
@pytest.mark.parametrize("form", FORMS)
def test_results_that_clear_behind_a_text_that_is_cut_are_cut_as_if_everything_was_counted(form: str) -> None:
    """In either order: what one step makes of a result does not hide what the other makes of a text."""
    clear = ClearToolResults(keep_results=1, placeholder="-")
    clamp = ClampResults(max_ratio=0.25, above_ratio=0.5, texts="too_large", keep_newest=True)
    for end in (
        "u1 cA rA9 a400 u1 cB rB30 a2 u1",
        "a400 u1 cA rA40 cB rB3 u1 a1",
        "u1 cA rA300 a400 u2 cB,C rB9 rC99 a1 u1",
        "u1 cA rA90 a400 u1 cB rB120 a2 u1 cC rC8 a40 u1",
    ):
        messages = written("u2 cD rD30 a2 " * 4 + end, form)
        for steps in ([clear, clamp], [clamp, clear]):
            for limit in (280, 300, 340, 390, 430):
                strategy = Cascade(*steps, SlidingWindow())
                options: dict[str, Any] = {"counter": words(form), "format": form}
                near = outcome(messages, limit, strategy=strategy, **options)
                assert near == outcome(messages, limit, strategy=Unpromised(strategy), **options), (
                    end,
                    limit,
                )


@pytest.mark.few(1)
@pytest.mark.parametrize("form", FORMS)
def test_what_scores_best_is_what_scores_best_among_all_units(form: str) -> None:
    """Also where what is kept needs something in front of it, or may not stand behind it."""
    for line in TALKS:
        messages = written(line, form)
        total = words(form).count(messages)
        for options in ({}, {"pin": [1]}, {"pending_calls": ["B"]}):
            options = {"strategy": PriorityBased(), "counter": words(form), "format": form, **options}
            for limit in range(3, total, 3):
                near = outcome(messages, limit, **options)
                with group_all():
                    assert near == outcome(messages, limit, **options), (line, limit)


@pytest.mark.parametrize("form", FORMS)
def test_blocks_are_cut_as_if_everything_was_grouped(form: str) -> None:
    """Calls whose results stand in the next block are seen, wherever the border falls."""
    for line in TALKS[3:16:2]:
        messages = written(line, form)
        for border in (2, len(messages) - 2):
            for limit in (5, 11):
                found = []
                for whole in (False, True):
                    context = Context(budget=limit, counter=words(form), format=form)
                    context.add("old", messages[:border], strategy=SlidingWindow())
                    context.add("new", messages[border:], strategy=SlidingWindow())
                    with group_all() if whole else nullcontext():
                        try:
                            found.append(context.fit().messages)
                        except BudgetExceededError as error:
                            found.append(error.attempt.messages)
                assert found[0] == found[1], (line, border, limit)


@pytest.mark.few(1)
@pytest.mark.parametrize("form", FORMS)
def test_a_repair_that_waits_until_something_broken_is_read_keeps_what_one_of_everything_keeps(
    form: str,
) -> None:
    """Who promises to read the newest is asked before anything is mended: what is broken leaves anyway."""
    for line in TALKS:
        messages, counter = written(line, form), words(form)
        total = counter.count(messages)
        for limit in sorted({3, 5, *range(7, total, 5), total - 1}):
            late, first = (
                outcome(messages, limit, counter=counter, strategy=one, format=form, repair=True)
                for one in (SlidingWindow(), AllUnits())
            )
            assert late == first, limit
        for limit in (5, 9, 14):
            rows = [
                outcome_rows(messages, limit, strategy, counter=counter, format=form)
                for strategy in (SlidingWindow(), AllUnits())
            ]
            assert rows[0] == rows[1]


@pytest.mark.few(1)
@pytest.mark.parametrize("form", FORMS)
def test_what_is_broken_near_what_stays_is_mended_as_if_everything_was(form: str) -> None:
    """Behind a long history, whole or broken: what stays is what stays of all that was mended."""
    for before in (" ".join(["u2 cA rA3 a2"] * 30), TURNS_BEFORE):
        for line in TALKS:
            messages, counter = written(f"{before} {line}", form), words(form)
            for limit in (20, 33, 60):
                late, first = (
                    outcome(messages, limit, counter=counter, strategy=one, format=form, repair=True)
                    for one in (SlidingWindow(), AllUnits())
                )
                assert late == first, (line, limit)


class Model:
    """A message of an SDK that notes when it is read."""

    def __init__(self, message: dict[str, Any], at: int, read: set[int]) -> None:
        self._message, self._at, self._read = message, at, read

    def model_dump(self, **_: Any) -> dict[str, Any]:
        """Write it as a dict."""
        self._read.add(self._at)
        return dict(self._message)


FAR = "u1 cA rA2 rA3 a1 u1 a1", "cA u1 a2 rA2 a1 u1 a1"
"""A second answer, and one in the next turn: whose they are, only the whole conversation tells."""


TURNS_BEFORE = " ".join(["u2 cA rA3 a2 u1 cB,C rB2 rC3 a2"] * 30)


def far_read(messages: list[Any], form: str, limit: int = 30, **options: Any) -> set[int] | None:
    """Fit, and list what is read more than 20 messages back, but for the first.

    None if it does not fit, or only with the newest cut: of these no copies can be made.
    """
    read: set[int] = set()
    given = [Model(message, at, read) for at, message in enumerate(messages)]
    try:
        fit(given, limit, counter=words(form), format=form, strategy=SlidingWindow(), **options)
    except (BudgetExceededError, FormatError):
        return None
    return {at for at in read if 0 < at < len(messages) - 20}


@pytest.mark.parametrize("form", FORMS)
def test_what_stands_far_before_a_cut_is_not_read(form: str) -> None:
    """But for the first message, which may be system text, and what is pinned, with what stands beside it."""
    before = written(TURNS_BEFORE, form)
    for line in TALKS:
        if "rZ" not in line and line not in FAR:
            messages = [*before, *written(line, form)]
            assert not far_read(messages, form), line
            assert (far_read(messages, form, pin=[40]) or set()) <= {39, 40, 41}, line


@pytest.mark.parametrize("form", FORMS)
def test_of_a_call_pinned_far_back_its_turn_alone_is_read(form: str) -> None:
    """Its results stand there, and what opens it."""
    messages = [*written(TURNS_BEFORE, form), *written("u1 a1", form)]
    history = History(list(messages), format=get_format(form))
    pin = next(at for at in range(40, 60) if history.has_calls(at))
    read = far_read(messages, form, limit=40, pin=[pin])
    assert read is not None
    assert {pin, pin + 1} <= read <= set(range(pin - 6, pin + 7))


@pytest.mark.parametrize("form", FORMS)
def test_a_pending_call_that_was_counted_is_found_without_reading_on(form: str) -> None:
    """In the middle of what stays, far from both ends."""
    line = "u1 cA rA1 a1 u1 a1 u1 cZ u1 a1 u1 a1 u1 a1 u1 a1"
    messages = [*written(TURNS_BEFORE, form), *written(line, form)]
    assert far_read(messages, form, limit=26, pending_calls=["Z"]) == set()


def with_words_beside(form: str, *, times: int, step: int) -> list[dict[str, Any]]:
    """Make turns of eight messages; from the first result on each so many has a word more."""
    turn = written("u2 cA rA3 a2 a1 cB rB2 a1", form)
    beside = {"type": "text", "text": "w"} if form == "anthropic" else {"text": "w"}
    key = "parts" if form == "gemini" else "content"
    messages = [dict(message) for message in turn * times]
    for message in messages[2::step]:
        message[key] = [*message[key], beside]
    return messages


@pytest.mark.parametrize("form", ["anthropic", "gemini", "bedrock"])
def test_words_beside_results_open_no_turn(form: str) -> None:
    """They may not come first: what is cut into stays with the message of the user before them."""
    messages = with_words_beside(form, times=3, step=7)
    total = words(form).count(messages)
    for options in ({}, {"pin": [10]}, {"pin": [9, 20]}):
        for limit in range(8, total, 3):
            near = outcome(
                messages, limit, counter=words(form), format=form, strategy=SlidingWindow(), **options
            )
            with group_all():
                assert near == outcome(
                    messages, limit, counter=words(form), format=form, strategy=SlidingWindow(), **options
                ), limit


@pytest.mark.parametrize("form", ["anthropic", "gemini", "bedrock"])
@pytest.mark.parametrize("pin", [82, 83, 85])
def test_of_a_pin_behind_such_words_its_turn_alone_is_read(form: str, pin: int) -> None:
    """The turn from 80 to 87: the message of the user with which it begins, and what stands beside that."""
    read = far_read(with_words_beside(form, times=30, step=8), form, limit=40, pin=[pin])
    assert read is not None
    assert {80, 81, 82, 87} <= read <= set(range(79, 90))


def outcome_rows(
    messages: list[Any], limit: int, strategy: Strategy, **options: Any
) -> list[tuple[str, str | None]]:
    """Fit, and say of each message what became of it and why.

    What has room but nothing to open it is like what has none: it is told by sizes of what is broken, too.
    """
    try:
        report = fit(messages, limit, strategy=strategy, repair=True, **options).report
    except InvalidHistoryError:
        return []
    except BudgetExceededError as error:
        report = error.attempt.report
    said = {"cannot_lead": "over_limit"}
    return [(row.fate, said.get(row.reason or "", row.reason)) for row in report.messages]


CLEAR_ALL = Cascade(ClearToolResults(keep_results=0, placeholder="-"), SlidingWindow())
CLEAR_OLD = Cascade(ClearToolResults(keep_results=1, placeholder="-"), SlidingWindow(), TruncateText())
BROKEN = "u1 cA u1 cB u4 u2 rZ4 u3 u2 cD,C rD4 rC9"
TURNS = "u1 cA rA4 a1 u2 cB,C rB2 rC3 a2 u1 cD rD2"

FOUND: tuple[tuple[str, str, int, dict[str, Any]], ...] = (
    ("openai_responses", "u3 u4 a2 u3 u4", 11, {"pin": [2, 4], "counter": WordCounter}),
    ("anthropic", TURNS, 21, {"pin": [3, 4]}),
    ("openai_chat", "s1 d2 cA a5 cB rB5 cA rA7 u2 cB u2 u4", 39, {"strategy": CLEAR_OLD}),
    ("openai_chat", "d3 u3 u2 a2 u2 a3 a2 s3 u2 u3 u3", 24, {"pin": [9], "strategy": CLEAR_OLD}),
    ("openai_chat", "cC cD rD9 u3 cB rB1 u4 cB a3 a2 u4 a4", 21, {"pending_calls": ["C", "B"]}),
    *(
        ("anthropic", BROKEN, limit, {"pin": [1], "repair": True, "strategy": CLEAR_ALL})
        for limit in range(38, 46)  # at 39, 41 and 45 less was kept than fits, until ClampResults came
    ),
    ("openai_responses", "s2 cB s6", 13, {}),
    (
        "anthropic",
        "cA cA u1 cB,C cB a1 rB2 d1 a5 cC,A a2 cB rA2 a2 rB1 a3 a1 rA9",
        93,
        {"strategy": CLEAR_ALL},
    ),
)
"""Found by random search: each shows one mistake of the way that no conversation above does."""


@pytest.mark.parametrize(("form", "line", "limit", "options"), FOUND)
def test_what_random_conversations_showed_holds(
    form: str, line: str, limit: int, options: dict[str, Any]
) -> None:
    """At one limit each, where grouping everything says the same."""
    asked = {"strategy": SlidingWindow(), "counter": words, **options}
    asked["counter"] = words(form) if asked["counter"] is words else WordCounter(format=form)
    messages = written(line, form)
    near = outcome(messages, limit, format=form, **asked)
    with group_all():
        assert near == outcome(messages, limit, format=form, **asked)


@pytest.mark.parametrize(
    ("line", "border"), [("cD rD9", 1), (TURNS, 11), ("u4 u1 cA rA3 a1 a5 cE s6 rE9", 8)]
)
def test_a_call_and_its_result_in_two_blocks_leave_together(line: str, border: int) -> None:
    """At whatever limit: of what the other block holds this one is told."""
    messages = talk(line)
    for limit in range(1, 16):
        found = []
        for whole in (False, True):
            context = Context(budget=limit, counter=words("openai_chat"))
            context.add("old", messages[:border], strategy=CLEAR_OLD)
            context.add("new", messages[border:], strategy=CLEAR_OLD)
            with group_all() if whole else nullcontext():
                try:
                    found.append(context.fit().messages)
                except BudgetExceededError as error:
                    found.append(error.attempt.messages if error.attempt else str(error))
        assert found[0] == found[1], limit


def kept(line: str, limit: int, **options: Any) -> list[int]:
    """Fit, and list what stays by its place, in the order in which it came out."""
    messages = talk(line)
    options = {"strategy": SlidingWindow(), "counter": words("openai_chat"), **options}
    return places(fit(messages, limit, **options).messages, messages)


def test_what_stays_before_a_cut_stands_in_order() -> None:
    """Also where it stood between a call and its result, and all three stay."""
    assert kept("u1 cA u1 rA2 a9 a9 u1", 12, pin=[1, 2]) == [1, 2, 3, 6]


def test_what_stands_between_a_call_and_its_result_does_not_stay_for_their_sake() -> None:
    """The call before it left, and so does its own result."""
    window = SlidingWindow(keep_first_user=True)
    line = "u1 cA cB rA2 rB2 a1 u1 a2"
    limit = words("openai_chat").count(talk(line)) - 1
    assert kept(line, limit, pin=[4], strategy=window) == [0, 2, 4, 5, 6, 7]


class DearLead(WordCounter):
    """Charges five tokens for a request that begins with system text."""

    def fixed_tokens(self, system: Any, tools: Any, /, *, has_system: bool, extra: Any = None) -> int:
        """Charge for that alone."""
        return 5 if has_system else 0


def test_a_cut_is_charged_for_the_system_text_that_leads() -> None:
    """A counter may take something for it beside its words, and takes nothing where none is."""
    for line, tokens in (("s1 u1 a9 u2", 8), ("u1 a9 u2", 2)):
        fitted = fit(talk(line), 10, counter=DearLead(), strategy=SlidingWindow())
        assert fitted.report.tokens_after == tokens


CLEARED = (
    "u1 cA rA30 a2 u1 cB rB30 a1 cC rC30 a3 u2 a1 cD rD30 u1 a2 cE rE30 a1",
    "s2 u1 cA,B rA30 rB30 a2 u3 cC rC30 u1 a4 a2 cD rD30 cE rE30 a1 u1",
    "u1 cA rA30 cB rB30 cC rC30 cD rD30 cE rE30 cF rF30 a1 a2 a3",
)


@pytest.mark.parametrize("line", CLEARED)
def test_a_window_behind_cleared_results_cuts_as_if_they_had_come_in_cleared(line: str) -> None:
    """Where that does not make it fit, all of them are small, and the cut is the oldest that fits then."""
    messages, counter = talk(line), words("openai_chat")
    clear = ClearToolResults(keep_results=0, placeholder="gone", target_ratio=1.0)
    cleared = [{**one, "content": "gone"} if one["role"] == "tool" else one for one in messages]
    both = Cascade(clear, SlidingWindow())
    for limit in range(2, counter.count(cleared)):
        one = outcome(messages, limit, counter=counter, strategy=both)
        assert one == outcome(cleared, limit, counter=counter, strategy=SlidingWindow()), limit


def _use(number: int) -> dict[str, Any]:
    call = {"type": "tool_use", "id": f"t{number}", "name": "run", "input": {}}
    return {"role": "assistant", "content": [call]}


def _result(number: int, text: str, *more: dict[str, Any]) -> dict[str, Any]:
    result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": text}
    return {"role": "user", "content": [result, *more]}


def test_results_beside_words_of_the_users_that_stay_may_leave_and_make_room() -> None:
    """Counting back took them for what stays with the words, and let go of more than it had to."""
    words = {"type": "text", "text": "And then?"}
    messages = [
        {"role": "user", "content": "Begin."},
        *(_use(1), _result(1, "word " * 60, words)),
        *(_use(2), _result(2, "word " * 40), _use(3), _result(3, "done")),
    ]
    counter = EstimateCounter()
    for budget in range(20, 300, 2):
        found = []
        for strategy in (SlidingWindow(), AllUnits()):
            try:
                found.append(fit(messages, budget, counter=counter, strategy=strategy).positions)
            except BudgetExceededError:
                found.append([])
        assert found[0] == found[1], budget
