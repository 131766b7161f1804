"""Contracts and fakes for people who write their own strategy, counter or store, and for our own tests.

`check_strategy`, `check_counter` and `check_store` run what trimtab relies on and raise `ContractBroken` with
what, where and the numbers; `conversations` makes the samples they run on; `WordCounter` is a
counter one can check by eye. Nothing here needs more than the standard library.
"""

from __future__ import annotations

from trimtab.testing._conversations import conversations
from trimtab.testing._counter_contract import check_counter
from trimtab.testing._errors import ContractBroken
from trimtab.testing._store_contract import check_store
from trimtab.testing._strategy_contract import check_strategy
from trimtab.testing._word_counter import WordCounter

__all__ = ["ContractBroken", "WordCounter", "check_counter", "check_store", "check_strategy", "conversations"]
