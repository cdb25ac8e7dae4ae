"""Defaulting: sets the fields a writer left out, as upstream's SetDefaults functions do.

`default_for` returns the function for a kind. It returns its argument itself when no field is missing, so an
object that was stored before passes unchanged and its parts stay shared. The modules are imported on first use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from steersman.server import status_errors
from steersman.server.defaulting.missing_fields import Default, GroupKind, MalformedValue

__all__ = ["LOADERS", "Default", "default_for", "no_defaults"]

Loader: TypeAlias = Callable[[], Mapping[GroupKind, Default]]


def _load_admission() -> Mapping[GroupKind, Default]:
    from steersman.server.defaulting import admission

    return admission.DEFAULTS


def _load_autoscaling() -> Mapping[GroupKind, Default]:
    from steersman.server.defaulting import autoscaling

    return autoscaling.DEFAULTS


def _load_cluster() -> Mapping[GroupKind, Default]:
    from steersman.server.defaulting import cluster

    return cluster.DEFAULTS


def _load_core() -> Mapping[GroupKind, Default]:
    from steersman.server.defaulting import core

    return core.DEFAULTS


def _load_devices() -> Mapping[GroupKind, Default]:
    from steersman.server.defaulting import devices

    return devices.DEFAULTS


def _load_gated() -> Mapping[GroupKind, Default]:
    from steersman.server.defaulting import gated

    return gated.DEFAULTS


def _load_pods() -> Mapping[GroupKind, Default]:
    from steersman.server.defaulting import pods

    return pods.DEFAULTS


def _load_volumes() -> Mapping[GroupKind, Default]:
    from steersman.server.defaulting import volumes

    return volumes.DEFAULTS


def _load_workloads() -> Mapping[GroupKind, Default]:
    from steersman.server.defaulting import workloads

    return workloads.DEFAULTS


def _load_autoscaling_v1() -> Mapping[GroupKind, Default]:
    from steersman.server.defaulting import autoscaling

    return autoscaling.DEFAULTS_V1


LOADERS: Mapping[GroupKind, Loader] = {
    ("", "ConfigMap"): _load_core,
    ("", "Endpoints"): _load_core,
    ("", "LimitRange"): _load_core,
    ("", "Namespace"): _load_core,
    ("", "Node"): _load_core,
    ("", "PersistentVolume"): _load_volumes,
    ("", "PersistentVolumeClaim"): _load_volumes,
    ("", "Pod"): _load_pods,
    ("", "PodTemplate"): _load_pods,
    ("", "ReplicationController"): _load_workloads,
    ("", "ResourceQuota"): _load_core,
    ("", "Secret"): _load_core,
    ("", "Service"): _load_core,
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"): _load_admission,
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"): _load_admission,
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): _load_admission,
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"): _load_admission,
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"): _load_admission,
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): _load_admission,
    ("apiregistration.k8s.io", "APIService"): _load_cluster,
    ("apps", "DaemonSet"): _load_workloads,
    ("apps", "Deployment"): _load_workloads,
    ("apps", "ReplicaSet"): _load_workloads,
    ("apps", "StatefulSet"): _load_workloads,
    ("autoscaling", "HorizontalPodAutoscaler"): _load_autoscaling,
    ("batch", "CronJob"): _load_workloads,
    ("certificates.k8s.io", "CertificateSigningRequest"): _load_cluster,
    ("batch", "Job"): _load_workloads,
    ("coordination.k8s.io", "Lease"): _load_cluster,
    ("discovery.k8s.io", "EndpointSlice"): _load_cluster,
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"): _load_cluster,
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"): _load_cluster,
    ("networking.k8s.io", "IngressClass"): _load_cluster,
    ("networking.k8s.io", "NetworkPolicy"): _load_cluster,
    ("node.k8s.io", "RuntimeClass"): _load_cluster,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): _load_cluster,
    ("rbac.authorization.k8s.io", "RoleBinding"): _load_cluster,
    ("resource.k8s.io", "ResourceClaim"): _load_devices,
    ("resource.k8s.io", "ResourceClaimTemplate"): _load_devices,
    ("resource.k8s.io", "ResourceSlice"): _load_devices,
    ("resource.k8s.io", "ResourcePoolStatusRequest"): _load_gated,
    ("scheduling.k8s.io", "PodGroup"): _load_gated,
    ("scheduling.k8s.io", "PriorityClass"): _load_cluster,
    ("storage.k8s.io", "CSIDriver"): _load_cluster,
    ("storage.k8s.io", "CSIStorageCapacity"): _load_cluster,
    ("storage.k8s.io", "StorageClass"): _load_cluster,
}
"""For each kind, the function that imports its module and returns the defaults there."""

_VERSION_LOADERS: Mapping[tuple[str, str, str], Loader] = {
    ("autoscaling", "v1", "HorizontalPodAutoscaler"): _load_autoscaling_v1,
}
"""Kinds by group, version and kind, where a version has defaults of its own."""


def no_defaults(obj: Any) -> Any:
    """The `Default` of kinds without defaults: returns the object as it is."""
    return obj


def default_for(group: str, kind: str, version: str = "v1") -> Default:
    """The function that sets the defaults of a kind. It raises `MalformedObject` for a malformed value."""
    load = _VERSION_LOADERS.get((group, version, kind)) or LOADERS.get((group, kind))
    if load is None:
        return no_defaults
    set_defaults = load()[group, kind]

    def default(obj: Any) -> Any:
        try:
            return set_defaults(obj)
        except MalformedValue as error:
            raise status_errors.MalformedObject(kind, version, str(error)) from None

    return default
