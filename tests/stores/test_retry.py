"""`Retry`: what it repeats, how long it waits, and what it says in the end."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from trimtab import ConfigurationError
from trimtab.errors import CorruptSessionError, StoreError, StoreUnavailableError, VersionConflictError
from trimtab.stores import Retry


def _late(count: int = 1) -> list[Exception]:
    """Make errors that pass; each its own, as a note is written on the last."""
    return [
        VersionConflictError("late", session="s", expected_version=1, actual_version=2) for _ in range(count)
    ]


class Flaky:
    """Raises its errors one after the other, then answers."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.calls = 0

    def __call__(self) -> str:
        """Take the next step."""
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return "stored"


def _run(retry: Retry, function: Callable[[], Any], *, awaited: bool) -> Any:
    if not awaited:
        return retry.call(function)

    async def later() -> Any:
        return function()

    return asyncio.run(retry.acall(later))


def _retry(waited: list[float], *, part: float = 1.0, **options: Any) -> Retry:
    async def asleep(seconds: float) -> None:
        waited.append(seconds)

    return Retry(random=lambda: part, sleep=waited.append, asleep=asleep, **options)


both = pytest.mark.parametrize("awaited", [False, True], ids=["call", "acall"])


@both
def test_what_answers_is_called_once(awaited: bool) -> None:
    """And nobody waits."""
    waited: list[float] = []
    function = Flaky()
    assert _run(_retry(waited), function, awaited=awaited) == "stored"
    assert (function.calls, waited) == (1, [])


@both
def test_each_wait_is_at_most_twice_the_one_before(awaited: bool) -> None:
    """Up to the longest."""
    waited: list[float] = []
    function = Flaky(*_late(), StoreUnavailableError("busy"), *_late(4))
    retry = _retry(waited, first_seconds=0.25, max_seconds=3.0, attempts=7)
    assert _run(retry, function, awaited=awaited) == "stored"
    assert waited == [0.25, 0.5, 1.0, 2.0, 3.0, 3.0]


@both
@pytest.mark.parametrize("part", [0.0, 0.5])
def test_the_wait_is_a_part_at_random(awaited: bool, part: float) -> None:
    """Of the whole, not around the middle: those who met once do not meet again."""
    waited: list[float] = []
    _run(_retry(waited, part=part, first_seconds=2.0, max_seconds=8.0), Flaky(*_late(2)), awaited=awaited)
    assert waited == [2.0 * part, 4.0 * part]


@both
@pytest.mark.parametrize("attempts", [1, 3])
def test_the_last_error_is_raised_and_says_how_often(awaited: bool, attempts: int) -> None:
    """With its numbers, and after a pickle too."""
    waited: list[float] = []
    function = Flaky(*_late(9))
    with pytest.raises(VersionConflictError) as caught:
        _run(_retry(waited, attempts=attempts), function, awaited=awaited)
    assert (function.calls, len(waited)) == (attempts, attempts - 1)
    assert caught.value.actual_version == 2
    assert caught.value.__notes__ == [f"after {attempts} attempts"]
    assert pickle.loads(pickle.dumps(caught.value)).__notes__ == caught.value.__notes__


@both
@pytest.mark.parametrize("error", [CorruptSessionError("torn"), StoreError("no"), ValueError("other")])
def test_what_stays_is_not_repeated(awaited: bool, error: Exception) -> None:
    """Neither damage nor a mistake goes away by asking again."""
    function = Flaky(error)
    with pytest.raises(type(error)):
        _run(_retry([]), function, awaited=awaited)
    assert function.calls == 1


def test_the_default_is_enough_for_a_crowd() -> None:
    """Eight writers on a busy machine met up to 24 conflicts in a row; after 39 it still stores."""
    late = Flaky(*_late(39))
    _run(_retry([]), late, awaited=False)
    assert late.calls == 40
    with pytest.raises(VersionConflictError):
        _run(_retry([]), Flaky(*_late(40)), awaited=False)


def test_a_thousand_attempts_have_a_longest_wait() -> None:
    """No number overflows."""
    waited: list[float] = []
    _run(_retry(waited, attempts=2_000), Flaky(*_late(1_500)), awaited=False)
    assert waited[-1] == 1.0


def test_it_really_waits_by_default() -> None:
    """Both ways, with the sleep and the random numbers of the standard library."""
    retry = Retry(first_seconds=0.001, max_seconds=0.002)
    assert _run(retry, Flaky(*_late()), awaited=False) == "stored"
    assert _run(retry, Flaky(*_late()), awaited=True) == "stored"


@pytest.mark.parametrize(
    "options",
    [
        {"attempts": 0},
        {"attempts": True},
        {"attempts": 1.5},
        {"first_seconds": -0.1},
        {"first_seconds": 2.0, "max_seconds": 1.0},
        {"max_seconds": float("nan")},
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any]) -> None:
    """Where it is given."""
    with pytest.raises(ConfigurationError):
        Retry(**options)


def test_the_bounds_are_allowed() -> None:
    """One attempt, no wait at all."""
    assert Retry(attempts=1, first_seconds=0.0, max_seconds=0.0).call(lambda: 5) == 5
