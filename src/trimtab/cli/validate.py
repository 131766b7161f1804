"""`trimtab validate` and `trimtab repair`: would a provider take this conversation, and what mends it?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import click

from trimtab.cli.input import InputKind
from trimtab.cli.options import bare_option, input_options, pending_option
from trimtab.cli.output import Verdicts, answer_all, usage
from trimtab.conversation.validity import Change, Repaired, Violation
from trimtab.conversation.validity import repair as repair_one
from trimtab.conversation.validity import validate as validate_one
from trimtab.report.text import counted, plain


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
        lines = [_violation_line(violation) for violation in self.violations]
        return "\n".join(["valid", *lines] if self.ok else lines)

    def row(self) -> str:
        """Give the verdict, and the violations below it."""
        verdict = "valid" if self.ok else "invalid"
        return "\n".join([verdict, *(f"  {_violation_line(violation)}" for violation in self.violations)])


def _violation_line(violation: Violation) -> str:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Repair:
    """What was done to a conversation, and what a provider would still refuse."""

    done: Repaired
    faults: list[Violation]
    tokens: None = None

    @property
    def ok(self) -> bool:
        """Whether a provider takes it now."""
        return not self.faults

    def result(self) -> Any:
        """Give the messages or the request body, as it came in."""
        return self.done.request

    def data(self) -> dict[str, Any]:
        """Give messages or request body, each change, and what is left."""
        request = self.done.request
        return {
            "request" if isinstance(request, Mapping) else "messages": request,
            "changes": [asdict(change) for change in self.done.changes],
            "violations": [asdict(fault) for fault in self.faults],
        }

    def text(self, *, width: int, colour: bool) -> str:
        """Give a change a line, and what is left below."""
        return "\n".join([self._total(), *map(_line, self.done.changes), *map(_left, self.faults)])

    def row(self) -> str:
        """Give the number of changes, and what is left below."""
        return "\n".join([self._total(), *map(_left, self.faults)])

    def _total(self) -> str:
        changes = len(self.done.changes)
        return f"repaired: {counted(changes, 'change')}" if changes else "nothing to repair"


def _line(change: Change) -> str:
    of = "" if change.call_id is None else f" of call {change.call_id!r}"
    return plain(f"  {change.index} {change.action}: {change.rule}{of}")


def _left(fault: Violation) -> str:
    return f"  left: {_violation_line(fault)}"


REPAIR_EPILOG = """\b
Examples:
  trimtab repair chat.json --messages-only > repaired.json
  trimtab repair 'chats/*.json' --output text
"""


@click.command(epilog=REPAIR_EPILOG)
@input_options
@pending_option
@bare_option
@usage
def repair(
    files: tuple[str, ...],
    kind: InputKind,
    output: str,
    format: str,
    pending_calls: tuple[str, ...],
    bare: bool,
) -> None:
    """Make calls and results of conversations match.

    Results without their call leave, so do calls that nobody will answer, and late results move behind
    their call. Writes the messages (or the request body), each change by its place in the input, and what a
    provider would still refuse: then the exit code is 1.
    """

    def answer(value: Any) -> _Repair:
        done = repair_one(value, format=format, pending_calls=pending_calls)
        left = validate_one(done.request, format=format, pending_calls=pending_calls)
        return _Repair(done=done, faults=[one for one in left if one.fault])

    verdicts = Verdicts(passing="are valid", failing="are still invalid or cannot be read")
    answer_all(answer, files=files, kind=kind, output=output, verdicts=verdicts, bare=bare)
