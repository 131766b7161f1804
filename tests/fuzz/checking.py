"""What must hold of a fuzz case, whatever came of it: SPEC A, and what the judge says."""

from __future__ import annotations

import marshal
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tests.fuzz.judging import newly_refused, only_pairs_are_wrong, refused, refused_surely
from tests.fuzz.plans import Plan
from trimtab import BudgetExceededError, ConfigurationError, Fitted, fit, repair, validate
from trimtab.errors import InvalidHistoryError
from trimtab.formats import Structure, get_format

MENDED_ALWAYS = ("orphan_result", "repeated_result", "unanswered_call", "late_result")
MENDED = (*MENDED_ALWAYS, "wrong_order")


def problems(plan: Plan) -> list[str]:
    """Run a case and say what is wrong with what came of it; `[]` if nothing is."""
    before = marshal.loads(marshal.dumps(plan.body))  # half of what copy.deepcopy takes
    try:
        fitted, fits = plan.run(), True
    except BudgetExceededError as error:
        found, fits = error.attempt, False
        if found is None:
            return ["A1: no best attempt"]
        fitted = found
    except InvalidHistoryError as error:
        return _refusal(plan, error)
    except ConfigurationError as error:
        if plan.door == "context" and "which makes the call" in str(error):
            return []  # D4: a result before its call, in two blocks
        return [f"raised {type(error).__name__}: {error}"]
    except Exception as error:
        return [f"raised {type(error).__name__}: {error}"]
    wrong = [] if plan.body == before else ["A5: the input was changed"]
    wrong += _size(plan, fitted, fits)
    wrong += _fates(plan, fitted)
    if wrong or (plan.door == "context" and not fits):  # what follows goes by the rows, and is of what fits
        return wrong
    wrong += _violations(plan, before, fitted)
    wrong += _judged(plan, before, fitted)
    return wrong + _again(plan, fitted, fits)


def _refusal(plan: Plan, error: InvalidHistoryError) -> list[str]:
    """A12: a repair raises where the judge, too, refuses what would come out, and only then.

    What would come out is what a fit without a repair makes of the repaired input.
    """
    told = f"raised {type(error).__name__}: {error}"
    if not plan.repair:
        return [told]
    if any(one.rule in MENDED_ALWAYS for one in error.violations):
        return [f"A12: a pair was not mended: {told}"]
    rules = {one.rule for one in error.violations}
    begins_wrong = any(rule == "wrong_order" for rule, _ in _found(plan, plan.request.messages))
    if "wrong_order" in rules and not begins_wrong and plan.removed is None:
        return [f"A12: order was not mended: {told}"]
    if rules <= UNJUDGED[plan.form]:
        return []
    read, key = get_format(plan.form), get_format(plan.form).rules.body_key
    messages = plan.body if plan.door == "body" else plan.request.messages
    mended = repair(messages, format=plan.form, pending_calls=plan.pending_calls)
    there = {position: at for at, position in enumerate(mended.positions)}
    unmended = replace(
        plan,
        body=read.write_request(plan.request, mended.messages),
        repair=False,
        pin=tuple(there[at] for at in plan.pin if at in there),
        removed=plan.removed and tuple(there[at] for at in plan.removed if at in there),
    )
    fitted = unmended.fitted(plan.budget_tokens, plan.make_strategy())
    after = {**plan.body, key: list(fitted.messages)}
    if refused_surely(plan.form, after, waiting=_waiting(plan, fitted.messages)):
        return []
    return [f"A12: the judge takes what stays: {told}"]


UNJUDGED: Mapping[str, frozenset[str]] = {
    "openai_chat": frozenset({"duplicate_call_id", "misplaced_part"}),
    "openai_responses": frozenset(),
    "anthropic": frozenset({"duplicate_call_id", "bad_source", "bad_block", "blank_text"}),
    "gemini": frozenset({"wrong_order"}),
    "bedrock": frozenset({"final_thinking"}),
}
"""Rules that cannot be mended and that the judge has none of, or not for all: two calls of one message with
one id (the judge looks at results, and at no call of the provider's own), a sound in system text (it knows
parts, and not whose they are), what the source of a document or a compaction lacks, blank text beside other
blocks, contents that begin with the model's words (the form quotes a report), and reasoning at the end (the
judge has that for Claude's own API).
"""


def _size(plan: Plan, fitted: Fitted[Any], fits: bool) -> list[str]:
    """A1, A4, A8: a recount, and whether it was right to raise."""
    tokens, limit = plan.count(fitted.messages, fitted.system), plan.budget_tokens
    wrong = []
    if fits and tokens > limit:
        wrong.append(f"A1: {tokens} tokens, the budget is {limit}")
    if not plan.black_box and tokens != fitted.report.tokens_after:
        wrong.append(f"A8: the report says {fitted.report.tokens_after} tokens, a recount {tokens}")
    may_be_empty = plan.repair or plan.removed is not None or plan.door == "context"
    if not fitted.messages and plan.request.messages and not may_be_empty:
        wrong.append("A4: nothing came out")
    return wrong


def _fates(plan: Plan, fitted: Fitted[Any]) -> list[str]:
    """A3: kept, changed and evicted are the input, in order; what was put in is listed apart."""
    rows, given = fitted.report.messages, plan.request.messages
    if plan.door == "context":
        if len([row for row in rows if row.fate != "evicted"]) + len(fitted.report.inserted) != len(
            fitted.messages
        ):
            return ["A3: rows and output do not agree"]
        return []
    if [row.index for row in rows] != list(range(len(given))):
        return ["A3: not a row a message"]
    stays = [row for row in rows if row.fate != "evicted"]
    put_in = {row.position for row in fitted.report.inserted}
    output = [message for at, message in enumerate(fitted.messages) if at not in put_in]
    if len(stays) != len(output) and not (plan.repair and len(stays) < len(output)):  # a late part moves
        return [f"A3: {len(stays)} rows stay, {len(output)} messages came out"]
    if plan.repair:  # a late result moves
        return []
    return [
        f"A3: message {row.index} is {row.fate}, and what came out is not it"
        for row, message in zip(stays, output, strict=True)
        if (message is given[row.index]) != (row.fate == "kept")
    ]


def _violations(plan: Plan, before: Mapping[str, Any], fitted: Fitted[Any]) -> list[str]:
    """A2, by trimtab's own `validate`."""
    now = _found(plan, fitted.messages)
    if not now:
        return []
    was = _found(plan, get_format(plan.form).read_request(before).messages)
    new = now - was
    if plan.repair:
        new = Counter({key: number for key, number in now.items() if key[0] in MENDED})
    if plan.removed is not None or _lost_its_end(plan, fitted):
        new = Counter({key: number for key, number in new.items() if key[0] not in AT_THE_END})
    return [
        f"A2: new violation {rule} of {call_id}"
        for rule, call_id in new
        if not _excused(plan, rule, call_id, was)
    ]


def _excused(plan: Plan, rule: str, call_id: str | None, was: Counter[tuple[str, str | None]]) -> bool:
    """Tell whether a violation is another name for one of the input, or the callback's doing."""
    broken = any(one in MENDED for one, _ in was)
    if rule == "unanswered_call" and broken and call_id in _called_twice(plan, plan.request.messages):
        return True
    if rule == "trailing_whitespace":  # a blank text that is cut has the words of the mark
        return any(one == "blank_text" for one, _ in was)
    if rule == "wrong_order":
        return plan.removed is not None or any(one == rule for one, _ in was)
    if plan.form == "gemini" and rule in MENDED:  # which go by place, so that one that leaves moves the rest
        return broken
    return rule in ("result_not_first", "duplicate_call_id") and broken


AT_THE_END = ("final_thinking", "trailing_whitespace", "ends_with_assistant", "ends_with_model")
"""Rules about the last message: which that is, a callback may decide, and the blocks of a `Context`."""


def _lost_its_end(plan: Plan, fitted: Fitted[Any]) -> bool:
    """Tell whether the last message left: in blocks only what is pinned or open must stay (SPEC A4).

    A repair may take it, too: what the one before it ends with is not mended (`judging.NOT_MENDED`).
    """
    last = fitted.report.messages[-1:]
    return any(row.fate == "evicted" and (plan.door == "context" or row.reason == "repair") for row in last)


def _found(plan: Plan, messages: Any) -> Counter[tuple[str, str | None]]:
    """Count violations by rule and id; of an id that goes by place only the function's name matters.

    By the model, where the fit is told of one.
    """
    model = plan.request.model if plan.door == "body" else ""
    found = validate(messages, format=plan.form, model=model or None, pending_calls=plan.pending_calls)
    return Counter(
        (_ALIKE.get(one.rule, one.rule), _without_place(one.call_id)) for one in found if one.fault
    )


_ALIKE = {"repeated_result": "orphan_result"}
"""Of several results for one call each is one too many, and without the call an orphan."""


def _without_place(call_id: str | None) -> str | None:
    return call_id if call_id is None else re.sub(r"^(call:.*):\d+$", r"\1", call_id)


def _judged(plan: Plan, before: Mapping[str, Any], fitted: Fitted[Any]) -> list[str]:
    """A2, by the judge: nothing newly refused; what was taken is taken."""
    after = dict(before)
    key = get_format(plan.form).rules.body_key
    after[key] = list(fitted.messages)
    if plan.door == "body":
        after = fitted.request
    if not after[key]:
        return []
    if plan.removed is not None:  # whatever a callback removes is gone, also what opened a turn
        return []
    if plan.repair and only_pairs_are_wrong(plan.form, before) and _can_be_mended(plan, before[key]):
        waiting = _waiting(plan, after[key]) | _called_twice(plan, before[key])
        wrong = refused(plan.form, after, origin=before, waiting=waiting)
        return [f"judge, after repair: {one}" for one in wrong]
    new = newly_refused(
        plan.form,
        before,
        after,
        unsure_of=lambda: _waiting(plan, before[key]) | _called_twice(plan, before[key]),
        ended=_lost_its_end(plan, fitted),
    )
    return [f"judge: {one}" for one in new]


def _can_be_mended(plan: Plan, messages: Any) -> bool:
    return all(rule in MENDED for rule, _ in _found(plan, messages))


def _waiting(plan: Plan, messages: Any) -> set[str | None]:
    """List the ids of calls whose results can still come."""
    found = validate(messages, format=plan.form, pending_calls=plan.pending_calls)
    return {one.call_id for one in found if one.rule == "open_call"}


def _again(plan: Plan, fitted: Fitted[Any], fits: bool) -> list[str]:
    """A7: the result, fitted again, is what it was."""
    if not fits or plan.asks_again or plan.door == "context" or plan.pin:
        return []
    beside = {} if plan.door == "body" else {"system": fitted.system, "tools": fitted.tools}
    try:
        again = fit(
            fitted.request if plan.door == "body" else fitted.messages,
            plan.budget_tokens,
            counter=plan.counter_given(),
            format=plan.form,
            strategy=plan.make_strategy(),
            pending_calls=plan.pending_calls,
            repair=plan.repair,
            **beside,
        )
    except Exception as error:
        return [f"A7: fitted again it raised {type(error).__name__}: {error}"]
    if plan.door == "body":  # thinking that the body disables leaves copies of messages
        same = again.request == fitted.request
    else:
        same = len(again.messages) == len(fitted.messages) and all(
            one is other for one, other in zip(again.messages, fitted.messages, strict=True)
        )
    return [] if same else ["A7: fitted again it changed"]


def _called_twice(plan: Plan, messages: Any) -> set[str | None]:
    """List the ids that several calls or results have: which is for which is anybody's guess."""
    entries = [entry for message in messages for entry in (message, *_parts_of(message))]
    calls = [*entries, *_held(entries, "functionCall")]
    made = Counter([*_texts_at(calls, "id"), *_texts_at(_held(entries, "toolUse"), "toolUseId")])
    structure = Structure(len(messages))
    get_format(plan.form).scan(list(messages), 0, len(messages), structure)
    called = Counter(call_id for ids in structure.calls.values() for call_id in ids)
    results = _texts_at(_held(entries, "toolResult"), "toolUseId")
    answered = Counter([*_texts_at(entries, "tool_use_id"), *results])
    return {one for counter in (made, called, answered) for one, number in counter.items() if number > 1}


def _held(entries: list[dict[str, Any]], key: str) -> list[dict[str, Any]]:
    return [entry[key] for entry in entries if isinstance(entry.get(key), dict)]


def _texts_at(entries: list[dict[str, Any]], key: str) -> list[str]:
    return [entry[key] for entry in entries if isinstance(entry.get(key), str)]


def _parts_of(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    parts = message.get("content", message.get("parts"))
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
