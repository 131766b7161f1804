"""The command `trimtab serve`: what it refuses, and what its options do, over plain HTTP."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from tests.gateway.gateways import Running, recorder, run, talk
from trimtab import cli, fit
from trimtab.gateway import Limits

SCRIPT = Path(sys.executable).with_name("trimtab")
TOKEN = "a-token-of-16-or-more"
TALK = talk(10)


@contextmanager
def served(
    *arguments: object, variables: Mapping[str, str] | None = None, reads: bool = True, has_log: bool = True
) -> Iterator[Running]:
    """Run `trimtab serve` on a free port for the length of a block."""
    words = [str(SCRIPT), "serve", *map(str, arguments)]
    environment = {**os.environ, "TRIMTAB_SERVE_LISTEN": "127.0.0.1:0", **(variables or {})}
    given: dict[str, Any] = {"reads": reads, "has_log": has_log, "env": environment}
    with run(words, lambda process: process.stderr, **given) as running:
        yield running


def chat(model: str = "gpt-4o", messages: Any = TALK) -> dict[str, Any]:
    """Write a request."""
    return {"model": model, "messages": messages}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("--listen", "8484"), "HOST:PORT"),
        (("--listen", "127.0.0.1:99999"), "HOST:PORT"),
        (("--listen", "0.0.0.0:0"), "--token"),
        (("--listen", "[::]:0"), "--token"),
        (("--listen", "127.0.0.1:0", "--token", "short"), "at least 16"),
        (("--upstream", "openai"), "API=URL"),
        (("--upstream", "openai/=http://x"), "API=URL"),
        (("--upstream", "opnai=http://x"), "did you mean openai"),
        (("--upstream", "openai=x"), "http://"),
        (("--budget", "8kk"), "8kk"),
        (("--budget", "key:ci=8k"), "no key is named 'ci'"),
        (("--key", "ci"), "NAME=env:VARIABLE"),
        (("--key", "ci=sk-of-the-ci"), "never the key itself"),
        (("--upstream", "openai,key:ci=http://127.0.0.1:9"), "no key is named 'ci'"),
        (("--share", "memory://"), "redis://"),
        (("--share", "learned.db", "--no-learn"), "nothing to share"),
        (("--budget", "gpt-*=110%"), "110%"),
        (("--rules", "no-such-file"), "no-such-file"),
        (("--drain", "0"), "above 0"),
        (("--otel",), "opentelemetry-instrument trimtab serve --otel"),
        (("--max-calls", "0"), "--max-calls"),
        (("--max-body", "9", "--max-bodies", "8"), "max_bodies_bytes"),
        (("--config", "no-such-file"), "no-such-file"),
    ],
)
def test_what_cannot_be_served_is_refused_at_once(given: tuple[str, ...], words: str) -> None:
    """With exit code 2, and the words of the command line."""
    done = CliRunner().invoke(cli.command(), ["serve", *given])
    assert done.exit_code == 2
    assert words in done.output


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('budgte = "8k"', "budgte is not an option of this command; did you mean budget?"),
        ("=", "--config"),
        ('quiet = "no"', "quiet must be true or false, not 'no'"),
        ("learn = 0", "learn must be true or false, not 0"),
        ("token = true", "token must be a text or a whole number, not True"),
        ("drain = -1.5", "above 0"),
        ("drain = false", "drain must be a text or a whole number, not False"),
        ("budget = 0.8", 'budget must be a text such as "80%", not 0.8'),
        ('[budget]\n"gpt-*" = 0.8', 'budget.gpt-* must be a text such as "80%", not 0.8'),
        ("listen = [1]", "listen must be a text or a whole number, not [1]"),
        ('upstream = "openai"', "API=URL"),
    ],
)
def test_a_file_of_options_is_checked(tmp_path: Path, text: str, words: str) -> None:
    """A key that is no option is not passed over."""
    path = tmp_path / "gateway.toml"
    path.write_text(text)
    done = CliRunner().invoke(cli.command(), ["serve", "--config", str(path)])
    assert done.exit_code == 2
    assert words in " ".join(done.output.split())


def test_options_fit_limit_and_route(tmp_path: Path) -> None:
    """Rules, budgets and servers by model, and the lengths of bodies; a line for each request."""
    rules = tmp_path / "rules.txt"
    rules.write_text("Never give a phone number.\n")
    with recorder() as main, recorder() as other:
        options = [
            *("--upstream", f"openai={main.address}", "--upstream", f"openai/qwen*={other.address}/v1"),
            *("--budget", "1k", "--budget", "qwen*=400"),
            *("--rule", "Answer in Dutch.", "--rules", rules, "--compact", "--no-learn"),
            *("--max-body", 20_000, "--max-bodies", 50_000, "--max-calls", 3, "--max-connections", 9),
            *("--answer-timeout", 20, "--drain", 5),
        ]
        with served(*options) as front:
            answers = [front.ask("/v1/chat/completions", chat(name)) for name in ("gpt-4o", "qwen3")]
            long = front.ask("/v1/chat/completions", b" " * 20_001)
    assert [one.report["limit"] for one in answers] == [1_000, 400]
    assert [(one.line["status"], one.line["end"]) for one in (*answers, long)] == [
        (200, "done"),
        (200, "done"),
        (413, "too_large"),
    ]
    assert long.status == 413
    sent = main.seen[0].data["messages"]
    shown = ["Never give a phone number.", "Answer in Dutch."]
    assert sent[0] == fit(chat(), 1_000, rules=shown).messages[0]
    assert [one.target for one in other.seen] == ["/v1/chat/completions"]
    assert len(other.seen[0].data["messages"]) < len(sent)


def test_the_start_says_that_a_shared_place_cannot_be_had(tmp_path: Path) -> None:
    """The gateway serves all the same; nothing is said of a place that can be had."""
    with recorder() as behind:
        given = "--upstream", f"openai={behind.address}"
        told = []
        for folder in (tmp_path / "no", tmp_path):
            with served("--share", f"sqlite:///{folder / 'learned.db'}", *given) as front:
                assert front.ask("/v1/chat/completions", chat()).status == 200
                told.append(front.end())
    assert "--share cannot be had now" in told[0]
    assert "there is no folder" in told[0]
    assert "--share" not in told[1]


def test_the_start_says_where_texts_are_seen() -> None:
    """With `--keep-bodies`, in an address with a secret of its own."""
    with recorder() as behind, served("--keep-bodies", "--upstream", f"openai={behind.address}") as front:
        assert front.ask("/v1/chat/completions", chat()).status == 200
        said = front.end()
    found = re.search(r"open http://[^/]*(/trimtab/inspect/\S+) for the texts of the last requests", said)
    assert found is not None, said


def test_options_come_from_a_file_and_the_command_line_goes_before(tmp_path: Path) -> None:
    """Tables for servers and budgets; the environment goes before the file as well."""
    with recorder() as behind:
        path = tmp_path / "gateway.toml"
        path.write_text(
            f'listen = "192.0.2.1:1"\nquiet = true\ntoken = "{TOKEN}"\n'
            f'[upstream]\nopenai = "{behind.address}"\n[budget]\n"*" = "2k"\n"small-*" = "300"\n'
        )
        headers = {"trimtab-token": TOKEN}
        asked = [("gpt-4o", 2_000), ("small-1", 300)]
        with served("--config", path, has_log=False) as front:
            found = [
                front.ask("/v1/chat/completions", chat(name), headers).report["limit"] for name, _ in asked
            ]
            assert front.ask("/v1/chat/completions", chat()).status == 401
            assert front.end() == ""
        with served("--config", path, "--budget", "500", "--learn", has_log=False) as front:
            assert front.ask("/v1/chat/completions", chat("small-1"), headers).report["limit"] == 500
    assert found == [limit for _, limit in asked]


def test_keys_and_what_is_shared_come_from_a_file_and_an_address_of_others_learns_nothing(
    tmp_path: Path,
) -> None:
    """A line at the start says so, unless somebody chose."""
    path, place = tmp_path / "gateway.toml", tmp_path / "learned.db"
    with recorder() as behind:
        path.write_text(
            f'token = "{TOKEN}"\nlisten = "0.0.0.0:0"\n[upstream]\nopenai = "{behind.address}"\n'
            '[budget]\n"key:ci" = "700"\n"*" = "2k"\n[key]\nci = "env:KEY_OF_CI"\n'
        )
        headers = {"trimtab-token": TOKEN, "Authorization": "Bearer of-the-ci"}
        variables = {"KEY_OF_CI": "of-the-ci", "TRIMTAB_SERVE_LISTEN": ""}
        for more in ((), ("--share", place)):
            with served("--config", path, *more, variables=variables) as front:
                front.address = front.address.replace("0.0.0.0", "127.0.0.1")
                answer = front.ask("/v1/chat/completions", chat(), headers)
                assert answer.report["limit"] == 700
                told = front.end()
            assert ("nothing is learned" in told) is not more
            assert place.exists() is bool(more)


def test_options_come_from_the_environment() -> None:
    """So that a token is in no list of processes."""
    with recorder() as behind:
        variables = {
            "TRIMTAB_SERVE_TOKEN": TOKEN,
            "TRIMTAB_SERVE_BUDGET": "1k small-*=300",
            "TRIMTAB_SERVE_UPSTREAM": f"openai={behind.address} anthropic={behind.address}",
        }
        with served("--quiet", "--listen", "127.0.0.1:0", variables=variables, has_log=False) as front:
            found = [
                front.ask(f"/t/{TOKEN}/v1/chat/completions", chat(name)).report["limit"]
                for name in ("gpt-4o", "small-1")
            ]
            assert front.end() == ""
    assert found == [1_000, 300]


def test_where_nobody_names_a_server_the_providers_are_named() -> None:
    """On standard error, with the address to write into programs."""
    with served("--token", TOKEN) as front:
        assert front.address.startswith("http://127.0.0.1:")
        assert json.loads(front.ask("/health", method="GET").body) == {"status": "ok", "calls": 0}


def test_a_log_that_nobody_reads_stops_no_request() -> None:
    """A pipe takes 64 KiB; these lines have more."""
    with (
        recorder() as behind,
        served("--upstream", f"openai={behind.address}", reads=False, has_log=False) as front,
    ):
        path = "/v1/files/" + "x" * 300
        statuses = {front.ask(path, method="GET").status for _ in range(250)}
    assert (statuses, len(behind.seen)) == ({200}, 250)


@pytest.mark.parametrize("host", ["127.0.0.2", "localhost"])
def test_each_address_of_the_loopback_is_one_to_listen_on(host: str) -> None:
    """Programs ask by it; a page's own name that leads there (DNS rebinding) is still refused."""
    with (
        recorder() as behind,
        served("--upstream", f"openai={behind.address}", "--listen", f"{host}:0") as front,
    ):
        statuses = [
            front.ask("/v1/chat/completions", chat(), headers).status
            for headers in ({}, {"Host": "page.example"}, {"Origin": "http://127.0.0.2.page.example"})
        ]
    assert statuses == [200, 421, 403]


@pytest.mark.parametrize(("budget", "limit"), [('"500"', 500), ("500", 500), ('["2k", "gpt-4o=500"]', 500)])
def test_one_value_of_a_file_needs_no_list(tmp_path: Path, budget: str, limit: int) -> None:
    """Nor does a number need quotes."""
    path = tmp_path / "gateway.toml"
    with recorder() as behind:
        path.write_text(f'budget = {budget}\nupstream = "openai={behind.address}"\ndrain = 1.5\n')
        with served("--config", path) as front:
            assert front.ask("/v1/chat/completions", chat()).report["limit"] == limit


def test_the_help_tells_the_limits_that_hold() -> None:
    """They stand in `Limits`; the help, which needs no extra, only tells them."""
    told = {
        param.name: re.search(r"Default: (\d+)\.", param.help or "")
        for param in cli.command().get_command(click.Context(cli.command()), "serve").params
        if isinstance(param, click.Option) and param.name in {field.name for field in fields(Limits)}
    }
    assert len(told) == 6
    assert {name: found and float(found[1]) for name, found in told.items()} == {
        name: getattr(Limits(), str(name)) for name in told
    }
