"""What an adapter does with a `Context` or a policy in place of a budget, in each wire form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trimtab import ConfigurationError, Context, EstimateCounter, Fitted
from trimtab.counting import measure
from trimtab.formats import Request, get_format
from trimtab.integrations.base import Trimmer

POLICY = Path(__file__).parent.parent / "examples" / "policy.toml"
FORMS = ["openai_chat", "openai_responses", "anthropic", "gemini", "bedrock"]
APART = ["anthropic", "gemini", "bedrock"]
"""Those that take no system message."""


def said(format: str, text: str = "Hi") -> list[Any]:
    """Write what a user says."""
    return [get_format(format).message("user", [text])]


def body(format: str, messages: list[Any], system: Any = None) -> Any:
    """Write a request body."""
    form = get_format(format)
    key = form.rules.body_key
    return form.write_request(Request(messages=messages, system=system, body={key: []}, key=key), messages)


def context(text: str | None = None, *, beside: bool = False) -> Context:
    """Make one of an empty history and system text, in a block or beside the blocks."""
    made = Context(900, counter=EstimateCounter(), system=text if beside else None)
    return made.add("system", [] if beside or text is None else text, pinned=True).add("history", [])


def trimmer(budget: Any, format: str, seen: list[Fitted[Any]], **more: Any) -> Trimmer[Any]:
    """Make what an adapter has."""
    return Trimmer(budget, format=format, on_fitted=seen.append, options={}, **more)


@pytest.mark.parametrize("format", FORMS)
@pytest.mark.parametrize("beside", [None, "Be kind."])
def test_a_policy_with_a_block_for_system_text_takes_calls_without_any(
    format: str, beside: str | None
) -> None:
    """That of the examples does, and so do calls without a message."""
    made = trimmer(POLICY, format, [])
    assert made.fit(said(format), system=beside).messages == said(format)
    assert made.fit([], system=beside).messages == []


@pytest.mark.parametrize("format", FORMS)
@pytest.mark.parametrize("lead", [0, 1])
def test_what_a_block_holds_stays_before_the_system_messages_of_a_call(format: str, lead: int) -> None:
    """Nothing is lost. Each text is counted as a message, also where all become one text of the request."""
    form, seen = get_format(format), list[Fitted[Any]]()
    own = [form.message("system", ["Be kind."])] * lead
    given = [*own, *said(format)]
    kept = trimmer(context("Be brief."), format, seen, hands_system=True).fit(given).messages
    sent = body(format, kept, seen[0].system)
    texts = ["Be brief.", *["Be kind."] * lead, "Hi"]
    assert [text for text in ("Be brief.", "Be kind.", "Hi") if text in str(sent)] == texts
    assert str(sent).count("Be brief.") == 1
    assert kept[-1] is given[-1]
    counted = seen[0].report.tokens_after
    joined = lead == 1 and format in APART
    sent_tokens = measure(sent, counter=EstimateCounter(), format=format).tokens
    assert counted - 5 * joined <= sent_tokens <= counted


@pytest.mark.parametrize("name", ["system", "facts"])
def test_what_the_only_block_holds_stays_before_the_conversation(name: str) -> None:
    """The block of the history alone holds nothing else."""
    only = Context(900, counter=EstimateCounter()).add(name, "Be brief.")
    kept = trimmer(only, "openai_chat", []).fit(said("openai_chat")).messages
    assert [message["content"] for message in kept] == ["Be brief.", "Hi"]
    history = Context(900, counter=EstimateCounter()).add("history", said("openai_chat", "Before"))
    kept = trimmer(history, "openai_chat", []).fit(said("openai_chat")).messages
    assert kept == said("openai_chat")


def test_what_a_block_holds_is_no_part_of_what_a_framework_keeps() -> None:
    """It would stand there once more after each call; what the conversation replaces would not."""
    with pytest.raises(ConfigurationError, match=r"own facts would stand in it once more after each call"):
        trimmer(Context(900).add("facts", "Tea.").add("history", []), "openai_chat", [], keeps=True)
    history = Context(900, counter=EstimateCounter()).add("history", said("openai_chat", "Before"))
    kept = trimmer(history, "openai_chat", [], keeps=True).fit(said("openai_chat")).messages
    assert kept == said("openai_chat")


def test_what_a_framework_would_keep_is_found_beside_the_blocks_and_at_a_call() -> None:
    """System text of a Context becomes a message here, and a Context may be filled when it is in use."""
    with pytest.raises(ConfigurationError, match=r"own system= would stand in it once more"):
        trimmer(context("Be brief.", beside=True), "openai_chat", [], keeps=True)
    held = Context(900, counter=EstimateCounter()).add("facts", []).add("history", [])
    made = trimmer(held, "openai_chat", [], keeps=True)
    assert made.fit(said("openai_chat")).messages == said("openai_chat")
    held.replace("facts", "Tea.")
    with pytest.raises(ConfigurationError, match=r"own facts would stand in it once more"):
        made.fit(said("openai_chat"))


@pytest.mark.parametrize("format", APART)
def test_marks_for_a_prompt_cache_make_no_system_text_of_a_context(format: str) -> None:
    """The system text of the call is given back with a mark, and is the call's all the same."""
    held = Context(900, counter=EstimateCounter(), breakpoints=True).add("history", [])
    seen = list[Fitted[Any]]()
    kept = trimmer(held, format, seen).fit(said(format), system="Be kind.").messages
    assert len(kept) == 1
    assert "Be kind." in str(seen[0].system)


@pytest.mark.parametrize("format", FORMS[1:])
@pytest.mark.parametrize("beside", [True, False])
def test_system_text_that_an_adapter_has_no_place_for_is_refused(format: str, beside: bool) -> None:
    """Where the adapter is made: it would be counted, and nobody would send it."""
    held = context("Be brief.", beside=beside)
    if format == "openai_responses" and not beside:
        assert len(trimmer(held, format, []).fit(said(format)).messages) == 2
        return
    with pytest.raises(ConfigurationError, match=r"system text.*Be brief.*Write it where the framework"):
        trimmer(held, format, [])


@pytest.mark.parametrize("format", APART)
def test_system_text_that_comes_later_is_refused_at_a_call(format: str) -> None:
    """A Context may be filled when its adapter is made; that of the call itself is no fault."""
    held, seen = context(), list[Fitted[Any]]()
    made = trimmer(held, format, seen)
    assert made.fit(said(format), system="Be kind.").messages == said(format)
    held.replace("system", "Be brief.")
    with pytest.raises(ConfigurationError, match="this adapter hands on messages alone"):
        made.fit(said(format))
    assert len(seen) == 1


@pytest.mark.parametrize("format", FORMS)
def test_system_text_beside_the_blocks_and_of_the_call_is_one_too_many(format: str) -> None:
    """In a block it has a place beside that of the call."""
    made = trimmer(context("Be brief.", beside=True), format, [], hands_system=True)
    with pytest.raises(ConfigurationError, match=r"system is given twice.*a block 'system'"):
        made.fit(said(format), system="Be kind.")
