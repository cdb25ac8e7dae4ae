"""resourceclaim-controller: which rounds a change leads to, and which claims are counted."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from steersman.api.kinds import (
    Object,
    ObjectMeta,
    OwnerReference,
    Pod,
    PodExtendedResourceClaimStatus,
    PodResourceClaim,
    PodResourceClaimStatus,
    PodSchedulingGroup,
    PodSpec,
    PodStatus,
)
from steersman.api.kinds.devices import (
    EXTENDED_RESOURCE_CLAIM,
    POD_CLAIM_NAME,
    AllocationResult,
    DeviceClaim,
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimSpec,
    ResourceClaimStatus,
    ResourceClaimTemplate,
)
from steersman.api.kinds.podgroups import PodGroup, PodGroupSpec, PodGroupStatus
from steersman.api.scheme import kind_of
from steersman.controllers.resourceclaim import controller
from steersman.controllers.resourceclaim.enqueue import Memory
from steersman.controllers.resourceclaim.metrics import ClaimCounts, admin_access_label
from steersman.intent.controller import Change
from steersman.intent.settings import Settings
from steersman.testing.decision_driver import StaticCaches

BY_TEMPLATE = PodResourceClaim(name="gpu", resourceClaimTemplateName="t")
BY_NAME = PodResourceClaim(name="gpu", resourceClaimName="made")
MADE = (PodResourceClaimStatus(name="gpu", resourceClaimName="made"),)
TEMPLATE = ResourceClaimTemplate(metadata=ObjectMeta(name="t", namespace="d"))
ALLOCATION = ResourceClaimStatus(allocation=AllocationResult())


def meta(name: str, namespace: str = "d", **fields: Any) -> ObjectMeta:
    return ObjectMeta(name=name, namespace=namespace, uid=f"uid-{name}", **fields)


def pod(
    *claims: PodResourceClaim,
    name: str = "p",
    namespace: str = "d",
    group: str | None = None,
    statuses: tuple[PodResourceClaimStatus, ...] = (),
    extended: str | None = None,
    phase: str = "",
    node: str = "",
) -> Pod:
    return Pod(
        metadata=meta(name, namespace),
        spec=PodSpec(
            nodeName=node,
            resourceClaims=claims,
            schedulingGroup=PodSchedulingGroup(podGroupName=group) if group else None,
        ),
        status=PodStatus(
            phase=phase,
            resourceClaimStatuses=statuses,
            extendedResourceClaimStatus=PodExtendedResourceClaimStatus(resourceClaimName=extended)
            if extended
            else None,
        ),
    )


def group(*statuses: PodResourceClaimStatus) -> PodGroup:
    return PodGroup(
        metadata=meta("g"),
        spec=PodGroupSpec(resourceClaims=(BY_TEMPLATE,)),
        status=PodGroupStatus(resourceClaimStatuses=statuses),
    )


def claim(owner: str = "", **fields: Any) -> ResourceClaim:
    kind = {"p": "Pod", "g": "PodGroup"}.get(owner, "")
    api = {"p": "v1", "g": "scheduling.k8s.io/v1alpha2"}.get(owner, "")
    reference = OwnerReference(apiVersion=api, kind=kind, name=owner, uid=f"uid-{owner}", controller=True)
    return ResourceClaim(metadata=meta("made", ownerReferences=(reference,) if owner else ()), **fields)


def changed(
    *known: Object, old: Object | None = None, new: Object | None = None, groups: bool = False
) -> list[str]:
    """The keys that a change leads to, where the caches have these objects besides."""
    gates = {"DRAWorkloadResourceClaims": groups, "GenericWorkload": groups}
    built = controller.configured(Settings(gates=gates))
    assert built is not None
    watched = {watch.kind.resource for watch in built.watches}
    caches = StaticCaches(built, *(each for each in known if kind_of(each).resource in watched))
    change = Change(old, new)
    if kind_of(change.obj).resource not in watched:
        return []
    if new is not None:
        caches.put(new)
    keys: list[str] = []
    for watch in built.watches:
        if watch.kind.resource == kind_of(change.obj).resource:
            keys += [f"{key.namespace}:{key.name}" for key in watch.to(caches, change)]
    assert isinstance(caches.memory, Memory)
    assert len(caches.memory.deleted) == (new is None and isinstance(old, Pod | PodGroup))
    return keys


# -- pods and their claims --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "deleted", "keys"),
    [
        (pod(), False, []),
        (pod(PodResourceClaim(name="gpu"), phase="Running"), False, ["d:pod/p"]),
        (pod(extended="e", phase="Running"), False, []),
        (pod(extended="e", phase="Succeeded"), False, ["d:claim/e"]),
        (pod(extended="e", phase="Failed"), False, ["d:claim/e"]),
        (pod(extended="e", phase="Succeeded"), True, ["d:claim/e"]),
        (pod(extended="e"), True, ["d:claim/e"]),
        (pod(PodResourceClaim(name="gpu"), extended="e", phase="Succeeded"), False, ["d:claim/e"]),
        (pod(BY_NAME, phase="Succeeded"), False, ["d:claim/made"]),
        (pod(BY_NAME), True, ["d:claim/made"]),
        (pod(BY_NAME), False, []),
        (pod(BY_TEMPLATE), False, ["d:pod/p"]),
        (pod(BY_TEMPLATE, statuses=MADE), False, ["d:pod/p"]),
        (pod(BY_TEMPLATE, statuses=(PodResourceClaimStatus(name="gpu"),)), False, []),
        (pod(BY_TEMPLATE, statuses=MADE, phase="Succeeded"), True, ["d:claim/made"]),
        # The claim of a pod that is done has been deleted: it is not made again.
        (pod(BY_TEMPLATE, statuses=MADE, phase="Succeeded"), False, ["d:claim/made"]),
    ],
)
def test_a_change_of_a_pod(found: Pod, deleted: bool, keys: list[str]) -> None:
    assert changed(old=found if deleted else None, new=None if deleted else found) == keys


@pytest.mark.parametrize(
    ("found", "known", "keys"),
    [
        (pod(BY_TEMPLATE, statuses=MADE), claim("p"), []),
        (pod(BY_TEMPLATE, statuses=MADE), claim("p", status=ALLOCATION), []),
        (pod(BY_TEMPLATE, statuses=MADE, node="n"), claim("p"), []),
        (pod(BY_TEMPLATE, statuses=MADE, node="n"), claim("p", status=ALLOCATION), ["d:claim/made"]),
        (pod(BY_NAME, node="n"), claim(status=ALLOCATION), ["d:claim/made"]),
        (
            pod(BY_NAME, node="n"),
            claim(
                status=replace(ALLOCATION, reservedFor=(ResourceClaimConsumerReference(uid="uid-p"),)),
            ),
            [],
        ),
        # The claim is another pod's: only its deletion helps.
        (pod(BY_TEMPLATE, statuses=MADE, node="n"), claim(status=ALLOCATION), []),
        # A claim that is shared with other pods is not reserved for a pod that is done, again and again.
        (pod(BY_NAME, node="n", phase="Succeeded"), claim(status=ALLOCATION), ["d:claim/made"]),
    ],
)
def test_a_pod_with_a_claim(found: Pod, known: ResourceClaim, keys: list[str]) -> None:
    assert changed(known, new=found) == keys


def test_a_pod_that_is_being_deleted_is_left_alone() -> None:
    found = pod(BY_TEMPLATE, statuses=MADE, node="n")
    now = "2026-01-01T12:00:00Z"
    deleting = replace(found, metadata=replace(found.metadata, deletionTimestamp=now))
    assert changed(new=deleting) == []
    assert changed(new=replace(deleting, spec=replace(found.spec, nodeName=""))) == ["d:claim/made"]


# -- claims, templates and PodGroups ----------------------------------------------------------------

OTHER = pod(BY_TEMPLATE, name="fake-1", namespace="tmp")


@pytest.mark.parametrize(
    ("known", "new", "keys"),
    [
        ((pod(BY_TEMPLATE), OTHER), TEMPLATE, ["d:pod/p"]),
        (
            (pod(BY_TEMPLATE), OTHER),
            replace(TEMPLATE, metadata=replace(TEMPLATE.metadata, namespace="tmp")),
            ["tmp:pod/fake-1"],
        ),
        ((pod(BY_NAME),), TEMPLATE, []),
        ((), claim(), ["d:claim/made"]),
        ((pod(BY_NAME, node="n"),), claim(status=ALLOCATION), ["d:claim/made", "d:claim/made"]),
        ((pod(BY_NAME, node="n"),), claim(), ["d:claim/made"]),
    ],
)
def test_a_change_of_a_claim_or_template(known: tuple[Object, ...], new: Object, keys: list[str]) -> None:
    assert changed(*known, new=new) == keys


def test_a_deleted_claim_is_made_anew_for_its_pod() -> None:
    assert changed(pod(BY_TEMPLATE, statuses=MADE), old=claim("p")) == ["d:pod/p"]


def test_a_deleted_template_changes_nothing() -> None:
    assert changed(pod(BY_TEMPLATE), old=TEMPLATE) == []


MEMBERS = (
    pod(BY_TEMPLATE, name="p-1", group="g"),
    pod(BY_TEMPLATE, name="p-2", group="g"),
    pod(BY_TEMPLATE, name="p-3", group="h"),
    pod(name="p-4", group="g"),
)


@pytest.mark.parametrize(
    ("known", "new", "groups", "keys"),
    [
        ((), group(*MADE), False, []),
        ((), group(*MADE), True, ["d:podgroup/g"]),
        ((claim("g"),), group(*MADE), True, []),
        ((group(*MADE),), claim("g"), True, ["d:claim/made"]),
        ((group(),), TEMPLATE, True, ["d:podgroup/g"]),
        (MEMBERS, group(*MADE), True, ["d:podgroup/g", "d:pod/p-1", "d:pod/p-2"]),
        (MEMBERS, group(*MADE), False, []),
        # The claim of the group is missing: the group gets it, not its pod.
        ((group(*MADE),), pod(BY_TEMPLATE, group="g", statuses=MADE), True, []),
        ((), pod(BY_TEMPLATE, group="g", statuses=MADE), True, ["d:pod/p"]),
        ((group(*MADE), claim("g")), pod(BY_TEMPLATE, group="g", statuses=MADE), True, []),
    ],
)
def test_a_change_of_a_pod_group(
    known: tuple[Object, ...], new: Object, groups: bool, keys: list[str]
) -> None:
    assert changed(*known, new=new, groups=groups) == keys


def test_a_pod_group_that_comes_after_its_pods_lets_their_own_claims_be_reserved() -> None:
    member = pod(BY_NAME, group="g", node="n")
    late = PodGroup(metadata=meta("g"))
    assert changed(new=member, groups=True) == []
    assert changed(member, new=claim(status=ALLOCATION), groups=True) == ["d:claim/made"]
    assert changed(member, claim(status=ALLOCATION), new=late, groups=True) == ["d:claim/made"]
    assert changed(member, claim(status=ALLOCATION), old=late, new=late, groups=True) == []


def test_a_deleted_pod_group_releases_its_claims() -> None:
    assert changed(old=group(*MADE), groups=True) == ["d:claim/made"]


# -- metrics ----------------------------------------------------------------------------------------


def asking(*requests: DeviceRequest) -> ResourceClaimSpec:
    return ResourceClaimSpec(devices=DeviceClaim(requests=requests))


def exactly(admin: bool | None) -> DeviceRequest:
    return DeviceRequest(exactly=ExactDeviceRequest(adminAccess=admin))


@pytest.mark.parametrize(
    ("spec", "label"),
    [
        (ResourceClaimSpec(), "false"),
        (asking(), "false"),
        (asking(exactly(False)), "false"),
        (asking(exactly(True)), "true"),
        (asking(DeviceRequest(firstAvailable=(DeviceSubRequest(),))), "false"),
        (asking(exactly(False), exactly(True)), "true"),
        (asking(exactly(None), exactly(False)), "false"),
    ],
)
def test_a_claim_with_admin_access(spec: ResourceClaimSpec, label: str) -> None:
    assert admin_access_label(spec) == label


def test_claims_are_counted_by_allocation_admin_access_and_source() -> None:
    counts = ClaimCounts()
    levels: dict[tuple[str, ...], float] = {}

    def change(old: ResourceClaim | None, new: ResourceClaim | None) -> dict[tuple[str, ...], float]:
        levels.update({each.labels: each.value for each in counts.measure(Change(old, new))})
        return {labels: value for labels, value in levels.items() if value}

    plain, allocated = claim(), claim(status=ALLOCATION)
    assert change(None, plain) == {("false", "false", ""): 1}
    assert change(plain, replace(plain, metadata=meta("made", labels={"foo": "bar"}))) == {
        ("false", "false", ""): 1
    }
    assert change(plain, allocated) == {("true", "false", ""): 1}
    assert change(None, allocated) == {("true", "false", ""): 2}
    assert change(allocated, plain) == {("true", "false", ""): 1, ("false", "false", ""): 1}
    assert change(plain, None) == {("true", "false", ""): 1}
    assert change(allocated, None) == {}
    templated = ResourceClaim(
        metadata=meta("made", annotations={POD_CLAIM_NAME: "gpu"}), spec=asking(exactly(True))
    )
    assert change(None, templated) == {("false", "true", "resource_claim_template"): 1}
    assert change(templated, replace(templated, status=ALLOCATION)) == {
        ("true", "true", "resource_claim_template"): 1
    }
    assert change(replace(templated, status=ALLOCATION), None) == {}
    extended = ResourceClaim(
        metadata=meta("made", annotations={EXTENDED_RESOURCE_CLAIM: "true", POD_CLAIM_NAME: "gpu"})
    )
    assert change(None, extended) == {("false", "false", "extended_resource"): 1}
    assert change(extended, None) == {}
