"""The judge, as the fuzzer asks it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import pairwise
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
    "gemini": frozenset(
        {
            *("uneven_responses", "response_of_another_id", "response_of_another_function"),
            "response_turn_misplaced",
        }
    ),
    "bedrock": frozenset({"call_without_result", "result_without_call", "repeated_result"}),
}
"""Rules about which result answers which call. Of a pair that was broken before another is after."""
SHARED_IDS = ("duplicate_item", "repeated_call")
"""Rules about an id that only one may have."""
NO_PLACE = ("thinking_must_lead", "thinking_disabled", "call_turn_misplaced")
"""Rules about who opens a turn: what opened one that was refused for something else may have left."""
NOT_MENDED = (
    "ends_with_thinking",
    "trailing_whitespace",
    "thinking_disabled",
    "response_of_another_function",
    "ends_with_assistant",
)
"""What a repair leaves: the shape of one message, also of one that is the last by it; a function's name; and
a call at the end, whose result can still come.

Thinking at the end leaves where the body says "disabled"; to the judge it is off also where nothing is said,
which with the newer models means that it is on.
"""
ONLY_SPACE = ("only_whitespace", "empty_text")
"""What trimtab writes has words, so a blank text was in the input; beside others the judge lets it pass."""


def newly_refused(
    form: str,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    *,
    unsure_of: Callable[[], Collection[str | None]],
    ended: bool = False,
) -> list[str]:
    """Say what is refused after that was not before.

    What is said of a pair that was broken before, of an id that several items had, and of calls that are
    open (the judge knows no such thing) or have one id among them is nothing new; `unsure_of` lists those,
    and is asked where something is new. To the judge an id calls once in a turn: two turns that called with
    one id may be one turn after. Where the last message left (`ended`), what the one before it ends with is
    nothing new.
    """
    was = judge.judge(form, before)
    new = [one for one in judge.newly_refused(form, before, after) if not _is_excused(one, was, after)]
    if not new:
        return []
    unsure = unsure_of()
    pairs = {one.about for one in was if one.rule in PAIR_RULES[form]}
    twice = {one.about for one in was if one.rule in SHARED_IDS}

    def is_old(one: judge.Refusal) -> bool:
        if one.about in twice or one.rule in _rules_of_space(was):
            return True
        if one.rule in SHARED_IDS and one.about in unsure:  # two such turns meet where a result was missing
            return True
        if _is_at_the_end(one, ended=ended, waits=bool(unsure)) or _is_disputed_thinking(one, before, after):
            return True
        if one.rule not in PAIR_RULES[form]:
            return one.rule in NO_PLACE and bool(was)
        if one.rule == "server_result_without_call" and _calls_of_users(before["messages"]):
            return True
        if form == "gemini":  # which goes by order and number, so that what is named is another each time
            return bool(pairs or unsure)
        return one.about in pairs or _names(one.about, unsure)

    return [_told(one) for one in new if not is_old(one)]


def _is_at_the_end(refusal: judge.Refusal, *, ended: bool, waits: bool) -> bool:
    """Tell whether a refusal is of what stands last, which may be so.

    Blocks may lose all that nobody pinned (SPEC A4), and the result of an open call can still come.
    """
    return (ended and refusal.rule == "ends_with_thinking") or (
        waits and refusal.rule == "ends_with_assistant"
    )


def _is_disputed_thinking(
    refusal: judge.Refusal, before: Mapping[str, Any], after: Mapping[str, Any]
) -> bool:
    """Tell whether a refusal is of thinking that stands where nobody thinks, or behind words and results."""
    if refusal.rule == "bound_thinking":
        return _of_user(refusal.where, after)
    return refusal.rule == "thinking_must_lead" and any(
        map(_words_behind_results, (before["messages"], after["messages"]))
    )


def _rules_of_space(was: Iterable[judge.Refusal]) -> tuple[str, ...]:
    """List the rules about blanks; a blank text that is cut has a mark before its blank end."""
    blank = any(one.rule in ONLY_SPACE for one in was)
    return (*ONLY_SPACE, "trailing_whitespace") if blank else ONLY_SPACE


def _is_excused(refusal: judge.Refusal, was: Iterable[judge.Refusal], body: Mapping[str, Any]) -> bool:
    """Tell whether something is refused by the letter of a rule that says nothing of this request.

    An item lacks reasoning whose id was refused for itself: the provider stored none of that name. Or the
    model takes a first message of its own.
    """
    if refusal.rule == "item_without_reasoning":
        refused_ids = [one.about for one in was if one.rule == "wrong_id_prefix"]
        return any(f"'{one}'" in refusal.words for one in refused_ids)
    return refusal.rule == "first_role" and _model_may_lead(body)


def _model_may_lead(body: Mapping[str, Any]) -> bool:
    """Tell whether the model takes a first message of its own, as the judge says: since Claude 4.5."""
    model = str(body.get("model") or body.get("modelId"))
    return re.search(r"claude-(opus|sonnet|haiku)-(4-[5-9]|[5-9])", model) is not None


def _words_behind_results(messages: Any) -> bool:
    """Tell whether a user message of words alone stands behind one with results.

    The judge joins both to one message, in which the loop of tools goes on. No source shows the API refusing
    words in a message of their own, and to the form they open a turn.
    """
    return any(
        one.get("role") == other.get("role") == "user" and _holds_result(one) and not _holds_result(other)
        for one, other in pairwise(messages)
    )


def _calls_of_users(messages: Any) -> bool:
    """Tell whether a user's message makes a call of the provider's own, which the form takes for no call."""
    return any(one.get("role") == "user" and _holds(one, "server_tool_use") for one in messages)


def _of_user(where: str, body: Mapping[str, Any]) -> bool:
    """Tell whether a place is in a user's message: "messages.0.content.3"."""
    found = re.match(r"messages\.(\d+)", where)
    return found is not None and body["messages"][int(found[1])].get("role") == "user"


def _ids(body: Mapping[str, Any], kind: str, key: str) -> set[str]:
    """List the ids that blocks of a type have or name."""
    contents = [message.get("content") for message in body["messages"]]
    blocks = [block for content in contents if isinstance(content, list) for block in content]
    return {str(block.get(key)) for block in blocks if isinstance(block, dict) and block.get("type") == kind}


def _holds(message: Mapping[str, Any], kind: str) -> bool:
    content = message.get("content")
    return isinstance(content, list) and any(
        isinstance(part, dict) and part.get("type") == kind for part in content
    )


def _holds_result(message: Mapping[str, Any]) -> bool:
    content = message.get("content")
    keyed = isinstance(content, list) and any(
        isinstance(one, dict) and "toolResult" in one for one in content
    )
    return keyed or _holds(message, "tool_result")


def _is_disputed(form: str, refusal: judge.Refusal, body: Mapping[str, Any]) -> bool:
    """Tell whether the form, with its own sources, takes what the judge refuses.

    Gemini's: contents of the model behind one another are one turn to the form, so that it repairs none of
    them; and a call behind what the model said is sent by Google's own CLI. Anthropic's: a compaction stands
    for all that was before it, so that a repair leaves it first where nothing before it is whole; no source
    says that it may not lead a turn that thinks. A result of the client for a call of the provider's own is
    taken for its result, by the id alone: a known gap.
    """
    if form == "anthropic" and refusal.rule in ("result_without_call", "server_call_without_result"):
        return bool(_ids(body, "server_tool_use", "id") & _ids(body, "tool_result", "tool_use_id"))
    if form == "anthropic" and refusal.rule == "thinking_must_lead" and refusal.about == "compaction":
        return True
    if refusal.rule == "first_role":
        return _model_may_lead(body) or (form == "anthropic" and _holds(body["messages"][0], "compaction"))
    if form != "gemini" or refusal.rule not in ("call_turn_misplaced", *PAIR_RULES[form]):
        return False
    return any(one.get("role") == other.get("role") == "model" for one, other in pairwise(body["contents"]))


def refused(
    form: str, body: Mapping[str, Any], *, origin: Mapping[str, Any], waiting: Collection[str | None]
) -> list[str]:
    """Say what is refused, but for calls whose results can still come."""
    found = judge.judge(form, body, origin=origin)

    def waits(one: judge.Refusal) -> bool:
        if one.rule in (*ONLY_SPACE, *NOT_MENDED) or _is_disputed(form, one, body):
            return True
        if _is_disputed_thinking(one, origin, body):
            return True
        return one.rule in PAIR_RULES[form] and (
            _names(one.about, waiting) or bool(form == "gemini" and waiting)
        )

    return [_told(one) for one in found if not waits(one)]


def refused_surely(form: str, body: Mapping[str, Any], *, waiting: Collection[str | None]) -> list[str]:
    """Say what is refused whatever a repair does, but for calls whose results can still come."""
    return [
        _told(one)
        for one in judge.judge(form, body)
        if not (one.rule in PAIR_RULES[form] and _names(one.about, waiting))
    ]


def _names(about: str, ids: Collection[str | None]) -> bool:
    return any(one is not None and one in about for one in ids)


def only_pairs_are_wrong(form: str, body: Mapping[str, Any]) -> bool:
    """Tell whether calls and results are all that is wrong with a body, if anything is."""
    return all(one.rule in PAIR_RULES[form] for one in judge.judge(form, body))


def _told(refusal: judge.Refusal) -> str:
    return f"{refusal.rule} of {refusal.about!r} at {refusal.where}: {refusal.words:.120}"
