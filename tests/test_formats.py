"""Wire forms are found by name or by the shapes that occur."""

from __future__ import annotations

from typing import Any

import pytest

from trimtab.errors import UnknownNameError
from trimtab.formats import Format, OpenAIChat, detect, formats, get_format

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
