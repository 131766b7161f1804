"""Run one-token mutants of the decision modules against the tests; all must die (`make mutants`).

    python tests/mutants/run.py [MODULE ...] [--jobs N] [--list]

For each mutant the package is copied, one place in one module is changed, and a few test files run
against the copy until the first failure. A mutant that survives means a test is missing or the code
has no effect. Exits 1 if one survives, or if a mutant's text is not found exactly once.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
sys.path.insert(0, str(ROOT))

# ruff: noqa: E402  # these need the path set above
from tests.mutants.baseline import BASELINE
from tests.mutants.contexts import CONTEXTS
from tests.mutants.front import FRONT
from tests.mutants.kernel import KERNEL
from tests.mutants.models import MODELS
from tests.mutants.mutants import Module, Mutant, mutated
from tests.mutants.near import NEAR
from tests.mutants.reading import READING
from tests.mutants.replay import REPLAY
from tests.mutants.responses import RESPONSES
from tests.mutants.servers import SERVERS
from tests.mutants.sessions import SESSIONS
from tests.mutants.stores import STORES
from tests.mutants.strategies import STRATEGIES
from tests.mutants.summaries import SUMMARIES

SERVICES = (*STORES, *SERVERS, *SESSIONS, *BASELINE)
ENGINE = (*KERNEL, *NEAR, *READING)
MODULES = (*ENGINE, *RESPONSES, *FRONT, *CONTEXTS, *STRATEGIES, *SUMMARIES, *MODELS, *SERVICES, *REPLAY)

SECONDS = 120
"""A mutant that makes the tests run so long is as good as dead: it loops."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for, and say what survived."""
    asked = _asked(arguments)
    chosen = [module for module in MODULES if not asked.modules or module.path in asked.modules]
    if not chosen:
        print(f"no such module; there are: {', '.join(module.path for module in MODULES)}")
        return 2
    stale = [line for module in chosen for line in _stale(module)]
    print(*stale, sep="\n", end="\n" if stale else "")
    if asked.list:
        print(*(f"{module.path}: {len(module.mutants)} mutants" for module in chosen), sep="\n")
        return bool(stale)
    survived = 0
    with ThreadPoolExecutor(max_workers=asked.jobs) as pool:
        for module in chosen:
            survived += _run_module(module, pool)
    print("all mutants died" if not survived else f"{survived} survived")
    return int(bool(survived or stale))


def _asked(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("modules", nargs="*", help="paths below src/trimtab; none: all")
    parser.add_argument("--jobs", type=int, default=2, help="mutants at a time")
    parser.add_argument("--list", action="store_true", help="only check that every mutant's text is there")
    return parser.parse_args(arguments)


def _stale(module: Module) -> list[str]:
    text = _text(module)
    return [
        f"{module.path}: not found once in {mutant.function or 'it'}: {mutant.old!r}"
        for mutant in module.mutants
        if mutated(text, mutant) is None
    ]


def _text(module: Module) -> str:
    return (SOURCE / "trimtab" / module.path).read_text(encoding="utf-8")


def _run_module(module: Module, pool: ThreadPoolExecutor) -> int:
    """Return how many mutants of a module survived."""
    if not _dies(module, None):
        text = _text(module)
        mutants = [mutant for mutant in module.mutants if mutated(text, mutant) is not None]
        dead = list(pool.map(lambda mutant: _dies(module, mutant), mutants))
        alive = [mutant for mutant, died in zip(mutants, dead, strict=True) if not died]
        print(f"{module.path}: {len(mutants) - len(alive)} of {len(mutants)} killed", flush=True)
        for mutant in alive:
            print(f"  survived in {mutant.function}: {mutant.old!r} -> {mutant.new!r}", flush=True)
        return len(alive)
    print(f"{module.path}: its tests fail without a mutant: {' '.join(module.tests)}", flush=True)
    return 1


def _dies(module: Module, mutant: Mutant | None) -> bool:
    """Tell whether the tests of a module fail on a copy of the package with the mutant in it."""
    with tempfile.TemporaryDirectory(prefix="trimtab-mutant-") as folder:
        copy = Path(folder, "trimtab")
        shutil.copytree(SOURCE / "trimtab", copy, ignore=shutil.ignore_patterns("__pycache__"))
        if mutant is not None:
            changed = mutated(_text(module), mutant)
            if changed is None:
                raise RuntimeError(f"{module.path} changed while it was tested")
            (copy / module.path).write_text(changed, encoding="utf-8")
        return not _tests_pass(folder, module.tests)


def _tests_pass(folder: str, tests: Sequence[str]) -> bool:
    environment = {
        **os.environ,
        "PYTHONPATH": folder,
        "PYTHONDONTWRITEBYTECODE": "1",
        "HYPOTHESIS_PROFILE": "ci",
        "CI": "",
    }
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider", *tests]
    try:
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return False
    if done.returncode not in (0, 1, 2):
        raise RuntimeError(done.stdout.decode()[-2000:] + done.stderr.decode()[-2000:])
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
