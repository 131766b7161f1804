"""Messages of the Vercel AI SDK: both kinds, of each version, as bodies of OpenAI Chat."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trimtab import fit, validate
from trimtab.errors import FormatError
from trimtab.formats import ForeignConversation, read_foreign
from trimtab.testing.hooks import reader_of

PIXEL = "iVBORw0KGgo="
RESULT = {"type": "tool-result", "toolCallId": "a", "toolName": "look"}
CALL = {"type": "tool-call", "toolCallId": "a", "toolName": "look", "input": {"at": "Rome"}}


def read(source: Any) -> ForeignConversation:
    """Read the one conversation of a recording."""
    [found] = read_foreign(source) or []
    assert (found.program, found.format) == ("Vercel AI SDK", "openai_chat")
    return found


def messages_in(source: Any) -> list[dict[str, Any]]:
    """Read its messages."""
    listed: list[dict[str, Any]] = read(source).body["messages"]
    return listed


def called(*ids: str, content: Any = None, name: str = "look", arguments: str = "{}") -> dict[str, Any]:
    """Write a message with calls."""
    calls = [
        {"id": one, "type": "function", "function": {"name": name, "arguments": arguments}} for one in ids
    ]
    return {"role": "assistant", "content": content, "tool_calls": calls}


def gave(call_id: str, content: Any) -> dict[str, Any]:
    """Write a result."""
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def with_result(output: Any) -> Any:
    """Read the content of one result."""
    listed = [{"role": "assistant", "content": [CALL]}, {"role": "tool", "content": [RESULT | output]}]
    return messages_in(listed)[1]["content"]


def with_part(part: dict[str, Any]) -> Any:
    """Read a part of a user's message."""
    content = [{"type": "text", "text": "See."}, part]
    return messages_in(
        {"messages": [{"role": "user", "content": content}, {"role": "assistant", "content": [CALL]}]}
    )[0]["content"][1]


def test_case_05_keeps_the_result_with_its_call(shared_case: Any) -> None:
    """As a body, a fit takes both or none."""
    found = read(shared_case("05-vercel-model-messages"))
    assert [one["role"] for one in found.body["messages"]] == ["user", "assistant", "tool", "user"]
    assert validate(found.body["messages"]) == []
    sent = fit(found.body, 150, model="gpt-4o").messages
    assert validate(sent) == []


@pytest.fixture
def shared_case(data_dir: Path) -> Any:
    """Read the input of a case beside the data."""
    return lambda name: json.loads((data_dir.parent / "cases" / f"{name}.json").read_text("utf-8"))["input"]


@pytest.mark.parametrize(
    ("output", "content"),
    [
        ({"output": {"type": "text", "value": "rain"}}, "rain"),
        ({"output": {"type": "json", "value": {"sky": "blue"}}}, '{"sky":"blue"}'),
        ({"output": {"type": "json", "value": None}}, "null"),
        ({"output": {"type": "error-text", "value": "no"}}, "no"),
        ({"output": {"type": "error-json", "value": ["no"]}}, '["no"]'),
        ({"output": {"type": "execution-denied", "reason": "not today"}}, "not today"),
        ({"output": {"type": "execution-denied"}}, "Tool call execution denied."),
        ({"output": {"type": "content", "value": [{"type": "text", "text": "rain"}]}}, "rain"),
        ({"result": "rain"}, "rain"),
        ({"result": {"sky": "blue"}, "isError": False}, '{"sky":"blue"}'),
        ({"result": [{"type": "text"}]}, '[{"type":"text"}]'),
    ],
)
def test_a_result_is_what_the_model_was_told(output: Any, content: str) -> None:
    """By the type of its output; before version 5 it was a bare value."""
    assert with_result(output) == content


def test_images_of_a_result_stay_images() -> None:
    """No count takes their base64 for words."""
    value = [
        {"type": "text", "text": "seen"},
        {"type": "image-data", "data": PIXEL, "mediaType": "image/png"},
        {"type": "media", "data": PIXEL, "mediaType": "image/jpeg"},
        {"type": "custom"},
    ]
    content = with_result({"output": {"type": "content", "value": value}})
    assert [part["type"] for part in content] == ["text", "image_url", "image_url"]
    assert content[2]["image_url"]["url"] == f"data:image/jpeg;base64,{PIXEL}"


DATA_URL = f"data:image/png;base64,{PIXEL}"
FILE = {"type": "file", "mediaType": "application/pdf", "filename": "a.pdf"}
PDF = {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,aGk="}}


@pytest.mark.parametrize(
    ("part", "written"),
    [
        ({"type": "image", "image": DATA_URL}, {"type": "image_url", "image_url": {"url": DATA_URL}}),
        ({"type": "image", "image": PIXEL}, {"type": "image_url", "image_url": {"url": DATA_URL}}),
        (
            {"type": "image", "image": "https://example.org/a.png"},
            {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        ),
        (
            {"type": "image", "image": {"type": "Buffer", "data": [104, 105]}, "mimeType": "image/webp"},
            {"type": "image_url", "image_url": {"url": "data:image/webp;base64,aGk="}},
        ),
        (FILE | {"data": {"0": 104, "1": 105}}, PDF),
        (FILE | {"data": "aGk="}, PDF),
        (FILE | {"data": {"type": "data", "data": "aGk="}}, PDF),
        (FILE | {"data": {"type": "url", "url": "data:application/pdf;base64,aGk="}}, PDF),
        (
            FILE | {"data": {"type": "reference", "reference": {"openai": "file-1"}}},
            {"type": "file", "file": {"file_id": "file-1"}},
        ),
        (FILE | {"data": {"type": "text", "text": "words"}}, {"type": "text", "text": "words"}),
        (
            {"type": "file", "mediaType": "audio/mpeg", "data": "aGk="},
            {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "mp3"}},
        ),
    ],
)
def test_files_and_images_become_parts_of_chat(part: Any, written: Any) -> None:
    """In each way in which JSON of the SDK keeps data."""
    assert with_part(part) == written


def test_the_path_of_a_file_is_refused() -> None:
    """Only the program that wrote it knows where that is."""
    for path in ("cat.png", "C:\\cats\\1.png", "file.with dots"):
        with pytest.raises(FormatError, match="is a path") as error:
            with_part({"type": "image", "image": path, "mediaType": "image/png"})
        assert error.value.path == "messages[0].content[1]"


def test_messages_of_chat_among_others_are_as_they_are() -> None:
    """With their calls and results."""
    chat = [called("a"), gave("a", "rain")]
    user = {"id": "1", "role": "user", "content": "q", "parts": [{"type": "text", "text": "q"}]}
    assert messages_in([user, *chat]) == [{"role": "user", "content": "q"}, *chat]


def test_the_input_of_a_call_is_json_also_if_it_is_a_text() -> None:
    """As the SDK sends it."""
    call = {"type": "tool-call", "toolCallId": "a", "toolName": "look", "input": "ls"}
    assert messages_in([{"role": "assistant", "content": [call]}]) == [called("a", arguments='"ls"')]


def test_parallel_calls_and_what_a_provider_ran() -> None:
    """A result inside an answer stands behind its call, and what was said after it behind the result."""
    ran = CALL | {"toolCallId": "p", "providerExecuted": True}
    listed = [
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "First."},
                ran,
                {**RESULT, "toolCallId": "p", "output": {"type": "text", "value": "found"}},
                {"type": "text", "text": "Then."},
                CALL,
                CALL | {"toolCallId": "b"},
            ],
        },
        {
            "role": "tool",
            "content": [
                RESULT | {"output": {"type": "text", "value": "1"}},
                RESULT | {"toolCallId": "b", "output": {"type": "text", "value": "2"}},
            ],
        },
    ]
    rome = {"arguments": '{"at":"Rome"}'}
    assert messages_in(listed) == [
        called("p", content="First.", **rome),
        gave("p", "found"),
        called("a", "b", content="Then.", **rome),
        gave("a", "1"),
        gave("b", "2"),
    ]


def test_approvals_are_noted_and_a_denied_call_has_its_result() -> None:
    """Also where the SDK has not written one yet; an approved call stays open until it ran."""
    asked = {"type": "tool-approval-request", "approvalId": "p", "toolCallId": "a"}
    answer = {"type": "tool-approval-response", "approvalId": "p", "approved": False, "reason": "no"}
    listed: list[dict[str, Any]]
    listed = [{"role": "assistant", "content": [CALL, asked]}, {"role": "tool", "content": [answer]}]
    found = read(listed)
    assert found.body["messages"][1:] == [gave("a", "no")]
    assert [note.split()[2] for note in found.notes] == ["tool-approval-request", "tool-approval-response"]
    listed[1]["content"] = [answer | {"approved": True}]
    assert messages_in(listed) == [called("a", arguments='{"at":"Rome"}')]
    listed[1]["content"] = [answer, RESULT | {"output": {"type": "execution-denied"}}]
    assert messages_in(listed)[1:] == [gave("a", "Tool call execution denied.")]


@pytest.mark.parametrize(
    "message",
    [
        {
            "parts": [
                {"type": "step-start"},
                {
                    "type": "tool-invocation",
                    "toolInvocation": {
                        "state": "result",
                        "step": 0,
                        "toolCallId": "a",
                        "toolName": "look",
                        "args": {},
                        "result": {"sky": 1},
                    },
                },
                {"type": "step-start"},
                {"type": "text", "text": "Blue."},
            ],
            "toolInvocations": [],
            "content": "Blue.",
        },
        {
            "content": "Blue.",
            "toolInvocations": [
                {"state": "result", "toolCallId": "a", "toolName": "look", "args": {}, "result": {"sky": 1}}
            ],
        },
    ],
)
def test_pages_of_version_4_have_their_calls_elsewhere(message: Any) -> None:
    """In parts of one type, or beside the text, which was said last; with the time of each message."""
    listed = [
        {"id": "1", "role": "user", "content": "Sky?", "createdAt": "2025-03-01T10:00:00.000Z"},
        {"id": "2", "role": "assistant", "createdAt": "2025-03-01T10:00:05.000Z", **message},
        {"id": "3", "role": "data", "content": "", "data": {"seen": True}},
    ]
    found = read(listed)
    assert found.body["messages"] == [
        {"role": "user", "content": "Sky?"},
        called("a"),
        gave("a", '{"sky":1}'),
        {"role": "assistant", "content": "Blue."},
    ]
    assert [time - found.times[0] for time in found.times if time and found.times[0]] == [0, 5, 5, 5]


def test_attachments_of_version_4_are_files() -> None:
    """They stood beside the content."""
    attached = {"name": "a.png", "contentType": "image/png", "url": DATA_URL}
    listed = [
        {"role": "user", "content": "See.", "experimental_attachments": [attached]},
        {"role": "assistant", "content": "", "toolInvocations": []},
    ]
    assert messages_in(listed)[0]["content"][1] == {"type": "image_url", "image_url": {"url": DATA_URL}}


@pytest.mark.parametrize(
    ("state", "content"),
    [
        ({"state": "output-available", "output": "x"}, "x"),
        ({"state": "output-available", "output": [1]}, "[1]"),
        ({"state": "output-error", "errorText": "no", "rawInput": "{"}, "no"),
        ({"state": "output-denied", "approval": {"approved": False, "reason": "not now"}}, "not now"),
        ({"state": "approval-responded", "approval": {"approved": False}}, "Tool call execution denied."),
        ({"state": "approval-responded", "approval": {"approved": True}}, None),
        ({"state": "approval-requested", "approval": {"id": "p"}}, None),
        ({"state": "input-available"}, None),
        ({"state": "output-available", "output": "x", "providerExecuted": True}, "x"),
    ],
)
def test_a_call_of_a_page_has_its_result_or_stays_open(state: Any, content: str | None) -> None:
    """By its state."""
    part = {"type": "dynamic-tool", "toolName": "look", "toolCallId": "a", **state}
    arguments = json.dumps(state.get("rawInput", {}))
    results = [] if content is None else [gave("a", content)]
    assert messages_in([{"role": "assistant", "parts": [part]}]) == [
        called("a", arguments=arguments),
        *results,
    ]


def test_a_steering_message_stands_between_the_steps() -> None:
    """As version 7 writes it into the answer."""
    parts = [
        {"type": "step-start"},
        {"type": "tool-look", "toolCallId": "a", "state": "output-available", "input": {}, "output": "x"},
        {"type": "steering-message", "id": "s", "parts": [{"type": "text", "text": "Faster."}]},
        {"type": "step-start"},
        {"type": "text", "text": "Done."},
    ]
    found = messages_in([{"id": "1", "role": "assistant", "parts": parts}])
    assert found == [
        called("a"),
        gave("a", "x"),
        {"role": "user", "content": "Faster."},
        {"role": "assistant", "content": "Done."},
    ]


def test_what_no_request_carries_is_noted() -> None:
    """One note a kind, with how many there were; a call that was never whole is none."""
    parts = [
        {"type": "reasoning", "text": "hm"},
        {"type": "reasoning", "text": "hm"},
        {"type": "data-progress", "data": 1},
        {"type": "source-url", "url": "https://example.org"},
        {"type": "tool-look", "toolCallId": "a", "state": "input-streaming"},
        {"type": "file", "mediaType": "image/png", "url": DATA_URL},
        {"type": "text", "text": "Done."},
    ]
    found = read([{"id": "1", "role": "assistant", "parts": parts}])
    assert found.body["messages"] == [{"role": "assistant", "content": "Done."}]
    assert found.notes == (
        "not read: call with its input half written (1): the rest never came",
        "not read: reasoning (2): no provider takes reasoning back from a recording",
        "not read: data-progress (1): no request of OpenAI Chat carries it",
        "not read: source-url (1): no request of OpenAI Chat carries it",
        "not read: file, made by the model (1): no request of OpenAI Chat carries it",
    )


@pytest.mark.parametrize(
    "system",
    ["Be brief.", {"role": "system", "content": "Be brief."}, [{"role": "system", "content": "Be brief."}]],
)
def test_instructions_stand_first(system: Any) -> None:
    """A text, a message or several; and a page may have them as a message."""
    listed = [{"role": "assistant", "content": [CALL]}]
    first = {"role": "system", "content": "Be brief."}
    for key in ("system", "instructions"):
        assert messages_in({"messages": listed, key: system})[0] == first
    page = {"id": "0", "role": "system", "parts": [{"type": "text", "text": "Be brief."}]}
    assert messages_in([page])[0] == first
    with pytest.raises(FormatError, match="instructions must be a text"):
        read_foreign({"messages": listed, "system": 3})


def test_tools_are_read_as_the_sdk_keeps_them() -> None:
    """By name; those of a provider and schemas that JSON has lost are noted."""
    tools = {
        "look": {"description": "Looks.", "inputSchema": {"jsonSchema": {"type": "object"}}},
        "old": {"parameters": {"type": "object"}},
        "lost": {"inputSchema": {"def": {"type": "object"}, "type": "object"}},
        "web": {"type": "provider", "id": "openai.web_search", "args": {}},
    }
    chat = {
        "messages": [{"role": "assistant", "content": [CALL]}],
        "tools": tools,
        "model": {"modelId": "gpt-4o"},
    }
    found = read(chat)
    assert [(one["function"]["name"], one["function"]["parameters"]) for one in found.body["tools"]] == [
        ("look", {"type": "object"}),
        ("old", {"type": "object"}),
        ("lost", {}),
    ]
    assert found.body["model"] == "gpt-4o"
    assert [note.split(" (")[0] for note in found.notes] == [
        "not read: schema of a tool, an object of zod",
        "not read: tool of a provider",
    ]


def test_chats_a_line_are_conversations_of_their_own() -> None:
    """And messages a line are one: only these have roles."""
    messages = [{"role": "assistant", "content": [CALL]}]
    assert read_foreign([{"messages": messages}, {"messages": messages}]) is None
    reader = reader_of(messages)
    assert reader is not None
    assert reader.by_line


@pytest.mark.parametrize(
    ("broken", "path"),
    [
        ([{"role": "assistant", "content": [CALL]}, 3], "messages[1]"),
        ([{"role": "assistant", "content": [CALL, {"type": "poem"}]}], "messages[0].content[1]"),
        (
            [{"role": "assistant", "content": [CALL]}, {"role": "user", "content": {"text": "x"}}],
            "messages[1].content",
        ),
        (
            [{"role": "user", "content": [{"type": "file", "mediaType": "image/png"}]}],
            "messages[0].content[0]",
        ),
        (
            [{"role": "user", "content": [{"type": "file", "mediaType": "image/png"}, 5]}],
            "messages[0].content[0]",
        ),
    ],
)
def test_what_the_sdk_never_writes_is_refused_with_its_place(broken: Any, path: str) -> None:
    """Nothing is counted by guessing."""
    with pytest.raises(FormatError) as error:
        read_foreign(broken)
    assert error.value.path == path


@pytest.mark.parametrize(
    "others",
    [
        [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}],
        [
            {"role": "user", "parts": [{"text": "hi"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "x"}}]},
        ],
        [{"role": "user", "content": [{"type": "image", "source": {"type": "base64", "data": "aGk="}}]}],
        [{"role": "user", "content": [{"type": "file", "file": {"file_id": "f"}}]}],
        [{"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "x", "input": {}}]}],
        [{"role": "user", "content": [{"text": "hi"}]}],
        [{"type": "function_call", "call_id": "a", "name": "x", "arguments": "{}"}],
        {"messages": [{"role": "user", "content": "hi"}]},
    ],
)
def test_messages_of_a_wire_form_are_nobodys_recording(others: Any) -> None:
    """Also Gemini's, whose messages have parts, too."""
    assert read_foreign(others) is None
