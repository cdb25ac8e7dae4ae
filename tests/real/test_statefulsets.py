"""StatefulSets on a real API server: steersman and kube-controller-manager leave the same objects and events.

Each controller has just its bootstrap rights, and each manager a plane of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from steersman.api.clock import RealClock
from steersman.api.kinds import PODS, Pod
from steersman.api.kinds.revisions import CONTROLLERREVISIONS
from steersman.api.kinds.statefulsets import STATEFULSETS, StatefulSet
from steersman.api.kinds.storage import PERSISTENTVOLUMECLAIMS, PersistentVolumeClaim
from steersman.api.pods import is_ready
from steersman.api.scheme import Kind
from steersman.explore.normalize import Document
from steersman.sim.kubelet import Kubelets
from tests.harness.envtest import Binary, RealPlane
from tests.harness.follow import beside, until

OURS: Binary = "steersman"
REFERENCE: Binary = "kube-controller-manager"
KINDS: tuple[Kind[Any], ...] = (STATEFULSETS, CONTROLLERREVISIONS, PERSISTENTVOLUMECLAIMS, PODS)
GATES = "--feature-gates=MaxUnavailableStatefulSet=true"
POD_NAME = "statefulset.kubernetes.io/pod-name"


def stateful(name: str, replicas: int, claims: tuple[str, ...] = (), **spec: Any) -> Document:
    wish = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    templates = [{"metadata": {"name": claim, "labels": {"claim": claim}}, "spec": wish} for claim in claims]
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name, "annotations": {"example/note": f"about <{name}> & its kin"}},
        "spec": {
            "replicas": replicas,
            "serviceName": name,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {
                    "nodeName": "node-1",
                    "terminationGracePeriodSeconds": 1,
                    "tolerations": [
                        {
                            "key": "x",
                            "effect": "NoExecute",
                            "operator": "Exists",
                            "tolerationSeconds": 2**53 + 1,
                        }
                    ],
                    "containers": [{"name": "main", "image": "example/app:1", "args": ["a<b>&c"]}],
                    "volumes": [{"name": "scratch", "emptyDir": {}}],
                },
            },
            **({"volumeClaimTemplates": templates} if templates else {}),
            **spec,
        },
    }


def rolling(**how: Any) -> Document:
    return {"type": "RollingUpdate", "rollingUpdate": how}


HOPELESS = "so-long-a-name-that-pods-of-it-have-one-no-label-could-be-as-long"[:60]
BOTH = {"whenDeleted": "Delete", "whenScaled": "Delete"}
WITH_SET = {"whenDeleted": "Delete", "whenScaled": "Retain"}
STORY = (
    stateful("web", 3, ("data", "logs")),
    stateful(
        "wide",
        3,
        ("data",),
        podManagementPolicy="Parallel",
        ordinals={"start": 5},
        persistentVolumeClaimRetentionPolicy=BOTH,
    ),
    stateful("kept", 1, ("data",), persistentVolumeClaimRetentionPolicy=WITH_SET),
    stateful("late", 1, ("data",)),
    stateful("manual", 2, updateStrategy={"type": "OnDelete"}),
    stateful("staged", 3, updateStrategy=rolling(partition=2)),
    stateful("several", 4, podManagementPolicy="Parallel", updateStrategy=rolling(maxUnavailable="50%")),
    stateful("slow", 2, minReadySeconds=1),
    stateful("short", 1, revisionHistoryLimit=0),
    stateful("failed", 2),
    stateful("nameless", 1),
    stateful("parted", 2),
    stateful(HOPELESS, 1, ("data",)),
)


def counts(**wanted: int) -> Callable[[StatefulSet], bool]:
    """Whether the status is about the present spec and has these numbers."""

    def met(set_: StatefulSet) -> bool:
        status = set_.status
        seen = status.observedGeneration == set_.metadata.generation
        return seen and all(getattr(status, name) == number for name, number in wanted.items())

    return met


def full(set_: StatefulSet) -> bool:
    """Whether a set has all its pods, of its newest revision."""
    n, status = set_.spec.replicas or 0, set_.status
    whole = counts(replicas=n, readyReplicas=n, availableReplicas=n, updatedReplicas=n, currentReplicas=n)
    return whole(set_) and status.currentRevision == status.updateRevision


def owned(by: str, deleting: bool = False) -> Callable[[PersistentVolumeClaim], bool]:
    def met(claim: PersistentVolumeClaim) -> bool:
        leaving = claim.metadata.deletionTimestamp is not None
        return leaving == deleting and [one.kind for one in claim.metadata.ownerReferences] == (
            [by] if by else []
        )

    return met


class Story:
    """What is done to the sets, each step after the one before has come to its end."""

    def __init__(self, stage: Any) -> None:
        self._stage = stage

    async def until(self, name: str, ready: Callable[[StatefulSet], bool] = full) -> None:
        await self._stage.until(STATEFULSETS, name, ready)

    async def claim(self, name: str, ready: Callable[[PersistentVolumeClaim], bool]) -> None:
        await self._stage.until(PERSISTENTVOLUMECLAIMS, name, ready)

    async def delete(self, kind: Kind[Any], name: str, **how: Any) -> None:
        await self._stage.api.delete(kind, self._stage.namespace, name, **how)

    async def change(self, name: str, **spec: Any) -> None:
        await self._stage.patch(STATEFULSETS, name, {"spec": spec})

    async def roll(self, name: str, image: str) -> None:
        container = {"name": "main", "image": image, "args": ["a<b>&c"]}
        await self.change(name, template={"spec": {"containers": [container]}})

    async def pod(self, name: str, ready: Callable[[Pod], bool] = is_ready) -> Pod:
        found: Pod = await self._stage.until(PODS, name, ready)
        return found

    async def tell(self) -> None:
        await self._stage.create(STATEFULSETS, *STORY)
        for document in STORY[:-1]:
            await self.until(document["metadata"]["name"])
        async with asyncio.TaskGroup() as tasks:
            for part in (
                self._web,
                self._wide,
                self._kept,
                self._late,
                self._manual,
                self._staged,
                self._several,
                self._slow,
                self._short,
                self._failed,
                self._nameless,
                self._parted,
            ):
                tasks.create_task(part())
        await self._stage.told("FailedCreate", HOPELESS)
        await self._stage.quiet()

    async def _web(self) -> None:
        """Roll, roll back, shrink and grow again: the claims wait."""
        await self.roll("web", "example/app:2")
        await self.until("web")
        await self.roll("web", "example/app:1")
        await self.until("web")
        await self.change("web", replicas=1)
        await self.until("web")
        await self.change("web", replicas=2)
        await self.until("web")

    async def _wide(self) -> None:
        """Shrink: the claims of the pods that go, go with them."""
        await self.change("wide", replicas=1)
        await self.until("wide")
        for ordinal in (6, 7):
            await self.claim(f"data-wide-{ordinal}", owned("Pod", True))

    async def _kept(self) -> None:
        """Delete the set: its claims go too."""
        await self.delete(STATEFULSETS, "kept")
        await self._stage.gone(PODS, "kept-0")
        await self.claim("data-kept-0", owned("StatefulSet", True))

    async def _late(self) -> None:
        """Change what becomes of claims, when they are there already."""
        await self.change("late", persistentVolumeClaimRetentionPolicy=WITH_SET)
        await self.claim("data-late-0", owned("StatefulSet"))
        await self.until("late")

    async def _manual(self) -> None:
        await self.roll("manual", "example/app:2")
        await self.until("manual", counts(updatedReplicas=0, readyReplicas=2))
        await self.delete(PODS, "manual-1")
        await self.until("manual", counts(updatedReplicas=1, readyReplicas=2))

    async def _staged(self) -> None:
        """Only what is past the partition is updated; a pod below it comes back as it was."""
        await self.roll("staged", "example/app:2")
        await self.until("staged", counts(updatedReplicas=1, readyReplicas=3, currentReplicas=2))
        before = await self.pod("staged-0")
        await self.delete(PODS, "staged-0")
        await self.pod("staged-0", lambda pod: pod.metadata.uid != before.metadata.uid and is_ready(pod))
        await self.until("staged", counts(updatedReplicas=1, readyReplicas=3, currentReplicas=2))

    async def _several(self) -> None:
        await self.roll("several", "example/app:2")
        await self.until("several")

    async def _slow(self) -> None:
        await self.roll("slow", "example/app:2")
        await self.until("slow")

    async def _short(self) -> None:
        """No history is kept but what is in use."""
        for image in ("example/app:2", "example/app:3"):
            await self.roll("short", image)
            await self.until("short")

    async def _failed(self) -> None:
        """A pod that has ended is replaced."""
        before = await self.pod("failed-1")
        await self._stage.patch(PODS, "failed-1", {"spec": {"activeDeadlineSeconds": 1}})
        await self.pod("failed-1", lambda pod: pod.metadata.uid != before.metadata.uid and is_ready(pod))
        await self.until("failed")

    async def _nameless(self) -> None:
        """A pod that no longer says who it is, is told."""
        await self._stage.patch(PODS, "nameless-0", {"metadata": {"labels": {POD_NAME: None}}})
        await self.pod("nameless-0", lambda pod: pod.metadata.labels.get(POD_NAME) == "nameless-0")
        await self.until("nameless")

    async def _parted(self) -> None:
        """A set that is deleted leaves pods and history behind; the next of its name takes both."""
        await self.delete(STATEFULSETS, "parted", propagation="Orphan")
        await self._stage.gone(STATEFULSETS, "parted")
        await self._stage.create(STATEFULSETS, stateful("parted", 1))
        await self._stage.gone(PODS, "parted-1")
        await self.until("parted")


@pytest.fixture(scope="module")
def ends(both: Callable[..., dict[str, dict[str, Any]]]) -> dict[str, dict[str, Any]]:
    controllers = ("statefulset-controller", "garbage-collector-controller")
    found = both(
        lambda stage: Story(stage).tell(),
        "sets",
        controllers=controllers,
        kinds=KINDS,
        flags=(GATES,),
        apiserver=(GATES,),
    )
    for end in found.values():
        end["events"] = [event for event in end["events"] if not is_chance(event)]
    return found


def is_chance(event: Document) -> bool:
    """Whether the reference may tell of it or not, as it happens: it gives claims their owners only when their
    pod is there, sometimes twice, and tells of it if the pod was running by then."""
    return event["reason"].endswith("Update") and event["about"] in ("StatefulSet/wide", "StatefulSet/kept")


def test_every_set_comes_to_its_end_with_just_the_rights_it_has(ends: dict[str, dict[str, Any]]) -> None:
    ours = ends[OURS]
    claims = ours["persistentvolumeclaims"]
    assert sorted(name for name in claims if name.startswith("data-web-")) == [
        f"data-web-{i}" for i in range(3)
    ]
    assert [name for name, claim in claims.items() if "deleting" in claim["metadata"]] == [
        "data-kept-0",
        "data-wide-6",
        "data-wide-7",
    ]
    revisions = ours["controllerrevisions"]
    assert sorted(one["revision"] for name, one in revisions.items() if name.startswith("web-")) == [2, 3]
    assert [one["revision"] for name, one in revisions.items() if name.startswith("short-")] == [3]


@pytest.mark.parametrize("plural", [*(kind.plural for kind in KINDS), "events"])
def test_both_managers_leave_the_same(
    ends: dict[str, dict[str, Any]], alike: Callable[..., None], plural: str
) -> None:
    alike(ends, plural)


@pytest.mark.reference
async def test_a_set_that_changes_managers_is_not_rolled(plane: RealPlane, namespace: str) -> None:
    flags = (
        "--controllers=statefulset-controller,serviceaccount-controller",
        "--use-service-account-credentials=true",
        "--leader-elect=false",
    )
    pods: dict[str, str] = {}
    async with (
        plane.connect() as api,
        beside(Kubelets(api, RealClock(), ("node-1",), register=False).run()),
        asyncio.timeout(90),
    ):
        await api.create(STATEFULSETS.untyped, namespace, stateful("web", 1, ("data",)))
        # Each is known to have taken over by the pod it adds.
        for replicas, binary in enumerate((REFERENCE, OURS, REFERENCE, OURS), 1):
            await api.patch(STATEFULSETS, namespace, "web", {"spec": {"replicas": replicas}})
            manager = plane.manager(*flags, binary=binary)
            await until(api, STATEFULSETS, namespace, "web", full)
            manager.stop()
            there = {pod.metadata.name: pod.metadata.uid for pod in (await api.list(PODS, namespace)).items}
            assert there.items() >= pods.items(), f"{binary} replaced pods"
            pods = there
        assert sorted(pods) == [f"web-{ordinal}" for ordinal in range(4)]
        assert len((await api.list(CONTROLLERREVISIONS, namespace)).items) == 1
