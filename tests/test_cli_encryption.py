"""`--keys`: encrypted stores on the command line, for every command that opens one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from trimtab import cli
from trimtab.stores import LoadRequest, SQLiteStore

ONE, TWO = "b25lIHNlY3JldCAh" * 3, "dHdvIHNlY3JldCAh" * 3
TEXT = "Hello, I am Ada. My order is 7741."
HELLO = json.dumps({"role": "user", "content": TEXT})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a folder with keys, in which commands run."""
    (tmp_path / "keys").write_text(f"one:{ONE}\n", encoding="utf-8")
    (tmp_path / "both").write_text(f"two:{TWO}\none:{ONE}\n", encoding="utf-8")
    (tmp_path / "new").write_text(f"two:{TWO}\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRIMTAB_KEYS", raising=False)
    return tmp_path


def _run(*words: str, text: str = "", code: int = 0) -> Result:
    answer = CliRunner().invoke(cli.command(), words, input=text)
    assert answer.exception is None or isinstance(answer.exception, SystemExit), answer.exception
    assert answer.exit_code == code, answer.output
    return answer


def _session(order: str, *words: str, keys: str = "file:keys", text: str = "", code: int = 0) -> Result:
    given = ("--keys", keys) if keys else ()
    return _run("session", order, "--store", "safe.db", *given, *words, text=text, code=code)


def _begin(name: str = "ada", keys: str = "file:keys") -> None:
    _session("add", "--id", name, "--budget", "400", keys=keys, text=HELLO)


def test_a_list_says_where_sessions_stand_to_who_has_their_keys(folder: Path) -> None:
    """To others it says for each that it is encrypted, lists it, and ends with 1."""
    _begin()
    (row,) = json.loads(_session("list", "--status").output)
    assert (row["id"], row["recent_messages"]) == ("ada", 1)
    (row,) = json.loads(_session("list", "--status", keys="", code=1).output)
    assert row["id"] == "ada"
    assert "session 'ada' is encrypted" in row["error"]


# With a sign that base64 has not: three letters alone stand in one of 30 files by chance.
_PLANTED = (b"I am Ada", b" Ada.", b"My order", b"7741.")


def _traces(folder: Path) -> list[str]:
    files = {one.name: one.read_bytes() for one in folder.iterdir()}
    return sorted(name for name, data in files.items() if any(planted in data for planted in _PLANTED))


def test_a_session_is_encrypted_by_the_option_or_the_environment(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is read with the same keys, and by who has none it is told to be encrypted."""
    _begin()
    assert json.loads(_session("show", "--id", "ada").output)[0]["content"] == TEXT
    assert _traces(folder) == []
    told = _session("show", "--id", "ada", keys="", code=1).stderr
    assert "is encrypted: open its store with its keys" in told
    assert [one["id"] for one in json.loads(_session("list", keys="").output)] == ["ada"]
    assert "has no key 'one', only two" in _session("show", "--id", "ada", keys="file:new", code=1).stderr
    monkeypatch.setenv("RING", f"one:{ONE}")
    monkeypatch.setenv("TRIMTAB_KEYS", "env:RING")
    assert TEXT in _session("history", "--id", "ada", keys="").output
    assert [one["id"] for one in json.loads(_session("list", keys="").output)] == ["ada"]
    plain = _run("session", "list", "--store", "safe.db", "--keys", "")
    assert [one["id"] for one in json.loads(plain.output)] == ["ada"]


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        (f"one:{ONE}", "the place of keys must be env:VARIABLE or file:PATH"),
        ("file:nothing", "cannot be read"),
        ("env:NOTHING_THERE", "must have a line ID:BASE64"),
    ],
)
def test_keys_that_cannot_be_read_are_wrong_usage(folder: Path, keys: str, words: str) -> None:
    """And are not shown."""
    _begin()
    answer = _session("list", keys=keys, code=2)
    assert words in answer.stderr.replace("\n", " ")
    assert ONE not in answer.output


def test_a_copy_stays_encrypted_unless_it_is_asked_for(folder: Path) -> None:
    """With the same keys or others; `--decrypt` writes plain text, and a plain session is encrypted."""
    _begin()
    copy = ("copy", "--id", "ada", "--to")
    _session(*copy, "same.db")
    assert _traces(folder) == []
    _session(*copy, "other.db", "--to-keys", "file:new")
    assert _traces(folder) == []
    _session(*copy, "plain.db", "--decrypt")
    assert _traces(folder)[0] == "plain.db"
    for keys, more in (("", ("--decrypt",)), ("file:keys", ("--decrypt", "--to-keys", "file:new"))):
        assert "pass no --to-keys" in _session(*copy, "x.db", *more, keys=keys, code=2).stderr
    shown = _run("session", "show", "--store", "plain.db", "--id", "ada").output
    for name, key in (("same.db", "file:keys"), ("other.db", "file:new")):
        assert _run("session", "show", "--store", name, "--keys", key, "--id", "ada").output == shown
    _run("session", *copy[:1], "--store", "plain.db", *copy[1:], "again.db", "--to-keys", "file:keys")
    assert "again.db" not in _traces(folder)


def test_keys_are_rotated_and_dropped(folder: Path) -> None:
    """With a receipt; what cannot be rotated is told, and the exit code says so."""
    _begin()
    _begin("bob", keys="file:new")
    receipt = json.loads(_session("rotate", keys="file:both").output)
    assert receipt == {
        "key": "two",
        "sessions": 2,
        "renewed": 1,
        "events": 2,
        "dropped": 0,
        "removed": 0,
        "left": {},
    }
    assert TEXT in _session("show", "--id", "ada", keys="file:new").output
    told = _session("rotate", "--output", "text", keys="file:keys", code=1).output
    assert "ada: session 'ada': the key ring has no key 'two', only one" in told
    assert "0 of 2 sessions got a new key, 0 events rewritten" in told

    assert "pass --keys PLACE" in _session("rotate", keys="", code=2).stderr
    assert "pass --yes" in _session("drop-key", "--id", "ada", keys="file:new", code=2).stderr
    assert json.loads(_session("drop-key", "--id", "ada", "--yes", keys="file:new").output) == {
        "dropped": "ada"
    }
    assert "was dropped" in _session("show", "--id", "ada", keys="file:new", code=1).stderr
    assert TEXT in _session("show", "--id", "bob", keys="file:new").output
    assert "there is no session 'eve'" in _session("drop-key", "--id", "eve", "--yes", code=1).stderr


def test_other_commands_read_an_encrypted_session(folder: Path) -> None:
    """`replay` reads a log, and `fork`, `export` and `import` keep to the keys."""
    _begin()
    replay = ("replay", "--store", "safe.db", "--id", "ada", "--budget", "400", "--keys", "file:keys")
    assert json.loads(_run(*replay).output)["policies"]
    _session("fork", "--id", "ada", "--as", "twin")
    _session("export", "--id", "ada", "ada.json")
    _session("import", "--id", "third", "ada.json")
    (folder / "ada.json").unlink()
    assert _traces(folder) == []
    with SQLiteStore("safe.db") as store:
        for name in ("ada", "twin", "third"):
            assert all("trimtab.sealed" in one.data for one in store.load(LoadRequest(session=name)))


@pytest.mark.parametrize("keys", ["file:keys", "file:new"])
def test_a_session_that_cannot_be_read_can_be_deleted(folder: Path, keys: str) -> None:
    """Its key was dropped, or is not in the ring; nothing of either is left then."""
    _begin()
    if keys == "file:keys":
        _session("drop-key", "--id", "ada", "--yes")
        assert json.loads(_session("rotate", "--output", "json").output)["dropped"] == 1
    assert "pass --yes" in _session("delete", "--id", "ada", keys=keys, code=2).stderr
    assert "is encrypted: open" in _session("delete", "--id", "ada", "--yes", keys="", code=1).stderr
    told = _session("delete", "--id", "ada", "--yes", "--output", "json", keys=keys).output
    assert json.loads(told) == {"deleted": "ada", "events": None}
    with SQLiteStore("safe.db") as store:
        assert store.sessions() == []


def test_no_session_begins_in_plain_text_beside_encrypted_ones(folder: Path) -> None:
    """Keys that were forgotten are asked for; who means it says so."""
    _begin()
    exported = _session("export", "--id", "ada").output
    add = ("add", "--id", "eve", "--budget", "400")
    for order, text in ((add, HELLO), (("import", "--id", "eve"), exported)):
        told = _session(*order, keys="", text=text, code=2).stderr
        assert "the sessions of this store are encrypted: pass --keys PLACE" in told
    assert _traces(folder) == []
    _run("session", *add, "--store", "safe.db", "--keys", "", text=HELLO)
    assert _traces(folder) != []
