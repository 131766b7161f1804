"""What providers say of a request that is too long, or whose thinking is another conversation's."""

from __future__ import annotations

from typing import Any

import pytest

from trimtab.formats import Refusal, get_format, read_refusal

# Words of providers as they stand in public threads, which trimtab/formats/api_errors.py names.
LONG: dict[str, tuple[int | None, int | None, int, int | None]] = {
    "prompt is too long: 208310 tokens > 200000 maximum": (208_310, 200_000, 0, None),
    "The model returned the following errors: prompt is too long: 200049 tokens > 200000 maximum": (
        *(200_049, 200_000, 0, None),
    ),
    "input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000, decrease input length or"
    " `max_tokens` and try again": (178_959, 136_000, 64_000, None),
    "Error code: 400 - {'error': {'message': \"This model's maximum context length is 16385 tokens. However,"
    " your messages resulted in 33625 tokens. Please reduce the length of the messages.\", 'type':"
    " 'invalid_request_error', 'param': 'messages', 'code': 'context_length_exceeded'}}": (
        *(33_625, 16_385, 0, None),
    ),
    "This model's maximum context length is 4097 tokens. However, you requested 4268 tokens (4012 in the"
    " messages, 256 in the completion). Please reduce the length of the messages or completion.": (
        *(4_012, 3_841, 256, None),
    ),
    "This model's maximum context length is 16384 tokens. However, you requested 122946 tokens (112946 in the"
    " messages, 10000 in the completion).": (112_946, 6_384, 10_000, None),
    "This model's maximum context length is 8192 tokens. However, you requested 9100 tokens (8000 in the"
    " messages, 100 in the functions, and 1000 in the completion).": (8_100, 7_192, 1_000, None),
    "400 This endpoint's maximum context length is 32768 tokens. However, you requested about 42832 tokens"
    " (42832 of text input). Please reduce the length of either one": (42_832, 32_768, 0, None),
    "This endpoint's maximum context length is 32768 tokens. However, you requested about 42832 tokens (41832"
    " of text input, 1000 in the output).": (41_832, 31_768, 1_000, None),
    "This model's maximum context length is 2048 tokens. However, your request has 1900 input tokens plus 200"
    " 'max_tokens'. Please reduce one or the other.": (1_900, 1_848, 200, None),
    "'max_tokens' or 'max_completion_tokens' is too large: 1000. This model's maximum context length is 4096"
    " tokens and your request has 4000 input tokens (1000 > 4096 - 4000).": (4_000, 3_096, 1_000, None),
    "This model's maximum context length is 4096 tokens. However, your request has 5000 input tokens.": (
        *(5_000, 4_096, 0, None),
    ),
    "The decoder prompt (length 5000) is longer than the maximum model length of 4096.": (
        *(5_000, 4_096, 0, None),
    ),
    "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 289650 tokens."
    " Please reduce the length of the messages.": (289_650, 272_000, 0, None),
    "400 INVALID_ARGUMENT. {'error': {'code': 400, 'message': 'The input token count (1200293) exceeds the"
    " maximum number of tokens allowed (1048576).', 'status': 'INVALID_ARGUMENT'}}": (
        *(1_200_293, 1_048_576, 0, None),
    ),
    "The input token count exceeds the maximum number of tokens allowed 1048576.": (None, 1_048_576, 0, None),
    "Prompt contains 300000 tokens, too large for model with 131072 maximum context length": (
        *(300_000, 131_072, 0, None),
    ),
    "Prompt contains 40,001 tokens and 0 draft tokens, too large for model with 32,768 maximum context"
    " length": (*(40_001, 32_768, 0, None),),
    "{'error': {'code': 400, 'message': 'the request exceeds the available context size. try increasing the"
    " context size or enable context shift', 'type': 'exceed_context_size_error', 'n_prompt_tokens': 14429,"
    " 'n_ctx': 8192}}": (14_429, 8_192, 0, None),
    "request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it": (
        *(5_000, 4_096, 0, None),
    ),
    "prompt too long; exceeded max context length by 12 tokens": (None, None, 0, 12),
    "the input length exceeds the context length": (None, None, 0, None),
    "Your input exceeds the context window of this model. Please adjust your input and try again.": (
        *(None, None, 0, None),
    ),
    "An error occurred (ValidationException) when calling the Converse operation: Input is too long for"
    " requested model.": (None, None, 0, None),
}


@pytest.mark.parametrize(("text", "said"), LONG.items())
def test_the_numbers_of_a_request_that_is_too_long_are_read(
    text: str, said: tuple[int | None, int | None, int, int | None]
) -> None:
    """How long its input is, how long it may be beside its answer, and by how much it is too long."""
    sent, limit, answer, excess = said
    assert read_refusal(text) == Refusal("too_long", sent, limit, answer, excess)


@pytest.mark.parametrize(
    "text",
    [
        "messages.1.content.0: Invalid `signature` in `thinking` block",
        "messages.3.content.0: Invalid `signature` in `thinking` block. The block is bound to a different"
        " conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior`.",
        "Corrupted thought signature.",
        "Unable to submit request because Thought signature is not valid..",
    ],
)
def test_thinking_that_is_refused_is_told(text: str) -> None:
    """Of Claude and Gemini, within whatever else their clients write."""
    assert read_refusal(f"Error code: 400 - {{'error': {{'message': {text!r}}}}}") == Refusal("thinking")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Invalid value: 'assistent'.",
        "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29000, Requested 9000.",
        "Request too large for gpt-4 on tokens per min (TPM): Limit 10000, Requested 12000.",
        "The maximum tokens you requested exceeds the model limit of 2048.",
        "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens",
        "messages.1.content.0.thinking.signature: Field required",
        "maximum context length is many tokens",
    ],
)
def test_other_words_are_nobodys(text: str) -> None:
    """Limits of rate, of answers and of all else are the caller's."""
    assert read_refusal(text) is None


THOUGHT: dict[str, Any] = {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "EqQB"}}}
CALL: dict[str, Any] = {"toolUse": {"toolUseId": "t", "name": "look", "input": {}}}
RESULT: dict[str, Any] = {"toolResult": {"toolUseId": "t", "content": [{"text": "sunny"}]}}


def test_a_body_of_converse_forgets_its_reasoning() -> None:
    """In a tool loop it is switched off; a message of nothing else leaves, and the body stays as it was."""
    fields = {"thinking": {"type": "enabled", "budget_tokens": 1_024}, "top_k": 5}
    body = {
        "modelId": "anthropic.claude-sonnet-4-5",
        "messages": [
            {"role": "user", "content": [{"text": "Where?"}]},
            {"role": "assistant", "content": [THOUGHT]},
            {"role": "assistant", "content": [THOUGHT, CALL]},
            {"role": "user", "content": [RESULT]},
        ],
        "additionalModelRequestFields": fields,
    }
    made = get_format("bedrock").forget_thinking(body)
    assert made is not None
    assert [one["content"] for one in made["messages"]] == [[{"text": "Where?"}], [CALL], [RESULT]]
    assert made["additionalModelRequestFields"] == {"thinking": {"type": "disabled"}, "top_k": 5}
    assert fields["thinking"]["type"] == "enabled"
    assert get_format("bedrock").forget_thinking(made) is None


def test_forms_without_signed_thinking_have_nothing_to_forget() -> None:
    """What OpenAI's reasoning items are bound to is their ids: an error of theirs is the caller's."""
    assert get_format("openai_chat").forget_thinking({"messages": []}) is None
    assert get_format("openai_responses").forget_thinking({"input": []}) is None


@pytest.mark.parametrize(
    ("form", "thought", "bare"),
    [
        (
            "anthropic",
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Hm.", "signature": "EqQB"},
                    {"type": "text", "text": "Yes."},
                ],
            },
            {"role": "assistant", "content": [{"type": "text", "text": "Yes."}]},
        ),
        (
            "bedrock",
            {"role": "assistant", "content": [THOUGHT, CALL]},
            {"role": "assistant", "content": [CALL]},
        ),
        (
            "gemini",
            {"role": "model", "parts": [{"text": "Hm.", "thought": True}, {"text": "Yes."}]},
            {"role": "model", "parts": [{"text": "Yes."}]},
        ),
        (
            "openai_chat",
            {
                "role": "assistant",
                "content": "Yes.",
                "thinking_blocks": [{"type": "thinking", "thinking": "Hm.", "signature": "EqQB"}],
            },
            {"role": "assistant", "content": "Yes."},
        ),
    ],
)
def test_thinking_is_known_when_it_comes_back(form: str, thought: Any, bare: Any) -> None:
    """By what it is, whatever else the message says; and only what is known leaves."""
    known = get_format(form)
    key, text = known.rules.body_key, "And now?"
    user = (
        {"role": "user", "content": text} if form != "gemini" else {"role": "user", "parts": [{"text": text}]}
    )
    seal = known.thinking_key(thought)
    assert seal is not None
    assert known.thinking_key(bare) is None
    assert known.thinking_key({**thought}) == seal
    assert known.forget_thinking({key: [user, thought]}, {"another"}) is None
    assert known.forget_thinking({key: [user, thought]}, {seal}) == {key: [user, bare]}
