"""Claims, volumes and their classes in use, on a real API server: both managers keep the same of them, and for as long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from steersman.api.conditions import find_condition
from steersman.api.kinds import PODS, Object, Pod
from steersman.api.kinds.storage import (
    PERSISTENTVOLUMECLAIMS,
    PERSISTENTVOLUMES,
    VOLUMEATTRIBUTESCLASSES,
    PersistentVolumeClaim,
)
from steersman.api.scheme import Kind
from tests.harness import volumes
from tests.harness.follow import gone

Document = dict[str, Any]
Ends = dict[str, dict[str, Any]]
CLAIMS = PERSISTENTVOLUMECLAIMS
PATIENCE = 75.0
HOLD = "example.com/hold"
GATE = "--feature-gates=PersistentVolumeClaimUnusedSinceTime=true"
WITHOUT_FINALIZERS = {"metadata": {"finalizers": None}}
KINDS: tuple[Kind[Any], ...] = (CLAIMS, PERSISTENTVOLUMES, VOLUMEATTRIBUTESCLASSES)


def class_(name: str) -> Document:
    return {
        "apiVersion": VOLUMEATTRIBUTESCLASSES.api_version,
        "kind": VOLUMEATTRIBUTESCLASSES.name,
        "metadata": {"name": name},
        "driverName": "csi.example.com",
        "parameters": {"iops": "100"},
    }


def held(document: Document) -> Document:
    return {**document, "metadata": {**document["metadata"], "finalizers": [HOLD]}}


def protected(obj: Object) -> bool:
    return any(each.endswith("-protection") for each in obj.metadata.finalizers)


def released(obj: Object) -> bool:
    return not protected(obj)


async def delete(stage: Any, kind: Kind[Any], *names: str, grace: int | None = None) -> None:
    for name in names:
        await stage.api.delete(kind, stage.namespace if kind.namespaced else "", name, grace=grace)


async def removed(stage: Any, kind: Kind[Any], *names: str) -> None:
    for name in names:
        async with asyncio.timeout(PATIENCE):
            await gone(stage.api, kind, stage.namespace if kind.namespaced else "", name)


async def guarded(stage: Any) -> Document:
    """The finalizers of what is left, by kind and name, and whether it is being deleted."""
    found: Document = {}
    for kind in KINDS:
        page = await stage.api.list(kind, stage.namespace if kind.namespaced else "")
        for each in page.items:
            meta = each.metadata
            deleted = "deleted" if meta.deletionTimestamp is not None else ""
            found[f"{kind.plural} {meta.name}"] = [deleted, *meta.finalizers]
    return found


async def before(stage: Any) -> None:
    """Objects without finalizers, as an API server without the admission plugin left them."""
    await stage.create(CLAIMS, volumes.claim("old"), volumes.claim("old-and-held"))
    await stage.create(PERSISTENTVOLUMES, volumes.volume("old"))
    await stage.create(VOLUMEATTRIBUTESCLASSES, class_("old"))
    for kind, name in ((CLAIMS, "old"), (PERSISTENTVOLUMES, "old"), (VOLUMEATTRIBUTESCLASSES, "old")):
        await stage.patch(kind, name, WITHOUT_FINALIZERS)
    await stage.patch(CLAIMS, "old-and-held", {"metadata": {"finalizers": [HOLD]}})


async def owned(stage: Any, pod: str) -> None:
    """The claim of an ephemeral volume, as ephemeral-volume-controller would make it."""
    found = await stage.api.get(PODS, stage.namespace, pod)
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": found.metadata.uid, "controller": True}
    document = volumes.claim(f"{pod}-scratch")
    document["metadata"]["ownerReferences"] = [owner]
    await stage.create(CLAIMS, document)


async def tell(stage: Any) -> Document:
    await stage.create(VOLUMEATTRIBUTESCLASSES, *map(class_, ("asked", "had", "spare")))
    await stage.create(
        PERSISTENTVOLUMES,
        volumes.volume("bound"),
        volumes.volume("spare"),
        volumes.volume(
            "fast",
            hostPath=None,
            csi={"driver": "csi.example.com", "volumeHandle": "fast"},
            volumeAttributesClassName="had",
        ),
    )
    await stage.patch(PERSISTENTVOLUMES, "bound", {"status": {"phase": "Bound"}}, subresource="status")
    names = ("data", "spare", "waiting", "finished", "foreign-scratch")
    await stage.create(CLAIMS, *map(volumes.claim, names))
    await stage.create(CLAIMS, volumes.claim("asks", volumeAttributesClassName="asked"))
    await stage.create(CLAIMS, held(volumes.claim("held")))
    await stage.create(
        PODS,
        volumes.pod("first", "data"),
        volumes.pod("second", "data"),
        volumes.pod("unscheduled", "waiting", node=""),
        volumes.pod("ended", "finished", node="node-9"),
        volumes.pod("foreign", ephemeral="scratch", node="node-9"),
        volumes.pod("runs", ephemeral="scratch", node="node-9"),
        volumes.pod("stopped", ephemeral="scratch", node="node-9", finalizers=[HOLD]),
    )
    for pod in ("runs", "stopped"):
        await owned(stage, pod)
    await stage.patch(PODS, "ended", {"status": {"phase": "Succeeded"}}, subresource="status")
    await stage.until(PODS, "first", lambda pod: pod.status.phase == "Running")
    for kind, name in (
        (CLAIMS, "old"),
        (CLAIMS, "old-and-held"),
        (PERSISTENTVOLUMES, "old"),
        (VOLUMEATTRIBUTESCLASSES, "old"),
    ):
        await stage.until(kind, name, protected)
    await stage.quiet()
    begun = await guarded(stage)

    # What nothing uses goes at once; what has another finalizer loses just that one.
    await delete(stage, PODS, "stopped", grace=0)
    await delete(stage, CLAIMS, "spare", "waiting", "foreign-scratch", "stopped-scratch", "held", "old")
    await delete(stage, PERSISTENTVOLUMES, "spare", "old")
    await delete(stage, VOLUMEATTRIBUTESCLASSES, "spare", "old")
    await removed(stage, CLAIMS, "spare", "waiting", "foreign-scratch", "stopped-scratch", "old")
    await removed(stage, PERSISTENTVOLUMES, "spare", "old")
    await removed(stage, VOLUMEATTRIBUTESCLASSES, "spare", "old")
    await stage.until(CLAIMS, "held", released)

    # What is in use stays.
    await delete(stage, CLAIMS, "data", "finished", "runs-scratch")
    await delete(stage, PERSISTENTVOLUMES, "bound")
    await delete(stage, VOLUMEATTRIBUTESCLASSES, "asked", "had")
    await delete(stage, PODS, "first")
    await removed(stage, PODS, "first")
    await stage.quiet()
    kept = await guarded(stage)

    # And goes when the last user does.
    await delete(stage, PODS, "second")
    await delete(stage, PODS, "ended", "runs", grace=0)
    await removed(stage, CLAIMS, "data", "finished", "runs-scratch")
    await stage.patch(PERSISTENTVOLUMES, "bound", {"status": {"phase": "Released"}}, subresource="status")
    await removed(stage, PERSISTENTVOLUMES, "bound")
    await delete(stage, CLAIMS, "asks")
    await removed(stage, VOLUMEATTRIBUTESCLASSES, "asked")
    await delete(stage, PERSISTENTVOLUMES, "fast")
    await removed(stage, VOLUMEATTRIBUTESCLASSES, "had")
    await stage.quiet()
    return {"begun": begun, "kept": kept, "left": await guarded(stage)}


@pytest.fixture(scope="module")
def ends(both: Callable[..., Any]) -> Ends:
    found: Ends = both(
        tell,
        "guarded",
        controllers=(
            "persistentvolumeclaim-protection-controller",
            "persistentvolume-protection-controller",
            "volumeattributesclass-protection-controller",
        ),
        kinds=KINDS,
        before=before,
    )
    return found


PVC, PV, VAC = (f"kubernetes.io/{each}-protection" for each in ("pvc", "pv", "vac"))


def test_what_is_deleted_stays_while_it_is_in_use(ends: Ends) -> None:
    assert ends["steersman"]["begun"]["persistentvolumeclaims old-and-held"] == ["", HOLD, PVC]
    assert ends["steersman"]["kept"] == {
        "persistentvolumeclaims asks": ["", PVC],
        "persistentvolumeclaims data": ["deleted", PVC],
        "persistentvolumeclaims finished": ["deleted", PVC],
        "persistentvolumeclaims held": ["deleted", HOLD],
        "persistentvolumeclaims old-and-held": ["", HOLD, PVC],
        "persistentvolumeclaims runs-scratch": ["deleted", PVC],
        "persistentvolumes bound": ["deleted", PV],
        "persistentvolumes fast": ["", PV],
        "volumeattributesclasses asked": ["deleted", VAC],
        "volumeattributesclasses had": ["deleted", VAC],
    }
    assert ends["steersman"]["left"].keys() == {
        "persistentvolumeclaims held",
        "persistentvolumeclaims old-and-held",
    }


@pytest.mark.parametrize("what", ["begun", "kept", "left", "persistentvolumeclaims"])
def test_both_managers_protect_the_same(ends: Ends, alike: Callable[..., None], what: str) -> None:
    alike(ends, what)


# -- the condition Unused -------------------------------------------------------------------------


def unused(status: str) -> Callable[[PersistentVolumeClaim], bool]:
    def met(found: PersistentVolumeClaim) -> bool:
        condition = find_condition(found.status.conditions, "Unused")
        return condition is not None and condition.status == status

    return met


def running(pod: Pod) -> bool:
    return pod.status.phase == "Running"


async def conditions(stage: Any) -> Document:
    """The conditions of the claims, but for their times."""
    page = await stage.api.list(CLAIMS.untyped, stage.namespace)
    return {
        each["metadata"]["name"]: [
            {key: value for key, value in condition.items() if not key.endswith("Time")}
            for condition in each["status"].get("conditions", ())
        ]
        for each in page.items
    }


async def tell_unused(stage: Any) -> Document:
    await stage.create(CLAIMS, volumes.claim("used"), volumes.claim("spare"), volumes.claim("waiting"))
    for name in ("used", "spare", "waiting"):
        await stage.until(CLAIMS, name, unused("True"))
    begun = await conditions(stage)
    # A condition of another writer stays beside it.
    resizing = {"type": "Resizing", "status": "True"}
    kept = (await stage.api.get(CLAIMS.untyped, stage.namespace, "used"))["status"]["conditions"]
    await stage.patch(CLAIMS, "used", {"status": {"conditions": [resizing, *kept]}}, subresource="status")
    await stage.create(PODS, volumes.pod("web", "used"), volumes.pod("pending", "waiting", node=""))
    await stage.until(PODS, "web", running)
    for name in ("used", "waiting"):
        await stage.until(CLAIMS, name, unused("False"))
    during = await conditions(stage)
    await stage.create(CLAIMS, volumes.claim("late"))
    await stage.until(CLAIMS, "late", unused("True"))
    await delete(stage, PODS, "web", "pending")
    for name in ("used", "waiting"):
        await stage.until(CLAIMS, name, unused("True"))
    await delete(stage, CLAIMS, "spare")
    await removed(stage, CLAIMS, "spare")
    await stage.quiet()
    return {"begun": begun, "during": during, "left": await conditions(stage)}


@pytest.fixture(scope="module")
def tracked(both: Callable[..., Any]) -> Ends:
    found: Ends = both(
        tell_unused,
        "tracked",
        controllers=("persistentvolumeclaim-protection-controller",),
        kinds=(CLAIMS,),
        flags=(GATE,),
        apiserver=(GATE,),
    )
    return found


def test_with_the_gate_claims_say_whether_pods_use_them(tracked: Ends) -> None:
    (condition,) = tracked["steersman"]["begun"]["spare"]
    assert condition == {
        "type": "Unused",
        "status": "True",
        "reason": "NoPodsUsingPVC",
        "message": "No pods are currently referencing this PVC",
    }
    during = {
        name: [each["status"] for each in found] for name, found in tracked["steersman"]["during"].items()
    }
    assert during == {"used": ["True", "False"], "spare": ["True"], "waiting": ["False"]}


@pytest.mark.parametrize("what", ["begun", "during", "left"])
def test_both_managers_say_the_same_of_claims(tracked: Ends, alike: Callable[..., None], what: str) -> None:
    alike(tracked, what)
