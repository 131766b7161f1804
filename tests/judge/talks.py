"""Long conversations of each form, as an agent has them: words, calls, parallel calls, thinking."""

from __future__ import annotations

from typing import Any

WORDS = "The quick brown fox jumps over the lazy dog, and the dog sleeps on. "


def talk(form: str, turns: int = 8) -> dict[str, Any]:
    """Return a request with this many turns: said, called once, called twice, and again."""
    return {
        "openai_chat": _chat,
        "openai_responses": _responses,
        "anthropic": _anthropic,
        "gemini": _gemini,
        "bedrock": _bedrock,
    }[form](turns)


def _asked(turn: int) -> str:
    return f"Question {turn}: {WORDS * (1 + turn % 3)}"


def _said(turn: int) -> str:
    return f"Answer {turn}: {WORDS * 2}".strip()


def _ids(turn: int) -> list[str]:
    return [f"call_{turn}_{at}" for at in range(turn % 3)]


def _chat(turns: int) -> dict[str, Any]:
    messages: list[dict[str, Any]] = [{"role": "system", "content": "Be brief."}]
    for turn in range(turns):
        messages.append({"role": "user", "content": _asked(turn)})
        calls = [
            {"id": id_, "type": "function", "function": {"name": "look", "arguments": '{"at": "dog"}'}}
            for id_ in _ids(turn)
        ]
        if calls:
            messages.append({"role": "assistant", "content": None, "tool_calls": calls})
            messages += [{"role": "tool", "tool_call_id": id_, "content": WORDS * 6} for id_ in _ids(turn)]
        messages.append({"role": "assistant", "content": _said(turn)})
    return {"model": "gpt-4o", "messages": [*messages, {"role": "user", "content": "Well?"}]}


def _responses(turns: int) -> dict[str, Any]:
    items: list[dict[str, Any]] = []
    for turn in range(turns):
        items.append({"role": "user", "content": _asked(turn)})
        if _ids(turn):
            items.append(
                {"type": "reasoning", "id": f"rs_{turn}", "summary": [], "encrypted_content": "gAAA"}
            )
        for id_ in _ids(turn):
            call = {"type": "function_call", "call_id": id_, "name": "look", "arguments": '{"at": "dog"}'}
            items.append({**call, "id": f"fc_{id_}"})
        items += [{"type": "function_call_output", "call_id": id_, "output": WORDS * 6} for id_ in _ids(turn)]
        said = [{"type": "output_text", "text": _said(turn), "annotations": []}]
        message = {"type": "message", "id": f"msg_{turn}", "role": "assistant", "status": "completed"}
        items += [
            {
                "type": "reasoning",
                "id": f"rs_{turn}_said",
                "summary": [{"type": "summary_text", "text": "Hm."}],
            },
            {**message, "content": said},
        ]
    return {
        "model": "gpt-5",
        "instructions": "Be brief.",
        "input": [*items, {"role": "user", "content": "Well?"}],
    }


def _anthropic(turns: int) -> dict[str, Any]:
    messages: list[dict[str, Any]] = []
    for turn in range(turns):
        messages.append({"role": "user", "content": _asked(turn)})
        thought = {"type": "thinking", "thinking": "Hm. " * 9, "signature": "EqQB"}
        uses = [{"type": "tool_use", "id": id_, "name": "look", "input": {"at": "dog"}} for id_ in _ids(turn)]
        if uses:
            messages.append({"role": "assistant", "content": [thought, *uses]})
            results = [
                {"type": "tool_result", "tool_use_id": id_, "content": WORDS * 6} for id_ in _ids(turn)
            ]
            messages.append({"role": "user", "content": results})
        messages.append({"role": "assistant", "content": [{"type": "text", "text": _said(turn)}]})
    head = {"model": "claude-sonnet-4-5", "max_tokens": 4096, "system": "Be brief."}
    thinking = {"type": "enabled", "budget_tokens": 1024}
    return {**head, "thinking": thinking, "messages": [*messages, {"role": "user", "content": "Well?"}]}


def _gemini(turns: int) -> dict[str, Any]:
    contents: list[dict[str, Any]] = []
    for turn in range(turns):
        contents.append({"role": "user", "parts": [{"text": _asked(turn)}]})
        calls: list[dict[str, Any]] = [
            {"functionCall": {"id": id_, "name": "look", "args": {"at": "dog"}}} for id_ in _ids(turn)
        ]
        if calls:
            calls[0]["thoughtSignature"] = "c2ln"
            answers = [
                {"functionResponse": {"id": id_, "name": "look", "response": {"result": WORDS * 6}}}
                for id_ in _ids(turn)
            ]
            contents += [{"role": "model", "parts": calls}, {"role": "user", "parts": answers}]
        contents.append({"role": "model", "parts": [{"text": _said(turn)}]})
    contents.append({"role": "user", "parts": [{"text": "Well?"}]})
    system = {"parts": [{"text": "Be brief."}]}
    return {"model": "gemini-3-flash-preview", "systemInstruction": system, "contents": contents}


def _bedrock(turns: int) -> dict[str, Any]:
    messages: list[dict[str, Any]] = []
    for turn in range(turns):
        messages.append({"role": "user", "content": [{"text": _asked(turn)}]})
        thought = {"reasoningContent": {"reasoningText": {"text": "Hm. " * 9, "signature": "EqQB"}}}
        uses = [{"toolUse": {"toolUseId": id_, "name": "look", "input": {"at": "dog"}}} for id_ in _ids(turn)]
        if uses:
            messages.append({"role": "assistant", "content": [thought, *uses]})
            results = [
                {"toolResult": {"toolUseId": id_, "content": [{"json": {"told": WORDS * 6}}]}}
                for id_ in _ids(turn)
            ]
            messages.append({"role": "user", "content": results})
        messages.append({"role": "assistant", "content": [{"text": _said(turn)}]})
    look = {"name": "look", "inputSchema": {"json": {"type": "object"}}}
    return {
        "modelId": "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        "system": [{"text": "Be brief."}],
        "toolConfig": {"tools": [{"toolSpec": look}]},
        "additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 1024}},
        "messages": [*messages, {"role": "user", "content": [{"text": "Well?"}]}],
    }
