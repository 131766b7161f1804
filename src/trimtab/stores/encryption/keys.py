"""Keys that encrypt the keys of sessions: a ring of secrets, or a key management service.

A session has a secret of its own, which is random. What is kept of it is the secret *wrapped*: encrypted by
the current key of the ring, or by the service. Its rows are encrypted by keys derived from the secret.
"""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from base64 import b64decode
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from trimtab.errors import ConfigurationError, CopyError, EncryptionKeyError
from trimtab.stores.encryption.cipher import NONCE_BYTES, aead, derive, unreadable

SECRET_BYTES = 32
"""A secret has so many bytes, at least."""

SHOWN = "env:VARIABLE or file:PATH"

_ID = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_SALT_BYTES = 16
_EXAMPLE = '"2026-11:$(openssl rand -base64 32)"'


class Keys(ABC):
    """Wraps the secrets of sessions; see `KeyRing` and `KmsKeys`."""

    waits: bool = False
    """Whether a call takes long: an event loop then runs it in a thread."""

    @property
    @abstractmethod
    def current(self) -> str:
        """Id of the key that wraps new secrets."""

    @abstractmethod
    def wrap(self, secret: bytes, /, *, bound: bytes) -> bytes | Awaitable[bytes]:
        """Encrypt a secret with the current key.

        Args:
            secret: 32 random bytes.
            bound: What it belongs to; `unwrap` is given the same.
        """

    @abstractmethod
    def unwrap(self, key: str, wrapped: bytes, /, *, bound: bytes) -> bytes | Awaitable[bytes]:
        """Decrypt a secret.

        Args:
            key: Id of the key that wrapped it.
            wrapped: What `wrap` returned.
            bound: What it belongs to.

        Raises:
            EncryptionKeyError: There is no such key, or another has its id now.
        """


class KeyRing(Keys):
    """Secrets by their ids, of which one is current.

    The current secret wraps what is written from now on; the others read what was written before. To rotate,
    add a secret, make it current, and call `EncryptedStore.rotate`.

    Args:
        secrets: By id (letters, digits, dots, - and _): at least 32 random bytes, or the same as base64.
        current: Id of the current secret; None: the only one.

    Raises:
        ConfigurationError: There is no secret, one is too short, or it is not clear which one is current.

    Example:
        >>> import secrets
        >>> KeyRing({"2026-11": secrets.token_bytes(32)})
        KeyRing(2026-11, current='2026-11')
    """

    def __init__(self, secrets: Mapping[str, bytes | str], /, *, current: str | None = None) -> None:
        if not isinstance(secrets, Mapping):  # it may be a secret, and is not shown
            raise ConfigurationError(
                f"secrets must be a mapping of ids to secrets, not {type(secrets).__name__}",
                argument="secrets",
            )
        self._secrets = {_check_id(key): _secret_of(key, secret) for key, secret in secrets.items()}
        if not self._secrets:
            raise ConfigurationError("a key ring needs at least one secret, by its id", argument="secrets")
        if current is None and len(self._secrets) > 1:
            ids = ", ".join(self._secrets)
            raise ConfigurationError(
                f"there are several secrets ({ids}): pass current=, the id of the one that encrypts from now"
                " on",
                argument="current",
            )
        self._current = next(iter(self._secrets)) if current is None else current
        if self._current not in self._secrets:
            raise ConfigurationError(
                f"current must be one of {', '.join(self._secrets)}, not {self._current!r:.80}",
                argument="current",
            )

    @classmethod
    def read(cls, place: str, /) -> KeyRing:
        """Read a key ring from a variable of the environment or a file.

        It has a line for each secret, ID:BASE64, or several on a line with spaces between them. The first is
        current. Lines that begin with # are comments.

        Args:
            place: "env:" and the name of a variable, or "file:" and a path.

        Raises:
            ConfigurationError: It cannot be read; the error shows no secret.
        """
        kind, _, rest = place.partition(":") if isinstance(place, str) else ("", "", "")
        if kind == "env" and rest:
            text, where = os.environ.get(rest, ""), f"the variable {rest:.80}"
        elif kind == "file" and rest:
            where = f"the file {rest:.200}"
            try:
                text = Path(rest).expanduser().read_text("utf-8")
            except OSError as error:
                raise ConfigurationError(f"keys: {where} cannot be read: {error.strerror}") from None
            except ValueError:
                raise ConfigurationError(f"keys: {where} is not text in UTF-8") from None
        else:  # what was given may be the keys themselves
            raise ConfigurationError(f"the place of keys must be {SHOWN}, never the keys themselves")
        return cls._parse(text, where)

    @classmethod
    def _parse(cls, text: str, where: str) -> KeyRing:
        lines = (line for line in text.splitlines() if not line.lstrip().startswith("#"))
        pairs = [word.partition(":") for line in lines for word in line.split()]
        secrets = {key: secret for key, _, secret in pairs}
        if not pairs or not all(separator for _, separator, _ in pairs) or len(secrets) < len(pairs):
            raise ConfigurationError(
                f"keys: {where} must have a line ID:BASE64 for each key, each id once, the current one first;"
                f" for example {_EXAMPLE}"
            )
        return cls(secrets, current=pairs[0][0])

    @property
    def current(self) -> str:
        """Id of the secret that wraps new keys of sessions."""
        return self._current

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of all secrets."""
        return tuple(self._secrets)

    def wrap(self, secret: bytes, /, *, bound: bytes) -> bytes:
        salt, nonce = os.urandom(_SALT_BYTES), os.urandom(NONCE_BYTES)
        cipher = aead(derive(self._secrets[self._current], b"wrap", bound, salt=salt))
        return salt + nonce + cipher.encrypt(nonce, secret, bound)

    def unwrap(self, key: str, wrapped: bytes, /, *, bound: bytes) -> bytes:
        if key not in self._secrets:
            raise EncryptionKeyError(
                f"the key ring has no key {key!r:.80}, only {', '.join(self._secrets)}: add that key to the"
                " ring, it need not be current",
                key=key,
            )
        salt, nonce = wrapped[:_SALT_BYTES], wrapped[_SALT_BYTES : _SALT_BYTES + NONCE_BYTES]
        cipher = aead(derive(self._secrets[key], b"wrap", bound, salt=salt))
        try:
            return cipher.decrypt(nonce, wrapped[_SALT_BYTES + NONCE_BYTES :], bound)
        except unreadable():
            raise EncryptionKeyError(
                f"the key {key!r} of the ring is not the one that was called so when this was written, or"
                " the stored key was changed. Put the former secret back under its id",
                key=key,
            ) from None

    def __repr__(self) -> str:
        """Show the ids, no secret."""
        return f"KeyRing({', '.join(self._secrets)}, current={self._current!r})"

    def __reduce__(self) -> NoReturn:
        """Refuse to be copied or pickled: the pickle would have the secrets.

        Raises:
            CopyError: Always.
        """
        raise CopyError(
            "a KeyRing is not copied or pickled: its secrets would be in the copy. Read it where it is used,"
            " for example with KeyRing.read('env:TRIMTAB_KEY_RING')"
        )


class KmsKeys(Keys):
    """A key management service, asked by two functions; its keys never leave it.

    A session's secret is sent there when the session begins or is rotated, and when a process reads the
    session for the first time. Both functions may be async; then only the forms for asyncio work. What they
    raise is the cause of an `EncryptionKeyError`; of a `StoreUnavailableError` if it is an `OSError`.

    Args:
        current: Id of the key at the service that wraps new secrets, such as its ARN.
        wrap: Called with the id of a key and a secret of 32 bytes; returns it encrypted.
        unwrap: Called with the id of a key and what `wrap` returned; returns the secret. It should raise
            `EncryptionKeyError` for a key that is not there.

    Example:
        >>> def reverse(key: str, secret: bytes) -> bytes:
        ...     return secret[::-1]  # a real one asks the service
        >>> KmsKeys("alias/sessions", wrap=reverse, unwrap=reverse)
        KmsKeys(current='alias/sessions')
    """

    waits = True

    def __init__(
        self,
        current: str,
        /,
        *,
        wrap: Callable[[str, bytes], bytes | Awaitable[bytes]],
        unwrap: Callable[[str, bytes], bytes | Awaitable[bytes]],
    ) -> None:
        if not isinstance(current, str) or not current:
            raise ConfigurationError(f"current must be the id of a key, not {current!r:.80}")
        if not callable(wrap) or not callable(unwrap):
            raise ConfigurationError("wrap and unwrap must be functions of a key's id and bytes")
        self._current, self._wrap, self._unwrap = current, wrap, unwrap

    @property
    def current(self) -> str:
        """Id of the key that wraps new keys of sessions."""
        return self._current

    def wrap(self, secret: bytes, /, *, bound: bytes) -> bytes | Awaitable[bytes]:
        return self._wrap(self._current, secret)

    def unwrap(self, key: str, wrapped: bytes, /, *, bound: bytes) -> bytes | Awaitable[bytes]:
        return self._unwrap(key, wrapped)

    def __repr__(self) -> str:
        """Show the id of the current key."""
        return f"KmsKeys(current={self._current!r})"


def as_bytes(found: Any, /) -> Any:
    """Make bytes of what is like them, as some clients answer."""
    return bytes(found) if isinstance(found, bytearray | memoryview) else found


def _check_id(key: object) -> str:
    if not isinstance(key, str) or _ID.fullmatch(key) is None:
        raise ConfigurationError(
            "the id of a key must be 1 to 64 letters, digits, dots, - and _", argument="secrets"
        )
    return key


def _secret_of(key: str, secret: object) -> bytes:
    """Read a secret; no error shows any of it."""
    try:
        found = b64decode(secret, validate=True) if isinstance(secret, str) else as_bytes(secret)
    except ValueError:
        raise ConfigurationError(f"key {key!r} is not base64", argument="secrets") from None
    if not isinstance(found, bytes) or len(found) < SECRET_BYTES:
        what = f"{len(found)} bytes" if isinstance(found, bytes) else type(found).__name__
        raise ConfigurationError(
            f"key {key!r} must have at least {SECRET_BYTES} random bytes, as bytes or base64, not {what};"
            " make one with secrets.token_bytes(32), or openssl rand -base64 32",
            argument="secrets",
        )
    return found
