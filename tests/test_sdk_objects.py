"""Objects of an SDK in a conversation: read as the dicts they stand for and handed back as they are."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab import fit
from trimtab.counting import EstimateCounter
from trimtab.errors import BudgetExceededError
from trimtab.formats import detect

_types = pytest.importorskip("openai.types.chat")
_CALL = {"id": "a", "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}}
_CUSTOM = {"id": "b", "type": "custom", "custom": {"name": "shell", "input": "ls"}}
_TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]

_SAID = st.fixed_dictionaries(
    {"role": st.just("assistant"), "content": st.sampled_from([None, "", "Yes, of course."])},
    optional={
        "tool_calls": st.sampled_from([None, [], [_CALL], [_CALL, _CUSTOM], [_CUSTOM]]),
        "refusal": st.sampled_from([None, "No, I will not."]),
        "function_call": st.sampled_from([None, {"name": "old", "arguments": "{}"}]),
        "annotations": st.just([]),
        "reasoning_content": st.sampled_from([None, "Somebody else's field"]),
    },
)


class Asked:
    """A message of an SDK that counts how often it is asked what it holds."""

    def __init__(self, **fields: Any) -> None:
        self.fields, self.times = fields, 0

    def model_dump(self, *, exclude_none: bool = False) -> dict[str, Any]:
        """Write it as a dict."""
        self.times += 1
        return {key: value for key, value in self.fields.items() if value is not None or not exclude_none}


def _results(said: dict[str, Any]) -> list[dict[str, Any]]:
    calls = [
        {"role": "tool", "tool_call_id": one["id"], "content": "ok"} for one in said.get("tool_calls") or ()
    ]
    called = said.get("function_call")
    return [*calls, *([{"role": "function", "name": called["name"], "content": "ok"}] if called else [])]


@given(st.lists(_SAID, min_size=1, max_size=6), st.integers(min_value=20, max_value=400))
def test_an_object_is_read_as_the_dict_it_stands_for(said: list[dict[str, Any]], budget: int) -> None:
    """The same stays, at the same places and of the same size; what comes out is the very object."""
    dicts: list[Any] = []
    for message in said:
        dicts += [{"role": "user", "content": "Is it so?"}, message, *_results(message)]
    objects = [
        _types.ChatCompletionMessage.model_validate(one) if one["role"] == "assistant" else one
        for one in dicts
    ]
    assert _fitted(objects, budget) == _fitted(dicts, budget)


def _fitted(messages: list[Any], budget: int) -> tuple[list[int], int] | int:
    """Return which messages stay and their size; what would be needed if they do not fit."""
    try:
        found = fit(messages, budget, counter=EstimateCounter())
    except BudgetExceededError as error:
        return error.needed_tokens
    return _places(found.messages, messages), found.report.tokens_after


def _places(kept: list[Any], given: list[Any]) -> list[int]:
    at = {id(message): index for index, message in enumerate(given)}
    return [at.get(id(message), -1) for message in kept]


def test_what_an_object_holds_is_asked_of_those_that_stay() -> None:
    """Of a long chat those that stay are asked once, the newest some times, the others never."""
    chat: list[Any] = []
    for _ in range(200):
        chat += [{"role": "user", "content": "A question."}, Asked(role="assistant", content="An answer.")]
    fitted = fit(chat, 200, counter=EstimateCounter(), tools=_TOOLS, format="openai_chat")
    asked = {at: chat[at].times for at in range(1, 400, 2) if chat[at].times}
    kept = _places(fitted.messages, chat)
    assert 10 < len(kept) < 40
    assert min(asked) >= kept[0] - 2
    assert all(times == 1 for at, times in asked.items() if at < 399), asked
    assert asked[399] <= 3


def test_the_class_of_an_object_tells_its_form() -> None:
    """An answer without calls is of the form of its SDK, whatever model gave it; so is one derived."""
    said = _types.ChatCompletionMessage(role="assistant", content="Yes.")
    asked = {"role": "user", "content": "Is it so?"}
    own = type("Said", (_types.ChatCompletionMessage,), {})(role="assistant", content="Yes.")
    assert detect([asked, said], model="claude-sonnet-4-5").name == "openai_chat"
    assert detect([asked, own], model="claude-sonnet-4-5").name == "openai_chat"
    assert detect([asked, said.model_dump(exclude_none=True)], model="claude-sonnet-4-5").name == "anthropic"
