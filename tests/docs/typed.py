"""The examples of the documents pass both type checkers: `python -m tests.docs.typed` (part of `make types`).

The Python blocks of each document are put into one file, as they run. Functions that an example defines need
no annotations; everything an example does with trimtab is checked as strictly as in a program of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tests.docs.documents import ROOT, STANDALONE, blocks, documents

MYPY = ("--strict", "--allow-untyped-defs", "--allow-untyped-calls", "--allow-incomplete-defs")
NAMED_AGAIN = "--allow-redefinition"
"""The next example of a page may call something else `messages`."""

PYRIGHT = {
    "include": ["."],
    "pythonVersion": "3.11",
    "typeCheckingMode": "strict",
    "reportMissingTypeStubs": False,  # pyarrow and boto3 bring none
    # What follows of functions without annotations.
    "reportMissingParameterType": False,
    "reportUnknownArgumentType": False,
    "reportUnknownLambdaType": False,
    "reportUnknownMemberType": False,
    "reportUnknownParameterType": False,
    "reportUnknownVariableType": False,
    "reportMissingTypeArgument": False,
    # What follows of many examples in one file.
    "reportConstantRedefinition": False,
    "reportRedeclaration": False,
    "reportUnusedExpression": False,
    "reportUnusedFunction": False,
    # A page may show where a name comes from and use it in words only.
    "reportUnusedImport": False,
}


def write(pages: Iterable[Path], folder: Path) -> list[Path]:
    """Write a file of each document that has Python examples, line by line as they stand there.

    An example of a page of programs is a file of its own as well.
    """
    written = []
    for document in pages:
        text = document.read_text(encoding="utf-8")
        if document in STANDALONE:
            programs = [block.text for block in blocks(text) if block.kind == "python"]
            for number, program in enumerate(programs):
                written.append(folder / f"program_{document.stem}_{number}.py")
                written[-1].write_text(program, encoding="utf-8")
        lines = [""] * (text.count("\n") + 1)
        for block in blocks(text):
            if block.kind == "python":
                for at, line in enumerate(block.text.splitlines(), block.line - 1):
                    lines[at] = line
        if any(lines):
            place = document.relative_to(ROOT) if document.is_relative_to(ROOT) else Path(document.name)
            name = "_".join(place.with_suffix("").parts).replace("-", "_").lower()
            path = folder / f"{name}.py"
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
            written.append(path)
    return written


def check(pages: Iterable[Path]) -> int:
    """Run both checkers over the examples; returns how many found something."""
    with tempfile.TemporaryDirectory(prefix="trimtab-typed-") as name:
        folder = Path(name)
        files = [str(path) for path in write(pages, folder)]
        config = folder / "pyrightconfig.json"
        config.write_text(json.dumps(PYRIGHT), encoding="utf-8")
        mypy_ini = "[mypy]\npython_version = 3.11\n[mypy-pyarrow.*,boto3]\nignore_missing_imports = True\n"
        (folder / "mypy.ini").write_text(mypy_ini, encoding="utf-8")
        commands = (
            ["mypy", "--config-file", str(folder / "mypy.ini"), *MYPY, NAMED_AGAIN, *files],
            ["pyright", "--pythonpath", sys.executable, "-p", str(config)],
        )
        return sum(
            bool(subprocess.run([sys.executable, "-m", *command], cwd=ROOT, check=False).returncode)
            for command in commands
        )


if __name__ == "__main__":
    sys.exit(check(documents()))
