"""Bounds on the tail: long files, long functions, broad excepts, suppressions without a reason, mocks."""

from __future__ import annotations

import ast
import re

from tests.guards.source import PACKAGE, ROOT, Function, functions, sources

MAX_FILE_LINES = 850

LONGER = {"session/session.py": 1120, "formats/base.py": 900}
"""Files that are longer, by their subject: every method of a session, and of a wire form, with the Args that
`help()` shows (of a session at 80 columns). May only shrink."""
MAX_FUNCTION_LINES = 60
GUESTS = (
    "session/core.py",
    "session/found_rules.py",
    "session/kinds.py",
    "gateway/exchange.py",
    "_shared/observers.py",
    "batch/task.py",
)

# In halves, so that ruff does not read this line as a suppression.
SUPPRESSION = re.compile(r"#\s*(?:ty" + r"pe:\s*ignore|no" + r"qa|py" + r"right:|ruff:)")
UNFINISHED = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|X" + r"XX)\b")


def _body_lines(function: Function) -> int:
    """Count the lines of a function below its signature and docstring."""
    first = function.body[0]
    has_doc = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    body = function.body[1:] if has_doc else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def test_no_file_and_no_function_is_long() -> None:
    """At most 850 lines a file, at 400 one asks whether there are two subjects; 60 a function.

    One subject is never cut in two for its length: `Session` has each method twice, with what it promises.
    """
    lines = {
        source.path.relative_to(PACKAGE).as_posix(): len(source.text.splitlines()) for source in sources()
    }
    assert [name for name, count in lines.items() if count > LONGER.get(name, MAX_FILE_LINES)] == []
    assert [name for name in LONGER if lines[name] <= MAX_FILE_LINES] == []
    long = [
        f"{source.where(one)}: {one.name} has {_body_lines(one)} lines"
        for source in sources()
        for one in functions(source.tree)
        if _body_lines(one) > MAX_FUNCTION_LINES
    ]
    assert long == []


def test_a_suppression_has_its_reason_on_the_line_above() -> None:
    """Nobody has to guess why a checker was told to be silent; nothing is left unfinished."""
    bare = [
        f"{source.name}:{number}: {line.strip()}"
        for source in sources()
        for lines in [["", *source.text.splitlines()]]
        for number, line in enumerate(lines)
        if SUPPRESSION.search(line) and not lines[number - 1].lstrip().startswith("#")
    ]
    assert bare == []
    assert [source.name for source in sources() if UNFINISHED.search(source.text)] == []


def _is_broad(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(
        kind is None or (isinstance(kind, ast.Name) and kind.id in ("Exception", "BaseException"))
        for kind in kinds
    )


def _raises_on(handler: ast.ExceptHandler) -> bool:
    """Tell whether it raises: ours `from` the cause, the same again, or the same where it was asked for."""
    return any(
        (isinstance(node, ast.Raise) and (node.cause or node.exc is None)) or _hands_on(node)
        for node in ast.walk(handler)
    )


def _hands_on(node: ast.AST) -> bool:
    """Tell whether a call raises an error elsewhere: in a generator, or for who awaits a future."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("throw", "set_exception")
    )


def test_a_broad_except_raises_on() -> None:
    """`except Exception` only at a seam that raises our error from the cause.

    Hooks of a session (SPEC E8), its finder of rules (design/046) and observers (design/031) are the
    exception: what they raise is logged. So is the message that a batch tries before its first row: what its
    rows raise is raised.
    """
    silent = [
        source.where(node)
        for source in sources()
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ExceptHandler)
        and _is_broad(node)
        and not _raises_on(node)
        and source.path.relative_to(PACKAGE).as_posix() not in GUESTS
    ]
    assert silent == []


def test_no_test_uses_a_mock() -> None:
    """A fake is a real small thing; a mock agrees with everything."""
    files = sorted((ROOT / "tests").rglob("*.py"))
    assert len(files) >= 10
    word = re.compile(r"unittest\.mo" + r"ck|\bMagicMo" + r"ck\b|\bmo" + r"cker\b")
    assert [
        str(path.relative_to(ROOT)) for path in files if word.search(path.read_text(encoding="utf-8"))
    ] == []
