"""Responses requests broken by hand."""

from __future__ import annotations

from typing import Any

from tests.judge._broken import Broken


def _call(call_id: str, item_id: str) -> dict[str, Any]:
    return {
        "type": "function_call",
        "id": item_id,
        "call_id": call_id,
        "name": "get_weather",
        "arguments": '{"city": "Paris"}',
    }


def _output(call_id: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": "sunny"}


def _thought(item_id: str) -> dict[str, Any]:
    return {"type": "reasoning", "id": item_id, "summary": [], "encrypted_content": "gAAA"}


USER = {"role": "user", "content": "The weather in Paris?"}
LOOP = {
    "model": "gpt-5",
    "instructions": "Be brief.",
    "input": [
        USER,
        _thought("rs_1"),
        _call("call_1", "fc_1"),
        _output("call_1"),
        _thought("rs_2"),
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "Sunny.", "annotations": []}],
        },
        {"role": "user", "content": [{"type": "input_text", "text": "Thanks."}]},
    ],
}
HELD = {"model": "gpt-5", "previous_response_id": "resp_1", "input": [_output("call_1")]}
CUSTOM = {
    "model": "gpt-5",
    "input": [
        USER,
        {"type": "custom_tool_call", "call_id": "call_1", "name": "run", "input": "ls"},
        {"type": "custom_tool_call_output", "call_id": "call_1", "output": "a.txt"},
    ],
}
COMPUTER = {
    "model": "computer-use-preview",
    "input": [
        USER,
        {
            "type": "computer_call",
            "id": "cu_1",
            "call_id": "call_1",
            "status": "completed",
            "pending_safety_checks": [],
            "action": {"type": "screenshot"},
        },
        {
            "type": "computer_call_output",
            "call_id": "call_1",
            "output": {"type": "computer_screenshot", "image_url": "https://example.org/a.png"},
        },
    ],
}
MCP = {
    "model": "gpt-4.1",
    "input": [
        USER,
        {
            "type": "mcp_approval_request",
            "id": "mcpr_1",
            "name": "ask",
            "server_label": "deepwiki",
            "arguments": "{}",
        },
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
    ],
}
REFERRED = {"model": "gpt-5", "input": [{"type": "item_reference", "id": "msg_1"}, USER]}

LONG = "call_" + "x" * 60


def _rename(call_id: str) -> Any:
    def breaks(body: dict[str, Any]) -> None:
        body["input"][2]["call_id"] = body["input"][3]["call_id"] = call_id

    return breaks


NOT_FOLLOWED = "Item 'rs_2' of type 'reasoning' was provided without its required following item."

BROKEN = [
    Broken(
        "no_input",
        LOOP,
        lambda body: body["input"].clear(),
        'One of "input" or "previous_response_id" or "prompt" or "conversation_id" must be provided.',
        "pydantic-ai/pull/3470",
    ),
    Broken(
        "missing_parameter",
        LOOP,
        lambda body: body["input"][1].pop("summary"),
        "Missing required parameter: 'input[1].summary'.",
        "codex/issues/6725",
    ),
    Broken(
        "missing_parameter",
        LOOP,
        lambda body: body["input"][3].pop("output"),
        "Missing required parameter: 'input[3].output'.",
        "codex/issues/6725",
    ),
    Broken(
        "wrong_type",
        LOOP,
        lambda body: body["input"][2].update(arguments={"city": "Paris"}),
        "Invalid type for 'input[2].arguments': expected a string, but got an object instead.",
        "pydantic-ai/issues/2653",
    ),
    Broken(
        "unknown_role",
        LOOP,
        lambda body: body["input"].append({"role": "tool", "content": "sunny"}),
        "Invalid value: 'tool'. Supported values are: 'assistant', 'system', 'developer', and 'user'.",
        "kelivo/pull/281",
    ),
    Broken(
        "chat_parameter",
        LOOP,
        lambda body: body["input"].append({"role": "assistant", "content": "", "tool_calls": []}),
        "Unknown parameter: 'input[7].tool_calls'.",
        "openai-python/issues/2677",
    ),
    Broken(
        "unknown_part",
        LOOP,
        lambda body: body["input"][6]["content"][0].update(type="text"),
        "Invalid value: 'text'. Supported values are: 'input_text', 'input_image', 'input_audio', "
        "'output_text', "
        "'refusal', 'input_file', 'computer_screenshot', 'summary_text', and 'encrypted_content'.",
        "PraisonAI/issues/3934",
    ),
    Broken(
        "part_of_another_role",
        LOOP,
        lambda body: body["input"][5]["content"][0].update(type="input_text"),
        "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'.",
        "openhuman/issues/3624",
    ),
    Broken(
        "wrong_id_prefix",
        LOOP,
        lambda body: body["input"].append({"id": "item_9", "role": "assistant", "content": "Bye."}),
        "Invalid 'input[7].id': 'item_9'. Expected an ID that begins with 'msg'.",
        "cc-switch/issues/5338",
    ),
    Broken(
        "empty_call_id",
        LOOP,
        _rename(""),
        "Invalid 'input[2].call_id': empty string. Expected a string with minimum length 1, but got an empty "
        "string instead.",
        "CodexPlusPlus/issues/315",
    ),
    Broken(
        "long_call_id",
        LOOP,
        _rename(LONG),
        "Invalid 'input[2].call_id': string too long. Expected a string with maximum length 64, but got a "
        "string "
        "with length 65 instead.",
        "fastllm/issues/45",
    ),
    Broken(
        "duplicate_item",
        LOOP,
        lambda body: body["input"].append(body["input"][5]),
        "Duplicate item found with id msg_1. Remove duplicate items from your input and try again.",
        "pi/issues/5149",
    ),
    Broken(
        "reference_to_nothing",
        REFERRED,
        lambda body: body.update(store=False),
        "Item with id 'msg_1' not found. Items are not persisted when `store` is set to false. Try again "
        "with "
        "`store` set to true, or remove this item from your input.",
        "CLIProxyAPI/issues/2381",
    ),
    Broken(
        "output_without_call",
        LOOP,
        lambda body: body["input"].append(_output("call_9")),
        "No tool call found for function call output with call_id call_9.",
        "vscode/issues/320060",
    ),
    Broken(
        "output_without_call",
        HELD,
        lambda body: body.pop("previous_response_id"),
        "No tool call found for function call output with call_id call_1.",
        "vscode/issues/320060",
    ),
    Broken(
        "output_without_call",
        CUSTOM,
        lambda body: body["input"].reverse(),
        "No tool call found for custom tool call output with call_id call_1.",
        "vscode/issues/320060",
    ),
    Broken(
        "call_without_output",
        LOOP,
        lambda body: body["input"].pop(3),
        "No tool output found for function call call_1.",
        "trae-agent/issues/245",
    ),
    Broken(
        "call_without_output",
        COMPUTER,
        lambda body: body["input"].pop(),
        "No tool output found for computer call call_1.",
        "trae-agent/issues/245",
    ),
    Broken(
        "approval_without_request",
        MCP,
        lambda body: body["input"].pop(1),
        "The following MCP approval requests have approval responses but weren't passed as input: mcpr_1",
        "mcp-approval-output-item/1365706",
    ),
    Broken(
        "request_without_approval",
        MCP,
        lambda body: body["input"].pop(),
        "The following MCP approval requests do not have an approval: mcpr_1",
        "openai-agents-js/issues/131",
    ),
    Broken(
        "reasoning_without_follower",
        LOOP,
        lambda body: body["input"].pop(5),
        NOT_FOLLOWED,
        "vercel/ai/issues/7099",
    ),
    Broken(
        "reasoning_without_follower",
        LOOP,
        lambda body: body.update(input=body["input"][:5]),
        NOT_FOLLOWED,
        "vercel/ai/issues/7099",
    ),
    Broken(
        "item_without_reasoning",
        LOOP,
        lambda body: body["input"].pop(1),
        "Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item: 'rs_1'.",
        "cline/issues/12242",
    ),
    Broken(
        "item_without_reasoning",
        LOOP,
        lambda body: body["input"].pop(4),
        "Item 'msg_1' of type 'message' was provided without its required 'reasoning' item: 'rs_2'.",
        "cline/issues/12242",
    ),
    Broken(
        "reasoning_with_another_follower",
        LOOP,
        lambda body: body.update(input=[*body["input"][:2], *body["input"][4:]]),
        "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
        "openai-python/issues/3008",
    ),
    Broken(
        "unknown_type",
        LOOP,
        lambda body: body["input"].append({"type": "tool_result", "id": "x"}),
        "Invalid value: 'tool_result'. Supported values are: 'additional_tools', 'apply_patch_call', "
        "'apply_patch_call_output', 'code_interpreter_call', 'compaction', 'compaction_trigger', "
        "'computer_call', 'computer_call_output', 'configuration_update', 'custom_tool_call', "
        "'custom_tool_call_output', 'file_search_call', 'function_call', 'function_call_output', "
        "'image_generation_call', 'item_reference', 'local_shell_call', 'local_shell_call_output', "
        "'mcp_approval_request', 'mcp_approval_response', 'mcp_call', 'mcp_list_tools', 'message', "
        "'program', "
        "'program_output', 'reasoning', 'shell_call', 'shell_call_output', 'tool_search_call', "
        "'tool_search_output', 'web_search_call'.",
        "codex/issues/6945",
    ),
]
