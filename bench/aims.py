"""The numbers of "It is done when", each reached or missed by this run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import prefix_reuse
from cases import LANGCHAIN, PLAIN, TRIMTAB, Case
from prefix_reuse import Reuse
from replay import Replayed

LARGE = 10_000
MOST_X_PLAIN = {8_000: 1.5, 128_000: 1.5}
LEAST_X_LANGCHAIN = {8_000: 100.0, 128_000: 25.0}
MOST_X_PLAIN_FIRST = {8_000: 2.0}
MOST_X_DICT = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    """One aim and what this run says of it."""

    text: str
    found: str
    reached: bool

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)


def of_cases(cases: list[Case]) -> Iterator[Aim]:
    """Yield the aims on speed at 10,000 messages, and that every output is right."""
    for case in cases:
        if case.wanted_messages != LARGE:
            continue
        where = f"{LARGE:,} messages into {case.budget:,}"
        slower = case.ratio(TRIMTAB, PLAIN)
        if slower is not None and case.budget in MOST_X_PLAIN:
            most = MOST_X_PLAIN[case.budget]
            yield Aim(
                text=f"{where}: at most {most:g} x the plain loop",
                found=f"{slower:.2f} x",
                reached=slower <= most,
            )
        faster = case.ratio(LANGCHAIN, TRIMTAB)
        if faster is not None and case.budget in LEAST_X_LANGCHAIN:
            least = LEAST_X_LANGCHAIN[case.budget]
            yield Aim(
                text=f"{where}: at least {least:g} x faster than langchain-core",
                found=f"{faster:.0f} x",
                reached=faster >= least,
            )
    yield from _of_outputs(cases)


def _of_outputs(cases: list[Case]) -> Iterator[Aim]:
    judged = [(case, row.verdict) for case in cases for row in case.rows if row.name == TRIMTAB]
    verdicts = [(case, verdict) for case, verdict in judged if verdict is not None]
    if verdicts:
        right = sum(one.valid and one.within_budget and bool(case.total_agrees) for case, one in verdicts)
        yield Aim(
            text="every output valid, within budget, its reported size the recounted one",
            found=f"{right} of {len(verdicts)}",
            reached=right == len(verdicts),
        )


def of_first_calls(budget: int, batches: list[dict[str, float]]) -> Iterator[Aim]:
    """Yield the aim on the first call of a fresh process; the worse batch counts."""
    if budget in MOST_X_PLAIN_FIRST:
        worst = max(batch[TRIMTAB] / batch[PLAIN] for batch in batches)
        most = MOST_X_PLAIN_FIRST[budget]
        yield Aim(
            text=f"{LARGE:,} messages into {budget:,}, first call of a process: at most {most:g} x the loop",
            found=f"{worst:.2f} x",
            reached=worst <= most,
        )


def of_replay(budget: int, replayed: list[Replayed]) -> Iterator[Aim]:
    """Yield the aim on the replay."""
    seconds = {one.name: one.seconds for one in replayed}
    if TRIMTAB in seconds:
        ratio = seconds[TRIMTAB] / seconds[PLAIN]
        yield Aim(
            text=f"replay into {budget:,}: at most {MOST_X_DICT:g} x the plain loop with a dict of counts",
            found=f"{ratio:.2f} x",
            reached=ratio <= MOST_X_DICT,
        )


def of_reuse(found: list[Reuse]) -> Iterator[Aim]:
    """Yield the aims on prompt prefixes."""
    for one in found:
        if one.rule == f"target_ratio={prefix_reuse.TARGET_RATIO}":
            where = f"{one.conversation} into {one.budget:,}, {one.rule}"
            yield Aim(
                text=f"{where}: over {prefix_reuse.AIM:.0%} of a prompt is a prefix of the one before",
                found=f"{one.reused_share:.1%}",
                reached=one.reused_share > prefix_reuse.AIM,
            )
            yield Aim(
                text=f"{where}: the cut never moves back",
                found=f"{one.backward_moves} of {one.cut_moves} moves",
                reached=not one.backward_moves,
            )
