"""Rules that were found in messages: which of them hold, and which a view restates.

A rule is in the event of the message that says it, so that it is written, popped, redacted, copied and
forked with that message. Each event that changes which rules hold has a register of all of them, as ids of
such events: to open a session takes two requests, whatever the length of its log.

Nothing here is remembered of a view. A rule is restated once the message that said it first is out of view,
so that the block of rules changes where messages leave, and not where a rule is said.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from trimtab.errors import CorruptSessionError
from trimtab.formats import Dict
from trimtab.formats.origin import own_texts
from trimtab.session.effects import Steps
from trimtab.session.messages import MessageReader
from trimtab.session.rule_record import RulePlace
from trimtab.stores import Event, LoadRequest

if TYPE_CHECKING:  # the finder is loaded by who finds a rule
    from trimtab.rules import Rule

MOST_RULES = 128
"""Rules of a register; those of the lowest rank beyond it are counted as hidden."""

MOST_LISTED = 16
"""Orders of a register that no view restates, and replaced rules: the newest of each; older ones are
forgotten."""

MOST_SAYINGS = 4
"""Messages of a register that say one rule: the first, and the newest others."""


class Saying(NamedTuple):
    """A rule in an event."""

    id: str
    """Of the event."""
    at: int
    """Its place among the rules of the event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownRule:
    """A rule that was found and not dropped."""

    id: str
    rule: Rule
    source: str
    """Id of the message that says it: the first that still does."""
    version: int
    """Of that message; 0: it is not in the log."""
    sayings: tuple[Saying, ...]
    """The first, and the newest others."""
    others: tuple[int, ...] = ()
    """Versions of the messages of the others."""
    times: int = 1
    superseded_by: str | None = None
    """Id of the rule that replaces it."""

    @property
    def key(self) -> str:
        """What all wordings of it have in common."""
        return rule_key(self.rule.text)

    def to_data(self) -> dict[str, Any]:
        """Write it for a register; the words stay in the events of the sayings."""
        data: dict[str, Any] = {"said": [list(saying) for saying in self.sayings]}
        if self.id != _id_of(self.sayings[0]):
            data["id"] = self.id
        if self.times != len(self.sayings):
            data["times"] = self.times
        if self.superseded_by is not None:
            data["by"] = self.superseded_by
        return data

    def holds(self, *, orders: bool) -> bool:
        """Tell whether it is in force: nothing replaces it, and a view may restate it."""
        return self.superseded_by is None and self.may_show(orders=orders, out=self.times)

    def may_show(self, *, orders: bool, out: int) -> bool:
        """Tell whether a view restates it, if `out` of the messages that say it are not in it."""
        return self.rule.standing or orders or out > 1


def _id_of(saying: Saying) -> str:
    return f"{saying.id}:{saying.at}"


def rule_key(text: str, /) -> str:
    """Return what two wordings of one rule have in common."""
    return " ".join(text.casefold().split()).rstrip(".!。！ ")


@dataclass(frozen=True, slots=True)
class RuleBook:
    """The rules that were found, in the order they were said."""

    known: tuple[KnownRule, ...] = ()
    unlisted: int = 0
    """Rules that hold and have no place in a register."""

    def to_data(self) -> dict[str, Any]:
        """Write it as what an event has of it."""
        data: dict[str, Any] = {"register": [one.to_data() for one in self.known]}
        return data | ({"unlisted": self.unlisted} if self.unlisted else {})

    def with_found(self, found: Sequence[Rule], message: str, version: int) -> RuleBook:
        """Add the rules of a message: those known are said again, and some replace others."""
        from trimtab.rules import supersedes  # not above: only who finds a rule needs it

        known = list(self.known)
        for at, rule in enumerate(found):
            saying, key = Saying(message, at), rule_key(rule.text)
            same = next((one for one in known if one.key == key and one.superseded_by is None), None)
            if same is not None:
                if same.source != message and version not in same.others:
                    known[known.index(same)] = _again(same, saying, version)
                continue
            new = KnownRule(id=_id_of(saying), rule=rule, source=message, version=version, sayings=(saying,))
            known = [
                replace(one, superseded_by=new.id)
                if one.superseded_by is None and supersedes(rule, one.rule)
                else one
                for one in known
            ]
            known.append(new)
        return replace(self, known=tuple(known))

    def within_limits(self, shows: Callable[[str], bool], *, orders: bool) -> RuleBook:
        """Forget what a register has no place for.

        Args:
            shows: Tells of an id whether a message in view says that rule.
            orders: Whether orders are restated, too.
        """
        listed, replaced, held = list[KnownRule](), list[KnownRule](), list[KnownRule]()
        for one in self.known:
            if one.superseded_by is not None and not shows(one.superseded_by):
                replaced.append(one)
            else:
                (held if one.may_show(orders=orders, out=one.times) else listed).append(one)
        held.sort(key=lambda one: _rank(one, one.times))
        kept = {one.id for one in (*held[:MOST_RULES], *listed[-MOST_LISTED:], *replaced[-MOST_LISTED:])}
        beyond = sum(one.holds(orders=orders) for one in held[MOST_RULES:])
        return RuleBook(tuple(one for one in self.known if one.id in kept), self.unlisted + beyond)

    def without_message(self, message: str, version: int, data: Mapping[str, Any]) -> RuleBook:
        """Return it as if the newest message had not been said; `data` is that of its event."""
        # What was said more often than this log has, in messages that are not in it, still holds.
        gone = {
            one.id: one.superseded_by
            for one in self.known
            if one.source == message and one.times <= len(one.sayings)
        }
        # A rule whose first message was redacted replaced others when that was said, and not by this one.
        begun = {one: by for one, by in gone.items() if one.rpartition(":")[0] == message}
        newest = {one.key: one.id for one in self.known}
        said = {newest.get(rule_key(one["text"])) for one in data.get("rules", ())}

        def before(one: KnownRule) -> KnownRule:
            if version in one.others:
                at = one.others.index(version)
                sayings = tuple(saying for saying in one.sayings if saying.id != message)
                others = one.others[:at] + one.others[at + 1 :]
                one = replace(one, sayings=sayings, others=others, times=one.times - 1)
            elif one.id in said and one.times > len(one.sayings):
                one = replace(one, times=one.times - 1)
            while (by := one.superseded_by) is not None and by in begun:
                # In a log without some of its messages it may not be the newest: what replaced it, stays.
                one = replace(one, superseded_by=begun[by])
            return one

        known = tuple(before(one) for one in self.known if one.id not in gone)
        return RuleBook(known, max(0, self.unlisted - data.get("beyond", 0)))

    def without(self, rule_id: str) -> RuleBook:
        """Drop a rule; what it replaced does not come back."""
        return replace(
            self,
            known=tuple(one for one in self.known if one.id != rule_id and one.superseded_by != rule_id),
        )

    def beside(self, rules: Iterable[str]) -> RuleBook:
        """Return it without these rules of the host, which a view shows anyway."""
        keys = set(map(rule_key, rules))
        return replace(self, known=tuple(one for one in self.known if one.key not in keys))


def _again(known: KnownRule, saying: Saying, version: int) -> KnownRule:
    first, *others = known.sayings
    kept = [*others, saying][1 - MOST_SAYINGS :]
    versions = (*known.others, version)[1 - MOST_SAYINGS :]
    return replace(known, sayings=(first, *kept), others=versions, times=known.times + 1)


def _rank(known: KnownRule, times: int) -> tuple[int, int]:
    """Return what a rule is ranked by: the lowest comes first, and of equal ones the oldest."""
    return -known.rule.strength, -times


# -- in the log


def rule_data(rule: Rule, /) -> dict[str, Any]:
    """Write a rule for the event of its message; what most have the same is left out."""
    defaults = {one.name: one.default for one in fields(rule)}
    data = {name: value for name, value in asdict(rule).items() if value != defaults[name]}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in data.items()}


def rule_in(data: Mapping[str, Any], /) -> Rule:
    """Read a rule of an event."""
    from trimtab.rules import Rule  # not above: only a session with rules needs it

    return Rule(
        text=data["text"],
        start=data["start"],
        kind=data["kind"],
        strength=data["strength"],
        language=data["language"],
        topic=tuple(data.get("topic", ())),
        values=tuple(data.get("values", ())),
        forbids=data.get("forbids", False),
        adds=data.get("adds", False),
    )


def read_rules(session: str, version: int, reader: MessageReader) -> Steps[RuleBook]:
    """Read the register of an event, and the rules in it that their messages still say.

    Those of a redacted message are not among them, nor what was put into the event of a message that does not
    say it.

    Complexity: two requests.
    """
    if not version:
        return RuleBook()
    found: list[Event] = yield LoadRequest(session=session, after=version - 1, before=version + 1)
    if not found or "register" not in found[0].data:
        raise CorruptSessionError(
            f"session {session!r}: there is no register of rules at event {version}",
            session=session,
            version=version,
        )
    register = found[0].data["register"]
    ids = dict.fromkeys(one for entry in register for one, _ in entry["said"])
    events: list[Event] = (yield LoadRequest(session=session, ids=tuple(ids))) if ids else []
    by_id = {event.id: event for event in events}
    known = (_known_rule(entry, by_id, reader) for entry in register)
    return RuleBook(tuple(filter(None, known)), found[0].data.get("unlisted", 0))


def _known_rule(
    entry: Mapping[str, Any], by_id: Mapping[str, Event], reader: MessageReader
) -> KnownRule | None:
    """Read a rule from the first of its sayings that still has its words; None if none has."""
    sayings = tuple(Saying(*one) for one in entry["said"])
    there = [(one, by_id[one.id]) for one in sayings if one.id in by_id]
    told = [
        (one, event, event.data["rules"][one.at])
        for one, event in there
        if one.at < len(event.data.get("rules", ()))
    ]
    told = [row for row in told if _has_words(row[1], row[2]["text"], reader)]
    if not told:
        return None
    _, event, data = told[0]
    of_message = event.kind == "message"
    return KnownRule(
        id=entry.get("id", _id_of(sayings[0])),
        rule=rule_in(data),
        source=event.id if of_message else data["source"],
        version=event.version if of_message else 0,
        sayings=tuple(saying for saying, _, _ in told),
        others=tuple(other.version for _, other, _ in told[1:]),
        times=entry.get("times", len(sayings)) - (len(sayings) - len(told)),
        superseded_by=entry.get("by"),
    )


def _has_words(event: Event, text: str, reader: MessageReader) -> bool:
    """Tell whether the event of a message has a rule in words of a user or operator."""
    if event.kind != "message":
        return event.kind == "rules"
    return any(text in said for said, _ in texts_with_rules(reader, event.data))


def texts_with_rules(reader: MessageReader, data: Mapping[str, Any], /) -> list[tuple[str, str]]:
    """List the texts of a message that may hold rules, each with the role of who wrote it.

    Only what a user or operator wrote: no result of a tool, no document, no words of the model, and nothing
    the host lowered.

    Args:
        reader: Of the session.
        data: What the log has of the message.
    """
    message, origins = data["message"], reader.origins(data)
    kind = reader.format.kind(message)
    role = "system" if kind == "system" and "system" in origins else "user"
    if kind not in ("system", "user") or role not in origins:
        return []
    return [(text, role) for text in own_texts(reader.format.texts(message), origins)]


def events_of_rules(
    book: RuleBook, messages: Collection[str], make: Callable[[Mapping[str, Any]], Event]
) -> list[Event]:
    """Make the events of a log that has only some messages: of each rule of another one, and the register.

    Args:
        book: The rules that were found.
        messages: Ids of the messages of that log.
        make: Makes an event of its data.
    """
    made, known = list[Event](), list[KnownRule]()
    for one in book.known:
        sayings = tuple(saying for saying in one.sayings if saying.id in messages)
        if one.source not in messages:
            made.append(make({"rules": [{**rule_data(one.rule), "source": one.source}]}))
            sayings = (Saying(made[-1].id, 0), *sayings)
        known.append(replace(one, sayings=sayings))
    made.append(make(RuleBook(tuple(known), book.unlisted).to_data()))
    return made


# -- in a view


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleBlock:
    """The rules that a view restates."""

    known: tuple[KnownRule, ...]
    """In the order said."""
    message: Dict
    tokens: int


class RuleSizes:
    """The sizes of rules as lines of a block, each counted once."""

    def __init__(self, reader: MessageReader) -> None:
        self._reader = reader
        self._sizes: dict[str, int] = {}
        self._frame: int | None = None

    @property
    def frame(self) -> int:
        """Tokens of a block without rules."""
        if self._frame is None:
            self._frame = self._reader.tokens(self._reader.found_rules_message([]))
        return self._frame

    def of(self, known: KnownRule) -> int:
        """Return what a rule adds to a block."""
        if known.id not in self._sizes:
            block = self._reader.found_rules_message([known.rule.text])
            self._sizes[known.id] = self._reader.tokens(block) - self.frame
        return self._sizes[known.id]

    def most(self, book: RuleBook, cap: int, *, orders: bool) -> int:
        """Return what a block takes once no message in view says a rule; 0 if it has none, or no room."""
        by_id = {one.id: one for one in book.known}
        sizes: dict[str, int] = {}
        for one in book.known:
            if one.may_show(orders=orders, out=one.times):
                last = one  # of rules that replace each other a view restates one
                while last.superseded_by in by_id:
                    last = by_id[last.superseded_by]
                sizes[last.id] = max(self.of(one), sizes.get(last.id, 0))
        # A token more for each: sizes of parts do not quite add up, and the last rule is not to go for that.
        whole = min(cap, self.frame + sum(sizes.values()) + len(sizes))
        return whole if sizes and whole > self.frame else 0

    def block(self, candidates: Iterable[tuple[KnownRule, int]], room: int) -> RuleBlock | None:
        """Take the best of rules that fit, each whole or not at all; None if none does.

        Args:
            candidates: Each with how many of the messages that say it are out of view, in the order said.
            room: What the block may take.
        """
        listed, unused = list(candidates), room - self.frame
        taken = list[KnownRule]()
        for one, _ in sorted(listed, key=lambda row: _rank(*row)):
            if self.of(one) <= unused:
                taken.append(one)
                unused -= self.of(one)
        while taken:  # sizes do not quite add up
            in_order = [one for one, _ in listed if one in taken]
            message = self._reader.found_rules_message([one.rule.text for one in in_order])
            tokens = self._reader.tokens(message)
            if tokens <= room:
                return RuleBlock(known=tuple(in_order), message=message, tokens=tokens)
            taken.pop()
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleView:
    """Where the rules are at one moment."""

    block: RuleBlock | None = None
    in_view: frozenset[str] = frozenset()
    """Ids of those that a message in view says."""
    candidates: frozenset[str] = frozenset()
    """Ids of those that a view restates as soon as none of these messages is in view, and room is there."""

    def place(self, known: KnownRule, *, is_whole: bool = True) -> RulePlace:
        """Say where a rule is; `is_whole`: no message in view is shortened."""
        if known.superseded_by is not None:
            return "superseded"
        if self.block is not None and any(one.id == known.id for one in self.block.known):
            return "shown"
        if known.id in self.in_view and is_whole:
            return "in view"
        return "hidden" if known.id in self.candidates else "listed"


def look_at(
    book: RuleBook,
    sizes: RuleSizes,
    says: Callable[[int, str], bool],
    *,
    orders: bool,
    room: int,
) -> RuleView:
    """Find out where the rules are.

    Args:
        book: Those that were found.
        sizes: What each takes.
        says: Tells whether the message of a version is in view and has a text, word for word.
        orders: Whether orders are restated, too.
        room: What the block may take.
    """
    first = {one.id for one in book.known if one.version and says(one.version, one.rule.text)}
    rows, in_view, candidates = list[tuple[KnownRule, int]](), set(first), set[str]()
    for one in book.known:
        seen = sum(says(version, one.rule.text) for version in one.others)
        if seen:
            in_view.add(one.id)
        out = one.times - seen - (one.id in first)
        if not one.may_show(orders=orders, out=one.times):
            continue
        candidates.add(one.id)
        # What replaces a rule counts once it is restated itself: until then, its message says so.
        replaced = one.superseded_by is not None and one.superseded_by not in first
        if one.id not in first and not replaced and one.may_show(orders=orders, out=out):
            rows.append((one, out))
    return RuleView(
        block=sizes.block(rows, room) if rows else None,
        in_view=frozenset(in_view),
        candidates=frozenset(candidates),
    )
