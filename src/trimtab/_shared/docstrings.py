"""Args that are written once, and shown by `help()` wherever they are taken."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["args_of"]

F = TypeVar("F", bound=Callable[..., Any])

_SECTION = "Args:\n"
_OPTION = re.compile(r"^    \*{0,2}(\w+): .*(?:\n     .*)*", re.MULTILINE)
_BELOW = re.compile(r"\n\n(?:Returns|Raises|Example):\n|\Z")


def args_of(source: Callable[..., Any], /) -> Callable[[F], F]:
    """Show the Args of a function or a class in the help of a function or a class that takes them, too.

    They are put in the order of its parameters, after what its own docstring says of others. Where Python
    keeps no docstrings (`python -OO`) there is nothing to show.

    Args:
        source: Where the Args are written.
    """

    def show(function: F) -> F:
        given, own = source.__doc__, function.__doc__
        if given and own:
            function.__doc__ = _with_args(inspect.cleandoc(given), inspect.cleandoc(own), function)
        return function

    return show


def _with_args(given: str, own: str, function: Callable[..., Any]) -> str:
    above, found, rest = own.partition(_SECTION)
    mine, below = _cut(rest) if found else ("", "")
    if not found:
        below_at = _BELOW.search(own)
        at = len(own) if below_at is None else below_at.start()
        above, below = own[:at] + "\n\n", own[at:]
    theirs, _ = _cut(given.partition(_SECTION)[2])
    lines = {one[1]: one[0] for text in (theirs, mine) for one in _OPTION.finditer(text)}
    taken = [lines[name] for name in inspect.signature(function).parameters if name in lines]
    return "".join((above, _SECTION, "\n".join(taken), below))


def _cut(text: str) -> tuple[str, str]:
    """Cut a docstring where a section of it ends."""
    section, blank, rest = text.partition("\n\n")
    return section, blank + rest
