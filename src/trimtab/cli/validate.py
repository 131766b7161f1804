"""`trimtab validate` and `trimtab repair`: would a provider take this conversation, and what mends it?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import click

from trimtab.cli.options import bare_option, pending_option, taker_option
from trimtab.cli.output import Answer, on_conversations
from trimtab.conversation import Change, Violation
from trimtab.conversation import repair as repair_one
from trimtab.conversation import validate as validate_one
from trimtab.report.text import plain, plural, violation_lines


def _lines_of(violations: Sequence[Violation]) -> list[str]:
    """Write violations for people, a line a rule: where, which rule, and what the provider would say."""
    return [plain(text) + ("" if fault else " (no fault)") for text, fault in violation_lines(violations)]


EPILOG = """\b
Examples:
  trimtab validate chat.json --output text
  trimtab validate 'chats/*.json' > verdicts.jsonl
  trimtab fit chats.jsonl --budget 8k | trimtab validate
"""


@click.command(epilog=EPILOG)
@on_conversations(passing="are valid", failing="are invalid or cannot be read")
@taker_option
@pending_option
def validate(**given: Any) -> Callable[[Any], Answer]:
    """List what a provider would refuse in conversations.

    These are results without their call, calls without a result, and messages of a wrong shape. A call whose
    result can still come is listed too, but is not a fault. A request body is checked as a whole: its model
    and settings, and whether it has any message.
    """

    def answer(value: Any) -> Answer:
        found = validate_one(value, **given)
        is_valid = not any(violation.fault for violation in found)
        lines = _lines_of(found)
        verdict = "valid" if is_valid else "invalid"
        return Answer(
            ok=is_valid,
            data=lambda: {"valid": is_valid, "violations": [asdict(violation) for violation in found]},
            result=is_valid,
            text=lambda width, colour: "\n".join(["valid", *lines] if is_valid else lines),
            row=lambda: "\n  ".join([verdict, *lines]),
        )

    return answer


def _change_line(change: Change) -> str:
    of = "" if change.call_id is None else f" of call {change.call_id!r}"
    return plain(f"  {change.index} {change.action}: {change.rule}{of}")


REPAIR_EPILOG = """\b
Examples:
  trimtab repair chat.json --messages-only > repaired.json
  trimtab repair 'chats/*.json' --output text
"""


@click.command(epilog=REPAIR_EPILOG)
@on_conversations(passing="are valid", failing="are still invalid or cannot be read")
@taker_option
@pending_option
@bare_option
def repair(bare: bool, **given: Any) -> Callable[[Any], Answer]:
    """Make calls and results of conversations match.

    Removes results without their call and calls that will not be answered, and moves late results behind
    their call. Repairs refused shapes if no content has to be invented. Writes the messages (or the request
    body), each change by its place in the input, and what a provider would still refuse; in that case the
    exit code is 1.
    """

    def answer(value: Any) -> Answer:
        done = repair_one(value, **given)
        faults = [one for one in validate_one(done.request, **given) if one.fault]
        changes = len(done.changes)
        total = f"repaired: {plural(changes, 'change')}" if changes else "nothing to repair"
        still = [f"  still: {line}" for line in _lines_of(faults)]
        return Answer(
            ok=not faults,
            data=lambda: {
                "request" if isinstance(done.request, Mapping) else "messages": done.request,
                "changes": [asdict(change) for change in done.changes],
                "violations": [asdict(fault) for fault in faults],
            },
            result=done.request,
            text=lambda width, colour: "\n".join([total, *map(_change_line, done.changes), *still]),
            row=lambda: "\n".join([total, *still]),
        )

    return answer
