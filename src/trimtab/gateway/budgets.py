"""Which budget a request has: by the model it asks, the path it comes by, and the key it comes with."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Self

from trimtab.errors import ConfigurationError
from trimtab.formats.api_paths import plain_path

_ROUTE, _KEY = "route:", "key:"
_WILD = frozenset("*?[")
"""What makes a pattern of a name (`fnmatch`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """Which requests a budget is for: those that meet all of it."""

    models: str = "*"
    """The name of a model, or a pattern."""
    route: str = ""
    """What the path that is sent begins with, up to a slash or a colon; may be a pattern. "": any."""
    key: str = ""
    """The name of their key; "": any."""

    @classmethod
    def of(cls, words: str, /) -> Self:
        """Read one: a model, route: and a path, key: and a name, in any order, with commas between.

        Raises:
            ConfigurationError: One of them is there twice, or is empty.
        """
        given: dict[str, str] = {}
        for word in words.split(","):
            part, rest = "models", word
            for name, beginning in (("route", _ROUTE), ("key", _KEY)):
                if word.startswith(beginning):
                    part, rest = name, word.removeprefix(beginning)
            if part in given or not rest:
                why = f"{part} is there twice" if part in given else "a part of it is empty"
                raise ConfigurationError(
                    f"a budget cannot be for {words!r:.200}: {why}. Write a model, route:PATH and key:NAME"
                    " with commas between, such as 'my-*,route:/v1/messages,key:ci'",
                    argument="budgets",
                )
            given[part] = rest
        if "route" in given and not given["route"].startswith(("/", "*")):
            raise ConfigurationError(
                f"route:{given['route']:.200} must begin with a slash, such as route:/v1/messages",
                argument="budgets",
            )
        if "route" in given:
            given["route"] = plain_path(given["route"])
        return cls(**given)

    def takes(self, model: str, paths: Collection[str], key: str) -> bool:
        """Tell whether a request is one of these.

        Args:
            model: Whom it asks.
            paths: The path that it is sent to, as routes may name it (`Upstreams.paths`).
            key: The name of its key; "": it has none that is named.
        """
        is_asked = self.key in ("", key) and fnmatchcase(model, self.models)
        return is_asked and (not self.route or any(map(self._has, paths)))

    def _has(self, path: str) -> bool:
        # The count of a request has a path below its own, or another verb: /v1/messages/count_tokens.
        return any(fnmatchcase(path, self.route + end) for end in ("", "/*", ":*"))

    @property
    def rank(self) -> tuple[bool, int, bool, int]:
        """What sorts selectors by how much they say: the key first, then the route, then the model.

        Of models the longest pattern says most, and a name says all.
        """
        is_pattern = not _WILD.isdisjoint(self.models)
        return not self.key, -len(self.route), is_pattern, -len(self.models)


class Selectors:
    """Finds the budget of a request: that of the selector that says most of it.

    Args:
        words: What budgets are for, as `Selector.of` reads it.

    Raises:
        ConfigurationError: One cannot be read, or two are the same.
    """

    def __init__(self, words: Iterable[str]) -> None:
        known: dict[Selector, str] = {}
        for one in ("*", *words):
            other = known.setdefault(Selector.of(one), one)
            if other != one:
                raise ConfigurationError(
                    f"two budgets are for the same: {other!r:.200} and {one!r:.200}", argument="budgets"
                )
        self._known = sorted(known.items(), key=lambda pair: pair[0].rank)
        self._reads_paths = any(one.route for one in known)

    @property
    def keys(self) -> list[str]:
        """The names of keys in them."""
        return [one.key for one, _ in self._known if one.key]

    def find(self, model: str | None, paths: Callable[[str | None], Collection[str]], key: str) -> str:
        """Return the words of the selector for a request.

        Args:
            model: Whom it asks.
            paths: Lists how routes may name the path that it is sent to, by whom it asks.
            key: The name of its key.
        """
        sent_to = paths(model) if self._reads_paths else ()
        return next(words for one, words in self._known if one.takes(model or "", sent_to, key))
