"""Plays a sequence of operations on a session and on the plain model, and compares the two after each."""

from __future__ import annotations

import asyncio
import copy
import inspect
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from hypothesis import strategies as st

from tests.builders import assistant, call, result, system, user, words
from tests.properties import oracle
from tests.properties.cases import WORDS, primed, rounded
from tests.session.plain import Message, Plain, Settings
from trimtab import BudgetExceededError, ConfigurationError, EstimateCounter, Session
from trimtab.errors import UnknownNameError
from trimtab.stores import LoadRequest, MemoryStore, Store
from trimtab.strategies import CUT_MARKER
from trimtab.summaries import SummaryRequest

COUNTERS = {
    "words": WORDS,
    "estimate": EstimateCounter(),
    "black box": WORDS.count,
    "primed": primed,
    "rounded": rounded,
}

Operation = tuple[Any, ...]


class Writer:
    """A summarizer that says how much it was given, or fails if it is told to."""

    def __init__(self) -> None:
        self.failing = False
        self.requests: list[SummaryRequest] = []

    def write(self, messages: Sequence[Message], most: int) -> str | None:
        """Write the summary the model expects."""
        return None if self.failing else " ".join(["about", str(len(messages))][:most])

    def summarize(self, request: SummaryRequest) -> str:
        """Write it for the session."""
        self.requests.append(request)
        assert request.max_tokens is not None
        messages = request.messages
        if messages and str(messages[0].get("content")).startswith('<summary of="'):
            messages = messages[1:]  # the summary so far, where it rolls
        text = self.write(messages, request.max_tokens)
        if text is None:
            raise ConnectionError("the model is away")
        return text


@dataclass
class Play:
    """A session, the model of it, and what both were told."""

    settings: Settings
    counter: str = "words"
    colour: str = "sync"
    store: Store = field(default_factory=MemoryStore)

    def __post_init__(self) -> None:
        self.writer = Writer()
        self.told: list[tuple[Any, ...]] = []
        self.seen = 0
        self.decisions: list[str] = []
        self.messages_at: dict[int, list[Message] | None] = {}
        self.redacted_at = 0
        self.forks = 0
        given = COUNTERS[self.counter]
        count = getattr(given, "count", given)
        self.model = Plain(self.settings, count, self.writer.write)
        options = self.settings
        self.session = Session(
            options.budget,
            system=options.system,
            summary_mode=options.mode,  # type: ignore[arg-type]  # drawn from the three there are
            max_summary_tokens=options.max_summary,
            min_recent_tokens=options.min_recent,
            summarize_threshold_tokens=options.threshold,
            summarize_threshold_messages=options.threshold_messages,
            max_anchor_tokens=options.max_anchor,
            summary_role=options.role,
            anchors=options.anchors,
            pending_first=options.pending_first,
            target_ratio=options.ratio,
            max_result_ratio=None,  # the model's results are whole, however large
            store=self.store,
            id="s",
            **self.functions(),
        )

    def functions(self) -> dict[str, Any]:
        """What no log keeps."""
        names = ("on_evict", "on_summarize", "on_budget_exceeded", "on_summary_compressed")
        return {
            "counter": COUNTERS[self.counter],
            "summarizer": self.writer if self.settings.summarizes else None,
            "must_keep": None,  # the model restates nothing
            "hooks": {name: self._hook(name) for name in names},
        }

    def _hook(self, name: str) -> Any:
        def hook(*arguments: Any) -> None:
            told = arguments[:3] if name == "on_summarize" else arguments
            self.told.append((name, *told))

        return hook

    async def do(self, name: str, *arguments: Any, **options: Any) -> Any:
        """Call a method of the session in its colour."""
        if self.colour == "sync":
            return getattr(self.session, name)(*arguments, **options)
        return await getattr(self.session, f"a{name}")(*arguments, **options)

    # -- operations

    async def step(self, operation: Operation) -> None:
        """Do one operation to both, and compare."""
        name, *arguments = operation
        done = getattr(self, f"_do_{name}")(*arguments)
        if inspect.isawaitable(done):
            await done
        await self.compare()

    async def _do_add(self, message: Message) -> None:
        event = await self.do("add", message)
        self.model.extend([message])
        assert event.message == message

    async def _do_extend(self, messages: list[Message]) -> None:
        events = await self.do("extend", messages)
        self.model.extend(messages)
        assert [event.message for event in events] == messages

    async def _do_late(self, at: int, text: str) -> None:
        """Add the result of one of the calls nothing answered, wherever that call is by now."""
        said = self.model.said
        gone = ("cleared", "popped")
        units = [first for first, one in enumerate(said) if one.unit == first and one.zone not in gone]
        calls = [call_id for first in units for call_id in sorted(self.model.unanswered(first))]
        if calls:
            await self._do_add(result(calls[at % len(calls)], text))

    async def _do_budget(self, tokens: int) -> None:
        if self.model.set_budget(tokens):
            await self.do("set_budget", tokens)
        else:
            await self.refused(BudgetExceededError, "set_budget", tokens)

    async def _do_anchors(self, messages: list[Message]) -> None:
        if self.model.set_anchors(messages):
            await self.do("set_anchors", messages)
        else:
            await self.refused(BudgetExceededError, "set_anchors", messages)

    async def refused(self, error: type[Exception], name: str, *arguments: Any) -> None:
        """A call that is refused writes nothing."""
        before = len(self.log())
        try:
            await self.do(name, *arguments)
        except error:
            assert len(self.log()) == before
        else:
            raise AssertionError(f"{name}{arguments} was not refused")

    async def _do_clear(self) -> None:
        if self.model.clear():
            await self.do("clear")
            self.decisions.clear()
        else:
            await self.refused(BudgetExceededError, "clear")

    def place(self, at: int) -> int | None:
        """Draw one of the messages there are."""
        return at % len(self.model.said) if self.model.said else None

    async def _do_pin(self, at: int) -> None:
        place = self.place(at)
        if place is None:
            return
        if self.model.pin(place):
            await self.do("pin", self.event_ids()[place])
        else:
            await self.refused(ConfigurationError, "pin", self.event_ids()[place])

    async def _do_unpin(self, at: int) -> None:
        place = self.place(at)
        if place is not None:
            self.model.unpin(place)
            await self.do("unpin", self.event_ids()[place])

    async def _do_undo(self, back: int) -> None:
        if not self.model.decisions:
            await self.refused(UnknownNameError, "undo")
            return
        back = min(back, len(self.decisions) - 1)
        event_id = self.decisions[-1 - back]
        event = await self.do("undo", event_id if back else None)
        assert event.id == event_id
        self.model.undo(-1 - back)

    async def _do_redact(self, places: list[int]) -> None:
        found = sorted({place for at in places if (place := self.place(at)) is not None})
        if found:
            await self.do("redact", [self.event_ids()[place] for place in found])
            self.model.redact(found)
            self.redacted_at = len(self.log())

    async def _do_pop(self) -> None:
        place = self.model.pop()
        event = await self.do("pop")
        assert (None if event is None else event.id) == (None if place is None else self.event_ids()[place])

    async def _do_refresh(self) -> None:
        assert await self.do("refresh") == len(self.log())

    async def _do_restore(self) -> None:
        data = await self.do("snapshot")
        if self.colour == "sync":
            self.session = Session.restore(data, **self.functions())
        else:
            self.session = await Session.arestore(data, **self.functions())
        self.store = self.session.store

    def _do_reopen(self) -> None:
        if self.model.begun:
            self.session = Session.open(self.store, self.session.id, **self.functions())

    async def _do_fork(self) -> None:
        self.forks += 1
        self.session = await self.do("fork", id=f"fork {self.forks}")

    def _do_fail(self, failing: bool) -> None:
        self.writer.failing = failing

    # -- what is compared

    def log(self) -> list[Any]:
        """Every event there is."""
        return self.store.load(LoadRequest(session=self.session.id))

    def event_ids(self) -> list[str]:
        """Ids of the messages, in order."""
        return [event.id for event in self.log() if event.kind == "message"]

    async def compare(self) -> None:
        """Compare everything that can be seen."""
        log = self.log()
        self.the_log_has_everything(log)
        self.each_state_is_a_recount(log)
        self.note_decisions(log)
        if self.told != self.model.told:
            at = next(i for i, (a, b) in enumerate(zip_longest(self.told, self.model.told)) if a != b)
            raise AssertionError(f"told {self.told[at:]}, and not {self.model.told[at:]}")
        await self.the_view_is_the_models()
        self.the_numbers_are_the_models(self.session)
        if self.model.begun:
            again = Session.open(self.store, self.session.id, **self.functions())
            self.the_same(again)

    def the_log_has_everything(self, log: list[Any]) -> None:
        """E11: every message, unchanged, in order."""
        said = [event for event in log if event.kind == "message"]
        assert [event.message for event in said] == [one.message for one in self.model.said]
        assert [event.version for event in log] == list(range(1, len(log) + 1))
        assert [event.kind for event in log] == [row.kind for row in self.model.log]

    def each_state_is_a_recount(self, log: list[Any]) -> None:
        """What an event says of the session is what the whole log up to it says."""
        places = {e.version: at for at, e in enumerate(e for e in log if e.kind == "message")}
        for event, row in list(zip(log, self.model.log, strict=True))[self.seen :]:
            recent, waiting = zones_by(event, log[: event.version])
            assert {places[version] for version in recent} == row.recent
            assert {places[version] for version in waiting} == row.waiting
            names = ("recent_tokens", "recent_messages", "pending_tokens", "pending_messages")
            assert tuple(event.state.get(name, 0) for name in names) == row.numbers

    def note_decisions(self, log: list[Any]) -> None:
        """Remember the ids of decisions, as the model has them."""
        new = [event.id for event in log[self.seen :] if event.kind in ("evicted", "summary")]
        self.decisions = [*self.decisions, *new][: len(self.model.decisions)]
        if len(self.model.decisions) > len(self.decisions):
            raise AssertionError("a decision is missing in the log")
        self.seen = len(log)

    async def the_view_is_the_models(self) -> None:
        """What is shown is what SPEC E says, or what A4 says of it."""
        expected = self.model.view()
        shown: list[Message] | None = None
        refused: BudgetExceededError | None = None
        try:
            shown = await self.do("messages")
        except BudgetExceededError as error:
            refused = error
        if refused is not None:
            assert self.least_tokens() > self.model.budget
            assert refused.limit_tokens == self.model.budget
        if shown is not None:
            assert self.model.count(shown) <= self.model.budget
            if self.model.view_tokens <= self.model.budget:
                assert shown == expected
            else:
                self.is_shortened(shown, expected)
            self.is_valid(shown)
        self.messages_at[len(self.log())] = shown

    def is_shortened(self, shown: list[Message], expected: list[Message]) -> None:
        """A4: what must stay does; texts of what is held may be cut."""
        assert list(map(oracle.without_texts, shown)) == list(map(oracle.without_texts, expected))
        assert self.least_tokens() <= self.model.budget

    def least_tokens(self) -> int:
        """What is pinned, and what is held at its shortest."""
        short = []
        for message, pinned in self.model.view_and_pins():
            short.append(copy.deepcopy(message))
            if not pinned:
                oracle.shorten(short[-1], self.model.count, CUT_MARKER)
        return self.model.count(short)

    def is_valid(self, shown: list[Message]) -> None:
        """E3b: nothing is wrong with calls and results, whatever was said."""
        assert not oracle.violations(shown)

    def the_numbers_are_the_models(self, session: Session) -> None:
        """E9: counts, tokens, the summary."""
        model = self.model
        recent_tokens, recent, pending_tokens, pending = model.numbers()
        status = session.status()
        assert (status.recent_tokens, status.recent_messages) == (recent_tokens, recent)
        assert (status.pending_tokens, status.pending_messages) == (pending_tokens, pending)
        assert (status.failures, status.retry_tokens) == (model.failures, model.retry)
        assert session.recent_message_count == sum(len(model.unit(first)) for first in model.in_view())
        assert status.hidden_messages == recent + pending - session.recent_message_count
        assert session.summary == (None if model.summary is None else model.summary[0])
        assert session.budget_tokens == model.budget
        breakdown = session.token_breakdown
        assert breakdown.total == session.token_count == status.view_tokens == model.view_tokens
        assert breakdown.pending == model.tokens(model.waiting_in_view())
        assert breakdown.summary == model.shown_summary_tokens
        assert breakdown.system + breakdown.anchors == model.permanent_tokens
        assert session.anchors == model.front[model.settings.system is not None :]

    def the_same(self, other: Session) -> None:
        """E10: what is read from the store anew stands where this one stands."""
        self.the_numbers_are_the_models(other)
        with suppress(BudgetExceededError):
            assert other.messages() == self.messages_at[len(self.log())]
        assert other.total_message_count == self.session.total_message_count

    async def old_views_are_as_they_were(self) -> None:
        """E11: any past view can be shown again."""
        for version, shown in self.messages_at.items():
            if version <= self.redacted_at:
                continue
            with suppress(BudgetExceededError):
                assert await self.do("view_at", version) == shown


def living(log: list[Any]) -> list[Any]:
    """Leave out of a whole log the messages that were popped: each time the newest there is."""
    there: list[Any] = []
    for event in log:
        if event.kind == "popped":
            newest = max(at for at, one in enumerate(there) if one.kind == "message")
            assert there[newest].id == event.data["event"]
            del there[newest]
        there.append(event)
    return there


def zones_by(event: Any, log: list[Any]) -> tuple[set[int], set[int]]:
    """Read the recent and the waiting messages off a state and the whole log before it."""
    state = event.state
    units: dict[int, list[int]] = {}
    for one in living(log):
        if one.kind == "message":
            units.setdefault(one.data.get("joins", one.version), []).append(one.version)
    live, cut = state.get("live", 1), state.get("cut", 1)
    beside = {members[0]: members for members in state.get("beside", ())}
    left = {members[0]: members for members in state.get("left", ())}
    recent, waiting = set[int](), set[int]()
    for first, members in units.items():
        if first in beside:
            assert members == beside[first]
            recent.update(members)
        elif first in left:
            assert members == left[first]
            waiting.update(members)
        elif first >= cut:
            recent.update(members)
        elif first >= live:
            waiting.update(members)
    return recent, waiting


def play(settings: Settings, operations: Sequence[Operation], **how: Any) -> Play:
    """Play operations from the first to the last, and look at every view once more."""
    played = Play(settings, **how)

    async def all_of_it() -> None:
        await played.compare()
        for operation in operations:
            await played.step(operation)
        await played.old_views_are_as_they_were()

    asyncio.run(all_of_it())
    return played


# -- what is drawn

IDS = ("A", "B", "C")

_SIZES = st.one_of(st.integers(0, 20), st.integers(0, 20), st.integers(20, 60), st.integers(60, 150))
_TEXTS = _SIZES.map(words)
_CONTENTS = st.one_of(_TEXTS, _TEXTS, _TEXTS, _TEXTS.map(lambda text: [{"type": "text", "text": text}]))
MESSAGES: st.SearchStrategy[Message] = st.one_of(
    _CONTENTS.map(user),
    _CONTENTS.map(user),
    _CONTENTS.map(assistant),
    st.lists(st.sampled_from(IDS), min_size=1, max_size=2, unique=True).map(lambda ids: call(*ids)),
    st.builds(result, st.sampled_from((*IDS, "Z")), _CONTENTS),
    st.builds(result, st.sampled_from(IDS), _CONTENTS),
    st.integers(0, 10).map(words).map(system),
)


@st.composite
def exchanges(draw: st.DrawFn) -> list[Message]:
    """Draw talk as it mostly is: questions, calls with their results, answers."""
    made: list[Message] = []
    for _ in range(draw(st.integers(1, 5))):
        made.append(user(draw(_TEXTS)))
        if draw(st.booleans()):
            ids = draw(st.lists(st.sampled_from(IDS), min_size=1, max_size=2, unique=True))
            made += [call(*ids), *(result(one, draw(_TEXTS)) for one in ids)]
        made.append(assistant(draw(_TEXTS)))
    return made


_PLACES = st.integers(0, 999)
_ANCHORS = st.lists(st.integers(0, 12).map(words).map(user), max_size=2)
ADDS: st.SearchStrategy[Operation] = st.one_of(
    st.tuples(st.just("add"), MESSAGES),
    st.tuples(st.just("add"), MESSAGES),
    st.tuples(st.just("extend"), st.lists(MESSAGES, min_size=1, max_size=5)),
    st.tuples(st.just("extend"), exchanges()),
    st.tuples(
        st.just("add"),
        st.lists(st.sampled_from("DEFGHIJK"), min_size=1, max_size=2, unique=True).map(
            lambda ids: call(*ids)
        ),
    ),
    st.tuples(st.just("late"), _PLACES, _TEXTS),
    st.tuples(st.just("late"), _PLACES, _TEXTS),
)
ORDERS: st.SearchStrategy[Operation] = st.one_of(
    st.tuples(st.just("budget"), st.integers(100, 300)),
    st.tuples(st.just("anchors"), _ANCHORS),
    st.tuples(st.just("pin"), _PLACES),
    st.tuples(st.just("pin"), _PLACES),
    st.tuples(st.just("pin"), _PLACES),
    st.tuples(st.just("unpin"), _PLACES),
    st.tuples(st.just("undo"), st.integers(0, 3)),
    st.tuples(st.just("undo"), st.just(0)),
    st.tuples(st.just("redact"), st.lists(_PLACES, min_size=1, max_size=2)),
    st.just(("pop",)),
    st.just(("pop",)),
    st.just(("pop",)),
    st.just(("refresh",)),
    st.just(("restore",)),
    st.just(("reopen",)),
    st.just(("fork",)),
    st.tuples(st.just("fail"), st.booleans()),
)
CLEAR: st.SearchStrategy[Operation] = st.just(("clear",))
OPERATIONS = st.lists(st.one_of(*[ADDS] * 9, *[ORDERS] * 4, CLEAR) | ADDS | ADDS, min_size=15, max_size=35)


def _anchors_have_room(options: Settings) -> bool:
    """Draw no session that is refused from the first."""
    most = options.budget * 3 // 10 if options.max_summary is None else options.max_summary
    cap = most * 4 // 10 if options.max_anchor is None else options.max_anchor
    return sum(len(str(anchor["content"]).split()) for anchor in options.anchors) <= cap


SETTINGS = st.builds(
    Settings,
    budget=st.integers(100, 220),
    system=st.none() | st.integers(1, 12).map(words),
    mode=st.sampled_from(("incremental", "rolling", "anchored")),
    summarizes=st.sampled_from((True, True, False)),
    max_summary=st.none() | st.integers(6, 60),
    min_recent=st.none() | st.integers(0, 150),
    threshold=st.none() | st.integers(1, 80),
    threshold_messages=st.integers(1, 8),
    role=st.sampled_from(("system", "user")),
    anchors=st.lists(st.integers(0, 3).map(words).map(user), max_size=2),
    max_anchor=st.just(None) | st.integers(6, 40),
    pending_first=st.sampled_from((False, False, True)),
    ratio=st.sampled_from((0.5, 0.5, 0.7, 0.9, 1.0)),
).filter(_anchors_have_room)
