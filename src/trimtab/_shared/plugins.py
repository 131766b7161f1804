"""Names that other packages publish: entry points, looked up when a name is none of ours."""

from __future__ import annotations

from functools import cache
from typing import Any

from trimtab.errors import ConfigurationError, ContextError

__all__ = ["load_plugin", "make_plugin", "plugin_names"]


def plugin_names(group: str, /) -> list[str]:
    """List the names that packages publish in a group, as "formats", sorted."""
    from importlib.metadata import entry_points  # not above: it takes longer than all of trimtab

    return sorted({one.name for one in entry_points(group=f"trimtab.{group}")})


def make_plugin(group: str, name: str, /, *args: object, **options: object) -> Any:
    """Make what a package published under a name: its entry point is called; None if there is none.

    Raises:
        ConfigurationError: It cannot be loaded or called, or two packages publish other things by the name.
    """
    if not (maker := load_plugin(group, name)):
        return None
    what, make = maker
    if not callable(make):
        raise ConfigurationError(f"{what} cannot be called: it must be a class, or a function that makes one")
    try:
        return make(*args, **options)
    except ContextError:
        raise
    except Exception as error:
        raise ConfigurationError(f"{what} could not be created: {type(error).__name__}: {error}") from error


@cache
def load_plugin(group: str, name: str, /) -> tuple[str, Any] | None:
    """Import what an entry point names, and say which it is; None if there is none.

    Once: looking reads the metadata of every package.

    Raises:
        ConfigurationError: It cannot be loaded, or two packages publish other things by the name.
    """
    from importlib.metadata import entry_points

    found = {one.value: one for one in entry_points(group=f"trimtab.{group}", name=name)}
    if not found:
        return None
    if len(found) > 1:
        raise ConfigurationError(
            f"several packages publish {name!r} in trimtab.{group}: {', '.join(sorted(found))}; keep one of"
            " them, or pass the object itself"
        )
    ((value, point),) = found.items()
    of = f" of {point.dist.name}" if point.dist is not None else ""
    what = f"{name!r} ({value}{of}, published in trimtab.{group})"
    try:
        return what, point.load()
    except ContextError:
        raise
    except Exception as error:
        raise ConfigurationError(f"{what} could not be loaded: {type(error).__name__}: {error}") from error
