"""Judging a case: passed, a difference that a rule explains, out of scope, or failed."""

from __future__ import annotations

import asyncio
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tests.conformance.vectors import LANGUAGE_SPECIFIC, Case
from trimtab import errors
from trimtab.errors import ContextError

PACKAGE = Path(errors.__file__).parent

Answer = Mapping[str, Any]
"""What a call came to, in plain words; `{"error": name}` if it raised."""

Rule = Callable[[Answer], bool]
"""Tells whether an answer keeps a rule of SPEC. It never sees the other answer."""


class OutOfScope(Exception):
    """The case is about something trimtab does not have, or not yet."""


class Injected(Exception):
    """A fault that a case puts into a user's function: it comes through as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A case run through the public API: both answers in one shape, and the rules they are held to."""

    expected: Answer
    ours: Answer
    rules: Mapping[str, Rule] = field(default_factory=dict)
    """Rules that may explain a difference, the weightiest first: it is put down to the first one broken."""
    guards: Mapping[str, Rule] = field(default_factory=dict)
    """Rules that ours must keep, too, and that explain nothing."""
    items: Sequence[Any] = ()
    """Everything that `kept` could list, in its order; the suite makes wrong answers of it."""


Op = Callable[[Case], Trial]
"""Runs a case. Raises `OutOfScope`."""

System = Mapping[str, Op]
"""What an adapter is: its ops by name; all others are out of scope."""

Fate = Literal["passed", "by rule", "out of scope", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of one case."""

    case: Case
    fate: Fate
    by: str = ""
    """The rule, or the op that is out of scope."""
    trial: Trial | None = None

    @property
    def explanation(self) -> str:
        """Say what a failed case is about."""
        if self.trial is None:
            return ""
        return f"{self.case.id} ({self.by}): expected {self.trial.expected}, ours {self.trial.ours}"


def attempt(call: Callable[[], Answer]) -> Answer:
    """Run a call; an error of trimtab is an answer, and so is one that a user's function raised."""
    try:
        return call()
    except (ContextError, Injected, asyncio.CancelledError) as error:
        return {"error": type(error).__name__}


def kind_of(spec: Any, what: str) -> str:
    """Return the kind a vector names.

    Raises:
        OutOfScope: It names none; `what` says of what.
    """
    kind = spec.get("kind") if isinstance(spec, Mapping) else None
    if not isinstance(kind, str):
        raise OutOfScope(f"{what} without a kind")
    return kind


def weigh(trial: Trial) -> tuple[Fate, str]:
    """Compare the two answers of a trial.

    What is expected must come out, unless it breaks a rule. Ours must keep every rule, whether it
    is what was expected or not, so that no rule hides a breach of another.
    """
    for name, keeps in (*trial.rules.items(), *trial.guards.items()):
        if not keeps(trial.ours):
            return "failed", f"ours breaks {name}"
    if trial.ours == trial.expected:
        return "passed", ""
    for name, keeps in trial.rules.items():
        if not keeps(trial.expected):
            return "by rule", name
    return "failed", "no rule explains it"


def judge(case: Case, system: System) -> Verdict:
    """Run one case through its adapter and judge it; whatever the case holds, there is a verdict.

    What trimtab refuses is its answer. What cannot be put to it at all, as a key that every other case
    has is missing, is out of scope by the name of what went wrong. A bare error out of trimtab's own lines
    is an answer that no rule explains.
    """
    op = system.get(case.op)
    if op is None:
        return Verdict(case=case, fate="out of scope", by=case.op)
    if LANGUAGE_SPECIFIC in case.tags:
        return Verdict(case=case, fate="out of scope", by=f"{case.op} {LANGUAGE_SPECIFIC}")
    try:
        trial = op(case)
        fate, by = weigh(trial)
    except OutOfScope as reason:
        return Verdict(case=case, fate="out of scope", by=f"{case.op} {reason}")
    except Exception as error:
        # A vector may hold anything that JSON can, and the adapters read it as what vectors usually hold.
        if not isinstance(error, ContextError) and not _is_of_trimtab(error):
            return Verdict(case=case, fate="out of scope", by=f"{case.op} {UNREADABLE} {_named(error)}")
        trial = Trial(expected=case.expected, ours={"error": type(error).__name__})
        fate, by = weigh(trial)
    return Verdict(case=case, fate=fate, by=by, trial=trial)


UNREADABLE = "cannot be put:"
"""How the reason of a case begins that has not the shape of a vector."""


def _is_of_trimtab(error: Exception) -> bool:
    """Tell whether a line of trimtab raised it, or a library that this line called."""
    tests = Path(__file__).parents[1]
    files = [Path(frame.filename) for frame in traceback.extract_tb(error.__traceback__)]
    ours = [
        path.is_relative_to(PACKAGE)
        for path in files
        if path.is_relative_to(PACKAGE) or path.is_relative_to(tests)
    ]
    return ours[-1]


def _named(error: Exception) -> str:
    """Say which error it is, in few words: cases of one cause are one row of the summary."""
    return (
        f"{type(error).__name__} {error.args[0]!r:.40}"
        if isinstance(error, KeyError)
        else type(error).__name__
    )


def summary(system: str, verdicts: Iterable[Verdict]) -> str:
    """Write one line on the cases of a system."""
    listed = list(verdicts)
    fates = Counter(verdict.fate for verdict in listed)
    ruled, outside = _tally(listed, "by rule"), _tally(listed, "out of scope")
    return (
        f"{system} passed {fates['passed']}, by rule {fates['by rule']}{ruled},"
        f" out of scope {fates['out of scope']}{outside}, failed {fates['failed']} of {len(listed)}"
    )


def _tally(verdicts: Iterable[Verdict], fate: Fate) -> str:
    counts = Counter(verdict.by for verdict in verdicts if verdict.fate == fate)
    listed = ", ".join(f"{by}: {count}" for by, count in sorted(counts.items()))
    return f" ({listed})" if listed else ""
