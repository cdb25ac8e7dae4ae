"""ResourceClaims and their consumers, row by row."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from steersman.api.kinds import (
    ObjectMeta,
    OwnerReference,
    Pod,
    PodResourceClaim,
    PodResourceClaimStatus,
    PodSchedulingGroup,
    PodSpec,
    PodStatus,
)
from steersman.api.kinds.devices import (
    DeviceTaint,
    DeviceToleration,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
)
from steersman.api.kinds.podgroups import PodGroup, PodGroupSpec, PodGroupStatus
from steersman.api.resource_claims import (
    ClaimName,
    ClaimNotCreated,
    UnsupportedClaim,
    claim_name,
    claim_names,
    consumer_of,
    is_reserved_for,
    not_made_for,
)
from steersman.api.scheduling import tolerates

GROUP_API = "scheduling.k8s.io/v1alpha2"


def meta(name: str, *owners: OwnerReference, namespace: str = "d") -> ObjectMeta:
    return ObjectMeta(name=name, namespace=namespace, uid=f"uid-{name}", ownerReferences=owners)


def pod(name: str = "p", group: str | None = None) -> Pod:
    spec = PodSpec(schedulingGroup=PodSchedulingGroup(podGroupName=group)) if group else PodSpec()
    return Pod(metadata=meta(name), spec=spec)


def claim_of(*owners: OwnerReference, namespace: str = "d") -> ResourceClaim:
    return ResourceClaim(metadata=meta("c", *owners, namespace=namespace))


BY_POD = OwnerReference(uid="uid-p", controller=True)
BY_GROUP = OwnerReference(apiVersion=GROUP_API, kind="PodGroup", name="g", uid="uid-g", controller=True)
GROUP, OTHER_GROUP = PodGroup(metadata=meta("g")), PodGroup(metadata=meta("h"))


# -- whom a claim was made for ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("consumer", "claim", "groups", "reason"),
    [
        (pod(), claim_of(BY_POD), False, ""),
        (
            pod("q"),
            claim_of(BY_POD),
            False,
            "ResourceClaim d/c was not created for Pod d/q (Pod is not owner)",
        ),
        (pod(), claim_of(), False, "ResourceClaim d/c was not created for Pod d/p (Pod is not owner)"),
        (
            pod(),
            claim_of(BY_POD, namespace="e"),
            False,
            "ResourceClaim e/c is not in the same namespace as Pod d/p",
        ),
        (pod(group="g"), claim_of(BY_GROUP), True, ""),
        (pod(group="g"), claim_of(replace(BY_GROUP, apiVersion="scheduling.k8s.io/v25")), True, ""),
        (
            pod(group="h"),
            claim_of(BY_GROUP),
            True,
            "ResourceClaim d/c was not created for Pod d/p (neither Pod nor PodGroup h is the owner)",
        ),
        (
            pod(group="g"),
            claim_of(),
            True,
            "ResourceClaim d/c was not created for Pod d/p (neither Pod nor PodGroup g is the owner)",
        ),
        (
            pod(group="g"),
            claim_of(BY_GROUP, namespace="e"),
            True,
            "ResourceClaim e/c is not in the same namespace as Pod d/p",
        ),
        # The gate is off, or the pod is in no group.
        (
            pod(group="g"),
            claim_of(BY_GROUP),
            False,
            "ResourceClaim d/c was not created for Pod d/p (Pod is not owner)",
        ),
        (pod(), claim_of(BY_GROUP), True, "ResourceClaim d/c was not created for Pod d/p (Pod is not owner)"),
        # Another API group's PodGroup.
        (
            pod(group="g"),
            claim_of(replace(BY_GROUP, apiVersion="example.com/v1")),
            True,
            "ResourceClaim d/c was not created for Pod d/p (neither Pod nor PodGroup g is the owner)",
        ),
        (GROUP, claim_of(BY_GROUP), True, ""),
        (
            OTHER_GROUP,
            claim_of(BY_GROUP),
            True,
            "ResourceClaim d/c was not created for PodGroup d/h (PodGroup is not owner)",
        ),
        (
            GROUP,
            claim_of(),
            True,
            "ResourceClaim d/c was not created for PodGroup d/g (PodGroup is not owner)",
        ),
        (
            GROUP,
            claim_of(BY_GROUP, namespace="e"),
            True,
            "ResourceClaim e/c is not in the same namespace as PodGroup d/g",
        ),
    ],
)
def test_whether_a_claim_was_made_for_a_consumer(
    consumer: Pod | PodGroup, claim: ResourceClaim, groups: bool, reason: str
) -> None:
    assert not_made_for(consumer, claim, pod_groups=groups) == reason


# -- whom a claim is reserved for -------------------------------------------------------------------


def for_uid(name: str) -> ResourceClaimConsumerReference:
    return ResourceClaimConsumerReference(uid=f"uid-{name}")


def for_group(name: str) -> ResourceClaimConsumerReference:
    return ResourceClaimConsumerReference(
        apiGroup="scheduling.k8s.io", resource="podgroups", name=name, uid=f"uid-{name}"
    )


@pytest.mark.parametrize(
    ("reserved_for", "name", "group", "groups", "expected"),
    [
        ((), "p", None, False, False),
        ((for_uid("p"),), "p", None, False, True),
        ((for_uid("p"),), "q", None, False, False),
        ((for_uid("p"), for_uid("r")), "p", None, False, True),
        ((for_uid("p"), for_uid("r")), "q", None, False, False),
        ((for_group("g"),), "q", "g", True, True),
        ((for_group("g"),), "q", "g", False, False),
        ((for_uid("p"), for_uid("g")), "p", "g", True, True),
        ((for_uid("p"),), "q", "h", True, False),
        ((for_group("g"), for_group("i")), "q", "g", True, True),
        ((for_group("g"), for_group("i")), "q", "h", True, False),
        ((replace(for_group("g"), resource="gangs"),), "q", "g", True, False),
    ],
)
def test_whether_a_claim_is_reserved_for_a_pod(
    reserved_for: tuple[ResourceClaimConsumerReference, ...],
    name: str,
    group: str | None,
    groups: bool,
    expected: bool,
) -> None:
    claim = ResourceClaim(status=ResourceClaimStatus(reservedFor=reserved_for))
    assert is_reserved_for(pod(name, group), claim, pod_groups=groups) is expected


# -- names ------------------------------------------------------------------------------------------

BY_NAME = PodResourceClaim(name="gpu", resourceClaimName="mine")
BY_TEMPLATE = PodResourceClaim(name="gpu", resourceClaimTemplateName="t")
UNKNOWN = PodResourceClaim(name="gpu")


def consumer(kind: str, *statuses: PodResourceClaimStatus) -> Pod | PodGroup:
    if kind == "pod":
        return Pod(metadata=meta("p"), status=PodStatus(resourceClaimStatuses=statuses))
    return PodGroup(metadata=meta("p"), status=PodGroupStatus(resourceClaimStatuses=statuses))


@pytest.mark.parametrize("kind", ["pod", "group"])
@pytest.mark.parametrize(
    ("claim", "statuses", "expected"),
    [
        (BY_NAME, (), ClaimName("mine")),
        (
            BY_TEMPLATE,
            (PodResourceClaimStatus(name="gpu", resourceClaimName="made"),),
            ClaimName("made", generated=True),
        ),
        (BY_TEMPLATE, (PodResourceClaimStatus(name="gpu"),), ClaimName(None, generated=True)),
    ],
)
def test_the_name_of_a_claim(
    kind: str, claim: PodResourceClaim, statuses: tuple[PodResourceClaimStatus, ...], expected: ClaimName
) -> None:
    assert claim_name(consumer(kind, *statuses), claim) == expected


@pytest.mark.parametrize(
    ("kind", "claim", "error", "message"),
    [
        ("pod", BY_TEMPLATE, ClaimNotCreated, 'pod "d/p": ResourceClaim not created yet'),
        ("group", BY_TEMPLATE, ClaimNotCreated, "PodGroup d/p: ResourceClaim not created yet"),
        (
            "pod",
            UNKNOWN,
            UnsupportedClaim,
            'pod "d/p", spec.resourceClaim "gpu": none of the supported fields are set',
        ),
        (
            "group",
            UNKNOWN,
            UnsupportedClaim,
            "PodGroup d/p, spec.resourceClaim gpu: none of the supported fields are set",
        ),
    ],
)
def test_a_claim_without_a_name(
    kind: str, claim: PodResourceClaim, error: type[Exception], message: str
) -> None:
    other = PodResourceClaimStatus(name="other", resourceClaimName="other")
    with pytest.raises(error) as raised:
        claim_name(consumer(kind, other), claim)
    assert str(raised.value) == message


def test_the_names_of_all_claims_leave_out_those_that_have_none() -> None:
    claims = (BY_NAME, BY_TEMPLATE, UNKNOWN, replace(BY_TEMPLATE, name="disk"))
    recorded = PodResourceClaimStatus(name="disk", resourceClaimName="made")
    found = Pod(
        metadata=meta("p"),
        spec=PodSpec(resourceClaims=claims),
        status=PodStatus(resourceClaimStatuses=(recorded,)),
    )
    assert list(claim_names(found)) == ["mine", "made"]


# -- the consumer of a pod's claim --------------------------------------------------------------------

FOR_POD = ResourceClaimConsumerReference(resource="pods", name="p", uid="uid-p")
NOT_IT, NOR_IT = replace(BY_NAME, name="not it"), replace(BY_NAME, name="nor it")


def group_with(*claims: PodResourceClaim, name: str = "g", namespace: str = "d") -> PodGroup:
    return PodGroup(metadata=meta(name, namespace=namespace), spec=PodGroupSpec(resourceClaims=claims))


@pytest.mark.parametrize(
    ("claim", "group", "expected"),
    [
        (BY_NAME, None, FOR_POD),
        (BY_TEMPLATE, None, FOR_POD),
        (BY_NAME, group_with(BY_NAME), for_group("g")),
        (BY_TEMPLATE, group_with(BY_TEMPLATE), for_group("g")),
        (BY_NAME, group_with(NOT_IT, NOR_IT), FOR_POD),
        (BY_NAME, group_with(NOT_IT, NOR_IT, BY_NAME), for_group("g")),
        (BY_NAME, group_with(NOT_IT), FOR_POD),
        (BY_NAME, group_with(replace(BY_NAME, resourceClaimName="other")), FOR_POD),
        (BY_TEMPLATE, group_with(replace(BY_TEMPLATE, resourceClaimTemplateName="other")), FOR_POD),
        (BY_NAME, group_with(), FOR_POD),
    ],
)
def test_the_consumer_that_a_claim_is_reserved_for(
    claim: PodResourceClaim, group: PodGroup | None, expected: ResourceClaimConsumerReference
) -> None:
    assert consumer_of(pod(group="g"), group, claim) == expected


@pytest.mark.parametrize(
    ("member", "claim", "group", "message"),
    [
        (pod(group="g"), UNKNOWN, None, "Pod d/p claim gpu: none of the supported fields are set"),
        (
            pod(group="g"),
            BY_NAME,
            group_with(UNKNOWN),
            "PodGroup d/g claim gpu: none of the supported fields are set",
        ),
        (
            pod(group="g"),
            BY_NAME,
            group_with(namespace="e"),
            "Pod d/p belongs to PodGroup d/g, not PodGroup e/g",
        ),
        (pod(group="g"), BY_NAME, OTHER_GROUP, "Pod d/p belongs to PodGroup d/g, not PodGroup d/h"),
        (pod(), BY_NAME, GROUP, "Pod d/p does not belong to a PodGroup"),
    ],
)
def test_a_claim_without_a_consumer(
    member: Pod, claim: PodResourceClaim, group: PodGroup | None, message: str
) -> None:
    with pytest.raises((UnsupportedClaim, ValueError)) as raised:
        consumer_of(member, group, claim)
    assert str(raised.value) == message


# -- tolerations of devices ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "operator", "value", "taint_value", "taint_effect", "expected"),
    [
        ("foo", "Exists", "", "", "NoSchedule", True),
        ("foo", "Exists", "", "bar", "NoSchedule", True),
        ("", "Exists", "", "bar", "NoSchedule", True),
        ("foo", "Equal", "bar", "bar", "NoSchedule", True),
        ("foo", "Equal", "value1", "value2", "NoSchedule", False),
        ("foo", "Equal", "bar", "bar", "NoExecute", False),
        ("foo", "Like", "bar", "bar", "NoSchedule", False),
    ],
)
def test_tolerations_of_devices_match_as_those_of_nodes(
    key: str, operator: str, value: str, taint_value: str, taint_effect: str, expected: bool
) -> None:
    toleration = DeviceToleration(key=key, operator=operator, value=value, effect="NoSchedule")
    taint = DeviceTaint(key="foo", value=taint_value, effect=taint_effect)
    assert tolerates((toleration,), taint) is expected
