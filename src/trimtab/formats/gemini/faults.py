"""What Gemini refuses in the shape of contents.

The texts in quotes are the API's own, status 400, as people report them; each constant says where.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from trimtab.formats.base import Request
from trimtab.formats.gemini.read import (
    DATA_KEYS,
    SIGNATURE,
    calls_of,
    is_signed,
    key_in,
    parts_in,
    results_of,
    snake,
    speaker,
    value_in,
)
from trimtab.formats.refusal import Fault, Finding, faults_at, holds_one, tool_faults
from trimtab.formats.values import Dict, Path, as_dict, as_list, as_text, short_repr, type_name

UNEQUAL = (
    "Please ensure that the number of function response parts is equal to the number of function call parts "
    "of the function call turn."
)
"""Title of google-gemini/gemini-cli#4217; vertesia/llumiverse#620 replayed split and joined responses."""

# Quoted in portkey.ai/error-library/invalid-argument-error-10129. "function" and "tool" are taken too:
# the SDK's own example answers with role "tool" (googleapis/python-genai#81).
_ROLE = "Please use a valid role: user, model."
_ROLES = ("user", "model", "function", "tool")
# Quoted in genkit-ai/genkit#3690 (Vertex) and vercel/ai#3775 (Gemini API).
_NO_PARTS = (
    "Unable to submit request because it must include at least one parts field, which describes the prompt "
    "input; contents.parts must not be empty."
)
# Quoted in boldsoftware/sketch#68 and router-for-me/CLIProxyAPI#1292.
_NO_DATA = "required oneof field 'data' must have one initialized field"
# Quoted in mscraftsman/generative-ai#74.
_MORE_DATA = "oneof field 'data' is already set"
# Quoted in router-for-me/CLIProxyAPI#2104.
_NO_NAME = "GenerateContentRequest.contents[{index}].parts[{part}].{key}.name: Name cannot be empty."
# Quoted in googleapis/python-genai#81.
_MIXED = (
    "Please ensure that function call turn contains at least one function_call part which can not be mixed "
    "with function_response parts."
)
# Quoted in nanbingxyz/5ire#405. What is checked: ai.google.dev/gemini-api/docs/thought-signatures (2026-11),
# the first call of every step of the current turn; Gemini 3 and later only.
_NO_SIGNATURE = (
    "Function call is missing a thought_signature in functionCall parts. This is required for tools to work "
    "correctly"
)
# Quoted in langchain-ai/langchain-google#1393.
_NO_CONTENTS = "* GenerateContentRequest.contents: contents is not specified"
# Quoted in gera2ld/ai.nvim#13.
_UNKNOWN = "Invalid JSON payload received. Unknown name \"{}\" at '{}': Cannot find field."
# Quoted in memex-lab/dart_agent_core#34, Sylinko/Everywhere#478 and blakeblackshear/frigate#24013.
_NOT_FUNCTION = (
    "Role '{}' is not supported. Please use a valid role: SYSTEM, SYSTEM_1, USER, ASSISTANT, DEVELOPER, "
    "CONTEXT, USER_CONTEXT, MODEL, USER."
)
# Quoted in pipecat-ai/pipecat#5821, as is which models: 2.x, 3 and 3.1 go on with a model's content.
_ENDS_WITH_MODEL = "Requests ending with a model turn are not supported."
_AFTER_3_1 = re.compile(r"gemini-(?:3\.[5-9]|[4-9]|\d\d)")
_CHECKS_SIGNATURES = re.compile(r"gemini-(?:[3-9]|\d\d)")
_NUMBERED = re.compile(r"gemini-\d")

PART_KEYS = frozenset(
    (*DATA_KEYS, SIGNATURE, "thought", "video_metadata", "media_resolution", "part_metadata")
)
"""Keys of `Part` in google-genai (2026-11), as it spells them."""


def faults_of(messages: list[Any], request: Request | None = None, *, model: str = "") -> list[Fault]:
    """List what is wrong with each content, in order; see `Format.faults`."""
    whole = request is not None and request.body is not None
    if whole and not messages:
        return [Fault(index=None, rule="no_messages", detail=_NO_CONTENTS)]
    found = [] if request is None else list(faults_at(None, tool_faults(request.tools, _tool_fault)))
    unsigned = set(_unsigned_steps(messages, model))
    asks_more = not takes_functions_role(model)
    for index, message in enumerate(messages):
        if not asks_more and index not in unsigned and _is_plain(message):
            continue
        parts = parts_in(message)
        found += faults_at(index, _faults(index, message, parts))
        if asks_more:
            last = whole and index == len(messages) - 1
            found += faults_at(index, _later_faults(message, parts, last=last))
        if index in unsigned:
            path: Path = ("parts", calls_of(parts)[0].part)
            found += faults_at(index, [("missing_thought_signature", _NO_SIGNATURE, path)])
    return found


def _is_plain(message: Dict) -> bool:
    """Tell whether a content is plain to see right: one part that is a text, a call or a response.

    Nearly every content is, and to look for each fault takes four times as long.
    """
    role: Any = message.get("role")
    parts: Any = message.get("parts")
    if len(message) != 2 or role not in ("user", "model"):
        return False
    if not holds_one(parts):
        return False
    ((key, data),) = parts[0].items()
    if key == "text":
        return data.__class__ is str
    if key not in ("functionCall", "functionResponse") or data.__class__ is not dict:
        return False
    held = data.get("args" if key == "functionCall" else "response")
    named = data.get("name").__class__ is str and bool(data["name"])
    return named and held.__class__ is dict and (role == "model") == (key == "functionCall")


def _tool_fault(at: int, tool: Dict) -> str | None:
    """Say what is wrong with a tool: it holds declarations, or names what the provider runs, and no type."""
    key = next((key for key in ("type", "name", "input_schema", "toolSpec") if tool.get(key)), None)
    return None if key is None else _UNKNOWN.format(key, f"tools[{at}]")


def checks_signatures(model: str) -> bool:
    """Tell whether a model asks for the signatures of its calls."""
    return _CHECKS_SIGNATURES.search(model) is not None


def takes_functions_role(model: str) -> bool:
    """Tell whether a model takes responses in the role "function" or "tool"."""
    return _AFTER_3_1.search(model) is None


def takes_apart(model: str) -> bool:
    """Tell whether a model takes the responses to one turn's calls in contents of their own.

    The Gemini API's 2.x do (billed, and measured in Oaklight/llm-rosetta#300, 2026-06-19). Later ones
    (cloudwego/eino-ext#571) and Vertex (docker/docker-agent#2959) answer 400.
    """
    return not (checks_signatures(model) or "vertex" in model)


def _later_faults(message: Dict, parts: Sequence[Dict], *, last: bool) -> Iterator[Finding]:
    """Look at what later models take no more; a call at the end waits for its response."""
    if message.get("role") in ("function", "tool"):
        yield "unsupported_role", _NOT_FUNCTION.format(message["role"]), ("role",)
    if last and speaker(message) == "model" and not calls_of(parts):
        yield "ends_with_model", _ENDS_WITH_MODEL, ()


def _faults(index: int, message: Dict, parts: Sequence[Dict]) -> Iterator[Finding]:
    role, listed = message.get("role"), as_list(message.get("parts"))
    for key, value in message.items():
        if value is not None and key not in ("role", "parts"):
            yield "unknown_key", _UNKNOWN.format(key, f"contents[{index}]"), (str(key),)
    if role not in (None, "", *_ROLES):
        yield "unknown_role", f"{_ROLE} Not {short_repr(role)}", ("role",)
    if listed is None and message.get("parts") is not None:
        yield "bad_parts", f"parts must be a list, not {type_name(message['parts'])}", ("parts",)
        return
    if not listed:
        yield "empty_parts", _NO_PARTS, ("parts",)
        return
    for at, value in enumerate(listed):
        if isinstance(value, str) or as_dict(value) is None:
            yield "bad_part", f"a part must be an object, not {type_name(value)}", ("parts", at)
        else:
            yield from _part_faults(index, at, parts[at], speaker(message))
    if calls_of(parts) and results_of(parts):
        yield "mixed_turn", _MIXED, ("parts",)


def _part_faults(index: int, at: int, part: Dict, whose: str) -> Iterator[Finding]:
    path: Path = ("parts", at)
    for key, value in part.items():
        if value is not None and snake(key) not in PART_KEYS:
            yield "unknown_key", _UNKNOWN.format(key, f"contents[{index}].parts[{at}]"), (*path, str(key))
    held = [name for name in DATA_KEYS if key_in(part, name) is not None]
    if not held and not is_signed(part):
        yield "empty_part", _NO_DATA, path
    elif len(held) > 1:
        yield "several_data", f"{' and '.join(held)} in one part; {_MORE_DATA}", path
    for name in held:
        key = key_in(part, name) or name
        value = part[key]
        if name == "text":
            # An empty text is taken (billed, 2026), though Vertex refuses it (gemini-openai-proxy#86).
            if not isinstance(value, str):
                yield "bad_part", f"text must be a string, not {type_name(value)}", (*path, key)
        elif as_dict(value) is None:
            yield "bad_part", f"{key} must be an object, not {type_name(value)}", (*path, key)
        else:
            yield from _named_faults(index, name, as_dict(value) or {}, (*path, key), whose)


def _named_faults(index: int, name: str, value: Dict, path: Path, whose: str) -> Iterator[Finding]:
    """Look at a call or response: whose it is, its name, and what it holds."""
    if name not in ("function_call", "function_response"):
        return
    field = "args" if name == "function_call" else "response"
    if (whose == "model") != (name == "function_call") and whose != "other":
        # A response in the role "model" is refused: maximhq/bifrost#2222.
        yield "misplaced_part", f"a {whose!r} content cannot hold a {path[-1]}", path
    if as_text(value.get("name")) is None:
        yield "missing_name", _NO_NAME.format(index=index, part=path[1], key=name), (*path, "name")
    held = value.get(field)
    if held is not None and as_dict(held) is None:
        yield "bad_part", f"{field} must be an object, not {type_name(held)}", (*path, field)


def _unsigned_steps(messages: list[Any], model: str) -> Iterator[int]:
    """List the steps of the current turn whose first call lacks its signature.

    Where no model is named, a turn without any signature is one of a model that needs none.
    """
    if _NUMBERED.search(model) and not checks_signatures(model):
        return
    start = len(messages) - 1
    while start >= 0 and not (
        speaker(messages[start]) == "user"
        and any(value_in(part, "function_response") is None for part in parts_in(messages[start]))
    ):
        start -= 1
    steps: list[tuple[int, bool]] = []
    signed, asked = False, -2
    for index in range(start + 1, len(messages)):
        parts = parts_in(messages[index])
        calls = calls_of(parts)
        if not calls:
            continue
        asked, same_step = index, asked == index - 1
        if same_step:
            continue  # calls of one step may come in contents behind one another
        first = is_signed(parts[calls[0].part])
        signed |= first
        steps.append((index, first or any(map(is_signed, parts))))
    if signed or checks_signatures(model):
        yield from (index for index, has in steps if not has)
