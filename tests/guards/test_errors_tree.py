"""The error tree drawn in `errors.py` is the real one."""

from __future__ import annotations

from collections.abc import Iterator

from trimtab import errors


def _label(kind: type) -> str:
    builtin = [base.__name__ for base in kind.__bases__ if base.__module__ == "builtins"]
    return kind.__name__ + (f"({', '.join(builtin)})" if builtin else "")


def _draw(kind: type, indent: str = "") -> Iterator[str]:
    children = [child for child in kind.__subclasses__() if child.__module__ == errors.__name__]
    for child in children:
        last = child is children[-1]
        yield f"{indent}{'└── ' if last else '├── '}{_label(child)}"
        yield from _draw(child, indent + ("    " if last else "│   "))


def test_the_drawing_is_the_tree() -> None:
    """Names, builtin bases and nesting, line by line, in order of definition."""
    root = errors.ContextError
    drawn = [line for line in str(errors.__doc__).splitlines() if "ContextError(" in line or "── " in line]
    assert len(drawn) >= 8
    assert drawn == [_label(root), *_draw(root)]


def test_every_error_is_public() -> None:
    """No error can be raised that a caller cannot name."""
    defined = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.ContextError)
    }
    assert defined == set(errors.__all__)
