"""What providers answer to a request that is too long, or whose thinking they do not know, as data.

Clients and adapters ask here whether a call can be sent again, and how much shorter. A text that is not
known is nobody's business but the caller's.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple


class Refusal(NamedTuple):
    """The reason why a request was refused, if it can be sent again in another form.

    Args:
        kind: The input is longer than the model accepts, or has thinking made for another conversation.
        sent_tokens: Length of the input, as the provider counts.
        limit_tokens: Maximum length of the input, in addition to the requested answer.
        answer_tokens: How much longer the input could be without an answer; 0: the limit is for the input
            alone.
        excess_tokens: By how much it is too long, if only that is known.
    """

    kind: Literal["too_long", "thinking"]
    sent_tokens: int | None = None
    limit_tokens: int | None = None
    answer_tokens: int = 0
    excess_tokens: int | None = None


_NUMBER = r"([\d,]{1,13})"
_MOST = "maximum context length is # tokens.{1,20}"

# Read 2026-11-27, in the threads named beside each; # stands for a number. Hosts that speak for others quote
# them within their own words.
_TOO_LONG: tuple[tuple[str, str], ...] = (
    # Anthropic, also on Bedrock and Vertex: anthropics/claude-code#12186, daisuke-awaji/moca#254
    (r"prompt is too long: # tokens > # maximum", "sent limit"),
    # docker/docker-agent#569, continuedev/continue#6080
    (r"exceed context limit: # \+ # > #", "sent answer limit"),
    # OpenAI Chat, DeepSeek, older vLLM: conghaonet/hao_chatgpt#4, vllm-project/vllm#20409; tools stand apart
    (rf"{_MOST}you requested # tokens \([^)]{{1,80}}?\b# in the completion", "limit whole answer"),
    # OpenRouter: refly-ai/refly#1177
    (rf"{_MOST}you requested about # tokens \([^)]{{1,80}}?\b# in the output", "limit whole answer"),
    (rf"{_MOST}you requested (?:about )?# tokens", "limit sent"),
    # OpenAI Chat: OpenHands/OpenHands#998, webtimemachine/wtm2#579
    (rf"{_MOST}your messages resulted in # tokens", "limit sent"),
    # vLLM since 0.15: vllm-project/vllm#33425
    (rf"{_MOST}your request has # input tokens plus #", "limit sent answer"),
    (rf"{_MOST}your request has # input tokens \(# >", "limit sent answer"),
    (rf"{_MOST}your request has # input tokens", "limit sent"),
    (
        r"passed # input tokens and requested # output tokens.{1,60}context length is only # tokens",
        "sent answer limit",
    ),
    (r"prompt \(length #\) is longer than the maximum model length of #", "sent limit"),
    # OpenAI, models of the GPT-5 family: cline/cline#5474
    (r"exceed the configured limit of # tokens.{1,20}messages resulted in # tokens", "limit sent"),
    # Gemini: google-gemini/gemini-cli#6678, #27197
    (r"input token count \(?#?\)? ?exceeds the maximum number of tokens allowed \(?#", "sent limit"),
    # Mistral
    (r"Prompt contains # tokens.{0,40}too large for model with # maximum context length", "sent limit"),
    # llama.cpp: ggml-org/llama.cpp#15780, and what it has said since
    (r"request \(# tokens\) exceeds the available context size \(# tokens\)", "sent limit"),
    (r"exceeds the available context size.{1,120}n_prompt_tokens\W{1,4}#\W{1,4}n_ctx\W{1,4}#", "sent limit"),
    # Ollama
    (r"prompt too long; exceeded (?:max )?context length by # tokens", "excess"),
)
"""What is said, and what its numbers are, in order."""

_WITHOUT_NUMBERS = (
    # OpenAI Responses, and where it says no more than its code
    "input exceeds the context window of this model",
    "context_length_exceeded",
    # Bedrock: aws-samples/bedrock-chat#95
    "input is too long for requested model",
    # Ollama
    "prompt too long; exceeded",
    "input length exceeds the context length",
    "input length exceeds maximum context length",
)

_THINKING = (
    # "messages.1.content.0: Invalid `signature` in `thinking` block" (lbjlaq/Antigravity-Manager#498), since
    # Claude 5.1 with "The block is bound to a different conversation. Remove the block, or set [...]"
    "invalid `signature` in `thinking` block",
    "invalid signature in thinking block",
    "block is bound to a different conversation",
    # Gemini: lbjlaq/Antigravity-Manager#3337
    "invalid thought signature",
    "corrupted thought signature",
    "thought signature is not valid",
)

_LONG = re.compile(
    "|".join(f"({words})" for words, _ in _TOO_LONG).replace("#", _NUMBER), flags=re.IGNORECASE | re.DOTALL
)
_MOST_CHARS = 20_000
"""Of a text that is read: some hosts answer with the request."""


def read_refusal(text: str, /) -> Refusal | None:
    """Read why a provider refused a request.

    None for another reason, or an unknown text.

    Args:
        text: The text of its error.

    Example:
        >>> read_refusal("prompt is too long: 208310 tokens > 200000 maximum")
        Refusal(kind='too_long', sent_tokens=208310, limit_tokens=200000, answer_tokens=0, excess_tokens=None)
    """
    text = text[:_MOST_CHARS]
    if (found := _LONG.search(text)) is not None:
        groups = iter(found.groups())
        for _, roles in _TOO_LONG:
            whole, numbers = next(groups), [next(groups) for _ in roles.split()]
            if whole is not None:
                return _too_long(dict(zip(roles.split(), map(_number, numbers), strict=True)))
    lower = text.lower()
    if any(words in lower for words in _WITHOUT_NUMBERS):
        return Refusal("too_long")
    return Refusal("thinking") if any(words in lower for words in _THINKING) else None


def _number(digits: str | None) -> int | None:
    return None if digits is None else int(digits.replace(",", "") or 0)


def _too_long(said: dict[str, int | None]) -> Refusal:
    """Take the room of the answer off, where the limit is for both."""
    answer, whole, limit = said.get("answer") or 0, said.get("whole"), said.get("limit")
    return Refusal(
        "too_long",
        sent_tokens=said.get("sent") if whole is None else max(0, whole - answer),
        limit_tokens=None if limit is None else max(0, limit - answer),
        answer_tokens=answer if limit is not None else 0,
        excess_tokens=said.get("excess"),
    )
