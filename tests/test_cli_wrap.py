"""The command `trimtab wrap`: real commands with real clients, signals, exit codes, and what remains."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner

from tests.gateway.gateways import Seen, recorder, talk
from tests.judge.server import answered, provider, variables
from trimtab import cli

SCRIPT = Path(sys.executable).with_name("trimtab")
TALK = talk(20)
NAMES = (
    *("OPENAI_BASE_URL", "OPENAI_API_BASE", "OPENAI_API_BASE_URL", "AZURE_OPENAI_ENDPOINT", "AZURE_API_BASE"),
    *("ANTHROPIC_BASE_URL", "ANTHROPIC_API_URL", "ANTHROPIC_API_BASE", "GOOGLE_GEMINI_BASE_URL"),
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
)

READ = "import json, sys; said = json.load(sys.stdin)\n"
CHAT = """
import openai
asked = openai.OpenAI(max_retries=0).chat.completions.create(model="gpt-4o", messages=said)
print(asked.choices[0].message.content)
"""
CLIENTS = {
    "chat": CHAT,
    "responses": """
import openai
print(openai.OpenAI(max_retries=0).responses.create(model="gpt-5", input=said).output_text)
""",
    "messages": """
import anthropic
client = anthropic.Anthropic(max_retries=0)
print(client.messages.create(model="claude-sonnet-4-5", max_tokens=9, messages=said).content[0].text)
""",
    "content": """
from google import genai
names = {"user": "user", "assistant": "model"}
said = [{"role": names[one["role"]], "parts": [{"text": one["content"]}]} for one in said]
client = genai.Client()
print(client.models.generate_content(model="gemini-2.5-flash", contents=said).text)
""",
}


def environment(told: Mapping[str, str]) -> dict[str, str]:
    """Write an environment that names no server but these."""
    kept = {key: value for key, value in os.environ.items() if key not in NAMES and key.lower() not in NAMES}
    return {**kept, "PYTHONDONTWRITEBYTECODE": "1", **told}


def wrap(
    words: list[str], told: Mapping[str, str], *options: str, asked: Any = TALK, **given: Any
) -> subprocess.CompletedProcess[str]:
    """Run a command wrapped, to its end."""
    return subprocess.run(
        [str(SCRIPT), "wrap", *options, *words],
        input=json.dumps(asked),
        env=environment(told),
        capture_output=True,
        encoding="utf-8",
        check=False,
        **given,
    )


def python(program: str) -> list[str]:
    """Write the command that runs a program."""
    return [sys.executable, "-c", program]


@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_that_knows_of_nothing_sends_a_conversation_that_fits(name: str) -> None:
    """Each SDK finds the gateway by its own variable, and that asks the server the variable named before."""
    with provider() as behind:
        done = wrap(python(READ + CLIENTS[name]), variables(behind.address), "--budget", "1k")
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr
    ((form, sent),) = behind.bodies
    key = {"openai_responses": "input", "gemini": "contents"}.get(form, "messages")
    assert 0 < len(sent[key]) < len(TALK)
    evicted = len(TALK) - len(sent[key])
    assert re.search(
        r"(?m)^trimtab: 1 request came .* 1 conversation of [\d,]+ tokens, sent as \d+ ", done.stderr
    )
    assert f"trimtab: {evicted} messages evicted, 0 shortened or cleared" in done.stderr.splitlines()


def test_a_budget_is_that_of_a_key_that_is_named() -> None:
    """By the option, as for `trimtab serve`."""
    with provider() as behind:
        told = {
            **variables(behind.address),
            "OPENAI_API_KEY": "sk-of-the-ci-7f3a",
            "CI_KEY": "sk-of-the-ci-7f3a",
        }
        named = ("--key", "ci=env:CI_KEY", "--budget", "key:ci=1k", "--budget", "100k")
        done = wrap(python(READ + CHAT), told, *named)
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr
    ((_, sent),) = behind.bodies
    assert 0 < len(sent["messages"]) < len(TALK)


def test_the_end_says_what_all_requests_came_to() -> None:
    """The sums of what answers told in their headers; a count and what passes through are not in them."""
    program = (
        READ
        + """
import anthropic, openai
client = openai.OpenAI(max_retries=0)
for messages in (said, said[-3:]):
    asked = client.chat.completions.with_raw_response.create(model="gpt-4o", messages=messages)
    print(asked.headers["trimtab-report"])
anthropic.Anthropic().messages.count_tokens(model="claude-sonnet-4-5", messages=said)
try:
    client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "word " * 3_000}])
except openai.BadRequestError as error:
    print(error.code)
try:
    client.files.list()
except openai.OpenAIError:
    pass
"""
    )
    with provider() as behind:
        done = wrap(python(program), variables(behind.address), "--budget", "1k")
        quiet = wrap(python("print(1)"), variables(behind.address), "--quiet")
    *reports, code = done.stdout.splitlines()
    told = [dict(pair.split("=") for pair in one.split(", ")) for one in reports]
    before, after = (sum(int(one[key]) for one in told) for key in ("before", "after"))
    evicted = sum(int(one["evicted"]) for one in told)
    assert (len(told), code, evicted > 10) == (2, "context_length_exceeded", True)
    saved = round(100 * (before - after) / before)
    assert done.stderr.splitlines() == [
        f"trimtab: 5 requests came through the gateway: 2 conversations of {before:,} tokens, sent as"
        f" {after:,} ({saved}% saved)",
        f"trimtab: {evicted} messages evicted, 0 shortened or cleared",
        "trimtab: 1 request not sent: too long for the budget",
    ]
    assert (quiet.stdout, quiet.stderr) == ("1\n", "")


def test_the_end_says_what_was_billed() -> None:
    """Of gpt-4o a million tokens cost $2.50, cached ones half, and those of answers four times that."""
    usage = {"prompt_tokens": 100_000, "completion_tokens": 1_000}
    said = json.dumps({"usage": {**usage, "prompt_tokens_details": {"cached_tokens": 80_000}}}).encode()
    program = """
import json, os, urllib.request
for model in ("gpt-4o", "gpt-4o", "a-model-of-mine"):
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": "hi"}]}).encode()
    url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    urllib.request.urlopen(urllib.request.Request(url, body, {"Content-Type": "application/json"})).read()
"""
    with recorder(lambda seen: (200, {}, said)) as behind:
        done = wrap(python(program), variables(behind.address), "--budget", "8k")
    # 20,000 * 2.5 + 80,000 * 1.25 + 1,000 * 10 millionths, twice
    assert "trimtab: billed $0.320 by list prices, 1 request unknown" in done.stderr.splitlines()


def test_the_end_says_what_requests_were_billed_that_pass_as_they_are() -> None:
    """They go on from messages of the server, are of no conversation here, and cost money all the same."""
    said = json.dumps({"usage": {"input_tokens": 100_000, "output_tokens": 1_000}}).encode()
    program = """
import json, os, urllib.request
for model in ("gpt-4o", "a-model-of-mine"):
    body = json.dumps({"model": model, "input": "hi", "previous_response_id": "resp_1"}).encode()
    url = os.environ["OPENAI_BASE_URL"] + "/responses"
    urllib.request.urlopen(urllib.request.Request(url, body, {"Content-Type": "application/json"})).read()
"""
    with recorder(lambda seen: (200, {}, said)) as behind:
        done = wrap(python(program), variables(behind.address), "--budget", "8k")
    assert done.stderr.splitlines() == [
        "trimtab: 2 requests came through the gateway",
        "trimtab: billed $0.260 by list prices, 1 request unknown",
    ]


SHOW = """
import json, os
told = os.environ.items()
print(json.dumps({key: value for key, value in told if "http" in value or "proxy" in key.lower()}))
"""


@pytest.mark.parametrize(
    ("told", "options", "paths"),
    [
        (
            {},
            (),
            {
                **dict.fromkeys(NAMES[:3], "/v1"),
                **dict.fromkeys(NAMES[5:9], ""),
            },
        ),
        (
            {"OPENAI_API_BASE": "http://a.test/custom/", "ANTHROPIC_BASE_URL": "http://b.test/api/v1"},
            (),
            {
                **dict.fromkeys(NAMES[:3], "/custom"),
                **dict.fromkeys(NAMES[5:8], "/v1"),
                "GOOGLE_GEMINI_BASE_URL": "",
            },
        ),
        (
            {"AZURE_OPENAI_ENDPOINT": "https://mine.openai.azure.com/", "OPENAI_BASE_URL": " "},
            (),
            {**dict.fromkeys(NAMES[:3], "/v1"), **dict.fromkeys(NAMES[3:9], "")},
        ),
        (
            {"OPENAI_BASE_URL": "http://a.test/custom", "OPENAI_API_BASE": "http://b.test"},
            ("--upstream", "openai=http://c.test/v1"),
            {**dict.fromkeys(NAMES[:3], "/v1"), **dict.fromkeys(NAMES[5:9], "")},
        ),
    ],
    ids=["nothing named", "paths", "Azure", "an option before the environment"],
)
def test_every_variable_of_an_api_names_the_gateway(
    told: dict[str, str], options: tuple[str, ...], paths: dict[str, str]
) -> None:
    """With the path that the program expects behind the host; Azure only where it has a resource."""
    done = wrap(python(SHOW), told, *options)
    found = {key: urlsplit(value) for key, value in json.loads(done.stdout).items() if key in NAMES}
    assert {key: one.path for key, one in found.items()} == paths
    assert len({one.netloc for one in found.values()}) == 1
    assert {one.hostname for one in found.values()} == {"127.0.0.1"}


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (
            {"OPENAI_BASE_URL": "http://a.test/v1", "OPENAI_API_BASE": "http://b.test/v1"},
            "OPENAI_BASE_URL and OPENAI_API_BASE name different servers",
        ),
        ({"ANTHROPIC_BASE_URL": "b.test"}, "ANTHROPIC_BASE_URL: the upstream of anthropic"),
        (
            {
                "OPENAI_BASE_URL": "http://a.test/v1beta/openai",
                "AZURE_OPENAI_ENDPOINT": "https://mine.openai.azure.com",
            },
            "OPENAI_BASE_URL and of the API azure begin alike",
        ),
    ],
)
def test_an_environment_that_leads_to_two_places_is_refused(told: dict[str, str], words: str) -> None:
    """The key for one server would go to another; the command does not run."""
    done = wrap(python("print('ran')"), told)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in " ".join(done.stderr.split())


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("base", "target"),
    [
        ("", "/chat/completions"),
        ("/v1", "/v1/chat/completions"),
        ("/api/v1", "/api/v1/chat/completions"),
        ("/custom", "/custom/chat/completions"),
        ("/v1beta/openai", "/v1beta/openai/chat/completions"),
    ],
)
def test_the_server_that_was_named_gets_the_path_it_would_have_got(base: str, target: str) -> None:
    """Whatever stands behind its host; fitted all the same."""
    said = json.dumps(answered("openai_chat", "gpt-4o")).encode()
    with recorder(lambda seen: (200, {}, said)) as behind:
        told = {"OPENAI_BASE_URL": behind.address + base, "OPENAI_API_KEY": "k"}
        done = wrap(python(READ + CHAT), told, "--budget", "1k")
    assert done.stdout == "ok\n", done.stderr
    ((seen, words),) = [(one, one.data["messages"]) for one in behind.seen]
    assert (seen.target, len(words) < len(TALK)) == (target, True)
    assert seen.values("authorization") == ["Bearer k"]


def test_a_proxy_of_the_environment_is_not_asked_for_the_gateway() -> None:
    """It could not reach it; nobody listens at this one."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        proxy = f"http://127.0.0.1:{taken.getsockname()[1]}"
    with provider() as behind:
        told = {
            **variables(behind.address.replace("127.0.0.1", "localhost")),
            "HTTP_PROXY": proxy,
            "no_proxy": "localhost",
        }
        done = wrap(python(READ + SHOW + CHAT), told)
    shown, said = done.stdout.splitlines()
    assert (said, len(behind.bodies)) == ("ok", 1)
    assert {json.loads(shown)[key] for key in ("no_proxy", "NO_PROXY")} == {"localhost,127.0.0.1"}


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (python("raise SystemExit(7)"), 7),
        (python("import os, signal; os.kill(os.getpid(), signal.SIGTERM)"), 128 + signal.SIGTERM),
        (["no-such-command"], 127),
        ([str(Path(__file__).parent)], 126),
        (["--", *python("raise SystemExit(3)")], 3),
    ],
    ids=["its own", "by a signal", "not there", "not a program", "behind --"],
)
def test_the_exit_code_is_that_of_the_command(words: list[str], code: int) -> None:
    """As a shell has it."""
    assert wrap(words, {}).returncode == code


WAIT = """
import os, signal, sys
def take(number, frame):
    print(number, flush=True)
    sys.exit(5)
for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
    if signal.getsignal(one) != signal.SIG_IGN:
        signal.signal(one, take)
print(os.getpid(), os.environ["OPENAI_BASE_URL"], flush=True)
sys.stdin.readline()
"""


@pytest.mark.few(2)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_a_signal_is_passed_on_and_nothing_stays(number: signal.Signals, tmp_path: Path) -> None:
    """No process, no port, no file; the command decides how it ends."""
    with _started(tmp_path) as process:
        assert process.stdout is not None
        pid, address = process.stdout.readline().split()
        process.send_signal(number)
        process.wait(300)  # communicate() would end its input, and so the command, before the signal does
        assert process.stderr is not None
        said, told = process.stdout.read(), process.stderr.read()
    assert (said, process.returncode) == (f"{int(number)}\n", 5)
    assert told == "trimtab: no request came through the gateway\n"
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)
    place = urlsplit(address)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((str(place.hostname), place.port or 0))
    assert [*tmp_path.iterdir()] == []


def test_a_signal_that_trimtab_ignores_is_ignored_by_the_command(tmp_path: Path) -> None:
    """As a shell under nohup has it: the command goes on, and ends by another."""
    with _started(tmp_path, before=["nohup"]) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGTERM)
        process.wait(300)  # communicate() would end its input, and so the command, before the signal does
        said = process.stdout.read()
    assert (said, process.returncode) == (f"{int(signal.SIGTERM)}\n", 5)


def _started(folder: Path, before: list[str] | None = None) -> subprocess.Popen[str]:
    told = environment({"HOME": str(folder), "TMPDIR": str(folder)})
    return subprocess.Popen(
        [*(before or []), str(SCRIPT), "wrap", *python(WAIT)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env=told,
        cwd=folder,
        preexec_fn=_take_signals,
    )


def _take_signals() -> None:
    """Ignore none: jobs in the background ignore SIGINT, and under nohup SIGHUP; so would what they start."""
    for one in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(one, signal.SIG_DFL)


COUNT = """
import signal, sys
seen = []
def take(number, frame):
    seen.append(number)
    print("taken", flush=True)
signal.signal(signal.SIGINT, take)
print("ready", flush=True)
while sys.stdin.readline() != "end\\n":
    pass
sys.exit(len(seen))
"""


def test_ctrl_c_comes_once() -> None:
    """A terminal sends it to the command itself, and to trimtab, which goes on."""
    pid, place = pty.fork()
    if pid == 0:  # the command of a terminal of its own
        _take_signals()
        os.execve(str(SCRIPT), [str(SCRIPT), "wrap", *python(COUNT)], environment({}))
    with open(place, "r+b", buffering=0) as terminal:
        _read_to(terminal, b"ready")
        terminal.write(b"\x03")
        _read_to(terminal, b"taken")
        terminal.write(b"end\n")
        _read_to(terminal, b"no request")
        _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 1


def _read_to(terminal: Any, words: bytes) -> None:
    found = b""
    while words not in found:
        found += terminal.read(1)


def test_what_the_command_started_and_did_not_wait_for_has_no_gateway_any_more() -> None:
    """Its request is ended with the command: who waits for an answer does not wait for ever."""
    program = """
import subprocess, sys
late = "import os, urllib.request as u; u.urlopen(os.environ['ANTHROPIC_BASE_URL'] + '/v1/messages/batches')"
subprocess.Popen([sys.executable, "-c", late], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
sys.stdin.readline()
"""
    asked, over = threading.Event(), threading.Event()

    def answer(seen: Seen) -> tuple[int, dict[str, str], bytes]:
        asked.set()
        over.wait()
        return 200, {}, b"{}"

    with recorder(answer) as behind:
        told = environment({"ANTHROPIC_BASE_URL": behind.address})
        with subprocess.Popen(
            [str(SCRIPT), "wrap", *python(program)], stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=told
        ) as process:
            asked.wait()
            _, said = process.communicate(b"\n")
        over.set()
    assert process.returncode == 0
    assert b"1 request failed" in said


def test_wrong_usage_runs_no_command() -> None:
    """With exit code 2, and the words of the command line."""
    for given, words in (
        ((), "COMMAND"),
        (("--budget", "8kk", "true"), "8kk"),
        (("--listen", "x"), "--listen"),
    ):
        done = CliRunner().invoke(cli.command(), ["wrap", *given])
        assert done.exit_code == 2
        assert words in done.output


def test_options_come_from_a_file(tmp_path: Path) -> None:
    """A budget by model, as for `trimtab serve`."""
    path = tmp_path / "wrap.toml"
    path.write_text('quiet = true\n[budget]\n"gpt-*" = "500"\n')
    program = READ + CHAT.replace(".create(", ".with_raw_response.create(").replace(
        "asked.choices[0].message.content", "asked.headers['trimtab-report']"
    )
    with provider() as behind:
        done = wrap(python(program), variables(behind.address), "--config", str(path))
    assert "limit=500" in done.stdout
    assert done.stderr == ""
