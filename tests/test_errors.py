"""Errors about a message carry its place as data, and their text names it where it moved to."""

from __future__ import annotations

import copy
import pickle

import pytest

from trimtab import Context, fit
from trimtab.errors import CountingError, FormatError, move_error

TEXTS = [{"role": "user", "content": "one"}, {"role": "user", "content": "two"}]


def test_an_error_says_its_block_and_its_place_in_it() -> None:
    """In a context: which block, and which of its messages; in fit there is no block."""
    context = Context(100, counter="chars:4").add("history", TEXTS)
    with pytest.raises(FormatError) as caught:
        context.replace("history", [*TEXTS, 3]).fit()
    assert (caught.value.block, caught.value.index, caught.value.path) == ("history", 2, "messages[2]")
    assert str(caught.value).startswith("block 'history': messages[2]: a message must be")
    with pytest.raises(FormatError) as caught:
        fit([*TEXTS, 3], 100, counter="chars:4")
    assert (caught.value.block, caught.value.index) == (None, 2)
    assert str(caught.value).startswith("messages[2]: a message must be")


@pytest.mark.parametrize(
    ("error", "moved"),
    [
        (CountingError("message 1: failed", index=1), "message 4: failed"),
        (CountingError("it failed on message 1: message 1", index=1), "it failed on message 4: message 1"),
        (CountingError("failed", index=1), "failed"),
        (
            FormatError("messages[1].content is none", path="messages[1].content"),
            "messages[4].content is none",
        ),
        (FormatError("a text is none", path="messages[1].content"), "a text is none"),
    ],
)
def test_the_text_names_the_place_an_error_was_moved_to(
    error: CountingError | FormatError, moved: str
) -> None:
    """Once, where it stood; a copy and a pickle can be moved on."""
    for one in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        move_error(one, index=4)
        assert (one.index, str(one)) == (4, moved)
        move_error(one, block="history")
        assert str(one) == f"block 'history': {moved}"
        if isinstance(one, FormatError):
            assert one.path == "messages[4].content"
