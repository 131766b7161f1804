"""What redaction leaves of a content of Gemini."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trimtab.formats.base import Dict
from trimtab.formats.gemini.read import SIGNATURE, key_in, unchecked_signature
from trimtab.formats.redaction import REDACTED, texts_of_ids
from trimtab.formats.values import as_list


def redacted_of(message: Dict) -> Dict:
    """Return a content that says nothing any more.

    What stays is its role, and of calls and responses which they are: names too, since they pair. A call
    that was signed gets the value Google names for one without its signature.
    """
    made: Dict = texts_of_ids(message, "role")
    parts = as_list(message.get("parts"))
    if parts is not None:
        left = [_part(part) for part in parts if not _is_thought(part)]
        made["parts"] = left or [{"text": REDACTED}]
    return made


def _is_thought(part: Any) -> bool:
    """Tell whether a part is a thought, or nothing but the signature of one."""
    if not isinstance(part, dict):
        return False
    return part.get("thought") is True or not any(
        value is not None and key not in ("thought", "thoughtSignature", SIGNATURE)
        for key, value in part.items()
    )


def _part(part: Any) -> Dict:
    for name, blanked in _BLANKED.items():
        key = key_in(part, name) if isinstance(part, dict) else None
        if key is not None:
            made: Dict = {key: blanked(part[key] if isinstance(part[key], dict) else {})}
            signed = key_in(part, SIGNATURE)
            if signed is not None and name == "function_call":
                made[signed] = unchecked_signature()
            return made
    return {"text": REDACTED}


def _call(call: Dict) -> Dict:
    return {**texts_of_ids(call, "id", "name"), "args": {}}


def _response(response: Dict) -> Dict:
    return {**texts_of_ids(response, "id", "name"), "response": {"result": REDACTED}}


def _code(code: Dict) -> Dict:
    return {**texts_of_ids(code, "id", "language"), "code": f"# {REDACTED}"}


def _code_result(result: Dict) -> Dict:
    return {**texts_of_ids(result, "id", "outcome"), "output": REDACTED}


def _tool(tool: Dict) -> Dict:
    return texts_of_ids(tool, "id", "toolType", "tool_type")


_BLANKED: dict[str, Callable[[Dict], Dict]] = {
    "function_call": _call,
    "function_response": _response,
    "executable_code": _code,
    "code_execution_result": _code_result,
    "tool_call": _tool,
    "tool_response": _tool,
}
"""Parts that belong to another one, and so stay what they are."""
