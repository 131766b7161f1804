"""The rules of SPEC for requests of several blocks, as predicates over an answer, without our code.

What a block may take follows from what the others took in the same answer, so nothing is chosen here: it
is only asked whether a block could have had more (D5, D6), and whether it gave way as its strategy does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, groupby, permutations, product
from typing import Any

from tests.conformance.blocks import SUMMARY, Composition, Message
from tests.conformance.judging import Answer, Rule
from tests.conformance.predicates import (
    MISCONFIGURED,
    OVER_BUDGET,
    cut_is_a_window,
    no_needless_window,
    units_whole,
)

CUT = "[text cut by trimtab]"
"""How trimtab marks what it cut (SPEC A10)."""


def composition_rules(case: Composition) -> dict[str, Rule]:
    """Give the rules that explain why a request differs from a reference's, the weightiest first."""
    rules: dict[str, Callable[[Composition, Answer], bool]] = {
        "D2": options_in_range,
        "A1": within_room,
        "A10": cuts_show,
        "A2": blocks_keep_units_whole,
        "A4": error_only_if_it_must,
        "C3": windows_are_windows,
        "C6": oldest_cut_first,
        "C8": summaries_are_marked,
        "D5": rank_before_rank,
        "D6": ties_as_said,
    }
    return {name: _over(case, rule) for name, rule in rules.items()}


def composition_guards(case: Composition) -> dict[str, Rule]:
    """Give the rules that hold ours to what is left."""
    guards = {"A3": once_in_order, "A8": all_adds_up, "C2": whole_or_gone, "D11": labels_tell}
    return {name: _over(case, rule) for name, rule in guards.items()}


def _over(case: Composition, rule: Callable[[Composition, Answer], bool]) -> Rule:
    return lambda answer: rule(case, answer)


def options_in_range(case: Composition, answer: Answer) -> bool:
    """D2: an option out of range is an error, and nothing else is one of that kind."""
    return (answer.get("error") in MISCONFIGURED) == case.faults


def within_room(case: Composition, answer: Answer) -> bool:
    """A1: what comes out is at most the room."""
    return "error" in answer or case.size(case.output(answer)) <= case.room


def once_in_order(case: Composition, answer: Answer) -> bool:
    """A3 and D4: what is kept is the input's, once each; by position, then in order of adding."""
    kept = answer.get("kept", ())
    return list(kept) == [item for item in case.items if item in set(kept)]


def blocks_keep_units_whole(case: Composition, answer: Answer) -> bool:
    """A2: no result without its call, no call without all of its results."""
    return "error" in answer or all(
        units_whole(slot.chosen, case.own(answer, at)) for at, slot in enumerate(case.slots)
    )


def error_only_if_it_must(case: Composition, answer: Answer) -> bool:
    """A4: an error exactly when what must stay passes the room or a cap, or a strategy cannot fit."""
    if answer.get("error") != OVER_BUDGET:
        return "error" in answer or all(_stays(case, answer, at) for at in range(len(case.slots)))
    over_cap = any(slot.must > slot.cap_tokens for slot in case.slots if slot.cap_tokens is not None)
    if over_cap or sum(slot.must for slot in case.slots) > case.room:
        return True
    left = case.room - sum(case.held)
    for at in case.turns:
        slot, limit = case.slots[at], min(case.slots[at].most, left + case.held[at])
        least = slot.need if slot.chosen.kind == "strict" else slot.chosen.tokens(slot.chosen.protected)
        if least > limit:
            return True
        if slot.need > limit and slot.chosen.kind == "sliding_window":
            least = slot.window_tokens(limit)
        left += case.held[at] - (slot.need if slot.need <= limit else least)
    return False


def _stays(case: Composition, answer: Answer, at: int) -> bool:
    chosen = case.slots[at].chosen
    must = range(len(chosen.messages)) if chosen.kind == "strict" else chosen.protected
    return set(must).issubset(case.own(answer, at)["kept"])


def windows_are_windows(case: Composition, answer: Answer) -> bool:
    """C3: the oldest leave; beside the cut only the message that opened its turn stays."""
    if "error" in answer:
        return True
    limits = case.offered(answer, case.turns)
    return all(
        cut_is_a_window(replace(slot.chosen, limit=limits[at]), case.own(answer, at))
        for at, slot in enumerate(case.slots)
        if slot.chosen.kind == "sliding_window"
    )


def whole_or_gone(case: Composition, answer: Answer) -> bool:
    """C2: of a block that is dropped only what must stay is left."""
    return "error" in answer or all(
        set(case.own(answer, at)["kept"]) in (set(range(len(slot.chosen.messages))), slot.chosen.protected)
        for at, slot in enumerate(case.slots)
        if slot.chosen.kind == "drop"
    )


def texts(message: Message) -> list[str]:
    """List the texts of a message."""
    content = message.get("content") or ""
    return [content] if isinstance(content, str) else [part["text"] for part in content if "text" in part]


def cuts_show(case: Composition, answer: Answer) -> bool:
    """A10: where text was cut a marker stands, so what is left is more than a part of the text."""
    return "error" in answer or all(
        new == old or new not in old
        for at, slot in enumerate(case.slots)
        for index, message in case.changed(answer, at).items()
        for old, new in zip(texts(slot.chosen.messages[index]), texts(message), strict=False)
    )


def oldest_cut_first(case: Composition, answer: Answer) -> bool:
    """C6: of a block with `char` the oldest leave, the next is cut, the rest stays whole.

    A cut keeps the structure, and some of the text. No other block is cut into.
    """
    if "error" in answer:
        return True
    for at, slot in enumerate(case.slots):
        changed = case.changed(answer, at)
        left = slot.chosen.left(case.own(answer, at))
        if slot.chosen.kind != "truncate_text":
            if changed:
                return False
            continue
        cut = [unit for unit in slot.chosen.free if changed.keys() & set(unit)]
        if len(cut) > 1 or left + cut != slot.chosen.free[: len(left) + len(cut)]:
            return False
        if not all(_same_but_text(slot.chosen.messages[index], one) for index, one in changed.items()):
            return False
    return True


def _same_but_text(old: Message, new: Message) -> bool:
    def bare(message: Message) -> Message:
        content = message["content"]
        return {**message, "content": "" if isinstance(content, str) else [_bare(part) for part in content]}

    return bare(old) == bare(new) and any(map(_tail, texts(old), texts(new)))


def _bare(part: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**part, "text": ""} if "text" in part else part


def _tail(old: str, new: str) -> str:
    """Return how two texts end alike."""
    length = 0
    while length < min(len(old), len(new)) and old[-length - 1] == new[-length - 1]:
        length += 1
    return old[len(old) - length :]


def summaries_are_marked(case: Composition, answer: Answer) -> bool:
    """C8: one marked message for all that is free, if it fits and is smaller; else the fallback, and told.

    The fallback here is `Drop`, and the cap the limit.
    """
    if "error" in answer:
        return True
    limits = case.offered(answer, case.turns)
    for at, slot in enumerate(case.slots):
        if slot.chosen.kind != "summarize":
            continue
        kept, limit = set(case.own(answer, at)["kept"]), limits[at]
        text = answer.get("summaries", {}).get(at) if (at, SUMMARY) in answer["kept"] else None
        size = slot.chosen.size([{"role": "user", "content": slot.marked_summary}])
        written = bool(slot.summary.strip())
        usable = written and slot.need > limit and size <= limit and size < slot.free_tokens
        wanted = slot.chosen.protected if slot.need > limit else set(range(len(slot.chosen.messages)))
        if kept != wanted or text != (slot.marked_summary if usable else None):
            return False
        if "labels" in answer and (answer["labels"].get(at) == "summarized") != usable:
            return False
    return True


def labels_tell(case: Composition, answer: Answer) -> bool:
    """D11: what was done to a block is told where something was."""
    if "labels" not in answer:
        return True
    whole = {at for at, slot in enumerate(case.slots) if case.used(answer, at) == slot.need}
    return set(answer["labels"]) | whole == set(range(len(case.slots)))


def all_adds_up(case: Composition, answer: Answer) -> bool:
    """A8: the totals told are the size of what came in and of what came out."""
    if "tokens" not in answer:
        return True
    tokens = case.size(case.output(answer))
    before = case.size([message for slot in case.slots for message in slot.chosen.messages])
    return (
        bool(answer["tokens"] == tokens)
        and answer.get("tokens_before", before) == before
        and answer.get("remaining_tokens", case.room - tokens) == case.room - tokens
    )


def rank_before_rank(case: Composition, answer: Answer) -> bool:
    """D5: floors first if they fit, then rank by rank, and no block over its cap, in some order of ties."""
    if "error" in answer:
        return True
    ranks = [list(group) for _, group in groupby(case.turns, key=lambda at: case.slots[at].rank)]
    orders = (list(chain(*order)) for order in product(*map(permutations, ranks)))
    in_cap = all(case.used(answer, at) <= slot.most for at, slot in enumerate(case.slots))
    return in_cap and any(_served_in(case, answer, turns) for turns in orders)


def ties_as_said(case: Composition, answer: Answer) -> bool:
    """D6: among equal ranks the one added later is served first, or with "first" the other."""
    return "error" in answer or _served_in(case, answer, case.turns)


def _served_in(case: Composition, answer: Answer, turns: Sequence[int]) -> bool:
    """A11: tell whether no block could have had more of what it was offered in this order."""
    limits = case.offered(answer, turns)
    return not any(_could_have_more(case, answer, at, limit) for at, limit in limits.items())


def _could_have_more(case: Composition, answer: Answer, at: int, limit: int) -> bool:
    """A11: tell whether what a block let go last would fit into a limit beside what it kept."""
    slot, own = case.slots[at], case.own(answer, at)
    if len(own["kept"]) == len(slot.chosen.messages) and not case.changed(answer, at):
        return False
    if slot.need <= limit:
        return True
    if slot.chosen.kind == "sliding_window":
        return not no_needless_window(replace(slot.chosen, limit=limit), own)
    return slot.chosen.kind == "truncate_text" and _longer_cut_fits(case, answer, at, limit)


def _longer_cut_fits(case: Composition, answer: Answer, at: int, limit: int) -> bool:
    """C6: tell whether one character more of the message at the cut would fit, or a first one of the next."""
    chosen = case.slots[at].chosen
    changed = case.changed(answer, at)
    if changed:
        cut = min(changed)
        shown = _tail(texts(chosen.messages[cut])[0], texts(changed[cut])[0])
    else:
        cut, shown = chosen.left(case.own(answer, at))[-1][-1], ""
    message = chosen.messages[cut]
    more = texts(message)[0][-len(shown) - 1 :]
    content: Any = CUT + more
    if not isinstance(message["content"], str):
        content = [_bare(part) for part in message["content"]]
    kept = sorted({*case.own(answer, at)["kept"], cut})
    rest = [changed.get(i, chosen.messages[i]) for i in kept if i != cut]
    return chosen.size([*rest, {**message, "content": content}]) <= limit
