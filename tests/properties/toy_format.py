"""A made-up wire form with what real ones have and Chat Completions has not.

System text stands outside. A message is a role and a list of parts; one user message may hold the
results of several calls and the user's own words. A "thought" stands and falls with the message
after it. Only a user message with words may come first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trimtab.formats import Fault, Format, Kind, Path, Pieces, Request, Rules, Structure, TextSlot, mapping_of

Message = dict[str, Any]


def words(text: str) -> dict[str, Any]:
    """Make a part of text."""
    return {"type": "words", "text": text}


def asks(call_id: str) -> dict[str, Any]:
    """Make a part that calls a tool."""
    return {"type": "asks", "id": call_id, "tool": "look", "input": "x"}


def answers(call_id: str, text: str) -> dict[str, Any]:
    """Make a part that answers a call."""
    return {"type": "answers", "id": call_id, "text": text}


def said(role: str, *parts: dict[str, Any]) -> Message:
    """Make a message."""
    return {"role": role, "parts": list(parts)}


class ToyFormat(Format):
    """The wire form of this file; see `Format` for what each method does."""

    name = "toy"
    rules = Rules(
        results_follow_call=False, system_in_messages=False, ordered=True, body_key="turns", parts_key="parts"
    )

    def kind(self, message: Message, /) -> Kind:
        """Tell whom it is from: a user message without words is a tool's."""
        if message.get("role") == "user":
            return "user" if _at(message, "words") or not message.get("parts") else "tool"
        return "assistant" if message.get("role") == "assistant" else "other"

    def scan(self, messages: list[Any], start: int, stop: int, structure: Structure, /) -> None:
        """Read calls, results by part, words beside results, and thoughts."""
        for index in range(start, stop):
            message = structure.read_as_dict(messages, index)
            structure.kinds[index] = self.kind(message)
            if message["role"] == "thought":
                structure.bound.add(index)
            if calls := _at(message, "asks"):
                structure.calls[index] = tuple(message["parts"][at]["id"] for at in calls)
            if results := _at(message, "answers"):
                structure.answers[index] = tuple((message["parts"][at]["id"], at) for at in results)
                if rest := tuple(at for at in range(len(message["parts"])) if at not in results):
                    structure.loose[index] = rest

    def newest(self, messages: list[Any], kind: Kind, after: int, index: int, /) -> int:
        """Find the newest message of a kind in `(after, index]`; -1 if there is none."""
        return next((at for at in range(index, after, -1) if self.kind(mapping_of(messages[at])) == kind), -1)

    def order_fault(
        self, previous: Message | None, message: Message, /, *, parted: bool = False
    ) -> str | None:
        """Insist on words of the user first."""
        return None if previous is not None or self.kind(message) == "user" else "begins without the user"

    def texts(self, message: Message, /) -> list[TextSlot]:
        """List words and results."""
        return [
            TextSlot(("parts", at, "text"), part["text"], part["type"] == "answers")
            for at, part in enumerate(_parts(message))
            if "text" in part
        ]

    def with_texts(self, message: Any, texts: Mapping[Path, str], /) -> Any:
        """Copy with texts replaced."""
        new = {path[1]: text for path, text in texts.items()}
        parts = [{**p, "text": new[at]} if at in new else p for at, p in enumerate(message["parts"])]
        return {**message, "parts": parts}

    def without_parts(self, message: Any, parts: Sequence[int], /) -> Any:
        """Copy without those parts."""
        return {**message, "parts": [p for at, p in enumerate(message["parts"]) if at not in parts]}

    def without_calls(self, message: Any, call_ids: frozenset[str], /) -> Any | None:
        """Copy without those calls."""
        parts = [p for p in message["parts"] if p["type"] != "asks" or p["id"] not in call_ids]
        return {**message, "parts": parts} if parts else None

    def join_results(self, message: Any, other: Any, /) -> Any:
        """Copy with the results of another message behind its own."""
        return {
            **message,
            "parts": [*message["parts"], *(p for p in other["parts"] if p["type"] == "answers")],
        }

    def tool_names(self, message: Message, /) -> dict[str, str]:
        """Name the tools called."""
        return {part["id"]: part["tool"] for part in _parts(message) if part["type"] == "asks"}

    def pieces(self, message: Message, /) -> Pieces:
        """List words, results and calls."""
        parts = _parts(message)
        return Pieces(
            role=str(message.get("role")),
            texts=tuple(part["text"] for part in parts if "text" in part),
            calls=tuple((part["tool"], part["input"]) for part in parts if "tool" in part),
            parts=len(parts),
        )

    def faults(self, messages: list[Any], request: Request | None = None, /) -> list[Fault]:
        """Find no fault with the shape of anything."""
        return []

    def read_request(self, body: Mapping[str, Any], /) -> Request:
        """Take a body apart."""
        return Request(messages=body["turns"], system=body.get("system"), body=body, key="turns")

    def write_request(self, request: Request, messages: list[Any], /) -> Any:
        """Put messages back."""
        if request.body is None:
            return messages
        system = {} if request.system is None else {"system": request.system}
        return {**request.body, **system, "turns": messages}

    def redact(self, message: Message, /) -> Message:
        """Blank every text, and keep what calls and answers."""
        parts = message.get("parts", ())
        blanked = [{key: _BLANK.get(key, value) for key, value in part.items()} for part in parts]
        return {"role": message.get("role"), "parts": blanked}

    def tool_schema(self, name: str, /, *, description: str, parameters: Message) -> Message:
        """Name it."""
        return {"tool": name, "about": description, "takes": parameters}

    def matches(self, message: Message, /) -> bool:
        """Tell by the kinds of its parts."""
        return any(part.get("type") in ("words", "asks", "answers") for part in _parts(message))

    def message(self, role: str, parts: Sequence[Any], /) -> Message:
        """Make a message of texts and parts."""
        return said(role, *(words(part) if isinstance(part, str) else part for part in parts))

    def with_role(self, message: Any, role: str, /) -> Any:
        """Copy with another role."""
        return {**message, "role": role}

    def with_text(self, message: Any, text: str, /) -> Any:
        """Copy with one text for content."""
        return {**message, "parts": [words(text)]}

    def with_cache_control(self, message: Any, value: Any, /) -> Any:
        """Copy with a mark."""
        return {**message, "cache": value}

    def lift_system(self, messages: Sequence[Any], system: Any, /) -> Any:
        """Return the system text: no message of this form is one."""
        return system

    def transcript(self, message: Message, /) -> str:
        """Write it for reading."""
        said = " ".join(part.get("text") or f"[{part['type']}]" for part in _parts(message))
        return f"{message.get('role')}: {said}"


def _parts(message: Message) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = message.get("parts", [])
    return parts


_BLANK = {"text": "[redacted]", "tool": "redacted", "input": ""}


def _at(message: Message, kind: str) -> list[int]:
    return [at for at, part in enumerate(_parts(message)) if part["type"] == kind]
