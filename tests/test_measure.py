"""`measure`: the count of a whole request, what it is made of, and how far it may be off."""

from __future__ import annotations

import base64
import struct
from typing import Any

import pytest

from tests.builders import assistant, call, result, system, user
from trimtab import ConfigurationError, EstimateCounter, fit
from trimtab.counting import Count, CountRequest, counter_for, counter_from_text, measure
from trimtab.errors import FormatError, UnknownNameError
from trimtab.formats import get_format

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "add",
            "description": "Add.",
            "parameters": {"type": "object", "properties": {"a": {"type": "number"}}},
        },
    }
]
SCHEMA = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}
PARTS = (
    "messages_tokens",
    "media_tokens",
    "system_tokens",
    "tools_tokens",
    "output_schema_tokens",
    "framing_tokens",
)


def body(**more: Any) -> dict[str, Any]:
    """Make a request body."""
    return {"model": "gpt-4o", "messages": [system(), user(), assistant(), user("and?")], **more}


def image(url: str) -> dict[str, Any]:
    """Make a user message that is an image."""
    return user([{"type": "image_url", "image_url": {"url": url}}])


def png(width: int, height: int) -> str:
    """Make the beginning of a picture, as a data URL."""
    data = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height)
    return "data:image/png;base64," + base64.b64encode(data).decode()


def parts_of(count: Count) -> int:
    """Add up the parts."""
    return sum(getattr(count, name) for name in PARTS)


@pytest.mark.parametrize(
    "request_body",
    [
        body(),
        body(tools=TOOLS),
        body(response_format=SCHEMA),
        body(messages=[user(), call("c1"), result("c1")], tools=TOOLS, response_format=SCHEMA),
        body(messages=[image(png(512, 512))]),
        {
            "model": "claude-sonnet-4-5",
            "system": "be brief",
            "messages": [user()],
            "tools": [{"name": "add", "input_schema": {}}],
        },
        {"model": "gemini-2.5-flash", "contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
    ],
)
def test_the_parts_add_up_to_what_the_counter_says_of_the_request(request_body: dict[str, Any]) -> None:
    """Nothing is counted twice, and nothing is left over."""
    found = measure(request_body, model=request_body["model"])
    assert parts_of(found) == found.tokens
    counter = counter_for(request_body["model"])
    form = counter.format
    request = form.read_request(request_body)
    assert found.format == form.name
    assert found.tokens == counter.count_request(
        CountRequest(request.messages, system=request.system, tools=request.tools, extra=request.extra)
    )


def test_only_what_was_billed_as_counted_is_exact() -> None:
    """And then the margin is nothing (SPEC B0b)."""
    assert (measure(body()).exact, measure(body()).margin_tokens) == (True, 0)
    for more in ({"tools": TOOLS}, {"response_format": SCHEMA}, {"acme": True}):
        found = measure(body(**more))
        assert not found.exact
        assert found.margin_tokens is not None
        assert 0 < found.margin_tokens < found.tokens


def test_a_schema_that_is_free_is_no_plain_text() -> None:
    """Whether it is free is known less well than what text costs."""
    request = {"messages": [user("What is a token?")]}
    plain = measure(request, model="gemini-2.5-flash")
    schema = measure({**request, "response_format": SCHEMA}, model="gemini-2.5-flash")
    assert plain.tokens == schema.tokens
    assert (plain.margin_tokens or 0) < (schema.margin_tokens or 0)


@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "gemini-2.5-flash"])
def test_a_model_without_a_public_tokenizer_is_never_exact(model: str) -> None:
    """Its counts have a margin."""
    found = measure([user("What is a token?")], model=model)
    assert not found.exact
    assert found.margin_tokens


def test_a_medium_that_cannot_be_seen_is_in_the_margin() -> None:
    """It is counted at the most it can cost, and may cost nearly nothing."""
    seen = measure([image(png(512, 512))], model="gpt-4o")
    unseen = measure([image("https://example.org/cat.png")], model="gpt-4o")
    assert seen.margin_tokens is not None
    assert unseen.margin_tokens is not None
    assert seen.margin_tokens < 10
    assert unseen.margin_tokens >= (unseen.media_tokens or 0) > 0


@pytest.mark.parametrize("format", ["openai_chat", "openai_responses", "anthropic", "gemini", "bedrock"])
def test_exact_is_of_the_form_the_model_is_asked_in(format: str) -> None:
    """How it would charge another is not known, and neither is how far that is off."""
    message = get_format(format).message("user", ["hi"])
    found = measure([message], model="gpt-4o", format=format)
    assert found.exact is (format == "openai_chat")
    assert found.margin_tokens is not None
    assert found.exact is (found.margin_tokens == 0)
    other = measure([message], model="mistral-large-latest", format=format)
    assert not other.exact  # an alias without a date moves
    assert other.margin_tokens


def test_an_unseen_image_is_in_the_margin_with_all_it_may_cost() -> None:
    """Mistral's request, with tools and a picture."""
    seen = measure([image(png(512, 512))], model="mistral-large-latest", tools=TOOLS)
    assert not seen.exact  # an alias without a date moves
    assert seen.media_tokens == 20 * 19  # 28 pixels a patch, a token more a row
    unseen = measure([image("https://example.org/cat.png")], model="mistral-large-latest", tools=TOOLS)
    assert not unseen.exact
    assert unseen.media_tokens == 56 * 55
    assert (unseen.margin_tokens or 0) - (seen.margin_tokens or 0) >= 56 * 55
    assert seen.tokens - seen.media_tokens == unseen.tokens - unseen.media_tokens
    assert parts_of(unseen) == unseen.tokens


@pytest.mark.parametrize("given", ["x", b"x", None, 5, (one for one in ())])
def test_what_is_no_conversation_is_refused_as_by_fit(given: Any) -> None:
    """Nothing of it is counted."""
    for ask in (measure, lambda value: fit(value, 100)):
        with pytest.raises(ConfigurationError, match="messages must be a list"):
            ask(given)


def test_the_model_is_the_one_the_body_names() -> None:
    """If it is known; else it is an estimate, whose margin nobody knows."""
    assert measure(body()).counter == "gpt-4o"
    unknown = measure(body(model="acme-9"))
    assert (unknown.counter, unknown.exact, unknown.margin_tokens) == ("estimate", False, None)
    assert measure([user()]).most_tokens is None


def test_a_counter_of_ones_own_says_what_it_can() -> None:
    """An additive one has sizes, a black box only a total; unknown is None."""
    words = counter_from_text(lambda text: len(text.split()), message_overhead=3)
    assert measure([user("a b c")], counter=words).tokens == words.count([user("a b c")])

    def black_box(messages: list[Any]) -> int:
        return sum(5 for one in messages if one["role"])

    found = measure([user(), user()], counter=black_box)
    assert (found.tokens, found.sizes, found.messages_tokens, found.margin_tokens) == (10, None, None, None)


def test_system_text_and_tools_may_stand_beside_a_list() -> None:
    """As with `fit`."""
    beside = measure([user()], model="gpt-4o", system="be brief", tools=TOOLS)
    within = measure(body(messages=[system("be brief"), user()], tools=TOOLS))
    assert beside.tokens == within.tokens
    apart = measure([user()], model="claude-sonnet-4-5", system="be brief", format="anthropic")
    assert apart.system_tokens == counter_for("claude-sonnet-4-5").count_text("be brief")


@pytest.mark.parametrize(
    ("model", "messages", "charged"),
    [
        pytest.param(
            "claude-sonnet-4-5",
            [
                user("q"),
                {
                    "role": "assistant",
                    "content": [{"type": "thinking", "thinking": "hm " * 50, "signature": "s"}],
                },
            ],
            True,
            id="open turn",
        ),
        pytest.param(
            "claude-sonnet-4-5",
            [
                user("q"),
                {
                    "role": "assistant",
                    "content": [{"type": "thinking", "thinking": "hm " * 50, "signature": "s"}],
                },
                user("and?"),
            ],
            False,
            id="a turn that is over",
        ),
    ],
)
def test_reasoning_is_charged_while_its_turn_lasts(model: str, messages: list[Any], charged: bool) -> None:
    """Bills of Claude 4.5 were the same with and without the thinking of an earlier turn."""
    without = [one for one in messages if one["role"] == "user"]
    more = (
        measure(messages, model=model, format="anthropic").tokens
        - measure(without, model=model, format="anthropic").tokens
    )
    assert (more > 40) is charged


@pytest.mark.parametrize(
    ("model", "charged"),
    [
        *[
            (name, True)
            for name in ("claude-opus-4-5", "claude-opus-4-6", "claude-opus-5", "claude-sonnet-4-6")
        ],
        *[(name, True) for name in ("claude-sonnet-5", "claude-fable-5")],
        *[(name, False) for name in ("claude-opus-4-1", "claude-sonnet-4-5", "claude-haiku-4-5")],
    ],
)
def test_later_models_of_claude_are_charged_for_the_thinking_of_earlier_turns(
    model: str, charged: bool
) -> None:
    """Which keep it in their context (docs "Extended thinking": Opus 4.5, Sonnet 4.6, and no Haiku)."""
    thought = {"type": "thinking", "thinking": "hm " * 500, "signature": "s"}
    answer = {"role": "assistant", "content": [thought, {"type": "text", "text": "a"}]}
    found = measure([user("q"), answer, user("and?")], model=model, format="anthropic")
    assert (found.tokens > 500) is charged


def test_thinking_that_can_be_read_is_charged_beside_what_is_sealed() -> None:
    """A message of Claude may hold both, and then neither hides the other."""
    words = {"type": "thinking", "thinking": "hm " * 2_000, "signature": "s"}
    sealed = {"type": "redacted_thinking", "data": "x" * 50}
    use = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
    counter = counter_for("claude-sonnet-4-5")
    alone, both, neither = (
        counter.count_message({"role": "assistant", "content": [*thought, use]})
        for thought in ([words], [words, sealed], [])
    )
    assert alone - neither >= 2_000
    assert both - alone == 50 // 5


def test_wrong_arguments_are_refused_in_words() -> None:
    """Each with what to write instead."""
    with pytest.raises(ConfigurationError, match="not both"):
        measure([user()], model="gpt-4o", counter=EstimateCounter())
    with pytest.raises(UnknownNameError):
        measure([user()], model="acme-9")
    with pytest.raises(FormatError, match=r"messages\[1\]"):
        measure([user(), 5])
