"""sliding-context (SEMANTICS S): counting, evicting, asking a summarizer. Sessions are of a later issue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.conformance.adapters._measure import counted, places
from tests.conformance.counters import approximate, text_function
from tests.conformance.judging import OutOfScope, Trial
from tests.conformance.vectors import Case
from trimtab import counter_from_text, evict_messages
from trimtab.summaries import SummaryRequest, default_prompt, run_summarizer


def _counter(data: Mapping[str, Any]) -> Any:
    return counter_from_text(text_function(data["counter"]), message_overhead=data["message_overhead"])


def _approx_count(case: Case) -> Trial:
    counter = counter_from_text(approximate, message_overhead=0)
    tokens = counted([{"role": "user", "content": case.input["text"]}], counter)
    return Trial(expected=case.expected, ours={"tokens": tokens})


def _count_message(case: Case) -> Trial:
    return Trial(
        expected=case.expected, ours={"tokens": counted([case.input["message"]], _counter(case.input))}
    )


def _evict(case: Case) -> Trial:
    data = case.input
    done = evict_messages(data["messages"], data["target_tokens"], counter=_counter(data))
    ours = {
        "evicted": places(done.evicted, data["messages"]),
        "remaining": places(done.remaining, data["messages"]),
        "remaining_tokens": done.remaining_tokens,
    }
    return Trial(expected=case.expected, ours=ours)


def _default_prompt(case: Case) -> Trial:
    return Trial(expected=case.expected, ours={"prompt": default_prompt(case.input["messages"])})


def _run_summarizer(case: Case) -> Trial:
    data, calls = case.input, []
    kind = data["summarizer"]["kind"]
    if kind == "undefined":
        raise OutOfScope("with an answer Python does not have")

    def summarize(messages: list[Any], existing: str | None) -> str:
        said, roles = ([message[key] for message in messages] for key in ("content", "role"))
        calls.append({"call": len(calls) + 1, "messages": said, "roles": roles, "existing": existing})
        if kind == "fail":
            raise RuntimeError(kind)
        return str(data["summarizer"]["text"])

    request = SummaryRequest(messages=data["messages"], existing=data["existing"])
    return Trial(expected=case.expected, ours={"summary": run_summarizer(summarize, request), "calls": calls})


OPS = {
    "approx_count": _approx_count,
    "count_message": _count_message,
    "default_prompt": _default_prompt,
    "evict": _evict,
    "run_summarizer": _run_summarizer,
}
