"""Kinds of values in a policy: each reads a value, and says in JSON Schema what it reads.

One object does both, so that a schema cannot promise what is then refused.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from trimtab._shared.names import in_words, near_names
from trimtab.errors import ConfigurationError, UnknownNameError

__all__ = [
    "Choice",
    "Either",
    "Flag",
    "Items",
    "Key",
    "Kind",
    "Names",
    "Null",
    "Number",
    "Place",
    "Table",
    "Text",
    "Whole",
]

Names = Collection[str] | None
"""Names that may be used in a policy; None: not known, so that any word may be one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where in a policy a value stands, and the names that may be used there."""

    path: str = ""
    """As in `blocks[2].max_ratio`; empty for the policy itself."""
    names: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def key(self, key: str, /) -> Place:
        """Go to a value below this one."""
        return Place(path=f"{self.path}.{key}" if self.path else key, names=self.names)

    def item(self, index: int, /) -> Place:
        """Go to an item of the list here."""
        return Place(path=f"{self.path}[{index}]", names=self.names)

    def wrong(self, what: str, value: object, /) -> ConfigurationError:
        """Make the error for a value that is not what it should be."""
        return ConfigurationError(f"{self.path or 'a policy'} is {what}, not {reprlib.repr(value)}")

    def unknown(self, what: str, name: object, /, *, known: Collection[str], there: str) -> UnknownNameError:
        """Make the error for a name nobody knows, with those there are and the ones spelled like it.

        Args:
            what: What is wrong, up to the list: "no key 'windw'".
            name: What was written.
            known: The names there are.
            there: The words that stand before them, as in "there are".
        """
        near = near_names(str(name), known)
        listed = ", ".join(known) or "none"
        where = f"{self.path}: " if self.path else ""
        return UnknownNameError(
            f"{where}{what}; {there}: {listed}{in_words(near)}", name=str(name), near=near
        )


class Kind(Protocol):
    """One kind of value."""

    @property
    def what(self) -> str:
        """What it takes, in words that follow "is"."""
        ...

    def takes(self, value: object, /) -> bool:
        """Tell whether a value is of its type, whatever its range; chooses among several kinds."""
        ...

    def read(self, value: Any, at: Place, /) -> Any:
        """Return the value as Python has it.

        Raises:
            ConfigurationError: It is not of this kind; with its path and what may stand there.
        """
        ...

    def schema(self, names: Names, /) -> dict[str, Any]:
        """Say in JSON Schema what is taken."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """A whole number; 10.0 is one, as in JSON Schema."""

    least: int | None = 0

    @property
    def what(self) -> str:
        """Its words."""
        return "a whole number" if self.least is None else f"a whole number of at least {self.least}"

    def takes(self, value: object, /) -> bool:
        """Take numbers."""
        return isinstance(value, (int, float)) and not isinstance(value, bool)

    def read(self, value: Any, at: Place, /) -> int:
        """Read an int."""
        if not self.takes(value) or value % 1 != 0 or (self.least is not None and value < self.least):
            raise at.wrong(self.what, value)
        return int(value)

    def schema(self, names: Names, /) -> dict[str, Any]:
        """Say integer and minimum."""
        return {"type": "integer"} if self.least is None else {"type": "integer", "minimum": self.least}


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """A finite number."""

    least: float | None = None
    most: float | None = None
    above: float | None = None

    @property
    def what(self) -> str:
        """Its words."""
        if self.above is not None:
            return f"a number above {self.above:g}" + (
                "" if self.most is None else f" and at most {self.most:g}"
            )
        return "a finite number" if self.least is None else f"a number from {self.least:g} to {self.most:g}"

    def takes(self, value: object, /) -> bool:
        """Take numbers."""
        return isinstance(value, (int, float)) and not isinstance(value, bool)

    def read(self, value: Any, at: Place, /) -> int | float:
        """Read a number as it is."""
        if not self.takes(value) or not _is_finite(value) or not self._in_range(value):
            raise at.wrong(self.what, value)
        number: int | float = value
        return number

    def _in_range(self, value: float) -> bool:
        above = self.above is None or value > self.above
        return (
            above
            and (self.least is None or value >= self.least)
            and (self.most is None or value <= self.most)
        )

    def schema(self, names: Names, /) -> dict[str, Any]:
        """Say number and its bounds."""
        bounds = {"minimum": self.least, "exclusiveMinimum": self.above, "maximum": self.most}
        return {"type": "number", **{key: bound for key, bound in bounds.items() if bound is not None}}


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an int that no float holds
        return False


@dataclass(frozen=True, slots=True)
class Flag:
    """True or false."""

    @property
    def what(self) -> str:
        """Its words."""
        return "true or false"

    def takes(self, value: object, /) -> bool:
        """Take bools."""
        return isinstance(value, bool)

    def read(self, value: Any, at: Place, /) -> bool:
        """Read a bool."""
        if not self.takes(value):
            raise at.wrong(self.what, value)
        return bool(value)

    def schema(self, names: Names, /) -> dict[str, Any]:
        """Say boolean."""
        return {"type": "boolean"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A text."""

    may_be_empty: bool = False
    noun: str = "a text"

    @property
    def what(self) -> str:
        """Its words."""
        return self.noun if self.may_be_empty else f"{self.noun} that is not empty"

    def takes(self, value: object, /) -> bool:
        """Take texts."""
        return isinstance(value, str)

    def read(self, value: Any, at: Place, /) -> str:
        """Read a text."""
        if not self.takes(value) or not (value or self.may_be_empty):
            raise at.wrong(self.what, value)
        return str(value)

    def schema(self, names: Names, /) -> dict[str, Any]:
        """Say string."""
        return {"type": "string"} if self.may_be_empty else {"type": "string", "minLength": 1}


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a few words, or the one number."""

    words: tuple[str | int, ...]

    @property
    def what(self) -> str:
        """Its words."""
        *most, last = (repr(word) for word in self.words)
        return f"{', '.join(most)} or {last}" if most else last

    def takes(self, value: object, /) -> bool:
        """Take values of the type of its words; 1.0 is 1."""
        return (
            isinstance(value, str if isinstance(self.words[0], str) else (int, float)) and value is not True
        )

    def read(self, value: Any, at: Place, /) -> Any:
        """Read one of the words."""
        if not self.takes(value) or value not in self.words:
            raise at.wrong(self.what, value)
        return value

    def schema(self, names: Names, /) -> dict[str, Any]:
        """List the words."""
        return {"enum": list(self.words)}


@dataclass(frozen=True, slots=True)
class Null:
    """Null, as JSON has it and TOML has not."""

    @property
    def what(self) -> str:
        """Its words."""
        return "null"

    def takes(self, value: object, /) -> bool:
        """Take None."""
        return value is None

    def read(self, value: Any, at: Place, /) -> None:
        """Read None; as one kind of several it was asked before."""

    def schema(self, names: Names, /) -> dict[str, Any]:
        """Say null."""
        return {"type": "null"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Items:
    """A list, all items of one kind."""

    of: Kind
    least: int = 0
    noun: str = "a list"
    also: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Rules between the items, for the schema: whoever makes the objects holds them to these."""

    @property
    def what(self) -> str:
        """Its words."""
        return self.noun if not self.least else f"{self.noun}, at least {self.least} long"

    def takes(self, value: object, /) -> bool:
        """Take sequences that are no text."""
        return isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray))

    def read(self, value: Any, at: Place, /) -> list[Any]:
        """Read each item."""
        if not self.takes(value) or len(value) < self.least:
            raise at.wrong(self.what, value)
        return [self.of.read(item, at.item(index)) for index, item in enumerate(value)]

    def schema(self, names: Names, /) -> dict[str, Any]:
        """Say array, and what its items are."""
        least = {"minItems": self.least} if self.least else {}
        return {"type": "array", "items": self.of.schema(names), **least, **self.also}


@dataclass(frozen=True, slots=True)
class Either:
    """The first of these kinds whose type a value is of."""

    kinds: tuple[Kind, ...]

    @property
    def what(self) -> str:
        """Their words."""
        return ", or ".join(kind.what for kind in self.kinds)

    def takes(self, value: object, /) -> bool:
        """Take what one of them takes."""
        return any(kind.takes(value) for kind in self.kinds)

    def read(self, value: Any, at: Place, /) -> Any:
        """Read it as that kind."""
        if not self.takes(value):
            raise at.wrong(self.what, value)
        return next(kind for kind in self.kinds if kind.takes(value)).read(value, at)

    def schema(self, names: Names, /) -> dict[str, Any]:
        """List them."""
        return {"anyOf": [kind.schema(names) for kind in self.kinds]}


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a table."""

    kind: Kind
    about: str
    """What editors show."""
    default: Any = None
    """What holds where the key is left out; None: nothing that could be written."""

    def schema(self, names: Names, /) -> dict[str, Any]:
        """Give its schema, with description and default."""
        default = {} if self.default is None else {"default": self.default}
        return {"description": self.about, **default, **self.kind.schema(names)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A mapping with known keys."""

    keys: Mapping[str, Key]
    required: tuple[str, ...] = ()
    noun: str = "a table"
    also: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Rules between the keys, for the schema: whoever makes the object holds it to these."""

    @property
    def what(self) -> str:
        """Its words."""
        return f"{self.noun} with {', '.join(self.required)}" if self.required else self.noun

    def takes(self, value: object, /) -> bool:
        """Take mappings."""
        return isinstance(value, Mapping)

    def read(self, value: Any, at: Place, /) -> dict[str, Any]:
        """Read each value; no key is left out of sight."""
        if not self.takes(value):
            raise at.wrong(self.what, value)
        for key in value:
            if key not in self.keys:
                raise at.unknown(f"no key is called {key!r}", key, known=self.keys, there="the keys are")
        for key in self.required:
            if key not in value:
                raise ConfigurationError(f"{at.key(key).path} is missing: {self.keys[key].kind.what}")
        return {key: self.keys[key].kind.read(value[key], at.key(key)) for key in value}

    def schema(self, names: Names, /) -> dict[str, Any]:
        """Say object and its properties."""
        return {
            "type": "object",
            "properties": {key: one.schema(names) for key, one in self.keys.items()},
            "additionalProperties": False,
            **({"required": list(self.required)} if self.required else {}),
            **self.also,
        }
