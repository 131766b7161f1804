"""`ContractBroken`, and what the contract suites share: how they ask, and how they say what is broken."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

T = TypeVar("T")


class ContractBroken(AssertionError):
    """A strategy, counter, store or wire form breaks its contract.

    It is an AssertionError, so every test runner shows it as a failed test.

    Args:
        message: The text of the error.
        rule: The broken rule in one word, such as "within_limit".
    """

    def __init__(self, message: str, *, rule: str = "") -> None:
        super().__init__(message)
        self.rule = rule
        """The broken rule in one word, such as "within_limit"."""


def fail(rule: str, message: str, /) -> NoReturn:
    """Raise `ContractBroken` with the rule in front of the message.

    Raises:
        ContractBroken: Always.
    """
    raise ContractBroken(f"{rule}: {message}", rule=rule)


def ask(call: Callable[[], T], rule: str, where: str, /) -> T:
    """Call into what is checked; whatever it raises breaks a rule.

    Raises:
        ContractBroken: It raised.
    """
    try:
        return call()
    except ContractBroken:
        raise
    except Exception as error:
        raise ContractBroken(
            f"{rule}: {where} raised {type(error).__name__}: {error!s:.200}", rule=rule
        ) from error


class Dumped:
    """A message as SDKs return it: an object that can be written as a dict."""

    def __init__(self, message: dict[str, Any]) -> None:
        self._message = message

    def model_dump(self, **_options: Any) -> dict[str, Any]:
        """Write it."""
        return copy.deepcopy(self._message)
