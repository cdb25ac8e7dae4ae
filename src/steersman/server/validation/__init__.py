"""Validation of objects, with the messages and causes of the real server.

An object comes here as it would be stored, with its defaults set. `rules_for` returns the rules of a kind;
the modules that hold them are imported on first use, which keeps start-up fast. A kind without rules of its
own has only its metadata validated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeAlias

from steersman.server.status_errors import FieldError
from steersman.server.validation.rules import METADATA_ONLY, AnyRules, GroupKind, Rules

__all__ = ["METADATA_ONLY", "AnyRules", "Rules", "rules_for", "validate_create", "validate_update"]

Loader: TypeAlias = Callable[[], Mapping[GroupKind, AnyRules]]


def _load_admission() -> Mapping[GroupKind, AnyRules]:
    from steersman.server.validation import admission

    return admission.RULES


def _load_apiservices() -> Mapping[GroupKind, AnyRules]:
    from steersman.server.validation import apiservices

    return apiservices.RULES


def _load_apps() -> Mapping[GroupKind, AnyRules]:
    from steersman.server.validation import apps

    return apps.RULES


def _load_autoscaling() -> Mapping[GroupKind, AnyRules]:
    from steersman.server.validation import autoscaling

    return autoscaling.RULES


def _load_certificates() -> Mapping[GroupKind, AnyRules]:
    from steersman.server.validation import certificates

    return certificates.RULES


def _load_claims() -> Mapping[GroupKind, AnyRules]:
    from steersman.server.validation import claims

    return claims.RULES


def _load_cluster() -> Mapping[GroupKind, AnyRules]:
    from steersman.server.validation import cluster

    return cluster.RULES


def _load_config() -> Mapping[GroupKind, AnyRules]:
    from steersman.server.validation import config

    return config.RULES


def _load_csi() -> Mapping[GroupKind, AnyRules]:
    from steersman.server.validation import csi

    return csi.RULES


def _load_resource_slices() -> Mapping[GroupKind, AnyRules]:
    from steersman.server.validation import resource_slices

    return resource_slices.RULES


def _load_devices() -> Mapping[GroupKind, AnyRules]:
    from steersman.server.validation import devices

    return devices.RULES


def _load_endpoints() -> Mapping[GroupKind, AnyRules]:
    from steersman.server.validation import endpoints

    return endpoints.RULES


def _load_flowcontrol() -> Mapping[GroupKind, AnyRules]:
    from steersman.server.validation import flowcontrol

    return flowcontrol.RULES


def _load_gated() -> Mapping[GroupKind, AnyRules]:
    from steersman.server.validation import gated

    return gated.RULES


def _load_ingresses() -> Mapping[GroupKind, AnyRules]:
    from steersman.server.validation import ingresses

    return ingresses.RULES


def _load_jobs() -> Mapping[GroupKind, AnyRules]:
    from steersman.server.validation import jobs

    return jobs.RULES


def _load_networks() -> Mapping[GroupKind, AnyRules]:
    from steersman.server.validation import networks

    return networks.RULES


def _load_nodes() -> Mapping[GroupKind, AnyRules]:
    from steersman.server.validation import nodes

    return nodes.RULES


def _load_pods() -> Mapping[GroupKind, AnyRules]:
    from steersman.server.validation import pods

    return pods.RULES


def _load_quotas() -> Mapping[GroupKind, AnyRules]:
    from steersman.server.validation import quotas

    return quotas.RULES


def _load_rbac() -> Mapping[GroupKind, AnyRules]:
    from steersman.server.validation import rbac

    return rbac.RULES


def _load_services() -> Mapping[GroupKind, AnyRules]:
    from steersman.server.validation import services

    return services.RULES


def _load_statefulset() -> Mapping[GroupKind, AnyRules]:
    from steersman.server.validation import statefulset

    return statefulset.RULES


def _load_storage() -> Mapping[GroupKind, AnyRules]:
    from steersman.server.validation import storage

    return storage.RULES


def _load_webhooks() -> Mapping[GroupKind, AnyRules]:
    from steersman.server.validation import webhooks

    return webhooks.RULES


def _load_autoscaling_v1() -> Mapping[GroupKind, AnyRules]:
    from steersman.server.validation import autoscaling

    return autoscaling.RULES_V1


LOADERS: Mapping[GroupKind, Loader] = {
    ("apiregistration.k8s.io", "APIService"): _load_apiservices,
    ("", "ConfigMap"): _load_config,
    ("", "Endpoints"): _load_endpoints,
    ("", "Event"): _load_cluster,
    ("", "LimitRange"): _load_quotas,
    ("", "Namespace"): _load_config,
    ("", "Node"): _load_nodes,
    ("", "PersistentVolume"): _load_storage,
    ("", "PersistentVolumeClaim"): _load_claims,
    ("", "Pod"): _load_pods,
    ("", "PodTemplate"): _load_pods,
    ("", "ReplicationController"): _load_apps,
    ("", "ResourceQuota"): _load_quotas,
    ("", "Secret"): _load_config,
    ("", "Service"): _load_services,
    ("", "ServiceAccount"): _load_config,
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"): _load_admission,
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"): _load_admission,
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): _load_webhooks,
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"): _load_admission,
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"): _load_admission,
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): _load_webhooks,
    ("apps", "ControllerRevision"): _load_statefulset,
    ("apps", "DaemonSet"): _load_apps,
    ("apps", "Deployment"): _load_apps,
    ("apps", "ReplicaSet"): _load_apps,
    ("apps", "StatefulSet"): _load_statefulset,
    ("autoscaling", "HorizontalPodAutoscaler"): _load_autoscaling,
    ("batch", "CronJob"): _load_jobs,
    ("batch", "Job"): _load_jobs,
    ("certificates.k8s.io", "CertificateSigningRequest"): _load_certificates,
    ("coordination.k8s.io", "Lease"): _load_cluster,
    ("discovery.k8s.io", "EndpointSlice"): _load_endpoints,
    ("events.k8s.io", "Event"): _load_cluster,
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"): _load_flowcontrol,
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"): _load_flowcontrol,
    ("networking.k8s.io", "IPAddress"): _load_networks,
    ("networking.k8s.io", "Ingress"): _load_ingresses,
    ("networking.k8s.io", "IngressClass"): _load_ingresses,
    ("networking.k8s.io", "NetworkPolicy"): _load_networks,
    ("networking.k8s.io", "ServiceCIDR"): _load_networks,
    ("node.k8s.io", "RuntimeClass"): _load_cluster,
    ("policy", "PodDisruptionBudget"): _load_autoscaling,
    ("rbac.authorization.k8s.io", "ClusterRole"): _load_rbac,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): _load_rbac,
    ("rbac.authorization.k8s.io", "Role"): _load_rbac,
    ("rbac.authorization.k8s.io", "RoleBinding"): _load_rbac,
    ("resource.k8s.io", "DeviceClass"): _load_devices,
    ("resource.k8s.io", "DeviceTaintRule"): _load_gated,
    ("resource.k8s.io", "ResourceClaim"): _load_devices,
    ("resource.k8s.io", "ResourceClaimTemplate"): _load_devices,
    ("resource.k8s.io", "ResourcePoolStatusRequest"): _load_gated,
    ("resource.k8s.io", "ResourceSlice"): _load_resource_slices,
    ("scheduling.k8s.io", "PodGroup"): _load_gated,
    ("scheduling.k8s.io", "PriorityClass"): _load_cluster,
    ("storage.k8s.io", "CSIDriver"): _load_csi,
    ("storage.k8s.io", "CSINode"): _load_csi,
    ("storage.k8s.io", "CSIStorageCapacity"): _load_storage,
    ("storage.k8s.io", "StorageClass"): _load_storage,
    ("storage.k8s.io", "VolumeAttachment"): _load_csi,
    ("storage.k8s.io", "VolumeAttributesClass"): _load_storage,
}
"""For each kind, the function that imports its module and returns the rules there."""

_VERSION_LOADERS: Mapping[tuple[str, str, str], Loader] = {
    ("autoscaling", "v1", "HorizontalPodAutoscaler"): _load_autoscaling_v1,
}
"""Kinds by group, version and kind, where a version has rules of its own."""


@cache
def rules_for(group: str, kind: str, version: str = "v1") -> AnyRules:
    """The rules of a kind."""
    load = _VERSION_LOADERS.get((group, version, kind)) or LOADERS.get((group, kind))
    return METADATA_ONLY if load is None else load()[group, kind]


def validate_create(group: str, kind: str, obj: Any, *, namespaced: bool = True) -> list[FieldError]:
    """The field errors of a new object."""
    return rules_for(group, kind).create(obj, namespaced=namespaced)


def validate_update(
    group: str, kind: str, new: Any, old: Any, *, subresource: str = "", namespaced: bool = True
) -> list[FieldError]:
    """The field errors of an update."""
    return rules_for(group, kind).update(new, old, subresource, namespaced=namespaced)
