"""`trimtab models`: the table of models, looked up as everywhere else."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result

from trimtab import cli
from trimtab.models import facts_for, model_names


def run(*arguments: str) -> Result:
    """Run `trimtab models`."""
    return CliRunner().invoke(cli.command(), ["models", *arguments])


def test_every_model_is_listed_with_source_and_date() -> None:
    """In the order of their names; a row says what the table says."""
    rows = json.loads(run().stdout)
    assert [row["name"] for row in rows] == model_names()
    assert all(row["source"].startswith("http") and row["checked"] for row in rows)
    for row in rows:
        row.pop("price_tiers")  # of its prices, in tests/test_price_tiers.py
        assert {key: getattr(facts_for(row["name"]), key) for key in row} == row


def test_a_dated_name_with_a_prefix_finds_its_row() -> None:
    """As in `fit --model`."""
    (row,) = json.loads(run("openai/gpt-4o-2024-08-06").stdout)
    assert (row["name"], row["window_tokens"], row["format"]) == ("gpt-4o", 128_000, "openai_chat")


def test_an_unknown_name_is_said_and_the_others_are_listed() -> None:
    """Exit 1, with names spelled like it."""
    found = run("gpt-4o-minni", "o3")
    assert found.exit_code == 1
    assert "gpt-4o-mini" in found.stderr
    assert [row["name"] for row in json.loads(found.stdout)] == ["o3"]


def test_only_the_models_of_a_provider() -> None:
    """An unknown provider is wrong usage, and the known ones are named."""
    assert {row["provider"] for row in json.loads(run("--provider", "openai").stdout)} == {"openai"}
    refused = run("--provider", "nobody")
    assert refused.exit_code == 2
    assert "openai" in refused.stderr


def test_what_is_wrong_is_said_in_words_of_the_command_line() -> None:
    """No Python to write, and nothing about a provider that is known."""
    found = run("nosuch")
    assert found.exit_code == 1
    assert "unknown model 'nosuch'" in found.stderr
    assert "register_model" not in found.stderr
    found = run("gpt-4o", "mistral-large-latest", "--provider", "mistral")
    assert found.exit_code == 1
    assert [row["name"] for row in json.loads(found.stdout)] == ["mistral-large-latest"]
    assert "not of provider 'mistral': gpt-4o" in found.stderr


@pytest.mark.parametrize("width", [60, 200])
def test_the_table_has_the_source_where_there_is_room(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dash where a limit is not known."""
    monkeypatch.setenv("COLUMNS", str(width))
    lines = run("--output", "text", "gpt-4", "gpt-4-32k").stdout.splitlines()
    assert lines[1].split()[:4] == ["gpt-4", "8,192", "-", "8,192"]
    assert lines[2].split()[:4] == ["gpt-4-32k", "32,768", "-", "-"]
    assert ("https://" in lines[1]) == (width == 200)


@pytest.mark.parametrize("word", ["claude", "Gemini", "gpt-5"])
def test_a_part_of_names_lists_the_models_that_have_it(word: str) -> None:
    """As a search does; a name that is one is itself."""
    found = run(word)
    assert found.exit_code == 0
    named = [row["name"] for row in json.loads(found.stdout)]
    if word in model_names():
        assert named == [word]
    else:
        assert named == [name for name in model_names() if word.lower() in name]
        assert len(named) > 3
