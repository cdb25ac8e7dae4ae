"""Volumes of the simulated CSI driver in a cluster: they are attached, move with their pods, and survive what happens to nodes."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from steersman.controllers.attachdetach import controller
from steersman.sim import faults
from steersman.testing.cluster import Cluster
from tests.harness.volume_binder import BINDER

CREW = (controller, BINDER)
DETACH_ERROR = "sim.steersman.dev/detach-error"
ATTACH_ERROR = "sim.steersman.dev/attach-error"


def claim(name: str = "data", modes: str = "ReadWriteOnce") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "accessModes": [modes],
            "storageClassName": "csi-sim",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


def pod(name: str, on: str = "", volume: str = "data") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "nodeSelector": {"kubernetes.io/hostname": on} if on else {},
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {"name": "main", "image": "app:1", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
            ],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": volume}}],
        },
    }


def attached_to(cluster: Cluster) -> list[tuple[str, bool]]:
    """The node and state of each VolumeAttachment; True is attached."""
    found = cluster.list("volumeattachments")
    return sorted((each.spec.nodeName, each.status.attached) for each in found)


def reported(cluster: Cluster, on: str) -> int:
    """How many volumes a node reports as attached."""
    found: Any = cluster.get("node", on)
    return len(found.status.volumesAttached)


def in_use(cluster: Cluster, on: str) -> int:
    found: Any = cluster.get("node", on)
    return len(found.status.volumesInUse)


def running(cluster: Cluster, name: str) -> None:
    cluster.wait_until(lambda: cluster.get("pod", name).status.phase == "Running", 600)


def running_pods(cluster: Cluster) -> list[str]:
    return [each.metadata.name for each in cluster.list("pods") if each.status.phase == "Running"]


def test_a_pod_runs_once_its_volume_is_attached() -> None:
    with Cluster(nodes=2, controllers=CREW, csi=True) as cluster:
        cluster.apply([claim(), pod("first", "node-1")])
        running(cluster, "first")
        assert attached_to(cluster) == [("node-1", True)]
        assert (reported(cluster, "node-1"), in_use(cluster, "node-1")) == (1, 1)
        assert "SuccessfulAttachVolume" in [each.reason for each in cluster.events("pod", "first")]


def test_many_pods_of_a_node_get_their_volumes() -> None:
    with Cluster(nodes=1, controllers=CREW, csi=True) as cluster:
        names = [f"v{number}" for number in range(6)]
        cluster.apply([each for name in names for each in (claim(name), pod(name, "node-1", name))])
        for name in names:
            running(cluster, name)
        assert reported(cluster, "node-1") == 6


def test_a_volume_moves_with_its_pod() -> None:
    with Cluster(nodes=2, controllers=CREW, csi=True) as cluster:
        cluster.apply([claim(), pod("first", "node-1")])
        running(cluster, "first")
        cluster.apply(pod("second", "node-2"))
        cluster.settle()
        assert attached_to(cluster) == [("node-1", True)]
        (event,) = [each for each in cluster.events("pod", "second") if each.reason == "FailedAttachVolume"]
        assert "Volume is already used by pod(s) first" in event.message
        cluster.delete("pod", "first")
        running(cluster, "second")
        cluster.settle()
        assert attached_to(cluster) == [("node-2", True)]
        assert (reported(cluster, "node-1"), reported(cluster, "node-2")) == (0, 1)


def test_a_volume_that_no_pod_uses_is_detached() -> None:
    with Cluster(nodes=1, controllers=CREW, csi=True) as cluster:
        cluster.apply([claim(), pod("first")])
        running(cluster, "first")
        cluster.delete("pod", "first")
        cluster.settle()
        assert (attached_to(cluster), reported(cluster, "node-1")) == ([], 0)


def test_the_driver_s_errors_are_told_to_the_pod_until_it_attaches() -> None:
    with Cluster(nodes=1, controllers=CREW, csi=True) as cluster:
        cluster.patch("node", "node-1", {"metadata": {"annotations": {ATTACH_ERROR: "no such disk"}}})
        cluster.apply([claim(), pod("first")])
        cluster.advance(minutes=1)
        messages = {each.message for each in cluster.events("pod", "first") if each.type == "Warning"}
        assert any(
            message.startswith("AttachVolume.Attach failed for volume") and "no such disk" in message
            for message in messages
        )
        cluster.patch("node", "node-1", {"metadata": {"annotations": {ATTACH_ERROR: None}}})
        running(cluster, "first")


@pytest.mark.parametrize("minutes", [5, 8])
def test_a_failed_node_loses_its_volume_after_six_minutes(minutes: int) -> None:
    with Cluster(nodes=2, controllers=[*CREW, "node-lifecycle-controller"], csi=True) as cluster:
        cluster.apply([claim(), pod("first", "node-1")])
        running(cluster, "first")
        cluster.node("node-1").fail()
        cluster.advance(minutes=2)
        cluster.delete("pod", "first", grace=0)
        cluster.apply(pod("second", "node-2"))
        cluster.advance(minutes=minutes)
        assert attached_to(cluster) == [("node-1" if minutes < 6 else "node-2", True)]


def test_nothing_is_written_while_nothing_changes() -> None:
    with Cluster(nodes=2, controllers=CREW, csi=True) as cluster:
        cluster.apply([claim(), pod("first")])
        running(cluster, "first")
        cluster.settle()
        before = len(cluster.history())
        assert before
        cluster.advance(days=1)
        assert len(cluster.history()) == before


def test_a_manager_that_restarts_goes_on_with_the_move_of_a_volume() -> None:
    with Cluster(nodes=2, controllers=CREW, csi=True) as cluster:
        cluster.apply([claim(), pod("first", "node-1")])
        running(cluster, "first")
        (bound,) = cluster.list("persistentvolumes")
        cluster.patch("pv", bound.metadata.name, {"metadata": {"annotations": {DETACH_ERROR: "busy"}}})
        cluster.apply(pod("second", "node-2"))
        cluster.delete("pod", "first")
        cluster.crash_manager()
        cluster.advance(minutes=1)
        cluster.patch("pv", bound.metadata.name, {"metadata": {"annotations": {DETACH_ERROR: None}}})
        cluster.start_manager()
        running(cluster, "second")
        cluster.settle()
        assert attached_to(cluster) == [("node-2", True)]


@pytest.mark.parametrize(
    ("hanging", "others"),
    [
        (faults.slow_response(10, "create", "volumeattachments", times=1), 5),
        (faults.slow_response(10, "patch", "nodes", times=1), 3),
    ],
    ids=["a VolumeAttachment", "the status of a node, with all of its volumes"],
)
def test_a_request_that_hangs_does_not_hold_up_other_volumes(hanging: faults.Fault, others: int) -> None:
    with Cluster(nodes=2, controllers=CREW, csi=True, faults=[hanging]) as cluster:
        names = [f"v{number}" for number in range(6)]
        cluster.apply(
            [
                each
                for number, name in enumerate(names)
                for each in (claim(name), pod(name, f"node-{number % 2 + 1}", name))
            ]
        )
        cluster.wait_until(lambda: len(running_pods(cluster)) == others, 9)
        for name in names:
            running(cluster, name)
        assert (reported(cluster, "node-1"), reported(cluster, "node-2")) == (3, 3)


@pytest.mark.parametrize(
    ("method", "resource"),
    [("create", "volumeattachments"), ("patch", "nodes")],
    ids=["a VolumeAttachment", "the status of a node"],
)
def test_a_request_that_hangs_does_not_hold_up_a_shared_volume_on_other_nodes(
    method: str, resource: str
) -> None:
    hanging = faults.slow_response(30, method, resource, times=1)
    with Cluster(nodes=3, controllers=CREW, csi=True, faults=[hanging]) as cluster:
        nodes = ("node-1", "node-2", "node-3")
        cluster.apply([claim(modes="ReadWriteMany"), *(pod(name, name) for name in nodes)])
        cluster.wait_until(lambda: len(running_pods(cluster)) == 2, 9)
        for name in nodes:
            running(cluster, name)


def test_a_detach_that_hangs_does_not_hold_up_a_shared_volume_on_other_nodes() -> None:
    hanging = faults.slow_response(30, "delete", "volumeattachments", times=1)
    with Cluster(nodes=2, controllers=CREW, csi=True, faults=[hanging]) as cluster:
        cluster.apply([claim(modes="ReadWriteMany"), pod("first", "node-1")])
        running(cluster, "first")
        cluster.delete("pod", "first")
        cluster.wait_until(lambda: reported(cluster, "node-1") == 0)
        cluster.apply(pod("second", "node-2"))
        cluster.wait_until(lambda: running_pods(cluster) == ["second"], 9)
        cluster.wait_until(lambda: attached_to(cluster) == [("node-2", True)], 60)


def test_many_requests_that_hang_do_not_hold_up_a_detach() -> None:
    hanging = faults.slow_response(10, "create", "volumeattachments", nth=2, times=20)
    with Cluster(nodes=2, controllers=CREW, csi=True, faults=[hanging]) as cluster:
        cluster.apply([claim("first"), pod("first", "node-1", "first")])
        running(cluster, "first")
        names = [f"v{number}" for number in range(20)]
        cluster.apply([each for name in names for each in (claim(name), pod(name, "node-2", name))])
        cluster.wait_until(lambda: len(attached_to(cluster)) > 1)
        cluster.delete("pod", "first")
        cluster.wait_until(lambda: reported(cluster, "node-1") == 0, 8)
        for name in names:
            running(cluster, name)


@pytest.mark.parametrize("seed", range(6))
def test_volumes_end_where_their_pods_are_whatever_hangs(seed: int) -> None:
    chance = Random(seed)
    nodes, hanging = ("node-1", "node-2", "node-3"), []
    for method, resource in (
        ("create", "volumeattachments"),
        ("delete", "volumeattachments"),
        ("patch", "nodes"),
    ):
        delay, times = chance.choice((3, 30)), chance.randint(1, 4)
        hanging.append(faults.slow_response(delay, method, resource, times=times))
    with Cluster(seed, nodes=3, controllers=CREW, csi=True, faults=hanging, shuffle=True) as cluster:
        cluster.apply([claim("shared", "ReadWriteMany"), claim("data")])
        pods: dict[str, tuple[str, str]] = {}
        for number in range(12):
            name, on = f"p{number}", chance.choice(nodes)
            volume = chance.choice(("shared", "shared", "data"))
            if volume == "data":
                for other in [each for each, (_, used) in pods.items() if used == "data"]:
                    cluster.delete("pod", other)
                    del pods[other]
            cluster.apply(pod(name, on, volume))
            pods[name] = on, volume
            cluster.advance(seconds=chance.choice((0.1, 1, 5)))
            if chance.random() < 0.4:
                gone = chance.choice(list(pods))
                cluster.delete("pod", gone)
                del pods[gone]
        for name in pods:
            running(cluster, name)
        wanted = {(on, volume) for on, volume in pods.values()}
        cluster.wait_until(lambda: attached_to(cluster) == sorted((on, True) for on, _ in wanted), 600)
        counts = [sum(on == each for each, _ in wanted) for on in nodes]
        cluster.wait_until(lambda: [reported(cluster, on) for on in nodes] == counts, 60)


@pytest.mark.parametrize("seed", [1, 2])
def test_the_same_seed_gives_the_same_trace_while_requests_hang(seed: int) -> None:
    hanging = faults.slow_response(10, "write", "", nth=5, times=8)

    def played() -> list[str]:
        with Cluster(
            seed, nodes=2, controllers=CREW, csi=True, faults=[hanging], journal=True, shuffle=True
        ) as cluster:
            names = [f"v{number}" for number in range(6)]
            cluster.apply([each for name in names for each in (claim(name), pod(name, "node-1", name))])
            for name in names:
                running(cluster, name)
            return list(cluster.world.journal)

    assert played() == played()
