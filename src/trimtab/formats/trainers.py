"""Rows as trainers write them: the messages in one, which of them are trained on, and the row of those kept.

Read are lists of messages and request bodies in every wire form, TRL's `prompt` and `completion`, ShareGPT's
`conversations` as Axolotl and LLaMA-Factory have them, and their `instruction`, `input` and `output`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from trimtab._shared.strict_json import parse
from trimtab.errors import ConfigurationError, FormatError
from trimtab.formats import Format, format_of, get_format, mapping_of, refuse_foreign
from trimtab.formats.values import Dict, compact_json, without_keys

KEYS = ("conversations", "prompt", "completion", "instruction", "input", "output", "history")
"""Under which the shapes of trainers have what is said."""
BESIDE = ("tools", "system")
"""Keys, and columns of a table, that are charged with the messages beside them."""


@dataclass(frozen=True, kw_only=True)
class TrainingRow:
    """One row, read.

    Args:
        messages: What is said in it, in a wire form, as it is counted.
        form: The wire form.
        targets: Which of the messages are trained on.
        write: Makes the row of some of the messages, given by their positions in ascending order.
        given: What `validate` is asked about.
        stop: Messages from here on are one with the last target, and none of them leaves before it.
        system: System text beside the messages.
        tools: Tool schemas.
        extra: Other charged parts of a body.
    """

    messages: Sequence[Any]
    form: Format
    targets: Sequence[bool]
    write: Callable[[Sequence[int]], Any]
    given: Any
    stop: int
    system: Any = None
    tools: Any = None
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])


class _Shape(NamedTuple):
    """One way in which a trainer writes rows."""

    keys: tuple[str, ...]
    """All of them are in a row of this shape."""
    read: Callable[[Mapping[str, Any]], TrainingRow]


def is_shaped(value: object, column: str, /) -> bool:
    """Tell whether a row is of a trainer's own shape, which is read or refused as a whole.

    Args:
        value: The row.
        column: Where its conversation is asked for; one that is there and of no shape is meant by itself.
    """
    return isinstance(value, Mapping) and _meaning_of(value, column) is not None


def read_row(
    value: Any, /, *, format: str | Format, model: str | None, column: str = "messages"
) -> TrainingRow:
    """Read a row of any shape that is known.

    Args:
        value: A list of messages, a request body, or a row as a trainer has it.
        format: Name of the wire form, for messages and bodies.
        model: Name of the model they are for.
        column: Where its conversation is asked for.

    Raises:
        FormatError: It is of none, or of one that is told but not read, with the line that makes one of it.
    """
    if not isinstance(value, Mapping):
        return _of_tags(value, {}) if _is_tagged(value) else _wire(value, format, model)
    meaning = _meaning_of(value, column)
    if isinstance(meaning, str):
        raise FormatError(meaning)
    if meaning is not None:
        return meaning.read(value)
    if _is_tagged(value.get("messages")):
        return _conversations(value, "messages")
    return _wire(value, format, model)


def _meaning_of(value: Mapping[str, Any], column: str) -> _Shape | str | None:
    """Give the shape of a row, or why it is refused; None: it has messages, or is nothing that is known.

    What was asked for comes first, then `messages`, then what a trainer has in their place.
    """
    is_named = column in value and column not in KEYS
    if is_named and column != "messages":  # what else is there is a column of the user's
        return None
    refused = None if is_named and "prompt" in value else _refusal_of(value, _PREFERENCES)
    if refused is not None or is_named:
        return refused
    shapes = [one for one in _SHAPES if all(key in value for key in one.keys)]
    shapes.sort(key=lambda one: column not in one.keys)
    if "messages" in value and not (shapes and column in shapes[0].keys):
        return None
    return shapes[0] if shapes else _refusal_of(value, _REFUSED)


def is_target(entry: Mapping[str, Any], /) -> bool:
    """Tell whether an assistant message is trained on.

    OpenAI's `weight` may be 0, and Axolotl's `train` false; without them every answer is trained on.
    """
    return entry.get("weight") != 0 and entry.get("train") is not False


# Messages in a wire form, and bodies of them.


def _wire(value: Any, format: str | Format, model: str | None) -> TrainingRow:
    form = format_of(value, format, model)
    if not isinstance(value, Mapping):
        return _row(list(value), form, given=value, write=lambda places: [value[at] for at in places])
    request = form.for_model(model).read_request(value)
    messages, key = request.messages, request.key
    return _row(
        list(messages),
        form,
        given=value,
        write=lambda places: {**value, key: [messages[at] for at in places]},
        system=request.system,
        tools=tools_in(request.tools),
        extra=request.extra,
    )


def _row(
    messages: list[Any], form: Format, *, write: Callable[[Sequence[int]], Any], **more: Any
) -> TrainingRow:
    entries = [mapping_of(one) for one in messages]
    refuse_foreign(entries, form.name, listed=True)
    targets = [form.kind(one) == "assistant" and is_target(one) for one in entries]
    held: dict[str, Any] = {"given": messages, "stop": len(messages), **more}
    counted = [without_keys(one, _MARKS) for one in messages]
    return TrainingRow(messages=counted, form=form, targets=targets, write=write, **held)


_MARKS = ("weight", "train", "train_detail")
"""What tells the trainer alone something, and nobody is shown."""


def tools_in(value: Any, /) -> Any:
    """Read tools, which trainers also keep as JSON in a text.

    Raises:
        FormatError: The text is no list in JSON.
    """
    if not isinstance(value, str | bytes):
        return value or None
    try:
        found = parse(value.encode("utf-8") if isinstance(value, str) else value) if value.strip() else None
    except FormatError as error:
        raise FormatError(f"the text under 'tools' is {error}", path="tools") from error
    if found is not None and not isinstance(found, list):
        raise FormatError(f"the text under 'tools' must be a list of tools, not {found!r:.40}", path="tools")
    return found or None


# TRL: a prompt and its completion, each a list of messages.


def _prompt_and_completion(value: Mapping[str, Any]) -> TrainingRow:
    prompt, completion = value["prompt"], value["completion"]
    if not isinstance(prompt, list) or not isinstance(completion, list):
        raise FormatError(
            "its prompt and completion are texts, and no message can be evicted from a text: write"
            " {'messages': [{'role': 'user', 'content': row['prompt']},"
            " {'role': 'assistant', 'content': row['completion']}]}"
        )
    border = len(prompt)

    def write(places: Sequence[int]) -> Any:
        kept = [at for at in places if at < border]
        return {
            **value,
            "prompt": [prompt[at] for at in kept],
            "completion": [completion[at - border] for at in places[len(kept) :]],
        }

    row = _row([*prompt, *completion], _chat(), write=write, stop=border, **read_beside(value))
    targets = [at >= border and is_one for at, is_one in enumerate(row.targets)]
    return replace(row, targets=targets)


# ShareGPT, as Axolotl and LLaMA-Factory have it.

_ROLES = {
    "system": "system",
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "assistant": "assistant",
    "model": "assistant",
    "function_call": "assistant",
    "observation": "tool",
    "tool": "tool",
}
"""Whose words those of a `from` are; "function" is a call to some trainers and a result to others."""


def _is_tagged(entries: Any) -> bool:
    return isinstance(entries, list) and any(
        isinstance(one, Mapping) and "from" in one and "value" in one for one in entries[:1]
    )


def _conversations(value: Mapping[str, Any], key: str = "conversations") -> TrainingRow:
    entries = value[key]
    if not isinstance(entries, list):
        raise FormatError(f"{key!r} must be a list of messages, not {entries!r:.40}", path=key)

    def write(places: Sequence[int]) -> Any:
        return {**value, key: [entries[at] for at in places]}

    if _is_tagged(entries):
        return _of_tags(entries, value, write)
    return _row(list(entries), _chat(), write=write, **read_beside(value))


def _of_tags(
    entries: Sequence[Any], value: Mapping[str, Any], write: Callable[[Sequence[int]], Any] | None = None
) -> TrainingRow:
    messages: list[Any] = []
    calls: list[str] = []
    """Ids of calls that have no result yet."""
    for at, entry in enumerate(entries):
        messages.append(_message_of(entry, at, calls))
    return _row(
        messages,
        _chat(),
        write=write or (lambda places: [entries[at] for at in places]),
        **read_beside(value),
    )


def _message_of(entry: Any, at: int, calls: list[str]) -> Dict:
    """Write an entry with `from` and `value` as Chat Completions does, to be counted."""
    source = entry.get("from") if isinstance(entry, Mapping) else None
    text = entry.get("value") if isinstance(entry, Mapping) else None
    if source not in _ROLES or not isinstance(text, str):
        raise FormatError(
            f"entry {at} needs a text under 'value' and under 'from' one of {', '.join(_ROLES)}, not"
            f" {source!r:.40}: rename it, or write {{'role': ..., 'content': ...}}",
            path=f"[{at}]",
        )
    trained = {key: entry[key] for key in ("weight", "train") if key in entry}
    message: Dict = {"role": _ROLES[source], "content": text, **trained}
    if message["role"] == "tool":
        message["tool_call_id"] = calls.pop(0) if calls else f"call_{at}"
    made = _calls_in(text, at) if source == "function_call" else []
    if made:
        calls[:] = [one["id"] for one in made]
        message |= {"content": None, "tool_calls": made}
    return message


def _calls_in(text: str, at: int) -> list[Dict]:
    """Read the calls of a `function_call`, JSON of one or of several; none where it is something else."""
    try:
        found = parse(text.encode("utf-8"))
    except (FormatError, UnicodeEncodeError):
        return []
    listed = found if isinstance(found, list) else [found]
    if not all(isinstance(one, Mapping) and isinstance(one.get("name"), str) for one in listed):
        return []
    return [
        {
            "id": f"call_{at}_{number}",
            "type": "function",
            "function": {"name": one["name"], "arguments": compact_json(one.get("arguments", {}))},
        }
        for number, one in enumerate(listed)
    ]


# Alpaca, as LLaMA-Factory has it: earlier turns are pairs under `history`.


def _instruction(value: Mapping[str, Any]) -> TrainingRow:
    history = value.get("history") or []
    asked = [value["instruction"], value.get("input") or ""]
    pairs = [[*pair] if isinstance(pair, list | tuple) else [pair] for pair in history]
    texts = [*asked, value["output"], *(text for pair in pairs for text in pair)]
    if not all(len(pair) == 2 for pair in pairs) or not all(isinstance(text, str) for text in texts):
        raise FormatError(
            "'instruction', 'input' and 'output' must be texts, and 'history' a list of pairs of texts: write"
            " {'messages': [{'role': 'user', 'content': ...}, {'role': 'assistant', 'content': ...}]}"
        )
    turns = [*pairs, ["\n".join(filter(None, asked)), value["output"]]]
    roles = ("user", "assistant")
    messages: list[Any] = [
        {"role": role, "content": text} for turn in turns for role, text in zip(roles, turn, strict=True)
    ]

    def write(places: Sequence[int]) -> Any:
        return {**value, "history": history[places[0] // 2 :]} if history else value

    return _row(messages, _chat(), write=write, **read_beside(value))


def _chat() -> Format:
    return get_format("openai_chat")


def read_beside(value: Mapping[str, Any], /) -> dict[str, Any]:
    """Give what stands beside the messages of a row and is charged with them.

    Raises:
        FormatError: The system text is none, or the tools are no list of schemas.
    """
    system, tools = value.get("system") or None, tools_in(value.get("tools"))
    if not isinstance(system, str | list | None):
        raise FormatError(f"'system' must be a text or a list of parts, not {system!r:.40}", path="system")
    if tools is not None and not (isinstance(tools, list) and all(isinstance(one, Mapping) for one in tools)):
        raise FormatError(f"'tools' must be a list of tool schemas, not {tools!r:.40}", path="tools")
    return {"system": system, "tools": tools}


_SHAPES = (
    _Shape(("prompt", "completion"), _prompt_and_completion),
    _Shape(("conversations",), _conversations),
    _Shape(("instruction", "output"), _instruction),
)
"""Those that are read, beside messages and bodies."""

_Refused = tuple[tuple[Collection[str], str], ...]
_PREFERENCES: _Refused = (
    *(
        (
            (key, "chosen", "rejected"),
            f"it is a row of preferences, with two answers: fit one of each, {{{key!r}: [*row[{key!r}],"
            " row['chosen']]} and the same with 'rejected', and keep the rows where both are kept",
        )
        for key in ("messages", "conversations")
    ),
    (
        ("input", "preferred_output", "non_preferred_output"),
        "it is a row of preferences, with two answers: fit one of each, {'messages':"
        " [*row['input']['messages'], *row['preferred_output']]} and the same with 'non_preferred_output',"
        " and keep the rows where both are kept",
    ),
    (
        ("prompt", "chosen", "rejected"),
        "it is a row of preferences, with two answers: fit one of each, {'messages': [*row['prompt'],"
        " *row['chosen']]} and the same with 'rejected', and keep the rows where both are kept; a text is"
        " written as {'role': 'user', 'content': row['prompt']} or {'role': 'assistant', ...} first",
    ),
    (
        ("chosen", "rejected"),
        "it is a row of preferences, with two answers: fit one of each, {'messages': row['chosen']} and the"
        " same with 'rejected', and keep the rows where both are kept",
    ),
)
_REFUSED: _Refused = (
    (
        ("input", "output"),
        "it is a question and its answer apart: write {'messages': [*row['input'], {'role': 'assistant',"
        " 'content': row['output']}]}, and for a text {'role': 'user', 'content': row['input']}",
    ),
    (
        ("segments",),
        "it is a row of Axolotl's input_output, texts that are rendered already: write"
        " {'messages': [{'role': ..., 'content': ...}]}, which a template renders",
    ),
    (
        ("text",),
        "it is a text, of which no turn can be evicted: write {'messages': [{'role': ..., 'content': ...}]},"
        " or cut it into pieces before",
    ),
    (
        ("prompt", "completions", "labels"),
        "it is an answer in steps that are judged one by one: write {'messages': [{'role': 'user', 'content':"
        " row['prompt']}, {'role': 'assistant', 'content': '\\n'.join(row['completions'])}]}",
    ),
    (
        ("prompt",),
        "it is a prompt without an answer, so nothing in it is trained on: fit it as a request, without"
        " --for training (purpose='training'), or name the key of its conversation with column= (--column)",
    ),
)
"""Keys of rows that are told and not read, and what to write in their place."""


def _refusal_of(value: Mapping[str, Any], refused: _Refused) -> str | None:
    return next((said for keys, said in refused if all(value.get(key) is not None for key in keys)), None)


_PARTS = (
    ("prompt", "completion"),
    ("instruction", "output"),
    ("input", "output"),
    ("prompt", "chosen", "rejected"),
    ("messages", "chosen", "rejected"),
    ("conversations", "chosen", "rejected"),
)
"""Keys of which each holds a part of what is said."""


def check_columns(names: Collection[str], column: str, /) -> None:
    """Refuse a column of a table that is only a part of each row, as a prompt without its completion is.

    Args:
        names: The columns of the table.
        column: That of the conversations.

    Raises:
        ConfigurationError: Other parts are in columns beside it.
    """
    if column == "messages" and "prompt" in names:  # they are whole
        return
    for parts in _PARTS:
        if column in parts and all(name in names for name in parts):
            others = " and ".join(repr(name) for name in parts if name != column)
            raise ConfigurationError(
                f"the column {column!r} holds one part of each conversation, and {others} the rest: write"
                " the rows as JSONL, or make one column 'messages' of them",
                argument="column",
            )
