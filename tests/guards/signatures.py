"""The public surface as text. `python -m tests.guards.signatures --write` rewrites the stored files."""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
from pathlib import Path
from typing import ForwardRef

import trimtab
from tests.guards.source import Public, public_callables, public_values

HERE = Path(__file__).parent
NAMES = HERE / "public_names.txt"
SIGNATURES = HERE / "public_signatures.txt"


def names() -> str:
    """Give what `trimtab.__all__` holds, one name a line."""
    return "".join(f"{name}\n" for name in trimtab.__all__)


def signatures() -> str:
    """Give one line a public callable, in order of name; of data only the name."""
    callables = {public.name: _line(public) for public in public_callables()}
    rest = {public.name: public.name for public in public_values() if public.name not in callables}
    return "".join(f"{line}\n" for _, line in sorted((callables | rest).items()))


def _line(public: Public) -> str:
    if isinstance(public.value, property):
        return f"{public.name}: {_annotation(inspect.signature(public.value.fget).return_annotation)}"
    try:
        signature = inspect.signature(public.value)
    except (TypeError, ValueError):  # a Literal or a builtin: no signature to keep
        return public.name
    prefix = "async " if inspect.iscoroutinefunction(public.value) else ""
    return f"{prefix}{public.name}{_render(signature, is_class=inspect.isclass(public.value))}"


def _render(signature: inspect.Signature, *, is_class: bool) -> str:
    """Render as in source: annotations unquoted, no addresses in defaults."""
    if is_class:
        signature = signature.replace(return_annotation=inspect.Signature.empty)
    parameters = [
        parameter.replace(annotation=_Bare(_annotation(parameter.annotation)))
        if parameter.annotation is not inspect.Parameter.empty
        else parameter
        for parameter in signature.parameters.values()
        if parameter.name != "self"
    ]
    returned = signature.return_annotation
    text = str(signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty))
    text = re.sub(r" at 0x[0-9a-f]+", "", text)
    text = re.sub(r"frozenset\(\{(.*?)\}\)", _sorted_set, text)
    return text if returned is inspect.Signature.empty else f"{text} -> {_annotation(returned)}"


def _sorted_set(match: re.Match[str]) -> str:
    """Write a set in order of its members; their hashes differ from run to run."""
    return f"frozenset({{{', '.join(sorted(match[1].split(', ')))}}})"


def _annotation(annotation: object) -> str:
    if isinstance(annotation, ForwardRef):  # a NamedTuple's
        return annotation.__forward_arg__
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


@dataclasses.dataclass(frozen=True)
class _Bare:
    """An annotation that prints without quotes."""

    text: str

    def __repr__(self) -> str:
        return self.text


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("usage: python -m tests.guards.signatures --write")
    NAMES.write_text(names(), encoding="utf-8")
    SIGNATURES.write_text(signatures(), encoding="utf-8")
