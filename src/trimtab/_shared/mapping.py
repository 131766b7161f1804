"""A mapping of options: it cannot be changed, and has a hash, so that what holds it has one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

__all__ = ["FixedMapping"]

V_co = TypeVar("V_co", covariant=True)


class FixedMapping(Mapping[str, V_co]):
    """A few values by name; cannot be changed.

    Args:
        items: Names and values, in the order they are listed.
    """

    __slots__ = ("_items",)

    def __init__(self, items: Iterable[tuple[str, V_co]], /) -> None:
        self._items = tuple(items)

    def __getitem__(self, name: str, /) -> V_co:
        return dict(self._items)[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(self._items)

    def __repr__(self) -> str:
        return repr(dict(self._items))
