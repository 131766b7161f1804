"""`python -m trimtab.testing.corpus`: run the cases and say what was wrong.

Exit status: 0 if nothing was, 1 if something was, 2 if it was not understood.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from trimtab.errors import ContextError
from trimtab.testing.corpus import Case, cases, check, read_cases, run
from trimtab.testing.errors import ContractBroken


def main(arguments: Sequence[str] | None = None, /) -> int:
    """Run the cases asked for, and print a line for each that is wrong and one a form."""
    asked = _parser().parse_args(arguments)
    try:
        chosen = [case for path in asked.files for case in read_cases(path)] or cases(asked.form)
        judge = run if asked.trimmer is None else _checker(_find_trimmer(asked.trimmer))
    except (ContextError, OSError, ImportError, AttributeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    chosen = [case for case in chosen if asked.form in (None, case.form)]
    failed = {case.id: wrong for case in chosen if (wrong := judge(case))}
    for case_id, wrong in failed.items():
        print(f"{case_id}: {'; '.join(wrong)}")
    for form in sorted({case.form for case in chosen}):
        ids = [case.id for case in chosen if case.form == form]
        print(f"{form}: {len(ids)} cases, {sum(one in failed for one in ids)} wrong")
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m trimtab.testing.corpus", description=__doc__)
    parser.add_argument("files", nargs="*", metavar="FILE", help="cases as JSONL; none: those of trimtab")
    parser.add_argument("--form", help="only cases in this wire form")
    parser.add_argument("--trimmer", metavar="MODULE:FUNCTION", help="ask this function (case) -> messages")
    return parser


def _find_trimmer(name: str) -> Callable[[Case], Any]:
    module, _, function = name.partition(":")
    found: Callable[[Case], Any] = getattr(import_module(module), function)
    return found


def _checker(trim: Callable[[Case], Any]) -> Callable[[Case], list[str]]:
    """Ask a trimmer; what it raises is what is wrong."""

    def judge(case: Case) -> list[str]:
        try:
            return check(case, _ask(trim, case))
        except ContractBroken as raised:
            return [str(raised)]

    return judge


def _ask(trim: Callable[[Case], Any], case: Case) -> Any:
    try:
        return trim(case)
    except Exception as error:
        raise ContractBroken(f"raised {type(error).__name__}: {error}", rule="answers") from error


if __name__ == "__main__":
    sys.exit(main())
