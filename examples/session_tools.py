"""The read-only tools of the recorded session; each really does what its name says.

Used by `record_session.py`. All paths are relative to the project's folder, and what differs
from run to run (durations, memory addresses, absolute folders) is taken out of the outputs.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

FOLDERS = ("src", "tests", "docs", "design")
"""What the agent may look at, besides README.md. Not examples/: a recording must not read itself."""

SUFFIXES = (".py", ".md", ".toml")

MAX_HITS = 400
"""Most lines one search prints; enough for one output of tens of kilobytes."""

RUN_SECONDS = 120
"""How long one test file or snippet may take."""

_SETTINGS = {
    "COLUMNS": "100",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONIOENCODING": "utf-8",
    "PYTHONPATH": "src",
}
"""Environment of what is run: the project importable, nothing left behind, one width everywhere."""

_DURATION = re.compile(r" in \d+\.\d+s(?: \(\d+:\d\d:\d\d\))?")
_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")
_MACHINE_FOLDER = re.compile(r"(?<![\w.~-])/(?:work|root|tmp|home|opt|Users)(?![\w-])")


class ToolError(Exception):
    """What a tool answers instead of a result; the agent sees its text."""


class Toolbox:
    """The agent's tools over one project folder."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self._tools: dict[str, Callable[..., str]] = {
            "list_files": self.list_files,
            "outline": self.outline,
            "read_file": self.read_file,
            "run_python": self.run_python,
            "run_tests": self.run_tests,
            "search": self.search,
            "word_count": self.word_count,
        }

    def run(self, name: str, arguments: dict[str, Any]) -> str:
        """Run one tool and give its output, or `error: ...` as an agent's harness would."""
        try:
            output = self._tools[name](**arguments)
        except ToolError as error:
            output = f"error: {error}"
        return self._without_machine(output)

    def files(self, folder: str = ".", *, pattern: str = "*") -> list[str]:
        """Give the paths under a folder, sorted."""
        found = [path for name in FOLDERS for path in (self.root / name).rglob(pattern)]
        found += self.root.glob("README.md") if fnmatch("README.md", pattern) else ()
        paths = sorted(path.relative_to(self.root).as_posix() for path in found if path.suffix in SUFFIXES)
        prefix = "" if folder == "." else folder.rstrip("/") + "/"
        return [path for path in paths if path.startswith(prefix)]

    def list_files(self, folder: str = ".", pattern: str = "*") -> str:
        """List files with their size."""
        paths = self.files(folder, pattern=pattern)
        if not paths:
            raise ToolError(f"no files under {folder!r} match {pattern!r}")
        return "\n".join(f"{(self.root / path).stat().st_size:>7} {path}" for path in paths)

    def read_file(self, path: str, first_line: int = 1, last_line: int | None = None) -> str:
        """Read lines of a file, numbered from 1."""
        lines = self._text(path).splitlines()
        shown = lines[first_line - 1 : last_line]
        return "\n".join(f"{number:>4}  {line}" for number, line in enumerate(shown, first_line))

    def search(self, pattern: str, folder: str = ".") -> str:
        """Find a regular expression line by line."""
        wanted = re.compile(pattern)
        hits = [
            f"{path}:{number}: {line.strip()}"
            for path in self.files(folder)
            for number, line in enumerate(self._read(path).splitlines(), 1)
            if wanted.search(line)
        ]
        more = f"\n... and {len(hits) - MAX_HITS} more lines" if len(hits) > MAX_HITS else ""
        return "\n".join(hits[:MAX_HITS]) + more or f"no line matches {pattern!r}"

    def outline(self, path: str) -> str:
        """List the classes and functions of a Python file with their length."""
        nodes = [node for node in ast.walk(ast.parse(self._text(path))) if isinstance(node, _DEFINITIONS)]
        nodes.sort(key=lambda node: node.lineno)
        rows = [_outline_row(node) for node in nodes]
        return "\n".join(rows) or "no classes or functions"

    def word_count(self, path: str) -> str:
        """Count lines, words and bytes of a file."""
        text = self._text(path)
        return f"{text.count(chr(10))} lines, {len(text.split())} words, {len(text.encode())} bytes"

    def run_tests(self, path: str) -> str:
        """Run one test file under pytest."""
        self._text(path)
        return self._python("-m", "pytest", "-q", "--tb=short", "--color=no", "-p", "no:cacheprovider", path)

    def run_python(self, code: str) -> str:
        """Run a snippet in a fresh interpreter."""
        return self._python("-c", code)

    def _text(self, path: str) -> str:
        if path not in self.files():
            raise ToolError(f"no such file: {path}")
        return self._read(path)

    def _read(self, path: str) -> str:
        return (self.root / path).read_text(encoding="utf-8")

    def _python(self, *arguments: str) -> str:
        try:
            done = subprocess.run(
                [sys.executable, *arguments],
                cwd=self.root,
                env={**os.environ, **_SETTINGS},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="utf-8",
                timeout=RUN_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise ToolError(f"stopped after {RUN_SECONDS} s") from error
        return f"exit code {done.returncode}\n{_DURATION.sub('', done.stdout)}".rstrip()

    def _without_machine(self, output: str) -> str:
        output = output.replace(f"{self.root}{os.sep}", "").replace(str(self.root), ".")
        for prefix in (sys.prefix, sys.base_prefix):
            output = output.replace(f"{prefix}{os.sep}lib", "<python>")
        return _MACHINE_FOLDER.sub("/...", _ADDRESS.sub("0x...", output))


_DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def _outline_row(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    kind = "class" if isinstance(node, ast.ClassDef) else "def"
    first_line, last_line = node.lineno, node.end_lineno or node.lineno
    return f"{first_line:>4}{' ' * node.col_offset}  {kind} {node.name} ({last_line - first_line + 1} lines)"


def _schema(
    name: str, description: str, *, needs: dict[str, str], takes: dict[str, str] | None = None
) -> dict[str, Any]:
    """Write one tool as Chat Completions wants it; `*_line` parameters are integers, the rest text."""
    properties = {
        key: {"type": "integer" if key.endswith("_line") else "string", "description": text}
        for key, text in {**needs, **(takes or {})}.items()
    }
    parameters = {
        "type": "object",
        "properties": properties,
        "required": list(needs),
        "additionalProperties": False,
    }
    function = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


_PATH = {"path": "Path relative to the project's folder."}

SCHEMAS: list[dict[str, Any]] = [
    _schema(
        "list_files",
        "List files with their size in bytes.",
        needs={},
        takes={
            "folder": "Folder to list; default all.",
            "pattern": "Glob for the file's name, such as *.py.",
        },
    ),
    _schema(
        "read_file",
        "Read a file, or some lines of it, with line numbers.",
        needs=_PATH,
        takes={
            "first_line": "First line, counted from 1.",
            "last_line": "Last line, inclusive; default the end.",
        },
    ),
    _schema(
        "search",
        "Find a regular expression in all files, line by line.",
        needs={"pattern": "A Python regular expression."},
        takes={"folder": "Folder to search; default all."},
    ),
    _schema("outline", "List classes and functions of a Python file with their lengths.", needs=_PATH),
    _schema("word_count", "Count lines, words and bytes of a file.", needs=_PATH),
    _schema("run_tests", "Run one test file under pytest.", needs=_PATH),
    _schema(
        "run_python",
        "Run a snippet in a fresh Python with the project importable.",
        needs={"code": "The snippet."},
    ),
]
