"""Whose words a message holds, and that nothing gains say by being summarized (SPEC E14)."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.injections import (
    CHANNELS,
    FORMS,
    document_message,
    has_document_parts,
    injections,
    text_message,
    tool_messages,
)
from trimtab import Context, Summarize, fit
from trimtab.errors import ConfigurationError
from trimtab.formats import get_format
from trimtab.testing import WordCounter

CHAT = [{"role": "user", "content": "Find it."}]
PDF = "JVBERi0xLjQ="


@pytest.mark.parametrize(
    ("form", "message", "origins"),
    [
        ("openai_chat", {"role": "system", "content": "x"}, {"system"}),
        ("openai_chat", {"role": "developer", "content": "x"}, {"system"}),
        ("openai_chat", {"role": "user", "content": "x"}, {"user"}),
        ("openai_chat", {"role": "assistant", "content": "x"}, {"assistant"}),
        ("openai_chat", {"role": "tool", "tool_call_id": "1", "content": "x"}, {"tool"}),
        (
            "openai_chat",
            {"role": "user", "content": [{"type": "file", "file": {"file_data": PDF}}]},
            {"user", "document"},
        ),
        ("openai_responses", {"type": "function_call_output", "call_id": "1", "output": "x"}, {"tool"}),
        ("openai_responses", {"type": "web_search_call", "id": "w"}, {"assistant", "tool"}),
        ("openai_responses", {"type": "compaction", "encrypted_content": "x"}, {"tool"}),
        (
            "openai_responses",
            {"role": "user", "content": [{"type": "input_text", "text": "x"}, {"type": "input_file"}]},
            {"user", "document"},
        ),
        ("anthropic", {"role": "user", "content": [{"type": "text", "text": "x"}]}, {"user"}),
        (
            "anthropic",
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "1", "content": "x"},
                    {"type": "text", "text": "x"},
                    {"type": "document", "source": {}},
                ],
            },
            {"user", "tool", "document"},
        ),
        ("anthropic", {"role": "user", "content": [{"type": "search_result", "content": []}]}, {"document"}),
        (
            "anthropic",
            {"role": "assistant", "content": [{"type": "web_search_tool_result", "content": []}]},
            {"assistant", "tool"},
        ),
        ("gemini", {"role": "model", "parts": [{"text": "x"}]}, {"assistant"}),
        (
            "gemini",
            {"role": "user", "parts": [{"functionResponse": {"name": "f"}}, {"text": "x"}]},
            {"tool", "user"},
        ),
        (
            "gemini",
            {"role": "user", "parts": [{"inlineData": {"mimeType": "application/pdf", "data": PDF}}]},
            {"document"},
        ),
        (
            "gemini",
            {"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": PDF}}]},
            {"user"},
        ),
        (
            "bedrock",
            {"role": "user", "content": [{"toolResult": {"toolUseId": "1", "content": []}}, {"text": "x"}]},
            {"tool", "user"},
        ),
        ("bedrock", {"role": "user", "content": [{"document": {"name": "d"}}]}, {"document"}),
        ("bedrock", {"role": "user", "content": [{"searchResult": {}}]}, {"document"}),
    ],
)
def test_a_form_tells_whose_words_a_message_holds(form: str, message: Any, origins: set[str]) -> None:
    """A user message may hold what a tool returned, or a document."""
    assert get_format(form).origins(message) == origins


def copies(messages: list[Any]) -> str:
    """Write all that was said but the filler, as a summarizer that is no model would."""
    return re.sub(r"\s+|(?:w )+", " ", " ".join(map(str, messages)))


def short(messages: list[Any]) -> str:
    """Write a summary that fits."""
    return "They looked for it."


@pytest.mark.parametrize(
    ("messages", "role", "whose"),
    [
        ([*CHAT, {"role": "assistant", "content": "Here."}], "system", ""),
        ([*CHAT, *tool_messages("openai_chat", "c1", "found")], "user", ' from="user, assistant, tool"'),
        (
            [{"role": "user", "content": "a"}, {"role": "system", "content": "b"}],
            "system",
            ' from="system, user, assistant"',
        ),
    ],
)
def test_a_summary_says_its_sources_and_has_the_least_of_them(messages: Any, role: str, whose: str) -> None:
    """It is system text only where no tool and no document is among its sources; else a note says so."""
    strategy = Summarize(short, role="system", max_summary_tokens=60)
    fitted = fit(
        [*messages, {"role": "assistant", "content": "w " * 300}, {"role": "user", "content": "Go on."}],
        70,
        counter=WordCounter(),
        strategy=strategy,
    )
    summary = next(one for one in fitted.messages if "<summary" in str(one.get("content")))
    assert summary["role"] == role
    assert f'messages"{whose} by=' in summary["content"]
    noted = any("has the role 'user', not 'system'" in note for note in fitted.report.notes)
    assert noted == (role == "user")


def test_a_host_may_trust_summaries() -> None:
    """The role asked for is kept then, and the mark still names the sources."""
    strategy = Summarize(short, role="system", max_summary_tokens=60, trust_summaries=True)
    talk = [
        *CHAT,
        *tool_messages("openai_chat", "c1", "w " * 300),
        {"role": "user", "content": "Go on."},
    ]
    fitted = fit(talk, 70, counter=WordCounter(), strategy=strategy)
    assert fitted.messages[0]["role"] == "system"
    assert 'from="user, assistant, tool"' in fitted.messages[0]["content"]
    assert strategy.trust_summaries is True


def test_a_host_may_lower_an_origin_and_never_raise_it() -> None:
    """`origin=` is asked about what a summary is made of."""
    strategy = Summarize(short, role="system", max_summary_tokens=60)
    talk = [{"role": "user", "content": "w " * 300}, {"role": "user", "content": "Go on."}]
    fitted = fit(talk, 70, counter=WordCounter(), strategy=strategy, origin=lambda message: "document")
    assert fitted.messages[0]["role"] == "user"
    assert 'from="document"' in fitted.messages[0]["content"]
    context = Context(70, counter=WordCounter(), origin=lambda message: "document")
    fitted = context.add("history", talk, strategy=strategy).fit()
    assert 'from="document"' in fitted.messages[0]["content"]
    with pytest.raises(ConfigurationError, match="would raise message 0"):
        fit(talk, 70, counter=WordCounter(), strategy=strategy, origin=lambda message: "system")
    with pytest.raises(ConfigurationError, match="origin must be one of"):
        fit(talk, 70, counter=WordCounter(), strategy=strategy, origin=lambda message: "stranger")
    with pytest.raises(ConfigurationError, match="origin must be a function"):
        fit(talk, 70, counter=WordCounter(), origin="document")  # type: ignore[call-overload]


def test_what_was_summarized_before_keeps_its_sources() -> None:
    """A stateless caller gives back what came out: the mark says whose words the summary is made of."""
    strategy = Summarize(short, role="system", max_summary_tokens=60)
    talk = [
        *CHAT,
        *tool_messages("openai_chat", "c1", "w " * 300),
        {"role": "user", "content": "Go on."},
    ]
    once = fit(talk, 70, counter=WordCounter(), strategy=strategy).messages
    again = [*once, {"role": "user", "content": "w " * 300}, {"role": "user", "content": "And now?"}]
    twice = fit(
        again, 70, counter=WordCounter(), strategy=Summarize(short, role="system", max_summary_tokens=60)
    )
    assert twice.messages[0]["role"] == "user"
    assert "tool" in twice.messages[0]["content"].split(" by=")[0]


@pytest.mark.few(7)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("channel", CHANNELS)
def test_no_injection_gains_an_operators_say_by_a_fit(form: str, channel: str) -> None:
    """500 texts, copied into summaries by role "system" and by default: none stands in a system message."""
    lowered = channel == "lowered user" or (channel == "document" and not has_document_parts(form))
    wire = get_format(form)
    for at in range(0, 500, 25):
        texts = injections()[at : at + 25]
        talk: list[Any] = []
        for place, text in enumerate(texts):
            talk.append(text_message(form, "user", f"question {place}"))
            if channel == "tool":
                talk += tool_messages(form, f"c{place}", text)
            elif channel == "document":
                talk.append(document_message(form, text))
            else:
                talk.append(text_message(form, "assistant" if channel == "assistant" else "user", text))
            talk.append(text_message(form, "assistant", "Done."))
        talk += [text_message(form, "assistant", "w " * 2_100), text_message(form, "user", "Go on.")]
        for role in ("user", "system"):
            if channel == "assistant" and role == "system":
                continue  # an operator who asks for it has the model's words as system text
            strategy = Summarize(copies, role=role, max_summary_tokens=2_000)
            fitted = fit(
                talk,
                2_100,
                counter=WordCounter(),
                format=form,
                strategy=strategy,
                origin=(lambda message: None if wire.kind(message) != "user" else "document")
                if lowered
                else None,
            )
            system = [one for one in fitted.messages if wire.kind(one) == "system"]
            assert system == []
            assert texts[0].split()[-1] in str(fitted.messages[0])  # it was copied, and stands there as data
