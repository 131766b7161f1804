"""Is a sentence a rule, by the cues in it?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from trimtab.rules.language import Finds, Index, find_cues
from trimtab.rules.rule import RuleKind

__all__ = ["Verdict", "finds_of", "judge"]


class Verdict(NamedTuple):
    """What a sentence asks for, and how strongly."""

    kind: RuleKind
    strength: int


_ORDERS = frozenset(("ban", "always", "duty", "deny", "act"))
_MOST_WORDS = 80
"""A longer sentence is no rule that somebody says: most are pasted."""


def finds_of(index: Index, words: Sequence[str], /) -> Finds:
    """Find the cues of a sentence; of a question those before it asks, unless it asks politely."""
    if len(words) > _MOST_WORDS:
        return {}
    asks = words[-1] in ("?", "？")
    if asks and len(words) > 1 and words[-2] in index.tags:
        asks = False
    found = find_cues(index, words)
    if not asks or ("ask" in found and ("duration" in found or "always" in found or "ban" in found)):
        return found
    begin = _question(index, words)
    told = find_cues(index, words[:begin])
    return {cue: told[cue] for cue in ("prefer", "void", "report", "fiction") if cue in told}


def _question(index: Index, words: Sequence[str]) -> int:
    """Give the place where the last clause of a question begins; 0: it has one clause."""
    for at in range(len(words) - 1, 0, -1):
        if words[at] in index.joints and words[at - 1] in (",", ";", "，", "."):
            return at - 1
    for at in range(len(words) - 2, 0, -1):
        if words[at] in ",;，；–—":
            return at
    return 0


def judge(found: Finds, *, labelled: bool = False) -> Verdict | None:
    """Judge a sentence by its cues; None: it is no rule.

    Args:
        found: The cues.
        labelled: It stands in a list that is called rules.
    """
    if not found.keys().isdisjoint(("report", "fiction", "permit")):
        return None
    orders = not found.keys().isdisjoint(_ORDERS)
    labelled = labelled or "label" in found
    lasts = "duration" in found
    if not orders:
        return _without_order(found, lasts=lasts, labelled=labelled)
    return _order(found, lasts=lasts, labelled=labelled)


def _without_order(found: Finds, *, lasts: bool, labelled: bool) -> Verdict | None:
    if "cap" in found:
        return Verdict("limit", 4 if lasts else 3)
    if "prefer" in found:
        return Verdict("preference", 4 if lasts else 3)
    if labelled and ("limit" in found or "general" in found):
        return Verdict("limit" if "limit" in found else "rule", 3)
    return None


def _order(found: Finds, *, lasts: bool, labelled: bool) -> Verdict:
    kind: RuleKind = "limit" if "cap" in found or "limit" in found else "rule"
    if "once" in found and not lasts and not labelled:
        return Verdict("order", 2 if not found.keys().isdisjoint(("ban", "always", "deny", "duty")) else 1)
    if lasts or not found.keys().isdisjoint(("ban", "always")):
        return Verdict(kind, 4)
    if "cap" in found:
        return Verdict("limit", 3)
    if "prefer" in found:
        return Verdict("preference", 3)
    if labelled or not found.keys().isdisjoint(("gate", "case", "general")):
        return Verdict(kind, 3)
    return Verdict("order", 1 if found.keys().isdisjoint(("deny", "duty")) else 2)
