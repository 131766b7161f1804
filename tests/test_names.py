"""A wrong name is answered with the names spelled like it: best first, each thing once, in one wording."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from trimtab import Context, create_strategy, fit
from trimtab.counting import counter_for
from trimtab.errors import UnknownNameError
from trimtab.stores import open_store
from trimtab.testing.corpus import cases

MESSAGES = [{"role": "user", "content": "Hello"}]


@pytest.mark.parametrize(
    ("ask", "near"),
    [
        (lambda: create_strategy("Sliding_Windw"), ("sliding_window", "sliding_window_with_summary")),
        (lambda: fit(MESSAGES, 9, format="openai"), ("openai_chat", "openai_responses")),
        (lambda: fit(MESSAGES, 9, format="OpenAI_Chat"), ("openai_chat",)),
        (lambda: open_store("sqllite:///chats.db"), ("sqlite",)),
        (lambda: Context(9).add("history", "x").replace("histroy", "y"), ("history",)),
        (lambda: counter_for("gpt-4o", tokenizer="tiktokn"), ("tiktoken",)),
        (lambda: cases("antropic"), ("anthropic",)),
        (lambda: create_strategy("zzz"), ()),
    ],
    ids=["strategy", "format", "case", "store", "block", "tokenizer", "corpus", "none"],
)
def test_near_names_are_in_the_error_and_in_its_text(
    ask: Callable[[], object], near: tuple[str, ...]
) -> None:
    """`.near` begins with them, and the text ends with what it holds."""
    with pytest.raises(UnknownNameError) as caught:
        ask()
    found = caught.value.near
    assert found[: len(near)] == near
    assert len(set(found)) == len(found)
    end = f"; did you mean {' or '.join(found)}?" if near else ""
    assert str(caught.value).endswith(end)
    assert ("did you mean" in str(caught.value)) == bool(near)


def test_a_model_of_two_spellings_is_meant_once() -> None:
    """claude-sonnet-4-5 and claude-sonnet-4.5 are one model; listing both says nothing more."""
    with pytest.raises(UnknownNameError) as caught:
        counter_for("cluade-sonnet-4-5")
    assert caught.value.near[0] == "claude-sonnet-4-5"
    assert "claude-sonnet-4.5" not in caught.value.near


def test_only_one_module_looks_for_near_names() -> None:
    """Each copy had its own cutoff, its own words, and its own way to list a name twice."""
    package = Path(__file__).parents[1] / "src" / "trimtab"
    using = [path.name for path in package.rglob("*.py") if "get_close_matches" in path.read_text("utf-8")]
    assert using == ["checks.py"]
