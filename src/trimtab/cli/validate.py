"""`trimtab validate`: would a provider accept this conversation?"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import click

from trimtab.cli.input import InputKind
from trimtab.cli.options import input_options, pending_option
from trimtab.cli.output import Verdicts, answer_all, usage
from trimtab.conversation.validity import Violation
from trimtab.conversation.validity import validate as validate_one
from trimtab.report.text import plain

__all__ = ["validate", "violation_line"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Validity:
    """What a provider would refuse."""

    violations: list[Violation]
    tokens: None = None

    @property
    def ok(self) -> bool:
        """Whether there is no fault; an open call is none."""
        return not any(violation.fault for violation in self.violations)

    def data(self) -> dict[str, Any]:
        """Give the verdict and each violation."""
        return {"valid": self.ok, "violations": [asdict(violation) for violation in self.violations]}

    def result(self) -> bool:
        """Give the verdict."""
        return self.ok

    def text(self, *, width: int, colour: bool) -> str:
        """Give a violation a line: where, which rule, and what the provider would say."""
        lines = [violation_line(violation) for violation in self.violations]
        return "\n".join(["valid", *lines] if self.ok else lines)

    def row(self) -> str:
        """Give the verdict, and the violations below it."""
        verdict = "valid" if self.ok else "invalid"
        return "\n".join([verdict, *(f"  {violation_line(violation)}" for violation in self.violations)])


def violation_line(violation: Violation) -> str:
    """Write a violation for people: where, which rule, and what the provider would say."""
    where = "request" if violation.index is None else f"messages[{violation.index}]"
    said = violation.message.removeprefix(f"{where}: ")
    place = "request" if violation.index is None else violation.index
    return plain(f"{place} {violation.rule}: {said}") + ("" if violation.fault else " (no fault)")


EPILOG = """\b
Examples:
  trimtab validate chat.json --output text
  trimtab validate 'chats/*.json' > verdicts.jsonl
  trimtab fit chats.jsonl --budget 8k | trimtab validate
"""


@click.command(epilog=EPILOG)
@input_options
@pending_option
@usage
def validate(
    files: tuple[str, ...], kind: InputKind, output: str, format: str, pending_calls: tuple[str, ...]
) -> None:
    """List what a provider would refuse in conversations.

    Results without their call, calls without a result, messages of a wrong shape. A call whose
    result can still come is listed too, but is no fault. A request body is looked at
    as a whole: its model and settings, and whether it holds any message.
    """

    def answer(value: Any) -> _Validity:
        return _Validity(violations=validate_one(value, format=format, pending_calls=pending_calls))

    verdicts = Verdicts(passing="are valid", failing="are invalid or cannot be read")
    answer_all(answer, files=files, kind=kind, output=output, verdicts=verdicts)
