"""What stands before a provider's compaction: its server neither reads nor charges it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from trimtab.conversation import History, Unit

__all__ = ["compacted_units", "note_of"]


def compacted_units(
    history: History, units: Sequence[Unit], at: int, *, stays: Callable[[Unit], bool]
) -> list[Unit]:
    """List the units that stand before the latest compaction, and leave since it stands for them.

    They cost nothing there, so they would only take room that they do not fill. A unit that goes on behind
    the compaction stays, and so does the user's message that the first of what stays needs in front of it.
    Where there is no such message, or the compaction is not the model's own, all stays as it came.

    Args:
        history: The conversation.
        units: Those there are, in order.
        at: Position of the message with the compaction.
        stays: Whether a unit stays for another reason.
    """
    if history.kind(at) != "assistant":
        return []
    gone = [unit for unit in units if max(unit.indices) < at and not stays(unit)]
    leaving = {id(unit) for unit in gone}
    stay = [unit for unit in units if id(unit) not in leaving and not _is_system(history, unit)]
    front = min(min(unit.indices) for unit in stay)

    def leads(index: int) -> bool:
        return history.format.order_fault(None, history.message(index), parted=True) is None

    if not gone or leads(front):
        return gone
    before = [unit for unit in gone if min(unit.indices) < front and leads(min(unit.indices))]
    return [unit for unit in gone if unit is not before[-1]] if before else []


def _is_system(history: History, unit: Unit) -> bool:
    return all(history.kind(index) == "system" for index in unit.indices)


def note_of(messages: int) -> str:
    """Say in a report that messages are not sent."""
    from trimtab.report.text import plural  # not above: a compaction is seldom there

    return (
        "Not sent, since the server reads the provider's compaction in their place and does not charge them:"
        f" {plural(messages, 'message')} before it."
    )
