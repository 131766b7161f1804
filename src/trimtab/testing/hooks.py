"""Hooks for the tests of trimtab itself: what they hold from inside, by name, and why no door shows it.

Nothing here is for users. A test that needs the inside of a room takes it from this list and from nowhere
else, so that one page says what a change inside may break; a name goes when the last test does that needs it.

* Where a text is cut is held to Unicode's own cases under both rules, of which a fit takes the one that is
  installed, and to a counter that writes down what it was asked, which a fit's cache would hide.
* Bounds of the cache of counts are seen only by who asks what it still holds.
* Of the packages that count a text, a model takes the first that is there; they are held to one another.
* An operation on a server is a generator of commands: a test that answers them lets another client act
  between two. Of the errors of the clients, two hundred cannot be provoked. Ten minutes cannot be waited for.
* Which program wrote a message is told from thousands of made-up shapes; a door says it in the words of an
  error. What bills teach is held to made-up bills, which no recording has.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from trimtab._shared.steps import run as run_steps
from trimtab.counting.bills import Named, billed_request, compare_with_bills
from trimtab.counting.cache import TextCache
from trimtab.counting.calibration import Calibration, Point, calibration_of, learn, to_data
from trimtab.counting.graphemes import (
    LONGEST_CLUSTER_CHARS,
    Rule,
    best_rule,
    border_after,
    border_before,
    boundary_at_or_after,
    boundary_at_or_before,
    is_boundary,
    unicodedata_rule,
)
from trimtab.counting.shorten import Keep, cut_text, cut_text_near, shorten
from trimtab.counting.tokenizers import LOADED, PACKAGES, Tokenizer, load_tokenizer
from trimtab.counting.tokenizers.tiktoken import PIECE_CHARS, VOCABULARIES, guard, pieces_of
from trimtab.formats.programs import INSTEAD, program_of, said_of
from trimtab.formats.recordings import Reader, reader_of
from trimtab.formats.recordings.refusals import said_of_bytes
from trimtab.stores.postgres.connections import Pool as PostgresPool
from trimtab.stores.postgres.connections import store_error as postgres_error
from trimtab.stores.postgres.operations import MIGRATIONS, Tables
from trimtab.stores.postgres.operations import Operations as PostgresOperations
from trimtab.stores.redis.commands import Command
from trimtab.stores.redis.connections import store_error as redis_error
from trimtab.stores.redis.operations import FILL_EVENTS, FILL_TERMS, PAGE_EVENTS
from trimtab.stores.redis.operations import Operations as RedisOperations
from trimtab.stores.rows import to_row

__all__ = [
    "FILL_EVENTS",
    "FILL_TERMS",
    "INSTEAD",
    "LONGEST_CLUSTER_CHARS",
    "MIGRATIONS",
    "PACKAGES",
    "PAGE_EVENTS",
    "PIECE_CHARS",
    "VOCABULARIES",
    "Calibration",
    "Command",
    "Keep",
    "Named",
    "Point",
    "PostgresOperations",
    "PostgresPool",
    "Reader",
    "RedisOperations",
    "Rule",
    "Tables",
    "TextCache",
    "Tokenizer",
    "best_rule",
    "billed_request",
    "border_after",
    "border_before",
    "boundary_at_or_after",
    "boundary_at_or_before",
    "calibration_of",
    "compare_with_bills",
    "cut_text",
    "cut_text_near",
    "guard",
    "is_boundary",
    "learn",
    "load_tokenizer",
    "nothing_loaded",
    "pieces_of",
    "postgres_error",
    "program_of",
    "reader_of",
    "redis_error",
    "run_steps",
    "said_of",
    "said_of_bytes",
    "shorten",
    "to_data",
    "to_row",
    "unicodedata_rule",
]


@contextmanager
def nothing_loaded() -> Generator[None]:
    """Let no tokenizer be loaded yet, and forget those that are loaded meanwhile."""
    before = LOADED.copy()
    LOADED.clear()
    try:
        yield
    finally:
        LOADED.clear()
        LOADED.update(before)
