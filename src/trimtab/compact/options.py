"""How results are written: `Compact`, and kinds of results that a caller writes in their own way."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

from trimtab._shared.checks import answers_later, check_choice, check_flag, check_parameters, check_whole
from trimtab.errors import ConfigurationError

__all__ = ["JSON_FORMS", "Compact", "CompactLike", "Kind", "check_compact"]

JSON_FORMS = ("tight", "table")
"""How JSON may be written."""

_STEPS = ("json", "repeats")
"""What the report calls the steps that are no kinds."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Kind:
    """A kind of result that you write shorter, such as the output of a test run.

    What `write` returns is used only if it is shorter than the text. A result that is JSON stays JSON.
    `write` is called once for a result, and its answer is remembered as long as the conversation is.

    Args:
        name: Its name in the report; not "json" or "repeats", which are steps of trimtab.
        tools: Tools whose results are of this kind; (): any tool.
        match: Regular expression that is found in texts of this kind; None: any text.
        write: Function that takes the text and returns a shorter one. It has to depend on the text alone.
            What it raises goes on, with a note that names the kind.
        lossy: Whether something is lost that a reader may need. The new text then ends with a marker that
            names the call, by which the whole result is found in your own messages; a result without an id
            by which it could be found, and one that is JSON, stay as they are.

    Raises:
        ConfigurationError: An argument is of the wrong kind, `match` is no regular expression over text, or
            the name is taken by a step of trimtab.

    Example:
        >>> Kind(name="tail", tools=["make"], write=lambda text: text[-200:], lossy=True).name
        'tail'
    """

    name: str
    write: Callable[[str], str]
    tools: Collection[str] = ()
    match: str | re.Pattern[str] | None = None
    lossy: bool = False

    def __post_init__(self) -> None:
        """Check the arguments."""
        put = object.__setattr__
        if not isinstance(self.name, str) or not self.name.strip():
            raise ConfigurationError(f"a Kind needs a name, not {self.name!r:.80}", argument="name")
        if self.name in _STEPS:
            raise ConfigurationError(
                f"a Kind cannot be named {self.name!r}: the report calls a step of trimtab so",
                argument="name",
            )
        if not callable(self.write) or answers_later(self.write):
            raise ConfigurationError(
                f"write of Kind {self.name!r} must be a synchronous function (text) -> text,"
                f" not {self.write!r:.80}",
                argument="write",
            )
        check_parameters("write", self.write, "text")
        put(self, "tools", _tools("tools", self.tools))
        pattern = self.match.pattern if isinstance(self.match, re.Pattern) else self.match
        if not isinstance(pattern, str | None):
            raise ConfigurationError(
                f"match of Kind {self.name!r} must be a regular expression over text, not {pattern!r:.80}",
                argument="match",
            )
        try:
            put(self, "match", None if self.match is None else re.compile(self.match))
        except (re.error, OverflowError, RecursionError) as error:
            raise ConfigurationError(
                f"match of Kind {self.name!r} is no regular expression: {error}", argument="match"
            ) from error
        check_flag("lossy", self.lossy)

    def __eq__(self, other: object, /) -> bool:
        """Tell whether it is the same kind, with the same function."""
        return self._key() == other._key() if isinstance(other, Kind) else NotImplemented

    def __hash__(self) -> int:
        """Hash what makes two kinds equal."""
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        try:
            hash(self.write)
        except TypeError:  # an object that may change: it is the same as itself alone
            return self.name, id(self.write), self.tools, self.match, self.lossy
        return self.name, self.write, self.tools, self.match, self.lossy

    def takes(self, tool: str, text: str, /) -> bool:
        """Tell whether a result is of this kind.

        Args:
            tool: Name of the tool; "" if nobody knows it.
            text: Its text.
        """
        if self.tools and tool not in self.tools:
            return False
        return self.match is None or cast("re.Pattern[str]", self.match).search(text) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Compact:
    r"""How tool results are written: what was said once is not said again.

    They are written so before anything is counted.

    Nothing is lost. A run of lines that stands in an earlier result of the same request becomes one line that
    says where: `[lines 120-188 as in call_7 from 118]`. JSON is written without spaces between its values. No
    line refers to what the request does not hold whole: where messages are evicted, shortened or cleared, the
    rest is written again. `expand` puts the lines back.

    Args:
        repeats: Whether lines that stand in an earlier result are written as a reference.
        json: How a result that is JSON is written. "tight": without spaces between values. "table": so, and a
            list of at least three objects with the same keys as `{"cols": […], "rows": […]}`. None: as it is.
            JSON that readers may read in different ways (repeated keys, NaN) stays as it is.
        min_lines: The fewest lines that are written as a reference.
        min_tokens: The fewest tokens, by an estimate, that these lines must have.
        exclude_tools: Tools whose results are sent as they are: for example one that reads files that an edit
            must then quote exactly, if they are JSON.
        kinds: Kinds of results that you write in your own way; the first that takes a result writes it.

    Raises:
        ConfigurationError: An argument is of the wrong kind, or two kinds have the same name.

    Example:
        >>> from trimtab import fit
        >>> call = {"id": "a", "type": "function", "function": {"name": "get", "arguments": "{}"}}
        >>> messages = [
        ...     {"role": "user", "content": "How warm is it?"},
        ...     {"role": "assistant", "tool_calls": [call]},
        ...     {"role": "tool", "tool_call_id": "a", "content": '{\n  "celsius": 21.50\n}'},
        ... ]
        >>> fit(messages, 1_000, compact=Compact(repeats=False)).messages[2]["content"]
        '{"celsius":21.50}'
    """

    repeats: bool = True
    json: Literal["tight", "table"] | None = "tight"
    min_lines: int = 3
    min_tokens: int = 20
    exclude_tools: Collection[str] = ()
    kinds: Sequence[Kind] = ()

    def __post_init__(self) -> None:
        """Check the arguments."""
        put = object.__setattr__
        check_flag("repeats", self.repeats)
        if self.json is not None:
            check_choice("json", self.json, JSON_FORMS)
        put(self, "min_lines", check_whole("min_lines", self.min_lines, least=1))
        put(self, "min_tokens", check_whole("min_tokens", self.min_tokens, least=0))
        put(self, "exclude_tools", _tools("exclude_tools", self.exclude_tools))
        kinds = tuple(self.kinds) if isinstance(self.kinds, Iterable) else (self.kinds,)
        if not all(isinstance(one, Kind) for one in kinds):
            raise ConfigurationError(
                f"kinds must be a list of Kind, not {reprlib.repr(self.kinds)}", argument="kinds"
            )
        names = [one.name for one in kinds]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ConfigurationError(f"two kinds are named {twice[0]!r}: name them apart", argument="kinds")
        put(self, "kinds", kinds)


CompactLike: TypeAlias = "bool | Compact | None"
"""What may be passed as `compact=`: True is `Compact()`."""


def _tools(name: str, value: object) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ConfigurationError(f"{name} must be a list of names of tools, not {value!r:.80}", argument=name)
    made = tuple(value)
    if not all(isinstance(one, str) for one in made):
        raise ConfigurationError(f"{name} must be names of tools, not {reprlib.repr(value)}", argument=name)
    return tuple(dict.fromkeys(made))


_DEFAULT = Compact()


def check_compact(value: object, /) -> Compact | None:
    """Return how results are written; None: as they are.

    Raises:
        ConfigurationError: It is neither True, False, None nor a `Compact`.
    """
    if value is None or value is False:
        return None
    if value is True:
        return _DEFAULT
    if isinstance(value, Compact):
        return value
    raise ConfigurationError(
        f"compact must be True, False or a Compact, as in Compact(json=None), not {value!r:.80}",
        argument="compact",
    )
