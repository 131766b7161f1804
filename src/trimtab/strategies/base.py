"""A strategy, its request and its answer: `Strategy`, `EvictionRequest`, `EvictionResult`, `Edit`.

A strategy decides which units are evicted and which texts are cut. It is pure: it sees sizes only through its
request, which knows them or asks the counter.
"""

from __future__ import annotations

import reprlib
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast, runtime_checkable

from trimtab.conversation import History, Unit
from trimtab.conversation.assemble import Insertion, merge_edits
from trimtab.conversation.units import Span, unit_of
from trimtab.counting.base import AdditiveCounter
from trimtab.counting.shorten import Keep, shorten
from trimtab.counting.sizes import Sizes
from trimtab.errors import ConfigurationError
from trimtab.formats import Fault, Path, TextSlot, mapping_of
from trimtab.formats.handles import offers_reading
from trimtab.formats.refusal import new_fault
from trimtab.strategies.costs import Costs, Edits
from trimtab.strategies.cuts import ANY_RESULT, Cuts, Shrinks
from trimtab.strategies.openers import Openers, with_thinking
from trimtab.strategies.rows import Near, Rows, span_stays, unit_key

if TYPE_CHECKING:
    from trimtab.report import Reason

__all__ = [
    "Edit",
    "EvictionRequest",
    "EvictionResult",
    "Insertion",
    "Reads",
    "Strategy",
    "as_strategy",
    "strategy_data",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """New texts for one message; everything else in it is kept.

    Args:
        index: Position of the message in the conversation.
        texts: New text by the path of a `TextSlot`.
    """

    index: int
    texts: Mapping[Path, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictionResult:
    """What a strategy decided.

    New fields come with defaults, so old strategies keep working.

    Args:
        kept: Kept units, in the order of the request. With `cut`, those older than the cut.
        cut: Every unit that begins at this message or later is kept; pinned and held units are kept anyway.
        edits: Texts to replace in kept messages that are not pinned.
        fits: False: the strategy cannot do more. A Cascade then continues; otherwise BudgetExceededError is
            raised.
        actions: What was done, for the report; None: the strategy's name.
        reason: Why units were evicted, for the report.
        needed_tokens: If it does not fit: the smallest size of the request, if it is not that of this result.
        protected: First messages of kept units that later steps of a Cascade may shorten, but not evict.
        insertions: Messages to insert, ascending.
        notes: Further notes for the report, one sentence each; no text of messages.
        planned_cut: If it does not fit: the message at which a later step of a Cascade should cut, and no
            earlier, so both change the prompt at the same time; 0: the later step decides.
        cause: An error during the decision. If the result does not fit, the BudgetExceededError names it and
            is raised from it.
        cannot_lead: Messages that are evicted although they have room, because their opener has none.
    """

    kept: Sequence[Unit] = ()
    cut: int | None = None
    edits: Sequence[Edit] = ()
    fits: bool = True
    actions: tuple[str, ...] | None = None
    reason: Reason = "over_limit"
    needed_tokens: int | None = None
    protected: frozenset[int] = frozenset()
    insertions: Sequence[Insertion] = ()
    notes: tuple[str, ...] = ()
    planned_cut: int = 0
    cause: Exception | None = None
    cannot_lead: frozenset[int] = frozenset()


@runtime_checkable
class Strategy(Protocol):
    """Decides which units are evicted when a block does not fit.

    It is called if the block does not fit; it evicts no more than necessary and nothing pinned, and keeps the
    order, as `trimtab.testing` checks. After `fits=False` the newest unit is cut, unless `has_last_word =
    True`.

    It may make a promise that makes it fast for long histories; a subclass inherits the promise. `reads =
    "newest"`: the decision does not depend on units older than those that fit, except messages that
    `landmarks(history)` lists. Without a promise, `reads` is "all". `trimtab.testing.check_strategy` finds a
    wrong promise; at run time it costs a second question.
    """

    @property
    def name(self) -> str:
        """Name for reports and data; snake_case."""
        ...

    def evict(self, request: EvictionRequest, /) -> EvictionResult:
        """Choose what to keep so that `request.fits(...)`, or return `fits=False`.

        Args:
            request: The units, their costs, and the limit.
        """
        ...


def as_strategy(value: object, /) -> Strategy:
    """Return the argument if it can act as a strategy.

    Raises:
        ConfigurationError: It has no `evict` and `name`.
    """
    if isinstance(value, type) or not callable(getattr(value, "evict", None)):
        said = f"a strategy must be an object with evict(request) and name, not {_what(value)}"
        raise ConfigurationError(said, argument="strategy")
    name = getattr(value, "name", None)
    if not isinstance(name, str) or not name:
        said = "a strategy needs a name for reports, as in name = 'mine'"
        raise ConfigurationError(f"{said}; {reprlib.repr(value)} has {name!r}", argument="strategy")
    return cast("Strategy", value)


def _what(value: object) -> str:
    """Say what was passed as a strategy, and what to write instead."""
    if isinstance(value, type):
        return f"the class {value.__name__}: write {value.__name__}(...)"
    if isinstance(value, str):
        return f"its name: write create_strategy({value!r})"
    if isinstance(value, Mapping):
        return "its data: write create_strategy({...})"
    if isinstance(value, (list, tuple)):
        return f"a {type(value).__name__}: write Cascade(first, second, ...), the strategies one by one"
    return f"{type(value).__name__}, {reprlib.repr(value)}"


Reads = Literal["all", "newest"]
"""Which part of a conversation a strategy's decision depends on."""


class EvictionRequest(Rows):
    """What a strategy is asked: the units, their sizes, and the limit.

    The runner makes it. Everything is computed when it is read; nothing here changes the conversation.
    """

    __slots__ = (
        "_question",
        "additive",
        "block",
        "constant_limit_tokens",
        "costs",
        "edits",
        "insertions",
        "is_whole",
        "known_edits",
        "later",
        "led",
        "limit_tokens",
        "looked_over",
        "memory",
        "planned_cut",
        "protected",
        "sizes",
    )

    costs: Costs
    """Costs of messages and units after earlier steps, for strategies that add them up themselves."""
    sizes: Sizes
    """The sizes of the messages before the fit."""
    additive: bool
    """True if sizes add up; False for a counter that is a black box over a list."""
    limit_tokens: int
    """Maximum tokens of the kept messages together with `fixed_tokens`."""
    constant_limit_tokens: int
    """The limit that is the same for every call: the block's cap or the whole budget."""
    block: str
    """Name of the block; "history" in `fit`."""
    edits: Edits
    """Texts that earlier steps replaced, by message and path."""
    insertions: Sequence[Insertion]
    """Messages that earlier steps inserted; their tokens are among the fixed ones."""
    protected: frozenset[int]
    """First messages of units that count as kept here, in addition to pinned and held ones."""
    is_whole: bool
    """True as long as no earlier step evicted a unit."""
    led: bool
    """Whether an earlier block is sure to have a message that may come first: no opener is needed here."""
    planned_cut: int
    """Where an earlier step made room for the cut, which must not be earlier; 0: anywhere."""
    later: tuple[Strategy, ...]
    """Steps of a Cascade that follow if this one cannot make it fit."""
    memory: dict[Any, Any]
    """What a strategy remembers of this conversation for later steps, under its own keys."""
    looked_over: EvictionResult | None
    """The answer whose values the runner checked last."""
    known_edits: dict[int, Mapping[Path, str]]
    """Texts that the runner checked, by message; requests made from this one share them."""

    # Made by the runner and by `_with` only; a strategy is handed one object so that it may grow.
    def __init__(
        self,
        history: History,
        sizes: Sizes,
        *,
        limit_tokens: int,
        constant_limit_tokens: int | None = None,
        block: str = "history",
        alive: Sequence[Unit] | None = None,
        row: list[Span] | None = None,
        near: Near | None = None,
        reads_newest: bool = False,
        costs: Costs | None = None,
        protected: frozenset[int] = frozenset(),
        led: bool = False,
        planned_cut: int = 0,
        question: Callable[[], str] | None = None,
    ) -> None:
        super().__init__(history, alive=alive, row=row, near=near, reads_newest=reads_newest)
        self.costs = costs = Costs(history, sizes) if costs is None else costs
        self.sizes, self.edits, self.insertions = sizes, costs.edits, costs.insertions
        self.additive = sizes.additive
        self.limit_tokens = limit_tokens
        self.constant_limit_tokens = limit_tokens if constant_limit_tokens is None else constant_limit_tokens
        self.block, self.led, self.protected = block, led, protected
        self.is_whole, self.planned_cut, self.later = True, planned_cut, ()
        self.memory, self.known_edits, self.looked_over = {}, {}, None
        self._question = question

    # -- what there is

    @property
    def question(self) -> str:
        """The user's latest message, in whichever block it is; "" if there is none."""
        return latest_words(self.history) if self._question is None else self._question()

    @property
    def offers_reading(self) -> bool:
        """Whether the tools of the request include `read_result`."""
        return offers_reading(self.sizes.tools)

    @property
    def fixed_tokens(self) -> int:
        """Tokens outside the units.

        They are system text, tools, framing, and messages that earlier steps inserted. It is an upper limit:
        some counters charge tools differently if a request begins with system text, which `total` takes into
        account.
        """
        return self.costs.most_fixed_tokens()

    def messages(self, unit: Unit, /) -> list[dict[str, Any]]:
        """Return the unit's messages as read-only dicts, with edits.

        Args:
            unit: A unit of the request.
        """
        return [self.message(index) for index in unit.indices]

    def message(self, index: int, /) -> dict[str, Any]:
        """Return one message as a read-only dict, with edits.

        Args:
            index: Index of the message.
        """
        message: dict[str, Any] = self.history.message(index)
        if index in self.edits:
            message = mapping_of(self.history.format.with_texts(message, self.edits[index]))
        return message

    def stays(self, unit: Unit, /) -> bool:
        """Tell whether the unit may not be evicted.

        Args:
            unit: A unit of the request.
        """
        protected = self.protected
        return unit.state != "free" or (bool(protected) and unit.indices[0] in protected)

    # -- how large it is

    def count_each(self) -> None:
        """Count every message, which is faster in one pass than one by one."""
        if self.additive and self._alive is None and self._row is None:
            self._near = None
            self.sizes.walk(self.history, self.history.head, sys.maxsize)

    def size(self, unit: Unit, /) -> int:
        """Return the unit's tokens alone; a share if the counter is a black box.

        Args:
            unit: A unit of the request.
        """
        return self.costs.unit(unit, {})

    def total(
        self,
        units: Iterable[Unit],
        /,
        *,
        edits: Edits | None = None,
        insertions: Sequence[Insertion] = (),
    ) -> int:
        """Return the tokens of a request of these units and their opener.

        The result includes the fixed part.

        Args:
            units: Units of this request, in order; see `with_openers`.
            edits: Texts to replace, by message, in addition to those of earlier steps.
            insertions: Messages to insert, in addition to those of earlier steps.
        """
        return self.costs.total(self.with_openers(units, insertions), edits, insertions)

    def fits(
        self,
        units: Iterable[Unit],
        /,
        *,
        edits: Edits | None = None,
        insertions: Sequence[Insertion] = (),
    ) -> bool:
        """Tell whether a request of these units and their opener is within the limit.

        Args:
            units: Units to keep.
            edits: Texts to replace in their messages, by message and path.
            insertions: Messages to insert.
        """
        return self.total(units, edits=edits, insertions=insertions) <= self.limit_tokens

    @property
    def room_tokens(self) -> int:
        """Tokens of the limit minus what must be kept and the fixed part."""
        self._read_near()
        stay, there = [unit_of(span) for span in self.told if span_stays(self, span)], dict[int, set[int]]()
        return self.limit_tokens - self.fixed_tokens - sum(self.costs.unit(unit, there) for unit in stay)

    @property
    def cuts(self) -> Cuts:
        """The places for a cut, with the cost of each; built anew each time."""
        return Cuts(self)

    # -- what has to stand in front

    @property
    def openers(self) -> Openers | None:
        """The openers that units need; None if any unit may come first."""
        if self.led or not self.history.ordered:
            return None
        if self._made_openers is None:
            self._made_openers = Openers(self.history, self.told, lambda: self.told_units)
        return self._made_openers

    def opener(self, unit: Unit, /) -> Unit | None:
        """Return the unit that another unit needs before it.

        Some providers refuse a conversation that begins with the model. For those, it is the user message
        that opens the unit's turn, or otherwise the nearest earlier unit that may come first. None if the
        unit may come first itself; none is needed if kept units include one that may. The runner adds it to
        the units that a strategy keeps; `total` and `fits` count it.

        Args:
            unit: A unit of the request.
        """
        return None if self.openers is None else self.openers.of(unit)

    def with_openers(self, units: Iterable[Unit], /, insertions: Sequence[Insertion] = ()) -> Sequence[Unit]:
        """Return units, in order, with the opener of the first if it needs one.

        Units that must be kept need none: the opener of pinned and held units is held.

        Args:
            units: Units of this request, in order.
            insertions: Messages to insert, in addition to those of earlier steps: one of them may come first.
        """
        given: Sequence[Unit] = units if isinstance(units, (list, tuple)) else list(units)
        openers = self.openers
        if len(given) == len(self.told):
            return given
        put_in = (*self.insertions, *insertions)
        if self.history.last_turn is not None:
            given = with_thinking(self.history.last_turn, self.told, given, put_in)
        return given if openers is None else openers.complete(given, put_in, self.stays)

    # -- texts

    def texts(self, index: int, /) -> list[TextSlot]:
        """List the texts of a message that may be cut, as earlier steps made them.

        Their paths are those in the caller's own message; emptied texts are not listed.

        Args:
            index: Index of the message.
        """
        slots, edits = self.history.format.texts(self.history.message(index)), self.edits.get(index)
        if edits is None:
            return slots
        cut = [slot._replace(text=edits.get(slot.path, slot.text)) for slot in slots]
        return [now for now, was in zip(cut, slots, strict=True) if now.text or not was.text]

    def fault_with(self, index: int, texts: Mapping[Path, str], /) -> Fault | None:
        """Return what the provider would newly refuse with other texts; None if nothing.

        Args:
            index: Index of the message.
            texts: The new texts, by path.
        """
        edited, format = {**self.edits.get(index, {}), **texts}, self.history.format
        after = mapping_of(format.with_texts(self.history.message(index), edited))
        return new_fault(format, self.message(index), after)

    def shorten(self, text: str, limit_tokens: int, /, *, keep: Keep = "end") -> str | None:
        """Cut a text to a number of tokens, including a marker.

        It is the bare marker if only that fits; None if not even that does.

        Args:
            text: The text.
            limit_tokens: Maximum number of tokens, including the marker.
            keep: What to keep: the "start", the "end", or "both".
        """
        return shorten(text, limit_tokens, count=_text_counter(self), keep=keep)

    # -- the same request, asked otherwise

    def protecting(self, roles: Iterable[str], /) -> EvictionRequest:
        """Return the same request, with units of these roles kept.

        Args:
            roles: As "user".
        """
        wanted = frozenset(roles)
        if not wanted:
            return self
        found = {unit.first for unit in self.units if not wanted.isdisjoint(_roles(self, unit))}
        if self.openers is not None:
            staying = [unit for unit in self.units if self.stays(unit) or unit.first in found]
            found.update(unit.first for unit in self.with_openers(staying))
        return self.hold(found)

    def hold(self, firsts: Iterable[int], /) -> EvictionRequest:
        """Return the same request, with the units that begin at these messages kept.

        Args:
            firsts: Indices of their first messages.
        """
        protected = self.protected.union(firsts)
        if self.is_near and not protected.issubset({span[0] for span in self.told}):
            self._tell_all()
        return self._with(protected=protected)

    def within(self, limit_tokens: int, /) -> EvictionRequest:
        """Return the same request with another limit.

        Args:
            limit_tokens: The limit.
        """
        return self._with(limit_tokens=limit_tokens)

    def after(self, result: EvictionResult, /) -> EvictionRequest:
        """Return the request for the next step, after a result is carried out.

        It is this request if nothing was done.

        Args:
            result: The answer of the step before.
        """
        row, protected = self.told, self.protected | result.protected
        stays = result.cut is not None and not result.insertions and bool(row) and result.cut <= row[0][0]
        if stays and not (result.edits or result.protected) and result.planned_cut == self.planned_cut:
            return self
        edits = merge_edits(self.edits, ((edit.index, edit.texts) for edit in result.edits))
        if stays:
            costs = self.costs.after(edits, self.insertions)
            return self._with(costs=costs, protected=protected, planned_cut=result.planned_cut)
        kept = self.with_openers(kept_units(self, result), result.insertions)
        present = set(chain.from_iterable([unit.indices for unit in kept]))
        edits = {index: texts for index, texts in edits.items() if index in present}
        costs = self.costs.after(edits, (*self.insertions, *result.insertions))
        return self._with(alive=kept, costs=costs, protected=protected, planned_cut=result.planned_cut)

    def _with(
        self,
        *,
        limit_tokens: int | None = None,
        alive: Sequence[Unit] | None = None,
        costs: Costs | None = None,
        protected: frozenset[int] | None = None,
        planned_cut: int | None = None,
    ) -> EvictionRequest:
        row = self.told if self.reads_newest else self._row
        made = EvictionRequest(
            self.history,
            self.sizes,
            limit_tokens=self.limit_tokens if limit_tokens is None else limit_tokens,
            constant_limit_tokens=self.constant_limit_tokens,
            block=self.block,
            alive=self._alive if alive is None else alive,
            row=row if alive is None else None,
            reads_newest=self.reads_newest,
            costs=self.costs if costs is None else costs,
            protected=self.protected if protected is None else protected,
            led=self.led,
            question=self._question,
            planned_cut=self.planned_cut if planned_cut is None else planned_cut,
        )
        made.later, made.memory, made.known_edits = self.later, self.memory, self.known_edits
        made._origin, made._is_apart = self, self._is_apart
        if alive is None and limit_tokens is None:
            made.oldest_cut = self.oldest_cut  # what steps make smaller was reckoned with (`cuts.shrinks`)
        same = alive is None or len(alive) == len(self.told)
        made.is_whole = self.is_whole and same
        # Of what a strategy without a promise kept, what is older than that is gone.
        made.is_near = self.is_near and same and (alive is None or self.reads_newest)
        return made


def _roles(request: EvictionRequest, unit: Unit) -> set[str]:
    """List the roles of a unit's messages, as the caller wrote them and by their kinds."""
    roles = {str(request.history.kind(index)) for index in unit.indices}
    return roles | {str(request.message(index).get("role")) for index in unit.indices}


def _text_counter(request: EvictionRequest) -> Callable[[str], int]:
    """Return a function that counts a text; for a black box, as a message with it less an empty one."""
    sizes, message = request.sizes, request.history.format.message
    if isinstance(sizes.counter, AdditiveCounter):
        return sizes.counter.count_text
    empty = sizes.message(message("user", [""]))
    return lambda text: max(0, sizes.message(message("user", [text])) - empty)


def latest_words(history: History, /) -> str:
    """Return the text of the user's latest message; "" if there is none."""
    at = history.latest_user
    if at is None:
        return ""
    return history.format.full_text(history.message(at))


def kept_units(request: EvictionRequest, result: EvictionResult) -> list[Unit]:
    """List the units a result keeps, in order."""
    if result.cut is None:
        return list(result.kept)
    also = set(map(unit_key, result.kept))
    cut = result.cut
    return [u for u in request.told_units if u.first >= cut or unit_key(u) in also or request.stays(u)]


def strategy_data(strategy: Strategy, /) -> dict[str, Any]:
    """Return a strategy as data that `create_strategy` reads.

    Args:
        strategy: A strategy of trimtab, or one with `to_dict()`.

    Raises:
        ConfigurationError: Its class has no `to_dict`, or it uses a function without a name.
    """
    write = getattr(strategy, "to_dict", None)
    if write is None:
        raise ConfigurationError(
            f"{strategy!r} cannot be written as data: it has no to_dict; name it in names= instead"
        )
    data: dict[str, Any] = write()
    return data


# What a strategy says of itself beside its name: promises, which make it quick, and what it needs.


def reads_newest(strategy: object, history: History | None = None, /) -> bool:
    """Tell whether a strategy promises that units older than those that fit have no influence.

    It says so by `reads`; one for which that depends on the conversation by `reads_in` as well.

    Args:
        strategy: The strategy.
        history: The conversation; None: whether it is so of any.
    """
    reads_in = None if history is None else getattr(strategy, "reads_in", None)
    return bool((getattr(strategy, "reads", "all") if reads_in is None else reads_in(history)) == "newest")


def landmarks(strategy: object, history: History, /) -> Collection[int]:
    """List messages of any age that a strategy depends on although it reads the newest."""
    find: Any = getattr(strategy, "landmarks", None)
    found: Collection[int] = () if find is None else find(history)
    return found


def clears_results(strategy: object, /) -> bool:
    """Tell whether a strategy makes results smaller if necessary, and evicts nothing."""
    return bool(getattr(strategy, "clears_results", False))


def shrinks(strategy: object, history: History, sizes: Sizes, /, *, limit_tokens: int) -> Shrinks | None:
    """Tell what a strategy may make smaller; None if nothing. If it does not say: each result.

    Args:
        strategy: The strategy.
        history: The conversation.
        sizes: The sizes of its messages.
        limit_tokens: The limit that is the same from call to call.
    """
    tell: Any = getattr(strategy, "shrinks", None)
    if tell is None:
        return ANY_RESULT if clears_results(strategy) else None
    found: Shrinks | None = tell(history, sizes, limit_tokens=limit_tokens)
    return found


def has_last_word(strategy: object, /) -> bool:
    """Tell whether nothing is to be tried behind a strategy: not even the newest unit is cut."""
    return bool(getattr(strategy, "has_last_word", False))


def asks_model(strategy: object, /) -> bool:
    """Tell whether a strategy may call a model or a function of the caller, which is called once."""
    return bool(getattr(strategy, "asks_model", False))


def follows_plan(strategy: object, /) -> bool:
    """Tell whether a strategy cuts at `planned_cut` if that fits."""
    return bool(getattr(strategy, "follows_plan", False))


def protect_roles(strategy: object, /) -> Collection[str]:
    """List the roles whose messages a strategy never evicts."""
    roles: Collection[str] = getattr(strategy, "protect_roles", ())
    return roles


def waits(strategy: object, /) -> bool:
    """Tell whether a strategy may need something from outside, so its generator `evicting` is called."""
    return hasattr(strategy, "evicting") and bool(getattr(strategy, "asks_model", True))
