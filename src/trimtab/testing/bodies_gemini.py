"""Random bodies of Gemini's generateContent, with all that form has."""

from __future__ import annotations

from random import Random
from typing import Any

from trimtab.testing.writer import IMAGE, NAMES, SIGNATURE, Body, Message, Writer


class GeminiWriter(Writer):
    """Contents of parts: calls with and without ids, thought signatures, files, code run by the provider."""

    key = "contents"
    parts_key = "parts"

    def __init__(self, random: Random, valid: bool) -> None:
        super().__init__(random, valid)
        self.has_ids = self.chance(0.4)
        """Calls and responses name each other; without ids their order does."""
        self.signs = self.chance(0.5)
        """Turns of the model carry signatures of its thoughts, as newer models give them."""

    def head(self) -> Body:
        """Give system text now and then."""
        if self.chance(0.5):
            return {}
        return {"systemInstruction": {"parts": [{"text": self.text()}]}}

    def tail(self) -> Body:
        """Give the tools the conversation uses."""
        declared = [{"name": name, "parameters": {"type": "OBJECT", "properties": {}}} for name in NAMES]
        return {"tools": [{"functionDeclarations": declared}]}

    def user(self) -> None:
        """Write a question, with a picture or a file now and then."""
        parts: list[Any] = [{"text": self.text()}]
        if self.chance(0.2):
            parts.insert(0, self.media())
        if self.chance(0.2):
            parts.append({"text": self.text()})
        self.messages.append({"role": "user", "parts": parts})

    def answer(self) -> None:
        """Write an answer, after thoughts or code the provider ran."""
        parts = self.thoughts()
        if self.chance(0.08):
            parts.append({"executableCode": {"language": "PYTHON", "code": "print(1)"}})
            parts.append({"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1\n"}})
        parts.append(self.signed({"text": self.text()}))
        self.messages.append({"role": "model", "parts": parts})

    def exchange(self, count: int) -> None:
        """Call, and answer in one content."""
        parts = [self.response(name, call_id) for name, call_id in self.call(count)]
        if self.has_ids:
            parts = self.shuffled(parts)
        if self.chance(0.08):
            parts.append({"text": self.text()})
        self.messages.append({"role": "user", "parts": parts})

    def open(self, count: int) -> None:
        """Call, and answer nothing."""
        self.call(count)

    def call(self, count: int) -> list[tuple[str, str | None]]:
        """Call so many functions in one content; the first of them carries the signature."""
        parts = self.thoughts()
        if self.chance(0.3):
            parts.append({"text": self.text()})
        made: list[tuple[str, str | None]] = []
        for at in range(count):
            call: Message = {"name": self.random.choice(NAMES), "args": self.arguments()}
            call_id = self.new_id("fc_") if self.has_ids else None
            if call_id is not None:
                call["id"] = call_id
            part: Message = {"functionCall": call}
            parts.append(part if at else self.signed(part))
            made.append((call["name"], call_id))
        self.messages.append({"role": "model", "parts": parts})
        return made

    def response(self, name: str, call_id: str | None) -> Message:
        """Answer a call."""
        key = self.random.choice(("result", "output", "error"))
        response: Message = {"name": name, "response": {key: self.text()}}
        if self.chance(0.1):
            response["response"] = {"rows": [{"title": self.text(), "n": 1}], "ok": True}
        if call_id is not None:
            response["id"] = call_id
        return {"functionResponse": response}

    def thoughts(self) -> list[Message]:
        """Think in the open now and then."""
        return [{"text": self.text(), "thought": True}] if self.chance(0.2) else []

    def signed(self, part: Message) -> Message:
        """Sign a part, where the model signs."""
        return {**part, "thoughtSignature": SIGNATURE} if self.signs else part

    def media(self) -> Message:
        """Show a picture, or name a file kept at the provider."""
        inline = {"inlineData": {"mimeType": "image/png", "data": IMAGE}}
        kept = {"fileData": {"mimeType": "application/pdf", "fileUri": "https://example.org/files/1"}}
        return self.random.choice((inline, kept))
