"""What the host orders of rules: another one, that one it found holds, or that one holds no longer."""

from __future__ import annotations

from trimtab.errors import UnknownNameError
from trimtab.session.change import write_change
from trimtab.session.core import Core
from trimtab.session.effects import Steps
from trimtab.session.found_rules import put_in_force
from trimtab.session.rule_record import SessionRule, host_rule
from trimtab.session.rules import RuleBook, rule_key
from trimtab.session.working_set import WorkingSet
from trimtab.strategies.rules_message import check_rules


def add_rule(core: Core, text: object) -> Steps[SessionRule]:
    """Add a rule of the host, or confirm one that was found."""
    (rule,) = check_rules([text])
    working_set = yield from core.ready()
    known = working_set.rules.said_by(rule)
    same = next((one for one in working_set.host_rules if rule_key(one) == rule_key(rule)), None)
    if same is not None:
        return host_rule(same)
    if known is None:
        yield from _set_host_rules(core, working_set, [*working_set.host_rules, rule])
        return host_rule(rule)
    if not known.confirmed or known.superseded_by is not None:
        yield from _set_found_rules(core, working_set, working_set.rules.with_confirmed(known.id))
    now = yield from core.ready()
    return next(one for one in now.listed_rules() if one.id == known.id)


def drop_rule(core: Core, rule_id: object) -> Steps[SessionRule]:
    """Have a rule hold no longer."""
    working_set = yield from core.ready()
    rules = working_set.listed_rules()
    dropped = next((one for one in rules if one.id == rule_id), None)
    if dropped is None:
        raise UnknownNameError(
            f"session {core.session!r} has no rule {rule_id!r:.80}; session.rules lists them with their ids",
            name=str(rule_id),
        )
    if dropped.by == "host":
        rest = [one for one in working_set.host_rules if host_rule(one).id != rule_id]
        yield from _set_host_rules(core, working_set, rest)
    else:
        yield from _set_found_rules(core, working_set, working_set.rules.without(dropped.id))
    return dropped


def _set_host_rules(core: Core, working_set: WorkingSet, rules: list[str]) -> Steps[None]:
    version, seen = core.next_version(working_set), working_set.view()
    core.working_set = None  # until everything is written
    working_set.host_rules = rules
    working_set.state = working_set.state.with_host_rules(version)
    working_set.measure()
    working_set.require_room()
    yield from write_change(core, working_set, "rules", {"host": rules}, seen=seen)


def _set_found_rules(core: Core, working_set: WorkingSet, book: RuleBook) -> Steps[None]:
    version, seen = core.next_version(working_set), working_set.view()
    core.working_set = None  # until everything is written
    put_in_force(working_set, book, version)
    yield from write_change(core, working_set, "rules", working_set.rules.to_data(), seen=seen)
