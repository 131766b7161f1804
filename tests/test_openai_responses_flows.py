"""Responses conversations as a whole: grouped, validated, repaired and fitted."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.judge import judge
from tests.response_items import (
    EVERY,
    accepted_by_openai,
    billed,
    call,
    output,
    said,
    sdk_objects,
    thought,
    user,
)
from trimtab import fit, repair, validate
from trimtab.conversation import group
from trimtab.errors import ContextError
from trimtab.formats import OpenAIResponses
from trimtab.strategies import Cascade, PriorityBased, SlidingWindow, Strategy, TruncateText
from trimtab.testing import WordCounter

FORM = OpenAIResponses()
WORDS = WordCounter(format=FORM)
Item = dict[str, Any]


def grouped(items: list[Any]) -> list[tuple[int, ...]]:
    """List the units of items by position."""
    return [unit.indices for unit in group(items, format=FORM)]


def rules_of(items: Any, *, open_too: bool = False) -> list[tuple[int, str]]:
    """List what the API would refuse, by position."""
    found = validate(items, format=FORM)
    return [(one.index, one.rule) for one in found if one.fault or open_too]


def reference(item_id: str) -> Item:
    """Write an item that only names one the API has stored."""
    return {"type": "item_reference", "id": item_id}


def agent_turn(number: int, calls: int, *, with_thought: bool = True) -> list[Item]:
    """Write what one question leads to: parallel calls, their outputs, a second thought, an answer."""
    ids = [f"c{number}_{at}" for at in range(calls)]
    first = [thought(f"rs_{number}a", encrypted_content="gAAAA")] if with_thought else []
    second = [thought(f"rs_{number}b", encrypted_content="gAAAA")] if with_thought else []
    return [
        user(f"question {number} " + "w " * 20),
        *first,
        *(call(one, f"fc_{one}") for one in ids),
        *(output(one, "found " * 30) for one in ids),
        *second,
        said(f"answer {number} " + "w " * 10, f"msg_{number}"),
    ]


class TestUnits:
    """What one response holds stays together, with the results of its calls."""

    @pytest.mark.parametrize(
        ("items", "units"),
        [
            (
                [user(), thought(), call("a"), call("b"), output("b"), output("a"), said("x", "msg_1")],
                [(0,), (1, 2, 3, 4, 5), (6,)],
            ),
            (
                [thought(), EVERY["web_search_call"], said("x", "msg_1"), user()],
                [(0, 1, 2), (3,)],
            ),
            # Two responses between which only results stand: each with its own reasoning.
            (
                [thought("rs_1"), call("a"), output("a"), thought("rs_2"), call("b"), output("b")],
                [(0, 1, 2), (3, 4, 5)],
            ),
            # A result far from its call, behind the user's words.
            ([thought(), call("a"), user(), output("a")], [(0, 1, 3), (2,)]),
            ([{"type": "item_reference", "id": "fc_1"}, output("a"), output("b"), user()], [(0, 1, 2), (3,)]),
            ([EVERY["mcp_approval_request"], EVERY["mcp_approval_response"], user()], [(0, 1), (2,)]),
            ([output("a"), call("a"), user()], [(0,), (1,), (2,)]),
        ],
    )
    def test_a_run_of_the_model_and_its_results_are_one(
        self, items: list[Item], units: list[tuple[int, ...]]
    ) -> None:
        """Chains of bound items join with calls wherever their results stand."""
        assert grouped(items) == units

    def test_parallel_calls_wait_together(self) -> None:
        """Each item of the last run can still be answered, not the last one alone."""
        items = [user(), thought(), call("a"), call("b"), output("b")]
        assert rules_of(items, open_too=True) == [(2, "open_call")]
        assert repair(items, format=FORM).messages == items
        assert group(items, format=FORM)[-1].open
        gone_on = [*items, user("never mind")]
        assert rules_of(gone_on) == [(2, "unanswered_call")]

    def test_the_latest_compaction_is_held(self) -> None:
        """An earlier one may leave, and all that was before."""
        items = [
            user("w " * 50),
            EVERY["compaction"],
            user("w " * 50),
            {**EVERY["compaction"], "id": "cmp_2"},
        ]
        items += [user("w " * 5), said("w " * 5)]
        fitted = fit(items, format=FORM, counter=WORDS, budget=25)
        assert fitted.messages == items[3:]


class TestValidity:
    """`validate` and `repair` go by what the API answers."""

    def test_the_words_are_those_of_the_api(self) -> None:
        """With the id of the call."""
        found = validate([output("a"), call("b"), user()], format=FORM)
        assert "No tool call found for function call output with call_id a." in found[0].message
        assert "No tool output found for function call b." in found[1].message

    @pytest.mark.parametrize(
        ("items", "words"),
        [
            ([output("a")], "No tool call found for function call output with call_id a."),
            (
                [EVERY["custom_tool_call_output"]],
                "No tool call found for custom tool call output with call_id c1.",
            ),
            ([EVERY["custom_tool_call"], user()], "No tool output found for custom tool call c1."),
            ([EVERY["computer_call"], user()], "No tool output found for computer call c1."),
            ([EVERY["local_shell_call"], user()], "No tool output found for local shell call c1."),
            (
                [EVERY["mcp_approval_request"], user()],
                "The following MCP approval requests do not have an approval: ",
            ),
            (
                [EVERY["mcp_approval_response"]],
                "The following MCP approval requests have approval responses but weren't passed as input: ",
            ),
        ],
    )
    def test_the_words_name_the_type_of_call(self, items: list[Item], words: str) -> None:
        """As the API does, and the judge."""
        [found] = [one for one in validate(items, format=FORM) if one.fault]
        assert words in found.message
        [said_by_api] = {one.words for one in judge("openai_responses", {"input": items})}
        assert said_by_api in found.message

    def test_results_need_not_stand_behind_their_call(self) -> None:
        """The API pairs by id (deepseek-ai/awesome-deepseek-integration#740 says so); but not before it."""
        assert rules_of([call("a"), user(), output("a"), user()]) == []
        assert rules_of([output("a"), call("a"), user()]) == [(0, "orphan_result"), (1, "unanswered_call")]

    @pytest.mark.parametrize(
        ("items", "left"),
        [
            # A call leaves, and the reasoning that led to nothing else.
            ([user(), thought(), call("a"), user()], [0, 3]),
            ([user(), thought("rs_1"), thought("rs_2"), call("a"), user()], [0, 4]),
            # Another call of the same response stays, and so does the reasoning.
            ([user(), thought(), call("a"), call("b"), output("b"), user()], [0, 1, 3, 4, 5]),
            ([user(), thought(), call("a"), said("x", "msg_1"), user()], [0, 1, 3, 4]),
            # With ids the API knows what followed: the reasoning leaves with it, and all it led to.
            ([user(), thought(), call("a", "fc_a"), call("b", "fc_b"), output("b"), user()], [0, 5]),
            ([user(), thought(), call("a", "fc_a"), said("x", "msg_1"), user()], [0, 4]),
            # What came later is no follower; another response's reasoning has its own.
            ([user(), thought(), call("a", "fc_a"), call("b", "fc_b"), output("a"), user()], [0, 1, 2, 4, 5]),
            (
                [
                    user(),
                    thought("rs_1"),
                    call("a", "fc_a"),
                    thought("rs_2"),
                    call("b", "fc_b"),
                    output("b"),
                    user(),
                ],
                [0, 3, 4, 5, 6],
            ),
            # Reasoning that came in without what it led to.
            ([thought(), user(), output("c")], [1]),
            ([user(), {"type": "reasoning", "summary": []}, user()], [0, 1, 2]),
        ],
    )
    def test_a_repair_leaves_no_reasoning_alone(self, items: list[Item], left: list[int]) -> None:
        """And it finds nothing more to do; the judge, who saw the input, accepts it."""
        done = repair(items, format=FORM)
        assert judge("openai_responses", {"input": done.messages}, origin={"input": items}) == []
        assert list(done.positions) == left
        assert rules_of(done.messages) == []
        assert repair(done.messages, format=FORM).changes == ()
        removed = {change.index for change in done.changes if change.action == "removed"}
        assert removed == set(range(len(items))) - set(left)

    @pytest.mark.parametrize("key", ["previous_response_id", "conversation"])
    def test_a_result_may_answer_a_stored_call(self, key: str) -> None:
        """It is listed and no fault; it stays in repairs and fits, whatever the budget."""
        items = [output("a", "w " * 30), output("b", "w " * 30), user()]
        body = {"input": items, key: "x_1"}
        assert rules_of(body) == []
        assert rules_of(body, open_too=True) == [(0, "orphan_result"), (1, "orphan_result")]
        assert repair(body, format=FORM).request == body
        assert rules_of({"input": items}) == [(0, "orphan_result"), (1, "orphan_result")]
        for mended in (False, True):
            fitted = fit(
                {"input": [user("w " * 50), *items], key: "x_1"}, budget=80, counter=WORDS, repair=mended
            )
            assert fitted.messages == items

    def test_a_result_may_answer_a_reference(self) -> None:
        """They leave together."""
        items = [{"type": "item_reference", "id": "fc_1"}, output("a", "w " * 30), user("w " * 5), said("w")]
        assert rules_of(items) == []
        assert repair(items, format=FORM).messages == items
        assert fit(items, format=FORM, counter=WORDS, budget=20).messages == items[2:]

    @pytest.mark.parametrize("strategy", [None, PriorityBased()])
    @pytest.mark.parametrize(
        "behind",
        [
            [reference("fc_2"), output("a"), user("w " * 30), output("b"), user("go")],
            [said("w"), output("a"), said("w " * 30), user("go")],
        ],
    )
    def test_references_stay_with_a_result_that_may_answer_them(
        self, behind: list[Item], strategy: Strategy | None
    ) -> None:
        """However far behind them it stands: none tells which call it is."""
        items = [user("w " * 30), reference("fc_1"), *behind]
        body = {"model": "gpt-5", "input": items}
        assert judge("openai_responses", body) == []
        left: set[int] = set()
        for budget in range(10, WORDS.count(items)):
            try:
                request = fit(body, budget, counter=WORDS, strategy=strategy).request
            except ContextError:
                continue
            assert judge("openai_responses", request, origin=body) == []
            left.add(len(items) - len(request["input"]))
        assert len(left) > 1


class TestObjects:
    """The package's own objects come back as they are."""

    def test_what_stays_is_the_caller_s(self) -> None:
        """Dicts and output items mixed, as `input += response.output` makes them."""
        items = [user("w " * 30), said("w " * 9), user(), *sdk_objects(), output("c1"), output("c2"), user()]
        assert rules_of(items) == []
        assert [unit for unit in grouped(items) if len(unit) > 1] == [(3, 4, 5, 6, 7, 8)]
        whole = fit(items, format=FORM, budget=10_000).messages
        assert all(one is item for one, item in zip(whole, items, strict=True))
        less = fit(items, format=FORM, counter=WORDS, budget=WORDS.count(items) - 1).messages
        assert all(one is item for one, item in zip(less, items[2:], strict=True))

    def test_objects_too_old_to_stay_are_looked_at_for_a_compaction(self) -> None:
        """What is not read may be an object as well, and one of these may stand for what was before it."""
        answer = sdk_objects()[3]
        talk = [one for _ in range(9) for one in (user("w " * 9), answer)]
        kept = fit([*talk, user("b")], format=FORM, counter=WORDS, budget=30).messages
        assert 0 < len(kept) < len(talk)
        plain = [*(one if isinstance(one, dict) else one.model_dump() for one in talk), user("b")]
        assert len(fit(plain, format=FORM, counter=WORDS, budget=30).messages) == len(kept)
        compaction = MappingProxyType({"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA"})
        held = fit([compaction, *talk, user("b")], format=FORM, counter=WORDS, budget=60).messages
        assert held[0] is compaction
        assert len(held) < len(talk)

    def test_a_shortened_output_item_is_a_copy_of_its_class(self) -> None:
        """The object itself stays as it was."""
        long = sdk_objects()[3].model_copy(deep=True)
        long.content[0].text = "w " * 400
        items = [user("a"), long, user("b")]
        fitted = fit(items, format=FORM, counter=WORDS, budget=60, strategy=TruncateText())
        kept = [one for one in fitted.messages if not isinstance(one, dict)]
        assert [type(one) for one in kept] == [type(long)]
        assert kept[0] is not long
        assert len(long.content[0].text) == 800


RESPONSE = st.tuples(st.booleans(), st.integers(0, 3), st.booleans())


def checked(items: list[Item], original: list[Item]) -> None:
    """Insist, without the code under test, on what the API insists on.

    Every call is answered once and every result has its call before it; every item of a response stands
    directly behind the same item as in the original, back to the response's reasoning.
    """
    calls = [one["call_id"] for one in items if one.get("type") == "function_call"]
    results = [one["call_id"] for one in items if one.get("type") == "function_call_output"]
    assert sorted(calls) == sorted(results)
    for at, one in enumerate(items):
        if one.get("type") == "function_call_output":
            earlier = [e["call_id"] for e in items[:at] if e.get("type") == "function_call"]
            assert one["call_id"] in earlier
    before = {b["id"]: a for a, b in pairwise(original) if "id" in b}
    for at, one in enumerate(items):
        if (needed := before.get(one.get("id"))) is not None and "id" in needed:
            assert items[at - 1]["id"] == needed["id"]
        if one.get("type") == "reasoning":
            assert items[at + 1]["id"].startswith(("fc_", "msg_", "rs_"))


class TestFits:
    """Whatever the budget and the strategy, what is sent is what the API takes."""

    @given(
        st.lists(RESPONSE, min_size=1, max_size=5),
        st.integers(0, 100),
        st.sampled_from([None, SlidingWindow(keep_turns=True), Cascade(TruncateText(), SlidingWindow())]),
        st.booleans(),
    )
    def test_no_fit_parts_what_belongs_together(
        self, turns: list[tuple[bool, int, bool]], share: int, strategy: Any, mended: bool
    ) -> None:
        """Reasoning, parallel calls and results; the types of the package take the result."""
        items: list[Item] = []
        for number, (with_thought, calls, late) in enumerate(turns):
            turn = agent_turn(number, calls, with_thought=with_thought)
            if late and calls:
                at = next(i for i, one in enumerate(turn) if one.get("type") == "function_call_output")
                turn.insert(at, user("meanwhile"))
            items += turn
        items.append(user("and now?"))
        assert rules_of(items) == []
        limit = max(WORDS.count(items) * share // 100, 1)
        try:
            fitted = fit(
                items, format=FORM, counter=WORDS, budget=limit, strategy=strategy, repair=mended
            ).messages
        except ContextError:
            return
        assert WORDS.count(fitted) <= limit
        checked(fitted, items)
        refused = judge("openai_responses", {"input": fitted}, origin={"input": items})
        assert not refused, refused
        assert rules_of(fitted) == []
        assert all(accepted_by_openai(one) for one in fitted)

    def test_billed_requests_fit_as_they_are_and_with_less(self, data_dir: Path) -> None:
        """Each comes back as it was with room; with less it has no fault it did not have."""
        shortened = 0
        for name, body in billed(data_dir / "golden_usage.jsonl"):
            whole = fit(body, format=FORM, budget=1_000_000)
            assert whole.request == body, name
            before = {rule for _, rule in rules_of(body)}
            limit = whole.report.tokens_after - 1
            try:
                less = fit(body, format=FORM, budget=limit)
            except ContextError:
                continue
            shortened += 1
            assert {rule for _, rule in rules_of(less.request)} <= before, name
            given = [one for one in body["input"] if not isinstance(body["input"], str)]
            if all(accepted_by_openai(one) for one in given):
                assert all(accepted_by_openai(one) for one in less.messages)
        assert shortened > 20


def test_a_cut_in_strides_never_parts_an_item_from_the_thought_it_is_bound_to() -> None:
    """Its fixed places, every 64 items, fall on answers here: the cut is moved to where a unit begins."""
    turns = [
        [user("w w"), thought(f"rs_{at}", encrypted_content="gAAAA"), said("w " * 9, f"msg_{at}")]
        for at in range(64)
    ]
    items = [item for turn in turns for item in turn]
    strides = SlidingWindow(target_ratio=0.7)
    for budget in range(60, 700, 20):
        kept = fit(items, budget, format=FORM, counter=WORDS, strategy=strides).messages
        assert rules_of(kept) == []
        assert kept[-3:] == items[-3:]
