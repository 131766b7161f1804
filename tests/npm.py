"""Packages of npm for tests, installed once for an environment; where none come, tests skip."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

INSTALL_SECONDS = 600


def node_program(folder: Path, script: Path, packages: Sequence[str]) -> list[str]:
    """Give the command of a script for Node that imports packages; copies it into a folder.

    Args:
        folder: An empty folder, in which it is run.
        script: The script.
        packages: Names with versions, such as "ai@6.0.326"; the first one names what is installed together.
    """
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip(f"{packages[0]} needs node and npm: apt-get install nodejs npm, or the like")
    (folder / "node_modules").symlink_to(installed(packages) / "node_modules")
    return [node, str(shutil.copy(script, folder))]


def installed(packages: Sequence[str]) -> Path:
    """Return the folder that has packages in its `node_modules`; it is made whole or not at all."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip(f"{packages[0]} comes from npm, and there is no npm: apt-get install npm, or the like")
    kept = Path(sys.prefix) / "share" / f"npm-{packages[0].replace('/', '-')}"
    if kept.is_dir():
        return kept
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="npm-", dir=kept.parent) as folder:
        options = ["--silent", "--ignore-scripts", "--no-audit", "--no-fund", "--cache", f"{folder}/cache"]
        made = Path(folder) / "made"
        made.mkdir()
        command = [npm, "install", *options, "--prefix", str(made), *packages]
        try:
            subprocess.run(command, cwd=made, check=True, capture_output=True, timeout=INSTALL_SECONDS)
        except (subprocess.SubprocessError, OSError) as error:
            pytest.skip(f"{packages[0]} cannot be had from npm: {error}")
        if not kept.is_dir():
            os.replace(made, kept)
    return kept
