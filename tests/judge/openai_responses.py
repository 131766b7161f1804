"""Rules of POST /v1/responses, from OpenAI's reference and the errors people reported."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.judge._rules import Body, Found, Table, entry, found, items, mistyped, objects, once, text

TABLE = Table()

ROLES = ("assistant", "system", "developer", "user")
ASSISTANT_PARTS = ("output_text", "refusal")
PARTS = (
    "input_text",
    "input_image",
    "input_audio",
    "output_text",
    "refusal",
    "input_file",
    "computer_screenshot",
    "summary_text",
    "encrypted_content",
    "scoped_content",
)
"""As the error of PraisonAI#3934 lists them; the last is of nagobot#27."""

CALLS = {
    "function_call": "function",
    "custom_tool_call": "custom tool",
    "computer_call": "computer",
    "local_shell_call": "local shell",
    "shell_call": "shell",
    "apply_patch_call": "apply patch",
    "tool_search_call": "tool search",
}
"""Item types that a client answers, and how the errors name them."""

OUTPUTS = {
    "function_call_output": "function_call",
    "custom_tool_call_output": "custom_tool_call",
    "computer_call_output": "computer_call",
    "local_shell_call_output": "local_shell_call",
    "shell_call_output": "shell_call",
    "apply_patch_call_output": "apply_patch_call",
    "tool_search_output": "tool_search_call",
}

BUILT_IN = (
    "web_search_call",
    "file_search_call",
    "image_generation_call",
    "code_interpreter_call",
    "mcp_call",
    "mcp_list_tools",
    "program",
)
TYPES = {
    *CALLS,
    *OUTPUTS,
    *BUILT_IN,
    "message",
    "reasoning",
    "compaction",
    "compaction_trigger",
    "configuration_update",
    "additional_tools",
    "mcp_approval_request",
    "mcp_approval_response",
    "item_reference",
    "program_output",
}

REQUIRED = {
    "function_call": ("call_id", "name", "arguments"),
    "function_call_output": ("call_id", "output"),
    "custom_tool_call": ("call_id", "name", "input"),
    "custom_tool_call_output": ("call_id", "output"),
    "computer_call": ("call_id",),
    "computer_call_output": ("call_id", "output"),
    "shell_call": ("call_id", "action"),
    "shell_call_output": ("call_id", "output"),
    "apply_patch_call": ("call_id", "operation", "status"),
    "apply_patch_call_output": ("call_id", "status"),
    "reasoning": ("summary",),
    "compaction": ("encrypted_content",),
    "item_reference": ("id",),
    "mcp_approval_request": ("id", "name", "server_label", "arguments"),
    "mcp_approval_response": ("approval_request_id", "approve"),
    "mcp_call": ("id", "name", "server_label", "arguments"),
    "mcp_list_tools": ("id", "server_label", "tools"),
    "message": ("content",),
}
PREFIXES = {"reasoning": "rs", "function_call": "fc", "message": "msg"}
MAX_CALL_ID = 64


def typed(item: dict[str, Any]) -> str:
    """Name the type of an item; a message may leave it out."""
    if item.get("type") is None:
        return "message" if "role" in item or "content" in item else "item_reference"
    return text(item["type"])


@once
def read(request: Body) -> list[tuple[int, str, dict[str, Any]]]:
    """Return place, type and item of the input."""
    return [(at, typed(item), item) for at, item in objects(request.get("input"))]


def holds(request: Body) -> bool:
    """Say whether the server holds more of the conversation than the request."""
    return any(request.get(key) is not None for key in ("previous_response_id", "conversation", "prompt"))


def of_model(type_: str, item: dict[str, Any]) -> bool:
    """Say whether a model produced this, so that it may follow reasoning."""
    if type_ == "message":
        return item.get("role") == "assistant"
    return type_ in CALLS or type_ in BUILT_IN or type_ in ("mcp_approval_request", "item_reference")


@TABLE.rule(
    'One of "input" or "previous_response_id" or "prompt" or "conversation_id" must be provided.',
    "https://github.com/pydantic/pydantic-ai/pull/3470",
)
def no_input(request: Body) -> Iterator[Found]:
    """Something to answer."""
    if request.get("input") in (None, "", [], ()) and not holds(request):
        yield found("input")


@TABLE.rule(
    "Missing required parameter: '{where}'.",
    "https://github.com/openai/codex/issues/6725",
)
def missing_parameter(request: Body) -> Iterator[Found]:
    """What the reference requires of an item; the summary of reasoning too (lidge-jun/opencodex#4673)."""
    for at, type_, item in read(request):
        for key in REQUIRED.get(type_, ()):
            if item.get(key) is None:
                yield found(f"input[{at}].{key}", key)
        if type_ == "message" and item.get("role") is None:
            yield found(f"input[{at}].role", "role")


@TABLE.rule(
    "Invalid type for '{where}': expected {expected}, but got {got} instead.",
    "https://github.com/pydantic/pydantic-ai/issues/2653",
)
def wrong_type(request: Body) -> Iterator[Found]:
    """A value of another JSON type."""
    both = "one of a string or array of objects"
    many = "an array of objects"
    yield from mistyped("input", request.get("input"), str | list | tuple, both)
    for at, item in enumerate(items(request.get("input"))):
        path = f"input[{at}]"
        yield from mistyped(path, item, dict, "an object", null=True)
        type_, item = typed(entry(item)), entry(item)
        for key in ("type", "role", "id", "call_id", "name"):
            yield from mistyped(f"{path}.{key}", item.get(key), str, "a string")
        if type_ == "reasoning":
            yield from mistyped(f"{path}.summary", item.get("summary"), list | tuple, many)
        else:
            yield from mistyped(f"{path}.content", item.get("content"), str | list | tuple, both)
        if type_ in ("function_call", "mcp_call"):
            yield from mistyped(f"{path}.arguments", item.get("arguments"), str, "a string")
        if type_ in ("function_call_output", "custom_tool_call_output"):
            yield from mistyped(f"{path}.output", item.get("output"), str | list | tuple, both)
        for spot, part in enumerate(items(item.get("content"))):
            yield from mistyped(f"{path}.content[{spot}]", part, dict, "an object", null=True)


@TABLE.rule(
    "Invalid value: '{about}'. Supported values are: {known}.",
    "https://github.com/openai/codex/issues/6945",
)
def unknown_type(request: Body) -> Iterator[Found]:
    """An item of no type of this API."""
    for at, type_, _ in read(request):
        if type_ and type_ not in TYPES:
            known = ", ".join(f"'{name}'" for name in sorted(TYPES))
            yield found(f"input[{at}].type", type_, known=known)


@TABLE.rule(
    "Invalid value: '{about}'. Supported values are: 'assistant', 'system', 'developer', and 'user'.",
    "https://github.com/Chevey339/kelivo/pull/281",
)
def unknown_role(request: Body) -> Iterator[Found]:
    """Results are items here, not messages of a role 'tool'."""
    for at, type_, item in read(request):
        if type_ == "message" and text(item.get("role")) and item["role"] not in ROLES:
            yield found(f"input[{at}].role", item["role"])


@TABLE.rule("Unknown parameter: '{where}'.", "https://github.com/openai/openai-python/issues/2677")
def chat_parameter(request: Body) -> Iterator[Found]:
    """Calls are items here; the keys of chat completions are unknown."""
    for at, type_, item in read(request):
        if type_ == "message":
            for key in ("tool_calls", "tool_call_id", "function_call"):
                if key in item:
                    yield found(f"input[{at}].{key}", key)


def message_parts(request: Body) -> Iterator[tuple[str, str, str]]:
    """Yield path, role and type of the parts of messages."""
    for at, type_, item in read(request):
        if type_ == "message":
            for spot, part in objects(item.get("content")):
                yield f"input[{at}].content[{spot}]", text(item.get("role")), text(part.get("type"))


@TABLE.rule(
    "Invalid value: '{about}'. Supported values are: 'input_text', 'input_image', 'input_audio', "
    "'output_text', 'refusal', 'input_file', 'computer_screenshot', 'summary_text', and "
    "'encrypted_content'.",
    "https://github.com/MervinPraison/PraisonAI/issues/3934",
)
def unknown_part(request: Body) -> Iterator[Found]:
    """The parts of chat completions ('text', 'image_url') are unknown here."""
    for path, _, type_ in message_parts(request):
        if type_ not in PARTS:
            yield found(f"{path}.type", type_)


@TABLE.rule(
    "Invalid value: '{about}'. Supported values are: 'output_text' and 'refusal'.",
    "https://github.com/tinyhumansai/openhuman/issues/3624",
)
def part_of_another_role(request: Body) -> Iterator[Found]:
    """What the assistant said is output."""
    for path, role, type_ in message_parts(request):
        if role == "assistant" and type_ in PARTS and type_ not in ASSISTANT_PARTS:
            yield found(path, type_)


@TABLE.rule(
    "Invalid '{where}': '{about}'. Expected an ID that begins with '{prefix}'.",
    "https://github.com/farion1231/cc-switch/issues/5338",
)
def wrong_id_prefix(request: Body) -> Iterator[Found]:
    """Ids say their type; a call's id is not its call_id."""
    for at, type_, item in read(request):
        prefix = PREFIXES.get(type_, "")
        if text(item.get("id")) and not item["id"].startswith(prefix):
            yield found(f"input[{at}].id", item["id"], prefix=prefix)


@TABLE.rule(
    "Invalid '{where}': empty string. Expected a string with minimum length 1, but got an empty string "
    "instead.",
    "https://github.com/BigPizzaV3/CodexPlusPlus/issues/315",
)
def empty_call_id(request: Body) -> Iterator[Found]:
    """An id has characters."""
    yield from (found(f"input[{at}].call_id") for at, _, item in read(request) if item.get("call_id") == "")


@TABLE.rule(
    "Invalid '{where}': string too long. Expected a string with maximum length 64, but got a string with "
    "length {length} instead.",
    "https://github.com/AnswerDotAI/fastllm/issues/45",
)
def long_call_id(request: Body) -> Iterator[Found]:
    """Ids of calls are at most 64 characters long."""
    for at, _, item in read(request):
        length = len(text(item.get("call_id")))
        if length > MAX_CALL_ID:
            yield found(f"input[{at}].call_id", item["call_id"], length=length)


@TABLE.rule(
    "Duplicate item found with id {about}. Remove duplicate items from your input and try again.",
    "https://github.com/earendil-works/pi/issues/5149",
)
def duplicate_item(request: Body) -> Iterator[Found]:
    """An item comes once, inline or as a reference."""
    seen: set[str] = set()
    for _, _, item in read(request):
        id_ = text(item.get("id"))
        if id_ and id_ in seen:
            yield found("input", id_)
        seen.add(id_)


@TABLE.rule(
    "Item with id '{about}' not found. Items are not persisted when `store` is set to false. Try again "
    "with `store` set to true, or remove this item from your input.",
    "https://github.com/router-for-me/CLIProxyAPI/issues/2381",
)
def reference_to_nothing(request: Body) -> Iterator[Found]:
    """Where nothing is stored nothing can be referred to."""
    for _, type_, item in read(request):
        if type_ == "item_reference" and request.get("store") is False:
            yield found("input", item.get("id"))


@TABLE.rule(
    "No tool call found for {name} call output with call_id {about}.",
    "https://github.com/microsoft/vscode/issues/320060",
)
def output_without_call(request: Body) -> Iterator[Found]:
    """A call comes before its output, unless the server holds it or a reference may be it."""
    made: set[tuple[str, str]] = set()
    referred = False
    for _, type_, item in read(request):
        call_id = text(item.get("call_id"))
        referred = referred or type_ == "item_reference"
        if type_ in CALLS:
            made.add((type_, call_id))
            continue
        known = holds(request) or referred or unpaired(type_, item)
        if type_ in OUTPUTS and call_id and not known and (OUTPUTS[type_], call_id) not in made:
            yield found("input", call_id, name=CALLS[OUTPUTS[type_]])


def unpaired(type_: str, item: dict[str, Any]) -> bool:
    """Say whether a tool search was run by the server, which needs no answer."""
    return type_.startswith("tool_search") and item.get("execution") == "server"


@TABLE.rule(
    "No tool output found for {name} call {about}.",
    "https://github.com/bytedance/trae-agent/issues/245",
)
def call_without_output(request: Body) -> Iterator[Found]:
    """A call of the input is answered in it (computer: Azure-Samples/computer-use#22)."""
    listed = read(request)
    if any(type_ == "item_reference" for _, type_, _ in listed):
        return
    answered = {(OUTPUTS.get(type_), text(item.get("call_id"))) for _, type_, item in listed}
    for _, type_, item in listed:
        call_id = text(item.get("call_id"))
        if type_ in CALLS and call_id and (type_, call_id) not in answered and not unpaired(type_, item):
            yield found("input", call_id, name=CALLS[type_])


@TABLE.rule(
    "The following MCP approval requests have approval responses but weren't passed as input: {about}",
    "https://community.openai.com/t/incorrect-behavior-of-conversation-api-with-mcp-approval-output-item/1365706",
)
def approval_without_request(request: Body) -> Iterator[Found]:
    """An approval answers a request of the input, or one the server holds."""
    asked: set[str] = set()
    for _, type_, item in read(request):
        if type_ in ("mcp_approval_request", "item_reference"):
            asked.add(text(item.get("id")))
        elif type_ == "mcp_approval_response" and request.get("previous_response_id") is None:
            id_ = text(item.get("approval_request_id"))
            if id_ and id_ not in asked:
                yield found("input", id_)


@TABLE.rule(
    "The following MCP approval requests do not have an approval: {about}",
    "https://github.com/openai/openai-agents-js/issues/131",
)
def request_without_approval(request: Body) -> Iterator[Found]:
    """A request for approval is answered in the same input."""
    answers = {text(item.get("approval_request_id")) for _, type_, item in read(request)}
    for _, type_, item in read(request):
        if type_ == "mcp_approval_request" and text(item.get("id")) and item["id"] not in answers:
            yield found("input", item["id"])


@TABLE.rule(
    "Item '{about}' of type 'reasoning' was provided without its required following item.",
    "https://github.com/vercel/ai/issues/7099",
)
def reasoning_without_follower(request: Body) -> Iterator[Found]:
    """Reasoning stands before what the model did next; only the id lets the server know it."""
    waiting: list[str] = []
    for _, type_, item in read(request):
        if type_ == "reasoning":
            waiting.append(text(item.get("id")))
            continue
        if not of_model(type_, item):
            yield from (found("input", id_) for id_ in waiting if id_)
        waiting = []
    yield from (found("input", id_) for id_ in waiting if id_)


def bonds(request: Body) -> dict[str, tuple[str, str]]:
    """Map the id of reasoning to id and type of the item right behind it, as one response gave them."""
    bound: dict[str, tuple[str, str]] = {}
    waiting: list[str] = []
    for _, type_, item in read(request):
        id_ = text(item.get("id"))
        if type_ == "reasoning":
            waiting.append(id_)
            continue
        if of_model(type_, item) and id_:
            bound.update((reasoning, (id_, type_)) for reasoning in waiting if reasoning)
        waiting = []
    return bound


ORIGIN = Table()
"""Rules that read `{"origin": ..., "request": ...}`: only the origin shows what an item came with.

With `previous_response_id` or a conversation the server holds the other half.
"""


def pair(both: Body) -> tuple[dict[str, tuple[str, str]], dict[str, tuple[str, str]], set[str]]:
    """Return the bonds of the origin, those of the request, and the ids of the request."""
    request = both["request"]
    if holds(request):
        return {}, {}, set()
    return bonds(both["origin"]), bonds(request), {text(item.get("id")) for _, _, item in read(request)}


@ORIGIN.rule(
    "Item '{about}' of type '{type}' was provided without its required 'reasoning' item: '{reasoning}'.",
    "https://github.com/cline/cline/issues/12242",
)
def item_without_reasoning(both: Body) -> Iterator[Found]:
    """What came right behind reasoning goes with it."""
    before, _, ids = pair(both)
    for reasoning, (id_, type_) in before.items():
        if id_ in ids and reasoning not in ids:
            yield found("input", id_, type=type_, reasoning=reasoning)


@ORIGIN.rule(
    "Item '{about}' of type 'reasoning' was provided without its required following item.",
    "https://github.com/openai/openai-python/issues/3008",
)
def reasoning_with_another_follower(both: Body) -> Iterator[Found]:
    """Reasoning stays with the item it came with, not with the next one left."""
    before, now, ids = pair(both)
    for reasoning, (id_, _) in before.items():
        if reasoning in ids and now.get(reasoning, (id_,))[0] != id_:
            yield found("input", reasoning)
