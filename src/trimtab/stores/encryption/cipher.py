"""How one event is encrypted, what it is found by, and what of it can be seen: nothing here reads a store."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

from trimtab._shared.lazy import package_of
from trimtab.errors import CorruptSessionError
from trimtab.stores.base import Event
from trimtab.stores.rows import to_row
from trimtab.stores.search import SEALED, event_terms

NONCE_BYTES = 12
"""Of AES-GCM."""

BODY_STEP_BYTES = 256
"""The least step of what is encrypted; of long texts it is an eighth of the length, or less."""

TEXT_STEP_CHARS = 16
"""The least step of a text's length in the index."""

TERM_STEP = 16
"""The least step of how many terms a text has in the index, and of how often it has them in all."""

_PLACE = re.compile(r"([0-9a-f]{16})\.([1-9][0-9]{0,5})")

_TERM_BYTES = 6
"""So many bytes of a keyed hash stand for a term: of 100,000 terms two meet in one of 50,000 sessions."""


class Aead(Protocol):
    """AES-GCM, as cryptography has it."""

    def encrypt(self, nonce: bytes, data: bytes, associated_data: bytes | None) -> bytes: ...
    def decrypt(self, nonce: bytes, data: bytes, associated_data: bytes | None) -> bytes: ...


def _primitives(name: str) -> Any:
    package_of("encrypt", package="cryptography", needed_by="encrypted()")
    return package_of("encrypt", package=f"cryptography.{name}", needed_by="encrypted()")


def aead(key: bytes, /) -> Aead:
    """Make AES-256-GCM of a key."""
    made: Aead = _primitives("hazmat.primitives.ciphers.aead").AESGCM(key)
    return made


def unreadable() -> tuple[type[Exception], ...]:
    """Return the errors of what was encrypted with another key, or changed."""
    return (_primitives("exceptions").InvalidTag, ValueError, TypeError, AttributeError)


def derive(secret: bytes, purpose: bytes, bound: bytes, /, *, salt: bytes | None = None) -> bytes:
    """Derive a key of 32 bytes by HKDF, for one purpose and what it is bound to."""
    hashes, kdf = _primitives("hazmat.primitives.hashes"), _primitives("hazmat.primitives.kdf.hkdf")
    info = b"trimtab/1 " + purpose + b"\0" + bound
    key: bytes = kdf.HKDF(algorithm=hashes.SHA256(), length=32, salt=salt, info=info).derive(secret)
    return key


def padded_size(size: int, least: int, /) -> int:
    """Round a size up to its step: `least`, or for large sizes about an eighth to a sixteenth of them.

    After Padmé (Nikitin et al. 2019): what is seen of a size grows with the logarithm of its logarithm.
    """
    bits = max(1, size).bit_length() - 1
    step = max(least, 1 << max(0, bits - bits.bit_length()))
    return max(1, -(-size // step)) * step


class Place(NamedTuple):
    """Which keys an event was encrypted with, as its row says."""

    key: str
    """Id of the session's key record."""
    generation: int
    """Which of the secrets in it, from 1."""


def place_of(row: Event, /, session: str) -> Place:
    """Read which keys a row needs; a row that was not encrypted is refused."""
    found = _PLACE.fullmatch(str(row.data.get("key", "")))
    if SEALED not in row.data or found is None:
        raise CorruptSessionError(
            f"session {session!r}: event {row.version} is not encrypted, or no longer says with which key. A"
            " session is encrypted from its first event on: open one that is not without keys, copy it"
            " with copy_session(store, encrypted(store, keys), id, to=…), and delete it",
            session=session,
            version=row.version,
        )
    return Place(found[1], int(found[2]))


@dataclass(frozen=True, slots=True)
class SessionCipher:
    """Encrypts and decrypts the events of one session, by one secret."""

    session: str
    place: Place
    _body: Aead = field(repr=False)
    _nonces: bytes = field(repr=False)
    _terms: bytes = field(repr=False)

    @classmethod
    def of(cls, secret: bytes, session: str, place: Place, /) -> SessionCipher:
        """Derive the keys of a session."""
        bound = bind(session, *place)
        body, nonces, terms = (derive(secret, one, bound) for one in (b"body", b"nonces", b"terms"))
        return cls(session, place, aead(body), nonces, terms)

    def seal(self, event: Event, /) -> Event:
        """Encrypt an event that has its version."""
        row = to_row(event)
        body = row.body.encode("ascii")
        body = body.ljust(padded_size(len(body), BODY_STEP_BYTES))
        index = self._index(event)
        bound = self._place_bytes(event, index)
        # Made of what is encrypted, so that no two texts have one, whatever is forked, copied or restored.
        nonce = hmac.digest(self._nonces, hashlib.sha256(bound).digest() + body, "sha256")[:NONCE_BYTES]
        sealed = b64encode(nonce + self._body.encrypt(nonce, body, bound)).decode("ascii")
        data = {SEALED: sealed, "key": f"{self.place.key}.{self.place.generation}", **index}
        return replace(event, data=data, state={})

    def unseal(self, row: Event, /) -> Event:
        """Decrypt an event; one that was changed, or stands elsewhere than it was written, is an error."""
        index = {key: row.data[key] for key in ("chars", "terms") if key in row.data}
        try:
            sealed = b64decode(row.data[SEALED], validate=True)
            bound = self._place_bytes(row, index)
            body = self._body.decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], bound)
        except unreadable():
            raise CorruptSessionError(
                f"session {self.session!r}: event {row.version} was changed after it was encrypted, or was"
                " written for another place. Restore the store from a backup, or copy what is before it with"
                " copy_session(…, before=…)",
                session=self.session,
                version=row.version,
            ) from None
        parsed = json.loads(body)
        return replace(row, data=parsed["data"], state=parsed["state"])

    def hashes(self, terms: Iterable[str], /) -> list[str]:
        """Return what stands for terms in the index of this session."""
        return [self._hash(f"t{term}") for term in terms]

    def _index(self, event: Event) -> Mapping[str, Any]:
        """Return what an event is found by: its length and its terms, in steps and as hashes."""
        chars, terms = event_terms(event)
        if not chars:
            return {}
        count = len(terms)
        more = padded_size(count + 1, TERM_STEP) - count
        often = sum(terms.values()) + more
        surplus = padded_size(often, TERM_STEP) - often
        made = Counter({self._hash(f"t{term}"): often for term, often in terms.items()})
        for at in range(more):  # these stand for no term
            share = surplus // more + (at < surplus % more)
            made[self._hash(f"n{event.version}/{event.id}/{at}")] += 1 + share
        return {"chars": padded_size(chars, TEXT_STEP_CHARS), "terms": dict(sorted(made.items()))}

    def _hash(self, text: str) -> str:
        """Hash a term: one word that begins with a digit, so that no store takes a stem of it."""
        found = hashlib.blake2b(
            text.encode("utf-8", "surrogatepass"), key=self._terms, digest_size=_TERM_BYTES
        )
        return f"0{found.hexdigest()}"

    def _place_bytes(self, event: Event, index: Mapping[str, Any]) -> bytes:
        """Write down what belongs to an encrypted body and is not in it: any other is an error."""
        return bind(
            self.session,
            *self.place,
            event.version,
            event.id,
            event.kind,
            float(event.time),
            index.get("chars"),
            sorted(index.get("terms", {}).items()),
        )


def bind(*parts: Any) -> bytes:
    """Write parts down so that no other parts are written alike."""
    return json.dumps(parts, separators=(",", ":")).encode("ascii")
