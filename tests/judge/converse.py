"""Requests of Anthropic's Messages API, written for Bedrock's Converse."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

POINT = {"cachePoint": {"type": "default"}}


class Unwritten(ValueError):
    """Something that Converse has no word for."""


def in_converse(body: Mapping[str, Any]) -> dict[str, Any] | None:
    """Write a request in the other form; None if it holds what Converse lacks."""
    try:
        return _written(body)
    except Unwritten:
        return None


def _written(body: Mapping[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {
        "modelId": f"us.anthropic.{body['model']}-v1:0",
        "messages": [
            {"role": message["role"], "content": blocks_of(message["content"])}
            for message in body["messages"]
        ],
    }
    if body.get("system"):
        made["system"] = blocks_of(body["system"])
    if body.get("tools"):
        made["toolConfig"] = {"tools": [_tool(tool) for tool in body["tools"]]}
        kind = (body.get("tool_choice") or {}).get("type")
        if kind in ("auto", "any"):
            made["toolConfig"]["toolChoice"] = {kind: {}}
        elif kind == "tool":
            made["toolConfig"]["toolChoice"] = {"tool": {"name": body["tool_choice"]["name"]}}
        elif kind is not None:
            raise Unwritten
    if body.get("thinking"):
        made["additionalModelRequestFields"] = {"thinking": body["thinking"]}
    if body.get("output_config") or body.get("output_format") or body.get("mcp_servers"):
        raise Unwritten
    return made


def blocks_of(content: Any) -> list[dict[str, Any]]:
    """Write content: a text, or blocks, each with its mark behind it."""
    if isinstance(content, str):
        return [{"text": content}]
    made: list[dict[str, Any]] = []
    for block in content:
        made.append(_block(block))
        if block.get("cache_control"):
            made.append(POINT)
    return made


def _tool(tool: dict[str, Any]) -> dict[str, Any]:
    if "input_schema" not in tool or tool.get("defer_loading"):
        raise Unwritten
    described = {"description": tool["description"]} if tool.get("description") else {}
    return {"toolSpec": {"name": tool["name"], **described, "inputSchema": {"json": tool["input_schema"]}}}


def _block(block: dict[str, Any]) -> dict[str, Any]:
    kind, source = block.get("type"), block.get("source") or {}
    if kind == "text" and not block.get("citations"):
        return {"text": block["text"]}
    if kind == "tool_use":
        return {"toolUse": {"toolUseId": block["id"], "name": block["name"], "input": block["input"]}}
    if kind == "tool_result":
        failed = {"status": "error"} if block.get("is_error") else {}
        content = blocks_of(block.get("content") or [])
        return {"toolResult": {"toolUseId": block["tool_use_id"], "content": content, **failed}}
    if kind == "thinking":
        return {
            "reasoningContent": {
                "reasoningText": {"text": block["thinking"], "signature": block["signature"]}
            }
        }
    if kind == "redacted_thinking":
        return {"reasoningContent": {"redactedContent": block["data"]}}
    if kind == "image" and source.get("type") == "base64":
        return {
            "image": {"format": source["media_type"].partition("/")[2], "source": {"bytes": source["data"]}}
        }
    raise Unwritten
