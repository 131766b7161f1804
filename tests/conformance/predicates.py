"""The rules of SPEC as predicates over an answer, told from the input alone and without our code.

An answer of a selection is `{"kept": [index, …]}` or `{"error": name}`. Every rule is asked about
both answers, each by itself: one that `expected` breaks and ours keeps is a difference we want.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from tests.conformance.judging import Answer, Rule
from tests.pair_rules import brute_pairs

Kind = Literal[
    "sliding_window",
    "drop_newest",
    "drop",
    "strict",
    "priority_based",
    "truncate_text",
    "summarize",
    "custom",
]
"""Which strategy chose."""

OVER_BUDGET = "BudgetExceededError"
MISCONFIGURED = ("ConfigurationError", "UnknownNameError")


@dataclass(frozen=True, kw_only=True)
class Selection:
    """What was chosen from, and by what."""

    messages: Sequence[Mapping[str, Any]]
    limit: int
    size: Callable[[Sequence[Mapping[str, Any]]], int]
    """Tokens of a request of these messages, by a counter that is not ours."""
    kind: Kind
    in_block: bool = False
    """True for a block of its own, where only open calls must stay (the last sentence of A4)."""
    protect_roles: frozenset[str] = frozenset()
    keep_turns: bool = False
    min_messages: int = 0

    @cached_property
    def units(self) -> list[tuple[int, ...]]:
        """Calls with their results, and all else alone; by the pair rules of tests/pair_rules.py."""
        owner, _ = brute_pairs([{"role": "", "tool_call_id": "", **one} for one in self.messages])
        members: dict[int, list[int]] = {}
        for index in range(len(self.messages)):
            call, repeated = owner.get(index, (None, False))
            members.setdefault(index if call is None or repeated else call, []).append(index)
        return [tuple(unit) for _, unit in sorted(members.items())]

    @cached_property
    def stay(self) -> set[int]:
        """Messages A4 lets neither leave: pinned and held ones."""
        roles = [message.get("role") for message in self.messages]
        stay = set(self._open_calls())
        if not self.in_block and self.messages:
            head = 0
            while head < len(roles) and roles[head] in ("system", "developer"):
                stay.add(head)
                head += 1
            stay.update([index for index, role in enumerate(roles) if role == "user"][-1:])
            stay.add(len(roles) - 1)
        return {index for unit in self.units if stay.intersection(unit) for index in unit}

    def _open_calls(self) -> list[int]:
        _, unanswered = brute_pairs([{"role": "", "tool_call_id": "", **one} for one in self.messages])
        return [
            index
            for index, _ in unanswered
            if all(message.get("role") not in ("user", "assistant") for message in self.messages[index + 1 :])
        ]

    @cached_property
    def protected(self) -> set[int]:
        """Messages that stay, those of units with a protected role included."""
        return self.stay | {
            index
            for unit in self.units
            if any(self.messages[i].get("role") in self.protect_roles for i in unit)
            for index in unit
        }

    @cached_property
    def free(self) -> list[tuple[int, ...]]:
        """Units the strategy may take, oldest first."""
        return [unit for unit in self.units if not self.protected.intersection(unit)]

    def tokens(self, indices: set[int]) -> int:
        """Return the size of a request of these messages."""
        return self.size([self.messages[index] for index in sorted(indices)])

    def fits(self, indices: set[int]) -> bool:
        """Tell whether a request of these messages keeps to the limit."""
        return self.tokens(indices) <= self.limit

    def opener(self, unit: tuple[int, ...]) -> tuple[int, ...]:
        """Return the unit of the user message whose turn a unit is in; empty if there is none."""
        for index in range(unit[0], -1, -1):
            if self.messages[index].get("role") == "user":
                return next(found for found in self.units if index in found)
        return ()

    def left(self, answer: Answer) -> list[tuple[int, ...]]:
        """List the free units an answer lets go, oldest first."""
        kept = set(answer["kept"])
        return [unit for unit in self.free if not kept.issuperset(unit)]


def selection_rules(case: Selection) -> dict[str, Rule]:
    """Give the rules that explain why a selection differs from a reference's, the weightiest first."""
    rules = {"A1": within_limit, "A2": units_whole, "A4": what_must_stays}
    if case.kind == "sliding_window":
        rules["C3"] = cut_is_a_window
    return {name: _over(case, rule) for name, rule in rules.items()}


def selection_guards(case: Selection) -> dict[str, Rule]:
    """Give the rules that hold ours to what is left: with the others they allow one answer only."""
    guards: dict[str, Callable[[Selection, Answer], bool]] = {"A3": input_once_in_order, "A8": tokens_add_up}
    guards |= {
        "sliding_window": {"A11": no_needless_window},
        "drop_newest": {"C4": newest_left},
        "priority_based": {"C5": best_scores_stay},
        "drop": {"C2": all_or_nothing},
        "strict": {"C1": all_or_error},
        "custom": {},
    }[case.kind]
    return {name: _over(case, rule) for name, rule in guards.items()}


def _over(case: Selection, rule: Callable[[Selection, Answer], bool]) -> Rule:
    return lambda answer: rule(case, answer)


def tokens_add_up(case: Selection, answer: Answer) -> bool:
    """A8: the size told is the size of what came out."""
    return "tokens" not in answer or answer["tokens"] == case.tokens(set(answer["kept"]))


def within_limit(case: Selection, answer: Answer) -> bool:
    """A1: what comes out is at most the budget."""
    return "error" in answer or case.fits(set(answer["kept"]))


def units_whole(case: Selection, answer: Answer) -> bool:
    """A2: no result without its call, no call without all of its results."""
    kept = set(answer.get("kept", ()))
    return all(kept.issuperset(unit) or kept.isdisjoint(unit) for unit in case.units)


def input_once_in_order(case: Selection, answer: Answer) -> bool:
    """A3: what is kept is the input's, once each, in its order."""
    kept = answer.get("kept", ())
    return list(kept) == sorted(set(kept).intersection(range(len(case.messages))))


def what_must_stays(case: Selection, answer: Answer) -> bool:
    """A4: what is pinned or held stays, and an error is raised exactly when it does not fit."""
    if "error" not in answer:
        return case.stay.issubset(answer["kept"]) and bool(
            answer["kept"] or not case.messages or case.in_block
        )
    everything = set(range(len(case.messages)))
    must = everything if case.kind == "strict" else case.protected
    return answer["error"] == OVER_BUDGET and not case.fits(must)


def pinned_unchanged(case: Selection) -> Rule:
    """A4: what must stays, and what is pinned is as it was (held texts may be shortened)."""
    held = case.units[-1] if case.units else ()

    def keeps(answer: Answer) -> bool:
        changed = set(answer.get("changed", ()))
        return what_must_stays(case, answer) and changed.issubset(held)

    return keeps


def cut_is_a_window(case: Selection, answer: Answer) -> bool:
    """C3: the oldest leave, protected ones never; beside the cut only the opener of its turn stays."""
    if "error" in answer:
        return True
    left, kept = case.left(answer), set(answer["kept"])
    if not left or not case.protected <= kept:
        return case.protected <= kept
    if case.min_messages and len(kept) < case.min_messages:
        return kept == case.protected
    older = [unit for unit in case.free if unit < left[-1] and kept.issuperset(unit)]
    newer = [unit for unit in case.free if unit > left[-1]]
    if not newer:
        return not older
    opener = case.opener(newer[0])
    wanted = [opener] if opener in case.free and opener != newer[0] else []
    return older == wanted and _turns_whole(case, newer[0], opener)


def _turns_whole(case: Selection, cut: tuple[int, ...], opener: tuple[int, ...]) -> bool:
    """C3, `keep_turns`: a turn is cut into only if it alone passes the limit, with the question behind it."""
    if not case.keep_turns or not opener or opener == cut:
        return True
    turn = {index for unit in case.units if case.opener(unit) == opener for index in unit}
    asked = (unit for unit in case.units if unit > opener and case.opener(unit) == unit)
    return not case.fits(turn.union(case.protected, next(asked, ())))


def no_needless_window(case: Selection, answer: Answer) -> bool:
    """A11: putting back the last unit taken, with what C3 keeps beside it, would pass the limit."""
    if "error" in answer or not (left := case.left(answer)):
        return True
    kept = set(answer["kept"])
    if case.min_messages and kept == case.protected:
        return True
    opener = case.opener(left[-1])
    back = {*left[-1], *opener}
    if case.keep_turns and opener:
        back.update(index for unit in left if case.opener(unit) == opener for index in unit)
    return not case.fits(kept | back)


def newest_left(case: Selection, answer: Answer) -> bool:
    """C4 and A11: the newest leave first, and no more of them than must."""
    if "error" in answer or not (left := case.left(answer)):
        return True
    kept = set(answer["kept"])
    oldest_stay = all(kept.isdisjoint(unit) for unit in case.free if unit >= left[0])
    return oldest_stay and not case.fits(kept.union(left[0]))


def all_or_nothing(case: Selection, answer: Answer) -> bool:
    """C2: what does not fit leaves whole."""
    everything = set(range(len(case.messages)))
    return "error" in answer or set(answer["kept"]) == (
        everything if case.fits(everything) else case.protected
    )


def all_or_error(case: Selection, answer: Answer) -> bool:
    """C1: what does not fit is an error."""
    return ("error" in answer) != case.fits(set(range(len(case.messages))))


def r5_score(messages: Sequence[Mapping[str, Any]], index: int) -> float:
    """Return R5's score, with a developer message as what A4 takes it for: a system message."""
    recency = (index + 1) / len(messages)
    message = messages[index]
    role = message.get("role")
    if role in ("system", "developer"):
        return float("inf")
    if role == "assistant" and message.get("tool_calls"):
        return 80 + 40 * recency
    base, slope = {"user": (100, 50), "assistant": (60, 30), "tool": (50, 40)}.get(role or "", (10, 5))
    return base + slope * recency


def best_scores_stay(case: Selection, answer: Answer) -> bool:
    """C5 and A11: a unit leaves only if it does not fit beside what stays and what scores better."""
    if "error" in answer:
        return True
    kept = set(answer["kept"])
    rank = {unit: (max(r5_score(case.messages, i) for i in unit), unit[0]) for unit in case.free}
    for unit in case.left(answer):
        better = [other for other in case.free if rank[other] > rank[unit] and kept.issuperset(other)]
        if case.fits(case.protected.union(unit, *better)):
            return False
    return True


def budget_rules(output_reserve: int, overhead: int, *, window: object) -> dict[str, Rule]:
    """D1: window above 0, the rest from 0 up and below it together, whole numbers, else an error.

    Input room is what is left.
    """
    valid = is_number(window, least=1) and is_number(output_reserve, least=0) and is_number(overhead, least=0)

    def keeps(answer: Answer) -> bool:
        if not isinstance(window, int) or not valid:
            return answer.get("error") in MISCONFIGURED
        left = window - output_reserve - overhead
        if left <= 0:
            return answer.get("error") in MISCONFIGURED
        room = answer.get("available_for_history", answer.get("effective_input_limit", left))
        return bool(room == left)

    return {"D1": keeps}


def is_number(value: object, *, least: int) -> bool:
    """Tell whether a value is a number of tokens, and not below the least."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def same_objects_rule(messages: Sequence[Mapping[str, Any]], shown: Sequence[Any]) -> dict[str, Rule]:
    """A3: what comes out are messages of the input, those that `shown` shows by their text."""
    texts = [message["content"] for message in messages]
    wanted = [messages[texts.index(message["content"])] for message in shown]
    return {"A3": lambda answer: answer["result"] == wanted}


def score_rules(messages: Sequence[Mapping[str, Any]]) -> dict[str, Rule]:
    """C5: R5's scores, and A4: a developer message is a system message."""
    scores = [r5_score(messages, index) for index in range(len(messages))]
    return {"A4": lambda answer: answer["scores"] == scores}


def default_rule() -> dict[str, Rule]:
    """C9: large results are clamped, then whole units leave, then the newest is shortened."""
    steps = ["clamp_results", "sliding_window", "truncate_text"]
    return {"C9": lambda answer: answer.get("strategy") == steps}


def default_counter_rule() -> dict[str, Rule]:
    """B0: where no counter is given an estimate counts, so that is no error."""
    return {"B0": lambda answer: "error" not in answer}


def summarizer_rule() -> dict[str, Rule]:
    """C10: `sliding_window_with_summary` summarizes, and without a summarizer is an error at once."""
    return {"C10": lambda answer: answer.get("error") in MISCONFIGURED}


def zones_rule(numbers: Sequence[Any]) -> dict[str, Rule]:
    """E2: what a budget is shared by are whole numbers, not negative; anything else is an error."""
    sound = all(is_number(value, least=0) for value in numbers)
    return {"E2": lambda answer: (answer.get("error") in MISCONFIGURED) != sound}


KNOWN_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
"""Roles of messages in the vectors that a provider documents."""


def read_rule(messages: Sequence[Mapping[str, Any]]) -> dict[str, Rule]:
    """A9: an answer or a typed error; a message of which nobody knows whom it is from is no count."""
    is_read = all(
        isinstance(message.get("role"), str)
        and message["role"] in KNOWN_ROLES
        and all("type" in part for part in _parts_of(message.get("content")))
        for message in messages
    )
    return {"A9": lambda answer: (answer.get("error") == "FormatError") != is_read}


def _parts_of(content: object) -> list[Mapping[str, Any]]:
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def overhead_rule(overhead: object) -> dict[str, Rule]:
    """B4: no count is negative, so what a message costs beside its texts is a whole number from 0 up."""
    sound = is_number(overhead, least=0)
    return {"B4": lambda answer: (answer.get("error") in MISCONFIGURED) != sound}


def answered_text_rule() -> dict[str, Rule]:
    """E6: what is no text is no summary, but a failure."""
    return {"E6": lambda answer: answer["summary"] is None}
