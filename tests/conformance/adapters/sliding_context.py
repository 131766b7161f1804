"""sliding-context (SEMANTICS S): sessions, and the functions they are made of.

`deserialize` is `Session.restore`, as far as it is refused: a state that sliding-context saved is nothing
that trimtab reads.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.conformance.adapters._measure import counted, places
from tests.conformance.adapters._sitting import run_session, told
from tests.conformance.counters import approximate, text_function
from tests.conformance.judging import Answer, OutOfScope, Trial, attempt
from tests.conformance.predicates import answered_text_rule, overhead_rule, read_rule, zones_rule
from tests.conformance.scripted import number, summarizer_kind
from tests.conformance.sessions import session_guards, session_rules
from tests.conformance.vectors import Case
from trimtab import Session, counter_from_text
from trimtab.history import evict_messages
from trimtab.session import allocate_zones
from trimtab.summaries import SummaryRequest, default_prompt, run_summarizer


def _counter(data: Mapping[str, Any]) -> Any:
    overhead = data.get("message_overhead", 4)
    return counter_from_text(text_function(data["counter"]), message_overhead=overhead)


def _approx_count(case: Case) -> Trial:
    counter = counter_from_text(approximate, message_overhead=0)
    tokens = counted([{"role": "user", "content": case.input["text"]}], counter)
    return Trial(expected=case.expected, ours={"tokens": tokens})


def _count_message(case: Case) -> Trial:
    return Trial(
        expected=case.expected,
        ours=attempt(lambda: {"tokens": counted([case.input["message"]], _counter(case.input))}),
        rules={
            **overhead_rule(case.input.get("message_overhead", 4)),
            **read_rule([case.input["message"]]),
        },
    )


def _evict(case: Case) -> Trial:
    data = case.input

    def ours() -> Answer:
        done = evict_messages(data["messages"], number(data["target_tokens"]), counter=_counter(data))
        return {
            "evicted": places(done.evicted, data["messages"]),
            "remaining": places(done.remaining, data["messages"]),
            "remaining_tokens": done.remaining_tokens,
        }

    rules = overhead_rule(data.get("message_overhead", 4))
    return Trial(expected=case.expected, ours=attempt(ours), rules=rules)


def _default_prompt(case: Case) -> Trial:
    return Trial(expected=case.expected, ours={"prompt": default_prompt(case.input["messages"])})


def _run_summarizer(case: Case) -> Trial:
    data, calls = case.input, list[Any]()
    kind = summarizer_kind(data["summarizer"])

    def summarize(messages: list[Any], existing: str | None) -> Any:
        said, roles = ([message[key] for message in messages] for key in ("content", "role"))
        calls.append({"call": len(calls) + 1, "messages": said, "roles": roles, "existing": existing})
        if kind == "fail":
            raise RuntimeError(kind)
        return data["summarizer"]["text"] if kind == "const" else {"empty": ""}.get(kind)

    request = SummaryRequest(messages=data["messages"], existing=data["existing"])
    ours = {"summary": run_summarizer(summarize, request), "calls": calls}
    rules = answered_text_rule() if kind == "undefined" else {}
    return Trial(expected=case.expected, ours=ours, rules=rules)


def _allocate_budget(case: Case) -> Trial:
    options, used = case.input["options"], case.input["system_tokens_used"]

    def ours() -> Answer:
        zones = allocate_zones(
            number(options.get("token_budget")),
            used,
            summarizes=options.get("summarizer") is not None,
            max_summary_tokens=options.get("max_summary_tokens"),
            min_recent_tokens=options.get("min_recent_tokens"),
        )
        return zones._asdict()

    numbers = [options.get("token_budget"), *(options[name] for name in _SHARES if name in options)]
    return Trial(expected=case.expected, ours=attempt(ours), rules=zones_rule([*numbers, used]))


_SHARES = ("max_summary_tokens", "min_recent_tokens")


def _deserialize(case: Case) -> Trial:
    """Refuse what is no snapshot. Reading JSON is the caller's; what is none is handed on as it is."""
    if "error" not in case.expected:
        raise OutOfScope("of a state it saved")
    try:
        data = json.loads(case.input["data"])
    except ValueError:
        data = case.input["data"]

    def ours() -> Answer:
        return {"state": Session.restore(data).status().to_dict()}

    return Trial(expected={"error": "CorruptSessionError"}, ours=attempt(ours))


def _session(case: Case) -> Trial:
    return Trial(
        expected=told(case.expected),
        ours=attempt(lambda: run_session(case.input)),
        rules=session_rules(case.input),
        guards=session_guards(case.input),
    )


OPS = {
    "allocate_budget": _allocate_budget,
    "approx_count": _approx_count,
    "count_message": _count_message,
    "default_prompt": _default_prompt,
    "deserialize": _deserialize,
    "evict": _evict,
    "run_summarizer": _run_summarizer,
    "session": _session,
}
