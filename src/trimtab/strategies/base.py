"""What a strategy is asked and answers: `Strategy`, `EvictionRequest`, `EvictionResult`, `Edit`.

A strategy decides which units leave and which texts are cut. It is pure: it sees sizes through its
request only, which answers them from what is known or from the counter.
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
    """New texts for one message; everything else in it stays.

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
        kept: Units that stay, in the order of the request. With `cut`, those older than it.
        cut: Every unit that begins at this message or later stays; pinned and held ones do anyway.
        edits: Texts to replace in kept, not pinned, messages.
        fits: False: this is all I can do. A Cascade goes on, otherwise BudgetExceededError is raised.
        actions: What was done, for the report; None: the strategy's name.
        reason: Why what was evicted had to leave, for the report.
        needed_tokens: When it does not fit: the size of the request at its least, if not this result's.
        protected: First messages of kept units that later steps of a Cascade may shorten, but not evict.
        insertions: Messages to put in, ascending.
        notes: What else the report should say, a sentence each; no text of messages.
        planned_cut: When it does not fit: the message at which a later step of a Cascade is to cut, and no
            earlier, so that both change the prompt at one moment; 0: that step says it.
        cause: What failed on the way. Where it does not fit, the error says so and is raised from it.
        cannot_lead: Messages that leave though they have room: there is none for what must stand in front.
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
    """Decides which units leave when a block does not fit.

    Asked when it does not fit; takes no more than it must, nothing pinned, and keeps order, as
    `trimtab.testing` checks. After `fits=False` the newest is cut, unless `has_last_word = True`.

    It may promise what makes it quick in long histories; a subclass inherits that. `reads = "newest"`: units
    older than those that fit have no say, beside messages that `landmarks(history)` lists. Without it `reads`
    is "all". A wrong promise is found by `trimtab.testing.check_strategy`, and costs a second question.
    """

    @property
    def name(self) -> str:
        """Word for reports and data; snake_case."""
        ...

    def evict(self, request: EvictionRequest, /) -> EvictionResult:
        """Choose what stays so that `request.fits(...)`, or answer `fits=False`.

        Args:
            request: What there is, what it costs, and the limit.
        """
        ...


def as_strategy(value: object, /) -> Strategy:
    """Return what was given as a strategy, if it can act as one.

    Raises:
        ConfigurationError: It has no `evict` and `name`.
    """
    if isinstance(value, type) or not callable(getattr(value, "evict", None)):
        said = f"a strategy is an object with evict(request) and name, not {_what(value)}"
        raise ConfigurationError(said, argument="strategy")
    name = getattr(value, "name", None)
    if not isinstance(name, str) or not name:
        said = "a strategy has a word for reports under name, as in name = 'mine'"
        raise ConfigurationError(f"{said}; {reprlib.repr(value)} has {name!r}", argument="strategy")
    return cast("Strategy", value)


def _what(value: object) -> str:
    """Say what was given for a strategy, and what to write."""
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
"""What of a conversation has a say in what a strategy decides."""


class EvictionRequest(Rows):
    """What a strategy is asked.

    It holds the units, how large they are, and the limit they must keep to. Made by the runner.
    Everything is answered lazily; nothing here changes anything.
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
    """What messages and units cost as earlier steps made them, for who adds them up by himself."""
    sizes: Sizes
    """The sizes of the messages as they came in."""
    additive: bool
    """True if sizes add up; False for a counter that is a black box over a list."""
    limit_tokens: int
    """Most tokens that what stays, with `fixed_tokens`, may come to."""
    constant_limit_tokens: int
    """The limit that is the same from call to call: the block's cap or the whole budget."""
    block: str
    """Name of the block; "history" in `fit`."""
    edits: Edits
    """Texts that earlier steps replaced, by message and path."""
    insertions: Sequence[Insertion]
    """Messages that earlier steps put in; their tokens are among the fixed ones."""
    protected: frozenset[int]
    """First messages of units this request treats as staying, beside pinned and held ones."""
    is_whole: bool
    """True as long as no earlier step let go of any unit."""
    led: bool
    """Whether a block in front surely has something that may come first: nothing here needs an opener."""
    planned_cut: int
    """Where a step before wants the cut, which it has made room for, and no earlier; 0: nowhere."""
    later: tuple[Strategy, ...]
    """Steps of a Cascade that go on where the one that is asked does not make it fit."""
    memory: dict[Any, Any]
    """What a strategy remembers of this conversation for the steps behind it, under keys of its own."""
    looked_over: EvictionResult | None
    """The answer of which the runner looked over the values last."""
    known_edits: dict[int, Mapping[Path, str]]
    """Texts that the runner looked over, by message; the requests made of this one have the same."""

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
        """What the user wrote last, in whatever block it stands; "" if nothing."""
        return latest_words(self.history) if self._question is None else self._question()

    @property
    def fixed_tokens(self) -> int:
        """Tokens beside the units.

        System text, tools, framing, and what earlier steps put in. It is the most they may come to: some
        counters charge tools differently where a request begins with system text, as `total` knows.
        """
        return self.costs.most_fixed_tokens()

    def messages(self, unit: Unit, /) -> list[dict[str, Any]]:
        """Return the unit's messages as dicts, to be read only; edited ones as edited.

        Args:
            unit: A unit of the request.
        """
        return [self.message(index) for index in unit.indices]

    def message(self, index: int, /) -> dict[str, Any]:
        """Return one message as a dict, to be read only; as edited if it was.

        Args:
            index: Of the message.
        """
        message: dict[str, Any] = self.history.message(index)
        if index in self.edits:
            message = mapping_of(self.history.format.with_texts(message, self.edits[index]))
        return message

    def stays(self, unit: Unit, /) -> bool:
        """Tell whether the unit may not leave.

        Args:
            unit: A unit of the request.
        """
        protected = self.protected
        return unit.state != "free" or (bool(protected) and unit.indices[0] in protected)

    # -- how large it is

    def count_each(self) -> None:
        """Count every message, which takes less time in one go than one by one."""
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

        The fixed part is among them.

        Args:
            units: Units of this request, in order; see `with_openers`.
            edits: Texts to replace, by message, on top of those of earlier steps.
            insertions: Messages to put in, beside those of earlier steps.
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
        """Tell whether a request of these units and their opener keeps to the limit.

        Args:
            units: What would stay.
            edits: Texts of their messages that would be replaced, by message and path.
            insertions: Messages that would be put in.
        """
        return self.total(units, edits=edits, insertions=insertions) <= self.limit_tokens

    @property
    def room_tokens(self) -> int:
        """Tokens that remain beside what must stay and what is fixed."""
        self._read_near()
        stay, there = [unit_of(span) for span in self.told if span_stays(self, span)], dict[int, set[int]]()
        return self.limit_tokens - self.fixed_tokens - sum(self.costs.unit(unit, there) for unit in stay)

    @property
    def cuts(self) -> Cuts:
        """The places where it may be cut, with what each costs; made anew each time."""
        return Cuts(self)

    # -- what has to stand in front

    @property
    def openers(self) -> Openers | None:
        """What units need in front of them; None where any may come first."""
        if self.led or not self.history.ordered:
            return None
        if self._made_openers is None:
            self._made_openers = Openers(self.history, self.told, lambda: self.told_units)
        return self._made_openers

    def opener(self, unit: Unit, /) -> Unit | None:
        """Return the one unit that another needs in front of it.

        Some providers refuse a conversation that begins with the model. There it is the user message that
        opens the unit's turn, or else the nearest unit before it that may come first. None if the unit may
        come first itself, and none is needed where others that may come first stay. The runner puts it to
        what a strategy keeps; `total` and `fits` count it.

        Args:
            unit: A unit of the request.
        """
        return None if self.openers is None else self.openers.of(unit)

    def with_openers(self, units: Iterable[Unit], /, insertions: Sequence[Insertion] = ()) -> Sequence[Unit]:
        """Return units, in order, with the opener of the first if that may not come first.

        What must stay does so without one, too: the opener of what is pinned or held is held.

        Args:
            units: Units of this request, in order.
            insertions: Messages to put in, beside those of earlier steps: one of them may come first.
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

        Their places are those in the caller's own message, and what has no text then is not among them.

        Args:
            index: Of the message.
        """
        slots, edits = self.history.format.texts(self.history.message(index)), self.edits.get(index)
        if edits is None:
            return slots
        cut = [slot._replace(text=edits.get(slot.path, slot.text)) for slot in slots]
        return [now for now, was in zip(cut, slots, strict=True) if now.text or not was.text]

    def fault_with(self, index: int, texts: Mapping[Path, str], /) -> Fault | None:
        """Return what the provider would newly refuse with other texts; None if nothing.

        Args:
            index: Of the message.
            texts: The new texts, by path.
        """
        edited, format = {**self.edits.get(index, {}), **texts}, self.history.format
        after = mapping_of(format.with_texts(self.history.message(index), edited))
        return new_fault(format, self.message(index), after)

    def shorten(self, text: str, limit_tokens: int, /, *, keep: Keep = "end") -> str | None:
        """Cut a text to a number of tokens, with a marker that is counted.

        The bare marker if only that fits; None if not even that does.

        Args:
            text: The text.
            limit_tokens: Most tokens it may have, the marker included.
            keep: What stays: its "start", its "end", or "both".
        """
        return shorten(text, limit_tokens, count=_text_counter(self), keep=keep)

    # -- the same request, asked otherwise

    def protecting(self, roles: Iterable[str], /) -> EvictionRequest:
        """Return the same request in which units with a message of these roles stay.

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
        """Return the same request in which units that begin at these messages stay.

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
        """Return the request that remains once a result is carried out, for the next step.

        It is this one if nothing was done.

        Args:
            result: What the step before answered.
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
    """Return what counts a text; a black box is asked what a message with it costs more than an empty one."""
    sizes, message = request.sizes, request.history.format.message
    if isinstance(sizes.counter, AdditiveCounter):
        return sizes.counter.count_text
    empty = sizes.message(message("user", [""]))
    return lambda text: max(0, sizes.message(message("user", [text])) - empty)


def latest_words(history: History, /) -> str:
    """Return what the latest message of the user says; "" if there is none."""
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
    """Write a strategy as data that `create_strategy` reads.

    Args:
        strategy: A strategy of trimtab's, or one with `to_dict()`.

    Raises:
        ConfigurationError: It is of a class without `to_dict`, or uses a function without a name.
    """
    write = getattr(strategy, "to_dict", None)
    if write is None:
        raise ConfigurationError(
            f"{strategy!r} cannot be written as data: it has no to_dict; give it a name in names= instead"
        )
    data: dict[str, Any] = write()
    return data


# What a strategy says of itself beside its name: promises, which make it quick, and what it needs.


def reads_newest(strategy: object, history: History | None = None, /) -> bool:
    """Tell whether a strategy promises that no unit has a say that is older than those that fit.

    It says so by `reads`; one for which that depends on the conversation by `reads_in` as well.

    Args:
        strategy: The strategy.
        history: The conversation; None: whether it is so of any.
    """
    reads_in = None if history is None else getattr(strategy, "reads_in", None)
    return bool((getattr(strategy, "reads", "all") if reads_in is None else reads_in(history)) == "newest")


def landmarks(strategy: object, history: History, /) -> Collection[int]:
    """List messages that have a say for a strategy that reads the newest, however old they are."""
    find: Any = getattr(strategy, "landmarks", None)
    found: Collection[int] = () if find is None else find(history)
    return found


def clears_results(strategy: object, /) -> bool:
    """Tell whether a strategy makes results smaller where that is needed, and lets nothing leave."""
    return bool(getattr(strategy, "clears_results", False))


def shrinks(strategy: object, history: History, sizes: Sizes, /, *, limit_tokens: int) -> Shrinks | None:
    """Tell what a strategy may make smaller; None if nothing. Of one that does not say it: each result.

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
    """Tell whether a strategy may ask a model, or a function of the caller's, which is asked once."""
    return bool(getattr(strategy, "asks_model", False))


def follows_plan(strategy: object, /) -> bool:
    """Tell whether a strategy cuts at `planned_cut` where that fits."""
    return bool(getattr(strategy, "follows_plan", False))


def protect_roles(strategy: object, /) -> Collection[str]:
    """List the roles of which no message leaves by a strategy."""
    roles: Collection[str] = getattr(strategy, "protect_roles", ())
    return roles


def waits(strategy: object, /) -> bool:
    """Tell whether a strategy may need something from outside, and is asked by its generator `evicting`."""
    return hasattr(strategy, "evicting") and bool(getattr(strategy, "asks_model", True))
