"""Pydantic AI: a capability that fits each request of an agent, and a history processor.

Requests to the model are fitted; the agent keeps its whole history, unless `persist=True`.
"""
# What is missing is said before it is imported.
# ruff: noqa: E402

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from math import inf
from typing import Any, Unpack

from trimtab._shared.lazy import package_of
from trimtab.errors import ConfigurationError
from trimtab.integrations.answers import answer_part
from trimtab.integrations.base import (
    AdapterBudget,
    FitOptions,
    OnFitted,
    Trimmer,
    form_of,
    join_system,
    known_window,
)
from trimtab.integrations.marks import Markable

package_of("pydantic-ai", package="pydantic_ai", needed_by="trimtab.integrations.pydantic_ai")

from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import (
    BaseToolCallPart,
    BaseToolReturnPart,
    BinaryContent,
    CachePoint,
    CompactionPart,
    FileUrl,
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextContent,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestContext, ModelRequestParameters
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.wrapper import WrapperModel

__all__ = ["TrimCapability", "history_processor"]

Wire = dict[str, Any]

PREPARES = hasattr(AbstractCapability, "prepare_model_request")
"""Whether this version asks before each attempt that the agent makes; else once a step, before the first."""


class TrimCapability(AbstractCapability[Any]):
    """Fits each request of an agent to its model.

    It counts the instructions, the tools and the messages of the request, for the model that serves it; for a
    `FallbackModel`, by the smallest window and the highest count among its models. Kept messages are the same
    objects as in the agent's history.

    Args:
        budget: Tokens, a `Budget`, a share of the model's input limit such as `"80%"`, a `Context`, the path
            of a policy, or None for the window less the room for the answer.
        persist: Whether to remove from the agent's history what is evicted from a request.
        on_fitted: Called with the `Fitted` of each request; may be async.
        options: `strategy`, `counter`, `pin` and other keyword arguments of `trimtab.fit`.

    Raises:
        ConfigurationError: The budget or an option is invalid.
        BudgetExceededError: For a request: what must be kept does not fit.
    """

    def __init__(
        self,
        budget: AdapterBudget = None,
        *,
        persist: bool = False,
        on_fitted: OnFitted | None = None,
        **options: Unpack[FitOptions],
    ) -> None:
        self.persist = persist
        self._trimmer = _trimmer(budget, on_fitted, options, keeps=persist)

    @classmethod
    def get_serialization_name(cls) -> str | None:
        """Return None: the specification of an agent has no functions."""
        return None

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Fit the messages of a step if the history keeps them or no later hook runs."""
        if self.persist:
            request_context.messages = await self._fit(request_context)
            ctx.messages[:] = request_context.messages
        elif not PREPARES:
            request_context.messages = await self._fit(request_context)
        return request_context

    async def prepare_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Fit the messages of an attempt, for the model that serves it."""
        if not self.persist:
            request_context.messages = await self._fit(request_context)
        return request_context

    async def _fit(self, request: ModelRequestContext) -> list[ModelMessage]:
        models = _models(request.model)
        asked = request.model_settings, request.model_request_parameters
        parameters: list[ModelRequestParameters] = []
        systems = [""]
        for model in models:
            with suppress(UserError):  # a model that refuses the request is not sent it
                settings, told = model.prepare_request(*asked)
                parameters.append(told)
                systems.append(_instructions(told, request.messages, model) or "")
                _warn_stored(self._trimmer, settings)
        parameters = parameters or [request.model_request_parameters]
        known = _known_of(models)
        system = max(systems, key=len) or None
        tools = self._trimmer.dearest(map(_tools, parameters), has_system=system is not None, **known)
        return (await self._trimmer.afit(request.messages, **known, system=system, tools=tools)).messages


def history_processor(
    budget: AdapterBudget = None, *, on_fitted: OnFitted | None = None, **options: Unpack[FitOptions]
) -> Callable[[RunContext[Any], list[ModelMessage]], Awaitable[list[ModelMessage]]]:
    """Make a function for `ProcessHistory(…)`, whose results are written to the history.

    It gets only the messages: reserve room for instructions and tools, for example with `Budget(…,
    output_reserve=…)`, or use `TrimCapability`, which counts them.

    Args:
        budget: As for `TrimCapability`.
        on_fitted: Called with the `Fitted` of each request; may be async.
        options: Keyword arguments of `trimtab.fit`.

    Raises:
        ConfigurationError: The budget or an option is invalid.
    """
    trimmer = _trimmer(budget, on_fitted, options, keeps=True)

    async def process(ctx: RunContext[Any], messages: list[ModelMessage]) -> list[ModelMessage]:
        models = _models(ctx.model)
        for model in models:
            _warn_stored(trimmer, {**(model.settings or {}), **(ctx.model_settings or {})})
        return (await trimmer.afit(messages, **_known_of(models))).messages

    return process


def _trimmer(
    budget: AdapterBudget, on_fitted: OnFitted | None, options: FitOptions, *, keeps: bool
) -> Trimmer[ModelMessage]:
    return Trimmer(
        budget,
        format=Markable(_MARKED),
        read=_read,
        write=_write,
        holds=_is_built_on,
        on_fitted=on_fitted,
        options=options,
        keeps=keeps,
        unmarked=_MARKS_STAY if keeps else "",
    )


_MARKED = {"openai_chat": ("user",), **dict.fromkeys(("anthropic", "bedrock"), ("tool", "user"))}
"""Which messages carry a `CachePoint`, by the form: behind a result one is an empty message in Chat's."""

_MARKS_STAY = (
    "what is sent becomes the agent's history here, and marks of a prompt cache move from call to call; take"
    " TrimCapability(…, breakpoints=True) without persist=True"
)


def _is_built_on(message: ModelMessage) -> bool:
    """Tell whether the framework builds later messages on something in this one."""
    return any(map(_is_base, map(type, message.parts)))


@cache
def _is_base(kind: Any) -> bool:
    """Tell whether later messages build on parts of a class."""
    return issubclass(kind, CompactionPart) or kind.part_kind.endswith(("-delta", "-baseline"))


def _models(model: Model) -> list[Model]:
    """List the models that a request is fitted for, that with the smallest window first.

    A `FallbackModel` is asked once for all its attempts: what fits the smallest window fits each, if it is
    counted as the dearest.
    """
    if isinstance(model, WrapperModel):
        return _models(model.wrapped)
    if isinstance(model, FallbackModel):
        return sorted((one for each in model.models for one in _models(each)), key=_window_tokens)
    return [model]


def _known_of(models: Sequence[Model]) -> dict[str, Any]:
    """Say of the models of a request what they are, and in which form each is sent it."""
    first, *others = [(one.model_name, form_of(one, _FORMS)) for one in models]
    return {"model": first[0], "sent_as": first[1], "others": others}


def _warn_stored(trimmer: Trimmer[ModelMessage], settings: Mapping[str, Any] | None) -> None:
    """Warn of settings by which a model sends what its provider has not yet."""
    for key in _STORED:
        if settings and settings.get(key):
            instead = f"leave {key} out of the model settings"
            if settings.get("openai_transport") == "websocket":
                instead += ", and write openai_transport='http'"
            trimmer.warn_stored(f"{key}={settings[key]!r:.80}", instead=instead)


_STORED = ("openai_previous_response_id", "openai_conversation_id", "xai_previous_response_id")
"""Settings by which a request goes on from what its provider keeps (pydantic-ai 2.68)."""


def _window_tokens(model: Model) -> float:
    """Say what a model's window holds; what nobody knows is held for the largest."""
    return known_window(model.model_name) or inf


_FORMS = {
    "AnthropicModel": "anthropic",
    "BedrockConverseModel": "bedrock",
    "GoogleModel": "gemini",
    "OpenAIResponsesModel": "openai_responses",
}
"""Wire forms by the class of a model."""


def _instructions(
    parameters: ModelRequestParameters, messages: Sequence[ModelMessage], model: Model
) -> str | None:
    """Return what is sent beside the messages: never returned, only counted."""
    parts = parameters.instruction_parts
    if parts is None:  # a request without an agent: the newest that says some
        told = (one.instructions for one in reversed(messages) if isinstance(one, ModelRequest))
        texts = [text for text in told if text][:1]
    else:
        texts = [part.content for part in parts]
    told = parameters.prompted_output_instructions
    if told and told not in texts:  # a model that leaves the choice to others has not put it there yet
        texts.append(told)
    return join_system([*_announcement(parameters, messages, model), *texts])


_FIRST = ModelRequest([SystemPromptPart("-"), UserPromptPart("-")])
_AGAIN: list[ModelMessage] = [_FIRST, ModelResponse([TextPart("-")]), _FIRST]
_FRAMED = ("system-prompt", "instruction-delta", "retry-feedback", "retry-prompt", "compaction")


def _announcement(
    parameters: ModelRequestParameters, messages: Sequence[ModelMessage], model: Model
) -> Iterator[str]:
    """List what the framework tells some models of its own words in a conversation (pydantic-ai 2.68).

    To Claude Sonnet 4.6 that is always said, in 235 tokens; to others once there are such words. Only where
    these are copies in users' texts is it not seen here.
    """
    if not hasattr(model, "prepare_messages"):
        return
    is_framed = any(part.part_kind in _FRAMED for one in messages[1:] for part in one.parts)
    for one in model.prepare_messages(_AGAIN if is_framed else [_FIRST], parameters)[:1]:
        texts = [part.content for part in one.parts if isinstance(part, SystemPromptPart)]
        yield from (text for text in texts if text and text != "-")


def _tools(parameters: ModelRequestParameters) -> list[Wire]:
    """List the schemas of a request: of the answer, where it is asked for as such, and those of functions."""
    asked = parameters.output_object
    answers: list[Any] = []
    is_told = parameters.output_mode == "prompted" and parameters.prompted_output_instructions
    if asked is not None and not parameters.output_tools and not is_told:
        named = {"name": asked.name or "final_result", "description": asked.description}
        answers = [answer_part({**named, "schema": asked.json_schema})]
    tools = [
        _tool(tool.name, tool.description, tool.parameters_json_schema, tool.strict)
        for tool in parameters.declared_tool_defs.values()
    ]
    return [*answers, *tools]


def _tool(name: str, description: str | None, schema: Any, strict: bool | None) -> Wire:
    function = {"name": name, "description": description or "", "parameters": schema}
    return {"type": "function", "function": {**function, "strict": True} if strict else function}


Pair = tuple[list[Any], Wire]
"""Parts of a message, and what they are on the wire."""


def _read(message: ModelMessage) -> list[Wire]:
    return [wire for _, wire in _pairs(message)]


def _pairs(message: ModelMessage) -> list[Pair]:
    """Write a message in OpenAI's form: a request as a message a part, a response as one."""
    if isinstance(message, ModelResponse):
        return _response(message)
    if not isinstance(message, ModelRequest):
        raise ConfigurationError(f"a message must be a ModelRequest or a ModelResponse, not {message!r:.80}")
    made = (([part], _request_part(part)) for part in message.parts)
    return [(parts, wire) for parts, wire in made if wire is not None]


def _request_part(part: Any) -> Wire | None:
    """Write a part of a request; None: the model is told nothing by it."""
    kind = part.part_kind
    if kind == "tool-return" or (kind == "retry-prompt" and part.tool_name is not None):
        return {"role": "tool", "tool_call_id": part.tool_call_id, "content": _result(part)}
    if kind == "user-prompt":
        said = _content(part.content)
        return {"role": "user", "content": said} if said or not part.content else None
    if kind in ("retry-prompt", "retry-feedback"):  # as system text: the question stays the user's latest
        return {"role": "system", "content": part.model_response()}
    if kind == "tool-availability-delta":
        return {"role": "system", "content": json.dumps(part.tools_added)}
    if kind in ("system-prompt", "instruction-delta"):
        return {"role": "system", "content": part.content or ""}
    if kind in ("compaction", "speech"):
        return {"role": "user", "content": part.content or ""}
    return None


def _result(part: Any) -> str | list[Wire]:
    """Write a tool's answer, with the files that are sent behind it."""
    if not isinstance(part, BaseToolReturnPart):
        return str(part.model_response())
    text, files = part.model_response_str_and_user_content()
    return text if not files else [_text(text), *map(_item, files)]


def _content(content: str | Sequence[Any]) -> str | list[Wire]:
    if isinstance(content, str):
        return content
    parts: list[Wire] = []
    for one in content:
        if not isinstance(one, CachePoint):
            parts.append(_item(one))
        elif parts:  # it marks what stands before it
            parts[-1] = {**parts[-1], "cache_control": {"type": "ephemeral", "ttl": one.ttl}}
    return parts


def _text(text: str) -> Wire:
    return {"type": "text", "text": text}


def _item(item: Any) -> Wire:
    """Write a piece of a prompt as a part of a message."""
    if isinstance(item, str):
        return _text(item)
    if isinstance(item, ImageUrl):
        return {"type": "image_url", "image_url": {"url": item.url, **_detail(item)}}
    if isinstance(item, BinaryContent):
        if item.is_image:
            return {"type": "image_url", "image_url": {"url": item.data_uri, **_detail(item)}}
        if item.is_audio:
            return {"type": "input_audio", "input_audio": {"data": item.base64, "format": item.format}}
        return {"type": "file", "file": {"file_data": item.data_uri, "filename": item.identifier}}
    if isinstance(item, FileUrl):
        return {"type": "file", "file": {"file_id": item.url}}
    if hasattr(item, "file_id"):
        return {"type": "file", "file": {"file_id": item.file_id}}
    return _text(str(item.content))


def _detail(item: Any) -> dict[str, Any]:
    detail = (item.vendor_metadata or {}).get("detail")
    return {} if detail is None else {"detail": detail}


def _response(message: ModelResponse) -> list[Pair]:
    """Write what a model said as one message; what a provider folded away stands by itself."""
    others: list[Any] = [part for part in message.parts if not isinstance(part, CompactionPart)]
    pairs: list[Pair] = [
        ([part], {"role": "system", "content": part.content or ""})
        for part in message.parts
        if isinstance(part, CompactionPart)
    ]
    content = [_item(part.content) for part in others if _is_content(part)]
    calls = [_call(part) for part in others if isinstance(part, ToolCallPart)]
    beside = [text for part in others if (text := _beside(part))]
    sealed = [part.signature for part in others if isinstance(part, ThinkingPart) and not part.content]
    if not (content or calls or beside or any(sealed)):
        return pairs
    plain = len(content) == 1 and content[0]["type"] == "text"
    wire: Wire = {"role": "assistant", "content": content[0]["text"] if plain else content or None}
    if calls:
        wire["tool_calls"] = calls
    if beside:
        wire["reasoning_content"] = "\n".join(beside)
    if any(sealed):  # of which the provider hands out no text
        wire["reasoning_details"] = [{"type": "reasoning.encrypted", "data": one} for one in sealed if one]
    return [*pairs, (others, wire)]


def _is_content(part: Any) -> bool:
    return part.part_kind in ("text", "speech", "file") and bool(part.content)


def _call(part: ToolCallPart) -> Wire:
    function = {"name": part.tool_name, "arguments": part.args_as_json_str()}
    return {"id": part.tool_call_id, "type": "function", "function": function}


def _beside(part: Any) -> str:
    """Say what is counted and never changed: thinking, and what the provider's own tools did."""
    if isinstance(part, ThinkingPart):
        return part.content
    if isinstance(part, BaseToolCallPart) and not isinstance(part, ToolCallPart):
        return f"{part.tool_name} {part.args_as_json_str()}"
    return part.model_response_str() if isinstance(part, BaseToolReturnPart) else ""


def _write(message: ModelMessage | None, wire: list[Wire]) -> ModelMessage:
    """Give a copy of a message with what stays of it; what trimtab put in becomes a message of its role."""
    if message is None:
        return _new(wire[0])
    pairs = _pairs(message)
    shown = {id(part) for parts, _ in pairs for part in parts}
    new: dict[int, Any] = {id(part): part for part in message.parts if id(part) not in shown}
    points: dict[int, CachePoint | None] = {}
    for at, said in _places(pairs, wire):
        parts, was = pairs[at]
        plain, points[id(parts[-1])] = _take_mark(was, said)
        made = parts if plain == was else _rewrite(parts, was, plain)
        new.update(zip(map(id, parts), made, strict=True))
    whole: Any = message
    stay = [part for part in whole.parts if new.get(id(part)) is not None]
    left = [one for part in stay for one in _with_point(new[id(part)], points.get(id(part)))]
    changed: ModelMessage = replace(whole, parts=left)
    return changed


def _places(pairs: Sequence[Pair], wire: Sequence[Wire]) -> Iterator[tuple[int, Wire]]:
    """Say which parts of a message each wire message was made from."""
    free = [at for at, (_, was) in enumerate(pairs) if was not in wire]
    for said in wire:
        at = next((at for at, (_, was) in enumerate(pairs) if was == said), None)
        if at is None:
            at = next(at for at in free if _source(pairs[at][1]) == _source(said))
            free.remove(at)
        yield at, said


def _source(wire: Wire) -> tuple[Any, Any]:
    return wire["role"], wire.get("tool_call_id")


def _rewrite(parts: Sequence[Any], was: Wire, said: Wire) -> list[Any]:
    """Write the parts that a wire message was made from anew; None for one that says nothing any more."""
    new = said["content"]
    if was["role"] == "assistant":
        made = _rewrite_answer(parts, new)
        stale = any(key in was and key not in said for key in ("reasoning_content", "reasoning_details"))
        return [None if stale and isinstance(one, ThinkingPart) else one for one in made]
    [part] = parts
    if was["role"] == "tool":
        if not isinstance(part, BaseToolReturnPart):  # a RetryPromptPart
            part = ToolReturnPart(part.tool_name, "", part.tool_call_id, timestamp=part.timestamp)
        files = part.files if isinstance(new, list) else []
        text = new if isinstance(new, str) else new[0]["text"]
        # The framework wraps what failed, `{"error": …}`; the text that was read and counted has the wrapper.
        outcome = "success" if part.outcome in ("failed", "retried") else part.outcome
        return [replace(part, content=[text, *files] if files else text, outcome=outcome)]
    if isinstance(part, UserPromptPart) and not isinstance(part.content, str):
        return [replace(part, content=_rewrite_items(part.content, new))]
    return [replace(part, content=new)]


def _take_mark(was: Wire, said: Wire) -> tuple[Wire, CachePoint | None]:
    """Take off the mark for a prompt cache that trimtab set: the framework writes it otherwise."""
    old, new = was["content"], said["content"]
    *rest, last = new if isinstance(new, list) and new else [{}]
    mark = last.get("cache_control")
    if mark is None or (isinstance(old, list) and old and "cache_control" in old[-1]):
        return said, None
    bare = {key: value for key, value in last.items() if key != "cache_control"}
    content = bare["text"] if isinstance(old, str) and not rest else [*rest, bare]
    return {**said, "content": content}, CachePoint(ttl="1h" if mark.get("ttl") == "1h" else "5m")


def _with_point(part: Any, point: CachePoint | None) -> list[Any]:
    """Put a mark behind what a part says: in a prompt, and behind what a tool said in one of its own."""
    if point is None:
        return [part]
    if not isinstance(part, UserPromptPart):
        return [part, UserPromptPart([point])]
    said = [part.content] if isinstance(part.content, str) else part.content
    return [replace(part, content=[*said, point])]


def _rewrite_items(items: Sequence[Any], new: str | list[Wire]) -> str | list[Any]:
    """Put what is told now in the place of the pieces it was told by; those that nothing changed stay."""
    if isinstance(new, str):
        return new
    shown = [item for item in items if not isinstance(item, CachePoint)]
    if len(shown) != len(new):
        return [one["text"] for one in new if one.get("type") == "text"]
    pieces = iter([_rewrite_item(item, now) for item, now in zip(shown, new, strict=True)])
    return [item if isinstance(item, CachePoint) else next(pieces) for item in items]


def _rewrite_item(item: Any, now: Wire) -> Any:
    if _item(item) == {key: value for key, value in now.items() if key != "cache_control"}:
        return item
    return replace(item, content=now["text"]) if isinstance(item, TextContent) else now["text"]


def _rewrite_answer(parts: Sequence[Any], new: Any) -> list[Any]:
    """Put changed texts into the parts of an answer; calls and thinking stay as they are."""
    said = iter([_text(new)] if isinstance(new, str) else new or ())
    return [_rewrite_piece(part, next(said, {})) if _is_content(part) else part for part in parts]


def _rewrite_piece(part: Any, now: Wire) -> Any:
    if _item(part.content) == now:
        return part
    # Without its id: a provider would look the text up, and not read what is sent.
    return TextPart(now["text"]) if now.get("text") else None


def _new(said: Wire) -> ModelMessage:
    """Make a message of what trimtab put in."""
    content = said["content"]
    text = content if isinstance(content, str) else "\n".join(one.get("text", "") for one in content or ())
    if said["role"] == "assistant":
        return ModelResponse([TextPart(text)])
    if said["role"] == "tool":
        return ModelRequest([ToolReturnPart("unknown", text, said["tool_call_id"])])
    return ModelRequest([UserPromptPart(text) if said["role"] == "user" else SystemPromptPart(text)])
