"""What a framework tests of itself: its source distribution, which `run.py` has beside the environment."""

from __future__ import annotations

import sys
import tarfile
from importlib.metadata import version
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

SOURCES = Path(sys.prefix, "sources")
"""Where `run.py` puts what a folder names in its `sources.txt`."""


def source_of(package: str, folder: Path) -> Path:
    """Unpack the source distribution of a package, of the version that is installed.

    Args:
        package: Its name, as in `sources.txt`.
        folder: Where it is unpacked.
    """
    name = f"{package.replace('-', '_')}-{version(package)}"
    if not (file := SOURCES / f"{name}.tar.gz").exists():
        pytest.skip(f"{file} is not there: tests/integrations/run.py gets it from PyPI")
    with tarfile.open(file) as archive:
        archive.extractall(folder, filter="data")
    return folder / name


def module_at(path: Path) -> ModuleType:
    """Load a file of a source distribution."""
    spec = spec_from_file_location(f"its_own_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
