"""`Cluster.get` and `Cluster.list` with the types of built-in kinds.

Written by tools/generate_typed_kinds.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, TypeVar, overload

from steersman.api.scheme import Kind

if TYPE_CHECKING:
    import builtins

    from steersman.api.generated import (
        admissionregistration_v1,
        apiextensions_v1,
        apiregistration_v1,
        apps_v1,
        autoscaling_v2,
        batch_v1,
        certificates_v1,
        coordination_v1,
        core_v1,
        discovery_v1,
        events_v1,
        flowcontrol_v1,
        networking_v1,
        node_v1,
        policy_v1,
        rbac_v1,
        resource_v1,
        scheduling_v1,
        storage_v1,
    )
    from steersman.testing.generated import names

T = TypeVar("T")


class TypedObjects(ABC):
    """Reading objects by the names of their kinds."""

    @abstractmethod
    def _get(self, kind: object, name: str, namespace: str) -> Any: ...

    @abstractmethod
    def _list(self, kind: object, namespace: str | None, selector: str) -> builtins.list[Any]: ...

    @overload
    def get(
        self, kind: names.ComponentStatus, name: str, namespace: str = "default"
    ) -> core_v1.ComponentStatus: ...
    @overload
    def get(self, kind: names.ConfigMap, name: str, namespace: str = "default") -> core_v1.ConfigMap: ...
    @overload
    def get(self, kind: names.Endpoints, name: str, namespace: str = "default") -> core_v1.Endpoints: ...
    @overload
    def get(self, kind: names.Event, name: str, namespace: str = "default") -> core_v1.Event: ...
    @overload
    def get(self, kind: names.LimitRange, name: str, namespace: str = "default") -> core_v1.LimitRange: ...
    @overload
    def get(self, kind: names.Namespace, name: str, namespace: str = "default") -> core_v1.Namespace: ...
    @overload
    def get(self, kind: names.Node, name: str, namespace: str = "default") -> core_v1.Node: ...
    @overload
    def get(
        self, kind: names.PersistentVolumeClaim, name: str, namespace: str = "default"
    ) -> core_v1.PersistentVolumeClaim: ...
    @overload
    def get(
        self, kind: names.PersistentVolume, name: str, namespace: str = "default"
    ) -> core_v1.PersistentVolume: ...
    @overload
    def get(self, kind: names.Pod, name: str, namespace: str = "default") -> core_v1.Pod: ...
    @overload
    def get(self, kind: names.PodTemplate, name: str, namespace: str = "default") -> core_v1.PodTemplate: ...
    @overload
    def get(
        self, kind: names.ReplicationController, name: str, namespace: str = "default"
    ) -> core_v1.ReplicationController: ...
    @overload
    def get(
        self, kind: names.ResourceQuota, name: str, namespace: str = "default"
    ) -> core_v1.ResourceQuota: ...
    @overload
    def get(self, kind: names.Secret, name: str, namespace: str = "default") -> core_v1.Secret: ...
    @overload
    def get(
        self, kind: names.ServiceAccount, name: str, namespace: str = "default"
    ) -> core_v1.ServiceAccount: ...
    @overload
    def get(self, kind: names.Service, name: str, namespace: str = "default") -> core_v1.Service: ...
    @overload
    def get(
        self, kind: names.APIService, name: str, namespace: str = "default"
    ) -> apiregistration_v1.APIService: ...
    @overload
    def get(
        self, kind: names.ControllerRevision, name: str, namespace: str = "default"
    ) -> apps_v1.ControllerRevision: ...
    @overload
    def get(self, kind: names.DaemonSet, name: str, namespace: str = "default") -> apps_v1.DaemonSet: ...
    @overload
    def get(self, kind: names.Deployment, name: str, namespace: str = "default") -> apps_v1.Deployment: ...
    @overload
    def get(self, kind: names.ReplicaSet, name: str, namespace: str = "default") -> apps_v1.ReplicaSet: ...
    @overload
    def get(self, kind: names.StatefulSet, name: str, namespace: str = "default") -> apps_v1.StatefulSet: ...
    @overload
    def get(self, kind: names.EventV1Events, name: str, namespace: str = "default") -> events_v1.Event: ...
    @overload
    def get(
        self, kind: names.HorizontalPodAutoscaler, name: str, namespace: str = "default"
    ) -> autoscaling_v2.HorizontalPodAutoscaler: ...
    @overload
    def get(self, kind: names.CronJob, name: str, namespace: str = "default") -> batch_v1.CronJob: ...
    @overload
    def get(self, kind: names.Job, name: str, namespace: str = "default") -> batch_v1.Job: ...
    @overload
    def get(
        self, kind: names.CertificateSigningRequest, name: str, namespace: str = "default"
    ) -> certificates_v1.CertificateSigningRequest: ...
    @overload
    def get(
        self, kind: names.IngressClass, name: str, namespace: str = "default"
    ) -> networking_v1.IngressClass: ...
    @overload
    def get(self, kind: names.Ingress, name: str, namespace: str = "default") -> networking_v1.Ingress: ...
    @overload
    def get(
        self, kind: names.IPAddress, name: str, namespace: str = "default"
    ) -> networking_v1.IPAddress: ...
    @overload
    def get(
        self, kind: names.NetworkPolicy, name: str, namespace: str = "default"
    ) -> networking_v1.NetworkPolicy: ...
    @overload
    def get(
        self, kind: names.ServiceCIDR, name: str, namespace: str = "default"
    ) -> networking_v1.ServiceCIDR: ...
    @overload
    def get(
        self, kind: names.PodDisruptionBudget, name: str, namespace: str = "default"
    ) -> policy_v1.PodDisruptionBudget: ...
    @overload
    def get(
        self, kind: names.ClusterRoleBinding, name: str, namespace: str = "default"
    ) -> rbac_v1.ClusterRoleBinding: ...
    @overload
    def get(self, kind: names.ClusterRole, name: str, namespace: str = "default") -> rbac_v1.ClusterRole: ...
    @overload
    def get(self, kind: names.RoleBinding, name: str, namespace: str = "default") -> rbac_v1.RoleBinding: ...
    @overload
    def get(self, kind: names.Role, name: str, namespace: str = "default") -> rbac_v1.Role: ...
    @overload
    def get(self, kind: names.CSIDriver, name: str, namespace: str = "default") -> storage_v1.CSIDriver: ...
    @overload
    def get(self, kind: names.CSINode, name: str, namespace: str = "default") -> storage_v1.CSINode: ...
    @overload
    def get(
        self, kind: names.CSIStorageCapacity, name: str, namespace: str = "default"
    ) -> storage_v1.CSIStorageCapacity: ...
    @overload
    def get(
        self, kind: names.StorageClass, name: str, namespace: str = "default"
    ) -> storage_v1.StorageClass: ...
    @overload
    def get(
        self, kind: names.VolumeAttachment, name: str, namespace: str = "default"
    ) -> storage_v1.VolumeAttachment: ...
    @overload
    def get(
        self, kind: names.VolumeAttributesClass, name: str, namespace: str = "default"
    ) -> storage_v1.VolumeAttributesClass: ...
    @overload
    def get(
        self, kind: names.MutatingAdmissionPolicy, name: str, namespace: str = "default"
    ) -> admissionregistration_v1.MutatingAdmissionPolicy: ...
    @overload
    def get(
        self, kind: names.MutatingAdmissionPolicyBinding, name: str, namespace: str = "default"
    ) -> admissionregistration_v1.MutatingAdmissionPolicyBinding: ...
    @overload
    def get(
        self, kind: names.MutatingWebhookConfiguration, name: str, namespace: str = "default"
    ) -> admissionregistration_v1.MutatingWebhookConfiguration: ...
    @overload
    def get(
        self, kind: names.ValidatingAdmissionPolicy, name: str, namespace: str = "default"
    ) -> admissionregistration_v1.ValidatingAdmissionPolicy: ...
    @overload
    def get(
        self, kind: names.ValidatingAdmissionPolicyBinding, name: str, namespace: str = "default"
    ) -> admissionregistration_v1.ValidatingAdmissionPolicyBinding: ...
    @overload
    def get(
        self, kind: names.ValidatingWebhookConfiguration, name: str, namespace: str = "default"
    ) -> admissionregistration_v1.ValidatingWebhookConfiguration: ...
    @overload
    def get(
        self, kind: names.CustomResourceDefinition, name: str, namespace: str = "default"
    ) -> apiextensions_v1.CustomResourceDefinition: ...
    @overload
    def get(
        self, kind: names.PriorityClass, name: str, namespace: str = "default"
    ) -> scheduling_v1.PriorityClass: ...
    @overload
    def get(self, kind: names.Lease, name: str, namespace: str = "default") -> coordination_v1.Lease: ...
    @overload
    def get(
        self, kind: names.RuntimeClass, name: str, namespace: str = "default"
    ) -> node_v1.RuntimeClass: ...
    @overload
    def get(
        self, kind: names.EndpointSlice, name: str, namespace: str = "default"
    ) -> discovery_v1.EndpointSlice: ...
    @overload
    def get(
        self, kind: names.DeviceClass, name: str, namespace: str = "default"
    ) -> resource_v1.DeviceClass: ...
    @overload
    def get(
        self, kind: names.ResourceClaim, name: str, namespace: str = "default"
    ) -> resource_v1.ResourceClaim: ...
    @overload
    def get(
        self, kind: names.ResourceClaimTemplate, name: str, namespace: str = "default"
    ) -> resource_v1.ResourceClaimTemplate: ...
    @overload
    def get(
        self, kind: names.ResourceSlice, name: str, namespace: str = "default"
    ) -> resource_v1.ResourceSlice: ...
    @overload
    def get(
        self, kind: names.FlowSchema, name: str, namespace: str = "default"
    ) -> flowcontrol_v1.FlowSchema: ...
    @overload
    def get(
        self, kind: names.PriorityLevelConfiguration, name: str, namespace: str = "default"
    ) -> flowcontrol_v1.PriorityLevelConfiguration: ...

    @overload
    def get(self, kind: Kind[T] | type[T], name: str, namespace: str = "default") -> T: ...
    @overload
    def get(self, kind: str, name: str, namespace: str = "default") -> Any: ...
    def get(self, kind: object, name: str, namespace: str = "default") -> Any:
        """Get an object: ``get("deploy", "web")``. Raises `NotFound`."""
        return self._get(kind, name, namespace)

    @overload
    def list(
        self, kind: names.ComponentStatus, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[core_v1.ComponentStatus]: ...
    @overload
    def list(
        self, kind: names.ConfigMap, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[core_v1.ConfigMap]: ...
    @overload
    def list(
        self, kind: names.Endpoints, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[core_v1.Endpoints]: ...
    @overload
    def list(
        self, kind: names.Event, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[core_v1.Event]: ...
    @overload
    def list(
        self, kind: names.LimitRange, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[core_v1.LimitRange]: ...
    @overload
    def list(
        self, kind: names.Namespace, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[core_v1.Namespace]: ...
    @overload
    def list(
        self, kind: names.Node, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[core_v1.Node]: ...
    @overload
    def list(
        self, kind: names.PersistentVolumeClaim, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[core_v1.PersistentVolumeClaim]: ...
    @overload
    def list(
        self, kind: names.PersistentVolume, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[core_v1.PersistentVolume]: ...
    @overload
    def list(
        self, kind: names.Pod, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[core_v1.Pod]: ...
    @overload
    def list(
        self, kind: names.PodTemplate, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[core_v1.PodTemplate]: ...
    @overload
    def list(
        self, kind: names.ReplicationController, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[core_v1.ReplicationController]: ...
    @overload
    def list(
        self, kind: names.ResourceQuota, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[core_v1.ResourceQuota]: ...
    @overload
    def list(
        self, kind: names.Secret, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[core_v1.Secret]: ...
    @overload
    def list(
        self, kind: names.ServiceAccount, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[core_v1.ServiceAccount]: ...
    @overload
    def list(
        self, kind: names.Service, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[core_v1.Service]: ...
    @overload
    def list(
        self, kind: names.APIService, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[apiregistration_v1.APIService]: ...
    @overload
    def list(
        self, kind: names.ControllerRevision, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[apps_v1.ControllerRevision]: ...
    @overload
    def list(
        self, kind: names.DaemonSet, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[apps_v1.DaemonSet]: ...
    @overload
    def list(
        self, kind: names.Deployment, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[apps_v1.Deployment]: ...
    @overload
    def list(
        self, kind: names.ReplicaSet, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[apps_v1.ReplicaSet]: ...
    @overload
    def list(
        self, kind: names.StatefulSet, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[apps_v1.StatefulSet]: ...
    @overload
    def list(
        self, kind: names.EventV1Events, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[events_v1.Event]: ...
    @overload
    def list(
        self, kind: names.HorizontalPodAutoscaler, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[autoscaling_v2.HorizontalPodAutoscaler]: ...
    @overload
    def list(
        self, kind: names.CronJob, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[batch_v1.CronJob]: ...
    @overload
    def list(
        self, kind: names.Job, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[batch_v1.Job]: ...
    @overload
    def list(
        self, kind: names.CertificateSigningRequest, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[certificates_v1.CertificateSigningRequest]: ...
    @overload
    def list(
        self, kind: names.IngressClass, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[networking_v1.IngressClass]: ...
    @overload
    def list(
        self, kind: names.Ingress, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[networking_v1.Ingress]: ...
    @overload
    def list(
        self, kind: names.IPAddress, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[networking_v1.IPAddress]: ...
    @overload
    def list(
        self, kind: names.NetworkPolicy, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[networking_v1.NetworkPolicy]: ...
    @overload
    def list(
        self, kind: names.ServiceCIDR, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[networking_v1.ServiceCIDR]: ...
    @overload
    def list(
        self, kind: names.PodDisruptionBudget, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[policy_v1.PodDisruptionBudget]: ...
    @overload
    def list(
        self, kind: names.ClusterRoleBinding, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[rbac_v1.ClusterRoleBinding]: ...
    @overload
    def list(
        self, kind: names.ClusterRole, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[rbac_v1.ClusterRole]: ...
    @overload
    def list(
        self, kind: names.RoleBinding, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[rbac_v1.RoleBinding]: ...
    @overload
    def list(
        self, kind: names.Role, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[rbac_v1.Role]: ...
    @overload
    def list(
        self, kind: names.CSIDriver, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[storage_v1.CSIDriver]: ...
    @overload
    def list(
        self, kind: names.CSINode, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[storage_v1.CSINode]: ...
    @overload
    def list(
        self, kind: names.CSIStorageCapacity, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[storage_v1.CSIStorageCapacity]: ...
    @overload
    def list(
        self, kind: names.StorageClass, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[storage_v1.StorageClass]: ...
    @overload
    def list(
        self, kind: names.VolumeAttachment, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[storage_v1.VolumeAttachment]: ...
    @overload
    def list(
        self, kind: names.VolumeAttributesClass, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[storage_v1.VolumeAttributesClass]: ...
    @overload
    def list(
        self, kind: names.MutatingAdmissionPolicy, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[admissionregistration_v1.MutatingAdmissionPolicy]: ...
    @overload
    def list(
        self, kind: names.MutatingAdmissionPolicyBinding, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[admissionregistration_v1.MutatingAdmissionPolicyBinding]: ...
    @overload
    def list(
        self, kind: names.MutatingWebhookConfiguration, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[admissionregistration_v1.MutatingWebhookConfiguration]: ...
    @overload
    def list(
        self, kind: names.ValidatingAdmissionPolicy, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[admissionregistration_v1.ValidatingAdmissionPolicy]: ...
    @overload
    def list(
        self, kind: names.ValidatingAdmissionPolicyBinding, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[admissionregistration_v1.ValidatingAdmissionPolicyBinding]: ...
    @overload
    def list(
        self, kind: names.ValidatingWebhookConfiguration, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[admissionregistration_v1.ValidatingWebhookConfiguration]: ...
    @overload
    def list(
        self, kind: names.CustomResourceDefinition, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[apiextensions_v1.CustomResourceDefinition]: ...
    @overload
    def list(
        self, kind: names.PriorityClass, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[scheduling_v1.PriorityClass]: ...
    @overload
    def list(
        self, kind: names.Lease, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[coordination_v1.Lease]: ...
    @overload
    def list(
        self, kind: names.RuntimeClass, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[node_v1.RuntimeClass]: ...
    @overload
    def list(
        self, kind: names.EndpointSlice, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[discovery_v1.EndpointSlice]: ...
    @overload
    def list(
        self, kind: names.DeviceClass, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[resource_v1.DeviceClass]: ...
    @overload
    def list(
        self, kind: names.ResourceClaim, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[resource_v1.ResourceClaim]: ...
    @overload
    def list(
        self, kind: names.ResourceClaimTemplate, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[resource_v1.ResourceClaimTemplate]: ...
    @overload
    def list(
        self, kind: names.ResourceSlice, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[resource_v1.ResourceSlice]: ...
    @overload
    def list(
        self, kind: names.FlowSchema, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[flowcontrol_v1.FlowSchema]: ...
    @overload
    def list(
        self, kind: names.PriorityLevelConfiguration, namespace: str | None = None, selector: str = ""
    ) -> builtins.list[flowcontrol_v1.PriorityLevelConfiguration]: ...

    @overload
    def list(
        self, kind: Kind[T] | type[T], namespace: str | None = None, selector: str = ""
    ) -> builtins.list[T]: ...
    @overload
    def list(self, kind: str, namespace: str | None = None, selector: str = "") -> builtins.list[Any]: ...
    def list(self, kind: object, namespace: str | None = None, selector: str = "") -> builtins.list[Any]:
        """List objects of a namespace, or of all: ``list("pods", selector="app=web")``."""
        return self._list(kind, namespace, selector)
