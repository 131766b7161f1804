"""What decides the results of a run, as a digest that is the same in every process."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import sha256
from inspect import unwrap
from pathlib import Path, PurePath
from pickle import PicklingError
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

_PLAIN = (type(None), bool, int, float, complex, str, bytes)
_GLOBALS = (*_PLAIN, tuple, frozenset, list, dict, set, type, FunctionType)
"""What of a module counts, where a function names it; what else is there may hold what was done so far."""
_INSTALLED = tuple(Path(sysconfig.get_path(name)) for name in ("purelib", "platlib"))


def fingerprint(value: object, /) -> str:
    """Return the digest of a value that survives pickling.

    Functions and classes of one's own count by their code and by what of their modules that names; those that
    are installed by their names. The order of a set does not count, nor where an object lies in memory.
    """
    return _Walk().digest(value).hex()


class _Walk:
    """One walk over a value and what it holds."""

    def __init__(self) -> None:
        self._above: list[int] = []
        """What the present value is inside of: a circle ends there."""

    def digest(self, value: object) -> bytes:
        if id(value) in self._above:
            return b"again"
        self._above.append(id(value))
        try:
            parts = self._parts(value)
        finally:
            self._above.pop()
        kind = type(value).__qualname__.encode()
        return sha256(b"".join(b"%d:%b" % (len(part), part) for part in (kind, *parts))).digest()

    def _parts(self, value: Any) -> list[bytes]:
        if type(value) in _PLAIN:
            return [repr(value).encode("utf-8", "surrogatepass")]
        if type(value) in (list, tuple):
            return self._all(value)
        if type(value) is dict:
            return self._dict(value)
        for kinds, way in _WAYS:
            if isinstance(value, kinds):
                return way(self, value)
        inner = unwrap(value)  # of a function with a cache before it
        return self._object(value) if inner is value else self._all((inner,))

    def _all(self, values: Iterable[object]) -> list[bytes]:
        return [self.digest(one) for one in values]

    def _function(self, function: FunctionType) -> list[bytes]:
        name = f"{function.__module__}.{function.__qualname__}".encode()
        if _is_installed(function.__module__):
            return [name]
        cells = [cell.cell_contents for cell in function.__closure__ or ()]
        held = (function.__code__, function.__defaults__, function.__kwdefaults__, cells)
        return [name, *self._all((*held, _globals_of(function)))]

    def _class(self, kind: type) -> list[bytes]:
        name = f"{kind.__module__}.{kind.__qualname__}".encode()
        if _is_installed(kind.__module__):
            return [name]
        held: dict[str, object] = {}
        for key, value in vars(kind).items():
            if isinstance(value, property):
                held[key] = (value.fget, value.fset)
            elif isinstance(value, staticmethod | classmethod):
                held[key] = value.__func__
            elif isinstance(unwrap(value), FunctionType) or (isinstance(value, _GLOBALS) and key[:2] != "__"):
                held[key] = value
        return [name, *self._all((kind.__bases__, held))]

    def _set(self, values: Iterable[object]) -> list[bytes]:
        return sorted(map(self.digest, values))

    def _dict(self, values: dict[object, object]) -> list[bytes]:
        return self._all(one for pair in values.items() for one in pair)

    def _path(self, path: PurePath) -> list[bytes]:
        return self._all((str(path),))

    def _module(self, module: ModuleType) -> list[bytes]:
        return self._all((module.__name__,))

    def _code(self, code: CodeType) -> list[bytes]:
        return [code.co_code, *self._all((code.co_names, code.co_varnames, code.co_consts))]

    def _method(self, method: MethodType) -> list[bytes]:
        return self._all((method.__func__, method.__self__))

    def _object(self, value: Any) -> list[bytes]:
        """Take it apart as pickling does; of what that refuses, as a lock of a module, the type counts."""
        try:
            reduced = value.__reduce_ex__(4)
        except (TypeError, AttributeError, PicklingError):
            return []
        if isinstance(reduced, str):  # a name of its module
            return [reduced.encode()]
        return self._all(list(one) if isinstance(one, Iterator) else one for one in reduced)


_WAYS: tuple[tuple[Any, Callable[[_Walk, Any], list[bytes]]], ...] = (
    ((set, frozenset), _Walk._set),
    (PurePath, _Walk._path),
    (CodeType, _Walk._code),
    (FunctionType, _Walk._function),
    (MethodType, _Walk._method),
    (type, _Walk._class),
    (ModuleType, _Walk._module),
)
"""What is taken apart in a way of its own; all else as pickling does."""


def _is_installed(module: str) -> bool:
    """Tell whether a module is what an installed version says it is: ours, Python's, or a package's."""
    root = module.partition(".")[0]
    if root == __name__.partition(".")[0] or root in sys.stdlib_module_names:
        return True
    file = vars(sys.modules[module]).get("__file__") if module in sys.modules else None
    return file is not None and any(Path(file).is_relative_to(place) for place in _INSTALLED)


def _globals_of(function: FunctionType) -> dict[str, Any]:
    """Give what a function and those inside of it name of their module."""
    found: dict[str, Any] = {}
    codes = [function.__code__]
    for code in codes:
        codes.extend(one for one in code.co_consts if isinstance(one, CodeType))
        names: Mapping[str, object] = function.__globals__
        found.update((name, names[name]) for name in code.co_names if name in names)
    return {name: found[name] for name in sorted(found) if isinstance(unwrap(found[name]), _GLOBALS)}
