"""Requests that break trimmers, as data: run them through trimtab or through a trimmer of your own.

`python -m trimtab.testing.corpus` fits every case and prints what was wrong; `--trimmer module:function`
asks a function `(case) -> messages` instead. From Python: `cases()` gives the cases, `check(case, messages)`
says what is wrong with an answer. Each case was met in somebody's tracker or found by fuzzing trimtab.
"""

from __future__ import annotations

from trimtab.testing.corpus.case import Case, check, run
from trimtab.testing.corpus.files import cases, read_cases

__all__ = ["Case", "cases", "check", "read_cases", "run"]
