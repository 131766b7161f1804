"""What an event of a log holds, kind by kind, and what of it a session goes by: one table for what is read.

What is read may come from anywhere: a snapshot that somebody uploads, a row of a database others write to. A
seal says that nothing was changed by accident; who changes it on purpose seals it again. So each event is
checked as it is read, and the events of a snapshot as a whole: what one names by its version is there, and of
the kind it is named as.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from trimtab.budget import MOST_TOKENS
from trimtab.errors import CorruptSessionError, EncryptionKeyError, PrunedError
from trimtab.formats.origin import ORIGINS
from trimtab.formats.values import short_repr
from trimtab.stores import Event
from trimtab.stores.rows import PRUNED, is_name
from trimtab.stores.search import SEALED
from trimtab.strategies.fact_extractor import MAX_WEIGHT


class Check(NamedTuple):
    """What a value must be."""

    what: str
    """It in words."""
    fits: Callable[[Any, int], bool]
    """Checks a value, given also the version of its event."""
    names: str = ""
    """The kind of the events it names by their versions; empty: it names none, or any."""
    optional: bool = False
    """Whether it may be omitted: it was added later, or is only in some events."""


def _whole(value: Any, least: int, most: int) -> bool:
    return type(value) is int and least <= value <= most


def _members(value: Any, at: int) -> bool:
    """Tell whether it lists versions of one unit, oldest first."""
    if not isinstance(value, (list, tuple)) or not {*map(type, value)} <= {int}:
        return False
    return not value or (value[0] >= 1 and value[-1] <= at and [*value] == sorted({*value}))


def _unit(value: Any, at: int) -> bool:
    return bool(value) and _members(value, at)


def _list_of(fits: Callable[[Any, int], bool]) -> Callable[[Any, int], bool]:
    return lambda value, at: isinstance(value, (list, tuple)) and all(fits(one, at) for one in value)


def _units(value: Any, at: int) -> bool:
    """Tell whether it lists units, none of which has a message of another.

    Without a step of Python for each: a summary covers hundreds, and a redaction reads every summary.
    """
    if not isinstance(value, (list, tuple)) or not {*map(type, value)} <= {list, tuple} or not all(value):
        return False
    versions = [*chain.from_iterable(value)]
    if not {*map(type, versions)} <= {int}:
        return False
    within = not versions or (min(versions) >= 1 and max(versions) <= at)
    return within and len({*versions}) == len(versions) and [*map(sorted, value)] == [*map(list, value)]


def _row(value: Any, at: int) -> bool:
    """Tell whether it is a unit and the ids of the calls it waits for."""
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        return False
    return _unit(value[0], at) and _texts(value[1], at)


def _span(value: Any, at: int) -> bool:
    """Tell whether it is the version of a message and that of the event that took it off."""
    return isinstance(value, (list, tuple)) and len(value) == 2 and _unit(value, at)


def _spans(value: Any, at: int) -> bool:
    return bool(value) and _list_of(_span)(value, at)


def _run(value: Any, at: int) -> bool:
    """Tell whether it is the first and the last version of a run of events."""
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        return False
    return all(_whole(one, 1, at) for one in value) and value[0] <= value[1]


def _answer(value: Any, at: int) -> bool:
    """Tell whether it is the first and the last version of the facts of one answer, or says that none is."""
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        return False
    return all(_whole(one, 0, at) for one in value) and (value[0] < value[1] or not any(value))


def _text(value: Any, at: int) -> bool:
    return isinstance(value, str)


def _texts(value: Any, at: int) -> bool:
    # A fact names what all it took the place of came from: no step of Python for each.
    return isinstance(value, (list, tuple)) and {*map(type, value)} <= {str}


def _earlier(kind: str, *, least: int = 0) -> Check:
    what = f"the version of {'an' if kind[:1] in ('a', 'o') else 'a'} {kind or 'event'} before it"
    what = what if least > 0 else f"{what}, or {least}"
    return Check(what, lambda value, at: _whole(value, least, at - 1), kind)


def _by_now(kind: str, *, least: int = 0) -> Check:
    """Check the events that a state names, which may include its own."""
    what = f"the version of an event of kind {kind}" if kind else "a version of the log"
    what = what if least > 0 else f"{what}, or {least}"
    return Check(what, lambda value, at: _whole(value, least, at), kind)


def _entry(value: Any, at: int) -> bool:
    """Tell whether it is a rule of a register: the events that say it, and the place of the rule in each."""
    if not isinstance(value, Mapping):
        return False
    return (
        bool(value.get("said"))
        and _list_of(_place_of_rule)(value["said"], at)
        and all(isinstance(value[name], str) for name in ("id", "by") if name in value)
        and _whole(value.get("times", 1), 1, MOST_TOKENS)
    )


def _place_of_rule(value: Any, at: int) -> bool:
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        return False
    return is_name(value[0]) and _whole(value[1], 0, MOST_TOKENS)


def fits_rule(value: Any, at: int = 0) -> bool:
    """Tell whether it is the data of a rule that was found, word for word."""
    from trimtab.rules import KINDS, STRONGEST  # not above: only a log with rules needs it

    return (
        isinstance(value, Mapping)
        and isinstance(value.get("text"), str)
        and isinstance(value.get("language"), str)
        and value.get("kind") in KINDS
        and _whole(value.get("strength"), 1, STRONGEST)
        and _whole(value.get("start"), 0, MOST_TOKENS)
        and all(_texts(value.get(name, ()), at) for name in ("topic", "values"))
        and all(isinstance(value.get(name, False), bool) for name in ("forbids", "adds"))
        and isinstance(value.get("source", ""), str)
    )


CHECKED_NAMES = ("values", "missing", "restated", "lost", "invented")
"""What is counted of the values that a summary must keep."""

_TEXT = Check("a text", _text)
_TEXTS = Check("a list of texts", _texts)
_ID = Check("the id of an event", lambda value, at: is_name(value))
_IDS = Check("a list of ids of events", _list_of(lambda value, at: is_name(value)))
_FLAG = Check("true or false", lambda value, at: isinstance(value, bool))
_SPANS = Check("a list of the first and the last versions of runs", _list_of(_run))
_MAPPING = Check("a mapping", lambda value, at: isinstance(value, Mapping))
_MESSAGES = Check("a list of messages", _list_of(_MAPPING.fits))
_COUNT = Check("a whole number of at least 0", lambda value, at: _whole(value, 0, MOST_TOKENS))
_SUM = Check("a whole number", lambda value, at: _whole(value, -MOST_TOKENS, MOST_TOKENS))
_TOKENS_OR_NONE = Check(
    "a number of tokens, or null", lambda value, at: value is None or _whole(value, 0, MOST_TOKENS)
)
_ORIGIN = Check(f"one of {', '.join(ORIGINS)}", lambda value, at: value in ORIGINS)
_ORIGIN_OR_NONE = Check(
    f"null, or one of {', '.join(ORIGINS)}", lambda value, at: value is None or value in ORIGINS
)
_ORIGINS = Check("a list of origins", _list_of(_ORIGIN.fits))
_UNITS = Check("a list of units, each a list of versions of messages, oldest first", _units, "message")
_ANSWER = Check("the first and the last version of an answer's facts, or [0, 0]", _answer)
_WEIGHT = Check("a number above 0", lambda value, at: type(value) in (int, float) and 0 < value <= MAX_WEIGHT)
_PART = Check("a place in its answer", lambda value, at: _whole(value, 0, at - 1))
_BORDER = Check("a version of the log, or the one after it", lambda value, at: _whole(value, 0, at + 1))
_FROM_ONE = Check("a version of the log, or the one after it", lambda value, at: _whole(value, 1, at + 1))
_VERSIONS = Check("a list of versions of messages, oldest first", _members, "message")
_CHECKED = Check(
    f"a mapping of whole numbers: {', '.join(CHECKED_NAMES)}",
    lambda value, at: (
        isinstance(value, Mapping) and all(_whole(value.get(name), 0, MOST_TOKENS) for name in CHECKED_NAMES)
    ),
)
_SWITCH = Check(
    "a mapping of the model and the budget before: model, budget_tokens",
    lambda value, at: (
        isinstance(value, Mapping)
        and isinstance(value.get("model"), (str, type(None)))
        and _whole(value.get("budget_tokens"), 0, MOST_TOKENS)
    ),
)
_RULES = Check(
    "a list of rules, each a mapping with text, kind, strength, start and language", _list_of(fits_rule)
)
_REGISTER = Check(
    "a list of rules, each a mapping with the events that say it and its place in each: {'said': [[id, 0]]}",
    _list_of(_entry),
)
_NAMES = Check(
    "what was given, by name",
    lambda value, at: (
        isinstance(value, Mapping)
        and all(one is None or isinstance(one, (str, bool)) for one in value.values())
    ),
)


def _maybe(check: Check) -> Check:
    return check._replace(optional=True)


_OF_RULES = {"rules": _maybe(_RULES), "register": _maybe(_REGISTER), "unlisted": _maybe(_COUNT)}
"""What an event has that changes which rules hold: those in it, and the register of all."""

KINDS: Mapping[str, Mapping[str, Check]] = {
    "message": {
        "message": _MAPPING,
        "joins": _maybe(_earlier("message", least=1)),
        "alone": _maybe(_FLAG),
        "origin": _maybe(_ORIGIN),
        "redacted": _maybe(_FLAG),
        "beyond": _maybe(_COUNT),
        **_OF_RULES,
    },
    "rules": {"host": _maybe(_TEXTS), **_OF_RULES},
    "options": {"options": _MAPPING, "switch": _maybe(_SWITCH)},
    "anchors": {"anchors": _MESSAGES},
    "summary": {
        "text": _TEXT,
        "messages": _COUNT,
        "covers": _UNITS,
        "previous": _earlier("summary"),
        "origins": _maybe(_ORIGINS),
        "older": _maybe(_earlier("summary", least=-1)),
        "stale": _maybe(_FLAG),
        "checked": _maybe(_CHECKED),
    },
    "fact": {
        "text": _TEXT,
        "sources": _TEXTS,
        "supersedes": _earlier("fact"),
        "older": _earlier("fact"),
        "at": _PART,
        "weight": _maybe(_WEIGHT),
        "kind": _maybe(_TEXT),
        "confirmations": _maybe(_COUNT),
        "since": _maybe(_earlier("fact", least=1)),
        "origin": _maybe(_ORIGIN_OR_NONE),
        "stale": _maybe(_FLAG),
    },
    "facts": {
        "facts": _COUNT,
        "messages": _COUNT,
        "previous": _ANSWER,
        "jump": _ANSWER,
        "depth": _COUNT,
        "confirmations": _maybe(_COUNT),
        "best": _maybe(_IDS),
        "more": _maybe(_FLAG),
    },
    "evicted": {"units": _UNITS, "reason": _TEXT},
    "failed": {"why": _TEXT, "messages": _COUNT, "of": _maybe(_TEXT)},
    "budget": {"budget_tokens": _COUNT},
    "usage": {
        "input_tokens": _COUNT,
        "answer_tokens": _TOKENS_OR_NONE,
        "counted_tokens": _COUNT,
        "view": _by_now(""),
    },
    "recalled": {
        "question": _earlier("message"),
        "before": _earlier("message"),
        "units": _UNITS,
        "error": _maybe(_TEXT),
    },
    "popped": {
        "event": _ID,
        "version": _by_now("", least=1),
        "gone": Check(
            "a list of the versions of messages and of their pops, [message, pop], at least one", _spans
        ),
        "older": _earlier("popped"),
        **_OF_RULES,
    },
    "cleared": {},
    "abridged": {"of": _COUNT},
    "pinned": {"event": _ID},
    "unpinned": {"event": _ID},
    "undone": {"event": _ID, "version": _earlier("", least=1)},
    PRUNED: {},
    "pruning": {
        "keep": _COUNT,
        "before": _by_now("", least=1),
        "oldest": _by_now("", least=1),
        "kept": _SPANS,
        "emptied": _SPANS,
    },
    "erased": {"of": _earlier("pruning", least=1), "events": _COUNT, "messages": _COUNT, "bytes": _COUNT},
    "redacted": {
        "events": _IDS,
        "stale": _IDS,
        "version": _by_now("", least=1),
        **dict.fromkeys(("facts", "mended", "misattributed", "rules", "left"), _maybe(_IDS)),
    },
}
"""What an event of a log may be, and what each kind of event holds. What is more than that nobody reads."""

STATE: Mapping[str, Check] = {
    "budget_tokens": _COUNT,
    "options": _by_now("options", least=1),
    "anchors": _by_now("anchors"),
    "host_rules": _by_now("rules"),
    "rules": _by_now(""),
    "summary": _by_now("summary"),
    "anchor_summary": _by_now("summary"),
    "newest_summary": _by_now("summary", least=-1),
    "recollection": _by_now("recalled"),
    "cleared": _by_now(""),
    "live": _FROM_ONE,
    "cut": _FROM_ONE,
    "view": _BORDER,
    "beside": _UNITS,
    "left": _UNITS,
    "waiting": Check("a list of units with the ids of calls", _list_of(_row), "message"),
    "pins": _VERSIONS,
    "user": _by_now("message"),
    "turn": _by_now("message"),
    "last": _by_now("message"),
    "kept": _by_now("message"),
    "facts": _ANSWER,
    "newest_fact": _by_now("fact"),
    "popped": _by_now("popped"),
    "switched": _by_now("options"),
    "whole": _FROM_ONE,
    "oldest": _by_now(""),
    "pruned": _by_now("pruning"),
    "read": _BORDER,
    "unread": _VERSIONS,
    "usage_first": _by_now("message"),
    **dict.fromkeys(
        (
            "said_tokens",
            "calls",
            "failures",
            "retry_tokens",
            "fact_failures",
            "aside_tokens",
            "fact_retry_tokens",
            "epoch",
            "usage_tokens",
            "usage_counted",
            "learned_reported",
            "learned_counted",
        ),
        _COUNT,
    ),
    # Sums that are carried on from event to event: where counters changed on the way they may be below 0.
    **dict.fromkeys(
        (
            "recent_tokens",
            "recent_messages",
            "pending_tokens",
            "pending_messages",
            "known_facts",
            "stale_facts",
        ),
        _SUM,
    ),
}
"""The state in an event; omitted values are the initial ones."""

OPTIONS: Mapping[str, Check] = {
    "budget_tokens": _COUNT,
    "counted_by": _TEXT,
    "format": _TEXT,
    "given": _NAMES,
    "over_limit": _maybe(_FLAG),
}
"""The options in a log other than those of a session, which are checked like passed ones."""


def check_events(events: Iterable[Event], session: str, /) -> None:
    """Refuse events that no session can have written.

    Raises:
        CorruptSessionError: One is none; it says where, what stands there, and what has to.
    """
    for event in events:
        if SEALED in event.data:
            raise EncryptionKeyError(
                f"session {session!r} is encrypted: open its store with its keys, as encrypted(store, keys),"
                " or --keys PLACE of the command line",
                session=session,
            )
        table, at = KINDS.get(event.kind), event.version
        if table is None:
            raise _fault(
                session,
                event,
                f"is of the kind {short_repr(event.kind)}, which this version of trimtab does not know:"
                f" {_NEWER}",
            )
        wrong = _wrong_in(event.data, table, at, "data")
        if wrong is not None:
            raise _fault(session, event, wrong)


def check_kinds(events: Iterable[Event], kind: str | None, session: str, /) -> None:
    """Refuse events that are named as a wrong kind; None: any kind is allowed.

    Raises:
        PrunedError: One was pruned.
        CorruptSessionError: One is of another kind.
    """
    for event in events:
        if kind not in (None, event.kind):
            if event.kind == PRUNED:
                raise prune_error(event, session)
            raise _fault(session, event, f"is named as an event of the kind {kind}, but is not one")


def prune_error(event: Event, session: str, /) -> PrunedError:
    """Make the error of an event of which only its place remains."""
    return PrunedError(
        f"session {session!r}: event {event.version} was pruned", name=str(event.version), session=session
    )


def check_state(event: Event, session: str, /) -> None:
    """Refuse a state that no session can have had.

    Raises:
        PrunedError: The event was pruned, and has none.
        CorruptSessionError: It is none.
    """
    if event.kind == PRUNED:
        raise prune_error(event, session)
    state = event.state
    unknown = state.keys() - STATE.keys()
    if unknown:
        raise _fault(
            session,
            event,
            f"has {short_repr(min(unknown))} in its state, which this version of trimtab does not know:"
            f" {_NEWER}",
        )
    wrong = _wrong_in(state, {name: STATE[name] for name in ("options", *state)}, event.version, "state")
    if wrong is None and state.get("live", 1) > state.get("cut", 1):
        wrong = "has a state in which the recent messages begin before the live ones"
    if wrong is None and not _units([*state.get("beside", ()), *state.get("left", ())], event.version):
        wrong = "has a state that names one message in two units"
    if wrong is not None:
        raise _fault(session, event, wrong)


def check_options(data: Any, where: str, /) -> None:
    """Refuse options without what a log says beside those of a session.

    Args:
        data: What stands where options are.
        where: Where that is, for the error.

    Raises:
        CorruptSessionError: They are none.
    """
    wrong = _wrong_in(data, OPTIONS, 0, "options")
    if wrong is not None:
        raise CorruptSessionError(f"{where} {wrong}. {_HINT}")


def check_log(events: Sequence[Event], session: str, /) -> None:
    """Refuse a whole log that is none, or that names by its version what is something else.

    Raises:
        CorruptSessionError: It does, or an event of it is none.
    """
    seen = set[str]()
    for event in events:
        columns = {
            "id": event.id,
            "kind": event.kind,
            "time": event.time,
            "data": event.data,
            "state": event.state,
        }
        wrong = _wrong_in(columns, _COLUMNS, event.version, "")
        if wrong is None and event.id in seen:
            wrong = "has the id of an event before it"
        if wrong is not None:
            raise _fault(session, event, wrong)
        seen.add(event.id)
    check_events(events, session)
    kinds = [event.kind for event in events]
    for event in events:
        if event.kind == PRUNED:
            continue
        check_state(event, session)
        for part, table, there in (("data", KINDS[event.kind], event.data), ("state", STATE, event.state)):
            for name in table.keys() & there.keys():
                wrong = _other_kind(there[name], table[name], kinds)
                if wrong is not None:
                    raise _fault(session, event, f"names in {part}.{name} {wrong}")


_COLUMNS = {
    "id": _ID,
    "kind": Check("a word", lambda value, at: is_name(value)),
    "time": Check(
        "a number of seconds since 1970",
        lambda value, at: type(value) in (int, float) and -_LATEST < value < _LATEST,
    ),
    "data": _MAPPING,
    "state": _MAPPING,
}

_LATEST = 1e300
"""Of what is larger, or is no number, no database keeps every digit."""

_HINT = "Take the snapshot again, or restore the store from a backup"

_NEWER = "a newer one wrote it, so update this one (pip install --upgrade trimtab), or it was changed by hand"


def _other_kind(value: Any, check: Check, kinds: Sequence[str]) -> str | None:
    """Name an event that is named as a wrong kind; None if there is none."""
    if check is _ANSWER and value[1]:
        first, last = value
        if kinds[last - 1] == PRUNED:
            return None
        if kinds[last - 1] != "facts" or not {"fact", PRUNED}.issuperset(kinds[first - 1 : last - 1]):
            return f"the events {first} to {last}, which are no answer of facts"
    there = (check.names, PRUNED)
    wrong = next((one for one in _versions(value) if kinds[one - 1] not in there), 0) if check.names else 0
    return f"event {wrong}, which is of the kind {kinds[wrong - 1]} and not {check.names}" if wrong else None


def _versions(value: Any) -> Iterator[int]:
    """List the versions in a value, at whatever depth."""
    if isinstance(value, (list, tuple)):
        for one in value:
            yield from _versions(one)
    elif isinstance(value, int) and value > 0:
        yield value


def _wrong_in(data: Any, table: Mapping[str, Check], at: int, where: str) -> str | None:
    """Say what is wrong with the data of an event; None if nothing is."""
    if not isinstance(data, Mapping):
        return f"has {where} {short_repr(data)}, and it is a mapping"
    prefix = f"{where}." if where else ""
    for name, check in table.items():
        if name not in data:
            if not check.optional:
                return f"has no {prefix}{name}: it is {check.what}"
        elif not check.fits(data[name], at):
            return f"has {prefix}{name} {short_repr(data[name])}, and it is {check.what}"
    return None


def _fault(session: str, event: Event, what: str) -> CorruptSessionError:
    kind = f" ({event.kind})" if isinstance(event.kind, str) and event.kind in KINDS else ""
    return CorruptSessionError(
        f"session {session!r}: event {event.version}{kind} {what}. {_HINT}",
        session=session,
        version=event.version,
    )
