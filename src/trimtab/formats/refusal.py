"""What a provider refuses in a message or beside it: one fault, and how a form finds some."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from trimtab.formats.values import Dict, Path, as_dict, as_list, type_name

if TYPE_CHECKING:
    from trimtab.formats.base import Format


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing a provider would refuse in the shape of a message or request.

    Args:
        index: Position of the message; None if it is not a single one.
        rule: Name of the broken rule.
        detail: The provider's answer.
        path: Keys and indices that lead to the fault, from the message or the body.
    """

    index: int | None
    rule: str
    detail: str
    path: Path = ()


Finding: TypeAlias = tuple[str, str, Path]
"""Rule, detail and path of one fault, of whatever message it is."""


def holds_one(content: Any, /) -> bool:
    """Tell whether a content is a list of one dict that holds one thing."""
    one = content.__class__ is list and len(content) == 1 and content[0].__class__ is dict
    return one and len(content[0]) == 1


def faults_at(index: int | None, findings: Iterable[Finding], /) -> Iterator[Fault]:
    """Yield what was found in one message, or in none, as faults of it."""
    for rule, detail, path in findings:
        yield Fault(index=index, rule=rule, detail=detail, path=path)


def new_fault(format: Format, before: Dict, after: Dict, /) -> Fault | None:
    """Return what the provider refuses in a message as it is now, and did not before; wherever it stands."""
    behind = format.message("user", ["."])  # what is said of the last message is not asked
    new = [one for one in format.faults([after, behind]) if one.index == 0]
    if not new:  # nearly always: what was there before does not matter
        return None
    known = {one.rule for one in format.faults([before, behind]) if one.index == 0}
    return next((fault for fault in new if fault.rule not in known), None)


def tool_faults(tools: Any, fault: Callable[[int, Dict], str | None], /) -> Iterator[Finding]:
    """Yield what is wrong with the tools of a request, by a rule for one of them and its place."""
    for at, value in enumerate(as_list(tools) or ()):
        tool = as_dict(value)
        words = fault(at, tool) if tool is not None else f"a tool must be an object, not {type_name(value)}"
        if words is not None:
            yield "bad_tool", words, ("tools", at)


def is_made_by(model: str, provider: str, /) -> bool:
    """Tell whether a model is known to be one of a provider's."""
    from trimtab.models import find_facts  # not above: most requests are never looked over for faults

    facts = find_facts(model) if model else None
    return facts is not None and facts.provider == provider
