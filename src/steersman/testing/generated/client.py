"""The client's ``get`` and ``list`` with the types of built-in kinds.

Written by tools/generate_typed_kinds.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar, Unpack, overload

from steersman.api.scheme import Kind
from steersman.client.api import Page, UndecodableObject

if TYPE_CHECKING:
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


class ListOptions(TypedDict, total=False):
    """The options of a list."""

    label_selector: str
    field_selector: str
    limit: int
    continue_: str
    resource_version: str
    resource_version_match: Literal["", "Exact", "NotOlderThan"]


class TypedClient(ABC):
    """Reading objects by the names of their kinds, for coroutines."""

    @abstractmethod
    def _get(self, kind: object, namespace: str, name: str) -> Coroutine[Any, Any, Any]: ...

    @abstractmethod
    def _list(self, kind: object, namespace: str, options: dict[str, Any]) -> Coroutine[Any, Any, Any]: ...

    @overload
    def get(
        self, kind: names.ComponentStatus, namespace: str, name: str
    ) -> Coroutine[Any, Any, core_v1.ComponentStatus]: ...
    @overload
    def get(
        self, kind: names.ConfigMap, namespace: str, name: str
    ) -> Coroutine[Any, Any, core_v1.ConfigMap]: ...
    @overload
    def get(
        self, kind: names.Endpoints, namespace: str, name: str
    ) -> Coroutine[Any, Any, core_v1.Endpoints]: ...
    @overload
    def get(self, kind: names.Event, namespace: str, name: str) -> Coroutine[Any, Any, core_v1.Event]: ...
    @overload
    def get(
        self, kind: names.LimitRange, namespace: str, name: str
    ) -> Coroutine[Any, Any, core_v1.LimitRange]: ...
    @overload
    def get(
        self, kind: names.Namespace, namespace: str, name: str
    ) -> Coroutine[Any, Any, core_v1.Namespace]: ...
    @overload
    def get(self, kind: names.Node, namespace: str, name: str) -> Coroutine[Any, Any, core_v1.Node]: ...
    @overload
    def get(
        self, kind: names.PersistentVolumeClaim, namespace: str, name: str
    ) -> Coroutine[Any, Any, core_v1.PersistentVolumeClaim]: ...
    @overload
    def get(
        self, kind: names.PersistentVolume, namespace: str, name: str
    ) -> Coroutine[Any, Any, core_v1.PersistentVolume]: ...
    @overload
    def get(self, kind: names.Pod, namespace: str, name: str) -> Coroutine[Any, Any, core_v1.Pod]: ...
    @overload
    def get(
        self, kind: names.PodTemplate, namespace: str, name: str
    ) -> Coroutine[Any, Any, core_v1.PodTemplate]: ...
    @overload
    def get(
        self, kind: names.ReplicationController, namespace: str, name: str
    ) -> Coroutine[Any, Any, core_v1.ReplicationController]: ...
    @overload
    def get(
        self, kind: names.ResourceQuota, namespace: str, name: str
    ) -> Coroutine[Any, Any, core_v1.ResourceQuota]: ...
    @overload
    def get(self, kind: names.Secret, namespace: str, name: str) -> Coroutine[Any, Any, core_v1.Secret]: ...
    @overload
    def get(
        self, kind: names.ServiceAccount, namespace: str, name: str
    ) -> Coroutine[Any, Any, core_v1.ServiceAccount]: ...
    @overload
    def get(self, kind: names.Service, namespace: str, name: str) -> Coroutine[Any, Any, core_v1.Service]: ...
    @overload
    def get(
        self, kind: names.APIService, namespace: str, name: str
    ) -> Coroutine[Any, Any, apiregistration_v1.APIService]: ...
    @overload
    def get(
        self, kind: names.ControllerRevision, namespace: str, name: str
    ) -> Coroutine[Any, Any, apps_v1.ControllerRevision]: ...
    @overload
    def get(
        self, kind: names.DaemonSet, namespace: str, name: str
    ) -> Coroutine[Any, Any, apps_v1.DaemonSet]: ...
    @overload
    def get(
        self, kind: names.Deployment, namespace: str, name: str
    ) -> Coroutine[Any, Any, apps_v1.Deployment]: ...
    @overload
    def get(
        self, kind: names.ReplicaSet, namespace: str, name: str
    ) -> Coroutine[Any, Any, apps_v1.ReplicaSet]: ...
    @overload
    def get(
        self, kind: names.StatefulSet, namespace: str, name: str
    ) -> Coroutine[Any, Any, apps_v1.StatefulSet]: ...
    @overload
    def get(
        self, kind: names.EventV1Events, namespace: str, name: str
    ) -> Coroutine[Any, Any, events_v1.Event]: ...
    @overload
    def get(
        self, kind: names.HorizontalPodAutoscaler, namespace: str, name: str
    ) -> Coroutine[Any, Any, autoscaling_v2.HorizontalPodAutoscaler]: ...
    @overload
    def get(
        self, kind: names.CronJob, namespace: str, name: str
    ) -> Coroutine[Any, Any, batch_v1.CronJob]: ...
    @overload
    def get(self, kind: names.Job, namespace: str, name: str) -> Coroutine[Any, Any, batch_v1.Job]: ...
    @overload
    def get(
        self, kind: names.CertificateSigningRequest, namespace: str, name: str
    ) -> Coroutine[Any, Any, certificates_v1.CertificateSigningRequest]: ...
    @overload
    def get(
        self, kind: names.IngressClass, namespace: str, name: str
    ) -> Coroutine[Any, Any, networking_v1.IngressClass]: ...
    @overload
    def get(
        self, kind: names.Ingress, namespace: str, name: str
    ) -> Coroutine[Any, Any, networking_v1.Ingress]: ...
    @overload
    def get(
        self, kind: names.IPAddress, namespace: str, name: str
    ) -> Coroutine[Any, Any, networking_v1.IPAddress]: ...
    @overload
    def get(
        self, kind: names.NetworkPolicy, namespace: str, name: str
    ) -> Coroutine[Any, Any, networking_v1.NetworkPolicy]: ...
    @overload
    def get(
        self, kind: names.ServiceCIDR, namespace: str, name: str
    ) -> Coroutine[Any, Any, networking_v1.ServiceCIDR]: ...
    @overload
    def get(
        self, kind: names.PodDisruptionBudget, namespace: str, name: str
    ) -> Coroutine[Any, Any, policy_v1.PodDisruptionBudget]: ...
    @overload
    def get(
        self, kind: names.ClusterRoleBinding, namespace: str, name: str
    ) -> Coroutine[Any, Any, rbac_v1.ClusterRoleBinding]: ...
    @overload
    def get(
        self, kind: names.ClusterRole, namespace: str, name: str
    ) -> Coroutine[Any, Any, rbac_v1.ClusterRole]: ...
    @overload
    def get(
        self, kind: names.RoleBinding, namespace: str, name: str
    ) -> Coroutine[Any, Any, rbac_v1.RoleBinding]: ...
    @overload
    def get(self, kind: names.Role, namespace: str, name: str) -> Coroutine[Any, Any, rbac_v1.Role]: ...
    @overload
    def get(
        self, kind: names.CSIDriver, namespace: str, name: str
    ) -> Coroutine[Any, Any, storage_v1.CSIDriver]: ...
    @overload
    def get(
        self, kind: names.CSINode, namespace: str, name: str
    ) -> Coroutine[Any, Any, storage_v1.CSINode]: ...
    @overload
    def get(
        self, kind: names.CSIStorageCapacity, namespace: str, name: str
    ) -> Coroutine[Any, Any, storage_v1.CSIStorageCapacity]: ...
    @overload
    def get(
        self, kind: names.StorageClass, namespace: str, name: str
    ) -> Coroutine[Any, Any, storage_v1.StorageClass]: ...
    @overload
    def get(
        self, kind: names.VolumeAttachment, namespace: str, name: str
    ) -> Coroutine[Any, Any, storage_v1.VolumeAttachment]: ...
    @overload
    def get(
        self, kind: names.VolumeAttributesClass, namespace: str, name: str
    ) -> Coroutine[Any, Any, storage_v1.VolumeAttributesClass]: ...
    @overload
    def get(
        self, kind: names.MutatingAdmissionPolicy, namespace: str, name: str
    ) -> Coroutine[Any, Any, admissionregistration_v1.MutatingAdmissionPolicy]: ...
    @overload
    def get(
        self, kind: names.MutatingAdmissionPolicyBinding, namespace: str, name: str
    ) -> Coroutine[Any, Any, admissionregistration_v1.MutatingAdmissionPolicyBinding]: ...
    @overload
    def get(
        self, kind: names.MutatingWebhookConfiguration, namespace: str, name: str
    ) -> Coroutine[Any, Any, admissionregistration_v1.MutatingWebhookConfiguration]: ...
    @overload
    def get(
        self, kind: names.ValidatingAdmissionPolicy, namespace: str, name: str
    ) -> Coroutine[Any, Any, admissionregistration_v1.ValidatingAdmissionPolicy]: ...
    @overload
    def get(
        self, kind: names.ValidatingAdmissionPolicyBinding, namespace: str, name: str
    ) -> Coroutine[Any, Any, admissionregistration_v1.ValidatingAdmissionPolicyBinding]: ...
    @overload
    def get(
        self, kind: names.ValidatingWebhookConfiguration, namespace: str, name: str
    ) -> Coroutine[Any, Any, admissionregistration_v1.ValidatingWebhookConfiguration]: ...
    @overload
    def get(
        self, kind: names.CustomResourceDefinition, namespace: str, name: str
    ) -> Coroutine[Any, Any, apiextensions_v1.CustomResourceDefinition]: ...
    @overload
    def get(
        self, kind: names.PriorityClass, namespace: str, name: str
    ) -> Coroutine[Any, Any, scheduling_v1.PriorityClass]: ...
    @overload
    def get(
        self, kind: names.Lease, namespace: str, name: str
    ) -> Coroutine[Any, Any, coordination_v1.Lease]: ...
    @overload
    def get(
        self, kind: names.RuntimeClass, namespace: str, name: str
    ) -> Coroutine[Any, Any, node_v1.RuntimeClass]: ...
    @overload
    def get(
        self, kind: names.EndpointSlice, namespace: str, name: str
    ) -> Coroutine[Any, Any, discovery_v1.EndpointSlice]: ...
    @overload
    def get(
        self, kind: names.DeviceClass, namespace: str, name: str
    ) -> Coroutine[Any, Any, resource_v1.DeviceClass]: ...
    @overload
    def get(
        self, kind: names.ResourceClaim, namespace: str, name: str
    ) -> Coroutine[Any, Any, resource_v1.ResourceClaim]: ...
    @overload
    def get(
        self, kind: names.ResourceClaimTemplate, namespace: str, name: str
    ) -> Coroutine[Any, Any, resource_v1.ResourceClaimTemplate]: ...
    @overload
    def get(
        self, kind: names.ResourceSlice, namespace: str, name: str
    ) -> Coroutine[Any, Any, resource_v1.ResourceSlice]: ...
    @overload
    def get(
        self, kind: names.FlowSchema, namespace: str, name: str
    ) -> Coroutine[Any, Any, flowcontrol_v1.FlowSchema]: ...
    @overload
    def get(
        self, kind: names.PriorityLevelConfiguration, namespace: str, name: str
    ) -> Coroutine[Any, Any, flowcontrol_v1.PriorityLevelConfiguration]: ...

    @overload
    def get(self, kind: Kind[T] | type[T], namespace: str, name: str) -> Coroutine[Any, Any, T]: ...
    @overload
    def get(self, kind: str, namespace: str, name: str) -> Coroutine[Any, Any, Any]: ...
    def get(self, kind: object, namespace: str, name: str) -> Coroutine[Any, Any, Any]:
        """Get an object: ``await client.get("deploy", "default", "web")``. Raises `NotFound`."""
        return self._get(kind, namespace, name)

    @overload
    def list(
        self, kind: names.ComponentStatus, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[core_v1.ComponentStatus]]: ...
    @overload
    def list(
        self, kind: names.ConfigMap, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[core_v1.ConfigMap]]: ...
    @overload
    def list(
        self, kind: names.Endpoints, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[core_v1.Endpoints]]: ...
    @overload
    def list(
        self, kind: names.Event, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[core_v1.Event]]: ...
    @overload
    def list(
        self, kind: names.LimitRange, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[core_v1.LimitRange]]: ...
    @overload
    def list(
        self, kind: names.Namespace, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[core_v1.Namespace]]: ...
    @overload
    def list(
        self, kind: names.Node, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[core_v1.Node]]: ...
    @overload
    def list(
        self, kind: names.PersistentVolumeClaim, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[core_v1.PersistentVolumeClaim]]: ...
    @overload
    def list(
        self, kind: names.PersistentVolume, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[core_v1.PersistentVolume]]: ...
    @overload
    def list(
        self, kind: names.Pod, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[core_v1.Pod]]: ...
    @overload
    def list(
        self, kind: names.PodTemplate, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[core_v1.PodTemplate]]: ...
    @overload
    def list(
        self, kind: names.ReplicationController, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[core_v1.ReplicationController]]: ...
    @overload
    def list(
        self, kind: names.ResourceQuota, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[core_v1.ResourceQuota]]: ...
    @overload
    def list(
        self, kind: names.Secret, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[core_v1.Secret]]: ...
    @overload
    def list(
        self, kind: names.ServiceAccount, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[core_v1.ServiceAccount]]: ...
    @overload
    def list(
        self, kind: names.Service, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[core_v1.Service]]: ...
    @overload
    def list(
        self, kind: names.APIService, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[apiregistration_v1.APIService]]: ...
    @overload
    def list(
        self, kind: names.ControllerRevision, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[apps_v1.ControllerRevision]]: ...
    @overload
    def list(
        self, kind: names.DaemonSet, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[apps_v1.DaemonSet]]: ...
    @overload
    def list(
        self, kind: names.Deployment, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[apps_v1.Deployment]]: ...
    @overload
    def list(
        self, kind: names.ReplicaSet, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[apps_v1.ReplicaSet]]: ...
    @overload
    def list(
        self, kind: names.StatefulSet, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[apps_v1.StatefulSet]]: ...
    @overload
    def list(
        self, kind: names.EventV1Events, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[events_v1.Event]]: ...
    @overload
    def list(
        self, kind: names.HorizontalPodAutoscaler, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[autoscaling_v2.HorizontalPodAutoscaler]]: ...
    @overload
    def list(
        self, kind: names.CronJob, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[batch_v1.CronJob]]: ...
    @overload
    def list(
        self, kind: names.Job, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[batch_v1.Job]]: ...
    @overload
    def list(
        self, kind: names.CertificateSigningRequest, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[certificates_v1.CertificateSigningRequest]]: ...
    @overload
    def list(
        self, kind: names.IngressClass, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[networking_v1.IngressClass]]: ...
    @overload
    def list(
        self, kind: names.Ingress, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[networking_v1.Ingress]]: ...
    @overload
    def list(
        self, kind: names.IPAddress, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[networking_v1.IPAddress]]: ...
    @overload
    def list(
        self, kind: names.NetworkPolicy, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[networking_v1.NetworkPolicy]]: ...
    @overload
    def list(
        self, kind: names.ServiceCIDR, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[networking_v1.ServiceCIDR]]: ...
    @overload
    def list(
        self, kind: names.PodDisruptionBudget, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[policy_v1.PodDisruptionBudget]]: ...
    @overload
    def list(
        self, kind: names.ClusterRoleBinding, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[rbac_v1.ClusterRoleBinding]]: ...
    @overload
    def list(
        self, kind: names.ClusterRole, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[rbac_v1.ClusterRole]]: ...
    @overload
    def list(
        self, kind: names.RoleBinding, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[rbac_v1.RoleBinding]]: ...
    @overload
    def list(
        self, kind: names.Role, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[rbac_v1.Role]]: ...
    @overload
    def list(
        self, kind: names.CSIDriver, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[storage_v1.CSIDriver]]: ...
    @overload
    def list(
        self, kind: names.CSINode, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[storage_v1.CSINode]]: ...
    @overload
    def list(
        self, kind: names.CSIStorageCapacity, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[storage_v1.CSIStorageCapacity]]: ...
    @overload
    def list(
        self, kind: names.StorageClass, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[storage_v1.StorageClass]]: ...
    @overload
    def list(
        self, kind: names.VolumeAttachment, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[storage_v1.VolumeAttachment]]: ...
    @overload
    def list(
        self, kind: names.VolumeAttributesClass, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[storage_v1.VolumeAttributesClass]]: ...
    @overload
    def list(
        self, kind: names.MutatingAdmissionPolicy, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[admissionregistration_v1.MutatingAdmissionPolicy]]: ...
    @overload
    def list(
        self, kind: names.MutatingAdmissionPolicyBinding, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[admissionregistration_v1.MutatingAdmissionPolicyBinding]]: ...
    @overload
    def list(
        self, kind: names.MutatingWebhookConfiguration, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[admissionregistration_v1.MutatingWebhookConfiguration]]: ...
    @overload
    def list(
        self, kind: names.ValidatingAdmissionPolicy, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[admissionregistration_v1.ValidatingAdmissionPolicy]]: ...
    @overload
    def list(
        self,
        kind: names.ValidatingAdmissionPolicyBinding,
        namespace: str = "",
        **options: Unpack[ListOptions],
    ) -> Coroutine[Any, Any, Page[admissionregistration_v1.ValidatingAdmissionPolicyBinding]]: ...
    @overload
    def list(
        self, kind: names.ValidatingWebhookConfiguration, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[admissionregistration_v1.ValidatingWebhookConfiguration]]: ...
    @overload
    def list(
        self, kind: names.CustomResourceDefinition, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[apiextensions_v1.CustomResourceDefinition]]: ...
    @overload
    def list(
        self, kind: names.PriorityClass, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[scheduling_v1.PriorityClass]]: ...
    @overload
    def list(
        self, kind: names.Lease, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[coordination_v1.Lease]]: ...
    @overload
    def list(
        self, kind: names.RuntimeClass, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[node_v1.RuntimeClass]]: ...
    @overload
    def list(
        self, kind: names.EndpointSlice, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[discovery_v1.EndpointSlice]]: ...
    @overload
    def list(
        self, kind: names.DeviceClass, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[resource_v1.DeviceClass]]: ...
    @overload
    def list(
        self, kind: names.ResourceClaim, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[resource_v1.ResourceClaim]]: ...
    @overload
    def list(
        self, kind: names.ResourceClaimTemplate, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[resource_v1.ResourceClaimTemplate]]: ...
    @overload
    def list(
        self, kind: names.ResourceSlice, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[resource_v1.ResourceSlice]]: ...
    @overload
    def list(
        self, kind: names.FlowSchema, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[flowcontrol_v1.FlowSchema]]: ...
    @overload
    def list(
        self, kind: names.PriorityLevelConfiguration, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[flowcontrol_v1.PriorityLevelConfiguration]]: ...

    @overload
    def list(
        self, kind: Kind[T] | type[T], namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[T | UndecodableObject]]: ...
    @overload
    def list(
        self, kind: str, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Page[Any]]: ...
    def list(
        self, kind: object, namespace: str = "", **options: Unpack[ListOptions]
    ) -> Coroutine[Any, Any, Any]:
        """List objects of a namespace, or of all: ``(await client.list("pods", label_selector="app=web")).items``."""
        return self._list(kind, namespace, dict(options))
