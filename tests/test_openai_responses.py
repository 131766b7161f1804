"""The Responses form: every item is read in place, and edited in a copy."""

from __future__ import annotations

import copy
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import ResponseOutputMessage

from tests.response_items import (
    EVERY,
    accepted_by_openai,
    call,
    output,
    said,
    sdk_objects,
    thought,
    types_of_the_package,
    user,
)
from trimtab.errors import FormatError
from trimtab.formats import OpenAIResponses, Request, Structure, detect

FORM = OpenAIResponses()


def scanned(*items: Any) -> Structure:
    """Read items from the first to the last."""
    structure = Structure(len(items))
    FORM.scan(list(items), 0, len(items), structure)
    return structure


def ref(item_id: str) -> dict[str, Any]:
    """Make a reference to a stored item."""
    return {"type": "item_reference", "id": item_id}


class TestTypes:
    """No type of item is forgotten."""

    def test_every_type_of_the_package_is_known(self) -> None:
        """Its union is walked; the test items hold one of each, which it takes."""
        types = types_of_the_package()
        assert all(FORM.matches({"type": name}) for name in types - {"message"})
        assert types == set(EVERY)
        assert all(accepted_by_openai(item) for item in EVERY.values())

    @pytest.mark.parametrize(
        ("kind", "types"),
        [
            ("system", {"additional_tools", "configuration_update"}),
            ("user", {"message"}),
            ("other", {"compaction", "compaction_trigger"}),
            ("tool", {name for name in EVERY if name.endswith(("_output", "_response"))}),
        ],
    )
    def test_a_type_tells_the_kind(self, kind: str, types: set[str]) -> None:
        """Whatever is not the caller's is the model's."""
        assert {name for name, item in EVERY.items() if FORM.kind(item) == kind} == types
        others = set(EVERY) - {"message", "additional_tools", "configuration_update"}
        spoken = {name for name in others if not name.endswith(("_output", "_response"))}
        assert {name for name, item in EVERY.items() if FORM.kind(item) == "assistant"} == (
            spoken - {"compaction", "compaction_trigger"}
        )

    @pytest.mark.parametrize(
        ("item", "kind"),
        [
            ({"role": "developer", "content": "x"}, "system"),
            ({"role": "system", "content": "x"}, "system"),
            (said(), "assistant"),
            ({"type": "message", "role": "user", "content": "x"}, "user"),
            ({"role": "critic", "content": "x"}, "other"),
            ({"role": ["user"], "content": "x"}, "other"),
            ({"type": "message"}, "other"),
            ({"type": ["message"], "role": "user"}, "other"),
            ({"type": "novelty"}, "other"),
            ({"id": "msg_1"}, "assistant"),
            ({"id": "msg_1", "content": "x"}, "other"),
            ({**output("c"), "name": "look"}, "tool"),
            ({}, "other"),
            (
                {"type": "tool_search_output", "call_id": None, "execution": "server", "tools": []},
                "assistant",
            ),
            ({"type": "tool_search_output", "call_id": "c", "execution": "server", "tools": []}, "assistant"),
            ({"type": "tool_search_output", "call_id": "c", "tools": []}, "tool"),
            ({"type": "function_call_output", "name": "note", "output": "x"}, "other"),
            ({"type": "function_call_output", "output": "x"}, "tool"),
            ({"type": "multi_agent_call_output"}, "other"),
        ],
    )
    def test_the_kind_of_items_that_say_little(self, item: dict[str, Any], kind: str) -> None:
        """What the API lets out is made out; a search the server ran answers nobody."""
        assert FORM.kind(item) == kind
        assert scanned(item).kinds == {0: kind}


class TestScan:
    """`scan` fills the columns in one pass."""

    def test_calls_and_results_go_by_call_id(self) -> None:
        """Each built-in kind of call the caller runs, too; what the provider ran is complete."""
        calls = {name for name, item in EVERY.items() if scanned(item).calls}
        answers = {name for name, item in EVERY.items() if scanned(item).answers}
        assert calls == {name for name in EVERY if name.endswith("_call")} - {
            "web_search_call",
            "file_search_call",
            "code_interpreter_call",
            "image_generation_call",
            "mcp_call",
        } | {"program", "mcp_approval_request"}
        assert answers == {name for name in EVERY if name.endswith(("_output", "_response"))}
        assert scanned(EVERY["mcp_approval_request"]).calls == {0: ("mcpr_1",)}
        assert scanned(EVERY["mcp_approval_response"]).answers == {0: (("mcpr_1", None),)}
        assert scanned(EVERY["local_shell_call_output"]).answers == {0: (("c1", None),)}

    @pytest.mark.parametrize("call_id", [None, 3, "", ["c"]])
    def test_a_call_without_an_id_is_numbered(self, call_id: Any) -> None:
        """And such a result answers "", until it is paired."""
        assert scanned({**call("c"), "call_id": call_id}).calls == {0: ("call #1",)}
        assert scanned({**output("c"), "call_id": call_id}).answers == {0: (("", None),)}

    def test_a_search_the_server_ran_needs_no_answer(self) -> None:
        """Whether it has an id or not: a billed request holds one with an id and without its output."""
        search = {"type": "tool_search_call", "execution": "server", "arguments": {}}
        assert scanned({**search, "call_id": None}, {**search, "call_id": "c"}).calls == {}

    @pytest.mark.parametrize(
        ("items", "bound"),
        [
            ([thought(), said("x", "msg_1"), user()], {0}),
            ([thought(), call("a"), call("b"), output("a"), output("b")], {0, 1}),
            ([thought(), EVERY["web_search_call"], said("x", "msg_1")], {0, 1}),
            ([thought("rs_1"), thought("rs_2"), said("x", "msg_1")], {0, 1}),
            ([thought(), user()], set()),
            ([thought(), output("a")], set()),
            ([thought(), EVERY["compaction"], user()], set()),
            ([thought()], set()),
            ([said("x"), call("a"), output("a")], {0}),
            ([said("x"), said("y")], set()),
            ([said("x", "msg_1"), said("y")], {0}),
            ([said("x", "msg_1"), said("y", "msg_2")], {0}),
            ([user(), user()], set()),
            ([output("a"), thought(), call("b")], {1}),
            ([ref("rs_1"), ref("fc_1"), output("a"), output("b"), user()], {0, 1, 2}),
            ([ref("fc_1"), output("a"), call("b"), output("b")], {0}),
        ],
    )
    def test_what_the_model_said_in_one_run_is_bound(self, items: list[Any], bound: set[int]) -> None:
        """A user's words or a tool's output end the run; messages without ids are free of each other."""
        assert scanned(*items).bound == bound

    def test_what_a_program_calls_is_bound_to_it(self) -> None:
        """Up to its output, over the outputs of its calls."""
        by_program = {"caller": {"type": "program", "caller_id": "p"}}
        items = [
            {**EVERY["program"], "call_id": "p"},
            {**call("a"), **by_program},
            {**output("a"), **by_program},
            {**call("b"), **by_program},
            {**output("b"), **by_program},
            {**EVERY["program_output"], "call_id": "p"},
            said("x", "msg_1"),
        ]
        assert scanned(*items).bound == {0, 1, 2, 3, 4}

    @pytest.mark.parametrize("middle", range(9))
    def test_read_in_two_parts_it_is_the_same(self, middle: int) -> None:
        """From the back, as a history reads; each pair is read once, with the part it begins in."""
        items = [user(), EVERY["compaction"], thought(), call("a"), {**EVERY["compaction"], "id": "cmp_2"}]
        items += [thought("rs_2"), said("x", "msg_1"), thought("rs_3"), thought("rs_4")]
        parted = Structure(9)
        FORM.scan(items, middle, 9, parted)
        FORM.scan(items, 0, middle, parted)
        whole = scanned(*items)
        parted.needs = whole.needs  # which takes all at once
        assert vars(parted) == vars(whole)

    def test_the_latest_compaction_is_kept(self) -> None:
        """It stands for all before it, an earlier one among that."""
        first, second = EVERY["compaction"], {**EVERY["compaction"], "id": "cmp_2"}
        assert scanned(first, user(), second, user()).kept == {2}
        assert scanned(user()).kept == set()

    def test_reasoning_nothing_follows_dangles(self) -> None:
        """One without an id may stand alone: the API looks for what follows an id."""
        bare = {"type": "reasoning", "summary": []}
        assert scanned(thought("rs_1"), thought("rs_2"), user(), thought("rs_3")).dangling == {0, 1, 3}
        assert scanned(bare, user()).dangling == set()
        assert scanned(thought(), ref("msg_1")).dangling == set()

    def test_a_reference_tells_that_more_is_stored(self) -> None:
        """Results may answer what is there."""
        assert scanned(ref("fc_1")).elsewhere
        assert not scanned(user()).elsewhere

    def test_objects_and_mappings_are_replaced_by_dicts_in_the_list(self) -> None:
        """The list handed in holds plain dicts afterwards; the caller's objects are as before."""
        objects = sdk_objects()
        items = [*objects, MappingProxyType(output("c1"))]
        structure = Structure(5)
        FORM.scan(items, 0, 5, structure)
        assert [type(item) for item in items] == [dict] * 5
        assert structure.calls == {1: ("c1",), 2: ("c2",)}
        assert structure.answers == {4: (("c1", None),)}
        assert structure.bound == {0, 1, 2}
        assert objects == sdk_objects()

    def test_an_entry_that_is_no_item_is_named(self) -> None:
        """With its place."""
        with pytest.raises(FormatError) as caught:
            scanned(user(), 3)
        assert caught.value.path == "messages[1]"

    def test_the_newest_of_a_kind_is_found(self) -> None:
        """Up to a place, and after another; objects are read as well."""
        items = [user(), *sdk_objects(), user()]
        assert FORM.newest(items, "user", -1, 5) == 5
        assert FORM.newest(items, "user", -1, 4) == 0
        assert FORM.newest(items, "user", 0, 4) == -1
        assert FORM.newest(items, "assistant", -1, 5) == 4


class TestEdits:
    """Copies are shallow, of the caller's own class, and taken by the package's types."""

    def test_texts_are_those_of_messages_and_results(self) -> None:
        """Nothing of reasoning, arguments or what was encrypted."""
        texts = {name: [slot.text for slot in FORM.texts(item)] for name, item in EVERY.items()}
        assert {name: found for name, found in texts.items() if found} == {
            "message": ["hi"],
            "function_call_output": ["done"],
            "local_shell_call_output": ['{"out": "a"}'],
            "shell_call_output": ["a", ""],
            "apply_patch_call_output": ["done"],
            "custom_tool_call_output": ["a"],
            "mcp_call": ["found"],
        }
        assert {name for name, item in EVERY.items() for slot in FORM.texts(item) if slot.is_result} == (
            {name for name, found in texts.items() if found} - {"message"}
        )

    def test_every_text_can_be_replaced_in_a_copy(self) -> None:
        """In whatever item it stands; the item itself stays as it was."""
        for item in [*EVERY.values(), said("x", "msg_1"), output("c", [{"type": "input_text", "text": "a"}])]:
            before = copy.deepcopy(item)
            changed = FORM.with_texts(item, {slot.path: "NEW" for slot in FORM.texts(item)})
            assert [slot.text for slot in FORM.texts(changed)] == ["NEW"] * len(FORM.texts(item))
            assert item == before
            assert accepted_by_openai(changed)

    def test_annotations_go_with_the_text_they_point_into(self) -> None:
        """Those of other parts stay; objects of the package stay objects."""
        note = {"type": "url_citation", "start_index": 3, "end_index": 9, "title": "t", "url": "u"}
        item = said("see there", "msg_1")
        item["content"] = [
            {"type": "output_text", "text": text, "annotations": [note]} for text in ("see there", "and here")
        ]
        model = ResponseOutputMessage.model_validate(item)
        for message in (item, model):
            changed = FORM.with_texts(message, {("content", 0, "text"): "see"})
            assert type(changed) is type(message)
            read = changed if isinstance(changed, dict) else changed.model_dump(exclude_none=True)
            assert [part["annotations"] for part in read["content"]] == [[], [note]]
            assert [part["text"] for part in read["content"]] == ["see", "and here"]
        assert model == ResponseOutputMessage.model_validate(item)

    def test_a_call_is_there_or_not(self) -> None:
        """An item makes one call at most."""
        item, [_, model, *_] = call("c1"), sdk_objects()
        for one in (item, model):
            assert FORM.without_calls(one, frozenset({"c1"})) is None
            assert FORM.without_calls(one, frozenset({"other"})) is one
        assert FORM.without_calls(EVERY["mcp_approval_request"], frozenset({"mcpr_1"})) is None
        assert FORM.without_calls(user(), frozenset({"c1"})) is not None

    @pytest.mark.parametrize(
        ("name", "tool"),
        [
            ("function_call", {"c1": "look"}),
            ("custom_tool_call", {"c1": "shell"}),
            ("computer_call", {"c1": "computer"}),
            ("mcp_approval_request", {"mcpr_1": "f"}),
            ("web_search_call", {}),
            ("function_call_output", {}),
        ],
    )
    def test_tools_have_names(self, name: str, tool: dict[str, str]) -> None:
        """A built-in one that of its type."""
        assert FORM.tool_names(EVERY[name]) == tool

    def test_a_message_is_made_as_short_as_it_can_be(self) -> None:
        """What is made passes the package's types, and nothing of it is refused."""
        image = {"type": "input_image", "image_url": "u", "detail": "auto"}
        made = [
            FORM.message("user", ["a"]),
            FORM.message("user", []),
            FORM.message("user", ["a", image]),
            FORM.message("system", ["a", "b"]),
            FORM.message("assistant", ["a", "b"]),
        ]
        assert made[0] == {"role": "user", "content": "a"}
        assert made[2]["content"] == [{"type": "input_text", "text": "a"}, image]
        assert made[4] == {"role": "assistant", "content": "a\n\nb"}
        assert all(accepted_by_openai(item) for item in made)
        assert FORM.faults(made) == []

    def test_another_role_changes_what_only_the_model_has(self) -> None:
        """Its id and status go, parts change their type, and back."""
        turned = FORM.with_role(said("x", "msg_1"), "user")
        assert turned == {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": "x"}],
        }
        assert FORM.faults([turned]) == []
        back = FORM.with_role(turned, "assistant")
        assert back["content"] == [{"type": "output_text", "text": "x", "annotations": []}]
        assert FORM.with_role(user(), "developer") == {"role": "developer", "content": "hi"}
        assert FORM.with_role(output("c"), "user") == output("c")
        assert FORM.with_role(sdk_objects()[3], "user")["content"][0]["type"] == "input_text"

    def test_one_text_takes_the_place_of_content(self) -> None:
        """In an output message it is a part, as its type demands; in a result it is the output."""
        assert FORM.with_text(user([{"type": "input_text", "text": "a"}]), "b") == user("b")
        assert FORM.with_text(output("c"), "b") == output("c", "b")
        changed = FORM.with_text(said("x", "msg_1"), "b")
        assert changed == said("b", "msg_1")
        assert accepted_by_openai(changed)

    def test_a_cache_mark_is_a_breakpoint_of_the_api(self) -> None:
        """On the last part that goes in; items that have none stay as they are."""
        mark = {"mode": "explicit"}
        marked = FORM.with_cache_control(user("a"), {"type": "ephemeral"})
        part = {"type": "input_text", "text": "a", "prompt_cache_breakpoint": mark}
        assert marked == {"role": "user", "content": [part]}
        assert accepted_by_openai(marked)
        longer = {**mark, "ttl": "12h"}
        two = user([{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}])
        found = FORM.with_cache_control(two, longer)["content"]
        assert [part.get("prompt_cache_breakpoint") for part in found] == [None, longer]
        assert "prompt_cache_breakpoint" in FORM.with_cache_control(output("c"), "ephemeral")["output"][0]
        for item in (said(), call("c"), thought(), user([])):
            assert FORM.with_cache_control(item, mark) is item

    def test_parts_leave_a_message_in_a_copy(self) -> None:
        """No form of ours asks for it: a result is an item of its own."""
        two = user([{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}])
        assert FORM.without_parts(two, [0])["content"] == [{"type": "input_text", "text": "b"}]
        assert FORM.without_parts(user(), [0]) == user()

    @pytest.mark.parametrize(
        ("item", "told"),
        [
            (user("a"), "USER: a"),
            (said("a", "msg_1"), "ASSISTANT: a"),
            (
                call("c", arguments='{"x": 1}'),
                'ASSISTANT: [function_call] [{"name":"look","arguments":"{\\"x\\": 1}"}]',
            ),
            (output("c", "4"), "TOOL(c): 4"),
            (thought(summary=[{"type": "summary_text", "text": "hm"}]), "ASSISTANT: [reasoning] hm"),
            (thought(encrypted_content="gAAAA"), "ASSISTANT: [reasoning]"),
            (EVERY["compaction"], "OTHER: [compaction]"),
        ],
    )
    def test_a_transcript_is_readable(self, item: dict[str, Any], told: str) -> None:
        """Nothing that is encoded or encrypted stands in it."""
        assert FORM.transcript(item) == told
        for one in EVERY.values():
            assert "iVBORw0KGgo" not in FORM.transcript(one)


class TestRequests:
    """Bodies are taken apart and put together again."""

    def test_a_text_is_the_user_s_message_and_stays_a_text(self) -> None:
        """Unless more than a user's text comes back."""
        body = {"model": "gpt-5", "input": "hi"}
        request = FORM.read_request(body)
        assert request.messages == [user("hi")]
        assert FORM.write_request(request, list(request.messages)) == body
        assert FORM.write_request(request, [user("h")])["input"] == "h"
        assert FORM.write_request(request, [said()])["input"] == [said()]
        assert FORM.write_request(request, [user(), user()])["input"] == [user(), user()]

    def test_instructions_are_the_system_text(self) -> None:
        """What was given beside the body is written into a copy of it."""
        body = {"input": [user()], "instructions": "brief", "tools": [{"type": "web_search"}]}
        request = FORM.read_request(body)
        assert (request.system, request.tools, request.key) == ("brief", [{"type": "web_search"}], "input")
        assert FORM.write_request(request, [user()]) == body
        given = Request(
            messages=[], system=["a", {"type": "input_text", "text": "b"}], body=body, key="input"
        )
        assert FORM.write_request(given, [user()])["instructions"] == "a\n\nb"
        none = Request(messages=[], body=body, key="input")
        assert FORM.write_request(none, []) == {**body, "input": []}
        assert body["instructions"] == "brief"

    def test_an_output_schema_has_the_shape_of_chat(self) -> None:
        """So that counters know one shape."""
        schema = {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": True}
        extra = FORM.read_request({"input": [], "text": {"format": schema}}).extra
        inner = {"name": "n", "schema": {"type": "object"}, "strict": True}
        assert extra == {"response_format": {"type": "json_schema", "json_schema": inner}}
        assert FORM.read_request({"input": [], "text": {"format": {"type": "text"}}}).extra == {}

    @pytest.mark.parametrize("key", ["previous_response_id", "conversation"])
    def test_a_body_may_go_on_from_what_is_stored(self, key: str) -> None:
        """Then a result may answer a call that is not in it."""
        assert FORM.read_request({"input": [], key: "x_1"}).elsewhere
        assert not FORM.read_request({"input": [], key: None}).elsewhere

    @pytest.mark.parametrize("given", [None, 3, {"role": "user"}])
    def test_a_body_needs_input(self, given: Any) -> None:
        """The error names the key."""
        with pytest.raises(FormatError) as caught:
            FORM.read_request({"input": given})
        assert caught.value.path == "input"

    def test_a_body_and_items_are_told_from_other_forms(self) -> None:
        """By its key, by types and by types of parts."""
        assert detect({"input": "hi"}).name == FORM.name
        for name, item in EVERY.items():
            assert detect([user("hi"), item]).name == FORM.name, name
        assert detect([user("hi"), said("x", "msg_1")]).name == FORM.name
        assert FORM.matches({"type": "message", "role": "user", "content": "hi"})
        assert not FORM.matches(
            {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "hi"}]}
        )


WILD = st.recursive(
    st.sampled_from([None, True, 3, 0.5, "", "a", "user", "assistant", "rs_1", *sorted(EVERY)]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "text", "id", "output", "image_url"]), inner, max_size=3)
    ),
    max_leaves=5,
)
KEYS = [
    *("type", "role", "content", "id", "call_id", "output", "name", "arguments", "action", "summary"),
    *("encrypted_content", "tools", "approval_request_id", "execution", "caller", "results", "input"),
]


class TestAnything:
    """Reading is total."""

    @given(st.lists(st.dictionaries(st.sampled_from(KEYS), WILD, max_size=6), max_size=4))
    def test_no_mapping_however_broken_crashes_reading(self, items: list[dict[str, Any]]) -> None:
        """Every method that reads takes every mapping; edits leave it as it was."""
        before = copy.deepcopy(items)
        scanned(*items)
        FORM.faults(items)
        FORM.newest(items, "user", -1, len(items) - 1)
        for item in items:
            FORM.pieces(item)
            FORM.transcript(item)
            FORM.tool_names(item)
            FORM.matches(item)
            FORM.without_calls(item, frozenset({"a"}))
            FORM.with_role(item, "user")
            FORM.with_text(item, "x")
            FORM.with_cache_control(item, {"mode": "explicit"})
            slots = FORM.texts(item)
            changed = FORM.with_texts(item, {slot.path: "x" for slot in slots})
            assert [slot.text for slot in FORM.texts(changed)] == ["x"] * len(slots)
        assert items == before
