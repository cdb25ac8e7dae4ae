"""Bounded caches: what they evict, when entries expire, and that threads may share one."""

from __future__ import annotations

import threading

from hypothesis import given
from hypothesis import strategies as st

from steersman.api.bounded_cache import MAX_SHORT, BoundedCache, ExpiringCache, short_cache


def test_the_oldest_entry_makes_room() -> None:
    cache: BoundedCache[int, str] = BoundedCache(3)
    for number in range(5):
        cache.put(number, str(number))
    assert cache.items() == ((2, "2"), (3, "3"), (4, "4"))
    assert cache.get(1) is None


def test_an_entry_that_is_replaced_becomes_the_newest() -> None:
    cache: BoundedCache[str, int] = BoundedCache(2)
    for key, value in (("a", 1), ("b", 2), ("a", 3), ("c", 4)):
        cache.put(key, value)
    assert dict(cache.items()) == {"a": 3, "c": 4}


def test_only_use_keeps_an_entry_from_being_evicted() -> None:
    cache: BoundedCache[str, int] = BoundedCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.use("a") == cache.get("a") == 1
    assert cache.use("nothing") is None
    cache.put("c", 3)
    assert [key for key, _ in cache.items()] == ["a", "c"]


def test_entries_can_be_removed() -> None:
    cache: BoundedCache[str, int] = BoundedCache(2)
    cache.put("a", 1)
    cache.discard("a")
    cache.discard("a")
    assert (cache.get("a"), len(cache)) == (None, 0)
    cache.put("b", 1)
    cache.clear()
    assert (cache.get("b"), len(cache)) == (None, 0)


@given(
    st.lists(
        st.tuples(st.sampled_from(("put", "use", "discard")), st.integers(0, 9), st.integers(0, 12)),
        max_size=60,
    )
)
def test_entries_together_never_weigh_more_than_the_cache_may(steps: list[tuple[str, int, int]]) -> None:
    cache: BoundedCache[int, int] = BoundedCache(6, max_weight=10)
    for step, key, weight in steps:
        if step == "put":
            cache.put(key, weight, weight)
            assert cache.get(key) == (weight if weight <= 10 else None)
        elif step == "use":
            cache.use(key)
        else:
            cache.discard(key)
        assert len(cache) <= 6
        assert sum(weight for _, weight in cache.items()) == cache._weight <= 10


def test_threads_may_share_a_cache() -> None:
    cache: BoundedCache[int, int] = BoundedCache(3)
    wrong: list[object] = []

    def work() -> None:
        try:
            for number in range(20_000):
                cache.put(number % 17, number % 17)
                found = (cache.get if number % 2 else cache.use)((number * 7) % 17)
                if found not in (None, (number * 7) % 17):
                    wrong.append(found)
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(cache) <= 3


def test_an_entry_expires_after_its_time_to_live() -> None:
    now = 100.0
    cache: ExpiringCache[str, int] = ExpiringCache(lambda: now, 2)
    cache.put("a", 1, 10)
    cache.put("b", 2, 20)
    cache.put("never", 3, 0)
    assert cache.get("never") is None
    now = 109.9
    assert (cache.get("a"), cache.get("b")) == (1, 2)
    now = 110.0
    assert (cache.get("a"), cache.get("b"), len(cache)) == (None, 2, 1)


def test_an_expiring_cache_is_bounded_too() -> None:
    cache: ExpiringCache[int, int] = ExpiringCache(lambda: 0.0, 2)
    for number in range(5):
        cache.put(number, number, 60)
    assert [cache.get(number) for number in range(5)] == [None, None, None, 3, 4]


def test_a_function_remembers_short_texts_only() -> None:
    called: list[str] = []

    @short_cache(2)
    def size(text: str) -> int:
        called.append(text)
        return len(text)

    short, long = "a" * MAX_SHORT, "b" * (MAX_SHORT + 1)
    assert [size(text) for text in (short, short, long, long)] == [MAX_SHORT] * 2 + [MAX_SHORT + 1] * 2
    assert called == [short, long, long]
