"""What is secret in the place a store is at, taken out of every text that is shown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import parse_qsl, unquote

MASK = "***"

_KEY = r"\w*(?:pass(?:word|wd|phrase)?|pwd|secret|token|key|auth|jwt|credentials?)"
"""Names of what is secret, as clients of all kinds have them."""
_VALUE = r"""'(?:[^'\\]|\\.)*'|"[^"]*"|[^&\s'"]+"""
_GIVEN = re.compile(rf"(\b{_KEY}\s*=\s*)({_VALUE})", re.IGNORECASE)
"""Secrets in the query of a URL, and in a list of keys and values as libpq takes it."""
_LISTED = re.compile(rf"\b{_KEY}\s*=\s*(.*?)(?=\s+\w+\s*=|$)", re.IGNORECASE | re.DOTALL)
"""The same in a list alone, also with a space that somebody forgot to quote."""
_NAMED = re.compile(_KEY, re.IGNORECASE)
_IN_URLS = re.compile(r"""(:/+)([^\s'"]*)""")
"""What stands behind the scheme of a URL."""


def mask(text: str, *places: str) -> str:
    """Return the text without what is secret in these URLs or DSNs, or in any that stands in it."""
    text = _GIVEN.sub(rf"\1{MASK}", text)
    text = _IN_URLS.sub(_without_user, text)
    for secret in sorted({one for place in places for one in _secrets(place)}, key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", MASK, text)
    return text


def _without_user(found: re.Match[str]) -> str:
    _, at, rest = found[2].rpartition("@")
    return f"{found[1]}{MASK}{at}{rest}" if at else found[0]


def _secrets(place: str) -> Iterator[str]:
    """List what may be a password in it: whole, decoded, and the pieces a client may take it for."""
    if "://" not in place:
        given = [found[1].strip("'\"") for found in _LISTED.finditer(place)]
    else:
        rest = place.partition("://")[2]
        user, _, _ = rest.rpartition("@")
        name, colon, password = user.partition(":")
        given = [password if colon else name]
        given += [value for key, value in parse_qsl(rest.partition("?")[2]) if _NAMED.fullmatch(key)]
    for one in given:
        yield from filter(None, (one, unquote(one), *re.split(r"[:/?#@&=%\[\]\s]", one)))
