"""Reading input items of the Responses API: whose one is, what it answers and is bound to, what it costs.

An item is read by its `type`; one without a type is a message if it has a role or content, and else a
reference. The types are those of `ResponseInputItemParam` in openai 3.54 (2026-11); a test walks them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from trimtab.formats.base import Media, Pieces
from trimtab.formats.openai_chat.read import OpenAIFound
from trimtab.formats.origin import ORIGIN_OF, Origins
from trimtab.formats.structure import Kind, complete_ids
from trimtab.formats.values import Dict, Path, as_dict, as_list, as_text, compact_json, python_json, to_text

OUTPUT_OF = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "computer_call": "computer_call_output",
    "local_shell_call": "local_shell_call_output",
    "shell_call": "shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
    "tool_search_call": "tool_search_output",
    "program": "program_output",
    "mcp_approval_request": "mcp_approval_response",
    "multi_agent_call": "multi_agent_call_output",  # the API names it; no package has a type for it
}
"""Item types that call for another item, and the type of that one."""

OUTPUTS = {output: call for call, output in OUTPUT_OF.items()}

COMPLETE = frozenset(
    {
        "file_search_call",
        "web_search_call",
        "code_interpreter_call",
        "image_generation_call",
        "mcp_list_tools",
        "mcp_call",
    }
)
"""Calls the provider ran itself: their result is in the item."""

_ROLES: dict[str, Kind] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
}

_KINDS: dict[str, Kind] = {
    **dict.fromkeys(OUTPUT_OF, "assistant"),
    **dict.fromkeys(OUTPUTS, "tool"),
    **dict.fromkeys(COMPLETE, "assistant"),
    "reasoning": "assistant",
    "item_reference": "assistant",  # what can be referred to is stored output of a model, by far most often
    "additional_tools": "system",
    "configuration_update": "system",
    # They stand for, or ask to replace, what was before them, whoever said it.
    "compaction": "other",
    "compaction_trigger": "other",
    "agent_message": "other",  # named by the API alone, as above
}

ITEM_TYPES = frozenset({"message", *_KINDS})
"""Every type of item that is known."""


def type_of(item: Dict) -> str:
    """Return an item's type, also where the API lets it be left out; "" for what is no item."""
    kind = item.get("type")
    if isinstance(kind, str):
        return kind
    if kind is not None:
        return ""
    if "role" in item or "content" in item:
        return "message"
    return "item_reference" if as_text(item.get("id")) else ""


def kind_of(item: Dict) -> Kind:
    """Tell whom an item is from; "other" for a role or type nobody knows."""
    name = item.get("type")
    if name is None and isinstance(said_by := item.get("role"), str):
        return _ROLES.get(said_by, "other")
    if not isinstance(name, str):
        name = type_of(item)
    if name == "message":
        role = item.get("role")
        return _ROLES.get(role, "other") if isinstance(role, str) else "other"
    kind = _KINDS.get(name, "other")
    if kind != "tool":
        return kind
    if name == "tool_search_output" and not _by_client(item):
        return "assistant"
    return "other" if item.get("call_id") is None and _answers_nothing(name, item) else "tool"


def origins_of(item: Dict) -> Origins:
    """Tell who said what an item holds: one of a tool the provider ran has what that found."""
    name, kind = type_of(item), kind_of(item)
    whose = ORIGIN_OF[kind]
    if name in COMPLETE or name == "tool_search_output":
        return frozenset(("assistant", "tool"))
    if whose != "user":
        return frozenset((whose,))
    parts = as_list(item.get("content")) or ()
    return frozenset(
        ["document" if (as_dict(part) or {}).get("type") == "input_file" else whose for part in parts]
        or (whose,)
    )


def call_id_of(item: Dict) -> str | None:
    """Return the id of the call an item makes; None if it makes none that needs an answer."""
    name = type_of(item)
    if name not in OUTPUT_OF:
        return None
    if name == "mcp_approval_request":
        return next(complete_ids([as_text(item.get("id"))]))
    if name == "tool_search_call" and not _by_client(item):
        return None
    return next(complete_ids([as_text(item.get("call_id"))]))


def answered_id_of(item: Dict) -> str | None:
    """Return the id of the call an item answers; "" if it does not say, None if it answers none."""
    if kind_of(item) != "tool":
        return None
    name = type_of(item)
    if name == "mcp_approval_response":
        return as_text(item.get("approval_request_id")) or ""
    if name == "local_shell_call_output":
        # The type has only `id`, "the ID of the call generated by the model"; the guide writes `call_id`.
        return as_text(item.get("call_id")) or as_text(item.get("id")) or ""
    return as_text(item.get("call_id")) or ""


def is_bound(item: Dict, following: Dict) -> bool:
    """Tell whether an item stays only together with the one after it.

    What the model said in one response stands in one run, and its items need the run's reasoning. Of two
    messages without ids the API knows no response, and they are free of each other. What a program called,
    and its output, belongs to what stands before it.
    """
    name = type_of(following)
    if name == "program_output" or is_by_program(following):
        return kind_of(item) in ("assistant", "tool")
    before, behind = kind_of(item), kind_of(following)
    if before != "assistant":
        return False
    if behind == "tool":
        return type_of(item) == "item_reference"  # to the call, whose id it does not tell
    if behind != "assistant":
        return False
    return not (is_plain_message(item) and is_plain_message(following))


def lone_reasoning(items: list[Any], start: int, stop: int) -> set[int]:
    """List reasoning that nothing of the model follows, among dicts; reasoning without an id may stand alone.

    openai-agents leaves the ids out for that (`reasoning_item_id_policy`, 2026).
    """
    found: set[int] = set()
    after = stop
    while after < len(items) and type_of(items[after]) == "reasoning":
        after += 1
    followed = after < len(items) and kind_of(items[after]) == "assistant"
    for index in range(stop - 1, start - 1, -1):
        item = items[index]
        if type_of(item) != "reasoning":
            followed = kind_of(item) == "assistant"
        elif not followed and as_text(item.get("id")) is not None:
            found.add(index)
    return found


def needs_of(items: list[Any]) -> dict[int, int]:
    """Map items to one they may not stay without, as the API knows it by their ids or callers.

    "Item 'rs_1' of type 'reasoning' was provided without its required following item" names the one that
    followed in the response (openai/openai-python#3008), and "was provided without its required 'reasoning'
    item" (cline/cline#12242) any that came after it: of parallel calls nobody knows (QwenLM/qwen-code#11684),
    so all. An item without an id is any response's. What a program called needs the program.
    """
    found: dict[int, int] = {}
    opener = program = -1
    for at, item in enumerate(items):
        whose, known = kind_of(item), as_text(item.get("id")) is not None
        behind = items[at + 1] if at + 1 < len(items) else {}
        if type_of(item) == "program":
            program = at
        elif program >= 0 and (type_of(item) == "program_output" or is_by_program(item)):
            found[at] = program
        if whose != "assistant":
            opener = -1
        elif type_of(item) == "reasoning":
            opener = at if known else -1
            if known and kind_of(behind) == "assistant" and as_text(behind.get("id")) is not None:
                found[at] = at + 1
        elif opener >= 0 and known:
            found.setdefault(at, opener)
    return found


def is_reference(item: Dict) -> bool:
    """Tell whether an item only names one that is stored."""
    return type_of(item) == "item_reference"


def tool_name(item: Dict) -> str:
    """Return the name of the tool an item calls; that of a built-in tool is its type's."""
    name = item.get("name")
    if isinstance(name, str) and name:
        return name
    return type_of(item).removesuffix("_call")


def is_output_message(item: Dict) -> bool:
    """Tell whether a message is one of the model's own output items, which have an id."""
    return item.get("role") == "assistant" and as_text(item.get("id")) is not None


def _by_client(item: Dict) -> bool:
    """Tell whether a tool search is the caller's to run; one that the server ran is complete."""
    execution = item.get("execution")
    return execution == "client" if isinstance(execution, str) else as_text(item.get("call_id")) is not None


def _answers_nothing(name: str, item: Dict) -> bool:
    """Tell whether an output without the id of a call answers none: it names its tool in place of it."""
    named = name == "function_call_output" and as_text(item.get("name")) is not None
    return named or name == "multi_agent_call_output"


def is_by_program(item: Dict) -> bool:
    """Tell whether a program of the model's called an item, or got it."""
    caller: Any = item.get("caller")
    return caller is not None and (as_dict(caller) or {}).get("type") == "program"


def is_plain_message(item: Dict) -> bool:
    """Tell whether an item is a message that no response is known to have given."""
    return type_of(item) == "message" and item.get("id") is None


TEXT_PARTS = frozenset({"input_text", "output_text", "text", "summary_text", "reasoning_text"})
MEDIA_PARTS = frozenset({"input_image", "computer_screenshot", "input_file", "input_audio"})

# Where what a call asks for stands, by item type: the first of the keys that is there.
_ASKED: dict[str, tuple[str, ...]] = {
    "function_call": ("arguments",),
    "custom_tool_call": ("input",),
    "computer_call": ("actions", "action"),
    "local_shell_call": ("action",),
    "shell_call": ("action",),
    "apply_patch_call": ("operation",),
    "tool_search_call": ("arguments",),
    "program": ("code",),
    "mcp_approval_request": ("arguments",),
    "mcp_call": ("arguments",),
    "web_search_call": ("action",),
    "file_search_call": ("queries",),
    "code_interpreter_call": ("code",),
    "image_generation_call": ("revised_prompt",),
}
_ASKED_AS_TEXT = ("function_call", "mcp_call", "mcp_approval_request")
"""Calls whose arguments are text with JSON; of an object the SDK's user makes that, with spaces."""
_BRING_TOOLS = ("additional_tools", "tool_search_output")
_RESULT_KEYS = ("output", "outputs", "results", "result", "error")
# What is asked for, and what only the caller's machine has to know of it.
_CALL_KEYS = frozenset({key for keys in _ASKED.values() for key in keys}) | {
    "pending_safety_checks",
    "environment",
}
# Not of the prompt: identity and state of the item, marks for the cache, keys the API has to see again.
_CARRIED = frozenset(
    {
        "id",
        "type",
        "role",
        "status",
        "call_id",
        "phase",
        "caller",
        "async",
        "execution",
        "namespace",
        "server_label",
        "name",
        "approval_request_id",
        "container_id",
        "fingerprint",
        "encrypted_content",
        "created_by",
        "parsed_arguments",
        "prompt_cache_breakpoint",
    }
)
PART_CARRIED = frozenset(
    {"type", "text", "refusal", "annotations", "logprobs", "parsed", "prompt_cache_breakpoint"}
)


def text_paths(item: Dict) -> Iterator[tuple[Path, str]]:
    """Yield the texts of an item that may be shortened: of messages, and of results."""
    name = type_of(item)
    if name == "message":
        yield from _texts_under("content", item)
    elif name == "shell_call_output":
        for index, value in enumerate(as_list(item.get("output")) or ()):
            chunk = as_dict(value) or {}
            for key in ("stdout", "stderr"):
                if isinstance(chunk.get(key), str):
                    yield ("output", index, key), chunk[key]
    elif name == "mcp_call" or (name.endswith("_call_output") and name in ITEM_TYPES):
        yield from _texts_under("output", item)


def _texts_under(key: str, item: Dict) -> Iterator[tuple[Path, str]]:
    content = item.get(key)
    if isinstance(content, str):
        yield (key,), content
        return
    for index, value in enumerate(as_list(content) or ()):
        if isinstance(value, str):
            yield (key, index), value
            continue
        part = as_dict(value) or {}
        if part.get("type") in ("input_text", "output_text") and isinstance(part.get("text"), str):
            yield (key, index, "text"), part["text"]


def pieces_of(item: Dict) -> Pieces:
    """List what of an item is charged for; see `Format.pieces`."""
    name, role = type_of(item), item.get("role")
    found = _Found()
    if name == "message":
        found.read_content(item.get("content"))
        found.read_rest(item, frozenset({"content"}))
    elif name in _ASKED:
        found.read_call(name, item)
    elif name == "reasoning":
        found.read_reasoning(item)
    elif name in _BRING_TOOLS:
        found.tools += as_list(item.get("tools")) or ()
        found.read_rest(item, frozenset({"tools"}))
    elif name == "compaction":
        found.read_compaction(item)
    elif name not in ("item_reference", "compaction_trigger", "configuration_update"):
        key = "result" if name == "program_output" else "output"
        found.read_content(item.get(key))
        found.read_rest(item, frozenset({key}), carried=name in ITEM_TYPES)
    if not isinstance(role, str):
        kind = kind_of(item)
        role = "developer" if kind == "system" else "" if kind == "other" else kind
    if name == "reasoning":  # which some hosts frame otherwise than what the model says
        role = name
    return found.pieces(
        role,
        result_id=answered_id_of(item) or None,
        is_elsewhere=name == "item_reference",
    )


def plain_words(item: Dict) -> str:
    """Return what a plain item says; see `Format.full_text`. It takes a few lookups.

    Raises:
        KeyError: It is not plain.
        TypeError: The same.
    """
    width = len(item)
    if width == 2:
        words, role = item["content"], item["role"]
    elif width == 3 and item["type"] == "function_call_output":
        words, role = item["output"], item["call_id"]
    elif width == 4 and item["type"] == "function_call":
        name, words, role = item["name"], item["arguments"], item["call_id"]
        if name.__class__ is str and words.__class__ is str:
            return f"{name} {words}"
    else:
        raise KeyError
    if words.__class__ is not str or role.__class__ is not str:
        raise KeyError
    text: str = words
    return text


def call_text(item: Dict) -> tuple[str, str]:
    """Return the name of the tool an item calls and what it asks for, as text."""
    keys = _ASKED.get(type_of(item), ())
    asked = next((item[key] for key in keys if item.get(key) is not None), None)
    return tool_name(item), to_text(asked, python_json if type_of(item) in _ASKED_AS_TEXT else compact_json)


class _Found(OpenAIFound):
    __slots__ = ()

    carried = _CARRIED
    noun = "an item"

    def read_object(self, content: Any) -> None:
        """Take an object as a part."""
        self.read_part(content)

    def read_part(self, value: Any) -> None:
        """Take one content part: text, refusal, medium, or unknown as JSON."""
        part = None if isinstance(value, str) else as_dict(value)
        if part is None:
            self.read_text(value)
            return
        kind = part.get("type")
        if kind == "refusal" and isinstance(part.get("refusal"), str):
            self.texts.append(part["refusal"])
        elif isinstance(kind, str) and kind in TEXT_PARTS and isinstance(part.get("text"), str):
            self.texts.append(part["text"])
        elif isinstance(kind, str) and kind in MEDIA_PARTS:
            self.media.append(_MEDIA[kind](part))
            return
        elif isinstance(part.get("stdout"), str) and isinstance(part.get("stderr"), str):
            self.texts.extend(text for text in (part["stdout"], part["stderr"]) if text)
            self.read_rest(part, frozenset({"stdout", "stderr"}))
            return
        else:
            self.read_unknown(part)
            return
        self.read_rest(part, PART_CARRIED)

    def read_call(self, name: str, item: Dict) -> None:
        """Take a call, and the result that an item of a call the provider ran holds as well."""
        self.calls.append(call_text(item))
        if name in OUTPUT_OF:
            self.read_rest(item, _CALL_KEYS)
            return
        for key in _RESULT_KEYS:
            self.read_result(item.get(key), is_image=name == "image_generation_call")

    def read_result(self, result: Any, *, is_image: bool = False) -> None:
        """Take what a call found: a text, a picture in base64, anything else as JSON."""
        if result in (None, "", [], {}, ()):
            return
        if not isinstance(result, str):
            self.read_unknown(result)
        elif is_image:
            self.media.append(Media("image", None, result, None))
        else:
            self.texts.append(result)
            self.parts += 1

    def read_reasoning(self, item: Dict) -> None:
        """Take what can be read of reasoning; of what is encrypted only the size is known."""
        self.sealed_chars = len(as_text(item.get("encrypted_content")) or "")
        for key in ("content", "summary"):
            for value in as_list(item.get(key)) or ():
                text = (as_dict(value) or {}).get("text")
                if isinstance(text, str) and text:
                    self.thoughts.append(text)

    def read_compaction(self, item: Dict) -> None:
        """Take what stands for all that was before, sealed, as a file: it is charged in every turn."""
        if sealed := as_text(item.get("encrypted_content")):
            self.media.append(Media("file", None, sealed, "compaction", is_sealed=True))


def _image(part: Dict) -> Media:
    file_id = as_text(part.get("file_id"))
    return Media("image", as_text(part.get("detail")), as_text(part.get("image_url")), file_id)


def _file(part: Dict) -> Media:
    data = as_text(part.get("file_data")) or as_text(part.get("file_url"))
    return Media(
        "file",
        as_text(part.get("detail")),
        data,
        as_text(part.get("filename")) or as_text(part.get("file_id")),
    )


def _audio(part: Dict) -> Media:
    audio = as_dict(part.get("input_audio")) or {}
    return Media("audio", None, as_text(audio.get("data")), None)


_MEDIA: dict[str, Callable[[Dict], Media]] = {
    "input_image": _image,
    "computer_screenshot": _image,
    "input_file": _file,
    "input_audio": _audio,
}
