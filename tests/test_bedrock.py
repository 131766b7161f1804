"""Bedrock's Converse form: what belongs together, what may be cut, where cache points go, what it costs."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.judge import judge, newly_refused
from tests.judge.clients import bedrock_client
from tests.judge.converse import Unwritten, blocks_of, in_converse
from tests.judge.recorded import recorded
from tests.judge.server import provider
from tests.judge.talks import talk
from trimtab import (
    BudgetExceededError,
    Context,
    Fitted,
    Session,
    SlidingWindow,
    TruncateText,
    afit,
    fit,
    repair,
    validate,
)
from trimtab.conversation import group
from trimtab.counting import CharCounter, EstimateCounter, RemoteCounter, counter_for, measure
from trimtab.errors import FormatError
from trimtab.formats import detect, get_format
from trimtab.testing import WordCounter, request_bodies

Message = dict[str, Any]
FORM = get_format("bedrock")
POINT = {"cachePoint": {"type": "default"}}
CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
THOUGHT = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "EqQB"}}}


def user(*blocks: Any) -> Message:
    """Write a message of the user's; a text is a block."""
    return {"role": "user", "content": [{"text": one} if isinstance(one, str) else one for one in blocks]}


def model(*blocks: Any) -> Message:
    """Write a message of the model's."""
    return {**user(*blocks), "role": "assistant"}


def call(call_id: str) -> Message:
    """Write a call."""
    return {"toolUse": {"toolUseId": call_id, "name": "look", "input": {"at": "dog"}}}


def result(call_id: str, *content: Any, **more: Any) -> Message:
    """Write a result; a text is a block."""
    made = [{"text": one} if isinstance(one, str) else one for one in content]
    return {"toolResult": {"toolUseId": call_id, "content": made, **more}}


LOOK = {"toolSpec": {"name": "look", "inputSchema": {"json": {"type": "object"}}}}
THINKS = {"additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 1024}}}


def what_fits(made: Callable[[], Fitted[Any]]) -> list[Message]:
    """Return what came of a fit, also of one in which too much must stay."""
    try:
        return made().messages
    except BudgetExceededError as error:
        return [] if error.attempt is None else error.attempt.messages


def units(messages: list[Message]) -> list[tuple[tuple[int, ...], dict[int, Any]]]:
    """Group messages, and say which parts of which a unit has."""
    return [(unit.indices, dict(unit.parts)) for unit in group(messages, format=FORM)]


PICTURE = {"image": {"format": "png", "source": {"bytes": b"-"}}}
TEXT = {"role": "user", "content": "hi"}


@pytest.mark.parametrize(
    ("messages", "name"),
    [
        ([user("hi"), model(call("A"))], "bedrock"),
        ([user("hi"), model(THOUGHT, "ho"), user("so")], "bedrock"),
        ([user(PICTURE, "what is it?")], "bedrock"),
        ([user("hi", POINT)], "bedrock"),
        ([user("hi"), model(call("A")), user(result("A", "x")), *[user("so"), model("ho")] * 300], "bedrock"),
        ({"modelId": CLAUDE, "messages": []}, "bedrock"),
        ({"modelId": CLAUDE, "system": [{"text": "s"}], "messages": [user("hi")]}, "bedrock"),
        ({"system": [{"text": "s"}], "messages": [user("hi"), model(call("A"))]}, "bedrock"),
        # what tells nothing, and what tells another form, stays what it was
        ([user("hi")], "openai_chat"),
        ([TEXT, model(call("A"))], "openai_chat"),
        ({"system": "s", "messages": [TEXT]}, "anthropic"),
        ({"system": [{"text": "s"}], "messages": [user("hi")]}, "anthropic"),
        ({"system": "s", "messages": [TEXT, model(call("A"))]}, "anthropic"),
        ([{"role": "user", "content": [{"type": "text", "text": "w", "cachePoint": {}}]}], "openai_chat"),
        ([{"role": "user", "content": [{"type": "image", "source": {"type": "url"}}]}], "anthropic"),
        ([{"role": "user", "parts": [{"text": "hi"}]}], "gemini"),
        ({"contents": [], "toolConfig": {}}, "gemini"),
        ([{"role": "user", "content": [{"image": {"url": "https://cats"}}]}], "openai_chat"),
    ],
)
def test_it_is_told_by_what_it_alone_has(messages: Any, name: str) -> None:
    """The keys of a body, and blocks without a type; a text is written so by other libraries, too."""
    assert detect(messages).name == name


@pytest.mark.parametrize("form", ["auto", "openai_chat", "openai_responses", "anthropic"])
@pytest.mark.parametrize("said", [[user("hi")], [user("hi"), {"role": "assistant", "content": "ho"}]])
def test_texts_without_a_type_are_refused_with_the_name_of_this_form(form: str, said: Any) -> None:
    """As before, where nothing tells Converse's API."""
    with pytest.raises(FormatError, match=r"^messages\[0\]: .*format='bedrock'"):
        fit(said, 99, counter=WordCounter(), format=form)


def test_a_text_for_content_is_a_fault() -> None:
    """The API takes a list of blocks alone."""
    mixed = [user("hi"), {"role": "assistant", "content": "hello"}]
    assert [found.rule for found in validate(mixed, format=FORM)] == ["bad_content"]


@pytest.mark.parametrize("form", ["anthropic", "openai_chat", "openai_responses"])
def test_its_blocks_are_refused_in_other_forms_with_the_name_of_this_one(form: str) -> None:
    """Their calls and results would not be seen."""
    with pytest.raises(FormatError, match="pass format='bedrock'"):
        fit([user("a"), model(call("A"))], 99, counter=WordCounter(), format=form)


def test_the_user_comes_first() -> None:
    """The model may not; what follows it is looked at as if it were not there."""
    assert [found.rule for found in validate([model("a"), user("b")], format=FORM)] == ["wrong_order"]
    fitted = fit([user("a " * 50), model("b"), user("c")], 12, counter=WordCounter(format=FORM), format=FORM)
    assert fitted.messages == [user("c")]


def test_a_conversation_that_alternates_still_does() -> None:
    """Whatever the budget: the default strategy makes no neighbors of one role."""
    body = talk("bedrock", 12)
    whole = measure(body, counter=WordCounter(format=FORM)).tokens
    for budget in range(150, whole, 37):
        said = fit(body, budget, counter=WordCounter(format=FORM)).messages
        assert [one["role"] for one in said] == ["user", "assistant"] * (len(said) // 2) + ["user"]


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "strategy",
    [
        *(None, "priority_based", "relevant", "agent"),
        *(SlidingWindow(protect_roles=[role]) for role in ("user", "tool")),
        *(TruncateText(), SlidingWindow(keep_turns=True)),
    ],
)
def test_what_stays_is_what_stays_in_anthropics_form(strategy: Any) -> None:
    """The same models are behind both: what goes on with a turn is one question (design/014)."""
    fits = 0
    for valid in (True, False):
        for body in request_bodies(60, format="anthropic", seed=7, valid=valid):
            given = body["messages"]
            try:
                written = [{**one, "content": blocks_of(one["content"])} for one in given]
            except (KeyError, TypeError, Unwritten):
                continue
            if any(POINT in one["content"] for one in written):
                continue
            whole = WordCounter(format="anthropic").count(given)
            assert WordCounter(format=FORM).count(written) == whole
            for budget in (whole // 5, whole * 9 // 20, whole * 7 // 10, whole * 9 // 10):
                asked = partial(places_that_stay, max(1, budget), strategy)
                assert asked(written, "bedrock") == asked(given, "anthropic")
                fits += 1
    assert fits > 100


def places_that_stay(budget: int, strategy: Any, messages: list[Message], form: str) -> Any:
    """Return which messages stay, or how much would be needed."""
    counter = WordCounter(format=form)
    try:
        return fit(messages, budget, counter=counter, format=form, strategy=strategy).positions
    except BudgetExceededError as error:
        return error.needed_tokens, error.limit_tokens


def test_words_behind_results_open_a_turn() -> None:
    """As in Anthropic's form; a fit may make such, where nothing shows that the model thinks."""
    loop = [
        *(user("a"), model(THOUGHT, call("A")), user(result("A", "x"))),
        *(user("faster"), model(call("B")), user(result("B", "y"))),
    ]
    assert [unit.indices for unit in group(loop)] == [(0,), (1, 2), (3,), (4, 5)]
    beside = [*loop[:2], user(result("A", "x"), "faster"), *loop[4:]]
    assert [unit.indices for unit in group(beside)] == [(0,), (1, 2), (2,), (3, 4)]
    said = [user("a"), model(call("A")), user(result("A", "x")), model("b " * 30), user("c")]
    protecting = SlidingWindow(protect_roles=["tool"])
    fitted = fit(said, 20, counter=WordCounter(format=FORM), strategy=protecting)
    assert fitted.positions == [0, 1, 2, 4]


def test_a_message_parted_by_a_repair_has_its_cache_point_once() -> None:
    """A point goes with the block it stands behind (fuzz 31/5428)."""
    said = [
        user("a"),
        model(call("A")),
        user("b", result("A", "x"), POINT, result("nobody", "y")),
        model("c"),
    ]
    mended = repair([*said, user("d")], format="bedrock").messages
    assert mended[2] == user(result("A", "x"), POINT, "b")


def test_a_point_behind_reasoning_leaves_with_a_repair() -> None:
    """The service refuses one there."""
    thought = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}}
    point = {"cachePoint": {"type": "default"}}
    said = [user("a"), {"role": "assistant", "content": [thought, point, {"text": "b"}]}, user("c")]
    mended = repair(said, format="bedrock").messages
    assert mended[1]["content"] == [thought, {"text": "b"}]
    assert judge("bedrock", {"messages": mended}) == []


def test_a_block_of_a_result_with_two_kinds_costs_both() -> None:
    """Where a history is counted from the newest back, too."""
    both = {"text": "a", "json": {"a": "b" * 400}}
    said = [user("hi"), model(call("t")), user(result("t", both))]
    counter = EstimateCounter(format=FORM)
    assert fit(said, 10_000, counter=counter).report.tokens_after == counter.count(said) > 150


def test_system_text_that_comes_first_is_a_fault_of_its_place() -> None:
    """The request has it beside the messages; each such message is named."""
    said = [{"role": "system", "content": [{"text": text}]} for text in "ab"]
    found = validate([*said, user("hi")], format="bedrock")
    assert [(one.index, one.rule) for one in found] == [(0, "misplaced_system"), (1, "misplaced_system")]


def test_too_many_cache_points_of_the_input_are_no_new_fault() -> None:
    """Fewer of too many are refused as the many were (fuzz 5/19852); what leaves takes its points along."""
    said = [one for at in range(7) for one in (user(f"{at} " * 9, POINT), model("b"))] + [user("c")]
    fitted = fit(said, 70, counter=WordCounter(format=FORM))
    assert len(fitted.messages) < len(said)
    assert newly_refused(FORM.name, {"messages": said}, {"messages": fitted.messages}) == []
    few = fit(said, 40, counter=WordCounter(format=FORM))
    assert judge(FORM.name, {"modelId": CLAUDE, "messages": few.messages}) == []


def test_a_cache_point_is_no_part_of_a_message_of_results() -> None:
    """Behind or between them: the message is the tools', and words beside them are a unit by themselves."""
    messages = [
        user("a"),
        model(call("A"), call("B")),
        user(result("A", "x"), POINT, result("B", "y"), POINT),
    ]
    assert FORM.kind(messages[2]) == "tool"
    assert units(messages) == [((0,), {}), ((1, 2), {2: (0, 2)})]
    messages[2]["content"].append({"text": "and?"})
    assert FORM.kind(messages[2]) == "user"
    assert units(messages)[2] == ((2,), {2: (4,)})


def test_a_point_leaves_with_what_it_marks() -> None:
    """And with one that comes to stand behind another, or behind reasoning."""
    message = user(result("A", "x"), POINT, "w", POINT)
    assert FORM.without_parts(message, [0]) == user("w", POINT)
    assert FORM.without_parts(message, [2]) == user(result("A", "x"), POINT)
    assert FORM.without_parts(model(THOUGHT, "w", POINT, call("A")), [1]) == model(THOUGHT, call("A"))
    assert FORM.without_parts(message, []) is message


def test_a_call_that_leaves_takes_reasoning_that_would_end_the_message() -> None:
    """Nothing is left of a message of a call and reasoning alone; positions are those of the message."""
    assert FORM.without_calls(model(THOUGHT, call("A")), frozenset("A")) is None
    assert FORM.without_calls(model("w", POINT, call("A"), call("B")), frozenset("B")) == model(
        "w", POINT, call("A")
    )
    other = model(call("A"))
    assert FORM.without_calls(other, frozenset("B")) is other
    assert FORM.tool_names(model("w", POINT, call("A"))) == {"A": "look"}


def test_results_of_one_turn_in_two_messages_are_joined_by_a_repair() -> None:
    """Behind the results that are there and before the user's words; a mark behind them stays theirs."""
    messages = [
        user("a"),
        model(call("A"), call("B")),
        user(result("A", "x"), POINT, "so?"),
        user(result("B", "y")),
    ]
    assert [found.rule for found in validate(messages)] == ["late_result"]
    mended = repair(messages).messages
    assert mended[2] == user(result("A", "x"), result("B", "y"), POINT, "so?")
    assert len(mended) == 3


def test_texts_are_cut_also_inside_what_a_tool_returned_as_an_object() -> None:
    """It stays an object with its keys; call arguments and a message with reasoning stay as they are."""
    long = " ".join(["word"] * 200)
    told = user(result("A", {"json": {"page": long, "at": [7, {"more": "short"}]}}))
    messages = [user("a"), model(THOUGHT, long, call("A")), told]
    fitted = fit(messages, 330, counter=WordCounter(format=FORM), strategy=TruncateText())
    held = fitted.messages[2]["content"][0]["toolResult"]["content"][0]["json"]
    assert fitted.messages[1] is messages[1]
    assert held["at"] == [7, {"more": "short"}]
    assert len(held["page"].split()) < 150
    assert not validate(fitted.messages)
    assert [slot.text for slot in FORM.texts(model("w", call("A")))] == ["w"]
    assert FORM.texts(model(THOUGHT, "w")) == []


def test_a_result_that_is_emptied_has_no_empty_block_and_stays_failed() -> None:
    """The API refuses an empty text. It refuses a failure that says nothing, too: who edits is told."""
    failed = user(result("A", "x", "y", status="error"))
    path = ("content", 0, "toolResult", "content")
    emptied = FORM.with_texts(failed, {(*path, 0, "text"): "", (*path, 1, "text"): "z"})
    assert emptied == user(result("A", "z", status="error"))
    assert FORM.with_texts(failed, {(*path, at, "text"): "" for at in (0, 1)}) == user(
        result("A", status="error")
    )


def test_a_body_is_written_back_with_what_was_given_beside_it() -> None:
    """System text as blocks, tools into `toolConfig` beside its choice; the rest is the caller's."""
    tools = [FORM.tool_schema("look", description="Looks.", parameters={"type": "object"})]
    body = {
        "modelId": CLAUDE,
        "messages": [user("a")],
        "toolConfig": {"tools": tools, "toolChoice": {"any": {}}},
    }
    fitted = fit(body, 5_000)
    assert fitted.request == body
    assert fitted.request["toolConfig"] is body["toolConfig"]
    other = [FORM.tool_schema("find", description="Finds.", parameters={"type": "object"})]
    request = FORM.read_request(body)
    assert request.tools is tools
    given = FORM.write_request(
        type(request)(messages=[], system="s", tools=other, body=body), body["messages"]
    )
    assert given["system"] == [{"text": "s"}]
    assert given["toolConfig"] == {"tools": other, "toolChoice": {"any": {}}}
    whole = FORM.write_request(
        type(request)(messages=[], tools={"tools": other}, body=body), body["messages"]
    )
    assert whole["toolConfig"] == {"tools": other}


def test_a_context_and_a_session_put_system_text_beside_the_messages() -> None:
    """As the blocks that `converse` takes."""
    context = (
        Context(200, counter=WordCounter(), format=FORM).add("system", "Be brief.").add("h", [user("a")])
    )
    assert (context.fit().system, context.fit().messages) == ([{"text": "Be brief."}], [user("a")])
    session = Session(200, counter=WordCounter(format=FORM), format=FORM, system=[{"text": "Be brief."}])
    session.add(user("a"))
    assert session.fit().system == [{"text": "Be brief."}]


def test_reasoning_leaves_where_claude_would_refuse_it() -> None:
    """In the last turn where thinking is off; with a model that checks it, behind the first change."""
    said = [user("a " * 90), model("b"), user("c"), model(THOUGHT, "d"), user("e")]
    body = {"modelId": "us.anthropic.claude-fable-5-1-v1:0", "messages": said}
    assert fit(body, 60).request["messages"] == [user("c"), model("d"), user("e")]
    assert fit(body, 5_000).request["messages"] == said
    older = {**body, "modelId": CLAUDE}
    assert fit(older, 60).request["messages"][1] is said[3]
    off = {"additionalModelRequestFields": {"thinking": {"type": "disabled"}}}
    loop = {**older, **off, "messages": [user("c"), model(THOUGHT, POINT, "d")]}
    assert fit(loop, 5_000).request["messages"] == [user("c"), model("d")]


@pytest.mark.parametrize(
    ("named", "marks"),
    [(None, 4), (CLAUDE, 4), ("us.amazon.nova-pro-v1:0", 4), ("us.meta.llama3-3-70b-instruct-v1:0", 0)],
)
def test_cache_points_go_to_models_that_take_them(named: str | None, marks: int) -> None:
    """Llama refuses them; a model that nobody names may be any."""
    talk = [user("a"), model("b"), user("c"), model(THOUGHT), user("d", {"document": {"format": "md"}})]
    fitted = fit(talk, 5_000, counter=CharCounter(4), model=named, format=FORM, breakpoints=True, system="s")
    assert FORM.most_marks(named) == marks
    found = [message for message in fitted.messages if POINT in message["content"]]
    if marks:
        assert fitted.system == [{"text": "s"}, POINT]
        assert found[-1]["content"] == [{"text": "d"}, POINT, {"document": {"format": "md"}}]
        assert model(THOUGHT) in fitted.messages
    else:
        assert (found, fitted.system) == ([], "s")
        assert any("takes no marks" in note for note in fitted.report.notes)


def test_a_mark_may_last_an_hour() -> None:
    """Written as Bedrock has it; tools are not marked, since Nova refuses that."""
    mark = {"type": "ephemeral", "ttl": "1h"}
    fitted = fit([user("a")], 99, counter=CharCounter(4), format=FORM, breakpoints=mark)
    assert fitted.messages == [user("a", {"cachePoint": {"type": "default", "ttl": "1h"}})]
    tools = [FORM.tool_schema("f", description="", parameters={})]
    assert FORM.mark_last(tools, {"type": "ephemeral"}) is tools
    assert FORM.cache_marks([*tools, POINT]) == [{"type": "default"}]


def test_claude_costs_on_bedrock_what_it_costs_at_anthropic(data_dir: Path) -> None:
    """The recorded requests that both forms can say, under the same counter, to the token."""
    counted = 0
    for _, form, body in recorded(data_dir / "golden_usage.jsonl"):
        written = in_converse(body) if form == "anthropic" else None
        if written is not None:
            counted += 1
            counter = counter_for(body["model"])
            there = measure(body, counter=counter, format="anthropic").tokens
            assert measure(written, counter=counter, format=FORM).tokens == there
    assert counted > 60


def test_bedrocks_own_count_is_asked_through_a_function() -> None:
    """By boto3's client, in a thread; the server of the judge says that every request has one token."""
    pytest.importorskip("boto3")
    with provider() as server:
        client = bedrock_client(server.address)

        async def ask(question: Any) -> int:
            said = {"messages": list(question.messages), "system": question.system}
            answer = await asyncio.to_thread(client.count_tokens, modelId="m", input={"converse": said})
            return int(answer["inputTokens"])

        counter = RemoteCounter(ask, estimate=WordCounter(format=FORM))
        system = [{"text": "Be brief."}]
        fitted = asyncio.run(afit([user("a")], 50, counter=counter, system=system, format=FORM))
        client.close()
        assert (fitted.report.tokens_after, fitted.report.exact) == (1, True)
        form, body = server.bodies[-1]
    assert (form, body["messages"], body["system"]) == (FORM.name, [user("a")], system)


def test_a_picture_is_charged_by_its_size_as_bytes_and_as_base64() -> None:
    """boto3 takes bytes; JSON holds them in base64. One in S3 is charged as one that nobody sees."""
    png = base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    )
    counter = counter_for(CLAUDE).with_format(FORM)

    def tokens(source: Any) -> int:
        return counter.count_message(user({"image": {"format": "png", "source": source}}))

    assert tokens({"bytes": png}) == tokens({"bytes": base64.b64encode(png).decode()}) < 20
    assert tokens({"s3Location": {"uri": "s3://cats/one.png"}}) >= 1_600


def test_what_a_body_says_of_thinking_and_of_tools_is_charged() -> None:
    """`toolChoice` and `thinking` set how much of a prompt Claude is given; a cache point is free."""
    tools = [FORM.tool_schema("look", description="Looks.", parameters={"type": "object"})]
    body: Message = {"modelId": CLAUDE, "messages": [user("a")], "toolConfig": {"tools": tools}}
    plain = measure(body).tokens
    forced = {**body, "toolConfig": {"tools": [*tools, POINT], "toolChoice": {"any": {}}}}
    thinks = {
        **body,
        "additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 1024}},
    }
    assert measure(forced).tokens == plain + 588 - 496  # pricing page of Claude's docs, for Sonnet 4.5
    assert measure(thinks).tokens == plain + 28
    assert measure({**body, "system": [{"text": "Be brief."}, POINT]}).tokens == (
        measure({**body, "system": "Be brief."}).tokens
    )


def test_an_output_schema_is_read_from_its_json() -> None:
    """Bedrock takes it as text."""
    schema = '{"type": "object", "properties": {"name": {"type": "string"}}}'
    held = {
        "textFormat": {"type": "json_schema", "structure": {"jsonSchema": {"schema": schema, "name": "n"}}}
    }
    body = {"modelId": CLAUDE, "messages": [user("a")]}
    assert measure({**body, "outputConfig": held}).tokens > measure(body).tokens + 100


def test_models_that_take_no_words_beside_results_are_told() -> None:
    """Llama, Mistral and Command; Claude takes them."""
    tools = {"tools": [FORM.tool_schema("look", description="", parameters={})]}
    body = {"messages": [user("a"), model(call("A")), user(result("A", "x"), "w")], "toolConfig": tools}
    assert not validate({**body, "modelId": CLAUDE})
    found = validate({**body, "modelId": "us.meta.llama3-3-70b-instruct-v1:0"})
    assert [one.rule for one in found] == ["mixed_turn"]
    apart = [user("a"), model(call("A")), user(result("A", "x")), user("w"), model("b"), user("c")]
    found = validate({**body, "messages": apart, "modelId": "us.meta.llama3-3-70b-instruct-v1:0"})
    assert [(one.rule, one.index) for one in found] == [("mixed_turn", 3)]


def test_blank_text_leaves_with_the_results_it_stands_beside() -> None:
    """The API takes it beside them, and refuses it alone."""
    old = [user("look"), model(call("a"), call("b")), user(result("a", "dog " * 50), result("b", "cat"), " ")]
    asked = [*old, model("a dog"), user("and now?")]
    assert validate(asked, format="bedrock") == []
    assert [unit.indices for unit in group(asked, format="bedrock")] == [(0,), (1, 2), (3,), (4,)]
    fitted = fit(asked, 20, format="bedrock", counter=WordCounter())
    assert [one["content"][0].get("text") for one in fitted.messages][-1] == "and now?"
    assert 2 not in fitted.positions
    assert validate(fitted.messages, format="bedrock") == []
    unasked = [asked[0], *asked[2:]]
    mended = repair(unasked, format="bedrock").messages
    assert mended == [asked[0], *asked[3:]]
    waiting = [model(call("c")), user(result("c", "hen"), " ")]
    last = fit([*asked, *waiting], 20, format="bedrock", counter=WordCounter())
    assert last.messages[-3:] == [asked[-1], *waiting]  # the question is what was asked
    ahead = [*old[:2], user(" ", result("a"), result("b"))]  # where it is refused, and leaves by a repair
    assert repair(ahead, format="bedrock").messages[2:] == [user(result("a"), result("b"))]


def test_what_is_read_of_every_kind_of_block() -> None:
    """By what the model is shown of it; citations and marks are free, what nobody knows is JSON."""
    message = user(
        {"document": {"name": "notes", "format": "txt", "context": "mine", "source": {"text": "warm"}}},
        {"document": {"name": "two", "source": {"content": [{"text": "cold"}]}}},
        {"searchResult": {"source": "u", "title": "t", "content": [{"text": "found"}]}},
        {"guardContent": {"text": {"text": "guarded", "qualifiers": ["query"]}}},
        {"citationsContent": {"content": [{"text": "cited"}], "citations": [{"title": "free"}]}},
        {"video": {"format": "mp4", "source": {"s3Location": {"uri": "s3://cats/one.mp4"}}}},
        POINT,
        {"toolAddition": {"tool": {"name": "look"}}},
    )
    pieces = FORM.pieces(message)
    assert pieces.texts == ("notes", "mine", "warm", "two", "cold", "t", "u", "found", "guarded", "cited")
    assert pieces.other == ('{"toolAddition":{"tool":{"name":"look"}}}',)
    assert [(one.kind, one.name) for one in pieces.media] == [("video", "s3://cats/one.mp4")]
    assert pieces.parts == 7
    sealed = FORM.pieces(model({"reasoningContent": {"redactedContent": b"abc"}}, THOUGHT))
    assert (sealed.thoughts, sealed.sealed_chars) == (("hm",), 4)


def test_all_that_is_said_is_searched() -> None:
    """A plain message by a few lookups, any other by all that is read of it."""
    said = [user("a", POINT), model("b", call("A")), user(result("A", "c", {"json": {"is": "d"}}))]
    assert [FORM.full_text(one) for one in said] == ["a", 'b\nlook {"at":"dog"}', 'c\n{"is":"d"}']
    assert FORM.full_text(model(THOUGHT, "w")) == "w\nhm"
    assert FORM.full_text({**user("a"), "more": 5}) == 'a\n{"more":5}'


def test_a_conversation_is_written_for_reading() -> None:
    """Calls as JSON behind what was said, results before it."""
    assert FORM.transcript(model("w", call("A"))) == (
        'ASSISTANT: w\n[tool_calls] [{"toolUseId":"A","name":"look","input":{"at":"dog"}}]'
    )
    assert FORM.transcript(user(result("A", {"json": {"is": "warm"}}), POINT)) == "TOOL(A): warm"


@pytest.mark.parametrize(
    "key", ["text", "toolUse", "toolResult", "reasoningContent", "document", "cachePoint"]
)
@pytest.mark.parametrize("held", [None, 3, "said", [], {}, [None], {"toolUseId": "t", "content": None}])
def test_a_block_that_holds_what_it_may_not_is_counted(key: str, held: Any) -> None:
    """It may be in a log: it is counted by what it says, and `validate` says what is wrong."""
    messages = [{"role": role, "content": [{key: held}]} for role in ("user", "assistant", "user")]
    fitted = fit(messages, 5_000, model="us.anthropic.claude-sonnet-4-5-20250929-v1:0", format="bedrock")
    assert fitted.messages == messages
    assert fitted.report.tokens_after > 0


def test_blank_text_beside_disabled_reasoning_leaves_with_it() -> None:
    """Beside other blocks the API takes a blank text, and refuses it alone, as `validate` says."""
    off = {"additionalModelRequestFields": {"thinking": {"type": "disabled"}}}
    body = {**off, "messages": [user("a"), model(THOUGHT, " "), user("b")]}
    assert FORM.without_thinking(body["messages"][1]) is None
    assert FORM.without_thinking(model(THOUGHT, "w")) == model("w")
    said = {**off, "messages": [user("a"), model(THOUGHT, " ")]}
    written = fit(said, 5_000, counter=CharCounter(4, format="bedrock"), format="bedrock").request
    assert written["messages"] == [user("a")]


def test_an_answer_stays_with_the_reasoning_in_the_message_before_it() -> None:
    """A reasoning that ends a message is of what follows: no budget parts the two."""
    thought = {"reasoningContent": {"reasoningText": {"text": "Tea. " * 9, "signature": "s"}}}
    talked = [
        *[{"role": role, "content": [{"text": "word " * 20}]} for role in ("user", "assistant")] * 6,
        {"role": "user", "content": [{"text": "And?"}]},
        {"role": "assistant", "content": [thought]},
        {"role": "assistant", "content": [{"text": "So, tea."}]},
        {"role": "user", "content": [{"text": "Go on."}]},
    ]
    counter, seen = EstimateCounter(format="bedrock"), set[frozenset[int | None]]()
    for budget in range(15, 150):
        kept = fit(talked, budget, counter=counter, format="bedrock").positions
        seen.add(frozenset(kept) & {13, 14})
    assert seen == {frozenset(), frozenset({13, 14})}
