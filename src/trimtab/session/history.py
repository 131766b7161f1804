"""The log as it was written, without what was pruned."""

from __future__ import annotations

from trimtab._shared.checks import check_whole
from trimtab.formats import Dict
from trimtab.session.core import Core, id_of
from trimtab.session.effects import Steps
from trimtab.session.log import Pages, PagesBetween, event_at, runs_near
from trimtab.session.messages import MessageReader
from trimtab.session.plain import copy_plain
from trimtab.stores import Event


def log_pages(core: Core, after: int, before: int | None) -> Steps[Pages | PagesBetween]:
    """Read the log from its beginning, without what was pruned."""
    working_set = yield from core.ready()
    after = check_whole("after", after, least=0)
    before = None if before is None else check_whole("before", before, least=0)
    stop = working_set.version + 1 if before is None else min(before, working_set.version + 1)
    state = working_set.state
    if after >= state.whole - 1:
        return Pages(core.session, after=after, before=stop, newest_first=False)
    older = [(1, state.whole - 1)]
    if state.pruned:
        kept = (yield from event_at(core.session, state.pruned, "pruning")).data["kept"]
        older = list(runs_near([version for first, last in kept for version in range(first, last + 1)]))
    spans = [*older, (state.whole, stop - 1)]
    within = [(max(first, after + 1), min(last, stop - 1)) for first, last in spans]
    return PagesBetween(core.session, [(first, last) for first, last in within if first <= last])


def message_whole(core: Core, event: Event | str) -> Steps[Dict]:
    """Read a whole message, as a view with enough room would show it."""
    found = yield from core.message_event(id_of(event))
    whole: Dict = copy_plain(MessageReader(core.in_force).show(found.data, None).message)
    return whole
