"""Many writers at once: no gap, no duplicate, no lost event, and few retries."""

from __future__ import annotations

import pytest

from tests.stores.crowd import (
    MOST_RETRIES,
    append_from_processes,
    append_from_tasks,
    append_from_threads,
    at_percentile,
)
from tests.stores.stores import Place


@pytest.mark.few(1)
def test_eight_processes_append_to_one_session(shared_place: Place) -> None:
    """Each with Retry as it is by default; at most 20 retries an append at the 99th percentile."""
    retries = append_from_processes(shared_place)
    assert at_percentile(retries, 0.99) <= MOST_RETRIES, retries[-10:]


@pytest.mark.few(2)
def test_sixty_four_tasks_append_to_sixty_four_sessions(place: Place) -> None:
    """Through one handle."""
    append_from_tasks(place)


@pytest.mark.few(2)
def test_sixty_four_threads_append_to_sixty_four_sessions(place: Place) -> None:
    """Through eight."""
    append_from_threads(place)
