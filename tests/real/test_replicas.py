"""Several replicas on a real API server: whatever befalls the leader, there are never two that write.

All stories are told at once, each under a lease of its own; what there is to see is then read off the server's audit
log. Durations are the defaults, so most stories last as long as it takes to follow a leader that fell silent.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from itertools import pairwise
from typing import Any, TypeAlias

import pytest

from steersman.api.clock import RealClock
from steersman.api.kinds import DEPLOYMENTS, LEASES, REPLICASETS, REPLICATIONCONTROLLERS
from steersman.api.kinds.policy import PODDISRUPTIONBUDGETS
from steersman.api.kinds.quota import RESOURCEQUOTAS
from steersman.api.kinds.statefulsets import STATEFULSETS
from steersman.api.meta import format_micro_time
from tests.harness.envtest import RealPlane
from tests.harness.manager_replicas import DEADLINE, DURATION, LEASE, RETRY, Group, Reign, Task, Trail

SLACK = 2.0
"""Seconds that a machine with other things to do may add."""
LIMIT = 180.0
THEFT = 3
"""Seconds for which a thief holds the lease."""

Story: TypeAlias = Callable[[Group], Coroutine[Any, Any, None]]

TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "main", "image": "app"}]}}
SELECTOR = {"matchLabels": {"app": "a"}}
SCALED = ({"replicas": 1}, {"replicas": 0})


async def killed(group: Group) -> None:
    """Three replicas; the first two to lead are killed."""
    first = await group.leader()
    first.child.kill(signal.SIGKILL)
    second = await group.leader(but=[first])
    second.child.kill(signal.SIGKILL)
    await group.leader(but=[first, second])


async def stopped(group: Group, seconds: float) -> None:
    first = await group.leader()
    first.child.freeze()
    # The length of the stop is what is tested; nothing is waited for by it.
    await asyncio.sleep(seconds)
    first.child.thaw()
    assert await first.child.exited() == 1
    assert "leaderelection lost" in first.child.log()
    await group.leader(but=[first])


async def stopped_briefly(group: Group) -> None:
    """For longer than the renew deadline, and not as long as the lease lasts."""
    await stopped(group, 12)


async def stopped_for_long(group: Group) -> None:
    """Until somebody else leads."""
    await stopped(group, 20)


async def cut_off(group: Group) -> None:
    first = await group.leader()
    first.wire.cut()
    assert await first.child.exited() == 1
    assert "leaderelection lost" in first.child.log()
    await group.leader(but=[first])
    first.wire.heal()


async def robbed(group: Group) -> None:
    """Somebody writes another name into the lease."""
    first = await group.leader()
    now = format_micro_time(RealClock().now())
    theft = {"holderIdentity": "thief", "leaseDurationSeconds": THEFT, "renewTime": now}
    await group.api.patch(LEASES, group.name, LEASE, {"spec": theft})
    assert await first.child.exited() == 1
    assert "held by thief" in first.child.log()
    await group.leader(but=[first])


async def deleted(group: Group) -> None:
    """The lease is deleted: its holder makes it anew, and the other does not take it."""
    first = await group.leader()
    await group.api.delete(LEASES, group.name, LEASE)
    await group.renewals(3)
    assert await group.leader() is first


STORIES: dict[str, tuple[Story, int, Task]] = {
    "killed": (
        killed,
        3,
        Task("replicaset-controller", REPLICASETS, {"selector": SELECTOR, "template": TEMPLATE}, SCALED),
    ),
    "stopped-briefly": (
        stopped_briefly,
        2,
        Task("replicationcontroller-controller", REPLICATIONCONTROLLERS, {"template": TEMPLATE}, SCALED),
    ),
    "stopped-for-long": (
        stopped_for_long,
        2,
        Task(
            "statefulset-controller",
            STATEFULSETS,
            {"serviceName": "a", "selector": SELECTOR, "template": TEMPLATE},
            SCALED,
        ),
    ),
    "cut-off": (
        cut_off,
        2,
        Task("deployment-controller", DEPLOYMENTS, {"selector": SELECTOR, "template": TEMPLATE}, SCALED),
    ),
    "robbed": (
        robbed,
        2,
        Task(
            "resourcequota-controller",
            RESOURCEQUOTAS,
            {"hard": {"pods": "1"}},
            ({"hard": {"pods": "2"}}, {"hard": {"pods": "1"}}),
        ),
    ),
    "deleted": (
        deleted,
        2,
        Task(
            "disruption-controller",
            PODDISRUPTIONBUDGETS,
            {"selector": SELECTOR, "minAvailable": 1},
            ({"minAvailable": 2}, {"minAvailable": 1}),
        ),
    ),
}


async def tell(plane: RealPlane, trail: Trail, name: str, turn: asyncio.Lock) -> list[Reign]:
    story, size, task = STORIES[name]
    async with asyncio.timeout(LIMIT), AsyncExitStack() as stack:
        # A dozen processes that start at once on two cores do nothing else for a while, not even renew a lease.
        async with turn:
            group = await stack.enter_async_context(Group.of(plane, trail, f"replicas-{name}", task, size))
            await group.standing()
        await story(group)
    return group.reigns()


@pytest.fixture(scope="module")
def told(plane: RealPlane) -> dict[str, list[Reign] | BaseException]:
    """What came of each story."""

    async def all_at_once() -> list[list[Reign] | BaseException]:
        trail, turn = Trail(plane), asyncio.Lock()
        stories = (tell(plane, trail, name, turn) for name in STORIES)
        return await asyncio.gather(*stories, return_exceptions=True)

    return dict(zip(STORIES, asyncio.run(all_at_once()), strict=True))


@pytest.fixture
def reigns(told: dict[str, list[Reign] | BaseException], request: pytest.FixtureRequest) -> list[Reign]:
    came = told[request.param]
    if isinstance(came, BaseException):
        raise came
    return came


def story(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("reigns", names, indirect=True)


@story("killed", "stopped-briefly", "stopped-for-long", "cut-off", "deleted")
def test_nobody_writes_but_who_holds_the_lease(reigns: list[Reign]) -> None:
    assert [reign.strangers for reign in reigns] == [[] for _ in reigns]
    assert all(reign.written for reign in reigns), "who leads has something to do"


@story("killed", "stopped-briefly", "stopped-for-long", "cut-off")
def test_the_next_one_leads_within_the_lease_duration_and_one_retry_period(reigns: list[Reign]) -> None:
    users = [reign.user for reign in reigns]
    assert len(set(users)) == len(users) > 1, "nobody leads twice"
    for reign, heir in pairwise(reigns):
        assert DURATION - RETRY < reign.until(heir) < DURATION + RETRY + SLACK


@story("stopped-briefly", "stopped-for-long", "cut-off")
def test_who_could_not_renew_wrote_nothing_after_the_renew_deadline(reigns: list[Reign]) -> None:
    first = reigns[0]
    last = max(entry.received for entry in first.written)
    assert (last - first.held[-1].received).total_seconds() < DEADLINE


@story("deleted")
def test_a_deleted_lease_stays_with_its_holder(reigns: list[Reign]) -> None:
    [reign] = reigns
    assert [entry.verb for entry in reign.held].count("create") == 2


@story("robbed")
def test_a_stolen_lease_ends_the_reign_at_the_next_renewal_and_another_begins_after_the_thiefs(
    reigns: list[Reign],
) -> None:
    first, thief, second = reigns
    assert len({first.user, thief.user, second.user}) == 3
    assert [first.strangers, second.strangers] == [[], []]
    stolen = thief.held[0].received
    # Until it looks at the lease again the holder cannot know.
    late = [(entry.received - stolen).total_seconds() for entry in thief.written]
    assert max(late, default=0.0) < RETRY + SLACK
    assert {entry.user for entry in thief.written} <= {first.user}
    assert thief.until(second) < THEFT + RETRY + SLACK
