"""Random bodies of Anthropic's Messages API, with all that form has."""

from __future__ import annotations

from random import Random
from typing import Any

from trimtab.testing.writer import IMAGE, NAMES, SIGNATURE, Body, Message, Writer

_CACHE = {"type": "ephemeral"}


class AnthropicWriter(Writer):
    """Content blocks: parallel results in one message, thinking, server tools, compaction, documents."""

    def __init__(self, random: Random, valid: bool) -> None:
        super().__init__(random, valid)
        self.thinks = self.chance(0.4)
        """Every turn of the model begins with thinking, as the API gives it where that is on."""
        self.runs_tools = self.chance(0.3)
        """The provider runs tools of its own."""

    def head(self) -> Body:
        """Name the model, and give system text and thinking."""
        head: Body = {"model": "claude-sonnet-4-5", "max_tokens": 4096}
        if self.chance(0.5):
            block: Message = {"type": "text", "text": self.text()}
            if self.chance(0.3):
                block["cache_control"] = _CACHE
            head["system"] = block["text"] if self.chance(0.5) else [block]
        if self.thinks:
            head["thinking"] = {"type": "enabled", "budget_tokens": 1024}
        return head

    def tail(self) -> Body:
        """Give the tools the conversation uses."""
        tools: list[Message] = [{"name": name, "input_schema": {"type": "object"}} for name in NAMES]
        if self.runs_tools:
            tools.append({"type": "web_search_20250305", "name": "web_search"})
        return {"tools": tools}

    def user(self) -> None:
        """Write a question as a string or as blocks."""
        if self.chance(0.55):
            self.messages.append({"role": "user", "content": self.text()})
            return
        blocks = [self.said()]
        if self.chance(0.4):
            blocks.insert(0, self.media())
        if self.chance(0.2):
            blocks.append(self.said())
        if self.chance(0.1):
            blocks[-1]["cache_control"] = _CACHE
        self.messages.append({"role": "user", "content": blocks})

    def answer(self) -> None:
        """Write an answer, after thinking, compaction or a search of the provider's."""
        blocks = self.thoughts()
        if not blocks and self.chance(0.5):
            self.messages.append({"role": "assistant", "content": self.text()})
            return
        if self.chance(0.06):
            blocks.insert(0, {"type": "compaction", "content": self.text()})
        blocks += self.server_tools()
        self.messages.append({"role": "assistant", "content": [*blocks, self.said()]})

    def exchange(self, count: int) -> None:
        """Call, and answer in one message, with words of the user behind the results now and then."""
        ids = self.call(count)
        results = self.shuffled([self.result(call_id) for call_id in ids])
        if self.chance(0.15):
            results.append(self.said())
        self.messages.append({"role": "user", "content": results})

    def open(self, count: int) -> None:
        """Call, and answer nothing."""
        self.call(count)

    def call(self, count: int) -> list[str]:
        """Call so many tools in one message."""
        ids = [self.new_id("toolu_") for _ in range(count)]
        blocks = self.thoughts() + self.server_tools()
        if self.chance(0.4):
            blocks.append(self.said())
        for call_id in ids:
            name = self.random.choice(NAMES)
            blocks.append({"type": "tool_use", "id": call_id, "name": name, "input": self.arguments()})
        self.messages.append({"role": "assistant", "content": blocks})
        return ids

    def result(self, call_id: str) -> Message:
        """Answer a call with text, blocks, an image, or nothing."""
        block: Message = {"type": "tool_result", "tool_use_id": call_id}
        kind = self.random.random()
        if kind < 0.6:
            block["content"] = self.text()
        elif kind < 0.8:
            block["content"] = [self.said() for _ in range(self.random.randint(1, 2))]
        elif kind < 0.9:
            block["content"] = [self.said(), self.image()]
        if self.chance(0.1):
            block["is_error"] = True
            block.setdefault("content", "failed")
        return block

    def thoughts(self) -> list[Message]:
        """Think, in the open or redacted."""
        if not self.thinks:
            return []
        thought: Message = {"type": "thinking", "thinking": self.text(), "signature": SIGNATURE}
        hidden: Message = {"type": "redacted_thinking", "data": SIGNATURE * 2}
        return self.random.choice(([thought], [thought], [hidden], [thought, hidden]))

    def server_tools(self) -> list[Message]:
        """Use a tool that the provider or an MCP server runs: call and result in one message."""
        if not self.runs_tools or self.chance(0.6):
            return []
        if self.chance(0.3):
            call_id = self.new_id("mcptoolu_")
            call = {"type": "mcp_tool_use", "id": call_id, "name": "echo", "server_name": "one", "input": {}}
            said = [{"type": "text", "text": self.text()}]
            return [
                call,
                {"type": "mcp_tool_result", "tool_use_id": call_id, "is_error": False, "content": said},
            ]
        call_id = self.new_id("srvtoolu_")
        use = {"type": "server_tool_use", "id": call_id, "name": "web_search", "input": {"query": "tea"}}
        found = {
            "type": "web_search_result",
            "url": "https://example.org",
            "title": "Tea",
            "encrypted_content": SIGNATURE * 3,
        }
        return [use, {"type": "web_search_tool_result", "tool_use_id": call_id, "content": [found]}]

    def said(self) -> Message:
        """Write a block of text."""
        return {"type": "text", "text": self.text()}

    def image(self) -> Message:
        """Show an image."""
        source: Any = {"type": "base64", "media_type": "image/png", "data": IMAGE}
        if self.chance(0.3):
            source = {"type": "url", "url": "https://example.org/cat.png"}
        return {"type": "image", "source": source}

    def media(self) -> Message:
        """Show an image or hand over a document."""
        if self.chance(0.5):
            return self.image()
        pdf: Any = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0xLjQK"}
        plain: Any = {"type": "text", "media_type": "text/plain", "data": self.text()}
        return {"type": "document", "source": self.random.choice((pdf, plain)), "title": "A page"}
