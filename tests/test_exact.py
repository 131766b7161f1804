"""What a count may call exact: nothing it has not seen; what it leaves out is named."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from trimtab import fit
from trimtab.counting import counter_for, measure
from trimtab.models import ModelFacts, register_model
from trimtab.testing import WordCounter

TEXT = {"type": "text", "text": "What is this?"}
WAVE = base64.b64encode(
    b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x80\x3e\0\0\0\x7d\0\0" + bytes(64_000)
).decode()
PDF = base64.b64encode(b"%PDF-1.4 /Type /Page " + bytes(3_000)).decode()


def user(*parts: Any) -> list[dict[str, Any]]:
    """Make a message of parts."""
    return [{"role": "user", "content": [TEXT, *parts]}]


@pytest.mark.parametrize(
    ("part", "named"),
    [
        pytest.param({"type": "document_url", "document_url": "https://example.org/a.pdf"}, "", id="remote"),
        pytest.param(
            {"type": "document_url", "document_url": "data:application/pdf;base64," + PDF}, "", id="pdf"
        ),
        pytest.param({"type": "file", "file": {"file_data": PDF}}, "1 document", id="file"),
        pytest.param(
            {"type": "input_audio", "input_audio": {"data": WAVE, "format": "wav"}}, "1 sound", id="sound"
        ),
        pytest.param({"type": "input_audio", "input_audio": WAVE}, "1 sound", id="mistral-sound"),
        pytest.param({"type": "acme_part", "acme": 5}, "parts or keys without a rule in 1 message", id="new"),
    ],
)
def test_mistrals_documents_and_sound_are_not_exact(part: dict[str, Any], named: str) -> None:
    """No bill of one was compared, and one was 997 for the 115 that its address takes."""
    found = measure(user(part), model="mistral-large-latest", format="openai_chat")
    assert found.exact is False
    assert found.margin_tokens is None
    assert any(named in phrase for phrase in found.unknown)


def test_mistrals_thoughts_are_counted_by_their_words_and_not_exact() -> None:
    """Not as the JSON they stand in."""
    thoughts = {"type": "thinking", "thinking": [{"type": "text", "text": "It is a cat, I think."}]}
    asked = {"role": "user", "content": "What is this?"}
    answered = {"role": "assistant", "content": [thoughts, {"type": "text", "text": "A cat."}]}
    plain = measure([asked, {**answered, "content": "A cat."}], model="magistral-medium-latest")
    found = measure([asked, answered], model="magistral-medium-latest", format="openai_chat")
    words = counter_for("magistral-medium-latest").count_text("It is a cat, I think.")
    assert found.tokens - plain.tokens == words + 2  # the brackets around thoughts
    assert set(found.unknown) - set(plain.unknown) == {"thoughts of earlier answers in 1 message"}
    assert found.exact is False


def test_messages_that_are_a_guess_are_counted_whatever_stands_behind_them() -> None:
    """Two with thoughts, and one without between and behind them."""
    thoughts = {"type": "thinking", "thinking": [{"type": "text", "text": "It is a cat, I think."}]}
    answered = {"role": "assistant", "content": [thoughts, {"type": "text", "text": "A cat."}]}
    found = measure([*PLAIN, answered] * 2 + PLAIN, model="magistral-medium-latest", format="openai_chat")
    assert found.unknown[-1] == "thoughts of earlier answers in 2 messages"


@pytest.mark.parametrize("sealed", [["x"], ["x" * 300], ["x", "x" * 300]])
def test_reasoning_that_only_the_provider_can_read_is_named(sealed: list[str]) -> None:
    """However little of it there is, and in how many messages; what stands behind it is readable."""
    turns = [
        message
        for data in sealed
        for message in (
            {"role": "assistant", "content": [{"type": "redacted_thinking", "data": data}, TEXT]},
            {"role": "user", "content": "And now?"},
        )
    ]
    found = measure({"model": "claude-opus-5", "max_tokens": 9, "messages": [*PLAIN, *turns]})
    messages = "1 message" if len(sealed) == 1 else "2 messages"
    assert found.unknown == (f"reasoning in {messages} that only the provider can read",)


PLAIN = [{"role": "user", "content": "Hello"}]


@pytest.mark.parametrize(
    ("body", "named"),
    [
        (
            {"model": "gpt-4o", "messages": PLAIN, "web_search_options": {}},
            "a web search that the provider runs",
        ),
        (
            {"model": "gpt-4o", "messages": PLAIN, "plugins": [{"id": "web"}]},
            "plugins that the provider runs",
        ),
        (
            {"model": "magistral-medium-latest", "messages": PLAIN, "prompt_mode": "reasoning"},
            "the system prompt that the provider adds",
        ),
        (
            {"model": "gpt-4o", "input": [{"type": "item_reference", "id": "m"}, *PLAIN]},
            "1 item that the provider stored",
        ),
        (
            {"model": "gpt-4o", "input": "Hello", "previous_response_id": "r"},
            "the conversation that the provider stored",
        ),
        (
            {"model": "gpt-4o", "input": "Hello", "conversation": "c"},
            "the conversation that the provider stored",
        ),
        ({"model": "gpt-4o", "input": "Hello", "prompt": {"id": "p"}}, "the prompt that the provider stored"),
        (
            {"model": "gpt-4o", "input": "Hello", "tools": [{"type": "web_search"}]},
            "the provider's own tool 'web_search'",
        ),
        (
            {"model": "claude-opus-5", "messages": PLAIN, "mcp_servers": [{"url": "https://example.org"}]},
            "the tools of MCP servers",
        ),
        (
            {
                "model": "claude-opus-5",
                "messages": PLAIN,
                "tools": [{"type": "web_search_20250305", "name": "web_search"}],
            },
            "the provider's own tool 'web_search_20250305'",
        ),
        (
            {
                "model": "gemini-3.8-flash",
                "contents": [{"role": "user", "parts": [{"text": "Hi"}]}],
                "cachedContent": "c",
            },
            "the cached content",
        ),
        (
            {
                "model": "gemini-3.8-flash",
                "contents": [{"role": "user", "parts": [{"text": "Hi"}]}],
                "cached_content": "c",
            },
            "the cached content",
        ),
        (
            {
                "model": "gemini-3.8-flash",
                "contents": [{"role": "user", "parts": [{"text": "Hi"}]}],
                "tools": [{"googleSearch": {}}],
            },
            "the provider's own tool 'googleSearch'",
        ),
    ],
)
def test_what_a_body_only_names_is_named_and_no_margin_holds_it(body: dict[str, Any], named: str) -> None:
    """By `measure` and by the report; what the provider adds may be of any size."""
    found = measure(body)
    assert (found.exact, found.margin_tokens) == (False, None)
    assert [phrase for phrase in found.unknown if phrase.startswith(named)]
    report = fit(body, 5_000).report
    assert report.exact is False
    assert named in report.notes[-1]


def test_a_body_without_such_things_is_exact() -> None:
    """So that it is these that make the difference; empty lists and texts name nothing."""
    for more in ({}, {"plugins": []}, {"tools": []}):
        body = {"model": "gpt-4o", "messages": PLAIN, **more}
        assert (measure(body).exact, measure(body).unknown) == (True, ())
        assert (fit(body, 5_000).report.exact, fit(body, 5_000).report.notes) == (True, ())


def test_a_picture_by_its_address_is_named_as_long_as_it_is_there() -> None:
    """The report is of what goes out."""
    picture = {"type": "image_url", "image_url": {"url": "https://example.org/cat.png"}}
    messages = [*user(picture), {"role": "assistant", "content": "A cat."}, *PLAIN]
    whole = fit(messages, 5_000, model="gpt-4o").report
    assert whole.exact is False
    assert whole.notes == (
        "What this costs is not known from the request: 1 image whose size the request does not hold.",
    )
    without = fit(messages, 500, model="gpt-4o").report
    assert (without.exact, without.notes) == (True, ())


class Bills(WordCounter):
    """A counter of the caller's own that says it is exact."""

    exact = True


def test_a_counter_of_the_callers_own_is_taken_at_its_word_and_not_for_media() -> None:
    """It may see more of a medium than we do, so that none is named; how large one is, it does not say."""
    picture = {"type": "image_url", "image_url": {"url": "https://example.org/cat.png"}}
    plain = measure(user(TEXT), counter=Bills(), format="openai_chat")
    seen = measure(user(picture), counter=Bills(), format="openai_chat")
    assert (plain.exact, plain.margin_tokens, plain.unknown) == (True, 0, ())
    assert (seen.exact, seen.margin_tokens, seen.unknown) == (False, None, ())


def test_several_texts_in_one_message_are_not_exact() -> None:
    """Some hosts join them, some do not: 3,171 were counted for 3,152."""
    assert measure([{"role": "user", "content": [TEXT]}], model="gpt-4o").exact is True
    twice = measure([{"role": "user", "content": [TEXT, TEXT]}], model="gpt-4o")
    assert (twice.exact, twice.margin_tokens) == (False, 7)


def test_a_task_budget_is_charged() -> None:
    """37 tokens, by the bill of one."""
    body: dict[str, Any] = {"model": "claude-opus-5", "messages": PLAIN, "max_tokens": 9}
    budget = {"type": "tokens", "total": 20_000}
    plain, with_budget = measure(body), measure({**body, "output_config": {"task_budget": budget}})
    assert with_budget.tokens - plain.tokens == 37
    assert (
        fit({**body, "output_config": {"task_budget": budget}}, 500).report.tokens_after == with_budget.tokens
    )


CALLED = [
    *PLAIN,
    {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "look", "input": {"at": 1}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "Nothing."}]},
]


def test_claude_frames_calls_only_in_a_request_that_has_tools() -> None:
    """510 were billed without, 711 counted with the frames. A bare list may be sent with tools still."""
    body: dict[str, Any] = {"model": "claude-opus-4-6", "messages": CALLED, "max_tokens": 9}
    listed = measure(CALLED, model="claude-opus-4-6", format="anthropic")
    whole = measure(body)
    assert listed.tokens - whole.tokens == 25 + 18  # a call's and a result's
    assert fit(body, 500).report.tokens_after == whole.tokens
    tools = [{"name": "look", "input_schema": {"type": "object"}}]
    framed = measure({**body, "tools": tools})
    assert framed.messages_tokens == listed.messages_tokens


def _both(body: dict[str, Any]) -> tuple[bool, tuple[str, ...]]:
    """Tell what `measure` says of a body, where the report of a fit says the same."""
    found, report = measure(body), fit(body, 50_000).report
    assert report.exact is found.exact
    assert report.tokens_after == found.tokens
    said = f"What this costs is not known from the request: {'; '.join(found.unknown)}."
    assert report.notes == ((said,) if found.unknown else ())
    return found.exact, found.unknown


@pytest.mark.parametrize(
    ("thinking", "named"),
    [
        ({"type": "adaptive"}, ("what adaptive thinking adds (thinking)",)),
        ({"type": "adaptive", "display": "omitted"}, ("what adaptive thinking adds (thinking)",)),
        ({"type": "between_tools"}, ("what between_tools thinking adds (thinking)",)),
        ({"type": "enabled", "budget_tokens": 2_000}, ()),
        ({"type": "disabled"}, ()),
        (None, ()),
    ],
    ids=str,
)
def test_thinking_without_a_budget_is_named(thinking: Any, named: tuple[str, ...]) -> None:
    """What it adds is documented nowhere; the margin holds it, as it held for three bills."""
    body = {"model": "claude-opus-4-6", "messages": PLAIN, "max_tokens": 9, "thinking": thinking}
    assert _both(body) == (False, named)
    assert measure(body).margin_tokens is not None


def test_thinking_with_a_budget_is_charged_where_only_the_model_tells_the_wire_form() -> None:
    """28 tokens, by the bills of many; `measure` took such a body for one of Chat and charged nothing."""
    body: dict[str, Any] = {"model": "claude-opus-4-6", "messages": PLAIN, "max_tokens": 9}
    with_budget = measure({**body, "thinking": {"type": "enabled", "budget_tokens": 2_000}})
    assert with_budget.tokens - measure(body).tokens == 28
    assert (with_budget.format, measure(PLAIN, model="claude-opus-4-6").format) == ("anthropic", "anthropic")


@pytest.mark.parametrize("model", ["magistral-medium-latest", "magistral-small-latest"])
@pytest.mark.parametrize("more", [{}, {"prompt_mode": "reasoning"}], ids=["by-default", "asked-for"])
def test_magistrals_default_prompt_is_named(model: str, more: dict[str, Any]) -> None:
    """Its provider puts one in front that no request holds; once, where the request asks for it as well."""
    named = "the system prompt that the provider adds (prompt_mode)"
    body = {"model": model, "messages": PLAIN, **more}
    assert _both(body) == (False, (named,))
    assert measure(body).margin_tokens is None
    assert measure(PLAIN, model=model).unknown == (named,)
    assert measure(PLAIN, model="mistral-large-latest").unknown == ()


SEALED = "gAAAA" * 200


@pytest.mark.parametrize(
    "body",
    [
        {"model": "gpt-5", "input": [{"type": "compaction", "encrypted_content": SEALED}, *PLAIN]},
        {
            "model": "claude-opus-5",
            "max_tokens": 9,
            "messages": [
                {
                    "role": "assistant",
                    "content": [
                        {"type": "compaction", "content": "A greeting.", "encrypted_content": SEALED}
                    ],
                },
                *PLAIN,
            ],
        },
    ],
    ids=["responses", "anthropic"],
)
def test_a_compaction_that_is_encrypted_is_named(body: dict[str, Any]) -> None:
    """It stands for all that was before; what it costs only the provider can tell."""
    assert _both(body) == (False, ("compaction in 1 message that only the provider can read",))
    items = next(key for key in ("input", "messages") if key in body)
    assert _both({**body, items: PLAIN})[1] == ()


def test_what_a_search_of_the_provider_sealed_is_named() -> None:
    """Results of a web search bring their pages encrypted."""
    found = {"type": "web_search_result", "url": "https://example.org", "encrypted_content": SEALED}
    content = [
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "tea"}},
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": [found]},
    ]
    messages = [*PLAIN, {"role": "assistant", "content": content}, *PLAIN]
    assert _both({"model": "claude-opus-5", "max_tokens": 9, "messages": messages})[1] == (
        "encrypted_content in 1 message that only the provider can read",
    )


def _tool(**schema: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {"city": {"type": "string", **schema}}}
    function = {"name": "weather", "description": "Tell the weather.", "parameters": parameters}
    return {"type": "function", "function": function}


def _answer(**schema: Any) -> dict[str, Any]:
    properties = {"city": {"type": "string", **schema}}
    shape = {"name": "a", "schema": {"type": "object", "properties": properties}}
    return {"type": "json_schema", "json_schema": shape}


SIDE_BY_SIDE: list[dict[str, Any]] = [
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": call_id, "type": "function", "function": {"name": "weather", "arguments": "{}"}}
            for call_id in ("a", "b")
        ],
    },
    *({"role": "tool", "tool_call_id": call_id, "content": "Rain."} for call_id in ("a", "b")),
]

UNSEEN: list[tuple[str, dict[str, Any]]] = [
    ("a limit of a property", {"tools": [_tool(maxLength=9)]}),
    ("tools that are allowed", {"tools": [_tool()], "tool_choice": {"type": "allowed_tools"}}),
    (
        "a tool behind a word of system text",
        {"messages": [{"role": "system", "content": "Be brief"}, *PLAIN], "tools": [_tool()]},
    ),
    ("calls side by side", {"messages": [*PLAIN, *SIDE_BY_SIDE, *PLAIN], "tools": [_tool()]}),
    ("a title in an output schema", {"response_format": _answer(title="City")}),
    ("a sound", {"messages": user({"type": "input_audio", "input_audio": {"data": WAVE, "format": "wav"}})}),
    ("a setting nobody was billed for", {"acme": True}),
    ("a model with another's rules", {"model": "ft:gpt-4o:acme::1"}),
]


@pytest.mark.parametrize("more", [more for _, more in UNSEEN], ids=[name for name, _ in UNSEEN])
def test_what_no_bill_bears_out_is_not_exact_and_has_a_margin(more: dict[str, Any]) -> None:
    """One such feature is enough; the report of a fit says the same of what goes out (SPEC B0b)."""
    body = {"model": "gpt-4o", "messages": PLAIN, "max_tokens": 9}
    assert _both(body) == (True, ())
    exact, unknown = _both({**body, **more})
    assert exact is False
    assert unknown or measure({**body, **more}).margin_tokens


@pytest.mark.parametrize("model", ["gpt-4o", "gpt-4o-mini-2024-07-18", "gpt-4.1", "azure/gpt-4o"])
def test_what_bills_bear_out_is_exact(model: str) -> None:
    """Also an answer in the history, and a tool with titles that is named to be called."""
    answered = [*PLAIN, {"role": "assistant", "content": "Hello to you."}, *PLAIN]
    assert _both({"model": model, "messages": answered}) == (True, ())
    for one in (_tool(), _tool(title="City")):
        body = {"model": model, "messages": PLAIN, "tools": [one]}
        assert _both(body) == (True, ())
        chosen = {"type": "function", "function": {"name": "weather"}}
        assert _both({**body, "tool_choice": chosen}) == (True, ())
    assert _both({"model": model, "messages": PLAIN, "response_format": _answer()}) == (True, ())


def test_a_model_that_is_described_anew_is_exact_by_its_own_word() -> None:
    """No bill of it was compared, and who describes a model knows it: for plain text, as ever."""
    register_model(ModelFacts(name="acme-exact", encoding="o200k_base", exact=True))
    assert measure(PLAIN, model="acme-exact").exact is True
    assert measure(PLAIN, model="acme-exact", tools=[_tool()]).exact is False
