"""OpenTelemetry's GenAI messages and spans, as the SDK and instrumentations write them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tests.complexity.counting_machine import assert_linear
from trimtab import validate
from trimtab.errors import FormatError
from trimtab.formats import ForeignConversation, read_foreign
from trimtab.replay import read_recording, read_recordings

QUESTION = {"role": "user", "parts": [{"type": "text", "content": "Sky?"}]}
CALLED = {
    "role": "assistant",
    "parts": [
        {"type": "reasoning", "content": "hm"},
        {"type": "text", "content": "I look."},
        {"type": "tool_call", "id": "a", "name": "look", "arguments": {"at": "Paris"}},
        {"type": "tool_call", "id": "b", "name": "look", "arguments": {"at": "Rome"}},
    ],
}
RESULTS = {
    "role": "tool",
    "parts": [
        {"type": "tool_call_response", "id": "a", "response": "rain"},
        {"type": "tool_call_response", "id": "b", "response": {"sky": "blue"}},
    ],
}
SAID = {"role": "assistant", "parts": [{"type": "text", "content": "Blue."}], "finish_reason": "stop"}
TOOL = {"type": "function", "name": "look", "description": "Looks.", "parameters": {"type": "object"}}


def _function(call_id: str, arguments: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": "look", "arguments": arguments}}


CHAT = [
    {"role": "user", "content": "Sky?"},
    {
        "role": "assistant",
        "content": "I look.",
        "tool_calls": [_function("a", '{"at":"Paris"}'), _function("b", '{"at":"Rome"}')],
    },
    {"role": "tool", "tool_call_id": "a", "content": "rain"},
    {"role": "tool", "tool_call_id": "b", "content": '{"sky":"blue"}'},
    {"role": "assistant", "content": "Blue."},
]


def read(source: Any) -> ForeignConversation:
    """Read the one conversation of a recording."""
    [found] = read_foreign(source) or []
    assert (found.program, found.format) == ("OpenTelemetry", "openai_chat")
    return found


def test_a_list_of_messages_is_a_body() -> None:
    """Parallel calls and their results stay together; reasoning is noted."""
    found = read([QUESTION, CALLED, RESULTS, SAID])
    assert found.body == {"messages": CHAT}
    assert validate(CHAT) == []
    assert found.notes == ("not read: reasoning (1): no provider takes reasoning back from a recording",)


def test_instructions_tools_and_model_may_stand_beside_the_messages() -> None:
    """Under the names of a request."""
    system = [{"type": "text", "content": "Be brief."}, {"type": "text", "content": "Be kind."}]
    beside = {"system_instructions": system, "tools": [TOOL], "model": "gpt-4o"}
    found = read({"messages": [QUESTION], **beside})
    assert found.body["messages"][0] == {"role": "system", "content": "Be brief.\nBe kind."}
    assert found.body["model"] == "gpt-4o"
    function = {key: TOOL[key] for key in ("name", "description", "parameters")}
    assert found.body["tools"] == [{"type": "function", "function": function}]


def test_instructions_may_be_a_text_and_parts_may_be_none() -> None:
    """Some write the one, and the other is a message that says nothing."""
    found = read({"messages": [QUESTION, {"role": "assistant", "parts": []}], "system": "Be brief."})
    assert [one["content"] for one in found.body["messages"]] == ["Be brief.", "Sky?", ""]


def test_values_of_otlp_are_taken_out_of_their_wrapping() -> None:
    """Lists and mappings that are no JSON in a text, too."""
    words = [
        {"key": "type", "value": {"stringValue": "text"}},
        {"key": "content", "value": {"stringValue": "Sky?"}},
    ]
    text = {"kvlistValue": {"values": words}}
    message = {
        "kvlistValue": {
            "values": [
                {"key": "role", "value": {"stringValue": "user"}},
                {"key": "parts", "value": {"arrayValue": {"values": [text]}}},
            ]
        }
    }
    recorded = {"key": "gen_ai.input.messages", "value": {"arrayValue": {"values": [message]}}}
    assert read([{"attributes": [recorded]}]).body["messages"] == CHAT[:1]
    bill = {"key": "gen_ai.usage.input_tokens", "value": {"intValue": "many"}}
    with pytest.raises(FormatError, match="intValue must be a whole number"):
        read_foreign([{"attributes": [recorded, bill]}])


@pytest.mark.parametrize(
    ("part", "written"),
    [
        (
            {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "aGk="},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
        ),
        (
            {"type": "blob", "modality": "image", "mime_type": None, "content": "aGk="},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
        ),
        (
            {"type": "uri", "modality": "image", "uri": "https://example.org/a.png"},
            {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        ),
        ({"type": "file", "modality": "image", "file_id": "f"}, {"type": "file", "file": {"file_id": "f"}}),
        ({"type": "poem", "verse": 1}, {"type": "text", "text": '{"type":"poem","verse":1}'}),
        (
            {"type": "blob", "modality": "image"},
            {"type": "text", "text": '{"type":"blob","modality":"image"}'},
        ),
    ],
)
def test_media_become_parts_of_chat(part: Any, written: Any) -> None:
    """What nobody knows is kept as the JSON it is."""
    message = {"role": "user", "parts": [{"type": "text", "content": "See."}, part]}
    assert read([message]).body["messages"][0]["content"][1] == written


def test_results_in_a_users_message_come_before_its_text() -> None:
    """As Pydantic AI writes what a user says next."""
    both = {"role": "user", "parts": [{"type": "text", "content": "And?"}, *RESULTS["parts"]]}
    found = read([QUESTION, CALLED, both]).body["messages"]
    assert [one["role"] for one in found] == ["user", "assistant", "tool", "tool", "user"]
    assert validate(found) == []


def _exported(calls: list[dict[str, Any]]) -> list[Any]:
    """Let the SDK record spans of one trace, and write each as its exporters do."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("tests")
    with tracer.start_as_current_span("run"):
        for attributes in calls:
            with tracer.start_as_current_span(f"chat {attributes.get('gen_ai.request.model', '')}") as span:
                span.set_attributes(attributes)
    return [json.loads(span.to_json()) for span in exporter.get_finished_spans()]


def _chat(messages: list[Any], tokens: int, **beside: Any) -> dict[str, Any]:
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "gpt-4o",
        "gen_ai.response.model": "gpt-4o-2024-08-06",
        "gen_ai.system_instructions": json.dumps([{"type": "text", "content": "Be brief."}]),
        "gen_ai.tool.definitions": json.dumps([TOOL]),
        "gen_ai.input.messages": json.dumps(messages),
        "gen_ai.usage.input_tokens": tokens,
        "gen_ai.usage.output_tokens": 7,
        **{key.replace("__", "."): value for key, value in beside.items()},
    }


def test_spans_of_the_sdk_are_one_conversation_with_its_bills() -> None:
    """The last call has all messages; each bill says after how many of them it was charged."""
    calls = [
        _chat([QUESTION], 40, gen_ai__usage__cache_read__input_tokens=0),
        _chat([QUESTION, CALLED, RESULTS], 90, gen_ai__output__messages=json.dumps([SAID])),
        {"gen_ai.operation.name": "invoke_agent", "gen_ai.input.messages": json.dumps([QUESTION])},
        {"gen_ai.operation.name": "execute_tool"},
    ]
    found = read(_exported(calls))
    assert found.body["messages"] == [{"role": "system", "content": "Be brief."}, *CHAT]
    assert found.body["model"] == "gpt-4o-2024-08-06"
    assert found.body["tools"][0]["function"]["name"] == "look"
    assert [(one.at, one.usage["input_tokens"], one.model) for one in found.bills] == [
        (2, 40, "gpt-4o-2024-08-06"),
        (5, 90, "gpt-4o-2024-08-06"),
    ]
    assert found.bills[0].usage["input_tokens_details"] == {"cached_tokens": 0}
    assert [(len(one.messages), one.cold) for one in found.calls] == [(2, True), (5, None)]
    times = [time for time in found.times if time is not None]
    assert len(times) == len(found.body["messages"])
    assert times == sorted(times)


def test_a_replay_plays_each_call_as_it_was_sent() -> None:
    """With what the bill says of the cache; two conversations are two recordings."""
    calls = [
        _chat([QUESTION], 40, gen_ai__usage__cache_read__input_tokens=0),
        _chat([QUESTION, CALLED, RESULTS], 90),
    ]
    spans = _exported(calls)
    recording = read_recording(spans)
    assert [(len(one.messages), one.cold) for one in recording.calls] == [(2, True), (5, None)]
    other = {"role": "user", "parts": [{"type": "text", "content": "Sea?"}]}
    names = [*read_recordings([*spans, *_exported([_chat([other], 40)])])]
    assert len(names) == len(set(names)) == 2


def test_an_export_of_otlp_is_read_as_its_spans() -> None:
    """With attributes in its own wrapping; a file with an export a line is one recording."""
    value = {"stringValue": json.dumps([QUESTION])}
    span = {
        "traceId": "1",
        "startTimeUnixNano": "5000000000",
        "attributes": [
            {"key": "gen_ai.input.messages", "value": value},
            {"key": "gen_ai.usage.input_tokens", "value": {"intValue": "9"}},
        ],
    }
    document = {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}
    for source in (document, [document]):
        found = read(source)
        assert found.body == {"messages": CHAT[:1]}
        assert found.times == (5.0,)
        assert [(one.at, one.usage) for one in found.bills] == [(1, {"input_tokens": 9, "output_tokens": 0})]


def test_conversations_are_told_apart_by_what_they_sent() -> None:
    """A call that goes on has all messages of one before; the id of the conversation divides further."""
    other = {"role": "user", "parts": [{"type": "text", "content": "Sea?"}]}
    calls = [
        _chat([QUESTION], 1, gen_ai__conversation__id="x"),
        _chat([other], 2, gen_ai__conversation__id="y"),
        _chat([QUESTION], 3, gen_ai__conversation__id="z"),
        _chat([QUESTION, SAID, other], 4, gen_ai__conversation__id="x"),
        _chat([other, SAID], 5, gen_ai__conversation__id="x"),
    ]
    found = read_foreign(_exported(calls)) or []
    assert [(one.name, [bill.usage["input_tokens"] for bill in one.bills]) for one in found] == [
        ("x 1", [1, 4]),
        ("y", [2]),
        ("z", [3]),
        ("x 2", [5]),
    ]


def _span(number: int, trace: str, *texts: str, **beside: str) -> dict[str, Any]:
    """Write a span of a call: the user and the model take turns."""
    roles = ("user", "assistant")
    sent = [
        {"role": roles[at % 2], "parts": [{"type": "text", "content": text}]} for at, text in enumerate(texts)
    ]
    held = {"gen_ai.input.messages": json.dumps(sent), "gen_ai.usage.input_tokens": number}
    if answer := beside.pop("answer", None):
        said = {"role": "assistant", "parts": [{"type": "text", "content": answer}], "finish_reason": "stop"}
        held["gen_ai.output.messages"] = json.dumps([said])
    if name := beside.pop("conversation", None):
        held["gen_ai.conversation.id"] = name
    if system := beside.pop("system", None):
        held["gen_ai.system_instructions"] = system
    return {"traceId": trace, "startTimeUnixNano": str(number * 10**9), "attributes": held}


def _told(spans: list[Any]) -> list[tuple[list[str], list[tuple[int, int]]]]:
    """List conversations: the texts of each, and how many messages had which bill."""
    return [
        (
            [message["content"] for message in one.body["messages"]],
            [(bill.at, bill.usage["input_tokens"]) for bill in one.bills],
        )
        for one in read_foreign(spans) or []
    ]


def test_a_call_that_asks_again_replaces_nothing() -> None:
    """As the one that asks for a title: the longest call has the messages, and each keeps its bill."""
    spans = [
        _span(1, "t", "q1", system="Brief."),
        _span(2, "t", "q1", "a1", "q2", system="Brief."),
        _span(3, "t", "q1", "a1", "q2", "a2", "q3", system="Brief."),
        _span(4, "t", "q1", answer="A title"),
    ]
    texts = ["Brief.", "q1", "a1", "q2", "a2", "q3"]
    assert _told(spans) == [(texts, [(2, 1), (4, 2), (6, 3), (2, 4)])]
    assert [len(one.times) for one in read_foreign(spans) or []] == [6]
    behind = [*spans, _span(5, "t", "q1", "a1", "q2", "a2", "q3", "a3", "q4", system="Brief.")]
    assert _told(behind) == [([*texts, "a3", "q4"], [(2, 1), (4, 2), (6, 3), (2, 4), (8, 5)])]


def test_a_call_of_another_trace_goes_on_behind_the_recorded_answer() -> None:
    """Else two users that begin alike would be one; a conversation with an id needs no answer."""
    first = [_span(1, "a", "hi", answer="A"), _span(2, "b", "hi", answer="B")]
    assert _told([*first, _span(3, "c", "hi", "C", "more")]) == [
        (["hi", "A"], [(1, 1)]),
        (["hi", "B"], [(1, 2)]),
        (["hi", "C", "more"], [(3, 3)]),
    ]
    assert _told([*first, _span(3, "c", "hi", "A", "more"), _span(4, "d", "hi", "B", "x")]) == [
        (["hi", "A", "more"], [(1, 1), (3, 3)]),
        (["hi", "B", "x"], [(1, 2), (3, 4)]),
    ]
    assert len(_told([_span(1, "a", "hi"), _span(2, "b", "hi", "A", "more")])) == 2
    named = [_span(1, "a", "hi", conversation="x"), _span(2, "b", "hi", "A", "more", conversation="x")]
    assert _told(named) == [(["hi", "A", "more"], [(1, 1), (3, 2)])]


def test_calls_without_a_message_have_nothing_in_common() -> None:
    """One that sent instructions alone begins no other."""
    assert len(_told([_span(1, "t", system="Brief."), _span(2, "t", "hi"), _span(3, "t", system="B")])) == 3


def test_a_conversation_that_was_gone_on_from_twice_is_two() -> None:
    """Each keeps the calls that are its own."""
    spans = [
        _span(1, "t", "q", answer="a"),
        _span(2, "t", "q", "a", "x"),
        _span(3, "t", "q", "a", "y"),
        _span(4, "t", "q", "a", "x", "b", "z"),
        _span(5, "t", "q", "a", "y", "c", "z"),
    ]
    assert _told(spans) == [
        (["q", "a", "x", "b", "z"], [(1, 1), (3, 2), (5, 4)]),
        (["q", "a", "y", "c", "z"], [(3, 3), (5, 5)]),
    ]


@pytest.mark.parametrize("kind", ["traces", "conversations", "one trace", "alike"])
def test_many_calls_are_read_in_time_that_grows_with_their_messages(kind: str) -> None:
    """Whether they are of one trace or of many, and also where all begin alike."""

    def case(count: int) -> Callable[[Any], Any]:
        spans = list[Any]()
        for number in range(1, count + 1):
            start = "q" if kind == "alike" else f"q{number}"
            trace = "t" if kind == "one trace" else f"t{number}"
            beside = {"conversation": f"c{number}"} if kind == "conversations" else {}
            spans.append(_span(number, trace, start, f"a{number}", "more", answer="end", **beside))
            spans.append(_span(number, f"{trace} b", start, f"a{number}", "more", "end", "x", **beside))
        return lambda counter: read_foreign(spans)

    assert_linear(case, (100, 200, 400))


def test_spans_of_openinference_have_a_key_for_each_value() -> None:
    """Numbers in the keys are places in lists."""
    called = "llm.input_messages.1.message.tool_calls"
    found = read(
        _exported(
            [
                {
                    "llm.model_name": "gpt-4o",
                    "llm.input_messages.0.message.role": "user",
                    "llm.input_messages.0.message.contents.0.message_content.type": "text",
                    "llm.input_messages.0.message.contents.0.message_content.text": "Sky?",
                    "llm.input_messages.1.message.role": "assistant",
                    "llm.input_messages.1.message.content": "I look.",
                    f"{called}.0.tool_call.id": "a",
                    f"{called}.0.tool_call.function.name": "look",
                    f"{called}.0.tool_call.function.arguments": '{"at":"Paris"}',
                    f"{called}.1.tool_call.id": "b",
                    f"{called}.1.tool_call.function.name": "look",
                    f"{called}.1.tool_call.function.arguments": '{"at":"Rome"}',
                    "llm.input_messages.2.message.role": "tool",
                    "llm.input_messages.2.message.tool_call_id": "a",
                    "llm.input_messages.2.message.content": "rain",
                    "llm.input_messages.3.message.role": "tool",
                    "llm.input_messages.3.message.tool_call_id": "b",
                    "llm.input_messages.3.message.content": '{"sky":"blue"}',
                    "llm.output_messages.0.message.role": "assistant",
                    "llm.output_messages.0.message.content": "Blue.",
                    "llm.tools.0.tool.json_schema": json.dumps({"type": "function", "function": TOOL}),
                    "llm.token_count.prompt": 70,
                    "llm.token_count.completion": 4,
                    "llm.token_count.prompt_details.cache_read": 12,
                }
            ]
        )
    )
    assert found.body["messages"] == CHAT
    assert found.body["tools"] == [{"type": "function", "function": TOOL}]
    assert [(one.at, one.usage) for one in found.bills] == [
        (4, {"input_tokens": 70, "output_tokens": 4, "input_tokens_details": {"cached_tokens": 12}})
    ]


def test_spans_of_openllmetry_and_of_the_vercel_sdk_are_read() -> None:
    """The one has a key for each value, the other its own messages as JSON."""
    flat = {
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": "Sky?",
        "gen_ai.prompt.1.role": "assistant",
        "gen_ai.prompt.1.tool_calls.0.id": "a",
        "gen_ai.prompt.1.tool_calls.0.name": "look",
        "gen_ai.prompt.1.tool_calls.0.arguments": "{}",
        "gen_ai.prompt.2.role": "tool",
        "gen_ai.prompt.2.tool_call_id": "a",
        "gen_ai.prompt.2.content": "rain",
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": "Rain.",
        "llm.request.functions.0.name": "look",
        "llm.request.functions.0.parameters": '{"type": "object"}',
        "gen_ai.usage.prompt_tokens": 30,
    }
    call = {"type": "tool-call", "toolCallId": "a", "toolName": "look", "input": {}}
    result = {"type": "tool-result", "toolCallId": "a", "output": {"type": "text", "value": "rain"}}
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "Sky?"}]},
        {"role": "assistant", "content": [call]},
        {"role": "tool", "content": [result]},
    ]
    own = {
        "ai.prompt.messages": json.dumps(messages),
        "ai.prompt.tools": [
            json.dumps({"type": "function", "name": "look", "inputSchema": {"type": "object"}})
        ],
        "ai.usage.promptTokens": 30,
    }
    expected = [
        {"role": "user", "content": "Sky?"},
        {"role": "assistant", "content": None, "tool_calls": [_function("a", "{}")]},
        {"role": "tool", "tool_call_id": "a", "content": "rain"},
    ]
    for attributes, answer in ((flat, [{"role": "assistant", "content": "Rain."}]), (own, [])):
        found = read(_exported([attributes]))
        assert found.body["messages"] == [*expected, *answer]
        assert found.body["tools"][0]["function"] == {"name": "look", "parameters": {"type": "object"}}
        assert [one.usage["input_tokens"] for one in found.bills] == [30]


def test_an_answer_in_a_span_of_the_vercel_sdk_joins_its_traces() -> None:
    """Each of its runs is a trace: the next has the answer, with its calls, among its messages."""
    call = {"type": "tool-call", "toolCallId": "a", "toolName": "look", "input": {"at": "Rome"}}
    result = {"type": "tool-result", "toolCallId": "a", "output": {"type": "text", "value": "rain"}}
    asked = [{"role": "user", "content": [{"type": "text", "text": "Sky?"}]}]
    said = {"role": "assistant", "content": [{"type": "text", "text": "I look."}, call]}
    told = [*asked, said, {"role": "tool", "content": [result]}]
    answer = {**call, "input": '{"at":"Rome"}'}
    first = {"ai.response.text": "I look.", "ai.response.toolCalls": json.dumps([answer])}
    spans = [
        *_exported([{"ai.prompt.messages": json.dumps(asked), **first}]),
        *_exported([{"ai.prompt.messages": json.dumps(told), "ai.response.text": "Rain."}]),
    ]
    assert [one.get("content") for one in read(spans).body["messages"]] == [
        "Sky?",
        "I look.",
        "rain",
        "Rain.",
    ]


def _held(key: str, value: Any) -> dict[str, Any]:
    return {"attributes": {"gen_ai.input.messages": [QUESTION], key: value}}


def _deep(levels: int) -> Any:
    value: Any = {"stringValue": "x"}
    for _ in range(levels):
        value = {"arrayValue": {"values": [value]}}
    return value


_ASKED = [{"key": "gen_ai.input.messages", "value": {"stringValue": json.dumps([QUESTION])}}]


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ([{"attributes": {"gen_ai.operation.name": "chat"}}], "no span has 'gen_ai.input.messages'"),
        ([{"attributes": {"gen_ai.input.messages": "not json"}}], "is not JSON"),
        ([{"attributes": {"gen_ai.input.messages": {"a": 1}}}], "must be a list, not dict"),
        (
            [{"attributes": {"gen_ai.input.messages": '[{"role": "user"}]'}}],
            "messages[0] has no list of parts",
        ),
        ([QUESTION, {"parts": []}], "messages[1] must be a mapping with a role"),
        (
            [{"start_time": "noon", "attributes": {"gen_ai.input.messages": [QUESTION]}}],
            "must be a time, not 'noon'",
        ),
        (
            [{"attributes": {"gen_ai.input.messages": [QUESTION], "gen_ai.tool.definitions": "3"}}],
            "tools must be a list",
        ),
        (
            [{"attributes": {"gen_ai.input.messages": [QUESTION], "gen_ai.tool.definitions": "[3]"}}],
            "tool must be a mapping",
        ),
        ([_held("gen_ai.usage.input_tokens", float("inf"))], "must be a whole number, not inf"),
        ([{"startTimeUnixNano": "9" * 400, **_held("a", 1)}], "startTimeUnixNano of a span must be a time"),
        ([{"start_time": "9" * 400, **_held("a", 1)}], "start_time of a span must be a time"),
        ([{"attributes": {"gen_ai.input.messages": "[" * 50_000}}], "is not JSON"),
        ([{"attributes": [{"key": "gen_ai.input.messages", "value": _deep(50_000)}]}], "nested too deep"),
        ([{"resourceLogs": []}], "logs of OTLP ('resourceLogs') are not read"),
        ({"resourceLogs": []}, "logs of OTLP ('resourceLogs') are not read"),
    ],
)
def test_what_nobody_writes_is_refused(broken: Any, said: str) -> None:
    """With what is wrong."""
    with pytest.raises(FormatError, match=re.escape(said)):
        read_foreign(broken)


def test_a_list_of_otlp_that_is_none_is_empty() -> None:
    """Whatever is in its place."""
    value = {"arrayValue": {"values": 1.5}}
    found = read([{"attributes": [{"key": "gen_ai.tool.definitions", "value": value}, *_ASKED]}])
    assert found.body == {"messages": CHAT[:1]}


def test_a_span_alone_is_a_document() -> None:
    """It is the one of its list."""
    span = _span(1, "t", "hi")
    assert read(span) == read([span])
    assert read({"context": {"trace_id": "t"}, "attributes": span["attributes"]}).body == read(span).body


@pytest.mark.parametrize("body", [{"messages": []}, {"input": "hi"}, {"contents": []}, {"role": "user"}])
def test_attributes_alone_make_no_span(body: Any) -> None:
    """A message or a body may have some from its writer."""
    assert read_foreign([{"attributes": {}, "content": "hi", **body}]) is None
    assert read_foreign({"attributes": {}, "trace_id": "t", "content": "hi", **body}) is None
