"""The judge, as the fuzzer asks it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def newly_refused(form: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    return []


def refused(form: str, body: Mapping[str, Any]) -> list[str]:
    return []


def only_pairs_are_wrong(form: str, body: Mapping[str, Any]) -> bool:
    return False
