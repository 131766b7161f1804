"""Sentences picked at random, for a reader to judge: `python -m tests.docs.sentences --seed 1`.

A third comes from the pages of README.md and docs/ (generated pages, code and tables apart), a third from
public docstrings, a third from the messages of raised errors. Each is printed with its file and line. A
sentence that needs a second reading is edited, and so is the rest of its kind. `--count` says how many
sentences to print, and `--pile` prints every sentence of one pile.

    python -m tests.docs.sentences [--seed N] [--count 200] [--pile pages|docstrings|errors]
"""

from __future__ import annotations

import argparse
import ast
import inspect
import random
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from tests.docs.documents import FENCE, ROOT, documents
from tests.guards.source import Function, Source, functions, is_public, names_offered, sources

GENERATED = ("cli.md", "cli-session.md", "reference.md")
"""Pages of docs/ that are written from help texts and docstrings."""

ENDS = re.compile(r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)\s+(?=[\"'`*(\[A-Z])")
SECTION = re.compile(r"^(?:Args|Attributes|Returns|Raises|Yields|Examples?|Note):$")
ARGUMENT = re.compile(r"^`?\*{0,2}\w[\w.]*`?(?: \([^)]*\))?: ")


class Sentence(NamedTuple):
    """A sentence, and the line it begins on; of an error, the line its text begins on."""

    path: Path
    line: int
    text: str


def _sentences(path: Path, line: int, text: str) -> Iterator[Sentence]:
    """Split a paragraph; what has no three words is a label."""
    at = 0
    for one in ENDS.split(text):
        at = text.index(one, at)
        if len(re.findall(r"[A-Za-z]{2,}", one)) >= 3:
            yield Sentence(path.relative_to(ROOT), line + text.count("\n", 0, at), " ".join(one.split()))
        at += len(one)


def _paragraphs(text: str, first: int) -> Iterator[tuple[int, str]]:
    """List (line, paragraph) of prose: an empty line, a list item, a heading or a table ends one."""
    held: list[str] = []
    begin = first
    for number, line in enumerate(text.split("\n"), first):
        bare = line.strip()
        item = re.match(r"[-*] |\d+\. |#+ |\|", bare)
        if held and (not bare or item):
            yield begin, "\n".join(held)
            held = []
        if bare and not bare.startswith("|"):
            begin = begin if held else number
            held.append(re.sub(r"^(?:[-*] |\d+\. |#+ |> )", "", bare))
    if held:
        yield begin, "\n".join(held)


def _lines_of(match: re.Match[str]) -> str:
    """Keep the ends of its lines alone: the lines below keep their numbers."""
    return "\n" * match[0].count("\n")


def of_pages() -> Iterator[Sentence]:
    """List the sentences of README.md and docs/: no generated page, code block, table or picture."""
    for path in documents():
        if path.name not in GENERATED:
            text = FENCE.sub(_lines_of, path.read_text(encoding="utf-8"))
            text = re.sub(r"!\[[^\]]*\]\([^)]*\)|<!--.*?-->", _lines_of, text, flags=re.S)
            text = re.sub(r"(?<!!)\[([^\]]*)\]\([^)\s]+\)", r"\1", text)
            for line, paragraph in _paragraphs(text, 1):
                yield from _sentences(path, line, paragraph)


# -- docstrings


def of_docstrings() -> Iterator[Sentence]:
    """List the sentences of the docstrings that a user can read: modules, `__all__`, members, fields."""
    for source, literal in _public_literals():
        for line, paragraph in _prose(inspect.cleandoc(literal.value), literal.lineno):
            yield from _sentences(source.path, line, paragraph)


def _prose(doc: str, first: int) -> Iterator[tuple[int, str]]:
    """List the paragraphs of a docstring: no examples, no names of sections and arguments."""
    lines = doc.split("\n")
    kept = []
    in_example = False
    for line in lines:
        bare = line.strip()
        in_example = bool(bare) and (in_example or bare.startswith(">>>"))
        if in_example or SECTION.match(bare):
            kept.append("")
        elif ARGUMENT.match(bare) and line.startswith("    "):
            kept.append("- " + ARGUMENT.sub("", bare))
        else:
            kept.append(bare)
    return _paragraphs("\n".join(kept), first)


def _public_literals() -> list[tuple[Source, ast.Constant]]:
    """List the docstrings of the public modules and of what they offer, each once."""
    found: dict[int, tuple[Source, ast.Constant]] = {}
    for source in sources():
        if is_public(source.name):
            shown = list(_literals(source, source.tree.body[:1]))
            for name in names_offered(source.tree):
                shown += _literals_behind(source, name)
            found |= {id(literal): (home, literal) for home, literal in shown}
    return list(found.values())


def _definitions(module: str, name: str) -> Iterator[tuple[Source, ast.stmt]]:
    """Find the statement that defines a name, behind the imports that lead to it; of data, its docstring."""
    source = {one.name: one for one in sources()}.get(module)
    if source is None:
        return
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("trimtab"):
            for alias in node.names:
                if (alias.asname or alias.name) == name and node.module != module:
                    yield from _definitions(str(node.module), alias.name)
    for node, after in pairwise([*source.tree.body, ast.Pass()]):
        if isinstance(node, ast.ClassDef | Function) and node.name == name:
            yield source, node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if [ast.unparse(one) for one in targets] == [name]:
                yield source, after


def _literals_of(source: Source, node: ast.stmt) -> Iterator[tuple[Source, ast.Constant]]:
    """List the docstrings of a function, of a class with its members and bases, or of a constant."""
    if isinstance(node, ast.ClassDef):
        yield from _literals_of_class(source, node)
    elif isinstance(node, Function):
        yield from _literals_of_decorators(source, node)
        yield from _literals(source, node.body[:1])
    else:
        yield from _literals(source, [node])


def _literals_of_class(source: Source, node: ast.ClassDef) -> Iterator[tuple[Source, ast.Constant]]:
    yield from _literals_of_decorators(source, node)
    yield from _literals(source, node.body)
    for member in node.body:
        if isinstance(member, Function) and (member.name == "__init__" or not member.name.startswith("_")):
            yield from _literals_of(source, member)
    for base in node.bases:
        yield from _literals_behind(source, ast.unparse(base).partition("[")[0])


def _literals_of_decorators(
    source: Source, node: ast.ClassDef | Function
) -> Iterator[tuple[Source, ast.Constant]]:
    """List the docstrings whose Args `help()` shows here."""
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) in ("args_of", "takes"):
            yield from _literals_behind(source, ast.unparse(decorator.args[0]))


def _literals_behind(source: Source, name: str) -> Iterator[tuple[Source, ast.Constant]]:
    for home, node in _definitions(source.name, name):
        yield from _literals_of(home, node)


def _literals(source: Source, body: Iterable[ast.stmt]) -> Iterator[tuple[Source, ast.Constant]]:
    """List the string literals that stand alone."""
    for node in body:
        literal = node.value if isinstance(node, ast.Expr) else None
        if isinstance(literal, ast.Constant) and isinstance(literal.value, str):
            yield source, literal


# -- errors


def of_errors() -> Iterator[Sentence]:
    """List the sentences of the messages of raised errors; what is filled in shows as `{its expression}`."""
    for source in sources():
        seen: set[int] = set()
        for scope in (source.tree, *functions(source.tree)):
            for raised in _raised(scope):
                for literal in _words_of(raised):
                    if id(literal) not in seen:
                        seen.add(id(literal))
                        yield from _sentences(source.path, literal.lineno, " ".join(_shown(literal).split()))


def _raised(scope: ast.AST) -> Iterator[ast.AST]:
    """List what a function raises, the errors it makes, and the values of the variables these name."""
    errors: list[ast.AST] = [
        node for node in ast.walk(scope) if isinstance(node, ast.Call) and _is_error(node)
    ]
    errors += [node.exc for node in ast.walk(scope) if isinstance(node, ast.Raise) and node.exc]
    yield from errors
    if isinstance(scope, Function):
        named = {one.id for error in errors for one in ast.walk(error) if isinstance(one, ast.Name)}
        for node in ast.walk(scope):
            if isinstance(node, ast.Assign) and {ast.unparse(one) for one in node.targets} & named:
                yield node.value


def _is_error(call: ast.Call) -> bool:
    return ast.unparse(call.func).rpartition(".")[2].endswith(("Error", "_error", "Refused"))


def _words_of(node: ast.AST) -> Iterator[ast.Constant | ast.JoinedStr]:
    """List the string literals below a node, outermost first."""
    if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str)):
        yield node
    else:
        for child in ast.iter_child_nodes(node):
            yield from _words_of(child)


def _shown(literal: ast.Constant | ast.JoinedStr) -> str:
    if isinstance(literal, ast.Constant):
        return str(literal.value)
    return "".join(
        str(part.value)
        if isinstance(part, ast.Constant)
        else re.sub("^f(['\"])(.*)\\1$", r"\2", ast.unparse(part))
        for part in literal.values
    )


# -- the list

PILES = {"pages": of_pages, "docstrings": of_docstrings, "errors": of_errors}


def picked(seed: int, count: int) -> dict[str, list[Sentence]]:
    """Pick sentences evenly from the three piles, in order of place; the same seed gives the same."""
    source = random.Random(seed)
    wanted = {pile: count // 3 + (index < count % 3) for index, pile in enumerate(PILES)}
    return {pile: sorted(source.sample(list(PILES[pile]()), number)) for pile, number in wanted.items()}


def main() -> None:
    """Print the list."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition(":")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--pile", choices=PILES, help="print every sentence of this pile")
    asked = parser.parse_args()
    shown = {asked.pile: list(PILES[asked.pile]())} if asked.pile else picked(asked.seed, asked.count)
    for pile, sentences in shown.items():
        print(f"# {pile}")
        for one in sentences:
            print(f"{one.path}:{one.line}: {one.text}")


if __name__ == "__main__":
    main()
