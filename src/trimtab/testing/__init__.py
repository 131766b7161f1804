"""Contracts and fakes for people who write their own strategy, counter, store or wire form, and for our
tests.

`check_strategy`, `check_counter`, `check_store` and `check_format` check the contract and raise
`ContractBroken` with the rule, the place and the numbers; `conversations` and `request_bodies` make their
samples; `WordCounter` is a counter that can be checked by eye; `eviction_request` makes the request to a
strategy; `group_all` makes every fit read everything, to compare with the lazy way; `trimtab.testing.corpus`
has requests that break trimmers. Nothing here needs more than the standard library. `trimtab.testing.hooks`
is for trimtab's own tests only.
"""

from __future__ import annotations

from trimtab._shared.lazy import public_dir
from trimtab.testing.bodies import request_bodies, spoil_messages
from trimtab.testing.counters import check_counter
from trimtab.testing.errors import ContractBroken
from trimtab.testing.formats import check_format
from trimtab.testing.generate import conversations
from trimtab.testing.stores import check_store
from trimtab.testing.strategies import check_strategy, eviction_request
from trimtab.testing.summarizers import aask_summarizer, ask_summarizer
from trimtab.testing.whole import group_all
from trimtab.testing.word_counter import WordCounter

__all__ = [
    "ContractBroken",
    "WordCounter",
    "aask_summarizer",
    "ask_summarizer",
    "check_counter",
    "check_format",
    "check_store",
    "check_strategy",
    "conversations",
    "eviction_request",
    "group_all",
    "request_bodies",
    "spoil_messages",
]

__dir__ = public_dir(globals())
