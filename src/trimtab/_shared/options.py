"""Options that are written once, as fields of a dataclass: name, type, default, check and what it is."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import Field, dataclass, field, fields
from enum import Enum
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Final,
    Generic,
    ParamSpec,
    TypeAlias,
    TypeVar,
    cast,
    get_args,
)

from trimtab._shared.checks import check_choice, check_whole

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")
T = TypeVar("T")


class Unset(Enum):
    """What an option is that was left out: None is a value, and takes away what a log remembers."""

    UNSET = "left out"

    def __repr__(self) -> str:
        """Show the name it is written by."""
        return self.name


UNSET: Final = Unset.UNSET
"""The value of an omitted option: the one in the log, or the default in a new session."""


if TYPE_CHECKING:
    Given = TypeVar("Given")
    Held = TypeVarWithDefault("Held", default=Given)

    class Option(Generic[Given, Held]):
        """The type of a field that may be left out: what is given for it, and what is read from it.

        To a type checker a descriptor, as it takes `__init__`'s types from `__set__`; in a program nothing.
        """

        def __get__(self, one: object, made: type, /) -> Held: ...
        def __set__(self, one: object, value: Given | Unset, /) -> None: ...

else:

    class Option:
        """The type of a field that may be left out; for `get_type_hints` that of what is given for it."""

        def __class_getitem__(cls, types: Any) -> Any:
            """Return what may be given."""
            return types[0] if isinstance(types, tuple) else types


Check = Callable[[str, Any], Any]
"""Takes the name of an option and what was given for it; returns what is held, or raises."""


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number of at least so much."""

    least: int

    def __call__(self, name: str, value: Any, /) -> int:
        """Return it."""
        return check_whole(name, value, least=self.least)


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of a few words."""

    words: tuple[str, ...]

    @classmethod
    def literal(cls, words: Any, /) -> OneOf:
        """Take the words of a Literal."""
        return cls(get_args(words))

    def __call__(self, name: str, value: Any, /) -> str:
        """Return it."""
        return check_choice(name, value, self.words)


def held_as(read: Callable[[Any], Any], /) -> Check:
    """Hold what a function makes of what was given."""
    return lambda name, value: read(value)


def held_after(refuse: Callable[[Any], object], /) -> Check:
    """Hold what was given, unless a function refuses it."""

    def check(name: str, value: Any) -> Any:
        refuse(value)
        return value

    return check


@dataclass(frozen=True, slots=True)
class About:
    """What is known of an option beside name, type and default."""

    check: Check | None
    may_be_none: bool
    """None is a value, which nothing checks."""
    kept: bool
    """A log keeps what is given; it keeps no function."""
    policy: bool
    """It says how a session is shown, not what is in it: a policy may hold it."""
    before: Any
    """What held before there was the option."""


def by_default(
    default: Any,
    check: Check | None = None,
    /,
    *,
    kept: bool = True,
    policy: bool = False,
    before: Any = UNSET,
) -> Any:
    """Make a field of a dataclass of options.

    Args:
        default: What holds where nothing is given. Where it is None, None is never checked.
        check: Returns what is held of what was given, or raises.
        kept: A log keeps it.
        policy: A policy may hold it.
        before: What held before there was the option; by default there never was a log without it.
    """
    about = About(check, default is None, kept, policy, before)
    return field(default=default, metadata={"about": about})


def about_options(made: type, /) -> dict[str, About]:
    """Return what is known of each option of a dataclass, by name."""
    return {one.name: one.metadata["about"] for one in fields(made) if "about" in one.metadata}


def values_of(options: Any, names: Iterable[str], /) -> dict[str, Any]:
    """Return options by their names."""
    return {name: getattr(options, name) for name in names}


def check_each(options: Any, /) -> None:
    """Check every option, and hold what its check returns."""
    known = about_options(type(options))
    for name, value in values_of(options, known).items():
        about = known[name]
        if about.check is not None and not (value is None and about.may_be_none):
            setattr(options, name, about.check(name, value))


_Makes: TypeAlias = Callable[[Callable[..., R]], Callable[Concatenate[type[T], P], T]]
_AMakes: TypeAlias = Callable[[Callable[..., R]], Callable[Concatenate[type[T], P], Coroutine[Any, Any, T]]]


def takes(
    made: Callable[P, object], /
) -> Callable[[Callable[Concatenate[S, ...], None]], Callable[Concatenate[S, P], None]]:
    """Have an `__init__` that takes a dataclass's options by `**options` show them as its parameters.

    A type checker reads them off the dataclass's own `__init__`, `help()` off the signature that is put here.
    """

    def show(function: Any) -> Any:
        own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        options = map(_parameter, fields(cast("Any", made)))
        function.__signature__ = inspect.Signature([own, *options], return_annotation="None")
        return function

    return show


# `R` is there for mypy, to which what is returned is generic in `T` only where the decorator is generic.
def makes(made: Callable[P, object], /) -> _Makes[R, T, P]:  # pyright: ignore[reportInvalidTypeVarUse]
    """Have a class method that makes an object of its class show a type checker a dataclass's options."""
    return lambda function: cast("Any", function)


# As above.
def amakes(made: Callable[P, object], /) -> _AMakes[R, T, P]:  # pyright: ignore[reportInvalidTypeVarUse]
    """Do as `makes`, for a method that is awaited."""
    return lambda function: cast("Any", function)


def _parameter(one: Field[Any]) -> inspect.Parameter:
    """Make the parameter of a field: an `Option` is left out by default, whatever it is then."""
    kind = inspect.Parameter.KEYWORD_ONLY if one.kw_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
    default, annotation = one.default, str(one.type)
    if annotation.startswith("Option["):
        types = cast("Any", ast.parse(annotation, mode="eval").body).slice
        given = types.elts[0] if isinstance(types, ast.Tuple) else types
        default, annotation = UNSET, f"{ast.unparse(given)} | Unset"
    return inspect.Parameter(one.name, kind, default=default, annotation=annotation)
