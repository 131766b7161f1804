"""Gemini contents in one readable line each, and the google-genai package's own opinion."""

from __future__ import annotations

import base64
from typing import Any

from google.genai import types
from hypothesis import strategies as st
from pydantic import ValidationError

SIGNED = base64.b64encode(b"a signature").decode("ascii")


def words(text: Any = "hi", **more: Any) -> dict[str, Any]:
    """Make a part of text."""
    return {"text": text, **more}


def call(name: Any = "add", call_id: Any = None, *, signed: bool = False, **args: Any) -> dict[str, Any]:
    """Make a part that calls a function."""
    made: dict[str, Any] = {"functionCall": {"name": name, "args": args}}
    if call_id is not None:
        made["functionCall"]["id"] = call_id
    return {**made, "thoughtSignature": SIGNED} if signed else made


def response(name: Any = "add", call_id: Any = None, answer: Any = "4") -> dict[str, Any]:
    """Make a part that answers a call; a text answer stands under "result"."""
    held = answer if isinstance(answer, dict) else {"result": answer}
    made: dict[str, Any] = {"functionResponse": {"name": name, "response": held}}
    if call_id is not None:
        made["functionResponse"]["id"] = call_id
    return made


def user(*parts: Any) -> dict[str, Any]:
    """Make a content of the user's; a string is a part of text."""
    return {"role": "user", "parts": [words(part) if isinstance(part, str) else part for part in parts]}


def model(*parts: Any) -> dict[str, Any]:
    """Make a content of the model's."""
    return {**user(*parts), "role": "model"}


def snake(value: Any) -> Any:
    """Spell the keys of contents as the SDK's dicts do; what a caller's tool said stays."""
    if isinstance(value, list):
        return [snake(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {_snake(key): item if key in ("args", "response") else snake(item) for key, item in value.items()}


def _snake(key: str) -> str:
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in key)


def as_objects(contents: list[dict[str, Any]]) -> list[types.Content]:
    """Make the SDK's objects of contents."""
    return [types.Content.model_validate(content) for content in contents]


def accepted_by_google(content: Any) -> bool:
    """Tell whether the SDK takes a content."""
    try:
        types.Content.model_validate(content)
    except ValidationError:
        return False
    return True


def agent(turns: int, *, ids: bool, text: str = "word ") -> list[dict[str, Any]]:
    """Make a conversation in which every turn calls two tools at once, one of them twice."""
    made: list[dict[str, Any]] = []
    for turn in range(turns):
        names = ("look", "look", "add")
        given = [f"{turn}.{at}" if ids else None for at in range(len(names))]
        made += [
            user(f"{turn}: {text * 20}"),
            model(
                *(
                    call(name, call_id, signed=at == 0, q=turn)
                    for at, (name, call_id) in enumerate(zip(names, given, strict=True))
                )
            ),
            user(*(response(name, call_id, text * 40) for name, call_id in zip(names, given, strict=True))),
            model(f"done {turn}. {text * 10}"),
        ]
    return made


_KEYS = [
    *("role", "parts", "text", "thought", "thoughtSignature", "thought_signature", "functionCall"),
    *("function_call", "functionResponse", "function_response", "inlineData", "fileData", "executableCode"),
    *("codeExecutionResult", "toolCall", "toolResponse", "id", "name", "args", "response", "data"),
    *("mimeType", "mime_type", "mediaResolution", "level"),
]

broken_contents = st.lists(
    st.dictionaries(
        st.sampled_from(["role", "parts", "text", "content"]),
        st.recursive(
            st.sampled_from([None, True, 3, 0.5, "", "a", "user", "model", "tool", "\ud800", b"\xff", ()]),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(st.sampled_from(_KEYS), inner, max_size=4)
                | st.dictionaries(st.integers(0, 2), inner, max_size=2)
            ),
            max_leaves=12,
        ),
    ),
    max_size=6,
)
"""Lists of mappings that look like contents from afar."""


def _some_parts(*makers: Any) -> Any:
    named = [(name, given) for name in ("add", "look") for given in (None, f"{name}1", f"{name}2")]
    made = [st.builds(lambda pair, maker=maker: maker(*pair), st.sampled_from(named)) for maker in makers]
    return st.lists(st.one_of(*made), max_size=3)


odd_conversations = st.lists(
    st.one_of(
        st.just(user("hi")),
        st.just(model("ho")),
        st.builds(lambda parts: model("so", *parts), _some_parts(call)),
        st.builds(lambda parts: user(*parts), _some_parts(response)),
        st.builds(lambda parts: user("and", *parts), _some_parts(response)),
    ),
    max_size=9,
)
"""Contents of good shape in any order, with and without ids; an id is only ever of one function."""
