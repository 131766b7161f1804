"""Wire forms are found by name or by the shapes that occur."""

from __future__ import annotations

from typing import Any

import pytest

from trimtab import Context
from trimtab.errors import ConfigurationError, FormatError, UnknownNameError
from trimtab.formats import Format, OpenAIChat, detect, formats, get_format, register_format
from trimtab.testing import request_bodies

CHAT = OpenAIChat()


class TestRegistry:
    """Formats go by name."""

    def test_formats_are_found_by_name_or_are_themselves(self) -> None:
        """A format that is given as an object needs no name."""
        assert "openai_chat" in formats()
        found: Format = get_format("openai_chat")
        assert found.name == "openai_chat"
        assert get_format(CHAT) is CHAT

    def test_an_unknown_name_lists_the_near_ones(self) -> None:
        """The error can be acted on."""
        with pytest.raises(UnknownNameError) as caught:
            get_format("openai-chat")
        assert caught.value.near[0] == "openai_chat"

    @pytest.mark.parametrize(
        "messages", [[], [{"role": "user", "content": "hi"}], {"messages": []}, [None], 3]
    )
    def test_the_default_is_chat_completions(self, messages: Any) -> None:
        """What tells nothing is taken for the form most providers take."""
        assert detect(messages).name == "openai_chat"


def test_a_form_that_lacks_a_method_is_refused_by_its_name() -> None:
    """Not at the first call that needs it."""

    class Half:
        name = "half"
        rules = OpenAIChat.rules
        scan = kind = OpenAIChat.scan

    with pytest.raises(ConfigurationError, match=r"lacks .*matches.*pieces"):
        register_format(Half())  # type: ignore[arg-type]  # what is refused
    assert "half" not in formats()


def test_a_role_for_what_is_no_message_is_a_typed_error() -> None:
    """A block with a role writes it into its messages."""
    with pytest.raises(FormatError, match="list"):
        Context(100, format="openai_chat").add("h", [[]], role="user").fit()


@pytest.mark.parametrize("form", formats())
@pytest.mark.parametrize("valid", [True, False], ids=["valid", "any"])
def test_a_plain_message_says_what_it_says_the_long_way(form: str, valid: bool) -> None:
    """What is read by a few lookups is what the base class reads of every shape."""
    wire = get_format(form)
    for body in request_bodies(60, format=form, seed=3, valid=valid):
        for message in body[wire.rules.body_key]:
            if isinstance(message, dict):
                assert wire.full_text(message) == Format.full_text(wire, message)


@pytest.mark.parametrize("form", formats())
@pytest.mark.parametrize("role", [True, False], ids=["role", "no role"])
def test_a_field_beside_the_plain_ones_is_searched_too(form: str, role: bool) -> None:
    """The few lookups are for messages that hold a role and a content, and nothing else."""
    wire = get_format(form)
    message = {**wire.message("user", ["seen"]), "note": "found"}
    if not role:
        del message["role"]
    assert wire.full_text(message) == 'seen\n{"note":"found"}'
