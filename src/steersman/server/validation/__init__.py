"""What the server refuses: for each kind, what a new object may be, what an update may change, and what a
status may say, in the words and with the causes of the real server.

An object comes here as it would be stored, with its defaults filled in. `rules_for` gives the rules of a
kind; the modules behind them are loaded when first asked for. A kind without rules of its own is held to
those of every object's metadata.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from steersman.server.status_errors import FieldError
from steersman.server.validation import metadata
from steersman.server.validation import names as text
from steersman.server.validation.field_errors import FieldErrors

__all__ = ["PLAIN", "Rules", "rules_for", "validate_create", "validate_update"]

Check: TypeAlias = Callable[[FieldErrors, Any], None]
Change: TypeAlias = Callable[[FieldErrors, Any, Any], None]

NONE: Mapping[str, Change] = MappingProxyType({})


class Rules:
    """The rules of one kind. Each answers with what is wrong; nothing is the usual answer."""

    __slots__ = ("_bare", "_changes", "_create")

    def __init__(
        self, create: Check | None = None, changes: Mapping[str, Change] = NONE, *, bare: bool = False
    ) -> None:
        """``changes`` are by subresource; ``""`` is the object itself.

        ``bare`` is a kind whose check of new objects leaves their metadata to the server.
        """
        self._create = create
        self._changes = changes
        self._bare = bare

    def create(self, obj: Any, *, namespaced: bool) -> list[FieldError]:
        """A new object."""
        errors = FieldErrors()
        if self._create is None:
            metadata.check(errors, obj.metadata, namespaced=namespaced, kube=False)
        else:
            self._create(errors, obj)
            if self._bare and not errors:
                metadata.check(errors, obj.metadata, text.segment, namespaced=namespaced, kube=False)
        return errors

    def update(self, new: Any, old: Any, subresource: str = "", *, namespaced: bool) -> list[FieldError]:
        """An object in another's place."""
        errors = FieldErrors()
        metadata.common(errors, new.metadata, old.metadata, namespaced=namespaced)
        change = self._changes.get(subresource)
        if change is not None:
            change(errors, new, old)
        return errors


class _Row(NamedTuple):
    """Where the rules of a kind are: a module, and the names of its functions."""

    module: str
    create: str = "create"
    update: str = "update"
    status: str = ""
    """Perhaps in another module, which is then named before a dot."""
    others: tuple[tuple[str, str], ...] = ()
    """Other subresources."""


_ROWS: Mapping[tuple[str, str], _Row] = {
    ("", "ConfigMap"): _Row("config", "config_map", "config_map_update"),
    ("", "Endpoints"): _Row("endpoints"),
    ("", "Event"): _Row("cluster", "event", "event_update"),
    ("", "LimitRange"): _Row("quotas", "limits", "limits_update"),
    ("", "Namespace"): _Row(
        "config", "namespace", "namespace_update", "namespace_status", (("finalize", "namespace_finalize"),)
    ),
    ("", "Node"): _Row("nodes", status="status"),
    ("", "PersistentVolume"): _Row("storage", "volume", "volume_update", "volume_status"),
    ("", "PersistentVolumeClaim"): _Row("claims", status="status"),
    ("", "Pod"): _Row(
        "pods.pod",
        status="pods.status.status",
        others=(
            ("ephemeralcontainers", "pods.subresources.ephemeral"),
            ("resize", "pods.subresources.resize"),
        ),
    ),
    ("", "PodTemplate"): _Row("pods.pod", "template", "template_update"),
    ("", "ReplicationController"): _Row(
        "apps",
        "replication_controller",
        "replication_controller_update",
        "workload_status.replication_controller",
    ),
    ("", "ResourceQuota"): _Row("quotas", "quota", "quota_update", "quota_status"),
    ("", "Secret"): _Row("config", "secret", "secret_update"),
    ("", "Service"): _Row("services", status="status"),
    ("", "ServiceAccount"): _Row("config", "service_account", "service_account_update"),
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"): _Row("admission", "policy", "policy_update"),
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"): _Row(
        "admission", "binding", "binding_update"
    ),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): _Row("webhooks"),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"): _Row(
        "admission", "policy", "policy_update", "policy_status"
    ),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"): _Row(
        "admission", "binding", "binding_update"
    ),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): _Row("webhooks"),
    ("apps", "ControllerRevision"): _Row("statefulset", "revision", "revision_update"),
    ("apps", "DaemonSet"): _Row("apps", "daemon_set", "daemon_set_update", "workload_status.daemon_set"),
    ("apps", "Deployment"): _Row("apps", "deployment", "deployment_update", "workload_status.deployment"),
    ("apps", "ReplicaSet"): _Row("apps", "replica_set", "replica_set_update", "workload_status.replica_set"),
    ("apps", "StatefulSet"): _Row("statefulset", status="workload_status.stateful_set"),
    ("autoscaling", "HorizontalPodAutoscaler"): _Row("autoscaling", status="workload_status.autoscaler"),
    ("batch", "CronJob"): _Row("jobs", "cron_create", "cron_update"),
    ("batch", "Job"): _Row("jobs", status="job_status.status"),
    ("certificates.k8s.io", "CertificateSigningRequest"): _Row(
        "certificates", status="status", others=(("approval", "approval"),)
    ),
    ("coordination.k8s.io", "Lease"): _Row("cluster", "lease", "lease_update"),
    ("discovery.k8s.io", "EndpointSlice"): _Row("endpoints", "slice_create", "slice_update"),
    ("events.k8s.io", "Event"): _Row("cluster", "new_event", "new_event_update"),
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"): _Row(
        "flowcontrol", "schema", "schema_update", "schema_status"
    ),
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"): _Row(
        "flowcontrol", "level", "level_update", "level_status"
    ),
    ("networking.k8s.io", "IPAddress"): _Row("networks", "address_create", "address_update"),
    ("networking.k8s.io", "Ingress"): _Row("ingresses", status="status"),
    ("networking.k8s.io", "IngressClass"): _Row("ingresses", "class_create", "class_update"),
    ("networking.k8s.io", "NetworkPolicy"): _Row("networks"),
    ("networking.k8s.io", "ServiceCIDR"): _Row("networks", "cidr_create", "cidr_update"),
    ("node.k8s.io", "RuntimeClass"): _Row("cluster", "runtime_class", "runtime_class_update"),
    ("policy", "PodDisruptionBudget"): _Row("autoscaling", "budget", "budget_update", "budget_status"),
    ("rbac.authorization.k8s.io", "ClusterRole"): _Row("rbac", "cluster_role", "cluster_role_update"),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): _Row(
        "rbac", "cluster_binding", "cluster_binding_update"
    ),
    ("rbac.authorization.k8s.io", "Role"): _Row("rbac", "role", "role_update"),
    ("rbac.authorization.k8s.io", "RoleBinding"): _Row("rbac", "binding", "binding_update"),
    ("scheduling.k8s.io", "PriorityClass"): _Row("cluster", "priority_class", "priority_class_update"),
    ("storage.k8s.io", "CSIDriver"): _Row("csi", "driver", "driver_update"),
    ("storage.k8s.io", "CSINode"): _Row("csi", "node", "node_update"),
    ("storage.k8s.io", "CSIStorageCapacity"): _Row("storage", "capacity", "capacity_update"),
    ("storage.k8s.io", "StorageClass"): _Row("storage", "storage_class", "storage_class_update"),
    ("storage.k8s.io", "VolumeAttachment"): _Row(
        "csi", "attachment", "attachment_update", "attachment_update"
    ),
    ("storage.k8s.io", "VolumeAttributesClass"): _Row(
        "storage", "attributes_class", "attributes_class_update"
    ),
}

_OLDER = {
    ("autoscaling", "v1", "HorizontalPodAutoscaler"): _Row(
        "autoscaling", "create_v1", "update_v1", "workload_status.autoscaler"
    ),
}

_BARE = frozenset({("", "Event"), ("policy", "PodDisruptionBudget")})


PLAIN = Rules()
"""For kinds that have no rules of their own."""


@cache
def rules_for(group: str, kind: str, version: str = "v1") -> Rules:
    """The rules of a kind."""
    row = _OLDER.get((group, version, kind)) or _ROWS.get((group, kind))
    if row is None:
        return PLAIN
    names = (("", row.update), ("status", row.status), *row.others)
    changes = {subresource: _function(row.module, name) for subresource, name in names if name}
    return Rules(_function(row.module, row.create), changes, bare=(group, kind) in _BARE)


def _function(module: str, name: str) -> Any:
    other, _, name = name.rpartition(".")
    return getattr(import_module(f"{__name__}.{other or module}"), name)


def validate_create(group: str, kind: str, obj: Any, *, namespaced: bool = True) -> list[FieldError]:
    """What is wrong with a new object of a kind."""
    return rules_for(group, kind).create(obj, namespaced=namespaced)


def validate_update(
    group: str, kind: str, new: Any, old: Any, *, subresource: str = "", namespaced: bool = True
) -> list[FieldError]:
    """What is wrong with putting one object in another's place."""
    return rules_for(group, kind).update(new, old, subresource, namespaced=namespaced)
