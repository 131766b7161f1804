"""Names of a package that are imported when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

from trimtab.errors import MissingExtraError


def later(package: dict[str, Any], places: Mapping[str, str], /) -> Callable[[str], Any]:
    """Make the `__getattr__` of a package, so that `import trimtab` stays quick; and its `__dir__`.

    Args:
        package: Its `globals()`; a name that was found is put there, and found at once from then on.
            `dir()` of it lists the names that were not asked for yet, too; see `public_dir`.
        places: The module of each such name.
    """

    def __getattr__(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package['__name__']!r} has no attribute {name!r}", name=name)
        value = package[name] = getattr(import_module(places[name]), name)
        return value

    package["__dir__"] = public_dir(package)
    return __getattr__


def public_dir(package: Mapping[str, Any], /) -> Callable[[], list[str]]:
    """Make the `__dir__` of a package: what it offers, and the names Python gives every module."""
    return lambda: sorted({*package["__all__"], *(name for name in package if name[:2] == name[-2:] == "__")})


# The package an extra brings, or the line that installs it.


def package_of(extra: str, /, *, package: str, needed_by: str) -> ModuleType:
    """Import the package an extra brings.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        parents = (package, package.partition(".")[0])
        if error.name not in parents:  # it is there, and something it needs is not
            raise
        raise MissingExtraError(
            f"{needed_by} needs {package}: pip install 'trimtab[{extra}]'", extra=extra, package=package
        ) from error
