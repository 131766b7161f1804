"""The Chat Completions form: every shape is read in place and edited in a copy."""

from __future__ import annotations

import copy
import json
from collections import OrderedDict
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionMessage

from tests.chat_shapes import calling, custom_call, function_call, result, sdk_message
from trimtab import fit
from trimtab.counting import FixedCounter
from trimtab.errors import FormatError
from trimtab.formats import OpenAIChat, Request, Structure

CHAT = OpenAIChat()


def scanned(*messages: Any) -> Structure:
    """Read messages from the first to the last."""
    structure = Structure(len(messages))
    CHAT.scan(list(messages), 0, len(messages), structure)
    return structure


class TestScan:
    """`scan` fills the columns in one pass."""

    @pytest.mark.parametrize(
        ("role", "kind"),
        [
            ("system", "system"),
            ("developer", "system"),
            ("user", "user"),
            ("assistant", "assistant"),
            ("tool", "tool"),
            ("function", "tool"),
            ("critic", "other"),
            (None, "other"),
            (7, "other"),
            (["user"], "other"),
            ({"role": "user"}, "other"),
        ],
    )
    def test_a_role_tells_the_kind(self, role: Any, kind: str) -> None:
        """Every role of the API has its kind; anything else is "other", unhashable values too."""
        message = {"role": role, "content": "x"}
        assert CHAT.kind(message) == kind
        assert scanned(message).kinds == {0: kind}

    def test_a_message_without_a_role_is_other(self) -> None:
        """Nothing is raised for a missing role."""
        assert CHAT.kind({}) == "other"
        assert scanned({}).kinds == {0: "other"}

    @pytest.mark.parametrize(
        ("message", "ids"),
        [
            (calling(function_call("a")), ("a",)),
            (calling(function_call("b"), function_call("a"), custom_call("c")), ("b", "a", "c")),
            (calling(function_call("a"), function_call("a")), ("a", "a")),
            (calling(function_call("")), ("call #1",)),
            ({"role": "assistant", "function_call": {"name": "add", "arguments": ""}}, ("function:add",)),
            (
                calling(function_call("a"), function_call={"name": "add", "arguments": ""}),
                ("a", "function:add"),
            ),
            (
                calling(function_call(None), function_call("z"), function_call(3), function_call("")),
                ("call #1", "z", "call #2", "call #3"),
            ),
            (calling(function_call(["a"])), ("call #1",)),
            (calling(None, 3, "x", []), ()),
            ({"role": "assistant", "tool_calls": None, "function_call": None}, ()),
            ({"role": "assistant", "tool_calls": "a"}, ()),
            ({"role": "assistant", "tool_calls": {"id": "a"}}, ()),
            ({"role": "assistant", "tool_calls": (function_call("a"),)}, ("a",)),
            ({"role": "user", "tool_calls": [function_call("a")]}, ()),
            ({"role": "assistant", "tool_calls": sdk_message().tool_calls}, ("a", "c")),
        ],
    )
    def test_calls_are_listed_by_usable_ids(self, message: dict[str, Any], ids: tuple[str, ...]) -> None:
        """Ids come in order, one a call; one without an id that is a text is numbered."""
        assert scanned(message).calls == ({0: ids} if ids else {})

    @pytest.mark.parametrize(
        ("message", "call_id"),
        [
            (result("a"), "a"),
            ({"role": "tool", "content": "4"}, ""),
            (result(None), ""),
            (result(3), ""),
            (result(["a"]), ""),
            ({"role": "function", "name": "add", "content": "4"}, "function:add"),
            ({"role": "function", "content": "4"}, ""),
            ({"role": "function", "name": 3, "content": "4"}, ""),
        ],
    )
    def test_a_result_says_which_call_it_answers(self, message: dict[str, Any], call_id: str) -> None:
        """A result without a usable id answers "", which no call has."""
        assert scanned(message).answers == {0: ((call_id, None),)}

    def test_objects_and_mappings_are_replaced_by_dicts_in_the_list(self) -> None:
        """The list handed in holds plain dicts afterwards, the caller's object is as before."""
        message, frozen = sdk_message(), MappingProxyType({"role": "user", "content": "hi"})
        items: list[Any] = [message, frozen, OrderedDict(role="user")]
        structure = Structure(3)
        CHAT.scan(items, 0, 3, structure)
        assert [type(item) for item in items] == [dict, dict, dict]
        assert structure.kinds == {0: "assistant", 1: "user", 2: "user"}
        assert structure.calls == {0: ("a", "c")}
        assert message == sdk_message()

    def test_only_the_range_asked_for_is_read(self) -> None:
        """Entries outside stay as they are, whatever they are."""
        items: list[Any] = [None, {"role": "user"}, 3]
        structure = Structure(3)
        CHAT.scan(items, 1, 2, structure)
        assert structure.kinds == {1: "user"}
        assert items == [None, {"role": "user"}, 3]

    @pytest.mark.parametrize("entry", [None, 3, "hello", b"x", ["role"], object()])
    def test_an_entry_that_is_no_message_is_a_format_error_with_its_path(self, entry: Any) -> None:
        """The error says which entry it is."""
        with pytest.raises(FormatError, match=r"messages\[1\]") as caught:
            scanned({"role": "user"}, entry)
        assert caught.value.path == "messages[1]"

    @given(
        st.lists(
            st.dictionaries(
                st.sampled_from(["role", "content", "tool_calls", "tool_call_id", "function_call", "name"]),
                st.recursive(
                    st.sampled_from(
                        [None, True, 3, 0.5, "", "a", "user", "assistant", "tool", "\ud800", "id"]
                    ),
                    lambda inner: (
                        st.lists(inner, max_size=3)
                        | st.dictionaries(st.sampled_from(["id", "type", "function", "name", "text"]), inner)
                    ),
                    max_leaves=8,
                ),
            ),
            max_size=6,
        )
    )
    def test_no_mapping_however_broken_crashes_reading(self, messages: list[dict[str, Any]]) -> None:
        """Scanning, listing texts, pieces, names and faults answer for any JSON-like dicts."""
        before = copy.deepcopy(messages)
        structure = scanned(*messages)
        assert len(structure.kinds) == len(messages)
        for message in messages:
            CHAT.texts(message)
            CHAT.tool_names(message)
            CHAT.matches(message)
            CHAT.order_fault(None, message)
            for text in CHAT.pieces(message).other:
                json.loads(text)
        CHAT.faults(messages)
        assert messages == before


class TestTexts:
    """`texts` finds what may be shortened, `with_texts` puts it back into a copy."""

    @pytest.mark.parametrize(
        ("message", "slots"),
        [
            ({"role": "user", "content": "hi"}, [(("content",), "hi", False)]),
            (result("a", "4"), [(("content",), "4", True)]),
            ({"role": "function", "name": "f", "content": "4"}, [(("content",), "4", True)]),
            ({"role": "assistant", "content": None, "refusal": "no"}, []),
            ({"role": "assistant"}, []),
            (
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "one"},
                        {"type": "image_url", "image_url": {"url": "u"}},
                        {"type": "text", "text": "two"},
                        {"type": "refusal", "refusal": "no"},
                        {"type": "text", "text": 3},
                        None,
                    ],
                },
                [(("content", 0, "text"), "one", False), (("content", 2, "text"), "two", False)],
            ),
        ],
    )
    def test_texts_are_found_where_they_stand(self, message: dict[str, Any], slots: list[Any]) -> None:
        """String content and text parts are listed; refusals and media are not."""
        assert CHAT.texts(message) == slots

    def test_a_dict_is_copied_only_along_the_path(self) -> None:
        """The copy shares every part that did not change, and the original is untouched."""
        message = {
            "role": "user",
            "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}],
            "metadata": {"k": 1},
        }
        before = copy.deepcopy(message)
        changed = CHAT.with_texts(message, {("content", 1, "text"): "t"})
        assert changed == {**before, "content": [before["content"][0], {"type": "text", "text": "t"}]}
        assert changed["content"][0] is message["content"][0]
        assert changed["metadata"] is message["metadata"]
        assert message == before

    def test_an_sdk_object_comes_back_as_its_class(self) -> None:
        """A pydantic message keeps its class; the original keeps its text."""
        message = sdk_message()
        changed = CHAT.with_texts(message, {("content",): "short"})
        assert type(changed) is ChatCompletionMessage
        assert changed.content == "short"
        assert changed.tool_calls is message.tool_calls
        assert message == sdk_message()

    def test_other_mappings_keep_their_class_where_they_can(self) -> None:
        """An OrderedDict stays one; a read-only mapping becomes a dict."""
        ordered = CHAT.with_texts(OrderedDict(role="user", content="long"), {("content",): "s"})
        assert type(ordered) is OrderedDict
        assert ordered == {"role": "user", "content": "s"}
        proxy = MappingProxyType({"role": "user", "content": "long"})
        assert CHAT.with_texts(proxy, {("content",): "s"}) == {"role": "user", "content": "s"}

    def test_parts_given_as_a_tuple_stay_a_tuple(self) -> None:
        """The container on the path keeps its type."""
        message = {"role": "user", "content": ({"type": "text", "text": "one"},)}
        assert CHAT.with_texts(message, {("content", 0, "text"): "o"})["content"] == (
            {"type": "text", "text": "o"},
        )

    def test_no_texts_leave_the_message_alone(self) -> None:
        """An empty change is an equal message."""
        message = {"role": "user", "content": "hi"}
        assert CHAT.with_texts(message, {}) == message


class TestWithoutCallsAndParts:
    """Calls and parts are taken out of copies."""

    def test_one_of_two_calls_leaves(self) -> None:
        """The other call is the same object, the original keeps both."""
        first, second = function_call("a"), function_call("b")
        message = calling(first, second)
        changed = CHAT.without_calls(message, frozenset({"a"}))
        assert changed["tool_calls"] == [second]
        assert changed["tool_calls"][0] is second
        assert len(message["tool_calls"]) == 2

    def test_the_last_call_takes_its_key_along(self) -> None:
        """Text stays; an empty list of calls would be refused by the API."""
        message = calling(function_call("a"), content="I look")
        changed = CHAT.without_calls(message, frozenset({"a"}))
        assert changed == {"role": "assistant", "content": "I look"}

    @pytest.mark.parametrize("content", [None, "", []])
    def test_nothing_is_left_of_a_message_that_only_called(self, content: Any) -> None:
        """Then there is no message: an empty assistant message would be refused."""
        message = calling(function_call("a"), content=content)
        assert CHAT.without_calls(message, frozenset({"a"})) is None

    def test_a_legacy_call_leaves_by_its_made_up_id(self) -> None:
        """`function:NAME` stands for a call without an id."""
        message = {"role": "assistant", "content": "x", "function_call": {"name": "add", "arguments": "{}"}}
        assert CHAT.without_calls(message, frozenset({"function:add"})) == {
            "role": "assistant",
            "content": "x",
        }

    def test_an_sdk_object_loses_a_call_and_stays_one(self) -> None:
        """The class is kept; with no calls left the field is None."""
        message = sdk_message()
        one = CHAT.without_calls(message, frozenset({"c"}))
        none = CHAT.without_calls(message, frozenset({"a", "c"}))
        assert type(one) is type(none) is ChatCompletionMessage
        assert [call.id for call in one.tool_calls] == ["a"]
        assert none.tool_calls is None
        assert message == sdk_message()
        assert CHAT.without_calls(sdk_message(content=None), frozenset({"a", "c"})) is None

    def test_another_mapping_loses_the_key_and_keeps_its_class(self) -> None:
        """An OrderedDict without its last call stays one."""
        changed = CHAT.without_calls(OrderedDict(calling(function_call("a"), content="x")), frozenset({"a"}))
        assert type(changed) is OrderedDict
        assert changed == {"role": "assistant", "content": "x"}

    def test_unknown_ids_change_nothing(self) -> None:
        """The very object comes back."""
        message = calling(function_call("a"))
        assert CHAT.without_calls(message, frozenset({"zzz"})) is message

    def test_parts_leave_by_index(self) -> None:
        """What stays is shared; string content has no parts to leave."""
        parts = [{"type": "text", "text": text} for text in "abc"]
        message = {"role": "user", "content": parts}
        assert CHAT.without_parts(message, [0, 2]) == {"role": "user", "content": [parts[1]]}
        assert len(message["content"]) == 3
        plain = {"role": "user", "content": "abc"}
        assert CHAT.without_parts(plain, [0]) is plain

    def test_tools_are_named_by_call_id(self) -> None:
        """Function, custom and legacy calls all have names."""
        message = calling(
            function_call("a", "add"), custom_call("c"), function_call=dict(name="old", arguments="")
        )
        assert CHAT.tool_names(message) == {"a": "add", "c": "shell", "function:old": "old"}


class TestRequests:
    """Request bodies are taken apart and put together again."""

    def test_a_body_round_trips(self) -> None:
        """Only the messages are exchanged; the body handed in stays as it is."""
        tools = [{"type": "function", "function": {"name": "add"}}]
        body = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}], "tools": tools}
        request = CHAT.read_request(body)
        assert (request.messages, request.tools, dict(request.extra)) == (body["messages"], tools, {})
        written = CHAT.write_request(request, [])
        assert written == {**body, "messages": []}
        assert len(body["messages"]) == 1

    def test_tools_given_beside_a_body_are_written_into_it(self) -> None:
        """None given, and none in the body, is none in the copy: the API refuses an empty list."""
        tools = [{"type": "function", "function": {"name": "add"}}]
        body: dict[str, Any] = {"model": "gpt-4o", "messages": [], "tools": None}
        for named, expected in ((tools, tools), ([], None), (None, None)):
            request = Request(messages=[], tools=named, body=body)
            assert CHAT.write_request(request, []) == {**body, "tools": expected}
        assert CHAT.write_request(CHAT.read_request({"messages": []}), []) == {"messages": []}
        assert body["tools"] is None
        fitted = fit({"messages": []}, 99, tools=tools, counter=FixedCounter(1))
        assert fitted.request == {"messages": [], "tools": tools}

    def test_legacy_functions_and_an_output_schema_are_charged(self) -> None:
        """A response format without a schema is not."""
        schema = {"type": "json_schema", "json_schema": {"name": "a", "schema": {}}}
        body = {"messages": [], "functions": [{"name": "add"}], "response_format": schema}
        assert CHAT.read_request(body).extra == {"functions": [{"name": "add"}], "response_format": schema}
        plain = {"messages": [], "response_format": {"type": "json_object"}}
        assert CHAT.read_request(plain).extra == {}

    @pytest.mark.parametrize(
        "body", [{}, {"messages": None}, {"messages": "hi"}, {"messages": {"role": "x"}}]
    )
    def test_a_body_without_a_list_of_messages_is_a_format_error(self, body: dict[str, Any]) -> None:
        """The error says what it needs."""
        with pytest.raises(FormatError, match="'messages'"):
            CHAT.read_request(body)

    def test_a_list_is_written_as_itself(self) -> None:
        """Without a body there is nothing to put messages into."""
        messages = [{"role": "user", "content": "hi"}]
        assert CHAT.write_request(Request(messages=messages), messages) is messages


class TestMessage:
    """`message` makes messages."""

    @pytest.mark.parametrize(
        ("parts", "content"),
        [
            ((), ""),
            (("hi",), "hi"),
            (("a", "b"), [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]),
            (
                ("a", {"type": "image_url", "image_url": {"url": "u"}}),
                [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "u"}}],
            ),
        ],
    )
    def test_texts_and_parts_become_content(self, parts: tuple[Any, ...], content: Any) -> None:
        """One text is string content; more are parts."""
        message = CHAT.message("user", parts)
        assert message == {"role": "user", "content": content}
        assert CHAT.faults([message]) == []

    def test_calls_become_tool_calls(self) -> None:
        """A ready-made call is no content part."""
        call = function_call("a")
        assert CHAT.message("assistant", [call]) == calling(call)
        assert CHAT.message("assistant", ["hm", call]) == calling(call, content="hm")


class TestWeights:
    """How much of a stride a message takes."""

    @pytest.mark.parametrize(
        ("message", "size", "calls"),
        [
            ({"role": "user", "content": "café"}, 5, 0),
            ({"role": "user", "content": [{"type": "text", "text": "café"}]}, 5, 0),
            (calling(function_call(arguments="é"), function_call("b")), 4, 2),
            (calling(function_call(), content="hm"), 4, 1),
            ({"role": "assistant", "tool_calls": [function_call()]}, 2, 1),
            ({"role": "assistant", "refusal": "no", "tool_calls": [function_call()]}, 4, 1),
            (calling(custom_call()), 5, 1),
            ({"role": "assistant", "content": "", "function_call": {"name": "f", "arguments": "{}"}}, 2, 1),
            ({"role": "assistant", "content": None}, 0, 0),
        ],
    )
    def test_texts_and_arguments_weigh_by_their_bytes(
        self, message: dict[str, Any], size: int, calls: int
    ) -> None:
        """By the rule of SPEC C3, whatever the shape."""
        assert CHAT.weights([message]) == [pytest.approx(size / 3.5 + 4 + 9 * calls)]


class TestShapes:
    """What a message tells about its form and its place."""

    @pytest.mark.parametrize(
        ("message", "only_here"),
        [
            ({"role": "user", "content": "hi"}, False),
            ({"role": "user", "content": [{"type": "text", "text": "hi"}]}, False),
            (calling(function_call()), True),
            (result(), True),
            ({"role": "function", "name": "f", "content": ""}, True),
            ({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "u"}}]}, True),
            ({"role": "user", "content": [None, "x"]}, False),
        ],
    )
    def test_shapes_that_occur_only_here_are_known(self, message: dict[str, Any], only_here: bool) -> None:
        """Text alone occurs in every form."""
        assert CHAT.matches(message) is only_here

    def test_a_conversation_may_begin_with_anything(self) -> None:
        """The API takes an assistant message first; a result alone is a matter of calls."""
        assert not CHAT.rules.ordered
        assert CHAT.order_fault(None, {"role": "assistant"}) is None


def test_a_message_that_loses_no_call_is_left_as_it_is() -> None:
    """Also where it says nothing: nothing was taken from it."""
    message = {"role": "assistant", "content": None}
    assert OpenAIChat().without_calls(message, frozenset({"A"})) is message
