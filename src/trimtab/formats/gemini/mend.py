"""What can be mended in a content of Gemini's that is refused for its shape."""

from __future__ import annotations

from typing import Any

from trimtab.formats.gemini.faults import PART_KEYS, checks_signatures, takes_functions_role
from trimtab.formats.gemini.read import (
    DATA_KEYS,
    SIGNATURE,
    calls_of,
    is_signed,
    key_in,
    parts_in,
    snake,
    unchecked_signature,
)
from trimtab.formats.values import Dict, as_dict, as_list, says_elsewhere


def mended_of(message: Dict, model: str) -> Dict | None:
    """Return the content as the API takes it, as far as nothing has to be made up; see `Format.mend`."""
    if says_elsewhere(message, "parts"):
        return message
    made = {key: value for key, value in message.items() if key in ("role", "parts")}
    if made.get("role") == "assistant":
        made["role"] = "model"
    elif made.get("role") in ("function", "tool") and not takes_functions_role(model):
        made["role"] = "user"
    listed = made.get("parts")
    parts = [listed] if isinstance(listed, str) else as_list(listed)
    if parts is None:
        return None if listed is None else message
    kept = [part for part in map(_part, parts) if part is not None]
    if not kept:
        return None
    made["parts"] = kept
    if checks_signatures(model):
        _sign(made)
    return message if made == message else made


def _part(value: Any) -> Any:
    """Mend a part; None if it holds nothing."""
    part = {"text": value} if isinstance(value, str) else as_dict(value)
    if part is None:
        return value
    made = {key: one for key, one in part.items() if one is None or snake(key) in PART_KEYS}
    if not is_signed(made) and all(key_in(made, name) is None for name in DATA_KEYS):
        return None
    for name, field in (("function_call", "args"), ("function_response", "response")):
        key = key_in(made, name)
        held = None if key is None else as_dict(made[key])
        if (
            key is not None
            and held is not None
            and isinstance(held.get(field), str)
            and name != "function_call"
        ):
            made[key] = {**held, field: {"result": held[field]}}
    return made


def _sign(message: Dict) -> None:
    """Sign the first call of a step as Google says for calls of others, where no call there is signed."""
    parts = parts_in(message)
    calls = calls_of(parts)
    if calls and not any(map(is_signed, parts)):
        at = calls[0].part
        spelled = "thoughtSignature" if "functionCall" in parts[at] else SIGNATURE
        message["parts"] = [*message["parts"]]
        message["parts"][at] = {**parts[at], spelled: unchecked_signature()}
