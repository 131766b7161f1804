"""Names of a package that are imported when they are first asked for."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any


def later(package: dict[str, Any], places: Mapping[str, str], /) -> Callable[[str], Any]:
    """Make the `__getattr__` of a package, so that `import trimtab` stays quick; and its `__dir__`.

    A public module of the package is found, too: `import trimtab` is enough for `trimtab.history.recent`.

    Args:
        package: Its `globals()`; a name that was found is put there, and found at once from then on.
            `dir()` of it lists the names that were not asked for yet, too; see `public_dir`.
        places: The module of each such name.
    """

    def __getattr__(name: str) -> Any:
        if name in places:
            value = package[name] = getattr(import_module(places[name]), name)
            return value
        module = _module_of(package["__name__"], name)
        if module is None:
            raise _name_error(name, package["__name__"])
        return module

    package["__dir__"] = public_dir(package)
    return __getattr__


def _module_of(package: str, name: str) -> ModuleType | None:
    """Import a public module of a package; None: there is no such module."""
    if name.startswith("_") or not name.isidentifier():
        return None
    full = f"{package}.{name}"
    try:
        return import_module(full)
    except ModuleNotFoundError as error:
        if error.name != full:  # it is there, and something it needs is not
            raise
        return None


_LISTED = re.compile(r"^__all__ = \[.*?^\]", re.MULTILINE | re.DOTALL)


def _name_error(name: str, package: str) -> AttributeError | ImportError:
    """Make the error for a name that a package does not offer; it says which one does."""
    home = _home_of(name)
    if home is None:
        return AttributeError(f"module {package!r} has no attribute {name!r}")
    instead = f"write from {home} import {name}"
    # `from trimtab import name` asks here whether there is one, and would tell nobody what it heard.
    if sys._getframe(2).f_code.co_name == "_handle_fromlist":
        return ImportError(f"cannot import name {name!r} from {package!r}: {instead}", name=package)
    return AttributeError(f"module {package!r} has no attribute {name!r}: {instead}")


def _home_of(name: str) -> str | None:
    """Find the module that offers a name; modules are read and not imported."""
    from pathlib import Path  # not above: only who asks for a wrong name needs it

    root = Path(__file__).parents[1]
    if name.startswith("_") or (root / name).is_dir() or (root / f"{name}.py").is_file():
        return None  # such a module is there, and Python imports it
    for pattern in ("[a-z]*/__init__.py", "[a-z]*.py", "integrations/[a-z]*.py"):
        for path in sorted(root.glob(pattern)):
            listed = _LISTED.search(path.read_text(encoding="utf-8"))
            if listed is not None and f'"{name}"' in listed[0]:
                parts = path.relative_to(root.parent).with_suffix("").parts
                return ".".join(part for part in parts if part != "__init__")
    return None


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
        from trimtab.errors import MissingExtraError  # not above: `import trimtab` needs no error

        raise MissingExtraError(
            f"{needed_by} needs {package}: pip install 'trimtab[{extra}]'", extra=extra, package=package
        ) from error
