"""`ContractBroken`: what the contract suites raise."""

from __future__ import annotations

from typing import NoReturn


class ContractBroken(AssertionError):
    """A strategy, counter or store does not keep a promise that trimtab relies on.

    An AssertionError, so that every test runner shows it as a failed test.
    """

    def __init__(self, message: str, *, rule: str = "") -> None:
        super().__init__(message)
        self.rule = rule
        """The broken promise in one word, as in "within_limit"."""


def broken(rule: str, message: str, /) -> NoReturn:
    """Raise `ContractBroken` with the rule in front of the message.

    Raises:
        ContractBroken: Always.
    """
    raise ContractBroken(f"{rule}: {message}", rule=rule)
