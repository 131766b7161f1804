"""Wire forms by name: how messages of one provider's API are read, edited and checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trimtab.errors import ConfigurationError, FormatError, UnknownNameError
from trimtab.formats._base import (
    Dict,
    Fault,
    Format,
    Kind,
    Media,
    Path,
    Pieces,
    Prices,
    Request,
    Rules,
    Structure,
    TextSlot,
    mapping_of,
)
from trimtab.formats.openai_chat import OpenAIChat

__all__ = [
    "Dict",
    "Fault",
    "Format",
    "Kind",
    "Media",
    "OpenAIChat",
    "Path",
    "Pieces",
    "Prices",
    "Request",
    "Rules",
    "Structure",
    "TextSlot",
    "detect",
    "formats",
    "get_format",
    "mapping_of",
    "register_format",
]

DEFAULT = "openai_chat"
"""The form assumed where nothing tells another: most providers take it."""

_FORMATS: dict[str, Format] = {format.name: format for format in (OpenAIChat(),)}


def formats() -> list[str]:
    """List the names of the wire forms, sorted.

    Example:
        >>> formats()
        ['openai_chat']
    """
    return sorted(_FORMATS)


def get_format(name: str | Format, /) -> Format:
    """Return the wire form of that name; one that is given itself comes back.

    Raises:
        UnknownNameError: No form has this name; `.near` holds the ones spelled like it.
    """
    if not isinstance(name, str):
        return name
    try:
        return _FORMATS[name]
    except KeyError:
        from difflib import get_close_matches

        near = tuple(get_close_matches(name, _FORMATS, n=3, cutoff=0.4))
        raise UnknownNameError(
            f"no format is called {name!r}; there are: {', '.join(formats())}, and 'auto'",
            name=name,
            near=near,
        ) from None


def register_format(format: Format, /, *, replace: bool = False) -> None:
    """Make a wire form known by its name, and to `detect`, for this process.

    `trimtab.testing.check_format` says whether it keeps what trimtab relies on.

    Raises:
        ConfigurationError: It is no `Format`, it has no name, or the name is taken and `replace` is not given.
    """
    name = getattr(format, "name", None)
    if not isinstance(name, str) or not name or name == "auto" or not hasattr(format, "scan"):
        raise ConfigurationError(
            f"a format has a name, other than 'auto', and the methods of Format, not {format!r}"
        )
    if name in _FORMATS and not replace:
        raise ConfigurationError(f"format {name!r} is known already; pass replace=True to change it")
    _FORMATS[name] = format


def detect(messages: Any, /) -> Format:
    """Return the only form whose own shapes occur in messages or a body.

    Without such shapes, or with those of several forms, it is `openai_chat`. Entries that are no
    messages are passed over. With a single form known nothing is read.
    """
    if len(_FORMATS) == 1:
        return _FORMATS[DEFAULT]
    found = {name for name, format in _FORMATS.items() if _occurs(format, _entries(messages))}
    return _FORMATS[found.pop()] if len(found) == 1 else _FORMATS[DEFAULT]


def _entries(messages: Any) -> Sequence[Any]:
    if isinstance(messages, Mapping):
        listed = (messages.get(key) for key in ("messages", "input", "contents"))
        return next((entry for entry in listed if isinstance(entry, list | tuple)), ())
    return messages if isinstance(messages, list | tuple) else ()


def _occurs(format: Format, messages: Sequence[Any]) -> bool:
    for message in messages:
        try:
            if format.matches(mapping_of(message)):
                return True
        except FormatError:
            continue
    return False
