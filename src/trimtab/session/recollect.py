"""Finding what was said before: by a query, and for each view by the newest question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from heapq import nlargest

from trimtab._shared.checks import check_whole
from trimtab.errors import (
    ConfigurationError,
    PrunedError,
    RankerError,
    SessionDeletedError,
    StoreUnavailableError,
    VersionConflictError,
)
from trimtab.formats import Dict
from trimtab.relevance import question_terms, text_terms
from trimtab.relevance.stems import stem
from trimtab.session.core import Core, warn
from trimtab.session.effects import Steps, ask_scores
from trimtab.session.facts import facts_in_force
from trimtab.session.log import event_at, kept_of
from trimtab.session.messages import MessageReader
from trimtab.session.plain import copy_plain
from trimtab.session.pops import WayBack, gone_since
from trimtab.session.recollection import (
    RankerFailures,
    RecalledUnit,
    Recollection,
    choose,
    compose,
    origins_of,
    recalled_data,
    unit_text,
)
from trimtab.session.view import cut_by_fit
from trimtab.session.working_set import WorkingSet
from trimtab.stores import Event, Found, LoadRequest, SearchRequest, searchable_text
from trimtab.stores.search import fact_key

PAGE = 256
"""Messages per call of a ranker, if it ranks all of them."""

_MOST_TERMS = 64
"""Maximum number of search terms of a question: of a longer one the first and the last, where the question
usually is."""

_MOST_FOUND = 512
"""Maximum number of messages to read for one question."""

_LEAST_TOKENS = 8
"""What a message takes at least: no more of them are looked for than have room."""

_FILLED = (9, 10)
"""How much of its share is filled: so that where reported usage or other blocks of a Context take a little of
the room, what was found goes on to fit and the prompt stays as it is."""

_REACH = 32
"""How many events after the first message of a unit are searched for the rest of it."""

_ATTEMPTS = 20
"""How often to retry writing what was found, while other writers are faster."""

_WORDS = (
    "ok okay yes yeah yep no nope sure thank thanks pleas please go ahead continue continu next right good"
    " great fine cool do it more again try done hi hello hey now well ja nein bitte danke weiter oui non"
    " merci si vale gracias 好 好的 是 是的 对 对的 不 不是 继续 谢谢 行 嗯 はい いいえ どうぞ"
)
_ASSENTS = frozenset(form for word in _WORDS.split() for form in (word, stem(word)))
"""Words of an answer that asks for nothing; stems of them, too."""


def recall_messages(core: Core, query: str, limit: int) -> Steps[Found]:
    """Find messages and current facts that are not in view."""
    if not isinstance(query, str):
        raise ConfigurationError(f"a query must be a text, not {query!r:.80}", argument="query")
    limit = check_whole("limit", limit, least=1)
    working_set = yield from core.ready()
    if (one := (yield from _by_handle(core, query))) is not None:
        return Found([one])
    terms = question_terms(query)
    if not terms or not working_set.version:
        return Found()
    cut = cut_by_fit(working_set)
    return (yield from _rank(core, working_set, query, terms, limit=limit, after=0, facts=True, cut=cut))


def _by_handle(core: Core, query: str) -> Steps[Event | None]:
    """Find the message whose id a query is: a marker names it where a result was cut."""
    if core.in_force.clamp is None or not query or query != "".join(query.split()):
        return None
    event = yield from core.known_event(query)
    if event is None or event.kind != "message":
        return None
    state = (yield from core.ready()).state
    gone = yield from gone_since(core.session, state, event.version)
    kept = yield from kept_of(core.session, state)
    return event if kept.has(event) and event.version not in gone else None


def _rank(
    core: Core,
    working_set: WorkingSet,
    query: str,
    terms: Sequence[str],
    *,
    limit: int,
    after: int,
    facts: bool = False,
    cut: Mapping[int, Dict] | None = None,
) -> Steps[Found]:
    """List messages, and facts if asked, that are out of view and newer than a version, the best first.

    `cut` are messages in view as they are shown, where a fit has to cut them: then of one that is cut each
    place of a term counts. With None, for what is recalled into a view and is cut there as well, only terms
    count that the view has nowhere in it.
    """
    options = core.in_force
    ranker, most = options.ranker, options.max_candidates
    by_words = partial(_by_words, core, working_set, terms, after=after, facts=facts, cut=cut)
    if ranker is None:
        return (yield from by_words(limit=limit))
    if most is not None:
        found = yield from by_words(limit=most)
        scores = yield from _score(core, query, found)
        return Found(_top(scores, found, limit), since=found.since)
    best: list[Event] = []
    scores = dict[int, float]()
    said, back = set[str](), WayBack()
    kept = yield from kept_of(core.session, working_set.state)
    pages = kept.pages(after=after, before=working_set.version + 1, newest_first=True)
    while events := (yield from pages.next()):
        hidden = (yield from _hidden_facts(core, working_set, events, said)) if facts else ()
        unseen = _unseen(working_set, back.there(events), terms, hidden, cut)
        listed = [event for event in unseen if not event.data.get("redacted")]
        for at in range(0, len(listed), PAGE):
            page = listed[at : at + PAGE]
            scores.update((yield from _score(core, query, page)))
            best = _top(scores, [*best, *page], limit)
    return Found(best)


def _by_words(
    core: Core,
    working_set: WorkingSet,
    terms: Sequence[str],
    *,
    limit: int,
    after: int,
    facts: bool = False,
    cut: Mapping[int, Dict] | None = None,
) -> Steps[Found]:
    """Ask the index of the store; one that answers a plain list does not say how far it looked."""
    asked = limit + sum(len(unit.members) for unit in working_set.in_view())
    kept = yield from kept_of(core.session, working_set.state)
    while True:
        found: list[Event] = yield SearchRequest(session=core.session, terms=tuple(terms), limit=asked)
        hidden = (yield from _hidden_facts(core, working_set, found, set())) if facts else ()
        said = [event for event in found if event.kind == "message"]
        oldest = min((event.version for event in said), default=working_set.version)
        gone = yield from gone_since(core.session, working_set.state, oldest)
        living = [
            event
            for event in found
            if kept.has(event) and (event.kind != "message" or event.version not in gone)
        ]
        new = [event for event in _unseen(working_set, living, terms, hidden, cut) if event.version > after]
        others = sum(event.kind == "fact" for event in found) + len(found) - len(living)
        if len(new) >= limit or len(found) < asked or not others:
            return Found(new[:limit], since=found.since if isinstance(found, Found) else None)
        asked *= 2  # facts that are not wanted, or what was popped or pruned, stood in front


def _unseen(
    working_set: WorkingSet,
    events: Iterable[Event],
    terms: Collection[str],
    facts: Collection[int],
    cut: Mapping[int, Dict] | None,
) -> Iterator[Event]:
    """List the messages among events that are not in view, or not where the terms are; and facts named."""
    seen = {version for unit in working_set.in_view() for version in unit.members}
    return (
        event
        for event in events
        if event.version in facts
        or (
            event.kind == "message"
            and (event.version not in seen or _is_cut_out(working_set.reader, event, terms, cut))
        )
    )


def _is_cut_out(
    reader: MessageReader, event: Event, terms: Collection[str], cut: Mapping[int, Dict] | None
) -> bool:
    """Tell whether a term occurs in the part that was cut from a message in view; see `_rank`."""
    fitted = None if cut is None else cut.get(event.version)
    shown = reader.clamp(event.message, event.id) if fitted is None else fitted
    if shown is event.message:
        return False
    said, seen = (
        Counter(term for term in text_terms(searchable_text(one)) if term in terms)
        for one in (event, _with_message(event, shown))
    )
    return not said.keys() <= seen.keys() if cut is None else bool(said - seen)


def _with_message(event: Event, message: Dict) -> Event:
    return replace(event, data={**event.data, "message": message})


def _hidden_facts(
    core: Core, working_set: WorkingSet, events: Iterable[Event], said: set[str]
) -> Steps[set[int]]:
    """Return which events are facts in force that are not in view; of those of one text the newest.

    `said` are texts that newer ones have; they are added to.
    """
    facts = [event for event in events if event.kind == "fact"]
    if not facts:
        return set()
    force = yield from facts_in_force(core.session, working_set.state, facts)
    shown = working_set.facts.known if working_set.facts is not None and working_set.shows_facts else ()
    said.update(fact_key(one.fact.text) for one in shown)
    hidden = set[int]()
    for event in sorted(facts, key=lambda event: event.version, reverse=True):
        key = fact_key(event.data.get("text", ""))
        if event.version in force and key not in said:
            said.add(key)
            hidden.add(event.version)
    return hidden


def _score(core: Core, query: str, events: Sequence[Event]) -> Steps[dict[int, float]]:
    """Ask the ranker for the score of messages, by version."""
    if not events:
        return {}
    message = core.in_force.wire_format.message
    messages = [
        message("user", [event.data["text"]]) if event.kind == "fact" else copy_plain(event.message)
        for event in events
    ]
    options = core.in_force
    if options.ranker is not None:
        core.announce("asked", of="recall", messages=len(messages))
    scores: list[float] = yield ask_scores(options.rank(query, messages), options.summary_timeout_seconds)
    return dict(zip((event.version for event in events), scores, strict=True))


def _top(scores: dict[int, float], events: Iterable[Event], limit: int) -> list[Event]:
    """List those with the best scores; of equal ones the newer come first."""
    return nlargest(limit, events, key=lambda event: (scores[event.version], event.version))


def recollect(core: Core, question: int, message: Dict) -> Steps[None]:
    """Find what the log has about a question that was just stored, and record it in one event.

    A question without a word to look for, "yes, do it", is about what the one before was about: what was
    recalled for that stays, and stays where it stands. The question is stored: if the store fails here, only
    the recall is lost.
    """
    if not core.in_force.recall_ratio:
        return
    query = "\n".join(slot.text for slot in core.in_force.wire_format.texts(message))
    terms = telling_terms(query)
    if not terms:
        return
    try:
        for _ in range(_ATTEMPTS):
            working_set = yield from core.ready()
            state = working_set.state
            if question < max(state.recollection, state.cleared):
                return  # another writer came, with a question of its own or an order to begin anew
            try:
                made = yield from _recollection(core, working_set, question, query, terms)
                if not (made.units or made.error or state.recollection):
                    return
                working_set.state = state.with_recollection(core.next_version(working_set))
                yield from core.write(working_set, "recalled", recalled_data(question, made))
            except VersionConflictError:
                continue
            except PrunedError:
                if (yield from core.again()).version == working_set.version:
                    raise
                continue  # another writer pruned meanwhile
            working_set.recollection = made
            working_set.truncate()
            return
    except (StoreUnavailableError, SessionDeletedError, PrunedError) as error:
        core.working_set = None
        warn(core.session, "nothing was recalled", error)


def telling_terms(text: str, /) -> tuple[str, ...]:
    """Return the terms of a message that say what it is about; none of "yes, do it" or "what is it?"."""
    telling = [term for term in question_terms(text) if term not in _ASSENTS and _tells(term)]
    half = _MOST_TERMS // 2
    return tuple(telling if len(telling) <= _MOST_TERMS else [*telling[:half], *telling[-half:]])


def _tells(term: str) -> bool:
    # Alone a word that most questions have is taken for one that counts; beside another it is not.
    return not {*question_terms(f"ok {term}")} <= _ASSENTS


def _recollection(
    core: Core, working_set: WorkingSet, question: int, query: str, terms: Sequence[str]
) -> Steps[Recollection]:
    """Find as much about a question as there is room for."""
    before = _place(working_set, question)
    share = working_set.recall_share if working_set.state.has_left else 0
    limit_tokens, error = share * _FILLED[0] // _FILLED[1], None
    events: list[Event] = []
    most = min(_MOST_FOUND, limit_tokens // _LEAST_TOKENS)
    if not most:
        return Recollection(before=before)
    after = working_set.state.cleared
    if core.ranker_failures.rests():
        error = core.ranker_failures.last
    else:
        try:
            events = yield from _rank(core, working_set, query, terms, limit=most, after=after)
            core.ranker_failures = RankerFailures()
        except PrunedError:
            raise  # it is no failure of the ranker's
        except (RankerError, ConfigurationError) as failure:
            error = core.ranker_failures.note(str(failure))
            core.announce("failed", of="recall", error=error)
            warn(core.session, "recalled by words", error)
    if error is not None:
        events = yield from _by_words(core, working_set, terms, limit=most, after=after)
    units = yield from _units(core, working_set, events, limit_tokens)
    reader = working_set.reader
    taken = choose(reader, units, limit_tokens)
    fitting = compose(reader, taken, limit_tokens)
    versions = () if fitting is None else fitting.versions
    taken = [unit for unit in taken if unit.members[0] in versions]
    return Recollection(before=before, units=tuple(taken), error=error)


def _place(working_set: WorkingSet, question: int) -> int:
    """Return the message before which recalled text is placed: the question, or a call that still waits.

    The result of a call directly follows it, even if the user writes before it comes.
    """
    waiting = {members[0] for members, _ in working_set.state.waiting}
    before = [unit for unit in working_set.in_view() if unit.first < question]
    last = max(before, key=lambda unit: max(unit.members), default=None)
    return question if last is None or last.first not in waiting else last.first


def _units(
    core: Core, working_set: WorkingSet, events: Sequence[Event], limit_tokens: int
) -> Steps[list[RecalledUnit]]:
    """Read the units that messages belong to, the best first, until they fill their room."""
    reader = working_set.reader
    seen, units, left = set(working_set.view()), list[RecalledUnit](), limit_tokens
    for event in events:
        first = event.data.get("joins", event.version)
        if first in seen or left <= 0:
            continue
        seen.add(first)
        members = yield from _members(core, working_set, event)
        if not any(one.data.get("redacted") for one in members):
            unit = RecalledUnit(
                tuple(one.version for one in members), unit_text(reader, members), origins_of(reader, members)
            )
            tokens = reader.tokens(reader.format.message("user", [unit.text]))
            if tokens <= limit_tokens:
                units.append(unit)
                left -= tokens
    return units


def _members(core: Core, working_set: WorkingSet, event: Event) -> Steps[list[Event]]:
    """Read the messages that belong together with one that was found: a call and its results."""
    first = event.data.get("joins", event.version)
    if first == event.version and not working_set.reader.read(event.message).calls:
        return [event]
    events: list[Event] = yield LoadRequest(
        session=core.session, after=first, before=working_set.version + 1, limit=_REACH
    )
    head = event if first == event.version else (yield from event_at(core.session, first))
    kept = yield from kept_of(core.session, working_set.state)
    if not kept.has(head):
        head = event
    gone = yield from gone_since(core.session, working_set.state, first)
    joined = (one for one in events if one.data.get("joins") == first and kept.has(one))
    whole = {one.version: one for one in joined if one.version not in gone}
    whole |= {head.version: head, event.version: event}
    return [whole[version] for version in sorted(whole)]
