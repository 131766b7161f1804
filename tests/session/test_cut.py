"""`Session.cut`: a cut that is asked for, since a request has more beside the view than the session knows."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from trimtab import Session
from trimtab.counting import FixedCounter
from trimtab.stores import SQLiteStore
from trimtab.summaries import Fact, FactRequest

TEN = FixedCounter(per_message=10)


def _filled(messages: int, **options: Any) -> Session:
    session = Session(200, counter=TEN, **options)
    for number in range(messages):
        session.add({"role": "user", "content": f"m{number}"})
    return session


def _numbers(messages: list[Any]) -> list[int]:
    return [int(message["content"].removeprefix("m")) for message in messages]


def test_a_cut_leaves_what_one_of_the_budget_leaves() -> None:
    """Half of the room, the newest of it; then nothing leaves until the budget is passed."""
    session = _filled(18)
    assert session.cut() == 8
    assert _numbers(session.messages()) == [*range(8, 18)]
    for number in range(18, 28):
        session.add({"role": "user", "content": f"m{number}"})
    assert _numbers(session.messages()) == [*range(8, 28)]
    session.add({"role": "user", "content": "m28"})
    assert _numbers(session.messages()) == [*range(19, 29)]
    assert _numbers([event.message for event in session.history()]) == [*range(29)]


def test_a_cut_is_kept_in_the_log_and_can_be_taken_back(tmp_path: Path) -> None:
    """Whoever opens the session has the same view; `undo` names the cut and shows again what had left."""
    with SQLiteStore(tmp_path / "s.db") as store:
        session = _filled(18, store=store, id="s")
        session.cut()
        assert _numbers(Session.open(store, "s", counter=TEN).messages()) == [*range(8, 18)]
        assert session.undo().kind == "evicted"
        assert _numbers(session.messages()) == [*range(18)]


def _summarized(messages: list[Any], existing: str | None) -> str:
    """Tell which messages a summary is of."""
    return "of " + ", ".join(message["content"] for message in messages)


class _Facts:
    """Finds one fact in whatever left."""

    def extract(self, request: FactRequest) -> list[Fact]:
        """Answer."""
        return [Fact(text="they count", sources=request.ids[:1])]


def _shown(session: Session) -> list[str]:
    return [message["content"] for message in session.messages()]


def test_the_summary_of_what_was_cut_is_taken_back_before_the_cut() -> None:
    """A step of `undo` for each, or one that names the cut; where no summary was due there is none."""
    everything = [f"m{number}" for number in range(18)]
    session = _filled(18, summarizer=_summarized)
    left = session.cut()
    cut, summary = list(session.history(kinds=("evicted", "summary")))
    assert (cut.kind, summary.kind) == ("evicted", "summary")
    after = _shown(session)
    assert "of m0, m1" in after[0]
    assert after[1:] == everything[left:]

    assert session.undo() == summary
    without = _shown(session)
    assert session.summary is None
    # What waits again is in view as far as it has room: not all of it.
    assert without == everything[-len(without) :]
    assert len(after) - 1 < len(without) < 18
    assert session.undo() == cut
    assert _shown(session) == everything

    named = _filled(18, summarizer=_summarized)
    named.cut()
    assert named.undo(next(iter(named.history(kinds=("evicted",))))).kind == "evicted"
    assert (_shown(named), named.summary) == (everything, None)

    read = _filled(18, summarizer=_summarized, fact_extractor=_Facts())
    read.cut()
    assert [read.undo().kind for _ in range(3)] == ["facts", "summary", "evicted"]
    assert _shown(read) == everything

    early = _filled(
        18, summarizer=_summarized, summarize_threshold_tokens=150, summarize_threshold_messages=99
    )
    early.cut()
    assert early.summary is None
    assert early.undo().kind == "evicted"
    assert _shown(early) == everything


def test_where_nothing_may_leave_nothing_is_written() -> None:
    """A second cut behind the first, what is pinned, and a session that is empty."""
    session = _filled(18)
    session.cut()
    version = session.version
    assert (session.cut(), session.version) == (0, version)
    assert _numbers(session.messages()) == [*range(8, 18)]
    assert Session(200, counter=TEN).cut() == 0
    pinned = _filled(12)
    for event in pinned.history():
        pinned.pin(event.id)
    assert pinned.cut() == 0
    assert _numbers(pinned.messages()) == [*range(12)]


def test_what_is_cut_is_summarized_as_ever() -> None:
    """In asyncio too: the summary stands in front of what stays."""

    async def summarize(messages: list[Any], existing: str | None) -> str:
        asked.append(_numbers(messages))
        return "so far"

    async def run() -> list[Any]:
        session = Session(200, counter=TEN, summarizer=summarize)
        for number in range(18):
            await session.aadd({"role": "user", "content": f"m{number}"})
        assert await session.acut() > 0
        return await session.amessages()

    asked: list[list[int]] = []
    view = asyncio.run(run())
    assert asked == [[*range(len(asked[0]))]]
    assert "so far" in view[0]["content"]
    assert _numbers(view[1:]) == [*range(len(asked[0]), 18)]
