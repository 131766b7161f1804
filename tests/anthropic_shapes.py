"""Messages of Anthropic's API in one readable line each, and the anthropic package's own opinion."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

from anthropic.types import Message as SDKMessage
from anthropic.types import MessageParam, TextBlock, ThinkingBlock, ToolUseBlock, Usage
from anthropic.types import beta as beta_types
from pydantic import TypeAdapter, ValidationError
from typing_extensions import is_typeddict

from tests.chat_shapes import read_all

SIGNATURE = "EqwCCmMIDxgCKkAqDq8szuZd3fCFfIa5z"
Message = dict[str, Any]


def text(said: str = "hi", **more: Any) -> Message:
    """Make a block of text."""
    return {"type": "text", "text": said, **more}


def thinking(thought: str = "hm", signature: str = SIGNATURE) -> Message:
    """Make a thinking block."""
    return {"type": "thinking", "thinking": thought, "signature": signature}


def redacted() -> Message:
    """Make a thinking block nobody can read."""
    return {"type": "redacted_thinking", "data": SIGNATURE}


def use(call_id: Any = "a", name: str = "look", **given: Any) -> Message:
    """Make a call."""
    return {"type": "tool_use", "id": call_id, "name": name, "input": given}


def result(call_id: Any = "a", content: Any = "done", **more: Any) -> Message:
    """Make a result."""
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}


def server_use(call_id: str = "srvtoolu_1", name: str = "web_search") -> Message:
    """Make a call the provider runs itself."""
    return {"type": "server_tool_use", "id": call_id, "name": name, "input": {"query": "tea"}}


def found(call_id: str = "srvtoolu_1") -> Message:
    """Make what a search of the provider's found."""
    entry = {
        "type": "web_search_result",
        "url": "https://e.org",
        "title": "Tea",
        "encrypted_content": "c2VhbA==",
    }
    return {"type": "web_search_tool_result", "tool_use_id": call_id, "content": [entry]}


def image(data: str = "aGVsbG8=") -> Message:
    """Make an image."""
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}


def document(**source: Any) -> Message:
    """Make a document."""
    given = source or {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0xLjQK"}
    return {"type": "document", "source": given, "title": "A page"}


def compaction(summary: str | None = "so far", **more: Any) -> Message:
    """Make a block that stands for what was before it."""
    return {"type": "compaction", "content": summary, **more}


def user(*blocks: Any) -> Message:
    """Make a message of the user: one string as it is, anything else as blocks."""
    return {"role": "user", "content": _content(blocks)}


def model(*blocks: Any) -> Message:
    """Make a message of the model."""
    return {"role": "assistant", "content": _content(blocks)}


def system(*blocks: Any) -> Message:
    """Make a system message in the middle of a conversation."""
    return {"role": "system", "content": _content(blocks)}


def _content(blocks: tuple[Any, ...]) -> Any:
    return blocks[0] if len(blocks) == 1 and isinstance(blocks[0], str) else list(blocks)


def sdk_message(*blocks: Any) -> SDKMessage:
    """Make the object the anthropic package returns."""
    content = list(blocks) or [
        ThinkingBlock(type="thinking", thinking="hm", signature=SIGNATURE),
        TextBlock(type="text", text="let me look"),
        ToolUseBlock(type="tool_use", id="a", name="look", input={"at": "x"}),
    ]
    return SDKMessage(
        id="msg_1",
        type="message",
        role="assistant",
        model="claude-sonnet-4-5",
        content=content,
        stop_reason="tool_use",
        stop_sequence=None,
        usage=Usage(input_tokens=9, output_tokens=9),
    )


def block_types() -> dict[str, Any]:
    """Map the type of every block a request of the installed package may hold to its class."""
    from anthropic.types import ContentBlockParam

    listed = [*get_args(ContentBlockParam), *get_args(beta_types.BetaContentBlockParam)]
    named: dict[str, Any] = {}
    for one in listed:
        if is_typeddict(one):
            (word,) = get_args(get_type_hints(one)["type"])
            named[word] = one
    return named


_ADAPTER: TypeAdapter[Any] = TypeAdapter(list[MessageParam])
_BETA: TypeAdapter[Any] = TypeAdapter(list[beta_types.BetaMessageParam])


def accepted_by_anthropic(*messages: Any, beta: bool = False) -> bool:
    """Validate by the anthropic package's own request types; lazy iterables are read to their end."""
    try:
        read_all((_BETA if beta else _ADAPTER).validate_python(list(messages)))
    except ValidationError:
        return False
    return True


def tool_loop(turns: int, *, words: int = 30, thinks: bool = True) -> Iterator[Message]:
    """Write an agent's work: a question, and turns of two parallel calls and their results."""
    yield user("please refactor the module, and run the tests after each step")
    for turn in range(turns):
        first, second = f"toolu_{turn}a", f"toolu_{turn}b"
        thought = [thinking(f"step {turn}")] if thinks else []
        yield model(*thought, text(f"step {turn}"), use(first, "read", path="x"), use(second, "run"))
        told = " ".join(["line"] * words)
        yield user(result(first, told), result(second, [text(told)], is_error=False))
    yield model(text("done"))
