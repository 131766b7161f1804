"""Random request bodies written piece by piece: every order of parts may come, those nobody recorded too.

The package's own (`trimtab.testing.request_bodies`) are made of recorded exchanges.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

from trimtab.testing import spoil_messages

Message = dict[str, Any]


Body = dict[str, Any]

_PLAIN_WORDS = (
    *("the", "a", "of", "to", "is", "it", "you", "search", "file", "error", "weather", "please", "why"),
    *("naïve", "Straße", "東京", "天气", "привет", "👩‍👩‍👧", "e\u0301", "<|endoftext|>", "{}", "[]", "\n\n"),
)
ODD_TEXTS = ("", " ", "\x00", "\ud800 alone", "<|im_start|>system", "a" * 300, "no spaces " * 40, "\t" * 90)
_LENGTHS = (1, 1, 2, 2, 3, 5, 8, 8, 20, 50)
IMAGE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
"""A PNG of one pixel."""
SIGNATURE = "EqoBCkYIBxABGAIqQL"
NAMES = ("search", "read_file", "run")


class Writer:
    """Writes one request body: questions, rounds of calls with their results, answers.

    A subclass says how each of these is spelled, and what else may stand there.
    """

    key = "messages"
    """Key of the body that holds the messages."""

    def __init__(self, random: Random, valid: bool) -> None:
        self.random = random
        self.valid = valid
        self.messages: list[Message] = []
        self.made = 0

    def body(self, max_messages: int) -> Body:
        """Write the body."""
        self.begin()
        self.converse(max_messages)
        return {**self.head(), self.key: self.messages, **self.tail()}

    def converse(self, max_messages: int) -> None:
        """Write turns up to about so many messages, and end anywhere in the last of them."""
        random = self.random
        target = random.randint(1, max_messages)
        while True:
            self.user()
            for _ in range(random.choice((0, 1, 1, 2, 3))):
                if len(self.messages) >= target:
                    break
                self.exchange(random.choice((1, 1, 1, 2, 3)))
            if len(self.messages) >= target:
                break
            if self.chance(0.85):
                self.answer()
        end = random.random()
        if end < 0.15:
            self.answer()
        elif end < 0.3:
            self.open(random.choice((1, 1, 2)))

    # -- what a form spells

    def begin(self) -> None:
        """Write what stands before the first question."""

    def head(self) -> Body:
        """Give what of the body stands before the messages."""
        return {}

    def tail(self) -> Body:
        """Give what of the body stands behind the messages."""
        return {}

    def user(self) -> None:
        """Write a question."""
        raise NotImplementedError

    def answer(self) -> None:
        """Write what the model says without calling anything."""
        raise NotImplementedError

    def exchange(self, count: int) -> None:
        """Write so many calls at once, and their results."""
        raise NotImplementedError

    def open(self, count: int) -> None:
        """Write so many calls at once, and no result, or not all."""
        raise NotImplementedError

    # -- what all share

    def chance(self, share: float) -> bool:
        """Decide by lot."""
        return self.random.random() < share

    def text(self) -> str:
        """Write some words; never blank where the conversation must be valid."""
        random = self.random
        if not self.valid and random.random() < 0.06:
            return random.choice(ODD_TEXTS)
        words = random.choices(_PLAIN_WORDS, k=random.choice(_LENGTHS))
        return "the " + " ".join(words) + " end"

    def new_id(self, prefix: str) -> str:
        """Make an id nothing else has."""
        self.made += 1
        return f"{prefix}{self.made}"

    def shuffled(self, entries: list[Any]) -> list[Any]:
        """Return the entries, now and then in another order."""
        if len(entries) > 1 and self.chance(0.3):
            self.random.shuffle(entries)
        return entries

    def arguments(self) -> dict[str, Any]:
        """Make the arguments of a call."""
        return self.random.choice(({}, {"q": "a b"}, {"path": "x" * 30, "lines": [1, 2]}))


# Random bodies of Anthropic's Messages API, with all that form has.


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


# Random bodies of Gemini's generateContent, with all that form has.


class GeminiWriter(Writer):
    """Contents of parts: calls with and without ids, thought signatures, files, code run by the provider."""

    key = "contents"

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


# Random bodies of Chat Completions, with all that form has.


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


# Random bodies of OpenAI's Responses API, with all that form has.


class ResponsesWriter(Writer):
    """Items: calls and outputs of every kind, reasoning before them, tools of the provider's, compaction."""

    key = "input"

    def __init__(self, random: Random, valid: bool) -> None:
        super().__init__(random, valid)
        self.thinks = self.chance(0.5)
        """Turns of the model begin with reasoning, as reasoning models give them."""
        self.encrypts = self.chance(0.5)
        self.kinds: tuple[Callable[[], tuple[Message, Message]], ...] = (
            *(self.function,) * 12,
            *(self.custom, self.computer, self.local_shell, self.shell, self.patch),
        )

    def begin(self) -> None:
        """Write leading system items."""
        for _ in range(self.random.choice((0, 0, 0, 1, 2))):
            role = self.random.choice(("system", "developer"))
            self.messages.append({"role": role, "content": self.content()})
        if self.chance(0.08):
            self.messages.append(
                {"type": "compaction", "id": self.new_id("cmp_"), "encrypted_content": SIGNATURE * 4}
            )

    def head(self) -> Body:
        """Name the model, and give instructions."""
        head: Body = {"model": "gpt-5"}
        if self.chance(0.5):
            head["instructions"] = self.text()
        return head

    def tail(self) -> Body:
        """Give tools, and an output schema now and then."""
        tool = {"type": "function", "name": "search", "parameters": {"type": "object"}, "strict": False}
        tail: Body = {"tools": [tool]}
        if self.chance(0.1):
            tail["text"] = {"format": {"type": "json_schema", "name": "answer", "schema": {"type": "object"}}}
        return tail

    def user(self) -> None:
        """Write a question."""
        item: Message = {"role": "user", "content": self.content()}
        if self.chance(0.3):
            item = {"type": "message", **item}
        if self.chance(0.2):
            item["content"] = [{"type": "input_text", "text": self.text()}, self.media()]
        self.messages.append(item)

    def answer(self) -> None:
        """Write an answer, after reasoning and tools of the provider's."""
        self.think()
        if self.chance(0.15):
            self.messages.append(self.built_in())
            self.think()
        if not self.thinks and self.chance(0.4):
            self.messages.append({"role": "assistant", "content": self.text()})
            return
        content: Message = {"type": "output_text", "text": self.text(), "annotations": []}
        if self.chance(0.05):
            content = {"type": "refusal", "refusal": self.text()}
        self.messages.append(
            {
                "type": "message",
                "id": self.new_id("msg_"),
                "role": "assistant",
                "status": "completed",
                "content": [content],
            }
        )
        if self.chance(0.04):
            self.messages.append(
                {"type": "compaction", "id": self.new_id("cmp_"), "encrypted_content": SIGNATURE * 4}
            )

    def exchange(self, count: int) -> None:
        """Call, and answer; outputs may stand behind all the calls or each behind its own."""
        self.think()
        pairs = [self.random.choice(self.kinds)() for _ in range(count)]
        if self.chance(0.3):
            self.messages.extend(item for pair in pairs for item in pair)
            return
        self.messages.extend(call for call, _ in pairs)
        if self.chance(0.05):
            self.messages.append({"role": "user", "content": self.text()})
        self.messages.extend(self.shuffled([output for _, output in pairs]))

    def open(self, count: int) -> None:
        """Call, and answer all but the last, or nothing."""
        self.think()
        pairs = [self.function() for _ in range(count)]
        self.messages.extend(call for call, _ in pairs)
        if self.chance(0.5):
            self.messages.extend(output for _, output in pairs[:-1])

    def think(self) -> None:
        """Reason, where the model does."""
        if not self.thinks:
            return
        summary = [{"type": "summary_text", "text": self.text()}] if self.chance(0.5) else []
        item: Message = {"type": "reasoning", "id": self.new_id("rs_"), "summary": summary}
        if self.encrypts:
            item["encrypted_content"] = SIGNATURE * 5
        self.messages.append(item)

    # -- calls and their outputs

    def function(self) -> tuple[Message, Message]:
        """Call a function."""
        call_id, arguments = self.new_id("call_"), json.dumps(self.arguments())
        call = {
            "type": "function_call",
            "id": self.new_id("fc_"),
            "call_id": call_id,
            "name": self.random.choice(NAMES),
            "arguments": arguments,
            "status": "completed",
        }
        return call, {"type": "function_call_output", "call_id": call_id, "output": self.output()}

    def custom(self) -> tuple[Message, Message]:
        """Call a tool that takes text."""
        call_id = self.new_id("call_")
        call = {"type": "custom_tool_call", "call_id": call_id, "name": "grammar", "input": self.text()}
        return call, {"type": "custom_tool_call_output", "call_id": call_id, "output": self.text()}

    def computer(self) -> tuple[Message, Message]:
        """Let a computer be used."""
        call_id = self.new_id("call_")
        call = {
            "type": "computer_call",
            "id": self.new_id("cu_"),
            "call_id": call_id,
            "action": {"type": "screenshot"},
            "pending_safety_checks": [],
            "status": "completed",
        }
        shot = {"type": "computer_screenshot", "image_url": f"data:image/png;base64,{IMAGE}"}
        return call, {"type": "computer_call_output", "call_id": call_id, "output": shot}

    def local_shell(self) -> tuple[Message, Message]:
        """Let a command run on the user's machine."""
        call_id, action = self.new_id("call_"), {"type": "exec", "command": ["ls"], "env": {}}
        call = {
            "type": "local_shell_call",
            "id": self.new_id("lsh_"),
            "call_id": call_id,
            "action": action,
            "status": "completed",
        }
        output = {"type": "local_shell_call_output", "id": self.new_id("lsho_"), "call_id": call_id}
        return call, {**output, "output": self.text()}

    def shell(self) -> tuple[Message, Message]:
        """Let commands run in a shell."""
        call_id = self.new_id("call_")
        call = {"type": "shell_call", "call_id": call_id, "action": {"commands": ["ls", "pwd"]}}
        out = {"stdout": self.text(), "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}
        return call, {"type": "shell_call_output", "call_id": call_id, "output": [out]}

    def patch(self) -> tuple[Message, Message]:
        """Let a file be changed."""
        call_id = self.new_id("call_")
        operation = {"type": "delete_file", "path": "a.txt"}
        call = {"type": "apply_patch_call", "call_id": call_id, "operation": operation, "status": "completed"}
        output = {"type": "apply_patch_call_output", "call_id": call_id, "status": "completed"}
        return call, {**output, "output": self.text()}

    def built_in(self) -> Message:
        """Use a tool the provider runs, result and all in one item."""
        mcp = {
            "type": "mcp_call",
            "id": self.new_id("mcp_"),
            "server_label": "one",
            "name": "echo",
            "arguments": "{}",
            "output": self.text(),
        }
        search = {
            "type": "web_search_call",
            "id": self.new_id("ws_"),
            "status": "completed",
            "action": {"type": "search", "query": "tea"},
        }
        code = {
            "type": "code_interpreter_call",
            "id": self.new_id("ci_"),
            "code": "print(1)",
            "container_id": "cntr_1",
            "status": "completed",
            "outputs": [{"type": "logs", "logs": "1"}],
        }
        listed = {"type": "mcp_list_tools", "id": self.new_id("mcpl_"), "server_label": "one", "tools": []}
        return self.random.choice((mcp, search, code, listed))

    # -- contents

    def content(self) -> Any:
        """Write what somebody says, as a string or as parts."""
        if self.chance(0.7):
            return self.text()
        return [{"type": "input_text", "text": self.text()} for _ in range(self.random.randint(1, 2))]

    def output(self) -> Any:
        """Write what a function gives back."""
        if self.chance(0.8):
            return self.text()
        parts: list[Message] = [{"type": "input_text", "text": self.text()}]
        return [*parts, self.media()] if self.chance(0.4) else parts

    def media(self) -> Message:
        """Show an image or hand over a file."""
        image = {"type": "input_image", "detail": "low", "image_url": f"data:image/png;base64,{IMAGE}"}
        file = {
            "type": "input_file",
            "filename": "a.pdf",
            "file_data": "data:application/pdf;base64,JVBERi0=",
        }
        return self.random.choice((image, file))


_WRITERS: dict[str, type[Writer]] = {
    "openai_chat": ChatWriter,
    "openai_responses": ResponsesWriter,
    "anthropic": AnthropicWriter,
    "gemini": GeminiWriter,
}


def request_body(form: str, seed: str, valid: bool, max_messages: int) -> Body:
    """Make one request body."""
    writer_type = _WRITERS[form]
    random = Random(f"{form}/{seed}")
    writer = writer_type(random, valid)
    body = writer.body(max_messages)
    if not valid:
        spoil_messages(body[writer.key], random, format=form)
    return body
