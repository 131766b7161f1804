"""Reading Gemini contents: both spellings of keys, which response answers which call, what is charged.

The wire spells keys in camelCase; the dicts and objects of google-genai spell them in snake_case, and
the API takes both. A part is read in the spelling it has, and paths name the key it has.
"""

from __future__ import annotations

from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, Literal, NamedTuple

from trimtab.errors import FormatError
from trimtab.formats.base import Media, Pieces
from trimtab.formats.content import Found
from trimtab.formats.origin import ORIGIN_OF, OriginName, Origins
from trimtab.formats.structure import Kind
from trimtab.formats.values import (
    Dict,
    as_dict,
    as_list,
    as_text,
    compact_json,
    item_of,
    plain_json,
    to_text,
)

DATA_KEYS = (
    "text",
    "function_call",
    "function_response",
    "inline_data",
    "file_data",
    "executable_code",
    "code_execution_result",
    "tool_call",
    "tool_response",
)
"""What a part can be; it is exactly one of them."""

SIGNATURE = "thought_signature"

UNCHECKED_SIGNATURE = "skip_thought_signature_validator"
"""Google's own value for a call whose signature is not at hand (docs/thought-signatures, FAQ; 2026-11)."""

CALL_PREFIX = "call:"
"""Stands before name and number in place of the id a call does not have."""

_MODEL_ROLES = frozenset({"model", "assistant"})
_LOOK_BACK = 64
"""Contents looked over on the way back to where a turn began; most have one."""

_OPENED = (("executable_code", "code_execution_result"), ("tool_call", "tool_response"))
"""What the provider's own tools are asked, and what they answered."""


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(map(str.capitalize, rest))


def snake(key: object) -> str:
    """Write a key in the SDK's spelling."""
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in str(key))


_CAMEL = {name: _camel(name) for name in (*DATA_KEYS, SIGNATURE)}


Speaker = Literal["model", "user", "tool", "system", "other"]
"""Whose a content is."""


class Call(NamedTuple):
    """One `functionCall` part."""

    part: int
    id: str
    """Its id; for a call without one, `call:NAME:n`, the n-th of that name in its content."""
    name: str
    given: bool
    """True if the id is the caller's or the provider's."""


class Result(NamedTuple):
    """One `functionResponse` part."""

    part: int
    id: str | None
    name: str


def key_in(owner: Dict, name: str) -> str | None:
    """Return the spelling in which a mapping holds a key with a value; None if it does not."""
    if owner.get(name) is not None:
        return name
    camel = _CAMEL.get(name) or _camel(name)
    return camel if owner.get(camel) is not None else None


def value_in(owner: Dict, name: str) -> Any:
    """Return what stands under a key in either spelling; None if nothing does."""
    key = key_in(owner, name)
    return None if key is None else owner[key]


def parts_in(message: Dict) -> list[Dict]:
    """Read every part of a content as a dict; what is none becomes an empty one."""
    return [as_dict(part) or {} for part in as_list(message.get("parts")) or ()]


def speaker(message: Any) -> Speaker:
    """Tell whose a content is by its role; a role that is missing is the user's."""
    role = item_of(message, "role")
    if role is None or role == "" or role == "user":
        return "user"
    if not isinstance(role, str):
        return "other"
    if role in _MODEL_ROLES:
        return "model"
    if role in ("function", "tool"):
        return "tool"
    return "system" if role in ("system", "developer") else "other"


def kind_of(message: Dict) -> Kind:
    """Tell whom a content is from; one of the user's of nothing but responses is the tools'."""
    whose = speaker(message)
    if whose == "model":
        return "assistant"
    if whose != "user":
        return whose
    parts = as_list(message.get("parts"))
    if not parts:
        return "user"
    for part in parts:  # mostly one, which tells by itself
        if key_in(as_dict(part) or {}, "function_response") is None:
            return "user"
    return "tool"


_FOUND = ("function_response", "code_execution_result", "tool_response")
_SEEN_AND_HEARD = ("image/", "audio/", "video/")


def origins_of(message: Dict) -> Origins:
    """Tell who said what a content holds: one of the user's may have responses and documents in it."""
    whose = ORIGIN_OF[kind_of(message)]
    return frozenset([_origin_of(part, whose) for part in parts_in(message)] or (whose,))


def _origin_of(part: Dict, whose: OriginName) -> OriginName:
    if any(key_in(part, key) is not None for key in _FOUND):
        return "tool"
    data = value_in(part, "inline_data") or value_in(part, "file_data")
    kind = as_text(value_in(as_dict(data) or {}, "mime_type")) or "image/"
    return whose if kind.startswith(_SEEN_AND_HEARD) else "document"


def calls_of(parts: Sequence[Dict]) -> list[Call]:
    """List the function calls among parts, by position."""
    found: list[Call] = []
    seen: dict[str, int] = {}
    for at, part in enumerate(parts):
        call = value_in(part, "function_call")
        if call is None:
            continue
        name, call_id = _name_and_id(call)
        if call_id is None:
            number = seen[name] = seen.get(name, -1) + 1
            found.append(Call(at, f"{CALL_PREFIX}{name}:{number}", name, given=False))
        else:
            found.append(Call(at, call_id, name, given=True))
    return found


def results_of(parts: Sequence[Dict]) -> list[Result]:
    """List the function responses among parts, by position."""
    found: list[Result] = []
    for at, part in enumerate(parts):
        response = value_in(part, "function_response")
        if response is not None:
            name, call_id = _name_and_id(response)
            found.append(Result(at, call_id, name))
    return found


def answered_ids(messages: Sequence[Any], index: int, results: Sequence[Result]) -> list[str]:
    """Return the id of the call each response in a content answers.

    Without an id a response answers by name and order: the first call of that name, in the call turn
    before it, that no other response answers. Reads back from `index` alone, so that it does not matter
    where reading began.
    """
    if all(result.id is not None for result in results):
        return [result.id or "" for result in results]
    turn, before = _turn_before(messages, index)
    by_id = Counter(result.id for result in (*before, *results))
    free: dict[str, list[str]] = {}
    for call in turn:
        if call.given and by_id[call.id] > 0:
            by_id[call.id] -= 1
        else:
            free.setdefault(call.name, []).append(call.id)
    taken: dict[str, int] = {}
    for result in before:
        if result.id is None:
            taken[result.name] = taken.get(result.name, 0) + 1
    seen: dict[str, int] = {}
    found: list[str] = []
    for result in results:
        if result.id is not None:
            found.append(result.id)
            continue
        number = seen[result.name] = seen.get(result.name, -1) + 1
        at, calls = taken.get(result.name, 0) + number, free.get(result.name, ())
        found.append(calls[at] if at < len(calls) else f"{CALL_PREFIX}{result.name}:{number}")
    return found


def goes_on(messages: Sequence[Any], index: int) -> bool:
    """Tell whether a content and the one behind it are one turn of the model's, in which a call waits."""
    if index + 1 >= len(messages) or speaker(messages[index + 1]) != "model":
        return False
    for whose, parts in _back(messages, index):
        if whose != "model" or results_of(parts):
            return False
        if _leaves_open(parts):
            return True
    return False


def _leaves_open(parts: Sequence[Dict]) -> bool:
    """Tell whether what a content asks is answered in another one: a call, code that did not run."""
    if any(key_in(part, "function_call") is not None for part in parts):
        return True
    return any(
        sum(key_in(part, asked) is not None for part in parts)
        > sum(key_in(part, answered) is not None for part in parts)
        for asked, answered in _OPENED
    )


def parts_for(owner: Any, parts: Sequence[Any]) -> Sequence[Any]:
    """Return parts as the class of a content holds them: objects in an object of the SDK's.

    Raises:
        FormatError: That class does not take them.
    """
    validate = item_of(type(owner), "model_validate")
    if not callable(validate):
        return parts
    try:
        made: Any = validate({"parts": list(parts)})
    except ValueError as error:
        raise FormatError(f"a {type(owner).__name__} cannot hold these parts: {error}") from error
    return made.parts or []


def unchecked_signature() -> str:
    """Write the value nobody checks as the wire holds a signature."""
    from base64 import b64encode  # not above: few signatures are lost

    return b64encode(UNCHECKED_SIGNATURE.encode()).decode("ascii")


def is_signed(part: Dict) -> bool:
    """Tell whether a part carries a thought signature."""
    return key_in(part, SIGNATURE) is not None


def _name_and_id(value: Any) -> tuple[str, str | None]:
    entry = as_dict(value) or {}
    return as_text(entry.get("name")) or "", as_text(entry.get("id"))


def _turn_before(messages: Sequence[Any], index: int) -> tuple[list[Call], list[Result]]:
    """List the calls a content's responses can answer, and the responses between, in order."""
    between: list[list[Result]] = []
    at = index - 1
    for _, parts in _back(messages, at):
        results = results_of(parts)
        if not results or calls_of(parts):
            break
        between.append(results)
        at -= 1
    turns: list[list[Call]] = []
    for whose, parts in _back(messages, at):
        calls = calls_of(parts)
        if not calls and whose != "model":
            break
        turns.append(list({call.id: call for call in calls}.values()))  # an id is one call's
    return (
        [call for calls in reversed(turns) for call in calls],
        [result for results in reversed(between) for result in results],
    )


def _back(messages: Sequence[Any], at: int) -> Iterator[tuple[Speaker, list[Dict]]]:
    for index in range(at, max(-1, at - _LOOK_BACK), -1):
        message = as_dict(messages[index]) or {}
        yield speaker(message), parts_in(message)


# Not part of the prompt: marks, settings of how a medium is sampled, and what the model heard.
_CARRIED = frozenset(
    {
        "thought",
        SIGNATURE,
        "video_metadata",
        "media_resolution",
        "media_processing",
        "part_metadata",
        "audio_transcription",
        "speech_metadata",
        "document_metadata",
        "spreadsheet_metadata",
        "audio_metadata",
    }
)
_SNAKE = str.maketrans({chr(code): f"_{chr(code + 32)}" for code in range(65, 91)})


PLACEHOLDER_CHARS = 64
"""Longest of the texts that the API takes in place of a signature ("skip_thought_signature_validator")."""


def pieces_of(message: Dict, write_json: Callable[[Any], str] = compact_json) -> Pieces:
    """List what of a content is charged for; see `Format.pieces`."""
    found = GeminiFound(write_json)
    listed = as_list(message.get("parts"))
    if listed is None:
        found.read_unknown(message.get("parts"))
    for value in listed or ():
        found.read_part(value)
    for key, value in message.items():
        if key not in ("role", "parts") and value is not None:
            found.read_unknown({key: value})
    parts = parts_in(message)
    if found.thoughts and not any(map(is_signed, parts)):
        found.texts[:0] = found.thoughts  # what no signature stands for is text (3 bills, 2026-11)
        found.thoughts = []
    results = results_of(parts)
    role = message.get("role")
    found.parts = len(listed or ())
    return found.pieces(
        "user" if role is None else role,
        result_id=results[0].id if len(results) == 1 else None,
        results=len(results),
    )


def json_without_data(value: Any, write_json: Callable[[Any], str] = compact_json) -> str:
    """Write what holds no encoded data as JSON.

    Args:
        value: The data.
        write_json: Writes it.

    Raises:
        KeyError: It may hold some.
        TypeError: It is no plain data.
    """
    text = plain_json(value)
    if _ENCODED in text:
        raise KeyError
    return text if write_json is compact_json else write_json(value)


_ENCODED = '"data'
"""Begins, in JSON, every key and every address that holds encoded data."""


def plain_words(message: Dict) -> str:
    """Return what a plain content says; see `Format.full_text`. It takes a few lookups.

    Raises:
        KeyError: It is not plain.
        TypeError: The same.
    """
    parts = message["parts"]
    if parts.__class__ is not list or len(message) != 2 or "role" not in message:
        raise KeyError
    texts, calls, others = [], [], []
    for part in parts:
        if len(part) != 1:
            raise KeyError
        (key,) = part
        data = part[key]
        if key == "text":
            if len(parts) == 1 and data.__class__ is str:
                words: str = data
                return words
            texts.append(data)
        elif key == "functionCall" and data["name"].__class__ is str and data["args"] is not None:
            calls.append(f"{data['name']} {json_without_data(data['args'])}")
        elif key == "functionResponse" and data["name"].__class__ is str and "parts" not in data:
            if data["response"] is None:
                raise KeyError
            others.append(json_without_data({"name": data["name"], "response": data["response"]}))
        else:
            raise KeyError
    return "\n".join(texts + calls + others)


class GeminiFound(Found):
    """What was found in one content so far."""

    __slots__ = ()

    noun = "a content"

    def without_url(self, value: Any) -> Any:
        """Return a value that holds no others, as the base class does, without bytes."""
        if not isinstance(value, bytes | bytearray):
            return super().without_url(value)
        self.media.append(Media("file", None, b64encode(value).decode("ascii"), None))
        return ""

    def takes(self, entry: Mapping[Any, Any], key: Any, item: Any) -> bool:
        """Tell whether a value is data whose type stands beside it."""
        if key != "data" or item is None or value_in(dict(entry), "mime_type") is None:
            return False
        self.read_medium(dict(entry), {})
        return True

    def read_part(self, value: Any) -> None:
        """Take one part: text, thought, call, response, medium, or unknown as JSON."""
        if isinstance(value, str):
            self.texts.append(value)
            return
        part = as_dict(value)
        if part is None:
            self.read_unknown(value)
            return
        for key, data in part.items():
            name = key.translate(_SNAKE) if isinstance(key, str) else ""
            if data is None or name in _CARRIED:
                continue
            if name == "text" and isinstance(data, str):
                (self.thoughts if part.get("thought") is True else self.texts).append(data)
            elif name == "function_call":
                self.read_call(data)
                self.read_signature(value_in(part, SIGNATURE))
            elif name == "function_response":
                self.read_response(data)
            elif name in ("inline_data", "file_data") and as_dict(data) is not None:
                self.read_medium(as_dict(data) or {}, part)
            else:
                self.read_unknown({key: data})

    def read_call(self, value: Any) -> None:
        """Take a function call: its name, and its arguments as JSON."""
        call = as_dict(value)
        if call is None:
            self.read_unknown({"functionCall": value})
            return
        args = call.get("args")
        self.calls.append((to_text(call.get("name")), "" if args is None else self.to_json(args)))

    def read_signature(self, value: Any) -> None:
        """Take the encrypted thought behind a call; what stands for one that is missing is short."""
        chars = (
            len(value) if isinstance(value, str) else len(value) * 4 // 3 if isinstance(value, bytes) else 0
        )
        self.sealed_chars += chars if chars > PLACEHOLDER_CHARS else 0

    def read_response(self, value: Any) -> None:
        """Take a function response: name and response as JSON, and the media beside them."""
        entry = as_dict(value)
        if entry is None:
            self.read_unknown({"functionResponse": value})
            return
        shown = {key: entry[key] for key in ("name", "response") if entry.get(key) is not None}
        self.read_unknown(shown)
        for part in as_list(entry.get("parts")) or ():
            self.read_part(part)

    def read_medium(self, entry: Dict, part: Dict) -> None:
        """Take `inlineData` (base64, or bytes in the SDK's objects) or `fileData` (a URI)."""
        data = entry.get("data")
        if isinstance(data, bytes | bytearray):
            data = b64encode(data).decode("ascii")
        self.media.append(
            Media(
                self.media_kind(value_in(entry, "mime_type")),
                _detail(value_in(part, "media_resolution")),
                as_text(data) or as_text(value_in(entry, "file_uri")),
                as_text(value_in(entry, "display_name")),
            )
        )


def _detail(resolution: Any) -> str | None:
    """Read `MEDIA_RESOLUTION_LOW` as "low"."""
    entry = as_dict(resolution)
    level = resolution if entry is None else entry.get("level")
    text = as_text(level.value if isinstance(level, Enum) else level)
    return None if text is None else text.removeprefix("MEDIA_RESOLUTION_").lower()
