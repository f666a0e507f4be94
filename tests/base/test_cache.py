"""The one cache: what it keeps, what it forgets, and what it counts, whoever uses it."""

from __future__ import annotations

from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.base.cache import Cache


def test_what_was_not_asked_for_the_longest_makes_room() -> None:
    cache: Cache[str, int] = Cache(entries=2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    cache.put("c", 3)
    assert [cache.get(key) for key in "abc"] == [1, None, 3]
    assert "a" in cache and "b" not in cache and len(cache) == 2


def test_what_is_too_large_is_not_kept() -> None:
    cache: Cache[str, int] = Cache(size=10, largest=6)
    for number, text in enumerate(("aaaa", "bbbb", "aaaa", "cc", "too long")):
        cache.put(text, number, len(text))
    assert [cache.get(text) for text in ("aaaa", "bbbb", "cc", "too long")] == [2, 1, 3, None]
    assert cache.size == 10 and len(cache) == 3
    cache.put("cc", 4, 7)
    assert cache.get("cc") is None and cache.size == 8, "the one before is of another value"


def test_the_first_of_two_is_kept() -> None:
    cache: Cache[str, str] = Cache(size=10)
    assert cache.put_first("a", "first", 4) == "first"
    assert cache.put_first("a", "second", 4) == "first"
    assert cache.put_first("b", "large", 11) == "large"
    assert cache.size == 4 and cache.get("b") is None


def test_whoever_is_told_knows_what_is_gone() -> None:
    gone: list[tuple[str, int]] = []
    cache: Cache[str, int] = Cache(entries=2, forget=lambda key, value: gone.append((key, value)))
    for number, key in enumerate("abca"):
        cache.put(key, number)
    cache.drop("c")
    cache.drop("c")
    cache.drop_where(lambda key, value: value == 3)
    assert gone == [("a", 0), ("b", 1), ("c", 2), ("a", 3)]
    assert (len(cache), cache.size) == (0, 0)


ACTIONS = st.lists(
    st.tuples(st.sampled_from(["get", "put", "put_first", "drop"]), st.integers(0, 5), st.integers(0, 9))
)


@given(ACTIONS, st.one_of(st.none(), st.integers(1, 4)), st.one_of(st.none(), st.integers(1, 20)))
def test_it_is_what_a_plain_list_of_entries_says(
    actions: list[tuple[str, int, int]], entries: int | None, size: int | None
) -> None:
    cache: Cache[int, tuple[int]] = Cache(entries=entries, size=size)
    kept: OrderedDict[int, int] = OrderedDict()
    for action, key, weight in actions:
        if action == "get":
            found = cache.get(key)
            assert (found and found[0]) == kept.get(key)
            if key in kept:
                kept.move_to_end(key)
        elif action == "put":
            cache.put(key, (weight,), weight)
            kept.pop(key, None)
        elif action == "put_first":
            cache.put_first(key, (weight,), weight)
        else:
            cache.drop(key)
            kept.pop(key, None)
        if action.startswith("put") and key not in kept and (size is None or weight <= size):
            kept[key] = weight
        while (entries is not None and len(kept) > entries) or (size is not None and sum(kept.values()) > size):
            kept.popitem(last=False)
        assert cache.size == sum(kept.values()) and len(cache) == len(kept)


@pytest.mark.parametrize("threads", [4])
def test_threads_keep_the_count(threads: int) -> None:
    cache: Cache[int, int] = Cache(size=500, largest=40)

    def work(first: int) -> None:
        for number in range(first, first + 2000):
            cache.put(number % 300, number, number % 300 // 8)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(threads)))
    assert cache.size == sum(number // 8 for number in range(300) if cache.get(number) is not None) <= 500
