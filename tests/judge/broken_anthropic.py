"""Messages requests broken by hand."""

from __future__ import annotations

from typing import Any

from tests.judge._broken import Broken

EPHEMERAL = {"type": "ephemeral"}


def _use(id_: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": id_, "name": "get_weather", "input": {"city": "Paris"}}


def _result(id_: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id_, "content": "sunny"}


def _text(said: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": said, **more}


THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "EqQB"}
BASE = {"model": "claude-sonnet-4-5", "max_tokens": 1024}
LOOP = {
    **BASE,
    "system": "Be brief.",
    "messages": [
        {"role": "user", "content": "The weather in Paris and Rome?"},
        {"role": "assistant", "content": [_text("Let me look."), _use("toolu_1"), _use("toolu_2")]},
        {"role": "user", "content": [_result("toolu_1"), _result("toolu_2"), _text("Well?")]},
        {"role": "assistant", "content": [_text("Sunny in both.")]},
        {"role": "user", "content": "Thanks."},
    ],
}
THINKS = {
    **BASE,
    "max_tokens": 4096,
    "thinking": {"type": "enabled", "budget_tokens": 1024},
    "messages": [
        {"role": "user", "content": "The weather in Paris?"},
        {"role": "assistant", "content": [THOUGHT, _use("toolu_1")]},
        {"role": "user", "content": [_result("toolu_1")]},
    ],
}
SERVED = {
    **BASE,
    "messages": [
        {"role": "user", "content": "Who won?"},
        {
            "role": "assistant",
            "content": [
                {
                    "type": "server_tool_use",
                    "id": "srvtoolu_1",
                    "name": "web_search",
                    "input": {"query": "won"},
                },
                {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
                _text("They did."),
            ],
        },
        {"role": "user", "content": "Thanks."},
    ],
}
OPENED = {
    **BASE,
    "messages": [{"role": "user", "content": "Six times seven?"}, {"role": "assistant", "content": "It is"}],
}
CACHED = {
    **BASE,
    "system": [_text("Be brief.", cache_control={**EPHEMERAL, "ttl": "1h"})],
    "messages": [
        {
            "role": "user",
            "content": [_text("a", cache_control=EPHEMERAL), _text("b", cache_control=EPHEMERAL)],
        },
        {"role": "assistant", "content": [THOUGHT, _text("c", cache_control=EPHEMERAL)]},
        {"role": "user", "content": [_text("d")]},
    ],
}


def _two(body: dict[str, Any], id_: str) -> None:
    body["messages"][1]["content"][2]["id"] = body["messages"][2]["content"][1]["tool_use_id"] = id_


BROKEN = [
    Broken(
        "field_required",
        LOOP,
        lambda body: body["messages"][1]["content"][1].pop("name"),
        "messages.1.content.1.tool_use.name: Field required",
        "agents/pull/279",
    ),
    Broken(
        "wrong_type",
        LOOP,
        lambda body: body["messages"][1]["content"][1].update(input='{"city": "Paris"}'),
        "messages.1.content.1.tool_use.input: Input should be a valid dictionary",
        "anthropic-sdk-typescript/issues/648",
    ),
    Broken(
        "no_messages",
        LOOP,
        lambda body: body["messages"].clear(),
        "messages: at least one message is required",
        "langchain/pull/31696",
    ),
    Broken(
        "first_role",
        LOOP,
        lambda body: body.update(messages=body["messages"][3:]),
        'messages: first message must use the "user" role',
        "lobehub/issues/1601",
    ),
    Broken(
        "unknown_role",
        LOOP,
        lambda body: body["messages"].insert(0, {"role": "system", "content": "Be brief."}),
        'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, not '
        '"system" as an input message role.',
        "ChainForge/issues/271",
        also=("system_unsupported",),
    ),
    Broken(
        "unknown_role",
        LOOP,
        lambda body: body["messages"].append({"role": "tool", "content": "sunny"}),
        'messages: Unexpected role "tool". The Messages API accepts a top-level `system` parameter, not '
        '"tool" '
        "as an input message role.",
        "ChainForge/issues/271",
    ),
    Broken(
        "system_unsupported",
        LOOP,
        lambda body: body["messages"].append({"role": "system", "content": "Be brief."}),
        "role 'system' is not supported on this model",
        "claude_mid_conv_system/index.html",
    ),
    Broken(
        "empty_content",
        LOOP,
        lambda body: body["messages"][4].update(content=""),
        "messages.4: all messages must have non-empty content except for the optional final assistant "
        "message",
        "claude-code/issues/6774",
    ),
    Broken(
        "empty_text",
        LOOP,
        lambda body: body["messages"][1]["content"][0].update(text=""),
        "messages: text content blocks must be non-empty",
        "claude-code/issues/59812",
    ),
    Broken(
        "only_whitespace",
        LOOP,
        lambda body: body["messages"][3]["content"][0].update(text=" \n"),
        "messages: text content blocks must contain non-whitespace text",
        "agents/pull/124",
    ),
    Broken(
        "unknown_block",
        LOOP,
        lambda body: body["messages"][2]["content"].append({"type": "image_url"}),
        "messages.2.content.3: Input tag 'image_url' found using 'type' does not match any of the expected "
        "tags: 'advisor_tool_result', 'bash_code_execution_tool_result', 'code_execution_tool_result', "
        "'compaction', 'container_upload', 'document', 'fallback', 'image', 'mcp_tool_result', "
        "'mcp_tool_use', "
        "'mid_conv_system', 'redacted_thinking', 'search_result', 'server_tool_use', 'text', "
        "'text_editor_code_execution_tool_result', 'thinking', 'tool_addition', 'tool_reference', "
        "'tool_removal', 'tool_result', 'tool_search_tool_result', 'tool_use', 'web_fetch_tool_result', "
        "'web_search_tool_result'",
        "dirac/issues/57",
    ),
    Broken(
        "block_of_another_role",
        LOOP,
        lambda body: body["messages"][3]["content"].append(_result("toolu_1")),
        "messages.3: `tool_result` blocks can only be in `user` messages",
        "Anthropic.SDK/issues/128",
    ),
    Broken(
        "block_of_another_role",
        LOOP,
        lambda body: body["messages"][4].update(content=[_use("toolu_3")]),
        "messages.4: `tool_use` blocks can only be in `assistant` messages",
        "Anthropic.SDK/issues/128",
    ),
    Broken(
        "bad_id",
        LOOP,
        lambda body: _two(body, "functions.get:2"),
        "messages.1.content.2.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
        "forgecode/issues/1142",
    ),
    Broken(
        "repeated_call",
        LOOP,
        lambda body: body["messages"][1]["content"].append(_use("toolu_2")),
        "messages.1.content.3: `tool_use` ids must be unique",
        "claude-code/issues/20901",
    ),
    Broken(
        "call_without_result",
        LOOP,
        lambda body: body["messages"][2]["content"].pop(1),
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_2. Each "
        "`tool_use` block must have a corresponding `tool_result` block in the next message.",
        "claude-code/issues/1237",
    ),
    Broken(
        "call_without_result",
        LOOP,
        lambda body: body["messages"][2]["content"].reverse(),
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1. Each "
        "`tool_use` block must have a corresponding `tool_result` block in the next message.",
        "claude-code/issues/1237",
    ),
    Broken(
        "call_without_result",
        LOOP,
        lambda body: body.update(messages=body["messages"][:2]),
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1. Each "
        "`tool_use` block must have a corresponding `tool_result` block in the next message.",
        "claude-code/issues/1237",
    ),
    Broken(
        "result_without_call",
        LOOP,
        lambda body: body.update(messages=body["messages"][2:]),
        "messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_1. Each "
        "`tool_result` block must have a corresponding `tool_use` block in the previous message.",
        "claude-code/issues/13460",
    ),
    Broken(
        "repeated_result",
        LOOP,
        lambda body: body["messages"][2]["content"].insert(2, _result("toolu_2")),
        "messages.2.content.2: each tool_use must have a single result. Found multiple `tool_result` blocks "
        "with id: toolu_2",
        "claude-code/issues/14110",
    ),
    Broken(
        "server_result_without_call",
        SERVED,
        lambda body: body["messages"][1]["content"].pop(0),
        "messages.1.content.0: unexpected `tool_use_id` found in `web_search_tool_result` blocks: "
        "srvtoolu_1. "
        "Each `web_search_tool_result` block must have a corresponding `server_tool_use` block before it.",
        "claude-code/issues/64383",
    ),
    Broken(
        "server_call_without_result",
        SERVED,
        lambda body: body["messages"][1]["content"].pop(1),
        "messages.1: `web_search` tool use with id `srvtoolu_1` was found without a corresponding "
        "`web_search_tool_result` block",
        "lisette/issues/108",
    ),
    Broken(
        "trailing_whitespace",
        OPENED,
        lambda body: body["messages"][1].update(content="It is "),
        "messages: final assistant content cannot end with trailing whitespace",
        "forgecode/issues/1872",
    ),
    Broken(
        "ends_with_assistant",
        OPENED,
        lambda body: body.update(model="claude-opus-4-8"),
        "This model does not support assistant message prefill. The conversation must end with a user "
        "message.",
        "copilot-api/pull/261",
    ),
    Broken(
        "ends_with_thinking",
        THINKS,
        lambda body: body["messages"].append({"role": "assistant", "content": [THOUGHT]}),
        "messages.3: The final block in an assistant message cannot be `thinking`.",
        "CLIProxyAPI/issues/5321",
    ),
    Broken(
        "thinking_disabled",
        OPENED,
        lambda body: body["messages"][1].update(content=[THOUGHT, _text("It is")]),
        "messages.1.content.0: When thinking is disabled, an `assistant` message in the final position "
        "cannot "
        "contain `thinking`. To use thinking blocks, enable `thinking` in your request.",
        "forgecode/issues/1853",
    ),
    Broken(
        "thinking_must_lead",
        THINKS,
        lambda body: body["messages"][1]["content"].pop(0),
        "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When "
        "`thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the "
        "lastmost set of `tool_use` and `tool_result` blocks). We recommend you include thinking blocks from "
        "previous turns. To avoid this requirement, disable `thinking`. Please consult our documentation at "
        "https://docs.claude.com/en/docs/build-with-claude/extended-thinking",
        "kilocode/issues/5219",
    ),
    Broken(
        "unsigned_thinking",
        THINKS,
        lambda body: body["messages"][1]["content"][0].pop("signature"),
        "messages.1.content.0.thinking.signature: Field required",
        "Antigravity-Manager/issues/1650",
    ),
    Broken(
        "too_many_cached",
        CACHED,
        lambda body: body["messages"][2]["content"][0].update(cache_control=EPHEMERAL),
        "A maximum of 4 blocks with cache_control may be provided. Found 5.",
        "Anthropic.SDK/issues/50",
    ),
    Broken(
        "cached_thinking",
        CACHED,
        lambda body: body["messages"][1]["content"][0].update(
            cache_control=body["messages"][1]["content"][1].pop("cache_control")
        ),
        "messages.1.content.0.thinking.cache_control: Extra inputs are not permitted",
        "sub2api/issues/225",
    ),
    Broken(
        "cached_nothing",
        CACHED,
        lambda body: body["messages"][0]["content"][0].update(text=""),
        "messages.0.content.0.text: cache_control cannot be set for empty text blocks",
        "dario/issues/1066",
    ),
    Broken(
        "thinking_type",
        {**THINKS, "model": "claude-sonnet-5", "thinking": {"type": "adaptive"}},
        lambda body: body.update(thinking={"type": "enabled", "budget_tokens": 1024}),
        '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and '
        '"output_config.effort" to control thinking behavior.',
        "opencodex/pull/65",
    ),
    Broken(
        "thinking_type",
        {**LOOP, "model": "claude-opus-5-5"},
        lambda body: body.update(thinking={"type": "disabled"}),
        '"thinking.type.disabled" is not supported for this model. Use "thinking.type.adaptive" and '
        '"output_config.effort" to control thinking behavior.',
        "opencodex/pull/65",
    ),
    Broken(
        "bound_thinking",
        {**THINKS, "model": "claude-fable-5-1", "thinking": {"type": "adaptive"}},
        lambda body: body["messages"][0].update(content="The weather in Rome?"),
        "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different "
        "conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "
        '"drop_block".',
        "opencode/issues/48637",
    ),
    Broken(
        "longer_after_shorter",
        CACHED,
        lambda body: body["messages"][0]["content"][1].update(cache_control={**EPHEMERAL, "ttl": "1h"}),
        "messages.0.content.1.cache_control.ttl: a ttl='1h' cache_control block must not come after a "
        "ttl='5m' "
        "cache_control block. Note that blocks are processed in the following order: `tools`, `system`, "
        "`messages`.",
        "claude-code-cache-fix/issues/44",
    ),
]
