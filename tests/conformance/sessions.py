"""SPEC E as a referee: it walks what a session did, step by step, and says which rule is broken first.

It sees one answer and what was asked, and shares no code with trimtab. Up to its first breach an answer is
as the rules want it, so two answers are equal as long as both keep them: the first breach of the one is
where they part. What a session shows depends on all that was before, so nothing is judged after it.

A breach has a rule only where the answer's own values show that it is broken; else it is `UNEXPLAINED`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from tests.conformance.blocks import MARKED, whose
from tests.conformance.compositions import CUT
from tests.conformance.counters import text_function
from tests.conformance.judging import Answer, Rule
from tests.conformance.predicates import is_number
from tests.conformance.scripted import NAMES, number, shape, summary_of
from tests.session.plain import closed

Message = Mapping[str, Any]

UNEXPLAINED = "no rule"

RULES = ("A1", "A4", "C8", "D1", "E2", "E3", "E4", "E5", "E6", "E8", "E10")
"""Rules a breach can be of."""


class Breach(Exception):
    """The answer is not what the rules want."""

    def __init__(self, rule: str, why: str) -> None:
        super().__init__(f"{rule}: {why}")
        self.rule = rule


def session_rules(data: Mapping[str, Any]) -> dict[str, Rule]:
    """Give the rules of a session; an answer breaks the one that it breaks first."""

    def keeps(rule: str) -> Rule:
        def told(answer: Answer) -> bool:
            breach = first_breach(data, answer)
            return breach is None or breach.rule != rule

        return told

    return {rule: keeps(rule) for rule in RULES}


def session_guards(data: Mapping[str, Any]) -> dict[str, Rule]:
    """Hold ours to all of SPEC E: no breach, not even one without a rule."""
    return {"E": lambda answer: first_breach(data, answer) is None}


def first_breach(data: Mapping[str, Any], answer: Answer) -> Breach | None:
    """Walk an answer; None if it is all as it has to be."""
    try:
        _Walk(data).through(answer)
    except Breach as breach:
        return breach
    return None


@dataclass(slots=True)
class _Unit:
    """Messages that stay or leave together: `(place, as added, as shown)`."""

    members: list[tuple[int, Message, Message]]
    unanswered: set[str]
    in_view: bool = True


@dataclass(slots=True)
class _Walk:
    """Where a session stands, and what the answer still has to tell of the step it is at."""

    data: Mapping[str, Any]
    size: Callable[[Message], int] = field(init=False)
    budget: int = 0
    system: list[Message] = field(default_factory=list)
    anchors: list[Message] = field(default_factory=list)
    summary: str | None = None
    stands_for: int = 0
    said_by: frozenset[str] = frozenset()
    """E14: roles of what the summary stands for."""
    recent: list[_Unit] = field(default_factory=list)
    pending: list[_Unit] = field(default_factory=list)
    rounds: int = 0
    failures: int = 0
    retry_tokens: int = 0
    places: int = 0
    asked: int = 0
    turn: int = -1
    user: int = -1
    hooks: list[Any] = field(default_factory=list)
    calls: list[Any] = field(default_factory=list)
    options: Mapping[str, Any] = field(default_factory=dict)
    functions: Mapping[str, Any] = field(default_factory=dict)
    over: bool = False
    restored: bool = False
    written_anchor: list[Message] = field(default_factory=list)
    """The first summary of mode "anchored", where no anchors were given."""
    were_recent: list[_Unit] = field(default_factory=list)
    told: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.options = self.functions = self.data["options"]
        self.size = s2_size(self.options)

    # -- the whole

    def through(self, answer: Answer) -> None:
        wrong, rule = self._begin()
        if answer.get("error") != wrong:
            raise Breach(rule, f"expected error {wrong}, found {answer.get('error')}")
        if wrong:
            return
        _same(UNEXPLAINED, len(answer["steps"]), len(self.data["steps"]))
        for step, told in zip(self.data["steps"], answer["steps"], strict=True):
            self._step(step, told, final=answer["final"])
            if self.data.get("snapshot_each") or step.get("snapshot"):
                self._shown(told["after"])
        self._shown(answer["final"])

    def _begin(self) -> tuple[str | None, str]:
        """E2: options are checked when the session is made; a budget has whole tokens (D1)."""
        options = self.options
        wrong, rule = _budget_fault(options.get("token_budget"))
        if not is_number(options.get("message_overhead", 4), least=0):
            return "ConfigurationError", "E2"
        for name in NAMES:
            value = options.get(name)
            if isinstance(value, (int, float)) and value < _LEAST.get(name, 1):
                return "ConfigurationError", "E2"
        if wrong:
            return wrong, rule
        self.budget = options["token_budget"]
        if options.get("system_prompt"):
            self.system = [{"role": "system", "content": options["system_prompt"]}]
        return self._anchored(options.get("anchor", [])), "E2"

    def _anchored(self, anchors: list[Message]) -> str | None:
        """E2: anchors have a cap; E3: what is permanent leaves room, or nothing is changed."""
        before, self.anchors = self.anchors, anchors
        if self._tokens(anchors) <= self._limit("max_anchor_tokens") and self._permanent() <= self.budget:
            return None
        self.anchors = before
        return "BudgetExceededError"

    def _step(self, step: Mapping[str, Any], told: Mapping[str, Any], *, final: Answer) -> None:
        self.over = False
        self.told = {"final": final, **told}
        self.hooks, self.calls = list(told.get("hooks", ())), list(told.get("summarizer_calls", ()))
        wrong, rule = self._carry_out(step)
        if told.get("error") != wrong:
            throwing = self.functions["hooks"].get("throw_in", ()) if self._hears else ()
            throws = any(hook["hook"] in throwing for hook in told.get("hooks", ()))
            raise Breach("E8" if throws else rule, f"expected error {wrong}, found {told.get('error')}")
        if self.hooks:
            self._wrong_hook(self.hooks[0], None)
        if self.calls:
            self._wrong_call(self.calls[0], None)

    def _carry_out(self, step: Mapping[str, Any]) -> tuple[str | None, str]:
        """Do a step; return the error it has to end with, and by which rule."""
        return {
            "set_budget": self._set_budget,
            "set_anchor": self._set_anchor,
            "clear": self._clear,
            "round_trip": self._round_trip,
            "serialize": self._serialize,
        }.get(step["do"], self._add_all)(step)

    def _add_all(self, step: Mapping[str, Any]) -> tuple[str | None, str]:
        messages = step["messages"] if "messages" in step else [step["message"]]
        for message in messages * 2 if step["do"] == "add_same_object_twice" else messages:
            self._add(message)
        return None, UNEXPLAINED

    def _set_budget(self, step: Mapping[str, Any]) -> tuple[str | None, str]:
        wrong, rule = _budget_fault(step["value"])
        if wrong:
            return wrong, rule
        if self._permanent() > step["value"]:
            return "BudgetExceededError", "E3"
        self.budget = step["value"]
        self._make_room(summaries=8)
        return None, UNEXPLAINED

    def _set_anchor(self, step: Mapping[str, Any]) -> tuple[str | None, str]:
        wrong = self._anchored(step["messages"])
        if wrong is None:
            self._make_room(summaries=8)
        return wrong, "E2"

    def _clear(self, step: Mapping[str, Any]) -> tuple[str | None, str]:
        self.recent, self.pending, self.summary, self.stands_for, self.rounds = [], [], None, 0, 0
        self.said_by = frozenset()
        self.failures, self.retry_tokens, self.turn, self.user = 0, 0, -1, -1
        self.anchors, self.written_anchor = self.options.get("anchor", []), []
        return None, UNEXPLAINED

    def _round_trip(self, step: Mapping[str, Any]) -> tuple[str | None, str]:
        if self.functions.get("summarizer") and not step["options"].get("summarizer"):
            return "ConfigurationError", "E10"
        self.functions, self.restored = step["options"], True
        return None, UNEXPLAINED

    def _serialize(self, step: Mapping[str, Any]) -> tuple[str | None, str]:
        _same(UNEXPLAINED, self.told["state"], self._saved())
        return None, UNEXPLAINED

    # -- sizes and limits

    def _tokens(self, messages: Sequence[Message]) -> int:
        return sum(map(self.size, messages))

    def _weight(self, *units: _Unit) -> int:
        return sum(self.size(shown) for unit in units for _, _, shown in unit.members)

    def _permanent(self) -> int:
        return self._tokens([*self.system, *self.anchors, *self.written_anchor])

    def _summary_message(self, text: str, messages: int, said_by: Collection[str]) -> Message:
        body = text.strip().replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        mark = MARKED.format(count=messages, s="" if messages == 1 else "s", text=body, whose=whose(said_by))
        return {"role": self.options.get("summary_role", "system"), "content": mark}

    def _summary_tokens(self) -> int:
        return 0 if self.summary is None else self.size(self._marked())

    def _marked(self) -> Message:
        return self._summary_message(self.summary or "", self.stands_for, self.said_by)

    def _limit(self, name: str) -> int:
        """E2: what is not given is a part of the budget in force, rounded down."""
        if name in self.options:
            return int(self.options[name])
        if name == "max_anchor_tokens":
            return self._limit("max_summary_tokens") * 4 // 10
        return self.budget * (1 if name == "summarize_threshold_tokens" else 3) // 10

    def _total(self) -> int:
        waiting = [unit for unit in self.pending if unit.in_view]
        return self._permanent() + self._summary_tokens() + self._weight(*waiting, *self.recent)

    def _target(self) -> int:
        """E3: what recent messages come down to; S3 says what the summary's share is."""
        after = max(0, self.budget - self._permanent())
        least, summary, share = self._limit("min_recent_tokens"), self._summary_tokens(), 0
        if self.functions.get("summarizer"):
            share = min(self._limit("max_summary_tokens"), max(0, after - least))
        return max(0, after - max(summary, share), min(least, after - summary))

    def _stays(self, unit: _Unit) -> bool:
        """A4: the newest unit, that of the latest user message, and open calls."""
        at = {place for place, _, _ in unit.members}
        is_open = bool(unit.unanswered) and self.turn in at
        return is_open or self.user in at or self.places - 1 in at

    # -- what is added, and what leaves

    def _add(self, message: Message) -> None:
        place, self.places = self.places, self.places + 1
        call_id = message.get("tool_call_id") if message["role"] == "tool" else None
        owner = next((u for u in reversed(self._live()) if call_id and call_id in u.unanswered), None)
        if owner is not None:
            owner.members.append((place, message, message))
            owner.unanswered.discard(str(call_id))
            if owner in self.pending:  # E4: a unit is in one place
                self.pending.remove(owner)
                self.recent = sorted([*self.recent, owner], key=_place)
        else:
            shown = _as_text(message) if message["role"] == "tool" else message
            calls = {call["id"] for call in message.get("tool_calls") or ()}
            self.recent.append(_Unit([(place, message, shown)], calls))
        if message["role"] in ("user", "assistant"):
            self.turn = place
        if message["role"] == "user":
            self.user = place
        self._make_room()

    def _live(self) -> list[_Unit]:
        return sorted([*self.pending, *self.recent], key=_place)

    def _make_room(self, *, summaries: int = 1) -> None:
        """E3, E6, E8: what passing the budget brings about, in order; an order is caught up with."""
        total = self._total()
        if total > self.budget:
            self.over = True
            self._say({"hook": "on_budget_exceeded", "total": total, "budget": self.budget})
            self.were_recent = list(self.recent)
            target, leaving = self._target(), list[_Unit]()
            for unit in self.recent:
                if self._weight(*self.recent) - self._weight(*leaving) > target and not self._stays(unit):
                    leaving.append(unit)
            if leaving:
                self.recent = [unit for unit in self.recent if unit not in leaving]
                self.pending = sorted([*self.pending, *leaving], key=_place)
                self._say({"hook": "on_evict", "messages": _contents(leaving), "reason": "budget"})
            for _ in range(summaries):
                if self._is_due():
                    self._summarize()
        gone = self._look()
        if gone:
            self._say({"hook": "on_evict", "messages": _contents(gone), "reason": "truncation"})

    def _look(self) -> list[_Unit]:
        """E3: show what stays, then the newest recent units that fit, then those that wait.

        Returns:
            What left the view.
        """
        room = self.budget - self._permanent() - self._summary_tokens()
        live = self._live()
        stay = [unit for unit in self.recent if self._stays(unit)]
        rest = [unit for unit in self.recent if unit not in stay]
        room -= self._weight(*stay)
        seen, full = list(stay), False
        for unit in (*reversed(rest), *reversed(self.pending)):
            full = full or self._weight(unit) > room
            if not full:
                seen.append(unit)
                room -= self._weight(unit)
        gone = [unit for unit in live if unit.in_view and unit not in seen]
        for unit in live:
            unit.in_view = unit in seen
        return gone

    # -- summaries

    def _is_due(self) -> bool:
        """E6: enough waits; E7: after a failure, more than waited then, and (our own rule) twice as much.

        Our own rule, too: after a summary that took several calls, half a threshold for each of them.
        """
        waiting = self._weight(*self.pending)
        if not self.functions.get("summarizer") or waiting < max(1, self.retry_tokens):
            return False
        threshold = max(1, self._limit("summarize_threshold_tokens"))
        messages = sum(len(unit.members) for unit in self.pending)
        enough = messages >= self.options.get("summarize_threshold_messages", 6)
        return waiting >= threshold or (enough and 2 * waiting >= threshold)

    def _summarize(self) -> None:
        units = self.pending[:1]
        while len(units) < len(self.pending):
            if self._weight(*self.pending[: len(units) + 1]) > self.budget:
                break
            units = self.pending[: len(units) + 1]
        messages = _in_order(units)
        stands_for = self.stands_for + len(messages)
        said_by = self.said_by | {added["role"] for _, added, _ in messages}
        becomes_anchor, cap = self._anchoring()
        limit = min(
            cap, self._summary_tokens() + self._weight(*units) - 1
        )  # E6: smaller than what it replaces
        first, existing = [shown for _, _, shown in messages], self.summary
        if self.options.get("strategy") in ("rolling", "anchored") and self.summary is not None:  # E5
            first = [{**self._marked(), "role": "user"}, *first]
            existing = None

        def fits(text: str) -> bool:
            return self.size(self._summary_message(text, stands_for, said_by)) <= limit

        text, before = None, self.asked
        if self.size(self._summary_message("", stands_for, said_by)) < limit:
            text = self._ask(first, existing)
        text, compressed = self._compressed(text, fits)
        if text and not fits(text):
            text = self._cut_of(text, fits)
        if not text:
            threshold = max(1, self._limit("summarize_threshold_tokens"))
            self.failures += 1
            waiting = self._weight(*self.pending)
            self.retry_tokens = max(waiting + threshold * 2 ** (self.failures - 1), 2 * waiting)
            return
        for old, new in compressed:
            self._say({"hook": "on_summary_compressed", "old": old, "new": new})
        said = {"input": [shown["content"] for _, _, shown in messages], "existing": self.summary}
        self._say({"hook": "on_summarize", **said, "summary": text})
        self.pending = self.pending[len(units) :]
        self.rounds, self.failures = self.rounds + 1, 0
        self.retry_tokens = self._paid_back(self.asked - before)
        if becomes_anchor:
            self.written_anchor = [self._summary_message(text, stands_for, said_by)]
        else:
            self.summary, self.stands_for, self.said_by = text, stands_for, said_by

    def _paid_back(self, calls: int) -> int:
        half = (max(1, self._limit("summarize_threshold_tokens")) + 1) // 2
        return min(self.budget, calls * half) if calls > 1 else 0

    def _anchoring(self) -> tuple[bool, int]:
        """E5: the first summary of mode "anchored" stays, unless anchors are given; all keep to one cap."""
        cap = self._limit("max_summary_tokens")
        if self.options.get("strategy") != "anchored":
            return False, cap
        if not self.anchors and not self.written_anchor:
            return True, min(cap, self._limit("max_anchor_tokens"))
        return False, cap - self._tokens(self.written_anchor or self.anchors)

    def _compressed(
        self, text: str | None, fits: Callable[[str], bool]
    ) -> tuple[str | None, list[tuple[str, str]]]:
        """E6: a text that is too long is asked for again, so many times at most."""
        compressed: list[tuple[str, str]] = []
        while text and not fits(text) and len(compressed) < self.options.get("max_summary_rounds", 5):
            shorter = self._ask([{"role": "user", "content": text}], None)
            if not shorter:
                break
            compressed.append((text, shorter))
            text = shorter
        return text, compressed

    def _ask(self, messages: Sequence[Message], existing: str | None) -> str | None:
        self.asked += 1
        wanted = {
            "call": self.asked,
            "messages": [message["content"] for message in messages],
            "roles": [message["role"] for message in messages],
            "existing": existing,
        }
        told = self.calls.pop(0) if self.calls else None
        if told != wanted:
            self._wrong_call(told, wanted)
        try:
            answer = summary_of(self.functions["summarizer"], wanted)
        except RuntimeError:
            return None
        return answer.strip() if isinstance(answer, str) and answer.strip() else None

    def _cut_of(self, text: str, fits: Callable[[str], bool]) -> str | None:
        """E6: what is still too long is cut; take the cut the answer tells, if it is one."""
        if not fits(CUT[:1]):
            return None
        cut = next((hook["summary"] for hook in self.hooks if hook["hook"] == "on_summarize"), None)
        shown = self.told.get("after", self.told["final"])
        if not self._hears and shown["zones"]["summary_rounds"] > self.rounds:
            cut = shown["summary"]
        if cut is None and not fits(f"{text[:1]}{CUT}"):
            return None  # no part of it fits beside the marker
        head = str(cut).removesuffix(CUT)
        if not head or head == text or not text.startswith(head) or not fits(str(cut)):
            raise Breach("E6", "a summary that is too long is not cut to its cap")
        return str(cut)

    # -- what is told

    @property
    def _hears(self) -> bool:
        return "hooks" in self.functions

    def _say(self, wanted: Mapping[str, Any]) -> None:
        if not self._hears:
            return
        told = self.hooks.pop(0) if self.hooks else None
        if told != wanted:
            self._wrong_hook(told, wanted)

    def _wrong_hook(self, told: Mapping[str, Any] | None, wanted: Mapping[str, Any] | None) -> NoReturn:
        """Say which rule a hook breaks that is told and should not be, or the other way about."""
        why = f"told {told}, not {wanted}"
        name = None if told is None else told["hook"]
        expected = None if wanted is None else wanted["hook"]
        if told is not None and name == "on_budget_exceeded":
            if told["total"] <= told["budget"]:
                raise Breach("E3", f"acts although everything fits: {why}")
            raise Breach("E8" if expected != name else UNEXPLAINED, why)
        if told is not None and name == "on_evict" and told["reason"] == "budget" and self.over:
            self._wrong_eviction(told["messages"], self.were_recent, why)
        if told is not None and name == "on_summarize":
            empty = not (told["summary"] or "").strip()
            raise Breach(
                "E6" if empty or not self._usable(told["summary"], told["input"]) else UNEXPLAINED, why
            )
        if wanted is not None and expected == "on_evict" and wanted["reason"] == "truncation":
            raise Breach("E3" if self._all_tokens() > self.budget else UNEXPLAINED, why)
        if self.told.get("error") == "Error":
            raise Breach("E8", f"a hook that raises stops the call: {why}")
        raise Breach(UNEXPLAINED, why)

    def _all_tokens(self) -> int:
        return self._permanent() + self._summary_tokens() + self._weight(*self._live())

    def _usable(self, text: str, inputs: Sequence[Any]) -> bool:
        return self.size(self._summary_message(text, len(inputs), ())) <= self._limit("max_summary_tokens")

    def _wrong_eviction(self, contents: Sequence[Any], live: Sequence[_Unit], why: str) -> NoReturn:
        """Say why these of some units are not those that leave."""
        said = list(contents)
        gone: list[_Unit] = []
        for unit in live:
            own = _contents([unit])
            if own and said[: len(own)] == own:
                gone.append(unit)
                said = said[len(own) :]
            elif said and said[0] in own:
                raise Breach("E4", f"a unit is split: {why}")
        if said:
            raise Breach("E4" if len(live) > len(gone) else UNEXPLAINED, why)
        if any(map(self._stays, gone)):
            raise Breach("A4", f"takes what must stay: {why}")
        left = self._weight(*live) - self._weight(*gone)
        needless = gone and left + self._weight(gone[-1]) <= self._target()
        raise Breach("E3" if needless or left > self._target() else UNEXPLAINED, why)

    def _wrong_call(self, told: Mapping[str, Any] | None, wanted: Mapping[str, Any] | None) -> NoReturn:
        """Say which rule a question to the summarizer breaks."""
        why = f"asked {told}, not {wanted}"
        if told is not None and not self.over:
            raise Breach("E3", f"acts although everything fits: {why}")
        if told is None:
            stopped = self.rounds >= self.options.get("max_summary_rounds", 5)
            raise Breach("E6" if stopped else UNEXPLAINED, f"summaries are not recompressions: {why}")
        if wanted is None:
            raise Breach("E6" if self._hears else UNEXPLAINED, why)
        if wanted["existing"] is None and told["existing"] is not None and self.summary is not None:
            raise Breach("E5", f"the summary so far goes in as a message: {why}")
        if not self._hears and told["existing"] == wanted["existing"]:
            self._wrong_eviction(told["messages"], self._live(), why)
        raise Breach(UNEXPLAINED, why)

    # -- what is shown

    def _shown(self, told: Mapping[str, Any]) -> None:
        wanted = self._state()
        if told == wanted or self._is_shortened(told, wanted):
            return
        why = f"shows {told}, not {wanted}"
        if told["token_count"] > self.budget:
            raise Breach("A1", f"over budget by {told['token_count'] - self.budget}: {why}")
        if self.restored and told["breakdown"]["system"] != wanted["breakdown"]["system"]:
            raise Breach("E10", f"restoring loses what is permanent: {why}")
        if not self._hears and told["zones"]["pending"] and not self._ever_over:
            raise Breach("E3", f"acts although everything fits: {why}")
        bare = self._bare(wanted)
        if self.summary is not None and _without_sizes(told) == _without_sizes(bare) and told != bare:
            raise Breach("C8", f"the summary is not marked: {why}")
        raise Breach(UNEXPLAINED, why)

    @property
    def _ever_over(self) -> bool:
        return bool(self.pending) or self.rounds > 0

    def _state(self) -> dict[str, Any]:
        """E1, E9: the order with `pending_first`; what waits counts as recent."""
        waiting = [unit for unit in self.pending if unit.in_view]
        recent = [unit for unit in self.recent if unit.in_view]
        in_view = {"recent": self._weight(*waiting, *recent)}
        room = self.budget - self._permanent() - in_view["recent"]
        marked = [self._marked()]
        if self.summary is None or self._summary_tokens() > room:  # what must stay goes before it
            marked = []
        anchors = [*self.anchors, *self.written_anchor]
        messages = [*self.system, *anchors, *_messages(waiting), *marked, *_messages(recent)]
        sizes = {"system": self._tokens(self.system), "anchor": self._tokens(anchors)}
        sizes["summary"] = self._tokens(marked)
        total = sum(sizes.values()) + in_view["recent"]
        return {
            "messages": [shape(message) for message, _ in closed([(message, False) for message in messages])],
            "summary": self.summary,
            "token_count": total,
            "breakdown": {**sizes, **in_view, "total": total},
            "recent_count": sum(len(unit.members) for unit in self._live() if unit.in_view),
            "total_count": len(messages),
            "zones": {
                "recent": [message["content"] for message in _added(self.recent)],
                "pending": [message["content"] for message in _added(self.pending)],
                "summary_rounds": self.rounds,
                "token_counts": {
                    **sizes,
                    "recent": self._weight(*self.recent),
                    "pending": self._weight(*self.pending),
                },
            },
        }

    def _saved(self) -> dict[str, Any]:
        """E10: write what a snapshot holds, as sliding-context names it."""
        state = self._state()
        kept = {name: self.options[name] for name in ("token_budget", *NAMES) if name in self.options}
        return {
            "options": {_camel(name): value for name, value in kept.items()} | {"tokenBudget": self.budget},
            "messages": _added(self.recent),
            "summary": self.summary,
            "anchor": [*self.anchors, *self.written_anchor],
            "pendingBuffer": _added(self.pending),
            "summaryRounds": self.rounds,
            "tokenCounts": state["zones"]["token_counts"],
            "version": 1,
        }

    def _bare(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Show a state with its summary as the summarizer wrote it."""
        marked = self._marked()
        messages = [{**one, "content": self.summary} if one == marked else one for one in state["messages"]]
        return {**state, "messages": messages}

    def _is_shortened(self, told: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
        """A4: where what must stay is too large, the newest is shortened, or it is an error."""
        if wanted["token_count"] <= self.budget:
            return False
        rest = {key: value for key, value in told.items() if key != "messages"}
        if rest != {key: value for key, value in wanted.items() if key != "messages"}:
            return False
        if told["messages"] == "BudgetExceededError":
            return True
        pairs = list(zip(told["messages"], wanted["messages"], strict=False))
        changed = [one for one, whole in pairs if one != whole]
        whole = len(told["messages"]) == len(wanted["messages"])
        return whole and all(CUT in str(one["content"]) for one in changed)


def _without_sizes(state: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: state[key] for key in ("messages", "summary", "recent_count", "total_count")}
    return {**kept, **{key: state["zones"][key] for key in ("recent", "pending", "summary_rounds")}}


_LEAST = {"min_recent_tokens": 0, "max_summary_rounds": 0}


def _budget_fault(value: Any) -> tuple[str | None, str]:
    """E2: finite and at least 100; a fraction of a token is rounded down (D1)."""
    value = number(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return "ConfigurationError", "E2"
    if not math.isfinite(value) or value < 100:
        return "ConfigurationError", "E2"
    return None, "E2"


def s2_size(options: Mapping[str, Any]) -> Callable[[Message], int]:
    """Count a message as S2: content, calls as compact JSON, the id of an answered call, overhead."""
    count = text_function(options.get("counter") or {"kind": "approx"})
    overhead = options.get("message_overhead", 4)

    def size(message: Message) -> int:
        content, calls = message.get("content"), message.get("tool_calls")
        tokens = overhead
        if isinstance(content, str):
            tokens += count(content) if content else 0
        else:
            for part in content or ():
                tokens += count(part["text"]) if part.get("type", "text") == "text" else 85
        if calls:
            tokens += count(json.dumps(calls, ensure_ascii=False, separators=(",", ":")))
        if message.get("tool_call_id"):
            tokens += count(message["tool_call_id"])
        return int(tokens)

    return size


def _as_text(message: Message) -> Message:
    """E4: a result whose call is gone is marked, escaped text."""
    body = str(message["content"]).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    of = message.get("tool_call_id") or ""
    return {"role": "user", "content": f'<tool_result of="{of}" by="trimtab">\n{body}\n</tool_result>'}


def _place(unit: _Unit) -> int:
    return unit.members[0][0]


def _in_order(units: Sequence[_Unit]) -> list[tuple[int, Message, Message]]:
    return sorted((one for unit in units for one in unit.members), key=lambda one: one[0])


def _messages(units: Sequence[_Unit]) -> list[Message]:
    return [shown for _, _, shown in _in_order(units)]


def _contents(units: Sequence[_Unit]) -> list[Any]:
    return [message["content"] for message in _messages(units)]


def _added(units: Sequence[_Unit]) -> list[Message]:
    return [message for _, message, _ in _in_order(units)]


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


def _same(rule: str, told: Any, wanted: Any) -> None:
    if told != wanted:
        raise Breach(rule, f"{told}, not {wanted}")
