"""sliding-context (SEMANTICS S): counting, and eviction from a list. Sessions are of a later issue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.conformance.adapters._measure import counted, places
from tests.conformance.counters import approximate, text_function
from tests.conformance.judging import Trial
from tests.conformance.vectors import Case
from trimtab import counter_from_text, evict_messages


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


OPS = {"approx_count": _approx_count, "count_message": _count_message, "evict": _evict}
