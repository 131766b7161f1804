"""Part of a result from the log, whether a view cuts it, clears it or no longer has it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from trimtab.results.excerpt import LEAST_TOKENS, LineRange
from trimtab.results.lookup import MOST_IDS, check_call_id, result_text, unknown_id
from trimtab.results.tool import ResultTool, answer, check_most
from trimtab.session.core import Core
from trimtab.session.effects import Steps
from trimtab.session.log import kept_of
from trimtab.session.messages import MessageReader
from trimtab.session.pops import gone_since
from trimtab.session.working_set import WorkingSet
from trimtab.stores import Event

if TYPE_CHECKING:
    from trimtab.session.session import Session


def tool_of(session: Session, max_tokens: int, /) -> ResultTool:
    """Make the tool that reads from a session's log.

    Args:
        session: The session.
        max_tokens: Maximum size of an answer.
    """
    check_most(max_tokens)
    return ResultTool(
        partial(session.read_result, max_tokens=max_tokens),
        form=lambda: session.format,
        aread=partial(session.aread_result, max_tokens=max_tokens),
    )


def read_from_log(
    core: Core, call_id: str, lines: LineRange, around: str | None, max_tokens: int
) -> Steps[str]:
    """Read part of a result, by the id of its call or of its message.

    No more is read than a view shows whole: an answer that was cut in its turn would be asked for again.
    """
    max_tokens, call_id = check_most(max_tokens), check_call_id(call_id)
    working_set = yield from core.ready()
    reader = working_set.reader
    text = yield from _text_of(core, working_set, call_id)
    most = reader.answer_tokens
    return answer(
        text,
        call_id,
        1,
        lines=lines,
        around=around,
        max_tokens=max_tokens if most is None else max(LEAST_TOKENS, min(max_tokens, most)),
        count_text=reader.count_text,
    )


def _text_of(core: Core, working_set: WorkingSet, call_id: str) -> Steps[str]:
    """Find the text of a message by its id, or of the newest result by that of its call."""
    reader = working_set.reader
    event = (yield from core.known_event(call_id)) if call_id.isprintable() else None
    kept = yield from kept_of(core.session, (yield from core.ready()).state)
    if event is not None and event.kind == "message" and kept.has(event):
        gone = yield from gone_since(core.session, working_set.state, event.version)
        if event.version not in gone:
            return "\n".join(_texts_of(reader, event))
    gone = yield from gone_since(core.session, working_set.state, 0)
    pages = kept.pages(after=0, before=working_set.version + 1, newest_first=True)
    ids = list[str]()
    while events := (yield from pages.next()):
        for event in events:
            if event.kind != "message" or event.version in gone:
                continue
            for one, part in reader.answers(event.message):
                if one == call_id:
                    return result_text(reader.format, event.message, part)
                if len(ids) < MOST_IDS:
                    ids.append(one)
    raise unknown_id(call_id, ids)


def _texts_of(reader: MessageReader, event: Event) -> Iterator[str]:
    """Yield all texts of a message: its results, and what is said beside them."""
    answers = reader.answers(event.message)
    results = {part for _, part in answers}
    for _, part in answers:
        yield result_text(reader.format, event.message, part)
    for slot in reader.format.texts(event.message):
        if not (slot.is_result and results):
            yield slot.text
