"""Clients' keys by name: told by their hashes, so that none is written anywhere.

A budget or a server can be for one key. Its name is the operator's word, and may stand in files and logs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from hashlib import sha256
from pathlib import Path

from trimtab._shared.checks import in_words, near_names
from trimtab.errors import ConfigurationError, UnknownNameError
from trimtab.gateway.askers import proofs_in
from trimtab.gateway.headers import Headers

_HASH = re.compile("[0-9a-f]{64}")
_NAME = re.compile("[A-Za-z0-9_.-]{1,64}")
_SHOWN = "sha256:HASH, env:VARIABLE or file:PATH"


class Keys:
    """Names the key that a request comes with.

    Args:
        given: By name, what a key is told by: "sha256:" and its hash in hex, "env:" and a variable of the
            environment that has it, or "file:" and the path of a file that does.

    Raises:
        ConfigurationError: A name or what it stands for is invalid, a key is not there, or two names have
            one key.
    """

    def __init__(self, given: Mapping[str, str]) -> None:
        self._names: dict[str, str] = {}
        """By hash."""
        for name, words in given.items():
            if _NAME.fullmatch(name) is None:
                raise ConfigurationError(
                    f"the name of a key must be 1 to 64 letters, digits, dots, - and _, not {name!r:.80}",
                    argument="keys",
                )
            other = self._names.setdefault(_hash_in(name, words), name)
            if other != name:
                raise ConfigurationError(f"keys {other} and {name} are one key", argument="keys")

    def check(self, name: str, /) -> None:
        """Refuse the name of no key; "" is that of all.

        Raises:
            UnknownNameError: There is no such key.
        """
        known = self._names.values()
        if name and name not in known:
            near = near_names(name, known)
            there = f"there are {', '.join(known)}" if known else "there is none"
            raise UnknownNameError(
                f"no key is named {name!r:.80}: {there}{in_words(near)}. Name it in keys, or as --key"
                f" {name:.80}={_SHOWN}",
                name=name,
                near=near,
                argument="keys",
            )

    def find(self, headers: Headers, target: bytes, /) -> Collection[str]:
        """Return the names of a request's keys; of several, nobody here knows which one a server takes.

        Args:
            headers: With names in small letters.
            target: Path and query.
        """
        if not self._names:
            return ()
        told = (hash_ for _, value in proofs_in(headers, target) for hash_ in _hashes_of(value))
        return {self._names[one] for one in told if one in self._names}


def _hashes_of(value: bytes) -> Collection[str]:
    """Hash what a header has, whole and behind the word for its scheme (`Bearer`)."""
    # As text: servers part it by `str.split`, which knows more white space than that of bytes.
    text = value.decode("latin-1").strip()
    found = {text, *(one.strip() for one in text.split(None, 1)[1:])} - {""}
    return [sha256(one.encode("latin-1")).hexdigest() for one in found]


def _hash_in(name: str, words: str) -> str:
    """Read what a key is told by; no error shows it, as it may be the key itself."""
    kind, _, rest = words.partition(":") if isinstance(words, str) else ("", "", "")
    if kind == "sha256" and _HASH.fullmatch(rest.lower()) is not None:
        return rest.lower()
    if kind == "env" and rest:
        key, where = os.environ.get(rest, ""), f"the variable {rest:.80}"
    elif kind == "file" and rest:
        try:
            key, where = Path(rest).read_text("utf-8"), f"the file {rest:.200}"
        except (OSError, ValueError) as error:
            raise ConfigurationError(
                f"key {name}: {rest:.200} cannot be read: {error}", argument="keys"
            ) from error
    else:
        why = (
            "64 hex digits stand behind sha256:"
            if kind == "sha256"
            else f"write {_SHOWN}, never the key itself"
        )
        raise ConfigurationError(f"key {name}: {why}", argument="keys")
    if not key.strip():
        raise ConfigurationError(f"key {name}: {where} has no key", argument="keys")
    return sha256(key.strip().encode()).hexdigest()
