"""The package an extra brings, or the line that installs it."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from trimtab.errors import MissingExtraError

__all__ = ["package_of"]


def package_of(extra: str, /, *, package: str, needed_by: str) -> ModuleType:
    """Import the package an extra brings.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:  # it is there, and something it needs is not
            raise
        raise MissingExtraError(
            f"{needed_by} needs {package}: pip install 'trimtab[{extra}]'", extra=extra, package=package
        ) from error
