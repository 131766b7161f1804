"""Says whether a provider would accept a request, from the provider's own documents and errors.

Nothing here imports trimtab: what trimtab believes of a form is held to this, so it may not come from
there. README.md says where the rules come from and what is not judged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.judge import anthropic, bedrock, gemini, openai_chat, openai_responses
from tests.judge._rules import Refusal, Rule, Table, as_body, more

TABLES: dict[str, Table] = {
    "openai_chat": openai_chat.TABLE,
    "openai_responses": openai_responses.TABLE,
    "anthropic": anthropic.TABLE,
    "gemini": gemini.TABLE,
    "bedrock": bedrock.TABLE,
}

ORIGINS: dict[str, Table] = {
    "openai_responses": openai_responses.ORIGIN,
    "anthropic": anthropic.ORIGIN,
    "bedrock": bedrock.ORIGIN,
}
"""Rules that read a request and the one it was made from."""

FORMS = tuple(TABLES)

__all__ = ["FORMS", "ORIGINS", "TABLES", "Refusal", "Rule", "Table", "accepts", "judge", "newly_refused"]


def judge(form: str, request: Mapping[str, Any], *, origin: Mapping[str, Any] | None = None) -> list[Refusal]:
    """Say why a provider would refuse a request; nothing if it would accept it.

    `origin` is the request this one was made from. Some rules speak of what the provider keeps (the
    reasoning an item of a response came with, what stood before thinking when it was made), and only the
    origin shows that.
    """
    refusals = TABLES[form].read(request)
    if origin is not None and form in ORIGINS:
        refusals += ORIGINS[form].read({"origin": as_body(origin), "request": as_body(request)})
    return refusals


def accepts(form: str, request: Mapping[str, Any], *, origin: Mapping[str, Any] | None = None) -> bool:
    """Say whether a provider would accept a request."""
    return not judge(form, request, origin=origin)


def newly_refused(form: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Refusal]:
    """Return the refusals of a request that the one it was made from did not have.

    They are compared by rule and by what they are about (an id, a role), never by place; rules that say
    the same with other words (a result without a call, of another call, repeated) count as one.
    """
    refused = judge(form, after, origin=before)
    return more(judge(form, before), refused) if refused else []
