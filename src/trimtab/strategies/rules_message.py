"""How rules are shown: word for word, a line each, in one marked message behind the system text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trimtab._shared.checks import name_of
from trimtab.errors import ConfigurationError
from trimtab.formats import Format
from trimtab.strategies.summarizer import role_for

__all__ = ["RULES_TAG", "check_rules", "found_rules_message", "is_rules_text", "rules_message"]

RULES_TAG = "rules"
"""The element rules stand in."""


def check_rules(rules: object, /) -> tuple[str, ...]:
    """Return the rules of a host, each once, in their order.

    Raises:
        ConfigurationError: It is not a list of texts, or one of them is blank.
    """
    if isinstance(rules, str) or not isinstance(rules, Sequence):
        raise ConfigurationError(
            f'rules must be a list of texts, as in ["Never deploy on Fridays."], not {rules!r:.80}',
            argument="rules",
        )
    for at, rule in enumerate(rules):
        if not isinstance(rule, str) or not rule.strip():
            what = repr(rule) if isinstance(rule, str) else f"a {name_of(type(rule))}"
            raise ConfigurationError(
                f"rules[{at}] is {what:.80}: a rule is a text with at least one word", argument="rules"
            )
    return tuple(dict.fromkeys(rule.strip() for rule in rules))


def rules_message(format: Format, rules: Sequence[str], /, role: str = "system") -> dict[str, Any]:
    """Write the host's rules as one message: system text where the provider takes it there, else the user's.

    Args:
        format: The wire form of the message.
        rules: At least one, as `check_rules` returns them.
        role: The word of the provider for system text.
    """
    text = f"{_OPEN}{_lines(rules)}{_CLOSE}"
    return format.message(role_for(format, role, frozenset({"system"})), [text])


_OPEN, _CLOSE = f'<{RULES_TAG} by="trimtab">\n', f"\n</{RULES_TAG}>"


def is_rules_text(text: str, /) -> bool:
    """Tell whether a text is, from its first sign to its last, what `rules_message` writes.

    Args:
        text: The text of a message.
    """
    inner = text.removeprefix(_OPEN).removesuffix(_CLOSE)
    return len(inner) == len(text) - len(_OPEN) - len(_CLOSE) and inner[:2] == "- " and "<" not in inner


def found_rules_message(format: Format, role: str, rules: Sequence[str], /) -> dict[str, Any]:
    """Write rules that users said as one message of theirs.

    A sentence in front says that later lines hold: what a later rule plainly replaces is not among them, but
    what it may replace is.

    Args:
        format: The wire form of the message.
        role: The role of a text that trimtab writes from messages, as `summary_role`.
        rules: At least one, in the order they were said.
    """
    text = (
        f'<{RULES_TAG} from="user" by="trimtab">\n'
        f"Where two of these differ, the later one holds.\n{_lines(rules)}{_CLOSE}"
    )
    return format.message(role_for(format, role, frozenset({"user"})), [text])


def _lines(rules: Sequence[str]) -> str:
    from html import escape  # not above: it brings every named entity of HTML

    return "\n".join(f"- {escape(rule.strip(), quote=False)}" for rule in rules)
