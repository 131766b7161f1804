"""The regular expressions of the package, and an engine that counts what a search with one costs.

It backtracks as Python's own does, but for the ways that one saves a step; so what is linear here is
linear there.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib
import itertools
import math
import re
import re._constants as op
import re._parser as parser
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.guards.source import Source, functions, sources

CALLS = frozenset(("compile", "match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer"))

MOST_STEPS = 100_000
"""A search of more steps than this, in a text of some hundred signs, is not finished."""

MANY = 400
"""A repeat that says a larger number than this is written out only so often."""


CALLERS_OWN = ("re.compile(given)", "re.compile(self.match)", "re.compile(text, flags)")
"""Calls whose expression is the caller's: `Session.redact(where=)`, `Kind(match=)` and `must_keep=` search
what they are told to."""


class Found(NamedTuple):
    """A regular expression, and where it stands."""

    where: str
    pattern: str | bytes
    flags: int
    anchored: bool
    """It is only tried where a text begins: `match` and `fullmatch`."""


@functools.cache
def found_patterns() -> tuple[Found, ...]:
    """List every regular expression that the package gives to `re`."""
    return tuple(_found_patterns())


def _found_patterns() -> Iterator[Found]:
    for source in (one for one in sources() if "re." in one.text):
        inside = {id(node): one for one in functions(source.tree) for node in ast.walk(one)}
        for node in ast.walk(source.tree):
            if _is_pattern(node):
                yield _found(
                    source, node, inside.get(id(node)), anchored=_uses(source, node) <= {"match", "fullmatch"}
                )


def _uses(source: Source, call: Any) -> set[str]:
    """List the methods an expression is used with; its module is the only one that has it."""
    if call.func.attr != "compile":
        return {call.func.attr}
    holders = [
        target.id
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Assign) and node.value is call
        for target in node.targets
        if isinstance(target, ast.Name)
    ]
    return {
        node.attr
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in holders
    } or {"search"}


def _is_pattern(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "re"
        and node.func.attr in CALLS
        and ast.unparse(node) not in CALLERS_OWN
    )


def _found(source: Source, call: Any, function: Any, *, anchored: bool) -> Found:
    names = dict(vars(importlib.import_module(source.name)))
    for line in () if function is None else function.body:
        if isinstance(line, ast.Assign) and line.lineno < call.lineno:
            # What depends on arguments is not known here, and then not used below.
            with contextlib.suppress(Exception):
                exec(compile(ast.Module([line], []), source.name, "exec"), names)
    given = _Escaped().visit(call.args[0])
    pattern = eval(compile(ast.Expression(ast.fix_missing_locations(given)), source.name, "eval"), names)
    flags = [one.value for one in call.keywords if one.arg == "flags"]
    flags += call.args[1:2] if call.func.attr == "compile" else []
    number = eval(compile(ast.Expression(flags[0]), source.name, "eval"), names) if flags else 0
    return Found(source.where(call), pattern, int(number), anchored)


class _Escaped(ast.NodeTransformer):
    """Puts letters where the package puts escaped words that are only known when it runs."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        words = ast.unparse(node)
        if words.startswith("re.escape("):
            return ast.Constant("word")
        if words.startswith("'|'.join(map(re.escape,"):
            return ast.Constant("word|other")
        return node


# -- the engine


@dataclass(slots=True)
class _Program:
    """Instructions of a backtracking machine."""

    lines: list[tuple[Any, ...]] = field(default_factory=list)
    samples: list[str] = field(default_factory=list)
    """Signs that its expressions match, each once."""
    flags: int = 0

    def add(self, *line: Any) -> int:
        self.lines.append(line)
        return len(self.lines) - 1


def _write(program: _Program, parsed: Any) -> None:
    for kind, value in parsed:
        _write_one(program, kind, value)


def _write_one(program: _Program, kind: Any, value: Any) -> None:
    if kind in (op.LITERAL, op.NOT_LITERAL, op.IN, op.ANY):
        _write_sign(program, kind, value)
    elif kind is op.BRANCH:
        _write_choice(program, value[1])
    elif kind is op.SUBPATTERN:
        around, program.flags = program.flags, (program.flags | value[1]) & ~value[2]
        _write(program, value[3])
        program.flags = around
    elif kind in (op.MAX_REPEAT, op.MIN_REPEAT):
        _write_repeat(program, kind, *value)
    elif kind in (op.ASSERT, op.ASSERT_NOT):
        direction, inner = value
        part = _Program(samples=program.samples, flags=program.flags)
        _write(part, inner)
        part.add("match")
        width = inner.getwidth()[0] if direction < 0 else 0
        program.add("look", part.lines, width, kind is op.ASSERT)
    elif kind is op.AT:
        program.add("at", value)
    else:
        raise AssertionError(f"the engine of the tests does not know {kind}: teach it")


def _write_sign(program: _Program, kind: Any, value: Any) -> None:
    sign = re.compile(_class(kind, value), program.flags)
    for sample in _samples(kind, value):
        if sign.match(sample) and sample not in program.samples:
            program.samples.append(sample)
    program.add("sign", sign)


def _write_choice(program: _Program, ways: list[Any]) -> None:
    ends = []
    for way in ways:
        split = program.add()
        _write(program, way)
        ends.append(program.add())
        program.lines[split] = ("split", split + 1, len(program.lines))
    program.add("fail")
    for end in ends:
        program.lines[end] = ("jump", len(program.lines))


def _write_repeat(program: _Program, kind: Any, least: int, most: int, inner: Any) -> None:
    assert inner.getwidth()[0], "a repeat of what may be empty"
    for _ in range(least):
        _write(program, inner)
    greedy = kind is op.MAX_REPEAT
    if most == op.MAXREPEAT:
        split = program.add()
        _write(program, inner)
        program.add("jump", split)
        program.lines[split] = _split(greedy, split + 1, len(program.lines))
        return
    splits = []
    for _ in range(min(most - least, MANY)):
        splits.append(program.add())
        _write(program, inner)
    for split in splits:
        program.lines[split] = _split(greedy, split + 1, len(program.lines))


def _split(greedy: bool, into: int, past: int) -> tuple[str, int, int]:
    return ("split", into, past) if greedy else ("split", past, into)


_CATEGORIES = {
    op.CATEGORY_DIGIT: r"\d",
    op.CATEGORY_NOT_DIGIT: r"\D",
    op.CATEGORY_SPACE: r"\s",
    op.CATEGORY_NOT_SPACE: r"\S",
    op.CATEGORY_WORD: r"\w",
    op.CATEGORY_NOT_WORD: r"\W",
}


def _class(kind: Any, value: Any) -> str:
    """Write what matches one sign as an expression of its own."""
    if kind is op.ANY:
        return "."
    if kind is op.LITERAL:
        return re.escape(chr(value))
    if kind is op.NOT_LITERAL:
        return f"[^{re.escape(chr(value))}]"
    written = ""
    for one, what in value:
        if one is op.NEGATE:
            written += "^"
        elif one is op.LITERAL:
            written += re.escape(chr(what))
        elif one is op.RANGE:
            written += "-".join(re.escape(chr(end)) for end in what)
        else:
            written += _CATEGORIES[what]
    return f"[{written}]"


def _samples(kind: Any, value: Any) -> Iterator[str]:
    if kind in (op.LITERAL, op.NOT_LITERAL):
        yield chr(value)
    elif kind is op.IN:
        for one, what in value[:3]:
            if one is op.LITERAL:
                yield chr(what)
            elif one is op.RANGE:
                yield chr(what[0])
    yield from " a1.-\n"


class Engine:
    """Searches with one regular expression, and counts its steps."""

    def __init__(self, pattern: str | bytes, flags: int = 0, *, anchored: bool = False) -> None:
        self._anchored = anchored
        text = pattern.decode("latin-1") if isinstance(pattern, bytes) else pattern
        parsed = parser.parse(text, flags)
        program = _Program(flags=parsed.state.flags & (re.IGNORECASE | re.DOTALL))
        _write(program, parsed)
        program.add("match")
        self._lines = program.lines
        self.samples = program.samples
        self.beginning = "".join(_beginning(parsed))
        self.steps = 0

    def ends(self, text: str) -> list[int]:
        """Find every match, one behind the other, and return where they end."""
        found: list[int] = []
        start = 0
        while start <= (0 if self._anchored else len(text)):
            end = self._match(self._lines, text, start)
            if end is not None:
                found.append(end)
            start = start + 1 if end is None or end == start else end
        return found

    def _match(self, lines: list[tuple[Any, ...]], text: str, at: int) -> int | None:
        waiting = [(0, at)]
        while waiting:
            line, at = waiting.pop()
            while True:
                self.steps += 1
                if self.steps > MOST_STEPS:
                    return None
                what, *values = lines[line]
                line += 1
                if what == "match":
                    return at
                if what == "jump":
                    line = values[0]
                elif what == "split":
                    waiting.append((values[1], at))
                    line = values[0]
                elif what == "sign" and at < len(text) and values[0].match(text[at]):
                    at += 1
                elif what not in ("look", "at") or not self._holds(what, values, text, at):
                    break
        return None

    def _holds(self, what: str, values: list[Any], text: str, at: int) -> bool:
        if what == "look":
            lines, width, wanted = values
            inside = at >= width and self._match(lines, text, at - width) is not None
            return inside is wanted
        if values[0] in (op.AT_BEGINNING, op.AT_BEGINNING_STRING):
            return at == 0
        if values[0] in (op.AT_END, op.AT_END_STRING):
            return at == len(text)
        sides = [0 <= one < len(text) and (text[one].isalnum() or text[one] == "_") for one in (at - 1, at)]
        return (sides[0] != sides[1]) is (values[0] is op.AT_BOUNDARY)


def _beginning(parsed: Any) -> Iterator[str]:
    """Write a text that it matches, or all but: the first way of each choice, each repeat at its least."""
    for kind, value in parsed:
        if kind in (op.LITERAL, op.IN, op.ANY, op.NOT_LITERAL):
            sign = re.compile(_class(kind, value))
            yield next((one for one in _samples(kind, value) if sign.match(one)), "!")
        elif kind is op.BRANCH:
            yield from _beginning(value[1][0])
        elif kind is op.SUBPATTERN:
            yield from _beginning(value[3])
        elif kind in (op.MAX_REPEAT, op.MIN_REPEAT):
            yield from itertools.chain.from_iterable(
                _beginning(value[2]) for _ in range(min(max(value[0], 1), MANY))
            )


def worst_growth(engine: Engine, sizes: tuple[int, int, int]) -> tuple[float, str]:
    """Return how much more the second half of a text costs than the first, and for which text.

    A text is the beginning of what matches, one sign of it (or all of it) many times, and an end that
    matches or does not. Linear is 2: twice as many signs more. Quadratic is 4.
    """
    whole = engine.beginning
    places = sorted({*range(min(len(whole), 24) + 1), len(whole)})
    worst = (0.0, "")
    for at, sign in itertools.product(places, [*engine.samples, whole]):
        for end in ("", "\x00", whole[at:]):
            text = f"{whole[:at]!r:.60} and {sign!r:.60} many times and {end!r:.60}"
            steps = []
            for size in sizes:
                engine.steps = 0
                engine.ends(whole[:at] + sign * size + end)
                steps.append(engine.steps)
            grown = (steps[2] - steps[1]) / max(1, steps[1] - steps[0])
            if steps[2] > MOST_STEPS:
                return math.inf, text
            worst = max(worst, (grown, text))
    return worst
