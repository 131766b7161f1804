"""What the host orders of rules: another one, or that one holds no longer."""

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
    """Add a rule of the host; one that it has, in other letters or spaces, stays as it is."""
    (rule,) = check_rules([text])
    working_set = yield from core.ready()
    same = next((one for one in working_set.host_rules if rule_key(one) == rule_key(rule)), None)
    if same is None:
        yield from _set_host_rules(core, working_set, [*working_set.host_rules, rule])
    return host_rule(rule if same is None else same)


def drop_rule(core: Core, rule_id: object, *, made: str) -> Steps[SessionRule]:
    """Have a rule hold no longer.

    `made` is the id of the event that says so: asked again after a lost answer, it drops nothing more.
    """
    done = yield from core.known_event(made)
    if done is not None and core.rule_dropped is not None:
        return core.rule_dropped
    working_set = yield from core.ready()
    rules = working_set.listed_rules()
    dropped = next((one for one in rules if one.id == rule_id), None)
    if dropped is None:
        raise UnknownNameError(
            f"session {core.session!r} has no rule {rule_id!r:.80}; session.rules lists them with their ids",
            name=str(rule_id),
        )
    core.rule_dropped = dropped
    if dropped.by == "host":
        rest = [one for one in working_set.host_rules if host_rule(one).id != rule_id]
        yield from _set_host_rules(core, working_set, rest, id=made)
    else:
        yield from _set_found_rules(core, working_set, working_set.rules.without(dropped.id), id=made)
    return dropped


def _set_host_rules(
    core: Core, working_set: WorkingSet, rules: list[str], *, id: str | None = None
) -> Steps[None]:
    version, seen = core.next_version(working_set), working_set.view()
    core.working_set = None  # until everything is written
    working_set.host_rules = rules
    working_set.state = working_set.state.with_host_rules(version)
    working_set.measure()
    working_set.require_room()
    yield from write_change(core, working_set, "rules", {"host": rules}, seen=seen, id=id)


def _set_found_rules(core: Core, working_set: WorkingSet, book: RuleBook, *, id: str) -> Steps[None]:
    version, seen = core.next_version(working_set), working_set.view()
    core.working_set = None  # until everything is written
    put_in_force(working_set, book, version)
    yield from write_change(core, working_set, "rules", working_set.rules.to_data(), seen=seen, id=id)
