"""The contract of stores on what was deleted: who still means it changes nothing and reads nothing."""

from __future__ import annotations

from functools import partial

from trimtab.errors import SessionDeletedError
from trimtab.stores import AppendRequest, Event, LoadRequest, SearchRequest, Store
from trimtab.testing.errors import broken
from trimtab.testing.store_asking import Asking, entry, note, refusal

__all__ = ["acheck_incarnations", "check_incarnations"]

_RULE = "incarnation"


def _requests(session: str, deleted: str, versions: int, again: Event) -> list[AppendRequest]:
    """Write what somebody may still ask for who read a session of so many events before it was deleted."""
    base = AppendRequest(
        session=session, expected_version=versions, events=[entry({"content": "late"})], incarnation=deleted
    )
    return [
        base,
        AppendRequest(session=session, expected_version=versions - 1, events=[note()], incarnation=deleted),
        AppendRequest(session=session, expected_version=versions, events=[again], incarnation=deleted),
        AppendRequest(
            session=session,
            expected_version=versions,
            events=[note()],
            rewrites=[again],
            incarnation=deleted,
        ),
    ]


def check_incarnations(check: Asking) -> None:
    """Delete a session, begin it anew with the very same events, and ask for the one that was deleted."""
    session = check.new_session()
    messages = [entry({"content": f"a heron {at}"}) for at in range(3)]
    begin = AppendRequest(session=session, expected_version=0, events=messages)
    first = check.store.append(begin).incarnation
    _check_named(check, session, first)
    if check.store.append(begin).incarnation != first:
        broken(_RULE, "a repeated append says another incarnation than the first")
    own = AppendRequest(session=session, expected_version=3, events=[note()], incarnation=first)
    check.equal(_RULE, check.store.append(own)[:2], (4, False), "who means the one that is there may add")
    newest = check.load(session)[0]

    check.store.delete(session, incarnation=first)
    check.store.delete(session, incarnation=first)  # as after an answer that was lost
    _check_refused(check, session, first, _requests(session, first, 4, newest))
    check.equal(_RULE, check.load(session), [], "a late writer begins no session")

    again = AppendRequest(session=session, expected_version=0, events=[*messages, note()])
    second = check.store.append(again).incarnation
    if second == first:
        broken(_RULE, f"a session that was deleted and begun anew has the incarnation it had, {first!r:.80}")
    _check_named(check, session, second)
    stored = check.load(session)
    _check_refused(check, session, first, _requests(session, first, 4, stored[0]))
    late = partial(check.store.delete, session, incarnation=first)
    refusal(late, SessionDeletedError, _RULE, "a late deletion")
    check.equal(_RULE, check.load(session), stored, "a late writer changes nothing of what is there now")
    check.store.delete(session, incarnation=second)
    check.equal(_RULE, check.load(session), [], "who means the one that is there may delete it")


def _check_named(check: Asking, session: str, incarnation: str) -> None:
    if not incarnation:
        broken(_RULE, "an append answers no incarnation")
    newest = LoadRequest(session=session, limit=1, newest_first=True, incarnation=incarnation)
    one = LoadRequest(session=session, ids=(check.load(session)[0].id,), incarnation=incarnation)
    query = check.query(session, "heron")
    asked = SearchRequest(session=session, terms=query.terms, limit=9, incarnation=incarnation)
    reads = {
        "load": check.store.load(newest),
        "load by ids": check.store.load(one),
        "search": check.store.search(asked),
    }
    for what, events in reads.items():
        said = {event.incarnation for event in events}
        check.equal(_RULE, said, {incarnation}, f"events of {what} say the incarnation that append answered")


def _check_refused(check: Asking, session: str, deleted: str, appends: list[AppendRequest]) -> None:
    for request in appends:
        error = refusal(partial(check.store.append, request), SessionDeletedError, _RULE, "a late append")
        check.equal(_RULE, error.session, session, "the error names the session")
    terms = check.query(session, "heron").terms
    reads = (
        LoadRequest(session=session, incarnation=deleted),
        LoadRequest(session=session, limit=1, newest_first=True, incarnation=deleted),
        LoadRequest(session=session, ids=("nobody",), incarnation=deleted),
    )
    for read in reads:
        refusal(partial(check.store.load, read), SessionDeletedError, _RULE, "a late load")
    search = SearchRequest(session=session, terms=terms, limit=9, incarnation=deleted)
    refusal(partial(check.store.search, search), SessionDeletedError, _RULE, "a late search")


async def acheck_incarnations(check: Asking, store: Store) -> None:
    """Ask for a session that was deleted, in the forms for asyncio."""
    session = check.new_session()
    begin = AppendRequest(session=session, expected_version=0, events=[entry({"content": "a heron"})])
    deleted = (await store.aappend(begin)).incarnation
    await store.adelete(session, incarnation=deleted)
    await store.aappend(AppendRequest(session=session, expected_version=0, events=[note()]))
    late = AppendRequest(session=session, expected_version=1, events=[note()], incarnation=deleted)
    search = SearchRequest(session=session, terms=("heron",), limit=9, incarnation=deleted)
    for what, call in (
        ("aappend", partial(store.aappend, late)),
        ("aload", partial(store.aload, LoadRequest(session=session, incarnation=deleted))),
        ("asearch", partial(store.asearch, search)),
        ("adelete", partial(store.adelete, session, incarnation=deleted)),
    ):
        try:
            await call()
        except SessionDeletedError:
            continue
        broken(_RULE, f"{what} answered, though the session it meant was deleted")
    check.equal(_RULE, len(check.load(session)), 1, "a late task changes nothing of what is there now")
