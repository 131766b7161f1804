"""Bodies of the Messages API are taken apart and put together again; messages are made and told apart."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.anthropic_shapes import (
    accepted_by_anthropic,
    block_types,
    compaction,
    document,
    found,
    image,
    model,
    redacted,
    result,
    sdk_message,
    server_use,
    system,
    text,
    thinking,
    use,
    user,
)
from trimtab import Context, fit, repair, validate
from trimtab.errors import FormatError
from trimtab.formats import Anthropic, Request, Structure, detect
from trimtab.strategies import Summarize
from trimtab.testing import WordCounter

FORM = Anthropic()
COUNTER = WordCounter(format=FORM)


class TestBodies:
    """`read_request` and `write_request`."""

    def test_a_body_is_taken_apart(self) -> None:
        """System text and tools as they are; an output schema in the shape all forms share."""
        schema = {"type": "object", "properties": {}}
        body = {
            "model": "claude-sonnet-4-5",
            "system": [text("be brief", cache_control={"type": "ephemeral"})],
            "tools": [{"name": "look", "input_schema": {"type": "object"}}],
            "output_config": {"format": {"type": "json_schema", "schema": schema}},
            "messages": [user("hi")],
        }
        request = FORM.read_request(body)
        assert request.system is body["system"]
        assert request.tools is body["tools"]
        assert request.extra["response_format"]["json_schema"] == {"schema": schema}
        again = FORM.write_request(request, [user("ho")])
        assert again == {**body, "messages": [user("ho")]}
        assert again["system"] is body["system"]

    def test_an_older_name_of_the_schema_is_read(self) -> None:
        """`output_format` held it before; other formats are none."""
        body = {"output_format": {"type": "json_schema", "schema": {"type": "object"}}, "messages": []}
        assert "response_format" in FORM.read_request(body).extra
        assert FORM.read_request({"output_config": {"effort": "low"}, "messages": []}).extra == {}

    @pytest.mark.parametrize("messages", [None, "x", {}])
    def test_a_body_without_a_list_is_refused(self, messages: Any) -> None:
        """With what was there instead."""
        with pytest.raises(FormatError, match="Messages body"):
            FORM.read_request({"messages": messages})

    @pytest.mark.parametrize(
        ("given", "written"),
        [
            ("be brief", "be brief"),
            ([text("be brief")], [text("be brief")]),
            (["be", text("brief")], [text("be"), text("brief")]),
            (None, "as it was"),
        ],
    )
    def test_system_text_is_put_back(self, given: Any, written: Any) -> None:
        """As a string or blocks; none leaves the body as it was."""
        body = {"messages": [user("hi")], "system": "as it was"}
        request = Request(messages=body["messages"], system=given, body=body)
        assert FORM.write_request(request, [])["system"] == written

    def test_a_list_comes_back_as_a_list(self) -> None:
        """There is no body to put it into."""
        messages = [user("hi")]
        assert FORM.write_request(Request(messages=messages), messages) is messages


class TestThinkingThatMayNotStay:
    """Thinking leaves a changed request where the API would refuse it."""

    LONG = "w " * 50

    def talk(self, **more: Any) -> dict[str, Any]:
        """Make a body whose first turn has to go."""
        messages = [
            user(self.LONG),
            model(thinking("a"), text("b")),
            user("next"),
            model(thinking("c"), text("d")),
            user("last"),
        ]
        return {"model": "claude-sonnet-4-5", "messages": messages, **more}

    def kinds(self, messages: list[Any]) -> set[str]:
        """List the types of all blocks."""
        return {block["type"] for m in messages if isinstance(m["content"], list) for block in m["content"]}

    def test_most_models_take_it_after_a_change(self) -> None:
        """They check each block, and not what stood before it."""
        fitted = fit(self.talk(), 20, counter=COUNTER)
        assert len(fitted.request["messages"]) == 3
        assert "thinking" in self.kinds(fitted.request["messages"])

    @pytest.mark.parametrize("name", ["claude-fable-5-1", "claude-opus-5-5-20261001", "claude-haiku-5-5"])
    def test_models_that_check_what_stood_before_lose_it(self, name: str) -> None:
        """Every block behind the change; nothing else of its message."""
        body = self.talk(model=name)
        fitted = fit(body, 20, counter=COUNTER)
        assert fitted.request["messages"] == [user("next"), model(text("d")), user("last")]
        assert fit(body, 999, counter=COUNTER).request["messages"] == body["messages"]

    def test_what_stands_before_the_change_keeps_it(self) -> None:
        """The first turn is as it was, so its thinking is, too."""
        body = self.talk(model="claude-fable-5-1")
        fitted = fit(body, 99, counter=COUNTER, on_trim=lambda trim: trim.remove(2))
        left = [*body["messages"][:2], *body["messages"][3:]]
        assert fitted.messages == fitted.request["messages"] == [*left[:2], model(text("d")), left[3]]
        broken = [*body["messages"][:2], user(result("nobody")), *body["messages"][2:]]
        mended = repair({**body, "messages": broken})
        assert mended.request["messages"] == [*broken[:2], broken[3], model(text("d")), broken[5]]
        assert [(one.index, one.rule) for one in mended.changes] == [
            (2, "orphan_result"),
            (4, "bound_thinking"),
        ]

    def test_a_request_that_lets_the_api_drop_it_is_left_alone(self) -> None:
        """And one that asks for the check is held to it, whatever the model."""
        for behavior, there in (("drop_block", True), ("error", False)):
            binding = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": behavior}}
            fitted = fit(self.talk(thinking=binding), 20, counter=COUNTER)
            assert ("thinking" in self.kinds(fitted.request["messages"])) == there

    def test_a_turn_without_thinking_cannot_hold_any(self) -> None:
        """Thinking is off, and the last turn of the model has some; older turns may."""
        loop = [user("go"), model(thinking(), use("a")), user(result("a"))]
        body = {
            **self.talk(thinking={"type": "disabled"}),
            "messages": [user("q"), model(redacted(), text("x")), *loop],
        }
        written = FORM.write_request(FORM.read_request(body), body["messages"])["messages"]
        assert written == [*body["messages"][:3], model(use("a")), loop[2]]
        assert written[0] is body["messages"][0]

    def test_a_message_of_nothing_else_leaves(self) -> None:
        """An empty one would be refused."""
        body = {"thinking": {"type": "disabled"}, "messages": [user("q"), model(thinking())]}
        assert FORM.write_request(FORM.read_request(body), body["messages"])["messages"] == [user("q")]


class TestMaking:
    """Messages trimtab makes itself."""

    def test_messages_are_made_of_texts_and_blocks(self) -> None:
        """One text is a string; the API takes what is made."""
        assert FORM.message("user", ["hi"]) == user("hi")
        assert FORM.message("user", ["look", image()]) == user(text("look"), image())
        assert FORM.message("tool", ["x"])["role"] == "user"
        assert FORM.with_role(model("x"), "developer")["role"] == "system"
        assert FORM.with_text(user(image()), "x") == user("x")
        assert accepted_by_anthropic(FORM.message("assistant", ["a", "b"]))

    def test_a_context_lifts_its_system_block(self) -> None:
        """It stands beside the messages, not among them."""
        context = Context(99, counter=COUNTER, format=FORM, system="first")
        fitted = context.add("system", "be brief").add("question", "hi").fit()
        assert fitted.messages == [user("hi")]
        assert FORM.lift_system([system("s")], None) == "s"
        assert FORM.lift_system([system("s"), system(text("t"))], "a") == [text("a"), text("s"), text("t")]

    def test_a_summary_is_the_users(self) -> None:
        """A system message could not stand there."""
        messages = [user("one two three"), model("a b c d e f g h i j k l"), user("four"), model("five")]
        strategy = Summarize(lambda messages: "so far", max_summary_tokens=9, role="system")
        fitted = fit(messages, 11, counter=COUNTER, format=FORM, strategy=strategy)
        assert "so far" in fitted.messages[0]["content"]
        assert validate(fitted.messages, format=FORM) == []

    def test_a_transcript_tells_who_said_what(self) -> None:
        """Results by their call, then words; calls as JSON; thinking is nobody's word."""
        assert FORM.transcript(user(result("a", "4"), text("go on"))) == "TOOL(a): 4\nUSER: go on"
        told = FORM.transcript(model(thinking(), text("look"), use("a", "add", x=1)))
        assert told == 'ASSISTANT: look\n[tool_calls] [{"id":"a","name":"add","input":{"x":1}}]'
        assert FORM.transcript({}) == "UNKNOWN: "


class TestDetection:
    """`matches` and `detect` tell the form from others."""

    @pytest.mark.parametrize(
        "block",
        [use(), result(), thinking(), redacted(), server_use(), found(), image(), document(), compaction()],
    )
    def test_its_own_blocks_tell_it(self, block: Any) -> None:
        """No other form has them."""
        assert FORM.matches(user(block))
        assert detect([user("hi"), model(block)]).name == "anthropic"

    def test_plain_text_does_not(self) -> None:
        """Every form has it; a body with `system` is this one's."""
        assert not FORM.matches(user(text()))
        assert not FORM.matches(user({"type": "image_url", "image_url": {"url": "u"}}))
        assert detect([user("hi")]).name == "openai_chat"
        assert detect({"system": "be brief", "messages": [user("hi")]}).name == "anthropic"
        assert detect([user("hi"), sdk_message()]).name == "anthropic"


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "text", "content", "id", "tool_use_id", "source", "data", "input", "role"]
            )
            | st.text(max_size=3),
            inner | st.sampled_from([*block_types(), "user", "assistant", "system"]),
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(
    st.lists(
        st.fixed_dictionaries(
            {}, optional={"role": st.sampled_from(["user", "assistant", "system"]) | JSON, "content": JSON}
        ),
        max_size=4,
    )
)
def test_no_mapping_however_broken_crashes_reading(messages: list[Any]) -> None:
    """Whatever stands in a message is read, listed and repaired."""
    FORM.scan(messages, 0, len(messages), Structure(len(messages)))
    for message in messages:
        FORM.pieces(message)
        FORM.texts(message)
        FORM.transcript(message)
        FORM.matches(message)
        FORM.tool_names(message)
        FORM.with_cache_control(message, {"type": "ephemeral"})
        FORM.without_calls(message, frozenset("ab"))
    validate(messages, format=FORM)
    repair(messages, format=FORM)


@given(st.sampled_from(sorted(block_types())), st.sampled_from(["user", "assistant"]), st.data())
def test_a_block_of_every_type_is_read(kind: str, role: str, data: Any) -> None:
    """With whatever fields: each type of the installed package is known by name."""
    block = {**data.draw(st.dictionaries(st.text(max_size=8), JSON, max_size=3)), "type": kind}
    message = {"role": role, "content": [block]}
    FORM.pieces(message)
    assert "unknown_block" not in {fault.rule for fault in FORM.faults([message]) if len(fault.path) == 3}


def test_the_report_says_what_the_request_leaves_out() -> None:
    """With thinking switched off the last turn loses its thoughts on the wire, and not in silence."""
    turn = [
        user("q"),
        model(thinking("let me see"), text("x")),
        user("why?"),
        model(thinking("so"), text("y")),
    ]
    body = {"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": turn}
    fitted = fit({**body, "thinking": {"type": "disabled"}}, 9_000)
    assert fitted.messages == turn
    assert [len(message["content"]) for message in fitted.request["messages"][1::2]] == [2, 1]
    assert any("leaves out parts of 1 message " in note for note in fitted.report.notes)
    assert not any("leaves out" in note for note in fit(body, 9_000).report.notes)
