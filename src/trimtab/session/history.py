"""The log as it was written, without what was pruned."""

from __future__ import annotations

from trimtab._shared.checks import check_whole
from trimtab.formats import Dict
from trimtab.session.core import Core, id_of
from trimtab.session.effects import Steps
from trimtab.session.log import Pages, PagesBetween, event_at, runs_near
from trimtab.session.messages import MessageReader
from trimtab.session.plain import copy_plain
from trimtab.session.state import State
from trimtab.stores import Event


def log_pages(
    core: Core, after: int, before: int | None, *, unfinished: bool = False
) -> Steps[Pages | PagesBetween]:
    """Read the log from its beginning, without what was pruned.

    `unfinished`: with what an interrupted order has yet to remove, too.
    """
    working_set = yield from core.ready()
    after = check_whole("after", after, least=0)
    before = None if before is None else check_whole("before", before, least=0)
    stop = working_set.version + 1 if before is None else min(before, working_set.version + 1)
    state = working_set.state
    if after >= state.whole - 1:
        return Pages(core.session, after=after, before=stop, newest_first=False)
    kept = None if unfinished else (yield from _what_stays(core, state))
    older = [(1, state.whole - 1)] if kept is None else list(runs_near(sorted(kept)))
    spans = [*older, (state.whole, stop - 1)]
    within = [(max(first, after + 1), min(last, stop - 1)) for first, last in spans]
    parts = [(first, last) for first, last in within if first <= last]
    return PagesBetween(core.session, parts, kept=kept, whole=state.whole)


def _what_stays(core: Core, state: State) -> Steps[set[int] | None]:
    """Return the versions of what stays, of what is older than where the log is whole; None: nobody says."""
    if not state.pruned:
        return None
    data = (yield from event_at(core.session, state.pruned, "pruning")).data
    runs = (*data["kept"], *data["emptied"])
    return {version for first, last in runs for version in range(first, last + 1)}


def message_whole(core: Core, event: Event | str) -> Steps[Dict]:
    """Read a whole message, as a view with enough room would show it."""
    found = yield from core.message_event(id_of(event))
    whole: Dict = copy_plain(MessageReader(core.in_force).show(found.data, None).message)
    return whole
