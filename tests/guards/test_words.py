"""One word for one thing, providers named in their place, no address of a machine in any file."""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator

import pytest

from tests.guards.source import ADAPTERS, PACKAGE, ROOT, Source, sources

FORBIDDEN = {
    "manager": "the noun of the thing",
    "helper": "the noun of the thing",
    "helpers": "the noun of the thing",
    "util": "the noun of the thing",
    "utils": "the noun of the thing",
    "processor": "the verb it does",
    "service": "the noun of the thing",
    "middleware": "the noun of the thing",
    "quota": "budget",
    "allowance": "budget",
    "padding": "output reserve",
    "calculate": "count or estimate",
    "importance": "priority",
    "purge": "evict",
    "percent": "a fraction",
}
"""Glossary word that may not be part of a name we define: what to say instead (STYLE 5.5)."""

PROVIDERS = re.compile(r"openai|anthropic|claude|gemini|\bgpt|gpt-|mistral|cohere|llama|bedrock|vertex", re.I)
MAY_NAME_PROVIDERS = (
    "trimtab.formats",
    "trimtab.integrations",
    "trimtab.models",
    "trimtab.counting",
    "trimtab.summaries",
    "trimtab.testing.bodies",
)

# Written in halves so that this file does not find itself.
ADDRESSES = re.compile(
    r"pypi\." + r"org|python" + r"hosted\.org|registry\.npm" + r"js|"
    r"(?<![\w.~-])/(?:work/(?:main|shared)|root|home/\w+|Users/\w+|opt/py" + r"pi)(?![\w-])"
)


def _defined(tree: ast.Module) -> Iterator[tuple[ast.AST, str]]:
    """List (node, name) of everything a module gives a name to."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node, node.name
        elif isinstance(node, ast.arg):
            yield node, node.arg
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node, node.id if isinstance(node, ast.Name) else node.attr


def _words(name: str) -> set[str]:
    """Split a name at underscores and humps."""
    return {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("HTTPHelper", {"http", "helper"}),
        ("max_tokens_2", {"max", "tokens"}),
        ("_runUtils", {"run", "utils"}),
    ],
)
def test_a_name_is_split_into_words(name: str, words: set[str]) -> None:
    """The guard below finds a word in either style of name."""
    assert _words(name) == words


def test_no_name_uses_a_word_the_glossary_refuses() -> None:
    """The same word everywhere: code, documents, flags, keys."""
    wrong = [
        f"{source.where(node)}: {name}: not {word}: {FORBIDDEN[word]}"
        for source in sources()
        if not source.name.startswith(ADAPTERS)  # a framework has words of its own
        for node, name in (
            *((source.tree, part) for part in source.name.split(".")),
            *_defined(source.tree),
        )
        for word in sorted(_words(name) & FORBIDDEN.keys())
    ]
    assert wrong == []


def _docstrings(tree: ast.Module) -> set[int]:
    """Ids of the string literals that stand alone: docstrings, and those below a field."""
    return {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}


def _named_providers(source: Source) -> Iterator[str]:
    alone = _docstrings(source.tree)
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            if PROVIDERS.search(node.value):
                yield f"{source.where(node)}: {node.value!r:.60}"
        elif isinstance(node, ast.ImportFrom) and PROVIDERS.search(node.module or ""):
            yield f"{source.where(node)}: import from {node.module}"
    yield from (
        f"{source.where(node)}: {name}" for node, name in _defined(source.tree) if PROVIDERS.search(name)
    )


def test_only_formats_models_counting_and_summaries_name_a_provider() -> None:
    """Strings and names of code; a docstring may show an example."""
    others = [source for source in sources() if not source.name.startswith(MAY_NAME_PROVIDERS)]
    assert [named for source in others for named in _named_providers(source)] == []


def _files() -> list[str]:
    """List the files that are, or would be, committed."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def test_no_file_names_a_registry_host_or_a_place_on_one_machine() -> None:
    """A clone works anywhere: nothing in it points at where it was made."""
    files = _files()
    assert len(files) >= len(list(PACKAGE.rglob("*.py")))
    found = [
        f"{name}:{number}: {match.group()}"
        for name in files
        for number, line in enumerate(
            (ROOT / name).read_text(encoding="utf-8", errors="replace").splitlines(), 1
        )
        for match in [ADDRESSES.search(line)]
        if match
    ]
    assert found == []


LEFT = re.compile(r"\bleft\b", re.I)
MAY_BE_LEFT = re.compile(
    r"left (?:out|alone|as|behind|where|in front|without)\b"  # who leaves something out does not evict it
    r"|\bleft join\b|\bleft[- ](?:hand|side)\b"
    r"|-left\b|text-align: left"  # styles
    r"|``?left``?|^ *left:"  # a field, and its line under Args
    r"|\blocal [\w, ]*\bleft\b|\bleft *(?:[=<>~.-]|, *'|then\b|do\b)|[=~-] *left\b|, left\)",  # Lua
    re.I | re.M,
)
"""Kinds of use in which the word means neither what remains nor what is gone."""
EXAMPLES = re.compile(r"^```.*?^```$|`[^`\n]*`|\{[{%].*?[%}]\}", re.M | re.S)
"""Code in a page, and in a template of one."""


def lines_with_left(text: str) -> list[str]:
    """List the lines of a text that say that something is left."""
    return [line.strip() for line in MAY_BE_LEFT.sub("", text).split("\n") if LEFT.search(line)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("207 tokens left", True),
        ("a report of what left, and why", True),
        ("Nothing is left of it.", True),
        ("an option that is left out", False),
        ("FROM a LEFT JOIN b", False),
        ("the left-hand side of it, on the left side", False),
        ("`left` is a field", False),
    ],
)
def test_left_is_told_from_its_other_meanings(text: str, said: bool) -> None:
    """The guard below finds what it should."""
    assert bool(lines_with_left(text)) is said


def test_nothing_is_left() -> None:
    """What is gone was evicted, shortened, cleared or summarized, room is unused: no word means both."""
    wrong = [
        f"{source.where(node)}: {line}"
        for source in sources()
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value != "left"
        for line in lines_with_left(node.value)
    ]
    wrong += [
        f"{source.path.relative_to(ROOT)}:{token.start[0]}: {line}"
        for source in sources()
        for token in tokenize.generate_tokens(io.StringIO(source.text).readline)
        if token.type == tokenize.COMMENT
        for line in lines_with_left(token.string)
    ]
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted(PACKAGE.rglob("*.html"))]
    wrong += [
        f"{page.relative_to(ROOT)}: {line}"
        for page in pages
        for line in lines_with_left(EXAMPLES.sub("", page.read_text(encoding="utf-8")))
    ]
    assert wrong == []
