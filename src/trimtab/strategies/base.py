"""What a strategy is asked and answers: `Strategy`, `EvictionRequest`, `EvictionResult`, `Edit`.

A strategy decides which units leave and which texts are cut. It is pure: it sees sizes through its
request only, which answers them from what is known or from the counter.
"""

from __future__ import annotations

import reprlib
import sys
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast, runtime_checkable

from trimtab.conversation import History, Unit
from trimtab.conversation.assemble import Insertion, assemble, keep_parts, merge_edits
from trimtab.conversation.units import Span, span_of, unit_of
from trimtab.counting.base import AdditiveCounter
from trimtab.counting.shorten import Keep, shorten
from trimtab.counting.sizes import Shares, Sizes
from trimtab.errors import ConfigurationError
from trimtab.formats import Fault, Path, TextSlot, mapping_of
from trimtab.formats.refusal import new_fault
from trimtab.strategies.cuts import Cuts
from trimtab.strategies.openers import Openers, in_order, with_thinking
from trimtab.strategies.rows import Rows, unit_key

if TYPE_CHECKING:
    from trimtab.report import Reason
    from trimtab.strategies.strides import Strides

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
        reason: Why what left had to leave, for the report.
        needed_tokens: When it does not fit: the size of the request at its least, if not this result's.
        protected: First messages of kept units that later steps of a Cascade may shorten, but not evict.
        insertions: Messages to put in, ascending.
        notes: What else the report should say, a sentence each; no text of messages.
        planned_cut: When it does not fit: the message at which a later step of a Cascade is to cut, and no
            earlier, so that both change the prompt at one moment; 0: it is left to that step.
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
        "_edited_sizes",
        "_edits",
        "_edits_added",
        "_inserted_tokens",
        "_question",
        "_strides",
        "block",
        "constant_limit_tokens",
        "insertions",
        "is_whole",
        "known_edits",
        "later",
        "led",
        "limit_tokens",
        "looked_over",
        "planned_cut",
        "protected",
        "sizes",
    )

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
        near: Callable[[], tuple[list[Span] | None, int]] | None = None,
        reads_newest: bool = False,
        edits: Mapping[int, Mapping[Path, str]] | None = None,
        protected: frozenset[int] = frozenset(),
        insertions: Sequence[Insertion] = (),
        led: bool = False,
        planned_cut: int = 0,
        question: Callable[[], str] | None = None,
    ) -> None:
        self.insertions = insertions
        """Messages that earlier steps put in; their tokens are among the fixed ones."""
        self._inserted_tokens: int | None = None if insertions else 0
        super().__init__(history, alive=alive, row=row, near=near, reads_newest=reads_newest)
        self.sizes = sizes
        self.limit_tokens = limit_tokens
        """Most tokens that what stays, with `fixed_tokens`, may come to."""
        self.constant_limit_tokens = limit_tokens if constant_limit_tokens is None else constant_limit_tokens
        """The limit that is the same from call to call: the block's cap or the whole budget."""
        self.block = block
        """Name of the block; "history" in `fit`."""
        self.is_whole = True
        """True as long as no earlier step let go of any unit."""
        self.protected = protected
        """First messages of units this request treats as staying, beside pinned and held ones."""
        self.led = led
        """Whether a block in front surely has something that may come first: nothing here needs an opener."""
        self.planned_cut = planned_cut
        """Where a step before wants the cut, which it has made room for, and no earlier; 0: nowhere."""
        self.later: tuple[Strategy, ...] = ()
        """Steps of a Cascade that go on where the one that is asked does not make it fit."""
        self._question = question
        self.looked_over: EvictionResult | None = None
        """The answer to it of which the values were looked over last."""
        self.known_edits: dict[int, Mapping[Path, str]] = {}
        """Texts that were looked over, by message; the requests that are made of this one have the same."""
        self._edited_sizes: dict[int, tuple[Mapping[Path, str], int]] = {}
        self._strides: dict[int, Strides] = {}
        """The marks from a fixed place on, by that place."""
        self._edits: dict[int, Mapping[Path, str]] = dict(edits or {})
        self._edits_added: tuple[list[int], list[int]] | None = None
        """The messages of these, ascending, and what all before each add to the size."""

    # -- what there is

    @property
    def question(self) -> str:
        """What the user wrote last, in whatever block it stands; "" if nothing."""
        return latest_words(self.history) if self._question is None else self._question()

    @property
    def additive(self) -> bool:
        """True if sizes add up; False for a counter that is a black box over a list."""
        return self.sizes.additive

    @property
    def fixed_tokens(self) -> int:
        """Tokens beside the units.

        System text, tools, framing, and what earlier steps put in. It is the most they may come to: some
        counters charge tools differently where a request begins with system text, as `total` knows.
        """
        return self._put_in_tokens + self.sizes.most_fixed_tokens(self.history.leads_system)

    @property
    def _put_in_tokens(self) -> int:
        """Tokens of what earlier steps put in."""
        if self._inserted_tokens is None:
            self._inserted_tokens = sum(map(self.inserted_tokens, self.insertions))
        return self._inserted_tokens

    @property
    def _least_fixed_tokens(self) -> int:
        """The least that tokens beside the units may come to, however a request begins."""
        return self._put_in_tokens + min(map(self.sizes.fixed_tokens, (False, True)))

    @property
    def _fixed_tokens_vary(self) -> bool:
        """Whether tokens beside the units depend on how a request begins."""
        return self.sizes.fixed_tokens(False) != self.sizes.fixed_tokens(True)

    def _fixed_tokens_of(self, first: Span | None, insertions: Sequence[Insertion] = (), /) -> int:
        """Return the tokens beside the units of a request, which depend on how it begins.

        Args:
            first: The first unit of that request; None if it has none.
            insertions: Messages put in, beside those of earlier steps.
        """
        leads_system = first is not None and first[3] == "system"
        if not self.insertions and not insertions:
            return self.sizes.fixed_tokens(leads_system)
        written = min((*self.insertions, *insertions), key=lambda one: one.at)
        if first is None or written.at <= first[0]:
            leads_system = self.history.format.kind(written.message) == "system"
        return self._put_in_tokens + self.sizes.fixed_tokens(leads_system)

    @property
    def edits(self) -> Mapping[int, Mapping[Path, str]]:
        """Texts that an earlier step replaced, by message."""
        return self._edits

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
        if index in self._edits:
            message = mapping_of(self.history.format.with_texts(message, self._edits[index]))
        return message

    def stays(self, unit: Unit, /) -> bool:
        """Tell whether the unit may not leave.

        Args:
            unit: A unit of the request.
        """
        protected = self.protected
        return unit.state != "free" or (bool(protected) and unit.indices[0] in protected)

    def _must_stay(self, span: Span, /) -> bool:
        """Tell the same of a unit that does not have to be made."""
        return span[2] != "free" or span[0] in self.protected

    def _places_that_stay(self) -> list[int]:
        """List the places in the row of the units that may not leave."""
        protected = self.protected
        return [at for at, span in enumerate(self.told) if span[2] != "free" or span[0] in protected]

    # -- how large it is

    def count_each(self) -> None:
        """Count every message, which takes less time in one go than one by one."""
        if self.sizes.additive and self._alive is None and self._row is None:
            self._near = None
            self.sizes.walk(self.history, self.history.head, sys.maxsize)

    def size(self, unit: Unit, /) -> int:
        """Return the unit's tokens alone; a share if the counter is a black box.

        Args:
            unit: A unit of the request.
        """
        return self._added_tokens(unit, {})

    def message_tokens(self, index: int, /) -> int:
        """Return the tokens of a message alone, as earlier steps left it.

        Args:
            index: Of the message.
        """
        return self._size_of(index, self._edits.get(index))

    def _each_tokens(self, start: int, stop: int, /) -> list[int]:
        """Return the same of each of neighboring messages."""
        tokens = self.sizes.each(start, stop)
        for index in self._edits.keys() & range(start, stop) if self._edits else ():
            tokens[index - start] = self.size_with(index, self._edits[index])
        return tokens

    def passes(self, start: int, stop: int, /, *, limit_tokens: int) -> bool:
        """Tell whether neighbors alone pass a limit; counts back until they do.

        Args:
            start: Index of the first message.
            stop: Index behind the last one.
            limit_tokens: The limit.
        """
        while stop > start and limit_tokens >= 0:
            newer, stop = stop, max(start, stop - _AT_ONCE)
            limit_tokens -= sum(self._each_tokens(stop, newer))
        return limit_tokens < 0

    def _size_of(
        self, index: int, texts: Mapping[Path, str] | None, parts: Collection[int] | None = None
    ) -> int:
        """Return the size of a message, or of some of its parts, with texts replaced."""
        if parts is not None and self.history.structure.parts_of(index).issubset(parts):
            parts = None
        if parts is None:
            return self.sizes.of(index) if texts is None else self.size_with(index, texts)
        message = self.history.messages[index]
        if texts is not None:
            message = self.history.format.with_texts(message, texts)
        if parts is not None:
            message = keep_parts(self.history, index, message, parts)
        return self.sizes.message(message, index)

    def size_with(self, index: int, texts: Mapping[Path, str], /) -> int:
        """Return the size of a message with texts replaced; it is counted once.

        Args:
            index: Of the message.
            texts: The new texts, by path.
        """
        texts_before, size = self._edited_sizes.get(index, (None, 0))
        if texts_before is texts:
            return size
        known = None
        if len(texts) == 1 and ("content",) in texts:
            known = self.sizes.with_text((index,), texts["content",])[0]
        if known is None:
            message = self.history.messages[index]
            known = self.sizes.message(self.history.format.with_texts(message, texts), index)
        self._edited_sizes[index] = (texts, known)
        return known

    def inserted_tokens(self, insertion: Insertion, /) -> int:
        """Return the tokens of a message that is put in.

        Args:
            insertion: The message, and where.
        """
        if insertion.planned_tokens is not None:
            return insertion.planned_tokens
        return self.sizes.alone(insertion.message)

    def total(
        self,
        units: Iterable[Unit],
        /,
        *,
        edits: Mapping[int, Mapping[Path, str]] | None = None,
        insertions: Sequence[Insertion] = (),
    ) -> int:
        """Return the tokens of a request of these units and their opener.

        The fixed part is among them.

        Args:
            units: Units of this request, in order; see `with_openers`.
            edits: Texts to replace, by message, on top of those of earlier steps.
            insertions: Messages to put in, beside those of earlier steps.
        """
        return self._sum(self.with_openers(units, insertions), edits, insertions)

    def _sum(
        self,
        units: Sequence[Unit],
        edits: Mapping[int, Mapping[Path, str]] | None = None,
        insertions: Sequence[Insertion] = (),
    ) -> int:
        """Return the tokens of a request of these units and of no others, fixed part included."""
        merged = merge_edits(self._edits, edits.items()) if edits else self._edits
        if isinstance(self.sizes, Shares):
            put_in = (*self.insertions, *insertions)
            planned = sum(one.planned_tokens or 0 for one in put_in)
            written = [one for one in put_in if one.planned_tokens is None]
            return planned + self.sizes.request_tokens(assemble(self.history, units, merged, written))
        fixed_tokens = self._fixed_tokens_of(span_of(units[0]) if units else None, insertions)
        fixed_tokens += sum(map(self.inserted_tokens, insertions))
        if not merged and not any([unit.parts for unit in units]):
            return fixed_tokens + self.sizes.sum([*chain.from_iterable([unit.indices for unit in units])])
        there: dict[int, set[int]] = {}
        return fixed_tokens + sum(self._added_tokens(unit, there, merged) for unit in units)

    def _units_tokens(self, units: Sequence[Unit], /) -> int:
        """Return the tokens of units alone, without what a request costs beside them."""
        return self._sum(units) - self._fixed_tokens_of(span_of(units[0]) if units else None)

    def _tokens_between(self, start: int, stop: int) -> int:
        """Return the tokens of neighboring messages alone, as they are after earlier steps."""
        tokens = self.sizes.total(start, stop)
        if not self._edits:
            return tokens
        if self._edits_added is None:
            edited = sorted(self._edits)
            added = [self.size_with(index, self._edits[index]) - self.sizes.of(index) for index in edited]
            self._edits_added = edited, [*accumulate(added, initial=0)]
        edited, sums = self._edits_added
        return tokens + sums[bisect_left(edited, stop)] - sums[bisect_left(edited, start)]

    def _tokens_of_row(self) -> list[int]:
        """Return the tokens of each unit alone, as it is after earlier steps."""
        sums = self.sizes.sums()
        if self._edits:
            tokens = [self._tokens_between(span[0], span[1]) for span in self.row]
        else:
            tokens = [sums[span[1]] - sums[span[0]] for span in self.row]
        for at, unit in [(at, span[4]) for at, span in enumerate(self.row) if span[4] is not None]:
            if unit.indices[-1] - unit.indices[0] + 1 != len(unit.indices):
                tokens[at] = self.size(unit)
        return tokens

    def _added_tokens(
        self, unit: Unit, there: dict[int, set[int]], edits: Mapping[int, Mapping[Path, str]] | None = None, /
    ) -> int:
        """Return what a unit adds to a request; of a message partly there what it adds to that.

        Args:
            unit: The unit.
            there: Parts of shared messages in that request, by message; the unit's are put to them.
            edits: Texts replaced, by message; None: those of earlier steps.
        """
        edits, added = self._edits if edits is None else edits, 0
        if not unit.parts:
            first, stop = unit.indices[0], unit.indices[-1] + 1
            in_row = stop - first == len(unit.indices)
            added = self.sizes.total(first, stop) if in_row else self.sizes.sum(unit.indices)
            for index in edits.keys() & unit.indices if edits else ():
                added += self.size_with(index, edits[index]) - self.sizes.of(index)
            return added
        for index in unit.indices:
            parts, texts = unit.parts.get(index), edits.get(index)
            if parts is None:
                added += self._size_of(index, texts)
                continue
            before = there.get(index)
            if before:
                added -= self._size_of(index, texts, before)
            there[index] = {*(before or ()), *parts}
            added += self._size_of(index, texts, there[index])
        return added

    def fits(
        self,
        units: Iterable[Unit],
        /,
        *,
        edits: Mapping[int, Mapping[Path, str]] | None = None,
        insertions: Sequence[Insertion] = (),
    ) -> bool:
        """Tell whether a request of these units and their opener keeps to the limit.

        Args:
            units: What would stay.
            edits: Texts of their messages that would be replaced, by message and path.
            insertions: Messages that would be put in.
        """
        return self.total(units, edits=edits, insertions=insertions) <= self.limit_tokens

    # -- what has to stand in front

    @property
    def _openers(self) -> Openers | None:
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
        return None if self._openers is None else self._openers.of(unit)

    def with_openers(self, units: Iterable[Unit], /, insertions: Sequence[Insertion] = ()) -> Sequence[Unit]:
        """Return units, in order, with the opener of the first if that may not come first.

        What must stay does so without one, too: the opener of what is pinned or held is held.

        Args:
            units: Units of this request, in order.
            insertions: Messages to put in, beside those of earlier steps: one of them may come first.
        """
        given: Sequence[Unit] = units if isinstance(units, (list, tuple)) else list(units)
        openers = self._openers
        if len(given) == len(self.told):
            return given
        if self.history.last_turn is not None:
            put_in = (*self.insertions, *insertions)
            given = with_thinking(self.history.last_turn, self.told, given, put_in)
        if openers is None:
            return given
        return openers.complete(given, (*self.insertions, *insertions), self.stays)

    def _in_order(
        self, units: Sequence[Unit], /, insertions: Sequence[Insertion] = (), *, led: bool = False
    ) -> tuple[list[Unit], frozenset[int]]:
        """Let go of units that the provider refuses behind what stays.

        Args:
            units: Units of this request, in order.
            insertions: Messages to put in, beside those of earlier steps.
            led: Whether something stays in front of these units that may come first.

        Returns:
            The units that stay, and the messages of the others.
        """
        return in_order(
            self.history,
            units,
            (*self.insertions, *insertions),
            may_leave=lambda unit: not self.stays(unit),
            led=led or self.led,
        )

    def _fits_in_order(
        self,
        units: Sequence[Unit],
        edits: Mapping[int, Mapping[Path, str]] | None = None,
        insertions: Sequence[Insertion] = (),
    ) -> bool:
        """Tell whether units fit since the provider's order has some leave: no strategy knows of these."""
        staying, gone = self._in_order(units, insertions)
        return bool(gone) and self._sum(staying, edits, insertions) <= self.limit_tokens

    # -- texts

    def texts(self, index: int, /) -> list[TextSlot]:
        """List the texts of a message that may be cut, as earlier steps left them.

        Their places are those in the caller's own message, and what was left without text is not among them.

        Args:
            index: Of the message.
        """
        slots, edits = self.history.format.texts(self.history.message(index)), self._edits.get(index)
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
        edited, format = {**self._edits.get(index, {}), **texts}, self.history.format
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
        counter = self.sizes.counter
        if not isinstance(counter, AdditiveCounter):
            message = self.history.format.message
            empty = self.sizes.message(message("user", [""]))
            return shorten(
                text,
                limit_tokens,
                count=lambda t: max(0, self.sizes.message(message("user", [t])) - empty),
                keep=keep,
            )
        return shorten(text, limit_tokens, count=counter.count_text, keep=keep)

    # -- cuts: everything from one message on

    @property
    def cuts(self) -> Cuts:
        """The places where it may be cut, with what each costs; made anew each time."""
        return Cuts(self)

    @property
    def room_tokens(self) -> int:
        """Tokens that are left beside what must stay and what is fixed."""
        self._read_near()
        stay = [unit_of(span) for span in self.told if self._must_stay(span)]
        return self.limit_tokens - self.fixed_tokens - self._units_sizes(stay)

    def _units_sizes(self, units: Iterable[Unit]) -> int:
        """Return the tokens of units alone; of a message that some of them share, of it once."""
        there: dict[int, set[int]] = {}
        return sum(self._added_tokens(unit, there) for unit in units)

    def protecting(self, roles: Iterable[str], /) -> EvictionRequest:
        """Return the same request in which units with a message of these roles stay.

        Args:
            roles: As "user".
        """
        wanted = frozenset(roles)
        if not wanted:
            return self
        found = {unit.first for unit in self.units if not wanted.isdisjoint(self._roles(unit))}
        if self._openers is not None:
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

    def _roles(self, unit: Unit) -> set[str]:
        roles = {str(self.history.kind(index)) for index in unit.indices}
        return roles | {str(self.message(index).get("role")) for index in unit.indices}

    def after(self, result: EvictionResult, /) -> EvictionRequest:
        """Return the request that is left once a result is carried out, for the next step.

        Args:
            result: What the step before answered.
        """
        row = self.told
        if result.cut is not None and not result.insertions and row and result.cut <= row[0][0]:
            return self._with(  # all of it stays
                edits=merge_edits(self._edits, ((edit.index, edit.texts) for edit in result.edits)),
                protected=self.protected | result.protected,
                planned_cut=result.planned_cut,
            )
        kept = self.with_openers(kept_units(self, result), result.insertions)
        present = set(chain.from_iterable([unit.indices for unit in kept]))
        edits = merge_edits(self._edits, ((edit.index, edit.texts) for edit in result.edits))
        return self._with(
            alive=kept,
            edits={index: texts for index, texts in edits.items() if index in present},
            protected=self.protected | result.protected,
            insertions=(*self.insertions, *result.insertions),
            planned_cut=result.planned_cut,
        )

    def _as_cut(self, result: EvictionResult, /) -> EvictionResult | None:
        """Return a cut with what earlier steps edited of what it keeps; None if more than that was done."""
        cut, edits = result.cut, self._edits
        if cut is None or not self.is_whole or self.insertions or not self.additive:
            return None
        if result.edits or result.insertions or self.history.ordered:
            return None
        if edits and any(span[0] < cut < span[1] for span in self.told):
            return None  # what stands behind the cut may leave with its unit, which begins before it
        if any(map(cut.__gt__, edits)):
            if any(span[4] is not None and span[4].parts for span in self.told):
                return None
            also = {unit.first for unit in result.kept}
            beside = [
                span for span in self.told if span[0] < cut and (span[0] in also or self._must_stay(span))
            ]
            there = {index for span in beside for index in unit_of(span).indices}
            edits = {index: texts for index, texts in edits.items() if index >= cut or index in there}
        return EvictionResult(
            cut=cut,
            kept=result.kept,
            edits=[Edit(index=index, texts=texts) for index, texts in edits.items()],
            protected=self.protected | result.protected,
            planned_cut=self.planned_cut,
            cannot_lead=result.cannot_lead,
        )

    def _with_less_room(self, tokens: int, /) -> EvictionRequest:
        """Return the same request with so much less room."""
        return self._with(limit_tokens=self.limit_tokens - tokens)

    def _with(
        self,
        *,
        limit_tokens: int | None = None,
        alive: Sequence[Unit] | None = None,
        edits: Mapping[int, Mapping[Path, str]] | None = None,
        protected: frozenset[int] | None = None,
        insertions: Sequence[Insertion] | None = None,
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
            edits=self._edits if edits is None else edits,
            protected=self.protected if protected is None else protected,
            insertions=self.insertions if insertions is None else insertions,
            led=self.led,
            question=self._question,
            planned_cut=self.planned_cut if planned_cut is None else planned_cut,
        )
        made.later = self.later
        made._origin, made._edited_sizes, made._strides = self, self._edited_sizes, self._strides
        made.known_edits = self.known_edits
        same = alive is None or len(alive) == len(self.told)
        made.is_whole = self.is_whole and same
        # Of what a strategy without a promise kept, what is older than that left.
        made.is_near = self.is_near and same and (alive is None or self.reads_newest)
        made._is_apart = self._is_apart
        return made


_AT_ONCE = 64
"""Messages counted in one go, on the way back to a limit."""


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
