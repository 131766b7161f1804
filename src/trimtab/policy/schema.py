"""What may stand in a policy: how each key is read, and what JSON Schema says of it.

Keys, their defaults and most kinds of values come from the dataclasses: `Block`, `Budget` and the strategies;
what an editor shows of a key is what the docstring says. Here stand the kinds of those values whose type does
not say all, and the keys of the policy itself. A value is read by the very rule that is published, so that
the schema cannot promise what is then refused.
"""

from __future__ import annotations

import inspect
import math
import re
import reprlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from types import NoneType
from typing import Any, Literal, TypeAlias, get_args, get_origin, get_type_hints

from trimtab._fitting.allocation import Ties
from trimtab._fitting.blocks import Block, Tier
from trimtab._shared.checks import unknown_name
from trimtab._shared.options import Check, OneOf, Whole, about_options
from trimtab._shared.plugins import plugin_names
from trimtab.budget import WORDS_PATTERN, Budget, is_words
from trimtab.compact.options import JSON_FORMS, Compact
from trimtab.counting.door import WORDS, as_counter, counter_in_words
from trimtab.errors import (
    IN_NAMES,
    NAMES_HAS,
    ConfigurationError,
    UnknownNameError,
    phrase,
)
from trimtab.formats import formats
from trimtab.models import CachePricing
from trimtab.strategies import Strategy, StrategyKind
from trimtab.strategies.data import ALIASES, CLASSES, PRESETS, option_names
from trimtab.strategies.results import KEEPS
from trimtab.strategies.scores import SCORE_NAMES, Weights

Names = Collection[str] | None
"""Names that may be used in a policy; None: not known, so that any word may be one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where in a policy a value stands, and the names that may be used there."""

    path: str = ""
    """As in `blocks[2].max_ratio`; empty for the policy itself."""
    names: Mapping[str, object] = field(default_factory=dict[str, object])

    def key(self, key: str, /) -> Place:
        """Go to a value below this one."""
        return Place(path=f"{self.path}.{key}" if self.path else key, names=self.names)

    def item(self, index: int, /) -> Place:
        """Go to an item of the list here."""
        return Place(path=f"{self.path}[{index}]", names=self.names)

    @property
    def argument(self) -> str | None:
        """The key that stands last; None for the policy itself."""
        return self.path.rpartition(".")[2].partition("[")[0] or None

    def wrong(self, what: str, value: object, /) -> ConfigurationError:
        """Make the error for a value that is not what it should be."""
        return ConfigurationError(
            phrase(f"{self.path or 'a policy'} is ", what, f", not {reprlib.repr(value)}"),
            argument=self.argument,
            place=self.path or None,
        )

    def unknown(
        self,
        what: str,
        name: object,
        /,
        *,
        known: Collection[str],
        there: str,
        argument: str | None = None,
    ) -> UnknownNameError:
        """Make the error for a name nobody knows, with those `there` are and the ones spelled like it."""
        where = f"{self.path}: " if self.path else ""
        return unknown_name(
            phrase(f"{where}{what}; ", there, f": {', '.join(known) or 'none'}"),
            name,
            known,
            argument=argument or self.argument,
            place=self.path or None,
        )


# Rules: the part of JSON Schema that says what a single value may be.

Rule = Mapping[str, Any]
Data: TypeAlias = dict[str, Any]
"""A table that was read."""

Schema: TypeAlias = Data
"""A rule that is being written."""


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_TYPES: Mapping[str, Callable[[object], bool]] = {
    "boolean": lambda value: isinstance(value, bool),
    "integer": _is_number,
    "null": lambda value: value is None,
    "number": _is_number,
    "object": lambda value: isinstance(value, Mapping),
    "string": lambda value: isinstance(value, str),
}


def _is_typed(rule: Rule, value: object) -> bool:
    """Tell whether a value is of the type of a rule, whatever its range: this chooses among several kinds."""
    words = rule.get("enum")
    kind = rule["type"] if words is None else "string" if isinstance(words[0], str) else "number"
    return _TYPES[kind](value)


def _keeps(rule: Rule, value: Any) -> bool:
    if "anyOf" in rule:
        return any(_keeps(one, value) for one in rule["anyOf"])
    if not _is_typed(rule, value):
        return False
    if "enum" in rule:
        return value in rule["enum"]
    if _is_number(value):
        whole_or_finite = value % 1 == 0 if rule["type"] == "integer" else _is_finite(value)
        least, most = rule.get("minimum", -math.inf), rule.get("maximum", math.inf)
        above, below = rule.get("exclusiveMinimum", -math.inf), rule.get("exclusiveMaximum", math.inf)
        return whole_or_finite and least <= value <= most and above < value < below
    return bool(value) or not rule.get("minLength")


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an int that no float holds
        return False


# Kinds: what a value is read as, in words and in JSON Schema.


_Kind: TypeAlias = (
    "_Value | _Either | _Items | _Named | _Score | _MustKeep | _Keep | _Counter | _Strategy | Table"
)
"""`what` are its words behind "is"; `read` makes of a value what Python has, and `schema` says the same."""


@dataclass(frozen=True, slots=True)
class _Value:
    """A single value: one rule, the words for it, and what Python makes of it."""

    what: str
    rule: Rule
    make: Callable[[Any], Any] = lambda value: value

    def takes(self, value: object, /) -> bool:
        return _is_typed(self.rule, value)

    def read(self, value: object, at: Place, /) -> Any:
        if not _keeps(self.rule, value):
            raise at.wrong(self.what, value)
        return self.make(value)

    def schema(self, names: Names, /) -> Schema:
        return dict(self.rule)


def _whole(least: int) -> _Value:
    """A whole number; 10.0 is one, as in JSON Schema."""
    return _Value(f"a whole number of at least {least}", {"type": "integer", "minimum": least}, int)


def _text(noun: str) -> _Value:
    return _Value(f"{noun} that is not empty", {"type": "string", "minLength": 1})


def _choice(*words: str | int) -> _Value:
    *most, last = map(repr, words)
    return _Value(f"{', '.join(most)} or {last}" if most else last, {"enum": list(words)})


_FLAG = _Value("true or false", {"type": "boolean"})
_NUMBER = _Value("a finite number", {"type": "number"})
_RATIO = _Value("a number from 0 to 1", {"type": "number", "minimum": 0, "maximum": 1})
_FRACTION = _Value("a number above 0 and at most 1", {"type": "number", "exclusiveMinimum": 0, "maximum": 1})
_ANY_TEXT = _Value("a text", {"type": "string"})


@dataclass(frozen=True, slots=True)
class _Either:
    """The first of these kinds whose type a value is of."""

    kinds: tuple[_Value | Table, ...]

    @property
    def what(self) -> str:
        return ", or ".join(kind.what for kind in self.kinds)

    def read(self, value: object, at: Place, /) -> Any:
        for kind in self.kinds:
            if kind.takes(value):
                return kind.read(value, at)
        raise at.wrong(self.what, value)

    def schema(self, names: Names, /) -> Schema:
        return {"anyOf": [kind.schema(names) for kind in self.kinds]}


@dataclass(frozen=True, slots=True)
class _Items:
    """A list, all items of one kind."""

    noun: str
    of: _Kind
    least: int = 0
    also: Rule = field(default_factory=dict[str, object])
    """Rules between the items, for the schema: whoever makes the objects holds them to these."""

    @property
    def what(self) -> str:
        return self.noun if not self.least else f"{self.noun}, at least {self.least} long"

    def read(self, value: object, at: Place, /) -> list[Any]:
        is_text = isinstance(value, (str, bytes, bytearray))
        if not isinstance(value, Sequence) or is_text or len(value) < self.least:
            raise at.wrong(self.what, value)
        return [self.of.read(item, at.item(index)) for index, item in enumerate(value)]

    def schema(self, names: Names, /) -> Schema:
        least = {"minItems": self.least} if self.least else {}
        return {"type": "array", "items": self.of.schema(names), **least, **self.also}


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a table."""

    kind: _Kind
    about: str
    """What editors show."""
    default: Any = None
    """What holds where the key is left out; None: nothing that could be written."""
    required: bool = False

    def schema(self, names: Names, /) -> Schema:
        """Give its schema, with description and default."""
        default = {} if self.default is None else {"default": self.default}
        return {"description": self.about, **default, **self.kind.schema(names)}


@dataclass(frozen=True, slots=True)
class Table:
    """A mapping with known keys."""

    keys: Mapping[str, Key]
    also: Rule = field(default_factory=dict[str, object])
    """Rules between the keys, for the schema: whoever makes the object holds it to these."""
    made: type | None = None
    """The class whose arguments these are."""

    @property
    def required(self) -> list[str]:
        """The keys that must be there."""
        return [key for key, one in self.keys.items() if one.required]

    @property
    def what(self) -> str:
        """Its words."""
        return f"a table with {', '.join(self.required)}" if self.required else "a table"

    def takes(self, value: object, /) -> bool:
        """Tell whether a value is a table at all."""
        return isinstance(value, Mapping)

    def read(self, value: object, at: Place, /) -> Data:
        """Read every key; one that nobody knows, or that is needed and missing, is an error."""
        if not isinstance(value, Mapping):
            raise at.wrong(self.what, value)
        for key in value:
            if key not in self.keys:
                what, there = f"no key is called {key!r}", "the keys are"
                raise at.unknown(what, key, known=self.keys, there=there, argument=str(key))
        for key in self.required:
            if key not in value:
                place = at.key(key).path
                raise ConfigurationError(
                    phrase(f"{place} is missing: ", self.keys[key].kind.what), argument=key, place=place
                )
        return {key: self.keys[key].kind.read(value[key], at.key(key)) for key in value}

    def schema(self, names: Names, /) -> Schema:
        """Say object and its properties."""
        return {
            "type": "object",
            "properties": {key: one.schema(names) for key, one in self.keys.items()},
            "additionalProperties": False,
            **({"required": self.required} if self.required else {}),
            **self.also,
        }


_WEIGHTS = Table(
    {
        name: Key(
            _Value("a finite number above 0", {"type": "number", "exclusiveMinimum": 0}),
            "How much it counts beside the others.",
        )
        for name in SCORE_NAMES
    }
)

# Kinds that depend on the names a policy may use.

_ANY_NAME = {"type": "string", "minLength": 1}
"""Stands for names in a schema made without them, as for an editor."""


@dataclass(frozen=True, slots=True)
class _Named:
    """A function by the name it has in `names=`."""

    noun: str
    gives_value: bool = False
    """Read as the function itself; else as its name, for `create_strategy`."""

    @property
    def what(self) -> str:
        return phrase(f"the name of a {self.noun}", IN_NAMES)

    def read(self, value: object, at: Place, /) -> Any:
        if not isinstance(value, str):
            raise at.wrong(self.what, value)
        if self.noun == "summarizer" and value not in at.names and value in plugin_names("summarizers"):
            return value
        if value not in at.names:
            raise at.unknown(
                f"no {self.noun} is called {value!r}", value, known=at.names, there=phrase(NAMES_HAS)
            )
        return at.names[value] if self.gives_value else value

    def schema(self, names: Names, /) -> Schema:
        return dict(_ANY_NAME) if names is None else {"enum": sorted(names)}


_CHARS = r"^chars:(?=.*[1-9])[0-9]{1,4}(\.[0-9]{1,4})?$"
"""`chars:N` with N above 0."""


def is_counter(words: str, /) -> bool:
    """Tell whether words mean a counter in a policy."""
    return words in WORDS or re.fullmatch(_CHARS, words) is not None


class _Score:
    """What a message is worth: a word, a table of words with weights, or the name of a function."""

    what = phrase(
        f"one of {', '.join(SCORE_NAMES)}, a table of these with weights, or the name of a score", IN_NAMES
    )

    def read(self, value: object, at: Place, /) -> Any:
        """Check every word and weight; what comes out is data that `create_strategy` takes."""
        if isinstance(value, str):
            known = [*SCORE_NAMES, *at.names]
            if value not in known:
                there = phrase("there are, with those", IN_NAMES)
                raise at.unknown(f"no score is called {value!r}", value, known=known, there=there)
            return value
        if not isinstance(value, Mapping) or not value:
            raise at.wrong(self.what, value)
        return _WEIGHTS.read(value, at)

    def schema(self, names: Names, /) -> Schema:
        """List the words, and say what a weight is."""
        words = {"enum": [*SCORE_NAMES, *sorted(names or ())]}
        named = [dict(_ANY_NAME)] if names is None else []
        return {"anyOf": [words, {**_WEIGHTS.schema(names), "minProperties": 1}, *named]}


@dataclass(frozen=True, slots=True)
class _MustKeep:
    """What summaries must keep: values, what a pattern matches, or what a function lists, by its name."""

    takes_names: bool = True
    """Whether functions have names where it stands."""

    @property
    def what(self) -> str:
        """Its words."""
        named = phrase("the name of a function", IN_NAMES, ", ") if self.takes_names else ""
        return phrase("'values', ", named, "a table with 'pattern' and 'flags', or 'none'")

    def read(self, value: object, at: Place, /) -> Any:
        """Check it; what comes out is data that `create_strategy` and `Session` take."""
        if value is None or value == "none":
            return None  # TOML has no null
        if value == "values" or (self.takes_names and isinstance(value, str) and value in at.names):
            return value
        if isinstance(value, Mapping):
            return _PATTERN.read(value, at)
        raise at.wrong(self.what, value)

    def schema(self, names: Names, /) -> Schema:
        """List the words, and say what a pattern is."""
        there = sorted(names or ()) if self.takes_names else []
        named = [dict(_ANY_NAME)] if names is None and self.takes_names else []
        words = {"enum": list(dict.fromkeys(("values", "none", *there)))}
        return {"anyOf": [words, _PATTERN.schema(names), {"type": "null"}, *named]}


_PATTERN = Table(
    {
        "pattern": Key(_text("a regular expression"), "What it matches must be kept.", required=True),
        "flags": Key(
            _Value("letters of 'aimsx'", {"type": "string", "pattern": "^[aimsx]*$"}),
            "Flags of the pattern, as in (?i).",
        ),
    }
)


class _Keep:
    """What stays of a result that is cut: a word, or a table of these by the names of tools."""

    what = "'start', 'both' or 'end', or a table of these by the names of tools"
    _word = _choice(*KEEPS)

    def read(self, value: object, at: Place, /) -> Any:
        if not isinstance(value, Mapping):
            if not isinstance(value, str) or value not in KEEPS:
                raise at.wrong(self.what, value)
            return value
        if not all(isinstance(name, str) and name for name in value):
            raise at.wrong(self.what, value)
        return {name: self._word.read(keep, at.key(name)) for name, keep in value.items()}

    def schema(self, names: Names, /) -> Schema:
        """List the words, and say that names may be any."""
        word, named = self._word.schema(names), {"minLength": 1}
        return {"anyOf": [word, {"type": "object", "additionalProperties": {**word}, "propertyNames": named}]}


class _Counter:
    """A counter in words, or by its name."""

    what = phrase("'estimate', 'chars:N' (a token each N characters) or the name of a counter", IN_NAMES)

    def read(self, value: object, at: Place, /) -> Any:
        if isinstance(value, str) and value in at.names:
            return at.names[value]
        if isinstance(value, str) and not is_counter(value) and value in plugin_names("counters"):
            return as_counter(value)
        if not isinstance(value, str) or not is_counter(value):
            raise at.wrong(self.what, value)
        return counter_in_words(value)

    def schema(self, names: Names, /) -> Schema:
        words = {"enum": [*WORDS, *sorted(names or ())]}
        ratio = {"type": "string", "pattern": _CHARS}
        return {"anyOf": [words, ratio, *([dict(_ANY_NAME)] if names is None else [])]}


class _Strategy:
    """A strategy as `create_strategy` reads it: a kind, a name, or a table with `kind` and options."""

    what = phrase(
        f"a kind ({', '.join((*StrategyKind, *PRESETS))}), a name",
        IN_NAMES,
        ", or a table with 'kind' and its options",
    )

    def read(self, value: object, at: Place, /) -> Data:
        """Check every option; what comes out is data that `create_strategy` takes."""
        if not isinstance(value, (str, Mapping)):
            raise at.wrong(self.what, value)
        table: Mapping[str, object] = {"kind": value} if isinstance(value, str) else value
        place = at if isinstance(value, str) else at.key("kind")
        kinds = f"one of {', '.join((*StrategyKind, *PRESETS))}"
        if "kind" not in table:
            raise ConfigurationError(
                f"{at.path}.kind is missing: {kinds}", argument="kind", place=at.key("kind").path
            )
        word = table["kind"]
        if not isinstance(word, str):
            raise place.wrong(kinds, word)
        if word in at.names or word in PRESETS:
            return _WITHOUT_OPTIONS.read(table, at)
        if word not in _KINDS and word in plugin_names("strategies"):
            return dict(table)  # what made it knows its options
        if word not in _KINDS:
            known, there = [*_KINDS, *PRESETS, *at.names], phrase("there are, with those", IN_NAMES)
            raise place.unknown(f"no strategy is called {word!r}", word, known=known, there=there)
        return OPTIONS[_KINDS[word]].read(table, at)

    def schema(self, names: Names, /) -> Schema:
        """Point to the one definition, since steps of a cascade are strategies again."""
        return {"$ref": "#/$defs/strategy"}

    def definition(self, names: Names, /) -> Schema:
        """List the words and, for each kind, its options."""
        alone = [word for word, kind in _KINDS.items() if kind not in _NEEDY]
        words: list[Schema] = [{"enum": list(dict.fromkeys((*alone, *PRESETS, *sorted(names or ()))))}]
        words += [dict(_ANY_NAME)] if names is None else []
        tables = {kind: [word for word in _KINDS if _KINDS[word] is kind] for kind in OPTIONS}
        variants = [_variant(OPTIONS[kind], spelled, names) for kind, spelled in tables.items()]
        named = [_variant(_WITHOUT_OPTIONS, list(dict.fromkeys((*PRESETS, *sorted(names or ())))), names)]
        return {"anyOf": [*words, *variants, *named]}


def _variant(table: Table, words: list[str], names: Names) -> Schema:
    """Give the schema of a table whose `kind` is one of some words."""
    schema = table.schema(names)
    schema["properties"]["kind"]["enum"] = words
    return schema


STRATEGY = _Strategy()


# Keys of the dataclasses: a field that has words is a key, with the default it has there.

_BY_TYPE: Mapping[object, _Kind] = {
    bool: _FLAG,
    int: _whole(0),
    float: _NUMBER,
    str: _ANY_TEXT,
    Strategy: STRATEGY,
}


def _kind(hint: object) -> _Kind:
    """Return the kind of value that a type says; None is written by leaving the key out."""
    if get_origin(hint) is Literal:
        return _choice(*get_args(hint))
    if get_origin(hint) is tuple:
        return _Items("a list", _kind(get_args(hint)[0]))
    types = [one for one in get_args(hint) if one is not NoneType] or [hint]
    if float in types:
        return _NUMBER
    if len(types) > 1:
        return _Either(tuple(kind for kind in map(_kind, types) if isinstance(kind, _Value)))
    return _BY_TYPE[hint] if types == [hint] else _kind(types[0])


_ARGUMENT = re.compile(r"^    (\w+): (.+(?:\n {8}.+)*)", re.M)


def _without_none(about: str, kind: _Kind) -> str:
    """Say how a policy has what is None in Python: it leaves it out, or has a word for it."""
    return re.sub(r"\bNone\b", '"none"' if "'none'" in kind.what else "left out", about)


def _keys(made: type, names: Collection[str], /, kinds: Mapping[str, _Kind]) -> dict[str, Key]:
    """Make keys of these fields of a dataclass, in the words of its docstring."""
    # Without docstrings (python -OO) an editor shows no words.
    words = {name: " ".join(text.split()) for name, text in _ARGUMENT.findall(inspect.getdoc(made) or "")}
    hints = get_type_hints(made)
    keys: dict[str, Key] = {}
    for one in fields(made):
        if one.name in names:
            kind = kinds.get(one.name) or _kind(hints[one.name])
            about = _without_none(words.get(one.name, ""), kind)
            about += " Its name in names=." if isinstance(kind, _Named) else ""
            default = one.default.name if isinstance(one.default, (Strategy, CachePricing)) else one.default
            default = default.to_data() if isinstance(default, Weights) else default
            plain = default if isinstance(default, (str, int, float, dict)) else None
            keys[one.name] = Key(kind, about, plain, required=one.default is MISSING)
    return keys


def _options(kind: StrategyKind) -> Table:
    made = CLASSES[kind]
    if kind is StrategyKind.CASCADE:
        return Table({**_WITHOUT_OPTIONS.keys, "steps": _STEPS}, made=made)
    keys = _keys(made, option_names(kind), _KINDS_OF_OPTIONS.get(kind, {}))
    return Table({**_WITHOUT_OPTIONS.keys, **keys}, also=_BETWEEN_OPTIONS.get(kind, {}), made=made)


_WITHOUT_OPTIONS = Table({"kind": Key(_text("a text"), "Which strategy it is.", required=True)})
_STEPS = Key(_Items("a list of strategies", STRATEGY, least=1), "Strategies, cheapest first.", required=True)

_NULL = _Value("null", {"type": "null"})
_AMOUNT = _Value("a number of at least 0", {"type": "number", "minimum": 0})
_TIER = _Items("a list of three numbers: tokens, and how many times the prices of input and output", _NUMBER)
_PRICING = Table(
    _keys(
        CachePricing,
        [one.name for one in fields(CachePricing)],
        {
            **dict.fromkeys(("read", "write", "base"), _AMOUNT),
            **dict.fromkeys(("output", "lifetime_seconds"), _Either((_AMOUNT, _NULL))),
            "granularity_tokens": _whole(1),
            "max_breakpoints": _Either((_whole(1), _NULL)),
            "tiers": _Items("a list of tiers, each [above_tokens, input, output]", _TIER),
        },
    )
)

_KINDS_OF_OPTIONS: Mapping[StrategyKind, Mapping[str, _Kind]] = {
    StrategyKind.SLIDING_WINDOW: {
        "protect_roles": _Items("a list of roles", _ANY_TEXT),
        "target_ratio": _FRACTION,
    },
    StrategyKind.CHEAPEST: {
        "pricing": _Either((_text("the name of a pricing or of a model"), _PRICING)),
        "room_weight": _Value("a number above 0", {"type": "number", "exclusiveMinimum": 0}),
        "expected_calls": _Either((_whole(1), _NULL)),
    },
    StrategyKind.CLAMP_RESULTS: {"max_tokens": _whole(1), "max_ratio": _FRACTION, "keep": _Keep()},
    StrategyKind.PRIORITY_BASED: {"score": _Score()},
    StrategyKind.RELEVANT: {"score": _Score(), "recent_ratio": _RATIO, "gap": _text("a text")},
    StrategyKind.CLEAR_TOOL_RESULTS: {
        "exclude_tools": _Items("a list of names of tools", _ANY_TEXT),
        "target_ratio": _FRACTION,
    },
    StrategyKind.SUMMARIZE: {
        "summarizer": _Named("summarizer"),
        "max_summary_tokens": _Either((_whole(1), _NULL)),
        "role": _choice("user", "system", "developer", "assistant"),
        "must_keep": _MustKeep(),
    },
}
"""Of the options whose type does not say all."""

_BETWEEN_OPTIONS: Mapping[StrategyKind, Rule] = {
    StrategyKind.CLAMP_RESULTS: {"oneOf": [{"required": ["max_tokens"]}, {"required": ["max_ratio"]}]}
}
"""Rules between options: the class holds whoever makes one to these."""

OPTIONS: Mapping[StrategyKind, Table] = {kind: _options(kind) for kind in CLASSES}
"""Options of each kind of strategy."""

_NEEDY = {kind for kind, table in OPTIONS.items() if table.required != ["kind"] or table.also}
"""Kinds that say nothing alone."""

_KINDS: Mapping[str, StrategyKind] = {**{kind.value: kind for kind in OPTIONS}, **ALIASES}
"""Every word for a strategy, and the kind it means."""

_BUDGET = Table(_keys(Budget, [one.name for one in fields(Budget)], {"window": _whole(1)}))


class _Room(_Value):
    """A text that means a budget."""

    def read(self, value: object, at: Place, /) -> Any:
        if not isinstance(value, str) or not is_words(value):
            raise at.wrong(self.what, value)
        return value


_ROOM = _Room(
    "a text as '8k', '80%' of what the model takes of input, or 'tier'",
    {"type": "string", "pattern": WORDS_PATTERN},
)

_TIERS = [Tier.label(tier) for tier in Tier]


@dataclass(frozen=True, slots=True)
class _CompactTable(Table):
    """Options of `Compact`."""

    def read(self, value: object, at: Place, /) -> Any:
        return Compact(**Table.read(self, value, at))


_COMPACT = _Either(
    (
        _FLAG,
        _CompactTable(
            {
                "repeats": Key(_FLAG, "Whether lines of an earlier result become a reference.", True),
                "json": Key(
                    _Value(
                        "'tight', 'table' or 'none'",
                        {"enum": [*JSON_FORMS, "none"]},
                        lambda word: None if word == "none" else word,  # TOML has no null
                    ),
                    "How JSON is written: without spaces, lists of like objects as tables, or as it is.",
                    "tight",
                ),
                "min_lines": Key(_whole(1), "The fewest lines that become a reference.", 3),
                "min_tokens": Key(_whole(0), "The fewest tokens that these lines have.", 20),
                "exclude_tools": Key(
                    _Items("a list of names of tools", _ANY_TEXT), "Tools whose results are sent as they are."
                ),
            },
            made=Compact,
        ),
    )
)
"""How results are written."""

_KINDS_OF_BLOCKS: Mapping[str, _Kind] = {
    "name": _text("a name"),
    "strategy": STRATEGY,
    "tier": _Value(
        f"{_choice(*_TIERS).what}, or a whole number",
        {"anyOf": [{"enum": _TIERS}, {"type": "integer"}]},
        lambda value: Tier[value.upper()] if isinstance(value, str) else int(value),
    ),
    "min_ratio": _RATIO,
    "max_ratio": _RATIO,
    "share": _Value("a number above 0", {"type": "number", "exclusiveMinimum": 0}),
    "role": _text("a role"),
    "cache_control": _Value(
        "a word that is not empty as 'ephemeral', or a table as {type = 'ephemeral'}",
        {"anyOf": [{"type": "string", "minLength": 1}, {"type": "object"}]},
        lambda value: value if isinstance(value, str) else dict(value),
    ),
    "wrap": _text("the name of an element"),
    "compact": _COMPACT,
    "on_trim": _Named("callback", gives_value=True),
}
_CONTENT = ("content", "labels")
"""What a request says is no part of a policy."""

_BLOCK = Table(
    _keys(Block, [one.name for one in fields(Block) if one.name not in _CONTENT], _KINDS_OF_BLOCKS),
    also={
        "if": {"required": ["tier"]},
        "then": {"properties": {"position": False, "priority": {"const": 0}}},
        "not": {"required": ["strategy", "trim_behavior"]},
    },
)

_MARKS = _Value(
    "true, false or a table as {type = 'ephemeral', ttl = '1h'}",
    {"anyOf": [{"type": "boolean"}, {"type": "object", "minProperties": 1}]},
    lambda value: value if isinstance(value, bool) else dict(value),
)

VERSION = 1
"""Of the shape of a policy; another number is for a shape that today's trimtab would misread."""

_RULES = _Items("a list of rules", _Value("a text with a word", {"type": "string", "pattern": "\\S"}))

POLICY = Table(
    {
        "schema": Key(_choice(VERSION), "The shape of this file.", VERSION),
        "model": Key(_text("the name of a model"), "For its tokenizer, window and wire form."),
        "counter": Key(
            _Counter(), "What counts tokens; left out: the tokenizer of the model, or an estimate."
        ),
        "format": Key(_choice("auto", *formats()), "Wire form of the messages.", "auto"),
        "charge_as": Key(
            _choice(*formats()), "Wire form they are sent in, where a framework writes them anew."
        ),
        "ties": Key(_kind(Ties), "Which of two blocks of one rank keeps its content."),
        "on_trim": Key(
            _Named("callback", gives_value=True), "Called before anything is decided; a name in names=."
        ),
        "origin": Key(
            _Named("origin function", gives_value=True),
            "Says of a message that it has less say than its role; a name in names=.",
        ),
        "rules": Key(
            _RULES,
            "Shown always, word for word, in one message behind the system text.",
        ),
        "compact": Key(
            _COMPACT,
            "How results of tools are written: repeats of earlier results as references, JSON tight.",
            False,
        ),
        "strict": Key(_FLAG, "True: what a provider would refuse in the input is an error.", False),
        "breakpoints": Key(
            _MARKS,
            "True: what comes out is marked for the provider's prompt cache; a table is the mark itself.",
            False,
        ),
        "budget": Key(
            _Either((_whole(1), _BUDGET, _ROOM)),
            "Room in tokens; left out: the model's window less its output limit.",
        ),
        "blocks": Key(
            _Items(
                "a list of blocks",
                _BLOCK,
                also={
                    "anyOf": [{"items": {"required": ["tier"]}}, {"items": {"not": {"required": ["tier"]}}}]
                },
            ),
            "The parts of the request, in the order in which they stand.",
        ),
        "$schema": Key(_ANY_TEXT, "Where editors find the schema of this file."),
    }
)
"""The whole of it."""

_KINDS_OF_SESSIONS: Mapping[str, _Kind] = {
    "recall_ratio": _Value(
        "a number from 0 to below 1", {"type": "number", "minimum": 0, "exclusiveMaximum": 1}
    ),
    "target_ratio": _FRACTION,
    "strategy": STRATEGY,
    "breakpoints": _MARKS,
    "max_result_ratio": _Either(
        (
            _Value(
                "'auto' or 'none'",
                {"enum": ["auto", "none"]},
                lambda word: None if word == "none" else word,  # TOML has no null
            ),
            _FRACTION,
        )
    ),
    "summarizer": _choice("extractive"),
    "must_keep": _MustKeep(takes_names=False),
    "compact": _COMPACT,
    "rules": _RULES,
    "find_rules": _choice("auto", "all", "off"),
    "max_kept_ratio": _FRACTION,
}
"""Of the options of sessions, which replays make of data, those whose type and check do not say all."""


def _kind_of_check(check: Check | None) -> _Kind | None:
    match check:
        case Whole(least):
            return _whole(least)
        case OneOf(words):
            return _choice(*words)
        case _:
            return None


def session_table(made: type, /) -> Table:
    """Make the keys of a session of the class of its options: those that a policy may hold."""
    told = {name: about for name, about in about_options(made).items() if about.policy}
    by_check = {name: kind for name, about in told.items() if (kind := _kind_of_check(about.check))}
    return Table(
        {
            "kind": Key(_choice("session"), "Of these options a session is made.", required=True),
            **_keys(made, told, {**by_check, **_KINDS_OF_SESSIONS}),
            "$schema": Key(_ANY_TEXT, "Where editors find the schema of this file."),
        },
        made=made,
    )
