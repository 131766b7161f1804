"""The Gemini form: every shape is read in place and edited in a copy."""

from __future__ import annotations

import copy
from collections import OrderedDict
from typing import Any

import pytest
from google.genai import types
from hypothesis import given

from tests.gemini_shapes import (
    SIGNED,
    agent,
    as_objects,
    broken_contents,
    call,
    model,
    odd_conversations,
    response,
    snake,
    user,
    words,
)
from trimtab.errors import FormatError
from trimtab.formats import Gemini, Structure, detect, mapping_of

GEMINI = Gemini()


def scanned(*contents: Any) -> Structure:
    """Read contents from the first to the last."""
    structure = Structure(len(contents))
    GEMINI.scan(list(contents), 0, len(contents), structure)
    return structure


def ids_answered(structure: Structure, index: int) -> list[str]:
    """List the ids a content's responses answer."""
    return [call_id for call_id, _ in structure.answers.get(index, ())]


class TestScan:
    """`scan` fills the columns in one pass."""

    @pytest.mark.parametrize(
        ("content", "kind"),
        [
            (user("hi"), "user"),
            ({"parts": [words()]}, "user"),
            ({"role": None, "parts": [words()]}, "user"),
            ({"role": "", "parts": []}, "user"),
            (user(response()), "tool"),
            (snake(user(response(), response())), "tool"),
            (user(response(), "and"), "user"),
            ({"role": "function", "parts": [response()]}, "tool"),
            ({"role": "tool", "parts": [response()]}, "tool"),
            (model("ho"), "assistant"),
            (model(call()), "assistant"),
            ({"role": "assistant", "parts": []}, "assistant"),
            ({"role": "system", "parts": [words()]}, "system"),
            ({"role": "critic", "parts": [words()]}, "other"),
            ({"role": ["user"], "parts": [words()]}, "other"),
            ({"role": 7}, "other"),
        ],
    )
    def test_role_and_parts_tell_the_kind(self, content: Any, kind: str) -> None:
        """A content that holds responses alone is a tool's, whatever its role."""
        assert GEMINI.kind(content) == kind
        assert scanned(content).kinds == {0: kind}

    @pytest.mark.parametrize(
        ("parts", "ids"),
        [
            ([call("add", "a")], ("a",)),
            ([call("add", "b"), "text", call("add", "a")], ("b", "a")),
            ([call("add", "a"), call("look", "a")], ("a", "a")),
            ([call("add"), call("look"), call("add")], ("call:add:0", "call:look:0", "call:add:1")),
            ([call("add", ""), call("add", "x"), call("add", 3)], ("call:add:0", "x", "call:add:1")),
            ([call(None), {"functionCall": "add"}], ("call::0", "call::1")),
            ([{"functionCall": None}, {}, 3, None, "x"], ()),
        ],
    )
    def test_calls_have_ids_of_their_own_or_by_name_and_number(
        self, parts: list[Any], ids: tuple[str, ...]
    ) -> None:
        """Both spellings, and the SDK's objects, read alike."""
        found = scanned({"role": "model", "parts": parts}).calls.get(0, ())
        assert found == ids
        assert scanned(snake({"role": "model", "parts": parts})).calls.get(0, ()) == ids

    @pytest.mark.parametrize(
        ("contents", "answered"),
        [
            ([model(call("f", "a")), user(response("f", "a"))], ["a"]),
            ([model(call("f")), user(response("f"))], ["call:f:0"]),
            ([model(call("f", "a")), user(response("f"))], ["a"]),
            ([model(call("f", "a"), call("f", "b")), user(response("f"), response("f"))], ["a", "b"]),
            ([model(call("f", "a"), call("f", "b")), user(response("f"), response("f", "a"))], ["b", "a"]),
            ([model(call("f"), call("g"), call("f")), user(response("g"), response("f"), response("f"))],
             ["call:g:0", "call:f:0", "call:f:1"]),
            ([model(call("f", "a")), model(call("f", "b")), user(response("f"), response("f"))], ["a", "b"]),
            ([model(call("f", "a"), call("f", "b")), user(response("f")), user(response("f"))], ["b"]),
            ([model(call("f", "a")), model("so"), user(response("f"))], ["a"]),
            ([model(call("f")), user("and"), user(response("f"))], ["call:f:0"]),
            ([model(call("f", "a")), user(response("g"))], ["call:g:0"]),
            ([user(response("f"), response("f"))], ["call:f:0", "call:f:1"]),
        ],
    )  # fmt: skip
    def test_a_response_without_an_id_answers_by_name_and_order(
        self, contents: list[Any], answered: list[str]
    ) -> None:
        """Among the calls of the turn directly before; those another response names are taken."""
        last = len(contents) - 1
        assert ids_answered(scanned(*contents), last) == answered
        assert ids_answered(scanned(*as_objects(contents)), last) == answered

    @given(odd_conversations)
    def test_it_does_not_matter_where_reading_began(self, contents: list[dict[str, Any]]) -> None:
        """Read a content at a time from the newest back, all columns are the same."""
        whole, pieces = scanned(*contents), Structure(len(contents))
        for index in reversed(range(len(contents))):
            GEMINI.scan(contents, index, index + 1, pieces)
        for column in ("kinds", "calls", "answers", "loose", "bound", "kept"):
            assert getattr(whole, column) == getattr(pieces, column)

    def test_parts_beside_responses_are_loose(self) -> None:
        """They are the user's own, and stay or leave alone."""
        structure = scanned(model(call("f", "a")), user("see", response("f", "a"), "and"))
        assert structure.answers == {1: (("a", 1),)}
        assert structure.loose == {1: (0, 2)}

    @pytest.mark.parametrize(
        ("contents", "bound"),
        [
            ([model(call()), model(call())], {0}),
            ([model(call()), model("text")], {0}),
            ([model(call()), model("text"), model("more"), user(response())], {0, 1}),
            ([model("text"), model(call())], set[int]()),
            ([model("text"), model("more"), model(call())], set[int]()),
            ([model(call()), user(response())], set[int]()),
            ([model({"executableCode": {"code": "1"}}), model({"codeExecutionResult": {}})], {0}),
            ([model({"executableCode": {}}, {"codeExecutionResult": {}}), model("so")], set[int]()),
            ([model({"toolCall": {"id": "1"}}), model({"toolResponse": {"id": "1"}})], {0}),
            ([model(call())], set[int]()),
        ],
    )
    def test_what_a_model_leaves_open_stays_with_what_it_says_next(
        self, contents: list[Any], bound: set[int]
    ) -> None:
        """Contents of one turn of the model, in which a call, code or a provider's tool waits."""
        assert scanned(*contents).bound == scanned(*as_objects(contents)).bound == bound

    @given(broken_contents)
    def test_no_mapping_however_broken_crashes_reading(self, contents: list[dict[str, Any]]) -> None:
        """Every method that reads takes anything, and changes nothing."""
        before = copy.deepcopy(contents)
        structure = scanned(*contents)
        GEMINI.faults(contents)
        GEMINI.newest(contents, "user", -1, len(contents) - 1)
        for index, content in enumerate(contents):
            GEMINI.texts(content)
            GEMINI.tool_names(content)
            GEMINI.pieces(content)
            GEMINI.matches(content)
            GEMINI.transcript(content)
            GEMINI.order_fault(None, content)
            GEMINI.without_calls(content, frozenset(structure.calls.get(index, ())))
            GEMINI.without_parts(content, sorted(structure.parts_of(index)))
            GEMINI.with_texts(content, {slot.path: "" for slot in GEMINI.texts(content)})
        assert contents == before

    def test_an_entry_that_is_no_message_is_an_error_with_its_place(self) -> None:
        """A bare text in the list is the SDK's shorthand, which is not taken."""
        with pytest.raises(FormatError) as caught:
            scanned(user("hi"), "hello")
        assert caught.value.path == "messages[1]"

    def test_newest_finds_the_newest_of_a_kind(self) -> None:
        """Contents of responses are not the user's."""
        contents: list[Any] = [*as_objects([user("hi"), model(call())]), user(response()), model("so")]
        assert GEMINI.newest(contents, "user", -1, 3) == 0
        assert GEMINI.newest(contents, "tool", -1, 3) == 2
        assert GEMINI.newest(contents, "user", 0, 3) == -1


class TestTexts:
    """`texts` lists what may be shortened, and `with_texts` writes it."""

    @pytest.mark.parametrize("spelled", [list, snake])
    def test_words_and_strings_in_responses_may_be_shortened(self, spelled: Any) -> None:
        """Paths lead to where each text stands, in the spelling it has."""
        answer = {"output": "long", "rows": [{"name": "a", "n": 1}, "b"], "empty": "", 3: "no path"}
        (content,) = spelled([user("hi", response("f", "a", answer))])
        slots = GEMINI.texts(content)
        assert [(slot.text, slot.is_result) for slot in slots] == [
            ("hi", False), ("long", True), ("a", True), ("b", True),
        ]  # fmt: skip
        edited = GEMINI.with_texts(content, {slot.path: slot.text.upper() for slot in slots})
        assert [slot.text for slot in GEMINI.texts(edited)] == ["HI", "LONG", "A", "B"]
        assert [slot.text for slot in GEMINI.texts(content)] == ["hi", "long", "a", "b"]

    def test_of_many_strings_in_a_response_the_longest_may_be_shortened(self) -> None:
        """Rows of short values stay; cutting each of them would take long and free little."""
        rows = [{"id": f"{at:04}", "note": "n" * (at % 100)} for at in range(1_000)]
        slots = GEMINI.texts(user(response("f", "a", {"rows": rows})))
        assert len(slots) == 64
        lengths = sorted(len(slot.text) for slot in slots)
        assert (lengths[:4], lengths[4]) == ([93] * 4, 94)  # ten of each length, and four of 93
        assert [slot.path[-2] for slot in slots] == sorted(slot.path[-2] for slot in slots)

    def test_thoughts_arguments_and_code_are_not_shortened(self) -> None:
        """Nor is a medium's data."""
        parts = [
            words("thinking", thought=True),
            call("f", q="long"),
            {"executableCode": {"language": "PYTHON", "code": "1"}},
            {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
            {"inlineData": {"mimeType": "text/plain", "data": "aGk="}},
        ]
        assert GEMINI.texts(model(*parts)) == []

    def test_a_content_with_a_signature_is_not_shortened(self) -> None:
        """Also not the parts beside the signed one."""
        assert GEMINI.texts(model("text", call(signed=True))) == []
        assert GEMINI.texts(model("text", words("", thoughtSignature=SIGNED))) == []

    def test_objects_are_copied_into_their_own_classes(self) -> None:
        """An edited content of the SDK is one of the SDK; what did not change is the same object."""
        (content,) = as_objects([user("hi", response("f", "a", {"output": "long", "rest": [1]}))])
        slot = GEMINI.texts(mapping_of(content))[1]
        edited = GEMINI.with_texts(content, {slot.path: "short"})
        assert isinstance(edited, types.Content)
        assert content.parts is not None
        assert edited.parts is not None
        assert edited.parts[0] is content.parts[0]
        assert edited.parts[1].function_response.response == {"output": "short", "rest": [1]}
        assert content.parts[1].function_response.response == {"output": "long", "rest": [1]}


class TestEdits:
    """Parts and calls leave copies."""

    def test_parts_leave_a_copy(self) -> None:
        """The container keeps its type, the content its class."""
        content: dict[str, Any] = OrderedDict(role="user", parts=(words("a"), words("b")))
        edited = GEMINI.without_parts(content, [0])
        assert edited == {"role": "user", "parts": (words("b"),)}
        assert type(edited) is OrderedDict
        assert len(content["parts"]) == 2
        assert GEMINI.without_parts(content, []) is content

    @pytest.mark.parametrize(
        ("content", "ids", "left"),
        [
            (model("so", call("f", "a")), {"a"}, model("so")),
            (model(call("f", "a")), {"a"}, None),
            (model(words("hm", thought=True), call("f", "a")), {"a"}, None),
            (model(call("f"), call("f")), {"call:f:1"}, model(call("f"))),
            (model(call("f", "a"), call("f", "b")), {"x"}, model(call("f", "a"), call("f", "b"))),
        ],
    )
    def test_calls_leave_a_copy(self, content: Any, ids: set[str], left: Any) -> None:
        """None where nothing but thoughts is left."""
        before = copy.deepcopy(content)
        assert GEMINI.without_calls(content, frozenset(ids)) == left
        assert content == before

    def test_the_call_behind_a_signed_one_that_leaves_is_signed_with_googles_own_value(self) -> None:
        """Gemini 3 asks for a signature on the first call; a later call had none of its own."""
        content = model(call("f", "a", signed=True), call("f", "b"), call("f", "c"))
        left = GEMINI.without_calls(content, frozenset({"a"}))
        value = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="
        assert left == model({**call("f", "b"), "thoughtSignature": value}, call("f", "c"))
        (sdk,) = as_objects([content])
        signed = GEMINI.without_calls(sdk, frozenset({"a"}))
        assert signed is not None
        assert signed.parts[0].thought_signature == b"skip_thought_signature_validator"
        assert signed.parts[1] is sdk.parts[2]
        later = GEMINI.without_calls(content, frozenset({"b"}))
        assert later == model(call("f", "a", signed=True), call("f", "c"))

    def test_two_contents_are_joined_in_a_copy(self) -> None:
        """The role is the first one's."""
        first, second = user(response("f", "a")), user(response("f", "b"))
        assert GEMINI.join_results(first, second) == user(response("f", "a"), response("f", "b"))
        assert first == user(response("f", "a"))

    def test_roles_and_texts_are_put_into_copies(self) -> None:
        """Roles of other wire forms are translated; the SDK's contents stay the SDK's."""
        assert GEMINI.with_role(user("hi"), "assistant") == model("hi")
        assert GEMINI.with_role(model("hi"), "user") == user("hi")
        assert GEMINI.with_text(user("hi", "ho"), "so") == user("so")
        (sdk,) = as_objects([model("hi")])
        assert GEMINI.with_text(sdk, "so") == as_objects([model("so")])[0]
        assert GEMINI.with_cache_control(sdk, {"type": "ephemeral"}) is sdk

    def test_a_message_is_made_of_texts_and_parts(self) -> None:
        """What is not the model's or the system's is the user's."""
        assert GEMINI.message("assistant", ["hi", call()]) == model("hi", call())
        assert GEMINI.message("tool", [response()]) == user(response())
        assert GEMINI.message("system", ["be"]) == {"role": "system", "parts": [words("be")]}

    def test_system_contents_are_lifted_into_system_text(self) -> None:
        """Behind what the request says already."""
        lead = [GEMINI.message("system", ["be"]), GEMINI.message("system", ["kind"])]
        assert GEMINI.lift_system(lead, None) == [words("be"), words("kind")]
        assert GEMINI.lift_system(lead, "do") == [{"text": "do"}, words("be"), words("kind")]


class TestReading:
    """What other parts of the library ask of a form."""

    def test_tools_are_named_by_call(self) -> None:
        """The ids are those of the columns."""
        content = model(call("f", "a"), call("g"), call("g"))
        assert GEMINI.tool_names(content) == {"a": "f", "call:g:0": "g", "call:g:1": "g"}

    @pytest.mark.parametrize(
        ("previous", "content", "words_begin"),
        [
            (None, model(call()), "Please ensure that function call turn comes immediately after a"),
            (None, model("ho"), "Please ensure that multiturn requests alternate"),
            (None, user("hi"), None),
            (user("hi"), model(call()), None),
            (user("hi"), user("hi"), None),
            (model("ho"), model(call()), None),
            (model(call()), model(call()), None),
        ],
    )  # fmt: skip
    def test_contents_begin_with_the_user(self, previous: Any, content: Any, words_begin: str | None) -> None:
        """Everything else is taken in any order."""
        said = GEMINI.order_fault(previous, content)
        assert said is None if words_begin is None else (said or "").startswith(words_begin)

    @pytest.mark.parametrize(
        ("content", "text"),
        [
            (user("hi", "ho"), "USER: hi\nho"),
            (model("so", words("hm", thought=True)), "MODEL: so"),
            (model("so", call("f", q=1)), 'MODEL: [function_calls] [{"name":"f","args":{"q":1}}]'),
            (user(response("f", "a", "4"), "ok?"), "TOOL(f): 4\nUSER: ok?"),
            (user(response("f", "a", {"a": 1, "b": "x"})), 'TOOL(f): {"a":1,"b":"x"}'),
            (model({"executableCode": {"code": "1"}}, {"codeExecutionResult": {"output": ""}}), "MODEL: 1\n"),
            ({"parts": [words("", thoughtSignature=SIGNED)]}, "USER: "),
        ],
    )  # fmt: skip
    def test_a_content_is_written_for_reading(self, content: Any, text: str) -> None:
        """Signed texts too: nothing of them changes."""
        assert GEMINI.transcript(content) == text

    def test_contents_are_told_from_messages_of_other_forms(self) -> None:
        """By parts that are named by their data; a list of parts with types is not Gemini's."""
        for content in (*agent(1, ids=False), *snake(agent(1, ids=True))):
            assert GEMINI.matches(content)
        assert not GEMINI.matches({"role": "user", "content": "hi"})
        assert not GEMINI.matches({"role": "user", "parts": [{"type": "text", "text": "hi"}]})
        assert detect(agent(1, ids=False)).name == "gemini"
        assert detect(as_objects(agent(1, ids=False))).name == "gemini"


def test_a_part_that_only_looks_like_a_response_is_read_whole() -> None:
    """A name and a response alone make none: what else stands in it is found, too."""
    other = {"name": "look", "response": {"sky": "blue"}, "note": "birds"}
    assert "birds" in GEMINI.full_text({"role": "user", "parts": [{"toolResponse": other}]})
    plain = {"name": "look", "response": {"sky": "blue"}}
    assert "blue" in GEMINI.full_text({"role": "user", "parts": [{"functionResponse": plain}]})
