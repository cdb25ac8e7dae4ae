"""StatefulSets in a whole cluster, under virtual time."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.api.kinds import PODS
from steersman.api.pods import is_ready
from steersman.controllers.shared import history
from steersman.testing import Cluster

CREW = ("statefulset-controller", "garbage-collector-controller")


def manifest(replicas: int = 3, claims: bool = False, delays: str = "", **spec: Any) -> dict[str, Any]:
    wish = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claimed = {"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": wish}]} if claims else {}
    annotations = {"sim.steersman.dev/ready-delay": delays} if delays else {}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "serviceName": "web",
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}, "annotations": annotations},
                "spec": {"containers": [{"name": "main", "image": "app:1"}]},
            },
            **claimed,
            **spec,
        },
    }


def roll(cluster: Cluster, image: str) -> None:
    container = {"name": "main", "image": image}
    cluster.patch("StatefulSet", "web", {"spec": {"template": {"spec": {"containers": [container]}}}})


def status(cluster: Cluster) -> Any:
    return cluster.get("StatefulSet", "web").status


def names(cluster: Cluster, kind: str = "Pod") -> list[str]:
    return sorted(one.metadata.name for one in cluster.list(kind))


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 2**16), st.sampled_from(["0s", "1s", "7s"]), st.integers(0, 3))
def test_an_ordered_set_has_at_most_one_pod_that_is_not_ready(seed: int, delay: str, partition: int) -> None:
    with Cluster(seed, controllers=CREW, shuffle=True) as cluster:
        strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}
        cluster.apply(manifest(3, delays=delay, updateStrategy=strategy))
        missing: list[int] = []

        def are(images: list[str]) -> bool:
            """Asked after every write: how many do not serve, and whether these images do."""
            pods = cluster.list("Pod")
            ready = {pod.key for pod in cluster.list(PODS) if is_ready(pod)}
            serving = [pod for pod in pods if pod.key in ready and pod.metadata.deletionTimestamp is None]
            missing.append(len(pods) - len(serving))
            return sorted(pod.spec.containers[0].image for pod in serving) == images

        cluster.wait_until(lambda: are(["app:1"] * 3))
        roll(cluster, "app:2")
        cluster.wait_until(lambda: are(["app:1"] * partition + ["app:2"] * (3 - partition)))
        cluster.settle()
        assert max(missing) == 1
        assert (status(cluster).updatedReplicas, status(cluster).readyReplicas) == (3 - partition, 3)


def test_a_pod_is_available_when_it_was_ready_for_long_enough() -> None:
    with Cluster(controllers=CREW) as cluster:
        cluster.apply(manifest(2, minReadySeconds=30))
        cluster.wait_until(lambda: status(cluster).readyReplicas == 1)
        assert status(cluster).availableReplicas == 0
        first = cluster.now
        cluster.wait_until(lambda: status(cluster).availableReplicas == 1)
        assert 29 <= (cluster.now - first).total_seconds() <= 31
        cluster.wait_until(lambda: status(cluster).availableReplicas == 2)


def test_a_pod_waits_until_the_claim_of_the_last_one_of_its_name_is_gone() -> None:
    policy = {"whenScaled": "Delete", "whenDeleted": "Retain"}
    with Cluster(controllers=CREW) as cluster:
        cluster.apply(manifest(2, claims=True, persistentVolumeClaimRetentionPolicy=policy))
        cluster.settle()
        before = cluster.get("PersistentVolumeClaim", "data-web-1").metadata.uid
        cluster.patch("StatefulSet", "web", {"spec": {"replicas": 1}})
        cluster.settle()
        cluster.patch("StatefulSet", "web", {"spec": {"replicas": 2}})
        cluster.settle()
        assert names(cluster) == ["web-0"], "its claim is held, and is to go"
        cluster.patch("PersistentVolumeClaim", "data-web-1", {"metadata": {"finalizers": None}})
        cluster.settle()
        assert names(cluster) == ["web-0", "web-1"]
        assert cluster.get("PersistentVolumeClaim", "data-web-1").metadata.uid != before


def test_a_revision_of_the_name_but_not_the_content_is_avoided_by_counting() -> None:
    with Cluster(controllers=CREW) as cluster:
        cluster.apply(manifest(1))
        cluster.settle()
        cluster.patch("StatefulSet", "web", {"spec": {"replicas": 0}})
        cluster.settle()
        set_ = cluster.get("StatefulSet", "web")
        (mine,) = cluster.list("ControllerRevision")
        next_ = msgspec.json.decode(msgspec.json.encode(mine.data))
        next_["spec"]["template"]["spec"]["containers"][0]["image"] = "app:2"
        taken = history.name_of(set_, history.digest(msgspec.Raw(msgspec.json.encode(next_)), 0))
        cluster.apply(
            {
                "apiVersion": "apps/v1",
                "kind": "ControllerRevision",
                "metadata": {"name": taken},
                "data": {"somebody": "else"},
                "revision": 7,
            }
        )
        roll(cluster, "app:2")
        cluster.settle()
        assert status(cluster).collisionCount == 1
        assert status(cluster).updateRevision not in ("", taken, mine.metadata.name)
        assert status(cluster).updateRevision in names(cluster, "ControllerRevision")


def test_what_another_manager_kept_before_1_34_rolls_nothing() -> None:
    with Cluster(controllers=CREW) as cluster:
        cluster.apply(manifest(2))
        cluster.settle()
        cluster.crash_manager()
        (mine,) = cluster.list("ControllerRevision")
        data = msgspec.json.decode(msgspec.json.encode(mine.data))
        data["spec"]["template"]["metadata"]["creationTimestamp"] = None
        cluster.delete("ControllerRevision", mine.metadata.name)
        cluster.apply(
            {
                "apiVersion": "apps/v1",
                "kind": "ControllerRevision",
                "metadata": {"name": mine.metadata.name, "labels": dict(mine.metadata.labels)},
                "data": data,
                "revision": 1,
            }
        )
        before = {pod.metadata.name: pod.metadata.uid for pod in cluster.list("Pod")}
        cluster.start_manager()
        cluster.settle()
        assert {pod.metadata.name: pod.metadata.uid for pod in cluster.list("Pod")} == before
        (kept,) = cluster.list("ControllerRevision")
        assert [owner.name for owner in kept.metadata.ownerReferences] == ["web"], "it was adopted"


def test_a_pod_that_nobody_made_and_that_has_the_name_is_waited_for() -> None:
    with Cluster(controllers=CREW) as cluster:
        stranger = {"name": "main", "image": "other:1"}
        cluster.apply(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "web-0"},
                "spec": {"containers": [stranger]},
            }
        )
        cluster.apply(manifest(1))
        cluster.advance(minutes=5)
        assert cluster.get("Pod", "web-0").spec.containers[0].image == "other:1"
        cluster.delete("Pod", "web-0")
        cluster.wait_until(lambda: status(cluster).readyReplicas == 1)


def test_a_pod_that_is_no_longer_selected_is_let_go_and_replaced_once_it_is_gone() -> None:
    with Cluster(controllers=CREW) as cluster:
        cluster.apply(manifest(1))
        cluster.settle()
        cluster.patch("Pod", "web-0", {"metadata": {"labels": {"app": "free"}}})
        cluster.wait_until(lambda: not cluster.get("Pod", "web-0").metadata.ownerReferences)
        cluster.delete("Pod", "web-0")
        cluster.wait_until(lambda: bool(cluster.get("Pod", "web-0").metadata.ownerReferences))


@pytest.mark.parametrize("parallel", [False, True])
def test_a_manager_that_dies_again_and_again_makes_no_pod_twice(parallel: bool) -> None:
    policy = "Parallel" if parallel else "OrderedReady"
    with Cluster(controllers=CREW) as cluster:
        cluster.apply(manifest(4, claims=True, podManagementPolicy=policy))
        for _ in range(6):
            cluster.advance(seconds=1.3)
            cluster.restart_manager()
        cluster.settle()
        assert names(cluster) == [f"web-{n}" for n in range(4)]
        assert names(cluster, "PersistentVolumeClaim") == [f"data-web-{n}" for n in range(4)]
        assert status(cluster).readyReplicas == 4
