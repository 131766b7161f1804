"""The cache of counts by text: bounded, right under threads."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.counting import TextCounter
from trimtab.testing.hooks import TextCache


def length(text: str) -> int:
    """Count a text by its characters."""
    return len(text)


def held(cache: TextCache) -> dict[str, int]:
    """Merge what both generations hold."""
    merged = {**cache.young.old, **cache.young}
    merged.pop(None, None)
    return merged


def test_a_count_is_remembered_until_it_is_cleared() -> None:
    """What was measured is found, what was not is None; nothing is measured twice."""
    asked: list[str] = []
    cache = TextCache(lambda text: asked.append(text) or len(text), name="length")
    assert [cache.young["abc"], cache.young[""], cache.young["abc"], cache.young[None]] == [3, 0, 3, 0]
    assert (cache.get("abc"), cache.get("b"), len(cache), asked) == (3, None, 2, ["abc", ""])
    cache.clear()
    assert (cache.get("abc"), len(cache)) == (None, 0)


@given(st.lists(st.text("ab", max_size=6), max_size=60))
def test_the_cache_keeps_its_bounds(texts: list[str]) -> None:
    """Neither entries nor characters pass what is allowed, and every count is right."""
    cache = TextCache(length, name="length", max_entries=6, max_chars=20)
    for text in texts:
        assert cache.young[text] == len(text)
        kept = held(cache)
        assert len(kept) <= 6
        assert sum(map(len, kept)) <= 20
        assert all(len(text) == count for text, count in kept.items())


def test_a_text_larger_than_half_the_bound_is_not_kept() -> None:
    """One huge text does not throw out all the others."""
    cache = TextCache(length, name="length", max_entries=10, max_chars=20)
    assert [cache.young[text] for text in ("a", "b" * 9, "c" * 11)] == [1, 9, 11]
    assert (cache.get("a"), cache.get("b" * 9), cache.get("c" * 11)) == (1, 9, None)


def test_what_is_asked_for_again_outlives_what_is_not() -> None:
    """A count read from the old generation moves to the young one."""
    cache = TextCache(length, name="length", max_entries=8, max_chars=1_000)
    assert (cache.young["keep"], cache.young["drop"]) == (4, 4)
    for round_ in range(8):
        for i in range(2):
            cache.young[f"{round_}-{i}"]
        assert cache.get("keep") == 4
    assert cache.get("drop") is None


@pytest.mark.parametrize("value", [3, 1.5, ("a",), b"a"])
def test_what_is_no_text_is_not_counted(value: object) -> None:
    """The text function is never asked about anything but text."""
    with pytest.raises(TypeError, match="is not a text"):
        TextCache(lambda text: 1, name="one").young[value]


def test_counts_are_right_while_threads_share_a_small_cache() -> None:
    """Eight threads count, and one clears, for many rounds: no count is ever wrong."""
    counter = TextCounter(
        length, name="length", cache=TextCache(length, name="length", max_entries=50, max_chars=2_000)
    )
    wrong: list[str] = []
    done = threading.Event()

    def count(seed: int) -> None:
        messages = [{"role": "user", "content": "x" * ((seed * 7 + i) % 90)} for i in range(200)]
        for _ in range(40):
            sizes: list[int | None] = [None] * len(messages)
            counter.count_back(list(messages), 0, len(messages), 1 << 60, sizes)
            expected = [3 + len("user") + len(message["content"]) for message in messages]
            if sizes != expected:
                wrong.append(f"{seed}: {sizes}")

    def clear() -> None:
        while not done.is_set():
            counter.clear()

    clearing = threading.Thread(target=clear)
    counting = [threading.Thread(target=count, args=(seed,)) for seed in range(8)]
    for thread in (clearing, *counting):
        thread.start()
    for thread in counting:
        thread.join()
    done.set()
    clearing.join()
    assert wrong == []


@pytest.mark.parametrize("rounds", [1, 3])
def test_a_pass_that_fills_the_cache_many_times_over_is_right(rounds: int) -> None:
    """More texts in one pass than the cache holds."""
    counter = TextCounter(
        length, name="length", cache=TextCache(length, name="length", max_entries=10, max_chars=300)
    )
    messages = [{"role": "user", "content": f"{i}"} for i in range(1_000)]
    total = 3 + sum(7 + len(str(i)) for i in range(1_000))
    assert [counter.count(messages) for _ in range(rounds)] == [total] * rounds
