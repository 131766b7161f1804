"""Lists of a store with encrypted sessions: without the key records in it, and with the key that each has.

The store's own index of sessions says which key record belongs to each, as an entry of its metadata that no
list shows: so an order about many sessions takes their keys along, and reads none of the sessions for it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import starmap
from typing import Any

from trimtab._shared.steps import Steps, run
from trimtab.errors import ConfigurationError
from trimtab.stores.base import Store
from trimtab.stores.encryption.records import RECORD_TIME, Ask
from trimtab.stores.labels import KEY_LABEL, KEY_PREFIX, Labels, SessionEntry, Sessions, key_id, key_value
from trimtab.stores.lists import ListRequest

_BEHIND = f"{KEY_PREFIX}g"
"""Behind the names of all key records, which end with a number in base 16."""


def with_key(labels: Labels, session: str, id: str, /) -> Labels:
    """Add the key record of a session to its labels."""
    check_labels(labels)
    return replace(labels, metadata={**labels.metadata, KEY_LABEL: key_value(session, id)})


def check_labels(labels: Labels, /) -> None:
    """Refuse labels that say a key themselves."""
    if KEY_LABEL in labels.metadata:
        raise ConfigurationError(
            f"metadata: an encrypted store keeps its own value as {KEY_LABEL!r}: use another name",
            argument="metadata",
        )


def key_ids(keys: Iterable[tuple[str, str]], /) -> Iterator[str]:
    """Read the ids of key records; not those of labels that were copied by hand from another session."""
    return filter(None, starmap(key_id, keys))


def list_page(store: Store, request: ListRequest, /) -> Steps[Sessions]:
    """List sessions of a store; records of keys are none."""
    asked = request.given
    if request.owner is not None or request.keys:  # key records have neither
        page: Sessions = yield Ask(store, "sessions", (), asked)
        return Sessions(_entries_in(page), next=page.next)
    found: list[SessionEntry] = []
    while True:
        if request.asked is not None:
            asked["limit"] = request.asked - len(found)
        page = yield Ask(store, "sessions", (), asked)
        found += _entries_in(page)
        if not isinstance(page, Sessions):  # of a store of before labels
            return request.page(found)
        asked["after"] = page.next
        if asked["after"] is None or (request.asked is not None and len(found) >= request.asked):
            return request.page(found)
        if KEY_PREFIX <= page[-1] < _BEHIND and page[-1].used == RECORD_TIME:  # the rest of the records, too
            asked["after"] = json.dumps([RECORD_TIME, _BEHIND] if request.by_use else [_BEHIND])


def list_without_keys(store: Store, /, **asked: Any) -> Sessions:
    """List sessions of a store whose keys may be missing; see `list_page`."""
    return run(list_page(store, ListRequest(**asked)), lambda ask: ask.store.sessions(**ask.options))


def holds_keys(store: Store, /) -> bool:
    """Tell whether there are encrypted sessions in a store that was opened without their keys."""
    return bool(store.sessions(prefix=KEY_PREFIX, limit=1))


def _entries_in(page: Iterable[str]) -> Iterator[SessionEntry]:
    for one in page:
        if one.startswith(KEY_PREFIX):
            continue
        if not isinstance(one, SessionEntry):
            yield SessionEntry(one)
        elif KEY_LABEL not in one.labels.metadata:
            yield one
        else:
            metadata = {name: value for name, value in one.labels.metadata.items() if name != KEY_LABEL}
            labels = replace(one.labels, metadata=metadata)
            yield SessionEntry(
                one, version=one.version, used=one.used, labels=labels, incarnation=one.incarnation
            )
