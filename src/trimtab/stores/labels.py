"""Whose a session is and how long it lives: its labels, what a list of sessions says, and receipts."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from trimtab.errors import ConfigurationError

LABELS = ("owner", "metadata", "ttl")
"""What a session says of itself beside its conversation."""

MOST_METADATA = 64
"""Entries of the metadata of one session."""

KEY_LABEL = "trimtab:key"
"""Metadata in which a store that encrypts keeps which key a session has; it is not counted."""

_OWN_NAMES = "trimtab:"

KEY_PREFIX = "trimtab:key:"
"""Names of sessions that begin so are taken by key records: what a store that encrypts keeps of a key."""

_KEY_VALUE = re.compile(r"([0-9a-f]{16})\.([0-9a-f]{16})")

_OWNER = "a text of 1 to 512 bytes in UTF-8, without NUL"


def is_text(value: object, /, *, least: int = 1) -> bool:
    """Tell whether a store can keep a text as a name: at most 512 characters, no NUL, no lone surrogate."""
    if not isinstance(value, str) or not least <= len(value) <= 512 or "\0" in value:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_owner(owner: object, /) -> str:
    """Return the name of an owner, if it can be one: an index of PostgreSQL holds it beside a session's."""
    if isinstance(owner, str) and is_text(owner) and len(owner.encode()) <= 512:
        return owner
    raise ConfigurationError(f"owner must be {_OWNER}, not {owner!r:.80}", argument="owner")


def check_metadata(metadata: object, /) -> dict[str, str | int | float | bool]:
    """Return metadata that a user gives as a dict of its own; values are texts, numbers and flags.

    Names of trimtab's own are refused: an order removes the key record that the metadata names.
    """
    found = _metadata_of(metadata)
    for name in found:
        if name.startswith(_OWN_NAMES):
            raise ConfigurationError(
                f"metadata: names that begin with {_OWN_NAMES!r} are trimtab's own: use another name than"
                f" {name!r:.80}",
                argument="metadata",
            )
    return found


def _metadata_of(metadata: object) -> dict[str, str | int | float | bool]:
    """Return metadata as a store keeps it, with names of trimtab's own."""
    if not isinstance(metadata, Mapping):
        raise ConfigurationError(
            f"metadata must be a mapping of names to values, not {metadata!r:.80}", argument="metadata"
        )
    if len(metadata) - (KEY_LABEL in metadata) > MOST_METADATA:
        raise ConfigurationError(
            f"metadata has {len(metadata)} entries, but at most {MOST_METADATA} are kept: put the rest into"
            " a store of your own",
            argument="metadata",
        )
    for key, value in metadata.items():
        if not is_text(key):
            raise ConfigurationError(
                f"metadata: a name must be a text of 1 to 512 characters without NUL and lone surrogates, not"
                f" {key!r:.80}",
                argument="metadata",
            )
        if not _is_value(value):
            raise ConfigurationError(
                f"metadata[{key!r:.80}] must be a text of at most 512 characters without NUL and lone"
                f" surrogates, a finite number of at most 64 bits, or True or False, not {value!r:.80}",
                argument="metadata",
            )
    return dict(metadata)


def _is_value(value: object) -> bool:
    if isinstance(value, str):
        return is_text(value, least=0)
    if isinstance(value, int):
        return -(2**63) <= value < 2**63
    return isinstance(value, float) and math.isfinite(value)


def check_ttl(ttl: object, /) -> float:
    """Return for how many seconds a session lives after its newest event."""
    if isinstance(ttl, (int, float)) and not isinstance(ttl, bool) and 0 < ttl <= 1e11:
        return float(ttl)
    raise ConfigurationError(
        f"ttl must be a number of seconds above 0, and at most 1e11, not {ttl!r:.80}", argument="ttl"
    )


def differ(labels: Mapping[str, Any], others: Mapping[str, Any], /) -> bool:
    """Tell whether labels differ; for Python True is 1, and in a list by metadata it is not."""
    one, other = (keys_of(each.get("metadata") or {}) for each in (labels, others))
    return one != other or any(labels.get(name) != others.get(name) for name in LABELS)


def keys_of(metadata: Mapping[str, Any], /) -> list[str]:
    """Return what an index knows metadata by: a digest an entry, of one length and without its text."""
    return [_key_of(name, value) for name, value in sorted(metadata.items())]


def _key_of(name: str, value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # 1 and 1.0 are the same, True is neither
    told = json.dumps([name, value])
    return hashlib.blake2b(told.encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """What a store knows of a session beside its log.

    Args:
        owner: Whose it is; None: nobody's.
        metadata: Names and values to find it by. Names that begin with `trimtab:` are trimtab's own: pass
            none that a user chose.
        ttl: Seconds that it lives after its newest event; None: without end.

    Raises:
        ConfigurationError: One of them cannot be stored.

    Example:
        >>> Labels(owner="ada", metadata={"plan": "free"}).owner
        'ada'
    """

    owner: str | None = None
    """Whose it is; None: nobody's."""
    metadata: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    """Names and values to find it by."""
    ttl: float | None = None
    """Seconds that it lives after its newest event; None: without end."""

    def __post_init__(self) -> None:
        if self.owner is not None:
            check_owner(self.owner)
        object.__setattr__(self, "metadata", _metadata_of(self.metadata))
        if self.ttl is not None:
            object.__setattr__(self, "ttl", check_ttl(self.ttl))

    @property
    def metadata_text(self) -> str:
        """The metadata as JSON."""
        return json.dumps(dict(self.metadata), separators=(",", ":"))

    def end_after(self, used: float) -> float | None:
        """Say when a session ends that was used then; None: never.

        Args:
            used: The time of its newest event, in seconds since 1970.
        """
        return None if self.ttl is None else used + self.ttl


def labels_in(kinds_and_data: Iterable[tuple[str, Mapping[str, Any]]], /) -> Labels | None:
    """Read the labels that events say, the last of them; None: none says any.

    A session writes them with its options. An older trimtab writes options without them, and changes none.
    """
    found = None
    for kind, data in kinds_and_data:
        options = data.get("options") if kind == "options" else None
        if isinstance(options, Mapping) and "owner" in options:
            found = Labels(
                owner=options["owner"],
                metadata=check_metadata(options.get("metadata") or {}),
                ttl=options.get("ttl"),
            )
    return found


class SessionEntry(str):
    """The name of a session in a list, and what the store knows of it.

    Args:
        name: Its name.
        version: The number of its events.
        used: The time of its newest event, in seconds since 1970.
        labels: Its owner, metadata and time to live.
        incarnation: Which of the sessions with its name it is.

    Example:
        >>> entry = SessionEntry("chat-1", used=20.0, labels=Labels(owner="ada", ttl=5.0))
        >>> entry, entry.owner, entry.expires
        ('chat-1', 'ada', 25.0)
    """

    def __new__(
        cls,
        name: str,
        /,
        *,
        version: int = 0,
        used: float = 0.0,
        labels: Labels | None = None,
        incarnation: str = "",
    ) -> Self:
        entry = super().__new__(cls, name)
        entry.version, entry.used, entry.incarnation = version, used, incarnation
        entry.labels = Labels() if labels is None else labels
        return entry

    version: int
    """The number of its events."""
    used: float
    """The time of its newest event, in seconds since 1970."""
    labels: Labels
    """Its owner, metadata and time to live."""
    incarnation: str
    """Which of the sessions with its name it is."""

    @property
    def owner(self) -> str | None:
        """Whose it is; None: nobody's."""
        return self.labels.owner

    @property
    def metadata(self) -> dict[str, str | int | float | bool]:
        """Names and values to find it by."""
        return dict(self.labels.metadata)

    @property
    def ttl(self) -> float | None:
        """Seconds that it lives after its newest event; None: without end."""
        return self.labels.ttl

    @property
    def expires(self) -> float | None:
        """When it ends unless it is used again; None: never."""
        return self.labels.end_after(self.used)

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain data."""
        return {
            "id": str(self),
            "version": self.version,
            "time": self.used,
            "owner": self.owner,
            "metadata": self.metadata,
            "ttl": self.ttl,
        }


class Sessions(list[SessionEntry]):
    """A page of a list of sessions.

    Args:
        entries: The sessions.
        next: Pass it as `after` for the next page; None: this is the last one.
    """

    __slots__ = ("next",)

    def __init__(self, entries: Iterable[SessionEntry] = (), /, *, next: str | None = None) -> None:
        super().__init__(entries)
        self.next = next
        """Pass it as `after` for the next page; None: this is the last one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What an order to remove sessions did.

    Args:
        sessions: How many are gone.
        messages: How many messages they had.
        bytes: How many bytes of data they had, as they were stored.
        left: Names of sessions that are still there although they were meant, and why.
        not_erased: Why files may still hold bytes of what is gone; None: they hold none.
        more: Whether there are more to remove: repeat the call.
        keys: Name and key of each encrypted session that is gone and whose key record is in another store.
        removed_keys: Those whose key record was in this store, and went along.

    Example:
        >>> Receipt(sessions=2, messages=9).messages
        9
    """

    sessions: int = 0
    """How many are gone."""
    messages: int = 0
    """How many messages they had."""
    bytes: int = 0
    """How many bytes of data they had, as they were stored."""
    left: Mapping[str, str] = field(default_factory=dict)
    """Names of sessions that are still there although they were meant, and why."""
    not_erased: str | None = None
    """Why files may still hold bytes of what is gone; None: they hold none."""
    more: bool = False
    """Whether there are more to remove: repeat the call."""
    keys: Sequence[tuple[str, str]] = field(default=(), repr=False)
    """Name and key of each encrypted session that is gone and whose key record is in another store."""
    removed_keys: Sequence[tuple[str, str]] = field(default=(), repr=False)
    """Those whose key record was in this store, and went along."""

    def __add__(self, other: Receipt) -> Receipt:
        """Return both as one."""
        return Receipt(
            sessions=self.sessions + other.sessions,
            messages=self.messages + other.messages,
            bytes=self.bytes + other.bytes,
            left={**self.left, **other.left},
            not_erased=other.not_erased or self.not_erased,
            more=other.more,
            keys=(*self.keys, *other.keys),
            removed_keys=(*self.removed_keys, *other.removed_keys),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "sessions": self.sessions,
            "messages": self.messages,
            "bytes": self.bytes,
            "left": dict(self.left),
            "not_erased": self.not_erased,
            "more": self.more,
        }


def key_value(session: str, id: str, /) -> str:
    """Write which key record a session has, bound to its name."""
    return f"{id}.{hashlib.blake2b(session.encode('utf-8', 'surrogatepass'), digest_size=8).hexdigest()}"


def key_id(session: str, value: object, /) -> str | None:
    """Read which key record a session has; None for a value that was copied by hand from another session."""
    found = _KEY_VALUE.fullmatch(value) if isinstance(value, str) else None
    return found[1] if found is not None and value == key_value(session, found[1]) else None


def key_records(entries: Iterable[SessionEntry], /) -> dict[str, tuple[str, str]]:
    """Name the key records of those sessions that are encrypted; with each what `Receipt.keys` says of it."""
    found = {}
    for entry in entries:
        value = entry.labels.metadata.get(KEY_LABEL)
        id = key_id(str(entry), value)
        if id is not None:
            found[KEY_PREFIX + id] = str(entry), str(value)
    return found
