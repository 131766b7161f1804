"""The Messages form: every shape is read in place and edited in a copy."""

from __future__ import annotations

import copy
from types import MappingProxyType
from typing import Any

import pytest
from anthropic.types import TextBlock, ThinkingBlock, ToolUseBlock

from tests.anthropic_shapes import (
    accepted_by_anthropic,
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
from trimtab.conversation import group
from trimtab.errors import FormatError
from trimtab.formats import Anthropic, Structure, mapping_of

FORM = Anthropic()


def scanned(*messages: Any) -> Structure:
    """Read messages from the first to the last."""
    structure = Structure(len(messages))
    FORM.scan(list(messages), 0, len(messages), structure)
    return structure


def units(*messages: Any) -> list[tuple[int, ...]]:
    """Group messages into units."""
    return [unit.indices for unit in group(list(messages), format=FORM)]


class TestKind:
    """`kind` tells whom a message is from."""

    @pytest.mark.parametrize(
        ("message", "kind"),
        [
            (user("hi"), "user"),
            (user(text()), "user"),
            (user(result()), "tool"),
            (user(result("a"), result("b")), "tool"),
            (user(result(), text()), "user"),
            (user(result(), image()), "user"),
            ({"role": "user", "content": []}, "user"),
            (model("hi"), "assistant"),
            (model(use()), "assistant"),
            (system("be brief"), "system"),
            ({"role": "tool", "content": "x"}, "other"),
            ({"role": ["user"]}, "other"),
            ({}, "other"),
        ],
    )
    def test_only_results_make_a_user_message_the_tools(self, message: Any, kind: str) -> None:
        """Words of the user beside them make it the user's; what is not known is "other"."""
        assert FORM.kind(message) == kind
        assert scanned(message).kinds == {0: kind}

    def test_the_newest_of_a_kind_is_found_from_behind(self) -> None:
        """A message of nothing but results is passed over in the search for the user's."""
        messages = [user("hi"), model(use()), user(result()), sdk_message()]
        assert FORM.newest(messages, "user", -1, 3) == 0
        assert FORM.newest(messages, "tool", -1, 3) == 2
        assert FORM.newest(messages, "assistant", -1, 3) == 3
        assert FORM.newest(messages, "user", 0, 3) == -1


class TestScan:
    """`scan` fills the columns in one pass."""

    def test_results_are_told_by_their_block(self) -> None:
        """Parallel results stand in one message; what stands beside them is loose."""
        messages = [model(use("a"), use("b")), user(result("b"), result("a"), text("go on"))]
        read = scanned(*messages)
        assert read.calls == {0: ("a", "b")}
        assert read.answers == {1: (("b", 0), ("a", 1))}
        assert read.loose == {1: (2,)}

    def test_the_packages_own_objects_are_read(self) -> None:
        """Whole messages, and blocks in a dict; neither is changed."""
        blocks = [TextBlock(type="text", text="x"), ToolUseBlock(type="tool_use", id="a", name="f", input={})]
        for message in (sdk_message(), {"role": "assistant", "content": blocks}):
            assert scanned(message).calls == {0: ("a",)}

    def test_a_pair_the_provider_made_itself_is_no_pair_of_ours(self) -> None:
        """Call and result stand in one message and leave with it."""
        mcp = {"type": "mcp_tool_use", "id": "m", "name": "echo", "server_name": "s", "input": {}}
        told = {"type": "mcp_tool_result", "tool_use_id": "m", "content": "x", "is_error": False}
        read = scanned(model(text(), server_use(), found(), mcp, told, text()))
        assert (read.calls, read.answers, read.loose, read.bound) == ({}, {}, {}, set())

    def test_a_result_of_nobodys_call_is_the_tools_beside_words_of_the_user(self) -> None:
        """It is a unit of its own, and the words are one of the user's."""
        found = group([user(result("z"), text()), user("hi")], format=FORM)
        assert [(unit.indices, unit.kind) for unit in found] == [
            ((0,), "tool"),
            ((0,), "user"),
            ((1,), "user"),
        ]

    def test_halves_of_a_turn_that_paused_are_bound(self) -> None:
        """The result came in the next message of the turn, or behind the results it waited for."""
        assert units(user("q"), model(server_use()), model(found(), text())) == [(0,), (1, 2)]
        chain = (model(server_use(), use("a")), user(result("a")), model(found(), text()))
        assert units(user("q"), *chain, user("more")) == [(0,), (1, 2, 3), (4,)]

    def test_a_message_may_call_and_hold_a_result_of_nobodys(self) -> None:
        """Its call, its words and the results of its call are one unit; the stray half is another."""
        messages = [user("q"), model(found(), text(), use("a")), user(result("a"))]
        assert sorted(units(*messages)) == [(0,), (1,), (1, 2)]

    def test_halves_are_bound_across_ranges(self) -> None:
        """The newer part was read first, and does not show the call."""
        messages = [user("q"), model(server_use()), model(found(), text())]
        structure = Structure(3)
        FORM.scan(messages, 2, 3, structure)
        FORM.scan(messages, 0, 2, structure)
        assert 1 in structure.bound

    def test_messages_of_the_model_in_a_row_are_one_turn(self) -> None:
        """The API joins them: calls of both are answered behind the second."""
        calls = (model(use("a")), model(use("b")), user(result("a"), result("b")))
        assert units(user("q"), *calls) == [(0,), (1, 2, 3)]
        assert units(user("q"), model(thinking()), model(text("x"))) == [(0,), (1, 2)]
        assert units(user("q"), model(text("x")), model(text("y"))) == [(0,), (1,), (2,)]

    def test_a_system_message_stays_with_the_answer_to_it(self) -> None:
        """It has to stand before a message of the model, or at the end."""
        assert units(user("q"), system("s"), model("x"), user("r"), system("t")) == [(0,), (1, 2), (3,), (4,)]

    def test_what_goes_on_with_thinking_is_a_unit_of_its_own(self) -> None:
        """The API wants the turn to begin with thinking; what stands between that and the rest may leave."""
        loop = (model(thinking(), use("a")), user(result("a")), model(use("b")), user(result("b")))
        assert units(user("q"), *loop) == [(0,), (1, 2), (3, 4)]
        assert scanned(user("q"), *loop).thought == {1, 2}
        assert scanned(user("q"), *loop, model("done"), user("thanks")).thought == set()
        assert units(user("q"), *loop, model("done"), user("thanks")) == [(0,), (1, 2), (3, 4), (5,), (6,)]
        again = (
            model(thinking(), use("a")),
            user(result("a")),
            model(thinking(), use("b")),
            user(result("b")),
        )
        assert units(user("q"), *again) == [(0,), (1, 2), (3, 4)]

    def test_the_latest_compaction_is_kept(self) -> None:
        """What it stands for is nowhere else; one that failed stands for nothing."""
        messages = [user("q"), model(compaction(), text()), user("r"), model(compaction(), text()), user("s")]
        assert scanned(*messages).kept == {3}
        assert scanned(model(compaction(None), text())).kept == set()
        structure = Structure(5)
        FORM.scan(messages, 3, 5, structure)
        FORM.scan(messages, 0, 3, structure)
        assert structure.kept == {3}

    def test_an_entry_that_is_no_message_is_named(self) -> None:
        """With its place."""
        with pytest.raises(FormatError) as raised:
            scanned(user("hi"), 7)
        assert raised.value.path == "messages[1]"


class TestOrder:
    """`order_fault` says what may stand behind what."""

    @pytest.mark.parametrize(
        ("previous", "message", "words"),
        [
            (None, user("hi"), None),
            (None, user(result()), None),
            (None, model("hi"), "first message"),
            (None, model(compaction(), text()), None),
            (None, model(text(), compaction()), "first message"),
            (None, system("s"), "top-level"),
            (user("hi"), user("hi"), None),
            (model("hi"), model("hi"), None),
            (user("hi"), system("s"), None),
            (model("hi"), system("s"), "must follow"),
            (model(server_use(), found()), system("s"), None),
            (system("s"), system("t"), None),
            (system("s"), model("hi"), None),
            (system("s"), user("hi"), "must precede"),
            (model("hi"), {"role": "system", "content": [], "output_config": {"effort": "low"}}, None),
            ({"role": "system", "content": [], "output_config": {"effort": "low"}}, user("hi"), None),
        ],
    )
    def test_the_provider_words_it(self, previous: Any, message: Any, words: str | None) -> None:
        """None where it takes the order."""
        said = FORM.order_fault(previous, message)
        assert said is None if words is None else words in (said or "")

    def test_a_compaction_is_left_in_front_and_not_put_there(self) -> None:
        """No source says that the API takes the model's message first."""
        opening = model(compaction(), text())
        assert FORM.order_fault(None, opening) is None
        assert "first message" in (FORM.order_fault(None, opening, parted=True) or "")


class TestEdits:
    """Edits are shallow copies; the caller's message is never changed."""

    def test_texts_are_where_they_say(self) -> None:
        """Strings, blocks, results of both kinds, plain-text documents and search results."""
        search = {"type": "search_result", "source": "s", "title": "t", "content": [text("n")]}
        plain = document(type="text", media_type="text/plain", data="d")
        inner = document(type="content", content=[text("i"), image()])
        message = user(result("a", "r"), result("b", [text("x"), image(), search]), text("q"), plain, inner)
        slots = FORM.texts(message)
        assert [(slot.text, slot.is_result) for slot in slots] == [
            ("r", True),
            ("x", True),
            ("n", True),
            ("q", False),
            ("d", False),
            ("i", False),
        ]
        changed = FORM.with_texts(message, {slot.path: slot.text.upper() for slot in slots})
        assert [slot.text for slot in FORM.texts(changed)] == ["R", "X", "N", "Q", "D", "I"]
        assert accepted_by_anthropic(message)
        assert accepted_by_anthropic(changed)

    def test_what_the_model_thought_about_is_left_alone(self) -> None:
        """Nothing of a message with thinking, no cited text, and nothing its own tools found."""
        assert FORM.texts(model(thinking(), text("x"))) == []
        assert FORM.texts(model(redacted(), text("x"))) == []
        assert FORM.texts(mapping_of(sdk_message())) == []
        cited = text("x", citations=[{"type": "char_location"}])
        assert [slot.text for slot in FORM.texts(model(server_use(), found(), cited, text("y")))] == ["y"]

    def test_a_block_of_a_result_that_is_blanked_leaves(self) -> None:
        """The API refuses a block of empty text; a string may be empty."""
        message = user(result("a", [text("x"), image(), text("y")]), result("b", "z"))
        paths = [slot.path for slot in FORM.texts(message)]
        changed = FORM.with_texts(message, {paths[0]: "gone", paths[1]: "", paths[2]: ""})
        assert changed == user(result("a", [text("gone"), image()]), result("b", ""))

    @pytest.mark.parametrize(
        ("message", "left"),
        [
            (model(text(), use("a"), use("b")), model(text(), use("b"))),
            (model(use("a")), None),
            (model(thinking(), use("a")), None),
            (model(text(), thinking(), use("a")), model(text())),
            (model(thinking(), text(), use("a")), model(thinking(), text())),
            (model(server_use("a"), text()), model(text())),
            (model(text()), model(text())),
            (model("hi"), model("hi")),
        ],
    )
    def test_a_call_leaves_with_the_thinking_that_would_end_its_message(
        self, message: Any, left: Any
    ) -> None:
        """The API takes no thinking at the end; a message of nothing else leaves."""
        before = copy.deepcopy(message)
        assert FORM.without_calls(message, frozenset({"a"})) == left
        assert message == before

    def test_results_join_those_that_are_there(self) -> None:
        """Behind them, and before the user's own words."""
        joined = FORM.join_results(user(result("a"), text("go on")), user(result("b"), result("c")))
        assert joined == user(result("a"), result("b"), result("c"), text("go on"))

    def test_the_packages_own_objects_are_copied_as_such(self) -> None:
        """An edit of a message or block of a class gives one of that class."""
        message = sdk_message()
        left = FORM.without_calls(message, frozenset({"a"}))
        assert type(left) is type(message)
        assert [block.type for block in left.content] == ["thinking", "text"]
        assert len(message.content) == 3
        block = TextBlock(type="text", text="x")
        changed = FORM.with_texts(model(block), {("content", 0, "text"): "y"})
        assert type(changed["content"][0]) is TextBlock
        assert (block.text, changed["content"][0].text) == ("x", "y")

    def test_a_read_only_mapping_is_edited_in_a_copy(self) -> None:
        """Where its class cannot be refilled, the copy is a dict."""
        message = MappingProxyType(user(text("x")))
        assert FORM.with_texts(message, {("content", 0, "text"): "y"}) == user(text("y"))
        assert FORM.without_parts(message, [0]) == {"role": "user", "content": []}
        assert FORM.without_parts(message, []) is message

    @pytest.mark.parametrize(
        ("message", "at"),
        [
            (user(text(), image()), 1),
            (model(text(), thinking()), 0),
            (model(use("a")), 0),
            (user(text("x"), text("")), 0),
            (model(ThinkingBlock(type="thinking", thinking="", signature="s"), text("x")), 1),
        ],
    )
    def test_the_cache_is_marked_at_the_last_block_that_can(self, message: Any, at: int) -> None:
        """Thinking and empty text cannot."""
        marked = FORM.with_cache_control(message, {"type": "ephemeral"})
        places = [i for i, b in enumerate(marked["content"]) if "cache_control" in mapping_of(b)]
        assert places == [at]
        assert not [b for b in message["content"] if "cache_control" in mapping_of(b)]

    def test_a_string_becomes_a_block_to_be_marked(self) -> None:
        """An empty one is not marked at all: the API refuses that."""
        mark = {"type": "ephemeral"}
        assert FORM.with_cache_control(user("hi"), mark) == user(text("hi", cache_control=mark))
        assert FORM.with_cache_control(user(""), mark) == user("")
        assert FORM.with_cache_control(model(redacted()), mark) == model(redacted())
