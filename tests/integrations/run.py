"""Run the tests of adapters, each with its framework in an environment of its own.

`python tests/integrations/run.py [NAME …]` takes those named; none: those whose files changed since the
commit before, and three in turn by the number of commits. ALL=1 takes all. The environments stay in
`.venv-integrations`, and are brought up to date when what they are made from is newer.

One environment cannot hold all: openai-agents needs openai 3, and LiteLLM openai 2.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
ENVIRONMENTS = ROOT / ".venv-integrations"
IN_TURN = 3

CORE = (
    "src/trimtab/_fit",
    "src/trimtab/integrations/base.py",
    "src/trimtab/integrations/bodies.py",
    "tests/integrations/loops.py",
)
"""What every adapter stands on: where one of these changed, all are run."""

OPEN = ("Argument", "Member", "Parameter", "Variable")
"""Where a type may be unknown: LangChain's `create_agent`, LiteLLM's `Router.completion` and google-genai's
contents leave types of their own open."""

SOURCES = {"ray": "src/trimtab/batch/", "spark": "src/trimtab/batch/"}
"""What is tested here and is no adapter."""

EXTRAS = {"spark": "batch"}
"""The extra of what has none of its own name: a recipe."""


def names() -> list[str]:
    """List the adapters that have tests: folders with the pins of an environment."""
    return sorted(file.parent.name for file in HERE.glob("*/constraints.txt"))


def chosen(known: list[str], changed: list[str], commits: int) -> list[str]:
    """Choose those that changed, and some in turn."""
    if any(path.startswith(CORE) for path in changed):
        return known
    own = [
        name
        for name in known
        if any(
            path.startswith(
                (SOURCES.get(name, f"src/trimtab/integrations/{name}.py"), f"tests/integrations/{name}/")
            )
            for path in changed
        )
    ]
    turn = [known[(commits * IN_TURN + at) % len(known)] for at in range(min(IN_TURN, len(known)))]
    return sorted({*own, *turn})


def python_of(name: str) -> Path:
    """Return the interpreter of an environment; makes it where it is missing or old."""
    place, pins = ENVIRONMENTS / name, HERE / name / "constraints.txt"
    python, stamp = place / "bin" / "python", place / ".ready"
    sources = (pins, ROOT / "pyproject.toml", HERE / name / "requirements.txt")
    if stamp.exists() and all(stamp.stat().st_mtime > source.stat().st_mtime for source in sources):
        return python
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", place], check=True)
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    install += ["--constraint", pins, "--requirement", HERE / name / "requirements.txt"]
    subprocess.run(
        [*install, "--editable", f".[exact,{EXTRAS.get(name, name.replace('_', '-'))}]"], cwd=ROOT, check=True
    )
    stamp.touch()
    return python


def run(name: str) -> bool:
    """Run the tests of one adapter, then hold its types."""
    python = python_of(name)
    tests = HERE / name
    commands = (
        ("pytest", "-q", "--confcutdir", HERE, "-c", HERE / "pytest.ini", "--rootdir", ROOT, tests),
        ("mypy", "--strict", "--follow-imports=silent", tests / "program.py"),
    )
    print(f"== {name}", flush=True)
    return all(
        subprocess.run([python, "-m", *command], cwd=ROOT, check=False).returncode == 0
        for command in commands
    ) and _passes_pyright(tests / "program.py", python)


def _passes_pyright(program: Path, python: Path) -> bool:
    """Hold a program to pyright, which is in the environment that runs this, by the packages of another."""
    with tempfile.TemporaryDirectory(prefix="trimtab-pyright-") as name:
        # A folder of its own: the project's settings name the project's environment.
        shutil.copy(program, name)
        settings: dict[str, object] = {"typeCheckingMode": "strict", "pythonVersion": "3.11"}
        settings |= {f"reportUnknown{kind}Type": False for kind in OPEN}
        (Path(name) / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
        command = [sys.executable, "-m", "pyright", "-p", name, "--pythonpath", python]
        return subprocess.run(command, cwd=ROOT, check=False).returncode == 0


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else ""


def main(asked: list[str]) -> int:
    """Run what is asked for; returns how many failed."""
    known = names()
    if os.environ.get("ALL") == "1":
        asked = known
    elif not asked:
        changed = _git("diff", "--name-only", "HEAD~1").splitlines()
        asked = chosen(known, changed, int(_git("rev-list", "--count", "HEAD") or 0))
    failed = [name for name in asked if not run(name)]
    print(f"{len(asked)} of {len(known)} adapters run, {len(failed)} failed: {', '.join(failed) or 'none'}")
    return len(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
