"""The contract of the queue: fair, stingy, coalescing, nothing lost; and its timing."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from steersman.api.token_bucket import TokenBucket
from steersman.runtime.backoff import ItemBackoff
from steersman.runtime.causes import MAX_CAUSES, MORE
from steersman.runtime.metrics import Metrics
from steersman.runtime.workqueue import ShutDown, Taken, WorkQueue
from steersman.sim.loop import VirtualLoop, background
from tests.harness.fake_clock import LoopClock

T = TypeVar("T")
DAWN = datetime(2026, 1, 1, tzinfo=UTC)


def play(script: Callable[[WorkQueue[str]], Coroutine[Any, Any, T]], **options: Any) -> T:
    """Run a script with a queue under virtual time."""

    async def main() -> T:
        return await script(WorkQueue(LoopClock(), name="test", **options))

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main())


def now() -> float:
    return asyncio.get_running_loop().time()


async def empty(queue: WorkQueue[str]) -> list[str]:
    """The keys that can be had at this instant."""
    keys = []
    while len(queue):
        keys.append((await queue.get()).key)
    return keys


# -- the contract


def test_keys_are_handed_out_in_the_order_they_were_added() -> None:
    async def script(queue: WorkQueue[str]) -> None:
        for key in "cab":
            queue.add(key)
        assert len(queue) == 3
        assert await empty(queue) == ["c", "a", "b"]

    play(script)


def test_a_key_added_several_times_is_handed_out_once() -> None:
    async def script(queue: WorkQueue[str]) -> None:
        for key in "abaab":
            queue.add(key)
        assert await empty(queue) == ["a", "b"]

    play(script)


def test_a_key_added_while_being_worked_on_comes_again_after_it_is_done() -> None:
    async def script(queue: WorkQueue[str]) -> None:
        queue.add("a", "first")
        await queue.get()
        queue.add("a", "second")
        queue.add("a", "third")
        assert len(queue) == 0
        queue.done("a")
        assert (await queue.get()).causes == ("second", "third")
        queue.done("a")
        assert len(queue) == 0

    play(script)


def test_a_key_that_comes_again_queues_up_behind_the_others() -> None:
    async def script(queue: WorkQueue[str]) -> None:
        queue.add("a")
        await queue.get()
        queue.add("a")
        queue.add("b")
        queue.done("a")
        assert await empty(queue) == ["b", "a"]

    play(script)


def test_many_workers_never_hold_the_same_key() -> None:
    async def script(queue: WorkQueue[str]) -> None:
        held: list[str] = []
        rounds: dict[str, int] = {}

        async def work() -> None:
            while True:
                taken = await queue.get()
                assert taken.key not in held
                held.append(taken.key)
                rounds[taken.key] = rounds.get(taken.key, 0) + 1
                await asyncio.sleep(1)
                held.remove(taken.key)
                queue.done(taken.key)

        tasks = [asyncio.create_task(work()) for _ in range(5)]
        for _ in range(40):
            for key in "abc":
                queue.add(key)
            await asyncio.sleep(0.3)
        await asyncio.sleep(5)
        assert all(count == 13 for count in rounds.values()), rounds
        for task in tasks:
            task.cancel()

    play(script)


def test_done_with_what_nobody_holds_is_a_mistake() -> None:
    async def script(queue: WorkQueue[str]) -> None:
        with pytest.raises(ValueError, match="a is not being processed"):
            queue.done("a")
        queue.add("a")
        with pytest.raises(ValueError, match="a is not being processed"):
            queue.done("a")
        assert await empty(queue) == ["a"]

    play(script)


# -- what is handed out


def test_a_round_knows_each_of_its_reasons_once_and_how_long_it_waited() -> None:
    async def script(queue: WorkQueue[str]) -> None:
        queue.add("a", "pod x added")
        await asyncio.sleep(2)
        queue.add("a", "pod y added")
        queue.add("a", "pod x added")
        queue.add("a")
        await asyncio.sleep(1)
        assert await queue.get() == Taken("a", ("pod x added", "pod y added"), 3.0)

    play(script)


def test_reasons_beyond_the_eighth_are_an_ellipsis() -> None:
    async def script(queue: WorkQueue[str]) -> None:
        for n in range(100):
            queue.add("a", f"reason {n}")
        assert (await queue.get()).causes == (*(f"reason {n}" for n in range(MAX_CAUSES)), MORE)

    play(script)


def test_a_delay_carries_its_reasons_along() -> None:
    async def script(queue: WorkQueue[str]) -> None:
        queue.add_after("a", 5, "TTL runs")
        queue.add_after("a", 9, "deadline runs")
        await asyncio.sleep(4)
        assert len(queue) == 0
        await asyncio.sleep(1)
        queue.add("a", "changed")
        assert (await queue.get()).causes == ("TTL runs", "deadline runs", "changed")

    play(script)


# -- waiting workers


def test_a_waiting_worker_is_woken_by_a_key() -> None:
    async def script(queue: WorkQueue[str]) -> None:
        worker = asyncio.create_task(queue.get())
        await asyncio.sleep(1)
        assert not worker.done()
        queue.add("a")
        assert (await worker).key == "a"

    play(script)


@pytest.mark.parametrize("woken_first", [True, False])
def test_a_key_is_not_lost_with_a_worker_that_is_cancelled(woken_first: bool) -> None:
    async def script(queue: WorkQueue[str]) -> None:
        first = asyncio.create_task(queue.get())
        second = asyncio.create_task(queue.get())
        await asyncio.sleep(1)
        if woken_first:
            queue.add("a")
            first.cancel()
        else:
            first.cancel()
            queue.add("a")
        assert (await asyncio.wait_for(second, 1)).key == "a"
        assert first.cancelled() or first.done()

    play(script)


# -- delays


def test_a_delayed_key_comes_at_its_time() -> None:
    async def script(queue: WorkQueue[str]) -> None:
        for key, seconds in (("c", 30.0), ("a", 10.0), ("b", 20.0)):
            queue.add_after(key, seconds)
        assert (len(queue), queue.waiting) == (0, 3)
        came = []
        for _ in range(3):
            came.append(((await queue.get()).key, now()))
        assert came == [("a", 10.0), ("b", 20.0), ("c", 30.0)]

    play(script)


def test_no_delay_is_now() -> None:
    async def script(queue: WorkQueue[str]) -> None:
        queue.add_after("a", 0)
        queue.add_after("b", -3)
        assert await empty(queue) == ["a", "b"]

    play(script)


@pytest.mark.parametrize("delays", [(5, 9), (9, 5), (9, 5, 7), (9, 7, 5)])
def test_of_several_times_for_one_key_the_earliest_counts(delays: tuple[int, ...]) -> None:
    async def script(queue: WorkQueue[str]) -> None:
        for seconds in delays:
            queue.add_after("a", seconds)
        assert queue.waiting == 1
        await queue.get()
        assert now() == 5
        queue.done("a")
        await asyncio.sleep(100)
        assert len(queue) == 0

    play(script)


def test_a_delay_outlives_an_earlier_round() -> None:
    async def script(queue: WorkQueue[str]) -> None:
        queue.add_after("a", 10)
        queue.add("a")
        await queue.get()
        queue.done("a")
        await queue.get()
        assert now() == 10

    play(script)


def test_keys_due_at_the_same_time_come_in_the_order_they_were_delayed() -> None:
    async def script(queue: WorkQueue[str]) -> None:
        for key in "cab":
            queue.add_after(key, 5)
        await asyncio.sleep(5)
        assert await empty(queue) == ["c", "a", "b"]

    play(script)


def test_a_hundred_thousand_delays_cost_one_timer() -> None:
    async def script(queue: WorkQueue[str]) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        for n in range(100_000):
            queue.add_after(f"key-{n}", 1 + (n * 7919) % 1000)
        assert len([t for t in loop._timers if not t[2].cancelled()]) == 1
        await asyncio.sleep(1000)
        assert (len(queue), queue.waiting) == (100_000, 0)

    play(script)


def test_times_that_no_longer_count_do_not_pile_up() -> None:
    async def script(queue: WorkQueue[str]) -> None:
        for n in range(10_000):
            queue.add_after("a", 86_400)
            queue.add_after("a", 1)
            assert (await queue.get()).waited == 0
            queue.done("a")
            assert now() == n + 1
        assert len(queue._heap) < 100

    play(script)


def test_a_loop_that_calls_a_little_early_is_believed() -> None:
    class Behind(LoopClock):
        def monotonic(self) -> float:
            return super().monotonic() - 1e-6

    async def script(_: WorkQueue[str]) -> None:
        queue = WorkQueue[str](Behind(), name="behind")
        queue.add_after("a", 5)
        assert (await queue.get()).key == "a"

    play(script)


def test_a_delay_belongs_to_the_queue_and_not_to_who_asked_for_it() -> None:
    async def script(queue: WorkQueue[str]) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        with background():
            queue.add_after("a", 7)
        assert loop.due() == 7

    play(script)


# -- retries


def test_a_key_that_keeps_failing_is_tried_later_each_time() -> None:
    async def script(queue: WorkQueue[str]) -> None:
        starts = []
        queue.add("a")
        for _ in range(5):
            await queue.get()
            starts.append(now())
            queue.retry("a", "the last round failed")
            queue.done("a")
        gaps = [round(b - a, 6) for a, b in itertools.pairwise(starts)]
        assert gaps == [0.005, 0.01, 0.02, 0.04]
        assert queue.failures("a") == 5
        await queue.get()
        queue.forget("a")
        assert queue.failures("a") == 0

    play(script)


def test_retries_of_many_keys_are_spread_by_the_overall_rate() -> None:
    async def script(queue: WorkQueue[str]) -> None:
        for n in range(150):
            queue.retry(f"key-{n}")
        await asyncio.sleep(0.01)
        assert len(queue) == 100
        await asyncio.sleep(1)
        assert len(queue) == 110
        await asyncio.sleep(4)
        assert len(queue) == 150

    play(script)


def test_queues_do_not_share_their_memory_of_failures() -> None:
    async def script(queue: WorkQueue[str]) -> None:
        other = WorkQueue[str](LoopClock(), name="other")
        queue.retry("a")
        assert (queue.failures("a"), other.failures("a")) == (1, 0)

    play(script)


def test_a_queue_may_have_its_own_limits() -> None:
    async def script(queue: WorkQueue[str]) -> None:
        queue.retry("a")
        queue.retry("b")
        assert await asyncio.wait_for(queue.get(), 5) == Taken("a", (), 0.0)
        assert now() == 2
        assert (await queue.get()).key == "b"
        assert now() == 10

    play(script, backoff=ItemBackoff[str](base=2.0, cap=4.0), bucket=TokenBucket(qps=0.1, burst=1))


# -- pace


def test_with_a_pace_the_first_change_is_answered_at_once_and_a_burst_by_one_round() -> None:
    async def script(queue: WorkQueue[str]) -> None:
        starts = []

        async def work() -> None:
            while True:
                taken = await queue.get()
                starts.append((now(), taken.causes))
                queue.done(taken.key)

        worker = asyncio.create_task(work())
        await asyncio.sleep(10)
        for n in range(25):
            queue.add("a", "first" if n == 0 else "burst")
            await asyncio.sleep(0.1)
        await asyncio.sleep(10)
        worker.cancel()
        assert starts == [(10.0, ("first",)), (11.0, ("burst",)), (12.0, ("burst",)), (13.0, ("burst",))]

    play(script, min_interval=1.0)


def test_a_pace_is_counted_from_the_start_of_a_round() -> None:
    async def script(queue: WorkQueue[str]) -> None:
        queue.add("a")
        await queue.get()
        await asyncio.sleep(0.7)
        queue.add("a")
        queue.done("a")
        await queue.get()
        assert now() == pytest.approx(1.0)
        await asyncio.sleep(5)
        queue.add("a")
        queue.done("a")
        await queue.get()
        assert now() == pytest.approx(6.0)

    play(script, min_interval=1.0)


def test_a_pace_does_not_hold_back_other_keys_nor_times_that_were_asked_for() -> None:
    async def script(queue: WorkQueue[str]) -> None:
        queue.add("a")
        await queue.get()
        queue.done("a")
        queue.add("b")
        assert (await queue.get()).key == "b"
        queue.retry("a")
        assert (await queue.get()).key == "a"
        assert now() == pytest.approx(0.005)

    play(script, min_interval=10.0)


def test_a_pace_does_not_remember_keys_for_longer_than_it_needs() -> None:
    async def script(queue: WorkQueue[str]) -> None:
        for n in range(1000):
            queue.add(f"key-{n}")
            queue.done((await queue.get()).key)
            await asyncio.sleep(0.1)
            assert len(queue._started) <= 11

    play(script, min_interval=1.0)


def test_a_key_rests_after_a_round_that_asks_for_it() -> None:
    async def script(queue: WorkQueue[str]) -> None:
        queue.add("a")
        await queue.get()
        await asyncio.sleep(4)
        queue.add("a", "meanwhile")
        queue.add("b")
        queue.done("a", rest=0.5)
        queue.add("a", "later")
        assert (await queue.get()).key == "b"
        taken = await queue.get()
        assert (now(), taken.causes) == (4.5, ("meanwhile", "later"))
        queue.done("a", rest=20.0)
        queue.add("a")
        await queue.get()
        assert now() == 5.5, "the interval is the limit"
        queue.done("a", rest=1.0)
        queue.retry("a")
        await queue.get()
        assert now() == pytest.approx(5.505), "a time that was asked for is kept"

    play(script, min_interval=1.0)


# -- ending


def test_a_queue_that_is_shut_down_hands_out_what_it_has_and_takes_no_more() -> None:
    async def script(queue: WorkQueue[str]) -> None:
        queue.add("a")
        queue.add("b")
        await queue.get()
        queue.add("a")
        queue.add_after("c", 5)
        queue.shut_down()
        queue.add("d")
        queue.add_after("d", 0)
        queue.add_after("d", 5)
        queue.retry("d")
        queue.done("a")
        assert await empty(queue) == ["b", "a"]
        with pytest.raises(ShutDown):
            await queue.get()
        await asyncio.sleep(10)
        assert (len(queue), queue.waiting) == (0, 0)

    play(script)


def test_waiting_workers_learn_that_a_queue_is_shut_down() -> None:
    async def script(queue: WorkQueue[str]) -> None:
        workers = [asyncio.create_task(queue.get()) for _ in range(3)]
        await asyncio.sleep(1)
        queue.shut_down()
        results = await asyncio.gather(*workers, return_exceptions=True)
        assert [type(result) for result in results] == [ShutDown] * 3

    play(script)


def test_draining_waits_for_what_is_queued_and_what_is_in_hand() -> None:
    async def script(queue: WorkQueue[str]) -> None:
        finished: list[str] = []

        async def work() -> None:
            try:
                while True:
                    taken = await queue.get()
                    await asyncio.sleep(3)
                    finished.append(taken.key)
                    queue.done(taken.key)
            except ShutDown:
                pass

        worker = asyncio.create_task(work())
        queue.add("a")
        queue.add("b")
        await asyncio.sleep(1)
        queue.add("a")
        await queue.drain()
        assert (finished, now()) == (["a", "b", "a"], 9.0)
        await worker

    play(script)


def test_draining_an_idle_queue_is_done_at_once() -> None:
    async def script(queue: WorkQueue[str]) -> None:
        queue.add_after("a", 100)
        await queue.drain()
        assert now() == 0

    play(script)


# -- numbers


def test_a_queue_counts_itself() -> None:
    metrics = Metrics()

    async def script(queue: WorkQueue[str]) -> None:
        def value(name: str) -> float:
            found = [line for line in metrics.render().decode().splitlines() if line.startswith(f"{name}{{")]
            return float(found[0].rsplit(" ", 1)[1])

        queue.add("a")
        queue.add("a")
        queue.add("b")
        queue.retry("c")
        await asyncio.sleep(2)
        assert (value("workqueue_adds_total"), value("workqueue_retries_total")) == (3, 1)
        assert value("workqueue_depth") == 3
        await queue.get()
        await asyncio.sleep(3)
        await queue.get()
        await asyncio.sleep(1)
        assert value("workqueue_unfinished_work_seconds") == 5
        assert value("workqueue_longest_running_processor_seconds") == 4
        assert (queue.working, value("workqueue_depth")) == (2, 1)
        queue.done("a")
        assert value("workqueue_work_duration_seconds_sum") == 4
        assert value("workqueue_queue_duration_seconds_sum") == 7
        queue.done("b")
        assert value("workqueue_longest_running_processor_seconds") == 0

    play(script, metrics=metrics)


# -- whatever happens


class Contract(RuleBasedStateMachine):
    """Any sequence of adds, delays, gets and dones against a plain statement of the contract."""

    PACE = 0.0
    keys = st.sampled_from("abcd")

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner(loop_factory=VirtualLoop)
        self.now = 0.0
        self.line: list[str] = []
        """Who is next."""
        self.wanted: dict[str, float] = {}
        """Since when a key wants a round it has not got yet."""
        self.due: dict[str, tuple[float, int]] = {}
        """When a key will want one, and how many were put off before it."""
        self.held: list[str] = []
        self.started: dict[str, float] = {}
        """When the last round of a key began, or ended with a rest."""
        self.rested: dict[str, float] = {}
        """Until when a key rests."""
        self.count = 0

        async def make() -> WorkQueue[str]:
            return WorkQueue(LoopClock(), name="test", min_interval=self.PACE)

        self.queue = self.runner.run(make())

    def call(self, method: Callable[..., None], *args: Any) -> None:
        async def inside() -> None:
            method(*args)

        self.runner.run(inside())

    def teardown(self) -> None:
        self.runner.close()

    def want(self, key: str) -> None:
        if key not in self.wanted:
            self.wanted[key] = self.now
            if key not in self.held:
                self.line.append(key)

    def put_off(self, key: str, when: float) -> None:
        if key not in self.due or when < self.due[key][0]:
            self.count += 1
            self.due[key] = (when, self.count)

    @rule(key=keys)
    def add(self, key: str) -> None:
        self.call(self.queue.add, key)
        ready = self.started[key] + self.PACE if key in self.started else self.now
        ready = max(ready, self.rested.get(key, 0.0))
        if key not in self.wanted and ready > self.now:
            self.put_off(key, ready)
        else:
            self.want(key)

    @rule(key=keys, seconds=st.integers(0, 20))
    def add_after(self, key: str, seconds: int) -> None:
        self.call(self.queue.add_after, key, seconds)
        if seconds:
            self.put_off(key, self.now + seconds)
        else:
            self.want(key)

    @rule(seconds=st.integers(1, 15))
    def time_passes(self, seconds: int) -> None:
        self.runner.run(asyncio.sleep(seconds))
        until = self.now + seconds
        for key, (when, _) in sorted(self.due.items(), key=lambda item: item[1]):
            if when <= until:
                del self.due[key]
                self.now = when
                self.want(key)
        self.now = until

    @precondition(lambda self: self.line)
    @rule()
    def get(self) -> None:
        taken = self.runner.run(asyncio.wait_for(self.queue.get(), 0.5))
        assert taken.key not in self.held, "two hold the same key"
        assert taken.key == self.line.pop(0), "somebody jumped the queue"
        assert taken.waited == self.now - self.wanted.pop(taken.key)
        self.held.append(taken.key)
        self.started[taken.key] = self.now

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(self.held))
        rest = min(data.draw(st.sampled_from((0, 0, 1, 3, 30))), self.PACE)
        self.call(self.queue.done, key, rest)
        if rest:
            self.started[key], self.rested[key] = self.now, self.now + rest
            if key in self.wanted:
                del self.wanted[key]
                self.put_off(key, self.now + rest)
        self.held.remove(key)
        if key in self.wanted:
            self.line.append(key)

    @invariant()
    def nothing_is_lost_and_nothing_invented(self) -> None:
        assert len(self.queue) == len(self.line)
        assert self.queue.waiting == len(self.due)
        assert self.queue.working == len(self.held)


class Paced(Contract):
    """The same with a pace."""

    PACE = 5.0


Contract.TestCase.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
Paced.TestCase.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
test_the_contract_holds_whatever_happens = Contract.TestCase
test_the_contract_holds_whatever_happens_with_a_pace = Paced.TestCase
