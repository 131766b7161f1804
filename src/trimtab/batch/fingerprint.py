"""What decides the results of a run, as a digest that is the same in every process."""

from __future__ import annotations

import pickle
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator, Sequence
from copyreg import dispatch_table
from dataclasses import dataclass
from hashlib import sha256
from inspect import getattr_static
from pathlib import Path, PurePath
from pickle import PicklingError
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from trimtab.errors import ContextError

_PLAIN = (type(None), bool, int, float, complex, str, bytes)
_INSTALLED = tuple(Path(sysconfig.get_path(name)) for name in ("purelib", "platlib"))

_REFUSALS = (
    PicklingError,
    AttributeError,
    ImportError,
    LookupError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
    ContextError,
)
"""What is raised by what does not survive pickling: its own way may be anybody's."""

_Parts = tuple[bytes, Iterable[object]]
"""What a value is made of: what counts of itself, and what it holds."""


def fingerprint(value: object, /) -> str:
    """Return the digest of a value that survives pickling.

    Functions and classes of one's own count by their code and by what of their modules that names; those that
    are installed by their names. The order of a set does not count, nor where an object lies in memory, nor
    whether what is held twice is one object. `docs/batch.md` says what does not count.
    """
    return _digest(_nodes_of(value)).hex()


@dataclass(slots=True)
class _Node:
    """A value, and what it holds by number."""

    value: object
    """Kept alive, as its address is its name here."""
    label: bytes = b""
    held: Sequence[int] = ()

    def digest(self, known: Sequence[bytes | None]) -> bytes:
        """Make the digest of digests of what it holds."""
        parts = [known[number] or b"" for number in self.held]
        if isinstance(self.value, set | frozenset):
            parts.sort()
        return _hash(self.label, *parts)


def _hash(*parts: bytes) -> bytes:
    return sha256(b"".join(b"%d:%b" % (len(part), part) for part in parts)).digest()


def _nodes_of(value: object) -> list[_Node]:
    """Number a value and all that it holds, each object once."""
    nodes = [_Node(value)]
    numbers = {id(value): 0}
    for node in nodes:  # which grow on the way
        own, held = _parts_of(node.value)
        node.label = _hash(type(node.value).__qualname__.encode(), own)
        found: list[int] = []
        for one in held:
            if id(one) not in numbers:
                numbers[id(one)] = len(nodes)
                nodes.append(_Node(one))
            found.append(numbers[id(one)])
        node.held = found
    return nodes


def _digest(nodes: Sequence[_Node]) -> bytes:
    """Make the digest of the first node.

    What holds no circle has that of its parts, made from below. All else begins alike, and is told apart
    by what it holds, again and again, until that tells no more of it apart.
    """
    known: list[bytes | None] = [None] * len(nodes)
    holders: list[list[int]] = [[] for _ in nodes]
    for number, node in enumerate(nodes):
        for held in node.held:
            holders[held].append(number)
    missing = [len(node.held) for node in nodes]
    ready = [number for number, count in enumerate(missing) if not count]
    for number in ready:  # which grow on the way
        known[number] = nodes[number].digest(known)
        for holder in holders[number]:
            missing[holder] -= 1
            if not missing[holder]:
                ready.append(holder)
    rest = [number for number, count in enumerate(missing) if count]
    kinds = 1
    while True:
        made = [nodes[number].digest(known) for number in rest]
        for number, one in zip(rest, made, strict=True):
            known[number] = one
        if len(set(made)) <= kinds:
            return _hash(known[0] or b"", *sorted(set(made)))
        kinds = len(set(made))


# What a value is made of, by its kind.


def _parts_of(value: Any) -> _Parts:
    if type(value) in _PLAIN:
        return repr(value).encode("utf-8", "surrogatepass"), ()
    if type(value) in (list, tuple):
        return b"", value
    if type(value) is dict:
        return b"", [one for pair in value.items() for one in pair]
    for kinds, way in _WAYS:
        if isinstance(value, kinds):
            return way(value)
    if getattr_static(value, "__wrapped__", None) is not None:  # of a function with a cache before it
        return b"", (value.__wrapped__,)
    return _object(value)


def _function(function: FunctionType) -> _Parts:
    name = f"{function.__module__}.{function.__qualname__}".encode()
    if _is_installed(function.__module__):
        return name, ()
    held = (function.__code__, function.__defaults__, function.__kwdefaults__, function.__closure__)
    return name, (*held, _globals_of(function))


def _class(kind: type) -> _Parts:
    name = f"{kind.__module__}.{kind.__qualname__}".encode()
    if _is_installed(kind.__module__):
        return name, ()
    own = {
        key: value
        for key, value in vars(kind).items()
        if key[:2] != "__" or isinstance(value, FunctionType | staticmethod | classmethod)
    }
    return name, (kind.__bases__, own)


def _set(values: Iterable[object]) -> _Parts:
    return b"", values


def _path(path: PurePath) -> _Parts:
    return str(path).encode("utf-8", "surrogatepass"), ()


def _module(module: ModuleType) -> _Parts:
    return module.__name__.encode(), ()


def _code(code: CodeType) -> _Parts:
    return code.co_code, (code.co_names, code.co_varnames, code.co_consts)


def _cell(cell: CellType) -> _Parts:
    try:
        return b"", (cell.cell_contents,)
    except ValueError:  # nothing is in it yet
        return b"", ()


def _method(method: MethodType) -> _Parts:
    return b"", (method.__func__, method.__self__)


def _property(value: property) -> _Parts:
    return b"", (value.fget, value.fset, value.fdel)


def _object(value: Any) -> _Parts:
    """Take it apart as pickling does; of what that refuses, as a lock of a module, the class counts.

    So it does of an object of a package which holds such a thing: a client has more that is another in each
    process.
    """
    kind: type = type(value)
    try:
        if not _is_ours(kind.__module__) and _is_packaged(kind.__module__):
            pickle.dumps(value)
        reduce = dispatch_table.get(kind)
        reduced = value.__reduce_ex__(4) if reduce is None else reduce(value)
    except _REFUSALS:
        return b"", (kind,)
    if isinstance(reduced, str):  # a name of its module
        return reduced.encode(), ()
    return b"", [list(one) if isinstance(one, Iterator) else one for one in reduced]


_WAYS: tuple[tuple[Any, Callable[[Any], _Parts]], ...] = (
    ((set, frozenset), _set),
    (PurePath, _path),
    (CodeType, _code),
    (CellType, _cell),
    (FunctionType, _function),
    (MethodType, _method),
    (property, _property),
    (type, _class),
    (ModuleType, _module),
)
"""What is taken apart in a way of its own; all else as pickling does."""


def _is_installed(module: str) -> bool:
    """Tell whether a module is what an installed version says it is: ours, Python's, or a package's."""
    return _is_ours(module) or _is_packaged(module)


def _is_ours(module: str) -> bool:
    """Tell whether a module is trimtab's or Python's."""
    root = str(module).partition(".")[0]
    return root == __name__.partition(".")[0] or root in sys.stdlib_module_names


def _is_packaged(module: str) -> bool:
    file = vars(sys.modules[module]).get("__file__") if module in sys.modules else None
    return file is not None and any(Path(file).is_relative_to(place) for place in _INSTALLED)


def _globals_of(function: FunctionType) -> dict[str, object]:
    """Give what a function and those inside of it name of their module, and of modules of one's own there."""
    codes = [function.__code__]
    for code in codes:  # which grow on the way
        codes.extend(one for one in code.co_consts if isinstance(one, CodeType))
    names = sorted({name for code in codes for name in code.co_names})
    found: dict[str, object] = {}
    places = [("", function.__globals__)]
    for prefix, place in places:  # which grow on the way
        for name in names:
            if name not in place or f"{prefix}{name}" in found:
                continue
            value = found[f"{prefix}{name}"] = place[name]
            if isinstance(value, ModuleType) and not _is_installed(value.__name__):
                places.append((f"{value.__name__}:", vars(value)))
    return found
