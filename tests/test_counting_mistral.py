"""Counts of Mistral's models: sums are what mistral-common encodes, and what was billed."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import mistral_common
import pytest
from mistral_common.protocol.instruct.normalize import get_normalizer
from mistral_common.protocol.instruct.request import ChatCompletionRequest
from mistral_common.protocol.instruct.validator import ValidationMode, get_validator
from mistral_common.tokens.tokenizers.base import TokenizerVersion
from mistral_common.tokens.tokenizers.instruct import InstructTokenizerV11, InstructTokenizerV13
from mistral_common.tokens.tokenizers.mistral import MistralTokenizer
from mistral_common.tokens.tokenizers.tekken import Tekkenizer

from trimtab.counting import MistralCounter
from trimtab.counting._tokenizers import load_tokenizer
from trimtab.models import Framing
from trimtab.testing import check_counter


def counter(*, ids: bool = False, per_request_tokens: int = 1) -> MistralCounter:
    """Make a counter for version 13 of the tokenizer, which shows the model no ids."""
    tekken = load_tokenizer("tekken")
    framing = Framing(per_request_tokens=per_request_tokens, result_ids_counted=ids)
    return MistralCounter(tekken.count, name="mistral", exact=True, framing=framing, cache=tekken.cache)


def test_the_counter_keeps_the_contract() -> None:
    """As every counter does."""
    check_counter(counter())


_SPECIAL = (
    *("<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]"),
    *("[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[TOOL_CALLS]", "[IMG]", "<pad>", "[IMG_BREAK]", "[IMG_END]"),
    *("[PREFIX]", "[MIDDLE]", "[SUFFIX]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CONTENT]"),
    *("[TRANSCRIBE]", "[AUDIO]", "[BEGIN_AUDIO]", "[ARGS]", "[CALL_ID]", "[THINK]", "[/THINK]"),
)


@lru_cache
def package_tokenizer(version: TokenizerVersion) -> Callable[[list[Any], list[Any] | None], int]:
    """Make mistral-common's encoder of whole requests for a version whose file it does not carry."""
    file = Path(mistral_common.__file__).parent / "data" / "tekken_240911.json"
    data = json.loads(file.read_text(encoding="utf-8"))
    tekken = Tekkenizer(
        data["vocab"],
        [{"rank": rank, "token_str": text, "is_control": True} for rank, text in enumerate(_SPECIAL)],
        data["config"]["pattern"],
        data["config"]["default_vocab_size"],
        data["config"]["default_num_special_tokens"],
        version,
    )
    kind: Any = InstructTokenizerV13 if version == TokenizerVersion.v13 else InstructTokenizerV11
    whole: Any = MistralTokenizer(
        kind(tekken), get_validator(version, ValidationMode.test), get_normalizer(version, None)
    )

    def count(messages: list[Any], tools: list[Any] | None) -> int:
        request: Any = ChatCompletionRequest.from_openai(messages, tools=tools)
        return len(whole.encode_chat_completion(request).tokens)

    return count


TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "search",
            "strict": True,
            "parameters": {"type": "object", "properties": {"q": {"type": "string", "enum": ["a", "ü"]}}},
        },
    }
]
USER = {"role": "user", "content": "Where is it? Wo ist es, 東京?"}


def call(*ids: str) -> dict[str, Any]:
    """Make a message with calls whose arguments are compact, as OpenAI's are."""
    function = {"name": "search", "arguments": '{"q":"ü","n":[1,2]}'}
    calls = [{"id": id, "type": "function", "function": function} for id in ids]
    return {"role": "assistant", "content": "", "tool_calls": calls}


def result(id: str) -> dict[str, Any]:
    """Make the result of a call."""
    return {"role": "tool", "tool_call_id": id, "content": '{"found": ["here", "there"]}'}


ANSWER = {"role": "assistant", "content": "Over there."}
REQUESTS = {
    "user": [USER],
    "system": [{"role": "system", "content": "Be brief."}, USER, ANSWER, USER],
    "call": [USER, call("abcdefghi"), result("abcdefghi")],
    "parallel": [
        USER,
        call("abcdefghi", "abcdefghj"),
        result("abcdefghi"),
        result("abcdefghj"),
        ANSWER,
        USER,
    ],
}


@pytest.mark.parametrize("tools", [None, TOOLS], ids=["bare", "tools"])
@pytest.mark.parametrize("messages", REQUESTS.values(), ids=REQUESTS.keys())
def test_a_request_is_what_the_package_encodes(messages: list[Any], tools: Any) -> None:
    """Whole requests of its version 13, which today's models have."""
    expected = package_tokenizer(TokenizerVersion.v13)(messages, tools)
    assert counter().count_request(messages, None, tools) == expected


@pytest.mark.parametrize("messages", REQUESTS.values(), ids=REQUESTS.keys())
def test_the_version_before_shows_ids(messages: list[Any]) -> None:
    """`Framing.result_ids_counted` is version 11: ids stand in calls and results."""
    expected = package_tokenizer(TokenizerVersion.v11)(messages, TOOLS)
    assert counter(ids=True).count_request(messages, None, TOOLS) == expected


def test_real_conversations_are_what_the_package_encodes(data_dir: Path) -> None:
    """Recorded chats with fourteen tools, to the token, and never below."""
    whole = package_tokenizer(TokenizerVersion.v13)
    tools = json.loads((data_dir / "tau_airline_gpt4o.tools.json").read_text(encoding="utf-8"))
    lines = (data_dir / "tau_airline_gpt4o.jsonl").read_text(encoding="utf-8").splitlines()
    for line in lines[:30]:
        messages = json.loads(line)["messages"]
        while messages[-1]["role"] == "assistant":
            messages.pop()
        assert counter().count_request(messages, None, tools) == whole(messages, tools)
