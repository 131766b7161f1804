"""Microsoft's Agent Framework: a compaction strategy and a middleware that fit an agent's requests to its
model.

Requests to the model are fitted; the agent keeps its whole history, unless `persist=True`.
"""
# What is missing is said before it is imported.
# ruff: noqa: E402

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from itertools import takewhile
from operator import attrgetter, is_
from typing import Any, ClassVar, Unpack

from trimtab._shared.lazy import package_of
from trimtab.history import ReadCache
from trimtab.integrations.answers import answer_part
from trimtab.integrations.base import (
    AdapterBudget,
    FitOptions,
    OnFitted,
    Schemas,
    Trimmer,
    form_of,
    join_system,
    rewrite_parts,
)
from trimtab.integrations.recovery import last_try

package_of("agent-framework", package="agent_framework", needed_by="trimtab.integrations.agent_framework")

from agent_framework import (
    EXCLUDE_REASON_KEY,
    EXCLUDED_KEY,
    ChatContext,
    ChatMiddleware,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionTool,
    Message,
    ResponseStream,
    normalize_tools,
)

__all__ = ["TrimMiddleware", "TrimStrategy"]

Wire = dict[str, Any]

_UNMARKED = (
    "a Message has no mark for a prompt cache that Agent Framework's clients send to the models that need one"
)

Instructions = str | Sequence[str] | None


class TrimStrategy:
    """Fits each request of an agent: its `compaction_strategy`, or that of a client.

    A strategy sees only the messages: instructions and tools are counted as passed here. The
    framework's messages are not marked: in the list of a run, copies replace those that are not sent.

    Args:
        budget: Tokens, a `Budget`, a share of the model's input limit such as `"80%"`, a `Context`, the path
            of a policy, or None for the window less the room for the answer.
        instructions: The instructions of the agent.
        tools: The tools of the agent: the framework's, functions, or their schemas.
        name: The name of the agent. The framework writes it into the messages of a run after the run, so the
            next run sends different messages, and a prompt cache misses them; if the name is passed, it is
            written at each call.
        persist: Whether to remove what is not sent from the framework's list: that of a run, or, as the
            `after_strategy` of a `CompactionProvider`, that of a session.
        on_fitted: Called with the `Fitted` of each call; may be async.
        options: `strategy`, `counter`, `pin` and other keyword arguments of `trimtab.fit`. Pass `model` and
            `charge_as`, too, because a strategy does not see the client.

    Raises:
        ConfigurationError: The budget or an option is invalid.
        BudgetExceededError: For a call: what must be kept does not fit.
    """

    def __init__(
        self,
        budget: AdapterBudget = None,
        *,
        instructions: Instructions = None,
        tools: Iterable[Any] = (),
        name: str | None = None,
        persist: bool = False,
        on_fitted: OnFitted | None = None,
        **options: Unpack[FitOptions],
    ) -> None:
        self.persist = persist
        self._name = name
        self._trimmer: Trimmer[Message] = Trimmer(
            budget,
            format="openai_chat",
            read=_read,
            write=_write if persist else _write_stand_in,
            cache=_Readings,
            on_fitted=on_fitted,
            options=options,
            unmarked=_UNMARKED,
            keeps=persist,
        )
        self._system = _system(instructions)
        self._tools = [*map(_schema, normalize_tools([*tools]))]

    async def __call__(self, messages: list[Message]) -> bool:
        """Fit the messages of a call in their list; True if that changed it."""
        whole = [one for one in map(_source, messages) if one is not None]
        _write_name(whole, self._name)
        given = [one for one in whole if not one.additional_properties.get(EXCLUDED_KEY)]
        kept = (await self._trimmer.afit(given, system=self._system, tools=self._tools)).messages
        listed = kept if self.persist else list(_with_the_rest(kept, whole, messages))
        if len(listed) == len(messages) and all(map(is_, listed, messages)):
            return False
        messages[:] = listed
        return True


class TrimMiddleware(ChatMiddleware):
    """Fits each request of an agent: the last in the `middleware` of an agent or a client.

    It counts the instructions, the tools, the output schema and the messages of the call, for the model of
    the call. Kept messages are the same objects as in the run.

    Args:
        budget: As for `TrimStrategy`.
        name: As for `TrimStrategy`.
        retry_overflow: Whether to send a call again, fitted to the size that the provider names, if the
            provider refuses it as too long; or without old thinking, if the provider refuses that.
        on_fitted: Called with the `Fitted` of each call; may be async.
        options: `strategy`, `counter`, `pin` and other keyword arguments of `trimtab.fit`.

    Raises:
        ConfigurationError: The budget or an option is invalid.
        BudgetExceededError: For a call: what must be kept does not fit.
    """

    def __init__(
        self,
        budget: AdapterBudget = None,
        *,
        name: str | None = None,
        retry_overflow: bool = False,
        on_fitted: OnFitted | None = None,
        **options: Unpack[FitOptions],
    ) -> None:
        self._name = name
        self._trimmer: Trimmer[Message] = Trimmer(
            budget,
            format="openai_chat",
            read=_read,
            write=_write,
            cache=_Readings,
            retry_overflow=retry_overflow,
            on_fitted=on_fitted,
            options=options,
            unmarked=_UNMARKED,
        )
        self._tools = Schemas(lambda tools: [*map(_schema, tools)])
        self._answers = Schemas(_answers)

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """Fit the messages of a call."""
        _write_name(context.messages, self._name)
        said: Mapping[str, Any] = context.options or {}
        if said.get("conversation_id") not in (None, _LOCAL):
            self._trimmer.warn_stored("conversation_id is given", instead=_INSTEAD)
        asked = said.get("response_format")
        tools = self._tools.of(normalize_tools(said.get("tools")))
        whole = context.messages
        call: dict[str, Any] = {
            "model": said.get("model") or getattr(context.client, "model", None),
            "sent_as": form_of(context.client, _FORMS),
            "system": _system(said.get("instructions")),
            "tools": [*self._answers.of([] if asked is None else [asked]), *tools],
        }
        sent = await self._trimmer.afit(whole, **call)
        context.messages = sent.messages

        async def ask_again(error: Exception) -> None:
            context.messages = (await self._trimmer.afit_again(error, sent, whole, **call)).messages
            with last_try(error, Exception):
                await call_next()

        try:
            await call_next()
        except Exception as error:  # each client has its own
            if not self._trimmer.retries:
                raise
            await ask_again(error)
        else:
            if self._trimmer.retries and isinstance(context.result, ResponseStream):
                context.result = _stream_of(context, context.result, ask_again)


def _stream_of(
    context: ChatContext,
    stream: ResponseStream[ChatResponseUpdate, ChatResponse],
    ask_again: Callable[[Exception], Awaitable[None]],
) -> ResponseStream[ChatResponseUpdate, ChatResponse]:
    """Return the stream of a call, which is asked for once more if it fails before it has begun."""
    streams = [stream]

    async def updates() -> AsyncIterator[ChatResponseUpdate]:
        begun = False
        try:
            async for update in stream:
                begun = True
                yield update
        except Exception as error:
            if begun:
                raise
            await ask_again(error)
            refused = error
        else:
            return
        again = context.result
        assert isinstance(again, ResponseStream)
        streams.append(again)
        with last_try(refused, Exception):
            async for update in again:
                yield update

    async def whole(_: Sequence[ChatResponseUpdate]) -> ChatResponse:
        return await streams[-1].get_final_response()

    return ResponseStream(updates(), finalizer=whole)


_FORMS = {
    "BedrockChatClient": "bedrock",
    "RawOpenAIChatClient": "openai_responses",
    "RawAnthropicClient": "anthropic",
    "RawGeminiChatClient": "gemini",
}
"""Wire forms by the class of a client."""

_LOCAL = "agent_framework_local_history_persistence"
"""Stands for a conversation that the framework keeps itself (agent-framework 1.23)."""

_INSTEAD = (
    'write Agent(…, default_options={"store": False}), and leave conversation_id and service_session_id out'
)
"""`OpenAIChatClient`, the framework's default, has OpenAI keep what was said unless it is told this."""


def _write_name(messages: Sequence[Message], name: str | None) -> None:
    """Write the agent's name into what this run said so far, as the framework will when it is over."""
    if name is not None:
        for message in takewhile(lambda one: one.role in ("assistant", "tool"), reversed(messages)):
            message.author_name = message.author_name or name


class _Readings(ReadCache[Message, list[Wire]]):
    """Readings by object, but of messages that have another name since: the framework writes it in place."""

    _names: tuple[list[Message], list[str | None]] = [], []
    """Messages that were asked for last, and their names."""

    def __call__(self, object: Message, /) -> list[Wire]:
        """Return what a message reads as."""
        self._forget([object])
        return super().__call__(object)

    def readings(self, objects: Sequence[Message], /) -> list[list[Wire] | None]:
        """List what messages read as."""
        names = [*map(_name_of, objects)]
        before, named = self._names
        if names[: len(named)] != named or not all(map(is_, before, objects)):
            self._forget(objects)
        self._names = list(objects), names
        return super().readings(objects)

    def _forget(self, messages: Sequence[Message]) -> None:
        known = self._read_as
        for message in messages:
            said = (known.get(id(message)) or _UNREAD)[0]
            if said["role"] != "tool" and said.get("name") != (message.author_name or None):
                known.pop(id(message), None)
                self._last = [], []


_name_of = attrgetter("author_name")

_UNREAD: list[Wire] = [{"role": "tool"}]


class _StandIn(Message):
    """Stands in the list of a run for a message that is not sent, or not as it is; its marks are its own."""

    TYPE: ClassVar[str] = "message"

    _source: Message | None
    """The message of the run; None: trimtab put this in."""


def _stand_in(source: Message | None, said: Message, *, excluded: bool) -> _StandIn:
    made = _StandIn.__new__(_StandIn)
    vars(made).update(vars(said), _source=source)
    made.additional_properties = {**said.additional_properties, EXCLUDED_KEY: excluded}
    if excluded:
        made.additional_properties[EXCLUDE_REASON_KEY] = "trimtab"
    return made


def _source(message: Message) -> Message | None:
    """Return the message of the run that one of its list stands for."""
    return message._source if type(message) is _StandIn else message


def _with_the_rest(
    kept: Sequence[Message], whole: Sequence[Message], before: Sequence[Message]
) -> Iterator[Message]:
    """List what is sent, and what is not at the place where it was, excluded.

    Args:
        kept: What is sent.
        whole: All messages of the run.
        before: The list at the call before, whose copies are taken again.
    """
    places = {id(one): at for at, one in enumerate(whole)}
    sent = {id(_source(one)) for one in kept}  # a Context may have moved one in front of others
    made = {id(_source(one)): one for one in before if type(one) is _StandIn and _is_excluded(one)}
    passed = 0
    for one in [*kept, None]:
        source = None if one is None else _source(one)
        end = len(whole) if one is None else passed if source is None else places[id(source)]
        for left in whole[passed:end]:
            if id(left) not in sent:
                yield made.get(id(left)) or _stand_in(left, left, excluded=True)
        if one is not None:
            passed = max(passed, end if source is None else end + 1)
            yield one


def _is_excluded(message: Message) -> bool:
    return bool(message.additional_properties.get(EXCLUDED_KEY))


def _system(instructions: Instructions) -> str | None:
    """Return what is sent beside the messages: never returned, only counted."""
    return join_system([instructions] if isinstance(instructions, str) else instructions or ())


def _schema(tool: Any) -> Any:
    """Write a tool as it is sent; one of a provider's SDK as what it dumps."""
    if isinstance(tool, FunctionTool):
        return tool.to_json_schema_spec()
    return tool.model_dump() if hasattr(tool, "model_dump") else tool


def _answers(asked: Sequence[Any]) -> list[Any]:
    """Write the schemas of answers as they are sent; a class as OpenAI's client does, if that is there."""
    parts = (answer_part(one if isinstance(one, Mapping) else _format_of(one)) for one in asked)
    return [part for part in parts if part is not None]


def _format_of(kind: Any) -> dict[str, Any]:
    try:
        from openai import pydantic_function_tool
    except ImportError:
        return {"name": kind.__name__, "schema": kind.model_json_schema()}
    return {"name": kind.__name__, "schema": pydantic_function_tool(kind)["function"]["parameters"]}


def _read(message: Message) -> list[Wire]:
    """Write a message in OpenAI's form; each result of a tool is a message of its own."""
    results = [_read_result(one) for one in message.contents if one.type == "function_result"]
    said = _read_said(message)
    return results if said is None else [said, *results]


def _read_said(message: Message) -> Wire | None:
    """Write what a message says beside the results in it; None: nothing."""
    shown = [one for one in message.contents if _part(one)]
    calls = [_call(one) for one in message.contents if one.type == "function_call"]
    beside = [text for one in message.contents if (text := _beside(one))]
    # Each text or picture is sent as a message of its own; the first has the frame of this one. A frame is
    # charged four tokens beside the name, and six around an answer of GPT-5, which names a channel.
    frame = f"{message.role}\n\n" * (3 if message.role == "assistant" else 2)
    beside += [f"{message.author_name}\n\n{frame}" if message.author_name else frame] * (len(shown) - 1)
    if not (shown or calls or beside):
        return None
    wire: Wire = {"role": message.role, "content": _content(shown)}
    if message.author_name:
        wire["name"] = message.author_name
    if calls:
        wire["tool_calls"] = calls
    if beside:
        wire["reasoning_content"] = "\n".join(beside)
    return wire


def _content(shown: Sequence[Content]) -> str | list[Any] | None:
    if len(shown) == 1 and shown[0].type == "text":
        return shown[0].text
    return [_part(one) for one in shown] or None


def _part(content: Content) -> Wire | None:
    """Write a text, a picture, a sound or a file as a part of a message; None: it is none of them."""
    if content.type == "text":
        return {"type": "text", "text": content.text or ""}
    if content.type not in ("data", "uri"):
        return None
    kind, uri = content.media_type or "", content.uri or ""
    if kind.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": uri}}
    if kind.startswith("audio/"):
        return {"type": "input_audio", "input_audio": {"data": uri.partition(",")[2], "format": kind[6:]}}
    return {"type": "file", "file": {"file_data" if uri.startswith("data:") else "file_id": uri}}


def _call(content: Content) -> Wire:
    function = {"name": content.name, "arguments": _arguments(content)}
    return {"id": content.call_id, "type": "function", "function": function}


def _arguments(call: Content) -> str:
    return call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments or {})


def _read_result(content: Content) -> Wire:
    items = _items(content)
    return {"role": "tool", "tool_call_id": content.call_id, "content": _content(items) if items else ""}


def _items(result: Content) -> list[Content]:
    """List what a tool answered with; an older result has a text alone."""
    items = [one for one in result.items or () if _part(one)]
    return items or ([] if result.result is None else [Content.from_text(str(result.result))])


_UNSENT = {"function_approval_request", "function_approval_response", "oauth_consent_request", "usage"}
"""Contents that are between the framework and its user."""


def _beside(content: Content) -> str:
    """Say what is counted and never changed: thinking, and what the provider's own tools did."""
    if content.type == "text_reasoning":
        return f"{content.text or ''}{content.protected_data or ''}"
    if _part(content) or content.type in ("function_call", "function_result") or content.type in _UNSENT:
        return ""
    return json.dumps(content.to_dict(), default=str)


def _write(message: Message | None, wire: list[Wire]) -> Message:
    """Give a copy of a message with what stays of it; what trimtab put in becomes a message of its role."""
    if message is None:
        return _new(wire[0])
    results = [one for one in message.contents if one.type == "function_result"]
    kept: list[Content] = []
    for said in wire:
        if said["role"] == "tool":
            kept.append(_write_result(results, said))
        else:
            kept += _write_said(message, said)
    changed = copy(message)
    changed.contents = kept
    changed.additional_properties = {**message.additional_properties}
    return changed


def _write_stand_in(message: Message | None, wire: list[Wire]) -> Message:
    """Do what `_write` does; what is written stands for the message."""
    return _stand_in(message, _write(message, wire), excluded=False)


def _new(said: Wire) -> Message:
    """Make a message of what trimtab put in."""
    content = said["content"]
    text = content if isinstance(content, str) else "\n".join(one.get("text", "") for one in content or ())
    if said["role"] != "tool":
        return Message(said["role"], [text])
    return Message("tool", [Content.from_function_result(said["tool_call_id"], result=text)])


def _write_said(message: Message, said: Wire) -> list[Content]:
    """Write the contents of a message anew, beside its results; what nothing changed are the very ones."""
    ids = {call["id"] for call in said.get("tool_calls", ())}
    parts = iter(_rewrite([one for one in message.contents if _part(one)], said["content"]))
    made: list[Content] = []
    stale = "reasoning_content" not in said  # thinking may have lost what it was bound to
    for content in message.contents:
        if _part(content):
            made += parts  # all of them, where the first one stood
        elif content.type == "text_reasoning" and stale:
            continue
        elif content.type == "function_call":
            made += [content] if content.call_id in ids else []
        elif content.type != "function_result":
            made.append(content)
    return made


def _write_result(results: list[Content], said: Wire) -> Content:
    """Take the result of a call off the list, with what it says now."""
    result = next(one for one in results if one.call_id == said["tool_call_id"])
    results.remove(result)
    if _read_result(result) == said:
        return result
    changed = copy(result)
    changed.items = _rewrite(_items(result), said["content"])
    changed.result = "\n".join(one.text or "" for one in changed.items if one.type == "text")
    return changed


def _rewrite(shown: Sequence[Content], new: str | list[Any] | None) -> list[Content]:
    return rewrite_parts(shown, new, read=_part, text=Content.from_text)
