"""ctx.slots of looma (SEMANTICS L): its history reading (L20)."""

from __future__ import annotations

from typing import Any

from tests.conformance.counters import looma_text
from tests.conformance.judging import Trial
from tests.conformance.predicates import same_objects_rule
from tests.conformance.vectors import Case
from trimtab import counter_from_text
from trimtab.history import recent, span, within


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


OPS = {"history": _history}
