"""Messages of the Vercel AI SDK: what a model is sent (ModelMessage) and what a page shows (UIMessage).

Read as its own `convertToModelMessages` and its provider for OpenAI Chat write them. Source: `ai` 4 to 7,
src/ui/convert-to-model-messages.ts and src/prompt/content-part.ts (2026-11).
"""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from trimtab.errors import FormatError
from trimtab.formats.programs import VERCEL, program_of
from trimtab.formats.recordings import chat
from trimtab.formats.recordings.base import ForeignConversation, Reader, Source, is_list, mappings
from trimtab.formats.recordings.lines import times_of
from trimtab.formats.values import Dict, compact_json, short_repr, text_part

_PROGRAM = VERCEL.removeprefix("the ")

_DENIED = "Tool call execution denied."
"""What the SDK says to the model of a call that was denied without a reason."""

_REASONING = frozenset({"reasoning", "redacted-reasoning", "reasoning-file"})
_APPROVALS = frozenset({"tool-approval-request", "tool-approval-response"})
_UNSENT = frozenset({"source", "custom", *_APPROVALS})
"""Types of parts that a provider may make something of, and no request body of Chat carries."""

_UNSENT_PREFIXES = ("data-", "source-")


def _owns(source: Source) -> bool:
    return any(program_of(one) == VERCEL for one in mappings(_messages_in(source)))


def _messages_in(source: Source) -> Any:
    """Return the list of messages: what it is, or what the SDK's options hold."""
    if not isinstance(source, Mapping):
        return source
    return next((source[key] for key in ("messages", "prompt") if is_list(source.get(key))), None)


def _read(source: Source) -> list[ForeignConversation]:
    listed = _messages_in(source)
    if not is_list(listed):
        raise FormatError(f"messages must be a list, not {short_repr(listed)}", path="messages")
    beside: Mapping[str, Any] = source if isinstance(source, Mapping) else {}
    written = _Writer(asked=_open_approvals(listed))
    written.add_system(beside.get("system") or beside.get("instructions"))
    for index, message in enumerate(listed):
        written.add(message, index)
    body: Dict = {"messages": written.messages}
    model = beside.get("model")
    model = model.get("modelId") if isinstance(model, Mapping) else model
    if isinstance(model, str) and model:
        body["model"] = model
    if tools := list(written.tools(beside.get("tools"))):
        body["tools"] = tools
    found = ForeignConversation(
        program=_PROGRAM,
        format="openai_chat",
        body=body,
        times=times_of(written.times),
        notes=tuple(written.notes()),
    )
    return [found]


def _open_approvals(listed: Sequence[Any]) -> dict[str, str]:
    """Map what was asked for approval to the id of its call, for calls without a result."""
    parts = [
        part
        for message in mappings(listed)
        if isinstance(message.get("content"), list)
        for part in mappings(message["content"])
    ]
    settled = {str(part.get("toolCallId")) for part in parts if part.get("type") == "tool-result"}
    return {
        str(part.get("approvalId")): str(part.get("toolCallId"))
        for part in parts
        if part.get("type") == "tool-approval-request" and str(part.get("toolCallId")) not in settled
    }


@dataclass(slots=True, kw_only=True)
class _Writer:
    """Writes messages one by one into the Chat form, and remembers what that has no place for."""

    asked: Mapping[str, str]
    """The calls that wait for an approval, by its id."""
    messages: list[Dict] = field(default_factory=list[Dict])
    times: list[float | None] = field(default_factory=list[float | None])
    unsent: Counter[str] = field(default_factory=Counter[str])

    def add_system(self, given: Any) -> None:
        """Write instructions beside the messages: a text, or system messages."""
        for one in given if is_list(given) else [] if given is None else [given]:
            content = one.get("content") if isinstance(one, Mapping) else one
            if not isinstance(content, str):
                raise FormatError(f"instructions must be a text, not {short_repr(one)}", path="system")
            self.messages.append({"role": "system", "content": content})

    def add(self, message: Any, index: int) -> None:
        """Write a message of either kind."""
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise FormatError(f"messages[{index}] must be a mapping with a role", path=f"messages[{index}]")
        if message.get("tool_calls") or message.get("tool_call_id"):  # it is one of Chat already
            self.messages.append(dict(message))
        else:
            for one, key in _model_messages(message, self.unsent):
                self._add(one, f"messages[{index}].{key}")
        self.times += [_seconds(message)] * (len(self.messages) - len(self.times))

    def _add(self, message: Mapping[str, Any], path: str) -> None:
        role, content = message["role"], message.get("content")
        if isinstance(content, str) or content is None:
            self.messages.append({"role": role, "content": content or ""})
        elif not is_list(content):
            raise FormatError(
                f"{path} must be a text or a list of parts, not {short_repr(content)}", path=path
            )
        elif role in ("assistant", "tool"):
            self.messages += chat.turn(self._pieces(role, content, path))
        else:
            parts = [part for at, one in enumerate(content) for part in self._parts(one, f"{path}[{at}]")]
            if parts or not content:
                self.messages.append(chat.message(role, parts))

    def _pieces(self, role: str, content: Sequence[Any], path: str) -> Iterator[tuple[chat.Piece, Dict]]:
        """Write what a model said and called, and results."""
        for at, one in enumerate(content):
            place = f"{path}[{at}]"
            kind = one.get("type") if isinstance(one, Mapping) else None
            if kind == "tool-call":
                yield "call", chat.call(one.get("toolCallId"), one.get("toolName"), _arguments(one))
                if "result" in one:  # assistant-ui has both in one
                    yield "result", _result(one, place)
            elif kind == "tool-result":
                yield "result", _result(one, place)
            elif kind in ("file", "image") and role == "assistant":
                self.unsent[f"{kind}, made by the model"] += 1
            else:
                if kind == "tool-approval-response":
                    for denied in self._denials(one):
                        yield "result", denied
                for part in self._parts(one, place):
                    yield "part", part

    def _denials(self, response: Mapping[str, Any]) -> Iterator[Dict]:
        """Write the result of a call that was denied, where the SDK had not written one yet."""
        call_id = self.asked.get(str(response.get("approvalId")))
        if response.get("approved") is False and call_id is not None:
            yield chat.result(call_id, str(response.get("reason") or _DENIED))

    def _parts(self, part: Any, path: str) -> Iterator[Dict]:
        """Write a part of content: one part, or none."""
        kind = part.get("type") if isinstance(part, Mapping) else None
        if not isinstance(kind, str):
            raise FormatError(f"{path} must be a part with a type, not {short_repr(part)}", path=path)
        if kind == "text":
            yield chat.text(part.get("text", ""))
        elif kind in ("file", "image"):
            yield _media(part, path)
        elif kind in _REASONING or kind in _UNSENT or kind.startswith(_UNSENT_PREFIXES):
            self.unsent["reasoning" if kind in _REASONING else kind] += 1
        else:
            raise FormatError(
                f"{path} has the type {kind!r}, which the Vercel AI SDK does not write", path=path
            )

    def tools(self, given: Any) -> Iterator[Dict]:
        """Write the tools that were recorded: by name, or a list as a provider gets them."""
        if isinstance(given, Mapping):
            named = [{"name": name, **tool} for name, tool in given.items() if isinstance(tool, Mapping)]
        else:
            named = [dict(tool) for tool in mappings(given)]
        for one in named:
            if one.get("type") in ("provider", "provider-defined"):
                self.unsent["tool of a provider"] += 1
                continue
            if isinstance(one.get("function"), Mapping):  # it is one of Chat already
                yield one
                continue
            if not isinstance(one.get("name"), str):
                raise FormatError(f"a tool has no name: {short_repr(one)}", path="tools")
            schema: Any = next((one[key] for key in ("inputSchema", "parameters") if key in one), {})
            schema = schema.get("jsonSchema", schema) if isinstance(schema, Mapping) else {}
            schema = schema if isinstance(schema, Mapping) else {}
            if "def" in schema or "_def" in schema:  # zod's own: it has lost the schema on the way to JSON
                self.unsent[_LOST] += 1
                schema = {}
            beside = {key: one[key] for key in ("strict",) if one.get(key) is not None}
            yield chat.tool(one["name"], one.get("description"), schema, **beside)

    def notes(self) -> Iterator[str]:
        """Say what is not in the messages."""
        for kind, count in self.unsent.items():
            yield f"not read: {kind} ({count:,}): {_WHY.get(kind, 'no request of OpenAI Chat carries it')}"


_HALF = "call with its input half written"
_LOST = "schema of a tool, an object of zod"
_WHY = {
    "reasoning": chat.WHY_NO_REASONING,
    _HALF: "the rest never came",
    _LOST: "JSON has none of it, so write z.toJSONSchema(inputSchema) into the recording",
}
"""Why something is not in the messages, where that is not the form's doing."""


def _arguments(part: Mapping[str, Any]) -> str:
    """Write the input of a call as the SDK does: a text is JSON, too."""
    found: Any = next((part[key] for key in ("input", "args") if part.get(key) is not None), {})
    return compact_json(found)


def _result(part: Mapping[str, Any], path: str) -> Dict:
    """Write a tool-result: `output` says of what type it is; before `ai` 5, `result` held it as it was."""
    call_id, output = part.get("toolCallId"), part.get("output", part.get("result"))
    if "output" not in part or not isinstance(output, Mapping) or not isinstance(output.get("type"), str):
        return chat.result(call_id, chat.words(output))
    kind, value = output["type"], output.get("value")
    if kind == "execution-denied":
        return chat.result(call_id, str(output.get("reason") or _DENIED))
    if kind != "content" or not is_list(value):
        return chat.result(call_id, chat.words(value))
    parts = [
        chat.text(one.get("text", "")) if one.get("type") == "text" else _media(one, path)
        for one in mappings(value)
        if one.get("type") != "custom"
    ]
    return chat.result(call_id, chat.content_of_parts(parts))


def _media(part: Mapping[str, Any], path: str) -> Dict:
    """Write a file or an image, in whichever way its data is kept."""
    kind, of_type = str(part.get("mediaType") or part.get("mimeType") or ""), str(part.get("type"))
    if not kind and of_type.startswith("image"):
        kind = "image"
    found = next((part[key] for key in _DATA if part.get(key) is not None), None)
    if isinstance(found, Mapping) and found.get("type") in ("data", "url", "text", "reference"):
        if found["type"] == "text":
            return chat.text(found.get("text", ""))
        found = found.get(found["type"])
    if isinstance(found, Mapping):
        data = _bytes(found)
        if data is None:  # names of it, by provider
            return chat.file_by_id(next(iter(found.values()), ""))
        found = base64.b64encode(data).decode()
    if not isinstance(found, str):
        raise FormatError(f"{path} is a file without data: {short_repr(part)}", path=path)
    if of_type.endswith("file-id"):
        return chat.file_by_id(found)
    name = part.get("filename") or part.get("name")
    if found.startswith("data:") or "://" in found[:32]:
        return chat.media(kind or found[5:].partition(";")[0], address=found, name=name)
    if _NO_BASE64.search(found) is not None:
        why = f"{path} is a path, {short_repr(found)}: only its program can read it; write the data in base64"
        raise FormatError(why, path=path)
    return chat.media(kind, data=found, name=name)


_NO_BASE64 = re.compile(r"[^A-Za-z0-9+/=_\s-]")
_DATA = ("data", "image", "url", "fileId", "providerReference")
"""Where a part has its data."""


def _bytes(found: Mapping[str, Any]) -> bytes | None:
    """Read bytes as JSON writes a Buffer or a Uint8Array of Node; None if they are none."""
    listed = list(found.values()) if "0" in found else found.get("data")
    if isinstance(listed, list) and all(isinstance(one, int) and 0 <= one < 256 for one in listed):
        return bytes(listed)
    return None


def _seconds(message: Mapping[str, Any]) -> float | None:
    """Read when a message was made, where it says so in the way of `ai` 4."""
    made = message.get("createdAt")
    try:
        return datetime.fromisoformat(made).timestamp() if isinstance(made, str) else None
    except ValueError:
        return None


_Made = Iterator[tuple[Mapping[str, Any], str]]
"""ModelMessages, and the key under which the message they are of has its content."""


def _model_messages(message: Mapping[str, Any], unsent: Counter[str]) -> _Made:
    """Write a UIMessage as ModelMessages; a ModelMessage is one."""
    role, parts = message["role"], message.get("parts")
    if role == "data":  # of `ai` 3: beside the conversation
        unsent["data message"] += 1
        return
    if not is_list(parts):
        if is_list(message.get("toolInvocations")):
            yield from _with_invocations(message, unsent)
        else:
            yield _with_attachments(message), "content"
        return
    if role == "assistant":
        yield from _steps(parts, unsent)
    elif role == "system":
        texts = [str(part.get("text", "")) for part in mappings(parts) if part.get("type") == "text"]
        yield {"role": role, "content": "".join(texts)}, "parts"
    else:
        yield {"role": role, "content": [*parts, *_attachments(message)]}, "parts"


def _with_attachments(message: Mapping[str, Any]) -> Mapping[str, Any]:
    attached, content = _attachments(message), message.get("content")
    if not attached or not isinstance(content, str):
        return message
    return {**message, "content": [text_part(content), *attached]}


def _attachments(message: Mapping[str, Any]) -> list[Dict]:
    """List the files of `ai` 4, which stood beside the content."""
    return [
        {"type": "file", "mediaType": one.get("contentType"), "url": one.get("url"), "name": one.get("name")}
        for one in mappings(message.get("experimental_attachments"))
    ]


def _steps(parts: Sequence[Any], unsent: Counter[str]) -> _Made:
    """Write the steps of an assistant's UIMessage: what it said and called, then the results."""
    said, results = list[Any](), list[Any]()
    for part in (*parts, {"type": "step-start"}):
        kind = part.get("type") if isinstance(part, Mapping) else None
        if kind == "steering-message" or kind == "step-start":
            if said:
                yield {"role": "assistant", "content": said}, "parts"
            if results:
                yield {"role": "tool", "content": results}, "parts"
            said, results = [], []
            if kind == "steering-message":
                yield {"role": "user", "content": part.get("parts") or []}, "parts"
        elif isinstance(kind, str) and (kind == "dynamic-tool" or kind.startswith("tool-")):
            invoked = _invocation(part, kind)
            if invoked.get("state") in ("input-streaming", "partial-call"):
                unsent[_HALF] += 1
                continue
            said.append({"type": "tool-call", **invoked})
            if (output := _output(invoked)) is not None:
                made = {"type": "tool-result", "toolCallId": invoked.get("toolCallId"), "output": output}
                (said if invoked.get("providerExecuted") is True else results).append(made)
        else:
            said.append(part)


def _invocation(part: Mapping[str, Any], kind: str) -> Dict:
    """Read what a part says of a call, without the names that only one version has."""
    if kind == "tool-invocation":
        held = part.get("toolInvocation")
        found = dict(held) if isinstance(held, Mapping) else {}
    else:
        found = {"toolName": kind.removeprefix("tool-"), **part}
    if found.get("input") is None and found.get("rawInput") is not None:
        found["input"] = found["rawInput"]
    return {key: value for key, value in found.items() if key not in ("type", "result", "rawInput")} | (
        {"output": found.get("result")} if found.get("state") == "result" else {}
    )


def _output(invoked: Mapping[str, Any]) -> Dict | None:
    """Say what a call gave, as `createToolModelOutput` does without the tool; None while it is open."""
    state, output = invoked.get("state"), invoked.get("output")
    approval = invoked.get("approval")
    answer: Mapping[str, Any] = approval if isinstance(approval, Mapping) else {}
    if state == "output-denied" or (state == "approval-responded" and answer.get("approved") is False):
        return {"type": "execution-denied", "reason": answer.get("reason")}
    if state == "output-error":
        return {"type": "error-text", "value": str(invoked.get("errorText") or "")}
    if state not in ("output-available", "result"):
        return None
    return {"type": "text" if isinstance(output, str) else "json", "value": output}


def _with_invocations(message: Mapping[str, Any], unsent: Counter[str]) -> _Made:
    """Write a message of `ai` 3 or 4 that has its calls beside its text: the text was said last."""
    by_step: dict[int, list[Dict]] = {}
    for one in mappings(message["toolInvocations"]):
        step = one.get("step")
        part = {"type": "tool-invocation", "toolInvocation": one}
        by_step.setdefault(step if isinstance(step, int) else 0, []).append(part)
    for step in sorted(by_step):
        yield from _steps(by_step[step], unsent)
    if message.get("content"):
        yield {"role": message["role"], "content": message["content"]}, "content"


READER = Reader(owns=_owns, read=_read, by_line=True)
