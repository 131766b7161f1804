"""The log as it was written, without what was pruned."""

from __future__ import annotations

from trimtab._shared.checks import check_whole
from trimtab.formats import Dict
from trimtab.session.core import Core, id_of
from trimtab.session.effects import Steps
from trimtab.session.log import PagesBetween, all_there, event_at, kept_of
from trimtab.session.messages import MessageReader
from trimtab.session.plain import copy_plain
from trimtab.session.state import State
from trimtab.stores import Event, LoadRequest


def log_pages(core: Core, after: int, before: int | None, *, unfinished: bool = False) -> Steps[PagesBetween]:
    """Read the log from its beginning, without what was pruned.

    `unfinished`: with what an interrupted order has yet to remove, too.
    """
    working_set = yield from core.ready()
    after = check_whole("after", after, least=0)
    before = None if before is None else check_whole("before", before, least=0)
    stop = working_set.version + 1 if before is None else min(before, working_set.version + 1)
    state = working_set.state
    if unfinished or after >= state.whole - 1:
        kept = all_there(core.session, state)
    else:
        kept = yield from kept_of(core.session, state)
    return kept.pages(after=after, before=stop)


def end_id(said: Event) -> str:
    """Return the id of the event that says that an order to prune is done."""
    return f"{said.id}-erased"


def is_unfinished(core: Core, state: State) -> Steps[bool]:
    """Tell whether what was pruned may still be there: the order is not done, or is not in this copy."""
    if not state.pruned:
        return state.whole > 1
    said = yield from event_at(core.session, state.pruned, "pruning")
    return not (yield from is_ended(core, said))


def is_ended(core: Core, said: Event) -> Steps[bool]:
    """Tell whether all that an order was to remove is gone from the files."""
    found: list[Event] = yield LoadRequest(session=core.session, ids=(end_id(said),))
    return bool(found)


def message_whole(core: Core, event: Event | str) -> Steps[Dict]:
    """Read a whole message, as a view with enough room would show it."""
    found = yield from core.message_event(id_of(event))
    whole: Dict = copy_plain(MessageReader(core.in_force).show(found.data, None).message)
    return whole
