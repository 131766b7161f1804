"""Converse requests broken by hand."""

from __future__ import annotations

from typing import Any

from tests.judge._broken import Broken

POINT = {"cachePoint": {"type": "default"}}
LONG = {"cachePoint": {"type": "default", "ttl": "1h"}}


def _use(id_: str) -> dict[str, Any]:
    return {"toolUse": {"toolUseId": id_, "name": "get_weather", "input": {"city": "Paris"}}}


def _result(id_: str, **more: Any) -> dict[str, Any]:
    return {"toolResult": {"toolUseId": id_, "content": [{"text": "sunny"}], **more}}


THOUGHT = {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "EqQB"}}}
TOOLS = {
    "tools": [{"toolSpec": {"name": "get_weather", "inputSchema": {"json": {"type": "object"}}}}],
}
BASE = {"modelId": "us.anthropic.claude-sonnet-4-5-20250929-v1:0", "toolConfig": TOOLS}
LOOP = {
    **BASE,
    "system": [{"text": "Be brief."}],
    "messages": [
        {"role": "user", "content": [{"text": "The weather in Paris and Rome?"}]},
        {"role": "assistant", "content": [{"text": "Let me look."}, _use("tooluse_1"), _use("tooluse_2")]},
        {"role": "user", "content": [_result("tooluse_1"), _result("tooluse_2"), {"text": "Well?"}]},
        {"role": "assistant", "content": [{"text": "Sunny in both."}]},
        {"role": "user", "content": [{"text": "Thanks."}]},
    ],
}
THINKS = {
    **BASE,
    "additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 1024}},
    "messages": [
        {"role": "user", "content": [{"text": "The weather in Paris?"}]},
        {"role": "assistant", "content": [THOUGHT, _use("tooluse_1")]},
        {"role": "user", "content": [_result("tooluse_1")]},
    ],
}
ALONE = {
    **BASE,
    "modelId": "us.meta.llama4-maverick-17b-instruct-v1:0",
    "messages": [
        {"role": "user", "content": [{"text": "The weather in Paris?"}]},
        {"role": "assistant", "content": [_use("tooluse_1")]},
        {"role": "user", "content": [_result("tooluse_1")]},
    ],
}
FILE = {
    "modelId": BASE["modelId"],
    "messages": [
        {
            "role": "user",
            "content": [
                {"document": {"format": "txt", "name": "notes", "source": {"text": "Rome is warm."}}},
                {"text": "Where is it warm?"},
            ],
        }
    ],
}
OPENED = {
    "modelId": BASE["modelId"],
    "messages": [
        {"role": "user", "content": [{"text": "Six times seven?"}]},
        {"role": "assistant", "content": [{"text": "It is"}]},
    ],
}
CACHED = {
    "modelId": BASE["modelId"],
    "system": [{"text": "Be brief."}, LONG],
    "messages": [
        {"role": "user", "content": [{"text": "a"}, POINT, {"text": "b"}, POINT]},
        {"role": "assistant", "content": [THOUGHT, {"text": "c"}, POINT]},
        {"role": "user", "content": [{"text": "d"}]},
    ],
}


def _id_of_both(body: dict[str, Any], id_: str) -> None:
    body["messages"][1]["content"][2]["toolUse"]["toolUseId"] = id_
    body["messages"][2]["content"][1]["toolResult"]["toolUseId"] = id_


_KNOWN = (
    "text, image, document, video, audio, toolUse, toolResult, guardContent, cachePoint, reasoningContent, "
    "citationsContent, searchResult, toolAddition, toolRemoval."
)

BROKEN = [
    Broken(
        "missing_member",
        LOOP,
        lambda body: body["messages"][3].pop("content"),
        "Value null at 'messages.4.member.content' failed to satisfy constraint: Member must not be null",
        "bifrost/pull/6732",
    ),
    Broken(
        "missing_member",
        LOOP,
        lambda body: body["messages"][1]["content"][1]["toolUse"].pop("name"),
        "Value null at 'messages.2.member.content.2.member.toolUse.name' failed to satisfy constraint: "
        "Member must not be null",
        "bifrost/pull/6732",
    ),
    Broken(
        "wrong_type",
        LOOP,
        lambda body: body["messages"][1]["content"][1]["toolUse"].update(input='{"city": "Paris"}'),
        "The format of the value at messages.1.content.1.toolUse.input is invalid. Provide a json object for "
        "the field and try again.",
        "aws-sdk-net/issues/3377",
    ),
    Broken(
        "wrong_type",
        LOOP,
        lambda body: body["messages"][4].update(content="Thanks."),
        "The format of the value at messages.4.content is invalid. Provide a json object for the field and "
        "try again.",
        "aws-sdk-net/issues/3377",
    ),
    Broken(
        "no_messages",
        FILE,
        lambda body: body["messages"].clear(),
        "messages: at least one message is required",
        "langchain/pull/31696",
    ),
    Broken(
        "first_role",
        LOOP,
        lambda body: body.update(messages=body["messages"][3:]),
        "A conversation must start with a user message. Try again with a conversation that starts with a "
        "user message.",
        "deepgram-python-sdk/issues/760",
    ),
    Broken(
        "first_role",
        FILE,
        lambda body: body["messages"].insert(0, {"role": "system", "content": [{"text": "Be brief."}]}),
        "A conversation must start with a user message. Try again with a conversation that starts with a "
        "user message.",
        "deepgram-python-sdk/issues/760",
    ),
    Broken(
        "unknown_role",
        LOOP,
        lambda body: body["messages"].append({"role": "tool", "content": [{"text": "sunny"}]}),
        "Value 'tool' at 'messages.6.member.role' failed to satisfy constraint: Member must satisfy enum "
        "value set: [user, assistant, system]",
        "ConversationRole)",
    ),
    Broken(
        "empty_content",
        LOOP,
        lambda body: body["messages"][3].update(content=[]),
        "The content field in the Message object at messages.3 is empty. Add a ContentBlock object to the "
        "content field and try again.",
        "llmgateway/pull/3127",
    ),
    Broken(
        "empty_text",
        LOOP,
        lambda body: body["messages"][1]["content"][0].update(text=""),
        "The text field in the ContentBlock object at messages.1.content.0 is blank. Add text to the text "
        "field, and try again.",
        "agents/pull/501",
    ),
    Broken(
        "empty_result_text",
        LOOP,
        lambda body: body["messages"][2]["content"][0]["toolResult"].update(content=[{"text": ""}]),
        "messages: text content blocks must be non-empty",
        "hermes-agent/issues/55092",
    ),
    Broken(
        "only_whitespace",
        LOOP,
        lambda body: body["messages"][3]["content"][0].update(text=" \n"),
        "messages: text content blocks must contain non-whitespace text",
        "hermes-agent/pull/67978",
    ),
    Broken(
        "union_of_one",
        LOOP,
        lambda body: body["messages"][4]["content"][0].update(POINT),
        "ContentBlock object at messages.4.content.0 can only set one of the following keys: " + _KNOWN,
        "ai-gateway/pull/1717",
    ),
    Broken(
        "union_of_one",
        LOOP,
        lambda body: body["messages"][4]["content"].append({"type": "text", "text": "Bye."}),
        "ContentBlock object at messages.4.content.1 can only set one of the following keys: " + _KNOWN,
        "ai-gateway/pull/1717",
    ),
    Broken(
        "block_of_another_role",
        LOOP,
        lambda body: body["messages"][3]["content"].append(_result("tooluse_1")),
        "messages.3: `toolResult` blocks can only be in `user` messages",
        "Anthropic.SDK/issues/128",
    ),
    Broken(
        "block_of_another_role",
        LOOP,
        lambda body: body["messages"][4].update(content=[_use("tooluse_3")]),
        "messages.4: `toolUse` blocks can only be in `assistant` messages",
        "Anthropic.SDK/issues/128",
    ),
    Broken(
        "bad_id",
        LOOP,
        lambda body: _id_of_both(body, "functions get"),
        "Value 'functions get' at 'messages.1.content.2.toolUse.toolUseId' failed to satisfy constraint: "
        "Member must satisfy regular expression pattern: [a-zA-Z0-9_.:-]+",
        "llama_index/pull/22775",
    ),
    Broken(
        "repeated_call",
        LOOP,
        lambda body: body["messages"][1]["content"].append(_use("tooluse_2")),
        "The toolUse blocks at messages.1.content contain duplicate Ids: tooluse_2",
        "litellm/pull/20049",
    ),
    Broken(
        "call_without_result",
        LOOP,
        lambda body: body["messages"][2]["content"].pop(1),
        "Expected toolResult blocks at messages.2.content for the following Ids: tooluse_2",
        "agno/issues/6698",
    ),
    Broken(
        "call_without_result",
        LOOP,
        lambda body: body["messages"].insert(
            3, {"role": "user", "content": [body["messages"][2]["content"].pop(1)]}
        ),
        "Expected toolResult blocks at messages.2.content for the following Ids: tooluse_2",
        "agno/issues/6698",
    ),
    Broken(
        "call_without_result",
        LOOP,
        lambda body: body["messages"][2]["content"].reverse(),
        "Expected toolResult blocks at messages.2.content for the following Ids: tooluse_1",
        "agno/issues/6698",
    ),
    Broken(
        "call_without_result",
        LOOP,
        lambda body: body.update(messages=body["messages"][:2]),
        "Expected toolResult blocks at messages.2.content for the following Ids: tooluse_1",
        "agno/issues/6698",
    ),
    Broken(
        "result_without_call",
        LOOP,
        lambda body: body["messages"][1]["content"].pop(2),
        "The number of toolResult blocks at messages.2.content exceeds the number of toolUse blocks of "
        "previous turn.",
        "harness-sdk/issues/1435",
    ),
    Broken(
        "repeated_result",
        LOOP,
        lambda body: body["messages"][2]["content"].insert(2, _result("tooluse_2")),
        "The toolResult blocks at messages.2.content contain duplicate Ids: tooluse_2",
        "litellm/issues/20047",
    ),
    Broken(
        "empty_error",
        LOOP,
        lambda body: body["messages"][2]["content"].__setitem__(
            0, _result("tooluse_1", status="error", content=[])
        ),
        "The content field at messages.2.content.0.toolResult cannot be empty when status value is error.",
        "chat-on-agentcore/issues/15",
    ),
    Broken(
        "document_alone",
        FILE,
        lambda body: body["messages"][0]["content"].pop(),
        "A text block must be included when using documents.",
        "archestra/pull/4220",
    ),
    Broken(
        "no_tool_config",
        LOOP,
        lambda body: body.pop("toolConfig"),
        "The toolConfig field must be defined when using toolUse and toolResult content blocks.",
        "ironclaw/issues/1629",
    ),
    Broken(
        "mixed_turn",
        ALONE,
        lambda body: body["messages"][2]["content"].append({"text": "Well?"}),
        "messages.2.content: Conversation blocks and tool result blocks cannot be provided in the same turn.",
        "harness-sdk/issues/1223",
    ),
    Broken(
        "mixed_turn",
        ALONE,
        lambda body: body["messages"].insert(3, {"role": "user", "content": [{"text": "Well?"}]}),
        "messages.3.content: Conversation blocks and tool result blocks cannot be provided in the same turn.",
        "harness-sdk/issues/1223",
    ),
    Broken(
        "ends_with_assistant",
        OPENED,
        lambda body: body.update(modelId="eu.anthropic.claude-sonnet-4-6"),
        "The model returned the following errors: This model does not support assistant message prefill. The "
        "conversation must end with a user message.",
        "hermes-agent/pull/101401",
    ),
    Broken(
        "trailing_whitespace",
        OPENED,
        lambda body: body["messages"][1]["content"][0].update(text="It is "),
        "The model returned the following errors: messages: final assistant content cannot end with trailing "
        "whitespace",
        "forgecode/issues/1872",
    ),
    Broken(
        "thinking_first",
        CACHED,
        lambda body: body["messages"][1]["content"].insert(0, {"text": "So."}),
        "If an assistant message contains any thinking blocks, the first block must be thinking. Found text",
        "bedrock-agentcore-sdk-python/issues/416",
    ),
    Broken(
        "thinking_must_lead",
        THINKS,
        lambda body: body["messages"][1]["content"].pop(0),
        "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `toolUse`. When "
        "`thinking` is enabled, a final `assistant` message must start with a thinking block.",
        "Roo-Code/pull/11238",
    ),
    Broken(
        "too_many_points",
        CACHED,
        lambda body: body["messages"][2]["content"].append(POINT),
        "A maximum of 4 blocks with cache_control may be provided. Found 5.",
        "bifrost/pull/5931",
    ),
    Broken(
        "point_after_reasoning",
        CACHED,
        lambda body: body["messages"][1]["content"].insert(1, body["messages"][1]["content"].pop()),
        "Cache point cannot be inserted after reasoning block. Please remove the invalid cache point and try "
        "again.",
        "opencode/issues/36517",
    ),
    Broken(
        "point_alone",
        CACHED,
        lambda body: body["messages"][0]["content"].pop(0),
        "a message of nothing but a cache point, or with one in front",
        "zed/pull/59436",
    ),
    Broken(
        "thinking_type",
        {**LOOP, "modelId": "us.anthropic.claude-opus-5-20260724-v1:0"},
        lambda body: body.update(
            additionalModelRequestFields={"thinking": {"type": "enabled", "budget_tokens": 1024}}
        ),
        'The model returned the following errors: "thinking.type.enabled" is not supported for this model. '
        'Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.',
        "openclaw/issues/117871",
    ),
    Broken(
        "bound_thinking",
        {
            **THINKS,
            "modelId": "us.anthropic.claude-haiku-5-5-v1:0",
            "additionalModelRequestFields": {"thinking": {"type": "adaptive"}},
        },
        lambda body: body["messages"][0]["content"].insert(0, {"text": "Today."}),
        "The model returned the following errors: messages.1.content.0: Invalid `signature` in `thinking` "
        "block. The block is bound to a different conversation.",
        "opencode/issues/48637",
    ),
    Broken(
        "longer_after_shorter",
        CACHED,
        lambda body: body["messages"][1]["content"].__setitem__(2, LONG),
        "The model returned the following errors: messages.1.content.2.cache_control.ttl: a ttl='1h' "
        "cache_control block must not come after a ttl='5m' cache_control block. Note that blocks are "
        "processed in the following order: `tools`, `system`, `messages`.",
        "gateway/issues/1762",
    ),
]
