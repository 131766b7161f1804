"""Sessions made of sessions: opened, forked, written as plain data and restored."""

from __future__ import annotations

import secrets
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self, Unpack

from trimtab._fitting.callbacks import OnTrim
from trimtab._shared.checks import check_flag
from trimtab.context import Context
from trimtab.counting import CounterLike
from trimtab.errors import ConfigurationError, CorruptSessionError, FormatError
from trimtab.session.looks import Looks
from trimtab.session.options import HooksLike, SessionOptions, as_given, functions_of
from trimtab.session.snapshot import check_events, events_from, options_in, snapshot_of
from trimtab.stores import AppendRequest, Event, MemoryStore, Retry, Store, acopy_session, copy_session
from trimtab.stores.rows import check_session_name
from trimtab.strategies.summarizer import SummarizerLike

__all__ = ["Copies"]


class Copies(Looks):
    """Ways to come by a session other than to begin one."""

    @classmethod
    def open(
        cls,
        store: Store,
        id: str,
        *,
        summarizer: SummarizerLike | None = None,
        counter: CounterLike | None = None,
        hooks: HooksLike | None = None,
        context: Context | None = None,
        on_trim: OnTrim | None = None,
        retry: Retry | None = None,
        allow_missing: bool = False,
    ) -> Self:
        """Open a session that is in a store, with the options it was made with.

        Args:
            summarizer: The function it was made with; a log keeps no functions. The same for the others.
            allow_missing: Go on without them: no summary is written, and tokens are estimated.

        Raises:
            ConfigurationError: One it was made with is missing; when it is first used.
            UnknownNameError: There is no such session; when it is first used.
        """
        session = cls.__new__(cls)
        functions = {
            "summarizer": summarizer,
            "counter": counter,
            "hooks": hooks,
            "context": context,
            "on_trim": on_trim,
        }
        given = {name: function for name, function in functions.items() if function is not None}
        session._set_up(given, begins=False, store=store, id=id, retry=retry, allow_missing=allow_missing)
        return session

    def fork(self, at: int | None = None, *, id: str | None = None, store: Store | None = None) -> Self:
        """Start a second conversation on what was said up to a version.

        Args:
            at: The version; None: the newest.
            id: Name of the new session; None: a new one.
            store: Where to keep it; None: in the same store.

        Raises:
            ConfigurationError: It would be this very session: `id` is its own, in the same store.
            SessionDeletedError: It was deleted meanwhile, and another one may have its name.
        """
        target, name = self._target(id, store)
        at = self._run(lambda: self._core.known_version(at))
        if at:
            meant = self._core.incarnation()
            copy_session(self._store, target, self._id, to=name, before=at + 1, incarnation=meant)
        return self._twin(target, name, at=at)

    async def afork(
        self, at: int | None = None, *, id: str | None = None, store: Store | None = None
    ) -> Self:
        """Start a second conversation; see `fork`."""
        target, name = self._target(id, store)
        at = await self._arun(lambda: self._core.known_version(at))
        if at:
            meant = self._core.incarnation()
            await acopy_session(self._store, target, self._id, to=name, before=at + 1, incarnation=meant)
        return self._twin(target, name, at=at)

    def _target(self, id: str | None, store: Store | None) -> tuple[Store, str]:
        """Say where a fork is kept, and by which name."""
        target = self._store if store is None else store
        name = secrets.token_hex(16) if id is None else check_session_name(id)
        if name == self._id and target is self._store:
            raise ConfigurationError(
                f"session {name!r} cannot be its own fork: pass another id, None for a new one, or another"
                " store"
            )
        return target, name

    def _twin(self, store: Store, name: str, *, at: int) -> Self:
        twin = type(self).__new__(type(self))
        core, options = self._core, self._core.in_force
        functions = functions_of(options)
        given = {name: functions[name] for name in functions if name not in core.missing}
        twin._set_up(
            given if at else as_given(options.to_data(), given),  # nothing was copied that knows the rest
            begins=not at,
            store=store,
            id=name,
            retry=self._retry,
            allow_missing=core.allow_missing,
        )
        return twin

    def snapshot(self, *, history: bool = True) -> dict[str, Any]:
        """Return the session as plain data, for `Session.restore`.

        Args:
            history: The whole log, as long as the conversation. False: the view and what is needed to go on
                (options, anchors, the summary, messages that are recent, in view, or wait for a summary),
                as long as the budget allows. What left the view before is then not in it: nothing of
                that is shown again, found by `recall` or taken back by `undo`.

        Complexity: reads what it writes.
        """
        check_flag("history", history)
        self.drain()
        return self._run(lambda: snapshot_of(self._core, history=history))

    async def asnapshot(self, *, history: bool = True) -> dict[str, Any]:
        """Return the session as plain data; see `snapshot`."""
        check_flag("history", history)
        await self.adrain()
        return await self._arun(lambda: snapshot_of(self._core, history=history))

    @classmethod
    def restore(
        cls,
        data: Mapping[str, Any],
        *,
        store: Store | None = None,
        id: str | None = None,
        retry: Retry | None = None,
        allow_missing: bool = False,
        **options: Unpack[SessionOptions],
    ) -> Self:
        """Make a session of a snapshot: the same messages, counts and later behaviour.

        Args:
            store: Where to keep it; None: in memory. A session of that id there is only taken if it is
                the beginning of this one.
            id: Its name; None: the one it had.
            retry: As for `Session`; the same for `allow_missing`.
            options: Options of `Session`: functions again, and what is to change. One that is left out stays
                as it was.

        Raises:
            CorruptSessionError: It is no snapshot, or of another version.
            ConfigurationError: A function it was made with is missing, or an option is out of range.
        """
        session, source = cls._restored(
            data, options, store=store, id=id, retry=retry, allow_missing=allow_missing
        )
        if source is not None:
            copy_session(source, session._store, session._id)
        with _readable():
            session.refresh()
        return session

    @classmethod
    async def arestore(
        cls,
        data: Mapping[str, Any],
        *,
        store: Store | None = None,
        id: str | None = None,
        retry: Retry | None = None,
        allow_missing: bool = False,
        **options: Unpack[SessionOptions],
    ) -> Self:
        """Make a session of a snapshot; see `restore`."""
        session, source = cls._restored(
            data, options, store=store, id=id, retry=retry, allow_missing=allow_missing
        )
        if source is not None:
            await acopy_session(source, session._store, session._id)
        with _readable():
            await session.arefresh()
        return session

    @classmethod
    def _restored(
        cls,
        data: Mapping[str, Any],
        options: SessionOptions,
        *,
        store: Store | None,
        id: str | None,
        retry: Retry | None,
        allow_missing: bool,
    ) -> tuple[Self, Store | None]:
        unknown = sorted(options.keys() - SessionOptions.__annotations__)
        if unknown:
            raise TypeError(f"restore() got an unexpected keyword argument {unknown[0]!r}")
        given: dict[str, Any] = {**options}
        name, last_options, events = events_from(data)
        name = name if id is None else check_session_name(id)
        known = next(
            (event.data.get("options") for event in reversed(events) if event.kind == "options"), None
        )
        source = MemoryStore()
        if events:
            check_events(events, known, given)
            _fill(source, name, events)
        if not events or last_options not in (None, known):
            given = options_in(
                last_options, given, allow_missing=allow_missing
            )  # some are not in the log yet
        session = cls.__new__(cls)
        session._set_up(
            given,
            begins=not events,
            store=source if store is None else store,
            id=name,
            retry=retry,
            allow_missing=allow_missing,
        )
        return session, source if events and store is not None else None


@contextmanager
def _readable() -> Generator[None]:
    """Say of a message that cannot be counted that it is the snapshot's."""
    try:
        yield
    except FormatError as error:
        raise CorruptSessionError(f"a message of the snapshot cannot be read: {error!s:.300}") from error


def _fill(store: Store, session: str, events: Sequence[Event]) -> None:
    try:
        store.append(AppendRequest(session=session, expected_version=0, events=events))
    except ConfigurationError as error:
        raise CorruptSessionError(f"the snapshot cannot be read: {error!s:.300}") from error
