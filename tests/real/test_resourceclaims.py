"""ResourceClaims on a real API server: both managers make, reserve, release and delete the same ones."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from steersman.api.kinds import PODS, Pod
from steersman.api.kinds.devices import (
    DELETE_PROTECTION,
    RESOURCECLAIMS,
    RESOURCECLAIMTEMPLATES,
    ResourceClaim,
)
from steersman.api.kinds.podgroups import PODGROUPS, PodGroup

Document = dict[str, Any]
GATES = "--feature-gates=GenericWorkload=true,DRAWorkloadResourceClaims=true"
API = "--runtime-config=scheduling.k8s.io/v1alpha2=true"
DRIVER = "gpu.example.com"


def spec(**request: Any) -> Document:
    return {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu", **request}}]}}


def template(name: str, inner: Document | None = None) -> Document:
    metadata = {"labels": {"team": "a"}, "annotations": {"example.com/note": "b"}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name},
        "spec": {"metadata": metadata, "spec": inner or spec()},
    }


def claim(name: str) -> Document:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": spec(),
    }


def pod(name: str, *claims: str, node: str = "", group: str = "") -> Document:
    """``claims`` are names of claims, or of templates with a prefix."""
    listed = []
    for number, each in enumerate(claims):
        kind, _, rest = each.rpartition(":")
        field = "resourceClaimTemplateName" if kind == "template" else "resourceClaimName"
        listed.append({"name": f"c{number}", field: rest})
    body: Document = {
        "containers": [{"name": "main", "image": "example/app:1"}],
        "resourceClaims": listed,
    }
    if node:
        body["nodeName"] = node
    if group:
        body["schedulingGroup"] = {"podGroupName": group}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": body}


def pod_group(name: str, template: str = "") -> Document:
    shared = {"resourceClaims": [{"name": "c0", "resourceClaimTemplateName": template}]} if template else {}
    return {
        "apiVersion": PODGROUPS.api_version,
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"schedulingPolicy": {"basic": {}}, **shared},
    }


LONG = "a-name-of-a-pod-that-is-rather-long-and-must-be-shortened"


def has_claims(number: int) -> Callable[[Any], bool]:
    return lambda found: len(found.status.resourceClaimStatuses) == number


async def made_for(stage: Any, name: str, number: int = 1) -> list[str]:
    found: Pod = await stage.until(PODS, name, has_claims(number))
    return [each.resourceClaimName or "" for each in found.status.resourceClaimStatuses]


async def allocate(stage: Any, name: str, *pods: str, extra: Document | None = None) -> None:
    """Allocates a claim and reserves it, as the scheduler does."""
    await stage.patch(
        RESOURCECLAIMS, name, {"metadata": {"finalizers": ["example.com/kept", DELETE_PROTECTION]}}
    )
    result = {"request": "gpu", "driver": DRIVER, "pool": "pool", "device": "gpu-0"}
    reserved = [
        {"resource": "pods", "name": each, "uid": (await stage.until(PODS, each, bool)).metadata.uid}
        for each in pods
    ]
    status: Document = {"allocation": {"devices": {"results": [result]}}}
    if reserved or extra:
        status["reservedFor"] = reserved + ([extra] if extra else [])
    await stage.patch(RESOURCECLAIMS, name, {"status": status}, subresource="status")


async def finish(stage: Any, name: str, phase: str = "Succeeded") -> None:
    await stage.patch(PODS, name, {"status": {"phase": phase}}, subresource="status")


def reserved_for(*names: str) -> Callable[[ResourceClaim], bool]:
    return lambda found: sorted(each.name for each in found.status.reservedFor) == sorted(names)


def is_free(found: ResourceClaim) -> bool:
    return found.status.allocation is None and DELETE_PROTECTION not in found.metadata.finalizers


async def before(stage: Any) -> None:
    """A pod whose claim was deleted, and one whose PodGroup is not there. The reference manager remembers the claims that it has
    made, for an hour."""
    await stage.create(RESOURCECLAIMS, claim("own"))
    await stage.create(PODS, pod("early-member", "own", group="late", node="n"))
    await allocate(stage, "own")
    await stage.create(PODS, pod("again", "template:one"))
    recorded = [{"name": "c0", "resourceClaimName": "was-deleted"}]
    await stage.patch(PODS, "again", {"status": {"resourceClaimStatuses": recorded}}, subresource="status")


async def tell(stage: Any) -> Document:
    await asyncio.gather(from_templates(stage), reserved(stage), released(stage), grouped(stage))
    await late_group(stage)
    await stage.quiet()
    page = await stage.api.list(PODS.untyped, stage.namespace)
    return {"statuses": {one["metadata"]["name"]: statuses(one) for one in page.items}}


def statuses(document: Document) -> list[list[str]]:
    """The claims in the status of a pod, without the random part of their names."""
    listed = document["status"].get("resourceClaimStatuses", ())
    return sorted([each["name"], each["resourceClaimName"][:-5]] for each in listed)


async def from_templates(stage: Any) -> None:
    await stage.create(RESOURCECLAIMTEMPLATES, template("one"), template("two"))
    await stage.create(
        PODS,
        pod("plain", "template:one"),
        pod("both", "template:one", "template:two"),
        pod(LONG, "template:one"),
        pod("early", "template:late"),
        pod("by-name", "nonesuch"),
    )
    await stage.told("FailedResourceClaimCreation", "early")
    await made_for(stage, "plain")
    await made_for(stage, "both", 2)
    await made_for(stage, LONG)
    await stage.create(RESOURCECLAIMTEMPLATES, template("late"))
    await made_for(stage, "early")
    # A claim that was deleted is made again.
    await stage.until(
        PODS, "again", lambda found: found.status.resourceClaimStatuses[0].resourceClaimName != "was-deleted"
    )


async def reserved(stage: Any) -> None:
    """Pods that were bound without a scheduler."""
    await stage.create(RESOURCECLAIMS, claim("shared"))
    await stage.create(PODS, pod("bound", "shared", node="n"), pod("beside", "shared", node="n"))
    await allocate(stage, "shared", "bound")
    await stage.until(RESOURCECLAIMS, "shared", reserved_for("bound", "beside"))
    await stage.api.delete(PODS, stage.namespace, "beside", grace=0)
    await stage.until(RESOURCECLAIMS, "shared", reserved_for("bound"))


async def released(stage: Any) -> None:
    await stage.create(
        RESOURCECLAIMS, *(claim(name) for name in ("finished", "foreign", "deleted", "unused", "stale"))
    )
    await stage.create(
        PODS, pod("finishing", "finished"), pod("for-foreign", "foreign"), pod("for-deleted", "deleted")
    )
    await allocate(stage, "finished", "finishing")
    await allocate(
        stage,
        "foreign",
        "for-foreign",
        extra={"apiGroup": "example.com", "resource": "foos", "name": "foo", "uid": "foo"},
    )
    await allocate(stage, "deleted", "for-deleted")
    await allocate(stage, "unused")
    # A pod that never was.
    await allocate(stage, "stale", extra={"resource": "pods", "name": "nonesuch", "uid": "nonesuch"})
    await stage.until(RESOURCECLAIMS, "stale", is_free)
    await finish(stage, "finishing")
    await stage.until(RESOURCECLAIMS, "finished", is_free)
    await finish(stage, "for-foreign", "Failed")
    await stage.until(RESOURCECLAIMS, "foreign", reserved_for("foo"))
    for name in ("deleted", "unused"):
        await stage.patch(RESOURCECLAIMS, name, {"metadata": {"finalizers": [DELETE_PROTECTION]}})
        await stage.api.delete(RESOURCECLAIMS, stage.namespace, name)
    await stage.gone(RESOURCECLAIMS, "unused")
    await stage.api.delete(PODS, stage.namespace, "for-deleted", grace=0)
    await stage.gone(RESOURCECLAIMS, "deleted")


async def late_group(stage: Any) -> None:
    """A PodGroup that comes after its pod, which has a claim of its own."""
    await stage.create(PODGROUPS, pod_group("late"))
    await stage.until(RESOURCECLAIMS, "own", reserved_for("early-member"))


async def grouped(stage: Any) -> None:
    """The pods of a PodGroup share its claim."""
    await stage.create(RESOURCECLAIMTEMPLATES, template("of-group"))
    await stage.create(PODGROUPS, pod_group("gang", "of-group"), pod_group("lonely", "nonesuch"))
    await stage.create(
        PODS,
        pod("member-1", "template:of-group", group="gang", node="n"),
        pod("member-2", "template:of-group", group="gang", node="n"),
        pod("member-3", "template:one", group="gang"),
    )
    group: PodGroup = await stage.until(PODGROUPS, "gang", has_claims(1))
    name = group.status.resourceClaimStatuses[0].resourceClaimName
    assert [await made_for(stage, each) for each in ("member-1", "member-2")] == [[name], [name]]
    await stage.told("FailedResourceClaimCreation", "lonely")
    await allocate(stage, str(name))
    await stage.until(RESOURCECLAIMS, str(name), reserved_for("gang"))
    # podgroup-protection-controller does not run, so its finalizer would never be removed.
    await stage.patch(PODGROUPS, "gang", {"metadata": {"finalizers": None}})
    await stage.api.delete(PODGROUPS, stage.namespace, "gang")
    await stage.until(RESOURCECLAIMS, str(name), reserved_for())


@pytest.fixture(scope="module")
def ends(both: Callable[..., Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = both(
        tell,
        "claims",
        before=before,
        controllers=("resourceclaim-controller",),
        kinds=(RESOURCECLAIMS, PODS, PODGROUPS),
        flags=(GATES,),
        apiserver=(GATES, API),
    )
    return found


def test_claims_are_made_for_pods_and_groups(ends: dict[str, dict[str, Any]]) -> None:
    ours = ends["steersman"]
    assert ours["counters"]["resourceclaim_controller_creates_total false success"] == 8


@pytest.mark.parametrize("what", ["resourceclaims", "pods", "podgroups", "statuses", "events"])
def test_both_managers_leave_the_same(
    ends: dict[str, dict[str, Any]], alike: Callable[..., None], what: str
) -> None:
    alike(ends, what)


def test_both_managers_count_the_same(ends: dict[str, dict[str, Any]], alike: Callable[..., None]) -> None:
    def counted(end: dict[str, Any]) -> Document:
        ours = ("resourceclaim_controller_creates_total", "resourceclaim_controller_resource_claims")
        return {name: value for name, value in end["counters"].items() if name.startswith(ours) and value}

    alike(ends, counted)
