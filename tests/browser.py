"""A real Chromium for tests of pages, installed where the system allows; and axe, which finds barriers.

Chromium has a home of its own, which is gone after. axe comes from npm, once for an environment; its digest
is held.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.servers import NoServer, find_program

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
AXE = "4.14.1"
AXE_DIGEST = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"
FETCH_SECONDS = 60
PATIENCE_MS = 60_000  # of a test with a page, on a machine that has other work


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start a Chromium for the length of a block; a test that asks for one skips where there is none."""
    try:
        program = find_program("chromium", package="chromium", folders="usr/bin")
    except NoServer as error:
        pytest.skip(str(error))
    expect.set_options(timeout=PATIENCE_MS)
    with tempfile.TemporaryDirectory(prefix="trimtab-chromium-") as home, sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=program, args=list(ARGUMENTS), env={"HOME": home, "PATH": "/usr/bin:/bin"}
        )
        try:
            yield browser
        finally:
            browser.close()


def axe() -> str:
    """Return the script of axe; a test that asks for it skips where npm has none."""
    kept = Path(sys.prefix) / "share" / f"axe-{AXE}.min.js"
    if not kept.is_file():
        _fetch(kept)
    script = kept.read_bytes()
    assert hashlib.sha256(script).hexdigest() == AXE_DIGEST, f"{kept} is not the axe that was looked at"
    return script.decode()


def _fetch(kept: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("axe-core comes from npm, and there is no npm: apt-get install npm, or the like")
    with tempfile.TemporaryDirectory(prefix="trimtab-axe-") as folder:
        command = [npm, "pack", "--silent", "--cache", folder, f"axe-core@{AXE}"]
        try:
            subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=FETCH_SECONDS)
        except (subprocess.SubprocessError, OSError) as error:
            pytest.skip(f"axe-core {AXE} cannot be had from npm: {error}")
        with tarfile.open(next(Path(folder).glob("axe-core-*.tgz"))) as pack:
            script = pack.extractfile("package/axe.min.js")
            assert script is not None
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_bytes(script.read())
