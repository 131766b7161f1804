"""Whose a session is, how long it lives and how long its log is, as its object shows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from trimtab._shared.options import UNSET, Unset
from trimtab.errors import StoreUnavailableError
from trimtab.session.core import Core
from trimtab.session.effects import Steps
from trimtab.session.log import event_at, recount_waiting, state_of
from trimtab.session.options import Options
from trimtab.session.prune import PruneOrder, Pruning, go_on
from trimtab.session.runner import RunnerHolder
from trimtab.session.state import State
from trimtab.stores import Event, LoadRequest
from trimtab.stores.base import require_labels
from trimtab.stores.labels import LABELS, check_metadata, check_owner, check_ttl, differ


class Labelled(RunnerHolder):
    """A session with an owner, metadata and a time to live, and a log that can be made short."""

    @property
    def owner(self) -> str | None:
        """Whose session it is; None: nobody's."""
        return self._options().owner

    @property
    def metadata(self) -> dict[str, str | int | float | bool]:
        """Names and values to list it by."""
        return dict(self._options().metadata or {})

    @property
    def ttl(self) -> float | None:
        """For how many seconds it lives after its newest event; None: without end."""
        return self._options().ttl

    def _options(self) -> Options:
        self._runner.working_set()
        return self._runner.core.in_force

    def label(
        self,
        *,
        owner: str | Unset | None = UNSET,
        metadata: Mapping[str, Any] | Unset | None = UNSET,
        ttl: float | Unset | None = UNSET,
    ) -> None:
        """Change the owner, the metadata or the time to live, at once.

        What is not passed stays as it is. It is an event in the log, and so a
        use of the session.

        Args:
            owner: Whose session it is; None: nobody's.
            metadata: All of its metadata; None: none.
            ttl: For how many seconds it lives after its newest event; None:
                without end.

        Raises:
            ConfigurationError: A value cannot be stored, or the store knows
                no labels.

        Example:
            >>> from trimtab import Session
            >>> session = Session(1_000, owner="ada")
            >>> session.label(metadata={"plan": "free"})
            >>> session.owner, session.metadata
            ('ada', {'plan': 'free'})
        """
        require_labels(self._runner.store)
        self._runner.run(set_labels, {"owner": owner, "metadata": metadata, "ttl": ttl})

    async def alabel(
        self,
        *,
        owner: str | Unset | None = UNSET,
        metadata: Mapping[str, Any] | Unset | None = UNSET,
        ttl: float | Unset | None = UNSET,
    ) -> None:
        """Change the owner, the metadata or the time to live; see `label`."""
        require_labels(self._runner.store)
        await self._runner.arun(set_labels, {"owner": owner, "metadata": metadata, "ttl": ttl})

    def prune(self, *, keep: int = 10) -> Pruning:
        """Remove what neither views, facts, rules nor the newest decisions
        need.

        What stays: all that the view of now shows and goes on from (facts,
        rules, summaries, pins, what was recalled), each view since the oldest
        decision that is kept, and what `undo` needs to take these back. What
        waits out of view stays only if there is a summarizer or a fact
        extractor to read it. The rest is gone from every place of the store: of
        an event, only its version, id and time remain.

        Other objects and processes may use the session meanwhile. If it is
        interrupted, the next call removes the rest.

        Args:
            keep: How many of the newest decisions (summaries, evictions, facts)
                can still be undone.

        Returns:
            A receipt, with the numbers of what is gone.

        Raises:
            ConfigurationError: `keep` is no whole number of at least 0, or the
                store cannot prune.
            StoreUnavailableError: Repeat the call.
            VersionConflictError: Other writers were faster again and again.
                Repeat the call.

        Complexity: reads the log since the oldest decision that is kept, and
        what was not pruned before, in pages; of what stays it remembers the
        versions, and of the rest nothing.

        Example:
            >>> from trimtab import Session
            >>> session = Session(200)
            >>> for number in range(200):
            ...     message = {"role": "user", "content": f"{number}"}
            ...     _ = session.add(message)
            >>> before = session.messages()
            >>> receipt = session.prune(keep=0)
            >>> receipt.messages > 0, session.messages() == before
            (True, True)
        """
        order = PruneOrder.of(keep)
        try:
            while (done := self._runner.run(go_on, order)) is None:
                pass  # between two steps others have their turn
        except StoreUnavailableError as error:
            return order.failure_receipt(error)
        return done

    async def aprune(self, *, keep: int = 10) -> Pruning:
        """Remove what nothing needs; see `prune`."""
        order = PruneOrder.of(keep)
        try:
            while (done := await self._runner.arun(go_on, order)) is None:
                pass
        except StoreUnavailableError as error:
            return order.failure_receipt(error)
        return done


_CHECKS: dict[str, Callable[[Any], Any]] = {
    "owner": check_owner,
    "metadata": check_metadata,
    "ttl": check_ttl,
}


def set_labels(core: Core, asked: Mapping[str, Any]) -> Steps[None]:
    """Write options that differ in labels only; if that fails, this object has those it had."""
    named = {name: one for name, one in asked.items() if one is not UNSET}
    new = {name: None if one is None else _CHECKS[name](one) for name, one in named.items()}
    working_set = yield from core.ready()
    data = core.options_data()
    before = {name: data[name] for name in new}
    if not differ(new, before) and core.opened is None:
        return
    _set(core, new)
    try:
        core.opened, core.opened_state = core.options_data(), working_set.state
        yield from core.append(working_set, core.first_events(working_set))
    except BaseException:
        _set(core, before)
        raise
    # what was passed for them before is over; others that were left out stay as the log says
    core.given = {**core.given, **{name: one for name, one in new.items() if name in core.given}}


def renewal(
    head: Event, session: str, options: Mapping[str, Any], *, time: float, state: State | None = None
) -> Event:
    """Make an event that says options behind the last one of a log that is copied: it was used at that time.

    Its id goes by its place, so that who repeats the copy knows it again. `state` is the one before it; None:
    that of the last one.
    """
    version = head.version + 1
    before = state_of(head, session) if state is None else state
    made = before.with_options(version).to_dict()
    data = {"options": dict(options)}
    return Event(id=f"labels-{version}", kind="options", time=time, data=data, state=made, version=version)


def fork_bounds(core: Core, at: int) -> Steps[dict[str, Any]]:
    """Say what of a log is a fork of it, and the event behind that, if one is needed.

    It gives the fork the labels of now: the log up to there may say others, or that nobody used it for long.
    Where the log was pruned after that, it says what of the fork is whole.
    """
    working_set = yield from core.ready()
    newest = yield LoadRequest(session=core.session, limit=1, newest_first=True)
    if newest and newest[0].version != working_set.version:
        working_set = yield from core.again()  # another writer may have changed them
        yield from core.known_version(at)
    head = yield from event_at(core.session, at)
    state, now = state_of(head, core.session), working_set.state
    known = yield from core.known_options(state.options)
    data = core.options_data()
    labels = {name: data[name] for name in LABELS}
    behind = None
    is_pruned = state.whole < now.whole
    if is_pruned:
        made = state.with_pruning(whole=now.whole, oldest=now.oldest, pruned=0)
        state = yield from recount_waiting(core.session, state, made, reader=working_set.reader)
    if differ(labels, known) or labels["ttl"] is not None or is_pruned:
        behind = renewal(head, core.session, {**known, **labels}, time=core.clock(), state=state)
    return {"before": at + 1, "incarnation": core.incarnation(), "behind": behind}


def _set(core: Core, labels: Mapping[str, Any]) -> None:
    for name, one in labels.items():
        setattr(core.in_force, name, one)
