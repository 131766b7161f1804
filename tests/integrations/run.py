"""Run the tests of adapters, each with its framework in an environment of its own.

`python tests/integrations/run.py [NAME …]` takes those named; none: those that stand on a file which
changed since the commit before, and three in turn by the number of commits. ALL=1 takes all, and so does a
change of the core's public API. The environments stay in `.venv-integrations`, and are brought up to date
when what they are made from is newer. WORKERS=1 runs one after the other.

One environment cannot hold all: openai-agents needs openai 3, and LiteLLM openai 2.
"""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
ENVIRONMENTS = ROOT / ".venv-integrations"
IN_TURN = 3
AT_ONCE = int(os.environ.get("WORKERS", "2"))
"""Adapters that run at the same time; each has its own environment, servers and ports."""

CORE = (
    "src/trimtab/_fit",
    "tests/guards/public_signatures.txt",
    "tests/integrations/loops.py",
    "tests/integrations/options.py",
    "tests/integrations/test_examples.py",
    "tests/integrations/test_start.py",
    "tests/integrations/upstream.py",
)
"""What every adapter stands on: where one of these changed, all are run. The signatures are those of all
public names, which no change of the API leaves as they were."""

OPEN = ("Argument", "Member", "Parameter", "Variable")
"""Where a type may be unknown: LangChain's `create_agent`, LiteLLM's `Router.completion` and google-genai's
contents leave types of their own open."""

START_TEST = "test_the_program_of_the_page_sends_a_valid_request_and_prints_the_answer"
"""Of test_start.py, which has the program of the documents for each framework."""

EXAMPLE_TEST = "test_an_example_runs_offline_and_says_what_left_its_requests"
"""Of test_examples.py, which has every program of examples/integrations."""

OTHERS = {
    "fastapi": ("src/trimtab/session/", "src/trimtab/stores/"),
    "gateway": ("src/trimtab/gateway/", "tests/gateway/gateways.py"),
    "ray": ("src/trimtab/batch/",),
    "spark": ("src/trimtab/batch/",),
}
"""What is tested here and is no adapter, by what it stands on."""

EXTRAS = {
    "client_frameworks": "openai",
    "deepagents": "langchain",
    "fastapi": "postgres",
    "gateway": "serve",
    "openai_compatible": "exact",
    "spark": "batch",
}
"""The extra of what has none of its own name: hosts' clients are installed by themselves, and recipes."""

BUILT_ON = {"client_frameworks": "openai", "deepagents": "langchain"}
"""Frameworks that are built on another, or take its client, and so its adapter."""


def names() -> list[str]:
    """List the adapters that have tests: folders with the pins of an environment."""
    return sorted(file.parent.name for file in HERE.glob("*/constraints.txt"))


def chosen(known: list[str], changed: list[str], commits: int) -> list[str]:
    """Choose those that stand on what changed, and some in turn."""
    if any(path.startswith(CORE) for path in changed):
        return known
    own = [name for name in known if any(path.startswith(sources(name)) for path in changed)]
    turn = [known[(commits * IN_TURN + at) % len(known)] for at in range(min(IN_TURN, len(known)))]
    return sorted({*own, *turn})


@cache
def sources(name: str) -> tuple[str, ...]:
    """List the files an adapter stands on: its own, its examples, and all that these name among adapters."""
    own = Path("src/trimtab/integrations")
    found = {f"tests/integrations/{name}/"}
    left = [(own / BUILT_ON.get(name, name)).with_suffix(".py").as_posix()]
    if name in OTHERS:
        return (*found, *OTHERS[name])
    found.update(path.relative_to(ROOT).as_posix() for path in examples_of(name))
    while left:
        path = left.pop()
        if path not in found:
            found.add(path)
            left += _imported(path) if Path(path).parent == own else ()
    return tuple(sorted(found))


@cache
def examples_of(name: str) -> list[Path]:
    """List the example programs of an adapter: those that import it, or what is built on its framework."""
    programs = sorted((ROOT / "examples" / "integrations").glob("*.py"))
    texts = {program: program.read_text(encoding="utf-8") for program in programs}
    owners = {
        one: [key for key in BUILT_ON if f"\nfrom {key} import " in text] for one, text in texts.items()
    }
    if name in BUILT_ON:
        return [program for program in programs if name in owners[program]]
    line = f"\nfrom trimtab.integrations.{name} import "
    return [program for program in programs if line in texts[program] and not owners[program]]


@cache
def _imported(path: str) -> tuple[str, ...]:
    """List the files of trimtab that one names where it imports."""
    return tuple(_imports(path))


def _is_for_checkers(node: ast.AST) -> bool:
    """Tell statements under TYPE_CHECKING, which never run."""
    return isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"


def _imports(path: str) -> Iterator[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    unused = {id(one) for node in ast.walk(tree) if _is_for_checkers(node) for one in ast.walk(node)}
    for node in (one for one in ast.walk(tree) if id(one) not in unused):
        module = node.module if isinstance(node, ast.ImportFrom) else None
        if module and module.partition(".")[0] == "trimtab":
            place = Path("src", *module.split("."))
            is_package = (ROOT / place).is_dir()
            yield (place / "__init__.py" if is_package else place.with_suffix(".py")).as_posix()


def python_of(name: str, printed: IO[str]) -> Path:
    """Return the interpreter of an environment; makes it where it is missing or old."""
    place, pins = ENVIRONMENTS / name, HERE / name / "constraints.txt"
    python, stamp = place / "bin" / "python", place / ".ready"
    own = HERE / name / "sources.txt"
    made_from = [pins, ROOT / "pyproject.toml", HERE / name / "requirements.txt", *[own][: own.exists()]]
    if stamp.exists() and all(stamp.stat().st_mtime > source.stat().st_mtime for source in made_from):
        return python
    # pip takes a minute for each of them and uv a few seconds; it has an index and certificates of its own:
    # UV_INDEX_URL and UV_SYSTEM_CERTS where pip's are others than the usual
    uv = [sys.executable, "-m", "uv"]
    if not python.exists():
        _run([*uv, "venv", "--quiet", "--seed", "--python", sys.executable, place], printed, check=True)
    install = [*uv, "pip", "install", "--quiet", "--python", python]
    install += ["--constraint", pins, "--requirement", HERE / name / "requirements.txt"]
    extra = f".[exact,{EXTRAS.get(name, name.replace('_', '-'))}]"
    _run([*install, "--editable", extra], printed, check=True)
    if own.exists():
        _get_sources(python, pins, own, printed)
    stamp.touch()
    return python


def _get_sources(python: Path, pins: Path, listed: Path, printed: IO[str]) -> None:
    """Get the source distributions of packages whose own tests are run; without one these are skipped."""
    get = [python, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    # by name: for ":all:" pip builds from source what builds them, too, which takes two minutes
    names = ",".join(listed.read_text(encoding="utf-8").split())
    get += ["--no-binary", names, "--constraint", pins, "--requirement", listed]
    _run([*get, "--dest", python.parents[1] / "sources"], printed)


def run(name: str) -> bool:
    """Run the tests of one adapter, then hold its types; prints in one piece what they print."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as printed:
        try:
            return _passes(name, printed)
        finally:
            printed.seek(0)
            print(f"== {name}\n{printed.read()}", end="", flush=True)


def _passes(name: str, printed: IO[str]) -> bool:
    python = python_of(name, printed)
    tests: list[Path | str] = [HERE / name]
    programs = [HERE / name / "program.py"]
    if (start := HERE / name / "start.py").exists():
        tests.append(f"{HERE / 'test_start.py'}::{START_TEST}[{name}]")
        programs.append(start)
    for example in examples_of(name):
        tests.append(f"{HERE / 'test_examples.py'}::{EXAMPLE_TEST}[{example.stem}]")
        programs.append(example)
    if os.environ.get("LONG") == "1":
        tests += ["-m", "long or not long"]
    commands: tuple[tuple[Path | str, ...], ...] = (
        ("pytest", "-q", "--confcutdir", HERE, "-c", HERE / "pytest.ini", "--rootdir", ROOT, *tests),
        ("mypy", "--strict", "--follow-imports=silent", *programs),
    )
    passed = all(_run([python, "-m", *command], printed) for command in commands)
    return passed and _passes_pyright(programs, python, printed)


def _passes_pyright(programs: list[Path], python: Path, printed: IO[str]) -> bool:
    """Hold programs to pyright, which is in the environment that runs this, by the packages of another."""
    with tempfile.TemporaryDirectory(prefix="trimtab-pyright-") as name:
        # A folder of its own: the project's settings name the project's environment.
        for program in programs:
            shutil.copy(program, name)
        settings: dict[str, object] = {"typeCheckingMode": "strict", "pythonVersion": "3.11"}
        settings |= {f"reportUnknown{kind}Type": False for kind in OPEN}
        (Path(name) / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
        return _run([sys.executable, "-m", "pyright", "-p", name, "--pythonpath", python], printed)


def _run(command: Sequence[Path | str], printed: IO[str], *, check: bool = False) -> bool:
    done = subprocess.run(command, cwd=ROOT, check=check, stdout=printed, stderr=subprocess.STDOUT)
    return done.returncode == 0


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
    adapters = [name for name in asked if name not in OTHERS]
    with ThreadPoolExecutor(AT_ONCE) as threads:
        passed = dict(zip(adapters, threads.map(run, adapters), strict=True))
    # A cluster takes a node that has no processor for some seconds for dead, and ends with it.
    passed |= {name: run(name) for name in asked if name in OTHERS}
    failed = [name for name in asked if not passed[name]]
    print(f"{len(asked)} of {len(known)} adapters run, {len(failed)} failed: {', '.join(failed) or 'none'}")
    return len(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
