"""Units that span the blocks of a `Context`; open calls; a result before its call (SPEC D4, D12)."""

from __future__ import annotations

import random
from contextlib import suppress
from itertools import pairwise
from typing import Any

import pytest

from tests.builders import call, places, result, talk, user, words
from trimtab import (
    BudgetExceededError,
    Cascade,
    ClearToolResults,
    ConfigurationError,
    Context,
    Drop,
    DropNewest,
    PriorityBased,
    SlidingWindow,
    Summarize,
    TruncateText,
    validate,
)
from trimtab.counting import EstimateCounter, TextCounter
from trimtab.models import Framing
from trimtab.strategies import Relevant
from trimtab.testing import WordCounter

WORDS = WordCounter()


def fitted(budget: int, *blocks: tuple[str, dict[str, Any]], **policy: Any) -> Any:
    """Fit blocks written as talk; their names are a, b, c."""
    made = Context(budget, counter=WORDS, **policy)
    for name, (line, options) in zip("abcdef", blocks, strict=False):
        made.add(name, talk(line), **options)
    return made.fit()


def stays(found: Any) -> str:
    """Write the fate of each message: k, c or e; a bar between blocks."""
    rows = found.report.messages
    groups = [[row.fate[0] for row in rows if row.block == block.name] for block in found.report.blocks]
    return " ".join("".join(group) for group in groups)


@pytest.mark.parametrize(
    ("budget", "blocks", "expected"),
    [
        pytest.param(9, [("u1 cA", {}), ("rA4 u2", {})], "kk kk", id="all-fits"),
        pytest.param(
            8, [("u1 cA", {"priority": 1}), ("rA4 u2", {})], "ke ek", id="the-result-takes-its-call"
        ),
        pytest.param(
            8, [("cA u1", {}), ("rA4 u2", {"priority": 1})], "ek ek", id="the-call-takes-its-result"
        ),
        pytest.param(
            9,
            [("cA,B", {"priority": 1}), ("rA2", {"priority": 1}), ("rB4 u1", {})],
            "e e ek",
            id="results-in-two-blocks",
        ),
        pytest.param(
            5,
            [("u9 cA", {}), ("rA2 u2", {"pinned": True})],
            None,
            id="a-pinned-result-pins-its-call",
        ),
        pytest.param(6, [("u9 cA", {}), ("rA2 u2", {"pinned": True})], "ek kk", id="and-nothing-else"),
        pytest.param(
            9, [("u9 cA,B", {}), ("rA2", {}), ("rB2 u1", {"pinned": True})], "ek k kk", id="and-other-results"
        ),
        pytest.param(6, [("u9 cA", {"pinned": True}), ("rA2", {})], None, id="a-pinned-call-pins-its-result"),
        pytest.param(
            9,
            [("cA rA1 u1", {}), ("cA", {"priority": 1}), ("rA4", {"priority": 1})],
            "eek k k",
            id="reused-ids",
        ),
        pytest.param(
            12,
            [("cA,B", {"pinned": True}), ("cA rA9 u1", {}), ("rB1 rA1 u1", {"priority": 1})],
            "k eek kkk",
            id="a-result-answers-a-call-before-another-with-its-id",
        ),
        pytest.param(
            11,
            [("cA", {"pinned": True}), ("cA rA9 rA1 u1", {})],
            "k eekk",
            id="also-in-the-block-of-that-one",
        ),
        pytest.param(99, [("rA1 u1", {}), ("cA rA1 u1", {})], "kk kkk", id="an-orphan-of-an-answered-id"),
    ],
)
def test_a_unit_stays_only_if_every_block_keeps_its_part(budget: int, blocks: Any, expected: Any) -> None:
    """And the output has no result without its call, nor the other way round."""
    if expected is None:
        with pytest.raises(BudgetExceededError):
            fitted(budget, *blocks)
        return
    found = fitted(budget, *blocks)
    assert stays(found) == expected
    assert [v for v in validate(found.messages) if v.rule == "unanswered_call"] == []
    orphans = sum(v.rule == "orphan_result" for v in validate(found.messages))
    assert orphans == sum(line.startswith("rA") for line, _ in blocks[:1])


def test_an_empty_result_of_a_pinned_call_stays() -> None:
    """It costs nothing, so there is nothing to shorten."""
    made = Context(4, counter=WORDS).add("a", call("A"), pinned=True)
    assert stays(made.add("b", [user(words(9)), result("A", "")]).fit()) == "k ek"


def test_the_question_before_a_call_of_a_pinned_result_stays() -> None:
    """Three blocks: a result that is pinned, its call, and what the provider wants in front of that call."""
    form = "gemini"
    asked = [{"role": "user", "parts": [{"text": words(2)}]} for _ in range(2)]
    call = {"role": "model", "parts": [{"functionCall": {"id": "A", "name": "f", "args": {}}}]}
    answer = {"functionResponse": {"id": "A", "name": "f", "response": {"result": words(3)}}}
    found = {"role": "user", "parts": [answer]}

    def made(budget: int) -> Context:
        context = Context(budget, counter=WordCounter(format=form), format=form)
        return context.add("questions", asked).add("call", call).add("result", found, pinned=True)

    assert made(7).fit().messages == [asked[1], call, found]
    with pytest.raises(BudgetExceededError) as raised:
        made(6).fit()
    assert raised.value.needed_tokens == 7


def test_what_another_block_freed_is_reported_and_not_given_out() -> None:
    """D12: the call's 2 words are free, the older message does not come back."""
    found = fitted(8, ("u3 u1 cA", {"priority": 1}), ("rA4 u2", {}))
    first, second = found.report.blocks
    assert (first.tokens_before, first.tokens_after, first.freed_tokens) == (6, 4, 2)
    assert (second.tokens_after, second.freed_tokens) == (2, 0)
    assert first.actions == ("evicted",)
    rows = found.report.messages
    assert [(row.fate, row.reason, row.unit) for row in rows[2:4]] == [
        ("evicted", "unit_of_removed", 2),
        ("evicted", "over_limit", 2),
    ]
    assert found.report.remaining_tokens == 2


def test_freed_tokens_are_no_missed_floor() -> None:
    """The block had them; another let go."""
    found = fitted(8, ("u2 cA", {"priority": 1, "min_tokens": 4}), ("rA5 u2", {}))
    assert (found.report.blocks[0].freed_tokens, found.report.blocks[0].floor_missed_tokens) == (2, 0)


def test_a_shortened_result_leaves_with_its_call() -> None:
    """Its tokens are those it had shortened."""
    found = fitted(
        16,
        ("u9 cA", {"strategy": Drop(), "max_tokens": 10}),
        ("rA30", {"strategy": TruncateText(), "max_tokens": 9}),
    )
    assert stays(found) == "ee e"
    assert found.messages == []
    assert found.report.tokens_after == 0
    assert found.report.blocks[1].freed_tokens <= 9


# -- open calls (A4b)


@pytest.mark.parametrize(
    ("blocks", "options", "open_call"),
    [
        pytest.param(["u9 cA"], {}, True, id="the-last-turn"),
        pytest.param(["u9 cA", "s1"], {}, True, id="a-system-message-behind-it"),
        pytest.param(["u9 cA", "u1"], {}, False, id="a-user-message-in-a-later-block"),
        pytest.param(["u9 cA", "a1"], {}, False, id="a-turn-of-the-model-in-a-later-block"),
        pytest.param(["u9 cA", "s1", "u1"], {}, False, id="two-blocks-later"),
        pytest.param(["u9 cA", "u1"], {"pending_calls": ["A"]}, True, id="pending"),
        pytest.param(["u9 cA", "u1"], {"pending_calls": ["B"]}, False, id="another-is-pending"),
        pytest.param(["u9 cA", "rA1"], {}, False, id="answered-in-a-later-block"),
        pytest.param(["u9 cA,B", "rA1"], {}, True, id="half-answered-in-a-later-block"),
        pytest.param(["u9 cA,B", "rA1 u1"], {}, False, id="half-answered-and-given-up"),
    ],
)
def test_open_calls_are_held(blocks: list[str], options: Any, open_call: bool) -> None:
    """A later block closes a call, or answers it."""
    parts = [(line, {"strategy": Drop()} if at == 0 else {}) for at, line in enumerate(blocks)]
    found = fitted(sum(map(WORDS.count, map(talk, blocks))) - 1, *parts, **options)
    row = found.report.messages[1]
    assert (row.fate, row.state) == (("kept", "held") if open_call else ("evicted", "free"))


def test_a_result_of_a_call_that_still_waits_for_another_stays() -> None:
    """A4: it is a member of an open unit, wherever it stands; it may be shortened."""
    found = fitted(14, ("u9 cA,B", {}), ("rA30", {"strategy": TruncateText()}))
    assert stays(found) == "ek c"
    assert WORDS.count(found.messages) <= 14
    with pytest.raises(BudgetExceededError) as raised:
        fitted(7, ("u9 cA,B", {}), ("rA30", {"strategy": TruncateText()}))
    assert raised.value.needed_tokens == 8
    assert WORDS.count(raised.value.attempt.messages) == 8


# -- a result before its call (D4)


@pytest.mark.parametrize(
    ("blocks", "fails"),
    [
        pytest.param(["rA1", "cA"], True, id="its-call-is-in-a-later-block"),
        pytest.param(["rA1 u1", "cB rB1", "cA"], True, id="two-later"),
        pytest.param(["rA1 cA"], False, id="in-one-block-it-is-an-orphan"),
        pytest.param(["rA1 cA", "cB rB1"], False, id="also-beside-a-block-with-tools"),
        pytest.param(["cA", "rA1"], False, id="in-order"),
        pytest.param(["cA rA1", "rA1", "cA"], False, id="it-answers-an-earlier-one-again"),
    ],
)
def test_a_result_before_its_call_is_refused(blocks: list[str], fails: bool) -> None:
    """The error names both blocks and what to do."""
    if not fails:
        fitted(99, *((line, {}) for line in blocks))
        return
    with pytest.raises(ConfigurationError) as raised:
        fitted(99, *((line, {}) for line in blocks))
    assert "block 'a' holds the result of call 'A' and comes before block" in str(raised.value)
    assert "give it a later position" in str(raised.value)


def test_a_position_can_put_it_right() -> None:
    """Order of adding is not order of the request."""
    messages = [call("A"), result("A"), user()]
    made = (
        Context(99, counter=WORDS)
        .add("results", messages[1:], position=2)
        .add("calls", messages[0], position=1)
    )
    assert places(made.fit().messages, messages) == [0, 1, 2]


def test_a_large_block_without_tools_beside_it_is_read_from_its_end() -> None:
    """Only what the limit reaches is counted (A9)."""
    seen: list[Any] = []

    class Noting(WordCounter):
        def count_message(self, message: Any, /) -> int:
            seen.append(message)
            return super().count_message(message)

    made = Context(20, counter=Noting()).add("h", talk("u1 cA rA1 " * 300)).add("q", words(3))
    report = made.fit().report
    assert len(seen) < 40
    assert report.blocks[0].tokens_before is None
    assert report.messages[0].tokens_before is None


@pytest.mark.parametrize("strategy", [DropNewest(), PriorityBased()])
@pytest.mark.parametrize("room", range(1, 25))
def test_results_of_another_block_in_one_message_leave_with_it(strategy: Any, room: int) -> None:
    """Two calls in one block, one message with both results and words in another: never one result alone."""
    calls = [{"type": "tool_use", "id": name, "name": "f", "input": {}} for name in "AB"]
    results = [{"type": "tool_result", "tool_use_id": name, "content": f"x y {name}"} for name in "AB"]
    context = Context(room, counter=WordCounter(format="anthropic"), format="anthropic")
    context.add("calls", [user("go on"), {"role": "assistant", "content": calls}], priority=2)
    answer = {"role": "user", "content": [*results, {"type": "text", "text": "and"}]}
    context.add("rest", [answer, {"role": "assistant", "content": "ok"}, user("q")], strategy=strategy)
    try:
        fitted = context.fit()
    except BudgetExceededError:
        return
    assert validate(fitted.messages, format="anthropic") == []
    assert (context_calls(fitted.messages), answer in fitted.messages) in ((True, True), (False, False))


def context_calls(messages: list[Any]) -> bool:
    """Tell whether the calls are among the messages."""
    return any(
        isinstance(message["content"], list) and message["role"] == "assistant" for message in messages
    )


@pytest.mark.parametrize("form", ["anthropic", "bedrock"])
@pytest.mark.parametrize("border", [2, 3, 4])
def test_results_of_calls_in_two_blocks_leave_with_all_of_these(form: str, border: int) -> None:
    """One message answers calls of a turn that a border parts: none stays without the others."""

    def block(kind: str, **said: Any) -> dict[str, Any]:
        if form == "anthropic":
            return {"type": {"toolUse": "tool_use"}.get(kind, kind), **said}
        ids = {"toolUseId": said.pop("id")} if "id" in said else {}
        return {"text": said["text"]} if kind == "text" else {kind: {**ids, **said}}

    def answer(id: str) -> dict[str, Any]:
        if form == "anthropic":
            return {"type": "tool_result", "tool_use_id": id, "content": "found"}
        return {"toolResult": {"toolUseId": id, "content": [{"text": "found"}]}}

    turn = [
        {"role": "user", "content": [block("text", text="go")]},
        {"role": "assistant", "content": [block("toolUse", id="a", name="look", input={})]},
        {"role": "assistant", "content": [block("text", text="one two three four five six " * 3)]},
        {"role": "assistant", "content": [block("toolUse", id="b", name="look", input={})]},
        {"role": "user", "content": [answer("a"), answer("b")]},
    ]
    later = [block("text", text="done"), block("text", text="and now?")]
    talk = [*turn, *({"role": r, "content": [b]} for r, b in zip(("assistant", "user"), later, strict=True))]
    assert validate(talk, format=form) == []
    seen = set()
    for budget in range(2, 40):
        for first in ({}, {"priority": 5}, {"max_ratio": 0.4}, {"min_ratio": 0.5}):
            made = Context(budget, counter=WordCounter(format=form), format=form)
            made.add("before", talk[:border], **first)
            made.add("behind", talk[border:])
            with suppress(BudgetExceededError):
                kept = made.fit().messages
                assert validate(kept, format=form) == [], (budget, first)
                seen.add(len(kept))
    assert len(seen) > 2


def test_a_call_that_may_not_stand_first_leaves_the_words_beside_its_result() -> None:
    """The message with its result also holds words of the user, which stay; `fit` of the same agrees."""
    answer = {"type": "tool_result", "tool_use_id": "a", "content": "r"}
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]},
        {"role": "user", "content": [answer, {"type": "text", "text": "and now this"}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "b", "name": "f", "input": {}}]},
    ]
    context = Context(8, counter=WordCounter(), format="anthropic")
    fitted = context.add("before", messages[:1]).add("after", messages[1:]).fit()
    words = {"role": "user", "content": [{"type": "text", "text": "and now this"}]}
    assert fitted.messages == [words, messages[3]]
    assert fitted.report.tokens_after == WordCounter().with_format("anthropic").count(fitted.messages)


def test_a_call_that_waits_is_found_where_its_id_is_used_again() -> None:
    """The newer call of that id is answered; the older one is the one whose result is still to come."""
    messages = [call("A", "B"), call("B"), result("B", "w w")]
    context = Context(4, counter=EstimateCounter(), pending_calls={"B"})
    context.add("talk", messages, strategy=SlidingWindow())
    with pytest.raises(BudgetExceededError) as caught:
        context.fit()
    assert caught.value.attempt.messages == messages[:1]


STRATEGIES = (
    Drop(),
    DropNewest(),
    PriorityBased(),
    SlidingWindow(),
    SlidingWindow(keep_first_user=True),
    SlidingWindow(target_ratio=0.5),
    TruncateText(),
    ClearToolResults(keep_results=0),
    Relevant(),
)


def talk_with_late_results(made: random.Random) -> list[Any]:
    """Make turns with calls, of which some are answered after the user spoke again."""
    messages: list[Any] = []
    for turn in range(made.randint(1, 6)):
        messages.append(user(words(made.randint(0, 12))))
        for step in range(made.randint(0, 3)):
            ids = [f"{turn}-{step}-{n}" for n in range(made.randint(1, 3))]
            messages.append(call(*ids))
            if made.random() < 0.3:
                messages.append(user("wait"))
            messages += [result(one, words(made.randint(0, 15))) for one in ids]
    return messages


@pytest.mark.few(1)
@pytest.mark.parametrize("share", [0.02, 0.1, 0.3])
def test_no_strategy_parts_a_call_from_a_result_in_another_block(share: float) -> None:
    """However little of the blocks is read, and in the attempt that an error brings as well."""
    for seed in range(400):
        made = random.Random(seed)
        messages = talk_with_late_results(made)
        cuts = sorted(made.sample(range(1, len(messages)), min(made.randint(1, 3), len(messages) - 1)))
        counter: Any = made.choice([WORDS, EstimateCounter()])
        context = Context(max(1, int(share * counter.count(messages))), counter=counter)
        for at, (start, end) in enumerate(pairwise([0, *cuts, len(messages)])):
            context.add(
                f"block {at}",
                messages[start:end],
                priority=made.choice([0, 10, 50]),
                strategy=made.choice(STRATEGIES),
                pinned=made.random() < 0.15,
            )
        found: Any
        try:
            found = context.fit()
        except BudgetExceededError as error:
            found = error.attempt
        output = found.messages
        answers = [message["tool_call_id"] for message in output if message["role"] == "tool"]
        calls = [one["id"] for message in output for one in message.get("tool_calls", ())]
        assert sorted(calls) == sorted(answers), seed
        first = {
            one["id"]: at for at, message in enumerate(messages) for one in message.get("tool_calls", ())
        }
        units = {row.index: row.unit for row in found.report.messages}
        for at, message in enumerate(messages):
            if message["role"] == "tool":
                assert units[at] == first[message["tool_call_id"]], seed


def test_a_result_leaves_with_its_call_in_another_block_of_which_one_was_never_answered() -> None:
    """Also where the first block was not read as far as its call."""
    clear = Cascade(ClearToolResults(keep_results=1, placeholder="-"), SlidingWindow(), TruncateText())
    framing = Framing(per_request_tokens=0, per_message_tokens=0, roles_counted=False)
    context = Context(14, counter=TextCounter(lambda text: len(text.split()), name="words", framing=framing))
    context.add("old", talk("cA,B rB9 u2 u5"), strategy=clear, priority=3)
    context.add("new", talk("a3 rA1 cC rC9"), strategy=PriorityBased(), priority=1)
    assert [message["role"] for message in context.fit().messages] == ["user", "user", "assistant"]


def test_blocks_whose_calls_are_answered_in_them_are_read_no_further_than_they_have_room() -> None:
    """Only what may belong to another block is looked for in all of them."""
    context = Context(160, counter=EstimateCounter())
    for name in "AB":
        unread = {"role": "wizard", "content": "nobody is told of it, since it leaves unread"}
        context.add(name, [user(), unread, *talk(f"u99 u99 c{name} r{name}4 u2")], max_ratio=0.5)
    assert [message["role"] for message in context.fit().messages] == ["user", "user"]


def test_a_summarizer_is_asked_once_though_a_call_has_its_result_in_another_block() -> None:
    """What spans blocks is found before a model is asked."""
    for seed in range(400):
        made, asked = random.Random(seed), list[int]()
        early, late = talk("u99 cA u9 u99 u20"), [result("A"), *talk_with_late_results(made)]
        tokens = EstimateCounter().count([*early, *late])

        def summarize(messages: Any, existing: Any, asked: list[int] = asked) -> str:
            asked.append(len(messages))
            return "short"

        context = Context(int(made.uniform(0.2, 0.8) * tokens), counter=EstimateCounter())
        context.add("early", early, strategy=Summarize(summarize))
        context.add("late", late, strategy=DropNewest())
        with suppress(BudgetExceededError):
            context.fit()
        assert len(asked) <= 1, seed
