"""Defaults of what a cluster is set up with: roles, classes, drivers, flow control."""

from __future__ import annotations

from steersman.api.generated import (
    apiregistration_v1,
    coordination_v1,
    flowcontrol_v1,
    node_v1,
    rbac_v1,
    scheduling_v1,
    storage_v1,
)
from steersman.server.defaulting.missing_fields import amount, amounts, each, maybe, put, unset, zero

_RBAC = "rbac.authorization.k8s.io"


def role_binding(obj: rbac_v1.RoleBinding) -> rbac_v1.RoleBinding:
    return put(obj, roleRef=_ref(obj.roleRef), subjects=each(obj.subjects, _subject))


def cluster_role_binding(obj: rbac_v1.ClusterRoleBinding) -> rbac_v1.ClusterRoleBinding:
    return put(obj, roleRef=_ref(obj.roleRef), subjects=each(obj.subjects, _subject))


def _ref(ref: rbac_v1.RoleRef) -> rbac_v1.RoleRef:
    return zero(ref, apiGroup=_RBAC)


def _subject(subject: rbac_v1.Subject) -> rbac_v1.Subject:
    return zero(subject, apiGroup=_RBAC) if subject.kind in ("User", "Group") else subject


def priority_class(obj: scheduling_v1.PriorityClass) -> scheduling_v1.PriorityClass:
    return unset(obj, preemptionPolicy="PreemptLowerPriority")


def runtime_class(obj: node_v1.RuntimeClass) -> node_v1.RuntimeClass:
    overhead = maybe(obj.overhead, lambda given: put(given, podFixed=amounts(given.podFixed)))
    return put(obj, overhead=overhead)


def storage_class(obj: storage_v1.StorageClass) -> storage_v1.StorageClass:
    return unset(obj, reclaimPolicy="Delete", volumeBindingMode="Immediate")


def csi_driver(obj: storage_v1.CSIDriver) -> storage_v1.CSIDriver:
    spec = unset(
        obj.spec,
        attachRequired=True,
        podInfoOnMount=False,
        storageCapacity=False,
        fsGroupPolicy="ReadWriteOnceWithFSType",
        requiresRepublish=False,
        seLinuxMount=False,
    )
    return put(obj, spec=zero(spec, volumeLifecycleModes=("Persistent",)))


def api_service(obj: apiregistration_v1.APIService) -> apiregistration_v1.APIService:
    return put(obj, spec=put(obj.spec, service=maybe(obj.spec.service, lambda given: unset(given, port=443))))


def csi_storage_capacity(obj: storage_v1.CSIStorageCapacity) -> storage_v1.CSIStorageCapacity:
    return put(
        obj,
        capacity=maybe(obj.capacity, amount),
        maximumVolumeSize=maybe(obj.maximumVolumeSize, amount),
    )


def lease(obj: coordination_v1.Lease) -> coordination_v1.Lease:
    """Who should hold a lease is a question of coordinated elections, which are off."""
    return put(obj, spec=put(obj.spec, strategy=None, preferredHolder=None))


# -- flow control -----------------------------------------------------------------------------


def flow_schema(obj: flowcontrol_v1.FlowSchema) -> flowcontrol_v1.FlowSchema:
    return put(obj, spec=zero(obj.spec, matchingPrecedence=1000))


def priority_level(
    obj: flowcontrol_v1.PriorityLevelConfiguration,
) -> flowcontrol_v1.PriorityLevelConfiguration:
    spec = put(
        obj.spec,
        exempt=maybe(
            obj.spec.exempt, lambda given: unset(given, nominalConcurrencyShares=0, lendablePercent=0)
        ),
        limited=maybe(obj.spec.limited, _limited),
    )
    return put(obj, spec=spec)


def _limited(
    given: flowcontrol_v1.LimitedPriorityLevelConfiguration,
) -> flowcontrol_v1.LimitedPriorityLevelConfiguration:
    given = unset(given, nominalConcurrencyShares=30, lendablePercent=0)
    response = given.limitResponse
    queuing = maybe(response.queuing, lambda one: zero(one, handSize=8, queues=64, queueLengthLimit=50))
    return put(given, limitResponse=put(response, queuing=queuing))
