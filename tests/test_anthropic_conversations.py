"""Conversations of the Messages API are fitted, and what comes out is as valid as what went in."""

from __future__ import annotations

import copy
import json
from collections import Counter
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.anthropic_shapes import (
    accepted_by_anthropic,
    compaction,
    document,
    found,
    image,
    model,
    redacted,
    result,
    sdk_message,
    server_use,
    system,
    text,
    thinking,
    tool_loop,
    use,
    user,
)
from tests.judge import judge
from trimtab import (
    BudgetExceededError,
    ClearToolResults,
    PriorityBased,
    Session,
    SlidingWindow,
    TruncateText,
    fit,
)
from trimtab.conversation import repair, validate
from trimtab.errors import FormatError
from trimtab.formats import Anthropic
from trimtab.strategies import DropNewest, Summarize
from trimtab.testing import WordCounter

ORDERED_RESULTS = pytest.mark.parametrize(
    ("behind", "left", "moved"),
    [
        (
            [user(text("x"), result("a"), text("y"), result("b"))],
            [user(result("a"), result("b"), text("x"), text("y"))],
            [(2, "result_not_first"), (2, "result_not_first")],
        ),
        (
            [user(result("a"), text("x"), result("b"))],
            [user(result("a"), result("b"), text("x"))],
            [(2, "result_not_first")],
        ),
        (
            [user(text("x"), result("z"), result("a"), result("b"))],
            [user(result("a"), result("b"), text("x"))],
            [(2, "result_not_first"), (2, "result_not_first")],
        ),
        (
            [user(result("a"), text("x")), user(text("y"), result("b"))],
            [user(result("a"), result("b"), text("x")), user(text("y"))],
            [(3, "late_result")],
        ),
        (
            [user(text("x")), user(text("y"), result("a"), result("b"))],
            [user(result("a"), result("b")), user(text("x")), user(text("y"))],
            [(3, "late_result"), (3, "late_result")],
        ),
    ],
)

FORM = Anthropic()
COUNTER = WordCounter(format=FORM)


def rules(messages: Any) -> Counter[str]:
    """Count violations by their rule."""
    return Counter(violation.rule for violation in validate(messages, format=FORM) if violation.fault)


def least(body: Any, **how: Any) -> int:
    """Return the smallest budget a body fits."""
    with pytest.raises(BudgetExceededError) as raised:
        fit(body, 1, counter=COUNTER, format=FORM, **how)
    assert raised.value.needed_tokens is not None
    return raised.value.needed_tokens


class TestAgents:
    """Long work with parallel calls and thinking."""

    @pytest.mark.parametrize("thinks", [True, False])
    @pytest.mark.parametrize("turns", [1, 3, 12])
    def test_a_loop_is_fitted_at_every_budget(self, turns: int, thinks: bool) -> None:
        """Calls leave with their results, the question stays, and the output is accepted."""
        messages = list(tool_loop(turns, thinks=thinks))
        before = copy.deepcopy(messages)
        whole = COUNTER.count(messages)
        for budget in range(least(messages), whole + 20, max(1, whole // 25)):
            fitted = fit(messages, budget, counter=COUNTER, format=FORM)
            assert COUNTER.count(fitted.messages) <= budget
            assert rules(fitted.messages) == Counter()
            assert accepted_by_anthropic(*fitted.messages)
            assert fitted.messages[0] is messages[0]
            assert fit(fitted.messages, budget, counter=COUNTER, format=FORM).messages == fitted.messages
        assert messages == before

    def test_a_turn_that_is_over_leaves_from_the_oldest(self) -> None:
        """Whole units, then nothing of the next one is cut."""
        messages = [*tool_loop(4), user("thanks, and now the docs")]
        fitted = fit(messages, 160, counter=COUNTER, format=FORM)
        assert fitted.messages == [*messages[:0], *fitted.messages]
        assert fitted.messages[-1] is messages[-1]
        assert fitted.messages[0]["role"] == "user"
        assert rules(fitted.messages) == Counter()

    def test_results_are_cut_before_calls_leave_where_they_must_stay(self) -> None:
        """The newest turn is held: its results shrink, its thinking and calls do not change."""
        messages = list(tool_loop(1))[:-1]
        fitted = fit(messages, least(messages) + 5, counter=COUNTER, format=FORM)
        assert fitted.messages[:2] == messages[:2]
        assert "text cut by trimtab" in json.dumps(fitted.messages[2])
        assert [block["tool_use_id"] for block in fitted.messages[2]["content"]] == ["toolu_0a", "toolu_0b"]

    def test_the_packages_objects_come_out_as_they_went_in(self) -> None:
        """The same objects where nothing changes, and still objects where something does."""
        answer = sdk_message()
        messages = [
            user("look"),
            {"role": "assistant", "content": answer.content},
            user(result("a", "w " * 50)),
        ]
        fitted = fit(messages, 999, counter=COUNTER, format=FORM)
        assert all(a is b for a, b in zip(fitted.messages, messages, strict=True))
        small = fit(messages, least(messages) + 10, counter=COUNTER, format=FORM)
        assert small.messages[1]["content"] is answer.content

    @pytest.mark.parametrize("format", [FORM, "auto"])
    def test_a_whole_answer_of_the_package_is_refused_with_what_to_append(self, format: Any) -> None:
        """The API would refuse what it says about itself; so it would blocks without their message."""
        answer = sdk_message()
        for whole in (answer, answer.model_dump()):
            with pytest.raises(FormatError, match=r"messages\[1\]: it is a whole answer.*answer\.content}"):
                fit([user("look"), whole, user(result("a"))], 999, counter=COUNTER, format=format)
            with pytest.raises(FormatError, match=r"whole answer.*append {'role': 'assistant'"):
                Session(999, counter=COUNTER, format=format).add(whole)
        for block in answer.content:
            with pytest.raises(FormatError, match=rf"a block of content \({block.type}\).*answer\.content}}"):
                fit([user("look"), block], 999, counter=COUNTER, format=format)
            with pytest.raises(FormatError, match="a block of content"):
                Session(999, counter=COUNTER, format=format).add(block.model_dump())
        with pytest.raises(FormatError, match=r"\(tool_result\).*'role': 'user', 'content': \[block\]"):
            fit([user("look"), result("a")], 999, counter=COUNTER, format=format)

    def test_the_user_speaks_beside_results(self) -> None:
        """Their words stay when call and result leave."""
        messages = [
            user("first"),
            model(use("a")),
            user(result("a", "w " * 40), text("and mind the gap")),
            model("ok"),
            user("last"),
        ]
        fitted = fit(messages, 12, counter=COUNTER, format=FORM)
        assert fitted.messages == [user(text("and mind the gap")), messages[3], messages[4]]

    def test_a_summary_stands_for_whole_messages(self) -> None:
        """Words of the user beside a result that leaves are still there: no summary stands for them."""
        told = user(result("a", "w " * 40), text("and mind the gap"))
        messages = [user("first"), model(use("a")), told, model("ok"), user("last")]
        strategy = Summarize(lambda messages: "so far", max_summary_tokens=12)
        fitted = fit(messages, 25, counter=COUNTER, format=FORM, strategy=strategy)
        assert fitted.messages[1:] == [user(text("and mind the gap")), *messages[3:]]
        assert 'of="2 messages"' in fitted.messages[0]["content"]

    def test_blanked_results_are_accepted(self) -> None:
        """No empty block of text is left behind."""
        messages = [*tool_loop(6), user("and?")]
        fitted = fit(messages, 300, counter=COUNTER, format=FORM, strategy=ClearToolResults(keep_results=1))
        assert rules(fitted.messages) == Counter()
        assert "[trimtab: tool result cleared]" in json.dumps(fitted.messages)

    def test_system_text_before_a_compaction_stays_behind_its_question(self) -> None:
        """Such a message may not come first: the question that opens its turn is held with the compaction."""
        messages: list[Any] = [
            {"role": "user", "content": "w w w"},
            {"role": "system", "content": [{"type": "text", "text": "be brief"}]},
            {"role": "assistant", "content": [{"type": "compaction", "content": "so far"}]},
            {"role": "user", "content": "hi"},
        ]
        whole = fit(messages, 1_000, counter=WordCounter(), format="anthropic").report.tokens_after
        with pytest.raises(BudgetExceededError):
            fit(messages, whole - 1, counter=WordCounter(), format="anthropic", strategy=SlidingWindow())

    def test_what_a_compaction_stands_for_leaves_before_it(self) -> None:
        """The block stays however old it is, and so does the user's message that opens its turn."""
        messages = [
            user("w " * 30),
            model("w " * 30),
            user("go on"),
            model(compaction("all so far"), text("right")),
            *(message for n in range(6) for message in (user(f"{n} " + "w " * 10), model(f"a{n}"))),
            user("last"),
        ]
        for budget in range(least(messages), COUNTER.count(messages), 7):
            fitted = fit(messages, budget, counter=COUNTER, format=FORM)
            assert any(message is messages[3] for message in fitted.messages)
            assert fitted.messages[0]["role"] == "user"
            assert judge("anthropic", {"model": "m", "max_tokens": 9, "messages": fitted.messages}) == []

    def test_a_paused_turn_leaves_whole(self) -> None:
        """A search and what it found stand in two messages of one turn."""
        paused = [model(server_use(), text("w " * 20)), model(found(), text("tea"))]
        messages = [user("one"), *paused, user("two"), model("w " * 5), user("three")]
        fitted = fit(messages, 10, counter=COUNTER, format=FORM)
        assert fitted.messages == messages[3:]


TEXTS = st.sampled_from(["hi", "w w w", "a b c d e f g h", "w " * 25])


@st.composite
def conversations(draw: st.DrawFn) -> list[Any]:
    """Write a valid conversation of any blocks."""
    messages: list[Any] = []
    thinks = draw(st.booleans())
    calls = 0
    for _ in range(draw(st.integers(1, 5))):
        asked = draw(st.sampled_from(["string", "blocks", "media"]))
        said = draw(TEXTS)
        messages.append(
            {
                "string": user(said),
                "blocks": user(text(said), text("more")),
                "media": user(image(), document(), text(said)),
            }[asked]
        )
        if draw(st.integers(0, 5)) == 0:
            messages.append(system(text("be brief")))
        for _ in range(draw(st.integers(0, 3))):
            ids = [f"toolu_{calls + n}" for n in range(draw(st.integers(1, 3)))]
            calls += len(ids)
            opening = draw(st.sampled_from([[thinking()], [thinking(), redacted()]])) if thinks else []
            ran = [server_use(f"srvtoolu_{calls}"), found(f"srvtoolu_{calls}")] if draw(st.booleans()) else []
            messages.append(model(*opening, *ran, *(use(i, at=draw(TEXTS)) for i in ids)))
            results = [result(i, draw(TEXTS | TEXTS.map(lambda said: [text(said), image()]))) for i in ids]
            beside = [text(draw(TEXTS))] if draw(st.integers(0, 5)) == 0 else []
            messages.append(user(*results, *beside))
        said_last = [*([thinking()] if thinks else []), text(draw(TEXTS).strip())]
        messages.append(model(*([compaction()] if draw(st.integers(0, 9)) == 0 else []), *said_last))
    return messages[: draw(st.integers(1, len(messages)))]


STRATEGIES = (
    None,
    SlidingWindow(keep_turns=True),
    PriorityBased(),
    DropNewest(),
    TruncateText(),
    ClearToolResults(keep_results=0),
    Summarize(lambda messages: "so far", max_summary_tokens=9),
)


@given(conversations(), st.sampled_from(STRATEGIES), st.floats(0, 1))
def test_nothing_is_newly_wrong(messages: list[Any], strategy: Any, share: float) -> None:
    """Whatever leaves: no rule is broken more often than before, the budget is kept, and the types agree."""
    before, whole = rules(messages), COUNTER.count(messages)
    copied = copy.deepcopy(messages)
    try:
        fitted = fit(messages, max(1, int(whole * share)), counter=COUNTER, format=FORM, strategy=strategy)
    except BudgetExceededError:
        return
    finally:
        assert messages == copied
    assert COUNTER.count(fitted.messages) <= max(1, int(whole * share))
    assert rules(fitted.messages) - before == Counter()
    assert not before or rules(repair(messages, format=FORM).messages) == Counter()
    assert accepted_by_anthropic(*fitted.messages, beta=True) or not accepted_by_anthropic(
        *messages, beta=True
    )


@ORDERED_RESULTS
def test_results_move_before_all_else_that_answers_their_turn(
    behind: list[Any], left: list[Any], moved: list[tuple[int, str]]
) -> None:
    """Which is less than to take them out; what stands beside them stays, and the judge accepts it."""
    messages = [user("q"), model(use("a"), use("b")), *behind]
    done = repair(messages, format=FORM)
    assert done.messages == [*messages[:2], *left]
    assert [(change.index, change.rule) for change in done.changes if change.action == "moved"] == moved
    assert judge("anthropic", {"messages": messages}) != []
    assert judge("anthropic", {"messages": done.messages}) == []
    assert validate(done.messages, format=FORM) == []
    assert repair(done.messages, format=FORM).changes == ()


def test_a_late_result_does_not_move_into_a_message_of_the_models() -> None:
    """Also where that held the result of a tool the provider ran, which nobody called, and went on."""
    messages = [user("go"), model(use("a")), model(found(), text("and")), user("well?"), user(result("a"))]
    assert repair(messages, format=FORM).messages == [
        *messages[:2],
        model(text("and")),
        user(result("a")),
        user("well?"),
    ]


def test_a_call_of_the_providers_with_the_id_of_an_answered_one_is_no_other() -> None:
    """As two calls of the caller's with one id are: the id is the fault, and the pair stays whole."""
    messages = [user("go"), model(server_use(), found(), server_use(), text("there")), user("thanks")]
    assert repair(messages, format=FORM).messages == messages
    assert {one.rule for one in validate(messages, format=FORM)} == {"duplicate_call_id"}


def test_of_two_calls_with_one_id_a_repair_takes_the_one_without_a_result() -> None:
    """The provider's, which has its result beside it, stays; with that in the next message, both leave."""
    asked, shared = server_use(), use("srvtoolu_1")
    beside = [user("go"), model(asked, found(), shared), user("thanks")]
    assert repair(beside, format=FORM).messages == [user("go"), model(asked, found()), user("thanks")]
    behind = [user("go"), model(text("wait"), asked, shared), model(found(), text("so")), user("ah")]
    done = repair(behind, format=FORM)
    assert done.messages == [user("go"), model(text("wait")), model(text("so")), user("ah")]
    assert [(change.index, change.rule) for change in done.changes] == [
        (1, "unanswered_call"),
        (2, "orphan_result"),
    ]


@given(conversations(), st.data())
def test_a_broken_conversation_is_repaired(messages: list[Any], data: Any) -> None:
    """Messages are missing, doubled and moved; a repair leaves no violation of a pair or of order.

    Without a user's message there is none that may come first.
    """
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(messages) - 1))
        what = data.draw(st.sampled_from(["drop", "move", "double"]))
        taken = messages[at] if what == "double" else messages.pop(at)
        if what != "drop":
            messages.insert(data.draw(st.integers(0, len(messages))), taken)
        if not messages:
            return
    pairs = {"orphan_result", "repeated_result", "unanswered_call", "late_result", "wrong_order"}
    mended = repair(messages, format=FORM).messages
    if pairs & set(rules(mended)):
        assert pairs & set(rules(mended)) == {"wrong_order"}
        assert not any(FORM.kind(message) == "user" for message in mended)
    assert repair(mended, format=FORM).messages == mended


def test_the_real_client_sends_what_was_fitted() -> None:
    """Blocks of the package and dicts alike, in a request its types build."""
    seen: list[Any] = []
    asked: Any = [user("look")]

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(json.loads(request.content))
        return httpx2.Response(200, json=sdk_message().model_dump(mode="json"))

    client = anthropic.Anthropic(
        api_key="none", http_client=httpx2.Client(transport=httpx2.MockTransport(answer))
    )
    first = client.messages.create(model="claude-opus-4-8", max_tokens=9, messages=asked)
    body = {
        "model": "claude-opus-4-8",
        "max_tokens": 9,
        "system": "be brief",
        "messages": [
            user("look"),
            {"role": "assistant", "content": first.content},
            user(result("a", "w " * 60)),
        ],
    }
    fitted = fit(body, 30, counter=COUNTER, format=FORM)
    client.messages.create(**fitted.request)
    assert seen[-1]["system"] == "be brief"
    assert [block["type"] for block in seen[-1]["messages"][1]["content"]] == ["thinking", "text", "tool_use"]
    assert "text cut by trimtab" in seen[-1]["messages"][2]["content"][0]["content"]
    assert rules(seen[-1]) == Counter()


def test_billed_requests_are_valid_and_stay_so(data_dir: Path) -> None:
    """Also the one that begins with the model, which that model takes. None is made worse at any budget."""
    bodies = [
        {"model": row["model"], **row["request"]}
        for row in map(json.loads, (data_dir / "golden_usage.jsonl").read_text("utf-8").splitlines())
        if row["provider"] == "anthropic"
    ]
    assert len(bodies) > 150
    found = [rules(body) for body in bodies]
    assert sum(found, Counter()) == Counter()
    fits = 0
    for body, before in zip(bodies, found, strict=True):
        typed = accepted_by_anthropic(*body["messages"], beta=True)
        whole = COUNTER.count(body["messages"])
        for share in (0.9, 0.6, 0.3):
            try:
                fitted = fit(
                    {"messages": body["messages"]}, max(1, int(whole * share)), counter=COUNTER, format=FORM
                )
            except BudgetExceededError:
                continue
            fits += 1
            assert rules(fitted.request) - before == Counter()
            assert accepted_by_anthropic(*fitted.messages, beta=True) or not typed
    assert fits > 20
