"""What users may rely on: names, signatures, keyword-only arguments, docstrings."""

from __future__ import annotations

import ast
import dataclasses
import inspect
from collections.abc import Callable

import pytest

import trimtab
from tests.guards import signatures
from tests.guards.source import public_callables, public_modules, public_values, sources

MAX_POSITIONAL = 2

POSITIONAL_BY_DESIGN = {
    "scan": "Format.scan runs once a chunk of messages and is called by the runner only",
    "copy_session": "source, target, session: as a copy is said in every language",
    "acopy_session": "the same",
    "span": "SPEC G fixes it: `span(messages, from_end, to_end)`",
    "within": "SPEC G fixes it: `within(messages, limit_tokens, counter)`",
    "FixedCounter": "SPEC B2 fixes it: `FixedCounter(per_message, per_part, per_tool_call)`",
    "count_back": "runs once a fit, and is called by the runner only",
    "newest": "Format.newest runs over long turns, and is called by History only",
    "walk": "History.walk runs once a fit, and is called by the runner only",
}
"""Methods with more than two positional arguments, each with its reason. May only shrink."""

MUTABLE_BY_DESIGN: dict[str, str] = {}
"""Dataclasses of the package that are not frozen, each with its reason. May only shrink."""


def _order(name: str) -> tuple[bool, bool, str]:
    """Sort as ruff's RUF022 does: constants, classes, the rest."""
    return (not name.isupper(), not name[:1].isupper(), name)


def test_the_guard_sees_the_surface() -> None:
    """The guards of this file cannot pass by finding nothing."""
    assert len(public_modules()) >= 8
    assert len(public_callables()) >= 30


def test_the_front_door_has_few_names() -> None:
    """One more is a decision (design/007), not a habit; beyond thirty: `observe` (design/031), strategies.

    Who runs a service looks for it beside `fit`, and needs nothing else of `trimtab.telemetry` to begin with.
    Who imports one strategy looks for the next beside it.
    """
    assert len(trimtab.__all__) <= 34


def test_the_public_names_are_those_stored() -> None:
    """A name that comes or goes is a diff in public_names.txt, made by hand in the same change."""
    assert signatures.names() == signatures.NAMES.read_text(encoding="utf-8")


def test_the_public_signatures_are_those_stored() -> None:
    """A changed signature is a diff in public_signatures.txt; `python -m tests.guards.signatures --write`."""
    assert (
        signatures.signatures().splitlines() == signatures.SIGNATURES.read_text(encoding="utf-8").splitlines()
    )


def test_a_public_module_says_what_it_offers() -> None:
    """Each public module has an `__all__` that is sorted, without repeats, and importable."""
    for module in public_modules():
        offered = list(module.__all__)
        assert offered == sorted(set(offered), key=_order), module.__name__
        assert [name for name in offered if not hasattr(module, name)] == [], module.__name__


def _positional(value: Callable[..., object]) -> list[str]:
    """List the parameters that can be given by position, `self` and `cls` apart."""
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return []
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [one.name for one in parameters if one.kind in kinds and one.name not in ("self", "cls")]


def _is_named_tuple(value: object) -> bool:
    """Rows of a table are read by name and made in one place; their order is their meaning."""
    return inspect.isclass(value) and issubclass(value, tuple)


def test_a_public_callable_takes_at_most_two_arguments_by_position() -> None:
    """What comes after the second argument is named at the call."""
    long = [
        (public.name, positional)
        for public in public_callables()
        if not isinstance(public.value, property)
        and not _is_named_tuple(public.value)
        and public.name.rpartition(".")[2] not in POSITIONAL_BY_DESIGN
        and len(positional := _positional(public.value)) > MAX_POSITIONAL
    ]
    assert long == []


def test_a_public_dataclass_is_frozen() -> None:
    """Values can be shared and cached."""
    mutable = [
        public.name
        for public in public_values()
        if inspect.isclass(public.value)
        and dataclasses.is_dataclass(public.value)
        and public.name not in MUTABLE_BY_DESIGN
        and not public.value.__dataclass_params__.frozen
    ]
    assert mutable == []


def test_a_public_callable_has_a_docstring() -> None:
    """The first line is a sentence of at most 80 characters; a generated docstring is none."""
    firsts = [
        (public.name, ((inspect.getdoc(public.value) or "").splitlines() or [""])[0])
        for public in public_callables()
    ]
    wrong = [
        (name, first)
        for name, first in firsts
        if not 0 < len(first) <= 80 or first.startswith(f"{name.rpartition('.')[2]}(")
    ]
    assert wrong == []


def _documented_data() -> set[str]:
    """Names assigned at the top of a module with a string literal right below."""
    found: set[str] = set()
    for source in sources():
        for node, after in zip(source.tree.body, source.tree.body[1:], strict=False):
            if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                found |= {name.id for name in _targets(node) if isinstance(name, ast.Name)}
    return found


def _targets(node: ast.stmt) -> list[ast.expr]:
    if isinstance(node, ast.Assign):
        return node.targets
    return [node.target] if isinstance(node, ast.AnnAssign) else []


def test_public_data_has_a_docstring_below_it() -> None:
    """A constant or a type says under its assignment what it is and where it comes from."""
    documented = _documented_data()
    bare = [
        public.name
        for public in public_values()
        if not (inspect.isclass(public.value) or inspect.isroutine(public.value))
        and public.name.rpartition(".")[2] not in documented
    ]
    assert bare == []


SHARED_BY_CLASSES = {
    "ServedStore": "the two stores on servers have its methods; the name of one would be wrong for the other",
    "ThreadedStore": "two stores have its methods; the name of one would be wrong for the other",
    "Labelled": "the labels of a session: one class of both would be too long",
    "ChatEndpoint": "two summarizers have its methods",
    "RecallTool": "what `recall_tool` gives; its word is that of the method",
    "Transcript": "the messages of a conversation, which a strategy meets in a `History` alone",
    "Rows": "the units of a request, which has no other: one class of both would be too long",
}
"""Classes that are not public and whose methods public ones have, each with its reason. May only shrink."""


def test_a_public_method_reads_as_one_of_a_public_class() -> None:
    """Python's own TypeErrors name the class a function was written in: nobody knows a private one."""
    known = {one.value.__qualname__ for one in public_values() if inspect.isclass(one.value)}
    known |= SHARED_BY_CLASSES.keys()
    named = [one.value.__qualname__ for one in public_callables() if inspect.isfunction(one.value)]
    assert [name for name in named if "." in name and name.split(".")[0] not in known] == []


def test_a_type_error_of_a_session_names_the_session() -> None:
    """Of a method it inherits from a class of no public name as well."""
    with pytest.raises(TypeError, match=r"^Session\.messages\(\)"):
        trimtab.Session(999).messages(last=3)  # type: ignore[call-arg]  # wrong on purpose
