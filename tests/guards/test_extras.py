"""Every extra that an error or a document names is there, and brings what is said to be missing."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator

from tests.docs.documents import pages
from tests.guards.source import ROOT, sources

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
NAMED = re.compile(r"trimtab\[((?!extra)[\w,-]+)\]")


def _texts() -> Iterator[tuple[str, str]]:
    for source in sources():
        yield source.name, source.text
    for page in pages():
        yield str(page.relative_to(ROOT)), page.read_text(encoding="utf-8")


def test_every_extra_that_is_named_can_be_installed() -> None:
    """Pip only warns of an extra that is not there, and installs nothing."""
    named = {
        (where, extra) for where, text in _texts() for one in NAMED.findall(text) for extra in one.split(",")
    }
    assert len(named) >= 10
    assert sorted((where, extra) for where, extra in named if extra not in EXTRAS) == []


def test_the_page_on_installing_lists_every_extra() -> None:
    """In its table; none that is not there."""
    text = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    section = text.partition("## Extras\n")[2]
    first = [line.split("|")[1] for line in section.splitlines() if line.startswith("| ")]
    assert sorted(re.findall(r"`([\w-]+)`", " ".join(first))) == sorted(EXTRAS)


def _missing() -> Iterator[tuple[str, str, str]]:
    """List (where, extra, package) of calls that say a package is missing, where both are written out."""
    named = [source for source in sources() if re.search("package_of|MissingExtraError", source.text)]
    for source in named:
        for node in ast.walk(source.tree):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            if node.func.id not in ("package_of", "MissingExtraError"):
                continue
            given = {one.arg: one.value for one in node.keywords}
            if node.func.id == "package_of" and node.args:
                given["extra"] = node.args[0]
            words = [given.get(key) for key in ("extra", "package")]
            extra, package = (one.value if isinstance(one, ast.Constant) else "" for one in words)
            if extra and package:
                yield source.where(node), str(extra), str(package)


DISTRIBUTIONS = {
    "agent_framework": "agent_framework_core",
    "agents": "openai_agents",
    "google.adk": "google_adk",
    "google.genai": "google_genai",
    "haystack": "haystack_ai",
    "opentelemetry.trace": "opentelemetry_api",
    "pydantic_ai": "pydantic_ai_slim",
    "strands": "strands_agents",
}
"""What brings a package that is imported by another name."""


def _brought(extra: str) -> set[str]:
    return {re.split(r"[\[<>=~!; ]", one)[0].replace("-", "_").lower() for one in EXTRAS[extra]}


def test_an_extra_brings_the_package_that_is_missing() -> None:
    """Else the line that is to help installs something else."""
    calls = [(where, extra, package.replace("-", "_").lower()) for where, extra, package in _missing()]
    assert len(calls) >= 20
    wrong = [call for call in calls if DISTRIBUTIONS.get(call[2], call[2]) not in _brought(call[1])]
    assert wrong == []
