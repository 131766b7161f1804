"""What hosts charge beside texts: chat templates of open models, hidden prompts, tools that are dropped.

The numbers are the rules that bills told (design/012-counts.md), on inputs of our own; those of
`tests/test_counting_billed.py` hold them against the bills.
"""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from trimtab import fit
from trimtab.counting import counter_for, measure
from trimtab.formats import detect, get_format
from trimtab.models import facts_for

ASKED = {"role": "user", "content": "Rent me a bike"}
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "rent",
        "description": "Rent a bike.",
        "parameters": {
            "type": "object",
            "properties": {"size": {"type": "integer"}, "station": {"type": "string"}},
            "required": ["size"],
        },
    },
}


def words(model: str, text: str) -> int:
    """Count a text alone."""
    return counter_for(model).count_text(text)


def tokens(model: str, messages: list[Any], **body: Any) -> int:
    """Count a body of Chat."""
    return measure({"model": model, "messages": messages, **body}, model=model, format="openai_chat").tokens


@pytest.mark.parametrize(
    ("model", "frame"),
    [
        ("qwen3", 8),  # <|im_start|> user, line, <|im_end|>, line; <|im_start|> assistant, line
        ("qwen2.5", 8 + 21),  # and a system message that names the model
        ("llama-3", 10),
        ("llama-3.1", 10 + 25),  # and a system message with the date
        ("deepseek-chat", 4),
        ("glm-4.7", 5),
        ("glm-5.3", 12),
        ("grok-4.3", 192),
        ("grok-4", 684),
    ],
)
def test_a_message_is_framed_as_the_template_of_its_model_frames_it(model: str, frame: int) -> None:
    """One user's message: all that is not its text."""
    assert tokens(model, [ASKED]) == words(model, ASKED["content"]) + frame


@pytest.mark.parametrize(("model", "saved"), [("llama-3.3", 5), ("qwen2.5", 21)])
def test_a_system_message_takes_the_place_of_the_models_own(model: str, saved: int) -> None:
    """The date stays in it, the frame is charged once."""
    system = {"role": "system", "content": "Be brief."}
    more = tokens(model, [system, ASKED]) - tokens(model, [ASKED])
    assert more == words(model, "Be brief.") + 5 - saved


@pytest.mark.parametrize(
    ("model", "intro", "indent"),
    [
        ("qwen3", 5 + 118, None),  # the frame of a system message, which there is none of
        ("qwen3-coder", 5 + 214, None),
        ("deepseek-v4-flash", 2 + 211, None),
        ("deepseek-chat-v3-0324", 2 + 108, None),
        ("glm-5.2", 2 + 80, None),
        ("llama-3.3", 56, 4),
    ],
)
def test_tools_of_open_models_are_json_with_an_introduction(
    model: str, intro: int, indent: int | None
) -> None:
    """As the templates write them, with blanks between marks."""
    more = tokens(model, [ASKED], tools=[TOOL]) - tokens(model, [ASKED])
    assert more == intro + words(model, json.dumps(TOOL, indent=indent))


def test_llama_4_pays_for_tools_what_groq_adds_and_less_on_bedrock() -> None:
    """The wire form tells the host: 650 tokens at Groq, 90 in Converse."""
    written = words("llama-4-scout", json.dumps([TOOL], separators=(",", ":")))
    more = tokens("llama-4-scout", [ASKED], tools=[TOOL]) - tokens("llama-4-scout", [ASKED])
    assert more == 5 + 650 + written
    spec = {
        "name": "rent",
        "description": "Rent a bike.",
        "inputSchema": {"json": TOOL["function"]["parameters"]},
    }
    converse = {"messages": [{"role": "user", "content": [{"text": ASKED["content"]}]}]}
    with_tool = {**converse, "toolConfig": {"tools": [{"toolSpec": spec}]}}
    model = "us.meta.llama4-scout-17b-instruct-v1:0"
    assert measure(with_tool, model=model).tokens - measure(converse, model=model).tokens < 200


@pytest.mark.parametrize("model", ["mistral-small-latest", "mistral-large-latest", "deepseek-chat"])
@pytest.mark.parametrize("choice", ["none", {"type": "none"}])
def test_tools_are_free_where_none_may_be_called_and_the_provider_drops_them(
    model: str, choice: object
) -> None:
    """Billed as without; a fit counts alike."""
    assert tokens(model, [ASKED], tools=[TOOL], tool_choice=choice) == tokens(model, [ASKED])
    body = {"model": model, "messages": [ASKED], "tools": [TOOL], "tool_choice": choice}
    assert fit(body, 5_000, model=model).report.tokens_after == tokens(model, [ASKED])


@pytest.mark.parametrize("model", ["gpt-4o", "qwen3", "openrouter/deepseek/deepseek-v3.2"])
def test_tools_are_charged_where_nobody_saw_them_dropped(model: str) -> None:
    """OpenAI charges them, and of a host it is not known."""
    assert tokens(model, [ASKED], tools=[TOOL], tool_choice="none") == tokens(model, [ASKED], tools=[TOOL])


def test_thoughts_of_mistral_are_no_block_of_anthropics() -> None:
    """A part of the same type, which holds a list of texts: Chat's, whatever the model is."""
    thought = "First the size, then the station. " * 20
    answer = {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": [{"type": "text", "text": thought}]},
            {"type": "text", "text": "Which size?"},
        ],
    }
    messages = [ASKED, answer, {"role": "user", "content": "54"}]
    for model in ("magistral-medium-latest", None):
        assert detect({"messages": messages}, model=model).name == "openai_chat"
    found = measure({"model": "mistral-small-latest", "messages": messages})
    assert found.format == "openai_chat"
    assert found.sizes is not None
    # brackets around the thought, and the end of the answer
    model = "mistral-small-latest"
    assert found.sizes[1] == words(model, thought) + words(model, "Which size?") + 3
    blocks = [{"type": "thinking", "thinking": thought, "signature": "x"}, {"type": "text", "text": "54"}]
    assert detect([{"role": "assistant", "content": blocks}]).name == "anthropic"


def test_media_in_mistrals_spelling_are_media() -> None:
    """An address as a text in place of an object, and a document by its address."""
    data = base64.b64encode(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x80\0\0\0\x80").decode()
    parts = [
        {"type": "image_url", "image_url": f"data:image/png;base64,{data}"},
        {"type": "document_url", "document_url": "https://example.org/a.pdf"},
        {"type": "input_audio", "input_audio": "https://example.org/a.mp3"},
    ]
    pieces = get_format("openai_chat").pieces({"role": "user", "content": parts})
    assert [medium.kind for medium in pieces.media] == ["image", "file", "audio"]
    assert pieces.other == ()
    assert measure([{"role": "user", "content": parts[:1]}], model="mistral-small-latest").media_tokens == 30


def test_a_name_of_mistral_is_not_exact() -> None:
    """One without a date leads to another model some day, and no bill names one with a date."""
    for name in ("mistral-large", "mistral-medium", "mistral-small", "ministral-8b"):
        latest = measure([ASKED], model=f"{name}-latest")
        assert not latest.exact
        assert latest.margin_tokens == 6  # 5 tokens and 2 %
        assert not facts_for(f"{name}-latest").exact
    assert tokens("mistral-small-2603", [ASKED]) == tokens("mistral-small-latest", [ASKED])


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning"])
def test_reasoning_of_a_turn_that_is_over_is_free_where_the_template_drops_it(key: str) -> None:
    """DeepSeek's and Qwen's do; GLM's keeps what the request says it should, and xAI bills it."""
    thought = "The station is closed on Sundays. " * 20
    answer = {"role": "assistant", "content": "Which size?"}
    over = [ASKED, {**answer, key: thought}, {"role": "user", "content": "54"}]
    without = [ASKED, answer, {"role": "user", "content": "54"}]
    for model in ("deepseek-chat", "qwen3"):
        assert tokens(model, over) == tokens(model, without)
        assert tokens(model, over[:2]) == tokens(model, without[:2]) + words(model, thought)
    assert tokens("glm-4.7", over) == tokens("glm-4.7", without) + words("glm-4.7", thought)


@pytest.mark.parametrize("model", ["gemini-2.5-flash", "gemini-3.8-flash", "vertex/gemini-2.5-pro", "qwen3"])
def test_each_digit_is_a_token_where_the_vocabulary_has_no_numbers(model: str) -> None:
    """Where o200k takes three as one."""
    # a longer text than a number alone, so that rounding by a factor does not show
    assert words(model, "at 123456") - words(model, "at 12") == 4 + (
        words(model, "at 12") - words(model, "at 1") - 1
    )


def test_the_end_of_a_line_is_a_token_behind_a_mark_in_geminis_vocabulary() -> None:
    """o200k has one for both, so that JSON on many lines was counted a fifth too low."""
    lines = '{\n  "name": "Ada",\n  "tags": [\n    "a"\n  ]\n}'
    ends = 4  # behind {, the comma, [ and ]; the one behind "a" stands behind a mark, too
    assert words("gemini-2.5-flash", lines) == words("gpt-4o", lines) + ends + 1
    assert words("gemini-2.5-flash", "one\ntwo\nthree") == words("gpt-4o", "one\ntwo\nthree")


def gemini(*parts: Any) -> list[dict[str, Any]]:
    """Make a question, an answer of these parts, and another question."""
    asked = {"role": "user", "parts": [{"text": ASKED["content"]}]}
    return [asked, {"role": "model", "parts": list(parts)}, {"role": "user", "parts": [{"text": "54"}]}]


def test_geminis_own_tools_are_free_until_they_run() -> None:
    """And named: what they bring along is not in the request."""
    body = {"contents": gemini({"text": "Which size?"})}
    with_search = measure({**body, "tools": [{"googleSearch": {}}]}, model="gemini-2.5-flash")
    assert with_search.tokens == measure(body, model="gemini-2.5-flash").tokens
    assert with_search.unknown == ("the provider's own tool 'googleSearch'",)


def test_a_thought_without_a_signature_is_text_to_gemini() -> None:
    """With one the text is a summary, and what is sealed stands for the thought."""
    thought = {"text": "The station is closed on Sundays.", "thought": True}
    answer = {"text": "Which size?"}
    model = "gemini-2.5-flash"
    plain = measure(gemini(answer), model=model, format="gemini").tokens
    found = measure(gemini(thought, answer), model=model, format="gemini").tokens
    assert found == plain + words(model, thought["text"])
    signed = {**answer, "thoughtSignature": base64.b64encode(bytes(300)).decode()}
    assert measure(gemini(thought, signed), model=model, format="gemini").tokens == plain


def test_signatures_are_in_the_margin_of_gemini_2_5_and_in_the_count_of_3() -> None:
    """Some bills of 2.5 charge 0.16 tokens a character and most nothing; 3 charges what is above 200."""
    signature = base64.b64encode(bytes(1_500)).decode()
    assert len(signature) == 2_000
    turn = gemini({"functionCall": {"name": "rent", "args": {}}})[:2]
    signed = gemini({"functionCall": {"name": "rent", "args": {}}, "thoughtSignature": signature})[:2]
    old, new = "gemini-2.5-flash", "gemini-3.8-flash"
    bare, sealed = measure(turn, model=old, format="gemini"), measure(signed, model=old, format="gemini")
    assert sealed.tokens == bare.tokens
    assert sealed.margin_tokens is not None
    assert bare.margin_tokens is not None
    assert sealed.margin_tokens - bare.margin_tokens == -(-2_000 // 6)
    more = (
        measure(signed, model=new, format="gemini").tokens - measure(turn, model=new, format="gemini").tokens
    )
    assert more == -(-1_800 * 100 // 465)


def test_a_file_that_is_text_is_charged_as_its_text() -> None:
    """A table that stands in the request as base64."""
    table = "region,q1,q2\nNorth,120,135\n" * 5
    held = {"inlineData": {"mimeType": "text/csv", "data": base64.b64encode(table.encode()).decode()}}
    contents = [{"role": "user", "parts": [{"text": "Which region?"}, held]}]
    found = measure({"contents": contents}, model="gemini-2.5-flash")
    assert found.media_tokens == words("gemini-2.5-flash", table)
    assert found.unknown == ()


def test_json_of_any_shape_is_named_where_hosts_add_for_it_what_they_like() -> None:
    """From nothing to 212 tokens, by host; OpenAI adds nothing."""
    asked = {"messages": [ASKED], "response_format": {"type": "json_object"}}
    named = ("what a host adds for an answer in JSON (response_format)",)
    for model in ("qwen3", "openai/gpt-oss-120b"):
        found = measure({"model": model, **asked})
        assert found.unknown == measure(asked, model=model).unknown == named
        assert found.margin_tokens is not None
        assert fit(asked, 5_000, model=model).report.notes == (
            f"What this costs is not known from the request: {named[0]}.",
        )
    assert measure({"model": "gpt-4o", **asked}).unknown == ()
    assert measure({"model": "qwen3", "messages": [ASKED]}).unknown == ()
