"""The costs of messages and units: with `Costs`, a strategy adds up what it keeps."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate, chain

from trimtab.conversation import History, Unit
from trimtab.conversation.assemble import Insertion, assemble, keep_parts, merge_edits
from trimtab.conversation.units import Span, span_of
from trimtab.counting.sizes import Shares, Sizes
from trimtab.formats import Path

__all__ = ["Costs", "Edits"]

Edits = Mapping[int, Mapping[Path, str]]
"""New texts by message and path."""


class Costs:
    """The costs, in tokens, of the messages of a request after earlier steps.

    Each message is counted once, when its cost is read. With a black-box counter, sizes are shares of its
    count of the whole, and only `total` calls it.
    """

    __slots__ = ("_inserted_tokens", "_sums", "_with_texts", "edits", "history", "insertions", "sizes")

    history: History
    sizes: Sizes
    """The messages as they came in."""
    edits: Edits
    """Texts that earlier steps replaced."""
    insertions: Sequence[Insertion]
    """Messages that earlier steps put in."""

    def __init__(
        self,
        history: History,
        sizes: Sizes,
        *,
        edits: Edits | None = None,
        insertions: Sequence[Insertion] = (),
    ) -> None:
        self.history = history
        self.sizes = sizes
        self.edits = {} if edits is None else edits
        self.insertions = insertions
        self._inserted_tokens: int | None = None if insertions else 0
        self._sums: tuple[list[int], list[int]] | None = None
        """The messages that were edited, ascending, with the change in size from all before each."""
        # Texts are known by the object that holds them: steps of a Cascade hand on the same one, and to
        # compare long texts would take as long as to count them.
        self._with_texts: dict[int, tuple[Mapping[Path, str], int]] = {}

    def after(self, edits: Edits, insertions: Sequence[Insertion], /) -> Costs:
        """Return the costs of the same conversation with other texts replaced; what was counted is known.

        Args:
            edits: All the texts that are replaced then.
            insertions: All the messages that are put in then.
        """
        made = Costs(self.history, self.sizes, edits=edits, insertions=insertions)
        made._with_texts = self._with_texts
        return made

    # -- messages

    def message(self, index: int, /) -> int:
        """Return the tokens of a message alone.

        Args:
            index: Of the message.
        """
        texts = self.edits.get(index)
        return self.sizes.of(index) if texts is None else self.with_texts(index, texts)

    def with_texts(self, index: int, texts: Mapping[Path, str], /) -> int:
        """Return the tokens of a message with texts replaced; it is counted once.

        Args:
            index: Of the message.
            texts: All its new texts, by path; those of earlier steps are not among them.
        """
        texts_before, size = self._with_texts.get(index, (None, 0))
        if texts_before is texts:
            return size
        known = None
        if len(texts) == 1 and ("content",) in texts:
            known = self.sizes.with_text((index,), texts["content",])[0]
        if known is None:
            message = self.history.messages[index]
            known = self.sizes.with_change(
                self.history, self.history.format.with_texts(message, texts), index
            )
        self._with_texts[index] = (texts, known)
        return known

    def saved_by(self, indices: Sequence[int], texts: Mapping[Path, str], /) -> list[int | None]:
        """Return what each of some messages becomes smaller by with another text for content.

        Args:
            indices: Of messages that no step edited.
            texts: The text, by the path of `content`.

        Returns:
            Tokens, below 0 where it becomes larger; None where the message has to be counted for that.
        """
        known, saved = self.sizes.known, list[int | None]()
        # Where a role has a price, the text alone is charged otherwise and nothing is counted: clearing the
        # results of 10,000 messages takes a fifth less.
        for index, tokens in zip(indices, self.sizes.with_text(indices, texts["content",]), strict=True):
            if tokens is None:
                saved.append(None)
                continue
            self._with_texts[index] = texts, tokens
            saved.append((known[index] or 0) - tokens)
        return saved

    def rest(
        self, index: int, texts: Mapping[Path, str] | None, parts: Collection[int] | None = None, /
    ) -> int:
        """Return the tokens of the remaining part of a message.

        Args:
            index: Of the message.
            texts: All its new texts; None: those it came with.
            parts: Which of its parts remain; None: all.
        """
        if parts is None or self.history.structure.parts_of(index).issubset(parts):
            return self.sizes.of(index) if texts is None else self.with_texts(index, texts)
        message = self.history.messages[index]
        if texts is not None:
            message = self.history.format.with_texts(message, texts)
        return self.sizes.message(keep_parts(self.history, index, message, parts), index)

    def insertion(self, insertion: Insertion, /) -> int:
        """Return the tokens of an inserted message.

        Args:
            insertion: The message, and where.
        """
        if insertion.planned_tokens is not None:
            return insertion.planned_tokens
        return self.sizes.alone(insertion.message)

    # -- neighbors

    def between(self, start: int, stop: int, /) -> int:
        """Return the tokens of neighboring messages alone.

        Args:
            start: Index of the first.
            stop: Index behind the last.
        """
        tokens = self.sizes.total(start, stop)
        if not self.edits:
            return tokens
        if self._sums is None:  # of the edited alone: a cut by halves asks a dozen times, and edits are few
            edited = sorted(self.edits)
            added = [self.with_texts(index, self.edits[index]) - self.sizes.of(index) for index in edited]
            self._sums = edited, [*accumulate(added, initial=0)]
        edited, sums = self._sums
        return tokens + sums[bisect_left(edited, stop)] - sums[bisect_left(edited, start)]

    def each(self, start: int, stop: int, /) -> list[int]:
        """Return the tokens of each of neighboring messages.

        Args:
            start: Index of the first.
            stop: Index behind the last.
        """
        tokens = self.sizes.each(start, stop)
        for index in self.edits.keys() & range(start, stop) if self.edits else ():
            tokens[index - start] = self.with_texts(index, self.edits[index])
        return tokens

    # -- units

    def unit(self, unit: Unit, there: dict[int, set[int]], edits: Edits | None = None, /) -> int:
        """Return what a unit adds to a request; of a message that is partly there what it adds to that.

        Args:
            unit: The unit.
            there: Parts of messages in that request, by message; {} at first. The unit's are put to them.
            edits: Texts replaced, by message; None: those of earlier steps.
        """
        edits, added = self.edits if edits is None else edits, 0
        if not unit.parts:
            first, stop = unit.indices[0], unit.indices[-1] + 1
            in_row = stop - first == len(unit.indices)
            added = self.sizes.total(first, stop) if in_row else self.sizes.sum(unit.indices)
            for index in edits.keys() & unit.indices if edits else ():
                added += self.with_texts(index, edits[index]) - self.sizes.of(index)
            return added
        for index in unit.indices:
            parts, texts = unit.parts.get(index), edits.get(index)
            if parts is None:
                added += self.rest(index, texts)
                continue
            before = there.get(index)
            if before:
                added -= self.rest(index, texts, before)
            there[index] = {*(before or ()), *parts}
            added += self.rest(index, texts, there[index])
        return added

    def units(self, units: Sequence[Unit], /) -> int:
        """Return the tokens of units, without the other costs of a request.

        Args:
            units: Units of the request, in order.
        """
        return self.total(units) - self.fixed_tokens(span_of(units[0]) if units else None)

    def row(self, spans: Sequence[Span], /) -> list[int]:
        """Return the tokens of each unit of a row alone.

        Args:
            spans: Where these are.
        """
        sums = self.sizes.sums()
        if self.edits:
            tokens = [self.between(span[0], span[1]) for span in spans]
        else:
            tokens = [sums[span[1]] - sums[span[0]] for span in spans]
        for at, unit in [(at, span[4]) for at, span in enumerate(spans) if span[4] is not None]:
            if unit.indices[-1] - unit.indices[0] + 1 != len(unit.indices):
                tokens[at] = self.unit(unit, {})
        return tokens

    # -- a whole request

    def total(
        self, units: Sequence[Unit], edits: Edits | None = None, insertions: Sequence[Insertion] = (), /
    ) -> int:
        """Return the tokens of a request of these units and of no others.

        Args:
            units: Units of the request, in order.
            edits: Texts to replace, by message, on top of those of earlier steps.
            insertions: Messages to insert, in addition to those of earlier steps.
        """
        merged = merge_edits(self.edits, edits.items()) if edits else self.edits
        if isinstance(self.sizes, Shares):
            put_in = (*self.insertions, *insertions)
            planned = sum(one.planned_tokens or 0 for one in put_in)
            written = [one for one in put_in if one.planned_tokens is None]
            return planned + self.sizes.request_tokens(assemble(self.history, units, merged, written))
        fixed_tokens = self.fixed_tokens(span_of(units[0]) if units else None, insertions)
        fixed_tokens += sum(map(self.insertion, insertions))
        if not merged and not any([unit.parts for unit in units]):
            return fixed_tokens + self.sizes.sum([*chain.from_iterable([unit.indices for unit in units])])
        there: dict[int, set[int]] = {}
        return fixed_tokens + sum(self.unit(unit, there, merged) for unit in units)

    def fixed_tokens(self, first: Span | None, insertions: Sequence[Insertion] = (), /) -> int:
        """Return the tokens beside the units of a request, which depend on how it begins.

        Some counters charge tools otherwise where a request begins with system text.

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
        return self._put_in_tokens() + self.sizes.fixed_tokens(leads_system)

    def fixed_range_tokens(self) -> tuple[int, int]:
        """Return the least and the most that `fixed_tokens` may come to, however a request begins."""
        least, most = sorted(map(self.sizes.fixed_tokens, (False, True)))
        return self._put_in_tokens() + least, self._put_in_tokens() + most

    def most_fixed_tokens(self) -> int:
        """Return the maximum of `fixed_tokens` for any rest of this conversation."""
        return self._put_in_tokens() + self.sizes.most_fixed_tokens(self.history.leads_system)

    def _put_in_tokens(self) -> int:
        """Return the tokens of messages that earlier steps inserted."""
        if self._inserted_tokens is None:
            self._inserted_tokens = sum(map(self.insertion, self.insertions))
        return self._inserted_tokens
