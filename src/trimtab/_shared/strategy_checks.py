"""Checks of what strategies are made with; each error names the argument and what it may be."""

from __future__ import annotations

import math
from collections.abc import Iterable

from trimtab.errors import ConfigurationError


def check_count(name: str, value: object) -> int:
    """Return a whole number >= 0."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ConfigurationError(f"{name} must be a whole number >= 0, not {value!r}")
    return value


def check_flag(name: str, value: object) -> bool:
    """Return True or False; words and numbers that merely read as one are refused."""
    if not isinstance(value, bool):
        raise ConfigurationError(f"{name} must be True or False, not {value!r}")
    return value


def check_fraction(name: str, value: object) -> float:
    """Return a number above 0 and at most 1."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ConfigurationError(f"{name} must be a number above 0 and at most 1, not {value!r}")
    if not 0 < value <= 1:
        raise ConfigurationError(f"{name} must be above 0 and at most 1, not {value!r}")
    return float(value)


def check_roles(value: Iterable[str], *, name: str = "protect_roles") -> tuple[str, ...]:
    """Return names as a tuple, without empty ones and repetitions; a bare string is refused."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise ConfigurationError(f"{name} must be a sequence of names, as in [{value!r}]")
    names = list(value)
    for item in names:
        if not isinstance(item, str):
            raise ConfigurationError(f"{name} must hold names, not {item!r}")
    return tuple(dict.fromkeys(item for item in names if item))


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> str:
    """Return one of a few words."""
    if value not in choices:
        raise ConfigurationError(f"{name} must be one of {', '.join(choices)}, not {value!r}")
    return str(value)
