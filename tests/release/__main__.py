"""Build what a release would be, look through it, and install it: `make release-check`.

    python -m tests.release

1. The source archive and the wheel are built twice, the wheel from the archive: the bytes are the same.
2. `twine check` and `check-wheel-contents` find nothing. Both hold each file of the package, and no other.
3. The page of the index has no relative link; the metadata name no group of those who change trimtab.
4. The changelog has a section for the version.
5. On each Python from 3.11 to 3.14 that is here, the wheel is installed into an empty environment: without
   extras it fits a conversation, and with `cli` the command does.

Builds `dist/`. Exits 1 at the first thing that does not hold.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from email import message_from_string
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DIST = ROOT / "dist"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
BESIDE_THE_PACKAGE = {"CHANGELOG.md", "LICENSE", "PKG-INFO", "README.md", "pyproject.toml", ".gitignore"}
"""What the source archive holds beside `src/`; .gitignore is hatchling's, which builds by it."""

FIT = """
import sys, trimtab
fitted = trimtab.fit([{"role": "user", "content": "word " * 400}, {"role": "user", "content": "why?"}], 60)
assert fitted.messages == [{"role": "user", "content": "why?"}], fitted.messages
extras = {name.partition(".")[0] for name in sys.modules} & {"click", "toktok_rs", "regex", "starlette"}
assert not extras, extras
print(trimtab.__version__)
"""


def main() -> int:
    """Check everything, and say what was checked."""
    version, epoch = _version(), _run("git", "log", "-1", "--format=%ct").strip()
    _check(f"## [{version}]" in _text("CHANGELOG.md"), f"CHANGELOG.md has no section [{version}]")
    first, again = (_build(epoch) for _ in range(2))
    _check(first == again, f"two builds differ: {first} and {again}")
    wheel, archive = next(DIST.glob("*.whl")), next(DIST.glob("*.tar.gz"))
    _say(f"built twice, the same bytes: {wheel.name}, {archive.name}")

    _run(sys.executable, "-m", "twine", "check", "--strict", str(wheel), str(archive))
    _run("check-wheel-contents", str(wheel))
    count = _look_through(wheel, archive)
    _say(f"twine and check-wheel-contents find nothing; {count} files of the package in each")

    _look_at_metadata(wheel)
    _say("metadata: absolute links, addresses of the project, extras and no groups")

    for python in PYTHONS:
        path = _find(f"python{python}")
        told = "not on this machine" if path is None else _install(path, wheel, version)
        _say(f"Python {python}: {told}")
    print(f"release-check: {version} could be released")
    return 0


def _version() -> str:
    found = re.search(r'^__version__ = "(.+)"$', _text("src/trimtab/__init__.py"), re.MULTILINE)
    assert found is not None
    return found[1]


def _build(epoch: str) -> dict[str, str]:
    """Build both, and return the sum of each file. The time of files is that of the last commit."""
    shutil.rmtree(DIST, ignore_errors=True)
    _run(sys.executable, "-m", "build", "--outdir", str(DIST), SOURCE_DATE_EPOCH=epoch)
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(DIST.iterdir())}


def _look_through(wheel: Path, archive: Path) -> int:
    """Hold what is in both to what is in the repository; return how many files of the package there are."""
    own = set(_run("git", "ls-files", "src").split())
    with zipfile.ZipFile(wheel) as file:
        held = {f"src/{name}" for name in file.namelist() if ".dist-info/" not in name}
    _check(held == own, f"in the wheel or in src/, and not in both: {sorted(held ^ own)}")
    with tarfile.open(archive) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    beside = {name for name in names if not name.startswith("src/")}
    _check(
        names - beside == own, f"in the archive or in src/, and not in both: {sorted(own ^ (names - beside))}"
    )
    _check(beside <= BESIDE_THE_PACKAGE, f"too much in the archive: {sorted(beside - BESIDE_THE_PACKAGE)}")
    return len(own)


def _look_at_metadata(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as file:
        name = next(name for name in file.namelist() if name.endswith(".dist-info/METADATA"))
        found = message_from_string(file.read(name).decode())
    page = str(found.get_payload())
    relative = re.findall(r"\]\((?!https?://|mailto:|#)[^)]*\)|src=\"(?!https?://)[^\"]*\"", page)
    _check(not relative, f"links of README.md that are dead on an index page: {relative[:5]}")
    for label in ("Homepage", "Documentation", "Source", "Changelog", "Issues"):
        urls = found.get_all("Project-URL", [])
        _check(any(url.startswith(f"{label}, https://") for url in urls), f"no address for {label}")
    extras = found.get_all("Provides-Extra", [])
    _check("exact" in extras and "dev" not in extras, f"extras: {extras}")


def _find(python: str) -> str | None:
    """Find an interpreter that starts: a shim of pyenv may only say which version has it."""
    paths = [shutil.which(python), *Path.home().glob(f".pyenv/versions/*/bin/{python}")]
    starts = (
        str(path)
        for path in paths
        if path and subprocess.run([path, "--version"], capture_output=True, check=False).returncode == 0
    )
    return next(starts, None)


def _install(python: str, wheel: Path, version: str) -> str:
    """Install the wheel into an empty environment, and use it."""
    with tempfile.TemporaryDirectory(prefix="trimtab-release-") as folder:
        _run(python, "-m", "venv", folder)
        there = str(Path(folder) / "bin" / "python")
        _run(there, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", str(wheel))
        told = _run(there, "-I", "-c", FIT).strip()
        _check(told == version, f"it says that it is {told}")
        _run(there, "-m", "pip", "install", "--quiet", f"{wheel}[cli]")
        command = str(Path(folder) / "bin" / "trimtab")
        told = _run(command, "--version").strip()
        _check(version in told, f"trimtab --version says {told!r}")
        conversation = str(ROOT / "examples" / "agent_session.json")
        shown = _run(command, "fit", conversation, "--budget", "4000", "--output", "text")
        _check(shown.startswith("fits"), f"trimtab fit says {shown[:200]!r}")
    return "fits without extras, and by its command"


def _text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def _run(*command: str, **environment: str) -> str:
    """Run a command in the repository, and return what it printed; what it said is shown where it fails."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "PATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    _check(done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def _check(holds: object, otherwise: str) -> None:
    if not holds:
        sys.exit(f"release-check: {otherwise}")


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
