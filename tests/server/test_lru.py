"""A memory that forgets the oldest, without a lock."""

from __future__ import annotations

import threading

from steersman.server.lru import Recent


def test_the_latest_are_remembered_and_the_oldest_forgotten() -> None:
    recent: Recent[int, str] = Recent(10)
    for number in range(100):
        recent.put(number, str(number))
        assert all(recent.get(n) == str(n) for n in range(max(0, number - 9), number + 1))
        assert len(recent) <= 20
    assert recent.get(50) is None


def test_threads_may_share_it() -> None:
    recent: Recent[int, int] = Recent(3)
    wrong: list[object] = []

    def use() -> None:
        try:
            for number in range(20_000):
                recent.put(number % 17, number % 17)
                found = recent.get((number * 7) % 17)
                if found not in (None, (number * 7) % 17):
                    wrong.append(found)
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=use) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
