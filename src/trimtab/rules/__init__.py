"""Rules in what users and operators say: found without a model, word for word."""

from __future__ import annotations

from trimtab._shared.lazy import public_dir
from trimtab.rules.find import find_rules
from trimtab.rules.rule import STANDING, Rule, RuleKind
from trimtab.rules.topics import supersedes

__all__ = ["STANDING", "Rule", "RuleKind", "find_rules", "supersedes"]

__dir__ = public_dir(globals())
