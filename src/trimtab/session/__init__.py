"""`Session`: a conversation in a log, with a view that always fits."""

from __future__ import annotations

from trimtab._shared.lazy import public_dir
from trimtab._shared.options import UNSET
from trimtab.relevance.ranker import RankerLike
from trimtab.session.hooks import HooksLike, SessionHooks
from trimtab.session.options import FindRulesLike
from trimtab.session.prune import Pruning
from trimtab.session.recall import RecallTool
from trimtab.session.redact import Redaction, WhereLike
from trimtab.session.rule_record import SessionRule
from trimtab.session.session import Session
from trimtab.session.statuses import StoredStatus, astatuses, statuses
from trimtab.session.switch import VERDICTS, SwitchPlan, Verdict
from trimtab.session.view import Origin, SessionStatus, ViewDiff
from trimtab.session.zones import TokenBreakdown, Zones, allocate_zones

__all__ = [
    "UNSET",
    "VERDICTS",
    "FindRulesLike",
    "HooksLike",
    "Origin",
    "Pruning",
    "RankerLike",
    "RecallTool",
    "Redaction",
    "Session",
    "SessionHooks",
    "SessionRule",
    "SessionStatus",
    "StoredStatus",
    "SwitchPlan",
    "TokenBreakdown",
    "Verdict",
    "ViewDiff",
    "WhereLike",
    "Zones",
    "allocate_zones",
    "astatuses",
    "statuses",
]

__dir__ = public_dir(globals())
