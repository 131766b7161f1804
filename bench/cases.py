"""One case: a conversation, a budget, and every contender on it."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import peers
import timing
from conversations import Messages
from floors import count_texts, plain_loop, read_roles_and_ids, texts_of
from recount import Verdict, judge

PLAIN = "plain loop"
TRIMTAB = "trimtab"
TRIMTAB_REPORT = "trimtab, report read"
LANGCHAIN = "langchain-core"
LANGCHAIN_GIVEN_TEXTS = "langchain-core, args as text"
"""The same with the JSON text of call arguments at hand, which real LangChain messages do not hold."""
LITELLM = "litellm"
FLOOR_TEXT = "floor: kept text once"
FLOOR_READ = "floor: roles and ids of all"
CONTENDERS = (TRIMTAB, LANGCHAIN, LITELLM)


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How long to measure."""

    seconds_a_batch: float = 1.5
    """Aim for the fast contenders; the slow peer gets its own."""
    peer_seconds: float = 30.0
    """Time limit of a peer that may run for minutes."""
    contenders: frozenset[str] = frozenset(CONTENDERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One contender in one case."""

    name: str
    milliseconds: float | None = None
    """None: it did not run or did not end; `note` says which."""
    verdict: Verdict | None = None
    """None for a floor that makes no output, and where there is no output."""
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What was measured on one conversation and budget."""

    wanted_messages: int
    messages: int
    tokens: int
    budget: int
    rows: list[Row]
    total_agrees: bool | None
    """True if the size in trimtab's report is the recounted one; None without trimtab."""

    def milliseconds(self, name: str) -> float | None:
        """Return the time of a contender, or None."""
        return next((row.milliseconds for row in self.rows if row.name == name), None)

    def ratio(self, name: str, base: str) -> float | None:
        """Return the time of `name` divided by that of `base`, or None if either is missing."""
        one, other = self.milliseconds(name), self.milliseconds(base)
        return one / other if one is not None and other else None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data with both ratios in each row."""
        data = asdict(self)
        for row in data["rows"]:
            row["x_plain_loop"] = self.ratio(row["name"], PLAIN)
            row["faster_than_langchain"] = self.ratio(LANGCHAIN, row["name"])
        return data


@dataclass(frozen=True, slots=True, kw_only=True)
class _Contender:
    name: str
    prepare: timing.Prepare
    output: Callable[[], Messages] | None
    """Makes the output once, off the clock, in the wire form; None for a floor without one."""


def trimtab_missing() -> str | None:
    """Return why trimtab cannot run, or None if it can."""
    if importlib.util.find_spec("trimtab") is None:
        return "trimtab is not installed here (pip install -e '.[exact]')"
    import trimtab

    return None if hasattr(trimtab, "fit") else "this trimtab has no fit()"


def measure(messages: Messages, *, wanted: int, tokens: int, budget: int, file: Path, effort: Effort) -> Case:
    """Time every contender on one conversation, and judge what each gives back."""
    absent: list[Row] = []
    contenders = _floors(messages, budget)
    ours = _trimtab(absent, messages, budget, effort)
    langchain = _langchain(absent, messages, budget, effort)
    groups = [contenders + ours[:1], ours[1:], [_floor_of_reading(messages)], langchain]
    times = _times(groups, effort)
    rows = [_row(one, times[one.name], messages, budget) for group in groups for one in group]
    if LITELLM in effort.contenders:
        absent.append(_litellm(messages, budget, file, effort))
    return Case(
        wanted_messages=wanted,
        messages=len(messages),
        tokens=tokens,
        budget=budget,
        rows=_in_order(rows + absent),
        total_agrees=_total_agrees(rows, messages, budget),
    )


def _floors(messages: Messages, budget: int) -> list[_Contender]:
    texts = texts_of(plain_loop(messages, budget))
    return [
        _Contender(name=FLOOR_TEXT, prepare=_always(partial(count_texts, texts)), output=None),
        _Contender(
            name=PLAIN,
            prepare=_always(partial(plain_loop, messages, budget)),
            output=partial(plain_loop, messages, budget),
        ),
    ]


def _floor_of_reading(messages: Messages) -> _Contender:
    return _Contender(name=FLOOR_READ, prepare=_always(partial(read_roles_and_ids, messages)), output=None)


def _trimtab(absent: list[Row], messages: Messages, budget: int, effort: Effort) -> list[_Contender]:
    """Return the fit, and apart from it the fit whose report is read: that visits every message."""
    if TRIMTAB not in effort.contenders:
        return []
    if why := trimtab_missing():
        absent.append(Row(name=TRIMTAB, note=why))
        return []
    import subject

    return [
        _Contender(
            name=name,
            prepare=partial(_with_fresh_counter, trim, messages, budget),
            output=_with_fresh_counter(trim, messages, budget),
        )
        for name, trim in ((TRIMTAB, subject.trim), (TRIMTAB_REPORT, subject.trim_and_report))
    ]


def _with_fresh_counter(
    trim: Callable[[Messages, int, Any], Messages], messages: Messages, budget: int
) -> Callable[[], Messages]:
    import subject

    counter = subject.fresh_counter()
    return partial(trim, messages, budget, counter)


def _langchain(absent: list[Row], messages: Messages, budget: int, effort: Effort) -> list[_Contender]:
    if LANGCHAIN not in effort.contenders:
        return []
    if why := peers.missing("langchain-core", "langchain_core"):
        absent.append(Row(name=LANGCHAIN, note=why))
        return []
    converted = peers.langchain_messages(messages)
    counters = {
        LANGCHAIN: peers.langchain_counter(),
        LANGCHAIN_GIVEN_TEXTS: peers.langchain_counter_given_texts(messages),
    }
    return [
        _Contender(
            name=name,
            prepare=_always(partial(peers.langchain_trim, converted, budget, counter)),
            output=partial(_langchain_output, converted, budget, counter, messages),
        )
        for name, counter in counters.items()
    ]


def _langchain_output(
    converted: list[Any], budget: int, counter: Callable[[list[Any]], int], messages: Messages
) -> Messages:
    return peers.originals(peers.langchain_trim(converted, budget, counter), messages)


def _always(run: Callable[[], Any]) -> timing.Prepare:
    """Prepare nothing: the run starts the same every time."""
    return lambda: run


def _times(groups: list[list[_Contender]], effort: Effort) -> dict[str, float]:
    """Return milliseconds a contender, the lowest of the medians of its batches."""
    prepared = [{one.name: one.prepare for one in group} for group in groups if group]
    batches = timing.batches_ms(prepared, seconds=effort.seconds_a_batch)
    return {name: min(batch[name] for batch in batches) for name in batches[0]}


def _row(one: _Contender, milliseconds: float, messages: Messages, budget: int) -> Row:
    verdict = judge(one.output(), given=messages, budget=budget) if one.output else None
    return Row(name=one.name, milliseconds=milliseconds, verdict=verdict)


def _litellm(messages: Messages, budget: int, file: Path, effort: Effort) -> Row:
    if why := peers.missing("litellm", "litellm"):
        return Row(name=LITELLM, note=why)
    run = peers.litellm_run(file, budget, limit_seconds=effort.peer_seconds)
    note = f"own tokenizer: {run.tokenizer}"
    if run.milliseconds is None or run.output is None:
        return Row(name=LITELLM, note=f"{run.error or f'> {effort.peer_seconds:.0f} s'}; {note}")
    verdict = judge(run.output, given=peers.litellm_messages(messages), budget=budget)
    return Row(name=LITELLM, milliseconds=run.milliseconds, verdict=verdict, note=note)


def _total_agrees(rows: list[Row], messages: Messages, budget: int) -> bool | None:
    verdict = next((row.verdict for row in rows if row.name == TRIMTAB), None)
    if verdict is None:
        return None
    import subject

    return subject.reported_tokens(messages, budget, subject.fresh_counter()) == verdict.tokens


def _in_order(rows: list[Row]) -> list[Row]:
    order = (
        TRIMTAB,
        TRIMTAB_REPORT,
        PLAIN,
        FLOOR_TEXT,
        FLOOR_READ,
        LANGCHAIN,
        LANGCHAIN_GIVEN_TEXTS,
        LITELLM,
    )
    return sorted(rows, key=lambda row: order.index(row.name))
