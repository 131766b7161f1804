"""`python -m tests.conformance FILE…`: run vectors, one line a system; exit 1 if any failed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from tests.conformance import run_file
from tests.conformance.judging import Verdict, summary
from tests.conformance.vectors import NoVector, vector_files, vectors_dir


def main(arguments: Sequence[str]) -> int:
    """Run the files named, all of them if none is; print failures to standard error."""
    paths = [Path(name) for name in arguments] or vector_files(vectors_dir())
    if not paths:
        print(f"no vectors in {vectors_dir()}: name files, or set TRIMTAB_SHARED", file=sys.stderr)
        return 2
    by_system: dict[str, list[Verdict]] = {}
    try:
        for path in paths:
            for verdict in run_file(path):
                by_system.setdefault(verdict.case.system, []).append(verdict)
    except (NoVector, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    failed = 0
    for system, verdicts in by_system.items():
        print(summary(system, verdicts))
        for verdict in verdicts:
            if verdict.fate == "failed":
                failed += 1
                print(f"  {verdict.explanation}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
