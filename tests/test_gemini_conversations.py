"""Gemini conversations through validate, repair and fit: what goes out is what Gemini takes."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from google.genai import types
from hypothesis import given
from hypothesis import strategies as st

from tests.gemini_shapes import (
    accepted_by_google,
    agent,
    as_objects,
    call,
    model,
    odd_conversations,
    response,
    snake,
    user,
)
from trimtab import Cascade, ClearToolResults, SlidingWindow, TruncateText, fit
from trimtab.conversation import group, repair, validate
from trimtab.counting import FixedCounter
from trimtab.errors import BudgetExceededError, InvalidHistoryError
from trimtab.formats import Gemini, mapping_of
from trimtab.testing import WordCounter

BOTH = Cascade(ClearToolResults(), SlidingWindow())
STRICT = "google-vertex/gemini-2.5-flash"
PAIRS = {"orphan_result", "repeated_result", "unanswered_call", "late_result", "wrong_order"}


def broken(contents: Any) -> list[tuple[int, str]]:
    """List which pair rules are broken where, for a model that wants all responses in one content."""
    found = validate(contents, format="gemini", model=STRICT)
    return [(violation.index, violation.rule) for violation in found if violation.rule in PAIRS]


class TestPairs:
    """Calls and responses match, with ids and without."""

    @pytest.mark.parametrize("ids", [True, False])
    @pytest.mark.parametrize("spelled", [list, snake, as_objects])
    def test_a_good_conversation_has_no_violations_and_comes_back(self, spelled: Any, ids: bool) -> None:
        """The same objects, in a new list."""
        contents = spelled(agent(3, ids=ids))
        assert validate(contents, format="gemini") == []
        repaired = repair(contents, format="gemini")
        assert repaired.changes == ()
        assert all(left is right for left, right in zip(repaired.messages, contents, strict=True))

    @pytest.mark.parametrize("ids", [True, False])
    def test_a_turn_of_calls_and_its_responses_are_one_unit(self, ids: bool) -> None:
        """Also where the calls came in contents behind one another."""
        contents = agent(1, ids=ids)
        assert [unit.indices for unit in group(contents, format="gemini")] == [(0,), (1, 2), (3,)]
        split = [contents[0], *(model(part) for part in contents[1]["parts"]), *contents[2:]]
        assert [unit.indices for unit in group(split, format="gemini")] == [(0,), (1, 2, 3, 4), (5,)]
        assert validate(split, format="gemini") == []

    @pytest.mark.parametrize(
        ("contents", "found"),
        [
            ([user("q"), user(response("f", "a"))], [(1, "orphan_result")]),
            ([user("q"), model(call("f", "a")), user("and")], [(1, "unanswered_call")]),
            ([user("q"), model(call("f")), user("and"), user(response("f"))], [(3, "late_result")]),
            ([user("q"), model(call("f", "a"), call("g", "b")), user(response("f", "a")),
              user(response("g", "b"))], [(3, "late_result")]),
            ([user("q"), model(call("f"), call("f")), user(response("f")), user(response("f"))],
             [(3, "late_result")]),
            ([user("q"), model(call("f")), user(response("f"), response("f"))], [(2, "orphan_result")]),
            ([user("q"), model(call("f", "a")), user(response("f", "a"), response("f", "a"))],
             [(2, "repeated_result")]),
            ([model(call("f")), user(response("f")), user("q")], [(0, "wrong_order")]),
            ([model("hello"), user("q")], [(0, "wrong_order")]),
        ],
    )  # fmt: skip
    def test_what_gemini_refuses_is_named_and_repaired(self, contents: Any, found: Any) -> None:
        """The repaired conversation breaks nothing, and repairing it again changes nothing."""
        before = copy.deepcopy(contents)
        assert broken(contents) == found
        repaired = repair(contents, format="gemini", model=STRICT)
        assert broken(repaired.messages) == []
        assert repair(repaired.messages, format="gemini", model=STRICT).changes == ()
        assert contents == before

    def test_a_response_that_moved_is_read_again(self) -> None:
        """Responses without ids go by place: one that came to stand in a content with a call is too many."""
        contents = [
            model(call("f")),
            user(response("f"), call("f")),
            user(response("f")),
        ]
        done = repair(contents, format="gemini", model=STRICT)
        assert done.messages == [user(response("f"), call("f"))]
        assert [change.rule for change in done.changes if change.index == 1] == [
            "late_result",
            "orphan_result",
        ]
        assert repair(done.messages, format="gemini", model=STRICT).changes == ()

    @pytest.mark.parametrize("spelled", [list, as_objects])
    def test_late_responses_join_those_in_place(self, spelled: Any) -> None:
        """All responses of a turn stand in one content; Vertex refuses them split (llumiverse#620)."""
        turn = model(call("f", "a"), call("g", "b"), call("h", "c"))
        late = [
            user("q"),
            turn,
            user(response("g", "b")),
            user("and", response("f", "a")),
            user(response("h", "c")),
        ]
        joined = [
            user("q"),
            turn,
            user(response("g", "b"), response("f", "a"), response("h", "c")),
            user("and"),
        ]
        repaired = repair(spelled(late), format="gemini", model=STRICT)
        assert repaired.messages == spelled(joined)
        assert repaired.positions == (0, 1, 2, 3)
        moved = [(change.index, change.call_id) for change in repaired.changes if change.action == "moved"]
        assert moved == [(3, "a"), (4, "c")]

    def test_late_responses_alone_make_one_content(self) -> None:
        """Behind the turn, where none was."""
        turn = model(call("f", "a"), call("g", "b"))
        late = [user("q"), turn, user("and"), user(response("f", "a")), user(response("g", "b"))]
        repaired = repair(late, format="gemini", model=STRICT)
        assert repaired.messages == [
            user("q"),
            turn,
            user(response("f", "a"), response("g", "b")),
            user("and"),
        ]

    def test_late_responses_to_a_turn_in_two_contents_stand_behind_the_second(self) -> None:
        """Where nothing answers one of them, that one leaves."""
        first, second = model(call("f", "a")), model(call("g", "b"))
        late = [user("q"), first, second, user("and"), user(response("f", "a"), response("g", "b"))]
        fixed = [user("q"), first, second, user(response("f", "a"), response("g", "b")), user("and")]
        assert repair(late, format="gemini", model=STRICT).messages == fixed
        half = [user("q"), first, second, user("and"), user(response("f", "a"))]
        assert repair(half, format="gemini", model=STRICT).messages == [
            user("q"),
            first,
            user(response("f", "a")),
            user("and"),
        ]

    def test_a_step_that_loses_its_signature_leaves_and_words_beside_its_responses_stay(self) -> None:
        """Of the calls of one step only the first is signed; without any signature each stays alone."""
        signed = model(call("f", "a", signed=True))
        turn = [signed, model(call("g", "b"))]
        half = [user("q"), *turn, user("see", response("g", "b")), user("so")]
        assert repair(half, format="gemini", model=STRICT).messages == [user("q"), user("see"), user("so")]
        half[1] = model(call("f", "a"))
        assert repair(half, format="gemini", model=STRICT).messages == [user("q"), *half[2:]]

    def test_split_responses_to_a_turn_in_two_contents_are_joined(self) -> None:
        """Also where name and order match them with the calls the other way round."""
        turn = [user("q"), model(call("f")), model("so", call("f"))]
        split = [*turn, user(response("f")), user(response("f"))]
        assert repair(split, format="gemini", model=STRICT).messages == [
            *turn,
            user(response("f"), response("f")),
        ]

    @pytest.mark.parametrize("ids", [True, False])
    @pytest.mark.parametrize("name", [None, "gemini-2.5-flash", "gemini-2.5-flash-lite"])
    def test_responses_in_contents_of_their_own_are_taken_by_the_models_that_do(
        self, name: str | None, ids: bool
    ) -> None:
        """By 2.x at the Gemini API (billed), and no fault where no model is named; not behind words."""
        turn = [user("q"), model(call("f", "a" if ids else None), call("g", "b" if ids else None))]
        apart = [user(response("f", "a" if ids else None)), user(response("g", "b" if ids else None))]
        split = [*turn, *apart, user("so")]
        assert validate(split, format="gemini", model=name) == []
        assert repair(split, format="gemini", model=name).changes == ()
        budget = {"counter": FixedCounter(1), "strict": True, "model": name, "format": "gemini"}
        assert fit({"contents": split}, 9, **budget).messages == split
        between = [*turn, apart[0], user("wait"), apart[1]]
        assert [v.rule for v in validate(between, format="gemini", model=name)] == ["late_result"]
        assert repair(between, format="gemini", model=name).messages == [
            *turn, user(*(part for one in apart for part in one["parts"])), user("wait")
        ]  # fmt: skip
        for other in (STRICT, "gemini-3-pro", "gemini-3.1-pro-preview"):
            assert "late_result" in [v.rule for v in validate(split, format="gemini", model=other)]
            with pytest.raises(InvalidHistoryError):
                fit({"contents": split}, 9, **{**budget, "model": other})

    def test_calls_at_the_end_are_open(self) -> None:
        """Also those of a turn that came in two contents."""
        found = validate([user("q"), model(call("f", "a")), model(call("g"))], format="gemini")
        assert [(one.index, one.rule, one.fault) for one in found] == [
            (1, "open_call", False),
            (2, "open_call", False),
        ]

    @given(odd_conversations)
    def test_any_conversation_is_repaired(self, contents: list[dict[str, Any]]) -> None:
        """What comes out breaks no pair rule, stays so, and has parts of the input only.

        Without a user's content there is none that may come first.
        """
        before = copy.deepcopy(contents)
        repaired = repair(contents, format="gemini", model=STRICT)
        if broken(repaired.messages):
            assert {rule for _, rule in broken(repaired.messages)} == {"wrong_order"}
            assert not any(Gemini().kind(content) == "user" for content in repaired.messages)
        again = repair(repaired.messages, format="gemini", model=STRICT)
        assert again.messages == repaired.messages
        assert len(repaired.positions) == len(repaired.messages)
        assert contents == before
        said = [part for content in contents for part in content["parts"]]
        assert all(part in said for content in repaired.messages for part in content["parts"])


class TestFit:
    """What is fitted is what Gemini takes, in the caller's own objects."""

    @pytest.mark.parametrize("spelled", [list, snake, as_objects])
    @pytest.mark.parametrize("ids", [True, False])
    @pytest.mark.parametrize(
        "strategy",
        [SlidingWindow(), ClearToolResults(keep_results=1), TruncateText(), BOTH],
    )  # fmt: skip
    def test_a_fitted_agent_conversation_is_valid(self, spelled: Any, ids: bool, strategy: Any) -> None:
        """At every budget: no violations, whole turns, and the user first."""
        contents = spelled(agent(6, ids=ids))
        before = copy.deepcopy(contents)
        counter = WordCounter(format="gemini")
        whole = counter.count(contents)
        fitted = 0
        for budget in range(whole // 12, whole + 1, whole // 12):
            try:
                kept = fit(contents, budget, counter=counter, strategy=strategy, format="gemini").messages
            except BudgetExceededError:
                continue
            fitted += 1
            assert counter.count(kept) <= budget
            assert validate(kept, format="gemini") == []
            assert all(accepted_by_google(content) for content in kept)
            assert all(type(content) is type(contents[0]) for content in kept)
            assert mapping_of(kept[0])["role"] == "user"
        assert fitted > 1
        assert contents == before

    def test_a_cleared_response_is_still_an_object(self) -> None:
        """The placeholder stands where the text stood; what was signed is untouched."""
        contents = agent(4, ids=True)
        counter = WordCounter(format="gemini")
        budget = counter.count(contents) - 100
        kept = fit(contents, budget, counter=counter, strategy=ClearToolResults(), format="gemini").messages
        answers = [part["functionResponse"]["response"] for part in kept[2]["parts"]]
        assert answers[0] == {"result": "[trimtab: tool result cleared]"}
        assert [content for content in kept if content["role"] == "model"] == [
            content for content in contents if content["role"] == "model"
        ]

    @given(odd_conversations, st.integers(1, 9))
    def test_nothing_becomes_invalid_that_was_not(self, contents: list[dict[str, Any]], budget: int) -> None:
        """A conversation that is taken whole is taken fitted."""
        if validate(contents, format="gemini"):
            contents = [content for content in repair(contents, format="gemini").messages if content["parts"]]
        if broken(contents):
            return
        try:
            kept = fit(contents, budget, counter=FixedCounter(1, format="gemini"), format="gemini").messages
        except BudgetExceededError:
            return
        assert broken(kept) == []
        assert len(kept) <= budget


def requests_of(data_dir: Path) -> list[Any]:
    """Read the recorded requests to Gemini; all of them were taken, and billed."""
    lines = (data_dir / "golden_usage.jsonl").read_text(encoding="utf-8").splitlines()
    rows = map(json.loads, lines)
    return [row["request"] for row in rows if row["api"] == "generateContent"]


class TestRecorded:
    """247 recorded requests, through the Gemini API of 2025 and 2026."""

    def test_what_was_billed_has_no_violations(self, data_dir: Path) -> None:
        """Among them calls in contents behind one another, empty texts, and both spellings."""
        requests = requests_of(data_dir)
        assert len(requests) > 200
        for request in requests:
            assert validate(request, format="auto") == []
            assert repair(request).request == request

    def test_what_is_fitted_has_none_either(self, data_dir: Path) -> None:
        """At a budget a message, so that each length there can be is seen."""
        counter = FixedCounter(1, format="gemini")
        changed = 0
        for request in requests_of(data_dir):
            before = json.dumps(request)
            taken = all(accepted_by_google(content) for content in request["contents"])
            for budget in range(1, len(request["contents"]) + 1):
                try:
                    fitted = fit({**request, "systemInstruction": None}, budget, counter=counter, tools=None)
                except BudgetExceededError:
                    continue
                changed += len(fitted.messages) < len(request["contents"])
                assert validate(fitted.request) == []
                assert not taken or all(map(types.Content.model_validate, fitted.messages))
            assert json.dumps(request) == before
        assert changed > 10
