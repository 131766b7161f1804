"""What of a Responses input item is charged for."""

from __future__ import annotations

from typing import Any

import pytest

from tests.response_items import EVERY, PNG, call, output, said, sdk_objects, thought, user
from trimtab.counting import measure
from trimtab.errors import FormatError
from trimtab.formats import Media, OpenAIResponses, mapping_of

FORM = OpenAIResponses()


class TestPieces:
    """`pieces` lists what is charged for, once each."""

    @pytest.mark.parametrize(
        ("content", "texts", "parts"),
        [
            ("hi", ("hi",), 1),
            ("", ("",), 1),
            (None, (), 0),
            ([], (), 0),
            ([{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}], ("a", "b"), 2),
            ([{"type": "output_text", "text": "a", "annotations": [{"url": "u"}]}], ("a",), 1),
            ([{"type": "refusal", "refusal": "no"}], ("no",), 1),
            (["bare"], ("bare",), 1),
        ],
    )
    def test_a_message_is_its_role_and_texts(self, content: Any, texts: tuple[str, ...], parts: int) -> None:
        """Annotations are beside the text, not in the prompt."""
        found = FORM.pieces({"role": "assistant", "content": content})
        assert (found.role, found.texts, found.parts, found.other) == ("assistant", texts, parts, ())

    def test_what_is_carried_along_is_free(self) -> None:
        """Ids, states and marks for the cache."""
        message = {**said("a", "msg_1"), "phase": "final_answer"}
        found = FORM.pieces(message)
        assert (found.texts, found.other, found.calls) == (("a",), (), ())

    @pytest.mark.parametrize(
        ("name", "calls"),
        [
            ("function_call", (("look", "{}"),)),
            ("custom_tool_call", (("shell", "ls"),)),
            ("computer_call", (("computer", '{"type":"screenshot"}'),)),
            ("local_shell_call", (("local_shell", '{"type":"exec","command":["ls"],"env":{}}'),)),
            ("shell_call", (("shell", '{"commands":["ls"]}'),)),
            ("apply_patch_call", (("apply_patch", '{"type":"delete_file","path":"a.py"}'),)),
            ("tool_search_call", (("tool_search", '{"queries":["q"]}'),)),
            ("program", (("program", "f()"),)),
            ("mcp_approval_request", (("f", "{}"),)),
            ("mcp_call", (("f", "{}"),)),
            ("web_search_call", (("web_search", '{"type":"search","query":"q"}'),)),
            ("file_search_call", (("file_search", '["q"]'),)),
            ("code_interpreter_call", (("code_interpreter", "1+1"),)),
            ("image_generation_call", (("image_generation", ""),)),
        ],
    )
    def test_every_call_is_a_name_and_what_it_asks(self, name: str, calls: tuple[Any, ...]) -> None:
        """A built-in tool goes by the name of its type."""
        found = FORM.pieces(EVERY[name])
        assert (found.role, found.calls) == ("assistant", calls)

    @pytest.mark.parametrize(
        ("name", "texts", "other"),
        [
            ("function_call_output", ("done",), ()),
            ("custom_tool_call_output", ("a",), ()),
            ("local_shell_call_output", ('{"out": "a"}',), ()),
            ("shell_call_output", ("a",), ('{"outcome":{"type":"exit","exit_code":0}}',)),
            ("apply_patch_call_output", ("done",), ()),
            ("program_output", ("2",), ()),
            ("mcp_approval_response", (), ('{"approve":true}',)),
            ("mcp_call", ("found",), ()),
            ("file_search_call", (), ('[{"text":"found"}]',)),
            ("code_interpreter_call", (), ('[{"type":"logs","logs":"2"}]',)),
            ("configuration_update", (), ()),
            ("item_reference", (), ()),
            ("compaction", (), ()),
            ("compaction_trigger", (), ()),
        ],
    )
    def test_results_are_text_as_far_as_they_are(
        self, name: str, texts: tuple[str, ...], other: tuple[str, ...]
    ) -> None:
        """The rest is compact JSON; what is stored or encrypted cannot be counted."""
        found = FORM.pieces(EVERY[name])
        assert (found.texts, found.other) == (texts, other)

    def test_what_stands_for_all_that_was_before_is_charged(self) -> None:
        """A compaction item is sealed and no reasoning: it is charged by its length in every turn."""
        item = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA" * 40_000}
        assert FORM.pieces(item).media == (("file", None, item["encrypted_content"], "compaction", True),)
        for model in ("gpt-4o", "gpt-5", None):
            before, after = (
                measure([*items, user()], model=model, format="openai_responses").tokens
                for items in ([], [item])
            )
            assert 20_000 < after - before < 100_000

    def test_a_result_has_the_id_it_answers(self) -> None:
        """For counters that charge it."""
        assert FORM.pieces(output("c1")).result_id == "c1"
        assert FORM.pieces(EVERY["mcp_approval_response"]).result_id == "mcpr_1"
        assert FORM.pieces(call("c1")).result_id is None

    def test_tools_made_known_on_the_way_are_charged(self) -> None:
        """Their schemas stand in the prompt, wherever they came from."""
        for name in ("additional_tools", "tool_search_output", "mcp_list_tools"):
            found = FORM.pieces(EVERY[name])
            assert '"name":"f"' in found.beside[0]
        assert FORM.pieces(EVERY["additional_tools"]).role == "developer"

    def test_reasoning_is_what_can_be_read_of_it(self) -> None:
        """Summaries and open text; what is encrypted nobody but the provider can count."""
        item = thought(
            summary=[{"type": "summary_text", "text": "short"}],
            content=[{"type": "reasoning_text", "text": "long"}],
            encrypted_content="gAAAA" * 100,
        )
        found = FORM.pieces(item)
        assert (found.role, found.texts, found.other, found.media) == ("reasoning", (), (), ())
        assert (found.thoughts, found.sealed_chars) == (("long", "short"), 500)

    @pytest.mark.parametrize(
        ("part", "medium"),
        [
            (
                {"type": "input_image", "image_url": PNG, "detail": "low"},
                Media("image", "low", PNG, None),
            ),
            ({"type": "input_image", "file_id": "f_1"}, Media("image", None, None, "f_1")),
            (
                {"type": "input_file", "file_data": "JVBERi0", "filename": "a.pdf"},
                Media("file", None, "JVBERi0", "a.pdf"),
            ),
            ({"type": "input_file", "file_url": "u"}, Media("file", None, "u", None)),
            (
                {"type": "input_audio", "input_audio": {"data": "UklGR", "format": "wav"}},
                Media("audio", None, "UklGR", None),
            ),
        ],
    )
    def test_media_are_no_text(self, part: dict[str, Any], medium: Media) -> None:
        """In messages and in results alike."""
        for item in (user([part]), output("c", [part])):
            found = FORM.pieces(item)
            assert (found.media, found.texts, found.other) == ((medium,), (), ())

    def test_pictures_of_tools_are_media(self) -> None:
        """A screenshot, a generated image, a picture among what code put out."""
        shot = FORM.pieces(EVERY["computer_call_output"])
        assert (shot.media, shot.texts, shot.other) == ((Media("image", None, PNG, None),), (), ())
        made = FORM.pieces(EVERY["image_generation_call"])
        assert made.media == (Media("image", None, "iVBORw0KGgo", None),)
        outputs = [{"type": "image", "url": PNG}]
        drawn = FORM.pieces({**EVERY["code_interpreter_call"], "outputs": outputs})
        assert [medium.data for medium in drawn.media] == [PNG]
        assert "base64" not in "".join(drawn.other)

    def test_an_unknown_item_is_charged_whole(self) -> None:
        """As JSON, without what is base64 in it."""
        found = FORM.pieces({"type": "novelty", "note": "x", "picture": PNG})
        assert "".join(found.other) == '{"type":"novelty"}{"note":"x"}{"picture":""}'
        assert len(found.media) == 1

    def test_objects_of_the_package_are_read_as_their_dicts(self) -> None:
        """The reasoning's and the calls' pieces are those of the dicts they were made from."""
        reasoning, first, _, message = (FORM.pieces(mapping_of(item)) for item in sdk_objects())
        assert (reasoning.other, first.calls, message.texts) == ((), (("look", "{}"),), ("There you are.",))

    def test_what_cannot_be_written_is_refused(self) -> None:
        """A value that contains itself."""
        circle: dict[str, Any] = {"type": "novelty"}
        circle["self"] = circle
        with pytest.raises(FormatError):
            FORM.pieces(circle)
