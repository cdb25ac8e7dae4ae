"""Rollouts of a StatefulSet in upstream's tables: rounds one after the other, on a cluster where each pod is available at
once."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from steersman.api.kinds import NewPod, Pod
from steersman.api.kinds.revisions import ControllerRevision
from steersman.api.kinds.statefulsets import StatefulSet, StatefulSetStatus
from steersman.api.scheme import Key
from steersman.controllers.shared import history
from steersman.controllers.statefulset import controller, decide
from steersman.intent.actions import Create, Delete, Patch, UpdateStatus
from steersman.testing.decision_driver import StaticCaches, walk
from tests.harness.statefulsets import NOW, member, stateful
from tests.harness.workloads import NAMESPACE

both_managements = pytest.mark.parametrize("parallel", [False, True], ids=["ordered", "parallel"])
MOST_ROUNDS = 60


class Cluster:
    """A StatefulSet, its pods and revisions; every write of the controller comes true."""

    def __init__(self, set_: StatefulSet) -> None:
        self.set = set_
        self.pods: dict[str, Pod] = {}
        self.images: dict[str, str] = {}
        self.revisions: dict[str, ControllerRevision] = {}
        self.settle()

    def update(self, set_: StatefulSet) -> None:
        """Gives the set another spec, and settles."""
        self.set = replace(self.set, spec=set_.spec)
        self.settle()

    def settle(self) -> None:
        """Runs rounds until one changes nothing but the status."""
        for _ in range(MOST_ROUNDS):
            if not self._round():
                return
        raise AssertionError(f"the set is not at rest after {MOST_ROUNDS} rounds")

    def all_images(self) -> str:
        """The tags of the pods' images, in the order of their ordinals."""
        return " ".join(self.images[name] for name in sorted(self.pods))

    def _round(self) -> bool:
        caches = StaticCaches(controller, self.set, *self.pods.values(), *self.revisions.values())
        seen = controller.see(caches, Key(NAMESPACE, "web"))
        assert seen is not None
        actions, _ = walk(decide(seen, NOW))
        return sum(self._apply(action) for action in actions) > 0

    def _apply(self, action: Any) -> bool:
        match action:
            case Create(body=NewPod() as body):
                name = body.metadata.name
                assert name not in self.pods
                revision = body.metadata.labels[history.REVISION]
                self.pods[name] = member(self.set, int(name.rpartition("-")[2]), revision=revision)
                self.images[name] = msgspec.json.decode(body.spec)["containers"][0]["image"]
            case Create(body=ControllerRevision() as body):
                name = body.metadata.name
                self.revisions[name] = replace(body, metadata=replace(body.metadata, uid=f"{name}-uid"))
            case Delete(target=Pod() as pod):
                del self.pods[pod.metadata.name]
            case Delete(target=ControllerRevision() as old):
                del self.revisions[old.metadata.name]
            case Patch(target=ControllerRevision() as old, body={"revision": int(number)}):
                self.revisions[old.metadata.name] = replace(old, revision=number)
            case UpdateStatus(status=StatefulSetStatus() as status):
                self.set = replace(self.set, status=status)
                return False
            case _:
                return False
        return True


@both_managements
@pytest.mark.parametrize(("before", "after"), [(3, 3), (3, 5), (5, 3)], ids=["update", "and up", "and down"])
def test_a_rolling_update_reaches_every_pod(before: int, after: int, parallel: bool) -> None:
    cluster = Cluster(stateful(before, "v1", parallel=parallel))
    assert cluster.all_images() == " ".join(["v1"] * before)
    cluster.update(stateful(after, "v2", parallel=parallel))
    assert cluster.all_images() == " ".join(["v2"] * after)
    status = cluster.set.status
    assert (status.replicas, status.readyReplicas, status.updatedReplicas, status.currentReplicas) == (
        after,
    ) * 4
    assert status.currentRevision == status.updateRevision


@both_managements
@pytest.mark.parametrize(
    ("before", "after", "images"),
    [(3, 3, "v1 v1 v1"), (3, 5, "v1 v1 v1 v2 v2"), (5, 3, "v1 v1 v1")],
    ids=["update", "and up", "and down"],
)
def test_an_update_by_hand_reaches_pods_that_come_anew(
    before: int, after: int, images: str, parallel: bool
) -> None:
    cluster = Cluster(stateful(before, "v1", parallel=parallel, on_delete=True))
    cluster.update(stateful(after, "v2", parallel=parallel, on_delete=True))
    assert cluster.all_images() == images
    cluster.update(stateful(0, "v2", parallel=parallel, on_delete=True))
    assert cluster.all_images() == ""
    cluster.update(stateful(after, "v2", parallel=parallel, on_delete=True))
    assert cluster.all_images() == " ".join(["v2"] * after)


@both_managements
@pytest.mark.parametrize(
    ("after", "images"), [(3, "v1 v1 v2"), (5, "v1 v1 v2 v2 v2")], ids=["update", "and up"]
)
def test_an_update_with_a_partition_leaves_the_pods_below_it(after: int, images: str, parallel: bool) -> None:
    cluster = Cluster(stateful(3, "v1", parallel=parallel, partition=2))
    cluster.update(stateful(after, "v2", parallel=parallel, partition=2))
    assert cluster.all_images() == images
    status = cluster.set.status
    assert (status.currentReplicas, status.updatedReplicas) == (2, after - 2)
    assert status.currentRevision != status.updateRevision


@both_managements
@pytest.mark.parametrize(("before", "after"), [(3, 3), (3, 5), (5, 3)], ids=["update", "and up", "and down"])
def test_a_rollback_reaches_every_pod_with_the_revision_there_was(
    before: int, after: int, parallel: bool
) -> None:
    cluster = Cluster(stateful(before, "v1", parallel=parallel))
    first = cluster.set.status.currentRevision
    cluster.update(stateful(after, "v2", parallel=parallel))
    assert cluster.all_images() == " ".join(["v2"] * after)
    cluster.update(stateful(after, "v1", parallel=parallel))
    assert cluster.all_images() == " ".join(["v1"] * after)
    assert cluster.set.status.currentRevision == first
    assert sorted(one.revision for one in cluster.revisions.values()) == [2, 3]


@both_managements
@pytest.mark.parametrize("limit", [0, 2, 5])
def test_ten_updates_leave_no_more_revisions_than_the_limit(limit: int, parallel: bool) -> None:
    cluster = Cluster(stateful(3, "v0", parallel=parallel, history=limit))
    for number in range(1, 11):
        cluster.update(stateful(3, f"v{number}", parallel=parallel, history=limit))
        assert len(cluster.revisions) <= limit + 2
