"""Claims that controllers make and expand, on a real API server: both managers leave the same."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from steersman.api.kinds import PODS, Pod
from steersman.api.kinds.storage import (
    PERSISTENTVOLUMECLAIMS,
    PERSISTENTVOLUMES,
    STORAGECLASSES,
    PersistentVolume,
    PersistentVolumeClaim,
)
from tests.harness import volumes
from tests.harness.follow import gone

Document = dict[str, Any]
Ends = dict[str, dict[str, Any]]
CLAIMS = PERSISTENTVOLUMECLAIMS
PATIENCE = 75.0
HOLD = "example.com/hold"


def exists(found: PersistentVolumeClaim) -> bool:
    return found.metadata.deletionTimestamp is None


async def removed(stage: Any, name: str) -> None:
    async with asyncio.timeout(PATIENCE):
        await gone(stage.api, CLAIMS, stage.namespace, name)


async def owners(stage: Any) -> Document:
    """The owners of all claims by name, with the pod's current uid replaced by a word."""
    pods = {
        each.metadata.uid: each.metadata.name for each in (await stage.api.list(PODS, stage.namespace)).items
    }
    page = await stage.api.list(CLAIMS.untyped, stage.namespace)
    return {
        each["metadata"]["name"]: [
            {**owner, "uid": f"of pod {pods.get(owner['uid'])}"}
            for owner in each["metadata"].get("ownerReferences", ())
        ]
        for each in page.items
    }


# -- ephemeral volumes ----------------------------------------------------------------------------


def detailed(document: Document) -> Document:
    """A pod whose ephemeral volume has a template with labels, annotations and a class."""
    (volume,) = document["spec"]["volumes"]
    template = volume["ephemeral"]["volumeClaimTemplate"]
    template["metadata"] = {"labels": {"app": "web"}, "annotations": {"example.com/note": "scratch"}}
    template["spec"] = {
        **template["spec"],
        "storageClassName": "fast",
        "volumeMode": "Block",
        "selector": {"matchLabels": {"disk": "ssd"}},
    }
    return document


async def before(stage: Any) -> None:
    """A pod that is there when the manager starts, and claims whose names pods will need."""
    await stage.create(PODS, volumes.pod("early", ephemeral="scratch", node="node-9"))
    await stage.create(CLAIMS, volumes.claim("taken-scratch"), volumes.claim("freed-scratch"))


async def tell(stage: Any) -> Document:
    plenty = volumes.pod("plenty", "named", ephemeral="scratch", node="node-9")
    cache = {"name": "cache", "ephemeral": {"volumeClaimTemplate": {"spec": volumes.CLAIM}}}
    plenty["spec"]["volumes"] += [{"name": "temp", "emptyDir": {}}, cache]
    await stage.create(
        PODS,
        plenty,
        detailed(volumes.pod("detailed", ephemeral="scratch", node="node-9")),
        volumes.pod("unscheduled", ephemeral="scratch", node=""),
        volumes.pod("plain", "named", node="node-9"),
        volumes.pod("taken", ephemeral="scratch", node="node-9"),
        volumes.pod("freed", ephemeral="scratch", node="node-9"),
        volumes.pod("held", ephemeral="scratch", node="node-9", finalizers=[HOLD]),
    )
    for name in ("early", "plenty", "detailed", "unscheduled", "held"):
        await stage.until(CLAIMS, f"{name}-scratch", exists)
    await stage.until(CLAIMS, "plenty-cache", exists)
    for name in ("taken", "freed"):
        await stage.told("FailedBinding", name)
    # A claim is created again; that of a pod that is being deleted is not.
    await stage.api.delete(PODS, stage.namespace, "held", grace=0)
    await stage.until(PODS, "held", lambda pod: pod.metadata.deletionTimestamp is not None)
    for name in ("unscheduled-scratch", "held-scratch", "freed-scratch"):
        await stage.api.delete(CLAIMS, stage.namespace, name)
    await removed(stage, "held-scratch")
    for name in ("unscheduled", "freed"):
        pod: Pod = await stage.api.get(PODS, stage.namespace, name)
        await stage.until(CLAIMS, f"{name}-scratch", owned_by(pod.metadata.uid))
    await stage.quiet()
    return {"owners": await owners(stage)}


def owned_by(uid: str) -> Callable[[PersistentVolumeClaim], bool]:
    def met(found: PersistentVolumeClaim) -> bool:
        return exists(found) and any(each.uid == uid for each in found.metadata.ownerReferences)

    return met


@pytest.fixture(scope="module")
def ends(both: Callable[..., Any]) -> Ends:
    found: Ends = both(
        tell,
        "ephemeral",
        controllers=("ephemeral-volume-controller", "persistentvolumeclaim-protection-controller"),
        kinds=(CLAIMS,),
        flags=("--concurrent-ephemeralvolume-syncs=3",),
        before=before,
    )
    return found


def test_each_ephemeral_volume_has_a_claim_of_its_own(ends: Ends) -> None:
    found = ends["steersman"]["owners"]
    mine = {name: [each["uid"] for each in owner] for name, owner in found.items()}
    assert mine == {
        "detailed-scratch": ["of pod detailed"],
        "early-scratch": ["of pod early"],
        "freed-scratch": ["of pod freed"],
        "plenty-cache": ["of pod plenty"],
        "plenty-scratch": ["of pod plenty"],
        "taken-scratch": [],
        "unscheduled-scratch": ["of pod unscheduled"],
    }
    assert ends["steersman"]["counters"]["ephemeral_volume_controller_create_total"] >= 8


@pytest.mark.parametrize("what", ["owners", "persistentvolumeclaims"])
def test_both_managers_make_the_same_claims(ends: Ends, alike: Callable[..., None], what: str) -> None:
    alike(ends, what)


def test_both_managers_say_the_same_of_names_that_are_taken(ends: Ends, alike: Callable[..., None]) -> None:
    """How often they say it depends on their back-off."""
    fields = ("about", "type", "reason", "message")
    alike(ends, lambda end: sorted({tuple(each[field] for field in fields) for each in end["events"]}))


def test_both_managers_count_the_same(ends: Ends, alike: Callable[..., None]) -> None:
    names = ("ephemeral_volume_controller_create_total", "ephemeral_volume_controller_create_failures_total")
    alike(ends, lambda end: {name: end["counters"].get(name) for name in names})


# -- expansion ------------------------------------------------------------------------------------

RESIZER = "volume.kubernetes.io/storage-resizer"
PRE_RESIZE = "volume.alpha.kubernetes.io/pre-resize-capacity"
EXPANDABLE = {
    "apiVersion": STORAGECLASSES.api_version,
    "kind": STORAGECLASSES.name,
    "metadata": {"name": "expandable"},
    "provisioner": "example.com/none",
    "allowVolumeExpansion": True,
}
MIGRATED: dict[str, tuple[str, Document]] = {
    "aws": ("awsElasticBlockStore", {"volumeID": "vol-1"}),
    "azure-disk": ("azureDisk", {"diskName": "d", "diskURI": "/subscriptions/d", "kind": "Managed"}),
    "azure-file": ("azureFile", {"secretName": "s", "shareName": "share", "secretNamespace": "default"}),
    "cinder": ("cinder", {"volumeID": "vol-1"}),
    "gce": ("gcePersistentDisk", {"pdName": "disk"}),
    "portworx": ("portworxVolume", {"volumeID": "vol-1"}),
    "vsphere": ("vsphereVolume", {"volumePath": "[disk] d"}),
}
FLEX = ("flexVolume", {"driver": "example.com/flex"})
SOURCES: dict[str, tuple[str, Document]] = {
    **MIGRATED,
    "csi": ("csi", {"driver": "csi.example.com", "volumeHandle": "disk"}),
    "host": ("hostPath", {"path": "/disk"}),
    "nfs": ("nfs", {"server": "nfs", "path": "/"}),
    "flex": FLEX,
    "flex-block": FLEX,
    "flex-failed": FLEX,
    "flex-again": FLEX,
    "unbound": ("csi", {"driver": "csi.example.com", "volumeHandle": "unbound"}),
    "content": ("csi", {"driver": "csi.example.com", "volumeHandle": "content"}),
}


def mode(name: str) -> Document:
    return {"volumeMode": "Block"} if name == "flex-block" else {}


async def bind(stage: Any, name: str) -> None:
    """A claim of one gibibyte and its volume, bound to each other as the binder leaves them."""
    document = volumes.claim(name, name, **{"storageClassName": "expandable", **mode(name)})
    made = await stage.api.create(CLAIMS, stage.namespace, document)
    field, source = SOURCES[name]
    reference = {"namespace": stage.namespace, "name": name, "uid": made.metadata.uid}
    if name == "unbound":
        reference["uid"] = "another"
    spec = {field: source, "claimRef": reference, "storageClassName": "expandable", **mode(name)}
    if field != "hostPath":
        spec = {"hostPath": None, **spec}
    await stage.create(PERSISTENTVOLUMES, volumes.volume(name, **spec))
    bound = {"phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}
    await stage.patch(CLAIMS, name, {"status": bound}, subresource="status")


async def grow(stage: Any, name: str, size: str) -> None:
    await stage.patch(CLAIMS, name, {"spec": {"resources": {"requests": {"storage": size}}}})


def annotated(found: PersistentVolumeClaim) -> bool:
    return RESIZER in found.metadata.annotations


def in_state(state: str) -> Callable[[PersistentVolumeClaim], bool]:
    return lambda found: found.status.allocatedResourceStatuses.get("storage", "") == state


def remembers(volume: PersistentVolume) -> bool:
    return PRE_RESIZE in volume.metadata.annotations


async def picture(stage: Any) -> Document:
    """What claims and volumes say of their sizes, but when."""
    found: Document = {}
    for item in (await stage.api.list(CLAIMS.untyped, stage.namespace)).items:
        status = item["status"]
        told = [
            {key: value for key, value in each.items() if not key.endswith("Time")}
            for each in status.get("conditions", ())
        ]
        found[f"claim {item['metadata']['name']}"] = {
            "annotations": item["metadata"].get("annotations", {}),
            **{
                key: status.get(key)
                for key in ("capacity", "allocatedResources", "allocatedResourceStatuses")
            },
            "conditions": sorted(told, key=lambda each: each["type"]),
        }
    for item in (await stage.api.list(PERSISTENTVOLUMES.untyped, "")).items:
        found[f"volume {item['metadata']['name']}"] = {
            "annotations": item["metadata"].get("annotations", {}),
            "capacity": item["spec"]["capacity"],
        }
    return found


async def expanded_before(stage: Any) -> None:
    """Claims that have grown before there is a manager, and one of a volume that the node has not resized."""
    await stage.create(STORAGECLASSES, EXPANDABLE)
    for name in ("content", "unbound", "flex-again"):
        await bind(stage, name)
    await grow(stage, "unbound", "2Gi")
    await grow(stage, "flex-again", "2Gi")


async def tell_expansion(stage: Any) -> Document:
    await stage.until(CLAIMS, "flex-again", in_state("NodeResizePending"))
    await stage.until(PERSISTENTVOLUMES, "flex-again", remembers)
    names = [name for name in SOURCES if name not in ("content", "unbound", "flex-again")]
    for name in names:
        await bind(stage, name)
    for name in names:
        await grow(stage, name, "2Gi")
    for name in MIGRATED:
        await stage.until(CLAIMS, name, annotated)
    for name in ("csi", "host", "nfs", *MIGRATED):
        await stage.told("ExternalExpanding", name)
    await stage.told("VolumeResizeSuccessful", "flex-block")
    for name in ("flex", "flex-failed"):
        await stage.until(CLAIMS, name, in_state("NodeResizePending"))
        await stage.until(PERSISTENTVOLUMES, name, remembers)
    await stage.quiet()
    begun = await picture(stage)

    # The node is done with one, cannot resize another, and a third grows once more meanwhile.
    done = {"capacity": {"storage": "2Gi"}, "allocatedResourceStatuses": None, "conditions": None}
    await stage.patch(CLAIMS, "flex", {"status": done}, subresource="status")
    infeasible = {"allocatedResourceStatuses": {"storage": "NodeResizeInfeasible"}}
    await stage.patch(CLAIMS, "flex-failed", {"status": infeasible}, subresource="status")
    await grow(stage, "flex-failed", "3Gi")
    await grow(stage, "flex-again", "3Gi")
    await stage.until(PERSISTENTVOLUMES, "flex", lambda volume: not remembers(volume))
    await stage.until(CLAIMS, "flex-failed", in_state("NodeResizePending"))
    await stage.until(CLAIMS, "flex-again", in_state("NodeResizePending"))
    await stage.quiet()
    return {"begun": begun, "grown": await picture(stage)}


@pytest.fixture(scope="module")
def expanded(both: Callable[..., Any]) -> Ends:
    found: Ends = both(
        tell_expansion,
        "expansion",
        controllers=("persistentvolume-expander-controller",),
        kinds=(CLAIMS, PERSISTENTVOLUMES),
        before=expanded_before,
    )
    return found


def test_claims_are_handed_over_and_flex_volumes_expanded(expanded: Ends) -> None:
    begun = expanded["steersman"]["begun"]
    assert {name: begun[f"claim {name}"]["annotations"].get(RESIZER) for name in ("aws", "csi", "flex")} == {
        "aws": "ebs.csi.aws.com",
        "csi": None,
        "flex": "example.com/flex",
    }
    assert begun["volume flex"]["annotations"][PRE_RESIZE] == "1Gi"
    assert begun["claim flex-block"]["capacity"] == {"storage": "2Gi"}
    assert [each["type"] for each in begun["claim flex"]["conditions"]] == [
        "FileSystemResizePending",
        "Resizing",
    ]
    assert PRE_RESIZE not in expanded["steersman"]["grown"]["volume flex"]["annotations"]


@pytest.mark.parametrize("what", ["begun", "grown", "persistentvolumeclaims", "persistentvolumes", "events"])
def test_both_managers_expand_alike(expanded: Ends, alike: Callable[..., None], what: str) -> None:
    alike(expanded, what)
