"""Messages of other libraries are refused with what they are and how to convert them, not read wrongly."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import StrEnum
from typing import Any

import pytest

from tests.builders import talk
from trimtab import CharCounter, Context, EstimateCounter, Session, Summarize, afit, fit, repair, validate
from trimtab.conversation import group
from trimtab.counting import measure
from trimtab.errors import FormatError
from trimtab.formats import read_foreign
from trimtab.history import evict_messages
from trimtab.testing import WordCounter


def stand_in(name: str, module: str, **fields: Any) -> Any:
    """Make an object of a class of that name and module, with a `model_dump` as pydantic's."""
    kind = type(name, (), {"__module__": module, "model_dump": lambda self, **_: dict(fields)})
    return kind()


OBJECTS = [
    (stand_in("HumanMessage", "langchain_core.messages.human", content="hi", type="human"), "LangChain"),
    (
        stand_in("ToolMessage", "langchain_core.messages.tool", content="4", type="tool", tool_call_id="a"),
        "LangChain",
    ),
    (stand_in("ChatMessage", "llama_index.core.base.llms.types", role="user", blocks=[]), "LlamaIndex"),
    (stand_in("UserMessage", "autogen_core.models._types", content="hi", source="me"), "AutoGen"),
    (stand_in("TextMessage", "autogen_agentchat.messages", content="hi", source="me"), "AutoGen"),
    (type("Mine", (type(stand_in("AIMessage", "langchain_core.messages.ai")),), {})(), "LangChain"),
]


@pytest.mark.parametrize(("message", "library"), OBJECTS)
def test_an_object_of_another_library_is_named_with_its_conversion(message: Any, library: str) -> None:
    """A class of one's own that is derived from one is none the less."""
    with pytest.raises(FormatError, match=rf"messages\[1\]: .*{library} message .*: pass ") as caught:
        fit([*talk("u1"), message, *talk("u1")], 99, counter=WordCounter())
    assert caught.value.path == "messages[1]"


@pytest.mark.parametrize("block", ["toolUse", "toolResult", "cachePoint", "reasoningContent"])
@pytest.mark.parametrize("read", [lambda m: fit(m, 99, counter=WordCounter()), group, validate])
def test_blocks_of_bedrocks_converse_api_are_refused(block: str, read: Callable[[Any], Any]) -> None:
    """They would be read without their calls and results."""
    said = {"role": "assistant", "content": [{"text": "let me see"}, {block: {}}]}
    with pytest.raises(FormatError, match=r"messages\[1\]: it is a message of Bedrock's Converse API"):
        read([*talk("u1"), said, *talk("u1")])


CALL = {"name": "look", "args": {}, "id": "a", "type": "tool_call"}
DICTS = [
    ({"type": "ai", "content": "", "tool_calls": [CALL]}, "a LangChain message"),
    ({"type": "tool", "content": "4", "tool_call_id": "a"}, "a LangChain message"),
    ({"type": "system", "data": {"content": "w"}}, "messages_from_dict"),
    (
        {"lc": 1, "type": "constructor", "id": ["langchain"], "kwargs": {"content": "w"}},
        "a LangChain message",
    ),
    ({"type": "UserMessage", "source": "me", "content": "w"}, "an AutoGen message"),
    ({"role": "user", "blocks": [{"block_type": "text", "text": "w"}]}, "a LlamaIndex message"),
    ({"from": "human", "value": "w"}, "'from' and 'value'"),
]
FORMS = ["anthropic", "gemini", "openai_chat", "openai_responses"]


@pytest.mark.parametrize(("message", "looks"), DICTS)
@pytest.mark.parametrize("form", ["auto", "bedrock", *FORMS])
def test_a_dict_of_another_library_is_refused_with_a_form_that_was_named_too(
    message: dict[str, Any], looks: str, form: str
) -> None:
    """By `fit`, by a block of a `Context`, and before a session stores it."""
    with pytest.raises(FormatError, match=rf"messages\[0\]: it .*{looks}"):
        fit([message], 99, counter=WordCounter(), format=form)
    with pytest.raises(FormatError, match=looks):
        Context(99, counter=WordCounter(), format=form).add("history", [message]).fit()
    session = Session(budget=100, counter=WordCounter(), format=form)
    with pytest.raises(FormatError, match=looks):
        session.add(message)
    assert list(session.history()) == []


def test_objects_of_the_sdks_and_dicts_with_keys_of_ones_own_pass() -> None:
    """As do roles that providers document, and unknown keys beside a type."""
    sdk = stand_in("ChatCompletionMessage", "openai.types.chat", role="assistant", content="w")
    own = {"role": "user", "content": "w", "toolUse": {}, "created_at": 5}
    part = {"type": "text", "text": "w", "cachePoint": {}}
    messages = [{"role": "developer", "content": "w"}, sdk, own, {"role": "user", "content": [part]}]
    assert fit(messages, 99, counter=WordCounter()).messages == messages


def test_a_candidate_of_gemini_in_place_of_its_content_says_so() -> None:
    """Its content is the message, as a choice's message is."""
    candidate = stand_in("Candidate", "google.genai.types", content={"role": "model", "parts": []}, index=0)
    with pytest.raises(FormatError, match=r"messages\[0\]: it is a whole Candidate.*: append its content"):
        fit([candidate], 99, counter=WordCounter(), format="gemini")
    with pytest.raises(FormatError, match="a whole Candidate"):
        Session(budget=100, counter=WordCounter(), format="gemini").add(candidate)


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ({"role": "human", "content": "w"}, "no provider has the role 'human': write"),
        ({"role": "User", "content": "w"}, "no provider has the role 'User': write"),
        ({"role": "", "content": "w"}, "no provider has the role '': write"),
        ({"role": 5, "content": "w"}, "no provider has the role 5: write"),
        ({"content": "w"}, "it has no role: write"),
        ({}, "it has no role: write"),
        (
            {"id": "c", "choices": [{"message": {}}]},
            r"it is a whole answer, not a message: append answer\['choices'\]",
        ),
    ],
)
@pytest.mark.parametrize(
    "counter", [WordCounter(), None, lambda messages: 5 * len([m["role"] for m in messages])]
)
@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_role_that_no_form_knows_is_refused(message: Any, said: str, counter: Any, at: int) -> None:
    """With its place, on each way: it was read as nobody's, and only a violation told."""
    messages = [{"role": "user", "content": "w"}, {"role": "user", "content": "w"}]
    messages.insert(at, message)
    with pytest.raises(FormatError, match=rf"^messages\[{at}\]: {said}") as caught:
        fit(messages, 999, counter=counter)
    assert caught.value.path == f"messages[{at}]"
    with pytest.raises(FormatError, match=said):
        Context(999, counter=counter).add("history", messages).fit()
    with pytest.raises(FormatError, match=said):
        Session(budget=999).add(message)


@pytest.mark.parametrize("role", ["system", "developer", "user", "assistant", "critic", "model", "unknown"])
def test_roles_that_a_provider_documents_pass(role: str) -> None:
    """Also where the form at hand has none such: `validate` says so then."""
    messages = [{"role": "user", "content": "w"}, {"role": role, "content": "w"}]
    assert fit(messages, 99, counter=WordCounter()).messages == messages


def test_validate_and_repair_take_what_they_are_there_for() -> None:
    """A role nobody knows is a violation there, not an error; contents of Gemini need none."""
    assert [found.rule for found in validate([{"role": "robot", "content": "w"}])] == ["unknown_role"]
    contents = [{"parts": [{"text": "w"}]}]
    assert fit(contents, 99, counter=WordCounter(), format="gemini").messages == contents


@pytest.mark.parametrize("format", ["auto", "openai_chat", "anthropic", "openai_responses"])
@pytest.mark.parametrize("part", [{"text": "hi"}, {"image": {"format": "png"}}, {"document": {}}])
def test_blocks_without_a_type_are_refused_in_every_form(part: Any, format: str) -> None:
    """A text alone as well: Bedrock's Converse API, Strands and Haystack write it so."""
    messages = [{"role": "user", "content": [part]}, {"role": "user", "content": "w"}]
    with pytest.raises(
        FormatError, match=rf"^messages\[0\]: its content has a block '{next(iter(part))}' without"
    ):
        fit(messages, 999, counter=WordCounter(), format=format)
    assert validate(messages, format="openai_chat")


PLAIN: list[Any] = [{"role": "user" if at % 2 == 0 else "assistant", "content": "w"} for at in range(400)]
STRANGE: list[dict[str, Any]] = [
    {"role": "human", "content": "w"},
    {"role": "human", "content": [{"type": "text", "text": "w"}]},
    {"role": "user", "content": [{"text": "w"}]},
    {"role": "user", "content": ({"text": "w"},)},
    {"role": "system", "content": [{"text": "w"}]},
    {"role": "user", "blocks": [{"block_type": "text", "text": "w"}]},
    {"role": "assistant", "content": [{"toolUse": {"toolUseId": "a"}}]},
    {"role": 5, "content": "w"},
    {"role": [], "content": "w"},
    {"content": "w"},
    {"from": "human", "value": "w"},
]
COUNTERS = [WordCounter(), None, EstimateCounter(), CharCounter(), lambda messages: 5 * len(messages)]


@pytest.mark.few(110)
@pytest.mark.parametrize("message", STRANGE)
@pytest.mark.parametrize("counter", COUNTERS)
@pytest.mark.parametrize("form", ["auto", "openai_chat"])
@pytest.mark.parametrize("at", [0, 8, 9, 150, 335, 336, 400])
def test_what_no_form_knows_is_refused_wherever_it_stands(
    message: dict[str, Any], counter: Any, form: str, at: int
) -> None:
    """Also between the oldest and the newest, of which nothing but the middle was passed through."""
    messages = [*PLAIN[:at], message, *PLAIN[at:]]
    where = rf"messages\[{at}\]: "
    with pytest.raises(FormatError, match=f"^{where}") as caught:
        fit(messages, 99_999, counter=counter, format=form)
    assert caught.value.path == f"messages[{at}]"
    with pytest.raises(FormatError, match=f"^{where}"):
        asyncio.run(afit(messages, 99_999, counter=counter, format=form))
    with pytest.raises(FormatError, match=f"^block 'history': {where}"):
        Context(99_999, counter=counter, format=form).add("history", messages).fit()


@pytest.mark.parametrize("message", STRANGE)
@pytest.mark.parametrize("form", FORMS)
def test_every_form_refuses_what_none_knows_in_the_middle(message: dict[str, Any], form: str) -> None:
    """In a list, in a body, and behind system text that trimtab writes before it."""
    plain = {"role": "user", "content": "w", "parts": [{"text": "w"}]}
    if form == "gemini" and message.keys() == {"content"}:
        return  # a content of Gemini needs no role
    messages = [*[plain] * 100, message, *[plain] * 100]
    key = {"gemini": "contents", "openai_responses": "input"}.get(form, "messages")
    for given, system in ((messages, None), (messages, "Be brief."), ({key: messages}, None)):
        with pytest.raises(FormatError, match=r"^messages\[100\]: "):
            fit(given, 99_999, counter=WordCounter(), format=form, system=system)


@pytest.mark.parametrize("message", STRANGE)
def test_what_stays_beside_the_newest_is_refused_too(message: dict[str, Any]) -> None:
    """A pin, the message that opens the turn, the system text in front; at a later budget as well."""
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    run = [
        entry
        for _ in range(100)
        for entry in (
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "a", "content": "w"},
        )
    ]
    with pytest.raises(FormatError, match=r"^messages\[200\]: "):
        fit([*PLAIN[:200], message, *PLAIN[200:]], 200, counter=CharCounter(), pin=[200])
    for counter in (CharCounter(), WordCounter(), EstimateCounter()):
        if message.get("role") == "system":
            with pytest.raises(FormatError, match=r"^messages\[0\]: "):
                fit([message, *PLAIN], 300, counter=counter)
        if message.get("role") == "user":
            with pytest.raises(FormatError, match=r"^messages\[100\]: "):
                fit([*PLAIN[:100], message, *run], 400, counter=counter)
        fitted = fit([*PLAIN[:200], message, *PLAIN[200:]], 150, counter=counter)
        assert message not in fitted.messages
        with pytest.raises(FormatError, match=r"^messages\[200\]: "):
            fitted.at(99_999)


@pytest.mark.parametrize("message", STRANGE)
def test_who_reads_all_messages_is_shown_none_that_nobody_knows(message: dict[str, Any]) -> None:
    """A callback, a summarizer, and `evict_messages`, which hands on both what leaves and what stays."""
    messages = [*PLAIN[:200], message, *PLAIN[200:]]
    shown: list[Any] = []

    def summarized(told: Any) -> str:
        shown.append(told)
        return "w"

    where = r"^messages\[200\]: "
    with pytest.raises(FormatError, match=where):
        fit(messages, 200, counter=WordCounter(), on_trim=lambda context: shown.append(context.messages))
    with pytest.raises(FormatError, match=where):
        fit(messages, 200, counter=WordCounter(), strategy=Summarize(summarized))
    with pytest.raises(FormatError, match=where):
        fit(messages, 200, counter=WordCounter(), strict=True)
    with pytest.raises(FormatError, match=where):
        evict_messages(messages, 200, counter=WordCounter())
    assert not shown


def test_a_text_as_role_may_be_an_enum() -> None:
    """It is written to the wire as the text it is."""
    role = StrEnum("Role", {"USER": "user"})
    messages = [{"role": role("user"), "content": "w"}]
    assert fit(messages, 99, counter=WordCounter()).messages == messages


@pytest.mark.parametrize("read", [validate, repair, group, lambda m: measure(m, counter=WordCounter())])
def test_shapes_that_cannot_be_listed_are_refused_anywhere(read: Callable[[Any], Any]) -> None:
    """Blocks of another API hold calls and results that these would miss; a role they list, or leave."""
    blocks = {"role": "assistant", "content": [{"toolUse": {"toolUseId": "a"}}]}
    with pytest.raises(FormatError, match=r"^messages\[200\]: it is a message of Bedrock's"):
        read([*PLAIN[:200], blocks, *PLAIN[200:]])
    read([*PLAIN[:200], {"role": "human", "content": "w"}, *PLAIN[200:]])


USER = {"role": "user", "content": "w"}
BESIDE_A_TEXT = (
    {"role": "assistant", "content": "w", "toolCalls": [{"id": "c"}]},
    {"role": "tool", "content": "w", "toolCallId": "c"},
    {"role": "assistant", "content": "w", "toolInvocations": [{"toolCallId": "c", "state": "call"}]},
    {"role": "assistant", "id": "m", "content": "w", "otid": "o"},
)


@pytest.mark.parametrize("message", BESIDE_A_TEXT, ids=lambda one: str([*one][-1]))
@pytest.mark.parametrize("limit", [5, 99])
def test_calls_beside_a_text_are_refused_at_any_budget(message: dict[str, Any], limit: int) -> None:
    """No wire form has them there: the pair would be lost, whatever the budget."""
    for read in (lambda m: fit(m, limit, counter=WordCounter()), measure, validate):
        with pytest.raises(FormatError, match=r"^messages\[1\]: it is a message of "):
            read([USER, message, USER])


@pytest.mark.parametrize(
    ("message", "form"),
    [
        ({"role": "assistant", "reasoning_content": "w"}, "openai_chat"),
        ({"role": "assistant", "reasoning": "w"}, "openai_chat"),
        ({"role": "user", "images": ["aGk="]}, "openai_chat"),
        ({"role": "user", "content": "w", "toolCalls": None, "otid": None}, "openai_chat"),
        ({"role": "user", "content": [{"type": "image", "image": "cat.png"}]}, "openai_chat"),
        ({"id": "msg_1"}, "openai_responses"),
        ({"type": "an_item_of_next_year", "id": "x"}, "openai_responses"),
        ({"role": "model", "parts": [{"text": "w", "thought": True, "thoughtSignature": "s"}]}, "gemini"),
        ({"role": "user", "parts": [{"text": "w", "type": "text"}]}, "gemini"),
    ],
    ids=str,
)
def test_what_providers_take_is_counted_and_fitted(message: dict[str, Any], form: str) -> None:
    """Rare keys, empty ones, and those of a provider's dialect are no sign of another program."""
    first = {"role": "user", "parts": [{"text": "w"}]} if form == "gemini" else USER
    messages = [first, message]
    assert fit(messages, 99_999, counter=CharCounter(4), format=form).messages == messages
    assert measure(messages, counter=CharCounter(4), format=form).tokens > 0


def test_a_session_says_the_form_it_was_not_made_with() -> None:
    """Its form is told when it is made, not by its first message."""
    with pytest.raises(FormatError, match="format='gemini'"):
        Session(budget=500).add({"role": "user", "parts": [{"text": "w"}]})


@pytest.mark.parametrize(
    "body",
    [
        {"messages": [USER], "method": "acompletion", "response": {}},
        {"messages": [USER], "events": [{"author": "me"}]},
        {"input": [USER], "eval": {}, "status": "ok"},
    ],
    ids=str,
)
def test_what_a_proxy_writes_beside_a_request_makes_it_no_recording(body: dict[str, Any]) -> None:
    """It is a request body."""
    assert read_foreign(body) is None
    assert read_foreign([body]) is None
