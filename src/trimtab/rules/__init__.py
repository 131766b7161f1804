"""Rules in what users and operators say: found without a model, word for word."""

from __future__ import annotations

from trimtab._shared.lazy import public_dir
from trimtab.rules.find import find_rules
from trimtab.rules.rule import KINDS, STANDING, STRONGEST, Rule, RuleKind
from trimtab.rules.topics import supersedes

__all__ = ["KINDS", "STANDING", "STRONGEST", "Rule", "RuleKind", "find_rules", "supersedes"]

__dir__ = public_dir(globals())
