"""Strands Agents: a middleware that fits each call of a model, and a conversation manager.

Requests to the model are fitted; with the middleware the agent keeps its whole history, with the manager the
history is cut.
"""
# What is missing is said before it is imported.
# ruff: noqa: E402

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from operator import is_
from typing import Any, Unpack

from trimtab._fit import Fitted
from trimtab._shared.lazy import package_of
from trimtab.formats import Anthropic
from trimtab.formats.api_errors import Refusal
from trimtab.formats.values import python_json
from trimtab.integrations.base import (
    AdapterBudget,
    FitOptions,
    OnFitted,
    Schemas,
    Trimmer,
    form_of,
    rewrite_parts,
)
from trimtab.integrations.copies import CopyCache
from trimtab.integrations.recovery import refusal_in, room_after

package_of("strands", package="strands", needed_by="trimtab.integrations.strands")

from strands import Agent
from strands.agent.conversation_manager import ConversationManager
from strands.hooks import BeforeModelCallEvent, HookRegistry
from strands.middleware import InvokeModelContext

__all__ = ["TrimConversationManager", "trim_middleware"]

Wire = dict[str, Any]

_MARKS_STAY = (
    "the manager cuts what the agent keeps, and points of a prompt cache move from call to call; take"
    " trim_middleware(…, breakpoints=True)"
)


def trim_middleware(
    budget: AdapterBudget = None, *, on_fitted: OnFitted | None = None, **options: Unpack[FitOptions]
) -> Callable[[InvokeModelContext], Awaitable[InvokeModelContext]]:
    """Make a function for `agent.add_middleware(InvokeModelStage.Input, …)` that fits each call of a model.

    It counts the messages, the system prompt and the tools of the call, for its model. The agent's messages
    are not changed. The deprecated `agent.structured_output()` bypasses every middleware and is sent
    unchanged: use `agent(prompt, structured_output_model=…)`.

    Args:
        budget: Tokens, a `Budget`, a share of the model's input limit such as `"80%"`, a `Context`, the path
            of a policy, or None for the window less the room for the answer.
        on_fitted: Called with the `Fitted` of each call; may be async.
        options: `strategy`, `counter`, `pin` and other keyword arguments of `trimtab.fit`.

    Raises:
        ConfigurationError: The budget or an option is invalid.
        BudgetExceededError: For a call: what must be kept does not fit.
    """
    calls = _Calls(budget, on_fitted, options)

    async def fit_call(context: InvokeModelContext) -> InvokeModelContext:
        asked = calls.ask(context.model, context.system_prompt, context.tool_specs)
        return context.replace(messages=(await calls.trimmer.afit(context.messages, **asked)).messages)

    return fit_call


class TrimConversationManager(ConversationManager):
    """Cuts the messages of an agent before each call of its model, so they fit.

    It counts the same as `trim_middleware`. If a provider still refuses a request as too long, the next one
    is half as long; this may call a summarizer, too. A restored session is whole, and is cut at the next
    call. The deprecated `agent.structured_output()` does not show its request to a hook, and is not cut: use
    `agent(prompt, structured_output_model=…)`.

    Args:
        budget: As for `trim_middleware`.
        on_fitted: Called with the `Fitted` of each call; may be async.
        options: Keyword arguments of `trimtab.fit`.

    Raises:
        ConfigurationError: The budget or an option is invalid.
        BudgetExceededError: For a call: what must be kept does not fit.
    """

    def __init__(
        self,
        budget: AdapterBudget = None,
        *,
        on_fitted: OnFitted | None = None,
        **options: Unpack[FitOptions],
    ) -> None:
        super().__init__()
        self._fitted: Fitted[Any] | None = None
        self._limit_tokens: int | None = None
        """Room for the next call, where the provider refused the last one."""
        self._calls = _Calls(budget, on_fitted, options, keeps=True)

    def register_hooks(self, registry: HookRegistry, **kwargs: Any) -> None:
        """Register a hook that runs before each call of the agent's model."""
        super().register_hooks(registry, **kwargs)
        registry.add_callback(BeforeModelCallEvent, self._cut)

    def apply_management(self, agent: Agent, **kwargs: Any) -> None:
        """Do nothing after a run: the next request is cut before it is sent."""

    def reduce_context(self, agent: Agent, e: Exception | None = None, **kwargs: Any) -> None:
        """Cut the next call to the provider's limit, or to half of the last request.

        Counters and summarizers may be async there, and a summarizer is called.

        Raises:
            Exception: The provider's error, if a `Context` decides what is sent, or the messages were changed
                meanwhile.
        """
        fitted = self._fitted
        if fitted is not None and all(map(is_, fitted.messages, agent.messages)):
            refusal = (None if e is None else refusal_in(e)) or Refusal("too_long")
            tokens = fitted.report.tokens_after
            room = room_after(refusal, tokens, is_taught=False)
            self._limit_tokens = max(1, min(room, tokens - 1))
        elif e is not None:
            raise e

    async def _cut(self, event: BeforeModelCallEvent) -> None:
        agent: Any = event.agent
        asked = self._calls.ask(agent.model, agent.system_prompt, agent.tool_registry.get_all_tool_specs())
        limit_tokens, self._limit_tokens = self._limit_tokens, None
        sent = await self._calls.trimmer.afit(agent.messages, **asked, limit_tokens=limit_tokens)
        self._fitted, agent.messages[:] = sent.fitted, sent.messages


class _Calls:
    """What is asked of the trimmer at each call of a model."""

    def __init__(
        self,
        budget: AdapterBudget,
        on_fitted: OnFitted | None,
        options: FitOptions,
        *,
        keeps: bool = False,
    ) -> None:
        # Messages are read in a form that has one message for each of theirs. The framework copies all of
        # them at each call, and where a guardrail redacts it changes in place what the manager is shown.
        self.trimmer: Trimmer[Any] = Trimmer(
            budget,
            format=_Messages(),
            read=_read,
            write=_write,
            cache=CopyCache,
            on_fitted=on_fitted,
            options=options,
            keeps=keeps,
            unmarked=_MARKS_STAY if keeps else "",
        )
        self._schemas = Schemas(lambda tools: [*map(_schema, tools)])

    def ask(self, model: Any, system: Any, tools: Sequence[Any]) -> dict[str, Any]:
        """Say for which model a call is fitted, and what is sent beside its messages."""
        name = (model.get_config() or {}).get("model_id")
        if getattr(model, "stateful", False):
            told = f"{type(model).__name__}(…, stateful="
            self.trimmer.warn_stored(f"{told}True)", instead=f"write {told}False)")
        return {
            "model": name if isinstance(name, str) else None,
            "sent_as": form_of(model, _FORMS),
            "system": system if isinstance(system, str) else [*_blocks(system or ())] or None,
            "tools": self._schemas.of(tools),
        }


_FORMS = {
    "BedrockModel": "bedrock",
    "OpenAIResponsesModel": "openai_responses",
    "GeminiModel": "gemini",
    **dict.fromkeys(
        ("LlamaAPIModel", "LlamaCppModel", "MistralModel", "OllamaModel", "OpenAIModel", "WriterModel"),
        "openai_chat",
    ),
}
"""Wire forms by the class of a model; that of Anthropic sends what is read."""


class _Messages(Anthropic):
    """The form its messages are read in, whose objects its models for other forms write with spaces.

    That is `json.dumps(input, ensure_ascii=False)` in those of OpenAI, Mistral and the others (strands 1.62).
    """

    _write_sent = staticmethod(python_json)


def _schema(tool: Mapping[str, Any]) -> Wire:
    schema = tool["inputSchema"]
    described = {"name": tool["name"], "description": tool["description"]}
    return {**described, "input_schema": schema.get("json", schema)}


def _read(message: Mapping[str, Any]) -> Wire:
    """Write a message in Anthropic's form, block by block."""
    return {"role": message["role"], "content": [*_blocks(message["content"])]}


def _blocks(contents: Sequence[Mapping[str, Any]]) -> Iterator[Wire]:
    """Write contents as blocks; a point of a prompt cache is a mark of the block before it."""
    block: Wire | None = None
    for content in contents:
        if "cachePoint" not in content:
            if block is not None:
                yield block
            block = _block(content)
        elif block is not None:
            lifetime = {key: content["cachePoint"][key] for key in ("ttl",) if key in content["cachePoint"]}
            block = {**block, "cache_control": {"type": "ephemeral", **lifetime}}
    if block is not None:
        yield block


def _block(content: Mapping[str, Any]) -> Wire:
    """Write a content as a block; what the form has none for keeps its name, so that none of it is cut."""
    if "text" in content:
        return {"type": "text", "text": content["text"]}
    if "toolUse" in content:
        use = content["toolUse"]
        return {"type": "tool_use", "id": use["toolUseId"], "name": use["name"], "input": use["input"]}
    if "toolResult" in content:
        result = content["toolResult"]
        failed = {"is_error": True} if result.get("status") == "error" else {}
        said = [*map(_block, result["content"])]
        return {"type": "tool_result", "tool_use_id": result["toolUseId"], "content": said, **failed}
    if "image" in content:
        return {"type": "image", "source": _source(content["image"], f"image/{content['image']['format']}")}
    if "reasoningContent" in content:
        return _reflection(content["reasoningContent"])
    if "document" in content:
        return _document(content["document"])
    for kind in ("video", "audio"):
        if kind in content:
            return {"type": kind, "source": _source(content[kind], f"{kind}/{content[kind]['format']}")}
    key = next(iter(content))
    text = json.dumps(content.get("json", content), ensure_ascii=False, default=str)
    return {"type": "text", "text": text} if key == "json" else {"type": key, "json": text}


def _source(media: Mapping[str, Any], media_type: str) -> Wire:
    """Write where bytes are: in the message, or elsewhere."""
    source = media["source"]
    if "bytes" in source:
        data = b64encode(source["bytes"]).decode()
        return {"type": "base64", "media_type": media_type, "data": data}
    location = source.get("location") or source.get("s3Location") or {}
    return {"type": "url", "url": location.get("uri", "")}


def _document(document: Mapping[str, Any]) -> Wire:
    kind, source = document["format"], document["source"]
    if kind in ("csv", "html", "md", "txt") and "bytes" in source:
        text = source["bytes"].decode(errors="replace")
        said = {"type": "text", "media_type": "text/plain", "data": text}
    else:
        said = _source(document, f"application/{kind}")
    return {"type": "document", "title": document.get("name", ""), "source": said}


def _reflection(reasoning: Mapping[str, Any]) -> Wire:
    if "redactedContent" in reasoning:
        return {"type": "redacted_thinking", "data": b64encode(reasoning["redactedContent"]).decode()}
    said = reasoning.get("reasoningText", {})
    return {"type": "thinking", "thinking": said.get("text", ""), "signature": said.get("signature") or ""}


def _write(message: Any, wire: list[Wire]) -> Any:
    """Give a copy of a message with what stays of it; what trimtab put in becomes a message of its role."""
    [said] = wire
    before: dict[str, Any] = message or {"role": said["role"], "content": []}
    return {**before, "content": [*_contents(before["content"], said["content"])]}


def _contents(before: Sequence[Any], new: str | Sequence[Wire]) -> Iterator[Any]:
    """Write the contents of a message anew; those that nothing changed are the very ones."""
    results = {one["toolResult"]["toolUseId"]: one["toolResult"] for one in before if "toolResult" in one}
    shown = [one for one in before if "cachePoint" not in one]
    told: Sequence[Wire] = [{"type": "text", "text": new}] if isinstance(new, str) else new
    for block in told:
        if block["type"] == "tool_result":
            result = results[block["tool_use_id"]]
            yield {"toolResult": {**result, "content": _rewrite(result["content"], block["content"])}}
        else:
            yield from _rewrite(shown, [block])
        if mark := block.get("cache_control"):
            yield {"cachePoint": {**mark, "type": "default"}}


def _rewrite(contents: Sequence[Any], new: str | Sequence[Wire]) -> list[Any]:
    cut = [] if isinstance(new, str) else [*_cut_documents(contents, new)]
    return rewrite_parts([*contents, *cut], new, read=_block, text=lambda text: {"text": text})


def _cut_documents(contents: Sequence[Any], new: Sequence[Wire]) -> Iterator[Any]:
    """Write the documents in plain text as they are now; each is known by its name."""
    held = {one["document"].get("name", ""): one["document"] for one in contents if "document" in one}
    for block in new:
        if block["type"] == "document" and block["source"]["type"] == "text":
            source = {"bytes": block["source"]["data"].encode()}
            yield {"document": {**held[block["title"]], "source": source}}
