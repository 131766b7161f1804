"""Contracts and fakes for people who write their own strategy, counter, store or wire form, and our tests.

`check_strategy`, `check_counter`, `check_store` and `check_format` run what trimtab relies on and raise
`ContractBroken` with what, where and the numbers; `conversations` and `request_bodies` make the samples they
run on; `WordCounter` is a counter one can check by eye; `eviction_request` makes what a strategy is asked;
`group_all` has every fit read everything, to hold the lazy way to; `trimtab.testing.corpus` has requests that
break trimmers. Nothing here needs more than the standard library.
`trimtab.testing.hooks` is for trimtab's own tests alone.
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
