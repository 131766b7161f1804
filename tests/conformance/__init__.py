"""Conformance: the cases of the five reference systems, run through the public API (SPEC F)."""

from __future__ import annotations

from pathlib import Path

from tests.conformance.adapters import SYSTEMS
from tests.conformance.judging import Verdict, judge
from tests.conformance.vectors import read_cases


def run_file(path: Path) -> list[Verdict]:
    """Judge every case of a file, in order; a system without an adapter is out of scope."""
    return [judge(case, SYSTEMS.get(case.system, {})) for case in read_cases(path)]
