"""The runner: calls a strategy, checks its contract, and returns what is kept.

A strategy is trusted with the decision and with nothing else. Its answer is checked and summed up again here;
a breach is a `StrategyContractError`, never a wrong request.
"""

from __future__ import annotations

import reprlib
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NoReturn, cast

from trimtab._shared.steps import Steps
from trimtab.conversation import Unit
from trimtab.conversation.assemble import Insertion, assemble_one, merge_edits, owns_text, put_in
from trimtab.conversation.units import Span, unit_of
from trimtab.errors import BudgetExceededError, ContextError, FormatError, StrategyContractError
from trimtab.formats import Kind, Path, Structure
from trimtab.strategies.base import Edit, EvictionRequest, EvictionResult, Strategy, has_last_word, waits
from trimtab.strategies.openers import fit_in_order, headless, kept_in_order
from trimtab.strategies.rows import places_that_stay, span_stays, unit_key
from trimtab.strategies.summarizer import drive
from trimtab.strategies.truncate_text import shorten_held

if TYPE_CHECKING:
    from trimtab.report import Reason

__all__ = [
    "Settled",
    "check_step",
    "checked_answer",
    "run",
    "steps",
]


# Checks of the values a strategy answers with: their kinds, and words of closed lists.
#
# Whether the answer keeps to the conversation and the limit is the runner's to check.


def breach(name: str, what: str) -> NoReturn:
    """Say which strategy broke its contract, and how."""
    raise StrategyContractError(f"strategy {name} {what}", strategy=name)


def checked_answer(result: object, request: EvictionRequest, name: str) -> EvictionResult:
    """Return a strategy's answer after checking the kind of every value.

    Raises:
        StrategyContractError: It is not an EvictionResult, or has a value that no result may have.
    """
    if not isinstance(result, EvictionResult):
        breach(name, f"returned {type(result).__name__}, not EvictionResult")
    if result is request.looked_over:  # a Cascade answers with what its first step did, where that fits
        return result
    cut = result.cut
    if cut is not None and type(cut) is not int:
        breach(name, f"cuts at {cut!r}, which is not the position of a message")
    if cut is not None and not 0 <= cut <= request.history.count:
        breach(name, f"cuts at message {cut}, where no unit begins")
    _check_units(result.kept, name)
    if result.edits != ():
        _check_sequence(result.edits, "edits", name)
        for edit in result.edits:
            _check_edit(edit, name)
    if result.insertions != ():
        _check_sequence(result.insertions, "insertions", name)
        for insertion in result.insertions:
            _check_insertion(insertion, request, name)
    _check_words(result, name)
    request.looked_over = result
    return result


def _check_units(kept: Sequence[object], name: str) -> None:
    """Check that what is kept may be units."""
    _check_sequence(kept, "kept", name)
    for unit in kept:
        if not _is_unit(unit):
            breach(name, f"keeps {_show(unit)}, which is not a unit of the request")


def _is_unit(unit: object) -> bool:
    """Tell whether a value may be a unit: one that was made by hand may contain anything."""
    if not isinstance(unit, Unit) or type(unit.indices) is not tuple or not isinstance(unit.parts, Mapping):
        return False
    return bool(unit.indices) and _are_places(unit.indices)


def _are_places(values: Iterable[object]) -> bool:
    return set(map(type, values)) <= {int}


def _show(value: object) -> str:
    """Show a strategy's answer, of any kind."""
    return f"a unit of {reprlib.repr(value.indices)}" if isinstance(value, Unit) else reprlib.repr(value)


def _check_sequence(value: object, field: str, name: str) -> None:
    if type(value) is not list and (not isinstance(value, Sequence) or isinstance(value, (str, bytes))):
        breach(name, f"answers {value!r} as {field}; it is a sequence")


def _check_edit(edit: object, name: str) -> None:
    """Check that an edit has texts by their paths in one message."""
    if not isinstance(edit, Edit):
        breach(name, f"answers {edit!r} among its edits, which is not an Edit")
    if type(edit.index) is not int:
        breach(name, f"edits message {edit.index!r}, which is not the position of a message")
    if not isinstance(edit.texts, Mapping):
        breach(name, f"edits message {edit.index} with {edit.texts!r}; texts is a mapping of path to text")
    for path, text in edit.texts.items():
        if not isinstance(text, str):
            breach(name, f"edits message {edit.index} at {path!r} with {type(text).__name__}, not text")


def _check_insertion(insertion: object, request: EvictionRequest, name: str) -> None:
    """Check that an insertion is a message with a place, and that the provider would accept it."""
    if not isinstance(insertion, Insertion):
        breach(name, f"answers {insertion!r} among its insertions, which is not an Insertion")
    if type(insertion.at) is not int or not 0 <= insertion.at < request.history.count:
        breach(name, f"puts a message in at {insertion.at!r}, which is not the position of a message")
    if type(insertion.message) is not dict:
        breach(name, f"puts in {type(insertion.message).__name__}; a message it makes is a dict")
    if not isinstance(insertion.why, str):
        breach(name, f"puts in a message with {insertion.why!r} as why; it is a few words")
    covers, count = insertion.covers, request.history.count
    if not isinstance(covers, (frozenset, set)) or not _are_places(covers):
        breach(
            name, f"puts in {insertion.why!r} with {covers!r} as covers; it is a set of positions of messages"
        )
    if any(not 0 <= index < count for index in covers):
        breach(name, f"puts in {insertion.why!r}, which stands for messages that there are not")
    _check_reason(insertion.reason, "reason of an insertion", name)
    _check_written(insertion, request, name)
    planned = insertion.planned_tokens
    if planned is None:
        return
    if type(planned) is not int or planned < 0:
        breach(name, f"puts in a message of {planned!r} tokens; planned_tokens is a whole number, or None")
    if (counted := request.sizes.alone(insertion.message)) > planned:
        breach(name, f"puts in a message of {counted:,} tokens and plans {planned:,} for it")


def _check_written(insertion: Insertion, request: EvictionRequest, name: str) -> None:
    """Check that a message is one of its wire form, and neither makes calls nor answers any."""
    format, message = request.history.format, insertion.message
    columns = Structure(1)
    try:
        faults = [fault.detail for fault in format.faults([message])]
        format.scan([message], 0, 1, columns)
        kind = format.kind(message)
    except FormatError as error:
        faults, kind = [str(error)], "other"
    if faults or kind == "other":
        said = faults[0] if faults else f"it is none of {format.name}"
        breach(name, f"puts in {insertion.why!r}, which the provider refuses: {said}")
    if columns.calls or columns.answers or columns.dangling or columns.references:
        breach(name, f"puts in {insertion.why!r}, which makes or answers a call: it stands alone")


def _check_words(result: EvictionResult, name: str) -> None:
    """Check the values that go into the report as they are."""
    fits, actions, needed = result.fits, result.actions, result.needed_tokens
    if type(fits) is not bool:
        breach(name, f"answers {fits!r} as fits; it is True or False")
    if type(result.planned_cut) is not int or result.planned_cut < 0:
        breach(name, f"answers {result.planned_cut!r} as planned_cut; it is a position of a message, or 0")
    if needed is not None and type(needed) is not int:
        breach(name, f"answers {needed!r} as needed_tokens; it is a whole number, or None")
    if actions is not None and not (type(actions) is tuple and all([isinstance(a, str) for a in actions])):
        breach(name, f"answers {actions!r} as actions; it is a tuple of words, or None")
    for word, places in (("protected", result.protected), ("cannot_lead", result.cannot_lead)):
        if not isinstance(places, (frozenset, set)):
            breach(name, f"answers {places!r} as {word}; it is a set of positions of messages")
    notes = result.notes
    if notes != () and not (type(notes) is tuple and all([isinstance(note, str) for note in notes])):
        breach(name, f"answers {result.notes!r} as notes; it is a tuple of sentences")
    if not isinstance(result.cause, Exception | None):
        breach(name, f"answers {result.cause!r:.80} as cause; it is an exception")
    if result.reason != "over_limit":
        _check_reason(result.reason, "reason", name)


def _check_reason(reason: object, what: str, name: str) -> None:
    from trimtab.report import REASONS  # not above: a report is loaded by who reads one

    if reason not in REASONS:
        breach(name, f"answers {reason!r} as {what}; it is one of {', '.join(REASONS)}")


@dataclass(slots=True, kw_only=True)
class Settled:
    """What stays of a conversation: some messages before a cut, and all from the cut on."""

    before: Sequence[int] = ()
    """Messages older than the cut that stay, ascending."""
    cut: int = 0
    """Every message from here on stays."""
    partial: Mapping[int, frozenset[int]] = field(default_factory=dict)
    """For messages of which only some parts stay: which."""
    edits: Mapping[int, Mapping[Path, str]] = field(default_factory=dict)
    """New texts by message."""
    edited_tokens: Mapping[int, int] = field(default_factory=dict)
    """Tokens of messages that changed, as they are now."""
    tokens: int = 0
    """Tokens of the whole request."""
    fits: bool = True
    actions: tuple[str, ...] = ()
    reason: Reason = "over_limit"
    needed_tokens: int | None = None
    insertions: Sequence[Insertion] = ()
    """Messages that were put in, ascending; all of them before the cut."""
    inserted_tokens: Sequence[int] = ()
    """Tokens of each of them."""
    notes: tuple[str, ...] = ()
    cause: Exception | None = None
    """What failed on the way."""
    reasons: Mapping[int, Reason] = field(default_factory=dict)
    """Why single messages were evicted or changed, if not for `reason`."""
    bare: frozenset[int] = frozenset()
    """Messages that stay without their thinking; these alone may be behind the cut."""

    @property
    def changed(self) -> set[int]:
        """Messages that stay, but not as they were."""
        return {*self.partial, *self.edits, *self.bare}

    def keeps(self, index: int) -> bool:
        """Tell whether a message, or a part of it, stays."""
        at = bisect_left(self.before, index)
        return index >= self.cut or (at < len(self.before) and self.before[at] == index)

    def without(self, gone: Collection[int], *, count: int, tokens: int, reason: Reason) -> Settled:
        """Return what stays of `count` messages once more are gone."""
        there = [index for index in (*self.before, *range(self.cut, count)) if index not in gone]
        return replace(
            self,
            before=there,
            cut=count,
            partial={index: parts for index, parts in self.partial.items() if index not in gone},
            edits={index: texts for index, texts in self.edits.items() if index not in gone},
            bare=self.bare.difference(gone),
            tokens=tokens,
            actions=tuple(dict.fromkeys((*(one for one in self.actions if one != "kept"), "evicted"))),
            reasons={**self.reasons, **dict.fromkeys(gone, reason)},
        )

    def explain(self, error: BudgetExceededError, /) -> BudgetExceededError:
        """Say in the error what failed on the way, and raise it from that."""
        if self.cause is not None:
            error.args = (f"{error} What failed before: {self.cause}.",)
            error.__cause__ = self.cause
        return error

    def assemble(self, request: EvictionRequest) -> list[Any]:
        """Put the output together: the caller's own objects, in order, edited where they must be."""
        history = request.history
        messages = [*history.originals_at(self.before), *history.originals_from(self.cut)]
        if not self.edits and not self.partial and not self.insertions and not self.bare:
            return messages
        places, behind = {index: at for at, index in enumerate(self.before)}, len(self.before) - self.cut
        for index in self.changed:
            at = places[index] if index < self.cut else index + behind
            message = assemble_one(history, index, self.partial.get(index), self.edits.get(index))
            messages[at] = history.format.without_thinking(message) if index in self.bare else message
        return put_in(messages, self.before, self.insertions)


def run(strategy: Strategy, request: EvictionRequest) -> Settled:
    """Call a strategy and check its answer; see `steps`."""
    return drive(steps(strategy, request))


def steps(strategy: Strategy, request: EvictionRequest, *, cut_newest: bool = False) -> Steps[Settled]:
    """Call a strategy and check its answer; yields what it needs from outside.

    Args:
        strategy: Whom to ask.
        request: What it is asked.
        cut_newest: Whether what is held is cut behind a strategy that says it is able to do no more.

    Raises:
        StrategyContractError: It claims to fit and does not, loses what must stay, splits, invents or
            reorders units, or edits what is pinned or not there.
        BudgetExceededError: Only if the strategy raises it itself.
    """
    name = str(getattr(strategy, "name", type(strategy).__name__))
    try:
        answer = (
            (yield from cast("Any", strategy).evicting(request))
            if waits(strategy)
            else strategy.evict(request)
        )
        answer = checked_answer(answer, request, name)
        settled = _settle(request, answer, name)
        if cut_newest and not (answer.fits or settled.fits or has_last_word(strategy)):
            return _with_newest_cut(request, answer, settled, name)
        return settled
    except StrategyContractError as error:
        error.block = request.block
        error.args = (f"block {request.block!r}: {error}",)
        raise
    except ContextError:
        raise
    except Exception as error:
        error.add_note(f"raised by strategy {name} for block {request.block!r}")
        raise


def _with_newest_cut(
    request: EvictionRequest, answer: EvictionResult, settled: Settled, name: str
) -> Settled:
    """Cut what is held as far as it must be beside what a strategy kept; see SPEC C."""
    left = request.after(answer)
    cut = shorten_held(left, left.told_units, [unit for unit in left.told_units if unit.state == "held"])
    if not cut.edits:
        return settled
    whole = replace(
        answer,
        kept=cut.kept,
        cut=None,
        edits=[*answer.edits, *cut.edits],
        fits=cut.fits,
        needed_tokens=cut.needed_tokens,
    )
    made = _settle(request, whole, name)
    made.actions = tuple(dict.fromkeys((*settled.actions, "shortened")))
    made.reasons = {**made.reasons, **dict.fromkeys((edit.index for edit in cut.edits), "over_limit")}
    return made


def _settle(request: EvictionRequest, result: EvictionResult, name: str) -> Settled:
    """Check a result against the conversation, and return what is kept."""
    settled = _settle_cut(request, result, name) or _settle_units(request, result, name)
    settled.actions = result.actions if result.actions is not None else (name,)
    settled.reason = result.reason
    let_go = "cannot_lead" in settled.reasons.values() and settled.tokens <= request.limit_tokens
    settled.fits = (result.fits or let_go) and settled.needed_tokens is None
    if not (result.fits or let_go):
        settled.needed_tokens = result.needed_tokens
    settled.notes, settled.cause = result.notes, result.cause
    if result.cannot_lead:
        lost = (index for index in result.cannot_lead if not settled.keeps(index))
        settled.reasons = {**settled.reasons, **dict.fromkeys(lost, "cannot_lead")}
    if settled.fits and settled.tokens > request.limit_tokens:
        breach(name, f"says it fits, but {settled.tokens:,} tokens are over {request.limit_tokens:,}")
    return settled


def check_step(request: EvictionRequest, result: EvictionResult, name: str) -> None:
    """Check the answer of a step of a Cascade, so the error names the step.

    Raises:
        StrategyContractError: It splits or invents units, loses what must stay, or edits what it may not.
    """
    if result.cut is not None and not result.edits and not result.insertions:
        _place_of_cut(request, result.cut, name)
        _places(request.told, result.kept, name)
        return
    kept = _checked_units(request, result, name)
    _checked_edits(request, kept, result, name)
    if result.insertions:
        _checked_insertions(result, {index for unit in kept for index in unit.indices}, name)


def _settle_cut(request: EvictionRequest, result: EvictionResult, name: str) -> Settled | None:
    """Settle a cut by what stands before it; None if units have to be looked at one by one.

    They have to where one goes on behind the cut, shares a message, or was edited, and where order counts.
    """
    cut, sizes = result.cut, request.sizes
    if cut is None or result.insertions or request.insertions or request.edits:
        return None
    if not request.is_whole or not request.additive or request.history.ordered:
        return None
    row, older = request.told, _place_of_cut(request, cut, name)
    also = {unit.indices[0]: unit for unit in result.kept}
    before: list[int] = []
    leads: Kind | None = row[older][3] if older < len(row) else None
    for span in row[:older]:
        first, stop, _, kind, unit = span
        if unit is not None and (unit.parts or unit.indices[-1] >= cut):
            return None
        if first in also or span_stays(request, span):
            leads = leads if before else kind
            before += range(first, stop) if unit is None else unit.indices
            if (kept := also.pop(first, None)) is not None and not _is_same(span, kept):
                return None
    if also:
        return None
    tokens = sizes.fixed_tokens(leads == "system") + sizes.sum(before)
    tokens += sizes.total(cut, request.history.count)
    before.sort()  # something else may stand between the messages of a unit
    edits = _edits_beside(request, {*before}, result, name) if result.edits else {}
    edited_tokens = {index: request.costs.with_texts(index, texts) for index, texts in edits.items()}
    tokens += sum(edited_tokens.values()) - sizes.sum([*edits])
    if edits and (last := max(edits)) >= cut:
        before += range(cut, last + 1)
        cut = last + 1
    while before and before[-1] == cut - 1 and before[-1] not in edits:
        cut = before.pop()
    return Settled(before=before, cut=cut, tokens=tokens, edits=edits, edited_tokens=edited_tokens)


def _edits_beside(
    request: EvictionRequest, before: set[int], result: EvictionResult, name: str
) -> dict[int, Mapping[Path, str]]:
    """Look over the edits beside a cut, before which some messages stay."""
    cut, oldest = result.cut or 0, min(edit.index for edit in result.edits)
    newest = max(edit.index for edit in result.edits)
    near = [span for span in request.told if span[0] <= newest and span[1] > oldest]
    staying = [unit_of(span) for span in near if span[0] >= cut or span[0] in before]
    return _checked_edits(request, staying, result, name)


def _settle_units(request: EvictionRequest, result: EvictionResult, name: str) -> Settled:
    kept = _checked_units(request, result, name)
    edits = _checked_edits(request, kept, result, name)
    kept, misplaced, needed = _in_order(request, kept, edits, result)
    edits = {index: texts for index, texts in edits.items() if index not in misplaced}
    cut = request.history.count
    whole = len(kept)
    while whole and _ends_at(kept[whole - 1], cut, edits):
        whole -= 1
        cut = kept[whole].indices[0]
    before, partial = _messages_of(request, kept[:whole])
    while before and before[-1] >= cut - 1 and before[-1] not in partial and before[-1] not in edits:
        cut = min(cut, before.pop())
    insertions: list[Insertion] = []
    if result.insertions:
        insertions = _checked_insertions(result, {*before, *range(cut, request.history.count)}, name)
    settled = Settled(
        before=before,
        cut=cut,
        partial=partial,
        edits=edits,
        insertions=insertions,
        reasons={
            **{index: one.reason for one in insertions for index in one.covers},
            **dict.fromkeys(misplaced, "cannot_lead"),
        },
        inserted_tokens=[request.costs.insertion(insertion) for insertion in insertions],
        tokens=request.costs.total(kept, edits, insertions),
        needed_tokens=needed,
    )
    settled.edited_tokens = {
        index: request.costs.rest(index, edits.get(index), partial.get(index)) for index in settled.changed
    }
    return settled


def _ends_at(unit: Unit, stop: int, edits: Mapping[int, Mapping[Path, str]]) -> bool:
    """Tell whether a unit is whole, as it was, and all that stands from its first message to `stop`."""
    first, last = unit.indices[0], unit.indices[-1]
    whole = last == stop - 1 and last - first + 1 == len(unit.indices) and not unit.parts
    return whole and (not edits or edits.keys().isdisjoint(unit.indices))


def _in_order(
    request: EvictionRequest,
    kept: list[Unit],
    edits: Mapping[int, Mapping[Path, str]],
    result: EvictionResult,
) -> tuple[list[Unit], frozenset[int], int | None]:
    """Put what the units need in front to them if there is room, and let go of what is refused even so.

    Returns:
        What still stays, the messages that went for this, and what would be needed where that did not help.
    """
    complete = request.with_openers(kept, result.insertions)
    if len(complete) > len(kept):
        tokens = request.costs.total(complete, edits, result.insertions)
        kept = list(complete) if tokens <= request.limit_tokens or not result.fits else kept
    result = replace(result, fits=result.fits or fit_in_order(request, kept, edits, result.insertions))
    kept, misplaced = kept_in_order(request, kept, result.insertions)
    if not result.fits or len(kept) == len(request.told):
        return kept, misplaced, None
    kept, gone, needed = _begun_with_thinking(request, kept, edits, result)
    return kept, misplaced | gone, needed


def _begun_with_thinking(
    request: EvictionRequest,
    kept: list[Unit],
    edits: Mapping[int, Mapping[Path, str]],
    result: EvictionResult,
) -> tuple[list[Unit], frozenset[int], int | None]:
    """Let go of what would open the last turn without thinking.

    Where an answer was evicted, the words behind it may make one turn of the last and of what was before.
    What must stay there needs that answer: it comes back if there is room.
    """
    gone, there = set[int](), {unit.first for unit in kept}
    while (index := headless(request.history, kept, lambda: request.told_units)) is not None:
        at = next(at for at, unit in enumerate(kept) if index in unit.indices)
        if not request.stays(kept[at]):
            gone.update(kept.pop(at).indices)
            continue
        between = _answer_behind(request, index)
        if between is None or between.first in there:
            break  # it stands there, or was of no help
        there.add(between.first)
        kept = sorted([*kept, between], key=lambda unit: unit.indices)
        tokens = request.costs.total(kept, edits, result.insertions)
        if tokens > request.limit_tokens:
            return kept, frozenset(), tokens
    return kept, frozenset(gone.difference(*(unit.indices for unit in kept))), None


def _answer_behind(request: EvictionRequest, index: int) -> Unit | None:
    """Return the unit of what the model said last in the turn of a message, before the user's next words."""
    user = request.history.user_at_or_after(index + 1)
    return None if user is None else next((u for u in request.told_units if user - 1 in u.indices), None)


def _checked_units(request: EvictionRequest, result: EvictionResult, name: str) -> list[Unit]:
    """Check the kept units: ours, whole, once each, in order, and none missing that must be kept."""
    cut = result.cut
    if cut is None:
        places = _places(request.told, result.kept, name)
        if any(a >= b for a, b in pairwise(places)):
            breach(name, "changed the order of units, or kept one twice")
        chosen = set(places)
        for place in places_that_stay(request):
            if place not in chosen:
                span = request.told[place]
                state = "protected by an earlier step" if span[2] == "free" else span[2]
                breach(name, f"evicts {unit_of(span)}, which is {state}")
        return list(result.kept)
    from_cut = _place_of_cut(request, cut, name)
    chosen = set(_places(request.told, result.kept, name))
    units = request.told_units
    return [unit for at, unit in enumerate(units) if at >= from_cut or at in chosen or request.stays(unit)]


def _place_of_cut(request: EvictionRequest, cut: int, name: str) -> int:
    """Return where in the row the units from a cut on begin."""
    row = request.told
    at = bisect_left(row, cut, key=itemgetter(0))
    if cut != request.history.count and (at == len(row) or row[at][0] != cut):
        breach(name, f"cuts at message {cut}, where no unit begins")
    return at


def _places(row: Sequence[Span], kept: Iterable[Unit], name: str) -> list[int]:
    """Find where kept units stand among those of the request; ones made again are known by what they hold."""
    places, at, firsts = [], 0, [span[0] for span in row]
    for unit in kept:  # in order, mostly neighbors: the next place is tried before it is looked for
        first = unit.indices[0]
        if at == len(row) or firsts[at] > first or row[at][1] <= first:  # else it is the next one
            at = bisect_left(firsts, first)
        while at < len(row) and firsts[at] <= first and not _is_same(row[at], unit):
            at += 1
        if at == len(row) or firsts[at] > first:
            breach(name, f"keeps {unit!r}, which is not a unit of the request")
        places.append(at)
        at += 1
    return places


def _is_same(span: Span, unit: Unit) -> bool:
    if span[4] is not None:
        return span[4] is unit or unit_key(span[4]) == unit_key(unit)
    indices = unit.indices
    if len(indices) == 1:
        return not unit.parts and span[1] == indices[0] + 1 == span[0] + 1
    return not unit.parts and indices == tuple(range(span[0], span[1]))


def _checked_edits(
    request: EvictionRequest, kept: Iterable[Unit], result: EvictionResult, name: str
) -> dict[int, Mapping[Path, str]]:
    """Look the edits over: in messages that stay and are not pinned, at places that hold text.

    Each is looked over once: what a Cascade answers has the edits of its steps, the same objects.
    """
    if not result.edits:
        return {}
    known, owners = request.known_edits, dict[int, list[Unit]]()
    edited = {edit.index for edit in result.edits}
    for unit in kept:
        for index in edited.intersection(unit.indices):
            owners.setdefault(index, []).append(unit)
    for edit in result.edits:
        if edit.index not in owners:
            breach(name, f"edits message {edit.index}, which is evicted")
        if known.get(edit.index) is not edit.texts:
            _check_places(request, edit, owners[edit.index], name)
    edits = _edits_by_index(result)
    for index, texts in edits.items():
        if known.get(index) is texts:
            continue
        if (fault := request.fault_with(index, texts)) is not None:
            breach(name, f"edits message {index} so that the provider refuses it: {fault.detail}")
        known[index] = texts
    return edits


def _check_places(request: EvictionRequest, edit: Edit, units: Iterable[Unit], name: str) -> None:
    """Check that an edit is of text, and of none that is pinned."""
    if any(u.state == "pinned" and owns_text(u, edit.index, path) for u in units for path in edit.texts):
        breach(name, f"edits message {edit.index}, which is pinned")
    there = {slot.path for slot in request.texts(edit.index)}
    if not there.issuperset(edit.texts):
        breach(name, f"edits message {edit.index} at {set(edit.texts) - there}, where no text is")


def _edits_by_index(result: EvictionResult) -> dict[int, Mapping[Path, str]]:
    return merge_edits({}, ((edit.index, edit.texts) for edit in result.edits))


def _checked_insertions(result: EvictionResult, kept: set[int], name: str) -> list[Insertion]:
    """Look over what is put in: in order, and only in place of what was evicted."""
    found = sorted(result.insertions, key=lambda insertion: insertion.at)
    for insertion in found:
        if not insertion.covers.isdisjoint(kept):
            breach(name, f"puts in {insertion.why!r}, which stands for messages that stay")
        if insertion.at not in insertion.covers:
            breach(name, f"puts in {insertion.why!r} at message {insertion.at}, in place of none")
    return found


def _messages_of(
    request: EvictionRequest, kept: Iterable[Unit]
) -> tuple[list[int], dict[int, frozenset[int]]]:
    """List the messages of units, and of those that are shared, which parts stay."""
    structure = request.history.structure
    found: set[int] = set()
    parts: dict[int, set[int]] = {}
    for unit in kept:
        found.update(unit.indices)
        for index, own in unit.parts.items():
            parts.setdefault(index, set()).update(own)
    partial = {}
    for index, kept_parts in parts.items():
        if kept_parts != structure.parts_of(index):
            partial[index] = frozenset(kept_parts)
    return sorted(found), partial
