"""What the server fills in where a writer said nothing: one function per kind, object in, object out.

A function returns the very object it was given where nothing is missing, so an object that was stored
before goes through untouched and its parts stay shared. Modules are loaded when a kind is first asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, TypeAlias

from steersman.server import status_errors
from steersman.server.defaulting.missing_fields import Malformed

Default: TypeAlias = Callable[[Any], Any]

DEFAULTS: Mapping[tuple[str, str], str] = {
    ("", "ConfigMap"): "core.config_map",
    ("", "Endpoints"): "core.endpoints",
    ("", "LimitRange"): "core.limit_range",
    ("", "Namespace"): "core.namespace",
    ("", "Node"): "core.node",
    ("", "PersistentVolume"): "volumes.persistent_volume",
    ("", "PersistentVolumeClaim"): "volumes.claim",
    ("", "Pod"): "pods.pod",
    ("", "PodTemplate"): "pods.template",
    ("", "ReplicationController"): "workloads.replication_controller",
    ("", "ResourceQuota"): "core.quota",
    ("", "Secret"): "core.secret",
    ("", "Service"): "core.service",
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"): "admission.mutating_policy",
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"): "admission.mutating_binding",
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): "admission.mutating_webhooks",
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"): "admission.validating_policy",
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"): "admission.validating_binding",
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): "admission.validating_webhooks",
    ("apiregistration.k8s.io", "APIService"): "cluster.api_service",
    ("apps", "DaemonSet"): "workloads.daemon_set",
    ("apps", "Deployment"): "workloads.deployment",
    ("apps", "ReplicaSet"): "workloads.replica_set",
    ("apps", "StatefulSet"): "workloads.stateful_set",
    ("autoscaling", "HorizontalPodAutoscaler"): "autoscaling.autoscaler",
    ("batch", "CronJob"): "workloads.cron_job",
    ("batch", "Job"): "workloads.job",
    ("coordination.k8s.io", "Lease"): "cluster.lease",
    ("discovery.k8s.io", "EndpointSlice"): "network.endpoint_slice",
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"): "cluster.flow_schema",
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"): "cluster.priority_level",
    ("networking.k8s.io", "IngressClass"): "network.ingress_class",
    ("networking.k8s.io", "NetworkPolicy"): "network.network_policy",
    ("node.k8s.io", "RuntimeClass"): "cluster.runtime_class",
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): "cluster.cluster_role_binding",
    ("rbac.authorization.k8s.io", "RoleBinding"): "cluster.role_binding",
    ("resource.k8s.io", "ResourceClaim"): "devices.claim",
    ("resource.k8s.io", "ResourceClaimTemplate"): "devices.template",
    ("scheduling.k8s.io", "PriorityClass"): "cluster.priority_class",
    ("storage.k8s.io", "CSIDriver"): "cluster.csi_driver",
    ("storage.k8s.io", "CSIStorageCapacity"): "cluster.csi_storage_capacity",
    ("storage.k8s.io", "StorageClass"): "cluster.storage_class",
}
"""By kind, the module and the function that fills in its objects."""

_OLDER = {("autoscaling", "v1", "HorizontalPodAutoscaler"): "autoscaling.autoscaler_v1"}


def untouched(obj: Any) -> Any:
    """For kinds that have no defaults."""
    return obj


def default_for(group: str, kind: str, version: str = "v1") -> Default:
    """What fills in an object of a kind. It raises `BadRequest` for one with a value nobody can read."""
    where = _OLDER.get((group, version, kind)) or DEFAULTS.get((group, kind))
    if where is None:
        return untouched
    module, _, name = where.rpartition(".")
    fill: Default = getattr(import_module(f"{__name__}.{module}"), name)

    def default(obj: Any) -> Any:
        try:
            return fill(obj)
        except Malformed as error:
            raise status_errors.bad_request(
                f'{kind} in version "{version}" cannot be handled as a {kind}: {error}'
            ) from None

    return default
