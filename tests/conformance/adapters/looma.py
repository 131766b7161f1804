"""ctx.slots of looma (SEMANTICS L): slots are blocks; its final pass is `fit`; and its history reading (L20).

Two slots of one name are two blocks (L1), so the second gets a name of its own. A budget is what is left
for the input; without one nothing is trimmed (L8). An attachment is a content part.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.conformance.adapters._composed import composed, room_of
from tests.conformance.adapters._measure import ROOMY
from tests.conformance.blocks import Composition, Slot
from tests.conformance.compositions import composition_guards, composition_rules
from tests.conformance.counters import LoomaCounter, looma_message, looma_text, looma_text_function
from tests.conformance.judging import Answer, Rule, Trial, attempt
from tests.conformance.predicates import (
    Selection,
    budget_rules,
    pinned_unchanged,
    same_objects_rule,
    selection_guards,
    selection_rules,
)
from tests.conformance.scripted import number
from tests.conformance.vectors import Case
from trimtab import Budget, Context, counter_from_text, fit
from trimtab.history import recent, span, within

Message = dict[str, Any]


def _render(case: Case) -> Trial:
    """Lay slots out within a budget."""
    data = case.input
    if refused := _refused(case, data.get("token_budget")):
        return refused
    budget = _room(data.get("token_budget"))
    slots = [{**slot, "options": _numbers(slot.get("options") or {})} for slot in data["slots"]]
    sources = [_messages(slot) for slot in slots]
    names = _names(slots)

    def ours() -> Answer:
        counter = LoomaCounter(data["counter"])
        context = Context(ROOMY if budget is None else room_of(budget), counter=counter, format="openai_chat")
        updates = []
        for name, slot in zip(names, slots, strict=True):
            context.add(name, _content(slot), **_options(name, slot))
            if not context.blocks[-1].is_empty:
                updates.append([block.name for block in context.blocks if not block.is_empty])
        fitted = context.fit()
        answer = composed(fitted, names)
        told = {"messages": fitted.messages, "tokens": answer["tokens"]}
        if data.get("want_updates"):
            told["updates"] = updates
        return {"kept": answer["kept"], "changed": answer["changed"], **told}

    whole = _composition(slots, sources, ROOMY.window if budget is None else max(0, budget), data["counter"])
    return Trial(
        expected=_expected(case, slots, sources, whole),
        ours=attempt(ours),
        rules=composition_rules(whole),
        guards=composition_guards(whole),
        items=whole.items,
    )


def _room(budget: Any) -> int | None:
    """Read a budget as L8: a whole number of tokens, at least 0; None is no budget at all."""
    given = number(budget)
    return None if given in (None, math.inf) else max(0, math.floor(given)) if math.isfinite(given) else 0


def _refused(case: Case, budget: Any) -> Trial | None:
    """Give the trial of a budget that is no number (L8 takes it for none); None of any other."""
    given = number(budget)
    if not (isinstance(given, float) and math.isnan(given)):
        return None
    ours = attempt(lambda: {"budget": Budget(given)})
    return Trial(expected=case.expected, ours=ours, rules=budget_rules(0, 0, window=given))


def _numbers(options: Mapping[str, Any]) -> dict[str, Any]:
    """Read numbers that JSON has no word for."""
    return {key: number(value) for key, value in options.items()}


def _names(slots: Sequence[Mapping[str, Any]]) -> list[str]:
    names: list[str] = []
    for slot in slots:
        name = slot["name"]
        names.append(name if name not in names else f"{name} {len(names)}")
    return names


def _options(name: str, slot: Mapping[str, Any]) -> dict[str, Any]:
    """Give a slot that had to be renamed the role its name stands for (L4)."""
    options = dict(slot["options"])
    if name != slot["name"] == "system" and _is_text(slot["content"]):
        options.setdefault("role", "system")
    return options


def _is_text(content: Any) -> bool:
    return isinstance(content, str) or (isinstance(content, dict) and "attachments" in content)


def _content(slot: Mapping[str, Any]) -> Any:
    content = slot["content"]
    if isinstance(content, dict) and "attachments" in content:
        return {"text": content["text"], "attachments": list(_parts(content["attachments"]))}
    return content


def _parts(attachments: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Write attachments as content parts: a name and a file each (L5)."""
    for file in attachments:
        yield {"type": "text", "text": f"File: {file['name']}"}
        yield {"type": "file", "file": {"file_id": file["id"]}, "attachment": file}


def _messages(slot: Mapping[str, Any]) -> list[Message]:
    """Write what a slot holds as the messages that enter the request."""
    content, role = slot["content"], slot["options"].get("role")
    if content is None:
        return []
    if _is_text(content):
        role = role or ("system" if slot["name"] == "system" else "user")
        if isinstance(content, str) or not content["attachments"]:
            return [{"role": role, "content": content if isinstance(content, str) else content["text"]}]
        text = {"type": "text", "text": content["text"]}
        return [{"role": role, "content": [text, *_parts(content["attachments"])]}]
    listed = content if isinstance(content, list) else [content]
    return [{**message, "role": role} if role else message for message in listed]


def _shown(message: Mapping[str, Any]) -> Message:
    """Write a message of looma as one of ours: its parts, if it has some, are its content."""
    shown = {key: value for key, value in message.items() if key not in ("src", "parts", "attachments")}
    if parts := message.get("parts"):
        shown["content"] = [parts[0], *_parts(message["attachments"])]
    return shown


def _expected(
    case: Case, slots: Sequence[Mapping[str, Any]], sources: Sequence[Sequence[Message]], whole: Composition
) -> Answer:
    """Find out which messages came out: those of texts are told by their place and how they end."""
    texts = iter([at for at, index in whole.items if _is_text(slots[at]["content"])])
    kept: list[tuple[int, int]] = []
    changed: dict[tuple[int, int], Message] = {}
    shown = [_shown(message) for message in case.expected["messages"]]
    for message, one in zip(case.expected["messages"], shown, strict=True):
        if "src" in message:
            item = tuple(message["src"])
        else:
            item = (next(at for at in texts if _may_be(one, sources[at][0], slots[at])), 0)
        kept.append(item)
        if one != sources[item[0]][item[1]]:
            changed[item] = one
    told = {"messages": shown, "tokens": case.expected["total_tokens"]}
    if "updates" in case.expected:
        told["updates"] = case.expected["updates"]
    return {"kept": kept, "changed": changed, **told}


def _may_be(shown: Message, source: Message, slot: Mapping[str, Any]) -> bool:
    """Tell whether a message can be what a slot shows: itself, or cut, which drops attachments, too."""
    if shown["role"] != source["role"]:
        return False
    if not isinstance(source["content"], str):
        return True
    is_cut = slot["options"].get("trim_behavior") == "char" and source["content"].endswith(shown["content"])
    return is_cut or shown["content"] == source["content"]


def _composition(
    slots: Sequence[Mapping[str, Any]],
    sources: Sequence[Sequence[Message]],
    room: int,
    counter: Mapping[str, Any],
) -> Composition:
    text_tokens = looma_text_function(counter)

    def size(messages: Sequence[Mapping[str, Any]]) -> int:
        return sum(looma_message(message, text_tokens) for message in messages)

    ranked = any(slot["options"].get("priority") for slot in slots)
    made = []
    faults = False
    for slot, messages in zip(slots, sources, strict=True):
        options = slot["options"]
        faults = faults or not _in_range(options)
        kind = "truncate_text" if options.get("trim_behavior") == "char" else "sliding_window"
        cap = math.floor(options.get("max_ratio", 1) * room)
        floor = max(options.get("min_tokens", 0), options.get("min_ratio", 0) * room)
        place = options.get("position")
        made.append(
            Slot(
                chosen=Selection(messages=messages, limit=0, size=size, kind=kind, in_block=True),
                rank=options.get("priority", 0),
                place=place if place is not None and math.isfinite(place) else math.inf,
                floor_tokens=min(room, math.floor(floor)),
                cap_tokens=cap if cap < room else None,
                whole=not ranked and all(message["role"] == "system" for message in messages),
            )
        )
    return Composition(slots=made, room=room, size=size, faults=faults)


def _in_range(options: Mapping[str, Any]) -> bool:
    """D2: ratios are from 0 to 1, tokens whole and from 0 up, ranks and places finite."""
    ratios = [options.get("min_ratio", 0), options.get("max_ratio", 1)]
    tokens = options.get("min_tokens", 0)
    finite = [options.get(name) or 0 for name in ("priority", "position")]
    return (
        all(0 <= ratio <= 1 for ratio in ratios)
        and isinstance(tokens, int)
        and tokens >= 0
        and all(map(math.isfinite, finite))
    )


def _enforce(case: Case) -> Trial:
    """Run the final pass: the oldest leave, then text is cut, and the latest user message stays."""
    data, text_tokens = case.input, looma_text_function(case.input["counter"])
    if refused := _refused(case, data.get("budget")):
        return refused
    room, messages = _room(data.get("budget")), data["messages"]
    budget = ROOMY if room is None else room_of(room)

    def ours() -> Answer:
        counter = LoomaCounter(data["counter"])
        fitted = fit(messages, budget, counter=counter, format="openai_chat")
        answer = composed(fitted, ["history"])
        changed = {index: message for (_, index), message in answer["changed"].items()}
        return {
            "kept": [index for _, index in answer["kept"]],
            "changed": changed,
            "tokens": answer["tokens"],
            "trimmed": fitted.messages != messages,
        }

    kept = [message["src"][1] for message in case.expected["messages"]]
    shown = {index: _shown(one) for index, one in zip(kept, case.expected["messages"], strict=True)}
    expected = {
        "kept": kept,
        "changed": {index: one for index, one in shown.items() if one != messages[index]},
        "tokens": case.expected["total_tokens"],
        "trimmed": case.expected["trimmed"],
    }
    chosen = Selection(
        messages=messages,
        limit=budget.input_tokens,
        size=lambda some: sum(looma_message(message, text_tokens) for message in some),
        kind="sliding_window",
    )
    rules: dict[str, Rule] = {"A4": pinned_unchanged(chosen), **selection_rules(chosen)}
    return Trial(
        expected=expected,
        ours=attempt(ours),
        rules=rules,
        guards=selection_guards(chosen),
        items=range(len(messages)),
    )


def _history(case: Case) -> Trial:
    messages, arguments = case.input["messages"], case.input["args"]
    result: Any
    match case.input["method"]:
        case "recent":
            result = recent(messages, *arguments)
        case "range":
            result = span(messages, *arguments)
        case "by_tokens":
            result = within(messages, arguments[0], counter_from_text(looma_text, message_overhead=0))
        case _:  # last_assistant: the newest of one role is `recent` of a filtered list
            result = recent([message for message in messages if message["role"] == "assistant"], 1)
    expected = case.expected["result"]
    expected = expected if isinstance(expected, list) else [expected]
    return Trial(
        expected={"result": expected}, ours={"result": result}, rules=same_objects_rule(messages, expected)
    )


OPS = {"render": _render, "enforce": _enforce, "history": _history}
