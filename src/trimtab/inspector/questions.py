"""What a page asks for: policies, budgets, versions and places, read from an address and written into one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from trimtab.errors import ConfigurationError

__all__ = ["Question", "whole"]

SESSION = "session"
"""Stands for the view of the session itself, where policies are named."""


@dataclass(frozen=True, slots=True)
class Question:
    """Which view is asked for."""

    policy: str
    """A word, or a strategy as JSON."""
    window: int | None = None
    """Its budget in tokens; None: the policy's own."""
    version: int | None = None
    """Of a session's log; None: of a file."""
    edited: int | None = None
    """When the file of the policy was written, where it is one: rows of before are of a list of before."""
    since: int | None = None
    """Messages of a log up to this version are not listed; None: of a log of which all are."""
    model: str = ""
    """The model it is fitted for, where a page chose one."""

    @classmethod
    def of(cls, given: Mapping[str, str], default: str, suffix: str = "") -> Question:
        """Read it out of an address; `suffix` tells the sides of a comparison apart.

        Raises:
            ConfigurationError: A number is none.
        """
        typed = given.get(f"json{suffix}", "").strip()
        policy = typed or given.get(f"policy{suffix}", "") or default
        return cls(
            policy,
            whole(given, f"budget{suffix}", least=1),
            whole(given, f"version{suffix}"),
            whole(given, f"edited{suffix}", most_digits=20),
            whole(given, f"since{suffix}"),
        )

    def words(self, suffix: str = "") -> dict[str, str]:
        """Write it for an address."""
        found = {f"policy{suffix}": self.policy}
        if self.window is not None:
            found[f"budget{suffix}"] = str(self.window)
        for name, value in (("version", self.version), ("edited", self.edited), ("since", self.since)):
            if value is not None:
                found[f"{name}{suffix}"] = str(value)
        return {**found, "model": self.model} if self.model else found

    def to_query(self, **more: object) -> str:
        """Write it as the query of an address, with other values."""
        return urlencode({**self.words(), **{name: str(value) for name, value in more.items()}})


def whole(given: Mapping[str, str], name: str, *, least: int = 0, most_digits: int = 15) -> int | None:
    """Read a whole number; None where it is left out.

    Raises:
        ConfigurationError: It is none, or below the least.
    """
    text = given.get(name, "").strip().replace(",", "").replace("_", "")
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= most_digits) or int(text) < least:
        raise ConfigurationError(
            f"{name} must be a whole number of at least {least}, not {text[:40]!r}", argument=name
        )
    return int(text)
