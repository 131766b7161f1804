"""Recorded requests and what was billed for them, read for tests and `make accuracy`.

Two files: golden_usage.jsonl, of one framework, and golden_usage_2.jsonl, of fifteen projects. Distinct
requests only, without those that a test answered itself, in two halves by the first byte of a hash of the
request: rules may be made on the one ("made", even), tables and tests are of the other ("held out", odd).
Which requests are set apart is said by their fields alone, never by how far a count is off.
"""

from __future__ import annotations

import base64
import hashlib
import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

Half = Literal["made", "held out"]

FILES = ("golden_usage.jsonl", "golden_usage_2.jsonl")

FORMATS = {
    "chat": "openai_chat",
    "responses": "openai_responses",
    "messages": "anthropic",
    "count_tokens": "anthropic",
    "generateContent": "gemini",
}

KINDS = ("plain", "schema", "tools", "media")
"""What a request has, the last that applies; calls and their results are of "tools"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Billed:
    """One recorded request."""

    name: str
    provider: str
    """As in the tables: whose endpoint it was."""
    project: str
    """Whose tests sent it."""
    model: str
    """As it has to be asked for, with the prefix of the endpoint where that matters."""
    format: str
    request: Mapping[str, Any]
    """The body, with data of the recorded size where the recording left it out."""
    tokens: int
    """Input tokens billed, cached ones among them."""
    kind: str
    apart: str | None
    """Why its bill includes what it does not hold; None if it does not."""


def billed(data: Path, half: Half | None = None) -> Iterator[Billed]:
    """Read the distinct requests of one half, or of both, in their order.

    Args:
        data: The folder of the files, or one of them.
        half: None for both.
    """
    seen: set[bytes] = set()
    for path in [data / name for name in FILES] if data.is_dir() else [data]:
        for line in path.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            shown = json.dumps(
                [entry["model"], entry["request"]], sort_keys=True, separators=(",", ":"), ensure_ascii=False
            )
            digest = hashlib.sha256(shown.encode()).digest()
            if digest in seen or _is_made_up(entry):
                continue
            seen.add(digest)
            if half is None or (digest[0] % 2 == 0) == (half == "made"):
                yield _read_second(entry) if "billed" in entry else _read(entry)


def _read(entry: dict[str, Any]) -> Billed:
    on_vertex = entry["provider"] == "google" and "vertex" in entry["id"]
    host = _HOSTS.get(entry["provider"], "other hosts")
    provider = "vertex" if on_vertex else _PROVIDERS.get((entry["provider"], entry["api"]), host)
    tokens = _tokens(entry["usage"])
    return _made(entry, provider, "pydantic/pydantic-ai", FORMATS[entry["api"]], tokens)


def _read_second(entry: dict[str, Any]) -> Billed:
    provider = _HOSTS.get(entry["provider"], entry["provider"])
    if provider not in _NAMED:
        provider = "other hosts"
    project = entry["id"].partition(":")[0]
    if provider == "bedrock" and "anthropic." in entry["model"]:
        provider = "bedrock claude"
    return _made(entry, provider, project, entry["format"], entry["billed"])


def _made(entry: dict[str, Any], provider: str, project: str, format: str, tokens: int) -> Billed:
    request, model = entry["request"], entry["model"]
    # signatures of thoughts cost nothing before Gemini 3, and on Vertex
    signed = provider != "vertex" and "gemini-3" in model
    return Billed(
        name=entry["id"],
        provider=provider,
        project=project,
        model=_PREFIXES.get(provider, "") + model,
        format=format,
        request=refilled(request),
        tokens=tokens,
        kind=_kind(request),
        apart=_apart(format, request, signed=signed),
    )


def _is_made_up(entry: Mapping[str, Any]) -> bool:
    """Tell whether a test answered itself: OpenAI's own answers name a dated model."""
    is_local = any(word in entry["provider"] for word in ("localhost:", "fake-"))
    return is_local and entry["model"].startswith("gpt-") and entry.get("answered_as") == entry["model"]


_PROVIDERS = {
    ("api.openai.com", "chat"): "openai chat",
    ("api.openai.com", "responses"): "openai responses",
    ("anthropic", "messages"): "anthropic",
    ("anthropic", "count_tokens"): "anthropic",
    ("google", "generateContent"): "gemini",
    ("api.mistral.ai", "chat"): "mistral",
}
_HOSTS = {
    "api.mistral.ai": "mistral",
    "api.deepseek.com": "deepseek",
    "responses api.x.ai": "xai",
    "api.x.ai": "xai",
    "openrouter.ai": "openrouter",
}
"""How the second file calls hosts that have a row of their own."""
_NAMED = {*_PROVIDERS.values(), *_HOSTS.values(), "bedrock", "vertex", "azure"}
_PREFIXES = {"vertex": "google-vertex/", "azure": "azure/", "openrouter": "openrouter/"}


def _tokens(usage: Mapping[str, Any]) -> int:
    for key in ("prompt_tokens", "promptTokenCount"):
        if key in usage:
            return int(usage[key])
    cached = ("cache_read_input_tokens", "cache_creation_input_tokens")
    return int(usage["input_tokens"]) + sum(int(usage.get(key) or 0) for key in cached)


def _walk(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every mapping in a value, itself first."""
    if isinstance(value, dict):
        yield value
        for item in value.values():
            yield from _walk(item)
    elif isinstance(value, list):
        for item in value:
            yield from _walk(item)


def _talk(request: Mapping[str, Any]) -> list[Any]:
    return [request[key] for key in ("messages", "input", "contents") if key in request]


_CALLS = ("tool_calls", "functionCall", "function_call", "functionResponse", "function_response")
_CALLS += ("toolUse", "toolResult")
_CALL_TYPES = ("function_call", "function_call_output", "tool_use", "tool_result")
_MEDIA_TYPES = ("image_url", "input_audio", "file", "input_image", "input_file", "image", "document")
_MEDIA_KEYS = ("inlineData", "inline_data", "fileData", "file_data")
_CONVERSE_MEDIA = ("image", "document", "video", "audio")


def _kind(request: Mapping[str, Any]) -> str:
    parts = list(_walk(_talk(request)))
    calls = any(part.get("type") in _CALL_TYPES or any(part.get(key) for key in _CALLS) for part in parts)
    found = {
        "schema": _has_schema(request),
        "tools": calls or any(request.get(key) for key in ("tools", "functions", "toolConfig")),
        "media": any(map(_is_medium, parts)),
    }
    if "contents" in request and not request.get("tools") and not calls:
        found["tools"] = False  # Gemini's toolConfig says which tool to call, and brings none
    return next((kind for kind in reversed(KINDS) if found.get(kind)), "plain")


def _is_medium(part: Mapping[str, Any]) -> bool:
    return (
        part.get("type") in _MEDIA_TYPES
        or any(part.get(key) for key in _MEDIA_KEYS)
        or any(isinstance(part.get(key), dict) and "source" in part[key] for key in _CONVERSE_MEDIA)
    )


def _has_schema(request: Mapping[str, Any]) -> bool:
    settings = request.get("generationConfig") or {}
    text_format = ((request.get("text") or {}).get("format") or {}).get("type")
    return bool(
        (request.get("response_format") or {}).get("type") == "json_schema"
        or text_format == "json_schema"
        or (request.get("output_config") or {}).get("format")
        or (request.get("outputConfig") or {}).get("textFormat")
        or request.get("output_format")
        or any(settings.get(key) for key in ("responseJsonSchema", "responseSchema", "response_schema"))
    )


_OWN_TOOLS = ("function", "custom", None)
_REMOTE = ("file_id", "file_uri", "fileUri", "file_url")
_STORED = ("previous_response_id", "conversation", "cachedContent")
_RUN_BY_PROVIDER = ("mcp_servers", "web_search_options", "plugins")
_RUN_ITEMS = ("server_tool", "web_search_", "tool_search")


def _apart(format: str, request: Mapping[str, Any], *, signed: bool) -> str | None:
    """Say why a bill includes what the request does not hold, by its fields; None if nothing says so."""
    parts = list(_walk(_talk(request)))
    sealed = any(
        part.get("type") == "redacted_thinking"
        or (part.get("type") == "reasoning" and part.get("encrypted_content"))
        for part in parts
    )
    found = {
        "stored conversation": any(request.get(key) for key in _STORED) or _answers_unseen(parts),
        "item reference": any(part.get("type") in ("item_reference", "compaction") for part in parts),
        "provider-run tools": _has_other_tools(format, request)
        or any(str(part.get("type")).startswith(_RUN_ITEMS) for part in parts),
        "encrypted reasoning": sealed or (signed and _has_signatures(request)),
        "remote files": any(part.get(key) for part in parts for key in _REMOTE)
        or any(map(_is_remote, parts)),
        "files the recording left out": any(map(_is_left_out, parts)),
    }
    return next((name for name, holds in found.items() if holds), None)


def _has_other_tools(format: str, request: Mapping[str, Any]) -> bool:
    """Tell whether a request has tools that are not the caller's own functions."""
    if any(request.get(key) for key in _RUN_BY_PROVIDER):
        return True
    tools = request.get("tools") or ()
    for tool in (tools,) if isinstance(tools, dict) else tools:
        declared = tool.get("functionDeclarations") or tool.get("function_declarations")
        if tool.get("type") not in _OWN_TOOLS or (format == "gemini" and not declared):
            return True
    return False


def _answers_unseen(parts: list[dict[str, Any]]) -> bool:
    """Tell whether a result answers a call that is not in the request: it is stored."""
    called = {part.get("call_id") for part in parts if part.get("type") == "function_call"}
    return any(
        part.get("call_id") not in called for part in parts if part.get("type") == "function_call_output"
    )


def _has_signatures(request: Mapping[str, Any]) -> bool:
    """Tell whether a turn that is still open has a signed thought; those before are dropped."""
    contents = request.get("contents") or []
    asked = [
        at
        for at, content in enumerate(contents)
        if content.get("role") == "user"
        and not any("functionResponse" in part or "function_response" in part for part in content["parts"])
    ]
    parts = [part for content in contents[max(asked, default=0) :] for part in content["parts"]]
    signed = [part.get("thoughtSignature") or part.get("thought_signature") or "" for part in parts]
    return any(len(signature) > 64 for signature in signed)


def _is_remote(part: Mapping[str, Any]) -> bool:
    url = part.get("image_url") if part.get("type") == "input_image" else part.get("url")
    data = part.get("file_data") if isinstance(part.get("file_data"), str) else None
    return any(isinstance(value, str) and value.startswith(("http", "gs:")) for value in (url, data))


def _is_left_out(part: Mapping[str, Any]) -> bool:
    """Tell whether a part is a file of which only the number of bytes was recorded: a PDF, a video."""
    sizes = [part.get(key) for key in ("data_meta", "file_data_meta", "bytes_meta")]
    kind = str(part.get("mimeType") or part.get("mime_type") or part.get("media_type") or "")
    return any(size and "w" not in size for size in sizes) and not kind.startswith(("audio/", "text/"))


def refilled(value: Any) -> Any:
    """Put data of the recorded size where the recording left it out."""
    if isinstance(value, list):
        return [refilled(item) for item in value]
    if not isinstance(value, dict):
        return value
    filled = {key: refilled(item) for key, item in value.items()}
    for key in ("url", "image_url"):
        if f"{key}_meta" in filled:
            meta = filled.pop(f"{key}_meta")
            filled[key] = "data:image/png;base64," + base64.b64encode(_png(meta)).decode()
    for key in ("file_data", "data", "bytes"):
        if f"{key}_meta" in filled:
            meta = filled.pop(f"{key}_meta")
            head = _png(meta) if "w" in meta else _head(filled)
            filled[key] = base64.b64encode(head.ljust(meta["bytes"], b"\0")).decode()
    return filled


def _png(meta: Mapping[str, Any]) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", meta["w"], meta["h"])


def _head(part: Mapping[str, Any]) -> bytes:
    kind = str(part.get("mimeType") or part.get("mime_type") or part.get("media_type") or "")
    if part.get("format") == "wav" or kind == "audio/wav":
        return b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0" + struct.pack("<II", 16_000, 32_000)
    if part.get("format") == "mp3" or kind == "audio/mpeg":
        return b"\xff\xfb\x90"  # 128 kbit/s, the commonest: the recording does not say
    return b"%PDF-" if "file_data" in part or kind == "application/pdf" else b""
