"""Contracts and fakes for people who write their own strategy, counter, store or wire form, and our tests.

`check_strategy`, `check_counter`, `check_store` and `check_format` run what trimtab relies on and raise
`ContractBroken` with what, where and the numbers; `conversations` and `request_bodies` make the samples they
run on; `WordCounter` is a counter one can check by eye; `trimtab.testing.corpus` has requests that break
trimmers. Nothing here needs more than the standard library.
"""

from __future__ import annotations

from trimtab.testing._bodies import request_bodies
from trimtab.testing._conversations import conversations
from trimtab.testing._counter_contract import check_counter
from trimtab.testing._errors import ContractBroken
from trimtab.testing._format_contract import check_format
from trimtab.testing._store_contract import check_store
from trimtab.testing._strategy_contract import check_strategy
from trimtab.testing._word_counter import WordCounter

__all__ = [
    "ContractBroken",
    "WordCounter",
    "check_counter",
    "check_format",
    "check_store",
    "check_strategy",
    "conversations",
    "request_bodies",
]
