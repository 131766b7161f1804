"""The command `trimtab inspect`: what it refuses, and what its options do, over plain HTTP."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.inspectors import SCRIPT, conversation, inspector
from trimtab import cli

CHAT = conversation(20)


def _read(address: str, path: str = "", **more: str) -> str:
    """Ask for a page with the token of an address."""
    base, _, token = address.partition("?token=")
    request = urllib.request.Request(base + path, headers={"Authorization": f"Bearer {token}", **more})
    with urllib.request.urlopen(request) as answer:
        return str(answer.read().decode())


def _alerts(page: str) -> list[str]:
    return re.findall(r'role="alert">(.*?)</p>', page, re.DOTALL)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "pass either a FILE or --store URL"),
        (("nothing.json",), "No such file"),
        (("chat.json", "--session", "ada"), "pass --store URL, too"),
        (("chat.json", "--policy", "nothing.toml"), "nothing.toml"),
        (("bad.json",), "bad.json: not JSON"),
        (("deep.json",), "deep.json: the JSON is nested too deep"),
        (("two.jsonl", "--line", "9"), "no conversation in line 9"),
        (("chat.json", "--host", "0.0.0.0"), "--allow-remote"),
    ],
)
def test_the_command_says_what_is_wrong(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    """Before a port is opened, with an exit code of wrong usage."""
    (tmp_path / "chat.json").write_text(json.dumps(CHAT), encoding="utf-8")
    (tmp_path / "bad.json").write_text("{", encoding="utf-8")
    (tmp_path / "deep.json").write_text("[" * 10_000 + "]" * 10_000, encoding="utf-8")
    (tmp_path / "two.jsonl").write_text(f"{json.dumps(CHAT)}\n{json.dumps(CHAT)}\n", encoding="utf-8")
    given = [str(tmp_path / one) if one.endswith((".json", ".jsonl", ".toml")) else one for one in arguments]
    done = CliRunner().invoke(cli.command(), ["inspect", *given, *(["--budget", "300"] if given else [])])
    assert done.exit_code == 2
    assert words in done.output


def test_the_command_says_which_session_is_missing(tmp_path: Path) -> None:
    """With the names there are."""
    path = tmp_path / "chats.db"
    for name in ("ada", "bob"):
        args = ["session", "add", "--store", str(path), "--id", name, "--budget", "300"]
        assert CliRunner().invoke(cli.command(), args, input=json.dumps(CHAT[:2])).exit_code == 0
    missing = CliRunner().invoke(cli.command(), ["inspect", "--store", str(path), "--id", "adda"])
    assert missing.exit_code == 1
    assert "'ada'" in missing.output


def test_conversations_of_a_folder_are_listed(tmp_path: Path) -> None:
    """With file and line; one that cannot be read says why, and an edited file is read again."""
    folder = tmp_path / "chats"
    folder.mkdir()
    (folder / "one.json").write_text(json.dumps(CHAT[:3]), encoding="utf-8")
    (folder / "two.jsonl").write_text(f"{json.dumps(CHAT)}\n{{\n{json.dumps(CHAT[:5])}\n", encoding="utf-8")
    with inspector(tmp_path, "chats", "--budget", "300") as address:
        page = _read(address)
        names = re.findall(r'class="title">(.*?)<', page)
        assert names == ["one.json", "two.jsonl, line 1", "two.jsonl, line 2", "two.jsonl, line 3"]
        assert "The longest is" in page
        assert "not JSON" in page
        assert "3 of 3 messages" in re.sub(r"<[^>]+>", "", _read(address, "of/0/"))
        (folder / "one.json").write_text("[", encoding="utf-8")
        assert "5 of 5 messages" in re.sub(r"<[^>]+>", "", _read(address, "of/3/"))


def test_sessions_of_a_store_are_listed(tmp_path: Path) -> None:
    """Each with what it begins with; a new one is in the list when the page is asked for again."""
    path = tmp_path / "chats.db"

    def add(name: str) -> None:
        args = ["session", "add", "--store", str(path), "--id", name, "--budget", "300"]
        assert CliRunner().invoke(cli.command(), args, input=json.dumps(CHAT[:2])).exit_code == 0

    add("bob")
    add("cyd")
    with inspector(tmp_path, "--store", "chats.db") as address:
        page = _read(address)
        assert re.findall(r'class="title">(.*?)<', page) == ["bob", "cyd"]
        assert page.count("message 0 says") == 2
        add("ada")
        assert re.findall(r'class="title">(.*?)<', _read(address)) == ["ada", "bob", "cyd"]
        assert "session bob" in _read(address, "of/0/")
        assert "session ada" in _read(address, "of/2/timeline")


def test_a_first_visit_does_not_fail(tmp_path: Path) -> None:
    """Without a budget there is room for all; the page opens on what `fit` does, and has `steady`."""
    (tmp_path / "chat.json").write_text(json.dumps(CHAT), encoding="utf-8")
    with inspector(tmp_path, "chat.json") as address:
        page = _read(address)
        assert _alerts(page) == []
        assert "No budget was given" in page
        assert "20 of 20 messages" in re.sub(r"<[^>]+>", "", page)
        policies = re.findall(r'<option value="([^"]+)"( selected)?>([^<]+)', page)
        assert policies[:2] == [
            ("default", " selected", "as fit does"),
            ("steady", "", "as fit does, steady"),
        ]
        wrong = _read(address, "?model=lama-4")
        assert "--" not in _alerts(wrong)[0]
        assert _alerts(wrong)[0].startswith("Model &#39;lama-4&#39; is unknown: did you mean")
        for policy in ("default", "steady"):
            assert _alerts(_read(address, f"?policy={policy}&budget=150")) == []
            fitted = CliRunner().invoke(
                cli.command(),
                ["fit", "-", "--budget", "150", "--output", "text", *(["--steady"] * (policy == "steady"))],
                input=json.dumps(CHAT),
            )
            said = re.search(r"[\d,]+ of 150 tokens", fitted.output)
            assert said
            assert said[0] in _read(address, f"?policy={policy}&budget=150")


def test_a_bill_is_in_the_prices_of_the_model(tmp_path: Path) -> None:
    """Not in those of another maker; in dollars where they are known."""
    (tmp_path / "chat.json").write_text(json.dumps(CHAT), encoding="utf-8")
    with inspector(tmp_path, "chat.json", "--budget", "300", "--model", "gpt-4o") as address:
        page = _read(address, "bill")
        [selected] = re.findall(r'<select id="pricing".*?<option value="([^"]+)" selected', page, re.DOTALL)
        assert selected == "gpt-4o"
        assert re.search(r'class="figure"><b>\$[\d.]+</b> for 10 calls', page)


def test_options_of_room_and_policy_do_what_they_do_for_fit(tmp_path: Path) -> None:
    """A page of a file: its line, its policy, the room beside the answer; and the policy is offered first."""
    (tmp_path / "two.jsonl").write_text(f"[]\n{json.dumps(CHAT)}\n", encoding="utf-8")
    (tmp_path / "newest.json").write_text('{"kind": "drop_newest"}', encoding="utf-8")
    room = ("--budget", "300", "--output-reserve", "50", "--counter", "chars:4")
    options = ("--line", 2, "--input", "jsonl", "--policy", "newest.json", *room)
    with inspector(tmp_path, "two.jsonl", *options) as address:
        strategy = ("--strategy", '{"kind": "drop_newest"}')
        args = ["fit", "-", *room, *strategy, "--output", "text"]
        fitted = CliRunner().invoke(cli.command(), args, input=json.dumps(CHAT))
        said = re.search(r"[\d,]+ of 250 tokens", fitted.output)
        assert said
        assert said[0] in _read(address)
        assert re.findall(r'<option value="([^"]+)"', _read(address))[0] == "newest.json"


def test_a_policy_with_blocks_is_applied(tmp_path: Path) -> None:
    """Parts of a request go into the blocks of a policy, as with `trimtab fit --policy`."""
    (tmp_path / "policy.toml").write_text(
        'budget = 400\ncounter = "chars:4"\n[[blocks]]\nname = "system"\npriority = 100\n'
        '[[blocks]]\nname = "history"\n',
        encoding="utf-8",
    )
    (tmp_path / "chat.json").write_text(
        json.dumps([{"role": "system", "content": "Be brief."}, *CHAT]), encoding="utf-8"
    )
    with inspector(tmp_path, "chat.json", "--policy", "policy.toml") as address:
        page = _read(address)
        assert _alerts(page) == []
        assert "block system" in page
        assert "block history" in page
        assert "system</span>" in _read(address, "rows")


def test_a_session_of_a_store_is_looked_at(tmp_path: Path) -> None:
    """By its name; read-only, nothing is offered that changes it; other policies fit its whole log."""
    store = tmp_path / "chats.db"
    for name in ("ada", "bob"):
        args = [
            "session",
            "add",
            "--store",
            str(store),
            "--id",
            name,
            "--budget",
            "300",
            "--system",
            "Be brief.",
        ]
        assert CliRunner().invoke(cli.command(), args, input=json.dumps(CHAT)).exit_code == 0
    with inspector(tmp_path, "--store", store, "--session", "ada", "--read-only", "--port", 0) as address:
        page = _read(address)
        assert ">read-only<" in page
        assert "Undo" not in _read(address, "timeline")
        fitted = _read(address, "?policy=sliding_window")
        assert _alerts(fitted) == []
        assert "21 in:" in fitted, "20 messages, and the system text"
        bill = _read(address, "bill?policy_a=session")
        assert _alerts(bill) == []
        [calls] = re.findall(r'aria-label="Calls".*?</table>', bill, re.DOTALL)
        assert calls.count('<th scope="row">') == 10


def test_it_listens_where_it_is_told_to(tmp_path: Path) -> None:
    """At an address of the loopback that is asked for; another one only with an option that says so."""
    (tmp_path / "chat.json").write_text(json.dumps(CHAT), encoding="utf-8")
    with inspector(tmp_path, "chat.json", "--budget", "300", "--host", "127.0.0.2") as address:
        assert address.startswith("http://127.0.0.2:")
        assert "trimtab" in _read(address)
        with pytest.raises(urllib.error.HTTPError, match="421"):
            _read(address, Host="evil.example")
    with inspector(tmp_path, "chat.json", "--budget", "300", "--host", "LocalHost") as address:
        assert address.startswith("http://localhost:")
        assert "trimtab" in _read(address)
    with inspector(
        tmp_path, "chat.json", "--budget", "300", "--host", "0.0.0.0", "--allow-remote"
    ) as address:
        port = re.search(r":(\d+)/", address)
        assert port
        local = re.sub(r"//[^/]+/", f"//127.0.0.1:{port[1]}/", address)
        assert "trimtab" in _read(local)
        assert "trimtab" in _read(local, Host="192.168.7.7")
        with pytest.raises(urllib.error.HTTPError, match="421"):
            _read(local, Host="evil.example")


def test_ctrl_c_ends_it_quietly(tmp_path: Path) -> None:
    """Nothing is written but the address, and the exit code is that of a command that did its work."""
    (tmp_path / "chat.json").write_text(json.dumps(CHAT), encoding="utf-8")
    command = [str(SCRIPT), "inspect", "chat.json", "--budget", "300"]
    with subprocess.Popen(
        command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        first = process.stderr.readline()
        assert "trimtab" in _read(re.findall(r"http://\S+", first)[0])
        process.send_signal(signal.SIGINT)
        out, rest = process.communicate()
    assert (out, rest, process.returncode) == ("", "", 0)


def test_a_port_that_is_taken_is_said(tmp_path: Path) -> None:
    """With its number, and an exit code of wrong usage."""
    (tmp_path / "chat.json").write_text(json.dumps(CHAT), encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        path = str(tmp_path / "chat.json")
        done = CliRunner().invoke(cli.command(), ["inspect", path, "--budget", "300", "--port", port])
    assert done.exit_code == 2
    assert f"port {port} of 127.0.0.1 cannot be used" in done.output
