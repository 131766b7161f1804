"""`trimtab repair`: make calls and results match."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import click

from trimtab.cli.input import InputKind
from trimtab.cli.options import bare_option, input_options, pending_option
from trimtab.cli.output import Verdicts, answer_all, usage
from trimtab.cli.validate import violation_line
from trimtab.conversation.validity import Change, Repaired, Violation
from trimtab.conversation.validity import repair as repair_one
from trimtab.conversation.validity import validate as validate_one
from trimtab.report.text import counted, plain

__all__ = ["repair"]


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
    return f"  left: {violation_line(fault)}"


EPILOG = """\b
Examples:
  trimtab repair chat.json --messages-only > repaired.json
  trimtab repair 'chats/*.json' --output text
"""


@click.command(epilog=EPILOG)
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
