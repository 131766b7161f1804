"""A hook for tests of what is read lazily: the same fits with everything read and grouped at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from trimtab.conversation import History


@contextmanager
def grouped_whole() -> Iterator[None]:
    """Group each conversation as a whole, as if nothing could be told from its newest messages.

    What a fit answers must be the same as without it: reading less is a matter of time alone.

    Example:
        >>> from trimtab import fit
        >>> from trimtab.testing import WordCounter
        >>> chat = [{"role": "user", "content": str(n)} for n in range(100)]
        >>> lazy = fit(chat, 40, counter=WordCounter())
        >>> with grouped_whole():
        ...     whole = fit(chat, 40, counter=WordCounter())
        >>> lazy.messages == whole.messages
        True
    """
    with patch.object(History, "near", lambda history, counted, /: None):
        yield
