"""Defaults of the cluster's configuration: RBAC, classes, CSI drivers, flow control, networking."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from steersman.api.generated import (
    apiregistration_v1,
    coordination_v1,
    discovery_v1,
    flowcontrol_v1,
    networking_v1,
    node_v1,
    rbac_v1,
    scheduling_v1,
    storage_v1,
)
from steersman.api.kinds import EMPTY
from steersman.server.defaulting.missing_fields import (
    Default,
    GroupKind,
    canonical_base64,
    canonical_quantities,
    canonical_quantity,
    default_if_none,
    default_if_zero,
    map_items,
    map_optional,
    put,
)

if TYPE_CHECKING:
    from steersman.api.generated import certificates_v1

_RBAC = "rbac.authorization.k8s.io"


def default_role_binding(obj: rbac_v1.RoleBinding) -> rbac_v1.RoleBinding:
    return put(
        obj, roleRef=_default_role_ref(obj.roleRef), subjects=map_items(obj.subjects, _default_subject)
    )


def default_cluster_role_binding(obj: rbac_v1.ClusterRoleBinding) -> rbac_v1.ClusterRoleBinding:
    return put(
        obj, roleRef=_default_role_ref(obj.roleRef), subjects=map_items(obj.subjects, _default_subject)
    )


def _default_role_ref(ref: rbac_v1.RoleRef) -> rbac_v1.RoleRef:
    return default_if_zero(ref, apiGroup=_RBAC)


def _default_subject(subject: rbac_v1.Subject) -> rbac_v1.Subject:
    return default_if_zero(subject, apiGroup=_RBAC) if subject.kind in ("User", "Group") else subject


def default_priority_class(obj: scheduling_v1.PriorityClass) -> scheduling_v1.PriorityClass:
    return default_if_none(obj, preemptionPolicy="PreemptLowerPriority")


def default_runtime_class(obj: node_v1.RuntimeClass) -> node_v1.RuntimeClass:
    overhead = map_optional(
        obj.overhead, lambda given: put(given, podFixed=canonical_quantities(given.podFixed))
    )
    return put(obj, overhead=overhead)


def default_storage_class(obj: storage_v1.StorageClass) -> storage_v1.StorageClass:
    return default_if_none(obj, reclaimPolicy="Delete", volumeBindingMode="Immediate")


def default_csi_driver(obj: storage_v1.CSIDriver) -> storage_v1.CSIDriver:
    spec = default_if_none(
        obj.spec,
        attachRequired=True,
        podInfoOnMount=False,
        storageCapacity=False,
        fsGroupPolicy="ReadWriteOnceWithFSType",
        requiresRepublish=False,
        seLinuxMount=False,
    )
    return put(obj, spec=default_if_zero(spec, volumeLifecycleModes=("Persistent",)))


def default_api_service(obj: apiregistration_v1.APIService) -> apiregistration_v1.APIService:
    return put(
        obj,
        spec=put(
            obj.spec,
            caBundle=map_optional(obj.spec.caBundle, canonical_base64),
            service=map_optional(obj.spec.service, lambda given: default_if_none(given, port=443)),
        ),
    )


def default_csi_storage_capacity(obj: storage_v1.CSIStorageCapacity) -> storage_v1.CSIStorageCapacity:
    return put(
        obj,
        capacity=map_optional(obj.capacity, canonical_quantity),
        maximumVolumeSize=map_optional(obj.maximumVolumeSize, canonical_quantity),
    )


def default_lease(obj: coordination_v1.Lease) -> coordination_v1.Lease:
    """Drops the fields of coordinated leader election, a feature gate that is off."""
    return put(obj, spec=put(obj.spec, strategy=None, preferredHolder=None))


# -- flow control -----------------------------------------------------------------------------


def default_flow_schema(obj: flowcontrol_v1.FlowSchema) -> flowcontrol_v1.FlowSchema:
    return put(obj, spec=default_if_zero(obj.spec, matchingPrecedence=1000))


def default_priority_level(
    obj: flowcontrol_v1.PriorityLevelConfiguration,
) -> flowcontrol_v1.PriorityLevelConfiguration:
    spec = put(
        obj.spec,
        exempt=map_optional(
            obj.spec.exempt,
            lambda given: default_if_none(given, nominalConcurrencyShares=0, lendablePercent=0),
        ),
        limited=map_optional(obj.spec.limited, _default_limited),
    )
    return put(obj, spec=spec)


def _default_limited(
    given: flowcontrol_v1.LimitedPriorityLevelConfiguration,
) -> flowcontrol_v1.LimitedPriorityLevelConfiguration:
    given = default_if_none(given, nominalConcurrencyShares=30, lendablePercent=0)
    response = given.limitResponse
    queuing = map_optional(
        response.queuing, lambda one: default_if_zero(one, handSize=8, queues=64, queueLengthLimit=50)
    )
    return put(given, limitResponse=put(response, queuing=queuing))


# -- networking -------------------------------------------------------------------------------


def default_network_policy(obj: networking_v1.NetworkPolicy) -> networking_v1.NetworkPolicy:
    """The policy types default to Ingress, and to Egress too where there are egress rules."""
    spec = obj.spec
    if not spec.policyTypes:
        spec = put(spec, policyTypes=("Ingress", "Egress") if spec.egress else ("Ingress",))
    spec = put(
        spec,
        ingress=map_items(
            spec.ingress, lambda rule: put(rule, ports=map_items(rule.ports, _default_policy_port))
        ),
        egress=map_items(
            spec.egress, lambda rule: put(rule, ports=map_items(rule.ports, _default_policy_port))
        ),
    )
    return put(obj, spec=spec)


def _default_policy_port(port: networking_v1.NetworkPolicyPort) -> networking_v1.NetworkPolicyPort:
    return default_if_none(port, protocol="TCP")


def default_ingress_class(obj: networking_v1.IngressClass) -> networking_v1.IngressClass:
    parameters = map_optional(obj.spec.parameters, lambda given: default_if_none(given, scope="Cluster"))
    return put(obj, spec=put(obj.spec, parameters=parameters))


def default_endpoint_slice(obj: discovery_v1.EndpointSlice) -> discovery_v1.EndpointSlice:
    endpoints = map_optional(
        obj.endpoints,
        lambda given: map_items(given, lambda endpoint: put(endpoint, deprecatedTopology=EMPTY)),
    )
    return put(
        obj,
        endpoints=endpoints,
        ports=map_optional(obj.ports, lambda ports: map_items(ports, _default_endpoint_port)),
    )


def _default_endpoint_port(port: discovery_v1.EndpointPort) -> discovery_v1.EndpointPort:
    return default_if_none(port, name="", protocol="TCP")


# -- certificates ----------------------------------------------------------------------------


def default_certificate_signing_request(
    obj: certificates_v1.CertificateSigningRequest,
) -> certificates_v1.CertificateSigningRequest:
    return put(
        obj,
        spec=put(obj.spec, request=canonical_base64(obj.spec.request)),
        status=put(obj.status, certificate=canonical_base64(obj.status.certificate)),
    )


DEFAULTS: Mapping[GroupKind, Default] = {
    ("apiregistration.k8s.io", "APIService"): default_api_service,
    ("certificates.k8s.io", "CertificateSigningRequest"): default_certificate_signing_request,
    ("coordination.k8s.io", "Lease"): default_lease,
    ("discovery.k8s.io", "EndpointSlice"): default_endpoint_slice,
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"): default_flow_schema,
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"): default_priority_level,
    ("networking.k8s.io", "IngressClass"): default_ingress_class,
    ("networking.k8s.io", "NetworkPolicy"): default_network_policy,
    ("node.k8s.io", "RuntimeClass"): default_runtime_class,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): default_cluster_role_binding,
    ("rbac.authorization.k8s.io", "RoleBinding"): default_role_binding,
    ("scheduling.k8s.io", "PriorityClass"): default_priority_class,
    ("storage.k8s.io", "CSIDriver"): default_csi_driver,
    ("storage.k8s.io", "CSIStorageCapacity"): default_csi_storage_capacity,
    ("storage.k8s.io", "StorageClass"): default_storage_class,
}
