"""Counts of Mistral's models: sums are what mistral-common encodes, and what was billed."""

from __future__ import annotations

import base64
import hashlib
import json
import struct
from collections.abc import Callable, Iterator
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

from tests.chat_vocabulary import mistral_counter
from trimtab.counting import CountRequest

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


TWO = ("abcdefghi", "abcdefghj")
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
    assert mistral_counter().count_request(CountRequest(messages, tools=tools)) == expected


@pytest.mark.parametrize("messages", REQUESTS.values(), ids=REQUESTS.keys())
def test_the_version_before_shows_ids(messages: list[Any]) -> None:
    """`Framing.result_ids_counted` is version 11: ids stand in calls and results."""
    expected = package_tokenizer(TokenizerVersion.v11)(messages, TOOLS)
    assert mistral_counter(shows_ids=True).count_request(CountRequest(messages, tools=TOOLS)) == expected


def test_real_conversations_are_what_the_package_encodes(data_dir: Path) -> None:
    """Recorded chats with fourteen tools, to the token, and never below."""
    whole = package_tokenizer(TokenizerVersion.v13)
    tools = json.loads((data_dir / "tau_airline_gpt4o.tools.json").read_text(encoding="utf-8"))
    lines = (data_dir / "tau_airline_gpt4o.jsonl").read_text(encoding="utf-8").splitlines()
    for line in lines[:30]:
        messages = json.loads(line)["messages"]
        while messages[-1]["role"] == "assistant":
            messages.pop()
        assert mistral_counter().count_request(CountRequest(messages, tools=tools)) == whole(messages, tools)


def with_pixels(width: int, height: int) -> dict[str, Any]:
    """Make a user's image of that size."""
    head = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height)
    url = "data:image/png;base64," + base64.b64encode(head).decode()
    return {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}


@pytest.mark.parametrize(
    ("size", "tokens"),
    [
        ((400, 301), 16 * 11),
        ((597, 566), 23 * 21),
        ((28, 28), 2),
        ((3_080, 1_540), 56 * 28),
    ],
)
def test_an_image_costs_a_token_a_patch_and_one_a_row(size: tuple[int, int], tokens: int) -> None:
    """Two of the sizes were billed, 307 tokens apart; a longer side is scaled to 1,540 pixels."""
    assert mistral_counter().count_message(with_pixels(*size)) == tokens + 2


def test_an_image_that_cannot_be_seen_costs_the_most() -> None:
    """Behind an address on the web."""
    image = {"type": "image_url", "image_url": {"url": "https://example.org/cat.png"}}
    unseen = mistral_counter().count_message({"role": "user", "content": [image]})
    assert unseen == 56 * 55 + 2 >= mistral_counter().count_message(with_pixels(9_000, 9_000))


def test_whether_the_answer_goes_on_is_not_shown_to_the_model() -> None:
    """The client's `prefix` is no text."""
    assert mistral_counter().count([USER, ANSWER | {"prefix": False}]) == mistral_counter().count(
        [USER, ANSWER]
    )


_HIDDEN_SETTINGS = {"mistral-small-latest": 12}
"""Tokens of `{"reasoning_effort": "none"}` and its brackets, which version 15 writes into each request."""


def test_recorded_requests_are_billed_as_counted(data_dir: Path) -> None:
    """All of one half, on which no rule was made, but for the image behind an address."""
    found = []
    for entry in _held_out(data_dir / "golden_usage.jsonl"):
        request = entry["request"]
        if "http" in json.dumps([message for message in request["messages"] if "image_url" in str(message)]):
            continue
        count = mistral_counter().count_request(CountRequest(request["messages"], tools=request.get("tools")))
        more = _HIDDEN_SETTINGS.get(entry["model"], 0)
        found.append((entry["id"], count + more - entry["usage"]["prompt_tokens"]))
    assert len(found) >= 8
    assert [row for row in found if row[1]] == []


def _held_out(path: Path) -> Iterator[dict[str, Any]]:
    """Read the distinct requests to Mistral of the half without rules: the hash begins with an odd byte."""
    seen: set[bytes] = set()
    for line in path.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        shown = json.dumps(
            [entry["model"], entry["request"]], sort_keys=True, separators=(",", ":"), ensure_ascii=False
        )
        digest = hashlib.sha256(shown.encode()).digest()
        if entry["provider"] == "api.mistral.ai" and digest[0] % 2 and digest not in seen:
            yield entry
        seen.add(digest)
