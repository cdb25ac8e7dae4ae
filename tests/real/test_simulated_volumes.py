"""Claims of pods, told to kube-scheduler and to the simulated scheduler on real API servers: both bind and say the same."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.api.generated import core_v1, load
from steersman.api.scheme import Kind
from steersman.client.api import Api
from tests.harness.envtest import SCHEDULER
from tests.harness.follow import until
from tests.harness.schedulers import (
    BOUND,
    OURS,
    REFUSED,
    Ending,
    both_endings,
    create_nodes,
    event_text,
    pod_outcome,
    told,
)

FULL_CLAIMS: Kind[core_v1.PersistentVolumeClaim] = load("", "v1", "PersistentVolumeClaim")
FULL_VOLUMES: Kind[core_v1.PersistentVolume] = load("", "v1", "PersistentVolume")
PODS, CLAIMS, VOLUMES = load("", "v1", "Pod").untyped, FULL_CLAIMS.untyped, FULL_VOLUMES.untyped
CLASSES = load("storage.k8s.io", "v1", "StorageClass").untyped
CSI_NODES = load("storage.k8s.io", "v1", "CSINode").untyped
EVENTS = load("", "v1", "Event").untyped

SELECTED = "volume.kubernetes.io/selected-node"
COMPLETED = "pv.kubernetes.io/bind-completed"
ZONE = "topology.kubernetes.io/zone"
ONE, TWO = {"nodeSelector": {"name": "one"}}, {"nodeSelector": {"name": "two"}}

STORY: tuple[tuple[str, str, dict[str, Any] | None, dict[str, Any] | None, dict[str, Any]], ...] = (
    # The name of a pod, its claim and its volume, how the pod ends, claim and volume unless there is none, and the pod's spec.
    ("missing", REFUSED, None, None, {}),
    ("classless", REFUSED, {"sc": ""}, None, {}),
    ("immediate", REFUSED, {"sc": "now"}, None, {}),
    ("unknown", REFUSED, {"sc": "none"}, None, {}),
    ("half", REFUSED, {"volume": "half", "completed": False}, {"claim": "half"}, {}),
    ("anywhere", BOUND, {"volume": "anywhere"}, {"claim": "anywhere"}, TWO),
    ("local", BOUND, {"volume": "local"}, {"claim": "local", "node": "two"}, {}),
    ("elsewhere", REFUSED, {"volume": "elsewhere"}, {"claim": "elsewhere", "node": "four"}, {}),
    ("conflicting", REFUSED, {"volume": "conflicting"}, {"claim": "conflicting", "node": "two"}, ONE),
    ("gone", REFUSED, {"volume": "gone"}, None, {}),
    ("zonal", BOUND, {"volume": "zonal"}, {"claim": "zonal", "labels": {ZONE: "b"}}, {}),
    ("unzoned", REFUSED, {"volume": "unzoned"}, {"claim": "unzoned", "labels": {ZONE: "c"}}, {}),
    ("single", BOUND, {"volume": "single", "mode": "ReadWriteOncePod"}, {"claim": "single"}, ONE),
    ("disk", BOUND, {"volume": "disk"}, {"claim": "disk", "driver": "disk"}, ONE),
    ("crowded", REFUSED, {"volume": "crowded"}, {"claim": "crowded", "driver": "disk"}, ONE),
    ("unprovided", REFUSED, {"sc": "static"}, None, {}),
    ("small", REFUSED, {"sc": "static", "size": "5Gi"}, {"sc": "static", "node": "one"}, {}),
    ("topology", REFUSED, {"sc": "zoned"}, None, TWO),
)
BY_HAND = ("existing", "provisioned", "failing", "deleting", "lost", "second", "ephemeral", "foreign")
"""Pods whose story takes more than one step."""


def claim(
    name: str,
    *,
    sc: str = "wait",
    volume: str = "",
    completed: bool = True,
    size: str = "1Gi",
    mode: str = "ReadWriteOnce",
) -> dict[str, Any]:
    annotations = {COMPLETED: "yes"} if volume and completed else {}
    resources = {"requests": {"storage": size}}
    spec = {"accessModes": [mode], "storageClassName": sc, "volumeName": volume, "resources": resources}
    return {"metadata": {"name": name, "annotations": annotations}, "spec": spec}


def volume(
    name: str, *, claim: str = "", node: str = "", driver: str = "", sc: str = "wait", labels: Any = None
) -> dict[str, Any]:
    terms = [{"matchExpressions": [{"key": "name", "operator": "In", "values": [node]}]}]
    source = {"csi": {"driver": driver, "volumeHandle": name}} if driver else {"hostPath": {"path": "/disk"}}
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "storageClassName": sc,
        **source,
        **({"claimRef": {"namespace": "default", "name": claim}} if claim else {}),
        **({"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}} if node else {}),
    }
    return {"metadata": {"name": name, "labels": labels or {}}, "spec": spec}


def pod(name: str, claim: str, **spec: Any) -> dict[str, Any]:
    body = {
        "containers": [{"name": "main", "image": "app:1"}],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}],
        "tolerations": [{"operator": "Exists"}],
        "automountServiceAccountToken": False,
        **spec,
    }
    return {"metadata": {"name": name}, "spec": body}


def ephemeral(name: str) -> dict[str, Any]:
    template = {"spec": claim("x")["spec"] | {"volumeName": ""}}
    return pod(name, "", volumes=[{"name": "tmp", "ephemeral": {"volumeClaimTemplate": template}}])


async def bind(api: Api, name: str, volume: str) -> None:
    """Bind a claim, as the binder does."""
    body = {"metadata": {"annotations": {COMPLETED: "yes"}}, "spec": {"volumeName": volume}}
    await api.patch(CLAIMS, "default", name, body)


async def prepare(api: Api) -> None:
    await create_nodes(api, ZONE, {"one": "a", "two": "b", "three": "b"})
    for name in ("one", "two", "three"):
        driver: dict[str, Any] = {
            "name": "disk",
            "nodeID": name,
            "topologyKeys": [],
            "allocatable": {"count": 1},
        }
        await api.create(CSI_NODES, "", {"metadata": {"name": name}, "spec": {"drivers": [driver]}})
    zones = [{"matchLabelExpressions": [{"key": "name", "values": ["one"]}]}]
    for name, provisioner, mode, more in (
        ("wait", "example.com/disk", "WaitForFirstConsumer", {}),
        ("now", "example.com/disk", "Immediate", {}),
        ("static", "kubernetes.io/no-provisioner", "WaitForFirstConsumer", {}),
        ("zoned", "example.com/disk", "WaitForFirstConsumer", {"allowedTopologies": zones}),
    ):
        body = {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode, **more}
        await api.create(CLASSES, "", body)


async def by_hand(api: Api) -> None:
    """The parts of the story in which claims are bound, deleted or lost meanwhile."""
    await api.create(VOLUMES, "", volume("existing", node="one"))
    await api.patch(VOLUMES, "", "existing", {"status": {"phase": "Available"}}, subresource="status")
    await api.create(CLAIMS, "default", claim("existing"))
    await api.create(PODS, "default", pod("existing", "existing", **ONE))
    await until(api, FULL_VOLUMES, "", "existing", lambda found: found.spec.claimRef is not None)
    await bind(api, "existing", "existing")
    await told(api, "existing", BOUND)

    await api.create(CLAIMS, "default", claim("provisioned"))
    await api.create(PODS, "default", pod("provisioned", "provisioned", **TWO))
    await until(
        api, FULL_CLAIMS, "default", "provisioned", lambda found: SELECTED in found.metadata.annotations
    )
    await api.create(VOLUMES, "", volume("provisioned", claim="provisioned", node="two"))
    await bind(api, "provisioned", "provisioned")
    await told(api, "provisioned", BOUND)

    await api.create(CLAIMS, "default", claim("failing"))
    await api.create(PODS, "default", pod("failing", "failing", **ONE))
    await until(api, FULL_CLAIMS, "default", "failing", lambda found: SELECTED in found.metadata.annotations)
    await api.patch(CLAIMS, "default", "failing", {"metadata": {"annotations": {SELECTED: None}}})
    await told(api, "failing", REFUSED)

    held = claim("deleting", volume="deleting")
    await api.create(
        CLAIMS, "default", held | {"metadata": {**held["metadata"], "finalizers": ["example.com/hold"]}}
    )
    await api.delete(CLAIMS, "default", "deleting")
    await api.create(PODS, "default", pod("deleting", "deleting"))
    await told(api, "deleting", REFUSED)

    await api.create(CLAIMS, "default", claim("lost", volume="lost"))
    await api.patch(CLAIMS, "default", "lost", {"status": {"phase": "Lost"}}, subresource="status")
    await api.create(PODS, "default", pod("lost", "lost"))
    await told(api, "lost", REFUSED)

    await api.create(PODS, "default", pod("second", "single"))
    await told(api, "second", REFUSED)
    await api.create(PODS, "default", ephemeral("ephemeral"))
    await told(api, "ephemeral", REFUSED)
    await api.create(CLAIMS, "default", claim("foreign-tmp"))
    await api.create(PODS, "default", ephemeral("foreign"))
    await told(api, "foreign", REFUSED)


async def tell(api: Api) -> Ending:
    """The story, and what is left of it."""
    await prepare(api)
    for name, end, wanted, held, spec in STORY:
        if held is not None:
            await api.create(VOLUMES, "", volume(name, **held))
        if wanted is not None:
            await api.create(CLAIMS, "default", claim(name, **wanted))
        await api.create(PODS, "default", pod(name, name, **spec))
        await told(api, name, end)
    await by_hand(api)
    pods, claims, volumes, events = [
        [each for each in (await api.list(kind, namespace)).items if isinstance(each, dict)]
        for kind, namespace in ((PODS, "default"), (CLAIMS, "default"), (VOLUMES, ""), (EVENTS, "default"))
    ]
    return {
        "pods": {each["metadata"]["name"]: pod_outcome(each) for each in pods},
        # The pod of the failing claim is scheduled again and again.
        "claims": {
            each["metadata"]["name"]: each["metadata"].get("annotations")
            for each in claims
            if each["metadata"]["name"] != "failing"
        },
        "volumes": {each["metadata"]["name"]: _volume(each) for each in volumes},
        "events": sorted({event_text(each) for each in events}),
    }


def _volume(found: dict[str, Any]) -> tuple[Any, ...]:
    reference = dict(found["spec"].get("claimRef", {}))
    for key in ("uid", "resourceVersion"):
        if key in reference:
            reference[key] = "…"
    return found["metadata"].get("annotations"), reference


@pytest.fixture(scope="module")
def ends() -> dict[str, Ending]:
    return both_endings(tell)


@pytest.mark.parametrize("name", [*(name for name, *_ in STORY), *BY_HAND])
def test_both_say_the_same_of_a_pod(ends: dict[str, Ending], name: str) -> None:
    assert ends[OURS]["pods"][name] == ends[SCHEDULER]["pods"][name]


def test_both_leave_the_same_claims_and_volumes(ends: dict[str, Ending]) -> None:
    assert ends[OURS]["claims"] == ends[SCHEDULER]["claims"]
    assert ends[OURS]["volumes"] == ends[SCHEDULER]["volumes"]


def test_both_record_the_same_events(ends: dict[str, Ending]) -> None:
    assert ends[OURS]["events"] == ends[SCHEDULER]["events"]
