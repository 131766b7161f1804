"""`trimtab fit --rule` and `--rules`: rules of the host, as texts and from a file."""

from __future__ import annotations

from pathlib import Path

from click.testing import Result

from tests.test_cli import answers, run

CHAT = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Deploy it."}]


def _fit(*arguments: str) -> Result:
    return run("fit", "--counter", "chars:4", "--budget", "99", *arguments, data=CHAT)


def test_the_command_line_takes_texts_and_a_file(tmp_path: Path) -> None:
    """Those of the file first; blank lines are none."""
    path = tmp_path / "rules.txt"
    path.write_text("From the file.\n\n  \nAnd this.\n", encoding="utf-8")
    (found,) = answers(_fit("--rule", "Never.", "--rule", "Always.", "--rules", str(path)))
    assert found["messages"][1]["content"].splitlines()[1:-1] == [
        "- From the file.",
        "- And this.",
        "- Never.",
        "- Always.",
    ]
    assert _fit("--rules", str(tmp_path / "none.txt")).exit_code != 0


def test_options_of_rules_take_the_place_of_the_policys(tmp_path: Path) -> None:
    """Without them, those of the policy are shown."""
    path = tmp_path / "policy.toml"
    path.write_text('rules = ["Of the policy."]\n[[blocks]]\nname = "history"\n', encoding="utf-8")
    (own,) = answers(_fit("--policy", str(path)))
    assert "Of the policy." in own["messages"][1]["content"]
    (said,) = answers(_fit("--policy", str(path), "--rule", "Said."))
    assert [*map(str.strip, said["messages"][1]["content"].splitlines()[1:-1])] == ["- Said."]


def test_an_empty_text_removes_those_of_the_policy(tmp_path: Path) -> None:
    """As an empty file does; a blank text is an error."""
    path, none = tmp_path / "policy.toml", tmp_path / "none.txt"
    path.write_text('rules = ["Of the policy."]\n[[blocks]]\nname = "history"\n', encoding="utf-8")
    none.write_text("\n", encoding="utf-8")
    for given in (("--rule", ""), ("--rules", str(none))):
        (found,) = answers(_fit("--policy", str(path), *given))
        assert found["messages"] == CHAT
    assert _fit("--rule", " ").exit_code != 0
