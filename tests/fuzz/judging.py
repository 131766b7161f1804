"""The judge, as the fuzzer asks it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from tests import judge

PAIR_RULES: Mapping[str, frozenset[str]] = {
    "openai_chat": frozenset(
        {"result_without_call", "result_of_another_call", "repeated_result", "call_without_result"}
    ),
    "openai_responses": frozenset({"output_without_call", "call_without_output"}),
    "anthropic": frozenset(
        {
            *("call_without_result", "result_without_call", "repeated_result"),
            *("server_call_without_result", "server_result_without_call"),
        }
    ),
    "gemini": frozenset({"uneven_responses", "response_of_another_id", "response_of_another_function"}),
}
"""Rules about which result answers which call. Of a pair that was refused before, another may be broken after."""


SHARED_IDS = ("duplicate_item", "repeated_call")
"""Rules about an id that only one may have."""


def newly_refused(
    form: str, before: Mapping[str, Any], after: Mapping[str, Any], *, unsure: Collection[str | None]
) -> list[str]:
    """Say what is refused after that was not before.

    What is said of a pair that was broken before, of an id that several items had, and of calls that are
    open (the judge knows no such thing) or have one id among them (`unsure`) is nothing new.
    """
    new = judge.newly_refused(form, before, after)
    if not new:
        return []
    was = judge.judge(form, before)
    pairs = {one.about for one in was if one.rule in PAIR_RULES[form]}
    twice = {one.about for one in was if one.rule in SHARED_IDS}
    return [
        _told(one)
        for one in new
        if one.about not in twice
        and (one.rule not in PAIR_RULES[form] or not (one.about in pairs or _names(one.about, unsure)))
    ]


def refused(
    form: str, body: Mapping[str, Any], *, origin: Mapping[str, Any], waiting: Collection[str | None]
) -> list[str]:
    """Say what is refused, but for calls whose results can still come."""
    found = judge.judge(form, body, origin=origin)
    return [
        _told(one) for one in found if one.rule not in PAIR_RULES[form] or not _names(one.about, waiting)
    ]


def _names(about: str, ids: Collection[str | None]) -> bool:
    return any(one is not None and one in about for one in ids)


def only_pairs_are_wrong(form: str, body: Mapping[str, Any]) -> bool:
    """Tell whether calls and results are all that is wrong with a body, if anything is."""
    return all(one.rule in PAIR_RULES[form] for one in judge.judge(form, body))


def _told(refusal: judge.Refusal) -> str:
    return f"{refusal.rule} of {refusal.about!r} at {refusal.where}: {refusal.words:.120}"
