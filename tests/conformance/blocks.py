"""A request of several blocks as the rules of SPEC see it: what each asks for, and what it was offered.

An answer is `{"kept": [(block, index), …], …}` in the order of the request or `{"error": name}`. It may
have `changed`, messages by (block, index) that are not as they were, and `summaries`, texts by block,
which stand at index `SUMMARY`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from tests.conformance.judging import Answer
from tests.conformance.predicates import Selection, cut_is_a_window

Message = Mapping[str, Any]
Item = tuple[int, int]

SUMMARY = -1
"""Index of a summary: it stands before what is left of its block."""

MARKED = '<summary of="{count} message{s}"{whose} by="trimtab">\n{text}\n</summary>'


def whose(roles: Collection[str]) -> str:
    """E14: write whose words a mark stands for, where they are not the user's and the assistant's alone."""
    named = [role for role in ("system", "user", "assistant", "tool") if role in roles]
    return "" if {"user", "assistant"}.issuperset(named) else f' from="{", ".join(named)}"'


"""How trimtab marks what it wrote (SPEC C8)."""


@dataclass(frozen=True, kw_only=True)
class Slot:
    """One block, and what it asks for."""

    chosen: Selection
    """Its messages and its strategy; the limit is not read."""
    rank: float = 0
    place: float = math.inf
    floor_tokens: int = 0
    cap_tokens: int | None = None
    whole: bool = False
    """D7: it is not trimmed, but for its cap."""
    summary: str = ""
    """What its summarizer writes."""

    @cached_property
    def need(self) -> int:
        """Tokens of all of it."""
        return self.chosen.size(self.chosen.messages)

    @cached_property
    def most(self) -> int:
        """Tokens it can be offered."""
        return self.need if self.cap_tokens is None else min(self.need, self.cap_tokens)

    @cached_property
    def must(self) -> int:
        """Tokens that are set aside for it first."""
        return self.most if self.whole else self.chosen.size([self.chosen.messages[i] for i in self.stay])

    @cached_property
    def stay(self) -> list[int]:
        """Messages that may not leave, in order."""
        return sorted(self.chosen.stay)

    @cached_property
    def free_tokens(self) -> int:
        """Tokens of what may leave."""
        free = {index for unit in self.chosen.free for index in unit}
        return self.chosen.size([self.chosen.messages[i] for i in sorted(free)])

    def window_tokens(self, limit: int) -> int:
        """Return what the largest window within a limit takes."""
        chosen = replace(self.chosen, limit=limit)
        for cut, unit in enumerate(chosen.free):
            kept = chosen.protected.union(chosen.opener(unit), *chosen.free[cut:])
            if chosen.fits(kept) and cut_is_a_window(chosen, {"kept": sorted(kept)}):
                return chosen.tokens(kept)
        return chosen.tokens(chosen.protected)

    @property
    def marked_summary(self) -> str:
        """The message its summary makes."""
        free = [self.chosen.messages[index] for unit in self.chosen.free for index in unit]
        count, said_by = len(free), {message["role"] for message in free}
        return MARKED.format(
            count=count, s="" if count == 1 else "s", text=self.summary, whose=whose(said_by)
        )


@dataclass(frozen=True, kw_only=True)
class Composition:
    """What a request was made of: blocks in the order they were added."""

    slots: Sequence[Slot]
    room: int
    size: Callable[[Sequence[Message]], int]
    """Tokens of messages, by a counter that is not ours."""
    ties: Literal["newest", "first"] = "newest"
    faults: bool = False
    """An option is out of range (D2), so there is no answer but an error."""

    @cached_property
    def items(self) -> list[Item]:
        """Everything that could come out, in the order of the request (D4)."""
        order = sorted(range(len(self.slots)), key=lambda at: (self.slots[at].place, at))
        first = {at: SUMMARY if self.slots[at].chosen.kind == "summarize" else 0 for at in order}
        return [(at, i) for at in order for i in range(first[at], len(self.slots[at].chosen.messages))]

    @cached_property
    def held(self) -> list[int]:
        """What is held back for each block until its turn: floors, if those of all fit (D5)."""
        must = [slot.must for slot in self.slots]
        floors = [max(slot.must, min(slot.floor_tokens, slot.most)) for slot in self.slots]
        return must if sum(floors) > self.room else floors

    @cached_property
    def turns(self) -> list[int]:
        """The blocks in the order they are served: by rank, then by the rule for ties (D6)."""
        sign = -1 if self.ties == "newest" else 1
        return sorted(range(len(self.slots)), key=lambda at: (-self.slots[at].rank, sign * at))

    def output(self, answer: Answer, at: int | None = None) -> list[Message]:
        """Return the messages of an answer, or of one block of it."""
        changed, summaries = answer.get("changed", {}), answer.get("summaries", {})
        return [
            {"role": "user", "content": summaries.get(block, self.slots[block].marked_summary)}
            if index == SUMMARY
            else changed.get((block, index), self.slots[block].chosen.messages[index])
            for block, index in answer["kept"]
            if at in (None, block)
        ]

    def own(self, answer: Answer, at: int) -> Answer:
        """Return what one block kept."""
        return {"kept": [index for block, index in answer["kept"] if block == at and index != SUMMARY]}

    def changed(self, answer: Answer, at: int) -> dict[int, Message]:
        """Return the messages of one block that are there, but not as they were."""
        changed = answer.get("changed", {})
        return {i: changed[at, i] for i in self.own(answer, at)["kept"] if (at, i) in changed}

    def used(self, answer: Answer, at: int) -> int:
        """Return the tokens of one block."""
        return self.slots[at].chosen.size(self.output(answer, at))

    def offered(self, answer: Answer, turns: Sequence[int]) -> dict[int, int]:
        """Return what each block was offered if they were served in this order (D5).

        Those before took theirs, and for those after what is held back was taken off. What a block has
        above that it got in a second turn, of room that was left; so in its first turn it had less.
        """
        used = {at: self.used(answer, at) for at in turns}
        left, limits, first, known = self.room - sum(self.held), {}, {}, True
        for at in turns:
            slot = self.slots[at]
            limits[at] = min(slot.most, left + self.held[at])
            first[at] = used[at]
            if used[at] > limits[at] and known:
                known = slot.chosen.kind == "sliding_window"  # of others only that it had no more
                first[at] = slot.window_tokens(limits[at]) if known else limits[at]
            left += self.held[at] - first[at]
        left = self.room - sum(used.values())
        for at in reversed(turns):
            if self.slots[at].chosen.kind != "summarize":  # it is asked once
                limits[at] = min(self.slots[at].most, max(limits[at], used[at] + left))
            left += used[at] - first[at]
        return limits
