"""Messages that are read in one wire form and sent in another are charged as what they become."""

from __future__ import annotations

import contextlib
import json
from itertools import permutations
from typing import Any

import pytest

from tests.test_near_cut import TALKS, written
from trimtab import Budget, Context, counter_for, fit
from trimtab.counting import TextCounter, UsageBaseline
from trimtab.errors import BudgetExceededError, ConfigurationError, UnknownNameError
from trimtab.formats import formats
from trimtab.policy import load_policy, policy_data

BOTH = tuple(permutations(("openai_chat", "openai_responses", "anthropic", "gemini", "bedrock"), 2))
MODELS = ("gpt-4o", "gpt-5", "claude-sonnet-4-5", "gemini-2.5-pro")


def _known(model: str, form: str) -> TextCounter:
    counter = counter_for(model).with_format(form)
    assert isinstance(counter, TextCounter)
    return counter


@pytest.mark.parametrize(("read", "sent"), BOTH)
def test_no_conversation_costs_more_where_it_is_sent_than_it_was_charged(read: str, sent: str) -> None:
    """Whichever model counts, and however many calls stand side by side."""
    for line in TALKS:
        if "s" in line:
            continue  # the others hold system text beside the messages
        for model in MODELS:
            charged = _known(model, read).charge_as(sent).count(written(line, read))
            assert charged >= _known(model, sent).count(written(line, sent)), (line, model)


def test_a_call_becomes_a_message_of_its_own() -> None:
    """In Responses each call is an item, with the frame of one (4 tokens), and none is parallel to others.

    The message of Chat Completions that only calls has a frame too, which is charged beside these.
    """
    talk = written("u1 cA,B,C rA1 rB1 rC1 a1", "openai_chat")
    items = written("u1 cA,B,C rA1 rB1 rC1 a1", "openai_responses")
    there = _known("gpt-4o", "openai_responses").count(items)
    assert _known("gpt-4o", "openai_chat").charge_as("openai_responses").count(talk) == there + 4
    said = written("u1 a3 cA rA1", "openai_chat")
    items = written("u1 a3 cA rA1", "openai_responses")
    there = _known("gpt-4o", "openai_responses").count(items)
    assert _known("gpt-4o", "openai_chat").charge_as("openai_responses").count(said) == there + 4


def test_plain_messages_cost_what_they_cost_there() -> None:
    """To the token: nothing of them is written otherwise."""
    talk = written("u3 a4 u1 a9 u2", "openai_chat")
    for sent in ("openai_responses", "anthropic"):
        for model in MODELS:
            counter = _known(model, "openai_chat").charge_as(sent)
            assert counter.count(talk) == _known(model, sent).count(written("u3 a4 u1 a9 u2", sent))
            assert not counter.exact


TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "look",
            "description": "Look at a place.",
            "parameters": {"type": "object", "properties": {"place": {"type": "integer"}}},
        },
    }
]


def _tokens(**options: Any) -> int:
    talk = written("u1 cA,B rA3 rB3 a1 u4", "openai_chat")
    return fit(talk, 9_999, model="gpt-4o", tools=TOOLS, **options).report.tokens_after


def test_a_fit_charges_messages_and_tools_as_they_are_sent() -> None:
    """Schemas are shown in another way there: 6 tokens are saved beside what two calls cost more.

    gpt-4o's tools cost 9 tokens in Chat Completions and 3 in Responses; without system text nothing is
    taken off. Two parallel calls cost 12 here, and there a frame of 4 each.
    """
    assert _tokens(charge_as="openai_responses") - _tokens() == (3 - 9) + (2 * 4 - 12)
    assert _tokens(charge_as="openai_chat") == _tokens()
    talk = written("u1 cA,B rA3 rB3 a1 u4", "openai_chat")
    context = Context(9_999, model="gpt-4o", tools=TOOLS, charge_as="openai_responses")
    context = context.add("history", talk)
    assert context.fit().report.tokens_after == _tokens(charge_as="openai_responses")
    assert context.clone(charge_as="openai_chat").fit().report.tokens_after == _tokens()
    again = load_policy(policy_data(context)).add("history", talk, replace=True)
    assert again.clone(tools=TOOLS).fit().report.tokens_after == _tokens(charge_as="openai_responses")


def test_what_was_billed_is_learned_of_what_was_sent() -> None:
    """A baseline estimates what it has no bill of by the counter in it, charged as it is sent."""
    talk = written("u1 cA,B rA3 rB3 a1 u4", "openai_chat")
    baseline = UsageBaseline(counter_for("gpt-4o"))
    charged = fit(talk, 9_999, counter=baseline, charge_as="openai_responses").report.tokens_after
    assert charged == fit(talk, 9_999, model="gpt-4o", charge_as="openai_responses").report.tokens_after


def _letters(messages: list[dict[str, Any]]) -> int:
    return sum(len(str(message.get("content"))) for message in messages)


def test_a_counter_that_knows_nothing_of_it_says_so() -> None:
    """A function counts what it is given; to count it otherwise it would have to be told how."""
    talk = written("u1 a1", "openai_chat")
    with pytest.raises(ConfigurationError, match="counts messages as they are passed"):
        fit(
            talk,
            99,
            counter=lambda messages: sum(len(one["content"]) for one in messages),
            charge_as="anthropic",
        )
    with pytest.raises(UnknownNameError, match="anthropic"):
        fit(talk, 99, model="gpt-4o", charge_as="antropic")
    with pytest.raises(UnknownNameError):
        Context(99, model="gpt-4o", charge_as="antropic")
    assert fit(talk, Budget(99), counter=_letters, charge_as="openai_chat").messages == talk


def test_every_form_can_be_charged_as_every_other() -> None:
    """And a counter made for a form counts it as before."""
    for name in formats():
        counter = _known("gpt-4o", name)
        assert counter.charge_as(name) is counter
        for other in formats():
            assert counter.charge_as(other).format.name == name


ROWS = {"rows": [[at, at + 1, {"ok": True, "n": at}] for at in range(60)], "wo": "Zürich"}
"""Arguments of which a fifth is what `json.dumps` writes between them."""


def _one_call(form: str) -> list[dict[str, Any]]:
    """Write a question, a call with the arguments held as an object, and its result."""
    if form == "anthropic":
        asked = {"type": "tool_use", "id": "c", "name": "s", "input": ROWS}
        said = {"type": "tool_result", "tool_use_id": "c", "content": "ok"}
    elif form == "bedrock":
        asked = {"toolUse": {"toolUseId": "c", "name": "s", "input": ROWS}}
        said = {"toolResult": {"toolUseId": "c", "content": [{"json": ROWS}]}}
    else:
        asked = {"functionCall": {"id": "c", "name": "s", "args": ROWS}}
        said = {"functionResponse": {"id": "c", "name": "s", "response": ROWS}}
    parts, by_model = ("parts", "model") if form == "gemini" else ("content", "assistant")
    text = {"type": "text", "text": "hi"} if form == "anthropic" else {"text": "hi"}
    return [
        {"role": role, parts: [part]} for role, part in (("user", text), (by_model, asked), ("user", said))
    ]


def _as_text(form: str, read: str) -> list[dict[str, Any]]:
    """Write the same as LiteLLM writes it for OpenAI: `json.dumps(input)` of version 1.108.7."""
    arguments = json.dumps(ROWS)
    said = "ok" if read == "anthropic" else arguments
    if form == "openai_responses":
        return [
            {"role": "user", "content": "hi"},
            {"type": "function_call", "call_id": "c", "name": "s", "arguments": arguments},
            {"type": "function_call_output", "call_id": "c", "output": said},
        ]
    call = {"id": "c", "type": "function", "function": {"name": "s", "arguments": arguments}}
    return [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": said},
    ]


@pytest.mark.parametrize("sent", ["openai_chat", "openai_responses"])
@pytest.mark.parametrize("read", ["anthropic", "bedrock", "gemini"])
def test_objects_are_charged_as_the_text_that_is_sent_of_them(read: str, sent: str) -> None:
    """It was compact JSON that was charged: 873 tokens of 1,049, called within the budget."""
    there = fit(_as_text(sent, read), 9_999, model="gpt-4o", format=sent).report.tokens_after
    charged = fit(_one_call(read), 9_999, model="gpt-4o", format=read, charge_as=sent).report.tokens_after
    assert there <= charged <= there * 1.02 + 8  # a name stands in the response of Gemini once more
    one_by_one = _known("gpt-4o", read).charge_as(sent)
    tokens = sum(one_by_one.count_message(message) for message in _one_call(read))
    assert tokens + one_by_one.fixed_tokens(None, None, has_system=False) == charged
    # as is, and in a form that takes objects, nothing changes
    at_home = _known("gpt-4o", read).count(_one_call(read))
    assert at_home < there
    assert _known("gpt-4o", read).charge_as("anthropic").count(_one_call(read)) < there


def test_an_object_where_the_form_takes_text_is_charged_with_spaces() -> None:
    """As those write it who take one: Ollama's templates and those of open models, and SDKs' users."""
    chat = written("u1", "openai_chat")
    for arguments in (ROWS, json.dumps(ROWS, ensure_ascii=False)):
        call = {"id": "c", "type": "function", "function": {"name": "s", "arguments": arguments}}
        chat.append({"role": "assistant", "tool_calls": [call]})
        chat.append({"role": "tool", "tool_call_id": "c", "content": "ok"})
    sizes = [_known("gpt-4o", "openai_chat").count_message(message) for message in chat]
    assert sizes[1] == sizes[3]
    items = [
        {"type": "function_call", "call_id": "c", "name": "s", "arguments": arguments}
        for arguments in (ROWS, json.dumps(ROWS, ensure_ascii=False))
    ]
    assert len({_known("gpt-4o", "openai_responses").count_message(item) for item in items}) == 1


@pytest.mark.parametrize("sent", ["anthropic", "bedrock", "gemini"])
@pytest.mark.parametrize("read", ["openai_chat", "openai_responses"])
@pytest.mark.parametrize("budget", range(60, 400, 20))
@pytest.mark.parametrize("strategy", ["truncate_text", "relevant", "sliding_window"])
def test_nothing_leads_that_the_form_it_is_sent_in_takes_no_first(
    read: str, sent: str, budget: int, strategy: str
) -> None:
    """There a conversation begins with its user, which the form it is read in does not ask for."""
    talk: list[Any] = [{"role": "user", "content": "Look at place 0. " * 12}]
    for at in range(1, 8):
        talk += [{"role": "assistant", "content": f"Place {at} is sunny. " * 6}]
        talk += [{"role": "user", "content": f"And place {at}? " * (1 + at % 4)}]
    options: dict[str, Any] = {"model": "gpt-4o", "format": read, "charge_as": sent, "strategy": strategy}
    with contextlib.suppress(BudgetExceededError):
        assert fit(talk, budget, **options, pin=[len(talk) - 1]).messages[0]["role"] == "user"
        context = Context(budget, model="gpt-4o", format=read, charge_as=sent)
        context.add("history", talk, strategy=strategy)
        assert context.fit().messages[0]["role"] == "user"
