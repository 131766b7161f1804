"""Finding rules in messages that come."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from trimtab.errors import ConfigurationError
from trimtab.formats import Dict
from trimtab.session.core import Core, warn
from trimtab.session.rules import RuleBook, rule_data, rule_in, rule_key, texts_with_rules
from trimtab.session.schema import fits_rule
from trimtab.session.working_set import WorkingSet

if TYPE_CHECKING:  # the finder is loaded by who finds a rule
    from trimtab.rules import Rule

MOST_FOUND = 64
"""Rules of one message; what it says beyond them is counted as hidden."""


def take_rules(core: Core, working_set: WorkingSet, data: Dict, *, version: int, id: str) -> Dict:
    """Find the rules of a message that was placed; return what its event has of them.

    Complexity: O(n) in the characters of a user's message; nothing where rules are not looked for.
    """
    if core.in_force.find_rules == "off":
        return {}
    said = [
        rule
        for text, role in texts_with_rules(working_set.reader, data)
        for rule in _rules_in(core, text, role)
    ]
    if not said:
        return {}
    found, orders = said[:MOST_FOUND], working_set.restates_orders
    before, book = working_set.rules, working_set.rules.with_found(found, id, version)
    put_in_force(working_set, book, version)
    known = {one.id for one in before.known}
    core.rules_found += [one.id for one in working_set.rules.known if one.id not in known]
    listed = {one.id for one in working_set.rules.known}
    more = {rule_key(rule.text) for rule in said[MOST_FOUND:] if rule.standing or orders}
    more -= {one.key for one in book.known}
    own = (one for one in book.known if one.source == id and one.id not in listed)
    beyond = len(more) + sum(one.holds(orders=orders) for one in own)
    working_set.rules = replace(working_set.rules, unlisted=working_set.rules.unlisted + len(more))
    return {
        "rules": [rule_data(rule) for rule in found],
        **({"beyond": beyond} if beyond else {}),
        **working_set.rules.to_data(),
    }


def put_in_force(working_set: WorkingSet, book: RuleBook, version: int) -> None:
    """Go by rules from the event of a version on, as far as a register has a place for them."""
    shown = {unit_version for unit in working_set.in_view() for unit_version in unit.members}
    by_id = {one.id: one.version for one in book.known}
    working_set.rules = book.within_limits(
        lambda rule_id: by_id.get(rule_id, 0) in shown, orders=working_set.restates_orders
    )
    working_set.state = working_set.state.with_rules(version)


def _rules_in(core: Core, text: str, role: str) -> list[Rule]:
    from trimtab.rules import find_rules  # not above: only who finds rules needs it

    finder = core.in_force.find_rules
    if not callable(finder):
        return list(find_rules(text, role=role))
    try:
        return list(_said_ones(finder(text), text))
    # SPEC E8: a function of the host's fails, and the message is kept all the same.
    except Exception as error:
        core.hook_errors += 1
        warn(core.session, "find_rules found nothing", f"{type(error).__name__}: {error}")
        return []


def _said_ones(answer: Any, text: str) -> Iterable[Rule]:
    """Take what a function of the host's found: rules, or texts, that are in the message word for word."""
    from trimtab.rules import Rule  # not above: only who finds rules needs it

    if isinstance(answer, str) or not isinstance(answer, Iterable):
        raise ConfigurationError(
            f"find_rules must return a list of texts or rules, not {answer!r:.80}", argument="find_rules"
        )
    for one in answer:
        said = one.text if isinstance(one, Rule) else one
        if not isinstance(said, str) or not said.strip() or said not in text:
            raise ConfigurationError(
                f"find_rules returned {said!r:.80}, which the message does not say", argument="find_rules"
            )
        if isinstance(one, Rule):
            data = rule_data(one)
            if not fits_rule(data):
                raise ConfigurationError(
                    f"find_rules returned {one!r:.160}, of which a log cannot store every field",
                    argument="find_rules",
                )
            yield rule_in(data)
        else:
            whole = said.strip()
            yield Rule(text=whole, start=text.index(whole), kind="rule", strength=4, language="")


def tell_found(core: Core) -> None:
    """Call the hook for rules that were found, once they are stored."""
    found, core.rules_found = core.rules_found, []
    if not found or core.working_set is None:
        return
    by_id = {one.id: one for one in core.working_set.listed_rules()}
    rules = [by_id[one] for one in found if one in by_id]
    if rules:
        core.tell("on_rules", rules)
