"""Haystack: a hook that fits an agent's requests to its model.

Requests to the model are fitted; the agent keeps its whole history, unless `persist=True`.
"""
# What is missing is said before it is imported.
# ruff: noqa: E402

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from operator import is_
from os import PathLike, fspath
from typing import Any, Unpack

from trimtab._shared.lazy import package_of
from trimtab.budget import Budget
from trimtab.context import Context
from trimtab.errors import ConfigurationError
from trimtab.integrations.base import (
    AdapterBudget,
    FitOptions,
    OnFitted,
    Schemas,
    Trimmer,
    rewrite_parts,
)
from trimtab.policy import load_policy, policy_data
from trimtab.strategies import create_strategy

package_of("haystack", package="haystack", needed_by="trimtab.integrations.haystack")

from haystack.components.agents.state import State, replace_values
from haystack.core.serialization import default_from_dict, default_to_dict
from haystack.dataclasses import (
    ChatMessage,
    ChatRole,
    FileContent,
    ImageContent,
    TextContent,
    ToolCall,
    ToolCallResult,
)
from haystack.utils.callable_serialization import deserialize_callable, serialize_callable

__all__ = ["TrimHook"]

Wire = dict[str, Any]


class TrimHook:
    """Fits each request of an agent: the last hook of `before_llm`.

    It counts the messages and the tools of the call, for the model named here or in the newest answer.
    Kept messages are the same objects as in the agent's state.

    Args:
        budget: Tokens, a `Budget`, a share of the model's input limit such as `"80%"`, a `Context`, the path
            of a policy, or None for the window less the room for the answer.
        persist: Whether to remove from the agent's state and output what is evicted from a request.
        on_fitted: Called with the `Fitted` of each call; may be async if the call is.
        options: `strategy`, `counter`, `pin` and other keyword arguments of `trimtab.fit`. Pass `model`, too,
            because a hook does not see the model.

    Raises:
        ConfigurationError: The budget or an option is invalid.
        BudgetExceededError: For a call: what must be kept does not fit.
    """

    allowed_hook_points = ("before_llm",)

    def __init__(
        self,
        budget: AdapterBudget = None,
        *,
        persist: bool = False,
        on_fitted: OnFitted | None = None,
        **options: Unpack[FitOptions],
    ) -> None:
        self.persist = persist
        self._given: dict[str, Any] = {"budget": budget, "on_fitted": on_fitted, **options}
        self._trimmer: Trimmer[ChatMessage] = Trimmer(
            budget,
            format="openai_chat",
            read=_read,
            write=_write,
            on_fitted=on_fitted,
            options=options,
            keeps=persist,
            unmarked="a ChatMessage has no place for marks of a prompt cache",
        )
        self._tools = Schemas(
            lambda tools: [{"type": "function", "function": one.tool_spec} for one in tools]
        )

    def run(self, state: State) -> None:
        """Fit the messages of a call."""
        messages = state.data["messages"]
        self._send(state, self._trimmer.fit(messages, **self._call(state)).messages)

    async def run_async(self, state: State) -> None:
        """Fit the messages of a call; counters and summarizers may be async."""
        messages = state.data["messages"]
        self._send(state, (await self._trimmer.afit(messages, **self._call(state))).messages)

    def to_dict(self) -> dict[str, Any]:
        """Write the hook for a pipeline file, with functions as their import paths.

        Raises:
            ConfigurationError: An option cannot be written to a file.
        """
        given = {name: _data(name, value) for name, value in self._given.items()}
        return default_to_dict(self, persist=self.persist, **given)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> TrimHook:
        """Make a hook from what `to_dict` wrote."""
        given = {name: _value(one) for name, one in data.get("init_parameters", {}).items()}
        return default_from_dict(cls, {**data, "init_parameters": given})

    def _call(self, state: State) -> dict[str, Any]:
        tools = self._tools.of(state.data.get("tools") or ())
        return {"model": _model_name(state.data["messages"]), "tools": tools}

    def _send(self, state: State, kept: list[ChatMessage]) -> None:
        """Have the agent send these messages, and keep what it had."""
        whole = state.data["messages"]
        if len(kept) == len(whole) and all(map(is_, kept, whole)):
            return
        state.set("messages", kept, handler_override=replace_values)
        if self.persist:
            return
        # A hook can only change the state, and the agent adds the answer to what it finds there. So the rule
        # of this run by which messages are added puts the whole history back, once, at that moment.
        rule = state.schema["messages"]
        add = rule["handler"]

        def add_to_whole(current: Any, new: Any) -> Any:
            rule["handler"] = add
            return add(whole if current is kept else current, new)

        rule["handler"] = add_to_whole


def _model_name(messages: Sequence[ChatMessage]) -> str | None:
    """Name the model that gave the newest answer."""
    answers = (one.meta.get("model") for one in reversed(messages) if one.role == ChatRole.ASSISTANT)
    return next((name for name in answers if isinstance(name, str)), None)


_VALUES: Mapping[str, Callable[[Any], Any]] = {
    "budget": lambda data: Budget(**data),
    "policy": load_policy,
    "strategy": create_strategy,
    "function": deserialize_callable,
}
"""What makes an option of its data, by the word it is written under."""


def _data(name: str, value: Any) -> Any:
    """Write an option as a file holds it."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, PathLike):
        return fspath(value)
    if isinstance(value, Budget):
        return {"budget": asdict(value)}
    if isinstance(value, Context):
        return {"policy": policy_data(value)}
    if hasattr(value, "to_dict"):
        return {"strategy": value.to_dict()}
    if callable(value):
        return {"function": serialize_callable(value)}
    if isinstance(value, Iterable):
        return list(value)
    raise ConfigurationError(
        f"{name}={value!r:.80} cannot be written to a pipeline file: pass a name, a number, a strategy of"
        " trimtab, or a function that can be imported"
    )


def _value(data: Any) -> Any:
    if not isinstance(data, Mapping):
        return data
    [(kind, said)] = data.items()
    return _VALUES[kind](said)


def _read(message: ChatMessage) -> list[Wire]:
    """Write a message in OpenAI's form; each result of a tool is a message of its own."""
    if results := message.tool_call_results:
        return [_read_result(one) for one in results]
    wire: Wire = {"role": message.role.value, "content": _content(_pieces(message))}
    if message.name is not None:
        wire["name"] = message.name
    if calls := message.tool_calls:
        wire["tool_calls"] = [_call(one) for one in calls]
    if thoughts := [one.reasoning_text for one in message.reasonings]:
        wire["reasoning_content"] = "\n".join(thoughts)
    if isinstance(refusal := message.meta.get("refusal"), str):
        wire["refusal"] = refusal
    return [wire]


def _read_result(result: ToolCallResult) -> Wire:
    said = result.result if isinstance(result.result, str) else _content(result.result)
    return {"role": "tool", "tool_call_id": _call_id(result.origin), "content": said}


def _pieces(message: ChatMessage) -> list[Any]:
    """List what a message says: texts, images, files."""
    return [one for one in message._content if isinstance(one, TextContent | ImageContent | FileContent)]


def _content(parts: Sequence[Any]) -> str | list[Wire] | None:
    if len(parts) == 1 and isinstance(parts[0], TextContent):
        return parts[0].text
    return [_part(one) for one in parts] or None


def _part(part: Any) -> Wire:
    if isinstance(part, TextContent):
        return {"type": "text", "text": part.text}
    if isinstance(part, ImageContent):
        url = f"data:{part.mime_type or 'image/jpeg'};base64,{part.base64_image}"
        return {
            "type": "image_url",
            "image_url": {"url": url, **({"detail": part.detail} if part.detail else {})},
        }
    data = f"data:{part.mime_type or 'application/pdf'};base64,{part.base64_data}"
    return {"type": "file", "file": {"file_data": data, "filename": part.filename or "filename"}}


def _call(call: ToolCall) -> Wire:
    function = {"name": call.tool_name, "arguments": _arguments(call)}
    return {"id": _call_id(call), "type": "function", "function": function}


def _arguments(call: ToolCall) -> str:
    return json.dumps(call.arguments, ensure_ascii=False)


def _call_id(call: ToolCall) -> str:
    """Return what tells a call from others: its id, or what it is where a model gives none."""
    return call.id or f"{call.tool_name} {_arguments(call)}"


def _write(message: ChatMessage | None, wire: list[Wire]) -> ChatMessage:
    """Give a copy of a message with what stays of it; what trimtab put in becomes a message of its role."""
    if message is None:
        return ChatMessage.from_openai_dict_format(wire[0])
    if results := list(message.tool_call_results):
        return replace(message, _content=[_write_result(results, said) for said in wire])
    [said] = wire
    parts = _rewrite(_pieces(message), said["content"])
    ids = {call["id"] for call in said.get("tool_calls", ())}
    calls = [one for one in message.tool_calls if _call_id(one) in ids]
    thoughts = message.reasonings if "reasoning_content" in said else []  # it may have gone stale
    return replace(message, _role=ChatRole(said["role"]), _content=[*thoughts, *parts, *calls])


def _write_result(results: list[ToolCallResult], said: Wire) -> ToolCallResult:
    """Take the result of a call off the list, with what it says now."""
    result = next(one for one in results if _call_id(one.origin) == said["tool_call_id"])
    results.remove(result)
    if _read_result(result) == said:
        return result
    old, new = result.result, said["content"]
    return replace(result, result=new if isinstance(new, str) else _rewrite(_parts_of(old), new))


def _parts_of(result: Any) -> Sequence[Any]:
    return [TextContent(result)] if isinstance(result, str) else result


def _rewrite(parts: Sequence[Any], new: str | list[Wire] | None) -> list[Any]:
    return rewrite_parts(parts, new, read=_part, text=TextContent)
