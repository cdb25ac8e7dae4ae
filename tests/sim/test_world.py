"""Worlds: time, settling, failing, and the whole plane in one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from steersman.api.errors import AlreadyExists
from steersman.api.generated import load
from steersman.api.kinds import DEPLOYMENTS, JOBS, PODS, REPLICASETS, REPLICATIONCONTROLLERS, SERVICEACCOUNTS
from steersman.controllers import CONTROLLERS
from steersman.runtime.controller_group import ControllerGroup
from steersman.runtime.leader_election import LeaderElector
from steersman.sim.loop import Deadlock
from steersman.sim.nodes import Nodes
from steersman.sim.world import START, NotSettled, World

CONFIGMAPS = load("", "v1", "ConfigMap")
EVENTS = load("", "v1", "Event")
LEASES = load("coordination.k8s.io", "v1", "Lease")
NAMESPACES = load("", "v1", "Namespace")


@pytest.fixture
def world() -> Iterator[World]:
    with World(seed=5) as world:
        yield world


async def touch(world: World, name: str = "x") -> None:
    """One write that changes something."""
    body = {"metadata": {"name": name}, "data": {"at": str(world.monotonic())}}
    try:
        await world.api().create(CONFIGMAPS, "default", body)
    except AlreadyExists:
        await world.api().update(CONFIGMAPS, "default", name, body)


def test_wall_time_moves_with_the_loop(world: World) -> None:
    assert (world.now(), world.monotonic()) == (START, 0)
    world.run(world.advance(90061.5))
    assert world.now() == START + timedelta(days=1, hours=1, minutes=1, seconds=1.5)
    assert world.monotonic() == 90061.5


def test_a_world_begins_with_the_namespaces_a_real_server_makes(world: World) -> None:
    found: list[Any] = list(world.run(world.api().list(NAMESPACES)).items)
    assert [obj.metadata.name for obj in found] == [
        "default",
        "kube-node-lease",
        "kube-public",
        "kube-system",
    ]
    assert {obj.status.phase for obj in found} == {"Active"}


def test_what_was_spawned_goes_on_whenever_the_world_runs(world: World) -> None:
    beats: list[float] = []

    async def beat() -> None:
        while True:
            await asyncio.sleep(1)
            beats.append(world.monotonic())

    world.spawn(beat())
    world.run(world.advance(2))
    world.run(world.advance(2))
    assert beats == [1, 2, 3, 4]


def test_what_fails_in_a_world_fails_the_run(world: World) -> None:
    async def fail() -> None:
        await asyncio.sleep(3)
        raise KeyError("lost")

    world.spawn(fail())
    with pytest.raises(KeyError, match="lost"):
        world.run(world.advance(10))
    assert world.monotonic() == 3


def test_a_callback_that_fails_fails_the_run_too(world: World) -> None:
    def fail() -> None:
        raise KeyError("lost")

    world.loop.call_later(1, fail)
    with pytest.raises(KeyError, match="lost"):
        world.run(world.advance(10))


def test_waiting_for_nothing_is_a_jam(world: World) -> None:
    async def wait() -> None:
        await asyncio.Event().wait()

    with pytest.raises(Deadlock, match="wait"):
        world.run(wait())


def test_waiting_in_vain_while_time_goes_on_is_a_jam_too(world: World) -> None:
    async def tick() -> None:
        while True:
            await asyncio.sleep(86_400)

    async def wait() -> None:
        await asyncio.Event().wait()

    world.spawn(tick(), name="clockwork")
    with pytest.raises(
        Deadlock, match=r"timers still run, but the program does not end\n(.|\n)*wait-\d+: .*Event"
    ):
        world.run(wait())
    assert 365 * 86_400 < world.monotonic() <= 366 * 86_400
    world.run(world.advance(1000 * 86_400))
    world.run(asyncio.sleep(500 * 86_400), limit=1000 * 86_400)


# -- settling ---------------------------------------------------------------------------------


def test_a_world_in_which_nothing_happens_has_settled_and_no_time_passes(world: World) -> None:
    assert world.run(world.settle()) == 0


def test_settling_runs_to_the_last_write_and_stops_where_no_timer_follows(world: World) -> None:
    async def later() -> None:
        for delay in (3, 8, 9.5):
            await asyncio.sleep(delay)
            await touch(world)

    world.spawn(later())
    assert world.run(world.settle(10)) == 20.5


def test_what_comes_after_the_horizon_is_not_waited_for(world: World) -> None:
    async def later() -> None:
        await asyncio.sleep(1)
        await touch(world)
        await asyncio.sleep(100)
        await touch(world)

    world.spawn(later())
    assert world.run(world.settle(10)) == 1


def test_polling_that_writes_nothing_does_not_keep_a_world_from_settling(world: World) -> None:
    async def poll() -> None:
        while True:
            await asyncio.sleep(1)
            await world.api().list(CONFIGMAPS)

    world.spawn(poll())
    assert world.run(world.settle(10)) == 10


def test_heartbeats_in_the_background_and_leases_do_not_count_as_writes(world: World) -> None:
    async def beat() -> None:
        while True:
            await asyncio.sleep(1)
            await touch(world, "beat")

    async def renew() -> None:
        api = world.api()
        await api.create(LEASES, "default", {"metadata": {"name": "l"}})
        for i in range(10_000):
            await asyncio.sleep(2)
            await api.patch(LEASES, "default", "l", {"spec": {"leaseTransitions": i}})

    with world.background():
        world.spawn(beat())
    assert world.run(world.settle(10)) == 0
    world.spawn(renew())
    assert world.run(world.settle(10)) == 10


def test_what_follows_from_a_heartbeat_counts(world: World) -> None:
    async def beat() -> None:
        while True:
            await asyncio.sleep(4)
            await touch(world, "beat")

    async def echo() -> None:
        async for event in world.api().watch(CONFIGMAPS, field_selector="metadata.name=beat"):
            if event.obj is not None and world.monotonic() < 20:
                await touch(world, "echo")

    with world.background():
        world.spawn(beat())
    world.spawn(echo())
    world.run(world.advance(9))
    for instant in (18, 25):
        world.loop.call_at(instant, lambda: None)
    world.run(world.settle(10))
    # The last echo was at 16. Had it not counted, nobody would have waited for anything after 19.
    assert world.monotonic() == 25


def test_a_world_that_never_stops_writing_is_restless_and_says_what_it_writes(world: World) -> None:
    async def scribble() -> None:
        while True:
            await asyncio.sleep(1)
            await touch(world, "scribbled")

    world.spawn(scribble())
    with pytest.raises(NotSettled, match="still writing after 60s: configmaps default/scribbled"):
        world.run(world.settle(10, limit=60))


# -- the whole plane --------------------------------------------------------------------------


def web(replicas: int = 3, image: str = "web:1", **spec: Any) -> dict[str, Any]:
    pod = {"containers": [{"name": "main", "image": image}]}
    return {
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": pod},
            **spec,
        },
    }


def plane(world: World) -> None:
    world.spawn(ControllerGroup(CONTROLLERS, world.api("manager"), world).run(), name="manager")
    world.spawn(Nodes(world.api("nodes"), world, ("n1", "n2"), start_delay=1.0).run(), name="nodes")
    world.run(world.settle())


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_a_deployment_is_rolled_out_and_over(seed: int, shuffle: bool) -> None:
    with World(seed=seed, shuffle=shuffle) as world:
        plane(world)
        api = world.api()
        world.run(api.create(DEPLOYMENTS, "default", web()))
        world.run(world.settle(30))
        status = world.run(api.get(DEPLOYMENTS, "default", "web")).status
        assert (status.readyReplicas, status.updatedReplicas, status.unavailableReplicas) == (3, 3, 0)
        assert [c.reason for c in status.conditions] == ["MinimumReplicasAvailable", "NewReplicaSetAvailable"]
        image = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "web:2"}]
        world.run(api.patch(DEPLOYMENTS, "default", "web", image, content_type="application/json-patch+json"))
        world.run(world.settle(30))
        sets = world.run(api.list(REPLICASETS, "default")).items
        assert sorted((s.spec.replicas, s.status.readyReplicas) for s in sets) == [(0, 0), (3, 3)]
        pods: list[Any] = list(world.run(api.list(PODS, "default")).items)
        assert {pod.spec.containers[0].image for pod in pods} == {"web:2"}
        events: list[Any] = list(world.run(api.list(EVENTS, "default")).items)
        assert {event.reason for event in events} >= {"ScalingReplicaSet", "SuccessfulCreate"}


def test_a_rollout_that_gets_stuck_says_so_once_its_deadline_has_passed(world: World) -> None:
    plane(world)
    api = world.api()
    world.run(api.create(DEPLOYMENTS, "default", web(image="bad", progressDeadlineSeconds=60)))
    world.run(world.settle(120))
    status = world.run(api.get(DEPLOYMENTS, "default", "web")).status
    reasons = {c.type: (c.status, c.reason) for c in status.conditions}
    assert reasons["Progressing"] == ("False", "ProgressDeadlineExceeded")
    assert 60 <= world.monotonic() < 75


def test_a_replication_controller_keeps_its_pods(world: World) -> None:
    plane(world)
    api = world.api()
    pod = {"metadata": {"labels": {"app": "rc"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}}
    body = {"metadata": {"name": "rc"}, "spec": {"replicas": 2, "template": pod}}
    world.run(api.create(REPLICATIONCONTROLLERS, "default", body))
    world.run(world.settle())
    victim = world.run(api.list(PODS, "default")).items[0].metadata.name
    world.run(api.delete(PODS, "default", victim))
    world.run(world.settle())
    pods = [pod.metadata.name for pod in world.run(api.list(PODS, "default")).items]
    assert len(pods) == 2
    assert victim not in pods
    assert world.run(api.get(REPLICATIONCONTROLLERS, "default", "rc")).status.readyReplicas == 2


def test_a_finished_job_goes_after_its_ttl_and_not_before(world: World) -> None:
    plane(world)
    api = world.api()
    pod = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i:1"}]}}
    body = {"metadata": {"name": "job"}, "spec": {"ttlSecondsAfterFinished": 100, "template": pod}}
    world.run(api.create(JOBS, "default", body))
    now = "2026-01-01T00:00:00Z"
    ends = [
        {"type": type_, "status": "True", "lastTransitionTime": now}
        for type_ in ("SuccessCriteriaMet", "Complete")
    ]
    status = {"startTime": now, "completionTime": now, "conditions": ends}
    finished = {"metadata": {"name": "job"}, "status": status}
    world.run(api.update_status(JOBS, "default", "job", finished))
    world.run(world.advance(90))
    assert world.run(api.get(JOBS, "default", "job")).metadata.deletionTimestamp is None
    world.run(world.advance(11))
    assert world.run(api.list(JOBS, "default")).items == []


def test_every_namespace_is_given_its_account(world: World) -> None:
    plane(world)
    api = world.api()
    world.run(api.create(NAMESPACES, "", {"metadata": {"name": "new"}}))
    world.run(world.settle())
    found = world.run(api.list(SERVICEACCOUNTS)).items
    assert [obj.metadata.namespace for obj in found] == [
        "default",
        "kube-node-lease",
        "kube-public",
        "kube-system",
        "new",
    ]


def test_one_of_two_managers_leads_and_the_other_takes_over(world: World) -> None:
    led: list[str] = []

    def candidate(name: str) -> asyncio.Task[None]:
        elector = LeaderElector(world.api(name), world, name="m", namespace="kube-system", identity=name)

        async def lead() -> None:
            led.append(name)
            await asyncio.Event().wait()

        return world.spawn(elector.run(lead), name=name)

    first = candidate("first")
    world.run(world.advance(5))
    candidate("second")
    world.run(world.advance(60))
    assert led == ["first"]
    first.cancel()
    world.run(world.advance(30))
    assert led == ["first", "second"]
