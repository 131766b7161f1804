"""What the provider would refuse where a view has it: it leaves the view, and stays in the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from trimtab.session._scene import Scene
    from trimtab.session._sizer import LiveUnit

__all__ = ["misplaced_units"]


class _Row(NamedTuple):
    """A message of a view, and the unit it is of; what stands in front is of none."""

    version: int
    message: dict[str, Any]
    unit: LiveUnit | None


def misplaced_units(scene: Scene) -> set[int]:
    """Return the first messages of the units in view that may not stand where they came to stand.

    What stays is not among them: then what stands before it is, if that may leave. Nothing is as long as all
    that was said is in view: it is as it was said.
    """
    summarized = scene.summary is not None or scene.anchor_summary is not None
    whole = not scene.hidden and not scene.out and not summarized
    if whole and not scene.sizer.options.pending_first:
        return set()
    rows, gone = _rows(scene), set[int]()
    while leaving := _leaving(scene, [row for row in rows if row.unit is None or row.unit.first not in gone]):
        gone |= leaving
    return gone


def _rows(scene: Scene) -> list[_Row]:
    front = [*scene.anchors]
    if scene.anchor_summary is not None:
        front.append(scene.anchor_summary.message)
    summary = [_Row(0, scene.summary.message, None)] if scene.summary and scene.shows_summary else []
    waiting: list[_Row] = []
    recent: list[_Row] = []
    for unit in scene.in_view():
        rows = waiting if unit.first in scene.shown else recent
        rows.extend(_Row(version, message, unit) for version, message in unit.members.items())
    ahead = [_Row(0, message, None) for message in front]
    if scene.sizer.options.pending_first:
        return [*ahead, *sorted(waiting, key=_version), *summary, *sorted(recent, key=_version)]
    return [*ahead, *summary, *sorted(waiting + recent, key=_version)]


def _version(row: _Row) -> int:
    return row.version


def _leaving(scene: Scene, rows: list[_Row]) -> set[int]:
    """Look at every message that does not stand behind the one it was said behind."""
    format, leaving = scene.sizer.format, set[int]()
    before: _Row | None = None
    for row in rows:
        if row.unit is None:
            if before is not None or format.kind(row.message) != "system":
                before = row
            continue
        apart = before is None or row.version != before.version + 1
        after = None if before is None else before.message
        if apart and format.order_fault(after, row.message, parted=True) is not None:
            if not scene.exempt(row.unit):
                leaving.add(row.unit.first)
                continue
            if before is not None and before.unit is not None and not scene.exempt(before.unit):
                leaving.add(before.unit.first)
        before = row
    return leaving
