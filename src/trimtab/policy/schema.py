"""Kinds of values in a policy: each reads a value, and says in JSON Schema what it reads.

One object does both, so that a schema cannot promise what is then refused.
"""

from __future__ import annotations

import math
import re
import reprlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Protocol, get_args

from trimtab._fitting.allocation import Ties
from trimtab._fitting.blocks import Block, Tier, TrimBehavior
from trimtab._shared.checks import in_words, near_names
from trimtab.counting.door import WORDS, counter_in_words
from trimtab.errors import ConfigurationError, UnknownNameError
from trimtab.formats import formats
from trimtab.strategies import StrategyKind
from trimtab.strategies.clear_tool_results import DEFAULT_PLACEHOLDER
from trimtab.strategies.data import ALIASES

__all__ = ["DEFINITIONS", "OPTIONS", "POLICY", "VERSION", "Place", "Table", "is_counter"]


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


# What may stand in a policy: every key with its kind, read from here by the loader and the schema.


VERSION = 1
"""Of the shape of a policy; another number is for a shape that today's trimtab would misread."""


_ANY_NAME = {"type": "string", "minLength": 1}
"""Stands for names in a schema made without them, as for an editor."""


@dataclass(frozen=True, slots=True)
class Named:
    """A function by the name it has in `names=`."""

    noun: str
    gives_value: bool = False
    """Read as the function itself; else as its name, for `create_strategy`."""

    @property
    def what(self) -> str:
        """Its words."""
        return f"the name of a {self.noun} in names="

    def takes(self, value: object, /) -> bool:
        """Take texts."""
        return isinstance(value, str)

    def read(self, value: Any, at: Place, /) -> Any:
        """Look the name up."""
        if not self.takes(value):
            raise at.wrong(self.what, value)
        if value not in at.names:
            raise at.unknown(f"no {self.noun} is called {value!r}", value, known=at.names, there="names= has")
        return at.names[value] if self.gives_value else value

    def schema(self, names: Names, /) -> dict[str, Any]:
        """List the names, if they are known."""
        return _ANY_NAME if names is None else {"enum": sorted(names)}


_CHARS = r"^chars:(?=.*[1-9])[0-9]{1,4}(\.[0-9]{1,4})?$"
"""`chars:N` with N above 0."""


def is_counter(words: str, /) -> bool:
    """Tell whether words mean a counter in a policy."""
    return words in WORDS or re.fullmatch(_CHARS, words) is not None


class _Counter:
    """A counter in words, or by its name."""

    what = "'estimate', 'chars:N' (a token each N characters) or the name of a counter in names="

    def takes(self, value: object, /) -> bool:
        """Take texts."""
        return isinstance(value, str)

    def read(self, value: Any, at: Place, /) -> Any:
        """Make it, or look it up."""
        if self.takes(value) and value in at.names:
            return at.names[value]
        if not self.takes(value) or not is_counter(value):
            raise at.wrong(self.what, value)
        return counter_in_words(value)

    def schema(self, names: Names, /) -> dict[str, Any]:
        """List the words and names."""
        words = {"enum": [*WORDS, *sorted(names or ())]}
        ratio = {"type": "string", "pattern": _CHARS}
        return {"anyOf": [words, ratio, *([_ANY_NAME] if names is None else [])]}


class _Tier:
    """A tier by its word or its number."""

    _words = tuple(Tier.label(tier) for tier in Tier)
    what = f"{Choice(_words).what}, or a whole number"

    def takes(self, value: object, /) -> bool:
        """Take words and numbers."""
        return isinstance(value, str) or Whole(least=None).takes(value)

    def read(self, value: Any, at: Place, /) -> int:
        """Read the number of a word."""
        if isinstance(value, str) and value in self._words:
            return Tier[value.upper()]
        if isinstance(value, str) or not self.takes(value) or value % 1 != 0:
            raise at.wrong(self.what, value)
        return int(value)

    def schema(self, names: Names, /) -> dict[str, Any]:
        """List the words, and say integer."""
        return {"anyOf": [{"enum": list(self._words)}, {"type": "integer"}]}


class _Carried:
    """`cache_control`: a mapping that is handed on as it is, or the word for its type."""

    what = "a word that is not empty as 'ephemeral', or a table as {type = 'ephemeral'}"

    def takes(self, value: object, /) -> bool:
        """Take texts and mappings."""
        return isinstance(value, (str, Mapping))

    def read(self, value: Any, at: Place, /) -> Any:
        """Read it as it is."""
        if not self.takes(value) or value == "":
            raise at.wrong(self.what, value)
        return value if isinstance(value, str) else dict(value)

    def schema(self, names: Names, /) -> dict[str, Any]:
        """Say string or object."""
        return {"anyOf": [{"type": "string", "minLength": 1}, {"type": "object"}]}


_STRATEGIES = "there are, with those in names="


class _Strategy:
    """A strategy as `create_strategy` reads it: a kind, a name, or a table with `kind` and options."""

    what = f"a kind ({', '.join(StrategyKind)}), a name in names=, or a table with 'kind' and its options"

    def takes(self, value: object, /) -> bool:
        """Take texts and mappings."""
        return isinstance(value, (str, Mapping))

    def read(self, value: Any, at: Place, /) -> dict[str, Any]:
        """Check every option; what comes out is data that `create_strategy` takes."""
        if not self.takes(value):
            raise at.wrong(self.what, value)
        table: Mapping[str, Any] = {"kind": value} if isinstance(value, str) else value
        word, place = table.get("kind"), at if isinstance(value, str) else at.key("kind")
        if word is None and "kind" not in table:
            raise ConfigurationError(f"{at.path}.kind is missing: one of {', '.join(StrategyKind)}")
        if not isinstance(word, str):
            raise place.wrong(f"one of {', '.join(StrategyKind)}", word)
        if word in at.names:
            return Table(keys=_KIND).read(table, at)
        if word not in _KINDS:
            known = [*_KINDS, *at.names]
            raise place.unknown(f"no strategy is called {word!r}", word, known=known, there=_STRATEGIES)
        return OPTIONS[_KINDS[word]].read(table, at)

    def schema(self, names: Names, /) -> dict[str, Any]:
        """Point to the one definition, since steps of a cascade are strategies again."""
        return {"$ref": "#/$defs/strategy"}

    def definition(self, names: Names, /) -> dict[str, Any]:
        """List the words and, for each kind, its options."""
        alone = [word for word, kind in _KINDS.items() if OPTIONS[kind].required == ("kind",)]
        words = [{"enum": [*alone, *sorted(names or ())]}, *([_ANY_NAME] if names is None else [])]
        tables = [
            _variant(table, [word for word in _KINDS if _KINDS[word] is kind], names)
            for kind, table in OPTIONS.items()
        ]
        if names:
            tables.append(_variant(Table(keys=_KIND, required=("kind",)), sorted(names), names))
        return {"anyOf": [*words, *tables]}


def _variant(table: Table, words: list[str], names: Names) -> dict[str, Any]:
    """Give the schema of a table whose `kind` is one of some words."""
    written = table.schema(names)
    kind = {**written["properties"]["kind"], "enum": words}
    return {**written, "properties": {**written["properties"], "kind": kind}}


STRATEGY = _Strategy()

_KIND: Mapping[str, Key] = {"kind": Key(Text(), "Which strategy it is.")}


def _options(required: tuple[str, ...] = (), /, **keys: Key) -> Table:
    return Table(keys={**_KIND, **keys}, required=("kind", *required))


OPTIONS: Mapping[StrategyKind, Table] = {
    StrategyKind.SLIDING_WINDOW: _options(
        protect_roles=Key(
            Items(of=Text(may_be_empty=True), noun="a list of roles"), "Messages of these roles never leave."
        ),
        keep_turns=Key(Flag(), "A user message and what answers it leave together.", False),
        keep_first_user=Key(Flag(), "The first user message stays.", False),
        min_messages=Key(Whole(), "Fewer messages than this left: all that may leave do.", 0),
        target_ratio=Key(
            Number(above=0, most=1),
            "Below 1 the cut moves in strides of (1 - target_ratio) of the limit, for prompt caches.",
            1.0,
        ),
    ),
    StrategyKind.PRIORITY_BASED: _options(
        score=Key(Named("score"), "Function that says how much a message is worth; its name in names=.")
    ),
    StrategyKind.STRICT: _options(),
    StrategyKind.DROP: _options(),
    StrategyKind.DROP_NEWEST: _options(),
    StrategyKind.TRUNCATE_TEXT: _options(
        keep=Key(
            Choice(("auto", "end", "start", "both")),
            "Which part of a text stays; auto: both ends of tool results, else the end.",
            "auto",
        )
    ),
    StrategyKind.CLEAR_TOOL_RESULTS: _options(
        keep_results=Key(Whole(), "The newest results that are left alone.", 3),
        clear_at_least_tokens=Key(Whole(), "Once it clears, go on until so many tokens are gone.", 0),
        exclude_tools=Key(
            Items(of=Text(may_be_empty=True), noun="a list of names of tools"),
            "Tools whose results are left alone.",
        ),
        placeholder=Key(
            Text(may_be_empty=True), "Text that stands for a cleared result.", DEFAULT_PLACEHOLDER
        ),
    ),
    StrategyKind.CASCADE: _options(
        ("steps",),
        steps=Key(Items(of=STRATEGY, least=1, noun="a list of strategies"), "Strategies, cheapest first."),
    ),
    StrategyKind.SUMMARIZE: _options(
        ("summarizer",),
        summarizer=Key(Named("summarizer"), "What writes the summary; its name in names=."),
        max_summary_tokens=Key(
            Either((Whole(least=1), Null())),
            "Cap of the summary in tokens; left out or null: 0.3 of the limit.",
        ),
        role=Key(Choice(("user", "system", "developer", "assistant")), "Role of the summary.", "user"),
        fallback=Key(
            STRATEGY, "What evicts where no summary can be used.", StrategyKind.SLIDING_WINDOW.value
        ),
    ),
}
"""Options of each kind of strategy; `strategies/_data.py` has the same keys, which a test holds."""

_KINDS: Mapping[str, StrategyKind] = {**{kind.value: kind for kind in OPTIONS}, **ALIASES}
"""Every word for a strategy, and the kind it means."""

_BUDGET = Table(
    keys={
        "window": Key(Whole(least=1), "Most tokens the model takes, input and output together."),
        "output_reserve": Key(Whole(), "Tokens kept free for the answer.", 0),
        "overhead_tokens": Key(Whole(), "Tokens that something else adds to every request.", 0),
        "margin": Key(
            Either((Whole(), Choice(("auto",)))),
            "Tokens kept free because counts may be too low; auto: as many as the counter may be off by.",
            0,
        ),
    },
    required=("window",),
)

_DEFAULTS: Mapping[str, Any] = {one.name: one.default for one in fields(Block) if one.name != "name"}


def _block_key(name: str, kind: Kind, about: str) -> Key:
    return Key(kind, about, _DEFAULTS[name])


_BLOCK = Table(
    keys={
        "name": Key(Text(noun="a name"), "Its word in reports and errors; once a policy."),
        "priority": _block_key("priority", Number(), "Rank: blocks of a higher one are served first."),
        "position": _block_key(
            "position", Number(), "Place in the request; left out: after all that have one."
        ),
        "tier": _block_key("tier", _Tier(), "Rank and place in one; lower is served first and stands first."),
        "min_tokens": _block_key("min_tokens", Whole(), "Floor: tokens kept for it."),
        "max_tokens": _block_key("max_tokens", Whole(), "Cap, also when everything would fit."),
        "min_ratio": _block_key("min_ratio", Number(least=0, most=1), "Floor as a part of the input room."),
        "max_ratio": _block_key("max_ratio", Number(least=0, most=1), "Cap as a part of the input room."),
        "share": _block_key("share", Number(above=0), "How blocks of one rank divide what is left."),
        "role": _block_key("role", Text(noun="a role"), "Role of all its messages."),
        "strategy": _block_key("strategy", STRATEGY, "How it gives way."),
        "trim_behavior": _block_key(
            "trim_behavior", Choice(get_args(TrimBehavior)), "By whole messages, or by cutting their text."
        ),
        "pinned": _block_key("pinned", Flag(), "True: it stays whole, and its cap does not lower that."),
        "cache_control": _block_key("cache_control", _Carried(), "Carried to its last message that stays."),
        "join": _block_key(
            "join", Text(may_be_empty=True), "Text between documents that become one message."
        ),
        "wrap": _block_key("wrap", Text(noun="the name of an element"), "Element each of them stands in."),
        "on_trim": _block_key(
            "on_trim",
            Named("callback", gives_value=True),
            "Called before anything is decided; a name in names=.",
        ),
    },
    required=("name",),
    also={
        "if": {"required": ["tier"]},
        "then": {"properties": {"position": False, "priority": {"const": 0}}},
        "not": {"required": ["strategy", "trim_behavior"]},
    },
)

POLICY = Table(
    noun="a table",
    keys={
        "schema": Key(Choice((VERSION,)), "The shape of this file.", VERSION),
        "model": Key(Text(noun="the name of a model"), "For its tokenizer, window and wire form."),
        "counter": Key(
            _Counter(), "What counts tokens; left out: the tokenizer of the model, or an estimate."
        ),
        "format": Key(Choice(("auto", *formats())), "Wire form of the messages.", "auto"),
        "ties": Key(Choice(get_args(Ties)), "Which of two blocks of one rank keeps its content."),
        "on_trim": Key(
            Named("callback", gives_value=True), "Called before anything is decided; a name in names=."
        ),
        "strict": Key(Flag(), "True: what a provider would refuse in the input is an error.", False),
        "budget": Key(
            Either((Whole(least=1), _BUDGET)),
            "Room in tokens; left out: the model's window less its output limit.",
        ),
        "blocks": Key(
            Items(
                of=_BLOCK,
                noun="a list of blocks",
                also={
                    "anyOf": [{"items": {"required": ["tier"]}}, {"items": {"not": {"required": ["tier"]}}}]
                },
            ),
            "The parts of the request, in the order in which they stand.",
        ),
        "$schema": Key(Text(may_be_empty=True), "Where editors find the schema of this file."),
    },
)
"""The whole of it."""

DEFINITIONS = {"strategy": STRATEGY.definition}
"""What the schema refers to by name."""
