"""Random bodies of OpenAI's Responses API, with all that form has."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

from trimtab.testing.writer import IMAGE, NAMES, SIGNATURE, Body, Message, Writer


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
