"""The container file: two stages, nobody's root, and its commands as they run in it."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.gateway.gateways import run

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
TOKEN = "a-token-of-16-or-more"


def instructions() -> list[tuple[str, str]]:
    """Read the instructions of the file, in order."""
    lines = (ROOT / "Containerfile").read_text(encoding="utf-8").splitlines()
    return [
        (word, rest) for word, _, rest in (line.partition(" ") for line in lines if line[:1] not in ("", "#"))
    ]


def test_what_runs_has_no_sources_and_is_not_root() -> None:
    """The second stage takes the environment from the first, and installs nothing."""
    found = instructions()
    begins = [place for place, (word, _) in enumerate(found) if word == "FROM"]
    build, last = found[begins[0] : begins[1]], found[begins[1] :]
    assert len(begins) == 2
    assert [rest for word, rest in last if word in ("COPY", "RUN")] == [
        "--from=build /opt/trimtab /opt/trimtab"
    ]
    (user,) = [rest for word, rest in last if word == "USER"]
    assert re.fullmatch(r"[1-9]\d{3,}:[1-9]\d{3,}", user)
    copied = [name for word, rest in build if word == "COPY" for name in rest.split()[:-1]]
    assert [name for name in copied if not (ROOT / name).exists()] == []


def test_extras_of_the_image_and_of_its_page_are_those_of_the_package() -> None:
    """What is installed can be chosen, and each option that needs more has its row."""
    (said,) = [rest for word, rest in instructions() if word == "ARG"]
    name, _, usual = said.partition("=")
    (install,) = [rest for word, rest in instructions() if word == "RUN" and "pip install" in rest]
    assert install.endswith(f'".[${{{name}}}]"')
    page = (ROOT / "docs/guides/many-gateways.md").read_text(encoding="utf-8")
    (more,) = re.findall(rf"--build-arg {name}=(\S+)", page)
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(usual.split(",")) < set(more.split(",")) < set(known)
    rows = dict(re.findall(r"\| `(--[a-z-]+)[^`]*` \| `([a-z]+)`", page))
    assert rows == {"--share": "redis", "--keep-bodies": "inspect", "--otel": "otel"}


def test_its_command_needs_a_token_is_healthy_and_ends_by_sigterm() -> None:
    """As they are written, but for the port, which is a free one."""
    with socket.create_server(("127.0.0.1", 0)) as place:
        port = place.getsockname()[1]
    said = {word: rest.replace("8484", str(port)) for word, rest in instructions()}
    words = [str(BIN / "trimtab"), *json.loads(said["ENTRYPOINT"])[1:]]
    check = [sys.executable, *json.loads(said["HEALTHCHECK"].removeprefix("CMD "))[1:]]
    assert said["STOPSIGNAL"] == "SIGTERM"
    without = {name: value for name, value in os.environ.items() if not name.startswith("TRIMTAB_SERVE")}
    refused = subprocess.run(words, env=without, capture_output=True, text=True)
    assert (refused.returncode, "--token" in refused.stderr) == (2, True)
    variables = {**without, "TRIMTAB_SERVE_TOKEN": TOKEN}
    with run(words, lambda process: process.stderr, env=variables) as front:
        assert subprocess.run(check, env=without).returncode == 0
        front.process.send_signal(signal.SIGTERM)
        assert front.process.wait(60) == 0
    assert subprocess.run(check, env=without, stderr=subprocess.DEVNULL).returncode != 0
