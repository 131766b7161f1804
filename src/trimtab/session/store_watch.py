"""Requests of a session to its store, for those who look on at stores."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Literal, TypeVar

from trimtab._shared import observers
from trimtab.errors import StoreUnavailableError, VersionConflictError
from trimtab.session.effects import AskLabels, Delete, Effect
from trimtab.stores import AppendRequest, LoadRequest, SearchRequest, Store
from trimtab.stores.base import knows_labels

if TYPE_CHECKING:
    Request = Literal["open", "append", "load", "search", "list", "delete"]
    Outcome = Literal["done", "conflict", "unavailable", "failed"]

T = TypeVar("T")

_REQUESTS: dict[type[object], Request] = {
    AppendRequest: "append",
    LoadRequest: "load",
    SearchRequest: "search",
    AskLabels: "list",
    Delete: "delete",
}


class StoreWatch:
    """Tells those who look on at stores of each request of one session; its lock is held meanwhile.

    Args:
        session: Id of the session.
        store: Its store.
    """

    def __init__(self, session: str, store: Store) -> None:
        self._session, self._store = session, store
        self._is_open = False
        """Whether something was read, so that the session is known."""
        self._again = False
        """Whether the next request begins an operation anew."""

    def attempts(self, begin: Callable[[], T]) -> Callable[[], T]:
        """Make a function that begins an operation, and notes each attempt behind the first."""
        is_first = True

        def attempt() -> T:
            nonlocal is_first
            self._again, is_first = not is_first, False
            return begin()

        return attempt

    def request(self, effect: Effect) -> AbstractContextManager[None]:
        """Measure a request, if it is one to the store and somebody looks on."""
        request = _REQUESTS.get(type(effect)) if observers.at_stores else None
        if request == "list" and not knows_labels(self._store):
            request = None  # such a store is not asked
        return nullcontext() if request is None else self._measure(effect, request)

    @contextmanager
    def _measure(self, effect: Effect, request: Request) -> Generator[None]:
        again, self._again = self._again, False
        if request == "load" and not self._is_open:
            request = "open"
        begin = time.perf_counter()
        outcome: Outcome = "failed"
        try:
            yield
            outcome, self._is_open = "done", True
        except VersionConflictError:
            outcome = "conflict"
            raise
        except StoreUnavailableError:
            outcome = "unavailable"
            raise
        finally:
            from trimtab._fitting.observation import StoreEvent  # not above: only who looks on needs it

            written = effect.events if isinstance(effect, AppendRequest) and outcome == "done" else ()
            event = StoreEvent(
                session=self._session,
                request=request,
                outcome=outcome,
                store=type(self._store).__name__,
                seconds=time.perf_counter() - begin,
                messages=sum(one.kind == "message" for one in written),
                again=again,
            )
            observers.tell_of_store(event)
