"""Random bodies of Chat Completions, with all that form has."""

from __future__ import annotations

import json
from typing import Any

from trimtab.testing.writer import IMAGE, NAMES, Body, Message, Writer


class ChatWriter(Writer):
    """Messages with string, list and null content, refusals, images, custom and legacy calls."""

    def begin(self) -> None:
        """Write system messages."""
        for _ in range(self.random.choice((0, 1, 1, 2))):
            role = self.random.choice(("system", "system", "developer"))
            self.messages.append({"role": role, "content": self.content()})

    def head(self) -> Body:
        """Name the model."""
        return {"model": "gpt-4o"}

    def tail(self) -> Body:
        """Now and then give tools and an output schema."""
        tail: Body = {}
        if self.chance(0.5):
            function = {"name": "search", "parameters": {"type": "object", "properties": {}}}
            tail["tools"] = [{"type": "function", "function": function}]
        if self.chance(0.1):
            schema = {"name": "answer", "schema": {"type": "object"}}
            tail["response_format"] = {"type": "json_schema", "json_schema": schema}
        return tail

    def user(self) -> None:
        """Write a question, with an image or a file now and then."""
        if self.messages and self.chance(0.05):
            self.messages.append({"role": "system", "content": self.text()})
        message: Message = {"role": "user", "content": self.content()}
        if self.chance(0.25):
            message["content"] = [{"type": "text", "text": self.text()}, self.media()]
        if self.chance(0.1):
            message["name"] = "ann"
        self.messages.append(message)

    def answer(self) -> None:
        """Write an answer or a refusal."""
        message: Message = {"role": "assistant", "content": self.content()}
        if self.chance(0.08):
            message = {"role": "assistant", "content": None, "refusal": self.text()}
        elif self.chance(0.1):
            message["reasoning_content"] = self.text()
        self.messages.append(message)

    def exchange(self, count: int) -> None:
        """Call and answer at once; now and then in the legacy form."""
        if count == 1 and self.chance(0.08):
            call = {"name": "search", "arguments": "{}"}
            self.messages.append({"role": "assistant", "content": None, "function_call": call})
            self.messages.append({"role": "function", "name": "search", "content": self.text()})
            return
        for call_id in self.shuffled(self.call(count)):
            self.result(call_id)

    def open(self, count: int) -> None:
        """Call, and answer all but the last."""
        for call_id in self.call(count)[: -1 if self.chance(0.5) else 0]:
            self.result(call_id)

    def call(self, count: int) -> list[str]:
        """Call so many tools in one message."""
        ids = [self.new_id("call_") for _ in range(count)]
        calls = [self.one_call(call_id) for call_id in ids]
        content = self.random.choice((None, "", self.text()))
        self.messages.append({"role": "assistant", "content": content, "tool_calls": calls})
        return ids

    def one_call(self, call_id: str) -> Message:
        """Call a function, or a tool that takes text."""
        if self.chance(0.08):
            return {"id": call_id, "type": "custom", "custom": {"name": "patch", "input": self.text()}}
        function = {"name": self.random.choice(NAMES), "arguments": json.dumps(self.arguments())}
        return {"id": call_id, "type": "function", "function": function}

    def result(self, call_id: str) -> None:
        """Answer one call."""
        self.messages.append({"role": "tool", "tool_call_id": call_id, "content": self.content()})

    def content(self) -> Any:
        """Write text, as a string or as parts."""
        if self.chance(0.8):
            return self.text()
        return [{"type": "text", "text": self.text()} for _ in range(self.random.randint(1, 3))]

    def media(self) -> Message:
        """Show an image, or hand over a file or a sound."""
        data = f"data:image/png;base64,{IMAGE}"
        return self.random.choice(
            (
                {"type": "image_url", "image_url": {"url": data, "detail": "low"}},
                {"type": "image_url", "image_url": {"url": "https://example.org/cat.png"}},
                {
                    "type": "file",
                    "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="},
                },
                {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
            )
        )
