"""Would the provider accept this conversation, and the least change that makes it so.

`validate` lists what a provider would refuse; `repair` takes out results without a call and calls
without a result, moves results to where they belong, and mends the shape of a message where its form
can. Neither changes what it was given.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from operator import is_
from typing import Any, Literal

from trimtab._shared.checks import check_messages, check_model, check_pending_calls
from trimtab.conversation.order import order_faults
from trimtab.conversation.pairing import Pairing, late_results, open_calls, owners_behind, pair
from trimtab.conversation.repairs import Change, Placed, mend
from trimtab.conversation.transcript import last_turn_of
from trimtab.errors import FormatError
from trimtab.formats import Fault, Format, Request, Rules, Structure, format_of, mapping_of, refuse_foreign
from trimtab.models import model_in
from trimtab.report import Violation

__all__ = ["Change", "Repaired", "Violation", "repair", "validate"]

PairRule = Literal["orphan_result", "repeated_result", "unanswered_call", "open_call", "late_result"]
"""The rules about calls and results; any other rule is about the shape of one message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repaired:
    """A repaired conversation, and what was repaired.

    Args:
        messages: A new list; messages that needed no edit are the caller's own objects.
        changes: The repairs, by position in the input; empty if there were none.
        positions: The position in the input of each message of the result.
        request: The result in the form of the input: a copy of the request body, or the list.
    """

    messages: list[Any]
    """A new list; messages that needed no edit are the caller's own objects."""
    changes: tuple[Change, ...]
    """The repairs, by position in the input; empty if there were none."""
    positions: tuple[int, ...]
    """The position in the input of each message of the result."""
    request: Any
    """The result in the form of the input: a copy of the request body, or the list."""


def validate(
    messages: Sequence[Any] | Mapping[str, Any],
    *,
    format: str | Format = "auto",
    model: str | None = None,
    pending_calls: Collection[str] = (),
) -> list[Violation]:
    """List what the provider would refuse in a conversation, by position.

    The rest of a request body matters too: its model, system text, tools, thinking, marks for the prompt
    cache, and whether it has any message at all. A list without messages is not a fault: it may be part of a
    request.

    Args:
        messages: A list of messages or a request body; entries that are not messages are reported.
        format: Name of the wire form; "auto" decides by the shapes that occur.
        model: Name of the target model, which decides what is refused; None: the model that a body names.
        pending_calls: Ids of calls whose results are still to come; these calls count as open.

    Returns:
        Violations sorted by index, those of the whole request first; `[]` if the provider would accept it.
        The provider does not refuse those with `fault=False`.

    Raises:
        ConfigurationError: `messages` is neither a list nor a body, or `pending_calls` is not a list of ids.
        FormatError: A request body has no list of messages.
        UnknownNameError: No wire form has that name.

    Complexity: O(n) in messages, parts and calls.

    Example:
        >>> for found in validate([{"role": "tool", "tool_call_id": "a", "content": "4"}]):
        ...     print(found.index, found.rule, found.call_id)
        0 orphan_result a
    """
    pending = check_pending_calls(pending_calls)
    chosen, request = _read(messages, format, model)
    return violations_in(chosen, request, pending)


def violations_in(
    format: Format, request: Request, pending_calls: Collection[str], columns: Structure | None = None, /
) -> list[Violation]:
    """List what the provider would refuse in a request that was taken apart; see `validate`.

    Args:
        format: The wire form.
        request: The request.
        pending_calls: Ids of calls whose results are still to come.
        columns: What was read of its messages already, of which each is a dict; None: nothing.
    """
    items, broken = _readable(request.messages)
    refuse_foreign(items, format.name, listed=True)
    structure = Structure(len(items)) if columns is None else columns
    if columns is None:
        format.scan(items, 0, len(items), structure)
    structure.elsewhere |= request.elsewhere
    is_more = request.body is not None or request.system is not None or request.tools is not None
    faults = format.faults(items, request) if is_more else format.faults(items)
    unread = {violation.index for violation in broken}
    found = [
        *broken,
        *(_shape_violation(fault) for fault in faults if fault.index is None or fault.index not in unread),
        *_order_violations(format, items),
        *_pair_violations(format, items, structure, pending_calls),
    ]
    return sorted(found, key=lambda violation: -1 if violation.index is None else violation.index)


def is_paired(format: Format, messages: Sequence[Any], pending_calls: Collection[str]) -> bool:
    """Tell whether calls and results match, and each message stands where the provider takes it."""
    structure = Structure(len(messages))
    items = [*messages]
    format.scan(items, 0, len(items), structure)
    found = _pair_violations(format, items, structure, pending_calls)
    is_broken = bool(structure.dangling) or any(one.fault for one in found)
    return not is_broken and next(order_faults(format, items), None) is None


def repair(
    messages: Sequence[Any] | Mapping[str, Any],
    *,
    format: str | Format = "auto",
    model: str | None = None,
    pending_calls: Collection[str] = (),
) -> Repaired:
    """Repair what a provider refuses: unmatched calls and results, and shapes.

    The wire form repairs a message of a wrong shape (`Format.mend`): an empty text is removed, and arguments
    are written as the provider reads them. What no form can repair, and faults outside the messages, are
    kept, and `validate` lists them. Orphaned and repeated results are removed, and so are unanswered calls
    that are not open. A message is removed if nothing of it remains, or nothing of what it depends on. A
    result is kept if the provider may have stored its call. A late result moves to the place after its call
    and the results already there; if results must come first in their message, they move there. If the
    provider still refuses the order of a message, the message is removed with its unit. If no message that
    may come first would remain, the first message is kept, and `validate` lists it. If a conversation
    consists of orphans only, an empty list remains, which every provider refuses: no message is invented. A
    valid conversation is returned as a new list of the same objects.

    Args:
        messages: A list of messages or a request body; never changed.
        format: Name of the wire form; "auto" decides by the shapes that occur.
        model: Name of the target model, which decides what is refused; None: the model that a body names.
        pending_calls: Ids of calls whose results are still to come; these calls stay.

    Raises:
        ConfigurationError: `messages` is neither a list nor a body, or `pending_calls` is not a list of ids.
        FormatError: An entry is not a message, or the body has no list of messages.
        UnknownNameError: No wire form has that name.

    Complexity: O(n) in messages, parts and calls.

    Example:
        >>> repair([{"role": "user", "content": "2 + 2?"},
        ...         {"role": "tool", "tool_call_id": "a", "content": "4"}]).messages
        [{'role': 'user', 'content': '2 + 2?'}]
    """
    pending = check_pending_calls(pending_calls)
    chosen, request = _read(messages, format, model)
    originals = list(request.messages)
    refuse_foreign(originals, chosen.name, listed=True)
    result, changes = mend(chosen, originals, elsewhere=request.elsewhere, pending_calls=pending)
    if changes and chosen.thinking_rules(model or request.model or None, request.body).bound:
        result, stale = _without_stale(chosen, originals, result)
        changes = (*changes, *stale)
    kept = [placed.message for placed in result]
    return Repaired(
        messages=kept,
        changes=changes,
        positions=tuple(placed.position for placed in result),
        request=chosen.write_request(request, kept),
    )


def _without_stale(
    format: Format, originals: Sequence[Any], placed: Sequence[Placed]
) -> tuple[list[Placed], list[Change]]:
    """Take out the thinking that the model refuses behind the first change."""
    same = sum(1 for _ in takewhile(bool, map(is_, (one.message for one in placed), originals)))
    made, changes = list(placed[:same]), list[Change]()
    for one in placed[same:]:
        message = format.without_thinking(one.message)
        if message is not None:
            made.append(Placed(one.position, message))
        if message is not one.message:
            action: Literal["removed", "edited"] = "removed" if message is None else "edited"
            found = Change(index=one.position, action=action, rule="bound_thinking", call_id=None)
            changes.append(found)
    return made, changes


def _read(messages: Any, format: str | Format, model: str | None) -> tuple[Format, Request]:
    check_messages(messages)
    check_model(model)
    model = model or model_in(messages)
    chosen = format_of(messages, format, model).for_model(model)
    if isinstance(messages, Mapping):
        return chosen, chosen.read_request(messages)
    return chosen, Request(messages=messages)


def _readable(messages: Sequence[Any]) -> tuple[list[Any], list[Violation]]:
    """Read every entry as a dict; one that is no message becomes an empty one and a violation."""
    items: list[Any] = []
    broken: list[Violation] = []
    if set(map(type, messages)) <= {dict}:
        return list(messages), broken
    for index, message in enumerate(messages):
        try:
            items.append(mapping_of(message))
        except FormatError as error:
            items.append({})
            broken.append(Violation(index=index, rule="not_a_message", message=f"messages[{index}]: {error}"))
    return items, broken


def _shape_violation(fault: Fault) -> Violation:
    return Violation(index=fault.index, rule=fault.rule, message=_where(fault))


def _order_violations(format: Format, items: list[Any]) -> Iterator[Violation]:
    for index, words in order_faults(format, items):
        yield Violation(index=index, rule="wrong_order", message=f"messages[{index}]: {words}")


def _where(fault: Fault) -> str:
    keys = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in fault.path)
    if fault.index is None:
        return f"request{keys}: {fault.detail}"
    return f"messages[{fault.index}]{keys}: {fault.detail}"


def _pair_violations(
    format: Format, items: list[Any], structure: Structure, pending_calls: Collection[str]
) -> Iterator[Violation]:
    if owners_behind(structure, in_one=format.rules.results_in_one) is not None:
        return
    pairing = pair(structure, range(structure.count))
    yield from _result_violations(format.rules, items, structure, pairing)
    last_turn = last_turn_of(structure.count, structure.kinds.get, structure.bound.__contains__)
    still_open = open_calls(pairing, last_turn=last_turn, pending_calls=pending_calls)
    for index, call_id in pairing.unanswered:
        if (index, call_id) in still_open:
            text = f"call {call_id!r} waits for its result"
            yield Violation(index=index, rule="open_call", message=text, call_id=call_id, fault=False)
        else:
            text = f"call {call_id!r} has no result"
            said = _said_of(items[index], format.rules, format.rules.unanswered_call)
            yield _violation(format.rules, index, "unanswered_call", call_id, text, said)


def _said_of(message: Any, rules: Rules, said: str) -> str:
    """Return the provider's words for a message of its type."""
    kind = message.get("type") if rules.words_by_type else None
    return rules.words_by_type.get(kind, said) if isinstance(kind, str) else said


def _result_violations(
    rules: Rules, items: list[Any], structure: Structure, pairing: Pairing
) -> Iterator[Violation]:
    in_one = rules.results_in_one and not rules.takes_apart
    late = late_results(structure, pairing, in_one=in_one) if rules.results_follow_call else frozenset()
    behind_call: set[int] = set()
    for index, answers in structure.answers.items():
        if index - 1 in structure.calls or index - 1 in behind_call:
            behind_call.add(index)
        for (call_id, part), owner in zip(answers, pairing.owner[index], strict=True):
            if owner is None and structure.elsewhere and call_id:
                text = f"messages[{index}]: result for {call_id!r}, whose call must be among stored messages"
                yield Violation(index=index, rule="orphan_result", call_id=call_id, message=text, fault=False)
            elif owner is None:
                stray = rules.stray_result if index in behind_call and call_id else ""
                said = stray or _said_of(items[index], rules, rules.orphan_result)
                text = f"result for {call_id!r}, which no earlier message calls"
                yield _violation(rules, index, "orphan_result", call_id, text, said)
            elif (index, part) in pairing.repeated:
                text = f"a further result for call {call_id!r} of messages[{owner}]"
                yield _violation(rules, index, "repeated_result", call_id, text, rules.repeated_result)
            elif (index, part) in late:
                text = f"result for call {call_id!r} does not directly follow messages[{owner}]"
                yield _violation(rules, index, "late_result", call_id, text, rules.late_result)


def _violation(rules: Rules, index: int, rule: PairRule, call_id: str, text: str, said: str) -> Violation:
    """Make a violation of a pair rule with the provider's words, as far as it has any."""
    if rules.unchecked_prefix is not None and call_id.startswith(rules.unchecked_prefix):
        said = "the provider does not check this pair, but half of it misleads the model"
    quoted = said.format(call_id=call_id, index=index)
    message = f"messages[{index}]: {text}" + (f"; {quoted}" if quoted else "")
    return Violation(index=index, rule=rule, message=message, call_id=call_id or None)
