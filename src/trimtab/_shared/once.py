"""A property that is worked out once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

__all__ = ["once"]

T = TypeVar("T")


class once(Generic[T]):
    """Keep what a method returns in the place of the method, as `functools.cached_property` does.

    That of Python 3.11 holds a lock of its class meanwhile: threads wait for each other, and a process that
    is forked at such a moment waits forever. Two threads may work it out here, each for the same answer.
    """

    def __init__(self, function: Callable[[Any], T]) -> None:
        self._function = function
        self.__doc__ = function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> once[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> once[T] | T:
        if instance is None:
            return self
        found = instance.__dict__[self._name] = self._function(instance)
        return found
