"""The makers' own packages list their models: each of those names leads to a row."""

from __future__ import annotations

from typing import Any, get_args

import anthropic.types
import google.genai._gaos.types.interactions.model as gemini
import mistral_common.tokens.tokenizers.mistral as mistral
import openai.types
import pytest

from trimtab.models import facts_for

NO_WINDOW = {
    "claude-fable-5-2",
    "claude-mythos-5-2",
    "gemini-4-hydrogen",
    "gemini-omni-1.2-flash",
    "gemini-robotics-er-1.6-preview",
    "gpt-5.1-mini",
    "gpt-6-cyber",
    "gpt-6.2-astra-law",
    "gpt-rosalind-research",
}
"""Listed, but neither their makers' pages nor who resells them say how large their window is (2026-11)."""

NO_TEXT = ("lyria-",)
"""Names of models that make music: no conversation is fitted for them."""


def names_in(kind: Any) -> list[str]:
    """List the names in a union of literals."""
    found: list[str] = []
    for one in get_args(kind):
        found += [one] if isinstance(one, str) else names_in(one)
    return [name for name in dict.fromkeys(found) if not name.startswith(NO_TEXT)]


LISTS = {
    "openai ChatModel": names_in(openai.types.ChatModel),
    "openai ResponsesModel": names_in(openai.types.ResponsesModel),
    "anthropic Model": names_in(anthropic.types.Model),
    "google-genai Model": names_in(gemini.Model),
    "mistral-common": list(mistral.MODEL_NAME_TO_TOKENIZER_CLS),
}


@pytest.mark.parametrize("source", LISTS)
def test_the_models_a_makers_package_lists_are_known(source: str) -> None:
    """At least 98 of 100; the message lists which are not. So far it is all of them."""
    names = LISTS[source]
    assert len(names) >= 16, "the list has moved"
    unknown = [name for name in names if facts_for(name).counted_as is not None]
    assert len(unknown) <= 0.02 * len(names), f"{source}: {', '.join(unknown)}"


@pytest.mark.parametrize("source", LISTS)
def test_what_is_known_of_a_listed_model_is_a_window_a_limit_and_how_it_is_counted(source: str) -> None:
    """Except where nobody says; those are named here, so that a row does not stay empty unseen."""
    known = [facts for name in LISTS[source] if (facts := facts_for(name)).counted_as is None]
    assert {facts.name for facts in known if facts.window_tokens is None} <= NO_WINDOW
    for facts in known:
        assert facts.source.startswith("https://")
        assert facts.checked
        limited = facts.provider == "mistral" or "tts" in facts.name  # their answers take what is left
        assert limited or facts.output_tokens or facts.name in {*NO_WINDOW, "gpt-4-32k"}
        assert facts.encoding or facts.near_encoding or facts.provider == "mistral"


def test_names_without_a_window_are_listed_still() -> None:
    """One that no package lists any more leaves the set above."""
    assert {name for names in LISTS.values() for name in names} >= NO_WINDOW
