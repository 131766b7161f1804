"""A session said plainly: one list of everything that was said, and SPEC E's words applied to all of it.

Slow on purpose: every number is added up anew from the whole list each time it is needed. Nothing is kept
but what was said, in which zone each message is, and what was decided. Imports nothing of trimtab.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from tests.properties import oracle

Message = dict[str, Any]
Count = Callable[[list[Message]], int]
Told = tuple[Any, ...]


Summary = tuple[str, int, frozenset[str]]
"""The text of a summary, how many messages it stands for, and the roles of those (E14)."""


def marked(text: str, messages: int, said_by: Collection[str] = ()) -> str:
    """Write a summary as it stands in a view, and whose words it has, if not only the user's and model's."""
    of = f"{messages} message{'' if messages == 1 else 's'}"
    named = [role for role in ("system", "user", "assistant", "tool") if role in said_by]
    whose = "" if {"user", "assistant"}.issuperset(named) else f' from="{", ".join(named)}"'
    return f'<summary of="{of}"{whose} by="trimtab">\n{text}\n</summary>'


def as_text(message: Message) -> Message:
    """E4: a result that belongs to nothing in reach is marked, escaped text of the user."""
    content = message["content"]
    texts = [content] if isinstance(content, str) else [part["text"] for part in content]
    body = escape("\n".join(texts), quote=False)
    of = escape(message["tool_call_id"])
    return {"role": "user", "content": f'<tool_result of="{of}" by="trimtab">\n{body}\n</tool_result>'}


def closed(rows: list[tuple[Message, bool]]) -> list[tuple[Message, bool]]:
    """E3b: calls nobody will answer are left out, and a result stands right behind its call."""
    messages = [message for message, _ in rows]
    owner, dead = oracle.owners(messages), oracle.unanswered(messages) - oracle.open_calls(messages, ())
    found: list[tuple[Message, bool]] = []
    for at, (message, pinned) in enumerate(rows):
        if owner.get(at) is not None:
            continue
        gone = {call_id for index, call_id in dead if index == at}
        if gone:
            calls = [call for call in message["tool_calls"] if call["id"] not in gone]
            message = {**message, "tool_calls": calls}
            if not calls:
                del message["tool_calls"]
        if not gone or any(message.get(key) for key in ("content", "tool_calls")):
            found.append((message, pinned))
        found += [rows[index] for index, call in sorted(owner.items()) if call == at]
    return found


def cost(share: float, ratio: float) -> float:
    """What a cut down to a share of the room costs: written anew for each new token, less what is kept.

    What is kept is worth so much a token that no share costs less than the ratio.
    """
    return share / (1 - share) - share / (1 - ratio) ** 2


@dataclass
class Said:
    """One message, and where it is."""

    message: Message
    unit: int
    """Place of the message its unit begins with."""
    alone: bool = False
    zone: str = "recent"
    pinned: bool = False

    @property
    def shown(self) -> Message:
        """The message as a view shows it."""
        return as_text(self.message) if self.alone else self.message


@dataclass
class Decision:
    """An eviction or a summary, and how everything was before it."""

    kind: str
    zones: list[str]
    summary: Summary | None
    anchor_summary: Summary | None
    cut: tuple[int, int] = (0, 0)
    """Behind which units it was cut, and from where on what waits may be in view."""
    covers: set[int] = field(default_factory=set)
    becomes_anchor: bool = False
    after: Decision | None = None
    """The summary it goes on from."""
    stale: bool = False


@dataclass
class Row:
    """What an event of the log is expected to say."""

    kind: str
    recent: set[int]
    waiting: set[int]
    numbers: tuple[int, int, int, int]


@dataclass
class Settings:
    """The options of a session, as far as the rules speak of them."""

    budget: int = 100
    system: str | None = None
    mode: str = "incremental"
    summarizes: bool = True
    max_summary: int | None = None
    min_recent: int | None = None
    threshold: int | None = None
    threshold_messages: int = 6
    max_anchor: int | None = None
    role: str = "system"
    anchors: list[Message] = field(default_factory=list)
    pending_first: bool = False
    ratio: float = 1.0


class Plain:
    """The model."""

    def __init__(self, settings: Settings, count: Count, write: Callable[..., str | None]) -> None:
        self.settings = settings
        self.count = count
        self.write = write
        """Given the messages and the most tokens; None: it fails."""
        self.budget = settings.budget
        self.anchors = copy.deepcopy(settings.anchors)
        self.said: list[Said] = []
        self.summary: Summary | None = None
        self.anchor_summary: Summary | None = None
        self.decisions: list[Decision] = []
        self.summaries: list[Decision] = []
        """Every summary ever written since the last clear, also those taken back."""
        self.last_summary: Decision | None = None
        self.behind = 0
        """Place behind every unit that ever waited."""
        self.view_from = 0
        """Where the view was cut last: what waits before it is out of view."""
        self.failures = 0
        self.retry = 0
        self.asked = 0
        self.told: list[Told] = []
        self.log: list[Row] = []
        self.begun = False
        self.sizes: dict[str, int] = {}
        """What was counted already: the counters are slower than all the rest."""

    # -- sizes, each from nothing

    def size(self, message: Message) -> int:
        """Tokens of one message: what a request has more with it than without."""
        key = repr(message)
        if key not in self.sizes:
            self.sizes[key] = max(0, self.count([message]) - self.count([]))
        return self.sizes[key]

    def unit(self, first: int) -> list[int]:
        """Places of the messages of a unit."""
        return [at for at, one in enumerate(self.said) if one.unit == first and one.zone != "popped"]

    def units(self, *zones: str) -> list[int]:
        """First messages of the units in some zones, in order."""
        return [at for at, one in enumerate(self.said) if one.unit == at and one.zone in zones]

    def tokens(self, units: Sequence[int]) -> int:
        """Tokens of units."""
        return sum(self.size(self.said[at].shown) for first in units for at in self.unit(first))

    def messages_in(self, units: Sequence[int]) -> list[Message]:
        """Messages of units as shown, in order of time."""
        return [self.said[at].shown for at in sorted(at for first in units for at in self.unit(first))]

    @property
    def front(self) -> list[Message]:
        """System text and anchors."""
        system = self.settings.system
        front = [] if system is None else [{"role": "system", "content": system}]
        front += copy.deepcopy(self.anchors)
        if self.anchor_summary is not None:
            front.append(self.summary_message(self.anchor_summary))
        return front

    def summary_message(self, summary: Summary) -> Message:
        """A summary as a message; what a tool said never becomes system text (E14)."""
        role = "user" if "tool" in summary[2] else self.settings.role
        return {"role": role, "content": marked(*summary)}

    @property
    def anchor_tokens(self) -> int:
        """Tokens of the anchors, written ones included."""
        written = [] if self.anchor_summary is None else [self.summary_message(self.anchor_summary)]
        return sum(map(self.size, [*self.anchors, *written]))

    @property
    def permanent_tokens(self) -> int:
        """What is always there."""
        return self.count([]) + sum(map(self.size, self.front))

    @property
    def summary_tokens(self) -> int:
        """Tokens of the summary."""
        return 0 if self.summary is None else self.size(self.summary_message(self.summary))

    def share(self, value: int | None, of: int, tenths: int) -> int:
        """E2: a value that was given, or its share of the budget in force, rounded down."""
        return of * tenths // 10 if value is None else value

    @property
    def max_summary(self) -> int:
        """Cap of the summary."""
        return self.share(self.settings.max_summary, self.budget, 3)

    @property
    def min_recent(self) -> int:
        """What recent messages are to keep."""
        return self.share(self.settings.min_recent, self.budget, 3)

    @property
    def threshold(self) -> int:
        """Waiting tokens from which a summary is asked for."""
        return max(1, self.share(self.settings.threshold, self.budget, 1))

    @property
    def max_anchor(self) -> int:
        """Cap of the anchors."""
        return self.share(self.settings.max_anchor, self.max_summary, 4)

    # -- what is in view

    def waiting_in_view(self, among: Collection[int] | None = None) -> list[int]:
        """E3: the newest waiting units that fit beside what is always there and all that is recent.

        Between the messages of one `extend` nothing comes back into view: only `among` is looked at.
        """
        room = self.budget - self.permanent_tokens - self.summary_tokens - self.tokens(self.units("recent"))
        found: list[int] = []
        for first in reversed(self.units("waiting")):
            room -= self.tokens([first])
            if room < 0 or first < self.view_from or (among is not None and first not in among):
                break
            found.append(first)
        return found[::-1]

    def recent_in_view(self) -> list[int]:
        """E3: recent units; where these alone pass the budget, what need not stay leaves the view."""
        recent = self.units("recent")
        room = self.budget - self.permanent_tokens - self.summary_tokens
        if self.tokens(recent) <= room:
            return recent
        stays = [first for first in recent if self.exempt(first)]
        room -= self.tokens(stays)
        for first in reversed([first for first in recent if not self.exempt(first)]):
            room -= self.tokens([first])
            if room < 0:
                break
            stays.append(first)
        return sorted(stays)

    def in_view(self) -> list[int]:
        """Units in view."""
        return sorted([*self.waiting_in_view(), *self.recent_in_view()])

    @property
    def view_tokens(self) -> int:
        """Tokens of all that is in view, before anything of it is shortened."""
        return self.permanent_tokens + self.shown_summary_tokens + self.tokens(self.in_view())

    @property
    def shown_summary_tokens(self) -> int:
        """Tokens of the summary in view: it gives way where what must stay takes its room."""
        whole = self.permanent_tokens + self.summary_tokens + self.tokens(self.in_view())
        return self.summary_tokens if whole <= self.budget else 0

    def view(self) -> list[Message]:
        """The messages of the view."""
        return [message for message, _ in self.view_and_pins()]

    def view_and_pins(self) -> list[tuple[Message, bool]]:
        """E1: system, anchors, summary, waiting and recent, in order of time; and which A4 pins."""
        summary = [] if self.summary is None else [self.summary_message(self.summary)]
        if not self.shown_summary_tokens:
            summary = []  # it is no permanent part
        front, between = [(message, True) for message in self.front], [(message, True) for message in summary]
        if not self.settings.pending_first:
            return closed([*front, *between, *self.listed(self.in_view())])
        waiting, recent = self.waiting_in_view(), self.recent_in_view()
        return closed([*front, *self.listed(waiting), *between, *self.listed(recent)])

    def listed(self, units: Sequence[int]) -> list[tuple[Message, bool]]:
        """Messages of units, and whether their unit is pinned."""
        user = self.latest_user()
        pinned = {one.unit for at, one in enumerate(self.said) if one.pinned or at == user}
        places = sorted(at for first in units for at in self.unit(first))
        return [(self.said[at].shown, self.said[at].unit in pinned) for at in places]

    # -- what stays

    def there(self) -> list[int]:
        """Places of messages that were not popped and not cleared."""
        return [at for at, one in enumerate(self.said) if one.zone not in ("popped", "cleared")]

    def kind(self, at: int) -> str:
        """Who says it; a result stays one, also where it is shown as text."""
        return str(self.said[at].message["role"])

    def unanswered(self, first: int) -> set[str]:
        """Ids of a unit's calls that nothing in it answers."""
        made = set(oracle.call_ids(self.said[first].message))
        return made - {self.said[at].message.get("tool_call_id") for at in self.unit(first) if at != first}

    def latest_user(self) -> int | None:
        """Place of the latest message the user wrote."""
        users = [at for at in self.there() if self.kind(at) == "user"]
        return users[-1] if users else None

    def exempt(self, first: int) -> bool:
        """A4: pinned, with the latest user message, the newest, or open."""
        members = self.unit(first)
        there = self.there()
        turns = [at for at in there if self.kind(at) in ("user", "assistant")]
        if any(self.said[at].pinned for at in members) or self.latest_user() in members:
            return True
        if there and there[-1] in members:
            return True
        return bool(turns) and turns[-1] == first and bool(self.unanswered(first))

    # -- what is done

    def note(self, kind: str) -> None:
        """Write down what an event is expected to say."""
        recent, waiting = self.units("recent"), self.units("waiting")
        self.log.append(Row(kind, self.members(recent), self.members(waiting), self.numbers()))

    def members(self, units: Sequence[int]) -> set[int]:
        """Places of all messages of units."""
        return {at for first in units for at in self.unit(first)}

    def numbers(self) -> tuple[int, int, int, int]:
        """Tokens and messages that are recent, and that wait."""
        recent, waiting = self.units("recent"), self.units("waiting")
        return (
            self.tokens(recent),
            len(self.members(recent)),
            self.tokens(waiting),
            len(self.members(waiting)),
        )

    def begin(self) -> None:
        """The options are written with the first event."""
        if not self.begun:
            self.begun = True
            self.note("options")

    def extend(self, messages: Sequence[Message]) -> None:
        """Take messages one after the other; summarize at the end if the budget was passed."""
        self.begin()
        before = self.in_view()
        exceeded, evicted = False, list[int]()
        shown = self.waiting_in_view()
        for message in messages:
            first = self.take(copy.deepcopy(message))
            before.append(first)
            self.note("message")
            total = self.total(shown)
            if total > self.budget:
                exceeded = True
                self.told.append(("on_budget_exceeded", total, self.budget))
                leaving = self.cut(shown)
                evicted += leaving
                shown = self.waiting_in_view(among={*shown, *leaving})
        due = exceeded or self.settings.ratio < 1  # what is due since a summary was cut off
        self.make_room(evicted, before, summarizes=due, summaries=64 if len(messages) > 1 else 1)

    def total(self, shown: Sequence[int]) -> int:
        """E3: system, anchors, summary, pending in view and recent."""
        pending = [first for first in shown if self.said[first].zone == "waiting"]
        parts = self.tokens(pending) + self.tokens(self.units("recent"))
        return self.permanent_tokens + self.summary_tokens + parts

    def take(self, message: Message) -> int:
        """Put a message where it belongs; return what its unit begins with."""
        at = len(self.said)
        if message["role"] != "tool":
            self.said.append(Said(message, at))
            return at
        call_id = message["tool_call_id"]
        waits = [first for first in self.units("recent", "waiting") if call_id in self.unanswered(first)]
        if not waits:
            self.said.append(Said(message, at, alone=True))
            return at
        self.said.append(Said(message, waits[-1]))
        self.move([waits[-1]], "recent")
        return waits[-1]

    def move(self, units: Sequence[int], zone: str) -> None:
        """Put units into a zone."""
        for first in units:
            for at in self.unit(first):
                self.said[at].zone = zone

    def cut(self, shown: Sequence[int]) -> list[int]:
        """E3, C3: recent is cut in a stride, and so is what waits and was shown; the cut is remembered."""
        ratio, recent = self.settings.ratio, self.units("recent")
        held = self.tokens([first for first in recent if self.exempt(first)])
        free, room = self.tokens(recent) - held, self.target(0) - held
        leaving = self.leaving(self.target(1 - ratio))
        if ratio < 1 and free - self.tokens(leaving) < ratio * room / 4:
            leaving = self.leaving(max(self.target(1 - ratio), held + int(ratio * room)))
            fewer = leaving[:-1]
            while fewer and not self.tokens(fewer[-1:]):
                fewer = fewer[:-1]  # what takes no room need not leave for the room that is wanted
            shares = [(free - self.tokens(units)) / room for units in (fewer, leaving)]
            if leaving and shares[0] < 1 and cost(shares[0], ratio) < cost(shares[1], ratio):
                leaving = fewer
        if leaving:
            self.decide("evicted")
            self.move(leaving, "waiting")
            self.behind = max(self.behind, leaving[-1] + 1)
        if ratio < 1:
            self.cut_view([*shown, *leaving])
        if leaving:
            self.note("evicted")
        return leaving

    def cut_view(self, shown: Sequence[int]) -> None:
        """C3: what waits leaves the view, oldest first, down to its share; there it stays cut."""
        fixed = self.permanent_tokens + self.summary_tokens
        most = fixed + int(self.settings.ratio * max(0, self.budget - fixed))
        seen = [first for first in self.units("waiting") if first in shown and first >= self.view_from]
        while seen and self.total(seen) > most:
            del seen[0]
        self.view_from = max(self.view_from, seen[0] if seen else self.behind)

    def target(self, stride: float) -> int:
        """E3: what recent messages come down to, less a stride of it."""
        permanent, summary = self.permanent_tokens, self.summary_tokens
        room = self.budget - permanent
        share = min(self.max_summary, max(0, room - self.min_recent)) if self.settings.summarizes else 0
        most = max(0, room - max(summary, share))
        return max(most - int(stride * most), min(self.min_recent, max(0, room - summary)))

    def leaving(self, target: int) -> list[int]:
        """E3: the oldest recent units that need not stay, until the rest is down to a target."""
        leaving: list[int] = []
        recent = self.units("recent")
        left = self.tokens(recent)
        for first in recent:
            if left > target and not self.exempt(first):
                leaving.append(first)
                left -= self.tokens([first])
        return leaving

    def decide(self, kind: str) -> Decision:
        """Remember how everything was before a decision."""
        zones = [one.zone for one in self.said]
        cut = (self.behind, self.view_from)
        decision = Decision(kind, zones, self.summary, self.anchor_summary, cut)
        self.decisions.append(decision)
        return decision

    def make_room(
        self, evicted: list[int], before: list[int], *, summarizes: bool, summaries: int = 1
    ) -> None:
        """Tell, summarize while it is due, and tell what left the view."""
        still = [first for first in dict.fromkeys(evicted) if self.said[first].zone == "waiting"]
        if still:
            self.told.append(("on_evict", self.messages_in(still), "budget"))
        for _ in range(summaries):
            if summarizes and self.is_due():
                self.summarize()
        view = self.in_view()
        alive = self.units("recent", "waiting")
        gone = sorted({first for first in before if first in alive and first not in view})
        if gone:
            self.told.append(("on_evict", self.messages_in(gone), "truncation"))

    def is_due(self) -> bool:
        """E6, E7: enough waits, and after a failure twice as much."""
        _, _, tokens, messages = self.numbers()
        if not self.settings.summarizes or not tokens or tokens < self.retry:
            return False
        if tokens >= self.threshold:
            return True
        return messages >= self.settings.threshold_messages and 2 * tokens >= self.threshold

    def summarize(self) -> None:
        """E5: one summary in place of the oldest that wait, one budget's worth at most."""
        covered: list[int] = []
        for first in self.units("waiting"):
            if covered and self.tokens([*covered, first]) > self.budget:
                break
            covered.append(first)
        messages = self.messages_in(covered)
        cap, first_summary = self.max_summary, False
        if self.settings.mode == "anchored":
            first_summary = not self.anchors and self.anchor_summary is None
            cap = min(cap, self.max_anchor) if first_summary else cap - self.anchor_tokens
        count = len(messages) + (0 if self.summary is None else self.summary[1])
        said_by = frozenset(self.said[at].message["role"] for at in self.members(covered))
        said_by |= frozenset() if self.summary is None else self.summary[2]
        limit = min(cap, self.summary_tokens + self.tokens(covered) - 1)
        room = limit - self.size(self.summary_message(("", count, said_by)))
        text = None
        if room >= 1:
            self.asked += 1
            text = self.write(messages, room)
        if text is None:
            self.fail()
            return
        existing = None if self.summary is None else self.summary[0]
        decision = self.decide("summary")
        decision.covers = self.members(covered)
        decision.becomes_anchor = first_summary
        decision.after = self.last_summary
        self.summaries.append(decision)
        self.failures = self.retry = 0
        self.move(covered, "covered")
        self.behind = max(self.behind, covered[-1] + 1)
        if first_summary:
            self.anchor_summary = (text, count, said_by)
        else:
            self.summary, self.last_summary = (text, count, said_by), decision
        self.note("summary")
        self.told.append(("on_summarize", messages, existing, text))

    def fail(self) -> None:
        """E7: the next attempt waits for one threshold more, then two, four; at least for twice as much."""
        waiting = self.numbers()[2]
        self.failures += 1
        self.retry = max(waiting + self.threshold * 2 ** (self.failures - 1), 2 * waiting)
        self.note("failed")

    # -- what the user orders

    def set_budget(self, tokens: int) -> bool:
        """Change the budget; False where what is always there passes it."""
        old, self.budget = self.budget, tokens
        if self.permanent_tokens > tokens:
            self.budget = old
            return False
        self.budget = old
        before, shown = self.in_view(), self.waiting_in_view()
        self.budget = tokens
        if tokens > old:
            self.view_from = 0
        self._ordered("budget", before, shown)
        return True

    def set_anchors(self, messages: list[Message]) -> bool:
        """Replace the anchors; False where they pass their cap or leave no room."""
        old, before, shown = self.anchors, self.in_view(), self.waiting_in_view()
        self.anchors = copy.deepcopy(messages)
        too_many = sum(map(self.size, self.anchors)) > self.max_anchor
        if too_many or self.permanent_tokens > self.budget:
            self.anchors = old
            return False
        self._ordered("anchors", before, shown)
        return True

    def _ordered(self, kind: str, before: list[int], shown: list[int]) -> None:
        self.begin()
        self.note(kind)
        total = self.total(shown)
        evicted: list[int] = []
        if total > self.budget:
            self.told.append(("on_budget_exceeded", total, self.budget))
            evicted = self.cut(shown)
        self.make_room(evicted, before, summarizes=total > self.budget, summaries=64)

    def pop(self) -> int | None:
        """Take off the newest message; return its place. A summary over it or the user's latest goes."""
        there = self.there()
        if not there:
            return None
        before, at = self.in_view(), there[-1]
        one = self.said[at]
        for summary in self.summaries:
            after = summary.after is not None and summary.after.stale
            summary.stale = summary.stale or after or at in summary.covers
        users = [place for place in there[:-1] if self.kind(place) == "user"]
        covered = {place for place in (at, *users[-1:]) if self.said[place].zone == "covered"}
        if covered:
            over: list[Decision] = []
            for summary in self.summaries:
                if not summary.covers.isdisjoint(covered) or any(summary.after is old for old in over):
                    over.append(summary)
            self.take_back(next(one for one in self.decisions if any(one is old for old in over)))
        one.zone, one.pinned = "popped", False
        self.call_back_newest()
        self.note("popped")
        self.make_room([], [first for first in before if first != one.unit], summarizes=False)
        return at

    def call_back_newest(self) -> None:
        """Make recent what must stay now: the newest message, and the user's latest."""
        for place in (*self.there()[-1:], self.latest_user()):
            if place is not None and self.said[place].zone == "waiting":
                self.move([self.said[place].unit], "recent")

    def clear(self) -> bool:
        """Begin anew; anchors as given, the budget stays. False where what comes back has no room."""
        given, written = self.settings.anchors, self.anchor_summary
        if self.anchors != given:
            old, self.anchors, self.anchor_summary = self.anchors, given, None
            no_room = self.permanent_tokens > self.budget
            self.anchors, self.anchor_summary = old, written
            if no_room or sum(map(self.size, given)) > self.max_anchor:
                return False
        self.begin()
        for one in self.said:
            one.zone, one.pinned = "cleared", False
        self.anchors = copy.deepcopy(self.settings.anchors)
        self.summary = self.anchor_summary = self.last_summary = None
        self.decisions, self.summaries = [], []
        self.failures = self.retry = self.behind = self.view_from = 0
        self.note("cleared")
        return True

    def pin(self, at: int) -> bool:
        """Keep a message in every view; False where it is out of reach."""
        one = self.said[at]
        if one.pinned:
            return True
        if one.zone not in ("recent", "waiting"):
            return False
        before = self.in_view()
        one.pinned = True
        self.move([one.unit], "recent")
        self.note("pinned")
        self.make_room([], before, summarizes=False)
        return True

    def unpin(self, at: int) -> None:
        """Let it leave again."""
        if not self.said[at].pinned:
            return
        before = self.in_view()
        self.said[at].pinned = False
        self.note("unpinned")
        self.make_room([], before, summarizes=False)

    def undo(self, place: int = -1) -> bool:
        """Take back a decision and all after it; False where there is none."""
        if not self.decisions:
            return False
        self.take_back(self.decisions[place])
        self.call_back_newest()
        self.note("undone")
        return True

    def take_back(self, decision: Decision) -> None:
        """Put all where it was; what came since, is pinned or got a result since is recent."""
        del self.decisions[self.decisions.index(decision) :]
        old = len(decision.zones)
        for at, one in enumerate(self.said):
            if one.zone != "popped":
                one.zone = decision.zones[at] if at < old else "recent"
        self.summary, self.anchor_summary = decision.summary, decision.anchor_summary
        self.behind, self.view_from = decision.cut
        summaries = [one for one in self.decisions if one.kind == "summary" and not one.becomes_anchor]
        self.last_summary = summaries[-1] if summaries else None
        for first in self.units("recent", "waiting"):
            members = self.unit(first)
            if members[-1] >= old or any(self.said[at].pinned for at in members):
                self.move([first], "recent")
        self.failures = self.retry = 0

    def redact(self, places: Sequence[int]) -> None:
        """Overwrite messages; summaries stay in force: those written here repeat nothing."""
        for at in places:
            self.said[at].message = redacted(self.said[at].message)
        self.note("redacted")


def redacted(message: Message) -> Message:
    """Say nothing in every text of a message."""
    new = copy.deepcopy(message)
    if isinstance(new.get("content"), str):
        new["content"] = "[redacted]"
    elif isinstance(new.get("content"), list):
        new["content"] = [{"type": "text", "text": "[redacted]"} for _ in new["content"]]
    for call in new.get("tool_calls") or ():
        call["function"] = {"name": "redacted", "arguments": "{}"}
    return new
