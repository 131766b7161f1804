"""Rows of models in a file: what it may say, and what is said where it is wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from trimtab import fit
from trimtab.errors import ConfigurationError
from trimtab.models import Framing, Margin, ModelFacts, facts_for, model_names, register_models

OWN = """
[models."filed-large"]
like = "gpt-4o"
window_tokens = 32_000
output_tokens = 2_000
exact = false
source = "https://example.org/models"
checked = "2026-11-22"

[models."filed-large".framing]
per_request_tokens = 7

[models."filed-large".framings.openai_responses]
tools_tokens = 11

[models."filed-large".margin]
per_mille = 50

[models."filed-small"]
like = "filed-large"
window_tokens = 8_000

[aliases]
"filed" = "filed-small"
"""


def written(folder: Path, text: str, name: str = "models.toml") -> Path:
    """Write a file of models."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_makes_models_and_other_names_known(tmp_path: Path) -> None:
    """A row starts from the one it is like, also one of the same file, and changes what it gives."""
    assert register_models(written(tmp_path, OWN)) == ["filed-large", "filed-small"]
    large, small = facts_for("filed-large"), facts_for("openrouter/filed")
    assert (large.window_tokens, small.window_tokens, small.output_tokens) == (32_000, 8_000, 2_000)
    assert small.name == "filed-small"
    assert large.encoding == "o200k_base"
    assert large.framing == replace(facts_for("gpt-4o").framing, per_request_tokens=7)
    like = facts_for("gpt-4o")
    responses = dict(like.framings)["openai_responses"]
    assert dict(large.framings)["openai_responses"] == replace(responses, tools_tokens=11)
    assert like.margin is not None
    assert large.margin == replace(like.margin, per_mille=50)
    assert fit([{"role": "user", "content": "Hello"}], model="filed").report.input_tokens == 6_000


def test_json_says_the_same(tmp_path: Path) -> None:
    """As TOML does."""
    text = (
        '{"models": {"filed-json": {"window_tokens": 500, "text_factor": 2, "near_encoding": "o200k_base"}}}'
    )
    assert register_models(written(tmp_path, text, "models.json")) == ["filed-json"]
    assert (facts_for("filed-json").window_tokens, facts_for("filed-json").text_factor) == (500, 2.0)


def test_a_known_row_is_changed_where_the_file_says_so(tmp_path: Path) -> None:
    """The rest of it stays."""
    before = facts_for("command-r-08-2024")
    register_models(written(tmp_path, '[models."command-r-08-2024"]\nwindow_tokens = 64_000'))
    after = facts_for("command-r-08-2024")
    assert (after.window_tokens, after.output_tokens) == (64_000, before.output_tokens)
    assert facts_for("cohere/command-r-08-2024") is after


def test_another_name_may_be_of_any_spelling_that_leads_to_the_model(tmp_path: Path) -> None:
    """Of a gateway, or another name of the same file."""
    text = '[aliases]\nfiled-routed = "openrouter/openai/gpt-4o"\nfiled-llama = "llama3"'
    register_models(written(tmp_path, text))
    assert (facts_for("filed-routed").name, facts_for("filed-llama").name) == ("gpt-4o", "llama-3")


def test_a_part_keeps_what_a_row_does_not_change(tmp_path: Path) -> None:
    """A margin or a framing of one wire form leaves those of the others, and the keys it does not name."""
    before = facts_for("gpt-4o")
    register_models(
        written(
            tmp_path,
            '[models.filed-parts]\nlike = "gpt-4o"\n'
            "framing.tools_tokens = 5\n"
            "framings.anthropic.tools_tokens = 7\n"
            "margins.gemini.tokens = 9\n"
            "margins.openai_responses.tokens = 8",
        )
    )
    found = facts_for("filed-parts")
    assert found.framing == replace(before.framing, tools_tokens=5)
    assert dict(found.framings) == {**dict(before.framings), "anthropic": Framing(tools_tokens=7)}
    margin = dict(before.margins)["openai_responses"]
    assert dict(found.margins) == {
        "openai_responses": replace(margin, tokens=8),
        "gemini": Margin(tokens=9),
    }


@pytest.mark.parametrize("name", ["llama-3-filed", "claude-99-filed"])
def test_a_row_of_a_new_name_starts_from_nothing(tmp_path: Path, name: str) -> None:
    """Though without the file the name led to a family, or told its maker."""
    assert facts_for(name).provider
    register_models(written(tmp_path, f"[models.{name}]\nwindow_tokens = 5_000"))
    assert facts_for(name) == ModelFacts(name=name, window_tokens=5_000)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("models = 5", "models must be a table of names and values, not 5"),
        ("[modles]", "unknown key 'modles'; did you mean models?"),
        ("[models]\nfiled-wrong = 5", "models.filed-wrong must be a table"),
        (
            "[models.filed-wrong]\nwindow = 5",
            "models.filed-wrong: unknown key 'window'; did you mean window_tokens?",
        ),
        ("[models.filed-wrong]\ncolour = 5", "unknown key 'colour'; known: like, provider"),
        (
            "[models.filed-wrong]\nwindow_tokens = '8k'",
            "models.filed-wrong.window_tokens must be a whole number, not '8k'",
        ),
        (
            "[models.filed-wrong]\nwindow_tokens = true",
            "models.filed-wrong.window_tokens must be a whole number, not True",
        ),
        (
            "[models.filed-wrong]\nwindow_tokens = 0",
            "models.filed-wrong: .*window_tokens must be a whole number of tokens above 0",
        ),
        ("[models.filed-wrong]\ntext_factor = 'x'", "models.filed-wrong.text_factor must be a number"),
        ("[models.filed-wrong]\nexact = 1", "models.filed-wrong.exact must be true or false, not 1"),
        ("[models.filed-wrong]\nlike = 'nosuch'", "models.filed-wrong.like: unknown model 'nosuch'"),
        ("[models.filed-wrong]\nlike = 'gpt-99'", "models.filed-wrong.like: model 'gpt-99' is unknown"),
        (
            "[models.filed-wrong]\nlike = 5",
            "models.filed-wrong.like must be the name of a known model, not 5",
        ),
        ("[models.filed-wrong]\nlike = ''", "models.filed-wrong.like: unknown model ''"),
        ("[models.filed-wrong]\nname = 'x'", "models.filed-wrong: unknown key 'name'"),
        ("[models.filed-wrong]\ncounted_as = 'gpt-4'", "models.filed-wrong: unknown key 'counted_as'"),
        ("[models.filed-wrong.window_tokens]\na = 5", "window_tokens must be a whole number, not {'a': 5}"),
        ("[models.filed-wrong.framing]\nper_call = 5", "models.filed-wrong.framing: unknown key 'per_call'"),
        (
            "[models.filed-wrong.framing]\ntools_style = 'x'",
            "framing.tools_style must be one of typescript, json",
        ),
        (
            "[models.filed-wrong.framing]\nper_call_tokens = 'x'",
            "framing.per_call_tokens must be a whole number",
        ),
        ("[models.filed-wrong]\nframing = 5", "models.filed-wrong.framing must be a table, not 5"),
        ("[models.filed-wrong.margins]\ngemini = 5", "models.filed-wrong.margins.gemini must be a table"),
        ("[aliases]\nfiled-wrong = 'nosuch'", "aliases.filed-wrong: unknown model 'nosuch'"),
        ("[aliases]\nfiled-wrong = 'gpt-99'", "aliases.filed-wrong: model 'gpt-99' is unknown"),
        ("[aliases]\nfiled-wrong = 5", "aliases.filed-wrong must be the name of a model, not 5"),
        ("models = [", "it is not TOML"),
    ],
)
def test_a_wrong_file_is_refused_by_row_and_key_and_changes_nothing(
    tmp_path: Path, text: str, said: str
) -> None:
    """All rows are looked at before one is taken."""
    names = model_names()
    path = written(tmp_path, text)
    with pytest.raises(ConfigurationError, match=said) as caught:
        register_models(path)
    assert str(path) in str(caught.value)
    assert model_names() == names


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("m.json", "{", "it is not JSON"),
        ("M.JSON", "{", "it is not JSON"),
        ("deep.json", "[" * 100_000, "it is not JSON"),
        ("m.yaml", "", "end in .toml or .json, not .yaml"),
    ],
)
def test_what_is_no_such_file_is_refused(tmp_path: Path, name: str, text: str, said: str) -> None:
    """By its name and by what it holds."""
    with pytest.raises(ConfigurationError, match=said):
        register_models(written(tmp_path, text, name))


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """With its path."""
    with pytest.raises(ConfigurationError, match=r"nosuch\.toml: the models in it cannot be read"):
        register_models(tmp_path / "nosuch.toml")


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    """As one that cannot be read."""
    path = tmp_path / "models.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigurationError, match=r"the models in it cannot be read: .*utf-8"):
        register_models(path)


def ask(code: str, path: Path) -> subprocess.CompletedProcess[str]:
    """Run a line of Python in a process whose environment names a file of models."""
    environment = {**os.environ, "TRIMTAB_MODELS": str(path)}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )


def test_the_environment_names_a_file(tmp_path: Path) -> None:
    """It is read when the first model is looked up, and its rows go before ours."""
    path = written(tmp_path, '[models.gpt-4]\nwindow_tokens = 16_000\n[models.filed]\nlike = "gpt-4"')
    code = "from trimtab.models import facts_for as f; print(f('gpt-4').window_tokens, f('filed').encoding)"
    found = ask(code, path)
    assert (found.stdout, found.stderr) == ("16000 cl100k_base\n", "")


def test_a_wrong_file_in_the_environment_is_said_at_each_look(tmp_path: Path) -> None:
    """And not passed over at the second."""
    code = (
        "from trimtab.models import facts_for\n"
        "for _ in range(2):\n"
        "    try: facts_for('gpt-4')\n"
        "    except Exception as error: print(type(error).__name__, error)"
    )
    lines = ask(code, written(tmp_path, "[models.x]\nwindow = 5")).stdout.splitlines()
    assert len(lines) == 2
    assert all(line.startswith("ConfigurationError TRIMTAB_MODELS: ") for line in lines)
